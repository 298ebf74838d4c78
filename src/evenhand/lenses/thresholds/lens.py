"""The thresholds lens: the cost trade-off that a score's threshold implies for each group.

Implied threshold: prevalence of the truth at the threshold, 1/(1+c) where c is the cost of one
false negative in false positives that makes the threshold the cheapest one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.decisions.labels import OVERALL
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.collect import Need, group_needs
from evenhand.decisions.tallies.near import nearest_rows
from evenhand.decisions.tallies.thresholds import Margins
from evenhand.errors import UsageError
from evenhand.lenses.rows import KNOWN_SHARES, LensResult, Options, Rows, exclusions
from evenhand.lenses.scope import (
    HIDDEN_UNDER,
    REST_ALONE,
    Scope,
    choose_reference,
    threshold_rule,
)
from evenhand.lenses.settings import check_setting_groups, truth_quality
from evenhand.lenses.statistical.reviewed import reviewed, withhold
from evenhand.lenses.thresholds import lacks as lacks
from evenhand.lenses.thresholds.costs import cost_curve
from evenhand.lenses.thresholds.margins import Margin, measure_margins, tally_margins
from evenhand.lenses.thresholds.rows import (
    comparison_rows,
    corrected_rows,
    group_rows,
    summary_rows,
)
from evenhand.stats.calibration import (
    Monotonicity,
    PrevalenceBins,
    fall_tests,
    prevalence_bins,
)
from evenhand.stats.estimate import FloatArray, number, numbers
from evenhand.stats.thresholds.histogram import leverage_fit
from evenhand.stats.thresholds.implied import ImpliedThresholds, bandwidth_curve

LENS = "thresholds"
# Bandwidths that an estimate is shown at, as multiples of its own.
MULTIPLES = (0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
# Draws of a first look at whether prevalence falls, and the p up to which a closer one is taken. Of
# many groups nearly all are done with after a short look, and those left after a longer one.
LOOKS = ((199, 0.05),)
MANY_GROUPS, LONG_LOOKS = 100, ((39, 0.1), (199, 0.02), (1_999, 0.004), (9_999, 0.0008))


def needs(roles: Roles) -> list[Need]:
    """The tables this lens measures from: counts, for the classes, and scores around the cut."""
    return [*group_needs("counts", roles), *group_needs("scores", roles, [str(roles.score)])]


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Implied threshold and cost ratio of every group of every attribute, and their contrasts."""
    settings = options.settings
    bandwidth = _positive_number(settings, "bandwidth")
    parts: list[Rows] = []
    notes: list[str] = []
    tallies = []
    excluded: dict[str, int] = {}
    groups: set[str] = set()
    details: dict[str, Any] = {"attributes": []}
    for attribute in decisions.roles.attributes:
        tallied, positive, name = tally_margins(decisions, attribute)
        tallies.append(tallied.tally)
        groups.update(tallied.groups)
        excluded |= left_out(tallied, attribute, decisions)
        strata = measure_margins(
            decisions,
            attribute,
            tallied,
            positive=positive,
            bandwidth=bandwidth,
            level=options.level,
        )
        whole = strata[0]
        sizes = whole.histogram.counts.sum(axis=(1, 2))
        asked = decisions.roles.reference.get(attribute.name)
        scope = Scope(
            lens=LENS,
            attribute=attribute.name,
            rule=threshold_rule(decisions.roles),
            level=options.level,
            seed=options.seed,
            positive=name,
            groups=whole.groups,
            strata=tuple(margin.stratum for margin in strata),
            reference=choose_reference(whole.groups, sizes, asked, others=REST_ALONE),
        )
        known = None
        if tallied.unusable:
            known = reviewed(decisions.count(attribute), attribute, decisions.roles)
        marked, why = withhold(attribute_rows(scope, strata, settings), known)
        parts += marked
        if why:
            details[KNOWN_SHARES] = [*details.get(KNOWN_SHARES, ()), *why]
        tables, remarks = margin_details(scope, whole)
        notes += remarks + margin_notes(scope, whole)
        table: dict[str, Any] = {"attribute": attribute.name, "groups": tables}
        if count := _positive_number(settings, "evidence"):
            table["evidence"] = nearest_rows(decisions, attribute, tallied, count=int(count))
        details["attributes"].append(table)
        details["positive"] = name
    if settings.get("cost_ratio") is not None:
        chosen = cost_curve(decisions, cost_ratio=settings["cost_ratio"], level=options.level)
        details["cost_curves"] = chosen.plain()
    check_setting_groups(settings, tuple(a.name for a in decisions.roles.attributes), groups)
    if decisions.roles.reference and OVERALL in decisions.roles.reference.values():
        notes.append(
            "Implied thresholds are compared with everybody else instead of people overall, "
            "among whom the group itself would be."
        )
    return LensResult(
        lens=LENS,
        rows=Rows.concatenate(parts),
        excluded=excluded,
        notes=tuple(notes),
        details=details,
        tallies=tuple(tallies),
    )


def attribute_rows(scope: Scope, strata: list[Margin], settings: Mapping[str, Any]) -> list[Rows]:
    """All rows of one attribute, in the whole table and within strata."""
    parts: list[Rows] = []
    quality = truth_quality(settings, scope.attribute, scope.groups)
    expert = {
        kind: {name: float(share) for name, share in zip(scope.groups, shares) if share == share}
        for kind, shares in zip(("sensitivity", "specificity"), quality)
    }
    contrasts = []
    for margin in strata:
        parts += group_rows(scope, margin)
        fixed = corrected_rows(scope, margin, **expert)
        if fixed is not None:
            parts.append(fixed)
        if len(scope.groups) > 1:
            rows, between = comparison_rows(scope, margin)
            parts += rows
            contrasts.append(between)
    if len(strata) > 2 and contrasts:
        parts += summary_rows(scope, strata[1:], contrasts[1:])
    return parts


def margin_details(scope: Scope, margin: Margin) -> tuple[list[Any], list[str]]:
    """One plain table per group, and notes on groups whose prevalence falls as scores rise."""
    found = margin.found
    safe = np.where(np.isfinite(found.bandwidth), found.bandwidth, 1.0)
    curve = bandwidth_curve(
        margin.histogram, bandwidths=np.outer(MULTIPLES, safe), level=scope.level
    )
    narrower = _sensitivity(curve)
    near_bins = prevalence_bins(margin.histogram, half_widths=safe)
    tested = [g for g in range(len(margin.groups)) if g not in margin.discrete]
    tests = _falling([near_bins[g] for g in tested], groups=len(margin.groups), seed=scope.seed)
    falling = dict(zip(tested, tests, strict=True))
    cut = np.where(np.isfinite(found.threshold), found.threshold, np.nan)
    value = margin.value
    shown = {
        "bandwidth": found.bandwidth,
        "n": found.n,
        "n_effective": found.n_effective,
        "raw": found.raw,
        "slope": found.slope,
        "centre": found.centre,
        "standard_error": found.centre_error,
        "threshold": found.threshold,
        "implied_threshold": value,
        "gap": value - cut,
        "gap_low": found.low - cut,
        "gap_high": found.high - cut,
    }
    plain = {name: numbers(column) for name, column in shown.items()}
    strict = leverage_fit(margin.histogram, bandwidth=safe, degree=2).standard_error
    tables, notes = [], []
    for g, name in enumerate(margin.groups):
        table: dict[str, Any] = {"group": name, "threshold": plain["threshold"][g]}
        if g in margin.discrete:
            table |= {"kind": "discrete", "margin": _discrete(margin, g)}
            tables.append(table)
            continue
        defined = found.undefined[g] is None
        table |= {"kind": "continuous"} | {name: plain[name][g] for name in _FITTED}
        table |= {
            "standard_error_hc3": number(strict[g]) if defined else None,
            "sensitivity": narrower[g] if defined else None,
        }
        near = falling[g]
        shift = cut[g] if np.isfinite(cut[g]) else 0.0
        table["calibration"] = {name: plain[name][g] for name in _CALIBRATED} | {
            "score": numbers(near.scores + shift),
            "n": numbers(near.n),
            "prevalence": _plain(near.prevalence, near.n),
            "isotonic": _plain(near.fitted, near.n),
            "p_falls": number(near.p),
        }
        # Every group is tested, so the share of false alarms is split among them.
        if near.p * len(margin.groups) <= 0.05:
            table["falls"] = True
            notes.append(
                f"{name}: prevalence falls as the score rises near the threshold "
                f"(p = {near.p:.3f}), so one threshold may not be the cheapest everywhere."
            )
        tables.append(table)
    return tables, notes


def margin_notes(scope: Scope, margin: Margin) -> list[str]:
    """What weakens single numbers, in sentences; equal weaknesses of many groups in one."""
    by_warning: dict[str, list[str]] = {}
    for g, name in enumerate(margin.groups):
        if g in margin.discrete:
            by_warning.setdefault(
                "scores take few values, so decisions identify a set of cost ratios, not one", []
            ).append(name)
            continue
        for warning in margin.found.warnings[g]:
            by_warning.setdefault(warning, []).append(name)
    return [
        f"{scope.attribute} {', '.join(names[:5])}"
        f"{f' and {len(names) - 5} more' if len(names) > 5 else ''}: {warning}."
        for warning, names in by_warning.items()
    ]


def left_out(tallied: Margins, attribute: Attribute, decisions: Decisions) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    nobody = int(tallied.tally.sums["n"][tallied.tally.codes["group"] < 0].sum())
    reasons = {
        f"no {attribute.name}": nobody,
        "no truth, score or threshold": tallied.unusable,
    }
    remarks = {"no truth, score or threshold": "thresholds"}
    return exclusions(reasons, decisions.roles, remarks=remarks)


def _falling(
    cells: Sequence[PrevalenceBins | None], *, groups: int, seed: int
) -> list[Monotonicity]:
    """The tests of a falling prevalence, with draws enough to survive that all groups are."""
    looks = LONG_LOOKS if groups > MANY_GROUPS else LOOKS
    found: dict[int, Monotonicity] = {}
    left = list(range(len(cells)))
    for draws, open_until in (*looks, (max(1000, 50 * groups) - 1, -1.0)):
        tested = fall_tests([cells[g] for g in left], draws=draws, seed=seed)
        found |= dict(zip(left, tested, strict=True))
        left = [g for g in left if found[g].p <= open_until]
    return [found[g] for g in range(len(cells))]


def _plain(values: FloatArray, n: FloatArray) -> list[Any]:
    return numbers(np.where(n < HIDDEN_UNDER, np.nan, values))


# What is said of every fit, and of the threshold beside the implied one.
_FITTED = ("bandwidth", "n", "n_effective", "raw", "slope", "centre", "standard_error")
_CALIBRATED = ("threshold", "implied_threshold", "gap", "gap_low", "gap_high")
# What is shown at every bandwidth: the names of fits, and what tables call them.
_CURVE = {
    "bandwidth": "bandwidth",
    "n": "n",
    "centre": "value",
    "low": "low",
    "high": "high",
    "cost_ratio_centre": "cost_ratio",
    "cost_ratio_low": "cost_ratio_low",
    "cost_ratio_high": "cost_ratio_high",
}


def _sensitivity(curve: Sequence[ImpliedThresholds]) -> list[dict[str, Any]]:
    """The estimate of every group at narrower and wider bandwidths."""
    by_group = {name: np.stack([getattr(fit, name) for fit in curve], axis=1) for name in _CURVE}
    n = by_group["n"]
    plain = {
        name: numbers(by_group[source])
        if source in ("bandwidth", "n")
        else _plain(by_group[source], n)
        for source, name in _CURVE.items()
    }
    return [{name: rows[g] for name, rows in plain.items()} for g in range(len(n))]


def _discrete(margin: Margin, g: int) -> dict[str, Any]:
    part = margin.discrete[g]
    cut = margin.found.threshold[g]
    shift = cut if np.isfinite(cut) else 0.0
    table: dict[str, Any] = {}
    for side in ("accepted", "refused"):
        n = getattr(part, f"{side}_n")
        table[side] = {
            "score": number(getattr(part, f"{side}_score")[0] + shift),
            "prevalence": _plain(getattr(part, side), n)[0],
            "low": _plain(getattr(part, f"{side}_low"), n)[0],
            "high": _plain(getattr(part, f"{side}_high"), n)[0],
            "n": number(n[0]),
        }
    enough = min(part.accepted_n[0], part.refused_n[0]) >= HIDDEN_UNDER
    for name in ("cost_ratio_low", "cost_ratio_high", "cost_ratio_lowest", "cost_ratio_highest"):
        table[name] = number(getattr(part, name)[0]) if enough else None
    return table


def _positive_number(settings: Mapping[str, Any], name: str) -> float | None:
    value = settings.get(name)
    if value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = float("nan")
    if not 0 < found < float("inf"):
        what = {
            "bandwidth": "the distance from the threshold within which rows count, such as 0.1",
            "evidence": "how many rows nearest the threshold to show, such as 5",
        }
        raise UsageError(f"{name}={value!r} is not a number above 0. Give {what[name]}.")
    return found
