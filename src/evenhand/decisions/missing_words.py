"""Words that stand for no value: those that tables have for it, and those that somebody names."""

from collections.abc import Callable, Iterable, Sequence
from shlex import quote
from typing import Any

import narwhals as nw

from evenhand.decisions.labels import label

# What R, pandas, spreadsheets and databases write where a value is missing.
UNKNOWN_WORDS = (
    "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "NaN", "nan", "NaT", "-", "?", ".", "inf",
    "<NA>", "unknown",
)  # fmt: skip


def plain_word(text: str) -> str:
    """A word as it is compared: case and spaces around it count for nothing.

    Examples:
        >>> plain_word(" N/A ") == plain_word("n/a")
        True
    """
    return text.strip().lower()


_UNKNOWN = frozenset(map(plain_word, UNKNOWN_WORDS))


def means_unknown(text: str) -> bool:
    """Whether tables have this word where a value is missing.

    Examples:
        >>> [means_unknown(text) for text in ("na", "<NA>", "?", "no", "")]
        [True, True, True, False, False]
    """
    return plain_word(text) in _UNKNOWN


def missing_words(given: Any) -> tuple[str, ...]:
    """The words that somebody says stand for no value: some, or a text with commas between them.

    Examples:
        >>> missing_words("NA,n/a"), missing_words(["unknown, yet", -9])
        (('NA', 'n/a'), ('unknown, yet', '-9'))
    """
    if isinstance(given, str):
        words: Iterable[str] = given.split(",")
    elif isinstance(given, Iterable):
        words = (str(label(word)) for word in given)
    else:
        words = [str(label(given))]
    return tuple(dict.fromkeys(word.strip() for word in words))


def is_one_of(words: Sequence[str]) -> Callable[[str], bool]:
    """Whether a text is one of these words."""
    plain = frozenset(map(plain_word, words))
    return lambda text: plain_word(text) in plain


def without_words(column: str, words: Sequence[str]) -> nw.Expr:
    """A column of texts, null where it has one of these words.

    Examples:
        >>> import polars as pl
        >>> table = nw.from_native(pl.DataFrame({"y": ["1", "NA", " na", None, "0"]}))
        >>> table.select(without_words("y", ["NA"]))["y"].to_list()
        ['1', None, None, None, '0']
    """
    text = nw.col(column).cast(nw.String)
    plain = list(dict.fromkeys(map(plain_word, words)))
    known = ~text.str.strip_chars().str.to_lowercase().is_in(plain)
    return nw.when(known).then(text).alias(column)


def words_hint(words: Sequence[str]) -> str:
    """How to say that these words stand for no value.

    Examples:
        >>> words_hint(["NA", "?"])
        "--missing-words 'NA,?' (missing_words=['NA', '?'])"
    """
    return f"--missing-words {quote(','.join(words))} (missing_words={list(words)})"
