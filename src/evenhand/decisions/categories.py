"""People counted by two categories at once: who was selected, or scored above the median."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from evenhand.decisions.columns import is_named
from evenhand.decisions.labels import ordered
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryCounts:
    """Counts by the values of two columns, of those whose values are known.

    Attributes:
        names: The values of either column.
        outcomes: What people were assigned: classes, or one for scores above the median.
        people: By (first, second).
        chosen: By (first, second, outcome).
        unknown: How many lack the first, the second, either of them, or an outcome.
        median: The median score of those counted, where scores are.
    """

    names: tuple[tuple[str, ...], tuple[str, ...]]
    outcomes: tuple[str, ...]
    people: FloatArray
    chosen: FloatArray
    unknown: dict[str, int]
    median: float | None = None


def count_categories(
    decisions: Decisions, columns: Sequence[str], *, unknown: Iterable[str] = ()
) -> CategoryCounts:
    """Counts of decisions, or of scores above their median where nothing is decided.

    `unknown` are values that say no category, such as "Decline to state". The median is that of
    the people who are counted.

    Examples:
        >>> table = {"sex": ["f", "f", "m", "m", None], "race": ["a", "b", "a", "b", "a"]}
        >>> table["score"] = [1.0, 4.0, 2.0, 3.0, 9.0]
        >>> made = Decisions(table, score="score", group=["sex", "race"])
        >>> counts = count_categories(made, ["sex", "race"])
        >>> counts.median, counts.chosen[:, :, 0].tolist(), counts.unknown["either"]
        (2.5, [[0.0, 1.0], [0.0, 1.0]], 1)
    """
    lacking = {column: _lacks(decisions, column, list(unknown)) for column in columns}
    scored = decisions.roles.rule is None
    keys: dict[str, nw.Expr] = {
        f"category{i}": nw.when(~lacking[c]).then(nw.col(c)) for i, c in enumerate(columns)
    }
    median = None
    if scored:
        score = nw.col(str(decisions.roles.score)).cast(nw.Float64)
        nobody = lacking[columns[0]] | lacking[columns[1]] | score.is_null()
        counted = decisions.frame.filter(~nobody).select(score.median().alias("median"))
        median = decisions.collect(counted)["median"][0]
        if median is None:
            raise DataError("Nobody has a score and both categories, so that nothing is counted.")
        keys["outcome"] = nw.when(~score.is_null()).then(score > median)
    else:
        keys["outcome"] = decisions.decision_expression()
    tally = decisions.aggregate(keys, {})
    if not scored:
        decisions.check_classes(tally, decision="outcome")
    return _counts(tally, median=median)


def _lacks(decisions: Decisions, column: str, unknown: list[str]) -> nw.Expr:
    none = nw.col(column).is_null()
    for name in unknown:
        named = is_named(nw.col(column), decisions.schema[column], name)
        none = none | named.fill_null(value=False)
    return none


def _counts(tally: Tally, *, median: float | None) -> CategoryCounts:
    n, codes = tally.sums["n"], tally.codes
    first, second, outcome = (codes[key] < 0 for key in ("category0", "category1", "outcome"))
    keys = ["category0", "category1", "outcome"]
    if median is not None:
        tally = tally.relabel("outcome", ["0", "1"])
    table = tally.dense(keys, "n")
    outcomes = tuple(tally.labels["outcome"])
    if median is not None:
        table_chosen, outcomes = table[:, :, 1:], ("above the median",)
    else:
        table_chosen = table
    return CategoryCounts(
        names=(
            tuple(ordered(tally.labels["category0"])),
            tuple(ordered(tally.labels["category1"])),
        ),
        outcomes=outcomes,
        people=table.sum(axis=2),
        chosen=table_chosen,
        unknown={
            "first": int(n[first].sum()),
            "second": int(n[second].sum()),
            "either": int(n[first | second].sum()),
            "outcome": int(n[outcome & ~first & ~second].sum()),
        },
        median=None if median is None else float(np.float64(median)),
    )
