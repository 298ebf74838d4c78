"""Tallies of labelers: who said what of which group's items, and how items were judged."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.decisions.question import Question
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.sets import table_name
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTable:
    """Every distinct item: its group's and stratum's number, truth, yeses and labels.

    `stratum` is -1 outside all strata. An item whose truth, group or stratum differs between
    rows counts once for each.
    """

    group: FloatArray
    stratum: FloatArray
    truth: FloatArray
    yes: FloatArray
    labels: FloatArray

    @property
    def repeated(self) -> bool:
        """Whether any item was judged more than once."""
        return bool((self.labels > 1).any())

    def take(self, which: Any) -> "ItemTable":
        """The items of a mask."""
        return ItemTable(
            group=self.group[which],
            stratum=self.stratum[which],
            truth=self.truth[which],
            yes=self.yes[which],
            labels=self.labels[which],
        )


def label_counts(
    decisions: Decisions, attribute: Attribute, *, longest_seconds: float | None = None
) -> Tally:
    """Counts by (group, stratum, labeler, truth, decision) in one aggregation.

    With response times also `timed`, `seconds` and `seconds2`: how many usable times there are
    (above 0 and at most `longest_seconds`), their sum and the sum of their squares.

    Examples:
        >>> table = {"y": [1, 0, 1], "d": [1, 0, 0], "who": ["a", "a", "b"], "g": ["f", "f", "m"]}
        >>> decisions = Decisions(table, truth="y", decision="d", labeler="who", group="g")
        >>> tally = label_counts(decisions, decisions.roles.attributes[0])
        >>> tally.dense(["labeler", "group"], "n").tolist()
        [[2.0, 0.0], [0.0, 1.0]]
    """
    if decisions.tallies is not None:
        return decisions.tallies.table(table_name("labels", attribute.name))
    question = label_question(decisions, attribute, longest_seconds=longest_seconds)
    return decisions.answer([question])[0]


def label_question(
    decisions: Decisions, attribute: Attribute, *, longest_seconds: float | None = None
) -> Question:
    """What `label_counts` asks of the engine."""
    roles = decisions.roles
    keys = _group_keys(attribute) | decisions.stratum_key()
    keys |= {
        "labeler": nw.col(str(roles.labeler)),
        "truth": nw.col(str(roles.truth)),
        "decision": decisions.decision_expression(),
    }
    sums: dict[str, nw.Expr] = {}
    if roles.seconds:
        seconds = nw.col(roles.seconds).cast(nw.Float64)
        usable = ~seconds.is_null() & seconds.is_finite() & (seconds > 0)
        if longest_seconds is not None:
            usable = usable & (seconds <= longest_seconds)
        known = nw.when(usable).then(seconds).otherwise(nw.lit(0.0))
        sums = {"timed": usable.cast(nw.Int64), "seconds": known, "seconds2": known * known}
    return decisions.question(keys, sums, attribute=attribute)


def item_question(decisions: Decisions, attribute: Attribute) -> Question:
    """Counts by (group, stratum, item, truth, decision): what items need, whoever judged them."""
    roles = decisions.roles
    keys = _group_keys(attribute) | decisions.stratum_key()
    keys |= {
        "item": nw.col(str(roles.item)),
        "truth": nw.col(str(roles.truth)),
        "decision": decisions.decision_expression(),
    }
    return decisions.question(keys, {}, frame=complete_rows(decisions), attribute=attribute)


def item_table(
    decisions: Decisions,
    attribute: Attribute,
    *,
    positive: str,
    groups: tuple[str, ...],
    strata: tuple[str, ...] = (),
) -> ItemTable | None:
    """Yeses and labels of every distinct item, or None where the table names no items.

    The engine counts how many items have the same yeses and labels, so what comes back is
    small however many items there are.

    Examples:
        >>> table = {"y": [1, 1, 0], "d": [1, 0, 0], "who": ["a", "b", "b"], "g": ["f"] * 3}
        >>> table["post"] = [7, 7, 8]
        >>> decisions = Decisions(
        ...     table, truth="y", decision="d", labeler="who", item="post", group="g")
        >>> found = item_table(
        ...     decisions, decisions.roles.attributes[0], positive="1", groups=("f",))
        >>> sorted(zip(found.truth.tolist(), found.yes.tolist(), found.labels.tolist()))
        [(0.0, 0.0, 1.0), (1.0, 1.0, 2.0)]
    """
    roles = decisions.roles
    if roles.item is None:
        return None
    chosen = "1" if roles.rule == "score>=t" else positive
    if decisions.tallies is not None:
        stored = decisions.tallies.table(table_name("items", attribute.name))
        return _stored_items(stored, (positive, chosen), groups, strata)
    yes, truth = decisions.is_decided(chosen), decisions.is_label(str(roles.truth), positive)
    keys = _group_keys(attribute) | (decisions.stratum_key() if strata else {})
    rows = complete_rows(decisions).select(
        *(e.alias(k) for k, e in keys.items()),
        nw.col(roles.item).alias("item"),
        truth.cast(nw.Int64).alias("truth"),
        yes.cast(nw.Int64).alias("yes"),
    )
    items = rows.group_by(*keys, "item", "truth").agg(nw.col("yes").sum(), nw.len().alias("labels"))
    patterns: dict[str, nw.Expr] = {k: nw.col(k) for k in (*keys, "truth", "yes", "labels")}
    tally = decisions.name_groups(decisions.aggregate(patterns, {}, frame=items), attribute)
    tally = tally.relabel("group", groups)
    if strata:
        tally = tally.relabel("stratum", strata)
    return _expanded(tally, bool(strata))


def _stored_items(
    tally: Tally, positive: tuple[str, str], groups: tuple[str, ...], strata: tuple[str, ...]
) -> ItemTable:
    """The items of a tally by (group, stratum, item, truth, decision)."""
    tally = tally.relabel("group", groups)
    if strata:
        tally = tally.relabel("stratum", strata)
    elif "stratum" in tally.labels:
        tally = tally.without("stratum")
    tally = tally.take(tally.codes["group"] >= 0)
    is_true, is_yes = (
        np.array([name == chosen for name in (*tally.labels[key], None)])[tally.codes[key]]
        for key, chosen in zip(("truth", "decision"), positive, strict=True)
    )
    layer = tally.codes.get("stratum", np.full(len(tally), -1, dtype=np.int64))
    sizes = (len(groups), len(strata) + 1, 2, len(tally.labels["item"]) + 1)
    place = (tally.codes["group"], layer + 1, is_true.astype(np.int64), tally.codes["item"] + 1)
    cells, where = np.unique(np.ravel_multi_index(place, sizes), return_inverse=True)
    group, stratum, truth, _ = np.unravel_index(cells, sizes)

    def summed(values: FloatArray) -> FloatArray:
        return np.bincount(where.reshape(-1), values, minlength=cells.size).astype(np.float64)

    return ItemTable(
        group=group.astype(np.float64),
        stratum=stratum.astype(np.float64) - 1.0,
        truth=truth.astype(np.float64),
        yes=summed(tally.sums["n"] * is_yes),
        labels=summed(tally.sums["n"]),
    )


def _expanded(tally: Tally, stratified: bool) -> ItemTable:
    known = tally.codes["group"] >= 0
    times = tally.sums["n"][known].astype(np.int64)

    def told(key: str) -> FloatArray:
        names = np.array([float(name) for name in tally.labels[key]])
        return np.asarray(np.repeat(names[tally.codes[key][known]], times))

    def placed(key: str) -> FloatArray:
        return np.asarray(np.repeat(tally.codes[key][known].astype(np.float64), times))

    group = placed("group")
    return ItemTable(
        group=group,
        stratum=placed("stratum") if stratified else np.full(group.size, -1.0),
        truth=told("truth"),
        yes=told("yes"),
        labels=told("labels"),
    )


def repeated_labels(decisions: Decisions) -> int:
    """Labels beyond the first that a labeler gave to the same item; 0 where only rows would tell.

    Examples:
        >>> table = {"y": [1, 1, 0], "d": [1, 0, 0], "who": ["a"] * 3, "g": ["f"] * 3}
        >>> table["post"] = [7, 7, 8]
        >>> repeated_labels(Decisions(
        ...     table, truth="y", decision="d", labeler="who", item="post", group="g"))
        1
    """
    roles = decisions.roles
    if roles.item is None or decisions.tallies is not None:
        return 0
    pairs = (
        complete_rows(decisions)
        .select(nw.col(str(roles.labeler)).alias("labeler"), nw.col(roles.item).alias("item"))
        .group_by("labeler", "item")
        .agg(nw.len().alias("labels"))
        .select((nw.col("labels") - 1).cast(nw.Int64).alias("more"))
        .select(nw.col("more").sum())
    )
    return int(decisions.collect(pairs)["more"][0] or 0)


def complete_rows(decisions: Decisions) -> Frame:
    """The rows that say who judged what, what the truth was and what was decided."""
    roles = decisions.roles
    known = ~decisions.decision_expression().is_null()
    for column in (roles.labeler, roles.truth, roles.item):
        if column is not None:
            known = known & ~nw.col(column).is_null()
    return decisions.frame.filter(known)


def _group_keys(attribute: Attribute) -> dict[str, nw.Expr]:
    return {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
