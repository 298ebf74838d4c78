"""What every remedy is measured by: the same lenses that audit decisions, on the test rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.decisions.labels import REST
from evenhand.decisions.table import Decisions
from evenhand.lenses.counterfactual import lens as counterfactual
from evenhand.lenses.norms import lens as norms
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.scope import HIDDEN_UNDER
from evenhand.lenses.statistical import lens as statistical
from evenhand.remedies.cells import Codes
from evenhand.stats.estimate import FloatArray, number
from evenhand.stats.ranks import average_ranks
from evenhand.stats.rates import rate

if TYPE_CHECKING:
    from evenhand.remedies.ledger.task import Fitted, Task
    from evenhand.remedies.ledger.texts import LedgerTexts

GROUP = "group"
BASELINE = "baseline"  # what every remedy is measured against: none
EVERYBODY = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMeasure:
    """A column of the ledger: its words, its lens, which way is better, one a group or one."""

    words: str
    lens: str
    better: str
    by_group: bool = False


def _size(words: str, lens: str, *, by_group: bool = False) -> LedgerMeasure:
    return LedgerMeasure(words=words, lens=lens, better="lower", by_group=by_group)


def _level(words: str) -> LedgerMeasure:
    return LedgerMeasure(words=words, lens="accuracy", better="higher")


def _signed(words: str, lens: str) -> LedgerMeasure:
    return LedgerMeasure(words=words, lens=lens, better="zero", by_group=True)


RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")
# Of two classes a gap has a sign: its name here, the lens's measure, and whether of the positive
# class. The true positive rate of the other class is the rate of true negatives (TPR₀).
SIGNED = {
    "selection_rate_gap": ("selection_rate_gap", True),
    "true_positive_rate_gap": ("true_positive_rate_gap", True),
    "true_negative_rate_gap": ("true_positive_rate_gap", False),
    "false_positive_rate_gap": ("false_positive_rate_gap", True),
}


def _signed_measures() -> dict[str, LedgerMeasure]:
    found = {}
    for name in SIGNED:
        words = name.removesuffix("_rate_gap").replace("_", " ")
        found[name] = _signed(f"{words} gap", "statistical")
        found[f"counterfactual_{name}"] = _signed(f"counterfactual {words} gap", "counterfactual")
    return found


MEASURES: dict[str, LedgerMeasure] = {
    "accuracy": _level("accuracy"),
    "trivial_accuracy": _level("accuracy of always deciding the most common class"),
    "balanced_accuracy": _level("mean true positive rate over classes"),
    "macro_f1": _level("mean F1 over classes"),
    "auc": _level("mean area under the curve over classes"),
    "selection_rate_gap_rms": _size("selection gaps", "statistical"),
    "selection_rate_gap_rms_corrected": _size("the same, less noise", "statistical"),
    "true_positive_rate_gap_rms": _size("true positive gaps", "statistical"),
    "true_positive_rate_gap_rms_corrected": _size("the same, less noise", "statistical"),
    "false_positive_rate_gap_rms": _size("false positive gaps", "statistical"),
    "false_positive_rate_gap_rms_corrected": _size("the same, less noise", "statistical"),
    "one_versus_rest_gap_rms": _size("true positive gaps, class by class", "statistical"),
    "one_versus_rest_gap_rms_fitted": _size("the same on the rows that set cuts", "statistical"),
    "counterfactual_selection_rate_gap_rms": _size(
        "counterfactual selection gaps", "counterfactual"
    ),
    "counterfactual_selection_rate_gap_rms_corrected": _size(
        "the same, less noise", "counterfactual"
    ),
    "counterfactual_true_positive_rate_gap_rms": _size("counterfactual gaps", "counterfactual"),
    "counterfactual_true_positive_rate_gap_rms_corrected": _size(
        "the same, less noise", "counterfactual"
    ),
    "counterfactual_false_positive_rate_gap_rms": _size("counterfactual FP gaps", "counterfactual"),
    "counterfactual_false_positive_rate_gap_rms_corrected": _size(
        "the same, less noise", "counterfactual"
    ),
    "flip_rate": _size("flip rate", "counterfactual"),
    "norm_bias": LedgerMeasure(words="norm bias ρ", lens="norms", better="zero", by_group=True),
    "norm_bias_irrelevant": LedgerMeasure(
        words="norm bias ρ without task words", lens="norms", better="zero", by_group=True
    ),
    "norm_slope": LedgerMeasure(words="norm slope", lens="norms", better="zero", by_group=True),
    "norm_correlation_mean": _size("mean |r|", "norms", by_group=True),
    "norm_bias_second": LedgerMeasure(
        words="norm bias ρ, second scorer", lens="norms", better="zero", by_group=True
    ),
    "norm_slope_second": LedgerMeasure(
        words="norm slope, second scorer", lens="norms", better="zero", by_group=True
    ),
    "norm_correlation_mean_second": _size("mean |r|, second scorer", "norms", by_group=True),
    **_signed_measures(),
}
MANY_CLASSES = "gaps have one sign for two classes alone"
CLASS_COLUMNS = (
    "selection_rate_gap",
    "true_positive_rate_gap",
    "false_positive_rate_gap",
    "one_versus_rest_gap",
    "one_versus_rest_gap_fitted",
    "counterfactual_selection_rate_gap",
    "counterfactual_true_positive_rate_gap",
    "counterfactual_false_positive_rate_gap",
    "norm_correlation",
    "norm_correlation_irrelevant",
    "norm_correlation_second",
)
Values = dict[str, dict[str, float | None]]
# Low, high and n of a value: what the test rows alone leave open about one model.
Span = list[float | None]
Spans = dict[str, dict[str, Span]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Decisions about the test rows, as they are and rewritten to each group, and the scores.

    `own` is the score of each row's own class, NaN where that class is unknown. `one_versus_rest`
    has classes × groups the rate of accepting a class's own rows for it, and `fitted` the same of
    the rows that set cuts. `under` has `own` again by each group's model, where there is one each.
    """

    decided: Codes
    do: Mapping[str, Codes]
    own: FloatArray
    auc: float
    one_versus_rest: FloatArray
    fitted: FloatArray
    under: Mapping[str, FloatArray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One remedy, representation and seed: values by measure and group, reasons, classes.

    `spans` has the intervals of the values at `level`, of those that the lenses give one.
    """

    values: Values
    spans: Spans
    level: float
    undefined: dict[str, str]
    classes: list[dict[str, Any]]


def outcome(task: "Task", fitted: "Fitted") -> Outcome:
    """What a trained remedy decides about the test rows.

    Where decisions need the group, a text rewritten to a group is decided as that group's.
    """
    rows = task.texts.rows
    at, group = rows.test, task.groups_of(rows.test)
    norm = task.texts.norm_features[at]
    scores = fitted.scores(task.features(at), group=group, norm=norm)
    do = {}
    for name in task.texts.do:
        other = np.full(at.size, name)
        under = fitted.scores(task.features(at, do=name), group=other, norm=norm)
        do[name] = fitted.decide(under, group=other)
    truth = rows.truth[at]
    own = np.where(truth >= 0, scores[np.arange(at.size), truth], np.nan)
    return Outcome(
        decided=fitted.decide(scores, group=group),
        do=do,
        own=own,
        auc=_mean_area(scores, truth),
        one_versus_rest=_accepted_rates(fitted.accepts(scores, group=group), rows, at),
        fitted=_fitted_rates(task, fitted),
        under=_by_each_model(task, fitted),
    )


def _by_each_model(task: "Task", fitted: "Fitted") -> dict[str, FloatArray]:
    """Scores of the rows' own classes by every group's own model, whoever the rows are."""
    if not fitted.by_group:
        return {}
    rows = task.texts.rows
    truth = rows.truth[rows.test]
    found = {}
    for name in task.texts.norm_groups:
        scores = fitted.scores(task.features(rows.test), group=np.full(rows.test.size, name))
        found[name] = np.where(truth >= 0, scores[np.arange(truth.size), truth], np.nan)
    return found


def _fitted_rates(task: "Task", fitted: "Fitted") -> FloatArray:
    """Rates on the validation rows, on which cuts are set."""
    at = task.texts.rows.validation
    group = task.groups_of(at)
    scores = fitted.scores(task.features(at), group=group, norm=task.texts.norm_features[at])
    return _accepted_rates(fitted.accepts(scores, group=group), task.texts.rows, at)


def _mean_area(scores: FloatArray, truth: Codes) -> float:
    """Mean over classes of the area under the curve of each against its rest."""
    areas = []
    for c in range(scores.shape[1]):
        own = truth == c
        n = int(own.sum())
        if 0 < n < truth.size:
            ranks = average_ranks(scores[:, c])[own].sum()
            areas.append((ranks - n * (n + 1) / 2) / (n * (truth.size - n)))
    return float(np.mean(areas)) if areas else float("nan")


def _accepted_rates(accepts: FloatArray, rows: Any, at: Codes) -> FloatArray:
    """Classes × groups: share of each cell's rows accepted for their own class."""
    truth, group = rows.truth[at], rows.group[at]
    shape = (len(rows.classes), len(rows.groups))
    known = np.flatnonzero(truth >= 0)
    cell = truth[known] * shape[1] + group[known]
    n = np.bincount(cell, minlength=shape[0] * shape[1])
    hits = np.bincount(cell, accepts[known, truth[known]], minlength=n.size)
    rate = np.full(n.size, np.nan)
    np.divide(hits, n, out=rate, where=n > 0)
    return rate.reshape(shape)


def measure_outcome(texts: "LedgerTexts", found: Outcome, *, level: float = 0.95) -> Measured:
    """Every measure of the ledger, through the lenses."""
    rows = texts.rows
    values: Values = {name: {} for name in MEASURES}
    spans: Spans = {}
    undefined: dict[str, str] = {}
    for name, value in _accuracies(rows, found).items():
        values[name] = {EVERYBODY: number(value)}
    right = rate(int((found.decided == rows.truth[rows.test]).sum()), rows.test.size, level=level)
    spans["accuracy"] = {EVERYBODY: [right.low, right.high, right.n]}
    decisions = decided_rows(texts, found)
    decisions.check()
    options = Options(level=level, settings={"not_class": False, "bootstrap": False})
    plain = statistical.measure(decisions, options).rows
    sizes = [f"{name}_{end}" for name in RATES for end in ("gap_rms", "gap_rms_corrected")]
    for name in sizes:
        _largest(values, spans, undefined, plain, name)
    paired = Rows.concatenate([])
    if texts.no_swap is None:
        paired = counterfactual.measure(decisions, options).rows
        for name in (*(f"counterfactual_{size}" for size in sizes), "flip_rate"):
            _largest(values, spans, undefined, paired, name)
    else:
        for name, each in MEASURES.items():
            if each.lens == "counterfactual":
                groups = rows.groups if each.by_group else (EVERYBODY,)
                values[name], undefined[name] = dict.fromkeys(groups), texts.no_swap
    _signed_gaps(rows, plain, paired, values, spans, undefined)
    trends = _norm_rows(texts, decisions, options, values, spans, undefined)
    classes = _class_rows(texts, found, plain, paired, trends)
    return Measured(values=values, spans=spans, level=level, undefined=undefined, classes=classes)


def _accuracies(rows: Any, found: Outcome) -> dict[str, float]:
    truth = rows.truth[rows.test]
    count = len(rows.classes)
    known = truth >= 0
    table = np.bincount(truth[known] * count + found.decided[known], minlength=count**2)
    table = table.reshape(count, count)
    hits, cases = table.diagonal(), table.sum(axis=1)
    decided = np.bincount(found.decided, minlength=count)
    there = cases > 0
    common = int(np.bincount(rows.truth[rows.train], minlength=count).argmax())
    return {
        "accuracy": hits.sum() / truth.size,
        "trivial_accuracy": float((truth == common).mean()),
        "balanced_accuracy": float((hits[there] / cases[there]).mean()),
        "macro_f1": float((2 * hits[there] / (cases + decided)[there]).mean()),
        "auc": found.auc,
        "one_versus_rest_gap_rms": _accepted_size(rows, found.one_versus_rest),
        "one_versus_rest_gap_rms_fitted": _accepted_size(rows, found.fitted),
    }


def _accepted_size(rows: Any, rates: FloatArray) -> float:
    """The largest over groups of the root mean square over classes of gaps to the reference.

    Of two classes the positive one alone: cuts make its rates equal, and the other's follow.
    """
    if rows.positive is not None:
        rates = rates[[rows.positive]]
    gaps = np.delete(rates - rates[:, [rows.reference]], rows.reference, axis=1)
    known = np.isfinite(gaps).any(axis=0)
    return float(np.sqrt(np.nanmean(gaps[:, known] ** 2, axis=0)).max()) if known.any() else np.nan


def _signed_gaps(
    rows: Any,
    plain: Rows,
    paired: Rows,
    values: Values,
    spans: Spans,
    undefined: dict[str, str],
) -> None:
    """Gaps of two classes with their sign, group by group; none where there are more classes."""
    for name, (measure, positive) in SIGNED.items():
        for start, source in (("", plain), ("counterfactual_", paired)):
            full = f"{start}{name}"
            if full in undefined:
                continue
            values[full] = dict.fromkeys(rows.groups)
            if rows.positive is None:
                undefined[full] = MANY_CLASSES
                continue
            title = rows.classes[rows.positive if positive else 1 - rows.positive]
            found = _cells(source, f"{start}{measure}", fewest=1)
            lines = source.where(
                **{"measure": f"{start}{measure}", "class": title, "stratum": None}
            )
            spans[full] = {}
            for group in rows.others:
                values[full][group] = found.get((title, group))
                _note_span(spans[full], group, lines.where(group=group))
            undefined[full] = "the reference, or no cases of it and the group"


def decided_rows(texts: "LedgerTexts", found: Outcome) -> Decisions:
    """The test rows as a table that any lens reads."""
    rows = texts.rows
    names = np.array(rows.classes, dtype=object)
    columns: dict[str, list[Any]] = {
        "truth": [rows.people.truth[k] for k in rows.test.tolist()],
        "decision": names[found.decided].tolist(),
        GROUP: np.array(rows.groups, dtype=object)[rows.group[rows.test]].tolist(),
        "score:truth": _nulls(found.own),
    }
    for name, codes in found.do.items():
        columns[f"decision@{name}"] = names[codes].tolist()
    for mark, held in (
        ("norm", texts.norms.first),
        ("norm_irrelevant", texts.norms.irrelevant),
        ("second", texts.norms.second),
    ):
        columns |= {f"{mark}@{name}": _nulls(column) for name, column in held.items()}
    settings: dict[str, Any] = {"reference": {GROUP: rows.groups[rows.reference]}}
    if rows.positive is not None:
        settings["positive"] = rows.classes[rows.positive]
    return Decisions(columns, truth="truth", decision="decision", group=GROUP, **settings)


def _nulls(column: FloatArray) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in column.tolist()]


def _note_span(spans: dict[str, Span], group: str, rows: Rows) -> None:
    """Keep the interval and n of the largest of some rows, where it has an interval."""
    known = np.flatnonzero(np.isfinite(rows["value"])) if len(rows) else np.zeros(0, dtype=int)
    if not known.size:
        return
    place = known[np.abs(rows["value"][known]).argmax()]
    low, high, n = (number(float(rows[name][place])) for name in ("low", "high", "n"))
    if low is not None and high is not None:
        spans[group] = [low, high, n]


def _largest(
    values: Values, spans: Spans, undefined: dict[str, str], rows: Rows, name: str
) -> None:
    """The largest over groups of a summary over classes; of two classes, |gap| itself."""
    found = rows.where(measure=name, stratum=None)
    numbers = [float(v) for v in found["value"] if np.isfinite(v)]
    spans[name] = {}
    _note_span(spans[name], EVERYBODY, found)
    if not numbers and name.endswith("_gap_rms"):
        gaps = rows.where(measure=name.removesuffix("_rms"), stratum=None)["value"]
        gaps = gaps[np.isfinite(gaps)]
        numbers = [float(np.sqrt(np.mean(gaps**2)))] if gaps.size else []
    values[name] = {EVERYBODY: max(numbers) if numbers else None}
    if not numbers:
        reasons = [str(each) for each in found["undefined"] if each]
        undefined[name] = reasons[0] if reasons else "no class has rows of two groups"


def _norm_rows(
    texts: "LedgerTexts",
    decisions: Decisions,
    options: Options,
    values: Values,
    spans: Spans,
    undefined: dict[str, str],
) -> dict[str, Rows]:
    """Rows of the norms lens by scorer, and their trends among the values."""
    found: dict[str, Rows] = {}
    if texts.norms.undefined is None:
        found["first"] = norms.measure(decisions, options).rows
        second = {name: f"second@{name}" for name in texts.norms.second}
        other = decisions.with_roles(norm=second, norm_irrelevant={})
        found["second"] = norms.measure(other, options).rows
    for name, each in MEASURES.items():
        if each.lens != "norms":
            continue
        rows = found.get("second" if name.endswith("_second") else "first")
        values[name], spans[name] = {}, {}
        for group in texts.rows.groups:
            measure = name.removesuffix("_second")
            value, why = _trend(rows, measure, group, texts.norms.undefined)
            values[name][group] = value
            if rows is not None:
                lines = rows.where(measure=measure, group=group, norm=group, stratum=None)
                _note_span(spans[name], group, lines)
            if why:
                undefined[name] = why
    return found


def _trend(
    rows: Rows | None, measure: str, group: str, why: str | None
) -> tuple[float | None, str | None]:
    """One summary over classes of a group with its own norm, or why there is none."""
    if rows is None:
        return None, why
    found = rows.where(measure=measure, group=group, norm=group, stratum=None)
    if not len(found):
        return None, "no norm of this group"
    value = number(float(found["value"][0]))
    return value, None if value is not None else str(found["undefined"][0])


def _class_rows(
    texts: "LedgerTexts",
    outcome: Outcome,
    plain: Rows,
    paired: Rows,
    trends: Mapping[str, Rows],
) -> list[dict[str, Any]]:
    """One entry for each class and group: gaps to the reference, correlations, training share."""
    rows = texts.rows
    train = rows.train
    shape = (len(rows.classes), len(rows.groups))
    cell = rows.truth[train] * shape[1] + rows.group[train]
    counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    tables: dict[str, dict[tuple[str, str], float]] = {}
    for end, rates, at in (
        ("", outcome.one_versus_rest, rows.test),
        ("_fitted", outcome.fitted, rows.validation),
    ):
        tables[f"one_versus_rest_gap{end}"] = _accepted_gaps(rows, rates, at)
    for name in CLASS_COLUMNS:
        if name in tables:
            continue
        source: Rows | None = plain
        if name.startswith("counterfactual"):
            source = paired
        elif name.startswith("norm"):
            source = trends.get("second" if name.endswith("_second") else "first")
        tables[name] = _cells(source, name.removesuffix("_second"))
    out: list[dict[str, Any]] = []
    for c, title in enumerate(rows.classes):
        for g, group in enumerate(rows.groups):
            entry: dict[str, Any] = {
                "class": title,
                "group": group,
                "training_rows": int(counts[c].sum()),
                "training_share": float(counts[c, g] / counts[c].sum()),
            }
            entry |= {name: tables[name].get((title, group)) for name in CLASS_COLUMNS}
            out.append(entry)
    return out


def _accepted_gaps(rows: Any, rates: FloatArray, at: Codes) -> dict[tuple[str, str], float]:
    """Gaps to the reference of the rates of acceptance, of cells that may be shown."""
    shape = rates.shape
    known = at[rows.truth[at] >= 0]
    cell = rows.truth[known] * shape[1] + rows.group[known]
    n = np.bincount(cell, minlength=rates.size).reshape(shape)
    return {
        (rows.classes[c], rows.groups[g]): float(rates[c, g] - rates[c, rows.reference])
        for c, g in np.ndindex(*shape)
        if g != rows.reference and min(n[c, g], n[c, rows.reference]) >= HIDDEN_UNDER
    }


def _cells(
    rows: Rows | None, measure: str, *, fewest: int = HIDDEN_UNDER
) -> dict[tuple[str, str], float]:
    if rows is None or not len(rows):
        return {}
    found = rows.where(measure=measure, stratum=None)
    own = measure.startswith("norm")
    columns = ("class", "group", "norm", "reference", "value", "n", "n_reference")
    return {
        (str(c), str(g)): float(v)
        for c, g, norm, other, v, *n in zip(*(found[k] for k in columns), strict=True)
        # Under ten cases a number may be about people one could name: it is left out.
        if np.isfinite(v) and np.nanmin(n) >= fewest
        if other != REST and (not own or g == norm)
    }
