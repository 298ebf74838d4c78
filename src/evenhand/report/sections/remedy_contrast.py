"""Remedies by both kinds of gap at once, and what a ledger knows in more detail, as tables.

Statistical gaps compare people of two groups, counterfactual ones a text with itself rewritten; a
remedy may lower either by raising the other. The tables stand on the page and in the terminal.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.report.blocks import Block, as_csv, axis_title, figure, folded, slug, table
from evenhand.report.labels import cell, short
from evenhand.report.palette import OUTSIDE, PLAIN, WITHIN
from evenhand.report.sections.remedy_classes import Line, is_baseline, named, representation
from evenhand.speech import opening, signed

KINDS = {
    "front": (WITHIN, "circle", "On the front: no other is as good in every respect"),
    "baseline": (OUTSIDE, "diamond", "Without a remedy"),
    "other": (PLAIN, "square", "Another is at least as good in every respect"),
}
SIZES = {
    "true_positive_rate_gap_rms": "true positive gaps",
    "false_positive_rate_gap_rms": "false positive gaps",
}
SIGNED = {
    "selection_rate_gap": ("selection gap", "PPR"),
    "true_positive_rate_gap": ("true positive gap", "TPR"),
    "true_negative_rate_gap": ("true positive gap of the other class", "TPR₀"),
}
# Which ends of a cell make an interval of the value itself.
ENDS = ("value_low", "value_high")


def kind_of(row: Line) -> str:
    """Which mark a remedy has: the baseline's, that of the front, or the others'."""
    return "baseline" if is_baseline(row) else "front" if row.get("pareto") else "other"


def kind_legend(points: Sequence[Line]) -> list[dict[str, str]]:
    """What the marks of these points mean."""
    there = {point["kind"] for point in points}
    return [
        {"shape": shape, "colour": colour, "text": text}
        for kind, (colour, shape, text) in KINDS.items()
        if kind in there
    ]


def contrast_figures(
    contrast: Sequence[Line], name: str, *, groups: Sequence[str], on: str
) -> list[Block]:
    """Both gaps of every remedy against each other: sizes, and of two classes with their sign."""
    mine = [row for row in contrast if representation(row) == name]
    blocks = []
    sizes = {key: words for key, words in SIZES.items() if any(r["measure"] == key for r in mine)}
    if sizes:
        title = f"Statistical against counterfactual gaps of each option{on}"
        read = (
            "left is a smaller statistical gap, below a smaller counterfactual one; on the dashed "
            "line both are equal. Marks are means over runs, lines their standard deviation."
        )
        charts = [
            _scatter([row for row in mine if row["measure"] == key], words, sign=False)
            for key, words in sizes.items()
        ]
        blocks.append(_contrast(f"contrast-{slug(name)}", title, read, charts, mine, list(sizes)))
    for group in groups:
        rows = [row for row in mine if row["group"] == group and row["measure"] in SIGNED]
        if not rows:
            continue
        title = f"Signed gaps of {short(group)}, statistical against counterfactual{on}"
        read = (
            "right of 0 the group has the higher rate, above 0 its words alone raise it; left "
            "above and right below, the two disagree in direction. On the dashed line both are "
            "equal. Marks are means over runs, lines their standard deviation."
        )
        charts = [
            _scatter([row for row in rows if row["measure"] == key], words, sign=True)
            for key, (words, _) in SIGNED.items()
            if any(row["measure"] == key for row in rows)
        ]
        place = f"signed-{slug(name)}-{slug(group)}"
        blocks.append(_contrast(place, title, read, charts, rows, list(SIGNED)))
    return blocks


def _scatter(rows: Sequence[Line], words: str, *, sign: bool) -> dict[str, Any]:
    points = []
    for row in rows:
        point: dict[str, Any] = {"kind": kind_of(row), "name": short(row["remedy"], most=22)}
        for axis, side in (("x", "statistical"), ("y", "counterfactual")):
            value, spread = row[side], row[f"{side}_sd"] or 0.0
            point |= {axis: value, f"{axis}_low": value - spread, f"{axis}_high": value + spread}
        point["tip"] = (
            f"{short(row['remedy'])}: statistical {_points(row['statistical'], sign=sign)}, "
            f"counterfactual {_points(row['counterfactual'], sign=sign)} points"
        )
        points.append(point)
    form = "points" if sign else "size"
    chart = {
        "kind": "scatter",
        "points": points,
        "kinds": {kind: pair[:2] for kind, pair in KINDS.items()},
        "x_axis": axis_title(f"Statistical {words}", form),
        "y_axis": axis_title(f"Counterfactual {words}", form),
        "x_format": form,
        "y_format": form,
        "diagonal": True,
        "named": 10,
        "title": opening(words),
    }
    return chart | ({"x_zero": 0.0, "y_zero": 0.0} if sign else {})


def _contrast(
    place: str,
    title: str,
    read: str,
    charts: Sequence[Mapping[str, Any]],
    rows: Sequence[Line],
    measures: Sequence[str],
) -> Block:
    mine = [row for row in rows if row["measure"] in measures]
    is_signed = mine[0]["group"] is not None
    columns = ("Remedy", "Gap", "Statistical", "± ", "Counterfactual", "±")
    body = [
        [
            cell(row["remedy"]),
            SIZES.get(row["measure"]) or SIGNED[row["measure"]][0],
            *(
                text
                for side in ("statistical", "counterfactual")
                for text in (
                    _points(row[side], sign=is_signed),
                    _points(row[f"{side}_sd"], sign=False),
                )
            ),
        ]
        for row in mine
    ]
    keys = ["remedy", "representation", "measure", "group", "statistical", "statistical_sd"]
    keys += ["counterfactual", "counterfactual_sd"]
    points = [point for chart in charts for point in chart["points"]]
    return figure(
        place,
        title=title,
        charts=charts,
        read=read,
        legend=kind_legend(points),
        numbers=table(f"{title}, in points", columns, body, numbers=columns[2:], most=120),
        csv_text=as_csv(keys, ([row[key] for key in keys] for row in mine)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """A table of a ledger in words, for the page and the terminal: columns and their cells."""

    title: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    note: str


def detail_blocks(ledger: Line, name: str, on: str) -> list[Block]:
    """The tables of one representation, folded."""
    return [
        folded(
            f"{found.title}{on}",
            [
                table(
                    found.title,
                    found.columns,
                    ([*map(cell, row[:2]), *row[2:]] for row in found.rows),
                    numbers=found.columns[2:],
                )
            ],
        )
        for found in detail_tables(ledger, name)
    ]


def detail_tables(ledger: Line, name: str) -> Iterator[Detail]:
    """Norm bias with interval and p, class-by-class gaps, signed gaps, small groups."""
    rows = [
        row
        for row in ledger["rows"]
        if representation(row) == name and row.get("status") == "measured" and row.get("measures")
    ]
    for make in (_norm_bias, _cuts, _signed_gaps):
        found = make(rows)
        if found.rows:
            yield found
    small = [row for row in ledger.get("small_groups") or () if representation(row) == name]
    if small:
        yield _small(small)


def _norm_bias(rows: Sequence[Line]) -> Detail:
    body = []
    for row in rows:
        plain = row["measures"].get("norm_bias") or {}
        without = row["measures"].get("norm_bias_irrelevant") or {}
        for group, held in plain.items():
            if held.get("value") is not None:
                cells = [_interval(held), _interval(without.get(group) or {})]
                body.append([str(row["remedy"]), str(group), *cells])
    return Detail(
        title="Norm bias ρ over classes",
        columns=("Remedy", "Group", "ρ [interval] p", "Without task words"),
        rows=body,
        note="Mean over runs; the interval and p (by permutation) are over classes.",
    )


def _cuts(rows: Sequence[Line]) -> Detail:
    body = []
    for row in rows:
        held = [
            (row["measures"].get(f"one_versus_rest_gap_rms{end}") or {}).get("all") or {}
            for end in ("_fitted", "")
        ]
        if all(one.get("value") is not None for one in held):
            rho = [
                signed(one["value"], 2)
                for one in (row["measures"].get("norm_bias") or {}).values()
                if one.get("value") is not None
            ]
            sizes = [_points(one["value"], sign=False) for one in held]
            body.append([str(row["remedy"]), ", ".join(rho) or "–", *sizes])
    return Detail(
        title="Gaps class by class, one class against its rest",
        columns=("Remedy", "ρ", "On rows that set cuts", "On test rows"),
        rows=body,
        note="Points, root mean square over classes. Cuts by group that are exactly equal leave 0 "
        "on the rows that set them, another gap on others, and ρ as it was.",
    )


def _signed_gaps(rows: Sequence[Line]) -> Detail:
    body = []
    for row in rows:
        for group, held in (row["measures"].get("selection_rate_gap") or {}).items():
            if held.get("value") is None:
                continue
            cells = []
            for measure in SIGNED:
                for start in ("", "counterfactual_"):
                    one = (row["measures"].get(f"{start}{measure}") or {}).get(group) or {}
                    cells.append(_points_interval(one))
            body.append([str(row["remedy"]), str(group), *cells])
    columns = [f"{side} {mark}" for _, mark in SIGNED.values() for side in ("SG", "CG")]
    return Detail(
        title="Signed gaps",
        columns=("Remedy", "Group", *columns),
        rows=body,
        note="Points, group less reference. SG: people of the two groups; CG: a text against "
        "itself rewritten. PPR: selection rate; TPR: true positives; TPR₀: of the other class. "
        "Mean over runs; intervals are those of the test rows, wider by what runs differ by.",
    )


def _small(rows: Sequence[Line]) -> Detail:
    body = [
        [
            str(row["remedy"]) + (f" ({row['model']})" if row.get("model") else ""),
            f"{row['class']}, {row['group']} ({row['n']})",
            str(row["norm"]),
            _interval({**row, "value_low": row["low"], "value_high": row["high"]}),
            f"{row['significant']:.2f}",
            f"{row['detectable']:.2f}",
        ]
        for row in rows
    ]
    return Detail(
        title="Groups too small for a norm of their own",
        columns=("Remedy", "Who (rows)", "Norm", "r [interval] p", "Told from 0", "Found 4 in 5"),
        rows=body,
        note="With so few rows |r| must exceed the fifth column to be told from 0; one as large "
        "as the last would be found four times in five. Smaller ones cannot be ruled out.",
    )


def _interval(held: Line) -> str:
    low, high = (held.get(end) for end in ENDS)
    if held.get("value") is None:
        return "–"
    if low is None or high is None:
        return signed(held["value"], 2)
    p = held.get("p")
    chance = "" if p is None else " <.001" if p < 0.001 else f" {p:.3f}".replace("0.", ".", 1)
    return f"{signed(held['value'], 2)} [{signed(low, 2)}, {signed(high, 2)}]{chance}"


def _points(value: float | None, *, sign: bool) -> str:
    if value is None:
        return "–"
    return signed(100 * value, 1) if sign else f"{100 * value:.1f}"


def _points_interval(held: Line) -> str:
    """A gap in points, with the interval of the value where there is one."""
    told = _points(held.get("value"), sign=True)
    ends = [held.get(end) for end in ENDS]
    if held.get("value") is None or None in ends:
        return told
    low, high = (_points(end, sign=True) for end in ends)
    return f"{told} [{low}, {high}]"


def on_representation(name: str, shown: Sequence[str]) -> str:
    """What is added to a title where there are several representations."""
    return f", on {named(name)}" if name and len(shown) > 1 else ""
