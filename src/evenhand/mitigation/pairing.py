"""Counterfactual logit pairing: training that keeps a text and its counterfactual at one score."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from evenhand.errors import UsageError
from evenhand.mitigation.estimator import is_sparse
from evenhand.mitigation.linear_problem import LinearRemedy, warn_unsettled
from evenhand.models.logistic import fit_logistic
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
        threads: int | None = None,
    ) -> None:
        self.strength = strength
        self.C = C
        self.multinomial = multinomial
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads

    def fit(self, X: Any, y: Any, *, counterfactual: Any, sample_weight: Any = None) -> Self:
        """Fit on the originals, paired with their counterfactuals."""
        if not self.strength >= 0:
            raise UsageError(f"strength={self.strength} is negative. Give 0 or more.")
        single = getattr(X, "dtype", None) == np.float32
        X, labels, weights = self._checked(X, y, sample_weight)
        self.joint_ = bool(self.multinomial)
        differences = _differences(X, counterfactual)
        much = self.strength / len(differences) * self.C
        bend = sum(_squares(each, weights * much) for each in differences)
        table, turn = turned(X, bend)
        count = self.classes_.size
        columns = count if self.multinomial or count > 2 else 1
        fit = fit_logistic(
            table.astype(np.float32) if single else table,
            labels if columns > 1 else labels - 1,
            classes=columns,
            multinomial=self.multinomial,
            penalty=1 / self.C,
            weights=weights,
            tolerance=self.tol,
            max_iterations=self.max_iter,
            threads=self.threads,
        )
        self.coef_ = turn(fit.weights.astype(np.float64))
        self.intercept_ = fit.intercepts.astype(np.float64)
        if not fit.converged.all():
            warn_unsettled(type(self).__name__)
        return self


def turned(X: Any, bend: Any) -> tuple[Any, Callable[[FloatArray], FloatArray]]:
    """Features in which a ridge alone is ridge and penalty together, and the way back.

    With the penalty w·B·w the sum is w·(1 + B)·w, which is |u|² for w = (1 + B)^(−½)·u: logits
    X·w are those of the features X·(1 + B)^(−½). Of sparse features only the columns that a swap
    changes are turned, and they are few.
    """
    touched = np.flatnonzero(np.asarray(abs(bend).sum(axis=0)).ravel() > 0)
    block = bend[touched][:, touched]
    block = block.toarray() if is_sparse(block) else np.asarray(block)
    values, axes = np.linalg.eigh(np.eye(touched.size) + block)
    root = (axes / np.sqrt(values)) @ axes.T
    if is_sparse(X):
        rest = np.setdiff1d(np.arange(X.shape[1]), touched)
        turn = sparse.csr_matrix(root.astype(X.dtype))
        table = sparse.hstack([X[:, rest], X[:, touched] @ turn], format="csr")
    else:
        rest = np.setdiff1d(np.arange(X.shape[1]), touched)
        table = np.concatenate([X[:, rest], X[:, touched] @ root.astype(X.dtype)], axis=1)

    def back(weights: FloatArray) -> FloatArray:
        out = np.empty_like(weights)
        out[:, rest] = weights[:, : rest.size]
        out[:, touched] = weights[:, rest.size :] @ root
        return out

    return table, back


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


def _squares(matrix: Any, weights: FloatArray) -> Any:
    """Features × features: weighted sum over rows of the products of changes."""
    if is_sparse(matrix):
        return (matrix.multiply(weights[:, None]).T @ matrix).tocsr()
    return (matrix * weights[:, None]).T @ matrix
