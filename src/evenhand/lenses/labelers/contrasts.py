"""Labelers' groups against a reference: are mistakes weighed alike, by which bar and skill?"""

from dataclasses import dataclass, field, replace

import numpy as np

from evenhand.decisions.labels import SUMMARY
from evenhand.lenses.labelers.groups import (
    BLIND,
    FEW,
    LEAST_SHARE,
    GroupSignal,
    group_signal,
    pooled_freedom,
    prevalence_limits,
    quantile,
    undefined_of,
)
from evenhand.lenses.labelers.sample import Sample
from evenhand.lenses.rows import Rows, words
from evenhand.lenses.scope import Scope
from evenhand.stats.estimate import Contrast, FloatArray, contrast, critical, number
from evenhand.stats.families import benjamini_hochberg, bonferroni
from evenhand.stats.labelers.contrasts import (
    Quantity,
    clustered_contrast,
    jackknife_contrast,
    jackknife_over_strata,
)
from evenhand.stats.labelers.parts import cost_ratio_parts
from evenhand.stats.labelers.posterior import FEWEST_LABELERS

ON_LOG = ("cost_ratio_ratio",)
MEASURES = (
    "cost_ratio_ratio",
    "implied_threshold_gap",
    "criterion_gap",
    "separation_gap",
    "prevalence_gap",
    "cost_ratio_prevalence_part",
    "cost_ratio_bar_part",
    "cost_ratio_skill_part",
)
# What of each comparison is summed over strata.
SUMMED: dict[str, Quantity] = {
    "separation_gap": "separation",
    "criterion_gap": "criterion",
    "cost_ratio_ratio": "log_cost_ratio",
}
PARTS = ("prevalence", "bar", "skill")
# Why there is no summary over strata: without any labels of both groups, and with some.
_WEIGHED = "strata weighed by their labels"
_UNSUMMED = ("no stratum has both", "without one of the labelers nothing is left to compare")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One group − its reference: contrasts by measure, why there are none, how they came about.

    `few`: one of the two has too few errors of a kind; `blind`: one of the two separations may be
    0, so that cost ratios say nothing of a standard.
    `item_variance` is what items that several labelers judge add to the variance of z_F and z_H,
    of the group and of the reference.
    """

    contrasts: dict[str, Contrast]
    undefined: str | None
    method: str
    n: float
    n_reference: float
    few: bool = False
    blind: bool = False
    item_variance: FloatArray = field(default_factory=lambda: np.zeros(4))

    def method_of(self, measure: str) -> str:
        """How the number of a measure came about."""
        return "newcombe" if measure == "prevalence_gap" else self.method

    def unjudged(self, measure: str) -> str | None:
        """Why no limit can be held against the number of a measure; None where one can."""
        if measure == "prevalence_gap":
            return None
        costs = measure in ("cost_ratio_ratio", "implied_threshold_gap")
        return FEW if self.few else BLIND if costs and self.blind else None


def differences(scope: Scope, sample: Sample) -> tuple[list[int], list[Difference]]:
    """Every group against the reference, or against everybody else."""
    index = [g for g in range(len(sample.groups)) if g != scope.place]
    return index, [difference(scope, sample.pair(g, scope.place)) for g in index]


def difference(scope: Scope, pair: Sample) -> Difference:
    """The first of two groups − the second, by jackknife over labelers where that is possible.

    Where labelers share items, errors are clustered by both; below five labelers a group they
    speak of these labelers alone.
    """
    level = scope.level
    signal = group_signal(pair, level=level)
    reasons = undefined_of(pair, signal.found)
    reason = reasons[0] or (f"reference: {reasons[1]}" if reasons[1] else None)
    n, n_reference = (float(x) for x in pair.labels)
    if reason is not None:
        return Difference(
            contrasts={},
            undefined=reason,
            method=signal.method[0],
            n=n,
            n_reference=n_reference,
            few=bool(signal.few[0]),
        )
    found, behaviour, method = _behaviours(pair, signal, level=level)
    one, other = (_pick(signal, k) for k in (0, 1))
    prevalence_part, part_error = float(one[0] - other[0]), float(np.hypot(one[1], other[1]))
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
        method=method,
        n=n,
        n_reference=n_reference,
        few=bool(signal.few.any()),
        blind=bool(signal.blind.any()),
        item_variance=signal.rates.item_extra,
    )


def contrast_rows(
    scope: Scope, sample: Sample, index: list[int], between: list[Difference]
) -> list[Rows]:
    """The rows of every contrast of a sample."""
    defined = [one for one in between if one.undefined is None]
    # Contrasts share the reference and the labelers: Bonferroni holds whatever their joint law.
    members = len(defined)
    parts = []
    for measure in MEASURES:
        contrasts = [one.contrasts.get(measure) for one in between]
        ends = _ends(contrasts, level=scope.level_within(sample.stratum), members=members)
        if measure == "prevalence_gap":
            ends |= _family_prevalence(scope, sample, index, between, members)
        own_scale = np.exp if measure in ON_LOG else np.asarray
        p = np.array([np.nan if c is None else float(c.p) for c in contrasts])
        parts.append(
            scope.block(
                (len(index),),
                measure=measure,
                group=words([sample.groups[g] for g in index]),
                reference=scope.reference,
                stratum=sample.stratum,
                n=[one.n for one in between],
                n_reference=[one.n_reference for one in between],
                p=p,
                p_adjusted=benjamini_hochberg(p),
                method=words([one.method_of(measure) for one in between]),
                unjudged=words([one.unjudged(measure) for one in between]),
                undefined=words([one.undefined for one in between]),
                **{name: own_scale(end) for name, end in ends.items()},
            )
        )
    return parts


def summary_rows(scope: Scope, tables: list[Sample], between: list[list[Difference]]) -> list[Rows]:
    """Contrasts over strata (first axis of `between`), each weighed by its labels.

    From five labelers on by leaving each labeler out of all strata at once: they span strata, and
    taken for independent these would look surer than they are.
    """
    index = [g for g in range(len(scope.groups)) if g != scope.place]
    names = [scope.groups[g] for g in index]
    parts = []
    for measure in SUMMED:
        found = [
            _over_strata(scope, tables, [stratum[k] for stratum in between], measure, g)
            for k, g in enumerate(index)
        ]
        value, error, freedom, n, n_reference = np.array([one[:5] for one in found]).T
        judged = contrast(value, standard_error=error, freedom=freedom, level=scope.level)
        gone = ~np.isfinite(error)
        q = quantile(scope.family_level, freedom, members=int((~gone).sum()))
        ends = {
            "value": np.where(gone, np.nan, value),
            "low": judged.low,
            "high": judged.high,
            "family_low": value - q * error,
            "family_high": value + q * error,
        }
        own_scale = np.exp if measure in ON_LOG else np.asarray
        parts.append(
            scope.block(
                (len(names),),
                measure=measure,
                group=words(names),
                reference=scope.reference,
                stratum=SUMMARY,
                n=n,
                n_reference=n_reference,
                p=judged.p,
                p_adjusted=benjamini_hochberg(judged.p),
                method=words([one[5] for one in found]),
                undefined=words([_UNSUMMED[bool(k)] if g else None for k, g in zip(n, gone)]),
                **{name: own_scale(end) for name, end in ends.items()},
            )
        )
    return parts


def splits(scope: Scope, index: list[int], between: list[Difference]) -> list[dict[str, object]]:
    """Δlog c of each group by prevalence, bar and skill, for the report."""
    tables: list[dict[str, object]] = []
    for g, one in zip(index, between):
        if one.undefined is not None:
            continue
        parts = {name: _ends_of(one.contrasts[f"cost_ratio_{name}_part"]) for name in PARTS}
        total = _ends_of(one.contrasts["cost_ratio_ratio"])
        names = {"group": scope.groups[g], "reference": scope.reference}
        tables.append({**names, "total": total, **parts})
    return tables


def _ends_of(gap: Contrast) -> dict[str, float | None]:
    return {name: number(float(getattr(gap, name))) for name in ("value", "low", "high")}


def _pick(signal: GroupSignal, k: int) -> tuple[float, float]:
    found = signal.found
    return float(found.prevalence_part[k]), float(found.prevalence_part_error[k])


def _behaviours(
    pair: Sample, signal: GroupSignal, *, level: float
) -> tuple[dict[str, Contrast], Contrast, str]:
    """Criterion, separation, bar and skill parts; the two parts as one; how errors came about."""
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
            "cost_ratio_bar_part": jack.bar,
            "cost_ratio_skill_part": jack.skill,
        }
        # A labeler who alone judged the positives of a group cannot be left out, and labelers
        # who agree far better than chance allows are no evidence of certainty.
        least = np.sqrt(LEAST_SHARE * (signal.found.separation_error**2).sum())
        sure = (*found.values(), jack.behaviour)
        if found["separation_gap"].standard_error >= least and all(
            c.standard_error > 0 for c in sure
        ):
            return found, jack.behaviour, f"{kind}; jackknife over {jack.labelers:,} labelers"
    freedom = float(signal.freedom.min()) if many else np.inf
    rates = replace(signal.rates, freedom=freedom)
    parts = cost_ratio_parts(
        rates.z, covariance=rates.two_way, log_odds_against=0.0, freedom=freedom, level=level
    )
    found = {
        "criterion_gap": clustered_contrast(rates, quantity="criterion", level=level),
        "separation_gap": clustered_contrast(rates, quantity="separation", level=level),
        "cost_ratio_bar_part": parts.bar,
        "cost_ratio_skill_part": parts.skill,
    }
    how = "two-way clusters, labelers and items" if many and pair.repeated else "delta method"
    alone = "" if many else "; of these labelers alone"
    return found, parts.total, f"{kind}; {how}{alone}"


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


def _ends(contrasts: list[Contrast | None], *, level: float, members: int) -> dict[str, FloatArray]:
    def of(name: str) -> FloatArray:
        return np.array([np.nan if c is None else float(getattr(c, name)) for c in contrasts])

    value, error, freedom = of("value"), of("standard_error"), of("freedom")
    q = quantile(level, freedom, members=members)
    return {
        "value": value,
        "low": of("low"),
        "high": of("high"),
        "family_low": value - q * error,
        "family_high": value + q * error,
    }


def _family_prevalence(
    scope: Scope, sample: Sample, index: list[int], between: list[Difference], members: int
) -> dict[str, FloatArray]:
    """Newcombe's interval with the family's critical value."""
    q = bonferroni(scope.level_within(sample.stratum), members=members)
    ends = np.full((2, len(index)), np.nan)
    for i, g in enumerate(index):
        if between[i].undefined is None:
            pair = sample.pair(g, scope.place)
            ends[:, i] = _newcombe(pair.prevalence, *prevalence_limits(pair, q))
    return {"family_low": ends[0], "family_high": ends[1]}


def _weight(pair: Sample, quantity: Quantity) -> float:
    """Weight of a stratum: the harmonic mean of the labels that a quantity rests on, by group.

    Errors estimated from few labelers would draw the summary to strata that look sure by chance.
    """
    hits, misses, alarms, rejections = pair.totals.T
    cells = (
        [alarms + rejections] if quantity == "criterion" else [hits + misses, alarms + rejections]
    )
    with np.errstate(divide="ignore"):
        return float(1 / (1 / np.concatenate(cells)).sum())


def _over_strata(
    scope: Scope, tables: list[Sample], strata: list[Difference], measure: str, group: int
) -> tuple[float, float, float, float, float, str]:
    """Value, error, degrees of freedom, labels of both and method of one group over strata."""
    gaps = [one.contrasts.get(measure) for one in strata]
    value, error = (
        np.array([np.nan if gap is None else float(getattr(gap, name)) for gap in gaps])
        for name in ("value", "standard_error")
    )
    pairs = [sample.pair(group, scope.place) for sample in tables]
    usable = np.isfinite(value) & (error > 0)
    weight = np.where(usable, [_weight(pair, SUMMED[measure]) for pair in pairs], 0.0)
    total = float(weight.sum())
    used = weight > 0
    n = [
        float(sum(getattr(one, name) for one, u in zip(strata, used) if u))
        for name in ("n", "n_reference")
    ]
    if total <= 0:
        return np.nan, np.nan, np.inf, n[0], n[1], _WEIGHED
    counts = np.stack([pair.counts for pair in pairs], axis=1)[:, used]
    judges = int((counts.sum(axis=(1, 2, 3)) > 0).sum())
    if judges < FEWEST_LABELERS:
        share = weight[used] / total
        spread = float(np.sqrt((share**2 * error[used] ** 2).sum()))
        alone = f"{_WEIGHED}; of these labelers alone"
        return float(share @ value[used]), spread, np.inf, n[0], n[1], alone
    parts = [gap.contrasts["cost_ratio_prevalence_part"] for gap, u in zip(strata, used) if u]
    found = jackknife_over_strata(
        counts,
        weights=weight[used],
        prevalence_part=[float(part.value) for part in parts],
        prevalence_error=[float(part.standard_error) for part in parts],
        item_variance=np.stack([one.item_variance for one, u in zip(strata, used) if u]),
        z=scope.z,
    )[SUMMED[measure]]
    method = f"{_WEIGHED}; jackknife over {judges:,} labelers"
    return (
        float(found.value),
        float(found.standard_error),
        float(found.freedom),
        n[0],
        n[1],
        method,
    )
