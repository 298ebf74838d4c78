"""Rates from weighted or clustered cells, as effective counts for the interval formulas.

An effective count makes the binomial formula give the variance that was measured, so that
Wilson's and Newcombe's intervals serve weighted and clustered data as well.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.special import ndtr, stdtrit

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
    """A rate per cell whose rows come in clusters, with its variance by leaving each one out.

    `n` is the number of cases that independent rows of these weights would be worth (Kish),
    `clusters` how many clusters the cell has and `n_clusters` how many of one size they are
    worth. The variance is NaN with fewer than two.
    """

    value: FloatArray
    variance: FloatArray
    n: FloatArray
    clusters: FloatArray
    n_clusters: FloatArray

    @classmethod
    def of_sums(
        cls,
        hits: FloatArray,
        total: FloatArray,
        squares: FloatArray,
        *,
        clusters: FloatArray,
        size2: FloatArray,
        inner: FloatArray,
    ) -> "ClusteredRate":
        """The rate from sums by cell, and from those over clusters that `left_out_sums` gives."""
        with np.errstate(all="ignore"):
            return cls(
                value=hits / total,
                variance=np.where(clusters >= 2, inner * (clusters - 1) / clusters, np.nan),
                n=total**2 / squares,
                clusters=clusters,
                n_clusters=total**2 / size2,
            )

    @property
    def design_effect(self) -> FloatArray:
        """Variance against that of as many independent cases."""
        with np.errstate(all="ignore"):
            return np.asarray(self.variance / (self.value * (1 - self.value) / self.n))

    def effective(self, *, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Effective (hits, n) for an interval with critical value `z`.

        n is scaled by (z ÷ t)² with t on one less than the clusters of one size that they are
        worth, so that coverage holds with few or uneven clusters, and never exceeds the number
        of cases (Korn & Graubard 1998). At a rate of 0 or 1 nothing is known of the clusters:
        each then counts as one case.
        """
        z = np.asarray(z, dtype=np.float64)
        with np.errstate(all="ignore"):
            spread = self.value * (1 - self.value)
            plain = np.where(spread > 0, spread / self.variance, self.n_clusters)
            t = -stdtrit(np.maximum(self.n_clusters - 1, 1.0), ndtr(-z))
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
    """Rates of `cells` cells from sums per cell and cluster, with a variance by the jackknife.

    One row for each (cell, cluster) that occurs, or several, which are added up: the weight of
    its hits, of all its cases, and Σw² (its weight where every case counts 1).
    V = (K − 1)/K · Σ((a − p·n) ÷ (N − n))² over the K clusters of a cell and its N cases: what
    leaving each cluster out changes. With clusters of one size that is the sandwich's
    K/(K − 1) · Σ(a − p·n)² ÷ N²; with uneven ones that covers .87 to .93 only.

    Examples:
        >>> hits, n = [9, 5, 8, 2, 6], [10] * 5
        >>> rate = clustered_rate(hits, n, cell=[0] * 5, cluster=range(5), cells=1)
        >>> print(f"{rate.value[0]:.1f} ± {rate.variance[0] ** 0.5:.4f}")
        0.6 ± 0.1225
        >>> float(rate.design_effect[0].round(3))
        3.125
    """
    parts = sum_pairs(hit_weight, weight, cell=cell, cluster=cluster)
    own_squares = weight if squares is None else squares
    row_squares = add_up(np.asarray(own_squares, np.float64), np.asarray(cell, np.int64), cells)
    hits, total = (add_up(each, parts.cell, cells) for each in (parts.hits, parts.weight))
    sums = left_out_sums(parts, hits=hits, total=total)
    return ClusteredRate.of_sums(hits, total, row_squares, **sums)


def left_out_sums(
    parts: "ClusterPairs", *, hits: FloatArray, total: FloatArray
) -> dict[str, FloatArray]:
    """By cell: how many clusters, their squared sizes, and what leaving each out changes, squared.

    `parts` may be some of the clusters; `hits` and `total` are those of the cells, over all.
    """
    cells = len(total)
    with np.errstate(all="ignore"):
        change = parts.change(hits / total, total)
    return {
        "clusters": add_up((parts.weight > 0).astype(np.float64), parts.cell, cells),
        "size2": add_up(parts.weight**2, parts.cell, cells),
        "inner": add_up(change**2, parts.cell, cells),
    }


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
    parts = sum_pairs(hit_weight, weight, cell=cell, cluster=cluster)
    compared = np.asarray(reference, dtype=np.int64)
    cells = len(compared)
    total = add_up(parts.weight, parts.cell, cells)
    clusters = add_up((parts.weight > 0).astype(np.float64), parts.cell, cells)
    with np.errstate(all="ignore"):
        value = add_up(parts.hits, parts.cell, cells) / total
        change = parts.change(value, total)
        factor = np.sqrt((clusters - 1) / clusters)
        wanted = compared[parts.cell] * parts.width + parts.cluster
        at = np.searchsorted(parts.key, wanted)
        at = np.minimum(at, len(parts.key) - 1)
        other = np.where(parts.key[at] == wanted, change[at], 0.0)
        inner = add_up(change * other, parts.cell, cells)
        return np.asarray(inner * factor * factor[compared])


def group_covariance(
    hit_weight: ArrayLike,
    weight: ArrayLike,
    *,
    cell: ArrayLike,
    cluster: ArrayLike,
    shape: tuple[int, ...],
    axis: int,
) -> FloatArray:
    """Covariance of every two groups' rates through the clusters they share, (…, G, G).

    Cells are numbered in C order over `shape`, in which `axis` runs over the groups; the result
    has that axis moved to the end, twice. Rows as for `clustered_rate`. A cell with fewer than
    two clusters has NaN throughout.

    Examples:
        >>> group_covariance([3, 1, 3, 1], [4] * 4, cell=[0, 0, 1, 1], cluster=[0, 1, 0, 1],
        ...                  shape=(2,), axis=0).round(4).tolist()
        [[0.0625, 0.0625], [0.0625, 0.0625]]
    """
    parts = sum_pairs(hit_weight, weight, cell=cell, cluster=cluster)
    cells = int(np.prod(shape))
    total = add_up(parts.weight, parts.cell, cells)
    clusters = add_up((parts.weight > 0).astype(np.float64), parts.cell, cells)
    with np.errstate(all="ignore"):
        value = add_up(parts.hits, parts.cell, cells) / total
        factor = np.where(clusters >= 2, np.sqrt((clusters - 1) / clusters), np.nan)
        change = parts.change(value, total)
    inner, place = shared_products(parts, change, shape=shape, axis=axis)
    groups = shape[axis]
    scale = factor[place]
    outer = tuple(size for i, size in enumerate(shape) if i != axis % len(shape))
    covariance = inner * scale[:, :, None] * scale[:, None, :]
    return np.asarray(covariance.reshape(*outer, groups, groups))


def shared_products(
    parts: "ClusterPairs", change: FloatArray, *, shape: tuple[int, ...], axis: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Σ over clusters of what each changes in one group's rate times in another's, (…, G, G).

    Also the cells of every block of groups, (…, G): a block is all that is not the groups' axis.
    """
    from scipy import sparse

    cells, groups = int(np.prod(shape)), shape[axis]
    # Each block of groups (a stratum's class, say) gets columns of its own: no other is reached.
    place = np.moveaxis(np.arange(cells).reshape(shape), axis, -1).reshape(-1, groups)
    block, member = np.empty(cells, dtype=np.int64), np.empty(cells, dtype=np.int64)
    block[place] = np.arange(len(place))[:, None]
    member[place] = np.arange(groups)
    column = block[parts.cell] * parts.width + parts.cluster
    inner = np.zeros((len(place), groups, groups))
    if np.bincount(column, minlength=1).max() <= 1:
        # Every cluster is of one group, as schools are of one town: no two groups share any.
        inner[block, member, member] = add_up(change**2, parts.cell, cells)
    else:
        moved = sparse.csr_array(
            (change, (parts.cell, column)), shape=(cells, len(place) * parts.width)
        )
        product = (moved @ moved.T).tocoo()
        inner[block[product.row], member[product.row], member[product.col]] = product.data
    return inner, place


def class_gap_covariance(
    hit_weight: ArrayLike,
    weight: ArrayLike,
    *,
    cell: ArrayLike,
    cluster: ArrayLike,
    shape: tuple[int, int, int],
    reference: int | None,
) -> tuple[FloatArray, FloatArray]:
    """Covariance over classes of gaps to a reference group, (strata, groups, classes, classes).

    Cells are numbered in C order over `shape`, (strata, groups, classes); rows as for
    `clustered_rate`. By what leaving each cluster out does to both rates of every class; without
    a reference group gaps are to all other groups together. Also the clusters behind each
    group's gaps.

    Examples:
        >>> covariance, clusters = class_gap_covariance(
        ...     [3, 1, 3, 1], [4] * 4, cell=[0, 0, 1, 1], cluster=[0, 1, 2, 3], shape=(1, 2, 1),
        ...     reference=1)
        >>> covariance[0, 0].round(4).tolist(), clusters.tolist()
        ([[0.125]], [[4.0, 2.0]])
    """
    from scipy import sparse

    parts = sum_pairs(hit_weight, weight, cell=cell, cluster=cluster)
    strata, groups, classes = shape
    size = (strata * groups * classes, parts.width)
    hits, mass = (
        sparse.csr_array((amount, (parts.cell, parts.cluster)), shape=size)
        for amount in (parts.hits, parts.weight)
    )
    covariance = np.full((strata, groups, classes, classes), np.nan)
    clusters = np.zeros((strata, groups))

    def rows(stratum: int, group: int) -> slice:
        start = (stratum * groups + group) * classes
        return slice(start, start + classes)

    for s in range(strata):
        every: list[Any] = [
            reduce(add, (table[rows(s, g)] for g in range(groups))) for table in (hits, mass)
        ]
        for g in range(groups):
            own = [table[rows(s, g)] for table in (hits, mass)]
            if reference is None:
                other = [total - part for total, part in zip(every, own)]
            else:
                other = [table[rows(s, reference)] for table in (hits, mass)]
            count = len(np.unique(np.concatenate([own[1].indices, other[1].indices])))
            clusters[s, g] = count
            if count > 1:
                moved = _moved_rates(*own) - _moved_rates(*other)
                covariance[s, g] = (moved @ moved.T).toarray()
    return covariance, clusters


def _moved_rates(hits: Any, mass: Any) -> Any:
    """How much higher each class's rate (row) is than without each cluster (column).

    Times √((K − 1)/K), K the clusters of the row, so that squares add up to the jackknife's
    variance. Sparse, as both sums are.
    """
    from scipy import sparse

    total = mass.sum(axis=1)
    rate = hits.sum(axis=1) / np.where(total > 0, total, 1.0)
    left = mass.tocoo()
    others = total[left.row] - left.data
    without = np.divide(1.0, others, out=np.zeros_like(others), where=others > 0)
    clusters = np.bincount(left.row, left.data > 0, minlength=mass.shape[0])
    without *= np.sqrt(1 - 1 / np.maximum(clusters, 1.0))[left.row]
    scale = sparse.csr_array((without, (left.row, left.col)), shape=mass.shape)
    return (hits - sparse.diags_array(rate) @ mass).multiply(scale)


def pair_certainty(variance: ArrayLike, covariance: ArrayLike) -> FloatArray:
    """How much surer the gap of every two groups is than their rates alone say, (…, G, G).

    (V + V′) ÷ (V + V′ − 2·covariance): clusters that both groups share move both rates alike.
    Effective counts of both are multiplied by it. 1 on the diagonal and where it is undefined.

    Examples:
        >>> pair_certainty([0.04, 0.04], [[0.04, 0.02], [0.02, 0.04]]).tolist()
        [[1.0, 2.0], [2.0, 1.0]]
    """
    v, shared = np.asarray(variance, np.float64), np.asarray(covariance, np.float64)
    apart = v[..., :, None] + v[..., None, :]
    with np.errstate(all="ignore"):
        factor = apart / (apart - 2 * shared)
    usable = np.isfinite(factor) & (factor > 0) & ~np.eye(v.shape[-1], dtype=bool)
    return np.where(usable, factor, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedPairs:
    """A weighted paired gap with effective counts for Agresti and Min's interval.

    `gained` and `lost` of `n` effective pairs; `variance` is the sandwich's, × n ÷ (n − 1).
    """

    value: FloatArray
    gained: FloatArray
    lost: FloatArray
    n: FloatArray
    variance: FloatArray


def weighted_pairs(
    gained: ArrayLike,
    lost: ArrayLike,
    total: ArrayLike,
    *,
    gained_squares: ArrayLike,
    lost_squares: ArrayLike,
    total_squares: ArrayLike,
    pairs: ArrayLike,
) -> WeightedPairs:
    """Paired gap of weighted pairs from Σw and Σw² of the gained, the lost and all pairs.

    The effective number is the smaller of Kish's and of the one whose gap would vary as much:
    weights that go with being changed make the gap vary more than Kish's number says.
    `pairs` counts the pairs themselves.

    Examples:
        >>> found = weighted_pairs(14, 5, 200, gained_squares=14, lost_squares=5,
        ...                        total_squares=200, pairs=200)
        >>> print(f"{found.value:.3f} n={found.n:.0f}")
        0.045 n=199
    """
    up, down, all_, up2, down2, all2, count = (
        np.asarray(part, np.float64)
        for part in (gained, lost, total, gained_squares, lost_squares, total_squares, pairs)
    )
    with np.errstate(all="ignore"):
        gap, moved = (up - down) / all_, (up + down) / all_
        still = np.maximum(all2 - up2 - down2, 0.0)
        spread = up2 * (1 - gap) ** 2 + down2 * (1 + gap) ** 2 + still * gap**2
        variance = np.where(count > 1, spread / all_**2 * count / (count - 1), np.nan)
        kish = all_**2 / all2
        n = np.where(variance > 0, np.minimum(kish, (moved - gap**2) / variance), kish)
        return WeightedPairs(
            value=gap,
            gained=n * (moved + gap) / 2,
            lost=n * (moved - gap) / 2,
            n=n,
            variance=variance,
        )


def _side(weight: FloatArray, squares: FloatArray, mean_weight: FloatArray) -> FloatArray:
    """Part of the logit's variance that comes from the hits, or from the misses."""
    own, implied = squares / weight**2, mean_weight / weight
    cases = 1 / own
    more = np.maximum(own, implied)
    return np.asarray((cases * own + _PRIOR_CASES * more) / (cases + _PRIOR_CASES))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPairs:
    """One row for each (cell, cluster), sorted by key = cell · width + cluster."""

    hits: FloatArray
    weight: FloatArray
    cell: NDArray[np.int64]
    cluster: NDArray[np.int64]
    key: NDArray[np.int64]
    width: int

    def change(self, value: FloatArray, total: FloatArray) -> FloatArray:
        """How much higher each cell's rate is than it would be without the cluster."""
        left = total[self.cell] - self.weight
        return np.asarray((self.hits - value[self.cell] * self.weight) / left)


def sum_pairs(
    hit_weight: ArrayLike, weight: ArrayLike, *, cell: ArrayLike, cluster: ArrayLike
) -> ClusterPairs:
    """Rows added up to one for each (cell, cluster), in order."""
    cells, clusters = np.asarray(cell, np.int64), np.asarray(cluster, np.int64)
    hits, weights = np.asarray(hit_weight, np.float64), np.asarray(weight, np.float64)
    width = int(clusters.max(initial=0)) + 1
    key = cells * width + clusters
    if np.any(key[1:] <= key[:-1]):
        key, inverse = distinct(key)
        hits = add_up(hits, inverse, len(key))
        weights = add_up(weights, inverse, len(key))
        cells, clusters = np.divmod(key, width)
    return ClusterPairs(
        hits=hits, weight=weights, cell=cells, cluster=clusters, key=key, width=width
    )


def add_up(values: FloatArray, index: NDArray[np.int64], size: int) -> FloatArray:
    """Sums of values by whole numbers under `size`."""
    return np.asarray(np.bincount(index, values, minlength=size), dtype=np.float64)


def distinct(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct values of whole numbers in order, and each one's place among them.

    Examples:
        >>> [found.tolist() for found in distinct(np.array([7, -2, 7]))]
        [[-2, 7], [1, 0, 1]]
    """
    if not numbers.size:
        return numbers, numbers
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < 4 * max(numbers.size, 2**14):
        # Close together they are counted, which no sorting can beat.
        moved = numbers - low
        there = np.flatnonzero(np.bincount(moved, minlength=high - low + 1))
        place = np.zeros(high - low + 1, dtype=np.int64)
        place[there] = np.arange(there.size)
        return there + low, place[moved]
    # Runs that are in order already, as tallies have them, are merged and not sorted anew.
    order = np.argsort(numbers, kind="stable")
    held = numbers[order]
    first = np.append(True, held[1:] != held[:-1])
    place = np.empty(numbers.size, dtype=np.int64)
    place[order] = np.cumsum(first) - 1
    return held[first], place
