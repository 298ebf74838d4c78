"""Over- and undersampling of groups within each class: row numbers, with repeats."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.remedies.cells import (
    Codes,
    TrainingCells,
    check_choice,
    few_left,
    row_weights,
    several,
    take,
    training_cells,
)
from evenhand.remedies.estimator import WrappedRemedy, fit_weighted, fresh
from evenhand.remedies.reweigh import ONE_GROUP, OneGroup

Sampling = Literal["over", "under"]
SAMPLINGS: tuple[Sampling, ...] = ("over", "under")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """Row numbers of a resampled training set, and the counts by class × group it ends with.

    `empty` names cells without rows, which no sampling can fill; `one_group` the classes that
    had a single group; `notes` says both in words.
    """

    rows: Codes
    classes: tuple[Any, ...]
    groups: tuple[Any, ...]
    counts: NDArray[np.int64]
    empty: tuple[tuple[Any, Any], ...]
    one_group: tuple[Any, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)


def resample(
    truth: Any,
    *,
    group: Any,
    method: Sampling = "over",
    one_group: OneGroup = "keep",
    seed: int = 0,
) -> Resampled:
    """Rows in which, within each class, every group that occurs has the same count.

    "over" repeats rows of the smaller groups (all originals stay) up to the largest; "under"
    draws the larger ones without repeats down to the smallest. A class with one group has
    nothing to be evened out with: it is kept as it is, or dropped where `one_group` says so.

    Examples:
        >>> found = resample(["a"] * 4, group=["f", "m", "m", "m"], method="under", seed=1)
        >>> found.counts.tolist(), len(found)
        ([[1, 1]], 2)
    """
    check_choice("method", method, SAMPLINGS)
    check_choice("one_group", one_group, ONE_GROUP)
    cells = training_cells(truth, group=group)
    rng = np.random.default_rng(seed)
    order = np.argsort(cells.index, kind="stable")
    ends = np.cumsum(cells.counts.ravel())
    kept: list[Codes] = []
    for number, counts in enumerate(cells.counts):
        present = np.flatnonzero(counts)
        if present.size == 1 and one_group == "drop":
            continue
        size = counts.max() if method == "over" else counts[present].min()
        for group_number in present:
            end = ends[number * len(cells.groups) + group_number]
            kept.append(_draw(order[end - counts[group_number] : end], int(size), rng))
    rows = np.concatenate(kept) if kept else np.zeros(0, dtype=np.intp)
    # Originals in their own order first, so that a set that needs no sampling stays as it was.
    rows = rows[np.lexsort((rows, _repeat_number(rows)))]
    after = np.bincount(cells.index[rows], minlength=cells.counts.size)
    return Resampled(
        rows=rows,
        classes=cells.classes,
        groups=cells.groups,
        counts=after.reshape(cells.counts.shape).astype(np.int64),
        empty=cells.empty,
        one_group=cells.lone,
        notes=(
            *_notes(cells, method=method, one_group=one_group),
            *(few_left(cells) if method == "under" else ()),
        ),
    )


class ResampledClassifier(WrappedRemedy):
    """A classifier trained on rows resampled within each class; `sample_` says what was drawn.

    Examples:
        >>> rows = [[0.0], [1.0], [2.0], [3.0]]
        >>> model = ResampledClassifier().fit(rows, ["a", "a", "b", "b"], group=["f", "m"] * 2)
        >>> model.predict([[0.0], [3.0]]).tolist()
        ['a', 'b']
    """

    stage = "before"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"group": True}

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Sampling = "over",
        one_group: OneGroup = "keep",
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.one_group = one_group
        self.seed = seed

    def fit(self, X: Any, y: Any, *, group: Any = None, sample_weight: Any = None) -> Self:
        """Fit on the drawn rows, with their own `sample_weight` where given."""
        X, y = self._checked_rows(X, y)
        self._check_groups(group)
        self.sample_ = resample(
            y, group=group, method=self.method, one_group=self.one_group, seed=self.seed
        )
        rows = self.sample_.rows
        weights = None
        if sample_weight is not None:
            weights = row_weights(sample_weight, rows=len(y))[rows]
        self.estimator_ = fit_weighted(fresh(self.estimator), take(X, rows), y[rows], weights)
        self.classes_ = self.estimator_.classes_
        return self


def _draw(rows: Codes, size: int, rng: np.random.Generator) -> Codes:
    if size <= rows.size:
        return rows if size == rows.size else rng.choice(rows, size=size, replace=False)
    return np.concatenate([rows, rng.choice(rows, size=size - rows.size, replace=True)])


def _repeat_number(rows: Codes) -> Codes:
    """How often the same row came before, for each place."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if rows.size else rows == 0
    start = np.maximum.accumulate(np.where(first, np.arange(rows.size), 0))
    number = np.empty_like(rows)
    number[order] = np.arange(rows.size) - start
    return number


def _notes(cells: TrainingCells, *, method: str, one_group: str) -> tuple[str, ...]:
    lone, notes = cells.lone, []
    if cells.empty:
        notes.append(f"{cells.without_rows} No sampling can make any.")
    if lone and one_group == "drop":
        notes.append(f"Dropped, because they have one group: {several(lone)}.")
    elif lone and method == "under":
        notes.append(
            f"With one group alone, undersampling would delete them; kept as they are: "
            f"{several(lone)}. Say one_group='drop' to delete them."
        )
    elif lone:
        notes.append(f"Kept as they are, with one group: {several(lone)}.")
    return tuple(notes)
