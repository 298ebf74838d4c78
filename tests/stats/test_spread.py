"""Root mean square, spread over groups and worst pair."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm, studentized_range

from evenhand.stats import noise_range
from evenhand.stats import spread as sizes
from evenhand.stats.estimate import critical

FOLDER = Path(__file__).parents[1] / "oracles"
ORACLES = json.loads((FOLDER / "oracles.json").read_text())
MONTE_CARLO = json.loads((FOLDER / "monte_carlo.json").read_text())
Z = critical(0.95)


def test_oracle_rms_plain_and_corrected() -> None:
    plain, oracle = ORACLES["1.5_gap_rms"], ORACLES["1.5b_gap_rms_bias_corrected"]
    she, he = np.array(list(plain["tpr"].values())).T
    n_she, n_he = np.array(oracle["n_she"]), np.array(oracle["n_he"])
    variance = sizes.gap_variance(she * n_she, n_she, he * n_he, n_he)
    assert variance == pytest.approx(oracle["var_gap"], abs=1e-9)
    size = sizes.root_mean_square(she - he, variances=variance, z=Z)
    assert size.value == pytest.approx(plain["rms"], abs=1e-9)
    assert size.value == pytest.approx(oracle["rms_naive"], abs=1e-9)
    assert size.corrected == pytest.approx(oracle["rms_corrected"], abs=1e-9)
    null = oracle["null_expectation_of_naive_rms_if_all_gaps_zero"]
    assert size.null == pytest.approx(null, abs=1e-9)
    assert size.n_used == 4


def test_oracle_null_simulation() -> None:
    """28 classes, cells of 20 to 200, p = 0.8, no gap: the floor of METHODS 12.6."""
    oracle = MONTE_CARLO["S5_gap_rms_null"]
    generator = np.random.default_rng(5)
    n1, n2 = generator.integers(20, 201, (2, 28))
    k1, k2 = generator.binomial(n1, 0.8, (4000, 28)), generator.binomial(n2, 0.8, (4000, 28))
    size = sizes.root_mean_square(
        k1 / n1 - k2 / n2, variances=sizes.gap_variance(k1, n1, k2, n2), z=Z
    )
    q = size.value**2 - size.null**2
    # The cell sizes of the oracle were drawn too, so its own levels hold to about a tenth.
    assert size.value.mean() == pytest.approx(oracle["naive_mean"], rel=0.15)
    own_level = np.sqrt(np.mean(0.16 / n1 + 0.16 / n2))
    ratio = oracle["naive_mean"] / oracle["expected_sqrt_mean_v"]
    assert size.value.mean() / own_level == pytest.approx(ratio, abs=0.008)
    assert abs(q.mean()) < 3 * q.std() / np.sqrt(4000) + abs(oracle["corrected_squared_mean"])
    assert np.median(size.corrected) <= 0.012
    share = (size.corrected == 0).mean()
    assert share == pytest.approx(oracle["share_of_corrected_equal_zero"], abs=0.03)


@given(st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=12))
def test_signs_and_order_do_not_matter(gaps) -> None:
    v = np.full(len(gaps), 0.004)
    first = sizes.root_mean_square(gaps, variances=v, z=Z)
    second = sizes.root_mean_square([-gap for gap in reversed(gaps)], variances=v, z=Z)
    assert first.value == pytest.approx(second.value)
    assert first.low == pytest.approx(second.low)
    assert 0 <= first.low <= first.corrected + 1e-12
    assert first.corrected <= first.high
    assert first.high > 0


def test_oracle_more_than_two_groups() -> None:
    oracle = ORACLES["2.15_more_than_two_groups"]
    shares = np.array(list(oracle["TPR"].values()))
    size = sizes.rate_spread(shares * 1000, [1000] * 3, z=Z)
    assert size.value == pytest.approx(oracle["rms_vs_mean"], abs=1e-9)
    worst = sizes.worst_pair(shares * 1000, [1000] * 3, z=Z)
    assert worst.value == pytest.approx(oracle["pairwise_max"])
    assert (int(worst.highest), int(worst.lowest)) == (1, 2)
    gaps = shares[:, None] - shares
    assert [gaps[0, 1], gaps[0, 2], gaps[1, 2]] == pytest.approx(list(oracle["all_pairs"].values()))


@pytest.mark.parametrize("groups", [2, 3, 10, 50])
def test_tukey_equals_the_studentised_range(groups) -> None:
    expected = studentized_range.ppf(0.95, groups, np.inf) / np.sqrt(2)
    assert noise_range.tukey(0.95, groups=groups) == pytest.approx(expected, abs=1e-4)


def test_worst_pair_of_two_groups_is_newcombe() -> None:
    worst = sizes.worst_pair([56, 48], [70, 80], z=Z)
    oracle = ORACLES["2.13_rate_difference_ci"]["newcombe"]
    assert [worst.low, worst.high] == pytest.approx(oracle, abs=1e-6)


def test_worst_pair_leaves_empty_groups_out() -> None:
    worst = sizes.worst_pair([[5, 0, 9], [1, 0, 0]], [[10, 0, 10], [4, 0, 0]], z=Z)
    assert worst.n_used.tolist() == [2, 1]
    assert (worst.highest[0], worst.lowest[0]) == (2, 0)
    assert np.isnan([worst.value[1], worst.low[1], worst.null[1]]).all()
    assert worst.highest[1] == -1


def test_null_of_the_worst_pair_is_its_quantile_without_gaps() -> None:
    generator = np.random.default_rng(6)
    n = np.array([60, 120, 200, 90, 400])
    hits = generator.binomial(n, 0.3, (600, 5))
    worst = sizes.worst_pair(hits, n, z=Z)
    assert (worst.value > worst.null).mean() == pytest.approx(0.05, abs=0.025)
    assert (worst.low == 0).mean() > 0.93


counts_of_groups = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 10)), min_size=2, max_size=40
)


@given(counts_of_groups, st.floats(1.0, 4.5))
def test_the_worst_of_many_groups_is_the_worst_of_all_pairs(
    cells: list[tuple[int, int]], z: float
) -> None:
    n = np.array([cases for cases, _ in cells], dtype=float)
    hits = np.floor(n * np.array([tenths for _, tenths in cells]) / 10)
    used = n > 0
    k, m = np.where(used, hits, 0.0), np.where(used, n, 1.0)
    every = sizes._largest_gap(k / m, k, m, used, z=np.array([z]))
    few = sizes._largest_gap_of_many(k / m, k, m, used, z=np.array([z]))
    assert every[0] == few[0]
    assert every[1] == few[1]


@given(counts_of_groups)
def test_spread_without_shared_clusters_is_that_of_a_covariance_of_nothing(
    cells: list[tuple[int, int]],
) -> None:
    n = np.array([cases for cases, _ in cells], dtype=float)
    hits = np.floor(n * np.array([tenths for _, tenths in cells]) / 10)
    plain = sizes.spread_moments(hits, n)
    shared = sizes.spread_moments(hits, n, covariance=np.zeros((n.size, n.size)))
    for name in ("total", "trace", "trace_squared", "along"):
        one, other = getattr(plain, name), getattr(shared, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-15)
    assert plain.members == shared.members


def test_noise_of_very_many_groups_is_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sd = np.random.default_rng(3).uniform(0.5, 1, (2, 300))
    sd[1, 1:] = np.nan
    at_once = noise_range.null_range(sd, level=0.9, draws=4_000, seed=0)
    monkeypatch.setattr(noise_range, "MOST_HELD_GROUPS", 70)
    in_parts = noise_range.null_range(sd, level=0.9, draws=4_000, seed=0)
    assert in_parts[0] == pytest.approx(at_once[0], rel=0.02)
    assert np.isnan(in_parts[1])
    assert np.isnan(at_once[1])


@pytest.mark.parametrize("level", [0.001, 0.5, 0.9, 0.95, 0.99935])
def test_quantiles_of_noise_are_numpys(level: float) -> None:
    rows = np.random.default_rng(4).gamma(2, size=(5, 1_000)).astype(np.float32)
    rows[2] = np.nan
    found = noise_range._row_quantiles(rows, level)
    # Versions of NumPy round between two values of 32 bits differently.
    np.testing.assert_allclose(found, np.quantile(rows, level, axis=1), rtol=1e-6)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.9999])
@pytest.mark.parametrize("groups", [3, 50, 100_000])
def test_a_finer_grid_gives_the_same_critical_value(level: float, groups: int) -> None:
    # The share of the range of normals below the value, by a grid a hundred times as fine.
    q = noise_range.tukey(level, groups=groups) * np.sqrt(2)
    step = 0.0003
    grid = step * np.arange(-30_000, 30_001)
    reach = (ndtr(grid + q) - ndtr(grid)) ** (groups - 1)
    share = groups * step * (norm.pdf(grid) * reach).sum()
    assert share == pytest.approx(level, abs=1e-3 * (1 - level))
