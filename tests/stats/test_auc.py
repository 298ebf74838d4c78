"""Areas under the curve from sums of placements."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from evenhand.stats.auc import (
    Auc,
    auc_gap,
    auc_gap_p,
    delong,
    mean_auc,
    sorted_placements,
    undefined_reason,
)
from evenhand.stats.estimate import critical

Z = critical(0.95)


def from_scores(scores: np.ndarray, truth: np.ndarray) -> Auc:
    """The tally an engine makes: ranks among all minus ranks within the class."""
    ranks = rankdata(scores)
    d = ranks[truth] - rankdata(scores[truth])
    e = ranks[~truth] - rankdata(scores[~truth])
    return delong(
        truth.sum(),
        (~truth).sum(),
        placement=d.sum(),
        placement_squares=(d**2).sum(),
        negative_placement_squares=(e**2).sum(),
    )


def plain_delong(scores: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Area and variance from all pairs."""
    x, y = scores[truth][:, None], scores[~truth][None, :]
    above = (x > y) + 0.5 * (x == y)
    variance = above.mean(1).var(ddof=1) / len(x) + above.mean(0).var(ddof=1) / y.size
    return above.mean(), variance


rows = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=4, max_size=60)


@given(rows)
def test_area_and_variance_equal_all_pairs(rows) -> None:
    scores, truth = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    if min(truth.sum(), (~truth).sum()) < 2:
        return
    area, variance = plain_delong(scores, truth)
    found = from_scores(scores, truth)
    assert found.value == pytest.approx(area)
    assert found.variance == pytest.approx(variance, abs=1e-12)
    low, high = found.interval(z=Z)
    assert 0 <= low <= area <= high <= 1
    assert high > low


def test_area_equals_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    truth = generator.random(500) < 0.3
    scores = np.round(generator.normal(truth, 1), 1)
    assert from_scores(scores, truth).value == pytest.approx(metrics.roc_auc_score(truth, scores))


@given(rows)
def test_turning_the_scores_round_mirrors(rows) -> None:
    scores, truth = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    if min(truth.sum(), (~truth).sum()) < 2:
        return
    up, down = from_scores(scores, truth), from_scores(-scores, truth)
    assert up.value == pytest.approx(1 - down.value)
    assert up.variance == pytest.approx(down.variance, abs=1e-12)


@pytest.mark.parametrize("area", [0.0, 1.0])
@pytest.mark.parametrize("rounding", [0.0, 1e-18])
def test_what_rounding_leaves_of_a_variance_is_none(area: float, rounding: float) -> None:
    one, many = np.array([area]), np.array([30.0])
    exact = Auc(value=one, variance=np.zeros(1), positives=many, negatives=many, degrees=many)
    found = replace(exact, variance=np.array([rounding]))
    low, high = found.interval(z=Z)
    assert (low, high) == exact.interval(z=Z)
    assert 0 <= low[0] < high[0] <= 1


def test_perfect_separation_still_has_an_interval() -> None:
    area = from_scores(np.arange(20.0), np.arange(20) >= 10)
    low, high = area.interval(z=Z)
    assert (area.value, area.variance) == (1, 0)
    assert high == 1
    # With the least information that 10 positives can hold, Wilson gives 0.72.
    assert 0.72 <= low < 0.9


def test_single_positive_and_no_positives() -> None:
    one = from_scores(np.array([1.0, 2.0, 3.0, 2.5]), np.array([False, False, True, False]))
    assert np.isnan(one.variance)
    low, high = one.interval(z=Z)
    assert low < 0.4
    assert high == 1
    empty = delong(0, 5, placement=0, placement_squares=0, negative_placement_squares=0)
    assert np.isnan([empty.value, *empty.interval(z=Z)]).all()
    assert undefined_reason(0, 5) == "no positives in the group"
    assert undefined_reason(5, 0) == "no negatives in the group"
    assert undefined_reason(5, 5) is None


def test_gap_mirrors_and_agrees_with_its_p() -> None:
    generator = np.random.default_rng(4)
    truth = generator.random(600) < 0.5
    strong, weak = generator.normal(1.5 * truth, 1), generator.normal(0.5 * truth, 1)
    first, second = from_scores(strong, truth), from_scores(weak, truth)
    low, high = auc_gap(first, second, z=Z)
    low_swapped, high_swapped = auc_gap(second, first, z=Z)
    assert (low, high) == pytest.approx((-high_swapped, -low_swapped))
    assert low > 0
    assert auc_gap_p(first, second) < 0.001
    # Two areas of large samples: the plain normal test of DeLong.
    z = (first.value - second.value) / np.sqrt(first.variance + second.variance)
    assert np.log(auc_gap_p(first, second)) == pytest.approx(np.log(2 * norm.sf(z)), rel=0.05)


def test_many_cells_at_once() -> None:
    area = delong(
        [2, 0],
        [3, 4],
        placement=[5, 0],
        placement_squares=[13, 0],
        negative_placement_squares=[1, 0],
    )
    assert area.value[0] == pytest.approx(5 / 6)
    assert np.isnan(area.interval(z=Z)[0][1])


def test_mean_over_two_classes_is_delongs() -> None:
    """Two classes whose scores add up to 1 have one area, and its variance is DeLong's."""
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1], [30, 50])
    score = rng.normal(truth, 1.2).round(1)
    area = from_scores(score, truth == 1)
    value, low, high = mean_auc(np.column_stack([-score, score]), truth, z=1.96)
    spread = area.value * (1 - area.value)
    assert value == pytest.approx(float(area.value), abs=1e-12)
    half = (np.log(high / (1 - high)) - np.log(low / (1 - low))) / 2
    assert half == pytest.approx(float(1.96 * np.sqrt(area.variance) / spread), rel=1e-9)


def test_mean_over_many_classes_is_covered() -> None:
    """28 classes of 30 rows, each row in all the 28 areas: 95 % hold the true mean."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        truth = np.repeat(np.arange(28), n)
        scores = rng.normal(size=(truth.size, 28))
        scores[np.arange(truth.size), truth] += 2
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), truth

    true = np.mean([mean_auc(*draw(np.random.default_rng([9, k]), 300), z=1)[0] for k in range(5)])
    limits = [mean_auc(*draw(np.random.default_rng([1, k]), 30), z=1.96)[1:] for k in range(150)]
    held = np.mean([low <= true <= high for low, high in limits])
    assert 0.90 <= held <= 0.99


def test_mean_without_a_spread_has_no_limits() -> None:
    scores = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]])
    value, low, high = mean_auc(scores, np.array([0, 0, 1, 1]), z=1.96)
    assert value == 1
    assert np.isnan([low, high]).all()
    assert np.isnan(mean_auc(scores, np.zeros(4, dtype=np.int64), z=1.96)[0])


@pytest.mark.parametrize("few", [1, 40, 9_000])
@pytest.mark.parametrize("digits", [1, 3, 16])
def test_looking_up_the_larger_side_counts_every_tie(few: int, digits: int) -> None:
    rng = np.random.default_rng(few)
    low, high = (rng.normal(m, 1, n).round(digits) for m, n in ((0, 9_500), (0.5, few)))
    scores = np.concatenate([high, low])
    truth = np.repeat([1, 0], [high.size, low.size])
    # A positive lies above the negatives below it and half above its equals, and the reverse.
    left, right = (np.searchsorted(np.sort(low), high, side) for side in ("left", "right"))
    d = (left + right) / 2
    left, right = (np.searchsorted(np.sort(high), low, side) for side in ("left", "right"))
    e = (left + right) / 2
    sums, squares = sorted_placements(scores, truth, lines=1)
    assert sums.tolist() == [e.sum(), d.sum()]
    assert squares.tolist() == [np.square(e).sum(), np.square(d).sum()]
