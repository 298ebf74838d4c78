"""Simulated scores: planted values are found again."""

import numpy as np
import polars as pl
import pytest

from evenhand.errors import UsageError
from evenhand.simulate.scores import ScoreGroup, simulate_scores
from evenhand.stats.thresholds.histogram import rule_of_thumb_bandwidth, score_histogram
from evenhand.stats.thresholds.implied import implied_threshold_gap, implied_thresholds
from evenhand.stats.thresholds.local import local_moments


def test_planted_values_by_hand():
    # logistic(8·(0.5−0.55)) = 1/(1+e^0.4) = 0.40131; cost ratio e^0.4.
    found = simulate_scores({"A": ScoreGroup(n=10)}).planted
    assert found["implied_threshold"][0] == pytest.approx(0.4013123399)
    assert found["cost_ratio"][0] == pytest.approx(np.exp(0.4))


def test_same_seed_same_rows():
    one, two, other = simulate_scores(), simulate_scores(), simulate_scores(seed=1)
    assert one.frame.equals(two.frame)
    assert not one.frame.equals(other.frame)
    assert one.frame.height == 8000


def test_decisions_follow_each_groups_threshold():
    found = simulate_scores({"A": ScoreGroup(threshold=0.3), "B": ScoreGroup(threshold=0.6)}).frame
    assert (found["decision"] == (found["score"] >= found["threshold"])).all()
    assert found.group_by("group").agg(pl.col("threshold").unique()).height == 2


def estimate(frame, threshold):
    known = frame.filter(pl.col("truth").is_not_null())
    score, truth = known["score"].to_numpy(), known["truth"].to_numpy()
    h = rule_of_thumb_bandwidth(score_histogram(score, truth=truth, threshold=threshold))
    sums = local_moments(
        score,
        truth=truth,
        threshold=threshold,
        bandwidth=h,
        weights=known["weight"].to_numpy(),
    )
    return implied_thresholds(sums, threshold=threshold, bandwidth=h)


@pytest.mark.parametrize("review", ["all", "accepted", "sampled"])
def test_planted_threshold_is_recovered(review):
    group = ScoreGroup(n=60_000, threshold=0.4, shift=0.5)
    found = simulate_scores({"A": group}, review=review, seed=3)
    result = estimate(found.frame, 0.4)
    assert abs(result.centre[0] - group.implied_threshold) < 3 * result.centre_error[0]
    assert bool(result.warnings[0]) == (review == "accepted")


def test_planted_difference_is_found_and_none_where_none_is():
    groups = {
        "A": ScoreGroup(n=20_000),
        "B": ScoreGroup(n=20_000, shift=0.8),
        "C": ScoreGroup(n=20_000),
    }
    found = simulate_scores(groups, seed=1).frame
    codes = found["group"].replace_strict({"A": 0, "B": 1, "C": 2}).to_numpy()
    cells = score_histogram(
        found["score"].to_numpy(), truth=found["truth"].to_numpy(), threshold=0.5, groups=codes
    )
    h = rule_of_thumb_bandwidth(cells)
    result = implied_thresholds(cells.moments(h), threshold=0.5, bandwidth=h)
    gap = implied_threshold_gap(result, group=[1, 2], reference=[0, 0])
    assert gap.low[0] > 0
    assert gap.low[1] < 0 < gap.high[1]


def test_words():
    with pytest.raises(UsageError, match=r"^groups is empty\. Give at least one group"):
        simulate_scores({})
