"""How good an expert is when nobody knows the truth: Dawid and Skene's latent classes.

Several people judge the same items, the expert among them. If they err independently given the
truth, their agreements tell how often each is right (Dawid & Skene 1979).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray

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
