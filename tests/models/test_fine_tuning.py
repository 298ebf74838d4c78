"""Fine-tuning of a folder: it learns, honours weights, repeats itself, goes on, and is kept."""

import pickle

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.models.fine_tuning import FineTunedClassifier, Training

WORDS = ["she", "he", "cuts", "cares", "for", "the", "ward"]
TEXTS = ["she cuts", "he cuts the ward", "she cares", "he cares for the ward"] * 12
TRUTH = np.array(["surgeon", "surgeon", "nurse", "nurse"] * 12)
FAST = {"epochs": 12, "learning_rate": 5e-3, "batch_size": 8}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, make_bert):
    return make_bert(tmp_path_factory.mktemp("tiny"), WORDS)


def test_rate_rises_and_falls():
    settings = Training(learning_rate=1.0, warm_up=0.5)
    rates = [settings.rate(step, 8) for step in range(8)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.25]


def test_settings_that_are_none():
    with pytest.raises(UsageError, match="'epoch', which is not a setting"):
        Training.of({"epoch": 3})
    with pytest.raises(UsageError, match="epochs=0 is not 1 or more"):
        Training.of({"epochs": 0})


@pytest.mark.heavy
def test_learns_and_repeats_itself(tiny):
    first = FineTunedClassifier(tiny, training=FAST, seed=3).fit(TEXTS, TRUTH)
    assert first.predict(["she cuts", "he cares"]).tolist() == ["surgeon", "nurse"]
    assert first.class_probabilities(TEXTS).sum(axis=1) == pytest.approx(1)
    again = FineTunedClassifier(tiny, training=FAST, seed=3).fit(TEXTS, TRUTH)
    np.testing.assert_array_equal(first.predict_proba(TEXTS), again.predict_proba(TEXTS))
    again.fit(TEXTS, TRUTH)  # begins from the folder, not from where it stood
    np.testing.assert_array_equal(first.predict_proba(TEXTS), again.predict_proba(TEXTS))


@pytest.mark.heavy
def test_rows_of_weight_zero_are_not_there(tiny):
    weights = np.tile([1.0, 1.0, 1.0, 0.0], 12)
    flipped = np.where(weights == 0, "surgeon", TRUTH)
    one = FineTunedClassifier(tiny, training=FAST).fit(TEXTS, TRUTH, sample_weight=weights)
    other = FineTunedClassifier(tiny, training=FAST).fit(TEXTS, flipped, sample_weight=2 * weights)
    np.testing.assert_allclose(one.predict_proba(TEXTS), other.predict_proba(TEXTS), atol=1e-6)


@pytest.mark.heavy
def test_weights_turn_a_tie(tiny):
    texts, truth = ["she cuts"] * 32, np.array(["a", "b"] * 16)
    weights = np.tile([3.0, 1.0], 16)
    model = FineTunedClassifier(tiny, training=FAST).fit(texts, truth, sample_weight=weights)
    # Three quarters of the weight is on a.
    assert model.predict_proba(["she cuts"])[0, 0] == pytest.approx(0.75, abs=0.08)


@pytest.mark.heavy
def test_stops_when_held_out_rows_gain_nothing(tiny):
    held = (["she cuts", "he cares"], ["surgeon", "nurse"])
    settings = FAST | {"epochs": 20, "patience": 2}
    model = FineTunedClassifier(tiny, training=settings, held=held).fit(TEXTS, TRUTH)
    scores = [entry["held_accuracy"] for entry in model.history_]
    assert len(scores) < 20
    assert scores.index(max(scores)) == len(scores) - 3
    assert (model.predict(held[0]) == np.array(held[1])).mean() == max(scores)


@pytest.mark.heavy
def test_a_fit_that_broke_off_goes_on(tiny, tmp_path):
    whole = FineTunedClassifier(tiny, training=FAST).fit(TEXTS, TRUTH)

    def stop(share: float) -> None:
        if share > 0.6:
            raise KeyboardInterrupt

    settings = {"training": FAST, "checkpoints": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        FineTunedClassifier(tiny, progress=stop, **settings).fit(TEXTS, TRUTH)
    assert len(list(tmp_path.glob("*.pt"))) == 1
    shares: list[float] = []
    later = FineTunedClassifier(tiny, progress=shares.append, **settings).fit(TEXTS, TRUTH)
    assert shares[0] > 0.5
    assert list(tmp_path.glob("*.pt")) == []
    np.testing.assert_allclose(later.predict_proba(TEXTS), whole.predict_proba(TEXTS), atol=1e-6)


@pytest.mark.heavy
def test_kept_and_saved(tiny, tmp_path):
    from evenhand.models.predictor import load_predictor

    model = FineTunedClassifier(tiny, training=FAST).fit(TEXTS, TRUTH)
    wanted = model.predict_proba(TEXTS[:4])
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(other.predict_proba(TEXTS[:4]), wanted, atol=5e-3)
    model.save(tmp_path / "model")
    found = load_predictor(str(tmp_path / "model"), device="cpu")
    assert found.classes == ("nurse", "surgeon")
    np.testing.assert_allclose(found.scores(TEXTS[:4]), wanted, atol=1e-5)
