"""Gaps over all classes in words: one number for how far the classes' rates lie apart."""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]
_END = "_gap_rms"


def rms_words(row: Row, reference: str | None) -> tuple[str, str] | None:
    """What a root mean square over classes says, and its number; None for any other measure.

    Examples:
        >>> row = {"measure": "true_positive_rate_gap_rms_corrected", "group": "f", "value": 0.189}
        >>> print(*rms_words(row, "m"), sep=": ")
        Over the classes, true positive rates of f lie apart from those of m: \
root mean square 0.189 without sampling noise
    """
    measure = str(row["measure"])
    corrected = measure.endswith("_corrected")
    base = measure.removesuffix("_corrected").removesuffix(_END)
    if not measure.removesuffix("_corrected").endswith(_END) or not row["group"]:
        return None
    rates = base.removeprefix("counterfactual_").replace("_", " ")
    rates = {"precision": "precisions", "accuracy": "accuracies"}.get(rates, f"{rates}s")
    none = f"{row['value']:.3f}" == "0.000"
    if base.startswith("counterfactual_"):
        changes = "leaves" if none else "changes"
        told = f"Over the classes, exchanging only the words of the group {changes} {rates}"
    else:
        lie = "lie with" if none else "lie apart from"
        told = f"Over the classes, {rates} of {row['group']} {lie} those of {reference}"
    noise = " without sampling noise" if corrected else ""
    return told, f"root mean square {row['value']:.3f}{noise}"
