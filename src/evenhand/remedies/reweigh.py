"""Weights that even out the groups of each class before training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError
from evenhand.models.norms.fit import alpha_table
from evenhand.remedies.cells import (
    TrainingCells,
    check_choice,
    few_left,
    place_of,
    row_weights,
    several,
    take,
    training_cells,
)
from evenhand.remedies.estimator import WrappedRemedy, fit_weighted, fresh
from evenhand.stats.estimate import FloatArray

Weighing = Literal["within_class", "kamiran_calders", "equal_opportunity"]
OneGroup = Literal["keep", "drop"]
ONE_GROUP: tuple[OneGroup, ...] = ("keep", "drop")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellWeights:
    """A weight for each row, and the table it comes from: classes × groups, NaN where empty.

    `empty` names cells without rows; `silenced` classes whose rows all have weight 0; `notes`
    says both in words.
    """

    weights: FloatArray
    classes: tuple[Any, ...]
    groups: tuple[Any, ...]
    counts: NDArray[np.int64]
    table: FloatArray
    empty: tuple[tuple[Any, Any], ...]
    silenced: tuple[Any, ...]
    notes: tuple[str, ...]

    def of(self, truth: Any, *, group: Any) -> float:
        """Weight of one cell; NaN where it has no rows."""
        row = place_of(truth, self.classes, argument="truth")
        return float(self.table[row, place_of(group, self.groups, argument="group")])


def within_class_weights(
    truth: Any, *, group: Any, groups: Sequence[Any] | None = None, one_group: OneGroup = "drop"
) -> CellWeights:
    """Weights α: each group of a class counts as much as its smallest group, none above 1.

    `groups` are those to be evened out, by default all; rows of others get weight 0, and so does
    a class with fewer than two of them unless `one_group` is "keep", which leaves its rows at 1.
    The sizes of the classes are not kept.

    Examples:
        >>> found = within_class_weights(["a"] * 4, group=["f", "m", "m", "m"])
        >>> found.weights.round(3).tolist()
        [1.0, 0.333, 0.333, 0.333]
    """
    cells = training_cells(truth, group=group)
    used = np.ones(len(cells.groups), dtype=bool)
    if groups is not None:
        used[:] = False
        used[[place_of(name, cells.groups, argument="groups") for name in groups]] = True
    table = alpha_table(cells.counts, used=used.tolist())
    left = [name for name, use in zip(cells.groups, used, strict=True) if not use]
    notes = [f"Rows of {several(left)} have weight 0: not among the groups given."] if left else []
    notes += few_left(cells) if groups is None else []
    return _weights(cells, table, notes=notes, one_group=one_group)


def kamiran_calders_weights(truth: Any, *, group: Any) -> CellWeights:
    """Weights n_y·n_g ÷ (n·n_yg): class and group become independent, their totals stay.

    Kamiran and Calders (2012). The weights sum to the number of rows unless a cell is empty.

    Examples:
        >>> found = kamiran_calders_weights(["a", "a", "a", "b"], group=["f", "m", "m", "f"])
        >>> found.of("a", group="f"), found.of("a", group="m"), found.empty
        (1.5, 0.75, (('b', 'm'),))
    """
    cells = training_cells(truth, group=group)
    n = cells.counts.sum()
    expected = cells.counts.sum(axis=1, keepdims=True) * cells.counts.sum(axis=0) / n
    table = expected / np.maximum(cells.counts, 1)
    return _weights(cells, table, notes=[])


def equal_opportunity_weights(truth: Any, *, group: Any) -> CellWeights:
    """Weights n_y ÷ n_yg: in a class every group counts as much as the whole class.

    With K groups the weights sum to K times the rows; a ridge penalty is then K times weaker.

    Examples:
        >>> found = equal_opportunity_weights(["a"] * 4, group=["f", "m", "m", "m"])
        >>> found.weights.round(3).tolist()
        [4.0, 1.333, 1.333, 1.333]
    """
    cells = training_cells(truth, group=group)
    table = cells.counts.sum(axis=1, keepdims=True) / np.maximum(cells.counts, 1)
    return _weights(cells, table, notes=[])


WEIGHINGS: dict[str, Callable[..., CellWeights]] = {
    "within_class": within_class_weights,
    "kamiran_calders": kamiran_calders_weights,
    "equal_opportunity": equal_opportunity_weights,
}


def reweigh(
    truth: Any,
    *,
    group: Any,
    method: Weighing = "kamiran_calders",
    one_group: OneGroup = "keep",
) -> CellWeights:
    """Weights of the training rows by one of the three rules.

    `one_group` is what "within_class" does with a class of one group: "keep" it as it is, or
    "drop" it by weights of 0, after which no model decides for it. The others never drop one.

    Examples:
        >>> reweigh(["a", "a", "b", "b"], group=["f", "m", "f", "m"]).weights.tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    check_choice("method", method, tuple(WEIGHINGS))
    check_choice("one_group", one_group, ONE_GROUP)
    if method == "within_class":
        return within_class_weights(truth, group=group, one_group=one_group)
    return WEIGHINGS[method](truth, group=group)


class ReweighedClassifier(WrappedRemedy):
    """A classifier trained with weights that even out the groups; `cells_` has the table.

    Examples:
        >>> rows = [[0.0], [1.0], [2.0], [3.0]]
        >>> model = ReweighedClassifier().fit(rows, ["a", "a", "b", "b"], group=["f", "m"] * 2)
        >>> model.predict([[0.0], [3.0]]).tolist()
        ['a', 'b']
    """

    stage = "before"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"group": True}

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Weighing = "kamiran_calders",
        one_group: OneGroup = "keep",
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.one_group = one_group

    def fit(self, X: Any, y: Any, *, group: Any = None, sample_weight: Any = None) -> Self:
        """Fit with the weights of the cells, times `sample_weight` where given."""
        X, y = self._checked_rows(X, y)
        self._check_groups(group)
        self.cells_ = reweigh(y, group=group, method=self.method, one_group=self.one_group)
        weights = self.cells_.weights * row_weights(sample_weight, rows=len(y))
        weights = row_weights(weights, rows=len(y))
        # A class without weight has nothing to be learnt from: its intercept would have no end.
        used = ~np.isin(y, self.cells_.silenced)
        self.estimator_ = fit_weighted(fresh(self.estimator), take(X, used), y[used], weights[used])
        self.classes_ = self.estimator_.classes_
        return self


def _weights(
    cells: TrainingCells, table: FloatArray, *, notes: list[str], one_group: OneGroup = "drop"
) -> CellWeights:
    rows = table[cells.truth, cells.group]
    if not rows.sum() > 0:
        raise DataError(
            "The weights sum to zero: no class has rows of two groups. "
            "Give training rows in which some class has more than one group."
        )
    silent = np.logical_not((table * cells.counts).any(axis=1))
    named = several(np.array(cells.classes, dtype=object)[silent])
    if silent.any() and one_group == "keep":
        table = np.where(silent[:, None], 1.0, table)
        rows = table[cells.truth, cells.group]
        notes = [*notes, f"Kept at weight 1, for want of a second group to even out: {named}."]
        silent = np.zeros_like(silent)
    silenced = tuple(np.array(cells.classes, dtype=object)[silent])
    if cells.empty:
        notes = [cells.without_rows, *notes]
    if silenced:
        notes = [*notes, f"Weight 0 throughout, for want of a second group: {named}."]
    return CellWeights(
        weights=rows,
        classes=cells.classes,
        groups=cells.groups,
        counts=cells.counts,
        table=np.where(cells.counts > 0, table, np.nan),
        empty=cells.empty,
        silenced=silenced,
        notes=tuple(notes),
    )
