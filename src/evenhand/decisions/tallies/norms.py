"""Tallies of norms: counts by class, and moments of the ranks of scores and norms within cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.read import Frame, batches_come, unreadable
from evenhand.decisions.roles import OWN_SCORE, Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.coding import RowLines
from evenhand.decisions.tallies.sampled_norms import (
    Ranks,
    is_sampled,
    sample_columns,
    sampled_ranks,
)
from evenhand.decisions.tallies.scores import is_class
from evenhand.decisions.tallies.sets import Tallies, table_name
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.ranks import (
    MOST_CELLS,
    CellLayout,
    cell_moments,
    keep_freed_memory,
    layout_moments,
)

# Numbers held at once. A row of two takes 30 bytes while it is ranked: 20M rows, 0.6 GB.
MOST_NUMBERS = 40_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldColumns:
    """The number columns of a table, laid out by line: a combination of keys.

    `cells` holds the value of every key by line, `counts` how many rows each has; `numbers` are
    the columns in the order of the layout: `score` and `norm:<column>`.
    """

    cells: Mapping[str, Sequence[Any]]
    counts: NDArray[np.int64]
    numbers: Sequence[str]
    layout: CellLayout

    def rank_moments(self, keys: Sequence[str], *, score: str, norms: Mapping[str, str]) -> Tally:
        """By these keys: moments of the average ranks of the score and norms, by number column."""
        lines: dict[tuple[Any, ...], list[int]] = {}
        for line, values in enumerate(zip(*(self.cells[key] for key in keys), strict=True)):
            lines.setdefault(values, []).append(line)
        sums = layout_moments(
            self.layout,
            list(lines.values()),
            score=self.numbers.index(score),
            norms={name: self.numbers.index(f"norm:{norm}") for name, norm in norms.items()},
        )
        told = {key: [values[i] for values in lines] for i, key in enumerate(keys)}
        return Tally.of(told, {name: value.tolist() for name, value in sums.items()})


def hold_columns(
    decisions: Decisions, *, keys: Mapping[str, nw.Expr], numbers: Mapping[str, nw.Expr]
) -> HeldColumns | None:
    """The columns of a table that comes in batches, read once and laid out as they come.

    None where a number is missing or not finite, and where there are more of them, or more
    combinations of keys, than are held: the engine's own ways serve those.
    """
    keep_freed_memory()
    known, rows, layout = RowLines(), 0, CellLayout()
    frame = decisions.frame.select(
        *(expression.alias(f"key:{name}") for name, expression in keys.items()),
        *(expression.alias(f"number:{name}") for name, expression in numbers.items()),
    )
    # Batches as they come: larger ones would be put together from them.
    for batch in decisions.batches(frame, rows=None):
        columns = []
        for name in numbers:
            column = batch[f"number:{name}"]
            values = column.to_numpy()
            if column.null_count() or not _all_finite(values):
                return None
            columns.append(values)
        line = known.numbered(batch, [f"key:{name}" for name in keys])
        rows += line.size
        if len(known) > MOST_CELLS or rows * len(numbers) > MOST_NUMBERS:
            return None
        layout.add(line, columns, known=len(known))
    layout.finish(known=len(known))
    return HeldColumns(
        cells={name: [values[i] for values in known.keys] for i, name in enumerate(keys)},
        counts=layout.counts(len(known)),
        numbers=list(numbers),
        layout=layout,
    )


def _all_finite(values: FloatArray) -> bool:
    # A sum is finite only if its terms are; where it is not, it may just be too large.
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum())) or bool(np.isfinite(values).all())


def _has_own(decisions: Decisions) -> bool:
    """Whether a column holds the score of each row's own class, and no other columns were named."""
    named = list(decisions.roles.scores.values())
    own = OWN_SCORE in decisions.columns and OWN_SCORE not in named
    return own and all(column.startswith("score:") for column in named)


def has_own_score(decisions: Decisions) -> bool:
    """Whether every row has a score of its own class, in a column or among those of all classes."""
    return _has_own(decisions) or bool(decisions.roles.scores and decisions.roles.truth)


def rank_name(attribute: Attribute, *kind: str, norms: Mapping[str, str], stratified: bool) -> str:
    """The name of a table of ranks in a tally set."""
    within = "strata" if stratified else "all"
    return table_name("ranks", attribute.name, *kind, "+".join(norms.values()), within)


def stored_ranks(tallies: Tallies, name: str) -> Ranks:
    """Ranks from a tally set."""
    moves = f"moves/{name}"
    return Ranks(
        tally=tallies.table(name), moves=tallies.table(moves) if tallies.holds(moves) else None
    )


def own_score(decisions: Decisions) -> nw.Expr | None:
    """The score of each row's own class: its column, or picked from the columns of all classes."""
    roles = decisions.roles
    if not has_own_score(decisions) or roles.truth is None:
        return None
    if _has_own(decisions):
        return nw.col(OWN_SCORE).cast(nw.Float64)
    wide = roles.scores
    chosen: Any = nw.lit(None, dtype=nw.Float64)
    for name, column in wide.items():
        here = decisions.is_label(roles.truth, name)
        picked = nw.when(here).then(nw.col(column).cast(nw.Float64))
        chosen = picked.otherwise(chosen)
    return chosen  # type: ignore[no-any-return]


# Rows without a score: no column's own sum has a name like it.
LACKS_SCORE = "lacks score"


@dataclass(frozen=True, slots=True, kw_only=True)
class NormCounts:
    """Counts by (group, stratum, truth), and the columns themselves where they are held."""

    tally: Tally
    held: HeldColumns | None

    def complete(self, norms: Iterable[str]) -> bool:
        """Whether no row lacks its score or one of these norm columns."""
        return not any(map(self.tally.total, (LACKS_SCORE, *(f"lacks:{norm}" for norm in norms))))

    def batches(self, numbers: int) -> list[list[str]]:
        """Classes in batches of rows that can be held at once; with their words they take twice."""
        rows = self.tally.dense(["truth"], "n")
        batches: list[list[str]] = []
        room = 0.0
        for name, many in zip(self.tally.labels["truth"], rows * numbers, strict=True):
            if not batches or many > room:
                batches.append([])
                room = MOST_NUMBERS / 2
            batches[-1].append(name)
            room -= many
        return batches


def norm_counts(decisions: Decisions, attribute: Attribute, *, norms: Sequence[str]) -> NormCounts:
    """Counts by (group, stratum, truth), with how many rows lack the score and each norm column.

    Sums `LACKS_SCORE` (the score of the row's own class, or the only score) and `lacks:<column>`,
    also of weights and clusters; refuses values that are not finite. Up to `MOST_NUMBERS` numbers
    are held for the ranks.
    """
    if decisions.tallies is not None:
        stored = decisions.tallies.table(table_name("norm_counts", attribute.name))
        return NormCounts(tally=stored, held=None)
    keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    keys |= decisions.stratum_key()
    keys["truth"] = nw.col(str(decisions.roles.truth))
    columns = {name: nw.col(name).cast(nw.Float64) for name in norms}
    if OWN_SCORE in decisions.columns:
        columns[OWN_SCORE] = nw.col(OWN_SCORE).cast(nw.Float64)
    score = own_score(decisions)
    if score is None and decisions.roles.score:
        score = nw.col(decisions.roles.score)
    told = {f"lacks:{name}": column.is_null() for name, column in columns.items()}
    if score is not None:
        told[LACKS_SCORE] = score.is_null()
    told |= {f"lacks:{name}": nw.col(name).is_null() for name in sample_columns(decisions)}
    told |= {f"bad:{name}": ~c.is_null() & ~c.is_finite() for name, c in columns.items()}
    tally, held = _counted(decisions, keys, columns)
    # Most tables lack nothing: held columns say so, else one sum, and only then is each asked for.
    if held is None and _any(decisions, list(told.values())):
        tally = decisions.aggregate(keys, {name: e.cast(nw.Int64) for name, e in told.items()})
    else:
        tally = replace(tally, sums=tally.sums | dict.fromkeys(told, np.zeros(len(tally))))
    for name in columns:
        many = int(tally.total(f"bad:{name}"))
        if many:
            values = "1 value that is" if many == 1 else f"{many:,} values that are"
            raise DataError(
                f"{name!r} holds {values} not finite (NaN or infinite). "
                "Replace them or leave them empty."
            )
    return NormCounts(tally=decisions.name_groups(tally, attribute), held=held)


def _counted(
    decisions: Decisions, keys: Mapping[str, nw.Expr], columns: Mapping[str, nw.Expr]
) -> tuple[Tally, HeldColumns | None]:
    """Rows by the keys, and the own score and the columns if they are few and whole."""
    score = own_score(decisions)
    held = None
    # A sample is read with its weights and clusters instead.
    if batches_come(decisions.engine) and score is not None and not is_sampled(decisions):
        own = _has_own(decisions)
        numbers = {f"norm:{n}": c for n, c in columns.items() if not own or n != OWN_SCORE}
        held = hold_columns(decisions, keys=keys, numbers={**numbers, "score": score})
    if held is not None and held.counts.size:
        return Tally.of(held.cells, {"n": held.counts.tolist()}), held
    named = decisions.frame.select(*(e.alias(name) for name, e in keys.items()))
    found = decisions.collect(named.group_by(*keys).agg(nw.len().alias("n")))
    return Tally.of({name: found[name] for name in keys}, {"n": found["n"]}), None


def _any(decisions: Decisions, told: Sequence[nw.Expr]) -> bool:
    """Whether anything is so in any row."""
    wrong = nw.any_horizontal(*told, ignore_nulls=True).cast(nw.Int64).alias("wrong")
    total = decisions.collect(decisions.frame.select(wrong).select(nw.all().sum()))
    return bool(total["wrong"][0])


def own_ranks(
    decisions: Decisions,
    attribute: Attribute,
    *,
    norms: Mapping[str, str],
    stratified: bool,
    counted: NormCounts,
) -> Ranks | None:
    """Ranks within (group, truth) of the score of the row's own class; None without a score.

    On Polars a table with too many rows is ranked class by class, as many at once as can be held.
    """
    if decisions.tallies is not None:
        named = rank_name(attribute, "own", norms=norms, stratified=stratified)
        return stored_ranks(decisions.tallies, named) if has_own_score(decisions) else None
    score = own_score(decisions)
    if score is None:
        return None
    truth = nw.col(str(decisions.roles.truth))
    within = {"truth": truth, **_strata(decisions, stratified)}
    if counted.held is not None:
        keys = [f"group{i}" for i in range(len(attribute.columns))]
        tally = counted.held.rank_moments([*keys, *within], score="score", norms=norms)
        return Ranks(tally=decisions.name_groups(tally, attribute))
    complete = counted.complete(norms.values())
    # Engines other than Polars rank on their own, but for a sample, which Spark alone ranks.
    numbers = 1 + len(norms) + len(sample_columns(decisions))
    ranked_here = decisions.engine == "polars" or (
        is_sampled(decisions) and decisions.engine != "spark"
    )
    batches = counted.batches(numbers) if ranked_here else []
    if len(batches) < 2:
        return rank_moments(
            decisions, attribute, score=score, norms=norms, within=within, complete=complete
        )
    tallies = [
        rank_moments(
            decisions,
            attribute,
            score=score,
            norms=norms,
            within=within,
            rows=nw.any_horizontal(
                *(decisions.is_label(str(decisions.roles.truth), name) for name in batch),
                ignore_nulls=True,
            ),
        )
        for batch in batches
    ]
    return reduce(Ranks.merge, tallies)


def other_ranks(
    decisions: Decisions,
    attribute: Attribute,
    name: str,
    *,
    norms: Mapping[str, str],
    stratified: bool,
) -> Ranks:
    """Ranks within the group of a class's score, among rows whose truth is another class."""
    if decisions.tallies is not None:
        named = rank_name(attribute, "not", name, norms=norms, stratified=stratified)
        return stored_ranks(decisions.tallies, named)
    truth = nw.col(str(decisions.roles.truth))
    return rank_moments(
        decisions,
        attribute,
        score=nw.col(decisions.roles.scores[name]).cast(nw.Float64),
        norms=norms,
        within=_strata(decisions, stratified),
        rows=~truth.is_null() & ~decisions.is_label(str(decisions.roles.truth), name),
    )


def binary_ranks(
    decisions: Decisions,
    attribute: Attribute,
    positive: str,
    *,
    norms: Mapping[str, str],
    stratified: bool,
) -> Ranks:
    """Ranks within (group, `y`) of the only score; `y` is 1 where the truth is positive."""
    if decisions.tallies is not None:
        named = rank_name(attribute, "binary", positive, norms=norms, stratified=stratified)
        return stored_ranks(decisions.tallies, named)
    return rank_moments(
        decisions,
        attribute,
        score=nw.col(str(decisions.roles.score)).cast(nw.Float64),
        norms=norms,
        within={"y": is_class(decisions, positive), **_strata(decisions, stratified)},
        rows=~nw.col(str(decisions.roles.truth)).is_null(),
    )


def _strata(decisions: Decisions, stratified: bool) -> dict[str, nw.Expr]:
    return decisions.stratum_key() if stratified else {}


def rank_moments(
    decisions: Decisions,
    attribute: Attribute,
    *,
    score: nw.Expr,
    norms: Mapping[str, str],
    within: Mapping[str, nw.Expr],
    rows: nw.Expr | None = None,
    complete: bool = False,
) -> Ranks:
    """By (group, *within): moments of the average ranks of the score and of each norm column.

    Sums n, `tied` (rows that share their score), x, xx, and y, yy, xy with `:<norm>`. Rows without
    the score or one of the norms are left out; ranks cannot be merged with those of other rows.
    With weights or clusters the sums are those of `stats.sampled_ranks`.

    Examples:
        >>> table = {"y": ["a"] * 4, "g": ["f"] * 4, "score:truth": [0.1, 0.2, 0.3, 0.4]}
        >>> decisions = Decisions(table | {"norm@f": [0.1, 0.3, 0.2, 0.4]}, truth="y", group="g")
        >>> found = rank_moments(decisions, decisions.roles.attributes[0],
        ...                      score=nw.col("score:truth"), norms={"f": "norm@f"},
        ...                      within={"truth": nw.col("y")})
        >>> found.tally.dense(["group", "truth"], "xy:f").tolist()
        [[29.0]]
    """
    keys = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)} | dict(within)
    known = ~score.is_null()
    for column in norms.values():
        known = known & ~nw.col(column).is_null()
    table = decisions.frame
    if not complete:
        table = table.filter(known if rows is None else known & rows)
    if is_sampled(decisions):
        return sampled_ranks(decisions, attribute, table, score=score, norms=norms, keys=keys)
    frame = table.select(
        *(expression.alias(f"key:{name}") for name, expression in keys.items()),
        score.alias("s"),
        *(nw.col(column).cast(nw.Float64).alias(f"norm:{k}") for k, column in norms.items()),
    )
    marks = [f"key:{name}" for name in keys]
    tally = None
    if decisions.engine == "polars":
        tally = in_memory(decisions, frame, marks, list(norms))
    if tally is None:
        tally = by_engine(decisions, frame, marks, list(norms))
    return Ranks(tally=decisions.name_groups(tally, attribute))


def by_engine(
    decisions: Decisions, frame: Frame, marks: Sequence[str], norms: Sequence[str]
) -> Tally:
    """The moments by the engine's own window functions and one aggregation."""
    score = nw.col("s")
    ranked = frame.select(
        *marks,
        score.rank("average").over(*marks).alias("x"),
        score.rank("min").over(*marks).alias("first"),
        score.rank("max").over(*marks).alias("last"),
        *(nw.col(f"norm:{k}").rank("average").over(*marks).alias(f"y:{k}") for k in norms),
    )
    x = nw.col("x")
    sums = {"tied": (nw.col("first") < nw.col("last")).cast(nw.Int64), "x": x, "xx": x * x}
    for k in norms:
        y = nw.col(f"y:{k}")
        sums |= {f"y:{k}": y, f"yy:{k}": y * y, f"xy:{k}": x * y}
    keys = {mark.removeprefix("key:"): nw.col(mark) for mark in marks}
    return decisions.aggregate(keys, sums, frame=ranked)


def in_memory(
    decisions: Decisions, frame: Frame, marks: Sequence[str], norms: Sequence[str]
) -> Tally | None:
    """The moments by sorting each cell once per column: several times faster than windows.

    None where there are more cells than it can number.
    """
    import polars as pl

    native: pl.LazyFrame = nw.to_native(frame)
    try:
        kinds = native.collect_schema()
        text = [pl.col(m).cast(pl.Categorical) for m in marks if kinds[m] == pl.String]
        table = native.with_columns(text).collect(engine="streaming")
    except Exception as error:
        raise unreadable(decisions.source, "a table", error) from error
    if not table.height:
        empty: dict[str, Sequence[float]] = {name: [] for name in moment_names(norms)}
        return Tally.of({mark.removeprefix("key:"): [] for mark in marks}, empty)
    cell: NDArray[Any] = np.zeros(table.height, dtype=np.uint16)
    size, labels = 1, []
    for mark in marks:
        told, codes = numbered(table[mark])
        size *= len(told)
        if size > MOST_CELLS:
            return None
        cell = cell * np.uint16(len(told)) + codes
        labels.append(told)
    columns = {k: table[f"norm:{k}"].to_numpy() for k in norms}
    sums = cell_moments(cell, table["s"].to_numpy(), columns, cells=size)
    there = np.flatnonzero(sums["n"] > 0)
    places = np.unravel_index(there, [len(told) for told in labels])
    keys: dict[str, Sequence[Any]] = {
        mark.removeprefix("key:"): [told[i] for i in place.tolist()]
        for mark, told, place in zip(marks, labels, places, strict=True)
    }
    return Tally.of(keys, {name: value[there].tolist() for name, value in sums.items()})


def numbered(column: Any) -> tuple[list[Any], NDArray[np.uint16]]:
    """The values of a Polars column and for each row the place of its own; a missing one is last.

    Places wrap where there are more than two bytes can number: the caller counts the values.
    """
    import polars as pl

    holes = bool(column.null_count())
    if column.dtype in (pl.Categorical, pl.Enum):
        values = column.drop_nulls().unique() if holes else column.unique()
        physical = values.to_physical().to_numpy()
        place = np.full(int(physical.max(initial=0)) + 2, len(values), dtype=np.uint16)
        place[physical] = np.arange(len(values))
        found = column.to_physical()
        codes = place[found.cast(pl.UInt32).fill_null(len(place) - 1).to_numpy()]
    else:
        values = column.drop_nulls().unique().sort()
        found = values.search_sorted(column.fill_null(values[0]) if len(values) else column)
        codes = np.where(column.is_null().to_numpy(), len(values), found.to_numpy())
        codes = codes.astype(np.uint16)
    return [*values.to_list(), *([None] if holes else [])], codes


def moment_names(norms: Sequence[str]) -> list[str]:
    """The sums of a tally of ranks."""
    return ["n", "tied", "x", "xx", *(f"{m}:{k}" for k in norms for m in ("y", "yy", "xy"))]
