"""Remedies as scikit-learn estimators: its own checks, metadata routing, searches and pipelines."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand import remedies
from evenhand.errors import UsageError
from evenhand.models.linear import LogisticClassifier
from evenhand.remedies import (
    AdversarialClassifier,
    CovarianceConstrainedClassifier,
    DecoupledClassifier,
    GroupThresholds,
    LogitPairedClassifier,
    NormPenalisedClassifier,
    NormResidualisedClassifier,
    ReductionsClassifier,
    ResampledClassifier,
    ReweighedClassifier,
)
from evenhand.remedies.cells import ROUTING


def table_of(X):
    """Features as a dense table, or None where a check gives something else on purpose."""
    table = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if table.ndim != 2 or not table.size or np.iscomplexobj(table):
        return None
    try:
        return np.nan_to_num(table.astype(np.float64), posinf=0, neginf=0)
    except (TypeError, ValueError):
        return None


def made_up_groups(X, y=None):
    """A group for every row, by what stands in it: a repeated row stays in its group.

    Where that would leave a group with rows of one class, the rows of a class take turns.
    """
    table = table_of(X)
    rows = len(table if table is not None else np.asarray(X)) if y is None else np.asarray(y).size
    group = np.arange(rows) % 2
    if table is not None and len(table) == rows:
        group = np.floor(table[:, 0] * 1000.5) % 2
    if y is not None:
        truth = np.asarray(y).ravel()
        if any(np.unique(truth[group == g].astype(str)).size < 2 for g in (0, 1)):
            group = np.zeros(rows)
            for name in set(truth.tolist()):
                own = truth == name
                group[own] = np.arange(own.sum()) % 2
    return np.where(group == 0, "f", "m")


def made_up_names(X, y):
    table = table_of(X)
    if table is None:
        return np.zeros((np.asarray(y).size, 2))
    return np.column_stack([np.sin(7 * table[:, 0]), np.cos(5 * table[:, -1])])


# scikit-learn's checks know nothing of groups, names or counterfactuals: each remedy gets made-up
# ones here, and is the public estimator in everything else.
class Reweighed(ReweighedClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, group=made_up_groups(X, y), sample_weight=sample_weight)


class Resampled(ResampledClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, group=made_up_groups(X, y), sample_weight=sample_weight)


class ByGroup:
    """Decisions for the made-up groups."""

    def predict(self, X, *, group=None):
        return super().predict(X, group=made_up_groups(X))

    def predict_proba(self, X, *, group=None):
        return super().predict_proba(X, group=made_up_groups(X))

    def score(self, X, y, sample_weight=None):
        return np.average(self.predict(X) == np.asarray(y), weights=sample_weight)


class Decoupled(ByGroup, DecoupledClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, group=made_up_groups(X, y), sample_weight=sample_weight)


class Thresholds(ByGroup, GroupThresholds):
    def fit(self, X, y):
        return super().fit(X, y, group=made_up_groups(X, y))


class Reductions(ReductionsClassifier):
    def fit(self, X, y):
        return super().fit(X, y, group=made_up_groups(X, y))


class Penalised(NormPenalisedClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, group=made_up_groups(X, y), sample_weight=sample_weight)


class Residualised(NormResidualisedClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, group=made_up_groups(X, y), sample_weight=sample_weight)


class Constrained(CovarianceConstrainedClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, names=made_up_names(X, y), sample_weight=sample_weight)


class Paired(LogitPairedClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, counterfactual=X, sample_weight=sample_weight)


class Adversarial(AdversarialClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, group=made_up_groups(X, y), sample_weight=sample_weight)


WEIGHT_IS_NO_ROW = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
# What a remedy does not promise, and why.
EXCEPTIONS = {
    Reweighed: dict.fromkeys(
        WEIGHT_IS_NO_ROW, "cells count rows; sample_weight says how much each of them then counts"
    ),
    Resampled: dict.fromkeys(WEIGHT_IS_NO_ROW, "rows are drawn, and a weight is not a row"),
    Penalised: dict.fromkeys(WEIGHT_IS_NO_ROW, "folds and covariances are of rows, not of weights"),
    Residualised: dict.fromkeys(WEIGHT_IS_NO_ROW, "folds and slopes are of rows, not of weights"),
    Adversarial: dict.fromkeys(WEIGHT_IS_NO_ROW, "batches are drawn from rows, not from weights"),
    Thresholds: {"check_classifiers_train": "decisions follow the cuts, not the largest score"},
}
BY_CHANCE = dict.fromkeys(
    ("check_methods_sample_order_invariance", "check_methods_subset_invariance"),
    "a score at the cut is accepted by chance, drawn row by row",
)


def exceptions(estimator):
    reasons = EXCEPTIONS.get(type(estimator), {})
    by_chance = isinstance(estimator, GroupThresholds) and estimator.randomised
    return {**reasons, **BY_CHANCE} if by_chance else reasons


@parametrize_with_checks(
    [
        Reweighed(),
        Resampled(),
        Decoupled(),
        Thresholds(LogisticClassifier()),
        Thresholds(LogisticClassifier(), randomised=False),
        Penalised(strength=1.0, folds=2),
        Residualised(strength=0.5, folds=2),
        Constrained(),
        Paired(),
    ],
    expected_failed_checks=exceptions,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.heavy
@parametrize_with_checks(
    [
        Reductions(max_iter=2),
        Adversarial(hidden=0, epochs=60, learning_rate=0.05, device="cpu"),
    ],
    expected_failed_checks=exceptions,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_own_checks_of_slow_remedies(estimator, check):
    if isinstance(estimator, Adversarial):
        pytest.importorskip("torch")
    check(estimator)


def people(rows=400, seed=0):
    """Two classes; a feature that tells the class of group f is noise for group m."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["f", "m"], size=rows)
    truth = rng.choice(["hired", "turned down"], size=rows)
    X = rng.normal(size=(rows, 3))
    X[:, 0] += 1.5 * np.where(truth == "hired", 1, -1)
    X[:, 1] += 1.5 * np.where(truth == "hired", 1, -1) * np.where(group == "f", 1, -1)
    return X, truth, group


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


SCORES_PIPELINES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
EVERY = {
    ReweighedClassifier: {},
    ResampledClassifier: {},
    DecoupledClassifier: {},
    GroupThresholds: {"estimator": LogisticClassifier()},
    ReductionsClassifier: {"max_iter": 2},
    NormPenalisedClassifier: {"strength": 0.1, "folds": 2},
    NormResidualisedClassifier: {"strength": 0.5, "folds": 2},
    CovarianceConstrainedClassifier: {},
    LogitPairedClassifier: {},
}


def roles(remedy, X, group):
    """What a remedy asks for beside rows and classes."""
    if remedy is CovarianceConstrainedClassifier:
        return {"names": X[:, 1:]}
    return (
        {"counterfactual": X * [1, -1, 1]} if remedy is LogitPairedClassifier else {"group": group}
    )


def test_the_public_names_are_the_estimators():
    assert remedies.__all__ == sorted(each.__name__ for each in [*EVERY, AdversarialClassifier])


@pytest.mark.parametrize("name", remedies.__all__)
def test_every_remedy_is_a_classifier_that_says_when_it_acts(name):
    model = getattr(remedies, name)()
    assert get_tags(model).estimator_type == "classifier"
    assert model.stage in ("before", "in", "after")
    assert model.needs_group_at_decision is (name in ("DecoupledClassifier", "GroupThresholds"))
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    with pytest.raises(NotFittedError):
        model.predict_proba([[0.0]])


@pytest.mark.parametrize("remedy", EVERY, ids=lambda each: each.__name__)
def test_pipelines_and_cross_validation_by_metadata_routing(remedy, routing):
    X, truth, group = people()
    given = roles(remedy, X, group)
    line = make_pipeline(StandardScaler(), clone(remedy(**EVERY[remedy])))
    line.fit(X, truth, **given)
    asked = given if remedy.needs_group_at_decision else {}
    assert line.predict(X, **asked).shape == truth.shape
    assert line.score(X, truth, **asked) > 0.7
    # Before 1.8 scikit-learn passes nothing on to the score of a pipeline's last step.
    whole = line if SCORES_PIPELINES or not remedy.needs_group_at_decision else line[-1]
    done = cross_validate(whole, X, truth, params=given, cv=3, error_score="raise")
    assert done["test_score"].min() > 0.7
    # Outside pipelines too, and after a copy and a pickle.
    plain = pickle.loads(pickle.dumps(clone(line[-1]).fit(X, truth, **given)))
    assert plain.score(X, truth, **asked) > 0.7


@pytest.mark.parametrize(
    ("remedy", "grid"),
    [
        (
            ReweighedClassifier(LogisticRegression()),
            {"method": ["kamiran_calders", "within_class"]},
        ),
        (ReweighedClassifier(LogisticRegression()), {"estimator__C": [1e-6, 1.0]}),
        (ResampledClassifier(), {"method": ["over", "under"]}),
        (DecoupledClassifier(LogisticRegression()), {"estimator__C": [1e-6, 1.0]}),
        (GroupThresholds(LogisticRegression()), {"shrinkage": [0, 10], "estimator__C": [0.1, 1.0]}),
        (NormResidualisedClassifier(folds=2), {"strength": [0.0, 1.0]}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_searches_choose_parameters_of_remedies_and_of_models_inside(remedy, grid, routing):
    X, truth, group = people()
    search = GridSearchCV(remedy, grid, cv=3, error_score="raise").fit(X, truth, group=group)
    assert set(search.best_params_) == set(grid)
    assert search.best_score_ > 0.7
    if grid == {"estimator__C": [1e-6, 1.0]}:
        assert search.best_params_ == {"estimator__C": 1.0}
    asked = {"group": group} if remedy.needs_group_at_decision else {}
    assert search.best_estimator_.score(X, truth, **asked) > 0.7


def test_decoupled_scores_are_numbers_and_better_than_one_model(routing):
    """By construction a feature means the opposite in the two groups."""
    X, truth, group = people(800)
    scores = cross_validate(
        DecoupledClassifier(), X, truth, params={"group": group}, cv=4, error_score="raise"
    )["test_score"]
    plain = cross_validate(LogisticClassifier(), X, truth, cv=4)["test_score"]
    assert np.isfinite(scores).all()
    assert scores.min() > plain.max()


def test_requests_can_be_renamed_and_turned_off(routing):
    X, truth, group = people()
    model = ReweighedClassifier().set_fit_request(group="gender")
    done = cross_validate(model, X, truth, params={"gender": group}, cv=2, error_score="raise")
    assert done["test_score"].mean() > 0.7
    wanted = DecoupledClassifier().get_metadata_routing()
    assert wanted.fit.requests == {"group": True, "sample_weight": None}
    assert wanted.predict.requests == {"group": True}
    assert wanted.score.requests == {"group": True, "sample_weight": None}
    # What is not one a row cannot be routed.
    assert "fitted" not in NormResidualisedClassifier().get_metadata_routing().fit.requests
    assert "watch" not in AdversarialClassifier().get_metadata_routing().fit.requests


def says(words):
    return pytest.raises(UsageError, match=f"^{re.escape(words)}$")


@pytest.mark.parametrize("remedy", EVERY, ids=lambda each: each.__name__)
def test_what_a_remedy_needs_is_asked_for_in_words(remedy):
    X, truth, group = people(60)
    argument = next(iter(roles(remedy, X, group)))
    what = {
        "group": "the group of each training row",
        "names": "the name vectors of the training rows",
        "counterfactual": "the features of counterfactual texts",
    }[argument]
    with says(f"{remedy.__name__} needs {what}. Give {argument}= with one for each row. {ROUTING}"):
        remedy(**EVERY[remedy]).fit(X, truth)


@pytest.mark.parametrize("remedy", [DecoupledClassifier, GroupThresholds])
def test_decisions_by_group_without_a_group_are_refused(remedy):
    X, truth, group = people(200)
    model = remedy(LogisticClassifier()).fit(X, truth, group=group)
    words = (
        f"{remedy.__name__} needs the group of each row to decide. "
        f"Give group= with one for each row. {ROUTING}"
    )
    for ask in (model.predict, lambda rows: model.score(rows, truth)):
        with says(words):
            ask(X)


def test_texts_go_through_to_the_pipeline_inside():
    texts = ["cares for patients", "flies planes", "patients and wards", "planes and pilots"] * 10
    truth, group = ["nurse", "pilot"] * 20, ["f", "f", "m", "m"] * 10
    inside = make_pipeline(CountVectorizer(), MultinomialNB())
    for routed in (False, True):
        with sklearn.config_context(enable_metadata_routing=routed):
            model = ReweighedClassifier(inside).fit(texts, truth, group=group)
            assert model.predict(["planes"]).tolist() == ["pilot"]
    assert DecoupledClassifier(inside).fit(texts, truth, group=group).predict(
        ["patients"], group=["m"]
    ).tolist() == ["nurse"]
    assert not hasattr(model, "n_features_in_")


def test_methods_are_those_of_the_estimator_inside():
    X, truth, group = people(80)
    machine = ReweighedClassifier(LinearSVC())
    assert not hasattr(machine, "predict_proba")
    assert machine.fit(X, truth, group=group).decision_function(X).shape == (80,)
    assert not hasattr(ReweighedClassifier(MultinomialNB()), "decision_function")
    assert not get_tags(ReweighedClassifier(LogisticRegression())).input_tags.allow_nan


def test_thresholds_train_an_unfitted_model_on_other_rows_than_they_cut():
    X, truth, group = people(400)
    cuts = GroupThresholds(LogisticClassifier(), validation_share=0.25).fit(X, truth, group=group)
    # A quarter of every class and group, rounded up, sets the cuts.
    cells = [((truth == c) & (group == g)).sum() for c in cuts.classes_ for g in cuts.groups_]
    assert cuts.rates_.n.ravel().tolist() == [-(-int(n) // 4) for n in cells]
    assert not hasattr(cuts.estimator, "coef_")
    fitted = LogisticClassifier().fit(X[:200], truth[:200])
    kept = GroupThresholds(fitted).fit(X[200:], truth[200:], group=group[200:])
    assert kept.estimator_ is fitted
    assert kept.rates_.n.sum() == 200
    with says("validation_share=1 is not a share between 0 and 1, such as 0.25."):
        GroupThresholds(LogisticClassifier(), validation_share=1).fit(X, truth, group=group)


def test_a_ledger_is_read_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; "
        "from evenhand.remedies.ledger.files import read_ledger; print(read_ledger.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "read_ledger"


def test_without_scikit_learn_the_words_say_what_to_install():
    code = (
        "import sys; sys.modules['sklearn'] = None; from evenhand import remedies\n"
        "try:\n    remedies.ReweighedClassifier\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "MissingExtra A remedy needs the extra 'text', which is not installed. "
        "Run: pip install 'evenhand[text]'"
    )
