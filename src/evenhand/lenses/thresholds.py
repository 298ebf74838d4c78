"""The thresholds lens: the cost trade-off that a score's threshold implies for each group.

Implied threshold: prevalence of the truth at the threshold, 1/(1+c) where c is the cost of one
false negative in false positives that makes the threshold the cheapest one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.threshold_tallies import Margins
from evenhand.decisions.threshold_values import nearest_rows
from evenhand.decisions.unit_margins import has_unit_grid
from evenhand.errors import UsageError, nearest
from evenhand.lenses.cost_curves import cost_curve
from evenhand.lenses.implied_contrasts import REST, comparison_rows, summary_rows
from evenhand.lenses.implied_rows import Frame, corrected_rows, group_rows
from evenhand.lenses.lens import LensResult, Options, found_missing
from evenhand.lenses.margins import Margin, measure_margins, tally_margins
from evenhand.lenses.rows import Rows
from evenhand.lenses.threshold_details import margin_details

LENS = "thresholds"
OVERALL = "<overall>"


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    roles = decisions.roles
    if not roles.group:
        return "a group column"
    if roles.score is None:
        return "a score column"
    if roles.threshold is None:
        return "a threshold"
    if roles.truth is None:
        return "a truth column"
    return None


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Implied threshold and cost ratio of every group of every attribute, and their contrasts."""
    if not has_unit_grid(decisions):
        decisions.survey  # noqa: B018 — refuses unusable scores and weights before counting
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
        found = measure_margins(
            decisions,
            attribute,
            tallied,
            positive=positive,
            bandwidth=bandwidth,
            level=options.level,
        )
        frame = Frame(
            attribute=attribute.name,
            positive=name,
            rule=threshold_rule(decisions),
            level=options.level,
            seed=options.seed,
        )
        parts += attribute_rows(frame, found, decisions, settings)
        tables, told = margin_details(found[0], level=options.level, seed=options.seed)
        notes += told + margin_notes(found[0], attribute)
        table: dict[str, Any] = {"attribute": attribute.name, "groups": tables}
        if count := _positive_number(settings, "evidence"):
            table["evidence"] = nearest_rows(decisions, attribute, tallied, count=int(count))
        details["attributes"].append(table)
        details["positive"] = name
    if settings.get("cost_ratio") is not None:
        chosen = cost_curve(decisions, cost_ratio=settings["cost_ratio"], level=options.level)
        details["cost_curves"] = chosen.plain()
    for setting in ("truth_sensitivity", "truth_specificity"):
        _known_groups(settings.get(setting), setting, groups)
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


def attribute_rows(
    frame: Frame, found: list[Margin], decisions: Decisions, settings: Mapping[str, Any]
) -> list[Rows]:
    """All rows of one attribute, in the whole table and within strata."""
    parts: list[Rows] = []
    names = found[0].groups
    reference = choose_reference(found[0], decisions.roles.reference.get(frame.attribute))
    expert = {
        kind: truth_rates(settings, kind, frame.attribute, names)
        for kind in ("sensitivity", "specificity")
    }
    contrasts = []
    for margin in found:
        parts += group_rows(frame, margin)
        fixed = corrected_rows(frame, margin, **expert)
        if fixed is not None:
            parts.append(fixed)
        if len(names) > 1:
            rows, between = comparison_rows(frame, margin, reference)
            parts += rows
            contrasts.append(between)
    if len(found) > 2 and contrasts:
        parts += summary_rows(frame, found[1:], contrasts[1:], reference)
    return parts


def choose_reference(margin: Margin, asked: str | None) -> str:
    """The reference asked for, or the group with most rows, the first by name among equals."""
    if asked is None:
        return margin.groups[int(np.argmax(margin.histogram.counts.sum(axis=(1, 2))))]
    if asked in (REST, OVERALL):
        return REST
    if asked not in margin.groups:
        raise UsageError(
            f"reference={asked!r} is not a group.{nearest(asked, list(margin.groups))} "
            f"The groups are {', '.join(margin.groups[:8])}; or write {REST} or {OVERALL}."
        )
    return asked


def margin_notes(margin: Margin, attribute: Attribute) -> list[str]:
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
        f"{attribute.name} {', '.join(names[:5])}"
        f"{f' and {len(names) - 5} more' if len(names) > 5 else ''}: {warning}."
        for warning, names in by_warning.items()
    ]


def left_out(tallied: Margins, attribute: Attribute, decisions: Decisions) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    nobody = int(tallied.tally.sums["n"][tallied.tally.codes["group"] < 0].sum())
    reasons = {
        f"no {attribute.name}": nobody,
        "no truth, score or threshold (thresholds)": tallied.unusable,
    }
    return found_missing(reasons, decisions.roles)


def threshold_rule(decisions: Decisions) -> str:
    """The rule that the threshold stands for, with the number where there is one."""
    cut = decisions.roles.threshold
    return f"score>={cut:g}" if isinstance(cut, int | float) else "score>=t"


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


def truth_rates(
    settings: Mapping[str, Any], kind: str, attribute: str, groups: Iterable[str]
) -> dict[str, float]:
    """Sensitivity or specificity of the truth by group, as settings give it or a charter does.

    Examples:
        >>> quality = {"all": {"sensitivity": 0.9}, "sex": {"f": {"sensitivity": 0.8}}}
        >>> truth_rates({"truth_quality": quality}, "sensitivity", "sex", ["f", "m"])
        {'f': 0.8, 'm': 0.9}
    """
    given = settings.get(f"truth_{kind}")
    if isinstance(given, Mapping):
        return {str(name): float(rate) for name, rate in given.items()}
    if given is not None:
        return {name: float(given) for name in groups}
    quality = settings.get("truth_quality") or {}
    own = quality.get(attribute, {})
    found = {}
    for name in groups:
        known = own.get(name) or own.get("all") or quality.get("all")
        if known is not None:
            found[name] = float(known[kind])
    return found


def _known_groups(value: Any, setting: str, groups: set[str]) -> None:
    if not isinstance(value, Mapping):
        return
    for name in value:
        if str(name) not in groups:
            known = sorted(groups)
            raise UsageError(
                f"{setting} names {str(name)!r}, which is not a group."
                f"{nearest(str(name), known)} The groups are {', '.join(known[:8])}."
            )
