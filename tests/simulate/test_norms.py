"""Scores with a planted norm bias: what was planted is in them."""

import pytest
from scipy.stats import spearmanr

from evenhand.errors import UsageError
from evenhand.simulate.norms import planted_correlation, simulate_norms


def test_the_planted_correlation_is_there():
    made = simulate_norms(60_000, shares={"nurse": 0.9, "surgeon": 0.15}, strength=2.5)
    for name, share, kappa, r in made.planted.iter_rows():
        assert kappa == pytest.approx(2.5 * (share - 0.5))
        assert r == pytest.approx(float(planted_correlation(kappa)))
        rows = made.frame.filter(title=name)
        assert (rows["gender"] == "female").mean() == pytest.approx(share, abs=0.006)
        for group, sign in (("female", 1), ("male", -1)):
            part = rows.filter(gender=group)
            found = spearmanr(part["score:truth"], part[f"norm@{group}"])[0]
            # Two standard errors of the smallest cell, of 6,000 rows, are 0.026.
            assert found == pytest.approx(sign * r, abs=0.03)


def test_scatter_is_drawn_anew_for_every_seed_and_only_then():
    one, again, other = (simulate_norms(5, scatter=0.3, seed=s) for s in (0, 0, 1))
    assert one.frame.equals(again.frame)
    assert one.planted["kappa"].to_list() != other.planted["kappa"].to_list()


def test_bad_arguments_are_refused():
    with pytest.raises(UsageError, match="rows=0 in 28 classes: give one or more of each"):
        simulate_norms(0)
    with pytest.raises(UsageError, match=r"'a' has the share 1.5. A share lies between 0 and 1"):
        simulate_norms(5, shares={"a": 1.5})
