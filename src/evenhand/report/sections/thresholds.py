"""Implied thresholds against the band, and what other thresholds would cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.lenses.rows import Row
from evenhand.report.blocks import (
    Block,
    as_csv,
    figure,
    folded,
    forest_figure,
    numbers_table,
    rows_csv,
    section,
    slug,
    table,
    tag,
)
from evenhand.report.evidence import nearest_tables
from evenhand.report.labels import cell, listed, short
from evenhand.report.palette import INK, SERIES, WITHIN
from evenhand.report.view import View, by_size, with_findings
from evenhand.speech import number, opening, plural, times

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


LENS = "thresholds"
MOST_CURVES, MOST_POINTS = 6, 60


def thresholds_section(view: View) -> dict[str, Any] | None:
    """The section on implied thresholds; None where the lens gave nothing."""
    if LENS not in view.rows.lenses:
        return None
    blocks: list[Block] = []
    for attribute in view.attributes(LENS):
        blocks += _implied(view, attribute)
    blocks += _cost_curves(view)
    blocks += sensitivity(view)
    blocks += nearest_tables(view.record)
    found = view.lens_findings(LENS, "cost_ratio") or view.lens_findings(LENS)
    heading = found[0]["heading"] if found else "No group’s threshold could be read from its scores"
    return section(
        "thresholds",
        kicker="Implied thresholds",
        heading=heading,
        lead="How often the decision is right just at the cut says which trade-off each group "
        "actually meets: the implied threshold. It is compared with the band that was chosen.",
        blocks=with_findings(view.lens_findings(LENS), blocks, heading=heading),
    )


def _implied(view: View, attribute: str) -> list[Block]:
    rows = by_size(view.whole(LENS, "implied_threshold", attribute=attribute))
    if not rows:
        return []
    title = _against_band(rows) or f"Implied threshold by {short(attribute)}"
    by_value = sorted(rows, key=lambda row: -_place(row))
    choices = (view.record.get("charter") or {}).get("choices") or []
    target = choices[0].get("implied_threshold") if len(choices) == 1 else None
    drawn = forest_figure(
        f"implied-{slug(attribute)}",
        rows,
        title=title,
        axis="Implied threshold: probability of the truth at which decisions flip",
        read="the mark is the estimate, the line its interval at "
        f"{view.level} for all groups together, the band what was agreed on. A line wholly outside "
        "the band is a finding; where it crosses an edge, the data cannot tell.",
        target=target,
        about=[(name, attribute) for name in ("cost_ratio", "implied_threshold")],
    )
    drawn["numbers"] = _pairs(view, by_value[:30], attribute)
    drawn["csv"] = rows_csv([*by_value, *view.whole(LENS, "cost_ratio", attribute=attribute)])
    return [drawn]


def _against_band(rows: Sequence[Row]) -> str | None:
    """Which groups lie outside the band, in words; None where no band was agreed on."""
    limited = [row for row in rows if row["limit_low"] is not None]
    if not limited:
        return None
    outside = [short(row["group"], most=24) for row in limited if row["verdict"] == "outside"]
    open_ = sum(row["verdict"] == "cannot tell" for row in limited)
    if outside:
        verb = "lies" if len(outside) == 1 else "lie"
        told = f"{listed(outside)} {verb} outside the agreed band"
        told = opening(told)
    else:
        told = "No group is proven to lie outside the agreed band"
    if not open_:
        return told
    return f"{told}; for {open_:,} of {plural(len(limited), 'group')} the data cannot tell"


def _pairs(view: View, rows: list[Row], attribute: str) -> Block:
    """Implied threshold and cost ratio of each group, side by side."""
    costs = {row["group"]: row for row in view.whole(LENS, "cost_ratio", attribute=attribute)}
    both = []
    for row in rows:
        both.append(row)
        if row["group"] in costs:
            both.append(costs[row["group"]])
    return numbers_table(both, caption=f"Implied threshold and cost ratio by {short(attribute)}")


def _cost_curves(view: View) -> list[Block]:
    """What each threshold costs in every group, and what equal error rates would cost."""
    curves = view.details(LENS).get("cost_curves")
    groups = (curves or {}).get("groups") or []
    if not groups:
        return []
    largest = sorted(groups, key=lambda one: -one["n"])[:MOST_CURVES]
    shown = [one for one in groups if one in largest]
    points = [point for one in shown for point in _curve_points(one)]
    ratio = {one["cost_ratio"] for one in groups}
    at = f" at a cost ratio of {times(ratio.pop())}" if len(ratio) == 1 else ""
    title = _cost_title(groups) or f"What each threshold costs{at}"
    columns = ("Group", "n", "Present", "Cheapest", "As cheap, from – to", "Extra cost", "Interval")
    keys = ("thresholds", "cost", "false_positives", "false_negatives")
    lines = [[one["group"], *line] for one in groups for line in zip(*(one[key] for key in keys))]
    notes = []
    if len(groups) > len(shown):
        notes.append(f"The {len(shown)} largest of {len(groups):,} groups are drawn.")
    drawn = figure(
        "cost-curves",
        title=title,
        charts=[
            {
                "kind": "lines",
                "series": [_curve_series(one) for one in shown],
                "points": points,
                "x_axis": "Threshold",
                "y_axis": "Cost per 1,000 cases",
                "x_domain": _window(points, "x", 0.2),
                "y_domain": _window(points, "y", 0.2),
                "title": title,
            }
        ],
        read=f"cost counts false positives plus the cost ratio times false negatives{at}; lower "
        "is better. Where the curve is flat, the threshold hardly matters.",
        legend=_curve_legend(shown),
        numbers=table(
            f"Cost of thresholds{at}",
            columns,
            [_curve_row(one) for one in shown],
            numbers=columns[1:],
        ),
        csv_text=as_csv(
            ("group", "threshold", "cost", "false_positives", "false_negatives"), lines
        ),
        notes=notes,
    )
    return [drawn, *_equalised(curves or {})]


def _curve_name(one: Mapping[str, Any]) -> str:
    return short(one["group"], most=24)


def _per_thousand(one: Mapping[str, Any]) -> float:
    """What a cost is multiplied by to be that of 1,000 cases."""
    return 1000 / one["n"] if one["n"] else 0.0


def _curve_series(one: Mapping[str, Any]) -> dict[str, Any]:
    """A group's costs along the thresholds."""
    places, scale = _thin(one), _per_thousand(one)
    return {
        "name": _curve_name(one),
        "x": [one["thresholds"][k] for k in places],
        "y": [one["cost"][k] * scale for k in places],
    }


def _curve_points(one: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Marks of a group's cheapest and of its present threshold."""
    name, scale = _curve_name(one), _per_thousand(one)
    for kind, shape in (("cheapest", "circle"), ("present", "diamond")):
        at = one.get(kind)
        if at and at.get("threshold") is not None:
            yield {
                "series": name,
                "x": at["threshold"],
                "y": at["cost"] * scale,
                "shape": shape,
                "tip": f"{name}, {kind}: threshold {number(at['threshold'])}",
            }


def _curve_legend(shown: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = [
        {"shape": "line", "colour": SERIES[i % 6], "text": _curve_name(one), "dash": i % 6}
        for i, one in enumerate(shown)
    ]
    return [
        *groups,
        {"shape": "diamond", "colour": INK, "text": "Present threshold"},
        {"shape": "circle", "colour": INK, "text": "Cheapest threshold"},
    ]


def _cost_title(groups: Sequence[Mapping[str, Any]]) -> str | None:
    """The group whose present threshold surely costs most beyond need; None where none does."""
    dearest = max(
        (one for one in groups if one.get("present")),
        key=lambda one: one["present"]["extra_low"],
        default=None,
    )
    if dearest is None or not dearest["present"]["extra_low"] > 0:
        return None
    return f"The present threshold of {short(dearest['group'])} costs more than it needs to"


def _window(points: list[dict[str, Any]], axis: str, around: float) -> list[float] | None:
    """The part of an axis that matters: far from the marks every curve shoots up."""
    marked = [float(point[axis]) for point in points]
    if not marked:
        return None
    low, high = min(marked), max(marked)
    if axis == "x":
        return [max(0.0, low - around), high + around]
    return [low * (1 - around), high * (1 + around)]


def _thin(one: Mapping[str, Any]) -> list[int]:
    """Places along a curve, as many as a picture can show."""
    known = [i for i, t in enumerate(one["thresholds"]) if t is not None]
    step = max(1, len(known) // MOST_POINTS)
    return sorted({*known[::step], *known[-1:]})


def _curve_row(one: Mapping[str, Any]) -> list[Any]:
    present, cheapest = one.get("present"), one["cheapest"]
    ends = f"{number(one.get('threshold_low'))} – {number(one.get('threshold_high'))}"
    return [
        cell(one["group"]),
        f"{one['n']:,.0f}",
        number(present["threshold"]) if present else "–",
        number(cheapest["threshold"]) if cheapest["threshold"] is not None else "decide for nobody",
        ends,
        f"{present['extra_cost']:,.1f}" if present else "–",
        f"[{present['extra_low']:,.1f}, {present['extra_high']:,.1f}]" if present else "",
    ]


def _equalised(curves: Mapping[str, Any]) -> list[Block]:
    rows = [
        [
            one["rate"].replace("_", " ").capitalize(),
            cell(one["attribute"]),
            number(one["gap_at_cheapest"]),
            number(one["gap"]),
            f"{one['extra_cost']:,.1f}",
            _would_imply(one["groups"]),
        ]
        for one in curves.get("equalised") or []
    ]
    if not rows:
        return []
    columns = (
        "Rate brought together",
        "By",
        "Widest gap at cheapest",
        "Gap left",
        "Extra cost",
        "Cost ratios it would imply",
    )
    caption = "What equal rates would cost, in false positives, against the cheapest thresholds"
    held = table(caption, columns, rows, numbers=columns[2:5])
    return [folded("What equal error rates would cost and imply", [held])]


def _would_imply(groups: Mapping[str, Any]) -> str:
    """Each group's cost ratio at thresholds of equal rates; a set where scores are discrete."""
    told = []
    for name, at in list(groups.items())[:MOST_CURVES]:
        low, high = at.get("implied_low"), at.get("implied_high")
        ends = f"{times(low)} to {times(high)}" if low is not None and high is not None else "–"
        value = at.get("implied")
        told.append(f"{short(name)}: {times(value) if value is not None else ends}")
    return "; ".join(told)


def _place(row: Row) -> float:
    """Where a row stands among others: its value, the lower end of its set, or last."""
    known = (row["value"], row.get("set_low"))
    return float(next((end for end in known if end is not None), -1.0))
