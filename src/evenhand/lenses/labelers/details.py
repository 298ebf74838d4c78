"""What stands behind labelers' numbers: forests, reliability, and who shares a difference."""

from typing import Any

import numpy as np

from evenhand.decisions.tally import Tally
from evenhand.lenses.labelers.groups import GroupSignal
from evenhand.lenses.labelers.people import LabelerSpans, Span
from evenhand.lenses.labelers.sample import Sample
from evenhand.lenses.scope import HIDDEN_UNDER, Scope
from evenhand.speech import agree
from evenhand.stats.estimate import FloatArray, contrast, number, numbers
from evenhand.stats.labelers.pooled import FEWEST_EFFECTIVE_DRAWS
from evenhand.stats.labelers.posterior import (
    FEWEST_LABELERS,
    ORDER_FROM,
    PooledQuantity,
    PooledSignal,
    Posterior,
)
from evenhand.stats.labelers.signal import Diffusion, ez_diffusion, unequal_variance

SIGMAS = (0.8, 1.0, 1.25, 1.5)
FEW_SHARE = 0.2
# Where seconds vary by more than so many squares of their mean, a few pauses rule them.
LONGEST_SPREAD = 4
_AS_WEIGHED = ". No other weight of the two mistakes is shown."
BOTH: tuple[PooledQuantity, ...] = ("criterion", "separation")
COSTS: tuple[PooledQuantity, ...] = ("log_cost_ratio", "behaviour")


def spread_details(sample: Sample, signal: GroupSignal) -> list[dict[str, Any]]:
    """Implied thresholds if positives' signals were spread otherwise than negatives'."""
    found = signal.found
    tables = []
    for g, name in enumerate(sample.groups):
        if found.undefined[g] is not None or sample.labels[g] < HIDDEN_UNDER:
            continue
        curve = unequal_variance(
            found.hit_rate[g],
            false_alarm_rate=found.false_alarm_rate[g],
            prevalence=sample.usable_prevalence()[g],
            sigma=SIGMAS,
        )
        tables.append(
            {
                "group": name,
                "sigma": list(SIGMAS),
                "implied_threshold": [number(v) for v in curve.implied_threshold],
                "sensitivity": [number(v) for v in curve.sensitivity],
            }
        )
    return tables


def count_details(sample: Sample, signal: GroupSignal) -> list[dict[str, Any]]:
    """Counts and rates of every group that may be shown, with z of the rates and its covariance."""
    names = ("hits", "misses", "false_alarms", "correct_rejections")
    covariance = signal.rates.two_way
    return [
        {
            "group": name,
            "labelers": int(sample.judges[g]),
            **{cell: number(v) for cell, v in zip(names, sample.totals[g])},
            "hit_rate": number(signal.found.hit_rate[g]),
            "false_alarm_rate": number(signal.found.false_alarm_rate[g]),
            "z_hit": number(signal.found.z_hit[g]),
            "z_false_alarm": number(signal.found.z_false_alarm[g]),
            "variance_hit": number(covariance[2 * g + 1, 2 * g + 1]),
            "variance_false_alarm": number(covariance[2 * g, 2 * g]),
            "covariance": number(covariance[2 * g, 2 * g + 1]),
        }
        for g, name in enumerate(sample.groups)
        if sample.labels[g] >= HIDDEN_UNDER
    ]


def forest_details(sample: Sample, spans: LabelerSpans) -> dict[str, Any]:
    """Labelers by name with their criterion and separation in each group."""
    labels = sample.counts.sum(axis=2)
    forest: dict[str, Any] = {
        "labelers": list(sample.labelers),
        "groups": list(sample.groups),
        "labels": numbers(labels),
    }
    for quantity in BOTH:
        forest[quantity] = _table(spans.groups[quantity], labels)
    pooled = spans.pooled
    forest["pooled"] = pooled is not None
    if pooled is not None:
        forest |= {
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
    return forest


def pooled_contrasts(
    sample: Sample, pooled: PooledSignal, *, reference: int
) -> list[dict[str, Any]]:
    """The average labeler's group − reference, with and without the variance of items."""
    tables: list[dict[str, Any]] = []
    reliability = {quantity: pooled.reliability(quantity, "own") for quantity in BOTH}
    own = pooled.means("criterion", "own")
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
                "reliability": number(reliability[quantity][len(tables)]),
            }
        for quantity in COSTS:
            found = pooled.contrast(quantity, group=g, reference=reference)
            one[f"{quantity}_gap"] = _summary(found, float(found.median))
        lean = pooled.share_leaning("criterion", group=g, reference=reference)
        one["share_leaning"] = _summary(lean, float(lean.median))
        one["few"] = carriers(sample, own[:, len(tables)], group=g, reference=reference)
        tables.append(one)
    return tables


def carriers(sample: Sample, own: FloatArray, *, group: int, reference: int) -> int | None:
    """The fewest labelers without whom the pooled difference in criterion would be halved.

    `own` are the means of each labeler's own difference, counted from pooled values: raw ones
    always have some extreme labelers by chance alone. None where no number short of all would do.
    """
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
            shown = ", ".join(f"{sample.groups[g]} {values[g]:.2f}" for g in low[:5])
            notes.append(
                f"By {attribute}, labelers' {quantity} cannot be put in any order: reliability is "
                f"below {ORDER_FROM} ({shown})."
            )
    apart = differing(sample, spans)
    if apart:
        verb = agree(apart, "holds another bar", "hold other bars")
        notes.append(
            f"By {attribute}, {apart:,} of {len(sample.labelers):,} labelers {verb} than "
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


def sharing_note(average: dict[str, Any], labelers: int) -> str:
    """Whether most labelers share a difference in the bar or few carry it.

    Where to look for its cause is said only where mistakes are weighed otherwise: another bar
    for the same weight is what another prevalence or skill asks for.
    """
    lean, few = average["share_leaning"], average["few"]
    gap, weight = average["criterion_gap"], average["log_cost_ratio_gap"]
    ends = f"{gap['value']:+.2f} [{gap['low']:+.2f}, {gap['high']:+.2f}]".replace("-", "−")
    who = f"{average['group']} against {average['reference']}"
    pair = f"{who} (the average labeler's criterion {ends})"
    other = weight["low"] is not None and (weight["low"] > 0 or weight["high"] < 0)
    if lean["low"] is not None and lean["low"] > 0.5:
        return (
            f"{pair}: the difference in the bar is shared by most labelers "
            f"({lean['value']:.0%} [{lean['low']:.0%}, {lean['high']:.0%}] lean the same way)"
            f"{'; guidelines and selection are where to look.' if other else _AS_WEIGHED}"
        )
    if few is not None and few <= max(1, FEW_SHARE * labelers):
        return (
            f"{pair}: the difference in the bar sits with few. Without {few} of {labelers} "
            "labelers it would be at most half as large"
            f"{'; coaching is where to look.' if other else _AS_WEIGHED}"
        )
    return (
        f"{pair}: the data cannot tell whether most labelers share the difference in the bar "
        f"({lean['value']:.0%} [{lean['low']:.0%}, {lean['high']:.0%}] lean the same way)."
    )


def item_note(average: dict[str, Any]) -> str | None:
    """That items rule the uncertainty, where they do: the model then shrinks labelers too much."""
    gap = average["criterion_gap"]
    if not gap["sd"] or not gap["sd_without_items"]:
        return None
    if gap["sd"] ** 2 <= 2 * gap["sd_without_items"] ** 2:
        return None
    who = f"{average['group']} against {average['reference']}"
    return (
        f"{who}: most of the uncertainty is about which "
        "items were judged, not about labelers. More items would help, more labelers would not; "
        "labelers' own differences between groups are then drawn together too strongly."
    )


def time_details(scope: Scope, tally: Tally) -> tuple[list[dict[str, Any]], list[str]]:
    """One table per group, and what differs from the reference beyond chance.

    `tally` has truth and decision brought to the same two classes. Drift and boundary come from
    the share of right labels and the times of right ones, as the closed form asks.
    """
    held = {
        name: tally.dense(["labeler", "group", "truth", "decision"], name)
        for name in ("n", "timed", "seconds", "seconds2")
    }
    right = {name: np.trace(table, axis1=-2, axis2=-1) for name, table in held.items()}
    labels = held["n"].sum(axis=(-2, -1))
    sums = np.stack(
        [labels, right["n"], right["timed"], right["seconds"], right["seconds2"]], axis=-1
    )
    whole = sums.sum(axis=0)
    found, mean, variance = _diffusion(whole)
    with np.errstate(invalid="ignore"):
        ruled = variance > LONGEST_SPREAD * mean**2
        # Deciding cannot take longer than all of it: such times are not those of deciding.
        impossible = ~ruled & (found.non_decision_time < 0)
    trusted = ~(ruled | impossible)
    tables, notes = [], []
    groups, place = scope.groups, scope.place
    for g, name in enumerate(groups):
        if whole[g, 2] < HIDDEN_UNDER:
            continue
        table: dict[str, Any] = {
            "group": name,
            "labels": number(whole[g, 0]),
            "timed": number(whole[g, 2]),
            "mean_seconds": number(mean[g]),
            "sd_seconds": number(np.sqrt(variance[g])),
            "share_right": number(whole[g, 1] / whole[g, 0]),
            "drift": number(found.drift[g]),
            "boundary": number(found.boundary[g]),
            "non_decision_time": number(found.non_decision_time[g]),
        }
        if not trusted[g]:
            # Of such times neither care nor speed can be read.
            table |= {"drift": None, "boundary": None, "non_decision_time": None}
            why = "a few very long times rule the spread of seconds"
            if impossible[g]:
                why = "seconds vary more than any time to decide would"
            notes.append(
                f"{name}: {why}, so nothing is said of care or speed. Leave pauses out with "
                "longest_seconds."
            )
        elif place not in (None, g) and whole[place, 2] >= HIDDEN_UNDER and trusted[place]:
            table["against"], remarks = _against(scope, sums, g, place)
            notes += remarks
        tables.append(table)
    return tables, notes


def _table(span: Span, labels: FloatArray) -> dict[str, Any]:
    hidden = labels < HIDDEN_UNDER
    names = ("value", "low", "high", "family_low", "family_high")
    return {name: numbers(np.where(hidden, np.nan, getattr(span, name))) for name in names}


def _summary(found: Posterior, value: float) -> dict[str, float | None]:
    return {
        "value": number(value),
        "low": number(float(found.low)),
        "high": number(float(found.high)),
    }


def _diffusion(sums: FloatArray) -> tuple[Diffusion, FloatArray, FloatArray]:
    """EZ-diffusion from (…, 5): labels, right, timed, seconds, squared seconds."""
    labels, right, timed, seconds, squares = np.moveaxis(sums, -1, 0)
    with np.errstate(all="ignore"):
        mean = seconds / timed
        variance = np.maximum(squares / timed - mean**2, 0.0) * timed / (timed - 1)
        share = right / labels
        usable = (timed > 1) & (labels > 0)
        found = ez_diffusion(
            np.where(usable, share, 0.75),
            variance_seconds=np.where(usable, variance, np.nan),
            mean_seconds=mean,
            n=np.where(usable, labels, 1.0),
        )
    return found, np.asarray(mean), np.asarray(variance)


def _against(
    scope: Scope, sums: FloatArray, group: int, reference: int
) -> tuple[dict[str, Any], list[str]]:
    """Group − reference by leaving each labeler out, and a note where chance does not do."""
    groups, pair = scope.groups, sums[:, [group, reference]]
    pair = pair[pair[..., 0].sum(axis=1) > 0]
    labelers = len(pair)
    table: dict[str, Any] = {"reference": groups[reference]}
    notes: list[str] = []
    if labelers < FEWEST_LABELERS:
        return table, notes
    total = pair.sum(axis=0)
    whole = _diffusion(total)[0]
    left = _diffusion(total - pair)[0]
    for name, more, less in (
        ("boundary", "with more care and more slowly", "with less care and faster"),
        ("drift", "with clearer evidence", "with less clear evidence or less attention"),
    ):
        each = getattr(left, name)
        gaps = each[:, 0] - each[:, 1]
        spread = (labelers - 1) / labelers * ((gaps - gaps.mean()) ** 2).sum()
        value = getattr(whole, name)
        found = contrast(
            value[0],
            value[1],
            standard_error=np.sqrt(spread),
            freedom=labelers - 1,
            level=scope.level,
        )
        ends = {"low": number(float(found.low)), "high": number(float(found.high))}
        table[f"{name}_gap"] = {"value": number(float(found.value)), **ends}
        if found.low > 0 or found.high < 0:
            notes.append(
                f"{groups[group]} is labelled {more if found.value > 0 else less} than "
                f"{groups[reference]} (EZ-diffusion {name} gap {_signed(found.value)} "
                f"[{_signed(found.low)}, {_signed(found.high)}]): a first reading of "
                "response times, not a verdict."
            )
    return table, notes


def _signed(value: FloatArray) -> str:
    return f"{float(value):+.3f}".replace("-", "−")
