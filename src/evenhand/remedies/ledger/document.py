"""The ledger as a document: one row a remedy and representation, with what none other beats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.remedies.ledger.files import SCHEMA, LedgerPart
from evenhand.remedies.ledger.intervals import FEWEST_SEEDS, row_variances, summary
from evenhand.remedies.ledger.measures import (
    BASELINE,
    CLASS_COLUMNS,
    MEASURES,
    RATES,
    SIGNED,
    Outcome,
)
from evenhand.remedies.ledger.remarks import remarks
from evenhand.remedies.ledger.sentences import remedy_sentence
from evenhand.remedies.ledger.trends import norm_estimates, small_group_rows

if TYPE_CHECKING:
    # A ledger is read and shown where nothing that trains one is installed.
    from evenhand.remedies.ledger.registry import LedgerRemedy
    from evenhand.remedies.ledger.texts import LedgerTexts

Trials = Mapping[tuple[str, str, int], Any]
# What remedies are weighed against each other by; sizes are better small, accuracy large.
PARETO = (
    "accuracy",
    "balanced_accuracy",
    "true_positive_rate_gap_rms",
    "false_positive_rate_gap_rms",
    "counterfactual_true_positive_rate_gap_rms",
    "counterfactual_false_positive_rate_gap_rms",
    "norm_slope",
    "norm_correlation_mean",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Remedies side by side; `document` is what ledger.json holds."""

    document: dict[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each remedy and representation."""
        return list(self.document["rows"])

    @property
    def classes(self) -> list[dict[str, Any]]:
        """One entry for each remedy, representation, seed, class and group."""
        return list(self.document["classes"])

    def row(self, remedy: str, representation: str | None = None) -> dict[str, Any]:
        """The row of one remedy, by default in the first representation."""
        for each in self.rows:
            if each["remedy"] == remedy and representation in (None, each["representation"]):
                return each
        raise KeyError(f"{remedy} on {representation}")

    def __str__(self) -> str:
        from evenhand.report.ledger import ledger_text

        return ledger_text(self.document)

    def chart(self, name: str | None = None) -> Any:
        """One of the report's charts of remedies, as `Audit.chart` gives those of an audit."""
        from evenhand.report.notebook import show_chart

        return show_chart(None, name, ledger=self.document)

    def _repr_html_(self) -> str:
        from evenhand.report.notebook import as_ledger_fragment

        return as_ledger_fragment(self.document)


def build_ledger(
    texts: "LedgerTexts",
    entries: "Sequence[LedgerRemedy]",
    trials: Trials,
    *,
    arguments: Mapping[str, Any],
    seconds: float,
) -> Ledger:
    """The document, from how every part ended."""
    from evenhand import __version__

    rows: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    small: list[dict[str, Any]] = []
    level = float(arguments["level"])
    for representation in texts.representations:
        block = _block(texts, entries, trials, representation, level=level)
        mark_pareto(block)
        rows += block
        runs = {entry.name: _outcomes(trials, entry.name, representation) for entry in entries}
        place = {"representation": representation}
        small += [place | each for each in small_group_rows(texts, runs, level=level)]
        for entry in entries:
            for (name, where, seed), trial in trials.items():
                if (name, where) == (entry.name, representation) and trial.part is not None:
                    run = {"remedy": name, "representation": where, "seed": seed}
                    classes += [{**run, **each} for each in trial.part.measured.classes]
    groups = texts.rows.groups
    for row in rows:
        told = [remedy_sentence(row, groups=groups), *remarks(row, groups=groups)]
        row["sentence"] = " ".join(each for each in told if each)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "made": {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": __version__,
            "seconds": round(seconds, 3),
            "arguments": dict(arguments),
        },
        "data": {
            "fit_rows": int(texts.rows.fit.size),
            "validation_rows": int(texts.rows.validation.size),
            "test_rows": int(texts.rows.test.size),
            "classes": list(texts.rows.classes),
            "groups": list(groups),
            "reference": groups[texts.rows.reference],
            "positive": None
            if texts.rows.positive is None
            else texts.rows.classes[texts.rows.positive],
        },
        "rows": rows,
        "classes": classes,
        "class_means": class_means(classes),
        "small_groups": small,
        "pareto": pareto_chart(rows),
        "contrast": contrast_chart(rows),
        "notes": _notes(texts, arguments),
    }
    return Ledger(document=document)


def pareto_values(row: Mapping[str, Any]) -> list[float]:
    """The numbers of a row that Pareto weighs, all better when small; NaN where undefined.

    Of measures with one value a group the mean size over groups counts.
    """
    out = []
    for name in PARETO:
        cells = [cell["value"] for cell in row["measures"][name].values()]
        known = [abs(value) for value in cells if value is not None]
        value = float(np.mean(known)) if known else float("nan")
        out.append(-value if MEASURES[name].better == "higher" else value)
    return out


def mark_pareto(rows: Sequence[dict[str, Any]]) -> None:
    """Mark the rows that no other is at least as good as on every column and better on one.

    Columns that some row lacks weigh nothing; a row without any value is never marked.
    """
    measured = [(row, pareto_values(row)) for row in rows if row["status"] == "measured"]
    known = [(row, values) for row, values in measured if np.isfinite(values).any()]
    if not known:
        return
    table = np.array([values for _, values in known])
    table = table[:, np.isfinite(table).all(axis=0)]
    for place, (row, _) in enumerate(known):
        others = np.delete(table, place, axis=0)
        as_good = (others <= table[place]).all(axis=1)
        better = (others < table[place]).any(axis=1)
        row["pareto"] = not bool((as_good & better).any())


def pareto_chart(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The data of the chart: accuracy against each size, by remedy and representation."""
    chart = []
    for row in rows:
        if row["status"] != "measured":
            continue
        entry: dict[str, Any] = {
            "remedy": row["remedy"],
            "representation": row["representation"],
            "pareto": row["pareto"],
            "needs_group_at_decision": row["needs_group_at_decision"],
        }
        for name, value in zip(PARETO, pareto_values(row), strict=True):
            sign = -1 if MEASURES[name].better == "higher" else 1
            entry[name] = sign * value if np.isfinite(value) else None
        chart.append(entry)
    return chart


def contrast_chart(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Statistical beside counterfactual gaps of every remedy: size and, of two classes, sign.

    `statistical` and `counterfactual` are means over runs, each with its SD (`_sd`); `group` is
    empty where a gap is a size over classes and groups.
    """
    chart: list[dict[str, Any]] = []
    for row in rows:
        if row["status"] != "measured":
            continue
        place = {key: row[key] for key in ("remedy", "representation", "pareto")}
        for name in (*(f"{rate}_gap_rms" for rate in RATES), *SIGNED):
            plain, paired = row["measures"][name], row["measures"][f"counterfactual_{name}"]
            for group in plain:
                pair = {"statistical": plain[group], "counterfactual": paired[group]}
                if any(cell["value"] is None for cell in pair.values()):
                    continue
                entry = {**place, "measure": name, "group": None if group == "all" else group}
                for kind, cell in pair.items():
                    entry |= {kind: cell["value"], f"{kind}_sd": cell["sd"]}
                chart.append(entry)
    return chart


def class_means(classes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Means over runs of what every class and group has, each with its SD and the runs behind it.

    Examples:
        >>> place = {"remedy": "augment", "representation": "bow", "class": "a", "group": "f"}
        >>> held = dict.fromkeys(CLASS_COLUMNS) | {"training_rows": 9, "training_share": 0.5}
        >>> runs = [place | held | {"seed": 0, "norm_correlation": r} for r in (0.1, 0.3)]
        >>> (mean,) = class_means(runs)
        >>> mean["norm_correlation"], round(mean["norm_correlation_sd"], 3), mean["runs"]
        (0.2, 0.141, 2)
    """
    keys = ("remedy", "representation", "class", "group")
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for entry in classes:
        found.setdefault(tuple(entry[key] for key in keys), []).append(entry)
    out = []
    for place, runs in found.items():
        mean = dict(zip(keys, place, strict=True))
        mean |= {name: runs[0][name] for name in ("training_rows", "training_share")}
        mean["runs"] = len(runs)
        for name in CLASS_COLUMNS:
            known = np.array([run[name] for run in runs if run[name] is not None])
            mean[name] = float(known.mean()) if known.size else None
            mean[f"{name}_sd"] = float(known.std(ddof=1)) if known.size > 1 else None
        out.append(mean)
    return out


def _outcomes(trials: Trials, remedy: str, representation: str) -> list[Outcome]:
    """What a remedy decided in every run that is done."""
    return [
        trial.part.outcome
        for (name, where, _), trial in trials.items()
        if (name, where) == (remedy, representation) and trial.part is not None
    ]


def _block(
    texts: "LedgerTexts",
    entries: "Sequence[LedgerRemedy]",
    trials: Trials,
    representation: str,
    *,
    level: float,
) -> list[dict[str, Any]]:
    """The rows of one representation, each beside its baseline seed by seed."""

    def parts(name: str) -> dict[int, LedgerPart]:
        return {
            seed: trial.part
            for (remedy, where, seed), trial in trials.items()
            if (remedy, where) == (name, representation) and trial.part is not None
        }

    baseline = parts(BASELINE)
    rows = []
    for entry in entries:
        own = parts(entry.name)
        shared = [seed for seed in own if seed in baseline]
        variances = []
        if len(shared) >= FEWEST_SEEDS and entry.name != BASELINE:
            variances = [
                row_variances(texts, own[s].outcome, baseline[s].outcome, seed=s) for s in shared
            ]
        measures = summary(
            [own[seed].measured.values for seed in shared],
            [baseline[seed].measured.values for seed in shared],
            variances=variances,
            spans=[own[seed].measured.spans for seed in shared],
            estimates=norm_estimates(texts, [own[s].outcome for s in shared], level=level),
            undefined=next(iter(own.values())).measured.undefined if own else {},
            groups=texts.rows.groups,
            level=level,
        )
        rows.append(_row(entry, representation, own, trials, measures))
    return rows


def _row(
    entry: "LedgerRemedy",
    representation: str,
    own: Mapping[int, LedgerPart],
    trials: Trials,
    measures: dict[str, Any],
) -> dict[str, Any]:
    ended = [
        trial
        for (name, where, _), trial in trials.items()
        if (name, where) == (entry.name, representation) and trial.part is None
    ]
    status, reason = "measured", None
    if ended:
        reason = ended[0].reason
        status = ended[0].status if not own else "measured"
        if own:
            reason = f"{len(ended)} of {len(ended) + len(own)} seeds failed: {reason}"
    notes = dict.fromkeys(note for part in own.values() for note in part.notes)
    return {
        "remedy": entry.name,
        "words": entry.words,
        "representation": representation,
        "stage": entry.stage,
        "needs": list(entry.needs),
        "extra": entry.extra,
        "needs_group_at_decision": entry.needs_group_at_decision,
        "status": status,
        "reason": reason,
        "seeds": len(own),
        "seconds": round(sum(part.seconds for part in own.values()), 3),
        "chosen": [{"seed": seed, **part.chosen} for seed, part in own.items() if part.chosen],
        "notes": list(notes),
        "pareto": False,
        "measures": measures,
        "sentence": "",
    }


def _notes(texts: "LedgerTexts", arguments: Mapping[str, Any]) -> list[str]:
    notes = list(texts.rows.notes)
    if texts.no_swap is not None:
        notes.append(f"Counterfactual columns: {texts.no_swap}.".replace("..", "."))
    notes += texts.norms.notes
    if texts.norms.undefined is not None:
        notes.append(f"No norm columns: {texts.norms.undefined}")
    seeds = int(arguments["seeds"])
    if seeds == 1:
        notes.append("One training set: no spread over seeds and no intervals.")
    elif seeds < FEWEST_SEEDS:
        notes.append(
            f"{seeds} seeds give a spread and no interval; with {FEWEST_SEEDS} or more, "
            "differences from the baseline have one."
        )
    return notes
