"""Labelers' criterion and separation: another standard, or less able to tell?"""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.findings.sentences import number
from evenhand.report.blocks import Block, as_csv, figure, folded, section, slug, table
from evenhand.report.forests import forest_figure
from evenhand.report.labels import cell, short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.report.view import View, by_size, headline, with_findings

LENS = "labelers"
MOST_LABELERS, MOST_GROUPS = 40, 4
_READ = {
    "criterion": "higher means that a labeler wants stronger signs before saying yes",
    "separation": "higher means that a labeler tells yes from no more clearly",
}


def labelers_section(view: View) -> dict[str, Any] | None:
    """The section on labelers; None where the lens gave nothing."""
    if not view.where(LENS):
        return None
    found = view.lens_findings(LENS)
    blocks: list[Block] = []
    for one in view.details(LENS).get("attributes") or []:
        blocks += _contrasts(view, one["attribute"])
        if one.get("forest"):
            blocks.append(_forest(view, one["attribute"], one["forest"]))
        blocks += _pooled(one)
        blocks += _times(one)
    if not any(block["kind"] == "figure" for block in blocks):
        for attribute in view.attributes(LENS):
            blocks += _contrasts(view, attribute)
    heading = (
        headline(found[0]["sentence"])
        if found
        else "No difference in how labelers treat groups can be told from chance"
    )
    return section(
        "labelers",
        kicker="Labelers",
        heading=heading,
        lead="Two things can differ when people label: where they draw the line (criterion) and "
        "how well they tell the two apart (separation). The first is a standard, the second is "
        "skill or evidence. Nobody is ranked.",
        blocks=with_findings(found, blocks, heading=heading),
    )


def _contrasts(view: View, attribute: str) -> list[Block]:
    rows = [
        row
        for measure in ("criterion_gap", "separation_gap")
        for row in view.whole(LENS, measure, attribute=attribute)
    ]
    if not rows:
        return []
    found = view.lens_findings(LENS, "criterion_gap", "separation_gap")
    mine = [one for one in found if one["attribute"] == attribute]

    def label(row: Mapping[str, Any]) -> str:
        kind = str(row["measure"]).removesuffix("_gap")
        return f"{short(row['group'], most=20)}: {kind}"

    reference = {row["reference"] for row in rows}
    against = f" against {short(next(iter(reference)))}" if len(reference) == 1 else ""
    return [
        forest_figure(
            f"labelers-gap-{slug(attribute)}",
            by_size(rows),
            title=headline(mine[0]["sentence"])
            if mine
            else f"No difference in standard or skill by {short(attribute)} can be told",
            axis=f"Gap{against}, all labelers together",
            read="right of the line: a stricter criterion, or a clearer separation, for the group "
            f"than for the reference. The line is the interval at {view.level}.",
            label=label,
            plain=f"Standard and skill by {short(attribute)}",
            about=[("criterion_gap", attribute), ("separation_gap", attribute)],
            zero=0.0,
            order=sorted(rows, key=lambda row: (str(row["group"]), row["measure"])),
        )
    ]


def _forest(view: View, attribute: str, forest: Mapping[str, Any]) -> Block:
    names = list(forest["labelers"])
    groups = list(forest["groups"])
    order = sorted(range(len(names)), key=lambda i: str(names[i]))
    shown, kept = order[:MOST_LABELERS], groups[:MOST_GROUPS]
    charts, lines = [], []
    for quantity in ("criterion", "separation"):
        held = forest.get(quantity) or {}
        charts.append(
            {
                "kind": "grouped",
                "axis": quantity.capitalize(),
                "title": quantity.capitalize(),
                "rows": [
                    {
                        "line": names[i],
                        "series": short(group, most=24),
                        "value": _at(held, "value", i, g),
                        "low": _at(held, "low", i, g),
                        "high": _at(held, "high", i, g),
                        "tip": f"{short(names[i])}, {short(group)}: "
                        f"{number(_at(held, 'value', i, g))}",
                    }
                    for i in shown
                    for g, group in enumerate(kept)
                ],
            }
        )
        lines += [
            [names[i], group, quantity]
            + [_at(held, key, i, g) for key in ("value", "low", "high")]
            + [_at(forest, "labels", i, g)]
            for i in order
            for g, group in enumerate(groups)
        ]
    pooled = bool(forest.get("pooled"))
    how = (
        "Estimates are pooled: a labeler with few labels is drawn toward the others."
        if pooled
        else "Each labeler stands alone; with few labels the intervals are wide."
    )
    notes = [how]
    if len(names) > len(shown):
        notes.append(
            f"{len(shown)} of {len(names):,} labelers are drawn, by name; all are in the CSV."
        )
    if len(groups) > len(kept):
        notes.append(f"{len(kept)} of {len(groups):,} groups are drawn.")
    reliability = forest.get("reliability") or {}
    for quantity in ("criterion", "separation"):
        values = [v for v in reliability.get(quantity) or [] if v is not None]
        if values:
            notes.append(
                f"Reliability of the {quantity} is {number(min(values))} to {number(max(values))}"
                " between groups; under 0.5 labelers cannot be put in any order."
            )
    columns = ("Labeler", "Group", "Quantity", "Value", "Interval", "Labels")
    rows = [
        [
            cell(line[0]),
            cell(line[1]),
            line[2],
            number(line[3]),
            f"[{number(line[4])}, {number(line[5])}]" if line[4] is not None else "hidden",
            f"{line[6]:,.0f}" if line[6] is not None else "–",
        ]
        for line in lines
    ]
    title = f"Criterion and separation of every labeler by {short(attribute)}"
    return figure(
        f"labelers-{slug(attribute)}",
        title=title,
        charts=charts,
        read=f"each line is a labeler, in the order of their names; {_READ['criterion']}, and "
        f"{_READ['separation']}. Marks of one labeler that lie apart mean that the groups are "
        "treated differently.",
        legend=[
            {"shape": SERIES_SHAPES[g], "colour": SERIES[g], "text": short(group, most=24)}
            for g, group in enumerate(kept)
        ],
        numbers=table(title, columns, rows, numbers=columns[3:], most=100),
        csv_text=as_csv(("labeler", "group", "quantity", "value", "low", "high", "labels"), lines),
        notes=notes,
    )


def _at(table_of: Mapping[str, Any], key: str, i: int, g: int) -> float | None:
    values: Sequence[Sequence[float | None]] = table_of.get(key) or []
    return values[i][g] if i < len(values) and g < len(values[i]) else None


def _pooled(one: Mapping[str, Any]) -> list[Block]:
    rows = []
    for pair in one.get("pooled_contrasts") or []:
        for key, name in (("criterion_gap", "Criterion"), ("separation_gap", "Separation")):
            gap = pair.get(key)
            if gap:
                rows.append(
                    [
                        f"{short(pair['group'])} against {short(pair['reference'])}",
                        name,
                        number(gap.get("value")),
                        f"[{number(gap.get('low'))}, {number(gap.get('high'))}]",
                    ]
                )
    split = [
        [
            f"{short(pair['group'])} against {short(pair['reference'])}",
            number(pair.get("total")),
            number(pair.get("prevalence")),
            number(pair.get("behaviour")),
        ]
        for pair in one.get("splits") or []
    ]
    blocks = []
    if rows:
        columns = ("Pair", "Quantity", "Gap", "Interval")
        blocks.append(table("The average labeler, pooled", columns, rows, numbers=columns[2:]))
    if split:
        columns = ("Pair", "Log cost ratio, gap", "By prevalence", "By behaviour")
        blocks.append(
            table("Where a gap in cost ratio comes from", columns, split, numbers=columns[1:])
        )
    return [folded("The average labeler, and where a gap comes from", blocks)] if blocks else []


def _times(one: Mapping[str, Any]) -> list[Block]:
    held = one.get("times") or []
    rows = [
        [
            cell(line["group"]),
            f"{line['labels']:,.0f}",
            number(line.get("mean_seconds")),
            number(line.get("share_right")),
            number(line.get("drift")),
            number(line.get("boundary")),
        ]
        for line in held
        if line.get("group") is not None and line.get("labels") is not None
    ]
    if not rows:
        return []
    columns = ("Group", "Labels", "Mean seconds", "Share right", "Drift", "Boundary")
    caption = "Time taken: a first reading, not a verdict"
    return [folded("How long labels took", [table(caption, columns, rows, numbers=columns[1:])])]
