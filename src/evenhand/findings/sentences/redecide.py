"""What to do about decisions: how many would have to come out otherwise for a limit to be kept.

The reference stays as it is: what is counted are the decisions of the group that lies outside.
"""

from collections.abc import Sequence
from dataclasses import replace

from evenhand.decisions.labels import SUMMARY, crossed_values
from evenhand.findings.sentences.agreed import ends
from evenhand.findings.sentences.rates import Share, compared_rates, place
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.stats.estimate import critical
from evenhand.stats.power import family_critical
from evenhand.stats.rates import square_and_add

Counted = tuple[float, float, float]
_ENDS = ("value", "low", "high", "family_low", "family_high", "level", "limit_low", "limit_high")


def decisions_step(lead: Row | None, words: Words, given: Sequence[Row] = ()) -> str:
    """How many of a group's decisions lie between its rate and the limit; nothing elsewhere.

    `given` are the other rows that the finding states: a ratio needs the rates it is made of.
    """
    record = look_up(lead["measure"] if lead is not None else "")
    if lead is None or record.parts is not None or lead["stratum"] == SUMMARY:
        return ""
    rates = compared_rates(lead, given)
    name = rates[0]["measure"] if rates else record.base or ""
    share = Share.of(lead, look_up(name), words)
    if share.does not in ("decided", "left", "right") or share.among == "decided":
        return ""
    counted = decisions_beyond(lead, rates)
    if counted is None or round(counted[0]) < 1:
        return ""
    shared = _shared(lead, counted, words)
    if shared:
        return shared
    where = place(lead, words).rstrip(", ")
    said = _of_decisions(counted, lead["n"], " ".join(filter(None, (share.subject, where))))
    between = ""
    if record.kind == "distance":
        # A widest gap has no reference that stays: either side may move.
        between, other = " between these two groups", lead["n_reference"]
        theirs = tuple(count / lead["n"] * other for count in counted)
        turned = replace(share, group=share.reference, reference=share.group)
        said = f"{said}, or {_of_decisions(theirs, other, turned.subject)},"
    return f"To keep what was agreed{between}, about {said} would have to come out otherwise."


def _shared(lead: Row, counted: Counted, words: Words) -> str:
    """That most of it was said of a part of these people, or of more of them; else nothing."""
    now = f"{lead['n']:,.0f}", words.subject(lead["attribute"], lead["group"])
    for first, *given in words.told:
        before = decisions_beyond(first, compared_rates(first, given))
        if before is None or not _alike(first, lead):
            continue
        then = f"{first['n']:,.0f}", words.subject(first["attribute"], first["group"])
        here = "what is done about those counts here too."
        if _within(first, lead) and counted[1] <= before[0] <= counted[2]:
            return f"Of the {now[0]} decisions on {now[1]}, {then[0]} are on {then[1]}: {here}"
        if _within(lead, first) and counted[1] <= before[0] * lead["n"] / first["n"] <= counted[2]:
            return (
                f"The {now[0]} decisions on {now[1]} are among the {then[0]} on {then[1]}: {here}"
            )
    return ""


def _alike(row: Row, other: Row) -> bool:
    return all(row[name] == other[name] for name in ("measure", "class", "stratum"))


def _within(part: Row, whole: Row) -> bool:
    """Whether both groups of a row are crossed ones within those of another: Black men, Black."""
    columns = str(part["attribute"]).split("*"), str(whole["attribute"]).split("*")
    for side in ("group", "reference"):
        own, other = (crossed_values(str(row[side])) for row in (part, whole))
        if len(own) != len(columns[0]) or len(other) != len(columns[1]):
            return False
        if not set(zip(columns[1], other)) < set(zip(columns[0], own)):
            return False
    return True


def _of_decisions(counted: Sequence[float], n: float, whose: str) -> str:
    # What lies outside lies so by one decision at least.
    many, low, high = (max(round(count), 1) for count in counted)
    return f"{many:,} ({low:,} to {high:,}) of the {n:,.0f} decisions on {whose}"


def decisions_beyond(lead: Row, rates: Sequence[Row]) -> Counted | None:
    """How many decisions and between which, or None where that does not follow from the row."""
    pair, n, record = ends(lead), lead["n"], look_up(lead["measure"])
    if pair is None or not n or None in (lead["value"], lead["limit_low"], lead["limit_high"]):
        return None
    above = lead["value"] > lead["limit_high"]
    edge = float(lead["limit_high"] if above else lead["limit_low"])
    if record.kind == "ratio":
        return _of_ratio(lead, rates, edge=edge)
    if record.kind not in ("gap", "distance"):
        return None
    near, far = sorted(n * (end - edge if above else edge - end) for end in pair)
    return n * abs(lead["value"] - edge), near, far


def _of_ratio(lead: Row, rates: Sequence[Row], *, edge: float) -> Counted | None:
    """The same of a ratio: the rate lies p − edge × p′ from where it would have to be.

    Both rates are uncertain, so that the interval is one of that difference, and not the ratio's
    own: that one weighs the reference's doubt with the ratio, this one with the limit.
    """
    if len(rates) < 2 or any(lead[name] is None for name in _ENDS):
        return None
    if any(rate[name] is None for rate in rates for name in ("value", "low", "high")):
        return None
    z = critical(float(lead["level"]))
    numbers = {name: float(lead[name]) for name in ("low", "high", "family_low", "family_high")}
    wider = float(family_critical(**numbers, z=z, on_log=True)) / z
    sides = [
        [float(rate["value"]) + wider * float(rate[end] - rate["value"]) for end in ("low", "high")]
        for rate in rates
    ]
    own, other = (float(rate["value"]) for rate in rates)
    excess = own - edge * other
    span = [float(end) for end in square_and_add(own, sides[0], other, sides[1], weight=edge)]
    near, far = sorted(lead["n"] * (end if excess > 0 else -end) for end in span)
    return lead["n"] * abs(excess), near, far
