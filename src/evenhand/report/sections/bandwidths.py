"""How far an implied threshold depends on the width of the window around the cut."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.sentences import number
from evenhand.report.blocks import Block, as_csv, figure, folded, slug, table
from evenhand.report.forests import tag
from evenhand.report.labels import cell, short
from evenhand.report.palette import INK, SERIES, WITHIN
from evenhand.report.view import View

LENS = "thresholds"
MOST_CURVES = 6
Tried = Mapping[str, Any]


def sensitivity(view: View) -> list[Block]:
    """Implied thresholds at narrower and wider windows, one chart an attribute, on demand."""
    blocks = []
    for attribute in view.details(LENS).get("attributes") or []:
        groups = [one for one in attribute.get("groups") or [] if _values(one)]
        if groups:
            blocks.append(_figure(view, str(attribute.get("attribute")), groups))
    return [folded("Does the width of the window matter?", blocks)] if blocks else []


def _values(one: Tried) -> list[float]:
    tried = one.get("sensitivity") or {}
    return [value for value in tried.get("value") or [] if value is not None]


def _figure(view: View, attribute: str, groups: list[Tried]) -> Block:
    widest = max(groups, key=lambda one: max(_values(one)) - min(_values(one)))
    span = f"{number(min(_values(widest)))} and {number(max(_values(widest)))}"
    title = f"Over all windows tried, {short(widest['group'])} moves most: between {span}"
    limits = {
        (row["limit_low"], row["limit_high"])
        for row in view.whole(LENS, "implied_threshold", attribute=attribute)
    }
    band = next(iter(limits)) if len(limits) == 1 else (None, None)
    series, points = [], []
    for one in groups[:MOST_CURVES]:
        name, tried = short(one["group"], most=24), one["sensitivity"]
        series.append({"name": name, "x": tried["bandwidth"], "y": tried["value"]})
        if one.get("bandwidth") in tried["bandwidth"]:
            at = tried["value"][tried["bandwidth"].index(one["bandwidth"])]
            if at is not None:
                tip = f"{name}, window {number(one['bandwidth'])}: {number(at)}"
                points.append({"series": name, "x": one["bandwidth"], "y": at, "tip": tip})
    columns = ("Group", "Window", "Tried", "Estimate", "Over all tried", "Prevalence falls")
    body = [
        [
            cell(one["group"]),
            number(one.get("bandwidth")),
            f"{number(min(one['sensitivity']['bandwidth']))} – "
            f"{number(max(one['sensitivity']['bandwidth']))}",
            number(one.get("raw")),
            f"{number(min(_values(one)))} – {number(max(_values(one)))}",
            tag("cannot tell") if one.get("falls") else "no",
        ]
        for one in groups
    ]
    names = ("bandwidth", "value", "low", "high", "n")
    lines = [
        [one["group"], *values]
        for one in groups
        for values in zip(*(one["sensitivity"].get(name) or [] for name in names))
    ]
    legend: list[dict[str, Any]] = [
        {"shape": "line", "colour": SERIES[i], "text": one["name"], "dash": i}
        for i, one in enumerate(series)
    ]
    legend.append({"shape": "circle", "colour": INK, "text": "The window used"})
    if None not in band:
        legend.append({"shape": "band", "colour": WITHIN, "text": "Agreed band"})
    notes = []
    if len(groups) > MOST_CURVES:
        notes.append(f"{MOST_CURVES} of {len(groups):,} groups are drawn; all are in the CSV.")
    return figure(
        f"window-{slug(attribute)}",
        title=title,
        charts=[
            {
                "kind": "lines",
                "series": series,
                "points": points,
                "band": None if None in band else list(band),
                "x_axis": "Half-width of the window, in units of the score",
                "y_axis": "Implied threshold",
                "y_format": "%",
                "title": title,
            }
        ],
        read="a narrow window uses few rows and is noisy, a wide one uses rows far from the cut "
        "and may be off. A curve that stays level does not depend on the choice; one that leaves "
        "the band should be read with care.",
        legend=legend,
        numbers=table(title, columns, body, numbers=columns[1:5], most=30),
        csv_text=as_csv(("group", *names), lines),
        notes=notes,
    )
