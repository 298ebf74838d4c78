"""Cuts audited again: whether a group's own threshold would bring it within what was agreed.

A cut that is cheapest on the cost curve may still lie outside every limit: its cost ratio has an
interval, and a limit is held against its ends. So a cut is named only after an audit with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log10
from typing import Any

import numpy as np

from evenhand.decisions.labels import MISSING, OVERALL, REST
from evenhand.decisions.table import Decisions
from evenhand.findings.find import outside_leads
from evenhand.findings.limits import NOT_ASSESSED, OUTSIDE, WITHIN, Limit, judge, overall
from evenhand.findings.registry import LENSES
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import TEXT, LensResult, Options, Row, Rows

# Every cut is an audit of the whole table: of this many rows nine take two or three seconds.
MOST_ROWS, MOST_CUTS = 1_000_000, 9
# The lenses that are measured again. What is agreed of another would be left unseen.
AGAIN = ("statistical", "thresholds")
# What these settings ask for is shown, and nothing is judged by it.
_ONLY_SHOWN = ("cost_ratio", "evidence")
# How many steps of a cut the scores are long at least.
_FEWEST_STEPS = 50
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAudit:
    """An audit as far as it is judged: the table, its rows, and what they were judged by."""

    decisions: Decisions
    results: Sequence[LensResult]
    rows: Rows
    limits: Sequence[Limit]
    options: Options
    positive: str | None


def audited_cuts(first: FirstAudit) -> list[dict[str, Any]]:
    """The cuts tried for groups whose finding leads outside its limit, each with its verdict.

    A cut is within where every limited row of the group is, and nothing else lies outside that
    did not before. Empty where nothing lies outside, and where no audit can be had of one cut.
    """
    rows, names = first.rows, first.rows["lens"]
    outside = rows["verdict"] == OUTSIDE
    if not (outside & (names == "thresholds")).any() or not _can_be_again(first):
        return []
    whom = dict.fromkeys(
        (lead["attribute"], lead["group"])
        for lead in outside_leads(rows, first.positive, lens="thresholds")
        if look_up(lead["measure"]).kind != "ratio"
    )
    return [one for attribute, group in whom for one in _tries(first, attribute, group)]


def _can_be_again(first: FirstAudit) -> bool:
    """Whether an audit with another threshold answers all that is agreed, at a cost one can bear.

    Rows are needed, decisions that the threshold makes, and limits on these lenses alone.
    """
    roles, rows = first.decisions.roles, first.rows
    limited = set(rows["lens"][rows["verdict"] != NOT_ASSESSED])
    return (
        first.decisions.tallies is None
        and roles.rule == "score>=t"
        and not isinstance(roles.threshold, str)
        and limited <= set(AGAIN)
        and first.decisions.row_count <= MOST_ROWS
    )


def _tries(first: FirstAudit, attribute: str, group: str) -> Iterator[dict[str, Any]]:
    """The cuts of one group that are audited, the cheapest first, up to one that is within."""
    cuts = _cuts_today(first, attribute)
    curve = _cost_curve(first, attribute, group)
    if curve is None or group not in cuts:
        return
    decisions = _cut_by(first.decisions, attribute)
    for cut in candidates(curve, _scores(first.decisions), today=cuts[group]):
        changed = decisions.with_roles(threshold={**cuts, group: cut})
        verdict = _verdict(first, _audit_again(first, changed), attribute, group)
        yield {"attribute": attribute, "group": group, "threshold": cut, "verdict": verdict}
        if verdict == WITHIN:
            return


def _cuts_today(first: FirstAudit, attribute: str) -> dict[str, float]:
    """The threshold of every group of an attribute; empty where they cannot be set one by one.

    Thresholds by group are those of the first attribute. One for all is one for each group, but
    for rows without a group, which then have none.
    """
    roles, rows = first.decisions.roles, first.rows
    given = roles.threshold
    if isinstance(given, Mapping):
        return dict(given) if attribute == roles.group[0] else {}
    alone = attribute == roles.group[0] or (attribute in roles.group and not roles.crossed)
    if not alone or not isinstance(given, int | float):
        return {}
    groups = set(rows["group"][rows["attribute"] == attribute]) - {None, REST, OVERALL}
    unknown = any(f"no {attribute}" in result.excluded for result in first.results)
    if MISSING in groups or (unknown and len(roles.group) > 1):
        return {}
    return dict.fromkeys(sorted(groups), float(given))


def _cut_by(decisions: Decisions, attribute: str) -> Decisions:
    """The decisions with this attribute first, whose groups thresholds are given by."""
    others = tuple(name for name in decisions.roles.group if name != attribute)
    return decisions.with_roles(group=(attribute, *others))


def _cost_curve(first: FirstAudit, attribute: str, group: str) -> Mapping[str, Any] | None:
    details = next((one.details for one in first.results if one.lens == "thresholds"), {})
    curves = (details.get("cost_curves") or {}).get("groups", ())
    return next(
        (one for one in curves if (one["attribute"], one["group"]) == (attribute, group)), None
    )


def _scores(decisions: Decisions) -> tuple[float, float]:
    """The least and the greatest score."""
    survey, score = decisions.survey, decisions.roles.score
    return survey[f"min:{score}"], survey[f"max:{score}"]


def candidates(
    curve: Mapping[str, Any], scores: tuple[float, float], *, today: float
) -> list[float]:
    """The cuts worth an audit: as they would be printed, the nearest to the cheapest one first.

    They lie where costs cannot be told from the least, in steps that fit the scores: hundredths
    of probabilities.

    Examples:
        >>> curve = {"cheapest": {"threshold": 0.657}, "threshold_low": 0.64}
        >>> candidates(curve | {"threshold_high": 0.68}, (0.0, 1.0), today=0.35)
        [0.66, 0.65, 0.67, 0.64, 0.68]
        >>> curve = {"cheapest": {"threshold": 612.4}, "threshold_low": 611.0}
        >>> candidates(curve | {"threshold_high": None}, (300.0, 850.0), today=613)[:3]
        [612.0, 611.0, 614.0]
    """
    cheapest = curve["cheapest"]["threshold"]
    least, most = scores
    if cheapest is None or most <= least:
        return []
    places = max(0, ceil(log10(_FEWEST_STEPS / (most - least))))
    low, high = curve["threshold_low"], curve["threshold_high"]
    low, high = least if low is None else low, most if high is None else high
    nearest = round(cheapest * 10**places)
    steps = sorted(
        range(nearest - MOST_CUTS, nearest + MOST_CUTS + 1),
        key=lambda step: (step != nearest, abs(step / 10**places - cheapest)),
    )
    near = [round(step / 10**places, places) for step in steps]
    usable = [
        cut
        for cut in near
        if (low <= cut <= high or cut == near[0])
        and least <= cut <= most
        and cut != today
        and float(f"{cut:.{_DIGITS}g}") == cut
    ]
    return usable[:MOST_CUTS]


def _audit_again(first: FirstAudit, decisions: Decisions) -> Rows:
    """The rows of the lenses that anything is agreed on, judged as the first time."""
    rows = first.rows
    limited = set(rows["lens"][rows["verdict"] != NOT_ASSESSED])
    asked = first.options.settings
    settings = {name: value for name, value in asked.items() if name not in _ONLY_SHOWN}
    options = replace(first.options, settings=settings)
    measured = [LENSES[name].measure(decisions, options).rows for name in AGAIN if name in limited]
    return judge(Rows.concatenate(measured), first.limits, positive=first.positive)


def _verdict(first: FirstAudit, again: Rows, attribute: str, group: str) -> str:
    """What an audit with another cut says of its group, and of nobody else for the worse."""
    own = (again["attribute"] == attribute) & (
        (again["group"] == group) | (again["reference"] == group)
    )
    before = {_place(row) for row in _rows_outside(first.rows)}
    if any(_place(row) not in before for row in _rows_outside(again.take(~own))):
        return OUTSIDE
    return overall(again["verdict"][own].tolist())


def _rows_outside(rows: Rows) -> Rows:
    return rows.take(np.asarray(rows["verdict"] == OUTSIDE, dtype=bool))


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in TEXT)
