"""Bag of words: how often each word of a chosen vocabulary stands in a text."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.errors import DataError, UsageError
from evenhand.models.corpus import Corpus
from evenhand.models.representation import known_counts


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
