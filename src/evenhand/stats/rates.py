"""Rates, gaps, ratios and paired gaps of counts: score intervals and tests.

Every array function broadcasts, takes real-valued (effective) counts and the critical value `z`,
so that a family interval is the same formula with a larger `z`. Undefined is NaN.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError
from evenhand.stats.estimate import Estimate, FloatArray, critical, number
from evenhand.stats.special import betainc, gammaln, ndtr

# Ratios are looked for between exp(−30) and exp(30).
_MOST_STEPS, _CLOSE = 200, 1e-13
_SECANTS, _SOLVED = 6, 1e-10
LOG_END = 30.0
# Limits that are looked for at a time.
BLOCK = 2**14

Interval = tuple[FloatArray, FloatArray]
# How many standard errors the counts of both sides lie from a log ratio.
Score = Callable[..., FloatArray]


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


def _secant(
    score: Score,
    counts: Sequence[FloatArray],
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
            value = score(point, *counts) - z
            solved = np.abs(value) <= _SOLVED
            if solved.all():
                break
            slope = (point - before) / (value - before_value)
            moved = np.where(solved, point, point - value * slope)
            before, before_value, point = point, value, moved
        # Beyond the centre, or beyond where limits are looked for, is no limit.
        solved &= ((point - centre) * outwards > 0) & (np.abs(point) < LOG_END)
    return np.array(point), solved


def score_limits(
    score: Score,
    counts: Sequence[FloatArray],
    z: FloatArray,
    *,
    centre: FloatArray,
    width: FloatArray,
    wanted: NDArray[np.bool_],
) -> FloatArray:
    """Lower and upper log ratios at which a score reaches z, from a centre where it is 0.

    `counts` are the hits and cases of both sides, all of one shape; `width` is how far from the
    centre the limits probably lie. Where an end is not `wanted`, what is given there says nothing.
    """
    if centre.size > BLOCK:
        # A few comparisons at a time, whose arrays stay near.
        shape = centre.shape
        flat = [np.broadcast_to(part, shape).reshape(-1) for part in (*counts, z, centre, width)]
        ends = wanted.reshape(2, -1)
        found = np.empty(ends.shape)
        for first in range(0, centre.size, BLOCK):
            part = slice(first, first + BLOCK)
            *few, q, middle, reach = (each[part] for each in flat)
            found[:, part] = score_limits(
                score, few, q, centre=middle, width=reach, wanted=ends[:, part]
            )
        return found.reshape(2, *shape)
    width = np.where(np.isfinite(width), np.minimum(width, LOG_END), LOG_END)
    sides = np.array([-1.0, 1.0]).reshape(2, *([1] * centre.ndim))
    guess = np.clip(centre + sides * width, -LOG_END, LOG_END)
    found, solved = _secant(score, counts, z, centre=centre, guess=guess)
    rest = wanted & ~solved
    if rest.any():
        # Small counts bend the score, or pin a rate at 1: there the limit is bracketed.
        *few, q, middle, end = (
            np.broadcast_to(part, rest.shape)[rest]
            for part in (*counts, z, centre, sides * LOG_END)
        )
        found[rest] = bisect(lambda x: score(x, *few) - q, middle, end, guess=guess[rest])
    return found


def wilson(hits: ArrayLike, n: ArrayLike, *, z: ArrayLike) -> Interval:
    """Wilson score interval of a rate; NaN where there are no cases.

    Examples:
        >>> low, high = wilson(8, 10, z=1.959964)
        >>> print(f"{low:.3f} {high:.3f}")
        0.490 0.943
    """
    hits, n, z = _arrays(hits, n, z)
    with np.errstate(all="ignore"):
        share = hits / n
        shrink = 1 + z**2 / n
        centre = (share + z**2 / (2 * n)) / shrink
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / shrink
        # At 0 and n the limits are exactly 0 and 1; rounding must not move them.
        low = np.where(hits <= 0, 0.0, np.maximum(centre - half, 0.0))
        high = np.where(hits >= n, 1.0, np.minimum(centre + half, 1.0))
        defined = n > 0
        return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


def square_and_add(
    value: ArrayLike,
    limits: Sequence[ArrayLike],
    other: ArrayLike,
    other_limits: Sequence[ArrayLike],
    *,
    weight: float = 1.0,
) -> Interval:
    """Interval of value − weight × other, from the interval of each (MOVER, Zou & Donner 2008).

    `weight` is 0 or more. Of two shares with Wilson's limits it is Newcombe's interval.

    Examples:
        >>> low, high = square_and_add(0.5, (0.44, 0.57), 0.4, (0.32, 0.45))
        >>> print(f"{low:.3f} {high:.3f}")
        0.022 0.206
    """
    value, low, high, other, other_low, other_high = _arrays(value, *limits, other, *other_limits)
    gap = value - weight * other
    down = np.hypot(value - low, weight * (other_high - other))
    up = np.hypot(high - value, weight * (other - other_low))
    return gap - down, gap + up


def newcombe(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    z: ArrayLike,
) -> Interval:
    """Newcombe hybrid-score interval of the gap, group − reference.

    Examples:
        >>> low, high = newcombe(56, 70, 48, 80, z=1.959964)
        >>> print(f"{low:.4f} {high:.4f}")
        0.0524 0.3339
    """
    hits, n, hits_reference, n_reference = _arrays(hits, n, hits_reference, n_reference)
    own, other = wilson(hits, n, z=z), wilson(hits_reference, n_reference, z=z)
    with np.errstate(all="ignore"):
        share, reference = hits / n, hits_reference / n_reference
    low, high = square_and_add(share, own, reference, other)
    return np.maximum(low, -1.0), np.minimum(high, 1.0)


def miettinen_nurminen_variance(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    gap: ArrayLike,
) -> FloatArray:
    """Variance of the observed gap if the true gap were `gap`, by the restricted likelihood.

    The restricted maximum is the closed-form root of a cubic (Miettinen & Nurminen 1985).
    """
    k1, n1, k2, n2, gap = _arrays(hits, n, hits_reference, n_reference, gap)
    with np.errstate(all="ignore"):
        total = n1 + n2
        # Counting the rarer of hits and misses keeps the digits of rates close to 1.
        common = k1 + k2 > total / 2
        k1, k2 = np.where(common, n1 - k1, k1), np.where(common, n2 - k2, k2)
        gap = np.where(common, -gap, gap)
        third = ((n1 + 2 * n2) * gap - total - k1 - k2) / (3 * total)
        l1 = ((n2 * gap - total - 2 * k2) * gap + k1 + k2) / total
        l0 = k2 * gap * (1 - gap) / total
        # Products, since a general power costs as much as all the rest of this function.
        square = third * third
        q = third * (square - l1 / 2) + l0 / 2
        root = np.sqrt(np.maximum(square - l1 / 3, 0.0))
        signed = np.where(q < 0, -root, root)
        # Where the root is 0 the cubic has one triple root and the angle does not matter.
        cosine = np.where(root > 1e-9, np.clip(q / (signed * signed * signed), -1.0, 1.0), 0.0)
        reference = 2 * signed * np.cos((np.pi + np.arccos(cosine)) / 3) - third
        least, most = np.maximum(0.0, -gap), np.minimum(1.0, 1 - gap)
        reference = np.clip(reference, least, most)
        # The angle of a rare rate loses digits (1e-4 of it at 3 of ten million): Newton's steps.
        for _ in range(3):
            steep = (3 * reference + 6 * third) * reference + l1
            excess = ((reference + 3 * third) * reference + l1) * reference + l0
            step = np.where(np.abs(steep) > 1e-3 * np.abs(l1), excess / steep, 0.0)
            reference = reference - np.where(np.abs(step) < 1e-6, step, 0.0)
        reference = np.clip(reference, least, most)
        share = np.clip(reference + gap, 0.0, 1.0)
        spread = share * (1 - share) / n1 + reference * (1 - reference) / n2
        return np.asarray(spread * total / (total - 1))


def miettinen_nurminen_p(
    hits: ArrayLike, n: ArrayLike, hits_reference: ArrayLike, n_reference: ArrayLike
) -> FloatArray:
    """Two-sided p of equal rates by the Miettinen–Nurminen score test; also the test of ratio 1.

    1 where nobody or everybody in both groups is a hit: nothing speaks against equal rates.

    Examples:
        >>> round(float(miettinen_nurminen_p(56, 70, 48, 80)), 4)
        0.0083
    """
    k1, n1, k2, n2 = _arrays(hits, n, hits_reference, n_reference)
    with np.errstate(all="ignore"):
        total = n1 + n2
        pooled = (k1 + k2) / total
        variance = pooled * (1 - pooled) * (1 / n1 + 1 / n2) * total / (total - 1)
        score = (k1 / n1 - k2 / n2) / np.sqrt(variance)
        p = 2 * ndtr(-np.abs(score))
        alike = (pooled <= 0) | (pooled >= 1)
        defined = (n1 > 0) & (n2 > 0) & (total > 1)
        return np.where(defined, np.where(alike, 1.0, p), np.nan)


def koopman(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    z: ArrayLike,
) -> Interval:
    """Koopman score interval of the ratio, group ÷ reference.

    Without hits in the reference the ratio itself is undefined, but its lower limit exists and
    the upper one is infinite; without hits in either the interval is [0, infinity].

    Examples:
        >>> low, high = koopman(56, 70, 48, 80, z=1.959964)
        >>> print(f"{low:.4f} {high:.4f}")
        1.0798 1.6708
    """
    k1, n1, k2, n2, z = np.broadcast_arrays(*_arrays(hits, n, hits_reference, n_reference, z))
    with np.errstate(all="ignore"):
        centre = np.clip(np.log(k1 / n1 / (k2 / n2)), -LOG_END, LOG_END)
    # With neither side a hit nothing is rejected; any centre will do.
    centre = np.where((k1 <= 0) & (k2 <= 0), 0.0, centre)
    with np.errstate(all="ignore"):
        # Katz's limits with half a case added: a start close to the end.
        width = z * np.sqrt(1 / (k1 + 0.5) + 1 / (k2 + 0.5) - 1 / (n1 + 1) - 1 / (n2 + 1))
    defined = (n1 > 0) & (n2 > 0)
    wanted = np.stack([defined & (k1 > 0), defined & (k2 > 0)])
    counts = (k1, n1, k2, n2)
    found = score_limits(ratio_score, counts, z, centre=centre, width=width, wanted=wanted)
    low, high = np.exp(found)
    low = np.where(k1 <= 0, 0.0, low)
    high = np.where(k2 <= 0, np.inf, high)
    return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


def base_group(
    rates: ArrayLike,
    cases: ArrayLike,
    *,
    least_share: float = 0.02,
    least_cases: float = 50,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Group with the highest rate over the last axis among those large enough, and which are.

    Against a highest group of a few people every other group looks bad: with equal rates and one
    group of 18 the impact ratio falls below 0.8 in 23 % of audits. −1 where no group is large
    enough.

    Examples:
        >>> base, eligible = base_group([0.9, 0.6, 0.5], [18, 400, 600])
        >>> int(base), eligible.tolist()
        (1, [False, True, True])
    """
    rate, n = np.broadcast_arrays(np.asarray(rates, np.float64), np.asarray(cases, np.float64))
    total = n.sum(axis=-1, keepdims=True)
    eligible = np.isfinite(rate) & (n >= least_cases) & (n >= least_share * total)
    best = np.where(eligible, rate, -np.inf).argmax(axis=-1)
    return np.where(eligible.any(axis=-1), best, -1), eligible


def agresti_min(b: ArrayLike, c: ArrayLike, n: ArrayLike, *, z: ArrayLike) -> Interval:
    """Agresti–Min interval of the paired gap (b − c) ÷ n.

    `b` counts the pairs that are a hit on the first side only, `c` on the second only.

    Examples:
        >>> low, high = agresti_min(14, 5, 200, z=1.959964)
        >>> print(f"{low:.4f} {high:.4f}")
        0.0016 0.0875
    """
    b, c, n, z = _arrays(b, c, n, z)
    with np.errstate(all="ignore"):
        centre = (b - c) / (n + 2)
        half = z * np.sqrt(((b + c + 1) / (n + 2) - centre**2) / (n + 2))
        defined = n > 0
        low, high = np.maximum(centre - half, -1.0), np.minimum(centre + half, 1.0)
        return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


def mcnemar_mid_p(b: ArrayLike, c: ArrayLike) -> FloatArray:
    """McNemar mid-p of equal paired rates, two-sided; 1 where no pair differs.

    Examples:
        >>> round(float(mcnemar_mid_p(14, 5)), 4)
        0.0414
    """
    b, c = _arrays(b, c)
    total, least = b + c, np.minimum(b, c)
    with np.errstate(all="ignore"):
        up_to = betainc(total - least, least + 1, 0.5)
        ways = gammaln(total + 1) - gammaln(least + 1) - gammaln(total - least + 1)
        p = 2 * up_to - np.exp(ways - total * np.log(2))
    return np.where(total > 0, np.minimum(p, 1.0), np.where(total == 0, 1.0, np.nan))


def rate(hits: float, n: float, *, level: float = 0.95) -> Estimate:
    """Share of hits among n cases, with its Wilson score interval.

    Wilson rather than Wald: small groups are the usual case in an audit, and the Wald
    interval leaves [0, 1] or collapses to a point there (Brown, Cai & DasGupta 2001).

    Examples:
        >>> print(rate(8, 10))
        0.800 [0.490, 0.943] n=10
        >>> print(rate(0, 0))
        undefined: no cases in the group
    """
    _check("hits", hits, n)
    if n == 0:
        return Estimate.none("no cases in the group", level=level, n=0, method="wilson")
    low, high = wilson(hits, n, z=critical(level))
    return Estimate(
        value=hits / n, low=float(low), high=float(high), level=level, n=n, method="wilson"
    )


def gap(
    hits: float, n: float, hits_reference: float, n_reference: float, *, level: float = 0.95
) -> Estimate:
    """Rate of the group minus rate of the reference: Newcombe interval, Miettinen–Nurminen p.

    Examples:
        >>> print(gap(56, 70, 48, 80))
        0.200 [0.052, 0.334] n=70 against n=80
        >>> print(gap(3, 10, 0, 0))
        undefined: no cases in the reference
    """
    counts = (hits, n, hits_reference, n_reference)
    return _compared(counts, level=level, interval=newcombe, value=lambda own, other: own - other)


def ratio(
    hits: float, n: float, hits_reference: float, n_reference: float, *, level: float = 0.95
) -> Estimate:
    """Rate of the group divided by rate of the reference: Koopman interval, score test of 1.

    Without hits in the reference the value is undefined; `low` then still holds.

    Examples:
        >>> print(ratio(56, 70, 48, 80))
        1.333 [1.080, 1.671] n=70 against n=80
        >>> print(ratio(3, 10, 0, 10))
        undefined: no hits in the reference
    """
    counts = (hits, n, hits_reference, n_reference)
    return _compared(
        counts,
        level=level,
        interval=koopman,
        value=lambda own, other: own / other if other else None,
    )


def _compared(
    counts: tuple[float, float, float, float],
    *,
    level: float,
    interval: Callable[..., Interval],
    value: Callable[[float, float], float | None],
) -> Estimate:
    """Two rates compared: a value of both, its interval, and the score test of equal rates."""
    hits, n, hits_reference, n_reference = counts
    _check("hits", hits, n)
    _check("hits_reference", hits_reference, n_reference)
    shared: dict[str, Any] = {"level": level, "n": n, "n_reference": n_reference}
    shared["method"] = interval.__name__
    reason = _nobody(n, n_reference)
    if reason:
        return Estimate.none(reason, **shared)
    low, high = interval(*counts, z=critical(level))
    found = value(hits / n, hits_reference / n_reference)
    return Estimate(
        value=found,
        low=float(low),
        high=number(float(high)),
        p=number(float(miettinen_nurminen_p(*counts))),
        undefined=None if found is not None else "no hits in the reference",
        **shared,
    )


def paired_gap(b: float, c: float, n: float, *, level: float = 0.95) -> Estimate:
    """Paired gap (b − c) ÷ n over n pairs: Agresti–Min interval, McNemar mid-p.

    Examples:
        >>> print(paired_gap(14, 5, 200))
        0.045 [0.002, 0.088] n=200
        >>> print(paired_gap(0, 0, 0))
        undefined: no pairs
    """
    _check("b + c", b + c, n)
    if n == 0:
        return Estimate.none("no pairs", level=level, n=0, method="agresti-min")
    low, high = agresti_min(b, c, n, z=critical(level))
    return Estimate(
        value=(b - c) / n,
        low=float(low),
        high=float(high),
        level=level,
        n=n,
        p=float(mcnemar_mid_p(b, c)),
        method="agresti-min",
    )


def _arrays(*values: ArrayLike) -> tuple[FloatArray, ...]:
    return tuple(np.asarray(value, dtype=np.float64) for value in values)


def _nobody(n: float, n_reference: float) -> str | None:
    if n == 0:
        return "no cases in the group"
    return "no cases in the reference" if n_reference == 0 else None


def _check(name: str, hits: float, n: float) -> None:
    if not 0 <= hits <= n:
        raise UsageError(
            f"{name}={hits:g} of n={n:g} is not a count of cases. {name} must lie between 0 and n."
        )
