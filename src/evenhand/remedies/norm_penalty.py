"""Covariance penalty: classifiers trained so that their scores do not follow a norm in a cell."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.errors import UsageError
from evenhand.models.logistic import fit_logistic
from evenhand.remedies.cells import TrainingCells, is_sparse
from evenhand.remedies.norm_slopes import (
    NormEstimator,
    StrengthStep,
    checked_norm,
    chosen_group,
    crossfit,
    fold_numbers,
    original_rows,
    pick_strength,
    strength_step,
)
from evenhand.remedies.penalties import LinearProblem, LinearRemedy, descend, logistic_loss
from evenhand.stats.estimate import FloatArray

# Fine where the ridge is: on thousands of texts a strength of 0.1 costs points of accuracy.
STRENGTHS = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 1.0, 10.0, 100.0)
# Of the fit without a penalty, as a share of the objective: the ledger's own for its baseline.
PLAIN_TOLERANCE = 1e-4


def norm_directions(X: Any, *, norm: FloatArray, cells: TrainingCells) -> FloatArray:
    """Classes × groups × features: mean of the features times the norm, standardised in the cell.

    A cell with fewer than two distinct norms has none, and a direction of zeros.
    """
    size, width = cells.counts.size, X.shape[1]
    n = np.maximum(cells.counts.ravel(), 1)
    mean = np.bincount(cells.index, norm, minlength=size) / n
    centred = norm - mean[cells.index]
    deviation = np.sqrt(np.bincount(cells.index, centred**2, minlength=size) / n)
    spread = deviation > 1e-12 * (1 + np.abs(mean))
    unit = np.divide(1.0, deviation * n, out=np.zeros(size), where=spread)
    rows = np.arange(norm.size)
    share = sparse.csr_matrix(
        (centred * unit[cells.index], (cells.index, rows)), shape=(size, norm.size)
    )
    found = share @ X
    table = found.toarray() if is_sparse(found) else np.asarray(found)
    return table.reshape(*cells.counts.shape, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    coef: FloatArray
    level: FloatArray
    steps: int
    settled: bool


class NormPenalisedClassifier(LinearRemedy):
    """One-versus-rest logistic regression with a penalty on covariance with a norm.

    Minimises the mean log-loss + |w|²/2Cn + strength/2·Σ_g (d·w)², with d the covariance of
    features and norm among rows of the class and group g. The norm is cross-fitted as in
    `NormResidualisedClassifier`, or given as `norm`. `strength` is a number or None: the largest
    of ten from 0.0001 to 100 whose loss of accuracy on held-out folds stays within the `budget`.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> group, truth = rng.integers(0, 2, 600), rng.integers(0, 3, 600)
        >>> X = np.column_stack([np.eye(3)[truth] + rng.normal(size=(600, 3)), group - 0.5])
        >>> model = NormPenalisedClassifier(strength=1.0).fit(X, truth, group=group)
        >>> model.coef_.shape
        (3, 4)
    """

    stage = "in"
    joint_ = False
    __metadata_request__fit: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("group", "norm", "norm_features", "origin", "is_counterfactual"), True
    )

    def __init__(
        self,
        norm_scorer: Any = None,
        *,
        norm_group: Any = None,
        strength: float | None = None,
        budget: float = 0.01,
        C: float = 1.0,
        folds: int = 5,
        seed: int = 0,
        tol: float = 1e-5,
        max_iter: int = 500,
        threads: int | None = None,
    ) -> None:
        self.norm_scorer = norm_scorer
        self.norm_group = norm_group
        self.strength = strength
        self.budget = budget
        self.C = C
        self.folds = folds
        self.seed = seed
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        norm: Any = None,
        norm_features: Any = None,
        sample_weight: Any = None,
        origin: Any = None,
        is_counterfactual: Any = None,
    ) -> Self:
        """Fit every class; `norm` are cross-fitted norm logits where the caller has them.

        `origin` and `is_counterfactual` say which rows are copies, as in
        `NormResidualisedClassifier.fit`.
        """
        if self.strength is not None and not self.strength >= 0:
            raise UsageError(f"strength={self.strength} is negative. Give 0 or more.")
        self.single_ = getattr(X, "dtype", None) == np.float32
        X, labels, weights = self._checked(X, y, sample_weight)
        truth = self.classes_[labels]
        cells = self._checked_cells(truth, group)
        originals = original_rows(is_counterfactual, rows=cells.truth.size)
        self.norm_group_ = chosen_group(self.norm_group, cells)
        if norm is None:
            norm = crossfit(
                X,
                truth,
                cells=cells,
                norm=NormEstimator(self.norm_scorer, self.norm_group_),
                norm_features=X if norm_features is None else norm_features,
                classify=False,
                folds=self.folds,
                seed=self.seed,
                origin=origin,
                originals=originals,
            ).norm
        norm = checked_norm(norm, rows=cells.truth.size)
        self.strength_, self.stopped_by_ = self.strength, "the strength given"
        if self.strength is None:
            self._choose(X, cells, norm, weights, origin, originals)
        problem = LinearProblem.of(X, weights=weights)
        directions = norm_directions(
            X[originals], norm=norm[originals], cells=cells.take(originals)
        )
        found = self._fit(problem, cells, directions, weights)
        self.n_iter_ = found.steps
        self._keep(problem, found.coef, found.level, settled=found.settled)
        return self

    def _choose(
        self,
        X: Any,
        cells: TrainingCells,
        norm: FloatArray,
        weights: FloatArray,
        origin: Any,
        originals: NDArray[np.bool_],
    ) -> None:
        """Try strengths from 0 upwards on folds that the fit leaves out, until one is too much."""
        fold = fold_numbers(cells, folds=self.folds, seed=self.seed, origin=origin)
        focal = cells.groups.index(self.norm_group_)
        columns = 1 if len(cells.classes) == 2 else len(cells.classes)
        parts = []
        for number in range(self.folds):
            inside, outside = fold == number, np.flatnonzero(fold != number)
            bare = outside[originals[outside]]
            problem = LinearProblem.of(X[outside], weights=weights[outside])
            directions = norm_directions(X[bare], norm=norm[bare], cells=cells.take(bare))
            parts.append((inside, outside, problem, directions))
        begun: list[_Fit | None] = [None] * self.folds
        steps: list[StrengthStep] = []
        for strength in (0.0, *STRENGTHS):
            held = np.zeros((cells.truth.size, columns))
            for number, (inside, outside, problem, directions) in enumerate(parts):
                found = self._fit(
                    problem,
                    cells.take(outside),
                    directions,
                    weights[outside],
                    strength=strength,
                    start=begun[number],
                )
                begun[number] = found
                held[inside] = X[inside] @ found.coef.T + (found.level - found.coef @ problem.mean)
            own = cells.take(originals)
            step = strength_step(
                strength, held[originals], norm=norm[originals], cells=own, focal=focal
            )
            steps.append(step)
            self.strength_, self.stopped_by_ = pick_strength(steps, budget=self.budget)
            if steps[0].accuracy - steps[-1].accuracy > self.budget:
                break
        self.steps_ = tuple(steps)

    def _fit(
        self,
        problem: LinearProblem,
        cells: TrainingCells,
        directions: FloatArray,
        weights: FloatArray,
        *,
        strength: float | None = None,
        start: _Fit | None = None,
    ) -> _Fit:
        """All classes, one after the other, for each has directions of its own."""
        much = float(self.strength_ or 0.0) if strength is None else strength
        begin = start or self._plain(problem, cells, weights)
        if not much:
            return begin
        ridge = 1 / (self.C * weights.sum())
        numbers = [1] if len(cells.classes) == 2 else list(range(len(cells.classes)))
        width = problem.mean.size
        coef, level = np.zeros((len(numbers), width)), np.zeros(len(numbers))
        most, settled = 0, True
        for row, c in enumerate(numbers):
            own = (cells.truth == c).astype(np.float64)[:, None]
            # Of two classes both have cells that the one score must not follow.
            away = directions.reshape(-1, width) if len(numbers) == 1 else directions[c]

            def objective(
                w: FloatArray, b: FloatArray, own: FloatArray = own, away: FloatArray = away
            ) -> tuple[float, FloatArray, FloatArray]:
                loss, residuals = logistic_loss(problem.logits(w, b), own, problem.weights)
                along = away @ w[0]
                value = loss + ridge / 2 * float(w[0] @ w[0]) + much / 2 * float(along @ along)
                by_coef = problem.back(residuals) + ridge * w + much * (along @ away)
                return value, by_coef, residuals.sum(axis=0)

            w, b, steps, done = descend(
                problem,
                objective,
                start=(begin.coef[row : row + 1], begin.level[row : row + 1]),
                ridge=ridge,
                tolerance=self.tol,
                max_iterations=self.max_iter,
                bend=much * (away**2).sum(axis=0),
            )
            coef[row], level[row] = w[0], b[0]
            most, settled = max(most, steps), settled and done
        return _Fit(coef=coef, level=level, steps=begin.steps + most, settled=settled)

    def _plain(self, problem: LinearProblem, cells: TrainingCells, weights: FloatArray) -> _Fit:
        """The fit without a penalty, all classes in one pass: the classifier itself."""
        two = len(cells.classes) == 2
        fit = fit_logistic(
            problem.matrix.astype(np.float32) if self.single_ else problem.matrix,
            cells.truth - 1 if two else cells.truth,
            classes=1 if two else len(cells.classes),
            penalty=1 / self.C,
            weights=weights,
            tolerance=min(self.tol, PLAIN_TOLERANCE),
            max_iterations=self.max_iter,
            threads=self.threads,
        )
        coef = fit.weights.astype(np.float64)
        level = fit.intercepts.astype(np.float64) + coef @ problem.mean
        settled = bool(fit.converged.all())
        return _Fit(coef=coef, level=level, steps=max(1, fit.iterations), settled=settled)
