"""Implied thresholds and cost ratios in words: on how much evidence people are decided about.

The implied threshold comes first, for it is what people understand: from which chance on do we
act? How one mistake is weighed against the other, the cost ratio, follows in a second sentence.
"""

from collections.abc import Sequence
from typing import Any

from evenhand.findings.limits import CANNOT_TELL, OUTSIDE, WITHIN
from evenhand.findings.sentences.agreed import (
    alike,
    ending,
    ends,
    gap_range,
    open_,
    span_words,
    two,
)
from evenhand.findings.sentences.crossed import goes_on, with_number
from evenhand.findings.sentences.words import Said, Words, why_not, words
from evenhand.lenses.measures import distance, look_up, nearest_value
from evenhand.lenses.rows import Row
from evenhand.speech import (
    agreed_number,
    chance,
    decimals,
    few,
    listed,
    opening,
    percent,
    points,
    times_as,
    with_article,
)

MOST_NAMED = 4
# How many times beyond what was agreed a weight is far beyond it.
_FAR = 2.0


def stated_costs(rows: Sequence[Row], lead: Row | None) -> list[Row]:
    """The cost ratios that a sentence can state, the leading one first; none where it cannot lead.

    Then whoever else lies outside and whoever lies furthest, so that nobody who stands out is
    hidden behind the others. Single labelers and single strata are not told one by one.
    """
    shown = [
        row
        for row in rows
        if row["labeler"] is None and row["stratum"] is None and _weight(row) is not None
    ]
    if lead is not None and not any(row is lead for row in shown):
        return []
    return sorted(
        shown,
        key=lambda row: (row is not lead, row["verdict"] != OUTSIDE, -distance(row)),
    )


def say_costs(rows: Sequence[Row], words: Words) -> Said:
    """From which chance on each group is acted on, and how mistakes are weighed; the first leads.

    Examples:
        >>> shared = {"class": "1", "measure": "cost_ratio", "attribute": "sex", "verdict": ""}
        >>> shared |= {"limit_low": None, "limit_high": None}
        >>> rows = [
        ...     {"group": "f", "value": 4.0, "family_low": 3.0, "family_high": 5.0} | shared,
        ...     {"group": "male", "value": 1.0, "family_low": 0.9, "family_high": 1.3} | shared,
        ... ]
        >>> said = say_costs(rows, Words(missed=("oversight", ""), wrong=("", "alarms")))
        >>> print(said.headline)
        Group f gets decision '1' from a 20% chance of '1' on
        >>> for part in said.detail.split(". "):
        ...     print(part)
        17% to 25% fits; men 50%
        For group f one oversight is treated as seriously as 4.0 alarms (3.0 to 5.0); for men 1.0.
    """
    first = rows[0]
    subject = words.subject(first["attribute"], first["group"])
    happens = words.happens(first["class"], one=words.is_one(first["attribute"], first["group"]))
    act = f"{subject} {happens}"
    own, span = _threshold(first), _threshold_span(first)
    others = _others(rows, words, _threshold)
    weights = _weights(rows, words)
    band = _band_words(first)
    verdict = first["verdict"]
    start = f"from {with_article(str(own))} {words.chance(first['class'])} on"
    if verdict == OUTSIDE:
        claim = f"{act} {_evidence(first)} than agreed"
        numbers = f"{start}{f' ({span})' if span else ''}, where {band} was agreed"
        line = f"{claim}: {numbers}"
    elif verdict == CANNOT_TELL:
        claim = f"the data cannot tell whether {act} on the evidence agreed"
        numbers = _what_fits(first, words)
        line = f"{claim}: {numbers}"
    elif verdict == WITHIN:
        claim = f"{act} on the evidence agreed"
        numbers = f"{start}{f' ({span})' if span else ''}, where {band} was agreed"
        line = f"{claim}: {numbers}"
    else:
        claim = f"{act} {start}"
        numbers = f"{span} fits" if span else ""
        line = f"{claim}{f' ({span})' if span else ''}"
        if others:
            beside = f"{others}; no difference between them is shown" if _alike(rows) else others
            numbers, others = "; ".join(filter(None, (numbers, beside))), ""
            line = f"{line}; {beside}"
    also = _also_outside(rows, words)
    tail = " ".join(filter(None, (f"{opening(others)}." if others else "", also, weights)))
    return Said(
        headline=opening(f"{claim}"),
        detail=" ".join(filter(None, (f"{opening(numbers)}." if numbers else "", tail))),
        line=f"{opening(line)}. {tail}".rstrip(),
        summary=f"{opening(line)}.{f' {opening(others)}.' if others else ''}",
        short=f"evidence asked for, {words.people(first['attribute'], first['group'])}",
    )


def _alike(rows: Sequence[Row]) -> bool:
    """Whether one weight fits all groups: then their numbers side by side claim nothing."""
    spans = [pair for pair in map(ends, rows) if pair is not None]
    return len(spans) == len(rows) and max(low for low, _ in spans) <= min(up for _, up in spans)


def say_labeler_costs(rows: Sequence[Row], words: Words, *, why: str | None = None) -> Said:
    """How labelers weigh the two mistakes about each group; the first leads, and `why` follows.

    Of labelers nothing is said on evidence here: how much of it they ask for is their bar.

    Examples:
        >>> row = {"class": "1", "measure": "cost_ratio", "attribute": "sex", "group": "female"}
        >>> row |= {"limit_low": 2.0, "limit_high": 5.0, "verdict": "outside", "value": 11.0}
        >>> print(say_labeler_costs([row | {"family_low": 7.4, "family_high": 16}], Words()).line)
        Labelers treat a missed '1' far more seriously for women than agreed: as seriously as 11 \
wrong ones (7.4 to 16), where 2 to 5 was agreed.
    """
    first = rows[0]
    people = words.people(first["attribute"], first["group"])
    pair, verdict, band = ends(first), first["verdict"], _band(first)
    span = f" ({few(pair[0], beside=pair)} to {few(pair[1], beside=pair)})" if pair else ""
    weight = f"as seriously as {_weight(first)} {words.mistakes}{span}"
    seen = nearest_value(first)
    if verdict == OUTSIDE and seen is not None:
        low, high, value = float(first["limit_low"]), float(first["limit_high"]), seen
        far = value / high >= _FAR if value > high else value <= 0 or low / value >= _FAR
        how = f"{'far ' if far else ''}{'more' if value > high else 'less'} seriously"
        claim = f"labelers treat {words.a_miss('a', first['class'])} {how} for {people} than agreed"
        numbers = f"{weight}, where {band} was agreed"
    elif verdict == CANNOT_TELL:
        claim = f"the data cannot tell whether labelers weigh mistakes about {people} as agreed"
        fits = f"from {few(pair[0])} to {few(pair[1])}" if pair else f"around {_weight(first)}"
        numbers = f"anything {fits} {words.mistakes} for {words.a_miss('one', first['class'])} "
        numbers += f"fits; {band} was agreed"
    else:
        claim = f"labelers treat {words.a_miss('one', first['class'])} about {people} {weight}"
        numbers = f"{band} was agreed" if band else ""
        if verdict == WITHIN:
            claim = f"labelers weigh mistakes about {people} as agreed"
            numbers = f"{words.a_miss('one', first['class'])} {weight}, where {band} was agreed"
    others = _others(rows, words, _weight)
    tail = " ".join(
        filter(None, (f"{opening(others)}." if others else "", _also_outside(rows, words), why))
    )
    return Said(
        headline=opening(claim),
        detail=" ".join(filter(None, (f"{opening(numbers)}." if numbers else "", tail))),
        line=" ".join(
            filter(None, (opening(f"{claim}{f': {numbers}' if numbers else ''}."), tail))
        ),
        summary=opening(f"{claim}{f': {numbers}' if numbers else ''}.")
        + (f" {opening(others)}." if others else ""),
        short=f"labelers' weight of a miss, {people}",
    )


def as_weights(row: Row) -> Row | None:
    """A row of an implied threshold as its cost ratio, (1 − t) ÷ t; None where one has no end.

    Examples:
        >>> row = {"measure": "implied_threshold", "value": 0.2, "family_low": 0.1}
        >>> row |= {"family_high": 0.25, "limit_low": None, "limit_high": None}
        >>> weights = as_weights(row | {"set_low": None, "set_high": None})
        >>> [round(weights[name], 9) for name in ("value", "family_low", "family_high")]
        [4.0, 3.0, 9.0]
    """
    if row["measure"] == "cost_ratio":
        return row
    pairs = (("family_low", "family_high"), ("limit_low", "limit_high"), ("set_low", "set_high"))
    turned = {"value": row["value"], **{a: row.get(b) for low, high in pairs
                                        for a, b in ((low, high), (high, low))}}  # fmt: skip
    if any(share is not None and share <= 0 for share in turned.values()):
        return None
    weights = {name: share and 1 / share - 1 for name, share in turned.items()}
    return {**row, **weights, "measure": "cost_ratio"}


def _what_fits(row: Row, words: Words) -> str:
    """The implied thresholds that fit beside those agreed, in digits that tell them apart."""
    pair, kind = ends(row), words.chance(row["class"])
    if pair is None:
        return f"a {_threshold(row)} {kind} fits; {_band_words(row)} was agreed"
    shown = [chance(_implied(end)) for end in (pair[1], pair[0])]
    agreed = [chance(_implied(row[end])) for end in ("limit_high", "limit_low")]
    if any(one == other for one, other in zip(shown, agreed)):
        shown = [percent(_implied(end)) for end in (pair[1], pair[0])]
        agreed = [percent(_implied(row[end])) for end in ("limit_high", "limit_low")]
    fits = f"anything from {with_article(shown[0])} to {with_article(shown[1])} {kind} fits"
    return f"{fits}; {agreed[0]} to {agreed[1]} was agreed"


def _evidence(row: Row) -> str:
    """How much less or more evidence it takes than was agreed."""
    low, high = float(row["limit_low"]), float(row["limit_high"])
    value = nearest_value(row) or 0.0
    if value > high:
        return f"on {'far ' if high > 0 and value / high >= _FAR else ''}weaker evidence"
    return f"only on {'far ' if value <= 0 or low / value >= _FAR else ''}stronger evidence"


def _threshold(row: Row) -> str | None:
    """A group's implied threshold; the set of them where scores are discrete."""
    if row["value"] is not None:
        return chance(_implied(row["value"]))
    if row.get("set_low") is None:
        return None
    low = "0%" if row["set_high"] is None else chance(_implied(row["set_high"]))
    return f"{low} to {chance(_implied(row['set_low']))}"


def _threshold_span(row: Row) -> str:
    pair = ends(row)
    if pair is None:
        return ""
    return f"{chance(_implied(pair[1]))} to {chance(_implied(pair[0]))}"


def _implied(cost_ratio: float) -> float:
    return 1 / (1 + float(cost_ratio))


def _weight(row: Row) -> str | None:
    """A group's cost ratio; the set of them where scores are discrete."""
    if row["value"] is not None:
        return few(row["value"], beside=ends(row) if "low" in row else None)
    if row.get("set_low") is None:
        return None
    if row["set_high"] is None:
        return f"{few(row['set_low'])} or more"
    return f"anything from {few(row['set_low'])} to {few(row['set_high'])}"


def _others(rows: Sequence[Row], words: Words, number: Any, *, before: str = "") -> str:
    """The other groups with their numbers, those that stand out first, the rest counted."""
    people = [words.people(row["attribute"], row["group"]) for row in rows[1:MOST_NAMED]]
    named = [f"{before}{with_number(who, number(row))}" for who, row in zip(people, rows[1:])]
    more = len(rows) - MOST_NAMED
    if more > 0:
        between = [row["value"] for row in rows[MOST_NAMED:] if row["value"] is not None]
        least = f" {_between(between, number)}" if between else ""
        named.append(f"{more:,} more {'group' if more == 1 else 'groups'}{least}")
    return ("; " if any(map(goes_on, people)) else ", ").join(named)


def _between(values: Sequence[float], number: Any) -> str:
    """The range of those that are only counted."""
    ends_ = [number({"value": value}) for value in (max(values), min(values))]
    ends_ = ends_ if number is _threshold else ends_[::-1]
    same = ends_[0] == ends_[1]
    return f"at {ends_[0]}" if same else f"between {ends_[0]} and {ends_[1]}"


def _weights(rows: Sequence[Row], words: Words) -> str:
    """How one mistake is weighed against the other, group by group, and what was agreed."""
    first = rows[0]
    pair = ends(first)
    span = f" ({few(pair[0], beside=pair)} to {few(pair[1], beside=pair)})" if pair else ""
    miss = words.a_miss("one", first["class"])
    said = (
        f"For {words.people(first['attribute'], first['group'])} {miss} is treated as seriously as "
        f"{_weight(first)} {words.mistakes}{span}"
    )
    others = _others(rows, words, _weight, before="for ")
    band = _band(first)
    return f"{'; '.join(filter(None, (said, others)))}.{f' Agreed: {band}.' if band else ''}"


def _also_outside(rows: Sequence[Row], words: Words) -> str:
    """Who else lies outside: the majority as anybody."""
    outside = [row for row in rows[1:] if row.get("verdict") == OUTSIDE]
    names = [words.people(row["attribute"], row["group"]) for row in outside]
    return f"Outside as well: {listed(names, most=MOST_NAMED)}." if outside else ""


def _band(row: Row) -> str | None:
    low, high = row.get("limit_low"), row.get("limit_high")
    return None if low is None or high is None else f"{agreed_number(low)} to {agreed_number(high)}"


def _band_words(row: Row) -> str | None:
    if row.get("limit_low") is None or row.get("limit_high") is None:
        return None
    return f"{chance(_implied(row['limit_high']))} to {chance(_implied(row['limit_low']))}"


def undefined_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of groups that have no number, nor a set of numbers, and say why."""
    return [row for row in rows if row["value"] is None and row["undefined"] and row["group"]]


def say_undefined(rows: Sequence[Row], words_: Words) -> Said:
    """Which groups have no number that a limit could be held against, and why.

    Examples:
        >>> row = {"measure": "cost_ratio", "attribute": "sex"}
        >>> rows = [row | {"group": name, "undefined": "no score"} for name in ("f", "male")]
        >>> say_undefined(rows, Words()).line
        'The weight of a miss for group f and men is undefined: no score.'
    """
    reasons: dict[str, list[str]] = {}
    for row in rows:
        who = words_.people(row.get("attribute"), row["group"])
        names = reasons.setdefault(row["undefined"], [])
        names += [who] if who not in names else []
    parts = [
        f"for {listed(names, most=MOST_NAMED)} is {why_not(reason)}"
        for reason, names in reasons.items()
    ]
    headline = f"The {words(rows[0]['measure'])} {parts[0]}"
    rest = "; ".join(f"that {part}" for part in parts[1:])
    return Said(
        headline=headline,
        line=f"{headline}{f'; {rest}' if rest else ''}.",
        detail=f"{opening(rest)}." if rest else "",
    )


def say_weights(row: Row, words: Words, given: Sequence[Row] = ()) -> Said | None:
    """A comparison of two groups' cost ratios or implied thresholds, or None for other rows."""
    record = look_up(row["measure"])
    if record.base not in ("cost_ratio", "implied_threshold") or row["reference"] is None:
        return None
    value, pair = nearest_value(row), ends(row)
    if value is None:
        return None
    if row.get("lens") == "labelers" and record.kind == "ratio":
        return _say_labelers_weights(row, words, given)
    attribute = row["attribute"]
    subject = words.subject(attribute, row["group"])
    theirs = words.theirs(attribute, row["reference"])
    act = f"{subject} {words.happens(row['class'], one=words.is_one(attribute, row['group']))}"
    by = {one["group"]: one for one in given if one["measure"] == record.base}
    own, other = by.get(row["group"]), by.get(row["reference"])
    of_costs = record.kind == "ratio"
    weaker = value > 1 if of_costs else value < 0
    claim = f"{act} on {'weaker' if weaker else 'stronger'} evidence than {theirs}"
    if alike(row):
        claim = f"{act} on about as much evidence as {theirs}"
    if open_(row):
        claim = f"the data cannot tell whether {claim}"
    numbers = ""
    shown = [_chances(one, of_costs) for one in (own, other) if one is not None]
    if len(shown) == 2 and own is not None and None not in shown:
        shown = [str(one) for one in shown]
        span = _threshold_span(own) if of_costs else _plain_span(own)
        numbers = (
            f"from {with_article(str(shown[0]))} {words.chance(row['class'])} on"
            f"{f' ({span})' if span else ''} against {shown[1]}"
        )
    if of_costs:
        miss = words.a_miss("one", row["class"])
        weight = f"{miss} weighs {_times(row)} as much{span_words(pair)}"
        if open_(row) and pair is not None:
            weight = f"anything from {two(pair[0])} to {two(pair[1])} times as much weight fits"
    else:
        places = decimals(*(pair or (None, None)), value)
        fits = f" ({gap_range(*pair, places)})" if pair else ""
        weight = f"the implied threshold is {_points(row, places)}{fits}"
    tail = f"{weight}{ending(row, unit=True)}"
    detail = ". ".join(filter(None, (opening(numbers), opening(tail))))
    line = f"{claim}: {f'{numbers}. {opening(tail)}' if numbers else tail}"
    return Said(headline=opening(f"{claim}"), detail=detail, line=opening(line))


def _chances(row: Row, of_costs: bool) -> str | None:
    """A group's implied threshold, or the set of them, from its weights or as it is."""
    weights = row if of_costs else as_weights(row)
    return None if weights is None else _threshold(weights)


def _times(row: Row) -> str:
    """A ratio of weights, or the set of them."""
    if row["value"] is not None:
        return f"{two(row['value'])} times"
    if row["set_high"] is None:
        return f"{two(row['set_low'])} or more times"
    return f"anything from {two(row['set_low'])} to {two(row['set_high'])} times"


def _points(row: Row, places: int) -> str:
    """A gap between thresholds, or the set of them, with its direction.

    Examples:
        >>> gap = {"value": None, "set_low": -0.2, "set_high": -0.05}
        >>> _points(gap, 0), _points(gap | {"value": 0.1}, 0)
        ('anything from 5 to 20 points lower', '10 points higher')
        >>> _points(gap | {"set_high": 0.05}, 0)
        'anything from 20 points lower to 5 points higher'
    """
    if row["value"] is not None:
        return f"{points(row['value'], places=places)} {'lower' if row['value'] < 0 else 'higher'}"
    low, high = float(row["set_low"]), float(row["set_high"])
    if low < 0 < high:
        ends_ = [points(end, places=places) for end in (low, high)]
        return f"anything from {ends_[0]} lower to {ends_[1]} higher"
    near, far = sorted((low, high), key=abs)
    way = "lower" if low < 0 else "higher"
    return f"anything from {100 * abs(near):.{places}f} to {points(far, places=places)} {way}"


def _say_labelers_weights(row: Row, words: Words, given: Sequence[Row]) -> Said:
    """How many times as serious a miss is to labelers for one group as for another."""
    who = "the average labeler treats" if look_up(row["measure"]).variant_of else "labelers treat"
    value, pair, attribute = float(row["value"]), ends(row), row["attribute"]
    times = times_as(value)
    for_, than = (words.people(attribute, row[side]) for side in ("group", "reference"))
    miss = words.a_miss("a", row["class"])
    how = f"as {times} as serious for {for_} as for {than}"
    if times is None:
        how = f"{'more' if value > 1 else 'less'} seriously for {for_} than for {than}"
    if alike(row):
        how = f"about as seriously for {for_} as for {than}"
    claim = f"{who} {miss} {how}"
    if open_(row):
        way = "more" if value > 1 else "less"
        claim = (
            f"the data cannot tell whether {who} {miss} {way} seriously for {for_} than for {than}"
        )
    by = {one["group"]: one for one in given if one["measure"] == "cost_ratio"}
    known = [by[row[side]]["value"] for side in ("group", "reference") if row[side] in by]
    shown = ""
    if len(known) == 2 and None not in known:
        over = " over all labels" if look_up(row["measure"]).variant_of else ""
        shown = f"{few(known[0])} against {few(known[1])} {words.mistakes}{over}, "
    numbers = f"{shown}{two(value)} times as much{span_words(pair)}"
    if open_(row) and pair is not None:
        numbers = f"{shown}anything from {two(pair[0])} to {two(pair[1])} times as much fits"
    tail = f"{numbers}{ending(row)}"
    return Said(headline=opening(claim), detail=opening(tail), line=opening(f"{claim}: {tail}"))


def _plain_span(row: Row) -> str:
    pair = ends(row)
    return f"{chance(pair[0])} to {chance(pair[1])}" if pair else ""
