"""Rates of every group and class with the counts that their intervals need."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.lenses.measures import measure
from evenhand.lenses.rows import Column, choose
from evenhand.lenses.statistical.confusion import Confusion, weight_column
from evenhand.speech import plural
from evenhand.stats.estimate import FloatArray
from evenhand.stats.odds import (
    odds,
    odds_gap_limits,
    odds_limits,
    odds_ratio_limits,
    odds_slope,
)
from evenhand.stats.rates import Interval, koopman, newcombe, wilson
from evenhand.stats.weights import pair_certainty, weighted_rate

if TYPE_CHECKING:
    from evenhand.lenses.statistical.clusters import Clusters, GatheredClusters
    from evenhand.stats.cluster_products import ClusterProducts, ClusterSums

Effective = Callable[[FloatArray | float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The scale on which a rate is told: as its share, or as what is made of it.

    `value` takes shares and `slope` is its derivative; `alone`, `gap` and `ratio` are intervals
    from hits and cases, and `methods` their names.
    """

    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    alone: Callable[..., Interval]
    gap: Callable[..., Interval]
    ratio: Callable[..., Interval]
    methods: tuple[str, str, str]


SHARE = Scale(
    value=lambda share: share,
    slope=np.ones_like,
    alone=wilson,
    gap=newcombe,
    ratio=koopman,
    methods=("wilson", "newcombe", "koopman"),
)
ODDS = Scale(
    value=odds,
    slope=odds_slope,
    alone=odds_limits,
    gap=odds_gap_limits,
    ratio=odds_ratio_limits,
    methods=("wilson, as odds", "odds, squares added", "miettinen-nurminen"),
)
# What rests on fewer items than this has no interval.
FEWEST_ITEMS = 5
# By the kind of a measure that is counted from cells.
SCALES = {"rate": SHARE, "odds": ODDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRates:
    """A rate by (stratum, group, class): a share of cases, whatever the scale it is told on.

    `cases` are rows and `mass` is their weight; `effective(z)` gives the hits and cases to put
    into a binomial interval formula, which differ from the rows' own where rows are weighted or
    come in clusters. `clusters` is what is known of each, or of all, where rows come in any; of
    the rest of a group, `shared` is its covariance with that group. Of fewer than `fewest`
    clusters nothing is told but the rate, and `no_interval` says why, by (stratum, group, class).
    """

    value: FloatArray
    cases: FloatArray
    mass: FloatArray
    variance: FloatArray
    effective: Effective
    kind: str
    scale: Scale = SHARE
    clusters: "ClusterSums | ClusterProducts | None" = None
    shared: FloatArray | None = None
    fewest: int = 0
    no_interval: Column | None = None

    @property
    def on_scale(self) -> FloatArray:
        """The rate on its own scale; NaN where it has no value there."""
        return self.scale.value(self.value)

    @property
    def variance_on_scale(self) -> FloatArray:
        """The variance of the rate on its own scale, by the slope there."""
        with np.errstate(all="ignore"):
            return np.asarray(self.variance * self.scale.slope(self.value) ** 2)

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Where a rate has a value and nothing to tell how sure it is: its rows are one cluster."""
        return np.asarray((self.kind == "clustered") & (self.mass > 0) & np.isnan(self.variance))

    def reasons(self, one_cluster: str) -> Column:
        """Why rates have a value and no interval, or None."""
        return choose(self.unsure, one_cluster if self.no_interval is None else self.no_interval)

    def without(self, reasons: Column) -> "GroupRates":
        """The same rates with nothing told of how sure they are where there is a reason."""
        gone = reasons != None  # noqa: E711

        def effective(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
            hits, n = self.effective(z)
            return np.where(gone, np.nan, hits), np.where(gone, np.nan, n)

        variance = np.where(gone, np.nan, self.variance)
        return replace(self, variance=variance, effective=effective, no_interval=reasons)

    def certainty(self, reference: int) -> FloatArray | float:
        """How much surer a gap to this group is than its two rates, by (stratum, group, class).

        Clusters that both groups share, such as labelers who judge both, move both rates alike;
        effective counts are multiplied by this to give the gap's own variance.
        """
        if self.clusters is None:
            return 1.0
        variance, slope = self.variance_on_scale, self.scale.slope(self.value)
        apart = variance + variance[:, [reference]]
        shared = self.clusters.with_reference(reference)
        return _surer(apart, shared * slope * slope[:, [reference]])

    def certainty_of(self, group: "GroupRates") -> FloatArray | float:
        """How much surer the gaps of groups to the rest, which this is, are than both rates."""
        if self.shared is None:
            return 1.0
        slopes = self.scale.slope(self.value) * group.scale.slope(group.value)
        return _surer(self.variance_on_scale + group.variance_on_scale, self.shared * slopes)

    def shared_variance(self) -> FloatArray | None:
        """Covariance of every two groups through clusters, (stratum, class, group, group)."""
        return None if self.clusters is None else self.clusters.between_groups()

    def pair_certainty(self, shared: FloatArray | None) -> FloatArray | None:
        """How much surer the gap of every two groups is than their rates, as `certainty` is.

        `shared` is what `shared_variance` gives; (stratum, class, group, group).
        """
        if shared is None:
            return None
        return pair_certainty(np.moveaxis(self.variance, 1, -1), shared)

    def class_covariance(self, reference: int | None) -> tuple[FloatArray, FloatArray]:
        """Covariance of gaps over classes by clusters, and how many, by (stratum, group, …)."""
        assert self.clusters is not None
        return self.clusters.class_gaps(reference)

    def hiding(self, cells: NDArray[np.bool_]) -> "GroupRates":
        """The same without these cells: their cases stay counted, and nothing else is known."""
        if not cells.any():
            return self

        def effective(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
            hits, n = self.effective(z)
            return np.where(cells, np.nan, hits), np.where(cells, np.nan, n)

        return replace(
            self,
            value=np.where(cells, np.nan, self.value),
            variance=np.where(cells, np.nan, self.variance),
            effective=effective,
        )

    def unrevealing(self, cells: NDArray[np.bool_]) -> "GroupRates":
        """The same with these cells as uncertain as their cases can be, whatever their rates.

        A family has them as members, and tells nothing of them.
        """
        if not cells.any():
            return self
        with np.errstate(all="ignore"):
            return replace(
                self,
                value=np.where(cells, 0.5, self.value),
                variance=np.where(cells, 0.25 / self.cases, self.variance),
            )

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
            scale=self.scale,
            fewest=self.fewest,
            no_interval=None if self.no_interval is None else self.no_interval[:, groups],
        )


def few_items(items: FloatArray, fewest: int) -> Column:
    """Why numbers that rest on so few items have no interval, or None.

    Examples:
        >>> few_items(np.array([0.0, 1.0, 3.0, 5.0]), 5).tolist()
        [None, 'rests on 1 item', 'rests on 3 items', None]
    """
    reasons = np.full(items.shape, None, dtype=object)
    for place in zip(*np.nonzero((items > 0) & (items < fewest))):
        reasons[place] = f"rests on {plural(items[place], 'item')}"
    return reasons


def _surer(apart: FloatArray, shared: FloatArray) -> FloatArray:
    """Variances of both sides against that of their gap."""
    with np.errstate(all="ignore"):
        factor = apart / (apart - 2 * shared)
    return np.where(np.isfinite(factor) & (factor > 0), factor, 1.0)


def group_rates(
    table: Confusion,
    rate: str,
    *,
    clusters: "Clusters | GatheredClusters | None" = None,
    fewest: int = 0,
) -> GroupRates:
    """A rate by (stratum, group, class), from counts, weights or clusters.

    Clusters are items where a rate that rests on a `fewest` of them has an interval.
    """
    hits, cases = table.hits_and_cases(rate)
    if clusters is not None:
        return _clustered(table, rate, cases, clusters, fewest)
    weight, scale = weight_column(table.sums, rate), _scale_of(rate)
    if weight is None:
        return _plain(hits, cases, scale)
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
        scale=scale,
    )


def _scale_of(rate: str) -> Scale:
    return SCALES[measure(rate).kind]


def method_name(name: str, kind: str) -> str:
    """The name of a method, with how rows count where each is not simply one.

    Examples:
        >>> method_name("wilson", "counted"), method_name("wilson", "clustered")
        ('wilson', 'wilson, clustered')
    """
    return name if kind == "counted" else f"{name}, {kind}"


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
    """The rate of all other groups together, for every group."""
    if of.clusters is None:
        return group_rates(rest_of(table), rate)
    shape = of.value.shape
    rest, shared = of.clusters.rest()

    def effective(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        hits, n = rest.effective(z=np.broadcast_to(z, shape).reshape(-1))
        return hits.reshape(shape), n.reshape(shape)

    rates = GroupRates(
        value=rest.value.reshape(shape),
        cases=of.cases.sum(axis=1, keepdims=True) - of.cases,
        mass=of.mass.sum(axis=1, keepdims=True) - of.mass,
        variance=rest.variance.reshape(shape),
        effective=effective,
        kind="clustered",
        scale=of.scale,
        shared=shared.reshape(shape),
        fewest=of.fewest,
    )
    if not of.fewest:
        return rates
    return rates.without(few_items(rest.clusters.reshape(shape), of.fewest))


def _plain(hits: FloatArray, cases: FloatArray, scale: Scale) -> GroupRates:
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
        scale=scale,
    )


def _clustered(
    table: Confusion,
    rate: str,
    cases: FloatArray,
    clusters: "Clusters | GatheredClusters",
    fewest: int,
) -> GroupRates:
    weight = weight_column(table.sums, rate)
    known = clusters.of_rate(rate, weight)
    found = known.rate()
    shape = cases.shape

    def effective(z: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        hits, n = found.effective(z=np.broadcast_to(z, shape).reshape(-1))
        return hits.reshape(shape), n.reshape(shape)

    rates = GroupRates(
        value=found.value.reshape(shape),
        cases=cases,
        mass=cases if weight is None else table.hits_and_cases(rate, weight)[1],
        variance=found.variance.reshape(shape),
        effective=effective,
        kind="clustered",
        scale=_scale_of(rate),
        clusters=known,
        fewest=fewest,
    )
    return rates.without(few_items(found.clusters.reshape(shape), fewest)) if fewest else rates
