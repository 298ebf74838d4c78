"""Inferred group membership: rates corrected by a known confusion of groups, and bounds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.rates import wilson


def _informative(sensitivity: ArrayLike, specificity: ArrayLike) -> tuple[FloatArray, FloatArray]:
    se, sp = np.asarray(sensitivity, dtype=float), np.asarray(specificity, dtype=float)
    for name, value in (("sensitivity", se), ("specificity", sp)):
        wrong = value[(value < 0) | (value > 1) | np.isnan(value)]
        if wrong.size:
            raise UsageError(
                f"{name}={float(wrong.flat[0]):g} is not between 0 and 1. "
                "Give the share of cases that the expert gets right."
            )
    total = np.asarray(se + sp)
    if np.any(total <= 1):
        raise UsageError(
            f"sensitivity + specificity = {float(total[total <= 1].flat[0]):g} is not above 1: "
            "such an expert does no better than chance, and no truth can be recovered."
        )
    return se, sp


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedPrevalence:
    """Prevalence after correction, the raw one beside it; `clipped` where it left [0, 1].

    `value` is clipped to [0, 1] where `clipped` is true; `unclipped` is what came out.
    """

    raw: FloatArray
    value: FloatArray
    unclipped: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    clipped: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    method: str


def corrected_prevalence(
    prevalence: ArrayLike,
    *,
    sensitivity: ArrayLike,
    specificity: ArrayLike,
    standard_error: ArrayLike = 0.0,
    sensitivity_error: ArrayLike = 0.0,
    specificity_error: ArrayLike = 0.0,
    level: float = 0.95,
) -> CorrectedPrevalence:
    """Rogan and Gladen's (p + Sp − 1)/(Se + Sp − 1), with a delta-method interval.

    For a prevalence or for an implied threshold; sensitivity and specificity may differ by group.

    Examples:
        >>> found = corrected_prevalence(0.12, sensitivity=0.95, specificity=0.98,
        ...                              standard_error=0.01)
        >>> print(f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]")
        0.1075 [0.0865, 0.1286]
    """
    se, sp = _informative(sensitivity, specificity)
    p = np.asarray(prevalence, dtype=float)
    scale = se + sp - 1
    value = np.asarray((p + sp - 1) / scale)
    variance = (
        np.asarray(standard_error, dtype=float) ** 2
        + (value * np.asarray(sensitivity_error, dtype=float)) ** 2
        + ((1 - value) * np.asarray(specificity_error, dtype=float)) ** 2
    ) / scale**2
    error = np.sqrt(variance)
    half = critical(level) * error
    return CorrectedPrevalence(
        raw=p,
        value=np.clip(value, 0.0, 1.0),
        unclipped=value,
        standard_error=np.asarray(error),
        low=np.clip(value - half, 0.0, 1.0),
        high=np.clip(value + half, 0.0, 1.0),
        clipped=np.asarray((value < 0) | (value > 1)),
        method="Rogan–Gladen, delta method",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedCounts:
    """Hit and false-alarm rates against the truth rather than against a noisy expert.

    Arrays of one shape. Rates that come out outside [0, 1] are refused: NaN, with the reason in
    `undefined`. `hits` … are the expected counts against the truth, for signal detection.
    """

    prevalence: FloatArray
    hit_rate: FloatArray
    false_alarm_rate: FloatArray
    hit_rate_error: FloatArray
    false_alarm_rate_error: FloatArray
    hits: FloatArray
    misses: FloatArray
    false_alarms: FloatArray
    correct_rejections: FloatArray
    undefined: np.ndarray[tuple[int, ...], np.dtype[np.object_]]


def corrected_counts(
    hits: ArrayLike,
    misses: ArrayLike,
    false_alarms: ArrayLike,
    correct_rejections: ArrayLike,
    *,
    sensitivity: ArrayLike,
    specificity: ArrayLike,
) -> CorrectedCounts:
    """Rates of a labeler solved from counts against an expert of known quality.

    With q_ab = P(label a, expert b): q_a1 = Se·φ·P(a|1) + (1−Sp)(1−φ)P(a|0) and
    q_a0 = (1−Se)φ·P(a|1) + Sp(1−φ)P(a|0). Labeler and expert must err independently given the
    truth; errors are by the delta method from the multinomial counts.

    Examples:
        >>> found = corrected_counts(80, 20, 90, 810, sensitivity=0.95, specificity=0.98)
        >>> print(f"{found.hit_rate:.3f} {found.false_alarm_rate:.3f} {found.prevalence:.3f}")
        0.958 0.096 0.086
    """
    se, sp = _informative(sensitivity, specificity)
    h, m, f, r, se, sp = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (hits, misses, false_alarms, correct_rejections)),
        se,
        sp,
    )
    n = h + m + f + r
    total = np.where(n > 0, n, np.nan)
    scale = se + sp - 1
    # Joint shares of (label, truth): one 2×2 system for yes and the same one for no.
    yes_1 = (sp * h - (1 - sp) * f) / (scale * total)
    yes_0 = (se * f - (1 - se) * h) / (scale * total)
    no_1 = (sp * m - (1 - sp) * r) / (scale * total)
    no_0 = (se * r - (1 - se) * m) / (scale * total)
    phi = yes_1 + no_1
    smallest = np.min([yes_1, yes_0, no_1, no_0], axis=0)
    undefined = np.full(h.shape, None, dtype=object)
    undefined[smallest < -1e-12] = (
        "the correction leaves [0, 1]: the labels contradict the expert's stated quality"
    )
    undefined[(phi <= 1e-12) | (phi >= 1 - 1e-12)] = "no positives or no negatives are left"
    undefined[n == 0] = "no items judged"
    fine = np.array([reason is None for reason in undefined.flat]).reshape(h.shape)
    safe = np.where(fine, phi, np.nan)
    hit, alarm = yes_1 / safe, yes_0 / (1 - safe)
    shares = np.stack([h, m, f, r]) / total

    def spread(gradient: FloatArray, divisor: FloatArray) -> FloatArray:
        mean = (shares * gradient).sum(axis=0)
        variance = (shares * gradient**2).sum(axis=0) - mean**2
        return np.asarray(np.sqrt(np.maximum(variance, 0.0) / total) / np.abs(scale * divisor))

    hit_gradient = np.stack([sp * (1 - hit), -sp * hit, -(1 - sp) * (1 - hit), (1 - sp) * hit])
    alarm_gradient = np.stack(
        [-(1 - se) * (1 - alarm), (1 - se) * alarm, se * (1 - alarm), -se * alarm]
    )

    def kept(share: FloatArray) -> FloatArray:
        return np.where(fine, np.maximum(share, 0.0) * total, np.nan)

    return CorrectedCounts(
        prevalence=np.asarray(safe),
        hit_rate=np.asarray(hit),
        false_alarm_rate=np.asarray(alarm),
        hit_rate_error=spread(hit_gradient, safe),
        false_alarm_rate_error=spread(alarm_gradient, 1 - safe),
        hits=kept(yes_1),
        misses=kept(no_1),
        false_alarms=kept(yes_0),
        correct_rejections=kept(no_0),
        undefined=undefined,
    )


FEWEST_RATERS = 3
STEPS, TOLERANCE = 500, 1e-7
# Half a case of each kind: rates of 0 and 1 stay away from the edge.
PRIOR = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentTruth:
    """Prevalence of the latent truth, each rater's sensitivity and specificity, with intervals.

    `low` and `high` hold limits by name, from resampled items. `probability` is how likely each
    item is positive.
    """

    prevalence: float
    sensitivity: FloatArray
    specificity: FloatArray
    low: dict[str, FloatArray]
    high: dict[str, FloatArray]
    probability: FloatArray
    items: int
    level: float
    converged: bool


def latent_truth(
    labels: ArrayLike, *, expert: int = 0, draws: int = 200, level: float = 0.95, seed: int = 0
) -> LatentTruth:
    """Sensitivity and specificity of every rater from labels alone.

    `labels` is (items, raters) of 0 and 1, NaN where somebody did not judge an item; `expert` is
    the column that is surely better than chance and so says which class is the positive one.
    Items that are hard for everybody break the assumption: raters then look better than they are.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.random(2000) < 0.3
        >>> right = rng.random((2000, 4)) < [0.95, 0.8, 0.8, 0.7]
        >>> found = latent_truth(np.where(right, truth[:, None], ~truth[:, None]), draws=20)
        >>> print(f"{found.prevalence:.2f}", found.sensitivity.round(1).tolist())
        0.30 [0.9, 0.8, 0.8, 0.7]
    """
    table = _table(labels, expert)
    # Items judged alike are alike: one pattern stands for all of them.
    patterns, place, count = np.unique(
        np.where(np.isnan(table), -1.0, table), axis=0, return_inverse=True, return_counts=True
    )
    yes, no = (patterns == 1).astype(float), (patterns == 0).astype(float)
    share = yes.sum(axis=1) / (yes + no).sum(axis=1)
    *found, probability, converged = _fit(yes, no, count[None].astype(float), share)
    if draws:
        rng = np.random.default_rng(seed)
        drawn = rng.multinomial(len(table), count / len(table), size=draws).astype(float)
        again = _fit(yes, no, drawn, probability[0])[:3]
        found = [np.concatenate(pair) for pair in zip(found, again)]
    prevalence, sensitivity, specificity = found
    turned = sensitivity[:, expert] + specificity[:, expert] < 1
    prevalence = np.where(turned, 1 - prevalence, prevalence)
    sensitivity, specificity = (
        np.where(turned[:, None], 1 - specificity, sensitivity),
        np.where(turned[:, None], 1 - sensitivity, specificity),
    )
    held = {"prevalence": prevalence, "sensitivity": sensitivity, "specificity": specificity}
    tails = ((1 - level) / 2, (1 + level) / 2)
    ends = {
        name: np.quantile(v[1:], tails, axis=0) if draws else np.full((2, *v.shape[1:]), np.nan)
        for name, v in held.items()
    }
    return LatentTruth(
        prevalence=float(prevalence[0]),
        sensitivity=sensitivity[0],
        specificity=specificity[0],
        low={name: end[0] for name, end in ends.items()},
        high={name: end[1] for name, end in ends.items()},
        probability=np.abs(turned[0] - probability[0])[place.reshape(-1)],
        items=len(table),
        level=level,
        converged=converged,
    )


def _table(labels: ArrayLike, expert: int) -> FloatArray:
    table = np.asarray(labels, dtype=float)
    if table.ndim != 2 or table.shape[1] < FEWEST_RATERS:
        raise DataError(
            f"labels of shape {table.shape} are not items by raters: {FEWEST_RATERS} raters are "
            "needed, the expert among them. Give one column for each."
        )
    if not -table.shape[1] <= expert < table.shape[1]:
        raise DataError(
            f"expert={expert} is not one of the {table.shape[1]} columns. Count them from 0."
        )
    wrong = table[~np.isnan(table) & (table != 0) & (table != 1)]
    if wrong.size:
        raise DataError(
            f"{wrong[0]:g} is not a label. Write 1 for yes, 0 for no and NaN where nobody judged."
        )
    table = table[(~np.isnan(table)).any(axis=1)]
    together = (~np.isnan(table)).sum(axis=1) >= FEWEST_RATERS
    if not together.any():
        raise DataError(
            f"No item was judged by {FEWEST_RATERS} raters, so agreement tells nothing of the "
            "truth. Let more of them judge the same items."
        )
    return np.asarray(table)


def _fit(
    yes: FloatArray, no: FloatArray, weight: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, bool]:
    """EM for every row of weights at once: φ, Se, Sp, probabilities, and whether it settled."""
    positive: NDArray[np.float64] = np.broadcast_to(start, weight.shape)
    before = np.full(len(weight), np.inf)
    for _ in range(STEPS):
        mine, other = weight * positive, weight * (1 - positive)
        prevalence = (mine.sum(axis=1) + PRIOR) / (weight.sum(axis=1) + 2 * PRIOR)
        sensitivity = (mine @ yes + PRIOR) / (mine @ (yes + no) + 2 * PRIOR)
        specificity = (other @ no + PRIOR) / (other @ (yes + no) + 2 * PRIOR)
        odds = logit(prevalence)[:, None]
        odds = odds + (np.log(sensitivity) - np.log1p(-specificity)) @ yes.T
        odds = odds + (np.log1p(-sensitivity) - np.log(specificity)) @ no.T
        positive = expit(odds)
        if np.abs(prevalence - before).max() < TOLERANCE:
            return prevalence, sensitivity, specificity, positive, True
        before = prevalence
    return prevalence, sensitivity, specificity, positive, False


LARGEST_CONDITION = 1e8


def true_given_assigned(assigned_given_true: ArrayLike, *, shares: ArrayLike) -> FloatArray:
    """P(true group | assigned group), rows assigned, from P(assigned | true) and true shares.

    Examples:
        >>> true_given_assigned([[0.95, 0.05], [0.2, 0.8]], shares=[0.7, 0.3]).round(4).tolist()
        [[0.9172, 0.0828], [0.1273, 0.8727]]
    """
    confusion, share = np.asarray(assigned_given_true, dtype=float), np.asarray(shares, dtype=float)
    _stochastic(confusion, "P(assigned | true)")
    if share.shape != (len(confusion),) or np.any(share < 0) or abs(share.sum() - 1) > 1e-6:
        raise UsageError(
            f"shares={share.tolist()} do not fit. Give one share of 0 or more for each true "
            "group, adding up to 1."
        )
    joint = confusion * share[:, None]
    assigned = joint.sum(axis=0)
    if np.any(assigned <= 0):
        raise DataError("A group is never assigned. Leave it out of the confusion matrix.")
    return np.asarray((joint / assigned).T)


def _stochastic(matrix: FloatArray, name: str) -> None:
    if matrix.ndim != 2 or np.any(matrix < 0) or np.any(np.abs(matrix.sum(axis=1) - 1) > 1e-6):
        raise UsageError(
            f"{name} is not a matrix of probabilities. Every row must add up to 1 without "
            "negative entries."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBounds:
    """Lowest and highest rate of each true group that the data allow without assumption.

    `low` and `high` take the observed rates as they are; `outer_low` and `outer_high` take
    their Wilson limits instead.
    """

    low: FloatArray
    high: FloatArray
    outer_low: FloatArray
    outer_high: FloatArray


def group_rate_bounds(
    hits: ArrayLike,
    n: ArrayLike,
    *,
    membership: ArrayLike,
    assigned_shares: ArrayLike | None = None,
    level: float = 0.95,
) -> GroupBounds:
    """Bounds on true groups' rates that hold whatever wrong assignment depends on.

    Within an assigned group of rate r that holds a share P of group g, g's rate lies between
    (r−1+P)/P and r/P; these are averaged over assigned groups by P(assigned | g).

    Examples:
        >>> found = group_rate_bounds([283, 125], [1000, 1000],
        ...                           membership=[[0.9, 0.1], [0.1, 0.9]])
        >>> found.low.round(2).tolist(), found.high.round(2).tolist()
        ([0.18, 0.03], [0.38, 0.22])
    """
    k, size = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    matrix = np.asarray(membership, dtype=float)
    _stochastic(matrix, "P(true | assigned)")
    assigned = size / size.sum() if assigned_shares is None else np.asarray(assigned_shares, float)
    joint = matrix * assigned[:, None]
    given_true = joint / joint.sum(axis=0)
    rate = k / np.where(size > 0, size, np.nan)
    low, high = wilson(k, size, z=critical(level))

    def least(r: FloatArray) -> FloatArray:
        inside = np.divide(
            r[:, None] - 1 + matrix, matrix, out=np.zeros_like(matrix), where=matrix > 0
        )
        return np.asarray((given_true * np.maximum(inside, 0.0)).sum(axis=0))

    def most(r: FloatArray) -> FloatArray:
        inside = np.divide(r[:, None], matrix, out=np.ones_like(matrix), where=matrix > 0)
        return np.asarray((given_true * np.minimum(inside, 1.0)).sum(axis=0))

    return GroupBounds(
        low=least(rate),
        high=most(rate),
        outer_low=least(np.asarray(low)),
        outer_high=most(np.asarray(high)),
    )
