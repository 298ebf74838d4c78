"""Examples for the his-or-him classifier, labelled by the corpus itself, and its words' classes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from zlib import crc32

from evenhand.text.his_or_him import TOKEN, Context, context
from evenhand.text.wordclasses import CLOSED

# "his" and "him" are unambiguous, and so are the other pairs: each is a labelled example for free.
POSSESSIVE_FORMS = {"his": True, "him": False}
OTHER_FORMS = {
    "my": True,
    "me": False,
    "their": True,
    "them": False,
    "our": True,
    "us": False,
    "himself": False,
    "herself": False,
    "themselves": False,
    "myself": False,
}
# These are objects only where a preposition or a verb that takes two things stands before them.
LOOSE_FORMS = {"your": True, "its": True} | dict.fromkeys(
    ("you", "it", "someone", "people", "everyone", "anyone", "everybody"), False
)
OBJECT_AFTER = frozenset({"prep", "make", "call", "find", "give", "buy", "tell", "see", "urge"})

_OPENERS = {"a": "c", "an": "c", "the": "n", "these": "n", "those": "n"}
_OPENERS.update(dict.fromkeys(("to", "will", "would", "can", "could", "must", "may", "t"), "v"))
_OPENERS.update(dict.fromkeys(("is", "was", "are", "were", "very", "so", "too", "more"), "a"))
_CLOSERS = {"prep", "conj", "aux", "adv", "pron"}


def fold_of(text: str) -> int:
    """A number from 0 to 9 that depends on the text alone, so that held-out texts stay held out.

    Examples:
        >>> fold_of("Ask him.")
        3
    """
    return crc32(text.encode("utf-8", "replace")) % 10


def examples(texts: list[str], *, forms: dict[str, bool]) -> Iterator[tuple[int, bool, Context]]:
    """Contexts of the given pronouns: (fold of the text, possessive or not, context).

    Examples:
        >>> [(possessive, around[2]) for _, possessive, around in
        ...  examples(["Tell him that his dog ran."], forms=POSSESSIVE_FORMS)]
        [(False, 'that'), (True, 'dog')]
    """
    pronoun = re.compile(r"\b(?:" + "|".join(forms) + r")\b", re.IGNORECASE)
    for text in texts:
        fold = fold_of(text)
        for match in pronoun.finditer(text):
            if match.group() != "US":  # the country
                around = context(text, match.start(), match.end())
                yield fold, forms[match.group().lower()], around


def induce_classes(texts: Iterable[str]) -> dict[str, str]:
    """Letters of what each open word can be, read off its neighbours: a adjective, c noun that
    can be counted, n other noun, v verb.

    "a nephew of" shows a countable noun, "the paint on" a noun, "will paint" a verb,
    "was happy ." an adjective. A bare countable noun cannot follow an object ("taught her
    nephew"), other nouns can ("gave her food"): endings do not tell the two apart.

    Examples:
        >>> induce_classes(["A nephew of Jo. A nephew, too. They will mutter, can mutter."] * 2)
        {'mutter': 'v', 'nephew': 'c'}
    """
    after: dict[str, Counter[str]] = {letter: Counter() for letter in "acnv"}
    heads: dict[str, Counter[str]] = {letter: Counter() for letter in "acn"}
    total: Counter[str] = Counter()
    for text in texts:
        tokens = TOKEN.findall(text.lower())
        total.update(tokens)
        for before, word, following in zip(tokens, tokens[1:], [*tokens[2:], "."]):
            letter = _OPENERS.get(before)
            if letter is None or word in CLOSED or not word.isalpha():
                continue
            after[letter][word] += 1
            if letter != "v" and (CLOSED.get(following) in _CLOSERS or not following[0].isalnum()):
                heads[letter][word] += 1
    found: dict[str, str] = {}
    for word, count in total.items():
        letters = [
            letter
            for letter in "acn"
            if heads[letter][word] >= 2 and heads[letter][word] >= 0.4 * after[letter][word]
        ]
        if after["v"][word] >= max(2, 0.1 * count):
            letters.append("v")
        if letters:
            found[word] = "".join(letters)
    return dict(sorted(found.items()))
