"""Area under the ROC curve from sums of placements: DeLong's variance, and differences.

A positive's placement is d = R − R⁺, its average rank among all rows minus that among the
positives: the number of negatives below it. A negative's is e = R − R⁻, the positives below it.
Σd, Σd², Σe and Σe² per cell are all that is needed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, stdtrit

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import Interval, wilson

# How many cases' worth the model variance counts beside DeLong's own; see `Auc.effective_n`.
_PRIOR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Auc:
    """Areas per cell with DeLong's variance; NaN without positives or without negatives.

    `variance` is NaN with a single positive or negative; the interval then still exists.
    """

    value: FloatArray
    variance: FloatArray
    positives: FloatArray
    negatives: FloatArray
    degrees: FloatArray

    def effective_n(self, *, z: ArrayLike) -> FloatArray:
        """Number of cases for which Wilson's interval has the width that this area needs.

        Few misplaced cases make DeLong's variance too small (coverage 25–90 % at areas of 0.95
        and more), so it is averaged with the variance of exponential scores (Hanley & McNeil
        1982, the larger way round) weighing two cases, gets Welch's t, and is kept under its
        bound area·(1 − area) ÷ min(positives, negatives).
        """
        critical = np.asarray(z, np.float64)
        least = np.minimum(self.positives, self.negatives)
        with np.errstate(all="ignore"):
            spread = self.value * (1 - self.value)
            t = -stdtrit(self.degrees, ndtr(-critical))
            own = np.where(self.variance > 0, self.variance / spread * (t / critical) ** 2, 0.0)
            informative = np.where(np.isfinite(self.variance), 4 * spread * least, 0.0)
            inverse = (informative * own + _PRIOR * self._model()) / (informative + _PRIOR)
            n = np.maximum(1 / inverse, least)
        return np.where(least > 0, n, np.nan)

    def interval(self, *, z: ArrayLike) -> Interval:
        """Limits of the area, inside [0, 1] and never of zero width."""
        n = self.effective_n(z=z)
        return wilson(self.value * n, n, z=z)

    def _shrunk(self) -> FloatArray:
        least = np.minimum(self.positives, self.negatives)
        return np.asarray((self.value * least + 1) / (least + 2))

    def _model(self) -> FloatArray:
        """Variance under exponential scores, relative to area·(1 − area)."""
        area = self._shrunk()
        first, second = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
        more, other = self.positives - 1, self.negatives - 1
        pairs = np.maximum(more * first + other * second, more * second + other * first)
        spread = area * (1 - area)
        return np.asarray((spread + pairs) / (self.positives * self.negatives) / spread)


def delong(
    positives: ArrayLike,
    negatives: ArrayLike,
    *,
    placement: ArrayLike,
    placement_squares: ArrayLike,
    negative_placement_squares: ArrayLike,
) -> Auc:
    """Area under the curve: the chance that a positive scores above a negative, ties as half.

    Sums per cell: Σd and Σd² over the positives, Σe² over the negatives (Σe follows).

    Examples:
        >>> area = delong(2, 3, placement=5, placement_squares=13, negative_placement_squares=1)
        >>> print(f"{area.value:.4f} ± {area.variance ** 0.5:.4f}")
        0.8333 ± 0.2357
        >>> low, high = area.interval(z=1.96)
        >>> print(f"{low:.2f} {high:.2f}")
        0.24 0.99
    """
    n1, n0, d, d2, e2 = (
        np.asarray(part, np.float64)
        for part in (
            positives,
            negatives,
            placement,
            placement_squares,
            negative_placement_squares,
        )
    )
    with np.errstate(all="ignore"):
        value = d / (n1 * n0)
        of_positives = np.maximum(d2 / n0**2 - n1 * value**2, 0.0) / (n1 - 1) / n1
        of_negatives = np.maximum(e2 / n1**2 - n0 * (1 - value) ** 2, 0.0) / (n0 - 1) / n0
        both = (n1 > 1) & (n0 > 1)
        variance = np.where(both, of_positives + of_negatives, np.nan)
        degrees = variance**2 / (of_positives**2 / (n1 - 1) + of_negatives**2 / (n0 - 1))
    return Auc(value=value, variance=variance, positives=n1, negatives=n0, degrees=degrees)


def auc_gap(area: Auc, reference: Auc, *, z: ArrayLike) -> Interval:
    """Interval of the difference of two independent areas, group − reference.

    The two intervals are combined as Newcombe combines Wilson's.

    Examples:
        >>> area = delong(2, 3, placement=5, placement_squares=13, negative_placement_squares=1)
        >>> low, high = auc_gap(area, area, z=1.96)
        >>> print(f"{low:.2f} {high:.2f}")
        -0.61 0.61
    """
    low, high = area.interval(z=z)
    low_reference, high_reference = reference.interval(z=z)
    gap = area.value - reference.value
    down = np.hypot(area.value - low, high_reference - reference.value)
    up = np.hypot(high - area.value, reference.value - low_reference)
    return np.asarray(gap - down), np.asarray(gap + up)


def auc_gap_p(area: Auc, reference: Auc) -> FloatArray:
    """Two-sided p of equal areas, with the variances that the intervals use.

    Examples:
        >>> area = delong(2, 3, placement=5, placement_squares=13, negative_placement_squares=1)
        >>> float(auc_gap_p(area, area))
        1.0
    """
    total = np.zeros(())
    for side in (area, reference):
        shrunk = side._shrunk()
        total = total + shrunk * (1 - shrunk) / side.effective_n(z=1.96)
    with np.errstate(all="ignore"):
        return np.asarray(2 * ndtr(-np.abs(area.value - reference.value) / np.sqrt(total)))


def undefined_reason(positives: float, negatives: float) -> str | None:
    """Why an area does not exist, or None where it does.

    Examples:
        >>> undefined_reason(0, 5)
        'no positives in the group'
    """
    if positives == 0:
        return "no positives in the group"
    return "no negatives in the group" if negatives == 0 else None
