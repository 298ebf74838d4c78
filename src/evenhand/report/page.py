"""The report as one page: no script, no request, readable anywhere."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from evenhand.report.beside import labelers_beside
from evenhand.report.charts import NARROW, WIDE, specification
from evenhand.report.compare import change_sentence, changes, comparison_section
from evenhand.report.first_screen import first_screen
from evenhand.report.palette import SERIES_DASHES, VARIABLES
from evenhand.report.picture import WIDTH as PICTURE
from evenhand.report.sections.charter import costs_section
from evenhand.report.sections.counterfactual import counterfactual_section
from evenhand.report.sections.labelers import labelers_section
from evenhand.report.sections.lens import lens_section
from evenhand.report.sections.methods import methods_section, quality_section
from evenhand.report.sections.norms import norms_section
from evenhand.report.sections.remedies import remedies_section
from evenhand.report.sections.statistical import gaps_section
from evenhand.report.sections.thresholds import thresholds_section
from evenhand.report.sections.where import where_section
from evenhand.report.svg import HINT, can_draw, page_svg
from evenhand.report.view import View, whole
from evenhand.speech import plural

# The sections of lenses, in the order of the page; a lens without one gets the general one.
_LENS_SECTIONS = {
    "thresholds": thresholds_section,
    "statistical": gaps_section,
    "counterfactual": counterfactual_section,
    "norms": norms_section,
    "labelers": labelers_section,
}


def summarise(
    record: Mapping[str, Any] | None,
    *,
    ledger: Mapping[str, Any] | None = None,
    earlier: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """What the page says of a record, of a ledger of remedies, or of both.

    `earlier` are older records to compare with, the oldest first; one that is of the same
    system's labelers stands beside the model's. A lens without rows has no section.

    Examples:
        >>> page = summarise(None, ledger={"rows": [{"remedy": "reweigh", "accuracy": 0.8}]})
        >>> page["title"], [section["id"] for section in page["sections"]]
        ('Remedies compared', ['remedies'])
    """
    remedies = remedies_section(ledger)
    if record is None:
        return _ledger_page(ledger or {}, remedies)
    view = View.of(record)
    older = [View.of(one) for one in earlier]
    beside = labelers_beside(view, older)
    if beside is not None:
        view, older = beside.model, []
    sections = list(lens_sections(view))
    compared = None
    if older:
        found = changes(*older, view)
        sections.insert(0, comparison_section([*older, view], found))
        compared = change_sentence([*older, view], found)
    if beside is not None:
        sections[0:0] = [beside.section(), labelers_section(beside.labelers)]
    sections += [remedies, where_section(view), quality_section(view), methods_section(view)]
    screen = first_screen(view, compared=compared, beside=beside, ledger=ledger)
    return {
        "title": screen.pop("title"),
        "meta": screen.pop("meta"),
        "screen": screen,
        "sections": _numbered([one for one in sections if one]),
    }


def lens_sections(view: View) -> Iterator[dict[str, Any] | None]:
    """The sections of the lenses in the page's order, each made when it is asked for."""
    yield costs_section(view)
    for make in _LENS_SECTIONS.values():
        yield make(view)
    others = [lens for lens in view.rows.lenses if lens not in _LENS_SECTIONS]
    for lens in others:
        yield lens_section(view, lens)


def _ledger_page(ledger: Mapping[str, Any], remedies: dict[str, Any] | None) -> dict[str, Any]:
    rows = ledger.get("rows") or []
    names = {row.get("remedy") for row in rows}
    made = ledger.get("made") or {}
    return {
        "title": "Remedies compared",
        "meta": [
            text
            for text in (
                plural(len(names), "option"),
                f"made {str(made.get('at'))[:10]}" if made.get("at") else "",
                f"Evenhand {made['version']}" if made.get("version") else "",
            )
            if text
        ],
        "screen": None,
        "sections": _numbered([remedies] if remedies else []),
    }


def _numbered(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"number": i} for i, one in enumerate(sections, start=1)]


Block = dict[str, Any]
# As many columns as a phone can show beside one another; wider tables are stacked there.
MOST_BESIDE = 2


def style_columns(sections: Iterable[Block]) -> str:
    """Give every table a name of its own, and return the styles of their columns.

    Numbers stand to the right; on a phone, where a wide table is stacked, each cell has the name of
    its column before it.

    Examples:
        >>> columns = [{"name": n, "number": n == "n"} for n in ("Group", "Class", "n", "<b>")]
        >>> held = {"kind": "table", "columns": columns}
        >>> print(style_columns([{"blocks": [held]}]))
        :where(#t1) :is(td,th):nth-child(3){text-align:right;white-space:nowrap}
        @media (max-width:700px){:where(#t1) td:nth-child(2)::before{content:"Class: "}\
:where(#t1) td:nth-child(3)::before{content:"n: "}\
:where(#t1) td:nth-child(4)::before{content:"\\3c b\\3e : "}}
        >>> held["id"]
        't1'
    """
    right, named = [], []
    for i, table in enumerate(_tables(sections), start=1):
        table["id"] = f"t{i}"
        columns = list(enumerate(table["columns"], start=1))
        places = [f":is(td,th):nth-child({k})" for k, column in columns if column["number"]]
        right += [f":where(#t{i}) {place}" for place in places]
        if len(columns) > MOST_BESIDE:
            named += [
                f":where(#t{i}) td:nth-child({k})::before{{content:{css_string(column['name'])}}}"
                for k, column in columns[1:]
            ]
    told = f"{','.join(right)}{{text-align:right;white-space:nowrap}}\n" if right else ""
    return f"{told}@media (max-width:700px){{{''.join(named)}}}"


def css_string(name: str) -> str:
    """A column's name as a string of CSS: whatever the data put into it stays text."""
    safe = "".join(
        c if c.isascii() and (c.isalnum() or c in " -.,:()%") else f"\\{ord(c):x} "
        for c in name.strip()
    )
    return f'"{safe}: "'


def _tables(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.get("kind") == "table":
            yield block
        if block.get("kind") == "figure":
            yield from _tables([block["numbers"]])
        yield from _tables(block.get("blocks", []))


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_APART = re.compile(r"\d (?:%|points?\b|times\b)|\bn = \d|[ρ] [+−=] ?|= [+−]?\d|\d[)\]] %")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# Signs that our own numbers are printed with.
_SIGNS = str.maketrans("", "", "−–…’ρ≥≤±∞×÷")
_MARKS = {"outside": "✕", "cannot tell": "?", "within": "✓", "not assessed": "·"}
_CLASSES = {"outside": "bad", "cannot tell": "untold", "within": "good", "not assessed": "plain"}


def as_page(
    record: Mapping[str, Any] | None,
    *,
    ledger: Mapping[str, Any] | None = None,
    earlier: Sequence[Mapping[str, Any]] = (),
    charts: bool = True,
) -> str:
    """The report as HTML: of a record, of a ledger of remedies, or of both.

    Args:
        record: The audit to show, or None for a ledger alone.
        ledger: Remedies side by side, as `evenhand compare` records them.
        earlier: Older records, the oldest first; what moved since comes first.
        charts: Draw charts where the extra is installed; otherwise tables stand alone.
    """
    page = summarise(
        None if record is None else whole(record),
        ledger=ledger,
        earlier=[whole(one) for one in earlier],
    )
    drawn = charts and can_draw()
    if drawn:
        for block, once in figures(page):
            _draw(block, once=once)
    template = _environment().get_template("page.html.j2")
    styles = _markup(style_columns([*_first_blocks(page), *page["sections"]]))
    shown = {"drawn": drawn, "wanted": charts, "hint": HINT, "column_styles": styles}
    return str(template.render(page=page, policy=POLICY, **shown))


# As `urllib.parse.quote` would, which looks at every character by itself.
_QUOTED = re.compile(rb"[^A-Za-z0-9_.~,:;()\[\]*!$'/@-]")


def data_link(text: str) -> str:
    """CSV as a link that needs no file.

    Examples:
        >>> data_link("a,b")
        'data:text/csv;charset=utf-8,a,b'
    """
    quoted = _QUOTED.sub(lambda found: b"%%%02X" % ord(found.group()), text.encode())
    return "data:text/csv;charset=utf-8," + quoted.decode()


def figures(page: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every figure of a page, the first screen's first, and whether one width of it is enough."""
    yield from ((block, True) for block in _first_blocks(page) if block["kind"] == "figure")
    yield from _figures(page["sections"])


def _first_blocks(page: Mapping[str, Any]) -> list[Block]:
    """The picture and the table of the first screen, where it has them."""
    screen = page["screen"] or {}
    return [block for block in (screen.get("picture"), *screen.get("rates", [])) if block]


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
        if block["id"] == "picture":
            widths = [("wide", PICTURE), ("narrow", NARROW)]
        elif several or once:
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


def _with_whole_flags(value: Any) -> Any:
    """Text whose command flags stay on one line: a browser may break one behind its hyphens."""
    from markupsafe import Markup, escape

    if type(value) is not str or "--" not in value:
        return value
    return Markup(_FLAG.sub(r'<span class="flag">\g<0></span>', str(escape(_unbroken(value)))))


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
    made.filters["whole_flags"] = _with_whole_flags
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
