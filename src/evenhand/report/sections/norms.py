"""Norm bias: group shares against rank correlations, and the words that carry it."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.sentences import number, signed
from evenhand.findings.verdict import HIDDEN_UNDER
from evenhand.report.blocks import Block, as_csv, figure, folded, section, slug, table
from evenhand.report.forests import numbers_table, rows_csv, verdict_legend
from evenhand.report.labels import cell, short
from evenhand.report.palette import OUTSIDE, PLAIN, VERDICTS
from evenhand.report.sections.norm_words import words_figure
from evenhand.report.view import Row, View, by_size, headline, with_findings

LENS = "norms"
MOST_TRENDS = 2
BIAS = ("norm_bias", "norm_bias_irrelevant")


def norms_section(view: View) -> dict[str, Any] | None:
    """The section on norm bias; None where the lens gave nothing."""
    if not view.where(LENS):
        return None
    found = view.lens_findings(LENS)
    blocks: list[Block] = []
    trends = [
        one
        for one in view.details(LENS).get("trends") or []
        if one.get("stratum") is None and one.get("group") == one.get("norm")
    ]
    plain = [one for one in trends if not one.get("irrelevant")]
    shown = _leading(plain)
    for one in shown[:1]:
        blocks.append(_trend(view, one))
    more = [_trend(view, one) for one in shown[1:MOST_TRENDS]]
    without = {one["group"]: one for one in trends if one.get("irrelevant")}
    more += [_trend(view, without[one["group"]]) for one in shown[:1] if one["group"] in without]
    blocks += _biases(view)
    blocks += words_figure(view)
    if more:
        blocks.append(
            folded("The same for other groups, and by words that say nothing of the class", more)
        )
    top = view.lens_findings(LENS, *BIAS) or found
    heading = headline(top[0]["sentence"]) if top else "No norm bias can be told from chance"
    return section(
        "norms",
        kicker="Norm bias",
        heading=heading,
        lead="People of one group differ in how typical of it their text looks. Norm bias asks "
        "whether the score rewards looking typical, and whether it does so where the group is "
        "common.",
        blocks=with_findings(found, blocks, heading=heading),
    )


def _leading(trends: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Trends with the strongest norm bias first; of equal ones, as they came."""
    return sorted(trends, key=lambda one: -abs(one.get("bias") or 0.0))


def _trend(view: View, one: Mapping[str, Any]) -> Block:
    group = short(one["group"])
    irrelevant = bool(one.get("irrelevant"))
    keys = ("classes", "share", "correlation", "low", "high", "n")
    lines = [
        dict(zip(keys, values))
        for values in zip(*(one.get(key) or [None] * len(one["classes"]) for key in keys))
    ]
    for x in lines:
        # Older records held the correlations of a few rows; nobody is shown them.
        if x["n"] is not None and x["n"] < HIDDEN_UNDER:
            x |= {"correlation": None, "low": None, "high": None}
    known = [x for x in lines if x["share"] is not None and x["correlation"] is not None]
    ranked = sorted(known, key=lambda x: -abs(x["correlation"]))
    named = (
        {x["classes"] for x in ranked[:4]}
        | {x["classes"] for x in sorted(known, key=lambda x: x["share"])[:1]}
        | {x["classes"] for x in sorted(known, key=lambda x: -x["share"])[:1]}
    )
    points = [
        {
            "x": x["share"],
            "y": x["correlation"],
            "y_low": x["low"],
            "y_high": x["high"],
            "kind": "told" if _beyond(x) else "open",
            "name": short(x["classes"], most=22) if x["classes"] in named else None,
            "tip": f"{short(x['classes'])}: share {number(x['share'])}, "
            f"rank correlation {signed(x['correlation'])}",
        }
        for x in ranked
    ]
    bias = one.get("bias")
    ends = one.get("bias_interval") or (None, None)
    rho = "undefined" if bias is None else signed(bias)
    if bias is not None and None not in ends:
        rho += f" [{number(ends[0])}, {number(ends[1])}]"
    by = " by words that say nothing of the class" if irrelevant else ""
    title = f"Norm bias of {group}{by}: ρ = {rho}"
    end = "-irrelevant" if irrelevant else ""
    columns = ("Class", f"Share of {group}", "Rank correlation", "Interval", "n")
    rows = [
        [
            cell(x["classes"]),
            number(x["share"]),
            signed(x["correlation"]),
            f"[{number(x['low'])}, {number(x['high'])}]"
            if x["low"] is not None
            else "hidden: under 10 rows"
            if (x["n"] or 0) < HIDDEN_UNDER
            else "",
            f"{x['n']:,.0f}" if x["n"] is not None else "–",
        ]
        for x in lines
    ]
    notes = []
    if one.get("mean") is not None and one.get("floor") is not None:
        notes.append(
            f"The mean size of the correlation is {number(one['mean'])}; sampling noise alone "
            f"would give {number(one['floor'])}."
        )
    return figure(
        f"norms-{slug(str(one.get('attribute')))}-{slug(str(one['group']))}{end}",
        title=title,
        charts=[
            {
                "kind": "scatter",
                "points": points,
                "kinds": {"told": (OUTSIDE, "circle"), "open": (PLAIN, "square")},
                "x_axis": f"Share of {group} in the class",
                "x_format": "%",
                "y_axis": "Correlation of score and norm",
                "y_zero": 0.0,
                "title": title,
            }
        ],
        read=f"each mark is a class. High means that among {group} of that class those who look "
        f"typical of {group} get the higher score. Rising from left to right means that the norm "
        f"is rewarded where {group} is common and punished where it is rare: ρ near 1.",
        legend=[
            {"shape": "circle", "colour": OUTSIDE, "text": "Interval leaves out 0"},
            {"shape": "square", "colour": PLAIN, "text": "Cannot be told from 0"},
        ],
        numbers=table(title, columns, rows, numbers=columns[1:], most=60),
        csv_text=as_csv(
            ("class", "share", "correlation", "low", "high", "n"), (list(x.values()) for x in lines)
        ),
        notes=notes,
    )


def _beyond(line: Mapping[str, Any]) -> bool:
    low, high = line["low"], line["high"]
    return low is not None and high is not None and bool(low > 0 or high < 0)


def _biases(view: View) -> list[Block]:
    rows: list[Row] = [row for name in BIAS for row in view.whole(LENS, name)]
    defined = [row for row in rows if row["value"] is not None]
    if not defined:
        return []
    title = "ρ of each group, with all words and with words that say nothing of the class"
    marks = [
        {
            "label": f"{short(row['group'], most=20)}, "
            + ("other words" if row["measure"].endswith("irrelevant") else "all words"),
            "value": row["value"],
            "low": row["family_low"],
            "high": row["family_high"],
            "verdict": row["verdict"],
            "limit_low": row["limit_low"],
            "limit_high": row["limit_high"],
            "tip": f"{short(row['group'])}: {signed(row['value'])}",
        }
        for row in defined[:20]
    ]
    verdicts = [v for v in VERDICTS if any(row["verdict"] == v for row in defined)]
    more = [
        row
        for name in sorted(view.measures(LENS))
        if name.startswith(("norm_bias", "norm_slope", "norm_correlation_mean"))
        for row in view.whole(LENS, name)
    ]
    return [
        figure(
            "norm-bias",
            title=title,
            charts=[
                {
                    "kind": "forest",
                    "rows": marks,
                    "axis": "Norm bias ρ",
                    "zero": 0.0,
                    "domain": [-1, 1],
                    "title": title,
                }
            ],
            read="ρ is the rank correlation, over classes, of the group’s share and the score’s "
            "correlation with its norm: 0 is no norm bias, 1 the strongest. If ρ stays with words "
            "that say nothing of the class, the norm itself is rewarded.",
            legend=verdict_legend(verdicts, band=any(r["limit_low"] is not None for r in defined)),
            numbers=numbers_table(by_size(more), caption="Norm bias in every form", most=40),
            csv_text=rows_csv(more),
            about=[(name, row["attribute"]) for name in BIAS for row in defined[:1]],
        )
    ]
