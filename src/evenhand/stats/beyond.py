"""How far beyond a limit something lies, told only where it is shown to lie there.

Such numbers are on average further out than the truth, and their usual interval holds it too
seldom: the end that lies nearer to none allows for that.
"""

from collections.abc import Sequence

import numpy as np

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import bisect, square_and_add
from evenhand.stats.special import ndtr

# No share of what is kept is looked for beyond so many times what there is.
_MOST_KEPT = 8.0


def lower_limit_beyond(value: float, *, error: float, line: float, critical: float) -> float:
    """Lower limit of a positive number that is told only where it lies `line` or more from 0.

    The truth from which on a value as large is as improbable as `critical` says, among values
    beyond the line on either side (a truncated normal; Zhong & Prentice 2008). 0 where a truth of
    none is not ruled out. Far beyond the line it is the usual limit.

    Examples:
        >>> shared = {"error": 10.0, "line": 20.0, "critical": 1.96}
        >>> [round(lower_limit_beyond(value, **shared), 1) for value in (100.0, 33.0, 25.0)]
        [80.4, 3.1, 0.0]
    """
    tail = ndtr(-critical)

    def improbable(truth: FloatArray) -> FloatArray:
        told = ndtr((truth - line) / error) + ndtr((-truth - line) / error)
        return np.asarray(tail - ndtr((truth - value) / error) / told)

    nothing = np.zeros(1)
    if not error > 0:
        return value
    if improbable(nothing) <= 0:
        return 0.0
    return float(bisect(improbable, np.array([value]), nothing)[0])


def nearest_told(value: float, near: float, *, critical: float) -> float:
    """The nearer end of how far beyond a limit something lies, that is told where `near` > 0.

    `near` is that end of the usual interval, which reaches `critical` standard errors.

    Examples:
        >>> [round(nearest_told(v, v - 20, critical=2.0), 1) for v in (100.0, 33.0, 21.0)]
        [80.0, 2.7, 0.0]
    """
    reach = value - near
    if not reach > 0:
        return max(value, 0.0)
    return lower_limit_beyond(value, error=reach / critical, line=reach, critical=critical)


def dropped_share(
    share: float,
    limits: Sequence[float],
    other: float,
    other_limits: Sequence[float],
    *,
    weight: float,
    shift: float,
) -> tuple[float, float, float]:
    """Share of all cases to drop, all of them misses, for a share to reach weight × other + shift.

    Of n cases a share p are hits: without x misses it is p ÷ (1 − x/n), which reaches a goal t
    where x/n = 1 − p/t. The interval holds every kept share w = p/t that p − w·t = 0 fits.

    Examples:
        >>> near = {"limits": (0.55, 0.65), "other_limits": (0.75, 0.85)}
        >>> found = dropped_share(0.6, other=0.8, weight=1.0, shift=-0.05, **near)
        >>> [round(one, 3) for one in found]
        [0.2, 0.111, 0.282]
    """
    goal = weight * other + shift
    if not goal > 0:
        return np.nan, np.nan, np.nan

    def kept(end: int) -> float:
        def outside(at: FloatArray) -> FloatArray:
            w = float(at[0])
            span = square_and_add(share, limits, other, other_limits, weight=w * weight)
            return np.array([w * shift - float(span[1]) if end else float(span[0]) - w * shift])

        furthest = np.array([_MOST_KEPT if end else 0.0])
        return float(bisect(outside, np.array([share / goal]), furthest)[0])

    return 1 - share / goal, 1 - kept(1), 1 - kept(0)
