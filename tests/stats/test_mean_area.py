"""One area over many cells: against pairs counted one by one, and its interval against draws."""

import numpy as np
import pytest

from evenhand.stats.auc import Auc, clustered_delong, delong, placed_area
from evenhand.stats.estimate import critical
from evenhand.stats.mean_area import (
    clustered_mean_area,
    clustered_moves,
    mean_area,
    pair_weights,
)
from evenhand.stats.weights import add_up


def placements(scores, truth, cell, cells):
    """Areas of cells, and every row's placement, by comparing all pairs."""
    placed = np.zeros(scores.size)
    for i in range(scores.size):
        others = scores[(cell == cell[i]) & (truth != truth[i])]
        placed[i] = (others < scores[i]).sum() + (others == scores[i]).sum() / 2
    rows = add_up(np.ones(scores.size), 2 * cell + truth, 2 * cells).reshape(cells, 2)
    sums = [
        add_up(each, 2 * cell + truth, 2 * cells).reshape(cells, 2) for each in (placed, placed**2)
    ]
    area = delong(
        rows[:, 1],
        rows[:, 0],
        placement=sums[0][:, 1],
        placement_squares=sums[1][:, 1],
        negative_placement_squares=sums[1][:, 0],
    )
    return area, placed, rows


def drawn(rng, *, cells=5, rows=60, apart=0.5, grid=None):
    cell = rng.integers(0, cells, rows * cells)
    truth = (rng.random(cell.size) < 0.2 + 0.1 * cell).astype(int)
    # Cells differ in how high scores are, which says nothing within any of them.
    scores = rng.standard_normal(cell.size) + apart * truth + 3 * cell
    return (scores if grid is None else np.round(scores, grid)), truth, cell


def clustered(scores, truth, cell, cluster, cells) -> Auc:
    _, placed, rows = placements(scores, truth, cell, cells)
    keys, at = np.unique(np.stack([cell, truth, cluster]), axis=1, return_inverse=True)
    weight = add_up(np.ones(scores.size), at.reshape(-1), keys.shape[1])
    above = add_up(placed, at.reshape(-1), keys.shape[1])
    total = add_up(placed, 2 * cell + truth, 2 * cells).reshape(cells, 2)
    omega = pair_weights(rows, rows)
    shared = {"total": rows, "area": placed_area(rows, total[:, 1]), "omega": omega}
    parts = []
    for half in (0, 1):
        mine = keys[2] % 2 == half
        parts.append(
            clustered_moves(
                weight[mine], placed=above[mine], cell=keys[0][mine], truth=keys[1][mine],
                cluster=keys[2][mine], **shared,
            )
        )  # fmt: skip
    moves = {name: parts[0][name] + parts[1][name] for name in parts[0]}
    return clustered_mean_area(moves, total=rows, placed=total[:, 1], omega=omega)


def test_value_and_variance_by_hand() -> None:
    rng = np.random.default_rng(3)
    scores, truth, cell = drawn(rng, grid=1)
    area, _, rows = placements(scores, truth, cell, 5)
    mean = mean_area(area, pair_weights(rows, rows))
    right = pairs = 0.0
    variance = 0.0
    for c in range(5):
        high, low = scores[(cell == c) & (truth == 1)], scores[(cell == c) & (truth == 0)]
        kernel = (high[:, None] > low) + 0.5 * (high[:, None] == low)
        omega = high.size * low.size / (high.size + low.size)
        right, pairs = right + omega * kernel.mean(), pairs + omega
        of_cell = kernel.mean(axis=1).var(ddof=1) / high.size
        of_cell += kernel.mean(axis=0).var(ddof=1) / low.size
        variance += omega**2 * of_cell
    assert float(mean.value) == pytest.approx(right / pairs, abs=1e-12)
    assert float(mean.variance) == pytest.approx(variance / pairs**2, rel=1e-9)


def test_a_cell_with_one_row_of_a_truth_says_nothing() -> None:
    scores, truth = np.array([1.0, 2, 3, 4, 9, 1, 2]), np.array([0, 1, 0, 1, 0, 1, 0])
    cell = np.array([0, 0, 0, 0, 1, 1, 1])
    area, _, rows = placements(scores, truth, cell, 2)
    mean = mean_area(area, pair_weights(rows, rows))
    assert (float(mean.value), float(mean.positives)) == (0.75, 2)
    none = mean_area(area, np.zeros(2))
    assert np.isnan(none.value)
    assert np.isnan(none.interval(z=1.96)[0])


def test_rows_that_are_clusters_of_their_own_and_rows_that_stand_twice() -> None:
    scores, truth, cell = drawn(np.random.default_rng(5))
    area, _, rows = placements(scores, truth, cell, 5)
    alone = mean_area(area, pair_weights(rows, rows))
    own = clustered(scores, truth, cell, np.arange(scores.size), 5)
    assert float(own.value) == pytest.approx(float(alone.value))
    assert float(own.variance) == pytest.approx(float(alone.variance), rel=0.05)
    again = [np.tile(each, 3) for each in (scores, truth, cell)]
    copied = clustered(*again, np.tile(np.arange(scores.size), 3), 5)
    assert float(copied.value) == pytest.approx(float(alone.value))
    assert float(copied.variance) == pytest.approx(float(own.variance), rel=0.02)
    # Of one cell it is what the area of that cell is.
    one, _ = clustered_delong(
        np.ones(6), placed=np.array([2.0, 3, 2, 0, 0, 1]), truth=np.array([1, 1, 1, 0, 0, 0]),
        cell=np.zeros(6, int), cluster=np.array([0, 1, 2, 0, 1, 2]), reference=np.zeros(1, int),
    )  # fmt: skip
    same = clustered(
        np.array([2.5, 4, 3, 1, 2, 3]), np.array([1, 1, 1, 0, 0, 0]), np.zeros(6, int),
        np.array([0, 1, 2, 0, 1, 2]), 1,
    )  # fmt: skip
    assert float(same.degrees) == float(one.degrees[0])


@pytest.mark.parametrize("shared", [False, True], ids=["rows", "clusters over cells"])
def test_the_interval_covers(shared: bool) -> None:
    from scipy.special import ndtr

    rng = np.random.default_rng(11)
    inside = 0
    for _ in range(400):
        scores, truth, cell = drawn(rng, cells=4, rows=40)
        if shared:
            # Who stands five times stands in all classes, always as typical.
            cluster = rng.integers(0, 32, scores.size)
            truth = cluster % 2
            pull = rng.standard_normal(32)
            scores = pull[cluster] + 0.5 * truth + 0.2 * rng.standard_normal(scores.size) + 3 * cell
            found, spread = clustered(scores, truth, cell, cluster, 4), np.sqrt(1 + 0.04)
        else:
            area, _, rows = placements(scores, truth, cell, 4)
            found, spread = mean_area(area, pair_weights(rows, rows)), 1.0
        low, high = found.interval(z=critical(0.95))
        inside += bool(low <= ndtr(0.5 / spread / np.sqrt(2)) <= high)
    # Four Monte-Carlo errors of 400 draws are .044; clusters few in number cost two points.
    assert inside / 400 >= (0.90 if shared else 0.92)
