"""Labelers' bar and skill, and the weight of the two mistakes that they make together."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.lenses.measures import look_up
from evenhand.report.blocks import (
    Block,
    as_csv,
    by_group,
    figure,
    folded,
    forest_figure,
    interval_text,
    marks_by_value,
    section,
    slug,
    table,
    value_text,
)
from evenhand.report.labels import cell, short
from evenhand.report.palette import QUIET, SERIES, SERIES_SHAPES
from evenhand.report.view import View, by_size, with_findings
from evenhand.speech import number, plural

LENS = "labelers"
MOST_GROUPS = 6
_TOGETHER = "All labels together"
_QUANTITIES = (("criterion", "Bar (criterion)"), ("separation", "Skill (separation)"))
_GAPS = ("criterion_gap", "separation_gap")
_READ = {
    "criterion": "higher means that a labeler wants stronger signs before saying yes",
    "separation": "higher means that a labeler tells yes from no more clearly",
}


def labelers_section(view: View) -> dict[str, Any] | None:
    """The section on labelers; None where the lens gave nothing."""
    if LENS not in view.rows.lenses:
        return None
    found = view.lens_findings(LENS)
    blocks: list[Block] = []
    for one in view.details(LENS).get("attributes") or []:
        blocks += _contrasts(view, one["attribute"])
        if one.get("forest"):
            blocks.append(_spread(view, one["attribute"], one["forest"]))
        blocks += _pooled(view, one)
        blocks += _times(one)
    if not any(block["kind"] == "figure" for block in blocks):
        for attribute in view.attributes(LENS):
            blocks += _contrasts(view, attribute)
    heading = (
        found[0]["heading"]
        if found
        else "The data prove no difference in how labelers treat groups"
    )
    return section(
        "labelers",
        kicker="Labelers",
        heading=heading,
        lead="The standard is how the two mistakes are weighed (cost ratio). It comes from three "
        "things: how common true cases are, the bar (criterion: how much evidence labelers ask "
        "for) and skill (separation: how well they tell the two apart). One standard needs "
        "unequal bars where prevalence or skill differ. Nobody is ranked.",
        blocks=with_findings(found, blocks, heading=heading),
    )


def _contrasts(view: View, attribute: str) -> list[Block]:
    rows = [row for measure in _GAPS for row in _leading(view, measure, attribute)]
    if not rows:
        return []
    found = view.lens_findings(LENS, *_GAPS, *(f"{name}_average" for name in _GAPS))
    mine = [one for one in found if one["attribute"] == attribute]
    reference = {row["reference"] for row in rows}
    against = f" against {short(next(iter(reference)))}" if len(reference) == 1 else ""
    drawn = forest_figure(
        f"labelers-gap-{slug(attribute)}",
        by_size(rows),
        title=mine[0]["heading"]
        if mine
        else f"Bar and skill by {short(attribute)}: the data prove no difference",
        axis=f"Gap{against}, {_whose(rows)}",
        read="right of the line: a higher bar (criterion: labelers ask for more evidence), or a "
        "clearer separation of yes from no, for the group than for the reference. The line is the "
        f"interval at {view.level}.",
        plain=f"Bar and skill by {short(attribute)}",
        about=[(row["measure"], attribute) for row in rows[:1] + rows[-1:]],
        zero=0.0,
    )
    drawn["charts"] = [
        {
            **drawn["charts"][0],
            "title": title,
            "axis": f"Gap in {title[:1].lower()}{title[1:]}{against}, {_whose(rows)}",
            "rows": marks_by_value(held, by_group),
        }
        for quantity, title in _QUANTITIES
        if (held := [r for r in rows if _quantity(r) == quantity and r["value"] is not None])
    ] or drawn["charts"]
    return [drawn]


def _quantity(row: Mapping[str, Any]) -> str | None:
    return look_up(row["measure"]).base


def _leading(view: View, measure: str, attribute: str) -> list[Mapping[str, Any]]:
    """The average labeler's rows of a gap; those of all labels where labelers were not pooled."""
    average = view.whole(LENS, f"{measure}_average", attribute=attribute)
    return list(average or view.whole(LENS, measure, attribute=attribute))


def _whose(rows: Sequence[Mapping[str, Any]]) -> str:
    pooled = all(look_up(row["measure"]).variant_of for row in rows)
    return "the average labeler" if pooled else "all labels together"


def _spread(view: View, attribute: str, forest: Mapping[str, Any]) -> Block:
    """How labelers spread, one mark each, without their names: nobody is ranked or singled out."""
    count, groups = len(forest["labelers"]), list(forest["groups"])
    kept = groups[:MOST_GROUPS]
    charts, lines, body = [], [], []
    for quantity, name in _QUANTITIES:
        held = forest.get(quantity) or {}
        rows = []
        for g, group in enumerate(groups):
            known = [_values(held, forest, i, g) for i in range(count)]
            mine = sorted((one for one in known if one[0] is not None), key=lambda one: one[0] or 0)
            lines += [[group, quantity, *one] for one in mine]
            body.append([cell(group), name, f"{len(mine):,}", *_order_statistics(mine)])
            if group in kept:
                rows += [{"line": group, "value": one[0], "tip": number(one[0])} for one in mine]
        rows += _all_labels(view, quantity, attribute, kept)
        charts.append(
            {
                "kind": "strips",
                "axis": name,
                "title": name,
                "zero": None,
                "rows": rows,
                "followed": [_TOGETHER],
            }
        )
    columns = ("Group", "Quantity", "Labelers", "Lowest", "Middle", "Highest")
    title = f"How {plural(count, 'labeler')} spread, by {short(attribute)}"
    return figure(
        f"labelers-{slug(attribute)}",
        title=title,
        charts=charts,
        read=f"each tick is a labeler, whose name is not shown; {_READ['criterion']}, and "
        f"{_READ['separation']}. Ticks of one group away from another’s mean that most "
        "labelers treat the two differently; a wide spread, that labelers differ.",
        legend=[
            {"shape": "tick", "colour": QUIET, "text": "A labeler"},
            {"shape": SERIES_SHAPES[0], "colour": SERIES[0], "text": _TOGETHER},
        ],
        numbers=table(title, columns, body, numbers=columns[2:], most=100),
        csv_text=as_csv(("group", "quantity", "value", "low", "high", "labels"), lines),
        notes=_spread_notes(forest, groups, kept),
    )


def _spread_notes(forest: Mapping[str, Any], groups: list[str], kept: list[str]) -> list[str]:
    notes = [
        "Estimates are pooled: a labeler with few labels is drawn toward the others."
        if forest.get("pooled")
        else "Each labeler stands alone; with few labels they spread by chance."
    ]
    if len(groups) > len(kept):
        notes.append(f"{len(kept)} of {len(groups):,} groups are drawn.")
    for quantity in ("criterion", "separation"):
        values = [v for v in (forest.get("reliability") or {}).get(quantity) or [] if v is not None]
        if values:
            notes.append(
                f"Reliability of the {quantity} is {number(min(values))} to {number(max(values))}"
                " between groups; under 0.5 labelers cannot be put in any order."
            )
    return notes


def _values(held: Mapping[str, Any], forest: Mapping[str, Any], i: int, g: int) -> list[Any]:
    """A labeler's estimate with its interval, and on how many labels it rests."""
    return [_at(held, key, i, g) for key in ("value", "low", "high")] + [
        _at(forest, "labels", i, g)
    ]


def _order_statistics(mine: list[list[Any]]) -> tuple[str, str, str]:
    """The lowest, the middle and the highest of values in order."""
    if not mine:
        return ("–",) * 3
    return number(mine[0][0]), number(mine[len(mine) // 2][0]), number(mine[-1][0])


def _all_labels(
    view: View, quantity: str, attribute: str, groups: list[str]
) -> list[dict[str, Any]]:
    """All labels of each group together, to stand out among the labelers."""
    return [
        {
            "line": row["group"],
            "value": row["value"],
            "followed": _TOGETHER,
            "tip": f"{short(row['group'])}, all labels: {value_text(row)} {interval_text(row)}",
        }
        for row in view.whole(LENS, quantity, attribute=attribute)
        if row["group"] in groups and row["value"] is not None
    ]


def _at(table_of: Mapping[str, Any], key: str, i: int, g: int) -> float | None:
    values: Sequence[Sequence[float | None]] = table_of.get(key) or []
    return values[i][g] if i < len(values) and g < len(values[i]) else None


def _pooled(view: View, one: Mapping[str, Any]) -> list[Block]:
    """The gaps of all labels together, and where a gap in cost ratio comes from."""
    rows = []
    for measure in (*_GAPS, "cost_ratio_ratio"):
        for row in view.whole(LENS, measure, attribute=one["attribute"]):
            pair = f"{short(row['group'])} against {short(row['reference'])}"
            rows.append([pair, look_up(measure).label, *_with_ends(row)])
    split = [
        [
            f"{short(pair['group'])} against {short(pair['reference'])}",
            *(_in_brackets(pair.get(name)) for name in ("total", "prevalence", "bar", "skill")),
        ]
        for pair in one.get("splits") or []
    ]
    blocks = []
    if rows:
        columns: tuple[str, ...] = ("Pair", "Measure", "Value", "Interval")
        caption = "All labels together (marginal), beside the average labeler"
        blocks.append(table(caption, columns, rows, numbers=columns[2:]))
    if split:
        columns = ("Pair", "Log cost ratio, gap", "By prevalence", "By the bar", "By skill")
        blocks.append(
            table("Where a gap in cost ratio comes from", columns, split, numbers=columns[1:])
        )
    return [folded("All labels together, and where a gap comes from", blocks)] if blocks else []


def _with_ends(row: Mapping[str, Any]) -> tuple[str, str]:
    low, high = row["low"], row["high"]
    ends = f"[{number(low)}, {number(high)}]" if low is not None and high is not None else "–"
    return number(row["value"]), ends


def _in_brackets(part: Any) -> str:
    """A part with its interval; records of earlier versions have the value alone."""
    if not isinstance(part, Mapping):
        return number(part)
    return " ".join(_with_ends(part))


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
