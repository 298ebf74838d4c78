"""Static pictures of charts: SVG for the page, SVG or PNG on their own. Needs vl-convert."""

import re
from collections.abc import Mapping
from html import escape, unescape
from typing import Any

from evenhand.errors import MissingExtra
from evenhand.report.palette import with_variables

HINT = "pip install 'evenhand[report]'"
# Everything that says nothing: it is two thirds of what the renderer writes.
_EMPTY = (
    re.compile(r'<path class="(?:background|foreground)"[^>]*?(?:/>|></path>)'),
    re.compile(r' (?:pointer-events="none"|opacity="1"|stroke-miterlimit="10")'),
    re.compile(r' aria-(?:hidden|roledescription)="[^"]*"'),
    re.compile(r' role="[^"]*"'),
    re.compile(r' class="[^"]*"'),
    re.compile(r' (?:font-family|font-weight)="[^"]*"'),
    re.compile(r' (?:x2|y2)="0"'),
    re.compile(r' stroke-width="1"(?=[ />])'),
    # A filled mark has no outline; the size and colour of text are the page's own.
    re.compile(r'(?<=fill="#[0-9a-f]{6}") stroke-width="2"'),
    re.compile(r' font-size="12.5px" fill="#4b5261"'),
)
_PLACES = re.compile(r' (d|transform|x2|y2)="([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{2,}")
_ANNOTATED = re.compile(r'<(path|line)([^>]*?) aria-label="([^"]*)"([^>]*?)(?:/>|></\1>)')
_LABEL = re.compile(r' aria-label="[^"]*"')
_BARE = re.compile(r"<g>((?:(?!</?g[ >]).)*)</g>")
_HOLLOW = re.compile(r"<g[^>]*></g>")
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


def page_svg(specification: Mapping[str, Any], *, name: str, title: str, described: str) -> str:
    """The SVG for the page: small, coloured by the page's variables, with a title for readers."""
    return dressed(raw_svg(specification), name=name, title=title, described=described)


def dressed(svg: str, *, name: str, title: str, described: str) -> str:
    """An SVG without what says nothing, its colours variables, labelled for screen readers.

    Examples:
        >>> svg = '<svg class="marks" width="9" height="8" viewBox="0 0 9 8"><g></g></svg>'
        >>> print(dressed(svg, name="a", title="T", described="D"))
        <svg class="chart" width="9" height="8" viewBox="0 0 9 8" role="img" \
aria-labelledby="a-t a-d"><title id="a-t">T</title><desc id="a-d">D</desc></svg>
    """
    body = _ANNOTATED.sub(_with_title, svg)
    body = _LABEL.sub("", body)
    head = _HEAD.search(body)
    width, height = head.groups() if head else ("0", "0")
    body = body[head.end() if head else 0 :].removesuffix("</svg>")
    for useless in _EMPTY:
        body = useless.sub("", body)
    body = _PLACES.sub(lambda found: f' {found[1]}="{_LONG.sub(_rounded, found[2])}"', body)
    for _ in range(6):
        body = _BARE.sub(r"\1", _HOLLOW.sub("", body))
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


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found.group()):.1f}".removesuffix(".0")


def _renderer() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("report", "A chart") from None
    return vl_convert
