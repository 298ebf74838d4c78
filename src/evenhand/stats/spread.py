"""Sizes of many gaps at once: root mean square, spread over groups, and the worst pair.

All three are biased upwards, since noise alone makes gaps; each comes with a corrected value or
the level that noise alone would reach, and with an interval that can touch 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.noise_range import null_range, tukey
from evenhand.stats.rates import bisect, wilson
from evenhand.stats.special import chndtr, gammainc, ndtr, ndtri

# Beyond this noncentrality a gamma law with the same two moments is as close, and stays stable.
_MOST_NONCENTRAL = 400.0
_FAR = 60.0
# From this many groups on, not every pair of them is looked at.
MOST_PAIRED_GROUPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A root mean square, plain and corrected for noise, with one interval for both.

    `null` is the level that noise alone reaches; `n_used` counts the members that entered.
    """

    value: FloatArray
    corrected: FloatArray
    low: FloatArray
    high: FloatArray
    null: FloatArray
    n_used: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstPair:
    """Largest rate minus smallest, with the pair it lies between.

    `highest` and `lowest` index the groups (−1 without two groups); `null` is the `level`
    quantile of the same difference if all groups shared one rate.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    null: FloatArray
    highest: NDArray[np.int64]
    lowest: NDArray[np.int64]
    n_used: NDArray[np.int64]

    def mirrored(self) -> "WorstPair":
        """The worst pair of the complementary rates, 1 − rate: the same, the other way round."""
        return replace(self, highest=self.lowest, lowest=self.highest)


def rate_variance(hits: ArrayLike, n: ArrayLike) -> FloatArray:
    """Unbiased variance of a rate, p·(1 − p) ÷ (n − 1); NaN with fewer than two cases.

    Examples:
        >>> rate_variance([8, 1], [10, 1]).round(4).tolist()
        [0.0178, nan]
    """
    hits, n = np.asarray(hits, np.float64), np.asarray(n, np.float64)
    with np.errstate(all="ignore"):
        share = hits / n
        return np.where(n > 1, share * (1 - share) / (n - 1), np.nan)


def gap_variance(
    hits: ArrayLike, n: ArrayLike, hits_reference: ArrayLike, n_reference: ArrayLike
) -> FloatArray:
    """Unbiased variance of a gap between two independent rates; NaN where either has n < 2.

    Examples:
        >>> round(float(gap_variance(32, 40, 90, 100)), 6)
        0.005012
    """
    return rate_variance(hits, n) + rate_variance(hits_reference, n_reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadraticMoments:
    """What the law of a sum of squares T = Σg² depends on, beside the true sum x = Kθ².

    `trace` and `trace_squared` are tr S and tr S² of the gaps' covariance S, `along` is
    gᵀSg ÷ T, never under trace_squared ÷ trace: T has mean trace + x and variance
    2·trace_squared + 4·along·x.
    """

    total: FloatArray
    trace: FloatArray
    trace_squared: FloatArray
    along: FloatArray
    members: NDArray[np.int64]


def quadratic_moments(
    gaps: ArrayLike, *, covariance: ArrayLike | None = None, variances: ArrayLike | None = None
) -> QuadraticMoments:
    """Moments of a sum of squared gaps over the last axis, members without variance left out.

    `covariance` is (…, K, K); `variances`, (…, K), where the gaps are independent.

    Examples:
        >>> found = quadratic_moments([0.3, -0.1], variances=[0.01, 0.02])
        >>> round(float(found.total), 3), round(float(found.trace), 3), int(found.members)
        (0.1, 0.03, 2)
    """
    observed = np.asarray(gaps, np.float64)
    if (covariance is None) == (variances is None):
        raise UsageError("Give the gaps' covariance or their variances, one of the two.")
    if variances is not None:
        observed, v = np.broadcast_arrays(observed, np.asarray(variances, np.float64))
        used = np.isfinite(observed) & np.isfinite(v)
        g, v = np.where(used, observed, 0.0), np.where(used, v, 0.0)
        trace, squared, form = v.sum(-1), (v**2).sum(-1), (g**2 * v).sum(-1)
    else:
        s = np.asarray(covariance, np.float64)
        v = np.diagonal(s, axis1=-2, axis2=-1)
        observed, v = np.broadcast_arrays(observed, v)
        used = np.isfinite(observed) & np.isfinite(v)
        both = used[..., :, None] & used[..., None, :] & np.isfinite(s)
        g, s = np.where(used, observed, 0.0), np.where(both, s, 0.0)
        trace = np.trace(s, axis1=-2, axis2=-1)
        squared = (s**2).sum((-2, -1))
        form = np.einsum("...i,...ij,...j->...", g, s, g)
    total = (g**2).sum(-1)
    with np.errstate(all="ignore"):
        along = np.fmax(form / total, squared / trace)
    members = used.sum(-1)
    gone = members == 0
    return QuadraticMoments(
        total=np.where(gone, np.nan, total),
        trace=np.where(gone, np.nan, trace),
        trace_squared=np.where(gone, np.nan, squared),
        along=np.where(gone, np.nan, along),
        members=members,
    )


def joined_moments(parts: Sequence[QuadraticMoments]) -> QuadraticMoments:
    """Moments of several parts as one, along the last axis."""
    names = QuadraticMoments.__dataclass_fields__
    return QuadraticMoments(
        **{k: np.concatenate([getattr(part, k) for part in parts], axis=-1) for k in names}
    )


def root_mean_square(
    gaps: ArrayLike,
    *,
    covariance: ArrayLike | None = None,
    variances: ArrayLike | None = None,
    z: ArrayLike,
) -> Size:
    """Root mean square of gaps over the last axis, interval with the covariance between them.

    The sum of squares follows a scaled noncentral χ² with its own two moments; the limits are
    the sizes at which it would be as large, or as small, as seen. Classes share their cases, so
    that leaving the covariance out covers .77 to .87, however many cases there are.

    Examples:
        >>> s = multinomial_covariance([40, 60, 50]) + multinomial_covariance([90, 60, 50])
        >>> gaps = np.array([40, 60, 50]) / 150 - np.array([90, 60, 50]) / 200
        >>> size = root_mean_square(gaps, covariance=s, z=1.959964)
        >>> print(f"{size.value:.3f} {size.corrected:.3f} [{size.low:.3f}, {size.high:.3f}]")
        0.130 0.120 [0.052, 0.196]
    """
    return size_of(quadratic_moments(gaps, covariance=covariance, variances=variances), z=z)


def rate_spread(
    hits: ArrayLike, n: ArrayLike, *, z: ArrayLike, covariance: ArrayLike | None = None
) -> Size:
    """Spread of rates over groups in the last axis, √mean((r − r̄)²), with its interval.

    The interval is that of `root_mean_square`. Variances are p̃(1 − p̃) ÷ (n − 1) with
    p̃ = (k + 1) ÷ (n + 2), so that rates of 0 and 1 are not taken for certain. `covariance`
    (…, G, G) adds what groups share through clusters; its diagonal is not read. Groups with
    fewer than two cases are left out; fewer than two groups give NaN.

    Examples:
        >>> size = rate_spread([84, 50, 24], [100, 80, 60], z=2.631038)
        >>> print(f"{size.value:.3f} {size.corrected:.3f} [{size.low:.3f}, {size.high:.3f}]")
        0.180 0.174 [0.093, 0.261]
    """
    return size_of(spread_moments(hits, n, covariance=covariance), z=z)


def spread_moments(
    hits: ArrayLike, n: ArrayLike, *, covariance: ArrayLike | None = None
) -> QuadraticMoments:
    """Moments of the sum of squared distances of rates from their mean over groups."""
    k, m = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n, np.float64))
    used = (m > 1) & np.isfinite(k)
    k, m = np.where(used, k, 1.0), np.where(used, m, 2.0)
    groups = used.sum(-1)
    few = groups < 2
    count = np.maximum(groups, 1)[..., None]
    smoothed = (k + 1) / (m + 2)
    v = np.where(used, smoothed * (1 - smoothed) / (m - 1), 0.0)
    share = np.where(used, k / m, 0.0)
    away = np.where(used, share - share.sum(-1, keepdims=True) / count, 0.0)
    if covariance is None:
        found = _centred_moments(away, v, count[..., 0])
    else:
        eye = np.eye(k.shape[-1])
        shared = np.nan_to_num(np.asarray(covariance, np.float64))
        s = v[..., None] * eye
        s = s + shared * (1 - eye) * (used[..., :, None] & used[..., None, :])
        # Distances from the mean: the covariance seen through I − 1/G.
        centring = (eye - 1 / count[..., None]) * used[..., :, None]
        centring = centring * used[..., None, :]
        found = quadratic_moments(away, covariance=centring @ s @ centring)
    gone = {
        name: np.where(few, np.nan, getattr(found, name))
        for name in ("total", "trace", "trace_squared", "along")
    }
    return QuadraticMoments(**gone, members=groups)


def _centred_moments(away: FloatArray, v: FloatArray, groups: FloatArray) -> QuadraticMoments:
    """Moments of squared distances from the mean of independent rates with variances v.

    Those of the covariance C = (I − 1/G)·diag(v)·(I − 1/G), written out: G² numbers are not needed.
    """
    total, mass, squares = (away**2).sum(-1), v.sum(-1), (v**2).sum(-1)
    trace = mass * (1 - 1 / groups)
    squared = squares * (1 - 2 / groups) + mass**2 / groups**2
    with np.errstate(all="ignore"):
        along = np.fmax((v * away**2).sum(-1) / total, squared / trace)
    return QuadraticMoments(
        total=total, trace=trace, trace_squared=squared, along=along, members=np.asarray(groups)
    )


def size_of(moments: QuadraticMoments, *, z: ArrayLike) -> Size:
    """Root mean square, plain and corrected, with limits at critical value z.

    Low is where a sum as large as T has tail Φ(−z), high where one as small has it; for high, T
    counts as at least its mean without any gap, or else luck would make the limit collapse to 0.
    No interval where the variance is 0: rounding, not certainty.
    """
    q, total, trace, squared, along = np.broadcast_arrays(
        np.asarray(z, np.float64),
        *(moments.total, moments.trace, moments.trace_squared, moments.along),
    )
    known = np.isfinite(total) & (trace > 0)
    t, v = np.where(known, total, 1.0), np.where(known, trace, 1.0)
    w, a = np.where(known, squared, 1.0), np.where(known, along, 1.0)
    parts = (np.stack([each] * 2) for each in (v, w, a))
    low, high = _size_limit(np.stack([t, np.maximum(t, v)]), *parts, score=np.stack([q, -q]))
    with np.errstate(all="ignore"):
        members = moments.members
        return Size(
            value=np.sqrt(moments.total / members),
            corrected=np.sqrt(np.maximum(moments.total - moments.trace, 0.0) / members),
            low=np.where(known, low / np.sqrt(members), np.nan),
            high=np.where(known, high / np.sqrt(members), np.nan),
            null=np.sqrt(moments.trace / members),
            n_used=members,
        )


def _size_limit(
    total: FloatArray,
    trace: FloatArray,
    squared: FloatArray,
    along: FloatArray,
    *,
    score: FloatArray,
) -> FloatArray:
    """√x at which the normal score of P(T′ ≤ T) falls to `score`; 0 where it is under it at 0."""

    def fallen(root: FloatArray) -> FloatArray:
        x = root**2
        scale = (squared + 2 * along * x) / (trace + 2 * x)
        with np.errstate(all="ignore"):
            far = x / scale > _MOST_NONCENTRAL
            near = chndtr(total / scale, trace / scale, np.where(far, 1.0, x / scale))
            mean, variance = trace + x, 2 * squared + 4 * along * x
            gamma = gammainc(mean**2 / variance, total * mean / variance)
            return np.asarray(score - np.clip(ndtri(np.where(far, gamma, near)), -_FAR, _FAR))

    nothing = np.zeros_like(total)
    at_zero = fallen(nothing) >= 0
    beyond = np.where(at_zero, 0.0, np.sqrt(total) + (np.abs(score) + 1) * np.sqrt(along))
    for _ in range(60):
        short = fallen(beyond) <= 0
        if not (short & ~at_zero).any():
            break
        beyond = np.where(short, 2 * beyond, beyond)
    return bisect(fallen, nothing, beyond)


def implied_moments(
    value: float, *, null: float, members: int, high: float, family_high: float, z: float
) -> tuple[QuadraticMoments, float]:
    """Moments of a size that is only known by its numbers, and its family's critical value.

    The value and the null level give the sum and the trace. How much the gaps move together is
    read off the upper limit at z, taking the sum's spread along the gaps for its mean one.

    Examples:
        >>> known = quadratic_moments([0.1, -0.1, 0.08], variances=[0.002] * 3)
        >>> size, wide = size_of(known, z=1.96), size_of(known, z=2.4)
        >>> found, q = implied_moments(float(size.value), null=float(size.null), members=3,
        ...                            high=float(size.high), family_high=float(wide.high), z=1.96)
        >>> print(f"{float(found.along):.4f} {q:.2f}")
        0.0020 2.40
    """
    total, trace = members * value**2, members * null**2
    along = trace * np.geomspace(0.5 / members, 4.0, 200)

    def upper(spread: FloatArray, score: FloatArray | float) -> FloatArray:
        return size_of(moments(spread), z=score).high

    def moments(spread: FloatArray) -> QuadraticMoments:
        alike = np.ones_like(spread)
        return QuadraticMoments(
            total=total * alike,
            trace=trace * alike,
            trace_squared=trace * spread,
            along=spread,
            members=np.full(spread.shape, members),
        )

    nearest = np.asarray(np.interp(high, upper(along, z), along))
    scores = np.linspace(z, 6.0, 200)
    q = float(np.interp(family_high, upper(np.full(200, nearest), scores), scores))
    return moments(nearest), q


def multinomial_covariance(counts: ArrayLike) -> FloatArray:
    """Unbiased covariance of the shares of counts over the last axis, (…, K, K).

    NaN with fewer than two cases. The gaps of two groups have the sum of both groups'.

    Examples:
        >>> multinomial_covariance([30, 70]).round(5).tolist()
        [[0.00212, -0.00212], [-0.00212, 0.00212]]
    """
    table = np.asarray(counts, np.float64)
    n = table.sum(-1)
    with np.errstate(all="ignore"):
        share = table / n[..., None]
        own = share[..., None] * np.eye(table.shape[-1])
        spare = np.where(n > 1, n - 1, np.nan)[..., None, None]
        return np.asarray((own - share[..., :, None] * share[..., None, :]) / spare)


def paired_covariance(decided: ArrayLike) -> FloatArray:
    """Covariance of paired gaps over classes from how often pairs were decided (first, second).

    `decided` is (…, K, K) counts: the first decision by row, the second by column. 1 ÷ (n + 2)²
    is added to the diagonal: a class without a changed pair is not known to a point.

    Examples:
        >>> paired_covariance([[40, 6], [2, 52]]).round(6).tolist()
        [[0.000888, -0.000792], [-0.000792, 0.000888]]
    """
    table = np.asarray(decided, np.float64)
    n = table.sum((-2, -1))[..., None]
    first, second = table.sum(-1), table.sum(-2)
    size = np.eye(table.shape[-1])
    with np.errstate(all="ignore"):
        gap = (first - second) / n
        # A pair decided i then j moves class i up and class j down, together.
        both = (first + second)[..., None] * size - table - np.swapaxes(table, -1, -2)
        spare = np.where(n > 1, n - 1, np.nan)[..., None]
        around = both / n[..., None] - gap[..., :, None] * gap[..., None, :]
        return np.asarray(around / spare + size / (n[..., None] + 2) ** 2)


def influence_covariance(influence: ArrayLike, *, clusters: ArrayLike | None = None) -> FloatArray:
    """Covariance (…, K, K) of estimates from how far each cluster moves them.

    `influence` is (clusters, …, K) with sum 0 over clusters; J ÷ (J − 1) · Σ u uᵀ. `clusters`
    counts those that occur, where rows of zeros stand for clusters that do not. Read the interval
    with `student_critical(z, freedom=J − 1)`.

    Examples:
        >>> influence_covariance([[0.1], [-0.05], [-0.05]]).round(4).tolist()
        [[0.0225]]
    """
    moved = np.asarray(influence, np.float64)
    count = np.asarray(len(moved) if clusters is None else clusters, np.float64)
    with np.errstate(all="ignore"):
        factor = np.where(count > 1, count / (count - 1), np.nan)[..., None, None]
        return np.asarray(np.einsum("j...a,j...b->...ab", moved, moved) * factor)


def worst_pair(
    hits: ArrayLike,
    n: ArrayLike,
    *,
    z: ArrayLike,
    certainty: ArrayLike | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> WorstPair:
    """Largest gap between any two groups over the last axis, with what noise alone would give.

    Every pair gets Newcombe's interval with Tukey's critical value for all pairs (conservative
    for unequal groups: Hayter 1984). The true largest gap is then at least the largest lower
    limit and at most the largest upper one, whichever pair it belongs to. `z` is one critical
    value or one for each set of groups; several, or no draws, give no null. `certainty`
    (…, G, G) is how much surer gaps are than their rates (`pair_certainty`).

    Examples:
        >>> worst = worst_pair([80, 180, 30], [100, 200, 50], z=1.96)
        >>> print(f"{worst.value:.1f} [{worst.low:.3f}, {worst.high:.3f}] null {worst.null:.2f}")
        0.3 [0.143, 0.469] null 0.14
        >>> int(worst.highest), int(worst.lowest)
        (1, 2)
    """
    hits, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n, np.float64))
    used = (n > 0) & np.isfinite(hits)
    members = used.sum(axis=-1)
    levels = np.asarray(2 * ndtr(np.asarray(z, np.float64)) - 1)
    k, m = np.where(used, hits, 0.0), np.where(used, n, 1.0)
    share = k / m
    top, bottom = np.where(used, share, -np.inf), np.where(used, share, np.inf)
    highest, lowest = top.argmax(axis=-1), bottom.argmin(axis=-1)
    pooled = (k.sum(axis=-1) / np.maximum((m * used).sum(axis=-1), 1.0))[..., None]
    sd = np.where(used, np.sqrt(pooled * (1 - pooled) / m), np.nan)
    null = np.full(members.shape, np.nan)
    if draws and levels.ndim == 0:
        level = float(levels)
        flat = sd.reshape(-1, n.shape[-1])
        null = null_range(flat, level=level, draws=draws, seed=seed).reshape(members.shape)
    # One critical value per number of groups that have cases.
    q = np.vectorize(lambda level, groups: tukey(level, groups=groups), otypes=[float])(
        np.broadcast_to(levels, members.shape), np.maximum(members, 2)
    )
    low, high = _largest_gap(share, k, m, used, z=q[..., None], certainty=certainty)
    enough = members >= 2
    return WorstPair(
        value=np.where(
            enough, np.where(enough, top.max(-1), 0) - np.where(enough, bottom.min(-1), 0), np.nan
        ),
        low=np.where(enough, low, np.nan),
        high=np.where(enough, high, np.nan),
        null=np.where(enough, null, np.nan),
        highest=np.where(enough, highest, -1),
        lowest=np.where(enough, lowest, -1),
        n_used=members,
    )


def _largest_gap(
    share: FloatArray,
    k: FloatArray,
    m: FloatArray,
    used: NDArray[np.bool_],
    *,
    z: FloatArray,
    certainty: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Largest lower and largest upper Newcombe limit over all ordered pairs of groups."""
    if certainty is None and share.shape[-1] > MOST_PAIRED_GROUPS:
        return _largest_gap_of_many(share, k, m, used, z=z)
    gap = share[..., :, None] - share[..., None, :]
    pairs = used[..., :, None] & used[..., None, :]
    if certainty is None:
        low, high = wilson(k, m, z=z)
        low, high = low[..., :, None], high[..., :, None]
    else:
        # Each pair has its own effective cases.
        sure = np.asarray(certainty, np.float64)
        low, high = wilson(k[..., :, None] * sure, m[..., :, None] * sure, z=z[..., None])
    down, up = (share[..., :, None] - low) ** 2, (high - share[..., :, None]) ** 2
    lowest = gap - np.sqrt(down + np.swapaxes(up, -1, -2))
    highest = gap + np.sqrt(up + np.swapaxes(down, -1, -2))
    pairs &= ~np.eye(share.shape[-1], dtype=bool)
    lowest, highest = np.where(pairs, lowest, 0.0), np.where(pairs, highest, 0.0)
    ends = (-2, -1)
    return np.maximum(lowest.max(axis=ends), 0.0), np.minimum(highest.max(axis=ends), 1.0)


def _largest_gap_of_many(
    share: FloatArray, k: FloatArray, m: FloatArray, used: NDArray[np.bool_], *, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same without looking at every pair: only groups that no other beats can be in the worst.

    A limit rises with the higher group's rate, falls with the lower group's, and depends on one
    arm of each interval. Of the groups that are beaten in both by one other, none is needed; two
    layers of unbeaten groups, since the one that beats may be the other half of the pair.
    """
    low, high = wilson(k, m, z=z)
    down, up = (share - low) ** 2, (high - share) ** 2
    shape = share.shape[:-1]
    lowest, highest = np.zeros(shape), np.zeros(shape)
    for place in np.ndindex(*shape):
        there = np.flatnonzero(used[place])
        if there.size < 2:
            continue
        s, a, b = share[place][there], down[place][there], up[place][there]
        for ends, arms, sign in ((lowest, (-a, -b), -1.0), (highest, (b, a), 1.0)):
            upper, lower = unbeaten(s, arms[0]), unbeaten(-s, arms[1])
            arm = np.abs(arms[0][upper])[:, None] + np.abs(arms[1][lower])[None, :]
            limit = s[upper][:, None] - s[lower][None, :] + sign * np.sqrt(arm)
            limit[upper[:, None] == lower[None, :]] = -np.inf
            ends[place] = limit.max(initial=0.0)
    return np.maximum(lowest, 0.0), np.minimum(highest, 1.0)


def unbeaten(first: FloatArray, second: FloatArray, *, layers: int = 2) -> NDArray[np.intp]:
    """Places that no other beats in both numbers, and those that only such places beat.

    Examples:
        >>> unbeaten(np.array([3.0, 1, 2, 0]), np.array([1.0, 3, 0, 0])).tolist()
        [0, 1, 2]
        >>> unbeaten(np.array([3.0, 1, 2, 0]), np.array([1.0, 3, 0, 0]), layers=1).tolist()
        [0, 1]
    """
    order = np.lexsort((-second, -first))
    found = []
    for _ in range(layers):
        best = np.maximum.accumulate(second[order])
        lead = np.append(True, second[order][1:] > best[:-1])
        found.append(order[lead])
        order = order[~lead]
        if not order.size:
            break
    return np.sort(np.concatenate(found))
