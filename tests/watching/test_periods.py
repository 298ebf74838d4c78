"""From a column of times to periods: zones, gaps, days that are missing, and what is refused."""

import random
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.tallies.by_period import tally_periods
from evenhand.decisions.tallies.collect import group_needs
from evenhand.decisions.times import EVERY, dated, period_number, period_start
from evenhand.errors import DataError, UsageError
from evenhand.watching.periods import (
    Period,
    check_apart,
    period_of_file,
    read_day,
    read_duration,
    read_period,
    states,
)

LATEST = date(2027, 1, 1)


def decisions(times: list[Any], *, engine: str = "polars", **roles: Any) -> eh.Decisions:
    many = len(times)
    frame = pl.DataFrame(
        {"t": times, "d": [1] * many, "g": ["a", "b"] * (many // 2) + ["a"] * (many % 2)}
    )
    data: Any = frame
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        data = duckdb.sql("SELECT * FROM frame")
    return eh.Decisions(data, decision="d", group="g", time="t", **roles)


def stamps(many: int = 200) -> list[datetime]:
    draw = random.Random(4)
    start = datetime(2023, 12, 20, tzinfo=UTC)
    return [start + timedelta(minutes=draw.randrange(2 * 365 * 1440)) for _ in range(many)]


FORMS = {
    "zoned type": lambda t: t,
    "plain type": lambda t: t.replace(tzinfo=None),
    "UTC text": lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "offset text": lambda t: t.astimezone(timezone(timedelta(hours=-3, minutes=-30))).isoformat(),
    "plain text": lambda t: t.strftime("%Y-%m-%d %H:%M"),
}


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("every", EVERY)
def test_every_form_gives_the_local_periods(form: str, every: str, engine: str) -> None:
    # Chicago changes its clocks twice a year; Python's own zone is the reference.
    zone, times = ZoneInfo("America/Chicago"), stamps()
    wanted: dict[int, list[Any]] = {}
    for time in times:
        day = time.astimezone(zone).date()
        held = wanted.setdefault(period_number(every, day), [0, day, day])
        held[:] = [held[0] + 1, min(held[1], day), max(held[2], day)]
    table = decisions([FORMS[form](t) for t in times], engine=engine)
    _, spans, missing = dated(table, every=every, tz="America/Chicago", latest=LATEST)
    assert {s.number: [s.rows, s.first, s.last] for s in spans} == wanted
    assert missing == 0


@pytest.mark.parametrize("every", EVERY)
def test_periods_follow_each_other_without_a_day_between(every: str) -> None:
    for number in range(
        period_number(every, date(1999, 12, 1)), period_number(every, date(2001, 3, 1))
    ):
        period = Period(every=every, number=number)
        assert period_number(every, period.start) == number == period_number(every, period.end)
        assert period_start(every, number + 1) == period.end + timedelta(days=1)
        assert read_period(period.name, every=every) == period


def test_weeks_start_on_monday() -> None:
    assert Period(every="week", number=period_number("week", date(2026, 8, 2))).start.weekday() == 0


def test_dates_and_years_need_no_zone() -> None:
    days = decisions([date(2026, 3, 1), date(2026, 3, 2), None])
    found, spans, missing = dated(days, every="week", latest=LATEST)
    assert [(s.rows, s.first) for s in spans] == [(1, date(2026, 3, 1)), (1, date(2026, 3, 2))]
    assert missing == 1
    assert found.row_count == 2
    for years in ([1998, 1997, 1997], [1998.0, 1997.0, 1997.0]):
        _, spans, _ = dated(decisions(years), every="year", latest=LATEST)
        # A year alone stands for all its days, or the last year would never be whole.
        assert [(s.number, s.rows, s.last) for s in spans] == [
            (1997, 2, date(1997, 12, 31)),
            (1998, 1, date(1998, 12, 31)),
        ]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_each_period_has_the_tally_set_of_its_rows_alone(engine: str) -> None:
    times = [t.replace(tzinfo=None) for t in stamps(300)]
    table = decisions(times, engine=engine)
    sets, _ = tally_periods(table, group_needs("counts", table.roles), every="month", latest=LATEST)
    assert sum(tallies.rows for _, tallies in sets) == 300
    for span, tallies in sets:
        mine = [t for t in times if period_number("month", t.date()) == span.number]
        rows = [i for i, t in enumerate(times) if t in set(mine)]
        frame = pl.DataFrame({"d": [1] * len(rows), "g": [("a", "b")[i % 2] for i in rows]})
        alone = eh.tally(frame, decision="d", group="g", lenses=["statistical"])
        assert tallies.tables["counts/g"].fingerprint() == alone.tables["counts/g"].fingerprint()


REFUSED = [
    (["2026-13-01"], {}, "1 value that is no time, such as '2026-13-01'. Write times as 2026-03"),
    (["soon", "2026-01-01"], {}, "1 value that is no time, such as 'soon'."),
    (["1776-07-04", "2026-01-01"], {}, "1 row before 1900, such as '1776-07-04'. Correct them, "),
    (["2026-01-01", "2126-01-01"], {}, "1 row after 2027-01-01, such as '2126-01-01'."),
    (
        ["2026-01-01T10:00:00Z", "2026-01-01 10:00:00"],
        {"tz": "UTC"},
        "time='t' mixes times with a zone ('2026-01-01T10:00:00Z') and without ('2026-01-01 10:",
    ),
    ([None, None], {}, "no value in any row of 'polars table'."),
    ([2026, 2026], {}, "time='t' holds Int64, not times. Give dates, or stamps such as 2026-03-02"),
    ([0.5, 1.5], {}, "time='t' holds Float64, not times."),
]  # fmt: skip


@pytest.mark.parametrize(("times", "more", "words"), REFUSED, ids=lambda case: str(case)[:40])
def test_times_that_cannot_be_used(times: list[Any], more: dict[str, Any], words: str) -> None:
    column = pl.Series(times, dtype=pl.String) if times[0] is None else times
    frame = pl.DataFrame({"t": column, "d": [1] * len(times), "g": ["a"] * len(times)})
    table = eh.Decisions(frame, decision="d", group="g", time="t")
    with pytest.raises(DataError) as refusal:
        dated(table, every="week", latest=LATEST, **more)
    assert words in str(refusal.value)


def test_what_has_to_be_said() -> None:
    with pytest.raises(UsageError, match="Say where, such as tz='Europe/Berlin'"):
        dated(decisions(["2026-01-01T10:00:00Z"] * 2), every="week", latest=LATEST)
    with pytest.raises(UsageError, match=r"tz='Mars/Olympus' is not a time zone\."):
        dated(
            decisions(["2026-01-01T10:00:00Z"] * 2), every="week", tz="Mars/Olympus", latest=LATEST
        )
    with pytest.raises(UsageError, match="No time is named"):
        dated(
            eh.Decisions({"d": [1], "g": ["a"]}, decision="d", group="g"),
            every="week",
            latest=LATEST,
        )
    with pytest.raises(UsageError, match=r"mature='soon' is not a duration\."):
        read_duration("soon")
    with pytest.raises(UsageError, match=r"as_of='x' is not a day\. Write it as 2026-03-29\."):
        read_day("x", what="as_of")
    with pytest.raises(UsageError, match=r"'week\.tallies' does not say which week it is of"):
        period_of_file("week.tallies", every="week")
    with pytest.raises(UsageError, match=r"Two sets are given for 2026-W31\."):
        check_apart([Period(every="week", number=2952)] * 2)


def test_an_unfinished_end_is_shown_and_not_judged() -> None:
    weeks = [Period(every="week", number=2950 + i) for i in range(3)]
    ends = {"first": weeks[0].start, "last": weeks[2].start}
    assert [s.judged for s in states(weeks, **ends)] == [True, True, False]
    assert [s.judged for s in states(weeks, **ends, as_of=weeks[2].end)] == [True] * 3
    assert [s.why for s in states(weeks, **ends, as_of=weeks[2].end, mature=8)] == [
        None,
        "not mature",
        "not mature",
    ]
