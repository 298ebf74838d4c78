"""Periods one by one and all at once: the same numbers, verdicts and alarms."""

import re
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError
from evenhand.findings.limits import Limit
from evenhand.stats.sequential import log_evidence_outside, most_evidence_outside
from evenhand.watching import numbers, verdicts
from evenhand.watching.numbers import Settings
from evenhand.watching.store import FILE, Store
from evenhand.watching.streams import Stream, StreamKey, Watched
from evenhand.watching.verdicts import CHANGE, LIMIT, LineBook, LineQuestion

Weeks = Callable[..., pl.DataFrame]
ROLES: dict[str, Any] = {"time": "day", "every": "week", "decision": "d", "group": "g"}
LIMITS = {"selection_rate_gap": 0.05}
ALARM = ("measure", "group", "detector", "raised", "onset", "size", "low", "high")


def shown(result: Any) -> dict[str, Any]:
    """What a look says, but when it was said and the numbers of alarms."""
    document = result.document
    told = {name: document[name] for name in ("results", "series", "headline", "verdict", "notes")}
    told["periods"] = [
        {k: v for k, v in period.items() if k != "sequence"} for period in document["periods"]
    ]
    return told | {"alarms": [{k: a[k] for k in ALARM} for a in document["alarms"]]}


@pytest.mark.parametrize(
    ("jump", "horizon", "raised"), [(0.0, 12, []), (0.2, 12, [11, 13]), (0.2, None, [14, 15])]
)
def test_a_first_build_longer_than_its_horizon_is_as_week_by_week(
    jump: float, horizon: int | None, raised: list[int], tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    # Looks up to the twelfth (W13) are judged as planned, later ones as without a plan: both times.
    options = {**ROLES, "limits": LIMITS, "horizon": horizon, "reference": "m"}
    data = {"jump": jump, "at": 8, "n": 160}
    whole = eh.watch(tmp_path / "a", weeks(16, **data), **options)
    for week in range(16):
        one = eh.watch(tmp_path / "b", weeks(1, first=week, **data), **options)
    assert shown(one) == shown(whole)
    assert sorted(alarm["raised"] for alarm in whole.alarms) == [f"2026-W{w}" for w in raised]


def test_two_groups_of_one_size_are_not_each_others_reference_in_turn(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = {"jump": 0.25, "at": 8, "n": 100}
    whole = eh.watch(tmp_path / "a", weeks(16, **data), limits=LIMITS, **ROLES)
    references = []
    for week in range(16):
        one = eh.watch(tmp_path / "b", weeks(1, first=week, **data), limits=LIMITS, **ROLES)
        references.append(one.document["results"][0]["reference"])
    assert set(references[:8]) == {"f", "m"}
    assert len(set(references[7:])) == 1
    assert shown(one)["alarms"] == shown(whole)["alarms"]
    assert len({alarm["detector"] for alarm in one.alarms}) == len(one.alarms) > 0


def several(weeks: Weeks, many: int, *, first: int = 0, seed: int = 0) -> pl.DataFrame:
    """Weeks of three classes and four groups, one of which is rarely there."""
    rng = np.random.default_rng([seed, first])
    data = weeks(many, first=first, seed=seed)
    group = rng.choice(["a", "b", "c", "d"], data.height, p=[0.45, 0.34, 0.2, 0.01])
    return data.with_columns(
        g=pl.Series(group), d=pl.Series(rng.choice(["keep", "warn", "hide"], data.height))
    )


def in_order(store: Path, weeks: Weeks) -> Any:
    for week in range(12):
        one = eh.watch(store, several(weeks, 1, first=week), limits=LIMITS, **ROLES)
    return one


def out_of_order(store: Path, weeks: Weeks) -> Any:
    for week in (4, 0, 2, 1, 3, 11, 9, 10, 8, 7, 5, 6):
        one = eh.watch(store, several(weeks, 1, first=week), limits=LIMITS, **ROLES)
    return one


def replaced(store: Path, weeks: Weeks) -> Any:
    for week in range(12):
        seed = 9 if week in (2, 11) else 0
        eh.watch(store, several(weeks, 1, first=week, seed=seed), limits=LIMITS, **ROLES)
    for week in (2, 11):
        one = eh.watch(store, several(weeks, 1, first=week), replace=True)
    return one


def another_model(store: Path, weeks: Weeks) -> Any:
    before = several(weeks, 3, seed=5).with_columns(pl.col("day") - timedelta(weeks=3))
    eh.watch(store, before, limits=LIMITS, model_version="1", **ROLES)
    for week in range(12):
        one = eh.watch(store, several(weeks, 1, first=week), model_version="2")
    return one


@pytest.mark.parametrize("way", [in_order, out_of_order, replaced, another_model])
def test_however_periods_came_the_sequence_is_judged_the_same(
    way: Callable[[Path, Weeks], Any], tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    data = pl.concat([several(weeks, 1, first=week) for week in range(12)])
    whole, one = eh.watch(tmp_path / "a", data, limits=LIMITS, **ROLES), way(tmp_path / "b", weeks)
    assert one.document["results"] == whole.document["results"]
    assert one.document["series"] == whole.document["series"]
    assert one.document["verdict"] == whole.document["verdict"]
    assert [a["detector"] for a in one.alarms] == [a["detector"] for a in whole.alarms]
    # A group that is rarely there has fewer columns than weeks: they were carried.
    columns = {s["group"]: len(s["periods"]) for s in whole.document["series"]}
    assert columns["d"] < columns["b"] == 12


def test_an_answer_counts_the_same_for_weeks_one_by_one(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    looks = []
    for name, steps in (("a", [(14, 10)]), ("b", [(week, 1) for week in range(14, 24)])):
        store = tmp_path / name
        eh.watch(store, weeks(14, jump=0.3), limits=LIMITS, **ROLES)
        for alarm in [one.id for one in eh.alarms(store).open]:
            eh.alarms(store, acknowledge=alarm, by="policy", why="meant so")
        for first, many in steps:
            after = eh.watch(store, weeks(many, first=first, jump=0.3))
        looks.append(shown(after))
    assert looks[0] == looks[1]


def test_an_open_alarm_is_not_raised_again_where_another_is_answered(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    store = tmp_path / "s"
    first = eh.watch(store, weeks(14, jump=0.3), limits=LIMITS, **ROLES)
    numbers = {alarm["detector"]: alarm["id"] for alarm in first.alarms}
    assert set(numbers) == {CHANGE, LIMIT}
    eh.alarms(store, acknowledge=numbers[CHANGE], by="policy", why="meant so")
    after = eh.watch(store, weeks(12, first=14, jump=0.3))
    assert [a["id"] for a in after.alarms if a["detector"] == LIMIT] == [numbers[LIMIT]]
    # Once it is answered, too, a gap that stays outside is an alarm again.
    eh.alarms(store, acknowledge=numbers[LIMIT], by="policy", why="until the summer")
    later = eh.watch(store, weeks(2, first=26, jump=0.3))
    assert [a["by"] for a in later.alarms if a["detector"] == LIMIT] == ["policy", None]


def test_a_change_to_a_gap_that_may_be_none_is_said_as_one(
    tmp_path: Path, weeks: Weeks, quick: None
) -> None:
    # Ten weeks with a gap, then none.
    before = weeks(10, jump=0.25, at=0, n=600)
    data = pl.concat([before, weeks(8, first=10, at=99, n=600)])
    result = eh.watch(tmp_path / "s", data, measures=["selection_rate_gap"], **ROLES)
    assert re.match(
        r"Since week 12, the selection rate gap of group f against group m is \d+(\.\d)? points "
        r"lower than before \(\d.*\); what it is now, the data cannot tell from none\.",
        result.document["headline"],
    ), result.document["headline"]


KEY = StreamKey(
    lens="statistical", measure="selection_rate_gap", class_="1", attribute="g", group="a",
    reference="b",
)  # fmt: skip
WATCHED = Watched(
    measure="selection_rate_gap",
    limits=(Limit(measure="selection_rate_gap", low=-0.05, high=0.05),),
)


def stream(columns: int, *, jump: float) -> Stream:
    rng = np.random.default_rng(4)
    rate = np.where(np.arange(60) >= 41, 0.3 + jump, 0.3)
    size = np.full(60, 200)
    counts = np.stack([rng.binomial(size, rate), size, rng.binomial(size, 0.3), size])
    return Stream(
        key=KEY, watched=WATCHED, counts=counts[:, :columns].astype(float),
        places=tuple(range(columns)),
    )  # fmt: skip


@pytest.mark.parametrize(("jump", "horizon"), [(0.0, None), (0.2, None), (0.2, 44), (0.2, 500)])
def test_long_sequences_alarm_at_the_look_they_would_alone(
    jump: float, horizon: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long ones have rough lines that are drawn now and then and go on as they ended.
    for room, name, value in (
        (numbers, "MOST_LOOKS", 26), (verdicts, "MOST_LOOKS", 26),
        (numbers, "FEWER_SERIES", 1_000), (verdicts, "ROUGH_SERIES", 1_000),
    ):  # fmt: skip
        monkeypatch.setattr(room, name, value)
    settings = Settings(horizon=horizon, series=1_000)
    book = LineBook()

    def alarms(columns: int, since: int) -> dict[str, int]:
        found = verdicts.judge_stream(
            stream(columns, jump=jump), members=20, settings=settings, since=since, lines=book
        )
        return {alarm.detector: alarm.raised for alarm in found.alarms}

    one_by_one: dict[str, int] = {}
    for look in range(9, 51):
        one_by_one = alarms(look, look - 1) | one_by_one
    assert one_by_one == alarms(50, 0)
    assert (CHANGE in one_by_one) == (LIMIT in one_by_one) == bool(jump)


def test_a_rough_line_goes_on_where_nothing_may_be_spent() -> None:
    # Of 5,000 looks many may spend nothing: those after the last drawn have a height all the same.
    one = stream(60, jump=0.0)
    long = Stream(key=KEY, watched=WATCHED, counts=np.tile(one.counts, 2), places=tuple(range(120)))
    settings = Settings(horizon=5_000)
    held = numbers.numbers_of(long, settings)
    asked = LineQuestion(
        stream=long, numbers=held, start=0, looks=120, alpha=1e-4, horizon=5_000,
        settings=settings,
    )  # fmt: skip
    heights = LineBook().rough(asked)
    assert np.isinf(heights[8:117]).any()
    assert np.isfinite(heights[117:]).all()


def test_the_most_that_evidence_can_be_is_never_less() -> None:
    rng = np.random.default_rng(1)
    value, error = rng.normal(0, 0.1, 2_000), rng.uniform(0.001, 0.2, 2_000)
    ends = {"low": -0.03, "high": 0.05, "tau": 0.04}
    exact = log_evidence_outside(value, error, **ends)
    most = most_evidence_outside(value, error, **ends)
    np.testing.assert_array_less(exact, most + 1e-9 * np.abs(most))
    outside = (value > 0.05) | (value < -0.03)
    assert (most - exact)[outside].max() <= np.log(4)


def test_stores_sealed_as_before_are_read_and_sealed_anew(tmp_path: Path, weeks: Weeks) -> None:
    store = tmp_path / "s"
    eh.watch(store, weeks(2), **ROLES)
    with Store.open(store) as opened:
        old = opened._digest(2)
    held = sqlite3.connect(store / FILE)
    held.execute("UPDATE about SET value = ? WHERE name = 'seal'", [f'"{old}"'])
    held.execute("PRAGMA user_version = 2")
    held.commit()
    assert len(eh.watch(store, weeks(1, first=2)).document["periods"]) == 3
    assert held.execute("PRAGMA user_version").fetchone()[0] == 3
    held.execute("UPDATE series SET content = substr(content, 1, length(content) - 1) || x'00'")
    held.commit()
    with pytest.raises(DataError, match="is damaged: it is not as it was written"):
        eh.watch(store)
