"""A lexicon made ready: one expression that finds its words, one table for each rewriting.

With the words change what depends on them: "a" and "an", verbs whose subject becomes plural or
singular, and his or him, which a tagger or the words around it decide.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any

from evenhand.errors import UsageError
from evenhand.text.his_or_him import HerModel, shipped_model
from evenhand.text.lexicon import Agreement, Lexicon, LexiconWord, PronounForms, Protected
from evenhand.text.tokens import (
    alike,
    case_forms,
    copy_case,
    copy_form,
    vowel_sound,
    word_pattern,
    words_of,
)
from evenhand.text.wordclasses import word_class

Tagger = Callable[[str], Iterable[Any]]
Rewritten = tuple[str, str | None, bool, int, tuple[str, ...]]
_Tables = dict[tuple[str, str], dict[str, str | PronounForms]]
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
_ARTICLE = re.compile(r"\b([Aa])(n?)(\s+)$")
_SET_OF_PRONOUNS = re.compile(r"\b(?:she|they|he)\s?/\s?$", re.IGNORECASE)
_UNSURE = 0.1  # a probability this close to a half is listed as unresolved
_NEAR = 40  # characters before a word in which a reason to protect it is looked for
_PREFIX = "spacy:"
# What tags are not made from; without them a text takes a fraction of the time.
_UNUSED = {
    "tagger": ("parser", "ner", "lemmatizer"),
    "ner": ("tagger", "parser", "attribute_ruler", "lemmatizer"),
}
_DOES = {"tagger": "tags no parts of speech", "ner": "finds no names"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What `swap` needs of a lexicon; made once and kept with it.

    Words are looked up in the form in which they are found. Of entries of one word all forms are
    listed; those of several words have too many, and are listed when they are met: `several` are
    these entries by what their forms have in common.
    """

    lexicon: Lexicon
    find: re.Pattern[str]
    value_of: dict[str, str | None]
    tables: dict[tuple[str, str], dict[str, str | PronounForms]]
    guards: dict[str, list[Protected]]
    watched: set[str]
    hints: tuple[str, ...]
    several: dict[str, LexiconWord]

    def rewrite(
        self,
        text: str,
        *,
        to: str,
        source: str | None,
        tagger: Tagger | None,
        seen: set[str] | None = None,
    ) -> Rewritten:
        """The text under `to`, its own value, whether it is mixed, words replaced, unresolved.

        Words of the lexicon are added to those `seen`, in the form in which they stand there.
        """
        pieces = self.find.split(text)
        if len(pieces) == 1:
            return text, source, False, 0, ()
        if seen is not None:
            seen.update(pieces[1::2])
        if self.several:
            for word in pieces[1::2]:
                if word not in self.value_of:
                    self._add_form(word)
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

    def _add_form(self, word: str) -> None:
        """List a form of an entry of several words: as the entry, each word in its own case."""
        entry = self.several[alike(word)]
        plain = word.lower().replace("’", "'")
        # Two entries may differ in their joiners alone.
        entry = self.lexicon.entries.get(plain, entry)
        _list_form(word, entry, self.value_of, self.tables, case=self.lexicon.case)
        guards = self.guards.get(entry.word)
        if guards is not None:
            self.guards[word] = guards
        if entry.word in self.watched:
            self.watched.add(word)

    def unseen(self, seen: set[str]) -> list[str]:
        """The entries that stand in no form among the words that were seen.

        Examples:
            >>> from evenhand.text.lexicon import load_lexicon
            >>> ready, seen = compiled(load_lexicon("gender_pronouns")), set()
            >>> _ = ready.rewrite("He ran.", to="female", source=None, tagger=None, seen=seen)
            >>> ready.unseen(seen)[:4]
            ['she', 'herself', 'himself', 'ms']
        """
        met = {alike(word) for word in seen} & self.several.keys()
        return [
            entry.word
            for entry in self.lexicon.entries.values()
            if seen.isdisjoint(_forms(entry)) and alike(entry.word) not in met
        ]

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
            _Decider(text, pieces, tagger)
            if any(type(new) is PronounForms for _, new in found)
            else None
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
                    unresolved += agree_verb(pieces, hit, plural=plural, rules=agreement)
        return replaced, unresolved

    def _plural(self, word: str, source: str, to: str) -> bool | None:
        """Whether the subject became plural, or singular; None where its number stayed."""
        assert self.lexicon.agreement is not None
        plural = self.lexicon.agreement.plural
        old = self.value_of[word]
        new = to if old == source else source
        was, now = old in plural, new in plural
        return None if was == now else now


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


def load_tagger(name: str, *, part: str = "tagger") -> Tagger:
    """The tagger that `spacy:MODEL` names; MODEL is an installed spaCy model or its folder.

    `part` is what is wanted of it: parts of speech ("tagger") or names of people ("ner").

    Examples:
        >>> load_tagger("en_core_web_sm")
        Traceback (most recent call last):
        evenhand.errors.UsageError: tagger='en_core_web_sm' is no tagger. Write spacy:MODEL, such \
as spacy:en_core_web_sm.
    """
    model = name.removeprefix(_PREFIX)
    if not name.startswith(_PREFIX) or not model:
        raise UsageError(
            f"tagger={name!r} is no tagger. Write spacy:MODEL, such as spacy:en_core_web_sm."
        )
    try:
        import spacy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError(
            f"tagger={name!r} needs spaCy, which is not installed. Run: pip install spacy"
        ) from None
    try:
        pipeline: Any = spacy.load(model, exclude=list(_UNUSED[part]))
    except OSError:
        raise UsageError(
            f"tagger={name!r}: spaCy has no model {model!r}. Run: python -m spacy download {model}"
        ) from None
    if part not in pipeline.pipe_names:
        raise UsageError(
            f"tagger={name!r}: the model {model!r} {_DOES[part]}. "
            "Name one that does, such as spacy:en_core_web_sm."
        )
    return pipeline  # type: ignore[no-any-return]


def agree_verb(pieces: list[str], hit: int, *, plural: bool, rules: Agreement) -> list[str]:
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


def _compile(lexicon: Lexicon) -> Compiled:
    value_of: dict[str, str | None] = {}
    tables: _Tables = {
        (source, to): {} for source, to in product(lexicon.values, repeat=2) if source != to
    }
    several: dict[str, LexiconWord] = {}
    for entry in lexicon.entries.values():
        if entry.only is None and len(words_of(entry.word)) > 1:
            several.setdefault(alike(entry.word), entry)
        for form in _forms(entry):
            _list_form(form, entry, value_of, tables, case=lexicon.case, as_one=True)
    guards: dict[str, list[Protected]] = {}
    for each in lexicon.protected:
        for word in each.words:
            guards.setdefault(word, []).append(each)
    return Compiled(
        lexicon=lexicon,
        find=word_pattern(
            (form for form in value_of if alike(form) not in several),
            several=[entry.word for entry in several.values()],
        ),
        value_of=value_of,
        tables=tables,
        guards=guards,
        watched={word for each in lexicon.protected if not each.needs for word in each.words},
        hints=tuple(dict.fromkeys(hint for each in lexicon.protected for hint in each.needs)),
        several=several,
    )


def _list_form(
    form: str,
    entry: LexiconWord,
    value_of: dict[str, str | None],
    tables: _Tables,
    *,
    case: str,
    as_one: bool = False,
) -> None:
    """Note of which value a form of an entry is, and what replaces it under each other value.

    With `as_one` the case is that of the whole, as of one word, and else of word by word.
    """
    value_of[form] = entry.value
    for (source, to), table in tables.items():
        # A mixed text exchanges the two values: words of `to` become words of `source`.
        into = source if entry.value == to else to
        if entry.value in (source, to, None) and into in entry.to:
            new = entry.to[into]
            if as_one or not isinstance(new, str):
                table[form] = _in_case(form, new, case)
            else:
                table[form] = copy_form(form, entry.word, new, case=case == "copy")


def _forms(entry: LexiconWord) -> list[str]:
    if entry.only == "name":
        return list(dict.fromkeys((entry.word, entry.word.upper())))
    return case_forms(entry.word, only=entry.only)


def _in_case(form: str, new: str | PronounForms, case: str) -> str | PronounForms:
    copy = copy_case if case == "copy" else lambda _, word: word
    if isinstance(new, str):
        return copy(form, new)
    return PronounForms(possessive=copy(form, new.possessive), object=copy(form, new.object))


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

    def __call__(self, hit: int, forms: PronounForms, unresolved: list[str]) -> str:
        start, end = self.starts[hit], self.starts[hit + 1]
        tag = None if self.tags is None else self.tags.get(start)
        if tag == "PRP$":
            return forms.possessive
        if tag == "PRP" or _SET_OF_PRONOUNS.search(self.text, max(0, start - 8), start):
            return forms.object
        probability = self.model.possessive(self.text, start, end)
        if self.tags is not None or abs(probability - 0.5) < _UNSURE:
            unresolved.append(self.text[start:end])
        return forms.possessive if probability > 0.5 else forms.object


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
