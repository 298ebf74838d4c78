"""Scaled word weights against the toy of METHODS 2.9 and the law that w = 0 blinds the model."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import DataError, UsageError
from evenhand.models.words import decide, scale_tokens, trace_token_weights

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())[
    "2.9_bow_weight"
]
FEMALE, MALE = ["she"], ["he"]


def toy():
    """The model of the oracle, its word counts, and the counts rewritten to either value."""
    words = ORACLE["vocab"]
    texts = [doc.split(" [")[0].split() for doc in ORACLE["docs"]]
    group = [doc[-2] for doc in ORACLE["docs"]]
    counts = np.array([[text.count(word) for word in words] for text in texts], dtype=float)
    she, he = words.index("she"), words.index("he")
    under = {}
    for value, (to, away) in {"F": (she, he), "M": (he, she)}.items():
        changed = counts.copy()
        changed[:, to] += changed[:, away]
        changed[:, away] = 0
        under[value] = changed
    model = SimpleNamespace(
        coef_=np.array([ORACLE["coef"]]),
        intercept_=np.array([ORACLE["intercept"]]),
        classes_=np.array([0, 1]),
    )
    return model, {"features": counts, "features_under": under, "group": group}


def traced(words, weights):
    model, data = toy()
    return trace_token_weights(
        model,
        **data,
        vocabulary=ORACLE["vocab"],
        words=words,
        weights=weights,
        positive=1,
        reference="M",
    )


@pytest.mark.parametrize(
    ("side", "words"),
    [("both", FEMALE + MALE), ("female_only", FEMALE), ("male_only", MALE)],
)
def test_toy_of_the_oracle(side, words):
    expected = ORACLE[side]
    columns = traced(words, [float(w) for w in expected]).columns
    found = {
        weight: (theirs, ours)
        for weight, name, theirs, ours in zip(
            columns["weight"], columns["class"], columns["statistical"], columns["counterfactual"]
        )
        if name == "1"
    }
    assert found == {float(w): tuple(gaps) for w, gaps in expected.items()}


def test_weight_0_leaves_a_statistical_gap_and_no_counterfactual_one():
    frame = traced(FEMALE + MALE, [0]).to_frame()
    assert frame["counterfactual"].to_list() == [0.0, 0.0]
    assert frame.filter(frame["class"] == "1")["statistical"].to_list() == [0.5]
    assert frame.columns[:5] == ["weight", "measure", "class", "group", "reference"]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_weight_0_blinds_any_model_to_the_words(seed):
    random = np.random.default_rng(seed)
    rows, words, classes = 60, 7, 4
    model = SimpleNamespace(
        coef_=random.normal(size=(classes, words)),
        intercept_=random.normal(size=classes),
        classes_=np.array(list("abcd")),
    )
    counts = random.poisson(0.7, (rows, words)).astype(float)
    female, male = counts.copy(), counts.copy()
    female[:, 0], female[:, 1] = counts[:, 0] + counts[:, 1], 0
    male[:, 1], male[:, 0] = counts[:, 0] + counts[:, 1], 0
    trace = trace_token_weights(
        model,
        features=counts,
        features_under={"f": female, "m": male},
        group=random.choice(["f", "m"], rows),
        truth=random.choice(list("abcd"), rows),
        vocabulary={f"word{i}": i for i in range(words)},
        words=["word0", "word1"],
        weights=[0.0],
    )
    gaps = [v for v in trace.columns["counterfactual"] if v is not None]
    assert set(gaps) == {0.0}
    assert "true_positive_rate_gap_rms" in trace.columns["measure"]


def test_the_model_given_is_not_changed():
    model, _ = toy()
    before = model.coef_.copy()
    found = scale_tokens(model, vocabulary=ORACLE["vocab"], words=["he", "hers", "he"], weight=-2)
    assert np.array_equal(model.coef_, before)
    assert found.model.coef_[0].tolist() == pytest.approx([-0.8, -1.2, 1.2, -1.0])
    assert found.model.classes_ is model.classes_
    assert (found.scaled, found.missing) == (("he",), ("hers",))


def test_scikit_learn_models_are_scaled_through_their_vectorizer():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    texts = ["she scalpel", "he scalpel", "she ward", "he ward", "she desk", "he desk"]
    truth = ["surgeon", "surgeon", "nurse", "nurse", "clerk", "clerk"]
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(texts)
    for model in (LogisticRegression(), OneVsRestClassifier(LogisticRegression())):
        model.fit(counts, truth)
        whole = scale_tokens(model, vocabulary=vectorizer, words=["she", "he"], weight=0).model
        she = vectorizer.vocabulary_["she"]
        held = [whole] if hasattr(whole, "coef_") else whole.estimators_
        assert all((part.coef_[:, she] == 0).all() for part in held)
        decided = decide(whole, vectorizer.transform(["she ward desk", "he ward desk"]))
        assert decided[0] == decided[1]
        before = [model] if hasattr(model, "coef_") else model.estimators_
        assert all((part.coef_ != 0).any() for part in before)


def test_sparse_counts_decide_as_dense_ones():
    from scipy.sparse import csr_matrix

    model, data = toy()
    dense = decide(model, data["features"])
    assert decide(model, csr_matrix(data["features"])).tolist() == dense.tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"words": ["scalpels", "nurse"]},
            "None of the words 'scalpels', 'nurse' is in the vocabulary of 4 words. Did you mean "
            "'scalpel'?",
        ),
        ({"words": []}, "None of the words (none given) is in the vocabulary of 4 words."),
        (
            {"words": ["she"], "weight": float("nan")},
            "weight=nan is not finite. Give a number such as 0, 1 or -2.",
        ),
        (
            {"words": ["she"], "vocabulary": ["she", "he"]},
            "The model has 4 coefficients and the vocabulary 2 words. Give the vocabulary that the "
            "model was fitted on.",
        ),
    ],
)
def test_bad_words_are_refused_in_these_words(arguments, words):
    model, _ = toy()
    with pytest.raises(UsageError) as told:
        scale_tokens(model, **{"vocabulary": ORACLE["vocab"], "weight": 0, **arguments})
    assert str(told.value) == words


def test_a_model_without_coefficients_is_refused():
    with pytest.raises(UsageError) as told:
        scale_tokens("model.joblib", vocabulary=["she"], words=["she"], weight=0)
    assert str(told.value) == (
        "A model of type str has no coefficients. Give an array of them, or a linear model with "
        "coef_."
    )


def test_bad_features_are_refused_in_these_words():
    model, data = toy()
    shared = {"vocabulary": ORACLE["vocab"], "words": ["she"]}
    with pytest.raises(DataError) as told:
        trace_token_weights(model, **{**data, "group": ["F"]}, **shared)
    assert str(told.value) == (
        "'group' has 1 rows and features has 4. Give one for each row of features."
    )
    one = {"F": data["features_under"]["F"]}
    with pytest.raises(UsageError) as told:
        trace_token_weights(model, **{**data, "features_under": one}, **shared)
    assert str(told.value) == (
        "features_under has 1 value. Give the word counts of the texts rewritten to two values or "
        "more."
    )
