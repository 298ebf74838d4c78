"""Charts as Vega-Lite specifications: plain data in, a dict out, at the width asked for.

Every chart says by shape or by words what it says by colour. Legends stand in the page, not in
the chart, so that they can be read and enlarged as text.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.errors import UsageError, nearest
from evenhand.report.chart_parts import (
    NARROW,
    WIDE,
    Spec,
    by_series,
    by_value,
    drawn_values,
    framed,
    labelled,
    letters,
    name_axis,
    number_axis,
    path_through,
    placed,
    quantity_axis,
    round_domain,
    rule_at,
    wrapped,
)
from evenhand.report.labels import told_apart
from evenhand.report.palette import (
    INK,
    QUIET,
    SERIES,
    SERIES_DASHES,
    SERIES_SHAPES,
    VERDICTS,
    WITHIN,
)

__all__ = ["KINDS", "NARROW", "WIDE", "Spec", "specification"]
# Longer words over a band are set from the right end of the picture.
MOST_OVER_BAND = 30


def specification(chart: Mapping[str, Any], *, width: int = WIDE) -> Spec:
    """The specification of a chart given by its `kind` and data.

    Examples:
        >>> row = {"label": "f", "value": 0.1, "low": 0.0, "high": 0.2, "verdict": "within"}
        >>> spec = specification({"kind": "forest", "rows": [row], "axis": "gap"}, width=340)
        >>> spec["width"], spec["height"]
        (340, {'step': 28})
    """
    kind = str(chart.get("kind"))
    if kind not in KINDS:
        raise UsageError(f"chart {kind!r} does not exist.{nearest(kind, list(KINDS))}")
    return KINDS[kind](chart, width)


def forest(chart: Mapping[str, Any], width: int) -> Spec:
    """Estimates with intervals, one line each; the band agreed on behind them.

    A set that the data identify is a bar from `set_low` to `set_high`, with its interval as a line
    through it. With `values` each estimate stands over its mark.
    """
    rows = labelled(chart["rows"], width)
    names = [row["label"] for row in rows]
    y = name_axis(names, width)
    if chart.get("values"):
        y["axis"]["labelColor"] = INK
    scale: Spec = {"zero": bool(chart.get("from_zero")), "nice": True}
    if chart.get("log"):
        scale |= {"type": "log", "nice": False}
    x = quantity_axis(chart, scale, width, beside=y)
    layers = _bands(chart, rows, x, y)
    for value, dash in ((chart.get("zero"), [1, 0]), (chart.get("target"), [5, 4])):
        if value is not None:
            layers.append(rule_at("x", float(value), dash))
    colour = by_value("verdict", {name: pair[0] for name, pair in VERDICTS.items()})
    common = {"y": y, "color": colour}
    layers.append(_span(common, x, "low", "high", {"type": "rule", "strokeWidth": 2.5}))
    if any(row.get("set_low") is not None for row in rows):
        bar = {"type": "bar", "height": 11, "opacity": 0.55}
        layers.append(_span(common, x, "set_low", "set_high", bar))
    layers.append(
        {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "point", "filled": True, "size": 95, "opacity": 1},
            "encoding": common
            | {
                "x": x | {"field": "value"},
                "shape": by_value("verdict", {name: pair[1] for name, pair in VERDICTS.items()}),
                "description": {"field": "tip"},
            },
        }
    )
    if chart.get("values"):
        layers.append(_printed(x, y))
    usual = 28 if len(rows) <= 12 else 22
    return framed(rows, layers, width, height={"step": chart.get("step", usual)})


def _span(common: Spec, x: Spec, low: str, high: str, mark: Spec) -> Spec:
    """A line or bar from one field to another, where there is one."""
    return {
        "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
        "mark": mark | {"aria": False},
        "encoding": common | {"x": x | {"field": low}, "x2": {"field": high}},
    }


def _bands(chart: Mapping[str, Any], rows: Sequence[Spec], x: Spec, y: Spec) -> list[Spec]:
    """What was agreed on, behind the lines; over it in words where it is one band for all."""
    if not any(row.get("limit_low") is not None for row in rows):
        return []
    mark = {"type": "bar", "aria": False, "opacity": 0.14, "color": VERDICTS["within"][0]}
    band: Spec = {
        "transform": [{"filter": "isValid(datum.limit_low)"}],
        "mark": mark,
        "encoding": {
            "y": y | {"scale": {"paddingInner": 0}},
            "x": x | {"field": "limit_low"},
            "x2": {"field": "limit_high"},
        },
    }
    if not chart.get("agreed"):
        return [band]
    low, high = (next(row[f"limit_{end}"] for row in rows if row.get("limit_low") is not None)
                 for end in ("low", "high"))  # fmt: skip
    align = _alignment(chart, (low + high) / 2)
    at = {"left": {"value": 0}, "right": {"value": "width"}}.get(align, x | {"field": "x"})
    words: Spec = {
        "data": {"values": [{"x": (low + high) / 2, "words": chart["agreed"]}]},
        "mark": {"type": "text", "aria": False, "baseline": "bottom", "fontSize": 12.5}
        | {"color": QUIET, "y": -16 if chart.get("values") else -3, "align": align},
        "encoding": {"x": at, "text": {"field": "words"}},
    }
    return [band, words]


def _alignment(chart: Mapping[str, Any], middle: float) -> str:
    """How words over a band stand, so that they never leave the picture."""
    if len(chart["agreed"]) > MOST_OVER_BAND:
        return "right"
    held = drawn_values(chart) + ([0.0] if chart.get("from_zero") else [])
    low, high = min(held), max(held)
    if chart.get("log") and low > 0:
        low, middle, high = (math.log(end) for end in (low, middle, high))
    at = (middle - low) / (high - low) if high > low else 0.5
    return "right" if at > 0.65 else "left" if at < 0.3 else "center"


def _printed(x: Spec, y: Spec) -> Spec:
    """The estimates in words, each over its mark or over the middle of its set."""
    mark = {"type": "text", "aria": False, "dy": -13, "fontSize": 13, "color": INK}
    return {
        "transform": [
            {"calculate": "isValid(datum.value) ? datum.value : "
             "(datum.set_low + datum.set_high) / 2", "as": "at"},
            {"filter": "isValid(datum.text) && isFinite(datum.at)"},
        ],
        "mark": mark | {"fontWeight": 600},
        "encoding": {"y": y, "x": x | {"field": "at"}, "text": {"field": "text"}},
    }  # fmt: skip


def grouped(chart: Mapping[str, Any], width: int) -> Spec:
    """Estimates with intervals by line and series, series a little apart."""
    rows = [dict(row) for row in chart["rows"]]
    lines = list(dict.fromkeys(row["line"] for row in rows))
    shown = dict(zip(lines, told_apart(lines, most=letters(width))))
    series = list(dict.fromkeys(row["series"] for row in rows))
    for row in rows:
        row["label"] = shown[row["line"]]
    y = name_axis(list(shown.values()), width)
    scale: Spec = {"zero": False} | ({"type": "log"} if chart.get("log") else {})
    x = quantity_axis(chart, scale, width, beside=y)
    common = {
        "y": y,
        "yOffset": {"field": "series", "type": "nominal", "sort": series},
        "color": by_series(series, SERIES),
    }
    still = chart.get("zero")
    layers: list[Spec] = [] if still is None else [rule_at("x", float(still), [1, 0])]
    layers += [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "aria": False, "strokeWidth": 2},
            "encoding": common | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
        },
        {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": common
            | {
                "x": x | {"field": "value"},
                "shape": by_series(series, SERIES_SHAPES),
                "description": {"field": "tip"},
            },
        },
    ]
    height = {"step": 8 + 9 * max(len(series), 1), "for": "position"}
    return framed(rows, layers, width, height=height)


def scatter(chart: Mapping[str, Any], width: int) -> Spec:
    """Points with intervals either way, lines of no difference, and names where they matter."""
    points = [dict(point) for point in chart["points"]]
    kinds = chart.get("kinds") or {"": (VERDICTS["not assessed"][0], "circle")}
    for point in points:
        point.setdefault("kind", next(iter(kinds)))
    ends = {axis: chart.get(f"{axis}_domain") or _ends(chart, points, axis) for axis in ("x", "y")}
    x, y = (
        {
            "type": "quantitative",
            "title": wrapped(chart[f"{axis}_axis"], width),
            "axis": number_axis(chart.get(f"{axis}_format", "~f"))
            | {"tickCount": 6 if axis == "y" or width > NARROW else 4}
            | _named_ticks(chart.get(f"{axis}_ticks")),
            "scale": {"domain": ends[axis], "nice": False, "zero": False},
        }
        for axis in ("x", "y")
    )
    layers: list[Spec] = []
    low, high = (pick(ends["x"][i], ends["y"][i]) for i, pick in enumerate((max, min)))
    if chart.get("diagonal") and low < high:
        layers.append(path_through([(low, low), (high, high)], dash=[5, 4]))
    layers += [
        rule_at(axis, float(chart[f"{axis}_zero"]), [1, 0])
        for axis in ("x", "y")
        if chart.get(f"{axis}_zero") is not None
    ]
    if chart.get("path"):
        layers.append(path_through(chart["path"], dash=[1, 0]))
    colour = by_value("kind", {name: pair[0] for name, pair in kinds.items()})
    for axis in ("x", "y"):
        if any(point.get(f"{axis}_low") is not None for point in points):
            spans = {"x": x | {"field": "x"}, "y": y | {"field": "y"}, "color": colour}
            spans[axis] = spans[axis] | {"field": f"{axis}_low"}
            spans[f"{axis}2"] = {"field": f"{axis}_high"}
            layers.append(
                {
                    "transform": [{"filter": f"isValid(datum.{axis}_low)"}],
                    "mark": {"type": "rule", "aria": False, "strokeWidth": 1.25, "opacity": 0.45},
                    "encoding": spans,
                }
            )
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 75, "opacity": 1},
            "encoding": {
                "x": x | {"field": "x"},
                "y": y | {"field": "y"},
                "color": colour,
                "shape": by_value("kind", {name: pair[1] for name, pair in kinds.items()}),
                "description": {"field": "tip"},
            },
        }
    )
    most = chart.get("named", 10 if width > NARROW else 6)
    height = 300 if width > NARROW else 270
    layers += _point_names(points, x, y, (width - 78.0, float(height)), most)
    return framed(points, layers, width, height=height)


def _named_ticks(ticks: Mapping[float, str] | None) -> Spec:
    """Ticks at these places alone, with these words."""
    if not ticks:
        return {}
    words = json.dumps({f"{place:g}": word for place, word in ticks.items()})
    return {"values": list(ticks), "labelExpr": f"{words}[datum.value]"}


def _ends(chart: Mapping[str, Any], points: Sequence[Spec], axis: str) -> list[float]:
    """The ends of an axis: around every point, interval and line of no difference."""
    held = [point.get(f"{axis}{end}") for point in points for end in ("", "_low", "_high")]
    held += [place[axis == "y"] for place in chart.get("path") or []]
    return round_domain(v for v in [*held, chart.get(f"{axis}_zero")] if v is not None)


def _point_names(
    points: Sequence[Spec], x: Spec, y: Spec, room: tuple[float, float], most: int
) -> list[Spec]:
    """Names beside points, each where it covers neither a point nor another name."""
    ends = {"x": x["scale"]["domain"], "y": y["scale"]["domain"]}
    kept = ("x", "y", "name", "dx", "dy", "align")
    found = [
        {key: point[key] for key in kept}
        for point in placed(points, room=room, ends=ends, most=most)
    ]
    if not found:
        return []
    mark = {"type": "text", "aria": False, "baseline": "middle", "fontSize": 12, "limit": 140}
    # One layer, whose marks each have their own offset.
    mark |= {"color": INK} | {key: {"expr": f"datum.{key}"} for key in ("dx", "dy", "align")}
    places = {"x": x | {"field": "x"}, "y": y | {"field": "y"}, "text": {"field": "name"}}
    return [{"data": {"values": found}, "mark": mark, "encoding": places}]


def lines(chart: Mapping[str, Any], width: int) -> Spec:
    """Curves by series, each with its own dash, and points that stand out on them.

    A series may have `low` and `high`: the interval of each of its points.
    """
    series = [item["name"] for item in chart["series"]]
    values = [
        {"series": item["name"], "x": x, "y": y}
        for item in chart["series"]
        for x, y in zip(item["x"], item["y"])
        if x is not None and y is not None
    ]
    x, y = (
        {
            "type": "quantitative",
            "title": wrapped(chart[f"{axis}_axis"], width),
            "axis": number_axis(chart.get(f"{axis}_format", "~f")) | {"tickCount": 6},
            "scale": {"zero": False, "nice": axis == "y"}
            | ({"domain": chart[f"{axis}_domain"]} if chart.get(f"{axis}_domain") else {}),
        }
        for axis in ("x", "y")
    )
    colour = by_series(series, SERIES)
    layers: list[Spec] = []
    spans = [
        {"series": item["name"], "x": at, "low": low, "high": high}
        for item in chart["series"]
        for at, low, high in zip(item["x"], item.get("low", ()), item.get("high", ()))
        if None not in (at, low, high)
    ]
    if spans:
        ends = {"x": x | {"field": "x"}, "y": y | {"field": "low"}, "y2": {"field": "high"}}
        layers.append(
            {
                "data": {"values": spans},
                "mark": {"type": "rule", "aria": False, "strokeWidth": 1.4, "opacity": 0.6},
                "encoding": ends | {"color": colour},
            }
        )
    if chart.get("diagonal"):
        low, high = chart["diagonal"]
        layers.append(path_through([(low, low), (high, high)], dash=[5, 4]))
    if chart.get("band"):
        low, high = chart["band"]
        layers.append(
            {
                "data": {"values": [{"low": low, "high": high}]},
                "mark": {"type": "rect", "aria": False, "opacity": 0.14, "color": WITHIN},
                "encoding": {"y": y | {"field": "low"}, "y2": {"field": "high"}},
            }
        )
    layers.append(
        {
            "mark": {"type": "line", "aria": False, "strokeWidth": 2.2, "clip": True},
            "encoding": {
                "x": x | {"field": "x"},
                "y": y | {"field": "y"},
                "color": colour,
                "strokeDash": by_series(series, SERIES_DASHES),
            },
        }
    )
    for point in chart.get("points", []):
        layers.append(
            {
                "data": {"values": [dict(point)]},
                "mark": {
                    "type": "point",
                    "filled": point.get("filled", True),
                    "size": 110,
                    "opacity": 1,
                    "strokeWidth": 2,
                    "shape": point.get("shape", "circle"),
                    "clip": True,
                },
                "encoding": {
                    "x": x | {"field": "x"},
                    "y": y | {"field": "y"},
                    "color": colour,
                    "description": {"field": "tip"},
                },
            }
        )
    return framed(values, layers, width, height=280 if width > NARROW else 250)


def strips(chart: Mapping[str, Any], width: int) -> Spec:
    """One small line per class on each row; a few classes followed from row to row."""
    rows = [dict(row) for row in chart["rows"]]
    names = list(dict.fromkeys(row["line"] for row in rows))
    shown = dict(zip(names, told_apart(names, most=letters(width))))
    # In the order of the legend, whatever the order of the rows.
    followed = list(chart["followed"])
    for row in rows:
        row["label"] = shown[row["line"]]
    y = name_axis(list(shown.values()), width)
    x = quantity_axis(chart, {"zero": False}, width, beside=y)
    still = chart.get("zero", 0.0)
    layers: list[Spec] = [] if still is None else [rule_at("x", float(still), [1, 0])]
    layers.append(
        {
            "transform": [{"filter": "!isValid(datum.followed)"}],
            "mark": {"type": "tick", "thickness": 1.5, "size": 16, "opacity": 0.55, "color": QUIET},
            "encoding": {"y": y, "x": x | {"field": "value"}, "description": {"field": "tip"}},
        }
    )
    if followed:
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.followed)"}],
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": x | {"field": "value"},
                    "color": by_series(followed, SERIES, field="followed"),
                    "shape": by_series(followed, SERIES_SHAPES, field="followed"),
                    "description": {"field": "tip"},
                },
            }
        )
    return framed(rows, layers, width, height={"step": 34})


KINDS: dict[str, Callable[[Mapping[str, Any], int], Spec]] = {
    "forest": forest,
    "grouped": grouped,
    "scatter": scatter,
    "lines": lines,
    "strips": strips,
}


def with_legend(spec: dict[str, Any], legend: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A chart that says itself what its marks are: beside the page there is nobody else to.

    Examples:
        >>> scale = {"domain": ["a", "b"], "range": ["#111111", "#222222"]}
        >>> layer = {"encoding": {"color": {"field": "k", "legend": None, "scale": scale}}}
        >>> items = [{"colour": "#111111", "text": "One"}, {"colour": "#222222", "text": "Two"}]
        >>> made = with_legend({"layer": [layer]}, items)["layer"][0]["encoding"]["color"]["legend"]
        >>> made["values"], made["labelExpr"]
        (['a', 'b'], '({"a": "One", "b": "Two"})[datum.label]')
    """
    texts = {item["colour"]: str(item["text"]) for item in reversed(legend)}
    marks = [layer["mark"] for layer in spec["layer"] if "mark" in layer]
    # Words over a band stand between the chart and its legend.
    above = max((-mark["y"] for mark in marks if mark["type"] == "text" and "y" in mark), default=0)
    layers = []
    for layer in spec["layer"]:
        encoding = dict(layer["encoding"])
        scale = (encoding.get("color") or {}).get("scale") or {"domain": (), "range": ()}
        named = {
            value: texts[colour]
            for value, colour in zip(scale["domain"], scale["range"])
            if colour in texts
        }
        if len(named) > 1:
            made = {
                "orient": "top",
                "offset": 18 + above,
                "columnPadding": 18,
                "title": None,
                "values": list(named),
                "labelExpr": f"({json.dumps(named, ensure_ascii=False)})[datum.label]",
                "labelFontSize": 12.5,
                "symbolOpacity": 1,
                "labelLimit": 300,
            }
            for channel in ("color", "shape", "strokeDash"):
                if channel in encoding:
                    encoding[channel] = {**encoding[channel], "legend": made}
        layers.append({**layer, "encoding": encoding})
    return {**spec, "layer": layers}
