"""What to do about scores: how many more pairs to put in order, and how to read them rightly."""

from math import exp

from evenhand.findings.sentences.agreed import ends, two
from evenhand.findings.sentences.beyond import edge_of, past_limit, span_of
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import decimals, percent

_FIXED_CUT = "Their order stays, and decisions at a fixed cut change."


def ranking_step(lead: Row | None, words: Words) -> str:
    """How many more of a hundred pairs would have to be put in order, for whom it is done worse."""
    record = look_up(lead["measure"] if lead is not None else "")
    if lead is None or (record.base or record.name) != "auc":
        return ""
    found = past_limit(lead)
    above = edge_of(lead) is not None and lead["value"] > edge_of(lead)
    if found is None or (above and record.kind == "rate"):
        return ""
    worse = lead["reference"] if above else lead["group"]
    places = decimals(found[1], found[2], found[0])
    many, near, far = (f"{100 * one:.{places}f}" for one in found)
    who = words.people(lead["attribute"], worse)
    return (
        f"To keep what was agreed, about {many} ({span_of(near, far)}) more of every 100 pairs "
        f"would have to be put in the right order for {who}. No cut does that: give the model more "
        "to go by there, such as better features or more labels."
    )


def calibration_step(lead: Row | None, words: Words) -> str:
    """How the scores of a group would have to be read, for them to say what is the case.

    Examples:
        >>> row = {"measure": "calibration_slope", "value": 0.5, "low": 0.45, "high": 0.55}
        >>> row |= {"family_low": 0.45, "family_high": 0.55, "limit_low": 0.8, "limit_high": 1.25}
        >>> print(calibration_step(row | {"attribute": "sex", "group": "male"}, Words()))
        Recalibrate the scores of men: multiply their log-odds by 0.50 (0.45 to 0.55). Their \
order stays, and decisions at a fixed cut change.
    """
    if lead is None or lead["measure"] not in ("calibration_intercept", "calibration_slope"):
        return ""
    found, edge, pair = past_limit(lead), edge_of(lead), ends(lead)
    if found is None or edge is None or pair is None:
        return ""
    way = 1 if lead["value"] > edge else -1
    value, low, high = float(lead["value"]), *sorted(edge + way * one for one in found[1:])
    who = words.people(lead["attribute"], lead["group"])
    if lead["measure"] == "calibration_slope":
        by = f"{two(value)} ({two(low)} to {two(high)})"
        return f"Recalibrate the scores of {who}: multiply their log-odds by {by}. {_FIXED_CUT}"
    shares = [1 / (1 + exp(-one)) for one in (value, low, high)]
    places = decimals(shares[1], shares[2], shares[0])
    is_, first, last = (percent(one, places=places) for one in shares)
    return (
        f"Recalibrate the scores of {who}: where they say 50%, it is {is_} ({first} to {last}). "
        f"{_FIXED_CUT}"
    )
