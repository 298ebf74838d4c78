"""What words weigh in models on disk, as tables: all weights, and words that two models differ by.

The first paper's Appendices A and C: weights of words in an occupation's classifier beside their
weights in the norm, and the words that pass its filter between two kinds of training.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.decisions.batches import Batch, check_table_path, write_batches
from evenhand.errors import DataError, UsageError
from evenhand.models.norms.scorer import NormScorer
from evenhand.models.words import WordWeights, model_words, word_filter
from evenhand.speech import plural

MOST_LISTED = 12


def word_table(
    model: Any,
    *,
    norms: NormScorer | str | Path | None = None,
    group: str | None = None,
    of: str | None = None,
    trust: bool = False,
    out: str | Path | None = None,
) -> WordWeights:
    """Weight of every word in every class, beside its weight in a norm; written where `out` says.

    `model` is one of `compare`'s, a pipeline of word counts and a linear model, or the joblib file
    of either; `of` names the group of one of several models by group. `group` says towards whom
    the norm's weights are positive. CSV, JSON Lines or Parquet by the ending.

    Examples:
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> pipe = make_pipeline(CountVectorizer(), LogisticRegression())
        >>> found = word_table(pipe.fit(["warm ward", "cold law"], ["nurse", "lawyer"]))
        >>> found.words, found.norm_group
        (('cold', 'law', 'ward', 'warm'), None)
    """
    if out is not None:
        check_table_path(out, data=[one for one in (model, norms) if isinstance(one, str | Path)])
    found = model_words(model, norms=norms, group=group, of=of, trust=trust)
    if out is not None:
        write_batches([Batch(start=0, frame=found.to_frame())], out)
    return found


def heaviest(found: WordWeights, *, most: int = MOST_LISTED) -> list[str]:
    """The words for and against every class that weigh most, a line each.

    Examples:
        >>> weights = np.array([[2.0, -1.0, 0.0]])
        >>> found = WordWeights(words=("ward", "law", "the"), classes=("nurse",), weights=weights,
        ...                     norm=np.zeros(3), norm_group=None, relevant=None)
        >>> heaviest(found)
        ['nurse: ward +2.00 · law -1.00']
    """
    lines = []
    for name, row in zip(found.classes, np.nan_to_num(found.weights), strict=True):
        order = np.argsort(-row, kind="stable")
        sides = []
        for sign, places in ((1, order[:most]), (-1, order[::-1][:most])):
            words = [f"{found.words[k]} {row[k]:+.2f}" for k in places if sign * row[k] > 0]
            sides.append(", ".join(words) or "none")
        lines.append(f"{name}: {' · '.join(sides)}")
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredWords:
    """Words that pass the filter, by class, with their weights in both models and in the norm."""

    columns: dict[str, list[Any]]
    classes: tuple[str, ...]
    threshold: float
    ratio: float

    def __len__(self) -> int:
        return len(self.columns["word"])

    def of(self, name: str) -> list[str]:
        """The words of one class, the heaviest in the norm first."""
        pairs = zip(self.columns["class"], self.columns["word"], strict=True)
        return [word for title, word in pairs if title == name]

    def to_frame(self) -> Any:
        """One row for each class and word."""
        import polars as pl

        return pl.DataFrame(self.columns)

    def __str__(self) -> str:
        lines = []
        for name in self.classes:
            words = self.of(name)
            more = f" and {len(words) - MOST_LISTED:,} more" if len(words) > MOST_LISTED else ""
            lines.append(f"{name}: {', '.join(words[:MOST_LISTED]) or 'none'}{more}")
        told = plural(len(self), "word passes", "words pass")
        rule = (
            f"|weight| > {self.threshold:g}, |norm| > {self.threshold:g} and |weight| > "
            f"{self.ratio:g} × |the other's|"
        )
        return "\n".join([*lines, f"{told}: {rule}."])


def filter_words(
    model: Any,
    other: Any,
    *,
    norms: NormScorer | str | Path,
    threshold: float = 0.5,
    ratio: float = 0.7,
    group: str | None = None,
    of: str | None = None,
    other_of: str | None = None,
    trust: bool = False,
    out: str | Path | None = None,
) -> FilteredWords:
    """Words that weigh in a model and in the norm, and more than `ratio` of another's weight.

    Both models are those that `word_table` takes; `of` and `other_of` name the group where either
    has a model for each. `threshold` and `ratio` are the paper's T (0.5) and T′ (0.7).
    """
    if not (np.isfinite(threshold) and threshold >= 0 and np.isfinite(ratio) and ratio >= 0):
        raise UsageError(
            f"threshold={threshold:g} and ratio={ratio:g} must be numbers of 0 or more, such as "
            "0.5 and 0.7."
        )
    places = [one for one in (model, other, norms) if isinstance(one, str | Path)]
    if out is not None:
        check_table_path(out, data=places)
    first = model_words(model, norms=norms, group=group, of=of, trust=trust)
    second = model_words(other, norms=norms, group=group, of=other_of, trust=trust)
    shared = [name for name in first.classes if name in second.classes]
    if not shared:
        raise DataError(
            f"The models share no class: one has {', '.join(first.classes[:5])}, the other "
            f"{', '.join(second.classes[:5])}. Give two models of the same classes."
        )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("class", "word", "weight", "other", "norm_weight")
    }
    norm = dict(zip(first.words, first.norm.tolist(), strict=True))
    for name in shared:
        own, theirs = (
            dict(zip(each.words, each.weights[each.classes.index(name)].tolist(), strict=True))
            for each in (first, second)
        )
        passed = word_filter(own, theirs, norm=norm, threshold=threshold, ratio=ratio)
        for word in sorted(passed, key=lambda word: (-abs(norm[word]), word)):
            held = (name, word, own[word], theirs.get(word), norm[word])
            for column, value in zip(columns, held, strict=True):
                columns[column].append(value)
    found = FilteredWords(columns=columns, classes=tuple(shared), threshold=threshold, ratio=ratio)
    if out is not None:
        write_batches([Batch(start=0, frame=found.to_frame())], out)
    return found
