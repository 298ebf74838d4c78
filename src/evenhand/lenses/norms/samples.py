"""What weights and clusters change in the norms lens: shares, intervals, errors that are shared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.decisions.tallies.by_cluster import CLUSTER
from evenhand.decisions.tally import Tally
from evenhand.speech import plural
from evenhand.stats.estimate import FloatArray
from evenhand.stats.ranks import bonett_wright, correlation_p
from evenhand.stats.sampled_ranks import (
    SampledInterval,
    SharedError,
    left_out_moves,
    sampled_interval,
)
from evenhand.stats.weights import ClusteredRate, left_out_sums, sum_pairs, weighted_rate

# How a correlation and its interval are made where every row counts alike.
PLAIN = "Spearman, Bonett-Wright interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class NormSample:
    """What is known of a sample's cells: arrays (stratum, group, class).

    `kish` is the number of rows of equal weight that a cell is worth, `freedom` the effective
    number of its clusters (or rows) less one, `variance` the jackknife's, by norm. Of clusters
    `moves` has the keys group, class and, within strata, stratum; the first is of everybody.
    Where clusters stay in Spark, `products` are what `PartMoves` adds up of them instead.
    """

    weighted: bool
    clustered: bool
    kish: FloatArray
    clusters: FloatArray
    freedom: FloatArray
    variance: Mapping[str, FloatArray]
    moves: Sequence[Tally] = ()
    products: Mapping[str, FloatArray] | None = None

    def even(self, n: FloatArray) -> NDArray[np.bool_]:
        """Cells whose rows are independent and all weigh the same: as if there were no weights."""
        return np.asarray(~np.bool_(self.clustered) & (self.kish > n * (1 - 1e-9)))

    def words(self, n: FloatArray, worth: FloatArray) -> list[str]:
        """How each correlation and its interval were made; `worth` are its effective rows."""
        named = "weighted Spearman" if self.weighted else "Spearman"
        unit = ("cluster", "clusters") if self.clustered else ("row", "rows")
        return [
            PLAIN
            if even
            else f"{named}, jackknife over {plural(many, *unit)}, t with {df:.0f} "
            f"degrees of freedom, worth {plural(rows, 'row')}"
            if df > 0 and np.isfinite(rows)
            else named
            for even, many, df, rows in zip(
                self.even(n).ravel().tolist(),
                self.clusters.ravel().tolist(),
                self.freedom.ravel().tolist(),
                worth.ravel().tolist(),
            )
        ]

    def shared_error(self, norm: str, s: int, g: int) -> SharedError | None:
        """How the errors of a group's classes go together; None where clusters do not say."""
        if not self.moves and self.products is None:
            return None
        many = self.clusters[s, g]
        with np.errstate(all="ignore"):
            factor = np.sqrt(np.where(many > 1, (many - 1) / many, 0.0))
        if self.products is not None:
            inner, size2 = self.products[f"inner:{norm}"][s, g], self.products["group_size2"][s, g]
            whole = self.products["group_size"][s, g]
            freedom = max(1.0, whole**2 / size2 - 1) if size2 > 0 else 1.0
            return SharedError(covariance=inner * np.outer(factor, factor), freedom=float(freedom))
        moves = self.moves[0 if s == 0 else 1]
        at = np.flatnonzero(moves.codes["group"] == g)
        if s:
            at = at[moves.codes["stratum"][at] == s - 1]
        whose = moves.codes[CLUSTER][at]
        place = moves.codes["truth"][at]
        used = place >= 0
        at, whose, place = at[used], whose[used], place[used]
        move = np.nan_to_num(moves.sums[f"move:{norm}"][at])
        width = len(moves.labels[CLUSTER])
        table = sparse.csr_array(
            (move * factor[place], (place, whose)), shape=(len(many), max(1, width))
        )
        mass = np.bincount(whose, moves.sums["weight"][at], minlength=1)
        freedom = max(1.0, mass.sum() ** 2 / (mass @ mass) - 1) if mass.any() else 1.0
        return SharedError(covariance=(table @ table.T).toarray(), freedom=float(freedom))


def correlation_interval(
    r: FloatArray, n: FloatArray, sample: NormSample | None, *, norm: str, z: FloatArray | float
) -> SampledInterval:
    """Limits, p and effective rows of the correlations with one norm."""
    low, high = bonett_wright(r, n, z=z)
    plain = SampledInterval(low=low, high=high, p=correlation_p(r, n), n=n)
    if sample is None:
        return plain
    found = sampled_interval(
        r, sample.kish, variance=sample.variance[norm], freedom=sample.freedom, z=z
    )
    even = sample.even(n)
    ends = ("low", "high", "p", "n")
    return SampledInterval(
        **{end: np.where(even, getattr(plain, end), getattr(found, end)) for end in ends}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCounts:
    """Rows, weights and squared weights of every (stratum, group, class), everybody first.

    `clustered` are the shares with what clusters do to them, where rows come in any.
    """

    rows: FloatArray
    weight: FloatArray
    squares: FloatArray
    weighted: bool = False
    clustered: ClusteredRate | None = None

    @property
    def shares(self) -> FloatArray:
        """Share of each group among the people of each class."""
        with np.errstate(all="ignore"):
            return np.asarray(self.weight / self.weight.sum(axis=1, keepdims=True))

    @property
    def method(self) -> str:
        """How the intervals of the shares were made."""
        by = "clustered " if self.clustered is not None else "weighted " if self.weighted else ""
        return f"{by}wilson"

    def effective(self, *, z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Effective hits and cases for Wilson's interval at this critical value."""
        total = np.broadcast_to(self.weight.sum(axis=1, keepdims=True), self.weight.shape)
        if self.clustered is not None:
            return self.clustered.effective(z=z)
        if not self.weighted:
            return self.weight, total
        squares = np.broadcast_to(self.squares.sum(axis=1, keepdims=True), self.weight.shape)
        found = weighted_rate(
            self.weight,
            total - self.weight,
            hit_squares=self.squares,
            miss_squares=squares - self.squares,
        )
        return found.hits, found.n


def clustered_shares(
    weight: FloatArray, squares: FloatArray, sums: Mapping[str, FloatArray]
) -> ClusteredRate:
    """The share of every group in every class, from what `PartShares` adds up over clusters."""
    total, row_squares = (
        np.broadcast_to(each.sum(axis=1, keepdims=True), each.shape) for each in (weight, squares)
    )
    return ClusteredRate.of_sums(weight, total, row_squares, **sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartShares:
    """What a part of the clusters adds to the variance of shares, (stratum, group, class).

    A function of a tally of weights by whole clusters; `weight` is that of all clusters.
    """

    labels: Mapping[str, tuple[str, ...]]
    weight: FloatArray

    def __call__(self, part: Tally) -> dict[str, FloatArray]:
        """Clusters, their squared weights and squared changes of the share, by cell."""
        for key, named in self.labels.items():
            part = part.relabel(key, named)
        strata, groups, classes = self.weight.shape
        found = {name: np.zeros(self.weight.shape) for name in ("clusters", "size2", "inner")}
        total = self.weight.sum(axis=1)
        for first, last in ((0, 1), (1, strata))[: 1 + (strata > 1)]:
            codes = [part.codes[key] for key in ("group", "truth", CLUSTER)]
            stratum = part.codes["stratum"] if first else np.zeros_like(codes[0])
            used = (np.stack([*codes, stratum]) >= 0).all(axis=0)
            group, truth, whose, stratum = (code[used] for code in (*codes, stratum))
            weight = part.sums["w"][used]
            for g in range(groups):
                pairs = sum_pairs(
                    np.where(group == g, weight, 0.0),
                    weight,
                    cell=stratum * classes + truth,
                    cluster=whose,
                )
                sums = left_out_sums(
                    pairs,
                    hits=self.weight[first:last, g].reshape(-1),
                    total=total[first:last].reshape(-1),
                )
                for name, each in sums.items():
                    found[name][first:last, g] = each.reshape(last - first, classes)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PartMoves:
    """What a part of the clusters adds to the errors of correlations and how they go together.

    A function of a tally of pushes by whole clusters; `key` is that of classes, if any, and `n`
    the rows of all clusters, (stratum, group, class).
    """

    labels: Mapping[str, tuple[str, ...]]
    key: str | None
    n: FloatArray
    norms: tuple[str, ...]

    def __call__(self, part: Tally) -> dict[str, FloatArray]:
        """Clusters and their squared weights, by cell and by group, and products over classes."""
        for key, named in self.labels.items():
            part = part.relabel(key, named)
        strata, groups, classes = self.n.shape
        zero = np.zeros(len(part), dtype=np.int64)
        layer = part.codes.get("stratum", zero)
        place = zero if self.key is None else part.codes[self.key]
        codes = np.stack([layer, part.codes["group"], place, part.codes[CLUSTER]])
        used = (codes >= 0).all(axis=0)
        layer, group, place, whose = codes[:, used]
        weight = part.sums["weight"][used]
        n = self.n[layer, group, place]
        found = {name: np.zeros(self.n.shape) for name in ("clusters", "size2")}
        np.add.at(found["clusters"], (layer, group, place), 1.0)
        np.add.at(found["size2"], (layer, group, place), weight**2)
        found["group_size2"] = np.zeros((strata, groups))
        found |= {f"inner:{k}": np.zeros((strata, groups, classes, classes)) for k in self.norms}
        width = int(whose.max(initial=0)) + 1
        for s, g in np.ndindex(strata, groups):
            at = np.flatnonzero((layer == s) & (group == g))
            mass = np.bincount(whose[at], weight[at], minlength=1)
            found["group_size2"][s, g] = mass @ mass
            for k in self.norms:
                push = np.nan_to_num(part.sums[f"push:{k}"][used][at])
                moved = np.nan_to_num(left_out_moves(push, weight[at], n[at]), posinf=0, neginf=0)
                table = sparse.csr_array((moved, (place[at], whose[at])), shape=(classes, width))
                found[f"inner:{k}"][s, g] = (table @ table.T).toarray()
        return found
