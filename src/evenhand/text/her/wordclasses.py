"""Coarse word classes: closed lists of function words, and endings for everything else."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_TOKEN = re.compile(r"\w+|[^\w\s]")

_LISTS = {
    # what follows an object: it opens no noun phrase with a possessive before it
    "prep": """about above across after against along alongside amid among amongst around as at
        before behind below beneath beside besides between beyond by concerning despite down during
        except for from in inside into like near of off on onto out outside over past per regarding
        round since through throughout till to toward towards under until up upon via versus with
        within without""",
    "conj": """and or but nor so because although though while whereas if unless that than when
        whenever where wherever who whom whose which why how what whether once lest plus""",
    "det": """a an the this these those some any each every no another all both either neither
        many much several few enough lots half such""",
    "pron": """i you he she it we they me him us them her his my your our their its mine yours ours
        theirs myself yourself himself herself itself ourselves themselves someone something anyone
        anything everyone everything nothing nobody""",
    "aux": """is are was were be been being am has have had having do does did will would shall
        should can could may might must cannot isn wasn aren doesn didn don won wouldn couldn""",
    "adv": """again also afterward afterwards ago ahead already altogether always anyway anymore
        anywhere apart aside away back backstage downstairs upstairs else elsewhere enough even ever
        everywhere forever forward abroad alone asleep awake alive hence here home however indeed
        indoors inside instead just later maybe meanwhile more most much never nevertheless next not
        now nowadays nowhere often only otherwise overnight overseas perhaps quite rather regardless
        right seldom sideways somehow sometimes somewhere soon still straight then there thereafter
        therefore thus today together tomorrow tonight too twice thrice very well yesterday yet
        please anyhow beforehand online offline""",
    "num": """one two three four five six seven eight nine ten eleven twelve dozen hundred thousand
        first second third last""",
}

# Verbs before the pronoun. After it the same words are as often nouns (name, help, cost).
_VERBS = {
    # an object and a second verb or an adjective follow: made her laugh
    "make": """make makes made making let lets letting see sees saw seen seeing hear hears heard
        hearing watch watches watched watching help helps helped helping notice noticed have having
        had""",
    # an object and its new name follow: elected her president
    "call": """call calls called calling name named naming consider considers considered appoint
        appointed elect elected crown crowned declare declared deem deemed render rendered dub
        dubbed proclaim proclaimed""",
    # either of these, or simply a thing: found her asleep, found her keys
    "find": """find finds found finding keep keeps kept keeping leave leaves left leaving get gets
        got getting catch caught want wants wanted drive drove feel felt think thought turn turned
        set prove proved send sends sent sending""",
    # a second noun phrase follows: gave her flowers
    "give": """give gives gave given giving tell tells told telling ask asks asked asking show shows
        showed shown showing offer offers offered offering teach teaches taught teaching lend lent
        hand handed owe owed promise promised grant granted award awarded wish wished deny denied
        allow allowed allows assign assigned""",
    # ... or a single one, often: bought her flowers, bought her paintings
    "buy": """buy buys bought buying bring brings brought bringing pay pays paid paying earn earned
        cost costs save saved write wrote writes read bear bore cook cooked pour poured fetch
        fetched feed fed throw threw pass passed win won wins sell sold take took takes""",
}

_CLASS = {word: name for name, words in _LISTS.items() for word in words.split()}
_BEFORE = {word: name for name, words in _VERBS.items() for word in words.split()}

_OPENERS = {"a": "c", "an": "c", "the": "n", "these": "n", "those": "n"}
_OPENERS.update(dict.fromkeys(("to", "will", "would", "can", "could", "must", "may", "t"), "v"))
_OPENERS.update(dict.fromkeys(("is", "was", "are", "were", "very", "so", "too", "more"), "a"))
_CLOSERS = {"prep", "conj", "aux", "adv", "pron"}

_ENDINGS = ("ly", "ing", "ed", "tion", "ous", "ful", "al", "ive", "ic", "er", "est", "ss", "s")


def word_class(word: str, *, induced: Mapping[str, str], before: bool = False) -> str:
    """Coarse class of one token; open words by the classes that a corpus taught, then by ending.

    Examples:
        >>> words = ("towards", "quickly", "Paris", ",", "1999", "nephew")
        >>> [word_class(word, induced={"nephew": "c"}) for word in words]
        ['prep', 'ly', 'Name', ',', 'number', 'c']
        >>> word_class("made", induced={}, before=True)
        'make'
    """
    low = word.lower()
    known = (_BEFORE.get(low) if before else None) or _CLASS.get(low)
    if known is not None:
        return known
    if not low[0].isalpha():
        return "number" if low[0].isdigit() else low
    if word[0].isupper():
        return "Name"
    known = induced.get(low)
    if known is not None:
        return known
    for ending in _ENDINGS:
        if low.endswith(ending):
            return ending
    return "open"


def induce_classes(texts: Iterable[str]) -> dict[str, str]:
    """Letters of what each open word can be, read off its neighbours: a adjective, c noun that
    can be counted, n other noun, v verb.

    "a nephew of" shows a countable noun, "the paint on" a noun, "will paint" a verb,
    "was happy ." an adjective. A bare countable noun cannot follow an object ("taught her
    nephew"), other nouns can ("gave her food"): endings do not tell the two apart.

    Examples:
        >>> induce_classes(["A nephew of Jo. A nephew, too. They will sing, can sing."] * 2)
        {'nephew': 'c', 'sing': 'v'}
    """
    after: dict[str, Counter[str]] = {letter: Counter() for letter in "acnv"}
    heads: dict[str, Counter[str]] = {letter: Counter() for letter in "acn"}
    total: Counter[str] = Counter()
    for text in texts:
        tokens = _TOKEN.findall(text.lower())
        total.update(tokens)
        for before, word, following in zip(tokens, tokens[1:], [*tokens[2:], "."]):
            letter = _OPENERS.get(before)
            if letter is None or word in _CLASS or not word.isalpha():
                continue
            after[letter][word] += 1
            if letter != "v" and (_CLASS.get(following) in _CLOSERS or not following[0].isalnum()):
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
