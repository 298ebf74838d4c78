"""Cases needed: to settle a verdict that cannot be told yet, and before collecting any."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import bonferroni
from evenhand.stats.rates import koopman, miettinen_nurminen_score, newcombe, wilson
from evenhand.stats.spread import Size, rms

# Nobody collects more than this; beyond it the answer is that no number would do.
_MOST = 1e12
_NEAR = 0.01

AT_LIMIT = "no number would: the value is within 1 % of the limit"
REFERENCE_TOO_SMALL = "no number of this group would: the reference is too small"
UNKNOWN = "no value to settle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """Further cases that would settle a verdict at the present value, or why none would.

    `cases` is 0 where it is settled already and NaN where `reason` says something.
    """

    cases: FloatArray
    reason: NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Cases to collect so that a gap of this size would probably be found."""

    cases_per_group: int
    cases: int
    groups: int
    rate: float
    gap: float
    level: float
    power: float
    family: str
    z: float

    def __str__(self) -> str:
        return (
            f"{self.cases_per_group:,} cases in each of {self.groups} groups, {self.cases:,} in all"
        )


def equivalence_p(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    low: ArrayLike,
    high: ArrayLike,
) -> FloatArray:
    """P-value of a gap outside the band (low, high): small when it is shown to lie within.

    The larger of two one-sided score tests, one at each limit.

    Examples:
        >>> p = equivalence_p(500, 1000, 500, 1000, low=-0.05, high=0.05)
        >>> round(float(p), 4)
        0.0126
    """
    counts = (hits, n, hits_reference, n_reference)
    above = ndtr(-miettinen_nurminen_score(*counts, gap=low))
    below = ndtr(miettinen_nurminen_score(*counts, gap=high))
    return np.asarray(np.maximum(above, below))


def further_cases(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    low: ArrayLike,
    high: ArrayLike,
    z: ArrayLike,
) -> Further:
    """Further cases of this group that would put the gap's interval on one side of the limits.

    Rates and the reference stay as they are. The band [low, high] may be open (±infinity). A
    value within 1 % of a limit (of its size, or of the band's width for a limit of 0) can never
    be settled; nor can one closer to a limit than the reference alone is uncertain.

    Examples:
        >>> more = further_cases(60, 100, 5000, 10000, low=-0.05, high=0.05, z=1.96)
        >>> int(more.cases), str(more.reason)
        (296, '')
    """
    k, m, k2, m2 = (np.asarray(part, np.float64) for part in (hits, n, hits_reference, n_reference))
    with np.errstate(all="ignore"):
        share = k / m
        value = share - k2 / m2
    return _settle(
        value, m, lambda size: newcombe(share * size, size, k2, m2, z=z), low=low, high=high
    )


def further_cases_ratio(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    low: ArrayLike,
    high: ArrayLike,
    z: ArrayLike,
) -> Further:
    """Further cases of this group that would settle its ratio to the reference.

    Examples:
        >>> more = further_cases_ratio(60, 100, 5000, 10000, low=0.8, high=1.25, z=1.96)
        >>> int(more.cases)
        1808
    """
    k, m, k2, m2 = (np.asarray(part, np.float64) for part in (hits, n, hits_reference, n_reference))
    with np.errstate(all="ignore"):
        share = k / m
        value = np.where(k2 > 0, share / (k2 / m2), np.nan)
    return _settle(
        value, m, lambda size: koopman(share * size, size, k2, m2, z=z), low=_open(low), high=high
    )


def further_cases_rate(
    hits: ArrayLike, n: ArrayLike, *, low: ArrayLike, high: ArrayLike, z: ArrayLike
) -> Further:
    """Further cases that would settle a rate, or any share such as a flip rate.

    Examples:
        >>> int(further_cases_rate(3, 100, low=0.0, high=0.05, z=1.96).cases)
        357
    """
    k, m = np.asarray(hits, np.float64), np.asarray(n, np.float64)
    with np.errstate(all="ignore"):
        share = k / m
    return _settle(
        share, m, lambda size: wilson(share * size, size, z=z), low=_open(low), high=high
    )


def further_cases_rms(
    gaps: ArrayLike,
    variances: ArrayLike,
    n: ArrayLike,
    *,
    low: ArrayLike,
    high: ArrayLike,
    z: ArrayLike,
    measure: Callable[..., Size] = rms,
) -> Further:
    """Further cases, in all groups and classes at fixed shares, that would settle an RMS.

    `n` is the number of cases now. The corrected value is taken as the truth; the plain one
    would shrink with more cases. `measure=spread` does the same for rates over groups.

    Examples:
        >>> gaps, variances = [0.1, -0.1, 0.08], [0.002, 0.002, 0.002]
        >>> int(further_cases_rms(gaps, variances, 1000, low=0, high=0.05, z=1.96).cases)
        710
    """
    observed, v = np.asarray(gaps, np.float64), np.asarray(variances, np.float64)
    now = np.asarray(n, np.float64)
    present = measure(observed, v, z=z)
    # Gaps with their noise taken out and the new noise put in, so that Q stays where it is.
    scaled_to = np.where(present.corrected > 0, present.corrected, 0.0)

    def limits(size: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):
            smaller = v * (now / size)[..., None]
            noise = measure(observed, smaller, z=z).null
            factor = np.sqrt(scaled_to**2 + noise**2) / present.value
            centre = _centre(observed, measure)
            later = measure(centre + (observed - centre) * factor[..., None], smaller, z=z)
        return later.low, later.high

    value = np.where(np.isfinite(present.value), present.corrected, np.nan)
    return _settle(value, now, limits, low=_open(low), high=high)


def plan(
    rate: float,
    gap: float,
    *,
    groups: int = 2,
    level: float = 0.95,
    power: float = 0.8,
    family: str = "bonferroni",
) -> Plan:
    """Cases per group so that a gap to the reference is found with probability `power`.

    Groups of equal size, the reference at `rate`, one group at `rate + gap`; the two-sided
    score test of each group against the reference, by default shared over all of them.

    Examples:
        >>> print(plan(0.1, 0.03, groups=2))
        1,774 cases in each of 2 groups, 3,548 in all
        >>> print(plan(0.1, 0.03, groups=5))
        2,521 cases in each of 5 groups, 12,605 in all
    """
    other = rate + gap
    _check_plan(rate, gap, groups=groups, level=level, power=power, family=family)
    contrasts = groups - 1 if family == "bonferroni" else 1
    z = bonferroni(level, members=contrasts)
    pooled = (rate + other) / 2
    alike = z * sqrt(2 * pooled * (1 - pooled))
    apart = float(ndtri(power)) * sqrt(rate * (1 - rate) + other * (1 - other))
    cases = ceil((alike + apart) ** 2 / gap**2)
    return Plan(
        cases_per_group=cases,
        cases=cases * groups,
        groups=groups,
        rate=rate,
        gap=gap,
        level=level,
        power=power,
        family=family,
        z=z,
    )


def _settle(
    value: FloatArray,
    n: FloatArray,
    limits: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    *,
    low: ArrayLike,
    high: ArrayLike,
) -> Further:
    """Smallest size at which the interval lies on one side, by bisection on its logarithm."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    value, n, low, high = np.broadcast_arrays(value, n, low, high)

    def settled(size: FloatArray) -> NDArray[np.bool_]:
        with np.errstate(all="ignore"):
            below, above = limits(size)
            within = (below >= low) & (above <= high)
            return np.asarray(within | (below > high) | (above < low))

    start = np.maximum(n, 1.0)
    now, ever = settled(start), settled(np.full_like(start, _MOST))
    few, many = np.log(start), np.full_like(start, np.log(_MOST))
    for _ in range(50):
        middle = (few + many) / 2
        enough = settled(np.exp(middle))
        few, many = np.where(enough, few, middle), np.where(enough, middle, many)
    cases = np.ceil(np.exp(many) - n - 1e-6)
    known = np.isfinite(value) & (n > 0)
    near = _near(value, low, high) & ~now
    reason = np.where(near, AT_LIMIT, np.where(ever | now, "", REFERENCE_TOO_SMALL))
    reason = np.where(known, reason, UNKNOWN)
    cases = np.where(now, 0.0, cases)
    return Further(cases=np.where(reason == "", cases, np.nan), reason=reason)


def _open(low: ArrayLike) -> FloatArray:
    """The lower limit, left open at 0 for measures that cannot fall below it anyway."""
    limit = np.asarray(low, np.float64)
    return np.where(limit <= 0, -np.inf, limit)


def _near(value: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        width = np.where(np.isfinite(high - low), high - low, 0.0)
        close = [
            np.isfinite(limit)
            & (np.abs(value - limit) <= _NEAR * np.where(limit != 0, np.abs(limit), width))
            for limit in (low, high)
        ]
    return np.asarray(close[0] | close[1])


def _centre(observed: FloatArray, measure: Callable[..., Size]) -> FloatArray:
    """Point that the measure counts from: 0 for gaps, the mean for a spread of rates."""
    if measure is rms:
        return np.zeros(())
    known = np.isfinite(observed)
    total = np.where(known, observed, 0.0).sum(-1, keepdims=True)
    return np.asarray(total / known.sum(-1, keepdims=True))


def _check_plan(
    rate: float, gap: float, *, groups: int, level: float, power: float, family: str
) -> None:
    if not 0 < rate < 1:
        raise UsageError(f"rate={rate:g} is not a rate. It must lie between 0 and 1.")
    if gap == 0 or not 0 < rate + gap < 1:
        raise UsageError(
            f"gap={gap:g} leaves the other group at a rate of {rate + gap:g}. "
            "Give a gap other than 0 that keeps rate + gap between 0 and 1."
        )
    if groups < 2:
        raise UsageError(f"groups={groups} leaves nothing to compare. Give 2 or more.")
    for name, share in (("level", level), ("power", power)):
        if not 0 < share < 1:
            raise UsageError(f"{name}={share:g} is not a probability between 0 and 1.")
    if family not in ("bonferroni", "none"):
        raise UsageError(f"family='{family}' is not known. Choose 'bonferroni' or 'none'.")
