"""Labelers' groups against a reference: a different standard, or less able to tell?"""

from dataclasses import dataclass, replace

import numpy as np

from evenhand.lenses.labeler_counts import Sample
from evenhand.lenses.labeler_groups import (
    BLIND,
    FEW,
    LEAST_SHARE,
    GroupSignal,
    Setting,
    group_signal,
    pooled_freedom,
    prevalence_limits,
    quantile,
    undefined_of,
)
from evenhand.lenses.rows import Rows, words
from evenhand.stats.contrast import Contrast, contrast
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import benjamini_hochberg, bonferroni
from evenhand.stats.pooled_signal import FEWEST_LABELERS
from evenhand.stats.signal_clusters import clustered_contrast
from evenhand.stats.signal_contrasts import jackknife_contrast

REST = "<rest>"
SUMMARY = "<summary>"
ON_LOG = ("cost_ratio_ratio",)
MEASURES = (
    "cost_ratio_ratio",
    "implied_threshold_gap",
    "criterion_gap",
    "separation_gap",
    "prevalence_gap",
    "cost_ratio_prevalence_part",
    "cost_ratio_behaviour_part",
)
SUMMED = ("separation_gap", "criterion_gap", "cost_ratio_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One group − its reference: contrasts by measure, why there are none, how they came about.

    `blind`: one of the two separations may be 0, so that cost ratios say nothing of a standard.
    """

    contrasts: dict[str, Contrast]
    undefined: str | None
    method: str
    n: float
    n_reference: float
    blind: bool = False

    def method_of(self, measure: str) -> str:
        """How the number of a measure came about, and whether a limit may be held against it."""
        if measure == "prevalence_gap":
            return "newcombe"
        costs = measure in ("cost_ratio_ratio", "implied_threshold_gap")
        return f"{self.method}; {BLIND}" if costs and self.blind else self.method


def differences(
    setting: Setting, sample: Sample, *, reference: str
) -> tuple[list[int], list[Difference]]:
    """Every group against the reference, or against everybody else."""
    place = None if reference == REST else sample.groups.index(reference)
    index = [g for g in range(len(sample.groups)) if g != place]
    return index, [difference(setting, sample.pair(g, place)) for g in index]


def difference(setting: Setting, pair: Sample) -> Difference:
    """The first of two groups − the second, by jackknife over labelers where that is possible.

    Where labelers share items, errors are clustered by both; below five labelers a group they
    speak of these labelers alone.
    """
    level = setting.level
    signal = group_signal(pair, level=level)
    reasons = undefined_of(pair, signal.found)
    reason = reasons[0] or (f"reference: {reasons[1]}" if reasons[1] else None)
    n, n_reference = (float(x) for x in pair.labels)
    if reason is not None:
        return Difference(
            contrasts={}, undefined=reason, method=signal.method[0], n=n, n_reference=n_reference
        )
    found, method = _behaviours(pair, signal, level=level)
    one, other = (_pick(signal, k) for k in (0, 1))
    prevalence_part, part_error = float(one[0] - other[0]), float(np.hypot(one[1], other[1]))
    behaviour = found["cost_ratio_behaviour_part"]
    error = np.hypot(behaviour.standard_error, part_error)
    found["cost_ratio_prevalence_part"] = contrast(
        prevalence_part, standard_error=part_error, level=level
    )
    found["cost_ratio_ratio"] = contrast(
        prevalence_part + behaviour.value,
        standard_error=error,
        freedom=pooled_freedom(behaviour.freedom, error=error, part=part_error),
        level=level,
    )
    found["implied_threshold_gap"] = _threshold_gap(signal, found["cost_ratio_ratio"], level)
    found["prevalence_gap"] = _prevalence_gap(pair, found["cost_ratio_prevalence_part"], level)
    return Difference(
        contrasts=found,
        undefined=None,
        method=method + (f"; {FEW}" if signal.few.any() else ""),
        n=n,
        n_reference=n_reference,
        blind=bool(signal.blind.any()),
    )


def _pick(signal: GroupSignal, k: int) -> tuple[float, float]:
    found = signal.found
    return float(found.prevalence_part[k]), float(found.prevalence_part_error[k])


def _behaviours(
    pair: Sample, signal: GroupSignal, *, level: float
) -> tuple[dict[str, Contrast], str]:
    """Criterion, separation and behaviour part, and how their errors came about."""
    kind = signal.found.method
    many = bool((pair.judges >= FEWEST_LABELERS).all())
    if many and not pair.repeated:
        jack = jackknife_contrast(
            pair.counts,
            prevalence=pair.usable_prevalence(),
            prevalence_error=pair.prevalence_error,
            correction=pair.correction,
            level=level,
        )
        found = {
            "criterion_gap": jack.criterion,
            "separation_gap": jack.separation,
            "cost_ratio_behaviour_part": jack.behaviour,
        }
        # A labeler who alone judged the positives of a group cannot be left out, and labelers
        # who agree far better than chance allows are no evidence of certainty.
        least = np.sqrt(LEAST_SHARE * (signal.found.separation_error**2).sum())
        if found["separation_gap"].standard_error >= least and all(
            c.standard_error > 0 for c in found.values()
        ):
            return found, f"{kind}; jackknife over {jack.labelers:,} labelers"
    freedom = float(signal.freedom.min()) if many else np.inf
    rates = replace(signal.rates, freedom=freedom)
    found = {
        "criterion_gap": clustered_contrast(rates, quantity="criterion", level=level),
        "separation_gap": clustered_contrast(rates, quantity="separation", level=level),
        "cost_ratio_behaviour_part": clustered_contrast(
            rates, quantity="log_cost_ratio", level=level
        ),
    }
    how = "two-way clusters, labelers and items" if many and pair.repeated else "delta method"
    alone = "" if many else "; of these labelers alone"
    return found, f"{kind}; {how}{alone}"


def _threshold_gap(signal: GroupSignal, ratio: Contrast, level: float) -> Contrast:
    """Difference of implied thresholds, from the errors of both log cost ratios and their gap."""
    p, error = signal.found.implied_threshold, signal.found.log_cost_ratio_error
    slope = p * (1 - p)
    shared = (error[0] ** 2 + error[1] ** 2 - ratio.standard_error**2) / 2
    most = error[0] * error[1]
    shared = np.clip(shared, -most, most)
    variance = (slope**2 * error**2).sum() - 2 * slope[0] * slope[1] * shared
    return contrast(
        p[0], p[1], standard_error=np.sqrt(variance), freedom=ratio.freedom, level=level
    )


def _prevalence_gap(pair: Sample, part: Contrast, level: float) -> Contrast:
    """Newcombe's interval around the difference of prevalences; p on the log-odds scale."""
    low, high = prevalence_limits(pair, critical(level))
    ends = _newcombe(pair.prevalence, low, high)
    value = pair.prevalence[0] - pair.prevalence[1]
    return replace(
        contrast(value, standard_error=part.standard_error, level=level),
        low=np.asarray(ends[0]),
        high=np.asarray(ends[1]),
        statistic=-part.statistic,
        p=part.p if part.standard_error > 0 else np.asarray(np.nan),
    )


def _newcombe(p: FloatArray, low: FloatArray, high: FloatArray) -> tuple[float, float]:
    gap = p[0] - p[1]
    return (
        float(gap - np.hypot(p[0] - low[0], high[1] - p[1])),
        float(gap + np.hypot(high[0] - p[0], p[1] - low[1])),
    )


def contrast_rows(
    setting: Setting,
    sample: Sample,
    reference: str,
    index: list[int],
    found: list[Difference],
) -> list[Rows]:
    """The rows of every contrast of a sample."""
    place = None if reference == REST else sample.groups.index(reference)
    defined = [f for f in found if f.undefined is None]
    # Contrasts share the reference and the labelers: Bonferroni holds whatever their joint law.
    members = len(defined)
    parts = []
    for measure in MEASURES:
        rows = [f.contrasts.get(measure) for f in found]
        ends = _ends(setting, rows, members=members)
        if measure == "prevalence_gap":
            ends |= _family_prevalence(setting, sample, place, index, found, members)
        told = np.exp if measure in ON_LOG else np.asarray
        p = np.array([np.nan if c is None else float(c.p) for c in rows])
        parts.append(
            setting.block(
                (len(index),),
                measure=measure,
                group=words([sample.groups[g] for g in index]),
                reference=reference,
                stratum=sample.stratum,
                n=[f.n for f in found],
                n_reference=[f.n_reference for f in found],
                p=p,
                p_adjusted=benjamini_hochberg(p),
                method=words([f.method_of(measure) for f in found]),
                undefined=words([f.undefined for f in found]),
                **{name: told(end) for name, end in ends.items()},
            )
        )
    return parts


def _ends(setting: Setting, rows: list[Contrast | None], *, members: int) -> dict[str, FloatArray]:
    def of(name: str) -> FloatArray:
        return np.array([np.nan if c is None else float(getattr(c, name)) for c in rows])

    value, error, freedom = of("value"), of("standard_error"), of("freedom")
    q = quantile(setting.level, freedom, members=members)
    return {
        "value": value,
        "low": of("low"),
        "high": of("high"),
        "family_low": value - q * error,
        "family_high": value + q * error,
    }


def _family_prevalence(
    setting: Setting,
    sample: Sample,
    place: int | None,
    index: list[int],
    found: list[Difference],
    members: int,
) -> dict[str, FloatArray]:
    """Newcombe's interval with the family's critical value."""
    q = bonferroni(setting.level, members=members)
    ends = np.full((2, len(index)), np.nan)
    for i, g in enumerate(index):
        if found[i].undefined is None:
            pair = sample.pair(g, place)
            ends[:, i] = _newcombe(pair.prevalence, *prevalence_limits(pair, q))
    return {"family_low": ends[0], "family_high": ends[1]}


def summary_rows(
    setting: Setting, strata: list[Sample], reference: str, found: list[list[Difference]]
) -> list[Rows]:
    """Contrasts over strata, each stratum weighed by its precision."""
    groups = strata[0].groups
    names = [g for g in groups if reference == REST or g != reference]
    parts = []
    for measure in SUMMED:
        value, error, n, n_reference = _weighed(found, measure)
        judged = contrast(value, standard_error=error, level=setting.level)
        gone = ~np.isfinite(error)
        q = bonferroni(setting.level, members=int((~gone).sum()))
        ends = {
            "value": np.where(gone, np.nan, value),
            "low": judged.low,
            "high": judged.high,
            "family_low": value - q * error,
            "family_high": value + q * error,
        }
        told = np.exp if measure in ON_LOG else np.asarray
        parts.append(
            setting.block(
                (len(names),),
                measure=measure,
                group=words(names),
                reference=reference,
                stratum=SUMMARY,
                n=n,
                n_reference=n_reference,
                p=judged.p,
                p_adjusted=benjamini_hochberg(judged.p),
                method="strata weighed by precision",
                undefined=words(["no stratum has both" if g else None for g in gone]),
                **{name: told(end) for name, end in ends.items()},
            )
        )
    return parts


def _weighed(
    found: list[list[Difference]], measure: str
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Value, error and labels of each group over strata (first axis of `found`)."""
    size = len(found[0])
    held = np.full((4, len(found), size), np.nan)
    for s, stratum in enumerate(found):
        for g, one in enumerate(stratum):
            between = one.contrasts.get(measure)
            if between is not None:
                held[:, s, g] = (between.value, between.standard_error, one.n, one.n_reference)
    with np.errstate(all="ignore"):
        weight = np.where(held[1] > 0, 1 / held[1] ** 2, 0.0)
        total = weight.sum(axis=0)
        value = (weight * np.nan_to_num(held[0])).sum(axis=0) / total
        error = np.where(total > 0, 1 / np.sqrt(total), np.nan)
    used = weight > 0
    counts = (np.nan_to_num(held[2:]) * used).sum(axis=1)
    return value, error, counts[0], counts[1]


def splits(
    sample: Sample, reference: str, index: list[int], found: list[Difference]
) -> list[dict[str, object]]:
    """Δlog c of each group as its prevalence and its behaviour part, for the report."""
    told: list[dict[str, object]] = []
    for g, one in zip(index, found):
        if one.undefined is not None:
            continue
        parts = {
            name: float(one.contrasts[f"cost_ratio_{name}_part"].value)
            for name in ("prevalence", "behaviour")
        }
        total = float(one.contrasts["cost_ratio_ratio"].value)
        told.append({"group": sample.groups[g], "reference": reference, "total": total} | parts)
    return told
