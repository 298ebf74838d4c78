"""Names and titles of axes, written into a chart's SVG without the renderer measuring them.

The renderer takes a millisecond or more to measure a few words, several times for each: most of
what a chart takes. Where names surely fit into the room that their axis has, and a title below its
plot, nothing depends on their widths; the renderer then draws them empty, each in its place, and
they are filled in here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

# Widths in ems, none smaller than in common fonts without serifs.
_NARROW = dict.fromkeys(" !'(),-./:;I[\\]`fijlrt|", 0.46)
_BROAD = dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZw+=<>~^#&{}", 0.84)
_WIDEST = dict.fromkeys("MWm@%", 1.08)
_USUAL = dict.fromkeys('abcdeghknopqsuvxyz0123456789"$*?_', 0.64)
EMS = _NARROW | _BROAD | _WIDEST | _USUAL
_LABELS = re.compile(r'(?<=role-axis-label" pointer-events="none">)((?:<text [^>]*/>)+)(?=</g>)')
_TITLES = re.compile(r'(?<=role-axis-title" pointer-events="none">)(<text [^>]*>)(.*?)</text>')
# Stands for a line of a title until it is filled in; the shorter, the sooner it is measured.
_LINE = "x"
_MARK = re.compile(rf"(?<![^>]){_LINE}(?![^<])")
# What numbers at the right end of an axis may take from the room of its plot.
_OVERHANG = 32
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisWords:
    """The names of lines and the lines of the title that a chart is drawn without."""

    names: tuple[str, ...] = ()
    title: tuple[str, ...] = ()


def surely_fits(name: str, room: float, *, size: float) -> bool:
    """Whether a name of plain letters has room, in whatever font a reader has.

    Examples:
        >>> surely_fits("group 45", 61, size=12.5), surely_fits("WWWW", 31, size=12.5)
        (True, False)
        >>> surely_fits("日本", 500, size=12.5)
        False
    """
    if not name or name != " ".join(name.split()) or any(sign not in EMS for sign in name):
        return False
    return size * sum(EMS[sign] for sign in name) <= room


def without_words(specification: Mapping[str, Any]) -> tuple[Spec, AxisWords]:
    """A specification that is drawn without names and title where nothing depends on their widths.

    A title is left out only where names are: it is known then how wide the plot will be.
    """
    spec = dict(specification)
    axis = spec.get("config", {}).get("axis", {})
    layers, names, extent = _without_names(spec, size=axis.get("labelFontSize", 0))
    if not names:
        return spec, AxisWords()
    sides = spec.get("padding", {})
    room = spec["width"] - sides.get("left", 0) - sides.get("right", 0) - _OVERHANG
    size = axis.get("titleFontSize", 0)
    held, title = _without_title(layers, room=room, beside=extent, size=size)
    return spec | {"layer": held}, AxisWords(names=tuple(names), title=tuple(title))


def _without_names(spec: Spec, *, size: float) -> tuple[list[Spec], list[str], float]:
    """The layers with empty names, the names, and how far they reach; no names where one must be
    measured."""
    layers = [dict(layer) for layer in spec.get("layer", ())]
    names: list[str] = []
    extent = 0.0
    for layer in layers:
        y = layer.get("encoding", {}).get("y")
        if y is None:
            continue
        own, axis = y.get("sort"), y.get("axis")
        if not isinstance(own, list) or not isinstance(axis, Mapping) or (names and own != names):
            return layers, [], 0.0
        extent = axis.get("minExtent", 0)
        room = extent - axis.get("labelPadding", 0)
        if not all(surely_fits(str(name), room, size=size) for name in own):
            return layers, [], 0.0
        names = own
        empty = y | {"axis": dict(axis) | {"labelExpr": "''"}}
        layer["encoding"] = dict(layer["encoding"]) | {"y": empty}
    return layers, names, extent


def _without_title(
    layers: list[Spec], *, room: float, beside: float, size: float
) -> tuple[list[Spec], list[str]]:
    """The layers with a mark for each line of their one title below, and its lines.

    A title in the middle has the room of the plot, one set to the right also that of the names.
    """
    below = [layer["encoding"]["x"] for layer in layers if "title" in _below(layer)]
    titles = [x["title"] if isinstance(x["title"], list) else [x["title"]] for x in below]
    if not titles or any(own != titles[0] for own in titles):
        return layers, []
    if any((x.get("axis") or {}).get("titleAnchor") != "end" for x in below):
        room -= beside
    if not all(isinstance(line, str) and surely_fits(line, room, size=size) for line in titles[0]):
        return layers, []
    marks = _LINE if isinstance(below[0]["title"], str) else [_LINE] * len(titles[0])
    return [
        layer | {"encoding": layer["encoding"] | {"x": layer["encoding"]["x"] | {"title": marks}}}
        if "title" in _below(layer)
        else layer
        for layer in layers
    ], titles[0]


def _below(layer: Spec) -> Mapping[str, Any]:
    """How a layer is placed along the axis below."""
    return layer.get("encoding", {}).get("x") or {}


def with_words(svg: str, words: AxisWords) -> str | None:
    """The SVG with its words filled in; None where it has no such places for them.

    Examples:
        >>> empty = '<g class="mark-text role-axis-label" pointer-events="none"><text x="1"/></g>'
        >>> print(with_words(empty, AxisWords(names=("a & b",))))
        <g class="mark-text role-axis-label" pointer-events="none"><text x="1">a &amp; b</text></g>
        >>> with_words(empty, AxisWords(names=("a", "b"))) is None
        True
    """
    found = list(_LABELS.finditer(svg))
    if len(found) != 1:
        return None
    places = found[0].group().split("/>")[:-1]
    if len(places) != len(words.names):
        return None
    filled = "".join(
        f"{place}>{escape(name, quote=False)}</text>" for place, name in zip(places, words.names)
    )
    named = svg[: found[0].start()] + filled + svg[found[0].end() :]
    return _titled(named, words.title) if words.title else named


def _titled(svg: str, lines: Sequence[str]) -> str | None:
    """The SVG with the lines of its title, which readers of a screen are told as one."""
    found, told = list(_TITLES.finditer(svg)), f"X-axis titled '{' '.join([_LINE] * len(lines))}'"
    if len(found) != 1 or svg.count(told) != 1 or len(_MARK.findall(found[0][2])) != len(lines):
        return None
    texts = iter([escape(line, quote=False) for line in lines])
    filled = _MARK.sub(lambda _: next(texts), found[0][2])
    whole = svg[: found[0].start(2)] + filled + svg[found[0].end(2) :]
    joined = escape(" ".join(lines), quote=False).replace('"', "&quot;")
    return whole.replace(told, f"X-axis titled '{joined}'")
