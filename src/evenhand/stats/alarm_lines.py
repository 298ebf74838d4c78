"""Where a detector of change alarms: lines that series without a change cross as rarely as agreed.

The evidence of a change has no closed law once standard errors and the noise between periods are
estimated from the same periods. Null series with the same sizes and levels are drawn, everything
is estimated again in each, and the line spends the agreed share of false alarms look by look.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.sequential import (
    BURN_IN,
    MOST_ONSETS,
    between_variance,
    local_rates,
    log_evidence,
    period_errors,
)

SERIES = 20_000
# Noise between periods for which a line is drawn, in units of tau.
NOISE = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0)
# Without a planned horizon, half of what may be spent is spent by this look.
OPEN_HORIZON = 52.0
_BLOCK = 2_000

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
    noise: tuple[float, ...] = NOISE,
    series: int = SERIES,
    seed: int = 0,
) -> Lines:
    """Lines for a gap of two rates: null series are counts with these sizes and local rates."""
    k1, n1, k2, n2 = (
        np.asarray(part, np.float64) for part in (hits, n, hits_reference, n_reference)
    )
    first, second = local_rates(k1, n1, k2, n2)

    def draw(rng: np.random.Generator, many: int, omega: float) -> tuple[FloatArray, FloatArray]:
        own = rng.binomial(n1.astype(np.int64), first, size=(many, n1.size))
        others = rng.binomial(n2.astype(np.int64), second, size=(many, n2.size))
        gaps = own / n1 - others / n2 - (first - second)
        gaps += omega * rng.standard_normal(gaps.shape)
        return gaps, period_errors(own, n1, others, n2)

    return _lines(draw, n1.size, tau, alpha, horizon, noise, series, seed)


def normal_lines(
    errors: ArrayLike,
    *,
    tau: float,
    alpha: float,
    horizon: int | None,
    noise: tuple[float, ...] = NOISE,
    series: int = SERIES,
    seed: int = 0,
) -> Lines:
    """Lines for a gap with known standard errors: paired gaps, implied thresholds."""
    given = np.asarray(errors, np.float64)

    def draw(rng: np.random.Generator, many: int, omega: float) -> tuple[FloatArray, FloatArray]:
        noise_of = np.sqrt(given**2 + omega**2)
        return noise_of * rng.standard_normal((many, given.size)), np.broadcast_to(
            given, (many, given.size)
        )

    return _lines(draw, given.size, tau, alpha, horizon, noise, series, seed)


def _lines(
    draw: Draw,
    periods: int,
    tau: float,
    alpha: float,
    horizon: int | None,
    noise: tuple[float, ...],
    series: int,
    seed: int,
) -> Lines:
    looks = np.arange(1, periods + 1)
    spent = looks / horizon if horizon else looks / (looks + OPEN_HORIZON)
    allowed = np.floor(alpha * np.minimum(spent, 1.0) * series).astype(np.int64)
    heights = []
    for place, share in enumerate(noise):
        rng = np.random.default_rng([seed, place])
        evidence = np.concatenate(
            [
                _null_evidence(*draw(rng, min(_BLOCK, series - start), share * tau), tau=tau)
                for start in range(0, series, _BLOCK)
            ]
        )
        heights.append(_spending_line(evidence, allowed))
    return Lines(noise=np.array(noise) * tau, height=np.array(heights))


def _null_evidence(gaps: FloatArray, errors: FloatArray, *, tau: float) -> FloatArray:
    """Evidence of a change at every look of every series, its errors estimated anew."""
    many, periods = gaps.shape
    information = 1 / (errors**2 + between_variance(gaps, errors))
    zero = np.zeros((many, 1))
    weighted = np.concatenate([zero, np.cumsum(information * gaps, axis=1)], axis=1)
    total = np.concatenate([zero, np.cumsum(information, axis=1)], axis=1)
    out = np.full((many, periods), -np.inf)
    for look in range(BURN_IN, periods):
        onsets = slice(max(BURN_IN, look - MOST_ONSETS + 1), look + 1)
        before, after = total[:, onsets], total[:, [look + 1]] - total[:, onsets]
        size = (weighted[:, [look + 1]] - weighted[:, onsets]) / after - (
            weighted[:, onsets] / before
        )
        found = log_evidence(size, np.sqrt(1 / before + 1 / after), tau=tau)
        top = found.max(axis=1)
        out[:, look] = top + np.log(np.exp(found - top[:, None]).sum(axis=1))
    return out


def _spending_line(evidence: FloatArray, allowed: NDArray[np.int64]) -> FloatArray:
    """The height at each look that lets this many series cross it by then."""
    line = np.full(evidence.shape[1], np.inf)
    alive = np.ones(len(evidence), dtype=bool)
    for look in range(BURN_IN, evidence.shape[1]):
        may = int(allowed[look]) - int((~alive).sum())
        values = np.sort(evidence[alive, look])
        if may <= 0 or may >= values.size:
            line[look] = np.inf if may <= 0 else -np.inf
            continue
        line[look] = values[-may - 1]
        alive &= evidence[:, look] <= line[look]
    return line
