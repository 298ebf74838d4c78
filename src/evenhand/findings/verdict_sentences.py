"""The verdict of an audit in one sentence: the first line that anybody reads."""

from collections.abc import Iterable

import numpy as np

from evenhand.findings.sentences import TAGS, plural
from evenhand.findings.verdict import CANNOT_TELL, OUTSIDE, WITHIN, single_labelers
from evenhand.lenses.rows import Rows

MOST_NAMED = 3
_JUDGED = (OUTSIDE, CANNOT_TELL, WITHIN)


def verdict_sentence(rows: Rows, verdict: str, *, limited: bool = False) -> str:
    """The verdict with its counts; `limited` says that limits were given.

    A cost ratio and its implied threshold are one comparison. Where limits speak of cost ratios
    alone, groups are counted; single labelers are counted apart and never named.

    Examples:
        >>> rows = Rows.block((3,), verdict=["outside", "within", "within"])
        >>> verdict_sentence(rows, "outside")
        'Gap found: 1 of 3 comparisons lies outside its limit.'
        >>> costs = {"measure": "cost_ratio", "attribute": "sex", "group": ["f", "m", "x"]}
        >>> rows = Rows.block((3,), verdict=["outside", "within", "cannot tell"], **costs)
        >>> for part in verdict_sentence(rows, "outside").split("; "):
        ...     print(part)
        Gap found: the two mistakes are not weighed as agreed for 1 of 3 groups (f)
        for 1 it cannot be told from this data.
    """
    tag = TAGS[verdict]
    if verdict not in _JUDGED:
        if limited:
            return f"{tag}: nothing in this table is what the limits or the charter speak of."
        return (
            f"{tag}: no limit was given, so nothing is judged. Set one with --limit or a charter."
        )
    single = single_labelers(rows)
    judged = rows.take(np.isin(rows["verdict"].astype(str), _JUDGED) & ~single & ~_echoes(rows))
    by_group = len(judged) > 0 and set(judged["measure"]) == {"cost_ratio"}
    by_group &= set(judged["stratum"].tolist()) == {None}
    told = _groups(judged) if by_group else _comparisons(judged)
    people = _labelers(rows.take(single)) if verdict == OUTSIDE else ""
    return f"{tag}: {'; '.join(part for part in (told, people) if part)}."


def _groups(rows: Rows) -> str:
    """How many groups' cost ratios lie where they were agreed to lie."""
    names = {v: [g for g, w in zip(rows["group"], rows["verdict"]) if w == v] for v in _JUDGED}
    total, open_ = len(rows), len(names[CANNOT_TELL])
    if names[OUTSIDE]:
        outside = names[OUTSIDE]
        listed = ", ".join(map(str, outside[:MOST_NAMED]))
        more = f" and {len(outside) - MOST_NAMED} more" if len(outside) > MOST_NAMED else ""
        told = (
            f"the two mistakes are not weighed as agreed for {_share(len(outside), total)} "
            f"({listed}{more})"
        )
        return told + (f"; for {open_:,} it cannot be told from this data" if open_ else "")
    if open_:
        return (
            f"whether the two mistakes are weighed as agreed cannot be told for "
            f"{_share(open_, total)} from this data"
        )
    return f"the two mistakes are weighed as agreed for {_share(total, total)}"


def _share(count: int, total: int) -> str:
    if count == total:
        return {1: "the one group", 2: "both groups"}.get(total, f"all {total:,} groups")
    return f"{count:,} of {plural(total, 'group')}"


def _comparisons(rows: Rows) -> str:
    """How many comparisons lie outside their limits, and how many leave it open."""
    verdicts = rows["verdict"].tolist()
    outside, open_, total = verdicts.count(OUTSIDE), verdicts.count(CANNOT_TELL), len(verdicts)
    if outside:
        verb = "lies outside its limit" if outside == 1 else "lie outside their limits"
        told = f"{outside:,} of {plural(total, 'comparison')} {verb}"
        return told + (f", and {open_:,} cannot be told from this data" if open_ else "")
    if open_:
        return (
            f"{open_:,} of {plural(total, 'comparison')} cannot be told from this data, and none "
            "is shown to lie outside its limit"
        )
    if total == 1:
        return "the one comparison made lies within its limit"
    return f"all {total:,} comparisons lie within their limits" if total else ""


def _labelers(rows: Rows) -> str:
    """How many labelers lie outside by themselves; nobody is named."""
    everybody = set(rows["labeler"])
    outside = _named(name for name, v in zip(rows["labeler"], rows["verdict"]) if v == OUTSIDE)
    if not outside:
        return ""
    if outside == 1:
        return f"1 of {plural(len(everybody), 'labeler')} lies outside alone"
    return f"{outside:,} of {plural(len(everybody), 'labeler')} lie outside by themselves"


def _named(names: Iterable[str]) -> int:
    return len(set(names))


def _echoes(rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Implied thresholds whose cost ratio is judged too: the same choice on another scale."""
    keys = ("lens", "attribute", "group", "stratum", "labeler")
    places = list(zip(*(rows[key] for key in keys)))
    costs = {
        place
        for place, measure, low in zip(places, rows["measure"], rows["limit_low"])
        if measure == "cost_ratio" and np.isfinite(low)
    }
    return np.array(
        [m == "implied_threshold" and p in costs for p, m in zip(places, rows["measure"])],
        dtype=bool,
    )
