"""Tallies of norms where rows weigh differently or come in clusters.

Rows are read whole, a few classes at a time; Spark ranks them itself, and keeps its clusters where
their cells are too many for its driver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals as nw
import numpy as np

from evenhand.decisions.question import Question
from evenhand.decisions.read import Frame, unreadable
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import CLUSTER, DistantClusters, stay_in_spark
from evenhand.decisions.tallies.scores import is_weighted, row_weight
from evenhand.decisions.tallies.sets import table_name
from evenhand.decisions.tallies.spark_ranks import (
    OMEGA,
    RANK,
    ROWS,
    SCORE,
    TIED,
    WEIGHT,
    ranked_rows,
)
from evenhand.decisions.tally import Codes, Tally, encode
from evenhand.errors import DataError, EvenhandError
from evenhand.stats.sampled_ranks import cluster_freedom, left_out_moves, sampled_moments

# Cells by cluster that a tally set holds of one table.
MOST_IN_SET = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Moments of ranks by cell and, of rows in clusters, how far each would move them.

    `moves` has the keys of the `tally` and the cluster: sums `weight`, in rows, and `move:<norm>`,
    the change of the cell's correlation when the cluster is left out. Clusters that stay in Spark
    are `distant`, with sums `weight` and `push:<norm>`, from which moves follow; the tally then
    lacks what only they tell: `clusters`, `freedom` and `variance:<norm>`.
    """

    tally: Tally
    moves: Tally | None = None
    distant: DistantClusters | None = None

    def merge(self, other: Self) -> Self:
        """The ranks of other cells besides: those of one cell cannot be merged."""
        moves = None
        if self.moves is not None and other.moves is not None:
            moves = self.moves.merge(other.moves)
        return type(self)(tally=self.tally.merge(other.tally), moves=moves)


def is_sampled(decisions: Decisions) -> bool:
    """Whether rows weigh differently or come in clusters."""
    return is_weighted(decisions) or decisions.roles.together is not None


def sample_columns(decisions: Decisions) -> list[str]:
    """The columns without which a row of a sample cannot be used."""
    roles = decisions.roles
    return [name for name in (roles.weight, roles.review_share, roles.together) if name]


def known_sample(decisions: Decisions) -> list[nw.Expr]:
    """What is so of every row that can be used."""
    return [~nw.col(name).is_null() for name in sample_columns(decisions)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCounts:
    """Rows (n), weights (w) and squared weights (w2) by (group, stratum, truth), of clusters too.

    Clusters that stay in Spark are no key of the `tally`, but `distant`.
    """

    tally: Tally
    distant: DistantClusters | None = None


def sampled_counts(decisions: Decisions, attribute: Attribute) -> SampledCounts:
    """Rows, weights and squared weights by (group, stratum, truth) and, where any, cluster."""
    if decisions.tallies is not None:
        stored = decisions.tallies.table(table_name("sampled_counts", attribute.name))
        return SampledCounts(tally=stored)
    keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    keys |= decisions.stratum_key()
    keys["truth"] = nw.col(str(decisions.roles.truth))
    if decisions.roles.together:
        keys[CLUSTER] = nw.col(decisions.roles.together)
    weight = row_weight(decisions)
    sums = {} if weight is None else {"w": weight, "w2": weight * weight}
    known = decisions.frame.filter(*known_sample(decisions))
    question = decisions.question(keys, sums, frame=known, attribute=attribute)
    if not stay_in_spark(decisions, question):
        return SampledCounts(tally=weighed_rows(decisions.answer([question])[0]))
    plain = {name: key for name, key in keys.items() if name != CLUSTER}
    fewer = decisions.question(plain, sums, frame=known, attribute=attribute)
    return SampledCounts(
        tally=weighed_rows(decisions.answer([fewer])[0]),
        distant=DistantClusters(decisions=decisions, question=question, first=weighed_rows),
    )


def weighed_rows(tally: Tally) -> Tally:
    """The tally with its weights; a row without one weighs as one."""
    if "w" in tally.sums:
        return tally
    n = tally.sums["n"]
    return Tally(labels=tally.labels, codes=tally.codes, sums={"n": n, "w": n, "w2": n})


def held_counts(counts: SampledCounts) -> Tally:
    """The counts by cluster, as a tally set holds them."""
    if counts.distant is None:
        return counts.tally
    return weighed_rows(_brought(counts.distant.decisions, counts.distant.question))


def held_ranks(ranks: Ranks) -> Ranks:
    """The ranks with the moves of every cluster, as a tally set holds them."""
    if ranks.distant is None:
        return ranks
    by_cluster = _brought(ranks.distant.decisions, ranks.distant.question)
    return moved_ranks(ranks.tally, by_cluster)


def _brought(decisions: Decisions, question: Question) -> Tally:
    """The cells by cluster that stayed in Spark, if a set may hold them."""
    limited = replace(question, frame=question.frame.head(MOST_IN_SET + 1))
    tally = decisions.answer([limited])[0]
    if len(tally) > MOST_IN_SET:
        raise DataError(
            f"cluster={decisions.roles.together!r} makes more than {MOST_IN_SET:,} cells, which a "
            "tally set does not hold. Audit the table itself, or tally it without norms."
        )
    return tally


def sampled_ranks(
    decisions: Decisions,
    attribute: Attribute,
    frame: Frame,
    *,
    score: nw.Expr,
    norms: Mapping[str, str],
    keys: Mapping[str, nw.Expr],
) -> Ranks:
    """By these keys: moments of weighted ranks, and the moves of clusters, of a frame's rows.

    Examples:
        >>> table = {"y": ["a"] * 4, "g": ["f"] * 4, "score:truth": [0.1, 0.2, 0.3, 0.4],
        ...          "norm@f": [0.1, 0.3, 0.2, 0.4], "who": ["p", "p", "q", "q"]}
        >>> decisions = Decisions(table, truth="y", group="g", cluster="who")
        >>> found = sampled_ranks(decisions, decisions.roles.attributes[0], decisions.frame,
        ...     score=nw.col("score:truth"), norms={"f": "norm@f"},
        ...     keys={"group0": nw.col("g"), "truth": nw.col("y")})
        >>> found.tally.total("clusters"), found.moves.labels["cluster"]
        (2.0, ('p', 'q'))
    """
    together, weight = decisions.roles.together, row_weight(decisions)
    columns = {f"key:{name}": expression for name, expression in keys.items()}
    columns[SCORE] = score
    columns |= {
        f"norm{i}": nw.col(column).cast(nw.Float64) for i, column in enumerate(norms.values())
    }
    if weight is not None:
        columns[WEIGHT] = weight
    if together:
        columns[CLUSTER] = nw.col(together)
    rows = frame.filter(*known_sample(decisions)) if sample_columns(decisions) else frame
    rows = rows.select(*(expression.alias(name) for name, expression in columns.items()))
    if decisions.engine == "spark":
        return ranks_in_spark(decisions, attribute, rows, keys=list(keys), norms=list(norms))
    table = collect_columns(decisions, rows)
    labels, codes, cell, many = number_cells({k: table[f"key:{k}"].to_list() for k in keys})
    names, whose = encode(table[CLUSTER].to_list()) if together else ((), None)
    found = sampled_moments(
        cell,
        floats(table[SCORE]),
        {k: floats(table[f"norm{i}"]) for i, k in enumerate(norms)},
        cells=many,
        weights=None if weight is None else floats(table[WEIGHT]),
        clusters=whose,
    )
    tally = Tally(labels=labels, codes=codes, sums=dict(found.sums))
    moves = None
    if together:
        by_cluster = {k: each[found.cell] for k, each in codes.items()} | {CLUSTER: found.cluster}
        sums = {"weight": found.weight} | {f"move:{k}": each for k, each in found.moves.items()}
        moves = Tally(labels=labels | {CLUSTER: names}, codes=by_cluster, sums=sums)
        moves = decisions.name_groups(moves, attribute)
    return Ranks(tally=decisions.name_groups(tally, attribute), moves=moves)


def ranks_in_spark(
    decisions: Decisions,
    attribute: Attribute,
    rows: Frame,
    *,
    keys: Sequence[str],
    norms: Sequence[str],
) -> Ranks:
    """The ranks of rows that stay in Spark, and what their clusters do or, if too many, where."""
    with decisions.engine_errors():
        ranked = ranked_rows(rows, [f"key:{key}" for key in keys], len(norms))
    named = {key: nw.col(f"key:{key}") for key in keys}
    omega, x = nw.col(OMEGA), nw.col(RANK)
    sums = {TIED: nw.col(TIED), "omega2": omega * omega, "x": omega * x, "xx": omega * x * x}
    for i, k in enumerate(norms):
        y = nw.col(f"y{i}")
        sums |= {f"y:{k}": omega * y, f"yy:{k}": omega * y * y, f"xy:{k}": omega * x * y}
    if decisions.roles.together is None:
        # Each row is a cluster of its own; of one alone in its cell nothing is left.
        for i, k in enumerate(norms):
            push, left = omega * nw.col(f"influence{i}"), nw.col(ROWS) - omega
            moved = nw.when(left > 0).then(push / left)
            sums[f"moved:{k}"] = moved * moved
    question = decisions.question(named, sums, frame=ranked, attribute=attribute)
    tally = _with_kish(decisions.answer([question])[0])
    if decisions.roles.together is None:
        return Ranks(tally=_of_single_rows(tally, norms))
    pushes = {f"push:{k}": omega * nw.col(f"influence{i}") for i, k in enumerate(norms)}
    by_cluster = decisions.question(
        named | {CLUSTER: nw.col(CLUSTER)},
        {"weight": omega, **pushes},
        frame=ranked,
        attribute=attribute,
    )
    if stay_in_spark(decisions, by_cluster):
        distant = DistantClusters(decisions=decisions, question=by_cluster)
        return Ranks(tally=tally, distant=distant)
    return moved_ranks(tally, decisions.answer([by_cluster])[0])


def _with_kish(tally: Tally) -> Tally:
    sums = dict(tally.sums)
    sums["kish"] = sums["n"] ** 2 / sums.pop("omega2")
    return replace(tally, sums=sums)


def _of_single_rows(tally: Tally, norms: Sequence[str]) -> Tally:
    """The tally with what rows tell that are clusters of their own."""
    sums = dict(tally.sums)
    n = sums["n"]
    sums |= {"clusters": n, "freedom": cluster_freedom(n, n**2 / sums["kish"], n)}
    for k in norms:
        with np.errstate(all="ignore"):
            spread = (n - 1) / n * sums.pop(f"moved:{k}")
        sums[f"variance:{k}"] = np.where(n > 1, spread, np.nan)
    return replace(tally, sums=sums)


def moved_ranks(tally: Tally, by_cluster: Tally) -> Ranks:
    """Ranks with the moves of clusters, from what these push in every cell of the tally."""
    for key, labels in tally.labels.items():
        by_cluster = by_cluster.relabel(key, labels)
    sizes = [len(labels) + 1 for labels in tally.labels.values()]
    order, flat = (
        np.ravel_multi_index([each.codes[key] + 1 for key in tally.labels], sizes)
        for each in (tally, by_cluster)
    )
    places = np.argsort(order)
    cell = places[np.searchsorted(order[places], flat)]
    weight, n = by_cluster.sums["weight"], tally.sums["n"]
    norms = [name.removeprefix("push:") for name in by_cluster.sums if name.startswith("push:")]
    pushes = {k: by_cluster.sums[f"push:{k}"] for k in norms}
    moves = {k: left_out_moves(push, weight, n[cell]) for k, push in pushes.items()}
    clusters, size2 = (
        np.bincount(cell, each, minlength=n.size).astype(np.float64)
        for each in (np.ones(cell.size), weight**2)
    )
    sums = tally.sums | {"clusters": clusters, "freedom": cluster_freedom(n, size2, clusters)}
    for k, moved in moves.items():
        squares = np.bincount(cell, moved**2, minlength=n.size)
        with np.errstate(all="ignore"):
            spread = (clusters - 1) / clusters * squares
        sums[f"variance:{k}"] = np.where(clusters > 1, spread, np.nan)
    told = {"weight": weight} | {f"move:{k}": moved for k, moved in moves.items()}
    return Ranks(tally=replace(tally, sums=sums), moves=replace(by_cluster, sums=told))


def collect_columns(decisions: Decisions, frame: Frame) -> Mapping[str, Any]:
    """The columns of a lazy frame as they come, to be read as arrays."""
    options: dict[str, Any] = {"engine": "streaming"} if decisions.engine == "polars" else {}
    try:
        table = frame.collect(**options)
    except EvenhandError:
        raise
    except Exception as error:
        raise unreadable(decisions.source, "a table", error) from error
    return {name: table[name] for name in table.columns}


def floats(column: Any) -> Any:
    """A column of numbers as an array."""
    return np.asarray(column.to_numpy(), dtype=np.float64)


def number_cells(
    keys: Mapping[str, Sequence[Any]],
) -> tuple[dict[str, tuple[str, ...]], dict[str, Codes], Codes, int]:
    """Labels of each key, its codes by cell, the cell of each row, and how many cells there are.

    Examples:
        >>> labels, codes, cell, many = number_cells({"g": ["f", "m", "f"], "y": [1, 1, None]})
        >>> codes["g"].tolist(), codes["y"].tolist(), cell.tolist(), many
        ([0, 0, 1], [-1, 0, 0], [1, 2, 0], 3)
    """
    labels: dict[str, tuple[str, ...]] = {}
    flat, sizes = np.zeros(0, dtype=np.int64), []
    for name, values in keys.items():
        labels[name], codes = encode(values)
        sizes.append(len(labels[name]) + 1)
        flat = codes + 1 if not flat.size else flat * sizes[-1] + codes + 1
    cells, place = np.unique(flat, return_inverse=True)
    by_cell = np.unravel_index(cells, sizes)
    codes_of = {name: each.astype(np.int64) - 1 for name, each in zip(labels, by_cell, strict=True)}
    return labels, codes_of, place.reshape(-1), len(cells)
