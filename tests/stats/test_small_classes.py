"""ρ and mean |r| with small classes: reliability, the corrected values and what they cover."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims.draws import norm_classes
from evenhand.stats.ranks import spearman
from evenhand.stats.trend import (
    class_variances,
    corrected,
    folded_mean,
    latent_mean_size,
    leading_trend,
    mean_size,
    rank_trend,
    reliability,
)

CASE = json.loads((Path(__file__).parents[1] / "oracles" / "corrections.json").read_text())[
    "16.10_rho_and_mean_r"
]
R, N, P = (np.array(CASE["inputs"][name]) for name in ("r", "n", "p"))


def test_oracle_rho() -> None:
    assert reliability(R, N) == pytest.approx(CASE["reliability"], abs=1e-6)
    rho = rank_trend(P, R)
    assert rho.value == pytest.approx(CASE["rho"], abs=1e-6)
    found, leads = leading_trend(rho, reliability=reliability(R, N))
    assert leads
    assert found.value == CASE["rho_corrected"]
    assert (found.low, found.high) == (pytest.approx(CASE["low"], abs=1e-6), CASE["high"])


def test_oracle_mean_size() -> None:
    found = latent_mean_size(P, R, N)
    assert mean_size(R, N).estimate.value == pytest.approx(CASE["mean_r"])
    assert found.value == pytest.approx(CASE["mean_r_corrected"], abs=1e-6)
    assert found.low == pytest.approx(CASE["mean_r_low"], abs=1e-6)
    assert found.high == pytest.approx(CASE["mean_r_high"], abs=1e-6)
    assert found.n == 8


def test_typical_size_by_hand() -> None:
    # μ² = mean(r² − 1/(n − 1)) is the oracle's; s² follows for each class.
    mu2 = CASE["mu2"]
    expected = (1 - mu2) ** 2 * (1 + mu2 / 2) / (N - 1)
    assert class_variances(R, N) == pytest.approx(expected)
    missing = class_variances([np.nan, 0.1], [30, 1])
    assert np.isnan(missing).all()


@given(st.floats(-3, 3), st.floats(0, 4))
def test_folded_mean_lies_between_its_bounds(mean, variance) -> None:
    found = float(folded_mean(mean, variance))
    assert found >= abs(mean) - 1e-12
    assert found <= np.sqrt(mean**2 + variance) + 1e-12
    assert found == pytest.approx(float(folded_mean(-mean, variance)))


def test_which_one_leads() -> None:
    rho = rank_trend(P, R)
    assert leading_trend(rho, reliability=0.95) == (rho, False)
    undefined, leads = leading_trend(rho, reliability=0.05)
    assert leads
    assert undefined.value is None
    assert "hardly more than chance" in (undefined.undefined or "")
    few = rank_trend(P[:3], R[:3])
    assert leading_trend(few, reliability=0.2) == (few, False)


def test_refusals_of_the_mean() -> None:
    assert latent_mean_size(P[:4], R[:4], N[:4]).undefined == (
        "4 classes have a value and 5 are needed"
    )
    assert latent_mean_size(np.full(8, 0.5), R, N).undefined == (
        "the shares are the same in every class"
    )
    nothing = latent_mean_size(P, np.zeros(8), N)
    assert (nothing.value, nothing.low) == (0.0, 0.0)


def test_the_latent_trend_is_covered() -> None:
    """ρ of small classes as it stands covers the latent one less than .90."""
    p, _, r = norm_classes(np.random.default_rng(5), 250, rho=0.85, people=60)
    truth = float(
        spearman(p, norm_classes(np.random.default_rng(6), 400, rho=0.85, people=60)[1]).mean()
    )
    plain, better = [], []
    for row in r:
        rho = rank_trend(p, row, draws=1)
        plain.append(rho.low <= truth <= rho.high)
        found = corrected(rho, reliability=reliability(row, np.full(28, 60)))
        better.append(found.low <= truth <= found.high)
    assert 0.93 <= np.mean(better) <= 1.0
    assert np.mean(plain) < 0.9


def test_the_latent_mean_size_is_covered() -> None:
    """The plain mean |r| of small classes lies above the latent one: it covers .7 or less."""
    p, _, r = norm_classes(np.random.default_rng(8), 300, rho=0.7, people=30)
    # Of classes like these: the mean over many draws of their latent correlations.
    truth = float(np.abs(norm_classes(np.random.default_rng(9), 500, rho=0.7, people=60)[1]).mean())
    n = np.full(28, 30)
    found = [latent_mean_size(p, row, n) for row in r]
    plain = [mean_size(row, n).estimate for row in r]
    assert 0.92 <= np.mean([e.low <= truth <= e.high for e in found]) <= 0.99
    assert np.mean([e.low <= truth <= e.high for e in plain]) < 0.8
    assert np.mean([e.value for e in found]) == pytest.approx(truth, abs=0.01)
