"""The catalogue of measures, and what their records answer: distances, limits, which may lead.

A rate that is counted from cells brings its gap, ratio, spread and the rest with it.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from math import inf, isfinite, log
from typing import Any

from evenhand.errors import UsageError, nearest
from evenhand.lenses.kinds import (
    CELLS,
    NEGATIVE,
    POSITIVE,
    REVIEWED,
    SELECTED,
    Cells,
    Measure,
)
from evenhand.lenses.rows import UNEQUALLY_KNOWN

# What people type from habit, for the hint that names the full word.
SHORT = {
    "tpr": "true_positive_rate",
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "tnr": "true_negative_rate",
    "recall": "true_positive_rate",
    "ppv": "precision",
    "ppr": "selection_rate",
}


# What other tools call a measure, for the hint that names ours.
PEER_NAMES = {
    "selection_rate_gap": "demographic_parity statistical_parity dp spd group_fairness "
    "mean_difference independence",
    "selection_rate_ratio": "demographic_parity_ratio statistical_parity_ratio",
    "impact_ratio": "disparate_impact disparate_impact_ratio adverse_impact_ratio four_fifths",
    "true_positive_rate_gap": "equal_opportunity eod recall tpr_parity sensitivity",
    "true_positive_rate_ratio": "equal_opportunity_ratio",
    "false_positive_rate_gap": "predictive_equality fpr_parity",
    "equalised_odds": "equalized_odds equalised_odds_gap equalized_odds_gap average_odds "
    "average_abs_odds separation_criterion aod",
    "precision_gap": "predictive_parity sufficiency ppv_parity",
    "accuracy_gap": "overall_accuracy_equality accuracy_equality error_rate",
    "flip_rate": "counterfactual_fairness counterfactual_flip_rate",
    "calibration_slope": "calibration_error ece",
    "cost_ratio": "treatment_equality",
}
# A share that is to be as high as the score that it is taken at.
_BY_SCORE = "calibration"
_PEER_ENDINGS = ("_difference", "_diff", "_disparity", "_parity_difference")


def nearest_value(row: Mapping[str, Any]) -> float | None:
    """The value of a row; of a set of values the one nearest to no difference, or to its band.

    None where a row has neither.

    Examples:
        >>> row = {"measure": "cost_ratio_ratio", "value": None, "set_low": 1.5, "set_high": 3.0}
        >>> [nearest_value(row | more) for more in ({}, {"set_low": 0.5}, {"value": 2.0})]
        [1.5, 1.0, 2.0]
    """
    if row["value"] is not None:
        return float(row["value"])
    ends = (row.get("set_low"), row.get("set_high"))
    if ends == (None, None):
        return None
    low, high = (-inf if ends[0] is None else ends[0]), (inf if ends[1] is None else ends[1])
    still = CATALOGUE.get(row["measure"], _UNKNOWN).neutral
    first, last = row.get("limit_low"), row.get("limit_high")
    if still is None and first is not None and last is not None:
        still = (first + last) / 2
    if still is None:
        still = low if isfinite(low) else high
    return float(min(max(still, low), high))


def distance(row: Mapping[str, Any]) -> float:
    """How far a row lies from no difference; undefined last.

    Where no value means no difference and a band was agreed on, how far from its middle: for
    positive numbers without an end, such as cost ratios, in the logarithm.

    Examples:
        >>> row = {"limit_low": None, "limit_high": None}
        >>> distance(row | {"measure": "accuracy_ratio", "value": 0.75})
        0.25
        >>> band = {"limit_low": 2.0, "limit_high": 8.0}
        >>> [round(distance({"measure": "cost_ratio", "value": v} | band), 3) for v in (2, 8)]
        [0.693, 0.693]
    """
    value, low, high = nearest_value(row), row["limit_low"], row["limit_high"]
    if value is None:
        return -1.0
    record = CATALOGUE.get(row["measure"], _UNKNOWN)
    if record.neutral is not None or low is None or high is None:
        return record.size(value)
    if record.low == 0 and record.high == inf and low > 0 and value > 0:
        return abs(log(value / (low * high) ** 0.5))
    return abs(float(value) - float(low + high) / 2)


def surely_apart(row: Mapping[str, Any]) -> bool:
    """Whether the family interval leaves out no difference, or is there where nothing means that.

    Nothing is sure where the truth is known unequally often.

    Examples:
        >>> row = {"measure": "accuracy_gap", "family_low": -0.2, "family_high": -0.1}
        >>> surely_apart(row), surely_apart(row | {"family_high": 0.1})
        (True, False)
    """
    low, high = row["family_low"], row["family_high"]
    if low is None or high is None or row.get("unjudged") == UNEQUALLY_KNOWN:
        return False
    still = CATALOGUE.get(row["measure"], _UNKNOWN).neutral
    return still is None or bool(low > still or high < still)


# A measure of a record that this version does not know.
_UNKNOWN = Measure(name="", label="a measure", lenses=(), kind="number")


def _gap(rate: Measure, **more: Any) -> Measure:
    return Measure(
        name=f"{rate.name}_gap",
        label=f"{rate.label} gap",
        lenses=rate.lenses,
        kind="gap",
        base=rate.name,
        leads=rate.leads,
        **more,
    )


def rate_family(rate: Measure) -> list[Measure]:
    """A rate that is counted from cells, and everything that the statistical lens makes of it.

    Of an odds that is its gap and its ratio: sizes over classes, groups and strata are of shares.

    Examples:
        >>> [one.name for one in rate_family(measure("accuracy"))][:4]
        ['accuracy', 'accuracy_gap', 'accuracy_ratio', 'accuracy_gap_worst']
    """
    name, label = rate.name, rate.label
    shared: dict[str, Any] = {"lenses": rate.lenses, "base": name}
    worst, spread, rms = f"{name}_gap_worst", f"{name}_spread", f"{name}_gap_rms"
    sizes: list[tuple[str, str, dict[str, Any]]] = [
        (spread, f"{label} spread", {"counts": "groups", "parts": name}),
        (rms, f"typical {label} gap over classes", {"counts": "classes", "parts": f"{name}_gap"}),
    ]
    reach = {"low": -inf, "high": inf} if rate.kind == "odds" else {}
    # The rate itself may not lead: its gap does.
    family = [
        replace(rate, leads=False),
        _gap(rate, counts=rate.counts, unit=rate.unit, **reach),
        Measure(name=f"{name}_ratio", label=f"{label} ratio", kind="ratio", counts=rate.counts,
                unit=rate.unit, **shared),
    ]  # fmt: skip
    if rate.kind == "odds":
        return family
    family += [
        Measure(
            name=worst,
            label=f"widest {label} gap",
            kind="distance",
            floor=f"{worst}_null_level",
            **shared,
        ),
        Measure(
            name=f"{worst}_null_level",
            label=f"widest {label} gap by noise alone",
            kind="floor",
            **shared,
        ),
    ]
    for size, said, more in sizes:
        floor = f"{size}_null_level"
        family += [
            Measure(
                name=size, label=said, kind="distance", floor=floor,
                **more, **shared,
            ),
            Measure(
                name=f"{size}_corrected", label=f"{said}, noise removed", kind="distance",
                floor=floor, variant_of=size, **more, **shared,
            ),
            Measure(
                name=floor, label=f"{said} by noise alone", kind="floor",
                **more, **shared,
            ),
        ]  # fmt: skip
    test = f"{name}_gap_homogeneity"
    same = f"test that the {label} gap is the same in all strata"
    return [*family, Measure(name=test, label=same, kind="test", **shared)]


def _counted_rates() -> list[Measure]:
    """The rates that the statistical lens counts, in the order in which they lead."""

    def rate(name: str, hits: frozenset[str], cases: frozenset[str], **more: Any) -> Measure:
        cells = Cells(hits=hits, cases=cases)
        label = name.replace("_", " ")
        return Measure(
            name=name, label=label, lenses=("statistical",), kind="rate", cells=cells, **more
        )

    found, missed = frozenset({"true_positive"}), frozenset({"false_negative"})
    wrong, spared = frozenset({"false_positive"}), frozenset({"true_negative"})
    return [
        rate("selection_rate", SELECTED, frozenset(CELLS), leads=True),
        rate("true_positive_rate", found, POSITIVE, leads=True, mirror="false_negative_rate"),
        rate("false_positive_rate", wrong, NEGATIVE, leads=True, mirror="true_negative_rate"),
        rate("false_negative_rate", missed, POSITIVE, mirror="true_positive_rate"),
        rate("true_negative_rate", spared, NEGATIVE, mirror="false_positive_rate"),
        rate("precision", found, found | wrong),
        rate("accuracy", found | spared, REVIEWED, leads=True, many="accuracies"),
    ]  # fmt: skip


def _statistical() -> list[Measure]:
    shared: dict[str, Any] = {"lenses": ("statistical",)}
    auc = Measure(name="auc", label="AUC", kind="rate", **shared)
    return [
        *(one for rate in _counted_rates() for one in rate_family(rate)),
        Measure(name="equalised_odds", label="larger gap of the two error rates",
                kind="distance", **shared),
        Measure(
            # Against the group with the highest rate, whichever reference was asked for.
            name="impact_ratio", label="impact ratio", kind="ratio", base="selection_rate",
            **shared,
        ),
        auc,
        replace(_gap(auc), leads=True),
        Measure(name="calibration", label="calibration", kind="rate", **shared),
        Measure(name="calibration_intercept", label="calibration intercept", kind="number",
                **shared),
        Measure(name="calibration_slope", label="calibration slope", kind="number", **shared),
    ]  # fmt: skip


COUNTERFACTUAL_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


def _counterfactual() -> list[Measure]:
    shared: dict[str, Any] = {"lenses": ("counterfactual",), "unit": "pairs"}
    pairs: dict[str, Any] = {**shared, "counts": "pairs"}
    family = []
    for rate in COUNTERFACTUAL_RATES:
        said, name = rate.replace("_", " "), f"counterfactual_{rate}_gap"
        family.append(
            Measure(
                name=name, label=f"counterfactual {said} gap", kind="gap", base=rate, leads=True,
                **pairs,
            )
        )  # fmt: skip
        size = f"typical counterfactual {said} gap over classes"
        more = {**shared, "base": rate, "parts": name, "counts": "classes"}
        floor = f"{name}_rms_null_level"
        family += [
            Measure(name=f"{name}_rms", label=size, kind="distance", floor=floor,
                    **more),
            Measure(name=f"{name}_rms_corrected", label=f"{size}, noise removed", kind="distance",
                    floor=floor, variant_of=f"{name}_rms", **more),
            Measure(name=floor, label=f"{size} by noise alone", kind="floor", **more),
        ]  # fmt: skip
    return [
        *family,
        Measure(name="counterfactual_score_gap", label="counterfactual score gap", kind="gap",
                low=-inf, high=inf, **pairs),
        Measure(name="flip_rate", label="flip rate", kind="rate", **pairs),
        Measure(name="changed_share", label="share of texts that the swap changes", kind="rate",
                **pairs),
    ]  # fmt: skip


def _norms() -> list[Measure]:
    shared: dict[str, Any] = {"lenses": ("norms",)}
    classes: dict[str, Any] = {**shared, "counts": "classes", "unit": "classes"}
    mean = "norm_correlation_mean"

    def both(name: str, label: str, **more: Any) -> list[Measure]:
        other = f"{label}, by words that say nothing of the class"
        floor = more.pop("floor", None)
        return [
            Measure(name=name, label=label, floor=floor, **more),
            Measure(name=f"{name}_irrelevant", label=other, variant_of=name,
                    floor=floor and f"{floor}_irrelevant", **more),
        ]  # fmt: skip

    size = "typical correlation with a norm over classes"
    bias, corrected = both("norm_bias", "norm bias", kind="correlation", leads=True, **classes)
    return [
        Measure(name="group_share", label="share of the group", kind="rate", **shared),
        bias,
        corrected,
        *both("norm_bias_corrected", "norm bias, noise removed", kind="correlation", **classes),
        *both("norm_slope", "slope of norm bias", kind="gap", low=-inf, high=inf, **classes),
        *both(mean, size, kind="distance", floor=f"{mean}_null_level", **classes),
        *both(f"{mean}_corrected", f"{size}, noise removed", kind="distance", **classes),
        *both(f"{mean}_null_level", f"{size} by noise alone", kind="floor", **classes),
        *(
            # Many correlations by words that say nothing would hide the ones by all words.
            replace(one, leads=one.variant_of is None)
            for one in both("norm_correlation", "correlation with a norm", kind="correlation",
                            **shared)
        ),
    ]  # fmt: skip


def _implied(lens: str) -> list[Measure]:
    """What decisions imply, from scores near the cut or from labels."""
    near = "labels" if lens == "labelers" else "rows in the bandwidth"
    shared: dict[str, Any] = {"lenses": (lens,), "counts": near, "inferred": True}
    return [
        Measure(name="implied_threshold", label="implied threshold", kind="rate",
                **shared),
        Measure(name="implied_threshold_gap", label="implied threshold gap", kind="gap",
                base="implied_threshold", **shared),
        Measure(name="implied_threshold_corrected", label="implied threshold, label error removed",
                kind="rate", **shared),
        Measure(name="cost_ratio", label="weight of a miss", kind="number", low=0, leads=True,
                **shared),
        Measure(name="cost_ratio_ratio", label="relative weight of a miss", kind="ratio",
                base="cost_ratio", leads=True, **shared),
    ]  # fmt: skip


def _thresholds() -> list[Measure]:
    shared: dict[str, Any] = {"lenses": ("thresholds",), "kind": "rate"}
    return [
        *_implied("thresholds"),
        Measure(name="implied_threshold_linear", label="implied threshold by the local line",
                counts="rows in the bandwidth", inferred=True, **shared),
        Measure(name="implied_threshold_window", label="implied threshold in a fixed window",
                counts="rows in the bandwidth", inferred=True, **shared),
        Measure(name="prevalence_lowest_accepted",
                label="share of the truth at the lowest score accepted", **shared),
        Measure(name="prevalence_highest_refused",
                label="share of the truth at the highest score refused", **shared),
    ]  # fmt: skip


def _labelers() -> list[Measure]:
    """Where labelers draw the line, how well they tell the two apart, and what that implies."""
    shared: dict[str, Any] = {"lenses": ("labelers",), "counts": "labels"}
    number: dict[str, Any] = {**shared, "kind": "number", "inferred": True, "unit": "labels"}
    gap: dict[str, Any] = {**number, "kind": "gap", "low": -inf, "high": inf}
    return [
        Measure(name="criterion", label="bar", **number),
        Measure(name="separation", label="skill", **number),
        Measure(name="prevalence", label="prevalence", kind="rate", **shared),
        Measure(name="criterion_gap", label="difference in the bar", base="criterion", leads=True,
                **gap),
        Measure(name="separation_gap", label="difference in skill", base="separation", leads=True,
                **gap),
        Measure(name="prevalence_gap", label="prevalence gap", kind="gap", base="prevalence",
                **shared),
        *_implied("labelers"),
        Measure(name="cost_ratio_prevalence_part",
                label="part of the weight of a miss by prevalence", **gap),
        Measure(name="cost_ratio_bar_part", label="part of the weight of a miss by the bar", **gap),
        Measure(name="cost_ratio_skill_part", label="part of the weight of a miss by skill", **gap),
        Measure(name="criterion_gap_average", label="difference in the bar of the average labeler",
                base="criterion", variant_of="criterion_gap", leads=True, **gap),
        Measure(name="separation_gap_average", label="difference in skill of the average labeler",
                base="separation", variant_of="separation_gap", leads=True, **gap),
        Measure(name="cost_ratio_ratio_average",
                label="relative weight of a miss by the average labeler", leads=True,
                base="cost_ratio", variant_of="cost_ratio_ratio", **(gap | {"kind": "ratio"})),
        Measure(name="cost_ratio_bar_part_average",
                label="part of the weight of a miss by the bar of the average labeler",
                variant_of="cost_ratio_bar_part", **gap),
        Measure(name="cost_ratio_skill_part_average",
                label="part of the weight of a miss by the skill of the average labeler",
                variant_of="cost_ratio_skill_part", **gap),
        Measure(name="criterion_gap_shared", label="share of labelers who lean the same way",
                kind="rate", lenses=("labelers",), counts="labelers", unit="labelers",
                inferred=True),
        Measure(name="criterion_corrected", label="bar, label error removed", **number),
        Measure(name="separation_corrected", label="skill, label error removed", **number),
        Measure(name="prevalence_corrected", label="prevalence, label error removed", kind="rate",
                **shared),
        Measure(name="cost_ratio_corrected", label="weight of a miss, label error removed",
                **(number | {"low": 0.0})),
    ]  # fmt: skip


def _catalogue() -> dict[str, Measure]:
    """Every measure by its name; what two lenses give is one record that names both."""
    records: dict[str, Measure] = {}
    for make in (_statistical, _thresholds, _labelers, _counterfactual, _norms):
        for one in make():
            before = records.get(one.name)
            if before is not None:
                one = replace(
                    before,
                    lenses=(*before.lenses, *one.lenses),
                    counts=f"{before.counts} or {one.counts}",
                )
            records[one.name] = one
    return records


CATALOGUE = _catalogue()


def register(*records: Measure) -> ExitStack:
    """Add measures to the catalogue; as a context, until it ends.

    A rate with cells brings its gap, ratio, sizes and floors, and the statistical lens counts it.

    Examples:
        >>> share = Measure(
        ...     name="missed_share", label="missed share of errors", lenses=("statistical",),
        ...     kind="rate", cells=Cells(hits={"false_negative"},
        ...                              cases={"false_negative", "false_positive"}))
        >>> with register(share):
        ...     "missed_share_gap_rms" in CATALOGUE
        True
        >>> "missed_share" in CATALOGUE
        False
    """
    added: dict[str, Measure] = {}
    for record in records:
        for one in rate_family(record) if record.cells is not None else [record]:
            if one.name in CATALOGUE or one.name in added:
                raise UsageError(f"There is a measure {one.name!r} already. Choose another name.")
            added[one.name] = one
    CATALOGUE.update(added)
    undo = ExitStack()
    for name in added:
        undo.callback(CATALOGUE.pop, name)
    return undo


def measure(name: str) -> Measure:
    """The measure of this name; an unknown one is refused with the nearest known.

    Examples:
        >>> measure("true_positive_rate_gap").kind
        'gap'
    """
    if name not in CATALOGUE:
        raise UsageError(
            f"{name!r} is not a measure.{nearest(_as_ours(name), list(CATALOGUE))} "
            "See the list with: evenhand audit --list-measures"
        )
    return CATALOGUE[name]


def _as_ours(name: str) -> str:
    """Another tool's name of a measure, or a short one, in our words.

    Examples:
        >>> _as_ours("demographic_parity_difference"), _as_ours("fpr_diff"), _as_ours("tpr_gap")
        ('selection_rate_gap', 'false_positive_rate_gap', 'true_positive_rate_gap')
    """
    plain = name.lower().replace("-", "_").replace(" ", "_")
    stems = [plain, *(plain.removesuffix(end) for end in _PEER_ENDINGS if plain.endswith(end))]
    for stem in stems:
        for ours, theirs in PEER_NAMES.items():
            if stem in theirs.split():
                return ours
    stem = stems[-1] if len(stems) == 1 else f"{stems[1]}_gap"
    short, _, rest = stem.partition("_")
    return "_".join(part for part in (SHORT.get(short, short), rest) if part)


def look_up(name: str) -> Measure:
    """The measure of this name, or one of no known kind where an older record has it."""
    return CATALOGUE.get(name, _UNKNOWN)


def cells_of(rate: str) -> Cells:
    """The cells of a rate that is counted from decisions.

    Examples:
        >>> sorted(cells_of("precision").cases)
        ['false_positive', 'true_positive']
    """
    cells = measure(rate).cells
    if cells is None:
        raise UsageError(f"{rate!r} is not counted from cells.")
    return cells


def counted_rates(*, truth: bool = True) -> tuple[str, ...]:
    """The rates that are counted from cells; without a truth, those that need none.

    Examples:
        >>> counted_rates(truth=False)
        ('selection_rate',)
    """
    return tuple(
        name
        for name, one in CATALOGUE.items()
        if one.cells is not None and (truth or not one.cells.needs_truth)
    )


def leading_measures() -> tuple[str, ...]:
    """The measures that may lead an audit without limits, in their order."""
    return tuple(name for name, one in CATALOGUE.items() if one.leads)


def limit_band(name: str, text: str) -> tuple[float, float]:
    """The band that a limit means for this measure.

    One number is ± for a gap, [0, x] for a distance or a rate, [x, 1/x] for a ratio;
    `low:high` gives both sides.

    Examples:
        >>> limit_band("true_positive_rate_gap", "0.05"), limit_band("accuracy_gap_rms", "0.05")
        ((-0.05, 0.05), (0.0, 0.05))
        >>> limit_band("selection_rate_ratio", "0.8"), limit_band("accuracy", "0.7:1")
        ((0.8, 1.25), (0.7, 1.0))
    """
    record = measure(name)
    if name == _BY_SCORE:
        raise UsageError(
            f"{name} is the share of true cases at each score, which no one limit can judge. Set "
            "one on calibration_slope (1 is right), such as calibration_slope=0.8:1.25, or on "
            "calibration_intercept (0 is right)."
        )
    ends = _ends(name, text)
    if len(ends) == 2:
        low, high = ends
    elif record.kind == "ratio":
        low, high = sorted((ends[0], 1 / ends[0])) if ends[0] > 0 else (0.0, 0.0)
    elif record.kind in {"gap", "correlation"}:
        low, high = -abs(ends[0]), abs(ends[0])
    elif not record.takes_limit:
        raise UsageError(f"{name} is shown beside another measure and takes no limit.")
    else:
        low, high = 0.0, ends[0]
    if low >= high:
        raise UsageError(
            f"limit {name}={text} leaves no room between {low:g} and {high:g}. "
            "The lower end comes first and must be smaller."
        )
    _check_reach(record, text, low, high)
    return low, high


# Bands that such measures could be held to.
_EXAMPLES = {"rate": "0.7:1", "odds": "0.5:2", "ratio": "0.8:1.25"}


def _ends(name: str, text: str) -> list[float]:
    try:
        ends = [float(part) for part in str(text).split(":")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or any(e != e for e in ends):
        both = f"0.05, or {name}=-0.02:0.05 for both sides"
        example = _EXAMPLES.get(look_up(name).kind, both)
        raise UsageError(f"limit {name}={text} is not a number or a band. Write {name}={example}.")
    return ends


def _check_reach(record: Measure, text: str, low: float, high: float) -> None:
    """Refuse a band that every value lies in, and an end that no value can reach."""
    least, most = float(record.low or 0), float(record.high or 0)
    reach = f"it lies between {least:g} and {most:g}"
    if not isfinite(most):
        reach = f"it is {least:g} or more"
    if not (isfinite(low) and isfinite(high)):
        return  # said by whoever needs both ends
    if low <= least and high >= most:
        raise UsageError(
            f"limit {record.name}={text} can never fail, for the measure's reach is all in it: "
            f"{reach}. Write a narrower band, such as {record.name}={_example(record)}."
        )
    if low < least or high > most:
        raise UsageError(
            f"limit {record.name}={text} goes beyond what the measure can be: {reach}."
        )


def _example(record: Measure) -> str:
    return _EXAMPLES.get(record.kind, "0.05")
