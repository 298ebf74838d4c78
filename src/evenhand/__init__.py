"""Evenhand: are groups of people held to the same standard, and how sure can we be?

import evenhand as eh
decisions = eh.Decisions("decisions.parquet", truth="violates", decision="removed", group="gender")
print(eh.audit(decisions))

Remedies are scikit-learn estimators in `evenhand.remedies`.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Audit": "findings.run",
    "Decisions": "decisions.table",
    "Estimate": "stats.estimate",
    "EvenhandError": "errors",
    "Ledger": "remedies.ledger.document",
    "Tallies": "decisions.tallies.sets",
    "Watch": "watching.run",
    "alarms": "watching.alarms",
    "audit": "findings.run",
    "check": "findings.run",
    "compare": "remedies.ledger.compare",
    "cost_curve": "lenses.thresholds.costs",
    "filter_words": "models.word_tables",
    "fit_norms": "models.norms.table",
    "gap": "stats.rates",
    "gap_scorer": "integrations.scorer",
    "inferred_groups": "lenses.statistical.inferred",
    "load_lexicon": "text.lexicon",
    "mask_titles": "text.mask",
    "paired_gap": "stats.rates",
    "plan": "stats.power",
    "rate": "stats.rates",
    "ratio": "stats.rates",
    "read_charter": "charter.read",
    "read_labels": "decisions.exports.table",
    "read_record": "findings.record",
    "remedy_table": "remedies.table",
    "render": "report.render",
    "reproduce": "papers.reproduce",
    "score_norms": "models.norms.table",
    "score_table": "models.table",
    "scrub": "text.mask",
    "swap": "text.swap",
    "swap_table": "text.table",
    "tally": "findings.tallying",
    "trace_token_weights": "models.words",
    "verify": "findings.peers",
    "watch": "watching.run",
    "word_table": "models.word_tables",
    "word_weights": "models.words",
}
__all__ = sorted(_HOMES)
# Names of older versions, and what to write instead.
_FORMER = {
    "compare_remedies": "is now compare",
    "compare_norm_bias": "is now in evenhand.lenses.norms.lens",
    "Tally": "is now Tallies: eh.tally makes one, + merges two",
}

if TYPE_CHECKING:
    from evenhand.charter.read import read_charter
    from evenhand.decisions.exports.table import read_labels
    from evenhand.decisions.table import Decisions
    from evenhand.decisions.tallies.sets import Tallies
    from evenhand.errors import EvenhandError
    from evenhand.findings.peers import verify
    from evenhand.findings.record import read_record
    from evenhand.findings.run import Audit, audit, check
    from evenhand.findings.tallying import tally
    from evenhand.integrations.scorer import gap_scorer
    from evenhand.lenses.statistical.inferred import inferred_groups
    from evenhand.lenses.thresholds.costs import cost_curve
    from evenhand.models.norms.table import fit_norms, score_norms
    from evenhand.models.table import score_table
    from evenhand.models.word_tables import filter_words, word_table
    from evenhand.models.words import trace_token_weights, word_weights
    from evenhand.papers.reproduce import reproduce
    from evenhand.remedies.ledger.compare import compare
    from evenhand.remedies.ledger.document import Ledger
    from evenhand.remedies.table import remedy_table
    from evenhand.report.render import render
    from evenhand.stats.estimate import Estimate
    from evenhand.stats.power import plan
    from evenhand.stats.rates import gap, paired_gap, rate, ratio
    from evenhand.text.lexicon import load_lexicon
    from evenhand.text.mask import mask_titles, scrub
    from evenhand.text.swap import swap
    from evenhand.text.table import swap_table
    from evenhand.watching.alarms import alarms
    from evenhand.watching.run import Watch, watch


def load(module: str) -> Any:
    """A module of Evenhand, imported without the garbage collector looking on.

    Importing makes many objects that stay; looking through them again and again takes a tenth of
    a small audit. They count as old at once, and are looked through with the old.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"evenhand.{module}")
    finally:
        if collecting:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(load(_HOMES[name]), name)
    if name == "remedies":
        return load("remedies")
    if name in _FORMER:
        raise AttributeError(f"evenhand.{name} {_FORMER[name]}.")
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
