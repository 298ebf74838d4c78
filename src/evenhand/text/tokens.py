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


def word_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """One expression that finds any of the words, the longest first, at word boundaries.

    Common beginnings are shared: hundreds of alternatives tried one after another would
    cost several times the scan.

    Examples:
        >>> word_pattern(["he", "her", "hers", "him"]).findall("Her hers, the him, he.")
        ['hers', 'him', 'he']
    """
    root: _Node = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return re.compile(rf"\b({_branches(root)})\b" if root else r"(?!)()")


def _branches(node: _Node) -> str:
    """The tree as an expression; letters with the same continuation share one branch."""
    same: dict[str, list[str]] = {}
    for letter, below in node.items():
        if letter:
            same.setdefault(_branches(below), []).append(re.escape(letter))
    parts = [
        (letters[0] if len(letters) == 1 else f"[{''.join(letters)}]") + below
        for below, letters in same.items()
    ]
    if not parts:
        return ""
    ends = "" in node
    inner = parts[0] if len(parts) == 1 and not ends else f"(?:{'|'.join(parts)})"
    return inner + "?" if ends else inner
