"""The report as one page: no script, no request, readable anywhere."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from evenhand.report.charts import NARROW, WIDE, specification
from evenhand.report.column_styles import MOST_BESIDE, style_columns
from evenhand.report.palette import SERIES_DASHES, VARIABLES
from evenhand.report.summary import summarise
from evenhand.report.svg import HINT, can_draw, page_svg
from evenhand.report.whole import whole

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_APART = re.compile(r"\d %|\bn = \d|[ρ] [+−=] ?|= [+−]?\d|\d[)\]] %")
# Signs that our own numbers are printed with.
_SIGNS = str.maketrans("", "", "−–…’ρ≥≤±∞×÷")
_MARKS = {"outside": "✕", "cannot tell": "?", "within": "✓", "not assessed": "·"}
_CLASSES = {"outside": "bad", "cannot tell": "untold", "within": "good", "not assessed": "plain"}


def as_page(
    record: Mapping[str, Any] | None,
    *,
    ledger: Mapping[str, Any] | None = None,
    previous: Mapping[str, Any] | None = None,
    charts: bool = True,
) -> str:
    """The report as HTML: of a record, of a ledger of remedies, or of both.

    Args:
        record: The audit to show, or None for a ledger alone.
        ledger: Remedies side by side, as `evenhand compare` records them.
        previous: An older record; what moved since comes first.
        charts: Draw charts where the extra is installed; otherwise tables stand alone.
    """
    page = summarise(
        None if record is None else whole(record),
        ledger=ledger,
        previous=None if previous is None else whole(previous),
    )
    drawn = charts and can_draw()
    if drawn:
        for block, folded in _figures(page["sections"]):
            _draw(block, once=folded)
    template = _environment().get_template("page.html.j2")
    styles = _markup(style_columns(page["sections"]))
    shown = {"drawn": drawn, "wanted": charts, "hint": HINT, "column_styles": styles}
    return str(template.render(page=page, policy=POLICY, **shown))


def data_link(text: str) -> str:
    """CSV as a link that needs no file.

    Examples:
        >>> data_link("a,b")
        'data:text/csv;charset=utf-8,a,b'
    """
    return "data:text/csv;charset=utf-8," + quote(text, safe=",:;()[]*!$'/@~")


def _figures(blocks: Any, folded: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every figure of some blocks, and whether it opens only on demand."""
    for block in blocks:
        if block.get("kind") == "figure":
            yield block, folded
        yield from _figures(block.get("blocks", []), folded or block.get("kind") == "folded")


def _draw(block: dict[str, Any], *, once: bool) -> None:
    """Put the pictures of a figure's charts beside their data."""
    several = len(block["charts"]) > 1
    for i, chart in enumerate(block["charts"]):
        if not (chart.get("rows") or chart.get("points") or chart.get("series")):
            chart["pictures"] = []
            continue
        # Small charts wrap by themselves, and what opens on demand need not weigh twice.
        widths = [("wide", WIDE), ("narrow", NARROW)]
        if several or once:
            widths = [("small", NARROW)]
        chart["pictures"] = [
            {
                "size": size,
                "svg": page_svg(
                    specification(chart, width=width),
                    name=f"{block['id']}-{i}-{size}",
                    title=chart.get("title") or block["title"],
                    described=f"{block['read'][:1].upper()}{block['read'][1:]} "
                    "The numbers follow as a table.",
                    # On a phone nothing hovers, and the numbers are in the table.
                    tips=size != "narrow",
                ),
            }
            for size, width in widths
        ]


def _unbroken(value: Any) -> Any:
    """Text whose numbers stay on one line with their signs and units."""
    if type(value) is not str:
        return value
    return _APART.sub(lambda found: found.group().replace(" ", "\u00a0"), value)


def _is_plain(value: Any) -> bool:
    """Whether a cell needs no isolation: text that can only run from left to right."""
    return not isinstance(value, str) or value.translate(_SIGNS).isascii()


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    folder = files("evenhand.report") / "templates"
    made = Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_unbroken,
    )
    made.tests["plain"] = _is_plain
    made.globals |= {
        "most_beside": MOST_BESIDE,
        "marks": _MARKS,
        "classes": _CLASSES,
        "variables": VARIABLES,
        "dashes": [" ".join(map(str, dash)) for dash in SERIES_DASHES],
        "style": Markup((folder / "style.css").read_text(encoding="utf-8")),
        "data_link": data_link,
        "safe_svg": Markup,
    }
    return made
