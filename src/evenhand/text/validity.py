"""How far a swap can be trusted: what changed, what stayed open, and what it left behind.

`leak_probe` trains a classifier to tell swapped texts from original ones.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import MissingExtra
from evenhand.stats.estimate import Estimate, FloatArray, critical
from evenhand.stats.ranks import average_ranks
from evenhand.stats.rates import rate
from evenhand.stats.weights import distinct
from evenhand.text.compiled import Tagger
from evenhand.text.lexicon import Lexicon, load_lexicon
from evenhand.text.swap import SwappedTexts, swap_texts
from evenhand.text.tokens import vowel_sound

_FEWEST = 50
_FEWEST_TEXTS = 3
# Marks are tokens, so that no pair of words spans two sentences: "… knitting. Ms. Sato …" would
# tell that the topic fits the title, which is the group's content and no trace of the swap.
_TOKEN = re.compile(r"\w+|[.!?;:,]")
_ARTICLE = re.compile(r"\b([Aa]n?)\s+([a-zA-Z]\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapValidity:
    """Validity of a swap to one value; every share is among the texts that are not null.

    `round_trip` is the share of changed texts that come back, undefined where the lexicon
    promises none; `articles` the share of changed texts with more mismatches of a and an
    than before; `leak` the AUC of telling swapped from original texts (0.5: cannot).
    """

    to: str
    lexicon: str
    missing: int
    changed: Estimate
    mixed: Estimate
    unresolved: Estimate
    unresolved_words: Mapping[str, int]
    round_trip: Estimate
    articles: Estimate
    placebo_changed: Estimate
    leak: Estimate

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        named = ("changed", "mixed", "unresolved", "round_trip", "articles", "placebo_changed")
        lines = [f"swap to {self.to} with {self.lexicon}"]
        lines += [f"  {name}: {getattr(self, name)}" for name in (*named, "leak")]
        return "\n".join(lines)


def swap_validity(
    texts: Sequence[str | None],
    *,
    to: str,
    lexicon: Lexicon | str = "gender_pronouns",
    sources: Sequence[str | None] | None = None,
    tagger: Tagger | None = None,
    probe: bool = True,
    level: float = 0.95,
    seed: int = 0,
) -> SwapValidity:
    """Validity of swapping these texts to one value.

    Examples:
        >>> found = swap_validity(["He ran.", "She saw Mr. Poe.", "Rain."], to="female")
        >>> print(found.changed)
        0.333 [0.061, 0.792] n=3
    """
    words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)
    texts = list(texts)
    done = swap_texts(texts, to=to, lexicon=words, sources=sources, tagger=tagger)
    leak = (
        leak_probe(texts, lexicon=words, sources=sources, tagger=tagger, level=level, seed=seed)
        if probe
        else Estimate.none("the probe was not asked for", level=level)
    )
    placebo = placebo_changes(texts)
    return judge_swap(
        texts, done, lexicon=words, leak=leak, placebo=placebo, tagger=tagger, level=level
    )


def judge_swap(
    texts: Sequence[str | None],
    done: SwappedTexts,
    *,
    lexicon: Lexicon,
    leak: Estimate,
    placebo: int,
    tagger: Tagger | None,
    level: float,
) -> SwapValidity:
    """Validity of texts that are swapped already, of which a placebo would change so many."""
    n = len(done) - done.missing
    counts = Counter(word.lower() for left in done.unresolved.values() for word in left)
    return SwapValidity(
        to=done.to,
        lexicon=lexicon.name,
        missing=done.missing,
        changed=rate(int(done.changed.sum()), n, level=level),
        mixed=rate(int(done.mixed.sum()), n, level=level),
        unresolved=rate(len(done.unresolved), n, level=level),
        unresolved_words=dict(counts.most_common()),
        round_trip=_round_trip(texts, done, lexicon, tagger=tagger, level=level),
        articles=_articles(texts, done, level=level),
        placebo_changed=rate(placebo, n, level=level),
        leak=leak,
    )


def placebo_changes(texts: Sequence[str | None]) -> int:
    """How many texts neutral synonyms change: the baseline that should have no effect.

    Each text is rewritten away from its own wording, so that about as much changes as in a swap.

    Examples:
        >>> placebo_changes(["He often ran.", "She frequently ran.", "Rain.", None])
        2
    """
    lexicon = load_lexicon("neutral_synonyms")
    left, changed = list(texts), 0
    for value in lexicon.values:
        done = swap_texts(left, to=value, lexicon=lexicon)
        changed += int(done.changed.sum())
        left = [text for text, new in zip(left, done.changed.tolist()) if not new]
    return changed


def leak_probe(
    texts: Sequence[str | None],
    *,
    lexicon: Lexicon,
    sources: Sequence[str | None] | None = None,
    tagger: Tagger | None = None,
    swapped: Mapping[str, SwappedTexts] | None = None,
    most: int = 5_000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """AUC of telling swapped from original texts it has not seen; 0.5 is a swap without traces.

    Texts are used twice, as they are and exchanged for the next value, both in the same half, and
    as many of each value. Content and group therefore tell nothing: only traces of the swap do (a
    wrong "him", a title nobody uses). Words and pairs of words, logistic regression. One half is
    learned from and the other judged: scores of several folds depend on each other through the
    texts they learned from, and an interval that ignores it is too short. `swapped` are the texts
    under each value, where they are known.

    Examples:
        >>> from evenhand.text.lexicon import load_lexicon
        >>> print(leak_probe(["He ran."], lexicon=load_lexicon("gender_pronouns")))
        undefined: the swap changes only 0 texts of female; the probe needs 50
    """
    if swapped is None:
        swapped = {
            to: swap_texts(texts, to=to, lexicon=lexicon, sources=sources, tagger=tagger)
            for to in lexicon.values
        }
    found = _pairs(texts, lexicon, swapped)
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


def article_mismatches(text: str) -> int:
    """Number of "a" before a vowel sound and "an" before a consonant.

    Examples:
        >>> article_mismatches("a actor and an hero met a queen")
        2
    """
    return sum(
        (article.lower() == "an") != vowel_sound(word)
        for article, word in _ARTICLE.findall(text)
        if not word.isupper()
    )


def _round_trip(
    texts: Sequence[str | None],
    done: SwappedTexts,
    lexicon: Lexicon,
    *,
    tagger: Tagger | None,
    level: float,
) -> Estimate:
    if not lexicon.round_trip:
        return Estimate.none("the lexicon promises no round trip", level=level)
    rows = np.flatnonzero(done.changed).tolist()
    back = 0
    for value in lexicon.values:
        own = [row for row in rows if done.values[row] == value]
        again = swap_texts(
            [done.texts[row] for row in own],
            to=value,
            lexicon=lexicon,
            sources=[done.to] * len(own),
            tagger=tagger,
        )
        back += sum(text == texts[row] for text, row in zip(again.texts, own))
    return rate(back, len(rows), level=level)


def _articles(texts: Sequence[str | None], done: SwappedTexts, *, level: float) -> Estimate:
    rows = np.flatnonzero(done.changed).tolist()
    worse = sum(
        article_mismatches(done.texts[row] or "") > article_mismatches(texts[row] or "")
        for row in rows
    )
    return rate(int(worse), len(rows), level=level)


def _pairs(
    texts: Sequence[str | None], lexicon: Lexicon, swapped: Mapping[str, SwappedTexts]
) -> dict[str, list[tuple[str, str]]]:
    """By value, each text that changes and itself exchanged for another value."""
    found: dict[str, list[tuple[str, str]]] = {value: [] for value in lexicon.values}
    for to, source in pairwise((*lexicon.values, lexicon.values[0])):
        done = swapped[to]
        for row in np.flatnonzero(done.changed).tolist():
            text, new = texts[row], done.texts[row]
            if done.values[row] == source and text is not None and new is not None:
                found[source].append((text, new))
    return found


def _scores(original: list[str], changed: list[str], judged: NDArray[np.bool_]) -> FloatArray:
    """Scores of the judged texts, shape (2, texts): originals first, their swaps second."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as problem:
        raise MissingExtra("text", "The leak probe") from problem
    table = words_and_pairs([*original, *changed], fewest=_FEWEST_TEXTS)
    label = np.repeat([0, 1], len(original))
    held = np.tile(judged, 2)
    model = LogisticRegression(C=0.1, solver="liblinear")
    model.fit(table[~held], label[~held])
    scores: FloatArray = model.decision_function(table[held])
    return scores.reshape(2, -1)


def words_and_pairs(texts: Sequence[str], *, fewest: int) -> Any:
    """Which words, and pairs of neighbouring words, each text has: 1 where it has one.

    Columns are those that occur in `fewest` texts, by name: the table of scikit-learn's
    CountVectorizer, but pairs are numbers until they are known to be kept.

    Examples:
        >>> words_and_pairs(["He ran. He", "he ran far"], fewest=2).toarray().tolist()
        [[1, 1, 1], [1, 1, 1]]
    """
    from scipy import sparse

    tokens = [_TOKEN.findall(text.lower()) for text in texts]
    flat = [token for each in tokens for token in each]
    names = list(dict.fromkeys(flat))
    place = {name: i for i, name in enumerate(names)}
    word = np.fromiter(map(place.__getitem__, flat), dtype=np.int64, count=len(flat))
    text = np.repeat(np.arange(len(texts)), [len(each) for each in tokens])
    width = max(len(names), 1)
    both = text[1:] == text[:-1]
    # A word alone is a pair with nothing, so that one number says which of all columns it is.
    pair = (word[:-1] * (width + 1) + word[1:] + 1)[both]
    column, code = distinct(np.concatenate([word * (width + 1), pair]))
    cell, _ = distinct(np.concatenate([text, text[1:][both]]) * column.size + code)
    row, code = np.divmod(cell, max(column.size, 1))
    kept = np.flatnonzero(np.bincount(code, minlength=column.size) >= fewest)
    first, second = np.divmod(column[kept], width + 1)
    called = [
        names[i] if j == 0 else f"{names[i]} {names[j - 1]}"
        for i, j in zip(first.tolist(), second.tolist())
    ]
    order = np.full(column.size, -1, dtype=np.int64)
    order[kept[sorted(range(kept.size), key=called.__getitem__)]] = np.arange(kept.size)
    code = order[code]
    there = code >= 0
    found = sparse.csr_matrix(
        (np.ones(int(there.sum()), dtype=np.int64), (row[there], code[there])),
        shape=(len(texts), kept.size),
    )
    found.sort_indices()
    return found


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
