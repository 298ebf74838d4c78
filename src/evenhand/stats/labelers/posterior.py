"""Pooled signal detection of labelers: posterior draws and what may be said from them.

Never a ranking: where reliability is under 0.5, labelers cannot be put in any order.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit, ndtri

from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.modes import CellCounts, cell_counts, to_z
from evenhand.stats.labelers.pooled import RESAMPLED, hyper_posterior, joint_draws
from evenhand.stats.labelers.quantiles import weighted_quantiles
from evenhand.stats.labelers.signal import normal_density

FEWEST_LABELERS = 5
ORDER_FROM = 0.5
# How much wider limits of a labeler's own difference between groups are than the posterior's. The
# spread of such differences is learned from a few noisy labels each, and its prior draws it to
# small values: with 40 labelers of 50 labels and true SDs of 0.2 and 0.3, posterior limits cover
# 92.1 and 93.9 %, these 93.6 and 95.7 %.
OWN_WIDER = 1.07
PooledQuantity = Literal["criterion", "separation", "log_cost_ratio", "behaviour"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCounts:
    """Yeses and labels of each distinct item, its group's number and its truth (0 or 1)."""

    yes: FloatArray
    n: FloatArray
    group: FloatArray
    truth: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """Mean, median, standard deviation and limits of draws, over their first axis."""

    mean: FloatArray
    median: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    level: float


def summarise(
    draws: FloatArray, *, weights: FloatArray | None = None, level: float = 0.95
) -> Posterior:
    """Posterior summary of draws along the first axis, weighted where weights are given.

    Weights without the draws' last axis hold for all of it.

    Examples:
        >>> found = summarise(np.linspace(0, 1, 1001))
        >>> round(float(found.mean), 3), round(float(found.low), 3), round(float(found.high), 3)
        (0.5, 0.025, 0.975)
    """
    tails = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    if weights is None:
        low, median, high = np.quantile(draws, tails, axis=0)
        return Posterior(
            mean=draws.mean(axis=0),
            median=median,
            sd=draws.std(axis=0),
            low=low,
            high=high,
            level=level,
        )
    # The draws of a number lie beside each other, where adding them up is quicker.
    beside = np.ascontiguousarray(np.moveaxis(draws, 0, -1))
    share = np.ascontiguousarray(np.moveaxis(weights / weights.sum(axis=0), 0, -1))
    if weights.ndim < draws.ndim:
        share = share[..., None, :]
    mean = np.einsum("...s,...s->...", share, beside)
    away = beside - mean[..., None]
    variance = np.einsum("...s,...s,...s->...", share, away, away)
    low, median, high = weighted_quantiles(beside, share, tails)
    return Posterior(
        mean=mean,
        median=median,
        sd=np.sqrt(variance),
        low=low,
        high=high,
        level=level,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledSignal:
    """Posterior draws of every labeler and of the population of labelers, per group.

    `beta` (draws, 2G) and `theta` (draws, labelers, 2G) hold t and d′ by turns and `shift` the
    items' part, common to all labelers of a draw. `log_odds_against` draws logit(1−φ).
    `from_pool` marks labelers without positives or negatives in a group.
    """

    beta: FloatArray
    theta: FloatArray
    weights: FloatArray
    shift: FloatArray
    log_odds_against: FloatArray
    sds: FloatArray
    effective_draws: float
    item_variance: FloatArray
    from_pool: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    level: float
    method: str

    def population_draws(self, quantity: PooledQuantity) -> FloatArray:
        """Draws of a quantity for the population of labelers, (draws, groups)."""
        return self._quantity(self.beta + self.shift, quantity)

    def labeler_draws(self, quantity: PooledQuantity) -> FloatArray:
        """Draws of a quantity for each labeler, (draws, labelers, groups); weight them."""
        return self._quantity(self.theta + self.shift[:, None], quantity)

    def _of_group(self, group: int) -> "PooledSignal":
        """The same of one group alone: of many, a contrast of two need not draw all others."""
        cells = slice(2 * group, 2 * group + 2)
        return replace(
            self,
            beta=self.beta[:, cells],
            theta=self.theta[..., cells],
            shift=self.shift[:, cells],
            log_odds_against=self.log_odds_against[:, group : group + 1],
        )

    def _quantity(self, theta: FloatArray, quantity: PooledQuantity) -> FloatArray:
        if quantity == "criterion":
            return theta[..., 0::2]
        if quantity == "separation":
            return theta[..., 1::2]
        z = to_z(theta)
        behaviour = (z[..., 1::2] ** 2 - z[..., 0::2] ** 2) / 2
        if quantity == "behaviour":
            return np.asarray(behaviour)
        if quantity != "log_cost_ratio":
            raise UsageError(
                f"quantity={quantity!r} is unknown. Use criterion, separation, log_cost_ratio or "
                "behaviour."
            )
        against = self.log_odds_against
        return np.asarray(behaviour + (against[:, None] if theta.ndim == 3 else against))

    def population(self, quantity: PooledQuantity) -> Posterior:
        """Summary for the population of labelers, one entry per group."""
        return summarise(self.population_draws(quantity), level=self.level)

    def labelers(self, quantity: PooledQuantity) -> Posterior:
        """Summary for each labeler and group."""
        draws = self.labeler_draws(quantity)
        return summarise(draws, weights=self.weights, level=self.level)

    def contrast(
        self, quantity: PooledQuantity, *, group: int = 0, reference: int = 1
    ) -> Posterior:
        """Population's group − reference."""
        draws = self.population_draws(quantity)
        return summarise(draws[:, group] - draws[:, reference], level=self.level)

    def labeler_contrast(
        self, quantity: PooledQuantity, *, group: int = 0, reference: int = 1
    ) -> Posterior:
        """Each labeler's group − reference, its limits widened by `OWN_WIDER`."""
        one, other = (self._of_group(g).labeler_draws(quantity)[..., 0] for g in (group, reference))
        found = summarise(one - other, weights=self.weights, level=self.level)
        return replace(
            found,
            low=found.mean + OWN_WIDER * (found.low - found.mean),
            high=found.mean + OWN_WIDER * (found.high - found.mean),
        )

    def share_leaning(
        self, quantity: PooledQuantity, *, group: int = 0, reference: int = 1
    ) -> Posterior:
        """Share of labelers whose own difference has the sign of the population's mean one."""
        leaning = self.leaning(quantity, group=group, reference=reference)
        return summarise(leaning, level=self.level)

    def leaning(self, quantity: PooledQuantity, *, group: int, reference: int) -> FloatArray:
        """Draws of the share of labelers who lean as the population does, (draws,)."""
        one, other = self._of_group(group), self._of_group(reference)
        whole = one.population_draws(quantity) - other.population_draws(quantity)
        draws = one.labeler_draws(quantity) - other.labeler_draws(quantity)
        same = np.sign(draws[..., 0]) == np.sign(whole.mean())
        return np.asarray(same.mean(axis=1))

    def reliability(self, quantity: PooledQuantity) -> FloatArray:
        """Share of the spread between labelers that is theirs rather than noise, per group.

        The items' common part says nothing about labelers' differences and is left out.
        """
        return _reliability(self._quantity(self.theta, quantity), self.weights)

    def contrast_reliability(
        self, quantity: PooledQuantity, *, group: int = 0, reference: int = 1
    ) -> float:
        """Reliability of labelers' own differences between two groups."""
        one, other = self._of_group(group), self._of_group(reference)
        gap = one._quantity(one.theta, quantity) - other._quantity(other.theta, quantity)
        return float(_reliability(gap, self.weights)[0])


def _reliability(draws: FloatArray, weights: FloatArray) -> FloatArray:
    share = (weights / weights.sum(axis=0))[..., None]
    means = (share * draws).sum(axis=0)
    noise = (share * (draws - means) ** 2).sum(axis=0).mean(axis=0)
    between = means.var(axis=0, ddof=1)
    return np.asarray(between / (between + noise))


def item_variance(items: ItemCounts, *, groups: int, labeler_variance: float = 0.0) -> FloatArray:
    """Variance of each cell's z that comes from which items were judged, F₁, H₁, F₂, ….

    Examples:
        >>> items = ItemCounts(yes=np.array([4.0, 0, 3, 1]), n=np.full(4, 4.0),
        ...                    group=np.zeros(4), truth=np.array([0, 0, 1, 1]))
        >>> item_variance(items, groups=1).round(3).tolist()
        [1.374, 0.196]
    """
    cell = (2 * items.group + items.truth).astype(np.intp)
    size = 2 * groups
    count = np.bincount(cell, minlength=size).astype(float)
    n = np.bincount(cell, items.n, minlength=size)
    safe = np.where(n > 0, n, np.nan)
    rate = np.bincount(cell, items.yes, minlength=size) / safe
    around = np.bincount(cell, (items.yes - rate[cell] * items.n) ** 2, minlength=size)
    factor = np.where(count > 1, count / np.where(count > 1, count - 1, 1.0), np.nan)
    extra = np.maximum(factor * around / safe**2 - rate * (1 - rate) / safe, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        on_z = extra / normal_density(ndtri(rate)) ** 2 * (1 + labeler_variance)
    # A cell with one item, or with yes or no alone, shows no variation to carry over.
    return np.where(np.isfinite(on_z), on_z, 0.0)


def _odds_against(
    cells: CellCounts,
    items: ItemCounts | None,
    given: ArrayLike | None,
    error: ArrayLike | None,
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws of logit(1−φ) per group; φ from distinct items, labels without them, or given."""
    groups = cells.groups
    if given is not None:
        phi = np.broadcast_to(np.asarray(given, dtype=float), (groups,))
        if np.any((phi <= 0) | (phi >= 1)):
            raise UsageError(
                f"prevalence={float(phi[(phi <= 0) | (phi >= 1)][0]):g} is not between 0 and 1. "
                "For two in a hundred write 0.02."
            )
        spread = np.zeros(groups)
        if error is not None:
            spread = np.broadcast_to(np.asarray(error, dtype=float), (groups,)) / (phi * (1 - phi))
    else:
        labels = cells.n.sum(axis=0)
        negatives, positives = labels[0::2], labels[1::2]
        if items is not None:
            # What labelers see is items; one judged by many labelers is still one item.
            size = 2 * groups
            seen = np.bincount((2 * items.group + items.truth).astype(np.intp), minlength=size)
            negatives, positives = seen[0::2].astype(float), seen[1::2].astype(float)
        count = negatives + positives
        with np.errstate(invalid="ignore", divide="ignore"):
            phi = positives / count
            phi = np.where((phi > 0) & (phi < 1), phi, np.nan)
            spread = 1 / np.sqrt(count * phi * (1 - phi))
    return np.asarray(-logit(phi) + spread * rng.standard_normal((draws, groups)))


def pooled_signal(
    counts: ArrayLike,
    *,
    items: ItemCounts | None = None,
    prevalence: ArrayLike | None = None,
    prevalence_error: ArrayLike | None = None,
    hyper_draws: int = 128,
    draws: int = RESAMPLED,
    level: float = 0.95,
    seed: int = 0,
) -> PooledSignal:
    """Criterion and separation of every labeler, each borrowing from all the others.

    `counts` are (labelers, groups, 4): hits, misses, false alarms, correct rejections. `items`
    add the variance of which items were judged, needed where labelers share them.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> table = np.stack([rng.multinomial(50, [0.12, 0.08, 0.16, 0.64], 2) for _ in range(8)])
        >>> found = pooled_signal(table, hyper_draws=32)
        >>> found.labelers("criterion").mean.shape
        (8, 2)
    """
    table = np.asarray(counts, dtype=float)
    cells = cell_counts(table)
    if cells.labelers < FEWEST_LABELERS:
        raise DataError(
            f"Pooling needs {FEWEST_LABELERS} labelers and there are {cells.labelers}. "
            "Use signal_detection with the log-linear correction and read the intervals."
        )
    posterior = hyper_posterior(cells, draws=hyper_draws, seed=seed)
    joint = joint_draws(cells, posterior, draws=draws, seed=seed)
    rng = np.random.default_rng([seed, 1])
    sds = posterior.sds
    across = float(sds[0] ** 2 + (sds[2] ** 2 if sds.size > 2 else 0.0))
    extra = np.zeros(2 * cells.groups)
    if items is not None:
        extra = item_variance(items, groups=cells.groups, labeler_variance=across)
    on_z = np.sqrt(extra) * rng.standard_normal((draws, extra.size))
    shift = np.empty_like(on_z)
    shift[:, 0::2] = -on_z[:, 0::2]
    shift[:, 1::2] = on_z[:, 1::2] - on_z[:, 0::2]
    judged = cells.n.reshape(cells.labelers, cells.groups, 2)
    return PooledSignal(
        beta=joint.beta,
        theta=joint.theta,
        weights=joint.weights,
        shift=shift,
        log_odds_against=_odds_against(cells, items, prevalence, prevalence_error, draws, rng),
        sds=sds,
        effective_draws=posterior.effective,
        item_variance=extra,
        from_pool=np.asarray((judged == 0).any(axis=2)),
        level=level,
        method="binomial probit hierarchy over labelers"
        + (", with item variance" if items is not None else ""),
    )
