"""Names beside a chart, written into its SVG without the renderer measuring them.

The renderer takes a millisecond or two to measure a name, several times for each: most of what a
chart of many lines takes. Where names surely fit into the room that their axis has, nothing depends
on their widths; the renderer then draws them empty, each in its place, and they are filled in here.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

# Widths in ems, none smaller than in common fonts without serifs.
_NARROW = dict.fromkeys(" !'(),-./:;I[\\]`fijlrt|", 0.46)
_BROAD = dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZw+=<>~^#&{}", 0.84)
_WIDEST = dict.fromkeys("MWm@%", 1.08)
_USUAL = dict.fromkeys('abcdeghknopqsuvxyz0123456789"$*?_', 0.64)
EMS = _NARROW | _BROAD | _WIDEST | _USUAL
_LABELS = re.compile(r'(?<=role-axis-label" pointer-events="none">)((?:<text [^>]*/>)+)(?=</g>)')


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


def without_names(specification: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A specification whose named axis is drawn empty, and its names; none where it is not."""
    spec = dict(specification)
    layers = [dict(layer) for layer in spec.get("layer", ())]
    size = spec.get("config", {}).get("axis", {}).get("labelFontSize", 0)
    names: list[str] = []
    for layer in layers:
        y = layer.get("encoding", {}).get("y")
        if y is None:
            continue
        own, axis = y.get("sort"), y.get("axis")
        if not isinstance(own, list) or not isinstance(axis, Mapping) or (names and own != names):
            return spec, []
        room = axis.get("minExtent", 0) - axis.get("labelPadding", 0)
        if not all(surely_fits(str(name), room, size=size) for name in own):
            return spec, []
        names = own
        empty = y | {"axis": dict(axis) | {"labelExpr": "''"}}
        layer["encoding"] = dict(layer["encoding"]) | {"y": empty}
    return (spec | {"layer": layers} if names else spec), names


def with_names(svg: str, names: Sequence[str]) -> str | None:
    """The SVG with its empty labels filled in; None where there are not as many as names.

    Examples:
        >>> empty = '<g class="mark-text role-axis-label" pointer-events="none"><text x="1"/></g>'
        >>> print(with_names(empty, ["a & b"]))
        <g class="mark-text role-axis-label" pointer-events="none"><text x="1">a &amp; b</text></g>
        >>> with_names(empty, ["a", "b"]) is None
        True
    """
    found = list(_LABELS.finditer(svg))
    if len(found) != 1:
        return None
    places = found[0].group().split("/>")[:-1]
    if len(places) != len(names):
        return None
    filled = "".join(
        f"{place}>{escape(name, quote=False)}</text>" for place, name in zip(places, names)
    )
    return svg[: found[0].start()] + filled + svg[found[0].end() :]
