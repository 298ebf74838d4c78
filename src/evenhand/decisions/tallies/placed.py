"""Placements of scores on the grid: how much of the other truth lies below each.

Rows of one cell count as ties; how they really lie moves an area by at most half the share of pairs
that meet in a cell.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.tally import Codes
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSide:
    """The entries of one truth, line by line in the order of cells.

    `rows` are their places among all entries, `weight` is theirs; `placement` is how much of the
    other truth lies below each in its line, ties as half, and `level` how much lies in its cell.
    """

    rows: Codes
    weight: FloatArray
    placement: FloatArray
    level: FloatArray


def placed_below(
    line: Codes, cell: Codes, truth: Codes, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The placement of each entry's rows, and by entry the pairs that meet in its cell.

    Examples:
        >>> zeros = np.zeros(3, dtype=np.int64)
        >>> d, meet = placed_below(zeros, np.array([3, 3, 5]), np.array([0, 1, 1]),
        ...                        np.array([4.0, 2, 2]))
        >>> d.tolist(), meet.tolist()
        ([1.0, 2.0, 4.0], [0.0, 8.0, 0.0])
    """
    place, meet = np.zeros(truth.size), np.zeros(truth.size)
    negatives, positives = placed_sides(line, cell, truth, weight)
    for side in (negatives, positives):
        place[side.rows] = side.placement
    meet[positives.rows] = positives.weight * positives.level
    return place, meet


def placed_sides(
    line: Codes, cell: Codes, truth: Codes, weight: FloatArray
) -> tuple[PlacedSide, PlacedSide]:
    """The entries of either truth with their placements, negatives first.

    Only the side with fewer entries is looked up among the other: where its entries fall says what
    lies below the other's too.

    Examples:
        >>> sides = placed_sides(np.array([0, 0, 1]), np.array([3, 3, 3]), np.array([1, 0, 0]),
        ...                      np.array([1.0, 2, 2]))
        >>> [(side.rows.tolist(), side.placement.tolist()) for side in sides]
        [([1, 2], [0.5, 0.0]), ([0], [1.0])]
    """
    lowest = int(cell.min(initial=0))
    span = int(cell.max(initial=0)) - lowest + 1
    key = line.astype(np.int64)
    key -= key.min(initial=0)
    starts = np.arange(int(key.max(initial=-1)) + 2) * span
    key *= span
    key += cell
    key -= lowest
    sides = [_Side.of(key, weight, np.flatnonzero(truth == y), starts) for y in (0, 1)]
    fewer = int(sides[1].keys.size < sides[0].keys.size)
    few, many = sides[fewer], sides[1 - fewer]
    left = np.searchsorted(many.keys, few.keys, side="left")
    if bool(np.all(many.keys[1:] > many.keys[:-1])):
        right = left + (np.append(many.keys, -1)[left] == few.keys)
    else:
        right = np.searchsorted(many.keys, few.keys, side="right")
    # What falls right of an entry's equals lies below the next, and what falls left of it up to it.
    size = many.keys.size + 1
    below, upto = (np.cumsum(np.bincount(at, minlength=size))[:-1] for at in (right, left))
    one, other = few.placed(left, right, many), many.placed(below, upto, few)
    return (other, one) if fewer else (one, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Entries of one truth in the order of their keys.

    `total` is what the entries before each weigh, `edges` say where lines begin and end.
    """

    rows: Codes
    keys: Codes
    weight: FloatArray
    total: FloatArray
    edges: NDArray[np.intp]

    @classmethod
    def of(cls, key: Codes, weight: FloatArray, rows: Codes, starts: Codes) -> "_Side":
        """The entries at these rows; lines begin at these keys."""
        keys = key[rows]
        if np.any(keys[1:] < keys[:-1]):
            order = np.argsort(keys, kind="stable")
            rows, keys = rows[order], keys[order]
        own = weight[rows]
        total = np.zeros(own.size + 1)
        np.cumsum(own, out=total[1:])
        edges = np.searchsorted(keys, starts)
        return cls(rows=rows, keys=keys, weight=own, total=total, edges=edges)

    def placed(self, left: Codes, right: Codes, others: "_Side") -> PlacedSide:
        """The entries, with so many of the others below each and up to it, over all lines."""
        below, upto = others.total[left], others.total[right]
        placement = below + upto
        placement /= 2
        # A line starts from nothing: what the lines before it hold is taken off.
        placement -= np.repeat(others.total[others.edges[:-1]], np.diff(self.edges))
        return PlacedSide(
            rows=self.rows, weight=self.weight, placement=placement, level=upto - below
        )
