"""Names of people in texts: which words are names, told by lists and by how the texts write them.

A scorer that knows that Mary is a woman's name reads who is meant, not how people write. The
person's own name is scrubbed from their text; these are the names of everybody else.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.errors import DataError
from evenhand.models.corpus import WORD, Corpus
from evenhand.text.compiled import Tagger
from evenhand.text.mask import SENTENCE_ENDS, name_parts

# A word is written with a capital nearly always if this share of the times inside a sentence is.
NEARLY_ALWAYS = 0.95
# A tagger must call a word part of a person's name in this share of the times it has a capital.
# Less than half, because small taggers take many a first name for a place, and a name left in does
# more harm than a word left out.
TAGGED = 0.3
COLUMN, FILE, TAGGER, CAPITALS = "the name column", "the file", "the tagger", "capitals"
_START = rf"(?:\A|[{SENTENCE_ENDS}])[^\p{{L}}\p{{N}}_]*{WORD}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameWords:
    """Words that are names, in lower case.

    Those of `everywhere` are hardly ever written small, so that no text need keep them. Those of
    `capitalised` are words as well (rose, mark): they are names where they have a capital inside a
    sentence. `sources` counts the words that each list or rule gave.
    """

    everywhere: frozenset[str] = frozenset()
    capitalised: frozenset[str] = frozenset()
    sources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How often a word is written with a capital inside a sentence, all in capitals, or small."""

    risen: int = 0
    shouted: int = 0
    small: int = 0

    @property
    def share(self) -> float:
        """Share of the spellings that have a capital where a plain word has none."""
        capital = self.risen + self.shouted
        return capital / (capital + self.small) if capital + self.small else 1.0


def spellings(texts: Sequence[str | None]) -> dict[str, Spelling]:
    """How the texts write every word, by the word in lower case.

    A capital at the start of a sentence, or after any mark that may end one, tells nothing and
    is not counted.

    Examples:
        >>> found = spellings(["Roses for Rose. Will they rise?", "She met Will and BBC staff."])
        >>> found["rose"], found["will"].risen, found["bbc"].shouted, "they" in found
        (Spelling(risen=1, shouted=0, small=0), 1, 1, True)
    """
    corpus = Corpus.from_texts(texts, lowercase=False)
    starts = pl.Series(texts, dtype=pl.String).str.extract_all(_START).explode().drop_nulls()
    at_start = Counter(starts.str.extract(f"({WORD})$").to_list())
    found: dict[str, list[int]] = {}
    for word, many in zip(corpus.words, corpus.frequencies.tolist(), strict=True):
        counts = found.setdefault(word.lower(), [0, 0, 0])
        if not word[:1].isupper():
            counts[2] += many
        else:
            counts[1 if word.isupper() else 0] += many - at_start[word]
    return {
        word: Spelling(risen=risen, shouted=shouted, small=small)
        for word, (risen, shouted, small) in found.items()
    }


def name_words(
    texts: Sequence[str | None],
    *,
    names: Sequence[str | None] | None = None,
    listed: Sequence[str] = (),
    tagger: Tagger | None = None,
    capitals: bool = False,
) -> NameWords:
    """The words of these texts that are names of people.

    Args:
        texts: The texts themselves, which show how each word is written.
        names: The people's names, from a column; every one counts in all texts.
        listed: Names of a list of the user's own.
        tagger: A spaCy pipeline; what it often calls a person counts.
        capitals: Count every word that is hardly ever written small, so places and months too.

    Examples:
        >>> texts = ["Her husband Mark wrote.", "She met Ann; to mark Ann and rise.", "I mark it."]
        >>> found = name_words(texts, names=["Mark Poe", "Ann Lee", None])
        >>> sorted(found.everywhere), sorted(found.capitalised), dict(found.sources)
        (['ann'], ['mark'], {'the name column': 2})
    """
    if names is None and not listed and tagger is None and not capitals:
        return NameWords()
    written = spellings(texts)
    lists: dict[str, set[str]] = {}
    if names is not None:
        lists[COLUMN] = set(name_parts(names))
    given = {part for name in listed for part in re.findall(r"\w+", name.lower())}
    if given:
        lists[FILE] = given
    if tagger is not None:
        lists[TAGGER] = tagged_words(texts, tagger)
    if capitals:
        lists[CAPITALS] = {
            word
            for word, each in written.items()
            if each.risen > each.shouted and each.share >= NEARLY_ALWAYS
        }
    # Texts without any capital do not tell a name from a word: a list of names alone does.
    cased = any(each.risen for each in written.values())
    known = {word for each in lists.values() for word in each if word in written}
    always = {word for word in known if written[word].share >= NEARLY_ALWAYS}
    everywhere = always if cased else known & given
    capitalised = {word for word in known - everywhere if written[word].risen}
    return NameWords(
        everywhere=frozenset(everywhere),
        capitalised=frozenset(capitalised),
        sources={name: len(each & (everywhere | capitalised)) for name, each in lists.items()},
    )


def tagged_words(texts: Sequence[str | None], tagger: Tagger) -> set[str]:
    """Words that a tagger often calls part of a person's name where they have a capital."""
    person: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    written = [text for text in texts if text]
    pipe: Any = getattr(tagger, "pipe", None)
    for document in map(tagger, written) if pipe is None else pipe(written):
        for token in document:
            for word in re.findall(r"\w+", token.text):
                if word[:1].isupper():
                    capital[word.lower()] += 1
                    person[word.lower()] += token.ent_type_ == "PERSON"
    return {word for word, many in person.items() if many and many >= TAGGED * capital[word]}


def read_names(path: str | Path) -> tuple[str, ...]:
    """Names from a text file, one or more on a line; lines that begin with # are left out.

    Examples:
        >>> read_names("no such file")
        Traceback (most recent call last):
        evenhand.errors.DataError: names='no such file' is not a file. Name a text file with a \
name on every line.
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(
            f"names={str(path)!r} is not a file. Name a text file with a name on every line."
        )
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"names={str(path)!r} cannot be read as text: {error}.") from error
    found = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not found:
        raise DataError(f"names={str(path)!r} is empty. It needs a name on every line.")
    return found
