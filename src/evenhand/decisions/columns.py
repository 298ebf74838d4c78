"""The columns that have a role, brought to one form on every engine before anything is counted.

A missing value is null and nothing else, bytes are text, and a label is compared with a value of
the column's own type, never with how an engine happens to write that value.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import isclose
from numbers import Real
from typing import Any

import narwhals as nw

from evenhand.decisions.labels import MISSING, label
from evenhand.decisions.missing_words import plain_word, without_words
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import OWN_SCORE, Roles
from evenhand.errors import DataError, UsageError

Schema = Mapping[str, Any]
# The roles of columns whose values are names.
LABEL_ROLES = ("truth", "decision", "stratum", "labeler", "item", "cluster")
# Types of DuckDB that others give as text, or that Narwhals does not know.
DUCKDB_TEXTS = ("UUID", "TIME_NS")
WORDS = (nw.String, nw.Categorical, nw.Enum)
# Different numbers of a group column: whole ones may be codes, fractions seldom are.
MOST_CODES, MOST_FRACTIONS = 52, 20
# Scores and weights beyond this cannot be squared and added up.
FARTHEST = 1e100


def label_columns(roles: Roles) -> dict[str, str]:
    """The columns whose values are names, each with its role; a stratum cut at edges is none.

    Examples:
        >>> label_columns(Roles(truth="y", score="s", group=("g",), stratum="age"))
        {'y': 'truth', 'age': 'stratum', 'g': 'group'}
    """
    named = {getattr(roles, role): role for role in LABEL_ROLES}
    if roles.stratum_edges:
        named = {column: role for column, role in named.items() if role != "stratum"}
    named |= dict.fromkeys(roles.group, "group")
    named |= dict.fromkeys(roles.counterfactual.values(), "counterfactual")
    return {column: role for column, role in named.items() if column is not None}


def number_columns(roles: Roles) -> dict[str, str]:
    """The columns whose values are numbers, each with its role.

    Examples:
        >>> number_columns(Roles(truth="y", score="s", group=("g",), threshold="cut"))
        {'s': 'score', 'cut': 'threshold'}
    """
    norms = (*roles.norm.values(), *roles.norm_irrelevant.values())
    named: dict[str | None, str] = dict.fromkeys(norms, "norm")
    named |= dict.fromkeys(roles.scores.values(), "scores")
    for role in ("score", "weight", "review_share", "seconds"):
        named[getattr(roles, role)] = role
    if isinstance(roles.threshold, str):
        named[roles.threshold] = "threshold"
    if roles.stratum_edges:
        named[roles.stratum] = "stratum"
    return {column: role for column, role in named.items() if column is not None}


def canonical(frame: Frame, roles: Roles, *, engine: str) -> Frame:
    """The frame with one kind of missing value and with text in place of bytes.

    Scores and weights are left as they are: there NaN is refused, not taken for a missing value,
    unless it is among the words that are said to be missing.

    Examples:
        >>> import polars as pl
        >>> table = nw.from_native(pl.LazyFrame({"g": [1.0, float("nan")], "d": [b"no", b"yes"]}))
        >>> fixed = canonical(table, Roles(decision="d", group=("g",)), engine="polars")
        >>> fixed.collect().rows()
        [(1.0, 'no'), (None, 'yes')]
    """
    labels = label_columns(roles)
    frame = _with_types(frame, labels, number_columns(roles), engine)
    frame = _as_text(frame, list(labels), engine)
    cuts = [c for c, role in number_columns(roles).items() if role in {"threshold", "stratum"}]
    schema = frame.collect_schema()
    floats = [column for column in dict.fromkeys([*labels, *cuts]) if schema[column].is_float()]
    known = [nw.when(~nw.col(c).is_nan()).then(nw.col(c)).alias(c) for c in floats]
    frame = frame.with_columns(*known) if known else frame
    if not roles.missing_words:
        return frame
    columns = dict.fromkeys([*labels, *number_columns(roles)])
    values = [_unless_named(column, schema[column], roles) for column in columns]
    changed = [value for value in values if value is not None]
    return frame.with_columns(*changed) if changed else frame


def _unless_named(column: str, kind: Any, roles: Roles) -> nw.Expr | None:
    """A column that is null where it has a value that stands for none; None where it cannot be."""
    words = roles.missing_words
    if kind in WORDS:
        return without_words(column, words) if column in label_columns(roles) else None
    if not (kind.is_numeric() or kind in (nw.Date, nw.Datetime)):
        return None
    here = [is_named(nw.col(column), kind, w) for w in words if _value(kind, w) is not None]
    if kind.is_float() and "nan" in map(plain_word, words):
        here.append(nw.col(column).is_nan())
    if not here:
        return None
    hit = nw.any_horizontal(*here, ignore_nulls=True)
    return nw.when(~hit).then(nw.col(column)).alias(column)


def _with_types(
    frame: Frame, labels: Mapping[str, str], numbers: Mapping[str, str], engine: str
) -> Frame:
    """Columns in which every value is missing, so that they have no type, by what they are for."""
    native = frame.to_native()
    untyped: set[str] = set()
    if engine == "polars":
        untyped = {name for name, kind in native.collect_schema().items() if str(kind) == "Null"}
    elif engine == "duckdb":
        kinds = zip(native.columns, map(str, native.types))
        untyped = {name for name, kind in kinds if kind == '"NULL"'}
    elif engine == "spark":
        untyped = {name for name, kind in native.dtypes if kind == "void"}
    made = [nw.col(c).cast(nw.Float64) for c in numbers if c in untyped]
    made += [nw.col(c).cast(nw.String) for c in labels if c in untyped and c not in numbers]
    return frame.with_columns(*made) if made else frame


def _as_text(frame: Frame, columns: list[str], engine: str) -> Frame:
    """Bytes as the text they encode, and what an engine alone knows as text."""
    schema = frame.collect_schema()
    binary = [column for column in columns if schema[column] == nw.Binary]
    if engine != "duckdb":
        return frame.with_columns(nw.col(c).cast(nw.String) for c in binary) if binary else frame
    relation = frame.to_native()
    kinds = dict(zip(relation.columns, map(str, relation.types)))
    # A plain cast would write a byte beyond ASCII as an escape.
    made = {column: f"decode({_quoted(column)})" for column in binary}
    made |= {c: f"CAST({_quoted(c)} AS VARCHAR)" for c in columns if kinds[c] in DUCKDB_TEXTS}
    if not made:
        return frame
    columns_as = ", ".join(f"{how} AS {_quoted(column)}" for column, how in made.items())
    return nw.from_native(relation.select(f"* REPLACE ({columns_as})"))  # type: ignore[no-any-return]


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def check_types(schema: Schema, roles: Roles, *, engine: str) -> None:
    """Refuse columns whose type does not fit their role."""
    numbers, labels = number_columns(roles), label_columns(roles)
    for column, role in numbers.items():
        if not (schema[column].is_numeric() or schema[column] == nw.Boolean):
            raise DataError(
                f"{role}={column!r} holds {schema[column]}, not numbers. "
                "Some value in it may be text; clean or convert the column."
            )
    for column, role in {**labels, **numbers}.items():
        if engine == "spark" and "." in column:
            raise DataError(
                f"{role}={column!r} has a dot, which Spark takes for a field of a column. "
                "Rename the column."
            )
    for column, role in labels.items():
        kind = schema[column]
        odd = kind in (nw.Unknown, nw.Object, nw.Duration)
        if odd or kind.is_nested():
            unknown = "no value, or values of a type of its own"
            what = unknown if kind == nw.Unknown else kind
            raise DataError(
                f"{role}={column!r} holds {what}, not single values. "
                "Name a column of texts, numbers or booleans."
            )


def check_size(role: str, column: str, facts: Mapping[str, float]) -> None:
    """Refuse numbers whose squares and sums 64 bits do not hold: `facts` has their range.

    Examples:
        >>> check_size("score", "s", {"min:s": 0.1, "max:s": 1e300})
        Traceback (most recent call last):
        evenhand.errors.DataError: score='s' goes up to 1e+300, too far to reckon with. If that \
stands for no value, leave the cell empty; else divide all of them by a power of ten.
    """
    low, high = facts[f"min:{column}"], facts[f"max:{column}"]
    far = low if -low > high else high
    if abs(far) > FARTHEST:
        raise DataError(
            f"{role}={column!r} goes {'up' if far > 0 else 'down'} to {far:g}, too far to reckon "
            "with. If that stands for no value, leave the cell empty; else divide all of them by "
            "a power of ten."
        )
    if role == "weight" and 0 < high < 1 / FARTHEST:
        raise DataError(
            f"{role}={column!r} goes up to {high:g} only, too little to reckon with. Multiply all "
            "of them by a power of ten."
        )


def is_named(column: nw.Expr, kind: Any, name: str) -> nw.Expr:
    """Whether a value has this label; null where there is no value.

    Examples:
        >>> import polars as pl
        >>> table = nw.from_native(pl.DataFrame({"code": ["1", "01", None]}))
        >>> table.select(is_named(nw.col("code"), nw.String(), "1"))["code"].to_list()
        [True, False, None]
    """
    value = _value(kind, name)
    if value is None:
        return nw.when(~column.is_null()).then(nw.lit(False))
    if kind in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    elif kind.is_decimal():
        column = column.cast(nw.Float64)
    return column == nw.lit(value)


def _value(kind: Any, name: str) -> Any:
    """The value of this type that has this label, or None where there is none."""
    if kind in WORDS:
        return name
    if kind == nw.Boolean:
        return {"1": True, "0": False}.get(name)
    try:
        if kind.is_integer():
            value: Any = int(name)
        elif kind.is_numeric():
            value = float(name)
        elif kind == nw.Date:
            value = date.fromisoformat(name)
        elif kind == nw.Time:
            value = time.fromisoformat(name)
        else:
            value = datetime.fromisoformat(name)
    except ValueError:
        return None
    if label(value) != name:
        return None
    zone = getattr(kind, "time_zone", None)
    if not zone:
        return value
    from zoneinfo import ZoneInfo

    return value.astimezone(ZoneInfo(zone))


def has_truth_class(head: Mapping[str, Sequence[Any]], roles: Roles) -> bool:
    """Whether `score:truth` is the score of a class of that name, by some rows of the table.

    The score of a row's own class is a copy of one of the others, of the truth's where it is known.

    Examples:
        >>> own = {"score:truth": [0.7, 0.4], "score:a": [0.7, 0.6], "score:b": [0.3, 0.4]}
        >>> apart = {"score:truth": [0.2, 0.1], "score:a": [0.5, 0.6], "score:b": [0.3, 0.3]}
        >>> roles = Roles(scores={"a": "score:a", "b": "score:b"})
        >>> has_truth_class(own, roles), has_truth_class(apart, roles)
        (False, True)
    """
    same = rows = 0
    truths = head[roles.truth] if roles.truth else [None] * len(head[OWN_SCORE])
    for i, (value, truth) in enumerate(zip(head[OWN_SCORE], truths)):
        own = roles.scores.get(str(label(truth)))
        others = [head[c][i] for c in ([own] if own else roles.scores.values())]
        if value is None or None in others:
            continue
        rows += 1
        same += any(isclose(value, other, rel_tol=1e-6, abs_tol=1e-9) for other in others)
    if 0.5 * rows <= same < rows:
        raise UsageError(
            f"{OWN_SCORE!r} is the score of the row's own class in {same:,} of {rows:,} rows and "
            "not in the others. Rename the column if it belongs to a class named 'truth'; else "
            "take it from the same model as the other scores."
        )
    return same < rows


def are_amounts(values: Sequence[Any], kind: Any, distinct: int, *, rows: int) -> bool:
    """Whether a column of numbers has more different ones than groups have codes.

    Examples:
        >>> are_amounts([0.5, 1.25], nw.Float64(), 2, rows=40)
        False
        >>> are_amounts(range(70), nw.Int64(), 70, rows=140)
        True
    """
    if not kind.is_numeric():
        return False
    numbers = [value for value in set(values) if isinstance(value, Real | Decimal)]
    if any(not float(value).is_integer() for value in numbers):
        return distinct > MOST_FRACTIONS
    # A number of each row's own is a key, which is reported.
    return MOST_CODES < distinct < rows


def holds_amounts(column: str, distinct: int, rows: int) -> DataError:
    """The error of a group column whose numbers are amounts: they have to be cut at edges."""
    return DataError(
        f"group={column!r} holds amounts, {distinct:,} different ones among the first "
        f"{rows:,} rows, and each would be a group of its own. Cut them at a few edges first, as "
        "pandas.cut does, or audit by it as a stratum (--stratum, --stratum-edges 18,30,65). "
        "Codes are groups when they are words."
    )


def too_many(column: str, most: int, seen: str) -> DataError:
    """The error of a group column with more values than groups can have."""
    return DataError(
        f"group={column!r} has more than {most:,} values ({seen}). It looks like an id "
        "column: name the column that says which group a person belongs to."
    )


def check_reserved(
    role: str, column: str | None, labels: Iterable[str], reserved: Iterable[str]
) -> None:
    """Refuse a value that results use for something else.

    Examples:
        >>> check_reserved("group", "g", ["<rest>"], ["<rest>"])
        Traceback (most recent call last):
        evenhand.errors.DataError: group='g' holds '<rest>', which results use for a comparison. \
Give that group another name.
    """
    for name in sorted(set(reserved) & set(labels)):
        use = "for rows without a value" if name == MISSING else "for a comparison"
        raise DataError(
            f"{role}={column!r} holds '{name}', which results use {use}. "
            f"Give that {role} another name."
        )


def where_known(*columns: str) -> nw.Expr:
    """1 where all of these columns have a value, null elsewhere: a key for what is left out."""
    known = ~nw.col(columns[0]).is_null()
    for column in columns[1:]:
        known = known & ~nw.col(column).is_null()
    return nw.when(known).then(nw.lit(1))
