"""Models of text: representations, a linear classifier, and whatever model is under audit.

from evenhand.models import LogisticClassifier, TransformerEmbedding
X = TransformerEmbedding("all-MiniLM-L6-v2", cache="vectors").features(texts)
model = LogisticClassifier().fit(X, truth)

`BagOfWords` and `WordVectors` turn a corpus into features, `TransformerEmbedding` texts by a local
folder of a transformers model; `norm_multiplicity` says how far norm bias depends on which norm
scorer is used. Names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "BagOfWords": "corpus",
    "Corpus": "corpus",
    "HeldOutRows": "norms.multiplicity",
    "LogisticClassifier": "linear",
    "TransformerEmbedding": "transformer",
    "WordVectors": "vectors",
    "norm_multiplicity": "norms.multiplicity",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from evenhand.models.corpus import BagOfWords as BagOfWords
    from evenhand.models.corpus import Corpus as Corpus
    from evenhand.models.linear import LogisticClassifier as LogisticClassifier
    from evenhand.models.norms.multiplicity import HeldOutRows as HeldOutRows
    from evenhand.models.norms.multiplicity import norm_multiplicity as norm_multiplicity
    from evenhand.models.transformer import TransformerEmbedding as TransformerEmbedding
    from evenhand.models.vectors import WordVectors as WordVectors


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"evenhand.models.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evenhand.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
