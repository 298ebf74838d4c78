"""What a look says: the alarm that leads, why it moved, what to do and what cannot be told."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from evenhand.findings.finding import LAYER
from evenhand.findings.limits import CANNOT_TELL, NOT_ASSESSED, OUTSIDE
from evenhand.findings.order import evidence
from evenhand.findings.sentences.rows import say_row
from evenhand.findings.sentences.steps import whose_words
from evenhand.findings.sentences.verdict import TAGS
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import CATALOGUE
from evenhand.lenses.rows import Row
from evenhand.speech import agree, count_words, decimals, listed, opening, plural
from evenhand.watching.by_lens import LOGARITHMIC
from evenhand.watching.look import STILL_OUTSIDE, Look, OpenAlarm, alarm_document, attribute_of
from evenhand.watching.periods import Period, read_period
from evenhand.watching.vocabulary import FEWEST_ROWS, GROUP, UNKNOWN, VANISHED, WordChange

# Beyond this many words that changed alike, they are counted.
MOST_WORDS = 4


def headline(look: Look, rows: Sequence[Row], words: Words) -> str:
    """What leads: words that changed, an open alarm, what is outside, or that nothing is."""
    if look.vocabulary.changes:
        return words_changed(look)
    alarms = _alarms_that_lead(look)
    if alarms:
        return alarm_headline(alarms[0], look, words)
    outside = [row for row in rows if row["verdict"] == OUTSIDE]
    if outside:
        lead = min(outside, key=lambda row: evidence(OUTSIDE, row, [row]))
        return f"On average so far, {_lowered(say_row(lead, words).headline)}."
    every = look.periods[0].period.every if look.periods else "period"
    looks = plural(len(look.places), every)
    if not look.places:
        return "Nothing is judged yet."
    open_ = sum(row["verdict"] == CANNOT_TELL for row in rows)
    if open_:
        what = f"cannot settle {count_words(open_)} of {plural(len(rows), 'comparison')}"
        if len(rows) == 1:
            what = "cannot settle the one comparison"
        elif open_ == len(rows):
            what = "can settle none of the comparisons"
        return f"After {looks} no alarm is open, and the data {what} yet."
    if all(row["verdict"] == NOT_ASSESSED for row in rows):
        return f"After {looks} no alarm is open; no limits are set, so nothing is judged."
    return f"After {looks} no alarm is open and nothing lies outside its limit."


def words_changed(look: Look) -> str:
    """Which words went and which came, and since when."""
    every = look.periods[0].period.every
    changes = look.vocabulary.changes
    parts = []
    for since in dict.fromkeys(change.since for change in changes):
        mine = [change for change in changes if change.since == since]
        clauses = [_clause(part, every) for part in _alike(mine)]
        parts.append(f"since {every} {look.periods[since].period.name} {', and '.join(clauses)}")
    return f"{opening('; '.join(parts))}."


def words_step(look: Look) -> str | None:
    """What is no longer judged since words changed, and what is to be done; None where none did."""
    if not look.vocabulary.changes:
        return None
    every = look.periods[0].period.every
    names = [each.name for each in look.roles.attributes]
    stopped = [n for n in names if look.vocabulary.stop(attribute_of(look.roles, n)) is not None]
    by = f" by {listed(stopped)}" if stopped and look.stop is None else ""
    return (
        f"What was agreed{by} cannot be judged from there on until the words fit: mend the table "
        f"and give these {every}s again with --replace, or begin a new store if the words changed "
        "for good."
    )


def _alike(changes: Sequence[WordChange]) -> list[list[WordChange]]:
    """Changes that one clause says: of one role and attribute, and of one kind."""
    found: dict[tuple[str, str | None, str], list[WordChange]] = {}
    for change in sorted(changes, key=lambda one: one.kind == UNKNOWN):
        found.setdefault((change.role, change.attribute, change.kind), []).append(change)
    return list(found.values())


def _clause(changes: Sequence[WordChange], every: str) -> str:
    """What became of words of one role: "nobody is called 'm' (gender)"."""
    first, either = changes[0], _either([f"'{change.word}'" for change in changes])
    whose = f" ({first.attribute})" if first.role == GROUP else ""
    if first.kind == VANISHED:
        return f"nobody is called {either}{whose}" if whose else f"no {first.role} is {either}"
    rows, over = sum(change.rows for change in changes), max(change.over for change in changes)
    often = rows / over >= FEWEST_ROWS
    many = f"{plural(rows / over, 'row')} a {every}" if often else plural(rows, "row")
    have = f"are called {either}{whose}" if whose else f"have the {first.role} {either}"
    return f"{many} {have}, which no earlier {every} held"


def _either(words: Sequence[str]) -> str:
    """Words one after another, any of which it may be."""
    shown, more = list(words[:MOST_WORDS]), len(words) - MOST_WORDS
    if more > 0:
        return f"{', '.join(shown)} or {plural(more, 'other')}"
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _alarms_that_lead(look: Look) -> list[OpenAlarm]:
    """Open alarms before those that were answered and are still outside; the one to lead first."""
    return [*sorted(look.open_alarms, key=_rank), *sorted(look.still_outside, key=_rank)]


def _rank(alarm: OpenAlarm) -> tuple[int, float, int]:
    """The alarm that leads: a change before a limit, the most evident first."""
    now = alarm.now
    sure = 0.0 if now is None else abs(now.size) / max(now.high - now.low, 1e-12)
    return (0 if alarm.stored.detector == "change" else 1, -sure, alarm.stored.id)


def alarm_headline(alarm: OpenAlarm, look: Look, words: Words) -> str:
    """Since when who is treated how, with its numbers."""
    document = current(alarm, look)
    since = _period(document["onset"], look).spoken
    low, high = document["after_low"], document["after_high"]
    if alarm.stored.detector == "change" and document["reference"] and low <= 0 <= high:
        return _moved(document, since, words)
    row = _row(alarm, look, document["after"])
    return f"Since {since}, {_lowered(say_row(row, words).headline)}."


def _moved(document: Mapping[str, Any], since: str, words: Words) -> str:
    """A change to a gap that may be none now: what is sure is that it moved."""
    measure, size, attribute = document["measure"], document["size"], document["attribute"]
    unit = _unit(measure)
    who = words.people(attribute, document["group"])
    return (
        f"Since {since}, the {CATALOGUE[measure].label} of {who} against "
        f"{words.people(attribute, document['reference'])} is {_amount(abs(size), unit)} "
        f"{'higher' if size > 0 else 'lower'} than before "
        f"({_ends(size, document['low'], document['high'], unit)}); what it is now, the data "
        "cannot tell from none."
    )


def alarm_detail(alarm: OpenAlarm, look: Look, causes: Sequence[Row], words: Words) -> str:
    """Before and after, how sure the date is, and what moved it."""
    document = current(alarm, look)
    unit = _unit(document["measure"])
    parts = []
    size, low, high = document["size"], document["low"], document["high"]
    onset = _period(document["onset"], look)
    first, last = (_period(document[f"onset_{end}"], look) for end in ("low", "high"))
    if alarm.stored.detector == "change" and document["before"] is not None:
        parts.append(f"Before it was {_amount(document['before'], unit)}.")
        if document["measure"] in LOGARITHMIC:
            moved = f"It became {_amount(size, unit)} times that ({_plain_ends(low, high, unit)})"
        else:
            what = "The gap" if document["reference"] else "It"
            moved = (
                f"{what} {'grew' if size > 0 else 'fell'} by {_amount(abs(size), unit)} "
                f"({_ends(size, low, high, unit)})"
            )
        when = f"{moved} since {onset.spoken}{_doubt(first, last)}"
        parts.append(
            f"{when}{_over_all_rows(causes, size, unit)}{cause_clause(causes, size, unit)}."
        )
    else:
        parts.append(
            f"It has been {_amount(size, unit)} ({_plain_ends(low, high, unit)}) on average since "
            f"{onset.spoken}{_doubt(first, last)}."
        )
    band = alarm.judged.stream.band if alarm.judged else None
    if band is not None:
        parts.append(f"Agreed: {_band(band, unit)}.")
    return " ".join(parts)


def _over_all_rows(causes: Sequence[Row], size: float, unit: str) -> str:
    """What the parts sum to, where it is not what was said: sizes weigh periods by precision."""
    total = next((c["value"] for c in causes if c["part"] == "total"), None)
    if total is None or abs(total - size) <= 0.05 * abs(size):
        return ""
    return f"; over all rows by {_amount(total if size > 0 else -total, unit)}"


def cause_clause(causes: Sequence[Row], size: float, unit: str) -> str:
    """The parts that matter, largest first, as the sentence goes on after the movement."""
    total = [c for c in causes if c["stratum"] is None and c["part"] != "total"]
    if not total:
        return ""
    large = sorted(total, key=lambda c: -abs(c["value"]))
    shown = [c for c in large if abs(c["value"]) >= 0.05 * max(abs(size), 1e-12)][:4]
    said = []
    for cause in shown:
        sign = "" if cause["value"] * size > 0 else "−"
        said.append(f"{sign}{_bare(abs(cause['value']), unit)} because {cause['words']}")
    return f": {listed(said)}" if said else ""


def movements(causes: Sequence[Row], words: Words) -> list[str]:
    """What moved each gap that somebody asked about, in a sentence each."""
    found = []
    for total in causes:
        if total["alarm"] is not None or total["part"] != "total":
            continue
        same = ("alarm", "measure", "class", "group", "reference", "attribute")
        mine = [c for c in causes if all(c[name] == total[name] for name in same)]
        unit, size = _unit(total["measure"]), total["value"]
        who = words.people(total["attribute"], total["group"])
        if total["reference"] is not None:
            who += f" against {words.people(total['attribute'], total['reference'])}"
        label = CATALOGUE[total["measure"]].label
        if total["measure"] in LOGARITHMIC:
            label = f"logarithm of the {label}"
        found.append(
            opening(
                f"{label}, {who}: moved by {_amount(size, unit)} "
                f"({_plain_ends(total['low'], total['high'], unit)})"
                f"{cause_clause(mine, size, unit)}."
            )
        )
    return found


def what_to_do(alarm: OpenAlarm, look: Look, store: str) -> str:
    """What an open alarm asks for."""
    onset = _period(current(alarm, look)["onset"], look)
    return (
        f"Look at what changed in {onset.dated}; answer with: evenhand alarms {store} "
        f"--acknowledge {alarm.stored.id} --by … --why …"
    )


def answer_words(alarm: OpenAlarm) -> str | None:
    """Who answered an alarm whose gap is still outside its limit, when and why."""
    stored = alarm.stored
    if not alarm.outside or stored.answered is None:
        return None
    day = date.fromisoformat(stored.answered[:10])
    return (
        f"Answered by {stored.who} on {day.day} {day:%B} {day.year} (“{stored.why}”), still "
        "outside: this stays until the gap is back inside its limit."
    )


def owner_words(charter: Mapping[str, Any] | None) -> str:
    """Whose an open alarm is: the charter's owner, or else who is to be asked."""
    layers = (charter or {}).get("layers") or {}
    return whose_words(LAYER, (layers.get(LAYER) or {}).get("owner"))


def current(alarm: OpenAlarm, look: Look) -> dict[str, Any]:
    """An alarm as plain values: as it looks now, or as it was raised where that is all there is."""
    if alarm.now is None or alarm.judged is None:
        return alarm.stored.document
    return alarm_document(alarm.now, alarm.judged, look.periods)


def _row(alarm: OpenAlarm, look: Look, value: float) -> dict[str, Any]:
    """The row of an alarm's comparison with the gap since its onset."""
    key = alarm.key
    document = current(alarm, look)
    return {
        **dict.fromkeys(
            ("stratum", "labeler", "norm", "undefined", "set_low", "set_high", "limit_low",
             "limit_high", "no_interval", "method", "rule", "p", "p_adjusted", "n", "n_reference")
        ),
        "lens": key.lens, "measure": key.measure, "class": key.class_,
        "attribute": key.attribute, "group": key.group, "reference": key.reference,
        "value": value, "low": document["after_low"], "high": document["after_high"],
        "family_low": document["after_low"], "family_high": document["after_high"],
        "verdict": NOT_ASSESSED, "period": document["onset"],
    }  # fmt: skip


def _lowered(text: str) -> str:
    """A sentence's start as it goes on after a comma; what is in capitals stays so."""
    head = text.split(" ", 1)[0]
    return text if head.isupper() and len(head) > 1 else text[:1].lower() + text[1:]


def _period(name: str, look: Look) -> Period:
    every = look.periods[0].period.every
    found = read_period(name, every=every)
    assert found is not None
    return found


def _unit(measure: str) -> str:
    """Points for differences between shares, else plain numbers."""
    record = CATALOGUE[measure]
    return "points" if record.low in (-1, 0) and record.high == 1 else ""


def _amount(value: float, unit: str) -> str:
    text = _bare(value, unit)
    return f"{text} {'point' if text == '1' else 'points'}" if unit else text


def _bare(value: float, unit: str) -> str:
    """An amount without its unit."""
    text = f"{100 * value:.1f}".removesuffix(".0") if unit else f"{value:.2f}"
    return "0" if text == "-0" else text.replace("-", "−")


def _ends(size: float, low: float, high: float, unit: str) -> str:
    """An interval of a movement's size, from the smaller to the larger."""
    ends = sorted((low, high)) if size > 0 else sorted((-low, -high))
    return _plain_ends(ends[0], ends[1], unit)


def _plain_ends(low: float, high: float, unit: str) -> str:
    if not unit:
        return f"{low:.2f} to {high:.2f}".replace("-", "−")
    places = decimals(low, high)
    return f"{100 * low:.{places}f} to {100 * high:.{places}f}".replace("-", "−")


def _doubt(first: Period, last: Period) -> str:
    """How sure the date is: nothing where it is one period."""
    return "" if first == last else f" (between {first.spoken} and {last.spoken})"


def _band(band: tuple[float, float], unit: str) -> str:
    low, high = band
    if low == -high:
        return f"within {_amount(high, unit)}"
    return f"{_bare(low, unit)} to {_amount(high, unit)}"


def tag(look: Look) -> str:
    """The tag above the headline: that words changed, an open alarm, or the verdict."""
    if look.vocabulary.changes:
        return "The words changed"
    alarms = _alarms_that_lead(look)
    if not alarms:
        return TAGS[look.verdict]
    first = alarms[0].stored
    if not first.open:
        return f"Alarm {first.id}, {STILL_OUTSIDE}"
    raised = Period(every=look.periods[0].period.every, number=first.raised)
    return f"Alarm {first.id}, open since {raised.spoken}"


def summary(look: Look) -> str:
    """How many periods, until when, how many alarms are open, and that words changed."""
    if not look.periods:
        return "no periods yet"
    every, last = look.periods[0].period.every, look.periods[-1].period
    count = len(look.open_alarms)
    alarms = (
        f"{count_words(count)} {agree(count, 'alarm', 'alarms')} open"
        if count
        else ("no alarm open")
    )
    if look.still_outside:
        alarms += f", {count_words(len(look.still_outside))} answered and still outside"
    if look.vocabulary.changes:
        alarms += ", and the words changed"
    end = last.end
    return opening(
        f"{plural(len(look.periods), every)} to {end.day} {end:%B} {end.year} · {alarms}"
    )
