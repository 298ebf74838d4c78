"""What the page of replications says of public counts, worked out again."""

from math import exp, hypot
from pathlib import Path

import pytest

from evenhand.stats.labelers.signal import signal_detection
from evenhand.stats.rates import gap

PAGE = Path(__file__).parents[2] / "docs" / "papers" / "replication.md"
# ProPublica 2016: reoffended and flagged, not flagged; did not and flagged, not flagged.
BLACK, WHITE = (1369, 532, 805, 990), (505, 461, 349, 1139)


@pytest.fixture(scope="module")
def words():
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def test_error_rates_differ_where_the_standard_does_not(words):
    apart = gap(805, 1795, 349, 1488)
    told = (
        f"{100 * apart.value:.1f} points higher ({100 * apart.low:.1f} to {100 * apart.high:.1f})"
    )
    assert told in words
    black, white = (signal_detection(*counts) for counts in (BLACK, WHITE))
    for found, who in (
        (black, "for Black people ({} to {})"),
        (white, "for White people ({} to {})"),
    ):
        ends = [f"{100 * float(end):.0f}" for end in found.interval("implied_threshold")]
        assert f"{100 * float(found.implied_threshold):.0f} %" in words
        assert who.format(*ends) in words
    log = float(black.log_cost_ratio - white.log_cost_ratio)
    error = hypot(black.log_cost_ratio_error, white.log_cost_ratio_error)
    low, value, high = (exp(log + k * 1.96 * error) for k in (-1, 0, 1))
    assert low < 1 < high  # no difference of standard
    told = f"weighs {value:.2f} times as much ({low:.2f} to {high:.2f})".replace("0.", ".")
    assert told in words
    assert (
        f"({float(black.separation):.2f} and {float(white.separation):.2f})".replace("0.", ".")
        in words
    )
    lower = float(white.criterion - black.criterion)
    assert f"lower by {lower:.2f}".replace("0.", ".") in words
