"""The ledger as a document: one row a remedy and representation, with what none other beats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from evenhand.mitigation.ledger_files import SCHEMA, Part
from evenhand.mitigation.ledger_intervals import FEWEST_SEEDS, row_variances, summary
from evenhand.mitigation.ledger_measures import MEASURES
from evenhand.mitigation.ledger_sentences import remedy_sentence
from evenhand.mitigation.ledger_texts import LedgerTexts
from evenhand.mitigation.registry import BASELINE, Entry

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

    def row(self, remedy: str, representation: str = "bow") -> dict[str, Any]:
        """The row of one remedy."""
        for each in self.rows:
            if (each["remedy"], each["representation"]) == (remedy, representation):
                return each
        raise KeyError(f"{remedy} on {representation}")

    def __str__(self) -> str:
        told = [f"{r['remedy']} ({r['representation']}): {r['sentence']}" for r in self.rows]
        return "\n".join([*told, *self.document["notes"]])

    def chart(self, name: str | None = None) -> Any:
        """One of the report's charts of remedies, as `Audit.chart` gives those of an audit."""
        from evenhand.report.charts_show import show_chart

        return show_chart(None, name, ledger=self.document)

    def _repr_html_(self) -> str:
        from evenhand.report.notebook import as_ledger_fragment

        return as_ledger_fragment(self.document)


def build_ledger(
    texts: LedgerTexts,
    entries: Sequence[Entry],
    trials: Trials,
    *,
    arguments: Mapping[str, Any],
    seconds: float,
) -> Ledger:
    """The document, from how every part ended."""
    from evenhand import __version__

    rows: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    for representation in texts.representations:
        block = _block(texts, entries, trials, representation, level=float(arguments["level"]))
        mark_pareto(block)
        rows += block
        for entry in entries:
            for (name, where, seed), trial in trials.items():
                if (name, where) == (entry.name, representation) and trial.part is not None:
                    place = {"remedy": name, "representation": where, "seed": seed}
                    classes += [{**place, **each} for each in trial.part.measured.classes]
    groups = texts.rows.groups
    for row in rows:
        row["sentence"] = remedy_sentence(row, groups=groups)
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
        },
        "rows": rows,
        "classes": classes,
        "pareto": pareto_chart(rows),
        "notes": _notes(texts, arguments),
    }
    return Ledger(document=document)


def _block(
    texts: LedgerTexts,
    entries: Sequence[Entry],
    trials: Trials,
    representation: str,
    *,
    level: float,
) -> list[dict[str, Any]]:
    """The rows of one representation, each beside its baseline seed by seed."""

    def parts(name: str) -> dict[int, Part]:
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
            undefined=next(iter(own.values())).measured.undefined if own else {},
            groups=texts.rows.groups,
            level=level,
        )
        rows.append(_row(entry, representation, own, trials, measures))
    return rows


def _row(
    entry: Entry,
    representation: str,
    own: Mapping[int, Part],
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


def weighed(row: Mapping[str, Any]) -> list[float]:
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
    """Mark the rows that no other is at least as good as on every column and better on one."""
    done = [row for row in rows if row["status"] == "measured"]
    if not done:
        return
    table = np.array([weighed(row) for row in done])
    table = table[:, np.isfinite(table).all(axis=0)]
    for place, row in enumerate(done):
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
        for name, value in zip(PARETO, weighed(row), strict=True):
            sign = -1 if MEASURES[name].better == "higher" else 1
            entry[name] = sign * value if np.isfinite(value) else None
        chart.append(entry)
    return chart


def _notes(texts: LedgerTexts, arguments: Mapping[str, Any]) -> list[str]:
    notes = list(texts.rows.notes)
    if texts.no_swap is not None:
        notes.append(f"Counterfactual columns: {texts.no_swap}.".replace("..", "."))
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
