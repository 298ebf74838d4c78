"""Moments of ranks in cells: exact for any floats, whatever their ties, signs and nearness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from evenhand.stats import ranks as rank_cells
from evenhand.stats.ranks import (
    CellLayout,
    Ranked,
    cell_moments,
    even_steps,
    layout_moments,
    numpy_sorts_fast,
    order_of,
    sort_nearly_sorted,
)


@pytest.fixture(autouse=True, params=["comparing", "NumPy", "Polars", "steps"])
def way(request, monkeypatch):
    """Every way of sorting, whatever the number of values and the processor."""
    monkeypatch.setattr(rank_cells, "FEW", 2_000 if request.param == "comparing" else 0)
    monkeypatch.setattr(rank_cells, "SHORT", 0)
    monkeypatch.setattr(rank_cells, "numpy_sorts_fast", lambda: request.param == "NumPy")
    monkeypatch.setattr(rank_cells, "MANY", 0 if request.param == "steps" else 20_000)
    return request.param


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
    # Neighbours that differ in the last bits alone, which the sorting key cannot hold.
    st.integers(0, 5).map(lambda k: 1.0 + k * 2.0**-52),
    st.integers(0, 5).map(lambda k: k * 5e-324),
    st.integers(0, 5).map(lambda k: -1e300 * (1 + k * 2.0**-52)),
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


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nan_comes_last_whatever_its_sign(sign):
    values = np.random.default_rng(0).random(9_000)
    values[[3, 700]] = np.copysign(np.nan, sign)
    places, _ = order_of(values)
    assert sorted(places[-2:].tolist()) == [3, 700]
    assert (np.diff(values[places[:-2]]) >= 0).all()


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


@given(st.lists(st.tuples(st.integers(0, 3), NUMBERS, NUMBERS), max_size=60), st.integers(1, 9))
def test_moments_are_those_of_ranks_by_scipy(rows, size):
    codes, score, norm = (np.array([row[i] for row in rows]) for i in range(3))
    found = moments_in_parts(codes.astype(int), [score.astype(float), norm.astype(float)], size)
    for cell in range(4):
        x, y = (rankdata(column[codes == cell]) for column in (score, norm))
        # Ranks are halves of whole numbers: their sums are exact, whatever the order.
        wanted = {"n": x.size, "x": x.sum(), "xx": x @ x, "y:f": x.sum(), "yy:f": y @ y}
        for name, value in (wanted | {"xy:f": x @ y}).items():
            assert found[name][cell] == value


def moments_in_parts(codes, columns, size):
    """Moments of rows that come a few at a time; lines are known once they were met."""
    layout, known = CellLayout(), 0
    for start in range(0, codes.size, size):
        rows = slice(start, start + size)
        known = max(known, int(codes[rows].max()) + 1)
        layout.add(codes[rows], [column[rows] for column in columns], known=known)
    layout.finish(known=known)
    return layout_moments(layout, [[cell] for cell in range(4)], score=0, norms={"f": 1})


@pytest.mark.parametrize("chunk", [1, 500, 2**16])
def test_parts_of_any_size_and_cells_of_several_lines(chunk, monkeypatch):
    monkeypatch.setattr(rank_cells, "CHUNK", chunk)
    monkeypatch.setattr(rank_cells, "CHUNK_BY_CELL", 1)
    rng = np.random.default_rng(2)
    lines, score, norm = rng.integers(0, 6, 3_000), rng.random(3_000), rng.random(3_000)
    # The last lines are met late.
    lines[:2_000] %= 4
    layout = CellLayout()
    for rows in np.split(np.arange(3_000), [700, 701, 2_000, 2_400]):
        known = int(lines[rows].max()) + 1
        layout.add(lines[rows], [score[rows], norm[rows]], known=known)
    layout.finish(known=6)
    assert layout.counts(6).tolist() == np.bincount(lines).tolist()
    cells = [[0, 5], [4], [1, 2], [3]]
    found = layout_moments(layout, cells, score=1, norms={"f": 0})
    for place, cell in enumerate(cells):
        rows = np.isin(lines, cell)
        x, y = rankdata(norm[rows]), rankdata(score[rows])
        assert (found["n"][place], found["xy:f"][place]) == (rows.sum(), x @ y)


def test_blocks_hold_large_parts_and_no_part_twice(monkeypatch):
    monkeypatch.setattr(rank_cells, "CHUNK", 100)
    monkeypatch.setattr(rank_cells, "KEPT", 1_000)
    rng = np.random.default_rng(3)
    lines, score = rng.integers(0, 3, 9_000), rng.random(9_000)
    layout = CellLayout()
    # Few, many and too many for a block.
    for rows in np.split(np.arange(9_000), np.cumsum([50, 400, 400, 400, 1_000, 2_000, 100])):
        layout.add(lines[rows], [score[rows]], known=3)
    layout.finish(known=3)
    for line in range(3):
        assert np.array_equal(layout.of([line], 0), score[lines == line])


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64, 1_000])
@pytest.mark.parametrize("moved", [1, 20, 500])
def test_what_is_nearly_sorted_gets_sorted_however_far_it_is(size, moved):
    rng = np.random.default_rng(size)
    numbers = np.argsort(np.arange(size) + moved * rng.random(size))
    wanted = np.sort(numbers)
    sort_nearly_sorted(numbers)
    assert np.array_equal(numbers, wanted)


def test_the_way_of_sorting_is_found_once():
    assert numpy_sorts_fast() in (True, False)
    assert numpy_sorts_fast.cache_info().currsize == 1


def test_columns_of_other_types_and_of_no_rows():
    codes = np.array([0, 1, 0, 0])
    score, norm = np.array([3, 1, 2, 2]), np.array([1, 2, 3, 4], dtype=np.float32)
    assert cell_moments(codes, score, {"f": norm}, cells=2)["xy:f"].tolist() == [10.5, 1]
    none = cell_moments(codes[:0], score[:0], {"f": norm[:0]}, cells=2)
    assert none["n"].tolist() == none["xy:f"].tolist() == [0, 0]
