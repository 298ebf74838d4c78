"""Rates from weighted or clustered cells, as effective counts for the interval formulas.

An effective count makes the binomial formula give the variance that was measured, so that
Wilson's and Newcombe's intervals serve weighted and clustered data as well.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from evenhand.stats.estimate import FloatArray

_PRIOR_CASES = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedRate:
    """A weighted rate per cell, with the variance of its linearisation.

    `hits` and `n` are effective counts for the interval formulas: hits ÷ n is the rate, and
    rate·(1 − rate) ÷ n its variance, or somewhat more where that rests on few hits or misses.
    `n` is Kish's where the rate is 0 or 1. All are NaN in a cell without weight.
    """

    value: FloatArray
    variance: FloatArray
    hits: FloatArray
    n: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredRate:
    """A rate per cell whose rows come in clusters, with its cluster-robust variance.

    `n` is the number of cases that independent rows of these weights would be worth (Kish),
    `clusters` how many clusters the cell has. The variance is NaN with fewer than two.
    """

    value: FloatArray
    variance: FloatArray
    n: FloatArray
    clusters: FloatArray
    n_clusters: FloatArray

    @property
    def design_effect(self) -> FloatArray:
        """Variance against that of as many independent cases."""
        with np.errstate(all="ignore"):
            return np.asarray(self.variance / (self.value * (1 - self.value) / self.n))

    def effective(self, *, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Effective (hits, n) for an interval with critical value `z`.

        n is scaled by (z ÷ t)² with t on clusters − 1 degrees of freedom, so that coverage
        holds with few clusters, and never exceeds the number of cases (Korn & Graubard 1998).
        At a rate of 0 or 1 nothing is known of the clusters: each then counts as one case.
        """
        z = np.asarray(z, dtype=np.float64)
        with np.errstate(all="ignore"):
            spread = self.value * (1 - self.value)
            plain = np.where(spread > 0, spread / self.variance, self.n_clusters)
            t = -stdtrit(self.clusters - 1, ndtr(-z))
            n = np.minimum(plain, self.n) * (z / t) ** 2
            n = np.where(self.clusters >= 2, n, np.nan)
        return self.value * n, n


def weighted_rate(
    hit_weight: ArrayLike,
    miss_weight: ArrayLike,
    *,
    hit_squares: ArrayLike,
    miss_squares: ArrayLike,
) -> WeightedRate:
    """Weighted share of hits from Σw and Σw² of the hits and of the misses.

    The variance of the logit is Σw² ÷ (Σw)² of the hits plus that of the misses. A few hits do
    not show how uneven their weights are (coverage falls to 71 %), so each part is drawn towards
    what the weights of all cases imply, if that is more, with the weight of ten cases.

    Examples:
        >>> rate = weighted_rate(8.0, 2.0, hit_squares=8.0, miss_squares=2.0)
        >>> print(f"{rate.value:.2f} {rate.hits:.1f} of {rate.n:.1f}")
        0.80 8.0 of 10.0
    """
    hit, miss, hit2, miss2 = (
        np.asarray(part, dtype=np.float64)
        for part in (hit_weight, miss_weight, hit_squares, miss_squares)
    )
    total, squares = hit + miss, hit2 + miss2
    with np.errstate(all="ignore"):
        value = hit / total
        variance = ((1 - value) ** 2 * hit2 + value**2 * miss2) / total**2
        logit_variance = _side(hit, hit2, squares / total) + _side(miss, miss2, squares / total)
        n = 1 / (value * (1 - value) * logit_variance)
        n = np.where((hit > 0) & (miss > 0), n, total**2 / squares)
        return WeightedRate(value=value, variance=variance, hits=value * n, n=n)


def clustered_rate(
    hit_weight: ArrayLike,
    weight: ArrayLike,
    *,
    cell: ArrayLike,
    cluster: ArrayLike,
    cells: int,
    squares: ArrayLike | None = None,
) -> ClusteredRate:
    """Rates of `cells` cells from sums per cell and cluster, with cluster-robust variance.

    One row for each (cell, cluster) that occurs, or several, which are added up: the weight of
    its hits, of all its cases, and Σw² (its weight where every case counts 1).
    V = K/(K − 1) · Σ(a − p·n)² ÷ (Σn)² over the K clusters of a cell.

    Examples:
        >>> hits, n = [9, 5, 8, 2, 6], [10] * 5
        >>> rate = clustered_rate(hits, n, cell=[0] * 5, cluster=range(5), cells=1)
        >>> print(f"{rate.value[0]:.1f} ± {rate.variance[0] ** 0.5:.4f}")
        0.6 ± 0.1225
        >>> float(rate.design_effect[0].round(3))
        3.125
    """
    parts = _sum_pairs(hit_weight, weight, cell=cell, cluster=cluster)
    own_squares = weight if squares is None else squares
    row_squares = _add_up(np.asarray(own_squares, np.float64), np.asarray(cell, np.int64), cells)
    total = _add_up(parts.weight, parts.cell, cells)
    clusters = _add_up((parts.weight > 0).astype(np.float64), parts.cell, cells)
    with np.errstate(all="ignore"):
        value = _add_up(parts.hits, parts.cell, cells) / total
        excess = parts.influence(value, total)
        inner = _add_up(excess**2, parts.cell, cells)
        variance = np.where(clusters >= 2, inner * clusters / (clusters - 1), np.nan)
        size2 = _add_up(parts.weight**2, parts.cell, cells)
        return ClusteredRate(
            value=value,
            variance=variance,
            n=total**2 / row_squares,
            clusters=clusters,
            n_clusters=total**2 / size2,
        )


def clustered_covariance(
    hit_weight: ArrayLike,
    weight: ArrayLike,
    *,
    cell: ArrayLike,
    cluster: ArrayLike,
    reference: ArrayLike,
) -> FloatArray:
    """Covariance of each cell's rate with its reference cell's through the clusters they share.

    `reference` names for each cell the cell it is compared with. 0 where no cluster is shared:
    a gap has variance V + V(reference) − 2·covariance.

    Examples:
        >>> clustered_covariance([3, 1, 3, 1], [4] * 4, cell=[0, 0, 1, 1], cluster=[0, 1, 0, 1],
        ...                      reference=[1, 1]).round(4).tolist()
        [0.0625, 0.0625]
    """
    parts = _sum_pairs(hit_weight, weight, cell=cell, cluster=cluster)
    compared = np.asarray(reference, dtype=np.int64)
    cells = len(compared)
    total = _add_up(parts.weight, parts.cell, cells)
    clusters = _add_up((parts.weight > 0).astype(np.float64), parts.cell, cells)
    with np.errstate(all="ignore"):
        value = _add_up(parts.hits, parts.cell, cells) / total
        excess = parts.influence(value, total)
        factor = np.sqrt(clusters / (clusters - 1))
        wanted = compared[parts.cell] * parts.width + parts.cluster
        at = np.searchsorted(parts.key, wanted)
        at = np.minimum(at, len(parts.key) - 1)
        other = np.where(parts.key[at] == wanted, excess[at], 0.0)
        inner = _add_up(excess * other, parts.cell, cells)
        return np.asarray(inner * factor * factor[compared])


def _side(weight: FloatArray, squares: FloatArray, mean_weight: FloatArray) -> FloatArray:
    """Part of the logit's variance that comes from the hits, or from the misses."""
    own, implied = squares / weight**2, mean_weight / weight
    cases = 1 / own
    more = np.maximum(own, implied)
    return np.asarray((cases * own + _PRIOR_CASES * more) / (cases + _PRIOR_CASES))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """One row for each (cell, cluster), sorted by key = cell · width + cluster."""

    hits: FloatArray
    weight: FloatArray
    cell: NDArray[np.int64]
    cluster: NDArray[np.int64]
    key: NDArray[np.int64]
    width: int

    def influence(self, value: FloatArray, total: FloatArray) -> FloatArray:
        """How far each pair moves its cell's rate."""
        return np.asarray((self.hits - value[self.cell] * self.weight) / total[self.cell])


def _sum_pairs(
    hit_weight: ArrayLike, weight: ArrayLike, *, cell: ArrayLike, cluster: ArrayLike
) -> _Pairs:
    cells, clusters = np.asarray(cell, np.int64), np.asarray(cluster, np.int64)
    hits, weights = np.asarray(hit_weight, np.float64), np.asarray(weight, np.float64)
    width = int(clusters.max(initial=0)) + 1
    key = cells * width + clusters
    if np.any(np.diff(key) <= 0):
        key, inverse = np.unique(key, return_inverse=True)
        hits = _add_up(hits, inverse, len(key))
        weights = _add_up(weights, inverse, len(key))
    return _Pairs(
        hits=hits, weight=weights, cell=key // width, cluster=key % width, key=key, width=width
    )


def _add_up(values: FloatArray, index: NDArray[np.int64], size: int) -> FloatArray:
    return np.asarray(np.bincount(index, values, minlength=size), dtype=np.float64)
