"""Adversarial training tuned by the accuracy budget, and what runs begin from."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.errors import UsageError
from evenhand.models.linear import LogisticClassifier
from evenhand.remedies.adversarial import (
    AdversarialClassifier,
    AdversarialTrial,
    _best,
    linear_start,
    probability_gap,
    tune_adversaries,
    tune_adversary,
)
from evenhand.remedies.cells import training_cells
from evenhand.remedies.ledger.compare import trained_together


def trial(epoch, accuracy, gap):
    return AdversarialTrial(
        learning_rate=0.01, adversary_weight=1.0, epoch=epoch, accuracy=accuracy, gap=gap
    )


def proxy(rows, seed, classes=2):
    """Class features, and a proxy of the group that also goes along with class 1."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    group = (rng.random(rows) < np.where(truth == 1, 0.8, 0.2)).astype(int)
    noise = rng.normal(size=(rows, classes))
    X = np.column_stack([np.eye(classes)[truth] + noise, group + 0.3 * rng.normal(size=rows)])
    return X.astype(np.float32), truth, group


def test_the_gap_of_probabilities_by_hand():
    """Class a: groups at .9 and .6 (n 2 and 1), level .8: 2·.01 + .04 = .06; b has one group.

    √(.06 / 4) = .1225.
    """
    cells = training_cells(["a", "a", "a", "b"], group=["f", "f", "m", "m"])
    table = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    assert probability_gap(table, cells=cells) == pytest.approx(0.1225, abs=1e-4)


def test_the_smallest_gap_within_the_budget_is_chosen():
    first, near, far = trial(0, 0.90, 0.3), trial(1, 0.895, 0.2), trial(2, 0.80, 0.0)
    assert _best([first, near, far], budget=0.01) is near
    assert _best([first, near, far], budget=0.001) is first
    assert _best([first, near, far], budget=0.2) is far


@pytest.mark.parametrize("classes", [2, 3])
def test_a_linear_model_is_the_same_as_layers(classes):
    X, truth, _ = proxy(300, 0, classes)
    model = LogisticRegression().fit(X, truth)
    layers = linear_start(model)
    made = AdversarialClassifier(hidden=0)
    made.layers_, made.classes_ = layers, model.classes_
    assert (made.predict(X) == model.predict(X)).all()
    if classes == 2:
        np.testing.assert_allclose(made.predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_a_pace_of_nothing_is_refused():
    with pytest.raises(UsageError, match=r"^adversary_pace=0 is not above 0\.$"):
        AdversarialClassifier(adversary_pace=0).fit([[0.0], [1.0]], [0, 1], group=["f", "m"])


@pytest.mark.heavy
@pytest.mark.parametrize("hidden", [0, 4])
def test_training_begins_from_the_layers_given_and_stops_when_told(hidden):
    pytest.importorskip("torch")
    X, truth, group = proxy(400, 1)
    settings = {"hidden": hidden, "epochs": 5, "learning_rate": 1e-9}
    trained = AdversarialClassifier(hidden=hidden, epochs=3).fit(X, truth, group=group)
    seen = []

    def watch(epoch, layers):
        seen.append(epoch)
        return epoch < 2

    again = AdversarialClassifier(**settings).fit(
        X, truth, group=group, start=trained.layers_, watch=watch
    )
    assert seen == [1, 2]
    for ours, theirs in zip(again.layers_, trained.layers_, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.heavy
def test_tuning_lowers_the_gap_and_keeps_to_the_budget():
    pytest.importorskip("torch")
    X, truth, group = proxy(3000, 2, classes=3)
    held, held_truth, held_group = proxy(1000, 3, classes=3)
    base = LogisticRegression().fit(X, truth)
    found = {
        budget: tune_adversary(
            X, truth, group=group, start=base, held=held, held_truth=held_truth,
            held_group=held_group, budget=budget, epochs=6, seed=1,
        )
        for budget in (0.0, 0.05)
    }  # fmt: skip
    for budget, each in found.items():
        first = each.trials[0]
        assert first.epoch == 0
        assert first.accuracy == pytest.approx(base.score(held, held_truth))
        assert each.chosen.accuracy >= first.accuracy - budget
        assert each.model.score(held, held_truth) == pytest.approx(each.chosen.accuracy)
    assert found[0.05].chosen.gap < 0.8 * found[0.05].trials[0].gap
    assert found[0.05].chosen.gap <= found[0.0].chosen.gap
    again = tune_adversary(
        X, truth, group=group, start=base, held=held, held_truth=held_truth,
        held_group=held_group, budget=0.05, epochs=6, seed=1,
    )  # fmt: skip
    np.testing.assert_array_equal(again.model.layers_[0][0], found[0.05].model.layers_[0][0])


def test_without_a_step_the_classifiers_are_those_of_the_baseline():
    """Epoch 0 is the start itself: nothing within a budget of 0 beats it where no run is tried."""
    X, truth, group = proxy(300, 4, classes=3)
    base = LogisticClassifier().fit(X, truth)
    model, tuned = tune_adversaries(
        X, truth, group=group, start=base, held=X, held_truth=truth, held_group=group,
        rates=(), weights=(), epochs=1,
    )  # fmt: skip
    np.testing.assert_allclose(model.class_probabilities(X), base.class_probabilities(X), atol=1e-5)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(300))
    assert [each.chosen.epoch for each in tuned] == [0, 0, 0]


@pytest.mark.heavy
def test_an_adversary_for_each_class_lowers_its_gap_within_the_budget():
    pytest.importorskip("torch")
    X, truth, group = proxy(2000, 2, classes=3)
    held, held_truth, held_group = proxy(800, 3, classes=3)
    base = LogisticClassifier().fit(X, truth)
    model, tuned = tune_adversaries(
        X, truth, group=group, start=base, held=held, held_truth=held_truth,
        held_group=held_group, budget=0.06, epochs=5, seed=1,
    )  # fmt: skip
    for each in tuned:
        assert each.chosen.accuracy >= each.trials[0].accuracy - 0.04
        assert each.chosen.gap <= each.trials[0].gap
    # The proxy goes along with class 1: its own adversary takes it out.
    assert tuned[1].chosen.gap < 0.8 * tuned[1].trials[0].gap
    cells = training_cells(held_truth, group=held_group)
    gaps = [probability_gap(m.predict_proba(held), cells=cells) for m in (base, model)]
    assert gaps[1] < gaps[0]


@pytest.mark.heavy
def test_torchs_threads_are_set_back_when_all_are_done():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with trained_together(["torch"]):
            torch.set_num_threads(1)  # as an adversary does, and leaves it: another may be training
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
