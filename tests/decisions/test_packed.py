"""Rows packed into numbers and sorted: what adding them up one by one gives."""

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.tallies.grid import BAND, CELLS, cell_limits, cells_of_scores
from evenhand.decisions.tallies.packed import BLOCK, PackedRows

LOW, HIGH = cell_limits(np.arange(CELLS))


def outside_the_middle(cell: np.ndarray) -> np.ndarray:
    return np.flatnonzero((cell < 2 * BAND + 128) | (cell >= 3 * BAND - 128))


def scores(rows: int, seed: int) -> np.ndarray:
    """Scores of all sizes in [0, 1], many of them the same."""
    rng = np.random.default_rng(seed)
    small = 10.0 ** -rng.uniform(0, 12, rows)
    kind = rng.integers(0, 5, rows)
    inside = rng.random(rows)
    return np.choose(kind, [inside, np.round(inside, 3), small, 1 - small, np.round(inside)])


def added_up(line: np.ndarray, s: np.ndarray, order: np.ndarray, *, rows: int, batch: int) -> tuple:
    held = PackedRows(rows=rows, low=LOW, width=HIGH - LOW)
    cell = cells_of_scores(s).astype(np.int32)
    for start in range(0, s.size, batch):
        some = slice(start, start + batch)
        held.add(line[some], cell[some], s[some], outer=outside_the_middle(cell[some]))
    found = held.added_up(order)
    rank = np.repeat(np.arange(order.size), found.sizes)
    return rank * CELLS + found.place, found.n, found.s


@pytest.mark.parametrize("batch", [1, 77, 10_000])
@pytest.mark.parametrize("room", [0, 2_000, 9_000])
def test_packed_rows_are_those_added_up_one_by_one(batch: int, room: int) -> None:
    rng = np.random.default_rng(4)
    s, line = scores(2_000, 5), rng.integers(0, 7, 2_000, dtype=np.int32)
    order = rng.permutation(7)
    key, n, total = added_up(line, s, order, rows=room, batch=batch)
    flat = np.argsort(order)[line] * CELLS + cells_of_scores(s)
    wanted, where = np.unique(flat, return_inverse=True)
    assert (key == wanted).all()
    assert (n == np.bincount(where)).all()
    np.testing.assert_allclose(total, np.bincount(where, s), rtol=1e-12, atol=1e-14)


def test_entries_are_not_cut_where_blocks_of_rows_end() -> None:
    # A cell with more rows than a block, between cells with few.
    s = np.repeat([0.25, 0.5, 0.75, 1.0], [10, 3 * BLOCK, BLOCK - 5, 7])
    line = np.zeros(s.size, dtype=np.int32)
    key, n, total = added_up(line, s, np.arange(1), rows=s.size, batch=50_000)
    assert (key == cells_of_scores(np.array([0.25, 0.5, 0.75, 1.0]))).all()
    assert n.tolist() == [10, 3 * BLOCK, BLOCK - 5, 7]
    assert (total == n * [0.25, 0.5, 0.75, 1.0]).all()


def test_lines_without_rows_have_no_entries() -> None:
    held = PackedRows(rows=2, low=LOW, width=HIGH - LOW)
    line, cell = np.array([2, 2], dtype=np.int32), np.array([40_960, 40_961], dtype=np.int32)
    held.add(line, cell, np.array([0.5, 0.50007]), outer=np.arange(0))
    assert held.added_up(np.array([3, 2, 0, 1])).sizes.tolist() == [0, 2, 0, 0]


def test_the_order_of_rows_does_not_change_a_sum() -> None:
    s, line = scores(3_000, 8), np.arange(3_000, dtype=np.int32) % 3
    mixed = np.random.default_rng(1).permutation(3_000)
    one = added_up(line, s, np.arange(3), rows=3_000, batch=500)
    other = added_up(line[mixed], s[mixed], np.arange(3), rows=10, batch=811)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("cut", [0.3, 0.1, 0.7])
def test_scores_just_above_a_threshold_stay_above_it(cut: float) -> None:
    near = [np.nextafter(cut, 0), cut, np.nextafter(cut, 1)]
    rows = pl.DataFrame({"s": near * 20, "y": [0, 1, 1] * 20, "g": ["a", "a", "b", "b"] * 15})
    found = eh.tally(rows, truth="y", score="s", group="g", threshold=cut).table("scores/g/s")
    side = np.array(found.labels["cell"], dtype=int)[found.codes["cell"]] % 4
    mean = found.sums["s"] / found.sums["n"]
    assert sorted(set(side.tolist())) == [0, 1, 2]
    assert (mean[side == 0] < cut).all()
    assert (mean[side == 2] > cut).all()
