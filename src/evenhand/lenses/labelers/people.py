"""Rows of single labelers, each borrowing from all the others; never a ranking of people."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evenhand.decisions.labels import REST
from evenhand.lenses.labelers.groups import BLIND
from evenhand.lenses.labelers.sample import Sample
from evenhand.lenses.rows import Column, Rows, choose, words
from evenhand.lenses.scope import Scope
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import bonferroni
from evenhand.stats.labelers.contrasts import against_rest
from evenhand.stats.labelers.marginals import Kind
from evenhand.stats.labelers.parts import part_values
from evenhand.stats.labelers.posterior import (
    OWN_WIDER,
    ItemCounts,
    PooledQuantity,
    PooledSignal,
    pooled_signal,
    summarise,
)
from evenhand.stats.labelers.signal import signal_detection

NOBODY = "no items of this group judged"
FROM_POOL = "from the pool: no positives or no negatives judged"
QUANTITIES: tuple[PooledQuantity, ...] = ("separation", "criterion", "log_cost_ratio")
AVERAGED: tuple[PooledQuantity, ...] = ("criterion", "separation")
SHARED = "criterion_gap_shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Values with their own limits and the limits that hold for all of them at once."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    family_low: FloatArray
    family_high: FloatArray

    def columns(self, scale: Any = np.asarray) -> dict[str, FloatArray]:
        """The limits as columns of rows, through a rising function."""
        names = ("value", "low", "high", "family_low", "family_high")
        return {name: scale(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelerSpans:
    """What single labelers do: by quantity, (labelers, groups), and (labelers,) over groups.

    `rest` compares each with the other labelers, `own` each labeler's groups with a reference.
    """

    groups: dict[str, Span]
    whole: dict[str, Span]
    rest: dict[str, Span]
    own: dict[str, Span]
    method: Column
    pooled: PooledSignal | None


def pool(sample: Sample, *, reference: int | None, level: float, seed: int) -> PooledSignal:
    """The pooled model of a sample, with the variance of items where they are named."""
    items = None
    if sample.items is not None:
        found = sample.items
        items = ItemCounts(yes=found.yes, n=found.labels, group=found.group, truth=found.truth)
    able = np.where(_unable(sample), 0.0, sample.labels)
    return pooled_signal(
        sample.counts,
        items=items,
        prevalence=sample.usable_prevalence(),
        prevalence_error=sample.prevalence_error,
        share=able / max(able.sum(), 1.0),
        reference=reference or 0,
        level=level,
        seed=seed,
    )


def labeler_spans(scope: Scope, sample: Sample) -> LabelerSpans:
    """Every labeler's separation, criterion and log cost ratio: pooled from five labelers on."""
    if not sample.poolable:
        return _unpooled(scope, sample)
    pooled = pool(sample, reference=scope.place, level=scope.level, seed=scope.seed)
    groups: dict[str, Span] = {}
    whole: dict[str, Span] = {}
    rest: dict[str, Span] = {}
    own: dict[str, Span] = {}
    for quantity in QUANTITIES:
        groups[quantity] = _span(pooled, quantity, "groups")
        whole[quantity] = _span(pooled, quantity, "whole")
        if quantity == "log_cost_ratio":
            continue
        rest[quantity] = _span(pooled, quantity, "rest")
        if scope.place is not None and len(sample.groups) > 1:
            own[quantity] = _span(pooled, quantity, "own")
    return LabelerSpans(
        groups=groups,
        whole=whole,
        rest=rest,
        own=own,
        method=choose(pooled.from_pool, f"{pooled.method}; {FROM_POOL}", pooled.method),
        pooled=pooled,
    )


def labeler_rows(scope: Scope, sample: Sample, spans: LabelerSpans) -> list[Rows]:
    """Rows of every labeler, ordered by name: by group, over groups, and against the rest."""
    labels = sample.counts.sum(axis=2)
    reasons = _reasons(sample, pooled=spans.pooled is not None)
    names = words(sample.labelers)[:, None]
    by_group = {
        "labeler": names,
        "group": words(sample.groups)[None, :],
        "n": labels,
        "method": spans.method,
        "undefined": reasons,
    }
    shape = labels.shape
    parts = _blocks(scope, shape, spans.groups, reasons, **by_group)
    if spans.pooled is not None:
        over = choose([_unable(sample).all()] * shape[0], "no group has positives and negatives")
        columns = {
            "labeler": names[:, 0],
            "n": labels.sum(axis=1),
            "method": f"{spans.pooled.method}; groups weighed by their labels",
            "undefined": over,
        }
        parts += _blocks(scope, shape[:1], spans.whole, over, **columns)
    if spans.rest:
        against = labels.sum(axis=0) - labels
        rest = choose(against == 0, "nobody else judged this group", reasons)
        columns = by_group | {"reference": REST, "n_reference": against, "undefined": rest}
        parts += _blocks(scope, shape, spans.rest, rest, ending="_gap", **columns)
    reference = scope.place
    if spans.own and reference is not None:
        others = [g for g in range(len(sample.groups)) if g != reference]
        theirs = reasons[:, [reference]]
        both = choose(_none(theirs), reasons[:, others], theirs)
        columns = {
            "labeler": names,
            "group": words([sample.groups[g] for g in others])[None, :],
            "reference": scope.reference,
            "n": labels[:, others],
            "n_reference": labels[:, [reference]],
            "method": spans.method[:, others],
            "undefined": both,
        }
        size = (shape[0], len(others))
        parts += _blocks(scope, size, spans.own, both, ending="_gap", **columns)
    return parts


def average_rows(
    scope: Scope, sample: Sample, pooled: PooledSignal, *, blind: Collection[str] = ()
) -> list[Rows]:
    """What the average labeler does otherwise by group, `…_average`, and `criterion_gap_shared`.

    The averages are criterion, separation and cost ratio, and the bar and skill parts of the
    last; `blind` are groups whose cost ratio says nothing of a standard. Shared is the share of
    labelers whose own difference in criterion has the sign of the average labeler's. Groups that
    nobody could judge are left out; none without a reference.
    """
    reference, able = scope.place, ~_unable(sample)
    others = [int(g) for g in np.flatnonzero(able) if g != reference]
    if reference is None or not others or not able[reference]:
        return []
    # Contrasts share the reference and the labelers: Bonferroni holds whatever their joint law.
    family = 1 - (1 - scope.level) / len(others)
    shared = {
        "group": words([sample.groups[g] for g in others]),
        "reference": scope.reference,
        "method": f"{pooled.method}; of the average labeler",
    }
    labels = {"n": sample.labels[others], "n_reference": sample.labels[reference]}
    parts = []
    for measure, draws in _average_draws(pooled, others, reference).items():
        ends = _ends(draws, scope.level, family)
        columns = shared
        if measure == "cost_ratio_ratio_average":
            ends = {name: np.exp(end) for name, end in ends.items()}
            columns = shared | {
                "unjudged": choose([sample.groups[g] in blind for g in others], BLIND)
            }
        parts.append(scope.block((len(others),), measure=measure, **ends, **labels, **columns))
    judged = sample.counts.sum(axis=2) > 0
    both = np.array([(judged[:, g] & judged[:, reference]).sum() for g in others], dtype=float)
    lean = np.stack(
        [pooled.leaning("criterion", group=g, reference=reference) for g in others], axis=1
    )
    # The mean of a share near 1 can lie outside its own limits; the median cannot.
    ends = _ends(lean, scope.level, family) | {"value": np.median(lean, axis=0)}
    shared["method"] = f"{pooled.method}; share of labelers; n is labelers"
    parts.append(scope.block((len(others),), measure=SHARED, n=both, **ends, **shared))
    return parts


def _average_draws(
    pooled: PooledSignal, others: list[int], reference: int
) -> dict[str, FloatArray]:
    """Draws (draws, groups) of each group − reference by measure, costs on the log scale."""
    t, d = (pooled.population_draws(quantity) for quantity in AVERAGED)
    against = pooled.log_odds_against
    parts = part_values(
        log_odds_against=against[:, others],
        log_odds_against_reference=against[:, [reference]],
        criterion=t[:, others],
        criterion_reference=t[:, [reference]],
        separation=d[:, others],
        separation_reference=d[:, [reference]],
    )
    return {
        "criterion_gap_average": t[:, others] - t[:, [reference]],
        "separation_gap_average": d[:, others] - d[:, [reference]],
        "cost_ratio_ratio_average": parts.total,
        "cost_ratio_bar_part_average": parts.bar,
        "cost_ratio_skill_part_average": parts.skill,
    }


def _span(pooled: PooledSignal, quantity: PooledQuantity, kind: Kind) -> Span:
    """Posterior limits, and a band from the draws' largest deviation over all members."""
    found = pooled.labelers(quantity, kind)
    # The cost ratio is skewed by small separations: its median speaks for it.
    value = found.median if quantity == "log_cost_ratio" else found.mean
    reach = pooled.critical(quantity, kind) * found.sd
    if kind == "own":
        reach = OWN_WIDER * reach
    ends = (
        value,
        found.low,
        found.high,
        np.minimum(found.low, value - reach),
        np.maximum(found.high, value + reach),
    )
    names = ("value", "low", "high", "family_low", "family_high")
    return Span(**{name: end[:, 0] if kind == "whole" else end for name, end in zip(names, ends)})


def _unpooled(scope: Scope, sample: Sample) -> LabelerSpans:
    """Each labeler alone, with the log-linear correction on all cells."""
    level = scope.level
    found = signal_detection(
        *np.moveaxis(sample.counts, -1, 0),
        prevalence=sample.usable_prevalence(),
        prevalence_error=sample.prevalence_error,
        correction="log-linear",
        level=level,
    )
    q = bonferroni(level, members=int((sample.counts.sum(axis=2) > 0).sum()))
    z = scope.z

    def span(value: FloatArray, error: FloatArray) -> Span:
        return Span(
            value=value,
            low=value - z * error,
            high=value + z * error,
            family_low=value - q * error,
            family_high=value + q * error,
        )

    other = against_rest(sample.counts, correction="log-linear", level=level)
    names = {
        "separation": (found.separation, found.separation_error),
        "criterion": (found.criterion, found.criterion_error),
        "log_cost_ratio": (found.log_cost_ratio, found.log_cost_ratio_error),
    }
    rest = {
        "separation": span(other.separation.value, other.separation.standard_error),
        "criterion": span(other.criterion.value, other.criterion.standard_error),
    }
    method = f"{found.method}; too few labelers to pool"
    return LabelerSpans(
        groups={name: span(*pair) for name, pair in names.items()},
        whole={},
        rest=rest if len(sample.labelers) > 1 else {},
        own={},
        method=np.full(sample.counts.shape[:2], method, dtype=object),
        pooled=None,
    )


def _blocks(
    scope: Scope,
    shape: tuple[int, ...],
    spans: dict[str, Span],
    reasons: Column,
    *,
    ending: str = "",
    **shared: Any,
) -> list[Rows]:
    gone = ~_none(reasons)

    def block(measure: str, columns: dict[str, FloatArray], **more: Any) -> Rows:
        defined = {name: np.where(gone, np.nan, column) for name, column in columns.items()}
        return scope.block(shape, measure=measure, **defined, **more)

    parts = []
    for quantity, span in spans.items():
        if quantity != "log_cost_ratio":
            parts.append(block(f"{quantity}{ending}", span.columns(), **shared))
            continue
        turned = Span(
            value=-span.value,
            low=-span.high,
            high=-span.low,
            family_low=-span.family_high,
            family_high=-span.family_low,
        )
        if "separation" in spans:
            with np.errstate(invalid="ignore"):
                blind = ~(spans["separation"].low > 0)
            shared = shared | {"unjudged": choose(blind, BLIND)}
        parts.append(block("implied_threshold", turned.columns(expit), **shared))
        with np.errstate(over="ignore"):
            parts.append(block("cost_ratio", span.columns(np.exp), **shared))
    return parts


def _none(reasons: Column) -> NDArray[np.bool_]:
    """Where there is no reason against a number."""
    flat = [reason is None for reason in reasons.flat]
    return np.array(flat, dtype=bool).reshape(reasons.shape)


def _unable(sample: Sample) -> NDArray[np.bool_]:
    """Groups in which nobody judged a positive, or nobody a negative."""
    totals = sample.totals
    return np.asarray((totals[:, :2].sum(axis=1) == 0) | (totals[:, 2:].sum(axis=1) == 0))


def _reasons(sample: Sample, *, pooled: bool) -> Column:
    """Why a labeler has no number for a group: (labelers, groups) of reasons or None."""
    labels = sample.counts.sum(axis=2)
    positives, negatives = sample.counts[..., :2].sum(axis=2), sample.counts[..., 2:].sum(axis=2)
    if pooled:
        totals = sample.totals
        positives, negatives = totals[:, :2].sum(axis=1)[None], totals[:, 2:].sum(axis=1)[None]
    reasons = choose(negatives == 0, "no negatives among the items judged")
    reasons = choose(positives == 0, "no positives among the items judged", reasons)
    return choose(labels == 0, NOBODY, np.broadcast_to(reasons, labels.shape))


def _ends(draws: FloatArray, level: float, family: float) -> dict[str, FloatArray]:
    found, wide = summarise(draws, level=level), summarise(draws, level=family)
    return {
        "value": found.mean,
        "low": found.low,
        "high": found.high,
        "family_low": wide.low,
        "family_high": wide.high,
    }
