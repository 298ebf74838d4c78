"""Sizes of many gaps at once: root mean square, spread over groups, and the worst pair.

All three are biased upwards, since noise alone makes gaps; each comes with a corrected value or
the level that noise alone would reach, and with an interval that can touch 0.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import wilson


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


def rms(gaps: ArrayLike, variances: ArrayLike, *, z: ArrayLike) -> Size:
    """Root mean square of gaps over the last axis, plain and corrected for noise.

    Q = mean(gap² − v). The interval holds every θ² with |Q − θ²| ≤ z·sd(θ²), where
    sd² = Σ(4θ²v + 2v²) ÷ C² is taken at θ² itself, as Wilson's interval does: taken at Q it
    covers as little as 75 % with few classes. Members without gap or variance are skipped.

    Examples:
        >>> size = rms([-0.1, 0.1, 0.0, 0.2], [0.005, 0.0118, 0.0102, 0.0034], z=1.96)
        >>> print(f"{size.value:.4f} {size.corrected:.3f} [{size.low:.3f}, {size.high:.3f}]")
        0.1225 0.086 [0.000, 0.214]
    """
    gaps, variances = np.broadcast_arrays(
        np.asarray(gaps, np.float64), np.asarray(variances, np.float64)
    )
    used = np.isfinite(gaps) & np.isfinite(variances)
    members, v = used.sum(axis=-1), np.where(used, variances, 0.0)
    with np.errstate(all="ignore"):
        square = np.where(used, gaps, 0.0) ** 2
        plain, noise = square.sum(-1) / members, v.sum(-1) / members
        constant = 2 * (v**2).sum(-1) / members**2
        return _size(plain, noise, 4 * noise / members, constant, members, z=z)


def spread(rates: ArrayLike, variances: ArrayLike, *, z: ArrayLike) -> Size:
    """Spread of rates over the last axis: √mean((r − r̄)²), plain and corrected for noise.

    Q = mean((r − r̄)²) − (1 − 1/G)·mean v, with the moments of a centred quadratic form and the
    interval of `rms`. Two groups give half their gap; fewer than two give NaN.

    Examples:
        >>> size = spread([0.8, 0.9, 0.6], [0.002, 0.001, 0.003], z=1.96)
        >>> print(f"{size.value:.4f} {size.corrected:.4f} [{size.low:.3f}, {size.high:.3f}]")
        0.1247 0.1193 [0.077, 0.181]
    """
    rates, variances = np.broadcast_arrays(
        np.asarray(rates, np.float64), np.asarray(variances, np.float64)
    )
    used = np.isfinite(rates) & np.isfinite(variances)
    groups, v = used.sum(axis=-1), np.where(used, variances, 0.0)
    with np.errstate(all="ignore"):
        groups_or_nan = np.where(groups >= 2, groups, np.nan)
        mean = np.where(used, rates, 0.0).sum(-1) / groups_or_nan
        plain = np.where(used, (rates - mean[..., None]) ** 2, 0.0).sum(-1) / groups_or_nan
        total = v.sum(-1)
        trace = (v**2).sum(-1) * (1 - 2 / groups_or_nan) + (total / groups_or_nan) ** 2
        noise = (1 - 1 / groups_or_nan) * total / groups_or_nan
        slope = 4 * total / groups_or_nan**2
        return _size(plain, noise, slope, 2 * trace / groups_or_nan**2, groups, z=z)


def worst_pair(
    hits: ArrayLike, n: ArrayLike, *, z: float, draws: int = 1000, seed: int = 0
) -> WorstPair:
    """Largest gap between any two groups over the last axis, with what noise alone would give.

    Every pair gets Newcombe's interval with Tukey's critical value for all pairs (conservative
    for unequal groups: Hayter 1984). The true largest gap is then at least the largest lower
    limit and at most the largest upper one, whichever pair it belongs to. No draws, no null.

    Examples:
        >>> worst = worst_pair([80, 180, 30], [100, 200, 50], z=1.96)
        >>> print(f"{worst.value:.1f} [{worst.low:.3f}, {worst.high:.3f}] null {worst.null:.2f}")
        0.3 [0.143, 0.469] null 0.14
        >>> int(worst.highest), int(worst.lowest)
        (1, 2)
    """
    hits, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n, np.float64))
    used = (n > 0) & np.isfinite(hits)
    level = float(2 * ndtr(z) - 1)
    members = used.sum(axis=-1)
    k, m = np.where(used, hits, 0.0), np.where(used, n, 1.0)
    share = k / m
    top, bottom = np.where(used, share, -np.inf), np.where(used, share, np.inf)
    highest, lowest = top.argmax(axis=-1), bottom.argmin(axis=-1)
    pooled = (k.sum(axis=-1) / np.maximum((m * used).sum(axis=-1), 1.0))[..., None]
    sd = np.where(used, np.sqrt(pooled * (1 - pooled) / m), np.nan)
    null = np.full(members.shape, np.nan)
    if draws:
        flat = sd.reshape(-1, n.shape[-1])
        null = _null_range(flat, level=level, draws=draws, seed=seed).reshape(members.shape)
    # One critical value per number of groups that have cases.
    q = np.vectorize(lambda groups: tukey(level, groups=groups), otypes=[float])(
        np.maximum(members, 2)
    )
    low, high = _largest_gap(share, k, m, used, z=q[..., None])
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


def _null_range(sd: FloatArray, *, level: float, draws: int, seed: int) -> FloatArray:
    """The `level` quantile of max − min over groups of normal noise, per row of `sd`."""
    scale = sd.astype(np.float32)[:, :, None]
    normals = _group_noise(draws, sd.shape[1], seed)
    ranges = np.full((len(scale), draws), np.nan, dtype=np.float32)
    known = np.isfinite(sd)
    # One row at a time: its noise stays in the cache.
    for row in np.flatnonzero(known.sum(axis=1) > 1):
        if known[row].all():
            noise = normals * scale[row]
        else:
            noise = normals[known[row]] * scale[row, known[row]]
        np.subtract(noise.max(axis=0), noise.min(axis=0), out=ranges[row])
    return np.asarray(np.quantile(ranges, level, axis=1), np.float64)


@lru_cache(maxsize=4)
def _group_noise(draws: int, groups: int, seed: int) -> NDArray[np.float32]:
    """Standard normals (groups × draws), kept because all rates of an audit use the same ones."""
    drawn = np.random.default_rng(seed).standard_normal((draws, groups), dtype=np.float32)
    drawn = np.ascontiguousarray(drawn.T)
    drawn.flags.writeable = False
    return drawn


@lru_cache(maxsize=256)
def tukey(level: float, *, groups: int) -> float:
    """Critical value of |t| that holds for all pairs of independent groups at once.

    The `level` quantile of the range of that many standard normals, divided by √2.

    Examples:
        >>> round(tukey(0.95, groups=2), 3), round(tukey(0.95, groups=10), 3)
        (1.96, 3.164)
    """
    grid = np.linspace(-9.0, 9.0, 3001)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
    below = ndtr(grid)
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = groups * np.sum(density * (ndtr(grid + middle) - below) ** (groups - 1))
        low, high = (middle, high) if inside < level else (low, middle)
    return (low + high) / 2 / float(np.sqrt(2))


def _largest_gap(
    share: FloatArray, k: FloatArray, m: FloatArray, used: NDArray[np.bool_], *, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Largest lower and largest upper Newcombe limit over all ordered pairs of groups."""
    low, high = wilson(k, m, z=z)
    down, up = (share - low) ** 2, (high - share) ** 2
    gap = share[..., :, None] - share[..., None, :]
    pairs = used[..., :, None] & used[..., None, :]
    lowest = gap - np.sqrt(down[..., :, None] + up[..., None, :])
    highest = gap + np.sqrt(up[..., :, None] + down[..., None, :])
    pairs &= ~np.eye(share.shape[-1], dtype=bool)
    lowest, highest = np.where(pairs, lowest, 0.0), np.where(pairs, highest, 0.0)
    ends = (-2, -1)
    return np.maximum(lowest.max(axis=ends), 0.0), np.minimum(highest.max(axis=ends), 1.0)


def _size(
    plain: FloatArray,
    noise: FloatArray,
    slope: FloatArray,
    constant: FloatArray,
    members: NDArray[np.int64],
    *,
    z: ArrayLike,
) -> Size:
    """Limits on θ² from (Q − θ²)² = z²·(slope·θ² + constant), a quadratic in θ²."""
    z2 = np.asarray(z, np.float64) ** 2
    excess = plain - noise
    # Far below its mean Q would leave no θ² at all; the upper limit then stays where it is at
    # −1.5 standard deviations, rather than claim that there is no gap.
    floored = np.maximum(excess, -1.5 * np.sqrt(constant))
    low, high = (
        np.sqrt(np.maximum(q + z2 * slope / 2 + sign * _root(q, z2, slope, constant), 0.0))
        for q, sign in ((excess, -1.0), (floored, 1.0))
    )
    return Size(
        value=np.sqrt(plain),
        corrected=np.sqrt(np.maximum(excess, 0.0)),
        low=low,
        high=high,
        null=np.sqrt(noise),
        n_used=members,
    )


def _root(q: FloatArray, z2: FloatArray, slope: FloatArray, constant: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(z2 * slope * q + (z2 * slope) ** 2 / 4 + z2 * constant, 0.0))
