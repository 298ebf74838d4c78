"""What all remedies share: scikit-learn's conventions without importing it, and scores of models.

Deriving from scikit-learn's base class would import it with the module; these few methods are what
`clone`, `Pipeline`, `cross_validate` and searches ask for.
"""

from collections.abc import Sequence
from inspect import signature
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from evenhand.errors import DataError, MissingExtra, UsageError, nearest
from evenhand.mitigation.cells import Codes, coded
from evenhand.stats.estimate import FloatArray

Stage = Literal["before", "in", "after"]


class Remedy:
    """A classifier with a remedy; subclasses set their parameters in `__init__` and fit.

    `stage` says when the remedy acts, `needs_group_at_decision` whether the group of a person has
    to be known to decide about them.
    """

    stage: ClassVar[Stage]
    needs_group_at_decision: ClassVar[bool] = False
    classes_: NDArray[Any]
    predict_proba: Any  # rows × classes, adding to 1; some remedies ask for the group as well

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep`, those of inner estimators as estimator__name."""
        own = {name: getattr(self, name) for name in self._names()}
        if not deep:
            return own
        inner = {
            f"{name}__{key}": value
            for name, each in own.items()
            if hasattr(each, "get_params") and not isinstance(each, type)
            for key, value in each.get_params().items()
        }
        return {**own, **inner}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, those of inner estimators as estimator__name."""
        known = self._names()
        for name, value in parameters.items():
            first, _, rest = name.partition("__")
            if first not in known:
                raise ValueError(
                    f"{first!r} is not a parameter of {type(self).__name__}, "
                    f"which has {', '.join(known)}.{nearest(first, known)}"
                )
            if rest:
                getattr(self, first).set_params(**{rest: value})
            else:
                setattr(self, first, value)
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.get_params(deep=False).items())
        return f"{type(self).__name__}({given})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        tags = Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def predict(self, X: Any, **roles: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X, **roles).argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, **roles: Any) -> float:
        """Accuracy, as scikit-learn's searches expect it."""
        self._check_fitted()
        return float(np.average(self.predict(X, **roles) == np.asarray(y), weights=sample_weight))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)


class Wrapped(Remedy):
    """A remedy whose decisions are those of one inner estimator, `estimator_`."""

    estimator_: Any

    def predict(self, X: Any, **roles: Any) -> NDArray[Any]:
        """The inner estimator's decisions."""
        self._check_fitted()
        return np.asarray(self.estimator_.predict(X, **roles))

    def predict_proba(self, X: Any, **roles: Any) -> FloatArray:
        """The inner estimator's probabilities."""
        self._check_fitted()
        return np.asarray(self.estimator_.predict_proba(X, **roles), dtype=np.float64)

    def decision_function(self, X: Any) -> FloatArray:
        """The inner estimator's logits."""
        self._check_fitted()
        return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)

    def class_probabilities(self, X: Any) -> FloatArray:
        """Probability of each class against its rest, where the inner estimator has it."""
        self._check_fitted()
        return class_scores(self.estimator_, X)


def not_fitted(model: Any) -> Exception:
    """scikit-learn's own error where it is installed, so that its tools recognise it."""
    words = f"{type(model).__name__} is not fitted yet. Call fit first."
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return UsageError(words)
    return NotFittedError(words)  # type: ignore[no-any-return]


def fresh(estimator: Any) -> Any:
    """An unfitted copy of an estimator; the default is Evenhand's logistic regression."""
    try:
        from sklearn.base import clone
    except ImportError:
        raise MissingExtra("text", "Training a classifier") from None
    if estimator is None:
        from evenhand.models.linear import LogisticClassifier

        return LogisticClassifier()
    return clone(estimator)


def fit_weighted(model: Any, X: Any, y: Any, weights: FloatArray | None) -> Any:
    """The model fitted with weights, or without where there are none."""
    if weights is None:
        return model.fit(X, y)
    takes = "sample_weight" in signature(model.fit).parameters
    if takes:
        return model.fit(X, y, sample_weight=weights)
    if hasattr(model, "steps"):
        return model.fit(X, y, **{f"{model.steps[-1][0]}__sample_weight": weights})
    raise UsageError(
        f"{type(model).__name__} takes no sample_weight. Give an estimator whose fit does, "
        "or resample instead of reweighing."
    )


def class_scores(model: Any, X: Any) -> FloatArray:
    """Rows × classes: one-versus-rest probabilities where a model has them, else its own."""
    if hasattr(model, "class_probabilities"):
        return np.asarray(model.class_probabilities(X), dtype=np.float64)
    return np.asarray(model.predict_proba(X), dtype=np.float64)


def class_logits(model: Any, X: Any) -> FloatArray:
    """Rows × classes logits; one column, of the second class, where there are two."""
    if hasattr(model, "decision_function"):
        found = np.asarray(model.decision_function(X), dtype=np.float64)
    else:
        found = logit(np.clip(class_scores(model, X), 1e-12, 1 - 1e-12))
        found = found[:, 1] if found.shape[1] == 2 else found
    return found[:, None] if found.ndim == 1 else found


def probabilities(logits: FloatArray, *, joint: bool) -> FloatArray:
    """Probabilities that add to 1: softmax, or one-versus-rest ones divided by their sum."""
    if logits.shape[1] == 1:
        positive = expit(logits[:, 0])
        return np.stack([1 - positive, positive], axis=1)
    if joint:
        return np.asarray(softmax(logits, axis=1))
    rest = expit(logits)
    total = rest.sum(axis=1, keepdims=True)
    even = np.full_like(rest, 1 / rest.shape[1])
    return np.asarray(np.divide(rest, total, out=even, where=total > 0))


def checked_weights(given: Any, *, rows: int) -> FloatArray:
    """Weights of the rows, ones where none are given; refused where they cannot be used."""
    if given is None:
        return np.ones(rows)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (rows,):
        raise UsageError(
            f"sample_weight has the shape {weights.shape} for {rows} rows. Give one for each row."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise DataError(f"sample_weight has {weights[bad][0]:g}. Give finite weights of 0 or more.")
    if not weights.sum() > 0:
        raise DataError("The weights sum to zero. Give some rows a weight above 0.")
    return weights


def row_groups(group: Any, *, rows: int, known: Sequence[Any] | None = None) -> Codes:
    """Codes of the rows' groups among the known ones; -1 for a group that is not known."""
    if group is None:
        raise UsageError(
            "This remedy needs the group of each row to decide. Give group= with one for each row."
        )
    names, codes = coded(group, argument="group")
    if codes.size != rows:
        raise UsageError(f"group has {codes.size} values for {rows} rows. Give one for each row.")
    if known is None:
        return codes
    place = {name: at for at, name in enumerate(known)}
    return np.array([place.get(name, -1) for name in names], dtype=np.intp)[codes]


def row_count(X: Any) -> int:
    """Number of rows of a matrix, a frame or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def is_sparse(X: Any) -> bool:
    """Whether a matrix is one of SciPy's sparse ones."""
    return hasattr(X, "tocsr")


def take(X: Any, rows: Any) -> Any:
    """These rows of a matrix, a frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "shape"):
        return X[rows]
    return [X[row] for row in np.arange(len(X))[rows]]
