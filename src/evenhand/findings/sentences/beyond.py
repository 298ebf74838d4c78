"""How far beyond what was agreed a number lies, in words: the amount that a next step asks for.

It is told only where the number is shown to lie outside, and its interval allows for that.
"""

from evenhand.findings.sentences.agreed import ends, two
from evenhand.findings.sentences.words import words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import decimals, few, points
from evenhand.stats.beyond import nearest_told
from evenhand.stats.estimate import critical
from evenhand.stats.power import family_critical

# About so much, and between which.
Amount = tuple[float, float, float]
_ENDS = ("low", "high", "family_low", "family_high")


def critical_of(row: Row) -> float:
    """By how many standard errors the interval of a row's family reaches."""
    z = critical(float(row.get("level") or 0.95))
    if any(row.get(name) is None for name in _ENDS):
        return z
    record = look_up(row["measure"])
    numbers = {name: float(row[name]) for name in _ENDS}
    on_log = record.kind == "ratio" or (record.low == 0 and not numbers["low"] <= 0)
    return float(family_critical(**numbers, z=z, on_log=on_log and numbers["family_low"] > 0))


def edge_of(row: Row) -> float | None:
    """The end of what was agreed that a row lies beyond; None where there is none."""
    value, low, high = (row[name] for name in ("value", "limit_low", "limit_high"))
    if None in (value, low, high):
        return None
    return float(high) if value > high else float(low) if value < low else None


def past_limit(row: Row) -> Amount | None:
    """How far a row lies beyond its limit and between which, or None where that is not known.

    Examples:
        >>> row = {"measure": "accuracy_gap", "value": -0.2, "low": -0.25, "high": -0.15}
        >>> row |= {"family_low": -0.25, "family_high": -0.15, "level": 0.95}
        >>> [round(one, 3) for one in past_limit(row | {"limit_low": -0.05, "limit_high": 0.05})]
        [0.15, 0.1, 0.2]
    """
    pair, edge = ends(row), edge_of(row)
    if pair is None or edge is None:
        return None
    above = row["value"] > edge
    near, far = sorted(end - edge if above else edge - end for end in pair)
    many = abs(float(row["value"]) - edge)
    return many, nearest_told(many, near, critical=critical_of(row)), far


def amount(row: Row) -> str:
    """How far a row lies beyond its limit, in its unit; nothing where that is not known.

    Examples:
        >>> row = {"measure": "accuracy_gap", "value": -0.2, "low": -0.25, "high": -0.15}
        >>> row |= {"family_low": -0.25, "family_high": -0.15, "level": 0.95}
        >>> amount(row | {"limit_low": -0.05, "limit_high": 0.05})
        '15 points (10 to 20)'
        >>> amount(row | {"measure": "norm_bias", "limit_low": -0.14, "limit_high": 0.14})
        '0.06 (up to 0.11)'
    """
    found = past_limit(row)
    if found is None:
        return ""
    many, near, far = found
    record = look_up(row["measure"])
    if record.kind in ("rate", "gap", "distance") and record.high == 1:
        places = decimals(near, far, many)
        shown = [f"{100 * end:.{places}f}" for end in (near, far)]
        return f"{points(many, places=places)} ({span_of(*shown)})"
    if record.low == 0:
        return f"{few(many)} ({span_of(few(near), few(far))})"
    return f"{two(many)} ({span_of(two(near), two(far))})"


def span_of(near: str, far: str) -> str:
    """From one end to the other; of none or more, up to the other.

    Examples:
        >>> span_of("12", "40"), span_of("0.0", "4.5"), span_of("0", "1,200")
        ('12 to 40', 'up to 4.5', 'up to 1,200')
    """
    return f"{near} to {far}" if near.strip("0.,") else f"up to {far}"


def coming_back(row: Row) -> str:
    """By how much a number would have to change for its limit to be kept, as a sentence.

    Examples:
        >>> row = {"measure": "accuracy_gap", "value": -0.2, "low": -0.25, "high": -0.15}
        >>> row |= {"family_low": -0.25, "family_high": -0.15, "level": 0.95}
        >>> coming_back(row | {"limit_low": -0.05, "limit_high": 0.05})
        'To keep what was agreed, the accuracy gap would have to narrow by 15 points (10 to 20).'
    """
    much, edge = amount(row), edge_of(row)
    if not much or edge is None:
        return ""
    record = look_up(row["measure"])
    what = words(row.get("judged_as") or record.variant_of or row["measure"])
    what += "," if "," in what else ""  # "norm bias, noise removed, would"
    above = row["value"] > edge
    way = "fall" if above else "rise"
    if record.kind in ("gap", "correlation"):
        nearer = abs(row["value"]) > abs(edge)
        ways = ("narrow", "widen") if record.kind == "gap" else ("weaken", "grow stronger")
        way = ways[0] if nearer else ways[1]
    return f"To keep what was agreed, the {what} would have to {way} by {much}."
