"""Counterfactual augmentation: every training row again, under each other value of its group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.cells import Codes, coded, several
from evenhand.mitigation.estimator import is_sparse, row_count, take
from evenhand.stats.estimate import FloatArray
from evenhand.text.compiled import Tagger
from evenhand.text.lexicon import Lexicon, load_lexicon
from evenhand.text.swap import swap_texts

Strings = NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """A training set made of original rows and counterfactual copies.

    `origin` is the number of the original row, `group` the group the row now stands for (for a
    copy, the one it was rewritten to) and `weights` what it counts.
    """

    origin: Codes
    is_counterfactual: NDArray[np.bool_]
    group: Strings
    weights: FloatArray
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.origin)

    def pick(self, values: Any) -> NDArray[Any]:
        """A column of the original rows, such as the truth or ids, for every row of this set."""
        return np.asarray(values)[self.origin]

    def texts(
        self, original: Sequence[str], *, counterfactual: Mapping[Any, Sequence[str | None]]
    ) -> list[str]:
        """Texts of this set, from the originals and from all texts under each group."""
        pairs = zip(self.origin, self.is_counterfactual, self.group, strict=True)
        return [str(counterfactual[g][row]) if copy else original[row] for row, copy, g in pairs]

    def features(self, original: Any, *, counterfactual: Mapping[Any, Any]) -> Any:
        """Rows of feature matrices, so that texts need be turned into features only once.

        `counterfactual` has, for each group, the features of all rows rewritten to it.
        """
        from scipy import sparse

        names = [None, *counterfactual]
        start = np.full(len(self), -1)
        start[~self.is_counterfactual] = 0
        for number, name in enumerate(counterfactual, start=1):
            start[self.is_counterfactual & (self.group == name)] = number
        if (start < 0).any():
            missing = sorted({str(g) for g in self.group[start < 0]})
            raise UsageError(
                f"counterfactual has no features for {several(missing)}. "
                "Give the features of all rows under each group."
            )
        parts = [take(original, self.origin[start == 0])]
        parts += [
            take(counterfactual[name], self.origin[start == number])
            for number, name in enumerate(names)
            if number and (start == number).any()
        ]
        order = np.argsort(np.argsort(start, kind="stable"), kind="stable")
        if any(is_sparse(each) for each in parts):
            return sparse.vstack(parts, format="csr")[order]
        return np.concatenate([np.asarray(each) for each in parts])[order]


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentedTexts:
    """Texts with their counterfactual copies, by column; `origin_id` leads back to the original.

    `unchanged` counts copies that are equal to their original because the text has no word of
    the lexicon.
    """

    texts: list[str]
    truth: NDArray[Any]
    group: Strings
    origin_id: NDArray[Any]
    is_counterfactual: NDArray[np.bool_]
    unchanged: int
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)


def counterfactual_rows(group: Any, *, groups: Sequence[Any] | None = None) -> TrainingRows:
    """All rows, then a copy of each under every other group; weights 1.

    `groups` are the values that a text can be rewritten to, by default all that occur; a row of
    another group has no counterfactual and no copy.

    Examples:
        >>> rows = counterfactual_rows(["f", "m", "x"], groups=["f", "m"])
        >>> rows.origin.tolist(), rows.group.tolist()
        ([0, 1, 2, 0, 1], ['f', 'm', 'x', 'm', 'f'])
    """
    names, codes = coded(group, argument="group")
    values = list(names if groups is None else groups)
    own = np.array(names, dtype=object)[codes]
    known = np.isin(codes, [at for at, name in enumerate(names) if name in values])
    origin, effective = [np.arange(codes.size)], [own]
    for value in values:
        others = np.flatnonzero(known & (own != value))
        origin.append(others)
        effective.append(np.full(others.size, value, dtype=object))
    rows, now = np.concatenate(origin).astype(np.intp), np.concatenate(effective)
    # Copies in the order of their originals.
    order = np.argsort(np.where(np.arange(rows.size) < codes.size, 0, 1 + rows), kind="stable")
    rows, now = rows[order], now[order]
    notes: tuple[str, ...] = ()
    if not known.all():
        left = sorted({str(each) for each in own[~known]})
        notes = (
            f"{int((~known).sum())} rows of {several(left)} have no counterfactual and no copy.",
        )
    return TrainingRows(
        origin=rows,
        is_counterfactual=np.arange(rows.size) >= codes.size,
        group=now,
        weights=np.ones(rows.size),
        notes=notes,
    )


def counterfactual_texts(
    texts: Sequence[str],
    *,
    group: Any,
    lexicon: Lexicon | str = "gender_pronouns",
    values: Mapping[Any, str] | None = None,
    tagger: Tagger | None = None,
) -> dict[Any, list[str]]:
    """All texts under each group; a text that stands there already stays as it is.

    `values` says which value of the lexicon a group is, such as {"F": "female", "M": "male"};
    without it groups and values have the same names. Only originals are ever swapped.

    Examples:
        >>> counterfactual_texts(["He ran.", "She sang."], group=["male", "female"])
        {'female': ['She ran.', 'She sang.'], 'male': ['He ran.', 'He sang.']}
    """
    words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)
    mapping = _values(group, words, values)
    own = [mapping.get(each) for each in np.asarray(group, dtype=object).tolist()]
    if len(own) != row_count(texts):
        raise UsageError(f"group has {len(own)} values for {row_count(texts)} texts.")
    found = {}
    for name, value in mapping.items():
        swapped = swap_texts(texts, to=value, lexicon=words, sources=own, tagger=tagger)
        if swapped.missing:
            raise DataError(
                f"{swapped.missing} of {len(own)} texts are missing. Leave these rows out."
            )
        found[name] = [str(each) for each in swapped.texts]
    return found


def _values(group: Any, lexicon: Lexicon, given: Mapping[Any, str] | None) -> dict[Any, str]:
    names, _ = coded(group, argument="group")
    if given is not None:
        for value in given.values():
            lexicon.check_value(value, argument="values")
        return dict(given)
    mapping = {name: str(name) for name in names if str(name) in lexicon.values}
    if not mapping:
        raise UsageError(
            f"None of the groups {several(names)} is a value of the lexicon {lexicon.name!r}, "
            f"which knows {', '.join(lexicon.values)}. "
            "Say which is which with values={group: value}."
        )
    if len(mapping) > 1:
        return mapping
    # With one group alone, the lexicon says what its counterfactuals are.
    return {**mapping, **{value: value for value in lexicon.values if value not in mapping}}


def augment(
    texts: Sequence[str],
    *,
    truth: Any,
    group: Any,
    ids: Any = None,
    lexicon: Lexicon | str = "gender_pronouns",
    values: Mapping[Any, str] | None = None,
    tagger: Tagger | None = None,
) -> AugmentedTexts:
    """A training set with a counterfactual copy of every text, same truth, under each other group.

    Examples:
        >>> made = augment(["He ran."], truth=["runner"], group=["male"])
        >>> made.texts, made.group.tolist(), made.origin_id.tolist()
        (['He ran.', 'She ran.'], ['male', 'female'], [0, 0])
    """
    swapped = counterfactual_texts(
        texts, group=group, lexicon=lexicon, values=values, tagger=tagger
    )
    rows = counterfactual_rows(group, groups=list(swapped))
    full = rows.texts(texts, counterfactual=swapped)
    copies = np.flatnonzero(rows.is_counterfactual)
    unchanged = sum(full[row] == texts[rows.origin[row]] for row in copies)
    notes = list(rows.notes)
    if unchanged:
        notes.append(
            f"{unchanged} of {copies.size} copies equal their original: no word of the lexicon."
        )
    return AugmentedTexts(
        texts=full,
        truth=rows.pick(truth),
        group=rows.group,
        origin_id=rows.origin if ids is None else rows.pick(ids),
        is_counterfactual=rows.is_counterfactual,
        unchanged=int(unchanged),
        notes=tuple(notes),
    )
