"""Statistical against counterfactual gaps: what swapping only the group's words changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.findings.sentences.words import interval, words
from evenhand.lenses.measures import look_up
from evenhand.report.blocks import (
    Block,
    as_csv,
    by_both,
    by_class,
    by_group,
    figure,
    folded,
    forest_figure,
    numbers_table,
    section,
    sentences,
    slug,
    table,
    value_text,
)
from evenhand.report.evidence import flipped_table
from evenhand.report.labels import cell, short
from evenhand.report.palette import OUTSIDE, PLAIN, UNTOLD
from evenhand.report.view import View, by_size, with_findings
from evenhand.speech import number, signed

LENS = "counterfactual"
PREFERRED = ("true_positive_rate_gap", "selection_rate_gap", "false_positive_rate_gap")
KINDS = {
    "agree": (PLAIN, "circle", "Same sign"),
    "disagree": (UNTOLD, "square", "Opposite signs, not settled by the intervals"),
    "surely disagree": (OUTSIDE, "triangle-up", "Opposite signs, both intervals leave out 0"),
}


def counterfactual_section(view: View) -> dict[str, Any] | None:
    """The section on the swap experiment; None where the lens gave nothing."""
    if LENS not in view.rows.lenses:
        return None
    found = view.lens_findings(LENS)
    blocks: list[Block] = []
    table_of = view.details(LENS).get("quadrant")
    drawn = [] if not table_of else _quadrant(view, table_of)
    blocks += drawn
    blocks += _forests(view, fold=bool(drawn))
    blocks += _flips(view)
    blocks += flipped_table(view.record)
    heading = (
        found[0]["heading"]
        if found
        else "The data prove no decision that swapping the group’s words changes"
    )
    return section(
        "counterfactual",
        kicker="Statistical against counterfactual",
        heading=heading,
        lead="Each text was rewritten with only the words for the group exchanged, and decided "
        "again. What changes then is caused by those words; a statistical gap has other sources "
        "too.",
        blocks=with_findings(found, blocks, heading=heading),
    )


def _quadrant(view: View, columns: Mapping[str, Sequence[Any]]) -> list[Block]:
    names = [name for name in columns if columns[name]]
    if "measure" not in names:
        return []
    lines = [dict(zip(columns, values)) for values in zip(*columns.values())]
    known = [
        line
        for line in lines
        if line["statistical"] is not None and line["counterfactual"] is not None
    ]
    blocks = []
    for measure in PREFERRED:
        mine = [line for line in known if line["measure"] == measure]
        if not mine:
            continue
        pairs = list(dict.fromkeys((line["group"], line["reference"]) for line in mine))
        for group, reference in pairs[:2]:
            held = [
                line for line in mine if (line["group"], line["reference"]) == (group, reference)
            ]
            blocks.append(_one(view, measure, group, reference, held))
        break
    positive = view.positive(LENS)
    if positive is not None and len({line["class"] for line in known}) <= 2:
        # With two classes a quadrant has two mirrored points: the table says it better.
        return []
    return blocks


def _one(
    view: View, measure: str, group: str, reference: str, lines: list[dict[str, Any]]
) -> Block:
    sure = [line["class"] for line in lines if line["signs"] == "surely disagree"]
    rate = words(str(look_up(measure).base))
    if sure:
        many = "class the two gaps point" if len(sure) == 1 else "classes the two gaps point"
        title = f"In {len(sure)} {many} in opposite directions"
    else:
        title = "In no class do the data prove that the two gaps point in opposite directions"
    ranked = sorted(lines, key=lambda one: -abs(one["statistical"]) - abs(one["counterfactual"]))
    ranked.sort(key=lambda one: one["signs"] != "surely disagree")
    named = {id(one) for one in ranked[:8]}
    points = [
        {
            "x": one["statistical"],
            "x_low": one.get("statistical_low"),
            "x_high": one.get("statistical_high"),
            "y": one["counterfactual"],
            "y_low": one.get("counterfactual_low"),
            "y_high": one.get("counterfactual_high"),
            "kind": one["signs"] if one["signs"] in KINDS else "agree",
            "name": short(one["class"], most=22) if id(one) in named else None,
            "tip": f"{short(one['class'])}: {signed(one['statistical'])} as counted, "
            f"{signed(one['counterfactual'])} by swapping",
        }
        for one in ranked
    ]
    present = [kind for kind in KINDS if any(point["kind"] == kind for point in points)]
    columns = ("Class", "Statistical", "Interval", "Counterfactual", "Interval ", "Signs")
    rows = [
        [
            cell(one["class"]),
            signed(one["statistical"]),
            _ends(one, "statistical"),
            signed(one["counterfactual"]),
            _ends(one, "counterfactual"),
            one["signs"] or "–",
        ]
        for one in sorted(lines, key=lambda one: str(one["class"]))
    ]
    pair = f"{short(group)} against {short(reference)}"
    return figure(
        f"quadrant-{slug(measure)}-{slug(group)}-{slug(reference)}",
        title=title,
        charts=[
            {
                "kind": "scatter",
                "points": points,
                "kinds": {kind: KINDS[kind][:2] for kind in KINDS},
                "x_axis": f"Statistical gap in {rate}, {pair}, in points",
                "x_format": "points",
                "y_axis": "Counterfactual gap, in points",
                "y_format": "points",
                "x_zero": 0.0,
                "y_zero": 0.0,
                "diagonal": True,
                "title": title,
            }
        ],
        read="each mark is a class: to the right, the group is decided so more often as counted; "
        "upwards, rewriting a text as the group’s makes it so. On the dashed line the words alone "
        "explain the gap; in the upper left and lower right quarter the two disagree. Thin lines "
        f"are intervals at {view.level} for all classes together.",
        legend=[
            {"shape": KINDS[kind][1], "colour": KINDS[kind][0], "text": KINDS[kind][2]}
            for kind in present
        ],
        numbers=table(f"Gaps in {rate}, {pair}", columns, rows, numbers=columns[1:5], most=60),
        csv_text=as_csv(list(lines[0]), (list(one.values()) for one in lines)),
        about=[(f"counterfactual_{measure}", one) for one in view.attributes(LENS)],
    )


def _ends(line: Mapping[str, Any], side: str) -> str:
    low, high = line.get(f"{side}_low"), line.get(f"{side}_high")
    return f"[{number(low)}, {number(high)}]" if low is not None and high is not None else ""


def _forests(view: View, *, fold: bool) -> list[Block]:
    blocks: list[Block] = []
    for measure in PREFERRED:
        rows = by_size(view.whole(LENS, f"counterfactual_{measure}"))
        if not rows:
            continue
        groups = {(row["group"], row["reference"]) for row in rows}
        one_class = len({row["class"] for row in rows}) == 1
        found = view.lens_findings(LENS, f"counterfactual_{measure}")
        rate = words(str(look_up(measure).base))
        blocks.append(
            forest_figure(
                f"counterfactual-{slug(measure)}",
                rows,
                title=found[0]["heading"] if found else f"Counterfactual gaps in {rate}",
                axis=f"Counterfactual gap in {rate}",
                read="a mark right of the line means that rewriting a text as the group’s makes "
                f"the decision more frequent. The line is the interval at {view.level} for all of "
                "them together.",
                label=by_group if one_class else by_class if len(groups) == 1 else by_both,
                plain=f"Counterfactual gaps in {rate}",
                about=[] if fold else [(f"counterfactual_{measure}", rows[0]["attribute"])],
                zero=0.0,
                lines=("group", "groups") if one_class else ("class", "classes"),
            )
        )
        break
    return [folded("Counterfactual gaps, class by class", blocks)] if fold and blocks else blocks


def _flips(view: View) -> list[Block]:
    rows = [
        row
        for measure in ("flip_rate", "changed_share")
        for row in view.whole(LENS, measure)
        if row["class"] is None
    ]
    if not rows:
        return []
    told = []
    for row in rows:
        if row["value"] is None:
            continue
        what = (
            "Decisions that change when the words are swapped"
            if row["measure"] == "flip_rate"
            else "Texts that the swap changed at all"
        )
        told.append(f"{what}: {value_text(row)} {interval(row)}, n = {row['n']:,.0f}.")
    return [
        folded(
            "How often anything flips",
            [sentences(told), numbers_table(rows, caption="Flip rate and changed share")],
        )
    ]
