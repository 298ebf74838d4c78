"""Scores in memory: sorted for exact areas, or counted on the grid a batch of rows at a time.

Sorting every group once is several times faster than an engine's window functions, and counting
into arrays than its hash tables. Spark's rows stay in Spark, and so do more clusters than numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from evenhand.decisions.tallies.grid import (
    ABOVE,
    AT,
    BELOW,
    CELL,
    CELLS,
    SIDES,
    UNCUT,
    cells_of_scores,
)
from evenhand.decisions.tally import Codes, Tally, encode
from evenhand.stats.auc import row_placements, sorted_placements
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import distinct

# Rows of a batch. Up to so many lines have an array of cells each for the whole table (2.6 MB);
# of more, each batch is sorted by line first, so that what is counted into stays near.
BATCH, FEW_LINES = 4_000_000, 64
# Scores at the threshold, and above it in its own cell, have places behind all cells.
AT_CUT, OVER_CUT, UNSCORED, ROOM = CELLS, CELLS + 1, CELLS + 2, CELLS + 3
_FINE = 2.0**-7


@dataclass(slots=True)
class Coder:
    """Numbers for the values of a key column, the same in every batch; -1 where one is missing."""

    names: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    known: dict[Any, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

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
        if high - low > max(4 * len(column), 2**16):
            unique, first, where = np.unique(flat, return_index=True, return_inverse=True)
        else:
            where = flat - flat.dtype.type(low)
            unique = np.flatnonzero(np.bincount(where, minlength=high - low + 2)) + low
            first = None
        table = np.full(int(where.max(initial=0)) + 1, -1, dtype=np.int32)
        for i, number in enumerate(unique.tolist()):
            if holes and number > high:
                continue
            if number not in self.numbers:
                place = first[i] if first is not None else int(np.argmax(flat == number))
                self.numbers[number] = self._place(column[int(place)])
            table[i if first is not None else number - low] = self.numbers[number]
        return table[where.reshape(-1)]

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
    """All scored rows in memory: keys as labels and codes, score columns, NaN where missing."""

    keys: Mapping[str, tuple[tuple[str, ...], Codes]]
    scores: Mapping[str, FloatArray]
    omega: FloatArray | None

    def placements(self, attribute: Attribute, score: str, name: str, *, within: bool) -> Tally:
        """Sums of placements, as `tallies.scores.placements` defines them, by sorting."""
        rows = self._rows(attribute, score, name, within)
        if self.omega is None and "cluster" not in self.keys:
            d, d2 = sorted_placements(rows.score, rows.cell, lines=rows.lines)
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
        keys = [f"group:{column}" for column in attribute.columns]
        keys += ["stratum"] if within else []
        truths, truth = self.keys["truth"]
        use = (truth >= 0) & ~np.isnan(self.scores[score])
        for key in (
            *keys[len(attribute.columns) :],
            *(["cluster"] if "cluster" in self.keys else []),
        ):
            use &= self.keys[key][1] >= 0
        if self.omega is not None:
            use &= ~np.isnan(self.omega)
        everything = bool(use.all())

        def chosen(values: NDArray[Any]) -> NDArray[Any]:
            return values if everything else values[use]

        is_name = np.array([label == name for label in truths], dtype=bool)
        y = is_name[chosen(truth)].astype(np.int64) if len(truths) else np.zeros(0, dtype=np.int64)
        sizes = [len(self.keys[key][0]) + 1 for key in keys]
        flat = np.zeros(len(y), dtype=np.int64)
        for key, size in zip(keys, sizes, strict=True):
            flat = flat * size + chosen(self.keys[key][1]) + 1
        lines = np.arange(prod(sizes))
        if prod(sizes) > 4 * max(len(y), 2**14):
            lines, flat = distinct(flat)
        return _Rows(
            labels={
                **{
                    f"group{i}": self.keys[key][0]
                    for i, key in enumerate(keys[: len(attribute.columns)])
                },
                **({"stratum": self.keys["stratum"][0]} if within else {}),
            },
            places=[each.astype(np.int64) - 1 for each in np.unravel_index(lines, sizes)],
            cell=flat.reshape(-1) * 2 + y,
            score=chosen(self.scores[score]),
            omega=None if self.omega is None else chosen(self.omega),
            cluster=(
                (self.keys["cluster"][0], chosen(self.keys["cluster"][1]))
                if "cluster" in self.keys
                else None
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Scored rows of one attribute: their cell, 2·line + truth, and the keys of every line."""

    labels: dict[str, tuple[str, ...]]
    places: list[Codes]
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
    batch = decisions.read_whole(_selected(decisions, keys, columns, omega))
    settled = {
        name: coders[name].settled(coders[name].codes(batch[f"key:{name}"])) for name in keys
    }
    return HeldScores(
        keys=settled,
        scores={column: _floats(batch[f"score:{column}"]) for column in columns},
        omega=None if omega is None else _floats(batch["omega"]),
    )


def _selected(
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


def _floats(column: pl.Series) -> FloatArray:
    filled = column.fill_null(np.nan) if column.null_count() else column
    return np.asarray(filled.to_numpy(), dtype=np.float64)


def may_count(decisions: Decisions, columns: Sequence[str]) -> bool:
    """Whether scores can be counted into arrays: on Polars, within [0, 1], not by cluster."""
    roles = decisions.roles
    plain = roles.threshold is None or isinstance(roles.threshold, int | float)
    # A row that weighs nothing counts for the area and for no threshold: engines part those.
    idle = roles.weight is not None and decisions.survey[f"min:{roles.weight}"] <= 0
    batched = decisions.engine == "polars" and hasattr(pl.LazyFrame, "collect_batches")
    if not batched or roles.together or not plain or idle:
        return False
    return all(
        decisions.is_probability(c) and not decisions.schema[c].is_integer() for c in columns
    )


def count_scores(
    decisions: Decisions,
    attributes: Sequence[Attribute],
    columns: Sequence[str],
    *,
    classes: Mapping[str, str | None],
    omega: nw.Expr | None,
) -> dict[tuple[str, str], Tally]:
    """Tallies of scores on the grid by (attribute, column), in one pass over batches of rows.

    `classes` says whose score a column is, where that is known.
    """
    keys = {k: v for k, v in key_columns(decisions).items() if k != "cluster"}
    coders = {name: Coder() for name in keys}
    found = {
        (attribute.name, column): _Counter(
            attribute=attribute,
            name=classes.get(column),
            cut=_cut(decisions, column),
        )
        for attribute in attributes
        for column in columns
    }
    for batch in _batches(decisions, _selected(decisions, keys, columns, omega)):
        codes = {name: coders[name].codes(batch[f"key:{name}"]) for name in keys}
        weight = None if omega is None else _floats(batch["omega"])
        for column in columns:
            score = _floats(batch[f"score:{column}"])
            cell = unit_cells(score)
            for attribute in attributes:
                found[attribute.name, column].add(codes, coders, score, cell, weight)
    return {
        place: decisions.name_groups(counter.tally(coders), counter.attribute)
        for place, counter in found.items()
    }


def _batches(decisions: Decisions, frame: Frame) -> Iterator[pl.DataFrame]:
    native: pl.LazyFrame = nw.to_native(frame)
    with decisions.engine_errors():
        yield from native.collect_batches(chunk_size=BATCH, maintain_order=True)


def _cut(decisions: Decisions, column: str) -> float | None:
    roles = decisions.roles
    if column != roles.score or roles.threshold is None:
        return None
    return float(decisions.threshold_expression(column))  # type: ignore[arg-type]


def unit_cells(score: FloatArray) -> NDArray[np.int32]:
    """The grid's cells of scores in [0, 1]; -1 where there is none."""
    with np.errstate(invalid="ignore"):
        cell = np.nan_to_num(score * 2.0**14, nan=0.0).astype(np.int32)
    cell += np.int32(2 * 2**14)
    outer = np.flatnonzero(~((score >= _FINE) & (1.0 - score >= _FINE)))
    cell[outer] = cells_of_scores(np.nan_to_num(score[outer]))
    cell[outer[np.isnan(score[outer])]] = -1
    return cell


class _Counter:
    """Counts of one column by (line, cell): a line is a combination of the other keys."""

    def __init__(self, *, attribute: Attribute, name: str | None, cut: float | None) -> None:
        self.attribute, self.name, self.cut = attribute, name, cut
        self.lines: dict[tuple[int, ...], int] = {}
        self.sums: dict[str, FloatArray] = {}
        self.parts: list[tuple[Codes, dict[str, FloatArray]]] = []
        self.cut_cell = -2 if cut is None else int(unit_cells(np.array([cut]))[0])

    def add(
        self,
        codes: Mapping[str, NDArray[np.int32]],
        coders: Mapping[str, Coder],
        score: FloatArray,
        cell: NDArray[np.int32],
        weight: FloatArray | None,
    ) -> None:
        """Count a batch of rows."""
        place = cell.astype(np.int64)
        if self.cut is not None:
            near = np.flatnonzero(cell == self.cut_cell)
            place[near[score[near] == self.cut]] = AT_CUT
            place[near[score[near] > self.cut]] = OVER_CUT
        # One more place for rows without a score or a weight.
        place[cell < 0] = UNSCORED
        known = score
        if weight is not None:
            place[np.isnan(weight)] = UNSCORED
        if np.isnan(score).any():
            known = np.nan_to_num(score)
        line = self._line(codes, coders)
        place += line * ROOM
        values = {"n": np.ones(len(place)), "s": known}
        if weight is not None:
            w = np.nan_to_num(weight)
            w2 = w * w
            values |= {"w": w, "w2": w2, "w4": w2 * w2, "ws": w * known}
        if len(self.lines) <= FEW_LINES and not self.parts:
            self._add_in_place(place, values)
        else:
            self.parts.append(_summed_by_line(line, place, values, lines=len(self.lines)))

    def _add_in_place(self, place: Codes, values: Mapping[str, FloatArray]) -> None:
        for name, each in values.items():
            if name not in self.sums:
                self.sums[name] = np.zeros(FEW_LINES * ROOM)
            np.add.at(self.sums[name], place, each)

    def entries(self) -> tuple[Codes, dict[str, FloatArray]]:
        """Where something was counted, as line · ROOM + place, and the sums there."""
        parts = list(self.parts)
        if self.sums:
            there = np.flatnonzero(self.sums["n"])
            parts.append((there, {name: array[there] for name, array in self.sums.items()}))
        if len(parts) < 2:
            return parts[0] if parts else (np.zeros(0, dtype=np.int64), {"n": np.zeros(0)})
        cells, where = distinct(np.concatenate([part for part, _ in parts]))
        sums = {
            name: np.bincount(where, np.concatenate([each[name] for _, each in parts])).astype(
                float
            )
            for name in parts[0][1]
        }
        return cells, sums

    def _line(
        self, codes: Mapping[str, NDArray[np.int32]], coders: Mapping[str, Coder]
    ) -> NDArray[np.int64]:
        """The line of each row; new combinations get the next number."""
        parts = [codes[f"group:{column}"] for column in self.attribute.columns]
        if "stratum" in codes:
            parts.append(codes["stratum"])
        truth = codes["truth"]
        if self.name is not None:
            states = [int(name == self.name) for name in coders["truth"].names]
            truth = np.array([*states, -1], dtype=np.int32)[truth]
        parts.append(truth)
        sizes = [int(part.max(initial=-1)) + 2 for part in parts]
        flat = np.zeros(len(truth), dtype=np.int64)
        for part, size in zip(parts, sizes, strict=True):
            flat = flat * size + part + 1
        if prod(sizes) <= 2**22:
            there = np.flatnonzero(np.bincount(flat, minlength=prod(sizes)))
        else:
            there = np.unique(flat)
        numbers = np.zeros(prod(sizes), dtype=np.int64)
        for each in there.tolist():
            keys = tuple(int(k) - 1 for k in np.unravel_index(each, sizes))
            numbers[each] = self.lines.setdefault(keys, len(self.lines))
        return numbers[flat]

    def tally(self, coders: Mapping[str, Coder]) -> Tally:
        """The counts as a tally with the keys of `score_question`."""
        columns = [f"group:{c}" for c in self.attribute.columns]
        columns += ["stratum"] if "stratum" in coders else []
        lines = np.array(list(self.lines), dtype=np.int64).reshape(-1, len(columns) + 1)
        labels, keys = {}, []
        for i, column in enumerate(columns):
            name = "stratum" if column == "stratum" else f"group{i}"
            labels[name], each = coders[column].settled(lines[:, i])
            keys.append(each)
        labels["truth" if self.name is None else "y"], truth = (
            coders["truth"].settled(lines[:, -1])
            if self.name is None
            else (("0", "1"), lines[:, -1])
        )
        keys.append(truth)
        # Lines in the order of their labels, whichever batch they first turned up in.
        order = np.lexsort(keys[::-1])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        there, sums = self.entries()
        line, place = there // ROOM, there % ROOM
        by_label = np.argsort(rank[line], kind="stable")
        line, place = line[by_label], place[by_label]
        sums = {name: each[by_label] for name, each in sums.items()}
        side = np.full(len(place), UNCUT)
        cell = np.where(place >= CELLS, self.cut_cell, place)
        if self.cut is not None:
            side = np.where(
                cell < self.cut_cell, BELOW, np.where(cell > self.cut_cell, ABOVE, BELOW)
            )
            side = np.where(place == AT_CUT, AT, np.where(place == OVER_CUT, ABOVE, side))
        missing = place == UNSCORED
        numbers = np.where(missing, -1, cell * SIDES + side)
        codes = {name: each[line] for name, each in zip(labels, keys, strict=True)}
        found, where = encode(numbers)
        if found and found[0] == "-1":
            found, where = found[1:], where - 1
        labels[CELL], codes[CELL] = found, where
        return Tally(labels=labels, codes=codes, sums=sums)


def _summed_by_line(
    line: Codes, place: Codes, values: Mapping[str, FloatArray], *, lines: int
) -> tuple[Codes, dict[str, FloatArray]]:
    """Distinct places in order, and sums of values at each; `place` is line · ROOM + cell."""
    order = np.argsort(line.astype(np.uint16) if lines <= 2**16 else line, kind="stable")
    held = place[order]
    sorted_values = {name: each[order] for name, each in values.items()}
    ends = np.cumsum(np.bincount(line, minlength=lines))
    places: list[Codes] = []
    sums: dict[str, list[FloatArray]] = {name: [] for name in values}
    for number in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        mine = slice(int(ends[number - 1]) if number else 0, int(ends[number]))
        found, where = distinct(held[mine])
        places.append(found)
        for name, each in sorted_values.items():
            summed = np.bincount(where, each[mine], minlength=found.size)
            sums[name].append(summed.astype(np.float64))
    return np.concatenate(places), {name: np.concatenate(each) for name, each in sums.items()}
