"""Placements on the grid against pairs counted one by one, whichever side has fewer entries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.decisions.tallies import scores
from evenhand.decisions.tallies.placed import placed_below, placed_sides
from evenhand.decisions.tally import Tally

ENTRIES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-4, 6), st.booleans(), st.integers(1, 5)), max_size=40
)


def by_pairs(line: np.ndarray, cell: np.ndarray, y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """What lies below each entry, ties as half, from all pairs of entries."""
    facing = (line[:, None] == line) & (y[:, None] != y)
    below = (cell < cell[:, None]) + 0.5 * (cell == cell[:, None])
    return (facing * below * n).sum(axis=1)


@given(ENTRIES, st.integers(0, 30))
def test_placements_are_those_of_all_pairs(entries: list, positives: int) -> None:
    columns = [np.array([entry[i] for entry in entries], dtype=np.int64) for i in range(4)]
    line, cell, y, n = columns
    # As many positives as there are, or only the first few: the other side has fewer then.
    y = np.where(np.arange(y.size) < positives, y, 0)
    weight = n.astype(float)
    d, meets = placed_below(line, cell, y, weight)
    np.testing.assert_allclose(d, by_pairs(line, cell, y, weight), rtol=1e-12)
    level = (line[:, None] == line) & (cell[:, None] == cell) & (y[:, None] > y)
    np.testing.assert_allclose(meets, weight * (level * weight).sum(axis=1), rtol=1e-12)
    for truth, side in enumerate(placed_sides(line, cell, y, weight)):
        assert sorted(side.rows.tolist()) == np.flatnonzero(y == truth).tolist()
        assert (np.diff(line[side.rows]) >= 0).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("within", [False, True])
def test_sums_by_line_are_those_over_clusters(weighted: bool, within: bool) -> None:
    rng = np.random.default_rng(3)
    keys = {"group": rng.integers(0, 3, 600), "stratum": rng.integers(0, 2, 600)}
    keys |= {"y": rng.integers(0, 2, 600), "cell": 4 * rng.integers(30_000, 30_060, 600) + 3}
    n = rng.integers(1, 4, 600).astype(float)
    sums = {"n": n, "s": n / 2}
    if weighted:
        w = rng.uniform(0.5, 2, 600)
        sums |= {"w": w, "w2": w**2, "w4": w**4, "ws": w / 2}
    tally = Tally.of({k: v.astype(str) for k, v in keys.items()}, sums).compact()
    # With a key more every entry is placed for itself, and added up by that key besides.
    one = Tally(
        labels={**tally.labels, "cluster": ("all",)},
        codes={**tally.codes, "cluster": np.zeros(len(tally), dtype=np.int64)},
        sums=tally.sums,
    )
    found = scores.grid_placements(tally, "1", within=within)
    wanted = scores.grid_placements(one, "1", within=within).without("cluster")
    assert list(found.sums) == list(wanted.sums)
    assert list(found.labels) == list(wanted.labels)
    keys = list(found.labels)
    for name in found.sums:
        one, other = found.dense(keys, name), wanted.dense(keys, name)
        np.testing.assert_allclose(one, other, rtol=1e-12)
