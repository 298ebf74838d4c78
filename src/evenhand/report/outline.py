"""What a record says, in the one order that terminal, notebook and Markdown share.

The finding · every group's rates · further findings in a line each · what to do and whose it is ·
what the data cannot tell. How it looks is the business of whoever shows it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.findings.gate import MARKS as MARKS
from evenhand.findings.sentences.verdict import TAGS
from evenhand.report.rates import Grid, rate_grids
from evenhand.report.table import left_out
from evenhand.report.unknown import is_open, unknown
from evenhand.speech import opening, plural

Plain = Mapping[str, Any]
# Further findings that a short form shows.
FEW = 3
AGREE = "Agree on how large a difference is acceptable, and write it down."
NOBODY = "Policy: nobody is named yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A finding in a line, with its verdict."""

    verdict: str
    text: str


def marked(line: Line) -> str:
    """A finding of a list that has marks of its own: only a verdict is marked as well.

    Examples:
        >>> [marked(Line(verdict=verdict, text="So.")) for verdict in ("outside", "not assessed")]
        ['✗ So.', 'So.']
    """
    return line.text if line.verdict == "not assessed" else f"{MARKS[line.verdict]} {line.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The parts of a record in the order in which they are read.

    `rest` follows the headline, `about` says what was read, `heeded` what is to be known before
    any number is trusted, `steps` what to do and whose it is, `unknown` what the data cannot tell.
    """

    tag: str
    verdict: str
    headline: str
    rest: str
    agreed: str
    about: str
    heeded: tuple[str, ...]
    grids: tuple[Grid, ...]
    findings: tuple[Line, ...]
    steps: tuple[str, ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]
    level: str


def outline(record: Plain) -> Outline:
    """The parts of a record."""
    heeded = tuple(record["data"].get("heeded") or ())
    own = [finding for finding in record["findings"] if finding["sentence"]]
    findings = own[1:] if own and _is_stated(own[0], record) else own
    level = record["made"].get("level", 0.95)
    return Outline(
        tag=TAGS[record["verdict"]],
        verdict=record["verdict"],
        headline=opening(str(record.get("headline") or record["sentence"])),
        rest=str(record.get("remark") or ""),
        agreed=(record.get("charter") or {}).get("sentence") or "",
        about=" ".join([f"{counted(record)}.", *left_out(record)]),
        heeded=heeded,
        grids=tuple(rate_grids(record)),
        findings=tuple(_line(finding, record) for finding in findings),
        steps=tuple(_steps(own)) or _to_agree(record, own),
        unknown=tuple(unknown(record, own)),
        notes=tuple(note for note in record["notes"] if note not in heeded),
        level=f"Intervals hold at {level:.0%} for all classes and groups of a measure together.",
    )


def counted(record: Plain) -> str:
    """How many were read, by what the charter calls them; several labels may be of one item."""
    rows = record["data"].get("rows")
    item = ((record.get("charter") or {}).get("system") or {}).get("item") or ("row", "rows")
    if (record["data"].get("roles") or {}).get("labeler"):
        item = ("label", "labels")
    return plural(rows, *item) if rows is not None else str(record["data"]["source"])


def _is_stated(finding: Plain, record: Plain) -> bool:
    """Whether the headline of the record says this finding already."""
    leads = record["verdict"] != "within" and finding["lens"] != "charter"
    return leads and bool(finding.get("headline"))


def _line(finding: Plain, record: Plain) -> Line:
    said = finding.get("line") or finding["sentence"]
    # What is open in a charter is for its layer; other findings say whose they are in `steps`.
    if record["charter"] and (finding["lens"] == "charter" or not finding.get("line")):
        said += f" {opening(finding['layer'])}: {finding['owner'] or 'nobody is named yet'}."
    return Line(verdict=finding["verdict"], text=said)


def _steps(findings: list[Plain]) -> Iterator[str]:
    """What to do with what lies outside, and whose it is; each once."""
    asked: dict[str, str] = {}
    for finding in findings:
        if not is_open(finding) and finding.get("next"):
            whose = finding.get("whose") or _whose(finding)
            asked.setdefault(str(finding["next"]), whose)
    yield from (" ".join(filter(None, (step, whose))) for step, whose in asked.items())


def _to_agree(record: Plain, findings: list[Plain]) -> tuple[str, ...]:
    """What to do about a difference that no limit judges: agree on one."""
    found = any(
        one["rows"] and one["verdict"] == "not assessed" and not is_open(one) for one in findings
    )
    return (f"{AGREE} {NOBODY}",) if found and record["verdict"] == "not assessed" else ()


def _whose(finding: Plain) -> str:
    return f"({finding['layer']}: {finding['owner']})" if finding["owner"] else ""
