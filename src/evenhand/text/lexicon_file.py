"""What a lexicon file may say, checked once: keys, values, words and rules."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.errors import DataError, nearest
from evenhand.text.lexicon import Agreement, Choice, Entry, Lexicon, Protected

_KEYS: dict[str, Sequence[str]] = {
    "": (
        *("name", "attribute", "values", "round_trip", "case", "description", "pairs"),
        *("one_way", "part_of_speech", "protect", "never", "agreement"),
    ),
    "one_way": ["word", "value", "to", "only"],
    "part_of_speech": ["word", "value", "possessive", "object"],
    "protect": ["words", "before", "after", "why", "needs"],
    "never": ["words", "why"],
    "agreement": ["plural", "subjects", "verbs", "adverbs", "unchanging", "regular", "not_verbs"],
}
_OPTIONAL = {"only", "needs", "before", "after"}
_WORD = re.compile(r"\w(?:.*\w)?")


def parse_lexicon(table: Mapping[str, Any], *, origin: str) -> Lexicon:
    """A checked lexicon from the tables of its file."""
    _Keys(origin).check(table)
    values = _values(table, origin=origin)
    entries: dict[str, Entry] = {}
    for entry in (
        *_pairs(table, values=values, origin=origin),
        *_one_way(table, values=values, origin=origin),
        *_by_part_of_speech(table, values=values, origin=origin),
    ):
        _check_word(entry, entries, origin=origin)
        entries[entry.word] = entry
    if not entries:
        raise DataError(f"The lexicon {origin!r} has no words. Give pairs or one_way rules.")
    _check_loops(table.get("one_way", []), origin=origin)
    _check_targets(entries, origin=origin)
    never = {word: row["why"] for row in table.get("never", []) for word in row["words"]}
    for word in never:
        if word in entries:
            raise DataError(
                f"The lexicon {origin!r} swaps {word!r} and lists it under never. "
                "Remove one of them."
            )
    case = table.get("case", "copy")
    if case not in ("copy", "keep"):
        raise DataError(
            f'The lexicon {origin!r} has case={case!r}. Write "copy" (the new word takes the old '
            'word\'s case) or "keep" (it is written as in the lexicon).'
        )
    return Lexicon(
        name=str(table.get("name", origin)),
        attribute=str(table["attribute"]),
        values=values,
        entries=entries,
        round_trip=bool(table.get("round_trip", False)),
        case=case,
        description=str(table.get("description", "")),
        protected=tuple(_protected(table.get("protect", []), origin=origin)),
        never=never,
        agreement=_agreement(table.get("agreement"), values=values, origin=origin),
    )


class _Keys:
    """The keys a lexicon may have, table by table."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def check(self, table: Mapping[str, Any]) -> None:
        self._known(table, "")
        for key in ("attribute", "values"):
            self._needed(table, key, "")
        for part in ("one_way", "part_of_speech", "protect", "never"):
            rows = table.get(part, [])
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise DataError(
                    f"The lexicon {self.origin!r} has {part} in another form: write [[{part}]]."
                )
            for row in rows:
                self._known(row, part)
                for key in _KEYS[part]:
                    if key not in _OPTIONAL:
                        self._needed(row, key, part)
        if "agreement" in table:
            self._known(table["agreement"], "agreement")
            for key in _KEYS["agreement"]:
                self._needed(table["agreement"], key, "agreement")

    def _known(self, row: Mapping[str, Any], part: str) -> None:
        for key in row:
            if key not in _KEYS[part]:
                place = f" in {part}" if part else ""
                raise DataError(
                    f"The lexicon {self.origin!r} has the unknown key {key!r}{place}."
                    f"{nearest(key, list(_KEYS[part]))}"
                )

    def _needed(self, row: Mapping[str, Any], key: str, part: str) -> None:
        if key not in row:
            place = f" in {part}" if part else ""
            raise DataError(f"The lexicon {self.origin!r} lacks the key {key!r}{place}.")


def _values(table: Mapping[str, Any], *, origin: str) -> tuple[str, ...]:
    values = table["values"]
    if not isinstance(values, list) or len(set(values)) < 2 or len(set(values)) != len(values):
        raise DataError(
            f"The lexicon {origin!r} has values={values!r}. Give two or more different values of "
            'the attribute, such as ["female", "male"].'
        )
    return tuple(str(value) for value in values)


def _pairs(table: Mapping[str, Any], *, values: tuple[str, ...], origin: str) -> Iterable[Entry]:
    for row in table.get("pairs", []):
        if not isinstance(row, list) or len(row) != len(values):
            raise DataError(
                f"The lexicon {origin!r} has the pair {row!r}, but {len(values)} values. Give one "
                f"word for each of {', '.join(values)}, or an empty string where there is none."
            )
        for at, word in enumerate(row):
            if word:
                others = {values[k]: row[k] for k in range(len(row)) if k != at and row[k]}
                yield Entry(word=word, value=values[at], to=others)


def _one_way(table: Mapping[str, Any], *, values: tuple[str, ...], origin: str) -> Iterable[Entry]:
    for row in table.get("one_way", []):
        only = row.get("only")
        if only not in (None, "lower", "capitalised", "upper"):
            raise DataError(
                f"The lexicon {origin!r} has only={only!r} for {row['word']!r}. "
                "Write lower, capitalised or upper."
            )
        _known_values([row["value"], *row["to"]], values=values, word=row["word"], origin=origin)
        yield Entry(word=row["word"], value=row["value"], to=dict(row["to"]), only=only)


def _by_part_of_speech(
    table: Mapping[str, Any], *, values: tuple[str, ...], origin: str
) -> Iterable[Entry]:
    for row in table.get("part_of_speech", []):
        possessive, objects = row["possessive"], row["object"]
        named = [row["value"], *possessive, *objects]
        _known_values(named, values=values, word=row["word"], origin=origin)
        if set(possessive) != set(objects):
            raise DataError(
                f"The lexicon {origin!r} gives {row['word']!r} a possessive and an object for "
                "different values. Give both for each value."
            )
        to = {each: Choice(possessive=possessive[each], object=objects[each]) for each in objects}
        yield Entry(word=row["word"], value=row["value"], to=to)


def _known_values(named: Iterable[str], *, values: tuple[str, ...], word: str, origin: str) -> None:
    for value in named:
        if value not in values:
            raise DataError(
                f"The lexicon {origin!r} gives {word!r} the value {value!r}, which is not among "
                f"its values {', '.join(values)}.{nearest(value, list(values))}"
            )


def _check_word(entry: Entry, entries: Mapping[str, Entry], *, origin: str) -> None:
    if not _WORD.fullmatch(entry.word) or entry.word != entry.word.lower():
        raise DataError(
            f"The lexicon {origin!r} has the word {entry.word!r}. Words are written in lower case "
            "and begin and end with a letter or digit."
        )
    before = entries.get(entry.word)
    if before is None:
        return
    if before.value != entry.value:
        raise DataError(
            f"The lexicon {origin!r} has {entry.word!r} on both sides: for {before.value} and for "
            f"{entry.value}. A word can stand for one value only."
        )
    raise DataError(f"The lexicon {origin!r} has two rules for {entry.word!r}. Keep one of them.")


def _check_loops(rules: Iterable[Mapping[str, Any]], *, origin: str) -> None:
    """One-way rules that only lead back to where they began are pairs, or a mistake."""
    leads = {row["word"]: list(row["to"].values()) for row in rules}
    for start in leads:
        reached, waiting = [start], [start]
        closed = True
        while waiting:
            for word in leads.get(waiting.pop(), []):
                closed = closed and word in leads
                if word not in reached:
                    reached.append(word)
                    waiting.append(word)
        if closed:
            raise DataError(
                f"The lexicon {origin!r} has a loop of one-way rules: "
                f"{' → '.join([*reached, start])}. "
                "Write a pair for words that swap in both directions."
            )


def _check_targets(entries: Mapping[str, Entry], *, origin: str) -> None:
    for entry in entries.values():
        for value, new in entry.to.items():
            for word in (new,) if isinstance(new, str) else (new.possessive, new.object):
                known = entries.get(word)
                if known is not None and known.value != value:
                    raise DataError(
                        f"The lexicon {origin!r} has {word!r} on both sides: "
                        f"{entry.word!r} becomes {word!r} for {value}, but {word!r} stands for "
                        f"{known.value}."
                    )


def _protected(rows: Iterable[Mapping[str, Any]], *, origin: str) -> Iterable[Protected]:
    for row in rows:
        if "before" not in row and "after" not in row:
            raise DataError(
                f"The lexicon {origin!r} protects {', '.join(row['words'])} without saying where. "
                "Give before, after or both."
            )
        yield Protected(
            words=tuple(row["words"]),
            before=_expression(row.get("before"), ending=r"\Z", origin=origin),
            after=_expression(row.get("after"), ending="", origin=origin),
            why=row["why"],
            needs=tuple(row.get("needs", ())),
        )


def _expression(text: str | None, *, ending: str, origin: str) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(f"(?:{text}){ending}")
    except re.error as problem:
        raise DataError(
            f"The lexicon {origin!r} protects {text!r}, which is not a regular expression: "
            f"{problem}."
        ) from problem


def _agreement(
    row: Mapping[str, Any] | None, *, values: tuple[str, ...], origin: str
) -> Agreement | None:
    if row is None:
        return None
    _known_values(row["plural"], values=values, word="agreement", origin=origin)
    return Agreement(
        plural=frozenset(row["plural"]),
        verbs=tuple((one, many) for one, many in row["verbs"]),
        **{
            key: frozenset(row[key] if isinstance(row[key], list) else row[key].split())
            for key in ("subjects", "adverbs", "unchanging", "regular", "not_verbs")
        },
    )
