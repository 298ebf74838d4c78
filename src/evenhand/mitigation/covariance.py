"""CoCL: training that keeps the probability of the truth from following people's names.

De-biasing without groups (Romanov et al. 2019, the form of METHODS): cross-entropy plus the length
of the covariance between the probability of the true class and the name's vector.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.linear_problem import (
    LinearProblem,
    LinearRemedy,
    Objective,
    descend,
    softmax_loss,
)
from evenhand.stats.estimate import FloatArray

# The length has a kink at 0, which L-BFGS cannot cross: it is rounded off, less and less.
ROUNDING = (1e-2, 1e-3, 1e-4)


@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceLoss:
    """Cross-entropy, the covariance with the names, its length, and the sum of the two terms.

    `skipped` counts rows without a name vector: they are left out of the covariance only.
    """

    cross_entropy: float
    covariance: FloatArray
    penalty: float
    total: float
    skipped: int


def covariance_loss(
    probabilities: ArrayLike, *, truth: ArrayLike, names: ArrayLike, strength: float = 2.0
) -> CovarianceLoss:
    """Loss of given probabilities (rows × classes); `truth` are class numbers.

    Examples:
        >>> found = covariance_loss([[0.8, 0.2], [0.4, 0.6]], truth=[0, 1], names=[[1.0], [0.0]])
        >>> round(found.penalty, 3), round(found.total, 3)
        (0.05, 0.467)
    """
    table, y = np.asarray(probabilities, dtype=np.float64), np.asarray(truth, dtype=np.intp)
    own = table[np.arange(y.size), y]
    vectors, named = checked_names(names, rows=y.size)
    p = own[named]
    covariance = (p - p.mean()) @ (vectors - vectors.mean(axis=0)) / p.size
    penalty = float(np.linalg.norm(covariance))
    entropy = float(-np.log(own).mean())
    return CovarianceLoss(
        cross_entropy=entropy,
        covariance=covariance,
        penalty=penalty,
        total=entropy + strength * penalty,
        skipped=int(y.size - named.sum()),
    )


def checked_names(names: Any, *, rows: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Name vectors of the rows that have one, and which rows these are."""
    if names is None:
        raise UsageError(
            "CoCL needs the names of the people in the training rows. "
            "Give names=, a name vector for each row, NaN where a name has none."
        )
    vectors = np.asarray(names, dtype=np.float64)
    if vectors.ndim != 2 or vectors.shape[0] != rows:
        raise UsageError(
            f"names has the shape {vectors.shape} for {rows} rows. Give a vector for each row."
        )
    named: NDArray[np.bool_] = np.asarray(np.isfinite(vectors).all(axis=1))
    if named.sum() < 2:
        raise DataError(
            f"Of {rows} rows, {int(named.sum())} have a name vector. A covariance needs two."
        )
    return vectors[named], named


class CovarianceConstrainedClassifier(LinearRemedy):
    """Softmax regression with CoCL's penalty; needs names in training, and no group ever.

    Minimises the mean cross-entropy + |w|²/2Cn + strength·|covariance of the probability of the
    truth and the name vector|. `names` has NaN rows where a name has no vector.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 3, 300), rng.normal(size=(300, 2))
        >>> X = np.column_stack([np.eye(3)[truth], names]) + 0.5 * rng.normal(size=(300, 5))
        >>> model = CovarianceConstrainedClassifier().fit(X, truth, names=names)
        >>> model.skipped_, model.predict(X).shape
        (0, (300,))
    """

    stage = "in"
    joint_ = True
    needs_names = True

    def __init__(
        self, *, strength: float = 2.0, C: float = 1.0, tol: float = 1e-5, max_iter: int = 500
    ) -> None:
        self.strength = strength
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, *, names: Any = None, sample_weight: Any = None) -> Self:
        """Fit with the names of the training rows."""
        if not self.strength >= 0:
            raise UsageError(f"strength={self.strength} is negative. Give 0 or more.")
        X, labels, weights = self._checked(X, y, sample_weight)
        vectors, named = checked_names(names, rows=labels.size)
        self.skipped_ = int(labels.size - named.sum())
        problem = LinearProblem.of(X, weights=weights)
        term = _NameTerm.of(vectors, np.flatnonzero(named), labels, weights)
        ridge = 1 / (self.C * weights.sum())
        count = self.classes_.size
        share = np.bincount(labels, weights, minlength=count) / weights.sum()
        w, b = np.zeros((count, X.shape[1])), np.log(np.maximum(share, 1e-6))
        settled = True
        for rounding in ROUNDING:
            w, b, _, settled = descend(
                problem,
                self._objective(problem, term, labels, ridge, rounding),
                start=(w, b),
                ridge=ridge,
                tolerance=self.tol,
                max_iterations=self.max_iter,
            )
        self._keep(problem, w, b, settled=settled)
        return self

    def _objective(
        self,
        problem: LinearProblem,
        term: "_NameTerm",
        labels: NDArray[np.intp],
        ridge: float,
        rounding: float,
    ) -> Objective:
        def objective(w: FloatArray, b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            logits = problem.logits(w, b)
            loss, residuals = softmax_loss(logits, labels, problem.weights)
            more, by_logits = term.value(logits, rounding=rounding)
            residuals[term.rows] += self.strength * by_logits
            value = loss + ridge / 2 * float((w * w).sum()) + self.strength * more
            return value, problem.back(residuals) + ridge * w, residuals.sum(axis=0)

        return objective


@dataclass(frozen=True, slots=True)
class _NameTerm:
    """The penalty over the rows that have a name vector."""

    rows: NDArray[np.intp]
    labels: NDArray[np.intp]
    shares: FloatArray
    centred: FloatArray

    @classmethod
    def of(
        cls,
        vectors: FloatArray,
        rows: NDArray[np.intp],
        labels: NDArray[np.intp],
        weights: FloatArray,
    ) -> "_NameTerm":
        shares = weights[rows] / weights[rows].sum()
        return cls(rows, labels[rows], shares, vectors - shares @ vectors)

    def value(self, logits: FloatArray, *, rounding: float) -> tuple[float, FloatArray]:
        """Rounded length of the covariance, and its gradient by the logits of these rows."""
        share = softmax(logits[self.rows], axis=1)
        at = np.arange(self.rows.size)
        p = share[at, self.labels]
        # The names are centred, so the mean of p falls out of the covariance.
        covariance = (self.shares * p) @ self.centred
        length = float(np.sqrt(covariance @ covariance + rounding**2))
        by_p = self.shares * (self.centred @ covariance) / length
        by_logits = -share * (by_p * p)[:, None]
        by_logits[at, self.labels] += by_p * p
        return length - rounding, by_logits
