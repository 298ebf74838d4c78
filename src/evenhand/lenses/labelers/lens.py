"""The labelers lens: do people who label apply one standard to every group's items?

The standard is how the two mistakes are weighed: the cost ratio. Signal detection tells what it
comes from: how common true cases are, the bar (criterion: how much evidence labelers ask for) and
skill (separation). Single labelers are pooled and never ranked.
"""

from collections.abc import Mapping
from typing import Any

from evenhand.decisions.labels import OVERALL
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.collect import Need, group_needs
from evenhand.decisions.tallies.labelers import ItemTable, item_table, label_counts, repeated_labels
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.lenses.labelers import lacks as lacks
from evenhand.lenses.labelers.contrasts import (
    Difference,
    contrast_rows,
    differences,
    splits,
    summary_rows,
)
from evenhand.lenses.labelers.details import (
    count_details,
    forest_details,
    item_note,
    pool_notes,
    pooled_contrasts,
    sharing_note,
    spread_details,
    time_details,
)
from evenhand.lenses.labelers.groups import (
    corrected_rows,
    flag_notes,
    group_rows,
    group_signal,
)
from evenhand.lenses.labelers.people import average_rows, labeler_rows, labeler_spans
from evenhand.lenses.labelers.sample import (
    Sample,
    given_prevalence,
    label_tables,
    samples,
)
from evenhand.lenses.rows import KNOWN_SHARES, LensResult, Options, Rows, exclusions
from evenhand.lenses.scope import REST_ALONE, Scope, choose_reference
from evenhand.lenses.settings import check_setting_groups, truth_quality
from evenhand.lenses.statistical.confusion import prepare
from evenhand.lenses.statistical.reviewed import reviewed, withhold
from evenhand.speech import agree, plural

LENS = "labelers"


def needs(roles: Roles) -> list[Need]:
    """The tables this lens measures from: labels by labeler, and by item; never by both."""
    return group_needs("labels", roles) + (group_needs("items", roles) if roles.item else [])


def measure(decisions: Decisions, options: Options) -> LensResult:
    """Criterion, separation and implied costs by group, by labeler, and against a reference."""
    settings = options.settings
    parts: list[Rows] = []
    notes: list[str] = []
    tallies: list[Tally] = []
    excluded: dict[str, int] = {}
    details: dict[str, Any] = {"attributes": []}
    known: set[str] = set()
    for attribute in decisions.roles.attributes:
        longest = _longest(settings)
        if decisions.tallies is not None and decisions.roles.seconds:
            _check_longest(longest, decisions.tallies.settings.get("longest_seconds"))
        tally = label_counts(decisions, attribute, longest_seconds=longest)
        tallies.append(tally)
        known.update(tally.labels["group"])
        excluded |= left_out(tally, attribute, decisions.roles)
        samples_or_note = attribute_samples(decisions, attribute, tally, settings)
        if isinstance(samples_or_note, str):
            notes.append(samples_or_note)
            continue
        positive, tables = samples_or_note
        notes += _unnamed_items(tables[0])
        asked = decisions.roles.reference.get(attribute.name)
        whole = tables[0]
        scope = Scope(
            lens=LENS,
            attribute=attribute.name,
            rule=decisions.roles.rule,
            level=options.level,
            seed=options.seed,
            positive=positive,
            groups=whole.groups,
            strata=tuple(sample.stratum for sample in tables),
            reference=choose_reference(whole.groups, whole.labels, asked, others=REST_ALONE),
        )
        rows, remarks, table = attribute_rows(scope, tables, settings)
        marked, why = withhold(rows, reviewed(tally, attribute, decisions.roles))
        parts += marked
        if why:
            details[KNOWN_SHARES] = [*details.get(KNOWN_SHARES, ()), *why]
        notes += remarks
        if decisions.roles.seconds:
            table["times"], remarks = time_details(scope, prepare(tally, decisions.roles)[0])
            notes += remarks
        details["positive"] = positive
        details["attributes"].append({"attribute": attribute.name, **table})
        if whole.poolable:
            # Errors are clustered by labeler, and the same labelers judge all groups.
            details.setdefault("units", {})[attribute.name] = {
                "unit": "labelers",
                "column": decisions.roles.labeler,
                "count": int((whole.counts.sum(axis=(1, 2)) > 0).sum()),
                "shared": True,
            }
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
    scope: Scope, tables: list[Sample], settings: Mapping[str, Any]
) -> tuple[list[Rows], list[str], dict[str, Any]]:
    """All rows of one attribute, what is worth saying, and what the report draws."""
    parts: list[Rows] = []
    notes: list[str] = []
    whole = tables[0]
    sensitivity, specificity = truth_quality(settings, scope.attribute, whole.groups)
    details: dict[str, Any] = {}
    contrasts: list[list[Difference]] = []
    for sample in tables:
        signal = group_signal(sample, level=scope.level)
        parts += group_rows(scope, sample, signal)
        parts += corrected_rows(
            scope, sample, signal, sensitivity=sensitivity, specificity=specificity
        )
        notes += flag_notes(sample, signal, scope.attribute)
        if sample is whole:
            details["counts"] = count_details(sample, signal)
            details["sensitivity"] = spread_details(sample, signal)
        if len(sample.groups) > 1:
            index, between = differences(scope, sample)
            parts += contrast_rows(scope, sample, index, between)
            contrasts.append(between)
            if sample is whole:
                details["splits"] = splits(scope, index, between)
    if len(contrasts) > 2:
        parts += summary_rows(scope, tables[1:], contrasts[1:])
    rows, remarks, forest = _single_labelers(scope, whole, contrasts[:1])
    return parts + rows, notes + remarks, details | forest


def left_out(tally: Tally, attribute: Attribute, roles: Roles) -> dict[str, int]:
    """Rows that could not be used, by reason."""
    n, codes = tally.sums["n"], tally.codes
    reasons = {f"no {attribute.name}": n[codes["group"] < 0].sum()}
    keys = ("labeler", "truth", "decision")
    for key in keys:
        reasons[f"no {key}"] = n[codes[key] < 0].sum()
    if "stratum" in codes:
        reasons[f"no {roles.stratum}"] = n[codes["stratum"] < 0].sum()
    remarks = {f"no {roles.stratum}": "kept outside strata"}
    remarks |= {f"no {key}": "labelers" for key in keys}
    return exclusions(reasons, roles, remarks=remarks)


def _single_labelers(
    scope: Scope, sample: Sample, contrasts: list[list[Difference]]
) -> tuple[list[Rows], list[str], dict[str, Any]]:
    """Rows of single labelers, notes on whether they differ, and the forest."""
    spans = labeler_spans(scope, sample)
    rows = labeler_rows(scope, sample, spans)
    notes = pool_notes(sample, spans, scope.attribute)
    details: dict[str, Any] = {"forest": forest_details(sample, spans)}
    if spans.pooled is not None and scope.place is not None and contrasts:
        averages = pooled_contrasts(sample, spans.pooled, reference=scope.place)
        blind = [str(average["group"]) for average, one in zip(averages, contrasts[0]) if one.blind]
        rows += average_rows(scope, sample, spans.pooled, blind=blind)
        details["pooled_contrasts"] = averages
        for average, between in zip(averages, contrasts[0]):
            gap = between.contrasts.get("criterion_gap")
            if gap is not None and (gap.low > 0 or gap.high < 0):
                notes.append(sharing_note(average, len(sample.labelers)))
            if (remark := item_note(average)) is not None and sample.repeated:
                notes.append(remark)
    return rows, notes, details


def _table_notes(decisions: Decisions) -> list[str]:
    """What is worth saying of the table, whatever the attribute."""
    notes = []
    repeated = repeated_labels(decisions)
    if repeated:
        labels = f"{plural(repeated, 'label')} {agree(repeated, 'repeats', 'repeat')}"
        notes.append(f"{labels} a labeler's label of the same item; all were kept.")
    if decisions.tallies is not None and decisions.roles.item:
        notes.append(
            "Whether somebody labelled one item twice is not known: tallies do not say who "
            "labelled what. The rows would tell."
        )
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
    labels = f"{plural(missing, 'label')} {agree(missing, 'names', 'name')} no item"
    return [f"{labels}: counted as labels, but neither for the prevalence nor for items' clusters."]


def _check_longest(asked: float | None, counted: float | None) -> None:
    """Refuse another longest time than the one that was chosen when labels were counted."""
    if asked is not None and asked != counted:
        chosen = "all times" if counted is None else f"times of up to {counted:g} seconds"
        raise UsageError(
            f"longest_seconds={asked:g}, and the tallies count {chosen}. Tally the table again "
            "with it (--longest-seconds)."
        )


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
