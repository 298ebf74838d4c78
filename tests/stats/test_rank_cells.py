"""Moments of ranks in cells: exact for any floats, whatever their ties, signs and nearness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from evenhand.stats import ranks as rank_cells
from evenhand.stats.ranks import Ranked, cell_moments, even_steps, order_of


@pytest.fixture(autouse=True, params=["comparing", "whole numbers", "steps"])
def way(request, monkeypatch):
    """Every way of sorting, whatever the number of values."""
    monkeypatch.setattr(rank_cells, "FEW", 2_000 if request.param == "comparing" else 0)
    monkeypatch.setattr(rank_cells, "MANY", 0 if request.param == "steps" else 20_000)
    return request.param


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
    # Neighbours that differ in the last bits alone, which the sorting key cannot hold.
    st.integers(0, 5).map(lambda k: 1.0 + k * 2.0**-52),
    st.just(-0.0),
)


@given(st.lists(NUMBERS, min_size=1, max_size=80))
def test_order_is_that_of_a_stable_sort(values):
    array = np.array(values)
    places, distinct = order_of(array)
    risen = array[places]
    assert sorted(places.tolist()) == list(range(len(values)))
    assert (risen == np.sort(array)).all()
    assert distinct == (len(set(values)) == len(values))


@given(st.lists(NUMBERS, min_size=1, max_size=80))
def test_ranks_equal_scipy(values):
    array = np.array(values)
    found = Ranked(array)
    assert np.array_equal(found.spread(), rankdata(array))
    counts = {value: values.count(value) for value in values}
    assert found.tied == sum(count for count in counts.values() if count > 1)


@given(st.lists(NUMBERS, min_size=2, max_size=40), st.booleans())
def test_an_order_may_be_used_again_where_it_sorts(values, falling):
    array = np.array(values)
    first = Ranked(array)
    other = np.arctan(array) * (-1 if falling else 1)
    assert first.sorts(other)
    assert np.array_equal(Ranked(other, first.places).spread(), rankdata(other))


@pytest.mark.parametrize("power", [1, 20])
def test_many_values_on_few_steps(power):
    # At the twentieth power nearly all values share the first steps of the grid.
    values = np.random.default_rng(0).random(20_000) ** power
    values[::7] = values[0]
    assert np.array_equal(Ranked(values).spread(), rankdata(values))


def test_even_values_are_dropped_into_steps_and_crowded_ones_are_not(way):
    rng = np.random.default_rng(0)
    even, crowded = rng.random(30_000), rng.random(30_000) ** 20
    assert even_steps(crowded, 2**15) is None
    assert even_steps(np.full(30_000, 0.5), 2**15) is None
    assert even_steps(np.where(even < 0.5, -1.7e308, 1.7e308), 2**15) is None
    steps = even_steps(even, 2**15)
    assert steps is not None
    assert (np.diff(steps[np.argsort(even)]) >= 0).all()
    assert np.array_equal(Ranked(even).spread(), rankdata(even))


@pytest.mark.parametrize("first", [0, 5_000], ids=["early", "late"])
def test_negative_values_wherever_they_stand(first):
    values = np.random.default_rng(0).random(9_000)
    values[first:] -= 0.5
    values[first + 10 : first + 20] = -0.0
    values[first + 20 : first + 25] = 0.0
    found = Ranked(values)
    assert np.array_equal(found.spread(), rankdata(values))
    assert found.tied == 15


def test_an_order_that_does_not_sort_is_not_used():
    rng = np.random.default_rng(0)
    first = Ranked(rng.random(500))
    almost = np.sort(rng.random(500))
    almost[[250, 251]] = almost[[251, 250]]
    by_row = np.empty(500)
    by_row[first.places] = almost
    assert not first.sorts(by_row)
    assert not first.sorts(rng.random(500))


@pytest.mark.parametrize("cells", [3, 400])
def test_moments_of_every_cell(cells):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, cells - 1, 2_000)
    score, norm = rng.integers(0, 9, 2_000) / 8, rng.standard_normal(2_000)
    found = cell_moments(codes, score, {"f": norm, "m": -norm, "x": score[::-1]}, cells=cells)
    assert found["n"][cells - 1] == 0
    for cell in range(cells - 1):
        rows = codes == cell
        x = rankdata(score[rows])
        assert found["n"][cell] == rows.sum()
        assert found["x"][cell] == pytest.approx(x.sum())
        assert found["xx"][cell] == pytest.approx(x @ x)
        for name, column in (("f", norm), ("m", -norm), ("x", score[::-1])):
            y = rankdata(column[rows])
            assert found[f"yy:{name}"][cell] == pytest.approx(y @ y)
            assert found[f"xy:{name}"][cell] == pytest.approx(x @ y)
