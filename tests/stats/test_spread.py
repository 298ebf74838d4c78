"""Root mean square, spread over groups and worst pair."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import studentized_range

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
    size = sizes.rms(she - he, variance, z=Z)
    assert size.value == pytest.approx(plain["rms"], abs=1e-9)
    assert size.value == pytest.approx(oracle["rms_naive"], abs=1e-9)
    assert size.corrected == pytest.approx(oracle["rms_corrected"], abs=1e-9)
    null = oracle["null_expectation_of_naive_rms_if_all_gaps_zero"]
    assert size.null == pytest.approx(null, abs=1e-9)
    assert size.n_used == 4


def test_interval_by_hand() -> None:
    # Two gaps of ±0.3 with v = 0.01: Q = 0.09 − 0.01 = 0.08, slope = 4·0.02/4 = 0.02,
    # constant = 2·2·0.0001/4 = 0.0001. With z = 2: (0.08 − θ²)² = 4·(0.02·θ² + 0.0001), that is
    # θ⁴ − 0.24·θ² + 0.006 = 0, so θ² = 0.12 ± √0.0084
    size = sizes.rms([0.3, -0.3], [0.01, 0.01], z=2.0)
    expected = np.sqrt([0.12 - np.sqrt(0.0084), 0.12 + np.sqrt(0.0084)])
    assert [size.low, size.high] == pytest.approx(expected)


def test_oracle_null_simulation() -> None:
    """28 classes, cells of 20 to 200, p = 0.8, no gap: the floor of METHODS 12.6."""
    oracle = MONTE_CARLO["S5_gap_rms_null"]
    generator = np.random.default_rng(5)
    n1, n2 = generator.integers(20, 201, (2, 28))
    k1, k2 = generator.binomial(n1, 0.8, (4000, 28)), generator.binomial(n2, 0.8, (4000, 28))
    size = sizes.rms(k1 / n1 - k2 / n2, sizes.gap_variance(k1, n1, k2, n2), z=Z)
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
    first = sizes.rms(gaps, v, z=Z)
    second = sizes.rms([-gap for gap in reversed(gaps)], v, z=Z)
    assert first.value == pytest.approx(second.value)
    assert first.low == pytest.approx(second.low)
    assert 0 <= first.low <= first.corrected + 1e-12
    assert first.corrected <= first.high
    assert first.high > 0


def test_members_without_variance_are_skipped() -> None:
    size = sizes.rms([0.1, np.nan, 0.2], [0.01, 0.01, np.nan], z=Z)
    assert size.n_used == 1
    assert size.value == pytest.approx(0.1)
    nothing = sizes.rms([np.nan], [np.nan], z=Z)
    assert np.isnan([nothing.value, nothing.corrected, nothing.low, nothing.high]).all()
    assert np.isnan(sizes.gap_variance(1, 1, 5, 10))


def test_oracle_more_than_two_groups() -> None:
    oracle = ORACLES["2.15_more_than_two_groups"]
    shares = np.array(list(oracle["TPR"].values()))
    size = sizes.spread(shares, [0.001] * 3, z=Z)
    assert size.value == pytest.approx(oracle["rms_vs_mean"], abs=1e-9)
    worst = sizes.worst_pair(shares * 1000, [1000] * 3, z=Z)
    assert worst.value == pytest.approx(oracle["pairwise_max"])
    assert (int(worst.highest), int(worst.lowest)) == (1, 2)
    gaps = shares[:, None] - shares
    assert [gaps[0, 1], gaps[0, 2], gaps[1, 2]] == pytest.approx(list(oracle["all_pairs"].values()))


def test_spread_of_two_groups_is_half_the_rms_of_their_gap() -> None:
    spread = sizes.spread([0.7, 0.5], [0.002, 0.003], z=Z)
    gap = sizes.rms([0.2], [0.005], z=Z)
    for name in ("value", "corrected", "low", "high", "null"):
        assert getattr(spread, name) == pytest.approx(getattr(gap, name) / 2)
    assert np.isnan(sizes.spread([0.4, np.nan], [0.01, 0.01], z=Z).value)


def test_leading_axes() -> None:
    generator = np.random.default_rng(0)
    rates, v = generator.random((4, 3, 6)), generator.random((4, 3, 6)) / 100
    whole = sizes.spread(rates, v, z=Z)
    assert whole.high.shape == (4, 3)
    assert whole.high[2, 1] == pytest.approx(sizes.spread(rates[2, 1], v[2, 1], z=Z).high)


@pytest.mark.parametrize("groups", [2, 3, 10, 50])
def test_tukey_equals_the_studentised_range(groups) -> None:
    expected = studentized_range.ppf(0.95, groups, np.inf) / np.sqrt(2)
    assert sizes.tukey(0.95, groups=groups) == pytest.approx(expected, abs=1e-4)


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
