"""Word vectors as a representation: from a file, or learned from the corpus itself."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.errors import DataError, UsageError
from evenhand.models.corpus import Corpus, frequent_words, known_counts, pooled
from evenhand.models.vector_files import read_vectors

POWER_ROUNDS = 4
MORE_COLUMNS = 10
# Rare contexts would otherwise dominate the information they share (Levy et al. 2015).
CONTEXT_POWER = 0.75


@dataclass(slots=True)
class WordVectors:
    """Mean of the vectors of a text's words; words without a vector are skipped.

    With a `path`, vectors come from the file. Without one they are learned from the training
    texts, so that nothing need be downloaded: positive mutual information of words that stand
    within `window` of each other, brought to `width` dimensions.

    Examples:
        >>> texts = ["red blue green"] * 9 + ["cat dog mouse"] * 9
        >>> model = WordVectors(width=2, minimum=1).fit(Corpus.from_texts(texts))
        >>> near = cosine_weights(model.embedding, model.embedding[[model.words.index("red")]])
        >>> [word for word, weight in zip(model.words, near[0]) if weight > 0.5]
        ['blue', 'green', 'red']
    """

    path: Path | str | None = None
    width: int = 100
    window: int = 5
    largest: int = 85_000
    minimum: int | None = None
    seed: int = 0
    words: tuple[str, ...] = field(default=(), init=False)
    embedding: NDArray[np.float32] | None = field(default=None, init=False, repr=False)
    coverage: float = field(default=float("nan"), init=False)

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UsageError(f"width={self.width} is not a number of dimensions. Give 1 or more.")
        if self.window < 1:
            raise UsageError(f"window={self.window} is not a number of words. Give 1 or more.")

    def fit(self, corpus: Corpus) -> Self:
        """Load the vectors of the corpus's words, or learn them; `coverage` is their share."""
        minimum = self.minimum or (1 if self.path is not None else 5)
        words = frequent_words(corpus, largest=self.largest, minimum=minimum)
        if self.path is None:
            self.words = words
            self.embedding = learned_vectors(
                corpus, words, width=self.width, window=self.window, seed=self.seed
            )
        else:
            self.words, self.embedding = read_vectors(self.path, wanted=words)
            if not self.words:
                raise DataError(
                    f"vectors={str(self.path)!r} has none of the {len(words)} words of the texts. "
                    "See whether its language and its case are those of the texts."
                )
        self.coverage = float(self.counts(corpus).sum() / max(1, corpus.tokens.size))
        return self

    def counts(self, corpus: Corpus) -> sparse.csr_matrix:
        """Counts of the words that have vectors: texts × words."""
        return known_counts(corpus, self.words)

    def features(self, corpus: Corpus) -> NDArray[np.float32]:
        """Mean vector of each text; zeros where no word has one."""
        mean: NDArray[np.float32] = pooled(self.counts(corpus), self.embedding)
        return mean


def cosine_weights(embedding: NDArray[Any], directions: NDArray[Any]) -> NDArray[np.float64]:
    """Weight of each word in linear models of mean vectors: cosine of its vector and theirs.

    Returns models × words; 0 where either is all zeros.

    Examples:
        >>> cosine_weights(np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[1.0, 0.0]])).tolist()
        [[1.0, 0.6]]
    """
    vectors, models = (np.asarray(table, dtype=np.float64) for table in (embedding, directions))
    sizes = np.linalg.norm(models, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    weights = np.zeros(sizes.shape)
    np.divide(models @ vectors.T, sizes, out=weights, where=sizes > 0)
    return weights


def learned_vectors(
    corpus: Corpus, words: tuple[str, ...], *, width: int, window: int, seed: int
) -> NDArray[np.float32]:
    """Vectors of words from the company they keep: truncated SVD of positive information."""
    together = neighbours(corpus, words, window=window)
    if not together.nnz:
        raise DataError(
            f"No two of the {len(words)} frequent words stand within {window} words of each other. "
            "Give longer texts, or a file of vectors."
        )
    information = positive_information(together)
    left, sizes = truncated_svd(information, width=min(width, len(words)), seed=seed)
    return (left * np.sqrt(sizes)).astype(np.float32)


def neighbours(corpus: Corpus, words: tuple[str, ...], *, window: int) -> sparse.csr_matrix:
    """How often each word stands within `window` of each other in the same text; symmetric."""
    place = {word: k for k, word in enumerate(words)}
    column = np.array([place.get(word, -1) for word in corpus.words], dtype=np.int32)
    tokens = column[corpus.tokens]
    text = np.repeat(np.arange(len(corpus), dtype=np.int32), np.diff(corpus.starts))
    shape = (len(words), len(words))
    total: Any = sparse.csr_matrix(shape, dtype=np.float32)  # type: ignore[arg-type]
    for distance in range(1, min(window, tokens.size - 1) + 1):
        a, b = tokens[:-distance], tokens[distance:]
        pair = (a >= 0) & (b >= 0) & (text[:-distance] == text[distance:])
        ones = np.ones(int(pair.sum()), dtype=np.float32)
        total = total + sparse.csr_matrix((ones, (a[pair], b[pair])), shape=shape)
    return sparse.csr_matrix(total + total.T)


def positive_information(together: sparse.csr_matrix) -> sparse.csr_matrix:
    """Pointwise mutual information of pairs where it is above 0, contexts smoothed."""
    table = together.tocoo()
    word = np.asarray(together.sum(axis=1), dtype=np.float64).ravel()
    context = word**CONTEXT_POWER
    expected = word[table.row] * context[table.col] / context.sum()
    value = np.log(table.data / expected)
    keep = value > 0
    entries = (value[keep].astype(np.float32), (table.row[keep], table.col[keep]))
    return sparse.csr_matrix(entries, shape=together.shape)


def truncated_svd(
    matrix: sparse.csr_matrix, *, width: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Largest singular values and their left vectors by a randomised range (Halko et al. 2011)."""
    columns = min(width + MORE_COLUMNS, matrix.shape[0])
    start = np.random.default_rng(seed).standard_normal((matrix.shape[1], columns))
    turned = matrix.T.tocsr()
    base = matrix @ start.astype(np.float32)
    for _ in range(POWER_ROUNDS):
        base = matrix @ orthonormal(turned @ orthonormal(base, rounds=1), rounds=1)
    base = orthonormal(base, rounds=2)
    small = (turned @ base).astype(np.float64)
    squares, mix = np.linalg.eigh(small.T @ small)
    order = np.argsort(-squares)[:width]
    vectors = base @ mix[:, order].astype(np.float32)
    # Signs of singular vectors are arbitrary: fixed, so that every machine gives the same.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    sizes = np.sqrt(np.maximum(squares[order], 0)).astype(np.float32)
    return vectors * np.where(signs == 0, 1, signs), sizes


def orthonormal(table: NDArray[np.float32], *, rounds: int) -> NDArray[np.float32]:
    """Columns that span the same space at right angles, by way of their inner products.

    Quicker on a tall table than a QR decomposition; a second round takes away the rounding.
    """
    base = table.astype(np.float64)
    for _ in range(rounds):
        squares, turn = np.linalg.eigh(base.T @ base)
        floor = squares[-1] * 1e-14
        base = base @ (turn / np.sqrt(np.maximum(squares, max(floor, 1e-300))))
    return base.astype(np.float32)
