"""Shares of people or things, and how two groups differ in them, in words.

What a rate says follows from the cells that it counts: of which cases, what happens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.decisions.labels import REST, SUMMARY
from evenhand.findings.limits import WITHIN
from evenhand.findings.sentences.agreed import (
    ending,
    ends,
    gap_range,
    gap_words,
    limit_sentence,
    open_,
    percent_range,
    span_words,
    two,
)
from evenhand.findings.sentences.words import Said, Words
from evenhand.lenses.kinds import CELLS, NEGATIVE, POSITIVE, REVIEWED, SELECTED, Measure
from evenhand.lenses.measures import look_up, surely_apart
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import UNTOLD_UNDER
from evenhand.speech import decimals, opening, percent, points, times_as

_ROUNDING = 1e-9
_RIGHT = frozenset({"true_positive", "true_negative"})
# A size that is the larger one of two rates' widest gaps.
_LARGER_OF = {"equalised_odds": ("true_positive_rate", "false_positive_rate")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A rate of one group and, where there is one, of the group it is compared with.

    `among` are the cases it counts: all, true, untrue or decided; `does` is what it counts of
    them: decided, left, true or right. Both are None for a rate that only its label names.
    """

    words: Words
    rate: Measure
    attribute: str | None
    group: str | None
    reference: str | None
    class_: str | None
    among: str | None
    does: str | None

    @classmethod
    def of(cls, row: Row, rate: Measure, words: Words) -> "Share":
        """The share that a row speaks of."""
        among, does = _parts(rate)
        return cls(
            words=words,
            rate=rate,
            attribute=row["attribute"],
            group=row["group"],
            reference=row["reference"],
            class_=row["class"],
            among=among,
            does=does,
        )

    @property
    def subject(self) -> str:
        """Whose cases of which kind: "posts by women that break the rules"."""
        clause = self._clause()
        people = "people of " if clause and self._single and self.group != REST else ""
        also = "and" if clause and self._joins() else ""
        return " ".join(filter(None, (f"{people}{self._whose(self.group)}", also, clause)))

    def both(self, own: str, other: str) -> str:
        """The shares of both groups: "36.1% of posts by women are removed, 18.5% of men's"."""
        theirs = self._theirs(self.reference)
        if self.does is None:
            people = self._people(self.group), self._people(self.reference)
            return f"the {self.label} is {own} for {people[0]} and {other} for {people[1]}"
        if self.does == "right":
            whose = self._whose(self.group)
            return f"{self._decisions} are right for {own} of {whose} and {other} of {theirs}"
        if self.among == "all":
            return f"{own} of {self._whose(self.group)} {self._verb()}, {other} of {theirs}"
        return (
            f"of {self._noun} {self._clause()}, {own} of {self._theirs(self.group)} {self._verb()} "
            f"and {other} of {theirs}"
        )

    def alone(self, own: str) -> str:
        """The share of one group."""
        if self.does is None:
            return f"the {self.label} is {own} for {self._people(self.group)}"
        if self.does == "right":
            return f"{self._decisions} are right for {own} of {self._whose(self.group)}"
        return f"{own} of {self.subject} {self._verb()}"

    def more(self, how: str, *, higher: str) -> str:
        """The claim that one group has it more or less often: "women are approved less often"."""
        theirs = self._theirs(self.reference)
        if self.does is None:
            people = self._people(self.group), self._people(self.reference)
            return f"the {self.label} is {higher} for {people[0]} than for {people[1]}"
        if self.does == "right":
            return f"{self._decisions} on {self._whose(self.group)} are right {how} on {theirs}"
        one = self._single and not self._clause()
        verb = self._verb(one=one)
        if self.does == "left":  # "not removed less often" would be read the wrong way round
            left = "missed" if self.among == "true" else "rightly left alone"
            verb = f"{'is' if one else 'are'} {left}"
        return f"{self.subject} {verb} {how} {theirs}"

    def same(self) -> str:
        """The claim that both groups have it as often."""
        if self.does is None:
            people = self._people(self.group), self._people(self.reference)
            return f"the {self.label} is as high for {people[0]} as for {people[1]}"
        return self.more("as often as", higher="")

    @property
    def label(self) -> str:
        """The rate's name, with its class where there are many."""
        many = self.class_ is not None and self.words.positive is None
        return f"{self.rate.label} of '{self.class_}'" if many else self.rate.label

    @property
    def _decisions(self) -> str:
        many = self.class_ is not None and self.words.positive is None
        return f"decisions on '{self.class_}'" if many else "decisions"

    @property
    def _single(self) -> bool:
        """Whether the subject is one thing to English."""
        return self.words.is_one(self.attribute, self.group)

    @property
    def _noun(self) -> str:
        return self.words.items[1] if self.words.item is not None else "those"

    def _clause(self) -> str:
        things = self.words.of_things(self.attribute, self.group)
        if self.among in ("true", "untrue"):
            return self.words.true_of(self.class_, not_=self.among == "untrue", things=things)
        if self.among == "decided":
            return f"{'that' if things else 'who'} {self.words.happens(self.class_)}"
        return ""

    def _joins(self) -> bool:
        """Whether a clause on people follows another one on them."""
        who = self.attribute, self.group
        return self.words.has_clause(*who) and not self.words.of_things(*who)

    def _verb(self, *, one: bool = False) -> str:
        if self.does == "true":
            return self.words.is_true(self.class_)
        return self.words.happens(self.class_, not_=self.does == "left", one=one)

    def _people(self, group: str | None) -> str:
        return self.words.people(self.attribute, group)

    def _whose(self, group: str | None) -> str:
        return self.words.subject(self.attribute, group)

    def _theirs(self, group: str | None) -> str:
        return self.words.theirs(self.attribute, group)


def _parts(rate: Measure) -> tuple[str | None, str | None]:
    """Of which cases a rate counts what, by its cells."""
    if rate.cells is None or rate.kind == "odds":
        return None, None
    hits, cases = frozenset(rate.cells.hits), frozenset(rate.cells.cases)
    kinds = {
        frozenset(CELLS): "all",
        REVIEWED: "all",
        POSITIVE: "true",
        NEGATIVE: "untrue",
        SELECTED & REVIEWED: "decided",
    }
    among = kinds.get(cases)
    counted = {_RIGHT: "right", cases & POSITIVE: "true", cases - SELECTED: "left"}
    does = (counted | {cases & SELECTED: "decided"}).get(hits)
    if among == "decided":
        does = "true" if hits == cases & POSITIVE else None
    return (among, does) if among and does else (None, None)


def wanted_rates(row: Row) -> list[dict[str, Any]]:
    """Which rows a comparison of two groups rests on: the number of either group."""
    record = look_up(row["measure"])
    bases = _LARGER_OF.get(record.name) or ((record.base,) if record.base else ())
    compared = bases and not record.parts and record.kind in ("gap", "ratio", "distance")
    if not compared or None in (row["group"], row["reference"]) or row["stratum"] == SUMMARY:
        return []
    weights = record.base == "cost_ratio"
    if "counterfactual" in record.lenses or (record.variant_of and not weights):
        return []
    keys = ("lens", "attribute", "class", "stratum", "labeler", "norm")
    same = {key: row.get(key) for key in keys} | {"reference": None}
    sides = [row[side] for side in ("group", "reference")]
    return [same | {"measure": base, "group": side} for base in bases for side in sides]


def compared_rates(row: Row, given: Sequence[Row]) -> list[Row]:
    """The rows of the two rates that a comparison rests on, the group's first; none else.

    Of a size that is the larger of two gaps, those of the rate that it is the gap of.
    """
    record = look_up(row["measure"])
    for base in _LARGER_OF.get(record.name) or (record.base,):
        by = {one["group"]: one for one in _same_place(row, given) if one["measure"] == base}
        pair = [by[row[side]] for side in ("group", "reference") if row[side] in by]
        if len(pair) == 2 and all(one["value"] is not None for one in pair):
            apart = abs(pair[0]["value"] - pair[1]["value"])
            if record.name not in _LARGER_OF or abs(apart - row["value"]) < _ROUNDING:
                return pair
    return []


def _same_place(row: Row, given: Sequence[Row]) -> list[Row]:
    """The rows of the same part of the table."""
    return [one for one in given if one.get("stratum") == row.get("stratum")]


def both_rates(row: Row, given: Sequence[Row]) -> tuple[float, float] | None:
    """The rates of the group and of its reference; one left out is what the comparison says."""
    pair = compared_rates(row, given)
    if pair:
        return float(pair[0]["value"]), float(pair[1]["value"])
    base = look_up(row["measure"]).base
    same = _same_place(row, given)
    known = {one["group"]: one["value"] for one in same if one["measure"] == base}
    own, other = known.get(row["group"]), known.get(row["reference"])
    if own is not None and other is None:
        kind = look_up(row["measure"]).kind
        ratio = float(row["value"]) or None
        other = own - row["value"] if kind == "gap" else own / ratio if ratio else None
    return None if own is None or other is None else (float(own), float(other))


def say_comparison(row: Row, words: Words, given: Sequence[Row] = ()) -> Said | None:
    """A gap or ratio of two groups' rates in words, or None for any other measure."""
    record = look_up(row["measure"])
    pair = compared_rates(row, given)
    rate = look_up(pair[0]["measure"] if pair else record.base or "")
    if rate.cells is None or record.parts is not None or "counterfactual" in record.lenses:
        return None
    if None in (row["group"], row["reference"]):
        return None
    share, rates = Share.of(row, rate, words), both_rates(row, given)
    if record.kind == "gap":
        return (_say_odds_gap if rate.kind == "odds" else _say_gap)(row, share, rates)
    if record.kind == "ratio":
        return _say_ratio(row, share, rates)
    return _say_widest(row, share, rates) if record.kind == "distance" else None


def _say_gap(row: Row, share: Share, rates: tuple[float, float] | None) -> Said:
    value, pair = float(row["value"]), ends(row)
    places = decimals(*(pair or (None, None)), value, *(rates or ()))
    if rates and not places and round(100 * rates[0]) - round(100 * rates[1]) != round(100 * value):
        places = 1  # so that what is printed adds up
    amount = gap_words(value, places)
    where = place(row, share.words)
    shown = [percent(rate, places=places) for rate in rates or ()]
    often, higher = ("more often", "higher") if value > 0 else ("less often", "lower")
    if open_(row) and pair is not None:
        return _say_open_gap(row, share, shown, gap_range(*pair, places))
    span = f" ({gap_range(*pair, places)})" if pair else ""
    if f"{100 * abs(value):.{places}f}" == f"{0:.{places}f}":
        claim, told = share.same(), True
    else:
        size = points(value, places=places)
        times = times_as(rates[0] / rates[1]) if rates and min(rates) > 0 else None
        told = times is None or share.does is None
        how = f"{size} {often} than" if times is None else f"{times} as often as"
        claim = share.more(how, higher=f"{size} {higher}")
    numbers = f"{amount}{span}"
    if not shown:
        line = headline = f"{claim}{span if told else f': {numbers}'}"
        return _said(where, headline, "", f"{line}{ending(row, unit=not told)}")
    against = f"{shown[0]} against {shown[1]}"
    if told:
        headline, detail = f"{claim}{span}", f"{against}{ending(row, unit=True)}"
        summary = f"{headline}{ending(row)}"
    else:
        headline, detail = claim, f"{against}, {numbers}{ending(row)}"
        summary = f"{headline}: {detail}"
    said = _said(where, headline, detail, f"{share.both(*shown)}: {numbers}{ending(row)}")
    return replace(said, summary=opening(f"{where}{summary}"))


def _say_open_gap(row: Row, share: Share, shown: Sequence[str], fits: str) -> Said:
    way = ("more often than", "higher") if row["value"] > 0 else ("less often than", "lower")
    claim = share.more(way[0], higher=way[1])
    whether = f"the data cannot tell whether {claim}"
    anything = f"anything from {fits} fits{ending({**row, 'verdict': ''})}"
    if not shown:
        return _said(place(row, share.words), whether, opening(anything), f"{whether}: {anything}")
    line = f"{share.both(*shown)}. The data cannot tell: {anything}"
    detail = f"{shown[0]} against {shown[1]}: {anything}"
    return _said(place(row, share.words), whether, detail, line)


def _say_odds_gap(row: Row, share: Share, rates: tuple[float, float] | None) -> Said:
    """Two odds side by side: plain numbers, for nothing in them is a share of cases."""
    value, pair = float(row["value"]), ends(row)
    shown = [two(rate) for rate in rates or ()]
    if open_(row) and pair is not None:
        return _say_open_gap(row, share, shown, _odds_range(*pair))
    span = f" ({_odds_range(*pair)})" if pair else ""
    higher, more = ("higher", "more") if value > 0 else ("lower", "less")
    claim = f"{share.more('', higher=f'{two(abs(value))} {higher}')}{span}"
    if not shown:
        return _said(place(row, share.words), claim, limit_sentence(row), f"{claim}{ending(row)}")
    line = f"{share.both(*shown)}: {two(abs(value))} {more}{span}{ending(row)}"
    against = f"{shown[0]} against {shown[1]}{ending(row)}"
    return _said(place(row, share.words), claim, against, line)


def _odds_range(low: float, high: float) -> str:
    if low <= 0 <= high:
        return f"{two(-low)} less to {two(high)} more"
    near, far = sorted((abs(low), abs(high)))
    return f"{two(near)} to {two(far)}"


def _say_ratio(row: Row, share: Share, rates: tuple[float, float] | None) -> Said:
    value, pair = float(row["value"]), ends(row)
    shown = [two(rate) if share.rate.kind == "odds" else percent(rate) for rate in rates or ()]
    against = f"{shown[0]} against {shown[1]}" if shown else ""
    where = place(row, share.words)
    span = f" ({pair[0]:.2f} to {pair[1]:.2f})" if pair else ""
    if open_(row) and pair is not None:
        way = ("more often than", "higher") if value > 1 else ("less often than", "lower")
        whether = f"the data cannot tell whether {share.more(way[0], higher=way[1])}"
        anything = f"anything from {pair[0]:.2f} to {pair[1]:.2f} times fits"
        anything += ending({**row, "verdict": ""})
        detail = f"{against}, and {anything}" if against else anything
        return _said(where, whether, detail, f"{whether}: {detail}")
    size = f"{value:.2f} times"
    often = f"{times_as(value) or size} as often as"
    headline = share.more(often, higher=f"{size} as high")
    claim = share.more(f"{size} as often as", higher=f"{size} as high")
    if share.does is None:
        claim = headline = (
            f"the {share.label} of {share._people(share.group)} is {size} that of "
            f"{share._people(share.reference)}"
        )
    numbers = f"{claim}{span}{f': {against}' if against else ''}"
    exact = f"{value:.2f} times{span}"
    detail = f"{exact}{f': {against}' if against else ''}{ending(row)}"
    return _said(where, headline, opening(detail), f"{numbers}{ending(row)}")


def _say_widest(row: Row, share: Share, rates: tuple[float, float] | None) -> Said:
    pair = ends(row)
    places = decimals(*(pair or (None, None)), row["value"], *(rates or ()))
    size = points(row["value"], places=places)
    span = f" ({gap_range(*pair, places)})" if pair else ""
    shown = [percent(rate, places=places) for rate in rates or ()]
    people = f"{share._people(share.group)} and {share._people(share.reference)}"
    headline = f"of all groups, {people} differ most in {_what(share)}"
    numbers = f"{size}{span}"
    if not shown:
        return _said(place(row, share.words), headline, f"{opening(numbers)}{ending(row)}",
                     f"{headline}: {numbers}{ending(row)}")  # fmt: skip
    line = f"the widest gap between two groups: {share.both(*shown)}, {numbers}{ending(row)}"
    detail = f"{shown[0]} against {shown[1]}: {numbers}{ending(row)}"
    return _said(place(row, share.words), headline, detail, line)


def _what(share: Share) -> str:
    """What a rate is about, after "in"."""
    if share.does is None:
        return f"the {share.label}"
    if share.does == "right":
        return f"how often {share._decisions} are right"
    noun = share._noun if share._clause() or share.words.item else "they"
    return " ".join(filter(None, ("how often", noun, share._clause(), share._verb())))


def say_auc(row: Row, words: Words, given: Sequence[Row] = ()) -> Said | None:
    """How well scores rank, in words; None for any other measure."""
    record = look_up(row["measure"])
    if record.name not in ("auc", "auc_gap"):
        return None
    people = [words.people(row["attribute"], row[side]) for side in ("group", "reference")]
    cases = words.true_cases(row["class"])
    if record.kind == "rate":
        share = f"in {percent(row['value'])} of pairs{percent_range(row, 1)}"
        line = f"for {people[0]}, scores put {cases} above others {share}"
        return _said(place(row, words), line, limit_sentence(row), f"{line}{ending(row)}")
    if row["reference"] is None:
        return None
    value, pair, rates = float(row["value"]), ends(row), both_rates(row, given)
    well = "better" if value > 0 else "less well"
    claim = f"scores tell {cases} from others {well} for {people[0]} than for {people[1]}"
    places = decimals(*(pair or (None, None)), value, *(rates or ()))
    shown = [percent(rate, places=places) for rate in rates or ()]
    gloss = "right in {} of pairs against {} (AUC), ".format(*shown) if shown else "AUC "
    if open_(row) and pair is not None:
        headline = f"the data cannot tell whether {claim}"
        numbers = f"anything from {gap_range(*pair, places)} fits{ending({**row, 'verdict': ''})}"
    else:
        headline = claim
        span = f" ({gap_range(*pair, places)})" if pair else ""
        numbers = f"{gap_words(value, places)}{span}{ending(row)}"
    return _said(
        place(row, words), headline, opening(f"{gloss}{numbers}"), f"{headline}: {gloss}{numbers}"
    )


def say_rate(row: Row, words: Words) -> Said | None:
    """The share of one group with its interval, or None for any other measure."""
    record = look_up(row["measure"])
    if record.cells is None or row["group"] is None:
        return None
    share = Share.of(row, record, words)
    pair = ends(row)
    if record.kind == "odds":
        line = f"{share.alone(two(row['value']))}{span_words(pair)}"
        return _said(place(row, words), line, limit_sentence(row), f"{line}{ending(row)}")
    places = decimals(*(pair or (None, None)), row["value"])
    line = f"{share.alone(percent(row['value'], places=places))}{percent_range(row, places)}"
    return _said(place(row, words), line, limit_sentence(row), f"{line}{ending(row)}")


def say_impact(row: Row, words: Words, given: Sequence[Row] = ()) -> Said | None:
    """How often a group is selected against the group that is selected most."""
    if row["measure"] != "impact_ratio" or row["group"] is None:
        return None
    share = Share.of(row, look_up("selection_rate"), words)
    verb = words.happens(row["class"])
    if row["group"] == row["reference"]:
        return _said(place(row, words), f"of all groups, {share.subject} {verb} most often", "",
                     f"of all groups, {share.subject} {verb} most often.")  # fmt: skip
    pair, value = ends(row), float(row["value"])
    span = f" ({pair[0]:.2f} to {pair[1]:.2f})" if pair else ""
    claim = share.more(f"{value:.2f} times as often as", higher="")
    headline = share.more(f"{times_as(value) or f'{value:.2f} times'} as often as", higher="")
    # A group too small to be the base may lie above it.
    whose = "among those of enough cases" if value > 1 else "of all groups"
    rates = " against ".join(percent(rate) for rate in both_rates(row, given) or ())
    which = f": {rates}, the highest rate" if rates else "; theirs is the highest rate"
    numbers = f"{span}{which} {whose}{ending(row)}"
    line, detail = f"{claim}{numbers}", f"{value:.2f} times{numbers}"
    return _said(place(row, words), headline, detail, line)


def say_size(row: Row, words: Words, given: Sequence[Row] = ()) -> Said | None:
    """A typical gap over classes, or a spread over groups; None for any other measure."""
    record = look_up(row["measure"])
    if record.kind != "distance" or record.parts is None or "counterfactual" in record.lenses:
        return None
    pair = ends(row)
    places = decimals(*(pair or (None, None)), row["value"])
    size, span = points(row["value"], places=places), ""
    if pair:
        up_to = f"up to {points(pair[1], places=places)}"
        span = f" ({gap_range(*pair, places) if pair[0] > 0 else up_to})"
    noise = "" if record.variant_of else ", sampling noise included"
    rate = look_up(record.base or "")
    if record.counts == "groups":
        headline = f"the {rate.label} varies between the groups of {row['attribute']}"
        numbers = f"typically {size} from the mean of {_n(row)} groups{span}{noise}"
    else:
        people = [words.people(row["attribute"], row[side]) for side in ("group", "reference")]
        alike = _alike(rate, words)
        proven = pair is not None and pair[0] > 0
        headline = f"{people[0]} and {people[1]} are not {alike}"
        if not proven and row["verdict"] == WITHIN:
            headline = f"{people[0]} and {people[1]} are {alike}, as far as was agreed"
        elif not proven:
            headline = f"the data cannot tell whether {people[0]} and {people[1]} are {alike}"
        numbers = f"a typical gap of {size} over {_n(row)} {words.classes[1]}{span}{noise}"
        if proven:
            numbers += _largest([one for one in given if one["measure"] == record.parts], words)
    return _said(place(row, words), headline, opening(f"{numbers}{ending(row)}"),
                 f"{headline}: {numbers}{ending(row)}")  # fmt: skip


def pointed_at(classes: Sequence[Row]) -> Row | None:
    """Of the gaps of classes the one to start with: a proven one before a larger one that chance
    may have made, and none on few cases."""
    known = [one for one in classes if one["value"] is not None and enough(one)]
    return max(known, key=lambda one: (surely_apart(one), abs(one["value"])), default=None)


def largest_gap(classes: Sequence[Row]) -> Row | None:
    """The class with the largest gap, on however few cases."""
    known = [one for one in classes if one["value"] is not None]
    return max(known, key=lambda one: abs(one["value"]), default=None)


def enough(row: Row) -> bool:
    """Whether a row rests on enough cases to be pointed at."""
    counts = [row[name] for name in ("n", "n_reference") if row[name] is not None]
    return all(count >= UNTOLD_UNDER for count in counts)


def _largest(classes: Sequence[Row], words: Words) -> str:
    """The class that is pointed at; what it is the largest of, where others look larger still."""
    named, largest = pointed_at(classes), largest_gap(classes)
    if named is None or largest is None:
        return ""
    of = ""
    if abs(largest["value"]) > abs(named["value"]):
        few = f"with {UNTOLD_UNDER} cases or more in each group"
        which = "where it is beyond doubt" if surely_apart(named) else few
        of = f" among the {words.classes[1]} {which}"
    return f", largest for '{named['class']}'{of}"


def _alike(rate: Measure, words: Words) -> str:
    one, many = words.classes
    return {
        "true_positive_rate": f"recognised equally well in their own {one}",
        "selection_rate": f"given the {many} equally often",
        "accuracy": f"decided about equally well over the {many}",
    }.get(rate.name, f"treated alike over the {many} in {rate.label}")


def _n(row: Row) -> str:
    return f"{row['n']:,.0f}"


def place(row: Row, words: Words) -> str:
    """Which part of the table alone a row speaks of, before its sentence.

    Examples:
        >>> place({"stratum": "18-30"}, Words(stratum="age")), place({"stratum": "x"}, Words())
        ('where age is 18-30, ', 'in stratum x, ')
    """
    stratum, column = row["stratum"], words.stratum
    if stratum is None:
        return ""
    if stratum == SUMMARY:
        return f"over all strata{f' of {column}' if column else ''} together, "
    return f"where {column} is {stratum}, " if column else f"in stratum {stratum}, "


def _said(where: str, headline: str, detail: str, line: str) -> Said:
    return Said(
        headline=opening(f"{where}{headline}"),
        detail=opening(detail),
        line=opening(f"{where}{line}"),
    )
