"""Adversarial training: the projected step, and what it does to small data on a CPU."""

import pickle
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.remedies.adversarial import AdversarialClassifier, projected

numbers = st.lists(st.floats(-10, 10), min_size=4, max_size=4).map(np.array)


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


@given(numbers, numbers, st.floats(0, 2))
def test_a_projected_step_has_only_the_adversarys_own_part_along_it(gradient, adversary, weight):
    if np.linalg.norm(adversary) < 1e-6:
        return
    moved = projected(gradient, adversary, weight=weight)
    # Along h nothing is left of g: the step's part there is −weight·|h|².
    assert moved @ adversary == pytest.approx(-weight * adversary @ adversary, abs=1e-6)
    across = gradient - (gradient @ adversary) / (adversary @ adversary) * adversary
    np.testing.assert_allclose(moved + weight * adversary, across, atol=1e-8)


def test_without_an_adversary_the_gradient_stays():
    assert projected(np.ones(2), np.zeros(2), weight=1.0).tolist() == [1.0, 1.0]


def test_without_torch_the_words_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with says(
        MissingExtra,
        "Adversarial training needs the extra 'torch', which is not installed. "
        "Run: pip install 'evenhand[torch]'",
    ):
        AdversarialClassifier().fit([[0.0], [1.0]], [0, 1], group=["f", "m"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"form": "equalized_odds"},
            "form='equalized_odds' is not one of equalised_odds, demographic_parity. "
            "Did you mean 'equalised_odds'?",
        ),
        ({"projection": "all"}, "projection='all' is not one of whole, tensor."),
        ({"epochs": 0}, "epochs=0 is below 1. Give 1 or more."),
        ({"adversary_weight": -1}, "adversary_weight=-1 is negative. Give 0 or more."),
        ({"learning_rate": 0}, "learning_rate=0 is not above 0."),
        ({"dropout": 1}, "dropout=1 is not a share below 1."),
    ],
)
def test_bad_settings_are_refused_in_words(arguments, words):
    with says(UsageError, words):
        AdversarialClassifier(**arguments).fit([[0.0], [1.0]], [0, 1], group=["f", "m"])


def proxy(rows=1500, seed=0, classes=2, groups=2):
    """Class features, and a proxy of the group that also goes along with class 1."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    tilt = np.where(truth == 1, 0.8, 0.2)
    group = np.where(rng.random(rows) < tilt, 0, rng.integers(1, groups, rows))
    X = np.column_stack(
        [
            np.eye(classes)[truth] + rng.normal(size=(rows, classes)),
            (group == 0) + 0.3 * rng.normal(size=rows),
        ]
    )
    return X, truth, group


SMALL = {"hidden": 0, "epochs": 30, "batch_size": 128, "learning_rate": 0.02}


def selection_gap(model, X, group):
    chosen = model.predict(X) == 1
    return chosen[group == 0].mean() - chosen[group != 0].mean()


@pytest.mark.heavy
def test_an_adversary_without_weight_or_power_leaves_logistic_regression():
    pytest.importorskip("torch")
    X, truth, _ = proxy()
    group = np.random.default_rng(5).integers(0, 2, 1500)  # nothing to read
    model = AdversarialClassifier(**SMALL, adversary_weight=0.0).fit(X, truth, group=group)
    theirs = LogisticRegression(C=1e6).fit(X, truth)
    assert (model.predict(X) == theirs.predict(X)).mean() > 0.97


@pytest.mark.heavy
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_demographic_parity_closes_the_selection_gap(kind):
    pytest.importorskip("torch")
    X, truth, group = proxy()
    plain = LogisticRegression().fit(X, truth)
    model = AdversarialClassifier(**SMALL, form="demographic_parity", adversary_weight=0.1)
    model.fit(kind(X), truth, group=group)
    before, after = selection_gap(plain, X, group), selection_gap(model, X, group)
    assert before > 0.5
    assert abs(after) < 0.3 * before
    assert model.score(kind(X), truth) > 0.6


@pytest.mark.heavy
@pytest.mark.parametrize("projection", ["whole", "tensor"])
@pytest.mark.parametrize("hidden", [0, 16])
def test_equalised_odds_closes_gaps_within_classes(hidden, projection):
    pytest.importorskip("torch")
    X, truth, group = proxy()

    def gaps(model):
        p = model.predict_proba(X)[:, 1]
        return [
            p[(truth == c) & (group == 0)].mean() - p[(truth == c) & (group != 0)].mean()
            for c in (0, 1)
        ]

    plain = LogisticRegression().fit(X, truth)
    settings = {**SMALL, "hidden": hidden, "projection": projection}
    model = AdversarialClassifier(**settings, adversary_weight=1.0).fit(X, truth, group=group)
    assert min(gaps(plain)) > 0.25
    assert max(np.abs(gaps(model))) < 0.5 * min(gaps(plain))
    assert model.score(X, truth) > 0.6
    assert len(model.history_) == 30


@pytest.mark.heavy
def test_several_classes_and_groups():
    pytest.importorskip("torch")
    X, truth, group = proxy(1500, classes=4, groups=3)
    names = np.array(["a", "b", "c"])[group]
    model = AdversarialClassifier(**{**SMALL, "epochs": 10}).fit(X, truth, group=names)
    assert model.predict_proba(X).shape == (1500, 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-6)
    assert model.score(X, truth) > 0.3


@pytest.mark.heavy
def test_training_is_seeded_and_leaves_torchs_own_generator_alone():
    torch = pytest.importorskip("torch")
    X, truth, group = proxy(400)
    torch.manual_seed(7)
    before = torch.rand(1)
    torch.manual_seed(7)
    settings = {"hidden": 8, "epochs": 3}
    first = AdversarialClassifier(**settings, seed=1).fit(X, truth, group=group)
    assert torch.rand(1) == before
    again = AdversarialClassifier(**settings, seed=1).fit(X, truth, group=group)
    other = AdversarialClassifier(**settings, seed=2).fit(X, truth, group=group)
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert not np.allclose(first.predict_proba(X), other.predict_proba(X))
    assert first.device_ == ("cuda" if torch.cuda.is_available() else "cpu")
    copy = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(copy.predict_proba(X), first.predict_proba(X))


@pytest.mark.heavy
def test_scikit_learns_conventions_and_weights():
    pytest.importorskip("torch")
    X, truth, group = proxy(600)
    model = clone(AdversarialClassifier(**{**SMALL, "epochs": 5}))
    line = make_pipeline(StandardScaler(), model)
    line.fit(X, truth, adversarialclassifier__group=group)
    assert line.score(X, truth) > 0.6
    only = AdversarialClassifier(**SMALL, adversary_weight=0.0)
    weights = np.where(truth == 1, 50.0, 1.0)
    only.fit(X, truth, group=group, sample_weight=weights)
    assert (only.predict(X) == 1).mean() > 0.9


@pytest.mark.heavy
def test_divergence_is_said():
    pytest.importorskip("torch")
    X, truth, group = proxy(200)
    with pytest.raises(DataError, match=r"^Adversarial training diverged in epoch \d+\. Lower"):
        AdversarialClassifier(hidden=0, epochs=60, learning_rate=1e30).fit(
            X * 1e20, truth, group=group
        )
    with says(
        DataError,
        "The training rows have one group alone. "
        "Adversarial training needs two classes and two groups.",
    ):
        AdversarialClassifier().fit(X, truth, group=["f"] * 200)
