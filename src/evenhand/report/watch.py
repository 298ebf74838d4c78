"""A look at a store as a page, on the terminal, as Markdown and as test results."""

import csv
import json
from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from evenhand.errors import UsageError
from evenhand.files import check_writable, write_text
from evenhand.files.documents import sealed
from evenhand.findings.sentences.rows import row_sentence
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import CATALOGUE
from evenhand.report.page import POLICY, _environment
from evenhand.report.watch_charts import (
    PHONE,
    SMALL,
    WIDE,
    ChartSize,
    amount,
    caption,
    line_chart,
    number,
    units,
    waterfall,
)
from evenhand.speech import as_cell, opening, plural, printable
from evenhand.watching.look import ANSWERED
from evenhand.watching.sentences import owner_words

MARKS = {"outside": ("bad", "✕"), "cannot tell": ("untold", "?"), "within": ("good", "✓"),
         "not assessed": ("plain", "·")}  # fmt: skip
FORMS = {".html": "page", ".md": "markdown", ".json": "json", ".xml": "junit"}
# Small charts beyond this many are left to the record.
MOST_CHARTS = 60
# Alarms beside the one that leads that the terminal names.
MOST_ALARMS = 3
Document = Mapping[str, Any]


def save_watch(document: Document, path: str | Path) -> None:
    """Write a look as the ending of the file's name says, whole or not at all."""
    ending = Path(path).suffix.lower()
    if ending not in FORMS:
        raise UsageError(
            f"'{path}' does not say by its ending what to write. Choose a name that ends in "
            f"{', '.join(FORMS)}."
        )
    check_writable(path)
    write_text(path, watch_text(document, FORMS[ending]))


def watch_text(document: Document, form: str) -> str:
    """A look as a page, as Markdown, as test results, as annotations or as its document."""
    if form == "json":
        text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
        return sealed(text) + "\n"
    makers = {
        "page": as_watch_page, "markdown": as_watch_markdown, "junit": as_watch_junit,
        "github": as_watch_annotations,
    }  # fmt: skip
    return makers[form](document)


# --- words ---------------------------------------------------------------------------------------


def words_of(document: Document) -> Words:
    """The words of a look: its charter's, or plain ones."""
    results = document["results"]
    classes = {row["class"] for row in results}
    positive = next(iter(classes)) if len(classes) == 1 else None
    return Words.of(
        charter=document["charter"],
        roles=document["data"].get("roles") or {},
        details={"statistical": {"positive": positive}},
        groups=((row["attribute"], row["group"]) for row in results),
    )


def _said(row: Mapping[str, Any], words: Words, document: Document) -> str:
    """A comparison in words; where its own words changed, that it is not judged from there on."""
    since = [change["since"] for change in document["word_changes"] if _concerns(change, row)]
    if not since:
        return row_sentence(row, words)
    known = row if row["verdict"] == "outside" else {**row, "verdict": "not assessed"}
    return f"{row_sentence(known, words)} From {min(since)} on it is not judged."


def _concerns(change: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a comparison rests on a word that changed; pairs of decisions rest on no group."""
    whose = change["attributes"]
    return whose is None or (row["lens"] != "counterfactual" and row["attribute"] in whose)


def _leading(document: Document) -> Mapping[str, Any] | None:
    """The alarm that the headline speaks of."""
    alarms = _open(document)
    return alarms[0] if alarms and alarms[0]["headline"] == document["headline"] else None


def _title(document: Document) -> str:
    system = (document["charter"] or {}).get("system") or {}
    often = {"day": "daily", "week": "weekly", "month": "monthly", "quarter": "quarterly",
             "year": "yearly"}.get(str(document["data"].get("every")), "")  # fmt: skip
    return f"{system.get('name') or Path(document['data']['store']).name}, watched {often}".strip()


def _open(document: Document) -> list[Mapping[str, Any]]:
    """Open alarms and those still outside, the one that the headline speaks of first."""
    alarms = [alarm for alarm in document["alarms"] if alarm["state"] != ANSWERED]
    alarms.sort(key=lambda alarm: alarm["by"] is not None)
    return sorted(alarms, key=lambda alarm: alarm["headline"] != document["headline"])


def _name(alarm: Mapping[str, Any]) -> str:
    """An alarm by its number, and that it was answered where it is still outside."""
    still = f", {alarm['state']}" if alarm["answer"] else ""
    return f"Alarm {alarm['id']} ({alarm['detector']}{still})"


def as_watch_text(document: Document) -> str:
    """A look on the terminal: the headline, what moved it, what is watched, what is not known."""
    lines = [f"{document['tag']}: {document['headline']}"]
    first = _leading(document)
    alarms = [alarm for alarm in _open(document) if alarm is not first]
    if document["next"]:
        lines.append(f"  {document['next']} {owner_words(document['charter'])}")
    if first is not None:
        lines += [
            f"  {first['detail']}",
            f"  {first['answer'] or first['next']} {owner_words(document['charter'])}",
        ]
    for alarm in alarms[:MOST_ALARMS]:
        same = first is not None and _key(alarm) == _key(first)
        said = _once(alarm, first) if same else alarm["headline"]
        lines.append(f"· {_name(alarm)}: {said}")
    if len(alarms) > MOST_ALARMS:
        lines.append(f"· {len(alarms) - MOST_ALARMS} more alarms are open: evenhand alarms STORE")
    words = words_of(document)
    lines += ["", f"On average over {_judged(document)}:"]
    for row in document["results"][:12]:
        lines.append(f"  {MARKS[row['verdict']][1]} {_said(row, words, document)}")
    if len(document["results"]) > 12:
        lines.append(f"  {len(document['results']) - 12:,} more are in the record (--json).")
    lines += [f"  {text}" for text in document["movements"]]
    lines += [f"· {note}" for note in document["notes"]]
    lines.append(document["summary"])
    return "\n".join(printable(line) for line in lines)


def _judged(document: Document) -> str:
    """How many periods are judged together, in words."""
    last = document["sequences"]
    count = sum(p["judged"] and p["sequence"] == last for p in document["periods"])
    return plural(count, document["data"].get("every") or "period")


def as_watch_markdown(document: Document) -> str:
    """The headline, the alarms and every comparison as Markdown."""
    lines = [f"### Evenhand: {_plain(document['tag'])}", "", f"**{_plain(document['headline'])}**"]
    if document["next"]:
        lines += ["", _plain(f"{document['next']} {owner_words(document['charter'])}"), ""]
    for alarm in _open(document):
        same = alarm["headline"] == document["headline"]
        said = alarm["detail"] if same else _whole(alarm)
        said = f"{said} {alarm['answer']}" if same and alarm["answer"] else said
        lines.append(f"- ✗ {_name(alarm)}: {_plain(said)}")
    words = words_of(document)
    lines += ["", "| | so far |", "|---|---|"]
    for row in document["results"]:
        mark = {"outside": "✗", "within": "✓"}.get(row["verdict"], MARKS[row["verdict"]][1])
        lines.append(f"| {mark} | {_plain(_said(row, words, document))} |")
    lines += ["", *(f"- {_plain(note)}" for note in document["notes"]), _plain(document["summary"])]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(printable(text).split())


def as_watch_junit(document: Document) -> str:
    """JUnit XML: words that changed, what is outside and every such alarm are failures."""
    words = words_of(document)
    suite = ElementTree.Element("testsuite", {"name": "evenhand"})
    if document["word_changes"]:
        told = _clean(_words_changed(document))
        case = ElementTree.SubElement(suite, "testcase", {"classname": "watch", "name": "words"})
        ElementTree.SubElement(case, "failure", {"message": told}).text = told
    for row in document["results"]:
        if row["verdict"] == "not assessed":
            continue
        case = _case(suite, f"{row['lens']}.{row['attribute']}", row)
        told = _clean(_said(row, words, document))
        if row["verdict"] == "outside":
            ElementTree.SubElement(case, "failure", {"message": told}).text = told
        elif row["verdict"] == "cannot tell":
            ElementTree.SubElement(case, "skipped", {"message": told})
    for alarm in _open(document):
        told = _clean(_whole(alarm))
        case = _case(suite, f"alarm.{alarm['detector']}", alarm)
        ElementTree.SubElement(case, "failure", {"message": told}).text = told
    counts = {"tests": "testcase", "failures": "failure", "skipped": "skipped"}
    for name, kind in counts.items():
        suite.set(name, str(len(list(suite.iter(kind)))))
    body = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _case(suite: Any, classname: str, row: Mapping[str, Any]) -> Any:
    parts = (row["measure"], row["class"], row["group"], row["reference"])
    name = " · ".join(str(part) for part in parts if part)
    return ElementTree.SubElement(
        suite, "testcase", {"classname": _clean(classname), "name": _clean(name)}
    )


def _clean(text: str) -> str:
    """Without the characters that XML cannot carry."""
    return "".join(c for c in printable(text) if c.isprintable() or c == " ")


def as_watch_annotations(document: Document) -> str:
    """Workflow commands: every alarm that is open or still outside is an error."""
    lines = [f"::notice title=Evenhand::{_message(document['headline'])}"]
    if document["word_changes"]:
        tag, said = _message(document["tag"]), _message(_words_changed(document))
        lines = [f"::error title=Evenhand%3A {tag}::{said}"]
    for alarm in _open(document)[:10]:
        said = _message(_whole(alarm))
        lines.append(f"::error title=Evenhand%3A alarm {alarm['id']}::{said}")
    return "\n".join(lines)


def _whole(alarm: Mapping[str, Any]) -> str:
    """An alarm with its numbers, and who answered it where it is still outside."""
    return " ".join(filter(None, (alarm["headline"], alarm["detail"], alarm["answer"])))


def _words_changed(document: Document) -> str:
    """Which words changed, and what is to be done."""
    return f"{document['headline']} {document['next']}"


def _message(text: str) -> str:
    return printable(text).replace("%", "%25")


# --- the page ------------------------------------------------------------------------------------


def as_watch_page(document: Document) -> str:
    """The look as one page: no script, no request, readable anywhere."""
    return str(
        _environment().get_template("watch.html.j2").render(page=_page(document), policy=POLICY)
    )


def as_watch_fragment(document: Document) -> str:
    """The headline and its chart for a notebook."""
    lead = _lead(document)
    chart = _chart(lead, document, WIDE) if lead else ""
    step = f"<p>{escape(document['next'])}</p>" if document["next"] else ""
    return f"<p><strong>{escape(document['headline'])}</strong></p>{step}{chart}"


def _page(document: Document) -> dict[str, Any]:
    first, lead = _leading(document), _lead(document)
    alarmed = bool(_open(document) or document["word_changes"])
    then = document["next"] or (first["next"] if first else None) or ""
    step = then.partition("evenhand alarms")
    css, mark = MARKS["outside"] if alarmed else MARKS[document["verdict"]]
    others = [one for one in document["series"] if one is not lead]
    words = words_of(document)
    sentence = {_key(row): _said(row, words, document) for row in document["results"]}
    below = [sentence[_key(lead)]] if lead else []
    if first:
        below = [text for text in (first["detail"], first["answer"]) if text]
    return {
        "title": _title(document), "summary": document["summary"], "bad": alarmed,
        "tag_class": css, "mark": mark, "tag": document["tag"], "headline": document["headline"],
        "below": below,
        "next": step[0], "command": "".join(step[1:]),
        "whose": owner_words(document["charter"]) if then else "",
        "chart": _chart(lead, document, WIDE) if lead else "",
        "phone": _chart(lead, document, PHONE) if lead else "",
        "every": document["data"].get("every") or "period",
        "caption": caption(lead) if lead else "",
        "shaded": any(not period["judged"] for period in document["periods"]),
        "numbers": _numbers(lead) if lead else [],
        "csv": _series_csv(document["series"]),
        "why": _why(document), "movements": document["movements"],
        "others": [
            {"title": _series_name(one, words), "chart": _chart(one, document, SMALL),
             "text": sentence[_key(one)]}
            for one in others[:MOST_CHARTS]
        ],
        "alarms": [_alarm_item(alarm, first) for alarm in document["alarms"]],
        "notes": [
            *document["notes"],
            *([f"{plural(len(others) - MOST_CHARTS, 'more chart')} are left to the record."]
              if len(others) > MOST_CHARTS else []),
        ],
        "made": f"Evenhand {document['made']['version']}, made {document['made']['at'][:10]}; "
        f"{document['made']['level']:.0%} holds over all looks and comparisons of a question; "
        f"{plural(document['sequences'], 'sequence')}.",
    }  # fmt: skip


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("measure", "class", "attribute", "group", "reference"))


def _lead(document: Document) -> Mapping[str, Any] | None:
    """The series that the headline speaks of: the first alarm's, else the worst verdict's."""
    series = document["series"]
    alarms = _open(document)
    if alarms:
        named = [one for one in series if _key(one) == _key(alarms[0])]
        return named[0] if named else None
    order = ["outside", "cannot tell", "within", "not assessed"]
    return min(series, key=lambda one: order.index(one["verdict"]), default=None)


def _series_name(one: Mapping[str, Any], words: Words) -> str:
    label = CATALOGUE[one["measure"]].label
    who = words.people(one["attribute"], one["group"])
    what = f" of '{one['class']}'" if words.positive is None and one["class"] else ""
    return opening(f"{label}{what}, {who}")


def _chart(one: Mapping[str, Any], document: Document, layout: ChartSize) -> str:
    """The chart of a series, with the open alarm that is of it."""
    alarm = next((a for a in _open(document) if _key(a) == _key(one)), None)
    return line_chart(one, document, alarm, layout)


def _numbers(one: Mapping[str, Any]) -> list[list[str]]:
    unit = units(one["measure"])
    rows = zip(*(one[name] for name in ("periods", "gap", "value", "low", "high", "n")))
    return [
        [name, number(gap, unit), number(value, unit),
         f"{number(low, unit)} to {number(high, unit)}", f"{n:,.0f}"]
        for name, gap, value, low, high, n in rows
    ]  # fmt: skip


def _series_csv(series: Sequence[Mapping[str, Any]]) -> str:
    """The numbers of every chart as CSV, one row for each period of each."""
    about = ("measure", "class", "attribute", "group", "reference")
    held = StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow([*about, "period", "own", "so_far", "low", "high", "n"])
    for one in series:
        which = ["" if one[name] is None else as_cell(str(one[name])) for name in about]
        for row in zip(*(one[name] for name in ("periods", "gap", "value", "low", "high", "n"))):
            writer.writerow([*which, *("" if v is None else v for v in row)])
    return held.getvalue()


def _alarm_item(alarm: Mapping[str, Any], first: Mapping[str, Any] | None) -> dict[str, str]:
    """An alarm in the list; what the headline says already is not said again."""
    answered = f"Answered by {alarm['by']}: {alarm['why']}" if alarm["by"] else "Open."
    answered = alarm["answer"] or answered
    return {
        "title": f"Alarm {alarm['id']}, {alarm['detector']}, raised {alarm['raised']}.",
        "text": _once(alarm, first),
        "who": answered,
    }


def _once(alarm: Mapping[str, Any], first: Mapping[str, Any] | None) -> str:
    """What an alarm says, in short where the alarm that leads is of the same gap."""
    if first is None or _key(alarm) != _key(first) or alarm["state"] == ANSWERED:
        return f"{alarm['headline']} {alarm['detail']}"
    if alarm["id"] == first["id"]:
        return "It leads this page."
    if alarm["detector"] == "limit":
        return f"The same gap has been outside what was agreed since {alarm['onset']}."
    return f"The same gap changed in {alarm['onset']}."


def _why(document: Document) -> list[dict[str, Any]]:
    found = []
    for alarm in _open(document):
        mine = [cause for cause in document["causes"] if cause["alarm"] == alarm["id"]]
        if mine:
            found.append(
                {"sentence": _parts_sentence(mine), "chart": waterfall(mine, alarm, wide=True),
                 "phone": waterfall(mine, alarm, wide=False),
                 "unit": units(alarm["measure"]) or "value",
                 "rows": [_cause_row(cause) for cause in mine]}
            )  # fmt: skip
    return found


def _parts_sentence(causes: Sequence[Mapping[str, Any]]) -> str:
    """What the parts are of: all rows before against all rows since, which sum exactly."""
    total = next(cause for cause in causes if cause["part"] == "total")
    unit = units(total["measure"])
    return (
        f"All rows before against all rows since: {amount(total['value'], unit)} "
        f"({number(total['low'], unit)} to {number(total['high'], unit)}), and the parts sum to it."
    )


def _cause_row(cause: Mapping[str, Any]) -> list[str]:
    unit = units(cause["measure"])
    return [
        cause["label"], cause["stratum"] or "everywhere", number(cause["value"], unit),
        f"{number(cause['low'], unit)} to {number(cause['high'], unit)}",
    ]  # fmt: skip
