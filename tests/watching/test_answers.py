"""An alarm that was answered: who answered changes no number, so a known breach stays one."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import LimitExceeded

Weeks = Callable[..., pl.DataFrame]
ROLES: dict[str, Any] = {"time": "day", "every": "week", "decision": "d", "group": "g"}
LIMITS = {"selection_rate_gap": 0.1}
# Ten weeks without a gap, then one of 20 points: the average of all alone cannot tell.
JUMP: dict[str, Any] = {"jump": 0.2, "at": 10, "n": 800}


def on(engine: str, frame: pl.DataFrame) -> Any:
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.from_arrow(frame.to_arrow())
    return frame


def answered(store: Path) -> Any:
    for alarm in [one.id for one in eh.alarms(store).open]:
        found = eh.alarms(store, acknowledge=alarm, by="policy", why="meant so")
    return found


def today() -> str:
    day = datetime.now(UTC)
    return f"{day.day} {day:%B} {day.year}"


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_answer_keeps_a_known_breach_outside(
    engine: str, tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    before = eh.watch(store, on(engine, weeks(20, **JUMP)), limits=LIMITS, **ROLES)
    assert {alarm["state"] for alarm in before.alarms} == {"open"}
    found = answered(store)
    assert found.open == []
    assert [alarm.id for alarm in found.still_outside] == [1, 2]
    assert {each["state"] for each in found.plain()} == {"answered, still outside"}
    result = eh.watch(store)
    assert [row["verdict"] for row in result.document["results"]] == ["cannot tell"]
    assert result.verdict == "outside"
    assert result.is_outside
    assert result.document["tag"] == "Alarm 1, answered, still outside"
    assert result.document["headline"] == before.document["headline"]
    assert result.document["summary"].endswith("no alarm open, two answered and still outside")
    with pytest.raises(LimitExceeded, match=r"^Alarm 1, answered, still outside: Since week 12, "):
        eh.check(result)
    for alarm in result.alarms:
        assert (alarm["state"], alarm["by"], alarm["why"]) == (
            "answered, still outside", "policy", "meant so",
        )  # fmt: skip
        assert alarm["answered_at"].startswith(str(datetime.now(UTC).date()))


def test_the_commands_exit_1_and_every_form_says_who_answered(
    tmp_path: Path, weeks: Weeks, quick: None, run: Any
) -> None:
    weeks(20, **JUMP).write_csv(tmp_path / "weeks.csv")
    roles = ["--time", "day", "--every", "week", "--decision", "d", "--group", "g"]
    run("watch", "s", "weeks.csv", *roles, "--limit", "selection_rate_gap=0.1")
    for alarm in (1, 2):
        answer = ("--acknowledge", alarm, "--by", "policy", "--why", "meant so")
        code, told, _ = run("alarms", "s", *answer)
        assert code == 1
    assert told.startswith(
        "No alarm is open in s. Two alarms that were answered are still outside."
    )
    assert "and answered by policy (“meant so”), still outside: Since week 12, group f" in told
    code, told, _ = run("watch", "s", "--json", "w.json", "--out", "w.html", "--junit", "w.xml",
                        "--markdown", "w.md")  # fmt: skip
    assert code == 1
    document = json.loads((tmp_path / "w.json").read_text(encoding="utf-8"))
    sentence = (
        f"Answered by policy on {today()} (“meant so”), still outside: this stays until the gap is "
        "back inside its limit."
    )
    assert told.startswith(f"Alarm 1, answered, still outside: {document['headline']}\n")
    assert f"\n  {sentence} Implementation: " in told
    assert "\n· Alarm 2 (limit, answered, still outside): The same gap" in told
    page = (tmp_path / "w.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert '<span class="tag bad"><span aria-hidden="true">✕</span> Alarm 1, answered, still' in (
        page
    )
    assert page.count(sentence) == 3
    assert "What to do." not in page
    suite = ElementTree.fromstring((tmp_path / "w.xml").read_text(encoding="utf-8"))
    failures = [one.get("message") for one in suite.iter("failure")]
    assert len(failures) == 2
    assert all(message.endswith(sentence) for message in failures)
    markdown = (tmp_path / "w.md").read_text(encoding="utf-8")
    assert markdown.startswith("### Evenhand: Alarm 1, answered, still outside\n")
    assert markdown.count(sentence) == 2
    code, told, _ = run("watch", "s", "--github")
    assert code == 1
    assert told.count("::error title=Evenhand%3A alarm ") == 2


def test_it_goes_once_the_data_show_the_gap_back_inside(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(20, **JUMP), limits=LIMITS, **ROLES)
    answered(store)
    later = {**JUMP, "at": 99}
    first = eh.watch(store, weeks(1, first=20, **later))
    # One week says little: it is still outside, as far as anybody knows.
    assert first.verdict == "outside"
    eh.watch(store, weeks(23, first=21, **later))
    answered(store)
    back = eh.watch(store)
    assert {alarm["state"] for alarm in back.alarms} == {"answered"}
    assert back.verdict == "within"
    assert not back.is_outside
    assert "still outside" not in str(back)
    assert eh.alarms(store).still_outside == []


def test_another_limit_or_none_ends_it(tmp_path: Path, weeks: Weeks, quick: None) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(20, **JUMP), limits=LIMITS, **ROLES)
    answered(store)
    wider = eh.watch(store, limits={"selection_rate_gap": 0.3})
    assert wider.verdict == "within"
    assert not wider.is_outside
    assert eh.watch(store, limits=LIMITS).is_outside
    none = eh.watch(store, limits={}, measures=["selection_rate_gap"])
    assert none.verdict == "not assessed"
    assert not none.is_outside


def test_a_change_within_its_limit_is_answered_for_good(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    data = weeks(20, **{**JUMP, "n": 2_000})
    first = eh.watch(store, data, limits={"selection_rate_gap": 0.3}, **ROLES)
    assert [alarm["detector"] for alarm in first.alarms] == ["change"]
    answered(store)
    result = eh.watch(store)
    assert {alarm["state"] for alarm in result.alarms} == {"answered"}
    assert result.verdict == "within"
    assert not result.is_outside


def test_answering_the_change_alone_hides_no_breach(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    # The detector of limits begins again at the onset, and has not looked there long enough yet.
    store = tmp_path / "s"
    many = {**JUMP, "jump": 0.16, "n": 4_000}
    first = eh.watch(store, weeks(12, **many), limits=LIMITS, **ROLES)
    assert [alarm["detector"] for alarm in first.alarms] == ["change"]
    answered(store)
    result = eh.watch(store, weeks(1, first=12, **many))
    assert [alarm["by"] for alarm in result.alarms] == ["policy"]
    assert result.document["tag"] == "Alarm 1, answered, still outside"
    assert result.is_outside


def test_weeks_one_by_one_say_the_same_of_an_answer(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    looks = []
    for name, steps in (("a", [(20, 6)]), ("b", [(week, 1) for week in range(20, 26)])):
        eh.watch(tmp_path / name, weeks(20, **JUMP), limits=LIMITS, **ROLES)
        answered(tmp_path / name)
        for first, many in steps:
            after = eh.watch(tmp_path / name, weeks(many, first=first, **JUMP))
        states = [(alarm["state"], alarm["onset"], alarm["size"]) for alarm in after.alarms]
        looks.append((after.verdict, after.document["headline"], after.document["tag"], states))
    assert looks[0] == looks[1]
    assert looks[0][0] == "outside"


def test_an_answer_in_a_closed_sequence_is_history(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(20, **JUMP), limits=LIMITS, model_version="1", **ROLES)
    answered(store)
    result = eh.watch(store, weeks(9, first=20, **{**JUMP, "at": 99}), model_version="2")
    assert {alarm["state"] for alarm in result.alarms} == {"answered"}
    assert not result.is_outside
