"""What to do about decisions: how many wrong ones would have to be decided differently.

Only wrong decisions on the group that is worse off are counted: nobody is advised to make more
mistakes, or to change decisions of which nobody knows whether they are right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evenhand.decisions.labels import OVERALL, SUMMARY, crossed_values
from evenhand.findings.sentences.agreed import ends, plain_value
from evenhand.findings.sentences.beyond import Amount, critical_of, edge_of, past_limit, span_of
from evenhand.findings.sentences.rates import Share, both_rates, compared_rates, place
from evenhand.findings.sentences.words import Words
from evenhand.lenses.kinds import Measure
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import plural
from evenhand.stats.beyond import dropped_share, nearest_told
from evenhand.stats.estimate import critical
from evenhand.stats.rates import square_and_add

DIFFERENTLY = "would have to be decided differently"
_GROUP, _REFERENCE = "group", "reference"
_CASES = {_GROUP: "n", _REFERENCE: "n_reference"}
_ROUNDING = 1e-9
_WRONG = frozenset({"false_positive", "false_negative"})
# The mistake that is in the favour of the person decided about.
_IN_FAVOUR = {"benefit": "false_positive", "burden": "false_negative"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goal:
    """A share that has to reach weight × other + shift, and how many cases it is a share of."""

    own: Row
    other: Row | None
    weight: float
    shift: float
    n: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """How many of the wrong decisions on the worse-off side a limit asks to decide differently."""

    share: Share
    side: str
    wrong: float
    amount: Amount

    @property
    def subject(self) -> tuple[str | None, str | None]:
        """The rate that is counted and whose: the same for a rate and the one it leaves over."""
        name = min(filter(None, (self.share.rate.name, self.share.rate.mirror)))
        return name, self.share.group


def counts_wrong(rate: Measure, class_: str | None, words: Words) -> bool | None:
    """Whether a rate counts wrong decisions, or right ones; None where neither can be advised on.

    Which of the decisions that a selection rate counts are right it does not say. A mistake in the
    favour of the person decided about harms nobody of the group that it is made on.

    Examples:
        >>> names = ("false_positive_rate", "true_positive_rate", "selection_rate")
        >>> [counts_wrong(look_up(name), "1", Words()) for name in names]
        [True, False, None]
        >>> benefit = Words(meaning={"1": "benefit"})
        >>> [counts_wrong(look_up(name), "1", benefit) for name in names]
        [None, False, None]
    """
    if rate.cells is None or not rate.cells.needs_truth:
        return None
    cases = frozenset(rate.cells.cases)
    wrong, hits = cases & _WRONG, frozenset(rate.cells.hits)
    in_favour = _IN_FAVOUR.get(words.meaning.get(str(class_), ""))
    if wrong == {in_favour} or wrong not in (hits, cases - hits):
        return None
    return wrong == hits


def comparison(lead: Row, rates: Sequence[Row] = ()) -> tuple[object, ...]:
    """Whose decisions of which kind a row compares, whichever way and in whatever form."""
    rate = look_up(_rate(lead, rates))
    name = min(filter(None, (rate.name, rate.mirror)), default="")
    pair = frozenset((lead["group"], lead["reference"]))
    return lead.get("lens"), lead["attribute"], lead["class"], name, pair


def worse_off(lead: Row, words: Words, given: Sequence[Row] = ()) -> str | None:
    """The side, group or reference, whose wrong decisions a limit asks to decide differently.

    That is the side that has more of them, whichever lies outside: to ask the other one for more
    mistakes would keep the limit too. None where no fewer mistakes would keep it, or where they
    would break the limit of the same comparison within strata.
    """
    record, edge, rates = look_up(lead["measure"]), edge_of(lead), compared_rates(lead, given)
    wrong = counts_wrong(look_up(_rate(lead, rates)), lead["class"], words)
    if edge is None or wrong is None or comparison(lead, rates) in words.turned:
        return None
    above = bool(lead["value"] > edge)
    if record.kind == "rate":
        return _GROUP if above == wrong else None
    if record.neutral is None or (lead["value"] > record.neutral) != above:
        return None
    higher = above
    if record.kind == "distance":
        both = both_rates(lead, given)
        if both is None:
            return None
        higher = both[0] > both[1]
    side = _GROUP if higher == wrong else _REFERENCE
    # Of people overall the group itself is a part.
    return None if side == _REFERENCE and lead["reference"] == OVERALL else side


def asks_for_none(lead: Row | None, words: Words, given: Sequence[Row] = ()) -> bool:
    """Whether a row speaks of decisions and yet none of them can be advised to be changed."""
    if lead is None or look_up(lead["measure"]).parts is not None or edge_of(lead) is None:
        return False
    share = Share.of(lead, look_up(_rate(lead, compared_rates(lead, given))), words)
    return (_changes(share) or share.among == "decided") and worse_off(lead, words, given) is None


def undone(lead: Row, words: Words, given: Sequence[Row] = ()) -> Undone | None:
    """How many wrong decisions less keep a limit, and whose; None where no count can be told."""
    side = worse_off(lead, words, given)
    rates = compared_rates(lead, given)
    share = Share.of(lead, look_up(_rate(lead, rates)), words)
    decided = share.among == "decided"
    if side is None or look_up(lead["measure"]).parts is not None:
        return None
    if not (decided or _changes(share)):
        return None
    counted = wrong_decisions(lead, rates) if decided else decisions_beyond(lead, rates, side=side)
    wrong = None if counted is None else _wrong(lead, words, given, side, counted)
    if counted is None or wrong is None or round(counted[0]) < 1:
        return None
    if side == _REFERENCE:
        share = replace(share, group=share.reference, reference=share.group)
    many, near, far = counted
    return Undone(share=share, side=side, wrong=wrong, amount=(many, near, min(far, wrong)))


def _changes(share: Share) -> bool:
    """Whether a rate changes with decisions while its cases stay the same."""
    return share.does in ("decided", "left", "right") and share.among != "decided"


def _wrong(
    lead: Row, words: Words, given: Sequence[Row], side: str, counted: Amount
) -> float | None:
    """How many wrong decisions there are on a side; None where fewer than counted, or unknown."""
    rate = look_up(_rate(lead, compared_rates(lead, given)))
    n, hits_are_wrong = lead[_CASES[side]], counts_wrong(rate, lead["class"], words)

    def wrong(share: float) -> float:
        return share if hits_are_wrong else 1 - share

    if lead["stratum"] == SUMMARY:
        # The same share of decisions moves in each stratum: each must have as many wrong ones.
        strata = list(rates_within(lead, given, side))
        known = sum(one["n"] for one in strata) == n
        enough = all(wrong(one["value"]) * n >= counted[0] for one in strata)
        return sum(wrong(one["value"]) * one["n"] for one in strata) if known and enough else None
    alone = look_up(lead["measure"]).kind == "rate"
    both = (lead["value"], lead["value"]) if alone else both_rates(lead, given)
    all_ = 0.0 if both is None else n * wrong(float(both[side == _REFERENCE]))
    return all_ if counted[0] <= all_ * (1 + _ROUNDING) else None


def rates_within(lead: Row, found: Sequence[Row], side: str) -> Iterator[Row]:
    """The rates of one side of a summary over strata, stratum by stratum."""
    base = look_up(lead["measure"]).base
    for row in found:
        within = row.get("stratum") not in (None, SUMMARY) and row["measure"] == base
        if within and row["group"] == lead[side] and row["value"] is not None:
            yield row


def decisions_step(lead: Row | None, words: Words, given: Sequence[Row] = ()) -> str:
    """How many wrong decisions less keep a limit; nothing where no such number is advice.

    `given` are the other rows that the finding states: the rates that a comparison is made of, and
    for a summary over strata those within each and the stratum to start with.
    """
    if lead is None:
        return ""
    counted = undone(lead, words, given)
    start = ""
    if lead["stratum"] == SUMMARY:
        share = Share.of(lead, look_up(_rate(lead, ())), words)
        start = _stratum_to_start_with(lead, words, given) if _changes(share) else ""
    if counted is None:
        return start
    repeated = _shared(lead, counted, words) or _enough(lead, counted, words)
    if repeated:
        return repeated
    said = f"about {_about(counted.amount)} of the {_wrong_ones(counted)}"
    if lead["stratum"] == SUMMARY:
        within = f" within {words.stratum or 'strata'}"
        alike = "the same share of all decisions on them in each"
        return _joined(f"To keep what was agreed{within}, {said} {DIFFERENTLY}, {alike}.", start)
    where = place(lead, words).rstrip(", ")
    between = " between these two groups" if look_up(lead["measure"]).kind == "distance" else ""
    return f"To keep what was agreed{between}, {_joined(said, where)} {DIFFERENTLY}."


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _wrong_ones(counted: Undone) -> str:
    """The wrong decisions on a side, with how many there are."""
    return f"{plural(counted.wrong, 'wrong decision')} on {counted.share.subject}"


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


def _shared(lead: Row, counted: Undone, words: Words) -> str:
    """That most of it was said of a part of these people, or of more of them; else nothing."""
    _, near, far = counted.amount
    here = "what is done about those counts here too."
    for first, *given in words.told:
        before = undone(first, words, given)
        if before is None or before.side != counted.side or not _alike(first, lead):
            continue
        then = f"{before.wrong:,.0f}", words.subject(before.share.attribute, before.share.group)
        now = _wrong_ones(counted)
        if _within(first, lead) and near <= before.amount[0] <= far:
            return f"Of the {now}, {then[0]} are on {then[1]}: {here}"
        part = before.amount[0] * counted.wrong / before.wrong
        if _within(lead, first) and near <= part <= far:
            return f"The {now} are among the {then[0]} on {then[1]}: {here}"
    return ""


def _enough(lead: Row, counted: Undone, words: Words) -> str:
    """That what was asked for of the same decisions is enough for this limit too; else nothing."""
    keys = ("lens", "attribute", "group", "reference", "class", "stratum")
    for first, *given in words.told:
        before = undone(first, words, given)
        if before is None or before.subject != counted.subject:
            continue
        alike = all(first.get(key) == lead.get(key) for key in keys)
        if alike and round(counted.amount[0]) <= round(before.amount[0]):
            return (
                f"What is done about wrong decisions on {counted.share.subject} to keep the other "
                f"limit counts here too: this one asks for about {_about(counted.amount)} of them."
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


def _about(counted: Sequence[float]) -> str:
    many, low, high = (round(count) for count in counted)
    # What lies outside lies so by one decision at least.
    return f"{max(many, 1):,} ({span_of(f'{low:,}', f'{max(high, 1):,}')})"


def decisions_beyond(lead: Row, rates: Sequence[Row], *, side: str = _GROUP) -> Amount | None:
    """How many decisions on a side and between which; None where that does not follow."""
    n, edge, kind = lead[_CASES[side]], edge_of(lead), look_up(lead["measure"]).kind
    if not n or edge is None:
        return None
    if kind == "ratio":
        return _of_ratio(lead, rates, edge=edge, side=side)
    found = past_limit(lead) if kind in ("gap", "distance", "rate") else None
    return None if found is None else (n * found[0], n * found[1], n * found[2])


def _of_ratio(lead: Row, rates: Sequence[Row], *, edge: float, side: str) -> Amount | None:
    """The same of a ratio: the rate lies p − edge × p′ from where it would have to be.

    Both rates are uncertain, so that the interval is one of that difference, and not the ratio's
    own: that one weighs the reference's doubt with the ratio, this one with the limit. Seen from
    the reference, the ratio and its limit are turned over.
    """
    sides = _sides(lead, rates)
    if sides is None or not edge > 0:
        return None
    own, other = (float(rate["value"]) for rate in rates)
    if side == _REFERENCE:
        own, other, edge, sides = other, own, 1 / edge, sides[::-1]
    excess, n = own - edge * other, lead[_CASES[side]]
    span = [float(end) for end in square_and_add(own, sides[0], other, sides[1], weight=edge)]
    near, far = sorted(n * (end if excess > 0 else -end) for end in span)
    many = n * abs(excess)
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
