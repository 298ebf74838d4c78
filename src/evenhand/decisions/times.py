"""When rows were decided: a column of times as days and periods, the same on every engine.

Everything is whole-number arithmetic on years, months, days, hours and minutes: engines differ in
what they know of calendars and zones, and none of them in that. A zone is what its offset is
between two changes of the clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw

from evenhand.decisions.labels import label
from evenhand.decisions.read import Frame
from evenhand.decisions.table import Decisions
from evenhand.errors import DataError, UsageError, nearest
from evenhand.speech import agree, plural

EVERY = ("day", "week", "month", "quarter", "year")
_FIRST, _EPOCH = date(1900, 1, 1), date(1970, 1, 1)
_MINUTES = 24 * 60
_STAMP = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK = r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?"
_OFFSET = r"[+-]([01]\d|2[0-3]):?[0-5]\d$"
_ZONED = rf"(Z$|\d{{2}}(\.\d+)?{_OFFSET})"
_TIME = rf"{_STAMP}({_CLOCK}(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)?))?$"
_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodSpan:
    """The rows of one period: its number, how many, and the local days of the first and last."""

    number: int
    rows: int
    first: date
    last: date


# Columns that a dated table has beside its own.
PERIOD, DAY = "evenhand:period", "evenhand:day"
# What is computed on the way; one step's columns are used several times in the next.
_STEP = "evenhand:step"


@lru_cache(maxsize=4096)
def period_start(every: str, number: int) -> date:
    """The first day of a period by its number; weeks start on Monday.

    Examples:
        >>> period_start("week", period_number("week", date(2026, 8, 2))).isoformat()
        '2026-07-27'
        >>> period_start("quarter", period_number("quarter", date(2026, 8, 2))).isoformat()
        '2026-07-01'
    """
    if every == "day":
        return _EPOCH + timedelta(days=number)
    if every == "week":
        return _EPOCH + timedelta(days=7 * number - 3)
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    year, month = divmod(number * months, 12)
    return date(year, month + 1, 1)


def period_number(every: str, day: date) -> int:
    """The number of the period that a day is in."""
    days = (day - _EPOCH).days
    if every == "day":
        return days
    if every == "week":
        return (days + 3) // 7
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    return (day.year * 12 + day.month - 1) // months


def check_every(every: str) -> str:
    """How long a period is, in the words that are known."""
    if every not in EVERY:
        raise UsageError(
            f"every={every!r} is not a period.{nearest(str(every), list(EVERY))} "
            f"Choose one of {', '.join(EVERY)}."
        )
    return every


def read_zone(tz: str | None) -> ZoneInfo | None:
    """A zone by its name."""
    if tz is None:
        return None
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"tz={tz!r} is not a time zone. Give one such as Europe/Berlin or America/Chicago."
        ) from None


def dated(
    decisions: Decisions, *, every: str, tz: str | None = None, latest: date
) -> tuple[Decisions, list[PeriodSpan], int]:
    """The rows with a time, with their period and local day; its spans; rows without a time.

    Stamps that say their zone, or that are UTC, need `tz`: a day is a local day. Times before
    1900 and after `latest` are refused.

    Examples:
        >>> table = {"when": ["2026-03-02T23:30:00Z", "2026-03-08T22:59:00Z", None]}
        >>> table |= {"d": [1, 0, 1], "g": ["f", "m", "m"]}
        >>> decisions = Decisions(table, decision="d", group="g", time="when")
        >>> _, spans, missing = dated(
        ...     decisions, every="week", tz="Europe/Berlin", latest=date(2026, 4, 1))
        >>> [(s.rows, s.first.isoformat(), s.last.isoformat()) for s in spans], missing
        ([(2, '2026-03-03', '2026-03-08')], 1)
    """
    column = decisions.roles.time
    if column is None:
        raise UsageError(
            "No time is named. Say which column holds when it was decided, such as "
            "time='decided_at' (--time)."
        )
    kind = decisions.schema[column]
    years = kind.is_numeric() and every == "year" and _all_whole(decisions, column)
    if years:
        year = nw.col(column).cast(nw.Int64)
        frame = _with_days(_steps(decisions.frame, y=year, m=year * 0 + 1, d=year * 0 + 1))
    elif kind == nw.Date:
        frame = _with_days(_from_parts(decisions.frame, nw.col(column)))
    elif isinstance(kind, nw.Datetime):
        frame = _from_stamps(decisions, column, kind.time_zone, tz)
    elif kind in (nw.String, nw.Categorical, nw.Enum):
        frame = _from_text(decisions, column, tz)
    else:
        hint = " For years alone choose every='year'." if kind.is_numeric() else ""
        raise DataError(
            f"time={column!r} holds {kind}, not times. Give dates, or stamps such as "
            f"2026-03-02T23:30:00Z.{hint}"
        )
    found = decisions.with_roles()
    found.frame = _with_number(frame, every)
    spans, missing = _spans(found, column, latest=latest, whole=years)
    if missing:
        found.frame = found.frame.filter(~nw.col(PERIOD).is_null())
    return found, spans, missing


def _all_whole(decisions: Decisions, column: str) -> bool:
    """Whether numbers have no fraction, as years have none; files of text may give them one."""
    number = nw.col(column).cast(nw.Float64)
    odd = (number != number.floor()).cast(nw.Int64).sum().alias("odd")
    return not decisions.collect(decisions.frame.select(odd))["odd"][0]


def _steps(frame: Frame, **columns: nw.Expr) -> Frame:
    """The frame with intermediate columns: an engine that writes queries must not nest them."""
    return frame.with_columns(*(e.alias(f"{_STEP}:{name}") for name, e in columns.items()))


def _step(name: str) -> nw.Expr:
    return nw.col(f"{_STEP}:{name}")


def _from_parts(frame: Frame, stamp: nw.Expr) -> Frame:
    return _steps(
        frame,
        y=stamp.dt.year().cast(nw.Int64),
        m=stamp.dt.month().cast(nw.Int64),
        d=stamp.dt.day().cast(nw.Int64),
    )


def _with_days(frame: Frame) -> Frame:
    """Days since 1970 of year, month and day (Hinnant's days_from_civil)."""
    y, m, d = (_step(name) for name in "ymd")
    frame = _steps(frame, early=(m <= 2).cast(nw.Int64))
    frame = _steps(frame, shifted=y - _step("early"))
    frame = _steps(frame, era=_step("shifted") // 400)
    frame = _steps(frame, of_era=_step("shifted") - _step("era") * 400)
    of_year = (153 * (m + 12 * _step("early") - 3) + 2) // 5 + d - 1
    years = _step("of_era") * 365 + _step("of_era") // 4 - _step("of_era") // 100
    return frame.with_columns((_step("era") * 146097 + years + of_year - 719468).alias(DAY))


def _with_civil(frame: Frame) -> Frame:
    """Year and month of days since 1970 (Hinnant's civil_from_days)."""
    frame = _steps(frame, shifted=nw.col(DAY) + 719468)
    frame = _steps(frame, era=_step("shifted") // 146097)
    frame = _steps(frame, doe=_step("shifted") - _step("era") * 146097)
    doe = _step("doe")
    frame = _steps(frame, yoe=(doe - doe // 1460 + doe // 36524 - doe // 146096) // 365)
    yoe = _step("yoe")
    frame = _steps(frame, doy=doe - (365 * yoe + yoe // 4 - yoe // 100))
    frame = _steps(frame, month=(5 * _step("doy") + 2) // 153)
    frame = _steps(frame, late=(_step("month") >= 10).cast(nw.Int64))
    return _steps(
        frame,
        y=yoe + _step("era") * 400 + _step("late"),
        m=_step("month") + 3 - 12 * _step("late"),
    )


def _with_number(frame: Frame, every: str) -> Frame:
    """The frame with the numbers of its periods, and without what was computed on the way."""
    months = _step("y") * 12 + _step("m") - 1
    number = {
        "day": nw.col(DAY),
        "week": (nw.col(DAY) + 3) // 7,
        "month": months,
        "quarter": months // 3,
        "year": _step("y"),
    }[every]
    numbered = frame.with_columns(number.alias(PERIOD))
    names = numbered.collect_schema().names()
    return numbered.drop(*(name for name in names if name.startswith(_STEP)))


def _from_stamps(decisions: Decisions, column: str, zone: str | None, tz: str | None) -> Frame:
    """Stamps of an engine's own type: local where they say no zone and none was given."""
    stamp = nw.col(column)
    if zone is None and tz is None:
        return _with_days(_from_parts(decisions.frame, stamp))
    if zone is not None:
        _need_zone(column, zone, tz)
        if zone not in _UTC:
            if decisions.engine == "duckdb":
                raise DataError(
                    f"time={column!r} comes in the zone of the session, {zone}. "
                    "Set it to UTC first: SET TimeZone = 'UTC'."
                )
            stamp = stamp.dt.convert_time_zone("UTC")
    frame = _with_days(_from_parts(decisions.frame, stamp))
    clock = stamp.dt.hour().cast(nw.Int64) * 60 + stamp.dt.minute().cast(nw.Int64)
    return _local(decisions, _steps(frame, t=nw.col(DAY) * _MINUTES + clock), tz)


def _from_text(decisions: Decisions, column: str, tz: str | None) -> Frame:
    """Stamps written as text, in the forms of ISO 8601 that tables have."""
    text = nw.col(column).cast(nw.String)
    right, zoned = text.str.contains(_TIME), text.str.contains(_ZONED)
    plain = right & (text.str.len_chars() > 10) & ~zoned
    found = decisions.collect(
        decisions.frame.select(
            (~right).cast(nw.Int64).sum().alias("wrong"),
            zoned.cast(nw.Int64).sum().alias("zoned"),
            plain.cast(nw.Int64).sum().alias("plain"),
        )
    )
    counts = {name: int(values[0] or 0) for name, values in found.items()}
    if counts["wrong"]:
        example = _example(decisions, column, ~right)
        raise DataError(
            f"time={column!r} has {plural(counts['wrong'], 'value')} that "
            f"{agree(counts['wrong'], 'is', 'are')} no time, such as {example!r}. "
            "Write times as 2026-03-02 or 2026-03-02T23:30:00Z."
        )
    if counts["zoned"] and counts["plain"]:
        raise DataError(
            f"time={column!r} mixes times with a zone ({_example(decisions, column, zoned)!r}) "
            f"and without ({_example(decisions, column, plain)!r}), so nobody can tell "
            "which day the latter belong to. Write all of them in one way."
        )
    if counts["zoned"]:
        _need_zone(column, "UTC", tz)
    # A day alone is a local day; padding it keeps every cast below on digits.
    known = nw.concat_str(text, nw.lit("T00:00"))
    frame = _steps(
        decisions.frame,
        y=known.str.slice(0, 4).cast(nw.Int64),
        m=known.str.slice(5, 2).cast(nw.Int64),
        d=known.str.slice(8, 2).cast(nw.Int64),
    )
    _refuse_no_day(decisions, frame, column)
    frame = _with_days(frame)
    if not counts["zoned"] and (tz is None or not counts["plain"]):
        return frame
    clock = known.str.slice(11, 2).cast(nw.Int64) * 60 + known.str.slice(14, 2).cast(nw.Int64)
    minutes = nw.col(DAY) * _MINUTES + clock
    if counts["zoned"]:
        offset = nw.when(text.str.contains(rf"\d{{2}}(\.\d+)?{_OFFSET}")).then(text)
        digits = offset.str.replace_all(":", "", literal=True).str.slice(-5)
        east = nw.when(digits.str.contains(r"^\+")).then(nw.lit(1)).otherwise(nw.lit(-1))
        away = digits.str.slice(1, 2).cast(nw.Int64) * 60 + digits.str.slice(3, 2).cast(nw.Int64)
        minutes = minutes - (away * east).fill_null(0)
    return _local(decisions, _steps(frame, t=minutes), tz)


def _refuse_no_day(decisions: Decisions, frame: Frame, column: str) -> None:
    """Refuse days that no month has, such as 30 February."""
    y, m, d = (_step(name) for name in "ymd")
    leap = (y % 4 == 0) & ((y % 100 != 0) | (y % 400 == 0))
    short = (d == 31) & m.is_in([4, 6, 9, 11])
    february = (m == 2) & ((d > 29) | ((d == 29) & ~leap))
    wrong = frame.filter(short | february).select(nw.col(column))
    found = decisions.collect(wrong.head(1))[column]
    if found:
        raise DataError(
            f"time={column!r} has days that no month has, such as {label(found[0])!r}. "
            "Correct them, or leave them empty."
        )


def _need_zone(column: str, zone: str, tz: str | None) -> None:
    if tz is None:
        raise UsageError(
            f"time={column!r} holds times of a zone ({zone}), and a day begins at midnight where "
            "it was decided. Say where, such as tz='Europe/Berlin' (--tz); UTC is a zone too."
        )


def _local(decisions: Decisions, frame: Frame, tz: str | None) -> Frame:
    """The local calendar of minutes since 1970 in UTC."""
    zone, minutes = read_zone(tz), _step("t")
    ends = decisions.collect(frame.select(minutes.min().alias("low"), minutes.max().alias("high")))
    low, high = ends["low"][0], ends["high"][0]
    local: Any = minutes
    if zone is not None and low is not None:
        first, changes = _offsets(zone, int(low), int(high))
        local = minutes + first
        for at, step in changes:
            local = local + (minutes >= at).cast(nw.Int64) * step
    return _with_civil(frame.with_columns((local // _MINUTES).alias(DAY)))


def _offsets(zone: ZoneInfo, low: int, high: int) -> tuple[int, Sequence[tuple[int, int]]]:
    """Minutes from UTC at the start, and from when on by how many minutes they change.

    Examples:
        >>> start, changes = _offsets(ZoneInfo("Europe/Berlin"), 29_450_880, 29_979_360)
        >>> start, [step for _, step in changes]
        (60, [60, -60])
    """

    def offset(minute: int) -> int:
        at = datetime.fromtimestamp(0, UTC) + timedelta(minutes=minute)
        away = at.astimezone(zone).utcoffset()
        assert away is not None
        return int(away.total_seconds() // 60)

    changes: list[tuple[int, int]] = []
    start, before = low, offset(low)
    while start < high:
        end = min(start + 7 * _MINUTES, high)
        if offset(end) != before:
            left, right = start, end
            while right - left > 1:
                middle = (left + right) // 2
                left, right = (middle, right) if offset(middle) == before else (left, middle)
            changes.append((right, offset(right) - before))
            before, end = offset(right), right
        start = end
    return offset(low), changes


def _spans(
    decisions: Decisions, column: str, *, latest: date, whole: bool
) -> tuple[list[PeriodSpan], int]:
    """The rows of each period, checked; of years alone every row stands for all its days."""
    day = nw.col(DAY)
    found = decisions.collect(
        decisions.frame.select(PERIOD, DAY)
        .group_by(PERIOD)
        .agg(nw.len().alias("rows"), day.min().alias("low"), day.max().alias("high"))
    )
    spans, missing = [], 0
    for number, rows, low, high in zip(*(found[c] for c in (PERIOD, "rows", "low", "high"))):
        if number is None:
            missing += int(rows)
            continue
        for which, where, wrong in (
            (day < _days(_FIRST), f"before {_FIRST.year}", low < _days(_FIRST)),
            (day > _days(latest), f"after {latest.isoformat()}", high > _days(latest)),
        ):
            if wrong:
                raise _out_of_time(decisions, column, which, where)
        first, last = (_EPOCH + timedelta(days=int(at)) for at in (low, high))
        if whole:
            last = date(first.year, 12, 31)
        spans.append(PeriodSpan(number=int(number), rows=int(rows), first=first, last=last))
    if not spans:
        raise DataError(
            f"time={column!r} has no value in any row of '{decisions.source}'. "
            "Name the column that says when it was decided."
        )
    return sorted(spans, key=lambda span: span.number), missing


def _days(day: date) -> int:
    return (day - _EPOCH).days


def _out_of_time(decisions: Decisions, column: str, which: nw.Expr, where: str) -> DataError:
    rows = int(decisions.collect(decisions.frame.filter(which).select(nw.len().alias("n")))["n"][0])
    return DataError(
        f"time={column!r} has {plural(rows, 'row')} {where}, such as "
        f"{_example(decisions, column, which)!r}. Correct them, or leave them empty."
    )


def _example(decisions: Decisions, column: str, which: nw.Expr) -> str:
    found = decisions.collect(decisions.frame.filter(which).select(nw.col(column)).head(1))
    return str(label(found[column][0]))


def today() -> date:
    """The day it is where the clock is furthest ahead: what lies beyond it is in the future."""
    return datetime.now(timezone(timedelta(hours=14))).date()
