"""A gap watched period by period: what it is so far, whether it changed, whether it is outside.

A test repeated at every look finds a gap that is not there. Everything here holds over all looks
together: a confidence sequence for the average gap so far, a detector of change that dates it, a
detector of a gap outside its limit now, and exact companions where events are rare.
Arrays run over periods in their last axis; leading axes are series.
"""

from dataclasses import dataclass
from math import e

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, lambertw, log_ndtr, logsumexp

from evenhand.stats.estimate import FloatArray

# Verdicts and detectors begin after this many periods: before, noise between periods is unknown.
BURN_IN = 8
# Rare events: fewer expected events or non-events than this, and normal limits do not hold yet.
FEWEST_EVENTS = 5.0
# How many periods back an onset is looked for.
MOST_ONSETS = 104
# A period's own level is drawn to the level so far as if it had this many cases more.
_PRIOR_CASES = 20.0
_BETS = np.geomspace(0.005, 0.45, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSoFar:
    """The average gap up to each look, its standard error, and each period's own gap and error.

    `between` is the variance of the gap from period to period beyond sampling, as known before
    each period; `ready` says from which look on a verdict may be given.
    """

    value: FloatArray
    error: FloatArray
    sampling_error: FloatArray
    gaps: FloatArray
    errors: FloatArray
    between: FloatArray
    ready: NDArray[np.bool_]

    @property
    def spread(self) -> FloatArray:
        """Standard error of each period's gap with the noise between periods."""
        return np.asarray(np.sqrt(self.errors**2 + self.between))


def gap_so_far(
    hits: ArrayLike, n: ArrayLike, hits_reference: ArrayLike, n_reference: ArrayLike
) -> GapSoFar:
    """The gap within periods, group − reference, averaged by Mantel–Haenszel up to each look.

    Comparing within periods keeps a level that drifts for everybody out of the gap. The error is
    the largest of what sampling explains and what the periods themselves show.

    Examples:
        >>> found = gap_so_far([41, 38, 36], [50, 48, 52], [40, 60, 45], [49, 75, 55])
        >>> found.value.round(4).tolist()
        [0.0037, -0.0028, -0.0436]
    """
    k1, n1, k2, n2 = _counts(hits, n, hits_reference, n_reference)
    looks = np.arange(1, k1.shape[-1] + 1)
    weight = n1 * n2 / (n1 + n2)
    gaps = k1 / n1 - k2 / n2
    total = np.cumsum(weight, axis=-1)
    weighted = weight * gaps
    value = np.cumsum(weighted, axis=-1) / total
    square = weight**2
    squares = np.cumsum(square, axis=-1)
    spread = np.cumsum(square * (_own_variance(k1, n1) + _own_variance(k2, n2)), axis=-1)
    sums = [np.cumsum(part, axis=-1) for part in (k1, n1, k2, n2)]
    rates = _rates_of_sums(*sums)
    pooled = sum(
        rate * (1 - rate) * np.cumsum(square / m, axis=-1) for rate, m in zip(rates, (n1, n2))
    )
    sampling = np.maximum(spread, pooled) / total**2
    errors = _errors_at(*_moved_rates(*rates, k1, n1, k2, n2), n1, n2)
    known = _between_so_far(gaps, errors)
    apart = (
        np.cumsum(weighted**2, axis=-1)
        - 2 * value * np.cumsum(square * gaps, axis=-1)
        + value**2 * squares
    )
    with np.errstate(all="ignore"):
        seen = np.where(looks >= BURN_IN, looks / (looks - 1) * apart / total**2, 0.0)
    noisy = sampling + known * squares / total**2
    hits_so_far, cases_so_far = sums[0] + sums[2], sums[1] + sums[3]
    level = hits_so_far / cases_so_far
    enough = np.minimum(sums[1], sums[3]) * np.minimum(level, 1 - level) >= FEWEST_EVENTS
    return GapSoFar(
        value=value,
        error=np.sqrt(np.maximum.reduce([sampling, seen, noisy])),
        sampling_error=np.sqrt(spread) / total,
        gaps=gaps,
        errors=errors,
        between=_known_before(known),
        ready=(looks >= BURN_IN) & enough,
    )


def paired_gap_so_far(
    gained: ArrayLike, lost: ArrayLike, n: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """A gap from pairs up to each look, (gained − lost) ÷ n, and its standard error.

    Examples:
        >>> value, error = paired_gap_so_far([3, 4], [1, 2], [50, 50])
        >>> value.round(3).tolist(), error.round(4).tolist()
        ([0.04, 0.04], [0.0396, 0.0314])
    """
    b, c, m = (np.cumsum(np.asarray(part, np.float64), axis=-1) for part in (gained, lost, n))
    return (b - c) / m, np.sqrt(b + c - (b - c) ** 2 / m) / m


def period_errors(
    hits: ArrayLike, n: ArrayLike, hits_reference: ArrayLike, n_reference: ArrayLike
) -> FloatArray:
    """Standard error of each period's gap, by the rates that both sides have had so far.

    The rates are moved to the period's own level, so that a level that steps or drifts for
    everybody does not look like noise; each period's error is as known at its own look.
    """
    k1, n1, k2, n2 = _counts(hits, n, hits_reference, n_reference)
    return _errors_at(*local_rates(k1, n1, k2, n2), n1, n2)


def local_rates(
    hits: ArrayLike, n: ArrayLike, hits_reference: ArrayLike, n_reference: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Both sides' rates so far, moved to the level of each period."""
    k1, n1, k2, n2 = _counts(hits, n, hits_reference, n_reference)
    sums = (np.cumsum(part, axis=-1) for part in (k1, n1, k2, n2))
    return _moved_rates(*_rates_of_sums(*sums), k1, n1, k2, n2)


def _moved_rates(
    first: FloatArray,
    second: FloatArray,
    k1: FloatArray,
    n1: FloatArray,
    k2: FloatArray,
    n2: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Rates so far, moved to the level of each period by their odds."""
    expected = (n1 * first + n2 * second) / (n1 + n2)
    level = (k1 + k2 + _PRIOR_CASES * expected) / (n1 + n2 + _PRIOR_CASES)
    shift = level / (1 - level) * (1 - expected) / expected
    odds = [rate / (1 - rate) * shift for rate in (first, second)]
    return odds[0] / (1 + odds[0]), odds[1] / (1 + odds[1])


def between_variance(gaps: ArrayLike, errors: ArrayLike) -> FloatArray:
    """Variance of a gap from period to period beyond its sampling, as known before each period.

    From successive differences, so that a gap that changes once does not count as noise. The
    first periods share what is known after eight.
    """
    known = _between_so_far(np.asarray(gaps, np.float64), np.asarray(errors, np.float64))
    return _known_before(known)


def _known_before(known: FloatArray) -> FloatArray:
    """What is known at each look, as it was before it; the first periods share what is later."""
    before = np.concatenate([np.zeros_like(known[..., :1]), known[..., :-1]], axis=-1)
    if before.shape[-1] >= BURN_IN:
        before[..., :BURN_IN] = known[..., BURN_IN - 1 : BURN_IN]
    return before


def between_upper(gaps: ArrayLike, errors: ArrayLike) -> FloatArray:
    """Upper limit (90 %) of the standard deviation between periods, as known before each period.

    Successive differences overlap, so their squares carry two thirds of their number.
    """
    d, s = np.asarray(gaps, np.float64), np.asarray(errors, np.float64)
    change, precision = _successive(d, s)
    total = np.cumsum(precision * change**2, axis=-1)
    count = np.arange(1, change.shape[-1] + 1)
    freedom = 2 * count / 3
    # chdtri gives the point that is exceeded with this probability.
    square = (total * freedom / chdtri(freedom, 0.90) - count) / (2 * np.cumsum(precision, axis=-1))
    known = np.sqrt(np.maximum(square, 0.0))
    shape = (*d.shape[:-1], min(2, d.shape[-1]))
    return np.concatenate([np.zeros(shape), known[..., : max(d.shape[-1] - 2, 0)]], axis=-1)


def half_width(error: ArrayLike, *, tau: ArrayLike, alpha: float) -> FloatArray:
    """Half-width of a confidence sequence: it holds at all looks together.

    `tau` is where the sequence is narrowest, on the gap's scale: the limit agreed on.

    Examples:
        >>> round(float(half_width(0.01, tau=0.05, alpha=0.05)), 4)
        0.031
    """
    s, t = np.asarray(error, np.float64), np.asarray(tau, np.float64)
    ratio = (t / s) ** 2
    return np.asarray(s * np.sqrt((1 + 1 / ratio) * (2 * np.log(1 / alpha) + np.log1p(ratio))))


def best_tau(error: float, *, alpha: float) -> float:
    """The tau that makes the sequence narrowest at this standard error.

    Examples:
        >>> round(best_tau(0.01, alpha=0.05), 5)
        0.02866
    """
    return float(error * np.sqrt(-lambertw(-(alpha**2) / e, -1).real - 1))


def log_evidence(value: ArrayLike, error: ArrayLike, *, tau: ArrayLike) -> FloatArray:
    """Logarithm of the evidence (an e-value) against no gap."""
    square, wide = np.asarray(error, np.float64) ** 2, np.asarray(tau, np.float64) ** 2
    fit = (np.asarray(value, np.float64) ** 2 / square) * wide / (wide + square)
    return np.asarray(0.5 * fit - 0.5 * np.log1p(wide / square))


def log_evidence_above(
    value: ArrayLike, error: ArrayLike, *, limit: ArrayLike, tau: ArrayLike
) -> FloatArray:
    """Logarithm of the evidence against a gap of at most the limit."""
    s, t = np.asarray(error, np.float64), np.asarray(tau, np.float64)
    x = (np.asarray(value, np.float64) - np.asarray(limit)) / s * t / np.sqrt(t**2 + s**2)
    return np.asarray(np.log(2) - 0.5 * np.log1p(t**2 / s**2) + 0.5 * x**2 + log_ndtr(x))


def log_evidence_outside(
    value: ArrayLike, error: ArrayLike, *, low: ArrayLike, high: ArrayLike, tau: ArrayLike
) -> FloatArray:
    """Logarithm of the evidence against a gap between two limits.

    Examples:
        >>> round(float(log_evidence_outside(0.08, 0.012, low=-0.05, high=0.05, tau=0.05)), 4)
        1.4941
    """
    v = np.asarray(value, np.float64)
    above = log_evidence_above(v, error, limit=high, tau=tau)
    below = log_evidence_above(-v, error, limit=-np.asarray(low), tau=tau)
    return np.asarray(np.logaddexp(above, below) - np.log(2))


def most_evidence_outside(
    value: ArrayLike, error: ArrayLike, *, low: ArrayLike, high: ArrayLike, tau: ArrayLike
) -> FloatArray:
    """What `log_evidence_outside` is at most, without the normal law: quick where many are far.

    Examples:
        >>> round(float(most_evidence_outside(0.08, 0.012, low=-0.05, high=0.05, tau=0.05)), 4)
        1.5254
    """
    v, s, t = (np.asarray(part, np.float64) for part in (value, error, tau))
    scale = t / (s * np.sqrt(t**2 + s**2))
    beyond = np.maximum(v - np.asarray(high), np.asarray(low) - v) * scale
    # The side that is further inside has no more than it has at its limit.
    near = np.where(beyond > 0, 0.5 * beyond**2 + np.log(2), 0.0)
    return np.asarray(np.logaddexp(near, 0.0) - np.log(2) - 0.5 * np.log1p((t / s) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Onsets:
    """Evidence by (look, onset) on the log scale; −∞ where an onset cannot be known yet.

    `first` is the period of the first onset and `since` the first look, both counted from 0;
    `size` the change from before to after an onset and `error` its standard error.
    """

    log_evidence: FloatArray
    size: FloatArray
    error: FloatArray
    first: int
    since: int = 0

    @property
    def total(self) -> FloatArray:
        """Logarithm of the evidence over all onsets, at each look."""
        with np.errstate(all="ignore"):
            return np.asarray(logsumexp(self.log_evidence, axis=-1))

    def likeliest(self, look: int) -> tuple[int, float]:
        """The likeliest onset at a look, counted from 0, and its share of the evidence."""
        row = self.log_evidence[look - self.since]
        place = int(np.argmax(row))
        return self.first + place, float(np.exp(row[place] - logsumexp(row)))


def change_evidence(
    gaps: ArrayLike, spread: ArrayLike, *, tau: float, start: int = BURN_IN + 1, since: int = 0
) -> Onsets:
    """Evidence that the gap after an onset differs from before it, for one series.

    `spread` is each period's standard error with the noise between periods; `start` the first
    onset, counted from 1, and `since` the first look, from 0. Onsets further back than
    `MOST_ONSETS` periods are no longer searched.

    Examples:
        >>> gaps = [0.01, -0.02, 0.0, 0.015, -0.01, 0.09, 0.11, 0.08, 0.1]
        >>> found = change_evidence(gaps, [0.02] * 9, tau=0.05, start=5)
        >>> found.likeliest(8)[0] + 1, round(float(found.total[-1]), 3)
        (6, 22.531)
    """
    d, s = (np.asarray(part, np.float64) for part in (gaps, spread))
    first = max(start - 1, since - MOST_ONSETS + 1)
    size, variance = _before_and_after(d, 1 / s**2, first=first, since=since)
    with np.errstate(all="ignore"):
        error = np.sqrt(variance)
        evidence = log_evidence(size, error, tau=tau)
    looks, onsets = np.arange(since, d.size)[:, None], np.arange(first, d.size)[None]
    known = (onsets <= looks) & (looks - onsets < MOST_ONSETS)
    return Onsets(
        log_evidence=np.where(known, evidence, -np.inf),
        size=size,
        error=error,
        first=first,
        since=since,
    )


def limit_evidence(
    gaps: ArrayLike, spread: ArrayLike, *, low: float, high: float, tau: float, since: int = 0
) -> Onsets:
    """Evidence that the gap has been outside its limits since an onset, for one series."""
    d, s = (np.asarray(part, np.float64) for part in (gaps, spread))
    information = 1 / s**2
    weighted = np.concatenate([[0.0], np.cumsum(information * d)])
    total = np.concatenate([[0.0], np.cumsum(information)])
    first = max(0, since - MOST_ONSETS + 1)
    looks, onsets = np.arange(since, d.size)[:, None], np.arange(first, d.size)[None]
    known = (onsets <= looks) & (looks - onsets < MOST_ONSETS)
    with np.errstate(all="ignore"):
        mass = np.where(known, total[looks + 1] - total[onsets], np.nan)
        size = (weighted[looks + 1] - weighted[onsets]) / mass
        error = 1 / np.sqrt(mass)
        evidence = log_evidence_outside(size, error, low=low, high=high, tau=tau)
    return Onsets(
        log_evidence=np.where(known, evidence, -np.inf),
        size=size,
        error=error,
        first=first,
        since=since,
    )


def discounted(onsets: Onsets) -> FloatArray:
    """Logarithm of the evidence at each look where no horizon is planned: 1 ÷ α is its alarm."""
    place = np.arange(onsets.first + 1, onsets.first + 1 + onsets.log_evidence.shape[-1])
    share = np.log(52.0) - np.log(place + 51.0) - np.log(place + 52.0)
    return np.asarray(logsumexp(onsets.log_evidence + share, axis=-1))


def two_rates_evidence(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    gap: float = 0.0,
) -> FloatArray:
    """Logarithm of exact evidence against this gap of two rates, cumulated over periods.

    Each period is bet on by the rates before it, against the rates with this gap that are
    nearest to them: exact however rare the events are.
    """
    k1, n1, k2, n2 = _counts(hits, n, hits_reference, n_reference)
    before = [_rate_before(k, m) for k, m in ((k1, n1), (k2, n2))]
    first, second = nearest_rates(before[0], before[1], n1, n2, gap=gap)
    log = np.zeros_like(k1)
    for k, m, bet, null in ((k1, n1, before[0], first), (k2, n2, before[1], second)):
        log = log + k * np.log(bet / null) + (m - k) * np.log((1 - bet) / (1 - null))
    return np.cumsum(log, axis=-1)


def nearest_rates(
    rate: ArrayLike, reference: ArrayLike, n: ArrayLike, n_reference: ArrayLike, *, gap: float
) -> tuple[FloatArray, FloatArray]:
    """The two rates with this gap between them that are nearest to given ones in likelihood.

    Examples:
        >>> first, second = nearest_rates(0.7, 0.85, 50, 60, gap=0.0)
        >>> round(float(first), 4), round(float(second), 4)
        (0.7818, 0.7818)
    """
    p1, p2, n1, n2 = np.broadcast_arrays(
        *(np.asarray(part, np.float64) for part in (rate, reference, n, n_reference))
    )
    low = np.full(p1.shape, max(0.0, -gap))
    high = np.full(p1.shape, min(1.0, 1.0 - gap))
    for _ in range(60):
        middle = (low + high) / 2
        moved = middle + gap
        with np.errstate(all="ignore"):
            slope = n1 * (p1 / moved - (1 - p1) / (1 - moved))
            slope += n2 * (p2 / middle - (1 - p2) / (1 - middle))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return (low + high) / 2 + gap, (low + high) / 2


def betting_evidence(gained: ArrayLike, lost: ArrayLike, n: ArrayLike, *, gap: float) -> FloatArray:
    """Logarithm of exact evidence against this paired gap, by a mixture of bets.

    Examples:
        >>> round(float(betting_evidence(30, 12, 500, gap=0.0)), 4)
        1.6792
    """
    b, c, m = (np.asarray(part, np.float64)[..., None] for part in (gained, lost, n))
    stakes = np.concatenate([_BETS, -_BETS]) / (1 + abs(gap))
    log = (
        b * np.log1p(stakes * (1 - gap))
        + c * np.log1p(stakes * (-1 - gap))
        + (m - b - c) * np.log1p(-stakes * gap)
    )
    return np.asarray(logsumexp(log, axis=-1) - np.log(stakes.size))


def _counts(*parts: ArrayLike) -> tuple[FloatArray, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(part, np.float64) for part in parts)))


def _own_variance(k: FloatArray, n: FloatArray) -> FloatArray:
    """Unbiased variance of a period's rate; one case alone has none."""
    with np.errstate(all="ignore"):
        return np.where(n > 1, k * (n - k) / (n**2 * (n - 1)), 0.0)


def _rates_of_sums(
    k1: FloatArray, n1: FloatArray, k2: FloatArray, n2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Both sides' rates by their hits and cases so far."""
    return (k1 + 0.5) / (n1 + 1), (k2 + 0.5) / (n2 + 1)


def _errors_at(first: FloatArray, second: FloatArray, n1: FloatArray, n2: FloatArray) -> FloatArray:
    """Standard error of each period's gap where the rates are these."""
    return np.asarray(np.sqrt(first * (1 - first) / n1 + second * (1 - second) / n2))


def _rate_before(k: FloatArray, n: FloatArray) -> FloatArray:
    return np.asarray((np.cumsum(k, axis=-1) - k + 0.5) / (np.cumsum(n, axis=-1) - n + 1))


def _successive(gaps: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Differences of successive gaps, and their precision by sampling alone."""
    change = np.diff(gaps, axis=-1)
    return change, 1 / (errors[..., 1:] ** 2 + errors[..., :-1] ** 2)


def _between_so_far(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    """Variance between periods as known at each look."""
    change, precision = _successive(gaps, errors)
    excess = np.cumsum(precision * change**2 - 1, axis=-1)
    with np.errstate(all="ignore"):
        known = np.maximum(excess / (2 * np.cumsum(precision, axis=-1)), 0.0)
    return np.concatenate([np.zeros_like(gaps[..., :1]), known], axis=-1)


def _before_and_after(
    gaps: FloatArray, information: FloatArray, *, first: int, since: int
) -> tuple[FloatArray, FloatArray]:
    """Change of the mean at every onset as seen at every look, and its variance."""
    weighted = np.concatenate([[0.0], np.cumsum(information * gaps)])
    total = np.concatenate([[0.0], np.cumsum(information)])
    looks, onsets = np.arange(since, gaps.size)[:, None], np.arange(first, gaps.size)[None]
    with np.errstate(all="ignore"):
        before, after = total[onsets], total[looks + 1] - total[onsets]
        size = (weighted[looks + 1] - weighted[onsets]) / after - weighted[onsets] / before
        return size, np.where(onsets <= looks, 1 / before + 1 / after, np.nan)
