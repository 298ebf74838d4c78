"""Gaps per class and group: the statistical lens."""

from collections.abc import Sequence
from typing import Any

from evenhand.findings.sentences import base_of, plural, words
from evenhand.report.blocks import Block, folded, note, section, slug
from evenhand.report.forests import (
    by_both,
    by_class,
    by_group,
    forest_figure,
    numbers_table,
    value_text,
)
from evenhand.report.labels import short
from evenhand.report.table import impact_ratios
from evenhand.report.view import Row, View, by_size, headline, with_findings

LENS = "statistical"
HEADLINES = (
    "true_positive_rate_gap",
    "false_positive_rate_gap",
    "selection_rate_gap",
    "accuracy_gap",
)
_EITHER = {
    "true_positive_rate": ("where the truth is the class, the group is decided so", "found"),
    "false_positive_rate": ("where the truth is another, the group is decided so", "wrongly given"),
    "selection_rate": ("the group is decided so", "given"),
    "accuracy": ("decisions on the group are right", "right"),
}
MOST_FIGURES = 4


def gaps_section(view: View) -> dict[str, Any] | None:
    """The section on gaps between groups; None where the lens gave nothing."""
    if not view.where(LENS):
        return None
    found = view.lens_findings(LENS)
    blocks: list[Block] = []
    for attribute in view.attributes(LENS):
        blocks += _figures(view, attribute)
    blocks += _spread(view)
    blocks += _impact(view)
    heading = headline(found[0]["sentence"]) if found else "No gap between groups is told"
    return section(
        "gaps",
        kicker="Gaps by group and class",
        heading=heading,
        lead="Rates of each group beside the reference’s. A gap is a difference, not yet a cause: "
        "a positive one means only a higher rate.",
        blocks=with_findings(found, blocks, heading=heading),
    )


def _figures(view: View, attribute: str) -> list[Block]:
    limited = [
        one["measure"]
        for one in view.lens_findings(LENS)
        if one["attribute"] == attribute and base_of(one["measure"]) in _EITHER
    ]
    names = list(dict.fromkeys([*limited, *HEADLINES]))
    blocks: list[Block] = []
    for measure in names:
        rows = by_size(view.whole(LENS, measure, attribute=attribute))
        if not rows:
            continue
        blocks.append(_figure(view, attribute, measure, rows))
    leading, rest = blocks[:2], blocks[2:MOST_FIGURES]
    # Two figures say most; the others open on demand.
    return leading + ([folded(f"More gaps by {short(attribute)}", rest)] if rest else [])


def _figure(view: View, attribute: str, measure: str, rows: Sequence[Row]) -> Block:
    classes = {row["class"] for row in rows}
    groups = {row["group"] for row in rows}
    label = by_group if len(classes) == 1 else by_class if len(groups) == 1 else by_both
    rate = str(base_of(measure))
    what, _ = _EITHER.get(rate, (words(rate), ""))
    reference = {row["reference"] for row in rows}
    against = f" against {short(next(iter(reference)))}" if len(reference) == 1 else ""
    who = f"{short(next(iter(groups)))}{against}" if len(groups) == 1 else f"each group{against}"
    found = [one for one in view.lens_findings(LENS, measure) if one["attribute"] == attribute]
    title = (
        headline(found[0]["sentence"])
        if found
        else f"No gap in {words(rate)} by {short(attribute)} can be told from chance"
    )
    shown = sorted(rows[:30], key=lambda row: -(row["value"] if row["value"] is not None else -9))
    return forest_figure(
        f"{slug(measure)}-{slug(attribute)}",
        rows,
        title=title,
        axis=f"Gap in {words(rate)}, {who}",
        read=f"a mark right of the line means that {what} more often, left of it less often than "
        f"the reference. The line is the interval at {view.level} for all of them together.",
        label=label,
        plain=f"Gap in {words(rate)} by {short(attribute)}",
        about=[(measure, attribute)],
        zero=0.0,
        order=shown if len(classes) > 1 else sorted(rows[:30], key=lambda row: str(row["group"])),
    )


def _spread(view: View) -> list[Block]:
    """Aggregates over classes and groups, beside what chance alone would give."""
    names = [
        name
        for name in sorted(view.measures(LENS))
        if name.endswith(("_gap_rms", "_gap_rms_corrected", "_gap_worst", "_spread_corrected"))
        or name == "equalised_odds"
    ]
    kept = [
        name
        for name in names
        if name.startswith(("true_positive", "false_positive_rate", "selection", "equalised"))
    ]
    rows = [row for name in kept for row in view.whole(LENS, name)]
    rms = [row for row in rows if "_rms" in row["measure"]]
    if not rows:
        return []
    shown = rms or rows
    floors = {
        (row["measure"], row["attribute"]): row
        for row in view.where(LENS)
        if row["measure"].endswith("_gap_rms_null_level")
    }
    told = []
    for row in rms:
        if not row["measure"].endswith("_gap_rms") or row["value"] is None:
            continue
        floor = floors.get((f"{row['measure']}_null_level", row["attribute"]))
        if floor is not None and floor["value"] is not None:
            told.append(
                f"By {short(row['attribute'])}, the root mean square {words(row['measure'])[:-4]} "
                f"over {plural(row['n'] or 0, 'class', 'classes')} is {value_text(row)}; sampling "
                f"noise alone would give {value_text(floor)}."
            )
    held = numbers_table(by_size(shown), caption="Over all classes and groups", most=24)
    title = "All classes in one number" if rms else "The widest gaps between any two groups"
    return [folded(title, [*(note(text) for text in told), held])]


def _impact(view: View) -> list[Block]:
    rows = impact_ratios(view.record)
    if not rows or len({row["class"] for row in rows}) > 1:
        return []
    held = numbers_table(
        rows,
        caption="Selection rate divided by the highest group’s (no pass mark is implied)",
        most=30,
    )
    return [folded("Impact ratios", [held])]
