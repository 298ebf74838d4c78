"""Simulated annotators: shares of at most one, and more agreement where texts are clear."""

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.simulate.biographies import annotate_gender


def test_most_annotators_see_the_gender():
    gender = ["female", "male"] * 2000
    found = annotate_gender(gender, seed=1)
    female, male = (found[name].to_numpy() for name in ("female", "male"))
    assert ((female + male) <= 1 + 1e-12).all()
    own = np.where(np.array(gender) == "female", female, male)
    other = np.where(np.array(gender) == "female", male, female)
    # A Beta(6, 1) has mean 6/7; of the rest half sees the other gender.
    assert own.mean() == pytest.approx(6 / 7, abs=0.01)
    assert other.mean() == pytest.approx(1 / 14, abs=0.01)


def test_clearer_texts_are_agreed_on_more():
    apart = [
        (found["female"] - found["male"]).mean()
        for found in (annotate_gender(["female"] * 500, clarity=c) for c in (2.0, 20.0))
    ]
    assert apart[0] < apart[1]
    assert annotate_gender(["male"], seed=2).equals(annotate_gender(["male"], seed=2))


def test_settings_that_are_none():
    with pytest.raises(UsageError, match=r"annotators=0 and clarity=6\.0: give 1 or more, above 0"):
        annotate_gender(["male"], annotators=0)
