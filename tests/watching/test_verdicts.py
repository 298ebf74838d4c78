"""Judging one sequence: detectors against the full recipe, rare events, what lenses say."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.findings.limits import Limit
from evenhand.simulate.weeks import moderation_weeks
from evenhand.stats.alarm_lines import change_lines
from evenhand.stats.sequential import between_upper, change_evidence, gap_so_far, limit_evidence
from evenhand.watching.numbers import Settings, numbers_of
from evenhand.watching.screen import StreamTask, judge_all
from evenhand.watching.streams import Stream, StreamKey, Watched
from evenhand.watching.verdicts import (
    CHANGE,
    LIMIT,
    SLACK,
    LineBook,
    LineQuestion,
    judge_stream,
    least_line,
    spent,
)

KEY = StreamKey(
    lens="statistical", measure="selection_rate_gap", class_="1", attribute="g", group="a",
    reference="b",
)  # fmt: skip
AGREED = (Limit(measure="selection_rate_gap", low=-0.05, high=0.05),)
QUICK = Settings(horizon=30, series=4_000)


def stream(counts: Any, *, kind: str = "rates", limits: Any = AGREED) -> Stream:
    table = np.asarray(counts, np.float64)
    watched = Watched(measure="selection_rate_gap", limits=limits)
    places = tuple(range(table.shape[1]))
    return Stream(key=KEY, watched=watched, counts=table, places=places, kind=kind)


def drawn(seed: int, *, jump: float = 0.0, weeks: int = 30, n: int = 300) -> Stream:
    rng = np.random.default_rng(seed)
    rate = np.where(np.arange(weeks) >= 18, 0.3 + jump, 0.3)
    size = np.full(weeks, n)
    return stream([rng.binomial(size, rate), size, rng.binomial(size, 0.3), size])


def asked(one: Stream, *, alpha: float) -> LineQuestion:
    numbers = numbers_of(one, QUICK)
    return LineQuestion(
        stream=one, numbers=numbers, start=0, looks=30, alpha=alpha, horizon=30, settings=QUICK
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("jump", [0.0, 0.12])
def test_what_is_skipped_changes_no_alarm(seed: int, jump: float) -> None:
    # The recipe in full: every line, at every look, against what the screens let through.
    one = drawn(seed, jump=jump)
    found = gap_so_far(*one.counts)
    evidence = change_evidence(found.gaps, found.spread, tau=0.05)
    lines = change_lines(*one.counts, tau=0.05, alpha=0.05, horizon=30, series=4_000)
    line = lines.at(between_upper(found.gaps, found.errors))
    looks = np.flatnonzero(evidence.total > line)[:1].tolist()
    alarms = [
        a for a in judge_stream(one, members=1, settings=QUICK).alarms if a.detector == CHANGE
    ]
    assert [alarm.raised for alarm in alarms] == looks
    outside = limit_evidence(found.gaps, found.spread, low=-0.05, high=0.05, tau=0.05).total
    first = next((i for i in range(8, 30) if outside[i] > np.log(30 / 0.05)), None)
    limits = [a for a in judge_stream(one, members=1, settings=QUICK).alarms if a.detector == LIMIT]
    assert [alarm.raised for alarm in limits] == ([] if first is None else [first])


def test_many_streams_are_judged_as_each_alone() -> None:
    streams = [drawn(seed, jump=0.2 * (seed == 2), weeks=22) for seed in range(6)]
    tasks = [StreamTask(stream=one, start=0, since=0, detectors=(CHANGE, LIMIT)) for one in streams]
    together = judge_all(tasks, QUICK, LineBook())
    for one, found in zip(streams, together):
        alone = judge_stream(one, members=6, settings=QUICK)
        np.testing.assert_allclose(found.numbers.value, alone.numbers.value)
        np.testing.assert_allclose(found.family_low, alone.family_low)
        assert found.alarms == alone.alarms
        assert found.verdict == alone.verdict
    assert [bool(found.alarms) for found in together] == [i == 2 for i in range(6)]


@pytest.mark.parametrize("jump", [0.0, 0.1, 0.15, 0.2])
def test_what_is_skipped_changes_no_alarm_among_many(jump: float) -> None:
    # A small share of α each: lines are drawn for a larger share and raised; see against them all.
    one, members = drawn(3, jump=jump), 1_000
    found = gap_so_far(*one.counts)
    evidence = change_evidence(found.gaps, found.spread, tau=0.05)
    lines = change_lines(*one.counts, tau=0.05, alpha=0.05, horizon=30, series=4_000)
    line = lines.at(between_upper(found.gaps, found.errors)) + np.log(members)
    looks = np.flatnonzero(evidence.total > line)[:1].tolist()
    alone = judge_stream(one, members=members, settings=QUICK, detectors=(CHANGE,))
    assert [alarm.raised for alarm in alone.alarms] == looks
    tasks = [StreamTask(stream=one, start=0, since=0, detectors=(CHANGE,))] * 4
    many = [*tasks, *[StreamTask(stream=drawn(5), start=0, since=0, detectors=())] * (members - 4)]
    together = judge_all(many, QUICK, LineBook())
    assert [alarm.raised for alarm in together[0].alarms] == looks


@pytest.mark.parametrize("n", [4, 30, 1_000])
@pytest.mark.parametrize("share", [0.05, 0.01])
def test_no_line_lies_below_the_least(n: int, share: float) -> None:
    # What lets most streams do without a line: it must lie below those that would be drawn.
    one = drawn(1, n=n)
    numbers = numbers_of(one, QUICK)
    onsets = change_evidence(numbers.gaps, numbers.spread, tau=numbers.tau)
    errors = np.where(np.isfinite(onsets.log_evidence), onsets.error, np.inf)[8:]
    looks = np.arange(9, 31)
    least = least_line(errors, numbers.tau, spent(looks, share, 30))
    heights = change_lines(
        *one.counts, tau=0.05, alpha=share, horizon=30, series=20_000, places=(0,)
    ).height[0, 8:]
    assert (heights > least - SLACK).all()


def test_lines_are_kept() -> None:
    kept: dict[str, bytes] = {}
    book = LineBook(kept.get)
    first = judge_stream(drawn(1, jump=0.2), members=1, settings=QUICK, lines=book)
    kept.update(book.new)
    again = LineBook(kept.get)
    assert judge_stream(drawn(1, jump=0.2), members=1, settings=QUICK, lines=again).alarms == (
        first.alarms
    )
    assert first.alarms
    assert again.new == {}


def test_a_smaller_share_raises_the_line_by_its_logarithm() -> None:
    one = drawn(1, jump=0.2)
    heights = [LineBook().line(asked(one, alpha=alpha), 0, 25)[20:] for alpha in (0.05, 0.0005)]
    np.testing.assert_allclose(heights[1] - heights[0], np.log(100))


def test_rare_events_are_judged_exactly() -> None:
    # 9 of 900 against 0 of 900: too few events for a normal limit, and ten points agreed on.
    weeks = 9
    size = np.full(weeks, 100)
    few = stream([np.ones(weeks), size, np.zeros(weeks), size])
    found = judge_stream(few, members=1, settings=QUICK)
    assert found.verdict == "cannot tell"
    assert found.provisional
    assert "events are rare" in found.method
    # 45 of 90 against 0 of 9,000: hardly any event among those who could be compared.
    clear = stream([np.full(weeks, 5), np.full(weeks, 10), np.zeros(weeks), np.full(weeks, 1000)])
    found = judge_stream(clear, members=1, settings=QUICK)
    assert not numbers_of(clear, QUICK).ready[-1]
    assert found.verdict == "outside"
    assert found.method == "exact evidence over all looks, since events are rare"


def test_pairs_that_begin_to_flip_are_found() -> None:
    rng = np.random.default_rng(5)
    n, weeks = np.full(30, 400), np.arange(30)
    gained = rng.binomial(n, np.where(weeks >= 18, 0.12, 0.02))
    lost = rng.binomial(n, 0.02)
    found = judge_stream(stream([gained, lost, n], kind="pairs"), members=1, settings=QUICK)
    change = next(a for a in found.alarms if a.detector == CHANGE)
    assert change.onset == 18
    assert change.low < 0.1 < change.high
    still = judge_stream(stream([lost, lost, n], kind="pairs"), members=1, settings=QUICK)
    assert still.alarms == ()
    assert still.verdict == "within"


def test_nothing_varies_between_periods_where_somebody_says_so() -> None:
    rng = np.random.default_rng(3)
    size = np.full(30, 2_000)
    noisy = np.clip(0.3 + 0.04 * rng.standard_normal(30), 0, 1)
    one = stream([rng.binomial(size, noisy), size, rng.binomial(size, 0.3), size])
    numbers = numbers_of(one, QUICK)
    plain = numbers_of(one, Settings(horizon=30, between="none"))
    assert (numbers.spread > plain.spread).all()
    assert plain.upper.max() == 0


def test_counterfactual_gaps_are_watched(tmp_path: Path, quick: None) -> None:
    rng = np.random.default_rng(1)
    n, weeks = 300, 12
    monday = date(2026, 1, 5)
    days = [monday + timedelta(days=7 * w + i % 7) for w in range(weeks) for i in range(n)]
    base = rng.random(weeks * n) < 0.3
    table = {
        "day": days,
        "g": rng.choice(["f", "m"], weeks * n),
        "decision@f": np.where(rng.random(weeks * n) < 0.08, True, base).astype(int),
        "decision@m": base.astype(int),
    }
    result = eh.watch(
        tmp_path / "s", pl.DataFrame(table), time="day", every="week", group="g",
        limits={"counterfactual_selection_rate_gap": 0.02},
    )  # fmt: skip
    (row,) = result.document["results"]
    assert (row["lens"], row["group"], row["reference"]) == ("counterfactual", "m", "f")
    assert row["n"] == n * weeks
    assert row["value"] == pytest.approx(-0.08 * 0.7, abs=0.01)
    assert result.verdict == "outside"


def test_implied_thresholds_are_watched(tmp_path: Path, quick: None) -> None:
    weeks = moderation_weeks(12, posts=900, changed=99)
    result = eh.watch(
        tmp_path / "s", weeks.frame, time="decided_at", every="week", truth="violates",
        score="score", threshold="cut", group="gender", limits={"implied_threshold": "0.2:0.7"},
    )  # fmt: skip
    rows = {row["group"]: row for row in result.document["results"]}
    assert set(rows) == {"female", "male", "nonbinary"}
    assert {row["measure"] for row in rows.values()} == {"implied_threshold"}
    for row in rows.values():
        assert 0.2 < row["low"] < row["value"] < row["high"] < 0.7
        assert row["verdict"] == "within"
    assert result.document["data"]["bandwidth"] > 0
    series = result.document["series"][0]
    assert len(series["gap"]) == 12
    again = eh.watch(tmp_path / "s")
    assert again.document["results"] == result.document["results"]


def test_cost_ratios_vary_as_their_logarithms(tmp_path: Path, quick: None) -> None:
    weeks = moderation_weeks(10, posts=900, changed=99)
    result = eh.watch(
        tmp_path / "s", weeks.frame, time="decided_at", every="week", truth="violates",
        score="score", threshold="cut", group="gender", limits={"cost_ratio": "0.5:4"},
    )  # fmt: skip
    for row in result.document["results"]:
        assert (row["limit_low"], row["limit_high"]) == pytest.approx((0.5, 4.0))
        below, above = row["value"] / row["low"], row["high"] / row["value"]
        assert below == pytest.approx(above, rel=1e-6)


def test_labelers_are_watched_over_all_periods(tmp_path: Path) -> None:
    from evenhand.simulate.labelers import LabelerGroup, simulate_labelers

    labels = simulate_labelers(
        {
            "a": LabelerGroup(prevalence=0.4, separation=1.8, criterion=0.9),
            "b": LabelerGroup(prevalence=0.4, separation=1.8, criterion=0.3),
        },
        labelers=12,
        items_each=180,
        seed=2,
    ).frame
    monday = date(2026, 1, 5)
    many = labels.height
    days = [monday + timedelta(days=(i * 63) // many) for i in range(many)]
    result = eh.watch(
        tmp_path / "s", labels.with_columns(day=pl.Series(days)), time="day", every="week",
        truth="truth", decision="decision", labeler="labeler", item="item", group="group",
        reference="a", limits={"criterion_gap": 0.2},
    )  # fmt: skip
    (row,) = [r for r in result.document["results"] if r["measure"] == "criterion_gap"]
    assert row["lens"] == "labelers"
    assert row["value"] == pytest.approx(-0.6, abs=0.15)
    assert row["verdict"] == "outside"
    # They recur from week to week: no detector looks.
    assert result.alarms == []
    with (tmp_path / "s" / "watch.sqlite").open("rb") as held:
        assert (
            str(labels["labeler"][0]).encode() not in held.read()
            or len(str(labels["labeler"][0])) < 4
        )
