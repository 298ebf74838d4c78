"""Tallies of scored rows by cell and cluster, and what a part of the clusters adds to products.

Products are added up over parts of the clusters wherever these lie, as those of rates are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import ordered
from evenhand.decisions.tallies.by_cluster import DistantClusters
from evenhand.decisions.tallies.scores import BINS, TENTHS, ScoreTally
from evenhand.decisions.tally import Tally
from evenhand.lenses.rows import Column, words
from evenhand.lenses.statistical.rates import method_name
from evenhand.stats.auc import Auc, area_products, products_area
from evenhand.stats.calibration import ClusteredBins, bin_products
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import left_out_sums, sum_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCells:
    """A tally of scored rows by (stratum, group, truth…), and how its rows count.

    `kind` is `counted`, `weighted` or `clustered`; clusters may be weighted too, and `distant`:
    then the tally is not by cluster.
    """

    tally: Tally
    strata: tuple[str | None, ...]
    groups: tuple[str, ...]
    kind: str
    weighted: bool
    distant: DistantClusters | None = None

    @classmethod
    def of(cls, *found: ScoreTally) -> "list[ScoreCells]":
        """The cells of several tallies, brought to the same groups and strata."""
        tallies = tuple(each.tally for each in found)
        for key in ("group", "stratum"):
            if key in tallies[0].labels:
                every = ordered({name for tally in tallies for name in tally.labels[key]})
                tallies = tuple(tally.relabel(key, every) for tally in tallies)
        return [
            cls._of(tally.relabel("y", ["0", "1"]), each.distant)
            for tally, each in zip(tallies, found, strict=True)
        ]

    @classmethod
    def of_part(cls, part: Tally, labels: Mapping[str, tuple[str, ...]]) -> "ScoreCells":
        """The cells of some clusters, brought to the labels of the whole table."""
        for key in ("group", "stratum", "y", "bin"):
            if key in labels:
                part = part.relabel(key, labels[key])
        return cls._of(part, None)

    @classmethod
    def _of(cls, tally: Tally, distant: DistantClusters | None) -> "ScoreCells":
        weighted = "w" in tally.sums
        clustered = "cluster" in tally.labels or distant is not None
        return cls(
            tally=tally,
            strata=tally.labels.get("stratum", (None,)),
            groups=tally.labels["group"],
            kind="clustered" if clustered else "weighted" if weighted else "counted",
            weighted=weighted,
            distant=distant,
        )

    @property
    def names(self) -> tuple[str, str]:
        """The sums of weights and of weighted placements: rows where none have weights."""
        return ("w", "wd") if self.weighted else ("n", "d")

    def dense(self, keys: list[str], sum_: str) -> FloatArray:
        """Sums by (stratum, group, …keys)."""
        by = ["stratum"] if "stratum" in self.tally.labels else []
        found = self.tally.dense([*by, "group", *keys], sum_)
        return found if by else found[None]

    def weight(self, keys: list[str]) -> FloatArray:
        """Weight by (stratum, group, …keys): rows where none have weights."""
        return self.dense(keys, self.names[0])

    def places(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which rows of the tally lie in a cell, and each one's cell number."""
        codes = self.tally.codes
        layer = codes.get("stratum", np.zeros(len(self.tally), dtype=np.int64))
        needed = [codes["group"], codes["y"], layer, codes.get("cluster", layer)]
        use = np.all([code >= 0 for code in needed], axis=0)
        return use, layer * len(self.groups) + codes["group"]

    def placed(self) -> dict[str, Any]:
        """Weight and weighted placements of every (cell, truth, cluster)."""
        use, cell = self.places()
        weight, placed = (self.tally.sums[name][use] for name in self.names)
        truth, cluster = (self.tally.codes[key][use] for key in ("y", "cluster"))
        return {
            "weight": weight, "placed": placed, "truth": truth, "cell": cell[use],
            "cluster": cluster,
        }  # fmt: skip

    def method(self, name: str) -> str:
        """The name of a method, with how rows count."""
        return method_name(name, self.kind)

    def on_grid(self, name: str, error: FloatArray) -> Column:
        """The method of each number from the grid, with how far it may lie from the scores'."""
        known = self.method(name)
        bounds, which = np.unique(_rounded_up(error), return_inverse=True)
        off = [f"{known}; from a grid of scores, at most {bound:.1e} off" for bound in bounds]
        told = words([one if bound > 0 else known for one, bound in zip(off, bounds)])
        return told[which].reshape(error.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartAreas:
    """What a part of the clusters adds to every product that areas need.

    A function of a tally of placements by whole clusters. `labels` are those of the whole table,
    `total` its weight by (cell, truth), `area` its areas; `reference` names for each cell the one
    it is compared with.
    """

    labels: Mapping[str, tuple[str, ...]]
    reference: NDArray[np.int64]
    total: FloatArray
    area: FloatArray

    def __call__(self, part: Tally) -> dict[str, FloatArray]:
        """Products by name."""
        return area_products(**ScoreCells.of_part(part, self.labels).placed(), **self._whole)

    def finish(self, products: Mapping[str, FloatArray]) -> tuple[Auc, FloatArray]:
        """The areas from the products of all clusters, and their covariance with the reference."""
        return products_area(products, **self._whole)

    @property
    def _whole(self) -> dict[str, Any]:
        return {"reference": self.reference, "total": self.total, "area": self.area}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBins:
    """What a part of the clusters adds to every product that calibration needs.

    A function of a tally of bins by whole clusters: `tenth/` the sums of `left_out_sums` by
    (cell, tenth), `line/` those of `bin_products` by cell. `labels` are those of the whole table,
    `scale` what makes weights as many as rows, `hits` and `total` the weights of all by (cell,
    tenth), `logits` and `chances` the lines fitted to all.
    """

    labels: Mapping[str, tuple[str, ...]]
    scale: FloatArray
    hits: FloatArray
    total: FloatArray
    logits: FloatArray
    chances: FloatArray

    def __call__(self, part: Tally) -> dict[str, FloatArray]:
        """Products by name."""
        cells = ScoreCells.of_part(part, self.labels)
        use, cell = cells.places()
        weight = cells.tally.sums[cells.names[0]][use]
        hits = weight * cells.tally.codes["y"][use]
        place, bins, cluster = cell[use], *(cells.tally.codes[k][use] for k in ("bin", "cluster"))
        tenth = place * TENTHS + bins // (BINS // TENTHS)
        pairs = sum_pairs(hits, weight, cell=tenth, cluster=cluster)
        scale = self.scale[place]
        held = ClusteredBins(
            line=place, bin=bins, cluster=cluster, hits=hits * scale, n=weight * scale
        )
        found = {
            "tenth": left_out_sums(pairs, hits=self.hits, total=self.total),
            "line": bin_products(held, logits=self.logits, chances=self.chances),
        }
        return {f"{kind}/{k}": v for kind, sums in found.items() for k, v in sums.items()}


def named(products: Mapping[str, FloatArray], prefix: str) -> dict[str, FloatArray]:
    """The products whose names begin so, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in products.items() if k.startswith(prefix)}


def _rounded_up(error: FloatArray) -> FloatArray:
    """Bounds in two digits, never below themselves; 0 where there is nothing to bound."""
    found = np.zeros(error.shape)
    there = error > 0
    places, which = np.unique(np.floor(np.log10(error[there])), return_inverse=True)
    # Powers of plain numbers: those of arrays may be off by a digit, and a bound by a step.
    step = np.array([10.0 ** (place - 1) for place in places.tolist()])[which]
    found[there] = np.ceil(error[there] / step) * step
    return found
