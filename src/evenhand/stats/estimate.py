"""A number with its uncertainty, or the reason why there is none."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evenhand.errors import UsageError

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


def _count(n: float) -> str:
    """A number of cases in full: weights may make it a fraction."""
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"


def number(value: float) -> float | None:
    """The value as a plain float, or None where it is not finite."""
    return float(value) if isfinite(value) else None
