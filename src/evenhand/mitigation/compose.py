"""Compositions of resampling or weights with counterfactual copies, in either order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from evenhand.errors import UsageError, nearest
from evenhand.mitigation.augment import TrainingRows, counterfactual_rows
from evenhand.mitigation.cells import several
from evenhand.mitigation.resample import Sampling, resample
from evenhand.mitigation.reweigh import Weighing, reweigh

Order = Literal["resample_then_augment", "augment_then_resample", "augment"]
CounterfactualWeight = Literal["same", "counterfactual", "one"]

ORDERS = ("resample_then_augment", "augment_then_resample", "augment")
STRATEGIES = ("same", "counterfactual", "one")


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
    for weighs in its class ("counterfactual"), or one.

    Examples:
        >>> rows = compose(["a", "a", "a"], group=["f", "m", "m"], weighing="kamiran_calders",
        ...                counterfactual_weight="one")
        >>> len(rows), rows.weights.tolist()
        (6, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    _check(order, resampler, weighing, counterfactual_weight)
    if order == "resample_then_augment":
        return _resample_first(truth, group, str(resampler), groups, seed)
    copies = counterfactual_rows(group, groups=groups)
    if order == "augment_then_resample":
        return _resample_last(truth, copies, str(resampler), seed)
    if weighing is None:
        return copies
    return _weighed(truth, group, copies, weighing, counterfactual_weight)


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
            named = several(sorted({str(cells.classes[c]) for c in y[without]}))
            notes.append(
                f"{int(without.sum())} copies stand for a group that their class lacks and weigh "
                f"the same as their original: {named}."
            )
    return replace(copies, weights=weights, notes=tuple(notes))


def _check(order: str, resampler: str | None, weighing: str | None, strategy: str) -> None:
    if order not in ORDERS:
        raise UsageError(
            f"order={order!r} is not one of {', '.join(ORDERS)}.{nearest(order, list(ORDERS))}"
        )
    if strategy not in STRATEGIES:
        raise UsageError(
            f"counterfactual_weight={strategy!r} is not one of {', '.join(STRATEGIES)}."
            + nearest(strategy, list(STRATEGIES))
        )
    if order == "augment" and resampler is not None:
        raise UsageError(
            f"resampler={resampler!r} needs an order. "
            "Give order='resample_then_augment' or order='augment_then_resample'."
        )
    if order != "augment" and resampler is None:
        raise UsageError(f"order={order!r} needs a resampler. Give resampler='over' or 'under'.")
    if order != "augment" and weighing is not None:
        raise UsageError(
            f"weighing={weighing!r} and resampler={resampler!r} would even out the groups twice. "
            "Give one of them."
        )
