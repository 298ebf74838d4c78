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
    "compare_norm_bias": "lenses.norms",
    "compare_remedies": "mitigation.compare",
    "cost_curve": "lenses.cost_curves",
    "gap": "stats.rates",
    "inferred_groups": "lenses.inferred_groups",
    "load_lexicon": "text.lexicon",
    "mask_titles": "text.mask",
    "paired_gap": "stats.rates",
    "plan": "stats.power",
    "rate": "stats.rates",
    "ratio": "stats.rates",
    "read_charter": "charter.read",
    "read_record": "findings.record",
    "scrub": "text.scrub",
    "swap": "text.swap",
    "trace_token_weights": "models.token_weights",
    "word_weights": "models.words",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from evenhand.charter.read import read_charter
    from evenhand.decisions.table import Decisions
    from evenhand.decisions.tally import Tally
    from evenhand.errors import EvenhandError
    from evenhand.findings.record import read_record
    from evenhand.findings.run import Audit, audit, check
    from evenhand.lenses.cost_curves import cost_curve
    from evenhand.lenses.inferred_groups import inferred_groups
    from evenhand.lenses.norms import compare_norm_bias
    from evenhand.mitigation.compare import compare_remedies
    from evenhand.models.token_weights import trace_token_weights
    from evenhand.models.words import word_weights
    from evenhand.stats.estimate import Estimate
    from evenhand.stats.power import plan
    from evenhand.stats.rates import gap, paired_gap, rate, ratio
    from evenhand.text.lexicon import load_lexicon
    from evenhand.text.mask import mask_titles
    from evenhand.text.scrub import scrub
    from evenhand.text.swap import swap


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"evenhand.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
