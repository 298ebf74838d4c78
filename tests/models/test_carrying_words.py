"""Words that weigh in a model and in a norm scorer: read, chosen, refused in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from evenhand.errors import DataError, UsageError
from evenhand.models.norms.scorer import Linear, NormScorer
from evenhand.models.predictor import ScikitPredictor
from evenhand.models.words import WordWeights, carriers, model_words

TEXTS = ["warm ward", "warm shift", "cold law", "cold court", "old poem", "old verse"] * 2
TITLES = ["nurse", "nurse", "judge", "judge", "poet", "poet"] * 2


def scorer(**changes) -> NormScorer:
    held = {
        "groups": ("f", "m"),
        "names": ("warm", "cold", "ward"),
        "linear": Linear(weights=np.array([[1.0, -2, 0], [-1, 2, 0]]), intercepts=np.zeros(2)),
        "classes": ("nurse", "judge"),
        "relevant": np.array([[False, False, True], [False, False, False]]),
        "seen": np.zeros(0, dtype=np.uint64),
    }
    return NormScorer(**held | changes)


def fitted(*steps):
    return make_pipeline(*steps).fit(TEXTS, TITLES)


def test_weights_are_the_pipelines_own():
    pipe = fitted(CountVectorizer(), LogisticRegression())
    found = model_words(ScikitPredictor(pipe), norms=scorer(), group="m")
    assert found.words == tuple(pipe[0].get_feature_names_out())
    assert found.classes == ("judge", "nurse", "poet")
    assert np.array_equal(found.weights, pipe[-1].coef_)
    at = found.words.index("cold")
    assert found.norm[at] == 2.0
    assert found.norm_group == "m"
    assert np.isnan(found.norm[found.words.index("law")])


def test_a_chain_of_steps_keeps_the_words():
    pipe = fitted(TfidfVectorizer(), LogisticRegression())
    assert model_words(pipe, norms=scorer()).words == tuple(pipe[0].get_feature_names_out())


def test_each_class_has_the_words_that_weigh_in_both():
    # Products for nurse: a 2·1 = 2, b −3·1 = 3, c 1·4 = 4; relevant: c alone. d has no norm.
    held = WordWeights(
        words=("a", "b", "c", "d"),
        classes=("nurse",),
        weights=np.array([[2.0, -3.0, 1.0, 9.0]]),
        norm=np.array([1.0, 1.0, 4.0, np.nan]),
        norm_group="f",
        relevant=np.array([[False, False, True, False]]),
    )
    assert [(row["word"], row["relevant"]) for row in carriers(held, most=1)] == [
        ("c", True),
        ("b", False),
    ]
    assert [row["word"] for row in carriers(held)] == ["c", "b", "a"]


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_no_word_left_out_weighs_more_than_one_shown(seed, most):
    draw = np.random.default_rng(seed)
    held = WordWeights(
        words=tuple("abcdefghij"),
        classes=("x", "y"),
        weights=draw.normal(size=(2, 10)),
        norm=draw.normal(size=10),
        norm_group="f",
        relevant=None,
    )
    rows = carriers(held, most=most)
    assert len(rows) == 2 * most
    assert all(row["relevant"] is None for row in rows)
    for c, name in enumerate(held.classes):
        shown = {row["word"] for row in rows if row["class"] == name}
        both = dict(zip(held.words, np.abs(held.weights[c] * held.norm)))
        assert min(both[w] for w in shown) >= max(both[w] for w in set(both) - shown)


def test_refusals_in_words(tmp_path):
    with pytest.raises(UsageError, match=r"model='nowhere.joblib' is not a joblib file\. The words "
                       "can be shown for a scikit-learn pipeline"):  # fmt: skip
        model_words("nowhere.joblib", norms=scorer())
    held = tmp_path / "m.joblib"
    held.write_bytes(b"")
    with pytest.raises(UsageError, match="is a pickle, which can run any code"):
        model_words(held, norms=scorer())
    with pytest.raises(DataError, match="The model holds MultinomialNB, which has no weights of"):
        model_words(fitted(CountVectorizer(), MultinomialNB()), norms=scorer())
    with pytest.raises(DataError, match=r"share no word: the model's features begin with "
                       r"'truncatedsvd0', 'truncatedsvd1'"):  # fmt: skip
        model_words(
            fitted(CountVectorizer(), TruncatedSVD(2), LogisticRegression()), norms=scorer()
        )
    of_numbers = scorer(centre=np.zeros(3), scale=np.ones(3))
    with pytest.raises(UsageError, match="This norm scorer was learned from numbers: it has no"):
        model_words(fitted(CountVectorizer(), LogisticRegression()), norms=of_numbers)
