"""Claims of next steps: how often the interval of what they ask for holds the truth.

A step is told only where a finding lies outside its limit, so that tables in which it does not are
drawn again: every repetition is one in which somebody is told.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from claims.claim import Claim
from evenhand.findings.sentences.beyond import Amount
from evenhand.findings.sentences.redecide import decisions_beyond, wrong_decisions
from evenhand.findings.sentences.varying import decisions_of_furthest, furthest_group
from evenhand.lenses.rows import COLUMNS, Row
from evenhand.stats.estimate import critical
from evenhand.stats.rates import koopman, newcombe, wilson
from evenhand.stats.spread import rate_spread

Z = critical(0.95)
# Points that may lie between two groups, the least ratio, and the most that rates may spread.
GAP, RATIO, SPREAD = 0.05, 0.8, 0.1
REFERENCE, PRECISE = 0.4, 0.6
# Tables that are drawn at once, until enough of them lie outside.
BATCH = 500
Floats = NDArray[np.float64]
Draws = NDArray[np.int64]
# The value of what is judged in every table drawn, its limits, and whether it lies outside.
Judged = tuple[Floats, Floats, Floats, NDArray[np.bool_]]


def row(measure: str, value: float, low: float, high: float, **more: Any) -> Row:
    """A row that lies outside its limit."""
    ends = {"low": low, "high": high, "family_low": low, "family_high": high, "level": 0.95}
    return dict.fromkeys(COLUMNS) | ends | {"measure": measure, "value": value, **more}


def rates_of(measure: str, hits: Draws, cases: Draws) -> list[Row]:
    """The rates of all groups of one table, with Wilson's limits."""
    low, high = wilson(hits, cases, z=Z)
    return [
        row(measure, k / n, a, b, group=str(i), n=int(n))
        for i, (k, n, a, b) in enumerate(zip(hits, cases, low, high))
    ]


def told(
    generator: np.random.Generator,
    repetitions: int,
    *,
    shares: Floats,
    cases: Draws,
    judge: Callable[[Draws], Judged],
) -> Iterator[tuple[Draws, float, float, float]]:
    """Tables in which what is judged lies outside: hits, value and limits, one by one."""
    count = 0
    while count < repetitions:
        hits = generator.binomial(cases, shares, (BATCH, len(cases)))
        value, low, high, outside = judge(hits)
        for i in np.flatnonzero(outside)[: repetitions - count]:
            count += 1
            yield hits[i], float(value[i]), float(low[i]), float(high[i])


def two_groups(
    generator: np.random.Generator, repetitions: int, *, what: str, n: int, beyond: float
) -> Floats:
    """Decisions of two groups that differ by so many points more than they may."""
    cases = np.array([n // 2, n // 2])
    other = PRECISE if what == "precision" else REFERENCE
    goal = RATIO * other if what == "ratio" else other - GAP
    shares = np.array([goal - beyond, other])
    truth = cases[0] * beyond
    if what == "precision":
        truth = cases[0] * (1 - shares[0] / goal)
    rate = "precision" if what == "precision" else "selection_rate"
    limits = (RATIO, 1 / RATIO) if what == "ratio" else (-GAP, GAP)

    def judge(hits: Draws) -> Judged:
        share = hits / cases
        interval = koopman if what == "ratio" else newcombe
        low, high = interval(hits[:, 0], cases[0], hits[:, 1], cases[1], z=Z)
        with np.errstate(all="ignore"):
            ratio = share[:, 0] / share[:, 1]
        value = ratio if what == "ratio" else share[:, 0] - share[:, 1]
        return value, low, high, high < limits[0]

    count = wrong_decisions if what == "precision" else decisions_beyond
    held = []
    for hits, *numbers in told(generator, repetitions, shares=shares, cases=cases, judge=judge):
        lead = row(f"{rate}_{'ratio' if what == 'ratio' else 'gap'}", *numbers, group="0",
                   reference="1", n=int(cases[0]), n_reference=int(cases[1]),
                   limit_low=limits[0], limit_high=limits[1])  # fmt: skip
        held.append(_holds(count(lead, rates_of(rate, hits, cases)), truth))
    return np.array(held)


def four_groups(
    generator: np.random.Generator, repetitions: int, *, n: int, beyond: float
) -> Floats:
    """Decisions of four groups, of which one makes rates spread more than they may."""
    cases = np.full(4, n // 4)
    others = np.array([0.48, 0.5, 0.52])
    near_enough = sqrt(16 / 3 * SPREAD**2 - 4 * others.var())
    shares = np.array([0.5 - near_enough - beyond, *others])

    def judge(hits: Draws) -> Judged:
        found = rate_spread(hits, cases, z=Z)
        return found.corrected, found.low, found.high, found.low > SPREAD

    held = []
    for hits, *numbers in told(generator, repetitions, shares=shares, cases=cases, judge=judge):
        lead = row("selection_rate_spread_corrected", *numbers, n=4, limit_low=0.0,
                   limit_high=SPREAD)  # fmt: skip
        rates = rates_of("selection_rate", hits, cases)
        first = furthest_group(rates)
        counted = decisions_of_furthest(lead, rates)
        # Of another group than the one that is furthest in truth, nothing is known to be true.
        known = first is not None and first["group"] == "0" and counted is not None
        held.append(_holds(counted, cases[0] * beyond) if known else np.nan)
    return np.array(held)


def _holds(counted: Amount | None, truth: float) -> float:
    return np.nan if counted is None else float(counted[1] <= truth <= counted[2])


NAMES = {
    "gap": "decisions to change, of a gap",
    "ratio": "decisions to change, of a ratio",
    "precision": "wrong decisions less, of a precision gap",
}
SIZES, FAR = (300, 3_000, 30_000), (0.01, 0.03, 0.1)


def _setting(n: int, beyond: float) -> str:
    return f"{n:,} rows, {100 * beyond:.0f} point{'s' if beyond > 0.01 else ''} beyond the limit"


CLAIMS = (
    *(
        Claim(
            measure=name, setting=_setting(n, beyond), wanted=(0.93, 1.0), kind="told",
            simulate=partial(two_groups, what=what, n=n, beyond=beyond),
        )
        for what, name in NAMES.items() for n in SIZES for beyond in FAR
    ),
    *(
        Claim(
            measure="decisions to change, of a spread over four groups",
            setting=_setting(n, beyond), wanted=(0.93, 1.0), kind="told",
            simulate=partial(four_groups, n=n, beyond=beyond),
        )
        for n in SIZES for beyond in FAR
    ),
)  # fmt: skip
