"""Labelers in words that a policy owner reads: how mistakes are weighed, by which bar and skill.

One meaning of "standard" holds everywhere: how the two mistakes are weighed, the cost ratio. The
criterion is the bar: how much evidence labelers ask for. Equal weights need unequal bars where
prevalence or skill differ, and one bar makes unequal weights there.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp

from evenhand.decisions.labels import REST
from evenhand.findings.sentences.agreed import (
    alike,
    ending,
    ends,
    gap_range,
    gap_words,
    open_,
    two,
)
from evenhand.findings.sentences.rates import both_rates, place
from evenhand.findings.sentences.words import GLOSSES, Said, Words, words
from evenhand.lenses.measures import look_up, surely_apart
from evenhand.lenses.rows import Row, Rows
from evenhand.speech import agree, count_words, decimals, few, opening, percent, plural

RATIO, CRITERION, SEPARATION = "cost_ratio_ratio", "criterion_gap", "separation_gap"
PREVALENCE, BAR = "cost_ratio_prevalence_part", "cost_ratio_bar_part"
SKILL = "cost_ratio_skill_part"
WEIGHTS_COMPARED = (RATIO, f"{RATIO}_average")
_ASKED = (RATIO, CRITERION, SEPARATION, PREVALENCE, BAR, SKILL)


def explaining_rows(rows: Rows, *, attribute: str | None, group: str | None = None) -> list[int]:
    """Where the rows stand that say whether and why mistakes are weighed otherwise, or none.

    Those of a group, or of the surest comparison, one for each of the measures asked: the
    average labeler's where labelers were pooled, those of all labels together elsewhere.
    """
    wanted = rows["lens"] == "labelers"
    places = [
        int(i)
        for i in wanted.nonzero()[0]
        if rows["attribute"][i] == attribute
        and rows["labeler"][i] is None
        and rows["stratum"][i] is None
        and rows["reference"][i] is not None
    ]
    mine = dict(zip(places, rows.take(places))) if places else {}
    by: dict[tuple[str, str], int] = {}
    for i, row in mine.items():
        if row["value"] is None:
            continue
        average = look_up(row["measure"]).variant_of
        if average is not None:
            by[row["group"], average] = i
        else:
            by.setdefault((row["group"], row["measure"]), i)
    groups = list(dict.fromkeys(group for group, _ in by))
    whole = [one for one in groups if all((one, name) in by for name in _ASKED)]
    whole = [one for one in whole if group in (None, one)]
    if not whole:
        return []

    def surest(group: str) -> tuple[float, str]:
        apart = (_clearance(mine[by[group, name]]) for name in _ASKED[:3])
        return -max(apart), group

    chosen = min(whole, key=surest)
    return [by[chosen, name] for name in _ASKED]


def explaining(rows: Sequence[Row]) -> list[Row]:
    """Of the rows that a finding rests on, those that explain it, in their order."""
    by: dict[str, Row] = {}
    for row in rows:
        by.setdefault(look_up(row["measure"]).variant_of or row["measure"], row)
    return [by[name] for name in _ASKED] if all(name in by for name in _ASKED) else []


def _clearance(row: Row) -> float:
    """How far a value lies from no difference, in widths of its family interval."""
    low, high = row["family_low"], row["family_high"]
    if low is None or high is None or not high > low:
        return 0.0
    return look_up(row["measure"]).size(row["value"]) / float(high - low)


def standard_in_words(rows: Sequence[Row], words: Words) -> str | None:
    """Whether mistakes are weighed otherwise, by which bar, and why; from the explaining rows.

    Examples:
        >>> shared = {"class": "1", "group": "f", "reference": "m", "attribute": "s"}
        >>> ends = {RATIO: (0.8, 1.3), CRITERION: (0.4, 0.8), SEPARATION: (-0.2, 0.4)}
        >>> ends |= {PREVALENCE: (1.0, 1.2), BAR: (-1.4, -0.8), SKILL: (-0.1, 0.1)}
        >>> said = standard_in_words([
        ...     shared | {"measure": name, "value": sum(pair) / 2, "family_low": pair[0],
        ...               "family_high": pair[1]} for name, pair in ends.items()], Words())
        >>> for part in said.split(". "):
        ...     print(part)
        The data show no difference between group f and group m in how the two mistakes are \
weighed: labelers do ask for more evidence about group f (their bar, how much evidence labelers \
ask for, is higher), as one standard asks for where cases whose truth is '1' are less common
        The data show no difference in skill.
    """
    if len(rows) < len(_ASKED):
        return None
    ratio, criterion, separation, *parts = rows[: len(_ASKED)]
    attribute = ratio["attribute"]
    group, other = (words.people(attribute, ratio[side]) for side in ("group", "reference"))
    blind = ratio.get("unjudged")
    if blind is not None:
        return (
            f"The data cannot tell whether {group} and {other} are held to one standard: {blind}."
        )
    weight, bar = surely_apart(ratio), surely_apart(criterion)
    cases = words.true_cases(ratio["class"])
    better = "better" if separation["value"] > 0 else "less well"
    apart = f"labelers tell {cases} from others {better} for {group}"
    why, by_skill = _why(parts, cases, apart, opposed=not weight)
    # One bar for both: what differs is said of the group by its name.
    moved = apart if by_skill else f"{cases} are {_common(parts)} among {group}"
    asks = _asks(criterion, group, words)
    both = f"between {group} and {other}"
    if not weight and not bar:
        first = (
            f"The data show no difference {both} in how the two mistakes are weighed, nor in the "
            f"{words.gloss('bar')}."
        )
    elif not weight:
        first = (
            f"The data show no difference {both} in how the two mistakes are weighed: labelers do "
            f"{asks}, as one standard asks for where {why}."
        )
    elif not bar:
        first = (
            f"Labelers weigh the two mistakes differently for {group} and {other}, though the data "
            f"show no difference in the {words.gloss('bar')}: {moved}, and one bar then weighs "
            "them differently."
        )
    else:
        first = f"Labelers {asks}."
        against = _against(parts, ratio)
        if against:
            first = (
                f"Labelers do {asks}, but {why}{', so' if by_skill else ' in this data'} that the "
                f"bar would have to {against} further for both mistakes to weigh the same."
            )
    skill = "The data show no difference in skill."
    if surely_apart(separation):
        said = by_skill and why in first
        skill = "" if said else f"{opening(apart)}."
    return " ".join(filter(None, (first, skill)))


def parts_in_words(rows: Sequence[Row], words: Words, *, total: bool = True) -> str:
    """Which part of an unequal weight comes from what, from the explaining rows; `total` first.

    Examples:
        >>> shared = {"class": "1", "group": "f", "reference": "m", "attribute": "s"}
        >>> ends = {RATIO: (0.8, 1.3), CRITERION: (0.4, 0.8), SEPARATION: (-0.2, 0.4)}
        >>> ends |= {PREVALENCE: (1.0, 1.2), BAR: (-1.4, -0.8), SKILL: (-0.1, 0.1)}
        >>> rows = [
        ...     shared | {"measure": name, "value": sum(pair) / 2, "family_low": pair[0],
        ...               "family_high": pair[1]} for name, pair in ends.items()]
        >>> print(parts_in_words(rows, Words(), total=False))
        By parts: 3.0 times (2.7 to 3.3) by how common cases whose truth is '1' are, 0.33 times \
(0.25 to 0.45) by the bar and 1.0 times (0.90 to 1.1) by skill.
    """
    if len(rows) < len(_ASKED) or rows[0].get("unjudged") is not None:
        return ""
    ratio, _, _, *parts = rows[: len(_ASKED)]
    prevalence, bar, skill = (f"{_factor(part['value'])} times{_span(part)}" for part in parts)
    opens = "By parts"
    if total:
        pair = ends(ratio)
        span = f" ({few(pair[0], beside=pair)} to {few(pair[1], beside=pair)})" if pair else ""
        group, other = (words.people(ratio["attribute"], ratio[k]) for k in ("group", "reference"))
        size = f"{few(ratio['value'])} times as much as"
        opens = f"For {group} a miss weighs {size} for {other}{span}"
    cases = words.true_cases(ratio["class"])
    return (
        f"{opens}: {prevalence} by how common {cases} are, {bar} by the bar and {skill} by skill."
    )


def _span(part: Row) -> str:
    pair = ends(part)
    return f" ({_factor(pair[0])} to {_factor(pair[1])})" if pair else ""


def _factor(logarithm: float) -> str:
    return few(exp(logarithm)) if logarithm >= 0 else f"{exp(logarithm):.2f}"


def _asks(criterion: Row, group: str, words: Words) -> str:
    more, kind = ("more", "higher") if criterion["value"] > 0 else ("less", "lower")
    meaning = f"their bar is {kind}"
    if "bar" not in words.heard:
        meaning = f"their bar, {GLOSSES['bar']}, is {kind}"
    return f"ask for {more} evidence about {group} ({meaning})"


def _why(parts: Sequence[Row], cases: str, apart: str, *, opposed: bool) -> tuple[str, bool]:
    """What beside the bar moves the weight, prevalence or skill, and whether it is skill.

    `opposed`: the bar makes up for it, so that it moves the weight the other way.
    """
    prevalence, bar, skill = (float(part["value"]) for part in parts)
    sign = -bar if opposed else prevalence + skill
    if abs(skill) > abs(prevalence) and skill * sign > 0:
        return apart, True
    common = _common(parts)
    return f"{cases} are {common if opposed else f'so much {common} among them'}", False


def _common(parts: Sequence[Row]) -> str:
    return "less common" if float(parts[0]["value"]) > 0 else "more common"


def _against(parts: Sequence[Row], ratio: Row) -> str | None:
    """Which way the bar would have to go on, where it works against the weight that differs."""
    bar = float(parts[1]["value"])
    if (bar > 0) == (float(ratio["value"]) > 1):
        return None
    return "rise" if bar < 0 else "fall"


def say_single_labelers(family: Sequence[Row]) -> Said:
    """How many labelers lie outside a limit; none is named.

    Examples:
        >>> row = {"measure": "cost_ratio", "verdict": "outside", "labeler": "L1"}
        >>> print(say_single_labelers([row, row | {"verdict": "within", "labeler": "L2"}]).line)
        One of 2 labelers weighs the two mistakes otherwise than agreed, beyond what chance \
explains.
    """
    everybody = {row["labeler"] for row in family}
    outside = {row["labeler"] for row in family if row["verdict"] == "outside"}
    many = f"{count_words(len(outside))} of {plural(len(everybody), 'labeler')}"
    does = f"{agree(len(outside), 'lies', 'lie')} outside what was agreed for the "
    does += words(family[0]["measure"])
    if look_up(family[0]["measure"]).base == "cost_ratio" or family[0]["measure"] == "cost_ratio":
        does = f"{agree(len(outside), 'weighs', 'weigh')} the two mistakes otherwise than agreed"
    return replace(
        Said.plainly(f"{opening(many)} {does}, beyond what chance explains."),
        short=f"single labelers, {words(family[0]['measure'])}",
    )


def say_labels(row: Row, words: Words, given: Sequence[Row] = ()) -> Said | None:
    """A comparison of labels in words: the bar, skill, prevalence; None for other rows.

    Examples:
        >>> row = {"measure": "criterion_gap", "class": "1", "group": "f", "labeler": None}
        >>> row |= {"attribute": "sex", "stratum": None, "family_low": -0.3, "family_high": -0.1}
        >>> row |= {"value": -0.2, "lens": "labelers", "reference": "male", "verdict": ""}
        >>> print(say_labels(row | {"limit_low": None, "limit_high": None}, Words()).line)
        Labelers ask for less evidence about group f than about men: their bar (how much evidence \
labelers ask for) is 0.20 standard deviations lower (0.10 to 0.30).
    """
    if row.get("lens") != "labelers" or row["reference"] is None:
        return None
    measure = str(row["measure"])
    base = look_up(measure).variant_of or measure
    if base == "prevalence_gap":
        return _say_prevalence(row, words, given)
    if base not in (CRITERION, SEPARATION):
        return None
    labeler, value, pair = row.get("labeler"), float(row["value"]), ends(row)
    who = "labelers" if base == measure else "the average labeler"
    who = who if labeler is None else f"labeler {labeler}"
    one = who != "labelers"
    about = words.people(row["attribute"], row["group"])
    other = words.people(row["attribute"], row["reference"])
    against = {CRITERION: f"about {other}", SEPARATION: f"for {other}"}[base]
    if labeler is not None and row.get("reference") == REST:
        against = "other labelers do"
    if base == CRITERION:
        how, than = "more" if value > 0 else "less", "than"
        if alike(row):
            how, than = "about as much", "as"
        asks = f"{who} {'asks' if one else 'ask'} for {how} evidence"
        claim = f"{asks} about {about} {than} {against}"
        what = words.gloss("bar")
    else:
        how, than = "better" if value > 0 else "less well", "than"
        if alike(row):
            how, than = "about as well", "as"
        tells = f"{'tells' if one else 'tell'} {words.true_cases(row['class'])} from others"
        claim = f"{who} {tells} {how} for {about} {than} {against}"
        what = words.gloss("skill")
    if open_(row) and pair is not None:
        claim = f"the data cannot tell whether {claim}"
        fits = (
            f"differences in the {what} from {two(pair[0])} to {two(pair[1])} standard deviations"
        )
        numbers = f"{fits} fit{ending({**row, 'verdict': ''})}"
    else:
        span = ""
        if pair is not None:
            near, far = sorted(pair, key=abs)
            apart = pair[0] * pair[1] > 0
            shown = (abs(near), abs(far)) if apart else pair
            span = f" ({two(shown[0])} to {two(shown[1])})"
        way = "higher" if value > 0 else "lower"
        numbers = f"their {what} is {two(abs(value))} standard deviations {way}{span}{ending(row)}"
    where = place(row, words)
    return Said(
        headline=opening(f"{where}{claim}"),
        detail=opening(numbers),
        line=opening(f"{where}{claim}: {numbers}"),
    )


def _say_prevalence(row: Row, words: Words, given: Sequence[Row]) -> Said:
    rates, pair, value = both_rates(row, given), ends(row), float(row["value"])
    places = decimals(*(pair or (None, None)), value, *(rates or ()))
    cases = words.true_cases(row["class"])
    about = words.people(row["attribute"], row["group"])
    other = words.people(row["attribute"], row["reference"])
    common = "more common" if value > 0 else "less common"
    claim = f"{cases} are {common} among labels about {about} than about {other}"
    if open_(row):
        claim = f"the data cannot tell whether {claim}"
    shown = " against ".join(percent(rate, places=places) for rate in rates or ())
    span = f" ({gap_range(*pair, places)})" if pair else ""
    amount = f"{gap_words(value, places)}{span}{ending(row)}"
    numbers = ", ".join(filter(None, (shown, amount)))
    return Said(
        headline=opening(claim), detail=opening(numbers), line=opening(f"{claim}: {numbers}")
    )
