"""Words that stand for no value: refused among classes, left out where somebody says so."""

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.missing_words import UNKNOWN_WORDS
from evenhand.decisions.tallies.sets import Tallies
from evenhand.errors import DataError, EvenhandError, UsageError

ROLES = {"truth": "y", "decision": "d", "group": "g"}
FLAGS = ["--truth", "y", "--decision", "d", "--group", "g"]
ENGINES = ["polars", "duckdb", pytest.param("spark", marks=pytest.mark.heavy)]


def made(word: str | None = "NA", *, n: int = 2_000) -> pl.DataFrame:
    """Women are decided on more often; two in five of their decisions are a word, or missing."""
    rng = np.random.default_rng(4)
    group = rng.choice(["f", "m"], n)
    truth = rng.integers(0, 2, n)
    rate = np.where(group == "f", 0.75, 0.5)
    decided = (rng.random(n) < rate).astype(int)
    lost = (group == "f") & (rng.random(n) < 0.4)
    return pl.DataFrame(
        {
            "g": group,
            "y": truth.astype(str),
            "d": [word if gone else str(value) for gone, value in zip(lost, decided)],
        }
    )


TABLE, EMPTY = made(), made(None)
LOST = EMPTY["d"].null_count()
SENTENCE = (
    f"'d' holds {LOST} times 'NA' beside '0' and '1'. If it means that nothing is known, say "
    "--missing-words NA (missing_words=['NA']); if it is a class of its own, give it another name "
    "in the table."
)


def refused(data: Any, error: type[EvenhandError] = DataError, **roles: Any) -> str:
    with pytest.raises(error) as caught:
        eh.audit(data, **{**ROLES, **roles})
    return str(caught.value)


def results(audit: eh.Audit) -> tuple[Any, ...]:
    return audit.record()["results"], audit.data["excluded"], audit.data["fingerprint"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_word_among_numbers_is_refused_and_can_be_left_out(
    tmp_path: Path, engine: str, form: str, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    for name, table in (("words", TABLE), ("empty", EMPTY)):
        getattr(table, f"write_{form}")(tmp_path / f"{name}.{form}")
    words, empty = (tmp_path / f"{name}.{form}" for name in ("words", "empty"))
    assert refused(words, engine=engine) == SENTENCE
    left_out = eh.audit(words, engine=engine, missing_words="NA", **ROLES)
    assert results(left_out) == results(eh.audit(empty, engine=engine, **ROLES))
    assert left_out.data["excluded"] == [{"reason": "no decision", "rows": LOST}]
    assert left_out.data["roles"]["missing_words"] == ["NA"]
    kind = eh.Decisions(words, engine=engine, missing_words="NA", **ROLES).schema["d"]
    assert kind.is_numeric() is (form == "csv")


@pytest.mark.parametrize("hold", ["polars", "pandas", "pyarrow", "arrays", "categorical"])
def test_a_word_in_a_frame_is_refused_and_can_be_left_out(hold: str) -> None:
    def held(table: pl.DataFrame) -> Any:
        if hold == "categorical":
            return table.with_columns(pl.col("d").cast(pl.Categorical))
        if hold == "arrays":
            return table.to_dict(as_series=False)
        return table if hold == "polars" else getattr(table, f"to_{hold.removeprefix('py')}")()

    assert refused(held(TABLE)) == SENTENCE
    left_out = eh.audit(held(TABLE), missing_words=["NA"], **ROLES)
    assert results(left_out) == results(eh.audit(held(EMPTY), **ROLES))


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("word", UNKNOWN_WORDS)
def test_every_word_is_refused_beside_two_words(tmp_path: Path, word: str, engine: str) -> None:
    table = pl.DataFrame({"g": ["f", "m", "f"] * 5, "d": ["yes", "no", word] * 5})
    table.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError) as caught:
        eh.audit(tmp_path / "t.parquet", decision="d", group="g", positive="yes", engine=engine)
    assert str(caught.value).startswith(f"'d' holds 5 times {word!r} beside 'no' and 'yes'. If it ")
    asked = {"decision": "d", "group": "g", "positive": "yes", "missing_words": [word]}
    assert eh.audit(tmp_path / "t.parquet", engine=engine, **asked).data["excluded"] == [
        {"reason": "no decision", "rows": 5}
    ]


def test_the_command_refuses_a_word_and_leaves_it_out(tmp_path: Path, run: Any) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    code, out, err = run("audit", tmp_path / "t.csv", *FLAGS)
    assert (code, out, err) == (4, "", f"evenhand: {SENTENCE}\n")
    record = tmp_path / "a.json"
    typed = ["audit", tmp_path / "t.csv", *FLAGS, "--missing-words", "NA", "--json", record]
    code, out, _ = run(*typed)
    assert code == 0
    assert "NA" not in out
    document = json.loads(record.read_text())
    assert document["data"]["roles"]["missing_words"] == ["NA"]
    assert document["data"]["excluded"] == [{"reason": "no decision", "rows": LOST}]


def test_several_words_are_named_with_commas_or_one_by_one(tmp_path: Path, run: Any) -> None:
    table = pl.DataFrame({"g": ["f", "m"] * 6, "d": ["0", "1", "NA", "na", "?", "1"] * 2})
    table.write_csv(tmp_path / "t.csv")
    flags = [tmp_path / "t.csv", "--decision", "d", "--group", "g"]
    code, _, err = run("audit", *flags)
    assert (code, err) == (
        4,
        "evenhand: 'd' holds 2 times '?', 2 times 'NA' and 2 times 'na' beside '0' and '1'. If "
        "they mean that nothing is known, say --missing-words '?,NA' (missing_words=['?', 'NA']); "
        "if they are classes, give them other names in the table.\n",
    )
    for named in (["--missing-words", "?,NA"], ["--missing-words", "?", "--missing-words", "na"]):
        assert run("audit", *flags, *named)[0] == 0
    code, _, err = run("audit", *flags, "--missing-words", "NA")
    assert (code, err.partition(".")[0]) == (
        4,
        "evenhand: 'd' holds 2 times '?' beside '0' and '1'",
    )
    for given in ("?,NA", ["?", "NA"], ("na", "?")):
        assert eh.audit(tmp_path / "t.csv", decision="d", group="g", missing_words=given).rows


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_numbers_and_dates_of_any_number_are_no_words(tmp_path: Path, engine: str) -> None:
    days = [(date(2026, 1, 1) + timedelta(days=i)).isoformat() for i in range(4)]
    for values, beside in (
        (["1", "2.5", "3", "4", "NULL"], "'1', '2.5', '3' and 1 more"),
        ([*days, "NaT"], "'2026-01-01', '2026-01-02', '2026-01-03' and 1 more"),
        (["yes", "NA"], "'yes'"),
    ):
        rows = values * 8
        table = pl.DataFrame({"g": (["f", "m"] * len(rows))[: len(rows)], "d": rows})
        table.write_csv(tmp_path / "t.csv")
        with pytest.raises(DataError) as caught:
            eh.audit(tmp_path / "t.csv", decision="d", group="g", engine=engine)
        assert str(caught.value).startswith(f"'d' holds 8 times {values[-1]!r} beside {beside}. If")
    alone = pl.DataFrame({"g": ["f", "m"], "d": ["NA", "NA"]})
    with pytest.raises(DataError, match=r"^'d' holds 2 times 'NA' and nothing else\. If it means"):
        eh.audit(alone, decision="d", group="g")


def test_a_word_beside_three_classes_is_one_of_them_also_where_fewer_were_decided() -> None:
    jobs = ["nurse", "poet", "judge", "unknown"]
    table = {"g": ["f", "m"] * 40, "y": jobs * 20, "d": ["nurse", "nurse", "unknown", "nurse"] * 20}
    assert set(eh.audit(table, **ROLES).rows["class"]) >= {"unknown", "judge"}
    assert "missing_words" not in eh.Decisions(table, **ROLES).roles.used()


def test_groups_and_strata_are_never_refused() -> None:
    table = {
        "g": ["f", "Unknown"] * 40,
        "d": [0, 1, 1, 0] * 20,
        "site": ["a", "NA", "NA", "a"] * 20,
    }
    audit = eh.audit(table, decision="d", group="g", stratum="site")
    assert set(audit.rows["group"]) == {"f", "Unknown"}
    without = eh.audit(
        table, decision="d", group="g", stratum="site", missing_words=["unknown", "NA"]
    )
    assert without.data["excluded"] == [
        {"reason": "no g", "rows": 40},
        {"reason": "no site (kept outside strata)", "rows": 40},
    ]


def test_infinite_numbers_stand_for_nothing_either() -> None:
    table = pl.DataFrame({"g": ["f", "m"] * 6, "d": [0.0, 1.0, float("inf")] * 4})
    with pytest.raises(DataError, match=r"^'d' holds 4 times 'inf' beside '0' and '1'\. If it"):
        eh.audit(table, decision="d", group="g")
    audit = eh.audit(table, decision="d", group="g", missing_words="inf")
    assert audit.data["excluded"] == [{"reason": "no decision", "rows": 4}]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_counterfactual_decisions_are_looked_at_too(tmp_path: Path, engine: str) -> None:
    table = pl.DataFrame(
        {"decision@f": ["1", "0", "NA", "1"] * 10, "decision@m": ["1", "1", "0", "0"] * 10}
    )
    table.write_csv(tmp_path / "t.csv")
    with pytest.raises(DataError) as caught:
        eh.audit(tmp_path / "t.csv", engine=engine)
    assert str(caught.value).startswith("'decision@f' holds 10 times 'NA' beside '0' and '1'. If")
    assert eh.audit(tmp_path / "t.csv", engine=engine, missing_words="NA").rows


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_scores_and_weights_of_csv_files_take_words_too(tmp_path: Path, engine: str) -> None:
    rows = 400
    table = pl.DataFrame(
        {
            "g": ["f", "m"] * (rows // 2),
            "y": ["0", "1", "1", "0"] * (rows // 4),
            "s": [f"0.{i % 7 + 1}" if i % 20 else "N/A" for i in range(rows)],
            "w": ["2" if i % 50 else "null" for i in range(rows)],
        }
    )
    file = tmp_path / "t.csv"
    table.write_csv(file)
    roles = {"truth": "y", "score": "s", "threshold": 0.5, "group": "g", "engine": engine}
    with pytest.raises(DataError) as caught:
        eh.audit(file, **roles)
    assert str(caught.value) == (
        f"score='s' holds 'N/A' in line 2 of '{file}', which is not a number. If it means that "
        "nothing is known, leave the cell empty or say --missing-words N/A "
        "(missing_words=['N/A'])."
    )
    audit = eh.audit(file, **roles, weight="w", missing_words=["n/a", "NULL"])
    empty = table.with_columns(pl.col("s", "w").replace({"N/A": None, "null": None}))
    empty.write_csv(tmp_path / "empty.csv")
    assert results(audit) == results(eh.audit(tmp_path / "empty.csv", **roles, weight="w"))
    table.with_columns(pl.col("s").replace("0.3", "0,3")).write_csv(file)
    with pytest.raises(
        DataError, match=r"^score='s' holds '0,3' in line 4 of .* with a point: 0.3"
    ):
        eh.audit(file, **roles, missing_words=["n/a", "NULL"])


def test_yes_and_no_stay_booleans_beside_a_word(tmp_path: Path) -> None:
    table = pl.DataFrame({"g": ["f", "m"] * 6, "d": ["True", "False", "NA"] * 4})
    table.write_csv(tmp_path / "t.csv")
    for engine in ("polars", "duckdb"):
        decisions = eh.Decisions(
            tmp_path / "t.csv", decision="d", group="g", missing_words="NA", engine=engine
        )
        assert str(decisions.schema["d"]) == "Boolean"
        tally = decisions.count(decisions.roles.attributes[0])
        assert tally.dense(["group", "decision"], "n").tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_any_lens_alone_refuses_the_word() -> None:
    rng = np.random.default_rng(0)
    table = TABLE.with_columns(
        y=pl.Series([word if rng.random() < 0.9 else "NA" for word in TABLE["y"]]),
        who=pl.int_range(pl.len()) % 12,
        s=pl.Series(rng.random(len(TABLE))),
        norm=pl.Series(rng.random(len(TABLE))),
    )
    scored = {"truth": "y", "score": "s", "threshold": 0.5, "group": "g"}
    for lens, roles in (
        ("labelers", {**ROLES, "labeler": "who"}),
        ("thresholds", scored),
        ("norms", {"truth": "y", "score": "s", "group": "g", "norm": {"f": "norm"}}),
        ("statistical", scored),
    ):
        with pytest.raises(DataError, match=r"^'y' holds \d+ times 'NA' beside '0' and '1'\. If"):
            eh.audit(table, lenses=[lens], **roles)


def test_the_form_of_local_law_144_is_not_filled_in_with_a_word() -> None:
    table = {"sex": ["f", "m"] * 40, "race": ["a", "a", "b", "b"] * 20, "d": ["1", "0", "1", "NA"]}
    table["d"] = table["d"] * 20
    with pytest.raises(DataError, match=r"^'d' holds 20 times 'NA' beside '0' and '1'\. If it"):
        eh.audit(table, decision="d", group=["sex", "race"], forms=["ll144"])


def test_tallies_refuse_the_word_and_so_do_sets_of_before(tmp_path: Path, run: Any) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    out = tmp_path / "t.tallies"
    code, _, err = run("tally", tmp_path / "t.csv", *FLAGS, "--out", out)
    assert (code, err, out.exists()) == (4, f"evenhand: {SENTENCE}\n", False)
    typed = ["tally", tmp_path / "t.csv", *FLAGS, "--missing-words", "NA", "--out", out]
    assert run(*typed)[0] == 0
    assert Tallies.load(out).roles.missing_words == ("NA",)
    assert results(eh.audit(out)) == results(eh.audit(EMPTY, **ROLES))
    with pytest.raises(UsageError, match=r"^missing_words=\['n'\] would change what was counted\."):
        eh.audit(out, missing_words=["n"])
    # A set made when such words were classes.
    before = eh.tally(made("other"), **ROLES, positive="1")
    named = {"0": "0", "1": "1", "other": "NA"}
    tables = {name: tally.rename("decision", named) for name, tally in before.tables.items()}
    Tallies(**{**{f: getattr(before, f) for f in before.__slots__}, "tables": tables}).save(out)
    code, _, err = run("audit", out)
    assert (code, err) == (4, f"evenhand: {SENTENCE}\n")


def test_a_store_keeps_the_words(tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    days = [date(2026, 1, 5) + timedelta(days=7 * (i // 100)) for i in range(len(TABLE))]
    dated = TABLE.with_columns(day=pl.Series(days))
    first, last = (
        dated.filter(dated["day"] < date(2026, 3, 30)),
        dated.filter(dated["day"] >= date(2026, 3, 30)),
    )
    first.write_csv(tmp_path / "first.csv")
    last.write_csv(tmp_path / "last.csv")
    store = tmp_path / "store"
    typed = ["watch", store, tmp_path / "first.csv", *FLAGS, "--time", "day", "--every", "week"]
    code, _, err = run(*typed)
    many = first["d"].str.contains("NA").sum()
    assert (code, err) == (4, f"evenhand: {SENTENCE.replace(str(LOST), str(many))}\n")
    assert run(*typed, "--missing-words", "NA")[0] in (0, 1)
    # What is not given is as at the last run.
    watched = eh.watch(store, tmp_path / "last.csv")
    assert watched.document["data"]["roles"]["missing_words"] == ["NA"]
    assert watched.document["data"]["rows"] == len(TABLE)
    with pytest.raises(DataError, match=r"was made with missing_words=\['NA'\], and this is"):
        eh.watch(store, tmp_path / "last.csv", missing_words=["NA", "?"])


def test_verify_and_charters_know_the_words(tmp_path: Path, run: Any) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    (tmp_path / "c.toml").write_text(
        'schema = "evenhand.charter/1"\n[roles]\ntruth = "y"\ndecision = "d"\ngroup = ["g"]\n'
        'missing_words = ["NA"]\n'
    )
    audit = eh.audit(tmp_path / "t.csv", charter=tmp_path / "c.toml")
    assert audit.data["roles"]["missing_words"] == ["NA"]
    typed = ["verify", tmp_path / "t.csv", *FLAGS, "--missing-words", "NA"]
    _, out, err = run(*typed)
    assert "NA" not in out + err


def test_compare_refuses_the_word_before_it_trains(tmp_path: Path, run: Any) -> None:
    table = TABLE.with_columns(pl.col("y").replace("1", "NA"), x=pl.int_range(pl.len()) % 9)
    table.write_csv(tmp_path / "t.csv")
    typed = ["compare", tmp_path / "t.csv", "--features", "x", "--truth", "d", "--group", "g"]
    code, _, err = run(*typed, "--out", tmp_path / "ledger", "--seeds", 1)
    assert (code, err.splitlines()[-1]) == (
        4,
        f"evenhand: 'd' holds {LOST} times 'NA' beside '0' and '1'. If it means that nothing is "
        "known, leave those cells empty; if it is a class of its own, give it another name in the "
        "table.",
    )


def test_words_may_be_numbers_and_dates() -> None:
    table = pl.DataFrame({"g": ["f", "m"] * 6, "d": [0, 1, -9] * 4})
    audit = eh.audit(table, decision="d", group="g", missing_words=[-9])
    assert audit.data["excluded"] == [{"reason": "no decision", "rows": 4}]
    assert audit.data["roles"]["missing_words"] == ["-9"]
    days = [date(2026, 1, 1), date(1900, 1, 1), date(2026, 1, 2)]
    dated: Callable[..., Any] = eh.Decisions
    made_of = dated({"g": ["f", "m"] * 6, "d": days * 4}, decision="d", group="g",
                    missing_words="1900-01-01")  # fmt: skip
    tally = made_of.count(made_of.roles.attributes[0])
    assert tally.labels["decision"] == ("2026-01-01", "2026-01-02")
