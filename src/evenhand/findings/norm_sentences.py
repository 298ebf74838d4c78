"""Norm bias in words: who is scored higher for looking typical of whom."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.verdict import OVER_CLASSES

Row = Mapping[str, Any]
IRRELEVANT = "_irrelevant"


def counts_classes(measure: str) -> bool:
    """Whether the n of a measure is a number of classes.

    Examples:
        >>> counts_classes("norm_bias_irrelevant"), counts_classes("norm_correlation")
        (True, False)
    """
    return measure.removesuffix(IRRELEVANT) in OVER_CLASSES


def norm_words(row: Row) -> tuple[str, str] | None:
    """The opening of a norm row's sentence and the number it shows, or None for other rows.

    Examples:
        >>> row = {"measure": "norm_correlation", "class": "nurse", "group": "female"}
        >>> told, shown = norm_words(row | {"norm": "female", "value": 0.4})
        >>> print(told)
        among female whose truth is 'nurse', the more typical of female, the higher the score of it
        >>> shown
        'rank correlation +0.400'
    """
    measure = str(row["measure"])
    base, value = measure.removesuffix(IRRELEVANT), row["value"]
    group, norm = row["group"], row["norm"]
    without = ", by words that say nothing of the class" if measure.endswith(IRRELEVANT) else ""
    number = f"{'+' if value > 0 else '−' if value < 0 else ''}{abs(value):.3f}"
    way = "higher" if value > 0 else "lower"
    if base == "norm_correlation":
        name = str(row["class"])
        rest = name.startswith("not:")
        about = f"is not '{name.removeprefix('not:')}'" if rest else f"is '{name}'"
        told = (
            f"among {group} whose truth {about}, the more typical of {norm}{without}, the {way} "
            "the score of it"
        )
        return told, f"rank correlation {number}"
    if base in ("norm_bias", "norm_bias_corrected"):
        told = (
            f"the larger the share of {group} in a class, the {way} it scores those of them who "
            f"look typical of {norm}{without}"
        )
        corrected = ", freed of sampling error" if base.endswith("corrected") else ""
        return told, f"norm bias ρ {number}{corrected}"
    if base == "norm_slope":
        told = (
            f"from classes without {group} to classes of {group} alone, the correlation of score "
            f"and {norm} norm{without} {'rises' if value > 0 else 'falls'}"
        )
        return told, f"slope {number}"
    if base == "norm_correlation_mean":
        told = f"the score's correlation with the {norm} norm{without} among {group}"
        return told, f"{abs(value):.3f} in the mean of its size over classes"
    return None
