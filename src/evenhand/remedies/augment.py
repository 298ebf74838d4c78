"""Counterfactual augmentation: every training row again, under each other value of its group.

`augment` makes texts, `counterfactual_rows` and `compose` row numbers that any features follow;
`compose` adds sampling or weights, in either order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError
from evenhand.remedies.cells import Codes, check_choice, coded, is_sparse, row_count, several, take
from evenhand.remedies.resample import Sampling, resample
from evenhand.remedies.reweigh import Weighing, reweigh
from evenhand.speech import agree, plural
from evenhand.stats.estimate import FloatArray
from evenhand.text.compiled import Tagger
from evenhand.text.lexicon import Lexicon, load_lexicon
from evenhand.text.swap import swap_texts

Strings = NDArray[np.object_]
Order = Literal["resample_then_augment", "augment_then_resample", "augment", "plain"]
CounterfactualWeight = Literal["same", "counterfactual", "one"]
ORDERS = ("resample_then_augment", "augment_then_resample", "augment", "plain")
STRATEGIES = ("same", "counterfactual", "one")


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
        left, n = sorted({str(each) for each in own[~known]}), int((~known).sum())
        has = agree(n, "has", "have")
        notes = (f"{plural(n, 'row')} of {several(left)} {has} no counterfactual and no copy.",)
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


def compose(
    truth: Any,
    *,
    group: Any,
    order: Order = "augment",
    resampler: Sampling | None = None,
    weighing: Weighing | None = None,
    counterfactual_weight: CounterfactualWeight = "same",
    groups: Sequence[Any] | None = None,
    seed: int = 0,
) -> TrainingRows:
    """A training set of originals and counterfactual copies, resampled or weighed.

    "resample_then_augment" copies the drawn rows, so that every row has its pair;
    "augment_then_resample" draws originals by their group and copies, apart, by the group they
    were rewritten to, so that pairs may break; "augment" copies all rows, with weights where
    `weighing` is given. A copy then weighs the same as its original, what the group it stands
    for weighs in its class ("counterfactual"), or one. "plain" copies none.

    Examples:
        >>> rows = compose(["a", "a", "a"], group=["f", "m", "m"], weighing="kamiran_calders",
        ...                counterfactual_weight="one")
        >>> len(rows), rows.weights.tolist()
        (6, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    _check(order, resampler, weighing, counterfactual_weight)
    if order == "resample_then_augment":
        return _resample_first(truth, group, str(resampler), groups, seed)
    if order == "plain":
        return _plain(truth, group, resampler, weighing, seed)
    copies = counterfactual_rows(group, groups=groups)
    if order == "augment_then_resample":
        return _resample_last(truth, copies, str(resampler), seed)
    if weighing is None:
        return copies
    return _weighed(truth, group, copies, weighing, counterfactual_weight)


def _values(group: Any, lexicon: Lexicon, given: Mapping[Any, str] | None) -> dict[Any, str]:
    names, _ = coded(group, argument="group")
    if given is not None:
        return lexicon.check_groups(given)
    mapping = {name: str(name) for name in names if str(name) in lexicon.values}
    if not mapping:
        raise UsageError(
            f"None of the groups {several(names)} is a value of the lexicon {lexicon.name!r}, "
            f"which knows {', '.join(lexicon.values)}. "
            f"Say which is which, such as values={ {names[0]: lexicon.values[0]} }."
        )
    if len(mapping) > 1:
        return mapping
    # With one group alone, the lexicon says what its counterfactuals are.
    return {**mapping, **{value: value for value in lexicon.values if value not in mapping}}


def _plain(
    truth: Any, group: Any, resampler: Sampling | None, weighing: Weighing | None, seed: int
) -> TrainingRows:
    """The originals alone: all of them, drawn again or weighed."""
    names, codes = coded(group, argument="group")
    rows, weights = np.arange(codes.size, dtype=np.intp), np.ones(codes.size)
    notes: tuple[str, ...] = ()
    if resampler is not None:
        drawn = resample(truth, group=group, method=resampler, seed=seed)
        rows, notes, weights = drawn.rows, drawn.notes, np.ones(len(drawn))
    elif weighing is not None:
        weighed = reweigh(truth, group=group, method=weighing)
        weights, notes = weighed.weights, weighed.notes
    return TrainingRows(
        origin=rows,
        is_counterfactual=np.zeros(rows.size, dtype=bool),
        group=np.array(names, dtype=object)[codes[rows]],
        weights=weights,
        notes=notes,
    )


def _resample_first(
    truth: Any, group: Any, resampler: Any, groups: Sequence[Any] | None, seed: int
) -> TrainingRows:
    drawn = resample(truth, group=group, method=resampler, seed=seed)
    known = list(drawn.groups) if groups is None else list(groups)
    copies = counterfactual_rows(np.asarray(group, dtype=object)[drawn.rows], groups=known)
    return replace(copies, origin=drawn.rows[copies.origin], notes=(*drawn.notes, *copies.notes))


def _resample_last(truth: Any, copies: TrainingRows, resampler: Any, seed: int) -> TrainingRows:
    labels = np.asarray(truth)
    kept, notes = [], list(copies.notes)
    for number, side in enumerate((~copies.is_counterfactual, copies.is_counterfactual)):
        rows = np.flatnonzero(side)
        drawn = resample(
            labels[copies.origin[rows]],
            group=copies.group[rows],
            method=resampler,
            # Each side has its own draws: the same seed would tie the two draws together.
            seed=int(np.random.SeedSequence([seed, number]).generate_state(1)[0]),
        )
        kept.append(rows[drawn.rows])
        notes += [each for each in drawn.notes if each not in notes]
    rows = np.concatenate(kept)
    return TrainingRows(
        origin=copies.origin[rows],
        is_counterfactual=copies.is_counterfactual[rows],
        group=copies.group[rows],
        weights=np.ones(rows.size),
        notes=tuple(notes),
    )


def _weighed(
    truth: Any, group: Any, copies: TrainingRows, weighing: Weighing, strategy: str
) -> TrainingRows:
    cells = reweigh(truth, group=group, method=weighing)
    weights = cells.weights[copies.origin].copy()
    notes = [*cells.notes, *copies.notes]
    copied = copies.is_counterfactual
    if strategy == "one":
        weights[copied] = 1.0
    elif strategy == "counterfactual":
        column = {name: at for at, name in enumerate(cells.groups)}
        row = {name: at for at, name in enumerate(cells.classes)}
        table = np.column_stack([cells.table, np.full(len(cells.classes), np.nan)])
        y = np.array([row[each] for each in np.asarray(truth).tolist()])[copies.origin[copied]]
        other = table[y, [column.get(g, -1) for g in copies.group[copied].tolist()]]
        without = np.isnan(other)
        weights[copied] = np.where(without, weights[copied], other)
        if without.any():
            named, n = several(sorted({str(cells.classes[c]) for c in y[without]})), without.sum()
            notes.append(
                f"{plural(n, 'copy', 'copies')} {agree(n, 'stands', 'stand')} for a group that "
                f"the class lacks, and {agree(n, 'weighs', 'weigh')} the same as the original: "
                f"{named}."
            )
    return replace(copies, weights=weights, notes=tuple(notes))


def _check(order: str, resampler: str | None, weighing: str | None, strategy: str) -> None:
    check_choice("order", order, ORDERS)
    check_choice("counterfactual_weight", strategy, STRATEGIES)
    if order == "augment" and resampler is not None:
        raise UsageError(
            f"resampler={resampler!r} needs an order. "
            "Give order='resample_then_augment' or order='augment_then_resample'."
        )
    if order not in ("augment", "plain") and resampler is None:
        raise UsageError(f"order={order!r} needs a resampler. Give resampler='over' or 'under'.")
    if resampler is not None and weighing is not None:
        raise UsageError(
            f"weighing={weighing!r} and resampler={resampler!r} would even out the groups twice. "
            "Give one of them."
        )
