"""What clusters do to rates, by cluster or as products that are added up where clusters lie.

Everything a jackknife over clusters needs is a sum over clusters of products of what leaving each
out changes, once the rates of the whole are known. Sums of parts of the clusters, each cluster
whole in one of them, can be added: `products_of_part` gives those of a part, `ClusterProducts`
reads those of all, and `ClusterSums` gives the same from the clusters themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rest import Everybody, rest_of_groups
from evenhand.stats.strata import left_out_summaries, mantel_haenszel_jackknife
from evenhand.stats.weights import (
    ClusteredRate,
    ClusterPairs,
    add_up,
    class_gap_covariance,
    clustered_covariance,
    clustered_rate,
    group_covariance,
    shared_products,
    sum_pairs,
)

Shape = tuple[int, int, int]
Summaries = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """Hits and cases of one rate for every (cell, cluster), in order.

    Cells are numbered in C order over `shape`, (strata, groups, classes); the first stratum is
    the whole table. `sums` are `hit_weight`, `weight`, `cell` and `cluster`; `squares` Σw².
    """

    sums: Mapping[str, NDArray[Any]]
    squares: FloatArray
    shape: Shape

    def rate(self) -> ClusteredRate:
        """The rate of every cell, with its variance."""
        cells = int(np.prod(self.shape))
        return clustered_rate(**self.sums, squares=self.squares, cells=cells)

    def with_reference(self, reference: int) -> FloatArray:
        """Covariance of every group's rate with that of the reference, shaped as the cells."""
        places = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        compared = np.broadcast_to(places[:, [reference]], self.shape).reshape(-1)
        return clustered_covariance(**self.sums, reference=compared).reshape(self.shape)

    def between_groups(self) -> FloatArray:
        """Covariance of every two groups, (stratum, class, group, group)."""
        return group_covariance(**self.sums, shape=self.shape, axis=1)

    def class_gaps(self, reference: int | None) -> tuple[FloatArray, FloatArray]:
        """Covariance of gaps over classes, and how many clusters are behind each group's."""
        return class_gap_covariance(**self.sums, shape=self.shape, reference=reference)

    def rest(self) -> tuple[ClusteredRate, FloatArray]:
        """The rate of all other groups together, and its covariance with the group's own."""
        return rest_of_groups(**self.sums, squares=self.squares, shape=self.shape)

    def over_strata(self, groups: Sequence[int], reference: int, z: float) -> Summaries:
        """Gaps over strata, their errors and t's freedom, by (group, class)."""
        shape = (len(groups), self.shape[2])
        value, error, freedom = (np.full(shape, np.nan) for _ in range(3))
        for g, c in np.ndindex(*shape):
            table, stratum, cluster = _two_sides(self.sums, self.shape, groups[g], reference, c)
            found = mantel_haenszel_jackknife(*table, stratum=stratum, cluster=cluster, z=z)
            value[g, c], error[g, c] = found.value, found.standard_error
            freedom[g, c] = found.freedom
        return value, error, freedom


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProducts:
    """The same of one rate from sums of products over clusters.

    `hits`, `total` and `squares` (Σw²) are those of the cells, flat in C order over `shape`;
    `products` what `products_of_part` gives, added up. The reference is the one they were made
    for.
    """

    hits: FloatArray
    total: FloatArray
    squares: FloatArray
    shape: Shape
    products: Mapping[str, FloatArray]

    def rate(self) -> ClusteredRate:
        """The rate of every cell, with its variance."""
        strata, groups, classes = self.shape
        inner = self.products["between"].diagonal(axis1=2, axis2=3)
        inner = inner.reshape(strata, classes, groups).swapaxes(1, 2).reshape(-1)
        return self._rate(self.hits, self.total, self.squares, inner, "")

    def with_reference(self, reference: int) -> FloatArray:
        """Covariance of every group's rate with that of the reference, shaped as the cells."""
        with np.errstate(all="ignore"):
            factor = _factor(self.products["clusters"]).reshape(self.shape)
            inner = self.products["between"][..., reference].swapaxes(1, 2)
            return np.asarray(inner * factor * factor[:, [reference]])

    def between_groups(self) -> FloatArray:
        """Covariance of every two groups, (stratum, class, group, group)."""
        clusters = self.products["clusters"].reshape(self.shape).swapaxes(1, 2)
        with np.errstate(all="ignore"):
            factor = np.where(clusters >= 2, _factor(clusters), np.nan)
            scale = factor[..., :, None] * factor[..., None, :]
            return np.asarray(self.products["between"] * scale)

    def class_gaps(self, reference: int | None) -> tuple[FloatArray, FloatArray]:
        """Covariance of gaps over classes, and how many clusters are behind each group's."""
        own = _factor(np.maximum(self.products["clusters"].reshape(self.shape), 1.0))
        other = own[:, [reference]] if reference is not None else None
        if other is None:
            other = _factor(np.maximum(self.products["rest_clusters"].reshape(self.shape), 1.0))
        mixed = self.products["own_other"] * (own[..., :, None] * other[..., None, :])
        covariance = (
            self.products["own_own"] * (own[..., :, None] * own[..., None, :])
            + self.products["other_other"] * (other[..., :, None] * other[..., None, :])
            - mixed
            - mixed.swapaxes(-1, -2)
        )
        clusters = self.products["gap_clusters"]
        return np.where(clusters[..., None, None] > 1, covariance, np.nan), clusters

    def rest(self) -> tuple[ClusteredRate, FloatArray]:
        """The rate of all other groups together, and its covariance with the group's own."""
        hits, total, squares = (
            _others(each, self.shape) for each in (self.hits, self.total, self.squares)
        )
        there = self.products["rest_clusters"] > 0
        hits, total = np.where(there, hits, 0.0), np.where(there, total, 0.0)
        found = self._rate(hits, total, squares, self.products["rest_inner"], "rest_")
        with np.errstate(all="ignore"):
            own, others = _factor(self.products["clusters"]), _factor(found.clusters)
            return found, np.asarray(self.products["rest_shared"] * own * others)

    def over_strata(self, groups: Sequence[int], reference: int, z: float) -> Summaries:
        """Gaps over strata, their errors and t's freedom, by (group, class)."""
        places = list(groups)
        moved, sizes, squares, clusters = (
            self.products[name][places]
            for name in ("gap_moved", "gap_sizes", "gap_squares", "gap_present")
        )
        value = np.full(moved.shape, np.nan)
        empty: FloatArray = np.zeros((4, 0))
        for g, c in np.ndindex(*moved.shape):
            whole = _whole_strata(self.hits, self.total, self.shape, places[g], reference, c)
            none = np.zeros(0, dtype=np.intp)
            value[g, c] = left_out_summaries(empty, whole, stratum=none, cluster=none)[0]
        with np.errstate(all="ignore"):
            error = np.sqrt((clusters - 1) / clusters * moved)
            freedom = np.maximum(sizes**2 / squares - 1, 1.0)
        enough = clusters > 1
        return value, np.where(enough, error, np.nan), np.where(enough, freedom, np.nan)

    def _rate(
        self,
        hits: FloatArray,
        total: FloatArray,
        squares: FloatArray,
        inner: FloatArray,
        prefix: str,
    ) -> ClusteredRate:
        clusters, size2 = (self.products[f"{prefix}{name}"] for name in ("clusters", "size2"))
        return ClusteredRate.of_sums(
            hits, total, squares, clusters=clusters, size2=size2, inner=inner
        )


def products_of_part(
    sums: Mapping[str, NDArray[Any]],
    *,
    hits: FloatArray,
    total: FloatArray,
    shape: Shape,
    reference: int | None,
    over_classes: bool,
) -> dict[str, FloatArray]:
    """Sums over some clusters of the products of what leaving each out changes in rates.

    `sums` are those of `ClusterSums`, of these clusters alone; `hits` and `total` those of all
    cells, over all clusters. With a `reference` and strata also what changes in the gaps over
    strata, and with `over_classes` what changes in gaps over classes.

    Examples:
        >>> sums = {"hit_weight": np.array([3.0, 1.0]), "weight": np.array([4.0, 4.0]),
        ...         "cell": np.array([0, 0]), "cluster": np.array([0, 1])}
        >>> found = products_of_part(sums, hits=np.array([4.0]), total=np.array([8.0]),
        ...                          shape=(1, 1, 1), reference=None, over_classes=False)
        >>> found["between"].item(), found["clusters"].item(), found["size2"].item()
        (0.125, 2.0, 32.0)
    """
    cells = int(np.prod(shape))
    parts = sum_pairs(**sums)
    with np.errstate(all="ignore"):
        change = parts.change(hits / total, total)
    strata, groups, classes = shape
    between, _ = shared_products(parts, change, shape=shape, axis=1)
    found = {
        "clusters": add_up((parts.weight > 0).astype(np.float64), parts.cell, cells),
        "size2": add_up(parts.weight**2, parts.cell, cells),
        "between": between.reshape(strata, classes, groups, groups),
    }
    found |= _rest_products(parts, change, hits=hits, total=total, shape=shape)
    if over_classes:
        found |= _class_products(parts, hits=hits, total=total, shape=shape, reference=reference)
    if reference is not None and strata > 1:
        found |= _summary_products(sums, hits=hits, total=total, shape=shape, reference=reference)
    return found


def _rest_products(
    parts: ClusterPairs,
    change: FloatArray,
    *,
    hits: FloatArray,
    total: FloatArray,
    shape: Shape,
) -> dict[str, FloatArray]:
    """The same for all groups but one, and for it and that one, by cell."""
    strata, groups, classes = shape
    blocks = strata * classes
    every = Everybody.of(parts, shape)
    where, block = every.where, every.block
    rest_hits, rest_total = (_others(each, shape).reshape(shape) for each in (hits, total))
    found = {
        name: np.zeros(shape)
        for name in ("rest_clusters", "rest_size2", "rest_inner", "rest_shared")
    }
    for group in range(groups):
        mine = np.flatnonzero(every.member == group)
        left_hits, left = every.hits.copy(), every.weight.copy()
        left_hits[where[mine]] -= parts.hits[mine]
        left[where[mine]] -= parts.weight[mine]
        there = left > 0
        n = rest_total[:, group].reshape(-1)
        with np.errstate(all="ignore"):
            p = rest_hits[:, group].reshape(-1) / n
            moved = (left_hits - p[block] * left) / (n[block] - left)
            moved = np.where(there, moved, 0.0)
            # What a cluster changes that is all of its cell is no number, and is not read.
            shared = change[mine] * moved[where[mine]]
        sums = {
            "rest_clusters": add_up(there.astype(np.float64), block, blocks),
            "rest_size2": add_up(np.where(there, left**2, 0.0), block, blocks),
            "rest_inner": add_up(moved**2, block, blocks),
            "rest_shared": add_up(shared, every.own_block[mine], blocks),
        }
        for name, values in sums.items():
            found[name][:, group] = values.reshape(strata, classes)
    return {name: values.reshape(-1) for name, values in found.items()}


def _class_products(
    parts: ClusterPairs,
    *,
    hits: FloatArray,
    total: FloatArray,
    shape: Shape,
    reference: int | None,
) -> dict[str, FloatArray]:
    """Products over classes of changes in a group's rates and in those it is compared with."""
    from scipy import sparse

    strata, groups, classes = shape
    size = (strata * groups * classes, parts.width)
    tables = [
        sparse.csr_array((amount, (parts.cell, parts.cluster)), shape=size)
        for amount in (parts.hits, parts.weight)
    ]
    whole = np.stack([hits, total]).reshape(2, *shape)
    names = ("own_own", "own_other", "other_other")
    found = {name: np.zeros((strata, groups, classes, classes)) for name in names}
    found["gap_clusters"] = np.zeros((strata, groups))
    for s, g in np.ndindex(strata, groups):
        rows = slice((s * groups + g) * classes, (s * groups + g + 1) * classes)
        own = [table[rows] for table in tables]
        if reference is None:
            block = slice(s * groups * classes, (s + 1) * groups * classes)
            every = sparse.csr_array(np.tile(np.eye(classes), groups))
            other = [every @ table[block] - part for table, part in zip(tables, own)]
            beyond = whole[:, s].sum(axis=1) - whole[:, s, g]
        else:
            first = (s * groups + reference) * classes
            other = [table[first : first + classes] for table in tables]
            beyond = whole[:, s, reference]
        moved, moved_other = _moved(own, whole[:, s, g]), _moved(other, beyond)
        found["own_own"][s, g] = (moved @ moved.T).toarray()
        found["own_other"][s, g] = (moved @ moved_other.T).toarray()
        found["other_other"][s, g] = (moved_other @ moved_other.T).toarray()
        both = np.concatenate([own[1].indices, other[1].indices])
        found["gap_clusters"][s, g] = len(np.unique(both))
    return found


def _moved(tables: Sequence[Any], whole: FloatArray) -> Any:
    """How much higher each class's rate (row) is than without each cluster (column), sparse."""
    from scipy import sparse

    hits, mass = tables
    total = whole[1]
    rate = whole[0] / np.where(total > 0, total, 1.0)
    left = mass.tocoo()
    others = total[left.row] - left.data
    without = np.divide(1.0, others, out=np.zeros_like(others), where=others > 0)
    scale = sparse.csr_array((without, (left.row, left.col)), shape=mass.shape)
    return (hits - sparse.diags_array(rate) @ mass).multiply(scale).tocsr()


def _summary_products(
    sums: Mapping[str, NDArray[Any]],
    *,
    hits: FloatArray,
    total: FloatArray,
    shape: Shape,
    reference: int,
) -> dict[str, FloatArray]:
    """Squared changes of gaps over strata by (group, class), and sizes of the clusters there."""
    _, groups, classes = shape
    names = ("gap_moved", "gap_sizes", "gap_squares", "gap_present")
    found = {name: np.zeros((groups, classes)) for name in names}
    for g, c in np.ndindex(groups, classes):
        if g == reference:
            continue
        table, stratum, cluster = _two_sides(sums, shape, g, reference, c)
        whole = _whole_strata(hits, total, shape, g, reference, c)
        value, left, sizes = left_out_summaries(table, whole, stratum=stratum, cluster=cluster)
        present = sizes > 0
        found["gap_moved"][g, c] = (np.where(present, left - value, 0.0) ** 2).sum()
        found["gap_sizes"][g, c] = sizes.sum()
        found["gap_squares"][g, c] = (sizes**2).sum()
        found["gap_present"][g, c] = present.sum()
    return found


def _two_sides(
    sums: Mapping[str, NDArray[Any]], shape: Shape, group: int, reference: int, place: int
) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
    """(hits, n, hits′, n′) of a class by (cluster, stratum), and those strata and clusters."""
    _, groups, classes = shape
    layer, inside = np.divmod(sums["cell"], groups * classes)
    whose, kind = np.divmod(inside, classes)
    use = (layer > 0) & (kind == place) & ((whose == group) | (whose == reference))
    mine = (whose == group)[use]
    hits, mass = (sums[name][use] for name in ("hit_weight", "weight"))
    table = np.stack([hits * mine, mass * mine, hits * ~mine, mass * ~mine])
    return table, layer[use] - 1, sums["cluster"][use]


def _whole_strata(
    hits: FloatArray, total: FloatArray, shape: Shape, group: int, reference: int, place: int
) -> FloatArray:
    """(hits, n, hits′, n′) of a class by stratum, over all clusters."""
    both = np.stack([hits, total]).reshape(2, *shape)[:, 1:, :, place]
    return np.concatenate([both[..., group], both[..., reference]])


def _others(values: FloatArray, shape: Shape) -> FloatArray:
    """Sums over all groups but each cell's own, flat."""
    laid = values.reshape(shape)
    return np.asarray(laid.sum(axis=1, keepdims=True) - laid).reshape(-1)


def _factor(clusters: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((clusters - 1) / clusters))
