"""Labels of any type and names that clash: one rule on every engine, or one sentence."""

import datetime
import sys
from collections.abc import Callable
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from alike import (
    FRAMES,
    GIVEN,
    GROUPS,
    N,
    Refused,
    Seen,
    audited,
    cases,
    check_refused,
    check_seen,
    check_values,
    groups,
    plain,
    says,
    selected,
)

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import DataError, UsageError

ALIKE = "differ only in case, spaces or Unicode form. If they are one, write them alike."
DAY, DAWN = datetime.datetime(2026, 11, 1), datetime.datetime(2026, 11, 1, 5)
DAYS = [DAY.date(), datetime.date(2026, 11, 2)]
CUT = {"decision": None, "score": "s"}


def by_turns(values: list[Any], **columns: Any) -> Callable[[], pl.DataFrame]:
    """A table whose groups take these values in turn."""
    return lambda: plain(g=[values[i % len(values)] for i in range(N)], **columns)


def labelled(*names: str) -> Callable[[eh.Audit], None]:
    def check(audit: eh.Audit) -> None:
        assert groups(audit) == list(names)

    return check


def rates(**expected: float) -> Callable[[eh.Audit], None]:
    return lambda audit: check_values(selected(audit), expected)


def own_cuts(first: Any, second: Any, *names: str) -> Seen:
    """Scores of 0.3 and 0.6 by turns: the first group's cut is below both, the other's between."""
    return Seen(
        kind="labels",
        name=f"cuts for {' and '.join(names)}",
        table=by_turns([first, second], s=[0.3, 0.3, 0.6, 0.6] * 30),
        roles={**CUT, "threshold": dict(zip(names, (0.2, 0.5)))},
        check=rates(**dict(zip(names, (1.0, 0.5)))),
    )


def positives(audit: eh.Audit) -> None:
    """Of the 40 rows of 'f' half have the truth 01; those of 1 are the others."""
    assert audit.rows.where(measure="auc", group="f").plain("n") == [20]


LABELS = [
    Seen(kind="labels", name=name, table=by_turns(values), check=labelled(*names))
    for name, values, names in (
        ("bytes", [b"a", "é".encode()], ("a", "é")),
        ("days", DAYS, ("2026-11-01", "2026-11-02")),
        ("moments", [DAY, DAWN], ("2026-11-01", "2026-11-01 05:00:00")),
        ("decimals", [Decimal("0.70"), Decimal("1.00")], ("0.7", "1")),
        ("whole numbers among others", [1.0, 2.5], ("1", "2.5")),
        ("text like numbers", ["1", "01", "1.0", "true"], ("01", "1", "1.0", "true")),
        ("text that says nothing", ["", "nan", "None"], ("", "None", "nan")),
    )
]
LABELS += [
    own_cuts("1", "1.0", "1", "1.0"),
    own_cuts(1.0, 2.5, "1", "2.5"),
    own_cuts(True, False, "1", "0"),
    own_cuts(*DAYS, "2026-11-01", "2026-11-02"),
    own_cuts(DAY, DAWN, "2026-11-01", "2026-11-01 05:00:00"),
    own_cuts(datetime.time(5), datetime.time(6), "05:00:00", "06:00:00"),
    own_cuts(
        DAY.replace(tzinfo=ZoneInfo("Europe/Berlin")),
        DAWN.replace(tzinfo=ZoneInfo("Europe/Berlin")),
        "2026-10-31 23:00:00+00:00",
        "2026-11-01 04:00:00+00:00",
    ),
    Seen(
        kind="labels",
        name="a truth of text like numbers",
        table=lambda: plain(s=[0.1, 0.6, 0.7] * 40, y=["01", "1"] * 60, d=["01", "1"] * 60),
        roles={"score": "s", "positive": "01"},
        check=positives,
    ),
]
# ---- Columns of odd types, and numbers that do not fit

BIG = 2**53


def chosen(reference: str) -> Callable[[eh.Audit], None]:
    def check(audit: eh.Audit) -> None:
        gaps = audit.rows.where(measure="selection_rate_gap")
        assert set(gaps.plain("reference")) == {reference}

    return check


def nothing(kind: Any) -> Callable[[], pl.DataFrame]:
    return lambda: plain(y=pl.Series([None] * N, dtype=kind))


def untrue(audit: eh.Audit) -> None:
    assert {"reason": "no truth (kept for selection rates)", "rows": N} in audit.data["excluded"]


COLUMNS = [
    Seen(
        kind="columns",
        name="numbers without a sign beyond 63 bits",
        table=lambda: plain(g=pl.Series([2**64 - 1, 2**64 - 2] * 60, dtype=pl.UInt64)),
        check=labelled("18446744073709551614", "18446744073709551615"),
    ),
    Seen(
        kind="columns",
        name="a reference that no float holds",
        table=lambda: plain(g=[BIG, BIG + 1] * 60),
        roles={"reference": {"g": str(BIG + 1)}},
        check=chosen(str(BIG + 1)),
    ),
    Seen(kind="columns", name="no truth at all", table=nothing(pl.Int64), check=untrue),
    Seen(kind="columns", name="no truth and no type", table=nothing(pl.Null), check=untrue),
    Seen(
        kind="columns",
        name="spaces around groups",
        table=by_turns(["f", " f", "f "]),
        check=labelled(" f", "f", "f "),
    ),
    Seen(
        kind="columns",
        name="categories in an order of their own",
        table=lambda: plain(g=pl.Series(["m", "f"] * 60, dtype=pl.Enum(["m", "f", "x"]))),
        check=labelled("f", "m"),
    ),
    *(
        Seen(
            kind="columns",
            name=f"a column named {name}",
            table=lambda name=name: plain().rename({"d": name}),
            roles={"decision": name},
            check=labelled("f", "m"),
        )
        for name in ("n", "decision", "__index__", "weight", 'a"b', "key:group0")
    ),
]
HINTS = [
    Seen(
        kind="hints",
        name="case and spaces",
        table=by_turns(["Female", "female ", "male"]),
        check=says(f"The groups 'Female' and 'female ' {ALIKE}"),
    ),
    Seen(
        kind="hints",
        name="Unicode form",
        table=by_turns(["Zoë", "Zoe\u0308"]),
        check=says(f"The groups 'Zoe\u0308' and 'Zoë' {ALIKE}"),
    ),
    Seen(
        kind="hints",
        name="classes",
        table=lambda: plain(y=["Nurse", "nurse", "x"] * 40, d=["Nurse", "x", "x"] * 40),
        check=says(f"The classes 'Nurse' and 'nurse' {ALIKE}"),
    ),
    Seen(
        kind="hints",
        name="strata",
        table=lambda: plain(place=["North", "north"] * 60),
        roles={"stratum": "place"},
        check=says(f"The strata 'North' and 'north' {ALIKE}"),
    ),
]

# ---- Names of score columns

TURNS = {"decision": None, "rule": "argmax"}
THREE = {"a": [0.9, 0.1, 0.2], "b": [0.05, 0.8, 0.1], "c": [0.05, 0.1, 0.7]}


def argmax(**columns: list[float]) -> Callable[[], pl.DataFrame]:
    """A table in which each class in its turn has the highest score, and is the truth."""
    names = list(columns)
    truth = [names[i % len(names)] for i in range(N)]
    wide = {f"score:{name}": (values * N)[:N] for name, values in columns.items()}
    return lambda: pl.DataFrame({"g": GROUPS, "y": truth} | wide)


def own(*, rows: int = N) -> pl.DataFrame:
    """What `score --truth` writes, in some rows: the score of the row's own class."""
    told = [pl.when(pl.col("y") == name).then(pl.col(f"score:{name}")) for name in THREE]
    mine = pl.when(pl.int_range(N) < rows).then(pl.coalesce(told)).otherwise(0.33)
    return argmax(**THREE)().with_columns(mine.alias("score:truth"))


def under(*values: str) -> pl.DataFrame:
    """Scores and decisions under each of some values of the group."""
    table = argmax(**THREE)()
    for value in values:
        again = [pl.col(f"score:{name}").alias(f"score:{name}@{value}") for name in THREE]
        table = table.with_columns(pl.col("y").alias(f"decision@{value}"), *again)
    return table


def classes(*names: str) -> Callable[[eh.Audit], None]:
    """These are the classes, and each row is decided for its own."""

    def check(audit: eh.Audit) -> None:
        assert audit.details["statistical"]["classes"] == list(names)
        assert set(audit.data["roles"]["scores"]) == set(names)
        assert set(audit.rows.where(measure="accuracy", stratum=None).plain("value")) == {1.0}

    return check


NAMES = [
    Seen(
        kind="names",
        name="an @ in a class",
        table=argmax(**{"a@b": THREE["a"], "b": THREE["b"], "c": THREE["c"]}),
        roles=TURNS,
        check=classes("a@b", "b", "c"),
    ),
    Seen(
        kind="names",
        name="a class named truth",
        table=argmax(truth=[0.9, 0.1], lie=[0.1, 0.9]),
        roles={**TURNS, "positive": "truth"},
        check=classes("lie", "truth"),
    ),
    Seen(
        kind="names",
        name="a class named truth of three",
        table=argmax(truth=THREE["a"], b=THREE["b"], c=THREE["c"]),
        roles=TURNS,
        check=classes("b", "c", "truth"),
    ),
    Seen(
        kind="names",
        name="the row's own class",
        table=own,
        roles=TURNS,
        check=classes("a", "b", "c"),
    ),
    *(
        Seen(
            kind="names",
            name=f"under {value}",
            table=lambda value=value: under(value, "m"),
            roles=TURNS,
            check=classes("a", "b", "c"),
        )
        for value in ("f", "f@x")
    ),
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", cases([*LABELS, *COLUMNS, *HINTS, *NAMES]))
def test_labels_are_seen_alike(case: Seen, frame: str) -> None:
    if '"' in case.name and frame == "duckdb" and int(version("duckdb").split(".")[0]) < 2:
        pytest.skip("DuckDB before 2.0 has no way to name such a column")
    check_seen(case, frame)


SINGLE = "not single values. Name a column of texts, numbers or booleans."
REFUSED = [
    Refused(
        kind="names",
        name="a class, or a score under a value",
        table=lambda: under("f", "m").drop("decision@f"),
        roles=TURNS,
        sentence="The column 'score:a@f' may hold the score of a class 'a@f', or that of 'a' under "
        "'f', for which there is no decision@f. Rename it, or say which column holds which class "
        "with scores={…}.",
        error=UsageError,
    ),
    Refused(
        kind="names",
        name="own class in some rows only",
        table=lambda: own(rows=90),
        roles=TURNS,
        sentence="'score:truth' is the score of the row's own class in 90 of 120 rows and not in "
        "the others. Rename the column if it belongs to a class named 'truth'; else take it from "
        "the same model as the other scores.",
        error=UsageError,
    ),
    *(
        Refused(
            kind="names",
            name=f"a group {name}",
            table=by_turns([name, None, "m"]),
            roles={"missing": policy},
            sentence=f"group='g' holds '{name}', which results use for {use}. Give that group "
            "another name.",
        )
        for name, use, policy in (
            ("<rest>", "a comparison", "drop"),
            ("<overall>", "a comparison", "drop"),
            ("<missing>", "rows without a value", "drop"),
            ("<missing>", "rows without a value", "group"),
        )
    ),
    Refused(
        kind="names",
        name="<missing> in a crossed group",
        table=by_turns(["<missing>", "m"], h=["x", "y", "z"] * 40),
        roles={"group": ["h", "g"], "crossed": True, "missing": "group"},
        sentence="group='g' holds '<missing>', which results use for rows without a value. Give "
        "that group another name.",
    ),
    Refused(
        kind="names",
        name="a stratum <summary>",
        table=lambda: plain(t=["<summary>", "x"] * 60),
        roles={"stratum": "t"},
        sentence="stratum='t' holds '<summary>', which results use for a comparison. Give that "
        "stratum another name.",
    ),
    *(
        Refused(
            kind="columns",
            name=f"a column named {name}",
            table=lambda name=name: plain().rename({"g": name}),
            roles={"group": name},
            sentence=f"group={name!r} names a column that engines take for a pattern of names. "
            "Rename the column.",
            error=UsageError,
        )
        for name in ("*", "^g.*$")
    ),
    *(
        Refused(kind="columns", name=name, table=table, roles=roles, sentence=sentence)
        for name, table, roles, sentence in (
            (
                "scores that cannot be squared",
                lambda: plain(s=[1e300, -1.0] * 60),
                {**CUT, "threshold": 2},
                "score='s' goes up to 1e+300, too far to reckon with. If that stands for no value, "
                "leave the cell empty; else divide all of them by a power of ten.",
            ),
            (
                "weights that cannot be squared",
                lambda: plain(w=[1e200, 1.0] * 60),
                {"weight": "w"},
                "weight='w' goes up to 1e+200, too far to reckon with. If that stands for no "
                "value, leave the cell empty; else divide all of them by a power of ten.",
            ),
            (
                "weights of nothing",
                lambda: plain(w=[1e-200, 0.0] * 60),
                {"weight": "w"},
                "weight='w' goes up to 1e-200 only, too little to reckon with. Multiply all of "
                "them by a power of ten.",
            ),
            (
                "weights below 0",
                lambda: plain(w=[-1.0, 1.0] * 60),
                {"weight": "w"},
                "weight='w' holds negative weights (down to -1). Weights must be 0 or more.",
            ),
        )
    ),
    Refused(
        kind="labels",
        name="lists",
        table=by_turns([["a"], ["b"]]),
        sentence=f"group='g' holds List(String), {SINGLE}",
    ),
    Refused(
        kind="labels",
        name="spans of time",
        table=by_turns([datetime.timedelta(days=1), datetime.timedelta(days=2)]),
        sentence=f"group='g' holds Duration(time_unit='us'), {SINGLE}",
    ),
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("case", cases(REFUSED))
def test_refused_labels(case: Refused, frame: str) -> None:
    check_refused(case, frame)


# ---- Types that only one library has

PANDAS: list[tuple[str, Any, list[str]]] = [
    ("periods", pd.period_range("2026-01", periods=2, freq="M"), ["2026-01", "2026-02"]),
    ("pd.cut", pd.cut(pd.Series([1, 5]), [0, 3, 9]), ["(0, 3]", "(3, 9]"]),
    ("intervals", pd.interval_range(0, 2), ["(0, 1]", "(1, 2]"]),
    ("days and moments", [DAY.date(), DAWN], ["2026-11-01", "2026-11-01 05:00:00"]),
    ("days and words", [DAY.date(), "unknown"], ["2026-11-01", "unknown"]),
    ("categories of numbers", pd.Categorical([1, 2]), ["1", "2"]),
    ("bytes and words", [b"a", "b"], ["a", "b"]),
    ("yes, no and a word", [True, "x"], ["1", "x"]),
]


@pytest.mark.kind("labels")
@pytest.mark.parametrize("form", ["pandas", "arrays"])
@pytest.mark.parametrize(("name", "values", "names"), PANDAS, ids=[name for name, *_ in PANDAS])
def test_values_that_pandas_alone_knows(
    form: str, name: str, values: Any, names: list[str]
) -> None:
    column = pd.concat([pd.Series(values)] * 60, ignore_index=True)
    table = plain().to_pandas().assign(g=column)
    data = table if form == "pandas" else {c: list(table[c]) for c in table}
    found = audited(data)
    assert groups(found) == names
    assert found.data["rows"] == N


@pytest.mark.kind("labels")
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_map_is_refused_where_it_has_a_role_and_passed_over_elsewhere(engine: str) -> None:
    pairs = pa.array([[("a", 1)], [("b", 2)]] * 60, pa.map_(pa.string(), pa.int64()))
    table = plain().to_arrow().append_column("m", pairs)
    data = pytest.importorskip("duckdb").from_arrow(table) if engine == "duckdb" else table
    assert groups(audited(data)) == ["f", "m"]
    with pytest.raises(DataError) as caught:
        audited(data, group="m")
    assert str(caught.value).startswith("group='m' holds ")
    assert str(caught.value).endswith(SINGLE)


@pytest.mark.kind("labels")
def test_identifiers_of_duckdb_are_text() -> None:
    duckdb = pytest.importorskip("duckdb")
    names = [str(UUID(int=1)), str(UUID(int=2))]
    rows = by_turns(names)().to_arrow()
    found = audited(duckdb.from_arrow(rows).select("y, d, CAST(g AS UUID) AS g"))
    assert groups(found) == names


# ---- Flags that would lose one of two values, and the names that `score` writes

TWICE = [
    (("--threshold", "f=0.5", "--threshold", "f=0.6"), "--threshold is given twice for 'f'."),
    (("--reference", "g=f", "--reference", "g=m"), "--reference is given twice for 'g'."),
    (("--prevalence", "0.1", "--prevalence", "0.2"), "--prevalence is given twice."),
    (("--truth-sensitivity", "f=0.9", "--truth-sensitivity", "f=0.8"),
     "--truth-sensitivity is given twice for 'f'."),
]  # fmt: skip


@pytest.mark.kind("flags")
@pytest.mark.parametrize(("flags", "words"), TWICE)
def test_a_flag_given_twice(
    flags: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain(s=[0.2, 0.7] * 60).write_parquet(tmp_path / "t.parquet")
    named = [part for role, column in GIVEN.items() for part in (f"--{role}", column)]
    with pytest.raises(SystemExit) as end:
        main(["audit", str(tmp_path / "t.parquet"), *named, "--score", "s", *flags])
    assert (end.value.code, capsys.readouterr().err) == (2, f"evenhand: {words} Give it once.\n")


LIMITS = [
    (("--limit", "true_positive_rate_gap=5"), "can never fail"),
    (
        ("--limit", "accuracy=0.7:5"),
        "goes beyond what the measure can be: it lies between 0 and 1.",
    ),
    (("--limit", "accuracy_gap=0.1", "--limit", "accuracy_gap=0.2"), "is given twice, as 0.1 and"),
    (("--limit", "selection_rate_gap=nan"), "selection_rate_gap"),
]


@pytest.mark.kind("limits")
@pytest.mark.parametrize(("flags", "words"), LIMITS)
def test_limits_that_judge_nothing(
    flags: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain().write_csv(tmp_path / "t.csv")
    roles = ["--truth", "y", "--decision", "d", "--group", "g"]
    with pytest.raises(SystemExit) as end:
        main(["audit", str(tmp_path / "t.csv"), *roles, *flags])
    err = capsys.readouterr().err
    assert (end.value.code, words in err) == (2, True), err


@pytest.fixture
def scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """`evenhand score` with a function of the working folder; its exit code and complaint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    texts = {"bio": ["She ran.", "He sat."] * 5, "bio@f": ["She ran."] * 10, "t": ["a", "b"] * 5}
    pl.DataFrame(texts).write_parquet("bios.parquet")

    def score(*flags: str) -> tuple[int, str]:
        command = ["score", "bios.parquet", "--text", "bio", "--model", "lengths:lengths"]
        with pytest.raises(SystemExit) as end:
            main([*command, "--out", "out.parquet", *flags])
        return int(end.value.code or 0), capsys.readouterr().err

    (tmp_path / "lengths.py").write_text(
        "def lengths(texts):\n    return [[len(t) / 10, 1 - len(t) / 10] for t in texts]\n"
    )
    yield score
    sys.modules.pop("lengths", None)


@pytest.mark.kind("resume")
def test_a_run_is_not_gone_on_with_under_other_classes(
    scoring: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.models import table as tables

    # Everything is scored and nothing is left to ask when the run breaks off.
    with monkeypatch.context() as broken:
        broken.setattr(tables, "write_batches", lambda *_: (_ for _ in ()).throw(DataError("cut.")))
        assert scoring("--classes", "a,b") == (4, "evenhand: cut.\n")
    assert scoring("--classes", "x,y") == (
        4,
        "evenhand: The model has the classes x, y; the texts scored before, in "
        "'out.parquet.partial', have a, b. Start anew with --fresh.\n",
    )
    assert scoring("--classes", "a,b")[0] == 0
    assert "score:a@f" in pl.read_parquet_schema("out.parquet")


@pytest.mark.kind("names")
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--classes", "a,a@f"),
            "The column 'score:a@f' would hold the score of the class 'a@f' and that of the class "
            "'a' under 'f'. Rename the class.",
        ),
        (
            ("--classes", "truth,b", "--truth", "t"),
            "The column 'score:truth' would hold the score of the class 'truth' and that of the "
            "row's own class. Rename the class.",
        ),
    ],
)
def test_classes_that_would_share_a_column(
    flags: tuple[str, ...], words: str, scoring: Callable[..., tuple[int, str]]
) -> None:
    assert scoring(*flags) == (4, f"evenhand: {words}\n")
    assert not Path("out.parquet").exists()
