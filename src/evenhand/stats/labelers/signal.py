"""Signal detection: from hits and false alarms to criterion, separation and cost ratio.

A case's signal is N(0, 1) when the truth is 0 and N(d′, 1) when it is 1; a labeler says yes above
the criterion t. With z_H and z_F the normal quantiles of hit and false-alarm rate,
log c = logit(1−φ) + (z_H² − z_F²)/2, φ the prevalence.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_ndtr, logit, ndtr, ndtri

from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.rates import wilson

Correction = Literal["auto", "none", "log-linear", "half"]
FEWEST_ERRORS = 10


def normal_density(z: ArrayLike) -> FloatArray:
    """Standard normal density."""
    return np.asarray(np.exp(-0.5 * np.asarray(z, dtype=float) ** 2) / np.sqrt(2 * np.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Hit and false-alarm rates after correction, their normal quantiles and variances."""

    hit_rate: FloatArray
    false_alarm_rate: FloatArray
    z_hit: FloatArray
    z_false_alarm: FloatArray
    variance_hit: FloatArray
    variance_false_alarm: FloatArray
    method: str


def corrected_rates(
    hits: ArrayLike,
    misses: ArrayLike,
    false_alarms: ArrayLike,
    correct_rejections: ArrayLike,
    *,
    correction: Correction = "auto",
) -> Rates:
    """Rates, their z and the variance of z, with zero cells corrected in all cells alike.

    The log-linear correction, (k+½)/(n+1), is applied to every cell as soon as one rate is 0 or
    1, so that cells stay comparable; variances keep the raw n.

    Examples:
        >>> found = corrected_rates(20, 0, 0, 50)
        >>> print(f"{found.hit_rate:.4f} {found.false_alarm_rate:.4f} {found.method}")
        0.9762 0.0098 log-linear correction on all cells
    """
    cells = [np.asarray(x, dtype=float) for x in (hits, misses, false_alarms, correct_rejections)]
    if any(np.any(cell < 0) for cell in cells):
        raise DataError("Counts of hits, misses and so on cannot be negative.")
    k_hit, k_alarm = np.broadcast_arrays(cells[0], cells[2])
    n_hit, n_alarm = np.broadcast_arrays(cells[0] + cells[1], cells[2] + cells[3])

    def edge(k: FloatArray, n: FloatArray) -> bool:
        return bool(np.any((n > 0) & ((k == 0) | (k == n))))

    needed = edge(k_hit, n_hit) or edge(k_alarm, n_alarm)
    chosen = ("log-linear" if needed else "none") if correction == "auto" else correction
    names = {
        "none": "no correction",
        "log-linear": "log-linear correction on all cells",
        "half": "half a count in empty cells",
    }
    if chosen not in names:
        raise UsageError(
            f"correction={correction!r} is unknown. Use auto, none, log-linear or half."
        )

    def one(k: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        safe = np.where(n > 0, n, np.nan)
        if chosen == "log-linear":
            rate = (k + 0.5) / (safe + 1)
        elif chosen == "half":
            rate = np.clip(k, 0.5, safe - 0.5) / safe
        else:
            rate = k / safe
        inside = (rate > 0) & (rate < 1)
        z = np.where(inside, ndtri(np.where(inside, rate, 0.5)), np.nan)
        return rate, z, rate * (1 - rate) / (safe * normal_density(z) ** 2)

    hit, alarm = one(k_hit, n_hit), one(k_alarm, n_alarm)
    return Rates(
        hit_rate=hit[0],
        false_alarm_rate=alarm[0],
        z_hit=hit[1],
        z_false_alarm=alarm[1],
        variance_hit=hit[2],
        variance_false_alarm=alarm[2],
        method=names[chosen],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalDetection:
    """Criterion, separation, prevalence, implied threshold and cost ratio of each cell.

    Arrays of one shape; NaN where undefined, with the reason in `undefined`. `warnings` says
    what weakens a cell. Intervals of implied threshold and cost ratio are images of each other.
    """

    n: FloatArray
    hit_rate: FloatArray
    false_alarm_rate: FloatArray
    z_hit: FloatArray
    z_false_alarm: FloatArray
    criterion: FloatArray
    criterion_error: FloatArray
    separation: FloatArray
    separation_error: FloatArray
    area_under_curve: FloatArray
    prevalence: FloatArray
    prevalence_low: FloatArray
    prevalence_high: FloatArray
    log_cost_ratio: FloatArray
    log_cost_ratio_error: FloatArray
    behaviour: FloatArray
    behaviour_error: FloatArray
    prevalence_part: FloatArray
    prevalence_part_error: FloatArray
    implied_threshold: FloatArray
    implied_threshold_error: FloatArray
    level: float
    method: str
    undefined: np.ndarray[tuple[int, ...], np.dtype[np.object_]]
    warnings: np.ndarray[tuple[int, ...], np.dtype[np.object_]]

    @property
    def cost_ratio(self) -> FloatArray:
        """Cost of one false negative in false positives."""
        return np.exp(self.log_cost_ratio)

    def interval(
        self, name: Literal["criterion", "separation", "cost_ratio", "implied_threshold"]
    ) -> tuple[FloatArray, FloatArray]:
        """Limits of one quantity at the level of this result."""
        z = critical(self.level)
        if name in ("cost_ratio", "implied_threshold"):
            low = self.log_cost_ratio - z * self.log_cost_ratio_error
            high = self.log_cost_ratio + z * self.log_cost_ratio_error
            with np.errstate(over="ignore"):
                return (
                    (np.exp(low), np.exp(high))
                    if name == "cost_ratio"
                    else (expit(-high), expit(-low))
                )
        value = self.criterion if name == "criterion" else self.separation
        error = self.criterion_error if name == "criterion" else self.separation_error
        return value - z * error, value + z * error


def signal_detection(
    hits: ArrayLike,
    misses: ArrayLike,
    false_alarms: ArrayLike,
    correct_rejections: ArrayLike,
    *,
    prevalence: ArrayLike | None = None,
    prevalence_error: ArrayLike | None = None,
    items: ArrayLike | None = None,
    correction: Correction = "auto",
    variance_hit: ArrayLike | None = None,
    variance_false_alarm: ArrayLike | None = None,
    covariance: ArrayLike = 0.0,
    level: float = 0.95,
) -> SignalDetection:
    """Signal detection for each cell of counts, with delta-method errors.

    `prevalence` is that of what labelers see, passed in when the audited sample is enriched;
    otherwise the share of positives among labels, known from `items` distinct items (default: as
    many as labels). Cluster-robust variances of z, and their covariance, replace binomial ones.

    Examples:
        >>> found = signal_detection(80, 20, 90, 810)
        >>> low, high = found.interval("cost_ratio")
        >>> print(f"{found.cost_ratio:.2f} [{low:.2f}, {high:.2f}], t={found.criterion:.2f}")
        5.64 [4.00, 7.96], t=1.28
    """
    h, m, f, r = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (hits, misses, false_alarms, correct_rejections))
    )
    rates = corrected_rates(h, m, f, r, correction=correction)
    v_hit = rates.variance_hit if variance_hit is None else np.asarray(variance_hit, dtype=float)
    v_alarm = (
        rates.variance_false_alarm
        if variance_false_alarm is None
        else np.asarray(variance_false_alarm, dtype=float)
    )
    shared = np.asarray(covariance, dtype=float)
    z_h, z_f = rates.z_hit, rates.z_false_alarm
    phi, v_phi, phi_low, phi_high = _prevalence(
        h + m, f + r, given=prevalence, error=prevalence_error, items=items, level=level
    )
    behaviour = (z_h**2 - z_f**2) / 2
    v_behaviour = z_h**2 * v_hit + z_f**2 * v_alarm - 2 * z_h * z_f * shared
    part = -logit(phi)
    log_c = part + behaviour
    log_error = np.sqrt(np.maximum(v_behaviour, 0) + v_phi)
    implied = expit(-log_c)
    separation = z_h - z_f
    separation_error = np.sqrt(np.maximum(v_hit + v_alarm - 2 * shared, 0))
    return SignalDetection(
        n=h + m + f + r,
        hit_rate=rates.hit_rate,
        false_alarm_rate=rates.false_alarm_rate,
        z_hit=z_h,
        z_false_alarm=z_f,
        criterion=-z_f,
        criterion_error=np.sqrt(v_alarm),
        separation=separation,
        separation_error=separation_error,
        area_under_curve=ndtr(separation / np.sqrt(2)),
        prevalence=phi,
        prevalence_low=phi_low,
        prevalence_high=phi_high,
        log_cost_ratio=log_c,
        log_cost_ratio_error=log_error,
        behaviour=behaviour,
        behaviour_error=np.sqrt(np.maximum(v_behaviour, 0)),
        prevalence_part=part,
        prevalence_part_error=np.sqrt(v_phi),
        implied_threshold=implied,
        implied_threshold_error=implied * (1 - implied) * log_error,
        level=level,
        method=f"equal-variance signal detection, {rates.method}",
        undefined=_reasons(h, m, f, r, z_h, z_f),
        warnings=_flags(h, m, f, r, separation),
    )


def _prevalence(
    positives: FloatArray,
    negatives: FloatArray,
    *,
    given: ArrayLike | None,
    error: ArrayLike | None,
    items: ArrayLike | None,
    level: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Prevalence, the variance of its logit and its limits."""
    total = positives + negatives
    if given is None:
        phi = np.divide(positives, total, out=np.full(total.shape, np.nan), where=total > 0)
        phi = np.where((phi > 0) & (phi < 1), phi, np.nan)
        count = total if items is None else np.broadcast_to(np.asarray(items, float), total.shape)
        variance = 1.0 / (np.where(count > 0, count, np.nan) * phi * (1 - phi))
        low, high = wilson(np.nan_to_num(phi) * count, count, z=critical(level))
        return phi, variance, low, high
    phi = np.broadcast_to(np.asarray(given, dtype=float), total.shape)
    if np.any((phi <= 0) | (phi >= 1)):
        wrong = float(phi[(phi <= 0) | (phi >= 1)].flat[0])
        raise UsageError(
            f"prevalence={wrong:g} is not between 0 and 1. For two in a hundred write 0.02."
        )
    if error is None:
        return phi, np.zeros(phi.shape), phi, phi
    on_logit = np.asarray(error, dtype=float) / (phi * (1 - phi))
    half = critical(level) * on_logit
    variance = np.broadcast_to(on_logit**2, phi.shape)
    return phi, variance, expit(logit(phi) - half), expit(logit(phi) + half)


def _reasons(
    h: FloatArray, m: FloatArray, f: FloatArray, r: FloatArray, z_h: FloatArray, z_f: FloatArray
) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    found = np.full(h.shape, None, dtype=object)
    found[np.isnan(z_h) | np.isnan(z_f)] = "a rate is 0 or 1 and no correction was applied"
    found[f + r == 0] = "no negatives among the items judged"
    found[h + m == 0] = "no positives among the items judged"
    found[h + m + f + r == 0] = "no items judged"
    return found


def _few(count: float, what: str) -> str:
    return f"only {count:g} {what}{'' if count == 1 else 's'}; read the interval, not the value"


def _flags(
    h: FloatArray, m: FloatArray, f: FloatArray, r: FloatArray, separation: FloatArray
) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    found = np.empty(h.shape, dtype=object)
    for at in np.ndindex(h.shape):
        flags = []
        if separation[at] < 0:
            flags.append("yes is said less often where the truth is yes: reversed labelling")
        elif separation[at] == 0:
            flags.append("labels carry no information: the implied threshold is the prevalence")
        if h[at] + m[at] > 0 and m[at] < FEWEST_ERRORS:
            flags.append(_few(float(m[at]), "false negative"))
        if f[at] + r[at] > 0 and f[at] < FEWEST_ERRORS:
            flags.append(_few(float(f[at]), "false positive"))
        found[at] = tuple(flags)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdModel:
    """Rates that a decision-maker with known prevalence, separation and criterion would show."""

    selection_rate: FloatArray
    hit_share: FloatArray
    hit_rate: FloatArray
    false_alarm_rate: FloatArray
    implied_threshold: FloatArray
    log_cost_ratio: FloatArray


def threshold_model(
    prevalence: ArrayLike, *, separation: ArrayLike, criterion: ArrayLike
) -> ThresholdModel:
    """Selection rate, share of selected that are positive, and what the criterion implies.

    Examples:
        >>> found = threshold_model(0.3, separation=1.5, criterion=1.0)
        >>> print(f"{found.selection_rate:.4f} {found.hit_share:.4f} {found.implied_threshold:.4f}")
        0.3185 0.6513 0.3841
    """
    phi, d, t = (np.asarray(x, dtype=float) for x in (prevalence, separation, criterion))
    hit, alarm = ndtr(d - t), ndtr(-t)
    selected = phi * hit + (1 - phi) * alarm
    log_c = -logit(phi) - t * d + d**2 / 2
    return ThresholdModel(
        selection_rate=selected,
        hit_share=phi * hit / selected,
        hit_rate=np.asarray(hit),
        false_alarm_rate=np.asarray(alarm),
        implied_threshold=expit(-log_c),
        log_cost_ratio=np.asarray(log_c),
    )


def log_hazard(z: ArrayLike) -> FloatArray:
    """log of φ(z)/Φ(z), stable in the far tail."""
    x = np.asarray(z, dtype=float)
    return np.asarray(-0.5 * x**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(x))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnequalVariance:
    """The same two rates read with other spreads of the positives' signal."""

    sigma: FloatArray
    mean: FloatArray
    sensitivity: FloatArray
    implied_threshold: FloatArray


def unequal_variance(
    hit_rate: ArrayLike,
    *,
    false_alarm_rate: ArrayLike,
    prevalence: ArrayLike,
    sigma: ArrayLike = (0.8, 1.0, 1.25, 1.5),
) -> UnequalVariance:
    """Implied thresholds if positives' signals had standard deviation sigma instead of 1.

    One pair of rates cannot identify sigma, so this is a sensitivity analysis; `sensitivity`
    is d_a = μ·√(2/(1+σ²)). Rates broadcast against sigma.

    Examples:
        >>> found = unequal_variance(0.8, false_alarm_rate=0.1, prevalence=0.1)
        >>> found.implied_threshold.round(3).tolist()
        [0.181, 0.151, 0.124, 0.106]
    """
    spread = np.asarray(sigma, dtype=float)
    if np.any(spread <= 0):
        raise UsageError("sigma must be above 0: it is the positives' standard deviation.")
    phi = np.asarray(prevalence, dtype=float)
    t = -ndtri(np.asarray(false_alarm_rate, dtype=float))
    below = -ndtri(np.asarray(hit_rate, dtype=float))
    mean = t - spread * below
    yes = phi * normal_density(below) / spread
    no = (1 - phi) * normal_density(t)
    return UnequalVariance(
        sigma=spread,
        mean=mean,
        sensitivity=mean * np.sqrt(2 / (1 + spread**2)),
        implied_threshold=yes / (yes + no),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffusion:
    """Drift, boundary separation and non-decision time of the EZ-diffusion model.

    Low drift: hard to tell or little attention; low boundary: speed over care.
    """

    drift: FloatArray
    boundary: FloatArray
    non_decision_time: FloatArray


def ez_diffusion(
    share_correct: ArrayLike,
    *,
    variance_seconds: ArrayLike,
    mean_seconds: ArrayLike,
    n: ArrayLike | None = None,
    scale: float = 0.1,
) -> Diffusion:
    """Closed-form diffusion from accuracy and response times (Wagenmakers et al. 2007).

    With `n`, a share of 0 or 1 is moved half a case inwards; without, it is undefined. A share
    of exactly one half has drift 0 and no boundary.

    Examples:
        >>> found = ez_diffusion(0.802, variance_seconds=0.112, mean_seconds=0.723)
        >>> print(f"{found.drift:.2f} {found.boundary:.2f} {found.non_decision_time:.2f}")
        0.10 0.14 0.30
    """
    p = np.asarray(share_correct, dtype=float)
    if n is not None:
        half = 0.5 / np.asarray(n, dtype=float)
        p = np.clip(p, half, 1 - half)
    variance = np.asarray(variance_seconds, dtype=float)
    usable = (p > 0) & (p < 1) & (variance > 0)
    safe = np.where(usable, p, 0.75)
    odds = logit(safe)
    inner = odds * (safe**2 * odds - safe * odds + safe - 0.5) / np.where(usable, variance, 1.0)
    drift = np.sign(safe - 0.5) * scale * np.maximum(inner, 0) ** 0.25
    with np.errstate(divide="ignore", invalid="ignore"):
        boundary = np.where(drift != 0, scale**2 * odds / drift, np.nan)
        decay = np.exp(-drift * boundary / scale**2)
        decision = boundary / (2 * drift) * (1 - decay) / (1 + decay)
    return Diffusion(
        drift=np.where(usable, drift, np.nan),
        boundary=np.where(usable, boundary, np.nan),
        non_decision_time=np.where(
            usable, np.asarray(mean_seconds, dtype=float) - decision, np.nan
        ),
    )
