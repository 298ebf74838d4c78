"""Implied thresholds of clustered rows and on steep curves: jackknife, t, and which value shows."""

import json
from pathlib import Path

import numpy as np
import pytest

from claims.draws import clustered_scores
from claims.thresholds import fit_clusters
from evenhand.stats.estimate import critical
from evenhand.stats.thresholds.implied import (
    cost_ratio_gap,
    implied_threshold_gap,
    implied_thresholds,
    threshold_limits,
)
from evenhand.stats.thresholds.local import local_moments

CASE = json.loads((Path(__file__).parents[1] / "oracles" / "corrections.json").read_text())[
    "16.8_cluster_threshold"
]
Z = critical(0.95)


def test_oracle() -> None:
    given = CASE["inputs"]
    score, truth, cluster = (np.array(given[k]) for k in ("scores", "truth", "cluster"))
    found = fit_clusters(
        score, truth, cluster, threshold=given["threshold"], bandwidth=given["bandwidth"]
    )
    assert found.centre[0] == pytest.approx(CASE["implied_threshold"], abs=1e-6)
    assert found.value[0] == pytest.approx(CASE["implied_threshold_linear"], abs=1e-6)
    assert found.quadratic_error[0] == pytest.approx(CASE["se_jackknife"], abs=1e-6)
    assert found.freedom[0] == pytest.approx(CASE["df"], abs=1e-6)
    assert found.low[0] == pytest.approx(CASE["low"], abs=1e-6)
    assert found.high[0] == pytest.approx(CASE["high"], abs=1e-6)
    assert [end[0] for end in threshold_limits(found, z=Z)] == pytest.approx(
        [CASE["low"], CASE["high"]], abs=1e-6
    )


@pytest.mark.parametrize("uneven", [False, True])
def test_clusters_are_covered(uneven) -> None:
    """Rows taken for independent cover .75 and less; half the rows are another group's."""
    generator = np.random.default_rng(2)
    repetitions = 160
    held = {"threshold": 0, "rows": 0, "ratio": 0}
    for _ in range(repetitions):
        parts = [clustered_scores(generator, clusters=25, uneven=uneven) for _ in range(2)]
        score, truth = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
        cluster = np.concatenate([parts[0][2], parts[1][2] + 25])
        group = np.repeat([0, 1], [len(p[0]) for p in parts])
        found = fit_clusters(score, truth, cluster, threshold=0.5, bandwidth=0.25, groups=group)
        held["threshold"] += bool(found.low[0] <= 0.5 <= found.high[0])
        ratio = cost_ratio_gap(found, group=0, reference=1)
        held["ratio"] += bool(ratio.low <= 0 <= ratio.high)
        plain = implied_thresholds(
            local_moments(score, truth=truth, threshold=0.5, bandwidth=0.25, groups=group),
            threshold=0.5,
            bandwidth=0.25,
        )
        held["rows"] += bool(plain.low[0] <= 0.5 <= plain.high[0])
    assert 0.92 <= held["threshold"] / repetitions <= 0.99
    assert 0.92 <= held["ratio"] / repetitions <= 1.0
    assert held["rows"] / repetitions < 0.85


def test_contrasts_have_the_freedom_of_both_and_what_they_share() -> None:
    generator = np.random.default_rng(5)
    score, truth, cluster = clustered_scores(generator, clusters=30, uneven=True)
    group = (generator.random(score.size) < 0.5).astype(int)
    found = fit_clusters(score, truth, cluster, threshold=0.5, bandwidth=0.25, groups=group)
    gap = implied_threshold_gap(found, group=[0], reference=[1])
    assert gap.value[0] == pytest.approx(found.centre[0] - found.centre[1])
    v = np.diag(found.quadratic_covariance)
    want = v.sum() ** 2 / (v**2 / found.freedom).sum()
    assert gap.freedom[0] == pytest.approx(want)
    apart = v.sum() - 2 * found.quadratic_covariance[0, 1]
    assert gap.standard_error[0] == pytest.approx(np.sqrt(apart))
    # Without clusters: normal.
    plain = implied_thresholds(
        local_moments(score, truth=truth, threshold=0.5, bandwidth=0.25, groups=group),
        threshold=0.5,
        bandwidth=0.25,
    )
    assert np.isinf(plain.freedom).all()
    assert np.isinf(cost_ratio_gap(plain, group=0, reference=1).freedom)
    assert threshold_limits(plain, z=Z)[0] == pytest.approx(plain.low)


def test_on_steep_curves_the_centre_is_unbiased_and_the_linear_value_is_not() -> None:
    """Slope 40 and a density that falls: the linear value lies outside its interval in half."""
    generator = np.random.default_rng(6)
    centres, linear, outside = [], [], 0
    for _ in range(200):
        score = generator.beta(2, 5, 4000)
        truth = (generator.random(4000) < 1 / (1 + np.exp(-40 * (score - 0.55)))).astype(float)
        found = implied_thresholds(
            local_moments(score, truth=truth, threshold=0.5, bandwidth=0.12),
            threshold=0.5,
            bandwidth=0.12,
        )
        centres.append(found.centre[0])
        linear.append(found.value[0])
        outside += not found.low[0] <= found.value[0] <= found.high[0]
        assert found.low[0] <= found.centre[0] <= found.high[0]
    truth_at = 1 / (1 + np.exp(40 * 0.05))
    assert abs(np.mean(centres) - truth_at) < 0.02
    assert abs(np.mean(linear) - truth_at) > 2 * abs(np.mean(centres) - truth_at)
    assert outside > 60
