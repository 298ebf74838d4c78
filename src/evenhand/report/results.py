"""Result rows as a report reads them: looked through by column, made mappings only where read.

An audit of fifty groups and thirty classes has 50,000 rows, and a page shows some hundreds of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, overload

from evenhand.findings.limits import hide_row, small_row
from evenhand.lenses.rows import ASIDES, COLUMNS, Row, Rows

Key = tuple[str, str]
_HELD = (*COLUMNS, *ASIDES)
_STRETCH = 1000


class Results(Sequence[Row]):
    """The rows of a record in order; each is made once, when somebody asks for it.

    Examples:
        >>> rows = Rows.block((2,), lens="statistical", measure="accuracy", group=["f", "m"], n=9)
        >>> results = Results.of(rows)
        >>> results.column("group"), results[1]["n"], results.by_measure
        (['f', 'm'], 9, {('statistical', 'accuracy'): [0, 1]})
        >>> Results.of([{"lens": "norms", "measure": "norm_bias"}]).column("group")
        [None]
    """

    def __init__(
        self,
        size: int,
        *,
        rows: Callable[[Sequence[int]], Iterable[Row]],
        column: Callable[[str], list[Any]],
        index: Callable[[], Mapping[Key, list[int]]] | None = None,
    ) -> None:
        self._rows, self._column, self._index = rows, column, index
        self._made: list[Row | None] = [None] * size
        self._columns: dict[str, list[Any]] = {}

    @classmethod
    def of(cls, rows: "Rows | Sequence[Row] | Results") -> "Results":
        """The rows of an audit, which are columns, or of a record, which are mappings."""
        if isinstance(rows, Results):
            return rows
        if not isinstance(rows, Rows):
            return cls(
                len(rows),
                rows=lambda places: [rows[place] for place in places],
                column=lambda name: [row.get(name) for row in rows],
            )

        def made(places: Sequence[int]) -> Iterable[Row]:
            columns = map(results.column, _HELD)
            cells = zip(*([column[place] for place in places] for column in columns))
            return (dict(zip(_HELD, row)) for row in cells)

        results = cls(len(rows), rows=made, column=rows.plain)
        return results

    def shown(self) -> "Results":
        """The same rows as people may be shown them: without the numbers of small cells."""
        return Results(
            len(self),
            rows=lambda places: map(hide_row, self.pick(places)),
            column=self.column,
            index=lambda: self.by_measure,
        )

    def column(self, name: str) -> list[Any]:
        """One column of all rows, with the numbers of small cells; None where a row has none."""
        if name not in self._columns:
            self._columns[name] = self._column(name)
        return self._columns[name]

    def pairs(self, first: str, second: str) -> Iterable[tuple[Any, Any]]:
        """The values that two columns have together, each pair once, in order."""
        return dict.fromkeys(zip(self.column(first), self.column(second)))

    def pick(self, places: Iterable[int]) -> list[Row]:
        """The rows at some places."""
        asked, made = list(places), self._made
        lacking = [place for place in asked if made[place] is None]
        for place, own in zip(lacking, self._rows(lacking) if lacking else ()):
            made[place] = own
        return [row for place in asked if (row := made[place]) is not None]

    def places(self, *, lens: str | None = None, measures: Collection[str] = ()) -> list[int]:
        """The places of a lens's rows, or of those of some measures whatever their lens."""
        found = (
            held
            for (own, measure), held in self.by_measure.items()
            if own == lens or measure in measures
        )
        return sorted(place for held in found for place in held)

    def of_measure(self, lens: str, measure: str) -> list[Row]:
        """The rows of one measure of a lens."""
        return self.pick(self.by_measure.get((lens, measure), ()))

    @cached_property
    def by_measure(self) -> Mapping[Key, list[int]]:
        """The places of the rows of every lens and measure."""
        if self._index is not None:
            return self._index()
        found: dict[Key, list[int]] = {}
        first = 0
        # Rows of a measure mostly follow one another.
        for key, run in groupby(zip(self.column("lens"), self.column("measure"))):
            after = first + sum(1 for _ in run)
            found.setdefault(key, []).extend(range(first, after))
            first = after
        return found

    @cached_property
    def lenses(self) -> Mapping[str, None]:
        """The lenses that gave any row, in order."""
        return dict.fromkeys(lens for lens, _ in self.by_measure)

    def judged(self) -> list[int]:
        """The places of rows that a limit was held against."""
        return [i for i, verdict in enumerate(self.column("verdict")) if verdict != "not assessed"]

    def small(self, *, under: int) -> list[Row]:
        """The rows with fewer cases than this in the group or in the reference."""
        counts = enumerate(zip(self.column("n"), self.column("n_reference")))
        few = [
            place
            for place, (n, reference) in counts
            if (n is not None and n < under) or (reference is not None and reference < under)
        ]
        return [row for row in self.pick(few) if small_row(row, under=under)]

    def plain(self) -> list[dict[str, Any]]:
        """The rows as a record's file has them."""
        return [{name: row.get(name) for name in COLUMNS} for row in self]

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        if isinstance(place, slice):
            return self.pick(range(len(self))[place])
        # A place from the end is the same row as its place from the start.
        return self.pick([range(len(self))[place]])[0]

    def __iter__(self) -> Iterator[Row]:
        # In stretches: whoever looks for one row rarely has to make all of them.
        for first in range(0, len(self), _STRETCH):
            yield from self.pick(range(first, min(first + _STRETCH, len(self))))
