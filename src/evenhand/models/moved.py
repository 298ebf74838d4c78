"""Models saved by earlier versions: where the classes that they name live now.

A joblib file names every class by its module. Modules have been gathered into rooms since, so while
a file is read the old names lead to the new places; a class that is gone is refused in words.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

# Modules under `evenhand`, old to new, that hold classes which a saved model can contain.
MOVED = {
    "mitigation.adversarial": "remedies.adversarial",
    "mitigation.covariance": "remedies.penalties",
    "mitigation.crossfit": "remedies.norm_slopes",
    "mitigation.decoupled": "remedies.decoupled",
    "mitigation.equal_rates": "remedies.thresholds",
    "mitigation.ledger_models": "remedies.ledger.files",
    "mitigation.ledger_task": "remedies.ledger.task",
    "mitigation.ledger_texts": "remedies.ledger.texts",
    "mitigation.norm_slopes": "remedies.norm_slopes",
    "mitigation.pairing": "remedies.penalties",
    "mitigation.penalty": "remedies.norm_penalty",
    "mitigation.reductions": "remedies.reductions",
    "mitigation.resample": "remedies.resample",
    "mitigation.residualise": "remedies.residualise",
    "mitigation.reweigh": "remedies.reweigh",
    "mitigation.thresholds": "remedies.thresholds",
    "models.bow": "models.corpus",
    "models.design": "models.logistic",
    "models.fasttext_file": "models.vector_files",
    "models.norm_scorer": "models.norms.scorer",
    "models.relevance": "models.norms.relevance",
    "models.representation": "models.corpus",
    "models.token_weights": "models.words",
    "stats.implied": "stats.thresholds.implied",
    "stats.local": "stats.thresholds.local",
    "text.her.model": "text.his_or_him",
    "text.scrub": "text.mask",
}


class _Moved(ModuleType):
    """An old name whose classes are looked up in the new place."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(f"evenhand.{old}")
        self._new = f"evenhand.{new}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(import_module(self._new), name)
        except AttributeError:
            whole = f"{self.__name__}.{name}"
            raise ModuleNotFoundError(f"No module named {whole!r}", name=whole) from None


@contextmanager
def old_names() -> Iterator[None]:
    """The old names of modules, importable for as long as one file is read.

    Examples:
        >>> with old_names():
        ...     import_module("evenhand.models.bow").BagOfWords.__module__
        'evenhand.models.corpus'
        >>> "evenhand.models.bow" in sys.modules
        False
    """
    aliases = {f"evenhand.{old}": _Moved(old, new) for old, new in MOVED.items()}
    sys.modules.update(aliases)
    try:
        yield
    finally:
        for name in aliases:
            sys.modules.pop(name, None)
