"""The rows behind findings, shown only where somebody asked for them."""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from evenhand.findings.sentences.words import name_of
from evenhand.report.blocks import Block, folded, table
from evenhand.speech import printable

LONGEST = 240
_MARK = "decision@"


def evidence_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Pairs that flipped, then the rows nearest each threshold; nothing where none was asked for.

    A pair is one text with what stands in its place: [he|she].
    """
    flipped = _flipped(record)
    if flipped:
        yield f"Texts decided differently ({len(flipped):,} shown):"
    for number, row in enumerate(flipped, 1):
        yield f"{number:>3}. {_decided(row)}"
        yield from (f"     {line}" for line in _texts(row))
    for name, rows in _nearest(record):
        yield f"Rows of {name} nearest its threshold:"
        yield from (f"     {_scored(row)}" for row in rows)


def flipped_table(record: Mapping[str, Any]) -> list[Block]:
    """The pairs that flipped as a table that opens on demand; nothing where none was asked for."""
    rows = [[_decided(row), " / ".join(_texts(row))] for row in _flipped(record)]
    if not rows:
        return []
    told = "Texts decided differently, with what stands in the place of what"
    return [folded("Texts decided differently", [table(told, ["Decided", "Text"], rows)])]


def nearest_tables(record: Mapping[str, Any]) -> list[Block]:
    """The rows nearest each group's threshold; nothing where none was asked for."""
    tables = [
        table(f"Rows of {name} nearest its threshold", ["Row"], [[_scored(row)] for row in rows])
        for name, rows in _nearest(record)
    ]
    return [folded("Rows nearest the threshold", tables)] if tables else []


def _flipped(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(record["details"].get("counterfactual", {}).get("flipped", []))


def _nearest(record: Mapping[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for found in record["details"].get("thresholds", {}).get("attributes", []):
        for group, rows in (found.get("evidence") or {}).items():
            yield str(name_of(group, found["attribute"])), rows


def _decided(row: Mapping[str, Any]) -> str:
    parts = [
        f"'{value}' as {key.removeprefix(_MARK)}"
        for key, value in row.items()
        if key.startswith(_MARK) and value is not None
    ]
    about = [f"{key} {row[key]}" for key in ("truth", "group") if row.get(key) is not None]
    told = ", ".join(parts)
    return f"{told} ({', '.join(about)})" if about else told


def _texts(row: Mapping[str, Any]) -> Iterator[str]:
    texts = [value for key, value in row.items() if key.startswith("text@") and value is not None]
    if len(texts) == 2:
        yield _short(marked(texts[0], texts[1]))
    else:
        yield from (_short(text) for text in texts or filter(None, [row.get("text")]))


def marked(first: str, second: str) -> str:
    """One text for two, with what differs side by side.

    Examples:
        >>> marked("She likes her job.", "He likes his job.")
        '[She|He] likes [her|his] job.'
    """
    one, two = first.split(), second.split()
    said: list[str] = []
    for kind, i, j, k, m in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        left, right = " ".join(one[i:j]), " ".join(two[k:m])
        said.append(left if kind == "equal" else f"[{left}|{right}]")
    return " ".join(said)


def _scored(row: Mapping[str, Any]) -> str:
    about = [f"score {row['score']:.3f}", f"truth {row['truth']}"]
    about += [f"item {row['item']}"] if row.get("item") is not None else []
    text = f": {_short(str(row['text']))}" if row.get("text") is not None else ""
    return ", ".join(about) + text


def _short(text: str) -> str:
    plain = " ".join(printable(text).split())
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1].rstrip() + "…"
