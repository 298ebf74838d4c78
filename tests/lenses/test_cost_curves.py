"""Cost curves: the cancer example, the cheapest threshold, equal rates, engines and bad input."""

import json
import re
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from evenhand.decisions.table import Decisions
from evenhand.errors import UsageError
from evenhand.lenses.thresholds.costs import cost_curve
from evenhand.simulate.scores import ScoreGroup, simulate_scores
from evenhand.stats.thresholds.costs import implied_threshold

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
CANCER = ORACLES["3.1_cancer_reconstruction"]
RISKS = (1 / 8, 1 / 6, 1 / 4, 1 / 2)
ROLES = {"truth": "truth", "score": "score", "group": "group"}


def cancer(**roles) -> Decisions:
    rows: dict[str, list] = {"score": [], "truth": [], "group": []}
    for group in ("female", "male"):
        for risk, n, k in zip(RISKS, CANCER[f"{group}_n"], CANCER[f"{group}_cancers"]):
            rows["score"] += [risk] * n
            rows["truth"] += [1] * k + [0] * (n - k)
            rows["group"] += [group] * n
    return Decisions(rows, **ROLES, **roles)


class TestCancer:
    @pytest.mark.parametrize("group", ["female", "male"])
    def test_every_policy_has_the_oracle_cost(self, group):
        # Policy k treats the k highest risks: thresholds run from the lowest risk to nobody.
        found = next(g for g in cost_curve(cancer(), cost_ratio=4).groups if g.group == group)
        for treated, want in CANCER[f"{group}_policies_c4"].items():
            at = 4 - int(treated)
            assert found.cost[at] == want["cost"]
            assert found.false_positives[at] == want["FP"]
            assert found.false_negatives[at] == want["FN"]
        assert found.thresholds == (*RISKS, None)

    def test_treating_the_two_highest_is_cheapest_for_both(self):
        for group in cost_curve(cancer(), cost_ratio=4).groups:
            assert group.cheapest.threshold == 0.25
            assert (group.cheapest.implied_low, group.cheapest.implied_high) == pytest.approx(
                (3, 5)
            )
            assert group.implied_threshold == ORACLES["3.2_threshold_cost_map"]["c4"]

    def test_equal_misses_cost_two_more_and_imply_five_to_seven_for_men(self):
        want = ORACLES["3.14_equal_FNR_costs_more"]
        found = cost_curve(cancer(reference="female"), cost_ratio=4)
        equal = next(e for e in found.equalised if e.rate == "false_negative_rate")
        assert equal.extra_cost == want["extra_cost"]
        men = equal.groups["male"]
        assert men.false_negative_rate == pytest.approx(want["male_treat3"]["FNR"])
        assert (men.implied_low, men.implied_high) == pytest.approx((5, 7))
        assert equal.groups["female"].threshold == 0.25
        assert equal.gap_at_cheapest == pytest.approx(3 / 7 - 2 / 9)

    def test_the_present_threshold_is_costed(self):
        found = cost_curve(cancer(threshold=1 / 6), cost_ratio=4)
        men = found.groups[1]
        assert (men.present.threshold, men.present.cost, men.present.extra_cost) == (1 / 6, 22, 2)
        assert str(found).splitlines()[1] == (
            "male: with one miss worth 4 false alarms, a threshold of 0.25 is cheapest (cost 20, "
            "n = 32); the present threshold of 0.167 costs 2 more."
        )

    def test_pairs_of_stakeholders_have_thresholds_of_their_own(self):
        # 3.13: t_ab = 1/(1 + c_ab), one ratio for each producer*consumer pair.
        want = ORACLES["3.13_cost_ab_matrix"]
        rows = {"score": [0.2, 0.8] * 8, "truth": [0, 1] * 8}
        rows["producer"] = ["a"] * 8 + ["b"] * 8
        rows["consumer"] = (["a"] * 4 + ["b"] * 4) * 2
        decisions = Decisions(
            rows, truth="truth", score="score", group=["producer", "consumer"], crossed=True
        )
        ratios = {f"{pair[0]}*{pair[1]}": c for pair, c in want["c"].items()}
        found = cost_curve(decisions, cost_ratio=ratios)
        assert {g.group for g in found.groups} == set(ratios)
        for group in found.groups:
            assert group.implied_threshold == pytest.approx(want["t"][group.group.replace("*", "")])


class TestCurve:
    def test_ratios_by_group_and_the_frame(self):
        found = cost_curve(cancer(), cost_ratio={"female": 4, "male": 1})
        assert [g.cost_ratio for g in found.groups] == [4, 1]
        frame = found.to_frame()
        assert frame.height == 10
        assert frame.columns == [
            "attribute", "group", "cost_ratio", "threshold", "cost", "false_positives",
            "false_negatives",
        ]  # fmt: skip
        assert json.loads(found.to_json())["positive"] == "1"
        assert "<p>female" in found._repr_html_()

    def test_every_point_counts_the_rows_exactly(self):
        frame = simulate_scores({"a": ScoreGroup(n=3000)}, seed=3).frame
        found = cost_curve(Decisions(frame, **ROLES, threshold=0.5), cost_ratio=3).groups[0]
        s, y = frame["score"].to_numpy(), frame["truth"].to_numpy()
        for k in range(0, len(found.thresholds) - 1, 97):
            # One part in 1e12 below: (s − t) + t need not be s to the last bit.
            chosen = s >= found.thresholds[k] - 1e-12
            assert found.false_positives[k] == (chosen & (y == 0)).sum()
            assert found.false_negatives[k] == (~chosen & (y == 1)).sum()
        assert found.present.cost == (s >= 0.5)[y == 0].sum() + 3 * (s < 0.5)[y == 1].sum()

    def test_the_cheapest_threshold_is_where_prevalence_is_one_over_one_plus_c(self):
        frame = simulate_scores({"a": ScoreGroup(n=60000)}, seed=1).frame
        found = cost_curve(Decisions(frame, **ROLES, threshold=0.5), cost_ratio=2).groups[0]
        want = 0.55 + np.log(0.5) / 8  # expit(8 (t − 0.55)) = 1/3
        assert expit(8 * (want - 0.55)) == pytest.approx(float(implied_threshold(2)))
        assert found.threshold_low < want < found.threshold_high
        assert found.threshold_high - found.threshold_low < 0.12
        assert found.present.implied_low < ScoreGroup().cost_ratio < found.present.implied_high

    def test_the_set_holds_the_cheapest_threshold(self):
        frame = simulate_scores({f"s{i}": ScoreGroup(n=1000) for i in range(200)}, seed=4).frame
        groups = cost_curve(Decisions(frame, **ROLES), cost_ratio=ScoreGroup().cost_ratio).groups
        held = [
            g.threshold_low - 0.01 <= 0.5 and (g.threshold_high is None or g.threshold_high >= 0.5)
            for g in groups
        ]
        assert np.mean(held) >= 0.93

    def test_what_equal_rates_imply_is_told_with_its_interval(self):
        made = simulate_scores(
            {"a": ScoreGroup(n=6000), "b": ScoreGroup(n=6000, shift=1.0)}, seed=2
        )
        found = cost_curve(Decisions(made.frame, **ROLES), cost_ratio=2)
        line = str(found).splitlines()[-1]
        number = r"[\d.]+ \[[\d.]+, [\d.]+\]"
        assert re.search(rf"imply cost ratios of {number} for a; {number} for b\.$", line), line

    def test_weights_count(self):
        frame = simulate_scores({"a": ScoreGroup(n=500)}, seed=3).frame
        double = frame.with_columns(weight=pl.lit(2.0))
        once = cost_curve(Decisions(frame, **ROLES), cost_ratio=3).groups[0]
        twice = cost_curve(Decisions(double, **ROLES, weight="weight"), cost_ratio=3).groups[0]
        assert twice.cheapest.cost == 2 * once.cheapest.cost
        assert twice.n == once.n

    def test_thresholds_that_vary_within_a_group_leave_no_present_one(self):
        frame = simulate_scores({"a": ScoreGroup(n=500)}, seed=3).frame.with_columns(
            cut=pl.Series([0.4, 0.6] * 250)
        )
        found = cost_curve(Decisions(frame, **ROLES, threshold="cut"), cost_ratio=3).groups[0]
        assert found.present is None

    def test_equal_on_every_engine(self):
        frame = simulate_scores(seed=2).frame
        want = cost_curve(Decisions(frame, **ROLES, threshold=0.5), cost_ratio=3).plain()
        relation = duckdb.connect()
        relation.register("rows", frame.to_arrow())
        for data in (relation.table("rows"), frame.to_pandas()):
            found = cost_curve(Decisions(data, **ROLES, threshold=0.5), cost_ratio=3).plain()
            assert found == want

    @settings(max_examples=20, deadline=None)
    @given(st.floats(0.05, 20))
    def test_no_threshold_is_cheaper_and_misses_fall_as_they_weigh_more(self, ratio):
        for low, high in zip(
            cost_curve(cancer(), cost_ratio=ratio).groups,
            cost_curve(cancer(), cost_ratio=ratio * 1.5).groups,
        ):
            assert low.cheapest.cost == pytest.approx(min(low.cost))
            assert high.cheapest.false_negatives <= low.cheapest.false_negatives


class TestBadInput:
    @pytest.mark.parametrize("ratio", [0, -1, "3:1", float("inf")])
    def test_a_ratio_must_be_a_number_above_0(self, ratio):
        with pytest.raises(UsageError) as error:
            cost_curve(cancer(), cost_ratio=ratio)
        assert str(error.value) == (
            f"cost_ratio={ratio!r} is not a number above 0. "
            "Give the cost of one false negative in false positives."
        )

    def test_an_unknown_group_is_refused_with_the_nearest(self):
        with pytest.raises(UsageError) as error:
            cost_curve(cancer(), cost_ratio={"femal": 3})
        assert str(error.value) == (
            "cost_ratio names 'femal', which is not a group. Did you mean 'female'?"
        )

    def test_missing_columns_are_named(self):
        decisions = Decisions({"score": [0.1], "group": ["a"]}, score="score", group="group")
        with pytest.raises(UsageError, match="A cost curve needs a truth column"):
            cost_curve(decisions, cost_ratio=2)
