"""Special functions that cost an audit nothing until it needs them.

Importing scipy.special takes longer than a small audit does. Rates need the normal distribution
alone, which Python's own libraries have; what else is called is SciPy's from its first call on.
Names and arguments are SciPy's.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from math import erfc, inf, nan
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MOST_ONE_BY_ONE = 20_000
_HALF_ROOT = 0.5**0.5
_NORMAL = NormalDist()


def ndtr(x: ArrayLike) -> Any:
    """Share of a standard normal that lies below x.

    Examples:
        >>> float(ndtr(0.0)), ndtr([-1.96, 1.96]).round(3).tolist()
        (0.5, [0.025, 0.975])
    """
    values: NDArray[np.float64] = np.asarray(x, np.float64)
    if values.size > _MOST_ONE_BY_ONE:
        return _of_scipy("ndtr")(values)
    # The complement's tail keeps its digits where 1 + erf would lose them.
    tails = (values * -_HALF_ROOT).ravel().tolist()
    below = np.fromiter(map(erfc, tails), np.float64, values.size).reshape(values.shape)
    return 0.5 * below


def ndtri(p: ArrayLike) -> Any:
    """Standard normal quantile of p: ∓inf at 0 and 1, NaN outside.

    Examples:
        >>> round(ndtri(0.975), 4)
        1.96
        >>> ndtri(1.0)
        inf
    """
    if not isinstance(p, float | int):
        return _of_scipy("ndtri")(p)
    if 0.0 < p < 1.0:
        return _NORMAL.inv_cdf(p)
    return -inf if p == 0 else inf if p == 1 else nan


@cache
def _of_scipy(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module("scipy.special"), name)
    return found


def _later(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which is imported when it is first called."""

    def call(*arguments: ArrayLike) -> Any:
        return _of_scipy(name)(*arguments)

    return call


betainc = _later("betainc")
chdtrc = _later("chdtrc")
chndtr = _later("chndtr")
expit = _later("expit")
gammainc = _later("gammainc")
gammaln = _later("gammaln")
logit = _later("logit")
stdtr = _later("stdtr")
stdtrit = _later("stdtrit")
