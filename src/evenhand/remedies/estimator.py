"""What all remedies share as scikit-learn estimators, and what they ask of the models inside them.

Needs scikit-learn (extra `text`); `evenhand.remedies` imports it when a remedy is first used.
"""

from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from evenhand.errors import MissingExtra, UnusableRows, UsageError
from evenhand.remedies.cells import ROUTING, TrainingCells, as_rows, training_cells
from evenhand.stats.estimate import FloatArray

try:
    from sklearn import config_context
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
    from sklearn.utils.metadata_routing import UNUSED
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("text", "A remedy") from None

from evenhand.models.linear import LogisticClassifier  # which needs scikit-learn as well

Stage = Literal["before", "in", "after"]
FLOATS = [np.float64, np.float32]
NOT_ROUTED = UNUSED  # of arguments of fit that are not one a row


class Remedy(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with a remedy, as scikit-learn's pipelines, searches and clones know them.

    `stage` says when the remedy acts, `needs_group_at_decision` whether the group of a person has
    to be known to decide about them. `fit` takes what it needs by name (`group=` of each row),
    and asks for it by metadata routing where that is turned on.
    """

    stage: ClassVar[Stage]
    needs_group_at_decision: ClassVar[bool] = False
    classes_: NDArray[Any]
    predict_proba: Any  # rows × classes, adding to 1; some remedies ask for the group as well

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        return self._most_probable(self.predict_proba(X))

    def _most_probable(self, shares: FloatArray) -> NDArray[Any]:
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def _checked_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Rows as they are and classes as one column, after what every classifier checks.

        What rows hold is left to the estimator inside, which may take texts.
        """
        X, y = validate_data(self, X, y, skip_check_array=True)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        check_consistent_length(X, y)
        return as_rows(X), y

    def _checked_cells(self, y: Any, group: Any) -> TrainingCells:
        """Class × group cells of the training rows; refused without groups."""
        self._check_groups(group)
        return training_cells(y, group=group)

    def _check_groups(self, group: Any) -> None:
        self._check_given("group", group, "the group of each training row")

    def _check_given(self, argument: str, given: Any, what: str) -> None:
        if given is None:
            raise UsageError(
                f"{type(self).__name__} needs {what}. Give {argument}= with one for each row. "
                f"{ROUTING}"
            )

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _checked_matrix(self, X: Any, y: Any, *, dtype: Any = np.float64) -> tuple[Any, Any]:
        """Features as a matrix of numbers, sparse or not, for remedies that fit them themselves."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=dtype)
        check_classification_targets(y)
        return X, y

    def _known_matrix(self, X: Any) -> Any:
        """Features of rows to be decided about, in the columns of the fit."""
        self._check_fitted()
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)


class GroupRemedy(Remedy):
    """A remedy that decides by the group: predictions and scores ask for `group=` as well."""

    needs_group_at_decision = True
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"group": True}
    __metadata_request__predict_proba: ClassVar[dict[str, Any]] = {"group": True}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"group": True}

    def predict(self, X: Any, *, group: Any = None) -> NDArray[Any]:
        """The most probable class of each row, by the rule of its group."""
        return self._most_probable(self.predict_proba(X, group=group))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, group: Any = None) -> float:
        """Accuracy of the decisions about rows of these groups."""
        right = self.predict(X, group=group) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))


def _has(name: str) -> Any:
    """Whether a wrapped estimator, fitted or not, has a method."""

    def check(remedy: Any) -> bool:
        model = getattr(remedy, "estimator_", remedy.estimator)
        return model is None or hasattr(model, name)

    return check


class WrappedRemedy(Remedy):
    """A remedy before training: its decisions are those of one inner estimator, `estimator_`."""

    estimator: Any
    estimator_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The inner estimator's decisions."""
        self._check_fitted()
        return np.asarray(self.estimator_.predict(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """The inner estimator's probabilities."""
        self._check_fitted()
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """The inner estimator's logits."""
        self._check_fitted()
        return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def class_probabilities(self, X: Any) -> FloatArray:
        """Probability of each class against its rest, where the inner estimator has it."""
        self._check_fitted()
        return class_scores(self.estimator_, X)


def one_class(name: Any) -> UnusableRows:
    """What is said of training rows of one class alone."""
    known = name.item() if isinstance(name, np.generic) else name
    return UnusableRows(
        f"The training rows have one class alone, {known!r}. "
        "Learning needs rows of at least two classes."
    )


def fresh(estimator: Any) -> Any:
    """An unfitted copy of an estimator; the default is Evenhand's logistic regression."""
    return LogisticClassifier() if estimator is None else clone(estimator)


def is_fitted(model: Any) -> bool:
    """Whether a model can decide as it stands; one without a `fit` always can."""
    if not hasattr(model, "fit"):
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def fit_weighted(model: Any, X: Any, y: Any, weights: FloatArray | None) -> Any:
    """The model fitted with weights, or without where there are none."""
    if weights is None:
        return model.fit(X, y)
    if "sample_weight" in signature(model.fit).parameters:
        return model.fit(X, y, sample_weight=weights)
    if hasattr(model, "steps"):
        # By the name of the last step, whatever the caller has turned on for his own pipelines.
        with config_context(enable_metadata_routing=False):
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
    return np.asarray(softmax(logits, axis=1)) if joint else shares(expit(logits))


def rest_probabilities(logits: FloatArray, *, joint: bool) -> FloatArray:
    """Probability of each class against its rest; softmax where classes are fitted jointly."""
    if logits.shape[1] == 1 or joint:
        return probabilities(logits, joint=joint)
    return np.asarray(expit(logits))


def shares(scores: FloatArray) -> FloatArray:
    """Scores of each row divided by their sum; even ones where all are 0.

    Examples:
        >>> shares(np.array([[0.9, 0.3], [0.0, 0.0]])).tolist()
        [[0.75, 0.25], [0.5, 0.5]]
    """
    total = scores.sum(axis=1, keepdims=True)
    even = np.full_like(scores, 1 / scores.shape[1])
    return np.asarray(np.divide(scores, total, out=even, where=total > 0))
