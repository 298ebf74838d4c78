import re
import sys
import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from evenhand.errors import DataError
from evenhand.models import corpus as module
from evenhand.models.corpus import WORD, Corpus

TEXTS = ["The cat, the hat.", "", "A cat's café_1 x", "THE 42 ΣΑΣ İstanbul naïve—yes"]

# Characters of an old Unicode: of newer ones Python and Rust may know different versions.
OLD = unicodedata.ucd_3_2_0
characters = st.characters(codec="utf-8").filter(lambda c: OLD.category(c) != "Cn")
texts = st.lists(
    st.text(alphabet=characters, max_size=30) | st.sampled_from(TEXTS),
    min_size=1,
    max_size=6,
)


def test_counts_equal_scikit_learn():
    vectorizer = CountVectorizer()
    expected = vectorizer.fit_transform(TEXTS)
    corpus = Corpus.from_texts(TEXTS)
    assert list(corpus.words) == vectorizer.get_feature_names_out().tolist()
    assert (corpus.counts != expected).nnz == 0
    assert corpus.counts.dtype == np.float32


@settings(deadline=None, max_examples=60)
@given(texts)
def test_words_equal_scikit_learn_on_any_text(given_texts):
    corpus = Corpus.from_texts(given_texts, threads=1)
    expected = [re.findall(r"(?u)\b\w\w+\b", text.lower()) for text in given_texts]
    found = [
        [corpus.words[k] for k in corpus.tokens[a:b]]
        for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)
    ]
    assert found == expected


def test_every_character_counts_as_in_python():
    known = (chr(k) for k in range(sys.maxunicode + 1))
    every = [c for c in known if OLD.category(c) not in ("Cn", "Cs")]
    assert len(every) > 90_000
    python = [bool(re.fullmatch(r"\w", c)) for c in every]
    rust = pl.Series([c + c for c in every]).str.contains(f"^{WORD}$").to_list()
    different = [c for c, a, b in zip(every, python, rust, strict=True) if a != b]
    assert different == []


def test_parts_are_put_together(monkeypatch):
    whole = Corpus.from_texts(TEXTS * 5)
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 3)
    parts = Corpus.from_texts(TEXTS * 5, threads=2)
    assert parts.words == whole.words
    assert (parts.tokens == whole.tokens).all()
    assert (parts.starts == whole.starts).all()


def test_case_pattern_series_and_ready_tokens():
    assert Corpus.from_texts(["Ab ab"], lowercase=False).words == ("Ab", "ab")
    assert Corpus.from_texts(["a-b c"], pattern=r"[a-z-]+").words == ("a-b", "c")
    series = Corpus.from_texts(pl.Series(["one two", None, "two"]))
    assert np.diff(series.starts).tolist() == [2, 0, 1]
    ready = Corpus.from_tokens([["two", "one"], [], ["two"]])
    assert ready.words == series.words
    assert ready.counts.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert ready.frequencies.tolist() == [1, 2]


def test_rows_taken_by_number_or_mask_keep_the_words():
    corpus = Corpus.from_texts(TEXTS)
    some = corpus.take([3, 0, 0])
    assert some.words == corpus.words
    assert (some.counts != corpus.counts[[3, 0, 0]]).nnz == 0
    masked = corpus.take(np.array([False, True, True, False]))
    assert (masked.counts != corpus.counts[1:3]).nnz == 0
    assert len(corpus.take(np.zeros(4, dtype=bool))) == 0


def test_counting_leaves_the_tokens_as_they_were():
    corpus = Corpus.from_texts(["b a b a aa", "aa bb aa"])
    before = corpus.tokens.copy()
    assert corpus.counts.sum() == before.size
    assert (corpus.tokens == before).all()
    assert corpus.counts is corpus.counts


def test_no_texts_and_no_words():
    assert len(Corpus.from_texts([])) == 0
    empty = Corpus.from_texts(["", None, "!"])
    assert (len(empty), empty.words) == (3, ())
    assert empty.counts.shape == (3, 0)


def test_texts_that_are_not_strings():
    words = "The texts are not all strings. Convert the column to strings first."
    with pytest.raises(DataError, match=f"^{re.escape(words)}$"):
        Corpus.from_texts(["a", 3])
