"""Labelers."""

from evenhand.decisions.table import Decisions


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    roles = decisions.roles
    if roles.labeler is None:
        return "a labeler column"
    if not roles.group:
        return "a group column"
    if roles.truth is None:
        return "a truth column: what an expert says is the case"
    if roles.rule not in ("given", "score>=t"):
        return "a decision column: what the labeler said"
    return None
