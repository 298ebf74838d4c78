"""Removal of what names a person's group: pronouns, titles and the person's own name."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError

# Cheng et al. (2023); the public corpus tool leaves ph and dr in and writes "_" instead.
SCRUBBED_WORDS = (
    "he", "she", "her", "his", "him", "hers", "himself", "herself", "mr", "mrs", "ms", "ph", "dr",
)  # fmt: skip

_WORD = re.compile(r"(\w+)")
_SPACES = re.compile(r"[ \t]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """A text without the words of its group; `empty` where no word is left."""

    text: str
    removed: int
    empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubbedTexts:
    """Many scrubbed texts, by column; null texts stay null and are counted as missing."""

    texts: list[str | None]
    removed: NDArray[np.int64]
    empty: NDArray[np.bool_]
    missing: int

    def __len__(self) -> int:
        return len(self.texts)


def scrub(
    text: str,
    *,
    names: str | Iterable[str] = (),
    words: Iterable[str] = SCRUBBED_WORDS,
    replacement: str = "",
) -> Scrubbed:
    """The text without pronouns, titles and the person's names, whatever their case.

    A single letter of the name (an initial) goes only as a capital beside another of the names,
    so that an initial A does not take every article along.

    Examples:
        >>> scrub("Dr. Jane Doe earned her Ph.D. in 1999.", names="Jane Doe").text
        '. earned .D. in 1999.'
        >>> scrub("She herself").empty
        True
    """
    if not isinstance(text, str):
        raise DataError(f"scrub needs a text, not {type(text).__name__} ({text!r:.40}).")
    drop = frozenset(word.lower() for word in words)
    new, removed = _scrub(text, drop, _name_words(names), replacement)
    return Scrubbed(text=new, removed=removed, empty=_is_empty(new))


def scrub_texts(
    texts: Iterable[str | None],
    *,
    names: Sequence[str | Iterable[str] | None] | None = None,
    words: Iterable[str] = SCRUBBED_WORDS,
    replacement: str = "",
) -> ScrubbedTexts:
    """Many texts scrubbed, each with its own person's name where `names` gives one.

    Examples:
        >>> scrub_texts(["Ann ran.", None], names=["Ann Poe", None]).texts
        ['ran.', None]
    """
    rows = list(texts)
    own = [None] * len(rows) if names is None else list(names)
    if len(own) != len(rows):
        raise UsageError(f"names has {len(own)} values for {len(rows)} texts. Give one a text.")
    drop = frozenset(word.lower() for word in words)
    out: list[str | None] = []
    removed = np.zeros(len(rows), dtype=np.int64)
    empty = np.zeros(len(rows), dtype=bool)
    for row, (text, name) in enumerate(zip(rows, own)):
        if text is None:
            out.append(None)
            continue
        if not isinstance(text, str):
            raise DataError(f"Row {row} has {type(text).__name__} where a text should be.")
        new, removed[row] = _scrub(text, drop, _name_words(name or ()), replacement)
        empty[row] = removed[row] > 0 and _is_empty(new)
        out.append(new)
    missing = sum(text is None for text in rows)
    return ScrubbedTexts(texts=out, removed=removed, empty=empty, missing=missing)


def _name_words(names: str | Iterable[str]) -> frozenset[str]:
    whole = names if isinstance(names, str) else " ".join(names)
    return frozenset(_WORD.findall(whole.lower())) if whole else frozenset()


def _scrub(
    text: str, drop: frozenset[str], names: frozenset[str], replacement: str
) -> tuple[str, int]:
    pieces = _WORD.split(text)
    lowered = text.lower()
    # Lower-casing can change the length of a text (İ); its words are then lowered one by one.
    low = _WORD.findall(lowered) if len(lowered) == len(text) else []
    if len(low) != len(pieces) // 2:
        low = [word.lower() for word in pieces[1::2]]
    removed = 0
    for at, word in enumerate(low):
        if word in drop or (word in names and _is_name(pieces, low, at, names)):
            pieces[2 * at + 1] = replacement
            removed += 1
    if not removed:
        return text, 0
    joined = "".join(pieces)
    return (joined if replacement else _SPACES.sub(" ", joined).strip()), removed


def _is_name(pieces: list[str], low: list[str], at: int, names: frozenset[str]) -> bool:
    if len(low[at]) > 1:
        return True
    beside = low[max(0, at - 1) : at] + low[at + 1 : at + 2]
    return pieces[2 * at + 1].isupper() and any(word in names for word in beside)


def _is_empty(text: str) -> bool:
    return _WORD.search(text) is None
