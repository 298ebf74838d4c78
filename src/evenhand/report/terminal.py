"""A record on the terminal: the verdict first, then findings, then a table of 100 columns."""

import io
from collections.abc import Mapping
from typing import Any

from evenhand.findings.sentences import plural
from evenhand.report.table import HEADERS, cells, chosen_rows, impact_ratios, left_out, printable

WIDTH = 100
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
        if finding["owner"]:
            line.append(printable(f" ({finding['layer']}: {finding['owner']})"), style="dim")
        console.print(line)
    for note in record["notes"]:
        console.print(_text(f"! {note}", style="yellow"))
    if record["findings"] or record["notes"]:
        console.print()
    _table(record, console)
    _impact(record, console)
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
    from rich import box
    from rich.table import Table

    rows, more = chosen_rows(record)
    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, width=min(WIDTH, console.width), pad_edge=False)
    told = [cells(row) for row in rows]
    keep = [i for i, name in enumerate(HEADERS) if _worth_showing(name, {c[i] for c in told})]
    for i in keep:
        right = HEADERS[i] in {"value", "n", "interval"}
        table.add_column(HEADERS[i], justify="right" if right else "left", no_wrap=right)
    before = ""
    for line, row in zip(told, rows):
        texts = [_text(cell) for cell in line]
        texts[0] = _text("" if line[0] == before else line[0])
        texts[-1].stylize(_STYLES[row["verdict"]])
        table.add_row(*(texts[i] for i in keep))
        before = line[0]
    console.print(table)
    if more:
        console.print(_text(f"{more:,} more rows are in the record (--json).", style="dim"))


def _worth_showing(header: str, values: set[str]) -> bool:
    """Whether a column tells rows apart: one class, or no limit at all, needs none."""
    if header == "verdict":
        return values != {"not assessed"}
    return header != "class" or len(values) > 1


def _impact(record: Mapping[str, Any], console: Any) -> None:
    from rich import box
    from rich.table import Table

    rows = impact_ratios(record)
    if not rows or len({row["class"] for row in rows}) > 1:
        return
    table = Table(
        box=box.SIMPLE_HEAD,
        width=min(WIDTH, console.width),
        pad_edge=False,
        title="Impact ratios: selection rate by the highest group's (no pass mark is implied)",
        title_justify="left",
        title_style="dim",
    )
    for header in ("group", "highest", "ratio", "interval", "n"):
        table.add_column(header, justify="left" if header in {"group", "highest"} else "right")
    for row in rows[:20]:
        _, _, group, against, value, limits, count, _ = cells(row)
        table.add_row(*(_text(cell) for cell in (group, against, value, limits, count)))
    console.print(table)


def _text(words: str, style: str = "") -> Any:
    """Text for the console; what stands in the data cannot steer the terminal."""
    from rich.text import Text

    return Text(printable(words), style=style)
