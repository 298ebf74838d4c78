"""What the data cannot tell because the truth is known unequally often, in words.

The claim that would be made is said as a question, and in the place of its numbers stands whose
truth is known how often.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.findings.limits import NOT_ASSESSED, is_unreviewed
from evenhand.findings.sentences.agreed import limit_words
from evenhand.findings.sentences.rates import place
from evenhand.findings.sentences.words import Said, Words
from evenhand.lenses.measures import look_up, nearest_value
from evenhand.lenses.rows import UNEQUALLY_KNOWN, Row
from evenhand.speech import opening, percent

Say = Callable[[Row, Words, Sequence[Row]], Said]
# Beside rates of decisions, what two groups' numbers are asked about as a question.
_ASKED = frozenset(
    {"auc", "cost_ratio", "implied_threshold", "criterion", "separation", "prevalence"}
)
_POINTS = 5


def say_unreviewed(
    row: Row, words: Words, given: Sequence[Row], *, say: Say, label: str
) -> Said | None:
    """A row that is withheld because of what was reviewed, or None for any other row.

    `say` says a row that the data leave open, `label` names one that nobody asks about.
    """
    if not is_unreviewed(row):
        return None
    headline = opening(f"{place(row, words)}the data cannot tell the {label}")
    if _is_asked(row):
        headline = say(_left_open(row), words, given).headline
    agreed = limit_words(row, unit=True)
    why = f"{known_words(row, words)}.{f' {opening(agreed)}.' if agreed else ''}"
    return Said(headline=headline, detail=opening(why), line=f"{headline}: {why}")


def known_words(row: Row, words: Words) -> str:
    """Whose truth is known how often, on the side of the decision where that differs most.

    Examples:
        >>> keys = ("attribute", "group", "reference", "class", "stratum", "over_groups")
        >>> row = dict(zip(keys, ("sex", "female", "male", "1", None, False)))
        >>> row |= {"lens": "statistical", "measure": "accuracy_gap"}
        >>> known = row | {"of": "1", "decided": False, "where": None, "who": "female"}
        >>> known |= {"whom": "male", "shares": [0.2, 0.5]}
        >>> words = Words.of(charter=None, roles={}, groups=[],
        ...                  details={"statistical": {"positive": "1", "known_shares": [known]}})
        >>> known_words(row, words)
        "the truth is known for 20% of women and 50% of men who do not get decision '1'"
    """
    known = words.shares_known(row)
    if known is None:
        return UNEQUALLY_KNOWN
    where = place({"stratum": known["where"]}, words) if row["stratum"] != known["where"] else ""
    whose = _of_sides if known["whom"] is None else _of_groups
    return f"{where}{whose(row['attribute'], known, words)}"


def _of_groups(attribute: str | None, known: Mapping[str, Any], words: Words) -> str:
    """Of two groups, on one side of the decision."""
    one, other = known["who"], known["whom"]
    shares = _shares(known["shares"])
    things = words.of_things(attribute, one)
    happens = words.happens(known["of"], not_=not known["decided"])
    side = f"{'that' if things else 'who'} {happens}"
    if things or any(words.has_clause(attribute, name) for name in (one, other)):
        noun = words.items[1] if words.item is not None else "those"
        mine, theirs = (words.theirs(attribute, name) for name in (one, other))
        known_of = f"{shares[0]} of {mine} and {shares[1]} of {theirs}"
        return f"of {noun} {side}, the truth is known for {known_of}"
    mine, theirs = words.subject(attribute, one), words.theirs(attribute, other)
    return f"the truth is known for {shares[0]} of {mine} and {shares[1]} of {theirs} {side}"


def _of_sides(attribute: str | None, known: Mapping[str, Any], words: Words) -> str:
    """Of one group, on both sides of the decision."""
    shares = _shares(known["shares"])
    whose = words.subject(attribute, known["who"])
    who = "that" if words.of_things(attribute, known["who"]) else "who"
    did, did_not = (f"{who} {words.happens(known['of'], not_=no)}" for no in (False, True))
    return (
        f"of {whose}, the truth is known for {shares[0]} of those {did} and {shares[1]} of those "
        f"{did_not}"
    )


def _shares(shares: Sequence[float]) -> list[str]:
    """Two shares, with a decimal where whole percentages would not show that they are unequal.

    Examples:
        >>> _shares([0.2, 0.5]), _shares([0.946, 1.0])
        (['20%', '50%'], ['94.6%', '100.0%'])
    """
    whole = [round(100 * share) for share in shares]
    places = 0 if abs(whole[0] - whole[1]) > _POINTS else 1
    return [percent(share, places=places) for share in shares]


def _is_asked(row: Row) -> bool:
    """Whether there is a question that a row would answer, and not a number alone."""
    record = look_up(row["measure"])
    if record.parts is not None:
        return record.counts == "classes"
    compared = record.kind in ("gap", "ratio") and row["reference"] is not None
    return compared and (record.base in _ASKED or look_up(record.base or "").cells is not None)


def _left_open(row: Row) -> dict[str, Any]:
    """The row as if its interval left open which way it points, and nothing had been agreed."""
    still = float(look_up(row["measure"]).neutral or 0.0)
    apart = abs((nearest_value(row) or 0.0) - still)
    ends = {"family_low": still - apart, "family_high": still + apart}
    agreed = {"limit_low": None, "limit_high": None, "verdict": NOT_ASSESSED}
    return {**row, **ends, **agreed, "unjudged": None}
