"""Hits and cases of every cluster, from the tally by cluster, laid out once for all rates.

A rate counts some states of truth and decision, so the sums of a cluster by state serve every
rate; which clusters occur where, and in which order, is found once. Where the clusters stay on an
engine, each part of them is laid out there, and what comes back are sums of products.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.roles import Roles
from evenhand.decisions.tally import Codes, Tally
from evenhand.lenses.measures import cells_of, counted_rates
from evenhand.lenses.statistical.confusion import UNKNOWN, Confusion, prepare, weight_column
from evenhand.stats.cluster_products import ClusterProducts, ClusterSums, Shape, products_of_part
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import distinct

# States of truth for a class by decided or not; sums of so many clusters and classes are kept.
STATES, MOST_KEPT = 6, 2**22


@dataclass(frozen=True)
class Clusters:
    """The tally of an attribute by cluster, seen as sums by (stratum, group) and cluster.

    The first stratum is the whole table, as in the `table` of counts. Neither holds a row whose
    group or cluster is missing.
    """

    tally: Tally
    table: Confusion
    _kept: dict[tuple[str, int], FloatArray] = field(default_factory=dict)

    @cached_property
    def _rows(self) -> tuple[Codes, Codes]:
        """Places of the tally's cells, each in the whole table and in its stratum, and layers."""
        codes = self.tally.codes
        usable = np.flatnonzero((codes["group"] >= 0) & (codes["cluster"] >= 0))
        if len(self.table.strata) == 1:
            return usable, np.zeros(usable.size, dtype=np.int64)
        inside = usable[codes["stratum"][usable] >= 0]
        layer = np.concatenate([np.zeros(usable.size, np.int64), codes["stratum"][inside] + 1])
        return np.concatenate([usable, inside]), layer

    @cached_property
    def _width(self) -> int:
        return int(self.tally.codes["cluster"].max(initial=0)) + 1

    @cached_property
    def _pairs(self) -> tuple[Codes, Codes]:
        """Keys of every (stratum, group, cluster) in order, and the place of each row's."""
        rows, layer = self._rows
        whose = layer * len(self.table.groups) + self.tally.codes["group"][rows]
        return distinct(whose * self._width + self.tally.codes["cluster"][rows])

    @cached_property
    def _order(self) -> tuple[Codes, Codes, Codes]:
        """Where (class, pair) goes in the order of (cell, cluster); those cells and clusters."""
        key, _ = self._pairs
        whose, cluster = np.divmod(key, self._width)
        size = len(self.table.classes)
        counts = np.bincount(whose, minlength=1)
        start = np.cumsum(counts) - counts
        within = np.arange(key.size) - start[whose]
        first = start[whose] * size + within
        place = first[None, :] + np.arange(size)[:, None] * counts[whose][None, :]
        cells, clusters = (np.empty(place.size, dtype=np.int64) for _ in range(2))
        cells[place] = whose[None, :] * size + np.arange(size)[:, None]
        clusters[place] = cluster[None, :]
        return place, cells, clusters

    def of_rate(self, rate: str, weight: str | None) -> ClusterSums:
        """What is known of every cluster's hits and cases of a rate."""
        sums = self.sums(rate, weight)
        squares = sums.pop("squares")
        return ClusterSums(sums=sums, squares=squares, shape=shape_of(self.table))

    def sums(self, rate: str, weight: str | None) -> dict[str, NDArray[Any]]:
        """Hits and cases of every cluster in every (stratum, group, class), in order.

        `weight` is the sum that weighs the rate. Clusters without cases are left out.
        """
        place, cells, clusters = self._order
        masks = [np.asarray(mask, np.float64).reshape(-1) for mask in cells_of(rate).masks]
        amount = weight or "n"
        wanted = {"hit_weight": (amount, masks[0]), "weight": (amount, masks[1])}
        if weight is not None:
            wanted["squares"] = (f"{weight}2", masks[1])
        held = {name: np.empty(place.size) for name in wanted}
        for each in range(len(self.table.classes)):
            for name, (kind, mask) in wanted.items():
                held[name][place[each]] = mask @ self._by_state(kind, each)
        cases = held["weight"] > 0
        if not cases.all():
            held = {name: values[cases] for name, values in held.items()}
            cells, clusters = cells[cases], clusters[cases]
        held.setdefault("squares", held["weight"])
        return {**held, "cell": cells, "cluster": clusters}

    def _by_state(self, kind: str, place: int) -> FloatArray:
        """A sum of each pair by (truth's state for a class, decided): STATES × pairs."""
        found = self._kept.get((kind, place))
        if found is None:
            found = self._count(kind, place)
            if found.size * (len(self._kept) + 1) <= MOST_KEPT * STATES:
                self._kept[kind, place] = found
        return found

    def _count(self, kind: str, place: int) -> FloatArray:
        rows, _ = self._rows
        key, pair = self._pairs
        truth = self.tally.codes["truth"][rows]
        state = np.where(truth < 0, UNKNOWN, (truth == place).astype(np.int64))
        amount = self.tally.sums[kind][rows]
        size = STATES * key.size
        if "decision" in self.tally.codes:
            decision = self.tally.codes["decision"][rows]
            amount = np.where(decision >= 0, amount, 0.0)
            flat = (2 * state + (decision == place)) * key.size + pair
            return np.asarray(np.bincount(flat, amount, size), np.float64).reshape(STATES, -1)
        name = self.table.classes[place]
        column = f"hit:{name}" if kind == "n" else f"hit:{name}:{kind}"
        hit = self.tally.sums[column][rows] if column in self.tally.sums else 0.0 * amount
        flat = 2 * state * key.size + pair
        missed, decided = (
            np.bincount(flat, amount - hit, size),
            np.bincount(flat + key.size, hit, size),
        )
        return np.asarray(missed + decided, np.float64).reshape(STATES, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartProducts:
    """What a part of the clusters adds to every product that an attribute's rates need.

    A function of a tally of whole clusters by (group, stratum, truth, decision), to be called
    where they lie: `labels` are those of the whole table, `table` its counts, `reference` the
    place of the group that others are compared with, None for all others; `rates` those wanted,
    all of them where they are not named.
    """

    table: Confusion
    roles: Roles
    labels: Mapping[str, tuple[str, ...]]
    reference: int | None
    rates: Sequence[str] | None = None

    def __call__(self, part: Tally) -> dict[str, FloatArray]:
        """Sums by name, of every rate, and how many clusters there are (`units`)."""
        for key, labels in self.labels.items():
            if key in part.labels and key != "cluster":
                part = part.relabel(key, labels)
        used = part.codes["cluster"][(part.codes["cluster"] >= 0) & (part.codes["group"] >= 0)]
        found = {"units": np.array([float(np.unique(used).size)])}
        clusters = Clusters(prepare(part, self.roles)[0], self.table)
        for rate in self.rates or counted_rates(truth=self.table.has_truth):
            weight = weight_column(self.table.sums, rate)
            sums = clusters.sums(rate, weight)
            del sums["squares"]
            hits, total = self.table.hits_and_cases(rate, weight or "n")
            products = products_of_part(
                sums,
                hits=hits.reshape(-1),
                total=total.reshape(-1),
                shape=shape_of(self.table),
                reference=self.reference,
                over_classes=len(self.table.classes) > 2,
            )
            found |= {f"{rate}/{name}": values for name, values in products.items()}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredClusters:
    """The products of all clusters, added up by the engine that holds them."""

    table: Confusion
    products: Mapping[str, FloatArray]

    @property
    def units(self) -> int:
        """How many clusters there are."""
        return int(self.products["units"][0])

    def of_rate(self, rate: str, weight: str | None) -> ClusterProducts:
        """What is known of all clusters' hits and cases of a rate."""
        hits, total = self.table.hits_and_cases(rate, weight or "n")
        _, squares = self.table.hits_and_cases(rate, f"{weight}2" if weight else "n")
        prefix = f"{rate}/"
        own = {k.removeprefix(prefix): v for k, v in self.products.items() if k.startswith(prefix)}
        return ClusterProducts(
            hits=hits.reshape(-1),
            total=total.reshape(-1),
            squares=squares.reshape(-1),
            shape=shape_of(self.table),
            products=own,
        )


def shape_of(table: Confusion) -> Shape:
    """Strata, groups and classes of a table of counts."""
    return len(table.strata), len(table.groups), len(table.classes)
