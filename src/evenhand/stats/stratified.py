"""Gaps within strata summed up: Mantel–Haenszel with a score interval, and homogeneity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, ndtr

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import miettinen_nurminen_variance
from evenhand.stats.score_roots import bisect


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedGap:
    """A summary gap over strata, with the test of whether the strata agree on it.

    `homogeneity` is a chi-square statistic on `degrees` degrees of freedom; small
    `homogeneity_p` says that the gap differs between strata, so that one number hides something.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    variance: FloatArray
    homogeneity: FloatArray
    degrees: NDArray[np.int64]
    homogeneity_p: FloatArray
    n_used: NDArray[np.int64]


def mantel_haenszel_gap(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    z: ArrayLike,
) -> StratifiedGap:
    """Mantel–Haenszel gap, group − reference, over strata in the last axis.

    The weight of a stratum is n·n′ ÷ (n + n′). The interval inverts the score test with these
    weights, so that one stratum gives Miettinen–Nurminen's and zero cells need no patch; at gap
    0 the test is Cochran–Mantel–Haenszel's. `variance` is Sato's. Strata where either side is
    empty say nothing of the gap and are not used.

    Examples:
        >>> gap = mantel_haenszel_gap([8, 30], [10, 60], [12, 10], [20, 40], z=1.96)
        >>> print(f"{gap.value:.3f} [{gap.low:.3f}, {gap.high:.3f}] p={gap.p:.3f}")
        0.239 [0.068, 0.390] p=0.007
    """
    k1, n1, k2, n2 = np.broadcast_arrays(
        *(np.asarray(part, np.float64) for part in (hits, n, hits_reference, n_reference))
    )
    used = (n1 > 0) & (n2 > 0) & np.isfinite(k1) & np.isfinite(k2)
    # An unused stratum becomes a harmless one of weight 0.
    k1, k2 = np.where(used, k1, 1.0), np.where(used, k2, 1.0)
    n1, n2 = np.where(used, n1, 2.0), np.where(used, n2, 2.0)
    weight = np.where(used, n1 * n2 / (n1 + n2), 0.0)
    with np.errstate(all="ignore"):
        total = weight.sum(-1)
        gaps = k1 / n1 - k2 / n2
        value = (weight * gaps).sum(-1) / total
        low, high = _score_interval(k1, n1, k2, n2, weight=weight, value=value, z=z)
        at_zero = _variance(k1, n1, k2, n2, weight=weight, gap=np.zeros_like(value))
        score = np.where(value == 0, 0.0, value / np.sqrt(at_zero))
        chi, degrees = _homogeneity(k1, n1, k2, n2, used=used, value=value)
        known = used.any(-1)
        return StratifiedGap(
            value=np.where(known, value, np.nan),
            low=np.where(known, low, np.nan),
            high=np.where(known, high, np.nan),
            p=np.where(known, 2 * ndtr(-np.abs(score)), np.nan),
            variance=np.where(known, _sato(k1, n1, k2, n2, used=used, value=value), np.nan),
            homogeneity=np.where(degrees > 0, chi, np.nan),
            degrees=degrees,
            homogeneity_p=np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), chi), np.nan),
            n_used=used.sum(-1),
        )


def _variance(
    k1: FloatArray,
    n1: FloatArray,
    k2: FloatArray,
    n2: FloatArray,
    *,
    weight: FloatArray,
    gap: FloatArray,
) -> FloatArray:
    """Variance of the summary gap if every stratum had this one."""
    within = miettinen_nurminen_variance(k1, n1, k2, n2, gap=gap[..., None])
    return np.asarray((weight**2 * within).sum(-1) / weight.sum(-1) ** 2)


def _score_interval(
    k1: FloatArray,
    n1: FloatArray,
    k2: FloatArray,
    n2: FloatArray,
    *,
    weight: FloatArray,
    value: FloatArray,
    z: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    critical = np.asarray(z, np.float64)

    def rejected(candidate: FloatArray) -> FloatArray:
        variance = _variance(k1, n1, k2, n2, weight=weight, gap=candidate)
        return np.asarray((value - candidate) ** 2 - critical**2 * variance)

    ends = np.stack([-np.ones_like(value), np.ones_like(value)])
    low, high = bisect(rejected, np.stack([value, value]), ends)
    return low, high


def _homogeneity(
    k1: FloatArray,
    n1: FloatArray,
    k2: FloatArray,
    n2: FloatArray,
    *,
    used: NDArray[np.bool_],
    value: FloatArray,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Weighted least squares chi-square, with the variances that the common gap implies.

    Observed variances would be 0, and their weights infinite, in strata without hits or misses.
    """
    variance = miettinen_nurminen_variance(k1, n1, k2, n2, gap=value[..., None])
    informative = used & (variance > 0)
    precision = np.where(informative, 1 / np.where(informative, variance, 1.0), 0.0)
    gaps = k1 / n1 - k2 / n2
    common = (precision * gaps).sum(-1) / precision.sum(-1)
    chi = (precision * (gaps - common[..., None]) ** 2).sum(-1)
    return np.asarray(chi), np.maximum(informative.sum(-1) - 1, 0)


def _sato(
    k1: FloatArray,
    n1: FloatArray,
    k2: FloatArray,
    n2: FloatArray,
    *,
    used: NDArray[np.bool_],
    value: FloatArray,
) -> FloatArray:
    """Sato's variance, valid for a few large strata and for many small ones alike (1989)."""
    size = n1 + n2
    slope = (n1**2 * k2 - n2**2 * k1 + n1 * n2 * (n2 - n1) / 2) / size**2
    constant = (k1 * (n2 - k2) + k2 * (n1 - k1)) / (2 * size)
    weight = np.where(used, n1 * n2 / size, 0.0).sum(-1)
    parts = np.where(used, value[..., None] * slope + constant, 0.0).sum(-1)
    return np.asarray(parts / weight**2)
