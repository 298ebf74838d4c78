"""Rows of a ledger as figures read them: flat, of one group and seed, the front first."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.report.blocks import as_csv
from evenhand.report.labels import short

Line = Mapping[str, Any]
QUALITY = ("accuracy", "balanced_accuracy", "macro_f1", "auc")
GAPS = (
    "true_positive_rate_gap_rms_corrected",
    "true_positive_rate_gap_rms",
    "false_positive_rate_gap_rms",
    "counterfactual_true_positive_rate_gap_rms",
)
SHARES = ("training_share", "group_share", "share")
CLASS_GAPS = ("true_positive_rate_gap", "statistical_gap", "gap")
BASELINES = ("baseline", "none", "unmitigated")
COLUMNS = (
    *QUALITY,
    *GAPS,
    "flip_rate",
    "norm_bias",
    "norm_bias_irrelevant",
    "norm_slope",
    "norm_correlation_mean",
)


def flat(row: Line) -> dict[str, Any]:
    """A row whose measures stand beside one another, each for everybody or for its first group.

    Examples:
        >>> cell = {"value": 0.8, "low": 0.7, "high": 0.9, "sd": None}
        >>> held = flat({"remedy": "augment", "measures": {"accuracy": {"all": cell}}})
        >>> held["accuracy"], held["accuracy_low"], held["accuracy_sd"]
        (0.8, 0.7, None)
    """
    found = {key: value for key, value in row.items() if key != "measures"}
    for name, groups in (row.get("measures") or {}).items():
        cell_ = groups.get("all") or next(iter(groups.values()), None)
        if isinstance(cell_, Mapping):
            found[name] = cell_.get("value")
            found |= {f"{name}_{end}": cell_.get(end) for end in ("low", "high", "sd")}
    if "needs_group_at_decision" in row:
        found["needs_group"] = row["needs_group_at_decision"]
    return found


def by_group(rows: Iterable[Line], measure: str) -> dict[tuple[str, Any, Any], float | None]:
    """A measure of each representation, remedy and group."""
    return {
        (representation(row), row.get("remedy"), group): held.get("value")
        for row in rows
        if isinstance(row, Mapping)
        for group, held in ((row.get("measures") or {}).get(measure) or {}).items()
        if isinstance(held, Mapping)
    }


def ledger_csv(rows: Iterable[Line], columns: Sequence[str] = ()) -> str:
    """Rows as CSV: the columns asked for, or all measures."""
    held = list(rows)
    columns = columns or ["remedy", "representation", "pareto", *_measured(held)]
    return as_csv(columns, ([row.get(key) for key in columns] for row in held))


def _measured(rows: Sequence[Line]) -> list[str]:
    """The measures that some row has, each with what its interval is made of."""
    names = [f"{name}{end}" for name in COLUMNS for end in ("", "_low", "_high", "_sd")]
    return [name for name in names if any(row.get(name) is not None for row in rows)]


def first_seed(rows: Sequence[Line]) -> list[Line]:
    """The rows of the first seed."""
    seeds = sorted({row["seed"] for row in rows if row.get("seed") is not None})
    return [row for row in rows if not seeds or row.get("seed") == seeds[0]]


def seed_note(rows: Sequence[Line]) -> list[str]:
    """Which seed is drawn, where there are several."""
    seeds = sorted({row["seed"] for row in rows if row.get("seed") is not None})
    if len(seeds) < 2:
        return []
    return [f"Drawn for seed {seeds[0]}, the first of {len(seeds)}; the ledger holds the others."]


def drawn_note(count: int, most: int) -> list[str]:
    """How many options are drawn, where not all are."""
    if count <= most:
        return []
    return [f"{most} of {count:,} options are drawn, those on the front first."]


def front_first(rows: Sequence[Line], front: set[Any]) -> list[Any]:
    """The options: without a remedy first, then those on the front, then the others."""
    names = list(dict.fromkeys((not is_baseline(row), row.get("remedy")) for row in rows))
    names.sort(key=lambda one: (one[0], one[1] not in front))
    return [remedy for _, remedy in names]


def first_present(rows: Sequence[Line], names: tuple[str, ...]) -> str | None:
    """The first of these columns that some row has."""
    return next((n for n in names if any(row.get(n) is not None for row in rows)), None)


def representation(row: Line) -> str:
    """The representation that a row was measured on."""
    return str(row.get("representation") or "")


def named(name: str) -> str:
    """A representation in words.

    Examples:
        >>> named("bow"), named("vectors"), named("mine")
        ('bag of words', 'word vectors', 'mine')
    """
    known = {"bow": "bag of words", "vectors": "word vectors", "wordvectors": "word vectors"}
    return known.get(name, short(name))


def is_baseline(row: Line) -> bool:
    """Whether a row is of no remedy at all."""
    return str(row.get("remedy")).lower() in BASELINES


def spelled(name: str) -> str:
    """A measure's name in words."""
    return name.replace("_", " ").replace(" rms", " (root mean square)")
