"""Tables and figures in a paper's layout: our number, its interval, and the printed one beside it.

A paper becomes a folder: one page, and each table and figure as files of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

from evenhand.files.folders import check_folder, new_folder
from evenhand.files.places import check_places
from evenhand.files.writing import refusals
from evenhand.report.blocks import as_csv
from evenhand.report.charts import specification
from evenhand.report.svg import can_draw, pdf, raw_svg

KIND = "reproductions"
SAME_DATA = "The data are the paper's, so the numbers themselves can be compared."
OTHER_DATA = (
    "The data are not the paper's, so only signs and order are compared with what it prints."
)
KEY = (
    "Under a number of ours stand its 95 % interval, its n and what the paper prints in its "
    "place; ± is the standard deviation over training sets."
)


INTERVAL = ("low", "high", "n")  # what stands beside a value among the numbers of a figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number of a table: ours with its interval and n, and what the paper prints there.

    `spread` and `printed_spread` are standard deviations over training runs, `stars` the marks
    of small p-values; `reason` says why there is no number of ours.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None
    stars: str = ""
    n: int | None = None
    printed: float | None = None
    printed_spread: float | None = None
    printed_stars: str = ""
    reason: str | None = None

    def text(self, digits: int) -> str:
        """Our number in words.

        Examples:
            >>> Cell(value=0.7912, low=0.6, high=0.9, stars="**").text(2)
            '0.79** [0.60, 0.90]'
            >>> Cell(reason="not run").text(2)
            'not run'
        """
        if self.value is None or not isfinite(self.value):
            return self.reason or "–"
        text = f"{_signed(self.value, digits)}{self.stars}"
        if self.spread is not None:
            text += f"±{self.spread:.{digits}f}"
        if self.low is not None and self.high is not None:
            text += f" [{_signed(self.low, digits)}, {_signed(self.high, digits)}]"
        return text

    def numbers(self) -> list[float | int | None]:
        """Value, both ends of its interval and n, as the numbers of a figure have them.

        Examples:
            >>> Cell(value=0.4, low=0.3, high=0.5, n=20).numbers()
            [0.4, 0.3, 0.5, 20]
        """
        return [self.value, self.low, self.high, self.n]

    def printed_text(self, digits: int) -> str:
        """What the paper prints, in its own form."""
        if self.printed is None:
            return ""
        more = "" if self.printed_spread is None else f"±{self.printed_spread:.{digits}f}"
        return f"{_signed(self.printed, digits)}{self.printed_stars}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table of a paper; `rows` are its lines in the paper's order, each with its cells by column.

    `digits` are those of the paper by column. Where rows are not of `one_scale`, as a list of
    different numbers, their order says nothing and is not compared.
    """

    name: str
    title: str
    stub: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Sequence[tuple[tuple[str, ...], Mapping[str, Cell]]]
    digits: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    same_data: bool = False
    one_scale: bool = True

    def cell(self, column: str, *stub: str) -> Cell:
        """One cell, by the labels of its line."""
        for labels, cells in self.rows:
            if labels == stub:
                return cells.get(column, Cell())
        raise KeyError((column, *stub))

    def csv(self) -> str:
        """One line a row of the paper: value, low, high, spread, n and printed value by column."""
        parts = ("", "_low", "_high", "_sd", "_n", "_printed", "_printed_sd", "_why")
        header = [*self.stub, *(f"{c}{part}" for c in self.columns for part in parts)]
        lines = []
        for labels, cells in self.rows:
            line: list[Any] = [*labels]
            for column in self.columns:
                cell = cells.get(column, Cell())
                line += [cell.value, cell.low, cell.high, cell.spread, cell.n]
                line += [cell.printed, cell.printed_spread, cell.reason]
            lines.append(line)
        return as_csv(header, lines)

    def lines(self) -> tuple[list[str], list[list[str]]]:
        """Heading and lines in words, after our number the paper's where it prints one."""
        shown = [c for c in self.columns if any(r[1].get(c, Cell()).printed is not None
                                                for r in self.rows)]  # fmt: skip
        heading = [*self.stub]
        for column in self.columns:
            heading += [column, f"{column}, printed"] if column in shown else [column]
        lines = []
        for labels, cells in self.rows:
            line = [*labels]
            for column in self.columns:
                cell, digits = cells.get(column, Cell()), self.digits.get(column, 2)
                line.append(cell.text(digits))
                if column in shown:
                    line.append(cell.printed_text(digits))
            lines.append(line)
        return heading, lines

    def comparison(self) -> list[str]:
        """How far we reach what is printed; on other data, signs and the order of rows alone."""
        if self.same_data:
            return self._reached()
        if not self.one_scale:
            return []
        told = []
        for column in self.columns:
            pairs = [
                (cell.value, cell.printed)
                for _, cells in self.rows
                if (cell := cells.get(column, Cell())).value is not None
                and cell.printed is not None
            ]
            if len(pairs) < 2:
                continue
            signs = sum((a > 0) == (b > 0) for a, b in pairs if a and b)
            known = sum(bool(a and b) for a, b in pairs)
            apart = [(a, b) for a, b in combinations(pairs, 2) if a[1] != b[1]]
            order = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in apart)
            sign = f"{signs} of {known} signs and " if any(b < 0 for _, b in pairs) else ""
            told.append(f"{column}: {sign}{order} of {len(apart)} pairs of rows in the same order.")
        return told

    def _reached(self) -> list[str]:
        """How many printed numbers ours round to."""
        found = [
            (cell.value, cell.printed, self.digits.get(column, 2))
            for _, cells in self.rows
            for column, cell in cells.items()
            if cell.printed is not None
        ]
        same = sum(v is not None and abs(v - p) <= 0.5 / 10**digits for v, p, digits in found)
        if not found:
            return []
        return [f"{same} of {len(found)} printed numbers are reached to the digits printed."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a paper: a chart of the report, its numbers, and what it shows.

    `charts` has one panel or more, each with its own `panel` name; `legend` names the marks.
    """

    name: str
    title: str
    charts: Sequence[Mapping[str, Any]]
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    read: str = ""
    legend: Sequence[str] = ()
    notes: Sequence[str] = ()

    def csv(self) -> str:
        """The numbers of the figure."""
        return as_csv(self.columns, self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A table or figure that is not made here, and why."""

    name: str
    title: str
    reason: str


Part = PaperTable | Figure | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A paper made again: `parts` in its order, and what the data were."""

    paper: str
    title: str
    data: str
    parts: Sequence[Part]
    same_data: bool = False
    seconds: float = 0.0

    def part(self, name: str) -> Part:
        """A table or figure by its name, such as "table2"."""
        for each in self.parts:
            if each.name == name:
                return each
        raise KeyError(f"{name}: there are {', '.join(each.name for each in self.parts)}")

    def table(self, name: str) -> PaperTable:
        """A table by its name."""
        found = self.part(name)
        if not isinstance(found, PaperTable):
            raise KeyError(f"{name} is not a table")
        return found

    def __str__(self) -> str:
        lines = [self.title, self.data, SAME_DATA if self.same_data else OTHER_DATA]
        for each in self.parts:
            if isinstance(each, PaperTable):
                lines += ["", f"{_called(each.name)}: {each.title}"]
                lines += [f"  {line}" for line in each.comparison()]
            elif isinstance(each, Absent):
                lines += ["", f"{_called(each.name)}: not made. {each.reason}"]
            else:
                lines += ["", f"{_called(each.name)}: {each.title}"]
        return "\n".join(lines)

    def write(self, folder: str | Path) -> Path:
        """The folder of the paper: index.html, and every table and figure as files."""
        target = check_place(self.paper, folder)
        with new_folder(target, kind=KIND) as made:
            pictures: dict[str, list[str]] = {}
            for each in self.parts:
                if isinstance(each, Absent):
                    continue
                (made / f"{each.name}.csv").write_text(each.csv(), encoding="utf-8")
                if isinstance(each, PaperTable):
                    (made / f"{each.name}.md").write_text(_table_markdown(each), encoding="utf-8")
                elif can_draw():
                    pictures[each.name] = _draw(each, made)
            (made / "index.md").write_text(self._markdown(), encoding="utf-8")
            (made / "index.html").write_text(self._page(pictures), encoding="utf-8")
        return target

    def _markdown(self) -> str:
        lines = [f"# {self.title}", "", self.data, "", SAME_DATA if self.same_data else OTHER_DATA]
        for each in self.parts:
            lines += ["", f"## {_called(each.name)}. {each.title}", ""]
            if isinstance(each, PaperTable):
                lines.append(_table_markdown(each).rstrip())
            elif isinstance(each, Figure):
                lines += [f"![{each.title}]({name}.svg)" for name in _panels(each)]
                lines += ["", each.read] if each.read else []
                lines += [f"\n{note}" for note in each.notes]
            else:
                lines.append(f"Not made: {each.reason}")
        return "\n".join(lines) + "\n"

    def _page(self, pictures: Mapping[str, list[str]]) -> str:
        body = [f"<h1>{escape(self.title)}</h1>", _paragraph(self.data)]
        body.append(_paragraph(SAME_DATA if self.same_data else OTHER_DATA))
        body.append(_paragraph(KEY))
        items = (f'<li><a href="#{p.name}">{_called(p.name)}</a> {escape(p.title)}</li>'
                 for p in self.parts)  # fmt: skip
        body.append(f"<nav><ul>{''.join(items)}</ul></nav>")
        for each in self.parts:
            body.append(f'<section id="{each.name}"><h2>{_called(each.name)}. '
                        f"{escape(each.title)}</h2>")  # fmt: skip
            if isinstance(each, Absent):
                body.append(_paragraph(f"Not made: {each.reason}"))
            elif isinstance(each, PaperTable):
                body.append(_table_html(each))
            else:
                body.append(_figure_html(each, pictures.get(each.name, [])))
            if not isinstance(each, Absent):
                body.append(_links(each, drawn=each.name in pictures))
            body.append("</section>")
        return _PAGE.format(title=escape(self.title), body="\n".join(body))


def check_place(paper: str, folder: str | Path, inputs: Sequence[str | Path] = ()) -> Path:
    """Where a paper goes in a folder, which is made; refused before anything is computed."""
    home = Path(folder)
    check_places({"out": home / paper}, {"the data": list(inputs)}, folders=["out"])
    with refusals(home):
        home.mkdir(parents=True, exist_ok=True)
    return check_folder(home / paper, kind=KIND)


def _signed(value: float, digits: int) -> str:
    """A number with a true minus; 0 where it rounds to it."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def _called(name: str) -> str:
    """A part's name as it is spoken.

    Examples:
        >>> _called("table2"), _called("figure1a"), _called("scalars")
        ('Table 2', 'Figure 1a', 'Scalars')
    """
    for word in ("table", "figure"):
        if name.startswith(word) and name != word:
            return f"{word.capitalize()} {name.removeprefix(word)}"
    return name.capitalize()


def _table_markdown(table: PaperTable) -> str:
    heading, lines = table.lines()
    out = [f"| {' | '.join(heading)} |", "|" + "---|" * len(heading)]
    out += ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    told = table.comparison()
    out += [f"\n{note}" for note in [*table.notes, *told]]
    return "\n".join(out) + "\n"


def _table_html(table: PaperTable) -> str:
    """The paper's own columns; under each number its interval and what the paper prints there."""
    heading = (*table.stub, *table.columns)
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heading)
    rows = []
    for labels, cells in table.rows:
        stub = "".join(f'<th scope="row">{escape(each)}</th>' for each in labels)
        held = "".join(
            _cell_html(cells.get(column, Cell()), table.digits.get(column, 2))
            for column in table.columns
        )
        rows.append(f"<tr>{stub}{held}</tr>")
    notes = "".join(_paragraph(each) for each in [*table.notes, *table.comparison()])
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}'
        f"</tbody></table></div>{notes}"
    )


def _cell_html(cell: Cell, digits: int) -> str:
    value, bracket, interval = cell.text(digits).partition(" [")
    lines = [escape(value)]
    size = "" if cell.n is None or cell.value is None else f"n {cell.n:,}"
    if bracket or size:
        ends = f"[{interval}" if bracket else ""
        lines.append(f"<small>{escape(' '.join(filter(None, (ends, size))))}</small>")
    if cell.printed is not None:
        lines.append(f"<small>printed {escape(cell.printed_text(digits))}</small>")
    return f"<td>{''.join(lines)}</td>"


def _figure_html(figure: Figure, drawn: Sequence[str]) -> str:
    pictures = "".join(f'<div class="panel">{svg}</div>' for svg in drawn)
    # A picture names its own marks.
    legend = "" if drawn else "".join(f"<li>{escape(each)}</li>" for each in figure.legend)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_plain(v))}</td>" for v in row) + "</tr>"
        for row in figure.rows
    )
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in figure.columns)
    return (
        f'<figure><div class="panels">{pictures}</div>'
        f"<figcaption>{escape(figure.read)}</figcaption></figure>"
        + (f"<ul>{legend}</ul>" if legend else "")
        + "".join(_paragraph(note) for note in figure.notes)
        + f"<details><summary>Show the numbers</summary><div class='wide'><table><thead><tr>{head}"
        f"</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _links(part: PaperTable | Figure, *, drawn: bool) -> str:
    """Links to the files of a part."""
    names = [f"{part.name}.csv"]
    if isinstance(part, PaperTable):
        names.append(f"{part.name}.md")
    elif drawn:
        names += [f"{panel}.{ending}" for panel in _panels(part) for ending in ("svg", "pdf")]
    links = " · ".join(f'<a href="{name}">{name}</a>' for name in names)
    return f'<p class="files">{links}</p>'


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _panels(figure: Figure) -> list[str]:
    """File names of a figure's panels: figure2, or figure2-1, figure2-2."""
    if len(figure.charts) == 1:
        return [figure.name]
    return [f"{figure.name}-{k}" for k in range(1, len(figure.charts) + 1)]


def _with_legend(chart: dict[str, Any]) -> dict[str, Any]:
    """A chart that names its own colours, shapes and dashes: a file has no page around it."""
    for layer in chart["layer"]:
        for channel in ("color", "shape", "strokeDash"):
            held = layer.get("encoding", {}).get(channel, {})
            if len(held.get("scale", {}).get("domain", ())) > 1:
                # Letters are measured narrower than browsers draw them: room between names.
                held["legend"] = {"orient": "top", "title": None, "labelLimit": 400,
                                  "labelFontSize": 12, "columnPadding": 32}  # fmt: skip
    return chart


def _draw(figure: Figure, folder: Path) -> list[str]:
    """Every panel as SVG and PDF, and the SVGs for the page."""
    drawn = []
    for name, chart in zip(_panels(figure), figure.charts, strict=True):
        svg = raw_svg(_with_legend(specification(chart)))
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        (folder / f"{name}.pdf").write_bytes(pdf(svg))
        drawn.append(svg)
    return drawn


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
body{{font:16px/1.5 system-ui,sans-serif;color:#15181e;background:#fff;max-width:72rem;
margin:0 auto;padding:1.5rem}}h2{{margin-top:2.5rem}}
table{{border-collapse:collapse;font-size:.9rem}}
th,td{{padding:.25rem .6rem;border-bottom:1px solid #e3e6ea;text-align:left;white-space:nowrap}}
td,th{{vertical-align:top}}td{{font-variant-numeric:tabular-nums}}
td small{{display:block;color:#4b5261}}.wide{{overflow-x:auto}}figure{{margin:0}}
.panels{{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(30rem,100%),1fr));
gap:1rem}}.panel svg{{max-width:100%;height:auto}}figcaption,.files{{color:#4b5261}}
.files{{font-size:.85rem;overflow-wrap:anywhere}}
</style></head><body><main>
{body}
</main></body></html>
"""
