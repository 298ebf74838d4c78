"""Weighted quantiles of many sets of draws at once, without sorting all of them."""

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray

_BINS = 128


def weighted_quantiles(
    draws: FloatArray, shares: FloatArray, tails: FloatArray
) -> list[FloatArray]:
    """Of each set along the last axis, the draw at which its shares add up to each tail.

    Draws are counted into bins first; only those in the bin that holds a quantile are sorted.

    Examples:
        >>> draws, shares = np.array([[3.0, 1.0, 2.0]]), np.array([[0.2, 0.5, 0.3]])
        >>> [found.tolist() for found in weighted_quantiles(draws, shares, np.array([0.5, 0.7]))]
        [[1.0], [2.0]]
    """
    shape, many = draws.shape[:-1], draws.shape[-1]
    values = draws.reshape(-1, many)
    parts = np.broadcast_to(shares, draws.shape).reshape(-1, many)
    low = values.min(axis=1, keepdims=True)
    width = values.max(axis=1, keepdims=True) - low
    if not np.isfinite(width).all():
        # What is not finite has no bin; NaN is then the largest, as in any sorting.
        bins = np.zeros(values.shape, dtype=np.int32)
    else:
        scale = np.where(width > 0, _BINS / np.where(width > 0, width, 1.0), 0.0)
        bins = np.minimum((values - low) * scale, _BINS - 1).astype(np.int32)
    start = np.arange(len(values), dtype=np.int32)[:, None] * _BINS
    mass = np.bincount((bins + start).ravel(), parts.ravel(), minlength=len(values) * _BINS)
    reached = mass.reshape(-1, _BINS).cumsum(axis=1)
    return [_at(values, parts, bins, reached, float(tail)).reshape(shape) for tail in tails]


def _at(
    values: FloatArray,
    parts: FloatArray,
    bins: NDArray[np.int32],
    reached: FloatArray,
    tail: float,
) -> FloatArray:
    """The quantile of each row, among the draws of the bin that it falls into."""
    place = np.minimum((reached < tail).sum(axis=1), _last(reached))
    rows = np.arange(len(values))
    before = np.where(place > 0, reached[rows, place - 1], 0.0)
    there = np.flatnonzero(bins == place[:, None])
    row, own = there // values.shape[1], values.ravel()[there]
    order = np.lexsort((own, row))
    row, own = row[order], own[order]
    first = np.searchsorted(row, rows)
    sums = np.cumsum(parts.ravel()[there[order]])
    offset = before - np.where(first > 0, sums[first - 1], 0.0)
    short = sums + offset[row] < tail
    count = np.bincount(row[short], minlength=len(values))
    ends = np.append(first[1:], len(row)) - 1
    return np.asarray(own[np.minimum(first + count, ends)])


def _last(reached: FloatArray) -> NDArray[np.intp]:
    """The last bin of each row that holds anything: shares may add up to a hair less than 1."""
    return np.asarray(np.argmax(reached >= reached[:, -1:], axis=1))
