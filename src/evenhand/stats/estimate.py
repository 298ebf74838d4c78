"""Difference of two estimates with known standard errors: interval, z and p."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError
from evenhand.stats.special import ndtr, ndtri, stdtr, stdtrit

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its interval and the number of cases behind it.

    `value` is None exactly where `undefined` holds a reason: undefined is never 0.

    Examples:
        >>> print(Estimate(value=0.8, low=0.49, high=0.943, level=0.95, n=10))
        0.800 [0.490, 0.943] n=10
        >>> print(Estimate.none("no cases in the group", level=0.95, n=0))
        undefined: no cases in the group
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: float = 0
    n_reference: float | None = None
    p: float | None = None
    method: str = ""
    undefined: str | None = None

    @classmethod
    def none(cls, reason: str, *, level: float = 0.95, n: float = 0, **rest: Any) -> Self:
        """An estimate that the data cannot support, with the reason."""
        return cls(value=None, level=level, n=n, undefined=reason, **rest)

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined: {self.undefined}"
        interval = (
            f" [{self.low:.3f}, {self.high:.3f}]"
            if self.low is not None and self.high is not None
            else ""
        )
        against = f" against n={_count(self.n_reference)}" if self.n_reference is not None else ""
        return f"{self.value:.3f}{interval} n={_count(self.n)}{against}"


def critical(level: float) -> float:
    """Standard normal quantile of a two-sided interval at this level.

    Examples:
        >>> round(critical(0.95), 4)
        1.96
    """
    if not 0 < level < 1:
        raise UsageError(f"level={level} is not a confidence level. Choose one such as 0.95.")
    return float(ndtri(0.5 + level / 2))


def student_critical(z: ArrayLike, *, freedom: ArrayLike) -> FloatArray:
    """Critical value of Student's t that leaves the same tails as z does; z where freedom is inf.

    NaN without a degree of freedom: one cluster alone says nothing about clusters.

    Examples:
        >>> student_critical(1.959964, freedom=[4, float("inf")]).round(3).tolist()
        [2.776, 1.96]
    """
    z, df = np.broadcast_arrays(np.asarray(z, np.float64), np.asarray(freedom, np.float64))
    finite = np.isfinite(df) & (df > 0)
    with np.errstate(all="ignore"):
        t = -stdtrit(np.where(finite, df, 1.0), ndtr(-z))
    return np.where(finite, t, np.where(df > 0, z, np.nan))


def satterthwaite(
    error: ArrayLike,
    error_reference: ArrayLike,
    *,
    freedom: ArrayLike,
    freedom_reference: ArrayLike,
) -> FloatArray:
    """Degrees of freedom of a difference of two estimates, each with its own (Satterthwaite 1946).

    Examples:
        >>> float(satterthwaite(1.0, 1.0, freedom=10, freedom_reference=10))
        20.0
        >>> float(satterthwaite(1.0, 2.0, freedom=float("inf"), freedom_reference=float("inf")))
        inf
    """
    parts = [
        (np.asarray(e, np.float64) ** 2, np.asarray(f, np.float64))
        for e, f in ((error, freedom), (error_reference, freedom_reference))
    ]
    with np.errstate(all="ignore"):
        return np.asarray(sum(v for v, _ in parts) ** 2 / sum(v**2 / f for v, f in parts))


def _count(n: float) -> str:
    """A number of cases in full: weights may make it a fraction."""
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"


def number(value: float) -> float | None:
    """The value as a plain float, or None where it is not finite."""
    return float(value) if isfinite(value) else None


def numbers(values: ArrayLike) -> list[Any]:
    """The same of an array: lists in lists, as many as it has axes.

    Examples:
        >>> numbers([[1, np.nan], [0.5, np.inf]])
        [[1.0, None], [0.5, None]]
    """
    held = np.asarray(values, dtype=np.float64)
    known = np.isfinite(held)
    if known.all():
        return held.tolist()  # type: ignore[no-any-return]
    plain = held.astype(object)
    plain[~known] = None
    return plain.tolist()  # type: ignore[no-any-return]


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
