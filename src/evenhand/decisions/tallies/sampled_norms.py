"""Tallies of norms where rows weigh differently or come in clusters: read whole, class by class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np

from evenhand.decisions.read import Frame, unreadable
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.scores import is_weighted, row_weight
from evenhand.decisions.tallies.sets import table_name
from evenhand.decisions.tally import Codes, Tally, encode
from evenhand.errors import EvenhandError
from evenhand.stats.sampled_ranks import sampled_moments

CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Moments of ranks by cell and, of rows in clusters, how far each would move them.

    `moves` has the keys of the `tally` and the cluster: sums `weight`, in rows, and `move:<norm>`,
    the change of the cell's correlation when the cluster is left out.
    """

    tally: Tally
    moves: Tally | None = None

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


def sampled_counts(decisions: Decisions, attribute: Attribute) -> Tally:
    """Rows, weights and squared weights by (group, stratum, truth) and, where any, cluster."""
    if decisions.tallies is not None:
        return decisions.tallies.table(table_name("sampled_counts", attribute.name))
    keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    keys |= decisions.stratum_key()
    keys["truth"] = nw.col(str(decisions.roles.truth))
    if decisions.roles.together:
        keys[CLUSTER] = nw.col(decisions.roles.together)
    weight = row_weight(decisions)
    sums = {} if weight is None else {"w": weight, "w2": weight * weight}
    known = decisions.frame.filter(*known_sample(decisions))
    tally = decisions.name_groups(decisions.aggregate(keys, sums, frame=known), attribute)
    if weight is not None:
        return tally
    n = tally.sums["n"]
    return Tally(labels=tally.labels, codes=tally.codes, sums={"n": n, "w": n, "w2": n})


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
    columns["s"] = score
    columns |= {f"norm:{k}": nw.col(column).cast(nw.Float64) for k, column in norms.items()}
    if weight is not None:
        columns["w"] = weight
    if together:
        columns[CLUSTER] = nw.col(together)
    rows = frame.filter(*known_sample(decisions)) if sample_columns(decisions) else frame
    table = collect_columns(
        decisions, rows.select(*(expression.alias(name) for name, expression in columns.items()))
    )
    labels, codes, cell, many = number_cells({k: table[f"key:{k}"].to_list() for k in keys})
    names, whose = encode(table[CLUSTER].to_list()) if together else ((), None)
    found = sampled_moments(
        cell,
        floats(table["s"]),
        {k: floats(table[f"norm:{k}"]) for k in norms},
        cells=many,
        weights=None if weight is None else floats(table["w"]),
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
