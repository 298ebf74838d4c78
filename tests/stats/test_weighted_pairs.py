"""Weighted pairs: effective pairs for Agresti and Min's interval."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.estimate import critical
from evenhand.stats.rates import agresti_min
from evenhand.stats.weights import WeightedPairs, weighted_pairs

CASE = json.loads((Path(__file__).parents[1] / "oracles" / "corrections.json").read_text())[
    "16.6_weighted_pairs"
]
Z = critical(0.95)


def of_rows(weights: np.ndarray, difference: np.ndarray) -> WeightedPairs:
    """The sums over the last axis that an engine would give."""
    up, down = difference > 0, difference < 0

    def sums(w: np.ndarray) -> list[np.ndarray]:
        return [(w * up).sum(-1), (w * down).sum(-1), w.sum(-1)]

    squares = dict(zip(("gained_squares", "lost_squares", "total_squares"), sums(weights**2)))
    return weighted_pairs(*sums(weights), **squares, pairs=np.shape(difference)[-1])


def test_oracle() -> None:
    weights, difference = (np.array(CASE["inputs"][name]) for name in ("weights", "difference"))
    found = of_rows(weights, difference)
    assert found.value == pytest.approx(CASE["value"], abs=1e-6)
    assert found.n == pytest.approx(CASE["n_used"], abs=1e-6)
    low, high = agresti_min(found.gained, found.lost, found.n, z=CASE["inputs"]["q"])
    assert (low, high) == (
        pytest.approx(CASE["low"], abs=1e-6),
        pytest.approx(CASE["high"], abs=1e-6),
    )


def test_nothing_moved_and_nothing_there() -> None:
    still = of_rows(np.array([1.0, 2.0, 1.0]), np.zeros(3))
    assert (still.value, still.gained, still.lost) == (0, 0, 0)
    assert still.n == pytest.approx(16 / 6)
    one = of_rows(np.array([2.0]), np.array([1.0]))
    assert np.isnan(one.variance)
    assert one.n == 1
    none = of_rows(np.zeros((2, 0)), np.zeros((2, 0)))
    assert np.isnan(none.value).all()


pairs = st.lists(
    st.tuples(st.floats(0.1, 20), st.sampled_from([-1.0, 0.0, 1.0])), min_size=2, max_size=30
)


@given(pairs, st.floats(0.01, 100))
def test_scale_of_weights_and_direction_do_not_matter(rows, factor) -> None:
    w, d = (np.array(column) for column in zip(*rows))
    found, scaled, turned = of_rows(w, d), of_rows(factor * w, d), of_rows(w, -d)
    assert scaled.n == pytest.approx(float(found.n))
    assert turned.gained == pytest.approx(float(found.lost), abs=1e-9)
    assert found.n <= len(rows) * (1 + 1e-9)
    assert (found.gained - found.lost) / found.n == pytest.approx(float(found.value), abs=1e-9)


@pytest.mark.parametrize("heavier", [1.0, 3.0])
def test_intervals_cover(heavier) -> None:
    """Kish's number of pairs covers .80 where changed pairs weigh three times as much."""
    generator = np.random.default_rng(3)
    n, up, down = 300, 0.12, 0.05
    u = generator.random((3000, n))
    d = np.where(u < up, 1.0, np.where(u < up + down, -1.0, 0.0))
    w = generator.gamma(2.0, 1.0, (3000, n)) * np.where(d != 0, heavier, 1.0)
    mass = heavier * (up + down) + 1 - up - down
    truth = heavier * (up - down) / mass
    found = of_rows(w, d)

    def coverage(m: np.ndarray) -> float:
        scale = m / found.n
        low, high = agresti_min(found.gained * scale, found.lost * scale, m, z=Z)
        return float(((low <= truth) & (truth <= high)).mean())

    assert 0.93 <= coverage(found.n) <= 0.975
    kish = w.sum(-1) ** 2 / (w**2).sum(-1)
    if heavier > 1:
        assert coverage(kish) < 0.9
