"""Words: their case, how they are found in a text, and the forms of the titles of occupations."""

import re
from collections.abc import Iterable
from itertools import product
from typing import Any

TITLE_FORMS: dict[str, tuple[str, ...]] = {
    "accountant": ("chartered accountant", "certified public accountant", "cpa"),
    "architect": ("landscape architect",),
    "attorney": ("attorney at law", "lawyer", "trial lawyer", "defense attorney", "barrister"),
    "chiropractor": ("chiropractic physician", "doctor of chiropractic"),
    "comedian": ("stand up comedian", "standup comedian", "comic", "comedienne"),
    "composer": ("film composer", "songwriter"),
    "dentist": ("general dentist", "pediatric dentist", "orthodontist"),
    "dietitian": ("registered dietitian", "dietician", "nutritionist"),
    "dj": ("disc jockey", "deejay", "radio dj"),
    "filmmaker": ("film maker", "documentary filmmaker", "film director", "movie director"),
    "interior_designer": ("interior decorator",),
    "journalist": ("freelance journalist", "reporter", "photojournalist"),
    "model": ("fashion model", "supermodel", "glamour model"),
    "nurse": ("registered nurse", "nurse practitioner", "nurse midwife", "rn"),
    "painter": ("landscape painter", "portrait painter"),
    "paralegal": ("legal assistant",),
    "pastor": ("senior pastor", "associate pastor", "reverend"),
    "personal_trainer": ("fitness trainer", "certified personal trainer", "fitness instructor"),
    "photographer": ("wedding photographer", "fashion photographer", "freelance photographer"),
    "physician": ("family physician", "medical doctor", "doctor", "internist"),
    "poet": ("slam poet", "spoken word poet", "poetess"),
    "professor": ("associate professor", "assistant professor", "adjunct professor", "lecturer"),
    "psychologist": ("clinical psychologist", "licensed psychologist", "school psychologist"),
    "rapper": ("hip hop artist", "mc"),
    "software_engineer": ("software developer", "senior software engineer", "web developer"),
    "surgeon": ("plastic surgeon", "orthopedic surgeon", "neurosurgeon"),
    "teacher": ("school teacher", "schoolteacher", "english teacher", "math teacher"),
    "yoga_teacher": ("yoga instructor", "registered yoga teacher"),
}
_VOWEL = re.compile(
    r"(?!eu|uni(?!n)|us[eu]|one\b|once|ur[aeiou])[aeiou]|heir|hour|hono?u?r|honest", re.I
)
_JOINER = re.compile(r"([ -])")
_Node = dict[str, Any]
_EVERY_CASE_UP_TO = 4  # letters: short words are listed in every mix of cases (sHe), 16 at most


def copy_case(model: str, word: str) -> str:
    """The word in the case of the model: lower, Capitalised or UPPER; anything else as it is.

    Examples:
        >>> [copy_case(model, "she") for model in ("he", "He", "HE")]
        ['she', 'She', 'SHE']
        >>> copy_case("hE", "she")
        'she'
    """
    if model.isupper() and (len(model) > 1 or word.isupper()):
        return word.upper()
    if model[:1].isupper() and not model[1:].isupper():
        return word[:1].upper() + word[1:]
    return word


def case_forms(word: str, *, only: str | None = None) -> list[str]:
    """The spellings under which a word is found; with `only`, of that case alone.

    Examples:
        >>> case_forms("mother")
        ['mother', 'Mother', 'MOTHER']
        >>> case_forms("miss", only="capitalised")
        ['Miss']
        >>> len(case_forms("she"))
        8
    """
    capitalised = word[:1].upper() + word[1:]
    named = {"lower": word, "capitalised": capitalised, "upper": word.upper()}
    if only is not None:
        forms = [named[only]]
    elif len(word) <= _EVERY_CASE_UP_TO:
        forms = ["".join(letters) for letters in product(*((c, c.upper()) for c in word))]
    else:
        forms = list(named.values())
    return list(dict.fromkeys([*forms, *(form.replace("'", "’") for form in forms)]))


def vowel_sound(word: str) -> bool:
    """Whether "an" rather than "a" goes before this word.

    Examples:
        >>> [vowel_sound(word) for word in ("actor", "heir", "hero", "university", "uncle")]
        [True, True, False, False, True]
    """
    return _VOWEL.match(word) is not None


def words_of(entry: str) -> list[str]:
    """An entry's words and what joins them, a space or a hyphen, in turn.

    Examples:
        >>> words_of("great-grandmother"), words_of("mother")
        (['great', '-', 'grandmother'], ['mother'])
    """
    return _JOINER.split(entry)


def alike(text: str) -> str:
    """What several words have in common however they are joined and whatever their case.

    Examples:
        >>> alike("African-American") == alike("african american")
        True
    """
    return text.lower().replace("’", "'").replace("-", " ")


def copy_form(model: str, entry: str, new: str, *, case: bool = True) -> str:
    """New words in the form of a text's words, which are those of an entry.

    Each takes the case of the word in its place, further ones that of the last. Where the text
    joins two words otherwise than the entry does, the new ones are joined as the text's are.

    Examples:
        >>> copy_form("African American", "african american", "european american")
        'European American'
        >>> copy_form("AFRICAN-american", "african american", "european american")
        'EUROPEAN-american'
        >>> copy_form("Sunday School", "sunday school", "madrasa of the town")
        'Madrasa Of The Town'
    """
    models, own, parts = words_of(model), words_of(entry), words_of(new)
    for i in range(0, len(parts), 2):
        if case:
            word = models[min(i, len(models) - 1)]
            parts[i] = parts[i].upper() if model.isupper() else copy_case(word, parts[i])
        if i + 1 < min(len(parts), len(models)) and models[i + 1] != own[i + 1]:
            parts[i + 1] = models[i + 1]
    return "".join(parts)


def word_pattern(words: Iterable[str], *, several: Iterable[str] = ()) -> re.Pattern[str]:
    """One expression that finds any of the words, the longest first, at word boundaries.

    Common beginnings are shared: hundreds of alternatives tried one after another would
    cost several times the scan. Entries of `several` words are found whatever the case of each,
    joined by a hyphen or a space.

    Examples:
        >>> word_pattern(["he", "her", "hers", "him"]).findall("Her hers, the him, he.")
        ['hers', 'him', 'he']
        >>> word_pattern(["sunday"], several=["sunday school"]).findall("A Sunday-School sunday.")
        ['Sunday-School', 'sunday']
    """
    root: _Node = {}
    for word in words:
        _grow(root, word)
    for entry in several:
        first, *others = words_of(entry)
        rest = [_letters(letter) for letter in "".join(others)]
        # Most places are left at the first letters, which sets of letters would delay.
        for form in dict.fromkeys((first, first[:1].upper() + first[1:], first.upper())):
            if form.lower() == first:
                _grow(root, [*("'’" if letter == "'" else letter for letter in form), *rest])
    return re.compile(rf"\b({_branches(root)})\b" if root else r"(?!)()")


def _grow(root: _Node, places: Iterable[str]) -> None:
    """Add a word to the tree: of each place the letter, or the letters, that may stand there."""
    node = root
    for place in places:
        node = node.setdefault(place, {})
    node[""] = {}


def _letters(letter: str) -> str:
    """The letters that may stand for one: of either case, either joiner, either apostrophe."""
    for same in (" -", "'’"):
        if letter in same:
            return same
    upper = letter.upper()
    return letter + upper if upper != letter and upper.lower() == letter else letter


def _branches(node: _Node) -> str:
    """The tree as an expression; letters with the same continuation share one branch."""
    same: dict[str, list[str]] = {}
    for place, below in node.items():
        if place:
            same.setdefault(_branches(below), []).extend(map(re.escape, place))
    parts = [
        (letters[0] if len(letters) == 1 else f"[{''.join(letters)}]") + below
        for below, letters in same.items()
    ]
    if not parts:
        return ""
    ends = "" in node
    inner = parts[0] if len(parts) == 1 and not ends else f"(?:{'|'.join(parts)})"
    return inner + "?" if ends else inner
