"""The labelers lens: do people who label apply one standard to every group's items?

Signal detection tells "less able to tell" (separation) from "a different standard" (criterion
and the cost ratio that it implies). Single labelers are pooled and never ranked.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.decisions.labeler_tallies import (
    ItemTable,
    item_table,
    label_counts,
    repeated_labels,
)
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.confusion import prepare
from evenhand.lenses.labeler_average import average_rows
from evenhand.lenses.labeler_contrasts import (
    REST,
    Difference,
    contrast_rows,
    differences,
    splits,
    summary_rows,
)
from evenhand.lenses.labeler_counts import (
    Sample,
    check_setting_groups,
    given_prevalence,
    label_tables,
    samples,
    truth_quality,
)
from evenhand.lenses.labeler_details import (
    count_details,
    forest_details,
    item_note,
    pool_notes,
    pooled_contrasts,
    sharing_note,
    spread_details,
)
from evenhand.lenses.labeler_groups import LENS, Setting, flag_notes, group_rows, group_signal
from evenhand.lenses.labeler_pool import labeler_rows, labeler_spans
from evenhand.lenses.labeler_times import time_details
from evenhand.lenses.labeler_truth import corrected_rows
from evenhand.lenses.lens import LensResult, Options, found_missing
from evenhand.lenses.rows import Rows

__all__ = ["LENS", "lacks", "measure"]
OVERALL = "<overall>"


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    roles = decisions.roles
    if roles.labeler is None:
        return "a labeler column"
    if not roles.group:
        return "a group column"
    if roles.truth is None:
        return "a truth column: what an expert says is the case"
    if roles.rule not in ("given", "score>=t"):
        return "a decision column: what the labeler said"
    return None


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Criterion, separation and implied costs by group, by labeler, and against a reference."""
    decisions.survey  # noqa: B018 — refuses unusable scores before anything is counted
    settings = options.settings
    parts: list[Rows] = []
    notes: list[str] = []
    tallies: list[Tally] = []
    excluded: dict[str, int] = {}
    details: dict[str, Any] = {"attributes": []}
    known: set[str] = set()
    for attribute in decisions.roles.attributes:
        tally = label_counts(decisions, attribute, longest_seconds=_longest(settings))
        tallies.append(tally)
        known.update(tally.labels["group"])
        excluded |= left_out(tally, attribute, decisions.roles)
        found = attribute_samples(decisions, attribute, tally, settings)
        if isinstance(found, str):
            notes.append(found)
            continue
        positive, tables = found
        notes += _unnamed_items(tables[0])
        setting = Setting(
            attribute=attribute.name,
            positive=positive,
            rule=decisions.roles.rule,
            level=options.level,
            seed=options.seed,
        )
        rows, told, table = attribute_rows(setting, tables, decisions.roles, settings)
        parts += rows
        notes += told
        if decisions.roles.seconds:
            asked = choose_reference(tables[0], decisions.roles.reference.get(attribute.name))
            table["times"], said = time_details(
                prepare(tally, decisions.roles)[0],
                groups=tables[0].groups,
                reference=None if asked == REST else asked,
                level=options.level,
            )
            notes += said
        details["positive"] = positive
        details["attributes"].append({"attribute": attribute.name, **table})
    check_setting_groups(settings, tuple(a.name for a in decisions.roles.attributes), known)
    return LensResult(
        lens=LENS,
        rows=Rows.concatenate(parts),
        excluded=excluded,
        notes=(*_table_notes(decisions), *notes),
        details=details,
        tallies=tuple(tallies),
    )


def attribute_samples(
    decisions: Decisions, attribute: Attribute, tally: Tally, settings: Mapping[str, Any]
) -> tuple[str, list[Sample]] | str:
    """The positive and one sample for the whole table and each stratum; a sentence if none."""
    roles = decisions.roles
    counts, labelers, groups, strata, positive = label_tables(tally, roles)
    if positive is None:
        return (
            f"Labelers decide between {len(set(tally.labels['decision']))} classes: signal "
            "detection needs one that counts as positive (--positive)."
        )
    if not labelers:
        raise DataError(
            f"Nothing is left to measure for group={attribute.name!r}: no row has a group, a "
            "labeler, a truth and a decision."
        )

    def items(within: tuple[str, ...]) -> ItemTable | None:
        return item_table(decisions, attribute, positive=positive, groups=groups, strata=within)

    return positive, samples(
        counts,
        labelers=labelers,
        groups=groups,
        strata=strata,
        items=items(()),
        stratum_items=items(strata) if strata else None,
        given=given_prevalence(settings, attribute.name, groups),
    )


def attribute_rows(
    setting: Setting, found: list[Sample], roles: Roles, settings: Mapping[str, Any]
) -> tuple[list[Rows], list[str], dict[str, Any]]:
    """All rows of one attribute, what is worth saying, and what the report draws."""
    parts: list[Rows] = []
    notes: list[str] = []
    whole = found[0]
    reference = choose_reference(whole, roles.reference.get(setting.attribute))
    sensitivity, specificity = truth_quality(settings, setting.attribute, whole.groups)
    details: dict[str, Any] = {}
    contrasts: list[list[Difference]] = []
    for sample in found:
        signal = group_signal(sample, level=setting.level)
        parts += group_rows(setting, sample, signal)
        parts += corrected_rows(
            setting, sample, signal, sensitivity=sensitivity, specificity=specificity
        )
        notes += flag_notes(sample, signal, setting.attribute)
        if sample is whole:
            details["counts"] = count_details(sample, signal)
            details["sensitivity"] = spread_details(sample, signal)
        if len(sample.groups) > 1:
            index, between = differences(setting, sample, reference=reference)
            parts += contrast_rows(setting, sample, reference, index, between)
            contrasts.append(between)
            if sample is whole:
                details["splits"] = splits(sample, reference, index, between)
    if len(contrasts) > 2:
        parts += summary_rows(setting, found[1:], reference, contrasts[1:])
    rows, said, forest = _single_labelers(setting, whole, reference, contrasts[:1])
    return parts + rows, notes + said, details | forest


def _single_labelers(
    setting: Setting, sample: Sample, reference: str, contrasts: list[list[Difference]]
) -> tuple[list[Rows], list[str], dict[str, Any]]:
    """Rows of single labelers, notes on whether they differ, and the forest."""
    place = None if reference == REST else sample.groups.index(reference)
    spans = labeler_spans(setting, sample, reference=place)
    rows = labeler_rows(setting, sample, spans, reference=place)
    notes = pool_notes(sample, spans, setting.attribute)
    details: dict[str, Any] = {"forest": forest_details(sample, spans)}
    if spans.pooled is not None and place is not None and contrasts:
        rows += average_rows(setting, sample, spans.pooled, reference=place)
        told = pooled_contrasts(sample, spans.pooled, reference=place)
        details["pooled_contrasts"] = told
        for one, between in zip(told, contrasts[0]):
            gap = between.contrasts.get("criterion_gap")
            if gap is not None and (gap.low > 0 or gap.high < 0):
                notes.append(sharing_note(one, len(sample.labelers)))
            if (said := item_note(one)) is not None and sample.repeated:
                notes.append(said)
    return rows, notes, details


def choose_reference(sample: Sample, asked: str | None) -> str:
    """The reference asked for, or the group with most labels, the first by name among equals."""
    if asked is None:
        return sample.groups[int(np.argmax(sample.labels))]
    if asked in (REST, OVERALL):
        return REST
    if asked not in sample.groups:
        raise UsageError(
            f"reference={asked!r} is not a group.{nearest(asked, list(sample.groups))} "
            f"The groups are {', '.join(sample.groups[:8])}; or write {REST} or {OVERALL}."
        )
    return asked


def left_out(tally: Tally, attribute: Attribute, roles: Roles) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    n, codes = tally.sums["n"], tally.codes
    reasons = {f"no {attribute.name}": n[codes["group"] < 0].sum()}
    for key in ("labeler", "truth", "decision"):
        reasons[f"no {key} (labelers)"] = n[codes[key] < 0].sum()
    if "stratum" in codes:
        reasons[f"no {roles.stratum} (kept outside strata)"] = n[codes["stratum"] < 0].sum()
    return found_missing(reasons, roles)


def _table_notes(decisions: Decisions) -> list[str]:
    """What is worth saying of the table, whatever the attribute."""
    notes = []
    repeated = repeated_labels(decisions)
    if repeated:
        told = "1 label repeats" if repeated == 1 else f"{repeated:,} labels repeat"
        notes.append(f"{told} a labeler's label of the same item; all were kept.")
    if decisions.roles.weight:
        notes.append("The labelers lens counts every label once and does not read weights.")
    if OVERALL in decisions.roles.reference.values():
        notes.append(
            "Labelers' standards are compared with everybody else's items instead of all items, "
            "among which the group's own would be."
        )
    return notes


def _unnamed_items(sample: Sample) -> list[str]:
    """How many labels do not say which item they judge, where items are named."""
    if sample.items is None:
        return []
    missing = int(sample.counts.sum() - sample.items.labels.sum())
    if not missing:
        return []
    told = "1 label names no item" if missing == 1 else f"{missing:,} labels name no item"
    return [f"{told}: counted as labels, but neither for the prevalence nor for items' clusters."]


def _longest(settings: Mapping[str, Any]) -> float | None:
    value = settings.get("longest_seconds")
    if value is None:
        return None
    if not isinstance(value, int | float) or not value > 0:
        raise UsageError(
            f"longest_seconds={value!r} is not a number above 0. Give the longest time that "
            "counts as labelling, such as 60."
        )
    return float(value)
