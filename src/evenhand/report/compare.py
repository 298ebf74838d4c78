"""Audits in the order of time: what moved beyond sampling error, and which verdicts changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from evenhand.decisions.labels import REST
from evenhand.findings.limits import is_unreviewed
from evenhand.findings.sentences.agreed import plain_value
from evenhand.findings.sentences.words import words
from evenhand.lenses.measures import counted_rates, look_up, rate_family
from evenhand.lenses.rows import Row
from evenhand.report.blocks import (
    Block,
    as_csv,
    axis_form,
    axis_title,
    figure,
    interval_text,
    note,
    positive_ends,
    section,
    sentences,
    table,
    tag,
    value_text,
)
from evenhand.report.formats import in_markdown
from evenhand.report.labels import listed, short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.report.view import View, whole
from evenhand.speech import opening, plural

KEYS = ("lens", "measure", "class", "attribute", "group", "reference", "stratum", "labeler", "norm")
MOST, MOST_LINES, MOST_SERIES, MOST_PANELS = 40, 12, 6, 6
_WHEN = ("Before", "Now")
# What two audits are compared by first: what happens to people, then how far groups lie apart.
_KINDS = ("rate", "number", "gap", "ratio", "correlation", "distance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A number in every audit, the oldest first; `moved` where two intervals share no point."""

    rows: tuple[Row, ...]
    moved: bool

    @property
    def before(self) -> Row:
        """The number in the oldest audit."""
        return self.rows[0]

    @property
    def now(self) -> Row:
        """The number in the newest audit."""
        return self.rows[-1]

    @property
    def judged_otherwise(self) -> bool:
        """Whether the verdict changed."""
        return bool(self.before["verdict"] != self.now["verdict"])

    @property
    def tells(self) -> bool:
        """Whether there is something to say: it moved, or is judged otherwise."""
        return self.moved or self.judged_otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Audits side by side: how much moved in a sentence, and every number that all hold."""

    sentence: str
    changes: tuple[Change, ...]

    @property
    def moved(self) -> tuple[Change, ...]:
        """The numbers that moved beyond sampling error."""
        return tuple(one for one in self.changes if one.moved)

    def to_frame(self) -> Any:
        """A Polars frame with one row for each number, those that moved first.

        Columns are the keys of the number, then its value, family interval and verdict `before`
        and `now`, and whether it `moved`.
        """
        import polars as pl

        ends = ("value", "family_low", "family_high", "verdict")
        columns: dict[str, list[Any]] = {
            key: [one.now[key] for one in self.changes] for key in KEYS
        }
        for name in ("before", "now"):
            for end in ends:
                place = f"{end.removeprefix('family_')}_{name}"
                columns[place] = [getattr(one, name)[end] for one in self.changes]
        kinds: dict[str, Any] = {
            name: pl.String if name in KEYS or name.startswith("verdict") else pl.Float64
            for name in columns
        }
        columns["moved"] = [one.moved for one in self.changes]
        return pl.DataFrame(columns, schema=kinds | {"moved": pl.Boolean}, strict=False)

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"- {line}" for line in self._lines())])

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        return f"<p><strong>{escape(self.sentence)}</strong></p><ul>{lines}</ul>"

    def to_markdown(self) -> str:
        """What moved as a section of Markdown, a line for each number, the clearest first."""
        lines = self._lines()
        shown = [f"- {in_markdown(line)}" for line in lines[:MOST]]
        if len(lines) > MOST:
            shown.append(f"- {plural(len(lines) - MOST, 'more number')} moved or changed verdict.")
        return "\n".join(["### What moved", "", in_markdown(self.sentence), "", *shown]) + "\n"

    def _lines(self) -> list[str]:
        several = has_classes(self.changes)
        return [change_words(one, several=several) for one in self.changes if one.tells]


def compare_records(*records: Mapping[str, Any]) -> Comparison:
    """What the report says of two or more records, the oldest first, as data.

    Examples:
        >>> import evenhand as eh
        >>> table = {"bad": [1, 0] * 200, "removed": [1, 0, 0, 0] * 100, "sex": ["f", "m"] * 200}
        >>> record = eh.audit(table, truth="bad", decision="removed", group="sex").record()
        >>> compare_records(record, record).moved
        ()
    """
    views = [View.of(whole(record)) for record in records]
    found = changes(*views)
    return Comparison(sentence=change_sentence(views, found), changes=tuple(found))


def change_words(one: Change, *, several: bool = True) -> str:
    """Who and what, from which number to which, and how it is judged."""
    verdicts = ""
    if one.judged_otherwise:
        verdicts = f" ({one.before['verdict']} before, {one.now['verdict']} now)"
    said = " → ".join(number_words(row) for row in one.rows)
    return f"{_label(one.now, several=several)}: {said}{verdicts}"


def number_words(row: Row) -> str:
    """A number with its interval, as sentences say its kind; what has none as tables print it."""
    if row["value"] is not None and None not in (row["family_low"], row["family_high"]):
        return plain_value(row)
    return f"{value_text(row)} {interval_text(row)}".strip()


def changes(*views: View) -> list[Change]:
    """The numbers that all audits hold, those that moved first, of every measure.

    Two intervals without a common point cannot both hold the same value; of several audits any
    two are looked at. The family's intervals are used, so that looking at all numbers at once
    finds no movement by chance alone; small movements may still be missed. A number that another
    says already is left out: a miss is a hit that failed, a ratio moves with its gap and a
    corrected number with the plain one, unless a limit was set on it.
    """
    *earlier, now = views
    held = [{_key(row): row for row in view.rows} for view in earlier]
    found = []
    for row in now.rows:
        key = _key(row)
        if row["labeler"] is None and _is_measured(row) and all(key in older for older in held):
            rows = (*(older[key] for older in held), row)
            found.append(Change(rows=rows, moved=_apart(rows)))
    named = {_family(row) for row in now.rows if row["reference"] not in (REST, None)}
    positive = now.positive()
    kept = [
        one
        for one in found
        if (one.now["reference"] != REST or _family(one.now) not in named)
        and (
            positive is None
            or one.now["lens"] not in ("statistical", "counterfactual")
            or one.now["class"] in (positive, None)
        )
    ]
    present = {_key(one.now) for one in kept}
    return sorted((one for one in kept if not _said_already(one, present)), key=_order)


def _is_measured(row: Row) -> bool:
    """Whether a row estimates something: not what noise alone would give, not a test."""
    return look_up(row["measure"]).takes_limit


def _said_already(one: Change, present: set[tuple[Any, ...]]) -> bool:
    if any(row["limit_low"] is not None for row in one.rows):
        return False
    record = look_up(one.now["measure"])
    if record.kind == "distance" and record.counts != "classes" and record.base:
        # The widest pair and the spread over groups move with the gaps between them.
        return any(key[1] == f"{record.base}_gap" for key in present)
    twin = _twin(str(one.now["measure"]))
    return twin is not None and _key({**one.now, "measure": twin}) in present


def _twin(name: str) -> str | None:
    """The measure that says the same: of a ratio the gap, of a mirrored rate the first one's."""
    record = look_up(name)
    if record.variant_of is not None:
        return record.variant_of
    rate = record if record.cells is not None else look_up(record.base or "")
    family = [one.name for one in rate_family(rate)] if rate.cells is not None else []
    if name not in family:
        return None
    first = min(rate.name, rate.mirror or rate.name, key=counted_rates().index)
    alike = rate_family(look_up(first))
    gap = next(one.name for one in alike if one.kind == "gap")
    twin = gap if record.kind == "ratio" else alike[family.index(name)].name
    return twin if twin != name else None


def other_references(before: View, now: View) -> str | None:
    """A sentence where two audits compare with different groups; None where they do not."""
    told = []
    then, since = (_references(view) for view in (before, now))
    for attribute in then:
        old, new = then[attribute], since.get(attribute, set())
        if old and new and not old & new:
            told.append(
                f"{short(attribute)} ({listed(map(short, sorted(old)))} before, "
                f"{listed(map(short, sorted(new)))} now)"
            )
    if not told:
        return None
    return (
        f"The two audits compare with different groups for {listed(told)}, so their gaps and "
        "ratios cannot be compared: make both with the same --reference."
    )


def _references(view: View) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in view.rows:
        # Of the measures only gaps keep to the reference: the worst pair may be any two.
        named = row["reference"] and not str(row["reference"]).startswith("<")
        if row["attribute"] and named and look_up(row["measure"]).kind == "gap":
            found.setdefault(row["attribute"], set()).add(row["reference"])
    return found


def change_sentence(views: Sequence[View], found: Sequence[Change]) -> str:
    """How much moved since when, and what moved most clearly."""
    when = _day(views[0])
    if len(views) > 2:
        since = f"Over {len(views)} audits" + (f" since {when}" if when else "")
    else:
        since = f"Compared with the audit {f'of {when}' if when else 'before'}"
    most = [one for one in found if one.moved][:1]
    several = has_classes(found)
    first = f" Most clearly: {change_words(most[0], several=several)}." if most else ""
    other = other_references(views[0], views[-1])
    return f"{since}, {_how_much_moved(found)}.{first}" + (f" {other}" if other else "")


def _day(view: View) -> str:
    return str(view.record["made"].get("at") or "")[:10]


def _how_much_moved(found: Sequence[Change]) -> str:
    if not found:
        return "no number can be compared: the audits share none"
    moved = sum(one.moved for one in found)
    judged = sum(one.judged_otherwise for one in found)
    verdicts = f", and {plural(judged, 'verdict')} changed" if judged else ""
    count = f"{moved:,}" if moved else "none"
    return f"{count} of {plural(len(found), 'number')} moved beyond sampling error{verdicts}"


def comparison_section(views: Sequence[View], found: Sequence[Change]) -> dict[str, Any]:
    """The section that compares an audit with older ones, the oldest first."""
    before, now = views[0], views[-1]
    other, several = other_references(before, now), has_classes(found)
    blocks: list[Block] = [note(other)] if other else []
    moved = [one for one in found if one.moved][:MOST]
    if moved:
        blocks.append(_figure(views, moved, found))
    judged = [one for one in found if one.judged_otherwise]
    if judged:
        body = [
            [_label(one.now, several=several), tag(one.before["verdict"]), tag(one.now["verdict"])]
            for one in judged
        ]
        columns = ("Number", "Verdict before", "Verdict now")
        blocks.append(table("Verdicts that changed", columns, body, most=40))
    said = [_other(before, now)]
    if before.record["data"].get("fingerprint") == now.record["data"].get("fingerprint"):
        said.append("Both audits read the same counts: their fingerprints are equal.")
    blocks.append(sentences([text for text in said if text]))
    heading = change_words(moved[0], several=several) if moved else _how_much_moved(found)
    return section(
        "comparison",
        kicker=f"{len(views)} audits in order" if len(views) > 2 else "Compared with before",
        heading=opening(heading),
        lead=f"{opening(_how_much_moved(found))}. A number has moved where two of its intervals "
        "have no point in common; that holds for all numbers of a measure together.",
        blocks=blocks,
    )


def _names(views: Sequence[View]) -> list[str]:
    """What each audit is called: before and now, or its place and day."""
    if len(views) == 2:
        return list(_WHEN)
    return [" · ".join(filter(None, (f"{i}", _day(v)))) for i, v in enumerate(views, start=1)]


def _figure(views: Sequence[View], moved: Sequence[Change], found: Sequence[Change]) -> Block:
    names = _names(views)
    drawn = names if len(names) <= MOST_SERIES else [names[0], *names[1 - MOST_SERIES :]]
    title = "What moved beyond sampling error"
    kinds: dict[str, list[Change]] = {}
    for one in moved:
        kinds.setdefault(str(one.now["measure"]), []).append(one)
    several = has_classes(found)
    charts = []
    for measure, held in list(kinds.items())[:MOST_PANELS]:
        form = axis_form(measure)
        label = opening(look_up(measure).label)
        marks = [
            {
                "line": _who(one.now, several=several),
                "series": name,
                "value": row["value"],
                "low": row["family_low"],
                "high": row["family_high"],
                "tip": f"{name}: {number_words(row)}",
            }
            for one in held[:MOST_LINES]
            for name, row in zip(names, one.rows)
            if name in drawn
        ]
        charts.append(
            {
                "kind": "grouped",
                "rows": positive_ends(marks, log=form == "times"),
                "axis": axis_title(label, form),
                "format": form,
                "log": form == "times",
                "zero": look_up(measure).neutral,
                "title": label if len(kinds) > 1 else title,
            }
        )
    columns = ["Number", *(part for name in names for part in (name, f"Interval, {name}")), "Moved"]
    body = [
        [
            _label(one.now, several=several),
            *(part for row in one.rows for part in (value_text(row), interval_text(row))),
            "yes" if one.moved else "no",
        ]
        for one in found
    ]
    fields = [f"{end}_{i}" for i in range(1, len(views) + 1) for end in ("value", "low", "high")]
    return figure(
        "moved",
        title=title,
        charts=charts,
        read="marks of one line are one number in the order of the audits, with intervals at "
        f"{views[-1].level}.",
        legend=[
            {"shape": SERIES_SHAPES[i], "colour": SERIES[i], "text": name}
            for i, name in enumerate(drawn)
        ],
        numbers=table("In the order of the audits", columns, body, numbers=columns[1:-1], most=100),
        csv_text=as_csv(
            (*KEYS, *fields, "moved"),
            (
                [
                    *(one.now[key] for key in KEYS),
                    *(row[end] for row in one.rows for end in ("value", *_ENDS)),
                    one.moved,
                ]
                for one in found
            ),
        ),
    )


_ENDS = ("family_low", "family_high")


def _other(before: View, now: View) -> str:
    then, since = ({_key(row) for row in view.rows} for view in (before, now))
    gone, new = len(then - since), len(since - then)
    if not gone and not new:
        return "Both audits hold the same numbers."
    return f"{plural(new, 'number')} only the new audit holds, {gone:,} only the one before."


def has_classes(found: Sequence[Change]) -> bool:
    """Whether the numbers are of more than one class, so that each has to say of which."""
    return len({one.now["class"] for one in found} - {None}) > 1


def _label(row: Row, *, several: bool) -> str:
    """What and who: the measure, then the group."""
    return f"{opening(words(str(row['measure'])))}, {_who(row, several=several)}"


def _who(row: Row, *, several: bool) -> str:
    """The group, and the class and stratum where there are several."""
    parts = [short(row["group"] or row["attribute"], most=24)]
    if several and row["class"] is not None:
        parts.append(short(row["class"], most=18))
    if row["stratum"] is not None:
        parts.append(short(row["stratum"], most=18))
    return ", ".join(filter(None, parts))


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)


def _family(row: Row) -> tuple[Any, ...]:
    return row["lens"], row["attribute"], row["measure"]


def _apart(rows: Sequence[Row]) -> bool:
    """Whether two of the intervals share no point: the highest low lies over the lowest high.

    What moved where the truth is known unequally often may be what was reviewed.
    """
    if any(map(is_unreviewed, rows)):
        return False
    if any(row[end] is None for row in rows for end in _ENDS):
        return False
    return bool(max(row["family_low"] for row in rows) > min(row["family_high"] for row in rows))


def _order(one: Change) -> tuple[bool, bool, bool, int, float]:
    """What moved, then what is judged otherwise; rates of people before what is made of them.

    Among equals by how far the intervals lie apart, in their own widths.
    """
    record = look_up(one.now["measure"])
    place = _KINDS.index(record.kind) if record.kind in _KINDS else len(_KINDS)
    within = one.now["stratum"] is not None
    return not one.moved, within, not one.judged_otherwise, place, -_clearness(one)


def _clearness(one: Change) -> float:
    if any(row[end] is None for row in one.rows for end in _ENDS):
        return float("-inf")
    apart = max(row["family_low"] for row in one.rows) - min(row["family_high"] for row in one.rows)
    wide = sum(row["family_high"] - row["family_low"] for row in one.rows)
    return float(apart / wide) if wide > 0 else 0.0
