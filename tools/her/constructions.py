"""Sentences made from tables of constructions: what corpora of biographies and comments lack.

"They taught her French", "his fear of her winning" and "I met her last night" are common English
but rare in any one corpus. Each pattern is filled at random from short lists of words; the marks
_P_ and _O_ stand where "her" would, as a possessive and as an object.
"""

import re
from random import Random

from evenhand.text.his_or_him import Context, context
from her.words import WORDS

# One pattern a line; <list> draws a word from that list. Lines that say the same in several ways
# are drawn as often as they are written.
OBJECT = """
<who> <gave> _O_ <det> <thing><stop>
<who> <gave> _O_ <det> <adj> <thing><stop>
<who> <gave> _O_ <num> <things><stop>
<who> <gave> _O_ <digits> <things><stop>
<who> <bought> _O_ <det> <thing><stop>
<who> <bought> _O_ <num> <things><stop>
<who> <gave> _O_ <gifts><stop>
<who> <gave> _O_ <gifts><tail>
<who> <gave> _O_ <adj> <gifts><stop>
<who> <gave> _O_ <gifts> and <gifts><stop>
<who> <bought> _O_ <gifts><stop>
<who> <bought> _O_ <det> <things><stop>
<who> <bought> _O_ many <things><tail>
"<who> <person> _O_", <they> said.
'<who> <person> _O_,' said <name_>.
<who> <bought> _O_ <gifts> and <gifts><stop>
<who> taught _O_ <language><stop>
<who> teaches _O_ <language> and <language><stop>
<who> <told> _O_ <conj> <they> <did><stop>
<who> <told> _O_ <they> <did><stop>
<who> <told> _O_ <they> <was> <adj><stop>
<who> <told> _O_ <wh> to <verb><stop>
<who> <told> _O_ <wh><stop>
<who> <told> _O_ about <np><stop>
<who> <told> _O_ lies<stop>
<who> told _O_ stories about <np><stop>
<who> <urge> _O_ to <verb><stop>
<who> <urge> _O_ not to <verb><stop>
<who> <person> _O_ to <verb> <np><stop>
<who> <make> _O_ <verb><stop>
<who> <make> _O_ <verb><stop>
<who> <make> _O_ <verb><tail>
<who> <make> _O_ <verb> <np><stop>
<who> <make> _O_ <verb> <np><stop>
<who> <make> _O_ <verbnoun> <np><stop>
<who> <make> _O_ <verbnoun><tail>
<who> <make> _O_ <verbnoun><stop>
<who> <help> _O_ <verb> <np><stop>
<who> <help> _O_ <verb><tail>
<who> <see> _O_ <verb><stop>
<who> <see> _O_ <verb><tail>
<who> <see> _O_ <verbnoun><tail>
<who> <see> _O_ <verb> <np><stop>
<who> <see> _O_ <ing><stop>
<who> <see> _O_ <ing><tail>
<who> <see> _O_ <ing> <np><stop>
<who> <see> _O_ being <done> by <np><stop>
<who> <keep> _O_ <ing><stop>
<who> <keep> _O_ <ing><tail>
<who> <keep> _O_ <ing> <np><stop>
Let _O_ <verb><stop>
Let _O_ <verb> <np><stop>
Make _O_ <verb><stop>
Help _O_ <verb> <np><stop>
Have _O_ <verb> <np><stop>
Let _O_ <particle><stop>
<who> <render> _O_ <pred><stop>
<who> <render> _O_ <pred><tail>
<who> <render> _O_ <adj><stop>
<who> <render> _O_ <adj> and <adj><stop>
<who> <render> _O_ <adv> <adj><stop>
<who> <render> _O_ so <adj> that <they> <did><stop>
<who> <render> _O_ not <adj><stop>
<who> <keep> _O_ <pred><tail>
<who> <keep> _O_ <adj><stop>
<who> <keep> _O_ <done><stop>
<who> <think> _O_ <adj><stop>
<who> <think> _O_ <adj> and <adj><stop>
<who> <think> _O_ <adj>, but <they> <did><stop>
<who> <think> _O_ <det> <role><stop>
<who> <think> _O_ the best <role> in town<stop>
<who> <name> _O_ <role><stop>
<who> <name> _O_ <role> of <np><stop>
<who> <name> _O_ <role> in <year><stop>
<who> <name> _O_ <role> for <num> years<stop>
<who> <name> _O_ the <adj> <role><stop>
<who> <name> _O_ <name_><stop>
<who> called _O_ "<name_>"<stop>
<who> made _O_ <det> <role><stop>
<who> made _O_ the <ordinal> <role><stop>
<who> <person> _O_<stop>
<who> <person> _O_<tail>
<who> <person> _O_ <when><stop>
<who> <person> _O_ <when><stop>
<who> <person> _O_ <when> and <did><stop>
<who> <person> _O_ <when>, and <they> <did><stop>
<who> <person> _O_ <num> <units> ago<stop>
<who> <person> _O_ <num> <units> later<stop>
<who> <person> _O_ for <num> <units><stop>
<who> <person> _O_ <ly><stop>
<who> <person> _O_ <ly><stop>
<who> <person> _O_ <ly><tail>
<who> <person> _O_ <ly> and <did><stop>
<who> <person> _O_ <ly>, but <they> <did><stop>
<who> <person> _O_ very <ly><stop>
<who> <person> _O_ so <ly> that <they> <did><stop>
<who> <person> _O_ more <ly> than before<stop>
<who> <person> _O_ <after><stop>
<who> <person> _O_ <after><stop>
<who> <person> _O_ <after> and <did><stop>
<who> <person> _O_ more than <np><stop>
<who> <person> _O_ and <did><stop>
<who> <person> _O_ and <name_><stop>
<who> <person> _O_ and <np><stop>
<who> <person> _O_ and <them><stop>
<who> <person> _O_ or <them><stop>
<who> <person> <name_> and _O_<stop>
<who> <person> <name_> and _O_<tail>
<who> <person> _O_ themselves<stop>
<who> <person> _O_ himself<stop>
<who> <person> _O_, <conj2> <they> <did><stop>
<who> <person> _O_ <conj2> <they> <did><stop>
<who> <person> _O_ but not <them><stop>
<who> <lift> _O_ <particle><stop>
<who> <lift> _O_ <particle><tail>
<who> <lift> _O_ <particle> <when><stop>
<who> <lift> _O_ home<stop>
<who> <lift> _O_ home<tail>
<who> <lift> _O_ into <np><stop>
<who> <lift> _O_ from <np><stop>
<aux_> you <base> _O_?
<aux_> <they> <base> _O_ <when>?
<aux_> anyone <base> _O_ <after>?
Who <person> _O_?
Who <person> _O_ <when>?
<base_> _O_!
<base_> _O_ <when><stop>
<base_> _O_ <after><stop>
<base_> _O_ if <they> <did><stop>
Give _O_ <det> <thing><stop>
Show _O_ <det> <thing>, please.
Tell _O_ <they> <was> <adj><stop>
Tell _O_ <wh> <they> <did><stop>
<Prep> _O_ <was> <np><stop>
<Prep> _O_ <stood> <np><stop>
<Prep> _O_, <they> <did><stop>
<Prep> _O_ <they> <did><stop>
<Prep> _O_ it was <adj><stop>
<they> <did> <prep> _O_<stop>
<they> <did> <prep> _O_<tail>
<they> <did> <prep> _O_ <when><stop>
<they> <did> <prep> _O_ <after><stop>
<they> <did> <prep> _O_ <ly><stop>
<they> <did> <prep> _O_ and <np><stop>
<they> <did> <prep> _O_ and <them><stop>
<they> <did> <prep> _O_ alone<stop>
It <was> <adj> for _O_ to <verb><stop>
It is <adj> of _O_ to <verb><stop>
It <was> _O_ who <did><stop>
It took _O_ <num> <units><stop>
It took _O_ <num> <units> to <verb> <np><stop>
It took _O_ a long time to <verb><stop>
It cost _O_ <digits> dollars<stop>
It cost _O_ <det> <thing><stop>
<who> paid _O_ <digits> dollars<stop>
<who> offered _O_ $<digits> for <np><stop>
<who> is <adj>er than _O_<stop>
<np> like _O_ <was> <adj><stop>
Everyone who <person> _O_ <was> <adj><stop>
Those who <person> _O_ <did><stop>
Those who <person> _O_ <did> <np><stop>
People <prep> _O_ <did><stop>
The people <prep> _O_ <did> <after><stop>
Everybody <prep> _O_ <did> <np><stop>
The people <prep> _O_ <was> <adj><stop>
The man who <person> _O_ <did><tail>
What <person> _O_ was <np><stop>
What <person> _O_ most was <np><stop>
"""

POSSESSIVE = """
_P_ <noun> <was> <adj><stop>
_P_ <noun> <did><stop>
_P_ <adj> <noun> <did><tail>
_P_ <adj> <noun> <was> <adj><stop>
_P_ <ly> <done> <noun> <was> <adj><stop>
_P_ <ly> <adj> <noun> <did><stop>
_P_ <degree> <adj> <noun> <did><stop>
_P_ <ing> <was> <adj><stop>
_P_ <ing> <did> <np><stop>
_P_ being <adj> <did> <np><stop>
_P_ having <done> <np> <did> <name_><stop>
_P_ <num> <nouns> <did><stop>
_P_ <many> <nouns> <did><stop>
_P_ <year> <noun> <was> <adj><stop>
_P_ every <whim> <was> <done><stop>
_P_ and <my> <nouns> <was> <adj><stop>
_P_ and <my> <noun> <did><stop>
_P_ <noun> and <noun> <did><stop>
_P_ <verbnoun> <was> <adj><stop>
_P_ <odd> <was> <adj><stop>
_P_ <noun>'s <noun> <did><stop>
_P_ ex-<kin> <did><stop>
_P_ <kin>-in-law <did><stop>
_P_ <language> is <adj><stop>
_P_ <noun>, <np>, <did><stop>
<who> <did_to> _P_ <noun><stop>
<who> <did_to> _P_ <noun><tail>
<who> <did_to> _P_ <noun> <after><stop>
<who> <did_to> _P_ <noun> <ly><stop>
<who> <did_to> _P_ <noun> and <noun><stop>
<who> <did_to> _P_ <adj> <noun><stop>
<who> <did_to> _P_ <adj> <noun><tail>
<who> <did_to> _P_ <adj>, <adj> <noun><stop>
<who> <did_to> _P_ <adj> and <adj> <noun><stop>
<who> <did_to> _P_ <ly> <done> <noun><stop>
<who> <did_to> _P_ <ly> <done> <nouns><tail>
<who> <did_to> _P_ <ly> <adj> <noun><stop>
<who> <did_to> _P_ <ly> <ing> <noun><stop>
<who> <person> _P_ <ly> <done> <kin><stop>
<who> <person> _P_ <ly> <adj> <kin><stop>
<who> <person> _P_ <degree> <adj> <kin><stop>
<who> <did_to> _P_ <degree> <adj> <noun><stop>
<who> <did_to> _P_ <degree> <adj> <nouns><tail>
<who> <did_to> _P_ <degree> <done> <noun><stop>
<who> <did_to> _P_ <num> <nouns><stop>
<who> <did_to> _P_ <num> <adj> <nouns><stop>
<who> <did_to> _P_ <many> <nouns><tail>
<who> <person> _P_ <many> <kins><stop>
<who> <person> _P_ <num> <kins><stop>
<who> <did_to> _P_ <ordinal> <noun><stop>
<who> <did_to> _P_ <ordinal> <units> in <name_><stop>
<who> <did_to> _P_ <digits> <nouns><stop>
<who> <did_to> _P_ <year> <noun><stop>
<who> <did_to> _P_ every <whim><stop>
<who> <see> _P_ every <whim><stop>
<they> <did> <prep> _P_ every <whim><stop>
<who> <did_to> _P_ own <noun><stop>
She <did> on _P_ own<stop>
<who> <did_to> <det> <noun> of _P_ own<stop>
<who> <did_to> _P_ and <my> <nouns><stop>
<who> <did_to> _P_ <verbnoun><stop>
<who> <did_to> _P_ <verbnoun><tail>
<who> <like> _P_ <verbnoun><stop>
<who> <like> _P_ <verbnoun> and <noun><stop>
<who> <like> _P_ <ing><stop>
<who> <like> _P_ <ing><tail>
<who> <like> _P_ <ing> <np><stop>
<who> <like> _P_ <ing> <ly><stop>
<who> <like> _P_ <noun><stop>
<who> <like> _P_ being <adj><stop>
<who> <like> _P_ having <done> <np><stop>
<they> <did> <of> _P_ <ing><stop>
<they> <did> <of> _P_ <ing> <np><stop>
<they> <did> <of> _P_ <ing><tail>
<they> <did> <of> _P_ <ing> so <ly><stop>
<they> <did> <of> _P_ being <adj><stop>
<they> <did> <of> _P_ having <done> <np><stop>
<they> <did> <of> _P_ <ing> <them><stop>
<Prep> _P_ <ing> <np>, <they> <did><stop>
Thanks for _P_ <ing><stop>
<np> <of> _P_ <ing> <did><stop>
<np> <of> _P_ <noun> <did><stop>
<Prep> _P_ <noun>, <they> <did><stop>
<Prep> _P_ <adj> <noun> <they> <did><stop>
<Prep> _P_ <noun> <stood> <np><stop>
<they> <did> <prep> _P_ <noun><stop>
<they> <did> <prep> _P_ <adj> <noun><stop>
<they> <did> <prep> _P_ <ly> <done> <noun><stop>
<they> <did> <prep> _P_ <degree> <adj> <noun><stop>
<they> <did> <prep> _P_ <num> <nouns><stop>
<they> <did> <prep> _P_ <many> <nouns><stop>
<they> <did> <prep> _P_ <verbnoun><stop>
<they> <did> <prep> _P_ <odd><stop>
<who> <did_to> _P_ <odd><stop>
<who> <did_to> _P_ <odd><tail>
<who> <did_to> _P_ <sided> <body><stop>
<who> <did_to> _P_ <body><stop>
<who> <did_to> _P_ <name_> <noun><stop>
<who> <did_to> _P_ <language> <noun><stop>
<who> <did_to> _P_ "<adj>" <noun><stop>
<who> <did_to> _P_ <noun>'s <noun><stop>
<who> <did_to> _P_ money back<stop>
<who> wanted _P_ <noun> back<stop>
<who> got _P_ <noun> back<stop>
<who> put _P_ <noun> away<stop>
<who> <gave> _P_ <kin> <det> <thing><stop>
<who> <gave> _P_ <kin> <num> <things><stop>
<who> <gave> _P_ <kin> <gifts><stop>
<who> <gave> _P_ <kins> <gifts><stop>
<who> <gave> _P_ <adj> <kin> <det> <thing><stop>
<who> <bought> _P_ <kin> <det> <thing><stop>
<who> <gave> _P_ <thing> to <np><stop>
<who> taught _P_ <kin> <language><stop>
<who> taught _P_ <kins> <language><stop>
<who> <told> _P_ <kin> <conj> <they> <did><stop>
<who> <told> _P_ <kins> about <np><stop>
<who> <told> _P_ <kin> to <verb><stop>
<who> told _P_ story<stop>
<who> told _P_ secrets to <np><stop>
<who> asked _P_ opinion<tail>
<who> asked _P_ <name0><stop>
<who> asked _P_ <kin> for <np><stop>
<who> <make> _P_ <kin> <verb><stop>
<who> <make> _P_ <body> <verbnoun><stop>
<who> <make> _P_ <noun> <adj><stop>
<who> <make> _P_ <kin> <adj><stop>
<who> <make> _P_ <kins> <verb> <np><stop>
<who> <help> _P_ <kin> <verb> <np><stop>
<who> let _P_ <pet> <particle><stop>
Let _P_ <kin> <verb><stop>
Help _P_ <kins> <verb> <np><stop>
<who> <see> _P_ <kin><stop>
<who> <see> _P_ <kin><tail>
<who> <see> _P_ <kins> <ing> <tail2><stop>
<who> <see> _P_ <adj> <noun><stop>
<who> <see> _P_ <noun> on <np><stop>
<who> <keep> _P_ <noun><stop>
<who> <keep> _P_ <things> in <np><stop>
<who> <keep> _P_ <noun> <pred><stop>
<who> <think> _P_ <noun> <adj><stop>
<who> <think> _P_ <noun><stop>
<who> <think> _P_ <paper><stop>
<who> <think> _P_ <paper><tail>
<who> called _P_ <paper> <adj><stop>
<who> <did_to> _P_ <paper><stop>
<who> <did_to> _P_ <joined> <noun><stop>
<they> <did> <prep> _P_ <joined> <noun><stop>
_P_ <joined> <noun> <did><stop>
<who> <think> _P_ <noun> <det> <triumph><stop>
<who> <name> _P_ <noun> <adj><stop>
<who> <name> _P_ <noun> <det> <triumph><stop>
<who> <name> _P_ <kin> <role><stop>
<who> <urge> _P_ <kin> to <verb><stop>
<who> <person> _P_ <kin><stop>
<who> <person> _P_ <kin> <when><stop>
<who> <person> _P_ <kin> and <kin><stop>
<who> <lift> _P_ <things> <particle><stop>
<who> <lift> _P_ <pet> home<stop>
all _P_ <nouns> <was> <adj><stop>
Both _P_ <kins> <did><stop>
Half _P_ <nouns> <was> <done><stop>
One of _P_ <nouns> <did><stop>
Most of _P_ <nouns> <was> <adj><stop>
Is that _P_ <noun>?
Was it _P_ <adj> <noun>?
What is _P_ <noun>?
Where <was> _P_ <noun>?
Did _P_ <noun> <verb> <them>?
It was _P_ <noun>, not <name_>'s<stop>
What _P_ <kin> <did> was <adj><stop>
When _P_ <noun> <did>, <they> <did><stop>
because _P_ <noun> <did><stop>
and _P_ <adj> <noun> <did><stop>
With _P_ <body> <done>, she <did><stop>
"""

PATTERNS = tuple(line.strip() for line in (OBJECT + POSSESSIVE).splitlines() if line.strip())
_SLOT = re.compile(r"<(\w+)>")
_MARK = re.compile(r"_([PO])_")


def constructed(n: int, *, seed: int = 0) -> list[tuple[bool, Context]]:
    """Contexts made from the patterns, n or somewhat fewer: (possessive or not, context).

    Examples:
        >>> made = constructed(2_000)
        >>> sum(possessive for possessive, _ in made) / len(made) > 0.3
        True
    """
    random = Random(seed)
    made = []
    for _ in range(n // len(PATTERNS)):
        for pattern in PATTERNS:
            text = filled(pattern, random)
            mark = _MARK.search(text)
            assert mark is not None
            start = mark.start()
            word = "Her" if start == 0 else "her"
            sentence = text[:start] + word + text[mark.end() :]
            made.append((mark[1] == "P", context(sentence, start, start + 3)))
    return made


def filled(pattern: str, random: Random) -> str:
    """A pattern with a random word in each slot, some of which hold slots themselves.

    Examples:
        >>> filled("Let _O_ <verb>.", Random(1)).startswith("Let _O_ ")
        True
    """
    while "<" in pattern:
        pattern = _SLOT.sub(lambda slot: random.choice(WORDS[slot[1]]), pattern)
    return pattern
