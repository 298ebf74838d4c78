"""Cost curves: the worked example of the paper, maps between ratio and threshold, properties."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import DataError, UsageError
from evenhand.stats.thresholds.costs import (
    cost_curve,
    cost_ratio,
    cost_ratio_interval,
    equalise,
    implied_threshold,
    margin,
)

ORACLES = json.loads((Path(__file__).parent.parent / "oracles" / "oracles.json").read_text())
CANCER = ORACLES["3.1_cancer_reconstruction"]
RISKS = [1 / 8, 1 / 6, 1 / 4, 1 / 2]


def person(sex, ratio=4.0):
    n, yes = np.array(CANCER[f"{sex}_n"]), np.array(CANCER[f"{sex}_cancers"])
    return cost_curve(RISKS, negatives=n - yes, positives=yes, cost_ratio=ratio)


class TestMap:
    def test_oracle(self):
        want = ORACLES["3.2_threshold_cost_map"]
        assert implied_threshold(4) == pytest.approx(want["c4"])
        assert implied_threshold(0.1) == pytest.approx(want["c_0_1"])
        assert cost_ratio(0.25) == pytest.approx(want["c_from_0_25"])
        assert cost_ratio(1 / 6) == pytest.approx(want["c_from_1_6"])
        # The paper prints 0.16 for 1/6, which would give 5.25 rather than its 5.
        assert cost_ratio(0.16) == pytest.approx(want["c_from_printed_0_16"])
        assert cost_ratio(0.0) == np.inf
        assert cost_ratio(1.0) == 0

    def test_pairs_of_groups(self):
        want = ORACLES["3.13_cost_ab_matrix"]
        for pair, ratio in want["c"].items():
            assert implied_threshold(ratio) == pytest.approx(want["t"][pair])

    @given(st.floats(1e-6, 1e6))
    def test_there_and_back(self, ratio):
        assert float(cost_ratio(implied_threshold(ratio))) == pytest.approx(ratio, rel=1e-6)

    def test_undefined_outside(self):
        assert np.isnan(cost_ratio([-0.1, 1.1])).all()
        found = cost_ratio_interval([0.0, 1.0, -0.2, 1.2], standard_error=0.1)
        assert np.isnan(found.value).all()
        assert np.isnan(found.low).all()

    def test_words(self):
        with pytest.raises(UsageError) as caught:
            implied_threshold(-2)
        assert str(caught.value) == (
            "cost_ratio=-2 is negative. "
            "Give the cost of one false negative in false positives, a number above 0."
        )


class TestCancer:
    @pytest.mark.parametrize("sex", ["female", "male"])
    def test_policies(self, sex):
        # Treating the k highest risks is index 4 − k of the curve.
        curve = person(sex)
        for k, want in CANCER[f"{sex}_policies_c4"].items():
            at = 4 - int(k)
            assert curve.false_negatives[at] == want["FN"]
            assert curve.false_positives[at] == want["FP"]
            assert curve.cost[at] == want["cost"]
            assert curve.rate("false_negative_rate")[at] == pytest.approx(want["FNR"])
            assert curve.rate("false_positive_rate")[at] == pytest.approx(want["FPR"])
            assert curve.rate("selection_rate")[at] == pytest.approx(want["treat_rate"])
        assert 4 - curve.best == CANCER["best_k"][sex]
        assert curve.best_threshold == 0.25
        assert curve.positives / curve.n == pytest.approx(CANCER["prevalence"][sex])

    @pytest.mark.parametrize("sex", ["female", "male"])
    def test_cost_of_each_risk_group(self, sex):
        # Treating costs a false positive per healthy person, not treating 4 per ill one.
        curve = person(sex)
        treat = -np.diff(curve.false_positives)
        leave = 4 * np.diff(curve.false_negatives)
        assert np.stack([treat, leave], axis=1).tolist() == CANCER["treat_vs_not_cost_c4"][sex]

    def test_printed_numbers(self):
        female, male = person("female"), person("male")
        check = CANCER["check"]
        assert round(100 * female.positives / female.n) == check["prev_f"]
        assert round(100 * male.positives / male.n) == check["prev_m"]
        assert round(100 * female.rate("false_negative_rate")[female.best]) == check["fnr_f"]
        assert round(100 * male.rate("false_negative_rate")[male.best]) == check["fnr_m"]

    def test_tie_interval(self):
        # Any ratio from 3 to 5, threshold 1/4 down to 1/6, leads to the same decisions.
        for ratio in (3.01, 4.0, 4.99):
            assert person("male", ratio).best == 2
            assert person("female", ratio).best == 2
        assert person("male", 5.01).best == 1
        assert person("male", 2.99).best == 3

    def test_equal_false_negative_rates_cost_more(self):
        want = ORACLES["3.14_equal_FNR_costs_more"]
        found = equalise([person("female"), person("male")], rate="false_negative_rate")
        assert found.total_extra_cost == want["extra_cost"]
        assert found.cost[1] == want["male_treat3"]["cost"]
        assert found.cost[1] - found.extra_cost[1] == want["male_treat2"]["cost"]
        assert found.reached[1] == pytest.approx(want["male_treat3"]["FNR"])
        assert found.gap < found.gap_at_best
        # Men are then treated as if a missed cancer cost 5 to 7 false alarms, women 3 to 5.
        ratios = [(m.cost_ratio_low, m.cost_ratio_high) for m in found.margins]
        assert ratios[0] == (pytest.approx(3), pytest.approx(5))
        assert ratios[1] == (pytest.approx(5), pytest.approx(7))
        assert found.thresholds == (0.25, 1 / 6)

    def test_other_rates(self):
        groups = [person("female"), person("male")]
        alarms = equalise(groups, rate="false_positive_rate")
        chosen = equalise(groups, rate="selection_rate")
        # Women's FPR is 0.52; men can have 0.32 or 0.72, equally far: the cheaper one stays.
        assert alarms.reached.tolist() == pytest.approx([0.52, 0.32])
        assert alarms.total_extra_cost == 0
        # Women's share treated is 0.588; men's 0.75 is nearer than 0.375.
        assert chosen.reached.tolist() == pytest.approx([20 / 34, 0.75])
        assert chosen.total_extra_cost == 2


class TestCurve:
    @given(
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12),
        st.floats(0.05, 20),
    )
    def test_best_is_cheapest_by_brute_force(self, counts, ratio):
        no, yes = np.array(counts).T
        curve = cost_curve(np.arange(no.size), negatives=no, positives=yes, cost_ratio=ratio)
        costs = [no[k:].sum() + ratio * yes[:k].sum() for k in range(no.size + 1)]
        assert curve.cost.tolist() == pytest.approx(costs)
        assert curve.cost[curve.best] == pytest.approx(min(costs))

    @given(st.integers(0, 4))
    def test_margin_of_a_monotone_score_contains_the_ratio_that_led_there(self, at):
        found = margin(person("male"), index=at)
        assert found.cost_ratio_low <= found.cost_ratio_high
        middle = np.clip((found.cost_ratio_low + min(found.cost_ratio_high, 50)) / 2, 0.01, 50)
        assert person("male", float(middle)).best == at

    def test_margins_at_the_ends(self):
        everyone, nobody = margin(person("male"), index=0), margin(person("male"), index=4)
        assert everyone.cost_ratio_high == np.inf
        assert np.isnan(everyone.refused)
        assert nobody.cost_ratio_low == 0
        assert np.isnan(nobody.accepted)

    def test_undefined_rates(self):
        curve = cost_curve([0.1, 0.9], negatives=[3, 2], positives=[0, 0], cost_ratio=1)
        assert np.isnan(curve.rate("false_negative_rate")).all()
        assert curve.best_threshold == np.inf
        with pytest.raises(DataError, match=r"^false_negative_rate of the reference is undefined"):
            equalise([curve, person("male")])
        kept = equalise([person("male"), curve])
        assert np.isnan(kept.reached[1])
        assert kept.index[1] == curve.best

    def test_words(self):
        with pytest.raises(DataError, match="must be distinct and rising"):
            cost_curve([0.2, 0.1], negatives=[1, 1], positives=[1, 1], cost_ratio=1)
        with pytest.raises(DataError, match="differ in shape"):
            cost_curve([0.2, 0.3], negatives=[1], positives=[1, 1], cost_ratio=1)
        with pytest.raises(UsageError, match=r"^cost_ratio=0 is not above 0\."):
            cost_curve([0.2], negatives=[1], positives=[1], cost_ratio=0)
        with pytest.raises(UsageError) as caught:
            person("male").rate("false_negative_rat")
        assert str(caught.value) == (
            "rate='false_negative_rat' cannot be equalised. Use one of false_negative_rate, "
            "false_positive_rate, selection_rate. Did you mean 'false_negative_rate'?"
        )
