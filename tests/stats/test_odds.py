"""Odds of two kinds of cases: by hand, against statsmodels, their symmetries and their coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import confint_proportions_2indep

from evenhand.stats.odds import (
    odds,
    odds_gap_limits,
    odds_limits,
    odds_ratio_limits,
    odds_slope,
)
from evenhand.stats.rates import miettinen_nurminen_p, wilson

Z = 1.959963984540054


@st.composite
def sides(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Hits and cases of both sides, each with hits and with other cases."""
    n1, n2 = (draw(st.integers(2, 3000)) for _ in range(2))
    return draw(st.integers(1, n1 - 1)), n1, draw(st.integers(1, n2 - 1)), n2


def test_values_by_hand() -> None:
    # 120 misses for 80 wrong decisions are 1.5 of them for each.
    assert float(odds(120 / 200)) == pytest.approx(1.5)
    low, high = wilson(120, 200, z=Z)
    assert [float(end) for end in odds_limits(120, 200, z=Z)] == pytest.approx(
        [float(low / (1 - low)), float(high / (1 - high))]
    )
    # Limits of 120:80 are 1.1315 and 1.9886, of 60:180 0.2491 and 0.4460; the gap is 7/6:
    # 7/6 − √((1.5 − 1.1315)² + (0.4460 − 1/3)²), 7/6 + √((1.9886 − 1.5)² + (1/3 − 0.2491)²).
    ends = [float(end) for end in odds_gap_limits(120, 200, 60, 240, z=Z)]
    assert ends == pytest.approx([0.7813, 1.6625], abs=1e-4)


@given(sides())
def test_limits_lie_as_far_below_as_above_in_the_logarithm(case: tuple[int, int, int, int]) -> None:
    k, n = case[:2]
    low, high = odds_limits(k, n, z=Z)
    assert np.log(low) + np.log(high) == pytest.approx(2 * np.log(k / (n - k)), abs=1e-7)


@given(sides())
def test_gaps_turn_round_with_the_sides(case: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = case
    low, high = odds_gap_limits(k1, n1, k2, n2, z=Z)
    back_low, back_high = odds_gap_limits(k2, n2, k1, n1, z=Z)
    assert [low, high] == pytest.approx([-back_high, -back_low])
    assert low < k1 / (n1 - k1) - k2 / (n2 - k2) < high


@given(sides())
def test_ratios_are_reciprocal(case: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = case
    low, high = odds_ratio_limits(k1, n1, k2, n2, z=Z)
    # Of the sides, and of what is counted and what it is divided by.
    for other in ((k2, n2, k1, n1), (n1 - k1, n1, n2 - k2, n2)):
        back_low, back_high = odds_ratio_limits(*other, z=Z)
        assert [low, high] == pytest.approx([1 / back_high, 1 / back_low], rel=1e-6)
    assert low < k1 * (n2 - k2) / (k2 * (n1 - k1)) < high


@given(sides())
def test_ratios_leave_out_one_where_the_test_of_equal_shares_says_so(
    case: tuple[int, int, int, int],
) -> None:
    low, high = odds_ratio_limits(*case, z=Z)
    p = float(miettinen_nurminen_p(*case))
    if abs(p - 0.05) > 1e-6:
        assert bool(low > 1 or high < 1) == (p < 0.05)


@pytest.mark.parametrize(
    "case", [(120, 200, 60, 240), (3, 40, 9, 25), (900, 2500, 40, 90), (1, 12, 7, 9)]
)
def test_ratios_are_those_of_statsmodels(case: tuple[int, int, int, int]) -> None:
    with np.errstate(all="ignore"):  # it looks for its limits where numbers end
        theirs = confint_proportions_2indep(*case, method="score", compare="odds-ratio")
    assert [float(end) for end in odds_ratio_limits(*case, z=Z)] == pytest.approx(theirs, rel=1e-6)


def test_what_has_nothing_to_divide_by_is_undefined() -> None:
    assert np.isnan(odds([1.0, np.nan])).all()
    assert np.isnan(odds_slope(1.0))
    assert np.isnan(odds_limits([7, 0], [7, 0], z=Z)).all()
    # No other case in the group, none in the reference, no cases at all, and for ratios no hits.
    lacking = [(7, 7, 3, 9), (3, 9, 7, 7), (0, 0, 3, 9), (3, 9, 0, 0)]
    assert np.isnan(odds_gap_limits(*np.transpose(lacking), z=Z)).all()
    assert np.isnan(odds_ratio_limits(*np.transpose([*lacking, (3, 9, 0, 9)]), z=Z)).all()
    # No hit is an odds of 0, which has an upper limit.
    low, high = odds_limits(0, 20, z=Z)
    assert (float(low), np.isfinite(high)) == (0.0, True)
    assert np.isfinite(odds_gap_limits(0, 20, 3, 9, z=Z)).all()


@pytest.mark.parametrize(("n1", "n2"), [(50, 50), (50, 200), (200, 60)])
def test_coverage_is_what_intervals_say(n1: int, n2: int) -> None:
    """Over every count there can be, weighed by how often it comes: no draws are needed."""
    k1, k2 = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)[None, :]
    limits = [f(k1, n1, k2, n2, z=Z) for f in (odds_gap_limits, odds_ratio_limits)]
    alone = odds_limits(k1, n1, z=Z)
    for p1 in (0.1, 0.3, 0.5, 0.7, 0.85):
        for p2 in (0.1, 0.4, 0.6, 0.8):
            own, other = p1 / (1 - p1), p2 / (1 - p2)
            once = binom.pmf(k1, n1, p1)
            both = once * binom.pmf(k2, n2, p2)
            cases = [(alone, own, once), (limits[0], own - other, both)]
            for (low, high), truth, weight in [*cases, (limits[1], own / other, both)]:
                defined = np.isfinite(low)
                holds = (low <= truth) & (truth <= high)
                covered = weight[defined & holds].sum() / weight[defined].sum()
                assert 0.93 <= covered <= 0.975, (p1, p2, covered)
