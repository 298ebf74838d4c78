"""Judging a sequence: the gap so far, whether it changed and since when, whether it is outside now.

Everything holds over all looks together. A line that decides whether the evidence of a change is
enough is drawn only where the evidence comes near any such line, and then kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.findings.limits import CANNOT_TELL, NOT_ASSESSED, OUTSIDE, WITHIN
from evenhand.stats.alarm_lines import NOISE, OPEN_HORIZON, change_lines, normal_lines
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.sequential import (
    BURN_IN,
    Onsets,
    betting_evidence,
    change_evidence,
    discounted,
    half_width,
    limit_evidence,
    two_rates_evidence,
)
from evenhand.watching.numbers import MOST_LOOKS, NONE, Numbers, Settings, numbers_of
from evenhand.watching.streams import Stream

CHANGE, LIMIT = "change", "limit"
# A line from null series needs this many of them above it; below that share it is raised by the
# logarithm of what is missing, which is enough: the evidence exceeds c at most once in c.
FEWEST_ABOVE = 200
ROUGH_SERIES, ROUGH_EVERY = 4_000, 13
# How lines are drawn: those that stores keep from before are drawn anew where this changes.
DRAWN_AS = 2
# Looks after the first that comes near a line whose lines are drawn with it.
_AHEAD = 4
# How far below the least that a line can be evidence must lie for it not to be drawn.
SLACK = 0.5
# The share of the evidence that the onsets named together have.
SURE = 0.9
_GAPS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """What a detector found at a look: columns count from the start of the stream.

    `onset_low` and `onset_high` are the first and last of the onsets that have nine tenths of the
    evidence, `sure` the share of the likeliest. `size` is the change, or the gap since the onset
    for the detector of limits; `before` and `after` the gap on both sides of it.
    """

    detector: str
    raised: int
    onset: int
    onset_low: int
    onset_high: int
    sure: float
    size: float
    low: float
    high: float
    before: float | None
    after: float
    after_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A stream with its numbers, its verdict at the last look, and the alarms that it raised.

    `alpha` is how often anything may be claimed falsely of all streams together, `members` how
    many they are.
    """

    stream: Stream
    numbers: Numbers
    alpha: float
    members: int
    verdict: str
    method: str
    provisional: bool
    alarms: tuple[Alarm, ...] = field(default_factory=tuple)

    @property
    def family_low(self) -> FloatArray:
        """Lower end of the sequence at every look, over all streams together."""
        return self.numbers.value - self._half_width()

    @property
    def family_high(self) -> FloatArray:
        """Upper end of the sequence at every look, over all streams together."""
        return self.numbers.value + self._half_width()

    def _half_width(self) -> FloatArray:
        alpha = self.alpha / self.members
        return half_width(self.numbers.error, tau=self.numbers.tau, alpha=alpha)


def judge_stream(
    stream: Stream,
    *,
    members: int,
    settings: Settings,
    start: int = 0,
    since: int = 0,
    detectors: Sequence[str] = (CHANGE, LIMIT),
    lines: "LineBook | None" = None,
    numbers: Numbers | None = None,
) -> Judged:
    """A stream judged at its last look, and the alarms of its looks from column `since` on.

    `members` streams share α. Detectors look at the columns from `start` on, where an alarm that
    was answered let them begin again.
    """
    numbers = numbers_of(stream, settings) if numbers is None else numbers
    alpha = settings.alpha / members
    family = float(half_width(numbers.error[-1], tau=numbers.tau, alpha=alpha))
    verdict, method, provisional = _verdict(stream, numbers, family, members, settings)
    alarms = []
    if stream.watched.detected:
        book = lines if lines is not None else LineBook()
        for detector in detectors:
            if detector == CHANGE or stream.band is not None:
                alarm = _first_alarm(
                    detector, stream, numbers, members, settings, (start, since), book
                )
                alarms += [alarm] if alarm is not None else []
    return Judged(
        stream=stream,
        numbers=numbers,
        alpha=settings.alpha,
        members=members,
        verdict=verdict,
        method=method,
        provisional=provisional,
        alarms=tuple(alarms),
    )


def _verdict(
    stream: Stream, numbers: Numbers, half: float, members: int, settings: Settings
) -> tuple[str, str, bool]:
    """The verdict on the average gap so far, how it came about, and whether it is provisional."""
    method = "confidence sequence over all looks (normal mixture)"
    band, looks = stream.band, max(numbers.value.size, stream.looks)
    provisional = not numbers.ready[-1]
    if band is None:
        return NOT_ASSESSED, method, provisional
    low, high = band
    if provisional:
        counted = stream.kind in ("rates", "pairs")
        if counted and looks >= BURN_IN and _exactly_outside(stream, band, members, settings):
            return OUTSIDE, "exact evidence over all looks, since events are rare", False
        why = f"{looks} of {BURN_IN} periods" if looks < BURN_IN else "events are rare"
        return CANNOT_TELL, f"{method}; provisional: {why}", True
    value = numbers.value[-1]
    if value - half > high or value + half < low:
        return OUTSIDE, method, False
    if stream.stopped:
        return CANNOT_TELL, f"{method}; not judged since the words changed", False
    inside = value - half >= low and value + half <= high
    return (WITHIN if inside else CANNOT_TELL), method, False


def _exactly_outside(
    stream: Stream, band: tuple[float, float], members: int, settings: Settings
) -> bool:
    """Whether exact evidence rules out every gap within the band."""
    needed = log(members / settings.alpha)
    low, high = (min(max(end, -0.99), 0.99) for end in band)
    for gap in np.linspace(low, high, _GAPS):
        if stream.paired:
            gained, lost, n = stream.counts.sum(axis=1)
            found = float(betting_evidence(gained, lost, n, gap=float(gap)))
        else:
            found = float(two_rates_evidence(*stream.counts, gap=float(gap))[-1])
        if found < needed:
            return False
    return True


def _first_alarm(
    detector: str,
    stream: Stream,
    numbers: Numbers,
    members: int,
    settings: Settings,
    looks: tuple[int, int],
    book: "LineBook",
) -> Alarm | None:
    """The first alarm of a detector at the looks that are new."""
    start, since = looks
    for span in settings.spans(max(since - start, BURN_IN), numbers.gaps.size - start):
        alarm = _alarm_within(detector, stream, numbers, members, settings, start, span, book)
        if alarm is not None:
            return alarm
    return None


def _alarm_within(
    detector: str,
    stream: Stream,
    numbers: Numbers,
    members: int,
    settings: Settings,
    start: int,
    span: tuple[int, int],
    book: "LineBook",
) -> Alarm | None:
    """The first alarm of a detector at looks that one plan holds for."""
    first, end = span
    gaps, spread = numbers.gaps[start : start + end], numbers.spread[start : start + end]
    alpha, horizon = settings.alpha / members, settings.planned(end)
    if detector == LIMIT:
        assert stream.band is not None
        low, high = stream.band
        onsets = limit_evidence(gaps, spread, low=low, high=high, tau=numbers.tau, since=first)
        evidence = onsets.total if horizon else discounted(onsets)
        beyond = np.flatnonzero(evidence > log((horizon or 1) / alpha))
    else:
        onsets = change_evidence(gaps, spread, tau=numbers.tau, since=first)
        evidence = onsets.total
        asked = LineQuestion(
            stream=stream, numbers=numbers, start=start, looks=end, alpha=alpha, horizon=horizon,
            settings=settings,
        )  # fmt: skip
        errors = np.where(np.isfinite(onsets.log_evidence), onsets.error, inf)
        near = evidence > asked.least(errors, np.arange(first + 1, end + 1)) - SLACK
        if not near.any():
            return None
        near &= evidence > book.rough(asked)[first:] - SLACK
        beyond = _crossings(evidence, near, first, asked, book)
    if not beyond.size:
        return None
    return describe_alarm(detector, onsets, gaps, spread, first + int(beyond[0]), start, settings)


def _crossings(
    evidence: FloatArray,
    near: NDArray[np.bool_],
    first: int,
    asked: "LineQuestion",
    book: "LineBook",
) -> NDArray[np.intp]:
    """Where the evidence lies above every line that holds there, of the looks that come near one.

    The earliest are tried first: where they end in an alarm, nobody needs the lines of the rest.
    """
    places = np.flatnonzero(near)
    short = first + places < MOST_LOOKS
    for looks in (places[short], places[~short]):
        early = looks[looks <= looks[0] + _AHEAD] if looks.size else looks
        for part in (early, looks):
            left = _above(evidence, part, first, asked, book)
            if left.size:
                return left
    return places[:0]


def _above(
    evidence: FloatArray,
    looks: NDArray[np.intp],
    first: int,
    asked: "LineQuestion",
    book: "LineBook",
) -> NDArray[np.intp]:
    """Those of the looks at which the evidence lies above every line that holds there.

    The line for the most noise comes first: it is the highest as a rule, and a look that stays
    below one line needs no other.
    """
    if not looks.size:
        return looks
    end = int(first + looks[-1] + 1)
    most, left = asked.noise_places(end), looks
    for place in range(int(most[first + looks].max()), -1, -1):
        holds = most[first + left] >= place
        if holds.any():
            heights = book.line(asked, place, end)[first + left]
            left = left[~holds | (evidence[left] > heights)]
    return left


def describe_alarm(
    detector: str,
    onsets: Onsets,
    gaps: FloatArray,
    spread: FloatArray,
    look: int,
    start: int,
    settings: Settings,
) -> Alarm:
    """The onset of an alarm, how sure its date is, and its size, as seen at a look."""
    onset, sure = onsets.likeliest(look)
    row = onsets.log_evidence[look - onsets.since]
    share = np.exp(row - onsets.total[look - onsets.since])
    order = np.argsort(-share)
    named = order[: int(np.searchsorted(np.cumsum(share[order]), SURE)) + 1] + onsets.first
    place = (look - onsets.since, onset - onsets.first)
    size, error = float(onsets.size[place]), float(onsets.error[place])
    half = critical(settings.level) * error
    weight = 1 / spread**2
    before = np.average(gaps[:onset], weights=weight[:onset]) if onset else None
    after = np.average(gaps[onset : look + 1], weights=weight[onset : look + 1])
    return Alarm(
        detector=detector,
        raised=start + look,
        onset=start + onset,
        onset_low=start + int(named.min()),
        onset_high=start + int(named.max()),
        sure=sure,
        size=size,
        low=size - half,
        high=size + half,
        before=None if before is None else float(before),
        after=float(after),
        after_error=float(weight[onset : look + 1].sum() ** -0.5),
    )


def latest_alarm(
    detector: str, stream: Stream, numbers: Numbers, *, start: int, settings: Settings
) -> Alarm:
    """An open alarm as it looks at the last look: later periods say more of its date and size."""
    gaps, spread = numbers.gaps[start:], numbers.spread[start:]
    last = gaps.size - 1
    if detector == LIMIT:
        assert stream.band is not None
        low, high = stream.band
        onsets = limit_evidence(gaps, spread, low=low, high=high, tau=numbers.tau, since=last)
    else:
        onsets = change_evidence(gaps, spread, tau=numbers.tau, since=last)
    return describe_alarm(detector, onsets, gaps, spread, last, start, settings)


def still_outside(judged: Judged, *, start: int, onset: int, settings: Settings) -> bool:
    """Whether a gap is known to be outside its limit and no later data show it back inside.

    It is known where the detector of limits, that looks from the column `start` on, found it, or
    where the average since `onset` lay outside at any look. It is back inside where the average
    since some later column lies inside, with an interval that holds over all looks.
    """
    stream, numbers = judged.stream, judged.numbers
    if stream.band is None:
        return False
    low, high = stream.band
    weight, alpha = 1 / numbers.spread[onset:] ** 2, judged.alpha / judged.members
    parts = weight * numbers.gaps[onset:]

    def averages(order: slice, share: float) -> tuple[FloatArray, FloatArray]:
        total = np.cumsum(weight[order])
        half = half_width(total**-0.5, tau=numbers.tau, alpha=share)
        value = np.cumsum(parts[order]) / total
        return value - half, value + half

    # From each column to the last one.
    ends = averages(slice(None, None, -1), alpha / weight.size)
    if bool(((ends[0] >= low) & (ends[1] <= high)).any()):
        return False
    # From the onset to each look.
    ends = averages(slice(None), alpha)
    if bool(((ends[0] > high) | (ends[1] < low)).any()):
        return True
    looks, book = (start, start), LineBook()
    found = _first_alarm(LIMIT, stream, numbers, judged.members, settings, looks, book)
    return found is not None


def spent(looks: ArrayLike, alpha: float, horizon: int | None) -> FloatArray:
    """The share of false alarms that may have happened by each look, counted from 1."""
    t = np.asarray(looks, np.float64)
    return np.asarray(alpha * np.minimum(t / horizon if horizon else t / (t + OPEN_HORIZON), 1.0))


def drawn_share(alpha: float, series: int) -> float:
    """The share a line is drawn for: so many null series lie above it that it is one."""
    return min(max(alpha, FEWEST_ABOVE / series), 0.5)


def least_line(errors: FloatArray, tau: ArrayLike, share: ArrayLike) -> FloatArray:
    """What no line can lie below: one onset and what the others have at least exceed it as often.

    A line lets at most a share of null series cross by a look. The sum over onsets is at least
    its largest term, whose law is known, and of every other what it has where nothing differs.
    `errors` are by onset in the last axis, ∞ for one that cannot be known yet.
    """
    from scipy.special import ndtri

    square = ndtri(np.asarray(share) / 2) ** 2
    known = np.isfinite(errors)
    with np.errstate(all="ignore"):
        ratio = (np.asarray(tau)[..., None] / errors) ** 2
        none = np.where(known, 1 / np.sqrt(1 + ratio), 0.0)
        most = none * np.exp(np.minimum(0.5 * square[..., None] * ratio / (1 + ratio), 690.0))
        return np.asarray(np.log((most - none).max(axis=-1) + none.sum(axis=-1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LineQuestion:
    """For which stream, from which column on and for which share of false alarms lines are.

    `looks` is how many looks the evidence reaches over.
    """

    stream: Stream
    numbers: Numbers
    start: int
    looks: int
    alpha: float
    horizon: int | None
    settings: Settings

    def drawn(self, looks: int) -> float:
        """The share that a line is drawn for: the one asked for, or the least that shows."""
        return drawn_share(self.alpha, self.settings.series_of(looks))

    def least(self, errors: FloatArray, looks: NDArray[np.intp]) -> FloatArray:
        """What no line can lie below at looks counted from 1; `errors` are by (look, onset)."""
        many = np.array([self.drawn(int(look)) for look in looks])
        share = spent(looks, 1.0, self.horizon) * many
        return least_line(errors, self.numbers.tau, share) + self.raised(looks)

    def raised(self, looks: NDArray[np.intp]) -> FloatArray:
        """By how much lines are at least raised at looks, counted from 1, for a smaller share."""
        return np.log([self.drawn(int(look)) / self.alpha for look in looks])

    def noise_places(self, end: int) -> NDArray[np.intp]:
        """Up to which noise lines hold at each look: the first that may not be exceeded."""
        columns = self.numbers.upper[self.start : self.start + end]
        if self.settings.between == NONE:
            return np.zeros(columns.size, dtype=np.intp)
        grid = np.array(NOISE) * self.numbers.tau
        return np.minimum(np.searchsorted(grid, columns), grid.size - 1)


class LineBook:
    """Lines drawn so far, by what they were drawn for; `find` looks where they are kept."""

    def __init__(self, find: Callable[[str], bytes | None] | None = None) -> None:
        self._find = find
        self.new: dict[str, bytes] = {}

    def rough(self, asked: LineQuestion) -> FloatArray:
        """A line that is quick to draw and above any other by chance alone.

        From few series, as if nothing varied between periods. That of a long sequence is drawn
        now and then, and goes on as it ended.
        """
        whole = asked.looks
        end = whole - whole % ROUGH_EVERY if whole > MOST_LOOKS else whole
        series = min(asked.settings.series_of(whole), ROUGH_SERIES)
        drawn = drawn_share(asked.alpha, series)
        heights = self._height(asked, 0, end, series, drawn)
        # Looks at which nothing may be spent have no height of their own.
        finite = heights[np.isfinite(heights)]
        lowest = finite[-ROUGH_EVERY:].min() if finite.size else inf
        later = np.full(whole - end, lowest - 2 * SLACK)
        return np.concatenate([heights, later]) + asked.raised(np.arange(1, whole + 1))

    def line(self, asked: LineQuestion, place: int, end: int) -> FloatArray:
        """The line for a noise up to a look, its height on the scale of log evidence."""
        drawn = asked.drawn(end)
        heights = self._height(asked, place, end, asked.settings.series_of(end), drawn)
        return heights + log(drawn / asked.alpha)

    def _height(
        self, asked: LineQuestion, place: int, end: int, series: int, drawn: float
    ) -> FloatArray:
        begin, stop = asked.start, asked.start + end
        counts = np.ascontiguousarray(asked.stream.counts[:, begin:stop])
        tau, seed = asked.numbers.tau, asked.settings.seed
        facts = [DRAWN_AS, asked.stream.kind, tau, drawn, asked.horizon, place, series, seed]
        name = sha256(repr(facts).encode() + counts.tobytes()).hexdigest()
        content = self.new.get(name) or (self._find(name) if self._find else None)
        if content is None:
            shared: dict[str, Any] = {
                "tau": tau, "alpha": drawn, "horizon": asked.horizon, "places": (place,),
                "series": series, "seed": seed,
            }  # fmt: skip
            made = (
                normal_lines(asked.numbers.errors[begin:stop], **shared)
                if asked.stream.kind != "rates"
                else change_lines(*counts, **shared)
            )
            content = self.new[name] = made.height[0].astype("<f8").tobytes()
        return np.frombuffer(content, "<f8")
