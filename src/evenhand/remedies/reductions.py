"""Reductions: Fairlearn's exponentiated gradient, one class against its rest at a time."""

from typing import Any, ClassVar, Self
from warnings import catch_warnings, filterwarnings

import numpy as np

from evenhand.errors import MissingExtra
from evenhand.remedies.cells import check_choice, is_sparse, several
from evenhand.remedies.estimator import Remedy, fresh, one_class, shares
from evenhand.stats.estimate import FloatArray

CONSTRAINTS = {
    "true_positive_rate": "TruePositiveRateParity",
    "false_positive_rate": "FalsePositiveRateParity",
    "equalized_odds": "EqualizedOdds",
    "selection_rate": "DemographicParity",
}


class ReductionsClassifier(Remedy):
    """A randomised mixture of classifiers with nearly equal rates (Agarwal et al. 2018).

    Of each class against its rest, Fairlearn fits a sequence of models h_t with weights w_t; the
    score of a row is Σ_t w_t·h_t(x), the probability that the mixture accepts it. Scores are
    heavily tied: `tie_share_` says how much. `max_iter` is what it costs: each step refits.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> group, truth = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
        >>> X = np.column_stack([truth + 0.5 * group, group]) + rng.normal(size=(300, 2))
        >>> model = ReductionsClassifier(max_iter=5).fit(X, truth, group=group)
        >>> model.predict_proba(X).shape
        (300, 2)
    """

    stage = "in"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"group": True}

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: str = "true_positive_rate",
        eps: float = 0.01,
        max_iter: int = 50,
        eta0: float = 2.0,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.eps = eps
        self.max_iter = max_iter
        self.eta0 = eta0

    def fit(self, X: Any, y: Any, *, group: Any = None) -> Self:
        """Fit the mixtures; a class with one group alone is fitted without the constraint."""
        check_choice("constraint", self.constraint, tuple(CONSTRAINTS))
        try:
            from fairlearn import reductions
        except ImportError:
            raise MissingExtra("fairlearn", "The reductions remedy") from None
        X, y = self._checked_matrix(X, y)
        cells = self._checked_cells(y, group)
        if len(cells.classes) < 2:
            raise one_class(y[0])
        table = X.toarray() if is_sparse(X) else X
        numbers = [1] if len(cells.classes) == 2 else list(range(len(cells.classes)))
        self.mixtures_: list[list[tuple[float, Any]]] = []
        self.unconstrained_: list[Any] = []
        self.n_iter_ = 1
        for c in numbers:
            own = (cells.truth == c).astype(int)
            if (cells.counts[c] > 0).sum() < 2:
                self.unconstrained_.append(cells.classes[c])
                self.mixtures_.append([(1.0, fresh(self.estimator).fit(table, own))])
                continue
            constraint = getattr(reductions, CONSTRAINTS[self.constraint])()
            found = reductions.ExponentiatedGradient(
                fresh(self.estimator),
                constraint,
                eps=self.eps,
                max_iter=self.max_iter,
                eta0=self.eta0,
            )
            with catch_warnings():
                ignore_changes_of_others()
                found.fit(table, own, sensitive_features=cells.group)
            pairs = zip(np.asarray(found.weights_, dtype=float), found.predictors_)
            self.mixtures_.append([(float(w), h) for w, h in pairs if w > 0])
            self.n_iter_ = max(self.n_iter_, int(found.last_iter_) + 1)
        self.notes_ = []
        if self.unconstrained_:
            self.notes_.append(
                f"Fitted without the constraint, with one group: {several(self.unconstrained_)}."
            )
        self.classes_ = np.asarray(cells.classes)
        scores = self.class_probabilities(table)
        distinct = [np.unique(column).size for column in scores.T]
        self.tie_share_ = 1 - np.array(distinct) / len(scores)
        return self

    def class_probabilities(self, X: Any) -> FloatArray:
        """Probability that the mixture of each class accepts each row."""
        X = self._known_matrix(X)
        table = X.toarray() if is_sparse(X) else X
        found = np.zeros((len(table), len(self.mixtures_)))
        for column, mixture in enumerate(self.mixtures_):
            for weight, model in mixture:
                found[:, column] += weight * np.asarray(model.predict(table), dtype=np.float64)
        # Weights sum to 1 up to rounding.
        found = np.clip(found, 0.0, 1.0)
        return np.column_stack([1 - found, found]) if found.shape[1] == 1 else found

    def predict_proba(self, X: Any) -> FloatArray:
        """Scores divided by their sum; even where no mixture accepts the row."""
        return shares(self.class_probabilities(X))


def ignore_changes_of_others() -> None:
    """Say nothing of what Fairlearn's calls to other libraries will mean in their next versions.

    Filters belong to the process, so threads need this set before they begin.
    """
    for category in (FutureWarning, DeprecationWarning):
        filterwarnings("ignore", category=category, module=r"fairlearn\.")
