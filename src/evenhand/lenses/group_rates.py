"""Rates of every group and class with the counts that their intervals need."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.tally import Tally
from evenhand.lenses.confusion import RATE_CELLS, UNKNOWN, Confusion
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import clustered_covariance, clustered_rate, weighted_rate

Effective = Callable[[FloatArray | float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRates:
    """A rate by (stratum, group, class).

    `cases` are rows and `mass` is their weight; `effective(z)` gives the hits and cases to put
    into a binomial interval formula, which differ from the rows' own where rows are weighted or
    come in clusters.
    """

    value: FloatArray
    cases: FloatArray
    mass: FloatArray
    variance: FloatArray
    effective: Effective
    kind: str
    covariance: Callable[[int], FloatArray] | None = None

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Where a rate has a value and nothing to tell how sure it is: its rows are one cluster."""
        return np.asarray((self.kind == "clustered") & (self.mass > 0) & np.isnan(self.variance))

    def certainty(self, reference: int) -> FloatArray | float:
        """How much surer a gap to this group is than its two rates, by (stratum, group, class).

        Clusters that both groups share, such as labelers who judge both, move both rates alike;
        effective counts are multiplied by this to give the gap's own variance.
        """
        if self.covariance is None:
            return 1.0
        apart = self.variance + self.variance[:, [reference]]
        with np.errstate(all="ignore"):
            factor = apart / (apart - 2 * self.covariance(reference))
        return np.where(np.isfinite(factor) & (factor > 0), factor, 1.0)

    def take(self, groups: list[int]) -> "GroupRates":
        """The rates of some groups."""

        def effective(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
            hits, n = self.effective(z)
            return hits[:, groups], n[:, groups]

        return GroupRates(
            value=self.value[:, groups],
            cases=self.cases[:, groups],
            mass=self.mass[:, groups],
            variance=self.variance[:, groups],
            effective=effective,
            kind=self.kind,
        )


def group_rates(table: Confusion, rate: str, *, clusters: Tally | None = None) -> GroupRates:
    """A rate by (stratum, group, class), from counts, weights or clusters."""
    hits, cases = table.hits_and_cases(rate)
    if clusters is not None:
        return _clustered(table, rate, cases, clusters)
    weight = weight_column(table.sums, rate)
    if weight is None:
        return _plain(hits, cases)
    hit_weight, weights = table.hits_and_cases(rate, weight)
    hit_squares, squares = table.hits_and_cases(rate, f"{weight}2")
    found = weighted_rate(
        hit_weight,
        weights - hit_weight,
        hit_squares=hit_squares,
        miss_squares=squares - hit_squares,
    )
    return GroupRates(
        value=found.value,
        cases=cases,
        mass=weights,
        variance=found.variance,
        effective=lambda z: (found.hits, found.n),
        kind="weighted",
    )


def weight_column(sums: dict[str, FloatArray], rate: str) -> str | None:
    """Which sum weighs this rate: reviews stand for the unreviewed wherever truth is needed."""
    if rate != "selection_rate" and "reviewed" in sums:
        return "reviewed"
    return "weight" if "weight" in sums else None


def rest_of(table: Confusion) -> Confusion:
    """The table in which every group is replaced by all the others together."""
    sums = {k: v.sum(axis=1, keepdims=True) - v for k, v in table.sums.items()}
    return Confusion(
        classes=table.classes,
        groups=table.groups,
        strata=table.strata,
        sums=sums,
        joint=None,
        positive=table.positive,
        has_truth=table.has_truth,
    )


def rest_rates(table: Confusion, rate: str, *, of: GroupRates) -> GroupRates:
    """The rate of all other groups together, for every group.

    With clusters the groups' variances are combined as if no cluster spanned two groups; a group
    whose rows are one cluster counts as one case, which is all that is known of it.
    """
    if of.kind != "clustered":
        return group_rates(rest_of(table), rate)
    cases = of.cases.sum(axis=1, keepdims=True) - of.cases
    mass = of.mass.sum(axis=1, keepdims=True) - of.mass
    with np.errstate(all="ignore"):
        hits = np.nan_to_num(of.value * of.mass)
        value = (hits.sum(axis=1, keepdims=True) - hits) / mass
        every = hits.sum(axis=1, keepdims=True) / of.mass.sum(axis=1, keepdims=True)
        variances = np.where(of.unsure, every * (1 - every), of.variance)
        spread = np.nan_to_num(variances * of.mass**2)
        variance = (spread.sum(axis=1, keepdims=True) - spread) / mass**2
        n = np.minimum(np.where(variance > 0, value * (1 - value) / variance, cases), cases)
    return GroupRates(
        value=value,
        cases=cases,
        mass=mass,
        variance=variance,
        effective=lambda z: (value * n, n),
        kind="clustered",
    )


def _plain(hits: FloatArray, cases: FloatArray) -> GroupRates:
    with np.errstate(all="ignore"):
        value = hits / cases
        variance = value * (1 - value) / cases
    return GroupRates(
        value=value,
        cases=cases,
        mass=cases,
        variance=variance,
        effective=lambda z: (hits, cases),
        kind="counted",
    )


def _clustered(table: Confusion, rate: str, cases: FloatArray, clusters: Tally) -> GroupRates:
    parts = _cluster_sums(table, rate, clusters)
    squares = parts.pop("squares")
    found = clustered_rate(**parts, squares=squares, cells=cases.size)
    shape = cases.shape

    def covariance(reference: int) -> FloatArray:
        places = np.arange(cases.size).reshape(shape)
        compared = np.broadcast_to(places[:, [reference]], shape).reshape(-1)
        return clustered_covariance(**parts, reference=compared).reshape(shape)

    weight = weight_column(table.sums, rate)

    def effective(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        hits, n = found.effective(z=np.broadcast_to(z, shape).reshape(-1))
        return hits.reshape(shape), n.reshape(shape)

    return GroupRates(
        value=found.value.reshape(shape),
        cases=cases,
        mass=cases if weight is None else table.hits_and_cases(rate, weight)[1],
        variance=found.variance.reshape(shape),
        effective=effective,
        kind="clustered",
        covariance=covariance,
    )


def _cluster_sums(table: Confusion, rate: str, tally: Tally) -> dict[str, NDArray[Any]]:
    """Hits and cases of every cluster in every (stratum, group, class)."""
    weight = weight_column(tally.sums, rate) or "n"
    squares = f"{weight}2" if weight != "n" else "n"
    hit_mask, case_mask = (np.array(mask) for mask in RATE_CELLS[rate])
    codes = tally.codes
    size = len(table.classes)
    usable = (codes["group"] >= 0) & (codes["cluster"] >= 0)
    pieces: list[tuple[FloatArray, ...]] = []
    # The first pass counts every row into the whole table, the second into its own stratum.
    for stratum in (np.zeros(len(tally), dtype=np.int64), codes["stratum"] + 1):
        inside = usable & (stratum > 0) if stratum.any() else usable
        cell = (stratum * len(table.groups) + codes["group"]) * size
        for place, name in enumerate(table.classes):
            state = np.where(codes["truth"] < 0, UNKNOWN, (codes["truth"] == place).astype(int))
            for decided in (0, 1):
                amount, own = (
                    _decided(tally, kind, place, name)[decided] for kind in (weight, squares)
                )
                keep = inside & (case_mask[state, decided] > 0) & (amount > 0)
                hits = amount * hit_mask[state, decided]
                parts = (hits, amount, cell + place, codes["cluster"], own)
                pieces.append(tuple(part[keep] for part in parts))
        if len(table.strata) == 1:
            break
    names = ("hit_weight", "weight", "cell", "cluster", "squares")
    return {name: np.concatenate(part) for name, part in zip(names, zip(*pieces))}


def _decided(tally: Tally, kind: str, place: int, name: str) -> tuple[FloatArray, FloatArray]:
    """A sum of each tally row split into what was not decided for a class and what was."""
    amount = tally.sums[kind]
    if "decision" in tally.codes:
        decision = tally.codes["decision"]
        return amount * ((decision >= 0) & (decision != place)), amount * (decision == place)
    column = f"hit:{name}" if kind == "n" else f"hit:{name}:{kind}"
    hit = tally.sums.get(column, np.zeros_like(amount))
    return amount - hit, hit
