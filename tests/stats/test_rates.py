"""Score intervals and tests of rates, gaps, ratios and pairs."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, fisher_exact
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from evenhand.errors import UsageError
from evenhand.stats import rates
from evenhand.stats.estimate import critical
from evenhand.stats.strata import mantel_haenszel_gap

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
Z = critical(0.95)

cells = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
pairs = st.tuples(cells, cells).map(lambda both: (*both[0], *both[1]))


def score_interval(hits, n, hits_reference, n_reference, *, z):
    """Miettinen and Nurminen's interval of a gap: that of a table of one stratum."""
    parts = np.broadcast_arrays(hits, n, hits_reference, n_reference)
    found = mantel_haenszel_gap(*(part[..., None] for part in parts), z=z)
    return found.low, found.high


def test_wilson_by_hand_and_statsmodels() -> None:
    # 8 of 10: centre (0.8 + 3.8415/20)/(1 + 3.8415/10) = 0.71674,
    # half 1.96·√(0.016 + 3.8415/400)/1.38415 = 0.22657
    low, high = rates.wilson(8, 10, z=Z)
    assert (low, high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    hits, n = np.arange(21), np.full(21, 20)
    expected = proportion_confint(hits, n, method="wilson")
    assert np.allclose(rates.wilson(hits, n, z=Z), expected, atol=1e-12)


def test_oracle_rate_difference() -> None:
    oracle = ORACLES["2.13_rate_difference_ci"]
    counts = oracle["k1"], oracle["n1"], oracle["k2"], oracle["n2"]
    assert rates.newcombe(*counts, z=Z) == pytest.approx(oracle["newcombe"], abs=1e-8)
    interval = score_interval(*counts, z=Z)
    assert interval == pytest.approx(oracle["miettinen_nurminen"], abs=1e-8)
    zero = rates.newcombe(0, 10, 3, 10, z=Z)
    assert zero == pytest.approx(oracle["zero_cell_newcombe_0_10_vs_3_10"], abs=1e-8)
    estimate = rates.gap(*counts)
    assert estimate.value == pytest.approx(oracle["diff"])
    assert (estimate.n, estimate.n_reference) == (70, 80)


def test_oracle_mcnemar() -> None:
    oracle = ORACLES["2.12_mcnemar"]
    b, c, n = oracle["b"], oracle["c"], oracle["n"]
    assert rates.agresti_min(b, c, n, z=Z) == pytest.approx(oracle["agresti_min_ci"], abs=1e-8)
    assert rates.mcnemar_mid_p(b, c) == pytest.approx(oracle["p_mid"], abs=1e-8)
    estimate = rates.paired_gap(b, c, n)
    assert estimate.value == pytest.approx(oracle["CG"])
    assert estimate.p == pytest.approx(oracle["p_mid"], abs=1e-8)


@pytest.mark.parametrize(
    ("counts", "gap"),
    [((56, 70, 48, 80), 0.1), ((3, 10, 9, 12), -0.2), ((0, 10, 3, 10), 0.05), ((5, 5, 2, 9), 0.3)],
)
def test_restricted_likelihood_is_the_maximum(counts, gap) -> None:
    k1, n1, k2, n2 = counts

    def minus_likelihood(p2: float) -> float:
        p1 = p2 + gap
        terms = (k1, p1), (n1 - k1, 1 - p1), (k2, p2), (n2 - k2, 1 - p2)
        return -sum(k * np.log(p) for k, p in terms if k)

    inside = max(0, -gap) + 1e-12, min(1, 1 - gap) - 1e-12
    p2 = minimize_scalar(minus_likelihood, bounds=inside, method="bounded").x
    p1 = p2 + gap
    total = n1 + n2
    expected = (p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2) * total / (total - 1)
    found = rates.miettinen_nurminen_variance(*counts, gap=gap)
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("n", [1e4, 1e7])
def test_rare_rates_keep_their_digits(n) -> None:
    # Rare hits are Poisson: at gap δ the reference mean m solves 3/(m + d) + 5/m = 2, d = n·δ = 1,
    # so 2m² − 6m − 5 = 0, m = (6 + √76)/4, and the variance of the gap is (2m + d)/n².
    m = (6 + np.sqrt(76)) / 4
    found = rates.miettinen_nurminen_variance(3, n, 5, n, gap=1 / n)
    assert found * n**2 == pytest.approx(2 * m + 1, rel=20 / n)
    mirrored = rates.miettinen_nurminen_variance(n - 3, n, n - 5, n, gap=-1 / n)
    assert mirrored == pytest.approx(float(found), rel=1e-12)


def test_triple_root_of_the_cubic() -> None:
    # 5/10 against 5/10 at gap 0: both at ½, V = (0.25/10 + 0.25/10)·20/19 = 1/19
    assert rates.miettinen_nurminen_variance(5, 10, 5, 10, gap=0.0) == pytest.approx(1 / 19)


@given(pairs)
def test_gap_intervals_mirror_when_groups_swap(counts) -> None:
    k1, n1, k2, n2 = counts
    for interval in (rates.newcombe, score_interval):
        low, high = interval(k1, n1, k2, n2, z=Z)
        low_swapped, high_swapped = interval(k2, n2, k1, n1, z=Z)
        assert low == pytest.approx(-high_swapped, abs=1e-9)
        assert -1 <= low <= k1 / n1 - k2 / n2 + 1e-12
        assert k1 / n1 - k2 / n2 - 1e-12 <= high <= 1
        assert high == pytest.approx(-low_swapped, abs=1e-9)


@given(pairs)
def test_miettinen_nurminen_interval_and_p_agree(counts) -> None:
    low, high = score_interval(*counts, z=Z)
    p = rates.miettinen_nurminen_p(*counts)
    if abs(p - 0.05) > 1e-6:
        assert (p < 0.05) == (low > 0 or high < 0)


@given(pairs)
def test_ratio_interval_holds_the_ratio_and_inverts(counts) -> None:
    k1, n1, k2, n2 = counts
    low, high = rates.koopman(*counts, z=Z)
    inverse_low, inverse_high = rates.koopman(k2, n2, k1, n1, z=Z)
    if k1 and k2:
        assert low <= (k1 / n1) / (k2 / n2) <= high
        assert low == pytest.approx(1 / inverse_high, rel=1e-8)
    assert (low == 0) == (k1 == 0)
    assert np.isinf(high) == (k2 == 0)
    if k1 == 0 and k2:
        assert inverse_low == pytest.approx(1 / high, rel=1e-8)


@given(cells)
def test_hits_and_misses_mirror(case) -> None:
    hits, n = case
    left, right = rates.rate(hits, n), rates.rate(n - hits, n)
    assert left.low == pytest.approx(1 - right.high, abs=1e-12)


@given(pairs)
def test_duplicated_data_narrow_every_interval(counts) -> None:
    double = tuple(2 * part for part in counts)
    for interval in (rates.newcombe, score_interval):
        low, high = interval(*counts, z=Z)
        low2, high2 = interval(*double, z=Z)
        assert high2 - low2 < high - low + 1e-12


@pytest.mark.parametrize(
    "counts", [(56, 70, 48, 80), (8, 10, 3, 10), (1, 50, 4, 60), (20, 20, 12, 20), (90, 100, 5, 9)]
)
def test_koopman_equals_statsmodels(counts) -> None:
    expected = confint_proportions_2indep(
        *counts, compare="ratio", method="score", correction=False
    )
    assert rates.koopman(*counts, z=Z) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("most", [4, 60, 5_000, 10_000_000])
def test_koopman_limits_lie_where_the_score_reaches_z(most) -> None:
    """Quick steps and brackets end at the same place: there the score is z, to the last digits."""
    generator = np.random.default_rng(most)
    n1, n2 = generator.integers(1, most + 1, (2, 500)).astype(float)
    k1, k2 = (np.floor(generator.random(500) ** 3 * (n + 1)) for n in (n1, n2))
    z = np.where(generator.random(500) < 0.5, Z, 3.9)
    low, high = rates.koopman(k1, n1, k2, n2, z=z)
    assert ((low == 0) == (k1 == 0)).all()
    assert (np.isinf(high) == (k2 == 0)).all()

    def plain_score(ratio):
        linear = ratio * (n1 + k2) + k1 + n2
        root = np.sqrt(np.maximum(linear**2 - 4 * ratio * (n1 + n2) * (k1 + k2), 0))
        p2 = 2 * (k1 + k2) / (linear + root)
        p1 = np.minimum(ratio * p2, 1)
        variance = p1 * (1 - p1) / n1 + ratio**2 * p2 * (1 - np.minimum(p2, 1)) / n2
        with np.errstate(all="ignore"):
            return np.abs(k1 / n1 - ratio * k2 / n2) / np.sqrt(variance)

    for limit, defined in ((low, k1 > 0), (high, k2 > 0)):
        reached = plain_score(np.where(defined, limit, 1.0))[defined]
        assert reached == pytest.approx(z[defined], abs=1e-6)


def test_koopman_where_everybody_is_a_hit() -> None:
    # 10/10 against 10/10: the score is n·(θ − 1), so the upper limit is 1 + z²/10
    low, high = rates.koopman(10, 10, 10, 10, z=Z)
    assert high == pytest.approx(1 + Z**2 / 10)
    assert low == pytest.approx(1 / (1 + Z**2 / 10))


def test_score_p_lies_near_the_exact_one() -> None:
    exact = fisher_exact([[40, 30], [25, 45]]).pvalue
    assert rates.miettinen_nurminen_p(40, 70, 25, 70) == pytest.approx(exact, abs=0.01)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_mid_p_from_the_binomial(b, c) -> None:
    p = rates.mcnemar_mid_p(b, c)
    if b + c == 0:
        assert p == 1
        return
    exact = binomtest(min(b, c), b + c).pvalue
    assert p <= exact + 1e-12
    assert p == pytest.approx(rates.mcnemar_mid_p(c, b), abs=1e-12)


def test_undefined_is_nan_and_never_warns() -> None:
    for interval in (rates.newcombe, score_interval, rates.koopman):
        low, high = interval([0, 3], [0, 10], [3, 0], [10, 0], z=Z)
        assert np.isnan(low).all()
        assert np.isnan(high).all()
    assert np.isnan(rates.wilson(0, 0, z=Z)).all()
    assert np.isnan(rates.agresti_min(0, 0, 0, z=Z)).all()
    assert np.isnan(rates.miettinen_nurminen_p([0, 3, np.nan], [0, 10, 4], 3, [10, 0, 4])).all()
    assert np.isnan(rates.mcnemar_mid_p(np.nan, 3))


def test_nobody_a_hit_says_nothing_against_equal_rates() -> None:
    assert rates.miettinen_nurminen_p([0, 10], 10, [0, 12], 12).tolist() == [1, 1]
    low, high = score_interval(0, 10, 0, 10, z=Z)
    assert low == pytest.approx(-high)
    assert high > 0.2


def test_effective_counts_and_family_values_broadcast() -> None:
    z = np.array([[1.96], [2.8]])
    low, high = rates.newcombe([3.5, 8.25], [10.5, 20.0], 4.75, 12.5, z=z)
    assert low.shape == (2, 2)
    assert (low[1] < low[0]).all()
    assert (high[1] > high[0]).all()


def test_estimates_say_why_they_are_undefined() -> None:
    assert rates.rate(0, 0).undefined == "no cases in the group"
    assert rates.gap(0, 0, 3, 10).undefined == "no cases in the group"
    assert rates.ratio(3, 10, 0, 0).undefined == "no cases in the reference"
    assert rates.paired_gap(0, 0, 0).undefined == "no pairs"
    ratio = rates.ratio(3, 10, 0, 10)
    assert ratio.value is None
    assert ratio.undefined == "no hits in the reference"
    assert ratio.low > 0.9
    assert ratio.high is None


def test_errors_name_the_value() -> None:
    with pytest.raises(UsageError) as error:
        rates.rate(11, 10)
    assert str(error.value) == (
        "hits=11 of n=10 is not a count of cases. hits must lie between 0 and n."
    )
    with pytest.raises(UsageError, match="hits_reference=-1 of n=10"):
        rates.gap(1, 10, -1, 10)
