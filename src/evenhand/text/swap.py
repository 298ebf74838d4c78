"""do(group = value) on a text: only the words of the group change, in one pass."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError
from evenhand.text.compiled import Tagger, compiled
from evenhand.text.lexicon import Lexicon, load_lexicon, shipped_lexicons


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """A text under one value of the attribute, and how it came about.

    `value` is the text's own value (None: no word of the lexicon); `mixed` says that words of
    another value occur too; `unresolved` lists words that were decided with little confidence,
    have no equivalent or need a look at their grammar.
    """

    text: str
    to: str
    value: str | None
    changed: bool
    mixed: bool
    replaced: int
    unresolved: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwappedTexts:
    """Many texts under one value, by column; `unresolved` has the rows that have any."""

    texts: list[str | None]
    to: str
    values: list[str | None]
    changed: NDArray[np.bool_]
    mixed: NDArray[np.bool_]
    replaced: NDArray[np.int64]
    unresolved: Mapping[int, tuple[str, ...]]
    missing: int

    def __len__(self) -> int:
        return len(self.texts)


def swap(
    text: str,
    *,
    to: str,
    lexicon: Lexicon | str = "gender_pronouns",
    source: str | None = None,
    tagger: Tagger | None = None,
) -> Swapped:
    """The text as it would read under the value `to`; unchanged if it is there already.

    `source` is the value of the person the text is about; without it the text's own words
    decide by majority. In a mixed text the two values are exchanged. A `tagger` (such as a
    spaCy pipeline) gives tokens with `idx` and `tag_`.

    Examples:
        >>> swap("Her research is hers; ask her.", to="male").text
        'His research is his; ask him.'
        >>> swap("She's here.", to="female").changed
        False
    """
    if isinstance(text, Swapped):
        raise UsageError(
            "This text is swapped already. Swap the original: mrs, mr, ms does not lead back."
        )
    if not isinstance(text, str):
        raise DataError(f"swap needs a text, not {type(text).__name__} ({text!r:.40}).")
    words = _loaded(lexicon)
    words.check_value(to, argument="to")
    if source is not None:
        words.check_value(source, argument="source")
    new, value, mixed, replaced, unresolved = compiled(words).rewrite(
        text, to=to, source=source, tagger=tagger
    )
    return Swapped(
        text=new,
        to=to,
        value=value,
        changed=new != text,
        mixed=mixed,
        replaced=replaced,
        unresolved=unresolved,
    )


def swap_texts(
    texts: Iterable[str | None],
    *,
    to: str,
    lexicon: Lexicon | str = "gender_pronouns",
    sources: Sequence[str | None] | None = None,
    tagger: Tagger | None = None,
    seen: set[str] | None = None,
) -> SwappedTexts:
    """Many texts under the value `to`; null texts stay null and are counted.

    Words of the lexicon that stand in the texts are added to those `seen`.

    Examples:
        >>> done = swap_texts(["He ran.", None, "It rained."], to="female")
        >>> done.texts, done.changed.tolist(), done.missing
        (['She ran.', None, 'It rained.'], [True, False, False], 1)
    """
    words = _loaded(lexicon)
    words.check_value(to, argument="to")
    rows = list(texts)
    own = [None] * len(rows) if sources is None else list(sources)
    if len(own) != len(rows):
        raise UsageError(f"sources has {len(own)} values for {len(rows)} texts. Give one a text.")
    for value in set(own) - {None}:
        words.check_value(str(value), argument="sources")
    rewrite = compiled(words).rewrite
    out: list[str | None] = []
    values: list[str | None] = []
    mixed, replaced = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=np.int64)
    changed = np.zeros(len(rows), dtype=bool)
    unresolved: dict[int, tuple[str, ...]] = {}
    missing = 0
    for row, (text, source) in enumerate(zip(rows, own)):
        if not isinstance(text, str):
            if text is not None:
                raise DataError(
                    f"Row {row} has {type(text).__name__} ({text!r:.40}) where a text should be. "
                    "Convert the column to text first."
                )
            missing += 1
            out.append(None)
            values.append(source)
            continue
        new, value, both, count, left = rewrite(
            text, to=to, source=source, tagger=tagger, seen=seen
        )
        out.append(new)
        values.append(value)
        if both:
            mixed[row] = True
        if count:
            replaced[row] = count
            changed[row] = new != text
        if left:
            unresolved[row] = left
    return SwappedTexts(
        texts=out,
        to=to,
        values=values,
        changed=changed,
        mixed=mixed,
        replaced=replaced,
        unresolved=unresolved,
        missing=missing,
    )


def _loaded(lexicon: Lexicon | str) -> Lexicon:
    if isinstance(lexicon, Lexicon):
        return lexicon
    return _shipped(lexicon) if lexicon in _shipped_names() else load_lexicon(lexicon)


@cache
def _shipped_names() -> frozenset[str]:
    return frozenset(shipped_lexicons())


@cache
def _shipped(name: str) -> Lexicon:
    """A shipped lexicon, read once: reading it takes as long as swapping a hundred texts."""
    return load_lexicon(name)
