"""Why a gap moved: oracles, exact sums, and intervals that cover."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from evenhand.stats import movement as mv
from evenhand.stats.families import count_bootstrap

ORACLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "oracles" / "monitoring.json").read_text()
)


def test_mix_and_rates() -> None:
    case = ORACLES["C1_mix_rate"]
    given = case["inputs"]
    a = mv.mix_and_rate(*given["a0"], *given["a1"])
    b = mv.mix_and_rate(*given["b0"], *given["b1"])
    assert a.mix == pytest.approx(case["mix_a"], abs=1e-12)
    assert b.mix == pytest.approx(case["mix_b"], abs=1e-12)
    assert a.rate == pytest.approx(case["rate_a"], abs=1e-12)
    assert b.rate == pytest.approx(case["rate_b"], abs=1e-12)
    assert a.mix.sum() - b.mix.sum() == pytest.approx(case["mix"], abs=1e-12)
    assert a.rate.sum() - b.rate.sum() == pytest.approx(case["rate"], abs=1e-12)
    assert float(a.total - b.total) == pytest.approx(case["change"], abs=1e-12)


def test_a_gap_in_one_period() -> None:
    case = ORACLES["C2_gap_in_one_period"]
    # A gap, group − reference, is what moves from the reference's rates and shares to the group's.
    found = mv.mix_and_rate(*case["inputs"]["b"], *case["inputs"]["a"])
    assert found.mix == pytest.approx(case["mix"], abs=1e-12)
    assert found.rate == pytest.approx(case["within"], abs=1e-12)
    assert float(found.total) == pytest.approx(case["sum"], abs=1e-12)


def test_two_opposite_moves_that_cancel() -> None:
    case = ORACLES["C3_threshold_vs_scores"]
    given = case["inputs"]
    above = [[float(ndtr(mean - cut)) for cut in (given["t0"], given["t1"])] for mean in (0.0, 0.2)]
    assert np.ravel(above) == pytest.approx(case["S"], abs=1e-9)
    threshold, scores = mv.threshold_and_scores(above)
    assert float(threshold) == pytest.approx(case["threshold"], abs=1e-9)
    assert float(scores) == pytest.approx(case["scores"], abs=1e-9)
    assert float(threshold + scores) == pytest.approx(above[1][1] - above[0][0], abs=1e-12)


def test_mix_threshold_and_scores_nested() -> None:
    case = ORACLES["C4_full"]
    a = case["inputs"]["group_a"]
    cut = np.array([a["t0"], a["t1"]])
    above = np.array(
        [[[ndtr(mean - t) for t in cut] for mean in pair] for pair in zip(a["mu0"], a["mu1"])]
    )
    before, after = above[:, 0, 0], above[:, 1, 1]
    assert before == pytest.approx(case["rates0"], abs=1e-8)
    assert after == pytest.approx(case["rates1"], abs=1e-8)
    shares = np.array([a["shares0"], a["shares1"]])
    found = mv.mix_and_rate(shares[0], before, shares[1], after)
    threshold, scores = mv.threshold_and_scores(above)
    middle = shares.mean(axis=0)
    parts = {
        "mix": found.mix.sum(),
        "threshold": (middle * threshold).sum(),
        "scores": (middle * scores).sum(),
    }
    for name, part in parts.items():
        assert part == pytest.approx(case["nested"][name], abs=1e-9)
    assert sum(parts.values()) == pytest.approx(case["change"], abs=1e-12)


tables = st.integers(0, 2**32 - 1)


@given(tables)
def test_parts_sum_to_the_movement(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    p = rng.dirichlet(np.ones(size), size=2)
    r = rng.random((2, size))
    found = mv.mix_and_rate(p[0], r[0], p[1], r[1])
    assert float(found.total) == pytest.approx((p[1] * r[1]).sum() - (p[0] * r[0]).sum(), abs=1e-12)
    back = mv.mix_and_rate(p[1], r[1], p[0], r[0])
    assert back.mix == pytest.approx(-found.mix, abs=1e-12)
    assert back.rate == pytest.approx(-found.rate, abs=1e-12)


def test_a_stratum_that_appears_is_all_mix() -> None:
    # Half of the second period is a stratum that the first one had not: 0.9 where it was 0.5.
    found = mv.mix_and_rate([1.0, 0.0], [0.5, np.nan], [0.5, 0.5], [0.5, 0.9])
    assert found.rate.tolist() == [0.0, 0.0]
    assert float(found.mix.sum()) == pytest.approx(0.2, abs=1e-12)
    never = mv.mix_and_rate([1.0, 0.0], [0.5, np.nan], [1.0, 0.0], [0.6, np.nan])
    assert never.mix.tolist() == [0.0, 0.0]
    assert never.rate.tolist() == pytest.approx([0.1, 0.0])


def test_intervals_of_the_parts_cover() -> None:
    rng = np.random.default_rng(4)
    shares = np.array([[0.5, 0.5], [0.4, 0.6]])
    rates = np.array([[0.9, 0.6], [0.88, 0.5]])
    truth = mv.mix_and_rate(shares[0], rates[0], shares[1], rates[1])
    covered = np.zeros(2)
    for trial in range(300):
        drawn = []
        for period in range(2):
            n = rng.multinomial(800, shares[period])
            k = rng.binomial(n, rates[period])
            again = count_bootstrap([k, n - k], draws=400, seed=2 * trial + period)
            drawn += list(mv.shares_and_rates(again[:, 0], again.sum(axis=1)))
        found = mv.mix_and_rate(*drawn)
        for i, (part, true) in enumerate(
            [(found.mix.sum(axis=-1), truth.mix.sum()), (found.rate.sum(axis=-1), truth.rate.sum())]
        ):
            low, high = np.quantile(part, [0.025, 0.975])
            covered[i] += low <= true <= high
    assert (covered / 300 >= 0.92).all()
    assert (covered / 300 <= 0.98).all()
