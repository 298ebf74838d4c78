"""Scores between 0 and 1 around one threshold, tallied in a single pass over a large table.

A grid of fixed width needs no look at the scores first. With the mean distance of every cell's
rows it also gives the sums of a local fit, so that no second pass over the rows is needed.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.cuts import as_number
from evenhand.decisions.read import batches_come
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.coding import RowLines
from evenhand.decisions.tallies.held import floats
from evenhand.decisions.tallies.near import LocalSums
from evenhand.decisions.tallies.thresholds import (
    LARGE,
    LARGE_BINS,
    Margins,
    first_values,
    is_squeezed,
    truth_expression,
)
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.histogram import cell_moments

# Rows of a batch: so few that its columns stay in the processor's cache.
BATCH = 2**16
# Cells of a line: those of the grid, one more where the threshold cuts one in two, and UNPLACED.
UNPLACED = LARGE_BINS + 2
ROOM = UNPLACED + 1
# Lines, of group, stratum and truth, whose arrays are not much longer than a batch.
MOST_LINES = 2**10
# Bandwidths from this many cells on are rounded to whole cells, which moves them by 5 % at most.
FEWEST_CELLS = 10


def has_unit_grid(decisions: Decisions) -> bool:
    """Whether one threshold within (0, 1) cuts unweighted rows, so that the grid may fit."""
    roles = decisions.roles
    if roles.weight or roles.review_share or roles.cluster:
        return False
    cut = roles.threshold
    return isinstance(cut, int | float) and 0 < cut < 1


def unit_margins(
    decisions: Decisions, attribute: Attribute, *, positive: str | None
) -> tuple[Margins | None, bool]:
    """Margins of a large table of scores within [0, 1], and whether the grid fits the scores.

    None where the table is small enough for the finer grid, or the grid does not fit.
    """
    if not has_unit_grid(decisions) or not _may_fit(decisions):
        return None, False
    roles = decisions.roles
    cut = float(decisions.threshold_expression(roles.score))  # type: ignore[arg-type]
    # Every column that is made is paid for in each row: what fits stays as it is.
    score = as_number(decisions.schema, str(roles.score))
    truth = nw.col(str(roles.truth)) if positive is None else truth_expression(decisions, positive)
    keys = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    keys |= decisions.stratum_key()
    columns = None
    if batches_come(decisions.engine):
        columns = _in_arrays(decisions, {**keys, "y": truth, "score": score}, cut)
    if columns is None:
        columns = _by_engine(decisions, {**keys, "y": truth, "score": score}, cut)
    if None in columns["bin"] and not decisions.is_probability(str(roles.score)):
        return None, False
    found = _gathered(decisions, attribute, columns, list(keys), cut)
    counts = found.values["n"][0].sum(axis=0)
    if is_squeezed(counts, LARGE_BINS):
        return None, False
    below = ceil(cut * LARGE_BINS)
    if not (counts[:below].any() and counts[below:].any()):
        decisions.check()
    return (found if counts.sum() > LARGE else None), True


def whole_cells(bandwidths: FloatArray) -> FloatArray | None:
    """Bandwidths rounded to whole cells of the grid; None where one is too narrow for that."""
    cells = np.round(bandwidths * LARGE_BINS)
    return None if (cells < FEWEST_CELLS).any() else cells / LARGE_BINS


def near_sums(tallied: Margins, strata: Sequence[int], bandwidths: FloatArray) -> LocalSums:
    """Sums of the local fit at bandwidths of whole cells, for the groups of these strata."""
    assert tallied.totals is not None
    assert tallied.middles is not None
    counts = np.concatenate([tallied.histogram(k).counts for k in strata])
    totals = np.concatenate([tallied.totals[k] for k in strata])
    moments, inside = cell_moments(
        counts, totals=totals, middles=tallied.middles, width=tallied.width, bandwidth=bandwidths
    )
    n, yes = inside.sum(axis=(1, 2)), inside[:, :, 1].sum(axis=1)
    return LocalSums(moments=moments, window=np.column_stack([n, yes, n]))


def _may_fit(decisions: Decisions) -> bool:
    """False where the scores are already known to leave [0, 1]."""
    known = "survey" in decisions.__dict__
    return not known or decisions.is_probability(str(decisions.roles.score))


def _by_engine(
    decisions: Decisions, named: Mapping[str, nw.Expr], cut: float
) -> dict[str, list[Any]]:
    """Rows and the sum of their scores by keys, truth `y` and `bin`, all but the score the keys."""
    score: Any = named["score"]
    # Numbered from the lowest cell: a score at the threshold starts the cell above it.
    number = ((score - cut) * float(LARGE_BINS) + float(ceil(cut * LARGE_BINS))).floor()
    # A score elsewhere, NaN too, has no cell, and neither has one that is missing.
    inside = (score >= 0) & (score <= 1)
    placed = decisions.frame.select(
        *(expression.alias(name) for name, expression in named.items()),
        nw.when(inside).then(number).cast(nw.Int32).alias("bin"),
    )
    keys = [name for name in named if name != "score"]
    grouped = placed.group_by(*keys, "bin").agg(nw.len().alias("n"), nw.col("score").sum())
    return decisions.collect(grouped)


def _in_arrays(
    decisions: Decisions, named: Mapping[str, nw.Expr], cut: float
) -> dict[str, list[Any]] | None:
    """The same counted into arrays, a batch at a time: half of what hashing every cell takes.

    None where the keys have too many combinations for arrays.
    """
    keys = [name for name in named if name != "score"]
    lines = RowLines()
    rows, total = np.zeros(0), np.zeros(0)
    frame = decisions.frame.select(*(e.alias(name) for name, e in named.items()))
    for batch in decisions.batches(frame, rows=BATCH):
        line = lines.numbered(batch, keys)
        if len(lines) > MOST_LINES:
            return None
        more = np.zeros(len(lines) * ROOM - rows.size)
        rows, total = np.append(rows, more), np.append(total, more)
        score = floats(batch["score"])
        place = (line * np.int32(ROOM) + _cells(score, cut)).astype(np.intp)
        rows += np.bincount(place, minlength=rows.size)
        total += np.bincount(place, score, minlength=rows.size)
    there = np.flatnonzero(rows)
    of_line = (there // ROOM).tolist()
    found: dict[str, list[Any]] = {
        name: [lines.keys[line][i] for line in of_line] for i, name in enumerate(keys)
    }
    cells = (there % ROOM).tolist()
    found["bin"] = [None if cell == UNPLACED else cell for cell in cells]
    # What has no cell may have no sum either.
    total[UNPLACED::ROOM] = 0.0
    return found | {"n": rows[there].tolist(), "score": total[there].tolist()}


def _cells(score: FloatArray, cut: float) -> NDArray[np.int32]:
    """The cell of each score, numbered as by the engine; UNPLACED beyond [0, 1], and for NaN."""
    scaled = (score - cut) * float(LARGE_BINS)
    scaled += float(ceil(cut * LARGE_BINS))
    if score.min(initial=0.0) >= 0 and score.max(initial=0.0) <= 1:
        return scaled.astype(np.int32)
    inside = (score >= 0) & (score <= 1)
    return np.where(inside, scaled, float(UNPLACED)).astype(np.int32)


def _gathered(
    decisions: Decisions,
    attribute: Attribute,
    columns: dict[str, list[Any]],
    keys: list[str],
    cut: float,
) -> Margins:
    """The engine's answer as arrays by (stratum, group, cell, truth)."""
    below, cells = ceil(cut * LARGE_BINS), floor((1 - cut) * LARGE_BINS) + 1
    cells += below
    raw: dict[str, Sequence[float]] = {"n": columns["n"], "score": columns["score"]}
    tally = Tally.of({k: columns[k] for k in (*keys, "y", "bin")}, raw)
    named = decisions.name_groups(tally, attribute)
    group = named.codes["group"]
    layer = named.codes.get("stratum", np.full(len(group), -1, dtype=np.int64))
    strata: tuple[str | None, ...] = (None, *named.labels.get("stratum", ()))
    names = {key: [*named.labels[key], "-1"] for key in ("y", "bin")}
    truth, cell = (np.array(names[k], dtype=np.int64)[named.codes[k]] for k in ("y", "bin"))
    use = (group >= 0) & (truth >= 0) & (truth <= 1) & (cell >= 0)
    shape = (len(strata), len(named.labels["group"]), cells, 2)

    def dense(values: FloatArray) -> FloatArray:
        inside = use & (layer >= 0)
        array = np.zeros(shape)
        for keep, first in ((use, np.zeros_like(layer)), (inside, layer + 1)):
            place = (first[keep], group[keep], np.minimum(cell[keep], cells - 1), truth[keep])
            flat = np.ravel_multi_index(place, shape)
            array += np.bincount(flat, values[keep], minlength=array.size).reshape(shape)
        return array

    counts = dense(tally.sums["n"])
    totals = dense(np.nan_to_num(tally.sums["score"])) - cut * counts
    middles = (np.arange(cells) - below + 0.5) / LARGE_BINS
    everybody = counts[0].sum(axis=(0, 2))
    with np.errstate(all="ignore"):
        means = totals[0].sum(axis=(0, 2)) / everybody
    rows = range(len(group))
    parts = [columns[k] for k in keys if k.startswith("group")]
    first = first_values(rows, group, shape[1])
    layers = first_values(rows, layer, len(strata) - 1)
    return Margins(
        tally=named,
        groups=named.labels["group"],
        strata=strata,
        keys=tuple(tuple(part[i] for part in parts) for i in first),
        stratum_keys=tuple(columns["stratum"][i] for i in layers),
        values={"n": counts.sum(axis=-1), "y": counts[..., 1]},
        positions=np.where(everybody > 0, means, middles),
        width=1.0 / LARGE_BINS,
        binary=set(named.labels["y"]) <= {"0", "1"},
        unusable=int(tally.sums["n"][(group >= 0) & ~use].sum()),
        middles=middles,
        totals=totals,
    )
