"""Scores at the cut, cuts of another scale and NaN: the same on every engine, or refused."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from alike import (
    FRAMES,
    N,
    Refused,
    Seen,
    audited,
    cases,
    check_refused,
    check_same,
    check_seen,
    check_values,
    groups,
    plain,
    says,
    selected,
)

import evenhand as eh
from evenhand.errors import UsageError

NAN = float("nan")
CUT = {"decision": None, "score": "s", "threshold": 0.7}
OVER = {"decision": None, "truth": "job", "rule": "one-versus-rest"}
BY_GROUP = {"f": 0.7, "m": 0.7}
TENTHS = ([0.69, 0.7, 0.71, 0.1] * N)[:N]


def scores(kind: Any = pl.Float32, cut: Any = pl.Float64) -> pl.DataFrame:
    table = plain(s=pl.Series(TENTHS, dtype=kind))
    return table.with_columns(cut=pl.Series([0.7] * N, dtype=cut))


def wide(kind: Any = pl.Float64, **columns: Any) -> pl.DataFrame:
    """The same scores for two classes."""
    table = scores(kind).with_columns(job=pl.Series(["a", "b"] * 60), **columns)
    return table.with_columns(pl.col("s").alias("score:a"), pl.col("s").alias("score:b"))


def half(class_: str = "1") -> Callable[[eh.Audit], None]:
    """Half of the scores reach 0.7, those that are written as 0.7 among them."""
    return lambda audit: check_values(selected(audit, class_=class_), {"f": 0.5, "m": 0.5})


def three_quarters(audit: eh.Audit) -> None:
    check_values(selected(audit), {"f": 0.75, "m": 0.75})


def implied(audit: eh.Audit) -> None:
    """A score at the cut is decided yes: it is the lowest of those accepted."""
    for group in audit.details["thresholds"]["attributes"][0]["groups"]:
        assert group["threshold"] == pytest.approx(0.7, abs=1e-7)
        assert group["margin"]["accepted"]["score"] == pytest.approx(0.7, abs=1e-7)
        assert group["margin"]["refused"]["score"] == pytest.approx(0.69, abs=1e-7)


FORMS: list[tuple[str, Any, dict[str, Any], Callable[[eh.Audit], None]]] = [
    ("a number", scores, CUT, half()),
    ("by group", scores, {**CUT, "threshold": BY_GROUP}, half()),
    ("a column", scores, {**CUT, "threshold": "cut"}, half()),
    ("one versus rest", wide, {**OVER, "threshold": 0.7}, half("a")),
    ("one versus rest by group", wide, {**OVER, "threshold": BY_GROUP}, half("b")),
    ("one versus rest by a column", wide, {**OVER, "threshold": "cut"}, half("b")),
    ("implied thresholds", scores, CUT, implied),
    ("implied thresholds by a column", scores, {**CUT, "threshold": "cut"}, implied),
]
AT_THE_CUT = [
    Seen(
        kind="cuts",
        name=f"{form}, scores of {name}",
        table=lambda make=make, kind=kind: make(kind),
        roles=roles,
        check=check,
    )
    for name, kind in {"32 bits": pl.Float32, "64 bits": pl.Float64}.items()
    for form, make, roles, check in FORMS
]
AT_THE_CUT += [
    Seen(
        kind="cuts",
        name="scores and a column of 32 bits",
        table=lambda: scores(pl.Float32, pl.Float32),
        roles={**CUT, "threshold": "cut"},
        check=half(),
    ),
    # Among scores of 64 bits a threshold of 32 bits is the number that it is, a little below 0.7.
    Seen(
        kind="cuts",
        name="a column of 32 bits for scores of 64",
        table=lambda: scores(pl.Float64, pl.Float32),
        roles={**CUT, "threshold": "cut"},
        check=half(),
    ),
    Seen(
        kind="cuts",
        name="whole scores and a cut between them",
        table=lambda: plain(s=[1, 2, 3, 4] * 30),
        roles={**CUT, "threshold": 1.5},
        check=three_quarters,
    ),
    Seen(
        kind="cuts",
        name="decimals",
        table=lambda: plain(s=pl.Series([Decimal(str(s)) for s in TENTHS])),
        roles=CUT,
        check=half(),
    ),
]


def holed(values: list[Any], column: str) -> Callable[[], pl.DataFrame]:
    return lambda: scores(pl.Float64).with_columns(pl.Series(column, values))


def left_out(reason: str, **names: list[str]) -> Callable[[eh.Audit], None]:
    """A third of the rows is left out for this reason, and no label stands for them."""

    def check(audit: eh.Audit) -> None:
        assert {"reason": reason, "rows": N // 3} in audit.data["excluded"]
        for key, expected in names.items():
            assert groups(audit, key=key) == expected

    return check


THIRD = [NAN, 0.7, 0.7] * 40
AGES = holed([NAN, 1.0, 9.0] * 40, "age")
MISSING = [
    Seen(
        kind="NaN",
        name="thresholds",
        table=holed(THIRD, "cut"),
        roles={**CUT, "threshold": "cut"},
        check=left_out("no decision"),
    ),
    Seen(
        kind="NaN",
        name="thresholds of one versus rest",
        table=lambda: wide(cut=pl.Series(THIRD)),
        roles={**OVER, "threshold": "cut"},
        check=left_out("no decision"),
    ),
    Seen(
        kind="NaN",
        name="strata between edges",
        table=AGES,
        roles={"stratum": "age", "stratum_edges": [5.0]},
        check=left_out("no age (kept outside strata)", stratum=["<5", ">=5"]),
    ),
    Seen(
        kind="NaN",
        name="strata by their values",
        table=AGES,
        roles={"stratum": "age"},
        check=left_out("no age (kept outside strata)", stratum=["1", "9"]),
    ),
    Seen(
        kind="NaN",
        name="groups",
        table=holed([NAN, 1.0, 2.0] * 40, "g"),
        check=left_out("no g", group=["1", "2"]),
    ),
    Seen(
        kind="NaN",
        name="truth",
        table=holed([NAN, 1.0, 0.0] * 40, "y"),
        roles={"score": "s"},
        check=left_out("no truth (kept for selection rates)"),
    ),
    Seen(
        kind="NaN",
        name="decisions",
        table=holed([NAN, 1.0, 0.0] * 40, "d"),
        check=left_out("no decision"),
    ),
    Seen(
        kind="NaN",
        name="clusters",
        table=holed([NAN, 1.0, 2.0] * 40, "c"),
        roles={"cluster": "c"},
        check=left_out("no c"),
    ),
]
WITHOUT_EFFECT = [
    Seen(
        kind="scale",
        name="nobody",
        table=scores,
        roles={**CUT, "threshold": 0.9},
        check=says("threshold=0.9 selects nobody: every score lies below it."),
    ),
    Seen(
        kind="scale",
        name="everybody",
        table=scores,
        roles={**CUT, "threshold": 0.05},
        check=says("threshold=0.05 selects everybody: every score lies at or above it."),
    ),
    Seen(
        kind="scale",
        name="nobody of a group",
        table=scores,
        roles={**CUT, "threshold": {"f": 0.9, "m": 0.7}},
        check=says("threshold=0.9 selects nobody of 'f': every score lies below it."),
    ),
    Seen(
        kind="scale",
        name="nobody by a column",
        table=lambda: scores().with_columns(cut=pl.lit(0.95)),
        roles={**CUT, "threshold": "cut"},
        check=says("The threshold selects nobody: every score lies below it."),
    ),
    Seen(
        kind="scale",
        name="nobody of one versus rest",
        table=wide,
        roles={**OVER, "threshold": 0.9},
        check=says("The threshold selects nobody for 'a', 'b': every score lies below it."),
    ),
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", cases([*AT_THE_CUT, *MISSING, *WITHOUT_EFFECT]))
def test_cuts_are_seen_alike(case: Seen, frame: str) -> None:
    check_seen(case, frame)


SHORT = [case for case in AT_THE_CUT if "32 bits" in case.name]


@pytest.mark.heavy
@pytest.mark.parametrize("case", cases([*SHORT, *MISSING]))
def test_cuts_are_seen_alike_on_spark(case: Seen, spark: Any) -> None:
    table = case.table()
    data = spark.createDataFrame(table.to_arrow(compat_level=pl.CompatLevel.oldest()))
    found = audited(data, **case.roles)
    case.check(found)
    check_same(found, audited(table, **case.roles))


AMONG = "outside the scores, which lie between 0.1 and 0.71. For a 80% cut write threshold=0.8."
PERCENT = (
    "on another scale than the scores, which lie between 3 and 98. For a 80% cut write "
    "threshold=80; for one at 0.8 of 100 divide scores and threshold by 100."
)
BOTH = (
    "and only both together correct for a truth that errs. Give both, such as "
    "truth_sensitivity=0.95 and truth_specificity=0.99 (--truth-sensitivity, --truth-specificity)."
)


def percents() -> pl.DataFrame:
    return plain(s=[3.0, 55.0, 70.0, 98.0] * 30, cut=[0.8] * N)


# Wrong scales: the form, the table, the roles and the sentence.
SCALES: list[tuple[str, Callable[[], pl.DataFrame], dict[str, Any], str]] = [
    ("a number", scores, {**CUT, "threshold": 80}, f"threshold=80 is {AMONG}"),
    (
        "by group",
        scores,
        {**CUT, "threshold": {"f": 0.5, "m": 80}},
        f"threshold=80 for 'm' is {AMONG}",
    ),
    (
        "a column",
        lambda: scores().with_columns(cut=pl.lit(80.0)),
        {**CUT, "threshold": "cut"},
        f"threshold='cut' lies between 80 and 80, {AMONG}",
    ),
    ("one versus rest", wide, {**OVER, "threshold": 80}, f"threshold=80 is {AMONG}"),
    (
        "one versus rest by a column",
        lambda: wide(cut=pl.lit(80)),
        {**OVER, "threshold": "cut"},
        f"threshold='cut' lies between 80 and 80, {AMONG}",
    ),
    (
        "beside given decisions",
        scores,
        {"score": "s", "threshold": 80},
        f"threshold=80 is {AMONG}",
    ),
    ("a share of percents", percents, {**CUT, "threshold": 0.8}, f"threshold=0.8 is {PERCENT}"),
    (
        "a column of shares of percents",
        percents,
        {**CUT, "threshold": "cut"},
        f"threshold='cut' lies between 0.8 and 0.8, {PERCENT}",
    ),
    (
        "one versus rest of percents, by itself",
        lambda: percents().with_columns(
            job=pl.col("y"), **{"score:0": pl.col("s"), "score:1": pl.col("s")}
        ),
        OVER,
        "threshold=0.5 is on another scale than the scores, which lie between 3 and 98. For a 50% "
        "cut write threshold=50; for one at 0.5 of 100 divide scores and threshold by 100.",
    ),
    (
        "far beyond scores of no scale",
        lambda: plain(s=[-3.0, -1.0, 0.5, 4.0] * 30),
        {**CUT, "threshold": 80},
        "threshold=80 is outside the scores, which lie between -3 and 4. Choose a threshold among "
        "the scores.",
    ),
]
NO_NUMBERS: list[tuple[str, Callable[[], pl.DataFrame], dict[str, Any], str]] = [
    (
        "a threshold",
        scores,
        {**CUT, "threshold": NAN},
        "threshold=nan is not a number. Give the score from which on the decision is positive, "
        "such as 0.5.",
    ),
    (
        "edges of strata",
        percents,
        {"stratum": "s", "stratum_edges": [NAN]},
        "stratum_edges=[nan] do not rise. Give the cut points in rising order, such as 18,30,65.",
    ),
]
SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("unknown", {"bandwith": 0.1}, "'bandwith' is not a setting. Did you mean 'bandwidth'?"),
    (
        "sensitivity alone",
        {"truth_sensitivity": 0.9},
        f"truth_sensitivity is given and truth_specificity is not, {BOTH}",
    ),
    (
        "specificity, and NaN",
        {"truth_specificity": {"f": 0.9}, "truth_sensitivity": NAN},
        f"truth_specificity is given and truth_sensitivity is not, {BOTH}",
    ),
    (
        "NaN for one group",
        {"truth_sensitivity": {"f": 0.9, "m": 0.9}, "truth_specificity": {"f": NAN, "m": 0.9}},
        f"truth_sensitivity is given for 'f' and truth_specificity is not, {BOTH}",
    ),
    (
        "no share",
        {"truth_sensitivity": 95, "truth_specificity": 0.9},
        "truth_sensitivity=95 is not between 0 and 1. For 95 in a hundred write 0.95.",
    ),
]
REFUSED = [
    Refused(kind=kind, name=name, table=table, roles=roles, sentence=words, error=UsageError)
    for kind, listed in (("scale", SCALES), ("NaN", NO_NUMBERS))
    for name, table, roles, words in listed
]
REFUSED += [
    Refused(
        kind="settings",
        name=name,
        table=scores,
        roles={**CUT, "settings": settings},
        sentence=words,
        error=UsageError,
    )
    for name, settings, words in SETTINGS
]
REFUSED.append(
    Refused(
        kind="NaN",
        name="an infinite threshold",
        table=lambda: scores().with_columns(cut=pl.lit(float("inf"))),
        roles={**CUT, "threshold": "cut"},
        sentence="threshold='cut' holds 120 values that are not finite (NaN or infinite). Replace "
        "them or leave them empty.",
    )
)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", cases(REFUSED))
def test_refused_cuts(case: Refused, frame: str) -> None:
    check_refused(case, frame)
