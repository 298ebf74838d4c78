"""Watching over time: oracles, hand values, properties and false alarms over many looks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats import sequential as seq
from evenhand.stats.alarm_lines import change_lines, normal_lines

ORACLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "oracles" / "monitoring.json").read_text()
)
WITHIN = {"rel": 1e-6, "abs": 1e-8}


def counts(inputs: dict[str, Any]) -> list[list[float]]:
    return [inputs[name] for name in ("ka", "na", "kb", "nb")]


@pytest.mark.parametrize("case", ORACLES["B1_half_width"])
def test_half_width(case: dict[str, Any]) -> None:
    given = case["inputs"]
    width = seq.half_width(given["se"], tau=given["tau"], alpha=given["alpha"])
    assert float(width) == pytest.approx(case["expected"], **WITHIN)


@pytest.mark.parametrize("case", ORACLES["B2_best_tau"])
def test_best_tau(case: dict[str, Any]) -> None:
    given = case["inputs"]
    tau = seq.best_tau(given["se_target"], alpha=given["alpha"])
    assert tau == pytest.approx(case["expected"], **WITHIN)
    near = [
        seq.half_width(given["se_target"], tau=tau * f, alpha=given["alpha"]) for f in (0.9, 1.1)
    ]
    assert min(near) > seq.half_width(given["se_target"], tau=tau, alpha=given["alpha"])


def test_evidence() -> None:
    case = ORACLES["B3_log_e"][0]
    est, se, tau = (case["inputs"][name] for name in ("est", "se", "tau"))
    assert float(seq.log_evidence(est, se, tau=tau)) == pytest.approx(case["point0"], **WITHIN)
    above = seq.log_evidence_above(est, se, limit=0.05, tau=tau)
    assert float(above) == pytest.approx(case["above_limit_05"], **WITHIN)
    band = seq.log_evidence_outside(est, se, low=-0.05, high=0.05, tau=tau)
    assert float(band) == pytest.approx(case["band_05"], **WITHIN)


def test_the_gap_so_far() -> None:
    case = ORACLES["B4_mh_gap"]
    found = seq.gap_so_far(*counts(case["inputs"]))
    # The oracle rounds to eight decimals, and has the first of the four standard errors.
    assert found.value == pytest.approx(case["estimate"], abs=1e-8)
    assert found.sampling_error == pytest.approx(case["se"], abs=1e-8)
    width = seq.half_width(found.sampling_error, tau=0.05, alpha=0.05)
    assert found.value - width == pytest.approx(case["low"], abs=1e-7)
    assert found.value + width == pytest.approx(case["high"], abs=1e-7)
    assert (found.error >= found.sampling_error).all()
    assert not found.ready.any()


def test_the_error_of_a_period_by_hand() -> None:
    # One period of 41 of 50 and 40 of 49: rates so far 41.5/51 and 40.5/50, expected together
    # (50·0.813725 + 49·0.81)/99 = 0.811882; the period's own level (81 + 20·0.811882)/119 =
    # 0.817124. Odds times 1.035313: rates 0.818935 and 0.815271.
    found = seq.period_errors([41], [50], [40], [49])
    wanted = (0.818935 * 0.181065 / 50 + 0.815271 * 0.184729 / 49) ** 0.5
    assert found == pytest.approx([wanted], abs=1e-6)


def test_the_change_detector() -> None:
    case = ORACLES["B5_change_detector"]
    given = case["inputs"]
    found = seq.change_evidence(
        given["d"], [given["se"]] * len(given["d"]), tau=given["tau"], start=given["start"]
    )
    wanted = [-np.inf if v is None else v for v in case["log_M"]]
    assert found.total == pytest.approx(wanted, abs=1e-7)
    assert found.likeliest(8)[0] + 1 == case["onset_batch_1based"]
    alarms = np.flatnonzero(found.total > case["log_threshold"])
    assert alarms[0] + 1 == case["first_alarm"]


def test_the_limit_detector() -> None:
    case = ORACLES["B6_limit_detector"]
    given, limit = case["inputs"], case["inputs"]["limit"]
    found = seq.limit_evidence(
        given["d"], [given["se"]] * len(given["d"]), low=-limit, high=limit, tau=given["tau"]
    )
    assert found.total == pytest.approx(case["log_M"], abs=1e-7)


def test_the_nearest_rates() -> None:
    case = ORACLES["B7_kl_projection"]
    p = [case["inputs"][name] for name in ("pa", "pb", "na", "nb")]
    assert seq.nearest_rates(*p, gap=0.0) == pytest.approx(case["delta0"], abs=1e-9)
    assert seq.nearest_rates(*p, gap=-0.05) == pytest.approx(case["delta_minus05"], abs=1e-9)


def test_exact_companions() -> None:
    case = ORACLES["B8_two_rates_log_e"]
    found = seq.two_rates_evidence(*counts(case["inputs"]), gap=case["inputs"]["delta"])
    assert found == pytest.approx(case["cumulative_log_e"], abs=1e-7)
    case = ORACLES["B9_paired"]
    b, c, n = (case["inputs"][name] for name in ("b", "c", "n"))
    for name, gap in (("betting_log_e_m0", 0.0), ("betting_log_e_m02", 0.02)):
        found = seq.betting_evidence(b, c, n, gap=gap)
        assert float(found) == pytest.approx(case[name], **WITHIN)


sizes = st.lists(st.integers(2, 400), min_size=3, max_size=12)


@given(sizes, st.integers(0, 2**32 - 1))
def test_swapping_group_and_reference_turns_the_gap(n: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = np.array(n)
    k1, k2 = rng.binomial(m, 0.4), rng.binomial(m, 0.5)
    left, right = seq.gap_so_far(k1, m, k2, m), seq.gap_so_far(k2, m, k1, m)
    assert left.value == pytest.approx(-right.value, abs=1e-12)
    assert left.error == pytest.approx(right.error, abs=1e-12)
    assert left.between == pytest.approx(right.between, abs=1e-12)


def test_a_level_that_steps_for_everybody_is_no_noise() -> None:
    rng = np.random.default_rng(3)
    n = np.full(52, 400)
    rate = np.where(np.arange(52) < 26, 0.2, 0.6)
    found = seq.gap_so_far(rng.binomial(n, rate), n, rng.binomial(n, rate), n)
    sampling = np.sqrt(2 * rate * (1 - rate) / 400)
    assert found.errors[30:] == pytest.approx(sampling[30:], rel=0.06)


def test_false_alarms_over_a_year_of_looks() -> None:
    # A weekly 95 % test of no gap at all alarms in most years; the detectors do in few.
    rng = np.random.default_rng(11)
    n, years, tau = np.full(52, 300), 200, 0.05
    weekly = change = outside = sequence = 0
    first = rng.binomial(n, 0.3), n, rng.binomial(n, 0.3), n
    lines = change_lines(*first, tau=tau, alpha=0.05, horizon=52, series=4_000, seed=1)
    for _ in range(years):
        found = seq.gap_so_far(rng.binomial(n, 0.3), n, rng.binomial(n, 0.3), n)
        weekly += bool((np.abs(found.gaps) > 1.96 * found.errors).any())
        line = lines.at(seq.between_upper(found.gaps, found.errors))
        moved = seq.change_evidence(found.gaps, found.spread, tau=tau)
        change += bool((moved.total > line).any())
        beyond = seq.limit_evidence(found.gaps, found.spread, low=-tau, high=tau, tau=tau)
        outside += bool((beyond.total[seq.BURN_IN :] > np.log(52 / 0.05)).any())
        width = seq.half_width(found.error, tau=tau, alpha=0.05)
        sequence += bool((np.abs(found.value) > width)[found.ready].any())
    assert weekly / years > 0.8
    assert max(change, outside, sequence) / years <= 0.06


def test_a_jump_is_found_and_dated() -> None:
    rng = np.random.default_rng(12)
    n, tau, delays, dates = np.full(52, 500), 0.05, [], []
    flat = rng.binomial(n, 0.3), n, rng.binomial(n, 0.3), n
    lines = change_lines(*flat, tau=tau, alpha=0.05, horizon=52, series=4_000, seed=2)
    rate = np.where(np.arange(52) < 25, 0.3, 0.4)
    for _ in range(60):
        found = seq.gap_so_far(rng.binomial(n, rate), n, rng.binomial(n, 0.3), n)
        moved = seq.change_evidence(found.gaps, found.spread, tau=tau)
        line = lines.at(seq.between_upper(found.gaps, found.errors))
        alarm = int(np.flatnonzero(moved.total > line)[0])
        if alarm >= 25:
            delays.append(alarm - 25)
            dates.append(abs(moved.likeliest(alarm)[0] - 25) <= 1)
    assert np.median(delays) <= 2
    assert np.mean(dates) >= 0.75


def test_lines_spend_what_they_may() -> None:
    errors = np.full(40, 0.02)
    lines = normal_lines(errors, tau=0.05, alpha=0.2, horizon=40, series=2_000, places=(0,))
    assert np.isinf(lines.height[0, : seq.BURN_IN]).all()
    again = normal_lines(errors, tau=0.05, alpha=0.2, horizon=40, series=2_000, places=(0,))
    assert (lines.height == again.height).all()
    rng = np.random.default_rng(5)
    crossed = 0
    for _ in range(300):
        gaps = 0.02 * rng.standard_normal(40)
        spread = np.sqrt(errors**2 + seq.between_variance(gaps, errors))
        moved = seq.change_evidence(gaps, spread, tau=0.05)
        crossed += bool((moved.total > lines.height[0]).any())
    assert 0.13 <= crossed / 300 <= 0.27


def test_single_looks_are_those_of_the_whole_series() -> None:
    rng = np.random.default_rng(3)
    gaps, spread = rng.normal(0, 0.05, 150), np.full(150, 0.05)
    whole, last = (
        seq.change_evidence(gaps, spread, tau=0.05),
        seq.change_evidence(gaps, spread, tau=0.05, since=140),
    )
    np.testing.assert_allclose(last.total, whole.total[140:])
    assert last.likeliest(149) == pytest.approx(whole.likeliest(149))
    limits = {"low": -0.05, "high": 0.05, "tau": 0.05}
    whole, last = (
        seq.limit_evidence(gaps, spread, **limits),
        seq.limit_evidence(gaps, spread, **limits, since=140),
    )
    np.testing.assert_allclose(last.total, whole.total[140:])
    np.testing.assert_allclose(seq.discounted(last), seq.discounted(whole)[140:])


def test_a_line_begins_as_it_did_with_fewer_periods() -> None:
    # Weeks added one by one alarm as the same weeks added at once.
    rng = np.random.default_rng(4)
    n = np.full(30, 60)
    counts = rng.binomial(n, 0.3), n, rng.binomial(n, 0.3), n
    shared = {"tau": 0.05, "alpha": 0.05, "horizon": 52, "series": 3_000}
    whole = change_lines(*counts, **shared)
    part = change_lines(*(each[:20] for each in counts), places=(3, 1), **shared)
    assert np.array_equal(part.height, whole.height[[3, 1], :20])
    errors = np.full(30, 0.02)
    whole, part = normal_lines(errors, **shared), normal_lines(errors[:20], places=(2,), **shared)
    assert np.array_equal(part.height, whole.height[2:3, :20])
