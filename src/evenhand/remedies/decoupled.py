"""One model for each group: decisions about a group's people come from its own rows."""

from typing import Any, ClassVar, Self

import numpy as np

from evenhand.errors import DataError, UnusableRows, UsageError, nearest
from evenhand.remedies.cells import (
    Codes,
    as_rows,
    row_count,
    row_groups,
    row_weights,
    several,
    take,
)
from evenhand.remedies.estimator import GroupRemedy, class_scores, fit_weighted, fresh
from evenhand.speech import plural
from evenhand.stats.estimate import FloatArray


class DecoupledClassifier(GroupRemedy):
    """A classifier for each group, applied to its own group: the group has to be known.

    `unseen` says what to do with a group that had no training rows: "error", "average" (the
    mean of all groups' probabilities), "pooled" (a model of all rows) or the name of a group whose
    model decides. A group of under `fewest` rows, or then of one class alone, is decided by the
    model of all rows, named in `notes_`. A class that a group's rows lack has probability 0 there.

    Examples:
        >>> rows = np.array([[0.0], [1.0], [0.0], [1.0]])
        >>> model = DecoupledClassifier(unseen="average")
        >>> model = model.fit(rows, [0, 1, 1, 0], group=["a", "a", "b", "b"])
        >>> model.predict(rows, group=["a", "a", "b", "b"]).tolist()
        [0, 1, 1, 0]
    """

    stage = "in"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"group": True}

    def __init__(self, estimator: Any = None, *, unseen: Any = "error", fewest: int = 0) -> None:
        self.estimator = estimator
        self.unseen = unseen
        self.fewest = fewest

    def fit(self, X: Any, y: Any, *, group: Any = None, sample_weight: Any = None) -> Self:
        """Fit one model on the rows of each group."""
        X, y = self._checked_rows(X, y)
        cells = self._checked_cells(y, group)
        rules = ["error", "average", "pooled", *cells.groups]
        if self.unseen not in rules:
            raise UsageError(
                f"unseen={self.unseen!r} is neither 'error', 'average', 'pooled' nor a group "
                f"({several(cells.groups)})."
                + nearest(str(self.unseen), [str(each) for each in rules])
            )
        weights = row_weights(sample_weight, rows=len(y))
        self.groups_ = cells.groups
        self.classes_ = np.asarray(cells.classes)
        self.estimators_: dict[Any, Any] = {}
        self.notes_: list[str] = []
        self.pooled_ = None
        small = self._small(cells, weights)
        if small or self.unseen == "pooled":
            given = None if sample_weight is None else weights
            self.pooled_ = fit_weighted(fresh(self.estimator), X, y, given)
        for code, name in enumerate(cells.groups):
            if name in small:
                self.estimators_[name] = self.pooled_
                continue
            own = np.flatnonzero((cells.group == code) & (weights > 0))
            titles = np.unique(cells.truth[own])
            if titles.size < 2:
                alone = (
                    f"of one class alone, {cells.classes[titles[0]]!r}"
                    if titles.size
                    else "of weight 0"
                )
                raise UnusableRows(
                    f"The group {name!r} has training rows {alone}, so it cannot have a model of "
                    "its own. Leave the group out, and say with unseen= how to decide about it."
                )
            given = None if sample_weight is None else weights[own]
            self.estimators_[name] = fit_weighted(
                fresh(self.estimator), take(X, own), y[own], given
            )
        return self

    def _small(self, cells: Any, weights: FloatArray) -> list[Any]:
        """Groups without a model of their own, and a note that names them."""
        if not self.fewest:
            return []
        sizes = np.bincount(cells.group[weights > 0], minlength=len(cells.groups))
        small = []
        for code, name in enumerate(cells.groups):
            titles = np.unique(cells.truth[(cells.group == code) & (weights > 0)])
            if sizes[code] < self.fewest or titles.size < 2:
                small.append(name)
                self.notes_.append(
                    f"{name!r} has {plural(int(sizes[code]), 'training row')} of "
                    f"{plural(titles.size, 'class', 'classes')} and no model of its own: one of "
                    "all rows decides."
                )
        return small

    def predict_proba(self, X: Any, *, group: Any = None) -> FloatArray:
        """Probabilities by the model of each row's group."""
        return self._by_group(X, group, lambda model, rows: model.predict_proba(rows))

    def class_probabilities(self, X: Any, *, group: Any = None) -> FloatArray:
        """Probability of each class against its rest, by the model of each row's group."""
        return self._by_group(X, group, class_scores)

    def _by_group(self, X: Any, group: Any, ask: Any) -> FloatArray:
        self._check_fitted()
        X = as_rows(X)
        name = type(self).__name__
        g = row_groups(group, rows=row_count(X), known=self.groups_, remedy=name)
        found = np.zeros((g.size, self.classes_.size))
        for code, model in enumerate(self.estimators_.values()):
            own = np.flatnonzero(g == code)
            if own.size:
                found[own] = self._columns(model, ask(model, take(X, own)))
        new = np.flatnonzero(g < 0)
        if new.size:
            found[new] = self._unseen(X, new, group, ask)
        return found

    def _unseen(self, X: Any, new: Codes, group: Any, ask: Any) -> FloatArray:
        if self.unseen == "error":
            names = sorted({str(each) for each in np.asarray(group, dtype=object)[new]})
            raise DataError(
                f"There is no model for the group {several(names)}: no training rows. "
                "Say unseen='average', or name the group whose model decides."
            )
        rows = take(X, new)
        if self.unseen == "pooled":
            if self.pooled_ is None:
                raise UsageError("There is no model of all rows. Fit again with unseen='pooled'.")
            return self._columns(self.pooled_, ask(self.pooled_, rows))
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
