"""What weights and clusters change in the norms lens: shares, intervals, errors that are shared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.decisions.tallies.sampled_norms import CLUSTER
from evenhand.decisions.tally import Tally
from evenhand.speech import plural
from evenhand.stats.estimate import FloatArray
from evenhand.stats.ranks import bonett_wright, correlation_p
from evenhand.stats.sampled_ranks import SampledInterval, SharedError, sampled_interval
from evenhand.stats.weights import clustered_rate, weighted_rate

# How a correlation and its interval are made where every row counts alike.
PLAIN = "Spearman, Bonett-Wright interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class NormSample:
    """What is known of a sample's cells: arrays (stratum, group, class).

    `kish` is the number of rows of equal weight that a cell is worth, `freedom` the effective
    number of its clusters (or rows) less one, `variance` the jackknife's, by norm. Of clusters
    `moves` has the keys group, class and, within strata, stratum; the first is of everybody.
    """

    weighted: bool
    clustered: bool
    kish: FloatArray
    clusters: FloatArray
    freedom: FloatArray
    variance: Mapping[str, FloatArray]
    moves: Sequence[Tally] = ()

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
        """How the errors of a group's classes go together; None without clusters."""
        if not self.clustered:
            return None
        moves = self.moves[0 if s == 0 else 1]
        at = np.flatnonzero(moves.codes["group"] == g)
        if s:
            at = at[moves.codes["stratum"][at] == s - 1]
        whose = moves.codes[CLUSTER][at]
        place = moves.codes["truth"][at]
        used = place >= 0
        at, whose, place = at[used], whose[used], place[used]
        move = np.nan_to_num(moves.sums[f"move:{norm}"][at])
        many = self.clusters[s, g]
        with np.errstate(all="ignore"):
            factor = np.sqrt(np.where(many > 1, (many - 1) / many, 0.0))
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

    `clusters` has the same by cluster, where rows come in any.
    """

    rows: FloatArray
    weight: FloatArray
    squares: FloatArray
    weighted: bool = False
    clusters: Tally | None = None

    @property
    def shares(self) -> FloatArray:
        """Share of each group among the people of each class."""
        with np.errstate(all="ignore"):
            return np.asarray(self.weight / self.weight.sum(axis=1, keepdims=True))

    @property
    def method(self) -> str:
        """How the intervals of the shares were made."""
        by = "clustered " if self.clusters is not None else "weighted " if self.weighted else ""
        return f"{by}wilson"

    def effective(self, *, z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Effective hits and cases for Wilson's interval at this critical value."""
        total = np.broadcast_to(self.weight.sum(axis=1, keepdims=True), self.weight.shape)
        if self.clusters is not None:
            return self._clustered(self.clusters, z=z)
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

    def _clustered(self, tally: Tally, *, z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        strata, groups, classes = self.weight.shape
        critical = np.broadcast_to(np.asarray(z, dtype=np.float64), self.weight.shape)
        hits, n = np.full(self.weight.shape, np.nan), np.full(self.weight.shape, np.nan)
        for first, last in ((0, 1), (1, strata))[: 1 + (strata > 1)]:
            codes = [tally.codes[key] for key in ("group", "truth", CLUSTER)]
            stratum = tally.codes["stratum"] if first else np.zeros_like(codes[0])
            used = (np.stack([*codes, stratum]) >= 0).all(axis=0)
            group, truth, whose, stratum = (code[used] for code in (*codes, stratum))
            for g in range(groups):
                weight = tally.sums["w"][used]
                found = clustered_rate(
                    np.where(group == g, weight, 0.0),
                    weight,
                    cell=stratum * classes + truth,
                    cluster=whose,
                    cells=(last - first) * classes,
                    squares=tally.sums["w2"][used],
                ).effective(z=critical[first:last, g].reshape(-1))
                shape = (last - first, classes)
                hits[first:last, g], n[first:last, g] = (part.reshape(shape) for part in found)
        return hits, n
