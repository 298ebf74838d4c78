"""Counterfactual logit pairing: training that keeps a text and its counterfactual at one score."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from evenhand.errors import UsageError
from evenhand.mitigation.estimator import is_sparse
from evenhand.mitigation.linear_problem import (
    LinearProblem,
    LinearRemedy,
    descend,
    logistic_loss,
    softmax_loss,
)
from evenhand.stats.estimate import FloatArray


class LogitPairedClassifier(LinearRemedy):
    """Logistic regression with a penalty on the squared change of logits under a swap.

    Minimises the mean loss + |w|²/2Cn + strength/2·mean over pairs of Σ_c (change of logit c)²,
    one-versus-rest or jointly (Garg et al. 2019, on squares). `counterfactual` has the features
    of every row's counterfactual text, or a list of such matrices where there are several.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> truth, word = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
        >>> X = np.column_stack([truth + rng.normal(size=400), word, 1 - word])
        >>> model = LogitPairedClassifier(strength=1000.0)
        >>> model = model.fit(X, truth, counterfactual=X[:, [0, 2, 1]])
        >>> bool(abs(model.coef_[0, 1] - model.coef_[0, 2]) < 0.01)
        True
    """

    stage = "in"

    def __init__(
        self,
        *,
        strength: float = 1.0,
        C: float = 1.0,
        multinomial: bool = False,
        tol: float = 1e-5,
        max_iter: int = 500,
    ) -> None:
        self.strength = strength
        self.C = C
        self.multinomial = multinomial
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, *, counterfactual: Any, sample_weight: Any = None) -> Self:
        """Fit on the originals, paired with their counterfactuals."""
        if not self.strength >= 0:
            raise UsageError(f"strength={self.strength} is negative. Give 0 or more.")
        X, labels, weights = self._checked(X, y, sample_weight)
        self.joint_ = bool(self.multinomial)
        differences = _differences(X, counterfactual)
        problem = LinearProblem.of(X, weights=weights)
        ridge = 1 / (self.C * weights.sum())
        count = self.classes_.size
        columns = count if self.multinomial or count > 2 else 1
        numbers = np.arange(count)[-columns:]
        positive = (labels[:, None] == numbers).astype(np.float64)
        pair_weight = self.strength / len(differences)

        def objective(w: FloatArray, b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            logits = problem.logits(w, b)
            if self.multinomial:
                loss, residuals = softmax_loss(logits, labels, problem.weights)
            else:
                loss, residuals = logistic_loss(logits, positive, problem.weights)
            by_coef = problem.back(residuals) + ridge * w
            value = loss + ridge / 2 * float((w * w).sum())
            for each in differences:
                change = np.asarray(each @ w.T)
                weighed = change * (problem.weights * pair_weight)[:, None]
                value += float((change * weighed).sum()) / 2
                by_coef += np.asarray(each.T @ weighed).T
            return value, by_coef, residuals.sum(axis=0)

        share = np.clip(problem.weights @ positive, 1e-6, 1 - 1e-6)
        level = np.log(share) if self.multinomial else np.log(share / (1 - share))
        w, b, _, settled = descend(
            problem,
            objective,
            start=(np.zeros((columns, X.shape[1])), level),
            ridge=ridge,
            tolerance=self.tol,
            max_iterations=self.max_iter,
            bend=pair_weight * sum(_mean_square(each, problem.weights) for each in differences),
        )
        self._keep(problem, w, b, settled=settled)
        return self


def _differences(X: Any, counterfactual: Any) -> list[Any]:
    several = isinstance(counterfactual, Sequence) and not np.isscalar(counterfactual[0][0])
    given = list(counterfactual) if several else [counterfactual]
    found = []
    for each in given:
        other = each if is_sparse(each) else np.asarray(each, dtype=np.float64)
        if other.shape != X.shape:
            raise UsageError(
                f"counterfactual has the shape {other.shape} for features of shape {X.shape}. "
                "Give the features of every row's counterfactual text, in the same columns."
            )
        change = X - other
        found.append(change.tocsr() if is_sparse(change) else np.asarray(change))
    return found


def _mean_square(matrix: Any, weights: FloatArray) -> FloatArray:
    squares = matrix.multiply(matrix) if is_sparse(matrix) else matrix**2
    return np.asarray(squares.T @ weights).ravel()
