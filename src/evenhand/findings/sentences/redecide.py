"""What to do about decisions: how many would have to come out otherwise for a limit to be kept.

The reference stays as it is: what is counted are the decisions of the group that lies outside. Of
decisions that are wrong too often the wrong ones are counted, whichever group has them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.decisions.labels import SUMMARY, crossed_values
from evenhand.findings.sentences.agreed import ends, plain_value
from evenhand.findings.sentences.beyond import Amount, critical_of, edge_of, past_limit, span_of
from evenhand.findings.sentences.rates import Share, compared_rates, place
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import plural
from evenhand.stats.beyond import dropped_share, nearest_told
from evenhand.stats.estimate import critical
from evenhand.stats.rates import square_and_add

_OTHERWISE = "would have to come out otherwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goal:
    """A share that has to reach weight × other + shift, and how many cases it is a share of."""

    own: Row
    other: Row | None
    weight: float
    shift: float
    n: float


def decisions_step(lead: Row | None, words: Words, given: Sequence[Row] = ()) -> str:
    """How many of a group's decisions lie between its rate and the limit; nothing elsewhere.

    `given` are the other rows that the finding states: a ratio needs the rates it is made of, a
    summary over strata the stratum to start with.
    """
    record = look_up(lead["measure"] if lead is not None else "")
    if lead is None or record.parts is not None:
        return ""
    rates = compared_rates(lead, given)
    share = Share.of(lead, look_up(_rate(lead, rates)), words)
    if share.among == "decided":
        return _wrong_ones(lead, share, rates)
    if share.does not in ("decided", "left", "right"):
        return ""
    counted = decisions_beyond(lead, rates)
    if counted is None or round(counted[0]) < 1:
        return ""
    repeated = _shared(lead, counted, words) or _enough(lead, counted, words)
    if repeated:
        return repeated
    if lead["stratum"] == SUMMARY:
        within = f" within {words.stratum or 'strata'}"
        said = _of_decisions(counted, lead["n"], share.subject)
        start = _stratum_to_start_with(lead, words, given)
        alike = (
            f"To keep what was agreed{within}, about {said} {_OTHERWISE}, the same share in each."
        )
        return " ".join(filter(None, (alike, start)))
    where = place(lead, words).rstrip(", ")
    said = _of_decisions(counted, lead["n"], " ".join(filter(None, (share.subject, where))))
    between = ""
    if record.kind == "distance":
        # A widest gap has no reference that stays: either side may move.
        between, other = " between these two groups", lead["n_reference"]
        theirs = tuple(count / lead["n"] * other for count in counted)
        turned = replace(share, group=share.reference, reference=share.group)
        said = f"{said}, or {_of_decisions(theirs, other, turned.subject)},"
    return f"To keep what was agreed{between}, about {said} {_OTHERWISE}."


def _rate(lead: Row, rates: Sequence[Row]) -> str:
    """The rate whose decisions a row counts, by its name."""
    record = look_up(lead["measure"])
    return str(rates[0]["measure"]) if rates else record.base or record.name


def _stratum_to_start_with(lead: Row, words: Words, given: Sequence[Row]) -> str:
    """The stratum that a summary owes most to, with its own gap."""
    most = weightiest_stratum(lead, given)
    if most is None:
        return ""
    return f"Start {place(most, words).rstrip(', ')}: {plain_value(most)}."


def weightiest_stratum(lead: Row, found: Sequence[Row]) -> Row | None:
    """The stratum whose gap weighs most in a summary: gap × n·n′ ÷ (n + n′) is the largest."""

    def weight(row: Row) -> float:
        both = float(row["n"]), float(row["n_reference"])
        return (
            float(row["value"]) * both[0] * both[1] / sum(both) * (1 if lead["value"] > 0 else -1)
        )

    known = [
        row
        for row in found
        if row["stratum"] not in (None, SUMMARY)
        and row["measure"] == lead["measure"]
        and None not in (row["value"], ends(row), row["n"], row["n_reference"])
        and min(row["n"], row["n_reference"]) > 0
    ]
    most = max(known, key=weight, default=None)
    return most if most is not None and weight(most) > 0 else None


def _shared(lead: Row, counted: Amount, words: Words) -> str:
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


def _enough(lead: Row, counted: Amount, words: Words) -> str:
    """That what was asked for of the same decisions is enough for this limit too; else nothing."""
    for first, *given in words.told:
        rates = compared_rates(first, given)
        if look_up(first["measure"]).parts is not None or not _same_decisions(first, lead, rates):
            continue
        before = decisions_beyond(first, rates)
        if before is not None and round(counted[0]) <= round(before[0]):
            whose = words.subject(lead["attribute"], lead["group"])
            return (
                f"What is done about decisions on {whose} to keep the other limit counts here too: "
                f"this one asks for about {_about(counted)} of them."
            )
    return ""


def _same_decisions(first: Row, lead: Row, rates: Sequence[Row]) -> bool:
    """Whether two rows ask the same of the same decisions: a gap and a ratio, hits and misses."""
    keys = ("lens", "attribute", "group", "reference", "class", "stratum")
    if any(first.get(key) != lead.get(key) for key in keys):
        return False
    before, now = edge_of(first), edge_of(lead)
    own, other = look_up(_rate(first, rates)), look_up(_rate(lead, ()))
    if before is None or now is None or own.name not in (other.name, other.mirror):
        return False
    # Of a rate and the one that it leaves over, opposite ways are the same.
    same_way = bool(first["value"] > before) == bool(lead["value"] > now)
    return same_way == (own.name == other.name)


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
    return f"{_about(counted)} of the {plural(n, 'decision')} on {whose}"


def _about(counted: Sequence[float]) -> str:
    many, low, high = (round(count) for count in counted)
    # What lies outside lies so by one decision at least.
    return f"{max(many, 1):,} ({span_of(f'{low:,}', f'{max(high, 1):,}')})"


def decisions_beyond(lead: Row, rates: Sequence[Row]) -> Amount | None:
    """How many decisions and between which, or None where that does not follow from the row."""
    n, edge, kind = lead["n"], edge_of(lead), look_up(lead["measure"]).kind
    if not n or edge is None:
        return None
    if kind == "ratio":
        return _of_ratio(lead, rates, edge=edge)
    found = past_limit(lead) if kind in ("gap", "distance", "rate") else None
    return None if found is None else (n * found[0], n * found[1], n * found[2])


def _of_ratio(lead: Row, rates: Sequence[Row], *, edge: float) -> Amount | None:
    """The same of a ratio: the rate lies p − edge × p′ from where it would have to be.

    Both rates are uncertain, so that the interval is one of that difference, and not the ratio's
    own: that one weighs the reference's doubt with the ratio, this one with the limit.
    """
    sides = _sides(lead, rates)
    if sides is None:
        return None
    own, other = (float(rate["value"]) for rate in rates)
    excess = own - edge * other
    span = [float(end) for end in square_and_add(own, sides[0], other, sides[1], weight=edge)]
    near, far = sorted(lead["n"] * (end if excess > 0 else -end) for end in span)
    many = lead["n"] * abs(excess)
    return many, nearest_told(many, near, critical=critical_of(lead)), far


def _sides(lead: Row, rates: Sequence[Row]) -> list[list[float]] | None:
    """The intervals of both rates, as wide as those of the comparison's family."""
    if len(rates) < 2 or ends(lead) is None or lead["low"] is None or lead["high"] is None:
        return None
    if any(rate[name] is None for rate in rates for name in ("value", "low", "high")):
        return None
    wider = critical_of(lead) / critical(float(lead["level"]))
    return [
        [float(rate["value"]) + wider * float(rate[end] - rate["value"]) for end in ("low", "high")]
        for rate in rates
    ]


def _wrong_ones(lead: Row, share: Share, rates: Sequence[Row]) -> str:
    """How many wrong decisions less would do, of the group that has more of them."""
    goal = _goal(lead, rates)
    if goal is None:
        return ""
    if goal.own["group"] != share.group:
        share = replace(share, group=share.reference, reference=share.group)
    counted = wrong_decisions(lead, rates)
    if counted is None or round(counted[0]) < 1:
        return ""
    wrong = goal.n * (1 - float(goal.own["value"]))
    where = place(lead, share.words).rstrip(", ")
    whose = " ".join(filter(None, (share.subject, where)))
    all_ = plural(wrong, "wrong decision")
    return (
        f"To keep what was agreed, about {_about(counted)} of the {all_} on {whose} {_OTHERWISE}."
    )


def wrong_decisions(lead: Row, rates: Sequence[Row]) -> Amount | None:
    """How many wrong decisions less, and between which, bring the lower precision to its goal."""
    goal, sides = _goal(lead, rates), _sides(lead, rates)
    if goal is None:
        return None
    other = 0.0
    limits, other_limits = list(ends(lead) or (0.0, 1.0)), [0.0, 0.0]
    if goal.other is not None:
        if sides is None:
            return None
        first = goal.own is rates[0]
        other = float(goal.other["value"])
        limits, other_limits = sides if first else sides[::-1]
    found = dropped_share(
        float(goal.own["value"]), limits, other, other_limits, weight=goal.weight, shift=goal.shift
    )
    many, near, far = (goal.n * one for one in found)
    if not many > 0:
        return None
    wrong = goal.n * (1 - float(goal.own["value"]))
    return many, nearest_told(many, near, critical=critical_of(lead)), min(far, wrong)


def _goal(lead: Row, rates: Sequence[Row]) -> _Goal | None:
    """Which precision has to rise to what: the lower one of two, or a group's own."""
    edge, kind = edge_of(lead), look_up(lead["measure"]).kind
    if edge is None or not lead["n"]:
        return None
    above = lead["value"] > edge
    if kind == "rate":
        return None if above else _Goal(own=lead, other=None, weight=0.0, shift=edge, n=lead["n"])
    if len(rates) < 2 or not lead["n_reference"]:
        return None
    # A group that lies above has a reference that lies below.
    own, other = (rates[1], rates[0]) if above else (rates[0], rates[1])
    n = lead["n_reference"] if above else lead["n"]
    if kind == "ratio":
        return _Goal(own=own, other=other, weight=1 / edge if above else edge, shift=0.0, n=n)
    return _Goal(own=own, other=other, weight=1.0, shift=-edge if above else edge, n=n)
