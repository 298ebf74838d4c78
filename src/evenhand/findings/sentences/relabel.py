"""What to do about labelers: which labels to look at again, and how many would come out otherwise.

The number follows from the rates that the labelers lens left in its details, and from how far the
leading row lies beyond its limit.
"""

from collections.abc import Mapping
from math import log
from typing import Any

from evenhand.findings.sentences.beyond import coming_back
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import UNTOLD_UNDER
from evenhand.speech import agree, count_words, plural
from evenhand.stats.estimate import critical
from evenhand.stats.labelers.bar import (
    Excess,
    Labels,
    labels_by_bar,
    labels_by_skill,
    labels_by_weight,
)

_GUIDELINE = "say in the guideline and in training how much evidence is enough."
_TRAINING = "give labelers more to go by, or train them on such cases."
_MOMENTS = ("z_hit", "z_false_alarm", "variance_hit", "variance_false_alarm", "covariance")
# By what a finding is about: which labels it turns, and under which condition.
_TURNED = {
    "cost_ratio": (labels_by_weight, "if the two mistakes were weighed as agreed"),
    "criterion": (labels_by_bar, "if as much evidence were asked for as was agreed"),
    "separation": (labels_by_skill, "if true cases were told from others as well as agreed"),
}
# To take a benefit away, or to add a burden, is no number to ask for: not all of it would be right.
_HARMS = {True: "benefit", False: "burden"}


def labelers_step(lead: Row, words: Words, details: Mapping[str, Any]) -> str:
    """Which labels of a group to go through with the labelers, how many are at stake, then what."""
    whose = words.subject(lead["attribute"], lead["group"])
    about = _about(lead)
    held = _labels(lead, details)
    through = f"Go through labels on {whose} with the labelers, and"
    if held is None or about not in _TURNED:
        return " ".join(filter(None, (coming_back(lead), f"{through} {_GUIDELINE}")))
    turn, condition = _TURNED[about]
    counts, labels = held
    many, low, high = turn(labels, _excess(lead))
    yes = many > 0
    skill = about == "separation"
    then = _TRAINING if skill else _GUIDELINE
    harmful = words.meaning.get(str(lead["class"])) == _HARMS[yes]
    if harmful or (skill and yes):
        return " ".join(filter(None, (coming_back(lead), f"{through} {then}")))
    sides = ("hits", "false_alarms") if yes else ("misses", "correct_rejections")
    of = sum(counts[side] for side in sides)
    if skill:
        of, whose = counts["misses"], f"{whose} {words.true_of(lead['class'])}"
    # No fewer than none and no more than there are.
    near, far = (min(max(end if yes else -end, 0.0), of) for end in (low, high))
    least, most = sorted((near, far))
    span = f"{least:,.0f} to {most:,.0f}" if round(least) >= 1 else f"up to {most:,.0f}"
    return (
        f"Go through the most doubtful of the {plural(of, 'label')} "
        f"'{words.labelled(lead['class'], not_=not yes)}' on {whose} with the labelers: about "
        f"{abs(many):,.0f} ({span}) would come out otherwise {condition}. "
        f"Then {then}"
    )


def single_labelers_step(count: int) -> str:
    """What to do where single labelers lie outside.

    Examples:
        >>> print(single_labelers_step(3))
        Go through disputed labels with the three labelers who lie outside, before anything is \
held against them.
    """
    who = agree(count, "labeler who lies", "labelers who lie")
    many = "" if count == 1 else f"{count_words(count)} "
    return (
        f"Go through disputed labels with the {many}{who} outside, before anything is held against "
        f"{agree(count, 'that person', 'them')}."
    )


def _about(lead: Row) -> str:
    """What a row of labelers is made of: weights, the bar or skill; an implied threshold weighs."""
    record = look_up(lead["measure"])
    own = look_up(record.variant_of or record.name)
    name = own.base or own.name
    return "cost_ratio" if name == "implied_threshold" and own.kind != "gap" else name


def _labels(lead: Row, details: Mapping[str, Any]) -> tuple[Mapping[str, float], Labels] | None:
    """The counts and rates of a row's group; None where too few of either truth were labelled."""
    tables = (details.get("labelers") or {}).get("attributes") or ()
    counts = next(
        (
            one
            for table in tables
            if table["attribute"] == lead["attribute"]
            for one in table.get("counts") or ()
            if one["group"] == lead["group"]
        ),
        None,
    )
    numbers = [lead[end] for end in ("value", "low", "high", "family_low", "family_high", "level")]
    if counts is None or None in [*numbers, *(counts.get(name) for name in _MOMENTS)]:
        return None
    positives = counts["hits"] + counts["misses"]
    negatives = counts["false_alarms"] + counts["correct_rejections"]
    moments = {name: float(counts[name]) for name in _MOMENTS}
    labels = Labels(positives=positives, negatives=negatives, **moments)
    if lead["stratum"] is not None or min(positives, negatives) < UNTOLD_UNDER:
        return None
    return (counts, labels) if labels.separation > 0 else None


def _excess(lead: Row) -> Excess:
    """How far a row lies beyond its limit, weights on a log scale."""
    record = look_up(lead["measure"])
    value, low, high, family_low, family_high, least, most = (
        float(lead[name])
        for name in ("value", "low", "high", "family_low", "family_high", "limit_low", "limit_high")
    )
    edge = most if value > most else least
    numbers = [value, edge, low, high, family_low, family_high]
    if look_up(record.variant_of or record.name).name == "implied_threshold":
        # c = (1 − t) ÷ t, on a log scale.
        numbers = [log(1 - one) - log(one) for one in numbers]
    elif (record.base or record.name) == "cost_ratio" or record.kind == "ratio":
        numbers = [log(one) for one in numbers]
    value, edge, *ends = numbers
    reach, family = abs(ends[1] - ends[0]) / 2, abs(ends[3] - ends[2]) / 2
    error = reach / critical(float(lead["level"]))
    return Excess(value=value - edge, error=error, critical=family / error)
