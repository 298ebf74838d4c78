"""Families of results: adjusted p-values and simultaneous critical values."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.special import ndtri

_RIDGE = 1e-8
_SLICE = 250
# Numbers that are worked on at a time.
_NEAR = 2**15
# Gaps whose joint law is drawn; of more, one weighs so little that Šidák's value is as good.
MOST_DRAWN = 100_000


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """P-values adjusted so that rejecting below q keeps the false discovery rate at q.

    NaN stay NaN and do not count as members.

    Examples:
        >>> benjamini_hochberg([0.01, 0.04, 0.03, float("nan")]).tolist()
        [0.03, 0.04, 0.04, nan]
    """
    return _step(p, lambda members: members / np.arange(1, members + 1), from_largest=True)


def max_t_quantile(draws: ArrayLike, *, level: float = 0.95) -> float:
    """Critical value that holds for all members at once: the `level` quantile of max|t|.

    `draws` is (draws × members) of standardised statistics. Members that are NaN or never move
    are left out; the result is never under z nor over Bonferroni's for the members used.

    Examples:
        >>> statistics = np.random.default_rng(0).standard_normal((4000, 10))
        >>> round(max_t_quantile(statistics, level=0.95), 1)
        2.8
    """
    statistics = np.asarray(draws)
    statistics = statistics.reshape(len(statistics), -1)
    z = critical(level)
    # A member that never moves has a range of 0; one with a NaN has a NaN range and fails too.
    used = np.ptp(statistics, axis=0) > 0
    members = int(used.sum())
    if members <= 1:
        return z
    largest = np.abs(statistics if used.all() else statistics[:, used]).max(axis=1)
    return float(np.clip(np.quantile(largest, level), z, bonferroni(level, members=members)))


def bonferroni(level: float, *, members: int) -> float:
    """Critical value of a family whose members share the error rate equally.

    Examples:
        >>> round(bonferroni(0.95, members=10), 3)
        2.807
    """
    return float(-ndtri((1 - level) / (2 * max(members, 1))))


def sidak(level: float, *, members: int) -> float:
    """Critical value of a family of normal estimates, whatever their dependence.

    Exact when they are independent and on the safe side otherwise (Šidák 1967).

    Examples:
        >>> round(sidak(0.95, members=10), 3)
        2.8
    """
    return float(ndtri(0.5 + level ** (1 / max(members, 1)) / 2))


def halved_level(level: float) -> float:
    """The level of one of two tiers that share the error of `level` equally.

    Examples:
        >>> halved_level(0.95)
        0.975
    """
    return 1 - (1 - level) / 2


def rate_covariance(
    counts: ArrayLike, *, numerators: ArrayLike, denominators: ArrayLike
) -> FloatArray:
    """Covariance of rates that are read off the same table of counts.

    `counts` is (groups × cells); `numerators` and `denominators` are (rates × cells) of 0 and 1,
    a rate being the counts under its numerator by those under its denominator. The result is
    (groups × rates × rates), the limit of what resampling the table gives; NaN where a rate has
    no cases.

    Examples:
        >>> rate_covariance([[30, 70]], numerators=[[1, 0]], denominators=[[1, 1]]).round(6)
        array([[[0.0021]]])
    """
    table = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    top, bottom = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    n = table @ bottom.T
    with np.errstate(all="ignore"):
        rate = (table @ top.T) / n
        # Influence of one more case in a cell on the rate; its count-weighted mean is 0.
        influence = (top - rate[..., None] * bottom) / n[..., None]
    return np.asarray((influence * table[:, None, :]) @ influence.transpose(0, 2, 1))


def correlation(covariance: ArrayLike) -> FloatArray:
    """Correlation matrices of covariance matrices (…, rates, rates); NaN without variance.

    Examples:
        >>> correlation([[4.0, -1.0], [-1.0, 1.0]]).tolist()
        [[1.0, -0.5], [-0.5, 1.0]]
    """
    matrices = np.asarray(covariance, dtype=np.float64)
    spread = np.sqrt(np.maximum(np.diagonal(matrices, axis1=-2, axis2=-1), 0.0))
    with np.errstate(all="ignore"):
        return np.asarray(matrices / (spread[..., :, None] * spread[..., None, :]))


def group_normals(
    correlations: ArrayLike, *, draws: int = 2000, seed: int = 0
) -> NDArray[np.float32]:
    """Normal draws (draws × groups × rates), correlated within a group, independent between.

    `correlations` is (groups × rates × rates). A rate whose row holds NaN gets an independent
    standard normal, for the caller to mask.

    Examples:
        >>> group_normals(np.eye(3)[None], draws=5).shape
        (5, 1, 3)
    """
    blocks = np.asarray(correlations, dtype=np.float64)
    groups, size, _ = blocks.shape
    # Slices so small that the linear algebra stays on one thread: waking threads for a product
    # of this size takes ten times as long as the product on a busy machine.
    normals = _standard_normals(groups, -(-draws // _SLICE), size, seed)
    factor = _factors(blocks)
    correlated = normals if factor is None else normals @ factor.transpose(0, 2, 1)[:, None]
    return correlated.reshape(groups, -1, size)[:, :draws].transpose(1, 0, 2)


def gap_quantile(
    correlations: ArrayLike,
    *,
    errors: ArrayLike,
    reference: int,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> float:
    """Critical value that holds for all gaps to one reference group at once.

    `correlations` as for `group_normals`, `errors` the standard errors (groups × rates): the
    `level` quantile of max|t| under their normal law, never under z nor over Bonferroni's. Gaps
    without an error, or with one of 0, are left out. Of more than 100,000 gaps Šidák's value.

    Examples:
        >>> independent = np.broadcast_to(np.eye(1), (3, 1, 1))
        >>> q = gap_quantile(independent, errors=[[1.0]] * 3, reference=0, draws=20_000)
        >>> round(q, 1)
        2.2
    """
    spread = np.asarray(errors, dtype=np.float64)
    groups, size = spread.shape
    z = critical(level)
    with np.errstate(all="ignore"):
        scale = 1 / np.hypot(spread, spread[reference])
    scale[reference] = np.nan
    used = np.isfinite(scale)
    members = int(used.sum())
    if members <= 1:
        return z
    if groups * size > MOST_DRAWN:
        return max(z, sidak(level, members=members))
    # A gap left out stays at 0, where it is never the largest.
    with np.errstate(all="ignore"):
        own = np.where(used, spread * scale, 0.0).astype(np.float32)[..., None]
        theirs = np.where(used, spread[reference] * scale, 0.0).astype(np.float32)[..., None]
    normals = _standing_normals(groups, -(-draws // _SLICE), size, seed)
    factor = _factors(correlations)
    base = normals[reference] if factor is None else factor[reference] @ normals[reference]
    largest = np.zeros((normals.shape[1], _SLICE), dtype=np.float32)
    # A few groups at a time: their draws stay in the cache from the product to the maximum.
    there = np.flatnonzero(used.any(axis=1))
    step = max(1, _NEAR // max(base.size, 1))
    for first in range(0, there.size, step):
        some = there[first : first + step]
        if factor is None:
            t = own[some, None] * normals[some]
        else:
            t = (own[some] * factor[some])[:, None] @ normals[some]
        t -= theirs[some, None] * base
        np.abs(t, out=t)
        np.maximum(largest, t.max(axis=(0, 2)), out=largest)
    quantile = np.quantile(largest.reshape(-1)[:draws], level)
    return float(np.clip(quantile, z, bonferroni(level, members=members)))


@lru_cache(maxsize=4)
def _standard_normals(groups: int, slices: int, size: int, seed: int) -> NDArray[np.float32]:
    """Independent draws, kept because every rate of an audit starts from the same ones."""
    shape = (groups, slices, _SLICE, size)
    drawn = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    drawn.flags.writeable = False
    return drawn


@lru_cache(maxsize=4)
def _standing_normals(groups: int, slices: int, size: int, seed: int) -> NDArray[np.float32]:
    """The same draws with rates before draws, so that a maximum over rates runs along memory."""
    drawn = np.ascontiguousarray(_standard_normals(groups, slices, size, seed).swapaxes(2, 3))
    drawn.flags.writeable = False
    return drawn


def _factors(correlations: ArrayLike) -> NDArray[np.float32] | None:
    """Triangular factors of correlation matrices; None where all rates are independent."""
    blocks = np.array(correlations, dtype=np.float64)
    size = blocks.shape[-1]
    missing = ~np.isfinite(np.diagonal(blocks, axis1=1, axis2=2))
    blocks[~np.isfinite(blocks)] = 0.0
    blocks[missing[:, :, None] | missing[:, None, :]] = 0.0
    index = np.arange(size)
    blocks[:, index, index] = 1.0
    if not (blocks - np.eye(size)).any():
        return None
    # Rates that sum to one make a block singular; the ridge changes no draw beyond 1e-4.
    return _factor((blocks + _RIDGE * np.eye(size)) / (1 + _RIDGE)).astype(np.float32)


def _step(p: ArrayLike, factors: Callable[[int], FloatArray], *, from_largest: bool) -> FloatArray:
    values = np.asarray(p, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    known = ~np.isnan(values)
    members = values[known]
    if members.size == 0:
        return adjusted
    order = np.argsort(members, kind="stable")
    scaled = members[order] * factors(members.size)
    if from_largest:
        scaled = np.minimum.accumulate(scaled[::-1])[::-1]
    else:
        scaled = np.maximum.accumulate(scaled)
    result = np.empty_like(scaled)
    result[order] = np.minimum(scaled, 1.0)
    adjusted[known] = result
    return adjusted


def _factor(blocks: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.cholesky(blocks))
    except np.linalg.LinAlgError:
        # Not quite positive definite: the nearest that is, by dropping negative directions.
        values, vectors = np.linalg.eigh(blocks)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def count_bootstrap(counts: ArrayLike, *, draws: int = 2000, seed: int = 0) -> NDArray[np.int64]:
    """Resampled tables of counts (draws × the table's shape), each with the table's total.

    Drawing rows with replacement and counting them again has exactly this multinomial law, so
    the cost depends on the number of cells and never on the number of rows.

    Examples:
        >>> count_bootstrap([[30, 10], [0, 60]], draws=3).sum(axis=(1, 2)).tolist()
        [100, 100, 100]
    """
    table = np.asarray(counts, dtype=np.float64)
    total = round(float(table.sum())) if table.size and np.isfinite(table).all() else -1
    if total < 0 or (table < 0).any():
        raise DataError(
            "counts hold a negative or missing number. A table of counts needs numbers from 0 up."
        )
    if total == 0:
        return np.zeros((draws, *table.shape), dtype=np.int64)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(total, table.ravel() / table.sum(), size=draws)
    return np.asarray(drawn.reshape(draws, *table.shape), dtype=np.int64)
