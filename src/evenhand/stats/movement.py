"""Why a rate or a gap moved between two periods: parts that sum exactly to the movement.

A rate is the sum over strata of share times rate within. Its change is split symmetrically
(Kitagawa): by what the shares did at average rates, and by what the rates did at average shares.
Where decisions come from a score, the change of a rate within a stratum is split again into what
the threshold did and what the scores did.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.estimate import FloatArray

# A stratum with fewer cases than this in any group or period joins the others of its kind.
FEWEST_CASES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """The parts by stratum of one group's rate: they sum to its change."""

    mix: FloatArray
    rate: FloatArray

    @property
    def total(self) -> FloatArray:
        """The change of the group's rate."""
        return np.asarray((self.mix + self.rate).sum(axis=-1))


def mix_and_rate(
    shares_before: ArrayLike,
    rates_before: ArrayLike,
    shares_after: ArrayLike,
    rates_after: ArrayLike,
) -> Movement:
    """What the mix of strata and what the rates within them did, by stratum in the last axis.

    The mix is centred: a stratum that grows moves the rate only as far as it differs from the
    average. A stratum that one period lacks (its rate NaN) takes the other's rate, so that its
    whole effect is mix.

    Examples:
        >>> found = mix_and_rate([0.5, 0.5], [0.9, 0.6], [0.4, 0.6], [0.88, 0.5])
        >>> found.mix.round(4).tolist(), found.rate.round(4).tolist()
        ([-0.0189, -0.0151], [-0.009, -0.055])
        >>> round(float(found.total), 4)
        -0.098
    """
    p0, r0, p1, r1 = (
        np.asarray(part, np.float64)
        for part in (shares_before, rates_before, shares_after, rates_after)
    )
    r0, r1 = np.where(np.isnan(r0), r1, r0), np.where(np.isnan(r1), r0, r1)
    # A stratum absent from both periods has no rate and no share: it moves nothing.
    r0, r1 = np.nan_to_num(r0), np.nan_to_num(r1)
    middle = (r0 + r1) / 2
    level = ((p0 * r0).sum(axis=-1) + (p1 * r1).sum(axis=-1)) / 2
    return Movement(mix=(p1 - p0) * (middle - level[..., None]), rate=(p0 + p1) / 2 * (r1 - r0))


def threshold_and_scores(above: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """What a moved threshold and what moved scores did to the share above the threshold.

    `above[..., i, j]` is the share of period i's scores at or above period j's threshold, i and
    j being 0 before and 1 after. The same two lines split an implied threshold, with the
    prevalence at period j's threshold in period i: moved threshold against moved calibration.

    Examples:
        >>> threshold, scores = threshold_and_scores([[0.309, 0.242], [0.382, 0.309]])
        >>> round(float(threshold), 3), round(float(scores), 3)
        (-0.07, 0.07)
    """
    s = np.asarray(above, np.float64)
    threshold = ((s[..., 0, 1] - s[..., 0, 0]) + (s[..., 1, 1] - s[..., 1, 0])) / 2
    scores = ((s[..., 1, 0] - s[..., 0, 0]) + (s[..., 1, 1] - s[..., 0, 1])) / 2
    return threshold, scores


def joined_strata(counts: ArrayLike) -> tuple[list[list[int]], FloatArray]:
    """Strata with few cases in any cell joined to one, and the counts of what is left.

    `counts` are by (group, period, stratum); the strata joined come last, as one.

    Examples:
        >>> places, counts = joined_strata([[[50, 3, 20], [40, 9, 30]]])
        >>> places, counts.tolist()
        ([[0], [2], [1]], [[[50.0, 20.0, 3.0], [40.0, 30.0, 9.0]]])
    """
    n = np.asarray(counts, np.float64)
    few = (n < FEWEST_CASES).reshape(-1, n.shape[-1]).any(axis=0)
    places = [[int(i)] for i in np.flatnonzero(~few)]
    if few.any():
        places.append([int(i) for i in np.flatnonzero(few)])
    return places, np.stack([n[..., place].sum(axis=-1) for place in places], axis=-1)


def shares_and_rates(hits: ArrayLike, cases: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Shares of strata among the cases, and the rate within each; NaN without cases."""
    k, n = np.asarray(hits, np.float64), np.asarray(cases, np.float64)
    with np.errstate(all="ignore"):
        return n / n.sum(axis=-1, keepdims=True), k / n
