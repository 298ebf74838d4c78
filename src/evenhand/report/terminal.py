"""A record on the terminal: the verdict first, then findings, then a table of 100 columns."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.findings.sentences import plural
from evenhand.report.columns import BETWEEN, laid_out
from evenhand.report.evidence import evidence_lines
from evenhand.report.table import HEADERS, cells, chosen_rows, impact_ratios, left_out, printable

WIDTH = 100
MOST_RATIOS = 20
_NUMBERS = {"value", "ratio", "interval", "n"}
_STYLES = {"outside": "bold red", "cannot tell": "yellow", "within": "green", "not assessed": "dim"}


def show(record: Mapping[str, Any], console: Any) -> None:
    """Print a record on a rich console."""

    style = _STYLES[record["verdict"]]
    console.print(_text(record["sentence"], style=style.replace("dim", "bold")))
    if record["charter"]:
        console.print(_text(record["charter"]["sentence"]))
    data = record["data"]
    rows = f"{plural(data['rows'], 'row')} of " if data["rows"] is not None else ""
    console.print(_text(f"{rows}{data['source']}, {record['made']['engine']}.", style="dim"))
    console.print()
    for finding in record["findings"]:
        mark = {"outside": "✗", "cannot tell": "?", "within": "✓"}.get(finding["verdict"], "·")
        line = _text(f"{mark} ", style=_STYLES[finding["verdict"]])
        line.append(printable(finding["sentence"]), style="default")
        if record["charter"]:
            who = finding["owner"] or "nobody named"
            line.append(printable(f" ({finding['layer']}: {who})"), style="dim")
        console.print(line)
    for note in record["notes"]:
        console.print(_text(f"! {note}", style="yellow"))
    if record["findings"] or record["notes"]:
        console.print()
    _table(record, console)
    _impact(record, console)
    evidence = list(evidence_lines(record))
    for line in evidence:
        console.print(_text(line))
    if evidence:
        console.print()
    for sentence in left_out(record):
        console.print(_text(sentence, style="dim"))
    level = record["made"]["level"]
    console.print(
        _text(
            f"Intervals hold at {level:.0%} for all classes and groups of a measure together.",
            style="dim",
        )
    )


def as_text(record: Mapping[str, Any]) -> str:
    """The same as plain text, for `print`."""
    from rich.console import Console

    out = io.StringIO()
    plain = Console(file=out, width=WIDTH, force_terminal=False, color_system=None, highlight=False)
    show(record, plain)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _table(record: Mapping[str, Any], console: Any) -> None:
    """The leading rows, those of a measure under its name."""
    rows, more = chosen_rows(record)
    if not rows:
        return
    told = [cells(row) for row in rows]
    keep = [i for i, name in enumerate(HEADERS) if _worth_showing(name, {c[i] for c in told})]
    _columns(
        console,
        [[HEADERS[i] for i in keep], *([line[i] for i in keep] for line in told)],
        headings=[line[0] for line in told],
        styles=[_STYLES[row["verdict"]] if HEADERS[keep[-1]] == "verdict" else "" for row in rows],
    )
    if more:
        console.print(_text(f"{more:,} more rows are in the record (--json).", style="dim"))
    console.print()


def _worth_showing(header: str, values: set[str]) -> bool:
    """Whether a column tells rows apart: one class, or no limit at all, needs none."""
    if header == "verdict":
        return values != {"not assessed"}
    return header != "measure" and (header != "class" or len(values) > 1)


def _impact(record: Mapping[str, Any], console: Any) -> None:
    rows = impact_ratios(record)
    if not rows or len({row["class"] for row in rows}) > 1:
        return
    told = [cells(row)[2:7] for row in rows[:MOST_RATIOS]]
    title = "Impact ratios: selection rate by the highest group's (no pass mark is implied)"
    console.print(_text(title, style="dim"))
    _columns(console, [("group", "highest", "ratio", "interval", "n"), *told])
    if len(rows) > MOST_RATIOS:
        more = len(rows) - MOST_RATIOS
        console.print(_text(f"{more:,} more ratios are in the record (--json).", style="dim"))
    console.print()


def _columns(
    console: Any,
    lines: Sequence[Sequence[str]],
    *,
    headings: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> None:
    """Aligned cells under their headers; a heading stands above the first line that has it."""
    margin = " " * (3 if headings else 1)
    right = [i for i, header in enumerate(lines[0]) if header in _NUMBERS]
    clean = [[printable(cell) for cell in line] for line in lines]
    width = min(WIDTH, console.width) - len(margin)
    header, *body = laid_out(clean, width=width, right=right)
    between = " " * BETWEEN
    console.print(_text(margin + between.join(header), style="bold"))
    ruled = len(margin) - 1 + sum(map(len, header)) + BETWEEN * (len(header) - 1)
    console.print(_text(" " + "─" * ruled))
    for i, line in enumerate(body):
        if headings and (i == 0 or headings[i] != headings[i - 1]):
            console.print(_text(f" {headings[i]}", style="bold"))
        text = _text(margin + between.join(line[:-1]) + between)
        text.append(line[-1], style=styles[i] if styles else "")
        console.print(text)


def _text(words: str, style: str = "") -> Any:
    """Text for the console; what stands in the data cannot steer the terminal."""
    from rich.text import Text

    return Text(printable(words), style=style)
