"""Costs chosen: what the charter says, by whom, until when and why."""

from collections.abc import Mapping
from typing import Any

from evenhand.charter.words import percent, plain_number
from evenhand.report.blocks import Block, folded, section, sentences, table
from evenhand.report.labels import cell, listed, spoken
from evenhand.report.view import View
from evenhand.speech import opening

_OUTCOMES = {
    "false_positive": "Wrongly decided",
    "false_negative": "Missed",
    "true_positive": "Rightly decided",
    "true_negative": "Rightly left alone",
}


def costs_section(view: View) -> dict[str, Any] | None:
    """The section of the charter; None where there is none."""
    charter = view.record.get("charter")
    if not charter:
        return None
    choices = charter.get("choices") or []
    ownerless = [
        name for name, layer in (charter.get("layers") or {}).items() if not layer.get("owner")
    ]
    if choices:
        many = "One trade-off is" if len(choices) == 1 else f"{len(choices):,} trade-offs are"
        heading = f"{many} on record"
    else:
        heading = "No trade-off is on record yet"
    if ownerless:
        heading += f"; the {listed(ownerless)} layer{_has(ownerless)} no owner"
    blocks: list[Block] = []
    if choices:
        blocks.append(_choices(choices))
    if charter.get("catalogue"):
        blocks.append(_catalogue(charter))
    if charter.get("layers"):
        blocks.append(_layers(charter["layers"]))
    open_points = [
        {"text": finding["sentence"], "verdict": "not assessed"}
        for finding in view.lens_findings("charter")
    ]
    if open_points:
        blocks.append(sentences(open_points, title="What the charter leaves open"))
    more = [*_stakeholders(charter), *_answers(charter)]
    if more:
        blocks.append(folded("Who was heard, and the answers on record", more))
    return section(
        "costs",
        kicker="Costs chosen",
        heading=heading,
        lead="Every threshold trades one kind of mistake for another. This is what was chosen, by "
        "whom, until when and why.",
        blocks=blocks,
    )


def _choices(choices: list[Mapping[str, Any]]) -> Block:
    rows = []
    for one in choices:
        whom = "Everybody" if not one.get("group") else f"{one['attribute']} = {one['group']}"
        by = one.get("decided_by") or {"text": "Nobody named", "verdict": "cannot tell"}
        when = " ".join(
            part
            for part in (
                f"on {one['decided_on']}," if one.get("decided_on") else "",
                f"review by {one['review_by']}" if one.get("review_by") else "no review date",
            )
            if part
        )
        rows.append(
            [
                cell(whom),
                plain_number(one["cost_ratio"]),
                f"{plain_number(one['low'])} to {plain_number(one['high'])}",
                f"{percent(one['implied_threshold'])} ({percent(one['implied_threshold_low'])} to "
                f"{percent(one['implied_threshold_high'])})",
                by,
                when,
                spoken(one.get("reason")) or "none given",
            ]
        )
    columns = ("For whom", "Cost ratio", "Tolerated", "Act from", "Chosen by", "When", "Why")
    caption = "Choices: how many wrong decisions one missed case counts as"
    return table(caption, columns, rows, numbers=("Cost ratio",), most=20)


def _catalogue(charter: Mapping[str, Any]) -> Block:
    system = charter.get("system") or {}
    rows = []
    for one in charter["catalogue"]:
        named = system.get(one["outcome"])
        outcome = opening(named[0]) if named else _OUTCOMES.get(one["outcome"], one["outcome"])
        who = spoken(one["borne_by"])
        if one.get("group"):
            who += f" ({one['attribute']} = {spoken(one['group'])})"
        rows.append([cell(outcome), one["kind"].capitalize(), cell(who), spoken(one["what"])])
    columns = ("Outcome", "Kind", "Borne by", "What it means for them")
    return table("Who bears what", columns, rows, most=30)


def _layers(layers: Mapping[str, Mapping[str, Any]]) -> Block:
    rows = [
        [
            name.capitalize(),
            cell(layer["owner"])
            if layer.get("owner")
            else {"text": "No owner recorded", "verdict": "cannot tell"},
            layer.get("date") or "–",
            layer.get("review_by") or "–",
            spoken(", ".join(layer.get("consulted") or ["nobody"])),
        ]
        for name, layer in layers.items()
    ]
    columns = ("Layer", "Owner", "Settled on", "Review by", "Consulted")
    return table("Who owns which layer", columns, rows)


def _stakeholders(charter: Mapping[str, Any]) -> list[Block]:
    people = charter.get("stakeholders") or []
    if not people:
        return []
    rows = [
        [
            cell(one["name"]),
            spoken(one.get("interest")) or "–",
            "yes" if one.get("consulted") else "no",
        ]
        for one in people
    ]
    return [table("Stakeholders", ("Who", "What is at stake", "Heard"), rows)]


def _answers(charter: Mapping[str, Any]) -> list[Block]:
    rows = [
        [name.capitalize(), answer["question"], spoken(answer.get("text")) or "Not answered yet."]
        for name, layer in (charter.get("layers") or {}).items()
        for answer in layer.get("answers") or []
    ]
    return [table("Questions and answers", ("Layer", "Question", "Answer"), rows)] if rows else []


def _has(names: list[str]) -> str:
    return " has" if len(names) == 1 else "s have"
