"""Norms."""

from evenhand.decisions.roles import OWN_SCORE
from evenhand.decisions.table import Decisions

# Why a norm is not known, as `details.norms.unknown` has it.
GUESSED, TOO_FEW, NO_GROUP, NOT_IN_SET = "guessed", "too few", "no group", "not in the set"


def lacks(decisions: Decisions) -> str | None:
    """What the table would need for this lens, or None where it has it."""
    roles = decisions.roles
    if not roles.norm and not roles.norm_irrelevant:
        return "norm columns 'norm@<group>' (evenhand norms score adds them)"
    if not roles.group:
        return "a group column"
    if not roles.truth:
        return "a truth column"
    if not roles.scores and not roles.score and OWN_SCORE not in decisions.columns:
        return "a score of each row's class: columns 'score:<class>' or 'score:truth', or a score"
    return None
