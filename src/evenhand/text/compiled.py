"""A lexicon made ready: one expression that finds its words, one table for each rewriting."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any

from evenhand.text.agreement import agree
from evenhand.text.her.model import HerModel, shipped_model
from evenhand.text.lexicon import Choice, Entry, Lexicon, Protected
from evenhand.text.tokens import case_forms, copy_case, vowel_sound, word_pattern

Tagger = Callable[[str], Iterable[Any]]
_ARTICLE = re.compile(r"\b([Aa])(n?)(\s+)$")
_SET_OF_PRONOUNS = re.compile(r"\b(?:she|they|he)\s?/\s?$", re.IGNORECASE)
_UNSURE = 0.1  # a probability this close to a half is listed as unresolved
_NEAR = 40  # characters before a word in which a reason to protect it is looked for

Rewritten = tuple[str, str | None, bool, int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A word to be decided by its part of speech, in its case."""

    possessive: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What `swap` needs of a lexicon; made once and kept with it."""

    lexicon: Lexicon
    find: re.Pattern[str]
    value_of: dict[str, str | None]
    tables: dict[tuple[str, str], dict[str, str | Part]]
    guards: dict[str, list[Protected]]
    watched: frozenset[str]
    hints: tuple[str, ...]

    def rewrite(
        self, text: str, *, to: str, source: str | None, tagger: Tagger | None
    ) -> Rewritten:
        """The text under `to`, its own value, whether it is mixed, words replaced, unresolved."""
        pieces = self.find.split(text)
        if len(pieces) == 1:
            return text, source, False, 0, ()
        hits: Iterable[int] = range(1, len(pieces), 2)
        if not self.watched.isdisjoint(pieces) or self._hinted(text):
            hits = self._unguarded(text, pieces)
        value_of = self.value_of
        values = [value_of[pieces[hit]] for hit in hits]
        if source is None:
            source = _commonest(values)
        if source is None:
            return text, None, False, 0, ()
        mixed = values.count(source) + values.count(None) != len(values)
        if source == to:
            return text, source, mixed, 0, ()
        replaced, unresolved = self._replace(text, pieces, hits, source, to, tagger)
        return "".join(pieces), source, mixed, replaced, tuple(unresolved)

    def _hinted(self, text: str) -> bool:
        # A loop, since any() over a generator costs more than all the searches.
        for hint in self.hints:  # noqa: SIM110
            if hint in text:
                return True
        return False

    def _unguarded(self, text: str, pieces: list[str]) -> list[int]:
        """Places of words that no protected span covers."""
        starts = [0, *accumulate(map(len, pieces))]
        guards = self.guards
        return [
            hit
            for hit in range(1, len(pieces), 2)
            if pieces[hit] not in guards
            or not _covered(text, starts[hit], starts[hit + 1], guards[pieces[hit]])
        ]

    def _replace(
        self,
        text: str,
        pieces: list[str],
        hits: Iterable[int],
        source: str,
        to: str,
        tagger: Tagger | None,
    ) -> tuple[int, list[str]]:
        """Writes the new words into the pieces; every decision reads the original text."""
        table = self.tables[source, to]
        agreement = self.lexicon.agreement
        unresolved: list[str] = []
        replaced = 0
        found = [(hit, table.get(pieces[hit])) for hit in hits]
        # Its offsets are those of the original, so it is made before any word is replaced.
        decide = (
            _Decider(text, pieces, tagger) if any(type(new) is Part for _, new in found) else None
        )
        for hit, new in found:
            word = pieces[hit]
            if new is None:
                value = self.value_of[word]
                if value in (source, to):
                    unresolved.append(word)
                continue
            if decide is not None and not isinstance(new, str):
                new = decide(hit, new, unresolved)
            assert isinstance(new, str)
            pieces[hit] = new
            replaced += 1
            if vowel_sound(word) != vowel_sound(new):
                pieces[hit - 1] = _with_article(pieces[hit - 1], vowel=vowel_sound(new))
            if agreement is not None and word.lower() in agreement.subjects:
                plural = self._plural(word, source, to)
                if plural is not None:
                    unresolved += agree(pieces, hit, plural=plural, rules=agreement)
        return replaced, unresolved

    def _plural(self, word: str, source: str, to: str) -> bool | None:
        """Whether the subject became plural, or singular; None where its number stayed."""
        assert self.lexicon.agreement is not None
        plural = self.lexicon.agreement.plural
        old = self.value_of[word]
        new = to if old == source else source
        was, now = old in plural, new in plural
        return None if was == now else now


def _covered(text: str, start: int, end: int, guards: list[Protected]) -> bool:
    """Whether what stands before or after text[start:end] protects it."""
    for guard in guards:
        if guard.after is not None and guard.after.match(text, end) is None:
            continue
        low = max(0, start - _NEAR)
        if guard.before is None or guard.before.search(text, low, start) is not None:
            return True
    return False


class _Decider:
    """His or him for the words of one text, all read from the original."""

    def __init__(self, text: str, pieces: list[str], tagger: Tagger | None) -> None:
        self.text = text
        self.starts = [0, *accumulate(map(len, pieces))]
        self.model: HerModel = shipped_model()
        self.tags = None if tagger is None else {token.idx: token.tag_ for token in tagger(text)}

    def __call__(self, hit: int, part: Part, unresolved: list[str]) -> str:
        start, end = self.starts[hit], self.starts[hit + 1]
        tag = None if self.tags is None else self.tags.get(start)
        if tag == "PRP$":
            return part.possessive
        if tag == "PRP" or _SET_OF_PRONOUNS.search(self.text, max(0, start - 8), start):
            return part.object
        probability = self.model.possessive(self.text, start, end)
        if self.tags is not None or abs(probability - 0.5) < _UNSURE:
            unresolved.append(self.text[start:end])
        return part.possessive if probability > 0.5 else part.object


def compiled(lexicon: Lexicon) -> Compiled:
    """The compiled form of a lexicon, made at the first call.

    Examples:
        >>> from evenhand.text.lexicon import load_lexicon
        >>> ready = compiled(load_lexicon("gender_pronouns"))
        >>> ready.rewrite("He ran.", to="female", source=None, tagger=None)
        ('She ran.', 'male', False, 1, ())
    """
    if "compiled" not in lexicon.cache:
        lexicon.cache["compiled"] = _compile(lexicon)
    found: Compiled = lexicon.cache["compiled"]
    return found


def _compile(lexicon: Lexicon) -> Compiled:
    value_of: dict[str, str | None] = {}
    tables: dict[tuple[str, str], dict[str, str | Part]] = {
        (source, to): {} for source, to in product(lexicon.values, repeat=2) if source != to
    }
    for entry in lexicon.entries.values():
        for form in _forms(entry):
            value_of[form] = entry.value
            for (source, to), table in tables.items():
                # A mixed text exchanges the two values: words of `to` become words of `source`.
                into = source if entry.value == to else to
                if entry.value in (source, to, None) and into in entry.to:
                    table[form] = _in_case(form, entry.to[into], lexicon.case)
    guards: dict[str, list[Protected]] = {}
    for each in lexicon.protected:
        for word in each.words:
            guards.setdefault(word, []).append(each)
    return Compiled(
        lexicon=lexicon,
        find=word_pattern(value_of),
        value_of=value_of,
        tables=tables,
        guards=guards,
        watched=frozenset(
            word for each in lexicon.protected if not each.needs for word in each.words
        ),
        hints=tuple(dict.fromkeys(hint for each in lexicon.protected for hint in each.needs)),
    )


def _forms(entry: Entry) -> list[str]:
    if entry.only == "name":
        return list(dict.fromkeys((entry.word, entry.word.upper())))
    return case_forms(entry.word, only=entry.only)


def _in_case(form: str, new: str | Choice, case: str) -> str | Part:
    copy = copy_case if case == "copy" else lambda _, word: word
    if isinstance(new, str):
        return copy(form, new)
    return Part(possessive=copy(form, new.possessive), object=copy(form, new.object))


def _commonest(values: list[str | None]) -> str | None:
    """The value with most words; the first to appear where several have as many."""
    first = values[0] if values else None
    if first is not None and values.count(first) == len(values):
        return first
    known = [value for value in values if value is not None]
    return max(known, key=known.count) if known else None


def _with_article(before: str, *, vowel: bool) -> str:
    """The text before a word with "a" or "an" as the new word needs it."""
    found = _ARTICLE.search(before)
    if found is None:
        return before
    return f"{before[: found.start()]}{found[1]}{'n' if vowel else ''}{found[3]}"
