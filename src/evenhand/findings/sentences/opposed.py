"""A gap that turns round where like is compared with like: overall and within strata, both said.

What keeps the limit of one of the two breaks the other's, so that whoever chose the limit has to
say first which comparison was meant.
"""

from evenhand.decisions.labels import SUMMARY
from evenhand.findings.sentences.agreed import ending, ends, gap_range, plain_value
from evenhand.findings.sentences.rates import Share
from evenhand.findings.sentences.words import Said, Words
from evenhand.findings.sentences.words import words as measure_words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import decimals, opening, points

DECIDE_WHICH = (
    "Keeping one limit breaks the other: decide first which comparison the agreement is about."
)


def say_opposed(lead: Row, other: Row, words: Words) -> Said:
    """A comparison overall and within strata that says the opposite, in one sentence.

    `lead` is the one that leads, and lies outside its limit.

    Examples:
        >>> row = {"measure": "selection_rate_gap", "attribute": "sex", "class": "1"}
        >>> row |= {"group": "female", "reference": "male", "verdict": "outside", "stratum": None}
        >>> lead = row | {"value": -0.146, "family_low": -0.171, "family_high": -0.121}
        >>> lead |= {"limit_low": -0.05, "limit_high": 0.05}
        >>> within = row | {"value": 0.082, "family_low": 0.05, "family_high": 0.114}
        >>> said = say_opposed(lead, within | {"stratum": SUMMARY}, Words(stratum="department"))
        >>> print(said.line)
        Overall, women get decision '1' 14.6 points less often than men (12.1 to 17.1); among \
people alike in department, 8.2 points more often (5.0 to 11.4); at most 5 was agreed.
    """
    overall, within = (other, lead) if lead["stratum"] == SUMMARY else (lead, other)
    alike = f"among {_nouns(words)} alike in {words.stratum}" if words.stratum else "within strata"
    record = look_up(lead["measure"])
    if record.kind != "gap" or look_up(record.base or "").cells is None:
        people = (words.people(lead["attribute"], lead[key]) for key in ("group", "reference"))
        what = f"{measure_words(lead['measure'])}, {' against '.join(people)}"
        both = f"{plain_value(overall)} overall, {plain_value(within)} {alike}"
        headline = f"{what}: the opposite overall and {alike}"
        detail = f"{both}{ending(lead, unit=True)}"
        return _said(headline, detail, f"{what}: {both}{ending(lead, unit=True)}")
    share = Share.of(overall, look_up(record.base or ""), words)
    rows = overall, within
    places = max(decimals(*(ends(row) or (None, None)), row["value"]) for row in rows)
    sizes = [points(row["value"], places=places) for row in rows]
    spans = [_span(row, places) for row in rows]
    more = [row["value"] > 0 for row in rows]
    often = [f"{'more' if up else 'less'} often" for up in more]
    higher = [f"{size} {'higher' if up else 'lower'}" for size, up in zip(sizes, more)]
    first = share.more(f"{sizes[0]} {often[0]} than", higher=higher[0])
    second = higher[1] if share.does is None else f"{sizes[1]} {often[1]}"
    headline = f"overall, {first}; {alike}, {second}"
    line = f"overall, {first}{spans[0]}; {alike}, {second}{spans[1]}{ending(lead)}"
    fewer = [f"{size} {'more' if up else 'fewer'}" for size, up in zip(sizes, more)]
    detail = f"{fewer[0]}{spans[0]} overall, {fewer[1]}{spans[1]} {alike}{ending(lead)}"
    return _said(headline, detail, line)


def _nouns(words: Words) -> str:
    """What is alike: the items that are decided about, or else people."""
    return words.item[1] if words.item is not None else "people"


def _span(row: Row, places: int) -> str:
    pair = ends(row)
    return f" ({gap_range(*pair, places)})" if pair else ""


def _said(headline: str, detail: str, line: str) -> Said:
    return Said(
        headline=opening(headline),
        detail=opening(detail),
        line=opening(line),
        summary=opening(line),
    )
