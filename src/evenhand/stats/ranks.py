"""Rank correlation from moments of ranks, with its interval, p-value and smallest visible size.

Everything takes arrays and broadcasts: one call serves every class, group and norm. What a cell
cannot support is NaN, never 0.
"""

from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr, stdtrit

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray, critical

# Sums of ranks carry rounding of this relative size; a variance below it is a constant column.
# The smallest variance of ranks that are not all tied is 1/n of the sum of squares.
CONSTANT = 1e-13
# 8! = 40,320 arrangements; beyond that, draws are cheaper than counting them all.
EXACT_UP_TO = 8
CELLS_AT_ONCE = 4_000_000


def average_ranks(values: ArrayLike) -> FloatArray:
    """Ranks from 1 along the last axis, ties sharing their average rank.

    Examples:
        >>> average_ranks([0.9, 0.8, 0.8, 0.3])
        array([4. , 2.5, 2.5, 1. ])
    """
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    order = np.argsort(array, axis=-1)
    ordered = np.take_along_axis(array, order, axis=-1)
    place = np.broadcast_to(np.arange(1.0, array.shape[-1] + 1), array.shape)
    starts = np.ones(array.shape, dtype=bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ends = np.ones(array.shape, dtype=bool)
    ends[..., :-1] = starts[..., 1:]
    first = np.maximum.accumulate(np.where(starts, place, 0.0), axis=-1)
    last = np.flip(
        np.minimum.accumulate(np.flip(np.where(ends, place, np.inf), axis=-1), axis=-1), axis=-1
    )
    ranks = np.empty(array.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=-1)
    return ranks


def spearman_from_moments(
    n: ArrayLike, *, x: ArrayLike, y: ArrayLike, xx: ArrayLike, yy: ArrayLike, xy: ArrayLike
) -> FloatArray:
    """Spearman correlation from sums of average ranks, their squares and products; broadcasts.

    NaN with fewer than three rows and where either column is constant.

    Examples:
        >>> float(spearman_from_moments(4, x=10, y=10, xx=30, yy=30, xy=29).round(3))
        0.8
    """
    count = np.asarray(n, dtype=np.float64)
    sx, sy, sxx, syy, sxy = (np.asarray(a, dtype=np.float64) for a in (x, y, xx, yy, xy))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread_x = sxx - sx * sx / count
        spread_y = syy - sy * sy / count
        defined = (count >= 3) & (spread_x > CONSTANT * sxx) & (spread_y > CONSTANT * syy)
        r = (sxy - sx * sy / count) / np.sqrt(spread_x * spread_y)
        return np.asarray(np.where(defined, np.clip(r, -1.0, 1.0), np.nan), dtype=np.float64)


def spearman(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Spearman correlation along the last axis, ties by average ranks; NaN where undefined.

    Examples:
        >>> float(spearman([1, 2, 3, 4], [1, 3, 2, 4]).round(3))
        0.8
        >>> float(spearman([1, 2, 3], [5, 5, 5]))
        nan
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    missing = np.isnan(first).any(axis=-1) | np.isnan(second).any(axis=-1)
    a, b = average_ranks(first), average_ranks(second)
    r = spearman_from_moments(
        a.shape[-1],
        x=a.sum(-1),
        y=b.sum(-1),
        xx=(a * a).sum(-1),
        yy=(b * b).sum(-1),
        xy=(a * b).sum(-1),
    )
    return np.asarray(np.where(missing, np.nan, r), dtype=np.float64)


def bonett_wright(r: ArrayLike, n: ArrayLike, *, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Limits of a Spearman correlation at ±z standard errors (Bonett & Wright 2000); broadcasts.

    NaN with fewer than four rows. At r = ±1 the formula would give a point; there the inner limit
    is taken from half a step below, the step to one exchanged pair of ranks being 12/(n³ - n).

    Examples:
        >>> low, high = bonett_wright(0.46, 28, z=1.959964)
        >>> print(f"{low:.3f} {high:.3f}")
        0.085 0.721
    """
    r, count = np.asarray(r, dtype=np.float64), np.asarray(n, dtype=np.float64)
    rows = np.where(count > 3, count, np.nan)
    half_step = np.maximum(6.0 / (rows**3 - rows), 1e-15)
    centre = np.arctanh(np.clip(r, half_step - 1.0, 1.0 - half_step))
    half = np.asarray(z, dtype=np.float64) * np.sqrt((1.0 + r * r / 2.0) / (rows - 3.0))
    low, high = np.tanh(centre - half), np.tanh(centre + half)
    low, high = np.minimum(low, r), np.maximum(high, r)
    return np.asarray(np.where(r == -1.0, -1.0 + 0 * half, low)), np.asarray(
        np.where(r == 1.0, 1.0 + 0 * half, high)
    )


def standard_error(r: ArrayLike, n: ArrayLike) -> FloatArray:
    """Standard error of a Spearman correlation on its own scale; NaN with fewer than four rows.

    Examples:
        >>> float(standard_error(0.0, 103).round(3))
        0.1
    """
    r, count = np.asarray(r, dtype=np.float64), np.asarray(n, dtype=np.float64)
    rows = np.where(count > 3, count, np.nan)
    return np.asarray((1.0 - r * r) * np.sqrt((1.0 + r * r / 2.0) / (rows - 3.0)))


def correlation_p(r: ArrayLike, n: ArrayLike) -> FloatArray:
    """Two-sided p-value of a correlation, t with n - 2 degrees of freedom; broadcasts.

    Examples:
        >>> float(correlation_p(0.9, 5).round(4))
        0.0374
    """
    r, count = np.asarray(r, dtype=np.float64), np.asarray(n, dtype=np.float64)
    freedom = np.where(count > 2, count - 2.0, np.nan)
    with np.errstate(divide="ignore"):
        t = np.abs(r) * np.sqrt(freedom / ((1.0 - r) * (1.0 + r)))
    return np.asarray(2.0 * stdtr(freedom, -t), dtype=np.float64)


def permutation_p(x: ArrayLike, y: ArrayLike, *, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided permutation p-value of Spearman's correlation between two short columns.

    Exact over all arrangements up to eight pairs; otherwise (1 + hits)/(1 + draws), which is never
    0 and holds its level at any number of draws.

    Examples:
        >>> shares, correlations = [0.1, 0.25, 0.45, 0.7, 0.9], [-0.3, -0.05, -0.1, 0.05, 0.2]
        >>> round(permutation_p(shares, correlations), 4)
        0.0833
    """
    if draws < 1:
        raise UsageError(f"draws={draws} is not a number of permutations. Give 10000 or more.")
    a, b = average_ranks(x), average_ranks(y)
    observed = abs(float(spearman(x, y)))
    if not np.isfinite(observed):
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    # Arrangements that tie with the observed one must count, whatever their rounding.
    bar = observed * float(np.sqrt((a @ a) * (b @ b))) - 1e-9 * float(a @ a)
    n = a.size
    if n <= EXACT_UP_TO:
        every = np.array(list(permutations(range(n))), dtype=np.intp)
        return float((np.abs(b[every] @ a) >= bar).sum() / factorial(n))
    generator = np.random.default_rng(seed)
    hits, left = 0, draws
    while left:
        batch = min(left, max(1, CELLS_AT_ONCE // n))
        shuffled = generator.permuted(np.broadcast_to(b, (batch, n)), axis=1)
        hits += int((np.abs(shuffled @ a) >= bar).sum())
        left -= batch
    return (1 + hits) / (1 + draws)


def smallest_significant(n: ArrayLike, *, level: float = 0.95) -> FloatArray:
    """Smallest |r| whose t-based p-value falls below 1 - level with n rows; broadcasts.

    Examples:
        >>> float(smallest_significant(21).round(3))
        0.433
    """
    count = np.asarray(n, dtype=np.float64)
    freedom = np.where(count > 2, count - 2.0, np.nan)
    t = stdtrit(freedom, 0.5 + level / 2)
    return np.asarray(t / np.sqrt(freedom + t * t), dtype=np.float64)


def smallest_detectable(n: ArrayLike, *, level: float = 0.95, power: float = 0.8) -> FloatArray:
    """Smallest population |r| that n rows would show as different from 0 with this power.

    Examples:
        >>> float(smallest_detectable(21).round(2))
        0.59
    """
    count = np.asarray(n, dtype=np.float64)
    rows = np.where(count > 3, count - 3.0, np.nan)
    needed, beyond = critical(level), float(ndtri(power))
    r = np.zeros(count.shape)
    # The standard error depends weakly on r itself: a few rounds settle it.
    for _ in range(20):
        r = np.tanh((needed + beyond * np.sqrt(1.0 + r * r / 2.0)) / np.sqrt(rows))
    return np.asarray(r, dtype=np.float64)
