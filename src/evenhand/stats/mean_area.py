"""One area under the ROC curve over many cells: pairs are compared within a cell alone.

A cell weighs ω = n₁n₀ ÷ (n₁ + n₀), as in a stratified test, for n₁ positives and n₀ negatives; one
with a single row of either truth says nothing of its own error and is left out.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.auc import Auc, placed_area
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import add_up, distinct


def pair_weights(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """How much each cell counts, from its rows and their weight by truth: (cell, 2) each.

    Examples:
        >>> rows = np.array([[3.0, 6], [1, 50]])
        >>> pair_weights(rows, rows).tolist()
        [2.0, 0.0]
    """
    with np.errstate(all="ignore"):
        omega = weight.prod(axis=-1) / weight.sum(axis=-1)
    return np.where((rows > 1).all(axis=-1) & (omega > 0), omega, 0.0)


def mean_area(area: Auc, omega: FloatArray) -> Auc:
    """The mean of cells' areas, whose rows are independent: variance Σω²V ÷ (Σω)².

    NaN where no cell counts.

    Examples:
        >>> from evenhand.stats.auc import delong
        >>> sums = {"placement": [5, 1], "placement_squares": [13, 1]}
        >>> two = delong([2, 2], [3, 3], **sums, negative_placement_squares=[1, 1])
        >>> mean = mean_area(two, np.array([1.2, 1.2]))
        >>> print(f"{mean.value:.2f}, {mean.positives:.0f} and {mean.negatives:.0f} rows")
        0.50, 4 and 6 rows
    """
    counts = omega > 0
    share = omega[counts] / omega[counts].sum()
    parts = share**2 * area.variance[counts]
    with np.errstate(all="ignore"):
        degrees = parts.sum() ** 2 / (parts**2 / area.degrees[counts]).sum()
    return _of_cells(
        float(share @ area.value[counts]) if counts.any() else np.nan,
        float(parts.sum()),
        area.positives[counts],
        area.negatives[counts],
        float(degrees),
    )


def clustered_moves(
    weight: FloatArray,
    *,
    placed: FloatArray,
    truth: NDArray[np.int64],
    cell: NDArray[np.int64],
    cluster: NDArray[np.int64],
    total: FloatArray,
    area: FloatArray,
    omega: FloatArray,
) -> dict[str, FloatArray]:
    """Sums over some clusters of how far each moves the mean area; those of all can be added.

    One row for each (cell, truth, cluster) of these clusters, each whole; `total`, `area` and
    `omega` are those of all clusters: weight by (cell, truth), areas, and what cells count.
    """
    with np.errstate(all="ignore"):
        mean = np.where(truth == 1, area[cell], 1 - area[cell])
        move = (placed / total[cell, 1 - truth] - mean * weight) / total[cell, truth]
    signed = np.where(omega[cell] > 0, np.where(truth == 1, move, -move) * omega[cell], 0.0)
    names, own = distinct(cluster)
    moved = add_up(signed, own, names.size)
    counted = np.where(omega[cell] > 0, weight, 0.0)
    mass = add_up(counted, 2 * own + truth, 2 * names.size).reshape(-1, 2)
    return {
        "moved": np.array([np.square(moved).sum()]),
        "clusters": np.array([float(names.size)]),
        "weight_squares": np.square(mass).sum(axis=0),
    }


def clustered_mean_area(
    moves: Mapping[str, FloatArray], *, total: FloatArray, placed: FloatArray, omega: FloatArray
) -> Auc:
    """The mean of cells' areas where rows come in clusters, from `clustered_moves` of all of them.

    `total` and `placed` are Σω and Σωd, by (cell, truth) and of each cell's positives.
    """
    counts = omega > 0
    share = omega[counts] / omega[counts].sum()
    clusters = float(moves["clusters"][0])
    with np.errstate(all="ignore"):
        # A cluster counts once, in however many cells it stands.
        n = total[counts].sum(axis=0) ** 2 / moves["weight_squares"]
    spread = float(moves["moved"][0]) / float(omega.sum()) ** 2 if counts.any() else np.nan
    return _of_cells(
        float(share @ placed_area(total, placed)[counts]) if counts.any() else np.nan,
        spread * clusters / (clusters - 1) if clusters > 1 else np.nan,
        n[1],
        n[0],
        clusters - 1,
    )


def _of_cells(
    value: float, variance: float, positives: FloatArray, negatives: FloatArray, degrees: float
) -> Auc:
    return Auc(
        value=np.asarray(value),
        variance=np.asarray(variance),
        positives=np.asarray(positives.sum()),
        negatives=np.asarray(negatives.sum()),
        degrees=np.asarray(degrees),
    )
