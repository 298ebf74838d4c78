"""A record or a ledger in a notebook: static HTML with scoped styles and no script."""

from collections.abc import Mapping
from html import escape
from typing import Any

from evenhand.report.table import HEADERS, cells, chosen_rows, left_out

_STYLE = """<style scoped>
.evenhand { font: 14px/1.45 system-ui, sans-serif; max-width: 72em; }
.evenhand table { border-collapse: collapse; }
.evenhand th, .evenhand td { padding: 2px 10px; text-align: left; }
.evenhand td { font-variant-numeric: tabular-nums; border-top: 1px solid #8884; }
.evenhand .quiet { opacity: .7; }
</style>"""


def as_fragment(record: Mapping[str, Any], *, chart: bool = False) -> str:
    """The verdict, the findings and the leading rows as an HTML fragment, and the leading chart.

    The chart is left out where the extra that draws it is not installed.
    """
    rows, more = chosen_rows(record)
    head = "".join(f"<th>{escape(header)}</th>" for header in HEADERS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row)) + "</tr>"
        for row in rows
    )
    findings = "".join(
        f"<li>{escape(finding['verdict'])}: {escape(finding['sentence'])}</li>"
        for finding in record["findings"]
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in record["notes"])
    quiet = [*left_out(record)]
    if more:
        quiet.append(f"{more:,} more rows: .to_frame()")
    return (
        f'<div class="evenhand">{_STYLE}<p><strong>{escape(record["sentence"])}</strong></p>'
        f"<ul>{findings}{notes}</ul>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<p class="quiet">{escape(" ".join(quiet))}</p>{_leading(record) if chart else ""}</div>'
    )


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
        f"<tbody>{lines}</tbody></table><ul>{notes}</ul>{_leading(None, ledger=ledger)}</div>"
    )


def _leading(record: Mapping[str, Any] | None, *, ledger: Mapping[str, Any] | None = None) -> str:
    from evenhand.report.charts_show import charts_of
    from evenhand.report.svg import can_draw

    known = charts_of(record, ledger=ledger) if can_draw() else {}
    return next(iter(known.values()))._repr_html_() if known else ""
