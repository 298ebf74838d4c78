"""The catalogue of measures: what exists, what kind of number it is, what no difference is."""

from dataclasses import dataclass

from evenhand.errors import UsageError, nearest

RATES = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "false_negative_rate",
    "true_negative_rate",
    "precision",
    "accuracy",
)
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
SUFFIXES = {
    "": "rate",
    "_gap": "gap",
    "_ratio": "ratio",
    "_gap_worst": "distance",
    "_gap_worst_null_level": "floor",
    "_spread": "distance",
    "_spread_corrected": "distance",
    "_spread_null_level": "floor",
    "_gap_rms": "distance",
    "_gap_rms_corrected": "distance",
    "_gap_rms_null_level": "floor",
    "_gap_homogeneity": "test",
}


COUNTERFACTUAL_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure's name, the lenses that give it and the kind of number it is."""

    name: str
    lenses: tuple[str, ...]
    kind: str


def _statistical() -> dict[str, str]:
    rates = {f"{rate}{suffix}": kind for rate in RATES for suffix, kind in SUFFIXES.items()}
    return rates | {
        "equalised_odds": "distance",
        "impact_ratio": "ratio",
        "auc": "rate",
        "auc_gap": "gap",
        "calibration": "rate",
        "calibration_intercept": "number",
        "calibration_slope": "number",
    }


def _causal() -> dict[str, str]:
    ends = {"_gap": "gap", "_gap_rms": "distance", "_gap_rms_corrected": "distance"}
    ends["_gap_rms_null_level"] = "floor"
    gaps = {
        f"counterfactual_{rate}{end}": kind
        for rate in COUNTERFACTUAL_RATES
        for end, kind in ends.items()
    }
    return gaps | {
        "counterfactual_score_gap": "gap",
        "flip_rate": "rate",
        "changed_share": "rate",
    }


def _norms() -> dict[str, str]:
    names = {
        "norm_correlation": "correlation",
        "norm_bias": "correlation",
        "norm_bias_corrected": "correlation",
        "norm_slope": "gap",
        "norm_correlation_mean": "distance",
        "norm_correlation_mean_null_level": "floor",
    }
    return {"group_share": "rate"} | {
        f"{name}{end}": kind for name, kind in names.items() for end in ("", "_irrelevant")
    }


def _thresholds() -> dict[str, str]:
    return {
        "implied_threshold": "rate",
        "implied_threshold_gap": "gap",
        "implied_threshold_corrected": "rate",
        "implied_threshold_window": "rate",
        "prevalence_lowest_accepted": "rate",
        "prevalence_highest_refused": "rate",
        "cost_ratio": "number",
        "cost_ratio_ratio": "ratio",
    }


def _labelers() -> dict[str, str]:
    named = {"separation": "number", "criterion": "number", "prevalence": "rate"}
    gaps = {f"{name}_gap": "gap" for name in named}
    scored = ("corrected", "window", "accepted", "refused")
    implied = {k: v for k, v in _thresholds().items() if not k.endswith(scored)}
    parts = {"cost_ratio_prevalence_part": "gap", "cost_ratio_behaviour_part": "gap"}
    average = {"criterion_gap_average": "gap", "separation_gap_average": "gap"}
    average["criterion_gap_shared"] = "rate"
    against_truth = {f"{name}_corrected": kind for name, kind in named.items()}
    against_truth |= {"cost_ratio_corrected": "number", "implied_threshold_corrected": "rate"}
    return named | gaps | implied | parts | average | against_truth


_BY_LENS: dict[str, dict[str, str]] = {
    "statistical": _statistical(),
    "causal": _causal(),
    "norms": _norms(),
    "thresholds": _thresholds(),
    "labelers": _labelers(),
}


def _catalogue() -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for lens, measures in _BY_LENS.items():
        for name, kind in measures.items():
            lenses = (*found[name].lenses, lens) if name in found else (lens,)
            found[name] = Measure(name=name, lenses=lenses, kind=kind)
    return found


CATALOGUE = _catalogue()


def measure(name: str) -> Measure:
    """The measure of this name; an unknown one is refused with the nearest known.

    Examples:
        >>> measure("true_positive_rate_gap").kind
        'gap'
    """
    if name not in CATALOGUE:
        short, _, rest = name.partition("_")
        spelt = "_".join(part for part in (SHORT.get(short.lower(), short), rest) if part)
        raise UsageError(
            f"{name!r} is not a measure.{nearest(spelt, list(CATALOGUE))} "
            "See the list with: evenhand audit --list-measures"
        )
    return CATALOGUE[name]


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
    kind = measure(name).kind
    try:
        ends = [float(part) for part in str(text).split(":")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or any(e != e for e in ends):
        raise UsageError(
            f"limit {name}={text} is not a number or a band. "
            f"Write {name}=0.05, or {name}=-0.02:0.05 for both sides."
        )
    if len(ends) == 2:
        low, high = ends
    elif kind == "ratio":
        low, high = sorted((ends[0], 1 / ends[0])) if ends[0] > 0 else (0.0, 0.0)
    elif kind in {"gap", "correlation"}:
        low, high = -abs(ends[0]), abs(ends[0])
    elif kind in {"floor", "test"}:
        raise UsageError(f"{name} is shown beside another measure and takes no limit.")
    else:
        low, high = 0.0, ends[0]
    if low >= high:
        raise UsageError(
            f"limit {name}={text} leaves no room between {low:g} and {high:g}. "
            "The lower end comes first and must be smaller."
        )
    return low, high
