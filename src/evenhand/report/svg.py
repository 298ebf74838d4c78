"""Static pictures of charts: SVG for the page, SVG or PNG on their own. Needs vl-convert."""

import re
from collections.abc import Mapping
from html import escape, unescape
from typing import Any

from evenhand.errors import MissingExtra
from evenhand.report.palette import with_variables
from evenhand.report.slim_svg import slimmed

HINT = "pip install 'evenhand[report]'"
_ANNOTATED = re.compile(r'<(path|line)([^>]*?) aria-label="([^"]*)"([^>]*?)(?:/>|></\1>)')
_LABEL = re.compile(r' aria-label="[^"]*"')
_CLIP = re.compile(r'(id="|url\(#)clip(\d+)')
_HEAD = re.compile(r"<svg[^>]*?width=\"([\d.]+)\" height=\"([\d.]+)\"[^>]*>")


def can_draw() -> bool:
    """Whether the extra that draws charts is installed."""
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


def raw_svg(specification: Mapping[str, Any]) -> str:
    """The SVG as the renderer writes it, with the light colours."""
    return str(_renderer().vegalite_to_svg(dict(specification)))


def png(specification: Mapping[str, Any], *, scale: float = 2.0) -> bytes:
    """The chart as PNG on white."""
    held = dict(specification) | {"background": "#ffffff"}
    return bytes(_renderer().vegalite_to_png(held, scale=scale))


def page_svg(
    specification: Mapping[str, Any], *, name: str, title: str, described: str, tips: bool = True
) -> str:
    """The SVG for the page: small, coloured by the page's variables, with a title for readers."""
    svg = raw_svg(specification)
    return dressed(svg, name=name, title=title, described=described, tips=tips)


def dressed(svg: str, *, name: str, title: str, described: str, tips: bool = True) -> str:
    """An SVG without what says nothing, its colours variables, labelled for screen readers.

    With `tips` a mark tells its number on hover.

    Examples:
        >>> svg = '<svg class="marks" width="9" height="8" viewBox="0 0 9 8"><g></g></svg>'
        >>> print(dressed(svg, name="a", title="T", described="D"))
        <svg class="chart" width="9" height="8" viewBox="0 0 9 8" role="img" \
aria-labelledby="a-t a-d"><title id="a-t">T</title><desc id="a-d">D</desc></svg>
    """
    body = _ANNOTATED.sub(_with_title, svg) if tips else svg
    body = _LABEL.sub("", body)
    head = _HEAD.search(body)
    width, height = head.groups() if head else ("0", "0")
    body = body[head.end() if head else 0 :].removesuffix("</svg>")
    body = slimmed(body)
    opening = (
        f'<svg class="chart" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{escape(title)}'
        f'</title><desc id="{name}-d">{escape(described)}</desc>'
    )
    return opening + with_variables(own_ids(body, name)) + "</svg>"


def own_ids(svg: str, name: str) -> str:
    """The SVG with its clips named after it: the renderer counts them through a whole process.

    Examples:
        >>> own_ids('<clipPath id="clip7"/><g clip-path="url(#clip7)"/>', "a")
        '<clipPath id="a-c1"/><g clip-path="url(#a-c1)"/>'
    """
    seen: dict[str, int] = {}
    return _CLIP.sub(lambda m: f"{m[1]}{name}-c{seen.setdefault(m[2], len(seen) + 1)}", svg)


def _with_title(found: re.Match[str]) -> str:
    """A mark whose label is a title: shown on hover. What is safe in an attribute is not here."""
    mark, before, label, rest = found.groups()
    return f"<{mark}{before}{rest}><title>{escape(unescape(label))}</title></{mark}>"


def _renderer() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("report", "A chart") from None
    return vl_convert
