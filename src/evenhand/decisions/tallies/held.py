"""Scores in memory, sorted for exact areas.

Sorting every group once is several times faster than an engine's window functions. Spark's rows
stay in Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.decisions.cuts import as_number
from evenhand.decisions.labels import label, ordered
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Codes, Tally
from evenhand.stats.auc import row_placements, rows_by_cell, sorted_placements
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import distinct

# Whole numbers up to this are looked up in a table; what it does not know is below any code.
MOST_TABLED, UNKNOWN = 2**20, -2


@dataclass(slots=True)
class Coder:
    """Numbers for the values of a key column, the same in every batch; -1 where one is missing."""

    names: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    known: dict[Any, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    table: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def codes(self, column: pl.Series) -> NDArray[np.int32]:
        """The number of each value of a batch."""
        if column.dtype == pl.String:
            column = column.cast(pl.Categorical)
        kind = column.dtype
        if kind in (pl.Categorical, pl.Enum):
            return self._looked_up(column, column.to_physical())
        if kind.is_integer() or kind == pl.Boolean:
            return self._looked_up(column, column.cast(pl.Int64))
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
        if holes:
            numbers = numbers.cast(pl.Int64).fill_null(high + 1)
        flat = numbers.to_numpy()
        if not holes and low >= 0 and high < self.table.size:
            # Most batches hold nothing new: a look into the table of what is known says so.
            found: NDArray[np.int32] = self.table[flat]
            if found.min(initial=0) > UNKNOWN:
                return found
        if high - low > max(4 * len(column), 2**16):
            unique, rows, where = np.unique(flat, return_index=True, return_inverse=True)
            where, places = where.reshape(-1), np.arange(unique.size)
        else:
            where = flat - flat.dtype.type(low)
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
            self.table = np.full(max(self.numbers, default=0) + 1, UNKNOWN, dtype=np.int32)
            self.table[list(self.numbers)] = list(self.numbers.values())
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


def key_columns(decisions: Decisions) -> dict[str, nw.Expr]:
    """The keys that scores are compared by: every group column, stratum, truth and cluster."""
    roles = decisions.roles
    keys = {f"group:{column}": nw.col(column) for column in roles.group}
    keys |= decisions.stratum_key()
    keys["truth"] = nw.col(str(roles.truth))
    if roles.together:
        keys["cluster"] = nw.col(roles.together)
    return keys


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldScores:
    """All scored rows in memory: keys as labels and codes, and score columns.

    Columns become arrays one at a time, in the same place: fresh memory costs more than copying.
    """

    keys: Mapping[str, tuple[tuple[str, ...], Codes]]
    scores: Mapping[str, pl.Series]
    omega: FloatArray | None
    # Lines that were asked for last: every score column wants the same; rows are asked for twice.
    lines: "dict[tuple[str, bool], _Lines]" = field(default_factory=dict)
    rows: "dict[tuple[str, str, str, bool], _Rows]" = field(default_factory=dict)

    def placements(self, attribute: Attribute, score: str, name: str, *, within: bool) -> Tally:
        """Sums of placements, as `tallies.scores.placements` defines them, by sorting."""
        rows = self._rows(attribute, score, name, within)
        if self.omega is None and "cluster" not in self.keys:
            by_line = self._lines(attribute, within).in_order if rows.complete else None
            d, d2 = sorted_placements(rows.score, rows.cell, lines=rows.lines, by_line=by_line)
            n = np.bincount(rows.cell, minlength=2 * rows.lines).astype(np.float64)
            return rows.tally({"n": n, "d": d, "d2": d2})
        d = row_placements(rows.score, rows.cell, rows.omega, lines=rows.lines)
        sums: dict[str, FloatArray | None] = {"n": None, "d": d, "d2": d * d}
        if rows.omega is not None:
            w, w2 = rows.omega, rows.omega**2
            sums = {"n": None, "w": w, "w2": w2, "w4": w2 * w2, "wd": w * d}
            sums |= {"wd2": w * d * d, "w2d": w2 * d, "w2d2": w2 * d * d}
        return rows.summed(sums)

    def bins(
        self, attribute: Attribute, score: str, name: str, *, within: bool, bins: int
    ) -> Tally:
        """A histogram of scores, as `tallies.scores.score_bins` defines it."""
        rows = self._rows(attribute, score, name, within)
        place = np.minimum(np.floor(rows.score * bins), bins - 1).astype(np.int64)
        sums: dict[str, FloatArray | None] = {"n": None, "s": rows.score}
        if rows.omega is not None:
            w = rows.omega
            sums = {"n": None, "w": w, "w2": w * w, "s": w * rows.score}
        return rows.summed(sums, bins=place, many=bins)

    def _rows(self, attribute: Attribute, score: str, name: str, within: bool) -> "_Rows":
        asked = (attribute.name, score, name, within)
        if asked not in self.rows:
            self.rows.clear()
            self.rows[asked] = self._chosen(attribute, score, name, within)
        return self.rows[asked]

    def _chosen(self, attribute: Attribute, score: str, name: str, within: bool) -> "_Rows":
        lines = self._lines(attribute, within)
        truths, truth = self.keys["truth"]
        values = floats(self.scores[score])
        use = truth >= 0
        if self.scores[score].null_count():
            use &= ~np.isnan(values)
        for key in (["stratum"] if within else []) + (
            ["cluster"] if "cluster" in self.keys else []
        ):
            use &= self.keys[key][1] >= 0
        if self.omega is not None:
            use &= ~np.isnan(self.omega)
        everything = bool(use.all())

        def chosen(values: NDArray[Any]) -> NDArray[Any]:
            return values if everything else values[use]

        # The last state is that of rows without a truth, none of which is chosen.
        is_name = np.array([*(label == name for label in truths), False], dtype=np.int64)
        return _Rows(
            labels=lines.labels,
            places=lines.places,
            complete=everything,
            cell=chosen(lines.number) * 2 + is_name[chosen(truth)],
            score=chosen(values),
            omega=None if self.omega is None else chosen(self.omega),
            cluster=(
                (self.keys["cluster"][0], chosen(self.keys["cluster"][1]))
                if "cluster" in self.keys
                else None
            ),
        )

    def _lines(self, attribute: Attribute, within: bool) -> "_Lines":
        """The line of every row, a combination of group and, within strata, stratum."""
        asked = (attribute.name, within)
        if asked not in self.lines:
            keys = {f"group{i}": f"group:{column}" for i, column in enumerate(attribute.columns)}
            keys |= {"stratum": "stratum"} if within else {}
            sizes = [len(self.keys[key][0]) + 1 for key in keys.values()]
            flat = np.zeros(len(self.keys["truth"][1]), dtype=np.int64)
            for key, size in zip(keys.values(), sizes, strict=True):
                flat = flat * size + self.keys[key][1] + 1
            lines = np.arange(prod(sizes))
            if prod(sizes) > 4 * max(len(flat), 2**14):
                lines, flat = distinct(flat)
            self.lines.clear()
            self.lines[asked] = _Lines(
                labels={name: self.keys[key][0] for name, key in keys.items()},
                places=[each.astype(np.int64) - 1 for each in np.unravel_index(lines, sizes)],
                number=flat.reshape(-1),
            )
        return self.lines[asked]


@dataclass(frozen=True, kw_only=True)
class _Lines:
    """The line of every row, and the keys of every line."""

    labels: dict[str, tuple[str, ...]]
    places: list[Codes]
    number: Codes

    @cached_property
    def in_order(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows in the order of their lines, and where each line begins."""
        return rows_by_cell(self.number, len(self.places[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Scored rows of one attribute: their cell, 2·line + truth, and the keys of every line.

    `complete` says whether every row of the table is among them.
    """

    labels: dict[str, tuple[str, ...]]
    places: list[Codes]
    complete: bool
    cell: Codes
    score: FloatArray
    omega: FloatArray | None
    cluster: tuple[tuple[str, ...], Codes] | None

    @property
    def lines(self) -> int:
        return len(self.places[0])

    def tally(self, sums: Mapping[str, FloatArray]) -> Tally:
        """Sums by cell as a tally, cells without a row left out."""
        there = np.flatnonzero(sums["n"] > 0)
        return Tally(
            labels={**self.labels, "y": ("0", "1")},
            codes={
                **{
                    key: each[there // 2]
                    for key, each in zip(self.labels, self.places, strict=True)
                },
                "y": there % 2,
            },
            sums={name: values[there] for name, values in sums.items()},
        )

    def summed(
        self, sums: Mapping[str, FloatArray | None], *, bins: Codes | None = None, many: int = 1
    ) -> Tally:
        """Sums of these values by cell and, where there are any, bin and cluster; None counts."""
        flat, more = self.cell, []
        if bins is not None:
            flat = flat * many + bins
            more.append(("bin", tuple(map(str, range(many))), many))
        if self.cluster is not None:
            names, codes = self.cluster
            flat = flat * len(names) + codes
            more.append(("cluster", names, len(names)))
        size = 2 * self.lines * prod(length for _, _, length in more)
        cells = np.arange(size)
        if size > 4 * max(len(flat), 2**14):
            cells, flat = distinct(flat)
        found = {
            name: np.bincount(flat.reshape(-1), values, minlength=len(cells)).astype(np.float64)
            for name, values in sums.items()
        }
        there = np.flatnonzero(found["n"] > 0)
        left = cells[there]
        keys: dict[str, Codes] = {}
        for name, _, length in reversed(more):
            left, keys[name] = left // length, left % length
        return Tally(
            labels={**self.labels, "y": ("0", "1"), **{name: names for name, names, _ in more}},
            codes={
                **{
                    key: each[left // 2] for key, each in zip(self.labels, self.places, strict=True)
                },
                "y": left % 2,
                **{name: keys[name] for name, _, _ in more},
            },
            sums={name: values[there] for name, values in found.items()},
        )


def hold_scores(decisions: Decisions, columns: Sequence[str], omega: nw.Expr | None) -> HeldScores:
    """Every row of these score columns, read once."""
    keys = key_columns(decisions)
    coders = {name: Coder() for name in keys}
    batch = decisions.read_whole(selected(decisions, keys, columns, omega))
    settled = {
        name: coders[name].settled(coders[name].codes(batch[f"key:{name}"])) for name in keys
    }
    return HeldScores(
        keys=settled,
        scores={column: batch[f"score:{column}"] for column in columns},
        omega=None if omega is None else floats(batch["omega"]),
    )


def selected(
    decisions: Decisions, keys: Mapping[str, nw.Expr], columns: Sequence[str], omega: nw.Expr | None
) -> Frame:
    frame = decisions.frame.select(
        *(e.alias(f"key:{name}") for name, e in keys.items()),
        *(as_number(decisions.schema, c).alias(f"score:{c}") for c in columns),
        *([] if omega is None else [omega.alias("omega")]),
    )
    if decisions.engine != "polars":
        return frame
    native: pl.LazyFrame = nw.to_native(frame)
    texts = [name for name, kind in native.collect_schema().items() if kind == pl.String]
    return nw.from_native(native.with_columns(pl.col(texts).cast(pl.Categorical)))


def floats(column: pl.Series) -> FloatArray:
    filled = column.fill_null(np.nan) if column.null_count() else column
    return np.asarray(filled.to_numpy(), dtype=np.float64)
