"""What stands behind labelers' numbers: forests, reliability, and who shares a difference."""

from typing import Any

import numpy as np

from evenhand.lenses.labeler_counts import Sample
from evenhand.lenses.labeler_groups import HIDDEN_UNDER, GroupSignal
from evenhand.lenses.labeler_pool import LabelerSpans, Span
from evenhand.stats.estimate import FloatArray, number
from evenhand.stats.pooled_draws import FEWEST_EFFECTIVE_DRAWS
from evenhand.stats.pooled_signal import ORDER_FROM, PooledQuantity, PooledSignal, Posterior
from evenhand.stats.signal_checks import unequal_variance

SIGMAS = (0.8, 1.0, 1.25, 1.5)
FEW_SHARE = 0.2
BOTH: tuple[PooledQuantity, ...] = ("criterion", "separation")
COSTS: tuple[PooledQuantity, ...] = ("log_cost_ratio", "behaviour")


def spread_details(sample: Sample, signal: GroupSignal) -> list[dict[str, Any]]:
    """Implied thresholds if positives' signals were spread otherwise than negatives'."""
    found = signal.found
    told = []
    for g, name in enumerate(sample.groups):
        if found.undefined[g] is not None or sample.labels[g] < HIDDEN_UNDER:
            continue
        curve = unequal_variance(
            found.hit_rate[g],
            false_alarm_rate=found.false_alarm_rate[g],
            prevalence=sample.usable_prevalence()[g],
            sigma=SIGMAS,
        )
        told.append(
            {
                "group": name,
                "sigma": list(SIGMAS),
                "implied_threshold": [number(v) for v in curve.implied_threshold],
                "sensitivity": [number(v) for v in curve.sensitivity],
            }
        )
    return told


def count_details(sample: Sample, signal: GroupSignal) -> list[dict[str, Any]]:
    """Counts and rates of every group that may be shown."""
    names = ("hits", "misses", "false_alarms", "correct_rejections")
    return [
        {
            "group": name,
            "labelers": int(sample.judges[g]),
            **{cell: number(v) for cell, v in zip(names, sample.totals[g])},
            "hit_rate": number(signal.found.hit_rate[g]),
            "false_alarm_rate": number(signal.found.false_alarm_rate[g]),
        }
        for g, name in enumerate(sample.groups)
        if sample.labels[g] >= HIDDEN_UNDER
    ]


def forest_details(sample: Sample, spans: LabelerSpans) -> dict[str, Any]:
    """Labelers by name with their criterion and separation in each group."""
    labels = sample.counts.sum(axis=2)
    told: dict[str, Any] = {
        "labelers": list(sample.labelers),
        "groups": list(sample.groups),
        "labels": [[number(v) for v in row] for row in labels],
    }
    for quantity in BOTH:
        told[quantity] = _table(spans.groups[quantity], labels)
    pooled = spans.pooled
    told["pooled"] = pooled is not None
    if pooled is not None:
        told |= {
            "reliability": {
                "criterion": [number(v) for v in pooled.reliability("criterion")],
                "separation": [number(v) for v in pooled.reliability("separation")],
                "cost_ratio": [number(v) for v in pooled.reliability("log_cost_ratio")],
            },
            "spread_between_labelers": [number(v) for v in pooled.sds],
            "effective_draws": number(pooled.effective_draws),
            "item_variance": [number(v) for v in pooled.item_variance],
            "method": pooled.method,
        }
    return told


def _table(span: Span, labels: FloatArray) -> dict[str, Any]:
    hidden = labels < HIDDEN_UNDER
    names = ("value", "low", "high", "family_low", "family_high")
    return {
        name: [
            [None if h else number(v) for v, h in zip(row, hide)]
            for row, hide in zip(getattr(span, name), hidden)
        ]
        for name in names
    }


def pooled_contrasts(
    sample: Sample, pooled: PooledSignal, *, reference: int
) -> list[dict[str, Any]]:
    """The average labeler's group − reference, with and without the variance of items."""
    told = []
    for g, name in enumerate(sample.groups):
        if g == reference:
            continue
        one: dict[str, Any] = {"group": name, "reference": sample.groups[reference]}
        for quantity in BOTH:
            place = BOTH.index(quantity)
            alone = pooled.beta[:, 2 * g + place] - pooled.beta[:, 2 * reference + place]
            found = pooled.contrast(quantity, group=g, reference=reference)
            one[f"{quantity}_gap"] = _summary(found, float(found.mean)) | {
                "sd": number(float(found.sd)),
                "sd_without_items": number(float(alone.std())),
                "reliability": number(
                    pooled.contrast_reliability(quantity, group=g, reference=reference)
                ),
            }
        for quantity in COSTS:
            found = pooled.contrast(quantity, group=g, reference=reference)
            one[f"{quantity}_gap"] = _summary(found, float(found.median))
        lean = pooled.share_leaning("criterion", group=g, reference=reference)
        one["share_leaning"] = _summary(lean, float(lean.median))
        one["few"] = carriers(sample, pooled, group=g, reference=reference)
        told.append(one)
    return told


def carriers(sample: Sample, pooled: PooledSignal, *, group: int, reference: int) -> int | None:
    """The fewest labelers without whom the pooled difference in criterion would be halved.

    Counted from pooled values: raw ones always have some extreme labelers by chance alone. None
    where no number short of all would do.
    """
    own = pooled.labeler_contrast("criterion", group=group, reference=reference).mean
    labels = sample.counts.sum(axis=2)
    weight = np.minimum(labels[:, group], labels[:, reference])
    if not weight.sum() > 0:
        return None
    whole = float(weight @ own / weight.sum())
    order = np.argsort(-np.sign(whole) * own, kind="stable")
    left_weight = weight.sum() - np.cumsum(weight[order])[:-1]
    left = (weight @ own - np.cumsum((weight * own)[order])[:-1]) / np.where(
        left_weight > 0, left_weight, np.nan
    )
    halved = np.flatnonzero(np.sign(whole) * left <= abs(whole) / 2)
    return int(halved[0]) + 1 if halved.size else None


def _summary(found: Posterior, value: float) -> dict[str, float | None]:
    return {
        "value": number(value),
        "low": number(float(found.low)),
        "high": number(float(found.high)),
    }


def pool_notes(sample: Sample, spans: LabelerSpans, attribute: str) -> list[str]:
    """Whether labelers can be told apart at all, and what weakens the pooled model."""
    pooled = spans.pooled
    if pooled is None:
        return [
            f"{len(sample.labelers)} labelers are too few to learn from one about another (5 are "
            "needed): each stands alone, with a wide interval."
            if len(sample.labelers) > 1
            else "There is one labeler: intervals speak of this labeler alone."
        ]
    notes = []
    for quantity in BOTH:
        values = pooled.reliability(quantity)
        low = [g for g in range(len(sample.groups)) if not values[g] >= ORDER_FROM]
        if low:
            told = ", ".join(f"{sample.groups[g]} {values[g]:.2f}" for g in low[:5])
            notes.append(
                f"By {attribute}, labelers' {quantity} cannot be put in any order: reliability is "
                f"below {ORDER_FROM} ({told})."
            )
    apart = differing(sample, spans)
    if apart:
        verb = "holds a bar that surely differs" if apart == 1 else "hold bars that surely differ"
        notes.append(
            f"By {attribute}, {apart:,} of {len(sample.labelers):,} labelers {verb} from that of "
            "the others (criterion against the rest, allowing for all labelers at once)."
        )
    if pooled.effective_draws < FEWEST_EFFECTIVE_DRAWS:
        notes.append(
            f"By {attribute}, the pooled model rests on {pooled.effective_draws:.0f} effective "
            "draws; read labelers' intervals as rough."
        )
    return notes


def differing(sample: Sample, spans: LabelerSpans) -> int:
    """How many labelers' criterion differs from the others' in some group, beyond chance."""
    rest = spans.rest.get("criterion")
    if rest is None:
        return 0
    shown = sample.counts.sum(axis=2) >= HIDDEN_UNDER
    with np.errstate(invalid="ignore"):
        apart = (rest.family_low > 0) | (rest.family_high < 0)
    return int((apart & shown).any(axis=1).sum())


def sharing_note(told: dict[str, Any], labelers: int) -> str:
    """Whether most labelers share a difference in criterion or few carry it."""
    lean, few = told["share_leaning"], told["few"]
    gap = told["criterion_gap"]
    ends = f"{gap['value']:+.2f} [{gap['low']:+.2f}, {gap['high']:+.2f}]".replace("-", "−")
    pair = f"{told['group']} against {told['reference']} (the average labeler's criterion {ends})"
    if lean["low"] is not None and lean["low"] > 0.5:
        return (
            f"{pair}: the difference in criterion is shared by most labelers "
            f"({lean['value']:.0%} [{lean['low']:.0%}, {lean['high']:.0%}] lean the same way); "
            "guidelines and selection are where to look."
        )
    if few is not None and few <= max(1, FEW_SHARE * labelers):
        return (
            f"{pair}: the difference in criterion sits with few. Without {few} of {labelers} "
            "labelers it would be at most half as large; coaching is where to look."
        )
    return (
        f"{pair}: it cannot be told whether most labelers share the difference in criterion "
        f"({lean['value']:.0%} [{lean['low']:.0%}, {lean['high']:.0%}] lean the same way)."
    )


def item_note(told: dict[str, Any]) -> str | None:
    """That items rule the uncertainty, where they do: the model then shrinks labelers too much."""
    gap = told["criterion_gap"]
    if not gap["sd"] or not gap["sd_without_items"]:
        return None
    if gap["sd"] ** 2 <= 2 * gap["sd_without_items"] ** 2:
        return None
    return (
        f"{told['group']} against {told['reference']}: most of the uncertainty is about which "
        "items were judged, not about labelers. More items would help, more labelers would not; "
        "labelers' own differences between groups are then drawn together too strongly."
    )
