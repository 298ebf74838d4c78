"""Calibration of probabilities: recalibration line and curve, from binned sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import wilson

_STEPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibration:
    """Line logit P(hit) = intercept + slope · logit(score), one for each leading index.

    Calibrated scores have intercept 0 and slope 1; a slope under 1 says that scores are too
    extreme. `in_the_large` is the intercept with the slope held at 1: above 0, hits are more
    frequent than the scores say. NaN where the data do not determine it.
    """

    intercept: FloatArray
    intercept_error: FloatArray
    slope: FloatArray
    slope_error: FloatArray
    in_the_large: FloatArray
    in_the_large_error: FloatArray
    n: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationCurve:
    """Share of hits in each bin of scores against the mean score, with Wilson intervals."""

    score: FloatArray
    share: FloatArray
    low: FloatArray
    high: FloatArray
    n: FloatArray


def recalibrate(logits: ArrayLike, *, hits: ArrayLike, n: ArrayLike) -> Recalibration:
    """Logistic recalibration from bins in the last axis: mean logit, hits and cases of each.

    Binned rows give the same line as single rows up to the width of the bins. Empty bins are
    skipped; hits and misses that the scores separate perfectly have no line.

    Examples:
        >>> line = recalibrate([-2, 0, 2], hits=[14, 50, 88], n=[100, 100, 100])
        >>> print(f"{line.intercept:.3f} {line.slope:.3f} ± {line.slope_error:.3f}")
        0.042 0.951 ± 0.105
    """
    x, k, m = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (logits, hits, n)))
    used = (m > 0) & np.isfinite(x)
    x, k, m = np.where(used, x, 0.0), np.where(used, k, 0.0), np.where(used, m, 0.0)
    line = _fit(x, k, m, sloped=True)
    large = _fit(x, k, m, sloped=False)
    return Recalibration(
        intercept=line[0],
        intercept_error=line[1],
        slope=line[2],
        slope_error=line[3],
        in_the_large=large[0],
        in_the_large_error=large[1],
        n=m.sum(-1),
    )


def calibration_curve(
    score: ArrayLike, *, hits: ArrayLike, n: ArrayLike, z: ArrayLike
) -> CalibrationCurve:
    """Calibration curve from bins: mean score, hits and cases of each; NaN in an empty bin.

    Examples:
        >>> curve = calibration_curve([0.1, 0.7], hits=[2, 6], n=[20, 10], z=1.96)
        >>> curve.share.tolist(), curve.low.round(3).tolist()
        ([0.1, 0.6], [0.028, 0.313])
    """
    score, k, m = (np.asarray(part, np.float64) for part in (score, hits, n))
    low, high = wilson(k, m, z=z)
    with np.errstate(all="ignore"):
        share = np.asarray(k / m)
    return CalibrationCurve(
        score=np.where(m > 0, score, np.nan), share=share, low=low, high=high, n=m
    )


def bounded_logit(score: ArrayLike, *, margin: float = 1e-6) -> FloatArray:
    """Logit of probabilities, with 0 and 1 moved inside by `margin` so that it is finite.

    Examples:
        >>> bounded_logit([0.0, 0.5]).round(2).tolist()
        [-13.82, 0.0]
    """
    return np.asarray(logit(np.clip(np.asarray(score, np.float64), margin, 1 - margin)))


def _fit(x: FloatArray, k: FloatArray, m: FloatArray, *, sloped: bool) -> tuple[FloatArray, ...]:
    """Newton's method for (intercept, slope), or for the intercept with slope 1, batched."""
    shape = x.shape[:-1]
    intercept = np.zeros(shape)
    slope = np.ones(shape)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            p = expit(intercept[..., None] + slope[..., None] * x)
            residual, weight = k - m * p, m * p * (1 - p)
            g0, g1 = residual.sum(-1), (residual * x).sum(-1)
            h00, h01, h11 = weight.sum(-1), (weight * x).sum(-1), (weight * x * x).sum(-1)
            determinant = h00 * h11 - h01**2
            if sloped:
                step0 = (h11 * g0 - h01 * g1) / determinant
                step1 = (h00 * g1 - h01 * g0) / determinant
            else:
                step0, step1 = g0 / h00, np.zeros(shape)
            # Long steps overshoot where the curve is flat; halved they still converge.
            scale = 1 / np.maximum(1.0, np.maximum(np.abs(step0), np.abs(step1)) / 2)
            intercept, slope = intercept + scale * step0, slope + scale * step1
            size = np.fmax(np.abs(step0), np.abs(step1))
            if not (size > 1e-10).any():
                break
        solved = (size <= 1e-6) & (h00 > 1e-8)
        if not sloped:
            error = np.where(solved, 1 / np.sqrt(h00), np.nan)
            return np.where(solved, intercept, np.nan), error
        solved &= determinant > 1e-10 * h00 * np.maximum(h11, 1e-300)
        values = intercept, np.sqrt(h11 / determinant), slope, np.sqrt(h00 / determinant)
        return tuple(np.where(solved, value, np.nan) for value in values)
