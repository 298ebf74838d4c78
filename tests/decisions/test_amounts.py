"""Many different numbers are amounts: refused as truth and decision unless said to be codes."""

import json
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.tallies.sets import Tallies
from evenhand.errors import EvenhandError, UsageError
from evenhand.findings import tallying
from evenhand.watching import run as watching_run
from evenhand.watching.numbers import Settings


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines from few series, so that a look takes a second."""
    monkeypatch.setattr(watching_run, "Settings", partial(Settings, series=1_000))


ENGINES = ["polars", "duckdb", pytest.param("spark", marks=pytest.mark.heavy)]


def sentence(column: str, many: int) -> str:
    return (
        f"'{column}' holds {many:,} different numbers, and amounts cannot be audited yet. If they "
        "are codes of classes, say --classes (classes=True)."
    )


def people(n: int = 4_000) -> pl.DataFrame:
    """Men are paid a fifth more; jobs are codes, and so is what a model makes of them."""
    rng = np.random.default_rng(7)
    man = rng.random(n) < 0.5
    pay = np.round(rng.normal(40_000, 6_000, n) * np.where(man, 1.2, 1), 2)
    job = rng.integers(0, 28, n)
    return pl.DataFrame(
        {
            "sex": np.where(man, "m", "f"),
            "pay": pay,
            "days": rng.integers(0, 2_000, n),
            "job": job,
            "said": np.where(rng.random(n) < 0.7, job, rng.integers(0, 28, n)),
            "grade": rng.integers(1, 13, n),
            "score": rng.random(n).round(3),
            "hired": rng.integers(0, 2, n),
        }
    )


TABLE = people()


def refused(data: Any, **roles: Any) -> str:
    with pytest.raises(UsageError) as caught:
        eh.audit(data, group="sex", **roles)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("engine", ENGINES)
def test_amounts_are_refused_in_the_same_words_on_every_engine(
    tmp_path: Path, engine: str, form: str, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    file = tmp_path / f"t.{form}"
    getattr(TABLE, f"write_{form}")(file)
    different = {name: TABLE[name].n_unique() for name in TABLE.columns}
    assert different["pay"] > 3_000
    for column in ("pay", "days", "job"):
        said = refused(file, decision=column, engine=engine)
        assert said == sentence(column, different[column])
    # Beside a score a truth of amounts gave no row and no reason; with a threshold, another one.
    cut = {"score": "score", "threshold": 0.5}
    for scored in ({"score": "score"}, cut, {**cut, "positive": "7"}):
        assert refused(file, truth="days", engine=engine, **scored) == sentence(
            "days", different["days"]
        )
    asked = {"truth": "hired", "group": "sex", "engine": engine}
    assert eh.audit(file, **asked, **cut).rows


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("engine", ENGINES)
def test_codes_are_classes_where_somebody_says_so(
    tmp_path: Path, engine: str, form: str, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    file = tmp_path / f"t.{form}"
    getattr(TABLE, f"write_{form}")(file)
    asked = {"truth": "job", "decision": "said", "group": "sex", "engine": engine}
    assert refused(file, **{k: v for k, v in asked.items() if k != "group"}) == sentence("job", 28)
    audit = eh.audit(file, classes=True, **asked)
    assert audit.data["roles"]["classes"] is True
    words = TABLE.with_columns(pl.format("{}", name).alias(name) for name in ("job", "said"))
    by_words = eh.audit(words, truth="job", decision="said", group="sex")
    assert audit.record()["results"] == by_words.record()["results"]
    assert len(set(audit.rows["class"]) - {None}) >= 28


def test_the_command_refuses_amounts_and_takes_codes(tmp_path: Path, run: Any) -> None:
    file, record = tmp_path / "t.parquet", tmp_path / "a.json"
    TABLE.write_parquet(file)
    code, out, err = run("audit", file, "--decision", "pay", "--group", "sex")
    many = TABLE["pay"].n_unique()
    assert (code, out, err) == (2, "", f"evenhand: {sentence('pay', many)}\n")
    typed = ["audit", file, "--truth", "job", "--decision", "said", "--group", "sex"]
    code, _, err = run(*typed)
    assert (code, err) == (2, f"evenhand: {sentence('job', 28)}\n")
    assert run(*typed, "--classes", "--json", record)[0] == 0
    assert json.loads(record.read_text())["data"]["roles"]["classes"] is True


def test_numbers_of_csv_files_that_are_too_long_or_too_many_for_a_look_are_amounts_too(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    long = [repr(value) for value in rng.random(60).tolist()]
    many = [f"{value}.5" for value in range(10_400)]
    for values in (long, many):
        table = pl.DataFrame({"sex": (["f", "m"] * len(values))[: len(values)], "pay": values})
        table.write_csv(tmp_path / "t.csv")
        for engine in ("polars", "duckdb"):
            said = refused(tmp_path / "t.csv", decision="pay", engine=engine)
            assert said == sentence("pay", len(values))
    # Among words for a missing value they are numbers as well.
    table.with_columns(pay=pl.Series([*values[:-8], *["NA"] * 8])).write_csv(tmp_path / "t.csv")
    said = refused(tmp_path / "t.csv", decision="pay", missing_words="NA")
    assert said == sentence("pay", len(values) - 8)


def test_few_numbers_and_words_of_digits_are_classes_as_before(tmp_path: Path) -> None:
    assert eh.audit(TABLE, decision="grade", group="sex").rows
    thirteen = TABLE.with_columns(grade=pl.int_range(pl.len()) % 13)
    assert refused(thirteen, decision="grade") == sentence("grade", 13)
    assert refused(thirteen.to_pandas(), decision="grade") == sentence("grade", 13)
    assert refused(thirteen.to_arrow(), decision="grade") == sentence("grade", 13)
    texts = TABLE.with_columns(pl.col("job").cast(pl.String))
    assert eh.audit(texts, decision="job", group="sex").rows
    padded = TABLE.with_columns(job=pl.col("job").cast(pl.String).str.zfill(2))
    padded.write_csv(tmp_path / "t.csv")
    for engine in ("polars", "duckdb"):
        audit = eh.audit(tmp_path / "t.csv", decision="job", group="sex", engine=engine)
        assert "07" in set(audit.rows["class"])


def test_numbers_that_score_columns_are_named_after_are_classes() -> None:
    rng = np.random.default_rng(1)
    truth = np.arange(600) % 15
    table = {f"score:{k}": rng.random(600) for k in range(15)}
    audit = eh.audit({"y": truth, "g": ["f", "m"] * 300, **table}, truth="y", group="g")
    assert len(set(audit.rows["class"]) - {None}) >= 15


def test_amounts_under_each_value_of_the_group_are_refused_too() -> None:
    table = {"pay@f": np.arange(40.0), "pay@m": np.arange(40.0) + 1}
    with pytest.raises(UsageError) as caught:
        eh.audit(table, counterfactual={"f": "pay@f", "m": "pay@m"})
    assert str(caught.value) == sentence("pay@f", 40)


def test_amounts_of_a_table_on_the_grid_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallying, "MOST_EXACT", 10)
    for scored in ({"score": "score"}, {"score": "score", "threshold": 0.5}):
        assert refused(TABLE, truth="job", **scored) == sentence("job", 28)
        assert eh.audit(TABLE, truth="hired", group="sex", **scored).rows


def test_classes_is_yes_or_no() -> None:
    with pytest.raises(UsageError, match=r"^classes=\['a', 'b'\] is not True or False\. Say cla"):
        eh.Decisions(TABLE, decision="job", group="sex", classes=["a", "b"])  # type: ignore[arg-type]


def test_tally_sets_are_refused_alike_and_can_be_said_to_hold_classes(
    tmp_path: Path, run: Any
) -> None:
    file, out = tmp_path / "t.parquet", tmp_path / "t.tallies"
    TABLE.write_parquet(file)
    typed = ["tally", file, "--truth", "job", "--decision", "said", "--group", "sex", "--out", out]
    code, _, err = run(*typed)
    assert (code, err, out.exists()) == (2, f"evenhand: {sentence('job', 28)}\n", False)
    assert run(*typed, "--classes")[0] == 0
    said = Tallies.load(out)
    assert said.roles.classes
    assert run("audit", out)[0] == 0
    # A set of before says nothing of codes.
    unsaid = said.with_roles(classes=False)
    unsaid.save(out)
    code, _, err = run("audit", out)
    assert (code, err) == (2, f"evenhand: {sentence('job', 28)}\n")
    assert run("audit", out, "--classes")[0] == 0
    assert eh.audit(out, classes=True).record()["results"] == eh.audit(said).record()["results"]
    for merged in (said + unsaid, unsaid + said):
        assert merged.roles.classes
        assert merged.rows == 2 * len(TABLE)


def test_a_store_keeps_that_numbers_are_classes(tmp_path: Path, quick: None) -> None:
    dated = TABLE.with_columns(
        day=pl.Series([date(2026, 1, 5) + timedelta(days=7 * (i // 400)) for i in range(4_000)])
    )
    asked: dict[str, Any] = {"truth": "job", "decision": "said", "group": "sex"}
    asked |= {"time": "day", "every": "week"}
    with pytest.raises(EvenhandError) as caught:
        eh.watch(tmp_path / "s", dated[:2_000], **asked)
    assert str(caught.value) == sentence("job", 28)
    eh.watch(tmp_path / "s", dated[:2_000], classes=True, **asked)
    kept = eh.watch(tmp_path / "s", dated[2_000:])
    assert kept.document["data"]["roles"]["classes"] is True
    assert kept.document["data"]["rows"] == 4_000


def test_a_store_of_before_goes_on_once_numbers_are_said_to_be_classes(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    weeks = [TABLE[400 * k : 400 * (k + 1)] for k in range(4)]
    sets = [
        eh.tally(week, truth="job", decision="said", group="sex", classes=True) for week in weeks
    ]
    with monkeypatch.context() as before:
        before.setattr("evenhand.decisions.classes.MOST_NUMBERS", 100)
        for number, one in enumerate(sets[:2], start=6):
            held = one.with_roles(classes=False)
            eh.watch(tmp_path / "s", held, every="week", period=f"2026-W0{number}")
    with pytest.raises(UsageError) as caught:
        eh.watch(tmp_path / "s", sets[2].with_roles(classes=False), period="2026-W08")
    assert str(caught.value) == sentence("job", 28)
    unsaid = [one.with_roles(classes=False) for one in sets]
    told = eh.watch(tmp_path / "s", unsaid[2], period="2026-W08", classes=True)
    assert told.document["data"]["roles"]["classes"] is True
    assert eh.watch(tmp_path / "s", unsaid[3], period="2026-W09").document["data"]["rows"] == 1_600
