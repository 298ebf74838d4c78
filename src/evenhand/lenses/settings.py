"""What lenses take besides the columns, checked once before any of them runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.errors import UsageError, nearest
from evenhand.stats.estimate import FloatArray

SETTINGS = (
    "attribute",
    "bandwidth",
    "bootstrap",
    "cost_ratio",
    "counterfactual_reference",
    "evidence",
    "longest_seconds",
    "not_class",
    "prevalence",
    "truth_quality",
    "truth_sensitivity",
    "truth_specificity",
)
QUALITY = ("truth_sensitivity", "truth_specificity")


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as lenses read them; refused where one is unknown or half of two is missing.

    NaN is a missing value here as everywhere: it says nothing of the truth.

    Examples:
        >>> check_settings({"evidence": 5, "truth_sensitivity": float("nan")})
        {'evidence': 5}
        >>> check_settings({"bandwith": 0.1})
        Traceback (most recent call last):
        evenhand.errors.UsageError: 'bandwith' is not a setting. Did you mean 'bandwidth'?
    """
    for name in settings:
        if name not in SETTINGS:
            close = nearest(str(name), list(SETTINGS))
            listed = f" The settings are {', '.join(SETTINGS)}."
            raise UsageError(f"{str(name)!r} is not a setting.{close or listed}")
    known = {name: _without_nan(settings[name]) for name in QUALITY if name in settings}
    known = {name: value for name, value in known.items() if value is not None}
    for name, value in known.items():
        _check_shares(name, value)
    if "truth_quality" not in settings:
        _check_both(known)
    return {name: value for name, value in settings.items() if name not in QUALITY} | known


def _without_nan(value: Any) -> Any:
    """A number or numbers by group without those that are missing; None where none is left."""
    if isinstance(value, Mapping):
        parts = {name: _without_nan(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part is not None} or None
    return None if value != value else value


def _check_shares(name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        for part in value.values():
            _check_shares(name, part)
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError(
            f"{name}={value!r} is not between 0 and 1. For 95 in a hundred write 0.95."
        )


def _check_both(known: Mapping[str, Any]) -> None:
    """Refuse what is missed without what is wrongly recorded: neither corrects anything alone."""
    for name, other in (QUALITY, QUALITY[::-1]):
        mine, theirs = known.get(name), known.get(other)
        if mine is not None and theirs is None:
            whom = ""
        elif isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            lone = [str(group) for group in mine if group not in theirs and "all" not in theirs]
            if not lone:
                continue
            whom = f" for {lone[0]!r}"
        else:
            continue
        raise UsageError(
            f"{name} is given{whom} and {other} is not, and only both together correct for a "
            "truth that errs. Give both, such as truth_sensitivity=0.95 and "
            "truth_specificity=0.99 (--truth-sensitivity, --truth-specificity)."
        )


def setting_for(settings: Mapping[str, Any], name: str, attribute: str, group: str | None) -> Any:
    """The setting that holds for a group: its own, its attribute's, everybody's, or None.

    A setting is one value, values by group, or as a charter nests them: `all` and by attribute.

    Examples:
        >>> nested = {"prevalence": {"all": 0.02, "gender": {"female": 0.03}}}
        >>> [setting_for(nested, "prevalence", "gender", group) for group in ("female", "male")]
        [0.03, 0.02]
        >>> setting_for({"prevalence": {"f": 0.1}}, "prevalence", "sex", "f")
        0.1
    """
    value = settings.get(name)
    if not isinstance(value, Mapping):
        return value
    own = value.get(attribute)
    if isinstance(own, Mapping):
        if group in own:
            return own[group]
        if "all" in own:
            return own["all"]
    elif group in value:
        return value[group]
    return value.get("all")


def truth_quality(
    settings: Mapping[str, Any], attribute: str, groups: tuple[str, ...]
) -> tuple[FloatArray, FloatArray]:
    """Sensitivity and specificity of the truth by group; NaN where they are not known.

    Examples:
        >>> quality = {"all": {"sensitivity": 0.9, "specificity": 0.8}}
        >>> [x.tolist() for x in truth_quality({"truth_quality": quality}, "sex", ("f",))]
        [[0.9], [0.8]]
    """
    found = np.full((2, len(groups)), np.nan)
    for g, name in enumerate(groups):
        nested = setting_for(settings, "truth_quality", attribute, name)
        for k, kind in enumerate(("sensitivity", "specificity")):
            value = setting_for(settings, f"truth_{kind}", attribute, name)
            if value is None and isinstance(nested, Mapping):
                value = nested.get(kind)
            if value is not None:
                found[k, g] = float(value)
    return found[0], found[1]


def check_setting_groups(
    settings: Mapping[str, Any], attributes: tuple[str, ...], groups: set[str]
) -> None:
    """Refuse settings by group that name a group that is not there.

    A charter nests them by attribute, and may speak of more attributes than this table has.
    """
    known = {*attributes, *groups, "all"}
    for setting in ("prevalence", "truth_sensitivity", "truth_specificity"):
        value = settings.get(setting)
        for name, given in value.items() if isinstance(value, Mapping) else ():
            if str(name) not in known and not isinstance(given, Mapping):
                listed = sorted(groups)
                raise UsageError(
                    f"{setting} names {str(name)!r}, which is not a group."
                    f"{nearest(str(name), listed)} The groups are {', '.join(listed[:8])}."
                )
