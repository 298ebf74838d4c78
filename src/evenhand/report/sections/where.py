"""Where to look: ranking, calibration and label error by group, gaps against a group's share."""

import re
from typing import Any

from evenhand.findings.sentences import number, signed, words
from evenhand.report.blocks import Block, as_csv, figure, folded, section, slug, table
from evenhand.report.forests import forest_figure, numbers_table, rows_csv
from evenhand.report.labels import cell, short
from evenhand.report.palette import SERIES
from evenhand.report.sections.label_error import label_error
from evenhand.report.view import View, by_size

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
    for row in by_size(view.whole(LENS, "auc_gap")):
        low, high = row["family_low"], row["family_high"]
        if (
            row["value"] is not None
            and low is not None
            and high is not None
            and (low > 0 or high < 0)
        ):
            way = "better" if row["value"] > 0 else "less well"
            return f"The score ranks {short(row['group'])} {way} than {short(row['reference'])}"
    if view.whole(LENS, "auc_gap"):
        return "No group’s cases are ranked surely better or less well by the score"
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
            order=sorted(rows, key=lambda row: str(row["group"])),
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
                "y_axis": "Share of true cases",
                "x_domain": [0, 1],
                "y_domain": [0, 1],
                "y_format": "%",
                "diagonal": [0, 1],
                "title": title,
            }
        ],
        read="on the dashed line a score is the chance of the truth. A group whose curve lies "
        "above the others’ is scored too low for what is the case.",
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
                    "y_axis": f"Gap in {words('true_positive_rate')}",
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
