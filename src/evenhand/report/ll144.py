"""The form of Local Law 144 as a page and as a table."""

import csv
import io
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from evenhand.speech import as_cell, plural, printable

SAYS_NOT = (
    "The rule sets no pass mark, and this form gives none. An impact ratio below 1 may be chance: "
    "the form has no intervals, and a category of few people has a ratio that says little. It "
    "compares rates, whoever was qualified; it says nothing of errors, of people who did not "
    "apply, of age or disability, nor of how the tool works together with the people who use it. "
    "The audit beside it says how sure each difference is."
)
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
body{color:#15181e;background:#fff}
table{border-collapse:collapse;width:100%;margin:0 0 1.5rem}
caption{text-align:left;font-weight:600;padding:.4rem 0}
th,td{border-bottom:1px solid #949ba8;padding:.35rem .5rem;text-align:right}
th:first-child,td:first-child{text-align:left}
dt{font-weight:600}dd{margin:0 0 .5rem}
@media (prefers-color-scheme:dark){body{color:#e9ebef;background:#15181e}}
"""


def as_ll144_page(form: Mapping[str, Any]) -> str:
    """The form as one page without script, ready to be put on a website beside the notice."""
    scored = form["kind"] == "scoring"
    title = "Bias audit: results" + (f" for {form['tool']}" if form["tool"] else "")
    given = form["distribution_date"] or "not given: add it before the results are published"
    facts = {
        "Date of the audit": form["audit_date"],
        "Distribution date of the tool": given,
        "Source and explanation of the data": form["data"],
        "Individuals assessed and counted here": f"{form['people']:,}",
        "Individuals with an unknown sex or race/ethnicity, not counted here": _unknown(form),
    }
    if scored:
        facts["Median score of those counted"] = f"{form['median']:g}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">",
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_text(title)}</h1>",
        "<dl>",
        *(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts.items()),
        "</dl>",
        *(_table(table, scored=scored) for table in form["tables"]),
        f"<h2>How it is counted</h2><p>{_text(_counted(form))}</p>",
        f"<h2>What this form does not tell</h2><p>{_text(SAYS_NOT)}</p>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def as_ll144_csv(form: Mapping[str, Any]) -> str:
    """The form's tables as CSV, one line for each category; always the same columns."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(
        ["table", "outcome", "category", "applicants", "selected_or_above_median", "rate",
         "impact_ratio", "excluded_because", "audit_date", "distribution_date", "unknown"]
    )  # fmt: skip
    for table in form["tables"]:
        for row in table["rows"]:
            writer.writerow(
                [table["name"], as_cell(table["outcome"] or ""), as_cell(row["category"]),
                 row["people"], row["chosen"], _plain(row["rate"]), _plain(row["impact_ratio"]),
                 as_cell(row["excluded"] or ""), form["audit_date"],
                 form["distribution_date"] or "", form["unknown"]["either"]]
            )  # fmt: skip
    return page.getvalue()


def _table(table: Mapping[str, Any], *, scored: bool) -> str:
    of = f", {table['outcome']}" if table["outcome"] else ""
    rate = "Scoring rate" if scored else "Selection rate"
    heads = ["Category", "Applicants", *([] if scored else ["Selected"]), rate, "Impact ratio"]
    lines = [f"<table><caption>{_text(table['name'] + of)}</caption><thead><tr>"]
    lines += [f'<th scope="col">{head}</th>' for head in heads]
    lines.append("</tr></thead><tbody>")
    for row in table["rows"]:
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in _cells(row, scored)) + "</tr>")
    lines.append("</tbody></table>")
    notes = [
        f"<p>{_text(row['category'])} has no impact ratio: {_text(row['excluded'])}</p>"
        for row in table["rows"]
        if row["excluded"]
    ]
    return "".join([*lines, *notes])


def _cells(row: Mapping[str, Any], scored: bool) -> Iterator[str]:
    yield _text(row["category"].replace("*", " × "))
    yield f"{row['people']:,}"
    if not scored:
        yield f"{row['chosen']:,}"
    yield "–" if row["rate"] is None else f"{row['rate']:.1%}"
    if row["excluded"]:
        yield "excluded"
    else:
        yield "–" if row["impact_ratio"] is None else f"{row['impact_ratio']:.3f}"


def _unknown(form: Mapping[str, Any]) -> str:
    unknown = form["unknown"]
    parts = (
        f"{unknown['either']:,} (sex {unknown['first']:,}, race/ethnicity {unknown['second']:,})"
    )
    lacking = unknown["outcome"]
    return parts + (f"; {lacking:,} more without an outcome" if lacking else "")


def _counted(form: Mapping[str, Any]) -> str:
    what = (
        f"The scoring rate is the share of a category with a score above {form['median']:g}, the "
        "median of everybody counted."
        if form["kind"] == "scoring"
        else "The selection rate is the share of a category that was selected, or assigned the "
        "class."
    )
    base = "highest scoring" if form["kind"] == "scoring" else "most selected"
    return (
        f"{what} The impact ratio divides it by the rate of the {base} category of the same table "
        "(6 RCNY §§ 5-300 and 5-301). Ratios come from counts, not from rounded rates. "
        f"{plural(form['people'], 'person', 'people')} of known sex and race/ethnicity are counted."
    )


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _text(value: object) -> str:
    return escape(printable(str(value)))
