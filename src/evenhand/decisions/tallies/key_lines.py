"""Lines: the combinations of keys that occur in rows, numbered as they come."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.weights import distinct

# Combinations of keys that are looked up in an array.
MOST_LISTED = 2**24


class KeyLines:
    """Numbers for combinations of codes, the same in every batch; `keys` has the codes of each.

    Examples:
        >>> lines = KeyLines()
        >>> lines.numbered([np.array([1, 0]), np.array([-1, 2])], [2, 3]).tolist()
        [1, 0]
        >>> lines.numbered([np.array([3, 1]), np.array([0, -1])], [4, 3]).tolist(), lines.keys
        ([2, 1], [(0, 2), (1, -1), (3, 0)])
    """

    def __init__(self) -> None:
        self.keys: list[tuple[int, ...]] = []
        self._sizes: list[int] = []
        self._numbers = np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.keys)

    def numbered(
        self, parts: Sequence[NDArray[np.int32]], sizes: Sequence[int]
    ) -> NDArray[np.int32]:
        """The line of each row by its codes, from -1 to below these sizes."""
        room = [size + 1 for size in sizes]
        strides = [prod(room[i + 1 :]) for i in range(len(room))]
        # Numbers of four bytes take half the time, and serve until there are too many.
        flat: NDArray[Any] = parts[0].astype(np.int32 if prod(room) < 2**31 else np.int64)
        flat *= strides[0]
        for part, stride in zip(parts[1:], strides[1:], strict=True):
            flat += part.astype(flat.dtype, copy=False) * stride if stride > 1 else part
        flat += sum(strides)
        if prod(room) > MOST_LISTED:
            return self._among_many(flat, room)
        if room != self._sizes:
            # A key has a value more than before: the same lines have other places.
            self._sizes, self._numbers = room, np.full(prod(room), -1, dtype=np.int32)
            held = np.array(self.keys, dtype=np.int64).reshape(-1, len(room)).T + 1
            self._numbers[np.ravel_multi_index(tuple(held), room)] = np.arange(len(self.keys))
        line: NDArray[np.int32] = self._numbers.take(flat, mode="clip")
        if line.min(initial=0) < 0:
            unseen = np.zeros(prod(room), dtype=bool)
            unseen[flat[line < 0]] = True
            fresh = np.flatnonzero(unseen)
            self._numbers[fresh] = len(self.keys) + np.arange(fresh.size)
            places = np.stack(np.unravel_index(fresh, room), axis=1) - 1
            self.keys += list(map(tuple, places.tolist()))
            line = self._numbers[flat]
        return line

    def _among_many(self, flat: NDArray[Any], room: Sequence[int]) -> NDArray[np.int32]:
        cells, which = distinct(flat)
        known = {keys: line for line, keys in enumerate(self.keys)}
        of_cells = np.stack(np.unravel_index(cells, room), axis=1) - 1
        numbers = [known.setdefault(keys, len(known)) for keys in map(tuple, of_cells.tolist())]
        self.keys = list(known)
        return np.array(numbers, dtype=np.int32)[which]
