"""What an error-rate limit asks for: the cost ratios with which groups would keep to it.

One cost ratio for all groups gives different error rates wherever prevalence or separation
differ; equal error rates need different cost ratios. Both directions are here, for signal
detection and along a model's own cost curve.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.signal import threshold_model
from evenhand.stats.rates import bisect
from evenhand.stats.special import logit, ndtr, ndtri
from evenhand.stats.thresholds.costs import EqualRate, check_rate

# No criterion lies further than this many standard deviations from either mean.
_FAR = 38.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesAtCost:
    """Criterion and rates of a decision-maker who weighs errors by one cost ratio."""

    criterion: FloatArray
    selection_rate: FloatArray
    false_positive_rate: FloatArray
    false_negative_rate: FloatArray


def rates_at_cost_ratio(
    cost_ratio: ArrayLike, *, prevalence: ArrayLike, separation: ArrayLike
) -> RatesAtCost:
    """Error rates that a cost ratio leads to: t = (logit(1−φ) − log c)/d′ + d′/2.

    NaN without separation: every criterion then implies the same cost ratio.

    Examples:
        >>> found = rates_at_cost_ratio(4, prevalence=[0.2, 0.1], separation=2.0)
        >>> found.false_negative_rate.round(3).tolist()
        [0.159, 0.276]
    """
    log_c = np.log(np.asarray(cost_ratio, dtype=float))
    phi, d = np.asarray(prevalence, dtype=float), np.asarray(separation, dtype=float)
    with np.errstate(all="ignore"):
        t = np.where(d > 0, (-logit(phi) - log_c) / np.where(d > 0, d, 1.0) + d / 2, np.nan)
    found = threshold_model(phi, separation=d, criterion=t)
    return RatesAtCost(
        criterion=t,
        selection_rate=found.selection_rate,
        false_positive_rate=found.false_alarm_rate,
        false_negative_rate=1 - found.hit_rate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredCost:
    """Cost ratios, from low to high, with which a group would keep its rate inside a band.

    `nearest` is the one of them closest to the cost ratio that was chosen, and `factor` how many
    times the chosen one that is: 1 where there is no conflict. NaN where no ratio would do.
    """

    low: FloatArray
    high: FloatArray
    nearest: FloatArray
    factor: FloatArray


def required_cost_ratio(
    rate: EqualRate,
    *,
    low: ArrayLike,
    high: ArrayLike,
    prevalence: ArrayLike,
    separation: ArrayLike,
    chosen: ArrayLike,
) -> RequiredCost:
    """Cost ratios with which a group of this prevalence and separation keeps a rate in [low, high].

    For a limit on the gap to a reference the band is the reference's rate ± the limit
    (`rates_at_cost_ratio` gives that rate under the chosen ratio). Signal detection with equal
    variances; NaN without separation.

    Examples:
        >>> at = rates_at_cost_ratio(4, prevalence=0.2, separation=2.0).false_negative_rate
        >>> found = required_cost_ratio("false_negative_rate", low=at - 0.05, high=at + 0.05,
        ...                             prevalence=0.1, separation=2.0, chosen=4)
        >>> print(f"{found.nearest:.1f} = {found.factor:.2f} × 4")
        6.2 = 1.54 × 4
    """
    check_rate(rate)
    phi, d = np.asarray(prevalence, dtype=float), np.asarray(separation, dtype=float)
    ends = [np.asarray(end, dtype=float) for end in (low, high)]
    wanted = np.asarray(chosen, dtype=float)
    phi, d, first, last, wanted = np.broadcast_arrays(phi, d, *ends, wanted)
    possible = (first <= last) & (last > 0) & (first < 1) & (d > 0)
    bounds = []
    with np.errstate(all="ignore"):
        for end in (np.clip(first, 0.0, 1.0), np.clip(last, 0.0, 1.0)):
            t = _criterion(rate, end, phi, np.where(d > 0, d, 1.0))
            bounds.append(np.exp(-logit(phi) - t * d + d**2 / 2))
        least, most = np.minimum(*bounds), np.maximum(*bounds)
        nearest = np.clip(wanted, least, most)
        gone = ~possible | np.isnan(least) | np.isnan(most)
        ends = [np.where(gone, np.nan, part) for part in (least, most, nearest)]
        return RequiredCost(low=ends[0], high=ends[1], nearest=ends[2], factor=ends[2] / wanted)


def _criterion(rate: str, share: FloatArray, phi: FloatArray, d: FloatArray) -> FloatArray:
    """Criterion at which a rate has this value."""
    if rate == "false_positive_rate":
        return np.asarray(-ndtri(share))
    if rate == "false_negative_rate":
        return np.asarray(d + ndtri(share))

    def fewer(t: FloatArray) -> FloatArray:
        return np.asarray(share - phi * ndtr(d - t) - (1 - phi) * ndtr(-t))

    end = np.full(share.shape, _FAR)
    found = bisect(fewer, -end, end)
    return np.where(share <= 0, np.inf, np.where(share >= 1, -np.inf, found))
