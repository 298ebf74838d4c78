"""Numbers for the values of key columns, the same in every batch of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.decisions.labels import label, ordered
from evenhand.decisions.tally import Codes

# Whole numbers up to this are looked up in a table; what it does not know is below any code.
MOST_TABLED, UNKNOWN = 2**20, -2
# Words are known by their hashes of 64 bits: of a thousand words, two share one in fewer than one
# table in 10^13. The first bits say where a hash is looked for.
SLOT_BITS, SEED = 18, 0
_SHIFT = np.uint64(64 - SLOT_BITS)


def _no_owners() -> NDArray[np.uint64]:
    """Slots that are nobody's: each holds a hash whose place is another."""
    return ~np.arange(2**SLOT_BITS, dtype=np.uint64) << _SHIFT


class HashNumbers:
    """Numbers of hashes; most are found by one look at where their first bits say."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._owners = _no_owners()
        self._table = np.zeros(self._owners.size, dtype=np.int32)

    def find(self, hashes: NDArray[np.uint64], fresh: Callable[[int], int]) -> NDArray[np.int32]:
        """The number of each hash; `fresh` gives that of a new one by a row that has it."""
        slot = (hashes >> _SHIFT).view(np.int64)
        codes: NDArray[np.int32] = self._table.take(slot, mode="clip")
        others = np.flatnonzero(self._owners.take(slot, mode="clip") != hashes)
        if others.size:
            unique, first, where = np.unique(hashes[others], return_index=True, return_inverse=True)
            rows = others[first].tolist()
            known = [self._number(*pair, fresh) for pair in zip(unique.tolist(), rows, strict=True)]
            codes[others] = np.array(known, dtype=np.int32)[where.reshape(-1)]
        return codes

    def _number(self, one: int, row: int, fresh: Callable[[int], int]) -> int:
        """The number of a hash; a new one gets its slot if that is nobody's."""
        if one not in self._numbers:
            self._numbers[one] = fresh(row)
            slot = one >> int(_SHIFT)
            if int(self._owners[slot]) >> int(_SHIFT) != slot:
                self._owners[slot], self._table[slot] = one, self._numbers[one]
        return self._numbers[one]


class RowLines:
    """Lines: the combinations of keys that rows have, the same in every batch.

    A line is known by the hash of all its keys together; `keys` are their values.

    Examples:
        >>> lines = RowLines()
        >>> batch = pl.DataFrame({"sex": ["f", "m", "f", None], "y": [1, 0, 1, 1]})
        >>> found = lines.numbered(batch, ["sex", "y"])
        >>> [lines.keys[line] for line in found.tolist()] == batch.rows()
        True
    """

    def __init__(self) -> None:
        self.keys: list[tuple[Any, ...]] = []
        self._hashes = HashNumbers()

    def __len__(self) -> int:
        return len(self.keys)

    def numbered(self, batch: pl.DataFrame, names: Sequence[str]) -> NDArray[np.int32]:
        """The line of each row by these columns."""
        columns = [batch[name] for name in names]

        def fresh(row: int) -> int:
            self.keys.append(tuple(column[row] for column in columns))
            return len(self.keys) - 1

        return self._hashes.find(pl.DataFrame(columns).hash_rows(SEED).to_numpy(), fresh)


@dataclass(slots=True)
class Coder:
    """Numbers for the values of a key column, the same in every batch; -1 where one is missing."""

    names: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    known: dict[Any, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    table: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    hashes: HashNumbers | None = None

    def codes(self, column: pl.Series) -> NDArray[np.int32]:
        """The number of each value of a batch."""
        kind = column.dtype
        if kind == pl.String:
            self.hashes = self.hashes or HashNumbers()
            hashes = pl.DataFrame([column]).hash_rows(SEED).to_numpy()
            return self.hashes.find(hashes, lambda row: self._place(column[row]))
        if kind in (pl.Categorical, pl.Enum):
            return self._looked_up(column, column.to_physical())
        if kind == pl.Boolean:
            return self._looked_up(column, column.cast(pl.UInt8))
        if kind.is_integer() and kind not in (pl.Int128, pl.UInt128):
            return self._looked_up(column, column)
        distinct = column.unique()
        moved = [self._place(value) for value in distinct.to_list()]
        if all(place < 0 for place in moved):
            return np.full(len(column), -1, dtype=np.int32)
        found = column.replace_strict(distinct, moved, return_dtype=pl.Int32)
        return np.asarray(found.to_numpy(), dtype=np.int32)

    def _looked_up(self, column: pl.Series, numbers: pl.Series) -> NDArray[np.int32]:
        """Codes of a column whose values stand for themselves as whole numbers."""
        low, high = (int(end or 0) for end in (numbers.min(), numbers.max()))  # type: ignore[arg-type]
        holes = bool(numbers.null_count())
        if not holes and low >= 0 and high < self.table.size:
            # Most batches hold nothing new: a look into the table of what is known says so.
            found: NDArray[np.int32] = self.table.take(numbers.to_numpy(), mode="clip")
            if found.min(initial=0) > UNKNOWN:
                return found
        numbers = numbers.cast(pl.Int64)
        flat = (numbers.fill_null(high + 1) if holes else numbers).to_numpy()
        if high - low > max(4 * len(column), 2**16):
            unique, rows, where = np.unique(flat, return_index=True, return_inverse=True)
            where, places = where.reshape(-1), np.arange(unique.size)
        else:
            where = flat - low
            places = np.flatnonzero(np.bincount(where))
            unique, rows = places + low, None
        table = np.full(int(places.max(initial=0)) + 1, -1, dtype=np.int32)
        for place, number in zip(places.tolist(), unique.tolist(), strict=True):
            if holes and number > high:
                continue
            if number not in self.numbers:
                if rows is None:
                    # Some row of each number, found for all of them at once.
                    rows = np.zeros(table.size, dtype=np.int64)
                    rows[where] = np.arange(len(column))
                self.numbers[number] = self._place(column[int(rows[place])])
            table[place] = self.numbers[number]
        if low >= 0 and max(self.numbers, default=0) < MOST_TABLED:
            # Numbers below 0, of other batches, have no place: they would be taken from the end.
            tabled = {number: code for number, code in self.numbers.items() if number >= 0}
            self.table = np.full(max(tabled, default=0) + 1, UNKNOWN, dtype=np.int32)
            self.table[list(tabled)] = list(tabled.values())
        return table[where]

    def _place(self, value: Any) -> int:
        kind = (type(value), value)
        if kind not in self.known:
            name = label(value)
            if name is None:
                self.known[kind] = -1
            else:
                self.known[kind] = self.places.setdefault(name, len(self.names))
                if self.known[kind] == len(self.names):
                    self.names.append(name)
        return self.known[kind]

    def settled(self, codes: NDArray[Any]) -> tuple[tuple[str, ...], Codes]:
        """Labels in their order, and codes as places among them."""
        labels = ordered(self.names)
        place = {name: i for i, name in enumerate(labels)}
        moved = np.array([*(place[name] for name in self.names), -1], dtype=np.int64)
        return tuple(labels), np.asarray(moved[codes])
