"""Two audits side by side: what moved beyond sampling error, and which verdicts changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.findings.sentences import base_of, plural, words
from evenhand.lenses.catalogue import CATALOGUE
from evenhand.report.blocks import Block, as_csv, figure, note, section, sentences, table
from evenhand.report.forests import interval_text, tag, value_text
from evenhand.report.labels import listed, opening, short
from evenhand.report.palette import SERIES, SERIES_SHAPES
from evenhand.report.view import Row, View, distance

KEYS = ("lens", "measure", "class", "attribute", "group", "reference", "stratum", "labeler", "norm")
# Rates move with gaps; of both, the gaps are what an audit is about.
_ENDS = ("_gap", "_ratio", "_gap_rms", "cost_ratio", "implied_threshold", "norm_bias", "flip_rate")
MOST = 20
# A rate and the one that it leaves over.
_TWINS = {"false_negative_rate": "true_positive_rate", "true_negative_rate": "false_positive_rate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A number before and now; `moved` where the two intervals share no point."""

    before: Row
    now: Row
    moved: bool

    @property
    def judged_otherwise(self) -> bool:
        """Whether the verdict changed."""
        return bool(self.before["verdict"] != self.now["verdict"])


def changes(before: View, now: View) -> list[Change]:
    """The numbers that both audits hold, those that moved first.

    Two intervals without a common point cannot both hold the same value. The family's intervals
    are used, so that looking at all numbers at once finds no movement by chance alone; small
    movements may still be missed. A number that another says already is left out: a miss is a hit
    that failed, and a ratio moves with its gap, unless a limit was set on it.
    """
    old = {_key(row): row for row in before.rows if row["measure"].endswith(_ENDS)}
    found = [
        Change(before=old[_key(row)], now=row, moved=_apart(old[_key(row)], row))
        for row in now.rows
        if _key(row) in old and row["labeler"] is None
    ]
    named = {_family(row) for row in now.rows if row["reference"] not in ("<rest>", None)}
    positive = now.positive()
    kept = [
        one
        for one in found
        if (one.now["reference"] != "<rest>" or _family(one.now) not in named)
        and (
            positive is None
            or one.now["lens"] not in ("statistical", "causal")
            or one.now["class"] in (positive, None)
        )
    ]
    present = {_key(one.now) for one in kept}
    return sorted((one for one in kept if not _said_already(one, present)), key=_order)


def _said_already(one: Change, present: set[tuple[Any, ...]]) -> bool:
    if one.now["limit_low"] is not None or one.before["limit_low"] is not None:
        return False
    twin = measure = str(one.now["measure"])
    for rate, other in _TWINS.items():
        twin = twin.replace(rate, other)
    if twin.endswith("_ratio"):
        twin = f"{twin.removesuffix('_ratio')}_gap"
    return twin != measure and _key({**one.now, "measure": twin}) in present


def other_references(before: View, now: View) -> str | None:
    """A sentence where the two audits compare with different groups; None where they do not."""
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
        if row["attribute"] and named and str(row["measure"]).endswith("_gap"):
            found.setdefault(row["attribute"], set()).add(row["reference"])
    return found


def change_sentence(before: View, now: View, found: list[Change]) -> str:
    """How much moved, in one sentence."""
    when = str(before.record["made"].get("at", ""))[:10]
    since = f"Compared with the audit of {when}" if when else "Compared with the audit before"
    other = other_references(before, now)
    if not found:
        return f"{since}, no number can be compared: the two share none. {other or ''}".rstrip()
    moved = sum(one.moved for one in found)
    judged = sum(one.judged_otherwise for one in found)
    if not moved:
        told = f"none of {plural(len(found), 'number')} moved beyond sampling error"
    else:
        told = f"{moved:,} of {plural(len(found), 'number')} moved beyond sampling error"
    if judged:
        told += f", and {plural(judged, 'verdict')} changed"
    return f"{since}, {told}." + (f" {other}" if other else "")


def comparison_section(before: View, now: View) -> dict[str, Any]:
    """The section that compares an audit with an older one."""
    found = changes(before, now)
    told = change_sentence(before, now, found)
    other = other_references(before, now)
    blocks: list[Block] = [note(other)] if other else []
    moved = [one for one in found if one.moved][:MOST]
    if moved:
        blocks.append(_figure(now, moved, found))
    judged = [one for one in found if one.judged_otherwise]
    if judged:
        body = [
            [_label(one.now, several=True), tag(one.before["verdict"]), tag(one.now["verdict"])]
            for one in judged
        ]
        columns = ("Number", "Verdict before", "Verdict now")
        blocks.append(table("Verdicts that changed", columns, body, most=40))
    said = [_other(before, now)]
    if before.record["data"].get("fingerprint") == now.record["data"].get("fingerprint"):
        said.append("Both audits read the same counts: their fingerprints are equal.")
    blocks.append(sentences([text for text in said if text]))
    head = told.split(", ", 1)[1].split(". ")[0].rstrip(".")
    return section(
        "comparison",
        kicker="Compared with the audit before",
        heading=opening(head),
        lead="A number has moved where its two intervals have no point in common; that holds for "
        "all numbers of a measure together.",
        blocks=blocks,
    )


def _figure(now: View, moved: list[Change], found: list[Change]) -> Block:
    groups = {one.now["group"] for one in moved}
    alone = f"{short(next(iter(groups)))}: " if len(groups) == 1 and None not in groups else ""
    title = "What moved beyond sampling error" + (f", of {alone[:-2]}" if alone else "")
    kinds: dict[str, list[Change]] = {}
    for one in moved:
        kinds.setdefault(_kind(one.now), []).append(one)
    several = len({one.now["class"] for one in found}) > 1
    charts = [
        {
            "kind": "grouped",
            "rows": [
                {
                    # Said in the title, a name need not stand before every line.
                    "line": _label(one.now, several=several, short_name=True).removeprefix(alone),
                    "series": series,
                    "value": row["value"],
                    "low": row["family_low"],
                    "high": row["family_high"],
                    "tip": f"{series}: {value_text(row)}",
                }
                for one in held
                for series, row in (("before", one.before), ("now", one.now))
            ],
            "axis": kind,
            "zero": 0.0 if kind == "Gap" else None,
            "title": kind if len(kinds) > 1 else title,
        }
        for kind, held in kinds.items()
    ]
    columns = ("Number", "Before", "Interval", "Now", "Interval ", "Moved")
    body = [
        [
            _label(one.now, several=several),
            value_text(one.before),
            interval_text(one.before),
            value_text(one.now),
            interval_text(one.now),
            "yes" if one.moved else "no",
        ]
        for one in found
    ]
    names = ("before", "before_low", "before_high", "now", "now_low", "now_high", "moved")
    return figure(
        "moved",
        title=title,
        charts=charts,
        read=f"two marks of one line, before and now, with their intervals at {now.level}.",
        legend=[
            {"shape": SERIES_SHAPES[i], "colour": SERIES[i], "text": text}
            for i, text in enumerate(("Before", "Now"))
        ],
        numbers=table("Before and now", columns, body, numbers=columns[1:5], most=100),
        csv_text=as_csv(
            (*KEYS, *names),
            (
                [
                    *(one.now[key] for key in KEYS),
                    *_numbers(one.before),
                    *_numbers(one.now),
                    one.moved,
                ]
                for one in found
            ),
        ),
    )


def _kind(row: Row) -> str:
    """Numbers that can stand on one axis."""
    kind = CATALOGUE[row["measure"]].kind if row["measure"] in CATALOGUE else ""
    return kind.capitalize() if kind in ("gap", "ratio") else opening(words(row["measure"]))


def _numbers(row: Row) -> list[Any]:
    return [row["value"], row["family_low"], row["family_high"]]


def _other(before: View, now: View) -> str:
    then, since = ({_key(row) for row in view.rows} for view in (before, now))
    gone, new = len(then - since), len(since - then)
    if not gone and not new:
        return "Both audits hold the same numbers."
    return f"{plural(new, 'number')} only the new audit holds, {gone:,} only the one before."


def _label(row: Row, *, several: bool, short_name: bool = False) -> str:
    """Who and what: the group, the class where there are several, the measure."""
    who = [short(row["group"] or row["attribute"], most=18)]
    if several and row["class"] is not None:
        who.append(short(row["class"], most=18))
    measure = str(row["measure"])
    told = words(base_of(measure) or measure) if short_name else words(measure)
    return f"{', '.join(filter(None, who))}: {told}"


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)


def _family(row: Row) -> tuple[Any, ...]:
    return row["lens"], row["attribute"], row["measure"]


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    ends = [row[name] for row in (one, other) for name in ("family_low", "family_high")]
    if any(end is None for end in ends):
        return False
    return bool(ends[1] < ends[2] or ends[3] < ends[0])


def _order(one: Change) -> tuple[bool, bool, float]:
    before, now = one.before["value"], one.now["value"]
    shift = abs(now - before) if before is not None and now is not None else -1.0
    return not one.moved, not one.judged_otherwise, -shift if shift >= 0 else distance(one.now)
