"""The first screen: the verdict, what was chosen, who is furthest out, what is open, who acts."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from evenhand.charter.words import percent, plain_number
from evenhand.findings.cost_sentences import cost_sentence
from evenhand.findings.sentences import TAGS, base_of, plural, row_sentence, words
from evenhand.findings.verdict import cases_needed
from evenhand.lenses.catalogue import CATALOGUE, RATES
from evenhand.report.forests import interval_text, value_text
from evenhand.report.labels import listed, opening, short, spoken
from evenhand.report.sections.thresholds import implied_cost
from evenhand.report.view import Row, View, after, by_size, headline

PLACES = {
    "statistical": "gaps",
    "thresholds": "thresholds",
    "causal": "causal",
    "norms": "norms",
    "labelers": "labelers",
}
MOST_CARDS, MOST_SIDE, MOST_OPEN, MOST_TRIED = 6, 6, 3, 40
_WORST = {
    "outside": "Furthest outside",
    "cannot tell": "Largest difference seen",
    "within": "Largest difference, within its limit",
    "not assessed": "Largest difference",
}


def first_screen(view: View, *, compared: str | None = None) -> dict[str, Any]:
    """What a reader has to know after one screen."""
    record = view.record
    verdict = record["verdict"]
    told = record.get("sentence") or TAGS[verdict]
    big = told.removeprefix(f"{TAGS[verdict]}: ")
    worst = _worst(view)
    points = [
        ("What was chosen", _chosen(record.get("charter"))),
        (_WORST[worst[0]["verdict"]] if worst else "Findings", _worst_words(view, worst)),
        ("What cannot be told", _open(view)),
        ("Who decides", _who(view)),
        ("Since the audit before", compared or ""),
    ]
    return {
        "title": title(record),
        "meta": _meta(view),
        "tag": {"text": TAGS[verdict], "verdict": verdict},
        "big": big[:1].upper() + big[1:],
        "points": [{"name": name, "text": text} for name, text in points if text],
        "side": _side(view, worst),
        "cards": _cards(view),
    }


def title(record: Mapping[str, Any]) -> str:
    """The system's name, or the data's."""
    system = (record.get("charter") or {}).get("system") or {}
    if system.get("name"):
        return short(system["name"], most=80)
    source = spoken(record["data"].get("source") or "decisions")
    return short(f"Audit of {PurePath(source).name if '/' in source else source}", most=80)


def _meta(view: View) -> list[str]:
    data, made = view.record["data"], view.record["made"]
    rows = f"{data['rows']:,} rows" if data.get("rows") is not None else ""
    groups = [short(name) for name in (data.get("roles") or {}).get("group") or []]
    by = f"by {listed(groups)}" if groups else ""
    decision = ((view.record.get("charter") or {}).get("system") or {}).get("decision")
    return [
        text
        for text in (
            short(f"decision: {decision}", most=80) if decision else "",
            rows,
            by,
            f"audited {str(made.get('at', ''))[:10]}" if made.get("at") else "",
            f"Evenhand {made.get('version', '')}",
        )
        if text
    ]


def _chosen(charter: Mapping[str, Any] | None) -> str:
    if not charter:
        return ""
    told = spoken(charter.get("sentence")).removeprefix("Chosen: ")
    bands = []
    for one in (charter.get("choices") or [])[:1]:
        bands.append(
            f"The band it implies: act from {percent(one['implied_threshold_low'])} to "
            f"{percent(one['implied_threshold_high'])} (cost ratio {plain_number(one['low'])} to "
            f"{plain_number(one['high'])})."
        )
    return " ".join([told[:1].upper() + told[1:], *bands])


def _worst(view: View) -> tuple[Mapping[str, Any], Row] | None:
    """The finding that matters most and the row that speaks for it."""
    for finding in view.findings:
        row = view.lead_row(finding) if finding["rows"] else None
        if row is not None:
            return finding, row
    return None


def _worst_words(view: View, worst: tuple[Mapping[str, Any], Row] | None) -> str:
    if worst is None:
        said = [finding["sentence"] for finding in view.findings if finding["lens"] != "charter"]
        return spoken(said[0]) if said else "Nothing could be measured: see data quality."
    finding, row = worst
    positive_is = (view.record["data"].get("roles") or {}).get("positive_is")
    positive = view.positive(finding["lens"])
    meaning = {positive: positive_is} if positive and positive_is else {}
    told: str = (
        finding["sentence"]
        if row["measure"] in ("cost_ratio", "implied_threshold")
        else row_sentence(row, meaning=meaning)
    )
    told = re.sub(r" About [\d,]+ further cases? of this group would settle it\.$", "", told)
    cost = implied_cost(view, row["attribute"], row["group"])
    if cost is not None and row["measure"] != "cost_ratio":
        implied = cost_sentence([cost], cost)
        told += f" {implied}" if implied else ""
    if "n = " not in told and row["n"] is not None and "classes." not in told:
        told = f"{told.removesuffix('.')}; n = {row['n']:,.0f} for {short(row['group'])}."
    return spoken(told)


def _open(view: View) -> str:
    rows = [row for row in view.rows if row["verdict"] == "cannot tell" and row["labeler"] is None]
    keys = ("lens", "attribute", "group", "stratum")
    costs = {tuple(row[k] for k in keys) for row in rows if row["measure"] == "cost_ratio"}
    # A cost ratio is the implied threshold said otherwise: once is enough.
    rows = [
        row
        for row in rows
        if row["measure"] != "implied_threshold" or tuple(row[k] for k in keys) not in costs
    ]
    if not rows:
        return ""
    parts: list[str] = []
    seen = set()
    for row in by_size(rows)[:MOST_TRIED]:
        key = (row["measure"], row["attribute"], row["class"], row["group"])
        if key in seen:
            continue
        seen.add(key)
        needed = cases_needed(row, _base(view, row)) if row["measure"] in CATALOGUE else None
        if needed is None or isinstance(needed, str):
            continue
        parts.append(f"{_name(row)}: about {plural(float(needed), 'further case')}")
        if len(parts) == MOST_OPEN:
            break
    count = f"{plural(len(rows), 'comparison')} cannot be told from this data."
    if not parts:
        return f"{count} No number of further cases of one group alone would settle them."
    settle = "What would settle some of them" if len(rows) > len(parts) else "What would settle it"
    return f"{count} {settle}: {'; '.join(parts)}."


def _base(view: View, row: Row) -> tuple[float, float] | None:
    """The two rates that a gap or ratio compares."""
    rate = base_of(row["measure"])
    if rate not in RATES or row["reference"] is None:
        return None
    same = ("attribute", "class", "stratum")
    values = [
        [
            one["value"]
            for one in view.where(row["lens"], measure=rate, group=group)
            if all(one[key] == row[key] for key in same) and one["value"] is not None
        ]
        for group in (row["group"], row["reference"])
    ]
    return (values[0][0], values[1][0]) if all(values) else None


def _name(row: Row) -> str:
    parts = [words(row["measure"])]
    if row["class"] is not None:
        parts.append(f"of ‘{short(row['class'], most=24)}’")
    if row["group"] is not None:
        parts.append(f"for {short(row['group'], most=24)}")
    return " ".join(parts)


def _who(view: View) -> str:
    charter = view.record.get("charter")
    if not charter:
        return "Nobody is named: there is no charter. Begin one with: evenhand charter new"
    pressing = [one for one in view.findings if one["verdict"] in ("outside", "cannot tell")]
    layers = list(dict.fromkeys((one["layer"], one.get("owner")) for one in pressing))
    parts = [
        f"{layer} layer: {spoken(owner) if owner else 'no owner recorded'}"
        for layer, owner in layers
    ]
    told = f"Findings go to the {'; '.join(parts)}." if parts else ""
    review = [
        f"{opening(spoken(one.get('decided_by')) or 'nobody named')} looks at the choice again by "
        f"{one['review_by']}."
        for one in (charter.get("choices") or [])[:1]
        if one.get("review_by")
    ]
    return " ".join(filter(None, [told, *review])) or "Nobody is named in the charter."


def _side(view: View, worst: tuple[Mapping[str, Any], Row] | None) -> dict[str, Any] | None:
    """The rows beside the verdict: the family of what is furthest out."""
    if worst is None:
        return None
    finding, lead = worst
    rows: list[Row] = []
    if finding["lens"] in ("thresholds", "statistical"):
        rows = view.whole("thresholds", "implied_threshold", attribute=lead["attribute"])
        limited = any(row["limit_low"] is not None for row in rows)
        rows = rows if limited else []
    rows = rows or view.whole(finding["lens"], lead["measure"], attribute=lead["attribute"])
    if not rows:
        return None
    shown = by_size(rows)[:MOST_SIDE]
    classes = len({row["class"] for row in rows}) > 1
    groups = len({(row["group"], row["norm"]) for row in rows}) > 1
    keys = (["class"] if classes else []) + (["group"] if groups or not classes else [])
    return {
        "caption": opening(words(rows[0]["measure"])),
        "rows": [
            {
                "name": ", ".join(short(row[key] or row["attribute"], most=26) for key in keys),
                "value": value_text(row),
                "interval": interval_text(row).replace(", ", ",\u00a0"),
                "verdict": row["verdict"],
            }
            for row in shown
        ],
        "more": len(rows) - len(shown),
        "href": f"#{PLACES.get(str(rows[0]['lens']), 'methods')}",
    }


def _cards(view: View) -> list[dict[str, Any]]:
    """The further findings: all that are judged, and of each other lens the first."""
    found = [one for one in view.findings if one["lens"] != "charter"]
    judged = [one for one in found if one["verdict"] != "not assessed"]
    shown = list(judged) if judged else list(found)
    costs = {one["attribute"] for one in shown if one["measure"] == "cost_ratio"}
    # A cost ratio is the implied threshold said otherwise: one card is enough.
    shown = [
        one
        for one in shown
        if one["measure"] != "implied_threshold" or one["attribute"] not in costs
    ]
    for one in found:
        if one["lens"] not in {other["lens"] for other in shown}:
            shown.append(one)
    worst = _worst(view)
    shown = [one for one in shown if worst is None or one is not worst[0]]
    return [
        {
            "verdict": one["verdict"],
            "text": spoken(headline(one["sentence"])),
            "rest": spoken(after(one["sentence"])) if after(one["sentence"]) else "",
            "href": f"#{PLACES.get(one['lens'], 'quality')}",
        }
        for one in shown[:MOST_CARDS]
    ]
