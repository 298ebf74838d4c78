"""Words that carry a difference: their weights in a model and in its norm scorer.

`word_weights` sets the two side by side and `word_filter` drops words by them. How much of a gap do
the group's own words carry? `trace_token_weights` multiplies their coefficients by w: at w = 0 the
model cannot see them, so rewriting them changes no decision (METHODS: the weight experiment).
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.decisions.labels import label
from evenhand.decisions.table import Decisions
from evenhand.errors import DataError, UsageError, nearest
from evenhand.lenses.counterfactual import lens as counterfactual
from evenhand.lenses.measures import COUNTERFACTUAL_RATES
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.statistical import lens as statistical
from evenhand.models.norms.scorer import NormScorer, load_norms
from evenhand.models.predictor import open_pickle
from evenhand.models.vectors import cosine_weights
from evenhand.stats.estimate import FloatArray, number

MOST = 12
WEIGHTS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
SIDES = ("statistical", "counterfactual")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearWords:
    """A linear model and the words it reads; with an `embedding` it reads their mean vectors."""

    coef_: FloatArray
    classes_: Any
    words: tuple[str, ...]
    embedding: NDArray[Any] | None = None


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


def model_words(
    model: Any,
    *,
    norms: NormScorer | str | Path | None = None,
    group: str | None = None,
    of: str | None = None,
    trust: bool = False,
) -> WordWeights:
    """Weight of every word in a linear model of texts, beside its weight in a norm scorer.

    `model` is a model of `compare`, a scikit-learn pipeline from texts to classes by word counts,
    or the joblib file of either (`trust` allows opening one, which can run any code); `of` names
    the group of one of several models by group. `norms` is a scorer or its folder; `group` says
    towards whom the norm's weights are positive, by default the scorer's first group.

    Examples:
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from evenhand.models.norms.scorer import Linear
        >>> pipe = make_pipeline(CountVectorizer(), LogisticRegression())
        >>> pipe = pipe.fit(["warm ward", "warm ward", "cold law"], ["nurse", "nurse", "lawyer"])
        >>> linear = Linear(weights=np.array([[1.0, 0], [-1, 0]]), intercepts=np.zeros(2))
        >>> scorer = NormScorer(groups=("f", "m"), names=("warm", "law"), linear=linear,
        ...                     seen=np.zeros(0, dtype=np.uint64))
        >>> found = model_words(pipe, norms=scorer)
        >>> found.words, found.norm.tolist(), bool(found.weights[1, 3] > 0)
        (('cold', 'law', 'ward', 'warm'), [nan, 0.0, nan, 1.0], True)
    """
    source = f"model={str(model)!r}" if isinstance(model, str | Path) else "The model"
    held = _opened(model, trust=trust, source=source)
    parts = _parts(held, source, of)
    scorer = None if norms is None else norms
    if scorer is not None and not isinstance(scorer, NormScorer):
        scorer = load_norms(scorer)[0]
    if scorer is not None and not scorer.of_texts:
        raise UsageError(
            "This norm scorer was learned from numbers: it has no words to show. "
            "Learn one from texts with: evenhand norms fit … --text COLUMN"
        )
    found = word_weights(
        parts.coef_,
        words=parts.words,
        embedding=parts.embedding,
        classes=[str(label(name)) for name in parts.classes_],
        scorer=scorer,
        group=group,
    )
    if scorer is not None and not np.isfinite(found.norm).any():
        raise DataError(
            f"{source} and the norm scorer share no word: the model's features begin with "
            f"{', '.join(map(repr, parts.words[:3]))}. Only a model of word counts can be shown."
        )
    return found


def carriers(found: WordWeights, *, most: int = MOST) -> list[dict[str, Any]]:
    """The words that weigh most in classifier and norm together, for each class.

    Of each class `most` words that say something of it and as many that do not, by the size of
    the product of both weights; as plain rows of word, class, classifier, norm and relevant.

    Examples:
        >>> weights = WordWeights(words=("warm", "law"), classes=("nurse",), norm_group="f",
        ...                       weights=np.array([[2.0, -1.0]]), norm=np.array([0.5, 0.1]),
        ...                       relevant=np.array([[False, True]]))
        >>> [(row["word"], row["classifier"], row["relevant"]) for row in carriers(weights)]
        [('warm', 2.0, False), ('law', -1.0, True)]
    """
    rows: list[dict[str, Any]] = []
    for c, name in enumerate(found.classes):
        both = np.abs(found.weights[c] * found.norm)
        chosen: list[int] = []
        for kind in _kinds(found, c):
            places = np.flatnonzero(kind & (both > 0))
            chosen += places[np.argsort(-both[places], kind="stable")[:most]].tolist()
        rows += [
            {
                "word": found.words[k],
                "class": name,
                "classifier": number(found.weights[c, k]),
                "norm": number(found.norm[k]),
                "relevant": None if found.relevant is None else bool(found.relevant[c, k]),
            }
            for k in sorted(chosen, key=lambda k: -both[k])
        ]
    return rows


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
            # What a linear model decides between are classes, whatever their names.
            classes=True,
        )
        decisions.check()
        statistical_rows = statistical.measure(decisions, options).rows
        _add(columns, weight, statistical_rows, counterfactual.measure(decisions, options).rows)
    return WeightTrace(columns=columns, scaled=scaled.scaled, missing=scaled.missing)


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


def _kinds(found: WordWeights, c: int) -> list[NDArray[np.bool_]]:
    if found.relevant is None:
        return [np.ones(len(found.words), dtype=bool)]
    return [found.relevant[c], ~found.relevant[c]]


def _opened(model: Any, *, trust: bool, source: str) -> Any:
    if not isinstance(model, str | Path):
        return getattr(model, "model", model)
    if not Path(model).is_file():
        raise UsageError(
            f"{source} is not a joblib file. The words can be shown for a scikit-learn pipeline "
            "of word counts and a linear model, saved by joblib.dump."
        )
    return open_pickle(Path(model), trust=trust)


def _parts(model: Any, source: str, of: str | None) -> LinearWords:
    """The linear model and its words: a remedy's own, or the last step of a pipeline."""
    if hasattr(model, "word_parts"):
        found: LinearWords = model.word_parts(of)
        return found
    if of is not None:
        raise UsageError(f"of={of!r} is for models by group, and {source} is one model.")
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else model
    if not steps or len(steps) < 2 or not hasattr(last, "coef_"):
        raise DataError(
            f"{source} holds {type(last).__name__}, which has no weights of words. The words can "
            "be shown for a pipeline of word counts and a linear model with coef_."
        )
    try:
        words = tuple(str(name) for name in model[:-1].get_feature_names_out())
        return LinearWords(coef_=last.coef_, classes_=last.classes_, words=words)
    except (AttributeError, ValueError, NotImplementedError) as error:
        raise DataError(
            f"{source} does not name its features ({str(error).splitlines()[0]}). The words can "
            "be shown for a pipeline of word counts and a linear model with coef_."
        ) from error


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
