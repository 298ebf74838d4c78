"""Any lens that has no section of its own: its findings, a chart of each measure, its numbers."""

from collections.abc import Sequence
from typing import Any

from evenhand.lenses.kinds import Measure
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.report.blocks import (
    Block,
    by_both,
    by_class,
    by_group,
    folded,
    forest_figure,
    numbers_table,
    section,
    slug,
)
from evenhand.report.labels import short
from evenhand.report.view import View, by_size, with_findings
from evenhand.speech import opening

MOST_FIGURES, MOST_ROWS = 4, 60


def lens_section(view: View, lens: str) -> dict[str, Any]:
    """The section of a lens by what the records of its measures say."""
    findings = view.lens_findings(lens)
    blocks: list[Block] = []
    for attribute in view.attributes(lens):
        blocks += _figures(view, lens, attribute)
    every = by_size(view.where(lens))
    numbers = numbers_table(every, caption=f"All numbers of the {lens} lens", most=MOST_ROWS)
    blocks.append(folded("All numbers", [numbers]))
    heading = findings[0]["heading"] if findings else f"What the {short(lens)} lens measured"
    return section(
        slug(lens),
        kicker=opening(short(lens)),
        heading=heading,
        blocks=with_findings(findings, blocks, heading=heading),
    )


def _figures(view: View, lens: str, attribute: str) -> list[Block]:
    """A chart of each measure: limited ones first, then those that may lead, then the rest."""
    limited = {one["measure"] for one in view.lens_findings(lens)}
    names = dict.fromkeys(row["measure"] for row in view.where(lens, attribute=attribute))
    drawn = [name for name in names if look_up(name).takes_limit]
    drawn.sort(key=lambda name: (name not in limited, not look_up(name).leads))
    blocks = []
    for name in drawn[:MOST_FIGURES]:
        rows = by_size(view.whole(lens, name, attribute=attribute))
        if rows:
            blocks.append(_figure(view, lens, attribute, look_up(name), rows))
    return blocks


def _figure(view: View, lens: str, attribute: str, record: Measure, rows: Sequence[Row]) -> Block:
    findings = [
        one for one in view.lens_findings(lens, record.name) if one["attribute"] == attribute
    ]
    one_class = len({row["class"] for row in rows}) == 1
    one_group = len({(row["group"], row["reference"]) for row in rows}) == 1
    label = opening(record.label)
    away = ""
    if record.neutral is not None:
        away = f" The upright line is no difference, {record.neutral:g}."
    return forest_figure(
        f"{slug(record.name)}-{slug(attribute)}",
        rows,
        title=findings[0]["heading"] if findings else f"{label} by {short(attribute)}",
        axis=label,
        read=f"each mark is a value, its line the interval at {view.level} for all of them "
        f"together.{away}",
        label=by_group if one_class else by_class if one_group else by_both,
        plain=f"{label} by {short(attribute)}",
        about=[(record.name, attribute)],
        zero=record.neutral,
        lines=("group", "groups") if one_class else ("class", "classes"),
    )
