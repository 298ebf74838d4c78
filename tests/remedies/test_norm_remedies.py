"""Residualisation and covariance penalty: what is provable, and what simulated texts show."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.errors import DataError, UsageError
from evenhand.models.linear import LogisticClassifier
from evenhand.remedies.cells import training_cells
from evenhand.remedies.norm_penalty import STRENGTHS, NormPenalisedClassifier, norm_directions
from evenhand.remedies.norm_slopes import (
    NormEstimator,
    StrengthStep,
    crossfit,
    fold_numbers,
    norm_slopes,
    norm_trend,
    pick_strength,
    residual,
)
from evenhand.remedies.residualise import GRID, NormResidualisedClassifier, residualise

CLASSES = 6


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def leaky(rows=3000, seed=0, strength=1.5):
    """Six classes with female shares 0.15 … 0.85; the norm pushes a class's own features.

    The last four features carry the norm, apart from the group.
    """
    rng = np.random.default_rng(seed)
    share = np.linspace(0.15, 0.85, CLASSES)
    truth = rng.integers(0, CLASSES, rows)
    group = np.where(rng.random(rows) < share[truth], "f", "m")
    norm = rng.normal(size=rows) + np.where(group == "f", 0.5, -0.5)
    push = strength * (share[truth] - 0.5) * norm
    X = np.column_stack(
        [
            np.eye(CLASSES)[truth] * (1.5 + push)[:, None] + rng.normal(size=(rows, CLASSES)),
            norm[:, None] + rng.normal(size=(rows, 4)),
        ]
    )
    return X, truth, group, norm


def crossed(rows=3000, seed=0):
    X, truth, group, norm = leaky(rows, seed)
    cells = training_cells(truth, group=group)
    logits = LogisticClassifier().fit(X, truth).decision_function(X)
    return logits, norm, cells, truth, group


def cell_covariance(logits, norm, cells, c):
    """Covariance of class c's score and the norm inside its cells, pooled, by plain loops."""
    total = 0.0
    for g in range(len(cells.groups)):
        own = (cells.truth == c) & (cells.group == g)
        total += ((logits[own, c] - logits[own, c].mean()) * (norm[own] - norm[own].mean())).sum()
    return total


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
def test_exact_slopes_leave_one_minus_strength_of_the_covariance(strength):
    logits, norm, cells, _, _ = crossed()
    slopes = norm_slopes(logits, norm=norm, cells=cells, focal=0)
    exact = replace(slopes, shrunk=slopes.raw)
    after = residual(logits, norm=norm, slopes=exact, strength=strength)
    for c in range(CLASSES):
        before = cell_covariance(logits, norm, cells, c)
        assert cell_covariance(after, norm, cells, c) == pytest.approx(
            (1 - strength) * before, abs=1e-8 * abs(before)
        )


def test_slopes_equal_least_squares_with_a_mean_for_each_cell():
    import statsmodels.api as sm

    logits, norm, cells, truth, group = crossed(400)
    slopes = norm_slopes(logits, norm=norm, cells=cells, focal=0)
    for c in range(CLASSES):
        own = truth == c
        design = np.column_stack([norm, group == "f", group == "m"])[own]
        fit = sm.OLS(logits[own, c], design.astype(float)).fit()
        assert slopes.raw[c] == pytest.approx(fit.params[0])
        assert slopes.variance[c] == pytest.approx(fit.bse[0] ** 2)


def test_shrinkage_follows_the_line_where_a_class_is_small():
    rng = np.random.default_rng(3)
    size = np.array([900, 900, 900, 900, 900, 8])
    truth = np.repeat(np.arange(CLASSES), size)
    share = np.linspace(0.2, 0.8, CLASSES)
    group = np.where(rng.random(truth.size) < share[truth], "f", "m")
    norm = rng.normal(size=truth.size)
    around = 2 * (share - 0.5) + 0.3 * np.array([1, -1, 1, -1, 1, -1])
    logits = rng.normal(size=(truth.size, CLASSES)) + np.outer(norm, around)
    cells = training_cells(truth, group=group)
    slopes = norm_slopes(logits, norm=norm, cells=cells, focal=0)
    counted = cells.counts[:, 0] / cells.counts.sum(axis=1)
    np.testing.assert_allclose(slopes.shares, counted)
    fitted = slopes.line[0] + slopes.line[1] * slopes.shares
    # All lie between their own estimate and the line; the small class goes nearly all the way.
    low, high = np.minimum(slopes.raw, fitted), np.maximum(slopes.raw, fitted)
    assert ((slopes.shrunk >= low - 1e-12) & (slopes.shrunk <= high + 1e-12)).all()
    moved = abs(slopes.shrunk - slopes.raw) / abs(fitted - slopes.raw)
    assert moved[5] > moved[:5].max()
    assert moved[:5].max() < 0.1 < moved[5]
    assert slopes.line[1] == pytest.approx(2, abs=0.8)


def test_shrunk_slopes_solve_their_own_equations():
    logits, norm, cells, _, _ = crossed(600)
    s = norm_slopes(logits, norm=norm, cells=cells, focal=0)
    w = 1 / (s.variance + s.spread)
    a0, a1 = np.polynomial.polynomial.polyfit(s.shares, s.raw, 1, w=np.sqrt(w))
    assert (a0, a1) == pytest.approx(s.line, rel=1e-6)
    rest = s.raw - a0 - a1 * s.shares
    spread = max(0, (w**2 @ (rest**2 - s.variance)) / (w @ w)) * CLASSES / (CLASSES - 2)
    assert s.spread == pytest.approx(spread, rel=1e-6)
    keep = s.spread / (s.spread + s.variance)
    np.testing.assert_allclose(s.shrunk, a0 + a1 * s.shares + keep * rest, rtol=1e-6)


def test_a_class_too_small_for_a_slope_gets_the_lines():
    rng = np.random.default_rng(0)
    truth = np.concatenate([np.repeat(np.arange(4), 60), [4, 4, 4]])
    group = np.array(["f", "m"])[rng.integers(0, 2, truth.size)]
    group[-3:] = ["f", "m", "m"]
    norm = rng.normal(size=truth.size)
    logits = rng.normal(size=(truth.size, 5))
    cells = training_cells(truth, group=group)
    slopes = norm_slopes(logits, norm=norm, cells=cells, focal=0)
    assert slopes.variance[4] > 1e5
    fitted = slopes.line[0] + slopes.line[1] * slopes.shares[4]
    assert slopes.shrunk[4] == pytest.approx(fitted, abs=1e-5)


def steps(*rows):
    return [
        StrengthStep(strength=s, accuracy=a, slopes=(b, b), mean_absolute=(0.1, 0.1), bias=b + 0.1)
        for s, a, b in rows
    ]


def test_strength_is_the_one_of_least_bias_within_the_budget():
    path = steps((0, 0.80, 1.0), (0.5, 0.795, 0.5), (0.75, 0.785, 0.2), (1, 0.78, 0.1))
    assert pick_strength(path, budget=0.01) == (0.5, "the accuracy budget of 0.01")
    assert pick_strength(path, budget=0.05) == (1, "the largest strength tried")
    turning = steps((0, 0.80, 1.0), (0.5, 0.80, 0.3), (1, 0.80, 0.4))
    assert pick_strength(turning, budget=0.01) == (0.5, "norm bias, which more would not lower")
    # Past a step that breaks the budget nothing counts, however good.
    beyond = steps((0, 0.80, 1.0), (0.5, 0.70, 0.5), (1, 0.80, 0.0))
    assert pick_strength(beyond, budget=0.01) == (0, "the accuracy budget of 0.01")
    with says(UsageError, "budget=3 is not a share of accuracy between 0 and 1, such as 0.01."):
        pick_strength(path, budget=3)


def test_no_strength_is_taken_where_it_would_add_norm_bias():
    # As on real biographies of nine occupations: accuracy never hurts and the slope never passes
    # 0, so the largest strength within the budget would be all of it, and the bias would grow.
    rising = steps((0, 0.78, 0.44), (0.5, 0.78, 0.60), (1, 0.78, 0.76))
    assert pick_strength(rising, budget=0.01) == (0, "norm bias, which more would not lower")
    nowhere = [replace(each, bias=float("nan")) for each in rising]
    assert pick_strength(nowhere, budget=0.01)[0] == 0


def test_the_size_of_norm_bias_by_hand():
    # Shares .2, .5, .8 (spread √.06 = .245); the score of group f follows the norm in class 2
    # (r = 1), is against it in class 0 (r = −1) and neither in class 1: slope 2 ÷ .6, mean ⅔.
    norm = np.tile([1.0, 2.0, 3.0, 4.0], 6)
    truth = np.repeat([0, 1, 2], 8)
    group = np.tile(np.repeat(["f", "m"], 4), 3)
    own = {0: -norm[:8], 1: np.tile([1.0, 4.0, 4.0, 1.0], 2), 2: norm[:8]}
    logits = np.zeros((24, 3))
    for c in range(3):
        logits[truth == c, c] = own[c]
    cells = training_cells(truth, group=group)
    more = np.array([[2, 8], [5, 5], [8, 2]])  # the shares alone are taken from the counts
    trend = norm_trend(logits, norm=norm, cells=replace(cells, counts=more), focal=0)
    assert trend.slopes == pytest.approx([2 / 0.6, 2 / 0.6])
    assert trend.mean_absolute == pytest.approx([2 / 3, 2 / 3])
    assert trend.size == pytest.approx(2 / 3 + 2 / 0.6 * np.sqrt(0.06))


def test_correlations_of_cells_equal_spearman():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(2)
    truth, group = rng.integers(0, 3, 200), np.array(["f", "m"])[rng.integers(0, 2, 200)]
    truth[:3], group[:3] = 3, "f"  # three people of one group, and nobody of the other
    logits, norm = rng.normal(size=(200, 4)).round(1), rng.normal(size=200).round(1)
    logits[truth == 2, 2] = 1.0
    cells = training_cells(truth, group=group)
    found = norm_trend(logits, norm=norm, cells=cells, focal=0).correlations
    for c in range(4):
        for g, name in enumerate("fm"):
            own = (truth == c) & (group == name)
            if c == 2 or not own.any():
                assert np.isnan(found[c, g])  # a constant score has no correlation, nor has nobody
            else:
                assert found[c, g] == pytest.approx(spearmanr(logits[own, c], norm[own])[0])
    two = norm_trend(
        logits[:, 1:2], norm=norm, cells=training_cells(truth == 1, group=group), focal=0
    )
    assert two.correlations[0] == pytest.approx(found[1])


def test_steps_are_judged_by_slopes_that_have_not_seen_the_row():
    """Slopes lower the bias of the rows they were learnt from even where there is none at all."""
    fooled, judged = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, CLASSES, 300)
        share = np.linspace(0.15, 0.85, CLASSES)
        group = np.where(rng.random(300) < share[truth], "f", "m")
        norm, noise = rng.normal(size=300), rng.normal(size=(300, CLASSES))
        found = residualise(noise, norm=norm, truth=truth, group=group, norm_group="f", budget=1)
        assert [step.strength for step in found.steps] == list(GRID)
        cells = training_cells(truth, group=group)
        exact = replace(found.slopes, shrunk=found.slopes.raw)
        after = residual(noise, norm=norm, slopes=exact, strength=1.0)
        before = norm_trend(noise, norm=norm, cells=cells, focal=0).size
        fooled.append(before - norm_trend(after, norm=norm, cells=cells, focal=0).size)
        judged.append(found.steps[0].bias - found.steps[-1].bias)
    assert np.mean(fooled) > 0.04
    assert np.mean(judged) < 0


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_reaching_likely_people_takes_the_same_covariance(strength):
    logits, norm, cells, _, _ = crossed()
    slopes = norm_slopes(logits, norm=norm, cells=cells, focal=0, reach="likely")
    exact = replace(slopes, shrunk=slopes.raw)
    after = residual(logits, norm=norm, slopes=exact, strength=strength)
    for c in range(CLASSES):
        before = cell_covariance(logits, norm, cells, c)
        left = cell_covariance(after, norm, cells, c)
        assert left == pytest.approx((1 - strength) * before, abs=1e-8 * abs(before))
        # Who cannot be of the class keeps the score, whatever the norm.
        own = np.zeros((1, CLASSES))
        own[0, c] = -40.0
        kept = residual(own, norm=np.array([3.0]), slopes=exact, strength=strength)
        assert kept[0, c] == pytest.approx(-40, abs=1e-9)


def test_the_reach_with_less_bias_within_the_budget_is_taken():
    X, truth, group, _ = leaky(2500, seed=5)
    found = {}
    for reach in ("everybody", "likely", None):
        model = NormResidualisedClassifier(norm_group="f", reach=reach, budget=0.01)
        model.fit(X, truth, group=group, norm_features=X[:, CLASSES:])
        made = model.residualisation_
        found[reach] = next(s.bias for s in made.steps if s.strength == made.strength)
        assert made.slopes.reach == reach or reach is None
    assert found[None] == min(found["everybody"], found["likely"])
    assert found["everybody"] != found["likely"]
    with says(
        UsageError,
        "reach='likly' is not one of everybody, likely. Did you mean 'likely'?",
    ):
        NormResidualisedClassifier(norm_group="f", reach="likly").fit(X, truth, group=group)


def test_folds_are_even_and_keep_copies_together():
    _, truth, group, _ = leaky(503)
    cells = training_cells(truth, group=group)
    fold = fold_numbers(cells, folds=5, seed=1)
    by_class = np.array([np.bincount(fold[truth == c], minlength=5) for c in range(CLASSES)])
    assert (np.ptp(by_class, axis=1) <= 1).all()
    origin = np.arange(503) // 2
    paired = fold_numbers(cells, folds=5, seed=1, origin=origin)
    assert (paired[0:502:2] == paired[1:503:2]).all()
    with says(
        DataError,
        "Only one training row of b: no fold without it could learn the class. "
        "Leave such classes out.",
    ):
        fold_numbers(training_cells(["a", "a", "b"], group=["f", "m", "f"]), folds=2, seed=0)
    with says(UsageError, "folds=1 is not between 2 and the 503 training rows."):
        fold_numbers(cells, folds=1, seed=0)


def test_cross_fitted_scores_come_from_models_that_left_the_row_out():
    X, truth, group, _ = leaky(400)
    cells = training_cells(truth, group=group)
    found = crossfit(
        X,
        truth,
        cells=cells,
        norm=NormEstimator(None, "f"),
        norm_features=X[:, CLASSES:],
        estimator=LogisticRegression(),
        folds=4,
        seed=2,
    )
    fold = fold_numbers(cells, folds=4, seed=2)
    out, inside = fold != 1, fold == 1
    alone = LogisticRegression().fit(X[out], truth[out])
    np.testing.assert_allclose(found.logits[inside], alone.decision_function(X[inside]))
    auc_like = found.norm[group == "f"].mean() - found.norm[group == "m"].mean()
    assert auc_like > 0.3  # high for the norm group


def test_a_class_that_a_fold_lacks_has_the_lowest_logit_there():
    # Bootstrapped rows can have a class whose rows all come from one person.
    X, truth, group, _ = leaky(300)
    truth[truth == 5] = 4
    truth[:4], origin = 5, np.arange(300)
    group[:4], origin[:4] = ["f", "m", "f", "m"], 0
    found = crossfit(
        X,
        truth,
        cells=training_cells(truth, group=group),
        norm=NormEstimator(None, "f"),
        norm_features=X,
        folds=3,
        origin=origin,
    )
    assert np.isfinite(found.logits).all()
    assert found.logits[0, 5] == found.logits[:4].min()
    model = NormResidualisedClassifier(norm_group="f", folds=3)
    model.fit(X, truth, group=group, origin=origin)
    assert model.predict_proba(X).shape == (300, 6)


def test_residualising_lowers_the_trend_on_rows_it_has_not_seen():
    X, truth, group, _ = leaky(4000, seed=1)
    test_X, test_truth, test_group, test_norm = leaky(4000, seed=2)
    cells = training_cells(test_truth, group=test_group)
    slope = {}
    for strength in (0.0, 0.5, 1.0):
        model = NormResidualisedClassifier(norm_group="f", strength=strength)
        model.fit(X, truth, group=group, norm_features=X[:, CLASSES:])
        logits = model.decision_function(test_X, norm_features=test_X[:, CLASSES:])
        # Judged with the latent norm, which no scorer has seen.
        slope[strength] = norm_trend(logits, norm=test_norm, cells=cells, focal=0).slope
    assert slope[0.0] > 0.5
    assert slope[0.0] > slope[0.5] > slope[1.0]
    assert slope[1.0] < 0.6 * slope[0.0]


def test_the_budget_bounds_the_cross_fitted_loss():
    X, truth, group, _ = leaky(2500, seed=3)
    small = NormResidualisedClassifier(norm_group="f", budget=0.002).fit(X, truth, group=group)
    large = NormResidualisedClassifier(norm_group="f", budget=0.2).fit(X, truth, group=group)
    chosen = {m.residualisation_.strength for m in (small, large)}
    assert min(chosen) == small.residualisation_.strength < large.residualisation_.strength
    for model, budget in ((small, 0.002), (large, 0.2)):
        path = {step.strength: step for step in model.residualisation_.steps}
        at = path[model.residualisation_.strength]
        assert path[0.0].accuracy - at.accuracy <= budget
        assert at.bias <= path[0.0].bias
    assert small.residualisation_.stopped_by == "the accuracy budget of 0.002"


def test_strength_zero_is_the_model_itself():
    X, truth, group, _ = leaky(300)
    for inner, joint in (
        (LogisticClassifier(), False),
        (LogisticRegression(), True),
        (OneVsRestClassifier(LogisticRegression()), False),
    ):
        model = NormResidualisedClassifier(inner, norm_group="f", strength=0.0, folds=2)
        model.fit(X, truth, group=group)
        alone = clone(inner).fit(X, truth)
        assert model.joint_ is joint
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_the_correction_folds_into_the_weights(kind):
    X, truth, group, _ = leaky(800)
    model = NormResidualisedClassifier(norm_group="f", strength=0.8)
    model.fit(kind(X), truth, group=group)
    folded = model.folded()
    np.testing.assert_allclose(folded.decision_function(X), model.decision_function(kind(X)))
    np.testing.assert_allclose(folded.predict_proba(X), model.predict_proba(kind(X)))
    assert not np.allclose(folded.coef_, model.estimator_.coef_)
    other = NormResidualisedClassifier(norm_group="f", strength=0.8)
    other.fit(X, truth, group=group, norm_features=X[:, CLASSES:])
    with says(
        UsageError,
        "The correction folds into the weights only where classifier and norm scorer are "
        "linear in the same features and it reaches everybody. Use this estimator as it is.",
    ):
        other.folded()


def test_a_rare_third_group_neither_trains_the_norm_nor_sets_its_weights():
    X, truth, group, _ = leaky(2400)
    three = group.copy()
    three[::60] = "x"
    found = []
    for rows in (np.flatnonzero(three != "x"), np.arange(2400)):
        cells = training_cells(truth[rows], group=three[rows])
        found.append(NormEstimator(None, "f").fitted(X[rows], cells, np.arange(rows.size))(X))
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    assert found[0][group == "f"].mean() - found[0][group == "m"].mean() > 0.5
    with says(
        DataError,
        "The group 'x' is too small to learn a norm from: 200 rows, and 20 in at least five "
        "classes, are needed. Choose a larger group with norm_group=.",
    ):
        NormResidualisedClassifier(norm_group="x").fit(X, truth, group=three)


def test_two_classes_have_one_slope():
    X, truth, group, _ = leaky(1200, strength=3.0)
    y = np.where(truth > 2, "yes", "no")
    model = NormResidualisedClassifier(norm_group="f", strength=1.0).fit(X, y, group=group)
    assert model.residualisation_.slopes.shrunk.shape == (1,)
    assert model.decision_function(X).shape == (1200,)
    np.testing.assert_allclose(model.folded().predict_proba(X), model.predict_proba(X))
    assert set(model.predict(X)) == {"yes", "no"}


def test_a_callable_norm_is_used_as_it_stands():
    X, truth, group, _ = leaky(600)
    given = NormResidualisedClassifier(
        norm_scorer=lambda rows: rows[:, CLASSES], norm_group="f", strength=1.0
    )
    given.fit(X, truth, group=group)
    bare = residualise(
        crossfit(
            X,
            truth,
            cells=training_cells(truth, group=group),
            norm=NormEstimator(lambda rows: rows[:, CLASSES], "f"),
            norm_features=X,
        ).logits,
        norm=X[:, CLASSES],
        truth=truth,
        group=group,
        norm_group="f",
        strength=1.0,
    )
    np.testing.assert_allclose(given.residualisation_.slopes.shrunk, bare.slopes.shrunk)
    assert not given.needs_group_at_decision


def test_norm_remedies_refuse_in_words():
    X, truth, group, _ = leaky(300)
    three = np.where(np.arange(300) % 3 == 0, "x", group)
    with says(
        UsageError,
        "There are 3 groups (f, m and x). Say with norm_group= whose norm is scored.",
    ):
        NormResidualisedClassifier().fit(X, truth, group=three)
    with says(UsageError, "norm_group='w' is not among f, m."):
        NormResidualisedClassifier(norm_group="w").fit(X, truth, group=group)
    with says(
        DataError,
        "All training rows belong to the group 'f'. A norm needs rows of at least two groups.",
    ):
        NormResidualisedClassifier().fit(X, truth, group=["f"] * 300)
    with says(
        UsageError, "The norm has the shape (299,) for 300 rows. Give one logit for each row."
    ):
        NormPenalisedClassifier(strength=1).fit(X, truth, group=group, norm=np.zeros(299))
    with says(
        DataError,
        "The norm is not finite in 1 of 300 rows. "
        "Give logits, with probabilities kept off 0 and 1.",
    ):
        NormPenalisedClassifier(strength=1).fit(X, truth, group=group, norm=[np.inf] + [0.0] * 299)
    with says(UsageError, "strength=-1 is negative. Give 0 or more."):
        NormPenalisedClassifier(strength=-1).fit(X, truth, group=group)


@pytest.mark.parametrize("remedy", [NormResidualisedClassifier, NormPenalisedClassifier])
def test_norm_remedies_follow_scikit_learn(remedy):
    X, truth, group, _ = leaky(500)
    model = clone(remedy(norm_group="f", strength=0.5, norm_scorer=LogisticRegression(C=0.1)))
    assert model.get_params()["norm_scorer__C"] == 0.1
    line = make_pipeline(StandardScaler(), model)
    line.fit(X, truth, **{f"{remedy.__name__.lower()}__group": group})
    assert line.predict_proba(X).shape == (500, CLASSES)
    done = cross_validate(model, X, truth, params={"group": group}, cv=2)
    assert done["test_score"].mean() > 0.4


def test_directions_are_covariances_with_the_standardised_norm():
    X, truth, group, norm = leaky(300)
    cells = training_cells(truth, group=group)
    found = norm_directions(X, norm=norm, cells=cells)
    for c in range(CLASSES):
        for g, name in enumerate(cells.groups):
            own = (truth == c) & (group == name)
            z = (norm[own] - norm[own].mean()) / norm[own].std()
            np.testing.assert_allclose(found[c, g], (X[own] * z[:, None]).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(norm_directions(sparse.csr_matrix(X), norm=norm, cells=cells), found)


def test_the_penalty_is_ridge_regression_on_shrunk_features():
    # METHODS 14.2: the same as ridge on x − U diag(1−t) Uᵀx, t = √(l₂/(l₂+λs²)).
    X, truth, group, norm = leaky(500)
    cells = training_cells(truth, group=group)
    strength, C = 3.0, 2.0
    ours = NormPenalisedClassifier(strength=strength, C=C, tol=1e-9, max_iter=2000)
    ours.fit(X, truth, group=group, norm=norm)
    l2 = 1 / (C * len(truth))
    for c in range(CLASSES):
        U, s, _ = np.linalg.svd(
            norm_directions(X, norm=norm, cells=cells)[c].T, full_matrices=False
        )
        t = np.sqrt(l2 / (l2 + strength * s**2))
        shrink = np.eye(X.shape[1]) - U @ np.diag(1 - t) @ U.T
        theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10)
        theirs.fit(X @ shrink, truth == c)
        np.testing.assert_allclose(ours.coef_[c], shrink @ theirs.coef_[0], atol=2e-4)
        assert ours.intercept_[c] == pytest.approx(theirs.intercept_[0], abs=2e-4)


def test_no_penalty_is_plain_logistic_regression():
    X, truth, group, norm = leaky(500)
    weights = np.random.default_rng(0).random(500) + 0.5
    ours = NormPenalisedClassifier(strength=0.0, tol=1e-9, max_iter=2000)
    ours.fit(sparse.csr_matrix(X), truth, group=group, norm=norm, sample_weight=weights)
    theirs = LogisticClassifier(tol=1e-12).fit(X, truth, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_the_penalty_takes_away_covariance_with_the_norm():
    X, truth, group, norm = leaky(800)
    cells = training_cells(truth, group=group)
    size = []
    for strength in (0.0, 1.0, 1000.0):
        model = NormPenalisedClassifier(strength=strength, tol=1e-4)
        model.fit(X, truth, group=group, norm=norm)
        away = norm_directions(X, norm=norm, cells=cells)
        size.append(np.abs(np.einsum("cgd,cd->cg", away, model.coef_)).max())
    assert size[0] > 0.3
    assert size[0] > size[1] > size[2]
    assert size[2] < 0.02


def test_the_penalty_chooses_its_strength_within_the_budget():
    X, truth, group, _ = leaky(1200, seed=4)
    model = NormPenalisedClassifier(norm_group="f", budget=0.02, folds=3)
    model.fit(X, truth, group=group, norm_features=X[:, CLASSES:])
    path = {step.strength: step for step in model.steps_}
    tried = list(path)
    assert tried == [0.0, *STRENGTHS][: len(tried)]
    assert path[0.0].accuracy - path[model.strength_].accuracy <= 0.02
    # The first strength that is too much ends the search: no larger one would be chosen.
    assert model.stopped_by_ == "the accuracy budget of 0.02"
    assert model.strength_ == tried[-2] > 0
    assert path[0.0].accuracy - path[tried[-1]].accuracy > 0.02


def test_the_penalty_on_two_classes():
    X, truth, group, norm = leaky(600)
    y = truth > 2
    model = NormPenalisedClassifier(strength=1000.0).fit(X, y, group=group, norm=norm)
    assert model.coef_.shape == (1, X.shape[1])
    away = norm_directions(X, norm=norm, cells=training_cells(y, group=group)).reshape(
        -1, X.shape[1]
    )
    assert np.abs(away @ model.coef_[0]).max() < 0.05
    assert model.predict(X).dtype == bool
