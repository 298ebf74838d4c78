"""A look at a store as a page, on the terminal, as Markdown and as test results."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from evenhand.errors import UsageError
from evenhand.files import check_writable, write_text
from evenhand.files.documents import sealed
from evenhand.findings.find import LAYER
from evenhand.findings.sentences.rows import row_sentence
from evenhand.findings.sentences.steps import whose_words
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import CATALOGUE
from evenhand.report.page import POLICY, _environment
from evenhand.speech import opening, plural, printable

MARKS = {"outside": ("bad", "✕"), "cannot tell": ("untold", "?"), "within": ("good", "✓"),
         "not assessed": ("plain", "·")}  # fmt: skip
FORMS = {".html": "page", ".md": "markdown", ".json": "json", ".xml": "junit"}
# Small charts beyond this many are left to the record.
MOST_CHARTS = 60
_PARTS = {
    "mix": "another mix", "rate": "rates within", "threshold": "threshold moved",
    "scores": "scores moved", "calibration": "calibration moved", "prevalence": "prevalence",
    "bar": "bar", "skill": "skill",
}  # fmt: skip
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


def _title(document: Document) -> str:
    system = (document["charter"] or {}).get("system") or {}
    often = {"day": "daily", "week": "weekly", "month": "monthly", "quarter": "quarterly",
             "year": "yearly"}.get(str(document["data"].get("every")), "")  # fmt: skip
    return f"{system.get('name') or Path(document['data']['store']).name}, watched {often}".strip()


def _open(document: Document) -> list[Mapping[str, Any]]:
    """Open alarms, the one that the headline speaks of first."""
    alarms = [alarm for alarm in document["alarms"] if alarm["by"] is None]
    return sorted(alarms, key=lambda alarm: alarm["headline"] != document["headline"])


def as_watch_text(document: Document) -> str:
    """A look on the terminal: the headline, what moved it, what is watched, what is not known."""
    lines = [f"{document['tag']}: {document['headline']}"]
    alarms = _open(document)
    if alarms:
        lines += [f"  {alarms[0]['detail']}", f"  {alarms[0]['next']} {_owner(document)}"]
    for alarm in alarms[1:4]:
        lines.append(f"· Alarm {alarm['id']} ({alarm['detector']}): {alarm['headline']}")
    if len(alarms) > 4:
        lines.append(f"· {len(alarms) - 4} more alarms are open: evenhand alarms STORE")
    words = words_of(document)
    lines += ["", f"On average over {len(document['periods'])} periods:"]
    for row in document["results"][:12]:
        lines.append(f"  {MARKS[row['verdict']][1]} {row_sentence(row, words)}")
    if len(document["results"]) > 12:
        lines.append(f"  {len(document['results']) - 12:,} more are in the record (--json).")
    lines += [f"  {text}" for text in document["movements"]]
    lines += [f"· {note}" for note in document["notes"]]
    lines.append(document["summary"])
    return "\n".join(printable(line) for line in lines)


def as_watch_markdown(document: Document) -> str:
    """The headline, the alarms and every comparison as Markdown."""
    lines = [f"### Evenhand: {_plain(document['tag'])}", "", f"**{_plain(document['headline'])}**"]
    for alarm in _open(document):
        lines.append(
            f"- ✗ Alarm {alarm['id']} ({alarm['detector']}): {_plain(alarm['headline'])} "
            f"{_plain(alarm['detail'])}"
        )
    words = words_of(document)
    lines += ["", "| | so far |", "|---|---|"]
    for row in document["results"]:
        mark = {"outside": "✗", "within": "✓"}.get(row["verdict"], MARKS[row["verdict"]][1])
        lines.append(f"| {mark} | {_plain(row_sentence(row, words))} |")
    lines += ["", *(f"- {_plain(note)}" for note in document["notes"]), _plain(document["summary"])]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(printable(text).split())


def as_watch_junit(document: Document) -> str:
    """JUnit XML: what is outside and every open alarm are failures."""
    words = words_of(document)
    suite = ElementTree.Element("testsuite", {"name": "evenhand"})
    for row in document["results"]:
        if row["verdict"] == "not assessed":
            continue
        case = _case(suite, f"{row['lens']}.{row['attribute']}", row)
        told = _clean(row_sentence(row, words))
        if row["verdict"] == "outside":
            ElementTree.SubElement(case, "failure", {"message": told}).text = told
        elif row["verdict"] == "cannot tell":
            ElementTree.SubElement(case, "skipped", {"message": told})
    for alarm in _open(document):
        told = _clean(f"{alarm['headline']} {alarm['detail']}")
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
    """Workflow commands: every open alarm is an error, the headline a notice."""
    lines = [f"::notice title=Evenhand::{_message(document['headline'])}"]
    for alarm in _open(document)[:10]:
        said = _message(f"{alarm['headline']} {alarm['detail']}")
        lines.append(f"::error title=Evenhand%3A alarm {alarm['id']}::{said}")
    return "\n".join(lines)


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
    chart = line_chart(lead, document) if lead else ""
    return f"<p><strong>{escape(document['headline'])}</strong></p>{chart}"


def _page(document: Document) -> dict[str, Any]:
    alarms, lead = _open(document), _lead(document)
    css, mark = ("bad", "✕") if alarms else MARKS[document["verdict"]]
    first = alarms[0] if alarms else None
    others = [one for one in document["series"] if one is not lead]
    words = words_of(document)
    sentence = {_key(row): row_sentence(row, words) for row in document["results"]}
    return {
        "title": _title(document), "summary": document["summary"], "bad": bool(alarms),
        "tag_class": css, "mark": mark, "tag": document["tag"], "headline": document["headline"],
        "below": [first["detail"]] if first else [sentence[_key(lead)]] if lead else [],
        "next": first["next"] if first else None,
        "whose": _owner(document) if first else "",
        "chart": line_chart(lead, document) if lead else "",
        "every": document["data"].get("every") or "period",
        "numbers": _numbers(lead) if lead else [],
        "why": _why(document), "movements": document["movements"],
        "others": [
            {"title": _series_name(one, words), "chart": line_chart(one, document, small=True),
             "text": sentence[_key(one)]}
            for one in others[:MOST_CHARTS]
        ],
        "alarms": [_alarm_item(alarm) for alarm in document["alarms"]],
        "notes": [
            *document["notes"],
            *([f"{plural(len(others) - MOST_CHARTS, 'more chart')} are left to the record."]
              if len(others) > MOST_CHARTS else []),
        ],
        "made": f"Evenhand {document['made']['version']}, made {document['made']['at'][:10]}; "
        f"{document['made']['level']:.0%} holds over all looks and comparisons of a question; "
        f"{plural(document['sequences'], 'sequence')}.",
    }  # fmt: skip


def _owner(document: Document) -> str:
    """Whose an open alarm is: the charter's owner, or else who is to be asked."""
    layers = (document["charter"] or {}).get("layers") or {}
    return whose_words(LAYER, (layers.get(LAYER) or {}).get("owner"))


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


def _numbers(one: Mapping[str, Any]) -> list[list[str]]:
    rows = zip(*(one[name] for name in ("periods", "gap", "value", "low", "high", "n")))
    return [
        [name, _points(gap), _points(value), f"{_points(low)} to {_points(high)}", f"{n:,.0f}"]
        for name, gap, value, low, high, n in rows
    ]


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.1f}".replace("-", "−")


def _alarm_item(alarm: Mapping[str, Any]) -> dict[str, str]:
    answered = f"Answered by {alarm['by']}: {alarm['why']}" if alarm["by"] else "Open."
    return {
        "title": f"Alarm {alarm['id']}, {alarm['detector']}, raised {alarm['raised']}.",
        "text": f"{alarm['headline']} {alarm['detail']}",
        "who": answered,
    }


def _why(document: Document) -> list[dict[str, Any]]:
    found = []
    for alarm in _open(document):
        mine = [cause for cause in document["causes"] if cause["alarm"] == alarm["id"]]
        if mine:
            found.append(
                {"sentence": _parts_sentence(mine), "chart": waterfall(mine, alarm),
                 "rows": [_cause_row(cause) for cause in mine]}
            )  # fmt: skip
    return found


def _parts_sentence(causes: Sequence[Mapping[str, Any]]) -> str:
    """What the parts are of: all rows before against all rows since, which sum exactly."""
    total = next(cause for cause in causes if cause["part"] == "total")
    return (
        f"All rows before against all rows since: {_points(total['value'])} points "
        f"({_points(total['low'])} to {_points(total['high'])}), and the parts sum to it."
    )


def _cause_row(cause: Mapping[str, Any]) -> list[str]:
    name = "all" if cause["part"] == "total" else _PARTS.get(cause["part"], cause["part"])
    return [
        name, cause["stratum"] or "everywhere", _points(cause["value"]),
        f"{_points(cause['low'])} to {_points(cause['high'])}",
    ]  # fmt: skip


# --- charts --------------------------------------------------------------------------------------


def line_chart(one: Mapping[str, Any], document: Document, *, small: bool = False) -> str:
    """A watched number over periods: each one's own, all so far, the band, alarms and onset."""
    width, height = (320, 150) if small else (960, 300)
    left, right, top, bottom = (34, 8, 12, 24) if small else (60, 40, 18, 60)
    names = [period["period"] for period in document["periods"]]
    x = _scale(len(names), left, width - right)
    ready = [i for i, known in enumerate(one["ready"]) if known] or [len(one["periods"]) - 1]
    shown = [v for v in one["gap"] if v is not None]
    shown += [one[side][i] for side in ("low", "high") for i in ready]
    shown += [*(one["limit"] or ()), 0.0]
    y, ticks = _value_scale(shown, top, height - bottom)
    place = {name: x(i) for i, name in enumerate(names)}
    parts = []
    if one["limit"]:
        low, high = (y(v) for v in one["limit"])
        parts.append(_rect(left, high, width - right - left, low - high, "var(--band)"))
    for i, period in enumerate(document["periods"]):
        if not period["judged"]:
            half = (width - left - right) / max(len(names), 1) / 2
            parts.append(_rect(x(i) - half, top, 2 * half, height - bottom - top, "var(--untold)"))
    for tick in ticks:
        parts.append(
            f'<line x1="{left}" x2="{width - right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" '
            'stroke="var(--line)"/>'
        )
        parts.append(_text(left - 8, y(tick) + 4, _tick(tick), "end"))
    xs = [place[name] for name in one["periods"]]
    upper = [f"{xs[i]:.1f},{y(one['high'][i]):.1f}" for i in ready]
    lower = [f"{xs[i]:.1f},{y(one['low'][i]):.1f}" for i in reversed(ready)]
    parts.append(f'<polygon points="{" ".join(upper + lower)}" fill="var(--plain)" opacity=".16"/>')
    line = " ".join(f"{a:.1f},{y(v):.1f}" for a, v in zip(xs, one["value"]))
    parts.append(f'<polyline points="{line}" fill="none" stroke="var(--plain)" stroke-width="2"/>')
    alarm = next((a for a in _open(document) if _key(a) == _key(one)), None)
    since = place.get(alarm["onset"]) if alarm else None
    for a, v in zip(xs, one["gap"]):
        colour = "var(--bad)" if since is not None and a >= since else "var(--ink2)"
        parts.append(
            f'<circle cx="{a:.1f}" cy="{y(v):.1f}" r="{2 if small else 3}" fill="{colour}" '
            'opacity=".75"/>'
        )
    if alarm and since is not None:
        parts += _alarm_marks(alarm, place, since, top, height - bottom, small)
    for i in _label_places(len(names), 3 if small else 13):
        parts.append(
            _text(x(i), height - bottom + (16 if small else 22), _short(names[i]), "middle")
        )
    if not small:
        parts.append(_text(width / 2, height - 10, _axis(one), "middle"))
    label = escape(f"{CATALOGUE[one['measure']].label} by period", quote=True)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _alarm_marks(
    alarm: Mapping[str, Any],
    place: Mapping[str, float],
    since: float,
    top: float,
    bottom: float,
    small: bool,
) -> list[str]:
    raised = place.get(alarm["raised"])
    found = [
        f'<line x1="{since:.1f}" x2="{since:.1f}" y1="{top}" y2="{bottom}" stroke="var(--bad)" '
        'stroke-dasharray="4 4"/>'
    ]
    if raised is not None:
        found.append(
            f'<line x1="{raised:.1f}" x2="{raised:.1f}" y1="{top}" y2="{bottom}" '
            'stroke="var(--bad)"/>'
        )
    if small:
        return found
    first, last = alarm["onset_low"], alarm["onset_high"]
    between = "" if first == last else f" ({_short(first)} to {_short(last)})"
    found.append(
        _text(
            since - 8, top + 12, f"changed in {_short(alarm['onset'])}{between}", "end", bold=True
        )
    )
    if raised is not None:
        right = max(raised, since) + 8
        found.append(
            _text(right, top + 12, f"alarm in {_short(alarm['raised'])}", "start", bold=True)
        )
    return found


def waterfall(causes: Sequence[Mapping[str, Any]], alarm: Mapping[str, Any]) -> str:
    """The gap before, what each part did, and the gap since, one below the other."""
    total = next(cause for cause in causes if cause["part"] == "total")
    parts = [c for c in causes if c["stratum"] is None and c["part"] != "total"]
    before = alarm["before"] or 0.0
    steps: list[tuple[str, float, float, str]] = [
        (f"before {_short(alarm['onset'])}", 0.0, before, "var(--ink2)")
    ]
    at = before
    for cause in parts:
        steps.append(
            (_PARTS.get(cause["part"], cause["part"]), at, at + cause["value"], "var(--bad)")
        )
        at += cause["value"]
    steps.append((f"since {_short(alarm['onset'])}", 0.0, before + total["value"], "var(--ink2)"))
    ends = [end for step in steps for end in step[1:3]] + [0.0]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0
    drawn = []
    for i, (name, start, end, colour) in enumerate(steps):
        top = 14 + 38 * i
        first, last = sorted(190 + 480 * (v - low) / span for v in (start, end))
        drawn.append(_text(180, top + 17, name, "end", bold=True))
        drawn.append(
            _rect(first, top, max(last - first, 2), 24, colour, extra=' rx="3" opacity=".8"')
        )
        said = (
            f"{_points(end)} points"
            if i in (0, len(steps) - 1)
            else f"{_points(end - start)} points"
        )
        drawn.append(_text(last + 8, top + 17, said, "start"))
    height = 20 + 38 * len(steps)
    return (
        f'<svg viewBox="0 0 860 {height}" width="860" role="img" aria-label="Why the gap moved">'
        f"{''.join(drawn)}</svg>"
    )


def _scale(count: int, low: float, high: float) -> Any:
    step = (high - low) / max(count - 1, 1)
    return lambda i: low + step * i if count > 1 else (low + high) / 2


def _value_scale(values: Sequence[float], top: float, bottom: float) -> tuple[Any, list[float]]:
    """Where a value lies, and the ticks: round numbers around all values."""
    low, high = min(values), max(values)
    if high - low < 1e-9:
        low, high = low - 0.01, high + 0.01
    raw = (high - low) / 5
    power = 10.0 ** int(f"{raw:e}".split("e")[1])
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    first, last = int(low // step), int(-(-high // step))
    ticks = [step * i for i in range(first, last + 1)]
    span = (ticks[-1] - ticks[0]) or 1.0
    return (lambda v: bottom - (bottom - top) * (v - ticks[0]) / span), ticks


def _tick(value: float) -> str:
    return f"{100 * value:+.4g}".replace("-", "−").replace("+0", "0") if value else "0"


def _label_places(count: int, most: int) -> list[int]:
    step = max(1, -(-count // most))
    return list(range(0, count, step))


def _short(name: str) -> str:
    """A period as an axis names it: week 31 of 2026-W31."""
    return f"week {int(name.rpartition('W')[2])}" if "-W" in name else name


def _axis(one: Mapping[str, Any]) -> str:
    return f"{CATALOGUE[one['measure']].label} in points, {one['group']} against {one['reference']}"


def _rect(x: float, y: float, width: float, height: float, fill: str, *, extra: str = "") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}" '
        f'fill="{fill}"{extra}/>'
    )


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    css = ' class="n"' if bold else ""
    return f'<text{css} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
