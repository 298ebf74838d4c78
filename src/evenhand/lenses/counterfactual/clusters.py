"""Pairs whose clusters stay in Spark: what each part of them adds to what gaps and flips need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.decisions.roles import Roles
from evenhand.decisions.tallies.by_cluster import DistantClusters
from evenhand.decisions.tally import Tally
from evenhand.lenses.counterfactual.pairs import (
    EXCESS,
    PairTable,
    cluster_moves,
    flip_excess,
    flip_shares,
    gap_excess,
    gap_moves,
    moved_pairs,
    pair_table,
)
from evenhand.lenses.measures import COUNTERFACTUAL_RATES
from evenhand.lenses.statistical.clusters import PartProducts
from evenhand.lenses.statistical.confusion import confusion, weight_column
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPairs:
    """What a part of the clusters adds to every product that paired gaps and flips need.

    A function of a tally of pairs by whole clusters. `labels` are those of the whole table,
    `gaps` and `cases` its gaps and the weight of their cases by rate, `flipped` the share of
    pairs decided differently; `rates` add up what the statistical gaps beside them need.
    """

    roles: Roles
    labels: Mapping[str, tuple[str, ...]]
    values: Sequence[str]
    gaps: Mapping[str, FloatArray]
    cases: Mapping[str, FloatArray]
    flipped: FloatArray
    rates: PartProducts | None

    def __call__(self, part: Tally) -> dict[str, FloatArray]:
        """Sums by name, and how many clusters there are (`units`)."""
        for key, labels in self.labels.items():
            if key in part.labels:
                part = part.relabel(key, labels)
        table = pair_table(part, self.roles, self.values)
        found: dict[str, FloatArray] = {}
        if self.rates is not None:
            found |= self.rates(as_decided(part, table, self.roles))
        found["units"] = np.array([float(cluster_count(table))])
        found |= {
            f"flip/{name}": each for name, each in zip(EXCESS, flip_excess(table, self.flipped))
        }
        for rate, value in self.gaps.items():
            excess = gap_excess(table, rate, value)
            found |= {f"gap {rate}/{name}": each for name, each in zip(EXCESS, excess)}
            if len(table.classes) > 2:
                found |= self._moves(table, rate)
        return found

    def _moves(self, table: PairTable, rate: str) -> dict[str, FloatArray]:
        """Products over classes of how far clusters move gaps, and how many there are."""
        strata, pairs, classes = table.shape
        moves, present = np.zeros((strata, pairs, classes, classes)), np.zeros((strata, pairs))
        for place in np.ndindex(strata, pairs):
            moved, mass, _, cluster = gap_moves(
                table, rate, place, self.gaps[rate][place], self.cases[rate][place]
            )
            columns, present[place] = cluster_moves(moved, mass, cluster)
            moves[place] = columns.T @ columns
        return {f"gap {rate}/moves": moves, f"gap {rate}/present": present}


def with_clusters(
    table: PairTable, tally: Tally, roles: Roles, distant: DistantClusters
) -> PairTable:
    """The table with what its clusters, which stay in Spark, do to gaps and flips."""
    rates = COUNTERFACTUAL_RATES if table.has_truth else ("selection_rate",)
    gaps, cases = {}, {}
    for rate in rates:
        up, down, cases[rate] = moved_pairs(table, rate, weight_column(table.sums, rate) or "n")
        with np.errstate(all="ignore"):
            gaps[rate] = (up - down) / cases[rate]
    beside = None
    if "group" in tally.labels and table.factual is not None:
        counted = as_decided(tally, table, roles)
        cells = confusion(counted, roles)
        beside = PartProducts(
            table=cells, roles=roles, labels=counted.labels, reference=None, rates=rates
        )
    part = PartPairs(
        roles=roles,
        labels={k: v for k, v in tally.labels.items() if k != "clustered"},
        values=table.values,
        gaps=gaps,
        cases=cases,
        flipped=flip_shares(table)[0],
        rates=beside,
    )
    return replace(table, gathered=distant.add_up(part))


def cluster_count(table: PairTable) -> int:
    """How many clusters the pairs come from."""
    if table.gathered is not None:
        return int(table.gathered["units"][0])
    assert table.cluster is not None
    return len(np.unique(table.cluster[table.cluster >= 0]))


def as_decided(tally: Tally, table: PairTable, roles: Roles) -> Tally:
    """The tally without the counterfactual keys, its decisions named by the same classes."""
    wanted = ("group", "stratum", "truth", "decision", "cluster", "clustered")
    keys = [key for key in wanted if key in tally.labels]
    factual = Tally(
        labels={k: tally.labels[k] for k in keys},
        codes={k: tally.codes[k] for k in keys},
        sums=tally.sums,
    )
    return factual if roles.rule == "score>=t" else factual.relabel("decision", table.labels)
