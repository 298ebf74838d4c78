"""Cost ratios in words that a policy owner reads: what one missed case is taken to weigh."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
MOST_NAMED = 4
_WRONG = "wrongly decided ones"
_MISSED = re.compile(r"\b([Oo]ne|[Aa]) missed '.*?'(?= weighs )")


def times(value: float) -> str:
    """A cost ratio as sentences print it.

    Examples:
        >>> times(2.345), times(0.8), times(23.46), times(1234.5)
        ('2.35', '0.80', '23.5', '1,234')
    """
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def why_not(reason: str) -> str:
    """Why there is no number, as a sentence goes on.

    Examples:
        >>> why_not("no cases in the group"), why_not("fewer than 10 cases: hidden")
        ('undefined: no cases in the group', 'hidden: fewer than 10 cases')
    """
    few, hidden, _ = reason.partition(": hidden")
    return f"hidden: {few}" if hidden else f"undefined: {reason}"


def cost_sentence(rows: Sequence[Row], lead: Row | None) -> str | None:
    """What decisions on each group imply, the leading group first; None where nothing is known.

    Examples:
        >>> shared = {"class": "1", "labeler": None, "stratum": None, "undefined": None}
        >>> shared |= {"measure": "cost_ratio", "limit_low": None, "limit_high": None}
        >>> rows = [
        ...     {"group": "f", "value": 2.3, "family_low": 1.8, "family_high": 2.9} | shared,
        ...     {"group": "m", "value": 1.1, "family_low": 0.9, "family_high": 1.3} | shared,
        ... ]
        >>> for part in cost_sentence(rows, rows[0]).split(" weighs as much as "):
        ...     print(part)
        Decisions on f act as if one missed '1'
        2.30 wrongly decided ones [1.80, 2.90]; on m as 1.10 [0.90, 1.30].
    """
    shown = [
        row
        for row in rows
        if row["labeler"] is None and row["stratum"] is None and _told(row) is not None
    ]
    first = lead if lead is not None and any(row is lead for row in shown) else None
    if lead is not None and first is None:
        return None
    shown.sort(key=lambda row: row is not first)
    if not shown:
        return None
    parts = [f"on {row['group']} as {_told(row)}" for row in shown[1:MOST_NAMED]]
    if len(shown) > MOST_NAMED:
        more = len(shown) - MOST_NAMED
        parts.append(f"and {more:,} more {'group' if more == 1 else 'groups'}")
    opening = (
        f"Decisions on {shown[0]['group']} act as if one missed '{shown[0]['class']}' weighs as "
        f"much as {_told(shown[0], f' {_WRONG}')}"
    )
    band = ""
    if shown[0]["limit_low"] is not None and shown[0]["limit_high"] is not None:
        limits = f"{times(shown[0]['limit_low'])} to {times(shown[0]['limit_high'])}"
        band = f" Agreed for {shown[0]['group']}: {limits}."
    return "; ".join([opening, *parts]) + "." + band


def untold_sentence(rows: Sequence[Row]) -> str | None:
    """Which groups have no number that a limit could be held against, and why; None if none.

    Examples:
        >>> row = {"measure": "cost_ratio", "value": None, "low": None, "labeler": None}
        >>> rows = [row | {"group": name, "undefined": "no score"} for name in ("f", "m")]
        >>> untold_sentence(rows)
        'The cost ratio of f, m is undefined: no score.'
    """
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["value"] is None and row["low"] is None and row["undefined"] and row["group"]:
            names = reasons.setdefault(row["undefined"], [])
            names += [row["group"]] if row["group"] not in names else []
    parts = []
    for reason, names in reasons.items():
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        parts.append(f"of {', '.join(names[:MOST_NAMED])}{more} is {why_not(reason)}")
    if not parts:
        return None
    return f"The {rows[0]['measure'].replace('_', ' ')} {'; that '.join(parts)}."


def own_words(sentence: str, *, missed: str, wrong: str) -> str:
    """A sentence on cost ratios with the two mistakes as a charter calls them: one, several.

    Examples:
        >>> told = "Decisions on f act as if one missed '1' weighs as much as 2.30 wrongly decided"
        >>> own_words(told + " ones.", missed="missed violation", wrong="wrongful removals")[25:]
        'one missed violation weighs as much as 2.30 wrongful removals.'
        >>> own_words("A missed '1' weighs less for f.", missed="oversight", wrong="alarms")
        'An oversight weighs less for f.'
    """

    def name(found: re.Match[str]) -> str:
        article = found[1]
        if article in ("a", "A") and missed[:1].lower() in "aeiou":
            article += "n"
        return f"{article} {missed}"

    told = _MISSED.sub(name, sentence)
    return told if told == sentence else told.replace(_WRONG, wrong, 1)


def _told(row: Row, noun: str = "") -> str | None:
    """A group's cost ratio with its interval; the set of them where scores are discrete."""
    low, high = row["family_low"], row["family_high"]
    if row["value"] is not None:
        ends = f" [{times(low)}, {times(high)}]" if low is not None and high is not None else ""
        return f"{times(row['value'])}{noun}{ends}"
    if row.get("low") is None or row.get("high") is None or low is None or high is None:
        return None
    inner = f"anything from {times(row['low'])} to {times(row['high'])}"
    return f"{inner}{noun} [{times(low)}, {times(high)}]"


def cost_words(row: Row, reference: str | None) -> tuple[str, str] | None:
    """The opening of a comparison's sentence and the number it shows, or None for other rows.

    Examples:
        >>> row = {"measure": "cost_ratio_ratio", "class": "1", "group": "f", "value": 0.5}
        >>> cost_words(row, "m")
        ("a missed '1' weighs less for f than for m", 'ratio of cost ratios 0.500')
    """
    value = row["value"]
    if row["measure"] == "cost_ratio_ratio":
        kind = "as much" if f"{value:.3f}" == "1.000" else "more" if value > 1 else "less"
        link = "as for" if kind == "as much" else "than for"
        told = f"a missed '{row['class']}' weighs {kind} for {row['group']} {link} {reference}"
        return told, f"ratio of cost ratios {value:.3f}"
    if row["measure"] == "implied_threshold_gap":
        kind = (
            "the same" if f"{abs(value):.3f}" == "0.000" else "a higher" if value > 0 else "a lower"
        )
        link = "as" if kind == "the same" else "than"
        told = (
            f"decisions '{row['class']}' on {row['group']} start from {kind} probability of the "
            f"truth {link} on {reference}"
        )
        sign = "+" if value > 0 else "−" if value < 0 else ""
        return told, f"gap {sign}{abs(value):.3f}"
    return None
