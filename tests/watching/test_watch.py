"""Watching a store: added once, judged over all looks, refused where it is not the same."""

import json
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.tallies.sets import Tallies
from evenhand.errors import DataError, LimitExceeded, UsageError
from evenhand.watching.store import FILE, Store

Weeks = Callable[..., pl.DataFrame]
MONDAY = date(2026, 1, 5)
ROLES: dict[str, Any] = {"time": "day", "every": "week", "decision": "d", "group": "g"}
LIMITS = {"selection_rate_gap": 0.05}


def test_a_change_is_found_dated_and_said(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    result = eh.watch(tmp_path / "s", weeks(16, jump=0.3), limits=LIMITS, horizon=52, **ROLES)
    change = next(alarm for alarm in result.alarms if alarm["detector"] == "change")
    # Planted in the eleventh week, 16 March: the week of that Monday.
    assert change["onset"] == "2026-W12"
    assert change["low"] < 0.3 < change["high"]
    assert result.is_outside
    assert result.document["headline"].startswith("Since week 12, ")
    with pytest.raises(LimitExceeded, match="Since week 12"):
        eh.check(result)


def test_no_change_raises_no_alarm_and_the_same_again_changes_nothing(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store, data = tmp_path / "s", weeks(14)
    first = eh.watch(store, data, limits=LIMITS, **ROLES)
    assert first.alarms == []
    assert not first.is_outside
    before = list(sqlite3.connect(store / FILE).iterdump())
    again = eh.watch(store, data)
    alone = eh.watch(store)
    assert list(sqlite3.connect(store / FILE).iterdump()) == before
    for other in (again, alone):
        for part in ("periods", "results", "alarms", "causes", "headline"):
            assert other.document[part] == first.document[part]


def test_week_by_week_is_the_same_as_all_at_once(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    whole = eh.watch(tmp_path / "a", weeks(12, jump=0.3, at=9), limits=LIMITS, **ROLES)
    for week in (3, 0, 1, 2, *range(4, 12)):
        one = eh.watch(tmp_path / "b", weeks(1, first=week, jump=0.3, at=9), limits=LIMITS, **ROLES)
    assert [p["period"] for p in one.document["periods"]] == [
        p["period"] for p in whole.document["periods"]
    ]
    assert one.document["results"] == whole.document["results"]
    keep = ("detector", "onset", "raised", "size")
    shown = [[{k: a[k] for k in keep} for a in look.alarms] for look in (one, whole)]
    assert shown[0] == shown[1] != []


def test_the_document_has_what_the_schema_says(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    result = eh.watch(tmp_path / "s", weeks(14, jump=0.3), limits=LIMITS, **ROLES)
    document = json.loads(result.to_json())
    assert document["schema"] == "evenhand.watch/1"
    row = document["results"][0]
    assert (row["measure"], row["group"], row["reference"]) == ("selection_rate_gap", "f", "m")
    assert row["period"] == document["periods"][-1]["period"] == "2026-W15"
    assert row["low"] < row["value"] < row["high"]
    assert row["n"] + row["n_reference"] == 14 * 400
    alarm = {"id", "measure", "class", "attribute", "group", "detector", "raised", "onset",
             "size", "low", "high"}  # fmt: skip
    assert alarm <= set(document["alarms"][0])
    assert document["causes"] == []  # without strata or scores there is nothing to part


def test_verdicts_wait_for_eight_periods(tmp_path: Path, weeks: Weeks) -> None:
    early = eh.watch(tmp_path / "s", weeks(7, jump=0.5, at=0), limits=LIMITS, **ROLES)
    assert early.verdict == "cannot tell"
    assert "provisional: 7 of 8 periods" in early.document["results"][0]["method"]
    assert early.document["results"][0]["family_low"] > 0.05
    later = eh.watch(tmp_path / "s", weeks(1, first=7, jump=0.5, at=0))
    assert later.verdict == "outside"


def test_an_unfinished_week_is_shown_and_not_judged(tmp_path: Path, weeks: Weeks) -> None:
    cut = weeks(9).filter(pl.col("day") <= pl.lit(MONDAY) + pl.duration(days=8 * 7 + 3))
    result = eh.watch(tmp_path / "s", cut, limits=LIMITS, **ROLES)
    assert [p["judged"] for p in result.document["periods"]] == [True] * 8 + [False]
    assert result.document["periods"][-1]["why"] == "unfinished"
    assert any("2026-W10 is not judged" in note for note in result.document["notes"])
    # What was not judged is replaced by the whole week without a question.
    whole = eh.watch(tmp_path / "s", weeks(1, first=8))
    assert whole.document["periods"][-1]["judged"]
    assert whole.document["periods"][-1]["rows"] == 400


def test_a_period_matures(tmp_path: Path, weeks: Weeks) -> None:
    result = eh.watch(tmp_path / "s", weeks(12), limits=LIMITS, mature="2w", **ROLES)
    assert [p["why"] for p in result.document["periods"]][-3:] == [None, "not mature", "not mature"]
    later = eh.watch(tmp_path / "s", as_of="2026-04-20")
    assert all(p["judged"] for p in later.document["periods"])
    # What was said of the data holds until something else is said.
    assert eh.watch(tmp_path / "s").document["periods"] == later.document["periods"]


def test_a_judged_period_is_only_replaced_when_asked(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(9), limits=LIMITS, **ROLES)
    other = weeks(1, first=3, seed=7)
    with pytest.raises(DataError, match=r"^2026-W05 was judged with 400 rows, and these 400 rows"):
        eh.watch(store, other)
    changed = eh.watch(store, other, replace=True)
    assert "One judged period was replaced; the old one is kept." in changed.document["notes"]
    with Store.open(store) as opened:
        assert opened.revisions() == 1
        assert len(opened.periods()) == 9
    held = sqlite3.connect(store / FILE)
    assert held.execute("SELECT count(*) FROM periods").fetchone()[0] == 10
    with pytest.raises(sqlite3.IntegrityError, match="periods only grows"):
        held.execute("DELETE FROM periods")


def test_one_store_watches_one_thing(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(3), **ROLES)
    other = weeks(1, first=3).rename({"g": "h"})
    with pytest.raises(DataError, match=r"was made with group=\['g'\], and this is group=\['h'\]"):
        eh.watch(store, other, **{**ROLES, "group": "h"})
    with pytest.raises(DataError, match=r"was made with every='week', and this is every='month'"):
        eh.watch(store, weeks(1, first=3), **{**ROLES, "every": "month"})
    scored = weeks(1, first=3).with_columns(s=pl.lit(0.5))
    with pytest.raises(DataError, match=r"was made with score=none, and this is score='s'"):
        eh.watch(store, scored, time="day", every="week", group="g", score="s", threshold=0.5)


def test_another_model_begins_a_new_sequence(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(9), limits=LIMITS, model_version="1", **ROLES)
    result = eh.watch(store, weeks(2, first=9), model_version="2")
    assert [p["sequence"] for p in result.document["periods"]] == [1] * 9 + [2] * 2
    assert result.document["sequences"] == 2
    assert result.document["results"][0]["n"] + result.document["results"][0]["n_reference"] == 800
    assert any("this is sequence 2" in note for note in result.document["notes"])


def test_an_answer_lets_detectors_begin_at_the_onset(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(16, jump=0.3), limits=LIMITS, **ROLES)
    with pytest.raises(UsageError, match="Say who acknowledges the alarm"):
        eh.alarms(store, acknowledge=1)
    with pytest.raises(UsageError, match=r"There is no alarm 9 in .* Open are: 1"):
        eh.alarms(store, acknowledge=9, by="policy", why="no")
    for alarm in [one.id for one in eh.alarms(store).open]:
        answered = eh.alarms(store, acknowledge=alarm, by="policy", why="the rule was changed")
    assert answered.open == []
    with pytest.raises(UsageError, match=r"Alarm 1 was answered by policy: 'the rule was changed'"):
        eh.alarms(store, acknowledge=1, by="others", why="again")
    after = eh.watch(store, weeks(10, first=16, jump=0.3))
    # The gap stays where it was said to belong: no new change since the onset.
    assert [
        a["detector"] for a in after.alarms if a["by"] is None and a["detector"] == "change"
    ] == []


def test_few_rows_of_a_group_may_come_and_go(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(9), measures=["selection_rate_gap"], **ROLES)
    new = weeks(1, first=9).with_columns(
        g=pl.when(pl.int_range(pl.len()) < 9).then(pl.lit("x")).otherwise("g")
    )
    result = eh.watch(store, new)
    rows = {row["group"]: row for row in result.document["results"]}
    assert {name: row["period"] for name, row in rows.items()} == {"f": "2026-W11", "x": "2026-W11"}
    again = eh.watch(store, weeks(1, first=10))
    rows = {row["group"]: row for row in again.document["results"]}
    # A group without rows in a period waits for the next: the eleventh week counts for f alone.
    assert {name: row["period"] for name, row in rows.items()} == {"f": "2026-W12", "x": "2026-W11"}
    assert again.document["word_changes"] == []


def test_a_new_class_is_not_judged_with_the_others(tmp_path: Path, weeks: Weeks) -> None:
    rng = np.random.default_rng(0)
    data = weeks(9).with_columns(d=pl.Series(rng.choice(["keep", "warn", "remove"], 9 * 400)))
    new = weeks(1, first=9).with_columns(d=pl.Series(rng.choice(["keep", "hide"], 400)))
    eh.watch(tmp_path / "s", data, measures=["selection_rate_gap"], **ROLES)
    result = eh.watch(tmp_path / "s", new)
    assert {row["class"] for row in result.document["results"]} == {"keep", "remove", "warn"}
    kept = next(r for r in result.document["results"] if r["class"] == "keep")
    assert kept["n"] + kept["n_reference"] == 3600
    assert {c["word"]: c["kind"] for c in result.document["word_changes"]} == {
        "hide": "unknown",
        "remove": "vanished",
        "warn": "vanished",
    }


def test_tally_sets_in_place_of_rows(tmp_path: Path, weeks: Weeks) -> None:
    roles = {"decision": "d", "group": "g"}
    paths = []
    for week in range(9):
        path = tmp_path / f"removals-2026-W{week + 2:02d}.tallies"
        eh.tally(weeks(1, first=week), **roles).save(path)
        paths.append(str(path))
    by_sets = eh.watch(tmp_path / "a", paths, every="week", limits=LIMITS)
    by_rows = eh.watch(tmp_path / "b", weeks(9), limits=LIMITS, **ROLES)
    assert by_sets.document["results"] == by_rows.document["results"]
    one = Tallies.load(paths[0])
    with pytest.raises(UsageError, match="does not say which week it is of"):
        eh.watch(tmp_path / "c", one, every="week")
    named = eh.watch(tmp_path / "c", one, every="week", period="2026-W02")
    assert named.document["periods"][0]["period"] == "2026-W02"
    with pytest.raises(UsageError, match=r"Two sets are given for 2026-W02"):
        eh.watch(tmp_path / "d", [paths[0], paths[0]], every="week")


def test_rows_without_a_time_or_a_group_are_said(tmp_path: Path, weeks: Weeks) -> None:
    data = weeks(9).with_columns(
        day=pl.when(pl.int_range(pl.len()) % 100 == 0).then(None).otherwise("day"),
        g=pl.when(pl.int_range(pl.len()) % 10 == 1).then(None).otherwise("g"),
    )
    result = eh.watch(tmp_path / "s", data, limits=LIMITS, **ROLES)
    notes = " ".join(result.document["notes"])
    assert "36 rows without a time belong to no period and were left out." in notes
    assert re.search(r"10\.1% of the rows have no g; they could hide up to \d+\.\d points", notes)


def test_damaged_newer_and_foreign_stores(tmp_path: Path, weeks: Weeks) -> None:
    with pytest.raises(UsageError, match="There is no store in"):
        eh.watch(tmp_path / "nowhere")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds other files\. A store needs a folder of its own"):
        eh.watch(tmp_path / "mine", weeks(1), **ROLES)
    store = tmp_path / "s"
    eh.watch(store, weeks(2), **ROLES)
    held = sqlite3.connect(store / FILE)
    held.execute("UPDATE about SET value = '\"evenhand.store/9\"' WHERE name = 'schema'")
    held.commit()
    with pytest.raises(DataError, match=r"is a store of schema evenhand.store/9, and this version"):
        eh.watch(store)
    (store / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(DataError, match=r"is damaged: file is not a database"):
        eh.watch(store)
    assert DataError.exit_code == 4


def test_nothing_is_left_of_a_run_that_fails(tmp_path: Path, weeks: Weeks) -> None:
    with pytest.raises(DataError, match="before 1900"):
        eh.watch(tmp_path / "s", weeks(1).with_columns(day=pl.lit("1800-01-01")), **ROLES)
    assert not (tmp_path / "s").exists()


def test_two_writers_take_turns(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(1), **ROLES)
    problems: list[BaseException] = []

    def add(week: int) -> None:
        try:
            eh.watch(store, weeks(1, first=week), **ROLES)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=add, args=(week,)) for week in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with Store.open(store) as opened:
        assert [p.period.name for p in opened.periods()] == [f"2026-W{w:02d}" for w in range(2, 7)]


def test_a_killed_writer_leaves_what_was_there(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(2), **ROLES)
    code = (
        "import os, sys\n"
        "from evenhand.watching.store import Store\n"
        "with Store.open(sys.argv[1]) as store, store.writing():\n"
        "    store.set_settings({'level': 0.5})\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(store)], check=False)
    assert done.returncode == -9
    with Store.open(store) as opened:
        assert opened.settings["level"] == 0.95
        assert len(opened.periods()) == 2


def test_a_second_process_reads_while_one_writes(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(2), **ROLES)
    with Store.open(store) as writer, writer.writing():
        code = (
            "import sys\nfrom evenhand.watching.store import Store\n"
            "with Store.open(sys.argv[1]) as store:\n    print(len(store.periods()))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(store)], capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == "2"


def test_a_full_disk_is_told_and_nothing_is_kept(
    tmp_path: Path, weeks: Weeks, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(2), **ROLES)

    def full(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_insert", full)
        with pytest.raises(UsageError, match=r"the disk is full\. Nothing of this run was kept\."):
            eh.watch(store, weeks(1, first=2), **ROLES)
    assert len(eh.watch(store).document["periods"]) == 2


def test_what_cannot_be_watched(tmp_path: Path, weeks: Weeks) -> None:
    data = weeks(2)
    with pytest.raises(UsageError, match=r"measure='selection_rate_ratio' cannot be watched\."):
        eh.watch(tmp_path / "s", data, measures=["selection_rate_ratio"], **ROLES)
    noted = eh.watch(tmp_path / "s", data, limits={"selection_rate_ratio": 0.8}, **ROLES)
    assert any(
        note == "The limit on selection_rate_ratio is not watched. Set one on selection_rate_gap."
        for note in noted.document["notes"]
    )
    with pytest.raises(UsageError, match="Say how long a period is"):
        eh.watch(tmp_path / "t", data, time="day", decision="d", group="g")
    with pytest.raises(UsageError, match="horizon=4 is too short"):
        eh.watch(tmp_path / "s", data, horizon=4)


def test_it_shows_itself(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    data = weeks(16, jump=0.3).with_columns(g=pl.col("g").replace("f", "<b>f</b>"))
    result = eh.watch(tmp_path / "s", data, limits=LIMITS, **ROLES)
    for name in ("w.html", "w.md", "w.xml", "w.json"):
        result.save(tmp_path / name)
    page = (tmp_path / "w.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "<script" not in page
    assert "<b>f</b>" not in page
    assert "default-src &#39;none&#39;" in page
    assert "prefers-color-scheme:dark" in page
    assert (
        result.document["headline"]
        .replace("<b>f</b>", "&lt;b&gt;f&lt;/b&gt;")
        .replace("'", "&#39;")
        in page
    )
    suite = ElementTree.fromstring((tmp_path / "w.xml").read_text(encoding="utf-8"))
    assert int(suite.get("failures")) == len(list(suite.iter("failure"))) >= 1
    assert "Alarm 1" in (tmp_path / "w.md").read_text(encoding="utf-8")
    assert "Alarm 1, open since" in str(result)
    with pytest.raises(UsageError, match="does not say by its ending"):
        result.save(tmp_path / "w.docx")


class _Hook(BaseHTTPRequestHandler):
    heard: ClassVar[list[dict[str, Any]]] = []
    answers: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.answers.pop(0) if self.answers else 200
        if code == 200:
            self.heard.append(json.loads(body))
        self.send_response(code)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_an_address_is_told_once(
    tmp_path: Path, weeks: Weeks, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.watching.alarms.PAUSES", (0.0, 0.01))
    store = tmp_path / "s"
    eh.watch(store, weeks(16, jump=0.3), limits=LIMITS, **ROLES)
    _Hook.heard, _Hook.answers = [], [503]
    server = HTTPServer(("127.0.0.1", 0), _Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/hook?token=secret"
        first = eh.alarms(store, webhook=address)
        second = eh.alarms(store, webhook=address)
    finally:
        server.shutdown()
        server.server_close()
    assert list(first.told) == [alarm.id for alarm in first.held]
    assert second.told == ()
    assert [heard["id"] for heard in _Hook.heard] == list(first.told)
    gone = eh.alarms(store, webhook="http://127.0.0.1:9/hook?token=secret")
    assert gone.told == ()
    assert "secret" not in gone.notes[0]
    assert "was not told of alarm" in gone.notes[0]
    with pytest.raises(UsageError, match="is not an address"):
        eh.alarms(store, webhook="file:///etc/passwd")


def test_an_address_that_hangs_does_not_hold_up(
    tmp_path: Path, weeks: Weeks, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    from evenhand.watching import alarms as module

    store = tmp_path / "s"
    eh.watch(store, weeks(16, jump=0.3), limits=LIMITS, **ROLES)
    monkeypatch.setattr(module, "ONE_TRY", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        found = eh.alarms(store, webhook=f"http://127.0.0.1:{silent.getsockname()[1]}/")
    assert found.told == ()
    assert "it did not answer in time" in found.notes[0]


def test_a_group_whose_labels_come_late_is_said_with_bounds(tmp_path: Path, weeks: Weeks) -> None:
    data = weeks(9).with_columns(
        y=pl.when((pl.col("g") == "f") & (pl.int_range(pl.len()) % 3 == 0))
        .then(None)
        .otherwise(pl.int_range(pl.len()) % 2)
    )
    result = eh.watch(
        tmp_path / "s", data, truth="y", limits={"true_positive_rate_gap": 0.05}, **ROLES
    )
    notes = " ".join(result.document["notes"])
    assert re.search(
        r"By g, 3\d\.\d% of f and 0\.0% of m have no truth yet; .* They could move gaps by up to "
        r"\d+\.\d points\.",
        notes,
    )
    shares = [period["unlabelled"]["g"] for period in result.document["periods"]]
    assert all(share["f"] > 0.2 and share["m"] == 0 for share in shares)


def test_the_commands_say_the_same(tmp_path: Path, weeks: Weeks, quick: None, run: Any) -> None:
    weeks(16, jump=0.3).write_csv(tmp_path / "weeks.csv")
    roles = ["--time", "day", "--every", "week", "--decision", "d", "--group", "g"]
    code, said, _ = run(
        "watch", "s", "weeks.csv", *roles, "--limit", "selection_rate_gap=0.05",
        "--json", "w.json", "--out", "w.html", "--junit", "w.xml", "--markdown", "w.md",
        "--export", "tables",
    )  # fmt: skip
    assert code == 1
    assert said.startswith("Alarm 1, open since week ")
    document = json.loads((tmp_path / "w.json").read_text(encoding="utf-8"))
    assert document["headline"] in said
    periods = pl.read_parquet(tmp_path / "tables" / "periods.parquet")
    assert periods.height == 16
    cells = pl.read_parquet(tmp_path / "tables" / "tallies.parquet")
    counted = cells.filter(pl.col("table").str.starts_with("counts/")).group_by("period").agg(
        pl.col("sum:n").sum()
    )  # fmt: skip
    both = periods.join(counted, left_on="id", right_on="period")
    assert both["sum:n"].to_list() == both["rows"].to_list()
    code, said, _ = run("watch", "s", "--quiet")
    assert (code, said) == (1, f"{document['tag']}: {document['headline']}\n")
    code, said, _ = run("watch", "s", "--github")
    assert said.startswith("::notice title=Evenhand::")
    assert "::error title=Evenhand%3A alarm 1::" in said
    code, said, _ = run("alarms", "s")
    assert code == 1
    assert said.startswith("2 alarms of 2 are open in s.")
    # Who, what, since when, what next and how to answer, for each of them.
    assert "Alarm 1, raised in the week of 30 March 2026: Since week 12, group f gets" in said
    assert said.count("answer with: evenhand alarms s --acknowledge") == 2
    for alarm in document["alarms"]:
        answer = ("--acknowledge", alarm["id"], "--by", "policy", "--why", "agreed")
        code, said, _ = run("alarms", "s", *answer)
    # The gap is what it was, whoever answered for it.
    assert code == 1
    assert said.startswith(
        "No alarm is open in s. Two alarms that were answered are still outside."
    )
    assert "and answered by policy (“agreed”), still outside: Since week 12, group f gets" in said
    code, _, complaint = run("alarms", "nowhere")
    assert code == 2
    assert "There is no store in 'nowhere'." in complaint
    (tmp_path / "s" / FILE).write_bytes(b"gone")
    code, _, complaint = run("watch", "s")
    assert code == 4
    assert "is damaged" in complaint
