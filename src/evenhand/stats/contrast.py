"""Difference of two estimates with known standard errors: interval, z and p."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, stdtr, stdtrit

from evenhand.stats.estimate import FloatArray, critical


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Group − reference with its standard error, interval, statistic and two-sided p.

    Arrays of one shape; NaN where either side is undefined. `freedom` is infinite for a normal
    reference distribution.
    """

    value: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    statistic: FloatArray
    p: FloatArray
    freedom: FloatArray


def contrast(
    value: ArrayLike,
    reference: ArrayLike = 0.0,
    *,
    standard_error: ArrayLike,
    standard_error_reference: ArrayLike = 0.0,
    covariance: ArrayLike = 0.0,
    centre: ArrayLike | None = None,
    freedom: ArrayLike = np.inf,
    level: float = 0.95,
) -> Contrast:
    """Difference of two estimates; `covariance` where they share cases.

    `centre` is the bias-corrected difference around which interval and p are formed when it
    differs from the value shown.

    Examples:
        >>> found = contrast(0.5, 0.3, standard_error=0.06, standard_error_reference=0.08)
        >>> print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}] p={found.p:.3f}")
        0.20 [0.00, 0.40] p=0.046
    """
    a, b = np.asarray(value, dtype=float), np.asarray(reference, dtype=float)
    se_a = np.asarray(standard_error, dtype=float)
    se_b = np.asarray(standard_error_reference, dtype=float)
    difference = a - b
    variance = se_a**2 + se_b**2 - 2.0 * np.asarray(covariance, dtype=float)
    error = np.sqrt(np.maximum(variance, 0.0))
    middle = difference if centre is None else np.asarray(centre, dtype=float)
    df = np.broadcast_to(np.asarray(freedom, dtype=float), error.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.asarray(middle / error)
        finite = np.isfinite(df) & (df > 0)
        spare = np.where(finite, df, 1.0)
        tail = np.where(finite, stdtr(spare, -np.abs(statistic)), ndtr(-np.abs(statistic)))
        quantile = np.where(finite, stdtrit(spare, 0.5 + level / 2), critical(level))
    # No degrees of freedom, no interval: one labeler alone says nothing about labelers.
    quantile = np.where(df <= 0, np.nan, quantile)
    tail = np.where(df <= 0, np.nan, tail)
    return Contrast(
        value=np.asarray(difference),
        standard_error=np.asarray(error),
        low=np.asarray(middle - quantile * error),
        high=np.asarray(middle + quantile * error),
        statistic=statistic,
        p=np.asarray(2.0 * tail),
        freedom=df,
    )
