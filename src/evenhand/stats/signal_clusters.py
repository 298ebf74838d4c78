"""Repeated labels: errors of pooled rates when labelers and items both come in clusters."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from evenhand.stats.contrast import Contrast, contrast
from evenhand.stats.estimate import FloatArray
from evenhand.stats.signal import Correction, normal_density
from evenhand.stats.signal_contrasts import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredRates:
    """Pooled rates with cluster-robust covariance, on the scale of rates and of their z.

    `labeler`, `item_extra` and `two_way` are on the z scale; cells are columns.
    """

    rate: FloatArray
    z: FloatArray
    labeler: FloatArray
    item_extra: FloatArray
    two_way: FloatArray
    design_effect: FloatArray
    freedom: float


def one_way_variance(yes: ArrayLike, n: ArrayLike) -> FloatArray:
    """Covariance of pooled rates when the rows of `yes` and `n` are clusters; cells are columns.

    Examples:
        >>> yes, n = [[9], [5], [8], [2], [6]], [[10]] * 5
        >>> round(float(np.sqrt(one_way_variance(yes, n)[0, 0])), 4)
        0.1225
    """
    k, size = np.asarray(yes, dtype=float), np.asarray(n, dtype=float)
    total = size.sum(axis=0)
    rate = k.sum(axis=0) / np.where(total > 0, total, np.nan)
    scaled = (k - rate * size) / np.where(total > 0, total, np.nan)
    clusters = len(k)
    factor = clusters / (clusters - 1) if clusters > 1 else np.nan
    return np.asarray(factor * scaled.T @ scaled)


def clustered_rates(
    labeler_yes: ArrayLike,
    *,
    labeler_n: ArrayLike,
    item_yes: ArrayLike,
    item_n: ArrayLike,
    item_cell: ArrayLike,
    correction: Correction = "auto",
) -> ClusteredRates:
    """Two-way cluster-robust errors, labelers and items: V_labeler + V_item − V_labeler×item.

    `labeler_yes` and `labeler_n` have shape (labelers, cells). An item belongs to one cell (its
    group and truth): yeses, labels and cell number of each item. One label per labeler and item.
    The variance of a cell never falls below the larger of its one-way variances.

    Examples:
        >>> found = clustered_rates([[2, 1], [1, 2]], labeler_n=[[4, 2], [4, 2]],
        ...     item_yes=[1, 2, 0, 0, 2, 1], item_n=[2] * 6, item_cell=[0, 0, 0, 0, 1, 1])
        >>> found.rate.tolist()
        [0.375, 0.75]
    """
    yes, n = np.asarray(labeler_yes, dtype=float), np.asarray(labeler_n, dtype=float)
    k, m = np.asarray(item_yes, dtype=float), np.asarray(item_n, dtype=float)
    cell = np.asarray(item_cell, dtype=np.intp)
    cells = n.shape[1]
    total, hits = n.sum(axis=0), yes.sum(axis=0)
    safe = np.where(total > 0, total, np.nan)
    raw = hits / safe
    edge = bool(np.any((total > 0) & ((hits == 0) | (hits == total))))
    correct = correction == "log-linear" or (correction == "auto" and edge)
    rate = (hits + 0.5) / (safe + 1) if correct else raw
    z = ndtri(rate)
    with np.errstate(divide="ignore"):
        slope = 1.0 / normal_density(z)
    by_labeler = one_way_variance(yes, n)
    items = np.bincount(cell, minlength=cells).astype(float)
    around = np.bincount(cell, (k - raw[cell] * m) ** 2, minlength=cells) / safe**2
    factor = np.where(items > 1, items / np.where(items > 1, items - 1, 1.0), np.nan)
    by_item = factor * around
    plain = raw * (1 - raw) / safe
    own = np.diag(by_labeler)
    diagonal = np.fmax(np.fmax(own + by_item - plain, own), by_item)
    two_way = by_labeler + np.diag(diagonal - own)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = diagonal / plain
    return ClusteredRates(
        rate=rate,
        z=z,
        labeler=by_labeler * np.outer(slope, slope),
        item_extra=(by_item - plain) * slope**2,
        two_way=two_way * np.outer(slope, slope),
        design_effect=effect,
        freedom=float(min(len(yes), items.sum()) - 1),
    )


def clustered_contrast(
    rates: ClusteredRates,
    *,
    quantity: Quantity = "criterion",
    group: int = 0,
    reference: int = 1,
    prevalence_part: ArrayLike = 0.0,
    prevalence_error: float = 0.0,
    level: float = 0.95,
) -> Contrast:
    """Group − reference with two-way errors; cells are false alarms then hits of each group.

    The fallback where the pooled model is not run: t with min(labelers, items) − 1 degrees of
    freedom. For the log cost ratio, `prevalence_part` is Δlogit(1−φ) and `prevalence_error` its
    standard error.

    Examples:
        >>> found = clustered_rates(
        ...     [[2, 3, 3, 3], [1, 3, 2, 2]], labeler_n=[[4, 4, 4, 4]] * 2,
        ...     item_yes=[1, 2, 0, 0, 2, 2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1], item_n=[2] * 16,
        ...     item_cell=[0] * 4 + [1] * 4 + [2] * 4 + [3] * 4)
        >>> round(float(clustered_contrast(found).value), 3)
        0.637
    """
    gradient = np.zeros(rates.z.size)
    for which, sign in ((group, 1.0), (reference, -1.0)):
        alarm, hit = 2 * which, 2 * which + 1
        if quantity == "criterion":
            gradient[alarm] -= sign
        elif quantity == "separation":
            gradient[[alarm, hit]] += [-sign, sign]
        else:
            gradient[[alarm, hit]] += [-sign * rates.z[alarm] / 2, sign * rates.z[hit] / 2]
    value = gradient @ rates.z
    # log c is quadratic in z: its derivative is twice the factor that gives its value.
    slope = 2 * gradient if quantity == "log_cost_ratio" else gradient
    return contrast(
        value + np.asarray(prevalence_part, dtype=float),
        standard_error=np.sqrt(slope @ rates.two_way @ slope + prevalence_error**2),
        freedom=rates.freedom,
        level=level,
    )
