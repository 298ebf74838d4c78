"""Calibration of probabilities: recalibration line and curve, from binned sums."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from evenhand.stats.estimate import FloatArray

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
class ClusteredBins:
    """Weight of hits and of all cases by (line, bin, cluster), one row for each that occurs."""

    line: NDArray[np.int64]
    bin: NDArray[np.int64]
    cluster: NDArray[np.int64]
    hits: FloatArray
    n: FloatArray


def recalibrate(
    logits: ArrayLike,
    *,
    hits: ArrayLike,
    n: ArrayLike,
    squares: ArrayLike | None = None,
    clusters: ClusteredBins | None = None,
) -> Recalibration:
    """Logistic recalibration from bins in the last axis: mean logit, hits and cases of each.

    Binned rows give the same line as single rows up to the width of the bins. Empty bins are
    skipped; hits and misses that the scores separate perfectly have no line. With weights, hits
    and n are sums of them and `squares` sums of their squares, from which errors follow as they
    do without; `clusters` that rows come in give cluster-robust errors instead.

    Examples:
        >>> line = recalibrate([-2, 0, 2], hits=[14, 50, 88], n=[100, 100, 100])
        >>> print(f"{line.intercept:.3f} {line.slope:.3f} ± {line.slope_error:.3f}")
        0.042 0.951 ± 0.105
    """
    x, k, m = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (logits, hits, n)))
    used = (m > 0) & np.isfinite(x)
    x, k, m = np.where(used, x, 0.0), np.where(used, k, 0.0), np.where(used, m, 0.0)
    meat: _Meat | None = None
    if clusters is not None:
        meat = partial(_by_cluster, x, clusters)
    elif squares is not None:
        meat = partial(_by_square, x, np.where(used, np.asarray(squares, np.float64), 0.0))
    line = _fit(x, k, m, sloped=True, meat=meat)
    large = _fit(x, k, m, sloped=False, meat=meat)
    return Recalibration(
        intercept=line[0],
        intercept_error=line[1],
        slope=line[2],
        slope_error=line[3],
        in_the_large=large[0],
        in_the_large_error=large[1],
        n=m.sum(-1),
    )


_Meat = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


def _by_square(x: FloatArray, squares: FloatArray, p: FloatArray) -> tuple[Any, ...]:
    """Σω²p(1 − p) times 1, x and x²: with weights of 1 the Hessian itself."""
    spread = squares * p * (1 - p)
    return spread.sum(-1), (spread * x).sum(-1), (spread * x * x).sum(-1)


def _by_cluster(x: FloatArray, parts: ClusteredBins, p: FloatArray) -> tuple[Any, ...]:
    """Sums over K clusters of the squares of what each adds to the two equations, by K/(K − 1)."""
    lines, bins = x.size // max(x.shape[-1], 1), x.shape[-1]
    flat, chance = x.reshape(lines, bins), p.reshape(lines, bins)
    at = parts.line, parts.bin
    residual = parts.hits - parts.n * chance[at]
    width = int(parts.cluster.max(initial=0)) + 1
    pairs, place = np.unique(parts.line * width + parts.cluster, return_inverse=True)
    sums = [
        np.bincount(place.reshape(-1), residual * power, minlength=len(pairs))
        for power in (1.0, flat[at])
    ]
    owner = pairs // width
    count = np.bincount(owner, minlength=lines)
    with np.errstate(all="ignore"):
        factor = np.where(count > 1, count / (count - 1), np.nan)
    return tuple(
        (np.bincount(owner, sums[i] * sums[j], minlength=lines) * factor).reshape(x.shape[:-1])
        for i, j in ((0, 0), (0, 1), (1, 1))
    )


def bounded_logit(score: ArrayLike, *, margin: float = 1e-6) -> FloatArray:
    """Logit of probabilities, with 0 and 1 moved inside by `margin` so that it is finite.

    Examples:
        >>> bounded_logit([0.0, 0.5]).round(2).tolist()
        [-13.82, 0.0]
    """
    return np.asarray(logit(np.clip(np.asarray(score, np.float64), margin, 1 - margin)))


def _fit(
    x: FloatArray, k: FloatArray, m: FloatArray, *, sloped: bool, meat: _Meat | None
) -> tuple[FloatArray, ...]:
    """Newton's method for (intercept, slope), or for the intercept with slope 1, batched.

    Errors are the model's own, or the sandwich's around what `meat` gives at the fit.
    """
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
        m00, m01, m11 = (h00, h01, h11) if meat is None else meat(p)
        if not sloped:
            error = np.where(solved, np.sqrt(m00) / h00, np.nan)
            return np.where(solved, intercept, np.nan), error
        solved &= determinant > 1e-10 * h00 * np.maximum(h11, 1e-300)
        # Rows of the inverse Hessian around the middle: with the Hessian there, its diagonal.
        first = h11**2 * m00 - 2 * h11 * h01 * m01 + h01**2 * m11
        second = h01**2 * m00 - 2 * h01 * h00 * m01 + h00**2 * m11
        errors = [np.sqrt(np.maximum(part, 0.0)) / determinant for part in (first, second)]
        values = intercept, errors[0], slope, errors[1]
        return tuple(np.where(solved, value, np.nan) for value in values)
