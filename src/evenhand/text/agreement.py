"""Verbs that follow a subject whose number changes: she works, they work."""

import re

from evenhand.text.her.wordclasses import word_class
from evenhand.text.lexicon import Agreement
from evenhand.text.tokens import copy_case

_NEXT = re.compile(r"(\s+)(\w+?n['’]t\b|\w+)")
_CONTRACTED = re.compile(r"(['’])(s|re|ve)\b(?:\s+(\w+))?")
_PREVIOUS = re.compile(r"(\w+?n['’]t|\w+)(\s+)$")
_COORDINATED = re.compile(r"\b(?:and|or|but|then|also)\s+(?:\w+ly\s+)?(\w+[^su\W]s)\b(?:\s+(\w+))?")
_AT_ONCE = re.compile(r"(?:\s+\w+ly)?,?\s*(?:(?:and|or|but)\s+)?")
_OPENS_OBJECT = re.compile(
    r"an?|the|this|that|these|those|my|his|her|its|our|their|your|some|many|several|every|each|one"
    r"|two|three|him|them|it|us|me|(?:him|her|it)self|themselves"
)
_SENTENCE_END = re.compile(r"[.!?;]")
_REACH = 3  # adverbs skipped between the subject and its verb


def agree(pieces: list[str], hit: int, *, plural: bool, rules: Agreement) -> list[str]:
    """Changes the verb after (or before, in a question) the subject at pieces[hit], in place.

    Returns the words whose form it could not decide: they are left as they are.
    """
    after = pieces[hit + 1]
    contracted = _CONTRACTED.match(after)
    if contracted:
        pieces[hit + 1] = _contraction(contracted, plural=plural) + after[contracted.end(2) :]
        return []
    table = _table(rules, plural=plural)
    before = _PREVIOUS.search(pieces[hit - 1])
    if before and before[1].lower().replace("’", "'") in table:
        new = copy_case(before[1], table[before[1].lower().replace("’", "'")])
        pieces[hit - 1] = pieces[hit - 1][: before.start()] + new + before[2]
        return []
    return _following(pieces, hit, table, plural=plural, rules=rules)


def _following(
    pieces: list[str], hit: int, table: dict[str, str], *, plural: bool, rules: Agreement
) -> list[str]:
    after = pieces[hit + 1]
    at = 0
    for _ in range(_REACH):
        found = _NEXT.match(after, at)
        if found is None:
            return []
        word = found[2].lower().replace("’", "'")
        if word in rules.adverbs or word.endswith("ly"):
            at = found.end()
            continue
        if word in rules.unchanging or word in rules.not_verbs:
            return []
        new = table.get(word) or (_to_plural if plural else _to_singular)(word, rules)
        if new is None:
            return [found[2]]
        pieces[hit + 1] = after[: found.start(2)] + copy_case(found[2], new) + after[found.end() :]
        return _left_over(after[found.end() :], plural=plural, rules=rules) if new != word else []
    return []


def _table(rules: Agreement, *, plural: bool) -> dict[str, str]:
    return dict(rules.verbs) if plural else {b: a for a, b in rules.verbs}


def _contraction(found: re.Match[str], *, plural: bool) -> str:
    """'s to 're or 've, and back; "she's been" has been, "she's here" is."""
    mark, ending, following = found[1], found[2], (found[3] or "").lower()
    if not plural:
        return f"{mark}s"
    if ending != "s":
        return f"{mark}{ending}"
    perfect = following in {
        "been",
        "had",
        "got",
        "done",
        "gone",
        "become",
        "made",
        "won",
        "written",
    }
    return f"{mark}{'ve' if perfect else 're'}"


def _to_plural(word: str, rules: Agreement) -> str | None:
    """The verb without its -s; the word itself where it has none; None where that is unclear."""
    if not word.endswith("s"):
        return word
    if word.endswith(("ss", "us", "is")):
        return None
    if word[:-1] in rules.regular:
        return word[:-1]
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def _to_singular(word: str, rules: Agreement) -> str | None:
    """The verb with its -s where it is known to be one, itself where it is a past tense."""
    if word in rules.regular:
        if word.endswith(("s", "sh", "ch", "x", "z", "o")):
            return f"{word}es"
        if word.endswith("y") and word[-2] not in "aeiou":
            return f"{word[:-1]}ies"
        return f"{word}s"
    return word if word.endswith("ed") else None


def _left_over(rest: str, *, plural: bool, rules: Agreement) -> list[str]:
    """Verbs further on that share the subject: she teaches and *writes*.

    After an object a word in -s may as well be a noun (she likes harbours and *gardens*), so there
    it must be one that is hardly ever a noun, be known as a verb with a word after it, or have an
    object of its own.
    """
    if not plural:
        return []
    end = _SENTENCE_END.search(rest)
    left = []
    for found in _COORDINATED.finditer(rest[: end.start()] if end else rest):
        word, following = found[1], (found[2] or "").lower()
        base = _to_plural(word.lower(), rules)
        verb = (
            _AT_ONCE.fullmatch(rest, 0, found.start()) is not None
            or _OPENS_OBJECT.fullmatch(following) is not None
            or (base in rules.regular and following != "")
            or (base is not None and word_class(base, induced={}) == "base")
        )
        if verb:
            left.append(word)
    return left
