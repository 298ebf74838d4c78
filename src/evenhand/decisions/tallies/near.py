"""Sums of the local fit around a threshold, taken from the rows on the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import label
from evenhand.decisions.question import Question
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import CLUSTER, DistantClusters, stay_in_spark
from evenhand.decisions.tallies.thresholds import Margins, margin_frame
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.histogram import ScoreHistogram
from evenhand.stats.thresholds.local import LocalMoments
from evenhand.stats.weights import add_up, distinct


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPairs:
    """Sums of the local fit by (cell, cluster): Σwuᵏ and Σwyuᵏ, one row for each that occurs."""

    weight: FloatArray
    outcome: FloatArray
    cell: NDArray[np.int64]
    cluster: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSums:
    """Sums of the local fit by cell, and the same by (cell, cluster) where there are clusters.

    `window` holds by cell: Σω, Σωy and Σω² inside the bandwidth, every row alike. Clusters that
    stay in Spark are `distant`, where functions take their `LocalPairs`.
    """

    moments: LocalMoments
    window: FloatArray
    pairs: LocalPairs | None = None
    distant: DistantClusters | None = None


def local_sums(
    decisions: Decisions,
    attribute: Attribute,
    *,
    positive: str | None,
    cells: Sequence[Mapping[str, Any]],
    bandwidths: FloatArray,
) -> LocalSums:
    """The sums of the local quadratic for cells given by raw key values, each with its bandwidth.

    Rows go by their truth, so 14 sums of powers give all 25 moments.
    """
    keys = list(cells[0])
    places = CellPlaces(
        keys=tuple(keys), place={tuple(label(c[k]) for k in keys): i for i, c in enumerate(cells)}
    )
    wanted = np.flatnonzero(np.isfinite(bandwidths))
    if not wanted.size:
        return places.none()
    widest = float(bandwidths[wanted].max())
    frame, _ = margin_frame(decisions, attribute, positive, near=widest)
    near = frame.filter(~nw.col("x").is_null() & ~nw.col("y").is_null())
    if wanted.size == len(cells) and float(bandwidths.min()) == widest:
        scaled = near.with_columns((nw.col("x") / widest).alias("u"))
    else:
        scale: Any = nw.lit(None, dtype=nw.Float64)
        for i in wanted.tolist():
            here = cell_condition(cells[i])
            scale = nw.when(here).then(nw.lit(float(bandwidths[i]))).otherwise(scale)
        scaled = near.with_columns((nw.col("x") / scale).alias("u"))
        scaled = scaled.filter(nw.col("u").abs() < 1)
    weighted = bool(decisions.roles.weight or decisions.roles.review_share)
    sums = _powers(scaled, weighted)
    names = ["below", *(f"w{k}" for k in range(5)), *(f"v{k}" for k in range(9))]
    names += ["omega", "omega2"] if weighted else []

    def ask(*more: str) -> Question:
        by = {key: nw.col(key) for key in (*keys, "y", *more)}
        return decisions.question(by, {name: nw.col(name) for name in names}, frame=sums)

    if not decisions.roles.cluster:
        return places.sums(decisions.answer([ask()])[0])
    by_cluster = ask(CLUSTER)
    if not stay_in_spark(decisions, by_cluster):
        tally = decisions.answer([by_cluster])[0]
        return replace(places.sums(tally), pairs=places.pairs(tally))
    distant = DistantClusters(decisions=decisions, question=by_cluster, first=places.pairs)
    return replace(places.sums(decisions.answer([ask()])[0]), distant=distant)


def cell_condition(cell: Mapping[str, Any]) -> nw.Expr:
    """Whether a row lies in the cell with these raw key values."""
    parts = [
        nw.col(name).is_null() if label(value) is None else nw.col(name) == value
        for name, value in cell.items()
    ]
    found = parts[0]
    for part in parts[1:]:
        found = found & part
    return found


def _powers(frame: Frame, weighted: bool) -> Frame:
    """The kernel weights and their products with powers of u, in stages that engines share."""
    u, a = nw.col("u"), nw.col("u").abs()
    staged = frame.with_columns(
        (1.0 - a * a * a).alias("k"),
        (u * u).alias("u2"),
        (nw.col("x") < 0).cast(nw.Int64).alias("below"),
    )
    k = nw.col("k")
    kernel = k * k * k
    staged = staged.with_columns(
        (kernel * nw.col("omega") if weighted else kernel).alias("w0"),
        (u * nw.col("u2")).alias("u3"),
        (nw.col("u2") * nw.col("u2")).alias("u4"),
    )
    if weighted:
        staged = staged.with_columns((nw.col("omega") * nw.col("omega")).alias("omega2"))
    w, u2, u3, u4 = (nw.col(name) for name in ("w0", "u2", "u3", "u4"))
    powers = {1: u, 2: u2, 3: u3, 4: u4, 5: u4 * u, 6: u4 * u2, 7: u4 * u3, 8: u4 * u4}
    staged = staged.with_columns(
        (w * w).alias("v0"), *((w * powers[k]).alias(f"w{k}") for k in range(1, 5))
    )
    return staged.with_columns(*((nw.col("v0") * powers[k]).alias(f"v{k}") for k in range(1, 9)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlaces:
    """Where the sums of a tally go: the place of a cell by the labels of its keys."""

    keys: tuple[str, ...]
    place: Mapping[tuple[str | None, ...], int]

    def none(self) -> LocalSums:
        """The sums of no rows."""
        many = len(self.place)
        shapes = {"weight": 5, "outcome": 3, "squared": 9, "squared_outcome": 7}
        powers = {name: np.zeros((many, size)) for name, size in shapes.items()}
        moments = LocalMoments(n=np.zeros(many), n_below=np.zeros(many), **powers)
        return LocalSums(moments=moments, window=np.zeros((many, 3)))

    def sums(self, tally: Tally) -> LocalSums:
        """The sums by cell of a tally by key and truth."""
        cell, use, truth = self._rows(tally)
        yes = {"": np.ones(truth.size), "y": truth}

        def total(name: str, only: str = "") -> FloatArray:
            return add_up(tally.sums[name][use] * yes[only], cell, len(self.place))

        def stacked(letter: str, highest: int, only: str = "") -> FloatArray:
            return np.column_stack([total(f"{letter}{k}", only) for k in range(highest + 1)])

        moments = LocalMoments(
            n=total("n"),
            n_below=total("below"),
            weight=stacked("w", 4),
            outcome=stacked("w", 2, "y"),
            squared=stacked("v", 8),
            squared_outcome=stacked("v", 6, "y"),
        )
        one, two = ("omega", "omega2") if "omega" in tally.sums else ("n", "n")
        window = np.column_stack([total(one), total(one, "y"), total(two)])
        return LocalSums(moments=moments, window=window)

    def pairs(self, tally: Tally) -> LocalPairs:
        """The sums by cell and cluster of a tally by key, truth and cluster."""
        cell, use, truth = self._rows(tally)
        cluster = tally.codes[CLUSTER][use]
        width = int(cluster.max(initial=0)) + 1
        pairs, where = distinct(cell * width + cluster)

        def stacked(highest: int, only: FloatArray) -> FloatArray:
            powers = [tally.sums[f"w{k}"][use] * only for k in range(highest + 1)]
            return np.column_stack([add_up(each, where, len(pairs)) for each in powers])

        return LocalPairs(
            weight=stacked(4, np.ones(truth.size)),
            outcome=stacked(2, truth),
            cell=pairs // width,
            cluster=pairs % width,
        )

    def _rows(self, tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.intp], FloatArray]:
        """The cells of the rows that have one, which these are, and their truth."""
        sizes = [len(tally.labels[key]) + 1 for key in self.keys]
        flat = np.ravel_multi_index([tally.codes[key] + 1 for key in self.keys], sizes)
        there, which = distinct(flat)
        names = [(None, *tally.labels[key]) for key in self.keys]
        raw = zip(*(np.unravel_index(there, sizes)))
        found = [self.place.get(tuple(n[i] for n, i in zip(names, row)), -1) for row in raw]
        cell = np.array(found, dtype=np.int64)[which] if found else which
        use = np.flatnonzero(cell >= 0)
        truth = np.array([*tally.labels["y"], "nan"], dtype=np.float64)[tally.codes["y"][use]]
        return cell[use], use, truth


def score_values(
    decisions: Decisions,
    attribute: Attribute,
    *,
    positive: str | None,
    cells: Sequence[Mapping[str, Any]],
) -> list[ScoreHistogram]:
    """Counts at every distinct distance from the threshold, one histogram for each cell."""
    frame, _ = margin_frame(decisions, attribute, positive)
    keys = list(cells[0])
    here = nw.any_horizontal(*(cell_condition(cell) for cell in cells), ignore_nulls=True)
    known = frame.filter(here & ~nw.col("x").is_null() & ~nw.col("y").is_null())
    sums = []
    if decisions.roles.weight or decisions.roles.review_share:
        known = known.with_columns((nw.col("omega") * nw.col("omega")).alias("omega2"))
        sums = ["omega", "omega2"]
    columns = decisions.collect(
        known.select(*keys, "x", "y", *sums)
        .group_by(*keys, "x", "y")
        .agg(nw.len().alias("n"), *(nw.col(name).sum() for name in sums))
    )
    raw = [tuple(map(label, row)) for row in zip(*(columns[k] for k in keys))]
    distance, truth = np.array(columns["x"], float), np.array(columns["y"], np.intp)
    found = []
    for cell in cells:
        name = tuple(label(cell[k]) for k in keys)
        mine = np.array([row == name for row in raw], dtype=bool)
        values, where = np.unique(distance[mine], return_inverse=True)

        def counted(
            column: str, mine: Any = mine, where: Any = where, size: Any = values.size
        ) -> FloatArray:
            flat = where.reshape(-1) * 2 + truth[mine]
            totals = np.array(columns[column], float)[mine]
            return np.bincount(flat, totals, minlength=2 * size).astype(float).reshape(1, size, 2)

        found.append(
            ScoreHistogram.of_counts(
                counted("n"),
                positions=values,
                thresholds=0.0,
                weights=counted("omega") if sums else None,
                squares=counted("omega2") if sums else None,
            )
        )
    return found


def nearest_rows(
    decisions: Decisions, attribute: Attribute, found: Margins, *, count: int
) -> dict[str, list[dict[str, Any]]]:
    """The rows nearest the threshold in each group: score, truth and, where named, item and text.

    Only rows within the distance that holds `count` rows by the histogram leave the engine.
    """
    roles = decisions.roles
    groups = [f"group{i}" for i in range(len(attribute.columns))]
    named = {"item": roles.item, "text": roles.text}
    shown = {name: column for name, column in named.items() if column}
    score = nw.col(str(roles.score)).cast(nw.Float64)
    extra = decisions.frame.select(
        *(nw.col(c).alias(g) for g, c in zip(groups, attribute.columns)),
        *(nw.col(column).alias(name) for name, column in shown.items()),
        score.alias("score"),
        nw.col(str(roles.truth)).alias("truth"),
        (score - decisions.threshold_expression(roles.score)).alias("x"),
    ).filter(~nw.col("truth").is_null())
    counts = found.histogram().counts.sum(axis=2)
    positions = np.abs(found.histogram().positions)
    conditions = []
    for g, raw in enumerate(found.keys):
        order = np.argsort(positions[g], kind="stable")
        enough = np.searchsorted(np.cumsum(counts[g][order]), count)
        reach = positions[g][order][min(enough, order.size - 1)] + 2 * found.width
        cell = dict(zip(groups, raw))
        conditions.append(cell_condition(cell) & (nw.col("x").abs() <= float(reach)))
    columns = decisions.collect(extra.filter(nw.any_horizontal(*conditions, ignore_nulls=True)))
    place = {tuple(map(label, raw)): name for raw, name in zip(found.keys, found.groups)}
    nearest: dict[str, list[dict[str, Any]]] = {name: [] for name in found.groups}
    ranked = sorted(
        range(len(columns["x"])),
        # Ties go by name, so that every engine shows the same rows.
        key=lambda i: (abs(columns["x"][i]), *(str(columns[k][i]) for k in (*shown, "truth"))),
    )
    for i in ranked:
        name = place.get(tuple(label(columns[g][i]) for g in groups))
        if name is not None and len(nearest[name]) < count:
            row = {k: columns[k][i] for k in (*shown, "score")}
            nearest[name].append({**row, "truth": label(columns["truth"][i])})
    return nearest
