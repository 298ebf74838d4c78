"""What to do next with a finding, and whose it is: by its layer, with a number where one is."""

from collections.abc import Mapping
from typing import Any

from evenhand.charter.charter import ASKED
from evenhand.findings.limits import OUTSIDE
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.speech import opening

Plain = Mapping[str, Any]
_REMEDIES = "compare remedies side by side, with what each costs (evenhand compare)."
_LAW = "Whether groups may have cuts of their own is a question of law."


def next_step(
    finding: Plain, lead: Row | None, words: Words, details: Mapping[str, Any] | None = None
) -> str:
    """What whoever owns a finding should do, where something lies outside its limit.

    Examples:
        >>> finding = {"verdict": "outside", "layer": "policy", "lens": "statistical"}
        >>> next_step(finding, None, Words())
        'Decide which of the two gives way: the limit, or the weight of the two mistakes.'
    """
    if finding["verdict"] != OUTSIDE:
        return ""
    if finding["layer"] == "policy":
        return "Decide which of the two gives way: the limit, or the weight of the two mistakes."
    lens = finding["lens"]
    if lens == "thresholds" and lead is not None:
        return _cut(lead, words, details or {})
    if lens == "labelers":
        return _guideline(lead, words)
    if lens == "counterfactual":
        return f"Train on texts with the words exchanged, or mask them, and {_REMEDIES}"
    if lens == "norms":
        return f"Look at the words that carry it, and {_REMEDIES}"
    if lens != "statistical":
        return f"Find out where it comes from, and {_REMEDIES}"
    return f"Look first where it comes from: how common and how well told apart true cases are in \
each group, and how good their labels are. Then {_REMEDIES}"


def _cut(lead: Row, words: Words, details: Mapping[str, Any]) -> str:
    """The cut that would meet what was agreed, with its interval and the present one."""
    curves = ((details.get("thresholds") or {}).get("cost_curves") or {}).get("groups") or []
    own = next(
        (
            one
            for one in curves
            if (one.get("attribute"), one["group"]) == (lead["attribute"], lead["group"])
        ),
        None,
    )
    whose = words.subject(lead["attribute"], lead["group"])
    cut = own["cheapest"]["threshold"] if own else None
    if own is None or cut is None or look_up(lead["measure"]).kind == "ratio":
        return f"Move the cut for {whose} to where what was agreed is kept. {_LAW}"
    low, high = own.get("threshold_low"), own.get("threshold_high")
    span = f" ({low:.2f} to {high:.2f})" if low is not None and high is not None else ""
    present = (own.get("present") or {}).get("threshold")
    today = f"; today it is {present:.2f}" if present is not None else ""
    return f"A cut of {cut:.2f}{span} for {whose} would meet the agreement{today}. {_LAW}"


def _guideline(lead: Row | None, words: Words) -> str:
    if lead is None or lead["group"] is None:
        return (
            "Go through disputed labels with the labelers who lie outside, before anything is held "
            "against them."
        )
    whom = words.subject(lead["attribute"], lead["group"])
    return (
        f"Go through labels of {whom} with the labelers, and say in the guideline and in training "
        "how much evidence is enough."
    )


def whose_words(layer: str, owner: str | None) -> str:
    """Whose a finding is: the layer, and its owner or else who is to be asked.

    Examples:
        >>> whose_words("implementation", "the model team"), whose_words("policy", None)
        ('Implementation: the model team.', 'Policy: whoever owns the rules.')
    """
    return f"{opening(layer)}: {owner or ASKED[layer]}."
