"""Result rows of implied thresholds: per group, against a reference, corrected, and as sets."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from evenhand.decisions.labels import SUMMARY
from evenhand.lenses.rows import Rows, choose, words
from evenhand.lenses.scope import Scope
from evenhand.lenses.thresholds.margins import Margin, binned_sums
from evenhand.stats.estimate import Contrast, FloatArray, contrast, critical, student_critical
from evenhand.stats.families import (
    benjamini_hochberg,
    bonferroni,
    correlation,
    gap_quantile,
    group_normals,
    max_t_quantile,
    sidak,
)
from evenhand.stats.noisy_truth import corrected_prevalence
from evenhand.stats.rates import wilson
from evenhand.stats.thresholds.costs import cost_ratio
from evenhand.stats.thresholds.histogram import ScoreHistogram, rule_of_thumb_bandwidth
from evenhand.stats.thresholds.implied import (
    ImpliedThresholds,
    cost_ratio_gap,
    discrete_margins,
    family_limits,
    implied_threshold_gap,
    implied_thresholds,
)
from evenhand.stats.thresholds.sets import CostSet, set_gap, set_ratio

DRAWS = 4_000
# Beyond so many groups that share no clusters no matrix of all pairs is made: what it would be
# drawn from is known.
MOST_PAIRED = 100
_LIMITS = ("low", "high", "family_low", "family_high")
# A cost ratio falls where its implied threshold rises: ends change places.
_TURNED = {
    "value": "value",
    "set_low": "set_high",
    "set_high": "set_low",
    "low": "high",
    "high": "low",
    "family_low": "family_high",
    "family_high": "family_low",
}
SETS_COMPARED = "set-identified: the ends of both sets against each other"
DISCRETE = "scores are discrete: they identify a set, not a number"
LINEAR = "its bias on a curve is not known: implied_threshold has an interval"


def group_rows(scope: Scope, margin: Margin) -> list[Rows]:
    """Implied threshold and cost ratio of every group, as a point or as a set."""
    found, size = margin.found, len(margin.groups)
    q = group_quantile(found, level=scope.level_within(margin.stratum), seed=scope.seed)
    family_low, family_high = family_limits(found, quantile=q)
    gone = np.isnan(margin.value)
    columns = {
        "value": margin.value,
        "set_low": np.full(size, np.nan),
        "set_high": np.full(size, np.nan),
        "low": found.low.copy(),
        "high": found.high.copy(),
        "family_low": np.where(np.isnan(found.low), np.nan, family_low),
        "family_high": np.where(np.isnan(found.low), np.nan, family_high),
    }
    columns |= {name: np.where(gone, np.nan, columns[name]) for name in _LIMITS}
    turned = {name: cost_ratio(columns[other]) for name, other in _TURNED.items()}
    costs = margin.sets(level=scope.level)
    family = margin.sets(
        level=_level_of(bonferroni(scope.level_within(margin.stratum), members=2 * size))
    )
    for g in margin.discrete:
        if costs.identified[g]:
            _fill(turned, g, costs, family)
            _fill(columns, g, costs.implied(), family.implied())
    shared = {
        "group": words(margin.groups),
        "stratum": margin.stratum,
        "method": method_of(margin),
        "undefined": words(margin.undefined),
        "n": margin.n,
    }
    rows = [scope.block((size,), measure="cost_ratio", **turned, **shared)]
    rows.append(scope.block((size,), measure="implied_threshold", **columns, **shared))
    rows.append(linear_rows(scope, margin))
    return rows + _side_rows(scope, margin) + [window_rows(scope, margin)]


def linear_rows(scope: Scope, margin: Margin) -> Rows:
    """The local line's value at the threshold, as the paper has it, beside the one that leads."""
    reasons = [
        DISCRETE if g in margin.discrete else reason for g, reason in enumerate(margin.undefined)
    ]
    gone = np.array([reason is not None for reason in reasons])
    return scope.block(
        (len(margin.groups),),
        measure="implied_threshold_linear",
        group=words(margin.groups),
        stratum=margin.stratum,
        value=np.where(gone, np.nan, margin.found.value),
        n=margin.n,
        method="tricube local linear",
        undefined=words(reasons),
        no_interval=choose(gone, None, LINEAR),
    )


def window_rows(scope: Scope, margin: Margin) -> Rows:
    """Share of positive truths inside the bandwidth: biased where the density of scores slopes."""
    total, yes, squares = margin.window.T
    with np.errstate(all="ignore"):
        share = yes / total
        effective = np.where(total > 0, total**2 / squares, 0.0)
    q = bonferroni(scope.level_within(margin.stratum), members=int((total > 0).sum()))
    low, high = wilson(share * effective, effective, z=scope.z)
    family_low, family_high = wilson(share * effective, effective, z=q)
    reasons = [
        reason if reason and not total[g] else DISCRETE if g in margin.discrete else None
        for g, reason in enumerate(margin.undefined)
    ]
    return scope.block(
        (len(margin.groups),),
        measure="implied_threshold_window",
        group=words(margin.groups),
        stratum=margin.stratum,
        value=share,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=margin.n,
        method="window mean, wilson; biased where the density of scores slopes",
        undefined=words(reasons),
    )


def corrected_rows(
    scope: Scope,
    margin: Margin,
    *,
    sensitivity: Mapping[str, float],
    specificity: Mapping[str, float],
) -> Rows | None:
    """Implied thresholds against the truth behind a truth of known sensitivity and specificity.

    The correction is monotone, so the limits are those of the raw value, corrected.
    """
    places = [
        g for g, name in enumerate(margin.groups) if name in sensitivity and name in specificity
    ]
    if not places:
        return None
    rates: dict[str, Any] = {
        "sensitivity": [sensitivity[margin.groups[g]] for g in places],
        "specificity": [specificity[margin.groups[g]] for g in places],
    }
    found = margin.found
    q = group_quantile(found, level=scope.level_within(margin.stratum), seed=scope.seed)
    family = family_limits(found, quantile=q)
    fixed = corrected_prevalence(margin.value[places], **rates)
    outside = fixed.clipped | (fixed.unclipped == 0) | (fixed.unclipped == 1)
    reasons, known = [], margin.undefined
    for i, g in enumerate(places):
        reason = DISCRETE if g in margin.discrete else known[g]
        if reason is None and outside[i]:
            reason = f"the corrected estimate {fixed.unclipped[i]:.3f} lies outside (0, 1)"
        reasons.append(reason)
    gone = np.array([reason is not None for reason in reasons])
    limits = {"low": found.low, "high": found.high}
    limits |= {"family_low": family[0], "family_high": family[1]}
    columns = {"value": fixed.value} | {
        name: corrected_prevalence(limit[places], **rates).value for name, limit in limits.items()
    }
    return scope.block(
        (len(places),),
        measure="implied_threshold_corrected",
        group=words([margin.groups[g] for g in places]),
        stratum=margin.stratum,
        n=margin.n[places],
        method=words(
            [
                f"Rogan–Gladen, sensitivity {a:g}, specificity {b:g}; raw {raw:.4f}"
                for a, b, raw in zip(
                    rates["sensitivity"], rates["specificity"], found.centre[places]
                )
            ]
        ),
        undefined=words(reasons),
        **{name: np.where(gone, np.nan, column) for name, column in columns.items()},
    )


def comparison_rows(scope: Scope, margin: Margin) -> tuple[list[Rows], list[Contrast]]:
    """Gap and ratio against the reference, and the contrasts themselves for the summary."""
    own = margin.undefined
    index = [g for g in range(len(margin.groups)) if g != scope.place]
    if scope.place is None:
        others = rest_of(margin, scope.level)
        place = np.array(index)
        other_n, reasons = others.n, list(others.undefined)
    else:
        others = margin.found
        place = np.full(len(index), scope.place)
        other_n, reasons = margin.n, own
    mine = np.array(index, dtype=np.intp)
    undefined = [
        own[g] or (f"reference: {reasons[p]}" if reasons[p] else None) for g, p in zip(index, place)
    ]
    sets = {} if scope.place is None else compare_sets(scope, margin, index)
    if scope.place is None:
        undefined = [
            reason or (DISCRETE if g in margin.discrete else None)
            for g, reason in zip(index, undefined)
        ]
    blocks, contrasts = [], []
    for measure in ("implied_threshold_gap", "cost_ratio_ratio"):
        log = measure == "cost_ratio_ratio"
        found = _contrast(margin, others, mine, place, log, scope.level)
        level = scope.level_within(margin.stratum)
        if scope.place is None:
            q = bonferroni(level, members=int(np.isfinite(found.standard_error).sum()))
        else:
            q = contrast_quantile(margin.found, scope.place, log=log, level=level, seed=scope.seed)
        wide = student_critical(q, freedom=found.freedom)
        ends = {
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "family_low": found.value - wide * found.standard_error,
            "family_high": found.value + wide * found.standard_error,
        }
        gone = np.array([reason is not None for reason in undefined])
        ends = {k: np.where(gone, np.nan, np.exp(v) if log else v) for k, v in ends.items()}
        ends |= {"set_low": np.full(len(index), np.nan), "set_high": np.full(len(index), np.nan)}
        p = np.where(gone, np.nan, found.p)
        for i, pair in sets.items():
            _fill(ends, i, *pair[measure])
            p[i] = np.nan
        blocks.append(
            scope.block(
                (len(index),),
                measure=measure,
                group=words([margin.groups[g] for g in index]),
                reference=scope.reference,
                stratum=margin.stratum,
                n=margin.n[mine],
                n_reference=other_n[place],
                p=p,
                p_adjusted=benjamini_hochberg(p),
                method=choose(
                    np.isin(np.arange(len(index)), list(sets)),
                    SETS_COMPARED,
                    f"{margin.found.method}; {margin.rule}",
                ),
                undefined=words(undefined),
                **ends,
            )
        )
        contrasts.append(found)
    return blocks, contrasts


def summary_rows(
    scope: Scope, margins: list[Margin], contrasts: list[list[Contrast]]
) -> list[Rows]:
    """Gap and ratio over strata, each stratum weighed by its precision.

    Clusters may reach into several strata and draw them all the same way: their errors are added
    as if they did, which holds whatever they do.
    """
    blocks = []
    places = [g for g in range(len(scope.groups)) if g != scope.place]
    names = [scope.groups[g] for g in places]
    for k, measure in enumerate(("implied_threshold_gap", "cost_ratio_ratio")):
        centres = np.stack([(c[k].low + c[k].high) / 2 for c in contrasts])
        errors = np.stack([c[k].standard_error for c in contrasts])
        with np.errstate(all="ignore"):
            weight = np.where(np.isfinite(centres) & (errors > 0), 1 / errors**2, 0.0)
            total = weight.sum(axis=0)
            value = (weight * np.nan_to_num(centres)).sum(axis=0) / total
            error = np.where(total > 0, 1 / np.sqrt(total), np.nan)
            added = (weight * np.nan_to_num(errors)).sum(axis=0) / total
        freedom = np.stack([np.broadcast_to(c[k].freedom, value.shape) for c in contrasts])
        freedom = np.where(weight > 0, freedom, np.inf).min(axis=0)
        clustered = np.isfinite(freedom)
        error = np.where(clustered, added, error)
        found = contrast(value, standard_error=error, freedom=freedom, level=scope.level)
        q = student_critical(
            bonferroni(scope.family_level, members=int((total > 0).sum())), freedom=freedom
        )
        ends = {
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "family_low": value - q * error,
            "family_high": value + q * error,
        }
        log = measure == "cost_ratio_ratio"
        used = weight > 0
        blocks.append(
            scope.block(
                (len(names),),
                measure=measure,
                group=words(names),
                reference=scope.reference,
                stratum=SUMMARY,
                n=(np.stack([m.n[places] for m in margins]) * used).sum(axis=0),
                p=found.p,
                p_adjusted=benjamini_hochberg(found.p),
                method=choose(
                    clustered,
                    "strata weighed by precision; errors added, as if clusters spanned all strata",
                    "strata weighed by precision",
                ),
                undefined=choose(total == 0, "no stratum has an interval for both"),
                **{name: np.exp(v) if log else v for name, v in ends.items()},
            )
        )
    return blocks


def rest_of(margin: Margin, level: float) -> ImpliedThresholds:
    """Everybody else's implied threshold, for each group, from the histogram."""
    held = margin.histogram

    def others(array: FloatArray) -> FloatArray:
        return np.asarray(array.sum(axis=0, keepdims=True) - array)

    pooled = ScoreHistogram(
        positions=held.positions,
        thresholds=held.thresholds,
        counts=others(held.counts),
        weights=others(held.weights),
        squares=others(held.squares),
    )
    h = margin.found.bandwidth if margin.given else rule_of_thumb_bandwidth(pooled)
    return implied_thresholds(
        binned_sums(pooled, h).moments, threshold=np.nan, bandwidth=h, level=level
    )


def compare_sets(
    scope: Scope, margin: Margin, index: list[int]
) -> dict[int, dict[str, tuple[CostSet, CostSet]]]:
    """Comparisons in which a side is a set, by their place: ratio and gap, with family limits."""
    assert scope.place is not None
    discrete = set(margin.discrete)
    if not discrete:
        return {}
    level = _level_of(bonferroni(scope.level_within(margin.stratum), members=2 * len(index)))
    both = [margin.sets(level=scope.level), margin.sets(level=level)]
    compared = {}
    for i, g in enumerate(index):
        if not {g, scope.place} & discrete:
            continue
        sides = [(held.take(g), held.take(scope.place)) for held in both]
        if all(side.identified for side in sides[0]):
            ratios = [set_ratio(*pair) for pair in sides]
            gaps = [set_gap(*(side.implied() for side in pair)) for pair in sides]
            compared[i] = {
                "cost_ratio_ratio": (ratios[0], ratios[1]),
                "implied_threshold_gap": (gaps[0], gaps[1]),
            }
    return compared


def family_quantile(covariance: FloatArray, *, level: float, seed: int) -> float:
    """Critical value over all estimates with this covariance, by normal draws."""
    spread = np.diagonal(covariance)
    moving = np.flatnonzero(np.isfinite(spread) & (spread > 0))
    if moving.size < 2:
        return critical(level)
    joint = correlation(covariance[np.ix_(moving, moving)])
    return max_t_quantile(group_normals(joint[None], draws=DRAWS, seed=seed)[:, 0], level=level)


def group_quantile(found: ImpliedThresholds, *, level: float, seed: int) -> float:
    """Critical value over the log cost ratios of all groups."""
    error = found.log_error
    if found.centre_covariance is None and error.size > MOST_PAIRED:
        # Independent groups: Šidák's value is the quantile that draws would tell.
        return sidak(level, members=int((np.isfinite(error) & (error > 0)).sum()))
    return family_quantile(log_covariance(found), level=level, seed=seed)


def contrast_quantile(
    found: ImpliedThresholds, reference: int, *, log: bool, level: float, seed: int
) -> float:
    """Critical value over the differences of all groups to one of them."""
    error = found.log_error if log else found.centre_error
    if found.centre_covariance is None and error.size > MOST_PAIRED:
        alone = np.ones((error.size, 1, 1))
        return gap_quantile(
            alone, errors=error[:, None], reference=reference, level=level, draws=DRAWS, seed=seed
        )
    shared = found.centre_covariance
    plain = np.diag(found.centre_error**2) if shared is None else shared
    whole = log_covariance(found) if log else plain
    others = np.flatnonzero(np.arange(error.size) != reference)
    covariance = whole[np.ix_(others, others)] + whole[reference, reference]
    covariance = covariance - whole[others, [reference]][:, None] - whole[[reference], others]
    return family_quantile(covariance, level=level, seed=seed)


def log_covariance(found: ImpliedThresholds) -> FloatArray:
    """Covariance over groups of the log cost ratios; groups without shared clusters have none."""
    if found.centre_covariance is None:
        return np.diag(found.log_error**2)
    per = found.centre * (1.0 - found.centre)
    return np.asarray(found.centre_covariance / np.outer(per, per))


def method_of(margin: Margin) -> NDArray[Any]:
    """How each group's number came about, its bandwidth included."""
    methods = []
    for g in range(len(margin.groups)):
        if g in margin.discrete:
            methods.append("set-identified: Wilson at the scores beside the threshold")
            continue
        few = margin.n[g] < margin.found.n[g]
        raw = margin.found.raw[g]
        outside = f"; raw estimate {raw:.4f}" if np.isfinite(raw) and not 0 < raw < 1 else ""
        methods.append(
            f"{margin.found.method}; h={margin.found.bandwidth[g]:.4g}, {margin.rule}"
            + outside
            + ("; n is effective rows" if few else "")
        )
    return words(methods)


def _fill(columns: dict[str, FloatArray], place: int, held: CostSet, family: CostSet) -> None:
    """Put a set into the columns of its row; `held` and `family` may be of one or all groups."""
    one, wide = (part if part.low.ndim == 0 else part.take(place) for part in (held, family))
    numbers: dict[str, Any] = {
        "value": np.nan,
        "set_low": one.set_low,
        "set_high": one.set_high,
        "low": one.low,
        "high": one.high,
        "family_low": wide.low,
        "family_high": wide.high,
    }
    for name, number in numbers.items():
        columns[name][place] = number


def _level_of(quantile: float) -> float:
    return float(2 * ndtr(quantile) - 1)


def _side_rows(scope: Scope, margin: Margin) -> list[Rows]:
    """Prevalence at the lowest accepted and the highest refused score of discrete groups."""
    blocks = []
    places = sorted(margin.discrete)
    if not places:
        return []
    q = bonferroni(scope.level_within(margin.stratum), members=len(places))
    for side in ("accepted", "refused"):
        parts = [margin.discrete[g] for g in places]
        wide = [discrete_margins(margin.values[g], level=_level_of(q)) for g in places]

        def of(held: list[Any], name: str, side: str = side) -> FloatArray:
            return np.array([getattr(part, f"{side}{name}")[0] for part in held])

        n = of(parts, "_n")
        end = "lowest" if side == "accepted" else "highest"
        blocks.append(
            scope.block(
                (len(places),),
                measure=f"prevalence_{end}_{side}",
                group=words([margin.groups[g] for g in places]),
                stratum=margin.stratum,
                value=of(parts, ""),
                low=of(parts, "_low"),
                high=of(parts, "_high"),
                family_low=of(wide, "_low"),
                family_high=of(wide, "_high"),
                n=n,
                method="wilson",
                undefined=choose(n == 0, f"no {side} score in the group"),
            )
        )
    return blocks


def _contrast(
    margin: Margin,
    others: ImpliedThresholds,
    mine: NDArray[np.intp],
    place: NDArray[np.intp],
    log: bool,
    level: float,
) -> Contrast:
    """Group − reference on one scale."""
    own = margin.found
    if others is own:
        return (cost_ratio_gap if log else implied_threshold_gap)(own, group=mine, reference=place)
    scale = ("log_centre", "log_error") if log else ("centre", "centre_error")
    (value, error), (other, other_error) = (
        [getattr(side, name)[at] for name in scale] for side, at in ((own, mine), (others, place))
    )
    return contrast(
        value, other, standard_error=error, standard_error_reference=other_error, level=level
    )
