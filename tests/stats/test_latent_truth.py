"""Dawid and Skene's latent classes: recovery, coverage, invariances, and the words of refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit

from evenhand.errors import DataError
from evenhand.stats.noisy_truth import PRIOR, latent_truth

SENSITIVITY = np.array([0.9, 0.75, 0.8, 0.65])
SPECIFICITY = np.array([0.95, 0.85, 0.7, 0.9])


def judged(seed, *, items=1500, prevalence=0.3, missing=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.random(items) < prevalence
    chance = np.where(truth[:, None], SENSITIVITY, 1 - SPECIFICITY)
    labels = (rng.random(chance.shape) < chance).astype(float)
    labels[rng.random(labels.shape) < missing] = np.nan
    return labels, truth


def test_a_fixed_point_worked_by_hand():
    # Three raters who always agree on 30 yeses and 70 noes: the latent truth is what they say, and
    # half a case of each kind is added to every count: φ = 30.5/101, Se = 30.5/31, Sp = 70.5/71.
    labels = np.repeat([[1.0] * 3, [0.0] * 3], [30, 70], axis=0)
    found = latent_truth(labels, draws=0)
    assert found.converged
    assert found.prevalence == pytest.approx((30 + PRIOR) / 101, abs=1e-4)
    assert found.sensitivity == pytest.approx(30.5 / 31, abs=1e-3)
    assert found.specificity == pytest.approx(70.5 / 71, abs=1e-3)
    assert np.all(found.probability[:30] > 0.999)
    assert np.isnan(found.low["sensitivity"]).all()


def test_three_raters_solve_three_equations():
    # With three raters the model has as many numbers as cells: E-step and M-step must reproduce
    # the moments P(a=1), P(a=b=1) of every pair from φ, Se and Sp.
    labels, _ = judged(4, items=200_000)
    three = labels[:, :3]
    found = latent_truth(three, draws=0)
    p, se, sp = found.prevalence, found.sensitivity, found.specificity
    for a in range(3):
        assert p * se[a] + (1 - p) * (1 - sp[a]) == pytest.approx(three[:, a].mean(), abs=1e-3)
        for b in range(a):
            both = p * se[a] * se[b] + (1 - p) * (1 - sp[a]) * (1 - sp[b])
            assert both == pytest.approx((three[:, a] * three[:, b]).mean(), abs=1e-3)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_what_was_planted_is_recovered(missing):
    labels, truth = judged(1, items=60_000, missing=missing)
    found = latent_truth(labels, draws=0)
    assert found.prevalence == pytest.approx(0.3, abs=0.02)
    assert found.sensitivity == pytest.approx(SENSITIVITY, abs=0.02)
    assert found.specificity == pytest.approx(SPECIFICITY, abs=0.02)
    used = (~np.isnan(labels)).any(axis=1)
    assert ((found.probability > 0.5) == truth[used]).mean() > 0.9


def test_intervals_of_the_expert_cover():
    hits = []
    for seed in range(200):
        found = latent_truth(judged(seed, items=800)[0], draws=200, seed=seed)
        for name, truth in (("sensitivity", 0.9), ("specificity", 0.95)):
            hits.append(found.low[name][0] <= truth <= found.high[name][0])
    assert 0.92 <= np.mean(hits) <= 0.98


def test_the_expert_says_which_class_is_positive():
    labels, _ = judged(2)
    found, turned = latent_truth(labels, draws=5), latent_truth(1 - labels, draws=5)
    assert turned.prevalence == pytest.approx(1 - found.prevalence, abs=1e-4)
    assert turned.sensitivity == pytest.approx(found.specificity, abs=1e-3)
    # Three liars outvote the expert: without it the classes would be the other way round.
    liars = np.column_stack([labels[:, 0], 1 - labels[:, 1:]])
    assert latent_truth(liars, draws=0).sensitivity[0] > 0.8
    assert latent_truth(liars, draws=0).sensitivity[1] < 0.5


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(1, 4)), st.integers(0, 5))
def test_order_of_items_and_raters_does_not_matter(order, seed):
    labels, _ = judged(seed, items=300, missing=0.2)
    places = [0, *order]
    shuffled = labels[np.random.default_rng(seed).permutation(300)][:, places]
    found, other = latent_truth(labels, draws=0), latent_truth(shuffled, draws=0)
    assert other.prevalence == pytest.approx(found.prevalence, abs=1e-5)
    assert other.sensitivity == pytest.approx(found.sensitivity[places], abs=1e-5)


def test_probabilities_are_bayes_rule():
    labels, _ = judged(3)
    found = latent_truth(labels, draws=0)
    row = labels[0]
    odds = (
        logit(found.prevalence)
        + np.where(
            row == 1,
            np.log(found.sensitivity / (1 - found.specificity)),
            np.log((1 - found.sensitivity) / found.specificity),
        ).sum()
    )
    assert logit(found.probability[0]) == pytest.approx(odds, abs=1e-3)


@pytest.mark.parametrize(
    ("labels", "asked", "words"),
    [
        (
            [[1, 0], [0, 1]],
            {},
            "labels of shape (2, 2) are not items by raters: 3 raters are needed, the expert among "
            "them. Give one column for each.",
        ),
        (
            [[1, 0, 2]],
            {},
            "2 is not a label. Write 1 for yes, 0 for no and NaN where nobody judged.",
        ),
        (
            [[1, 0, 1]],
            {"expert": 3},
            "expert=3 is not one of the 3 columns. Count them from 0.",
        ),
        (
            [[1, 0, np.nan], [np.nan, 0, 1]],
            {},
            "No item was judged by 3 raters, so agreement tells nothing of the truth. Let more of "
            "them judge the same items.",
        ),
    ],
    ids=["shape", "label", "expert", "alone"],
)
def test_words(labels, asked, words):
    with pytest.raises(DataError) as caught:
        latent_truth(labels, **asked)
    assert str(caught.value) == words
