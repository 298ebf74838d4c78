"""Evenhand: are groups of people held to the same standard, and how sure can we be?

import evenhand as eh
decisions = eh.Decisions("decisions.parquet", truth="violates", decision="removed", group="gender")
print(eh.audit(decisions))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Audit": "findings.run",
    "Decisions": "decisions.table",
    "Estimate": "stats.estimate",
    "EvenhandError": "errors",
    "Tally": "decisions.tally",
    "audit": "findings.run",
    "check": "findings.run",
    "gap": "stats.rates",
    "paired_gap": "stats.rates",
    "plan": "stats.power",
    "rate": "stats.rates",
    "ratio": "stats.rates",
    "read_record": "findings.record",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from evenhand.decisions.table import Decisions
    from evenhand.decisions.tally import Tally
    from evenhand.errors import EvenhandError
    from evenhand.findings.record import read_record
    from evenhand.findings.run import Audit, audit, check
    from evenhand.stats.estimate import Estimate
    from evenhand.stats.power import plan
    from evenhand.stats.rates import gap, paired_gap, rate, ratio


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"evenhand.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
