"""What a page is made of: figures, tables, lists and notes, as plain dicts."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Block = dict[str, Any]
MOST_SHOWN = 30
# A page that carries every number of a very large audit would no longer open everywhere.
MOST_CSV = 150_000
_FORMULA = ("=", "+", "@", "-", "\t", "\r")


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    numbers: Iterable[str] = (),
    most: int | None = None,
) -> Block:
    """A table; `numbers` are the columns set to the right, `most` how many rows are shown."""
    held = [list(row) for row in rows]
    right = set(numbers)
    shown = held if most is None else held[:most]
    return {
        "kind": "table",
        "caption": caption,
        "columns": [{"name": name, "number": name in right} for name in columns],
        "rows": shown,
        "more": len(held) - len(shown),
    }


def figure(
    name: str,
    *,
    title: str,
    charts: Sequence[Mapping[str, Any]],
    read: str,
    numbers: Block,
    csv_text: str,
    legend: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
    plain: str | None = None,
    about: Sequence[tuple[str, Any]] = (),
) -> Block:
    """A figure: its charts, how to read them, and their numbers as a table and as CSV.

    `plain` is a title without a finding, for when the section's heading says it already; `about`
    are the measures and attributes whose findings are told under the title.
    """
    return {
        "kind": "figure",
        "id": name,
        "title": title,
        "plain": plain or title,
        "about": list(about),
        "said": [],
        "charts": [dict(chart) for chart in charts],
        "read": read,
        "legend": [dict(item) for item in legend],
        "numbers": numbers,
        "csv": csv_text,
        "notes": list(notes),
    }


def sentences(items: Iterable[Any], *, title: str | None = None) -> Block:
    """A list of sentences, each with a verdict where it has one."""
    return {"kind": "list", "title": title, "items": list(items)}


def note(text: str) -> Block:
    """A remark that stands out."""
    return {"kind": "note", "text": text}


def folded(title: str, blocks: Iterable[Block]) -> Block:
    """Blocks that open on demand."""
    return {"kind": "folded", "title": title, "blocks": list(blocks)}


def section(
    name: str, *, kicker: str, heading: str, lead: str | None = None, blocks: Iterable[Block]
) -> dict[str, Any]:
    """A section whose heading is its finding."""
    return {
        "id": name,
        "kicker": kicker,
        "heading": heading,
        "lead": lead,
        "blocks": list(blocks),
    }


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV with a heading line; numbers with six digits, nulls empty, no cell a formula.

    Examples:
        >>> as_csv(["group", "value"], [["f", 0.123456789], ["=1+1", None]]).splitlines()
        ['group,value', 'f,0.123457', "'=1+1,"]
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_plain(value) for value in row])
        if out.tell() > MOST_CSV:
            out.write("# cut here: all rows are in the record (evenhand audit … --csv)\n")
            break
    return out.getvalue()


def slug(text: str) -> str:
    """A name that can be part of an id.

    Examples:
        >>> slug("gender*region: <b>")
        'gender-region-b'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else value
    text = str(value)
    # A spreadsheet runs a cell that begins like a formula; data must not be able to.
    return f"'{text}" if text.startswith(_FORMULA) else text
