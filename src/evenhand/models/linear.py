"""Ridge logistic regression as a scikit-learn estimator, with all classes fitted in one pass.

Needs scikit-learn (extra `text`); nothing in the core imports this module.
"""

from collections.abc import Sequence
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import MissingExtra, UnusableRows, UsageError, nearest
from evenhand.models.logistic import fit_logistic

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("text", "LogisticClassifier") from None

FloatTable = NDArray[np.floating[Any]]


class LogisticClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """L2 logistic regression, one-versus-rest or multinomial, on sparse or dense features.

    Minimises Σ weight·log-loss + |w|²/2C with free intercepts. float32 features (as word counts
    here are) are fitted in float32, at half the memory; all others in float64. `class_weight`
    is "balanced" or a dict; balanced one-versus-rest gives a class and its rest equal weight.

    Examples:
        >>> rows = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
        >>> model = LogisticClassifier().fit(rows, ["no", "no", "yes", "yes"])
        >>> model.predict([[0.5, 0.5], [2.5, 0.5]]).tolist()
        ['no', 'yes']
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        multinomial: bool = False,
        class_weight: str | dict[Any, float] | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-5,
        max_iter: int = 500,
        warm_start: bool = False,
        threads: int | None = None,
    ) -> None:
        self.C = C
        self.multinomial = multinomial
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.threads = threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit all classes; with `warm_start`, from the present coefficients."""
        self._check_arguments()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        weights = checked_weights(sample_weight, rows=X.shape[0])
        if np.unique(labels[weights > 0]).size < 2:
            seen = classes[labels[weights > 0]][:1].tolist()
            raise UnusableRows(
                f"The training rows have one class alone, {seen[0]!r}. "
                "Learning needs rows of at least two classes."
            )
        weightless = np.setdiff1d(np.arange(classes.size), labels[weights > 0])
        if weightless.size:
            raise UnusableRows(
                f"Every row of class {classes[weightless[0]].item()!r} has weight 0. "
                "Leave its rows out, or give them weight."
            )
        start = self._start(classes, X.shape[1])
        several = classes.size > 2
        columns = classes.size if several or self.multinomial else 1
        # Of two classes the second is the positive one, as everywhere in scikit-learn.
        target = labels if columns > 1 else labels - 1
        sides = None
        if self.class_weight == "balanced" and not self.multinomial:
            sides = balanced_sides(target, weights, columns)
        elif self.class_weight is not None:
            weights = weights * self._class_weights(classes, labels, weights)[labels]
        fit = fit_logistic(
            X,
            target,
            classes=columns,
            multinomial=self.multinomial,
            penalty=1.0 / self.C,
            weights=weights,
            sides=sides,
            intercept=self.fit_intercept,
            start=start,
            tolerance=self.tol,
            max_iterations=self.max_iter,
            threads=self.threads,
        )
        self.classes_ = classes
        self.coef_: FloatTable = fit.weights
        self.intercept_: FloatTable = fit.intercepts
        self.objective_ = fit.objective
        self.n_iter_ = fit.iterations
        if not fit.converged.all():
            warn(
                f"{int((~fit.converged).sum())} problems have not settled after "
                f"max_iter={self.max_iter} steps. Raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X: Any) -> FloatTable:
        """Logits: rows × classes, or one number a row where there are two classes."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        logits: FloatTable = X @ self.coef_.T.astype(X.dtype) + self.intercept_
        if self.multinomial and self.classes_.size == 2:
            return logits[:, 1] - logits[:, 0]
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest logit."""
        logits = self.decision_function(X)
        chosen = (logits > 0).astype(int) if logits.ndim == 1 else logits.argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[chosen]
        return predicted

    def class_probabilities(self, X: Any) -> FloatTable:
        """Probability of each class against its rest; rows do not add to 1 with more than two."""
        # In float32 all logits above 17 would be one probability, and ranks would tie.
        logits = self.decision_function(X).astype(np.float64)
        if logits.ndim == 1:
            logits = np.stack([-logits, logits], axis=1)
        elif self.multinomial:
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            joint: FloatTable = powers / powers.sum(axis=1, keepdims=True)
            return joint
        small = np.exp(-np.abs(logits))
        return np.where(logits >= 0, 1.0, small) / (1.0 + small)

    def predict_proba(self, X: Any) -> FloatTable:
        """Probabilities that add to 1: softmax, or one-versus-rest ones divided by their sum."""
        probabilities = self.class_probabilities(X)
        total = probabilities.sum(axis=1, keepdims=True)
        even = np.full_like(probabilities, 1.0 / probabilities.shape[1])
        shares: FloatTable = np.divide(probabilities, total, out=even, where=total > 0)
        return shares

    def strongest(
        self, words: Sequence[str], *, count: int = 20
    ) -> dict[str, list[tuple[str, float]]]:
        """For each class, the words with the largest weights, strongest first, with their weights.

        Of two classes the first has the weights of the second with their sign turned.
        """
        check_is_fitted(self)
        table = self.coef_ if len(self.coef_) > 1 else np.stack([-self.coef_[0], self.coef_[0]])
        if len(words) != table.shape[1]:
            raise UsageError(
                f"{len(words)} words were given for {table.shape[1]} features. "
                "Give the words of the representation that the model was fitted on."
            )
        order = np.argsort(-table, axis=1, kind="stable")[:, :count]
        return {
            str(name): [(words[k], float(row[k])) for k in best]
            for name, row, best in zip(self.classes_, table, order, strict=True)
        }

    def _check_arguments(self) -> None:
        if not (np.isfinite(self.C) and self.C > 0):
            raise UsageError(f"C={self.C} is not a finite number above 0. The default is 1.0.")
        if not self.tol > 0:
            raise UsageError(f"tol={self.tol} is not above 0. The default is 1e-5.")
        known = self.class_weight in (None, "balanced") or isinstance(self.class_weight, dict)
        if not known:
            raise UsageError(
                f"class_weight={self.class_weight!r} is neither 'balanced' nor a dict of weights."
                + nearest(str(self.class_weight), ["balanced"])
            )

    def _class_weights(
        self, classes: NDArray[Any], labels: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if isinstance(self.class_weight, dict):
            return np.array([float(self.class_weight.get(name, 1.0)) for name in classes.tolist()])
        mass = np.bincount(labels, weights=weights, minlength=classes.size)
        present = mass > 0
        factors = np.zeros(classes.size)
        factors[present] = mass.sum() / (classes.size * mass[present])
        return factors

    def _start(self, classes: NDArray[Any], width: int) -> tuple[FloatTable, FloatTable] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if self.coef_.shape[1] != width or not np.array_equal(self.classes_, classes):
            return None
        return self.coef_, self.intercept_


def balanced_sides(
    target: NDArray[np.intp], weights: NDArray[np.float64], columns: int
) -> NDArray[np.float64]:
    """Factors that give each class and its rest half of the weight: rest first, class second."""
    own = target >= 0
    mass = np.bincount(target[own], weights=weights[own], minlength=columns)
    total = weights.sum()
    with np.errstate(divide="ignore"):
        sides = np.stack([total / (2 * (total - mass)), total / (2 * mass)])
    return np.where(np.isfinite(sides), sides, 0.0)


def checked_weights(given: Any, *, rows: int) -> NDArray[np.float64]:
    """Weights of the rows, one where none are given; negative or only zero ones are refused."""
    if given is None:
        return np.ones(rows)
    if np.isscalar(given):
        given = np.full(rows, given)
    weights: NDArray[np.float64] = check_array(
        given, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (rows,):
        raise UnusableRows(
            f"sample_weight has the shape {weights.shape} for {rows} rows. "
            "Give one weight for each row."
        )
    if (weights < 0).any():
        worst = f"sample_weight={weights.min():g} is negative."
        raise UnusableRows(f"{worst} Give weights of 0 or more.")
    if not weights.any():
        raise UnusableRows("Every sample_weight is zero. Give some rows a weight above 0.")
    return weights
