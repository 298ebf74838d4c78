"""Counterfactual."""

from evenhand.decisions.table import Decisions


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    found = decisions.roles.counterfactual
    if not found:
        return "a decision under each value of an attribute (columns 'decision@<value>')"
    if len(found) == 1:
        only = next(iter(found))
        return f"a decision under a second value: it has one under '{only}' alone"
    return None
