"""Paired gaps: the same rows decided under two values of an attribute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import ordered
from evenhand.decisions.roles import Roles
from evenhand.decisions.tallies.pairs import MARK
from evenhand.decisions.tally import Codes, Tally
from evenhand.lenses.scope import Scope
from evenhand.lenses.statistical.confusion import prepare, weight_column
from evenhand.stats.estimate import FloatArray, student_critical
from evenhand.stats.families import (
    bonferroni,
    correlation,
    group_normals,
    max_t_quantile,
    rate_covariance,
)
from evenhand.stats.spread import influence_covariance
from evenhand.stats.weights import add_up, distinct, weighted_pairs

DRAWS = 1_000
# Beyond this many numbers the joint law is costly; Bonferroni's bound is used instead.
MOST_JOINT = 4_000_000
# What is known of clusters' deviations from a mean: their squares, and how many clusters there are.
EXCESS = ("excess", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """The cells of a tally: truth, the decision under each value, and the sums of each cell.

    `decided` is (values × cells) of places among the classes, −1 where there is no decision;
    `pairs` are places among the values, (value, reference). `labels` are the decisions as they
    were written, before they became classes. `filled` counts the rows whose
    own value had no decision of its own and took the row's `decision`. Of clusters that stay in
    Spark, `cluster` says whether a cell has any, and `gathered` holds what `PartPairs` adds up.
    """

    values: tuple[str, ...]
    labels: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    classes: tuple[str, ...]
    positive: str | None
    strata: tuple[str | None, ...]
    stratum: Codes
    truth: Codes
    decided: Codes
    cluster: Codes | None
    sums: dict[str, FloatArray]
    factual: Codes | None
    own: Codes
    filled: int
    gathered: Mapping[str, FloatArray] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many strata, pairs and classes there are."""
        return len(self.strata), len(self.pairs), len(self.classes)

    @property
    def has_truth(self) -> bool:
        """Whether any row has a truth."""
        return bool((self.truth >= 0).any())

    def inside(self, stratum: int) -> NDArray[np.bool_]:
        """The cells of a stratum; the first stratum is the whole table."""
        if stratum == 0:
            return np.ones(len(self.truth), dtype=bool)
        return np.asarray(self.stratum == stratum - 1)

    def both(self, pair: tuple[int, int]) -> NDArray[np.bool_]:
        """The cells with a decision on both sides of a pair."""
        value, reference = pair
        known = (self.decided[value] >= 0) & (self.decided[reference] >= 0)
        return np.asarray(known if self.cluster is None else known & (self.cluster >= 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedGaps:
    """A paired gap by (stratum, pair, class).

    `gained` pairs are a hit under the value only, `lost` ones under the reference only; both
    and `n` are effective counts where rows are weighted or clustered. `cases` are rows,
    `clusters` how many clusters they come from.
    """

    value: FloatArray
    gained: FloatArray
    lost: FloatArray
    n: FloatArray
    cases: FloatArray
    kind: str
    clusters: FloatArray | None = None

    def counts(self, z: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gained, lost and all pairs for an interval with this critical value.

        Few clusters leave the variance itself unsure: Student's quantile instead of z.
        """
        if self.clusters is None:
            return self.gained, self.lost, self.n
        t = student_critical(z, freedom=np.maximum(self.clusters - 1, 1.0))
        shrink = (np.asarray(z) / t) ** 2
        return self.gained * shrink, self.lost * shrink, self.n * shrink


class PairFamily:
    """Critical values that hold for all pairs and classes of a measure at once.

    From normal draws with the covariance that the shared rows give the estimates; within strata,
    whose rows are one family, Šidák's.
    """

    def __init__(self, table: PairTable, scope: Scope) -> None:
        self.table, self.scope = table, scope
        self._merged: dict[tuple[int, str], tuple[Codes, Codes, FloatArray]] = {}

    def critical(self, rate: str, *, flipped: bool = False) -> FloatArray:
        """Critical values (stratum, 1, class), for gaps or, with `flipped`, for flip rates."""
        size = len(self.table.classes)
        members = np.full((len(self.table.strata), size), len(self.table.pairs))
        q = self.scope.shared_critical(members)
        # Of two classes one is the other's mirror: each is a family with the pairs alone.
        families = [[c] for c in range(size)] if self.scope.mirrored else [list(range(size))]
        for stratum in np.flatnonzero(~self.scope.within):
            for classes in families:
                q[stratum, classes] = self._critical(rate, int(stratum), classes, flipped=flipped)
        return q[:, None, :]

    def _critical(self, rate: str, stratum: int, classes: list[int], *, flipped: bool) -> float:
        table, level = self.table, self.scope.family_level
        members = len(table.pairs) * len(classes)
        truth, decided, counts = self._cells(stratum, weight_column(table.sums, rate) or "n")
        if members * len(counts) > MOST_JOINT or not len(counts):
            return bonferroni(level, members=members)
        tops, bottoms = [], []
        for value, reference in table.pairs:
            known = (decided[value] >= 0) & (decided[reference] >= 0)
            for c in classes:
                cases = known & population(truth, c, rate)
                d = (decided[value] == c).astype(float) - (decided[reference] == c)
                tops.append(np.where(cases, np.abs(d) if flipped else d, 0.0))
                bottoms.append(cases.astype(float))
        covariance = rate_covariance(counts[None], numerators=tops, denominators=bottoms)
        moving = np.diagonal(covariance[0]) > 0
        normals = group_normals(correlation(covariance), draws=DRAWS, seed=self.scope.seed)[:, 0]
        return max_t_quantile(np.where(moving, normals, np.nan), level=level)

    def _cells(self, stratum: int, weight: str) -> tuple[Codes, Codes, FloatArray]:
        """Cells merged as far as gaps allow: where all decisions agree, which one is no matter."""
        if (stratum, weight) not in self._merged:
            table = self.table
            use = table.inside(stratum)
            if table.cluster is not None:
                use = use & (table.cluster >= 0)
            truth, decided = table.truth[use], table.decided[:, use]
            same = (decided == decided[0]).all(axis=0) & (decided[0] >= 0)
            keys = np.vstack([truth, np.where(same, 0, decided)])
            first, inverse = _distinct(keys, size=len(table.classes) + 1)
            amount = table.sums[weight][use]
            counts = np.bincount(inverse, amount, minlength=len(first)).astype(np.float64)
            self._merged[stratum, weight] = keys[0, first], keys[1:, first], counts
        return self._merged[stratum, weight]


def pair_table(tally: Tally, roles: Roles, values: Sequence[str]) -> PairTable:
    """The tally with truth and every decision brought to the same classes; reference first."""
    keys = [f"{MARK}{value}" for value in values]
    seen = {name for key in keys for name in tally.labels[key]}
    yes_or_no = roles.rule == "score>=t" and seen <= {"0", "1"}
    as_given = roles if yes_or_no else replace(roles, rule="given")
    if roles.rule in {"given", "argmax"}:
        seen |= set(tally.labels["decision"])
    union = ordered(seen)
    aligned = [_align(tally, key, as_given, union) for key in keys]
    classes, positive = aligned[0][1:]
    decided = np.stack([codes for codes, *_ in aligned])
    factual = None
    if "decision" in tally.labels:
        named = ["0", "1"] if roles.rule == "score>=t" else union
        codes, own_classes, _ = _align(tally, "decision", roles, named)
        factual = codes if own_classes == classes else None
    own = _own_values(tally, values)
    filled = 0
    if factual is not None:
        for i in range(len(values)):
            fill = (own == i) & (decided[i] < 0) & (factual >= 0)
            filled += int(tally.sums["n"][fill].sum())
            decided[i] = np.where(fill, factual, decided[i])
    missing = np.full(len(tally), -1, dtype=np.int64)
    places = range(len(values))
    return PairTable(
        values=tuple(values),
        labels=tuple(union),
        pairs=tuple((j, i) for i in places for j in places if i < j),
        classes=classes,
        positive=positive,
        strata=(None, *tally.labels.get("stratum", ())),
        stratum=tally.codes.get("stratum", missing),
        truth=_truth(tally, as_given, union),
        decided=decided,
        cluster=tally.codes.get("cluster", tally.codes.get("clustered")),
        sums=tally.sums,
        factual=factual,
        own=own,
        filled=filled,
    )


def paired_gaps(table: PairTable, rate: str) -> PairedGaps:
    """A counterfactual rate gap by (stratum, pair, class): hits gained minus lost, by pairs."""
    weight = weight_column(table.sums, rate)
    gained, lost, cases = moved_pairs(table, rate, "n")
    if weight is None and table.cluster is None:
        with np.errstate(all="ignore"):
            value = (gained - lost) / cases
        return PairedGaps(
            value=value, gained=gained, lost=lost, n=cases, cases=cases, kind="counted"
        )
    up, down, total = moved_pairs(table, rate, weight or "n")
    up2, down2, total2 = moved_pairs(table, rate, f"{weight}2" if weight else "n")
    if table.cluster is None:
        found = weighted_pairs(
            up, down, total,
            gained_squares=up2, lost_squares=down2, total_squares=total2, pairs=cases,
        )  # fmt: skip
        with np.errstate(all="ignore"):
            # Equal weights are no weights: then the pairs count as they are.
            even = total**2 / total2 > cases - 1e-9
        return PairedGaps(
            value=found.value,
            gained=np.where(even, gained, found.gained),
            lost=np.where(even, lost, found.lost),
            n=np.where(even, cases, found.n),
            cases=cases,
            kind="weighted",
        )
    with np.errstate(all="ignore"):
        value, moved = (up - down) / total, (up + down) / total
        excess, clusters = _excess(table, rate, value)
        variance = np.where(clusters > 1, clusters / (clusters - 1) * excess / total**2, np.nan)
        kish = np.minimum(total**2 / total2, clusters)
        # The number of plain pairs whose gap would vary as much as this one does.
        n = np.where(moved > 0, (moved - value**2) / variance, kish)
        n = np.minimum(np.where(np.isfinite(n), n, kish), total)
        return PairedGaps(
            value=value,
            gained=up / total * n,
            lost=down / total * n,
            n=n,
            cases=cases,
            kind="clustered",
            clusters=clusters,
        )


def gap_covariance(
    table: PairTable, rate: str, gaps: PairedGaps
) -> tuple[FloatArray, FloatArray | None]:
    """Covariance of paired gaps over classes, and the clusters it comes from, if any.

    By (stratum, pair, class, class) and (stratum, pair). A pair moves one class up and another
    down, so classes move together. 1 ÷ (n + 2)² is added to the diagonal: a class without a
    changed pair is not known to a point.
    """
    strata, pairs, classes = gaps.value.shape
    covariance = np.zeros((strata, pairs, classes, classes))
    clusters = None if table.cluster is None else np.zeros((strata, pairs))
    if table.gathered is not None:
        clusters = table.gathered[f"gap {rate}/present"]
        with np.errstate(all="ignore"):
            factor = np.where(clusters > 1, clusters / (clusters - 1), np.nan)
        covariance = table.gathered[f"gap {rate}/moves"] * factor[..., None, None]
    for s, p in [] if table.gathered is not None else np.ndindex(strata, pairs):
        moved, mass, square, cluster = gap_moves(table, rate, (s, p), gaps.value[s, p])
        if clusters is None:
            with np.errstate(all="ignore"):
                n = gaps.cases[s, p]
                spare = np.sqrt(np.where(n > 1, n / (n - 1), np.nan))
            covariance[s, p] = (moved * square[:, None]).T @ moved * spare[:, None] * spare
        else:
            columns, clusters[s, p] = cluster_moves(moved, mass, cluster)
            covariance[s, p] = influence_covariance(columns)
    counted = gaps.cases if gaps.kind == "clustered" else gaps.n
    index = np.arange(classes)
    with np.errstate(all="ignore"):
        covariance[..., index, index] += 1 / (counted + 2) ** 2
    return covariance, clusters


def gap_moves(
    table: PairTable,
    rate: str,
    place: tuple[int, int],
    value: FloatArray,
    total: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray, Codes]:
    """How far a row of each cell moves the gap of each class, in a stratum and for a pair.

    Also the cells' weight, squared weight and cluster. `value` are the gaps of the classes, and
    `total` their cases where the table has but some of them.
    """
    s, pair = place[0], table.pairs[place[1]]
    # Cells in an order of their own, so that sums do not depend on the order of rows.
    (truth, first, second, cluster), inverse = _pair_cells(table, s, pair)
    use = table.inside(s) & table.both(pair)
    weight = weight_column(table.sums, rate)
    kinds = (weight or "n", f"{weight}2" if weight else "n")
    mass, square = (add_up(table.sums[kind][use], inverse, len(truth)) for kind in kinds)
    moved = np.zeros((len(truth), len(table.classes)))
    for c in range(len(table.classes)):
        cases = population(truth, c, rate)
        sign = (first == c).astype(float) - (second == c)
        every = (mass * cases).sum() if total is None else total[c]
        if every > 0:
            moved[:, c] = np.where(cases, sign - value[c], 0.0) / every
    return moved, mass, square, cluster


def cluster_moves(moved: FloatArray, mass: FloatArray, cluster: Codes) -> tuple[FloatArray, int]:
    """How far each cluster moves the gap of each class, and how many there are."""
    names, own = distinct(cluster)
    columns = [add_up(mass * column, own, len(names)) for column in moved.T]
    return np.stack(columns, axis=-1), len(names)


def _pair_cells(
    table: PairTable, stratum: int, pair: tuple[int, int]
) -> tuple[tuple[Codes, ...], Codes]:
    """Distinct (truth, decision, decision of the reference, cluster), and each cell's place."""
    use = table.inside(stratum) & table.both(pair)
    cluster = np.zeros_like(table.truth) if table.cluster is None else table.cluster
    parts = (cluster, table.truth + 1, table.decided[pair[0]], table.decided[pair[1]])
    size = len(table.classes) + 1
    key = np.zeros(int(use.sum()), dtype=np.int64)
    for part in parts:
        key = key * size + part[use] if part is not cluster else part[use]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    cluster, truth, own, other = (part[use][first] for part in parts)
    return (truth - 1, own, other, cluster), inverse.reshape(-1)


def flips(table: PairTable) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share of pairs decided differently, effective pairs and pairs, by (stratum, pair)."""
    share, n, cases = flip_shares(table)
    if table.cluster is None:
        return share, n, cases
    gathered = table.gathered
    excess, clusters = (
        flip_excess(table, share)
        if gathered is None
        else (gathered[f"flip/{name}"] for name in EXCESS)
    )
    mass, _, _ = flip_sums(table, weight_column(table.sums, "selection_rate") or "n")
    with np.errstate(all="ignore"):
        variance = np.where(clusters > 1, clusters / (clusters - 1) * excess / mass**2, np.nan)
        plain = np.where(variance > 0, share * (1 - share) / variance, clusters)
    return share, np.where(mass > 0, np.minimum(plain, n), n), cases


def flip_shares(table: PairTable) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What `flips` gives of pairs that come in no clusters."""
    weight = weight_column(table.sums, "selection_rate") or "n"
    mass, moved, cases = flip_sums(table, weight)
    squares, _, _ = flip_sums(table, "n" if weight == "n" else "weight2")
    with np.errstate(all="ignore"):
        share = np.where(mass > 0, moved / mass, np.nan)
        return share, np.where(mass > 0, mass**2 / squares, 0.0), cases


def flip_sums(table: PairTable, sum_: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A sum over pairs, over those decided differently, and pairs, by (stratum, pair)."""
    found = np.zeros((3, *table.shape[:2]))
    for s, p in np.ndindex(*table.shape[:2]):
        use, moved = _flipped(table, s, p)
        amount = table.sums[sum_][use]
        found[:, s, p] = amount.sum(), (amount * moved).sum(), table.sums["n"][use].sum()
    return found[0], found[1], found[2]


def flip_excess(table: PairTable, share: FloatArray) -> FloatArray:
    """What `cluster_excess` gives of the pairs decided differently: (2, stratum, pair)."""
    assert table.cluster is not None
    found = np.zeros((2, *share.shape))
    amount = table.sums[weight_column(table.sums, "selection_rate") or "n"]
    for s, p in np.ndindex(*share.shape):
        use, moved = _flipped(table, s, p)
        mean = float(share[s, p])
        found[:, s, p] = cluster_excess(table.cluster[use], amount[use], moved, mean)
    return found


def _flipped(table: PairTable, stratum: int, place: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """The cells with a decision on both sides of a pair, and which of them are decided unlike."""
    value, reference = table.pairs[place]
    use = table.inside(stratum) & table.both((value, reference))
    return use, (table.decided[value] != table.decided[reference])[use].astype(np.float64)


def _align(
    tally: Tally, key: str, roles: Roles, union: Sequence[str]
) -> tuple[Codes, tuple[str, ...], str | None]:
    """Places among the classes of one decision key, brought there as the statistical lens does."""
    named = tally.relabel(key, union)
    one = Tally(
        labels={"decision": named.labels[key], "truth": tally.labels.get("truth", ())},
        codes={
            "decision": named.codes[key],
            "truth": tally.codes.get("truth", np.full(len(tally), -1, dtype=np.int64)),
        },
        sums={"n": tally.sums["n"]},
    )
    prepared, classes, positive = prepare(one, roles)
    return prepared.codes["decision"], classes, positive


def _truth(tally: Tally, roles: Roles, union: Sequence[str]) -> Codes:
    if "truth" not in tally.codes:
        return np.full(len(tally), -1, dtype=np.int64)
    one = Tally(
        labels={"truth": tally.labels["truth"], "decision": tuple(union)},
        codes={"truth": tally.codes["truth"], "decision": np.zeros(len(tally), dtype=np.int64)},
        sums={"n": tally.sums["n"]},
    )
    return prepare(one, roles)[0].codes["truth"]


def _own_values(tally: Tally, values: Sequence[str]) -> Codes:
    """For each cell the place of its own group among the values, −1 where it is not one."""
    if "group" not in tally.codes:
        return np.full(len(tally), -1, dtype=np.int64)
    return tally.relabel("group", list(values)).codes["group"]


def population(truth: Codes, place: int, rate: str) -> NDArray[np.bool_]:
    """The cells that count as cases of a class's rate."""
    if rate == "selection_rate":
        return np.ones(len(truth), dtype=bool)
    if rate == "true_positive_rate":
        return np.asarray(truth == place)
    return np.asarray((truth >= 0) & (truth != place))


def moved_pairs(
    table: PairTable, rate: str, sum_: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Hits gained, hits lost and cases, by (stratum, pair, class)."""
    size, shape = len(table.classes), table.shape
    amount = table.sums[sum_]
    truth = np.where(table.truth < 0, size, table.truth)
    out = np.zeros((3, *shape))
    for s in range(shape[0]):
        for p, pair in enumerate(table.pairs):
            use = table.inside(s) & table.both(pair)
            moved = use & (table.decided[pair[0]] != table.decided[pair[1]])
            sides = [
                np.bincount(
                    truth[moved] * size + table.decided[side][moved],
                    amount[moved],
                    minlength=(size + 1) * size,
                ).reshape(size + 1, size)
                for side in pair
            ]
            cases = np.bincount(truth[use], amount[use], minlength=size + 1)
            for end, side in enumerate(sides):
                own = np.diagonal(side)
                out[end, s, p] = {
                    "selection_rate": side.sum(axis=0),
                    "true_positive_rate": own,
                    "false_positive_rate": side[:size].sum(axis=0) - own,
                }[rate]
            out[2, s, p] = {
                "selection_rate": cases.sum(),
                "true_positive_rate": cases[:size],
                "false_positive_rate": cases[:size].sum() - cases[:size],
            }[rate]
    return out[0], out[1], out[2]


def _excess(table: PairTable, rate: str, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What `cluster_excess` gives for every gap, and the number of clusters behind it."""
    if table.gathered is not None:
        excess, clusters = (table.gathered[f"gap {rate}/{name}"] for name in EXCESS)
        return excess, clusters
    found = gap_excess(table, rate, value)
    return found[0], found[1]


def gap_excess(table: PairTable, rate: str, value: FloatArray) -> FloatArray:
    """What `cluster_excess` gives for every gap: (2, stratum, pair, class)."""
    assert table.cluster is not None
    found = np.zeros((2, *value.shape))
    amount = table.sums[weight_column(table.sums, rate) or "n"]
    for s, p, c in np.ndindex(*value.shape):
        pair = table.pairs[p]
        use = table.inside(s) & table.both(pair) & population(table.truth, c, rate)
        sign = (table.decided[pair[0]][use] == c).astype(float)
        sign -= table.decided[pair[1]][use] == c
        found[:, s, p, c] = cluster_excess(
            table.cluster[use], amount[use], sign, float(value[s, p, c])
        )
    return found


def cluster_excess(
    cluster: Codes, mass: FloatArray, d: FloatArray, mean: float
) -> tuple[float, float]:
    """Σ(a − m·n)² over clusters, and how many K have any weight.

    V = K/(K − 1) · Σ(a − m·n)² ÷ (Σn)² is the variance of the mean.
    """
    size = np.bincount(cluster, mass)
    excess = np.bincount(cluster, mass * d) - mean * size
    return float((excess[size > 0] ** 2).sum()), float((size > 0).sum())


def _distinct(keys: Codes, *, size: int) -> tuple[Codes, Codes]:
    """Where each distinct column first stands, and which of them every column is."""
    # As one number where it fits: sorting numbers is ten times as fast as sorting columns.
    if size ** len(keys) < 2**62:
        flat = np.zeros(keys.shape[1], dtype=np.int64)
        for row in keys:
            flat = flat * size + row + 1
        _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    else:
        _, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)
