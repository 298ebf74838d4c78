"""Thresholds."""

from evenhand.decisions.table import Decisions


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    roles = decisions.roles
    if not roles.group:
        return "a group column"
    if roles.score is None:
        return "a score column"
    if roles.threshold is None:
        return "a threshold"
    if roles.truth is None:
        return "a truth column"
    return None
