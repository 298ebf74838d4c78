"""Thresholds by group and class after training: equal true positive rates, or one cost ratio."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.errors import UsageError, nearest
from evenhand.mitigation.cells import Codes, coded, several
from evenhand.mitigation.equal_rates import (
    accepted,
    equal_implied_thresholds,
    equal_true_positive_rates,
    group_codes,
    random_draws,
)
from evenhand.mitigation.estimator import Remedy, class_scores
from evenhand.stats.estimate import FloatArray

Criterion = Literal["true_positive_rate", "implied_threshold"]
FEW = 10
CRITERIA = ("true_positive_rate", "implied_threshold")


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


class GroupThresholds(Remedy):
    """Thresholds by group and class over the scores of a fitted model.

    `fit` takes validation rows, not those the model was trained on. The criterion
    "true_positive_rate" makes the rates of the groups equal at the rate all have together at
    `threshold`; "implied_threshold" cuts each group where the truth is as probable as
    `cost_ratio` asks. Scores are left as they are, and so is every rank correlation with them.
    Decisions (`decide`) are made class by class; `predict` takes the accepted class with the
    highest score. Without an estimator, X are the scores themselves. `notes_` names cells with
    fewer than ten positive rows: a cut set by so few says little about anybody else. With
    `shrinkage` k a cut set by n positive rows goes n ÷ (n + k) of the way from `threshold`: rates
    are then no longer equal on the fitting rows, and nearer to it on others.

    Examples:
        >>> scores = np.array([0.9, 0.4, 0.3, 0.8, 0.7, 0.2])
        >>> cuts = GroupThresholds(randomised=False)
        >>> cuts = cuts.fit(scores, [1, 1, 0, 1, 1, 0], group=["f", "f", "f", "m", "m", "m"])
        >>> cuts.rates_.rate[1].tolist(), cuts.predict(scores, group=["f"] * 3 + ["m"] * 3)
        ([1.0, 1.0], array([1, 1, 0, 1, 1, 0]))
    """

    stage = "after"
    needs_group_at_decision = True
    needs_group = True

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
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.cost_ratio = cost_ratio
        self.threshold = threshold
        self.randomised = randomised
        self.shrinkage = shrinkage
        self.bandwidth = bandwidth
        self.seed = seed

    def fit(self, X: Any, y: Any, *, group: Any) -> Self:
        """Find the cuts of every class and group on validation rows."""
        if self.criterion not in CRITERIA:
            raise UsageError(
                f"criterion={self.criterion!r} is not one of {', '.join(CRITERIA)}."
                + nearest(str(self.criterion), list(CRITERIA))
            )
        if self.criterion == "implied_threshold" and self.cost_ratio is None:
            raise UsageError(
                "criterion='implied_threshold' needs a cost ratio. "
                "Give cost_ratio=, the cost of one false negative in false positives."
            )
        if not (np.isfinite(self.shrinkage) and self.shrinkage >= 0):
            raise UsageError(
                f"shrinkage={self.shrinkage} is not a number of rows of 0 or more, such as 10."
            )
        names, labels = coded(y, argument="truth")
        scores = self._scores(X)
        self.classes_ = np.asarray(names if self.estimator is None else self.estimator.classes_)
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
        truth = np.asarray(y)
        # Of two classes the second decides: the first is its complement.
        for c in [1] if shape[0] == 2 else range(shape[0]):
            self._fit_class(c, scores[:, c], truth == self.classes_[c], np.asarray(group))
        if shape[0] == 2:
            self._mirror()
        self.rates_ = self.true_positive_rates(X, y, group=group)
        self._note_small()
        return self

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
            for c, g in np.argwhere((n > 0) & (n < FEW))
        ]
        if few:
            self.notes_.append(f"Cuts set by fewer than {FEW} positive rows: {several(few)}.")

    def _mirror(self) -> None:
        """Give the first of two classes what the second leaves."""
        self.cuts_[0], self.shares_[0] = 1 - self.cuts_[1], 1 - self.shares_[1]

    def _scores(self, X: Any) -> FloatArray:
        if self.estimator is not None:
            return class_scores(self.estimator, X)
        scores = np.asarray(X, dtype=np.float64)
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        return np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores

    def _cells(self, X: Any, group: Any) -> tuple[FloatArray, Codes]:
        self._check_fitted()
        if group is None:
            raise UsageError(
                "Thresholds by group need the group of each row to decide. "
                "Give group= with one for each row."
            )
        scores = self._scores(X)
        return scores, group_codes(group, self.groups_, rows=scores.shape[0])

    def acceptance(self, X: Any, *, group: Any = None) -> FloatArray:
        """Probability of each row being accepted for each class: 0, 1 or the share at a cut."""
        scores, g = self._cells(X, group)
        chance = accepted(scores, cut=self.cuts_.T[g], share=self.shares_.T[g])
        if self.classes_.size == 2:
            # 1 − score rounds: the complement is exact, the mirrored cut need not be.
            chance[:, 0] = 1 - chance[:, 1]
        return chance

    def decide(self, X: Any, *, group: Any = None) -> NDArray[np.bool_]:
        """Rows × classes: accepted or not, with chances drawn by the seed at the cuts."""
        chance = self.acceptance(X, group=group)
        draws = random_draws(*chance.shape, seed=self.seed)
        found = draws < chance
        if self.classes_.size == 2:
            found[:, 0] = ~found[:, 1]
        return np.asarray(found)

    def predict(self, X: Any, **roles: Any) -> NDArray[Any]:
        """The accepted class with the highest score; of all where none is accepted."""
        chosen = self.decide(X, **roles)
        scores = self._scores(X)
        return np.asarray(self.classes_[np.where(chosen, 1 + scores, scores).argmax(axis=1)])

    def predict_proba(self, X: Any, *, group: Any = None) -> FloatArray:
        """The model's own probabilities: thresholds do not change them, nor do groups."""
        self._check_fitted()
        if self.estimator is None:
            return self._scores(X)
        return np.asarray(self.estimator.predict_proba(X), dtype=np.float64)

    def class_probabilities(self, X: Any) -> FloatArray:
        """The model's own scores of each class."""
        self._check_fitted()
        return self._scores(X)

    def true_positive_rates(self, X: Any, y: Any, *, group: Any) -> RateTable:
        """Rates by class and group on these rows, such as test rows the cuts have not seen."""
        chance = self.acceptance(X, group=group)
        g = group_codes(group, self.groups_, rows=len(chance))
        truth = np.asarray(y)
        shape = (self.classes_.size, len(self.groups_))
        rate, n = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
        for c, name in enumerate(self.classes_):
            own = truth == name
            n[c] = np.bincount(g[own], minlength=shape[1])
            hits = np.bincount(g[own], chance[own, c], minlength=shape[1])
            rate[c] = np.divide(hits, n[c], out=rate[c], where=n[c] > 0)
        return RateTable(classes=tuple(self.classes_.tolist()), groups=self.groups_, rate=rate, n=n)
