"""Implied thresholds against the band, and what other thresholds would cost."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.findings.cost_sentences import times
from evenhand.findings.sentences import number, plural
from evenhand.report.blocks import Block, as_csv, figure, folded, section, slug, table
from evenhand.report.evidence import nearest_tables
from evenhand.report.forests import forest_figure, numbers_table, rows_csv
from evenhand.report.labels import cell, listed, opening, short
from evenhand.report.palette import INK, SERIES
from evenhand.report.sections.bandwidths import sensitivity
from evenhand.report.view import Row, View, by_size, headline, with_findings

LENS = "thresholds"
MOST_CURVES, MOST_POINTS = 6, 60


def thresholds_section(view: View) -> dict[str, Any] | None:
    """The section on implied thresholds; None where the lens gave nothing."""
    if not view.where(LENS):
        return None
    blocks: list[Block] = []
    for attribute in view.attributes(LENS):
        blocks += _implied(view, attribute)
    blocks += _cost_curves(view)
    blocks += sensitivity(view)
    blocks += nearest_tables(view.record)
    found = view.lens_findings(LENS, "cost_ratio") or view.lens_findings(LENS)
    heading = (
        headline(found[0]["sentence"])
        if found
        else "No group’s threshold could be read from its scores"
    )
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
    by_name = sorted(rows, key=lambda row: str(row["group"]))
    choices = (view.record.get("charter") or {}).get("choices") or []
    target = choices[0].get("implied_threshold") if len(choices) == 1 else None
    drawn = forest_figure(
        f"implied-{slug(attribute)}",
        rows,
        title=title,
        axis="Implied threshold: probability of the truth at which decisions flip",
        read="the mark is the estimate, the line its interval at "
        f"{view.level} for all groups together, the band what was agreed on. A line wholly outside "
        "the band is a finding; one that crosses an edge cannot be told.",
        form="%",
        target=target,
        order=by_name,
        about=[(name, attribute) for name in ("cost_ratio", "implied_threshold")],
    )
    drawn["numbers"] = _pairs(view, by_name[:30], attribute)
    drawn["csv"] = rows_csv(
        by_name + sorted(view.whole(LENS, "cost_ratio", attribute=attribute), key=_group)
    )
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
        told = "No group lies surely outside the agreed band"
    if not open_:
        return told
    return f"{told}; {open_:,} of {plural(len(limited), 'group')} cannot be told"


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
    curves = view.details(LENS).get("cost_curves")
    groups = (curves or {}).get("groups") or []
    if not groups:
        return []
    largest = sorted(groups, key=lambda one: -one["n"])[:MOST_CURVES]
    shown = [one for one in groups if one in largest]
    series, points, legend = [], [], []
    for i, one in enumerate(shown):
        name = short(one["group"], most=24)
        scale = 1000 / one["n"] if one["n"] else 0.0
        places = _thin(one)
        series.append(
            {
                "name": name,
                "x": [one["thresholds"][k] for k in places],
                "y": [one["cost"][k] * scale for k in places],
            }
        )
        legend.append({"shape": "line", "colour": SERIES[i % 6], "text": name, "dash": i % 6})
        for kind, shape in (("cheapest", "circle"), ("present", "diamond")):
            at = one.get(kind)
            if at and at.get("threshold") is not None:
                points.append(
                    {
                        "series": name,
                        "x": at["threshold"],
                        "y": at["cost"] * scale,
                        "shape": shape,
                        "tip": f"{name}, {kind}: threshold {number(at['threshold'])}",
                    }
                )
    legend += [
        {"shape": "diamond", "colour": INK, "text": "Present threshold"},
        {"shape": "circle", "colour": INK, "text": "Cheapest threshold"},
    ]
    ratio = {one["cost_ratio"] for one in groups}
    at = f" at a cost ratio of {times(ratio.pop())}" if len(ratio) == 1 else ""
    dearest = max(
        (one for one in groups if one.get("present")),
        key=lambda one: one["present"]["extra_low"],
        default=None,
    )
    sure = dearest is not None and dearest["present"]["extra_low"] > 0
    title = (
        f"At the present threshold {short(dearest['group'])} costs more than it need"
        if dearest is not None and sure
        else f"What each threshold costs{at}"
    )
    columns = ("Group", "n", "Present", "Cheapest", "As cheap, from – to", "Extra cost", "Interval")
    rows = [_curve_row(one) for one in shown]
    lines = [
        [one["group"], t, c, fp, fn]
        for one in groups
        for t, c, fp, fn in zip(
            one["thresholds"], one["cost"], one["false_positives"], one["false_negatives"]
        )
    ]
    notes = []
    if len(groups) > len(shown):
        notes.append(f"The {len(shown)} largest of {len(groups):,} groups are drawn.")
    drawn = figure(
        "cost-curves",
        title=title,
        charts=[
            {
                "kind": "lines",
                "series": series,
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
        legend=legend,
        numbers=table(f"Cost of thresholds{at}", columns, rows, numbers=columns[1:]),
        csv_text=as_csv(
            ("group", "threshold", "cost", "false_positives", "false_negatives"), lines
        ),
        notes=notes,
    )
    return [drawn, *_equalised(curves or {})]


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


def _group(row: Row) -> str:
    return str(row["group"])


def implied_cost(view: View, attribute: str | None, group: str | None) -> Row | None:
    """The cost ratio that decisions on a group imply, where some lens tells it."""
    for lens in (LENS, "labelers"):
        for row in view.whole(lens, "cost_ratio"):
            if row["attribute"] == attribute and row["group"] == group:
                return row
    return None
