"""Does prevalence rise with the score? Isotonic fit and a test of a fall near the threshold."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.histogram import ScoreHistogram


def isotonic_fit(values: ArrayLike, *, weights: ArrayLike | None = None) -> FloatArray:
    """Nearest non-decreasing sequence in least squares (pool adjacent violators).

    Examples:
        >>> isotonic_fit([1, 3, 2, 4, 3.5, 5]).tolist()
        [1.0, 2.5, 2.5, 3.75, 3.75, 5.0]
    """
    from scipy.optimize import isotonic_regression

    y = np.asarray(values, dtype=float)
    if y.size == 0:
        return y
    w = None if weights is None else np.asarray(weights, dtype=float)
    return np.asarray(isotonic_regression(y, weights=w).x, dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monotonicity:
    """Prevalence in bins of equal counts, its isotonic fit and the p of "it never falls".

    `drop` is the largest fall from one bin to a later one in standard errors. A small p means
    that one threshold cannot be the best everywhere: the cost curve may have several minima.
    """

    scores: FloatArray
    n: FloatArray
    prevalence: FloatArray
    fitted: FloatArray
    drop: float
    p: float
    undefined: str | None = None

    @property
    def warning(self) -> str | None:
        """A sentence when prevalence falls with the score beyond chance at 5 %."""
        if np.isnan(self.p) or self.p >= 0.05:
            return None
        return (
            f"prevalence falls as the score rises near the threshold (p={self.p:.3f}); "
            "the implied threshold may not be the cheapest one"
        )


def monotonicity(
    histogram: ScoreHistogram,
    *,
    group: int = 0,
    half_width: float = np.inf,
    bins: int = 10,
    draws: int = 999,
    seed: int = 0,
) -> Monotonicity:
    """Test of a falling prevalence within `half_width` of the threshold.

    The null distribution is that of samples drawn from the isotonic fit itself.

    Examples:
        >>> from evenhand.stats.histogram import score_histogram
        >>> s = np.linspace(0, 1, 2000)
        >>> cells = score_histogram(s, truth=(s > 0.3) & (s < 0.6), threshold=0.5)
        >>> monotonicity(cells).p < 0.01
        True
    """
    distance = np.abs(histogram.positions[group] - histogram.thresholds[group])
    counts = histogram.counts[group][distance <= half_width]
    positions = histogram.positions[group][distance <= half_width]
    n = counts.sum(axis=1)
    counts, positions, n = counts[n > 0], positions[n > 0], n[n > 0]
    if n.size < 2:
        empty = np.empty(0)
        return Monotonicity(
            scores=empty,
            n=empty,
            prevalence=empty,
            fitted=empty,
            drop=float("nan"),
            p=float("nan"),
            undefined="fewer than 2 distinct scores near the threshold",
        )
    share = (np.cumsum(n) - n / 2) / n.sum()
    _, bin_of = np.unique(np.minimum((share * bins).astype(int), bins - 1), return_inverse=True)
    size = np.bincount(bin_of, n).astype(float)
    yes = np.bincount(bin_of, counts[:, 1])
    rate = yes / size
    fitted = np.clip(isotonic_fit(rate, weights=size), 0.0, 1.0)
    seen = _largest_drop(yes[None], size)[0]
    drawn = np.random.default_rng(seed).binomial(
        np.round(size).astype(int), fitted, size=(draws, size.size)
    )
    p = (1 + np.count_nonzero(_largest_drop(drawn, np.round(size)) >= seen - 1e-12)) / (draws + 1)
    return Monotonicity(
        scores=np.bincount(bin_of, n * positions) / size,
        n=size,
        prevalence=rate,
        fitted=fitted,
        drop=float(seen),
        p=float(p),
    )


def _largest_drop(yes: ArrayLike, size: FloatArray) -> FloatArray:
    """Largest standardised fall between a bin and a later one, per row; 0 when none falls."""
    # Half a case on each side keeps empty and full bins from having no variance.
    rate = (np.asarray(yes, dtype=float) + 0.5) / (size + 1)
    variance = rate * (1 - rate) / (size + 1)
    if size.size < 2:
        return np.zeros(len(rate))
    earlier, later = _ordered_pairs(size.size)
    fall = (rate[:, earlier] - rate[:, later]) / np.sqrt(variance[:, earlier] + variance[:, later])
    return np.asarray(np.maximum(fall.max(axis=1), 0.0))


@lru_cache(maxsize=16)
def _ordered_pairs(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every pair of a bin and a later one; kept because every group is tested."""
    earlier, later = np.triu_indices(size, k=1)
    return earlier, later
