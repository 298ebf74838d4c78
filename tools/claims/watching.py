"""Claims of watching: how often detectors alarm over a year of weeks in which nothing changed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from claims.claim import Claim
from claims.draws import Floats
from claims.statistics import Generator
from evenhand.findings.limits import Limit
from evenhand.watching.streams import Stream, StreamKey, Watched
from evenhand.watching.verdicts import CHANGE, LIMIT, Judged, Settings, judge_stream

WEEKS, JUMP = 52, 26
# Lines of few series: what they lack in precision they add in height.
SETTINGS = Settings(horizon=WEEKS, series=4_000)
AGREED = 0.05
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


def series(
    generator: Generator,
    *,
    sizes: Sizes,
    level: Levels = flat,
    gap: float = 0.0,
    jump: float = 0.0,
    noise: float = 0.0,
) -> Stream:
    """A year of counts of two groups; the gap varies by `noise` and jumps by `jump`."""
    own, others = sizes(generator)
    base = level(generator)
    moved = np.where(np.arange(WEEKS) >= JUMP, jump, 0.0)
    apart = gap + moved + noise * generator.standard_normal(WEEKS)
    first = np.clip(base + apart, 0.0, 1.0)
    counts = np.stack(
        [
            generator.binomial(own.astype(int), first), own,
            generator.binomial(others.astype(int), base), others,
        ]
    ).astype(float)  # fmt: skip
    return Stream(key=_KEY, watched=_WATCHED, counts=counts, places=tuple(range(WEEKS)))


def judged(stream: Stream) -> Judged:
    """A series judged at every look of the year."""
    return judge_stream(stream, members=1, settings=SETTINGS)


def alarms(generator: Generator, repetitions: int, *, detector: str, **setting: Any) -> Floats:
    """A detector alarms at any look of the year."""
    out = np.empty(repetitions)
    for i in range(repetitions):
        found = judged(series(generator, **setting))
        out[i] = float(any(alarm.detector == detector for alarm in found.alarms))
    return out


def leaves_out(generator: Generator, repetitions: int, **setting: Any) -> Floats:
    """The sequence leaves out the average gap, which is 0, at any look."""
    out = np.empty(repetitions)
    for i in range(repetitions):
        found = judged(series(generator, **setting))
        ready = found.numbers.ready
        out[i] = float(((found.low > 0) | (found.high < 0))[ready].any())
    return out


def weekly_test(generator: Generator, repetitions: int, **setting: Any) -> Floats:
    """A 95 % test of the week's own gap says that there is one, in any week of the year."""
    out = np.empty(repetitions)
    for i in range(repetitions):
        k1, n1, k2, n2 = series(generator, **setting).counts
        error = np.sqrt(k1 * (n1 - k1) / n1**3 + k2 * (n2 - k2) / n2**3)
        out[i] = float((np.abs(k1 / n1 - k2 / n2) > 1.96 * error).any())
    return out


def found_soon(generator: Generator, repetitions: int, *, weeks: int, **setting: Any) -> Floats:
    """A jump is found within so many weeks; NaN where an alarm came before it."""
    return _after_the_jump(generator, repetitions, lambda a: a.raised - JUMP <= weeks, **setting)


def dated_well(generator: Generator, repetitions: int, **setting: Any) -> Floats:
    """The onset of a jump that was found is right within a week."""
    return _after_the_jump(
        generator, repetitions, lambda a: abs(a.onset - JUMP) <= 1, missed=np.nan, **setting
    )


def _after_the_jump(
    generator: Generator,
    repetitions: int,
    holds: Callable[[Any], bool],
    *,
    missed: float = 0.0,
    **setting: Any,
) -> Floats:
    out = np.full(repetitions, missed)
    for i in range(repetitions):
        found = [a for a in judged(series(generator, **setting)).alarms if a.detector == CHANGE]
        if found:
            out[i] = float(holds(found[0])) if found[0].raised >= JUMP else np.nan
    return out


def _claim(measure: str, setting: str, simulate: Any, wanted: Any, kind: str = "error") -> Claim:
    return Claim(
        measure=measure, setting=f"looks: 52 weeks, {setting}", wanted=wanted, simulate=simulate,
        kind=kind, share=0.1,
    )  # fmt: skip


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
    "noise of .02 between weeks": {"sizes": equal, "noise": 0.02},
    "noise of .05 between weeks": {"sizes": equal, "noise": 0.05},
}
CLAIMS = (
    *(
        _claim("alarm of a change that is none", name, partial(alarms, detector=CHANGE, **setting),
               (0.0, 0.06))
        for name, setting in NULLS.items()
    ),
    *(
        _claim("alarm of a limit that is kept", name,
               partial(alarms, detector=LIMIT, gap=AGREED, **setting), (0.0, 0.06))
        for name, setting in NULLS.items()
        if name in ("500 a week", "noise of .02 between weeks")
    ),
    *(
        _claim("sequence leaves out the gap", name, partial(leaves_out, **NULLS[name]),
               (0.0, 0.06))
        for name in ("500 a week", "2 to 20 a week", "noise of .02 between weeks")
    ),
    _claim("a 95 % test every week, for comparison", "500 a week",
           partial(weekly_test, sizes=equal), (0.85, 1.0)),
    _claim("jump of .10 found within two weeks", "500 a week",
           partial(found_soon, sizes=equal, jump=0.1, weeks=2), (0.5, 1.0), "found"),
    _claim("jump of .10 dated within a week", "500 a week",
           partial(dated_well, sizes=equal, jump=0.1), (0.75, 1.0), "found"),
)  # fmt: skip
