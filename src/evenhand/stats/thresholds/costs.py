"""Cost of thresholds: cost(t) = FP + c·FN, what a ratio implies and what equal rates would cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError, UsageError, nearest
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.special import expit, logit

EqualRate = Literal["false_negative_rate", "false_positive_rate", "selection_rate"]
EQUAL_RATES: tuple[str, ...] = ("false_negative_rate", "false_positive_rate", "selection_rate")


def implied_threshold(cost_ratio: ArrayLike) -> FloatArray:
    """Probability of the truth at which a decision with this cost ratio flips, 1/(1+c).

    Examples:
        >>> implied_threshold([4, 1, 0, float("inf")]).tolist()
        [0.2, 0.5, 1.0, 0.0]
    """
    ratio = np.asarray(cost_ratio, dtype=float)
    if np.any(ratio < 0):
        raise UsageError(
            f"cost_ratio={float(ratio[ratio < 0].flat[0]):g} is negative. "
            "Give the cost of one false negative in false positives, a number above 0."
        )
    return np.asarray(1.0 / (1.0 + ratio))


def cost_ratio(implied: ArrayLike) -> FloatArray:
    """Cost of one false negative in false positives, (1−p)/p; NaN outside [0, 1].

    Examples:
        >>> cost_ratio([0.25, 0.0, 1.0]).tolist()
        [3.0, inf, 0.0]
        >>> cost_ratio(1.2).tolist()
        nan
    """
    p = np.asarray(implied, dtype=float)
    inside = (p >= 0) & (p <= 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(inside, (1.0 - p) / p, np.nan))


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRatio:
    """A cost ratio on the log scale with its interval, and the implied thresholds of the limits."""

    log_value: FloatArray
    log_standard_error: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    implied_low: FloatArray
    implied_high: FloatArray


def cost_ratio_interval(
    implied: ArrayLike, *, standard_error: ArrayLike, level: float = 0.95
) -> CostRatio:
    """Cost ratio of an implied threshold, interval by the delta method on log c = −logit p.

    Limits of the cost ratio and of the implied threshold are images of each other, so the two
    always agree. Undefined (NaN) unless 0 < p < 1.

    Examples:
        >>> found = cost_ratio_interval(0.25, standard_error=0.02)
        >>> print(f"{found.value:.1f} [{found.low:.2f}, {found.high:.2f}]")
        3.0 [2.43, 3.70]
    """
    p = np.asarray(implied, dtype=float)
    spread = np.asarray(standard_error, dtype=float)
    inside = (p > 0) & (p < 1)
    safe = np.where(inside, p, 0.5)
    log_value = np.where(inside, -logit(safe), np.nan)
    log_error = np.where(inside, spread / (safe * (1.0 - safe)), np.nan)
    half = critical(level) * log_error
    with np.errstate(over="ignore"):
        low, high = np.exp(log_value - half), np.exp(log_value + half)
    return CostRatio(
        log_value=log_value,
        log_standard_error=log_error,
        value=np.exp(log_value),
        low=low,
        high=high,
        implied_low=expit(-(log_value + half)),
        implied_high=expit(-(log_value - half)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCurve:
    """Errors and cost at each threshold of one group; the last one accepts nobody.

    `thresholds[k]` accepts every score at or above it. Rates without cases are NaN.
    """

    thresholds: FloatArray
    false_positives: FloatArray
    false_negatives: FloatArray
    selected: FloatArray
    cost: FloatArray
    cost_ratio: float
    n: float
    positives: float

    def rate(self, name: EqualRate) -> FloatArray:
        """False negative, false positive or selection rate along the curve."""
        top, bottom = {
            "false_negative_rate": (self.false_negatives, self.positives),
            "false_positive_rate": (self.false_positives, self.n - self.positives),
            "selection_rate": (self.selected, self.n),
        }[check_rate(name)]
        return top / bottom if bottom > 0 else np.full_like(top, np.nan)

    @property
    def best(self) -> int:
        """Index of the cheapest threshold; of several, the highest, which selects fewest."""
        least = self.cost.min()
        slack = 1e-9 * max(1.0, abs(float(least)))
        return int(np.flatnonzero(self.cost <= least + slack)[-1])

    @property
    def best_threshold(self) -> float:
        """Score at and above which the cheapest rule decides positive; inf for nobody."""
        return float(self.thresholds[self.best])


def check_rate(name: str) -> str:
    """The name of a rate that thresholds can bring together, refused if it is another."""
    if name not in EQUAL_RATES:
        raise UsageError(
            f"rate={name!r} cannot be equalised. Use one of {', '.join(EQUAL_RATES)}."
            f"{nearest(name, list(EQUAL_RATES))}"
        )
    return name


def cost_curve(
    scores: ArrayLike, *, negatives: ArrayLike, positives: ArrayLike, cost_ratio: float
) -> CostCurve:
    """FP + c·FN at every threshold of one group, from counts at each score value or bin.

    `scores` are the values (or the lower edges of bins) in rising order, `negatives` and
    `positives` the counts, weighted or not, of each truth there.

    Examples:
        >>> curve = cost_curve([1/8, 1/6, 1/4, 1/2], negatives=[7, 10, 6, 2],
        ...                    positives=[1, 2, 2, 2], cost_ratio=4)
        >>> curve.cost.tolist(), curve.best_threshold
        ([25.0, 22.0, 20.0, 22.0, 28.0], 0.25)
    """
    value = np.asarray(scores, dtype=float)
    no, yes = np.asarray(negatives, dtype=float), np.asarray(positives, dtype=float)
    if value.ndim != 1 or value.shape != no.shape or value.shape != yes.shape:
        raise DataError(
            f"scores {value.shape}, negatives {no.shape} and positives {yes.shape} differ in "
            "shape. Give one count of each truth for each score."
        )
    if value.size == 0 or np.any(np.diff(value) <= 0):
        raise DataError("scores must be distinct and rising. Sort them and add up equal ones.")
    if not cost_ratio > 0:
        raise UsageError(
            f"cost_ratio={cost_ratio:g} is not above 0. "
            "Give the cost of one false negative in false positives."
        )
    false_positives = np.append(np.cumsum(no[::-1])[::-1], 0.0)
    false_negatives = np.append(0.0, np.cumsum(yes))
    hits = yes.sum() - false_negatives
    return CostCurve(
        thresholds=np.append(value, np.inf),
        false_positives=false_positives,
        false_negatives=false_negatives,
        selected=false_positives + hits,
        cost=false_positives + cost_ratio * false_negatives,
        cost_ratio=float(cost_ratio),
        n=float(no.sum() + yes.sum()),
        positives=float(yes.sum()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostMargin:
    """Prevalence beside a threshold and the set of cost ratios for which it is the best one.

    `accepted` is the prevalence at the lowest accepted score, `refused` at the highest refused
    one; ratios from `cost_ratio_low` to `cost_ratio_high` all lead to this threshold. Where low
    exceeds high, no ratio makes this threshold the best: the score is not monotone there.
    """

    accepted: float
    refused: float
    cost_ratio_low: float
    cost_ratio_high: float


def margin(curve: CostCurve, *, index: int) -> CostMargin:
    """Cost ratios that a threshold of the curve implies: a set when scores are discrete.

    Examples:
        >>> curve = cost_curve([1/8, 1/6, 1/4, 1/2], negatives=[7, 10, 6, 2],
        ...                    positives=[1, 2, 2, 2], cost_ratio=4)
        >>> found = margin(curve, index=2)
        >>> round(found.cost_ratio_low, 9), round(found.cost_ratio_high, 9)
        (3.0, 5.0)
    """
    yes = np.diff(curve.false_negatives)
    both = -np.diff(curve.selected)
    occupied = np.flatnonzero(both > 0)
    above, below = occupied[occupied >= index], occupied[occupied < index]
    accepted = yes[above[0]] / both[above[0]] if above.size else np.nan
    refused = yes[below[-1]] / both[below[-1]] if below.size else np.nan
    return CostMargin(
        accepted=float(accepted),
        refused=float(refused),
        cost_ratio_low=float(cost_ratio(accepted)) if above.size else 0.0,
        cost_ratio_high=float(cost_ratio(refused)) if below.size else float("inf"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Equalised:
    """What bringing the groups' rates together would cost, and the ratios it would imply.

    One entry per group: the index and threshold chosen on its curve, the rate reached there,
    its cost against the cheapest rule, and the cost ratios that would make it the cheapest.
    """

    rate: str
    index: tuple[int, ...]
    thresholds: tuple[float, ...]
    reached: FloatArray
    cost: FloatArray
    extra_cost: FloatArray
    margins: tuple[CostMargin, ...]
    gap: float
    gap_at_best: float

    @property
    def total_extra_cost(self) -> float:
        """Cost added over all groups, in false positives."""
        return float(self.extra_cost.sum())


def equalise(
    curves: Sequence[CostCurve], *, rate: EqualRate = "false_negative_rate", reference: int = 0
) -> Equalised:
    """Thresholds that bring every group's rate as near as possible to the reference's.

    The reference keeps its cheapest threshold; every other group moves to the threshold whose
    rate is nearest (the cheaper of two equally near).

    Examples:
        >>> female = cost_curve([1/8, 1/6, 1/4, 1/2], negatives=[7, 5, 9, 4],
        ...                     positives=[1, 1, 3, 4], cost_ratio=4)
        >>> male = cost_curve([1/8, 1/6, 1/4, 1/2], negatives=[7, 10, 6, 2],
        ...                   positives=[1, 2, 2, 2], cost_ratio=4)
        >>> found = equalise([female, male])
        >>> found.total_extra_cost, found.reached.round(3).tolist()
        (2.0, [0.222, 0.143])
    """
    target = float(curves[reference].rate(rate)[curves[reference].best])
    if np.isnan(target):
        raise DataError(
            f"{rate} of the reference is undefined: it has no cases to count. "
            "Choose another reference or rate."
        )
    chosen: list[int] = []
    for which, curve in enumerate(curves):
        away = np.abs(curve.rate(rate) - target)
        if which == reference or np.isnan(away).all():
            chosen.append(curve.best)
            continue
        near = np.flatnonzero(away <= away.min() + 1e-12)
        chosen.append(int(near[np.argmin(curve.cost[near])]))
    reached = np.array([c.rate(rate)[k] for c, k in zip(curves, chosen)])
    at_best = np.array([c.rate(rate)[c.best] for c in curves])
    cost = np.array([c.cost[k] for c, k in zip(curves, chosen)])
    return Equalised(
        rate=rate,
        index=tuple(chosen),
        thresholds=tuple(float(c.thresholds[k]) for c, k in zip(curves, chosen)),
        reached=reached,
        cost=cost,
        extra_cost=cost - np.array([c.cost[c.best] for c in curves]),
        margins=tuple(margin(c, index=k) for c, k in zip(curves, chosen)),
        gap=float(np.nanmax(reached) - np.nanmin(reached)),
        gap_at_best=float(np.nanmax(at_best) - np.nanmin(at_best)),
    )
