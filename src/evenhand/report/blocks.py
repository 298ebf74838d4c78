"""Result rows as figures: estimates with their intervals, the band behind, the numbers below."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from evenhand.findings.sentences.rows import value_text as row_value
from evenhand.findings.sentences.words import interval
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import COLUMNS, Row
from evenhand.report.labels import cell, listed, short
from evenhand.report.palette import VERDICTS
from evenhand.report.table import no_interval_text
from evenhand.speech import as_cell, number, percent, plural, times

Block = dict[str, Any]
MOST_SHOWN = 30
# A page that carries every number of a very large audit would no longer open everywhere.
MOST_CSV = 150_000


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    numbers: Iterable[str] = (),
    most: int | None = None,
) -> Block:
    """A table; `numbers` are the columns set to the right, `most` how many rows are shown."""
    held = [list(row) for row in rows]
    right = set(numbers)
    shown = held if most is None else held[:most]
    return {
        "kind": "table",
        "caption": caption,
        "columns": [{"name": name, "number": name in right} for name in columns],
        "rows": shown,
        "more": len(held) - len(shown),
    }


def figure(
    name: str,
    *,
    title: str,
    charts: Sequence[Mapping[str, Any]],
    read: str,
    numbers: Block,
    csv_text: str,
    legend: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
    plain: str | None = None,
    about: Sequence[tuple[str, Any]] = (),
) -> Block:
    """A figure: its charts, how to read them, and their numbers as a table and as CSV.

    `plain` is a title without a finding, for when the section's heading says it already; `about`
    are the measures and attributes whose findings are told under the title.
    """
    return {
        "kind": "figure",
        "id": name,
        "title": title,
        "plain": plain or title,
        "about": list(about),
        "said": [],
        "charts": [dict(chart) for chart in charts],
        "read": read,
        "legend": [dict(item) for item in legend],
        "numbers": numbers,
        "csv": csv_text,
        "notes": list(notes),
    }


def sentences(items: Iterable[Any], *, title: str | None = None) -> Block:
    """A list of sentences, each with a verdict where it has one."""
    return {"kind": "list", "title": title, "items": list(items)}


def note(text: str) -> Block:
    """A remark that stands out."""
    return {"kind": "note", "text": text}


def folded(title: str, blocks: Iterable[Block]) -> Block:
    """Blocks that open on demand."""
    return {"kind": "folded", "title": title, "blocks": list(blocks)}


def section(
    name: str, *, kicker: str, heading: str, lead: str | None = None, blocks: Iterable[Block]
) -> dict[str, Any]:
    """A section whose heading is its finding."""
    return {
        "id": name,
        "kicker": kicker,
        "heading": heading,
        "lead": lead,
        "blocks": list(blocks),
    }


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV with a heading line; numbers with six digits, nulls empty, no cell a formula.

    Examples:
        >>> as_csv(["group", "value"], [["f", 0.123456789], ["=1+1", None]]).splitlines()
        ['group,value', 'f,0.123457', "'=1+1,"]
    """
    return _written(columns, ([_plain(value) for value in row] for row in rows))


def _written(columns: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """CSV of cells as they are, cut where it would make a page too heavy."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([as_cell(name) for name in columns])
    for line in lines:
        writer.writerow(line)
        if out.tell() > MOST_CSV:
            out.write("# cut here: all rows are in the record (evenhand audit … --csv)\n")
            break
    return out.getvalue()


def slug(text: str) -> str:
    """A name that can be part of an id.

    Examples:
        >>> slug("gender*region: <b>")
        'gender-region-b'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _cells(values: Iterable[Any]) -> Iterator[Any]:
    """The cells of a column; a word that fills it is looked at once."""
    known: dict[str, Any] = {}
    for value in values:
        if type(value) is not str:
            yield _plain(value)
            continue
        if value not in known:
            known[value] = _plain(value)
        yield known[value]


def _plain(value: Any) -> Any:
    if type(value) is float:
        return f"{value:.6g}"
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else value
    return as_cell(str(value))


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


def axis_form(measure: str) -> str:
    """How an axis prints a measure: shares in percent, their gaps in points, ratios as times.

    The size of gaps over classes is in points too, without a sign.

    Examples:
        >>> axis_form("selection_rate"), axis_form("selection_rate_gap"), axis_form("auc_gap")
        ('%', 'points', '~g')
        >>> axis_form("selection_rate_ratio"), axis_form("criterion_gap")
        ('times', '~g')
        >>> axis_form("true_positive_rate_gap_rms"), axis_form("norm_slope")
        ('size', '~g')
    """
    record = look_up(measure)
    share = record if record.kind == "rate" else look_up(record.base or "")
    if record.kind == "ratio":
        return "times"
    # An AUC is a chance of a ranking, not a share of people.
    if share.kind != "rate" or share.name == "auc":
        return "~g"
    return {"rate": "%", "distance": "size"}.get(record.kind, "points")


_AXIS_UNITS = {"points": ", in points", "size": ", in points", "times": " (1× is no difference)"}


def axis_title(words: str, form: str) -> str:
    """The words of an axis with the unit of its numbers."""
    return words + _AXIS_UNITS.get(form, "")


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
    form: str | None = None,
    plain: str | None = None,
    about: Sequence[tuple[str, Any]] = (),
    lines: tuple[str, str] = ("group", "groups"),
) -> Block:
    """A forest of result rows, sorted by value; the leading ones where there are many.

    Rows without a number share one line of words; all of them are in the CSV. A ratio has a
    logarithmic axis. `lines` is what one line is, and several.
    """
    defined = [row for row in rows if is_shown(row)]
    shown = defined[:MOST_SHOWN]
    verdicts = list(dict.fromkeys(row["verdict"] for row in sorted(shown, key=_rank)))
    notes = []
    if len(defined) > len(shown):
        notes.append(
            f"The {len(shown)} that matter most of {len(defined):,} are drawn; all are in the CSV."
        )
    notes += not_drawn([row for row in rows if not is_shown(row)], label, lines)
    kinds = {axis_form(row["measure"]) for row in shown}
    form = form or (kinds.pop() if len(kinds) == 1 else "~g")
    log = form == "times"
    chart = {
        "kind": "forest",
        "rows": positive_ends(marks_by_value(shown, label), log=log),
        "axis": axis_title(axis, form),
        "zero": zero,
        "target": target,
        "format": form,
        "log": log,
        "title": title,
    }
    if any(row["value"] is None for row in shown):
        read += " A bar is a set: the data fit every value in it, and cannot tell between them."
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


def is_shown(row: Row) -> bool:
    """Whether a row has a value, or a set that it lies in."""
    return row["value"] is not None or row.get("set_low") is not None


def not_drawn(rows: Sequence[Row], label: Name, lines: tuple[str, str]) -> list[str]:
    """One line for all rows without a number: how many, of whom, and why.

    Examples:
        >>> row = {"undefined": "fewer than 10 cases: hidden"}
        >>> rows = [row | {"class": name} for name in "abcde"]
        >>> not_drawn(rows, by_class, ("class", "classes"))
        ['5 classes have no number (a, b, c and 2 more): fewer than 10 cases: hidden.']
    """
    if not rows:
        return []
    names = list(dict.fromkeys(short(label(row), most=24) for row in rows))
    reasons = list(dict.fromkeys(str(row["undefined"]) for row in rows if row["undefined"]))
    told = f": {'; '.join(reasons[:2])}" if reasons else ""
    verb = "has" if len(names) == 1 else "have"
    return [f"{plural(len(names), *lines)} {verb} no number ({listed(names, most=3)}){told}."]


def marks_by_value(rows: Sequence[Row], label: Name) -> list[dict[str, Any]]:
    """The lines of a forest, the highest value first; a set counts by its lower end."""
    ordered = sorted(rows, key=lambda row: -_place(row))
    return [mark(row, label(row)) for row in ordered]


def _place(row: Row) -> float:
    return float(row["value"] if row["value"] is not None else row["set_low"])


def positive_ends(marks: list[dict[str, Any]], *, log: bool) -> list[dict[str, Any]]:
    """Lines as a logarithmic axis can draw them: what reaches 0 or no end stops at the edge.

    Examples:
        >>> positive_ends([{"value": 0.5, "low": 0.0, "high": None}], log=True)
        [{'value': 0.5, 'low': 0.25, 'high': 1.0}]
    """
    if not log:
        return marks
    ends = [m[key] for m in marks for key in ("value", "low", "high") if (m.get(key) or 0) > 0]
    least, most = min(ends, default=1.0) / 2, max(ends, default=1.0) * 2
    held = []
    for one in marks:
        low, high = one["low"], one["high"]
        open_ = one["value"] is not None and high is None and low is not None
        low = None if low is None else max(low, least)
        held.append({**one, "low": low, "high": most if open_ else high})
    return held


def mark(row: Row, label: str) -> dict[str, Any]:
    """One line of a forest: the family's interval, as the verdict was reached by it."""
    return {
        "label": label,
        "value": row["value"],
        "set_low": row.get("set_low"),
        "set_high": row.get("set_high"),
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


def share(value: float) -> str:
    """A share in percent, with the digits that it needs.

    Examples:
        >>> share(0.36149), share(1.0), share(0.0004)
        ('36.1%', '100.0%', '0.04%')
    """
    return percent(value, places=2 if 0 < value < 0.001 else 1)


def value_text(row: Row) -> str:
    """A value as sentences print it; where scores are discrete, the set that it lies in.

    Examples:
        >>> row = {"measure": "cost_ratio", "value": None, "set_low": 2.7, "set_high": 4.1}
        >>> value_text(row), value_text(row | {"set_high": None}), value_text(row | {"value": 3.0})
        ('from 2.70 to 4.10', '2.70 or more', '3.00')
    """
    if row["value"] is None:
        return _set_text(row)
    if str(row["measure"]) == "cost_ratio":
        return times(row["value"])
    return row_value(row)


def _set_text(row: Row) -> str:
    low, high = row.get("set_low"), row.get("set_high")
    if low is None:
        return "–"
    ends = [value_text({**row, "value": end}) for end in (low, high) if end is not None]
    return f"from {' to '.join(ends)}" if high is not None else f"{ends[0]} or more"


def interval_text(row: Row) -> str:
    """The family's interval as sentences print it; why there is none where there is none."""
    if row["measure"] == "cost_ratio" and row["family_low"] is not None:
        high = row["family_high"]
        return f"[{times(row['family_low'])}, {times(high) if high is not None else '∞'}]"
    return interval(row) or no_interval_text(row)


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
        ("Norm of", "norm"),
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
    columns = [[row.get(name) for row in rows] for name in kept]
    return _written(kept, zip(*map(_cells, columns)))


def tag(verdict: str) -> dict[str, str]:
    """A verdict as a cell."""
    return {"text": verdict[:1].upper() + verdict[1:], "verdict": verdict}


def _rank(row: Row) -> int:
    return list(_WORDS).index(row["verdict"]) if row["verdict"] in _WORDS else len(_WORDS)
