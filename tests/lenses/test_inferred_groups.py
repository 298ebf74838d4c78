"""Inferred groups: the oracle, bounds, coverage and bad input."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.lenses.statistical.inferred import inferred_groups

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
WANT = ORACLES["3.9_inferred_group_error"]
P = WANT["confusion_P_assigned_given_true"]
KNOWN = {"a": {"a": P[0][0], "b": P[0][1]}, "b": {"a": P[1][0], "b": P[1][1]}}


def tally(size: float = 1e6) -> Tally:
    """Expected counts by assigned group and decision: shares .7/.3, rates .3/.1."""
    joint = np.array(WANT["shares"])[:, None] * np.array(P)
    hits = (joint * np.array(WANT["true_rates"])[:, None]).sum(axis=0)
    cells = np.column_stack([joint.sum(axis=0) - hits, hits]).ravel() * size
    return Tally.of(
        {"group": ["a", "a", "b", "b"], "decision": [0, 1, 0, 1]}, {"n": cells.tolist()}
    )


class TestOracle:
    def test_the_true_gap_is_recovered(self):
        found = inferred_groups(tally(), confusion=KNOWN)
        gap = found.gaps[0]
        assert gap.observed == pytest.approx(-WANT["observed_gap"], abs=1e-9)
        assert gap.value == pytest.approx(-WANT["true_gap"], abs=1e-9)
        for row, rate, seen, share in zip(
            found.rates, WANT["recovered"], WANT["observed_rates"], WANT["shares"]
        ):
            assert row.value == pytest.approx(rate, abs=1e-9)
            assert row.observed == pytest.approx(seen, abs=1e-9)
            assert row.share == pytest.approx(share, abs=1e-9)

    def test_bounds_hold_the_truth_by_the_formula_of_the_methods(self):
        found = inferred_groups(tally(), confusion=KNOWN).rates[0]
        # Group a within assigned a (P = .91724, r = .28345) and b (P = .12727, r = .12545),
        # averaged by P(assigned | a) = .95 and .05.
        members, rates = WANT["P_true_given_assigned"], WANT["observed_rates"]
        low = [max(0, (r - 1 + p[0]) / p[0]) for r, p in zip(rates, members)]
        high = [min(1, r / p[0]) for r, p in zip(rates, members)]
        assert found.bound_low == pytest.approx(0.95 * low[0] + 0.05 * low[1], abs=1e-9)
        assert found.bound_high == pytest.approx(0.95 * high[0] + 0.05 * high[1], abs=1e-9)
        assert found.outer_low < found.bound_low < 0.3 < found.bound_high < found.outer_high

    def test_groups_known_without_error_are_left_as_they_are(self):
        same = {"a": {"a": 1.0}, "b": {"b": 1.0}}
        for row in inferred_groups(tally(), confusion=same).rates:
            assert row.value == pytest.approx(row.observed)
            assert row.bound_low == pytest.approx(row.value)


def simulated(seed: int, n: int = 6000) -> tuple[Decisions, dict]:
    rng = np.random.default_rng(seed)
    true = (rng.random(n) < 0.35).astype(int)
    truth = (rng.random(n) < np.where(true, 0.4, 0.5)).astype(int)
    chance = np.where(truth, np.where(true, 0.6, 0.8), np.where(true, 0.25, 0.15))
    decision = (rng.random(n) < chance).astype(int)
    wrong = rng.random(n) < np.where(true, 0.2, 0.1)
    assigned = np.where(wrong, 1 - true, true)
    data = {"y": truth, "d": decision, "g": np.where(assigned, "b", "a")}
    return Decisions(data, truth="y", decision="d", group="g"), {
        ("true_positive_rate", "a"): 0.8,
        ("true_positive_rate", "b"): 0.6,
        ("false_positive_rate", "a"): 0.15,
        ("false_positive_rate", "b"): 0.25,
        ("selection_rate", "a"): 0.475,
        ("selection_rate", "b"): 0.39,
        ("true_positive_rate_gap", "b"): -0.2,
        ("selection_rate_gap", "b"): -0.085,
    }


def test_intervals_cover_the_true_rates_within_each_truth_value():
    known = {"a": {"a": 0.9, "b": 0.1}, "b": {"a": 0.2, "b": 0.8}}
    held: dict[tuple[str, str], list[bool]] = {}
    for seed in range(150):
        decisions, want = simulated(seed)
        found = inferred_groups(decisions, confusion=known, reference="a")
        for row in (*found.rates, *found.gaps):
            key = row.measure, row.group
            if key in want:
                held.setdefault(key, []).append(row.low <= want[key] <= row.high)
                assert row.outer_low <= want[key] <= row.outer_high
    assert len(held) == 8
    # 1,200 intervals in all, 150 of each kind.
    assert 0.93 <= np.mean(list(held.values())) <= 0.975
    assert min(np.mean(v) for v in held.values()) > 0.89


def test_text_and_frame():
    found = inferred_groups(tally(), confusion=KNOWN)
    assert str(found).splitlines()[0].startswith("Selection rate of a: 0.300 [0.299, 0.301] where")
    assert found.to_frame().height == 3
    assert json.loads(found.to_json())["condition"] > 1


class TestBadInput:
    def test_numbers_that_cannot_come_from_the_confusion(self):
        # 99 % assigned to a, although even a's own are assigned to a in 95 % only.
        odd = Tally.of(
            {"group": ["a", "a", "b", "b"], "decision": [0, 1, 0, 1]}, {"n": [500, 490, 5, 5]}
        )
        row = inferred_groups(odd, confusion=KNOWN).rates[0]
        assert row.value is None
        assert row.undefined == (
            "the numbers assigned to each group cannot come from this confusion of groups"
        )

    def test_a_rate_outside_the_unit_interval_speaks_against_the_assumption(self):
        odd = Tally.of(
            {"group": ["a", "a", "b", "b"], "decision": [0, 1, 0, 1]}, {"n": [100, 900, 1000, 0]}
        )
        found = inferred_groups(
            odd, confusion={"a": {"a": 0.7, "b": 0.3}, "b": {"a": 0.3, "b": 0.7}}
        )
        assert "is no probability" in found.rates[0].undefined

    @pytest.mark.parametrize(
        ("confusion", "words"),
        [
            ({"a": {"a": 0.9, "b": 0.2}, "b": {"b": 1}}, "confusion of group 'a' adds up to 1.1"),
            ({"a": {"a": 1}}, "confusion says nothing of group 'b'"),
            ({"a": {"a": 1}, "c": {"a": 1}}, "confusion names 'c', which is not a group"),
        ],
    )
    def test_a_confusion_that_does_not_fit(self, confusion, words):
        with pytest.raises(UsageError, match=words):
            inferred_groups(tally(), confusion=confusion)

    def test_a_confusion_that_cannot_be_undone(self):
        with pytest.raises(DataError, match="two true groups are assigned alike"):
            inferred_groups(tally(), confusion={g: {"a": 0.5, "b": 0.5} for g in "ab"})

    def test_an_unknown_reference(self):
        with pytest.raises(UsageError, match="reference='q' is not a group"):
            inferred_groups(tally(), confusion=KNOWN, reference="q")
