"""What sentences are made with: the charter's words, the names of groups, and what was said."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.decisions.labels import MISSING, OVERALL, REST, crossed_values, excepted
from evenhand.findings.limits import HIDDEN
from evenhand.findings.sentences.crossed import Facet, Naming, crossed_people, goes_on
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import KNOWN_SHARES, Row
from evenhand.lenses.scope import HIDDEN_UNDER
from evenhand.speech import number

Names = Mapping[tuple[str | None, str], str]

Pair = tuple[str, str]

# How English names the people of these groups, whatever the table calls them.
_ENGLISH = {"female": "women", "woman": "women", "women": "women",
            "male": "men", "man": "men", "men": "men"}  # fmt: skip
# What a term means, said where it is first used.
GLOSSES = {
    "bar": "how much evidence labelers ask for",
    "skill": "how far apart true and other cases look to labelers",
    "norm score": "how much a text reads like a typical member's",
}
OTHERS = {REST: "everybody else", OVERALL: "people overall"}
_LIKE_NOTHING = {"", "nan", "none", "null", "na"}
# The lenses that say which class counts as positive, the first that does first.
_KNOW_POSITIVE = ("statistical", "counterfactual", "thresholds", "labelers")
# What tells apart the rows whose truth is known unequally often.
_PLACE = ("attribute", "group", "reference", "class", "stratum", "over_groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A finding in words, piece by piece.

    `headline` is the claim, without a full stop; `detail` are the sentences that follow it, with
    the numbers; `line` is both told in one, and `summary` the claim with its main numbers, which
    a verdict opens with. `more` is what only the whole sentence tells, `next` what to do, `short`
    a name to link to it.
    """

    headline: str
    line: str
    detail: str = ""
    summary: str = ""
    more: str = ""
    next: str = ""
    short: str = ""

    @classmethod
    def plainly(cls, sentence: str) -> "Said":
        """A sentence that is its own headline.

        Examples:
            >>> Said.plainly("Three of 30 labelers lie outside.").headline
            'Three of 30 labelers lie outside'
        """
        return cls(headline=sentence.rstrip("."), line=sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of one audit: the charter's, each with a fall-back of its own.

    `item` is what is decided about, `class_` what the answers are where there are many, `missed`
    and `wrong` what the two mistakes are called (one, several); `link` links items to people,
    `decided` is what a positive decision did, `decision` what it does, `truth` what is the case
    and what is not. `people_names` are the charter's names of groups by attribute and value.
    `positive` is the class that counts as positive, None where there are many; `stratum` the
    column that was compared within; `meaning` says
    what a class is for the person decided about; `names` are the groups as tables show them;
    `same_people` are columns that name the same people as another does, as a writer's and a
    reader's do; `heard` are terms that were explained before, `told` the rows of findings outside
    their limits that were said before, the leading one first; `turned` are the comparisons that
    turn round within strata, so that no number of decisions is asked for; `known` says by the
    places of rows whose truth is known how often, where that forbids to judge them.
    """

    item: Pair | None = None
    link: str | None = None
    decided: str | None = None
    decision: str | None = None
    truth: Pair | None = None
    class_: Pair | None = None
    missed: Pair | None = None
    wrong: Pair | None = None
    people_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    positive: str | None = None
    stratum: str | None = None
    meaning: Mapping[str, str] = field(default_factory=dict)
    names: Names = field(default_factory=dict)
    same_people: frozenset[str] = frozenset()
    heard: frozenset[str] = frozenset()
    told: tuple[tuple[Row, ...], ...] = ()
    known: Mapping[tuple[Any, ...], Mapping[str, Any]] = field(default_factory=dict)
    turned: frozenset[tuple[object, ...]] = frozenset()
    # A table of many rows names the same groups over and over.
    namings: dict[tuple[str | None, str | None], Naming] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        *,
        charter: Mapping[str, Any] | None,
        roles: Mapping[str, Any],
        details: Mapping[str, Any],
        groups: Iterable[tuple[str | None, str | None]],
    ) -> "Words":
        """The words that a record holds: of its charter, its roles, its lenses and its rows."""
        system = (charter or {}).get("system") or {}
        positive, is_ = positive_class(details), roles.get("positive_is")
        names = group_names(groups)
        return cls(
            item=_pair(system.get("item")),
            link=system.get("of"),
            decided=system.get("decided"),
            decision=system.get("decision"),
            truth=_pair(system.get("truth")),
            class_=_pair(system.get("class")),
            missed=_pair(system.get("false_negative")),
            wrong=_pair(system.get("false_positive")),
            people_names=system.get("groups") or {},
            positive=positive,
            stratum=roles.get("stratum"),
            meaning={positive: is_} if positive and is_ else {},
            names=names,
            same_people=_same_people(names, system.get("groups") or {}),
            known=_known_shares(details),
        )

    # --- who ---------------------------------------------------------------------------------

    def name(self, attribute: str | None, value: str | None) -> str | None:
        """The name of a group as tables show it."""
        if value is None:
            return None
        return self.names.get((attribute, value)) or name_of(value, attribute)

    def people(self, attribute: str | None, value: str | None) -> str:
        """The people of a group as a sentence names them.

        Examples:
            >>> words = Words(people_names={"gender": {"x": "nonbinary people"}})
            >>> words.people("gender", "x"), words.people("gender", "Female")
            ('nonbinary people', 'women')
            >>> words.people("race", "Black"), words.people("old", "1"), words.people("a", "<rest>")
            ('group Black', 'group old=1', 'everybody else')
            >>> words.people("gender*region", "female*north"), words.people("a*b", "x*y")
            ('women whose region is north', 'people whose a is x and b is y')
        """
        return str(self._people(attribute, value))

    def _people(self, attribute: str | None, value: str | None) -> Naming:
        key = attribute, value
        if key not in self.namings:
            self.namings[key] = self._naming(attribute, value)
        return self.namings[key]

    def _naming(self, attribute: str | None, value: str | None) -> Naming:
        if value is None:
            return Naming(who="people")
        if value in OTHERS:
            return Naming(who=OTHERS[value])
        if value == MISSING:
            return Naming(who="people", clause=f"whose {attribute} is missing")
        own = self._own_name(str(attribute), value)
        parts = self._parts(attribute, value)
        if parts and own is None:
            apart = any(part.column in self.same_people for part in parts)
            nouns = (self.item[1],) if self.item is not None and self.people_are_items else ()
            return crossed_people(parts, nouns=nouns, apart=apart)
        return Naming(who=own or f"group {self.name(attribute, value)}")

    def has_clause(self, attribute: str | None, value: str | None) -> bool:
        """Whether the name of a group ends in a clause, which a further one joins with "and".

        Examples:
            >>> Words().has_clause("sex*region", "male*north"), Words().has_clause("sex", "male")
            (True, False)
        """
        return bool(self._people(attribute, value).clause)

    def label(self, attribute: str | None, value: str | None) -> str:
        """A group as a picture names it: its people in a word or two, or else its name.

        Examples:
            >>> words = Words(people_names={"race": {"b": "Black people"}})
            >>> words.label("sex", "female"), words.label("sex", "x"), words.label("a*b", "x*y")
            ('women', 'x', 'x, y')
            >>> words.label("sex*race", "female*b"), words.label("sex*region", "male*north")
            ('Black women', 'men, north')
        """
        parts = self._parts(attribute, value)
        if parts and self.has_clause(attribute, value):
            return ", ".join(part.name or part.value for part in parts)
        if self.unnamed(attribute, value):
            return str(self.name(attribute, value))
        return self.people(attribute, value)

    def _parts(self, attribute: str | None, value: str | None) -> list[Facet]:
        """The columns and values of a crossed group; none of another."""
        columns, values = str(attribute).split("*"), crossed_values(str(value))
        if len(columns) == 1 or len(columns) != len(values):
            return []
        return [
            Facet(column=column, value=one, name=self._own_name(column, one))
            for column, one in zip(columns, values)
        ]

    def unnamed(self, attribute: str | None, value: str | None) -> bool:
        """Whether a sentence can only say "group" of a group, for want of a name of its people.

        Examples:
            >>> words = Words(people_names={"age": {"x": "group homes' residents"}})
            >>> words.unnamed("age", "x"), words.unnamed("age", "y"), words.unnamed("age", "<rest>")
            (False, True, False)
            >>> words.unnamed("age*sex", "y*z")
            False
        """
        if value is None or value in OTHERS or value == MISSING:
            return False
        own = self._own_name(str(attribute), value)
        return own is None and not self._parts(attribute, value)

    def is_one(self, attribute: str | None, value: str | None) -> bool:
        """Whether what is decided about is one thing to English: "group f is", "women are"."""
        alone = value == REST or self.unnamed(attribute, value)
        return alone and not self.of_things(attribute, value)

    def _own_name(self, attribute: str, value: str) -> str | None:
        named = (self.people_names.get(attribute) or {}).get(value)
        # The same value of another column has a name of its own, which says which column it is.
        shared = "=" in str(self.names.get((attribute, value), ""))
        return named or (None if shared else _ENGLISH.get(value.lower()))

    def subject(self, attribute: str | None, value: str | None) -> str:
        """What is decided about, of a group: its items, or its people where they are the items.

        Examples:
            >>> words = Words(item=("post", "posts"), link="by")
            >>> words.subject("sex", "female"), Words().subject("sex", "female")
            ('posts by women', 'women')
            >>> people = {"race": {"b": "Black defendants"}}
            >>> Words(item=("defendant", "defendants"), people_names=people).subject("race", "b")
            'Black defendants'
        """
        who = self.people(attribute, value)
        if self.item is None or self.people_are_items:
            return who
        return f"{self.item[1]} {self.link or 'of'} {who}"

    @property
    def people_are_items(self) -> bool:
        """Whether people themselves are decided about, as the names of groups say.

        Examples:
            >>> Words(item=("post", "posts")).people_are_items
            False
            >>> people = {"race": {"b": "Black defendants"}}
            >>> Words(item=("defendant", "defendants"), people_names=people).people_are_items
            True
        """
        named = [name for names in self.people_names.values() for name in names.values()]
        return (
            self.item is not None
            and self.link is None
            and any(name.endswith(self.item[1]) for name in named)
        )

    def of_things(self, attribute: str | None, value: str | None) -> bool:
        """Whether a group's items are things of people and not the people themselves."""
        return self.subject(attribute, value) != self.people(attribute, value)

    def theirs(self, attribute: str | None, value: str | None) -> str:
        """A second group after the first: "men's" for things, "men" or "Black ones" for people.

        Examples:
            >>> Words(item=("post", "posts")).theirs("sex", "male"), Words().theirs("sex", "male")
            ("men's", 'men')
        """
        who = self.people(attribute, value)
        if self.of_things(attribute, value):
            return f"those {self.link or 'of'} {who}" if goes_on(who) else possessive(who)
        if self.item is not None and who.endswith(f" {self.item[1]}"):
            return f"{who.removesuffix(self.item[1])}ones"
        return who

    @property
    def items(self) -> Pair:
        """What is decided about, one and several."""
        return self.item or ("case", "cases")

    @property
    def classes(self) -> Pair:
        """What the answers are, one and several, where there are many."""
        return self.class_ or ("class", "classes")

    # --- what happens ------------------------------------------------------------------------

    def happens(self, name: str | None, *, not_: bool = False, one: bool = False) -> str:
        """What a decision for a class does, as a verb of several, or of one.

        Examples:
            >>> words = Words(decided="removed", positive="1")
            >>> words.happens("1"), words.happens("0"), words.happens("1", one=True)
            ('are removed', 'are not removed', 'is removed')
            >>> Words().happens("nurse"), Words().happens("nurse", not_=True)
            ("get decision 'nurse'", "do not get decision 'nurse'")
        """
        binary = self.positive is not None
        if binary and self.decided:
            no = "not " if not_ != (name != self.positive) else ""
            return f"{'is' if one else 'are'} {no}{self.decided}"
        if not binary and self.class_:
            no = "not " if not_ else ""
            return f"{'is' if one else 'are'} {no}given the {self.class_[0]} '{name}'"
        meaning = self.meaning.get(str(name))
        means = f" (a {meaning})" if meaning else ""
        what = f"decision '{name}'{means}"
        if binary and self.decision and name == self.positive:
            what = f"the decision to {self.decision}"
        if not_:
            return f"{'does' if one else 'do'} not get {what}"
        return f"{'gets' if one else 'get'} {what}"

    def labelled(self, name: str | None, *, not_: bool = False) -> str:
        """What a label says of a class, as it stands between quotes.

        Examples:
            >>> words = Words(decided="removed", positive="1")
            >>> words.labelled("1"), words.labelled("1", not_=True), Words().labelled("1")
            ('removed', 'not removed', '1')
        """
        said = self.decided if self.decided and name == self.positive else name
        return f"not {said}" if not_ else str(said)

    def true_of(self, name: str | None, *, not_: bool = False, things: bool | None = None) -> str:
        """The cases of a class, as a clause after their noun.

        Examples:
            >>> words = Words(truth=("break the rules", "do not break the rules"), positive="1")
            >>> words.true_of("1"), words.true_of("1", not_=True, things=False)
            ('that break the rules', 'who do not break the rules')
            >>> Words().true_of("1"), Words().true_of("1", not_=True)
            ("whose truth is '1'", "whose truth is not '1'")
        """
        no = not_ != (self.positive is not None and name != self.positive)
        if self.positive is not None and self.truth:
            things = not self.people_are_items if things is None else things
            return f"{'that' if things else 'who'} {self.truth[no]}"
        what = self.class_[0] if self.class_ and self.positive is None else "truth"
        others = excepted(name) if name is not None else None
        if others is not None:
            not_, name = not not_, others
        return f"whose {what} is {'not ' if not_ else ''}'{name}'"

    def is_true(self, name: str | None) -> str:
        """That a class is true, as a verb of several: "break the rules", "have truth '1'"."""
        if self.positive is not None and self.truth:
            return self.truth[name != self.positive]
        what = self.class_[0] if self.class_ and self.positive is None else "truth"
        return f"have {what} '{name}'"

    def true_cases(self, name: str | None) -> str:
        """Several cases that are so.

        Examples:
            >>> missed = ("missed violation", "missed violations")
            >>> Words(missed=missed, positive="1").true_cases("1")
            'violations'
            >>> Words(item=("post", "posts")).true_cases("1")
            "posts whose truth is '1'"
        """
        noun = self.missed[1].removeprefix("missed ") if self.missed else ""
        if self.missed and noun not in (self.missed[1], "cases") and name == self.positive:
            return noun
        return f"{self.items[1]} {self.true_of(name)}"

    def column(self, rate: str, name: str | None) -> str:
        """The head of a column that shows a rate, in the words of this audit.

        Examples:
            >>> truth = ("break the rules", "do not break the rules")
            >>> words = Words(decided="removed", truth=truth, positive="1")
            >>> words.column("selection_rate", "1"), words.column("false_positive_rate", "1")
            ('removed', 'removed although they do not break the rules')
            >>> words.column("false_negative_rate", "1"), words.column("accuracy", "1")
            ('not removed although they break the rules', 'decided rightly')
        """
        done = self.decided if self.decided and name == self.positive else None
        did, left = (done, f"not {done}") if done else (f"'{name}'", f"not '{name}'")
        so, not_so = (
            (f"they {self.truth[0]}", f"they {self.truth[1]}")
            if self.truth and name == self.positive
            else (f"truth '{name}'", f"another truth than '{name}'")
        )
        heads = {
            "selection_rate": did,
            "true_positive_rate": f"{did} where {so}",
            "false_positive_rate": f"{did} although {not_so}",
            "false_negative_rate": f"{left} although {so}",
            "true_negative_rate": f"{left} where {not_so}",
            "precision": f"rightly {did}",
            "accuracy": "decided rightly",
        }
        return heads.get(rate) or words(rate)

    def gloss(self, term: str) -> str:
        """A term, explained where it is first used.

        Examples:
            >>> Words().gloss("bar"), Words(heard=frozenset({"bar"})).gloss("bar")
            ('bar (how much evidence labelers ask for)', 'bar')
        """
        return term if term in self.heard else f"{term} ({GLOSSES[term]})"

    # --- what is known -----------------------------------------------------------------------

    def shares_known(self, row: Row) -> Mapping[str, Any] | None:
        """Whose truth is known how often, where a row is withheld for it; None if nobody said."""
        over_groups = look_up(row["measure"]).over_groups
        place = (row.get("lens"), *(row.get(name) for name in _PLACE[:-1]), over_groups)
        return self.known.get(place)

    # --- mistakes ----------------------------------------------------------------------------

    def a_miss(self, article: str, name: str | None) -> str:
        """One missed case of a class after "a" or "one".

        Examples:
            >>> miss = Words(missed=("oversight", "oversights"))
            >>> Words().a_miss("one", "1"), miss.a_miss("a", "1")
            ("one missed '1'", 'an oversight')
        """
        if self.missed is None:
            return f"{article} missed '{name}'"
        vowel = article == "a" and self.missed[0][:1].lower() in "aeiou"
        return f"{article}{'n' if vowel else ''} {self.missed[0]}"

    def named(self, row: Row) -> dict[str, Any]:
        """A row whose group and reference have the names that people are shown."""
        attribute = row["attribute"]
        return {**row, **{key: self.name(attribute, row[key]) for key in ("group", "reference")}}

    @property
    def mistakes(self) -> str:
        """Several wrong decisions."""
        return self.wrong[1] if self.wrong else "wrong ones"

    def chance(self, name: str | None) -> str:
        """What a probability is the chance of.

        Examples:
            >>> Words(missed=("missed violation", "missed violations")).chance("1")
            'chance of a violation'
            >>> Words(truth=("reoffend", "do not"), positive="1").chance("1"), Words().chance("1")
            ('chance that they reoffend', "chance of '1'")
        """
        noun = self.missed[0].removeprefix("missed ") if self.missed else ""
        if self.missed and noun not in (self.missed[0], "case"):
            return f"chance of {'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
        if self.truth and self.positive is not None:
            return f"chance that they {self.truth[name != self.positive]}"
        return f"chance of '{name}'"


def _pair(given: Any) -> Pair | None:
    return (str(given[0]), str(given[1])) if given else None


def possessive(who: str) -> str:
    """Whose something is.

    Examples:
        >>> possessive("men"), possessive("Black defendants"), possessive("people over 60")
        ("men's", "Black defendants'", 'those of people over 60')
    """
    if goes_on(who):
        return f"those of {who}"
    return f"{who}'" if who.endswith("s") and " " in who else f"{who}'s"


def positive_class(details: Mapping[str, Any]) -> str | None:
    """The class that counts as positive, as the lenses left it in the details; None for many."""
    known = ((details.get(lens) or {}).get("positive") for lens in _KNOW_POSITIVE)
    return next((name for name in known if name is not None), None)


def name_of(value: str | None, attribute: str | None, *, shared: bool = False) -> str | None:
    """A group as people are shown it; `shared` says that another attribute has the value too.

    Examples:
        >>> name_of("female", "gender"), name_of("1", "gender"), name_of("<rest>", "gender")
        ('female', 'gender=1', '<rest>')
        >>> name_of("yes", "disabled", shared=True), name_of("", "gender")
        ('disabled=yes', "gender=''")
    """
    if value is None or attribute is None or value.startswith("<"):
        return value
    if value.strip().lower() in _LIKE_NOTHING:
        return f"{attribute}={value!r}"
    return f"{attribute}={value}" if shared or _is_number(value) else value


def group_names(groups: Iterable[tuple[str | None, str | None]]) -> dict[tuple[Any, str], str]:
    """The names of groups by attribute and value; a value of two attributes carries its own.

    Examples:
        >>> group_names([("old", "yes"), ("ill", "yes"), ("ill", "no")])
        {('old', 'yes'): 'old=yes', ('ill', 'yes'): 'ill=yes', ('ill', 'no'): 'no'}
    """
    pairs = [pair for pair in dict.fromkeys(groups) if pair[1] is not None]
    holders: dict[str, set[str | None]] = {}
    for attribute, value in pairs:
        holders.setdefault(str(value), set()).add(attribute)
    return {
        (attribute, str(value)): str(name_of(value, attribute, shared=len(holders[str(value)]) > 1))
        for attribute, value in pairs
    }


def _known_shares(details: Mapping[str, Any]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """What lenses left of how often the truth is known, by the lens and place of rows."""
    return {
        (lens, *(one[name] for name in _PLACE)): one
        for lens, held in details.items()
        if isinstance(held, Mapping)
        for one in held.get(KNOWN_SHARES) or ()
    }


def _same_people(names: Names, people_names: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Columns that name the same people as another column: they speak of several persons."""
    called: dict[str, set[str]] = {}
    for attribute, value in names:
        own = (people_names.get(str(attribute)) or {}).get(value) or _ENGLISH.get(value.lower())
        if own is not None:
            called.setdefault(own, set()).add(str(attribute))
    return frozenset(
        column for columns in called.values() if len(columns) > 1 for column in columns
    )


def words(measure: str) -> str:
    """A measure's name as a person says it; one that this version does not know, by its name.

    Examples:
        >>> words("cost_ratio_ratio"), words("true_positive_rate_gap"), words("former_gap")
        ('relative weight of a miss', 'true positive rate gap', 'former gap')
    """
    record = look_up(measure)
    return record.label if record.name else measure.replace("_", " ")


def interval(row: Row, *, family: bool = True) -> str:
    """The interval of a row: the one that holds for its whole family, unless asked otherwise."""
    low, high = ("family_low", "family_high") if family else ("low", "high")
    if row[low] is None or row[high] is None:
        return ""
    return f"[{number(row[low])}, {number(row[high])}]"


def why_not(reason: str | None) -> str:
    """Why there is no number, as a sentence goes on.

    Examples:
        >>> why_not("no cases in the group"), why_not("fewer than 10 cases: hidden")
        ('undefined: no cases in the group', 'hidden: fewer than 10 cases')
    """
    if reason == HIDDEN:
        return f"hidden: fewer than {HIDDEN_UNDER} cases"
    return f"undefined: {reason}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
