"""Recalibration lines and calibration curves from binned sums."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from evenhand.stats.calibration import bounded_logit, recalibrate
from evenhand.stats.estimate import critical


def binned(x: np.ndarray, y: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, ...]:
    where = np.digitize(x, edges)
    n = np.bincount(where, minlength=len(edges) + 1)
    total = np.bincount(where, x, minlength=len(edges) + 1)
    hits = np.bincount(where, y, minlength=len(edges) + 1)
    return total / np.maximum(n, 1), hits, n


def test_line_equals_statsmodels_on_single_rows() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(-0.5, 1.5, 4000)
    y = (generator.random(4000) < expit(0.3 + 0.7 * x)).astype(float)
    fit = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial()).fit()
    exact = recalibrate(x, hits=y, n=np.ones(4000))
    assert [exact.intercept, exact.slope] == pytest.approx(fit.params, abs=1e-8)
    assert [exact.intercept_error, exact.slope_error] == pytest.approx(fit.bse, rel=1e-5)
    offset = sm.GLM(y, np.ones(4000), family=sm.families.Binomial(), offset=x).fit()
    assert exact.in_the_large == pytest.approx(offset.params[0], abs=1e-8)
    assert exact.in_the_large_error == pytest.approx(offset.bse[0], rel=1e-5)
    mean, hits, n = binned(x, y, np.linspace(-5, 5, 101))
    bins = recalibrate(mean, hits=hits, n=n)
    assert [bins.intercept, bins.slope] == pytest.approx(fit.params, abs=0.003)
    assert [bins.intercept_error, bins.slope_error] == pytest.approx(fit.bse, rel=0.01)
    assert bins.n == 4000


def test_many_lines_at_once_and_undetermined_ones() -> None:
    x = [-2.0, 0.0, 2.0]
    lines = recalibrate(
        x,
        hits=[[12, 50, 88], [0, 0, 10], [0, 0, 0], [0, 0, 0], [3, 0, 0]],
        n=[[100] * 3, [10, 10, 10], [10, 10, 10], [0, 0, 0], [9, 0, 0]],
    )
    assert lines.slope[0] == pytest.approx(recalibrate(x, hits=[12, 50, 88], n=100).slope)
    # Separated, no hits, no cases, one bin: no line.
    assert np.isnan(lines.slope[1:]).all()
    assert np.isnan(lines.slope_error[1:]).all()
    # The intercept at slope 1 exists wherever there are hits and misses.
    assert np.isnan(lines.in_the_large).tolist() == [False, False, True, True, False]
    # 3 of 9 at logit −2: logit(1/3) + 2
    assert lines.in_the_large[4] == pytest.approx(2 - np.log(2))


def test_calibrated_scores_are_covered() -> None:
    generator = np.random.default_rng(1)
    x = np.linspace(-3, 3, 20)
    hits = generator.binomial(100, expit(x), (2000, 20))
    lines = recalibrate(x, hits=hits, n=100)
    z = critical(0.95)
    slope = np.abs(lines.slope - 1) <= z * lines.slope_error
    intercept = np.abs(lines.in_the_large) <= z * lines.in_the_large_error
    assert 0.93 <= slope.mean() <= 0.97
    assert 0.93 <= intercept.mean() <= 0.97


def test_logit_is_finite_at_the_ends() -> None:
    assert np.isfinite(bounded_logit([0.0, 1.0])).all()
    assert bounded_logit(0.25) == pytest.approx(-np.log(3))
