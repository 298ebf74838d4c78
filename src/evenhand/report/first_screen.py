"""The first screen: the finding, one picture of it, rates by group, what to do, what is open."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from evenhand.findings.sentences.verdict import TAGS, UNLIMITED
from evenhand.lenses.measures import look_up
from evenhand.lenses.rows import Row
from evenhand.report.beside import Beside
from evenhand.report.blocks import Block, slug, table
from evenhand.report.labels import cell, listed, short, spoken
from evenhand.report.ledger import recommended
from evenhand.report.outline import AGREE, NOBODY, Outline, counted, outline
from evenhand.report.picture import outermost, picture, rate_in_words
from evenhand.report.rates import Grid, RateCell
from evenhand.report.view import View
from evenhand.speech import opening

# Sections that are not named after their lens.
PLACES = {"statistical": "gaps", "charter": "costs"}
MOST_ALSO, MOST_OPEN, MOST_GRIDS = 3, 2, 2
SPOKEN_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


def first_screen(
    view: View,
    *,
    compared: str | None = None,
    beside: Beside | None = None,
    ledger: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a reader has to know after one screen, in the order in which it is read.

    Where remedies were compared, what to do is what their `ledger` recommends.
    """
    record = view.record
    lead, row = _lead(view)
    parts = outline(record)
    return {
        "title": title(record),
        "meta": _meta(view),
        "tag": {"text": TAGS[record["verdict"]], "verdict": record["verdict"]},
        "big": _headline(view, lead),
        "heeded": [spoken(text) for text in parts.heeded],
        "detail": _detail(view, lead),
        "next": _next(view, lead, ledger),
        "agreed": _agreed(record.get("charter")),
        "compared": {"text": compared, "href": "#comparison", "name": "Since then."}
        if compared
        else {"text": f"{beside.heading()}.", "href": "#beside", "name": "The labelers."}
        if beside
        else None,
        "picture": picture(view, lead, row),
        "rates": [_rates(grid, view) for grid in parts.grids[:MOST_GRIDS]],
        "also": _also(view, lead),
        "open": _open(parts, lead),
    }


def lead_picture(view: View) -> Block | None:
    """The one picture of the leading finding, where a notebook shows it alone."""
    return picture(view, *_lead(view))


def _lead(view: View) -> tuple[Mapping[str, Any] | None, Row | None]:
    """The finding that leads, and the row that speaks for it."""
    for finding in view.findings:
        row = view.lead_row(finding) if finding["rows"] else None
        if row is not None:
            return finding, row
    others = [one for one in view.findings if one["lens"] != "charter"]
    return (others[0] if others else None), None


def _headline(view: View, lead: Mapping[str, Any] | None) -> str:
    if lead is None:
        measured = [row for row in view.rows if row["value"] is not None]
        what = "There is nothing to compare" if measured else "Nothing could be measured"
        if any(row["no_interval"] is not None for row in measured):
            what = "No difference can be told"
        return f"{what}: see data quality."
    return opening(spoken(lead["heading"]))


def _detail(view: View, lead: Mapping[str, Any] | None) -> list[str]:
    """The numbers of the headline, and that nothing is judged where no limit was set."""
    said = [spoken(lead["detail"])] if lead is not None and lead["detail"] else []
    if view.record["verdict"] == "not assessed":
        said.append(spoken(view.record.get("remark") or UNLIMITED).replace("`", ""))
    return said


def _next(
    view: View, lead: Mapping[str, Any] | None, ledger: Mapping[str, Any] | None
) -> dict[str, str] | None:
    """What to do about the leading finding, and whose job it is."""
    if lead is None:
        return None
    if view.record["verdict"] == "not assessed":
        text, who = spoken(lead.get("next")) or AGREE, spoken(lead.get("whose")) or NOBODY
        return {"text": text, "who": who}
    owner = spoken(lead.get("owner")) or "nobody is named yet (evenhand charter new)"
    text = spoken(lead["next"]) if lead.get("next") else "Decide what difference is acceptable."
    remedy = recommended(ledger, lead["lens"]) if lead["verdict"] == "outside" else None
    text = spoken(remedy) or text
    whose = lead.get("whose") or f"{opening(lead['layer'])}: {owner}."
    return {"text": text, "who": spoken(whose)}


def title(record: Mapping[str, Any]) -> str:
    """The system's name, or the data's."""
    system = (record.get("charter") or {}).get("system") or {}
    if system.get("name"):
        return short(system["name"], most=80)
    source = spoken(record["data"].get("source") or "decisions")
    return short(f"Audit of {PurePath(source).name if '/' in source else source}", most=80)


def _meta(view: View) -> list[str]:
    data, made = view.record["data"], view.record["made"]
    rows = counted(view.record) if data.get("rows") is not None else ""
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
            _review(view.record.get("charter")),
            f"Evenhand {made.get('version', '')}",
        )
        if text
    ]


def _review(charter: Mapping[str, Any] | None) -> str:
    """Whose choice the charter holds, and when it is looked at again."""
    for one in ((charter or {}).get("choices") or [])[:1]:
        by = f" of {spoken(one['decided_by'])}" if one.get("decided_by") else ""
        when = f", review by {one['review_by']}" if one.get("review_by") else ""
        return f"charter{by}{when}"
    return ""


def _agreed(charter: Mapping[str, Any] | None) -> str:
    """What was chosen, by whom and until when, in the charter's words."""
    if not charter or not charter.get("choices"):
        return ""
    return opening(spoken(charter.get("chosen") or charter.get("sentence")))


def _open(parts: Outline, lead: Mapping[str, Any] | None) -> list[str]:
    """What the data cannot tell, and what would settle it; not what to do, which stands above."""
    done = str((lead or {}).get("next") or "")[1:]
    said = [spoken(text) for text in parts.unknown if not done or not text.endswith(done)]
    more = ["More that is open stands in the sections below."] if len(said) > MOST_OPEN else []
    return said[:MOST_OPEN] + more


def _rates(grid: Grid, view: View) -> Block:
    """Every group's rates as a table: of very many groups the highest and the lowest."""
    names = outermost([name for name, _ in grid.lines])
    lines = [(name, held) for name, held in grid.lines if name in names]
    classes = grid.corner == "class"
    columns = [opening(grid.corner), *(opening(spoken(name)) for name in _heads(grid, view))]
    columns += [] if classes else ["Cases"]
    body = [
        [cell(name), *(_rate(one, counted=classes) for one in held)]
        + ([] if classes else [_cases(held)])
        for name, held in lines
    ]
    caption = f"Intervals hold at {view.level} for all of a column together"
    held = table(caption, columns, body, numbers=columns[1:])
    left = grid.more + len(grid.lines) - len(lines)
    return held | {"heading": _rates_heading(grid, view), "more": left}


def _rates_heading(grid: Grid, view: View) -> str:
    if grid.corner == "class":
        return opening(spoken(grid.title))
    what = f"What happens to {view.words.items[1]}," if view.words.item else "Rates"
    return f"{what} by {spoken(grid.title)}"


def _heads(grid: Grid, view: View) -> tuple[str, ...]:
    """The heads of columns: what happened to people, in the charter's words where it has them."""
    positive = view.positive()
    if grid.corner == "class" or positive is None:
        return grid.columns
    return tuple(
        rate_in_words(view, measure, positive) if measure in SPOKEN_RATES else name
        for measure, name in zip(grid.measures, grid.columns)
    )


def _rate(one: RateCell | None, *, counted: bool) -> Any:
    if one is None:
        return "–"
    small = f"{one.interval} n = {one.n}" if counted else one.interval
    return {"text": one.rate, "small": small} if one.interval else one.rate


def _cases(held: Sequence[RateCell | None]) -> str:
    """A group's cases: of its rates the one that counts most of them."""
    counted = [one for one in held if one is not None and one.count is not None]
    return max(counted, key=lambda one: one.count or 0.0).n if counted else "–"


def _also(view: View, lead: Mapping[str, Any] | None) -> dict[str, Any]:
    """Two or three further findings, each in a line, and how many more there are."""
    found = [one for one in view.findings if one is not lead and not _said_by(one, lead)]
    found.sort(key=lambda one: one["verdict"] not in ("outside", "cannot tell", "within"))
    shown = found[:MOST_ALSO]
    return {
        "items": [
            {
                "verdict": one["verdict"],
                "text": spoken(one.get("line") or one["sentence"]),
                "href": _href(one["lens"]),
                "who": _who(one, lead),
            }
            for one in shown
        ],
        "more": len(found) - len(shown),
    }


def _said_by(one: Mapping[str, Any], lead: Mapping[str, Any] | None) -> bool:
    """Whether the leading finding says the same on another scale: costs and thresholds are one."""
    return (
        lead is not None
        and one["lens"] == lead["lens"]
        and one["attribute"] == lead["attribute"]
        and all(_is_of_costs(finding["measure"]) for finding in (one, lead))
    )


def _is_of_costs(measure: str) -> bool:
    """Whether a measure is a cost ratio, an implied threshold or made of one."""
    record = look_up(measure)
    return bool({record.name, record.base, record.variant_of} & {"cost_ratio", "implied_threshold"})


def _who(one: Mapping[str, Any], lead: Mapping[str, Any] | None) -> str:
    """Whose the finding is, where it is somebody else than the first one's."""
    if not one.get("owner") or (lead is not None and one["owner"] == lead.get("owner")):
        return ""
    return f"{opening(one['layer'])}: {spoken(one['owner'])}."


def _href(lens: str) -> str:
    """The section of a lens on the page."""
    return f"#{PLACES.get(lens, slug(lens))}"
