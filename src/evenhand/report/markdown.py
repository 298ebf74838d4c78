"""A record as Markdown: a summary for a pull request."""

from collections.abc import Mapping
from typing import Any

from evenhand.report.table import HEADERS, cells, chosen_rows, left_out, printable


def as_markdown(record: Mapping[str, Any]) -> str:
    """The verdict, the findings and the leading rows as Markdown."""
    lines = [f"### Evenhand: {_escape(record['sentence'])}", ""]
    if record["charter"]:
        lines += [_escape(record["charter"]["sentence"]), ""]
    marks = {"outside": "✗", "cannot tell": "?", "within": "✓", "not assessed": "·"}
    for finding in record["findings"]:
        owner = finding["owner"] or "nobody named"
        who = f" ({finding['layer']}: {owner})" if record["charter"] else ""
        lines.append(f"- {marks[finding['verdict']]} {_escape(finding['sentence'] + who)}")
    lines += [f"- {_escape(note)}" for note in record["notes"]]
    rows, more = chosen_rows(record)
    if rows:
        lines += ["", "| " + " | ".join(HEADERS) + " |", "|" + "---|" * len(HEADERS)]
        lines += ["| " + " | ".join(_escape(cell) for cell in cells(row)) + " |" for row in rows]
    if more:
        lines += ["", f"{more:,} more rows are in the record."]
    data, made = record["data"], record["made"]
    lines += ["", *(_escape(sentence) for sentence in left_out(record))]
    lines.append(
        f"Intervals hold at {made['level']:.0%} for all classes and groups of a measure together. "
        f"Evenhand {made['version']}, fingerprint {data['fingerprint']}."
    )
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(printable(text).split())
