"""Rows of labelers by group: criterion, separation, prevalence and the costs they imply.

With a truth of known quality the same again, `…_corrected` for the truth's own errors.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtrit

from evenhand.lenses.labelers.sample import Sample
from evenhand.lenses.rows import Column, Rows, choose, words
from evenhand.lenses.scope import HIDDEN_UNDER, Scope
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import bonferroni
from evenhand.stats.labelers.contrasts import ClusteredRates, clustered_rates, one_way_variance
from evenhand.stats.labelers.posterior import FEWEST_LABELERS
from evenhand.stats.labelers.signal import (
    FEWEST_ERRORS,
    Rates,
    SignalDetection,
    corrected_rates,
    normal_density,
    signal_detection,
)
from evenhand.stats.noisy_truth import corrected_counts
from evenhand.stats.rates import wilson

# Clustered variances under this share of independent labels' are chance, not certainty.
LEAST_SHARE = 0.1
# Why no limit can be held against a row, whatever its interval.
FEW = f"fewer than {FEWEST_ERRORS} errors of a kind"
# Without separation the implied threshold is the prevalence, wherever the bar stands.
BLIND = "labels are not shown to tell the truth apart"
# By how much of itself a cell of counts grows for a slope.
STEP = 1e-4
# Each is computed on a scale without ends, and told on its own.
CORRECTED: dict[str, Callable[[FloatArray], FloatArray]] = {
    "criterion_corrected": np.asarray,
    "separation_corrected": np.asarray,
    "prevalence_corrected": expit,
    "cost_ratio_corrected": np.exp,
    "implied_threshold_corrected": expit,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSignal:
    """Signal detection of each group with errors that know of labelers and items.

    `rates` holds the covariance of all cells' z, F₁, H₁, F₂, …, and what items add to their
    variances; `freedom` the degrees of
    freedom of each group, infinite where it speaks of these labelers alone. `few` are groups
    with too few errors of a kind; `blind` those whose separation may be 0 or less, so that their
    cost ratio says nothing of a standard.
    """

    found: SignalDetection
    rates: ClusteredRates
    freedom: FloatArray
    method: tuple[str, ...]
    few: NDArray[np.bool_]
    blind: NDArray[np.bool_]

    def unjudged(self, *, costs: bool) -> Column:
        """Why no limit can be held against each group's number, of costs or of another kind."""
        return choose(self.few, FEW, choose(self.blind & costs, BLIND))


def group_signal(sample: Sample, *, level: float) -> GroupSignal:
    """Signal detection of every group of a sample.

    From five labelers on a group, errors are clustered by labeler (and by item where items
    repeat) and speak of labelers like these; below, of these labelers alone.
    """
    totals = sample.totals
    rates = corrected_rates(*totals.T, correction=sample.correction)
    covariance, of_items = _covariance(sample, rates)
    alarm, hit = slice(0, None, 2), slice(1, None, 2)
    diagonal = np.diag(covariance)
    found = signal_detection(
        *totals.T,
        prevalence=sample.usable_prevalence(),
        prevalence_error=sample.prevalence_error,
        correction=sample.correction,
        variance_hit=diagonal[hit],
        variance_false_alarm=diagonal[alarm],
        covariance=np.diag(covariance[alarm, hit]),
        level=level,
    )
    many = sample.judges >= FEWEST_LABELERS
    freedom = np.where(many, np.maximum(sample.judges - 1, 1), np.inf)
    if sample.items is not None:
        seen = np.bincount(sample.items.group.astype(np.intp), minlength=len(sample.groups))
        freedom = np.where(many, np.minimum(freedom, np.maximum(seen - 1, 1)), freedom)
    few = (totals[:, 1] < FEWEST_ERRORS) | (totals[:, 2] < FEWEST_ERRORS)
    with np.errstate(invalid="ignore"):
        blind = found.separation <= quantile(level, freedom) * found.separation_error
    return GroupSignal(
        found=found,
        rates=_as_clustered(rates, covariance, of_items),
        freedom=freedom,
        method=tuple(f"{found.method}; {_errors_of(sample, g)}" for g in range(len(totals))),
        few=few,
        blind=np.asarray(blind),
    )


def quantile(level: float, freedom: FloatArray | float, *, members: int = 1) -> FloatArray:
    """Critical value for a family of members, by t where there are degrees of freedom."""
    df = np.asarray(freedom, dtype=np.float64)
    finite = np.isfinite(df)
    tail = 1 - (1 - level) / (2 * max(members, 1))
    return np.where(
        finite, stdtrit(np.where(finite, df, 1.0), tail), bonferroni(level, members=members)
    )


def pooled_freedom(
    freedom: FloatArray | float, *, error: FloatArray | float, part: FloatArray | float
) -> FloatArray:
    """Degrees of freedom of an error of which `part` does not come from labelers (Satterthwaite).

    The prevalence's error comes from items: with five labelers, t with 4 degrees of freedom for
    the whole of it covers 99 %.

    Examples:
        >>> pooled_freedom(4.0, error=1.0, part=0.0).item(), pooled_freedom(4.0, error=1.0,
        ...     part=0.5**0.5).round(9).item()
        (4.0, 16.0)
    """
    whole, given = np.asarray(error, dtype=float) ** 2, np.asarray(part, dtype=float) ** 2
    with np.errstate(all="ignore"):
        found = np.asarray(freedom, dtype=float) * (whole / (whole - given)) ** 2
    return np.asarray(np.where(whole > given, found, np.inf))


def group_rows(scope: Scope, sample: Sample, signal: GroupSignal) -> list[Rows]:
    """Separation, criterion, prevalence, implied threshold and cost ratio of every group."""
    found, size = signal.found, len(sample.groups)
    undefined = undefined_of(sample, found)
    gone = np.array([reason is not None for reason in undefined])
    # Groups share labelers, so their joint law is unknown: Bonferroni holds whatever it is.
    members = int((~gone).sum())
    for_costs = pooled_freedom(
        signal.freedom, error=found.log_cost_ratio_error, part=found.prevalence_part_error
    )
    shared = {
        "group": words(sample.groups),
        "stratum": sample.stratum,
        "n": sample.labels,
        "undefined": words(undefined),
        "method": words(signal.method),
    }
    parts = []
    for measure, value, error, freedom, own_scale in (
        ("cost_ratio", found.log_cost_ratio, found.log_cost_ratio_error, for_costs, _exp),
        ("implied_threshold", -found.log_cost_ratio, found.log_cost_ratio_error, for_costs, expit),
        ("criterion", found.criterion, found.criterion_error, signal.freedom, np.asarray),
        ("separation", found.separation, found.separation_error, signal.freedom, np.asarray),
    ):
        q = quantile(scope.level, freedom)
        family = quantile(scope.level_within(sample.stratum), freedom, members=members)
        ends = {
            "value": value,
            "low": value - q * error,
            "high": value + q * error,
            "family_low": value - family * error,
            "family_high": value + family * error,
        }
        defined = {name: np.where(gone, np.nan, own_scale(end)) for name, end in ends.items()}
        unjudged = signal.unjudged(costs=freedom is for_costs)
        parts.append(scope.block((size,), measure=measure, unjudged=unjudged, **defined, **shared))
    return [*parts, prevalence_rows(scope, sample)]


def prevalence_rows(scope: Scope, sample: Sample) -> Rows:
    """Share of positives among what labelers see, from distinct items or as it was given."""
    limits = prevalence_limits(sample, scope.z)
    members = int((sample.prevalence_n > 0).sum())
    family = prevalence_limits(
        sample, bonferroni(scope.level_within(sample.stratum), members=members)
    )
    counted = "distinct items" if sample.items is not None else "labels"
    return scope.block(
        (len(sample.groups),),
        measure="prevalence",
        group=words(sample.groups),
        stratum=sample.stratum,
        value=sample.prevalence,
        low=limits[0],
        high=limits[1],
        family_low=family[0],
        family_high=family[1],
        n=sample.prevalence_n,
        method=words(["given" if g else f"wilson, over {counted}" for g in sample.given]),
        undefined=words([None if np.isfinite(p) else "no items judged" for p in sample.prevalence]),
    )


def corrected_rows(
    scope: Scope,
    sample: Sample,
    signal: GroupSignal,
    *,
    sensitivity: FloatArray,
    specificity: FloatArray,
) -> list[Rows]:
    """Rows of the groups whose truth has a known quality, named `…_corrected`.

    Errors are by the delta method from the counts, widened by how much clusters of labelers and
    items widen those of the raw rates.
    """
    places = np.flatnonzero(np.isfinite(sensitivity) & np.isfinite(specificity))
    if not places.size:
        return []
    totals = sample.totals[places]
    quality = {"sensitivity": sensitivity[places], "specificity": specificity[places]}
    given = np.where(sample.given[places], sample.prevalence[places], np.nan)
    checked = corrected_counts(*totals.T, **quality)
    undefined = [str(reason) if reason is not None else None for reason in checked.undefined]
    edge = (checked.hit_rate <= 0) | (checked.hit_rate >= 1)
    edge |= (checked.false_alarm_rate <= 0) | (checked.false_alarm_rate >= 1)
    for i in np.flatnonzero(edge):
        undefined[i] = undefined[i] or "a corrected rate is 0 or 1"
    gone = np.array([reason is not None for reason in undefined])
    value = _quantities(totals, given=given, **quality)
    slope = np.stack(
        [(_quantities(_grown(totals, k), given=given, **quality) - value) / STEP for k in range(4)]
    )
    n = totals.sum(axis=1)
    # Shares do not change with the size of the table, so log cells vary by 1/n each.
    variance = slope**2 / np.where(totals > 0, totals, np.inf).T[:, None]
    error = np.sqrt(variance.sum(axis=0)) * _widening(sample, signal, places)
    freedom = signal.freedom[places]
    q = quantile(scope.level, freedom)
    family = quantile(scope.level_within(sample.stratum), freedom, members=int((~gone).sum()))
    parts = []
    for k, (measure, own_scale) in enumerate(CORRECTED.items()):
        ends = {
            "value": value[k],
            "low": value[k] - q * error[k],
            "high": value[k] + q * error[k],
            "family_low": value[k] - family * error[k],
            "family_high": value[k] + family * error[k],
        }
        parts.append(
            scope.block(
                (places.size,),
                measure=measure,
                group=words([sample.groups[g] for g in places]),
                stratum=sample.stratum,
                n=n,
                method=words(
                    [
                        f"truth of sensitivity {a:g}, specificity {b:g}; delta method"
                        for a, b in zip(quality["sensitivity"], quality["specificity"])
                    ]
                ),
                undefined=words(undefined),
                **{name: np.where(gone, np.nan, own_scale(end)) for name, end in ends.items()},
            )
        )
    return parts


def prevalence_limits(sample: Sample, z: float) -> tuple[FloatArray, FloatArray]:
    """Wilson limits of the prevalences; the value itself where it is given."""
    low, high = wilson(
        np.nan_to_num(sample.prevalence) * sample.prevalence_n, sample.prevalence_n, z=z
    )
    return (
        np.where(sample.given, sample.prevalence, low),
        np.where(sample.given, sample.prevalence, high),
    )


def undefined_of(sample: Sample, found: SignalDetection) -> list[str | None]:
    """Why a group has no criterion, separation or cost ratio, or None where it has."""
    reasons: list[str | None] = []
    for g, reason in enumerate(found.undefined):
        share = sample.prevalence[g]
        if reason is None and not 0 < share < 1:
            reason = (
                "no positives among the items" if share == 0 else "no negatives among the items"
            )
        reasons.append(reason)
    return reasons


def flag_notes(sample: Sample, signal: GroupSignal, attribute: str) -> list[str]:
    """What weakens single groups, in sentences; equal weaknesses of many groups in one."""
    found = signal.found
    by_flag: dict[str, list[str]] = {}
    for g, name in enumerate(sample.groups):
        if sample.labels[g] < HIDDEN_UNDER:
            continue
        said = sample.totals[g, 0] + sample.totals[g, 2]
        always = "always" if said == sample.labels[g] else "never" if said == 0 else None
        if always:
            # Corrected for empty cells, such labels would look reversed by a hair.
            flag = f"labelers {always} say yes, so labels carry no information"
            by_flag.setdefault(flag, []).append(name)
            continue
        if signal.blind[g] and found.separation[g] > 0:
            flag = (
                "labels are not shown to carry information (separation may be 0), so the cost "
                "ratio says more of the prevalence than of a standard"
            )
            by_flag.setdefault(flag, []).append(name)
        for flag in found.warnings[g]:
            by_flag.setdefault(flag, []).append(name)
    place = f" in stratum {sample.stratum}" if sample.stratum else ""
    return [
        f"{attribute} {', '.join(names[:5])}"
        f"{f' and {len(names) - 5} more' if len(names) > 5 else ''}{place}: {flag}."
        for flag, names in by_flag.items()
    ]


def _errors_of(sample: Sample, g: int) -> str:
    """How the errors of a group's numbers came about."""
    count = int(sample.judges[g])
    clusters = " and items" if sample.repeated else ""
    if count >= FEWEST_LABELERS:
        return f"clustered by {count:,} labelers{clusters}"
    who = "this labeler" if count == 1 else f"these {count} labelers"
    return f"of {who} alone" + (", clustered by items" if clusters else "")


def _covariance(sample: Sample, rates: Rates) -> tuple[FloatArray, FloatArray]:
    """Covariance of z over cells F₁, H₁, F₂, …, clustered where there are labelers enough.

    And the part of its diagonal that comes from items which several labelers judged.
    """
    hits, misses, alarms, rejections = np.moveaxis(sample.counts, -1, 0)
    size = 2 * len(sample.groups)
    yes = np.stack([alarms, hits], axis=-1).reshape(-1, size)
    n = np.stack([alarms + rejections, hits + misses], axis=-1).reshape(-1, size)
    plain = np.stack([rates.variance_false_alarm, rates.variance_hit], axis=-1).reshape(-1)
    # Items vary in labelers' eyes however few labelers there are; labelers only if they are many.
    many = np.repeat(sample.judges >= FEWEST_LABELERS, 2)
    total, raw = n.sum(axis=0), yes.sum(axis=0)
    varies = (raw > 0) & (raw < total)
    own, of_items = plain, np.zeros(size)
    if sample.items is not None and sample.repeated:
        items = sample.items
        found = clustered_rates(
            yes,
            labeler_n=n,
            item_yes=items.yes,
            item_n=items.labels,
            item_cell=2 * items.group + items.truth,
            correction=sample.correction,
        )
        of_items = np.fmax(0.0, found.item_extra)
        own = plain + of_items
        covariance = found.two_way
    else:
        with np.errstate(all="ignore"):
            slope = 1 / normal_density(_z(rates))
            unscaled = one_way_variance(yes, n)
        covariance = unscaled * np.outer(slope, slope)
    # Labelers who agree far better than chance allows are no evidence of certainty.
    with np.errstate(invalid="ignore"):
        clustered = many & varies & (np.diag(covariance) >= LEAST_SHARE * plain)
    inside = np.outer(clustered, clustered)
    return np.where(inside, np.nan_to_num(covariance), np.diag(own)), of_items


def _z(rates: Rates) -> FloatArray:
    return np.stack([rates.z_false_alarm, rates.z_hit], axis=-1).reshape(-1)


def _as_clustered(rates: Rates, covariance: FloatArray, of_items: FloatArray) -> ClusteredRates:
    rate = np.stack([rates.false_alarm_rate, rates.hit_rate], axis=-1).reshape(-1)
    empty = np.full(rate.shape, np.nan)
    return ClusteredRates(
        rate=rate,
        z=_z(rates),
        labeler=covariance,
        item_extra=of_items,
        two_way=covariance,
        design_effect=empty,
        freedom=np.inf,
    )


def _exp(value: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(value))


def _grown(totals: FloatArray, cell: int) -> FloatArray:
    """The counts with one cell grown by a small share of itself."""
    factor = np.ones(4)
    factor[cell] += STEP
    return np.asarray(totals * factor)


def _quantities(
    totals: FloatArray, *, given: FloatArray, sensitivity: FloatArray, specificity: FloatArray
) -> FloatArray:
    """t, d′, logit φ, log c and −log c against the truth, (5, groups)."""
    found = corrected_counts(*totals.T, sensitivity=sensitivity, specificity=specificity)
    rates = corrected_rates(
        found.hits,
        found.misses,
        found.false_alarms,
        found.correct_rejections,
        correction="none",
    )
    z_hit, z_alarm = rates.z_hit, rates.z_false_alarm
    with np.errstate(all="ignore"):
        odds = logit(np.where(np.isfinite(given), given, found.prevalence))
    log_c = -odds + (z_hit**2 - z_alarm**2) / 2
    return np.stack([-z_alarm, z_hit - z_alarm, odds, log_c, -log_c])


def _widening(sample: Sample, signal: GroupSignal, places: NDArray[np.intp]) -> FloatArray:
    """How much wider clusters make the raw rates' errors than independent labels would be."""
    totals, found = sample.totals, signal.found
    n = np.stack([totals[:, 2:].sum(axis=1), totals[:, :2].sum(axis=1)])
    rate = np.stack([found.false_alarm_rate, found.hit_rate])
    z = np.stack([found.z_false_alarm, found.z_hit])
    diagonal = np.diag(signal.rates.two_way)
    with np.errstate(all="ignore"):
        plain = rate * (1 - rate) / (n * normal_density(z) ** 2)
        effect = np.stack([diagonal[0::2], diagonal[1::2]]) / plain
    return np.asarray(np.sqrt(np.fmax(1.0, np.nanmax(effect, axis=0)))[places])
