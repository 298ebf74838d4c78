"""The words for the swap experiment, the one place where a causal verb is earned."""

from collections.abc import Mapping
from typing import Any

# {g} value, {r} reference, {c} class, {d} the class as decided, {often} how often.
_GAPS = {
    "counterfactual_selection_rate_gap": (
        "rewritten as {g}, {d} is decided {often} rewritten as {r}"
    ),
    "counterfactual_true_positive_rate_gap": (
        "where the truth is {c}, rewritten as {g}, {d} is decided {often} rewritten as {r}"
    ),
    "counterfactual_false_positive_rate_gap": (
        "where the truth is not {c}, rewritten as {g}, {d} is decided {often} rewritten as {r}"
    ),
}


def swap_words(row: Mapping[str, Any], decided: str, *, same: bool) -> str | None:
    """A counterfactual gap in words, or None for any other measure; `same` where it rounds to 0.

    Only a family interval that leaves out 0 is said to show that the words change decisions.

    Examples:
        >>> row = {"measure": "counterfactual_selection_rate_gap", "class": "nurse", "value": 0.1}
        >>> row |= {"attribute": "gender", "group": "female", "reference": "male"}
        >>> for part in swap_words(row | {"family_low": 0.05, "family_high": 0.15}, "'nurse'",
        ...                        same=False).split(": "):
        ...     print(part)
        swapping only the words for gender changes decisions
        rewritten as female, 'nurse' is decided more often than rewritten as male
    """
    form = _GAPS.get(row["measure"])
    if form is None:
        return None
    more = "more often than" if row["value"] > 0 else "less often than"
    told = form.format(
        g=row["group"],
        r=row["reference"],
        c=f"'{row['class']}'",
        d=decided,
        often="as often as" if same else more,
    )
    low, high = row["family_low"], row["family_high"]
    if low is None or high is None or low <= 0 <= high:
        return told
    return f"swapping only {words_for(row['attribute'])} changes decisions: {told}"


def words_for(attribute: str | None) -> str:
    """What is swapped, in words.

    Examples:
        >>> words_for("gender"), words_for("counterfactual")
        ('the words for gender', "the group's words")
    """
    if attribute in (None, "counterfactual"):
        return "the group's words"
    return f"the words for {attribute}"
