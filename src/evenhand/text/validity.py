"""How far a swap can be trusted: what changed, what stayed open, and what it left behind."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand.stats.estimate import Estimate
from evenhand.stats.rates import rate
from evenhand.text.compiled import Tagger
from evenhand.text.leak import leak_probe
from evenhand.text.lexicon import Lexicon, load_lexicon
from evenhand.text.swap import SwappedTexts, swap_texts
from evenhand.text.tokens import vowel_sound

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
    n = len(done) - done.missing
    counts = Counter(word.lower() for left in done.unresolved.values() for word in left)
    leak = (
        leak_probe(texts, lexicon=words, sources=sources, tagger=tagger, level=level, seed=seed)
        if probe
        else Estimate.none("the probe was not asked for", level=level)
    )
    placebo = placebo_swap(texts)
    return SwapValidity(
        to=to,
        lexicon=words.name,
        missing=done.missing,
        changed=rate(int(done.changed.sum()), n, level=level),
        mixed=rate(int(done.mixed.sum()), n, level=level),
        unresolved=rate(len(done.unresolved), n, level=level),
        unresolved_words=dict(counts.most_common()),
        round_trip=_round_trip(texts, done, words, tagger=tagger, level=level),
        articles=_articles(texts, done, level=level),
        placebo_changed=rate(int(placebo.changed.sum()), n, level=level),
        leak=leak,
    )


def placebo_swap(texts: Iterable[str | None]) -> SwappedTexts:
    """The texts with neutral synonyms exchanged: the baseline that should have no effect.

    Each text is rewritten away from its own wording, so that about as much changes as in a swap.

    Examples:
        >>> placebo_swap(["He often ran.", "She frequently ran."]).texts
        ['He frequently ran.', 'She often ran.']
    """
    rows = list(texts)
    lexicon = load_lexicon("neutral_synonyms")
    plain, other = lexicon.values
    away = swap_texts(rows, to=other, lexicon=lexicon)
    back = swap_texts(rows, to=plain, lexicon=lexicon)
    pick = away.changed
    return SwappedTexts(
        texts=[a if use else b for a, b, use in zip(away.texts, back.texts, pick)],
        to="<other wording>",
        values=away.values,
        changed=pick | back.changed,
        mixed=away.mixed,
        replaced=np.where(pick, away.replaced, back.replaced),
        unresolved={**back.unresolved, **away.unresolved},
        missing=away.missing,
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
