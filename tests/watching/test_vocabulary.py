"""Words that change under a watch: nothing is called kept that nobody can judge any more."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import LimitExceeded
from evenhand.report.watch import watch_text
from evenhand.watching.store import Store

Weeks = Callable[..., pl.DataFrame]
ROLES: dict[str, Any] = {"time": "day", "every": "week", "decision": "d", "group": "g"}
LIMITS = {"selection_rate_gap": 0.1}
MEND = (
    "What was agreed cannot be judged from there on until the words fit: mend the table and give "
    "these weeks again with --replace, or begin a new store if the words changed for good."
)
WHOSE = "Implementation: engineers and label operations."
# Of 16 weeks; the twelfth, 2026-W13, is the first whose words are others.
AT, SINCE = 11, "2026-W13"


def from_week(data: pl.DataFrame, at: int) -> pl.Expr:
    return pl.col("day") >= pl.lit(data["day"].min() + timedelta(weeks=at))


def group_renamed(data: pl.DataFrame, at: int) -> pl.DataFrame:
    new = pl.when(from_week(data, at)).then(pl.col("g").replace("m", "M")).otherwise("g")
    return data.with_columns(g=new)


def decisions_renamed(data: pl.DataFrame, at: int) -> pl.DataFrame:
    answers = pl.col("d").replace_strict({0: "no", 1: "yes"}, return_dtype=pl.String)
    plain = pl.col("d").cast(pl.String)
    return data.with_columns(d=pl.when(from_week(data, at)).then(answers).otherwise(plain))


def on(engine: str, frame: pl.DataFrame) -> Any:
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.from_arrow(frame.to_arrow())
    return frame


def one_by_one(store: Path, data: pl.DataFrame, *, engine: str = "polars", **roles: Any) -> Any:
    for (_,), week in data.group_by(pl.col("day").dt.truncate("1w"), maintain_order=True):
        # As it comes from a file of its own: zeros and ones are numbers there.
        if week["d"].dtype == pl.String and set(week["d"]) <= {"0", "1"}:
            week = week.with_columns(pl.col("d").cast(pl.Int64))
        result = eh.watch(store, on(engine, week), **roles)
    return result


def said(result: Any) -> dict[str, Any]:
    document = result.document
    names = ("results", "series", "headline", "next", "tag", "verdict", "exceeds", "word_changes",
             "notes", "periods")  # fmt: skip
    alarms = [{k: a[k] for k in ("detector", "raised", "onset")} for a in document["alarms"]]
    return {name: document[name] for name in names} | {"alarms": alarms}


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize(
    ("rename", "words", "gone", "come"),
    [
        (group_renamed, "nobody is called 'm' (g), and \\d+ rows a week are called 'M' (g)",
         ["m"], ["M"]),
        (decisions_renamed,
         "no decision is '0' or '1', and 400 rows a week have the decision 'no' or 'yes'",
         ["0", "1"], ["no", "yes"]),
    ],
)  # fmt: skip
def test_renamed_words_lead_and_nothing_is_called_kept(
    rename: Any, words: str, gone: list[str], come: list[str], engine: str, tmp_path: Path,
    weeks: Weeks, quick: None,
) -> None:  # fmt: skip
    # A gap of 35 points from that week on, which is more than was agreed.
    data = rename(weeks(16, n=400, jump=0.35, at=AT), AT)
    whole = eh.watch(tmp_path / "a", on(engine, data), limits=LIMITS, **ROLES)
    single = one_by_one(tmp_path / "b", data, engine=engine, limits=LIMITS, **ROLES)
    assert said(single) == said(whole)
    document = whole.document
    changes = document["word_changes"]
    assert {c["word"] for c in changes if c["kind"] == "vanished"} == set(gone)
    assert {c["word"] for c in changes if c["kind"] == "unknown"} == set(come)
    assert {c["since"] for c in changes} == {SINCE}
    of = 400 * 5 if come == ["no", "yes"] else sum(data.filter(pl.col("g") == "M")["g"].is_in(come))
    assert sum(c["rows"] for c in changes if c["kind"] == "unknown") == of
    assert document["tag"] == "The words changed"
    assert document["summary"].endswith("no alarm open, and the words changed")
    pattern = words.replace("(", r"\(").replace(")", r"\)")
    sentence = rf"Since week {SINCE} {pattern}, which no earlier week held\."
    assert re.fullmatch(sentence, document["headline"])
    assert document["next"] == MEND
    assert whole.verdict == "cannot tell"
    assert "that is kept" not in str(whole)
    assert f"From {SINCE} on it is not judged." in str(whole)
    (row,) = document["results"]
    assert (row["period"], row["verdict"]) == ("2026-W12", "cannot tell")
    judged = {p["period"]: p["why"] for p in document["periods"] if not p["judged"]}
    assert judged == {f"2026-W{w}": "the words changed" for w in range(13, 18)}
    assert whole.is_outside
    with pytest.raises(LimitExceeded, match=f"The words changed: Since week {SINCE}"):
        eh.check(whole)


def test_the_command_exits_1_and_every_form_says_it(
    tmp_path: Path, weeks: Weeks, quick: None, run: Any
) -> None:
    data = weeks(16)
    data.filter(~from_week(data, AT)).write_csv(tmp_path / "until.csv")
    later = group_renamed(data, AT).filter(from_week(data, AT))
    later.write_csv(tmp_path / "later.csv")
    roles = ["--time", "day", "--every", "week", "--decision", "d", "--group", "g"]
    code, told, _ = run("watch", "s", "until.csv", *roles, "--limit", "selection_rate_gap=0.1")
    assert code == 0
    assert "that is kept" in told
    code, told, _ = run("watch", "s", "later.csv", "--json", "w.json", "--out", "w.html",
                        "--junit", "w.xml", "--markdown", "w.md")  # fmt: skip
    assert code == 1
    many = round(later.filter(pl.col("g") == "M").height / 5)
    sentence = (
        f"Since week {SINCE} nobody is called 'm' (g), and {many} rows a week are called 'M' (g), "
        "which no earlier week held."
    )
    assert told.startswith(f"The words changed: {sentence}\n  {MEND} {WHOSE}\n")
    assert "that is kept" not in told
    document = json.loads((tmp_path / "w.json").read_text(encoding="utf-8"))
    until = data.filter(~from_week(data, AT) & (pl.col("g") == "m")).height
    assert document["word_changes"] == [
        {"role": "group", "attribute": "g", "word": "M", "kind": "unknown", "since": SINCE,
         "rows": later.filter(pl.col("g") == "M").height, "attributes": ["g"]},
        {"role": "group", "attribute": "g", "word": "m", "kind": "vanished", "since": SINCE,
         "rows": until, "attributes": ["g"]},
    ]  # fmt: skip
    page = (tmp_path / "w.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    escaped = sentence.replace("'", "&#39;")
    assert f"<h1>{escaped}</h1>" in page
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert f"What to do. {MEND} {WHOSE}" in plain
    assert '<section class="card bad"><span class="tag bad"><span aria-hidden="true">✕</span>' in (
        page
    )
    assert "that is kept" not in page
    suite = ElementTree.fromstring((tmp_path / "w.xml").read_text(encoding="utf-8"))
    assert suite.get("failures") == "1"
    assert [one.get("message") for one in suite.iter("failure")] == [f"{sentence} {MEND}"]
    markdown = (tmp_path / "w.md").read_text(encoding="utf-8")
    assert markdown.startswith(
        f"### Evenhand: The words changed\n\n**{sentence}**\n\n{MEND} {WHOSE}\n\n"
    )
    assert "✓" not in markdown
    code, told, _ = run("watch", "s", "--github")
    assert (code, told) == (1, f"::error title=Evenhand%3A The words changed::{sentence} {MEND}\n")
    # Given again in the words agreed on, all is judged.
    data.filter(from_week(data, AT)).write_csv(tmp_path / "mended.csv")
    code, told, _ = run("watch", "s", "mended.csv", "--replace")
    assert code == 0
    assert "that is kept" in told


@pytest.mark.parametrize("rename", [group_renamed, decisions_renamed])
def test_periods_given_again_are_judged_as_if_they_had_come_so(
    rename: Any, tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = weeks(16, jump=0.35, at=AT)
    right = eh.watch(tmp_path / "a", data, limits=LIMITS, **ROLES)
    one_by_one(tmp_path / "b", rename(data, AT), limits=LIMITS, **ROLES)
    mended = eh.watch(tmp_path / "b", data.filter(from_week(data, AT)), replace=True)
    assert {**said(mended), "notes": []} == {**said(right), "notes": []}
    assert mended.document["word_changes"] == []
    assert [alarm["detector"] for alarm in mended.alarms] != []


def test_words_of_many_classes_that_were_given_again_leave_no_trace(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    rng = np.random.default_rng(0)
    data = weeks(10).with_columns(d=pl.Series(rng.choice(["keep", "warn", "hide"], 10 * 400)))
    wrong = data.with_columns(
        d=pl.when(from_week(data, 8)).then(pl.col("d").str.to_uppercase()).otherwise("d")
    )
    stopped = one_by_one(tmp_path / "b", wrong, limits=LIMITS, **ROLES)
    assert stopped.document["headline"].startswith(
        "Since week 2026-W10 no decision is 'hide', 'keep' or 'warn', and 400 rows a week have the "
        "decision 'HIDE', 'KEEP' or 'WARN', which no earlier week held."
    )
    assert said(eh.watch(tmp_path / "c", wrong, limits=LIMITS, **ROLES)) == said(stopped)
    right = eh.watch(tmp_path / "a", data, limits=LIMITS, **ROLES)
    mended = eh.watch(tmp_path / "b", data.filter(from_week(data, 8)), replace=True)
    assert {**said(mended), "notes": []} == {**said(right), "notes": []}


def test_a_group_that_vanishes_or_comes_alone_is_enough(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = weeks(10).with_columns(
        g=pl.when(pl.int_range(pl.len()) % 20 == 0).then(pl.lit("x")).otherwise("g")
    )
    gone = data.filter(~from_week(data, 8) | (pl.col("g") != "x"))
    result = eh.watch(tmp_path / "a", gone, limits=LIMITS, **ROLES)
    assert result.is_outside
    assert result.sentence.endswith(f"Since week 2026-W10 nobody is called 'x' (g). {MEND}")
    come = data.filter(from_week(data, 8) | (pl.col("g") != "x"))
    result = eh.watch(tmp_path / "b", come, limits=LIMITS, **ROLES)
    assert result.is_outside
    assert result.sentence == (
        "The words changed: Since week 2026-W10 20 rows a week are called 'x' (g), which no "
        f"earlier week held. {MEND}"
    )
    # One that merely gets rarer has rows: that is no other word.
    keep = ~from_week(data, 8) | (pl.col("g") != "x") | (pl.int_range(pl.len()) % 200 == 0)
    assert not eh.watch(tmp_path / "c", data.filter(keep), limits=LIMITS, **ROLES).is_outside


def test_a_word_that_went_within_a_week_is_gone(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    data = weeks(10)
    late = pl.col("day") > pl.lit(data["day"].min() + timedelta(weeks=8))
    merged = data.with_columns(
        g=pl.when(late).then(pl.col("g").replace("m", "f")).otherwise(pl.col("g"))
    )
    rows = merged.filter((pl.col("g") == "m") & from_week(data, 8)).height
    assert 0 < rows < 60
    result = eh.watch(tmp_path / "s", merged, limits=LIMITS, **ROLES)
    assert result.sentence.endswith(f"Since week 2026-W11 nobody is called 'm' (g). {MEND}")


def test_a_typo_stops_nothing_and_is_named(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    data = weeks(10).with_columns(pl.col("d").cast(pl.String))
    typo = from_week(data, 8) & (pl.int_range(pl.len()) % 300 == 0)
    assert data.filter(typo).height == 3
    data = data.with_columns(d=pl.when(typo).then(pl.lit("11")).otherwise("d"))
    result = eh.watch(tmp_path / "s", data, positive="1", limits=LIMITS, **ROLES)
    assert not result.is_outside
    assert "Class 11 is new in 2026-W10, with 3 rows." in result.document["notes"]
    assert result.document["word_changes"] == []


def test_a_rare_group_that_comes_late_by_chance_stops_nothing(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = weeks(12).with_columns(
        g=pl.when(pl.int_range(pl.len()) % 400 < pl.col("day").dt.week() % 3)
        .then(pl.lit("x"))
        .otherwise("g")
    )
    data = data.with_columns(
        g=pl.when(~from_week(data, 2) & (pl.col("g") == "x")).then(pl.lit("f")).otherwise("g")
    )
    assert data.filter(pl.col("g") == "x").height >= 10
    assert not eh.watch(tmp_path / "s", data, limits=LIMITS, **ROLES).is_outside


def test_a_truth_that_is_not_known_yet_has_not_vanished(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    limits = {"true_positive_rate_gap": 0.5}
    data = weeks(12).with_columns(y=pl.int_range(pl.len()) % 2)
    # Of the last two weeks one class alone is known, and then none at all.
    late = from_week(data, 10)
    slow = data.with_columns(y=pl.when(late & (pl.col("y") == 1)).then(None).otherwise("y"))
    none = data.with_columns(y=pl.when(late).then(None).otherwise("y"))
    waiting = eh.watch(tmp_path / "a", slow, truth="y", limits=limits, mature="2w", **ROLES)
    assert waiting.document["word_changes"] == []
    unknown = eh.watch(tmp_path / "b", none, truth="y", limits=limits, **ROLES)
    assert unknown.document["word_changes"] == []
    # What is mature and has one class alone is another matter.
    gone = eh.watch(tmp_path / "c", slow, truth="y", limits=limits, **ROLES)
    assert gone.sentence.endswith(f"Since week 2026-W12 no truth is '1'. {MEND}")
    assert gone.is_outside


def test_words_of_one_attribute_stop_what_rests_on_them(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = weeks(16).with_columns(h=pl.Series(["a", "b"] * (8 * 400)))
    data = data.with_columns(
        h=pl.when(from_week(data, AT)).then(pl.col("h").replace("b", "B")).otherwise("h")
    )
    roles = {**ROLES, "group": ["g", "h"], "crossed": True}
    whole = eh.watch(tmp_path / "a", data, limits={"selection_rate_gap": 0.3}, **roles)
    ends = {row["attribute"]: row["period"] for row in whole.document["results"]}
    assert ends == {"g": "2026-W17", "h": "2026-W12", "g*h": "2026-W12"}
    verdicts = {row["attribute"]: row["verdict"] for row in whole.document["results"]}
    assert verdicts == {"g": "within", "h": "cannot tell", "g*h": "cannot tell"}
    assert "What was agreed by h and g*h cannot be judged from there on" in whole.sentence
    assert whole.verdict == "cannot tell"
    text = str(whole)
    assert text.count("that is kept") == 1
    assert text.count(f"From {SINCE} on it is not judged.") == len(whole.document["results"]) - 1
    single = one_by_one(tmp_path / "b", data, limits={"selection_rate_gap": 0.3}, **roles)
    assert said(single) == said(whole)


def test_tally_sets_and_their_words(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    data = group_renamed(weeks(16), AT)
    paths = []
    for week in range(16):
        path = tmp_path / f"removals-2026-W{week + 2:02d}.tallies"
        part = data.filter(from_week(data, week) & ~from_week(data, week + 1))
        eh.tally(part, decision="d", group="g").save(path)
        paths.append(str(path))
    by_sets = eh.watch(tmp_path / "a", paths, every="week", limits=LIMITS)
    by_rows = eh.watch(tmp_path / "b", data, limits=LIMITS, **ROLES)
    assert by_sets.document["word_changes"] == by_rows.document["word_changes"] != []
    assert by_sets.is_outside


def test_another_model_does_not_make_other_words_fit(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = decisions_renamed(weeks(16), AT)
    eh.watch(tmp_path / "s", data.filter(~from_week(data, AT)), limits=LIMITS, **ROLES)
    later = data.filter(from_week(data, AT))
    result = eh.watch(tmp_path / "s", later, model_version="2")
    assert result.is_outside
    assert "that is kept" not in str(result)
    assert result.document["tag"] == "The words changed"


def test_a_store_from_before_is_read_and_its_words_are_found(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    first = eh.watch(store, group_renamed(weeks(16), AT), limits=LIMITS, **ROLES)
    with Store.open(store) as opened, opened.writing():
        opened._connection.execute("DELETE FROM series WHERE name = 'words'")
    again = eh.watch(store)
    assert said(again) == said(first)
    assert again.document["word_changes"] != []


def test_an_alarm_that_is_open_is_told_below_the_words(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = group_renamed(weeks(16, jump=0.4, at=0), 14)
    result = eh.watch(tmp_path / "s", data, limits=LIMITS, **ROLES)
    assert result.alarms != []
    assert result.document["tag"] == "The words changed"
    assert "\n· Alarm 1 (limit): Since week 2, group f gets decision '1'" in str(result)
    # What is to be done is about the words, and not the alarm's step.
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", watch_text(result.document, "page")))
    assert page.count("What to do.") == page.count(f"What to do. {result.document['next']}") == 1
    assert result.verdict == "outside"


def test_decisions_under_other_values_have_words_too(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = decisions_renamed(weeks(12), 10)
    data = data.with_columns(pl.col("d").alias("d@f"), pl.col("d").alias("d@m"))
    pairs = {"counterfactual": {"f": "d@f", "m": "d@m"}}
    asked = {"measures": ["counterfactual_selection_rate_gap", "selection_rate_gap"]}
    result = eh.watch(tmp_path / "a", data, **ROLES, **pairs, **asked)
    assert "and 400 rows a week have the decision 'no' or 'yes', which" in result.sentence
    assert {row["period"] for row in result.document["results"]} == {"2026-W11"}
    # A group that is called otherwise says nothing of the same rows decided twice.
    data = group_renamed(weeks(12), 10)
    data = data.with_columns(pl.col("d").alias("d@f"), pl.col("d").alias("d@m"))
    result = eh.watch(tmp_path / "b", data, **ROLES, **pairs, **asked)
    ends = {row["lens"]: row["period"] for row in result.document["results"]}
    assert ends == {"statistical": "2026-W11", "counterfactual": "2026-W13"}
    assert "What was agreed by g cannot be judged from there on" in result.sentence
    assert result.is_outside
