"""Symmetric 2×2 matrices of many cells at once, criterion by separation, entry by entry.

Products of millions of tiny matrices are slow one by one; the same products of three arrays of
entries run over all cells at the speed of memory.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True)
class Pairs:
    """Matrices [[first, cross], [cross, last]], one for each place of the arrays."""

    first: FloatArray
    cross: FloatArray
    last: FloatArray

    def __add__(self, other: "Pairs") -> "Pairs":
        return Pairs(self.first + other.first, self.cross + other.cross, self.last + other.last)

    def __sub__(self, other: "Pairs") -> "Pairs":
        return Pairs(self.first - other.first, self.cross - other.cross, self.last - other.last)

    def __mul__(self, factor: FloatArray | float) -> "Pairs":
        return Pairs(self.first * factor, self.cross * factor, self.last * factor)

    def __getitem__(self, place: Any) -> "Pairs":
        return Pairs(self.first[place], self.cross[place], self.last[place])

    @property
    def determinant(self) -> FloatArray:
        """Determinant of each."""
        return np.asarray(self.first * self.last - self.cross * self.cross)

    @property
    def table(self) -> FloatArray:
        """The matrices themselves, their entries along the last two axes."""
        rows = [np.stack([self.first, self.cross], -1), np.stack([self.cross, self.last], -1)]
        return np.stack(rows, axis=-2)

    def turned(self) -> "Pairs":
        """The same with the last two axes of places the other way round."""
        entries = self.first, self.cross, self.last
        return Pairs(*(np.swapaxes(entry, -1, -2) for entry in entries))

    def inverse(self) -> "Pairs":
        """Inverse of each.

        Examples:
            >>> one = Pairs(np.array([2.0]), np.array([1.0]), np.array([1.0]))
            >>> one.inverse().table.tolist()
            [[[1.0, -1.0], [-1.0, 2.0]]]
        """
        scale = 1.0 / self.determinant
        return Pairs(self.last * scale, -self.cross * scale, self.first * scale)

    def on(self, first: FloatArray, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Product with vectors."""
        return (
            self.first * first + self.cross * last,
            self.cross * first + self.last * last,
        )

    def form(self, first: FloatArray | float, last: FloatArray | float) -> FloatArray:
        """Quadratic form of vectors."""
        return np.asarray(
            self.first * (first * first)
            + 2 * self.cross * (first * last)
            + self.last * (last * last)
        )

    def within(self, outer: "Pairs") -> "Pairs":
        """outer · self · outer."""
        one = self.on(outer.first, outer.cross)
        two = self.on(outer.cross, outer.last)
        return Pairs(
            outer.first * one[0] + outer.cross * one[1],
            outer.first * two[0] + outer.cross * two[1],
            outer.cross * two[0] + outer.last * two[1],
        )

    def sum(self, axis: int, *, keepdims: bool = False) -> "Pairs":
        """Sums of the matrices along one axis of places."""
        return Pairs(
            *(
                entry.sum(axis=axis, keepdims=keepdims)
                for entry in (self.first, self.cross, self.last)
            )
        )
