"""Rows counted by sorting: each is one number that holds its line, its place and its score.

Where lines have more cells together than there are rows, an array of all cells is mostly empty, and
reaching into it at random takes longer than bringing the rows into order. From the highest bits on,
a number has the line of its row, its place among the places of a line, and how far into the cell
there its score lies, in 2⁻³⁴ of the cell's width.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.tallies.grid import BAND
from evenhand.decisions.tally import Codes
from evenhand.stats.estimate import FloatArray

PLACE_BITS, REST_BITS = 17, 34
MOST_LINES = 2 ** (63 - PLACE_BITS - REST_BITS)
# Rows that are looked at together, so few that they stay in the processor's cache.
BLOCK = 2**17
_MOST_REST = 2**REST_BITS - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedEntries:
    """Rows added up by line and place: entries by line, and of each entry place, rows and score."""

    sizes: Codes
    place: NDArray[np.int32]
    n: FloatArray
    s: FloatArray


class PackedRows:
    """Rows that are held as one number each; `low` and `width` are of the cells behind places.

    Examples:
        >>> held = PackedRows(rows=3, low=np.array([0.0, 0.5]), width=np.array([0.5, 0.5]))
        >>> line, place = np.array([[1, 0, 1], [1, 0, 1]], dtype=np.int32)
        >>> held.add(line, place, np.array([0.5, 0.25, 0.75]), outer=np.arange(3))
        >>> found = held.added_up(np.array([1, 0]))
        >>> found.sizes.tolist(), found.place.tolist(), found.n.tolist(), found.s.tolist()
        ([1, 1], [1, 0], [2.0, 1.0], [1.25, 0.25])
    """

    def __init__(self, *, rows: int, low: FloatArray, width: FloatArray) -> None:
        # Memory that nothing was written to is not taken yet.
        self._numbers = np.empty(rows, dtype=np.int64)
        self._rows = 0
        self._low, self._width = low, width

    def add(
        self, line: NDArray[np.int32], place: NDArray[np.int32], score: FloatArray, *, outer: Codes
    ) -> None:
        """Hold rows, whose lines are numbered from 0 to below `MOST_LINES`.

        All but the `outer` ones have places in the middle band of [0, 1].
        """
        end = self._rows + score.size
        if end > self._numbers.size:
            more = np.empty(max(end, 2 * self._numbers.size), dtype=np.int64)
            more[: self._rows] = self._numbers[: self._rows]
            self._numbers = more
        here = self._numbers[self._rows : end]
        # As a whole number of this size a score has its cell before how far it lies beyond.
        rest = (score * float(BAND * 2**REST_BITS)).astype(np.int64)
        rest &= _MOST_REST
        cells = place[outer]
        beyond = (score[outer] - self._low[cells]) / self._width[cells] * 2.0**REST_BITS
        # Rounded up, what lies above a threshold in its own cell stays above it.
        rest[outer] = np.clip(np.ceil(beyond), 0.0, float(_MOST_REST))
        key = line << PLACE_BITS
        key |= place
        here[:] = key
        here <<= REST_BITS
        here |= rest
        self._rows = end

    def added_up(self, order: Codes) -> PackedEntries:
        """The entries of lines in this order. Nothing is held afterwards."""
        numbers = self._numbers[: self._rows]
        self._number_lines(numbers, order)
        numbers.sort()
        place = np.empty(numbers.size, dtype=np.int32)
        # What is counted takes the place of what has been looked at: fresh memory costs more.
        n, s = numbers.view(np.float64), np.empty(numbers.size)
        sizes = np.zeros(len(order), dtype=np.int64)
        unit = self._width * 2.0**-REST_BITS
        start = used = 0
        while start < numbers.size:
            stop = min(start + BLOCK, numbers.size)
            # No block ends in the midst of an entry.
            stop += int(np.searchsorted(numbers[stop:], numbers[stop - 1] | _MOST_REST, "right"))
            mine = numbers[start:stop]
            key = (mine >> REST_BITS).astype(np.int32)
            first = np.append(0, np.flatnonzero(key[1:] != key[:-1]) + 1)
            rest = np.add.reduceat(mine & _MOST_REST, first)
            here, key = slice(used, used + first.size), key[first]
            line, places = key >> PLACE_BITS, key & (2**PLACE_BITS - 1)
            lines = np.arange(line[0], line[-1] + 2)
            sizes[lines[:-1]] += np.diff(np.searchsorted(line, lines))
            place[here] = places
            n[here] = np.diff(first, append=mine.size)
            # What scores have beyond their cells adds up as whole numbers: in any order the same.
            s[here] = self._low[places] * n[here] + unit[places] * rest
            start, used = stop, here.stop
        self._numbers, self._rows = np.empty(0, dtype=np.int64), 0
        return PackedEntries(sizes=sizes, place=place[:used], n=n[:used], s=s[:used])

    def _number_lines(self, numbers: NDArray[np.int64], order: Codes) -> None:
        """Give every line the number it has in an order."""
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        moved = (rank - np.arange(len(order))) << (PLACE_BITS + REST_BITS)
        if not moved.any():
            return
        for start in range(0, numbers.size, BLOCK):
            some = numbers[start : start + BLOCK]
            some += moved[some >> (PLACE_BITS + REST_BITS)]
