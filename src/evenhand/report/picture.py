"""The one picture of the first screen: every group's rate or implied threshold, and the band."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.findings.limits import is_unclaimed
from evenhand.findings.sentences.agreed import limit_words, two
from evenhand.findings.sentences.rates import compared_rates
from evenhand.findings.sentences.words import words
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.report.blocks import (
    Block,
    axis_form,
    axis_title,
    by_class,
    figure,
    is_shown,
    mark,
    numbers_table,
    positive_ends,
    rows_csv,
    share,
    value_text,
    verdict_legend,
)
from evenhand.report.labels import short
from evenhand.report.palette import SERIES, SERIES_SHAPES, VERDICTS
from evenhand.report.view import View, by_size
from evenhand.speech import agreed_number, agreed_ratio, chance, few, opening, times

LENS = "statistical"
MOST_GROUPS, MOST_CLASSES, MOST_SERIES = 12, 8, 3
WIDTH = 430
# Two scales of one idea: people understand the probability.
_SAME_IDEA = {"cost_ratio": "implied_threshold", "cost_ratio_ratio": "implied_threshold"}

# What a reader sees on the axis instead of a measure's name.
_AXES = {
    "norm_bias": "Does looking typical pay where a group is common? (0: no, 1: always)",
}


def picture(view: View, finding: Mapping[str, Any] | None, lead: Row | None) -> Block | None:
    """The figure that goes with the leading finding; None where nothing can be drawn.

    Where no finding rests on a row, because nothing is proven, it shows every group's rate.
    """
    drawn = None
    if finding is not None and lead is not None and not is_unclaimed(lead):
        drawn = _of_finding(view, finding, lead)
    if drawn is not None:
        return drawn
    for attribute in view.attributes(LENS):
        rates = view.whole(LENS, "selection_rate", attribute=attribute)
        if len({row["class"] for row in rates}) > 1:
            return _classes(view, attribute, "true_positive_rate")
        return _groups(view, rates, "")
    return None


def _of_finding(view: View, finding: Mapping[str, Any], lead: Row) -> Block | None:
    attribute, lens = lead["attribute"], str(finding["lens"])
    record = look_up(lead["measure"])
    base = _SAME_IDEA.get(record.name) or _SAME_IDEA.get(record.base or "")
    if lens == "labelers" and base is not None:
        # Findings on labelers speak of how they weigh mistakes: the picture keeps to that scale.
        rows = view.whole(lens, "cost_ratio", attribute=attribute)
        if any(is_shown(row) for row in rows):
            miss = view.words.a_miss("one", rows[0]["class"])
            return _groups(view, rows, opening(f"{view.words.mistakes} that {miss} counts as"))
    if lens in ("thresholds", "labelers"):
        rows = view.whole(lens, base or "implied_threshold", attribute=attribute)
        if any(is_shown(row) for row in rows):
            return _groups(view, rows, _acts_from(view, rows[0]))
    rate = record.base or _rate_behind(view, finding, lead)
    if lens == LENS and rate and look_up(rate).kind == "rate":
        if record.counts == "classes" or _has_many_classes(view, attribute, rate):
            return _classes(view, attribute, rate)
        rates = view.whole(LENS, rate, attribute=attribute)
        if rates:
            compared = view.whole(LENS, record.name, attribute=attribute)
            return _groups(view, _as_judged(rates, compared), "", around=_around(view, compared))
    if record.parts and look_up(record.parts).kind == "gap":
        return _forest(view, view.whole(lens, record.parts, attribute=attribute))
    return _forest(view, view.whole(lens, record.name, attribute=attribute))


def _rate_behind(view: View, finding: Mapping[str, Any], lead: Row) -> str | None:
    """The rate that a measure of several rates owes its value to, where the finding states it."""
    stated = [view.record["results"][i] for i in finding["numbers"]]
    return next((str(row["measure"]) for row in compared_rates(lead, stated)), None)


def _acts_from(view: View, row: Row) -> str:
    """What an implied threshold is: the chance from which on people are acted on."""
    what = view.words.chance(row["class"])
    return f"{opening(what)} from which on {view.words.items[1]} {view.words.happens(row['class'])}"


def who(view: View, attribute: str | None, group: str | None) -> str:
    """A group as a picture names it: in the words of people where there are any."""
    return view.words.label(attribute, group)


def _has_many_classes(view: View, attribute: str | None, rate: str) -> bool:
    return len({row["class"] for row in view.whole(LENS, rate, attribute=attribute)}) > 1


def _as_judged(rates: Sequence[Row], compared: Sequence[Row]) -> list[Row]:
    """Rates with the verdicts on their comparisons, and a band around the reference's rate."""
    # Of a widest gap both groups are what it is about.
    judged = {
        row[side]: row
        for side in ("reference", "group")
        for row in compared
        if side == "group" or look_up(row["measure"]).kind == "distance"
    }
    at = {row["group"]: row["value"] for row in rates}
    held: list[Row] = []
    for rate in rates:
        own = judged.get(rate["group"])
        band: dict[str, Any] = {"limit_low": None, "limit_high": None}
        for row in list(filter(_is_limited, compared))[:1]:
            middle = at.get(row["reference"])
            if middle is not None:
                ratio = look_up(row["measure"]).kind == "ratio"
                edges = {key: middle * row[key] if ratio else middle + row[key] for key in band}
                band = {key: min(max(edge, 0.0), 1.0) for key, edge in edges.items()}
        verdict = own["verdict"] if own is not None else "not assessed"
        held.append({**rate, **band, "verdict": verdict})
    return held


def _is_limited(row: Row) -> bool:
    """Whether a limit on a gap or a ratio leaves a band around the reference's rate."""
    limited = row["limit_low"] is not None and row["limit_high"] is not None
    return limited and look_up(row["measure"]).kind in ("gap", "ratio")


def _around(view: View, compared: Sequence[Row]) -> str | None:
    """A limit in words: so many points around the reference's rate, or so many times it."""
    for row in list(filter(_is_limited, compared))[:1]:
        if not row["reference"]:
            continue
        name = short(who(view, row["attribute"], row["reference"]), most=20)
        if look_up(row["measure"]).kind == "ratio":
            low, high = (agreed_ratio(row[end]) for end in ("limit_low", "limit_high"))
            return f"agreed: {low} to {high} × {name}"
        low, high = (f"{abs(row[end]) * 100:.3g}" for end in ("limit_low", "limit_high"))
        size = low if low == high else f"{low} to {high}"
        return f"agreed: within {size} points of {name}"
    return None


def _groups(
    view: View, rows: Sequence[Row], axis: str, *, around: str | None = None
) -> Block | None:
    """Every group on a line, the highest first; of very many the outermost."""
    known = [row for row in rows if is_shown(row)]
    if not known:
        return None
    measure = str(known[0]["measure"])
    order = sorted(known, key=lambda row: -_place(row))
    by_name = {str(row["group"]): row for row in order}
    shown = [by_name[name] for name in outermost(list(by_name))]
    bands = {(r["limit_low"], r["limit_high"]) for r in shown if r["limit_low"] is not None}
    low, high = bands.pop() if len(bands) == 1 else (None, None)
    agreed = around
    if around is None and low is not None and high is not None:
        form = chance if axis_form(measure) == "%" else agreed_number
        agreed = f"agreed: {form(low)} to {form(high)}"
    words_of_axis = axis or rate_in_words(view, measure, known[0]["class"])
    marks = [
        mark(row, who(view, row["attribute"], row["group"])) | {"text": _text(row)} for row in shown
    ]
    return _figure(
        view,
        shown,
        [
            {
                "kind": "forest",
                "rows": positive_ends(marks, log=measure == "cost_ratio"),
                "log": measure == "cost_ratio",
                "axis": axis_title(words_of_axis, axis_form(measure)),
                "format": axis_form(measure),
                "agreed": agreed,
                "values": True,
                "from_zero": axis_form(measure) == "%",
                "step": 44 if len(shown) <= 5 else 32 if len(shown) <= 8 else 27,
            }
        ],
        title=f"{words_of_axis}, by {short(shown[0]['attribute'])}",
        more=len(by_name) - len(shown),
    ) | {"legend": _legend(shown)}


def rate_in_words(view: View, measure: str, name: str | None) -> str:
    """A rate as the head of a column or axis, in the charter's words where it has them."""
    said = bool(view.words.decided) or measure == "accuracy"
    return opening(view.words.column(measure, name) if said else look_up(measure).label)


def _legend(rows: Sequence[Row]) -> list[dict[str, str]]:
    """What the marks mean, where they do not all mean the same."""
    verdicts = [name for name in VERDICTS if any(row["verdict"] == name for row in rows)]
    if len(verdicts) < 2:
        return []
    legend = verdict_legend(verdicts, band=False)
    # Where others are judged, a group without a verdict is the one they are compared with; a widest
    # gap, which leaves no band around anybody, is between two of them and about no others.
    rest = "Compared with" if any(row["limit_low"] is not None for row in rows) else "Others"
    return [
        item | {"text": rest} if verdict == "not assessed" else item
        for verdict, item in zip(verdicts, legend)
    ]


def _classes(view: View, attribute: str | None, rate: str) -> Block | None:
    """The classes in which groups differ most clearly, a mark for each group."""
    classes = leading_classes(view, attribute, rate)[:MOST_CLASSES]
    held = [
        row
        for row in view.whole(LENS, rate, attribute=attribute)
        if row["class"] in classes and row["value"] is not None
    ]
    groups = list(dict.fromkeys(row["group"] for row in held))[:MOST_SERIES]
    rows = [row for row in held if row["group"] in groups]
    if not rows:
        return None
    names = {group: short(who(view, attribute, group), most=24) for group in groups}
    gaps = view.whole(LENS, f"{rate}_gap", attribute=attribute)
    by_gap = sorted(
        (gap for gap in gaps if gap["class"] in classes and gap["value"] is not None),
        key=lambda gap: -gap["value"],
    )
    order = list(dict.fromkeys(gap["class"] for gap in by_gap)) or classes
    chart = {
        "kind": "grouped",
        "axis": opening(look_up(rate).label),
        "format": axis_form(rate),
        "rows": [
            {
                "line": row["class"],
                "series": names[row["group"]],
                "value": row["value"],
                "low": row["family_low"],
                "high": row["family_high"],
                "tip": f"{short(row['class'])}, {names[row['group']]}: {share(row['value'])}",
            }
            for name in order
            for row in rows
            if row["class"] == name
        ],
    }
    every = len({row["class"] for row in view.whole(LENS, rate, attribute=attribute)})
    title = f"{opening(look_up(rate).label)} by class, where groups differ most clearly"
    return _figure(view, rows, [chart], title=title, more=every - len(order)) | {
        "legend": [
            {"shape": SERIES_SHAPES[i], "colour": SERIES[i], "text": names[group]}
            for i, group in enumerate(groups)
        ]
    }


def leading_classes(view: View, attribute: str | None, rate: str) -> list[str]:
    """Classes by how strongly the data speak for a gap in them, the strongest first."""
    gaps = [
        row
        for row in view.whole(LENS, f"{rate}_gap", attribute=attribute)
        if row["value"] is not None
    ]
    return list(dict.fromkeys(str(row["class"]) for row in sorted(gaps, key=_evidence)))


def _evidence(row: Row) -> tuple[float, float]:
    """The strongest evidence first: by its p, and of equal ones by its size."""
    p = 1.0 if row["p"] is None else float(row["p"])
    return p, -look_up(row["measure"]).size(row["value"])


def outermost(groups: Sequence[str], *, most: int = MOST_GROUPS) -> list[str]:
    """Groups in order; of too many the first and the last, so that no outlier is left out.

    Examples:
        >>> outermost(list("abcdef"), most=4)
        ['a', 'b', 'e', 'f']
    """
    if len(groups) <= most:
        return list(groups)
    half = most // 2
    return [*groups[:half], *groups[-(most - half) :]]


def _forest(view: View, rows: Sequence[Row]) -> Block | None:
    """The rows of any other measure, the ones that matter most."""
    known = [row for row in by_size(rows) if is_shown(row)]
    if not known:
        return None
    shown = sorted(known[:MOST_CLASSES], key=lambda row: -_place(row))
    record = look_up(shown[0]["measure"])
    form = axis_form(record.name)
    several = len({row["class"] for row in known}) > 1
    marks = [
        mark(row, by_class(row) if several else who(view, row["attribute"], row["group"]))
        | {"text": None if several else _text(row)}
        for row in shown
    ]
    name = _AXES.get(record.name.removesuffix("_corrected")) or opening(
        record.label if record.name else words(str(shown[0]["measure"]))
    )
    limits = {limit_words(row, unit=True) for row in shown}
    agreed = limits.pop() if len(limits) == 1 else None
    chart = {
        "kind": "forest",
        "rows": positive_ends(marks, log=form == "times"),
        "axis": axis_title(name, form),
        "format": form,
        "log": form == "times",
        "zero": record.neutral,
        "values": not several,
        "agreed": f"agreed: {agreed.removesuffix(' was agreed')}" if agreed else None,
        "step": 30 if several else 44,
    }
    title = f"{name} by {'class' if several else short(shown[0]['attribute'])}"
    return _figure(view, shown, [chart], title=title, more=len(known) - len(shown))


def _figure(
    view: View, rows: Sequence[Row], charts: list[dict[str, Any]], *, title: str, more: int
) -> Block:
    for chart in charts:
        chart["title"] = title
    notes = [f"{more:,} more in the sections below."] if more > 0 else []
    return figure(
        "picture",
        title=title,
        charts=charts,
        read=f"{title}. The line is the interval at {view.level} for all of them together.",
        numbers=numbers_table(rows, caption=title),
        csv_text=rows_csv(rows),
        notes=notes,
    )


def _place(row: Row) -> float:
    return float(row["value"] if row["value"] is not None else row["set_low"])


def _text(row: Row) -> str:
    """A value as the picture prints it over its mark."""
    form = axis_form(row["measure"])
    if row["value"] is None:
        ends = [row["set_low"], row["set_high"]]
        if form == "%" and None not in ends:
            return f"{share(ends[0])} to {share(ends[1])}"
        return value_text(row)
    if form == "%":
        return share(row["value"])
    if row["measure"] == "cost_ratio":
        return few(row["value"])
    if form == "size":
        return f"{row['value'] * 100:.1f}"
    if form == "points":
        return f"{row['value'] * 100:+.1f}".replace("-", "−")
    if look_up(row["measure"]).kind == "correlation":
        return two(row["value"])
    return f"{times(row['value'])}×" if form == "times" else value_text(row)
