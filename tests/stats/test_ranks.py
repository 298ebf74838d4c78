import json
from math import asin, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evenhand.errors import UsageError
from evenhand.stats.estimate import critical
from evenhand.stats.ranks import (
    average_ranks,
    bonett_wright,
    correlation_p,
    permutation_p,
    smallest_detectable,
    smallest_significant,
    spearman,
    spearman_from_moments,
)

FOLDER = Path(__file__).parents[1] / "oracles"
ORACLES = json.loads((FOLDER / "oracles.json").read_text())
MONTE_CARLO = json.loads((FOLDER / "monte_carlo.json").read_text())
Z = critical(0.95)

columns = st.integers(3, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-5, 5), min_size=n, max_size=n),
        st.lists(st.integers(-5, 5), min_size=n, max_size=n),
    )
)


def bivariate(r: float, *, shape: tuple[int, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    a, e = generator.standard_normal(shape), generator.standard_normal(shape)
    return a, r * a + sqrt(1 - r * r) * e


def test_ties_as_in_oracle_1_2():
    case = ORACLES["1.2_r_c_with_ties"]
    assert average_ranks(case["G"]).tolist() == case["ranks_G"]
    assert average_ranks(case["Yhat"]).tolist() == case["ranks_Y"]
    r = spearman(case["Yhat"], case["G"])
    assert float(r) == pytest.approx(case["r"], abs=1e-9)
    assert float(correlation_p(r, 6)) == pytest.approx(case["p_t"], abs=1e-9)


def test_constant_scores_are_undefined_as_in_oracle_1_2b():
    assert np.isnan(spearman([0.4] * 6, [1, 2, 3, 4, 5, 6]))
    assert np.isnan(spearman([1, 2], [1, 2]))
    assert np.isnan(spearman([1, 2, np.nan], [1, 2, 3]))


@given(columns)
def test_equals_scipy(case):
    x, y = case
    r = float(spearman(x, y))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(r)
    else:
        assert r == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert average_ranks(x).tolist() == stats.rankdata(x).tolist()


@given(columns)
def test_unchanged_by_a_strictly_increasing_map_and_odd_under_a_decreasing_one(case):
    x, y = np.array(case[0], dtype=float), np.array(case[1], dtype=float)
    r = spearman(x, y)
    np.testing.assert_array_equal(spearman(np.exp(x), y**3), r)
    np.testing.assert_allclose(spearman(-x, y), -r, atol=1e-12)
    np.testing.assert_allclose(spearman(y, x), r, atol=1e-15)


def test_moments_of_many_cells_at_once_and_of_ten_million_rows():
    rows = np.random.default_rng(3).normal(size=(4, 50, 2))
    a, b = average_ranks(rows[..., 0]), average_ranks(rows[..., 1])
    sums = {"x": a.sum(1), "y": b.sum(1), "xx": (a * a).sum(1), "yy": (b * b).sum(1)}
    many = spearman_from_moments([50] * 4, xy=(a * b).sum(1), **sums)
    expected = [stats.spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(many, expected, atol=1e-12)
    # Ranks 1…n against themselves: Σx = n(n+1)/2, Σxx = n(n+1)(2n+1)/6, r = 1 by hand.
    n = 10**7
    total, square = n * (n + 1) / 2, n * (n + 1) * (2 * n + 1) / 6
    same = spearman_from_moments(n, x=total, y=total, xx=square, yy=square, xy=square)
    assert float(same) == pytest.approx(1.0, abs=1e-12)
    # All rows tied: every rank (n+1)/2.
    tied = n * ((n + 1) / 2) ** 2
    flat = spearman_from_moments(n, x=total, y=total, xx=tied, yy=square, xy=tied)
    assert np.isnan(flat)


def test_interval_as_in_oracles_1_3_and_1_4():
    toy = ORACLES["1.3_rho_toy"]
    rho = spearman(toy["p_C"], toy["r_C"])
    assert float(rho) == pytest.approx(toy["rho"], abs=1e-12)
    assert float(correlation_p(rho, 5)) == pytest.approx(toy["p_t"], abs=1e-9)
    assert bonett_wright(rho, 5, z=Z) == pytest.approx(toy["bw_ci"], abs=1e-9)
    for row in ORACLES["1.4_table2_significance_n28"]["rows"].values():
        for case in row.values():
            assert float(correlation_p(case["rho"], 28)) == pytest.approx(case["p_t"], rel=1e-8)
            limits = bonett_wright(case["rho"], 28, z=Z)
            assert limits == pytest.approx(case["bw_ci95"], abs=1e-8)


def test_professor_table_as_in_oracle_1_4b():
    case = ORACLES["1.4b_table3_professor"]
    for key, n in (("p_of", case["n_she"]), ("p_nb", case["n_nb"])):
        for r, p in case[key].items():
            assert float(correlation_p(float(r), n)) == pytest.approx(p, rel=1e-8)
    needed = float(smallest_significant(case["n_she"], level=0.99))
    assert needed == pytest.approx(case["abs_r_needed_for_p_lt_0_01"], rel=1e-8)
    needed = float(smallest_significant(case["n_nb"]))
    assert needed == pytest.approx(case["abs_r_needed_nb_0_05"], rel=1e-8)
    assert float(correlation_p(needed, case["n_nb"])) == pytest.approx(0.05, abs=1e-12)


def test_interval_of_a_perfect_order_is_not_a_point():
    low, high = bonett_wright([1.0, -1.0, 1.0], [6, 6, 3], z=Z)
    assert high[0] == 1.0
    assert low[0] < 0.9
    assert (low[1], high[1]) == (-1.0, -low[0])
    assert np.isnan(low[2])
    assert np.isnan(high[2])


@given(st.floats(-1, 1), st.integers(4, 10**7), st.floats(0.1, 4))
def test_interval_holds_the_value_mirrors_and_stays_inside(r, n, z):
    low, high = bonett_wright(r, n, z=z)
    assert -1 <= low <= r <= high <= 1
    mirrored = bonett_wright(-r, n, z=z)
    np.testing.assert_allclose([-mirrored[1], -mirrored[0]], [low, high], atol=1e-12)


def test_interval_covers_as_in_simulation_s2():
    for r, case in MONTE_CARLO["S2_spearman_ci_coverage_n28"].items():
        population = 6 / pi * asin(float(r) / 2)
        assert population == pytest.approx(case["population"], abs=1e-9)
        found = spearman(*bivariate(float(r), shape=(4000, 28), seed=11))
        assert float(found.mean()) == pytest.approx(case["mean"], abs=0.012)
        assert float(found.std()) == pytest.approx(case["sd"], rel=0.06)
        low, high = bonett_wright(found, 28, z=Z)
        coverage = float(((low <= population) & (population <= high)).mean())
        assert coverage == pytest.approx(case["coverage_bonett_wright"], abs=0.012)


@pytest.mark.parametrize("n", [30, 100])
@pytest.mark.parametrize("kappa", [0.0, 0.5, 1.0])
def test_interval_covers_93_to_97_percent_on_the_norm_generator(n, kappa):
    population = 6 / pi * asin(kappa / sqrt(kappa**2 + 1) / 2)
    a, score = bivariate(kappa / sqrt(kappa**2 + 1), shape=(3000, n), seed=5)
    low, high = bonett_wright(spearman(a, score), n, z=Z)
    coverage = float(((low <= population) & (population <= high)).mean())
    assert 0.93 <= coverage <= 0.97


@pytest.mark.parametrize("kappa", ["0.0", "0.25", "0.5", "1.0", "2.0"])
def test_closed_form_of_the_norm_generator_as_in_s1(kappa):
    case = MONTE_CARLO["S1_r_c_closed_form"][kappa]
    found = float(spearman(*bivariate(case["pearson"], shape=(100_000,), seed=2)))
    assert found == pytest.approx(case["spearman_closed"], abs=0.01)


def test_permutation_is_exact_up_to_eight_pairs():
    toy = ORACLES["1.3_rho_toy"]
    exact = toy["p_exact_permutation"]
    assert permutation_p(toy["p_C"], toy["r_C"]) == pytest.approx(exact, abs=1e-9)
    # Eight pairs in perfect order: 2 of 40,320 arrangements are as extreme.
    assert permutation_p(range(8), range(8)) == pytest.approx(2 / 40320, abs=1e-15)


def test_permutation_by_draws_is_never_zero_and_near_the_t_test():
    x = np.arange(28.0)
    assert permutation_p(x, x, draws=999) == 1 / 1000
    generator = np.random.default_rng(0)
    y = x + generator.normal(scale=25, size=28)
    expected = float(correlation_p(spearman(x, y), 28))
    found = permutation_p(x, y, draws=20_000, seed=1)
    assert found == pytest.approx(expected, abs=0.01)
    assert found == permutation_p(x, y, draws=20_000, seed=1)
    assert np.isnan(permutation_p(x, np.ones(28)))


def test_permutation_needs_a_draw():
    words = "draws=0 is not a number of permutations. Give 10000 or more."
    with pytest.raises(UsageError, match=words):
        permutation_p(range(9), range(9), draws=0)


def test_permutation_holds_its_level_with_ties():
    generator = np.random.default_rng(8)
    cases = generator.integers(0, 4, size=(400, 2, 12))
    p = [permutation_p(x, y, draws=199, seed=i) for i, (x, y) in enumerate(cases)]
    assert float(np.mean(np.array(p) <= 0.05)) <= 0.075


@settings(max_examples=30)
@given(st.integers(5, 10**6))
def test_more_rows_show_smaller_correlations(n):
    assert smallest_significant(n + 1) < smallest_significant(n) < smallest_detectable(n)
    assert smallest_detectable(n + 1) <= smallest_detectable(n)


def test_detectable_correlation_is_found_as_often_as_promised():
    r = float(smallest_detectable(60))
    population = 2 * np.sin(pi * r / 6)
    found = spearman(*bivariate(population, shape=(4000, 60), seed=6))
    low, _ = bonett_wright(found, 60, z=Z)
    assert float((low > 0).mean()) == pytest.approx(0.8, abs=0.03)
