"""What charts are made of: axes, lines, scales by name, and the frame around the layers."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from evenhand.report.labels import told_apart, wide
from evenhand.report.palette import AXIS, GRID, QUIET

Spec = dict[str, Any]
WIDE, NARROW = 720, 340
LETTER = 7.6
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
FONT = "Inter, system-ui, sans-serif"


def labelled(rows: Sequence[Mapping[str, Any]], width: int) -> list[Spec]:
    """Rows whose labels differ: equal ones would fall on one line."""
    names = told_apart((row["label"] for row in rows), most=letters(width))
    return [dict(row) | {"label": name} for row, name in zip(rows, names)]


def letters(width: int) -> int:
    """How many letters a name beside a chart may have."""
    return 30 if width > NARROW else 18


def name_axis(names: Sequence[str], width: int) -> Spec:
    """The axis of named lines, in the order given."""
    # The reader's font may be wider than the one the renderer measures with.
    room = LETTER * min(max(map(wide, names), default=0), letters(width) + 4)
    return {
        "field": "label",
        "type": "nominal",
        "sort": list(names),
        "title": None,
        "axis": {
            "labelLimit": room,
            "minExtent": room + 8,
            "domain": False,
            "ticks": False,
            "labelPadding": 8,
        },
    }


def quantity_axis(chart: Mapping[str, Any], scale: Spec, width: int) -> Spec:
    """The horizontal axis of a chart, its title as wide as the chart."""
    if chart.get("domain"):
        scale = scale | {"domain": list(chart["domain"])}
    return {
        "type": "quantitative",
        "title": wrapped(chart["axis"], width),
        "scale": scale,
        "axis": {"format": chart.get("format", "~f"), "tickCount": 5},
    }


def wrapped(title: str, width: int) -> str | list[str]:
    """An axis title that fits the width: on narrow charts over two lines."""
    if len(title) <= 44 or width > NARROW:
        return title
    middle = title.rfind(" ", 0, 44)
    return [title[:middle], title[middle + 1 :]] if middle > 0 else title


def round_domain(values: Iterable[float], *, steps: int = 8) -> list[float]:
    """The ends of an axis around values, at round numbers; a little room around a single one.

    Computed here and not by the renderer, because names are placed by it as well.

    Examples:
        >>> round_domain([0.03, 0.97]), round_domain([-0.42, 0.14]), round_domain([3.0])
        ([0.0, 1.0], [-0.5, 0.2], [2.4, 3.6])
    """
    held = list(values)
    low, high = min(held, default=0.0), max(held, default=1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / steps
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if rough <= m * power * (1 + 1e-9))
    ends = floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
    return [round(end, 12) for end in ends]


def rule_at(axis: str, value: float, dash: list[int]) -> Spec:
    """A straight line across the chart at one value."""
    return {
        "data": {"values": [{"v": value}]},
        "mark": {
            "type": "rule",
            "aria": False,
            "color": AXIS,
            "strokeWidth": 1.25,
            "strokeDash": dash,
        },
        "encoding": {axis: {"field": "v", "type": "quantitative"}},
    }


def path_through(points: Sequence[Sequence[float]], *, dash: list[int]) -> Spec:
    """A line through points, in their order."""
    return {
        "data": {"values": [{"x": x, "y": y, "i": i} for i, (x, y) in enumerate(points)]},
        "mark": {
            "type": "line",
            "aria": False,
            "color": AXIS,
            "strokeWidth": 1.25,
            "strokeDash": dash,
        },
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "y", "type": "quantitative"},
            "order": {"field": "i"},
        },
    }


def by_value(field: str, values: Mapping[str, str]) -> Spec:
    """Colours or shapes by the value of a field."""
    return {
        "field": field,
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(values), "range": list(values.values())},
    }


def by_series(names: Sequence[str], values: Sequence[Any], *, field: str = "series") -> Spec:
    """Colours, shapes or dashes by a series' place."""
    return {
        "field": field,
        "type": "nominal",
        "legend": None,
        "sort": list(names),
        "scale": {
            "domain": list(names),
            "range": [values[i % len(values)] for i in range(len(names))],
        },
    }


def framed(values: Sequence[Spec], layers: list[Spec], width: int, *, height: Any) -> Spec:
    """Layers with their data, size and look."""
    return {
        "$schema": SCHEMA,
        "width": width,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 2, "right": 12, "top": 4, "bottom": 2},
        "background": None,
        "data": {"values": list(values)},
        "layer": layers,
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "axis": {
                "labelColor": QUIET,
                "titleColor": QUIET,
                "labelFontSize": 12.5,
                "titleFontSize": 12.5,
                "titleFontWeight": "normal",
                "titlePadding": 8,
                "gridColor": GRID,
                "domainColor": AXIS,
                "tickColor": AXIS,
                "labelFont": FONT,
                "titleFont": FONT,
            },
            "axisQuantitative": {"ticks": False, "labelPadding": 6},
            "axisX": {"labelFlush": False, "labelOverlap": True},
            "axisBand": {"grid": False},
            "text": {"font": FONT},
        },
    }
