"""Linear models with a penalty of one's own: value and gradient, minimised by L-BFGS."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from evenhand.errors import MissingExtra
from evenhand.mitigation.cells import coded
from evenhand.mitigation.estimator import Remedy, checked_weights, is_sparse, probabilities
from evenhand.stats.estimate import FloatArray

Objective = Callable[[FloatArray, FloatArray], tuple[float, FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class LinearProblem:
    """Rows × features, centred inside the products, with row weights that sum to 1.

    Centring makes the levels nearly independent of the weights, which saves most of the steps on
    word counts; the matrix itself stays as it is.
    """

    matrix: Any
    weights: FloatArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, matrix: Any, *, weights: FloatArray) -> "LinearProblem":
        """The problem of a NumPy array or a SciPy sparse matrix."""
        share = weights / weights.sum()
        table: Any = matrix.tocsr() if is_sparse(matrix) else np.asarray(matrix)
        table = table.astype(np.float64)
        mean = np.asarray(table.T @ share).ravel()
        square = table.multiply(table) if is_sparse(table) else table**2
        return cls(table, share, mean, np.asarray(square.T @ share).ravel() - mean**2)

    def logits(self, coef: FloatArray, level: FloatArray) -> FloatArray:
        """Rows × problems."""
        return np.asarray(self.matrix @ coef.T + (level - coef @ self.mean))

    def back(self, residuals: FloatArray) -> FloatArray:
        """Gradient by the weights of the features, from one by the logits."""
        total = np.asarray(self.matrix.T @ residuals).T
        return np.asarray(total - np.outer(residuals.sum(axis=0), self.mean))


def softmax_loss(
    logits: FloatArray, labels: NDArray[np.intp], weights: FloatArray
) -> tuple[float, FloatArray]:
    """Weighted mean cross-entropy and its gradient by the logits."""
    rows = np.arange(labels.size)
    residuals = softmax(logits, axis=1)
    residuals[rows, labels] -= 1
    loss = -float(weights @ log_softmax(logits, axis=1)[rows, labels])
    return loss, residuals * weights[:, None]


def logistic_loss(
    logits: FloatArray, positive: FloatArray, weights: FloatArray
) -> tuple[float, FloatArray]:
    """Weighted mean log-loss of rows × problems, summed over problems, with its gradient."""
    loss = np.logaddexp(0, logits) - positive * logits
    return float((weights @ loss).sum()), (expit(logits) - positive) * weights[:, None]


def descend(
    problem: LinearProblem,
    objective: Objective,
    *,
    start: tuple[FloatArray, FloatArray],
    ridge: float,
    tolerance: float,
    max_iterations: int,
    bend: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray, int, bool]:
    """Weights, levels of the centred features, steps and whether the descent has settled.

    `bend` is the curvature of one's own penalty by feature.
    """
    from scipy.optimize import minimize

    count, width = start[0].shape
    # A diagonal guess of the curvature brings rare and frequent words to one scale.
    scale = 1 / np.sqrt(0.25 * problem.squares + ridge + bend)

    def unpack(flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        return flat[: count * width].reshape(count, width) * scale, flat[count * width :]

    def value(flat: FloatArray) -> tuple[float, FloatArray]:
        found, by_coef, by_level = objective(*unpack(flat))
        return found, np.concatenate([(by_coef * scale).ravel(), by_level])

    flat = np.concatenate([(start[0] / scale).ravel(), start[1]])
    done = minimize(
        value,
        flat,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxcor": 20, "gtol": tolerance, "ftol": 1e-12},
    )
    coef, level = unpack(done.x)
    return coef, level, int(done.nit), bool(done.status == 0)


class LinearRemedy(Remedy):
    """A linear classifier with `coef_` and `intercept_`, fitted here; `joint_` for softmax."""

    joint_: bool
    coef_: FloatArray
    intercept_: FloatArray

    def _checked(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, NDArray[np.intp], FloatArray]:
        """Features, codes of the classes and weights, after scikit-learn's own checks."""
        try:
            from sklearn.utils.validation import check_X_y
        except ImportError:
            raise MissingExtra("text", type(self).__name__) from None
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64)
        names, labels = coded(y, argument="truth")
        if len(names) < 2:
            raise ValueError(
                f"The training rows have one class alone, {names[0]!r}. "
                "Learning needs rows of at least two classes."
            )
        self.classes_ = np.asarray(names)
        self.n_features_in_ = X.shape[1]
        return X, labels, checked_weights(sample_weight, rows=labels.size)

    def _keep(
        self, problem: LinearProblem, coef: FloatArray, level: FloatArray, *, settled: bool
    ) -> None:
        self.coef_ = coef
        self.intercept_ = level - coef @ problem.mean
        if not settled:
            warn_unsettled(type(self).__name__)

    def decision_function(self, X: Any) -> FloatArray:
        """Logits: rows × classes, or one number a row where there are two classes."""
        self._check_fitted()
        table: Any = X if is_sparse(X) else np.asarray(X, dtype=np.float64)
        logits = np.asarray(table @ self.coef_.T + self.intercept_)
        if logits.shape[1] == 1:
            return logits[:, 0]
        return logits[:, 1] - logits[:, 0] if self.classes_.size == 2 else logits

    def _columns(self, X: Any) -> FloatArray:
        logits = self.decision_function(X)
        return logits[:, None] if logits.ndim == 1 else logits

    def class_probabilities(self, X: Any) -> FloatArray:
        """Probability of each class against its rest; softmax where classes are fitted jointly."""
        logits = self._columns(X)
        if logits.shape[1] == 1 or self.joint_:
            return probabilities(logits, joint=self.joint_)
        return np.asarray(expit(logits))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities that add to 1."""
        return probabilities(self._columns(X), joint=self.joint_)


def warn_unsettled(name: str) -> None:
    """scikit-learn's warning of a descent that has spent its steps."""
    from sklearn.exceptions import ConvergenceWarning

    warn(
        f"{name} has not settled. Raise max_iter or tol, or scale the features.",
        ConvergenceWarning,
        stacklevel=4,
    )
