"""Remedies: accuracy against gaps with intervals, gaps by class, and norms, from a ledger."""

from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.findings.sentences import number, plural, signed
from evenhand.report.blocks import Block, as_csv, figure, folded, section, sentences, slug, table
from evenhand.report.labels import cell, listed, short, spoken
from evenhand.report.palette import OUTSIDE, PLAIN, SERIES, SERIES_SHAPES, WITHIN
from evenhand.report.view import headline

QUALITY = ("accuracy", "balanced_accuracy", "macro_f1", "auc")
GAPS = (
    "true_positive_rate_gap_rms_corrected",
    "true_positive_rate_gap_rms",
    "false_positive_rate_gap_rms",
    "counterfactual_true_positive_rate_gap_rms",
)
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
KINDS = {
    "front": (WITHIN, "circle", "On the front: nothing else is better in both"),
    "baseline": (OUTSIDE, "diamond", "Without a remedy"),
    "other": (PLAIN, "square", "Something else is better in both"),
}
MOST_FOLLOWED = 3
Line = Mapping[str, Any]


def remedies_section(ledger: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The section on remedies; None where there is no ledger or it is empty."""
    rows = [row for row in (ledger or {}).get("rows") or [] if isinstance(row, Mapping)]
    if not rows or ledger is None:
        return None
    blocks: list[Block] = []
    told = [spoken(row["sentence"]) for row in rows if row.get("sentence")]
    if told:
        blocks.append(sentences(told[:12]))
    shown = list(dict.fromkeys(_representation(row) for row in rows))
    for name in shown[:4]:
        mine = [row for row in rows if _representation(row) == name]
        blocks += _pareto(name, mine, alone=len(shown) == 1)
    classes = [row for row in ledger.get("classes") or [] if isinstance(row, Mapping)]
    for name in shown[:2]:
        mine = [row for row in classes if _representation(row) == name]
        blocks += _strips(name, mine, alone=len(shown) == 1)
        blocks += _norms(name, mine, alone=len(shown) == 1)
    blocks.append(_numbers(rows))
    return section(
        "remedies",
        kicker="Remedies",
        heading=_heading(rows, told),
        lead="Each remedy was trained and measured on the same test rows. There is no best one: "
        "the front shows which are not beaten both in accuracy and in the gap.",
        blocks=blocks,
    )


def _heading(rows: list[Line], told: list[str]) -> str:
    front = [short(row.get("remedy")) for row in rows if row.get("pareto") and not _base(row)]
    names = {row.get("remedy") for row in rows}
    if front:
        unique = list(dict.fromkeys(front))
        verb = "is" if len(unique) == 1 else "are"
        return (
            f"Of {plural(len(names), 'option')}, {listed(unique)} {verb} not beaten both in "
            "accuracy and in the gap"
        )
    return headline(told[0]) if told else f"{plural(len(names), 'option')} compared"


def _pareto(name: str, rows: list[Line], *, alone: bool) -> list[Block]:
    quality, gap = _present(rows, QUALITY), _present(rows, GAPS)
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
                "kind": "baseline" if _base(row) else "front" if row.get("pareto") else "other",
                "name": short(row.get("remedy"), most=22),
                "tip": f"{short(row.get('remedy'))}: {_words(quality)} {number(row[quality])}, "
                f"gap {number(row[gap])}",
            }
        )
    front = sorted((p["x"], p["y"]) for p, row in zip(points, known) if row.get("pareto"))
    where = "" if alone else f" on {short(name)}"
    title = f"{_words(quality).capitalize()} against {_words(gap)}{where}"
    kinds = [kind for kind in KINDS if any(point["kind"] == kind for point in points)]
    columns = ("Remedy", _words(quality), "Interval", _words(gap), "Interval ", "On the front")
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
                    "x_axis": f"{_words(gap).capitalize()} (left is better)",
                    "y_axis": f"{_words(quality).capitalize()} (up is better)",
                    "path": front if len(front) > 1 else None,
                    "named": 14,
                    "title": title,
                }
            ],
            read="up and to the left is better in both. The line joins the options that no other "
            "beats both ways; where intervals overlap, their order cannot be told.",
            legend=[
                {"shape": KINDS[k][1], "colour": KINDS[k][0], "text": KINDS[k][2]} for k in kinds
            ],
            numbers=table(title, columns, body, numbers=columns[1:5]),
            csv_text=_csv(known),
        )
    ]


def _strips(name: str, rows: list[Line], *, alone: bool) -> list[Block]:
    """Gaps by class on each remedy's line, with the baseline's outliers followed."""
    gap = _present(rows, CLASS_GAPS)
    if gap is None:
        return []
    mine = _first_seed([row for row in rows if row.get(gap) is not None])
    base = [row for row in mine if _base(row)] or [
        row for row in mine if row.get("remedy") == mine[0].get("remedy")
    ]
    ranked = sorted(base, key=lambda row: -abs(row[gap]))
    followed = list(dict.fromkeys(str(row["class"]) for row in ranked))[:MOST_FOLLOWED]
    names = {one: short(one, most=24) for one in followed}
    where = "" if alone else f" on {short(name)}"
    title = f"Gaps of {listed(list(names.values()))}, largest without a remedy, followed{where}"
    lines = [
        {
            "line": str(row.get("remedy")),
            "value": row[gap],
            "followed": names.get(str(row["class"])),
            "tip": f"{short(row['class'])}: {signed(row[gap])}",
        }
        for row in mine
    ]
    columns = ("Remedy", "Class", _words(gap))
    body = [[cell(row.get("remedy")), cell(row["class"]), signed(row[gap])] for row in mine]
    return [
        figure(
            f"strips-{slug(name)}",
            title=title,
            charts=[
                {
                    "kind": "strips",
                    "rows": lines,
                    "axis": _words(gap).capitalize(),
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
            csv_text=_csv(rows),
            notes=_seeds(rows),
        )
    ]


def _norms(name: str, rows: list[Line], *, alone: bool) -> list[Block]:
    """Share against correlation in every class, one small chart a remedy."""
    share, r = _present(rows, ("group_share", "share")), _present(rows, ("norm_correlation",))
    if share is None or r is None:
        return []
    mine = [
        row for row in _first_seed(rows) if row.get(share) is not None and row.get(r) is not None
    ]
    remedies = list(dict.fromkeys(str(row.get("remedy")) for row in mine))
    where = "" if alone else f" on {short(name)}"
    title = f"How far each remedy still rewards the norm{where}"
    bound = max((abs(row[r]) for row in mine), default=1.0)
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
                if str(row.get("remedy")) == one
            ],
            "x_axis": "Share of the group in the class",
            "x_format": "%",
            "x_domain": [0, 1],
            "y_axis": "Correlation with the norm",
            "y_domain": [-bound, bound],
            "y_zero": 0.0,
            "title": short(one),
        }
        for one in remedies[:8]
    ]
    columns = ("Remedy", "Class", "Share", "Correlation")
    body = [
        [cell(row.get("remedy")), cell(row["class"]), number(row[share]), signed(row[r])]
        for row in mine
    ]
    return [
        figure(
            f"norms-remedies-{slug(name)}",
            title=title,
            charts=charts,
            read="as in the chart of norm bias, one for each option: the flatter the cloud, the "
            "less the norm is rewarded where the group is common.",
            numbers=table(title, columns, body, numbers=columns[2:], most=120),
            csv_text=_csv(rows),
            notes=_seeds(rows),
        )
    ]


def _numbers(rows: list[Line]) -> Block:
    kept = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    columns = ["Remedy", "On", *(_words(name) for name in kept), "Needs the group"]
    body = [
        [
            cell(row.get("remedy")),
            cell(_representation(row)),
            *(number(row.get(name)) for name in kept),
            "–" if row.get("needs_group") is None else "yes" if row["needs_group"] else "no",
        ]
        for row in rows
    ]
    return folded(
        "All numbers of all remedies",
        [table("Ledger", columns, body, numbers=columns[2:-1])],
    )


def _csv(rows: Iterable[Line]) -> str:
    held = list(rows)
    columns = list(dict.fromkeys(key for row in held for key in row if key != "sentence"))
    return as_csv(columns, ([row.get(key) for key in columns] for row in held))


def _first_seed(rows: list[Line]) -> list[Line]:
    seeds = sorted({row["seed"] for row in rows if row.get("seed") is not None})
    return [row for row in rows if not seeds or row.get("seed") == seeds[0]]


def _seeds(rows: list[Line]) -> list[str]:
    seeds = sorted({row["seed"] for row in rows if row.get("seed") is not None})
    if len(seeds) < 2:
        return []
    return [f"Drawn for seed {seeds[0]} of {len(seeds)}; all seeds are in the CSV."]


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


def _present(rows: list[Line], names: tuple[str, ...]) -> str | None:
    return next((n for n in names if any(row.get(n) is not None for row in rows)), None)


def _representation(row: Line) -> str:
    return str(row.get("representation") or "")


def _base(row: Line) -> bool:
    return str(row.get("remedy")).lower() in BASELINES


def _words(name: str) -> str:
    return name.replace("_", " ").replace(" rms", " (root mean square)")
