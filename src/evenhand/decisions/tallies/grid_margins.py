"""Distances from a threshold, read from a tally of scores on the fixed grid instead of rows.

A cell stands for its rows by their mean score. Cells are so narrow against any bandwidth that what
is left out is far below the estimate's own error; the threshold is an edge, and rows at it have a
cell of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, prod

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.grid import AT, CELL, UNCUT, VALUE, ScoreEntries
from evenhand.decisions.tallies.near import LocalSums
from evenhand.decisions.tallies.scores import stored_scores, truth_states
from evenhand.decisions.tallies.thresholds import BINS, Margins, closer_look
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.histogram import ScoreHistogram
from evenhand.stats.thresholds.local import sum_up

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """Cells of scores by their mean distance from the threshold: one entry for each.

    `group` and `stratum` are places of labels, `stratum` and `cluster` -1 where there is none;
    `n`, `weight` and `squares` are rows, Σω and Σω².
    """

    group: Places
    stratum: Places
    cluster: Places | None
    truth: Places
    x: FloatArray
    cut: FloatArray
    n: FloatArray
    weight: FloatArray
    squares: FloatArray
    weighted: bool

    def of_stratum(self, stratum: int) -> NDArray[np.bool_]:
        """Which entries lie in a stratum, counted from 1; all of them in the whole table, 0."""
        return np.ones(self.group.size, dtype=bool) if not stratum else self.stratum == stratum - 1


def grid_margins(
    decisions: Decisions, attribute: Attribute, *, positive: str, scores: bool, lowest: bool
) -> Margins:
    """The histogram of distances from the threshold that `margins` takes from rows."""
    roles = decisions.roles
    tally = stored_scores(decisions, attribute, str(roles.score))
    entries = ScoreEntries.of(tally)
    codes = entries.tally.codes
    truth = truth_states(entries.tally, positive)
    use = (codes["group"] >= 0) & (truth >= 0)
    clustered = roles.cluster is not None
    if clustered:
        use &= codes["cluster"] >= 0
    if not scores:
        use &= entries.side != UNCUT
    found = _distances(decisions, entries.take(use), truth[use], clustered, scores)
    x = found.x
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    edges = (low, high) if scores else (min(low, 0.0), max(high, 0.0))
    summary = tally.without(CELL, VALUE, "cut", "cluster")
    whole = float(tally.sums["n"][tally.codes["group"] >= 0].sum())

    def binned(ends: tuple[float, float], bins: int, clipped: bool) -> Margins:
        return _binned(found, summary, ends, bins, (scores, lowest), whole)

    return closer_look(binned, edges, scores=scores, bins=BINS)


def _distances(
    decisions: Decisions, entries: ScoreEntries, truth: Places, clustered: bool, scores: bool
) -> Distances:
    tally, given = entries.tally, decisions.roles.threshold
    cut = np.zeros(len(tally))
    if "cut" in tally.labels:
        labels = np.array([*map(float, tally.labels["cut"]), np.nan])
        cut = labels[tally.codes["cut"]]
    elif isinstance(given, int | float):
        cut = np.full(len(tally), float(given))
    x = entries.score if scores else np.where(entries.side == AT, 0.0, entries.score - cut)
    n = tally.sums["n"]
    return Distances(
        group=tally.codes["group"],
        stratum=tally.codes.get("stratum", np.full(len(tally), -1, dtype=np.int64)),
        cluster=tally.codes["cluster"] if clustered else None,
        truth=truth,
        x=x,
        cut=cut,
        n=n,
        weight=tally.sums.get("w", n),
        squares=tally.sums.get("w2", n),
        weighted="w" in tally.sums,
    )


def _binned(
    found: Distances,
    summary: Tally,
    ends: tuple[float, float],
    bins: int,
    asked: tuple[bool, bool],
    whole: float,
) -> Margins:
    scores, lowest = asked
    low, high = ends
    width = (high - low) / bins if high > low else 1.0
    origin = low if scores else 0.0
    first, last = floor((low - origin) / width), ceil((high - origin) / width)
    scaled = (found.x - origin) / width
    number = np.where(found.x < origin, np.floor(scaled), np.ceil(scaled))
    column = np.clip(number, first, last).astype(np.int64) - first
    groups = summary.labels["group"]
    strata: tuple[str | None, ...] = (None, *summary.labels.get("stratum", ()))
    shape = (len(strata), len(groups), last - first + 1, 2)
    flat = np.ravel_multi_index((found.stratum + 1, found.group, column, found.truth), shape)

    def split(of: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of all rows, and of those whose truth is positive."""
        total = np.bincount(flat, of, minlength=prod(shape)).astype(np.float64).reshape(shape)
        # What has no stratum is counted where the whole table belongs, and all others with it.
        total[0] = total.sum(axis=0)
        return total.sum(axis=-1), total[..., 1]

    values = {}
    values["n"], values["y"] = split(found.n)
    if found.weighted:
        values["omega"], values["omega_y"] = split(found.weight)
        values["omega2"], values["omega2_y"] = split(found.squares)
    least = None
    if lowest:
        least = np.full(shape[1:3], np.inf)
        np.minimum.at(least, (found.group, column), found.x)
    numbers = np.arange(first, last + 1)
    return Margins(
        tally=summary,
        groups=groups,
        strata=strata,
        keys=tuple((name,) for name in groups),
        stratum_keys=strata[1:],
        values=values,
        positions=origin + (numbers - 0.5 * np.sign(numbers)) * width,
        width=width,
        binary=True,
        unusable=int(whole - values["n"][0].sum()),
        lowest=least,
        distances=found,
    )


def group_cuts(margins: Margins) -> FloatArray:
    """The threshold of each group; NaN where rows of one group have several."""
    assert margins.distances is not None
    held, size = margins.distances, len(margins.groups)
    if held.cut.size and held.cut.min() == held.cut.max():
        there = np.bincount(held.group, minlength=size) > 0
        return np.where(there, held.cut[0], np.nan)
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, held.group, held.cut)
    np.maximum.at(most, held.group, held.cut)
    return np.where(least == most, least, np.nan)


def distance_sums(margins: Margins, strata: Sequence[int], bandwidths: FloatArray) -> LocalSums:
    """Sums of the local fit for the groups of these strata, each with its bandwidth."""
    assert margins.distances is not None
    held, size = margins.distances, len(margins.groups)
    widest = float(np.max(bandwidths, initial=0.0, where=np.isfinite(bandwidths)))
    close = np.flatnonzero(np.abs(held.x) < widest)
    layer = held.stratum[close]
    parts = []
    for j, stratum in enumerate(strata):
        places = close[layer == stratum - 1] if stratum else close
        parts.append((places, j * size + held.group[places]))
    place = np.concatenate([places for places, _ in parts])
    cell = np.concatenate([cells for _, cells in parts])
    with np.errstate(invalid="ignore"):
        u = held.x[place] / bandwidths[cell]
        near = np.abs(u) < 1
    place, cell, u = place[near], cell[near], u[near]
    truth = held.truth[place].astype(np.float64)
    weight, squares = held.weight[place], held.squares[place]
    many = len(bandwidths)
    moments = sum_up(u, truth, weight, squares, cell, many, rows=held.n[place])

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(cell, values, minlength=many).astype(np.float64)

    window = np.column_stack([total(weight), total(weight * truth), total(squares)])
    if held.cluster is None:
        return LocalSums(moments=moments, window=window)
    pairs, where = np.unique(
        np.column_stack([cell, held.cluster[place]]), axis=0, return_inverse=True
    )
    which = where.reshape(-1).astype(np.intp)
    by_pair = sum_up(u, truth, weight, squares, which, len(pairs), rows=held.n[place])
    return LocalSums(
        moments=moments,
        window=window,
        cluster_weight=by_pair.weight,
        cluster_outcome=by_pair.outcome,
        cluster_cell=pairs[:, 0].astype(np.intp),
        cluster=pairs[:, 1].astype(np.intp),
    )


def distance_values(margins: Margins, cells: Sequence[tuple[int, int]]) -> list[ScoreHistogram]:
    """Counts at every distinct distance, one histogram for each (stratum, group)."""
    assert margins.distances is not None
    held = margins.distances
    found = []
    for stratum, group in cells:
        mine = held.of_stratum(stratum) & (held.group == group)
        values, where = np.unique(held.x[mine], return_inverse=True)
        flat = where.reshape(-1) * 2 + held.truth[mine]

        def counted(
            column: FloatArray, flat: Places = flat, mine: NDArray[np.bool_] = mine
        ) -> FloatArray:
            size = int(flat.max(initial=-1)) // 2 + 1
            summed = np.bincount(flat, column[mine], minlength=2 * size)
            return summed.astype(np.float64).reshape(1, size, 2)

        found.append(
            ScoreHistogram.of_counts(
                counted(held.n),
                positions=values,
                thresholds=0.0,
                weights=counted(held.weight) if held.weighted else None,
                squares=counted(held.squares) if held.weighted else None,
            )
        )
    return found
