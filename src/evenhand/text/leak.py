"""Leak probe: can a simple classifier tell swapped from original texts?"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import MissingExtra
from evenhand.stats.estimate import Estimate, FloatArray, critical
from evenhand.stats.ranks import average_ranks
from evenhand.text.compiled import Tagger
from evenhand.text.lexicon import Lexicon
from evenhand.text.swap import swap_texts

_FEWEST = 50


def leak_probe(
    texts: Sequence[str | None],
    *,
    lexicon: Lexicon,
    sources: Sequence[str | None] | None = None,
    tagger: Tagger | None = None,
    most: int = 5_000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """AUC of telling swapped from original texts it has not seen; 0.5 is a swap without traces.

    Texts are used twice, as they are and exchanged for the next value, both in the same half, and
    as many of each value. Content and group therefore tell nothing: only traces of the swap do (a
    wrong "him", a title nobody uses). Words and pairs of words, logistic regression. One half is
    learned from and the other judged: scores of several folds depend on each other through the
    texts they learned from, and an interval that ignores it is too short.

    Examples:
        >>> from evenhand.text.lexicon import load_lexicon
        >>> print(leak_probe(["He ran."], lexicon=load_lexicon("gender_pronouns")))
        undefined: the swap changes only 0 texts of female; the probe needs 50
    """
    found = _pairs(texts, lexicon=lexicon, sources=sources, tagger=tagger)
    fewest = min(len(each) for each in found.values())
    if fewest < _FEWEST:
        value = min(found, key=lambda value: len(found[value]))
        reason = f"the swap changes only {fewest} texts of {value}; the probe needs {_FEWEST}"
        return Estimate.none(reason, level=level, n=fewest)
    generator = np.random.default_rng(seed)
    size = min(fewest, most // len(found))
    # As many of each value, in both halves: else the commoner pronoun would tell the originals.
    pairs = [
        each[row] for each in found.values() for row in generator.permutation(len(each))[:size]
    ]
    judged = np.tile(np.arange(size) % 2 == 1, len(found))
    scores = _scores([old for old, _ in pairs], [new for _, new in pairs], judged)
    return _paired_auc(scores[0], scores[1], level=level)


def _pairs(
    texts: Sequence[str | None],
    *,
    lexicon: Lexicon,
    sources: Sequence[str | None] | None,
    tagger: Tagger | None,
) -> dict[str, list[tuple[str, str]]]:
    """By value, each text that changes and itself exchanged for another value."""
    found: dict[str, list[tuple[str, str]]] = {value: [] for value in lexicon.values}
    for to, source in pairwise((*lexicon.values, lexicon.values[0])):
        done = swap_texts(texts, to=to, lexicon=lexicon, sources=sources, tagger=tagger)
        for row in np.flatnonzero(done.changed).tolist():
            text, new = texts[row], done.texts[row]
            if done.values[row] == source and text is not None and new is not None:
                found[source].append((text, new))
    return found


def _scores(original: list[str], changed: list[str], judged: NDArray[np.bool_]) -> FloatArray:
    """Scores of the judged texts, shape (2, texts): originals first, their swaps second."""
    try:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError as problem:
        raise MissingExtra("text", "The leak probe") from problem
    # Marks are tokens, so that no pair of words spans two sentences: "… knitting. Ms. Sato …" would
    # tell that the topic fits the title, which is the group's content and no trace of the swap.
    words = CountVectorizer(
        ngram_range=(1, 2), min_df=3, token_pattern=r"\w+|[.!?;:,]", binary=True
    )
    table = words.fit_transform([*original, *changed])
    label = np.repeat([0, 1], len(original))
    held = np.tile(judged, 2)
    model = LogisticRegression(C=0.1, solver="liblinear")
    model.fit(table[~held], label[~held])
    scores: FloatArray = model.decision_function(table[held])
    return scores.reshape(2, -1)


def _paired_auc(original: FloatArray, changed: FloatArray, *, level: float) -> Estimate:
    """AUC with the interval for pairs: the two scores of one text are not independent."""
    n = len(original)
    ranks = average_ranks(np.concatenate([original, changed]))
    below = (ranks[n:] - average_ranks(changed)) / n
    above = 1 - (ranks[:n] - average_ranks(original)) / n
    value = float(below.mean())
    half = critical(level) * float((below + above).std(ddof=1)) / n**0.5
    return Estimate(
        value=value,
        low=max(0.0, value - half),
        high=min(1.0, value + half),
        level=level,
        n=n,
        method="held-out AUC, variance by pairs",
    )
