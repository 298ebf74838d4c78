"""What a row of the ledger says besides its sentence: gaps traded for gaps, cuts, norm bias.

Statistical and counterfactual gaps answer different questions, and a remedy may lower one by
raising the other; cuts may be equal on the rows that set them and nowhere else. Both are said.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.remedies.ledger.sentences import LEAST, Cell, direction, may_rise
from evenhand.speech import listed, signed

KINDS = (
    ("true_positive_rate", "true positive gaps"),
    ("false_positive_rate", "false positive gaps"),
    ("selection_rate", "selection gaps"),
)
SIGNED = (
    ("selection_rate_gap", "selection gap"),
    ("true_positive_rate_gap", "true positive gap"),
    ("true_negative_rate_gap", "true negative gap"),
)
RHO = (("norm_bias", ""), ("norm_bias_irrelevant", "without task words "))
CUTS = ("thresholds", "thresholds_exact")


def remarks(row: Mapping[str, Any], *, groups: Sequence[str]) -> list[str]:
    """Sentences on one measured row; none on others.

    Examples:
        >>> remarks({"status": "skipped"}, groups=["f", "m"])
        []
    """
    if row["status"] != "measured":
        return []
    measures = row["measures"]
    told = [norm_bias_words(measures, groups)]
    if row["remedy"] in CUTS:
        told.insert(0, cuts_words(measures, groups))
    if row["remedy"] != "baseline":
        told[:0] = [
            signed_trade_words(measures, groups) or trade_words(measures),
            sides_words(measures, groups),
        ]
    return [each for each in told if each]


def trade_words(measures: Mapping[str, Any]) -> str:
    """One kind of gap lowered and another raised, or perhaps raised; of the first rate that is so.

    Examples:
        >>> cell = {"low": None, "high": None, "difference_sd": None, "seeds": 1}
        >>> up = {"value": 0.150, "difference": 0.087, **cell}
        >>> down = {"value": 0.010, "difference": -0.059, **cell}
        >>> trade_words({"true_positive_rate_gap_rms": {"all": up},
        ...              "counterfactual_true_positive_rate_gap_rms": {"all": down}})
        'One gap for another: counterfactual true positive gaps fell from 6.9 to 1.0 points while \
statistical ones rose from 6.3 to 15.0.'
    """
    for rate, words in KINDS:
        name = f"{rate}_gap_rms"
        cells = [measures.get(key) for key in (name, f"counterfactual_{name}")]
        if not all(cells):
            continue
        plain, paired = (each["all"] for each in cells if each)
        if plain["difference"] is None or paired["difference"] is None:
            continue
        for fell, rose, kinds in (
            (paired, plain, ("counterfactual", "statistical")),
            (plain, paired, ("statistical", "counterfactual")),
        ):
            if direction(fell) >= 0 or not (direction(rose) > 0 or may_rise(rose)):
                continue
            sure = direction(rose) > 0
            verb = "rose" if sure else "may have risen"
            tail = "" if sure else "; that may be chance"
            return (
                f"One gap for another: {kinds[0]} {words} fell from {_points(fell)} points while "
                f"{kinds[1]} ones {verb} from {_points(rose)}{tail}."
            )
    return ""


def signed_trade_words(measures: Mapping[str, Any], groups: Sequence[str]) -> str:
    """The same of two classes, group by group: a gap with its sign tells more than a size does.

    Examples:
        >>> cell = {"difference_sd": None, "seeds": 5}
        >>> up = {"value": -0.130, "difference": -0.084, "low": -0.164, "high": -0.004, **cell}
        >>> down = {"value": -0.001, "difference": -0.112, "low": -0.15, "high": -0.07, **cell}
        >>> print(signed_trade_words({"true_positive_rate_gap": {"f": up},
        ...     "counterfactual_true_positive_rate_gap": {"f": down}}, ["f"]))
        One gap for another: the counterfactual true positive gap of 'f' fell from 11.1 to 0.1 \
points while the statistical one rose from 4.6 to 13.0.
    """
    # True positives lead, as among sizes; a gap that changed sides is told on its own.
    for name, words in (*SIGNED[1:], SIGNED[0]):
        for group in groups:
            cells = [measures.get(key, {}).get(group) for key in (name, f"counterfactual_{name}")]
            if any(cell is None or cell["value"] is None or cell["difference"] is None
                   for cell in cells):  # fmt: skip
                continue
            plain, paired = cells
            for fell, rose, kinds in (
                (paired, plain, ("counterfactual", "statistical")),
                (plain, paired, ("statistical", "counterfactual")),
            ):
                less, more = _by_side(fell, before=True), _by_side(rose, before=False)
                if direction(less) >= 0 or abs(less["value"]) >= abs(_before(less)):
                    continue
                sure = direction(more) > 0
                if _before(more) <= -LEAST or more["value"] <= abs(_before(more)):
                    continue
                if not (sure or may_rise(more)):
                    continue
                verb = "rose" if sure else "may have risen"
                tail = "" if sure else "; that may be chance"
                return (
                    f"One gap for another: the {kinds[0]} {words} of '{group}' fell from "
                    f"{_sizes(less)} points while the {kinds[1]} one {verb} from "
                    f"{_sizes(more)}{tail}."
                )
    return ""


def _by_side(cell: Cell, *, before: bool) -> dict[str, Any]:
    """A signed cell turned so that the gap before (or after) a remedy is positive."""
    side = -1 if (_before(cell) if before else cell["value"]) < 0 else 1
    turned = {**cell, "value": side * cell["value"], "difference": side * cell["difference"]}
    if cell["low"] is not None:
        low, high = sorted((side * cell["low"], side * cell["high"]))
        turned |= {"low": low, "high": high}
    return turned


def _before(cell: Cell) -> float:
    return float(cell["value"] - cell["difference"])


def _sizes(cell: Cell) -> str:
    return f"{100 * abs(_before(cell)):.1f} to {100 * abs(cell['value']):.1f}"


def sides_words(measures: Mapping[str, Any], groups: Sequence[str]) -> str:
    """Gaps of two classes that have changed their side, in the order of the groups."""
    told = []
    for group in groups:
        for name, words in SIGNED:
            cell = measures.get(name, {}).get(group)
            if cell is None or cell["value"] is None or cell["difference"] is None:
                continue
            before, after = cell["value"] - cell["difference"], cell["value"]
            far = min(abs(before), abs(after)) >= LEAST
            if before * after < 0 and far and direction(cell):
                told.append(
                    f"the {words} of '{group}' from {signed(100 * before, 1)} to "
                    f"{signed(100 * after, 1)} points"
                )
    return f"Changed sides: {listed(told)}." if told else ""


def cuts_words(measures: Mapping[str, Any], groups: Sequence[str]) -> str:
    """Class-by-class gaps on the rows that set the cuts and on others, beside ρ, which stays."""
    fitted = measures["one_versus_rest_gap_rms_fitted"]["all"]["value"]
    held = measures["one_versus_rest_gap_rms"]["all"]["value"]
    if fitted is None or held is None:
        return ""
    still = [
        f"'{group}' {signed(cell['value'], 2)}"
        for group in groups
        if (cell := measures["norm_bias"][group])["value"] is not None and cell["difference"] == 0
    ]
    rho = f"; norm bias ρ stays exactly as it was ({listed(still)})" if still else ""
    return (
        f"Class by class, the gap is {100 * fitted:.1f} points on the rows that set the cuts and "
        f"{100 * held:.1f} on the test rows{rho}."
    )


def norm_bias_words(measures: Mapping[str, Any], groups: Sequence[str]) -> str:
    """ρ of every group with its interval and p, and the same without the words of the task."""
    told = []
    for group in groups:
        parts = []
        for name, words in RHO:
            cell = measures[name][group]
            if cell["value"] is None or cell["value_low"] is None:
                continue
            p = "p < 0.001" if cell["p"] < 0.001 else f"p {cell['p']:.3f}"
            parts.append(
                f"{words}{signed(cell['value'], 2)} ({signed(cell['value_low'], 2)} to "
                f"{signed(cell['value_high'], 2)}, {p})"
            )
        if parts:
            told.append(f"'{group}' {', '.join(parts)}")
    return f"Norm bias ρ: {'; '.join(told)}." if told else ""


def _points(cell: Cell) -> str:
    before = cell["value"] - cell["difference"]
    return f"{100 * before:.1f} to {100 * cell['value']:.1f}"
