"""The words of a store: classes and groups that vanish, and those that no earlier period held.

A class or group that is called otherwise from one week on is to a sequence a group that is gone
and another that is new: nothing that was agreed on it can be judged until the words fit.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import MISSING, ordered
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.tallies.pairs import MARK
from evenhand.decisions.tallies.sets import Tallies, table_name
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.watching.store import Store, StoredPeriod

VANISHED, UNKNOWN = "vanished", "unknown"
GROUP, TRUTH, DECISION = "group", "truth", "decision"
# Fewer rows than this say nothing: a word is regular, missed or new with at least so many.
FEWEST_ROWS = 10
# Of how many periods before it went a word is known to be regular.
PERIODS_BEFORE = 4
# Under which name the words of each period are kept.
SERIES = "words"
# Where a word stands: its role and, of groups, the attribute.
Home = tuple[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodWords:
    """The words of one period.

    `rows` are by word and where it stands, `totals` how many rows could have held one, and
    `classes` every class that counts are read by.
    """

    rows: Mapping[Home, Mapping[str, float]]
    totals: Mapping[Home, float]
    classes: tuple[str, ...]

    def packed(self) -> bytes:
        """The words as few bytes.

        Examples:
            >>> words = PeriodWords(rows={("group", "sex"): {"f": 3.0}},
            ...                     totals={("group", "sex"): 4.0}, classes=("0", "1"))
            >>> PeriodWords.unpacked(words.packed()) == words
            True
        """
        homes = [[*home, self.totals[home], dict(words)] for home, words in self.rows.items()]
        text = json.dumps([homes, self.classes], ensure_ascii=False)
        return zlib.compress(text.encode("utf-8", "surrogatepass"))

    @classmethod
    def unpacked(cls, content: bytes) -> "PeriodWords":
        """The words that `packed` made."""
        text = zlib.decompress(content).decode("utf-8", "surrogatepass")
        homes, classes = json.loads(text)
        return cls(
            rows={(role, name): words for role, name, _, words in homes},
            totals={(role, name): total for role, name, total, _ in homes},
            classes=tuple(classes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChange:
    """A class or group that vanished, or that no earlier period held.

    `since` is the place of the first period concerned, `noticed` that of the period by which it
    is sure; `rows` are those of the word, since then if it is unknown, before if it vanished, and
    `over` in how many periods they were counted.
    """

    role: str
    attribute: str | None
    word: str
    kind: str
    since: int
    noticed: int
    rows: int
    over: int

    def concerns(self, attribute: Attribute | None) -> bool:
        """Whether comparisons by an attribute, or by none, rest on the word."""
        if self.role != GROUP:
            return True
        return attribute is not None and self.attribute in attribute.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What became of the words of a store.

    `newcomers` are classes that came later and are too rare to stop anything, each with the
    place of its first period and its rows; `classes` those of each period.
    """

    changes: tuple[WordChange, ...] = ()
    newcomers: tuple[tuple[str, int, int], ...] = ()
    classes: tuple[tuple[str, ...], ...] = ()

    def stop(self, attribute: Attribute | None) -> int | None:
        """The place from which comparisons by an attribute, or by none, are not judged."""
        return min((c.noticed for c in self.changes if c.concerns(attribute)), default=None)


def load_vocabulary(
    store: Store,
    periods: Sequence[StoredPeriod],
    whole: Sequence[bool],
    judged: Sequence[bool],
    current: Iterable[int],
) -> tuple[Vocabulary, dict[int, bytes]]:
    """What became of a store's words, and the words that are not kept yet by the period's id.

    Groups and decisions are looked at in periods that are `whole`, truths in those that are
    `judged`: labels arrive late. `current` are the places of the sequence that is judged.
    """
    kept = store.series(SERIES)
    new = {p.id: read_words(store.tallies(p)).packed() for p in periods if p.id not in kept}
    words = [PeriodWords.unpacked(new[p.id] if p.id in new else kept[p.id]) for p in periods]
    changes: list[WordChange] = []
    newcomers: list[tuple[str, int, int]] = []
    for home in dict.fromkeys(home for each in words for home in each.rows):
        looked = np.array(judged if home[0] == TRUTH else whole, dtype=bool)
        found = _changes(home, words, looked, set(current))
        changes += found
        if home[0] != GROUP:
            newcomers += _newcomers(home, words, {change.word for change in found})
    found_all = sorted(changes, key=lambda change: change.since)
    return Vocabulary(
        changes=tuple(found_all),
        newcomers=tuple(newcomers),
        classes=tuple(each.classes for each in words),
    ), new


def read_words(tallies: Tallies) -> PeriodWords:
    """The words of a period's tally set: groups by attribute, truths and decisions as written."""
    rows: dict[Home, Mapping[str, float]] = {}
    totals: dict[Home, float] = {}

    def add(home: Home, words: Mapping[str, float], total: float) -> None:
        if words or total:
            rows[home], totals[home] = words, total

    roles = tallies.roles
    tables = _tables(tallies, roles)
    for attribute in roles.attributes:
        table = tallies.tables.get(table_name("counts", attribute.name))
        if table is not None and len(attribute.columns) == 1:
            add((GROUP, attribute.name), _counted(table, GROUP), table.total())
    keys = {TRUTH: [TRUTH], DECISION: _decision_keys(tables, roles)}
    for role, mine in keys.items():
        # The same rows have several decisions where they were decided under several values.
        held = [_counted(one, key) for key in mine for one in tables if key in one.labels]
        counts = {word: n for one in reversed(held) for word, n in one.items()}
        add((role, None), counts, max((sum(one.values()) for one in held), default=0.0))
    return PeriodWords(rows=rows, totals=totals, classes=tuple(ordered(class_labels(tallies))))


def class_labels(tallies: Tallies) -> set[str]:
    """Every class that a set names, in the truth or in a decision."""
    found = {tallies.roles.positive} - {None}
    for name, tally in tallies.tables.items():
        if name.startswith("counts/"):
            for key in (TRUTH, DECISION):
                found.update(tally.labels.get(key, ()))
    return {str(each) for each in found}


def _tables(tallies: Tallies, roles: Roles) -> list[Tally]:
    """A table of counts and one of pairs, where they are there: any has every row."""
    found = []
    for kind in ("counts", "pairs"):
        names = [table_name(kind, each.name) for each in roles.attributes] + [table_name(kind)]
        found += [tallies.tables[name] for name in names if name in tallies.tables][:1]
    return found


def _decision_keys(tables: Sequence[Tally], roles: Roles) -> list[str]:
    """The keys of decisions that somebody wrote down; a threshold has no words of its own."""
    given = [DECISION] if roles.rule == "given" else []
    return given + [key for table in tables for key in table.labels if key.startswith(MARK)]


def _counted(table: Tally, key: str) -> dict[str, float]:
    """Rows by the words of a key."""
    counts = table.dense([key], "n").tolist()
    return {word: n for word, n in zip(table.labels[key], counts) if n and word != MISSING}


def _changes(
    home: Home, words: Sequence[PeriodWords], looked: NDArray[np.bool_], current: set[int]
) -> list[WordChange]:
    """The words of one home that vanished, and those that no earlier period held."""
    totals = np.array([each.totals.get(home, 0.0) for each in words])
    looked = looked & (totals > 0)
    found = []
    for word in ordered({word for each in words for word in each.rows.get(home, {})}):
        rows = np.array([each.rows.get(home, {}).get(word, 0.0) for each in words])
        unknown = _unknown(rows, totals, looked)
        if unknown is not None:
            since, noticed = unknown
            own = [place for place in np.flatnonzero(looked).tolist() if place >= since]
            if not current.isdisjoint(place for place in own if rows[place]):
                found.append(_change(home, word, UNKNOWN, since, noticed, rows, own))
            continue
        vanished = _vanished(rows, totals, looked)
        if vanished is not None:
            since, noticed = vanished
            own = [place for place in np.flatnonzero(looked).tolist() if place < since]
            found.append(_change(home, word, VANISHED, since, noticed, rows, own))
    return found


def _change(
    home: Home,
    word: str,
    kind: str,
    since: int,
    noticed: int,
    rows: FloatArray,
    own: Sequence[int],
) -> WordChange:
    return WordChange(
        role=home[0], attribute=home[1], word=word, kind=kind, since=int(since),
        noticed=int(noticed), rows=round(float(rows[own].sum())), over=len(own),
    )  # fmt: skip


def _unknown(
    rows: FloatArray, totals: FloatArray, looked: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Since when there is a word that earlier periods would have held had they known it.

    Examples:
        >>> week, looked = np.full(6, 400.0), np.ones(6, dtype=bool)
        >>> _unknown(np.array([0.0, 0, 0, 200, 190, 210]), week, looked)
        (3, 3)
        >>> _unknown(np.array([0.0, 0, 0, 4, 4, 4]), week, looked)
        (3, 5)
        >>> _unknown(np.array([0.0, 1, 2, 1, 4, 4]), week, looked), _unknown(week, week, looked)
        (None, None)
    """
    first = int(np.argmax(rows > 0))
    if first <= int(np.argmax(totals > 0)):
        return None
    places = np.flatnonzero(looked)
    before, since = places[places < first], places[places >= first]
    if not before.size or not since.size:
        return None
    held, every = np.cumsum(rows[since]), np.cumsum(totals[since])
    # A rare word may come late by chance: earlier periods must have had room for it.
    expected = held / every * totals[before].sum()
    sure = np.flatnonzero((held >= FEWEST_ROWS) & (expected >= FEWEST_ROWS))
    if not sure.size:
        return None
    return int(since[np.argmax(rows[since] > 0)]), int(since[sure[0]])


def _vanished(
    rows: FloatArray, totals: FloatArray, looked: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Since when a word that every period before held regularly has no row at all.

    The period in which it went may hold few rows.

    Examples:
        >>> week, looked = np.full(6, 400.0), np.ones(6, dtype=bool)
        >>> _vanished(np.array([200.0, 190, 210, 200, 0, 0]), week, looked)
        (4, 4)
        >>> _vanished(np.array([200.0, 190, 210, 2, 0, 0]), week, looked)
        (4, 4)
        >>> _vanished(np.array([200.0, 190, 2, 0, 0, 1]), week, looked)
        >>> _vanished(np.array([200.0, 3, 210, 2, 0, 0]), week, looked)
    """
    last = int(np.flatnonzero(rows)[-1])
    places = np.flatnonzero(looked)
    held, after = places[places <= last], places[places > last]
    for before in (held[-PERIODS_BEFORE:], held[:-1][-PERIODS_BEFORE:]):
        if before.size and after.size and (rows[before] >= FEWEST_ROWS).all():
            share = (rows[before] / totals[before]).min()
            # Few rows at all, or few whose truth is known, need not hold it.
            sure = np.flatnonzero(share * np.cumsum(totals[after]) >= FEWEST_ROWS)
            return (int(after[0]), int(after[sure[0]])) if sure.size else None
    return None


def _newcomers(
    home: Home, words: Sequence[PeriodWords], said: set[str]
) -> list[tuple[str, int, int]]:
    """Words that the first period does not hold and that are no change; each with its rows."""
    held = [each.rows.get(home, {}) for each in words]
    begun = next((place for place, each in enumerate(held) if each), len(held))
    found = []
    for word in ordered({word for each in held for word in each} - said):
        first = next(place for place, each in enumerate(held) if word in each)
        if first > begun:
            found.append((word, first, round(sum(each.get(word, 0.0) for each in held))))
    return found


def plain_change(
    change: WordChange, attributes: Sequence[Attribute], named: Callable[[int], str]
) -> dict[str, Any]:
    """A change as plain values; `attributes` whose comparisons it stops, None for all there are."""
    mine = [each.name for each in attributes if change.concerns(each)]
    return {
        "role": change.role, "attribute": change.attribute, "word": change.word,
        "kind": change.kind, "since": named(change.since), "rows": change.rows,
        "attributes": mine if change.role == GROUP else None,
    }  # fmt: skip
