"""Paired decisions: γ = 0 gives no counterfactual gap, δ = 0 gives both gaps alike."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import UsageError
from evenhand.simulate.counterfactual import paired_decisions

numbers = st.lists(st.floats(-3, 3), min_size=3, max_size=3)


def gaps(frame, name):
    """Statistical and counterfactual true positive rate gap of one class, and the rows behind."""
    rows = frame.filter(pl.col("truth") == name)
    rate = {
        g: (rows.filter(pl.col("gender") == g)["decision"] == name).mean()
        for g in ("female", "male")
    }
    paired = (rows["decision@female"] == name).mean() - (rows["decision@male"] == name).mean()
    return rate["female"] - rate["male"], paired, len(rows)


@given(numbers, st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_without_gamma_nothing_changes(delta, seed):
    made = paired_decisions(200, delta=delta, gamma=(0, 0, 0), seed=seed)
    assert (made.frame["decision@female"] == made.frame["decision@male"]).all()
    assert all(each["counterfactual_gap"] == 0 for each in made.planted.values())


@given(numbers)
def test_without_delta_both_gaps_are_alike(gamma):
    for each in paired_decisions(1, gamma=gamma).planted.values():
        assert each["statistical_gap"] == pytest.approx(each["counterfactual_gap"], abs=1e-12)


def test_gaps_come_out_as_planted():
    made = paired_decisions(
        120_000, gamma=(1, 0, -1), delta=(-2, 1, 0), female_share=(0.3, 0.5, 0.8), seed=1
    )
    for name, planted in made.planted.items():
        statistical, counterfactual, n = gaps(made.frame, name)
        assert statistical == pytest.approx(planted["statistical_gap"], abs=4.5 / n**0.5)
        assert counterfactual == pytest.approx(planted["counterfactual_gap"], abs=4 / n**0.5)
    # opposite signs in class a: the words favour women, what goes along with them does not
    assert made.planted["a"]["counterfactual_gap"] > 0.1
    assert made.planted["a"]["statistical_gap"] < -0.02


def test_the_own_value_is_the_decision():
    frame = paired_decisions(500, gamma=(2, 0, -2)).frame
    own = pl.when(pl.col("gender") == "female").then("decision@female").otherwise("decision@male")
    assert frame.select((own == pl.col("decision")).all()).item()


def test_bad_arguments():
    with pytest.raises(UsageError, match="3 values of gamma and 2 of delta"):
        paired_decisions(5, gamma=(0, 0, 0), delta=(0, 0))
    with pytest.raises(UsageError, match="correlation=2"):
        paired_decisions(5, correlation=2)
