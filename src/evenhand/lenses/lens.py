"""What every lens is asked for, and what it gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.decisions.roles import Roles
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError
from evenhand.lenses.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The confidence level, the seed, and settings that only some lenses read."""

    level: float = 0.95
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LensResult:
    """The rows of a lens, what it left out, what it noticed, and the tallies it read.

    `notes` are sentences for people; `details` holds curves and tables for the report.
    """

    lens: str
    rows: Rows
    excluded: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    tallies: tuple[Tally, ...] = ()


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


def found_missing(reasons: Mapping[str, Any], roles: Roles) -> dict[str, int]:
    """The reasons that left rows out, with their rows; refused where `missing` is 'error'."""
    found = {reason: int(rows) for reason, rows in reasons.items() if rows}
    if found and roles.missing == "error":
        told = ", ".join(
            f"{rows:,} {'row' if rows == 1 else 'rows'} with {reason.split(' (')[0]}"
            for reason, rows in found.items()
        )
        raise DataError(
            f"missing='error' and the data has {told}. "
            "Fill them in, or choose missing='drop' or 'group'."
        )
    return found
