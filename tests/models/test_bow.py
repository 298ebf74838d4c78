import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from evenhand.errors import DataError, UsageError
from evenhand.models.corpus import BagOfWords, Corpus, kept_columns, pooled

TRAIN = Corpus.from_texts(["the cat sat", "the hat", "the cat on the mat", "a rat"])


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def test_vocabulary_by_count_and_size():
    # the 4, cat 2, and hat, mat, on, rat, sat once each.
    assert BagOfWords().fit(TRAIN).words == ("cat", "hat", "mat", "on", "rat", "sat", "the")
    assert BagOfWords(minimum=2).fit(TRAIN).words == ("cat", "the")
    assert BagOfWords(largest=3).fit(TRAIN).words == ("cat", "hat", "the")


def test_other_texts_are_counted_over_the_same_words():
    bag = BagOfWords(minimum=2).fit(TRAIN)
    other = Corpus.from_texts(["zebra the the", "", "cat"])
    assert bag.features(other).toarray().tolist() == [[0, 2], [0, 0], [1, 0]]
    assert bag.features(TRAIN).toarray().tolist() == [[1, 1], [0, 1], [1, 2], [0, 0]]
    assert bag.embedding is None


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_words_left_out_are_subtracted_or_skipped_alike(seed):
    generator = np.random.default_rng(seed)
    table = generator.poisson(0.4, size=(6, 9)).astype(np.float32)
    vectors = generator.normal(size=(9, 3)).astype(np.float32)
    keep = generator.random(9) < generator.random()
    counts = sparse.csr_matrix(table)
    words = table[:, keep].sum(1)
    expected = table[:, keep] @ vectors[keep] / np.maximum(words, 1)[:, None]
    sums = counts @ vectors
    found = pooled(counts, vectors, keep=keep, sums=sums)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(pooled(counts, vectors, keep=keep), expected, atol=1e-5)
    assert (found[words == 0] == 0).all()
    assert (kept_columns(counts, keep).toarray() == table * keep).all()
    np.testing.assert_array_equal(pooled(counts, None, keep=keep).toarray(), table * keep)
    np.testing.assert_array_equal(pooled(counts, vectors, sums=sums), pooled(counts, vectors))


def test_refusals_in_words():
    with says(
        DataError,
        "No word occurs 9 times or more in the 4 texts. "
        "See whether the texts are empty, or lower the minimum.",
    ):
        BagOfWords(minimum=9).fit(TRAIN)
    with says(UsageError, "largest=0 is not a number of words. Give 1 or more."):
        BagOfWords(largest=0)
    with says(UsageError, "minimum=0 is not a count. Give 1 or more."):
        BagOfWords(minimum=0)
