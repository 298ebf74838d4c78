"""Where to look: ranking, calibration and label error by group, gaps against a group's share."""

import re
from collections.abc import Sequence
from typing import Any

from evenhand.findings.limits import is_unreviewed
from evenhand.findings.sentences.words import words
from evenhand.lenses.measures import surely_apart
from evenhand.lenses.rows import Row
from evenhand.report.blocks import (
    Block,
    as_csv,
    axis_form,
    figure,
    folded,
    forest_figure,
    interval_text,
    numbers_table,
    rows_csv,
    section,
    slug,
    table,
    value_text,
)
from evenhand.report.labels import cell, short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.report.view import View, by_size
from evenhand.speech import number, opening, signed

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
    rows = by_size(view.whole("statistical", "accuracy_gap", attribute=attribute))
    for row in rows:
        if row["value"] is not None and surely_apart(row):
            group, other = short(row["group"]), short(row["reference"])
            worse, better = (group, other) if row["value"] < 0 else (other, group)
            return f"Labels on {worse} are wrong more often than on {better}"
    if any(map(is_unreviewed, rows)):
        return f"The data cannot tell by {short(attribute)} whose labels are wrong more often"
    return f"The data prove no difference by {short(attribute)} in how often labels are wrong"


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
            "a truth that errs as often as was stated; where the two differ, label error alone "
            "makes that much of the difference.",
        )
    ]


def _by_group(rows: Sequence[Row]) -> list[Row]:
    shown = sorted(rows, key=lambda row: -(row["value"] if row["value"] is not None else -1.0))
    return shown[:MOST_GROUPS]


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
            "format": axis_form(next(row for held in series.values() for row in held)["measure"]),
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


LENS = "statistical"
_BIN = re.compile(r"(-?[\d.]+)-(-?[\d.]+)$")
MOST_LINES = 6


def where_section(view: View) -> dict[str, Any] | None:
    """The section that points to likely sources; None where the record holds none."""
    blocks: list[Block] = []
    for attribute in view.attributes(LENS):
        blocks += _discrimination(view, attribute)
        blocks += _calibration(view, attribute)
        blocks += _share(view, attribute)
    errors = label_error(view)
    if not blocks and not errors:
        return None
    heading = _heading(view) if blocks else errors[0]["title"]
    if errors and heading == errors[0]["title"]:
        errors[0]["title"] = errors[0]["plain"]
    blocks += errors
    return section(
        "where",
        kicker="Where to look",
        heading=heading,
        lead="A gap can come from scores that rank one group less well, from scores that mean "
        "something else for it, from how rare it is, or from labels that are wrong. These do not "
        "prove a source; they say where to look first.",
        blocks=blocks,
    )


def _heading(view: View) -> str:
    rows = by_size(view.whole(LENS, "auc_gap"))
    for row in rows:
        if row["value"] is not None and surely_apart(row):
            way = "better" if row["value"] > 0 else "less well"
            return f"The score ranks {short(row['group'])} {way} than {short(row['reference'])}"
    if any(map(is_unreviewed, rows)):
        return "The data cannot tell whether the score ranks each group’s cases equally well"
    if rows:
        return "The data prove no difference in how well the score ranks each group’s cases"
    return "Gaps and how rare a group is in each class, side by side"


def _discrimination(view: View, attribute: str) -> list[Block]:
    rows = view.whole(LENS, "auc", attribute=attribute)
    if not rows or len({row["class"] for row in rows}) > 1:
        return []
    return [
        forest_figure(
            f"auc-{slug(attribute)}",
            by_size(rows),
            title=f"How well the score ranks cases, by {short(attribute)}",
            axis="AUC: chance that a true case is scored above another",
            read="0.5 is ranking by chance, 1 is perfect. A group with a lower AUC is told apart "
            "less well, and no threshold can repair that.",
            form="~g",
        )
    ]


def _calibration(view: View, attribute: str) -> list[Block]:
    rows = [
        row
        for row in view.where(LENS, measure="calibration", attribute=attribute)
        if row["value"] is not None and str(row["stratum"]).startswith("score ")
    ]
    if len({row["class"] for row in rows}) != 1:
        return []
    groups = list(dict.fromkeys(row["group"] for row in rows))
    series = []
    for group in groups[:MOST_LINES]:
        mine = [row for row in rows if row["group"] == group]
        series.append(
            {
                "name": short(group, most=24),
                "x": [_middle(row["stratum"]) for row in mine],
                "y": [row["value"] for row in mine],
                "low": [row["low"] for row in mine],
                "high": [row["high"] for row in mine],
            }
        )
    title = f"What a score means, by {short(attribute)}"
    notes = []
    if len(groups) > MOST_LINES:
        notes.append(f"{MOST_LINES} of {len(groups):,} groups are drawn; all are in the CSV.")
    slopes = [
        row
        for measure in ("calibration_slope", "calibration_intercept")
        for row in view.whole(LENS, measure, attribute=attribute)
    ]
    drawn = figure(
        f"calibration-{slug(attribute)}",
        title=title,
        charts=[
            {
                "kind": "lines",
                "series": series,
                "x_axis": "Score",
                "y_axis": "Share of true cases at that score",
                "x_domain": [0, 1],
                "y_domain": [0, 1],
                "y_format": "%",
                "diagonal": [0, 1],
                "title": title,
            }
        ],
        read="on the dashed line a score is the chance of the truth. A group whose curve lies "
        "above the others’ is scored too low for what is the case. Upright lines are intervals at "
        f"{view.level}: where those of two groups overlap much, the curves may be the same.",
        legend=[
            {"shape": "line", "colour": SERIES[i], "text": one["name"], "dash": i}
            for i, one in enumerate(series)
        ],
        numbers=numbers_table(rows, caption=title, most=60),
        csv_text=rows_csv(rows),
        notes=notes,
    )
    extra = numbers_table(slopes, caption="Calibration slope and intercept (1 and 0 are perfect)")
    return [drawn, *([folded("Calibration slope and intercept", [extra])] if slopes else [])]


def _middle(stratum: str) -> float | None:
    found = _BIN.search(str(stratum))
    return (float(found[1]) + float(found[2])) / 2 if found else None


def _share(view: View, attribute: str) -> list[Block]:
    """Gaps in the true positive rate against the group's share of the class."""
    shares = {
        (row["class"], row["group"]): row["value"]
        for row in view.where("norms", measure="group_share", attribute=attribute, stratum=None)
        if row["value"] is not None
    }
    rows = [
        row
        for row in view.whole(LENS, "true_positive_rate_gap", attribute=attribute)
        if row["value"] is not None and (row["class"], row["group"]) in shares
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    if len(rows) < 3 or not groups:
        return []
    group = groups[0]
    mine = [row for row in rows if row["group"] == group]
    ranked = sorted(mine, key=lambda row: -abs(row["value"]))
    points = [
        {
            "x": shares[row["class"], group],
            "y": row["value"],
            "y_low": row["family_low"],
            "y_high": row["family_high"],
            "name": short(row["class"], most=22) if i < 6 else None,
            "tip": f"{short(row['class'])}: share {number(shares[row['class'], group])}, "
            f"gap {signed(row['value'])}",
        }
        for i, row in enumerate(ranked)
    ]
    title = f"Gaps beside the share of {short(group)} in each class"
    columns = ("Class", "Share", "Gap", "n")
    body = [
        [
            cell(row["class"]),
            number(shares[row["class"], group]),
            signed(row["value"]),
            f"{row['n']:,.0f} / {row['n_reference']:,.0f}",
        ]
        for row in mine
    ]
    return [
        figure(
            f"share-{slug(attribute)}",
            title=title,
            charts=[
                {
                    "kind": "scatter",
                    "points": points,
                    "x_axis": f"Share of {short(group)} in the class, in the audited rows",
                    "x_format": "%",
                    "y_axis": f"Gap in {words('true_positive_rate')}, in points",
                    "y_format": "points",
                    "y_zero": 0.0,
                    "title": title,
                }
            ],
            read="each mark is a class. A cloud that rises from left to right means that the model "
            "finds the group where it is common and misses it where it is rare: imbalance in the "
            "training data is then the first place to look.",
            numbers=table(title, columns, body, numbers=columns[1:], most=60),
            csv_text=as_csv(
                ("class", "group", "share", "gap", "low", "high"),
                (
                    [
                        row["class"],
                        group,
                        shares[row["class"], group],
                        row["value"],
                        row["family_low"],
                        row["family_high"],
                    ]
                    for row in mine
                ),
            ),
        )
    ]
