"""Texts as word numbers, tokenised once, and what a representation makes of them.

`Corpus` is shared by every representation; `BagOfWords` counts its words.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from evenhand.errors import DataError, UsageError
from evenhand.models.logistic import row_slices, thread_count

# Runs of two or more letters, digits or underscores: what r"\b\w\w+\b" finds in Python, written
# in the classes that Python's \w stands for, because Rust's \w has others besides.
WORD = r"[\p{L}\p{N}_]{2,}"
TEXTS_AT_ONCE = 16_384
Features = Any  # a CSR matrix (bag of words) or an array (vectors), float32


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
            return lengths, words, word_numbers(tokens, words)

        with ThreadPoolExecutor(thread_count(threads)) as pool:
            parts = list(pool.map(cut, row_slices(len(column), TEXTS_AT_ONCE)))
        if not parts:
            return cls.from_tokens([])
        words = pl.concat([known for _, known, _ in parts]).unique().sort()
        tokens = [word_numbers(known, words)[numbers] for _, known, numbers in parts]
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


def word_numbers(tokens: pl.Series, words: pl.Series) -> NDArray[np.uint32]:
    """Place of each token among the words."""
    numbers: NDArray[np.uint32] = (
        tokens.cast(pl.Enum(words)).to_physical().cast(pl.UInt32).to_numpy()
    )
    return numbers


def starts_of(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Where each run of these lengths starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


class Representation(Protocol):
    """Texts as rows of numbers, learned from a training corpus."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words it knows, sorted; columns of `counts`, rows of `embedding`."""

    @property
    def embedding(self) -> NDArray[np.float32] | None:
        """A vector for each word, words × width, or None where the counts are the features."""

    def fit(self, corpus: Corpus) -> Self:
        """Choose the words, and learn or load their vectors."""

    def counts(self, corpus: Corpus) -> sparse.csr_matrix:
        """Counts of the known words in any corpus: texts × words."""

    def features(self, corpus: Corpus) -> Features:
        """Features of any corpus: `pooled(counts, embedding)`."""


def known_counts(corpus: Corpus, words: tuple[str, ...]) -> sparse.csr_matrix:
    """Counts of these words, which are sorted, in a corpus; all others are left out."""
    place = {word: k for k, word in enumerate(words)}
    column = np.fromiter(
        (place.get(word, -1) for word in corpus.words), dtype=np.int32, count=len(corpus.words)
    )
    table = corpus.counts
    moved = column[table.indices]
    return kept_entries(table, moved >= 0, indices=moved, width=len(words))


def kept_columns(counts: sparse.csr_matrix, keep: NDArray[np.bool_]) -> sparse.csr_matrix:
    """The counts with all columns outside `keep` emptied; same shape."""
    return kept_entries(counts, keep[counts.indices], indices=counts.indices, width=counts.shape[1])


def kept_entries(
    table: sparse.csr_matrix, keep: NDArray[np.bool_], *, indices: NDArray[Any], width: int
) -> sparse.csr_matrix:
    """The stored entries marked in `keep`, at these columns."""
    before = np.concatenate([[0], np.cumsum(keep)])
    starts = before[table.indptr].astype(table.indptr.dtype)
    shape = (table.shape[0], width)
    return sparse.csr_matrix((table.data[keep], indices[keep], starts), shape=shape)


def pooled(
    counts: sparse.csr_matrix,
    embedding: NDArray[np.float32] | None,
    *,
    keep: NDArray[np.bool_] | None = None,
    sums: NDArray[np.float32] | None = None,
) -> Features:
    """Features of texts from the words in `keep` alone: counts, or the mean of their vectors.

    `sums`, counts @ embedding over all words, is made once and shared: where fewer words are left
    out than kept, theirs are subtracted from it. A text without any word is a row of zeros.

    Examples:
        >>> counts = sparse.csr_matrix(np.array([[2, 1], [0, 1]], dtype=np.float32))
        >>> vectors = np.array([[1, 0], [4, 2]], dtype=np.float32)
        >>> pooled(counts, vectors).tolist()
        [[2.0, 0.6666666865348816], [4.0, 2.0]]
        >>> pooled(counts, vectors, keep=np.array([True, False])).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    if embedding is None:
        return counts if keep is None else kept_columns(counts, keep)
    if keep is None:
        total = counts @ embedding if sums is None else sums
        words = row_sums(counts)
    else:
        left = kept_columns(counts, ~keep)
        words = row_sums(counts) - row_sums(left)
        if sums is not None and left.nnz < counts.nnz / 2:
            total = sums - left @ embedding
        else:
            total = kept_columns(counts, keep) @ embedding
    mean = total / np.maximum(words, 1)[:, None]
    # Subtracting can leave rounding where there is no word at all.
    mean[words == 0] = 0
    return mean.astype(np.float32, copy=False)


def row_sums(counts: sparse.csr_matrix) -> NDArray[np.float32]:
    """Number of words of each text."""
    return counts @ np.ones(counts.shape[1], dtype=counts.dtype)


@dataclass(slots=True)
class BagOfWords:
    """Counts of the most frequent words of the training texts.

    Keeps words that occur at least `minimum` times, the `largest` most frequent of them (ties in
    alphabetical order).

    Examples:
        >>> train = Corpus.from_texts(["the cat sat", "the hat", "the cat"])
        >>> bag = BagOfWords(minimum=2).fit(train)
        >>> bag.words
        ('cat', 'the')
        >>> bag.features(Corpus.from_texts(["the cat the dog"])).toarray().tolist()
        [[1.0, 2.0]]
    """

    largest: int = 85_000
    minimum: int = 1
    words: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if self.largest < 1:
            raise UsageError(f"largest={self.largest} is not a number of words. Give 1 or more.")
        if self.minimum < 1:
            raise UsageError(f"minimum={self.minimum} is not a count. Give 1 or more.")

    @property
    def embedding(self) -> NDArray[np.float32] | None:
        """None: the counts themselves are the features."""
        return None

    def fit(self, corpus: Corpus) -> Self:
        """Choose the vocabulary."""
        self.words = frequent_words(corpus, largest=self.largest, minimum=self.minimum)
        return self

    def counts(self, corpus: Corpus) -> sparse.csr_matrix:
        """Counts of the vocabulary in any corpus: texts × words."""
        return known_counts(corpus, self.words)

    def features(self, corpus: Corpus) -> sparse.csr_matrix:
        """The same counts."""
        return self.counts(corpus)


def frequent_words(corpus: Corpus, *, largest: int, minimum: int) -> tuple[str, ...]:
    """The most frequent words of a corpus, sorted; refused where none is frequent enough."""
    often = corpus.frequencies
    order = np.argsort(-often, kind="stable")[:largest]
    chosen = np.sort(order[often[order] >= minimum])
    if not chosen.size:
        raise DataError(
            f"No word occurs {minimum} times or more in the {len(corpus)} texts. "
            "See whether the texts are empty, or lower the minimum."
        )
    return tuple(corpus.words[k] for k in chosen)
