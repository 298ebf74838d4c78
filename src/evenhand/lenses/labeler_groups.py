"""Rows of labelers by group: criterion, separation, prevalence and the costs they imply."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, stdtrit

from evenhand.lenses.labeler_counts import Sample
from evenhand.lenses.rows import Rows, words
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import bonferroni
from evenhand.stats.pooled_signal import FEWEST_LABELERS
from evenhand.stats.rates import wilson
from evenhand.stats.signal import (
    FEWEST_ERRORS,
    Rates,
    SignalDetection,
    corrected_rates,
    normal_density,
    signal_detection,
)
from evenhand.stats.signal_clusters import ClusteredRates, clustered_rates, one_way_variance

LENS = "labelers"
# Groups under this many labels are hidden in whatever people are shown.
HIDDEN_UNDER = 10
LEAST_SHARE = 0.1
# What `method` says of a row that no limit can be held against, whatever its interval.
FEW = f"cannot be told: fewer than {FEWEST_ERRORS} errors of a kind"
# Without separation the implied threshold is the prevalence, wherever the bar stands.
BLIND = "cannot be told: labels are not shown to tell the truth apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the rows of one attribute share."""

    attribute: str
    positive: str
    rule: str | None
    level: float
    seed: int

    def block(self, shape: tuple[int, ...], **columns: Any) -> Rows:
        """Rows of the labelers lens with the columns that all share."""
        shared = {"class": self.positive, "attribute": self.attribute}
        return Rows.block(shape, lens=LENS, rule=self.rule, level=self.level, **shared, **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSignal:
    """Signal detection of each group with errors that know of labelers and items.

    `rates` holds the covariance of all cells' z, F₁, H₁, F₂, …; `freedom` the degrees of
    freedom of each group, infinite where it speaks of these labelers alone. `blind` are groups
    whose separation may be 0 or less, so that their cost ratio says nothing of a standard.
    """

    found: SignalDetection
    rates: ClusteredRates
    freedom: FloatArray
    method: tuple[str, ...]
    few: NDArray[np.bool_]
    blind: NDArray[np.bool_]

    @property
    def cost_method(self) -> list[str]:
        """How each group's cost ratio came about, and whether a limit may be held against it."""
        return [f"{m}; {BLIND}" if b else m for m, b in zip(self.method, self.blind)]


def group_signal(sample: Sample, *, level: float) -> GroupSignal:
    """Signal detection of every group of a sample.

    From five labelers on a group, errors are clustered by labeler (and by item where items
    repeat) and speak of labelers like these; below, of these labelers alone.
    """
    totals = sample.totals
    rates = corrected_rates(*totals.T, correction=sample.correction)
    covariance = _covariance(sample, rates)
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
        rates=_as_clustered(rates, covariance),
        freedom=freedom,
        method=tuple(
            f"{found.method}; {_errors_of(sample, g)}" + (f"; {FEW}" if few[g] else "")
            for g in range(len(sample.groups))
        ),
        few=few,
        blind=np.asarray(blind),
    )


def _errors_of(sample: Sample, g: int) -> str:
    """How the errors of a group's numbers came about."""
    count = int(sample.judges[g])
    clusters = " and items" if sample.repeated else ""
    if count >= FEWEST_LABELERS:
        return f"clustered by {count:,} labelers{clusters}"
    who = "this labeler" if count == 1 else f"these {count} labelers"
    return f"of {who} alone" + (", clustered by items" if clusters else "")


def _covariance(sample: Sample, rates: Rates) -> FloatArray:
    """Covariance of z over cells F₁, H₁, F₂, …, clustered where there are labelers enough."""
    hits, misses, alarms, rejections = np.moveaxis(sample.counts, -1, 0)
    size = 2 * len(sample.groups)
    yes = np.stack([alarms, hits], axis=-1).reshape(-1, size)
    n = np.stack([alarms + rejections, hits + misses], axis=-1).reshape(-1, size)
    plain = np.stack([rates.variance_false_alarm, rates.variance_hit], axis=-1).reshape(-1)
    # Items vary in labelers' eyes however few labelers there are; labelers only if they are many.
    many = np.repeat(sample.judges >= FEWEST_LABELERS, 2)
    total, raw = n.sum(axis=0), yes.sum(axis=0)
    varies = (raw > 0) & (raw < total)
    own = plain
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
        own = np.fmax(plain, plain + found.item_extra)
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
    return np.asarray(np.where(inside, np.nan_to_num(covariance), np.diag(own)))


def _z(rates: Rates) -> FloatArray:
    return np.stack([rates.z_false_alarm, rates.z_hit], axis=-1).reshape(-1)


def _as_clustered(rates: Rates, covariance: FloatArray) -> ClusteredRates:
    rate = np.stack([rates.false_alarm_rate, rates.hit_rate], axis=-1).reshape(-1)
    empty = np.full(rate.shape, np.nan)
    return ClusteredRates(
        rate=rate,
        z=_z(rates),
        labeler=covariance,
        item_extra=empty,
        two_way=covariance,
        design_effect=empty,
        freedom=np.inf,
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


def group_rows(setting: Setting, sample: Sample, signal: GroupSignal) -> list[Rows]:
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
    }
    parts = []
    for measure, value, error, freedom, told in (
        ("cost_ratio", found.log_cost_ratio, found.log_cost_ratio_error, for_costs, _exp),
        ("implied_threshold", -found.log_cost_ratio, found.log_cost_ratio_error, for_costs, expit),
        ("criterion", found.criterion, found.criterion_error, signal.freedom, _same),
        ("separation", found.separation, found.separation_error, signal.freedom, _same),
    ):
        q = quantile(setting.level, freedom)
        family = quantile(setting.level, freedom, members=members)
        ends = {
            "value": value,
            "low": value - q * error,
            "high": value + q * error,
            "family_low": value - family * error,
            "family_high": value + family * error,
        }
        kept = {name: np.where(gone, np.nan, told(end)) for name, end in ends.items()}
        method = words(signal.cost_method if freedom is for_costs else signal.method)
        parts.append(setting.block((size,), measure=measure, method=method, **kept, **shared))
    return [*parts, prevalence_rows(setting, sample)]


def prevalence_rows(setting: Setting, sample: Sample) -> Rows:
    """Share of positives among what labelers see, from distinct items or as it was given."""
    limits = prevalence_limits(sample, critical(setting.level))
    members = int((sample.prevalence_n > 0).sum())
    family = prevalence_limits(sample, bonferroni(setting.level, members=members))
    counted = "distinct items" if sample.items is not None else "labels"
    return setting.block(
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


def _same(value: FloatArray) -> FloatArray:
    return value


def _exp(value: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(value))
