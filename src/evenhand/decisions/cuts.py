"""Where a score becomes a decision: thresholds as numbers, by group or as a column.

A score is compared with the threshold as the score's own type holds it: among scores of 32 bits
0.7 is the nearest number of 32 bits, so that a score written as 0.7 reaches it on every engine.
"""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.decisions.columns import Schema, is_named
from evenhand.decisions.roles import Roles
from evenhand.errors import UsageError

# Where nothing else is said, one class is told from the others at this score.
ONE_VERSUS_REST = 0.5
Cut = float | nw.Expr


def rounded(threshold: float, kind: Any) -> float:
    """The threshold as a score of this type would hold it.

    Examples:
        >>> rounded(0.7, nw.Float64()), rounded(0.7, nw.Float32()) == float(np.float32(0.7))
        (0.7, True)
    """
    return float(np.float32(threshold)) if kind == nw.Float32 else float(threshold)


def as_number(schema: Schema, column: str) -> nw.Expr:
    """A column as numbers of 64 bits, which hold every shorter one exactly."""
    expression = nw.col(column)
    return expression if schema[column] == nw.Float64 else expression.cast(nw.Float64)


def cut_expression(roles: Roles, schema: Schema, score: str | None = None) -> Cut:
    """The threshold as a number, or as a column where it depends on the row.

    With a `score` as the scores of that column hold it, without one as it was given.
    """
    kind = schema[score] if score is not None else nw.Float64()
    threshold = roles.threshold
    if isinstance(threshold, str):
        column = nw.col(threshold)
        if kind == nw.Float32 and schema[threshold] != nw.Float32:
            column = column.cast(nw.Float32)
        return column.cast(nw.Float64)
    if isinstance(threshold, Mapping):
        group = roles.group[0]
        chosen: Any = nw.lit(None, dtype=nw.Float64)
        for name, value in threshold.items():
            here = is_named(nw.col(group), schema[group], name)
            chosen = nw.when(here).then(nw.lit(rounded(value, kind))).otherwise(chosen)
        return chosen  # type: ignore[no-any-return]
    return rounded(ONE_VERSUS_REST if threshold is None else threshold, kind)


def reaches(roles: Roles, schema: Schema, score: str) -> nw.Expr:
    """Whether a score reaches its threshold; null where either is missing."""
    cut = cut_expression(roles, schema, score)
    known = ~nw.col(score).is_null()
    if isinstance(cut, nw.Expr):
        known = known & ~cut.is_null()
    # Engines differ on comparing a missing value: no score or no threshold, no decision.
    return nw.when(known).then(as_number(schema, score) >= cut)


def cut_scores(roles: Roles) -> list[str]:
    """The score columns that a threshold is held against."""
    if roles.rule == "one-versus-rest":
        return list(roles.scores.values())
    return [roles.score] if roles.score is not None and roles.threshold is not None else []


def check_scale(roles: Roles, facts: Mapping[str, float]) -> None:
    """Refuse thresholds on another scale than the scores, in whatever form they are given.

    `facts` holds `min:<column>` and `max:<column>`. A threshold beyond all scores but on their
    scale is a choice like any other: it selects nobody, or everybody.
    """
    columns = [column for column in cut_scores(roles) if f"min:{column}" in facts]
    if not columns:
        return
    low = min(facts[f"min:{column}"] for column in columns)
    high = max(facts[f"max:{column}"] for column in columns)
    threshold = ONE_VERSUS_REST if roles.threshold is None else roles.threshold
    if isinstance(threshold, str):
        ends = [facts[k] for k in (f"min:{threshold}", f"max:{threshold}") if k in facts]
        words = f"threshold={threshold!r} lies between {' and '.join(f'{t:g}' for t in ends)},"
        given = [(t, words) for t in ends]
    elif isinstance(threshold, Mapping):
        given = [(t, f"threshold={t:g} for {name!r} is") for name, t in threshold.items()]
    else:
        given = [(threshold, f"threshold={threshold:g} is")]
    for value, words in given:
        _check_one(value, words, low, high)


def _check_one(value: float, words: str, low: float, high: float) -> None:
    scores = f"the scores, which lie between {low:g} and {high:g}."
    if low >= 0 and high <= 1:
        if not 0 <= value <= 1:
            hint = (
                f"For a {value:g}% cut write threshold={value / 100:g}."
                if 1 < value <= 100
                else "Choose a threshold among the scores."
            )
            raise UsageError(f"{words} outside {scores} {hint}")
        return
    if low >= 0 and 10 < high <= 100 and 0 < value < 1:
        raise UsageError(
            f"{words} on another scale than {scores} For a {100 * value:g}% cut write "
            f"threshold={100 * value:g}; for one at {value:g} of 100 divide scores and threshold "
            "by 100."
        )
    room = (high - low) or max(1.0, abs(high))
    if not low - room <= value <= high + room:
        raise UsageError(f"{words} outside {scores} Choose a threshold among the scores.")
