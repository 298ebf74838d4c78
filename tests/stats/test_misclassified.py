"""Noisy truth and inferred groups: oracles, round trips, bounds, coverage."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import DataError, UsageError
from evenhand.stats.noisy_truth import (
    corrected_counts,
    corrected_prevalence,
    group_rate_bounds,
    true_given_assigned,
)

ORACLES = json.loads((Path(__file__).parent.parent / "oracles" / "oracles.json").read_text())
GROUPS = ORACLES["3.9_inferred_group_error"]

chance = st.floats(0.02, 0.98)
quality = st.floats(0.6, 1.0)


class TestPrevalence:
    def test_oracle(self):
        want = ORACLES["3.10_label_noise_rogan_gladen"]
        found = corrected_prevalence(
            want["observed_prevalence"],
            sensitivity=want["expert_sensitivity"],
            specificity=want["expert_specificity"],
        )
        # (0.12 + 0.98 − 1)/(0.95 + 0.98 − 1) = 0.10/0.93
        assert found.value == pytest.approx(want["corrected"], abs=1e-9)
        assert found.raw == want["observed_prevalence"]
        assert not found.clipped

    @given(chance, quality, quality)
    def test_round_trip(self, p, se, sp):
        seen = p * se + (1 - p) * (1 - sp)
        found = corrected_prevalence(seen, sensitivity=se, specificity=sp)
        assert float(found.unclipped) == pytest.approx(p, abs=1e-9)

    def test_perfect_expert_changes_nothing(self):
        found = corrected_prevalence(0.3, sensitivity=1, specificity=1, standard_error=0.02)
        assert found.value == pytest.approx(0.3)
        assert found.standard_error == pytest.approx(0.02)

    def test_below_zero_is_clipped_and_said(self):
        found = corrected_prevalence(0.01, sensitivity=0.9, specificity=0.95)
        assert found.value == 0
        assert found.unclipped < 0
        assert found.clipped

    def test_coverage(self):
        rng = np.random.default_rng(0)
        se, sp, p, n = 0.9, 0.95, 0.2, 1000
        seen = rng.binomial(n, p * se + (1 - p) * (1 - sp), 4000) / n
        known_se = rng.binomial(400, se, 4000) / 400
        known_sp = rng.binomial(400, sp, 4000) / 400
        found = corrected_prevalence(
            seen,
            sensitivity=known_se,
            specificity=known_sp,
            standard_error=np.sqrt(seen * (1 - seen) / n),
            sensitivity_error=np.sqrt(known_se * (1 - known_se) / 400),
            specificity_error=np.sqrt(known_sp * (1 - known_sp) / 400),
        )
        assert 0.935 <= np.mean((found.low <= p) & (p <= found.high)) <= 0.965

    def test_words(self):
        with pytest.raises(UsageError) as caught:
            corrected_prevalence(0.1, sensitivity=0.4, specificity=0.5)
        assert str(caught.value) == (
            "sensitivity + specificity = 0.9 is not above 1: such an expert does no better than "
            "chance, and no truth can be recovered."
        )
        with pytest.raises(UsageError, match=r"^sensitivity=95 is not between 0 and 1\."):
            corrected_prevalence(0.1, sensitivity=95, specificity=0.5)


class TestCounts:
    @given(chance, chance, chance, quality, quality)
    def test_round_trip(self, phi, hit, alarm, se, sp):
        if se + sp <= 1.05:
            return
        n = 1e6
        found = corrected_counts(
            n * (se * phi * hit + (1 - sp) * (1 - phi) * alarm),
            n * (se * phi * (1 - hit) + (1 - sp) * (1 - phi) * (1 - alarm)),
            n * ((1 - se) * phi * hit + sp * (1 - phi) * alarm),
            n * ((1 - se) * phi * (1 - hit) + sp * (1 - phi) * (1 - alarm)),
            sensitivity=se,
            specificity=sp,
        )
        assert found.undefined[()] is None
        assert float(found.hit_rate) == pytest.approx(hit, abs=1e-6)
        assert float(found.false_alarm_rate) == pytest.approx(alarm, abs=1e-6)
        assert float(found.prevalence) == pytest.approx(phi, abs=1e-6)
        total = found.hits + found.misses + found.false_alarms + found.correct_rejections
        assert float(total) == pytest.approx(n)

    def test_perfect_expert_changes_nothing(self):
        found = corrected_counts(80, 20, 90, 810, sensitivity=1, specificity=1)
        assert [found.hits, found.misses] == [pytest.approx(80), pytest.approx(20)]
        assert found.hit_rate_error == pytest.approx(np.sqrt(0.8 * 0.2 / 100))
        assert found.false_alarm_rate_error == pytest.approx(np.sqrt(0.1 * 0.9 / 900))

    def test_by_hand(self):
        # yes_1 = (0.98·80 − 0.02·90)/930 = 76.6/930; no_1 = (0.98·20 − 0.02·810)/930 = 3.4/930.
        found = corrected_counts(80, 20, 90, 810, sensitivity=0.95, specificity=0.98)
        assert found.hit_rate == pytest.approx(76.6 / 80)
        assert found.prevalence == pytest.approx(80 / 930)
        # yes_0 = (0.95·90 − 0.05·80)/930 = 81.5/930 of the 850/930 negatives.
        assert found.false_alarm_rate == pytest.approx(81.5 / 850)

    def test_refused_outside_zero_and_one(self):
        found = corrected_counts([80, 80, 0], [2, 20, 0], [90, 90, 0], [810, 810, 0],
                                 sensitivity=0.95, specificity=0.98)  # fmt: skip
        assert found.undefined[0] == (
            "the correction leaves [0, 1]: the labels contradict the expert's stated quality"
        )
        assert np.isnan(found.hit_rate[0])
        assert np.isnan(found.hits[0])
        assert found.undefined[1] is None
        assert found.undefined[2] == "no items judged"

    def test_errors_match_simulation(self):
        rng = np.random.default_rng(1)
        phi, hit, alarm, se, sp, n = 0.3, 0.8, 0.15, 0.9, 0.95, 3000
        shares = [
            se * phi * hit + (1 - sp) * (1 - phi) * alarm,
            se * phi * (1 - hit) + (1 - sp) * (1 - phi) * (1 - alarm),
            (1 - se) * phi * hit + sp * (1 - phi) * alarm,
            (1 - se) * phi * (1 - hit) + sp * (1 - phi) * (1 - alarm),
        ]
        found = corrected_counts(
            *rng.multinomial(n, shares, 4000).T, sensitivity=se, specificity=sp
        )
        assert np.std(found.hit_rate) == pytest.approx(np.mean(found.hit_rate_error), rel=0.05)
        assert np.std(found.false_alarm_rate) == pytest.approx(
            np.mean(found.false_alarm_rate_error), rel=0.05
        )


class TestGroups:
    MEMBERS = true_given_assigned(
        GROUPS["confusion_P_assigned_given_true"], shares=GROUPS["shares"]
    )

    def test_oracle(self):
        assert pytest.approx(np.array(GROUPS["P_true_given_assigned"]), abs=1e-9) == self.MEMBERS
        seen = np.array(GROUPS["observed_rates"])
        assert self.MEMBERS @ GROUPS["true_rates"] == pytest.approx(seen, abs=1e-9)

    @given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.floats(0.05, 0.95),
           st.floats(0.05, 0.95), st.floats(0.1, 0.9))  # fmt: skip
    def test_bounds_hold_whatever_the_error_depends_on(self, rates, first, second, share):
        # rates[a][g]: decisions may differ by assigned and by true group alike.
        members = np.array([[first, 1 - first], [second, 1 - second]])
        cell = np.array(rates).reshape(2, 2)
        assigned = np.array([share, 1 - share])
        joint = members * assigned[:, None]
        truth = (cell * joint).sum(axis=0) / joint.sum(axis=0)
        seen = (cell * members).sum(axis=1)
        found = group_rate_bounds(
            seen * 1000, [1000, 1000], membership=members, assigned_shares=assigned
        )
        assert np.all(found.low <= truth + 1e-9)
        assert np.all(truth <= found.high + 1e-9)
        assert np.all(found.outer_low <= found.low + 1e-9)
        assert np.all(found.high <= found.outer_high + 1e-9)

    def test_bounds_close_when_groups_are_known(self):
        found = group_rate_bounds([30, 10], [100, 100], membership=np.eye(2))
        assert found.low.tolist() == pytest.approx([0.3, 0.1])
        assert found.high.tolist() == pytest.approx([0.3, 0.1])

    def test_bounds_contain_the_oracle(self):
        seen = np.array(GROUPS["observed_rates"])
        shares = np.array(GROUPS["shares"]) @ np.array(GROUPS["confusion_P_assigned_given_true"])
        found = group_rate_bounds(seen * shares * 1e6, shares * 1e6, membership=self.MEMBERS)
        assert np.all(found.low < GROUPS["true_rates"])
        assert np.all(found.high > GROUPS["true_rates"])

    def test_words(self):
        with pytest.raises(UsageError, match=r"^P\(true \| assigned\) is not a matrix of"):
            group_rate_bounds([1, 2], [9, 9], membership=[[0.5, 0.6], [0.5, 0.5]])
        with pytest.raises(UsageError, match=r"^shares=\[0.7, 0.2\] do not fit"):
            true_given_assigned([[0.9, 0.1], [0.1, 0.9]], shares=[0.7, 0.2])
        with pytest.raises(DataError, match="never assigned"):
            true_given_assigned([[1, 0], [1, 0]], shares=[0.5, 0.5])
