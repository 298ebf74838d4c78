"""Scores counted on the grid a batch of rows at a time, into arrays instead of hash tables.

A line is a combination of group, stratum and truth. Up to some thousand lines have an array of the
cells in the middle of [0, 1] each, where most scores lie, few lines one of all cells besides; what
has no array is held in rows, which are sorted by line and cell. Where arrays had more cells than
there are rows, these are packed and sorted instead (`packed.py`). Engines other than Polars, scores
beyond [0, 1], clusters and thresholds by row go through `score_question` instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.read import batches_come
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.coding import Coder
from evenhand.decisions.tallies.grid import (
    ABOVE,
    AT,
    BAND,
    BELOW,
    CELL,
    CELLS,
    SIDES,
    UNCUT,
    cell_limits,
    cells_of_scores,
)
from evenhand.decisions.tallies.held import floats, key_columns, selected
from evenhand.decisions.tallies.key_lines import KeyLines
from evenhand.decisions.tallies.packed import MOST_LINES, PackedRows
from evenhand.decisions.tally import Codes, Tally
from evenhand.stats.estimate import FloatArray

# Rows of a batch: so few that its columns stay in the processor's cache.
BATCH = 2**18
# So many lines have an array of all cells each, 1.3 MB for two sums; of more, rows are sorted.
FEW_LINES = 64
# So many cells of the middle have an array, half a gigabyte with two sums in each.
MOST_MIDDLE = 2**25
# So many rows are packed, half a gigabyte as well.
MOST_PACKED = 2**26
# So many rows are held at a time, of all columns together; a row's number fits into these bits.
ROW_BITS = 24
MOST_HELD = 2**ROW_BITS - BATCH
# Lines of so many rows on average are sorted one by one.
FEW_ROWS = 256
# Scores at the threshold, and above it in its own cell, have places behind that cell, and cells of
# higher scores come after them; rows without a score have the last place.
UNSCORED, ROOM = CELLS + 2, CELLS + 3
# Middle cells from either end of [0, 1] that finer bands take the place of.
_FINE_CELLS = BAND // 128

# Places in order, as line · ROOM + place, and sums at each.
Part = tuple[Codes, dict[str, FloatArray]]
# Numbers of four bytes: what holds half as much memory is made in half the time.
Places = NDArray[Any]
# Two sums lie beside each other as one complex number: memory is reached once for both.
Pairs = NDArray[np.complex128]
PAIRED = (("n", "s"), ("w", "w2"), ("w4", "ws"))


def may_count(decisions: Decisions, columns: Sequence[str]) -> bool:
    """Whether scores can be counted into arrays: on Polars, within [0, 1], not by cluster."""
    roles = decisions.roles
    plain = roles.threshold is None or isinstance(roles.threshold, int | float)
    # A row that weighs nothing counts for the area and for no threshold: engines part those.
    idle = roles.weight is not None and decisions.survey[f"min:{roles.weight}"] <= 0
    if not batches_come(decisions.engine) or roles.together or not plain or idle:
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
            rows=decisions.row_count,
            share=1 / (len(attributes) * len(columns)),
        )
        for attribute in attributes
        for column in columns
    }
    for batch in decisions.batches(selected(decisions, keys, columns, omega), rows=BATCH):
        codes = {name: coders[name].codes(batch[f"key:{name}"]) for name in keys}
        weight = None if omega is None else floats(batch["omega"])
        for column in columns:
            score = floats(batch[f"score:{column}"])
            cell, outer = _cells_and_outer(score)
            for attribute in attributes:
                counter = found[attribute.name, column]
                line = counter.lines(codes, coders)
                counter.add(_Held(line=line, place=cell, score=score, weight=weight), outer)
    return {place: counter.tally(decisions, coders) for place, counter in found.items()}


def _cut(decisions: Decisions, column: str) -> float | None:
    roles = decisions.roles
    if column != roles.score or roles.threshold is None:
        return None
    return float(decisions.threshold_expression(column))  # type: ignore[arg-type]


def unit_cells(score: FloatArray) -> NDArray[np.int32]:
    """The grid's cells of scores in [0, 1]; -1 where there is none.

    Examples:
        >>> unit_cells(np.array([0.0, 0.5, 0.9921875, 1.0, np.nan])).tolist()
        [0, 40960, 49024, 81919, -1]
    """
    return _cells_and_outer(score)[0]


def _cells_and_outer(score: FloatArray) -> tuple[NDArray[np.int32], Codes]:
    """The cells of scores, and which of them do not lie in the middle."""
    with np.errstate(invalid="ignore"):
        cell = (score * float(BAND)).astype(np.int32)
    # Near 0, near 1, and what is no number: one comparison finds all three.
    middle = BAND - 2 * _FINE_CELLS
    outer = np.flatnonzero((cell - np.int32(_FINE_CELLS)).view(np.uint32) >= middle)
    cell += np.int32(2 * BAND)
    far = score[outer]
    missing = np.isnan(far)
    cell[outer] = np.where(missing, -1, cells_of_scores(np.where(missing, 0.0, far)))
    return cell, outer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Rows of a batch by line and place."""

    line: NDArray[np.int32]
    place: NDArray[np.int32]
    score: FloatArray
    weight: FloatArray | None

    def take(self, which: Codes) -> "_Held":
        """Some of the rows."""
        return _Held(
            line=self.line[which],
            place=self.place[which],
            score=self.score[which],
            weight=None if self.weight is None else self.weight[which],
        )


def _values(score: FloatArray, weight: FloatArray | None) -> dict[str, FloatArray]:
    """What is summed up of rows, besides their number."""
    if weight is None:
        return {"s": score}
    squares = weight * weight
    return {"s": score, "w": weight, "w2": squares, "w4": squares * squares, "ws": weight * score}


def _add_up(sums: Sequence[Pairs], place: Codes, rows: _Held) -> None:
    """Add rows to arrays of sums, each at its place."""
    values = _values(rows.score, rows.weight)
    pair = np.empty(place.size, dtype=np.complex128)
    for array, (first, second) in zip(sums, PAIRED):
        pair.real = values.get(first, 1.0)
        pair.imag = values[second]
        np.add.at(array, place, pair)


class _Counter:
    """Counts of one column by (line, place), places in the order of scores.

    `middle` and `sums` are arrays by line and cell, the latter of all places where lines are few;
    `held` are rows that have none, and `packed` rows where none has: `rows` is how many come.
    """

    def __init__(
        self, *, attribute: Attribute, name: str | None, cut: float | None, rows: int, share: float
    ) -> None:
        self.attribute, self.name, self.cut, self.rows = attribute, name, cut, rows
        self.most_held = int(MOST_HELD * share)
        self.most_middle = int(MOST_MIDDLE * share) // BAND
        self.most_packed = int(MOST_PACKED * share)
        self.cut_cell = -2 if cut is None else int(unit_cells(np.array([cut]))[0])
        self.known = KeyLines()
        self.middle: list[Pairs] = []
        self.sums: list[Pairs] = []
        self.packed: PackedRows | None = None
        self.held: list[_Held] = []
        self.parts: list[Part] = []

    def add(self, rows: _Held, outer: Codes) -> None:
        """Count a batch of rows, whose places are their cells; `outer` are not in the middle."""
        packed = self._packing(rows)
        if packed is not None:
            placed = self._placed(rows)
            packed.add(placed.line, placed.place, placed.score, outer=self._apart(rows, outer))
            return
        pairs = 1 if rows.weight is None else len(PAIRED)
        if len(self.known) > max(self.most_middle // pairs, FEW_LINES):
            self._spill(np.arange(len(self.known)))
            self._hold(self._placed(rows))
            return
        if not self.middle:
            room = max(self.most_middle // pairs, FEW_LINES) * BAND
            # Memory that nothing was written to is not taken yet.
            self.middle = [np.zeros(room, dtype=np.complex128) for _ in range(pairs)]
        apart = self._apart(rows, outer)
        flat = rows.line.astype(np.int64) * BAND
        first = flat[apart]
        flat += rows.place
        flat -= 2 * BAND
        # What is counted elsewhere goes where no score of the middle lies, to be forgotten.
        flat[apart] = first
        _add_up(self.middle, flat, rows)
        if apart.size:
            self._count_apart(self._placed(rows.take(apart)), pairs)

    def _packing(self, rows: _Held) -> PackedRows | None:
        """What packs rows, if anything does: the lines of the first batch say what is less."""
        if len(self.known) > MOST_LINES:
            return None
        sparse = len(self.known) * BAND >= self.rows and self.rows <= self.most_packed
        if self.packed is None and sparse and rows.weight is None and self._holds_nothing():
            low, high = cell_limits(np.minimum(self._cells_of_places(), CELLS - 1))
            low[UNSCORED] = 0.0
            self.packed = PackedRows(rows=self.rows, low=low, width=high - low)
        return self.packed

    def _holds_nothing(self) -> bool:
        """Whether nothing has been counted or held besides what is packed."""
        return not (self.middle or self.sums or self.held or self.parts)

    def _apart(self, rows: _Held, outer: Codes) -> Codes:
        """The rows that the arrays of the middle do not count."""
        apart = np.zeros(rows.place.size, dtype=bool)
        apart[outer] = True
        if self.cut is not None:
            near = np.flatnonzero(rows.place == self.cut_cell)
            apart[near[rows.score[near] >= self.cut]] = True
        if rows.weight is not None:
            apart |= np.isnan(rows.weight)
        return np.flatnonzero(apart)

    def _placed(self, rows: _Held) -> _Held:
        """Rows by place instead of cell; those without a score or a weight are worth nothing."""
        place = rows.place.copy()
        if self.cut is not None:
            near = np.flatnonzero(place == self.cut_cell)
            higher = place > self.cut_cell
            # Added to all rows: quicker than to look for those it concerns.
            place += higher
            place += higher
            place[near[rows.score[near] == self.cut]] += 1
            place[near[rows.score[near] > self.cut]] += 2
        place[rows.place < 0] = UNSCORED
        if rows.weight is not None:
            place[np.isnan(rows.weight)] = UNSCORED
        if not np.any(place == UNSCORED):
            return replace(rows, place=place)
        weight = None if rows.weight is None else np.nan_to_num(rows.weight)
        return replace(rows, place=place, score=np.nan_to_num(rows.score), weight=weight)

    def _count_apart(self, rows: _Held, pairs: int) -> None:
        """Count rows by place: in arrays of all places where lines are few."""
        if len(self.known) > FEW_LINES:
            self._spill_sums(np.arange(FEW_LINES))
            self._hold(rows)
            return
        if not self.sums:
            self.sums = [np.zeros(FEW_LINES * ROOM, dtype=np.complex128) for _ in range(pairs)]
        _add_up(self.sums, rows.line.astype(np.int64) * ROOM + rows.place, rows)

    def _hold(self, rows: _Held) -> None:
        self.held.append(rows)
        if sum(each.place.size for each in self.held) > self.most_held:
            self._fold(np.arange(len(self.known)))
            self._settle()

    def lines(
        self, codes: Mapping[str, NDArray[np.int32]], coders: Mapping[str, Coder]
    ) -> NDArray[np.int32]:
        """The line of each row; new combinations get the next numbers."""
        names = [f"group:{column}" for column in self.attribute.columns]
        names += ["stratum"] if "stratum" in codes else []
        parts, sizes = [codes[name] for name in names], [len(coders[n].names) for n in names]
        truth = codes["truth"]
        if self.name is not None:
            states = [int(name == self.name) for name in coders["truth"].names]
            truth = np.array([*states, -1], dtype=np.int32)[truth]
        sizes.append(len(coders["truth"].names) if self.name is None else 2)
        return self.known.numbered([*parts, truth], sizes)

    def _spill(self, order: Codes) -> None:
        """Make parts of what is counted or packed, lines numbered in this order, and forget it."""
        if self.packed is not None:
            found = self.packed.added_up(order)
            line = np.repeat(np.arange(len(order)) * ROOM, found.sizes)
            self.parts.append((line + found.place, {"n": found.n, "s": found.s}))
            self.packed = None
        if self.middle:
            used = [array[: len(self.known) * BAND] for array in self.middle]
            used[0][::BAND] = 0.0
            places = np.arange(2 * BAND, 3 * BAND)
            if self.cut is not None:
                places[places > self.cut_cell] += 2
            self.middle = []
            self.parts.append(_taken(used, order, room=BAND, places=places))
        self._spill_sums(order)

    def _spill_sums(self, order: Codes) -> None:
        if self.sums:
            self.parts.append(_taken(self.sums, order, room=ROOM, places=np.arange(ROOM)))
            self.sums = []

    def _fold(self, order: Codes) -> None:
        """Make a part of the rows that are held, lines numbered in this order."""
        rows = sum(each.place.size for each in self.held)
        if rows:
            many = rows >= FEW_ROWS * len(order) and len(order) <= 2**16
            self.parts.append((_sorted_by_line if many else _sorted_at_once)(self.held, order))
        self.held = []

    def _settle(self) -> None:
        """Make one of the parts where they hold twice what the first of them does."""
        sizes = [key.size for key, _ in self.parts]
        if sum(sizes) > max(2 * sizes[0], self.most_held):
            self.parts = [_joined(self.parts)]

    def tally(self, decisions: Decisions, coders: Mapping[str, Coder]) -> Tally:
        """The counts as a tally with the keys of `score_question`, in the order of its labels."""
        lines = decisions.name_groups(self._line_keys(coders), self.attribute)
        order = np.lexsort([lines.codes[name] for name in reversed(lines.labels)])
        counts, place, sums = self._entries(order)
        labels, moved = self._cells(place)
        # Where cells were, there are their labels: fresh memory costs more than reading it.
        for start in range(0, place.size, BATCH):
            some = place[start : start + BATCH]
            some[:] = moved[some]
        codes: dict[str, NDArray[Any]] = {
            name: np.repeat(each[order].astype(np.int32), counts)
            for name, each in lines.codes.items()
        }
        return Tally(labels={**lines.labels, CELL: labels}, codes={**codes, CELL: place}, sums=sums)

    def _line_keys(self, coders: Mapping[str, Coder]) -> Tally:
        """The keys of every line."""
        columns = [f"group:{c}" for c in self.attribute.columns]
        columns += ["stratum"] if "stratum" in coders else []
        lines = np.array(self.known.keys, dtype=np.int64).reshape(-1, len(columns) + 1)
        labels, codes = {}, {}
        for i, column in enumerate(columns):
            name = "stratum" if column == "stratum" else f"group{i}"
            labels[name], codes[name] = coders[column].settled(lines[:, i])
        if self.name is None:
            labels["truth"], codes["truth"] = coders["truth"].settled(lines[:, -1])
        else:
            labels["y"], codes["y"] = ("0", "1"), lines[:, -1]
        return Tally(labels=labels, codes=codes, sums={"n": np.zeros(len(lines))})

    def _entries(self, order: Codes) -> tuple[Codes, Places, dict[str, FloatArray]]:
        """All that was counted, lines in this order: their sizes, places in order and sums."""
        if self.packed is not None and self._holds_nothing():
            found = self.packed.added_up(order)
            return found.sizes, found.place, {"n": found.n, "s": found.s}
        key, sums = self._in_line(order)
        sizes = np.diff(np.searchsorted(key, np.arange(len(order) + 1) * ROOM))
        place = np.empty(key.size, dtype=np.int32)
        np.subtract(
            key, np.repeat(np.arange(len(order)) * ROOM, sizes), out=place, casting="unsafe"
        )
        return sizes, place, sums

    def _in_line(self, order: Codes) -> Part:
        """The same as one part."""
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))

        def ranked(part: Part) -> Part:
            line = part[0] // ROOM
            return part[0] + (rank[line] - line) * ROOM, part[1]

        self.parts = [ranked(part) for part in self.parts]
        self._spill(order)
        self._fold(order)
        if not self.parts:
            return np.zeros(0, dtype=np.int64), {"n": np.zeros(0), "s": np.zeros(0)}
        if len(self.parts) == 1 and _is_in_order(self.parts[0]):
            return self.parts[0]
        return _joined(self.parts)

    def _cells_of_places(self) -> Codes:
        """The cell behind every place."""
        cells = np.arange(ROOM)
        if self.cut is not None:
            cells[self.cut_cell + 1 :] -= 1
            cells[self.cut_cell + 2 :] -= 1
        return cells

    def _cells(self, place: Places) -> tuple[tuple[str, ...], Codes]:
        """Labels of the cells that occur, and for every place the number of its label."""
        number = self._cells_of_places() * SIDES
        number += UNCUT if self.cut is None else BELOW
        if self.cut is not None:
            own = self.cut_cell
            number[own + 1 :] += ABOVE - BELOW
            number[own + 1] += AT - ABOVE
        there = np.zeros(ROOM, dtype=bool)
        there[place] = True
        there[UNSCORED] = False
        found = np.unique(number[there])
        moved = np.searchsorted(found, number)
        moved[UNSCORED] = -1
        return tuple(map(str, found.tolist())), moved


def _taken(arrays: Sequence[Pairs], order: Codes, *, room: int, places: Codes) -> Part:
    """What arrays of `room` numbers for each line hold, lines numbered in this order.

    `places` are those of the numbers of a line, in order.
    """
    lines = len(arrays[0]) // room
    sizes = np.count_nonzero(arrays[0].real.reshape(lines, room), axis=1)
    key, used = np.empty(int(sizes.sum()), dtype=np.int64), 0
    sums = {name: np.empty(key.size) for pair in PAIRED[: len(arrays)] for name in pair}
    for rank, line in enumerate(order.tolist()):
        if line >= lines:
            continue
        mine = slice(line * room, (line + 1) * room)
        there = np.flatnonzero(arrays[0].real[mine] != 0)
        here = slice(used, used + there.size)
        np.add(places[there], rank * ROOM, out=key[here])
        for array, (one, other) in zip(arrays, PAIRED):
            pairs = array[mine][there]
            sums[one][here], sums[other][here] = pairs.real, pairs.imag
        used = here.stop
    return key, sums


def _sorted_by_line(held: Sequence[_Held], order: Codes) -> Part:
    """Rows summed up by place: batches are parted into lines, and every line is sorted alone.

    Numbers of two bytes are sorted in one pass over each, near where they lie.
    """
    batches = []
    for rows in held:
        into = np.argsort(rows.line.astype(np.uint16), kind="stable")
        sizes = np.bincount(rows.line, minlength=len(order))
        ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        columns = [rows.score] if rows.weight is None else [rows.score, rows.weight]
        batches.append((ends, rows.place[into], [column[into] for column in columns]))
    rows_held = sum(rows.place.size for rows in held)
    key, used = np.empty(rows_held, dtype=np.int64), 0
    sums: dict[str, FloatArray] = {}
    for rank, line in enumerate(order.tolist()):
        mine = [(b, slice(b[0][line], b[0][line + 1])) for b in batches]
        place = np.concatenate([batch[1][part] for batch, part in mine])
        if not place.size:
            continue
        into = _by_place(place)
        columns = [
            np.concatenate([batch[2][i][part] for batch, part in mine])[into]
            for i in range(len(batches[0][2]))
        ]
        there, added = _added_up(place[into], *columns)
        here = slice(used, used + there.size)
        np.add(there, rank * ROOM, out=key[here])
        for name, each in added.items():
            sums.setdefault(name, np.empty(rows_held))[here] = each
        used = here.stop
    return key[:used], {name: each[:used] for name, each in sums.items()}


def _by_place(place: NDArray[np.int32]) -> Codes:
    """The order of rows by their places, rows of one place as they come."""
    lowest = place.min()
    if place.max() - lowest < 2**16:
        return np.argsort((place - lowest).astype(np.uint16), kind="stable")
    # One bit more than two bytes: even ones before odd ones, then by the rest.
    odd = (place & 1).astype(bool)
    halves = np.concatenate([np.flatnonzero(~odd), np.flatnonzero(odd)])
    return halves[np.argsort((place[halves] >> 1).astype(np.uint16), kind="stable")]


def _sorted_at_once(held: Sequence[_Held], order: Codes) -> Part:
    """Rows summed up by place, where lines are too many to be sorted one by one."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    line, place, score = (
        np.concatenate([getattr(rows, name) for rows in held])
        for name in ("line", "place", "score")
    )
    columns = [score]
    if held[0].weight is not None:
        columns.append(np.concatenate([rows.weight for rows in held if rows.weight is not None]))
    key = (rank * ROOM)[line]
    key += place
    if len(order) * ROOM < 2 ** (63 - ROW_BITS):
        # With its row in the lowest bits, one sort of plain numbers brings both into order.
        key <<= ROW_BITS
        key |= np.arange(place.size)
        key.sort()
        into = key & (2**ROW_BITS - 1)
        key >>= ROW_BITS
    else:
        into = np.argsort(key, kind="stable")
        key = key[into]
    return _added_up(key, *(column[into] for column in columns))


def _added_up(key: NDArray[Any], score: FloatArray, weight: FloatArray | None = None) -> Part:
    """Rows in the order of their keys as sums by key."""
    ends = np.flatnonzero(key[1:] != key[:-1]) + 1
    edges = np.concatenate([[0], ends, [key.size]])
    first = edges[:-1]
    values = _values(score, weight)
    sums = {name: np.add.reduceat(each, first) for name, each in values.items()}
    return key[first], {"n": (edges[1:] - first).astype(np.float64), **sums}


def _is_in_order(part: Part) -> bool:
    return bool(np.all(part[0][1:] > part[0][:-1]))


def _joined(parts: Sequence[Part]) -> Part:
    """Parts as one: places in order, equal ones added up."""
    if len(parts) == 2 and all(map(_is_in_order, parts)):
        few, many = sorted(parts, key=lambda part: part[0].size)
        before = np.searchsorted(many[0], few[0])
        if not np.any(np.append(many[0], -1)[before] == few[0]):
            return _inserted(many, few, before)
    key = np.concatenate([part for part, _ in parts])
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: key.size])
    sums = {}
    for name in parts[0][1]:
        values = np.concatenate([each[name] for _, each in parts])[order]
        sums[name] = values if first.size == key.size else np.add.reduceat(values, first)
    return key[first], sums


def _inserted(part: Part, more: Part, before: Codes) -> Part:
    """A part with the entries of another in between, each before this place."""
    where = before + np.arange(before.size)
    others = np.ones(part[0].size + before.size, dtype=bool)
    others[where] = False

    def joined(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
        found = np.empty(others.size, dtype=mine.dtype)
        found[others], found[where] = mine, theirs
        return found

    sums = {name: joined(each, more[1][name]) for name, each in part[1].items()}
    return joined(part[0], more[0]), sums
