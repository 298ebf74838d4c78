"""Words taken out of a text: titles, so that it does not contain its own label, and its group's.

`mask_titles` puts a mask where a title stood; `scrub` removes pronouns, forms of address and names.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError, nearest
from evenhand.text.tokens import TITLE_FORMS

# Cheng et al. (2023); the public corpus tool leaves ph and dr in and writes "_" instead.
SCRUBBED_WORDS = (
    "he", "she", "her", "his", "him", "hers", "himself", "herself", "mr", "mrs", "ms", "ph", "dr",
)  # fmt: skip
# After these a capital may open a sentence, so that it does not tell a name.
SENTENCE_ENDS = '.!?…:"“”\\n'
_ARTICLE = re.compile(r"\ban?\s+$", re.IGNORECASE)
_SENTENCE_END = re.compile(f"[{SENTENCE_ENDS}]")
_WORD = re.compile(r"(\w+)")
_SPACES = re.compile(r"[ \t]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A text with titles masked; `article_leak` where "a" or "an" before a mask still tells."""

    text: str
    masked: int
    article_leak: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedTexts:
    """Many masked texts, by column; a row where `masked` is 0 had no form of the title."""

    texts: list[str | None]
    masked: NDArray[np.int64]
    article_leak: NDArray[np.bool_]
    missing: int

    def __len__(self) -> int:
        return len(self.texts)


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


def mask_titles(text: str, *, forms: str | Iterable[str], mask: str = "_") -> Masked:
    """The text with every form of a title, singular or plural, replaced by a mask.

    Longer forms first ("associate professor" before "professor"), whatever the case. The
    article before a mask is kept and flagged: "an _" is an attorney rather than a nurse.

    Examples:
        >>> mask_titles("Alice is a nurse working at a hospital", forms="nurse").text
        'Alice is a _ working at a hospital'
    """
    if not isinstance(text, str):
        raise DataError(f"mask_titles needs a text, not {type(text).__name__} ({text!r:.40}).")
    return _mask(text, _pattern([forms] if isinstance(forms, str) else forms), mask)


def mask_texts(
    texts: Iterable[str | None],
    *,
    titles: Sequence[str | None],
    forms: Mapping[str, Sequence[str]] = TITLE_FORMS,
    scope: str = "all",
    among: Iterable[str] | None = None,
    mask: str = "_",
) -> MaskedTexts:
    """Many texts masked: every title of the rows, or with scope="own" each row's own alone.

    A row's own title is its answer, and masking that alone gives the answer away again: a title
    that still stands there is another class's. `among` names all titles where these rows may not
    have them all. One without forms is masked as it is written ("yoga_teacher" as "yoga teacher").

    Examples:
        >>> mask_texts(["She is a nurse.", "A poet."], titles=["nurse", "poet"]).texts
        ['She is a _.', 'A _.']
        >>> mask_texts(["A nurse met a poet."], titles=["nurse"], scope="own").texts
        ['A _ met a poet.']
    """
    if scope not in ("own", "all"):
        raise UsageError(
            f"scope={scope!r} is neither 'own' nor 'all'.{nearest(scope, ['own', 'all'])}"
        )
    rows, labels = list(texts), list(titles)
    if len(rows) != len(labels):
        raise UsageError(f"titles has {len(labels)} values for {len(rows)} texts. Give one a text.")
    patterns: dict[str | None, re.Pattern[str]] = {}
    if scope == "own":
        known = {label for label in labels if label is not None}
        patterns |= {label: _pattern(title_forms([label], forms)) for label in known}
    elif every := title_forms({*(among or ()), *labels} - {None}, forms):
        # A row whose title is not known is masked as well: no answer is needed to mask them all.
        patterns |= dict.fromkeys({*labels, None}, _pattern(every))
    out: list[str | None] = []
    masked, leak = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=bool)
    for row, (text, label) in enumerate(zip(rows, labels)):
        if text is None or label not in patterns:
            out.append(text)
            continue
        if not isinstance(text, str):
            raise DataError(f"Row {row} has {type(text).__name__} where a text should be.")
        done = _mask(text, patterns[label], mask)
        out.append(done.text)
        masked[row], leak[row] = done.masked, done.article_leak
    missing = sum(text is None for text in rows)
    return MaskedTexts(texts=out, masked=masked, article_leak=leak, missing=missing)


def title_forms(
    titles: Iterable[str | None], forms: Mapping[str, Sequence[str]] = TITLE_FORMS
) -> tuple[str, ...]:
    """Every way to write these titles, themselves included, in one order.

    Examples:
        >>> title_forms(["paralegal", "cook"])
        ('cook', 'legal assistant', 'paralegal')
    """
    known = {title for title in titles if title is not None}
    return tuple(sorted({form for title in known for form in (*forms.get(title, ()), title)}))


def scrub(
    text: str,
    *,
    names: str | Iterable[str] = (),
    words: Iterable[str] = SCRUBBED_WORDS,
    capitalised: Iterable[str] = (),
    replacement: str = "",
) -> Scrubbed:
    """The text without pronouns, titles and the person's names, whatever their case.

    A single letter of the name (an initial) goes only as a capital beside another of the names,
    so that an initial A does not take every article along. Words of `capitalised` (Rose, Mark) go
    where they have a capital inside a sentence.

    Examples:
        >>> scrub("Dr. Jane Doe earned her Ph.D. in 1999.", names="Jane Doe").text
        '. earned .D. in 1999.'
        >>> scrub("She herself").empty
        True
    """
    if not isinstance(text, str):
        raise DataError(f"scrub needs a text, not {type(text).__name__} ({text!r:.40}).")
    drop = frozenset(word.lower() for word in words)
    risen = frozenset(word.lower() for word in capitalised)
    new, removed = _scrub(text, drop, _name_words(names), risen, replacement)
    return Scrubbed(text=new, removed=removed, empty=_is_empty(new))


def scrub_texts(
    texts: Iterable[str | None],
    *,
    names: Sequence[str | Iterable[str] | None] | None = None,
    words: Iterable[str] = SCRUBBED_WORDS,
    capitalised: Iterable[str] = (),
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
    risen = frozenset(word.lower() for word in capitalised)
    out: list[str | None] = []
    removed = np.zeros(len(rows), dtype=np.int64)
    empty = np.zeros(len(rows), dtype=bool)
    for row, (text, name) in enumerate(zip(rows, own)):
        if text is None:
            out.append(None)
            continue
        if not isinstance(text, str):
            raise DataError(f"Row {row} has {type(text).__name__} where a text should be.")
        new, removed[row] = _scrub(text, drop, _name_words(name or ()), risen, replacement)
        empty[row] = removed[row] > 0 and _is_empty(new)
        out.append(new)
    missing = sum(text is None for text in rows)
    return ScrubbedTexts(texts=out, removed=removed, empty=empty, missing=missing)


def name_parts(names: Iterable[str | None]) -> set[str]:
    """The words of people's names in lower case: the first that have a capital, without initials.

    What follows a small word or a comma is mostly where somebody is from (of York, Duke of Kent).

    Examples:
        >>> sorted(name_parts(["Ann B. Poe", "Maud of Wales, Queen", None, "bell hooks"]))
        ['ann', 'bell', 'hooks', 'maud', 'poe']
    """
    found: set[str] = set()
    for name in names:
        words = _WORD.findall((name or "").partition(",")[0])
        small = next((at for at, word in enumerate(words) if not word[:1].isupper()), len(words))
        parts = words[:small] or words
        found.update(word.lower() for word in parts if len(word) > 1)
    return found


def _mask(text: str, pattern: re.Pattern[str], mask: str) -> Masked:
    lowered = text.lower()
    if len(lowered) != len(text):
        # Lower-casing can change the length of a text (İ); such characters stay as they are.
        lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    pieces, end = [], 0
    for found in pattern.finditer(lowered):
        pieces.append(text[end : found.start()])
        end = found.end()
    if not pieces:
        return Masked(text=text, masked=0, article_leak=False)
    pieces.append(text[end:])
    leak = any(_ARTICLE.search(before) for before in pieces[:-1])
    return Masked(text=mask.join(pieces), masked=len(pieces) - 1, article_leak=leak)


def _pattern(forms: Iterable[str]) -> re.Pattern[str]:
    """Every form and its plural, the longest first; words apart by spaces or hyphens.

    For texts in lower case: where case is ignored, every form is tried at every word.
    """
    spellings = {
        spelling
        for form in forms
        for spelling in (form.replace("_", " ").lower(), _plural(form.replace("_", " ").lower()))
        if spelling.strip()
    }
    if not spellings:
        raise UsageError("forms is empty. Give at least one form of the title to be masked.")
    ordered = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
    parts = (r"[\s-]+".join(map(re.escape, spelling.split())) for spelling in ordered)
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)")


def _plural(form: str) -> str:
    if re.search(r"(?:s|sh|ch|x|z)$", form):
        return f"{form}es"
    if re.search(r"[^aeiou]y$", form):
        return f"{form[:-1]}ies"
    return f"{form}s"


def _name_words(names: str | Iterable[str]) -> frozenset[str]:
    whole = names if isinstance(names, str) else " ".join(names)
    return frozenset(_WORD.findall(whole.lower())) if whole else frozenset()


def _scrub(
    text: str,
    drop: frozenset[str],
    names: frozenset[str],
    capitalised: frozenset[str],
    replacement: str,
) -> tuple[str, int]:
    pieces = _WORD.split(text)
    lowered = text.lower()
    # Lower-casing can change the length of a text (İ); its words are then lowered one by one.
    low = _WORD.findall(lowered) if len(lowered) == len(text) else []
    if len(low) != len(pieces) // 2:
        low = [word.lower() for word in pieces[1::2]]
    removed = 0
    for at, word in enumerate(low):
        if (
            word in drop
            or (word in names and _is_name(pieces, low, at, names))
            or (word in capitalised and _is_risen(pieces, at))
        ):
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


def _is_risen(pieces: list[str], at: int) -> bool:
    """Whether a word has a capital that no start of a sentence explains."""
    before = pieces[2 * at]
    return at > 0 and pieces[2 * at + 1][:1].isupper() and not _SENTENCE_END.search(before)


def _is_empty(text: str) -> bool:
    return _WORD.search(text) is None
