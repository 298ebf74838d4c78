"""The words that carry a norm into a classifier: those that weigh in both, few enough to show."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import label
from evenhand.errors import DataError, UsageError
from evenhand.models.norm_files import load_norms
from evenhand.models.norm_scorer import NormScorer
from evenhand.models.predictor import open_pickle
from evenhand.models.words import WordWeights, word_weights
from evenhand.stats.estimate import number

MOST = 12


def model_words(
    model: Any,
    *,
    norms: NormScorer | str | Path,
    group: str | None = None,
    trust: bool = False,
) -> WordWeights:
    """Weight of every word in a linear model of texts, beside its weight in a norm scorer.

    `model` is a scikit-learn pipeline from texts to classes by word counts, or its joblib file
    (`trust` allows opening one, which can run any code); `norms` a scorer or its folder; `group`
    says towards whom the norm's weights are positive, by default the scorer's first group.

    Examples:
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from evenhand.models.norm_scorer import Linear
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
    features, last = _parts(held, source)
    scorer = norms if isinstance(norms, NormScorer) else load_norms(norms)[0]
    if not scorer.of_texts:
        raise UsageError(
            "This norm scorer was learned from numbers: it has no words to show. "
            "Learn one from texts with: evenhand norms fit … --text COLUMN"
        )
    found = word_weights(
        last.coef_,
        words=features,
        classes=[str(label(name)) for name in last.classes_],
        scorer=scorer,
        group=group,
    )
    if not np.isfinite(found.norm).any():
        raise DataError(
            f"{source} and the norm scorer share no word: the model's features begin with "
            f"{', '.join(map(repr, features[:3]))}. Only a model of word counts can be shown."
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


def _parts(model: Any, source: str) -> tuple[list[str], Any]:
    """The names of the features, and the linear model on top of them."""
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else model
    if not steps or len(steps) < 2 or not hasattr(last, "coef_"):
        raise DataError(
            f"{source} holds {type(last).__name__}, which has no weights of words. The words can "
            "be shown for a pipeline of word counts and a linear model with coef_."
        )
    try:
        return [str(name) for name in model[:-1].get_feature_names_out()], last
    except (AttributeError, ValueError, NotImplementedError) as error:
        raise DataError(
            f"{source} does not name its features ({str(error).splitlines()[0]}). The words can "
            "be shown for a pipeline of word counts and a linear model with coef_."
        ) from error
