"""Norm residualisation: class scores less what a norm explains of them inside classes and groups.

One number a class, learnt from cross-fitted scores; no group is needed at decision time.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from evenhand.errors import UsageError
from evenhand.remedies.cells import (
    TrainingCells,
    as_rows,
    place_of,
    row_weights,
    take,
    training_cells,
)
from evenhand.remedies.estimator import (
    NOT_ROUTED,
    Remedy,
    class_logits,
    fit_weighted,
    fresh,
    one_class,
    probabilities,
    rest_probabilities,
)
from evenhand.remedies.norm_slopes import (
    REACHES,
    NormEstimator,
    NormSlopes,
    Reach,
    StrengthStep,
    checked_reach,
    chosen_group,
    crossfit,
    fold_numbers,
    mean_step,
    norm_slopes,
    original_rows,
    pick_strength,
    residual,
    strength_step,
)
from evenhand.stats.estimate import FloatArray

GRID = tuple(round(step / 20, 2) for step in range(21))
HALVINGS = 2  # each judges both halves


@dataclass(frozen=True, slots=True, kw_only=True)
class Residualisation:
    """What to take from the scores of each class: strength × slope × (norm − centre).

    `steps` has what each strength gives on halves of the cross-fitted scores with slopes learnt
    from the other half; `stopped_by` says why the strength is not larger.
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
    reach: Reach | None = "everybody",
    budget: float = 0.01,
    grid: Sequence[float] = GRID,
    origin: Any = None,
    seed: int = 0,
) -> Residualisation:
    """What to take away, from cross-fitted class logits (rows × classes) and norm logits.

    `norm_group` is the group whose norm is scored, by default the second of two. Without a
    `strength` it is the one on the grid with the least norm bias (mean |r_c|, and the slope of
    r_c on the group's share times the spread of shares) whose loss of accuracy stays within the
    budget, both on halves of the rows that taught the slopes nothing; rows of one `origin` stay
    in one half. `reach` is as in `NormResidualisedClassifier`.

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
    cells = training_cells(truth, group=group)
    focal = place_of(chosen_group(norm_group, cells), cells.groups, argument="norm_group")
    scores = _Scores(
        logits=np.asarray(logits, dtype=np.float64),
        norm=np.asarray(norm, dtype=np.float64),
        cells=cells,
        focal=focal,
        origin=origin,
        seed=seed,
    )
    return _residualise(scores, strength=strength, reach=reach, budget=budget, grid=grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """Cross-fitted scores of the rows to learn slopes from."""

    logits: FloatArray
    norm: FloatArray
    cells: TrainingCells
    focal: int
    origin: Any
    seed: int

    def take(self, rows: Any) -> "_Scores":
        """The scores of some of the rows."""
        return replace(
            self, logits=self.logits[rows], norm=self.norm[rows], cells=self.cells.take(rows)
        )

    def slopes(self, reach: Reach) -> NormSlopes:
        """Slopes from these rows."""
        return norm_slopes(
            self.logits, norm=self.norm, cells=self.cells, focal=self.focal, reach=reach
        )

    def taken(self, slopes: NormSlopes) -> FloatArray:
        """What full strength takes from the logits, with slopes from other rows."""
        return np.asarray(
            self.logits - residual(self.logits, norm=self.norm, slopes=slopes, strength=1.0)
        )


def _residualise(
    scores: _Scores,
    *,
    strength: float | None,
    reach: Reach | None,
    budget: float,
    grid: Sequence[float],
) -> Residualisation:
    """The correction of the reach given, or of the one that leaves the least norm bias."""
    reaches = REACHES if reach is None else (checked_reach(reach),)
    found = [
        _of_reach(scores, each, strength=strength, budget=budget, grid=grid) for each in reaches
    ]

    def bias(one: Residualisation) -> float:
        left = next(step.bias for step in one.steps if step.strength == one.strength)
        return left if np.isfinite(left) else float("inf")

    return min(found, key=bias)


def _of_reach(
    scores: _Scores,
    reach: Reach,
    *,
    strength: float | None,
    budget: float,
    grid: Sequence[float],
) -> Residualisation:
    halves = _judged_halves(scores, reach)
    steps: list[StrengthStep] = []
    for each in sorted({0.0, *grid}) if strength is None else [0.0, float(strength)]:
        found = [
            strength_step(
                each,
                rows.logits - each * taken,
                norm=rows.norm,
                cells=rows.cells,
                focal=rows.focal,
            )
            for rows, taken in halves
        ]
        steps.append(mean_step(found))
        if strength is None and steps[0].accuracy - steps[-1].accuracy > budget:
            break
    chosen, why = pick_strength(steps, budget=budget)
    if strength is not None:
        chosen, why = float(strength), "the strength given"
    return Residualisation(
        slopes=scores.slopes(reach), strength=chosen, stopped_by=why, steps=tuple(steps)
    )


def _judged_halves(scores: _Scores, reach: Reach) -> list[tuple[_Scores, FloatArray]]:
    """Halves of the rows, each with what full strength takes by slopes of the other half.

    Slopes lower the bias of the very rows they were learnt from, be there any or none; and over
    several folds taken together, what the others teach adds up to those rows again.
    """
    found = []
    for number in range(HALVINGS):
        half = fold_numbers(
            scores.cells, folds=2, seed=HALVINGS * scores.seed + number, origin=scores.origin
        )
        for side in (0, 1):
            rows = scores.take(half == side)
            found.append((rows, rows.taken(scores.take(half != side).slopes(reach))))
    return found


class NormResidualisedClassifier(Remedy):
    """A classifier whose logits are residualised against a norm scorer, after training.

    `norm_scorer` is an estimator, fitted here to tell `norm_group` from the other rows, or a
    callable that gives logits. It sees `norm_features` (scrubbed text) where they are given,
    else the classifier's own. `strength` is a number or None: by the accuracy `budget`.
    `reach` "everybody" takes the same from every row and folds into the weights; "likely" takes
    from a row as much as it is likely of the class, for among people of other classes the score
    need not follow the norm; None is the one that leaves less norm bias within the budget.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> group, truth = rng.integers(0, 2, 600), rng.integers(0, 3, 600)
        >>> X = np.column_stack([np.eye(3)[truth] + rng.normal(size=(600, 3)), group - 0.5])
        >>> model = NormResidualisedClassifier(strength=0.5).fit(X, truth, group=group)
        >>> model.predict_proba(X).shape, model.residualisation_.strength
        ((600, 3), 0.5)
    """

    stage = "after"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("group", "norm_features", "origin", "is_counterfactual"), True),
        "fitted": NOT_ROUTED,
    }
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"norm_features": True}
    __metadata_request__predict_proba: ClassVar[dict[str, Any]] = {"norm_features": True}
    __metadata_request__decision_function: ClassVar[dict[str, Any]] = {"norm_features": True}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"norm_features": True}

    def __init__(
        self,
        estimator: Any = None,
        norm_scorer: Any = None,
        *,
        norm_group: Any = None,
        strength: float | None = None,
        reach: Reach | None = "everybody",
        budget: float = 0.01,
        grid: Sequence[float] = GRID,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.norm_scorer = norm_scorer
        self.norm_group = norm_group
        self.strength = strength
        self.reach = reach
        self.budget = budget
        self.grid = grid
        self.folds = folds
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        group: Any = None,
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
        X, y = self._checked_rows(X, y)
        cells = self._checked_cells(y, group)
        given = row_weights(sample_weight, rows=cells.truth.size)
        if np.unique(cells.truth[given > 0]).size < 2:
            raise one_class(y[given > 0][0])
        originals = original_rows(is_counterfactual, rows=cells.truth.size)
        self.norm_group_ = chosen_group(self.norm_group, cells)
        norm = NormEstimator(self.norm_scorer, self.norm_group_)
        about = X if norm_features is None else norm_features
        weights = None if sample_weight is None else given
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
        scores = _Scores(
            logits=found.logits[originals],
            norm=found.norm[originals],
            cells=cells.take(originals),
            focal=cells.groups.index(self.norm_group_),
            origin=None if origin is None else np.asarray(origin)[originals],
            seed=self.seed,
        )
        self.residualisation_ = _residualise(
            scores,
            strength=self.strength,
            reach=self.reach,
            budget=self.budget,
            grid=self.grid,
        )
        self.norm_ = norm.fitted(about, cells, np.flatnonzero(originals))
        if fitted is None:
            fitted = fit_weighted(fresh(self.estimator), X, y, weights)
        self.estimator_ = fitted
        self.classes_ = self.estimator_.classes_
        self.joint_ = _is_joint(self.estimator_, take(X, slice(50)))
        return self

    def predict(self, X: Any, *, norm_features: Any = None) -> NDArray[Any]:
        """The class with the largest residual score."""
        return self._most_probable(self.predict_proba(X, norm_features=norm_features))

    def predict_proba(self, X: Any, *, norm_features: Any = None) -> FloatArray:
        """Probabilities that add to 1, linked as the inner estimator links them."""
        return probabilities(self._logits(X, norm_features), joint=self.joint_)

    def decision_function(self, X: Any, *, norm_features: Any = None) -> FloatArray:
        """Residual logits: rows × classes, or one number a row where there are two classes."""
        logits = self._logits(X, norm_features)
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def class_probabilities(self, X: Any, *, norm_features: Any = None) -> FloatArray:
        """Probability of each class against its rest."""
        return rest_probabilities(self._logits(X, norm_features), joint=self.joint_)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, norm_features: Any = None
    ) -> float:
        """Accuracy of the decisions."""
        right = self.predict(X, norm_features=norm_features) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def _logits(self, X: Any, norm_features: Any) -> FloatArray:
        self._check_fitted()
        X = as_rows(X)
        norm = self.norm_(X if norm_features is None else norm_features)
        return self.residualisation_.apply(class_logits(self.estimator_, X), norm=norm)

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
        if not same or self.residualisation_.slopes.reach != "everybody":
            raise UsageError(
                "The correction folds into the weights only where classifier and norm scorer are "
                "linear in the same features and it reaches everybody. Use this estimator as it is."
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
