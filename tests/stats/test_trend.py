import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.estimate import Estimate, critical
from evenhand.stats.ranks import bonett_wright, spearman
from evenhand.stats.trend import (
    bootstrap_trend,
    compare_trends,
    corrected,
    mean_size,
    meng,
    rank_trend,
    reliability,
    slope,
)

FOLDER = Path(__file__).parents[1] / "oracles"
ORACLES = json.loads((FOLDER / "oracles.json").read_text())
MONTE_CARLO = json.loads((FOLDER / "monte_carlo.json").read_text())
SHARES = np.array(list(ORACLES["1.13_public_female_share"]["p_c"].values()))
UNEQUAL = np.resize([20, 50, 100, 300, 1000, 5000, 10677], 28)


def population(kappa: np.ndarray) -> np.ndarray:
    """Closed form of METHODS 12.1 for the correlation at slope kappa."""
    return 6 / np.pi * np.arcsin(kappa / np.sqrt(kappa**2 + 1) / 2)


def measured(kappa: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    a = generator.standard_normal((*kappa.shape, n))
    return spearman(a, kappa[..., None] * a + generator.standard_normal(a.shape))


def test_rho_as_in_oracle_1_3():
    toy = ORACLES["1.3_rho_toy"]
    found = rank_trend(toy["p_C"], toy["r_C"])
    assert found.value == pytest.approx(toy["rho"], abs=1e-12)
    assert [found.low, found.high] == pytest.approx(toy["bw_ci"], abs=1e-9)
    assert found.p == pytest.approx(toy["p_exact_permutation"], abs=1e-9)
    assert found.n == 5


def test_classes_without_a_correlation_are_left_out():
    toy = ORACLES["1.3_rho_toy"]
    longer = rank_trend([*toy["p_C"], 0.5, np.nan], [*toy["r_C"], np.nan, 0.3])
    assert longer == rank_trend(toy["p_C"], toy["r_C"])


def test_refusals_in_words():
    shares, r = SHARES[:4], np.array([0.1, 0.2, 0.0, 0.3])
    reason = "4 classes have a value and 5 are needed"
    assert rank_trend(shares, r).undefined == reason
    assert slope(shares, r, [50] * 4).undefined == reason
    assert compare_trends(shares, r, r).undefined == reason
    assert bootstrap_trend(shares, r, [50] * 4).undefined == reason
    flat = rank_trend(SHARES, np.zeros(28))
    assert flat.undefined == "the shares or the correlations are the same in every class"
    assert flat.value is None
    same = slope([0.5] * 6, [0.1, 0.2, 0.3, 0.1, 0.0, 0.2], [50] * 6)
    assert same.undefined == "the shares are the same in every class"
    few = mean_size([0.3, np.nan], [50, 50]).estimate.undefined
    assert few == "fewer than two classes have a correlation"


def test_correction_as_in_oracle_1_17():
    case = ORACLES["1.17_attenuation"]
    observed = Estimate(value=case["rho_obs"], low=0.3, high=0.9, n=28)
    found = corrected(observed, reliability=1 - case["mean_se2"] / case["var_r_c_observed"])
    assert found.value == pytest.approx(case["rho_disattenuated"], abs=1e-9)
    assert (found.low, found.high) == pytest.approx((0.3 / 0.75**0.5, 1.0))
    none = corrected(observed, reliability=0.1)
    assert none.undefined == (
        "reliability of the class correlations is 0.10, not above 0.1: "
        "they differ hardly more than chance would make them"
    )
    refused = corrected(rank_trend(SHARES[:4], SHARES[:4]), reliability=0.9)
    assert refused.undefined == "4 classes have a value and 5 are needed"


def test_reliability_by_hand():
    # μ² = 0.04 − 1/102, s² = (1 − μ²)²(1 + μ²/2)/102, variance of r over classes 0.16/3.
    square = 0.04 - 1 / 102
    noise = (1 - square) ** 2 * (1 + square / 2) / 102
    found = reliability([-0.2, -0.2, 0.2, 0.2], [103] * 4)
    assert found == pytest.approx(1 - noise / (0.16 / 3), abs=1e-12)
    assert np.isnan(reliability([0.2], [100]))


def test_attenuation_and_reliability_as_in_s7():
    generator = np.random.default_rng(7)
    for n, case in MONTE_CARLO["S7_rho_attenuation"]["by_n_per_class"].items():
        truth = 0.6 * (SHARES - 0.5)
        noise = generator.standard_normal((1500, 28)) / np.sqrt(int(n) - 3)
        r = np.tanh(np.arctanh(truth) + noise)
        rho = spearman(np.broadcast_to(SHARES, r.shape), r)
        # The median over simulations: 1 - a/V is skew in the variance V of only 28 classes.
        found = float(np.median([reliability(row, [int(n)] * 28) for row in r]))
        assert float(rho.mean()) == pytest.approx(case["rho_mean"], abs=0.02)
        assert found == pytest.approx(case["reliability"], abs=0.03)
        if int(n) >= 100:
            assert float(np.mean(rho) / np.sqrt(found)) > float(np.mean(rho)) + 0.01


@pytest.mark.parametrize("n", [100, 400])
def test_corrected_rho_covers_and_is_nearer_the_truth(n):
    generator = np.random.default_rng(n)
    draws = 600
    kappa = 1.0 * (SHARES - 0.5) + 0.3 * generator.standard_normal((draws, 28))
    many = 1.0 * (SHARES - 0.5) + 0.3 * generator.standard_normal((20_000, 28))
    truth = float(spearman(np.broadcast_to(SHARES, many.shape), many).mean())
    # Sampling error of r_c by its own law, checked against real ranks in test_ranks.
    exact = population(kappa)
    error = np.sqrt((1 + exact**2 / 2) / (n - 3)) * generator.standard_normal(kappa.shape)
    r = np.tanh(np.arctanh(exact) + error)
    covered, plain, better = [], [], []
    for row in r:
        rho = rank_trend(SHARES, row, draws=1)
        found = corrected(rho, reliability=reliability(row, [n] * 28))
        covered.append(found.low <= truth <= found.high)
        plain.append(rho.value)
        better.append(found.value)
    assert np.mean(covered) >= 0.95
    assert abs(np.mean(better) - truth) < abs(np.mean(plain) - truth)


@pytest.mark.parametrize(("k", "tau"), [(0.0, 0.0), (1.0, 0.2), (0.0, 0.4)])
@pytest.mark.parametrize("classes", [9, 28])
def test_slope_covers_with_classes_of_very_unequal_size(k, tau, classes):
    generator = np.random.default_rng(classes)
    shares, n = SHARES[:classes], UNEQUAL[:classes]
    centred = shares - shares.mean()
    many = k * (shares - 0.5) + tau * generator.standard_normal((20_000, classes))
    truth = float(population(many).mean(0) @ centred / (centred @ centred))
    kappa = k * (shares - 0.5) + tau * generator.standard_normal((600, classes))
    exact = population(kappa)
    error = np.sqrt((1 + exact**2 / 2) / (n - 3)) * generator.standard_normal(kappa.shape)
    r = np.tanh(np.arctanh(exact) + error)
    found = [slope(shares, row, n) for row in r]
    coverage = np.mean([e.low <= truth <= e.high for e in found])
    assert 0.93 <= coverage <= 0.995
    assert np.mean([e.value for e in found]) == pytest.approx(truth, abs=0.05)


def test_slope_sees_a_halving_that_rho_does_not():
    r = 0.8 * (SHARES - 0.5)
    n = [500] * 28
    assert rank_trend(SHARES, r / 2).value == rank_trend(SHARES, r).value == 1.0
    assert slope(SHARES, r, n).value == pytest.approx(0.8, abs=1e-9)
    assert slope(SHARES, r / 2, n).value == pytest.approx(0.4, abs=1e-9)


def test_slope_of_perfect_correlations_stays_finite():
    found = slope([0.1, 0.3, 0.5, 0.7, 0.9], [-1, -1, 1, 1, 1], [5] * 5)
    assert np.isfinite([found.value, found.low, found.high]).all()


def test_noise_floor_is_what_independent_columns_give():
    generator = np.random.default_rng(1)
    n = 60
    r = measured(np.zeros((400, 28)), n, generator)
    sizes = [mean_size(row, [n] * 28) for row in r]
    means = np.array([size.estimate.value for size in sizes])
    assert means.mean() == pytest.approx(sizes[0].floor, rel=0.02)
    above = np.mean(means > sizes[0].floor_high)
    assert 0.005 <= above <= 0.06
    assert np.mean([size.estimate.p < 0.05 for size in sizes]) == pytest.approx(0.05, abs=0.03)
    clear = mean_size(np.full(28, 0.4) * np.resize([1, -1], 28), [n] * 28)
    assert clear.estimate.p < 1e-6


def test_mean_size_covers_its_expectation_over_classes():
    generator = np.random.default_rng(3)
    kappa = 1.0 * (generator.random((600, 28)) - 0.5)
    r = population(kappa)
    r = np.tanh(np.arctanh(r) + generator.standard_normal(r.shape) / np.sqrt(97))
    truth = float(np.abs(r).mean())
    found = [mean_size(row, [100] * 28).estimate for row in r]
    assert 0.93 <= np.mean([e.low <= truth <= e.high for e in found]) <= 0.97


def test_meng_as_in_oracle_1_16():
    case = ORACLES["1.16_meng_dependent_rho"]
    z, p = meng(case["r1"], case["r2"], case["r12"], n=case["n"])
    assert z == pytest.approx(case["z"], abs=1e-8)
    assert p == pytest.approx(case["p"], abs=1e-9)
    back = meng(case["r2"], case["r1"], case["r12"], n=case["n"])
    assert back == pytest.approx((-z, p), abs=1e-12)
    assert np.isnan(meng(0.5, 0.5, 1.0, n=28)).all()
    assert np.isfinite(meng(1.0, 0.2, 0.2, n=28)).all()


def test_meng_holds_its_level():
    generator = np.random.default_rng(9)
    shape = (1500, 28)
    shared = generator.standard_normal(shape)
    first = 0.5 * shared + generator.standard_normal(shape)
    second = 0.5 * shared + generator.standard_normal(shape)
    p = [
        meng(a, b, c, n=28)[1]
        for a, b, c in zip(
            spearman(shared, first), spearman(shared, second), spearman(first, second), strict=True
        )
    ]
    assert 0.03 <= np.mean(np.array(p) < 0.05) <= 0.075


def test_comparison_of_two_models():
    generator = np.random.default_rng(4)
    steep = 0.8 * (SHARES - 0.5) + 0.05 * generator.standard_normal(28)
    flat = 0.2 * generator.standard_normal(28)
    found = compare_trends(SHARES, steep, flat)
    expected = float(spearman(SHARES, steep) - spearman(SHARES, flat))
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.low < found.value < found.high
    assert found.low > 0
    assert found.p < 0.01
    back = compare_trends(SHARES, flat, steep)
    assert (back.value, back.low, back.high) == pytest.approx(
        (-found.value, -found.high, -found.low)
    )
    alike = compare_trends(SHARES, steep, steep)
    assert (alike.value, alike.low, alike.high, alike.p) == (0.0, 0.0, 0.0, None)


def test_bootstrap_over_classes_and_rows_is_seeded_and_widens_with_small_classes():
    r = 0.6 * (SHARES - 0.5)
    small, large = (bootstrap_trend(SHARES, r, [n] * 28) for n in (30, 10_000))
    assert small.value == large.value == rank_trend(SHARES, r).value
    assert small.high - small.low > large.high - large.low
    assert small == bootstrap_trend(SHARES, r, [30] * 28)


@given(st.lists(st.floats(-0.9, 0.9), min_size=5, max_size=12), st.integers(0, 10**6))
def test_order_of_classes_does_not_matter(values, seed):
    r = np.array(values)
    p, n = SHARES[: r.size], UNEQUAL[: r.size]
    order = np.random.default_rng(seed).permutation(r.size)
    one, two = slope(p, r, n), slope(p[order], r[order], n[order])
    assert one.value == pytest.approx(two.value, abs=1e-9)
    assert mean_size(r, n).floor == pytest.approx(mean_size(r[order], n[order]).floor)
    rho = spearman(p, r)
    np.testing.assert_allclose(spearman(p[order], r[order]), rho, atol=1e-12)
    low, high = bonett_wright(rho, r.size, z=critical(0.95))
    assert np.isnan(rho) or low <= rho <= high
