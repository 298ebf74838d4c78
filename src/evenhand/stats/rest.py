"""The rate of everybody but one group, where rows come in clusters: for every group at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import ClusteredRate, ClusterPairs, add_up, distinct, sum_pairs

# Where every cluster is at most this part of its cell, a series of so many terms is exact.
_SMALL_PART, _TERMS = 1e-3, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Everybody:
    """Clusters added up over groups, one for each (stratum, class) and cluster.

    `block` is each one's (stratum, class). Of every row by cell and cluster, `member` is its
    group, `own_block` its block and `where` its place among what is added up.
    """

    member: NDArray[np.int64]
    own_block: NDArray[np.int64]
    where: NDArray[np.int64]
    block: NDArray[np.int64]
    hits: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, parts: ClusterPairs, shape: tuple[int, ...]) -> "Everybody":
        """What the groups of `shape`, (strata, groups, classes), have together."""
        stratum, member, place = np.unravel_index(parts.cell, shape)
        own_block = stratum * shape[2] + place
        key, where = distinct(own_block * parts.width + parts.cluster)
        hits, weight = (add_up(each, where, len(key)) for each in (parts.hits, parts.weight))
        return cls(
            member=member, own_block=own_block, where=where, block=key // parts.width,
            hits=hits, weight=weight,
        )  # fmt: skip


def rest_of_groups(
    hit_weight: ArrayLike,
    weight: ArrayLike,
    *,
    cell: ArrayLike,
    cluster: ArrayLike,
    squares: ArrayLike | None,
    shape: tuple[int, ...],
) -> tuple[ClusteredRate, FloatArray]:
    """Rate of all groups but one for each cell, and its covariance with that one's own rate.

    Cells are numbered in C order over `shape`, (strata, groups, classes); one row, as for
    `clustered_rate`, for each (cell, cluster), in order. Clusters are added up over groups once;
    what each group has of them is then taken away again.

    Examples:
        >>> rest, shared = rest_of_groups([3, 1, 2, 2], [4] * 4, cell=[0, 0, 1, 1],
        ...                               cluster=[0, 1, 2, 3], squares=None, shape=(1, 2, 1))
        >>> rest.value.tolist(), rest.variance.round(4).tolist(), shared.tolist()
        ([0.5, 0.5], [0.0, 0.0625], [0.0, 0.0])
    """
    parts = sum_pairs(hit_weight, weight, cell=cell, cluster=cluster)
    strata, _, classes = shape
    blocks = strata * classes
    every = Everybody.of(parts, shape)
    member, own_block, where, block = every.member, every.own_block, every.where, every.block
    hits, mass = every.hits, every.weight
    own_squares = np.asarray(parts.weight if squares is None else squares, np.float64)
    by_cell = add_up(own_squares, parts.cell, int(np.prod(shape))).reshape(shape)
    row_squares = by_cell.sum(axis=1, keepdims=True) - by_cell
    rest, shared, sure = _rest_by_moments(
        parts, hits, mass, where=where, block=block, place=(member, own_block), shape=shape
    )
    for group in np.flatnonzero(~sure):
        mine = np.flatnonzero(member == group)
        at, whose = where[mine], own_block[mine]
        left_hits, left_mass = hits.copy(), mass.copy()
        left_hits[at] -= parts.hits[mine]
        left_mass[at] -= parts.weight[mine]
        others, change = _left_out(left_hits, left_mass, block, blocks)
        own, own_change = _left_out(parts.hits[mine], parts.weight[mine], whose, blocks)
        with np.errstate(all="ignore"):
            # What a cluster changes that is all of its group is no number, and is not read.
            inner = add_up(own_change * change[at], whose, blocks)
        factor = _jackknife_factor(own["clusters"]) * _jackknife_factor(others["clusters"])
        shared[:, group] = (inner * factor).reshape(strata, classes)
        for name, values in others.items():
            rest[name][:, group] = values.reshape(strata, classes)
    with np.errstate(all="ignore"):
        rest["n"] = rest.pop("total") ** 2 / row_squares
    return ClusteredRate(**{k: v.reshape(-1) for k, v in rest.items()}), shared.reshape(-1)


def _rest_by_moments(
    parts: ClusterPairs,
    hits: FloatArray,
    mass: FloatArray,
    *,
    where: NDArray[np.int64],
    block: NDArray[np.int64],
    place: tuple[NDArray[Any], NDArray[Any]],
    shape: tuple[int, ...],
) -> tuple[dict[str, FloatArray], FloatArray, NDArray[np.bool_]]:
    """What `rest_of_groups` gives, for all groups at once where every cluster is a small part.

    A cluster that a group has not counts in its rest as it does among all: Σ((a − p·n) ÷ (N − n))²
    over all clusters is a series in n ÷ N of moments of a and n, taken once, and only the pairs
    that occur are corrected. Also whether the series holds, by group.
    """
    strata, groups, classes = shape
    member, whose = place
    blocks = strata * classes
    cell = whose * groups + member

    def by_block(values: FloatArray) -> FloatArray:
        return add_up(values, block, blocks)[:, None]

    def by_group(values: FloatArray) -> FloatArray:
        return add_up(values, cell, blocks * groups).reshape(blocks, groups)

    with np.errstate(all="ignore"):
        everybody = by_block(hits) / by_block(mass)
        left_hits, left_mass = hits[where] - parts.hits, mass[where] - parts.weight
        there = left_mass > 0
        left_hits, left_mass = np.where(there, left_hits, 0.0), np.where(there, left_mass, 0.0)
        clusters = by_block((mass > 0).astype(float)) - by_group((~there).astype(float))
        total = np.where(clusters > 0, by_block(mass) - by_group(parts.weight), 0.0)
        value = (by_block(hits) - by_group(parts.hits)) / total
        # Away from everybody's rate: what is squared stays small, and nothing cancels.
        away, moved = hits - everybody[block, 0] * mass, value - everybody
        inner = np.zeros((blocks, groups))
        power, scale = np.ones_like(mass), 1 / total**2
        for k in range(_TERMS):
            squared = by_block(away**2 * power) - 2 * moved * by_block(away * mass * power)
            inner += (k + 1) * scale * (squared + moved**2 * by_block(mass**2 * power))
            power, scale = power * mass, scale / total
        p, n = (each.reshape(-1)[cell] for each in (value, total))
        change = (left_hits - p * left_mass) / (n - left_mass)
        among_all = (hits[where] - p * mass[where]) / (n - mass[where])
        inner = np.maximum(inner + by_group(change**2 - among_all**2), 0.0)
        size2 = by_block(mass**2) + by_group(left_mass**2 - mass[where] ** 2)
        own_total = by_group(parts.weight)
        own_value = by_group(parts.hits) / own_total
        own_p, own_n = (each.reshape(-1)[cell] for each in (own_value, own_total))
        own_change = (parts.hits - own_p * parts.weight) / (own_n - parts.weight)
        own_clusters = by_group((parts.weight > 0).astype(float))
        shared = by_group(own_change * change)
        shared = shared * _jackknife_factor(own_clusters) * _jackknife_factor(clusters)
        largest = np.zeros(blocks)
        np.maximum.at(largest, block, mass)
        sure = np.asarray((largest[:, None] <= _SMALL_PART * total).all(axis=0))
        found = {
            "total": total,
            "value": value,
            "variance": np.where(clusters >= 2, inner * (clusters - 1) / clusters, np.nan),
            "clusters": clusters,
            "n_clusters": total**2 / size2,
        }

    def laid(values: FloatArray) -> FloatArray:
        return np.ascontiguousarray(values.reshape(strata, classes, groups).swapaxes(1, 2))

    return {name: laid(each) for name, each in found.items()}, laid(shared), sure


def _jackknife_factor(clusters: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt((clusters - 1) / clusters))


def _left_out(
    hits: FloatArray, mass: FloatArray, cell: NDArray[np.int64], cells: int
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Rates of cells with their jackknife variance, and what each cluster changes, if it has any.

    One row for each (cell, cluster), with no mass where the cluster does not occur.
    """
    there = mass > 0
    total = add_up(np.where(there, mass, 0.0), cell, cells)
    clusters = add_up(there.astype(np.float64), cell, cells)
    with np.errstate(all="ignore"):
        value = add_up(np.where(there, hits, 0.0), cell, cells) / total
        change = (hits - value[cell] * mass) / (total[cell] - mass)
        change = np.where(there, change, 0.0)
        inner = add_up(change**2, cell, cells)
        found = {
            "total": total,
            "value": value,
            "variance": np.where(clusters >= 2, inner * (clusters - 1) / clusters, np.nan),
            "clusters": clusters,
            "n_clusters": total**2 / add_up(np.where(there, mass**2, 0.0), cell, cells),
        }
    return found, change
