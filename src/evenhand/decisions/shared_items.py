"""Items with more than one label: whether there are any, and decisions whose clusters they are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np

from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallied import TalliedDecisions
from evenhand.decisions.tallies.sets import Tallies, table_name
from evenhand.decisions.tally import Tally

# What a tally set keeps of it beside the extremes of numbers: how many labels an item has at most.
MOST_LABELS = "max:labels of one item"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedItems:
    """Decisions of which some items have more than one label.

    `first` has the cluster or the labeler for its units, or the item where neither is named, and
    `second` the item; None where `first` has it or where a tally set does not say which labels
    fall on one item. Both hold the rows whose item is named; `unnamed` are the others.
    """

    first: Decisions
    second: Decisions | None
    unnamed: int = 0

    @property
    def by_item(self) -> bool:
        """Whether what the labels of one item have in common is known."""
        roles = self.first.roles
        return self.second is not None or roles.together == roles.item


def shared_items(decisions: Decisions) -> SharedItems | None:
    """The decisions by item too, where an item has more than one label; None where none has.

    Examples:
        >>> table = {"d": [1, 0, 1], "who": ["a", "b", "b"], "post": [7, 7, 8], "g": ["f"] * 3}
        >>> decisions = Decisions(table, decision="d", labeler="who", item="post", group="g")
        >>> found = shared_items(decisions)
        >>> found.first.roles.together, found.second.roles.together
        ('who', 'post')
        >>> once = Decisions(table | {"post": [7, 8, 9]}, decision="d", item="post", group="g")
        >>> shared_items(once) is None
        True
    """
    item, together = decisions.roles.item, decisions.roles.together
    if item is None:
        return None
    if decisions.tallies is not None:
        return _of_tallies(decisions)
    most, unnamed = labels_of_items(decisions)
    if most <= 1:
        return None
    if together in (None, item):
        return SharedItems(first=_by(decisions, item), second=None)
    first, second = decisions, _by(decisions, item)
    if unnamed:
        first = _named(first, item)
    return SharedItems(first=first, second=_named(second, item, str(together)), unnamed=unnamed)


def labels_of_items(decisions: Decisions) -> tuple[int, int]:
    """How many decisions fall on one item at most, and how many on items without a name.

    Examples:
        >>> table = {"d": [1, 0, 1, 1], "post": [7, 7, 8, None], "g": ["f"] * 4}
        >>> labels_of_items(Decisions(table, decision="d", item="post", group="g"))
        (2, 1)
    """
    counted = decisions.__dict__.setdefault("labels_of_items", {})
    item = str(decisions.roles.item)
    if item not in counted:
        frame = decisions.frame
        if decisions.roles.rule not in (None, "one-versus-rest"):
            frame = frame.filter(~decisions.decision_expression().is_null())
        named = nw.when(~nw.col("item").is_null())
        unnamed = nw.when(nw.col("item").is_null())
        sizes = (
            frame.select(nw.col(item).alias("item"))
            .group_by("item")
            .agg(nw.len().alias("labels"))
            .select(
                named.then(nw.col("labels")).alias("most"),
                unnamed.then(nw.col("labels")).alias("unnamed"),
            )
            .select(nw.col("most").max(), nw.col("unnamed").max())
        )
        found = decisions.collect(sizes)
        counted[item] = tuple(int(found[name][0] or 0) for name in ("most", "unnamed"))
    most, without = counted[item]
    return most, without


def _by(decisions: Decisions, item: str) -> Decisions:
    """The same table with the items for clusters."""
    return decisions.with_roles(cluster=item)


def _named(decisions: Decisions, *columns: str) -> Decisions:
    """The rows that have a value in these columns."""
    found = decisions.with_roles()
    found.frame = decisions.frame.filter(*(~nw.col(column).is_null() for column in columns))
    return found


def _of_tallies(decisions: Decisions) -> SharedItems | None:
    """The same of a tally set: from its counts by item, where they count what the others do."""
    tallies = decisions.tallies
    assert tallies is not None
    stored = _stored(tallies)
    known = tallies.survey.get(MOST_LABELS)
    most = max(known or 0.0, *(map(_most, stored.values())), 0.0)
    # Who is in two parts of a merged set only counts by item tell; older sets say nothing at all.
    unsure = decisions.roles.together is not None and not stored
    unsure = unsure and (known is None or tallies.parts > 1)
    if most <= 1 and not unsure:
        return None
    by_item = _counted_by_item(tallies, stored)
    if by_item is None or decisions.roles.together == decisions.roles.item:
        return SharedItems(first=decisions, second=None)
    return SharedItems(first=decisions, second=TalliedDecisions(by_item))


def _stored(tallies: Tallies) -> dict[str, Tally]:
    """The counts by item that a set holds, by the names of the attributes."""
    names = {each.name: table_name("items", each.name) for each in tallies.roles.attributes}
    return {name: tallies.tables[of] for name, of in names.items() if of in tallies.tables}


def _most(tally: Tally) -> float:
    """How many labels an item has at most."""
    items = tally.codes["item"]
    labels = np.bincount(items[items >= 0], tally.sums["n"][items >= 0])
    return float(labels.max(initial=0.0))


def _counted_by_item(tallies: Tallies, stored: Mapping[str, Tally]) -> Tallies | None:
    """The set with counts by item in place of those by labeler or cluster; None where they differ.

    Labels without a truth or a name, weights and withheld cells are not counted by item.
    """
    tables = dict(tallies.tables)
    for attribute in tallies.roles.attributes:
        found = _as_clusters(tables, attribute, stored.get(attribute.name))
        if found is None:
            return None
        tables[table_name("counts", attribute.name)] = found
    roles = replace(tallies.roles, cluster=tallies.roles.item)
    return replace(tallies, tables=tables, roles=roles)


def _as_clusters(
    tables: Mapping[str, Tally], attribute: Attribute, by_item: Tally | None
) -> Tally | None:
    counts = tables.get(table_name("counts", attribute.name))
    if counts is None or by_item is None or set(counts.sums) != {"n"}:
        return None
    if not {"cluster", "truth", "decision"} <= set(counts.labels):
        return None
    used = counts.take((counts.codes["cluster"] >= 0) & (counts.codes["decision"] >= 0))
    same = used.without("cluster").pruned(), by_item.without("item").pruned()
    if same[0].fingerprint() != same[1].fingerprint():
        return None
    return Tally(
        labels={("cluster" if k == "item" else k): v for k, v in by_item.labels.items()},
        codes={("cluster" if k == "item" else k): v for k, v in by_item.codes.items()},
        sums=by_item.sums,
    )
