"""Names from the data as a page may show them: no control characters, short, and told apart."""

from collections.abc import Iterable
from typing import Any
from unicodedata import east_asian_width

from evenhand.decisions.labels import MISSING, OVERALL, REST, SUMMARY
from evenhand.speech import printable

MOST = 48
_SPOKEN = {
    REST: "everybody else",
    OVERALL: "people overall",
    MISSING: "no value",
    SUMMARY: "all strata together",
}


def spoken(name: Any) -> str:
    """A name in words; the reserved ones are spelled out.

    Examples:
        >>> spoken("<rest>"), spoken(None), spoken("north")
        ('everybody else', '', 'north')
    """
    if name is None:
        return ""
    return _SPOKEN.get(str(name), " ".join(printable(str(name)).split()) or "(empty)")


def short(name: Any, *, most: int = MOST) -> str:
    """A name of at most this many characters.

    Examples:
        >>> short("a very long name indeed", most=12)
        'a very long…'
    """
    text = spoken(name)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def cell(name: Any, *, most: int = MOST) -> str | dict[str, str]:
    """A name for a table: cut where it is long, the whole of it in the title."""
    text, cut = spoken(name), short(name, most=most)
    return text if cut == text else {"text": cut, "title": text}


def told_apart(names: Iterable[Any], *, most: int = MOST) -> list[str]:
    """Short names that differ from one another, as the axis of a chart needs them.

    Examples:
        >>> told_apart(["one long name", "one long nape"], most=9)
        ['one long…', 'one long… (2)']
    """
    seen: dict[str, int] = {}
    found = []
    for name in names:
        text = spoken(name)
        if wide(text) > most:
            while text and wide(text) > most - 1:
                text = text[:-1]
            text = text.rstrip() + "…"
        seen[text] = seen.get(text, 0) + 1
        found.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return found


def wide(text: str) -> int:
    """The width of a text in letters; those of East Asia take two.

    Examples:
        >>> wide("name"), wide("名前")
        (4, 4)
    """
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def listed(names: Iterable[str], *, most: int = 4) -> str:
    """Names in a row of words.

    Examples:
        >>> listed(["a", "b", "c"]), listed(["a"]), listed("abcdef", most=2)
        ('a, b and c', 'a', 'a, b and 4 more')
    """
    known = list(names)
    shown, more = known[:most], len(known) - most
    if more > 0:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1] if shown else "")))
