"""Beyond equal-variance signal detection: unequal variances, mixtures and response times."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtr, ndtri

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.signal import normal_density


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
class MixtureCheck:
    """What signal detection reads off a signal with several modes, beside the truth."""

    hit_rate: float
    false_alarm_rate: float
    implied_threshold: float
    signal_detection: float

    @property
    def error(self) -> float:
        """Implied threshold by signal detection − the true one."""
        return self.signal_detection - self.implied_threshold


def mixture_check(
    criterion: float,
    *,
    prevalence: float,
    negatives: Sequence[tuple[float, float]],
    positives: Sequence[tuple[float, float]],
) -> MixtureCheck:
    """Error of signal detection if signals were mixtures of (share, mean) with unit spread.

    Clear and borderline cases make a signal with several modes; equal-variance signal detection
    then misreads the margin. Use it to see how far plausible mixtures would move a result.

    Examples:
        >>> found = mixture_check(4.2, prevalence=0.1, negatives=[(0.9, 0), (0.1, 4)],
        ...                       positives=[(0.3, 4.5), (0.7, 8)])
        >>> print(f"{found.implied_threshold:.3f} read as {found.signal_detection:.3f}")
        0.245 read as 0.193
    """

    def tail_and_density(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
        shares, means = np.array(parts, dtype=float).T
        if abs(shares.sum() - 1) > 1e-9 or np.any(shares < 0):
            raise UsageError(f"Shares of a mixture add up to {shares.sum():g}; they must to 1.")
        away = means - criterion
        return float(shares @ ndtr(away)), float(shares @ normal_density(away))

    alarm, no = tail_and_density(negatives)
    hit, yes = tail_and_density(positives)
    z_hit, z_alarm = ndtri(hit), ndtri(alarm)
    return MixtureCheck(
        hit_rate=hit,
        false_alarm_rate=alarm,
        implied_threshold=prevalence * yes / (prevalence * yes + (1 - prevalence) * no),
        signal_detection=float(expit(logit(prevalence) - (z_hit**2 - z_alarm**2) / 2)),
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
