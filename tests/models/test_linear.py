import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_estimator

from evenhand.errors import DataError, UsageError
from evenhand.models.linear import LogisticClassifier
from evenhand.models.logistic import fit_logistic


def counts(rows=300, words=80, classes=4, seed=0):
    """Word counts where each class prefers ten words of its own."""
    generator = np.random.default_rng(seed)
    size = np.array([8, 4, 2, 1])[:classes]
    labels = generator.choice(classes, size=rows, p=size / size.sum())
    zipf = 1 / np.arange(1, words + 1)
    rate = np.tile(20 * zipf / zipf.sum(), (classes, 1))
    for k in range(classes):
        rate[k, 20 + 10 * k : 30 + 10 * k] *= 3
    table = generator.poisson(rate[labels]).astype(float)
    return table, np.array(["a", "b", "c", "d"])[labels]


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def objective(table, positive, weight, intercept, c, row_weights):
    sign = np.where(positive, 1, -1)
    loss = np.logaddexp(0, -sign * (table @ weight + intercept))
    return float(row_weights @ loss + weight @ weight / (2 * c))


@pytest.mark.parametrize("arguments", [{}, {"multinomial": True}, {"class_weight": "balanced"}])
def test_passes_the_checks_of_scikit_learn(arguments):
    results = check_estimator(LogisticClassifier(threads=1, **arguments), on_skip=None)
    assert len(results) > 50


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_one_versus_rest_equals_scikit_learn(kind):
    table, labels = counts()
    ours = LogisticClassifier(tol=1e-13).fit(kind(table), labels)
    model = LogisticRegression(solver="newton-cholesky", tol=1e-9)
    theirs = OneVsRestClassifier(model).fit(table, labels)
    for k, one in enumerate(theirs.estimators_):
        np.testing.assert_allclose(ours.coef_[k], one.coef_[0], atol=2e-5)
        assert ours.intercept_[k] == pytest.approx(one.intercept_[0], abs=2e-4)
    np.testing.assert_allclose(ours.predict_proba(table), theirs.predict_proba(table), atol=1e-5)
    assert (ours.predict(kind(table)) == theirs.predict(table)).all()
    rest = ours.class_probabilities(table)
    np.testing.assert_allclose(
        rest[:, 0], theirs.estimators_[0].predict_proba(table)[:, 1], atol=1e-5
    )


def test_multinomial_equals_scikit_learn():
    table, labels = counts()
    ours = LogisticClassifier(multinomial=True, tol=1e-13, C=0.5).fit(table, labels)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-9, C=0.5).fit(table, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.predict_proba(table), theirs.predict_proba(table), atol=1e-5)


def test_two_classes_with_sample_weights_and_class_weights_equal_scikit_learn():
    table, labels = counts(classes=2)
    weights = np.random.default_rng(1).random(len(labels))
    for class_weight in (None, "balanced", {"a": 0.3, "b": 2.0}):
        ours = LogisticClassifier(tol=1e-13, class_weight=class_weight)
        theirs = LogisticRegression(solver="newton-cholesky", tol=1e-9, class_weight=class_weight)
        ours.fit(table, labels, sample_weight=weights)
        theirs.fit(table, labels, sample_weight=weights)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
        np.testing.assert_allclose(
            ours.predict_proba(table), theirs.predict_proba(table), atol=1e-5
        )


def test_balanced_one_versus_rest_equals_scikit_learn():
    table, labels = counts()
    ours = LogisticClassifier(tol=1e-13, class_weight="balanced").fit(table, labels)
    model = LogisticRegression(solver="newton-cholesky", tol=1e-9, class_weight="balanced")
    theirs = OneVsRestClassifier(model).fit(table, labels)
    for k, one in enumerate(theirs.estimators_):
        np.testing.assert_allclose(ours.coef_[k], one.coef_[0], atol=2e-5)


def test_without_an_intercept_equals_scikit_learn():
    table, labels = counts(classes=2)
    ours = LogisticClassifier(tol=1e-13, fit_intercept=False).fit(table, labels)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-9, fit_intercept=False).fit(
        table, labels
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    assert ours.intercept_.tolist() == [0.0]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 20), st.booleans())
def test_reaches_the_minimum_that_scipy_finds(seed, c, single):
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(40, 5)) * [1, 10, 0.1, 1, 1] + [0, 30, 0, -2, 0]
    positive = generator.random(40) < 0.4
    positive[:2] = True, False
    weights = generator.random(40) + 0.01
    kind = np.float32 if single else np.float64
    ours = LogisticClassifier(C=c, tol=1e-6 if single else 1e-10, max_iter=2000)
    ours.fit(table.astype(kind), positive, sample_weight=weights)
    found = objective(
        table, positive, ours.coef_[0].astype(float), float(ours.intercept_[0]), c, weights
    )
    best = optimize.minimize(
        lambda v: objective(table, positive, v[:5], v[5], c, weights),
        np.r_[ours.coef_[0], ours.intercept_[0]].astype(float),
        method="BFGS",
    )
    assert found <= best.fun * (1 + (1e-4 if single else 1e-6))
    assert ours.coef_.dtype == kind


def test_single_precision_stays_within_the_promised_objective():
    table, labels = counts(rows=2000)
    exact = LogisticClassifier(tol=1e-12).fit(table, labels)
    single = LogisticClassifier().fit(sparse.csr_matrix(table, dtype=np.float32), labels)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.objective_, exact.objective_, rtol=1e-4)
    assert (single.objective_ >= exact.objective_ * (1 - 1e-6)).all()


def test_weights_act_as_repeated_rows():
    table, labels = counts(rows=200)
    times = np.random.default_rng(2).integers(0, 4, size=200)
    once = LogisticClassifier(tol=1e-12).fit(table, labels, sample_weight=times)
    repeated = LogisticClassifier(tol=1e-12)
    repeated.fit(np.repeat(table, times, axis=0), np.repeat(labels, times))
    np.testing.assert_allclose(once.coef_, repeated.coef_, atol=1e-5)


def test_threads_and_order_of_rows_do_not_change_the_fit():
    table, labels = counts()
    order = np.random.default_rng(3).permutation(len(labels))
    one = LogisticClassifier(tol=1e-12, threads=1).fit(sparse.csr_matrix(table), labels)
    two = LogisticClassifier(tol=1e-12, threads=3)
    two.fit(sparse.csr_matrix(table)[order], labels[order])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)


def test_warm_start_needs_no_more_steps():
    table, labels = counts()
    model = LogisticClassifier(warm_start=True, tol=1e-8).fit(table, labels)
    first = model.n_iter_
    model.fit(table, labels)
    assert model.n_iter_ == 0
    assert first > 5
    model.fit(table[:, :50], labels)
    assert model.coef_.shape == (4, 50)


def test_settled_classes_leave_the_passes():
    table, labels = counts(rows=1000)
    fit = fit_logistic(
        sparse.csr_matrix(table), np.unique(labels, return_inverse=True)[1], classes=4
    )
    assert fit.converged.all()
    alone = [
        fit_logistic(sparse.csr_matrix(table), np.where(labels == name, 0, -1), classes=1)
        for name in "abcd"
    ]
    # Together they take as many steps as the slowest alone, and reach the same.
    assert fit.iterations == max(one.iterations for one in alone)
    assert len({one.iterations for one in alone}) > 1
    np.testing.assert_allclose(fit.objective, [one.objective[0] for one in alone], rtol=1e-9)


def test_constant_and_empty_features():
    table, labels = counts(rows=100, words=40)
    table[:, 3], table[:, 5] = 0.0, 7.0
    model = LogisticClassifier().fit(sparse.csr_matrix(table), labels)
    assert np.abs(model.coef_[:, [3, 5]]).max() < 1e-6


def test_separable_rows_stay_finite():
    model = LogisticClassifier(C=1e6).fit(np.array([[-1e3], [1e3]]), [0, 1])
    assert np.isfinite(model.coef_).all()
    assert model.predict([[-5.0], [5.0]]).tolist() == [0, 1]


def test_strongest_words_by_class():
    table, labels = counts(rows=3000)
    words = [f"w{k}" for k in range(table.shape[1])]
    best = LogisticClassifier().fit(table, labels).strongest(words, count=5)
    assert list(best) == ["a", "b", "c", "d"]
    assert all(20 <= int(word[1:]) < 30 for word, _ in best["a"])
    assert [weight for _, weight in best["b"]] == sorted((w for _, w in best["b"]), reverse=True)
    two = LogisticClassifier().fit(table, labels == "a").strongest(words, count=1)
    assert list(two) == ["False", "True"]
    with says(
        UsageError,
        "2 words were given for 80 features. "
        "Give the words of the representation that the model was fitted on.",
    ):
        LogisticClassifier().fit(table, labels).strongest(["a", "b"])


def test_unfinished_fit_is_said():
    table, labels = counts()
    words = r"4 problems have not settled after max_iter=2 steps\."
    with pytest.warns(ConvergenceWarning, match=words):
        LogisticClassifier(max_iter=2, tol=1e-10).fit(table, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticClassifier().fit(table, labels)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"C": 0}, "C=0 is not a finite number above 0. The default is 1.0."),
        ({"C": float("inf")}, "C=inf is not a finite number above 0. The default is 1.0."),
        ({"tol": 0}, "tol=0 is not above 0. The default is 1e-5."),
        (
            {"class_weight": "balance"},
            "class_weight='balance' is neither 'balanced' nor a dict of weights. "
            "Did you mean 'balanced'?",
        ),
    ],
)
def test_bad_arguments(arguments, words):
    with says(UsageError, words):
        LogisticClassifier(**arguments).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("labels", "weights", "words"),
    [
        (
            ["a", "a"],
            None,
            "The training rows have one class alone, 'a'. "
            "Learning needs rows of at least two classes.",
        ),
        (
            ["a", "b"],
            [1, 0],
            "The training rows have one class alone, 'a'. "
            "Learning needs rows of at least two classes.",
        ),
        (["a", "b"], [1, -2], "sample_weight=-2 is negative. Give weights of 0 or more."),
        (["a", "b"], [0, 0], "Every sample_weight is zero. Give some rows a weight above 0."),
        (
            ["a", "b"],
            [1, 1, 1],
            "sample_weight has the shape (3,) for 2 rows. Give one weight for each row.",
        ),
    ],
)
def test_rows_that_cannot_be_learned_from(labels, weights, words):
    with says(DataError, words):
        LogisticClassifier().fit([[0.0], [1.0]], labels, sample_weight=weights)


def test_a_class_without_weight_is_named():
    with says(
        DataError, "Every row of class 'b' has weight 0. Leave its rows out, or give them weight."
    ):
        LogisticClassifier().fit(
            [[0.0], [1.0], [2.0]], ["a", "b", "c"], sample_weight=[1.0, 0.0, 1.0]
        )
