"""The grid of scores: the same cell on every engine, in order, and a bound that holds."""

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.decisions.tallies.grid import (
    AT,
    BAND,
    CELLS,
    MOST_WHOLE,
    cell_limits,
    cells_of_scores,
    grid_cell,
    on_one_grid,
)
from evenhand.decisions.tallies.placed import placed_below
from evenhand.decisions.tally import Tally

EDGES = [2.0**-28, 2.0**-14, 2.0**-7, 0.5, 1 - 2.0**-7, 1 - 2.0**-14, 1 - 2.0**-28]


def hard_scores() -> np.ndarray:
    """Edges of bands, their neighbours among floating numbers, and scores of all sizes."""
    rng = np.random.default_rng(1)
    near = [np.nextafter(e, side) for e in EDGES for side in (0.0, 1.0)]
    crowded = np.concatenate([10.0 ** -rng.uniform(1, 12, 4_000)])
    inside = [[0.0, 1.0], EDGES, near, crowded, 1 - crowded, rng.random(8_000)]
    far = 10.0 ** rng.uniform(-9, 9, 4_000)
    outside = [-far, 1 + far, -rng.random(500), [np.nextafter(0, -1), np.nextafter(1, 2)]]
    return np.concatenate([*inside, *outside])


def cells(table: object) -> np.ndarray:
    frame = nw.from_native(table)
    found = frame.select(nw.col("i"), grid_cell(nw.col("s").cast(nw.Float64)).alias("cell"))
    if isinstance(found, nw.LazyFrame):
        found = found.collect()
    order = np.argsort(found["i"].to_numpy())
    return found["cell"].to_numpy()[order]


def test_every_engine_finds_the_same_cell() -> None:
    s = hard_scores()
    table = {"i": np.arange(s.size), "s": s}
    wanted = cells(pl.DataFrame(table))
    arrow = pa.table(table)
    for other in (pl.LazyFrame(table), pd.DataFrame(table), arrow, duckdb.table("arrow")):
        assert (cells(other) == wanted).all()
    assert (cells_of_scores(s) == wanted).all()
    inside = (s >= 0) & (s <= 1)
    assert (wanted[inside].min(), wanted[inside].max()) == (0, CELLS - 1)
    assert (wanted[s < 0] < 0).all()
    assert (wanted[s > 1] >= CELLS).all()


def test_scores_known_to_be_probabilities_fall_where_others_do() -> None:
    s = hard_scores()
    s = s[(s >= 0) & (s <= 1)]
    frame = nw.from_native(pl.DataFrame({"s": s}))
    short = frame.select(grid_cell(nw.col("s"), unit=True).alias("cell"))["cell"].to_numpy()
    assert (short == cells_of_scores(s)).all()


def test_cells_are_in_order_and_hold_their_scores() -> None:
    s = np.sort(hard_scores())
    found = cells(pl.DataFrame({"i": np.arange(s.size), "s": s}))
    assert (np.diff(found) >= 0).all()
    low, high = cell_limits(found)
    slack = 1e-9 * np.abs(s) * ((s < 0) | (s > 1)) * np.maximum(1, np.abs(s))
    assert (low <= s + slack).all()
    assert (s <= high + slack).all()
    inside = (s >= 0) & (s <= 1)
    narrow = inside & ((s < 2.0**-14) | (1 - s < 2.0**-14))
    assert ((high - low)[narrow] == 2.0**-28).all()
    assert ((high - low)[inside] <= 2.0**-14).all()


def test_float32_scores_fall_where_their_values_are() -> None:
    s = hard_scores().astype(np.float32)
    wide = cells(pl.DataFrame({"i": np.arange(s.size), "s": s.astype(np.float64)}))
    assert (cells(pl.DataFrame({"i": np.arange(s.size), "s": s})) == wide).all()


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_scores_of_any_size_keep_their_order(scores: list[float]) -> None:
    assert (np.diff(cells_of_scores(np.array(sorted(scores)))) >= 0).all()


def areas(cell: np.ndarray, y: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """The area under the curve, and how far it may be off."""
    d, meets = placed_below(np.zeros_like(y), cell, y, n)
    pairs = float(n[y == 1].sum() * n[y == 0].sum())
    return float((n * d)[y == 1].sum() / pairs), float(meets.sum() / pairs / 2)


@pytest.mark.parametrize(("squeeze", "most"), [(1.0, 1e-4), (1e-3, 4e-4), (1e-6, 3e-3)])
def test_the_area_lies_within_its_bound(squeeze: float, most: float) -> None:
    rng = np.random.default_rng(7)
    y = (rng.random(20_000) < 0.2).astype(np.int64)
    s = np.clip(rng.beta(2, 5, y.size) * squeeze * (1 + 0.5 * y), 0, 1)
    ones = np.ones(y.size)
    found, error = areas(cells_of_scores(s), y, ones)
    exact, none = areas(np.argsort(np.argsort(s)), y, ones)
    assert abs(found - exact) <= error < most
    assert none == 0


def test_lines_do_not_see_each_other() -> None:
    rng = np.random.default_rng(2)
    y, line = rng.integers(0, 2, 900), rng.integers(0, 3, 900)
    cell, n = rng.integers(-50, 50, 900), rng.uniform(0.5, 2, 900)
    d, meets = placed_below(line, cell, y, n)
    for k in range(3):
        own = line == k
        alone, met = placed_below(np.zeros(own.sum(), int), cell[own], y[own], n[own])
        np.testing.assert_allclose(d[own], alone, rtol=1e-12)
        np.testing.assert_allclose(meets[own], met, rtol=1e-12)


def test_whole_numbers_are_their_own_cells_until_they_are_too_many() -> None:
    def whole(first: int, many: int) -> Tally:
        return Tally.of({"value": 4 * np.arange(first, first + many) + AT}, {"n": np.ones(many)})

    one, other = on_one_grid(whole(0, 10), whole(5, 10))
    assert "value" in one.labels
    assert "value" in other.labels
    half = MOST_WHOLE // 2 + 1
    few, many = whole(0, half), whole(half, half)
    both = [Tally.merge(*on_one_grid(*pair)) for pair in ((few, many), (many, few))]
    assert "cell" in both[0].labels
    assert both[0].fingerprint() == both[1].fingerprint()
    assert both[0].total() == 2 * half


def test_bands_do_not_overlap() -> None:
    at = cells(pl.DataFrame({"i": range(len(EDGES)), "s": EDGES}))
    assert (at // BAND).tolist() == [0, 1, 2, 2, 2, 3, 4]
