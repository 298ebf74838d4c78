"""What the task-irrelevant scorers can show: how they tell groups apart within their own class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.tally import encode
from evenhand.lenses.scope import HIDDEN_UNDER
from evenhand.models.norms.ratings import Ratings, agreement
from evenhand.models.norms.scorer import NormScorer
from evenhand.stats.auc import Auc, delong
from evenhand.stats.estimate import Estimate, FloatArray, critical
from evenhand.stats.ranks import average_ranks
from evenhand.stats.rates import rate, wilson

# Norms lie between 0 and 1; of a class where they differ by less than this, there is no more and
# less typical to speak of.
FLAT = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassNorms:
    """How the task-irrelevant scorer of one class does on held-out rows of that class.

    `auc` says how well it tells each group from the others, `deviation` is the standard deviation
    of each group's norm over the rows, `ratings` the agreement with people's ratings of words.
    With fewer than ten rows nothing is said of them.
    """

    n: int
    accuracy: Estimate
    auc: Mapping[str, Estimate]
    deviation: Mapping[str, float]
    ratings: Estimate | None

    @property
    def flat(self) -> bool:
        """Whether every row has nearly the same norm, so that nothing can go with it."""
        return max(self.deviation.values(), default=FLAT) < FLAT


def class_norms(
    scorer: NormScorer,
    irrelevant: Mapping[str, FloatArray],
    *,
    own: NDArray[np.intp],
    truth: Sequence[object],
    ratings: Ratings | None = None,
    level: float = 0.95,
) -> dict[str, ClassNorms]:
    """Every class that has a task-irrelevant scorer and held-out rows with a norm.

    `own` is the place of each row's group among the scorer's, -1 for any other.
    """
    if not irrelevant:
        return {}
    table = np.stack([irrelevant[name] for name in scorer.groups], axis=1)
    names, codes = encode(truth)
    known = (own >= 0) & np.isfinite(table).all(axis=1)
    found: dict[str, ClassNorms] = {}
    for code, name in enumerate(names):
        rows = np.flatnonzero(known & (codes == code))
        if name not in scorer.by_class or not rows.size:
            continue
        norms, group = table[rows], own[rows]
        right = norms.argmax(axis=1) == group
        found[name] = ClassNorms(
            n=rows.size,
            accuracy=rate(int(right.sum()), rows.size, level=level),
            auc={
                each: class_area(norms[group == k, k], norms[group != k, k], level=level)
                for k, each in enumerate(scorer.groups)
            },
            deviation={
                each: float(norms[:, k].std())
                for k, each in enumerate(scorer.groups)
                if rows.size >= HIDDEN_UNDER
            },
            ratings=None if ratings is None else agreement(scorer, ratings, name=name, level=level),
        )
    return found


def class_area(positives: FloatArray, negatives: FloatArray, *, level: float) -> Estimate:
    """The area within a class, undefined where one side has fewer rows than may be shown."""
    m, n = positives.size, negatives.size
    if min(m, n) < HIDDEN_UNDER:
        reason = f"{m} rows of the group and {n} others, and {HIDDEN_UNDER} of each are needed"
        return Estimate.none(reason, level=level, n=m)
    return area(positives, negatives, level=level)


def mean_area(each: Sequence[Estimate], *, level: float = 0.95) -> Estimate:
    """Area under the curve within classes: their mean, weighed by what each class can tell.

    Weights mn/(m + n) for m rows of the group and n others, as in a stratified test.

    Examples:
        >>> high, low = np.array([3.0, 5, 7]), np.array([1.0, 4, 2])
        >>> print(mean_area([area(high, low, level=0.95), area(low, high, level=0.95)]))
        0.500 [0.293, 0.707] n=6 against n=6
    """
    known = [one for one in each if one.value is not None and one.n_reference]
    if not known:
        return Estimate.none("no class has ten held-out rows of two groups", level=level)
    value, low, high = (
        np.array([getattr(one, name) for one in known], dtype=np.float64)
        for name in ("value", "low", "high")
    )
    m = np.array([one.n for one in known], dtype=np.float64)
    n = np.array([one.n_reference for one in known], dtype=np.float64)
    z = critical(level)
    weight = m * n / (m + n)
    weight /= weight.sum()
    mean = float(weight @ value)
    # Half a Wilson interval is nearly z standard errors; it is never 0, as at an area of 1.
    variance = float(weight**2 @ ((high - low) / (2 * z)) ** 2)
    cases = max(0.01, mean * (1 - mean)) / variance
    lower, upper = wilson(mean * cases, cases, z=z)
    return Estimate(
        value=mean,
        low=float(lower),
        high=float(upper),
        level=level,
        n=int(m.sum()),
        n_reference=int(n.sum()),
        method=f"mean over {len(known)} classes, DeLong",
    )


def mean_accuracy(each: Mapping[str, ClassNorms], *, level: float = 0.95) -> Estimate:
    """Share of held-out rows whose group their own class's task-irrelevant scorer tells."""
    if not each:
        return Estimate.none("there are no task-irrelevant scorers", level=level)
    n = sum(one.n for one in each.values())
    right = sum(round((one.accuracy.value or 0.0) * one.n) for one in each.values())
    return rate(right, n, level=level)


def area(positives: FloatArray, negatives: FloatArray, *, level: float) -> Estimate:
    """Area under the curve of two samples of scores, with its interval."""
    m, n = positives.size, negatives.size
    if not m or not n:
        return Estimate.none("the held-out rows have one group alone", level=level, n=m + n)
    found = placed(positives, negatives)
    low, high = found.interval(z=critical(level))
    return Estimate(
        value=float(found.value),
        low=float(low),
        high=float(high),
        level=level,
        n=m,
        n_reference=n,
        method="DeLong",
    )


def placed(positives: FloatArray, negatives: FloatArray) -> Auc:
    """The area of two samples of scores, from the place of each among the other."""
    m, n = positives.size, negatives.size
    ranks = average_ranks(np.concatenate([positives, negatives]))
    d = ranks[:m] - average_ranks(positives)
    e = m - (ranks[m:] - average_ranks(negatives))
    return delong(
        m,
        n,
        placement=d.sum(),
        placement_squares=(d * d).sum(),
        negative_placement_squares=(e * e).sum(),
    )
