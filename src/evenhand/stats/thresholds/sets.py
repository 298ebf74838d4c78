"""Sets of cost ratios: what discrete scores identify, and how two such sets compare.

Where scores take few values, decisions say of the cost ratio only that it lies between two
numbers. The set is what the data identify; the outer limits add sampling error to its ends.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.costs import implied_threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSet:
    """A set of cost ratios, or of ratios between them, with its outer limits.

    `set_low` and `set_high` are NaN where there is no set: no cases on a side of the threshold,
    ends that exclude each other (the prevalence falls there), or an end that is no number (a
    lower one of infinity, an upper one of 0). `high` may be infinite: nothing bounds it.
    """

    set_low: FloatArray
    set_high: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Whether there is a set."""
        return np.isfinite(self.set_low) & ~np.isnan(self.set_high)

    def take(self, place: int) -> "CostSet":
        """One of several sets."""
        names = ("set_low", "set_high", "low", "high")
        return CostSet(**{name: np.asarray(getattr(self, name)[place]) for name in names})

    def implied(self) -> "CostSet":
        """The same as implied thresholds, 1/(1 + c): the ends change places."""
        ends = [self.set_high, self.set_low, self.high, self.low]
        with np.errstate(invalid="ignore"):
            set_low, set_high, low, high = (implied_threshold(end) for end in ends)
        return CostSet(set_low=set_low, set_high=set_high, low=low, high=high)


def make_set(
    set_low: ArrayLike, set_high: ArrayLike, *, low: ArrayLike, high: ArrayLike
) -> CostSet:
    """A set from its ends and outer limits, without what is no set.

    Examples:
        >>> found = make_set([3.0, float("inf")], [5.0, float("inf")], low=[1.0, 4.0], high=9.0)
        >>> found.set_low.tolist(), found.identified.tolist()
        ([3.0, nan], [True, False])
    """
    start, end, least, most = np.broadcast_arrays(
        *(np.asarray(part, np.float64) for part in (set_low, set_high, low, high))
    )
    none = np.isnan(start) | np.isnan(end) | (start > end) | np.isposinf(start) | (end <= 0)
    return CostSet(
        set_low=np.where(none, np.nan, start),
        set_high=np.where(none, np.nan, end),
        low=np.array(least),
        high=np.array(most),
    )


def set_ratio(group: CostSet, reference: CostSet) -> CostSet:
    """Ratio of two sets, group ÷ reference: from a_low/b_high to a_high/b_low.

    Outer limits combine the distances of both ends from theirs on the log scale, as Newcombe's
    interval does for a gap. Where nothing bounds a side the limit is 0 or infinity; a verdict
    sits on these limits.

    Examples:
        >>> a = make_set(3.0, 5.0, low=2.0, high=8.0)
        >>> b = make_set(1.0, 2.0, low=0.5, high=3.0)
        >>> found = set_ratio(a, b)
        >>> [round(float(x), 2) for x in (found.set_low, found.set_high, found.low, found.high)]
        [1.5, 5.0, 0.85, 11.55]
    """
    with np.errstate(all="ignore"):
        logs = {
            name: (np.log(getattr(group, name)), np.log(getattr(reference, name)))
            for name in ("set_low", "set_high", "low", "high")
        }
        set_low = logs["set_low"][0] - logs["set_high"][1]
        set_high = logs["set_high"][0] - logs["set_low"][1]
        down = np.hypot(logs["set_low"][0] - logs["low"][0], logs["high"][1] - logs["set_high"][1])
        up = np.hypot(logs["high"][0] - logs["set_high"][0], logs["set_low"][1] - logs["low"][1])
        # An end that nothing bounds leaves the ratio unbounded on that side too.
        low = np.where(np.isnan(set_low - down), -np.inf, set_low - down)
        high = np.where(np.isnan(set_high + up), np.inf, set_high + up)
        both = group.identified & reference.identified
        ends = [np.where(both, np.exp(end), np.nan) for end in (set_low, set_high, low, high)]
    return make_set(ends[0], ends[1], low=ends[2], high=ends[3])


def set_gap(group: CostSet, reference: CostSet) -> CostSet:
    """Difference of two sets of implied thresholds, group − reference.

    Outer limits combine the distances of both ends from theirs, as Newcombe's interval does.

    Examples:
        >>> a = make_set(1.5, 7 / 3, low=1.27, high=2.7).implied()
        >>> found = set_gap(a, a)
        >>> [round(float(x), 2) for x in (found.set_low, found.set_high, found.low, found.high)]
        [-0.1, 0.1, -0.15, 0.15]
    """
    down = np.hypot(group.set_low - group.low, reference.high - reference.set_high)
    up = np.hypot(group.high - group.set_high, reference.set_low - reference.low)
    set_low, set_high = group.set_low - reference.set_high, group.set_high - reference.set_low
    return CostSet(
        set_low=np.asarray(set_low),
        set_high=np.asarray(set_high),
        low=np.asarray(set_low - down),
        high=np.asarray(set_high + up),
    )
