"""The units that rows come in, and what is counted by them: labelers or clusters, and items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenhand.decisions.counts import count_attributes
from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.shared_items import SharedItems
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.lenses.rows import Options
from evenhand.lenses.scope import Scope, choose_reference, rule_name
from evenhand.lenses.statistical.confusion import Confusion, confusion, prepare
from evenhand.lenses.statistical.rates import FEWEST_ITEMS

if TYPE_CHECKING:
    from evenhand.decisions.tallies.scores import ScoreTallies
    from evenhand.lenses.statistical.clusters import Clusters, GatheredClusters

LENS = "statistical"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCounts:
    """Rows in units of one kind, if any, and what is counted of them.

    `tallies` are those of every attribute. Units are items where `fewest` is not 0: numbers that
    rest on fewer have no interval.
    """

    decisions: Decisions
    tallies: list[Tally]
    scores: "ScoreTallies | None"
    fewest: int

    @classmethod
    def of(cls, decisions: Decisions, *, fewest: int = 0) -> "UnitCounts":
        """What is counted of decisions in the units that their roles name."""
        return cls(
            decisions=decisions,
            tallies=count_units(decisions),
            scores=_held_scores(decisions),
            fewest=fewest,
        )

    def units(self, place: int, options: Options, *, like: Tally) -> "Units":
        """The units of an attribute, their labels those of another tally of the same rows."""
        tally, roles = self.tallies[place], self.decisions.roles
        for key, labels in like.labels.items():
            if key != "cluster" and tally.labels.get(key, labels) != labels:
                tally = tally.relabel(key, labels)
        attribute = roles.attributes[place]
        gathered = gather_clusters(self.decisions, tally, attribute, options)
        if gathered is not None and self.scores is not None:
            self.scores.apart.add(attribute.name)
        return Units(tally=tally, gathered=gathered, fewest=self.fewest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of an attribute's rows: a tally that is by them, or what an engine says of them."""

    tally: Tally
    gathered: "GatheredClusters | None" = None
    fewest: int = 0

    def clusters(self, roles: Roles, table: Confusion) -> "Clusters | GatheredClusters | None":
        """What rates need of them; None where rows come in none."""
        if "cluster" not in self.tally.labels:
            return self.gathered
        from evenhand.lenses.statistical.clusters import Clusters

        return Clusters(prepare(self.tally, roles)[0], table)

    @property
    def count(self) -> int:
        """How many they are."""
        if self.gathered is not None:
            return self.gathered.units
        codes = self.tally.codes
        used = codes["cluster"][(codes["cluster"] >= 0) & (codes["group"] >= 0)]
        return int(np.count_nonzero(np.bincount(used, minlength=1)))


def kinds_of_unit(decisions: Decisions, shared: SharedItems | None) -> list[UnitCounts]:
    """Rows by labeler or cluster, if any, and by item where an item has more than one label."""
    if shared is None:
        return [UnitCounts.of(decisions)]
    if shared.second is None:
        return [UnitCounts.of(shared.first, fewest=FEWEST_ITEMS if shared.by_item else 0)]
    return [UnitCounts.of(shared.first), UnitCounts.of(shared.second, fewest=FEWEST_ITEMS)]


def count_units(decisions: Decisions) -> list[Tally]:
    """Counts of every attribute, by unit where decisions come in any."""
    roles = decisions.roles
    clustered = roles.rule is not None and roles.together is not None
    return count_attributes(decisions, roles.attributes, cluster=clustered)


def unit_details(units: Sequence[Units], roles: Roles) -> dict[str, object]:
    """How many units the rows of an attribute come from, and what they are.

    `roles` are those given. Items beside labelers or clusters are counted apart.
    """
    if roles.together is None:
        return {"unit": "items", "column": roles.item, "count": units[0].count}
    unit = "clusters" if roles.cluster else "labelers"
    known = {"unit": unit, "column": roles.together, "count": units[0].count}
    return known if len(units) == 1 else known | {"items": units[1].count}


def score_columns(roles: Roles) -> list[str]:
    """The score columns that are held against a truth."""
    if roles.truth is None:
        return []
    return [roles.score] if roles.score else list(roles.scores.values())


def _held_scores(decisions: Decisions) -> "ScoreTallies | None":
    """What is counted of scores; without any, all that measures them is not even imported."""
    columns = score_columns(decisions.roles)
    if not columns:
        return None
    from evenhand.decisions.tallies.scores import ScoreTallies

    return ScoreTallies(decisions, columns)


def gather_clusters(
    decisions: Decisions, tally: Tally, attribute: Attribute, options: Options
) -> "GatheredClusters | None":
    """Products over clusters from the engine, where the clusters themselves stay there."""
    if "clustered" not in tally.codes:
        return None
    from evenhand.decisions.tallies.by_cluster import DistantClusters
    from evenhand.lenses.statistical.clusters import GatheredClusters, PartProducts

    table = confusion(tally, decisions.roles)
    scope = attribute_scope(table, attribute, decisions.roles, options)
    part = PartProducts(
        table=table, roles=decisions.roles, labels=tally.labels, reference=scope.place
    )
    rows = decisions._on_engine
    question = rows.count_question(attribute, cluster=True)
    distant = DistantClusters(decisions=rows, question=question)
    return GatheredClusters(table=table, products=distant.add_up(part))


def attribute_scope(
    table: Confusion, attribute: Attribute, roles: Roles, options: Options
) -> Scope:
    """What the rows of one attribute share."""
    sizes = table.sums["n"][0, :, 0].sum(axis=(-2, -1))
    return Scope(
        lens=LENS,
        attribute=attribute.name,
        rule=rule_name(roles),
        level=options.level,
        seed=options.seed,
        classes=table.classes,
        groups=table.groups,
        strata=table.strata,
        reference=choose_reference(table.groups, sizes, roles.reference.get(attribute.name)),
        mirrored=table.positive is not None,
        keep_small=options.keep_small,
    )
