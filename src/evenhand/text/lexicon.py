"""Lexicons: words of an attribute and what they become under its other values.

A lexicon is read from TOML, shipped or one's own, and checked once: keys, values, words and rules.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, UsageError, nearest
from evenhand.files.documents import (
    Damage,
    check,
    either,
    flag,
    list_of,
    map_of,
    parse_toml,
    table,
    text,
)

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
_WORDS = either(text, list_of(text), noun="a text or a list of texts")
_FORMS = map_of(text)
# Types alone: which keys there must be is told by `_Keys`.
_SHAPE = table(
    {},
    {
        "name": text, "attribute": text, "values": list_of(text), "round_trip": flag,
        "case": text, "description": text, "pairs": list_of(list_of(text)),
        "one_way": list_of(table({}, {"word": text, "value": text, "to": _FORMS, "only": text})),
        "part_of_speech": list_of(
            table({}, {"word": text, "value": text, "possessive": _FORMS, "object": _FORMS})
        ),
        "protect": list_of(
            table({}, {"words": list_of(text), "why": text, "before": text, "after": text,
                       "needs": list_of(text)})
        ),
        "never": list_of(table({}, {"words": list_of(text), "why": text})),
        "agreement": table(
            {},
            {"plural": list_of(text), "verbs": list_of(list_of(text, length=2)),
             **dict.fromkeys(("subjects", "adverbs", "unchanging", "regular", "not_verbs"),
                             _WORDS)},
        ),
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounForms:
    """Two replacements of one word, by its part of speech: possessive or object."""

    possessive: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LexiconWord:
    """One word: the value it stands for, its replacement under each other value, its only case."""

    word: str
    value: str | None
    to: Mapping[str, str | PronounForms]
    only: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """Words that are left alone where the text before or after them matches, and why.

    `needs` are pieces of text without which the rule need not be tried: it keeps rules on
    common words cheap.
    """

    words: tuple[str, ...]
    before: re.Pattern[str] | None
    after: re.Pattern[str] | None
    why: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Verbs that change with a subject which is grammatically plural under some values."""

    plural: frozenset[str]
    subjects: frozenset[str]
    verbs: tuple[tuple[str, str], ...]
    adverbs: frozenset[str]
    unchanging: frozenset[str]
    regular: frozenset[str]
    not_verbs: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Words of an attribute, ready to be swapped; made by `load_lexicon`.

    `never` lists the words that must not be swapped although they look as if they could, with
    the reason. `round_trip` says that swapping there and back gives the same text.
    """

    name: str
    attribute: str
    values: tuple[str, ...]
    entries: Mapping[str, LexiconWord]
    round_trip: bool = False
    case: str = "copy"
    description: str = ""
    protected: tuple[Protected, ...] = ()
    never: Mapping[str, str] = field(default_factory=dict)
    agreement: Agreement | None = None
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.entries)

    def check_value(self, value: str, *, argument: str) -> None:
        """Raises unless the value is one of this lexicon's."""
        if value not in self.values:
            raise UsageError(
                f"{argument}={value!r} is not a value of the lexicon {self.name!r}, "
                f"which knows {', '.join(self.values)}.{nearest(str(value), list(self.values))}"
            )

    def check_groups(self, values: Mapping[Any, str]) -> dict[Any, str]:
        """What values of a group column are in this lexicon, checked: {"F": "female", "M": "male"}.

        Examples:
            >>> load_lexicon("gender_pronouns").check_groups({"female": "F"})
            Traceback (most recent call last):
            evenhand.errors.UsageError: values={'female': 'F'} is the wrong way round. Write the \
group's own value first: values={'F': 'female'} (--value F=female).
        """
        for group, value in values.items():
            if value not in self.values and group in self.values:
                raise UsageError(
                    f"values={ {group: value} } is the wrong way round. Write the group's own "
                    f"value first: values={ {value: group} } (--value {value}={group})."
                )
            self.check_value(value, argument="values")
        if len(set(values.values())) < len(values):
            raise UsageError(
                f"values={dict(values)} gives two groups one value of the lexicon {self.name!r}. "
                "Give each group a value of its own."
            )
        return dict(values)


def shipped_lexicons() -> list[str]:
    """Names of the lexicons that ship with Evenhand.

    Examples:
        >>> shipped_lexicons()
        ['gender_pronouns', 'gender_they', 'gender_words', 'neutral_synonyms', 'religion']
    """
    folder = files("evenhand.text").joinpath("lexicons")
    return sorted(each.name[:-5] for each in folder.iterdir() if each.name.endswith(".toml"))


def load_lexicon(
    source: str | Path, *, names: Mapping[str, str] | Mapping[str, Sequence[str]] | None = None
) -> Lexicon:
    """A lexicon by its shipped name or from a TOML file, with names added where given.

    Examples:
        >>> lexicon = load_lexicon("gender_pronouns")
        >>> lexicon.values, lexicon.entries["mrs"].to
        (('female', 'male'), {'male': 'mr'})
    """
    text, origin = _read(source)
    try:
        table = parse_toml(text)
    except ValueError as problem:
        raise DataError(f"The lexicon {origin!r} is not valid TOML: {problem}.") from problem
    lexicon = parse_lexicon(table, origin=origin)
    return lexicon if names is None else add_names(lexicon, names=names)


def parse_lexicon(table: Mapping[str, Any], *, origin: str) -> Lexicon:
    """A checked lexicon from the tables of its file."""
    keys = _Keys(origin)
    keys.check_forms(table)
    try:
        check(table, _SHAPE)
    except Damage as damage:
        raise DataError(f"The lexicon {origin!r} cannot be used: {damage}.") from None
    keys.check(table)
    values = _values(table, origin=origin)
    entries: dict[str, LexiconWord] = {}
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


def add_names(
    lexicon: Lexicon, *, names: Mapping[str, str] | Mapping[str, Sequence[str]]
) -> Lexicon:
    """The lexicon with people's names: a mapping of names, or lists of names by value.

    A mapping {"Alice": "Alan"} is used as it stands wherever a text is rewritten. Lists
    {"female": ["Alice"], "male": ["Alan"]} stand for their value, paired by position and
    swapped in both directions. Names are found capitalised or in capitals only.

    Examples:
        >>> pronouns = load_lexicon("gender_pronouns")
        >>> both = add_names(pronouns, names={"female": ["Alice"], "male": ["Alan"]})
        >>> both.entries["Alan"].to
        {'female': 'Alice'}
    """
    if names and all(isinstance(each, str) for each in names.values()):
        added = [
            LexiconWord(
                word=old, value=None, to=dict.fromkeys(lexicon.values, str(new)), only="name"
            )
            for old, new in names.items()
        ]
    else:
        added = _names_by_value(lexicon, names)
    _check_names(lexicon, added)
    return replace(
        lexicon, entries={**lexicon.entries, **{each.word: each for each in added}}, cache={}
    )


def _read(source: str | Path) -> tuple[str, str]:
    shipped = shipped_lexicons()
    if isinstance(source, str) and source in shipped:
        found = files("evenhand.text").joinpath("lexicons", f"{source}.toml")
        return found.read_text(encoding="utf-8"), source
    path = Path(source)
    if not path.is_file():
        hint = nearest(str(source), shipped)
        raise UsageError(
            f"lexicon={str(source)!r} is neither a file nor a shipped lexicon "
            f"({', '.join(shipped)}).{hint}"
        )
    try:
        return path.read_text(encoding="utf-8"), str(source)
    except UnicodeDecodeError as problem:
        raise DataError(f"The lexicon {str(source)!r} is not a text file in UTF-8.") from problem


def _names_by_value(lexicon: Lexicon, names: Mapping[str, Any]) -> list[LexiconWord]:
    for value in names:
        lexicon.check_value(value, argument="names")
    lengths = {value: len(each) for value, each in names.items()}
    if len(lengths) < 2 or len(set(lengths.values())) > 1:
        raise UsageError(
            f"names has lists of different lengths ({lengths}). Give one list for each of two or "
            "more values, paired by position."
        )
    return [
        LexiconWord(
            word=row[at],
            value=value,
            to={other: row[k] for k, other in enumerate(names) if other != value},
            only="name",
        )
        for row in zip(*names.values())
        for at, value in enumerate(names)
    ]


def _check_names(lexicon: Lexicon, added: Iterable[LexiconWord]) -> None:
    seen: dict[str, str | None] = {}
    for entry in added:
        if not re.fullmatch(r"\w(?:.*\w)?", entry.word) or not entry.word[0].isupper():
            raise UsageError(f"names has {entry.word!r}: a name starts with a capital letter.")
        if entry.word.lower() in lexicon.entries:
            raise UsageError(
                f"names has {entry.word!r}, which the lexicon {lexicon.name!r} already swaps. "
                "Leave it out of the names."
            )
        if entry.word in seen:
            raise UsageError(
                f"names has {entry.word!r} twice. Give each name once, with one replacement."
            )
        seen[entry.word] = entry.value


class _Keys:
    """The keys a lexicon may have, table by table."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def check_forms(self, table: Mapping[str, Any]) -> None:
        for part in ("one_way", "part_of_speech", "protect", "never"):
            rows = table.get(part, [])
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise DataError(
                    f"The lexicon {self.origin!r} has {part} in another form: write [[{part}]]."
                )

    def check(self, table: Mapping[str, Any]) -> None:
        self._known(table, "")
        for key in ("attribute", "values"):
            self._needed(table, key, "")
        for part in ("one_way", "part_of_speech", "protect", "never"):
            for row in table.get(part, []):
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


def _pairs(
    table: Mapping[str, Any], *, values: tuple[str, ...], origin: str
) -> Iterable[LexiconWord]:
    for row in table.get("pairs", []):
        if not isinstance(row, list) or len(row) != len(values):
            raise DataError(
                f"The lexicon {origin!r} has the pair {row!r}, but {len(values)} values. Give one "
                f"word for each of {', '.join(values)}, or an empty string where there is none."
            )
        for at, word in enumerate(row):
            if word:
                others = {values[k]: row[k] for k in range(len(row)) if k != at and row[k]}
                yield LexiconWord(word=word, value=values[at], to=others)


def _one_way(
    table: Mapping[str, Any], *, values: tuple[str, ...], origin: str
) -> Iterable[LexiconWord]:
    for row in table.get("one_way", []):
        only = row.get("only")
        if only not in (None, "lower", "capitalised", "upper"):
            raise DataError(
                f"The lexicon {origin!r} has only={only!r} for {row['word']!r}. "
                "Write lower, capitalised or upper."
            )
        _known_values([row["value"], *row["to"]], values=values, word=row["word"], origin=origin)
        yield LexiconWord(word=row["word"], value=row["value"], to=dict(row["to"]), only=only)


def _by_part_of_speech(
    table: Mapping[str, Any], *, values: tuple[str, ...], origin: str
) -> Iterable[LexiconWord]:
    for row in table.get("part_of_speech", []):
        possessive, objects = row["possessive"], row["object"]
        named = [row["value"], *possessive, *objects]
        _known_values(named, values=values, word=row["word"], origin=origin)
        if set(possessive) != set(objects):
            raise DataError(
                f"The lexicon {origin!r} gives {row['word']!r} a possessive and an object for "
                "different values. Give both for each value."
            )
        to = {
            each: PronounForms(possessive=possessive[each], object=objects[each])
            for each in objects
        }
        yield LexiconWord(word=row["word"], value=row["value"], to=to)


def _known_values(named: Iterable[str], *, values: tuple[str, ...], word: str, origin: str) -> None:
    for value in named:
        if value not in values:
            raise DataError(
                f"The lexicon {origin!r} gives {word!r} the value {value!r}, which is not among "
                f"its values {', '.join(values)}.{nearest(value, list(values))}"
            )


def _check_word(entry: LexiconWord, entries: Mapping[str, LexiconWord], *, origin: str) -> None:
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


def _check_targets(entries: Mapping[str, LexiconWord], *, origin: str) -> None:
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
