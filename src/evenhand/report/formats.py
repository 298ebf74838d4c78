"""A record as Markdown, test results, annotations and a section of a model card."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from evenhand.findings.sentences.rows import row_sentence
from evenhand.findings.sentences.verdict import TAGS
from evenhand.report.labels import spoken
from evenhand.report.outline import MARKS, marked, outline
from evenhand.report.rates import Grid
from evenhand.report.table import HEADERS, cells, chosen_rows, limit_text
from evenhand.report.terminal import as_text
from evenhand.report.view import View, whole
from evenhand.speech import printable


def as_markdown(record: Mapping[str, Any]) -> str:
    """The finding, every group's rates, what to do, what is not known and the leading rows."""
    parts = outline(record)
    lines = [f"### Evenhand: {parts.tag}: {in_markdown(parts.headline)}", ""]
    for sentence in filter(None, (parts.rest, parts.agreed, parts.about)):
        lines += [in_markdown(sentence), ""]
    lines += [f"- {in_markdown(sentence)}" for sentence in parts.heeded]
    for grid in parts.grids:
        lines += _grid(grid)
    lines += [f"- {in_markdown(marked(one))}" for one in parts.findings]
    lines += _section("What to do", parts.steps)
    lines += _section("What the data cannot tell", parts.unknown)
    rows, more = chosen_rows(record)
    if rows:
        lines += ["", "#### Comparisons", "", *_table(HEADERS, map(cells, rows))]
    if more:
        lines += ["", f"{more:,} more rows are in the record."]
    lines += _section("Notes", parts.notes)
    data, made = record["data"], record["made"]
    mark = f"Evenhand {made.get('version', '')}, fingerprint {data.get('fingerprint', '')}."
    lines += ["", f"{parts.level} {mark}"]
    return "\n".join(lines) + "\n"


def _grid(grid: Grid) -> list[str]:
    """Rates side by side, each with its interval and cases."""
    heads = [grid.corner, *(part for name in grid.columns for part in (name, "n"))]
    body = (
        [name, *(part for cell in held for part in ((cell.text, cell.n) if cell else ("–", "–")))]
        for name, held in grid.lines
    )
    more = [f"{grid.more:,} more classes are in the record.", ""] if grid.more else []
    return [f"#### {in_markdown(grid.title)}", "", *_table(heads, body), "", *more]


def _table(heads: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(in_markdown, heads)) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(map(in_markdown, line)) + " |" for line in body]


def _section(title: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    return ["", f"#### {title}", "", *(f"- {in_markdown(sentence)}" for sentence in sentences)]


def in_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(printable(text).split())


_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(record: Mapping[str, Any]) -> str:
    """JUnit XML: outside is a failure, cannot tell is skipped, within passes."""
    record = whole(record)
    view = View.of(record)
    rows = view.rows.pick(view.rows.judged())
    # As for the verdict: of single labelers only those shown to lie outside.
    rows = [row for row in rows if row["labeler"] is None or row["verdict"] == "outside"]
    rows.sort(key=lambda row: tuple(MARKS).index(row["verdict"]))
    counts = {
        "tests": len(rows),
        "failures": sum(row["verdict"] == "outside" for row in rows),
        "skipped": sum(row["verdict"] == "cannot tell" for row in rows),
        "errors": 0,
    }
    suite = ElementTree.Element("testsuite", {"name": "evenhand", **_texts(counts)})
    for row in rows:
        parts = (row["class"], row["group"], row["reference"], row["stratum"], row["labeler"])
        name = " · ".join(str(part) for part in (row["measure"], *parts) if part)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": _clean(f"{row['lens']}.{row['attribute']}"), "name": _clean(name)},
        )
        told = _clean(row_sentence(row, view.words, view.look))
        if row["verdict"] == "outside":
            beyond = _clean(f"{told} {limit_text(row)}")
            ElementTree.SubElement(case, "failure", {"message": told}).text = beyond
        elif row["verdict"] == "cannot tell":
            ElementTree.SubElement(case, "skipped", {"message": told})
    ElementTree.SubElement(suite, "system-out").text = _clean(as_text(record))
    body = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def _clean(text: str) -> str:
    """Without the characters that XML cannot carry: controls, surrogates, non-characters."""
    return _FORBIDDEN.sub("", text)


_LEVELS = {"outside": "error", "cannot tell": "warning"}
# GitHub shows at most ten of each kind for a step.
MOST = 10


def as_annotations(record: Mapping[str, Any]) -> str:
    """Workflow commands: outside is an error, cannot tell a warning, the verdict a notice.

    Examples:
        >>> finding = {"verdict": "outside", "lens": "statistical", "sentence": "A, b differ."}
        >>> record = {"schema": "evenhand.audit/2", "made": {}, "data": {}, "results": []}
        >>> record |= {"findings": [finding], "verdict": "outside", "sentence": "A and b."}
        >>> print(as_annotations(record))
        ::notice title=Evenhand::Gap found: A and b.
        ::error title=Evenhand%3A A%2C b differ::A, b differ.
    """
    return "\n".join(_lines(record))


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    verdict = f"{TAGS[record['verdict']]}: {record['sentence']}"
    yield f"::notice title=Evenhand::{_message(verdict)}"
    counts = dict.fromkeys(_LEVELS.values(), 0)
    for finding in View.of(whole(record)).findings:
        level = _LEVELS.get(finding["verdict"])
        if level is None or counts[level] == MOST:
            continue
        counts[level] += 1
        title = _property(f"Evenhand: {finding['heading']}")
        yield f"::{level} title={title}::{_message(finding['sentence'])}"


def _message(text: str) -> str:
    return spoken(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


_OPEN = "<!-- evenhand: begin -->"
_CLOSE = "<!-- evenhand: end -->"


def as_card_section(record: Mapping[str, Any]) -> str:
    """The section "Bias, Risks, and Limitations" of a Hugging Face model card, in Markdown.

    Between two comments, so that a script can put a newer one in its place.

    Examples:
        >>> base = {"schema": "evenhand.audit/2", "made": {"version": "1"}, "results": []}
        >>> base |= {"data": {"fingerprint": "f"}, "findings": [], "verdict": "not assessed"}
        >>> print(as_card_section(base).splitlines()[2])
        ## Bias, Risks, and Limitations
    """
    held = whole(record)
    data = held["data"]
    told = as_markdown(held)
    roles = data.get("roles") or {}
    groups = ", ".join(_column(str(name)) for name in roles.get("group") or [])
    rows = f"{data['rows']:,} rows" if data.get("rows") is not None else "the audited rows"
    lead = f"Audited on {rows}" + (f", by {groups}." if groups else ".")
    limits = (
        "An audit speaks of the data it saw: other people, places and times may differ, and "
        "groups that the data does not name cannot be seen."
    )
    parts = [_OPEN, "", "## Bias, Risks, and Limitations", "", lead, "", told, limits, "", _CLOSE]
    return "\n".join(parts) + "\n"


def _column(name: str) -> str:
    """A column's name as code; one that could end the code is escaped text instead."""
    return f"`{name}`" if re.fullmatch(r"[\w .:/-]+", name) else in_markdown(name)


def put_into(card: str, section: str) -> str:
    """A model card with this section: in place of an older one, or at its end.

    Examples:
        >>> new = put_into("# Card\\n", f"{_OPEN}\\nnew\\n{_CLOSE}\\n")
        >>> put_into(new, f"{_OPEN}\\nnewer\\n{_CLOSE}\\n").count("new")
        1
    """
    start, end = card.find(_OPEN), card.find(_CLOSE)
    if 0 <= start < end:
        return card[:start] + section.rstrip("\n") + card[end + len(_CLOSE) :]
    return card.rstrip("\n") + "\n\n" + section
