"""Remedies as scikit-learn estimators: they train, decide and tune like any other classifier.

from evenhand.remedies import ReweighedClassifier
model = ReweighedClassifier(LogisticRegression()).fit(X, y, group=gender)

Each says when it acts (`stage`) and whether it has to know the group to decide
(`needs_group_at_decision`). Functions that make weights, rows or texts for other trainers stand in
the modules; `evenhand.compare` measures remedies side by side. Needs the extra `text`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "AdversarialClassifier": "adversarial",
    "CovarianceConstrainedClassifier": "penalties",
    "DecoupledClassifier": "decoupled",
    "GroupThresholds": "thresholds",
    "LogitPairedClassifier": "penalties",
    "NormPenalisedClassifier": "norm_penalty",
    "NormResidualisedClassifier": "residualise",
    "ReductionsClassifier": "reductions",
    "ResampledClassifier": "resample",
    "ReweighedClassifier": "reweigh",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from evenhand.remedies.adversarial import AdversarialClassifier as AdversarialClassifier
    from evenhand.remedies.decoupled import DecoupledClassifier as DecoupledClassifier
    from evenhand.remedies.norm_penalty import NormPenalisedClassifier as NormPenalisedClassifier
    from evenhand.remedies.penalties import (
        CovarianceConstrainedClassifier as CovarianceConstrainedClassifier,
    )
    from evenhand.remedies.penalties import LogitPairedClassifier as LogitPairedClassifier
    from evenhand.remedies.reductions import ReductionsClassifier as ReductionsClassifier
    from evenhand.remedies.resample import ResampledClassifier as ResampledClassifier
    from evenhand.remedies.residualise import (
        NormResidualisedClassifier as NormResidualisedClassifier,
    )
    from evenhand.remedies.reweigh import ReweighedClassifier as ReweighedClassifier
    from evenhand.remedies.thresholds import GroupThresholds as GroupThresholds


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"evenhand.remedies.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evenhand.remedies' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
