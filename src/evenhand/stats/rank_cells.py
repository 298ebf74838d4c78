"""Moments of average ranks within cells, for columns that lie in memory.

Ranking takes most of the time of a rank correlation. Here each cell is sorted once per column by
counting: values are laid on a grid of 2³² steps, whose halves sort in two passes, three times as
fast as comparing values. What a step cannot tell apart is put right, so the order is exact.
"""

import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray

THREADS = 2
STEPS = 2.0**32 - 1
# Fewer values are sorted faster by comparing them.
FEW = 2_000


def order_of(values: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Places of the values in rising order, and the values in that order.

    Examples:
        >>> places, risen = order_of(np.array([0.5, -1.0, 0.25]))
        >>> places.tolist(), risen.tolist()
        ([1, 2, 0], [-1.0, 0.25, 0.5])
    """
    low, high = values.min(), values.max()
    with np.errstate(over="ignore"):
        width = high - low
    if values.size < FEW or not 0 < width < np.inf or not np.isfinite(STEPS / width):
        places = np.argsort(values, kind="stable")
        return places, values[places]
    # Subtracting, scaling and truncating never turn an order round; they can only merge values.
    steps = ((values - low) * (STEPS / width)).astype(np.uint64).astype(np.uint32)
    halves = steps.view(np.uint16).reshape(-1, 2)
    first, last = (0, 1) if sys.byteorder == "little" else (1, 0)
    places = np.argsort(halves[:, first], kind="stable")
    places = places[np.argsort(halves[places, last], kind="stable")]
    risen = values[places]
    if (risen[1:] < risen[:-1]).any():
        places = within_steps(places, steps[places], values)
        risen = values[places]
    return places, risen


def within_steps(
    places: NDArray[np.intp], steps: NDArray[np.uint32], values: FloatArray
) -> NDArray[np.intp]:
    """Places in the order of their steps, put in the order of their values within each step."""
    same = steps[1:] == steps[:-1]
    shared = np.zeros(places.size, dtype=bool)
    shared[1:] = same
    shared[:-1] |= same
    crowd = np.flatnonzero(shared)
    members = places[crowd]
    # A stable sort by value, then by step, moves members about within their own step alone.
    order = np.argsort(values[members], kind="stable")
    order = order[np.argsort(steps[crowd][order], kind="stable")]
    fixed = places.copy()
    fixed[crowd] = members[order]
    return fixed


def product(a: FloatArray, b: FloatArray) -> float:
    """Sum of products outside BLAS, whose threads would fight with ours."""
    return float(np.einsum("i,i->", a, b))


class Ranked:
    """Average ranks of one column of one cell, and how many rows share their value."""

    __slots__ = ("places", "ranks", "tied")

    def __init__(self, values: FloatArray, places: NDArray[np.intp] | None = None) -> None:
        if places is None:
            self.places, risen = order_of(values)
        else:
            self.places, risen = places, values[places]
        falls = risen.size > 1 and risen[0] > risen[-1]
        changes = np.flatnonzero(risen[1:] != risen[:-1]) + 1
        ranks = np.arange(1.0, risen.size + 1)
        self.tied = 0
        if changes.size < risen.size - 1:
            ends = np.concatenate([[0], changes, [risen.size]])
            lengths = np.diff(ends)
            ranks = np.repeat(ends[:-1] + (lengths + 1) / 2, lengths)
            self.tied = int(lengths[lengths > 1].sum())
        if falls:
            ranks = risen.size + 1 - ranks
        self.ranks: FloatArray = ranks

    def spread(self) -> FloatArray:
        """The ranks by row."""
        by_row = np.empty(self.ranks.size)
        by_row[self.places] = self.ranks
        return by_row

    def sorts(self, values: FloatArray) -> bool:
        """Whether another column rises or falls in this column's order: the norms of two groups."""
        moved = values[self.places]
        steps = np.diff(moved[:: max(1, moved.size // 64)])
        if (steps < 0).any() and (steps > 0).any():
            return False
        steps = np.diff(moved)
        return bool((steps >= 0).all() or (steps <= 0).all())


def cell_moments(
    codes: NDArray[Any],
    score: FloatArray,
    norms: Mapping[str, FloatArray],
    *,
    cells: int,
    threads: int = THREADS,
) -> dict[str, FloatArray]:
    """By cell: n, tied, Σx, Σx², and for each norm Σy, Σy², Σxy of average ranks x and y.

    Examples:
        >>> scores, norm = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
        >>> found = cell_moments(np.zeros(4, int), scores, {"f": norm}, cells=1)
        >>> [(name, float(found[name][0])) for name in ("n", "xx", "xy:f")]
        [('n', 4.0), ('xx', 30.0), ('xy:f', 29.0)]
    """
    small = codes.astype(np.uint8 if cells <= 256 else np.uint16, copy=False)
    order = np.argsort(small, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(small, minlength=cells))])
    names = ["n", "tied", "x", "xx", *(f"{m}:{k}" for k in norms for m in ("y", "yy", "xy"))]
    sums = {name: np.zeros(cells) for name in names}

    def work(cell: int) -> None:
        rows = order[ends[cell] : ends[cell + 1]]
        sums["n"][cell] = rows.size
        if not rows.size:
            return
        x = Ranked(score[rows])
        by_row = x.spread()
        sums["tied"][cell] = x.tied
        sums["x"][cell], sums["xx"][cell] = x.ranks.sum(), product(x.ranks, x.ranks)
        last: Ranked | None = None
        for name, column in norms.items():
            values = column[rows]
            reuse = last is not None and last.sorts(values)
            y = Ranked(values, last.places if reuse and last is not None else None)
            sums[f"y:{name}"][cell], sums[f"yy:{name}"][cell] = (
                y.ranks.sum(),
                product(y.ranks, y.ranks),
            )
            sums[f"xy:{name}"][cell] = product(by_row[y.places], y.ranks)
            last = y

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(cells)))
    return sums
