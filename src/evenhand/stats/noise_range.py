"""How far apart the highest and lowest of several groups lie by noise alone."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.rates import bisect
from evenhand.stats.special import ndtr

# Noise is drawn for so many groups at once.
MOST_HELD_GROUPS = 5_000


def null_range(sd: FloatArray, *, level: float, draws: int, seed: int) -> FloatArray:
    """The `level` quantile of max − min over groups of normal noise, per row of `sd`."""
    if sd.shape[1] > MOST_HELD_GROUPS:
        return _of_many(sd, level=level, draws=draws, seed=seed)
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
    return _row_quantiles(ranges, level)


def _row_quantiles(rows: NDArray[np.float32], level: float) -> FloatArray:
    """A quantile of every row, as NumPy's to the last digit, without what it imports for it."""
    place = level * (rows.shape[1] - 1)
    under = int(place)
    above = min(under + 1, rows.shape[1] - 1)
    ordered = np.partition(rows, (under, above), axis=1)
    low, high, part = ordered[:, under], ordered[:, above], place - under
    near = low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
    return np.asarray(near, np.float64)


def _of_many(sd: FloatArray, *, level: float, draws: int, seed: int) -> FloatArray:
    """The same of so many groups that their noise is drawn a part at a time."""
    scale = np.nan_to_num(sd).astype(np.float32)
    top = np.zeros((len(sd), draws), dtype=np.float32)
    bottom = np.zeros_like(top)
    for start in range(0, sd.shape[1], MOST_HELD_GROUPS):
        part = slice(start, start + MOST_HELD_GROUPS)
        generator = np.random.default_rng([seed, start])
        size = (scale[:, part].shape[1], draws)
        normals = generator.standard_normal(size, dtype=np.float32)
        for row in range(len(sd)):
            noise = normals * scale[row, part, None]
            np.maximum(top[row], noise.max(axis=0), out=top[row])
            np.minimum(bottom[row], noise.min(axis=0), out=bottom[row])
    found = _row_quantiles(top - bottom, level)
    return np.where(np.isfinite(sd).sum(axis=1) > 1, found, np.nan)


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
    if groups == 2:
        return critical(level)
    # Sums at even steps of so smooth a function are exact: a tenth of this step changes nothing.
    step = 0.03
    grid = step * np.arange(-300, 301)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * step
    below = ndtr(grid)

    def inside(width: FloatArray) -> FloatArray:
        reach = (ndtr(grid + width[:, None]) - below) ** (groups - 1)
        # Counted in tails, or else a level close to 1 would seem reached before it is.
        return np.asarray((groups * (density * reach).sum(-1) - level) / (1 - level))

    found = bisect(inside, np.zeros(1), np.full(1, 20.0), guess=np.full(1, 4.0))
    return float(found[0]) / float(np.sqrt(2))
