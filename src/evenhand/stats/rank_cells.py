"""Moments of average ranks within cells, for columns that lie in memory.

The ranks of a column take most of the time of a rank correlation. Here each cell is sorted once per
column, by a key that holds the leading bits of the value and the row's place in one integer: twice
as fast as sorting places by value, and exact, because what the key cannot tell apart is put right.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray

THREADS = 2
SIGN = np.uint64(1 << 63)


def order_of(values: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Places of the values in rising order, and the values in that order.

    Examples:
        >>> places, risen = order_of(np.array([0.5, -1.0, 0.25]))
        >>> places.tolist(), risen.tolist()
        ([1, 2, 0], [-1.0, 0.25, 0.5])
    """
    bits = (values + 0.0).view(np.uint64)  # adding 0 makes -0.0 and 0.0 the same bits
    # Flipped so that integers rise as the numbers do, negative ones included.
    keys = np.where(bits & SIGN, ~bits, bits | SIGN)
    low = np.uint64((1 << max(1, int(values.size - 1).bit_length())) - 1)
    keys &= ~low
    keys |= np.arange(values.size, dtype=np.uint64)
    keys.sort()
    places = (keys & low).astype(np.int64)
    risen = values[places]
    if (risen[1:] < risen[:-1]).any():
        again = np.argsort(risen, kind="stable")
        places, risen = places[again], risen[again]
    return places, risen


class Ranked:
    """Average ranks of one column of one cell, and how many rows share their value."""

    __slots__ = ("places", "ranks", "tied")

    def __init__(self, values: FloatArray, places: NDArray[np.int64] | None = None) -> None:
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
    codes: NDArray[np.integer],
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
    small: NDArray[np.integer] = codes.astype(np.uint8 if cells <= 256 else np.uint16)
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
        sums["x"][cell], sums["xx"][cell] = x.ranks.sum(), x.ranks @ x.ranks
        last: Ranked | None = None
        for name, column in norms.items():
            values = column[rows]
            reuse = last is not None and last.sorts(values)
            y = Ranked(values, last.places if reuse and last is not None else None)
            sums[f"y:{name}"][cell], sums[f"yy:{name}"][cell] = y.ranks.sum(), y.ranks @ y.ranks
            sums[f"xy:{name}"][cell] = by_row[y.places] @ y.ranks
            last = y

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(cells)))
    return sums
