"""Groups of several columns at once, spoken as people: "Black women", "men whose region is north".

What the charter calls people is taken apart where English allows it: in "Black people" and
"people over 60" the word for people gives way to a better one. What nobody named is said as the
table has it, column by column.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evenhand.decisions.labels import MISSING

_PEOPLE = ("people", "persons")
# Words after which a name goes on to say which people are meant.
_GOES_ON = frozenset(
    [
        "of",
        "over",
        "under",
        "in",
        "from",
        "with",
        "without",
        "whose",
        "who",
        "that",
        "aged",
        "at",
        "on",
        "near",
        "between",
        "above",
        "below",
        "born",
        "outside",
        "inside",
        "to",
        "by",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """One column's value of a crossed group, and what its people are called, if anything."""

    column: str
    value: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Name:
    """A name of people: what stands before their noun, the noun, and what follows it."""

    before: tuple[str, ...]
    noun: str
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The people of a group: who they are, and the clause that says the rest of it."""

    who: str
    clause: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.who, self.clause)))


def crossed_people(
    parts: Sequence[Facet], *, nouns: Collection[str] = (), apart: bool = False
) -> Naming:
    """The people of a crossed group as a sentence names them.

    `nouns` are words for people beside "people", as the charter has them for what is decided
    about; `apart` says that the columns speak of several persons, a writer and a reader, whose
    names cannot be joined into one.

    Examples:
        >>> women = Facet(column="sex", value="female", name="women")
        >>> black = Facet(column="race", value="b", name="Black people")
        >>> old = Facet(column="age", value="60+", name="people over 60")
        >>> north = Facet(column="region", value="north", name=None)
        >>> for parts in ([women, black], [black, old, women], [old, black], [women, north]):
        ...     print(crossed_people(parts))
        Black women
        Black women over 60
        Black people over 60
        women whose region is north
        >>> print(crossed_people([women, black, north], apart=True))
        women whose race is b and region is north
    """
    named = [part for part in parts if part.name is not None]
    split = {part.column: _split(str(part.name), nouns) for part in named}
    # A noun of its own, such as women, says who they are; beside another it would say too much.
    heads = [part for part in named if split[part.column].noun not in (*_PEOPLE, *nouns)]
    kept = heads[:1] + [part for part in named if part not in heads]
    if apart:
        kept = kept[:1]
    chosen = [split[part.column] for part in parts if part in kept]
    noun = next((one.noun for one in chosen if kept and one is split[kept[0].column]), "people")
    if not heads and nouns:
        # "defendants" says more of who they are than "people" does.
        noun = next((one.noun for one in chosen if one.noun in nouns), noun)
    words = [
        *(word for one in chosen for word in one.before),
        noun,
        *(word for one in chosen for word in one.after),
    ]
    clause = " and ".join(
        f"{part.column} is {_shown(part.value)}" for part in parts if part not in kept
    )
    return Naming(who=" ".join(words), clause=f"whose {clause}" if clause else "")


def goes_on(who: str) -> bool:
    """Whether a name says more behind its noun, so that nothing can be hung on its end.

    Examples:
        >>> goes_on("women whose region is north"), goes_on("people over 60"), goes_on("Black men")
        (True, True, False)
    """
    return any(word in _GOES_ON for word in who.split()[1:]) or not who[-1:].isalnum()


def with_number(who: str, number: str) -> str:
    """People with their number; a comma keeps it apart from a name that goes on.

    Examples:
        >>> with_number("women", "21%"), with_number("people whose age is 60", "21%")
        ('women 21%', 'people whose age is 60, 21%')
    """
    return f"{who}, {number}" if goes_on(who) else f"{who} {number}"


def _split(name: str, nouns: Collection[str]) -> _Name:
    """A name around its word for people; one without such a word is a noun of its own."""
    words = name.split()
    places = [i for i, word in enumerate(words) if word in (*_PEOPLE, *nouns)]
    if not places or len(words) == 1:
        return _Name(before=(), noun=name, after=())
    at = places[0]
    return _Name(before=tuple(words[:at]), noun=words[at], after=tuple(words[at + 1 :]))


def _shown(value: str) -> str:
    if value == MISSING:
        return "missing"
    return value if value.strip() else repr(value)
