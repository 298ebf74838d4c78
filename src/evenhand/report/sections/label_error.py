"""Label error by group: how often labels are wrong, and what a truth known to err would change."""

from collections.abc import Sequence
from typing import Any

from evenhand.findings.sentences import words
from evenhand.report.blocks import Block, figure, slug
from evenhand.report.forests import interval_text, numbers_table, rows_csv, value_text
from evenhand.report.labels import opening, short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.report.view import Row, View, by_size

MOST_GROUPS = 20
ERRORS = (("false_negative_rate", "Missed"), ("false_positive_rate", "Wrongly given"))
CORRECTED = (
    ("thresholds", ("implied_threshold",)),
    ("labelers", ("implied_threshold", "criterion", "separation")),
)


def label_error(view: View) -> list[Block]:
    """Figures on label error; none where the record says nothing of it."""
    blocks: list[Block] = []
    if (view.record["data"].get("roles") or {}).get("labeler"):
        for attribute in view.attributes("statistical"):
            blocks += _wrong_labels(view, attribute)
    for lens, measures in CORRECTED:
        for attribute in view.attributes(lens):
            blocks += _truth_that_errs(view, lens, attribute, measures)
    return blocks


def _wrong_labels(view: View, attribute: str) -> list[Block]:
    """How often the label differs from the truth, either way, by group."""
    held = {
        name: view.whole("statistical", measure, attribute=attribute) for measure, name in ERRORS
    }
    rows = [row for found in held.values() for row in found]
    if len({row["class"] for row in rows}) != 1 or not any(r["value"] is not None for r in rows):
        return []
    series = {name: _by_group(found) for name, found in held.items()}
    return [
        _two_series(
            f"label-error-{slug(attribute)}",
            title=_told(view, attribute),
            plain=f"How often labels are wrong, by {short(attribute)}",
            charts=[("Share of labels that are wrong", series)],
            rows=rows,
            read="how often a label differs from the truth: missed, of the cases that are one, and "
            "wrongly given, of those that are none. A model trained on these labels learns the "
            f"errors with them. The line is the interval at {view.level} for all groups together.",
        )
    ]


def _told(view: View, attribute: str) -> str:
    for row in by_size(view.whole("statistical", "accuracy_gap", attribute=attribute)):
        low, high = row["family_low"], row["family_high"]
        if row["value"] is not None and None not in (low, high) and (low > 0 or high < 0):
            group, other = short(row["group"]), short(row["reference"])
            worse, better = (group, other) if row["value"] < 0 else (other, group)
            return f"Labels on {worse} are wrong more often than on {better}"
    return f"No difference by {short(attribute)} in how often labels are wrong can be told"


def _truth_that_errs(view: View, lens: str, attribute: str, measures: Sequence[str]) -> list[Block]:
    """Estimates against the recorded truth beside those behind a truth of known quality."""
    charts, every = [], []
    for measure in measures:
        mended = view.whole(lens, f"{measure}_corrected", attribute=attribute)
        if not any(row["value"] is not None for row in mended):
            continue
        known = {row["group"] for row in mended}
        plain = [r for r in view.whole(lens, measure, attribute=attribute) if r["group"] in known]
        series = {"As recorded": _by_group(plain), "Label error taken out": _by_group(mended)}
        charts.append((opening(words(measure)), series))
        every += [*plain, *mended]
    if not charts:
        return []
    return [
        _two_series(
            f"truth-error-{lens}-{slug(attribute)}",
            title=f"What the errors of the truth change, by {short(attribute)}",
            charts=charts,
            rows=every,
            read="the recorded truth is not always right. The second mark is the estimate behind "
            "a truth that errs as often as was stated; where the two lie apart, label error alone "
            "makes that much of the difference.",
        )
    ]


def _by_group(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row["group"]))[:MOST_GROUPS]


def _two_series(
    name: str,
    *,
    title: str,
    plain: str | None = None,
    charts: Sequence[tuple[str, dict[str, list[Row]]]],
    rows: Sequence[Row],
    read: str,
) -> Block:
    drawn: list[dict[str, Any]] = [
        {
            "kind": "grouped",
            "axis": axis,
            "title": axis if len(charts) > 1 else title,
            "rows": [
                {
                    "line": row["group"],
                    "series": kind,
                    "value": row["value"],
                    "low": row["family_low"],
                    "high": row["family_high"],
                    "tip": f"{short(row['group'])}, {kind.lower()}: {value_text(row)} "
                    f"{interval_text(row)}",
                }
                for kind, held in series.items()
                for row in held
            ],
        }
        for axis, series in charts
    ]
    kinds = list(charts[0][1])
    groups = {row["group"] for row in rows}
    return figure(
        name,
        title=title,
        plain=plain,
        charts=drawn,
        read=read,
        legend=[
            {"shape": SERIES_SHAPES[i], "colour": SERIES[i], "text": kind}
            for i, kind in enumerate(kinds)
        ],
        numbers=numbers_table(rows, caption=title, most=60),
        csv_text=rows_csv(rows),
        notes=[f"{MOST_GROUPS} of {len(groups):,} groups are drawn; all are in the CSV."]
        if len(groups) > MOST_GROUPS
        else [],
    )
