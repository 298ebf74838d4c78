"""Periods: disjoint, keyed by when it was decided, judged once they are whole and mature."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from evenhand.decisions.times import period_number, period_start
from evenhand.errors import DataError, UsageError

_DAYS = {"d": 1, "w": 7, "m": 30, "q": 91, "y": 365}
# Where the name of a tally set says its period.
_NAMED = re.compile(r"(\d{4})(?:-W(\d\d)|-Q([1-4])|-(\d\d)(?:-(\d\d))?)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A day, week, month, quarter or year, by its number.

    Examples:
        >>> week = Period(every="week", number=period_number("week", date(2026, 7, 29)))
        >>> week.name, week.start.isoformat(), week.end.isoformat()
        ('2026-W31', '2026-07-27', '2026-08-02')
        >>> week.spoken, week.dated
        ('week 31', 'the week of 27 July 2026')
    """

    every: str
    number: int

    @property
    def start(self) -> date:
        """Its first day."""
        return period_start(self.every, self.number)

    @property
    def end(self) -> date:
        """Its last day."""
        return period_start(self.every, self.number + 1) - timedelta(days=1)

    @property
    def name(self) -> str:
        """Its name in results, which sorts as time goes."""
        start = self.start
        if self.every == "week":
            year, week, _ = start.isocalendar()
            return f"{year}-W{week:02d}"
        if self.every == "quarter":
            return f"{start.year}-Q{(start.month + 2) // 3}"
        return start.isoformat()[: {"day": 10, "month": 7, "year": 4}[self.every]]

    @property
    def spoken(self) -> str:
        """Its name in a sentence that says elsewhere which year it is."""
        start = self.start
        if self.every == "week":
            return f"week {start.isocalendar()[1]}"
        if self.every == "quarter":
            return f"quarter {(start.month + 2) // 3} of {start.year}"
        if self.every == "month":
            return f"{start:%B} {start.year}"
        return f"{start.day} {start:%B} {start.year}" if self.every == "day" else str(start.year)

    @property
    def dated(self) -> str:
        """Its name with its date."""
        if self.every == "week":
            return f"the week of {self.start.day} {self.start:%B} {self.start.year}"
        return self.spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Whether a period is judged, and if not why."""

    whole: bool
    mature: bool

    @property
    def judged(self) -> bool:
        """Whether its numbers count for verdicts and alarms."""
        return self.whole and self.mature

    @property
    def why(self) -> str | None:
        """Why it is shown and not judged."""
        if not self.whole:
            return "unfinished"
        return None if self.mature else "not mature"


def states(
    periods: Sequence[Period],
    *,
    first: date,
    last: date,
    mature: int = 0,
    as_of: date | None = None,
) -> list[State]:
    """Which periods are whole and mature, given the first and last local day that has rows.

    Labels arrive late: a period is mature so many days after its last one. `as_of` says to which
    day the data reach where rows alone do not show it.

    Examples:
        >>> weeks = [Period(every="week", number=n) for n in (2960, 2961, 2962)]
        >>> weeks[0].start.isoformat(), weeks[2].end.isoformat()
        ('2026-09-21', '2026-10-11')
        >>> found = states(weeks, first=date(2026, 9, 22), last=date(2026, 10, 9))
        >>> [state.why for state in found]
        ['unfinished', None, 'unfinished']
        >>> found = states(weeks, first=date(2026, 9, 21), last=date(2026, 10, 9),
        ...                as_of=date(2026, 10, 12), mature=7)
        >>> [state.why for state in found]
        [None, None, 'not mature']
    """
    until = max(last, as_of) if as_of else last
    return [
        State(
            whole=first <= period.start and until >= period.end,
            mature=until >= period.end + timedelta(days=mature),
        )
        for period in periods
    ]


def read_duration(text: str | int | None) -> int:
    """How long something takes, in days: `4w`, `10d`, `2m`.

    Examples:
        >>> read_duration("4w"), read_duration("10d"), read_duration(None)
        (28, 10, 0)
    """
    if text is None:
        return 0
    found = re.fullmatch(r"(\d{1,4})\s*([dwmqy])", str(text).strip())
    if found is None:
        raise UsageError(
            f"mature={text!r} is not a duration. Write days, weeks or months, such as 10d, 4w "
            "or 2m."
        )
    return int(found[1]) * _DAYS[found[2]]


def read_day(text: str | date | None, *, what: str) -> date | None:
    """A day as it is given: a date, or its text."""
    if text is None or isinstance(text, date):
        return text
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        raise UsageError(f"{what}={text!r} is not a day. Write it as 2026-03-29.") from None


def read_period(text: str | date, *, every: str) -> Period | None:
    """The period that a name or a day in it says; None where it says none.

    Examples:
        >>> read_period("comments-2026-W31", every="week").start.isoformat()
        '2026-07-27'
        >>> read_period("2026-07", every="month").name, read_period("July", every="month")
        ('2026-07', None)
    """
    if isinstance(text, date):
        return Period(every=every, number=period_number(every, text))
    found = _NAMED.search(str(text))
    if found is None:
        return None
    year, week, quarter, month, day = (int(part) if part else None for part in found.groups())
    assert year is not None
    precise = (
        "week" if week else "quarter" if quarter else "day" if day else "month" if month else "year"
    )
    if precise not in {every, "day"}:
        return None
    try:
        start = (
            date.fromisocalendar(year, week, 1)
            if week
            else date(year, month or 3 * (quarter or 1) - 2, day or 1)
        )
    except ValueError:
        return None
    return Period(every=every, number=period_number(every, start))


def period_of_file(path: str | Path, *, every: str) -> Period:
    """The period that the name of a tally set ends in."""
    found = read_period(Path(path).stem, every=every)
    if found is None:
        example = Period(every=every, number=period_number(every, date(2026, 7, 27))).name
        raise UsageError(
            f"'{path}' does not say which {every} it is of. Name it so that it ends in it, such "
            f"as removals-{example}.tallies, or say it with --period {example}."
        )
    return found


def check_apart(periods: Iterable[Period]) -> None:
    """Refuse two sets of one period: what is given for a period is the whole of it."""
    seen: set[int] = set()
    for period in periods:
        if period.number in seen:
            raise UsageError(
                f"Two sets are given for {period.name}. What is given for a period is the whole "
                "of it: merge them first, or name one."
            )
        seen.add(period.number)


def check_repeats(cluster: str | None, *, made: object = None) -> None:
    """Refuse a cluster; `made` is the store or the tally set that was made with it.

    Examples:
        >>> check_repeats("person")
        Traceback (most recent call last):
        evenhand.errors.UsageError: cluster='person': repeats of the same people cannot be \
allowed for yet in watch. Leave the role out only if rows are independent, or audit each period \
with --cluster.
    """
    if not cluster:
        return
    why = "repeats of the same people cannot be allowed for yet in watch"
    if made is None:
        raise UsageError(
            f"cluster={cluster!r}: {why}. Leave the role out only if rows are independent, or "
            "audit each period with --cluster."
        )
    raise DataError(
        f"'{made}' was made with cluster={cluster!r}: {why}. Make it anew without the role only "
        "if rows are independent, or audit each period with --cluster."
    )
