"""Weights of words in classifiers and norm scorers, and the filter that compares classifiers."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.models.linear import LogisticClassifier
from evenhand.models.norms.scorer import Linear, NormScorer
from evenhand.models.words import word_filter, word_weights

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())


def scorer() -> NormScorer:
    return NormScorer(
        groups=("f", "m"),
        names=("hair", "mom", "team"),
        linear=Linear(
            weights=np.array([[1.0, 2.0, -1.0], [-1.0, -2.0, 1.0]]), intercepts=np.zeros(2)
        ),
        classes=("nurse", "surgeon"),
        relevant=np.array([[False, False, True], [True, False, False]]),
        seen=np.array([], dtype=np.uint64),
    )


def test_cosine_as_in_oracle_1_10():
    case = ORACLES["1.10_beta_WE"]
    found = word_weights([case["W"]], words=["w"], embedding=np.array([case["e_w"]]), classes=["c"])
    assert found.weights[0, 0] == pytest.approx(case["beta"])


def test_filter_as_in_oracle_1_11():
    case = ORACLES["1.11_word_filter"]
    shared = {"norm": case["beta_G"], "threshold": case["T"], "ratio": case["Tprime"]}
    first = word_filter(case["beta_Y"], case["beta_Y2"], **shared)
    second = word_filter(case["beta_Y2"], case["beta_Y"], **shared)
    assert sorted(first) == case["selected_Y_over_Y2"]
    assert sorted(second) == case["selected_Y2_over_Y"]


def test_a_word_without_a_vector_has_no_weight():
    found = word_weights([[1.0, 0.0]], words=["a", "b"], embedding=np.array([[0.0, 0], [3.0, 4]]),
                         classes=["c"])  # fmt: skip
    assert np.isnan(found.weights[0, 0])
    assert found.weights[0, 1] == pytest.approx(0.6)
    assert found.to_frame()["weight"].to_list() == [None, pytest.approx(0.6)]


def test_norm_and_relevance_stand_beside_the_weights():
    words = ["mom", "unknown", "team"]
    found = word_weights(np.array([[1.0, 2, 3], [4.0, 5, 6]]), words=words,
                         classes=["surgeon", "poet"], scorer=scorer(), group="m")  # fmt: skip
    assert found.norm[[0, 2]].tolist() == [-2.0, 1.0]
    assert np.isnan(found.norm[1])
    assert found.relevant.tolist() == [[False] * 3, [False] * 3]
    frame = found.to_frame()
    assert frame.columns == ["class", "word", "weight", "norm_weight", "relevant"]
    assert frame.height == 6
    nurse = word_weights(np.ones((1, 3)), words=words, classes=["nurse"], scorer=scorer())
    assert nurse.relevant.tolist() == [[False, False, True]]
    assert nurse.norm_group == "f"


def test_a_fitted_model_of_two_classes_gives_both():
    rows = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    model = LogisticClassifier().fit(rows, ["a", "a", "b", "b"])
    found = word_weights(model, words=["x", "y"])
    assert found.classes == ("a", "b")
    assert found.weights[0].tolist() == pytest.approx((-found.weights[1]).tolist())
    assert found.weights[0, 0] > 0


def test_shapes_and_groups_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match=r"shape \(1, 2\); 1 classes of 3 features are expected"):
        word_weights([[1.0, 2.0]], words=["a", "b", "c"])
    with pytest.raises(UsageError, match="2 vectors were given for 1 words"):
        word_weights([[1.0]], words=["a"], embedding=np.ones((2, 1)))
    with pytest.raises(
        UsageError, match=r"group='x' is not a group of the norm scorer. It has f, m"
    ):
        word_weights([[1.0]], words=["a"], scorer=scorer(), group="x")
    with pytest.raises(UsageError, match="Weights without words"):
        word_filter([1.0], [1.0], norm=[1.0])
    with pytest.raises(UsageError, match="Give one weight for each of the 2 words"):
        word_filter([1.0], [1.0], norm=[1.0], words=["a", "b"])
