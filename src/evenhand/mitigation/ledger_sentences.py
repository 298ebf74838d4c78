"""What each remedy moved and what it left, in words, from the same numbers as the table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Cell = Mapping[str, Any]
# Below these a change is not told as one, however small its error: people could not see it.
LEAST = 0.005
LEAST_SHARE = 0.10
LEAST_SLOPE = 0.10
AIMS = (
    ("true_positive_rate_gap_rms", "true positive gaps"),
    ("counterfactual_true_positive_rate_gap_rms", "counterfactual gaps"),
)
SLOPE = "norm_slope"


def remedy_sentence(row: Mapping[str, Any], *, groups: Sequence[str]) -> str:
    """Sentences on one row of the ledger, a verdict on nothing: what moved, what stayed.

    Examples:
        >>> row = {"remedy": "cocl", "status": "skipped", "reason": "needs names"}
        >>> remedy_sentence(row, groups=["f", "m"])
        'Not trained: needs names.'
    """
    if row["status"] == "skipped":
        return f"Not trained: {_ended(row['reason'])}"
    if row["status"] == "failed":
        return f"Training failed: {_ended(row['reason'])}"
    measures = row["measures"]
    if row["remedy"] == "baseline":
        return _baseline(measures, groups)
    moved, left = [], []
    for name, words in AIMS:
        cell = measures[name]["all"]
        if cell["value"] is None or cell["difference"] is None:
            continue
        way = direction(cell)
        if way:
            verb = "lowered" if way < 0 else "raised"
            moved.append(f"{verb} {words} from {_before(cell):.3f} to {cell['value']:.3f}")
        else:
            left.append(f"{words} ({cell['value']:.3f})")
    for group in groups:
        cell = measures[SLOPE][group]
        if cell["value"] is None or cell["difference"] is None:
            continue
        before, way = _before(cell), direction(cell, least=LEAST_SLOPE / 2)
        if way and abs(cell["value"]) < abs(before):
            moved.append(
                f"brought the norm slope of '{group}' from {before:+.2f} to {cell['value']:+.2f}"
            )
        elif way:
            moved.append(
                f"steepened the norm slope of '{group}' from {before:+.2f} to {cell['value']:+.2f}"
            )
        else:
            left.append(f"the norm slope of '{group}' ({cell['value']:+.2f})")
    told = [_sentence("", moved), _sentence("left ", left), *_warnings(measures, groups)]
    told.append(_cost(measures["accuracy"]["all"]))
    if row["needs_group_at_decision"]:
        told.append("Needs the group at decision time.")
    if row["seeds"] == 1:
        told.append("From one training set: how far another would differ is not known.")
    return " ".join(each for each in told if each)


def direction(cell: Cell, *, least: float = LEAST) -> int:
    """−1 or 1 where a measure moved, 0 where the change may be chance or is too small to see.

    By the interval where there is one, else by two standard errors over seeds, and with one seed
    by size alone: in every case a tenth of the baseline.
    """
    gap = cell["difference"]
    before = _before(cell)
    if abs(gap) < max(least, LEAST_SHARE * abs(before)):
        return 0
    if cell["low"] is not None:
        return 0 if cell["low"] <= 0 <= cell["high"] else int(np.sign(gap))
    if cell["difference_sd"] is not None:
        error = cell["difference_sd"] / np.sqrt(max(cell["seeds"], 1))
        return 0 if abs(gap) < 2 * error else int(np.sign(gap))
    return int(np.sign(gap))


def _before(cell: Cell) -> float:
    return float(cell["value"] - cell["difference"])


def _warnings(measures: Mapping[str, Any], groups: Sequence[str]) -> list[str]:
    """Over-correction, bias moved to another group, and what a second scorer says."""
    told = []
    fell: list[str] = []
    rose: list[str] = []
    for group in groups:
        cell = measures[SLOPE][group]
        if cell["value"] is None or cell["difference"] is None:
            continue
        before, after = _before(cell), cell["value"]
        if before * after < 0 and abs(after) > LEAST_SLOPE / 2 and direction(cell):
            told.append(
                f"Over-corrected for '{group}': the norm slope passed 0, from {before:+.2f} to "
                f"{after:+.2f}."
            )
        change = abs(after) - abs(before)
        if abs(change) > LEAST_SLOPE / 2 and direction(cell):
            (rose if change > 0 else fell).append(group)
    if fell and rose:
        told.append(
            f"Norm bias fell for {_names(fell)} and rose for {_names(rose)}: it was moved rather "
            "than lowered."
        )
    for group in fell:
        told += _second(measures, group)
    return told


def _second(measures: Mapping[str, Any], group: str) -> list[str]:
    first, cell = measures[SLOPE][group], measures[f"{SLOPE}_second"][group]
    if cell["value"] is None or cell["difference"] is None:
        return []
    before, after = _before(cell), cell["value"]
    fall = abs(_before(first)) - abs(first["value"])
    kept = abs(before) - abs(after)
    words = f"from {before:+.2f} to {after:+.2f}"
    if kept < fall / 2:
        return [f"By a second norm scorer less is gained for '{group}': {words}."]
    return [f"A second norm scorer agrees for '{group}': {words}."]


def _cost(cell: Cell) -> str:
    if cell["difference"] is None:
        return ""
    points = 100 * cell["difference"]
    if abs(points) < 0.05:
        return "Accuracy stayed as it was."
    return f"Accuracy {'gained' if points > 0 else 'lost'} {abs(points):.1f} points."


def _baseline(measures: Mapping[str, Any], groups: Sequence[str]) -> str:
    accuracy, trivial = (measures[n]["all"]["value"] for n in ("accuracy", "trivial_accuracy"))
    told = [
        f"Right in {accuracy:.1%} of the test rows; always deciding the most common class would "
        f"be right in {trivial:.1%}."
    ]
    gaps = measures["true_positive_rate_gap_rms"]["all"]["value"]
    swap = measures["counterfactual_true_positive_rate_gap_rms"]["all"]
    if gaps is not None:
        told.append(f"True positive gaps {gaps:.3f} (root mean square over classes).")
    if swap["value"] is not None:
        told.append(f"Counterfactual gaps {swap['value']:.3f}.")
    elif swap["undefined"]:
        told.append(f"Counterfactual gaps: {_ended(swap['undefined'])}")
    slopes = {g: measures[SLOPE][g]["value"] for g in groups}
    listed = [f"'{g}' {v:+.2f}" for g, v in slopes.items() if v is not None]
    if listed:
        told.append(f"Norm slopes: {', '.join(listed)}.")
    return " ".join(told)


def _sentence(verb: str, parts: list[str]) -> str:
    if not parts:
        return ""
    text = f"{verb}{'; '.join(parts)}."
    return text[0].upper() + text[1:]


def _names(groups: Sequence[str]) -> str:
    return " and ".join(f"'{each}'" for each in groups)


def _ended(reason: str) -> str:
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."
