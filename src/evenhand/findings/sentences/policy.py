"""What an error-rate limit would ask for where mistakes are weighed as agreed: a policy's question.

Where prevalence or evidence differ, one weight of the two mistakes gives unequal error rates.
Such a gap is no fault of engineering: the limit and the chosen cost ratio cannot both hold.
"""

from collections.abc import Sequence

import numpy as np

from evenhand.charter.conflicts import rate_band
from evenhand.findings.limits import WITHIN
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row, Rows
from evenhand.speech import chance, few
from evenhand.stats.special import ndtri

_RATES = ("true_positive_rate", "false_positive_rate")


def policy_rows(rows: Rows, lead: Row) -> list[int]:
    """Where the rows stand that make a gap the policy's: cost ratios kept, and both error rates.

    Of the group and of the reference in turn; none where the gap is not of an error rate, or a
    cost ratio is not shown to be within its band.
    """
    limits = (lead["limit_low"], lead["limit_high"])
    if lead["lens"] != "statistical" or None in limits or lead["stratum"] is not None:
        return []
    if rate_band(lead["measure"], limits, 0.5) is None:
        return []
    found: list[int] = []
    for group in (lead["group"], lead["reference"]):
        mine = (rows["attribute"] == lead["attribute"]) & (rows["group"] == group)
        mine &= np.array([name is None for name in rows["labeler"]], dtype=bool)
        mine &= np.array([name is None for name in rows["stratum"]], dtype=bool)
        costs = np.flatnonzero(mine & (rows["measure"] == "cost_ratio"))
        kept = costs.size and all(rows["verdict"][i] == WITHIN for i in costs)
        rates = [
            np.flatnonzero(
                mine
                & (rows["measure"] == rate)
                & (rows["lens"] == lead["lens"])
                & (rows["class"] == lead["class"])
                & np.isfinite(rows["value"])
            )
            for rate in _RATES
        ]
        if not kept or any(not places.size for places in rates):
            return []
        found += [int(costs[0]), *(int(places[0]) for places in rates)]
    return found


def say_policy(lead: Row, rows: Sequence[Row], words: Words) -> str:
    """That the limit and the chosen weights cannot both hold, and what the limit would need.

    Examples:
        >>> lead = {"measure": "false_negative_rate_gap", "limit_low": -0.05, "limit_high": 0.05}
        >>> lead |= {"group": "f", "reference": "m", "class": "1", "attribute": "sex"}
        >>> band = {"limit_low": 3.2, "limit_high": 5.0, "measure": "cost_ratio"}
        >>> rows = [band | {"value": 4.0}, {"value": 0.724, "n": 100},
        ...         {"value": 0.08, "n": 900}, band | {"value": 4.1},
        ...         {"value": 0.841, "n": 200}, {"value": 0.159, "n": 800}]
        >>> for part in say_policy(lead, rows, Words()).split(". "):
        ...     print(part)
        The two mistakes are weighed as agreed for both (4.0 and 4.1), but 10% of group f have \
truth '1' and 20% of group m: that alone makes error rates unequal
        For the limit to hold, one missed '1' would have to weigh as much as 6.2 wrong ones for \
group f, or 2.4 for group m.
    """
    mine, theirs = rows[:3], rows[3:6]
    attribute = lead["attribute"]
    people = [words.people(attribute, lead[side]) for side in ("group", "reference")]
    shares = [_prevalence(side) for side in (mine, theirs)]
    needs = [
        _needed(lead, mine, theirs, turned=False),
        _needed(lead, theirs, mine, turned=True),
    ]
    kept = f"{few(mine[0]['value'])} and {few(theirs[0]['value'])}"
    first = f"The two mistakes are weighed as agreed for both ({kept})"
    if all(share is not None for share in shares):
        own, other = (chance(float(share or 0)) for share in shares)
        first += (
            f", but {own} of {words.subject(attribute, lead['group'])} "
            f"{words.is_true(lead['class'])} and {other} of "
            f"{words.theirs(attribute, lead['reference'])}: that alone makes error rates unequal"
        )
    asked = [(need, who) for need, who in zip(needs, people) if need is not None]
    weigh = ""
    if asked:
        miss = words.a_miss("one", lead["class"])
        much = ", or ".join(
            f"{few(need)}{f' {words.mistakes}' if i == 0 else ''} for {who}"
            for i, (need, who) in enumerate(asked)
        )
        weigh = f" For the limit to hold, {miss} would have to weigh as much as {much}."
    return f"{first}.{weigh}"


def _prevalence(side: Sequence[Row]) -> float | None:
    positives, negatives = side[1]["n"], side[2]["n"]
    if not positives or not negatives:
        return None
    return float(positives) / (float(positives) + float(negatives))


def _needed(lead: Row, one: Sequence[Row], other: Sequence[Row], *, turned: bool) -> float | None:
    """The cost ratio with which one group would keep the limit while the other stays as it is."""
    share, theirs = _prevalence(one), _prevalence(other)
    hit, alarm = float(one[1]["value"]), float(one[2]["value"])
    if share is None or theirs is None or not (0 < hit < 1 and 0 < alarm < 1):
        return None
    if look_up(lead["measure"]).kind == "ratio" and not lead["limit_low"] > 0:
        return None
    rates = {"true_positive_rate": other[1]["value"], "false_positive_rate": other[2]["value"]}
    rates["false_negative_rate"] = 1 - rates["true_positive_rate"]
    rates["true_negative_rate"] = 1 - rates["false_positive_rate"]
    rates["selection_rate"] = theirs * other[1]["value"] + (1 - theirs) * other[2]["value"]
    record = look_up(lead["measure"])
    low, high = float(lead["limit_low"]), float(lead["limit_high"])
    if turned:
        low, high = (-high, -low) if record.kind == "gap" else (1 / high, 1 / low)
    band = rate_band(lead["measure"], (low, high), float(rates[str(record.base)]))
    chosen = float(np.sqrt(one[0]["limit_low"] * one[0]["limit_high"]))
    if band is None:
        return None
    from evenhand.stats.thresholds.required import required_cost_ratio

    found = required_cost_ratio(
        band[0],
        low=band[1],
        high=band[2],
        prevalence=share,
        separation=float(ndtri(hit) - ndtri(alarm)),
        chosen=chosen,
    )
    # A weight inside its band would do: the rates are not those of one clean cut.
    inside = one[0]["limit_low"] <= found.nearest <= one[0]["limit_high"]
    return None if inside or not np.isfinite(found.nearest) else float(found.nearest)
