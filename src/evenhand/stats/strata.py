"""Gaps within strata summed up: Mantel–Haenszel, homogeneity, and clusters that span strata."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray, student_critical
from evenhand.stats.rates import bisect, miettinen_nurminen_variance
from evenhand.stats.special import chdtrc, ndtr


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JackknifeSummary:
    """A summary whose error comes from leaving each cluster or labeler out in turn.

    `freedom` is that of t; `effective` how many clusters of one size would tell as much. The
    limits are NaN where a cluster cannot be left out, since nothing would remain.
    """

    value: FloatArray
    standard_error: FloatArray
    freedom: FloatArray
    effective: FloatArray
    low: FloatArray
    high: FloatArray


def jackknife_summary(
    value: ArrayLike, left_out: ArrayLike, *, sizes: ArrayLike, z: ArrayLike
) -> JackknifeSummary:
    """Limits of a whole summary from its values without each cluster (first axis).

    V = (J − 1) ÷ J · Σ(θ₋ⱼ − θ)², t with (Σn)² ÷ Σn² − 1 degrees of freedom, one at least.
    Clusters that span strata correlate them, and only leaving a cluster out everywhere at once
    sees that. `sizes` are (J,) or of the shape of `left_out`; a size of 0 is no cluster.

    Examples:
        >>> found = jackknife_summary(2.0, [1.9, 2.0, 2.2, 1.9], sizes=[5, 5, 5, 5], z=1.96)
        >>> print(f"{found.standard_error:.3f} [{found.low:.2f}, {found.high:.2f}]")
        0.212 [1.32, 2.68]
    """
    theta, without = np.asarray(value, np.float64), np.asarray(left_out, np.float64)
    n = np.asarray(sizes, np.float64)
    n = np.broadcast_to(n.reshape(n.shape + (1,) * (without.ndim - n.ndim)), without.shape)
    present = n > 0
    clusters = present.sum(axis=0)
    with np.errstate(all="ignore"):
        moved = np.where(present, without - theta, 0.0)
        error = np.sqrt((clusters - 1) / clusters * (moved**2).sum(axis=0))
        effective = n.sum(axis=0) ** 2 / (n**2).sum(axis=0)
        freedom = np.maximum(effective - 1, 1.0)
    enough = clusters > 1
    error, freedom = np.where(enough, error, np.nan), np.where(enough, freedom, np.nan)
    half = student_critical(z, freedom=np.where(enough, freedom, 1.0)) * error
    return JackknifeSummary(
        value=theta,
        standard_error=error,
        freedom=freedom,
        effective=np.where(clusters > 0, effective, np.nan),
        low=theta - half,
        high=theta + half,
    )


def mantel_haenszel_jackknife(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    stratum: ArrayLike,
    cluster: ArrayLike,
    z: ArrayLike,
) -> JackknifeSummary:
    """Mantel–Haenszel gap with limits that know of clusters, nested in strata or across them.

    One row for each (cluster, stratum) that occurs, several are added up: the hits and cases of
    the group and of the reference in it, counts or weights, with any further axes (classes,
    groups). A cluster changes only the strata it touches, so that rows, not clusters × strata,
    are what it costs.

    Examples:
        >>> found = mantel_haenszel_jackknife(
        ...     [3, 2, 4, 1], [6, 5, 6, 4], [1, 1, 2, 1], [5, 6, 5, 5],
        ...     stratum=[0, 0, 1, 1], cluster=[0, 1, 2, 3], z=1.96)
        >>> print(f"{found.value:.3f} [{found.low:.2f}, {found.high:.2f}]")
        0.238 [0.10, 0.38]
    """
    parts = [np.asarray(part, np.float64) for part in (hits, n, hits_reference, n_reference)]
    table = np.stack(np.broadcast_arrays(*parts))
    place = np.asarray(stratum, np.intp)
    whole = _add_rows(table, place, int(place.max(initial=-1)) + 1)
    value, left, sizes = left_out_summaries(table, whole, stratum=place, cluster=cluster)
    found = jackknife_summary(value, left, sizes=sizes, z=z)
    return replace(found, low=np.maximum(found.low, -1.0), high=np.minimum(found.high, 1.0))


def left_out_summaries(
    table: FloatArray, whole: FloatArray, *, stratum: ArrayLike, cluster: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The Mantel–Haenszel gap of whole strata; without each cluster, and what each weighs there.

    `table` has the rows (hits, n, hits′, n′) × (cluster, stratum), of all clusters or of some,
    and `whole` the same sums by stratum over all of them.
    """
    strata = whole.shape[1]
    place, who = np.asarray(stratum, np.intp), np.unique(cluster, return_inverse=True)[1]
    clusters = int(who.max(initial=-1)) + 1
    pair, inverse = np.unique(who * max(strata, 1) + place, return_inverse=True)
    own = _add_rows(table, inverse, len(pair))
    place, who = pair % max(strata, 1), pair // max(strata, 1)
    gap, weight = _weighed_gap(whole, whole)
    gap_left, weight_left = _weighed_gap(whole[:, place] - own, whole[:, place])
    moved = np.stack([gap_left - gap[place], weight_left - weight[place]])
    top, bottom = _add_rows(moved, who, clusters) + np.stack([gap.sum(0), weight.sum(0)])[:, None]
    with np.errstate(all="ignore"):
        total = weight.sum(axis=0)
        value = np.where(total > 0, gap.sum(axis=0) / total, np.nan)
        # Weights are sums of ratios: what is left of a stratum nobody else is in is rounding.
        left = np.where(bottom > 1e-9 * total, top / bottom, np.nan)
    # Strata with one side only say nothing of the gap, and nor does a cluster's size there.
    useful = (own[1] + own[3]) * (weight[place] > 0)
    return value, left, _add_rows(useful[None], who, clusters)[0]


def _add_rows(table: FloatArray, index: NDArray[np.intp], size: int) -> FloatArray:
    """Sums (sums, size, …) of the rows (sums, rows, …) by index."""
    added = np.zeros((len(table), size, *table.shape[2:]))
    for kind, total in zip(table, added):
        np.add.at(total, index, kind)
    return added


def _weighed_gap(table: FloatArray, whole: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight × gap and weight n·n′ ÷ (n + n′) of strata, from (hits, n, hits′, n′)."""
    k1, n1, k2, n2 = table
    # A side whose rows were all taken away may keep a rest of rounding where rows are weighted.
    some = (n1 > 1e-9 * whole[1]) & (n2 > 1e-9 * whole[3])
    safe1, safe2 = np.where(some, n1, 1.0), np.where(some, n2, 1.0)
    weight = np.where(some, safe1 * safe2 / (safe1 + safe2), 0.0)
    return np.asarray(weight * (k1 / safe1 - k2 / safe2)), weight


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
        excess = np.abs(value - candidate)
        # How many errors it lies beyond z: near linear, so that secants find the limit at once.
        with np.errstate(all="ignore"):
            score = np.minimum(excess / np.sqrt(variance), 1e9)
        return np.asarray(np.where(excess == 0, 0.0, score) - critical)

    ends = np.stack([-np.ones_like(value), np.ones_like(value)])
    # The limits if the variance were everywhere what it is at the gap itself: a start close by.
    error = np.sqrt(_variance(k1, n1, k2, n2, weight=weight, gap=value))
    guess = np.clip(value + ends * critical * error, -1.0, 1.0)
    low, high = bisect(rejected, np.stack([value, value]), ends, guess=guess)
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
