"""CoCL, counterfactual logit pairing and reductions."""

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.remedies.cells import ROUTING
from evenhand.remedies.ledger.compare import trained_together
from evenhand.remedies.penalties import (
    CovarianceConstrainedClassifier,
    LogitPairedClassifier,
    _NameTerm,
    checked_names,
    softmax_loss,
)
from evenhand.remedies.reductions import ReductionsClassifier

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())[
    "1.12_cocl"
]


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def cocl_loss(probabilities, truth, names):
    """The two terms that the classifier minimises, of given probabilities."""
    logits, y = np.log(np.asarray(probabilities)), np.asarray(truth, dtype=np.intp)
    entropy, _ = softmax_loss(logits, y, np.full(y.size, 1 / y.size))
    vectors, has_name = checked_names(names, rows=y.size)
    term = _NameTerm.of(vectors, np.flatnonzero(has_name), y, np.ones(y.size))
    return entropy, term.value(logits, rounding=1e-12)[0]


def test_the_loss_that_is_minimised_equals_the_oracle():
    entropy, penalty = cocl_loss(ORACLE["P"], ORACLE["y"], ORACLE["name_vectors"])
    assert entropy == pytest.approx(ORACLE["cross_entropy"])
    assert penalty == pytest.approx(ORACLE["penalty_l2"])
    assert entropy + ORACLE["lam"] * penalty == pytest.approx(ORACLE["total"])
    assert np.linalg.norm(ORACLE["covariance"]) == pytest.approx(penalty)


def test_rows_without_a_name_are_skipped_from_the_penalty_alone():
    vectors = [*ORACLE["name_vectors"], [np.nan, np.nan]]
    entropy, penalty = cocl_loss([*ORACLE["P"], [1 / 3] * 3], [*ORACLE["y"], 0], vectors)
    assert penalty == pytest.approx(ORACLE["penalty_l2"])
    assert entropy == pytest.approx((4 * ORACLE["cross_entropy"] + np.log(3)) / 5)
    X, truth, names = named(30)
    names[4] = np.nan
    assert CovarianceConstrainedClassifier().fit(X, truth, names=names).skipped_ == 1


def named(rows=600, seed=0):
    """Three classes; the names' first number goes along with a feature that helps class 0."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, size=rows, p=[0.6, 0.2, 0.2])
    names = rng.normal(size=(rows, 2))
    X = np.column_stack(
        [np.eye(3)[truth] + 0.8 * rng.normal(size=(rows, 3)), names[:, 0] + 2 * (truth == 0)]
    )
    return X, truth, names


def test_the_gradient_of_the_penalty_is_that_of_its_value():
    _, truth, names = named(20)
    rng = np.random.default_rng(1)
    weights = rng.random(20) + 0.5
    term = _NameTerm.of(names[3:], np.arange(3, 20), truth, weights)
    logits = rng.normal(size=(20, 3))

    def value(flat):
        return term.value(flat.reshape(20, 3), rounding=1e-3)[0]

    def gradient(flat):
        full = np.zeros((20, 3))
        full[3:] = term.value(flat.reshape(20, 3), rounding=1e-3)[1]
        return full.ravel()

    assert optimize.check_grad(value, gradient, logits.ravel()) < 1e-6
    p = softmax(logits, axis=1)
    share = weights[3:] / weights[3:].sum()
    own = p[np.arange(3, 20), truth[3:]]
    by_hand = share * (own - share @ own) @ (names[3:] - share @ names[3:])
    assert term.value(logits, rounding=1e-9)[0] == pytest.approx(np.linalg.norm(by_hand), abs=1e-8)


def test_no_strength_is_softmax_regression():
    X, truth, names = named()
    ours = CovarianceConstrainedClassifier(strength=0.0, tol=1e-9).fit(X, truth, names=names)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-9).fit(X, truth)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_the_penalty_takes_the_names_out_of_the_probabilities(kind):
    X, truth, names = named()
    size = []
    for strength in (0.0, 2.0, 50.0):
        model = CovarianceConstrainedClassifier(strength=strength, tol=1e-6)
        model.fit(kind(X), truth, names=names)
        p = model.predict_proba(kind(X))
        size.append(cocl_loss(p, truth, names)[1])
    assert size[0] > 0.02
    assert size[2] <= size[1] < 0.2 * size[0]
    assert model.score(X, truth) > 0.5


def test_cocl_refuses_in_words():
    X, truth, names = named(30)
    with says(
        UsageError,
        "CovarianceConstrainedClassifier needs the name vectors of the training rows. "
        f"Give names= with one for each row. {ROUTING}",
    ):
        CovarianceConstrainedClassifier().fit(X, truth)
    with says(UsageError, "names has the shape (30,) for 30 rows. Give a vector for each row."):
        CovarianceConstrainedClassifier().fit(X, truth, names=names[:, 0])
    with says(DataError, "Of 30 rows, 0 have a name vector. A covariance needs two."):
        CovarianceConstrainedClassifier().fit(X, truth, names=names * np.nan)
    with says(UsageError, "strength=-1 is negative. Give 0 or more."):
        CovarianceConstrainedClassifier(strength=-1).fit(X, truth, names=names)
    with pytest.raises(ValueError, match="one class alone, 0"):
        CovarianceConstrainedClassifier().fit(X, truth * 0, names=names)
    with pytest.warns(ConvergenceWarning, match="CovarianceConstrainedClassifier has not settled"):
        CovarianceConstrainedClassifier(max_iter=1).fit(X, truth, names=names)
    model = CovarianceConstrainedClassifier().fit(X, truth, names=names)
    assert not model.needs_group_at_decision
    assert model.stage == "in"


def swapped(rows=800, seed=0):
    """Counts of a neutral word, "she" and "he"; class yes goes along with "she"."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows)
    she = rng.random(rows) < 0.2 + 0.6 * truth
    words = rng.poisson(2, rows) * np.where(rng.random(rows) < 0.5, 1, 2)
    X = np.column_stack([rng.poisson(1 + truth), she * words, ~she * words]).astype(float)
    return X, X[:, [0, 2, 1]], truth


def test_no_strength_is_logistic_regression():
    X, other, truth = swapped()
    ours = LogitPairedClassifier(strength=0.0, tol=1e-9).fit(X, truth, counterfactual=other)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-9).fit(X, truth)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("multinomial", [False, True])
def test_pairing_is_ridge_on_extra_rows(multinomial):
    # strength/2·mean (δ·w)² is a quadratic form: check the stationary point by its gradient.
    X, other, truth = swapped(300)
    truth = (truth + (X[:, 0] > 2)).astype(int)
    strength = 0.7
    model = LogitPairedClassifier(
        strength=strength, C=2.0, multinomial=multinomial, tol=1e-13, max_iter=3000
    ).fit(X, truth, counterfactual=other)
    logits = X @ model.coef_.T + model.intercept_
    p = softmax(logits, axis=1) if multinomial else 1 / (1 + np.exp(-logits))
    residuals = (p - (truth[:, None] == model.classes_)) / 300
    change = X - other
    gradient = residuals.T @ X + model.coef_ / 600
    gradient += strength * (change @ model.coef_.T).T @ change / 300
    assert np.abs(gradient).max() < 1e-5
    assert np.abs(residuals.sum(axis=0)).max() < 1e-5


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_pairing_brings_counterfactual_changes_to_nothing(kind):
    X, other, truth = swapped()
    flips = []
    for strength in (0.0, 1.0, 1000.0):
        model = LogitPairedClassifier(strength=strength)
        model.fit(kind(X), truth, counterfactual=kind(other))
        flips.append((model.predict(X) != model.predict(other)).mean())
    assert flips[0] > 0.3
    assert flips[0] > flips[1] >= flips[2]
    assert flips[2] < 0.01
    assert model.score(X, truth) > 0.6


def test_pairing_with_several_counterfactuals():
    X, other, truth = swapped(300)
    once = LogitPairedClassifier(strength=2.0).fit(X, truth, counterfactual=other)
    twice = LogitPairedClassifier(strength=2.0).fit(X, truth, counterfactual=[other, other])
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-6)
    with says(
        UsageError,
        "counterfactual has the shape (299, 3) for features of shape (300, 3). "
        "Give the features of every row's counterfactual text, in the same columns.",
    ):
        LogitPairedClassifier().fit(X, truth, counterfactual=other[1:])
    with says(UsageError, "strength=-1 is negative. Give 0 or more."):
        LogitPairedClassifier(strength=-1).fit(X, truth, counterfactual=other)


@pytest.mark.parametrize(
    ("remedy", "role"),
    [(LogitPairedClassifier, "counterfactual"), (CovarianceConstrainedClassifier, "names")],
)
def test_linear_remedies_follow_scikit_learn(remedy, role):
    X, other, truth = swapped(300)
    given = other if role == "counterfactual" else other[:, 1:]
    model = clone(remedy(strength=0.5, C=0.3))
    assert model.get_params() == {**remedy().get_params(), "strength": 0.5, "C": 0.3}
    scaler = StandardScaler(with_mean=False, with_std=False)
    line = make_pipeline(scaler, model)
    line.fit(X, truth, **{f"{remedy.__name__.lower()}__{role}": given})
    assert line.predict(X).shape == (300,)
    done = cross_validate(model, X, truth, params={role: given}, cv=2)
    assert done["test_score"].mean() > 0.6
    weights = np.arange(300) % 2
    half = clone(model).fit(X, truth, sample_weight=weights, **{role: given})
    rows = weights == 1
    alone = clone(model).fit(X[rows], truth[rows], **{role: given[rows]})
    np.testing.assert_allclose(half.coef_, alone.coef_, atol=2e-3)


def unequal(rows=1500, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(rows) < 0.4, "f", "m")
    truth = rng.integers(0, classes, rows)
    X = np.column_stack(
        [np.eye(classes)[truth] + 0.7 * rng.normal(size=(rows, classes)), group == "f"]
    )
    X[:, 1] -= 0.6 * (group == "f")
    return X, truth, group


def test_reductions_lower_the_gap_they_aim_at():
    X, truth, group = unequal()
    X = X[:, :2]

    def gap(scores):
        own = truth == 1
        return abs(scores[own & (group == "f")].mean() - scores[own & (group == "m")].mean())

    plain = LogisticRegression().fit(X, truth)
    before = gap(plain.predict(X).astype(float))
    model = ReductionsClassifier(LogisticRegression(), max_iter=10).fit(X, truth, group=group)
    after = gap(model.class_probabilities(X)[:, 1])
    assert before > 0.1
    assert after < 0.05
    weights = [w for w, _ in model.mixtures_[0]]
    assert sum(weights) == pytest.approx(1)
    assert len(weights) > 1
    assert model.tie_share_[1] > 0.9
    by_hand = sum(w * h.predict(X) for w, h in model.mixtures_[0])
    np.testing.assert_allclose(model.class_probabilities(X)[:, 1], by_hand)
    assert not model.needs_group_at_decision


def test_reductions_of_several_classes_and_a_class_with_one_group():
    X, truth, group = unequal(400, classes=3)
    group = np.where(truth == 2, "m", group)
    model = ReductionsClassifier(LogisticRegression(), max_iter=2).fit(X, truth, group=group)
    assert model.class_probabilities(X).shape == (400, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.notes_ == ["Fitted without the constraint, with one group: 2."]
    assert clone(model).get_params()["max_iter"] == 2


def test_reductions_beside_a_thread_that_leaves_its_filters_of_warnings():
    """Filters belong to the process: a thread that entered first and leaves while we fit."""
    X, truth, group = unequal(400)
    other = warnings.catch_warnings()
    left = []

    class Beside(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if not left:
                left.append(other.__exit__(None, None, None))
            return super().fit(X, y, sample_weight=sample_weight)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with trained_together(["fairlearn"]):
            other.__enter__()
            model = ReductionsClassifier(Beside(), max_iter=10).fit(X, truth, group=group)
    assert left
    assert model.n_iter_ > 1


def test_reductions_without_their_extra_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fairlearn", None)
    with says(
        MissingExtra,
        "The reductions remedy needs the extra 'fairlearn', which is not installed. "
        "Run: pip install 'evenhand[fairlearn]'",
    ):
        ReductionsClassifier().fit([[0.0], [1.0]], [0, 1], group=["f", "m"])
    with pytest.raises(UsageError, match="constraint='tpr' is not one of true_positive_rate"):
        ReductionsClassifier(constraint="tpr").fit([[0.0], [1.0]], [0, 1], group=["f", "m"])
