"""Weight of each word in a classifier and in a norm scorer, and the words that carry both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import UsageError, nearest
from evenhand.models.norm_scorer import NormScorer
from evenhand.models.vectors import cosine_weights
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class WordWeights:
    """Weights by class and word, beside the weight in a norm scorer and each word's relevance.

    `weights` is classes × words; `norm` one number a word, NaN where the scorer does not know it;
    `relevant` classes × words, or None. A word whose vector is all zeros has no weight: NaN.
    """

    words: tuple[str, ...]
    classes: tuple[str, ...]
    weights: FloatArray
    norm: FloatArray
    norm_group: str | None
    relevant: NDArray[np.bool_] | None

    def to_frame(self) -> Any:
        """One row for each class and word: class, word, weight, norm_weight, relevant."""
        import polars as pl

        many, size = len(self.classes), len(self.words)
        relevant = None if self.relevant is None else self.relevant.ravel().tolist()
        table = pl.DataFrame(
            {
                "class": np.repeat(np.array(self.classes, dtype=object), size).tolist(),
                "word": list(self.words) * many,
                "weight": self.weights.ravel(),
                "norm_weight": np.tile(self.norm, many),
                "relevant": relevant if relevant is not None else [None] * (many * size),
            },
            schema_overrides={"relevant": pl.Boolean},
        )
        return table.with_columns(pl.col("weight", "norm_weight").fill_nan(None))


def word_weights(
    model: Any,
    *,
    words: Sequence[str],
    embedding: NDArray[Any] | None = None,
    classes: Sequence[str] | None = None,
    scorer: NormScorer | None = None,
    group: str | None = None,
) -> WordWeights:
    """Weight of each word in every class of a linear model and, with a `scorer`, in its norm.

    A coefficient for a bag of words; with an `embedding`, the cosine of the word's vector and the
    class's coefficients. `group` says towards whom the norm's weights are positive, by default the
    scorer's first group. Of two classes a single row of coefficients belongs to the second.

    Examples:
        >>> found = word_weights([[2.0, 0.0, 1.0]], words=["w"], embedding=np.array([[1.0, 2, 2]]),
        ...                      classes=["nurse"])
        >>> float(found.weights[0, 0].round(6))
        0.596285
    """
    table = np.atleast_2d(np.asarray(getattr(model, "coef_", model), dtype=np.float64))
    names = classes if classes is not None else getattr(model, "classes_", None)
    told = tuple(map(str, names)) if names is not None else tuple(map(str, range(len(table))))
    if len(told) == 2 and len(table) == 1:
        table = np.concatenate([-table, table])
    width = len(words) if embedding is None else np.asarray(embedding).shape[1]
    if table.shape[1] != width or len(told) != len(table):
        raise UsageError(
            f"The model has coefficients of shape {table.shape}; {len(told)} classes of {width} "
            "features are expected. Give the words and vectors that it was fitted on."
        )
    weights = table
    if embedding is not None:
        vectors = np.asarray(embedding)
        if len(vectors) != len(words):
            raise UsageError(f"{len(vectors):,} vectors were given for {len(words):,} words.")
        weights = cosine_weights(vectors, table)
        weights[:, ~vectors.any(axis=1)] = np.nan
    norm, relevant, toward = _norm(words, told, scorer, group)
    return WordWeights(
        words=tuple(words),
        classes=told,
        weights=weights,
        norm=norm,
        norm_group=toward,
        relevant=relevant,
    )


def _norm(
    words: Sequence[str], classes: tuple[str, ...], scorer: NormScorer | None, group: str | None
) -> tuple[FloatArray, NDArray[np.bool_] | None, str | None]:
    if scorer is None:
        return np.full(len(words), np.nan), None, None
    toward = scorer.groups[0] if group is None else group
    if toward not in scorer.groups:
        raise UsageError(
            f"group={toward!r} is not a group of the norm scorer."
            f"{nearest(toward, list(scorer.groups))} It has {', '.join(scorer.groups)}."
        )
    place = {word: k for k, word in enumerate(scorer.names)}
    column = np.array([place.get(word, -1) for word in words], dtype=np.int64)
    known = column >= 0
    norm = np.where(known, scorer.word_weights(toward)[column], np.nan)
    if scorer.relevant is None:
        return norm, None, toward
    relevant = np.zeros((len(classes), len(words)), dtype=bool)
    for c, name in enumerate(classes):
        if name in scorer.classes:
            relevant[c] = known & scorer.relevant[scorer.classes.index(name)][column]
    return norm, relevant, toward


def word_filter(
    weights: Mapping[str, float] | ArrayLike,
    others: Mapping[str, float] | ArrayLike,
    *,
    norm: Mapping[str, float] | ArrayLike,
    words: Sequence[str] | None = None,
    threshold: float = 0.5,
    ratio: float = 0.7,
) -> list[str]:
    """Words that weigh in a classifier and in the norm, and more than `ratio` of another's weight.

    |weight| > T, |norm| > T and |weight| > T′·|other|. T′ below 1, as in the paper (0.7), also
    lets through words that weigh less than in the other classifier.

    Examples:
        >>> word_filter({"mom": 0.6, "team": 0.9}, {"mom": 0.5, "team": 1.0},
        ...             norm={"mom": 0.8, "team": 0.1})
        ['mom']
    """
    if words is None:
        if not isinstance(weights, Mapping):
            raise UsageError("Weights without words: give words=[…], or a dict by word.")
        words = list(weights)
    columns = [
        np.array([held.get(w, np.nan) for w in words]) if isinstance(held, Mapping)
        else np.asarray(held, dtype=np.float64)
        for held in (weights, others, norm)
    ]  # fmt: skip
    if any(column.shape != (len(words),) for column in columns):
        raise UsageError(f"Give one weight for each of the {len(words):,} words.")
    own, other, norms = (np.abs(np.nan_to_num(column)) for column in columns)
    passed = (own > threshold) & (norms > threshold) & (own > ratio * other)
    return [word for word, kept in zip(words, passed, strict=True) if kept]
