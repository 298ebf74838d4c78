"""The rows of a ledger: read, checked, and dealt out to fitting, validation and test."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from evenhand.decisions.batches import BatchTable, open_batches
from evenhand.errors import DataError, UsageError
from evenhand.mitigation.cells import Codes, cells_of, several

# Ten of the 75 parts that are not for the test, as in the papers' 65/10/25.
VALIDATION = Fraction(10, 75)
SPLIT_NAMES = {"train": "train", "validation": "train", "dev": "train", "test": "test"}


@dataclass(slots=True, kw_only=True)
class People:
    """Columns of the rows that can be used; `left_out` counts the others by reason.

    `undivided` counts those that were left out before one table was divided in two.
    """

    texts: list[str] = field(default_factory=list)
    truth: list[str] = field(default_factory=list)
    group: list[str] = field(default_factory=list)
    names: list[str | None] | None = None
    split: list[str] | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    undivided: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Any) -> "People":
        """Some of the rows, as one of the parts of the table."""
        at = np.asarray(rows, dtype=np.intp).tolist()
        return People(
            texts=[self.texts[k] for k in at],
            truth=[self.truth[k] for k in at],
            group=[self.group[k] for k in at],
            names=None if self.names is None else [self.names[k] for k in at],
            undivided=self.left_out,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRows:
    """All rows, training first: codes of truth and group, and which rows serve what.

    `classes` and `groups` are those of the training rows; a test row of another class has the
    code −1 and can only be decided wrongly.
    """

    people: People
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    truth: Codes
    group: Codes
    fit: Codes
    validation: Codes
    test: Codes
    notes: tuple[str, ...]

    @property
    def train(self) -> Codes:
        """Rows for fitting and for validation."""
        return np.sort(np.concatenate([self.fit, self.validation]))

    def drawn(self, seed: int, *, redraw: bool) -> Codes:
        """The rows to fit on: drawn again within class × group, or as they are."""
        if not redraw:
            return self.fit
        rng = np.random.default_rng([seed, 0x5EED])
        cell = self.truth[self.fit] * len(self.groups) + self.group[self.fit]
        order = np.argsort(cell, kind="stable")
        sizes = np.bincount(cell)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        place = starts + (rng.random(order.size) * np.repeat(sizes, sizes)).astype(np.intp)
        return np.sort(self.fit[order[place]])


def read_people(
    data: Any,
    *,
    text: str,
    truth: str,
    group: str,
    name: str | None = None,
    split: str | None = None,
) -> People:
    """The columns of a table, without rows that lack a text, a truth or a group.

    Examples:
        >>> table = {"bio": ["A b", None], "job": ["x", "y"], "sex": ["f", "m"]}
        >>> found = read_people(table, text="bio", truth="job", group="sex")
        >>> len(found), found.left_out
        (1, {'no bio': 1})
    """
    with open_batches(data) as table:
        _check_columns(table, text=text, truth=truth, group=group, name=name, split=split)
        found = People(names=None if name is None else [], split=None if split is None else [])
        for batch in table.read(table.rows_at_once([text])):
            texts, truths, groups = (
                batch.strings(text),
                batch.labels(truth),
                batch.labels(group),
            )
            names = batch.strings(name) if name else [None] * len(batch)
            parts = batch.labels(split) if split else [None] * len(batch)
            for row in zip(texts, truths, groups, names, parts, strict=True):
                _keep(found, row, (text, truth, group))
        if not len(found):
            raise DataError(f"'{table.source}' has no row with a text, a truth and a group.")
    return found


def _check_columns(table: BatchTable, *, text: str, **columns: str | None) -> None:
    table.check_texts("text", text)
    for role, column in columns.items():
        if column is not None:
            table.check_column(role, column)


def _keep(found: People, row: tuple[Any, ...], columns: tuple[str, str, str]) -> None:
    for value, column in zip(row[:3], columns, strict=True):
        if value is None or not str(value).strip():
            found.left_out[f"no {column}"] = found.left_out.get(f"no {column}", 0) + 1
            return
    found.texts.append(row[0])
    found.truth.append(row[1])
    found.group.append(row[2])
    if found.names is not None:
        found.names.append(row[3])
    if found.split is not None:
        found.split.append(row[4])


def two_parts(
    people: People, *, split: str | None, test_share: float, seed: int
) -> tuple[People, People]:
    """Training and test rows of one table, by its column or drawn within class × group."""
    if split is None:
        return _drawn_parts(people, test_share=test_share, seed=seed)
    assert people.split is not None
    part = [SPLIT_NAMES.get(str(each).lower(), "") for each in people.split]
    if "train" not in part or "test" not in part:
        seen = several(sorted({str(each) for each in people.split}))
        raise DataError(f"split={split!r} has {seen}. It must mark rows as 'train' and as 'test'.")
    rows = np.arange(len(people))
    mark = np.array(part)
    return people.take(rows[mark == "train"]), people.take(rows[mark == "test"])


def _drawn_parts(people: People, *, test_share: float, seed: int) -> tuple[People, People]:
    if not 0 < test_share < 1:
        raise UsageError(f"test_share={test_share} is not a share between 0 and 1.")
    cells = cells_of(people.truth, group=people.group)
    test = _held_out(cells.index, Fraction(str(test_share)), seed=seed)
    # The same text on both sides would be judged by a model that has seen it.
    held = {people.texts[row] for row in np.flatnonzero(test)}
    rest = np.flatnonzero(~test).tolist()
    kept = people.take([r for r in rest if people.texts[r] not in held])
    if len(kept) < len(rest):
        kept.left_out["the same text is among the test rows"] = len(rest) - len(kept)
    return kept, people.take(np.flatnonzero(test))


def _held_out(cell: Codes, share: Fraction, *, seed: int) -> Any:
    """A mask of held-out rows, the share of every cell rounded up, one row always left in."""
    rng = np.random.default_rng([seed, 0x5B11])
    order = np.lexsort((rng.random(cell.size), cell))
    sizes = np.bincount(cell)
    held = np.array([min(ceil(int(n) * share), max(int(n) - 1, 0)) for n in sizes])
    starts = np.cumsum(sizes) - sizes
    number = np.arange(cell.size) - starts[cell[order]]
    mask = np.zeros(cell.size, dtype=bool)
    mask[order] = number < held[cell[order]]
    return mask


def join_rows(train: People, test: People, *, seed: int = 0) -> LedgerRows:
    """Both parts as one set of rows, checked, with validation rows set apart."""
    _check_shared(train, test)
    _check_groups(train, test)
    cells = cells_of(train.truth, group=train.group)
    if len(cells.classes) < 2:
        raise DataError(
            f"The training rows have one class alone, {cells.classes[0]!r}. "
            "A classifier needs two or more."
        )
    place = {name: k for k, name in enumerate(cells.classes)}
    truth = np.array([*cells.truth, *(place.get(each, -1) for each in test.truth)], dtype=np.intp)
    known = {name: k for k, name in enumerate(cells.groups)}
    group = np.array([*cells.group, *(known[each] for each in test.group)], dtype=np.intp)
    held = _held_out(cells.index, VALIDATION, seed=seed)
    names = None
    if train.names is not None and test.names is not None:
        names = [*train.names, *test.names]
    everybody = People(
        texts=[*train.texts, *test.texts],
        truth=[*train.truth, *test.truth],
        group=[*train.group, *test.group],
        names=names,
    )
    return LedgerRows(
        people=everybody,
        classes=cells.classes,
        groups=cells.groups,
        truth=truth,
        group=group,
        fit=np.flatnonzero(~held),
        validation=np.flatnonzero(held),
        test=np.arange(len(train), len(everybody)),
        notes=tuple(_notes(train, test, cells)),
    )


def _check_shared(train: People, test: People) -> None:
    seen = set(train.texts)
    shared = sum(text in seen for text in test.texts)
    if shared:
        rows = "1 test text stands" if shared == 1 else f"{shared:,} test texts stand"
        raise DataError(
            f"{rows} in the training rows as well, so a model would be judged on what it was "
            "trained on. Leave them out of one of the two."
        )


def _check_groups(train: People, test: People) -> None:
    ours, theirs = set(train.group), set(test.group)
    for one, other, has, lacks in (
        (ours, theirs, "training", "test"),
        (theirs, ours, "test", "training"),
    ):
        for name in sorted(one - other):
            raise DataError(
                f"The group {name!r} has {has} rows and no {lacks} rows. "
                "Give rows of every group in both, or leave the group out of both."
            )
    if len(ours) < 2:
        raise DataError(
            f"All rows belong to the group {next(iter(ours))!r}. "
            "A remedy is compared on rows of two groups or more."
        )


def _notes(train: People, test: People, cells: Any) -> Sequence[str]:
    notes = []
    told = ((" training", train.left_out), (" test", test.left_out), ("", train.undivided))
    for which, left_out in told:
        for reason, rows in left_out.items():
            noun = "row" if rows == 1 else "rows"
            notes.append(f"{rows:,}{which} {noun} left out: {reason}.")
    if cells.lone:
        notes.append(
            f"Only one group in the training rows of {several(cells.lone)}: weights and sampling "
            "cannot even it out, undersampling would delete it, and it is kept as it is."
        )
    unseen = sorted(set(test.truth) - set(cells.classes))
    if unseen:
        rows = sum(each in set(unseen) for each in test.truth)
        notes.append(
            f"{rows:,} test rows are of a class without training rows ({several(unseen)}): every "
            "decision about them is wrong."
        )
    return notes
