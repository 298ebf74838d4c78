"""The verdict in words: the finding that leads, and how much else is outside or open."""

from collections.abc import Sequence

import numpy as np

from evenhand.findings.finding import Finding
from evenhand.findings.limits import CANNOT_TELL, OUTSIDE, WITHIN, single_labelers
from evenhand.lenses.rows import Rows
from evenhand.speech import agree, count_words, opening

_UNASSESSED = (
    "Nothing in this table is what the limits or the charter speak of, so nothing is judged."
)
UNLIMITED = (
    "No limits are set, so nothing is judged; `evenhand charter new` starts that conversation."
)
_JUDGED = (OUTSIDE, CANNOT_TELL, WITHIN)
TAGS = {
    "outside": "Gap found",
    "within": "Nothing outside limits",
    "cannot tell": "Cannot tell",
    "not assessed": "Not assessed",
}


def verdict_words(
    rows: Rows, verdict: str, findings: Sequence[Finding] = (), *, limited: bool = False
) -> tuple[str, str]:
    """The verdict's headline, a sentence with its numbers, and what follows it.

    The headline is the finding that leads, whether anything is judged or not; `limited` says
    that limits were given. A cost ratio and its implied threshold are one comparison; single
    labelers are counted apart and never named.

    Examples:
        >>> costs = {"measure": "cost_ratio", "attribute": "sex", "group": ["f", "m"]}
        >>> verdict_words(Rows.block((2,), verdict="within", **costs), "within")
        ('The two mistakes are weighed as agreed for both groups.', '')
        >>> print(*verdict_words(Rows.block((0,)), "not assessed"))
        Nothing could be measured. No limits are set, so nothing is judged; `evenhand charter \
new` starts that conversation.
    """
    judged = rows.take(
        np.isin(rows["verdict"].astype(str), _JUDGED) & ~single_labelers(rows) & ~_echoes(rows)
    )
    if verdict == WITHIN:
        return _all_within(judged), ""
    lead = next((one for one in findings if one.lens != "charter"), None)
    headline = lead.summary if lead is not None else _nothing(rows)
    if verdict not in _JUDGED:
        return headline, _UNASSESSED if limited else UNLIMITED
    open_ = judged["verdict"].tolist().count(CANNOT_TELL)
    outside = [one for one in findings if one.verdict == OUTSIDE]
    parts = []
    if verdict == OUTSIDE and len(outside) > 1:
        more = len(outside) - 1
        lie = agree(more, "lies outside its limit", "lie outside their limits")
        parts.append(f"{count_words(more)} more {agree(more, 'finding', 'findings')} {lie}")
    if verdict == CANNOT_TELL:
        parts.append("nothing is shown to lie outside its limit")
    if open_ and (verdict == OUTSIDE or open_ > 1):
        of = f" of {len(judged):,}" if verdict == CANNOT_TELL and open_ < len(judged) else ""
        parts.append(
            f"{count_words(open_)}{of} {agree(open_, 'comparison', 'comparisons')} the data "
            "cannot settle"
        )
    return headline, f"({opening('; '.join(parts))}.)" if parts else ""


def _nothing(rows: Rows) -> str:
    """That there is no finding: nothing was measured, nothing compared, or nothing surely so."""
    if not np.isfinite(rows["value"]).any():
        return "Nothing could be measured."
    if any(reason is not None for reason in rows["no_interval"]):
        return "No difference can be told: nothing that is compared has an interval."
    return "There is nothing to compare."


def _all_within(rows: Rows) -> str:
    """That everything judged lies where it was agreed to lie."""
    total = len(rows)
    if set(rows["measure"]) == {"cost_ratio"} and set(rows["stratum"].tolist()) == {None}:
        groups = {1: "the one group", 2: "both groups"}.get(total, f"all {total:,} groups")
        return f"The two mistakes are weighed as agreed for {groups}."
    if total == 1:
        return "The one comparison made lies within its limit."
    return f"All {total:,} comparisons made lie within their limits."


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
