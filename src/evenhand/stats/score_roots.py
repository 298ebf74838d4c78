"""Where a score test begins to reject: limits of intervals that have no closed form."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray

# Ratios are looked for between exp(−30) and exp(30).
_MOST_STEPS, _CLOSE = 200, 1e-13
_SECANTS, _SOLVED = 6, 1e-10
LOG_END = 30.0


def bisect(
    rejected: Callable[[FloatArray], FloatArray],
    inside: FloatArray,
    outside: FloatArray,
    *,
    guess: FloatArray | None = None,
) -> FloatArray:
    """Where `rejected` turns positive between a point inside an interval and one outside.

    A point inside all the way to the end gives the end. Secants with the Illinois safeguard and
    a halving every fourth step: a dozen evaluations where plain halving takes fifty.
    """
    value_inside, value_outside = rejected(inside), rejected(outside)
    point = outside if guess is None else guess
    before = np.zeros(point.shape)
    done = np.zeros(point.shape, dtype=bool)
    for step in range(_MOST_STEPS):
        value = rejected(point)
        out = value > 0
        # A side that stays put twice counts half, so that the next secant moves away from it.
        side = np.where(out, 1.0, -1.0)
        weight = np.where(side == before, 0.5, 1.0)
        value_inside = np.where(out, value_inside * weight, value)
        value_outside = np.where(out, value, value_outside * weight)
        inside, outside = np.where(out, inside, point), np.where(out, point, outside)
        before = side
        narrow = np.abs(outside - inside) <= _CLOSE * np.maximum(1.0, np.abs(point))
        done |= narrow | (np.abs(value) <= _CLOSE) | ~np.isfinite(point)
        if done.all():
            break
        with np.errstate(all="ignore"):
            share = value_inside / (value_inside - value_outside)
        halve = (step % 4 == 3) | ~((share > 0) & (share < 1))
        point = np.where(done, point, inside + np.where(halve, 0.5, share) * (outside - inside))
    return point


def beyond(excess: FloatArray, variance: FloatArray, z: ArrayLike) -> FloatArray:
    """How many standard errors an excess lies beyond z; the score is near linear, so secants do."""
    with np.errstate(all="ignore"):
        score = np.abs(excess) / np.sqrt(variance)
    return np.asarray(np.where(excess == 0, 0.0, np.minimum(score, 1e9)) - z)


def ratio_score(
    log_ratio: FloatArray, k1: FloatArray, n1: FloatArray, k2: FloatArray, n2: FloatArray
) -> FloatArray:
    """How many standard errors the rates lie from this ratio, by the restricted likelihood."""
    with np.errstate(all="ignore"):
        ratio = np.exp(log_ratio)
        hits = k1 + k2
        linear = ratio * (n1 + k2) + (k1 + n2)
        root = np.sqrt(np.maximum(linear * linear - 4 * ratio * ((n1 + n2) * hits), 0.0))
        # The smaller root, written so that nothing cancels.
        p2 = np.clip(2 * hits / (linear + root), 0.0, 1.0)
        p1 = np.clip(ratio * p2, 0.0, 1.0)
        variance = p1 * (1 - p1) / n1 + ratio * ratio * p2 * (1 - p2) / n2
        excess = k1 / n1 - ratio * (k2 / n2)
        score = np.minimum(np.abs(excess) / np.sqrt(variance), 1e9)
        return np.asarray(np.where(excess == 0, 0.0, score))


def secant(
    k1: FloatArray,
    n1: FloatArray,
    k2: FloatArray,
    n2: FloatArray,
    z: FloatArray,
    *,
    centre: FloatArray,
    guess: FloatArray,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Log ratios where the score reaches z, and which of them are found: the score is near linear.

    The score is 0 in the centre; a handful of secants from there end within rounding wherever
    counts are not small.
    """
    before, before_value, point = np.broadcast_to(centre, guess.shape), -z, guess
    outwards = np.sign(guess - before)
    with np.errstate(all="ignore"):
        for _ in range(_SECANTS):
            value = ratio_score(point, k1, n1, k2, n2) - z
            solved = np.abs(value) <= _SOLVED
            if solved.all():
                break
            slope = (point - before) / (value - before_value)
            moved = np.where(solved, point, point - value * slope)
            before, before_value, point = point, value, moved
        # Beyond the centre, or beyond where limits are looked for, is no limit.
        solved &= ((point - centre) * outwards > 0) & (np.abs(point) < LOG_END)
    return np.array(point), solved
