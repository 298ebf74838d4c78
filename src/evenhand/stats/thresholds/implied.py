"""Implied threshold of a model: prevalence at its threshold, as value, interval and cost ratio.

Interval: centre and HC1 error of the local quadratic at the bandwidth of the local linear fit,
formed on the log-odds scale and mapped back, so that implied threshold and cost ratio always agree
(robust bias correction; Calonico, Cattaneo & Titiunik 2014). The local-linear value stands beside
the centre: on steep curves it lies outside this interval.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from evenhand.stats.estimate import (
    Contrast,
    FloatArray,
    contrast,
    critical,
    satterthwaite,
    student_critical,
)
from evenhand.stats.rates import wilson
from evenhand.stats.thresholds.costs import cost_ratio, cost_ratio_interval
from evenhand.stats.thresholds.histogram import ScoreHistogram
from evenhand.stats.thresholds.local import ClusterFit, LocalMoments, local_fit

FEWEST_EFFECTIVE = 30.0
MOST_DISCRETE_VALUES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedThresholds:
    """Prevalence at the threshold per group, with the cost ratio it implies.

    `raw` is the local-linear estimate as it came out, `value` the same where it is a
    probability, `centre` the local-quadratic one, around which the interval lies. `undefined`
    says why a value is missing, `warnings` what weakens it, and `tellable` whether the interval
    may carry a verdict. `quadratic_error` and `quadratic_covariance` go with t on `freedom`
    degrees of freedom, infinite without clusters; `centre_error`, `log_error` and
    `centre_covariance` hold the factor t ÷ z, so that at this level a normal quantile does.
    """

    threshold: FloatArray
    bandwidth: FloatArray
    n: FloatArray
    n_effective: FloatArray
    raw: FloatArray
    slope: FloatArray
    value: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    cost_ratio: FloatArray
    cost_ratio_low: FloatArray
    cost_ratio_high: FloatArray
    centre: FloatArray
    centre_error: FloatArray
    log_centre: FloatArray
    log_error: FloatArray
    centre_covariance: FloatArray | None
    quadratic_error: FloatArray
    quadratic_covariance: FloatArray | None
    freedom: FloatArray
    level: float
    method: str
    undefined: tuple[str | None, ...]
    warnings: tuple[tuple[str, ...], ...]
    tellable: tuple[bool, ...]

    @property
    def clipped(self) -> FloatArray:
        """The raw estimate moved into [0, 1]."""
        return np.clip(self.raw, 0.0, 1.0)

    @property
    def cost_ratio_centre(self) -> FloatArray:
        """Cost ratio in the middle of its interval, on the log scale."""
        return np.exp(self.log_centre)


def implied_thresholds(
    moments: LocalMoments,
    *,
    threshold: ArrayLike,
    bandwidth: ArrayLike,
    linear_clusters: ClusterFit | None = None,
    quadratic_clusters: ClusterFit | None = None,
    level: float = 0.95,
) -> ImpliedThresholds:
    """Implied threshold and cost ratio per group from the 25 local sums.

    `linear_clusters` and `quadratic_clusters` (`cluster_fit` with degree 1 and 2) replace the
    HC1 errors where rows come in clusters.

    Examples:
        >>> from evenhand.stats.thresholds.local import local_moments
        >>> s = np.linspace(0, 1, 1001)
        >>> y = np.arange(1001) * 7 % 10 < 10 * s
        >>> sums = local_moments(s, truth=y, threshold=0.6, bandwidth=0.3)
        >>> found = implied_thresholds(sums, threshold=0.6, bandwidth=0.3)
        >>> print(f"{found.value[0]:.2f} [{found.low[0]:.2f}, {found.high[0]:.2f}]")
        0.65 [0.58, 0.71]
    """
    groups = moments.n.size
    t = np.broadcast_to(np.asarray(threshold, dtype=float), (groups,))
    h = np.broadcast_to(np.asarray(bandwidth, dtype=float), (groups,))
    linear, quadratic = local_fit(moments, degree=1), local_fit(moments, degree=2)
    error = linear.standard_error if linear_clusters is None else linear_clusters.standard_error
    centre_error = (
        quadratic.standard_error
        if quadratic_clusters is None
        else quadratic_clusters.standard_error
    )
    usual = _surely_defined(moments, linear.value)
    undefined = tuple(
        None if usual[g] else _undefined(moments, linear.value, g) for g in range(groups)
    )
    defined = np.array([reason is None for reason in undefined])
    value = np.where(defined, linear.value, np.nan)
    centre = np.where(defined, quadratic.value, np.nan)
    # An error of 0 is rounding, not certainty: no interval rather than a point.
    plain_error = np.where(defined & (centre_error > 1e-12), centre_error, np.nan)
    freedom = np.full(groups, np.inf)
    shared = None
    if quadratic_clusters is not None:
        # Few clusters near the threshold know their own spread badly: t in place of z, with as
        # many degrees of freedom as there are clusters that bear equally on the value, less one.
        freedom = np.maximum(quadratic_clusters.effective - 1, 1.0)
        shared = quadratic_clusters.covariance
    wider = student_critical(critical(level), freedom=freedom) / critical(level)
    centre_error = plain_error * wider
    ratio = cost_ratio_interval(centre, standard_error=centre_error, level=level)
    bounded = np.isfinite(ratio.log_standard_error)
    effective = moments.n_effective
    enough = effective >= FEWEST_EFFECTIVE
    quiet = enough & (bounded | ~defined)
    if moments.n_below is not None:
        quiet &= (moments.n_below > 0) & (moments.n_below < moments.n)
    warnings = tuple(
        () if quiet[g] else _warnings(moments, bool(defined[g]), bool(bounded[g]), g)
        for g in range(groups)
    )
    return ImpliedThresholds(
        threshold=t,
        bandwidth=h,
        n=moments.n,
        n_effective=effective,
        raw=linear.value,
        slope=linear.coefficients[:, 1] / h,
        value=value,
        standard_error=np.where(defined, error, np.nan),
        low=np.where(bounded, ratio.implied_low, np.nan),
        high=np.where(bounded, ratio.implied_high, np.nan),
        cost_ratio=cost_ratio(value),
        cost_ratio_low=np.where(bounded, ratio.low, np.nan),
        cost_ratio_high=np.where(bounded, ratio.high, np.nan),
        centre=centre,
        centre_error=centre_error,
        log_centre=ratio.log_value,
        log_error=ratio.log_standard_error,
        centre_covariance=None if shared is None else shared * np.outer(wider, wider),
        quadratic_error=plain_error,
        quadratic_covariance=shared,
        freedom=freedom,
        level=level,
        method="tricube local quadratic, "
        + ("HC1" if quadratic_clusters is None else "cluster-robust, t")
        + ", log odds",
        undefined=undefined,
        warnings=warnings,
        tellable=tuple(bool(x) for x in defined & bounded & enough),
    )


def _surely_defined(moments: LocalMoments, value: FloatArray) -> NDArray[np.bool_]:
    """Groups of which `_undefined` has nothing to say: of many, nearly all."""
    with np.errstate(all="ignore"):
        share = moments.outcome[:, 0] / moments.weight[:, 0]
        found = (moments.n > 0) & (moments.weight[:, 0] > 0) & (value > 0) & (value < 1)
        return np.asarray(found & (share >= 1e-12) & (share <= 1 - 1e-12))


def _undefined(moments: LocalMoments, value: FloatArray, g: int) -> str | None:
    if moments.n[g] == 0 or moments.weight[g, 0] <= 0:
        return "no score lies within the bandwidth of the threshold"
    if np.isnan(value[g]):
        return "fewer than 2 distinct scores lie within the bandwidth of the threshold"
    share = moments.outcome[g, 0] / moments.weight[g, 0]
    if share < 1e-12 or share > 1 - 1e-12:
        return f"all truths within the bandwidth are {round(share)}"
    if not 0 < value[g] < 1:
        return f"the estimate {value[g]:.3f} lies outside (0, 1)"
    return None


def _warnings(moments: LocalMoments, defined: bool, bounded: bool, g: int) -> tuple[str, ...]:
    found = []
    if moments.n[g] > 0 and moments.n_effective[g] < FEWEST_EFFECTIVE:
        found.append(
            f"only {moments.n_effective[g]:.1f} effective rows near the threshold; "
            f"{FEWEST_EFFECTIVE:g} are needed to tell"
        )
    if moments.n_below is not None and moments.n[g] > 0:
        if moments.n_below[g] == 0:
            found.append("no truth is known below the threshold: a one-sided boundary fit")
        elif moments.n_below[g] == moments.n[g]:
            found.append("no truth is known above the threshold: a one-sided boundary fit")
    if defined and not bounded:
        found.append("the bias-corrected centre is no probability, so there is no interval")
    return tuple(found)


def implied_threshold_gap(
    found: ImpliedThresholds, *, group: ArrayLike, reference: ArrayLike
) -> Contrast:
    """Implied threshold of a group − the reference's, by the local-quadratic centres.

    Clusters that reach into both groups enter through their covariance; with clusters, t with
    Satterthwaite's degrees of freedom.
    """
    return _between(found, group, reference, found.centre, np.ones_like(found.centre))


def cost_ratio_gap(found: ImpliedThresholds, *, group: ArrayLike, reference: ArrayLike) -> Contrast:
    """Log cost ratio of a group − the reference's; exp of value and limits is the ratio."""
    inside = (found.centre > 0) & (found.centre < 1)
    slope = np.where(inside, 1 / np.where(inside, found.centre * (1 - found.centre), 1.0), np.nan)
    return _between(found, group, reference, found.log_centre, slope)


def _between(
    found: ImpliedThresholds,
    group: ArrayLike,
    reference: ArrayLike,
    value: FloatArray,
    slope: FloatArray,
) -> Contrast:
    """Difference on a scale whose derivative by the prevalence is `slope`."""
    g, r = np.asarray(group, dtype=np.intp), np.asarray(reference, dtype=np.intp)
    shared: ArrayLike = 0.0
    if found.quadratic_covariance is not None:
        shared = found.quadratic_covariance[g, r] * slope[g] * slope[r]
    error = found.quadratic_error * slope
    return contrast(
        value[g],
        value[r],
        standard_error=error[g],
        standard_error_reference=error[r],
        covariance=shared,
        freedom=satterthwaite(
            error[g], error[r], freedom=found.freedom[g], freedom_reference=found.freedom[r]
        ),
        level=found.level,
    )


def threshold_limits(found: ImpliedThresholds, *, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Limits of the implied threshold at another critical value, with t where rows are clustered.

    The limits of the cost ratio are (1 − p) ÷ p of these, changing places.
    """
    with np.errstate(all="ignore"):
        error = found.quadratic_error / (found.centre * (1 - found.centre))
    half = student_critical(z, freedom=found.freedom) * error
    return expit(-(found.log_centre + half)), expit(-(found.log_centre - half))


def family_limits(found: ImpliedThresholds, *, quantile: float) -> tuple[FloatArray, FloatArray]:
    """Limits of the implied threshold with another quantile in place of z."""
    half = quantile * found.log_error
    return expit(-(found.log_centre + half)), expit(-(found.log_centre - half))


def bandwidth_curve(
    histogram: ScoreHistogram, *, bandwidths: ArrayLike, level: float = 0.95
) -> tuple[ImpliedThresholds, ...]:
    """Implied thresholds at each of several bandwidths: how much the choice matters.

    Examples:
        >>> from evenhand.stats.thresholds.histogram import score_histogram
        >>> s = np.linspace(0, 1, 1001)
        >>> cells = score_histogram(s, truth=np.arange(1001) * 7 % 10 < 10 * s, threshold=0.6)
        >>> [f"{fit.value[0]:.2f}" for fit in bandwidth_curve(cells, bandwidths=[0.2, 0.4])]
        ['0.65', '0.65']
    """
    return tuple(
        implied_thresholds(
            histogram.moments(h), threshold=histogram.thresholds, bandwidth=h, level=level
        )
        for h in np.asarray(bandwidths, dtype=float)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteMargins:
    """Prevalence beside the threshold where scores are discrete, per group.

    Decisions then identify no single cost ratio but every one between `cost_ratio_low` (from
    the lowest accepted score) and `cost_ratio_high` (from the highest refused one);
    `cost_ratio_lowest` and `cost_ratio_highest` add the Wilson limits' uncertainty.
    """

    accepted_score: FloatArray
    accepted: FloatArray
    accepted_low: FloatArray
    accepted_high: FloatArray
    accepted_n: FloatArray
    refused_score: FloatArray
    refused: FloatArray
    refused_low: FloatArray
    refused_high: FloatArray
    refused_n: FloatArray

    @property
    def cost_ratio_low(self) -> FloatArray:
        """Least cost ratio in the set."""
        return cost_ratio(self.accepted)

    @property
    def cost_ratio_high(self) -> FloatArray:
        """Largest cost ratio in the set."""
        return cost_ratio(self.refused)

    @property
    def cost_ratio_lowest(self) -> FloatArray:
        """Lower limit of the set with sampling error."""
        return cost_ratio(self.accepted_high)

    @property
    def cost_ratio_highest(self) -> FloatArray:
        """Upper limit of the set with sampling error."""
        return cost_ratio(self.refused_low)


def discrete_margins(histogram: ScoreHistogram, *, level: float = 0.95) -> DiscreteMargins:
    """Prevalence at the lowest accepted and the highest refused score of each group.

    Examples:
        >>> cells = ScoreHistogram.of_counts([[[7, 1], [10, 2], [6, 2], [2, 2]]],
        ...                                  positions=[1/8, 1/6, 1/4, 1/2], thresholds=0.25)
        >>> found = discrete_margins(cells)
        >>> round(float(found.cost_ratio_low[0]), 9), round(float(found.cost_ratio_high[0]), 9)
        (3.0, 5.0)
    """
    n = histogram.counts.sum(axis=2)
    over = histogram.positions >= histogram.thresholds[:, None]
    z = critical(level)

    def at(side: NDArray[np.bool_], lowest: bool) -> tuple[FloatArray, ...]:
        keep = side & (n > 0)
        filled = np.where(keep, histogram.positions, np.inf if lowest else -np.inf)
        cell = filled.argmin(axis=1) if lowest else filled.argmax(axis=1)
        rows = np.arange(histogram.groups)
        some = keep.any(axis=1)
        count = np.where(some, n[rows, cell], 0.0)
        yes = np.where(some, histogram.counts[rows, cell, 1], 0.0)
        share = np.divide(yes, count, out=np.full_like(yes, np.nan), where=count > 0)
        low, high = wilson(yes, count, z=z)
        return np.where(some, histogram.positions[rows, cell], np.nan), share, low, high, count

    upper, lower = at(over, True), at(~over, False)
    return DiscreteMargins(
        accepted_score=upper[0],
        accepted=upper[1],
        accepted_low=upper[2],
        accepted_high=upper[3],
        accepted_n=upper[4],
        refused_score=lower[0],
        refused=lower[1],
        refused_low=lower[2],
        refused_high=lower[3],
        refused_n=lower[4],
    )
