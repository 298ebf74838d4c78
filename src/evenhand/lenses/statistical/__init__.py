"""Statistical."""

from evenhand.decisions.table import Decisions


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    roles = decisions.roles
    if not roles.group:
        return "a group column"
    if roles.rule is None and not (roles.score and roles.truth):
        return "a decision column, or a score and a threshold"
    return None
