"""What charts are made of: axes, lines, scales by name, and the frame around the layers."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any

from evenhand.report.axis_words import surely_fits
from evenhand.report.labels import told_apart, wide
from evenhand.report.palette import AXIS, GRID, QUIET

Spec = dict[str, Any]
WIDE, NARROW = 720, 340
# From this width on a long title of an axis fits one line.
ROOMY = 500
# How many letters of an axis title fit beside the names of groups.
_TITLE, _NARROW_TITLE = 44, 34
LETTER = 7.6
# The size of words, and what the frame and numbers at the ends of an axis take of a chart's width.
SIZE, ENDS = 12.5, 46
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
            # Names are cut by their letters already; a single wide letter needs twice the usual.
            "labelLimit": 2 * room,
            "minExtent": room + 8,
            "domain": False,
            "ticks": False,
            "labelPadding": 8,
        },
    }


def quantity_axis(chart: Mapping[str, Any], scale: Spec, width: int, *, beside: Spec) -> Spec:
    """The horizontal axis of a chart beside an axis of names, its title as wide as the chart."""
    if chart.get("domain"):
        scale = scale | {"domain": list(chart["domain"])}
    ticks = log_ticks(drawn_values(chart)) if chart.get("log") else []
    title = wrapped(chart["axis"], width)
    return {
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": number_axis(chart.get("format", "~f"))
        | ({"values": ticks} if ticks else {"tickCount": 5})
        # In the middle a title that is wider than a narrow plot would make it narrower still.
        | (
            {} if _is_within(title, width - beside["axis"]["minExtent"]) else {"titleAnchor": "end"}
        ),
    }


def _is_within(title: str | list[str], width: float) -> bool:
    """Whether a title has room below a plot, beside what numbers at its ends need."""
    lines = [title] if isinstance(title, str) else title
    return all(surely_fits(line, width - ENDS, size=SIZE) for line in lines)


def drawn_values(chart: Mapping[str, Any]) -> list[float]:
    """Every number that a chart of lines places on its axis."""
    names = ("value", "low", "high", "limit_low", "limit_high", "set_low", "set_high")
    return [row[name] for row in chart["rows"] for name in names if row.get(name) is not None]


def log_ticks(values: Sequence[float]) -> list[float]:
    """Round numbers for a logarithmic axis, as few as tell it; none where the renderer's must do.

    Left to itself the renderer prints 8, 9 and 10 over one another.

    Examples:
        >>> log_ticks([2.7, 16]), log_ticks([0.4, 30])
        ([3.0, 4.0, 5.0, 7.0, 10.0, 15.0], [1.0, 3.0, 10.0, 30.0])
        >>> log_ticks([1.04, 1.2]), log_ticks([0.0, 2.0])
        ([], [])
    """
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low <= 0:
        return []
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
        held = [tick for tick in ticks if low <= tick <= high]
        if len(held) >= 4:
            return held
    return held if len(held) > 1 else []


def number_axis(form: str) -> Spec:
    """How an axis prints its numbers: as d3 does, or as points of a percentage.

    `points` have their sign, a `size` has none.

    Examples:
        >>> number_axis("%")
        {'format': '~%'}
        >>> number_axis("points")["labelExpr"]
        "datum.value == 0 ? '0' : format(datum.value * 100, '+~r')"
        >>> number_axis("size")["labelExpr"]
        "format(datum.value * 100, '~r')"
        >>> number_axis("times")["labelExpr"]
        "format(datum.value, '~r') + '×'"
        >>> number_axis("~g")
        {'labelExpr': "format(datum.value, '~r')"}
    """
    if form == "points":
        return {"labelExpr": "datum.value == 0 ? '0' : format(datum.value * 100, '+~r')"}
    if form == "size":
        return {"labelExpr": "format(datum.value * 100, '~r')"}
    if form == "times":
        return {"labelExpr": "format(datum.value, '~r') + '×'"}
    if form == "~g":  # an axis of few digits would print ten as 1e+1
        return {"labelExpr": "format(datum.value, '~r')"}
    return {"format": "~%" if form == "%" else form}


def wrapped(title: str, width: int) -> str | list[str]:
    """An axis title that fits the width: on all but wide charts over several lines.

    Examples:
        >>> wrapped("Chance of a violation from which on posts are removed", NARROW)
        ['Chance of a violation from which', 'on posts are removed']
    """
    most = _TITLE if width > NARROW else _NARROW_TITLE
    return title if len(title) <= most or width > ROOMY else wrap(title, most)


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
                "labelFontSize": SIZE,
                "titleFontSize": SIZE,
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


POINT_LETTER, LINE = 6.9, 13.0
# Where a name may stand: how far from its point, and which end of it is there.
PLACES = (
    (9.0, 0.0, "left"),
    (-9.0, 0.0, "right"),
    (8.0, -7.0, "left"),
    (-8.0, -7.0, "right"),
    (8.0, 9.0, "left"),
    (-8.0, 9.0, "right"),
    (0.0, -14.0, "center"),
    (0.0, 15.0, "center"),
)
Box = tuple[float, float, float, float]


def placed(
    points: Sequence[Mapping[str, Any]],
    *,
    room: tuple[float, float],
    ends: Mapping[str, Sequence[float]],
    most: int,
) -> list[dict[str, Any]]:
    """The named points whose names fit, each with its offset and alignment.

    `room` is the width and height of the plot, `ends` where its axes begin and end. Names are
    tried in the order of the points, so the first ones are the surest to be shown.

    Examples:
        >>> points = [{"x": 0, "y": 1, "name": "a"}, {"x": 0, "y": 1, "name": "b"}]
        >>> points += [{"x": 1, "y": 0, "name": "c"}]
        >>> found = placed(points, room=(300, 200), ends={"x": (0, 1), "y": (0, 1)}, most=5)
        >>> [(p["name"], p["align"]) for p in found]
        [('a', 'left'), ('c', 'right')]
    """
    known = [point for point in points if point.get("x") is not None and point.get("y") is not None]
    width, height = room
    spots = [
        (_share(point["x"], ends["x"]) * width, (1 - _share(point["y"], ends["y"])) * height)
        for point in known
    ]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    found: list[dict[str, Any]] = []
    for point, (x, y) in zip(known, spots):
        if not point.get("name") or len(found) == most:
            continue
        for dx, dy, align in PLACES:
            box = _box(x + dx, y + dy, align, str(point["name"]))
            inside = box[0] >= 0 and box[2] <= width + 8 and box[1] >= -4 and box[3] <= height
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.append({**point, "dx": dx, "dy": dy, "align": align})
                break
    return found


def _share(value: float, ends: Sequence[float]) -> float:
    return (float(value) - ends[0]) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.5


def _box(x: float, y: float, align: str, name: str) -> Box:
    wide = POINT_LETTER * len(name)
    left = {"left": x, "right": x - wide, "center": x - wide / 2}[align]
    return left, y - LINE / 2, left + wide, y + LINE / 2


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
