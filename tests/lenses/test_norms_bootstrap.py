"""The norms lens without the bootstrap of its trends, as a ledger of many models asks for it."""

import numpy as np
import pytest

from evenhand.decisions.table import Decisions
from evenhand.errors import UsageError
from evenhand.lenses.norms import lens as norms
from evenhand.lenses.rows import Options


@pytest.fixture
def decisions():
    rng = np.random.default_rng(3)
    n, classes = 1200, 6
    truth, group, norm = rng.integers(0, classes, n), rng.integers(0, 2, n), rng.random(n)
    columns = {
        "truth": [f"c{k}" for k in truth],
        "group": np.array(["f", "m"])[group].tolist(),
        "score:truth": (norm * (truth - 2) + rng.normal(size=n)).tolist(),
        "norm@f": norm.tolist(),
    }
    return Decisions(columns, truth="truth", group="group")


def test_rows_are_the_same_and_the_interval_of_the_bootstrap_is_left_out(decisions):
    whole = norms.measure(decisions, Options())
    bare = norms.measure(decisions, Options(settings={"bootstrap": False}))
    for name in ("measure", "group", "class", "value", "low", "high", "p"):
        np.testing.assert_array_equal(whole.rows[name], bare.rows[name])
    own = [
        (a["bootstrap_interval"], b["bootstrap_interval"])
        for a, b in zip(whole.details["trends"], bare.details["trends"], strict=True)
        if "bootstrap_interval" in a
    ]
    assert own
    assert all(None not in a and b == [None, None] for a, b in own)


def test_a_setting_that_is_no_flag_is_refused(decisions):
    with pytest.raises(UsageError, match=r"^bootstrap=0 is neither True nor False\.$"):
        norms.measure(decisions, Options(settings={"bootstrap": 0}))
