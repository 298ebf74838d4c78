"""A model's record and its labelers' on one page: do people and machine draw the same line?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.findings.sentences.agreed import plain_value
from evenhand.findings.sentences.finding import whole
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.report.blocks import (
    Block,
    axis_form,
    axis_title,
    figure,
    interval_text,
    is_shown,
    numbers_table,
    rows_csv,
    section,
    sentences,
    share,
    value_text,
)
from evenhand.report.formats import in_markdown
from evenhand.report.labels import short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.report.view import View
from evenhand.speech import opening

MOST_GROUPS = 20
NAMES = ("The model", "Its labelers")
# What both records may hold, with the lens of each: the line that is drawn, and how often.
_SHARED = (
    ("implied_threshold", "thresholds", "labelers"),
    ("selection_rate", "statistical", "statistical"),
    ("false_positive_rate", "statistical", "statistical"),
    ("false_negative_rate", "statistical", "statistical"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Two views of one system: its model's and its labelers', and how their attributes pair."""

    model: View
    labelers: View
    attributes: tuple[tuple[str, str], ...]

    def section(self) -> dict[str, Any]:
        """The section that shows both on the same axes."""
        blocks: list[Block] = []
        for pair in self.attributes:
            blocks += [block for block in (self._figure(pair),) if block]
        findings = [
            {"verdict": one["verdict"], "text": _with_step(one)}
            for one in self.labelers.findings
            if one["verdict"] != "not assessed"
        ]
        if findings:
            blocks.append(sentences(findings, title="What was found of the labelers"))
        return section(
            "beside",
            kicker="The model and its labelers",
            heading=self.heading(),
            lead="A model learns from labels. Where both treat a group in the same way, look at "
            "the labels and their guideline first; where only the model does, at the model.",
            blocks=blocks,
        )

    def heading(self) -> str:
        """Whether what lies outside for the model does so for its labelers too."""
        outside = [self._outside(view) for view in (self.model, self.labelers)]
        both = [name for name in outside[0] if name in outside[1]]
        if both:
            return f"Model and labelers both lie outside what was agreed for {both[0]}"
        if outside[0]:
            return f"Only the model lies outside what was agreed, for {outside[0][0]}"
        if outside[1]:
            return f"Only the labelers lie outside what was agreed, for {outside[1][0]}"
        return "The model and its labelers, group by group"

    def to_markdown(self) -> str:
        """Both sides as a table, group by group, and what was found of the labelers."""
        lines = [f"### The model and its labelers: {in_markdown(self.heading())}", ""]
        for pair in self.attributes:
            lines += self._table(pair)
        found = [one for one in self.labelers.findings if one["verdict"] != "not assessed"]
        lines += [f"- {in_markdown(_with_step(one))}" for one in found]
        return "\n".join(lines) + "\n"

    def _table(self, pair: tuple[str, str]) -> list[str]:
        rows = []
        for measure, *lenses in _SHARED:
            sides = [
                {row["group"]: row for row in view.whole(lens, measure, attribute=name)}
                for view, lens, name in zip((self.model, self.labelers), lenses, pair)
            ]
            for group in [name for name in sides[0] if name in sides[1]][:MOST_GROUPS]:
                both = [f"{_said(row)}, n = {row['n']:,.0f}" for row in (s[group] for s in sides)]
                rows.append([short(group), look_up(measure).label, *both])
        if not rows:
            return []
        cells = [["group", "rate", *(name.lower() for name in NAMES)], ["---"] * 4, *rows]
        return [*(f"| {' | '.join(map(in_markdown, line))} |" for line in cells), ""]

    def _outside(self, view: View) -> list[str]:
        lenses = ("labelers",) if view is self.labelers else ("thresholds", "statistical")
        rows = [row for row in view.rows if row["lens"] in lenses and row["labeler"] is None]
        found = [row for row in rows if row["verdict"] == "outside" and row["group"]]
        people = (short(view.words.people(row["attribute"], row["group"])) for row in found)
        return list(dict.fromkeys(people))

    def _figure(self, pair: tuple[str, str]) -> Block | None:
        charts, held = [], []
        for measure, *lenses in _SHARED:
            sides = [
                [row for row in view.whole(lens, measure, attribute=name) if is_shown(row)]
                for view, lens, name in zip((self.model, self.labelers), lenses, pair)
            ]
            if not all(sides) or any(len({row["class"] for row in side}) > 1 for side in sides):
                continue
            charts.append(_chart(measure, sides))
            held += [row for side in sides for row in side]
        if not charts:
            return None
        title = f"Model and labelers, by {short(pair[0])}"
        return figure(
            f"beside-{len(self.attributes)}",
            title=title,
            charts=charts,
            read="two marks of one line are the model’s and the labelers’, with their intervals. "
            "Apart, the model does something that the labels do not.",
            legend=[
                {"shape": SERIES_SHAPES[i], "colour": SERIES[i], "text": name}
                for i, name in enumerate(NAMES)
            ],
            numbers=numbers_table(held, caption=title, most=60),
            csv_text=rows_csv(held),
        )


def _said(row: Row) -> str:
    """A rate with its interval, as sentences say it; what has none as tables print it."""
    if row["value"] is not None and None not in (row["family_low"], row["family_high"]):
        return plain_value(row)
    said = share(row["value"]) if row["value"] is not None else value_text(row)
    return f"{said} {interval_text(row)}".strip()


def _with_step(finding: Mapping[str, Any]) -> str:
    """A finding with what to do and whose it is: it stands in full here alone."""
    said = finding.get("line") or finding["sentence"]
    return whole(said, finding.get("next"), finding.get("whose"))


def labelers_beside(view: View, others: Sequence[View]) -> Beside | None:
    """The pair that two records are: a model's and its labelers'; None for any other records.

    They are of one system where their charters name the same one, or where neither has a name
    and they speak of the same groups.
    """
    if len(others) != 1:
        return None
    both = (others[0], view)
    labeled = [bool(one.where("labelers")) for one in both]
    names = [_system(one) for one in both]
    if labeled.count(True) != 1 or names[0] != names[1]:
        return None
    labelers, model = both if labeled[0] else both[::-1]
    attributes = tuple(_paired(model, labelers))
    return Beside(model=model, labelers=labelers, attributes=attributes) if attributes else None


def _system(view: View) -> Any:
    return ((view.record.get("charter") or {}).get("system") or {}).get("name")


def _paired(model: View, labelers: View) -> list[tuple[str, str]]:
    """The attributes that speak of the same groups, whatever their columns are called."""
    mine, theirs = _groups(model), _groups(labelers)
    pairs = []
    for name, groups in mine.items():
        ranked = sorted(theirs, key=lambda other: (other != name, -len(groups & theirs[other])))
        for other in ranked[:1]:
            if len(groups & theirs[other]) > 1:
                pairs.append((name, other))
    return pairs


def _groups(view: View) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for attribute, group in view.rows.pairs("attribute", "group"):
        if attribute and group:
            found.setdefault(attribute, set()).add(group)
    return found


def _chart(measure: str, sides: Sequence[Sequence[Row]]) -> dict[str, Any]:
    form = axis_form(measure)
    height = {row["group"]: row["value"] or row.get("set_low") or 0.0 for row in sides[0]}
    shown = sorted(height, key=lambda group: -height[group])[:MOST_GROUPS]
    title = opening(look_up(measure).label)
    return {
        "kind": "grouped",
        "axis": axis_title(title, form),
        "format": form,
        "title": title,
        "rows": [
            {
                "line": row["group"],
                "series": name,
                "value": row["value"],
                "low": row["family_low"],
                "high": row["family_high"],
                "tip": f"{short(row['group'])}, {name.lower()}: {_said(row)}",
            }
            for group in shown
            for name, side in zip(NAMES, sides)
            for row in side
            if row["group"] == group
        ],
    }
