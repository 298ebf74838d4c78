"""Further cases, equivalence and planning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize

from evenhand.errors import UsageError
from evenhand.stats import power, rates
from evenhand.stats.estimate import critical
from evenhand.stats.spread import rms, spread

Z = critical(0.95)


@settings(max_examples=60)
@given(
    st.integers(10, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.03, 0.05, 0.1]),
)
def test_further_cases_are_the_fewest_that_settle(case, limit) -> None:
    hits, n = case
    more = power.further_cases(hits, n, 50_000, 100_000, low=-limit, high=limit, z=Z)

    def settled(size: float) -> bool:
        low, high = rates.newcombe(hits / n * size, size, 50_000, 100_000, z=Z)
        return bool((low >= -limit and high <= limit) or low > limit or high < -limit)

    if np.isnan(more.cases):
        assert str(more.reason) in (power.AT_LIMIT, power.REFERENCE_TOO_SMALL)
        return
    assert settled(n + more.cases)
    if more.cases > 0:
        assert not settled(n + more.cases - 1)


def test_reasons_why_no_number_would() -> None:
    # Rate 0.55 against 0.5 lies on the limit; against 20 cases no number of this group helps.
    near = power.further_cases(55, 100, 5000, 10_000, low=-0.05, high=0.05, z=Z)
    assert str(near.reason) == "no number would: the value is within 1 % of the limit"
    small = power.further_cases(60, 100, 10, 20, low=-0.05, high=0.05, z=Z)
    assert str(small.reason) == "no number of this group would: the reference is too small"
    none = power.further_cases([0, 5], [0, 10], [5, 0], [10, 0], low=-0.05, high=0.05, z=Z)
    assert none.reason.tolist() == ["no value to settle"] * 2
    assert np.isnan([near.cases, small.cases, *none.cases]).all()


def test_settled_already_needs_none() -> None:
    more = power.further_cases([5000, 9000], 10_000, 5000, 10_000, low=-0.05, high=0.05, z=Z)
    assert more.cases.tolist() == [0, 0]
    assert more.reason.tolist() == ["", ""]


def test_open_band_and_rates_at_their_end() -> None:
    one_sided = power.further_cases(50, 100, 5000, 10_000, low=-np.inf, high=0.05, z=Z)
    both = power.further_cases(50, 100, 5000, 10_000, low=-0.05, high=0.05, z=Z)
    assert 0 < one_sided.cases <= both.cases
    # A rate of 0 sits on the end of [0, 0.05], which is no limit it could cross.
    zero = power.further_cases_rate(0, 20, low=0.0, high=0.05, z=Z)
    # Wilson's upper limit at 0 is z²/(n + z²) ≤ 0.05 from n = 19·z² = 72.99 on
    assert zero.cases == 73 - 20


def test_further_cases_of_a_ratio() -> None:
    more = power.further_cases_ratio(60, 100, 5000, 10_000, low=0.8, high=1.25, z=Z)
    size = 100 + more.cases
    assert rates.koopman(0.6 * size, size, 5000, 10_000, z=Z)[1] <= 1.25
    assert rates.koopman(0.6 * (size - 1), size - 1, 5000, 10_000, z=Z)[1] > 1.25
    undefined = power.further_cases_ratio(6, 10, 0, 10, low=0.8, high=1.25, z=Z)
    assert str(undefined.reason) == "no value to settle"


@pytest.mark.parametrize("measure", [rms, spread])
def test_further_cases_of_a_size(measure) -> None:
    values, v = np.array([0.5, 0.4, 0.62]), np.array([0.002, 0.003, 0.002])
    if measure is rms:
        values = values - 0.5
    now = measure(values, v, z=Z)
    for limit in (now.corrected * 1.5, now.corrected * 0.5):
        more = power.further_cases_rms(values, v, 900, low=0, high=limit, z=Z, measure=measure)
        # The quadratic of the moment interval with the present Q and the smaller noise.
        shrink = 900 / (900 + more.cases)
        q = now.corrected**2
        slope = 4 * v.mean() * shrink / 3
        if measure is rms:
            constant = 2 * (v**2).sum() * shrink**2 / 9
        else:
            constant = 2 * ((v**2).sum() / 3 + v.sum() ** 2 / 9) * shrink**2 / 9
        side = 1 if limit > now.corrected else -1
        root = np.sqrt((q + Z**2 * slope / 2) ** 2 - q**2 + Z**2 * constant)
        reached = np.sqrt(max(q + Z**2 * slope / 2 + side * root, 0))
        assert reached == pytest.approx(limit, rel=2e-3)


def test_noise_alone_needs_cases_too() -> None:
    more = power.further_cases_rms([0.02, -0.02], [0.01, 0.01], 100, low=0, high=0.05, z=Z)
    assert more.cases > 0


def test_equivalence_agrees_with_the_interval() -> None:
    generator = np.random.default_rng(1)
    n1, n2 = generator.integers(50, 2000, (2, 300))
    k1, k2 = generator.binomial(n1, 0.4), generator.binomial(n2, 0.42)
    p = power.equivalence_p(k1, n1, k2, n2, low=-0.1, high=0.1)
    low, high = rates.miettinen_nurminen(k1, n1, k2, n2, z=critical(0.9))
    inside = (low > -0.1) & (high < 0.1)
    assert (inside == (p < 0.05)).all()
    assert 20 < inside.sum() < 280
    assert np.isnan(power.equivalence_p(0, 0, 1, 2, low=-0.1, high=0.1))


@pytest.mark.parametrize(
    ("rate", "gap", "groups"), [(0.1, 0.03, 2), (0.5, -0.1, 2), (0.3, 0.05, 5)]
)
def test_plan_agrees_with_statsmodels(rate, gap, groups) -> None:
    plan = power.plan(rate, gap, groups=groups)
    effect = abs(proportion_effectsize(rate + gap, rate))
    expected = NormalIndPower().solve_power(effect, power=0.8, alpha=0.05 / (groups - 1))
    assert plan.cases_per_group == pytest.approx(expected, abs=4, rel=0.004)
    assert plan.cases == plan.cases_per_group * groups


@pytest.mark.parametrize(("rate", "gap", "groups"), [(0.1, 0.05, 2), (0.4, -0.1, 4)])
def test_planned_power_is_reached(rate, gap, groups) -> None:
    plan = power.plan(rate, gap, groups=groups)
    generator = np.random.default_rng(2)
    n = plan.cases_per_group
    hits, reference = generator.binomial(n, rate + gap, 20_000), generator.binomial(n, rate, 20_000)
    found = rates.miettinen_nurminen_p(hits, n, reference, n) < 0.05 / (groups - 1)
    # Three standard errors of 20,000 simulations are 0.0085.
    assert found.mean() == pytest.approx(0.8, abs=0.012)


def test_family_none_needs_fewer() -> None:
    alone = power.plan(0.1, 0.03, groups=5, family="none")
    assert alone.cases_per_group == power.plan(0.1, 0.03, groups=2).cases_per_group
    assert alone.cases_per_group < power.plan(0.1, 0.03, groups=5).cases_per_group


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rate": 1.2}, "rate=1.2 is not a rate. It must lie between 0 and 1."),
        (
            {"gap": 0.95},
            "gap=0.95 leaves the other group at a rate of 1.05. "
            "Give a gap other than 0 that keeps rate + gap between 0 and 1.",
        ),
        ({"groups": 1}, "groups=1 leaves nothing to compare. Give 2 or more."),
        ({"power": 80}, "power=80 is not a probability between 0 and 1."),
        ({"family": "bh"}, "family='bh' is not known. Choose 'bonferroni' or 'none'."),
    ],
)
def test_bad_plans(arguments, words) -> None:
    with pytest.raises(UsageError) as error:
        power.plan(**{"rate": 0.1, "gap": 0.03, **arguments})
    assert str(error.value) == words
