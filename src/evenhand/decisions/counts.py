"""Counts of every attribute in one pass: a crossed one tells those of its columns."""

from collections.abc import Sequence
from dataclasses import replace

from evenhand.decisions.question import Question
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import stay_in_spark
from evenhand.decisions.tally import Tally


def count_attributes(
    decisions: Decisions, attributes: Sequence[Attribute], *, cluster: bool = False
) -> list[Tally]:
    """What `decisions.count` gives of each attribute, for all of them at once.

    Counts of a crossed attribute, added up over one of its columns, are those of the others, rows
    without a value included: the table is read and grouped once. Attributes that are not crossed
    are asked for together, so that an engine that can share a scan does. Where Spark has more
    cells by `cluster` than its driver should hold, the key is `clustered`: whether there is one.

    Examples:
        >>> table = {"d": [1, 0, 1], "sex": ["f", "m", "f"], "site": ["a", "a", "b"]}
        >>> decisions = Decisions(table, decision="d", group=["sex", "site"], crossed=True)
        >>> found = count_attributes(decisions, decisions.roles.attributes)
        >>> [tally.labels["group"] for tally in found]
        [('f', 'm'), ('a', 'b'), ('f*a', 'f*b', 'm*a')]
        >>> found[0].dense(["group", "decision"], "n").tolist()
        [[0.0, 2.0], [1.0, 0.0]]
    """
    if decisions.tallies is not None:
        return [decisions.count(attribute, cluster=cluster) for attribute in attributes]
    widest = max(attributes, key=lambda attribute: len(attribute.columns))
    shared = not any(set(attribute.columns) - set(widest.columns) for attribute in attributes)
    asked = [widest] if shared else list(attributes)

    def ask(**by: bool) -> list[Question]:
        every = [decisions.count_question(attribute, **by) for attribute in asked]
        return [replace(every[0], attribute=None)] if shared else every

    questions = ask(cluster=cluster)
    if any(stay_in_spark(decisions, question) for question in questions):
        questions = ask(clustered=True)
    found = decisions.answer(questions)
    if not shared:
        return found
    return [
        decisions.name_groups(_of_columns(found[0], attribute, widest), attribute)
        for attribute in attributes
    ]


def _of_columns(joint: Tally, attribute: Attribute, widest: Attribute) -> Tally:
    """The tally of a wider attribute summed over the columns that another has not."""
    if attribute.columns == widest.columns:
        return joint
    moved = {
        f"group{widest.columns.index(column)}": f"group{place}"
        for place, column in enumerate(attribute.columns)
    }
    kept = [k for k in joint.labels if k in moved or not _is_group(k)]
    return Tally(
        labels={moved.get(k, k): joint.labels[k] for k in kept},
        codes={moved.get(k, k): joint.codes[k] for k in kept},
        sums=joint.sums,
    ).compact()


def _is_group(key: str) -> bool:
    return key.removeprefix("group").isdigit()
