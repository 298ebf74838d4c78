"""Weighted quantiles by bins, held against sorting everything."""

import numpy as np
import pytest

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.quantiles import weighted_quantiles

TAILS = np.array([0.0, 0.025, 0.5, 0.975, 1.0])


def by_sorting(draws: FloatArray, shares: FloatArray, tail: float) -> FloatArray:
    order = np.argsort(draws, axis=-1)
    reached = np.take_along_axis(np.broadcast_to(shares, draws.shape), order, axis=-1).cumsum(-1)
    place = np.minimum((reached < tail).sum(axis=-1), draws.shape[-1] - 1)
    sorted_ = np.take_along_axis(draws, order, axis=-1)
    return np.take_along_axis(sorted_, place[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize("kind", ["normal", "skewed", "few values", "constant", "infinite"])
def test_quantiles_are_those_of_sorted_draws(kind: str) -> None:
    rng = np.random.default_rng(7)
    draws = rng.standard_normal((6, 5, 700))
    shares = rng.gamma(0.5, size=(6, 1, 700))
    shares /= shares.sum(axis=-1, keepdims=True)
    if kind == "skewed":
        draws = np.exp(6 * draws)
    elif kind == "few values":
        draws = np.rint(draws)
    elif kind == "constant":
        draws[2:] = 0.25
    elif kind == "infinite":
        draws[0, 0, :3] = np.inf, -np.inf, np.inf
    found = weighted_quantiles(draws, shares, TAILS)
    for tail, one in zip(TAILS[:-1], found):
        np.testing.assert_array_equal(one, by_sorting(draws, shares, tail))
    # The last share may end a hair below 1: no draw without any weight is the largest.
    weighed = np.where(shares > 0, draws, -np.inf)
    np.testing.assert_array_equal(found[-1], weighed.max(axis=-1))


def test_equal_shares() -> None:
    draws = np.random.default_rng(8).standard_normal((3, 512))
    shares = np.full(512, 1 / 512)
    for tail, one in zip(TAILS, weighted_quantiles(draws, shares, TAILS)):
        np.testing.assert_array_equal(one, by_sorting(draws, shares, tail))
