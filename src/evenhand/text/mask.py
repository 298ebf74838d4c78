"""Masking of occupation titles, so that a text does not contain its own label."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError, nearest
from evenhand.text.titles import TITLE_FORMS

_ARTICLE = re.compile(r"\ban?\s+$", re.IGNORECASE)


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
    scope: str = "own",
    mask: str = "_",
) -> MaskedTexts:
    """Many texts masked: each row's own title, or with scope="all" every title there is.

    A title without forms is masked as it is written ("yoga_teacher" as "yoga teacher").

    Examples:
        >>> mask_texts(["She is a nurse.", "A poet."], titles=["nurse", "nurse"]).texts
        ['She is a _.', 'A poet.']
    """
    if scope not in ("own", "all"):
        raise UsageError(
            f"scope={scope!r} is neither 'own' nor 'all'.{nearest(scope, ['own', 'all'])}"
        )
    rows, labels = list(texts), list(titles)
    if len(rows) != len(labels):
        raise UsageError(f"titles has {len(labels)} values for {len(rows)} texts. Give one a text.")
    known = {label: (*forms.get(label, ()), label) for label in set(labels) if label is not None}
    if scope == "all":
        everything = [form for each in (*known.values(), *forms.values()) for form in each]
        patterns = dict.fromkeys(known, _pattern(everything))
    else:
        patterns = {label: _pattern(each) for label, each in known.items()}
    out: list[str | None] = []
    masked, leak = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=bool)
    for row, (text, label) in enumerate(zip(rows, labels)):
        if text is None or label is None:
            out.append(text)
            continue
        if not isinstance(text, str):
            raise DataError(f"Row {row} has {type(text).__name__} where a text should be.")
        done = _mask(text, patterns[label], mask)
        out.append(done.text)
        masked[row], leak[row] = done.masked, done.article_leak
    missing = sum(text is None for text in rows)
    return MaskedTexts(texts=out, masked=masked, article_leak=leak, missing=missing)


def _mask(text: str, pattern: re.Pattern[str], mask: str) -> Masked:
    pieces = pattern.split(text)
    leak = any(_ARTICLE.search(before) for before in pieces[:-1])
    return Masked(text=mask.join(pieces), masked=len(pieces) - 1, article_leak=leak)


def _pattern(forms: Iterable[str]) -> re.Pattern[str]:
    """Every form and its plural, the longest first; words apart by spaces or hyphens."""
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
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)", re.IGNORECASE)


def _plural(form: str) -> str:
    if re.search(r"(?:s|sh|ch|x|z)$", form):
        return f"{form}es"
    if re.search(r"[^aeiou]y$", form):
        return f"{form[:-1]}ies"
    return f"{form}s"
