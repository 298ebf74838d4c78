"""The words around a pronoun, and what of them tells a possessive from an object."""

import re
from collections.abc import Iterator, Mapping, Sequence
from zlib import crc32

from evenhand.text.her.wordclasses import word_class

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

_TOKEN = re.compile(r"\w+|[^\w\s]")
_AFTER = re.compile(r"\s*(\w+|[^\w\s])?\s*(\w+|[^\w\s])?\s*(\w+|[^\w\s])?")
_QUOTES = frozenset("\"'“‘«")
_REACH = 60  # characters looked at on each side; the words needed fit

Context = tuple[str, str, str, str, str, str]
POSITIONS = ("p2", "p1", "n1", "n2", "n3")


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
        before = ["<end>", "<end>", *_TOKEN.findall(near)][-2:]
    after: Sequence[str | None] = text[end : end + _REACH].split(None, 3)[:3]
    if len(after) < 3 or text[end] != " " or not all(map(str.isalnum, after)):  # type: ignore[arg-type]
        after = _after(text, end)
    first, second, third = after
    return (before[0], before[1], first or "<end>", second or "<end>", third or "<end>", own)


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
