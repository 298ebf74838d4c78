"""What to do about a spread over groups: the group that lies furthest from the others, and how
many wrong decisions on it would have to be decided differently while the others stay."""

from collections.abc import Sequence
from math import sqrt

from evenhand.findings.sentences.beyond import (
    Amount,
    coming_back,
    critical_of,
    edge_of,
    span_of,
)
from evenhand.findings.sentences.rates import Share, enough, place
from evenhand.findings.sentences.redecide import DIFFERENTLY, counts_wrong
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import decimals, opening, percent, plural
from evenhand.stats.beyond import nearest_told
from evenhand.stats.estimate import critical


def spread_step(lead: Row | None, words: Words, given: Sequence[Row]) -> str:
    """The group to start with and what it would take there; nothing of any other measure."""
    record = look_up(lead["measure"] if lead is not None else "")
    if lead is None or record.counts != "groups" or record.parts is None:
        return ""
    rates = group_rates(lead, given)
    furthest = furthest_group(rates) if len(rates) == lead["n"] else None
    if furthest is None:
        return ""
    share = Share.of(furthest, look_up(record.parts), words)
    own, mean = float(furthest["value"]), _mean(rates, without=furthest)
    places = decimals(furthest["low"], furthest["high"], own, mean)
    shown = [percent(one, places=places) for one in (own, mean)]
    lies = "lies" if words.is_one(furthest["attribute"], furthest["group"]) else "lie"
    whose = words.subject(furthest["attribute"], furthest["group"])
    first = (
        f"{opening(f'{place(furthest, words)}{whose}')} {lies} furthest from the other groups: "
        f"{shown[0]} against {shown[1]} on average."
    )
    if asks_for_no_spread(lead, words, given):
        return first
    counted = decisions_of_furthest(lead, rates)
    hits_are_wrong = counts_wrong(share.rate, share.class_, words)
    wrong = furthest["n"] * (own if hits_are_wrong else 1 - own)
    if counted is None or not 0.5 <= counted[0] <= wrong or not _changes(share):
        return " ".join(filter(None, (first, coming_back(lead))))
    many, low, high = (f"{round(one):,}" for one in (*counted[:2], min(counted[2], wrong)))
    return (
        f"{first} To keep what was agreed with the others as they are, about {many} "
        f"({span_of(low, high)}) of the {plural(wrong, 'wrong decision')} on {share.subject} "
        f"{DIFFERENTLY}."
    )


def _changes(share: Share) -> bool:
    return share.does in ("decided", "left", "right") and share.among != "decided"


def asks_for_no_spread(lead: Row | None, words: Words, given: Sequence[Row]) -> bool:
    """Whether fewer wrong decisions on the furthest group do not bring it nearer to the others."""
    record = look_up(lead["measure"] if lead is not None else "")
    if lead is None or record.counts != "groups" or record.parts is None:
        return False
    rates = group_rates(lead, given)
    furthest = furthest_group(rates) if len(rates) == lead["n"] else None
    if furthest is None or not _changes(Share.of(furthest, look_up(record.parts), words)):
        return False
    higher = bool(furthest["value"] > _mean(rates, without=furthest))
    return counts_wrong(look_up(record.parts), furthest["class"], words) != higher


def group_rates(lead: Row, given: Sequence[Row]) -> list[Row]:
    """The rates that a spread is taken of."""
    parts = look_up(lead["measure"]).parts
    return [
        one
        for one in given
        if one["measure"] == parts
        and None not in (one["value"], one["low"], one["high"], one["group"], one["n"])
        and one["n"] > 1
    ]


def furthest_group(rates: Sequence[Row]) -> Row | None:
    """The group that lies furthest from the mean of the others, on enough cases."""
    known = [one for one in rates if enough(one)]
    if len(rates) < 2:
        return None
    return max(known, key=lambda one: abs(one["value"] - _mean(rates, without=one)), default=None)


def _mean(rates: Sequence[Row], *, without: Row) -> float:
    others = [float(one["value"]) for one in rates if one is not without]
    return sum(others) / len(others)


def decisions_of_furthest(lead: Row, rates: Sequence[Row]) -> Amount | None:
    """How many decisions of the furthest group bring the spread to its limit; None if all do not.

    With G groups, of which the others have the mean m and the variance v, the variance of all is
    (G − 1)/G·v + (G − 1)/G²·(r − m)². What is judged may be free of noise: that part stays.
    """
    furthest, edge = furthest_group(rates), edge_of(lead)
    if furthest is None or edge is None or lead["value"] < edge or len(rates) != lead["n"]:
        return None
    groups = len(rates)
    others = [one for one in rates if one is not furthest]
    mean = _mean(rates, without=furthest)
    away = float(furthest["value"]) - mean
    values = [float(one["value"]) for one in rates]
    total = sum((value - sum(values) / groups) ** 2 for value in values) / groups
    goal = total - (float(lead["value"]) ** 2 - edge**2)
    left = sum((float(one["value"]) - mean) ** 2 for one in others) / (groups - 1)
    square = groups**2 / (groups - 1) * goal - groups * left
    if square <= 0:
        return None
    near_enough = sqrt(square)
    many = abs(away) - near_enough
    z = critical(float(lead["level"]))
    way = 1 if away > 0 else -1

    def variance(one: Row) -> float:
        return float((one["high"] - one["low"]) / (2 * z)) ** 2

    # By the delta method: the mean of the others moves, and so does how near is near enough.
    slopes = [
        (groups * (float(one["value"]) - mean) / near_enough - way) / (groups - 1) for one in others
    ]
    spread = sum(slope**2 * variance(one) for slope, one in zip(slopes, others))
    half = critical_of(lead) * sqrt(variance(furthest) + spread)
    near = nearest_told(many, many - half, critical=critical_of(lead))
    n = float(furthest["n"])
    return n * many, n * near, n * min(many + half, abs(away))
