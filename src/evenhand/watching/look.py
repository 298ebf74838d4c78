"""A look at a store: its periods parted into sequences, the last one judged, alarms raised."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from hashlib import sha256
from math import isfinite
from typing import Any

import numpy as np

from evenhand.decisions.labels import excepted
from evenhand.decisions.roles import Attribute, Roles
from evenhand.findings.limits import NOT_ASSESSED, OUTSIDE, Limit, overall
from evenhand.lenses.rows import Rows
from evenhand.lenses.scope import rule_name
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.sequential import BURN_IN, half_width
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
    class_labels,
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
)

# Beyond this many streams only the most telling are drawn; results have all of them.
MOST_SERIES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Periods decided by one model, threshold and charter, one after another."""

    number: int
    mark: str
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAlarm:
    """An alarm of the store, as it looks now where nobody answered it yet."""

    stored: StoredAlarm
    key: StreamKey
    now: Alarm | None
    judged: Judged | None


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
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def verdict(self) -> str:
        """One verdict for all that is judged."""
        return overall([one.verdict for one in self.judged]) if self.judged else NOT_ASSESSED

    @property
    def open_alarms(self) -> list[OpenAlarm]:
        """The alarms that nobody has answered, the oldest first."""
        return [alarm for alarm in self.alarms if alarm.stored.open]

    @property
    def exceeds(self) -> bool:
        """Whether something is outside its limit or an alarm is open."""
        return self.verdict == OUTSIDE or bool(self.open_alarms)


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
    places = tuple(p for p in sequences[-1].places if found[p].judged)
    if progress is not None:
        progress("counting")
    roles = store.tallies(periods[-1]).roles
    histories, kept = _histories(store, periods, roles)
    watched, notes = choose_measures(
        question.limits,
        question.measures,
        has_truth=roles.truth is not None,
        has_pairs=bool(roles.counterfactual),
    )
    streams = _streams(histories, watched, roles, places)
    by_lens, told, settled = lens_streams(store, periods, watched, roles, places)
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
            _keep(store, judged, periods, places, alarms, question, looked)
    return Look(
        periods=tuple(periods),
        states=tuple(found),
        sequences=tuple(sequences),
        judged=tuple(judged),
        alarms=_alarms(store.alarms(), judged, periods, question.settings, places),
        histories=histories,
        roles=roles,
        places=places,
        notes=tuple(notes),
    )


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
    store: Store, periods: Sequence[StoredPeriod], roles: Roles
) -> tuple[dict[str, History], dict[str, dict[int, bytes]]]:
    """Counts by attribute, and under `pairs` those of counterfactual decisions."""
    found: dict[str, History] = {}
    kept: dict[str, dict[int, bytes]] = {}
    for attribute in roles.attributes if roles.rule is not None else ():
        name = f"counts/{attribute.name}"
        held = {k: PeriodCounts.unpacked(content) for k, content in store.series(name).items()}
        new = [stored for stored in periods if stored.id not in held]
        labels = class_labels(store.tallies(stored) for stored in new)
        for cells in held.values():
            labels.update(c for c in cells.classes if excepted(c) is None)
        history, kept[name] = load_history(store, periods, held, _reader(attribute, sorted(labels)))
        if history is not None:
            found[attribute.name] = history
    if roles.counterfactual:
        paired = _paired_attribute(roles)
        held = {k: PeriodCounts.unpacked(content) for k, content in store.series("pairs").items()}
        history, kept["pairs"] = load_history(
            store, periods, held, lambda tallies: read_pairs(tallies, paired)
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
) -> list[Stream]:
    found: list[Stream] = []
    for name, history in histories.items():
        if name == "pairs":
            attribute = _paired_attribute(roles)
            named = attribute.name if attribute else None
            found += pair_streams(history, watched, attribute=named, places=places)
        else:
            found += rate_streams(history, watched, attribute=name, roles=roles, places=places)
    return found


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
) -> None:
    verdict = overall([one.verdict for one in judged]) if judged else NOT_ASSESSED
    for place in places:
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
        now = None
        watched = one is not None and (alarm.detector != LIMIT or one.stream.band)
        # An alarm of a sequence that was closed stays as it was raised.
        if one is not None and watched and alarm.open and alarm.start >= first:
            numbers = [periods[place].period.number for place in one.stream.places]
            start = next((i for i, number in enumerate(numbers) if number >= alarm.start), None)
            if start is not None and len(numbers) - start > BURN_IN:
                now = latest_alarm(
                    alarm.detector, one.stream, one.numbers, start=start, settings=settings
                )
                raised = next((i for i, n in enumerate(numbers) if n >= alarm.raised), now.raised)
                now = replace(now, raised=raised)
        found.append(OpenAlarm(stored=alarm, key=StreamKey.of(alarm.stream), now=now, judged=one))
    return tuple(found)


def result_rows(look: Look, settings: Settings) -> Rows:
    """The result row of every stream at the last look: the average so far and its sequence."""
    many = len(look.judged)
    if not many:
        return Rows.block((0,))
    keys = [one.stream.key for one in look.judged]
    names = {end: look.periods[end].period.name for end in {_end(one) for one in look.judged}}
    n, n_reference = np.array([_cases(one.stream) for one in look.judged]).T
    bands = np.array([one.stream.band or (np.nan, np.nan) for one in look.judged])
    value, low, high, family_low, family_high = _last_look(look.judged)
    shown = partial(_shown, [one.stream.logarithmic for one in look.judged])
    return Rows.block(
        (many,), lens=[key.lens for key in keys], measure=[key.measure for key in keys],
        attribute=[key.attribute for key in keys], group=[key.group for key in keys],
        reference=[key.reference for key in keys], value=shown(value), low=shown(low),
        high=shown(high), level=settings.level, family_low=shown(family_low),
        family_high=shown(family_high), n=n, n_reference=n_reference,
        period=[names[_end(one)] for one in look.judged],
        method=[one.method for one in look.judged], rule=rule_name(look.roles),
        limit_low=shown(bands[:, 0]), limit_high=shown(bands[:, 1]),
        verdict=[one.verdict for one in look.judged], **{"class": [key.class_ for key in keys]},
    )  # fmt: skip


def _end(one: Judged) -> int:
    return one.stream.places[-1]


def _cases(stream: Stream) -> tuple[float, float]:
    """Cases of the group and of the reference over all periods; NaN where there is no second."""
    if stream.whole:
        return stream.whole[2], stream.whole[3] or np.nan
    first, second = stream.sizes
    return float(first.sum()), np.nan if second is None else float(second.sum())


def _last_look(judged: Sequence[Judged]) -> list[FloatArray]:
    """Value, sequence and family's sequence of streams at the last look."""
    value, error, tau = np.array(
        [(one.numbers.value[-1], one.numbers.error[-1], one.numbers.tau) for one in judged]
    ).T
    found = [value]
    for alpha in (judged[0].alpha, judged[0].alpha / judged[0].members):
        half = half_width(error, tau=tau, alpha=alpha)
        found += [value - half, value + half]
    return found


def _shown(logarithmic: Sequence[bool], values: FloatArray) -> FloatArray:
    """Values on the scale on which people see them."""
    return np.where(logarithmic, np.exp(np.where(logarithmic, values, 0.0)), values)


def shown_series(look: Look) -> list[dict[str, Any]]:
    """The streams that are drawn: those with an alarm, and the widest apart of the others."""
    names = [stored.period.name for stored in look.periods]
    chosen: Sequence[Judged] = look.judged
    if len(chosen) > MOST_SERIES:
        alarmed = {alarm.stored.stream for alarm in look.open_alarms}
        value, _, _, low, high = _last_look(chosen)
        apart = np.abs(value) / np.maximum(high - low, 1e-12)
        open_ = np.array([bool(alarmed) and one.stream.key.text in alarmed for one in chosen])
        order = np.lexsort((-apart, ~open_))[:MOST_SERIES]
        chosen = [chosen[i] for i in order]
    return [series_of(one, names) for one in chosen]


def series_of(one: Judged, names: Sequence[str]) -> dict[str, Any]:
    """A stream's numbers by period, as the page draws them; `names` are of all periods."""
    first, second = one.stream.sizes
    n = first if second is None else first + second
    shown = one.stream.shown

    def plain(values: FloatArray) -> list[float | None]:
        numbers: list[float | None] = values.tolist()
        for place in np.flatnonzero(~np.isfinite(values)).tolist():
            numbers[place] = None
        return numbers

    key = one.stream.key
    return {
        "lens": key.lens, "measure": key.measure, "class": key.class_,
        "attribute": key.attribute, "group": key.group, "reference": key.reference,
        "periods": [names[place] for place in one.stream.places],
        "gap": plain(shown(one.numbers.gaps)), "n": plain(n),
        "value": plain(shown(one.numbers.value)),
        "low": plain(shown(one.family_low)), "high": plain(shown(one.family_high)),
        "ready": one.numbers.ready.tolist(),
        "limit": [float(shown(end)) for end in one.stream.band] if one.stream.band else None,
        "verdict": one.verdict, "provisional": one.provisional,
    }  # fmt: skip
