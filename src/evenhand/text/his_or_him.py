"""His or him: what a "her" stands for, by a linear classifier of the words around it.

Its weights ship beside this module; `tools/her` in the repository builds them from any corpus.
"""

import gzip
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp
from typing import Self

from evenhand.text.wordclasses import word_class

Context = tuple[str, str, str, str, str, str]
POSITIONS = ("p2", "p1", "n1", "n2", "n3")
TOKEN = re.compile(r"\w+|[^\w\s]")
_AFTER = re.compile(r"\s*(\w+|[^\w\s])?\s*(\w+|[^\w\s])?\s*(\w+|[^\w\s])?")
_QUOTES = frozenset("\"'“‘«")
_REACH = 60  # characters looked at on each side; the words needed fit
STEP = 0.05  # weights are stored as whole multiples of this
_COLUMNS = {"p2=": 1, "p1=": 2, "n1=": 3, "n2=": 4}  # of the file's table of words
_BLANK = ("",) * len(_COLUMNS)
_KEPT = 50_000  # entries of each memory; cleared beyond, so that it stays bounded


def context(text: str, start: int, end: int) -> Context:
    """Two tokens before and three after text[start:end], then the word's own case.

    "<end>" stands beyond the text; the case is U where only the first letter is a capital: an
    object hardly ever opens a sentence.

    Examples:
        >>> context("They gave her a book.", 10, 13)
        ('They', 'gave', 'a', 'book', '.', 'l')
        >>> context("Ask her.", 4, 7)
        ('<end>', 'Ask', '.', '<end>', '<end>', 'l')
    """
    own = "U" if text[start].isupper() and not text[end - 1].isupper() else "l"
    # Plain words between blanks are the usual case and need no regular expression.
    near = text[max(0, start - _REACH) : start]
    before = near.rsplit(None, 2)[-2:]
    if len(before) < 2 or not (before[0].isalnum() and before[1].isalnum()) or near[-1] != " ":
        before = ["<end>", "<end>", *TOKEN.findall(near)][-2:]
    after: Sequence[str | None] = text[end : end + _REACH].split(None, 3)[:3]
    if len(after) < 3 or text[end] != " " or not all(map(str.isalnum, after)):  # type: ignore[arg-type]
        after = _after(text, end)
    first, second, third = after
    return (before[0], before[1], first or "<end>", second or "<end>", third or "<end>", own)


def word_features(position: str, word: str, kind: str) -> list[str]:
    """Features of one token at one position: the word, its endings, its shape and its class.

    Examples:
        >>> word_features("n1", "Running", "Name")
        ['n1=running', 'n1~ing', 'n1~ng', 'n1^U', 'n1@Name']
    """
    low = word.lower()
    if not low[0].isalnum():
        return [f"{position}={low}"]
    if position == "n3":  # too far for the word itself; its class closes the phrase or not
        return [f"n3@{kind}"]
    shape = "d" if low[0].isdigit() else "U" if word[0].isupper() else "l"
    return [
        f"{position}={low}",
        f"{position}~{low[-3:]}",
        f"{position}~{low[-2:]}",
        f"{position}^{shape}",
        f"{position}@{kind}",
    ]


def pair_features(found: Context, kinds: Sequence[str]) -> list[str]:
    """Features of the next word together with the classes of its neighbours.

    Examples:
        >>> found = ("They", "gave", "a", "book", ".", "l")
        >>> pair_features(found, ["pron", "give", "det", "c", "."])
        ['own^l', 'give:a', 'a>c']
    """
    next_word = found[2].lower()
    return [f"own^{found[5]}", f"{kinds[1]}:{next_word}", f"{next_word}>{kinds[3]}"]


def class_features(kinds: Sequence[str]) -> list[str]:
    """Features of the classes of neighbours together.

    Examples:
        >>> class_features(["pron", "give", "det", "c", "."])
        ['give_det', 'det_c_', 'give_det_c', 'det_c_._']
    """
    _, before, first, second, third = kinds
    return [
        f"{before}_{first}",
        f"{first}_{second}_",
        f"{before}_{first}_{second}",
        f"{first}_{second}_{third}_",
    ]


def features(found: Context, *, induced: Mapping[str, str]) -> list[str]:
    """All features of a context: each position by itself, then neighbours together.

    Examples:
        >>> features(("They", "gave", "a", "book", ".", "l"), induced={})[-1]
        'det_open_._'
    """
    kinds = [
        word_class(word, induced=induced, before=position == "p1")
        for position, word in zip(POSITIONS, found)
    ]
    out = pair_features(found, kinds) + class_features(kinds)
    for position, word, kind in zip(POSITIONS, found, kinds):
        out[:0] = word_features(position, word, kind)
    return out


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


@cache
def shipped_model() -> HerModel:
    """The classifier that ships with Evenhand.

    Examples:
        >>> len(shipped_model()) > 1000
        True
    """
    source = files("evenhand.text").joinpath("his_or_him.tsv.gz")
    return HerModel.from_bytes(source.read_bytes())


def _after(text: str, end: int) -> Sequence[str | None]:
    """Three tokens after the pronoun, where there are marks; some say more with their blanks.

    A quotation mark after a blank opens, "<open>", one without ends the phrase; a hyphen joins
    two words, "<join>", or stands for a dash.
    """
    match = _AFTER.match(text, end)
    if match is None:
        return (None, None, None)
    first, second, third = match.groups()
    if first in _QUOTES and match.start(1) > end:
        first = "<open>"
    if second == "-" and match.start(2) == match.end(1):
        second = "<join>"
    return first, second, third
