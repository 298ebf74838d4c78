"""Distances from a threshold, read from a tally of scores on the fixed grid instead of rows.

A cell stands for its rows by their mean score. Cells are so narrow against any bandwidth that what
is left out is far below the estimate's own error; the threshold is an edge, and rows at it have a
cell of their own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import DistantClusters
from evenhand.decisions.tallies.grid import (
    AT,
    CELL,
    UNCUT,
    VALUE,
    ScoreEntries,
    blocks,
    by_block,
    in_line,
)
from evenhand.decisions.tallies.near import LocalPairs, LocalSums
from evenhand.decisions.tallies.scores import (
    as_gridded,
    clustered_rows,
    score_question,
    stored_scores,
    truth_states,
)
from evenhand.decisions.tallies.thresholds import BINS, Margins, closer_look
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.histogram import ScoreHistogram
from evenhand.stats.thresholds.local import LocalMoments, sum_up
from evenhand.stats.weights import distinct

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
    truth: NDArray[Any]
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
    tally = stored_scores(decisions, attribute, str(decisions.roles.score))
    parts = by_block(tally)
    found = _together(
        (_distances(decisions.roles, part, positive, scores) for part in parts), tally
    )
    x = found.x
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    edges = (low, high) if scores else (min(low, 0.0), max(high, 0.0))
    summary = in_line([part.without(CELL, VALUE, "cut", "cluster", "clustered") for part in parts])
    whole = float(summary.sums["n"][summary.codes["group"] >= 0].sum())

    def binned(ends: tuple[float, float], bins: int, clipped: bool) -> Margins:
        return _binned(found, summary, ends, bins, (scores, lowest), whole)

    return closer_look(binned, edges, scores=scores, bins=BINS)


def _distances(
    roles: Roles, tally: Tally, positive: str, scores: bool, whole: Tally | None = None
) -> Distances:
    """The entries of a tally that have a group, a truth and, unless scores do, a threshold.

    Of some clusters alone, `whole` is the tally of all.
    """
    entries = ScoreEntries.of(tally, whole)
    truth = truth_states(entries.tally, positive)
    codes = entries.tally.codes
    use = (codes["group"] >= 0) & (truth >= 0)
    if roles.cluster is not None:
        use &= codes.get("cluster", codes.get("clustered", codes["group"])) >= 0
    clustered = roles.cluster is not None and "cluster" in codes
    if not scores:
        use &= entries.side != UNCUT
    entries, given = entries.take(use), roles.threshold
    tally, truth = entries.tally, truth if use.all() else truth[use]
    cut = np.broadcast_to(float(given) if isinstance(given, int | float) else 0.0, len(tally))
    if "cut" in tally.labels:
        labels = np.array([*map(float, tally.labels["cut"]), np.nan])
        cut = labels[tally.codes["cut"]]
    x = entries.score if scores else np.where(entries.side == AT, 0.0, entries.score - cut)
    n = tally.sums["n"]
    return Distances(
        group=tally.codes["group"],
        stratum=tally.codes.get("stratum", np.broadcast_to(np.int64(-1), len(tally))),
        cluster=tally.codes["cluster"] if clustered else None,
        truth=truth,
        x=x,
        cut=cut,
        n=n,
        weight=tally.sums.get("w", n),
        squares=tally.sums.get("w2", n),
        weighted="w" in tally.sums,
    )


def _together(parts: Iterable[Distances], tally: Tally) -> Distances:
    """The entries of all parts of a tally; what is the same everywhere is not written out.

    Where no entry was left out, the tally has the columns as they are. The others are written where
    they stay as each part comes: fresh memory costs more than what is done with it.
    """
    x, truth, used = np.empty(len(tally)), np.empty(len(tally), dtype=np.int8), 0
    found = []
    for part in parts:
        here = slice(used, used + part.x.size)
        x[here], truth[here], used = part.x, part.truth, here.stop
        found.append(replace(part, x=x[here], truth=truth[here]))
    if len(found) == 1:
        return found[0]
    weighted = found[0].weighted
    held = {**tally.codes, "n": tally.sums["n"]}
    held |= {"weight": tally.sums["w"], "squares": tally.sums["w2"]} if weighted else {}

    def joined(name: str) -> NDArray[Any]:
        if used == len(tally) and name in held:
            return held[name]
        columns = [getattr(part, name) for part in found]
        if all(column.strides == (0,) for column in columns):
            return np.broadcast_to(columns[0][:1].copy(), used)
        return np.concatenate(columns)

    n = joined("n")
    return Distances(
        group=joined("group"),
        stratum=joined("stratum"),
        cluster=None if found[0].cluster is None else joined("cluster"),
        truth=truth[:used],
        x=x[:used],
        cut=joined("cut"),
        n=n,
        weight=joined("weight") if weighted else n,
        squares=joined("squares") if weighted else n,
        weighted=weighted,
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
    groups = summary.labels["group"]
    strata: tuple[str | None, ...] = (None, *summary.labels.get("stratum", ()))
    shape = (len(groups), len(strata), last - first + 1, 2)
    columns = {"n": found.n}
    if found.weighted:
        columns |= {"omega": found.weight, "omega2": found.squares}
    sums = {name: np.zeros(prod(shape)) for name in columns}
    least = np.full((shape[0], shape[2]), np.inf) if lowest else None
    for part in blocks(found.group):
        x, group = found.x[part], found.group[part]
        scaled = (x - origin) / width
        # Away from the threshold on either side.
        number = np.copysign(np.ceil(np.abs(scaled)), scaled)
        column = np.clip(number, first, last).astype(np.int64) - first
        flat = group.astype(np.int64)
        for place, size in zip((found.stratum[part] + 1, column, found.truth[part]), shape[1:]):
            flat *= size
            flat += place
        start = int(flat.min(initial=0))
        flat -= start
        for name, each in columns.items():
            added = np.bincount(flat, each[part])
            sums[name][start : start + added.size] += added
        if least is not None:
            np.minimum.at(least, (group, column), x)
    values = {}
    for name, each in sums.items():
        total = np.moveaxis(each.reshape(shape), 1, 0)
        if len(strata) > 1:
            # What has no stratum is counted where the whole table belongs, and all others with it.
            total[0] = total.sum(axis=0)
        yes = "y" if name == "n" else f"{name}_y"
        values[name], values[yes] = total[..., 0] + total[..., 1], total[..., 1]
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
    widths = bandwidths.reshape(len(strata), size)
    parts = blocks(held.group)
    if len(parts) == 1 or held.cluster is not None:
        return _block_sums(held, slice(0, held.x.size), strata, widths, 0)
    found = {}
    for part in parts:
        first, last = int(held.group[part.start]), int(held.group[part.stop - 1]) + 1
        found[first, last] = _block_sums(held, part, strata, widths[:, first:last], first)
    return _spread_out(found, len(strata), size)


def distant_pairs(
    decisions: Decisions,
    attribute: Attribute,
    *,
    positive: str,
    strata: Sequence[int],
    bandwidths: FloatArray,
) -> DistantClusters | None:
    """The clusters behind `distance_sums`, where they stay in Spark."""
    score = str(decisions.roles.score)
    tally = stored_scores(decisions, attribute, score)
    if decisions.roles.cluster is None or "clustered" not in tally.labels:
        return None
    rows = decisions._on_engine
    part = DistancePart(
        roles=decisions.roles,
        whole=clustered_rows(tally),
        positive=positive,
        strata=tuple(strata),
        widths=bandwidths.reshape(len(strata), len(tally.labels["group"])),
    )
    question = score_question(rows, attribute, score)
    return DistantClusters(decisions=rows, question=question, first=part)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistancePart:
    """A function that makes of a tally of scores by some clusters their sums of the local fit.

    `whole` is the tally of all clusters, `widths` the bandwidths by stratum and group.
    """

    roles: Roles
    whole: Tally
    positive: str
    strata: tuple[int, ...]
    widths: FloatArray

    def __call__(self, part: Tally) -> LocalPairs:
        """The sums by cell and cluster."""
        tally = as_gridded(part, self.whole)
        held = _distances(self.roles, tally, self.positive, False, self.whole)
        found = _block_sums(held, slice(0, held.x.size), self.strata, self.widths, 0).pairs
        assert found is not None
        return found


def _spread_out(found: Mapping[tuple[int, int], LocalSums], strata: int, size: int) -> LocalSums:
    """The sums of all blocks of groups as those of the whole."""

    def joined(take: Callable[[LocalSums], FloatArray]) -> FloatArray:
        example = take(next(iter(found.values())))
        array = np.zeros((strata, size, *example.shape[1:]))
        for (first, last), part in found.items():
            array[:, first:last] = take(part).reshape(strata, last - first, *example.shape[1:])
        return array.reshape(strata * size, *example.shape[1:])

    names = ("n", "weight", "outcome", "squared", "squared_outcome", "n_below")
    moments = {name: joined(lambda part, name=name: getattr(part.moments, name)) for name in names}  # type: ignore[misc]
    return LocalSums(moments=LocalMoments(**moments), window=joined(lambda part: part.window))


def _block_sums(
    held: Distances, part: slice, strata: Sequence[int], widths: FloatArray, lowest: int
) -> LocalSums:
    """The sums of some groups, from `lowest` on; `widths` by stratum and group."""
    size, bandwidths = widths.shape[1], widths.reshape(-1)
    widest = float(np.max(bandwidths, initial=0.0, where=np.isfinite(bandwidths)))
    close = np.flatnonzero(np.abs(held.x[part]) < widest) + part.start
    group = held.group[close] - lowest
    parts = []
    for j, stratum in enumerate(strata):
        mine = held.stratum[close] == stratum - 1 if stratum else slice(None)
        parts.append((close[mine], j * size + group[mine]))
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
    width = int(held.cluster.max(initial=0)) + 1
    pairs, which = distinct(cell * width + held.cluster[place])
    by_pair = sum_up(u, truth, weight, squares, which, len(pairs), rows=held.n[place])
    found = LocalPairs(
        weight=by_pair.weight, outcome=by_pair.outcome, cell=pairs // width, cluster=pairs % width
    )
    return LocalSums(moments=moments, window=window, pairs=found)


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
