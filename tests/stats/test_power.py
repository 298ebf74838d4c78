"""Further cases and planning."""

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize

from evenhand.errors import UsageError
from evenhand.stats import power, rates
from evenhand.stats.estimate import critical

Z = critical(0.95)


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
