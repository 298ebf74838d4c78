"""From run to run: what is kept, what begins a new sequence, what is refused."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError, EvenhandError, UsageError
from evenhand.simulate.weeks import moderation_weeks
from evenhand.watching import store as storing
from evenhand.watching.store import FILE, Store

Weeks = Callable[..., pl.DataFrame]
ROLES: dict[str, Any] = {"time": "day", "every": "week", "decision": "d", "group": "g"}
LIMITS = {"selection_rate_gap": 0.05}
SCORED: dict[str, Any] = {
    "time": "decided_at", "every": "week", "truth": "violates", "score": "score",
    "group": "gender", "reference": "male", "limits": {"false_negative_rate_gap": 0.05},
}  # fmt: skip
CHARTER = """\
schema = "evenhand.charter/1"

[limits]
selection_rate_gap = 0.05
"""


def sequences(result: Any) -> list[int]:
    return [period["sequence"] for period in result.document["periods"]]


def test_a_threshold_for_all_rows_is_watched_week_by_week(tmp_path: Path) -> None:
    frame = moderation_weeks(10, posts=600, changed=99).frame.sort("decided_at")
    whole = eh.watch(tmp_path / "a", frame, threshold=0.5, **SCORED)
    for _, week in frame.group_by_dynamic("decided_at", every="1w", start_by="monday"):
        one = eh.watch(tmp_path / "b", week, threshold=0.5, **SCORED)
    assert [p["fingerprint"] for p in one.document["periods"]] == [
        p["fingerprint"] for p in whole.document["periods"]
    ]
    assert one.document["results"] == whole.document["results"]
    missed = frame.filter(pl.col("violates") == 1).group_by("gender").agg(pl.col("score").count())
    row = next(r for r in whole.document["results"] if r["group"] == "nonbinary")
    assert row["n"] == dict(missed.iter_rows())["nonbinary"]


def test_another_threshold_begins_a_new_sequence_and_is_kept(tmp_path: Path) -> None:
    frame = moderation_weeks(6, posts=300, changed=99).frame.sort("decided_at")
    weeks = [w for _, w in frame.group_by_dynamic("decided_at", every="1w", start_by="monday")]
    eh.watch(tmp_path / "s", pl.concat(weeks[:3]), threshold=0.5, **SCORED)
    eh.watch(tmp_path / "s", weeks[3], threshold=0.6)
    later = eh.watch(tmp_path / "s", weeks[4])
    assert sequences(later) == [1, 1, 1, 2, 2]
    # The same week with the threshold that is kept changes nothing.
    assert eh.watch(tmp_path / "s", weeks[4]).document["periods"] == later.document["periods"]


def test_the_model_is_the_last_one_named(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(2), model_version="1", **ROLES)
    eh.watch(store, weeks(1, first=2), model_version="2")
    later = eh.watch(store, weeks(1, first=3))
    assert sequences(later) == [1, 1, 2, 2]
    with pytest.raises(
        DataError, match=r"^2026-W05 was judged as decided by another model or charter\."
    ):
        eh.watch(store, weeks(1, first=3), model_version="3")


def test_the_charter_is_the_last_one_given(tmp_path: Path, weeks: Weeks) -> None:
    store, path = tmp_path / "s", tmp_path / "charter.toml"
    path.write_text(CHARTER, encoding="utf-8")
    eh.watch(store, weeks(2), charter=path, **ROLES)
    later = eh.watch(store, weeks(1, first=2))
    assert sequences(later) == [1, 1, 1]
    path.write_text(CHARTER.replace("0.05", "0.08"), encoding="utf-8")
    changed = eh.watch(store, weeks(1, first=3), charter=path)
    assert sequences(changed) == [1, 1, 1, 2]


def test_an_alarm_of_a_closed_sequence_stays_as_it_was(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    first = eh.watch(store, weeks(14, jump=0.3), limits=LIMITS, model_version="1", **ROLES)
    raised = next(a for a in first.alarms if a["detector"] == "change")
    with Store.open(store) as opened:
        kept = next(a.document for a in opened.alarms() if a.detector == "change")
    after = eh.watch(store, weeks(12, first=14, seed=3), model_version="2")
    same = next(a for a in after.alarms if a["id"] == raised["id"])
    assert {name: same[name] for name in kept} == kept
    assert same["onset"] == raised["onset"] == "2026-W12"


def test_a_week_in_two_parts_is_refused(tmp_path: Path, weeks: Weeks) -> None:
    store, week = tmp_path / "s", weeks(1, first=2)
    eh.watch(store, weeks(2), **ROLES)
    middle = sorted(week["day"].unique())[3]
    eh.watch(store, week.filter(pl.col("day") <= middle))
    with pytest.raises(
        DataError, match=r"^2026-W04 was given from 2026-01-19 to 2026-01-22 and now from "
        r"2026-01-23 to 2026-01-25\."
    ):  # fmt: skip
        eh.watch(store, week.filter(pl.col("day") > middle))
    whole = eh.watch(store, week)
    assert whole.document["periods"][-1]["rows"] == 400


def test_rows_follow_tally_sets(tmp_path: Path, weeks: Weeks) -> None:
    path = tmp_path / "removals-2026-W02.tallies"
    eh.tally(weeks(1), decision="d", group="g").save(path)
    eh.watch(tmp_path / "s", path, every="week")
    both = eh.watch(tmp_path / "s", weeks(1, first=1), **ROLES)
    assert [p["rows"] for p in both.document["periods"]] == [400, 400]


def test_another_question_is_asked_of_every_look_once(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(9), limits=LIMITS, **ROLES)
    eh.watch(store, limits={"selection_rate_gap": 0.1})
    eh.watch(store, weeks(1, first=9))
    held = sqlite3.connect(store / FILE)
    found = held.execute(
        "SELECT count(*), sum(verdict != '') FROM judgements GROUP BY question ORDER BY min(id)"
    ).fetchall()
    # Nine looks by the first question; by the second those nine again, and the tenth.
    assert found == [(9, 1), (10, 2)]


def test_what_is_away_is_said(tmp_path: Path, weeks: Weeks) -> None:
    data = weeks(10).filter(
        (pl.col("day").dt.week() != 5) & ~((pl.col("g") == "f") & (pl.col("day").dt.week() > 9))
    )
    document = eh.watch(tmp_path / "s", data, **ROLES).document
    assert "2026-W05 has no rows: what happened there is not known." in document["notes"]
    assert document["headline"].startswith("Since week 2026-W10 nobody is called 'f' (g).")
    rng = [("a", "b", "c")[i % 3] for i in range(400)]
    data = pl.concat(
        [
            weeks(2).with_columns(
                d=pl.when(pl.col("d") == 1).then(pl.lit("a")).otherwise(pl.lit("b"))
            ),
            weeks(1, first=2).with_columns(d=pl.Series(rng)),
        ]
    )
    document = eh.watch(tmp_path / "t", data, **ROLES).document
    assert document["headline"].startswith(
        "Since week 2026-W04 133 rows a week have the decision 'c', which no earlier week held."
    )


def test_a_day_that_no_month_has_is_refused(tmp_path: Path, weeks: Weeks) -> None:
    for wrong in ("2026-02-30", "2025-02-29", "2026-04-31"):
        data = weeks(1).with_columns(day=pl.lit(wrong))
        with pytest.raises(DataError, match=f"has days that no month has, such as '{wrong}'"):
            eh.watch(tmp_path / "s", data, **ROLES)
    leap = weeks(1).with_columns(day=pl.lit("2024-02-29"))
    assert eh.watch(tmp_path / "s", leap, **ROLES).document["periods"][0]["rows"] == 400


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"every": "month"}, r"was made with every='week', and this is every='month'"),
        ({"tz": "UTC"}, r"was made with tz=none, and this is tz='UTC'"),
        ({"group": "h"}, r"was made with group=\['g'\], and this is group=\['h'\]"),
        ({"replace": True}, "^replace is about data, and none are given"),
        ({"period": "2026-W02"}, "^period is about data, and none are given"),
        ({"since": "2030-W01"}, r"no week that is judged on both sides .* 2026-W02 to 2026-W03\.$"),
    ],
)
def test_a_report_refuses_what_it_cannot_heed(
    given: dict[str, Any], said: str, tmp_path: Path, weeks: Weeks
) -> None:
    eh.watch(tmp_path / "s", weeks(2), **ROLES)
    assert eh.watch(tmp_path / "s", every="week", group="g", decision="d").document["periods"]
    with pytest.raises(EvenhandError, match=said):
        eh.watch(tmp_path / "s", **given)


def test_a_first_run_that_wrote_nothing_is_begun_again(tmp_path: Path, weeks: Weeks) -> None:
    (tmp_path / "s").mkdir()
    held = sqlite3.connect(tmp_path / "s" / FILE)
    held.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(DataError, match="is not a store"):
        eh.watch(tmp_path / "s")
    assert len(eh.watch(tmp_path / "s", weeks(2), **ROLES).document["periods"]) == 2


def test_tables_of_others_are_left_alone(tmp_path: Path, weeks: Weeks) -> None:
    (tmp_path / "s").mkdir()
    held = sqlite3.connect(tmp_path / "s" / FILE)
    held.execute("CREATE TABLE mine (a)")
    held.commit()
    with pytest.raises(DataError, match="is not a store"):
        eh.watch(tmp_path / "s", weeks(2), **ROLES)
    assert held.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


@pytest.mark.parametrize(
    ("free", "said"),
    [(0, r"the disk is full\. Nothing of this run was kept\."), (1 << 30, "answers with an error")],
)
def test_a_disk_that_fails_is_not_a_damaged_store(
    free: int, said: str, tmp_path: Path, weeks: Weeks, monkeypatch: pytest.MonkeyPatch
) -> None:
    eh.watch(tmp_path / "s", weeks(1), **ROLES)

    def fails(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(storing, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(Store, "_insert", fails)
    with pytest.raises(UsageError, match=said):
        eh.watch(tmp_path / "s", weeks(1, first=1))
