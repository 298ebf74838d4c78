"""Thresholds by group and class after training: equal true positive rates, or one cost ratio.

Cuts of one score come from `equal_true_positive_rates` and `equal_implied_thresholds`;
`GroupThresholds` puts them over the scores of a model for every class.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from evenhand.errors import DataError, UsageError
from evenhand.lenses.scope import HIDDEN_UNDER
from evenhand.remedies.cells import (
    Codes,
    check_choice,
    coded,
    held_out,
    place_of,
    row_groups,
    several,
    take,
    training_cells,
)
from evenhand.remedies.estimator import GroupRemedy, class_scores, fresh, is_fitted
from evenhand.stats.calibration import isotonic_fit
from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.histogram import rule_of_thumb_bandwidth, score_histogram
from evenhand.stats.thresholds.implied import ImpliedThresholds, implied_thresholds
from evenhand.stats.thresholds.local import local_fit, local_moments

Criterion = Literal["true_positive_rate", "implied_threshold"]
CRITERIA: tuple[Criterion, ...] = ("true_positive_rate", "implied_threshold")
CANDIDATES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """One rule a group: accept above `cut`, and at the cut itself with probability `share`.

    `rate` is the true positive rate this gives on the rows it was fitted on, `n` the positive
    rows there and `gap` what remains between the groups, largest minus smallest rate.
    """

    groups: tuple[Any, ...]
    cut: FloatArray
    share: FloatArray
    target: float
    rate: FloatArray
    n: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """Largest minus smallest true positive rate; NaN with fewer than two groups."""
        known = self.rate[np.isfinite(self.rate)]
        return float(np.ptp(known)) if known.size > 1 else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedCuts:
    """One cut a group at which the truth is as probable as the cost ratio asks.

    `implied` has what the fitting rows say at the cut, with intervals; a cut of ±∞ accepts
    nobody or everybody, because the group's probabilities never reach, or never fall to, the
    target.
    """

    groups: tuple[Any, ...]
    cut: FloatArray
    target: float
    implied: ImpliedThresholds
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTable:
    """True positive rates by class × group under the fitted thresholds, NaN without positives.

    Rates are expected ones: a score at a cut counts by its probability of being accepted.
    """

    classes: tuple[Any, ...]
    groups: tuple[Any, ...]
    rate: FloatArray
    n: NDArray[np.int64]

    @property
    def gap(self) -> FloatArray:
        """Largest minus smallest rate of each class; NaN with fewer than two groups."""
        known = np.isfinite(self.rate)
        top = np.where(known, self.rate, -np.inf).max(axis=1)
        low = np.where(known, self.rate, np.inf).min(axis=1)
        return np.where(known.sum(axis=1) > 1, top - low, np.nan)


def equal_true_positive_rates(
    scores: ArrayLike,
    *,
    truth: ArrayLike,
    group: Any,
    target: float | None = None,
    threshold: float = 0.5,
    randomised: bool = True,
) -> Cuts:
    """Cuts by group with one true positive rate, exact on these rows by chance at the cut.

    `target` is by default the rate of all groups together at `threshold`. Without `randomised`
    each group gets the whole cut that comes nearest, and the gap that remains is in `gap`.

    Examples:
        >>> found = equal_true_positive_rates([0.9, 0.4, 0.8, 0.7], truth=[1] * 4,
        ...                                   group=["f", "f", "m", "m"])
        >>> found.target, found.cut.tolist(), found.share.tolist(), found.gap
        (0.75, [0.4, 0.7], [0.5, 0.5], 0.0)
    """
    s, positive = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    names, g = coded(group, argument="group")
    if not s.shape == positive.shape == g.shape:
        raise UsageError(
            f"{s.size} scores, {positive.size} truths and {g.size} groups do not fit together. "
            "Give one of each for every row."
        )
    if not positive.any():
        raise DataError("No row is positive, so there is no true positive rate to equalise.")
    aim = float((s[positive] >= threshold).mean()) if target is None else float(target)
    if not 0 <= aim <= 1:
        raise UsageError(f"target={aim:g} is not a rate between 0 and 1.")
    cut, share = np.full(len(names), float(threshold)), np.ones(len(names))
    rate = np.full(len(names), np.nan)
    n = np.bincount(g[positive], minlength=len(names))
    for k in np.flatnonzero(n):
        own = s[positive & (g == k)]
        cut[k], share[k] = _cut(own, aim, randomised=randomised)
        rate[k] = accepted(own, cut=cut[k], share=share[k]).mean()
    notes = []
    if (n == 0).any():
        without = several(name for name, count in zip(names, n, strict=True) if not count)
        notes.append(f"No positive rows of {without}: the threshold stays {threshold:g}.")
    return Cuts(groups=names, cut=cut, share=share, target=aim, rate=rate, n=n, notes=tuple(notes))


def equal_implied_thresholds(
    scores: ArrayLike,
    *,
    truth: ArrayLike,
    group: Any,
    cost_ratio: float,
    bandwidth: float | None = None,
    level: float = 0.95,
) -> ImpliedCuts:
    """Cuts by group at which the probability of the truth is 1 ÷ (1 + cost_ratio).

    The probability is the tricube local-linear fit that the thresholds lens audits; `bandwidth`
    is by default the rule of thumb of each group.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> s = rng.random(4000)
        >>> y = rng.random(4000) < s
        >>> found = equal_implied_thresholds(s, truth=y, group=["a"] * 4000, cost_ratio=3)
        >>> found.implied.value.round(6).tolist(), bool(abs(found.cut[0] - 0.25) < 0.05)
        ([0.25], True)
    """
    if not (np.isfinite(cost_ratio) and cost_ratio > 0):
        raise UsageError(
            f"cost_ratio={cost_ratio} is not a number above 0. "
            "Give the cost of one false negative in false positives, such as 4."
        )
    s, positive = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    names, g = coded(group, argument="group")
    target = 1 / (1 + cost_ratio)
    cut, h, notes = np.empty(len(names)), np.empty(len(names)), []
    for k, name in enumerate(names):
        cut[k], h[k], word = _implied_cut(s[g == k], positive[g == k], target, bandwidth)
        if word:
            notes.append(f"{name}: {word}")
    at = np.where(np.isfinite(cut), cut, 0.0)
    moments = local_moments(s, truth=positive, threshold=at, bandwidth=h, groups=g)
    found = implied_thresholds(moments, threshold=cut, bandwidth=h, level=level)
    for k, name in enumerate(names):
        if np.isfinite(cut[k]):
            notes += [f"{name}: {each}." for each in found.warnings[k]]
    return ImpliedCuts(groups=names, cut=cut, target=target, implied=found, notes=tuple(notes))


def accepted(scores: ArrayLike, *, cut: ArrayLike, share: ArrayLike) -> FloatArray:
    """Probability with which each score is accepted."""
    s, at = np.asarray(scores, dtype=np.float64), np.asarray(cut, dtype=np.float64)
    return np.asarray((s > at) + (s == at) * np.asarray(share, dtype=np.float64))


class GroupThresholds(GroupRemedy):
    """Thresholds by group and class over the scores of a model, which stay as they are.

    A fitted `estimator` is used as it stands, and `fit` takes validation rows; another is trained
    here, and `validation_share` of every class and group is kept for the cuts. Without one, X
    are the scores. The criterion "true_positive_rate" makes the groups' rates equal, of two
    classes those of `positive` (the second), at the rate of all together at `threshold`;
    "implied_threshold" cuts each group where the truth is as probable as `cost_ratio` asks.
    `predict` takes the accepted class with the highest score. With `shrinkage` k a cut set by n
    positive rows goes n ÷ (n + k) of the way from `threshold`: less than equal on the fitting
    rows, nearer to it on others. Groups that these lack are refused, or with `unseen` "common" cut
    at `threshold`. `notes_` names cells of few rows.

    Examples:
        >>> scores = np.array([0.9, 0.4, 0.3, 0.8, 0.7, 0.2])
        >>> cuts = GroupThresholds(randomised=False)
        >>> cuts = cuts.fit(scores, [1, 1, 0, 1, 1, 0], group=["f", "f", "f", "m", "m", "m"])
        >>> cuts.rates_.rate[1].tolist(), cuts.predict(scores, group=["f"] * 3 + ["m"] * 3)
        ([1.0, 1.0], array([1, 1, 0, 1, 1, 0]))
    """

    stage = "after"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"group": True}

    def __init__(
        self,
        estimator: Any = None,
        *,
        criterion: Criterion = "true_positive_rate",
        cost_ratio: float | None = None,
        threshold: float = 0.5,
        randomised: bool = True,
        shrinkage: float = 0.0,
        bandwidth: float | None = None,
        validation_share: float = 0.25,
        unseen: str = "error",
        positive: Any = None,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.cost_ratio = cost_ratio
        self.threshold = threshold
        self.randomised = randomised
        self.shrinkage = shrinkage
        self.bandwidth = bandwidth
        self.validation_share = validation_share
        self.unseen = unseen
        self.positive = positive
        self.seed = seed

    def fit(self, X: Any, y: Any, *, group: Any = None) -> Self:
        """Find the cuts of every class and group, on validation rows."""
        self._check_arguments()
        X, y = self._checked_rows(X, y)
        self._check_groups(group)
        X, y, group = self._cut_rows(X, y, np.asarray(group))
        names, labels = coded(y, argument="truth")
        scores = self._scores(X)
        self.classes_ = np.asarray(names if self.estimator_ is None else self.estimator_.classes_)
        if scores.shape != (labels.size, self.classes_.size):
            raise UsageError(
                f"The scores have the shape {scores.shape} for {labels.size} rows and "
                f"{self.classes_.size} classes. Give one column for each class."
            )
        self.groups_, _ = coded(group, argument="group")
        shape = (self.classes_.size, len(self.groups_))
        self.cuts_, self.shares_ = np.full(shape, float(self.threshold)), np.ones(shape)
        self.targets_ = np.full(shape[0], np.nan)
        self.implied_: list[Any] = []
        self.notes_: list[str] = []
        # Of two classes the positive one decides: the other is its complement.
        self.positive_ = self._place_of_positive()
        for c in [self.positive_] if shape[0] == 2 else range(shape[0]):
            self._fit_class(c, scores[:, c], y == self.classes_[c], group)
        if shape[0] == 2:
            self._mirror()
        self.rates_ = self.true_positive_rates(X, y, group=group)
        self._note_small()
        return self

    def predict(self, X: Any, *, group: Any = None) -> NDArray[Any]:
        """The accepted class with the highest score; of all where none is accepted."""
        chosen = self.decide(X, group=group)
        scores = self._scores(X)
        return np.asarray(self.classes_[np.where(chosen, 1 + scores, scores).argmax(axis=1)])

    def predict_proba(self, X: Any, *, group: Any = None) -> FloatArray:
        """The model's own probabilities: thresholds do not change them, nor do groups."""
        self._check_fitted()
        if self.estimator_ is None:
            return self._scores(X)
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def class_probabilities(self, X: Any) -> FloatArray:
        """The model's own scores of each class."""
        self._check_fitted()
        return self._scores(X)

    def decide(self, X: Any, *, group: Any = None) -> NDArray[np.bool_]:
        """Rows × classes: accepted or not, with chances drawn by the seed at the cuts."""
        chance = self.acceptance(X, group=group)
        found = np.random.default_rng(self.seed).random(chance.shape) < chance
        if self.classes_.size == 2:
            found[:, 1 - self.positive_] = ~found[:, self.positive_]
        return np.asarray(found)

    def acceptance(self, X: Any, *, group: Any = None) -> FloatArray:
        """Probability of each row being accepted for each class: 0, 1 or the share at a cut."""
        self._check_fitted()
        return self.accepted_scores(self._scores(X), group=group)

    def accepted_scores(self, scores: FloatArray, *, group: Any) -> FloatArray:
        """The same from scores of rows × classes that the caller has already."""
        g = self._codes(group, rows=len(scores))
        cut, share = self.cuts_.T[g], self.shares_.T[g]
        cut[g < 0], share[g < 0] = self.threshold, 1.0
        chance = accepted(scores, cut=cut, share=share)
        if self.classes_.size == 2:
            # 1 − score rounds: the complement is exact, the mirrored cut need not be.
            chance[:, 1 - self.positive_] = 1 - chance[:, self.positive_]
        return chance

    def true_positive_rates(self, X: Any, y: Any, *, group: Any) -> RateTable:
        """Rates by class and group on these rows, such as test rows the cuts have not seen."""
        chance = self.acceptance(X, group=group)
        g = self._codes(group, rows=len(chance))
        truth = np.asarray(y)
        shape = (self.classes_.size, len(self.groups_))
        rate, n = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
        for c, name in enumerate(self.classes_):
            own = (truth == name) & (g >= 0)
            n[c] = np.bincount(g[own], minlength=shape[1])
            hits = np.bincount(g[own], chance[own, c], minlength=shape[1])
            rate[c] = np.divide(hits, n[c], out=rate[c], where=n[c] > 0)
        return RateTable(classes=tuple(self.classes_.tolist()), groups=self.groups_, rate=rate, n=n)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Thresholds saved before they had all of today's arguments are read as well."""
        earlier: dict[str, Any] = {"validation_share": 0.25, "unseen": "error", "positive": None}
        if "cuts_" in state:
            earlier |= {"estimator_": state["estimator"], "positive_": 1}
        super().__setstate__({**earlier, **state})

    def _check_arguments(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("unseen", self.unseen, ("error", "common"))
        if self.criterion == "implied_threshold" and self.cost_ratio is None:
            raise UsageError(
                "criterion='implied_threshold' needs a cost ratio. "
                "Give cost_ratio=, the cost of one false negative in false positives."
            )
        if not (np.isfinite(self.shrinkage) and self.shrinkage >= 0):
            raise UsageError(
                f"shrinkage={self.shrinkage} is not a number of rows of 0 or more, such as 10."
            )
        if not 0 < self.validation_share < 1:
            raise UsageError(
                f"validation_share={self.validation_share} is not a share between 0 and 1, "
                "such as 0.25."
            )

    def _cut_rows(self, X: Any, y: Any, group: Any) -> tuple[Any, Any, Any]:
        """Rows that set the cuts: all of them, or those that the model is not trained on."""
        self.estimator_ = self.estimator
        if self.estimator is None or is_fitted(self.estimator):
            return X, y, group
        cells = training_cells(y, group=group)
        held = held_out(cells.index, Fraction(str(self.validation_share)), seed=self.seed)
        self.estimator_ = fresh(self.estimator).fit(take(X, ~held), y[~held])
        return take(X, held), y[held], group[held]

    def _fit_class(self, c: int, s: FloatArray, own: NDArray[np.bool_], group: Any) -> None:
        name = self.classes_[c]
        if self.criterion == "implied_threshold":
            found = equal_implied_thresholds(
                s,
                truth=own,
                group=group,
                cost_ratio=float(self.cost_ratio or 0),
                bandwidth=self.bandwidth,
            )
            self.cuts_[c], self.targets_[c] = found.cut, found.target
            self.implied_.append(found.implied)
            self.notes_ += [f"{name}: {each}" for each in found.notes]
            return
        if not own.any():
            self.notes_.append(f"{name}: no positive rows; its threshold stays as it was.")
            return
        cuts = equal_true_positive_rates(
            s, truth=own, group=group, threshold=self.threshold, randomised=self.randomised
        )
        self.cuts_[c], self.shares_[c], self.targets_[c] = cuts.cut, cuts.share, cuts.target
        if self.shrinkage:
            self.cuts_[c] = self._shrunk(cuts.cut, cuts.n, odds=bool(((s >= 0) & (s <= 1)).all()))
            self.shares_[c] = 1.0
        self.notes_ += [f"{name}: {each}" for each in cuts.notes]

    def _shrunk(self, cut: FloatArray, n: NDArray[np.int64], *, odds: bool) -> FloatArray:
        """Cuts nearer to the common threshold, the fewer rows set them; in odds where they can."""
        kept = n / (n + self.shrinkage)
        if not (odds and 0 < self.threshold < 1):
            return np.asarray(self.threshold + kept * (cut - self.threshold))
        level = logit(self.threshold)
        return np.asarray(expit(level + kept * (logit(np.clip(cut, 1e-9, 1 - 1e-9)) - level)))

    def _note_small(self) -> None:
        gaps = self.rates_.gap[np.isfinite(self.rates_.gap)]
        if self.shrinkage and self.criterion == "true_positive_rate" and gaps.size:
            self.notes_.append(
                f"Cuts set by n positive rows go n ÷ (n + {self.shrinkage:g}) of the way from "
                f"{self.threshold:g}; a gap of up to {gaps.max():.2f} remains on the fitting rows."
            )
        n = self.rates_.n
        few = [
            f"{self.classes_[c]} of {self.groups_[g]} ({n[c, g]})"
            for c, g in np.argwhere((n > 0) & (n < HIDDEN_UNDER))
        ]
        if few:
            self.notes_.append(
                f"Cuts set by fewer than {HIDDEN_UNDER} positive rows: {several(few)}."
            )

    def _mirror(self) -> None:
        """Give the other of two classes what the positive one leaves."""
        own, other = self.positive_, 1 - self.positive_
        self.cuts_[other], self.shares_[other] = 1 - self.cuts_[own], 1 - self.shares_[own]

    def _place_of_positive(self) -> int:
        names = self.classes_.tolist()
        if self.positive is None:
            return 1
        return place_of(self.positive, names, argument="positive")

    def _scores(self, X: Any) -> FloatArray:
        if self.estimator_ is not None:
            return class_scores(self.estimator_, X)
        scores = np.asarray(X, dtype=np.float64)
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        return np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores

    def _codes(self, group: Any, *, rows: int) -> Codes:
        """Codes of groups; −1 for an unknown one, where such groups are not refused."""
        codes = row_groups(group, rows=rows, known=self.groups_, remedy=type(self).__name__)
        if (codes < 0).any() and self.unseen == "error":
            new = sorted({str(each) for each in np.asarray(group, dtype=object)[codes < 0]})
            raise DataError(
                f"The thresholds were fitted without the group {several(new)}; they know "
                f"{several(self.groups_)}. Fit them on rows of every group that will be decided "
                "about."
            )
        return codes


def _cut(scores: FloatArray, target: float, *, randomised: bool) -> tuple[float, float]:
    values, counts = np.unique(scores, return_counts=True)
    values, counts = values[::-1], counts[::-1]
    reached = np.cumsum(counts)
    need = target * scores.size
    if not randomised:
        rates = np.concatenate([[0], reached]) / scores.size
        # Of two equally near cuts the lower one: it takes in more people.
        best = int(np.flatnonzero(np.isclose(abs(rates - target), abs(rates - target).min()))[-1])
        return (float(values[best - 1]), 1.0) if best else (float(values[0]), 0.0)
    at = int(np.searchsorted(reached, need - 1e-9))
    at = min(at, values.size - 1)
    share = (need - (reached[at] - counts[at])) / counts[at]
    return float(values[at]), float(np.clip(share, 0.0, 1.0))


def _implied_cut(
    s: FloatArray, positive: NDArray[np.bool_], target: float, bandwidth: float | None
) -> tuple[float, float, str]:
    """Cut, bandwidth and what has to be said about them."""
    middle = float(np.median(s))
    h = bandwidth
    if h is None:
        h = float(rule_of_thumb_bandwidth(score_histogram(s, truth=positive, threshold=middle))[0])
    if not np.isfinite(h):
        return float("inf"), 1.0, "fewer than two distinct scores, so nobody is accepted."
    grid = np.unique(np.quantile(s, np.linspace(0, 1, CANDIDATES)))
    curve = np.array([_prevalence(s, positive, t, h) for t in grid])
    grid, curve = grid[np.isfinite(curve)], curve[np.isfinite(curve)]
    if grid.size < 2:
        return float("inf"), h, "too few scores for a local fit, so nobody is accepted."
    rising = isotonic_fit(curve)
    if rising[-1] < target:
        return float("inf"), h, f"no score reaches a probability of {target:.3g}; none is accepted."
    if rising[0] > target:
        return float("-inf"), h, f"no score falls to a probability of {target:.3g}; all accepted."
    return _crossing(s, positive, target, h, grid, curve, rising), h, ""


def _crossing(
    s: FloatArray,
    positive: NDArray[np.bool_],
    target: float,
    h: float,
    grid: FloatArray,
    curve: FloatArray,
    rising: FloatArray,
) -> float:
    """Where the fit rises through the target, nearest to where its monotone version does."""
    from scipy.optimize import brentq

    guess = float(grid[int(np.argmax(rising >= target))])
    ups = np.flatnonzero((curve[:-1] < target) & (curve[1:] >= target))
    if not ups.size:
        return guess
    best = ups[np.argmin(np.abs(grid[ups] - guess))]
    return float(
        brentq(lambda t: _prevalence(s, positive, t, h) - target, grid[best], grid[best + 1])
    )


def _prevalence(s: FloatArray, positive: NDArray[np.bool_], t: float, h: float) -> float:
    near = np.abs(s - t) < h
    moments = local_moments(s[near], truth=positive[near], threshold=t, bandwidth=h)
    return float(local_fit(moments).value[0])
