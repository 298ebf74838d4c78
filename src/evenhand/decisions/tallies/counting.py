"""Scores counted on the grid a batch of rows at a time, into arrays instead of hash tables.

A line is a combination of group, stratum and truth. Few lines have an array of all cells each, more
of them one band of cells, and scores outside it are held apart. Engines other than Polars, scores
beyond [0, 1], clusters and thresholds by row go through `score_question` instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.grid import (
    ABOVE,
    AT,
    BAND,
    BELOW,
    CELL,
    CELLS,
    SIDES,
    UNCUT,
    cells_of_scores,
)
from evenhand.decisions.tallies.held import Coder, floats, key_columns, selected
from evenhand.decisions.tally import Codes, Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import distinct

# Rows of a batch: so few that its columns stay in the processor's cache.
BATCH = 2**20
# So many lines have an array of all cells each, 0.6 MB for every sum; of more, a band of 0.1 MB
# as long as all arrays together stay within this many bytes.
FEW_LINES, MOST_BYTES = 64, 2**30
# Rows outside the band are held until there are so many, then summed up.
MOST_SPARE = 4_000_000
# Combinations of keys that are looked up in an array.
MOST_LISTED = 2**24
# Scores at the threshold, and above it in its own cell, have places behind all cells.
AT_CUT, OVER_CUT, UNSCORED, ROOM = CELLS, CELLS + 1, CELLS + 2, CELLS + 3
# Middle cells from either end of [0, 1] that finer bands take the place of.
_FINE_CELLS = BAND // 128

# Places in order, as line · ROOM + place, and sums at each.
Part = tuple[Codes, dict[str, FloatArray]]


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
            most_bytes=MOST_BYTES // (len(attributes) * len(columns)),
        )
        for attribute in attributes
        for column in columns
    }
    for batch in _batches(decisions, selected(decisions, keys, columns, omega)):
        codes = {name: coders[name].codes(batch[f"key:{name}"]) for name in keys}
        weight = None if omega is None else floats(batch["omega"])
        for column in columns:
            score = floats(batch[f"score:{column}"])
            cell = unit_cells(score)
            for attribute in attributes:
                found[attribute.name, column].add(codes, coders, score, cell, weight)
    return {place: counter.tally(decisions, coders) for place, counter in found.items()}


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
    """The grid's cells of scores in [0, 1]; -1 where there is none.

    Examples:
        >>> unit_cells(np.array([0.0, 0.5, 0.9921875, 1.0, np.nan])).tolist()
        [0, 40960, 49024, 81919, -1]
    """
    with np.errstate(invalid="ignore"):
        cell = (score * float(BAND)).astype(np.int32)
    # Near 0, near 1, and what is no number: one comparison finds all three.
    middle = BAND - 2 * _FINE_CELLS
    outer = np.flatnonzero((cell - np.int32(_FINE_CELLS)).view(np.uint32) >= middle)
    cell += np.int32(2 * BAND)
    far = score[outer]
    missing = np.isnan(far)
    cell[outer] = np.where(missing, -1, cells_of_scores(np.where(missing, 0.0, far)))
    return cell


class _Counter:
    """Counts of one column by (line, place); a place is a cell, or one of three behind them all.

    `sums` are arrays by line and place: `width` places of each line, from `low` on, and at the very
    end one for what lies elsewhere, which is held apart.
    """

    def __init__(
        self, *, attribute: Attribute, name: str | None, cut: float | None, most_bytes: int
    ) -> None:
        self.attribute, self.name, self.cut = attribute, name, cut
        self.cut_cell = -2 if cut is None else int(unit_cells(np.array([cut]))[0])
        self.keys: list[tuple[int, ...]] = []
        self.sizes: list[int] = []
        self.numbers = np.zeros(0, dtype=np.int64)
        self.most_bytes = most_bytes
        self.low, self.width, self.capacity = 0, ROOM, 0
        self.sums: dict[str, FloatArray] = {}
        self.spare: list[Part] = []
        self.parts: list[Part] = []

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
        missing = np.flatnonzero(cell < 0)
        if missing.size:
            place[missing] = UNSCORED
            score = np.nan_to_num(score)
        values = {"s": score}
        if weight is not None:
            absent = np.flatnonzero(np.isnan(weight))
            if absent.size:
                place[absent] = UNSCORED
                weight = np.nan_to_num(weight)
            squares = weight * weight
            values |= {"w": weight, "w2": squares, "w4": squares * squares, "ws": weight * score}
        line = self._line(codes, coders)
        if self._has_room(place, sums=1 + len(values)):
            self._add_in_place(line, place, values)
            return
        values = {"n": np.ones(len(place)), **values}
        part = _summed_by_line(line, line * ROOM + place, values, lines=len(self.keys))
        self.parts.append(part)

    def _line(
        self, codes: Mapping[str, NDArray[np.int32]], coders: Mapping[str, Coder]
    ) -> NDArray[np.int64]:
        """The line of each row; new combinations get the next numbers."""
        names = [f"group:{column}" for column in self.attribute.columns]
        names += ["stratum"] if "stratum" in codes else []
        parts, sizes = [codes[name] for name in names], [len(coders[n].names) + 1 for n in names]
        truth = codes["truth"]
        if self.name is not None:
            states = [int(name == self.name) for name in coders["truth"].names]
            truth = np.array([*states, -1], dtype=np.int32)[truth]
        parts.append(truth)
        sizes.append(len(coders["truth"].names) + 1 if self.name is None else 3)
        flat = np.zeros(len(truth), dtype=np.int64)
        for part, size in zip(parts, sizes, strict=True):
            flat *= size
            flat += part
            flat += 1
        if prod(sizes) > MOST_LISTED:
            cells, flat = distinct(flat)
            known = {keys: line for line, keys in enumerate(self.keys)}
            of_cells = np.stack(np.unravel_index(cells, sizes), axis=1) - 1
            numbers = [known.setdefault(keys, len(known)) for keys in map(tuple, of_cells.tolist())]
            self.keys = list(known)
            return np.array(numbers, dtype=np.int64)[flat]
        if sizes != self.sizes:
            # A key has a value more than before: the same lines have other places.
            self.sizes, self.numbers = sizes, np.full(prod(sizes), -1, dtype=np.int64)
            held = np.array(self.keys, dtype=np.int64).reshape(-1, len(sizes)).T + 1
            self.numbers[np.ravel_multi_index(tuple(held), sizes)] = np.arange(len(self.keys))
        line = self.numbers[flat]
        if line.min(initial=0) < 0:
            fresh = np.unique(flat[line < 0])
            self.numbers[fresh] = len(self.keys) + np.arange(fresh.size)
            places = np.stack(np.unravel_index(fresh, sizes), axis=1) - 1
            self.keys += list(map(tuple, places.tolist()))
            line = self.numbers[flat]
        return line

    def _has_room(self, place: Codes, *, sums: int) -> bool:
        """Whether the arrays have room for all lines; where not they are made anew, if they may."""
        many = len(self.keys)
        if many <= self.capacity:
            return True
        self._spill(np.arange(many))
        self.low, self.width, self.capacity = 0, ROOM, FEW_LINES
        if many > FEW_LINES:
            # The band that holds most scores of this batch will hold most of all.
            bands = np.bincount(place // BAND, minlength=CELLS // BAND)[: CELLS // BAND]
            self.low, self.width = int(np.argmax(bands)) * BAND, BAND
            most = self.most_bytes // (8 * BAND * sums)
            self.capacity = min(many + many // 2, most)
        if many > self.capacity:
            self.capacity = 0
        return self.capacity > 0

    def _add_in_place(self, line: Codes, place: Codes, values: dict[str, FloatArray]) -> None:
        if not self.sums:
            room = self.capacity * self.width + 1
            self.sums = {name: np.zeros(room) for name in ("n", *values)}
        flat = line * self.width
        if self.width == ROOM:
            flat += place
        else:
            inside = place - self.low
            flat += inside
            away = np.flatnonzero(inside.view(np.uint64) >= self.width)
            flat[away] = self.capacity * self.width
            self._set_aside(
                line[away] * ROOM + place[away], {k: v[away] for k, v in values.items()}
            )
        np.add.at(self.sums["n"], flat, 1.0)
        for name, each in values.items():
            np.add.at(self.sums[name], flat, each)

    def _set_aside(self, key: Codes, values: dict[str, FloatArray]) -> None:
        """Hold rows that lie outside the band."""
        self.spare.append((key, {"n": np.ones(key.size), **values}))
        if sum(each.size for each, _ in self.spare) > MOST_SPARE:
            self.parts.append(_joined(self.spare))
            self.spare = []

    def _spill(self, lines: Codes) -> None:
        """Make a part of what the arrays hold, lines in this order, and forget them."""
        if not self.sums:
            return
        held = {k: each[:-1].reshape(self.capacity, self.width) for k, each in self.sums.items()}
        lines = lines[lines < self.capacity]
        keys: list[Codes] = []
        sums: dict[str, list[FloatArray]] = {name: [] for name in held}
        # A few lines at a time: what was looked through is still near when it is taken.
        for some in np.split(lines, range(8, len(lines), 8)):
            counts = held["n"][some]
            there = np.flatnonzero(counts)
            first = np.searchsorted(there, np.arange(len(some) + 1) * self.width)
            starts = some * ROOM + self.low - np.arange(len(some)) * self.width
            keys.append(there + np.repeat(starts, np.diff(first)))
            for name, each in sums.items():
                taken = counts if name == "n" else held[name][some]
                each.append(taken.reshape(-1)[there])
        self.sums = {}
        found = {name: np.concatenate(each) for name, each in sums.items()}
        self.parts.append((np.concatenate(keys), found))

    def tally(self, decisions: Decisions, coders: Mapping[str, Coder]) -> Tally:
        """The counts as a tally with the keys of `score_question`, in the order of its labels."""
        lines = decisions.name_groups(self._line_keys(coders), self.attribute)
        order = np.lexsort([lines.codes[name] for name in reversed(lines.labels)])
        key, sums = self._entries(order)
        first = np.searchsorted(key, np.arange(len(order) + 1) * ROOM)
        counts = np.diff(first)
        place = key - np.repeat(np.arange(len(order)) * ROOM, counts)
        labels, moved = self._cells(place)
        return Tally(
            labels={**lines.labels, CELL: labels},
            codes={
                **{name: np.repeat(each[order], counts) for name, each in lines.codes.items()},
                CELL: moved[place],
            },
            sums=sums,
        )

    def _line_keys(self, coders: Mapping[str, Coder]) -> Tally:
        """The keys of every line."""
        columns = [f"group:{c}" for c in self.attribute.columns]
        columns += ["stratum"] if "stratum" in coders else []
        lines = np.array(self.keys, dtype=np.int64).reshape(-1, len(columns) + 1)
        labels, codes = {}, {}
        for i, column in enumerate(columns):
            name = "stratum" if column == "stratum" else f"group{i}"
            labels[name], codes[name] = coders[column].settled(lines[:, i])
        if self.name is None:
            labels["truth"], codes["truth"] = coders["truth"].settled(lines[:, -1])
        else:
            labels["y"], codes["y"] = ("0", "1"), lines[:, -1]
        return Tally(labels=labels, codes=codes, sums={"n": np.zeros(len(lines))})

    def _entries(self, order: Codes) -> Part:
        """All that was counted, lines numbered in this order."""
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))

        def ranked(part: Part) -> Part:
            line = part[0] // ROOM
            return part[0] + (rank[line] - line) * ROOM, part[1]

        self._spill(order)
        if not self.parts:
            return np.zeros(0, dtype=np.int64), {"n": np.zeros(0), "s": np.zeros(0)}
        *others, last = map(ranked, self.parts)
        others += [ranked(part) for part in self.spare]
        rest = [part for part in others if part[0].size]
        if not rest:
            return _joined([last]) if np.any(np.diff(last[0]) <= 0) else last
        few = _joined(rest)
        where = np.searchsorted(last[0], few[0])
        both = np.append(last[0], -1)[where] == few[0]
        if both.any() or np.any(np.diff(last[0]) <= 0):
            return _joined([last, few])
        return np.insert(last[0], where, few[0]), {
            name: np.insert(each, where, few[1][name]) for name, each in last[1].items()
        }

    def _cells(self, place: Codes) -> tuple[tuple[str, ...], Codes]:
        """Labels of the cells that occur, and for every place the number of its label."""
        number = np.arange(ROOM) * SIDES
        if self.cut is None:
            number += UNCUT
        else:
            number += np.where(np.arange(ROOM) > self.cut_cell, ABOVE, BELOW)
            number[AT_CUT] = self.cut_cell * SIDES + AT
            number[OVER_CUT] = self.cut_cell * SIDES + ABOVE
        there = np.bincount(place, minlength=ROOM) > 0
        there[UNSCORED] = False
        found = np.unique(number[there])
        moved = np.searchsorted(found, number)
        moved[UNSCORED] = -1
        return tuple(map(str, found.tolist())), moved


def _joined(parts: Sequence[Part]) -> Part:
    """Parts as one: places in order, equal ones added up."""
    key = np.concatenate([part for part, _ in parts])
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: key.size])
    sums = {}
    for name in parts[0][1]:
        values = np.concatenate([each[name] for _, each in parts])[order]
        sums[name] = values if first.size == key.size else np.add.reduceat(values, first)
    return key[first], sums


def _summed_by_line(
    line: Codes, key: Codes, values: Mapping[str, FloatArray], *, lines: int
) -> Part:
    """Distinct places in order, and sums of values at each; sorted by line first, then counted."""
    order = np.argsort(line.astype(np.uint16) if lines <= 2**16 else line, kind="stable")
    held = key[order]
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
