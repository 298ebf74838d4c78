"""Cases needed: to settle a verdict that cannot be told yet, and before collecting any."""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import bonferroni
from evenhand.stats.rates import bisect
from evenhand.stats.special import ndtri
from evenhand.stats.spread import QuadraticMoments

# Of numbers within this share of the limit, no amount of data will say on which side they lie.
_NEAR = 0.01
# Four times out of five.
_POWER = float(ndtri(0.8))
# Sixty times what there is now is no advice.
_MOST_TIMES = 60.0

TOO_CLOSE = "too close to the limit to be settled"
TOO_SMALL_A_REFERENCE = "the reference is too small for this group alone to settle it"
UNKNOWN = "no value to settle"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherUnits:
    """Further independent units that would settle a verdict four times out of five.

    `units` are 0 where what there is would do already and NaN where `reason` says something;
    `ratio` is how many times the present number would be needed. It holds if the truth is as the
    value looks now: averaged over what it may be, 59 to 71 % settle.
    """

    units: FloatArray
    ratio: FloatArray
    reason: NDArray[np.str_]


def further_units(
    value: ArrayLike,
    *,
    family_low: ArrayLike,
    family_high: ArrayLike,
    z: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    units: ArrayLike,
    on_log: bool = False,
) -> FurtherUnits:
    """Further units, in all groups at present shares, that would settle a row.

    From the family's interval, at its critical value `z`, and the band [low, high], open where
    infinite: ((z + 0.84)·se ÷ distance to the nearest limit)² times what there is. `units` are
    the independent ones there are now, in all groups: people, clusters, labelers, classes.
    `on_log` for ratios and cost ratios.

    Examples:
        >>> more = further_units(0.09, family_low=0.0312, family_high=0.1488, z=1.96,
        ...                      low=-0.05, high=0.05, units=600)
        >>> int(more.units), str(more.reason)
        (2049, '')
    """
    seen, end, start, q, now = (
        np.asarray(part, np.float64) for part in (value, family_high, family_low, z, units)
    )
    band_low, band_high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    near = _near(seen, band_low, band_high)
    if on_log:
        with np.errstate(all="ignore"):
            seen, start, end, band_low, band_high = (
                np.log(part) for part in (seen, start, end, band_low, band_high)
            )
    with np.errstate(all="ignore"):
        error = (end - start) / (2 * q)
        ratio = ((q + _POWER) * error / _distance(seen, band_low, band_high)) ** 2
    return _further(ratio, now, near)


def further_units_of_group(
    value: ArrayLike,
    *,
    variance: ArrayLike,
    variance_reference: ArrayLike,
    z: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    units: ArrayLike,
    on_log: bool = False,
) -> FurtherUnits:
    """Further units of this group alone, the reference staying as it is.

    Only where the distance to the limit is more than z standard errors of the reference: the
    variance x that is left to this group solves z√(V′ + x) + 0.84√x = d. Variances are those of
    the two sides (of their logarithms with `on_log`); `units` are the group's own.

    Examples:
        >>> more = further_units_of_group(0.09, variance=0.0007, variance_reference=0.0001,
        ...                               z=1.96, low=-0.05, high=0.05, units=600)
        >>> int(more.units)
        2471
    """
    seen, own, theirs, q, now = (
        np.asarray(part, np.float64) for part in (value, variance, variance_reference, z, units)
    )
    band_low, band_high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    near = _near(seen, band_low, band_high)
    with np.errstate(all="ignore"):
        if on_log:
            seen, band_low, band_high = np.log(seen), np.log(band_low), np.log(band_high)
        distance = _distance(seen, band_low, band_high)
        # √(V′ + x) = (d − p√x)/q squared is a quadratic in √x; its positive root.
        square = _POWER**2 - q**2
        linear, constant = -2 * _POWER * distance, distance**2 - q**2 * theirs
        root = np.sqrt(np.maximum(linear**2 - 4 * square * constant, 0.0))
        # The numerically stable form, which also holds where z is 0.84 itself.
        left = 2 * constant / (-linear + root)
        ratio = own / left**2
    possible = distance > q * np.sqrt(theirs)
    found = _further(np.where(possible, ratio, 1.0), now, near)
    unknown = ~np.isfinite(distance)
    lacking = ~possible & ~unknown & ~near
    reason = np.where(lacking, TOO_SMALL_A_REFERENCE, found.reason)
    reason = np.where(unknown, UNKNOWN, reason)
    plain = reason == ""
    return FurtherUnits(
        units=np.where(plain, found.units, np.nan),
        ratio=np.where(plain, found.ratio, np.nan),
        reason=reason,
    )


def further_units_of_size(
    moments: QuadraticMoments, *, z: ArrayLike, low: ArrayLike, high: ArrayLike, units: ArrayLike
) -> FurtherUnits:
    """Further units, in all groups and classes at present shares, that would settle an RMS.

    The smallest r with z·s(KL²) + 0.84·s(x) ≤ |x − KL²|, x = T − trace the sum of squares
    without noise and s²(x) = 4ρx ÷ r + 2·tr S² ÷ r² its spread with r times as many cases. The
    sum is skewed: sizes inside their limit settle .86 to .94, sizes outside .70 to .76.

    Examples:
        >>> from evenhand.stats.spread import quadratic_moments
        >>> found = quadratic_moments([0.1, -0.1, 0.08], variances=[0.002] * 3)
        >>> more = further_units_of_size(found, z=1.96, low=0, high=0.05, units=1000)
        >>> round(float(more.ratio), 1)
        4.3
    """
    q, now = np.asarray(z, np.float64), np.asarray(units, np.float64)
    band_low, band_high = _open(low), np.asarray(high, np.float64)
    total, trace, squared, along = np.broadcast_arrays(
        moments.total, moments.trace, moments.trace_squared, moments.along
    )
    with np.errstate(all="ignore"):
        x = np.maximum(total - trace, 0.0)
        size = np.sqrt(x / moments.members)
        near = _near(size, band_low, band_high)
        ratio = np.full(np.broadcast_shapes(x.shape, band_low.shape, band_high.shape), np.nan)
        for limit in (band_low, band_high):
            wanted = moments.members * limit**2
            needed = _times(x, wanted, squared, along, q)
            ratio = np.where(np.isfinite(limit), np.fmax(ratio, needed), ratio)
    return _further(np.where(np.isfinite(total), ratio, np.nan), now, near)


def _times(
    x: FloatArray, limit: FloatArray, squared: FloatArray, along: FloatArray, z: FloatArray
) -> FloatArray:
    """How many times the cases it takes to tell x from the limit; infinite beyond sixty."""
    x, limit, squared, along, z = np.broadcast_arrays(x, limit, squared, along, z)

    def spare(log_times: FloatArray) -> FloatArray:
        r = np.exp(log_times)

        def deviation(of: FloatArray) -> FloatArray:
            return np.asarray(np.sqrt(4 * along * of / r + 2 * squared / r**2))

        # Positive where there are cases enough.
        return np.asarray(np.abs(x - limit) - z * deviation(limit) - _POWER * deviation(x))

    least, most = np.full(x.shape, -12.0), np.full(x.shape, np.log(_MOST_TIMES) + 1e-9)
    found = np.exp(bisect(spare, least, most))
    return np.where(spare(most) > 0, found, np.inf)


def units_for_floor(
    n: ArrayLike, n_reference: ArrayLike, *, floor: float, units: ArrayLike
) -> tuple[FloatArray, NDArray[np.str_]]:
    """Further units, in all groups at present shares, until both sides have so many cases.

    And which side lacks them: "group", "reference" or "" where neither does. The smaller side is
    named where both do; NaN where a side has no case at all, since shares of none stay none.

    Examples:
        >>> more, side = units_for_floor(400, 20, floor=50, units=1000)
        >>> float(more), str(side)
        (1500.0, 'reference')
    """
    own, other, now = (np.asarray(part, np.float64) for part in (n, n_reference, units))
    own, other = np.broadcast_arrays(own, np.where(np.isnan(other), np.inf, other))
    least = np.minimum(own, other)
    with np.errstate(all="ignore"):
        more = np.where(least > 0, now * np.maximum(floor / least - 1, 0.0), np.nan)
    side = np.where(least >= floor, "", np.where(own <= other, "group", "reference"))
    return more, side


def family_critical(
    low: ArrayLike,
    high: ArrayLike,
    *,
    family_low: ArrayLike,
    family_high: ArrayLike,
    z: ArrayLike,
    on_log: bool = False,
) -> FloatArray:
    """Critical value of a family, from how much wider its interval is than the one at z.

    Examples:
        >>> float(family_critical(0.1, 0.3, family_low=0.05, family_high=0.35, z=2.0))
        3.0
    """
    ends = [np.asarray(end, np.float64) for end in (low, high, family_low, family_high)]
    with np.errstate(all="ignore"):
        if on_log:
            ends = [np.log(end) for end in ends]
        wider = (ends[3] - ends[2]) / (ends[1] - ends[0])
    return np.asarray(z, np.float64) * np.where(np.isfinite(wider), np.maximum(wider, 1.0), 1.0)


def _distance(value: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Distance to the nearest limit of a band that may be open."""
    gaps = [np.where(np.isfinite(limit), np.abs(value - limit), np.inf) for limit in (low, high)]
    return np.where(np.isfinite(value), np.minimum(*gaps), np.nan)


def _further(ratio: FloatArray, units: FloatArray, near: NDArray[np.bool_]) -> FurtherUnits:
    ratio, units, near = np.broadcast_arrays(ratio, units, near)
    known = ~np.isnan(ratio) & (units > 0)
    close = near | (ratio > _MOST_TIMES)
    reason = np.where(known, np.where(close, TOO_CLOSE, ""), UNKNOWN)
    plain = reason == ""
    with np.errstate(all="ignore"):
        more = np.maximum(units * (ratio - 1), 0.0)
    return FurtherUnits(
        units=np.where(plain, more, np.nan),
        ratio=np.where(plain, ratio, np.nan),
        reason=reason,
    )


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
