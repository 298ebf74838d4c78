"""A look at a store: its periods parted into sequences, the last one judged, alarms raised."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from hashlib import sha256
from math import isfinite
from typing import Any

from evenhand.decisions.roles import Attribute, Roles
from evenhand.findings.limits import CANNOT_TELL, NOT_ASSESSED, OUTSIDE, WITHIN, Limit, overall
from evenhand.stats.estimate import critical
from evenhand.stats.sequential import BURN_IN
from evenhand.watching.by_lens import lens_streams
from evenhand.watching.numbers import Settings
from evenhand.watching.periods import State, states
from evenhand.watching.screen import StreamTask, judge_all
from evenhand.watching.store import Store, StoredAlarm, StoredPeriod
from evenhand.watching.streams import (
    History,
    PeriodCounts,
    Stream,
    StreamKey,
    Watched,
    choose_measures,
    load_history,
    pair_streams,
    rate_streams,
    read_counts,
    read_pairs,
)
from evenhand.watching.verdicts import (
    CHANGE,
    LIMIT,
    Alarm,
    Judged,
    LineBook,
    latest_alarm,
    still_outside,
)
from evenhand.watching.vocabulary import SERIES, Vocabulary, load_vocabulary

# Beyond this many streams only the most telling are drawn; results have all of them.
MOST_SERIES = 60
# Where an alarm stands.
OPEN, ANSWERED, STILL_OUTSIDE = "open", "answered", "answered, still outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Periods decided by one model, threshold and charter, one after another."""

    number: int
    mark: str
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAlarm:
    """An alarm of the store, as it looks now where nobody answered it or it is still outside.

    `outside` says that it was answered, and that its gap is outside its limit nevertheless.
    """

    stored: StoredAlarm
    key: StreamKey
    now: Alarm | None
    judged: Judged | None
    outside: bool = False

    @property
    def state(self) -> str:
        """Where it stands: open, answered, or answered and still outside its limit."""
        if self.stored.open:
            return OPEN
        return STILL_OUTSIDE if self.outside else ANSWERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at a store found."""

    periods: tuple[StoredPeriod, ...]
    states: tuple[State, ...]
    sequences: tuple[Run, ...]
    judged: tuple[Judged, ...]
    alarms: tuple[OpenAlarm, ...]
    histories: Mapping[str, History]
    roles: Roles
    places: tuple[int, ...]
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def verdict(self) -> str:
        """One verdict for all that is judged: an answer keeps nothing, nor do other words."""
        found = overall([one.verdict for one in self.judged]) if self.judged else NOT_ASSESSED
        if self.still_outside:
            return OUTSIDE
        return CANNOT_TELL if self.vocabulary.changes and found == WITHIN else found

    @property
    def stop(self) -> int | None:
        """The place from which nothing at all is judged, since the words changed."""
        return stop_of_all(self.vocabulary, self.roles)

    def own_places(self, attribute: str) -> tuple[int, ...]:
        """The places that comparisons by an attribute are judged at."""
        return before(self.vocabulary.stop(attribute_of(self.roles, attribute)), self.places)

    @property
    def open_alarms(self) -> list[OpenAlarm]:
        """The alarms that nobody has answered, the oldest first."""
        return [alarm for alarm in self.alarms if alarm.state == OPEN]

    @property
    def still_outside(self) -> list[OpenAlarm]:
        """The alarms that were answered and whose gaps are still outside their limits."""
        return [alarm for alarm in self.alarms if alarm.state == STILL_OUTSIDE]

    @property
    def exceeds(self) -> bool:
        """Whether something is outside its limit, an alarm is open or words changed."""
        changed = bool(self.vocabulary.changes)
        return changed or self.verdict == OUTSIDE or bool(self.open_alarms)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookQuestion:
    """What a look is asked: limits, measures, when periods are mature, how sequences are judged."""

    limits: tuple[Limit, ...] = ()
    measures: tuple[str, ...] = ()
    mature: int = 0
    as_of: date | None = None
    settings: Settings = field(default_factory=Settings)

    @property
    def fingerprint(self) -> str:
        """What past looks were asked: where it changes, they are looked at again."""
        facts = [repr(self.limits), self.measures, repr(replace(self.settings, series=0))]
        return sha256(json.dumps(facts).encode()).hexdigest()[:16]


def look_at(
    store: Store,
    question: LookQuestion,
    *,
    keep: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Look:
    """Judge what a store holds, and keep what is new of it: counts, lines, looks and alarms."""
    periods = store.periods()
    if not periods:
        return _nothing()
    found = states(
        [stored.period for stored in periods],
        first=min(stored.first for stored in periods),
        last=max(stored.last for stored in periods),
        mature=question.mature,
        as_of=question.as_of,
    )
    sequences = part_sequences(periods)
    if progress is not None:
        progress("counting")
    roles = store.tallies(periods[-1]).roles
    vocabulary, words = load_vocabulary(
        store, periods, [state.whole for state in found], [state.judged for state in found],
        sequences[-1].places,
    )  # fmt: skip
    places = tuple(p for p in sequences[-1].places if found[p].judged)
    places = before(stop_of_all(vocabulary, roles), places)
    histories, kept = _histories(store, periods, roles, vocabulary)
    kept[SERIES] = words
    watched, notes = choose_measures(
        question.limits,
        question.measures,
        has_truth=roles.truth is not None,
        has_pairs=bool(roles.counterfactual),
    )
    streams = _streams(histories, watched, roles, places, vocabulary)
    by_lens, told, settled = _lens_streams(store, periods, watched, roles, places, vocabulary)
    streams, kept = [*streams, *by_lens], {**kept, **told}
    book = LineBook(store.line)
    alarms = store.alarms()
    if progress is not None:
        progress("judging")
    looked = store.looked(question.fingerprint)
    tasks = _tasks(streams, periods, places, alarms, looked)
    judged = judge_all(tasks, question.settings, book)
    if keep:
        with store.writing():
            for name, contents in kept.items():
                store.keep_series(name, contents)
            store.keep_lines(book.new)
            store.settle(settled)
            _keep(store, judged, periods, places, alarms, question, looked, vocabulary)
    return Look(
        periods=tuple(periods),
        states=tuple(found),
        sequences=tuple(sequences),
        judged=tuple(judged),
        alarms=_alarms(store.alarms(), judged, periods, question.settings, places),
        histories=histories,
        roles=roles,
        places=places,
        vocabulary=vocabulary,
        notes=tuple(notes),
    )


def before(stop: int | None, places: Sequence[int]) -> tuple[int, ...]:
    """The places before one from which nothing is judged."""
    return tuple(p for p in places if stop is None or p < stop)


def stop_of_all(vocabulary: Vocabulary, roles: Roles) -> int | None:
    """The place from which nothing at all is judged: no attribute is left whose words stayed."""
    asked: list[Attribute | None] = list(roles.attributes)
    if roles.counterfactual or not asked:
        asked.append(None)
    stops = [vocabulary.stop(each) for each in asked]
    known = [stop for stop in stops if stop is not None]
    return max(known) if len(known) == len(stops) else None


def attribute_of(roles: Roles, name: str | None) -> Attribute | None:
    """The attribute of a name; None where there is none, as of pairs."""
    return next((each for each in roles.attributes if each.name == name), None)


def _nothing() -> Look:
    return Look(
        periods=(), states=(), sequences=(), judged=(), alarms=(), histories={}, roles=Roles(),
        places=(), notes=("The store holds no period yet.",),
    )  # fmt: skip


def part_sequences(periods: Sequence[StoredPeriod]) -> list[Run]:
    """Periods parted where the model, the threshold or the charter changed."""
    found: list[Run] = []
    for place, stored in enumerate(periods):
        if not found or stored.mark != found[-1].mark:
            found.append(Run(number=len(found) + 1, mark=stored.mark, places=(place,)))
        else:
            found[-1] = replace(found[-1], places=(*found[-1].places, place))
    return found


def _histories(
    store: Store, periods: Sequence[StoredPeriod], roles: Roles, vocabulary: Vocabulary
) -> tuple[dict[str, History], dict[str, dict[int, bytes]]]:
    """Counts by attribute, and under `pairs` those of counterfactual decisions.

    Where classes changed, periods from there on are not read: their words would be of others.
    """
    found: dict[str, History] = {}
    kept: dict[str, dict[int, bytes]] = {}
    stop = vocabulary.stop(None)
    classes = {name for own in vocabulary.classes[:stop] for name in own}
    known = {*classes, *roles.scores, *(("0", "1") if classes <= {"0", "1"} else ())}
    labels = classes
    if len(classes) == 2 and roles.positive is None:
        # Two words alone would need one that counts as positive; with a third they do not.
        labels = labels if classes == {"0", "1"} else {n for own in vocabulary.classes for n in own}
    for attribute in roles.attributes if roles.rule is not None else ():
        name = f"counts/{attribute.name}"
        held = {k: PeriodCounts.unpacked(content) for k, content in store.series(name).items()}
        history, kept[name] = load_history(
            store, periods, held, _reader(attribute, sorted(labels)), stop=stop, known=known
        )
        if history is not None:
            found[attribute.name] = history
    if roles.counterfactual:
        paired = _paired_attribute(roles)
        held = {k: PeriodCounts.unpacked(content) for k, content in store.series("pairs").items()}
        history, kept["pairs"] = load_history(
            store, periods, held, lambda tallies: read_pairs(tallies, paired), stop=stop
        )
        if history is not None:
            found["pairs"] = history
    return found, kept


def _reader(attribute: Attribute, labels: Sequence[str]) -> Callable[[Any], Any]:
    return lambda tallies: read_counts(tallies, attribute, labels=labels)


def _paired_attribute(roles: Roles) -> Attribute | None:
    """The attribute whose values decisions were made under, where one is named."""
    alone = [attribute for attribute in roles.attributes if len(attribute.columns) == 1]
    return alone[0] if alone else None


def _streams(
    histories: Mapping[str, History],
    watched: Sequence[Watched],
    roles: Roles,
    places: Sequence[int],
    vocabulary: Vocabulary,
) -> list[Stream]:
    found: list[Stream] = []
    for name, history in histories.items():
        stop = vocabulary.stop(attribute_of(roles, name))
        own = before(stop, places)
        if name == "pairs":
            attribute = _paired_attribute(roles)
            named = attribute.name if attribute else None
            streams = pair_streams(history, watched, attribute=named, places=own)
        else:
            streams = rate_streams(history, watched, attribute=name, roles=roles, places=own)
        found += streams if stop is None else [replace(each, stopped=True) for each in streams]
    return found


def _lens_streams(
    store: Store,
    periods: Sequence[StoredPeriod],
    watched: Sequence[Watched],
    roles: Roles,
    places: Sequence[int],
    vocabulary: Vocabulary,
) -> tuple[list[Stream], dict[str, dict[int, bytes]], dict[str, Any]]:
    """Streams of what lenses say, by attribute as far as its words stayed what they were."""
    streams: list[Stream] = []
    kept: dict[str, dict[int, bytes]] = {}
    settled: dict[str, Any] = {}
    stops = {each.name: vocabulary.stop(each) for each in roles.attributes}
    for stop in sorted(set(stops.values()), key=lambda place: (place is not None, place)):
        found, new, facts = lens_streams(store, periods, watched, roles, before(stop, places))
        for name, contents in new.items():
            kept.setdefault(name, {}).update(contents)
        settled = facts | settled
        mine = [each for each in found if stops.get(str(each.key.attribute)) == stop]
        streams += mine if stop is None else [replace(each, stopped=True) for each in mine]
    return streams, kept, settled


def _tasks(
    streams: Sequence[Stream],
    periods: Sequence[StoredPeriod],
    places: Sequence[int],
    alarms: Sequence[StoredAlarm],
    looked: set[int],
) -> list[StreamTask]:
    """What is asked of streams: from where on detectors look, and at which looks."""
    by_stream: dict[str, list[StoredAlarm]] = {}
    for alarm in alarms:
        by_stream.setdefault(alarm.stream, []).append(alarm)
    numbers = [stored.period.number for stored in periods]
    new = [stored.id not in looked for stored in periods]
    first = numbers[places[0]] if places else 0

    # Most streams have the same places, once: told apart by what they are, not by what they hold.
    columns: dict[tuple[int, int], tuple[int, int]] = {}
    found = []
    for stream in streams:
        mine = by_stream.get(stream.key.text, []) if by_stream else []
        begins = start_of(periods, places, mine)
        name = (id(stream.places), begins)
        if name not in columns:
            columns[name] = _columns(stream.places, begins, numbers, new)
        start, since = columns[name]
        # An alarm that nobody has answered says it already, also where another answer let
        # detectors begin again.
        silent = {
            alarm.detector
            for alarm in mine
            if alarm.start == begins or (alarm.open and alarm.start >= first)
        }
        detectors = tuple(each for each in (CHANGE, LIMIT) if each not in silent)
        found.append(StreamTask(stream=stream, start=start, since=since, detectors=detectors))
    return found


def _columns(
    ends: Sequence[int], begins: int, numbers: Sequence[int], new: Sequence[bool]
) -> tuple[int, int]:
    """The column from which detectors look, and that of the first look that is new."""
    start = next((i for i, place in enumerate(ends) if numbers[place] >= begins), 0)
    return start, next((i for i, place in enumerate(ends) if new[place]), len(ends))


def start_of(
    periods: Sequence[StoredPeriod], places: Sequence[int], alarms: Sequence[StoredAlarm]
) -> int:
    """The period from which detectors look: the sequence's first, or where an answer let them.

    `alarms` are those of the stream.
    """
    first = periods[places[0]].period.number
    answered = [alarm.onset for alarm in alarms if not alarm.open and alarm.start >= first]
    return max([first, *answered])


def _keep(
    store: Store,
    judged: Sequence[Judged],
    periods: Sequence[StoredPeriod],
    places: Sequence[int],
    alarms: Sequence[StoredAlarm],
    question: LookQuestion,
    looked: set[int],
    vocabulary: Vocabulary,
) -> None:
    verdict = overall([one.verdict for one in judged]) if judged else NOT_ASSESSED
    stop = min((change.noticed for change in vocabulary.changes), default=None)
    for place in before(stop, places):
        # Where words changed, periods are looked at again once they fit.
        if periods[place].id in looked:
            continue
        last = place == places[-1]
        document = judgement(judged, question) if last else {}
        store.judge(periods[place], question.fingerprint, verdict if last else "", document)
    raised = [(_number(alarm.raised, one, periods), one, alarm)
              for one in judged for alarm in one.alarms]  # fmt: skip
    # In the order in which periods one by one would have raised them.
    for number, one, alarm in sorted(raised, key=lambda found: found[0]):
        mine = [held for held in alarms if held.stream == one.stream.key.text]
        store.raise_alarm(
            stream=one.stream.key.text,
            detector=alarm.detector,
            start=start_of(periods, places, mine),
            raised=number,
            onset=_number(alarm.onset, one, periods),
            document=alarm_document(alarm, one, periods),
        )


def judgement(judged: Sequence[Judged], question: LookQuestion) -> dict[str, Any]:
    """What a look found, as it is kept: how many of each verdict, and what is outside."""
    outside = [
        {**asdict(one.stream.key), "value": float(one.stream.shown(one.numbers.value[-1])),
         "low": float(one.stream.shown(one.family_low[-1])),
         "high": float(one.stream.shown(one.family_high[-1]))}
        for one in judged if one.verdict == OUTSIDE
    ]  # fmt: skip
    return {
        "limits": [
            [b.measure, *(end if isfinite(end) else None for end in (b.low, b.high)), b.group,
             b.attribute] for b in question.limits
        ],
        "level": question.settings.level,
        "verdicts": dict(Counter(one.verdict for one in judged)),
        "outside": outside[:MOST_SERIES],
    }  # fmt: skip


def _number(column: int, judged: Judged, periods: Sequence[StoredPeriod]) -> int:
    return periods[judged.stream.places[column]].period.number


def alarm_document(alarm: Alarm, judged: Judged, periods: Sequence[StoredPeriod]) -> dict[str, Any]:
    """An alarm as plain values."""

    def named(column: int) -> str:
        return periods[judged.stream.places[column]].period.name

    key = judged.stream.key
    half = critical(0.95) * alarm.after_error
    sizes = {
        "size": alarm.size, "low": alarm.low, "high": alarm.high, "before": alarm.before,
        "after": alarm.after, "after_low": alarm.after - half, "after_high": alarm.after + half,
    }  # fmt: skip
    return {
        "measure": key.measure, "class": key.class_, "attribute": key.attribute,
        "group": key.group, "reference": key.reference, "detector": alarm.detector,
        "raised": named(alarm.raised), "onset": named(alarm.onset),
        "onset_low": named(alarm.onset_low), "onset_high": named(alarm.onset_high),
        "certainty": alarm.sure,
        **{k: None if v is None else float(judged.stream.shown(v)) for k, v in sizes.items()},
    }  # fmt: skip


def _alarms(
    stored: Sequence[StoredAlarm],
    judged: Sequence[Judged],
    periods: Sequence[StoredPeriod],
    settings: Settings,
    places: Sequence[int],
) -> tuple[OpenAlarm, ...]:
    first = periods[places[0]].period.number if places else 0
    by_key = {one.stream.key.text: one for one in judged} if stored else {}
    found = []
    for alarm in stored:
        one = by_key.get(alarm.stream)
        now, outside = None, False
        # An alarm of a sequence that was closed stays as it was raised.
        if one is not None and alarm.start >= first:
            now, outside = _as_it_looks(alarm, one, periods, settings)
        found.append(
            OpenAlarm(
                stored=alarm, key=StreamKey.of(alarm.stream), now=now, judged=one, outside=outside
            )
        )
    return tuple(found)


def _as_it_looks(
    alarm: StoredAlarm, one: Judged, periods: Sequence[StoredPeriod], settings: Settings
) -> tuple[Alarm | None, bool]:
    """An alarm as it looks now, and whether it was answered and is still outside its limit.

    One that was answered and is not outside stays as it was raised.
    """
    numbers = [periods[place].period.number for place in one.stream.places]

    def column(number: int) -> int | None:
        return next((i for i, each in enumerate(numbers) if each >= number), None)

    start, onset, raised = (column(n) for n in (alarm.start, alarm.onset, alarm.raised))
    if start is None or onset is None or len(numbers) - start <= BURN_IN:
        return None, False
    if alarm.detector == LIMIT and one.stream.band is None:
        return None, False
    outside = not alarm.open and still_outside(one, start=start, onset=onset, settings=settings)
    if not alarm.open and not outside:
        return None, False
    now = latest_alarm(alarm.detector, one.stream, one.numbers, start=start, settings=settings)
    return replace(now, raised=now.raised if raised is None else raised), outside
