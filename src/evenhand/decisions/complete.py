"""The rows that have everything: a table that every tool counts in the same way."""

import narwhals as nw

from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions


def complete_rows(decisions: Decisions, attribute: Attribute) -> Decisions:
    """The rows with a truth, a decision and a value of the attribute, each counted once.

    Weights, clusters and strata are left out: other tools know none of them.

    Examples:
        >>> table = {"y": [1, None, 0], "d": [1, 1, 0], "g": ["f", "m", "m"]}
        >>> decisions = Decisions(table, truth="y", decision="d", group="g")
        >>> complete_rows(decisions, decisions.roles.attributes[0]).labels(["g"])
        [['1', '0'], ['1', '0'], ['f', 'm']]
    """
    plain = decisions.with_roles(
        weight=None,
        review_share=None,
        cluster=None,
        stratum=None,
        stratum_edges=(),
        labeler=None,
        missing="drop",
        group=attribute.columns,
        crossed=len(attribute.columns) > 1,
        reference={k: v for k, v in decisions.roles.reference.items() if k == attribute.name},
    )
    known = [~nw.col(name).is_null() for name in (str(plain.roles.truth), *attribute.columns)]
    known.append(~plain.decision_expression().is_null())
    plain.frame = plain.frame.filter(*known)
    return plain
