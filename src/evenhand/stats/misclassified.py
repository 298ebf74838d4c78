"""Truth that is itself noisy: corrections for an expert with known sensitivity and specificity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray, critical


def _informative(sensitivity: ArrayLike, specificity: ArrayLike) -> tuple[FloatArray, FloatArray]:
    se, sp = np.asarray(sensitivity, dtype=float), np.asarray(specificity, dtype=float)
    for name, value in (("sensitivity", se), ("specificity", sp)):
        wrong = value[(value < 0) | (value > 1) | np.isnan(value)]
        if wrong.size:
            raise UsageError(
                f"{name}={float(wrong.flat[0]):g} is not between 0 and 1. "
                "Give the share of cases that the expert gets right."
            )
    total = np.asarray(se + sp)
    if np.any(total <= 1):
        raise UsageError(
            f"sensitivity + specificity = {float(total[total <= 1].flat[0]):g} is not above 1: "
            "such an expert does no better than chance, and no truth can be recovered."
        )
    return se, sp


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedPrevalence:
    """Prevalence after correction, the raw one beside it; `clipped` where it left [0, 1].

    `value` is clipped to [0, 1] where `clipped` is true; `unclipped` is what came out.
    """

    raw: FloatArray
    value: FloatArray
    unclipped: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    clipped: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    method: str


def corrected_prevalence(
    prevalence: ArrayLike,
    *,
    sensitivity: ArrayLike,
    specificity: ArrayLike,
    standard_error: ArrayLike = 0.0,
    sensitivity_error: ArrayLike = 0.0,
    specificity_error: ArrayLike = 0.0,
    level: float = 0.95,
) -> CorrectedPrevalence:
    """Rogan and Gladen's (p + Sp − 1)/(Se + Sp − 1), with a delta-method interval.

    For a prevalence or for an implied threshold; sensitivity and specificity may differ by group.

    Examples:
        >>> found = corrected_prevalence(0.12, sensitivity=0.95, specificity=0.98,
        ...                              standard_error=0.01)
        >>> print(f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]")
        0.1075 [0.0865, 0.1286]
    """
    se, sp = _informative(sensitivity, specificity)
    p = np.asarray(prevalence, dtype=float)
    scale = se + sp - 1
    value = np.asarray((p + sp - 1) / scale)
    variance = (
        np.asarray(standard_error, dtype=float) ** 2
        + (value * np.asarray(sensitivity_error, dtype=float)) ** 2
        + ((1 - value) * np.asarray(specificity_error, dtype=float)) ** 2
    ) / scale**2
    error = np.sqrt(variance)
    half = critical(level) * error
    return CorrectedPrevalence(
        raw=p,
        value=np.clip(value, 0.0, 1.0),
        unclipped=value,
        standard_error=np.asarray(error),
        low=np.clip(value - half, 0.0, 1.0),
        high=np.clip(value + half, 0.0, 1.0),
        clipped=np.asarray((value < 0) | (value > 1)),
        method="Rogan–Gladen, delta method",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedCounts:
    """Hit and false-alarm rates against the truth rather than against a noisy expert.

    Arrays of one shape. Rates that come out outside [0, 1] are refused: NaN, with the reason in
    `undefined`. `hits` … are the expected counts against the truth, for signal detection.
    """

    prevalence: FloatArray
    hit_rate: FloatArray
    false_alarm_rate: FloatArray
    hit_rate_error: FloatArray
    false_alarm_rate_error: FloatArray
    hits: FloatArray
    misses: FloatArray
    false_alarms: FloatArray
    correct_rejections: FloatArray
    undefined: np.ndarray[tuple[int, ...], np.dtype[np.object_]]


def corrected_counts(
    hits: ArrayLike,
    misses: ArrayLike,
    false_alarms: ArrayLike,
    correct_rejections: ArrayLike,
    *,
    sensitivity: ArrayLike,
    specificity: ArrayLike,
) -> CorrectedCounts:
    """Rates of a labeler solved from counts against an expert of known quality.

    With q_ab = P(label a, expert b): q_a1 = Se·φ·P(a|1) + (1−Sp)(1−φ)P(a|0) and
    q_a0 = (1−Se)φ·P(a|1) + Sp(1−φ)P(a|0). Labeler and expert must err independently given the
    truth; errors are by the delta method from the multinomial counts.

    Examples:
        >>> found = corrected_counts(80, 20, 90, 810, sensitivity=0.95, specificity=0.98)
        >>> print(f"{found.hit_rate:.3f} {found.false_alarm_rate:.3f} {found.prevalence:.3f}")
        0.958 0.096 0.086
    """
    se, sp = _informative(sensitivity, specificity)
    h, m, f, r, se, sp = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (hits, misses, false_alarms, correct_rejections)),
        se,
        sp,
    )
    n = h + m + f + r
    total = np.where(n > 0, n, np.nan)
    scale = se + sp - 1
    # Joint shares of (label, truth): one 2×2 system for yes and the same one for no.
    yes_1 = (sp * h - (1 - sp) * f) / (scale * total)
    yes_0 = (se * f - (1 - se) * h) / (scale * total)
    no_1 = (sp * m - (1 - sp) * r) / (scale * total)
    no_0 = (se * r - (1 - se) * m) / (scale * total)
    phi = yes_1 + no_1
    smallest = np.min([yes_1, yes_0, no_1, no_0], axis=0)
    undefined = np.full(h.shape, None, dtype=object)
    undefined[smallest < -1e-12] = (
        "the correction leaves [0, 1]: the labels contradict the expert's stated quality"
    )
    undefined[(phi <= 1e-12) | (phi >= 1 - 1e-12)] = "no positives or no negatives are left"
    undefined[n == 0] = "no items judged"
    fine = np.array([reason is None for reason in undefined.flat]).reshape(h.shape)
    safe = np.where(fine, phi, np.nan)
    hit, alarm = yes_1 / safe, yes_0 / (1 - safe)
    shares = np.stack([h, m, f, r]) / total

    def spread(gradient: FloatArray, divisor: FloatArray) -> FloatArray:
        mean = (shares * gradient).sum(axis=0)
        variance = (shares * gradient**2).sum(axis=0) - mean**2
        return np.asarray(np.sqrt(np.maximum(variance, 0.0) / total) / np.abs(scale * divisor))

    hit_gradient = np.stack([sp * (1 - hit), -sp * hit, -(1 - sp) * (1 - hit), (1 - sp) * hit])
    alarm_gradient = np.stack(
        [-(1 - se) * (1 - alarm), (1 - se) * alarm, se * (1 - alarm), -se * alarm]
    )

    def kept(share: FloatArray) -> FloatArray:
        return np.where(fine, np.maximum(share, 0.0) * total, np.nan)

    return CorrectedCounts(
        prevalence=np.asarray(safe),
        hit_rate=np.asarray(hit),
        false_alarm_rate=np.asarray(alarm),
        hit_rate_error=spread(hit_gradient, safe),
        false_alarm_rate_error=spread(alarm_gradient, 1 - safe),
        hits=kept(yes_1),
        misses=kept(no_1),
        false_alarms=kept(yes_0),
        correct_rejections=kept(no_0),
        undefined=undefined,
    )
