"""Scores of rows by models that have not seen them: folds, class logits and norm logits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.cells import Cells, Codes, place_of, several
from evenhand.mitigation.estimator import class_logits, fit_weighted, fresh, row_count, take
from evenhand.mitigation.reweigh import within_class_weights
from evenhand.models.norm_weights import training_groups
from evenhand.stats.estimate import FloatArray


def fold_numbers(cells: Cells, *, folds: int, seed: int, origin: Any = None) -> Codes:
    """Fold of each row, drawn within class × group so that every fold has its share of each.

    Rows with one `origin`, such as a text and its counterfactual copy, stay together: a model
    that has seen the copy has seen the row.

    Examples:
        >>> from evenhand.mitigation.cells import cells_of
        >>> cells = cells_of(["a"] * 4 + ["b"] * 4, group=["f", "m"] * 4)
        >>> fold = fold_numbers(cells, folds=2, seed=0)
        >>> np.bincount(cells.index * 2 + fold).tolist()
        [1, 1, 1, 1, 1, 1, 1, 1]
    """
    if not 2 <= folds <= cells.truth.size:
        raise UsageError(
            f"folds={folds} is not between 2 and the {cells.truth.size} training rows."
        )
    small = cells.counts.sum(axis=1) < 2
    if small.any():
        named = several(np.array(cells.classes, dtype=object)[small])
        raise DataError(
            f"Only one training row of {named}: no fold without it could learn the class. "
            "Leave such classes out."
        )
    first, member = np.arange(cells.truth.size), np.arange(cells.truth.size)
    if origin is not None:
        _, first, member = np.unique(origin, return_index=True, return_inverse=True)
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(first.size), cells.group[first], cells.truth[first]))
    # Dealing the rows out in turn, cell after cell, evens out classes and cells at once.
    fold = np.empty(first.size, dtype=np.intp)
    fold[order] = np.arange(first.size) % folds
    return np.asarray(fold[member])


def original_rows(is_counterfactual: Any, *, rows: int) -> NDArray[np.bool_]:
    """Which rows are no counterfactual copies; all of them where nothing is said."""
    if is_counterfactual is None:
        return np.ones(rows, dtype=bool)
    copies = np.asarray(is_counterfactual, dtype=bool)
    if copies.shape != (rows,):
        raise UsageError(
            f"is_counterfactual has the shape {copies.shape} for {rows} rows. Give one a row."
        )
    if copies.all():
        raise DataError("All training rows are counterfactual copies. Give the originals as well.")
    return ~copies


@dataclass(frozen=True, slots=True)
class FittedNorm:
    """Norm logits of rows, by a fitted estimator of two classes or a callable."""

    model: Any

    def __call__(self, features: Any) -> FloatArray:
        rows = row_count(features)
        if hasattr(self.model, "predict_proba") or hasattr(self.model, "decision_function"):
            return checked_norm(norm_logits(self.model, features), rows=rows)
        return checked_norm(self.model(features), rows=rows)


@dataclass(frozen=True, slots=True)
class NormScorer:
    """Logits of looking like a typical member of one group, from an estimator or a callable.

    An estimator is fitted to tell the group's rows from the others, with the weights α that even
    out the groups of each class (of more than two, small ones are left out); a callable gives
    logits as it stands and is never fitted.
    """

    scorer: Any
    norm_group: Any

    def fitted(self, features: Any, cells: Cells, rows: Codes) -> FittedNorm:
        """What gives norm logits after learning from these rows."""
        if not hasattr(self.scorer, "fit") and self.scorer is not None:
            return FittedNorm(self.scorer)
        weights = within_class_weights(
            cells.truth[rows], group=cells.group[rows], groups=_learnt_from(cells)
        ).weights
        focal = cells.group[rows] == cells.groups.index(self.norm_group)
        return FittedNorm(fit_weighted(fresh(self.scorer), take(features, rows), focal, weights))


def _learnt_from(cells: Cells) -> list[int] | None:
    """Codes of the groups that train a norm scorer: of more than two, those large enough."""
    if len(cells.groups) < 3:
        return None
    truth = [str(code) for code in cells.truth.tolist()]
    try:
        found = training_groups(truth, [str(code) for code in cells.group.tolist()])
    except DataError:
        return None
    return [int(code) for code in found]


def norm_logits(model: Any, features: Any) -> FloatArray:
    """Logit of the norm by a fitted estimator of two classes."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(features), dtype=np.float64)
    share = np.asarray(model.predict_proba(features), dtype=np.float64)[:, 1]
    return np.asarray(logit(np.clip(share, 1e-12, 1 - 1e-12)))


def checked_norm(values: Any, *, rows: int) -> FloatArray:
    """Norm logits as an array, refused where they do not fit the rows."""
    norm = np.asarray(values, dtype=np.float64)
    if norm.shape != (rows,):
        raise UsageError(
            f"The norm has the shape {norm.shape} for {rows} rows. Give one logit for each row."
        )
    if not np.isfinite(norm).all():
        raise DataError(
            f"The norm is not finite in {int((~np.isfinite(norm)).sum())} of {rows} rows. "
            "Give logits, with probabilities kept off 0 and 1."
        )
    return norm


def chosen_group(norm_group: Any, cells: Cells) -> Any:
    """The group whose norm is scored: as given, or the second of two."""
    if len(cells.groups) < 2:
        raise DataError(
            f"All training rows belong to the group {cells.groups[0]!r}. "
            "A norm needs rows of at least two groups."
        )
    if norm_group is None:
        if len(cells.groups) > 2:
            raise UsageError(
                f"There are {len(cells.groups)} groups ({several(cells.groups)}). "
                "Say with norm_group= whose norm is scored."
            )
        return cells.groups[1]
    place_of(norm_group, cells.groups, argument="norm_group")
    learnt = _learnt_from(cells)
    if learnt is not None and cells.groups.index(norm_group) not in learnt:
        raise DataError(
            f"The group {norm_group!r} is too small to learn a norm from: 200 rows, and 20 in at "
            "least five classes, are needed. Choose a larger group with norm_group=."
        )
    return norm_group


def _all_columns(model: Any, X: Any, *, classes: NDArray[Any]) -> FloatArray:
    """Logits in the order of all classes; one that the fold lacked has the lowest there is."""
    found = class_logits(model, X)
    if len(model.classes_) == classes.size:
        return found
    if found.shape[1] == 1:
        found = np.column_stack([-found, found])
    table = np.full((found.shape[0], classes.size), found.min())
    table[:, np.searchsorted(classes, model.classes_)] = found
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossFitted:
    """Class logits and norm logits of the training rows, each from models that left them out.

    `logits` is None where only the norm was asked for.
    """

    norm: FloatArray
    logits: FloatArray | None


def crossfit(
    X: Any,
    y: Any,
    *,
    cells: Cells,
    norm: NormScorer,
    norm_features: Any,
    estimator: Any = None,
    classify: bool = True,
    weights: FloatArray | None = None,
    folds: int = 5,
    seed: int = 0,
    origin: Any = None,
    originals: NDArray[np.bool_] | None = None,
) -> CrossFitted:
    """Scores of every row by classifier and norm scorer fitted on the other folds.

    Only `originals` train the norm scorer: a text and its counterfactual copy look alike to it.
    """
    truth = np.asarray(y)
    fold = fold_numbers(cells, folds=folds, seed=seed, origin=origin)
    norms = np.empty(truth.size)
    columns = 1 if len(cells.classes) == 2 else len(cells.classes)
    logits = np.empty((truth.size, columns)) if classify else None
    for number in range(folds):
        inside, outside = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        learnt = outside if originals is None else outside[originals[outside]]
        norms[inside] = norm.fitted(norm_features, cells, learnt)(take(norm_features, inside))
        if logits is None:
            continue
        given = None if weights is None else weights[outside]
        model = fit_weighted(fresh(estimator), take(X, outside), truth[outside], given)
        logits[inside] = _all_columns(model, take(X, inside), classes=np.unique(truth))
    return CrossFitted(norm=norms, logits=logits)
