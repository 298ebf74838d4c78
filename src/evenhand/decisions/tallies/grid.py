"""A fixed grid for scores: counts that merge, whatever the data.

Between 0 and 1 there are five bands of up to 16,384 cells: 2⁻¹⁴ wide in the middle, 2⁻²¹ within
1/128 of 0 and of 1, 2⁻²⁸ within 2⁻¹⁴ of them, where scores of rare classes crowd. Widths are
powers of two and distances to 1 are exact there, so every engine finds the same cell. Scores
below 0 and above 1 have grids of their own, of |s|/(1+|s|) and of 1−1/s. Nothing depends on the
data: the counts of any two parts can be added. Whole-number scores are their own cells.

A row's cell is written as 4·cell + side: below its threshold, at it, above it, or without one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from typing import TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.tally import Codes, Tally
from evenhand.stats.estimate import FloatArray

# Cells of a band; its number times this is where its cells begin.
BAND = 16_384
CELLS = 5 * BAND
# Beyond this many values, whole-number scores go through the grid like others.
MOST_WHOLE = 65_536
SIDES = 4
BELOW, AT, ABOVE, UNCUT = range(SIDES)
CELL, VALUE = "cell", "value"
# Entries that are placed at a time.
BLOCK = 2**18
# So many labels of cells are kept taken apart.
MOST_KNOWN = 4
Labels = tuple[str, ...]
T = TypeVar("T")
_FINE, _FINEST = 2.0**-7, 2.0**-14


def grid_cell(score: nw.Expr, *, unit: bool = False) -> nw.Expr:
    """The cell of a score; cells are numbered in the order of scores, from 0 for a score of 0.

    With `unit` all scores are known to lie within [0, 1].
    """
    inside = _unit_cell(score)
    if unit:
        return inside
    low, high = -score, nw.when(score > 1).then(score).otherwise(nw.lit(1.0))
    below = nw.when(score < 0).then(low).otherwise(nw.lit(0.0))
    return (
        nw.when(score < 0)
        .then(nw.lit(-1) - _unit_cell(below / (below + 1.0)))
        .otherwise(
            nw.when(score > 1).then(_unit_cell((high - 1.0) / high) + CELLS).otherwise(inside)
        )
    )


def _unit_cell(score: nw.Expr) -> nw.Expr:
    def counted(value: nw.Expr, cells: int) -> nw.Expr:
        return (value * float(cells)).floor().cast(nw.Int64)

    above = nw.lit(1.0) - score
    upper = (
        nw.when(above < _FINEST)
        .then(nw.lit(5 * BAND - 1) - counted(above, 2**28))
        .otherwise(nw.lit(4 * BAND - 1) - counted(above, 2**21))
    )
    lower = (
        nw.when(score < _FINEST).then(counted(score, 2**28)).otherwise(counted(score, 2**21) + BAND)
    )
    middle = nw.when(score < _FINE).then(lower).otherwise(counted(score, 2**14) + 2 * BAND)
    return nw.when(above < _FINE).then(upper).otherwise(middle)


def cells_of_scores(scores: FloatArray) -> Codes:
    """The same of an array.

    Examples:
        >>> cells_of_scores(np.array([-3.0, 0.0, 0.5, 1.0, 7.0])).tolist()
        [-45057, 0, 40960, 81919, 128731]
    """
    s = np.asarray(scores, dtype=np.float64)
    size = np.maximum(-s, 0.0)
    large = np.maximum(s, 1.0)
    found = np.where(s > 1, _unit_cells((large - 1.0) / large) + CELLS, _unit_cells(s))
    return np.where(s < 0, -1 - _unit_cells(size / (size + 1.0)), found)


def _unit_cells(s: FloatArray) -> Codes:
    s = np.clip(s, 0.0, 1.0)
    above = 1.0 - s

    def counted(value: FloatArray, cells: int) -> Codes:
        return np.floor(value * float(cells)).astype(np.int64)

    upper = np.where(
        above < _FINEST, 5 * BAND - 1 - counted(above, 2**28), 4 * BAND - 1 - counted(above, 2**21)
    )
    lower = np.where(s < _FINEST, counted(s, 2**28), counted(s, 2**21) + BAND)
    middle = np.where(s < _FINE, lower, counted(s, 2**14) + 2 * BAND)
    return np.where(above < _FINE, upper, middle)


def cell_limits(cell: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """The least and the greatest score of cells, as numbered by `grid_cell`.

    Examples:
        >>> low, high = cell_limits(np.array([0, 2 * BAND + 8192, 5 * BAND - 1]))
        >>> low.tolist(), high.tolist()
        ([0.0, 0.5, 0.9999999962747097], [3.725290298461914e-09, 0.50006103515625, 1.0])
        >>> [end.tolist() for end in cell_limits(np.array([-1 - 2 * BAND - 8192]))]
        [[-1.0002441704309608], [-1.0]]
    """
    cell = np.asarray(cell, np.int64)
    copy = cell // CELLS
    place = np.where(copy < 0, -1 - cell, cell - copy * CELLS)
    low, high = _unit_limits(place)
    with np.errstate(divide="ignore"):
        below = -high / (1.0 - high), -low / (1.0 - low)
        above = 1.0 / (1.0 - low), 1.0 / (1.0 - high)
    ends = (
        np.where(copy < 0, below[i], np.where(copy > 0, above[i], (low, high)[i])) for i in (0, 1)
    )
    first, last = ends
    return first, last


def _unit_limits(cell: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    band, place = np.divmod(cell, BAND)
    width = np.array([2.0**-28, 2.0**-21, 2.0**-14, 2.0**-21, 2.0**-28])[band]
    below = place * width
    above = 1.0 - (BAND - 1 - place) * width
    lower = band < 3
    return np.where(lower, below, above - width), np.where(lower, below + width, above)


def sided(cell: nw.Expr, score: nw.Expr, cut: nw.Expr | float | None) -> nw.Expr:
    """A cell with the side of its threshold on which the score lies."""
    if cut is None:
        return cell * SIDES + UNCUT
    side = nw.when(score < cut).then(nw.lit(BELOW)).otherwise(
        nw.when(score == cut).then(nw.lit(AT)).otherwise(nw.lit(ABOVE))
    )  # fmt: skip
    if isinstance(cut, nw.Expr):
        side = nw.when(cut.is_null()).then(nw.lit(UNCUT)).otherwise(side)
    return cell * SIDES + side


def on_one_grid(one: Tally, other: Tally) -> tuple[Tally, Tally]:
    """Two tallies of scores in the same cells: whole numbers go on the grid where the other's do.

    Also where both together have more values than are kept apart.
    """
    held = [VALUE in each.labels for each in (one, other)]
    if not any(held):
        return one, other
    if all(held) and not are_too_many((*one.labels[VALUE], *other.labels[VALUE])):
        return one, other
    return gridded(one), gridded(other)


def are_too_many(labels: Sequence[str]) -> bool:
    """Whether these cells have more whole-number scores than are kept apart."""
    return len(labels) > MOST_WHOLE and len({int(name) // SIDES for name in labels}) > MOST_WHOLE


def gridded(tally: Tally) -> Tally:
    """A tally of whole-number scores by the cells of the grid instead of their values.

    Examples:
        >>> tally = Tally.of({"value": [4 * 7 + ABOVE, 4 * 8 + AT]}, {"n": [2, 1]})
        >>> gridded(tally).labels["cell"] == (str(4 * cells_of_scores(np.array([7.0]))[0] + 2),
        ...                                   str(4 * cells_of_scores(np.array([8.0]))[0] + 1))
        True
    """
    if VALUE not in tally.labels:
        return tally
    value = np.array(tally.labels[VALUE], dtype=np.int64)
    cell = cells_of_scores((value // SIDES).astype(np.float64)) * SIDES + value % SIDES
    labels, places = np.unique(cell, return_inverse=True)
    moved = np.append(places.reshape(-1), -1)
    return Tally(
        labels={
            CELL if k == VALUE else k: tuple(map(str, labels.tolist())) if k == VALUE else v
            for k, v in tally.labels.items()
        },
        codes={
            CELL if k == VALUE else k: moved[v] if k == VALUE else v for k, v in tally.codes.items()
        },
        sums=tally.sums,
    ).compact()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEntries:
    """The cells of scored rows, one entry for each, with the mean of their scores.

    `cell` is the number of the cell, or the score itself where scores are whole numbers; rows
    whose cell is unknown are left out. The mean is that over all clusters, where there are any.
    """

    tally: Tally
    cell: Codes
    side: Codes
    score: FloatArray
    exact: bool

    @classmethod
    def of(cls, tally: Tally, whole: Tally | None = None) -> "ScoreEntries":
        """The entries of a tally of scores by group, cell and the like.

        Of some clusters alone, `whole` is the tally of all, without the key of clusters.
        """
        key = VALUE if VALUE in tally.labels else CELL
        known = tally.codes[key] >= 0
        there = tally if known.all() else tally.take(known)
        cells, sides = cells_and_sides(tally.labels[key])
        cell, side = cells[there.codes[key]], sides[there.codes[key]]
        if key == VALUE:
            score = cell.astype(np.float64)
        else:
            every = there
            if "cluster" in there.labels:
                every = there.without("cluster") if whole is None else whole
            with np.errstate(all="ignore"):
                score = every.sums["s"] / every.sums["n"]
            if every is not there:
                score = score[places_among(there, every)]
        return cls(tally=there, cell=cell, side=side, score=score, exact=key == VALUE)

    def take(self, which: NDArray[np.bool_]) -> "ScoreEntries":
        """The entries of a mask."""
        if which.all():
            return self
        return ScoreEntries(
            tally=self.tally.take(which),
            cell=self.cell[which],
            side=self.side[which],
            score=self.score[which],
            exact=self.exact,
        )


def places_among(part: Tally, whole: Tally) -> Codes:
    """Where the cells of a tally lie in another that has fewer keys, all of them its own too.

    Examples:
        >>> whole = Tally.of({"cell": [7, 3]}, {"n": [2, 4]})
        >>> part = Tally.of({"cell": [3, 7, 3], "cluster": ["a", "a", "b"]}, {"n": [1, 2, 3]})
        >>> places_among(part, whole).tolist()
        [1, 0, 1]
    """
    sizes = [len(labels) + 1 for labels in whole.labels.values()]

    def flat(tally: Tally) -> Codes:
        key = np.zeros(len(tally), dtype=np.int64)
        for name, size in zip(whole.labels, sizes):
            key = key * size + tally.codes[name] + 1
        return key

    for name, labels in whole.labels.items():
        part = part if part.labels[name] == labels else part.relabel(name, labels)
    keys, wanted = flat(whole), flat(part)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], wanted)
    return np.asarray(order[np.minimum(at, max(order.size - 1, 0))] if order.size else at)


def known_labels(say: Callable[[Labels], T]) -> Callable[[Labels], T]:
    """What a function says of labels, kept for the last few of them: blocks share theirs.

    The same labels are the same object, for what they are is long to compare.
    """
    known: list[tuple[Labels, T]] = []

    @wraps(say)
    def said(labels: Labels) -> T:
        for held, before in known:
            if held is labels:
                return before
        found = say(labels)
        known.insert(0, (labels, found))
        del known[MOST_KNOWN:]
        return found

    return said


@known_labels
def cells_and_sides(labels: Labels) -> tuple[Codes, Codes]:
    """What the labels of cells, or of whole-number scores, say; taken apart once for all blocks.

    Examples:
        >>> [part.tolist() for part in cells_and_sides(("28", "33"))]
        [[7, 8], [0, 1]]
    """
    numbers = np.array(labels, dtype=np.int64)
    cells, sides = np.floor_divide(numbers, SIDES), numbers % SIDES
    for part in (cells, sides):
        part.flags.writeable = False
    return cells, sides


def by_block(tally: Tally) -> list[Tally]:
    """The tally a few groups at a time, whose arrays stay near; whole where groups lie scattered.

    Examples:
        >>> [len(part) for part in by_block(Tally.of({"group": ["a", "b"]}, {"n": [1, 2]}))]
        [2]
    """
    return [tally.take(part) for part in blocks(tally.codes["group"])]


def blocks(line: Codes) -> list[slice]:
    """Where such blocks begin and end, by the number of the group or line of every entry."""
    cuts = np.arange(0, line.size, BLOCK)
    if cuts.size > 1 and bool(np.all(line[1:] >= line[:-1])):
        starts = np.unique(np.searchsorted(line, line[cuts]))
        return [slice(a, b) for a, b in pairwise([*starts.tolist(), line.size])]
    return [slice(0, line.size)]


def in_line(parts: Sequence[Tally]) -> Tally:
    """Tallies of the same keys one after the other; their labels are the same, or some of them."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Tally(
        labels={key: max((p.labels[key] for p in parts), key=len) for key in first.labels},
        codes={key: np.concatenate([p.codes[key] for p in parts]) for key in first.codes},
        sums={name: np.concatenate([p.sums[name] for p in parts]) for name in first.sums},
    )
