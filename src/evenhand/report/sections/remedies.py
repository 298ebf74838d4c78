"""Remedies: accuracy against gaps with intervals, gaps by class, and norms, from a ledger."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.report.blocks import (
    Block,
    axis_title,
    figure,
    folded,
    section,
    sentences,
    slug,
    table,
)
from evenhand.report.labels import cell, listed, short, spoken
from evenhand.report.sections.remedy_classes import (
    COLUMNS,
    GAPS,
    QUALITY,
    Line,
    by_class,
    by_group,
    class_rows,
    first_present,
    flat,
    form_of,
    is_baseline,
    ledger_csv,
    named,
    representation,
    said,
    spelled,
)
from evenhand.report.sections.remedy_contrast import (
    KINDS,
    contrast_figures,
    detail_blocks,
    kind_legend,
    kind_of,
    on_representation,
)
from evenhand.speech import number, opening, plural


def remedies_section(ledger: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The section on remedies; None where there is no ledger or it is empty."""
    every = [flat(row) for row in (ledger or {}).get("rows") or [] if isinstance(row, Mapping)]
    if not every or ledger is None:
        return None
    rows = [row for row in every if row.get("status") in (None, "measured")]
    blocks: list[Block] = []
    told = _told(rows)
    shown = list(dict.fromkeys(representation(row) for row in rows))
    for name in shown[:4]:
        mine = [row for row in rows if representation(row) == name]
        blocks += _pareto(name, mine, alone=len(shown) == 1)
    contrast = [row for row in ledger.get("contrast") or () if isinstance(row, Mapping)]
    groups = (ledger.get("data") or {}).get("groups") or ()
    for name in shown[:4]:
        on = on_representation(name, shown)
        blocks += contrast_figures(contrast, name, groups=groups, on=on)
    blocks += by_class(
        class_rows(ledger),
        shown,
        front={row.get("remedy") for row in rows if row.get("pareto")},
        slopes=by_group(ledger["rows"], "norm_slope"),
    )
    if told:
        blocks.append(folded("Every option in a sentence", [sentences(told)]))
    for name in shown[:4]:
        blocks += detail_blocks(ledger, name, on_representation(name, shown))
    blocks.append(_numbers(rows))
    blocks += _lacking(every)
    return section(
        "remedies",
        kicker="Remedies",
        heading=_heading(rows),
        lead="Each remedy was trained and measured on the same test rows. There is no best one: "
        "the front shows which no other matches in accuracy and in every gap at once.",
        blocks=blocks,
    )


def _told(rows: Sequence[Line]) -> list[str]:
    several = len({representation(row) for row in rows}) > 1
    found = []
    for row in rows:
        if row.get("sentence"):
            on = f" ({representation(row)})" if several else ""
            found.append(spoken(f"{row.get('remedy')}{on}: {row['sentence']}"))
    return found


def _lacking(rows: Sequence[Line]) -> list[Block]:
    """Options that were not measured, and why."""
    body = [
        [cell(row.get("remedy")), cell(representation(row)), spoken(row.get("reason")) or "–"]
        for row in rows
        if row.get("status") not in (None, "measured")
    ]
    if not body:
        return []
    columns = ("Remedy", "On", "Why not")
    return [folded("Options that were not measured", [table("Not measured", columns, body)])]


def _heading(rows: Sequence[Line]) -> str:
    front = [short(row.get("remedy")) for row in rows if row.get("pareto") and not is_baseline(row)]
    names = {row.get("remedy") for row in rows}
    if front:
        unique = list(dict.fromkeys(front))
        verb = "is" if len(unique) == 1 else "are"
        return (
            f"Of {plural(len(names), 'option')}, {listed(unique)} {verb} not beaten in "
            "every respect by another"
        )
    return f"{plural(len(names), 'option')} compared"


def _pareto(name: str, rows: Sequence[Line], *, alone: bool) -> list[Block]:
    quality, gap = first_present(rows, QUALITY), first_present(rows, GAPS)
    if quality is None or gap is None:
        return []
    known = [row for row in rows if row.get(quality) is not None and row.get(gap) is not None]
    points = []
    for row in known:
        x, y = _ends(row, gap), _ends(row, quality)
        points.append(
            {
                "x": row[gap],
                "x_low": x[0],
                "x_high": x[1],
                "y": row[quality],
                "y_low": y[0],
                "y_high": y[1],
                "kind": kind_of(row),
                "name": short(row.get("remedy"), most=22),
                "tip": f"{short(row.get('remedy'))}: {spelled(quality)} "
                f"{said(row[quality], quality)}, gap {said(row[gap], gap)}",
            }
        )
    where = "" if alone or not name else f", on {named(name)}"
    title = f"{opening(spelled(quality))} against {spelled(gap)}{where}"
    columns = ("Remedy", spelled(quality), "Interval", spelled(gap), "Interval ", "On the front")
    body = [
        [
            cell(row.get("remedy")),
            number(row[quality]),
            _interval(row, quality),
            number(row[gap]),
            _interval(row, gap),
            "yes" if row.get("pareto") else "no",
        ]
        for row in known
    ]
    return [
        figure(
            f"pareto-{slug(name)}",
            title=title,
            charts=[
                {
                    "kind": "scatter",
                    "points": points,
                    "kinds": {kind: KINDS[kind][:2] for kind in KINDS},
                    "x_axis": f"{axis_title(opening(spelled(gap)), form_of(gap))} (left is better)",
                    "x_format": form_of(gap),
                    "y_axis": f"{axis_title(opening(spelled(quality)), form_of(quality))} "
                    "(up is better)",
                    "y_format": form_of(quality),
                    "named": 14,
                    "title": title,
                }
            ],
            read="up and to the left is better in both. The front weighs every measure of the "
            "ledger, so an option on it may look worse in these two; where intervals overlap, the "
            "order is open.",
            legend=kind_legend(points),
            numbers=table(title, columns, body, numbers=columns[1:5]),
            csv_text=ledger_csv(known),
        )
    ]


def _numbers(rows: Sequence[Line]) -> Block:
    """Every measure of every option: measures below one another, as there are more of them."""
    kept = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    several = len({representation(row) for row in rows}) > 1
    columns = ["Measure"]
    for row in rows:
        on = f", {named(representation(row))}" if several else ""
        columns.append(f"{short(row.get('remedy'), most=24)}{on}")
    body: list[list[Any]] = [
        [spelled(name), *(number(row.get(name)) for row in rows)] for name in kept
    ]
    needs = [row.get("needs_group") for row in rows]
    body.append(["needs the group", *("–" if n is None else "yes" if n else "no" for n in needs)])
    return folded(
        "All numbers of all remedies", [table("Ledger", columns, body, numbers=columns[1:])]
    )


def _ends(row: Line, key: str) -> tuple[float | None, float | None]:
    low, high, spread = (row.get(f"{key}{end}") for end in ("_low", "_high", "_sd"))
    if low is not None and high is not None:
        return low, high
    return (row[key] - spread, row[key] + spread) if spread is not None else (None, None)


def _interval(row: Line, key: str) -> str:
    if row.get(f"{key}_low") is None and row.get(f"{key}_sd") is not None:
        return f"± {number(row[f'{key}_sd'])} (sd over seeds)"
    low, high = _ends(row, key)
    return f"[{number(low)}, {number(high)}]" if low is not None else ""
