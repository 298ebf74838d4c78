"""Linear classifiers with a penalty of their own on top of the ridge.

CoCL keeps the probability of the truth from following people's names, without groups (Romanov et
al. 2019); logit pairing keeps a text and its counterfactual at one score (Garg et al. 2019). What
they share with the covariance penalty on norms stands first: the problem, its losses and descent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_softmax, softmax

from evenhand.errors import DataError, UsageError
from evenhand.models.logistic import fit_logistic
from evenhand.remedies.cells import coded, is_sparse, row_weights
from evenhand.remedies.estimator import Remedy, one_class, probabilities, rest_probabilities
from evenhand.stats.estimate import FloatArray

Objective = Callable[[FloatArray, FloatArray], tuple[float, FloatArray, FloatArray]]
# The length has a kink at 0, which L-BFGS cannot cross: it is rounded off, less and less.
ROUNDING = (1e-2, 1e-3, 1e-4)


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
        X, y = self._checked_matrix(X, y)
        names, labels = coded(y, argument="truth")
        weights = row_weights(sample_weight, rows=labels.size)
        if np.unique(labels[weights > 0]).size < 2:
            raise one_class(y[weights > 0][0])
        self.classes_ = np.asarray(names)
        return X, labels, weights

    def _keep(
        self, problem: LinearProblem, coef: FloatArray, level: FloatArray, *, settled: bool
    ) -> None:
        self.coef_ = coef
        self.intercept_ = level - coef @ problem.mean
        if not settled:
            warn_unsettled(type(self).__name__)

    def decision_function(self, X: Any) -> FloatArray:
        """Logits: rows × classes, or one number a row where there are two classes."""
        logits = np.asarray(self._known_matrix(X) @ self.coef_.T + self.intercept_)
        if logits.shape[1] == 1:
            return logits[:, 0]
        return logits[:, 1] - logits[:, 0] if self.classes_.size == 2 else logits

    def _columns(self, X: Any) -> FloatArray:
        logits = self.decision_function(X)
        return logits[:, None] if logits.ndim == 1 else logits

    def class_probabilities(self, X: Any) -> FloatArray:
        """Probability of each class against its rest; softmax where classes are fitted jointly."""
        return rest_probabilities(self._columns(X), joint=self.joint_)

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


def checked_names(names: Any, *, rows: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Name vectors of the rows that have one, and which rows these are."""
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
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"names": True}

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
        self._check_given("names", names, "the name vectors of the training rows")
        vectors, named = checked_names(names, rows=labels.size)
        self.skipped_ = int(labels.size - named.sum())
        problem = LinearProblem.of(X, weights=weights)
        term = _NameTerm.of(vectors, np.flatnonzero(named), labels, weights)
        ridge = 1 / (self.C * weights.sum())
        count = self.classes_.size
        share = np.bincount(labels, weights, minlength=count) / weights.sum()
        w, b = np.zeros((count, X.shape[1])), np.log(np.maximum(share, 1e-6))
        settled = True
        self.n_iter_ = 1
        for rounding in ROUNDING:
            w, b, steps, settled = descend(
                problem,
                self._objective(problem, term, labels, ridge, rounding),
                start=(w, b),
                ridge=ridge,
                tolerance=self.tol,
                max_iterations=self.max_iter,
            )
            self.n_iter_ += steps
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
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"counterfactual": True}

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

    def fit(self, X: Any, y: Any, *, counterfactual: Any = None, sample_weight: Any = None) -> Self:
        """Fit on the originals, paired with their counterfactuals."""
        if not self.strength >= 0:
            raise UsageError(f"strength={self.strength} is negative. Give 0 or more.")
        single = getattr(X, "dtype", None) == np.float32
        X, labels, weights = self._checked(X, y, sample_weight)
        self._check_given("counterfactual", counterfactual, "the features of counterfactual texts")
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
        self.n_iter_ = max(1, fit.iterations)
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
    rest = np.setdiff1d(np.arange(X.shape[1]), touched)
    if is_sparse(X):
        turn = sparse.csr_matrix(root.astype(X.dtype))
        table = sparse.hstack([X[:, rest], X[:, touched] @ turn], format="csr")
    else:
        table = np.concatenate([X[:, rest], X[:, touched] @ root.astype(X.dtype)], axis=1)

    def back(weights: FloatArray) -> FloatArray:
        out = np.empty_like(weights)
        out[:, rest] = weights[:, : rest.size]
        out[:, touched] = weights[:, rest.size :] @ root
        return out

    return table, back


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
