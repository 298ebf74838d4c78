"""What every representation of words is: counts of its words, and a vector for each word.

A bag of words has no vectors: its features are the counts. Any other's features are the mean
vector of a text's words, (counts @ embedding) / words, so that leaving words out for one class
needs no new corpus.
"""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.models.corpus import Corpus

Features = Any  # a CSR matrix (bag of words) or an array (vectors), float32


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
