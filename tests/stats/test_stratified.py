"""Mantel–Haenszel gaps over strata."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import StratifiedTable

from evenhand.stats.estimate import critical
from evenhand.stats.rates import miettinen_nurminen_p
from evenhand.stats.strata import mantel_haenszel_gap

Z = critical(0.95)
HITS, N = np.array([8, 30, 5]), np.array([10, 60, 40])
HITS_REFERENCE, N_REFERENCE = np.array([12, 10, 2]), np.array([20, 40, 35])


def test_value_by_hand() -> None:
    # Strata (8/10 against 12/20) and (30/60 against 10/40): gaps 0.2 and 0.25,
    # weights 10·20/30 = 6.6667 and 60·40/100 = 24 → (1.3333 + 6) ÷ 30.6667 = 0.239130
    gap = mantel_haenszel_gap([8, 30], [10, 60], [12, 10], [20, 40], z=Z)
    assert gap.value == pytest.approx(0.2391304, abs=1e-7)


def test_sato_variance_by_hand() -> None:
    # One stratum 8/10 against 12/20: w = 200/30, d = 0.2
    # P = (100·12 − 400·8 + 200·(20 − 10)/2) ÷ 900 = −1000/900; Q = (8·8 + 12·2) ÷ 60 = 88/60
    gap = mantel_haenszel_gap([8], [10], [12], [20], z=Z)
    expected = (0.2 * -1000 / 900 + 88 / 60) / (200 / 30) ** 2
    assert gap.variance == pytest.approx(expected)


def test_one_stratum_is_miettinen_nurminen() -> None:
    gap = mantel_haenszel_gap([56], [70], [48], [80], z=Z)
    assert [gap.low, gap.high] == pytest.approx([0.0528, 0.3382], abs=1e-4)
    assert gap.p == pytest.approx(float(miettinen_nurminen_p(56, 70, 48, 80)))
    assert gap.degrees == 0
    assert np.isnan(gap.homogeneity_p)


def test_p_is_cochran_mantel_haenszel() -> None:
    tables = [
        [[k1, n1 - k1], [k2, n2 - k2]]
        for k1, n1, k2, n2 in zip(HITS, N, HITS_REFERENCE, N_REFERENCE, strict=True)
    ]
    expected = StratifiedTable(tables).test_null_odds(correction=False).pvalue
    gap = mantel_haenszel_gap(HITS, N, HITS_REFERENCE, N_REFERENCE, z=Z)
    assert gap.p == pytest.approx(expected)


def test_interval_is_close_to_sato_in_large_strata() -> None:
    gap = mantel_haenszel_gap(HITS * 50, N * 50, HITS_REFERENCE * 50, N_REFERENCE * 50, z=Z)
    half = Z * np.sqrt(gap.variance)
    # Sato's assumes one gap in all strata, as the score interval does; they meet to a few percent.
    assert gap.high - gap.low == pytest.approx(2 * half, rel=0.05)


def test_homogeneity_by_weighted_least_squares() -> None:
    k1, k2 = np.array([4000, 3000, 3300]), np.array([3000, 3100, 2000])
    n = np.array([10_000, 8000, 9000])
    gap = mantel_haenszel_gap(k1, n, k2, n, z=Z)
    d = k1 / n - k2 / n
    v = k1 * (n - k1) / n**3 + k2 * (n - k2) / n**3
    common = (d / v).sum() / (1 / v).sum()
    assert gap.homogeneity == pytest.approx(((d - common) ** 2 / v).sum(), rel=0.02)
    assert gap.degrees == 2
    assert gap.homogeneity_p < 1e-10


def test_simpson_reversal() -> None:
    # Within each stratum the group's rate is higher, over all it is lower.
    hits, n, hits_reference, n_reference = [81, 192], [87, 263], [234, 55], [270, 80]
    gap = mantel_haenszel_gap(hits, n, hits_reference, n_reference, z=Z)
    crude = sum(hits) / sum(n) - sum(hits_reference) / sum(n_reference)
    assert crude < 0 < gap.value


def test_strata_with_an_empty_side_are_left_out() -> None:
    gap = mantel_haenszel_gap([8, 3, 0], [10, 5, 0], [12, 0, 7], [20, 0, 9], z=Z)
    alone = mantel_haenszel_gap([8], [10], [12], [20], z=Z)
    assert gap.n_used == 1
    for name in ("value", "low", "high", "p", "variance"):
        assert getattr(gap, name) == pytest.approx(float(getattr(alone, name)), abs=1e-9)
    nothing = mantel_haenszel_gap([0], [0], [3], [9], z=Z)
    assert np.isnan([nothing.value, nothing.low, nothing.p, nothing.variance]).all()


def test_nobody_a_hit_anywhere() -> None:
    gap = mantel_haenszel_gap([0, 0], [10, 20], [0, 0], [15, 10], z=Z)
    assert gap.value == 0
    assert gap.p == 1
    assert gap.low < 0 < gap.high
    assert np.isnan(gap.homogeneity)


cell = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(max_examples=40)
@given(st.lists(st.tuples(cell, cell), min_size=1, max_size=5))
def test_swapping_groups_mirrors(strata) -> None:
    k1, n1, k2, n2 = np.array([(*one, *two) for one, two in strata], dtype=float).T
    gap = mantel_haenszel_gap(k1, n1, k2, n2, z=Z)
    swapped = mantel_haenszel_gap(k2, n2, k1, n1, z=Z)
    assert gap.value == pytest.approx(-swapped.value, abs=1e-12)
    assert gap.low == pytest.approx(-swapped.high, abs=1e-8)
    assert gap.low <= gap.value <= gap.high
    assert gap.variance == pytest.approx(swapped.variance, abs=1e-12)


def test_leading_axes() -> None:
    many = mantel_haenszel_gap(
        np.stack([HITS, HITS[::-1]]), np.stack([N, N[::-1]]), [[1, 2, 3]], [[5, 9, 9]], z=Z
    )
    one = mantel_haenszel_gap(HITS[::-1], N[::-1], [1, 2, 3], [5, 9, 9], z=Z)
    assert many.low.shape == (2,)
    assert many.low[1] == pytest.approx(one.low)
