"""Lexicons: which words stand for which value of an attribute, and what replaces them."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, UsageError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Two replacements of one word: by part of speech, possessive or object."""

    possessive: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One word: the value it stands for, its replacement under each other value, its only case."""

    word: str
    value: str | None
    to: Mapping[str, str | Choice]
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
    entries: Mapping[str, Entry]
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
    from evenhand.text.lexicon_file import parse_lexicon

    text, origin = _read(source)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise DataError(f"The lexicon {origin!r} is not valid TOML: {problem}.") from problem
    lexicon = parse_lexicon(table, origin=origin)
    return lexicon if names is None else add_names(lexicon, names=names)


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
            Entry(word=old, value=None, to=dict.fromkeys(lexicon.values, str(new)), only="name")
            for old, new in names.items()
        ]
    else:
        added = _names_by_value(lexicon, names)
    _check_names(lexicon, added)
    return replace(
        lexicon, entries={**lexicon.entries, **{each.word: each for each in added}}, cache={}
    )


def _names_by_value(lexicon: Lexicon, names: Mapping[str, Any]) -> list[Entry]:
    for value in names:
        lexicon.check_value(value, argument="names")
    lengths = {value: len(each) for value, each in names.items()}
    if len(lengths) < 2 or len(set(lengths.values())) > 1:
        raise UsageError(
            f"names has lists of different lengths ({lengths}). Give one list for each of two or "
            "more values, paired by position."
        )
    return [
        Entry(
            word=row[at],
            value=value,
            to={other: row[k] for k, other in enumerate(names) if other != value},
            only="name",
        )
        for row in zip(*names.values())
        for at, value in enumerate(names)
    ]


def _check_names(lexicon: Lexicon, added: Iterable[Entry]) -> None:
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
