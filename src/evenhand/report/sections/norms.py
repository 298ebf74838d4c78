"""Norm bias: group shares against rank correlations, and the words that carry it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evenhand.findings.limits import is_unclaimed
from evenhand.findings.sentences.texts import say_unknown_norms, unknown_of
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import HIDDEN_UNDER
from evenhand.report.blocks import (
    Block,
    as_csv,
    figure,
    folded,
    numbers_table,
    rows_csv,
    section,
    slug,
    table,
    verdict_legend,
)
from evenhand.report.labels import cell, short
from evenhand.report.palette import OUTSIDE, PLAIN, VERDICTS
from evenhand.report.view import View, by_size, with_findings
from evenhand.speech import number, signed

LENS = "norms"
MOST_CLASSES, MOST_NAMES = 4, 12
KEYS = ("word", "class", "classifier", "norm", "relevant")
LEGEND = (
    {"shape": "circle", "colour": PLAIN, "text": "Marks the class in every group"},
    {"shape": "triangle-up", "colour": OUTSIDE, "text": "Not shown to mark it in every group"},
)
Word = Mapping[str, Any]


def words_figure(view: View) -> list[Block]:
    """Words with their weight in the classifier and in the norm scorer, where the record has them.

    Read from details.norms: `words`, rows of word, class, classifier, norm and relevant, and
    `words_toward`, the group that the norm's weights point to.
    """
    known = _known(view)
    if not known:
        return []
    group = short(view.details(LENS).get("words_toward") or "the group")
    told = [one for one in known if one.get("relevant") is not None]
    classes = _classes(view, known)
    shown = [one for name in classes for one in known if one["class"] == name]
    title = _title(shown, group)
    columns = ("Class", "Word", "In the classifier", "In the norm scorer", "Marks the class")
    body = [
        [
            cell(one["class"]),
            cell(one["word"]),
            signed(one["classifier"]),
            signed(one["norm"]),
            "–" if one.get("relevant") is None else "yes" if one["relevant"] else "no",
        ]
        for one in shown
    ]
    several = len({one["class"] for one in known})
    notes = []
    if several > len(classes):
        notes.append(
            f"{len(classes)} of {several:,} classes are drawn, those in which the norm of {group} "
            "and the score go together most, either way; all are in the CSV."
        )
    return [
        figure(
            "norm-words",
            title=title,
            charts=[_chart(name, [one for one in shown if one["class"] == name], group)
                    for name in classes],
            read=f"each mark is a word. To the right it is typical of {group}, to the left of "
            "others; upwards it speaks for the class, downwards against it. A word far from "
            "both lines lets looking typical move the score; where it does not mark the class in "
            "every group, ask what it does there.",
            legend=LEGEND if told else [],
            numbers=table("Words and their weights", columns, body, numbers=columns[2:4], most=100),
            csv_text=as_csv(KEYS, ([one.get(key) for key in KEYS] for one in known)),
            notes=notes,
        )
    ]  # fmt: skip


def _known(view: View) -> list[Word]:
    held = view.details(LENS).get("words")
    rows = held if isinstance(held, list) else []
    return [
        one
        for one in rows
        if isinstance(one, Mapping)
        and all(isinstance(one.get(key), str) for key in ("word", "class"))
        and all(isinstance(one.get(key), int | float) for key in ("classifier", "norm"))
    ]


def _classes(view: View, known: list[Word]) -> list[str]:
    """The classes to draw: where score and norm go together most, half of them either way."""
    toward = view.details(LENS).get("words_toward")
    present = list(dict.fromkeys(one["class"] for one in known))
    trends = [
        one
        for one in view.details(LENS).get("trends") or []
        if one.get("stratum") is None
        and not one.get("irrelevant")
        and one.get("group") == one.get("norm") == toward
    ]
    size = {
        name: r
        for one in trends[:1]
        for name, r in zip(one["classes"], one["correlation"])
        if r is not None and name in present
    }
    if not size:
        return present[:MOST_CLASSES]
    ranked = sorted(size, key=lambda name: -size[name])
    half = MOST_CLASSES // 2
    return list(dict.fromkeys([*ranked[:half], *ranked[half:][-half:]]))


def _chart(name: str, words: list[Word], group: str) -> dict[str, Any]:
    ranked = sorted(words, key=_weight)
    # Names go first to the words that should not matter.
    ranked.sort(key=lambda one: one.get("relevant") is not False)
    return {
        "kind": "scatter",
        "title": short(name),
        "points": [
            {
                "x": one["norm"],
                "y": one["classifier"],
                "kind": "silent" if one.get("relevant") is False else "telling",
                "name": short(one["word"], most=18),
                "tip": f"{short(one['word'])}: norm {signed(one['norm'])}, "
                f"classifier {signed(one['classifier'])}",
            }
            for one in ranked
        ],
        "kinds": {"telling": (PLAIN, "circle"), "silent": (OUTSIDE, "triangle-up")},
        "x_axis": f"Weight in the norm of {group}",
        "y_axis": "Weight in the classifier",
        "x_zero": 0.0,
        "y_zero": 0.0,
        "named": MOST_NAMES,
    }


def _title(shown: list[Word], group: str) -> str:
    first = min(shown, key=_weight)
    typical = "typical" if first["norm"] > 0 else "untypical"
    way = "for" if first["classifier"] > 0 else "against"
    return (
        f"‘{short(first['word'])}’, {typical} of {group}, speaks {way} "
        f"‘{short(first['class'])}’: no word weighs more in both"
    )


def _weight(one: Word) -> float:
    return -abs(float(one["classifier"]) * float(one["norm"]))


LENS = "norms"
MOST_TRENDS = 2
BIAS = ("norm_bias", "norm_bias_irrelevant")


def norms_section(view: View) -> dict[str, Any] | None:
    """The section on norm bias; None where the lens gave nothing."""
    if LENS not in view.rows.lenses:
        return None
    found = view.lens_findings(LENS)
    blocks: list[Block] = []
    every = [
        one
        for one in view.details(LENS).get("trends") or []
        if one.get("stratum") is None and one.get("group") == one.get("norm")
    ]
    unknown = unknown_of(view.record.get("details"))
    open_norms = {(one["norm"], one["irrelevant"]) for one in unknown}
    trends = [one for one in every if not _is_open(one, open_norms)]
    plain = [one for one in trends if not one.get("irrelevant")]
    shown = _leading(plain)
    for one in shown[:1]:
        blocks.append(_trend(one))
    more = [_trend(one) for one in shown[1:MOST_TRENDS]]
    without = {one["group"]: one for one in trends if one.get("irrelevant")}
    more += [_trend(without[one["group"]]) for one in shown[:1] if one["group"] in without]
    blocks += _biases(view)
    if (view.details(LENS).get("words_toward"), False) not in open_norms:
        blocks += words_figure(view)
    if more:
        blocks.append(
            folded("The same for other groups, and by words that say nothing of the class", more)
        )
    # No limit is held against what a norm that is not known shows, corrected or not.
    left_open = [
        _trend({**one, "corrected_leads": False}) for one in every if _is_open(one, open_norms)
    ]
    if left_open:
        blocks.append(folded("What was measured with norms that are not known", left_open))
    top = view.lens_findings(LENS, *BIAS) or found
    heading = top[0]["heading"] if top else "The data prove no norm bias"
    if unknown and any(one["rows"] or one.get("numbers") for one in found):
        said = [say_unknown_norms([one], view.words).line for one in unknown]
        items = [{"verdict": "cannot tell", "text": text} for text in said]
        blocks.insert(0, {"kind": "list", "title": None, "items": items})
    return section(
        "norms",
        kicker="Norm bias",
        heading=heading,
        lead="People of one group differ in how typical of it their text looks. Norm bias asks "
        "whether the score rewards looking typical, and whether it does so where the group is "
        "common.",
        blocks=with_findings(found, blocks, heading=heading),
    )


def _is_open(one: Mapping[str, Any], unknown: Collection[tuple[str, bool]]) -> bool:
    """Whether a trend is of a norm that is not known."""
    return (one["norm"], bool(one.get("irrelevant"))) in unknown


def _leading(trends: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Trends with the strongest norm bias first; of equal ones, as they came."""
    return sorted(trends, key=lambda one: -abs(one.get("bias") or 0.0))


def _trend(one: Mapping[str, Any]) -> Block:
    """The classes of one group and norm, and how their correlations rise with the group's share."""
    group, lines = short(one["group"]), _class_lines(one)
    irrelevant = bool(one.get("irrelevant"))
    by = " by words that say nothing of the class" if irrelevant else ""
    title = f"Norm bias of {group}{by}: ρ = {_with_interval(one, 'bias', 'undefined')}"
    end = "-irrelevant" if irrelevant else ""
    columns = ("Class", f"Share of {group}", f"With the norm of {group}", "Interval", "n")
    return figure(
        f"norms-{slug(str(one.get('attribute')))}-{slug(str(one['group']))}{end}",
        title=title,
        charts=[
            {
                "kind": "scatter",
                "points": _trend_points(lines),
                "kinds": {"told": (OUTSIDE, "circle"), "open": (PLAIN, "square")},
                "x_axis": f"Share of {group} in the class",
                "x_format": "%",
                "y_axis": f"Correlation of score and norm of {group}",
                "y_zero": 0.0,
                "title": title,
            }
        ],
        read=f"each mark is a class. High means that among {group} of that class those who look "
        f"typical of {group} get the higher score. Rising from left to right means that the norm "
        f"is rewarded where {group} is common and punished where it is rare: ρ near 1.",
        legend=[
            {"shape": "circle", "colour": OUTSIDE, "text": "Interval leaves out 0"},
            {"shape": "square", "colour": PLAIN, "text": "Interval holds 0"},
        ],
        numbers=table(
            f"Rank correlation of the score with the norm of {group}, among {group}",
            columns,
            [_class_cells(line) for line in lines],
            numbers=columns[1:],
            most=60,
        ),
        csv_text=as_csv(
            ("class", "share", "correlation", "low", "high", "n"),
            (list(line.values()) for line in lines),
        ),
        notes=_trend_notes(one),
    )


def _class_lines(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The classes of a trend, a line each, without the correlations of a few rows."""
    keys = ("classes", "share", "correlation", "low", "high", "n")
    lines = [
        dict(zip(keys, values))
        for values in zip(*(one.get(key) or [None] * len(one["classes"]) for key in keys))
    ]
    for line in lines:
        # Older records held the correlations of a few rows; nobody is shown them.
        if line["n"] is not None and line["n"] < HIDDEN_UNDER:
            line |= {"correlation": None, "low": None, "high": None}
    return lines


def _trend_points(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Marks of the classes; the strongest correlations and both ends of the shares are named."""
    known = [x for x in lines if x["share"] is not None and x["correlation"] is not None]
    ranked = sorted(known, key=lambda x: -abs(x["correlation"]))
    by_share = sorted(known, key=lambda x: x["share"])
    named = {x["classes"] for x in (*ranked[:4], *by_share[:1], *by_share[-1:])}
    return [
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


def _class_cells(line: Mapping[str, Any]) -> list[Any]:
    """A class as a line of the table."""
    interval = ""
    if line["low"] is not None:
        interval = f"[{number(line['low'])}, {number(line['high'])}]"
    elif (line["n"] or 0) < HIDDEN_UNDER:
        interval = f"hidden: under {HIDDEN_UNDER} rows"
    return [
        cell(line["classes"]),
        number(line["share"]),
        signed(line["correlation"]),
        interval,
        f"{line['n']:,.0f}" if line["n"] is not None else "–",
    ]


def _with_interval(one: Mapping[str, Any], name: str, absent: str) -> str:
    """A number of a trend with its interval, or other words where there is none."""
    value, ends = one.get(name), one.get(f"{name}_interval") or (None, None)
    if value is None:
        return absent
    return signed(value) + (f" [{number(ends[0])}, {number(ends[1])}]" if None not in ends else "")


def _trend_notes(one: Mapping[str, Any]) -> list[str]:
    """What sampling noise does to a trend."""
    notes = []
    if one.get("mean") is not None and one.get("floor") is not None:
        notes.append(
            f"The mean size of the correlation is {number(one['mean'])}; sampling noise alone "
            f"would give {number(one['floor'])}."
        )
    if one.get("corrected_leads"):
        freed = _with_interval(one, "bias_corrected", "")
        told = f"is {freed}" if freed else "is open: the data cannot tell"
        notes.append(
            f"Classes are small: only {number(one.get('reliability'))} of the variance of their "
            f"correlations is not sampling error. Freed of it, ρ {told}, and limits are held "
            "against that."
        )
    return notes


def _beyond(line: Mapping[str, Any]) -> bool:
    low, high = line["low"], line["high"]
    return low is not None and high is not None and bool(low > 0 or high < 0)


def _judged(view: View, row: Row) -> Row:
    """The row that is judged in place of this one, or itself."""
    others = (
        other
        for name in view.measures(LENS)
        for other in view.whole(LENS, name)
        if other.get("judged_as") == row["measure"]
        and all(other[key] == row[key] for key in ("attribute", "group", "norm"))
    )
    return next(others, row)


def _biases(view: View) -> list[Block]:
    rows: list[Row] = [_judged(view, row) for name in BIAS for row in view.whole(LENS, name)]
    defined = [row for row in rows if row["value"] is not None and not is_unclaimed(row)]
    if not defined:
        return []
    title = "ρ of each group, with all words and with words that say nothing of the class"
    marks = [
        {
            "label": f"{short(row['group'], most=20)}, "
            + ("other words" if look_up(row["measure"]).variant_of else "all words"),
            "value": row["value"],
            "low": row["family_low"],
            "high": row["family_high"],
            "verdict": row["verdict"],
            "limit_low": row["limit_low"],
            "limit_high": row["limit_high"],
            "tip": f"{short(row['group'])}: {signed(row['value'])}"
            + (", freed of sampling error" if "_corrected" in row["measure"] else ""),
        }
        for row in defined[:20]
    ]
    verdicts = [v for v in VERDICTS if any(row["verdict"] == v for row in defined)]
    more = [
        row
        for name in sorted(view.measures(LENS))
        if look_up(name).counts == "classes"
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
