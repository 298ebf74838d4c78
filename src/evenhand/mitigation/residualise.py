"""Norm residualisation: class scores less what a norm explains of them inside classes and groups.

One number a class, learnt from cross-fitted scores; no group is needed at decision time.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax

from evenhand.errors import UsageError
from evenhand.mitigation.cells import Cells, cells_of, place_of
from evenhand.mitigation.crossfit import NormScorer, chosen_group, crossfit, original_rows
from evenhand.mitigation.estimator import (
    Remedy,
    checked_weights,
    class_logits,
    fit_weighted,
    fresh,
    probabilities,
    take,
)
from evenhand.mitigation.norm_slopes import (
    NormSlopes,
    StrengthStep,
    accuracy_of,
    norm_slopes,
    norm_trend,
    pick_strength,
    residual,
)
from evenhand.stats.estimate import FloatArray

GRID = tuple(round(step / 20, 2) for step in range(21))


@dataclass(frozen=True, slots=True, kw_only=True)
class Residualisation:
    """What to take from the scores of each class: strength × slope × (norm − centre).

    `steps` has what each strength would give on the cross-fitted scores, `stopped_by` why the
    strength is not larger.
    """

    slopes: NormSlopes
    strength: float
    stopped_by: str
    steps: tuple[StrengthStep, ...]

    def apply(self, logits: FloatArray, *, norm: FloatArray) -> FloatArray:
        """Residual logits of rows × classes."""
        found = residual(logits, norm=norm, slopes=self.slopes, strength=self.strength)
        return np.asarray(found, dtype=np.float64)


def residualise(
    logits: FloatArray,
    *,
    norm: FloatArray,
    truth: Any,
    group: Any,
    norm_group: Any = None,
    strength: float | None = None,
    budget: float = 0.01,
    grid: Sequence[float] = GRID,
) -> Residualisation:
    """What to take away, from cross-fitted class logits (rows × classes) and norm logits.

    `norm_group` is the group whose norm is scored, by default the second of two. Without a
    `strength` it is the largest on the grid whose loss of accuracy stays within the budget,
    stopping before the slope of r_c on the group's share passes 0.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> truth, group = rng.integers(0, 4, 4000), rng.integers(0, 2, 4000)
        >>> norm = rng.normal(size=4000)
        >>> noise = rng.normal(size=(4000, 4))
        >>> logits = 3 * np.eye(4)[truth] + noise + np.outer(norm, [-0.6, -0.2, 0.2, 0.6])
        >>> found = residualise(logits, norm=norm, truth=truth, group=group, strength=1.0)
        >>> found.slopes.raw.round(1).tolist()
        [-0.6, -0.2, 0.2, 0.6]
    """
    cells = cells_of(truth, group=group)
    focal = place_of(chosen_group(norm_group, cells), cells.groups, argument="norm_group")
    return _residualise(
        np.asarray(logits, dtype=np.float64),
        np.asarray(norm, dtype=np.float64),
        cells,
        focal,
        strength=strength,
        budget=budget,
        grid=grid,
    )


def _residualise(
    logits: FloatArray,
    norm: FloatArray,
    cells: Cells,
    focal: int,
    *,
    strength: float | None,
    budget: float,
    grid: Sequence[float],
) -> Residualisation:
    slopes = norm_slopes(logits, norm=norm, cells=cells, focal=focal)
    wanted = sorted({0.0, *grid, *([] if strength is None else [float(strength)])})
    steps = [_step(logits, norm, cells, focal, slopes, each) for each in wanted]
    if strength is None:
        chosen, why = pick_strength(steps, budget=budget)
    else:
        chosen, why = float(strength), "the strength given"
    return Residualisation(slopes=slopes, strength=chosen, stopped_by=why, steps=tuple(steps))


def _step(
    logits: FloatArray,
    norm: FloatArray,
    cells: Cells,
    focal: int,
    slopes: NormSlopes,
    strength: float,
) -> StrengthStep:
    after = residual(logits, norm=norm, slopes=slopes, strength=strength)
    trend = norm_trend(after, norm=norm, cells=cells, focal=focal)
    return StrengthStep(
        strength=strength,
        accuracy=accuracy_of(after, cells),
        slopes=tuple(trend.slopes.tolist()),
        mean_absolute=tuple(trend.mean_absolute.tolist()),
    )


class NormResidualisedClassifier(Remedy):
    """A classifier whose logits are residualised against a norm scorer, after training.

    `norm_scorer` is an estimator, fitted here to tell `norm_group` from the other rows, or a
    callable that gives logits. It sees `norm_features` (scrubbed text) where they are given,
    else the classifier's own. `strength` is a number or None: by the accuracy `budget`.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> group, truth = rng.integers(0, 2, 600), rng.integers(0, 3, 600)
        >>> X = np.column_stack([np.eye(3)[truth] + rng.normal(size=(600, 3)), group - 0.5])
        >>> model = NormResidualisedClassifier(strength=0.5).fit(X, truth, group=group)
        >>> model.predict_proba(X).shape, model.residualisation_.strength
        ((600, 3), 0.5)
    """

    stage = "after"

    def __init__(
        self,
        estimator: Any = None,
        norm_scorer: Any = None,
        *,
        norm_group: Any = None,
        strength: float | None = None,
        budget: float = 0.01,
        grid: Sequence[float] = GRID,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.norm_scorer = norm_scorer
        self.norm_group = norm_group
        self.strength = strength
        self.budget = budget
        self.grid = grid
        self.folds = folds
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        group: Any,
        norm_features: Any = None,
        sample_weight: Any = None,
        origin: Any = None,
        is_counterfactual: Any = None,
        fitted: Any = None,
    ) -> Self:
        """Cross-fit both models, learn the slopes, choose the strength and fit on all rows.

        `fitted` is the estimator fitted on all of these rows, where the caller has it already.

        On an augmented set give `origin` and `is_counterfactual`: a text and its copy then share
        a fold, and copies train the classifier but neither norm scorer nor slopes.
        """
        cells = cells_of(y, group=group)
        originals = original_rows(is_counterfactual, rows=cells.truth.size)
        self.norm_group_ = chosen_group(self.norm_group, cells)
        norm = NormScorer(self.norm_scorer, self.norm_group_)
        about = X if norm_features is None else norm_features
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, rows=cells.truth.size)
        found = crossfit(
            X,
            y,
            cells=cells,
            norm=norm,
            norm_features=about,
            estimator=self.estimator,
            weights=weights,
            folds=self.folds,
            seed=self.seed,
            origin=origin,
            originals=originals,
        )
        assert found.logits is not None
        self.residualisation_ = _residualise(
            found.logits[originals],
            found.norm[originals],
            cells.take(originals),
            cells.groups.index(self.norm_group_),
            strength=self.strength,
            budget=self.budget,
            grid=self.grid,
        )
        self.norm_ = norm.fitted(about, cells, np.flatnonzero(originals))
        if fitted is None:
            fitted = fit_weighted(fresh(self.estimator), X, y, weights)
        self.estimator_ = fitted
        self.classes_ = self.estimator_.classes_
        self.joint_ = _is_joint(self.estimator_, take(X, np.arange(min(50, cells.truth.size))))
        return self

    def _logits(self, X: Any, norm_features: Any) -> FloatArray:
        self._check_fitted()
        norm = self.norm_(X if norm_features is None else norm_features)
        return self.residualisation_.apply(class_logits(self.estimator_, X), norm=norm)

    def decision_function(self, X: Any, *, norm_features: Any = None) -> FloatArray:
        """Residual logits: rows × classes, or one number a row where there are two classes."""
        logits = self._logits(X, norm_features)
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def class_probabilities(self, X: Any, *, norm_features: Any = None) -> FloatArray:
        """Probability of each class against its rest."""
        logits = self._logits(X, norm_features)
        if logits.shape[1] == 1 or self.joint_:
            return probabilities(logits, joint=self.joint_)
        return np.asarray(expit(logits))

    def predict_proba(self, X: Any, *, norm_features: Any = None) -> FloatArray:
        """Probabilities that add to 1, linked as the inner estimator links them."""
        return probabilities(self._logits(X, norm_features), joint=self.joint_)

    def folded(self) -> Any:
        """The inner estimator with the correction in its weights: it needs no norm any more.

        For a linear classifier and a linear norm scorer on the same features.
        """
        self._check_fitted()
        model, norm = self.estimator_, self.norm_.model
        same = (
            hasattr(model, "coef_")
            and hasattr(norm, "coef_")
            and model.coef_.shape[1] == norm.coef_.shape[1]
        )
        if not same:
            raise UsageError(
                "The correction folds into the weights only where classifier and norm scorer are "
                "linear in the same features. Use this estimator as it is."
            )
        much = self.residualisation_.strength * self.residualisation_.slopes.shrunk
        copy = deepcopy(model)
        copy.coef_ = model.coef_ - np.outer(much, norm.coef_[0])
        level = float(norm.intercept_[0]) - self.residualisation_.slopes.centre
        copy.intercept_ = model.intercept_ - much * level
        return copy


def _is_joint(model: Any, X: Any) -> bool:
    """Whether a model's probabilities are the softmax of its logits."""
    logits = class_logits(model, X)
    if logits.shape[1] == 1 or not hasattr(model, "predict_proba"):
        return False
    return bool(np.allclose(softmax(logits, axis=1), model.predict_proba(X), atol=1e-4))
