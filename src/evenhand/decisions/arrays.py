"""Fairlearn's arguments as roles: who comes from there need not rename anything."""

from collections.abc import Mapping
from typing import Any

from evenhand.errors import UsageError
from evenhand.speech import listed

# What Fairlearn calls a role.
FAIRLEARN = {
    "y_true": "truth",
    "y_pred": "decision",
    "sensitive_features": "group",
    "control_features": "stratum",
    "sample_weight": "weight",
}
# Roles whose arrays keep their own names as columns.
NAMED_APART = ("group", "stratum")


def as_roles(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by role, with Fairlearn's names read as ours.

    Examples:
        >>> as_roles({"y_true": [1], "y_pred": [0], "sensitive_features": {"sex": ["f"]}})
        {'truth': [1], 'decision': [0], 'group': {'sex': ['f']}}
        >>> as_roles({"truth": [1], "y_true": [1]})
        Traceback (most recent call last):
        evenhand.errors.UsageError: y_true is Fairlearn's name for truth, which is given too. Give \
one of them.
    """
    roles = {name: value for name, value in given.items() if name not in FAIRLEARN}
    for name, role in FAIRLEARN.items():
        value = given.get(name)
        if value is None:
            continue
        if roles.get(role) is not None:
            raise UsageError(
                f"{name} is Fairlearn's name for {role}, which is given too. Give one of them."
            )
        roles[role] = _features(value, name) if role in NAMED_APART else value
    several = given.get("sensitive_features") is not None and len(roles["group"]) > 1
    if several:
        # As Fairlearn does: the groups are those of all features together.
        roles.setdefault("crossed", True)
    stratum = roles.get("stratum")
    if isinstance(stratum, Mapping) and len(stratum) > 1:
        raise UsageError(
            f"control_features has {listed(list(map(str, stratum)))}. Evenhand conditions on one "
            "column: join them into one, or give the one that matters."
        )
    return {name: value for name, value in roles.items() if value is not None}


def _features(given: Any, argument: str) -> dict[str, Any]:
    """Features as arrays by name, in any of the forms that Fairlearn takes."""
    if isinstance(given, Mapping):
        return {str(name): values for name, values in given.items()}
    columns = getattr(given, "columns", None)
    if columns is not None:
        return {str(name): given[name] for name in columns}
    name = getattr(given, "name", None)
    if name not in (None, ""):
        return {str(name): given}
    called = argument.removesuffix("s")
    if len(getattr(given, "shape", ())) == 2:
        places = range(given.shape[1])
        return {f"{called}_{place}": given[:, place] for place in places}
    return {called: given}
