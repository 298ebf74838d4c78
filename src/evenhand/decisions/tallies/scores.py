"""Tallies of scores: placements for the area under the curve, and histograms."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.columns import where_known
from evenhand.decisions.cuts import as_number
from evenhand.decisions.question import Question
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import DistantClusters, stay_in_spark
from evenhand.decisions.tallies.grid import (
    CELL,
    UNCUT,
    VALUE,
    ScoreEntries,
    by_block,
    cell_limits,
    cells_and_sides,
    grid_cell,
    gridded,
    in_line,
    known_labels,
    places_among,
    sided,
)
from evenhand.decisions.tallies.held import HeldScores, hold_scores
from evenhand.decisions.tallies.placed import placed_below, placed_sides
from evenhand.decisions.tallies.sets import table_name
from evenhand.decisions.tally import Codes, Tally
from evenhand.decisions.wide import MOST_HELD
from evenhand.stats.estimate import FloatArray

BINS, TENTHS = 1_000, 10
# Whole-number scores beyond this are as good as measured: they go on the grid.
LARGEST_WHOLE = 2**40


def is_class(decisions: Decisions, name: str) -> nw.Expr:
    """Whether the truth is this class, as 0 or 1; null where the truth is unknown."""
    return decisions.is_label(str(decisions.roles.truth), name).cast(nw.Int64)


def is_weighted(decisions: Decisions) -> bool:
    """Whether rows that have a truth count by a weight, their own or their review's."""
    return bool(decisions.roles.weight or decisions.roles.review_share)


def scored(
    decisions: Decisions, attribute: Attribute, score: str, name: str, *, within: bool = False
) -> tuple[Frame, list[str]]:
    """Rows with a score, a truth and a group, and the keys of the cells they are compared in.

    Columns `group…`, with `within` the `stratum`, `y` (truth is the class), `s`, and where there
    are any `omega`, the weight by which a row stands for others, and `cluster`.
    """
    roles = decisions.roles
    keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    if within:
        keys |= decisions.stratum_key()
    columns = {**keys, "y": is_class(decisions, name), "s": nw.col(score).cast(nw.Float64)}
    needed = [str(roles.truth), score, roles.weight, roles.review_share, roles.together]
    if is_weighted(decisions):
        omega: Any = nw.col(roles.weight).cast(nw.Float64) if roles.weight else nw.lit(1.0)
        if roles.review_share:
            omega = omega / nw.col(roles.review_share).cast(nw.Float64)
        columns["omega"] = omega
    if roles.together:
        columns["cluster"] = nw.col(roles.together)
    known = [~nw.col(column).is_null() for column in needed if column]
    frame = decisions.frame.filter(*known).select(*(e.alias(k) for k, e in columns.items()))
    if within:
        frame = frame.filter(~nw.col("stratum").is_null())
    return frame, list(keys)


def placements(
    decisions: Decisions, attribute: Attribute, score: str, name: str, *, within: bool = False
) -> Tally:
    """Sums of placements d by group, truth and, where there are any, stratum and cluster.

    A row's placement is how many rows of the other truth lie below it in its cell, ties as half:
    Σd and Σd². With weights ω it is how much they weigh: Σω, Σω², Σω⁴, Σωd, Σωd², Σω²d, Σω²d².
    """
    if decisions.tallies is not None:
        return grid_placements(stored_scores(decisions, attribute, score), name, within=within)
    return decisions.answer([placement_question(decisions, attribute, score, name, within)])[0]


def placement_question(
    decisions: Decisions,
    attribute: Attribute,
    score: str,
    name: str,
    within: bool,
    *,
    cluster: bool = True,
) -> Question:
    """What `placements` asks of the engine."""
    frame, keys = scored(decisions, attribute, score, name, within=within)
    d, omega = nw.col("d"), nw.col("omega")
    sums = {"d": d, "d2": d * d}
    if is_weighted(decisions):
        placed = _weighed(frame, keys)
        squares = omega * omega
        sums = {"w": omega, "w2": squares, "w4": squares * squares, "wd": omega * d}
        sums |= {"wd2": omega * d * d, "w2d": squares * d, "w2d2": squares * d * d}
    else:
        every = nw.col("s").rank("average").over(*keys)
        own = nw.col("s").rank("average").over(*keys, "y")
        placed = frame.with_columns(every.alias("rank"), own.alias("own"))
        placed = placed.with_columns((nw.col("rank") - nw.col("own")).alias("d"))
    return _summed(decisions, attribute, placed, [*keys, "y"], sums, cluster)


def score_bins(
    decisions: Decisions, attribute: Attribute, score: str, name: str, *, within: bool = False
) -> Tally:
    """Histogram of a probability score by (group, truth, bin), with the sum of scores per bin.

    With weights ω: Σω, Σω² and Σωs.
    """
    if decisions.tallies is not None:
        return grid_bins(stored_scores(decisions, attribute, score), name, within=within)
    return decisions.answer([bin_question(decisions, attribute, score, name, within)])[0]


def bin_question(
    decisions: Decisions,
    attribute: Attribute,
    score: str,
    name: str,
    within: bool,
    *,
    cluster: bool = True,
) -> Question:
    """What `score_bins` asks of the engine."""
    frame, keys = scored(decisions, attribute, score, name, within=within)
    scaled: Any = (nw.col("s") * BINS).floor().cast(nw.Int64)
    binned = frame.with_columns(
        nw.when(scaled >= BINS).then(BINS - 1).otherwise(scaled).alias("bin")
    )
    s, omega = nw.col("s"), nw.col("omega")
    sums = {"s": s}
    if is_weighted(decisions):
        sums = {"w": omega, "w2": omega * omega, "s": omega * s}
    return _summed(decisions, attribute, binned, [*keys, "y", "bin"], sums, cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTally:
    """A tally of scores and, where it is not by cluster because they stay in Spark, these."""

    tally: Tally
    distant: DistantClusters | None = None


class ScoreTallies:
    """Placements and histograms of a table's scores: from its tally set, from memory or engine.

    What is held in memory is read once, for all columns where they are not too many. `apart` are
    the attributes whose clusters are known to be too many for Spark's driver.
    """

    def __init__(self, decisions: Decisions, columns: Iterable[str]) -> None:
        self.decisions, self.columns = decisions, list(dict.fromkeys(columns))
        self.held: HeldScores | None = None
        self.binned: dict[tuple[str, str, str, bool], Tally] = {}
        self.apart: set[str] = set()

    def placements(
        self, attribute: Attribute, score: str, name: str, *, within: bool
    ) -> ScoreTally:
        """Sums of placements, as the function of this name gives them."""
        decisions, held = self.decisions, self._holding(score)
        if held is not None:
            found = held.placements(attribute, score, name, within=within)
            return ScoreTally(tally=decisions.name_groups(found, attribute))
        distant = self._of_grid(attribute, score, name, within, PlacedGrid.placements)
        if decisions.tallies is not None and decisions.is_probability(score):
            # The histogram is asked for next, and looks at the same entries.
            tally = stored_scores(decisions, attribute, score)
            placed, binned = grid_scores(tally, name, within=within)
            self.binned = {(attribute.name, score, name, within): binned}
            return ScoreTally(tally=placed, distant=distant)
        asked = partial(placement_question, decisions, attribute, score, name, within)
        return self._distant(attribute, asked) or ScoreTally(
            tally=placements(decisions, attribute, score, name, within=within), distant=distant
        )

    def bins(self, attribute: Attribute, score: str, name: str, *, within: bool) -> ScoreTally:
        """The histogram, as `score_bins` gives it."""
        held = self._holding(score)
        if held is not None:
            found = held.bins(attribute, score, name, within=within, bins=BINS)
            return ScoreTally(tally=self.decisions.name_groups(found, attribute))
        distant = self._of_grid(attribute, score, name, within, PlacedGrid.bins)
        if (attribute.name, score, name, within) in self.binned:
            binned = self.binned.pop((attribute.name, score, name, within))
            return ScoreTally(tally=binned, distant=distant)
        asked = partial(bin_question, self.decisions, attribute, score, name, within)
        return self._distant(attribute, asked) or ScoreTally(
            tally=score_bins(self.decisions, attribute, score, name, within=within),
            distant=distant,
        )

    def _distant(self, attribute: Attribute, asked: Callable[..., Question]) -> ScoreTally | None:
        """The tally without clusters, where they are too many for Spark's driver."""
        decisions = self.decisions
        if decisions.engine != "spark" or not decisions.roles.together:
            return None
        question = asked()
        # Whatever is asked next has more keys, and as many cells by cluster at least.
        if attribute.name not in self.apart and not stay_in_spark(decisions, question):
            return None
        self.apart.add(attribute.name)
        return ScoreTally(
            tally=decisions.answer([asked(cluster=False)])[0],
            distant=DistantClusters(decisions=decisions, question=question),
        )

    def _of_grid(
        self,
        attribute: Attribute,
        score: str,
        name: str,
        within: bool,
        kind: Callable[["PlacedGrid", Tally], Tally],
    ) -> DistantClusters | None:
        """The clusters behind a tally on the grid, where they stay in Spark."""
        if self.decisions.tallies is None:
            return None
        tally = stored_scores(self.decisions, attribute, score)
        if "clustered" not in tally.labels:
            return None
        rows = self.decisions._on_engine
        return DistantClusters(
            decisions=rows,
            question=score_question(rows, attribute, score),
            first=partial(kind, PlacedGrid.of(tally, name, within=within)),
        )

    def _holding(self, score: str) -> HeldScores | None:
        """The scores in memory; None where they are tallied, or where rows stay in Spark."""
        decisions = self.decisions
        if decisions.tallies is not None or decisions.engine == "spark":
            return None
        if self.held is None or score not in self.held.scores:
            together = len(self.columns) * decisions.row_count <= MOST_HELD
            wanted = self.columns if together else [score]
            self.held = hold_scores(decisions, wanted, row_weight(decisions))
        return self.held


def score_question(
    decisions: Decisions, attribute: Attribute, score: str, *, clustered: bool = False
) -> Question:
    """Rows by (group, stratum, truth, cell of the score) and, where any, cluster and threshold.

    Sums Σs and, with weights ω, Σω, Σω², Σω⁴, Σωs. The truth is `y`, whether it is the score's
    class, where that is known beforehand. A row without a score or a weight has no cell. With
    `clustered` the key is whether there is a cluster.
    """
    roles = decisions.roles
    keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    keys |= decisions.stratum_key()
    name = score_class(roles, score)
    truth = str(roles.truth)
    keys |= {"truth": nw.col(truth)} if name is None else {"y": is_class(decisions, name)}
    s: Any = as_number(decisions.schema, score)
    cut: Any = None
    if score == roles.score and roles.threshold is not None:
        cut = decisions.threshold_expression(score)
        if isinstance(cut, nw.Expr):
            keys["cut"] = cut
    omega = row_weight(decisions)
    sums: dict[str, Any] = {"s": s}
    if omega is not None:
        squares = omega * omega
        sums |= {"w": omega, "w2": squares, "w4": squares * squares, "ws": omega * s}
        # A row that weighs nothing counts for the area and for no threshold.
        if cut is not None:
            cut = nw.when(omega > 0).then(cut)
    low, high = (decisions.survey.get(f"{end}:{score}", 0.0) for end in ("min", "max"))
    if decisions.schema[score].is_integer() and max(abs(low), abs(high)) < LARGEST_WHOLE:
        keys[VALUE] = sided(nw.col(score).cast(nw.Int64), s, cut)
    else:
        keys[CELL] = sided(grid_cell(s, unit=decisions.is_probability(score)), s, cut)
    cell = next(reversed(keys))
    known = ~nw.col(score).is_null()
    if omega is not None:
        known = known & ~omega.is_null()
    keys[cell] = nw.when(known).then(keys[cell])
    if roles.together and clustered:
        keys["clustered"] = where_known(roles.together)
    elif roles.together:
        keys["cluster"] = nw.col(roles.together)
    return decisions.question(keys, sums, attribute=attribute)


def score_class(roles: Roles, score: str) -> str | None:
    """The class that a score column is of; None where only the data would tell."""
    classes = {column: name for name, column in roles.scores.items()}
    return classes.get(score) if score != roles.score else roles.positive


def row_weight(decisions: Decisions) -> nw.Expr | None:
    """The weight by which a row stands for others; None where all count alike."""
    weights = decisions._weights()
    return weights.get("reviewed", weights.get("weight"))


def stored_scores(decisions: Decisions, attribute: Attribute, score: str) -> Tally:
    """The tally of a score from a set; an error where its clusters were too many to be held."""
    assert decisions.tallies is not None
    lost = table_name("clusters", attribute.name, score)
    if lost in decisions.tallies.lost:
        decisions.tallies.table(lost)
    return decisions.tallies.table(table_name("scores", attribute.name, score))


def decided_counts(tally: Tally) -> Tally:
    """Counts by (group, stratum, truth, decision) from those by cell and side of the threshold."""
    return in_line([_decided(part) for part in by_block(tally)]).pruned()


def _decided(tally: Tally) -> Tally:
    key = VALUE if VALUE in tally.labels else CELL
    sides = np.append(cells_and_sides(tally.labels[key])[1], UNCUT)
    decision = np.array([0, 1, 1, -1], dtype=np.int64)[sides[tally.codes[key]]]
    kept = [name for name in tally.labels if name != key]
    return Tally(
        labels={**{name: tally.labels[name] for name in kept}, "decision": ("0", "1")},
        codes={**{name: tally.codes[name] for name in kept}, "decision": decision},
        sums={"n": tally.sums["n"]},
    ).compact()


def truth_states(tally: Tally, name: str) -> NDArray[np.int64]:
    """1 where the truth of a cell is this class, 0 where it is another, -1 where it is unknown."""
    key = "y" if "y" in tally.labels else "truth"
    yes = "1" if key == "y" else name
    states = [int(label == yes) for label in tally.labels[key]]
    return np.array([*states, -1], dtype=np.int64)[tally.codes[key]]


def grid_placements(
    tally: Tally, name: str, *, within: bool, whole: "PlacedGrid | None" = None
) -> Tally:
    """What `placements` gives, from a tally of scores on the grid; rows of a cell are ties.

    `meets` sums the pairs that meet in a cell: half their share is how far an area may be off.
    Of some clusters alone, `whole` says where rows lie among all.
    """
    every = None if whole is None else whole.tally
    parts = (_scored_entries(part, name, within, every) for part in by_block(tally))
    return in_line([_grid_placements(*part, within, whole) for part in parts])


def grid_bins(tally: Tally, name: str, *, within: bool, whole: Tally | None = None) -> Tally:
    """What `score_bins` gives, from a tally of scores on the grid: cells go by their means.

    `astray` sums the rows of cells that an edge of a tenth cuts through. Of some clusters alone,
    `whole` is the tally of all.
    """
    parts = (_scored_entries(part, name, within, whole) for part in by_block(tally))
    return in_line([_grid_bins(*part, within) for part in parts])


def grid_scores(tally: Tally, name: str, *, within: bool) -> tuple[Tally, Tally]:
    """Placements and histogram from one look at every block of entries."""
    placed, binned = [], []
    for block in by_block(tally):
        part = _scored_entries(block, name, within)
        placed.append(_grid_placements(*part, within))
        binned.append(_grid_bins(*part, within))
    return in_line(placed), in_line(binned)


def _grid_placements(
    entries: ScoreEntries,
    truth: Codes,
    line: Codes,
    within: bool,
    whole: "PlacedGrid | None" = None,
) -> Tally:
    tally = entries.tally
    weight = tally.sums["w" if "w" in tally.sums else "n"]
    if whole is not None:
        d = whole.d[places_among(tally, whole.entries)]
        return _by_truth(tally, truth, _placed_sums(tally.sums, d, np.zeros(d.size)), within)
    if "cluster" in tally.labels:
        d, meets = placed_below(line, entries.cell, truth, weight)
        return _by_truth(tally, truth, _placed_sums(tally.sums, d, meets), within)
    keys = ["group", *(["stratum"] if within else [])]
    parts = []
    for y, side in enumerate(placed_sides(line, entries.cell, truth, weight)):
        sums = {name: each[side.rows] for name, each in tally.sums.items() if name in _ROWS}
        found = _placed_sums(sums, side.placement, side.weight * side.level * y)
        own = line[side.rows]
        first = np.flatnonzero(np.append(True, own[1:] != own[:-1])[: own.size])
        parts.append(
            Tally(
                labels={**{key: tally.labels[key] for key in keys}, "y": ("0", "1")},
                codes={
                    **{key: tally.codes[key][side.rows[first]] for key in keys},
                    "y": np.full(first.size, y),
                },
                sums={
                    name: np.add.reduceat(each, first) if first.size else each
                    for name, each in found.items()
                },
            )
        )
    return in_line(parts).compact()


# Sums of rows and of powers of their weights, which placements multiply.
_ROWS = ("n", "w", "w2", "w4")


def _placed_sums(
    sums: Mapping[str, FloatArray], d: FloatArray, meets: FloatArray
) -> dict[str, FloatArray]:
    """What is summed up of entries with these sums and placements."""
    n = sums["n"]
    if "w" not in sums:
        placed = n * d
        return {"n": n, "meets": meets, "d": placed, "d2": placed * d}
    w, w2 = sums["w"], sums["w2"]
    wd, w2d = w * d, w2 * d
    found = {"n": n, "meets": meets, "w": w, "w2": w2, "w4": sums["w4"], "wd": wd, "wd2": wd * d}
    return found | {"w2d": w2d, "w2d2": w2d * d}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedGrid:
    """A tally of scores on the grid whose clusters stay in Spark: what their parts look up.

    `tally` are the rows that have a cluster; `entries` the cells that areas compare, with the
    placement `d` of each. As large as the grid, whatever the number of rows.
    """

    tally: Tally
    entries: Tally
    d: FloatArray
    name: str
    within: bool

    @classmethod
    def of(cls, tally: Tally, name: str, *, within: bool) -> "PlacedGrid":
        """The places of a tally by whether a row has a cluster."""
        there = clustered_rows(tally)
        entries, truth, line = _scored_entries(there, name, within)
        weight = entries.tally.sums["w" if "w" in there.sums else "n"]
        d, _ = placed_below(line, entries.cell, truth, weight)
        return cls(tally=there, entries=entries.tally, d=d, name=name, within=within)

    def placements(self, part: Tally) -> Tally:
        """What `grid_placements` gives of some clusters, placed among all."""
        held = as_gridded(part, self.tally)
        return grid_placements(held, self.name, within=self.within, whole=self)

    def bins(self, part: Tally) -> Tally:
        """What `grid_bins` gives of some clusters."""
        held = as_gridded(part, self.tally)
        return grid_bins(held, self.name, within=self.within, whole=self.tally)


def clustered_rows(tally: Tally) -> Tally:
    """The rows of a tally that have a cluster, without the key that says so."""
    return tally.take(tally.codes["clustered"] >= 0).without("clustered")


def as_gridded(part: Tally, whole: Tally) -> Tally:
    """Scores of some clusters with the labels of all, in cells where those of all are."""
    held = gridded(part) if CELL in whole.labels else part
    for key, labels in whole.labels.items():
        held = held.relabel(key, labels)
    return held


def _grid_bins(entries: ScoreEntries, truth: Codes, _: Codes, within: bool) -> Tally:
    sums = entries.tally.sums
    # A mean of equal scores at an edge is rounded to either side, as the engine adds them up.
    scaled = np.clip((entries.score * BINS + 1e-9).astype(np.int64), 0, BINS - 1)
    found = {"n": sums["n"], "astray": sums["n"] * _straddles(entries), "s": sums["s"]}
    if "w" in sums:
        found |= {"w": sums["w"], "w2": sums["w2"], "s": sums["ws"]}
    return _by_truth(entries.tally, truth, found, within, {"bin": scaled})


def _straddles(entries: ScoreEntries) -> NDArray[np.bool_]:
    """Which entries' cells an edge of a tenth cuts through; a cell is looked at once."""
    if entries.exact:
        return np.zeros(entries.cell.size, dtype=bool)
    return np.asarray(_straddled(entries.tally.labels[CELL])[entries.tally.codes[CELL]])


@known_labels
def _straddled(labels: tuple[str, ...]) -> NDArray[np.bool_]:
    """The same of labels of cells."""
    low, high = cell_limits(cells_and_sides(labels)[0])
    return np.asarray(np.floor(low * TENTHS) < np.ceil(high * TENTHS) - 1)


def _scored_entries(
    tally: Tally, name: str, within: bool, whole: Tally | None = None
) -> tuple[ScoreEntries, NDArray[np.int64], NDArray[np.int64]]:
    """Entries with a group, a truth, a score and what else a row needs, their truth and line."""
    # The whole table's cells do not depend on a stratum that was named besides.
    if not within:
        tally = tally.without("stratum", "cut")
        whole = None if whole is None else whole.without("stratum", "cut")
    entries = ScoreEntries.of(tally, whole)
    codes = entries.tally.codes
    truth = truth_states(entries.tally, name)
    use = (codes["group"] >= 0) & (truth >= 0)
    for key in ("cluster", "clustered", *(["stratum"] if within else [])):
        if key in codes:
            use &= codes[key] >= 0
    entries = entries.take(use)
    codes = entries.tally.codes
    line = codes["group"]
    if within:
        # Numbers of eight bytes, whatever those of the codes are: products cannot overflow.
        line = line.astype(np.int64) * len(tally.labels["stratum"]) + codes["stratum"]
    return entries, truth if use.all() else truth[use], line


def _by_truth(
    tally: Tally,
    truth: NDArray[np.int64],
    sums: dict[str, FloatArray],
    within: bool,
    more: Mapping[str, NDArray[np.int64]] | None = None,
) -> Tally:
    """Sums by (group, stratum, `y`, cluster), and these keys of whole numbers."""
    keys = [
        "group",
        *(["stratum"] if within else []),
        *(["cluster"] if "cluster" in tally.labels else []),
    ]
    labels = {key: tally.labels[key] for key in keys} | {"y": ("0", "1")}
    codes = {key: tally.codes[key] for key in keys} | {"y": truth}
    for key, values in (more or {}).items():
        labels[key], codes[key] = tuple(map(str, range(int(values.max(initial=-1)) + 1))), values
    return Tally(labels=labels, codes=codes, sums=sums).compact()


def _weighed(frame: Frame, keys: list[str]) -> Frame:
    """The rows with `d`: the weight of the other truth's rows below, and half of those level."""
    omega, y = nw.col("omega"), nw.col("y")
    split = frame.with_columns((omega * (1 - y)).alias("w0"), (omega * y).alias("w1"))
    split = split.with_columns(
        *(nw.col(w).cum_sum().over(*keys, order_by="s").alias(f"up{w}") for w in ("w0", "w1"))
    )
    # A running sum stops somewhere among equal scores: its greatest value there is the whole.
    level = split.with_columns(
        *(nw.col(f"up{w}").max().over(*keys, "s").alias(f"to{w}") for w in ("w0", "w1")),
        *(nw.col(w).sum().over(*keys, "s").alias(f"at{w}") for w in ("w0", "w1")),
    )
    below = {w: nw.col(f"to{w}") - nw.col(f"at{w}") * 0.5 for w in ("w0", "w1")}
    return level.with_columns(nw.when(y == 1).then(below["w0"]).otherwise(below["w1"]).alias("d"))


def _summed(
    decisions: Decisions,
    attribute: Attribute,
    frame: Frame,
    by: list[str],
    sums: dict[str, Any],
    cluster: bool,
) -> Question:
    if decisions.roles.together and cluster:
        by = [*by, "cluster"]
    keys: dict[str, nw.Expr] = {key: nw.col(key) for key in by}
    return decisions.question(keys, sums, frame=frame, attribute=attribute)
