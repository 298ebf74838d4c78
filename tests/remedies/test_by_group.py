"""Thresholds by group after training, and one model for each group."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.errors import DataError, UsageError
from evenhand.models.linear import LogisticClassifier
from evenhand.remedies.cells import ROUTING
from evenhand.remedies.decoupled import DecoupledClassifier
from evenhand.remedies.ledger.task import Fitted
from evenhand.remedies.thresholds import (
    GroupThresholds,
    accepted,
    equal_implied_thresholds,
    equal_true_positive_rates,
)
from evenhand.stats.thresholds.implied import implied_thresholds
from evenhand.stats.thresholds.local import local_moments

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())[
    "1.7_post_processing"
]


def says(error, words):
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def oracle_rows():
    scores = ORACLE["she"] + ORACLE["he"]
    return np.array(scores), ["she"] * len(ORACLE["she"]) + ["he"] * len(ORACLE["he"])


def test_equal_rates_equal_the_oracle():
    scores, group = oracle_rows()
    found = equal_true_positive_rates(scores, truth=np.ones(18), group=group)
    assert found.target == pytest.approx(ORACLE["target_tpr"])
    for k, name in enumerate(found.groups):
        rule = ORACLE[f"{name}_rule"]
        assert found.cut[k] == rule["accept_above"]
        assert found.share[k] == pytest.approx(rule["accept_prob_at"])
        assert found.rate[k] == pytest.approx(rule["achieved"])
    assert found.gap == pytest.approx(ORACLE["gap_after"], abs=1e-12)


def test_whole_cuts_state_the_gap_that_remains():
    # Target 11/18 = 0.611. Of 8: 5/8 = 0.625 is nearest; of 10: 6/10 = 0.6. 0.025 remains.
    scores, group = oracle_rows()
    found = equal_true_positive_rates(scores, truth=np.ones(18), group=group, randomised=False)
    assert dict(zip(found.groups, found.rate, strict=True)) == {"he": 0.6, "she": 0.625}
    assert found.gap == pytest.approx(0.025)
    assert found.share.tolist() == [1.0, 1.0]


grids = st.lists(st.integers(0, 8), min_size=1, max_size=25)


@given(grids, grids, st.floats(0, 1))
def test_rates_are_equal_whatever_the_ties(first, second, target):
    scores = np.array([*first, *second]) / 8
    group = [0] * len(first) + [1] * len(second)
    found = equal_true_positive_rates(
        scores, truth=np.ones(scores.size), group=group, target=target
    )
    np.testing.assert_allclose(found.rate, target, atol=1e-9)
    whole = equal_true_positive_rates(
        scores, truth=np.ones(scores.size), group=group, target=target, randomised=False
    )
    # No other whole cut comes nearer.
    for k, own in enumerate((np.array(first) / 8, np.array(second) / 8)):
        rates = [(own >= cut).mean() for cut in [*own, 2]]
        assert abs(whole.rate[k] - target) == pytest.approx(min(abs(r - target) for r in rates))


def test_equal_rates_refuse_in_words():
    with says(DataError, "No row is positive, so there is no true positive rate to equalise."):
        equal_true_positive_rates([0.5], truth=[0], group=["f"])
    with says(UsageError, "target=1.5 is not a rate between 0 and 1."):
        equal_true_positive_rates([0.5], truth=[1], group=["f"], target=1.5)
    with says(
        UsageError,
        "1 scores, 2 truths and 1 groups do not fit together. Give one of each for every row.",
    ):
        equal_true_positive_rates([0.5], truth=[1, 1], group=["f"])
    lone = equal_true_positive_rates([0.9, 0.2], truth=[1, 0], group=["f", "m"])
    assert lone.notes == ("No positive rows of m: the threshold stays 0.5.",)
    assert np.isnan(lone.rate[1])
    assert np.isnan(lone.gap)


def groups_with_bias(rows=6000, seed=0):
    """Three classes; the scores of group m are pushed up for class b."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(rows) < 0.4, "f", "m")
    truth = rng.choice(list("abc"), size=rows)
    X = rng.normal(size=(rows, 3)) + 1.5 * (truth[:, None] == np.array(list("abc")))
    X[:, 1] += 0.8 * (group == "m")
    return X, truth, group


def test_gaps_vanish_on_validation_and_shrink_on_test():
    X, truth, group = groups_with_bias()
    train, valid, test = slice(0, 2000), slice(2000, 4000), slice(4000, 6000)
    model = LogisticClassifier().fit(X[train], truth[train])
    cuts = GroupThresholds(model).fit(X[valid], truth[valid], group=group[valid])
    np.testing.assert_allclose(cuts.rates_.gap, 0, atol=1e-12)
    before = GroupThresholds(model, randomised=False)
    before.fit(X[valid], truth[valid], group=group[valid])
    assert (before.rates_.gap > 0).any()
    assert before.rates_.gap.max() < 0.01
    judged = cuts.true_positive_rates(X[test], truth[test], group=group[test])
    chosen = model.class_probabilities(X[test]) >= 0.5
    raw = [chosen[(truth[test] == "b") & (group[test] == g), 1].mean() for g in ("f", "m")]
    assert raw[1] - raw[0] > 0.1
    assert 0 < judged.gap[1] < 0.6 * (raw[1] - raw[0])
    assert judged.n.sum() == 2000


def test_decisions_follow_the_rule_and_the_seed():
    scores, group = oracle_rows()
    cuts = GroupThresholds(seed=5).fit(scores, [1] * 17 + [0], group=group)
    chance = cuts.acceptance(scores, group=group)[:, 1]
    assert ((chance > 0) & (chance < 1)).sum() == 2
    decided = cuts.decide(scores, group=group)
    assert (decided[chance == 1, 1]).all()
    assert not decided[chance == 0, 1].any()
    assert (decided == cuts.decide(scores, group=group)).all()
    np.testing.assert_array_equal(cuts.predict(scores, group=group), decided[:, 1].astype(int))
    shares = []
    for seed in range(400):
        cuts.set_params(seed=seed)
        shares.append(cuts.decide(scores, group=group)[:, 1])
    observed = np.mean(shares, axis=0)
    np.testing.assert_allclose(observed, chance, atol=4 * 0.5 / 20)


@given(st.integers(0, 1000))
def test_a_monotone_map_within_the_group_leaves_the_norm_correlation(seed):
    # METHODS 1.6b: r_c is a rank correlation within one group, so it cannot move.
    rng = np.random.default_rng(seed)
    scores, norm = rng.random(30), rng.normal(size=30)
    before = spearmanr(scores, norm).statistic
    for mapped in (scores**3, np.log(scores) * rng.uniform(0.1, 5), scores - rng.random()):
        assert spearmanr(mapped, norm).statistic == pytest.approx(before, abs=1e-12)


def test_thresholds_leave_the_norm_correlation_exactly_as_it_was():
    X, truth, group = groups_with_bias(1500)
    model = LogisticClassifier().fit(X, truth)
    norm = X[:, 1] + np.random.default_rng(1).normal(size=1500)
    cuts = GroupThresholds(model).fit(X, truth, group=group)
    for c, name in enumerate(model.classes_):
        own = (truth == name) & (group == "f")
        before = spearmanr(model.class_probabilities(X)[own, c], norm[own]).statistic
        assert spearmanr(cuts.class_probabilities(X)[own, c], norm[own]).statistic == before
    assert ORACLE["r_c_before"] == ORACLE["r_c_after_any_monotone_within_group_map"]


def miscalibrated(rows=12000, seed=0):
    """Scores are probabilities for f; those of m are too high by 0.5 on the logit scale."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-0.5, 1.5, rows)
    truth = rng.random(rows) < 1 / (1 + np.exp(-logit))
    group = np.where(rng.random(rows) < 0.5, "f", "m")
    return 1 / (1 + np.exp(-(logit + 0.5 * (group == "m")))), truth, group


@pytest.mark.parametrize("cost_ratio", [1.0, 3.0])
def test_implied_thresholds_are_what_the_cost_ratio_asks(cost_ratio):
    scores, truth, group = miscalibrated()
    found = equal_implied_thresholds(scores, truth=truth, group=group, cost_ratio=cost_ratio)
    target = 1 / (1 + cost_ratio)
    np.testing.assert_allclose(found.implied.value, target, atol=1e-6)
    # By construction f should be cut at the target and m at the same logit plus 0.5.
    right = np.log(target / (1 - target)) + np.array([0.0, 0.5])
    np.testing.assert_allclose(found.cut, 1 / (1 + np.exp(-right)), atol=0.05)
    # What the audit's own estimator says of rows that the cuts have not seen.
    s, y, g = miscalibrated(seed=1)
    moments = local_moments(
        s,
        truth=y,
        threshold=found.cut,
        bandwidth=found.implied.bandwidth,
        groups=(g == "m").astype(int),
    )
    judged = implied_thresholds(moments, threshold=found.cut, bandwidth=found.implied.bandwidth)
    assert (judged.low < target).all()
    assert (judged.high > target).all()


def test_thresholds_by_cost_ratio_as_an_estimator():
    scores, truth, group = miscalibrated(4000)
    y = np.where(truth, "yes", "no")
    cuts = GroupThresholds(criterion="implied_threshold", cost_ratio=3.0)
    cuts.fit(scores, y, group=group)
    assert cuts.targets_[1] == 0.25
    assert cuts.cuts_[1, 1] > cuts.cuts_[1, 0]  # m's scores are too high
    decided = cuts.predict(scores, group=group)
    assert (decided[(group == "f") & (scores > cuts.cuts_[1, 0])] == "yes").all()


def test_a_group_that_never_reaches_the_probability_is_said():
    rng = np.random.default_rng(0)
    scores = rng.random(2000)
    truth = rng.random(2000) < 0.3 * scores
    found = equal_implied_thresholds(scores, truth=truth, group=["x"] * 2000, cost_ratio=0.25)
    assert found.cut.tolist() == [np.inf]
    assert found.notes == ("x: no score reaches a probability of 0.8; none is accepted.",)
    sure = equal_implied_thresholds(scores, truth=~truth, group=["x"] * 2000, cost_ratio=9)
    assert sure.cut.tolist() == [-np.inf]
    assert sure.notes == ("x: no score falls to a probability of 0.1; all accepted.",)


def test_thresholds_refuse_in_words():
    scores, group = oracle_rows()
    y = [1] * 17 + [0]
    with says(
        UsageError,
        "criterion='implied_threshold' needs a cost ratio. "
        "Give cost_ratio=, the cost of one false negative in false positives.",
    ):
        GroupThresholds(criterion="implied_threshold").fit(scores, y, group=group)
    with says(
        UsageError,
        "cost_ratio=-1 is not a number above 0. "
        "Give the cost of one false negative in false positives, such as 4.",
    ):
        equal_implied_thresholds(scores, truth=y, group=group, cost_ratio=-1)
    with pytest.raises(UsageError, match="criterion='tpr' is not one of true_positive_rate"):
        GroupThresholds(criterion="tpr").fit(scores, y, group=group)
    cuts = GroupThresholds().fit(scores, y, group=group)
    with says(
        UsageError,
        "GroupThresholds needs the group of each row to decide. "
        f"Give group= with one for each row. {ROUTING}",
    ):
        cuts.predict(scores)
    with says(
        DataError,
        "The thresholds were fitted without the group they; they know he and she. "
        "Fit them on rows of every group that will be decided about.",
    ):
        cuts.predict(scores, group=["they"] * 18)
    with says(
        UsageError,
        "The scores have the shape (18, 2) for 18 rows and 3 classes. "
        "Give one column for each class.",
    ):
        GroupThresholds().fit(scores, [0, 1, 2] * 6, group=group)
    assert cuts.needs_group_at_decision
    assert cuts.stage == "after"


def test_a_class_without_positive_rows_keeps_its_threshold():
    X, truth, group = groups_with_bias(600)
    model = LogisticClassifier().fit(X, truth)
    rest = truth != "c"
    cuts = GroupThresholds(model).fit(X[rest], truth[rest], group=group[rest])
    assert cuts.notes_ == ["c: no positive rows; its threshold stays as it was."]
    assert (cuts.cuts_[2] == 0.5).all()
    assert np.isnan(cuts.rates_.rate[2]).all()
    assert set(cuts.predict(X, group=group)) == {"a", "b", "c"}


def test_of_several_classes_the_accepted_one_with_the_highest_score_is_taken():
    X, truth, group = groups_with_bias(900)
    model = LogisticClassifier().fit(X, truth)
    cuts = GroupThresholds(model, randomised=False).fit(X, truth, group=group)
    scores, chosen = model.class_probabilities(X), cuts.decide(X, group=group)
    for row, name in enumerate(cuts.predict(X, group=group)):
        allowed = np.flatnonzero(chosen[row]) if chosen[row].any() else np.arange(3)
        assert name == model.classes_[allowed[scores[row, allowed].argmax()]]


def test_cuts_set_by_a_handful_of_rows_are_named():
    scores, group = oracle_rows()
    cuts = GroupThresholds().fit(np.append(scores, 0.05), [1] * 18 + [0], group=[*group, "he"])
    assert cuts.notes_ == ["Cuts set by fewer than 10 positive rows: 0 of he (1) and 1 of she (8)."]


def test_acceptance_is_a_step_with_a_share_at_the_cut():
    assert accepted([0.1, 0.2, 0.3], cut=0.2, share=0.4).tolist() == [0.0, 0.4, 1.0]


def test_decoupled_models_are_fits_on_each_group():
    X, truth, group = groups_with_bias(1200)
    ours = DecoupledClassifier(LogisticRegression()).fit(X, truth, group=group)
    found = ours.predict_proba(X, group=group)
    for name in ("f", "m"):
        own = group == name
        alone = LogisticRegression().fit(X[own], truth[own])
        np.testing.assert_allclose(found[own], alone.predict_proba(X[own]))
    np.testing.assert_array_equal(ours.predict(X, group=group), ours.classes_[found.argmax(axis=1)])
    assert ours.score(X, truth, group=group) > 0.6
    assert ours.needs_group_at_decision


def test_small_groups_are_decided_by_a_model_of_all_rows():
    X, truth, group = groups_with_bias(600)
    group = np.array(group, dtype=object)
    group[:20], group[20:40] = "x", "y"
    truth = np.array(truth)
    truth[20:40] = truth[0]
    model = DecoupledClassifier(LogisticRegression(), fewest=30, unseen="pooled")
    model.fit(X, truth, group=group)
    pooled = LogisticRegression().fit(X, truth).predict_proba(X)
    for small in ("x", "y", "never seen"):
        np.testing.assert_allclose(model.predict_proba(X, group=[small] * 600), pooled)
    assert not np.allclose(model.predict_proba(X, group=["f"] * 600), pooled)
    assert model.notes_ == [
        "'x' has 20 training rows of 3 classes and no model of its own: one of all rows decides.",
        "'y' has 20 training rows of 1 class and no model of its own: one of all rows decides.",
    ]
    model.set_params(fewest=0, unseen="error").fit(X[40:], truth[40:], group=group[40:])
    model.set_params(unseen="pooled")
    with says(UsageError, "There is no model of all rows. Fit again with unseen='pooled'."):
        model.predict_proba(X, group=["x"] * 600)


def test_of_two_classes_the_positive_one_has_equal_rates():
    rng = np.random.default_rng(3)
    truth, group = rng.choice(["no", "yes"], 400), rng.choice(["f", "m"], 400)
    scores = np.clip(0.3 * (truth == "yes") + 0.2 * (group == "m") + 0.5 * rng.random(400), 0, 1)
    for positive, place in (("yes", 1), ("no", 0), (None, 1)):
        cuts = GroupThresholds(positive=positive).fit(scores, truth, group=group)
        gap = cuts.rates_.gap
        assert gap[place] == pytest.approx(0, abs=1e-12)
        assert gap[1 - place] > 0.01
    with says(UsageError, "positive='ja' is not among no, yes."):
        GroupThresholds(positive="ja").fit(scores, truth, group=group)


def test_a_group_without_fitting_rows_is_cut_at_the_common_threshold():
    scores = np.array([0.9, 0.4, 0.3, 0.8, 0.7, 0.2])
    truth, group = [1, 1, 0, 1, 1, 0], ["f", "f", "f", "m", "m", "m"]
    cuts = GroupThresholds(unseen="common", randomised=False).fit(scores, truth, group=group)
    assert cuts.predict(scores, group=["x"] * 6).tolist() == (scores >= 0.5).astype(int).tolist()
    assert cuts.predict(scores, group=group).tolist() == truth
    table = cuts.true_positive_rates(scores, truth, group=["x"] * 3 + ["m"] * 3)
    assert table.n[1].tolist() == [0, 2]
    with says(UsageError, "unseen='commn' is not one of error, common. Did you mean 'common'?"):
        GroupThresholds(unseen="commn").fit(scores, truth, group=group)


def test_a_group_unseen_in_training_is_the_callers_choice():
    X, truth, group = groups_with_bias(600)
    new = ["x"] * 600
    model = DecoupledClassifier(LogisticRegression()).fit(X, truth, group=group)
    with says(
        DataError,
        "There is no model for the group x: no training rows. "
        "Say unseen='average', or name the group whose model decides.",
    ):
        model.predict_proba(X, group=new)
    both = [model.predict_proba(X, group=[g] * 600) for g in ("f", "m")]
    model.set_params(unseen="average")
    np.testing.assert_allclose(model.predict_proba(X, group=new), np.mean(both, axis=0))
    model.set_params(unseen="m")
    np.testing.assert_allclose(model.predict_proba(X, group=new), both[1])
    with says(
        UsageError,
        "unseen='avrage' is neither 'error', 'average', 'pooled' nor a group (f and m). "
        "Did you mean 'average'?",
    ):
        DecoupledClassifier(unseen="avrage").fit(X, truth, group=group)
    with says(
        UsageError,
        "DecoupledClassifier needs the group of each row to decide. "
        f"Give group= with one for each row. {ROUTING}",
    ):
        model.predict(X)


def test_a_class_that_one_group_lacks_has_probability_0_there():
    X, truth, group = groups_with_bias(600)
    keep = ~((group == "f") & (truth == "b"))
    model = DecoupledClassifier(LogisticClassifier()).fit(X[keep], truth[keep], group=group[keep])
    found = model.predict_proba(X, group=group)
    assert (found[group == "f", 1] == 0).all()
    assert (found[group == "m", 1] > 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_a_group_with_one_class_is_refused():
    with says(
        DataError,
        "The group 'f' has training rows of one class alone, 'a', so it cannot have a model of "
        "its own. Leave the group out, and say with unseen= how to decide about it.",
    ):
        DecoupledClassifier(DummyClassifier()).fit([[0], [1], [2]], list("aab"), group=list("fmm"))


def test_group_remedies_follow_scikit_learn():
    X, truth, group = groups_with_bias(600)
    model = clone(DecoupledClassifier(LogisticRegression(), unseen="average"))
    line = make_pipeline(StandardScaler(), model)
    line.fit(X, truth, decoupledclassifier__group=group)
    assert line.predict(X, group=group).shape == (600,)
    assert line.predict_proba(X, group=group).shape == (600, 3)
    weights = np.where(group == "f", 2.0, 1.0)
    model.fit(X, truth, group=group, sample_weight=weights)
    alone = LogisticRegression().fit(
        X[group == "f"], truth[group == "f"], sample_weight=np.full((group == "f").sum(), 2.0)
    )
    np.testing.assert_allclose(model.estimators_["f"].coef_, alone.coef_)
    cuts = clone(GroupThresholds(LogisticClassifier(), randomised=False))
    assert cuts.get_params()["estimator__C"] == 1.0


def few_positives(seed):
    """Eight classes of one group-wise bias; a validation set with a handful of rows in a cell."""
    rng = np.random.default_rng(seed)

    def draw(rows):
        truth, group = rng.integers(0, 8, rows), np.array(["f", "m"])[rng.integers(0, 2, rows)]
        logits = rng.normal(size=(rows, 8)) + 2.5 * np.eye(8)[truth] - 1.2
        logits += 0.5 * (group == "m")[:, None]
        return 1 / (1 + np.exp(-logits)), truth, group

    return draw(140), draw(6000)


def test_shrunken_cuts_leave_smaller_gaps_on_other_people():
    """About nine rows set a cut: as they are, cuts add more noise than the bias they take."""
    gaps = {}
    for shrinkage in (0.0, 10.0):
        for seed in range(8):
            (s, y, g), (test_s, test_y, test_g) = few_positives(seed)
            cuts = GroupThresholds(shrinkage=shrinkage).fit(s, y, group=g)
            judged = cuts.true_positive_rates(test_s, test_y, group=test_g).gap
            gaps.setdefault(shrinkage, []).append(np.sqrt(np.mean(judged**2)))
            fitted = np.nanmax(cuts.rates_.gap)
            assert fitted < 1e-9 if not shrinkage else fitted > 0.01
    assert np.mean(gaps[10.0]) < 0.9 * np.mean(gaps[0.0])
    assert sum(b < a for a, b in zip(gaps[0.0], gaps[10.0], strict=True)) >= 7


def test_shrinkage_by_hand():
    # Target 11/17, so of her 8 positive rows 5.18: the cut is her sixth score, 0.33. The
    # threshold ½ has log-odds 0, so with k = 8 half of logit(0.33) = −0.70819 is kept: 0.41239.
    scores, group = oracle_rows()
    cuts = GroupThresholds(shrinkage=8).fit(scores, [1] * 17 + [0], group=group)
    plain = GroupThresholds().fit(scores, [1] * 17 + [0], group=group)
    she = cuts.groups_.index("she")
    assert plain.cuts_[1, she] == 0.33
    assert cuts.cuts_[1, she] == pytest.approx(0.41239, abs=1e-5)
    assert cuts.shares_[1, she] == 1.0
    assert cuts.notes_[0].startswith(
        "Cuts set by n positive rows go n ÷ (n + 8) of the way from 0.5; a gap of up to "
    )
    wide = GroupThresholds(shrinkage=8, threshold=5.0)
    wide.fit(np.stack([-scores, 10 * scores], axis=1), [1] * 17 + [0], group=group)
    raw = GroupThresholds(threshold=5.0)
    raw.fit(np.stack([-scores, 10 * scores], axis=1), [1] * 17 + [0], group=group)
    assert wide.cuts_[1, she] == pytest.approx(5 + (raw.cuts_[1, she] - 5) / 2)
    for bad in (-1, float("nan")):
        with says(UsageError, f"shrinkage={bad} is not a number of rows of 0 or more, such as 10."):
            GroupThresholds(shrinkage=bad).fit(scores, [1] * 17 + [0], group=group)


def test_the_ledger_decides_as_the_thresholds_do():
    """Of the accepted classes the highest score; distances above the cuts are no scale at all."""
    X, truth, group = groups_with_bias(2000)
    model = LogisticClassifier().fit(X[:1000], truth[:1000])
    cuts = GroupThresholds(model, randomised=False)
    cuts.fit(X[1000:], truth[1000:], group=group[1000:])
    decided = Fitted(model=model, cuts=cuts).decide(model.class_probabilities(X), group=group)
    np.testing.assert_array_equal(model.classes_[decided], cuts.predict(X, group=group))
