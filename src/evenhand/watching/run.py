"""Watching: periods added to a store, the whole sequence judged, and what moved explained."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Unpack

from evenhand import __version__
from evenhand.charter.charter import Charter
from evenhand.decisions.keywords import TableArguments, describe_roles
from evenhand.decisions.roles import Roles
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallied import find_tallies, of_classes
from evenhand.decisions.tallies.by_period import tally_periods
from evenhand.decisions.tallies.privacy import keep_key, own_key
from evenhand.decisions.tallies.sets import Tallies
from evenhand.decisions.times import check_every, read_zone, today
from evenhand.errors import UsageError
from evenhand.files.documents import sealed
from evenhand.findings.charter import charter_limits, the_charter, with_charter
from evenhand.findings.limits import Limit, read_limits
from evenhand.findings.registry import LENSES, choose_lenses
from evenhand.findings.run import with_roles
from evenhand.findings.sentences.words import Words
from evenhand.findings.tallying import lens_needs
from evenhand.lenses.rows import Rows
from evenhand.speech import agree, count_words, opening, plural
from evenhand.watching.causes import explain
from evenhand.watching.look import Look, LookQuestion, look_at
from evenhand.watching.numbers import ESTIMATED, NONE, Settings
from evenhand.watching.periods import (
    Period,
    check_apart,
    check_repeats,
    period_of_file,
    read_day,
    read_duration,
    read_period,
)
from evenhand.watching.plain import result_rows, shown_periods, shown_series
from evenhand.watching.sentences import (
    alarm_detail,
    alarm_headline,
    answer_words,
    current,
    headline,
    movements,
    summary,
    tag,
    what_to_do,
    words_step,
)
from evenhand.watching.store import (
    FILE,
    KEY,
    NewPeriod,
    Store,
    differs,
)
from evenhand.watching.streams import check_measures
from evenhand.watching.unknowns import unknowns
from evenhand.watching.vocabulary import plain_change

SCHEMA = "evenhand.watch/1"
# Ranks do not merge, so norms are not watched.
WATCHED_LENSES = tuple(name for name in LENSES if name != "norms")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Watch:
    """What a look at a store found: one versioned document, and how it shows itself.

    Attributes:
        rows: The result row of every comparison at the last look.
        document: Everything as plain values: periods, results, alarms, causes, sentences.
    """

    rows: Rows
    document: dict[str, Any]

    @property
    def verdict(self) -> str:
        """Outside, cannot tell, within or not assessed: of the average so far."""
        return str(self.document["verdict"])

    @property
    def alarms(self) -> list[dict[str, Any]]:
        """Every alarm, the oldest first; those nobody answered have `by` None."""
        return list(self.document["alarms"])

    @property
    def is_outside(self) -> bool:
        """Whether something is outside its limit, an alarm is open or words changed: exit 1."""
        return bool(self.document["exceeds"])

    @property
    def sentence(self) -> str:
        """What leads, and what is to be done where words changed."""
        parts = (f"{self.document['tag']}: {self.document['headline']}", self.document["next"])
        return " ".join(filter(None, parts))

    def record(self) -> dict[str, Any]:
        """The whole look as one plain document."""
        return self.document

    def to_json(self) -> str:
        """The document as JSON."""
        text = json.dumps(self.document, ensure_ascii=False, indent=1, allow_nan=False)
        return sealed(text)

    def to_frame(self) -> Any:
        """The result rows as a Polars data frame."""
        return self.rows.to_frame()

    def __repr__(self) -> str:
        return f"<Watch of {self.document['data']['store']}: {self.sentence}>"

    def __str__(self) -> str:
        from evenhand.report.watch import as_watch_text

        return as_watch_text(self.document)

    def _repr_html_(self) -> str:
        from evenhand.report.watch import as_watch_fragment

        return as_watch_fragment(self.document)

    def save(self, path: str | Path) -> None:
        """Write the look as the ending of the file's name says: .html, .json, .md or .xml."""
        from evenhand.report.watch import save_watch

        save_watch(self.document, path)


@describe_roles
def watch(
    store: str | Path,
    decisions: Decisions | Any = None,
    *,
    every: str | None = None,
    tz: str | None = None,
    period: str | date | None = None,
    limits: Mapping[str, Any] | None = None,
    measures: Iterable[str] | None = None,
    charter: Charter | str | Path | None = None,
    mature: str | None = None,
    horizon: int | None = None,
    as_of: str | date | None = None,
    since: str | date | None = None,
    model_version: str | None = None,
    between: str | None = None,
    replace: bool = False,
    level: float | None = None,
    seed: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **roles: Unpack[TableArguments],
) -> Watch:
    """Add periods to a store and judge the whole sequence: is it still so, since when, and why.

    What is not given is as it was at the last run; without data the store is reported.

    Args:
        store: A folder of its own; it is made by the first run and holds nobody's row.
        decisions: The table and the roles of its columns, a table with the roles named here, or
            tally sets, each of one period.
        every: How long a period is: day, week, month, quarter or year.
        tz: Where days begin and end; needed where times are UTC or say their zone.
        period: The period of a tally set, by its name or a day in it.
        limits: Bands agreed on, such as `{"true_positive_rate_gap": 0.05}`.
        measures: Measures to watch beside those that have a limit.
        charter: The trade-offs chosen, or the file that holds them.
        mature: How long labels take to arrive, such as `4w`.
        horizon: For how many periods alarms are planned; without one they may go on for ever.
        as_of: The day to which the data reach.
        since: Say what moved every gap from before this period to what followed.
        model_version: Which model decided; another one begins a new sequence.
        between: `none` where a gap does not vary between periods beyond its sampling.
        replace: Replace judged periods, which are kept as revisions.
        level: Of every sequence and detector, over all looks and comparisons together; .95
            where no run has said another.
        seed: Seed of everything drawn, 0 at first.
        arguments: What the caller wants recorded as the command that made this.
        progress: Called with what is being done.
        roles: What each column is for, by the keywords below, where a table is given.
    """
    if between not in (None, ESTIMATED, NONE):
        raise UsageError(f"between={between!r} is not known. Choose {ESTIMATED} or {NONE}.")
    if horizon is not None and horizon < 9:
        raise UsageError(f"horizon={horizon} is too short: detectors begin at the ninth period.")
    if level is not None and not 0.5 <= level < 1:
        raise UsageError(f"level={level!r} is not a confidence level. Choose one such as 0.95.")
    check_measures(measures or ())
    check_repeats(roles.get("cluster"))
    read_duration(mature)
    chartered = the_charter(charter)
    until = read_day(as_of, what="as_of")
    if progress is not None:
        progress("reading")
    about, last = _kept(store) if decisions is not None else ({}, {})
    mark = _mark(model_version, chartered, last.get("mark") or {})
    new, missing, key = _new_periods(
        store, decisions, {**_kept_roles(about, last), **_given(roles)}, chartered,
        every=every or about.get("every"), tz=tz or about.get("tz"), period=period,
        as_of=until, mark=mark,
    ) if decisions is not None else ([], 0, b"")  # fmt: skip
    with Store.open(store, create=decisions is not None) as opened:
        check_store(opened)
        if new:
            if keep_key(Path(store) / KEY, key) != key:
                raise UsageError(f"Another run made the store '{store}' just now. Try again.")
            with opened.writing():
                opened.set_about(
                    every=new[0].period.every, tz=tz or about.get("tz"),
                    roles=_all_roles(new[0].tallies, roles, about),
                )  # fmt: skip
                opened.add(new, replace=replace)
        if decisions is None:
            _check_report(
                opened, {"every": every, "tz": tz, **roles}, period=period, replace=replace
            )
        asked = _asked(
            opened.settings, limits=limits, measures=measures, charter=chartered, mature=mature,
            horizon=horizon, between=between, level=level, seed=seed,
            as_of=None if until is None else until.isoformat(),
            **_decided_by(new, mark),
        )  # fmt: skip
        question = _question(asked)
        with opened.writing():
            opened.set_settings(asked)
        look = look_at(opened, question, progress=progress)
        rows = result_rows(look, question.settings)
        words = _words(look, rows, asked)
        first = _first_period(since, look)
        causes = explain(opened, look, words, since=first, seed=asked["seed"])
        document = _document(
            opened, look, rows, causes, words, asked, missing=missing, arguments=arguments
        )
    return Watch(rows=rows, document=document)


def _kept(store: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a store was made with, and what it was last asked; nothing where there is none yet."""
    if not (Path(store) / FILE).is_file():
        return {}, {}
    # A first run that ended before it wrote anything is as good as none.
    with Store.open(store, create=True) as opened:
        check_store(opened)
        return opened.about, opened.settings


def check_store(store: Store) -> None:
    """Refuse a store whose rows repeat the same people."""
    check_repeats((store.about.get("roles") or {}).get("cluster"), made=store.path)


def _decided_by(new: Sequence[NewPeriod], mark: Mapping[str, Any]) -> dict[str, Any]:
    """By which model, charter and threshold new periods were decided: later ones are, too."""
    if not new:
        return {"mark": None, "threshold": None}
    cut = new[-1].tallies.roles.threshold
    return {"mark": dict(mark), "threshold": None if isinstance(cut, str) else cut}


def _check_report(
    store: Store, given: Mapping[str, Any], *, period: str | date | None, replace: bool
) -> None:
    """Refuse what a run without data cannot do, and what the store is not of."""
    if replace or period is not None:
        what = "replace" if replace else "period"
        raise UsageError(f"{what} is about data, and none are given. Name them after the store.")
    held = {**store.about, **(store.about.get("roles") or {})}
    known = {"every", "tz", *(each.name for each in fields(Roles))}
    for name, value in given.items():
        if name not in known:
            continue
        mine = held.get(name)
        told = [value] if isinstance(mine, list) and isinstance(value, str) else value
        told = list(told) if isinstance(told, tuple) else told
        if isinstance(told, str | list) and isinstance(mine, str | list | None) and told != mine:
            raise differs(store.path, name, mine, told)


def _first_period(since: str | date | None, look: Look) -> int | None:
    """The number of the period from which on a movement is explained."""
    if since is None or not look.places:
        return None
    every = look.periods[0].period.every
    found = read_period(since, every=every)
    if found is None:
        raise UsageError(f"since={since!r} is not a {every}, nor a day in one.")
    judged = [look.periods[place].period for place in look.places]
    if not judged[0].number < found.number <= judged[-1].number:
        raise UsageError(
            f"since={since!r} has no {every} that is judged on both sides of it: they go from "
            f"{judged[0].name} to {judged[-1].name}."
        )
    return found.number


def _given(roles: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in roles.items() if value is not None}


def _kept_roles(about: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """The roles that a store was made with, for a run that names none; the last threshold."""
    held = dict(about.get("roles") or {})
    if last.get("threshold") is not None:
        held["threshold"] = last["threshold"]
    if held.get("rule"):
        # What follows from other roles by itself is not given again.
        held.pop("rule") if held["rule"] in ("given", "score>=t", "argmax") else None
    return held


def _all_roles(
    tallies: Tallies, roles: Mapping[str, Any], about: Mapping[str, Any]
) -> dict[str, Any]:
    """The roles of a tally set, and the column that said when."""
    time = roles.get("time") or (about.get("roles") or {}).get("time")
    # The time names rows, and not what is counted: sets of one store may differ in it.
    held = {name: value for name, value in tallies.roles.used().items() if name != "time"}
    return held | ({"time": time} if time else {})


def _mark(
    model_version: str | None, charter: Charter | None, last: Mapping[str, Any]
) -> dict[str, Any]:
    """Which model and which bands of a charter; what is not given is as at the last run."""
    bands = [repr(limit) for limit in charter_limits(charter)] if charter is not None else None
    return {
        "model": last.get("model") if model_version is None else model_version,
        "charter": last.get("charter") if bands is None else bands,
    }


def _marked(mark: Mapping[str, Any], tallies: Tallies) -> str:
    """By which model, threshold and charter a period was decided, as one short text."""
    cut = tallies.roles.threshold
    facts = {**mark, "threshold": None if isinstance(cut, str) else cut}
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _new_periods(
    store: str | Path,
    given: Any,
    roles: dict[str, Any],
    charter: Charter | None,
    *,
    every: str | None,
    tz: str | None,
    period: str | date | None,
    as_of: date | None,
    mark: Mapping[str, Any],
) -> tuple[list[NewPeriod], int, bytes]:
    """The periods that somebody gives, how many rows have no time, and the store's secret."""
    key = own_key(Path(store) / KEY)
    if every is None:
        raise UsageError("Say how long a period is: every='week' (--every week).")
    check_every(every)
    read_zone(tz)
    sets = _tally_sets(given, every=every, period=period)
    if sets is not None:
        check_apart(each for each, _ in sets)
        sets = [(each, of_classes(one, classes=bool(roles.get("classes")))) for each, one in sets]
        return [
            NewPeriod(
                period=each, first=each.start, last=each.end, tallies=tallies,
                mark=_marked(mark, tallies),
            )
            for each, tallies in sets
        ], 0, key  # fmt: skip
    table = given if isinstance(given, Decisions) else with_roles(given, roles, charter)
    table = with_charter(table, charter)
    check_repeats(table.roles.cluster)
    chosen = [name for name in choose_lenses(table, None) if name in WATCHED_LENSES]
    table.check()
    found, missing = tally_periods(
        table, lens_needs(table, chosen), every=every, tz=tz,
        latest=as_of if as_of is not None else today(), key=key,
    )  # fmt: skip
    return [
        NewPeriod(
            period=Period(every=every, number=span.number), first=span.first, last=span.last,
            tallies=tallies, mark=_marked(mark, tallies),
        )
        for span, tallies in found
    ], missing, key  # fmt: skip


def _tally_sets(
    given: Any, *, every: str, period: str | date | None
) -> list[tuple[Period, Tallies]] | None:
    """Tally sets with the period of each; None where a table is given."""
    several = list(given) if isinstance(given, list | tuple) else [given]
    if find_tallies(several[0]) is None:
        return None
    if period is not None:
        named = read_period(period, every=every)
        if named is None:
            raise UsageError(f"period={period!r} is not a {every}, nor a day in one.")
        merged = find_tallies(several)
        assert merged is not None
        check_repeats(merged.roles.cluster, made=_source(several[0], merged))
        return [(named, merged)]
    found = []
    for each in several:
        tallies = find_tallies(each)
        if tallies is None:
            raise UsageError(f"'{each}' is no tally set and others are. Give one kind.")
        source = _source(each, tallies)
        check_repeats(tallies.roles.cluster, made=source)
        found.append((period_of_file(source, every=every), tallies))
    return found


def _source(given: Any, tallies: Tallies) -> Any:
    """How messages call a tally set: its file, or what it was made of."""
    return tallies.source if isinstance(given, Tallies) else given


def _asked(
    kept: Mapping[str, Any],
    *,
    limits: Mapping[str, Any] | None,
    measures: Iterable[str] | None,
    charter: Charter | None,
    **single: Any,
) -> dict[str, Any]:
    """What a run is asked, as plain values: what it says, else what the last one said."""
    asked: dict[str, Any] = {}
    bands = [*charter_limits(charter), *read_limits(limits)]
    plain = [
        {"measure": b.measure, "low": _finite(b.low), "high": _finite(b.high), "group": b.group,
         "attribute": b.attribute}
        for b in bands
    ]  # fmt: skip
    told = charter is not None or limits is not None
    asked["limits"] = plain if told else kept.get("limits", [])
    asked["charter"] = charter.plain() if charter is not None else kept.get("charter")
    asked["measures"] = list(measures) if measures is not None else kept.get("measures", [])
    usual = {"level": 0.95, "seed": 0}
    for name in ("mature", "horizon", "between", "as_of", "mark", "threshold", "level", "seed"):
        said = single[name] if single[name] is not None else kept.get(name)
        asked[name] = usual.get(name) if said is None else said
    return json.loads(json.dumps(asked, default=str))  # type: ignore[no-any-return]


def _finite(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None


def _question(asked: Mapping[str, Any]) -> LookQuestion:
    limits = tuple(
        Limit(
            measure=b["measure"],
            low=float("nan") if b["low"] is None else b["low"],
            high=float("nan") if b["high"] is None else b["high"],
            group=b["group"],
            attribute=b["attribute"],
        )
        for b in asked["limits"]
    )
    return LookQuestion(
        limits=limits,
        measures=tuple(asked["measures"]),
        mature=read_duration(asked["mature"]),
        as_of=read_day(asked["as_of"], what="as_of"),
        settings=Settings(
            level=asked["level"],
            horizon=asked["horizon"],
            between=asked["between"] or ESTIMATED,
            seed=asked["seed"],
        ),
    )


def _words(look: Look, rows: Rows, asked: Mapping[str, Any]) -> Words:
    """The words of a look: the charter's, and what the data call things."""
    positive = next((h.positive for h in look.histories.values() if h.positive), None)
    return Words.of(
        charter=asked["charter"],
        roles={"positive_is": look.roles.positive_is},
        details={"statistical": {"positive": positive}},
        groups=zip(rows["attribute"], rows["group"]),
    )


def _document(
    store: Store,
    look: Look,
    rows: Rows,
    causes: list[dict[str, Any]],
    words: Words,
    asked: Mapping[str, Any],
    *,
    missing: int,
    arguments: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The look as one plain document."""
    results = rows.results()
    notes = [*look.notes, *unknowns(look, _question(asked))]
    if missing:
        notes.append(
            f"{plural(missing, 'row')} without a time {agree(missing, 'belongs', 'belong')} to no "
            f"period and {agree(missing, 'was', 'were')} left out."
        )
    replaced = store.revisions()
    if replaced:
        were, kept = agree(replaced, "was", "were"), agree(replaced, "one is", "ones are")
        many = opening(count_words(replaced))
        what = agree(replaced, "period", "periods")
        notes.append(f"{many} judged {what} {were} replaced; the old {kept} kept.")
    return {
        "schema": SCHEMA,
        "made": {
            "at": datetime.now(UTC).isoformat(timespec="seconds"), "version": __version__,
            "level": asked["level"], "seed": asked["seed"], "arguments": dict(arguments or {}),
        },
        "data": {
            "store": str(store.path), **{k: v for k, v in store.about.items() if k != "schema"},
            "rows": sum(stored.rows for stored in look.periods), "without_time": missing,
        },
        "charter": asked["charter"],
        "settings": {k: v for k, v in asked.items() if k not in ("charter", "mark", "threshold")},
        "periods": shown_periods(look),
        "results": results,
        "alarms": _spoken(store, look, causes, words),
        "causes": causes,
        "movements": movements(causes, words),
        "series": shown_series(look),
        "sequences": len(look.sequences),
        "word_changes": [
            plain_change(change, look.roles.attributes, lambda p: look.periods[p].period.name)
            for change in look.vocabulary.changes
        ],
        "notes": notes,
        "tag": tag(look),
        "headline": headline(look, results, words),
        "next": words_step(look),
        "summary": summary(look),
        "verdict": look.verdict,
        "exceeds": look.exceeds,
    }  # fmt: skip


def spoken_alarms(store: Store) -> tuple[list[dict[str, Any]], Mapping[str, Any] | None]:
    """Every alarm of a store in words, as it looks now, and the charter; nothing is written."""
    asked = store.settings
    if not asked:
        return [], None
    question = _question(asked)
    look = look_at(store, question, keep=False)
    words = _words(look, result_rows(look, question.settings), asked)
    causes = explain(store, look, words, seed=question.settings.seed)
    return _spoken(store, look, causes, words), asked["charter"]


def _spoken(
    store: Store, look: Look, causes: Sequence[Mapping[str, Any]], words: Words
) -> list[dict[str, Any]]:
    """Every alarm as plain values and in words: what it says, what moved it, what to do."""
    found = []
    for alarm in look.alarms:
        mine = [dict(c) for c in causes if c["alarm"] == alarm.stored.id]
        said = {
            "headline": alarm_headline(alarm, look, words),
            "detail": alarm_detail(alarm, look, mine, words),
            "next": what_to_do(alarm, look, str(store.path)) if alarm.stored.open else None,
            "answer": answer_words(alarm),
        }
        found.append(
            {"id": alarm.stored.id, **current(alarm, look), **said, "by": alarm.stored.who,
             "why": alarm.stored.why, "at": alarm.stored.at,
             "answered_at": alarm.stored.answered, "state": alarm.state}
        )  # fmt: skip
    return found
