"""What the renderer writes in fewer bytes: the same picture without what says nothing."""

import re
from collections.abc import Mapping
from html import escape, unescape
from itertools import groupby
from typing import Any

from evenhand.errors import MissingExtra
from evenhand.report.axis_words import with_words, without_words
from evenhand.report.palette import with_variables

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
    re.compile(r' transform="translate\(0,0\)"'),
    # A filled mark has no outline; the size and colour of text are the page's own.
    re.compile(r'(?<=fill="#[0-9a-f]{6}") stroke-width="2"'),
    re.compile(r' font-size="12.5px" fill="#4b5261"'),
)
_PLACES = re.compile(r' (d|transform|x2|y2)="([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{2,}")
_GROUP = re.compile(r"<(/?)g([^>]*)>")
_HOLLOW = re.compile(r"<g[^>]*></g>")
_LINE = re.compile(
    r'<line transform="translate\(([-\d.]+),([-\d.]+)\)"((?: [xy]2="[-\d.]+")*)([^>]*?)/>'
)
_CIRCLE = re.compile(
    r'<path transform="translate\(([-\d.]+),([-\d.]+)\)" '
    r'd="M([\d.]+),0A\3,\3,0,1,1,-\3,0A\3,\3,0,1,1,\3,0Z?"([^>]*)>((?:<title>[^<]*</title>)?)</path>'
)
_LEAF = re.compile(r"<(path|circle)((?: [\w-]+=\"[^\"]*\")*)(?:/>|>(<title>[^<]*</title>)</\1>)")
_LEAVES = re.compile(f"(?:{_LEAF.pattern})+".replace(r"\1", r"(?:path|circle)"))
_SHARED = re.compile(
    r' (?:fill|stroke|stroke-width|stroke-opacity|fill-opacity|stroke-dasharray)="[^"]*"'
)
_FAINT = re.compile(r'(<(?:path|line|circle)[^>]*?) opacity="([\d.]+)"')


def slimmed(svg: str) -> str:
    """The inside of an SVG, smaller: no empty groups, rounded places, what marks share said once.

    Examples:
        >>> print(slimmed('<g><line transform="translate(1.0,2)" y2="5" stroke="#e3e6ea"/>'
        ...               '<line transform="translate(9,2)" y2="5" stroke="#e3e6ea"/></g>'))
        <path d="M1,2v5M9,2v5" stroke="#e3e6ea"/>
    """
    for useless in _EMPTY:
        svg = useless.sub("", svg)
    svg = _PLACES.sub(lambda found: f' {found[1]}="{_LONG.sub(_rounded, found[2])}"', svg)
    svg = _FAINT.sub(lambda m: f'{m[1]} {_inherited(m[1])}-opacity="{m[2]}"', svg)
    svg = _LINE.sub(_drawn, svg)
    svg = _CIRCLE.sub(_round, svg)
    svg = without_bare_groups(svg)
    return _LEAVES.sub(lambda found: _together(found.group()), svg)


def without_bare_groups(svg: str) -> str:
    """The SVG without groups that hold nothing or say nothing.

    Examples:
        >>> without_bare_groups('<g><g fill="none"><g><path/></g><g></g></g></g>')
        '<g fill="none"><path/></g>'
    """
    for _ in range(6):
        smaller = _HOLLOW.sub("", svg)
        if smaller == svg:
            break
        svg = smaller
    kept: list[bool] = []

    def keep(found: re.Match[str]) -> str:
        if found[1]:
            return "</g>" if kept.pop() else ""
        kept.append(bool(found[2].strip()))
        return found.group() if kept[-1] else ""

    return _GROUP.sub(keep, svg)


def _together(marks: str) -> str:
    """Neighbours with the same colours in one group; lines without a title in one path."""
    held = []
    for found in _LEAF.finditer(marks):
        shared = "".join(_SHARED.findall(found[2]))
        held.append((shared, found[1], _SHARED.sub("", found[2]), found[3] or ""))
    out = []
    for shared, run in groupby(held, key=lambda one: one[0]):
        mine = list(run)
        if all(not title and own.startswith(' d="M') and own.count('"') == 2 and kind == "path"
               for _, kind, own, title in mine) and "fill=" not in shared:  # fmt: skip
            path = "".join(own[4:-1] for _, _, own, _ in mine)
            out.append(f'<path d="{path}"{shared}/>')
            continue
        inner = [
            f"<{kind}{own}>{title}</{kind}>" if title else f"<{kind}{own}/>"
            for _, kind, own, title in mine
        ]
        if len(mine) > 1 and shared:
            out.append(f"<g{shared}>{''.join(inner)}</g>")
        else:
            out += [
                f"<{kind}{own}{shared}>{title}</{kind}>" if title else f"<{kind}{own}{shared}/>"
                for _, kind, own, title in mine
            ]
    return "".join(out)


def _drawn(found: re.Match[str]) -> str:
    """A straight line as a path."""
    x, y, ends, rest = found.groups()
    far = dict(re.findall(r'([xy]2)="([-\d.]+)"', ends))
    way = (
        f"l{far['x2']},{far['y2']}"
        if len(far) == 2
        else f"h{far['x2']}"
        if "x2" in far
        else f"v{far.get('y2', '0')}"
    )
    return f'<path d="M{_short(x)},{_short(y)}{way}"{rest}/>'


def _round(found: re.Match[str]) -> str:
    x, y, radius, rest, title = found.groups()
    return f'<circle cx="{_short(x)}" cy="{_short(y)}" r="{radius}"{rest}>{title}</circle>'


def _inherited(mark: str) -> str:
    # An opacity of its own cannot be shared with neighbours that lie on one another.
    return "fill" if "fill=" in mark else "stroke"


def _rounded(found: re.Match[str]) -> str:
    return _short(found.group())


def _short(number: str) -> str:
    return f"{float(number):.1f}".removesuffix(".0")


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
    draw = _renderer().vegalite_to_svg
    spec, words = without_words(specification)
    svg = with_words(str(draw(spec)), words) if words.names else None
    return str(draw(dict(specification))) if svg is None else svg


def png(specification: Mapping[str, Any], *, scale: float = 2.0, dots: float = 72) -> bytes:
    """The chart as PNG on white, with so many dots to an inch of 72 units."""
    held = dict(specification) | {"background": "#ffffff"}
    return bytes(_renderer().vegalite_to_png(held, scale=scale, ppi=dots))


def pdf(svg: str) -> bytes:
    """An SVG as a PDF of its own size, one point a unit."""
    return bytes(_renderer().svg_to_pdf(svg))


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
