"""Where a detector of change alarms: lines that series without a change cross as rarely as agreed.

The evidence of a change has no closed law once standard errors and the noise between periods are
estimated from the same periods. Null series with the same sizes and levels are drawn, everything
is estimated again in each, and the line spends the agreed share of false alarms look by look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.estimate import FloatArray
from evenhand.stats.sequential import (
    BURN_IN,
    MOST_ONSETS,
    between_variance,
    local_rates,
    period_errors,
)

SERIES = 20_000
# Noise between periods for which a line is drawn, in units of tau.
NOISE = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0)
# Without a planned horizon, half of what may be spent is spent by this look.
OPEN_HORIZON = 52.0
_EVERY_LINE = tuple(range(len(NOISE)))
# Series drawn at once, and those whose evidence is summed while they are at hand.
_BLOCK, _AT_HAND = 2_000, 500
# Where less than one series may cross, the line of this many is raised.
_SOME, _ROUNDING = 10, 1e-9
# Beyond this logarithm evidence is no longer told apart, so that its sum stays a number.
_MOST_EVIDENCE = 690.0

Draw = Callable[[np.random.Generator, int, float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Logarithms of the evidence at which to alarm, by (noise, look); ∞ before the burn-in."""

    noise: FloatArray
    height: FloatArray

    def at(self, upper: ArrayLike) -> FloatArray:
        """The line to use at each look, given how large the noise between periods may be.

        The highest line up to the first one drawn for at least that noise: what cannot be ruled
        out must not alarm.
        """
        most = np.asarray(upper, np.float64)
        first = np.minimum(np.searchsorted(self.noise, most), self.noise.size - 1)
        highest = np.maximum.accumulate(self.height, axis=0)
        return np.asarray(highest[first, np.arange(self.height.shape[1])])


def change_lines(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    tau: float,
    alpha: float,
    horizon: int | None,
    places: Sequence[int] = _EVERY_LINE,
    series: int = SERIES,
    seed: int = 0,
) -> Lines:
    """Lines for a gap of two rates: null series are counts with these sizes and local rates.

    `places` are those of the noise that lines are drawn for; each is the same, alone or with
    others.
    """
    k1, n1, k2, n2 = (
        np.asarray(part, np.float64) for part in (hits, n, hits_reference, n_reference)
    )
    first, second = local_rates(k1, n1, k2, n2)
    cases = [n.astype(np.int64).tolist() for n in (n1, n2)]

    def draw(rng: np.random.Generator, many: int, omega: float) -> tuple[FloatArray, FloatArray]:
        own, others, moved = np.empty((3, n1.size, many))
        for period, (mine, theirs) in enumerate(zip(*cases)):
            own[period] = rng.binomial(mine, first[period], many)
            others[period] = rng.binomial(theirs, second[period], many)
            if omega:
                moved[period] = rng.standard_normal(many)
        hits, hits_reference = np.ascontiguousarray(own.T), np.ascontiguousarray(others.T)
        gaps = hits / n1 - hits_reference / n2 - (first - second)
        if omega:
            gaps += omega * moved.T
        return gaps, period_errors(hits, n1, hits_reference, n2)

    return _lines(draw, n1.size, tau, alpha, horizon, places, series, seed)


def normal_lines(
    errors: ArrayLike,
    *,
    tau: float,
    alpha: float,
    horizon: int | None,
    places: Sequence[int] = _EVERY_LINE,
    series: int = SERIES,
    seed: int = 0,
) -> Lines:
    """Lines for a gap with known standard errors: paired gaps, implied thresholds."""
    given = np.asarray(errors, np.float64)

    def draw(rng: np.random.Generator, many: int, omega: float) -> tuple[FloatArray, FloatArray]:
        gaps = np.sqrt(given**2 + omega**2) * rng.standard_normal((given.size, many)).T
        return gaps, np.broadcast_to(given, gaps.shape)

    return _lines(draw, given.size, tau, alpha, horizon, places, series, seed)


def _lines(
    draw: Draw,
    periods: int,
    tau: float,
    alpha: float,
    horizon: int | None,
    places: Sequence[int],
    series: int,
    seed: int,
) -> Lines:
    looks = np.arange(1, periods + 1)
    spent = looks / horizon if horizon else looks / (looks + OPEN_HORIZON)
    allowed = alpha * np.minimum(spent, 1.0) * series
    heights = []
    for place in places:
        evidence = []
        for start in range(0, series, _BLOCK):
            # Drawn period by period, so that a line begins as it did with fewer of them.
            rng = np.random.default_rng([seed, place, start])
            null = draw(rng, min(_BLOCK, series - start), NOISE[place] * tau)
            evidence.append(_null_evidence(*null, tau=tau))
        heights.append(_spending_line(np.concatenate(evidence), allowed))
    return Lines(noise=np.array([NOISE[place] for place in places]) * tau, height=np.array(heights))


def _null_evidence(gaps: FloatArray, errors: FloatArray, *, tau: float) -> FloatArray:
    """Evidence of a change at every look of every series, its errors estimated anew."""
    information = 1 / (errors**2 + between_variance(gaps, errors))
    weighted = np.cumsum(information * gaps, axis=1)
    total = np.cumsum(information, axis=1)
    out = np.full(gaps.shape, -np.inf)
    for start in range(0, len(gaps), _AT_HAND):
        part = slice(start, start + _AT_HAND)
        # Periods in rows: what is summed over onsets then lies side by side.
        mine = np.ascontiguousarray(weighted[part].T), np.ascontiguousarray(total[part].T)
        _sum_evidence(*mine, tau**2, out[part])
    return out


def _sum_evidence(weighted: FloatArray, total: FloatArray, wide: float, out: FloatArray) -> None:
    """Write the logarithm of the evidence summed over onsets, by (series, look), into `out`.

    What a period weighs and its weighted gap are summed up to each period, by (period, series).
    √(v/(τ²+v)) · exp(½ Δ²/v · τ²/(τ²+v)) in one buffer after another: a line takes 10⁸ of them.
    """
    periods, many = weighted.shape
    before, mean = 1 / total, weighted / total
    held = np.empty((3, min(periods, MOST_ONSETS), many))
    for look in range(BURN_IN, periods):
        # An onset's last period before it.
        last = slice(max(BURN_IN, look - MOST_ONSETS + 1) - 1, look)
        variance, fit, both = held[:, : last.stop - last.start]
        np.subtract(total[look], total[last], out=variance)
        np.divide(1.0, variance, out=variance)
        np.subtract(weighted[look], weighted[last], out=fit)
        fit *= variance
        fit -= mean[last]
        variance += before[last]
        np.add(variance, wide, out=both)
        fit *= fit
        fit /= variance
        fit /= both
        fit *= 0.5 * wide
        np.minimum(fit, _MOST_EVIDENCE, out=fit)
        np.exp(fit, out=fit)
        variance /= both
        np.sqrt(variance, out=variance)
        variance *= fit
        np.log(variance.sum(axis=0), out=out[:, look])


def _spending_line(evidence: FloatArray, allowed: FloatArray) -> FloatArray:
    """The height at each look that lets this many series cross it by then.

    In a long plan less than one may cross at a look. Then the line is that of more, raised by the
    logarithm of how many more: evidence exceeds c times as much at most once in c. Without that,
    most looks could not alarm at all.
    """
    line = np.full(evidence.shape[1], np.inf)
    alive = np.ones(len(evidence), dtype=bool)
    for look in range(BURN_IN, evidence.shape[1]):
        left = float(allowed[look]) - int((~alive).sum())
        may = int(np.floor(left + _ROUNDING))
        values = np.sort(evidence[alive, look])
        if left <= 0 or may >= values.size:
            line[look] = np.inf if left <= 0 else -np.inf
            continue
        some = min(_SOME, values.size)
        line[look] = values[-may - 1] if may else values[-some] + np.log(some / left)
        alive &= evidence[:, look] <= line[look]
    return line
