"""The normal distribution without SciPy, held against SciPy's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special as scipys

from evenhand.stats import special


@given(st.lists(st.floats(-37, 37), min_size=1, max_size=20))
def test_shares_are_scipys(points: list[float]) -> None:
    found, expected = special.ndtr(points), scipys.ndtr(points)
    assert found.shape == expected.shape
    # SciPy's own tails are exact to 6e-14; the middle to the last digits.
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=0)
    middle = np.abs(points) < 1
    np.testing.assert_allclose(found[middle], expected[middle], rtol=5e-16, atol=0)


@given(st.floats(1e-300, 1 - 1e-15))
def test_quantiles_are_scipys(share: float) -> None:
    assert special.ndtri(share) == pytest.approx(scipys.ndtri(share), rel=2e-15, abs=2e-16)


def test_ends_and_what_is_missing() -> None:
    assert special.ndtr([-np.inf, np.inf]).tolist() == [0.0, 1.0]
    assert np.isnan(special.ndtr(np.nan))
    assert special.ndtr(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert [special.ndtri(end) for end in (0, 0.0, 1.0)] == [-math.inf, -math.inf, math.inf]
    assert all(math.isnan(special.ndtri(outside)) for outside in (-0.1, 1.1, math.nan))


def test_many_at_once_are_the_same() -> None:
    many = np.linspace(-9, 9, special._MOST_ONE_BY_ONE + 1).reshape(1, -1)
    found = special.ndtr(many)
    np.testing.assert_allclose(found[:, :-1], special.ndtr(many[:, :-1]), rtol=2e-13, atol=0)
    shares = found[0, 5_000:15_000]
    one_by_one = [special.ndtri(share) for share in shares.tolist()]
    np.testing.assert_allclose(special.ndtri(shares), one_by_one, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("betainc", (2.0, 3.0, 0.4)), ("stdtr", (5.0, -1.2)), ("stdtrit", (5.0, 0.975))],
)
def test_the_others_are_scipys(name: str, arguments: tuple[float, ...]) -> None:
    assert getattr(special, name)(*arguments) == getattr(scipys, name)(*arguments)
