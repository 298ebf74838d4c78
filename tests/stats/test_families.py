"""Adjusted p-values and simultaneous critical values."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evenhand.stats import families
from evenhand.stats.estimate import critical
from evenhand.stats.families import count_bootstrap

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())


def test_oracle_benjamini_hochberg() -> None:
    oracle = ORACLES["1.9_bh"]
    adjusted = families.benjamini_hochberg(oracle["p"])
    assert adjusted == pytest.approx(oracle["adjusted"], abs=1e-10)
    assert (adjusted <= 0.05).sum() == oracle["n_rejected"]
    bonferroni = np.array(oracle["p"]) * 15
    assert (bonferroni <= 0.05).sum() == oracle["bonferroni_rejected"]


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjustment_equals_statsmodels(p) -> None:
    theirs = multipletests(p, method="fdr_bh")[1]
    assert families.benjamini_hochberg(p) == pytest.approx(theirs, abs=1e-12)


def test_missing_members_do_not_count() -> None:
    own = families.benjamini_hochberg
    with_gap = own([0.01, np.nan, 0.2, 0.03])
    assert np.isnan(with_gap[1])
    assert with_gap[[0, 2, 3]] == pytest.approx(own([0.01, 0.2, 0.03]))
    assert np.isnan(own([np.nan])).all()
    assert own([]).size == 0


def test_quantile_stays_between_z_and_bonferroni() -> None:
    z = critical(0.95)
    generator = np.random.default_rng(3)
    one = generator.standard_normal((500, 1))
    assert families.max_t_quantile(one) == z
    # Ten copies of one statistic are one statistic; heavy tails are cut at Bonferroni's value.
    assert families.max_t_quantile(np.repeat(one, 10, axis=1)) == pytest.approx(z, abs=0.2)
    wild = generator.standard_normal((500, 10)) * 9
    assert families.max_t_quantile(wild) == pytest.approx(families.bonferroni(0.95, members=10))
    constant = np.column_stack([one, np.zeros(500), np.full(500, np.nan)])
    assert families.max_t_quantile(constant) == z


def test_covariance_of_selection_rates_is_multinomial() -> None:
    counts = np.array([[20, 30, 50]])
    covariance = families.rate_covariance(
        counts, numerators=np.eye(3), denominators=np.ones((3, 3))
    )[0]
    share = counts[0] / 100
    expected = (np.diag(share) - np.outer(share, share)) / 100
    assert covariance == pytest.approx(expected, abs=1e-12)


def test_rates_on_disjoint_rows_are_independent_and_empty_ones_nan() -> None:
    # cells: (truth 0, decided 0), (0, 1), (1, 0), (1, 1); the second group has no positives
    counts = [[40, 10, 5, 15], [30, 5, 0, 0]]
    covariance = families.rate_covariance(
        counts, numerators=[[0, 0, 0, 1], [0, 1, 0, 0]], denominators=[[0, 0, 1, 1], [1, 1, 0, 0]]
    )
    assert covariance[0, 0, 1] == 0
    assert covariance[0, 0, 0] == pytest.approx(0.75 * 0.25 / 20)
    assert np.isnan(covariance[1, 0]).all()
    assert covariance[1, 1, 1] == pytest.approx((5 / 35) * (30 / 35) / 35)


def test_normals_have_the_correlation_asked_for() -> None:
    block = np.array([[1, -0.5, -0.5], [-0.5, 1, -0.5], [-0.5, -0.5, 1]])
    draws = families.group_normals(np.stack([block, np.eye(3)]), draws=20_000, seed=1)
    assert draws.shape == (20_000, 2, 3)
    assert np.corrcoef(draws[:, 0].T) == pytest.approx(block, abs=0.03)
    assert np.corrcoef(draws[:, 1].T) == pytest.approx(np.eye(3), abs=0.03)
    assert np.corrcoef(draws[:, 0, 0], draws[:, 1, 0])[0, 1] == pytest.approx(0, abs=0.03)


def test_missing_and_improper_correlations_still_draw() -> None:
    block = np.full((1, 3, 3), np.nan)
    block[0, :2, :2] = [[1, 0.9], [0.9, 1]]
    draws = families.group_normals(block, draws=4000)
    assert np.isfinite(draws).all()
    assert np.corrcoef(draws[:, 0, 0], draws[:, 0, 2])[0, 1] == pytest.approx(0, abs=0.06)
    improper = np.array([[[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]])
    assert np.isfinite(families.group_normals(improper, draws=100)).all()


def test_same_seed_same_draws() -> None:
    block = np.eye(2)[None]
    first = families.group_normals(block, seed=4)
    assert (first == families.group_normals(block, seed=4)).all()
    assert (first != families.group_normals(block, seed=5)).any()


def test_gaussian_family_agrees_with_the_count_bootstrap() -> None:
    """Selection and per-class hit rates of 4 groups × 5 classes, gaps to the first group."""
    classes, groups = 5, 4
    generator = np.random.default_rng(8)
    truth, decision = np.divmod(np.arange(classes**2), classes)
    law = generator.dirichlet(np.ones(classes**2) * 4 + 10 * (truth == decision))
    table = np.stack([generator.multinomial(size, law) for size in (4000, 3000, 2500, 2000)])
    numerators = np.array([decision == c for c in range(classes)], dtype=float)
    denominators = np.ones_like(numerators)
    covariance = families.rate_covariance(table, numerators=numerators, denominators=denominators)
    errors = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    correlations = families.correlation(covariance)
    q_gaussian = families.gap_quantile(correlations, errors=errors, reference=0, draws=8000, seed=2)
    drawn = count_bootstrap(table, draws=8000, seed=3)
    drawn_rates = (drawn @ numerators.T) / (drawn @ denominators.T)
    rates = (table @ numerators.T) / (table @ denominators.T)
    gaps = (drawn_rates - drawn_rates[:, :1]) - (rates - rates[:1])
    bootstrap = gaps[:, 1:] / np.hypot(errors[1:], errors[0])
    q_bootstrap = families.max_t_quantile(bootstrap, level=0.95)
    assert q_gaussian == pytest.approx(q_bootstrap, abs=0.06)
    assert critical(0.95) < q_gaussian < families.bonferroni(0.95, members=(groups - 1) * classes)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("near", [1, 2_000, 2**22])
def test_as_many_groups_at_a_time_as_may_be(
    shared: bool, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    correlations = np.broadcast_to(np.eye(2) * 0.5 + 0.5 * shared, (9, 2, 2))
    errors = np.random.default_rng(2).uniform(0.01, 0.1, (9, 2))
    errors[3] = np.nan
    whole = families.gap_quantile(correlations, errors=errors, reference=1, seed=5)
    monkeypatch.setattr(families, "_NEAR", near)
    assert families.gap_quantile(correlations, errors=errors, reference=1, seed=5) == whole


def test_gaps_to_one_group_are_those_of_plain_draws() -> None:
    """The same draws taken apart in plain NumPy, with a gap of no error and one never moving."""
    generator = np.random.default_rng(4)
    roots = generator.normal(size=(5, 3, 6))
    correlations = families.correlation(roots @ roots.transpose(0, 2, 1))
    errors = generator.uniform(0.01, 0.1, (5, 3))
    errors[2, 1] = np.nan
    errors[[1, 3], 2] = 0.0
    found = families.gap_quantile(correlations, errors=errors, reference=3, draws=700, seed=6)
    normals = families.group_normals(correlations, draws=700, seed=6)
    others = [0, 1, 2, 4]
    gaps = normals[:, others] * errors[others] - normals[:, [3]] * errors[3]
    with np.errstate(invalid="ignore"):
        statistics = gaps / np.hypot(errors[others], errors[3])
    assert np.isnan(statistics).any(axis=0).sum() == 2
    assert found == pytest.approx(families.max_t_quantile(statistics), abs=1e-5)


def test_gaps_of_independent_rates_have_dunnetts_quantile() -> None:
    """Three groups against a fourth of the same size: Dunnett's two-sided 5 % point is 2.349."""
    independent = np.broadcast_to(np.eye(1), (4, 1, 1))
    q = families.gap_quantile(independent, errors=np.ones((4, 1)), reference=0, draws=200_000)
    assert q == pytest.approx(2.349, abs=0.01)
    only = families.gap_quantile(independent[:2], errors=np.ones((2, 1)), reference=1)
    assert only == critical(0.95)
