"""Choices that cannot all hold: an error-rate limit, or one bar, beside a chosen cost ratio.

One cost ratio for all groups gives different error rates wherever prevalence differs, and equal
error rates need different cost ratios.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from evenhand.charter.charter import Charter
from evenhand.charter.words import percent, plain_number
from evenhand.lenses.measures import look_up

if TYPE_CHECKING:
    from evenhand.stats.thresholds.costs import EqualRate

# The rate of signal detection that a limited rate is, or that it leaves over.
RATES: "dict[str, tuple[EqualRate, bool]]" = {
    "false_positive_rate": ("false_positive_rate", False),
    "true_negative_rate": ("false_positive_rate", True),
    "false_negative_rate": ("false_negative_rate", False),
    "true_positive_rate": ("false_negative_rate", True),
    "selection_rate": ("selection_rate", False),
}
# How well the evidence is taken to tell true cases apart where nobody measured it yet.
SEPARATION = 2.0


def rate_band(
    measure: str, limits: tuple[float, float], rate: float
) -> "tuple[EqualRate, float, float] | None":
    """The rate that a limit on a gap or a ratio speaks of, and the band it leaves a group.

    `rate` is the reference's, of the rate that the limit is on. None for any other measure.

    Examples:
        >>> rate_band("true_positive_rate_gap", (-0.25, 0.25), 0.5)
        ('false_negative_rate', 0.25, 0.75)
    """
    record = look_up(measure)
    if record.kind not in ("gap", "ratio") or record.parts or record.base not in RATES:
        return None
    name, mirrored = RATES[str(record.base)]
    low, high = (rate + end if record.kind == "gap" else rate * end for end in limits)
    return (name, 1 - high, 1 - low) if mirrored else (name, low, high)


def conflicts(charter: Charter) -> Iterator[tuple[str, str | None]]:
    """What the charter asks for that cannot all hold: sentences, with the attribute they are of."""
    if not charter.choices:
        return
    for measure, limits in charter.limits.items():
        if rate_band(measure, limits, 0.5) is None:
            continue
        general = (
            f"The limit on {measure} and the chosen cost ratio contradict each other where true "
            "cases are more common in one group than in another: one weight of the two mistakes "
            "then gives unequal error rates. Decide which of the two gives way"
        )
        told = list(_with_numbers(charter, measure, limits))
        yield f"{general}.", None
        yield from told
    if charter.bar is not None:
        yield (
            "One bar and the chosen cost ratio contradict each other where true cases are more "
            "common in one group than in another: one weight of the two mistakes then needs "
            "unequal bars. Decide which of the two gives way.",
            None,
        )


def _with_numbers(
    charter: Charter, measure: str, limits: tuple[float, float]
) -> Iterator[tuple[str, str | None]]:
    """The cost ratio that each group would need, where the charter knows prevalences."""
    from evenhand.stats.thresholds.required import rates_at_cost_ratio, required_cost_ratio

    known: dict[str, list[tuple[str, float]]] = {}
    for (attribute, group), share in charter.prevalence.items():
        if attribute is not None and group is not None:
            known.setdefault(attribute, []).append((group, share))
    for attribute, groups in known.items():
        first, share = groups[0]
        choice = charter.choice_for(attribute, first)
        if choice is None:
            continue
        at = rates_at_cost_ratio(choice.cost_ratio, prevalence=share, separation=SEPARATION)
        rate = str(look_up(measure).base)
        name, mirrored = RATES[rate]
        reference = float(getattr(at, name))
        band = rate_band(measure, limits, 1 - reference if mirrored else reference)
        for group, other in groups[1:]:
            own = charter.choice_for(attribute, group)
            if band is None or own is None:
                continue
            found = required_cost_ratio(
                band[0],
                low=band[1],
                high=band[2],
                prevalence=other,
                separation=SEPARATION,
                chosen=own.cost_ratio,
            )
            if not np.isfinite(found.factor) or abs(found.factor - 1) < 1e-9:
                continue
            yield (
                f"With true cases in {percent(share)} of {attribute}={first} and {percent(other)} "
                f"of {attribute}={group}, and evidence that separates them by "
                f"{SEPARATION:g} standard deviations, the limit on {measure} would need a cost "
                f"ratio of {plain_number(float(found.nearest))} for {group} instead of "
                f"{plain_number(own.cost_ratio)}.",
                attribute,
            )
