"""One model for each group, each decided by its own."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError, nearest
from evenhand.mitigation.cells import cells_of, several
from evenhand.mitigation.estimator import (
    Remedy,
    checked_weights,
    class_scores,
    fit_weighted,
    fresh,
    row_count,
    row_groups,
    take,
)
from evenhand.stats.estimate import FloatArray


class DecoupledClassifier(Remedy):
    """A classifier for each group, applied to its own group: the group has to be known.

    `unseen` says what to do with a group that had no training rows: "error", "average" (the
    mean of all groups' probabilities) or the name of a group whose model decides. A class that a
    group's rows lack has probability 0 there.

    Examples:
        >>> rows = np.array([[0.0], [1.0], [0.0], [1.0]])
        >>> model = DecoupledClassifier(unseen="average")
        >>> model = model.fit(rows, [0, 1, 1, 0], group=["a", "a", "b", "b"])
        >>> model.predict(rows, group=["a", "a", "b", "b"]).tolist()
        [0, 1, 1, 0]
    """

    stage = "in"
    needs_group_at_decision = True

    def __init__(self, estimator: Any = None, *, unseen: Any = "error") -> None:
        self.estimator = estimator
        self.unseen = unseen

    def fit(self, X: Any, y: Any, *, group: Any, sample_weight: Any = None) -> Self:
        """Fit one model on the rows of each group."""
        cells = cells_of(y, group=group)
        rules = ["error", "average", *cells.groups]
        if self.unseen not in rules:
            raise UsageError(
                f"unseen={self.unseen!r} is neither 'error', 'average' nor a group "
                f"({several(cells.groups)})."
                + nearest(str(self.unseen), [str(each) for each in rules])
            )
        weights = checked_weights(sample_weight, rows=cells.truth.size)
        truth = np.asarray(y)
        self.groups_ = cells.groups
        self.classes_ = np.asarray(cells.classes)
        self.estimators_ = {}
        for code, name in enumerate(cells.groups):
            own = np.flatnonzero(cells.group == code)
            titles = np.unique(cells.truth[own])
            if titles.size < 2:
                raise DataError(
                    f"The group {name!r} has training rows of one class alone, "
                    f"{cells.classes[titles[0]]!r}, so it cannot have a model of its own. "
                    "Leave the group out, and say with unseen= how to decide about it."
                )
            given = None if sample_weight is None else weights[own]
            self.estimators_[name] = fit_weighted(
                fresh(self.estimator), take(X, own), truth[own], given
            )
        return self

    def predict_proba(self, X: Any, *, group: Any = None) -> FloatArray:
        """Probabilities by the model of each row's group."""
        return self._by_group(X, group, lambda model, rows: model.predict_proba(rows))

    def class_probabilities(self, X: Any, *, group: Any = None) -> FloatArray:
        """Probability of each class against its rest, by the model of each row's group."""
        return self._by_group(X, group, class_scores)

    def scores_by_group(self, X: Any) -> dict[Any, FloatArray]:
        """What each group's model says of all rows, such as people of a group without one."""
        self._check_fitted()
        return {
            name: self._columns(model, class_scores(model, X))
            for name, model in self.estimators_.items()
        }

    def _by_group(self, X: Any, group: Any, ask: Any) -> FloatArray:
        self._check_fitted()
        g = row_groups(group, rows=row_count(X), known=self.groups_)
        found = np.zeros((g.size, self.classes_.size))
        for code, (_, model) in enumerate(self.estimators_.items()):
            own = np.flatnonzero(g == code)
            if own.size:
                found[own] = self._columns(model, ask(model, take(X, own)))
        new = np.flatnonzero(g < 0)
        if new.size:
            found[new] = self._unseen(X, new, group, ask)
        return found

    def _unseen(self, X: Any, new: NDArray[np.intp], group: Any, ask: Any) -> FloatArray:
        if self.unseen == "error":
            names = sorted({str(each) for each in np.asarray(group, dtype=object)[new]})
            raise DataError(
                f"There is no model for the group {several(names)}: no training rows. "
                "Say unseen='average', or name the group whose model decides."
            )
        rows = take(X, new)
        if self.unseen == "average":
            all_models = [self._columns(m, ask(m, rows)) for m in self.estimators_.values()]
            return np.asarray(np.mean(all_models, axis=0))
        model = self.estimators_[self.unseen]
        return self._columns(model, ask(model, rows))

    def _columns(self, model: Any, scores: Any) -> FloatArray:
        """Scores in the order of all classes, 0 for those the model does not know."""
        table = np.zeros((len(scores), self.classes_.size))
        table[:, np.searchsorted(self.classes_, model.classes_)] = scores
        return table
