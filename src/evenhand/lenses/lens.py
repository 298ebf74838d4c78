"""What every lens is asked for, and what it gives back."""

from dataclasses import dataclass, field
from typing import Any

from evenhand.decisions.tally import Tally
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
