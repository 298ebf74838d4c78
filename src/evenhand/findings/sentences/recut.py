"""Who has which cut today, and which cut of its own an audit showed to be within for a group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from evenhand.findings.limits import WITHIN
from evenhand.findings.sentences.crossed import goes_on
from evenhand.findings.sentences.words import Words, possessive
from evenhand.lenses.rows import Row
from evenhand.speech import listed, opening

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """The cut that a group has today and those of everybody else, in words.

    `who` are its people, `whose` is its cut, `theirs` stands in its place; `beside` goes on with
    the others' cuts, and `shared` says that all have one.
    """

    who: str
    whose: str
    theirs: str
    own: str
    beside: str
    shared: bool


def cut_step(lead: Row, words: Words, details: Mapping[str, Any]) -> str:
    """The cut that keeps what was agreed, where an audit with it says so, and today's cuts.

    Empty where a group's cut is not known, as when it has several.

    Examples:
        >>> groups = [{"group": "f", "threshold": 0.35}, {"group": "male", "threshold": 0.6}]
        >>> details = {"attributes": [{"attribute": "sex", "groups": groups}]}
        >>> lead, words = {"attribute": "sex", "group": "f"}, Words()
        >>> print(cut_step(lead, words, details))
        Group f's cut is 0.35 today, everybody else's 0.60.
        >>> cut = lead | {"threshold": 0.64, "verdict": "within"}
        >>> print(cut_step(lead, words, details | {"audited_cuts": [cut]}))
        A cut of 0.64 for group f would be within what was agreed (audited again with it); today \
that group's is 0.35, everybody else's 0.60.
    """
    attribute, group = lead["attribute"], lead["group"]
    cuts = _cuts_today(details, attribute)
    own = cuts.pop(group, None)
    if own is None:
        return ""
    tried = [
        one
        for one in details.get("audited_cuts") or []
        if (one["attribute"], one["group"]) == (attribute, group)
    ]
    cut = next((one["threshold"] for one in tried if one["verdict"] == WITHIN), None)
    # Of everybody else nothing is said unless it is known of all of them.
    others = {name: one for name, one in cuts.items() if one is not None}
    others = others if len(others) == len(cuts) else {}
    places = _places([own, *others.values()], audited=cut)
    today = _today(lead, words, own, others, places)
    if cut is None:
        return _without(today, tried=bool(tried))
    now = f"today {today.theirs} is {today.own}{today.beside}"
    if today.shared:
        now = f"today one cut of {today.own} holds for all"
    within = "would be within what was agreed (audited again with it)"
    return f"A cut of {_shown(cut, places)} for {today.who} {within}; {now}."


def _without(today: Today, *, tried: bool) -> str:
    """Who has which cut, where none was shown to be within."""
    none = "none is shown to be within what was agreed"
    if today.shared:
        tries = f"; of the cuts tried for {today.who} {none}" if tried else ""
        return f"Today one cut of {today.own} holds for all{tries}."
    tries = f"; of the cuts tried {none}" if tried else ""
    return f"{opening(today.whose)} is {today.own} today{today.beside}{tries}."


def _today(lead: Row, words: Words, own: float, others: Mapping[str, float], places: int) -> Today:
    attribute, group = lead["attribute"], lead["group"]
    who = words.people(attribute, group)
    return Today(
        who=who,
        whose=f"the cut for {who}" if goes_on(who) else f"{possessive(who)} cut",
        theirs="that group's" if words.unnamed(attribute, group) else "theirs",
        own=_shown(own, places),
        beside=_beside({words.people(attribute, name): others[name] for name in others}, places),
        shared={*others.values()} == {own},
    )


def _cuts_today(details: Mapping[str, Any], attribute: str | None) -> dict[str, float | None]:
    """The cut of each group of an attribute; None for a group that has none, or several."""
    return {
        one["group"]: one.get("threshold")
        for table in details.get("attributes") or []
        if table["attribute"] == attribute
        for one in table.get("groups") or []
    }


def _beside(others: Mapping[str, float], places: int) -> str:
    """The cuts of everybody else by their names, as a sentence goes on; nothing of nobody."""
    if not others:
        return ""
    low, high = (_shown(end, places) for end in (min(others.values()), max(others.values())))
    if low == high:
        return f", everybody else's {low}"
    if len(others) > _MOST_NAMED or any(map(goes_on, others)):
        return f", everybody else's between {low} and {high}"
    named = [f"{possessive(who)} {_shown(cut, places)}" for who, cut in others.items()]
    return f", {listed(named)}"


def _places(today: Sequence[float], *, audited: float | None) -> int:
    """Decimals of cuts side by side: as many as the longest has, of today's four digits at most.

    Examples:
        >>> _places([0.35, 0.6], audited=None), _places([50.0, 65.0], audited=61.0)
        (2, 0)
        >>> _places([1 / 3, 0.6], audited=None), _places([0.3, 0.6], audited=0.655)
        (4, 3)
    """
    shown = [f"{cut:.4g}" for cut in today] + ([] if audited is None else [f"{audited:.15g}"])
    most = max(-int(Decimal(text).normalize().as_tuple().exponent) for text in shown)
    return max(most, 2) if most > 0 else 0


def _shown(cut: float, places: int) -> str:
    return f"{cut:.{places}f}".replace("-", "−")
