"""Scores between 0 and 1 around one threshold, tallied in a single pass over a large table.

A grid of fixed width needs no look at the scores first. With the mean distance of every cell's
rows it also gives the sums of a local fit, so that no second pass over the rows is needed.
"""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.decisions.cuts import as_number
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
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
    # Numbered from the lowest cell: a score at the threshold starts the cell above it.
    number = ((score - cut) * float(LARGE_BINS) + float(ceil(cut * LARGE_BINS))).floor()
    # A score elsewhere, NaN too, has no cell, and neither has one that is missing.
    inside = (score >= 0) & (score <= 1)
    placed = decisions.frame.select(
        *(expression.alias(name) for name, expression in keys.items()),
        truth.alias("y"),
        score.alias("score"),
        nw.when(inside).then(number).cast(nw.Int32).alias("bin"),
    )
    columns = decisions.collect(
        placed.group_by(*keys, "y", "bin").agg(nw.len().alias("n"), nw.col("score").sum())
    )
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
