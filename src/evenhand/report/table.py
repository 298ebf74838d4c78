"""What a reader is shown of the rows: the comparisons that matter, largest first."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.findings.find import HEADLINES
from evenhand.findings.names import names_for
from evenhand.findings.sentences import interval, number, signed, words
from evenhand.findings.verdict import hide_row

Row = Mapping[str, Any]
HEADERS = ("measure", "class", "group", "against", "value", "interval", "n", "verdict")
# What a first screen shows of each lens: its findings' measures, and how much a swap does.
SHOWN = (*HEADLINES, "flip_rate", "changed_share")
# Control characters, and marks that turn the direction of writing.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ORDER = {"outside": 0, "cannot tell": 1, "within": 2, "not assessed": 3}


def chosen_rows(record: Mapping[str, Any], *, most: int = 20) -> tuple[list[Row], int]:
    """The rows to show and how many more there are like them.

    Where limits are set, the rows that have one: outside, then cannot tell, then within.
    Otherwise the headline measures of each lens against the reference, of the positive class
    where there are two; where there are many measures, as many rows of each.
    """
    # Sorted by size, single labelers would be a ranking of people: they stay in the record.
    named = names_for(record["results"])
    rows: list[Row] = [named(hide_row(row)) for row in record["results"] if row["labeler"] is None]
    limited = [row for row in rows if row["verdict"] != "not assessed"]
    if limited:
        chosen = sorted(limited, key=lambda row: (_ORDER[row["verdict"]], -_size(row)))
    else:
        positive = record["details"].get("statistical", {}).get("positive")
        direct = {_family(row) for row in rows if row["reference"] != "<rest>"}
        chosen = [
            row
            for row in rows
            if row["measure"] in SHOWN
            and row["stratum"] in (None, "<summary>")
            and (row["reference"] != "<rest>" or _family(row) not in direct)
            and (positive is None or row["class"] in (positive, None))
        ]
        chosen.sort(key=lambda row: (SHOWN.index(row["measure"]), -_size(row)))
        shown = _of_each(chosen, most)
        return shown, len(chosen) - len(shown)
    return chosen[:most], max(len(chosen) - most, 0)


def _of_each(rows: list[Row], most: int) -> list[Row]:
    """The first rows of every measure, at least three of each, up to about `most` in all."""
    counts = Counter(row["measure"] for row in rows)
    each = max(counts.values(), default=0)
    while each > 3 and sum(min(each, count) for count in counts.values()) > most:
        each -= 1
    seen: Counter[str] = Counter()
    kept = []
    for row in rows:
        seen[row["measure"]] += 1
        if seen[row["measure"]] <= each:
            kept.append(row)
    return kept


def cells(row: Row) -> tuple[str, ...]:
    """One row as text, in the order of HEADERS."""
    value = signed(row["value"]) if row["measure"].endswith("_gap") else number(row["value"])
    count = f"{row['n']:,.0f}" if row["n"] is not None else "–"
    if row["n_reference"] is not None:
        count += f" / {row['n_reference']:,.0f}"
    where = f" in {row['stratum']}" if row["stratum"] else ""
    defined = row["value"] is not None
    return (
        words(row["measure"]) + where,
        row["class"] or "",
        row["group"] or row["attribute"] or "",
        row["reference"] or "",
        value if defined else "undefined",
        interval(row) if defined else str(row["undefined"] or ""),
        count,
        row["verdict"] or "",
    )


def impact_ratios(record: Mapping[str, Any]) -> list[Row]:
    """The rows of the four-fifths table: selection rates by the highest group's."""
    positive = record["details"].get("statistical", {}).get("positive")
    named = names_for(record["results"])
    return [
        named(row)
        for row in map(hide_row, record["results"])
        if row["measure"] == "impact_ratio"
        and row["stratum"] is None
        and row["value"] is not None
        and (positive is None or row["class"] == positive)
    ]


def printable(text: str) -> str:
    """Text without the characters that would steer a terminal or a page.

    Examples:
        >>> printable("red\\x1b[31m line\\nbreak")
        'red [31m line break'
    """
    return _UNPRINTABLE.sub(" ", text)


def left_out(record: Mapping[str, Any]) -> Iterable[str]:
    """What was excluded, in words."""
    for item in record["data"]["excluded"]:
        rows = f"{item['rows']:,} {'row' if item['rows'] == 1 else 'rows'}"
        yield f"{rows} left out: {item['reason']}."


def _family(row: Row) -> tuple[Any, ...]:
    return row["lens"], row["attribute"], row["measure"]


def _size(row: Row) -> float:
    if row["value"] is None:
        return -1.0
    still = 1.0 if row["measure"].endswith("_ratio") else 0.0
    return abs(float(row["value"]) - still)
