"""The classifier of contexts: a positive score says that "her" is a possessive."""

import gzip
import zlib
from functools import cache
from importlib.resources import files
from math import exp
from pathlib import Path
from typing import Self

from evenhand.errors import DataError
from evenhand.text.her.contexts import (
    POSITIONS,
    Context,
    class_features,
    context,
    features,
    pair_features,
    word_features,
)
from evenhand.text.her.wordclasses import word_class

STEP = 0.05  # weights are stored as whole multiples of this
_COLUMNS = {"p2=": 1, "p1=": 2, "n1=": 3, "n2=": 4}  # of the file's table of words
_BLANK = ("",) * len(_COLUMNS)
_KEPT = 50_000  # entries of each memory; cleared beyond, so that it stays bounded


class HerModel:
    """Linear classifier of the words around "her": possessive (his) or object (him).

    Examples:
        >>> model = shipped_model()
        >>> model.possessive("We met her mother.", 7, 10) > 0.5
        True
        >>> model.possessive("We met her.", 7, 10) > 0.5
        False
    """

    __slots__ = ("_memory", "_together", "classes", "intercept", "weights")

    def __init__(
        self,
        weights: dict[str, float],
        *,
        intercept: float,
        classes: dict[str, str] | None = None,
    ) -> None:
        self.weights = weights
        self.intercept = intercept
        self.classes = classes or {}
        self._memory: tuple[dict[str, tuple[float, str]], ...] = tuple({} for _ in POSITIONS)
        self._together: dict[tuple[str, ...], float] = {}

    def __len__(self) -> int:
        return len(self.weights)

    def possessive(self, text: str, start: int, end: int) -> float:
        """Probability that the word at text[start:end] is a possessive."""
        score = self.score(context(text, start, end))
        return 1 / (1 + exp(-score)) if score > -700 else 0.0

    def score(self, found: Context) -> float:
        """Log odds of a possessive; the same as `score_plainly`, with single words remembered."""
        total = self.intercept
        kinds = []
        for known, position, word in zip(self._memory, POSITIONS, found):
            part = known.get(word) or self._remember(known, position, word)
            total += part[0]
            kinds.append(part[1])
        weights = self.weights
        for name in pair_features(found, kinds):
            if name in weights:
                total += weights[name]
        key = tuple(kinds[1:])
        together = self._together.get(key)
        return total + (self._remember_together(key, kinds) if together is None else together)

    def score_plainly(self, found: Context) -> float:
        """Log odds of a possessive from the list of features, as the training sees them."""
        return self.intercept + sum(
            self.weights.get(name, 0.0) for name in features(found, induced=self.classes)
        )

    def _remember(
        self, known: dict[str, tuple[float, str]], position: str, word: str
    ) -> tuple[float, str]:
        if len(known) >= _KEPT:
            known.clear()
        kind = word_class(word, induced=self.classes, before=position == "p1")
        weight = sum(self.weights.get(name, 0.0) for name in word_features(position, word, kind))
        known[word] = part = (weight, kind)
        return part

    def _remember_together(self, key: tuple[str, ...], kinds: list[str]) -> float:
        if len(self._together) >= _KEPT:
            self._together.clear()
        self._together[key] = sum(self.weights.get(name, 0.0) for name in class_features(kinds))
        return self._together[key]

    def to_bytes(self) -> bytes:
        """The weights as compressed text, the same bytes for the same weights."""
        lines = [f"<intercept>\t{round(self.intercept / STEP)}"]
        words: dict[str, list[str]] = {}
        for word, kind in self.classes.items():
            words[word] = [kind, *_BLANK]
        for name, value in sorted(self.weights.items()):
            steps = str(round(value / STEP))
            if name[:3] in _COLUMNS:
                words.setdefault(name[3:], ["", *_BLANK])[_COLUMNS[name[:3]]] = steps
            else:
                lines.append(f"{name}\t{steps}")
        # One row a word, since most words have a weight at several positions.
        rows = ["\t".join((word, *row)).rstrip("\t") for word, row in sorted(words.items())]
        return gzip.compress("\n".join((*lines, "", *rows)).encode(), mtime=0)

    @classmethod
    def from_bytes(cls, packed: bytes) -> Self:
        """Weights from what `to_bytes` made."""
        pairs, _, rows = gzip.decompress(packed).decode().partition("\n\n")
        weights, classes = {}, {}
        for line in pairs.split("\n"):
            name, _, steps = line.rpartition("\t")
            weights[name] = int(steps) * STEP
        for line in rows.split("\n") if rows else ():
            word, kind, *values = (*line.split("\t"), "")[:6]
            if kind:
                classes[word] = kind
            for prefix, steps in zip(_COLUMNS, values):
                if steps:
                    weights[prefix + word] = int(steps) * STEP
        intercept = weights.pop("<intercept>")
        return cls(weights, intercept=intercept, classes=classes)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Weights from a file that the training script wrote."""
        try:
            return cls.from_bytes(path.read_bytes())
        except (OSError, EOFError, ValueError, KeyError, zlib.error) as problem:
            raise DataError(
                f"{str(path)!r} is not a file of his-or-him weights. "
                "Write one with python -m evenhand.text.her.train."
            ) from problem


@cache
def shipped_model() -> HerModel:
    """The classifier that ships with Evenhand.

    Examples:
        >>> len(shipped_model()) > 1000
        True
    """
    source = files("evenhand.text.her").joinpath("weights.tsv.gz")
    return HerModel.from_bytes(source.read_bytes())
