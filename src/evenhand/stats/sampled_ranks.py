"""Rank correlations of rows that weigh differently or come in clusters.

A row's rank is the weight below it plus half of the weight level with it. How far leaving a
cluster out would move a correlation follows from the rows' influence on it, at the price of one
sort: the ranks of all others move with it, and that is counted too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from evenhand.stats.estimate import FloatArray, student_critical
from evenhand.stats.ranks import bonett_wright

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCells:
    """Rank moments of cells, and how far leaving each cluster out would move their correlations.

    `sums` are n, tied, kish, clusters, freedom, and the moments x, xx, and y, yy, xy with
    `:<norm>` of ranks between -½ and ½, under weights that add up to n; `variance:<norm>` is the
    jackknife's, of r itself. One entry of `cell`, `cluster`, `weight` and `moves` for each cluster
    that a cell has; without clusters there are none.
    """

    sums: Mapping[str, FloatArray]
    cell: Places
    cluster: Places
    weight: FloatArray
    moves: Mapping[str, FloatArray]


def sampled_moments(
    codes: Places,
    score: FloatArray,
    norms: Mapping[str, FloatArray],
    *,
    cells: int,
    weights: FloatArray | None = None,
    clusters: Places | None = None,
) -> SampledCells:
    """Moments and jackknife moves of every cell; rows without weight are left out.

    Examples:
        >>> scores, norm = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
        >>> found = sampled_moments(np.zeros(4, int), scores, {"f": norm}, cells=1)
        >>> float((found.sums["xy:f"] / found.sums["xx"])[0].round(3))
        0.8
    """
    names = ["n", "tied", "kish", "clusters", "freedom", "x", "xx"]
    names += [f"{m}:{k}" for k in norms for m in ("y", "yy", "xy", "variance")]
    sums = {name: np.zeros(cells) for name in names}
    kept = np.arange(len(codes)) if weights is None else np.flatnonzero(weights > 0)
    order = kept[np.argsort(codes[kept], kind="stable")]
    starts = np.searchsorted(codes[order], np.arange(cells + 1))
    parts: list[tuple[int, Places, FloatArray, dict[str, FloatArray]]] = []
    for cell in np.flatnonzero(np.diff(starts)).tolist():
        rows = order[starts[cell] : starts[cell + 1]]
        n = rows.size
        weight = np.ones(n) if weights is None else weights[rows] * (n / weights[rows].sum())
        whose, member = np.arange(n), np.arange(n)
        if clusters is not None:
            whose, member = np.unique(clusters[rows], return_inverse=True)
            member = member.reshape(-1)
        mass = np.bincount(member, weight).astype(np.float64)
        x = _Ranked(score[rows], weight)
        sums["n"][cell], sums["tied"][cell] = n, x.tied
        sums["kish"][cell] = n**2 / (weight @ weight)
        sums["clusters"][cell] = whose.size
        sums["freedom"][cell] = cluster_freedom(n, mass @ mass, whose.size)
        sums["x"][cell], sums["xx"][cell] = weight @ x.ranks, weight @ x.ranks**2
        moves: dict[str, FloatArray] = {}
        for name, column in norms.items():
            y = _Ranked(column[rows], weight)
            sums[f"y:{name}"][cell], sums[f"yy:{name}"][cell] = (
                weight @ y.ranks,
                weight @ y.ranks**2,
            )
            sums[f"xy:{name}"][cell] = weight @ (x.ranks * y.ranks)
            moves[name] = _moves(x, y, weight, member, mass)
            many = whose.size
            spread = (many - 1) / many * float(moves[name] @ moves[name])
            sums[f"variance:{name}"][cell] = spread if many > 1 else np.nan
        if clusters is not None:
            parts.append((cell, whose, mass, moves))
    return SampledCells(
        sums=sums,
        cell=np.repeat([part[0] for part in parts], [len(part[1]) for part in parts]).astype(int),
        cluster=np.concatenate([part[1] for part in parts] or [np.zeros(0, int)]),
        weight=np.concatenate([part[2] for part in parts] or [np.zeros(0)]),
        moves={k: np.concatenate([part[3][k] for part in parts] or [np.zeros(0)]) for k in norms},
    )


class _Ranked:
    """Ranks of one column of a cell between -½ and ½, under weights that add up to its rows."""

    __slots__ = ("level", "ranks", "tied")

    def __init__(self, values: FloatArray, weight: FloatArray) -> None:
        _, level, many = np.unique(values, return_inverse=True, return_counts=True)
        self.level = level.reshape(-1)
        mass = np.bincount(self.level, weight)
        self.ranks = ((np.cumsum(mass) - mass / 2) / values.size - 0.5)[self.level]
        if mass.size == 1:
            # Weights add up to n but for rounding, which would look like a column that varies.
            self.ranks = np.zeros(values.size)
        self.tied = int(many[many > 1].sum())

    def above(self, column: FloatArray) -> FloatArray:
        """Of each row, the sum of a weighed column over the rows above it, and half of its level's.

        This is how a row's weight moves the ranks of all others, seen through that column.
        """
        mass = np.bincount(self.level, column)
        return np.asarray((mass.sum() - np.cumsum(mass) + mass / 2)[self.level])


def _moves(
    x: _Ranked, y: _Ranked, weight: FloatArray, member: Places, mass: FloatArray
) -> FloatArray:
    """How far the correlation moves, to first order, when each cluster is left out."""
    n = float(weight.size)
    a, b = x.ranks, y.ranks
    xy, xx, yy = weight @ (a * b) / n, weight @ (a * a) / n, weight @ (b * b) / n
    if not (xx > 0 and yy > 0):
        return np.full(mass.size, np.nan)
    # A row counts by its own product, and by pushing up the ranks of the rows above it.
    by_xy = a * b + x.above(weight * b) / n + y.above(weight * a) / n - 3 * xy
    by_xx = a * a + 2 * x.above(weight * a) / n - 3 * xx
    by_yy = b * b + 2 * y.above(weight * b) / n - 3 * yy
    r = xy / np.sqrt(xx * yy)
    influence = by_xy / np.sqrt(xx * yy) - r / 2 * (by_xx / xx + by_yy / yy)
    push = np.bincount(member, weight * influence).astype(np.float64)
    return left_out_moves(push, mass, n)


def left_out_moves(push: FloatArray, mass: FloatArray, n: ArrayLike) -> FloatArray:
    """How far a correlation moves without each cluster; NaN where nothing is left of the cell.

    `push` is the weighed influence of its rows, `mass` their weight of the n of all rows. What is
    left weighs n - mass: large clusters move it by more.

    Examples:
        >>> left_out_moves(np.array([0.5, 0.5]), np.array([1.0, 2.0]), 2.0).tolist()
        [-0.5, nan]
    """
    left = np.asarray(n, dtype=np.float64) - mass
    with np.errstate(all="ignore"):
        return np.where(left > 0, -push / left, np.nan)


def cluster_freedom(n: ArrayLike, size2: ArrayLike, clusters: ArrayLike) -> FloatArray:
    """The effective number of clusters less one, at least 1; 0 of a single cluster.

    `size2` are the clusters' squared weights, added up; n is their weight altogether.

    Examples:
        >>> cluster_freedom([8, 8], [16, 64], [4, 1]).tolist()
        [3.0, 0.0]
    """
    with np.errstate(all="ignore"):
        apart = np.asarray(n, dtype=np.float64) ** 2 / np.asarray(size2, dtype=np.float64)
    return np.where(np.asarray(clusters) > 1, np.maximum(1.0, apart - 1), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledInterval:
    """Limits and two-sided p of correlations, and the independent rows that each is worth."""

    low: FloatArray
    high: FloatArray
    p: FloatArray
    n: FloatArray


def sampled_interval(
    r: ArrayLike, n: ArrayLike, *, variance: ArrayLike, freedom: ArrayLike, z: ArrayLike
) -> SampledInterval:
    """Limits of rank correlations with jackknife variance: Fisher's scale, Student's t; broadcasts.

    `n` is Kish's number of rows. The rows that a correlation is worth are those for which Bonett
    and Wright's variance is the jackknife's, at most n. At ±1, where nothing moves, the interval is
    theirs for as many rows as there are degrees of freedom. NaN without a degree of freedom.

    Examples:
        >>> found = sampled_interval(0.4, 100, variance=0.02, freedom=11, z=1.96)
        >>> print(f"{found.low:.3f} {found.high:.3f} n={found.n:.0f}")
        0.053 0.661 n=41
    """
    r, count, spread, df, z = np.broadcast_arrays(
        *(np.asarray(part, dtype=np.float64) for part in (r, n, variance, freedom, z))
    )
    usable = np.where(df > 0, df, np.nan)
    with np.errstate(all="ignore"):
        error = np.sqrt(spread) / (1 - r * r)
        known = np.isfinite(error) & (error > 0)
        centre = np.arctanh(r)
        half = student_critical(z, freedom=usable) * error
        least, most = bonett_wright(r, np.maximum(usable + 1, 4), z=z)
        worth = 3 + (1 + r * r / 2) / error**2
        return SampledInterval(
            low=np.where(known, np.tanh(centre - half), least + 0 * usable),
            high=np.where(known, np.tanh(centre + half), most + 0 * usable),
            p=np.where(known, 2 * stdtr(usable, -np.abs(centre) / error), np.nan),
            n=np.where(known, np.minimum(worth, count), np.minimum(count, usable + 1)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedError:
    """How the errors of the r_c go together where clusters have rows in several classes.

    `covariance` is classes × classes, by jackknife over clusters; `freedom` the effective number
    of clusters less one. Intervals over classes hold the errors to be independent: what they miss
    is added, and what they count already is not.
    """

    covariance: FloatArray
    freedom: float

    def take(self, kept: ArrayLike) -> "SharedError":
        """The same of some of the classes."""
        use = np.flatnonzero(np.asarray(kept, dtype=bool))
        return SharedError(covariance=self.covariance[np.ix_(use, use)], freedom=self.freedom)

    def extra(self, gradient: FloatArray) -> float:
        """Variance that goes unseen in a sum of the r_c with these weights; never negative."""
        own = float(np.sum(gradient**2 * np.diag(self.covariance)))
        return max(0.0, float(gradient @ self.covariance @ gradient) - own)

    def join(self, variance: float, gradient: FloatArray, *, freedom: float) -> tuple[float, float]:
        """A variance of so many degrees of freedom with what goes unseen in it, and theirs.

        Examples:
            >>> shared = SharedError(covariance=np.full((2, 2), 0.02), freedom=4.0)
            >>> total, df = shared.join(0.04, np.array([1.0, 1.0]), freedom=np.inf)
            >>> round(total, 3), round(df, 3)
            (0.08, 16.0)
        """
        extra = self.extra(gradient)
        if not extra > 0:
            return variance, freedom
        squares = variance**2 / freedom + extra**2 / self.freedom
        return variance + extra, (variance + extra) ** 2 / squares

    @property
    def apart(self) -> float:
        """Share of the errors' variance that makes classes differ: shared ones move all alike."""
        many, own = len(self.covariance), float(np.trace(self.covariance))
        other = float(self.covariance.sum()) - own
        if many < 2 or not own > 0:
            return 1.0
        return max(0.0, 1.0 - other / (many - 1) / own)
