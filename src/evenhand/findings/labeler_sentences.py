"""Labelers in words that a policy owner reads: another standard, or less able to tell?"""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.findings.cost_sentences import cost_sentence
from evenhand.findings.names import name_of
from evenhand.lenses.rows import Rows

Row = Mapping[str, Any]


def labelers_sentence(rows: Rows, family: Sequence[Row], lead: Row | None) -> str | None:
    """What labels on each group imply, and whether standard or skill differs; None if unknown."""
    told = cost_sentence(family, lead)
    if told is None:
        return None
    opening, _, agreed = told.partition(". Agreed")
    opening = opening.removesuffix(".").removeprefix("Decisions on ")
    group, _, acts = opening.partition(" act as if ")
    why = standard_or_skill(rows, attribute=family[0]["attribute"])
    more = f". Agreed{agreed}" if agreed else "."
    return f"On {group}, labelers act as if {acts}{f': {why}' if why else ''}{more}"


def standard_or_skill(rows: Rows, *, attribute: str) -> str | None:
    """The clause that tells a different standard from less skill, for the surest comparison.

    Examples:
        >>> shared = {"lens": "labelers", "attribute": "sex", "group": "f", "reference": "m"}
        >>> names = ["cost_ratio_ratio", "criterion_gap", "separation_gap"]
        >>> names += ["cost_ratio_behaviour_part", "cost_ratio_prevalence_part"]
        >>> rows = Rows.block((5,), measure=names, value=[0.5, 0.6, 0.1, -0.7, 0.0],
        ...     family_low=[0.3, 0.4, -0.2, -0.9, 0.0], family_high=[0.8, 0.8, 0.4, -0.5, 0.0],
        ...     p=[0.01] * 5, **{"class": "1"}, **shared)
        >>> standard_or_skill(rows, attribute="sex")
        'a different standard; no difference in skill can be told'
    """
    mine = [
        row
        for row in rows.where(lens="labelers", attribute=attribute, labeler=None, stratum=None)
        if row["reference"] is not None and row["value"] is not None
    ]
    groups = list(dict.fromkeys(row["group"] for row in mine))
    by = {(row["group"], row["measure"]): row for row in mine}
    asked = ("cost_ratio_ratio", "criterion_gap", "separation_gap", "cost_ratio_behaviour_part")
    whole = [g for g in groups if all((g, m) in by for m in (*asked, "cost_ratio_prevalence_part"))]
    if not whole:
        return None

    def surest(group: str) -> tuple[float, str]:
        known = [by[group, m]["p"] for m in asked[:3] if by[group, m]["p"] is not None]
        return (min(known, default=1.0), group)

    group = min(whole, key=surest)
    ratio, criterion, separation, behaviour = (by[group, m] for m in asked)
    prevalence = by[group, "cost_ratio_prevalence_part"]
    common = abs(prevalence["value"]) > abs(behaviour["value"])
    standard = _beyond(criterion, 0.0) or (_beyond(ratio, 1.0) and _beyond(behaviour, 0.0))
    name, shown = f"'{ratio['class']}'", name_of(group, attribute)
    parts = []
    if _beyond(ratio, 1.0) and common:
        more = "more" if prevalence["value"] < 0 else "less"
        parts.append(f"mostly because {name} is {more} common among items of {shown}")
    skill = "less" if separation["value"] < 0 else "more"
    if standard and _beyond(separation, 0.0):
        parts.append(f"a different standard, and {skill} skill in telling {name}")
    elif standard:
        parts.append("a different standard; no difference in skill can be told")
    elif _beyond(separation, 0.0):
        parts.append(f"{skill} skill in telling {name}; no different standard can be told")
    else:
        parts.append("neither a different standard nor a difference in skill can be told")
    rest = ratio["reference"] == "<rest>"
    other = "everybody else" if rest else name_of(ratio["reference"], attribute)
    who = f"{shown} against {other}, " if len(groups) > 1 else ""
    return who + "; ".join(parts)


def few_labelers(family: Sequence[Row]) -> str:
    """How many labelers lie outside a limit; none is named.

    Examples:
        >>> row = {"measure": "cost_ratio", "verdict": "outside", "labeler": "L1"}
        >>> few_labelers([row, row | {"verdict": "cannot tell", "labeler": "L2"}])
        'Of 2 labelers, 1 lies outside the limit of cost ratio even after allowing for chance.'
    """
    everybody = {row["labeler"] for row in family}
    outside = {row["labeler"] for row in family if row["verdict"] == "outside"}
    lie = "lies" if len(outside) == 1 else "lie"
    measure = family[0]["measure"].replace("_", " ")
    return (
        f"Of {len(everybody):,} labelers, {len(outside):,} {lie} outside the limit of {measure} "
        "even after allowing for chance."
    )


def labeler_words(row: Row, reference: str | None) -> tuple[str, str] | None:
    """The opening of a comparison's sentence and the number it shows, or None for other rows.

    Examples:
        >>> row = {"measure": "criterion_gap", "class": "1", "group": "f", "labeler": None}
        >>> labeler_words(row | {"value": -0.2, "lens": "labelers"}, "m")
        ("labelers say '1' on weaker signs for f than for m", 'criterion gap −0.200')
    """
    if row.get("lens") != "labelers" or reference is None:
        return None
    value, name, group = row["value"], f"'{row['class']}'", row["group"]
    level = f"{abs(value):.3f}" == "0.000"
    labeler = row.get("labeler")
    measure = row["measure"].removesuffix("_average")
    average = "the average labeler" if measure != row["measure"] else "labelers"
    who = average if labeler is None else f"labeler {labeler}"
    verbs = ("say", "tell") if who == "labelers" else ("says", "tells")
    if labeler is not None and row.get("reference") == "<rest>":
        reference = "other labelers do"
    else:
        reference = f"for {reference}"
    if measure == "criterion_gap":
        kind = "equal" if level else "stronger" if value > 0 else "weaker"
        link = "and" if level else "than"
        told = f"{who} {verbs[0]} {name} on {kind} signs for {group} {link} {reference}"
    elif measure == "separation_gap":
        kind = "as well" if level else "better" if value > 0 else "less well"
        link = "as" if level else "than"
        told = f"{who} {verbs[1]} {name} apart {kind} for {group} {link} {reference}"
    elif row["measure"] == "prevalence_gap":
        kind = "as common" if level else "more common" if value > 0 else "less common"
        link = "as of" if level else "than of"
        told = f"{name} is {kind} among items of {group} {link} {reference.removeprefix('for ')}"
    else:
        return None
    sign = "+" if value > 0 else "−"
    shown = "0.000" if level else f"{sign}{abs(value):.3f}"
    return told, f"{measure.replace('_', ' ')} {shown}"


def _beyond(row: Row, still: float) -> bool:
    low, high = row["family_low"], row["family_high"]
    return low is not None and high is not None and bool(low > still or high < still)
