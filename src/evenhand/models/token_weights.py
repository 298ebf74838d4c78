"""Coefficients of chosen words scaled in a linear bag-of-words model, and the gaps that follow.

How much of a gap do the group's own words carry? Multiply their coefficients by w: at w = 0 the
model cannot see them, so rewriting them changes no decision (METHODS: the weight experiment).
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.table import Decisions
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses import causal, statistical
from evenhand.lenses.catalogue import COUNTERFACTUAL_RATES
from evenhand.lenses.lens import Options
from evenhand.lenses.rows import Rows

WEIGHTS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
SIDES = ("statistical", "counterfactual")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledModel:
    """A copy of a linear model, the words that were scaled in it, and those it does not know."""

    model: Any
    scaled: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTrace:
    """Both gaps at every weight, class and pair of values.

    `columns` holds equally long lists: weight, measure, class, group, reference, and for either
    kind of gap its value and family interval. A root mean square over classes has no class.
    """

    columns: dict[str, list[Any]]
    scaled: tuple[str, ...]
    missing: tuple[str, ...]

    def to_frame(self) -> Any:
        """The trace as a Polars data frame."""
        import polars as pl

        return pl.DataFrame(self.columns)


def scale_tokens(
    model: Any, *, vocabulary: Any, words: Iterable[str], weight: float
) -> ScaledModel:
    """A copy of a linear model with the coefficients of some words multiplied by `weight`.

    Args:
        model: Coefficients (classes × words, or one per word), or an object with `coef_`, or
            with one such object per class in `estimators_`. It is not changed.
        vocabulary: A fitted vectorizer, a dict of word → column, or the words in column order.
        words: The words to scale, in all classes; those not in the vocabulary are listed.
        weight: What to multiply by; 0 makes the model blind to the words.

    Examples:
        >>> found = scale_tokens([-0.8, 0.6, 1.2], vocabulary=["she", "he", "scalpel"],
        ...                      words=["she", "he", "hers"], weight=0)
        >>> found.model.tolist(), found.missing
        ([-0.0, 0.0, 1.2], ('hers',))
    """
    if not np.isfinite(weight):
        raise UsageError(f"weight={weight} is not finite. Give a number such as 0, 1 or -2.")
    places = word_columns(vocabulary)
    asked = tuple(dict.fromkeys(words))
    scaled = tuple(word for word in asked if word in places)
    if not scaled:
        listed = ", ".join(f"'{word}'" for word in asked[:8])
        raise UsageError(
            f"None of the words {listed or '(none given)'} is in the vocabulary of "
            f"{len(places):,} words.{nearest(asked[0], list(places)) if asked else ''}"
        )
    columns = [places[word] for word in scaled]
    return ScaledModel(
        model=_scaled(model, columns, weight, width=len(places)),
        scaled=scaled,
        missing=tuple(word for word in asked if word not in places),
    )


def word_columns(vocabulary: Any) -> dict[str, int]:
    """The column of each word, from a vectorizer, a mapping or a list of words."""
    if hasattr(vocabulary, "get_feature_names_out"):
        vocabulary = vocabulary.get_feature_names_out()
    elif hasattr(vocabulary, "vocabulary_"):
        vocabulary = vocabulary.vocabulary_
    if isinstance(vocabulary, Mapping):
        return {str(word): int(column) for word, column in vocabulary.items()}
    return {str(word): column for column, word in enumerate(vocabulary)}


def decide(model: Any, features: Any) -> NDArray[Any]:
    """The class that a linear model decides for each row: its highest score, or score > 0.

    Examples:
        >>> from types import SimpleNamespace
        >>> line = SimpleNamespace(coef_=[[1.0, -1.0]], intercept_=[0.0], classes_=["no", "yes"])
        >>> decide(line, [[2, 1], [0, 1]]).tolist()
        ['yes', 'no']
    """
    if hasattr(model, "predict"):
        return np.asarray(model.predict(features))
    coefficients = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    rows = features if hasattr(features, "toarray") else np.asarray(features, dtype=np.float64)
    scores = np.asarray(rows @ coefficients.T) + np.asarray(model.intercept_, dtype=np.float64)
    chosen = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    decided: NDArray[Any] = np.asarray(model.classes_)[chosen]
    return decided


def trace_token_weights(
    model: Any,
    *,
    features: Any,
    features_under: Mapping[str, Any],
    group: Sequence[Any],
    vocabulary: Any,
    words: Iterable[str],
    truth: Sequence[Any] | None = None,
    weights: Sequence[float] = WEIGHTS,
    positive: Any = None,
    reference: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> WeightTrace:
    """Statistical and counterfactual gaps as the coefficients of some words are scaled.

    `features` are the rows' word counts as they are, `features_under` those of the same texts
    rewritten to each value. Where a rewriting touches no word but `words`, weight 0 gives a
    counterfactual gap of exactly 0; the statistical gap need not vanish with it.
    """
    if len(features_under) < 2:
        raise UsageError(
            f"features_under has {len(features_under)} value. "
            "Give the word counts of the texts rewritten to two values or more."
        )
    rows = _length(features)
    for name, held in {"group": group, "truth": truth, **features_under}.items():
        if held is not None and _length(held) != rows:
            raise DataError(
                f"'{name}' has {_length(held):,} rows and features has {rows:,}. "
                "Give one for each row of features."
            )
    chosen = list(words)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("weight", "measure", "class", "group", "reference")
    }
    columns |= {f"{side}{end}": [] for side in SIDES for end in ("", "_low", "_high")}
    options = Options(level=level, seed=seed)
    for weight in weights:
        scaled = scale_tokens(model, vocabulary=vocabulary, words=chosen, weight=weight)
        table: dict[str, Any] = {"group": list(group)}
        if truth is not None:
            table["truth"] = list(truth)
        table["decision"] = decide(scaled.model, features).tolist()
        for value, counts in features_under.items():
            table[f"decision@{value}"] = decide(scaled.model, counts).tolist()
        decisions = Decisions(
            table,
            truth="truth" if truth is not None else None,
            decision="decision",
            group="group",
            positive=positive,
            reference=reference or {},
        )
        statistical_rows = statistical.measure(decisions, options).rows
        _add(columns, weight, statistical_rows, causal.measure(decisions, options).rows)
    return WeightTrace(columns=columns, scaled=scaled.scaled, missing=scaled.missing)


def _add(columns: dict[str, list[Any]], weight: float, theirs: Rows, ours: Rows) -> None:
    """One weight's gaps, kind beside kind, added to the columns."""
    names = ("measure", "class", "group", "reference")
    wanted = [f"{rate}{end}" for rate in COUNTERFACTUAL_RATES for end in ("_gap", "_gap_rms")]
    statistical_gaps = {
        tuple(row[name] for name in names): row
        for row in theirs.take(np.isin(theirs["measure"].astype(str), wanted))
    }
    for row in ours:
        key = (row["measure"].removeprefix("counterfactual_"), *(row[n] for n in names[1:]))
        if key[0] not in wanted or key not in statistical_gaps:
            continue
        columns["weight"].append(float(weight))
        for name, word in zip(names, key):
            columns[name].append(word)
        for side, found in zip(SIDES, (statistical_gaps[key], row)):
            columns[side].append(found["value"])
            columns[f"{side}_low"].append(found["family_low"])
            columns[f"{side}_high"].append(found["family_high"])


def _scaled(model: Any, columns: list[int], weight: float, *, width: int) -> Any:
    """A copy of coefficients, or of a model that holds them, with some columns multiplied."""
    parts = getattr(model, "estimators_", None)
    if parts is not None:
        whole = copy(model)
        whole.estimators_ = [_scaled(part, columns, weight, width=width) for part in parts]
        return whole
    held = getattr(model, "coef_", model)
    if hasattr(held, "toarray"):
        held = held.toarray()
    coefficients = np.array(held)
    if coefficients.dtype.kind in "iu":
        coefficients = coefficients.astype(np.float64)
    if coefficients.dtype.kind != "f" or coefficients.ndim not in (1, 2):
        raise UsageError(
            f"A model of type {type(model).__name__} has no coefficients. Give an array of them, "
            "or a linear model with coef_."
        )
    if coefficients.shape[-1] != width:
        raise UsageError(
            f"The model has {coefficients.shape[-1]:,} coefficients and the vocabulary "
            f"{width:,} words. Give the vocabulary that the model was fitted on."
        )
    coefficients[..., columns] *= weight
    if held is model or not hasattr(model, "coef_"):
        return coefficients
    changed = copy(model)
    changed.coef_ = coefficients
    return changed


def _length(values: Any) -> int:
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)
