"""Gaps per class and group: the statistical lens."""

from collections.abc import Iterator, Sequence
from typing import Any

from evenhand.findings.limits import is_unreviewed
from evenhand.findings.sentences.words import words
from evenhand.lenses.measures import look_up, surely_apart
from evenhand.lenses.rows import Row
from evenhand.report.blocks import (
    Block,
    by_both,
    by_class,
    by_group,
    folded,
    forest_figure,
    note,
    numbers_table,
    section,
    slug,
    value_text,
)
from evenhand.report.labels import short
from evenhand.report.table import impact_ratios
from evenhand.report.view import View, by_size, with_findings
from evenhand.speech import plural

LENS = "statistical"
HEADLINES = (
    "true_positive_rate_gap",
    "false_positive_rate_gap",
    "selection_rate_gap",
    "accuracy_gap",
)
_OFTENER = {
    "true_positive_rate": "cases of the group whose truth is the class are decided so",
    "false_positive_rate": "cases of the group whose truth is another are decided so",
    "selection_rate": "the group is decided so",
    "accuracy": "decisions on the group are right",
}
# Sizes over classes or groups that are shown in one table, of these rates.
_SIZES_OF = ("true_positive_rate", "false_positive_rate", "selection_rate")
MOST_FIGURES = 4


def gaps_section(view: View) -> dict[str, Any] | None:
    """The section on gaps between groups; None where the lens gave nothing."""
    if LENS not in view.rows.lenses:
        return None
    found = view.lens_findings(LENS)
    blocks: list[Block] = []
    for attribute in view.attributes(LENS):
        blocks += _figures(view, attribute)
    blocks += _spread(view)
    blocks += _impact(view)
    heading = found[0]["heading"] if found else "There is no gap between groups to show"
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
        if one["attribute"] == attribute and _compares_rates(one["measure"])
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


def _unproven(rows: Sequence[Row]) -> str:
    """That no finding is made of these gaps: why not, or that it rests on few cases."""
    if any(map(is_unreviewed, rows)):
        return "the data cannot tell"
    few = [row for row in rows if row["value"] is not None and surely_apart(row)]
    return "proven only where cases are few" if few else "the data prove none"


def _figure(view: View, attribute: str, measure: str, rows: Sequence[Row]) -> Block:
    classes = {row["class"] for row in rows}
    groups = {row["group"] for row in rows}
    label = by_group if len(classes) == 1 else by_class if len(groups) == 1 else by_both
    record = look_up(measure)
    kind = "Ratio of" if record.kind == "ratio" else "Gap in"
    rate = str(record.base)
    what = (
        f"means that {_OFTENER[rate]} more often, left of it less often than the reference"
        if rate in _OFTENER
        else f"means a higher {look_up(rate).label}, left of it a lower one than the reference’s"
    )
    reference = {row["reference"] for row in rows}
    against = f" against {short(next(iter(reference)))}" if len(reference) == 1 else ""
    who = f"{short(next(iter(groups)))}{against}" if len(groups) == 1 else f"each group{against}"
    found = [one for one in view.lens_findings(LENS, measure) if one["attribute"] == attribute]
    title = (
        found[0]["heading"]
        if found
        else f"{kind} {words(rate)} by {short(attribute)}: {_unproven(rows)}"
    )
    return forest_figure(
        f"{slug(measure)}-{slug(attribute)}",
        rows,
        title=title,
        axis=f"{kind} {words(rate)}, {who}",
        read=f"a mark right of the line {what}. The line is the interval at {view.level} for all "
        "of them together.",
        label=label,
        plain=f"{kind} {words(rate)} by {short(attribute)}",
        about=[(measure, attribute)],
        zero=record.neutral,
        lines=("group", "groups") if len(classes) == 1 else ("class", "classes"),
    )


def _spread(view: View) -> list[Block]:
    """Aggregates over classes and groups, beside what chance alone would give."""
    kept = [name for name in sorted(view.measures(LENS)) if _is_shown_size(name)]
    rows = [row for name in kept for row in view.whole(LENS, name)]
    rms = [row for row in rows if look_up(row["measure"]).counts == "classes"]
    if not rows:
        return []
    shown = rms or rows
    told = [text for row in rms for text in _beside_noise(view, row)]
    held = numbers_table(by_size(shown), caption="Over all classes and groups", most=24)
    title = "All classes in one number" if rms else "The widest gaps between any two groups"
    return [folded(title, [*(note(text) for text in told), held])]


def _beside_noise(view: View, row: Row) -> Iterator[str]:
    """A plain root mean square beside what sampling noise alone would give."""
    record = look_up(row["measure"])
    if record.variant_of is not None or record.floor is None or row["value"] is None:
        return
    if is_unreviewed(row):
        return
    for floor in view.where(LENS, measure=record.floor, attribute=row["attribute"])[-1:]:
        if floor["value"] is not None:
            yield (
                f"By {short(row['attribute'])}, the root mean square {words(str(record.parts))} "
                f"over {plural(row['n'] or 0, 'class', 'classes')} is {value_text(row)}; sampling "
                f"noise alone would give {value_text(floor)}."
            )


def _is_shown_size(name: str) -> bool:
    record = look_up(name)
    if name == "equalised_odds":
        return True
    # Of spreads over groups only those without noise: the plain one is mostly noise.
    plain_spread = record.counts == "groups" and record.variant_of is None
    return record.kind == "distance" and record.base in _SIZES_OF and not plain_spread


def _compares_rates(name: str) -> bool:
    """Whether a measure is a gap or a ratio of rates that are counted from decisions."""
    record = look_up(name)
    return record.kind in ("gap", "ratio") and look_up(record.base or "").cells is not None


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
