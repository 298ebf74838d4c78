"""Charts of an audit on their own: shown in a notebook, saved as SVG or PNG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError, nearest
from evenhand.files.writing import write_bytes, write_text
from evenhand.report.charts import WIDE, specification, with_legend
from evenhand.report.first_screen import lead_picture
from evenhand.report.outline import FEW, marked, outline
from evenhand.report.palette import VERDICTS
from evenhand.report.rates import Grid
from evenhand.report.svg import can_draw, own_ids, png, raw_svg
from evenhand.report.table import HEADERS, cells, chosen_rows
from evenhand.report.view import View, whole

_STYLE = """<style scoped>
.evenhand { font: 14px/1.45 system-ui, sans-serif; max-width: 72em; }
.evenhand .scroll { overflow-x: auto; }
.evenhand table { border-collapse: collapse; font-size: 1em; }
.evenhand th, .evenhand td { padding: 2px 10px; text-align: left; vertical-align: bottom; }
.evenhand td { font-variant-numeric: tabular-nums; white-space: nowrap; }
.evenhand td { border-top: 1px solid #8884; }
.evenhand .quiet { opacity: .7; }
.evenhand .tag { color: #fff; padding: 1px 9px; border-radius: 9px; }
</style>"""
_DRAWN = 520


def as_fragment(record: Mapping[str, Any]) -> str:
    """The finding, its picture, every group's rates, what to do and what is not known, as HTML.

    Comparisons and notes open on demand. The picture is left out where the extra that draws it is
    not installed.
    """
    parts = outline(record)
    rows, more = chosen_rows(record)
    lines = [marked(one) for one in parts.findings[:FEW]]
    others = [marked(one) for one in parts.findings[FEW:]]
    left = f"{more:,} more rows: .to_frame()" if more else ""
    folded = "".join(
        (
            _items("Further findings", others),
            _table("Comparisons", HEADERS, [cells(row) for row in rows]),
            _items("Notes", parts.notes),
            _quiet(left),
        )
    )
    return (
        f'<div class="evenhand">{_STYLE}<p><strong class="tag" style="background:'
        f'{VERDICTS[record["verdict"]][0]}">{escape(parts.tag)}</strong></p>'
        f"<p><strong>{escape(parts.headline)}</strong> "
        f"{escape(' '.join(filter(None, (parts.rest, parts.agreed))))}</p>"
        f"{_quiet(parts.about)}{_items('', parts.heeded)}{_picture(record)}"
        f"{''.join(map(_grid, parts.grids))}{_items('', lines)}"
        f"{_items('What to do', parts.steps)}{_items('What the data cannot tell', parts.unknown)}"
        f"<details><summary>Comparisons and notes</summary>{folded}</details>"
        f"{_quiet(parts.level)}</div>"
    )


def _grid(grid: Grid) -> str:
    """Rates side by side, each with its interval and cases."""
    heads = [grid.corner, *(part for name in grid.columns for part in (name, "n"))]
    body = [
        [name, *(part for cell in held for part in ((cell.text, cell.n) if cell else ("–", "–")))]
        for name, held in grid.lines
    ]
    more = f"{grid.more:,} more classes: .by_group()" if grid.more else ""
    return _table(grid.title, heads, body) + _quiet(more)


def _table(title: str, heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    if not body:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in body
    )
    return (
        f"<p><strong>{escape(title)}</strong></p>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _items(title: str, sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    head = f"<p><strong>{escape(title)}</strong></p>" if title else ""
    return f"{head}<ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>"


def _quiet(text: str) -> str:
    return f'<p class="quiet">{escape(text)}</p>' if text else ""


def as_ledger_fragment(ledger: Mapping[str, Any]) -> str:
    """What each remedy moved and left, in its sentence, and the leading chart."""
    lines = "".join(
        f"<tr><td>{escape(row['remedy'])}</td><td>{escape(row['representation'])}</td>"
        f"<td>{escape(row['sentence'])}</td></tr>"
        for row in ledger["rows"]
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in ledger["notes"])
    head = "".join(f"<th>{name}</th>" for name in ("remedy", "representation", "what it did"))
    return (
        f'<div class="evenhand">{_STYLE}<table><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table><ul>{notes}</ul>{_leading(ledger)}</div>"
    )


def _picture(record: Mapping[str, Any]) -> str:
    """The picture of the first screen; none where nothing can be drawn."""
    block = lead_picture(View.of(whole(record))) if can_draw() else None
    if block is None:
        return ""
    chart = block["charts"][0]
    spec = with_legend(specification(chart, width=_DRAWN), block.get("legend") or ())
    made = Chart(name="picture", title=chart["title"], read=block["read"], spec=spec)
    return made._repr_html_()


def _leading(ledger: Mapping[str, Any]) -> str:
    known = charts_of(None, ledger=ledger) if can_draw() else {}
    return next(iter(known.values()))._repr_html_() if known else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with the words that go with it; `spec` is Vega-Lite."""

    name: str
    title: str
    read: str
    spec: dict[str, Any] = field(repr=False)

    def _repr_svg_(self) -> str:
        return own_ids(raw_svg(self.spec), self.name)

    def _repr_html_(self) -> str:
        return (
            f"<figure style='margin:0;background:#fff;color:#15181e;padding:12px;max-width:780px'>"
            f"<strong>{escape(self.title)}</strong>{self._repr_svg_()}"
            f"<figcaption>How to read: {escape(self.read)}</figcaption></figure>"
        )

    def save(self, path: str | Path) -> None:
        """Write the chart to a file that ends in .svg or .png."""
        kind = Path(path).suffix.lower()
        if kind == ".svg":
            write_text(path, self._repr_svg_())
        elif kind == ".png":
            write_bytes(path, png(self.spec))
        else:
            raise UsageError(
                f"'{path}' is neither an SVG nor a PNG. Choose a name that ends in .svg or .png."
            )


def charts_of(
    record: Mapping[str, Any] | None, *, ledger: Mapping[str, Any] | None = None
) -> dict[str, Chart]:
    """Every chart of an audit, or of a ledger, by its name, in the order of the report."""
    from evenhand.report.page import summarise

    found: dict[str, Chart] = {}
    page = summarise(whole(record) if record else None, ledger=ledger)
    _gather(page["sections"], found)
    return found


def show_chart(
    record: Mapping[str, Any] | None,
    name: str | None = None,
    *,
    ledger: Mapping[str, Any] | None = None,
) -> Chart:
    """A chart of an audit, or of a ledger; the leading one where no name is given.

    Examples:
        >>> import evenhand as eh
        >>> from evenhand.simulate.moderation import moderation
        >>> posts = moderation(3000).frame
        >>> table = eh.Decisions(posts, truth="violates", decision="removed", group="gender")
        >>> show_chart(eh.audit(table).record(), "accuracy-gap-gender").title[:22]
        'Decisions on women are'
    """
    known = charts_of(record, ledger=ledger)
    if not known:
        raise UsageError(
            "This audit has no chart: none of its lenses gave rows that can be drawn."
            if record
            else "This ledger has no chart: none of its remedies gave numbers that can be drawn."
        )
    chosen = next(iter(known)) if name is None else name
    if chosen not in known:
        raise UsageError(
            f"chart {chosen!r} does not exist.{nearest(chosen, list(known))} "
            f"The charts are {', '.join(known)}."
        )
    return known[chosen]


def _gather(blocks: list[dict[str, Any]], found: dict[str, Chart]) -> None:
    for block in blocks:
        if block.get("kind") == "figure":
            several = len(block["charts"]) > 1
            for i, chart in enumerate(block["charts"], start=1):
                name = f"{block['id']}-{i}" if several else block["id"]
                found[name] = Chart(
                    name=name,
                    title=str(chart.get("title") if several else block["title"]),
                    read=block["read"],
                    spec=specification(chart, width=WIDE),
                )
        _gather(block.get("blocks", []), found)
