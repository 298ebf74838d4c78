"""Result rows as figures: estimates with their intervals, the band behind, the numbers below."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.findings.cost_sentences import times
from evenhand.findings.sentences import interval, number, row_sentence, signed
from evenhand.lenses.rows import COLUMNS
from evenhand.report.blocks import MOST_SHOWN, Block, as_csv, figure, table
from evenhand.report.labels import cell, short, spoken
from evenhand.report.palette import VERDICTS
from evenhand.report.view import Row

CSV_COLUMNS = tuple(name for name in COLUMNS if name not in ("level", "rule"))
_WORDS = {
    "outside": "Outside its limit",
    "cannot tell": "Cannot tell",
    "within": "Within its limit",
    "not assessed": "Not assessed (no limit)",
}
Name = Callable[[Row], str]


def by_group(row: Row) -> str:
    """A row named by its group."""
    return str(row["group"] or row["attribute"] or "")


def by_class(row: Row) -> str:
    """A row named by its class."""
    return str(row["class"] or "")


def by_both(row: Row) -> str:
    """A row named by class and group."""
    return f"{short(row['class'], most=22)}: {row['group']}"


def forest_figure(
    name: str,
    rows: Sequence[Row],
    *,
    title: str,
    axis: str,
    read: str,
    label: Name = by_group,
    zero: float | None = None,
    target: float | None = None,
    form: str = "~g",
    log: bool = False,
    order: Sequence[Row] | None = None,
    plain: str | None = None,
    about: Sequence[tuple[str, Any]] = (),
) -> Block:
    """A forest of result rows; the leading ones where there are many, all of them in the CSV."""
    shown = list(rows)[:MOST_SHOWN]
    drawn = [row for row in (order or shown) if row in shown] if order else shown
    verdicts = list(dict.fromkeys(row["verdict"] for row in sorted(shown, key=_rank)))
    notes = []
    if len(rows) > len(shown):
        notes.append(
            f"The {len(shown)} that matter most of {len(rows):,} are drawn; all are in the CSV."
        )
    if any(row["value"] is None and row["low"] is None for row in shown):
        notes.append("Lines without a mark are undefined or hidden; the table says why.")
    chart = {
        "kind": "forest",
        "rows": [mark(row, label(row)) for row in drawn],
        "axis": axis,
        "zero": zero,
        "target": target,
        "format": form,
        "log": log,
        "title": title,
    }
    return figure(
        name,
        title=title,
        charts=[chart],
        read=read,
        legend=verdict_legend(verdicts, band=any(r["limit_low"] is not None for r in shown)),
        numbers=numbers_table(shown, caption=title),
        csv_text=rows_csv(rows),
        notes=notes,
        plain=plain,
        about=about,
    )


def mark(row: Row, label: str) -> dict[str, Any]:
    """One line of a forest: the family's interval, as the verdict was reached by it."""
    return {
        "label": label,
        "value": row["value"],
        "low": row["family_low"],
        "high": row["family_high"],
        "verdict": row["verdict"],
        "limit_low": row["limit_low"],
        "limit_high": row["limit_high"],
        "tip": f"{short(label)}: {value_text(row)} {interval(row)}",
    }


def verdict_legend(verdicts: Sequence[str], *, band: bool) -> list[dict[str, str]]:
    """The marks of a forest in words."""
    legend = [
        {"shape": VERDICTS[v][1], "colour": VERDICTS[v][0], "text": _WORDS[v]} for v in verdicts
    ]
    if band:
        legend.append({"shape": "band", "colour": VERDICTS["within"][0], "text": "Agreed band"})
    return legend


def value_text(row: Row) -> str:
    """A value as sentences print it."""
    measure = str(row["measure"])
    if row["value"] is None:
        return "–"
    if measure == "cost_ratio":
        return times(row["value"])
    return signed(row["value"]) if measure.endswith("_gap") else number(row["value"])


def interval_text(row: Row) -> str:
    """The family's interval as sentences print it; why there is none where there is none."""
    if row["measure"] == "cost_ratio" and row["family_low"] is not None:
        high = row["family_high"]
        return f"[{times(row['family_low'])}, {times(high) if high is not None else '∞'}]"
    return interval(row) or str(row["undefined"] or "")


def count_text(row: Row) -> str:
    """The number of cases, and the reference's."""
    told = f"{row['n']:,.0f}" if row["n"] is not None else "–"
    return told + (f" / {row['n_reference']:,.0f}" if row["n_reference"] is not None else "")


def limit_text(row: Row) -> str:
    """The band agreed on."""
    if row["limit_low"] is None or row["limit_high"] is None:
        return "–"
    form = times if row["measure"] == "cost_ratio" else number
    return f"{form(row['limit_low'])} to {form(row['limit_high'])}"


def numbers_table(
    rows: Sequence[Row], *, caption: str, most: int | None = None, sentences: bool = False
) -> Block:
    """The numbers of rows; columns that say nothing are left out."""
    keys = [
        ("Class", "class"),
        ("Group", "group"),
        ("Against", "reference"),
        ("Stratum", "stratum"),
        ("Labeler", "labeler"),
        ("Norm", "norm"),
    ]
    told = [(head, key) for head, key in keys if any(row[key] is not None for row in rows)]
    measures = {row["measure"] for row in rows}
    limited = any(row["limit_low"] is not None for row in rows)
    columns = (["Measure"] if len(measures) > 1 else []) + [head for head, _ in told]
    columns += ["Value", "Interval", "n"] + (["Limit", "Verdict"] if limited else [])
    body = []
    for row in rows:
        line: list[Any] = [str(row["measure"]).replace("_", " ")] if len(measures) > 1 else []
        line += [cell(row[key]) for _, key in told]
        line += [value_text(row), interval_text(row), count_text(row)]
        if limited:
            line += [limit_text(row), tag(row["verdict"])]
        body.append(line)
    return table(caption, columns, body, numbers=("Value", "Interval", "n", "Limit"), most=most)


def rows_csv(rows: Sequence[Row]) -> str:
    """Result rows as CSV; columns without any value are left out."""
    kept = [name for name in CSV_COLUMNS if any(row.get(name) is not None for row in rows)]
    return as_csv(kept, ([row.get(name) for name in kept] for row in rows))


def tag(verdict: str) -> dict[str, str]:
    """A verdict as a cell."""
    return {"text": verdict[:1].upper() + verdict[1:], "verdict": verdict}


def told(row: Row, meaning: Mapping[str, str] | None = None) -> str:
    """A row's sentence with reserved names spelled out."""
    return spoken(row_sentence(row, meaning=meaning or {}))


def _rank(row: Row) -> int:
    return list(_WORDS).index(row["verdict"]) if row["verdict"] in _WORDS else len(_WORDS)
