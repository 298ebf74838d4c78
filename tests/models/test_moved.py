"""Models saved under the names of earlier versions are opened, or refused with a sentence."""

import sys
from importlib import import_module
from importlib.util import find_spec

import joblib
import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.models.corpus import BagOfWords, Corpus
from evenhand.models.linear import LogisticClassifier
from evenhand.models.moved import MOVED, old_names
from evenhand.models.predictor import load_predictor, open_pickle
from evenhand.remedies import DecoupledClassifier, GroupThresholds, NormResidualisedClassifier
from evenhand.remedies.ledger.files import TextRemedy
from evenhand.remedies.ledger.task import Fitted
from evenhand.remedies.ledger.texts import Scaled
from evenhand.remedies.norm_slopes import FittedNorm, NormSlopes, StrengthStep
from evenhand.remedies.residualise import Residualisation
from evenhand.remedies.thresholds import RateTable

# The classes that ledgers of earlier versions wrote, by the module that each then had.
NAMED = {
    "mitigation.crossfit": (FittedNorm,),
    "mitigation.decoupled": (DecoupledClassifier,),
    "mitigation.ledger_models": (TextRemedy,),
    "mitigation.ledger_task": (Fitted,),
    "mitigation.ledger_texts": (Scaled,),
    "mitigation.norm_slopes": (NormSlopes, StrengthStep),
    "mitigation.residualise": (NormResidualisedClassifier, Residualisation),
    "mitigation.thresholds": (GroupThresholds, RateTable),
    "models.bow": (BagOfWords,),
}
TEXTS = ["cares for patients", "flies planes", "patients and wards", "planes and pilots"] * 10
TRUTH, GROUP = np.array(["nurse", "pilot"] * 20), np.array(["f", "f", "m", "m"] * 10)


@pytest.fixture
def save_as_before(monkeypatch, tmp_path):
    """Writes a model as an earlier version did, every class under its old name."""

    def save(model):
        path = tmp_path / "model.joblib"
        with old_names(), monkeypatch.context() as patch:
            for module, classes in NAMED.items():
                for each in classes:
                    patch.setattr(each, "__module__", f"evenhand.{module}")
            joblib.dump(model, path)
        assert b"evenhand.mitigation" in path.read_bytes()
        return path

    return save


def remedy(kind: str) -> TextRemedy:
    """A remedy of a ledger that reads texts, small and quickly trained."""
    bag = BagOfWords().fit(Corpus.from_texts(TEXTS))
    X = bag.features(Corpus.from_texts(TEXTS))
    plain = LogisticClassifier().fit(X, TRUTH)
    if kind == "decoupled":
        fitted = Fitted(model=DecoupledClassifier().fit(X, TRUTH, group=GROUP), by_group=True)
    elif kind == "thresholds":
        cuts = GroupThresholds(plain, randomised=False).fit(X, TRUTH, group=GROUP)
        fitted = Fitted(model=plain, cuts=cuts)
    else:
        model = NormResidualisedClassifier(strength=0.5, folds=2)
        fitted = Fitted(model=model.fit(X, TRUTH, group=GROUP), with_norm=True)
    return TextRemedy(
        classes_=np.array(["nurse", "pilot"]),
        fitted=fitted,
        representation=Scaled(words=bag),
        norm=Scaled(words=bag) if fitted.with_norm else None,
        setting="masked",
        needs_group_at_decision=kind != "residualise",
    )


@pytest.mark.parametrize("kind", ["decoupled", "thresholds", "residualise"])
def test_remedies_saved_under_old_names_decide_as_they_did(kind, save_as_before):
    model = remedy(kind)
    again = open_pickle(save_as_before(model), trust=True)
    assert type(again) is TextRemedy
    np.testing.assert_allclose(
        again.predict_proba(TEXTS, group=GROUP), model.predict_proba(TEXTS, group=GROUP)
    )
    assert (again.predict(TEXTS, group=GROUP) == model.predict(TEXTS, group=GROUP)).all()
    assert not [name for name in sys.modules if name.startswith("evenhand.mitigation")]


def test_a_saved_remedy_is_a_predictor(save_as_before):
    path = save_as_before(remedy("residualise"))
    found = load_predictor(path, trust=True)
    assert found.classes == ("nurse", "pilot")
    assert found.scores(["planes"]).argmax() == 1


def test_thresholds_saved_before_they_could_train_a_model():
    X = np.linspace(0, 1, 40)
    cuts = GroupThresholds().fit(X, TRUTH, group=GROUP)
    state = {k: v for k, v in cuts.__getstate__().items() if k not in ("estimator_",)}
    del state["validation_share"]
    old = GroupThresholds.__new__(GroupThresholds)
    old.__setstate__(state)
    assert (old.predict(X, group=GROUP) == cuts.predict(X, group=GROUP)).all()
    assert repr(old) == repr(cuts)


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_old_names_are_gone_and_new_places_exist(old, new):
    parent = f"evenhand.{old}".rpartition(".")[0]
    assert find_spec(parent) is None or find_spec(f"evenhand.{old}") is None
    assert import_module(f"evenhand.{new}")


@pytest.mark.parametrize(
    ("module", "missing"),
    [
        ("evenhand.mitigation.cells", "evenhand.mitigation"),
        ("evenhand.mitigation.pairing", "evenhand.mitigation.pairing.BagOfWords"),
    ],
)
def test_a_class_that_is_gone_is_refused_in_a_sentence(module, missing, tmp_path, monkeypatch):
    path = tmp_path / "old.joblib"
    there = type(sys)(module)
    there.BagOfWords = BagOfWords
    with old_names(), monkeypatch.context() as patch:
        patch.setattr(BagOfWords, "__module__", module)
        patch.setitem(sys.modules, module, there)
        joblib.dump(BagOfWords(), path)
    with pytest.raises(DataError) as caught:
        open_pickle(path, trust=True)
    assert str(caught.value) == (
        f"model={str(path)!r} was saved by another version of Evenhand: this one has no "
        f"{missing!r}. Train it again with this version, or open it with that one."
    )
