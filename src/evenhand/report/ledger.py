"""A ledger of remedies on the terminal: which to start from, a table that fits, then each in words.

Nothing is cut: a table that is wider than the window is told remedy by remedy.
"""

import io
from collections.abc import Mapping
from typing import Any

from evenhand.remedies.ledger.sentences import AIMS, SLOPES, recommend, recommend_for
from evenhand.report.sections.remedy_contrast import Detail, detail_tables
from evenhand.report.terminal import WIDTH, Page, laid_out
from evenhand.speech import signed

Plain = Mapping[str, Any]
TABLES = {"bow": "word counts", "vectors": "word vectors", "columns": "columns of the table"}
HEADERS = ("remedy", "right", "TP gap", "FP gap", "swap gap", "flips", "slope", "mean |r|")
# What a column is, told once below the tables; columns without a number are not told.
COLUMNS = {
    "right": "right: share of test rows decided rightly, in percent.",
    "TP gap": "TP gap, FP gap: typical gap between groups in true and false positive rates over "
    "classes (root mean square), in points.",
    "swap gap": "swap gap, flips: what the group's words alone do, each text rewritten to the "
    "other group: the typical gap in points, and the share of decisions that change, in percent.",
    "slope": "slope: how much more it pays to look typical of one's group in classes where the "
    "group is common; near 0 is none.",
    "mean |r|": "mean |r|: how far scores follow that look at all (rank correlation within class "
    "and group).",
}
BUDGET = 0.01


# What a remedy is to lower, by the lens that found it.
_AIMS = {"statistical": AIMS[0][1], "counterfactual": AIMS[1][1], "norms": SLOPES}


def recommended(document: Plain | None, lens: str) -> str | None:
    """The remedy to start from against what a lens found; None where there is none.

    Nor is there one where texts were represented in several ways: the section compares them.
    """
    rows = (document or {}).get("rows") or []
    whole = all("status" in row and "measures" in row for row in rows)
    ways = {row.get("representation") for row in rows}
    if document is None or not rows or not whole or len(ways) > 1 or lens not in _AIMS:
        return None
    budget = (document["made"].get("arguments") or {}).get("budget", BUDGET)
    return recommend_for(rows, _AIMS[lens], groups=document["data"]["groups"], budget=budget)


def show_ledger(document: Plain, console: Any, *, folder: str | None = None) -> None:
    """Print a ledger on a rich console."""
    page = Page(console)
    groups = document["data"]["groups"]
    budget = (document["made"].get("arguments") or {}).get("budget", BUDGET)
    several = len({row["representation"] for row in document["rows"]}) > 1
    empty = set(HEADERS)
    for name in dict.fromkeys(row["representation"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["representation"] == name]
        page.say(f"Remedies on {TABLES.get(name, name)}", style="bold")
        page.say(recommend(rows, groups=groups, budget=budget))
        page.blank()
        lines = [_cells(row, groups) for row in rows if row["status"] == "measured"]
        used = [i for i, _ in enumerate(HEADERS) if any(line[i] != "–" for line in lines)]
        empty -= {HEADERS[i] for i in used}
        if lines:
            heads = [HEADERS[i] for i in used]
            page.columns([heads, *([line[i] for i in used] for line in lines)],
                         right=range(1, len(used)))  # fmt: skip
            page.blank()
        for found in detail_tables(document, name):
            page.say(found.title, style="bold")
            _detail(page, found)
            page.say(found.note, style="dim", mark=" ")
            page.blank()
    legend = [words for name, words in COLUMNS.items() if name not in empty]
    legend.append("* no other remedy is as good on every column.")
    if any(row["needs_group_at_decision"] for row in document["rows"]):
        legend.append("† the person's group must be known to decide.")
    for words in legend:
        page.say(words, style="dim", mark=" ")
    page.blank()
    for row in document["rows"]:
        on = f" ({TABLES.get(row['representation'], row['representation'])})" if several else ""
        page.say(f"{row['remedy']}{on}: {row['sentence']}", mark="- ")
    page.blank()
    for note in document["notes"]:
        page.say(note, style="dim")
    if folder is not None:
        files = "ledger.json, ledger.csv, pareto.json, contrast.json, models"
        page.say(f"Written to {folder}: {files}.")


def _detail(page: Page, found: Detail) -> None:
    """A table as it is where it fits; else below each remedy's name, as many columns as fit."""
    lines = [list(found.columns), *found.rows]
    if laid_out(lines, width=page.width - 1, right=range(2, len(lines[0]))) is not None:
        page.columns(lines, right=range(2, len(lines[0])))
        return
    remedies = [line[0] for line in found.rows]
    start, last = 2, len(found.columns)
    while start < last:
        parts = {stop: [[line[1], *line[start:stop]] for line in lines]
                 for stop in range(last, start, -1)}  # fmt: skip
        fitting = (k for k, part in parts.items()
                   if laid_out(part, width=page.width - 3, right=range(1, k)))  # fmt: skip
        stop = next(fitting, start + 1)
        if start > 2:
            page.blank()
        page.columns(parts[stop], right=range(1, stop - start + 1), headings=remedies)
        start = stop


def ledger_text(document: Plain) -> str:
    """The same as plain text, for `print`."""
    from rich.console import Console

    out = io.StringIO()
    plain = Console(file=out, width=WIDTH, force_terminal=False, color_system=None, highlight=False)
    show_ledger(document, plain)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _cells(row: Plain, groups: list[str]) -> tuple[str, ...]:
    def one(name: str) -> str:
        value = row["measures"][name]["all"]["value"]
        return "–" if value is None else f"{100 * value:.1f}"

    def of_groups(name: str) -> list[float]:
        cells = (row["measures"][name][group]["value"] for group in groups)
        return [value for value in cells if value is not None]

    slopes, sizes = of_groups("norm_slope"), of_groups("norm_correlation_mean")
    # Everything is measured against the baseline: a star for it would recommend doing nothing.
    star = " *" if row["pareto"] and row["remedy"] != "baseline" else ""
    return (
        row["remedy"] + star + (" †" if row["needs_group_at_decision"] else ""),
        one("accuracy"),
        one("true_positive_rate_gap_rms"),
        one("false_positive_rate_gap_rms"),
        one("counterfactual_true_positive_rate_gap_rms"),
        one("flip_rate"),
        signed(max(slopes, key=abs), 2) if slopes else "–",
        f"{sum(sizes) / len(sizes):.3f}" if sizes else "–",
    )
