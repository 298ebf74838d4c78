"""Coarse word classes: closed lists of function words, and endings for everything else."""

from collections.abc import Mapping

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
        everywhere forever forward abroad hence here home however indeed
        indoors inside instead just later maybe meanwhile more most much never nevertheless next not
        now nowadays nowhere often only otherwise overnight overseas perhaps quite rather regardless
        right seldom sideways somehow sometimes somewhere soon still straight then there thereafter
        therefore thus today together tomorrow tonight too twice thrice very well yesterday yet
        please anyhow beforehand online offline""",
    "num": """one two three four five six seven eight nine ten eleven twelve twenty thirty forty
        fifty dozen hundred thousand million""",
    "ord": "first second third fourth fifth last next final",
    # with a word before it, when something happened: met her last night
    "time": """night nights week weeks weekend month months year years morning mornings afternoon
        afternoons evening day days hour hours minute minutes moment summer winter spring autumn
        season century decade decades monday tuesday wednesday thursday friday saturday sunday
        january february april june july august september october november december""",
    # adjectives that never stand before a noun, or seldom
    "pred": """afraid alike alive alone aloof ashamed asleep awake aware breathless defenceless
        fatherless glad guilty helpless homeless innocent insane mad penniless powerless pregnant
        ready sane sorry speechless stranded unable unconscious uneasy unharmed unhurt unwell
        paralysed paralyzed crazy furious able worse better responsible accountable captive hostage
        sober unwelcome unimpressed nuts nervous bedridden""",
    # verbs that are hardly ever nouns: they follow an object (made her wait)
    "base": """accept achieve admit adopt afford agree allow appear apologise apologize apply
        argue arrive ask avoid be become begin believe belong breathe bring build bury buy carry
        choose come complain complete confess confirm consider continue cope create cross decide
        deliver describe destroy develop die disappear discover do earn eat encounter endure
        enjoy enter evolve exist expand explain explore express feel finish find forget forgive
        gain get give go grow handle have hear hide identify ignore imagine improve join keep
        kneel know learn leave let lie listen live lose maintain make marry meet navigate obey
        obtain occupy open organise organize overcome participate perceive perform persuade pray
        prepare prevent proceed produce prove pursue put quit reach read realise realize receive
        recognise recognize recover refuse regain relax remain remember remove renounce repeat
        replace resign resolve retire retain retrieve reveal save say see seem sell send serve
        settle shave shine shiver sing sit solve speak spend steal submit succeed suffer survive
        take teach tell think throw tremble understand vanish want wear weep write""",
    # ... and those that are nouns as well: heard her laugh, liked her laugh
    "both": """answer attack bite blush break call change chat climb cook cough cry cut dance
        deal decline dive dream drink drive escape fall feed fight fly glance guess help hug
        jump kick kiss laugh lead leap lift look love move paint pay play promise race reply
        report rest return ride rise run scream search shake shout show sigh sleep slip smile
        smoke sound spell stand start stay stop study support swim talk travel try turn visit
        vote wait walk win wonder work worry yell""",
}

# Verbs before the pronoun. After it the same words are as often nouns (name, help, cost).
_VERBS = {
    # an object and a second verb or an adjective follow: made her laugh
    "make": """make makes made making let lets letting help helps helped helping have having had
        has bid""",
    # an object and a second verb or an -ing follow, or a thing: saw her leave, saw her house
    "see": """see sees saw seen seeing hear hears heard hearing watch watches watched watching
        notice notices noticed observe observed witness witnessed spot spotted overheard glimpsed
        filmed feel feels felt""",
    # an object and its new name follow: elected her president
    "call": """call calls called calling name named naming appoint appointed appoints elect
        elected crown crowned dub dubbed proclaim proclaimed nominated nicknamed christened labeled
        labelled voted designated anointed hailed""",
    # an object and what it is like follow, or a thing: thought her clever
    "think": """consider considers considered declare declared deem deemed render rendered think
        thinks thought believe believes believed prove proves proved judge judged pronounced ruled
        presumed reckoned""",
    # either of these, or simply a thing: found her asleep, found her keys
    "find": """find finds found finding keep keeps kept keeping leave leaves left leaving get gets
        got getting catch catches caught drive drives drove turn turned turns set sets hold held
        picture pictured photographed discovered""",
    # a second noun phrase follows: gave her flowers
    "give": """send sends sent sending give gives gave given giving offer offers offered
        offering lend lends lent hand hands handed owe owes owed promise promised grant granted
        grants award awarded wish wished wishes deny denied allow allowed allows allowing assign
        assigned guaranteed loaned dealt spared refused bequeathed afforded accord accorded
        mailed emailed texted gifted""",
    # ... or what was said: told her that
    "tell": """tell tells told telling ask asks asked asking show shows showed shown showing teach
        teaches taught teaching remind reminds reminded assure assured warn warned warns inform
        informed convince convinced persuade persuaded advise advised notified reassured""",
    # ... or a single one, often: bought her flowers, bought her paintings
    "buy": """buy buys bought buying bring brings brought bringing pay pays paid paying earn earned
        earns cost costs save saved saves write wrote writes bear bore cook cooked pour poured fetch
        fetched feed fed throw threw pass passed win won wins sell sold take took takes sing sang
        play played bake baked build built knitted fixed charged fined bet served booked
        prepared ordered order read draw drew""",
    # "to" and a verb follow: urged her to stay
    "urge": """urge urged urges beg begged begs force forced forces forcing encourage encouraged
        encourages want wants wanted expect expected expects require required requires enable
        enables enabled enabling cause caused causes compelled permit permitted permits invite
        invited invites need needs needed inspire inspired lead led leads prompted instructed
        commissioned challenged tempted pressed pressured chose selected hired""",
    # what one does, or is said to do, follows as an -ing: resented her winning
    "mind": """mind minds minded enjoy enjoys enjoyed resent resents resented mention mentions
        mentioned regret regretted dislike disliked dislikes hate hated hates love loves loved
        loving like likes liked admire admired admires recall recalls recalled remember remembers
        remembered fear feared fears appreciate appreciates appreciated discuss discussed describe
        described describes oppose opposed suggest suggested imagine imagined imagines dread dreaded
        understand understood tolerate tolerated prevent prevented criticise criticised criticize
        criticized celebrate celebrated miss missed misses anticipated excuse excused justified
        improve improved ignored denounced praised praise supported support""",
    # whom one meets, kisses or blames: seldom what is hers
    "person": """meet meets met meeting marry marries married marrying hug hugged kiss kissed
        thank thanked thanks greet greeted visit visited visits follow followed follows join joined
        joins treat treated treats blame blamed accuse accused accuses arrest arrested fire fired
        know knows knew known attack attacked defend defended rescue rescued trust trusts trusted
        contact contacted phone phoned phones question questioned insult insulted harass harassed
        rape raped kill killed shoot shot hit beat examined interviewed replace replaced
        welcome welcomed escorted approached recognised recognized surprise surprised annoyed annoys
        scare scared worries worried bother bothered bothers amused impressed shocked raised adopt
        adopted date dated dating divorce divorced abandoned betray betrayed protect protected
        forgive forgave punish punished reward rewarded sued robbed chased fuck fucked tease teased
        bully bullied please pleased hurt consult consulted congratulate congratulated
        introduce introduced diagnosed pick picked""",
}

CLOSED = {word: name for name, words in _LISTS.items() for word in words.split()}
_BEFORE = {word: name for name, words in _VERBS.items() for word in words.split()}

# Nouns and adjectives in -ing and -ly: most such words are gerunds and adverbs.
_LIKE_GERUNDS = """
    beginning building ceiling clothing darling evening feeling king meeting morning offspring
    ring sibling spring string thing upbringing wedding wing being
"""
_LIKE_ADVERBS = """
    ally assembly belly bully butterfly curly daily deadly early elderly family fly friendly holy
    imply jelly kindly likely lively lonely lovely monthly only oily reply silly supply ugly
    unlikely weekly worldly yearly apply rely multiply
"""
_NO_GERUND, _NO_ADVERB = frozenset(_LIKE_GERUNDS.split()), frozenset(_LIKE_ADVERBS.split())

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
    known = (_BEFORE.get(low) if before else None) or CLOSED.get(low)
    if known is not None:
        return known
    if not low[0].isalpha():
        return "number" if low[0].isdigit() else low
    if word[0].isupper():
        return "Name"
    if low.endswith("ing") and low not in _NO_GERUND:
        return "ing"
    if low.endswith("ly") and low not in _NO_ADVERB:
        return "ly"
    known = induced.get(low)
    if known is not None:
        return known
    for ending in _ENDINGS:
        if low.endswith(ending):
            return ending
    return "open"
