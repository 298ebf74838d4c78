"""The rows of a ledger: read, checked, and dealt out to fitting, validation and test."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from evenhand.decisions.batches import open_batches
from evenhand.decisions.classes import check_truths
from evenhand.errors import DataError, UsageError
from evenhand.remedies.cells import Codes, held_out, place_of, several, training_cells
from evenhand.remedies.ledger.columns import check_features, feature_values
from evenhand.speech import agree, plural

ROWS_AT_ONCE = 50_000
# Ten of the 75 parts that are not for the test, as in the papers' 65/10/25.
VALIDATION = Fraction(10, 75)
SPLIT_NAMES = {"train": "train", "validation": "train", "dev": "train", "test": "test"}


@dataclass(slots=True, kw_only=True)
class People:
    """Rows that can be used, with a text or columns each; `left_out` counts the others by reason.

    `undivided` counts those that were left out before one table was divided in two.
    """

    texts: list[str] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    truth: list[str] = field(default_factory=list)
    group: list[str] = field(default_factory=list)
    names: list[str | None] | None = None
    split: list[str] | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    undivided: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.truth)

    def take(self, rows: Any) -> "People":
        """Some of the rows, as one of the parts of the table."""
        at = np.asarray(rows, dtype=np.intp).tolist()
        return People(
            texts=[self.texts[k] for k in at] if self.texts else [],
            columns={name: [held[k] for k in at] for name, held in self.columns.items()},
            truth=[self.truth[k] for k in at],
            group=[self.group[k] for k in at],
            names=None if self.names is None else [self.names[k] for k in at],
            undivided=self.left_out,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRows:
    """All rows, training first: codes of truth and group, and which rows serve what.

    `classes` and `groups` are those of the training rows; a test row of another class has the
    code −1 and can only be decided wrongly. Groups are compared with the `reference`; of two
    classes `positive` is the one whose gaps have a sign.
    """

    people: People
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    truth: Codes
    group: Codes
    fit: Codes
    validation: Codes
    test: Codes
    reference: int
    positive: int | None
    notes: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """The groups that are compared with the reference."""
        return tuple(name for k, name in enumerate(self.groups) if k != self.reference)

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
    truth: str,
    group: str,
    text: str | None = None,
    features: Sequence[str] = (),
    name: str | None = None,
    split: str | None = None,
) -> People:
    """The texts or features of a table, without rows that lack one, a truth or a group.

    Examples:
        >>> table = {"bio": ["A b", None], "job": ["x", "y"], "sex": ["f", "m"]}
        >>> found = read_people(table, text="bio", truth="job", group="sex")
        >>> len(found), found.left_out
        (1, {'no bio': 1})
        >>> len(read_people({**table, "age": [30, 40]}, features=["age"], truth="job", group="sex"))
        2
    """
    roles = {"truth": truth, "group": group, "name": name, "split": split}
    with open_batches(data) as table:
        if text is not None:
            table.check_texts("text", text)
        for role, column in roles.items():
            if column is not None:
                table.check_column(role, column)
        check_features(table, features, roles)
        found = People(
            names=None if name is None else [],
            split=None if split is None else [],
            columns={column: [] for column in features},
        )
        read = (text,) if text is not None else tuple(features)
        for batch in table.read(table.rows_at_once([text]) if text else ROWS_AT_ONCE):
            held = [batch.strings(text)] if text else [feature_values(batch, c) for c in features]
            names = batch.strings(name) if name else [None] * len(batch)
            parts = batch.labels(split) if split else [None] * len(batch)
            held += [batch.labels(truth), batch.labels(group)]
            for *row, called, part in zip(*held, names, parts, strict=True):
                if _keep(found, row, (*read, truth, group)):
                    if found.names is not None:
                        found.names.append(called)
                    if found.split is not None:
                        found.split.append(part)
        if not len(found):
            what = "a text" if text else "every feature"
            raise DataError(f"'{table.source}' has no row with {what}, a truth and a group.")
    check_truths(truth, found.truth)
    return found


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


def join_rows(
    train: People,
    test: People,
    *,
    reference: str | None = None,
    positive: str | None = None,
    seed: int = 0,
) -> LedgerRows:
    """Both parts as one set of rows, checked, with validation rows set apart.

    The reference is by default the group with most training rows, the first by name of equal ones;
    the positive class the second of two.
    """
    _check_shared(train, test)
    _check_groups(train, test)
    cells = training_cells(train.truth, group=train.group)
    if len(cells.classes) < 2:
        raise DataError(
            f"The training rows have one class alone, {cells.classes[0]!r}. "
            "A classifier needs two or more."
        )
    place = {name: k for k, name in enumerate(cells.classes)}
    truth = np.array([*cells.truth, *(place.get(each, -1) for each in test.truth)], dtype=np.intp)
    known = {name: k for k, name in enumerate(cells.groups)}
    group = np.array([*cells.group, *(known[each] for each in test.group)], dtype=np.intp)
    held = held_out(cells.index, VALIDATION, seed=seed)
    names = None
    if train.names is not None and test.names is not None:
        names = [*train.names, *test.names]
    everybody = People(
        texts=[*train.texts, *test.texts],
        columns=_joined(train.columns, test.columns),
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
        reference=(
            int(np.argmax(np.bincount(cells.group)))
            if reference is None
            else place_of(reference, cells.groups, argument="reference")
        ),
        positive=_positive(cells.classes, positive),
        notes=tuple(_notes(train, test, cells)),
    )


def _positive(classes: tuple[str, ...], given: str | None) -> int | None:
    """Which of two classes is the positive one; none of more."""
    if given is not None:
        if len(classes) != 2:
            raise UsageError(
                f"positive={given!r} is for two classes, and there are {len(classes)}. "
                "Leave it out."
            )
        return place_of(given, classes, argument="positive")
    return 1 if len(classes) == 2 else None


def _keep(found: People, row: Sequence[Any], columns: tuple[str, ...]) -> bool:
    """Take a row in, or count what it lacks; whether it was taken."""
    for value, column in zip(row, columns, strict=True):
        if value is None or not str(value).strip():
            found.left_out[f"no {column}"] = found.left_out.get(f"no {column}", 0) + 1
            return False
    *values, truth, group = row
    found.truth.append(truth)
    found.group.append(group)
    if found.columns:
        for column, value in zip(columns, values):
            found.columns[column].append(value)
    else:
        found.texts.append(values[0])
    return True


def _drawn_parts(people: People, *, test_share: float, seed: int) -> tuple[People, People]:
    if not 0 < test_share < 1:
        raise UsageError(f"test_share={test_share} is not a share between 0 and 1.")
    cells = training_cells(people.truth, group=people.group)
    test = held_out(cells.index, Fraction(str(test_share)), seed=seed)
    rest = np.flatnonzero(~test).tolist()
    kept = people.take(rest)
    if people.texts:
        # The same text on both sides would be judged by a model that has seen it.
        held = {people.texts[row] for row in np.flatnonzero(test)}
        kept = people.take([r for r in rest if people.texts[r] not in held])
    if len(kept) < len(rest):
        kept.left_out["the same text is among the test rows"] = len(rest) - len(kept)
    return kept, people.take(np.flatnonzero(test))


def _joined(train: dict[str, list[Any]], test: dict[str, list[Any]]) -> dict[str, list[Any]]:
    for name, values in train.items():
        kinds = [
            "words" if isinstance(each[0], str) else "numbers" for each in (values, test[name])
        ]
        if kinds[0] != kinds[1]:
            raise DataError(
                f"features={name!r} holds {kinds[0]} in the training rows and {kinds[1]} in the "
                "test rows. Convert one of them."
            )
    return {name: [*values, *test[name]] for name, values in train.items()}


def _check_shared(train: People, test: People) -> None:
    seen = set(train.texts)
    shared = sum(text in seen for text in test.texts)
    if shared:
        texts = f"{plural(shared, 'test text')} {agree(shared, 'stands', 'stand')}"
        raise DataError(
            f"{texts} in the training rows as well, so a model would be judged on what it was "
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
    told = (("training ", train.left_out), ("test ", test.left_out), ("", train.undivided))
    for which, left_out in told:
        for reason, rows in left_out.items():
            notes.append(f"{plural(rows, f'{which}row')} left out: {reason}.")
    if cells.lone:
        notes.append(
            f"Only one group in the training rows of {several(cells.lone)}: weights and sampling "
            "cannot even it out, undersampling would delete it, and it is kept as it is."
        )
    if train.columns:
        seen = set(zip(*train.columns.values(), train.truth, train.group))
        alike = sum(row in seen for row in zip(*test.columns.values(), test.truth, test.group))
        if alike:
            notes.append(
                f"{alike:,} test rows have the features, class and group of a training row: where "
                "they are the same people, remedies are judged on what they were trained on."
            )
    unseen = sorted(set(test.truth) - set(cells.classes))
    if unseen:
        rows = sum(each in set(unseen) for each in test.truth)
        notes.append(
            f"{plural(rows, 'test row')} {agree(rows, 'is', 'are')} of a class without training "
            f"rows ({several(unseen)}): every decision about {agree(rows, 'it', 'them')} is wrong."
        )
    return notes
