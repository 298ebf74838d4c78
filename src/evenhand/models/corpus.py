"""Texts as word numbers: tokenised once, shared by every representation."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from evenhand.errors import DataError
from evenhand.models.design import runs, thread_count

# Runs of two or more letters, digits or underscores: what r"\b\w\w+\b" finds in Python, written
# in the classes that Python's \w stands for, because Rust's \w has others besides.
WORD = r"[\p{L}\p{N}_]{2,}"
TEXTS_AT_ONCE = 16_384


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """Texts as one row of word numbers, cut at `starts`; `words` are distinct and sorted.

    Examples:
        >>> corpus = Corpus.from_texts(["The cat, the hat.", "", "A cat"])
        >>> corpus.words, corpus.tokens.tolist(), corpus.starts.tolist()
        (('cat', 'hat', 'the'), [2, 0, 2, 1, 0], [0, 4, 4, 5])
        >>> corpus.counts.toarray().astype(int).tolist()
        [[1, 1, 2], [0, 0, 0], [1, 0, 0]]
    """

    words: tuple[str, ...]
    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str | None] | pl.Series,
        *,
        lowercase: bool = True,
        pattern: str = WORD,
        threads: int | None = None,
    ) -> Self:
        """Texts cut into words, those that match `pattern` (a Rust regular expression).

        A missing text is an empty one. Lower-cased words of the default pattern are exactly those
        of scikit-learn's CountVectorizer.
        """
        try:
            column = pl.Series(texts, dtype=pl.String, strict=True)
        except (TypeError, pl.exceptions.PolarsError):
            raise DataError(
                "The texts are not all strings. Convert the column to strings first."
            ) from None

        def cut(part: slice) -> tuple[NDArray[Any], pl.Series, NDArray[Any]]:
            piece = column[part]
            piece = piece.str.to_lowercase() if lowercase else piece
            found = piece.str.extract_all(pattern)
            lengths = found.list.len().fill_null(0).to_numpy()
            tokens = found.explode().drop_nulls()
            words = tokens.unique().sort()
            return lengths, words, numbered(tokens, words)

        with ThreadPoolExecutor(thread_count(threads)) as pool:
            parts = list(pool.map(cut, runs(len(column), TEXTS_AT_ONCE)))
        if not parts:
            return cls.from_tokens([])
        words = pl.concat([known for _, known, _ in parts]).unique().sort()
        tokens = [numbered(known, words)[numbers] for _, known, numbers in parts]
        lengths = np.concatenate([lengths for lengths, _, _ in parts])
        return cls(
            words=tuple(words.to_list()),
            tokens=np.concatenate(tokens).astype(np.int32),
            starts=starts_of(lengths),
        )

    @classmethod
    def from_tokens(cls, documents: Iterable[Sequence[str]]) -> Self:
        """Documents that are cut into words already, kept as they are."""
        documents = list(documents)
        words = tuple(sorted({word for document in documents for word in document}))
        number = {word: k for k, word in enumerate(words)}
        tokens = [number[word] for document in documents for word in document]
        return cls(
            words=words,
            tokens=np.array(tokens, dtype=np.int32),
            starts=starts_of(np.array([len(document) for document in documents], dtype=np.int64)),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def counts(self) -> sparse.csr_matrix:
        """How often each word stands in each text: texts × words, float32."""
        ones = np.ones(self.tokens.size, dtype=np.float32)
        narrow = self.tokens.size < 2**31
        starts: NDArray[Any] = self.starts.astype(np.int32 if narrow else np.int64)
        shape = (len(self), len(self.words))
        # A copy of the tokens: adding up duplicates works in place.
        table = sparse.csr_matrix((ones, self.tokens.copy(), starts), shape=shape)
        table.sum_duplicates()
        return table

    @cached_property
    def frequencies(self) -> NDArray[np.int64]:
        """How often each word stands in all texts together."""
        return np.bincount(self.tokens, minlength=len(self.words))

    def take(self, rows: NDArray[Any] | Sequence[int]) -> Self:
        """The corpus of these texts alone (row numbers or a mask), over the same words."""
        picked = np.arange(len(self))[np.asarray(rows)]
        lengths = np.diff(self.starts)[picked]
        starts = starts_of(lengths)
        place = np.arange(starts[-1]) + np.repeat(self.starts[:-1][picked] - starts[:-1], lengths)
        return type(self)(words=self.words, tokens=self.tokens[place], starts=starts)


def numbered(tokens: pl.Series, words: pl.Series) -> NDArray[np.uint32]:
    """Place of each token among the words."""
    numbers: NDArray[np.uint32] = (
        tokens.cast(pl.Enum(words)).to_physical().cast(pl.UInt32).to_numpy()
    )
    return numbers


def starts_of(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Where each run of these lengths starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
