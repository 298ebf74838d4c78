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
from evenhand.stats.families import max_t_quantile
from evenhand.stats.labelers.cells import CellCounts, cell_counts
from evenhand.stats.labelers.draws import DRAWN, joint_draws, single
from evenhand.stats.labelers.marginals import BOTH, Kind, Marginals, marginals
from evenhand.stats.labelers.mixtures import Mixture
from evenhand.stats.labelers.pairs import Pairs
from evenhand.stats.labelers.pooled import hyper_posterior
from evenhand.stats.labelers.products import Products
from evenhand.stats.labelers.signal import normal_density

FEWEST_LABELERS = 5
ORDER_FROM = 0.5
# How much wider limits of a labeler's own difference between groups are than the posterior's. The
# spread of such differences is learned from a few noisy labels each, and its prior draws it to
# small values: with 40 labelers of 50 labels and true SDs of 0.2 and 0.3, posterior limits cover
# 92.2 and 92.7 %, these 93.7 and 94.4 %.
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
    """Mean, median, standard deviation and limits of numbers."""

    mean: FloatArray
    median: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    level: float

    def wider(self, factor: float) -> "Posterior":
        """The same with limits so much further from the mean."""
        mean = self.mean
        return replace(
            self,
            low=mean + factor * (self.low - mean),
            high=mean + factor * (self.high - mean),
        )


def summarise(draws: FloatArray, *, level: float = 0.95) -> Posterior:
    """Posterior summary of draws along the first axis.

    Examples:
        >>> found = summarise(np.linspace(0, 1, 1001))
        >>> round(float(found.mean), 3), round(float(found.low), 3), round(float(found.high), 3)
        (0.5, 0.025, 0.975)
    """
    tails = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    low, median, high = np.quantile(draws, tails, axis=0)
    return Posterior(
        mean=draws.mean(axis=0),
        median=median,
        sd=draws.std(axis=0),
        low=low,
        high=high,
        level=level,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledSignal:
    """Posterior of every labeler and of the population of labelers, per group.

    `beta` (draws, 2G) holds t and d′ by turns and `shift` the items' part, common to all labelers
    of a draw; `log_odds_against` draws logit(1−φ), of mean and variance `odds`. `labelers_drawn`
    are t and d′, (2, draws, groups, labelers), of every `stride`th draw, without the items' part.
    `own` numbers are each group's less those of group `reference`, and what is said over groups
    weighs them by `share`. `from_pool` marks labelers without positives or negatives in a group.
    """

    beta: FloatArray
    shift: FloatArray
    log_odds_against: FloatArray
    odds: tuple[FloatArray, FloatArray]
    labelers_drawn: FloatArray
    stride: int
    marginals: Marginals
    share: FloatArray
    reference: int
    sds: FloatArray
    effective_draws: float
    item_variance: FloatArray
    from_pool: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    level: float
    method: str

    def population_draws(self, quantity: PooledQuantity) -> FloatArray:
        """Draws of a quantity for the population of labelers, (draws, groups)."""
        theta = self.beta + self.shift
        return _quantity(theta[:, 0::2], theta[:, 1::2], quantity, self.log_odds_against)

    def population(self, quantity: PooledQuantity) -> Posterior:
        """Summary for the population of labelers, one entry per group."""
        return summarise(self.population_draws(quantity), level=self.level)

    def contrast(
        self, quantity: PooledQuantity, *, group: int = 0, reference: int = 1
    ) -> Posterior:
        """Population's group − reference."""
        draws = self.population_draws(quantity)
        return summarise(draws[:, group] - draws[:, reference], level=self.level)

    def labelers(self, quantity: PooledQuantity, kind: Kind = "groups") -> Posterior:
        """Summary for each labeler, (labelers, groups): by group or less others' mean.

        Over groups (`whole`) it is (labelers, 1). A labeler's `own` differences have no column of
        the reference, and limits widened by `OWN_WIDER`.
        """
        found = self._number(kind, quantity)
        tails = (1 - self.level) / 2, 0.5, (1 + self.level) / 2
        low, median, high = (found.quantile(tail) for tail in tails)
        # Corrections of a law with several peaks may carry one past another.
        low, high = np.minimum(low, median), np.maximum(high, median)
        summary = Posterior(
            mean=found.mean, median=median, sd=found.sd, low=low, high=high, level=self.level
        )
        return summary.wider(OWN_WIDER) if kind == "own" else summary

    def means(self, quantity: PooledQuantity, kind: Kind = "groups") -> FloatArray:
        """Posterior means alone of each labeler's numbers."""
        return self._number(kind, quantity).mean

    def critical(self, quantity: PooledQuantity, kind: Kind = "groups") -> float:
        """By how many standard deviations the furthest of all labelers and groups may lie off."""
        found = self._number(kind, quantity)
        draws = self._labeler_draws(quantity, items=kind != "rest")
        if kind == "whole":
            draws = np.einsum("sgj,g->sj", draws, self.share.astype(draws.dtype))[:, None]
        elif kind == "rest":
            count = draws.shape[2] / (draws.shape[2] - 1)
            draws = (draws - draws.mean(axis=2, keepdims=True)) * draws.dtype.type(count)
        elif kind == "own":
            others = np.arange(draws.shape[1]) != self.reference
            draws = draws[:, others] - draws[:, [self.reference]]
        mean, scale = (x.T.astype(draws.dtype) for x in (found.mean, 1 / found.sd))
        return max_t_quantile((draws - mean) * scale, level=self.level)

    def leaning(self, quantity: PooledQuantity, *, group: int, reference: int) -> FloatArray:
        """Draws of the share of labelers who lean as the population does, (draws,)."""
        whole = self.population_draws(quantity)
        mean = (whole[:, group] - whole[:, reference]).mean()
        draws = self._labeler_draws(quantity)
        same = np.sign(draws[:, group] - draws[:, reference]) == np.sign(mean)
        return np.asarray(same.mean(axis=1))

    def share_leaning(
        self, quantity: PooledQuantity, *, group: int = 0, reference: int = 1
    ) -> Posterior:
        """Share of labelers whose own difference has the sign of the population's mean one."""
        leaning = self.leaning(quantity, group=group, reference=reference)
        return summarise(leaning, level=self.level)

    def reliability(self, quantity: PooledQuantity, kind: Kind = "groups") -> FloatArray:
        """Share of the spread between labelers that is theirs rather than noise, per group.

        The items' common part says nothing about labelers' differences and is left out.
        """
        found = self._number(kind, quantity)
        noise = (found.variance - self._items_variance(kind, quantity)).mean(axis=0)
        between = found.mean.var(axis=0, ddof=1)
        return np.asarray(between / (between + noise))

    def _number(self, kind: Kind, quantity: PooledQuantity) -> Mixture | Products:
        _check(quantity)
        if quantity != "log_cost_ratio":
            return self.marginals.numbers[kind, quantity]
        mean, variance = self.odds
        if kind == "whole":
            mean, variance = mean @ self.share, variance @ self.share**2
        return self.marginals.numbers[kind, "behaviour"].with_noise(mean, variance)

    def _items_variance(self, kind: Kind, quantity: PooledQuantity) -> FloatArray:
        """The part of numbers' variances that items have, (labelers or 1, groups)."""
        alarm, hit = self.item_variance[0::2], self.item_variance[1::2]
        if quantity in ("criterion", "separation"):
            each = (alarm if quantity == "criterion" else alarm + hit)[None]
        else:
            # In z the log cost ratio has slopes −z_F and z_H.
            t, d = (self.marginals.numbers["groups", name].mean for name in BOTH)
            each = t**2 * alarm + (d - t) ** 2 * hit
        if kind == "own":
            others = np.arange(each.shape[1]) != self.reference
            return each[:, others] + each[:, [self.reference]]
        return each

    def _labeler_draws(self, quantity: PooledQuantity, *, items: bool = True) -> FloatArray:
        """Draws of a quantity for each labeler, (draws, groups, labelers)."""
        t, d = self.labelers_drawn
        odds = single(self.log_odds_against[:: self.stride, :, None])
        if items and self.item_variance.any():
            shift = single(self.shift[:: self.stride, :, None])
            t, d = t + shift[:, 0::2], d + shift[:, 1::2]
        return _quantity(t, d, quantity, odds)


def _quantity(
    t: FloatArray, d: FloatArray, quantity: PooledQuantity, odds: FloatArray
) -> FloatArray:
    _check(quantity)
    if quantity in ("criterion", "separation"):
        return t if quantity == "criterion" else d
    behaviour = d * (d / 2 - t)
    return np.asarray(behaviour + odds if quantity == "log_cost_ratio" else behaviour)


def _check(quantity: PooledQuantity) -> None:
    if quantity not in ("criterion", "separation", "log_cost_ratio", "behaviour"):
        raise UsageError(
            f"quantity={quantity!r} is unknown. Use criterion, separation, log_cost_ratio or "
            "behaviour."
        )


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
) -> tuple[FloatArray, FloatArray]:
    """logit(1−φ) per group and its error; φ from distinct items, labels without them, or given."""
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
    return np.asarray(-logit(phi)), spread


def pooled_signal(
    counts: ArrayLike,
    *,
    items: ItemCounts | None = None,
    prevalence: ArrayLike | None = None,
    prevalence_error: ArrayLike | None = None,
    share: ArrayLike | None = None,
    reference: int = 0,
    hyper_draws: int = 128,
    level: float = 0.95,
    seed: int = 0,
) -> PooledSignal:
    """Criterion and separation of every labeler, each borrowing from all the others.

    `counts` are (labelers, groups, 4): hits, misses, false alarms, correct rejections. `items`
    add the variance of which items were judged, needed where labelers share them. `share` are the
    groups' weights where something is said over groups, equal ones by default.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> table = np.stack([rng.multinomial(50, [0.12, 0.08, 0.16, 0.64], 2) for _ in range(8)])
        >>> found = pooled_signal(table, hyper_draws=32)
        >>> found.labelers("criterion").mean.shape
        (8, 2)
    """
    table = np.asarray(counts, dtype=float)
    cells = cell_counts(table)
    groups = cells.groups
    if cells.labelers < FEWEST_LABELERS:
        raise DataError(
            f"Pooling needs {FEWEST_LABELERS} labelers and there are {cells.labelers}. "
            "Use signal_detection with the log-linear correction and read the intervals."
        )
    posterior = hyper_posterior(cells, draws=hyper_draws, seed=seed)
    sds = posterior.sds
    across = float(sds[0] ** 2 + (sds[2] ** 2 if sds.size > 2 else 0.0))
    extra = np.zeros(2 * groups)
    if items is not None:
        extra = item_variance(items, groups=groups, labeler_variance=across)
    shares = np.full(groups, 1 / groups) if share is None else np.asarray(share, dtype=float)
    numbers = marginals(
        cells,
        posterior,
        share=shares,
        reference=reference,
        shift=Pairs(extra[0::2], extra[0::2], extra[0::2] + extra[1::2]),
    )
    joint = joint_draws(posterior, seed=seed)
    rng = np.random.default_rng([seed, 1])
    on_z = np.sqrt(extra) * rng.standard_normal((DRAWN, extra.size))
    shift = np.empty_like(on_z)
    shift[:, 0::2] = -on_z[:, 0::2]
    shift[:, 1::2] = on_z[:, 1::2] - on_z[:, 0::2]
    odds, error = _odds_against(cells, items, prevalence, prevalence_error)
    judged = cells.n.reshape(cells.labelers, groups, 2)
    return PooledSignal(
        beta=np.moveaxis(joint.means, 0, -1).reshape(DRAWN, -1),
        shift=shift,
        log_odds_against=odds + error * rng.standard_normal((DRAWN, groups)),
        odds=(odds, error**2),
        labelers_drawn=joint.planes + single(numbers.moves[:, None]),
        stride=joint.stride,
        marginals=numbers,
        share=shares,
        reference=reference,
        sds=sds,
        effective_draws=posterior.effective,
        item_variance=extra,
        from_pool=np.asarray((judged == 0).any(axis=2)),
        level=level,
        method="binomial probit hierarchy over labelers"
        + (", with item variance" if items is not None else ""),
    )
