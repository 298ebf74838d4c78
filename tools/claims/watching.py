"""Claims of watching: what is said over a year of weekly looks, and how soon a change is found."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from claims.claim import Claim
from claims.draws import Floats
from claims.statistics import Generator
from evenhand.findings.limits import Limit
from evenhand.stats.sequential import change_evidence
from evenhand.watching.numbers import Settings, numbers_of
from evenhand.watching.streams import Stream, StreamKey, Watched
from evenhand.watching.verdicts import (
    CHANGE,
    LIMIT,
    Judged,
    LineBook,
    LineQuestion,
    judge_stream,
)

WEEKS, JUMP = 52, 26
SETTINGS = Settings(horizon=WEEKS)
AGREED = 0.05
# Series that stay below a line that so many times more null series cross are not judged in full.
SCREEN = 2.5
_KEY = StreamKey(
    lens="statistical", measure="selection_rate_gap", class_="1", attribute="g", group="a",
    reference="b",
)  # fmt: skip
_WATCHED = Watched(
    measure="selection_rate_gap",
    limits=(Limit(measure="selection_rate_gap", low=-AGREED, high=AGREED),),
)

Sizes = Callable[[Generator], tuple[Floats, Floats]]
Levels = Callable[[Generator], Floats]


def equal(_: Generator, *, n: int = 500, other: int | None = None) -> tuple[Floats, Floats]:
    """The same number of cases every week."""
    return np.full(WEEKS, float(n)), np.full(WEEKS, float(other or n))


def growing(_: Generator) -> tuple[Floats, Floats]:
    """From 50 to 2,000 cases a week."""
    n = np.rint(np.geomspace(50, 2_000, WEEKS))
    return n, n


def shrinking(_: Generator) -> tuple[Floats, Floats]:
    """From 2,000 to 50 cases a week."""
    n = np.rint(np.geomspace(2_000, 50, WEEKS))
    return n, n


def random_sizes(generator: Generator, *, low: int = 50, high: int = 2_000) -> Any:
    """Any number of cases, week by week."""
    return generator.integers(low, high + 1, (2, WEEKS)).astype(float)


def holidays(_: Generator) -> tuple[Floats, Floats]:
    """500 a week, and a tenth of that in five weeks of the year."""
    n = np.full(WEEKS, 500.0)
    n[[0, 15, 29, 30, 51]] = 50
    return n, n


def flat(_: Generator, *, rate: float = 0.3) -> Floats:
    """One level all year."""
    return np.full(WEEKS, rate)


def drifting(_: Generator) -> Floats:
    """A level that rises for everybody."""
    return np.linspace(0.1, 0.5, WEEKS)


def stepping(_: Generator) -> Floats:
    """A level that steps for everybody in the middle of the year."""
    return np.where(np.arange(WEEKS) < JUMP, 0.15, 0.45)


def _noise(generator: Generator, deviation: float, kept: float) -> Floats:
    """How the gap wanders from week to week; `kept` is what a week keeps of the one before."""
    fresh = generator.standard_normal(WEEKS)
    wander = np.empty(WEEKS)
    wander[0] = fresh[0]
    for week in range(1, WEEKS):
        wander[week] = kept * wander[week - 1] + np.sqrt(1 - kept**2) * fresh[week]
    return deviation * wander


def series(
    generator: Generator,
    *,
    sizes: Sizes,
    level: Levels = flat,
    gap: float = 0.0,
    jump: float = 0.0,
    drift: float = 0.0,
    noise: float = 0.0,
    kept: float = 0.0,
) -> Stream:
    """A year of counts of two groups; the gap varies by `noise`, jumps by `jump` or drifts."""
    own, others = sizes(generator)
    base = level(generator)
    weeks = np.arange(WEEKS)
    moved = np.where(weeks >= JUMP, jump, 0.0) + drift * weeks / (WEEKS - 1)
    apart = gap + moved + _noise(generator, noise, kept)
    first = np.clip(base + apart, 0.0, 1.0)
    counts = np.stack(
        [
            generator.binomial(own.astype(int), first), own,
            generator.binomial(others.astype(int), base), others,
        ]
    ).astype(float)  # fmt: skip
    return Stream(key=_KEY, watched=_WATCHED, counts=counts, places=tuple(range(WEEKS)))


def pairs(generator: Generator, *, n: int, flips: float) -> Stream:
    """A year of pairs of which as many are gained as lost."""
    gained = generator.binomial(n, flips, WEEKS)
    lost = generator.binomial(n - gained, flips / (1 - flips))
    counts = np.stack([gained, lost, np.full(WEEKS, n)]).astype(float)
    return Stream(
        key=_KEY, watched=_WATCHED, counts=counts, places=tuple(range(WEEKS)), kind="pairs"
    )


Draw = Callable[[Generator], Stream]


@lru_cache(maxsize=64)
def _screen(draw: Draw, members: int) -> Floats:
    """A line that more null series of a setting cross than may alarm, drawn once for all."""
    stream = draw(np.random.default_rng(15))
    numbers = numbers_of(stream, SETTINGS)
    asked = LineQuestion(
        stream=stream, numbers=numbers, start=0, looks=WEEKS,
        alpha=SCREEN * SETTINGS.alpha / members,
        horizon=WEEKS, settings=SETTINGS,
    )  # fmt: skip
    return LineBook().line(asked, 0, WEEKS)


def change_alarm(stream: Stream, screen: Floats, *, members: int = 1) -> Any:
    """The alarm of a change in a year of looks, if any; none where the screen is never reached."""
    numbers = numbers_of(stream, SETTINGS)
    evidence = change_evidence(numbers.gaps, numbers.spread, tau=numbers.tau).total
    if not (evidence > screen).any():
        return None
    found = judged(stream, members=members, detectors=(CHANGE,))
    return found.alarms[0] if found.alarms else None


def judged(stream: Stream, *, members: int = 1, detectors: Any = ()) -> Judged:
    """A series judged at every look of the year."""
    return judge_stream(stream, members=members, settings=SETTINGS, detectors=detectors)


def says_changed(generator: Generator, repetitions: int, *, draw: Draw, streams: int = 1) -> Floats:
    """The detector of changes alarms at any look of the year, in any of so many streams."""
    out = np.zeros(repetitions)
    screen = _screen(draw, streams)
    for i in range(repetitions):
        alarms = (change_alarm(draw(generator), screen, members=streams) for _ in range(streams))
        out[i] = float(any(alarm is not None for alarm in alarms))
    return out


def says_outside(generator: Generator, repetitions: int, *, draw: Draw) -> Floats:
    """The detector of limits alarms at any look of the year."""
    return np.array(
        [bool(judged(draw(generator), detectors=(LIMIT,)).alarms) for _ in range(repetitions)]
    ).astype(float)


def leaves_out(generator: Generator, repetitions: int, *, draw: Draw) -> Floats:
    """The sequence leaves out the average gap, which is 0, at any look."""
    out = np.empty(repetitions)
    for i in range(repetitions):
        found = judged(draw(generator))
        ready = found.numbers.ready
        out[i] = float(((found.family_low > 0) | (found.family_high < 0))[ready].any())
    return out


def weekly_test(generator: Generator, repetitions: int, *, draw: Draw) -> Floats:
    """A 95 % test of the week's own gap says that there is one, in any week of the year."""
    out = np.empty(repetitions)
    for i in range(repetitions):
        k1, n1, k2, n2 = draw(generator).counts
        error = np.sqrt(k1 * (n1 - k1) / n1**3 + k2 * (n2 - k2) / n2**3)
        out[i] = float((np.abs(k1 / n1 - k2 / n2) > 1.96 * error).any())
    return out


def found_soon(generator: Generator, repetitions: int, *, draw: Draw, weeks: int) -> Floats:
    """A jump is found so many weeks after its own at the latest; NaN where an alarm came before."""
    return _after_the_jump(
        generator, repetitions, lambda alarm: alarm.raised - JUMP <= weeks, draw=draw
    )


def dated_well(generator: Generator, repetitions: int, *, draw: Draw) -> Floats:
    """The onset of a jump that was found is right within a week."""
    return _after_the_jump(
        generator, repetitions, lambda a: abs(a.onset - JUMP) <= 1, draw=draw, missed=np.nan
    )


def _after_the_jump(
    generator: Generator,
    repetitions: int,
    holds: Callable[[Any], bool],
    *,
    draw: Draw,
    missed: float = 0.0,
) -> Floats:
    out = np.full(repetitions, missed)
    screen = _screen(draw, 1)
    for i in range(repetitions):
        alarm = change_alarm(draw(generator), screen)
        if alarm is not None:
            out[i] = float(holds(alarm)) if alarm.raised >= JUMP else np.nan
    return out


def found_at_all(
    generator: Generator, repetitions: int, *, draw: Draw, detector: str, weeks: int = WEEKS
) -> Floats:
    """A detector alarms by the end of a week of the year."""
    out = np.zeros(repetitions)
    for i in range(repetitions):
        stream = draw(generator)
        if detector == CHANGE:
            alarm = change_alarm(stream, _screen(draw, 1))
        else:
            alarms = judged(stream, detectors=(LIMIT,)).alarms
            alarm = alarms[0] if alarms else None
        out[i] = float(alarm is not None and alarm.raised < weeks)
    return out


def _claim(
    measure: str,
    setting: str,
    simulate: Any,
    wanted: Any,
    *,
    kind: str = "looks",
    share: float = 1.0,
    **given: Any,
) -> Claim:
    return Claim(
        measure=measure, setting=f"looks: {setting}", wanted=wanted,
        simulate=partial(simulate, **given), kind=kind, share=share,
    )  # fmt: skip


# Years in which the gap stays what it is, whatever sizes, levels and noise do.
NULLS: dict[str, dict[str, Any]] = {
    "500 a week": {"sizes": equal},
    "50 growing to 2,000": {"sizes": growing},
    "2,000 shrinking to 50": {"sizes": shrinking},
    "50 to 2,000 at random": {"sizes": random_sizes},
    "holidays": {"sizes": holidays},
    "a level that drifts": {"sizes": equal, "level": drifting},
    "a level that steps": {"sizes": equal, "level": stepping},
    "20 against 1,000": {"sizes": partial(equal, n=20, other=1_000)},
    "2 to 20 a week": {"sizes": partial(random_sizes, low=2, high=20)},
    "rare events (2 %), 50 a week": {
        "sizes": partial(equal, n=50),
        "level": partial(flat, rate=0.02),
    },
    "noise of .01 between weeks": {"sizes": equal, "noise": 0.01},
    "noise of .02 between weeks": {"sizes": equal, "noise": 0.02},
    "noise of .05 between weeks": {"sizes": equal, "noise": 0.05},
}
# Gaps that wander by themselves are changes to the detector: shown, and nothing is promised.
WANDERING = {
    f"noise of .02 that keeps {kept:.0%} of the week before": {
        "sizes": equal,
        "noise": 0.02,
        "kept": kept,
    }
    for kept in (0.3, 0.5)
}
_RARELY, _SELDOM = (0.0, 0.06), (0.0, 1.0)
_FLIPS = partial(pairs, n=400, flips=0.02)
_JUMP = {size: partial(series, sizes=equal, jump=size) for size in (0.05, 0.1)}
_FEW = partial(series, sizes=partial(equal, n=50), jump=0.1)
_DRIFT = partial(series, sizes=equal, drift=0.1)

CLAIMS = (
    *(
        _claim("alarm of a change that is none", name, says_changed, _RARELY,
               draw=partial(series, **setting))
        for name, setting in NULLS.items()
    ),
    _claim("alarm of a change that is none", "400 pairs a week, 2 % flip either way",
           says_changed, _RARELY, draw=_FLIPS),
    _claim("alarm of a change that is none", "any of eight streams, 500 a week", says_changed,
           _RARELY, draw=partial(series, sizes=equal), streams=8),
    *(
        _claim("alarm of a change that is none", name, says_changed, _SELDOM,
               draw=partial(series, **setting))
        for name, setting in WANDERING.items()
    ),
    *(
        _claim("alarm of a limit, with a gap at the limit", name, says_outside, _RARELY,
               draw=partial(series, gap=AGREED, **setting))
        for name, setting in NULLS.items()
    ),
    *(
        _claim("sequence leaves out the gap", name, leaves_out, _RARELY,
               draw=partial(series, **setting))
        for name, setting in NULLS.items()
    ),
    *(
        _claim("a 95 % test every week, for comparison", name, weekly_test, (0.5, 1.0),
               draw=partial(series, **setting))
        for name, setting in NULLS.items()
    ),
    _claim("jump of .10 found within two weeks after its own", "500 a week", found_soon, (0.5, 1.0),
           kind="dated", draw=_JUMP[0.1], weeks=2, share=0.25),
    _claim("jump of .10 dated within a week", "500 a week", dated_well, (0.75, 1.0),
           kind="dated", draw=_JUMP[0.1], share=0.25),
    _claim("jump of .05 found within six weeks after its own", "500 a week", found_soon, (0.5, 1.0),
           kind="dated", draw=_JUMP[0.05], weeks=6, share=0.25),
    _claim("jump of .10 found by the end of the year", "50 a week", found_soon, (0.75, 1.0),
           kind="dated", draw=_FEW, weeks=WEEKS, share=0.25),
    _claim("drift from 0 to .10 found by week 32", "500 a week", found_at_all, (0.4, 1.0),
           kind="dated", draw=_DRIFT, detector=CHANGE, weeks=32, share=0.25),
    _claim("drift from 0 to .10 beyond .05 said by the end of the year", "500 a week",
           found_at_all, (0.8, 1.0), kind="dated", draw=_DRIFT, detector=LIMIT, share=0.25),
)  # fmt: skip
