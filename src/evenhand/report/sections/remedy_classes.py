"""Remedies class by class: strips of gaps, norms remedy by remedy, shares in training."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.findings.sentences import number, signed
from evenhand.report.blocks import Block, figure, folded, slug, table
from evenhand.report.labels import cell, listed, opening, short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.report.sections.ledger_rows import (
    CLASS_GAPS,
    SHARES,
    Line,
    drawn_note,
    first_present,
    first_seed,
    front_first,
    is_baseline,
    ledger_csv,
    named,
    representation,
    seed_note,
    spelled,
)

Slopes = Mapping[tuple[str, Any, Any], float | None]
MOST_FOLLOWED, MOST_STRIPS, MOST_PANELS, MOST_MORE = 3, 10, 6, 9


def by_class(
    classes: Sequence[Line], shown: Sequence[str], *, front: set[Any], slopes: Slopes
) -> list[Block]:
    """The figures of the first group on the first representation, and on demand all others."""
    blocks: list[Block] = []
    more: list[Block] = []
    left = 0
    for i, name in enumerate(shown):
        held = [row for row in classes if representation(row) == name]
        groups = list(dict.fromkeys(row.get("group") for row in held))
        on = f", on {named(name)}" if name and shown[1:] else ""
        for g, group in enumerate(groups):
            mine = [row for row in held if row.get("group") == group]
            drawn = [
                *strips_figure(name, mine, front, on),
                *norms_figure(name, mine, front, on, slopes),
            ]
            drawn += training_figure(name, mine, on)
            if i == g == 0:
                blocks += drawn
            elif len(more) + len(drawn) <= MOST_MORE:
                more += drawn
            else:
                left += bool(drawn)
    told = "The same for other groups" + (", and on other representations" if shown[1:] else "")
    if left:
        told += f" ({left:,} more are in the ledger alone)"
    return [*blocks, *([folded(told, more)] if more else [])]


def strips_figure(name: str, rows: Sequence[Line], front: set[Any], on: str) -> list[Block]:
    """Gaps by class on each remedy's line, with the baseline's outliers followed."""
    gap = first_present(rows, CLASS_GAPS)
    if gap is None:
        return []
    mine = first_seed([row for row in rows if row.get(gap) is not None])
    base = [row for row in mine if is_baseline(row)] or [
        row for row in mine if row.get("remedy") == mine[0].get("remedy")
    ]
    ranked = sorted(base, key=lambda row: -abs(row[gap]))
    followed = list(dict.fromkeys(str(row["class"]) for row in ranked))[:MOST_FOLLOWED]
    names = {one: short(one, most=24) for one in followed}
    order = front_first(mine, front)
    count, order = len(order), order[:MOST_STRIPS]
    mine = [row for remedy in order for row in mine if row.get("remedy") == remedy]
    group = short(mine[0].get("group"), most=24) or "the group"
    title = (
        f"Gaps of {group} for {listed(list(names.values()))}, largest without a remedy, followed"
        f"{on}"
    )
    lines = [
        {
            "line": str(row.get("remedy")),
            "value": row[gap],
            "followed": names.get(str(row["class"])),
            "tip": f"{short(row['class'])}: {signed(row[gap])}",
        }
        for row in mine
    ]
    columns = ("Remedy", "Class", spelled(gap))
    body = [[cell(row.get("remedy")), cell(row["class"]), signed(row[gap])] for row in mine]
    return [
        figure(
            f"strips-{slug(name)}-{slug(group)}",
            title=title,
            charts=[
                {
                    "kind": "strips",
                    "rows": lines,
                    "followed": list(names.values()),
                    "axis": opening(spelled(gap)),
                    "title": title,
                }
            ],
            read="each small line is a class; the marks follow the classes with the largest gap "
            "without a remedy. A remedy that works draws the lines together around 0, and one that "
            "only shifts them does not.",
            legend=[
                {"shape": SERIES_SHAPES[i], "colour": SERIES[i], "text": names[one]}
                for i, one in enumerate(followed)
            ],
            numbers=table(title, columns, body, numbers=columns[2:], most=120),
            csv_text=ledger_csv(mine, ("remedy", "seed", "class", "group", gap)),
            notes=[*drawn_note(count, MOST_STRIPS), *seed_note(rows)],
        )
    ]


def norms_figure(
    name: str, rows: Sequence[Line], front: set[Any], on: str, slopes: Slopes
) -> list[Block]:
    """Share against correlation in every class, one small chart a remedy."""
    share, r = first_present(rows, SHARES), first_present(rows, ("norm_correlation",))
    if share is None or r is None:
        return []
    mine = [
        row for row in first_seed(rows) if row.get(share) is not None and row.get(r) is not None
    ]
    if not mine:
        return []
    group = short(mine[0].get("group"), most=24) or "the group"
    order = front_first(mine, front)
    count, remedies = len(order), order[:MOST_PANELS]
    mine = [row for remedy in remedies for row in mine if row.get("remedy") == remedy]
    slope = {one: slopes.get((name, one, mine[0].get("group"))) for one in order}
    title = _flattest(slope, group, base={row["remedy"] for row in mine if is_baseline(row)})
    title += on
    charts = [
        {
            "kind": "scatter",
            "points": [
                {
                    "x": row[share],
                    "y": row[r],
                    "tip": f"{short(row['class'])}: {signed(row[r])}",
                }
                for row in mine
                if row.get("remedy") == one
            ],
            "x_axis": f"Share of {group} in the class",
            "x_format": "%",
            "x_domain": [0, 1],
            "y_axis": "Correlation with the norm",
            "y_domain": [-1, 1],
            "y_zero": 0.0,
            "title": short(one)
            + (f": slope {signed(slope[one])}" if slope[one] is not None else ""),
        }
        for one in remedies
    ]
    columns = ("Remedy", "Class", "Share", "Correlation")
    body = [
        [cell(row.get("remedy")), cell(row["class"]), number(row[share]), signed(row[r])]
        for row in mine
    ]
    return [
        figure(
            f"norms-remedies-{slug(name)}-{slug(group)}",
            title=title,
            charts=charts,
            read="as in the chart of norm bias, one for each option: the flatter the cloud, the "
            "less the norm is rewarded where the group is common. The slope is how much the "
            "correlation rises from a class without the group to one with nobody else.",
            numbers=table(title, columns, body, numbers=columns[2:], most=120),
            csv_text=ledger_csv(mine, ("remedy", "seed", "class", "group", share, r)),
            notes=[*drawn_note(count, MOST_PANELS), *seed_note(rows)],
        )
    ]


def _flattest(slope: Mapping[str, float | None], group: str, *, base: set[str]) -> str:
    """Which remedy brings the slope nearest to 0, in words; what is drawn where none is known."""
    known = {name: value for name, value in slope.items() if value is not None}
    before = next((value for name, value in known.items() if name in base), None)
    others = {name: value for name, value in known.items() if name not in base}
    if before is None or not others:
        return f"How far each option rewards looking typical of {group}"
    best = min(others, key=lambda name: abs(others[name]))
    if abs(others[best]) >= abs(before):
        return f"No remedy lowers the norm slope of {group} from {signed(before)}"
    return (
        f"{short(best)} brings the norm slope of {group} furthest towards 0: "
        f"from {signed(before)} to {signed(others[best])}"
    )


def training_figure(name: str, rows: Sequence[Line], on: str) -> list[Block]:
    """Gaps without a remedy against the group's share of the class in training."""
    gap = first_present(rows, CLASS_GAPS)
    base = [
        row
        for row in first_seed(rows)
        if is_baseline(row)
        and row.get("training_share") is not None
        and gap
        and row.get(gap) is not None
    ]
    mine = base
    if gap is None or len(mine) < 3:
        return []
    group = short(mine[0].get("group")) or "the group"
    title = f"Gaps without a remedy beside the share of {group} in training{on}"
    ranked = sorted(mine, key=lambda row: -abs(row[gap]))
    points = [
        {
            "x": row["training_share"],
            "y": row[gap],
            "name": short(row["class"], most=22) if i < 8 else None,
            "tip": f"{short(row['class'])}: {signed(row[gap])}",
        }
        for i, row in enumerate(ranked)
    ]
    columns = ("Class", "Share in training", spelled(gap))
    body = [[cell(r["class"]), number(r["training_share"]), signed(r[gap])] for r in ranked]
    return [
        figure(
            f"training-{slug(name)}-{slug(group)}",
            title=title,
            charts=[
                {
                    "kind": "scatter",
                    "points": points,
                    "x_axis": f"Share of {group} among the training rows of the class",
                    "x_format": "%",
                    "y_axis": opening(spelled(gap)),
                    "y_zero": 0.0,
                    "title": title,
                }
            ],
            read="each mark is a class. A cloud that rises from left to right means that the group "
            "is found where it was common in training and missed where it was rare.",
            numbers=table(title, columns, body, numbers=columns[1:], most=120),
            csv_text=ledger_csv(mine, ("class", "group", "training_share", "training_rows", gap)),
            notes=seed_note(rows),
        )
    ]
