"""A finding in words, from its data and the rows it refers to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, Protocol

from evenhand.decisions.labels import SUMMARY
from evenhand.findings.limits import NORMS, OUTSIDE, is_unreviewed
from evenhand.findings.order import opposed
from evenhand.findings.sentences.agreed import plain_value
from evenhand.findings.sentences.costs import (
    MOST_NAMED,
    say_costs,
    say_labeler_costs,
    say_undefined,
    stated_costs,
    undefined_rows,
)
from evenhand.findings.sentences.crossed import with_number
from evenhand.findings.sentences.labelers import (
    WEIGHTS_COMPARED,
    explaining,
    parts_in_words,
    say_single_labelers,
    standard_in_words,
)
from evenhand.findings.sentences.opposed import DECIDE_WHICH, say_opposed
from evenhand.findings.sentences.policy import say_policy
from evenhand.findings.sentences.rates import place
from evenhand.findings.sentences.redecide import comparison
from evenhand.findings.sentences.rows import say_row
from evenhand.findings.sentences.steps import next_step, source_of
from evenhand.findings.sentences.texts import (
    SWAPPED,
    say_unknown_norms,
    swapped_words,
    unknown_of,
)
from evenhand.findings.sentences.unreviewed import known_words
from evenhand.findings.sentences.words import Said, Words
from evenhand.lenses.measures import distance
from evenhand.lenses.rows import Row
from evenhand.lenses.scope import UNTOLD_UNDER
from evenhand.speech import agree, opening

Plain = Mapping[str, Any]
# What is collected beside cases, one and several.
_UNITS = {
    "pairs": ("pair of texts", "pairs of texts"),
    "classes": ("class", "classes"),
    "labelers": ("labeler", "labelers"),
    "labels": ("label", "labels"),
    "items": ("item", "items"),
    "clusters": ("cluster", "clusters"),
}
_UNSETTLED = {
    "too close": "It lies so close to the limit that more cases would hardly settle it, so "
    "decide whether that is near enough.",
    "no number": "No number of further cases would settle it.",
    "unknown": "How many more cases would settle it is not known.",
}
# How what is left within strata is judged; outside is what the finding itself says.
_KEPT = {
    "within": ", within what was agreed",
    "cannot tell": ", and the data cannot tell whether what was agreed is kept",
}
# What a lens compares, one and several, where chance explains all of it.
_COMPARISONS = {"norms": ("correlation with a norm", "correlations with a norm")}
# The terms that a finding explains, by lens and measure.
_EXPLAINS = {
    ("labelers", "cost_ratio"): "bar",
    ("labelers", "criterion_gap"): "bar",
    ("labelers", "criterion_gap_average"): "bar",
    ("labelers", "separation_gap"): "skill",
    ("labelers", "separation_gap_average"): "skill",
    ("norms", "norm_slope"): "norm score",
}


class Places(Protocol):
    """Rows by their place among the results."""

    def __getitem__(self, place: int, /) -> Row: ...


def say_all(
    findings: Iterable[Plain], rows: Places, words: Words, details: Mapping[str, Any] | None = None
) -> Iterator[Said]:
    """Findings in words, one after another: a term is explained by the first that uses it."""
    findings = list(findings)
    turned = (one for one in findings if one["rows"] and _turns_round(one, rows))
    words = replace(words, turned=frozenset(comparison(rows[one["numbers"][0]]) for one in turned))
    for finding in findings:
        yield say(finding, rows, words, details)
        words = replace(words, heard=words.heard | _heard(finding, rows))
        if _asks_for_decisions(finding, rows):
            stated = tuple(rows[i] for i in finding["numbers"])
            words = replace(words, told=(*words.told, stated))


def _asks_for_decisions(finding: Plain, rows: Places) -> bool:
    """Whether a finding's next step may have asked for a number of decisions."""
    outside = finding["verdict"] == OUTSIDE and finding["numbers"] and finding["layer"] != "policy"
    return bool(outside) and not _turns_round(finding, rows)


def _turns_round(finding: Plain, rows: Places) -> bool:
    """Whether a finding says the opposite overall and within strata."""
    if finding["verdict"] != OUTSIDE or not finding["numbers"]:
        return False
    family = [rows[i] for i in finding["rows"]]
    return opposed(rows[finding["numbers"][0]], family) is not None


def _heard(finding: Plain, rows: Places) -> set[str]:
    """What a finding has explained, and where it has sent its reader."""
    term = _EXPLAINS.get((finding["lens"], finding["measure"]))
    told = {term} if term else set()
    outside = finding["verdict"] == OUTSIDE and finding["numbers"]
    if finding["lens"] == "statistical" and outside and not _turns_round(finding, rows):
        told.add(source_of(rows[finding["numbers"][0]]))
    if finding["lens"] == "counterfactual" and finding["rows"]:
        told.add(SWAPPED)
    return told


def say(
    finding: Plain, rows: Places, words: Words, details: Mapping[str, Any] | None = None
) -> Said:
    """A finding in words, as data gives it; one without a claim says what it was told to say.

    Args:
        finding: The plain finding.
        rows: The rows by their place, at least those that the finding refers to.
        words: What the charter and the data call things.
        details: What the lenses left for the report.
    """
    claim = finding.get("claim")
    if claim is None:
        return Said.plainly(finding["sentence"])
    if not finding["rows"]:
        unknown = unknown_of(details) if finding["lens"] == NORMS else []
        # A finding that compared nothing says why nothing was.
        compared = finding["numbers"] or not unknown
        return _say_none(finding) if compared else say_unknown_norms(unknown, words)
    family = [rows[i] for i in finding["rows"]]
    stated = [rows[i] for i in finding["numbers"]]
    said = _statement(finding, family, stated, words)
    settle = finding["settle"]
    if settle is not None:
        return replace(said, next=settle_sentence(settle, words, claim.get("class")))
    if stated[0]["labeler"] is not None:
        from evenhand.findings.sentences.relabel import single_labelers_step

        return replace(said, next=single_labelers_step(len({row["labeler"] for row in stated})))
    if finding["verdict"] == OUTSIDE and opposed(stated[0], family) is not None:
        return replace(said, next=DECIDE_WHICH)
    return replace(said, next=next_step(finding, stated[0], words, details, stated[1:]))


def whole(line: str, *more: str | None) -> str:
    """A finding's sentence: its line, and what to do next.

    Examples:
        >>> whole("So it is.", "Do this."), whole("So it is.", None)
        ('So it is. Do this.', 'So it is.')
    """
    return " ".join(filter(None, (line, *more)))


def _statement(finding: Plain, family: Sequence[Row], stated: Sequence[Row], words: Words) -> Said:
    """What is claimed, with its numbers."""
    if stated[0]["labeler"] is not None:
        return say_single_labelers(family)
    parts, behind = [], ""
    undefined = undefined_rows(stated) if stated[0]["value"] is None else []
    if undefined:
        parts.append(say_undefined(undefined, words))
    if finding["measure"] == "cost_ratio":
        own = [row for row in stated if row["measure"] == "cost_ratio"]
        costs = stated_costs(own, None if undefined else own[0])
        if costs and finding["lens"] == "labelers":
            why = standard_in_words(explaining(stated), words)
            parts.append(say_labeler_costs(costs, words, why=why))
            behind = parts_in_words(explaining(stated), words)
        elif costs:
            parts.append(say_costs(costs, words))
    if parts:
        if is_unreviewed(stated[0]):
            known = opening(f"{known_words(stated[0], words)}.")
            parts.append(Said.plainly(f"The data cannot tell whether that is so: {known}"))
        return replace(_joined(parts), more=behind)
    said = say_row(stated[0], words, stated[1:])
    turned = opposed(stated[0], family) if finding["verdict"] == OUTSIDE else None
    if turned is not None:
        said = replace(say_opposed(stated[0], turned, words), short=said.short)
    else:
        said = _within_strata(said, stated[0], family, words)
    also = _also_outside(stated[0], family, words)
    if also:
        # Nobody who lies outside is left to the details.
        said = replace(said, summary=f"{said.summary or said.line} {also}")
    more = [also]
    if finding["lens"] == "labelers" and stated[0]["measure"] in WEIGHTS_COMPARED:
        more.append(standard_in_words(explaining(stated), words) or "")
        behind = parts_in_words(explaining(stated), words, total=False)
    if finding["layer"] == "policy" and turned is None:
        more.append(say_policy(stated[0], stated[1:], words))
    return replace(_joined([said, *(Said.plainly(text) for text in more if text)]), more=behind)


def _within_strata(said: Said, lead: Row, family: Sequence[Row], words: Words) -> Said:
    """A finding on the whole table, with what is left of it when like is compared with like."""
    keys = ("group", "reference", "class", "norm", "measure")
    same = (
        row
        for row in family
        if row["stratum"] == SUMMARY and all(row[key] == lead[key] for key in keys)
    )
    row = next(same, None)
    if lead["stratum"] is not None or row is None or row["value"] is None:
        return said
    if is_unreviewed(row) and is_unreviewed(lead):
        return said
    told = f"{plain_value(row)}{_KEPT.get(row['verdict'], '')}"
    if is_unreviewed(row):
        told = f"the data cannot tell: {known_words(row, words)}"
    left = opening(f"{place(row, words)}{told}.")
    return replace(
        said,
        summary=f"{said.summary or said.line} {left}",
        line=f"{said.line} {left}",
        detail=" ".join(filter(None, (said.detail, left))),
    )


def _also_outside(lead: Row, family: Sequence[Row], words: Words) -> str:
    """Who else of the family lies outside, the furthest first, each with its number."""
    others = sorted(
        (row for row in family if row["verdict"] == OUTSIDE and row is not lead),
        key=distance,
        reverse=True,
    )
    turned = opposed(lead, family)
    others = [
        row
        for row in others
        if not _same(row, lead) and row["stratum"] != SUMMARY and row is not turned
    ]
    if not others:
        return ""
    named = [with_number(_who(row, lead, words), plain_value(row)) for row in others[:MOST_NAMED]]
    more = len(others) - len(named)
    if more:
        named.append(f"{more:,} more")
    return f"Outside as well: {'; '.join(named)}."


def _same(row: Row, other: Row) -> bool:
    keys = ("group", "reference", "class", "stratum", "norm", "measure")
    return all(row[key] == other[key] for key in keys)


def _who(row: Row, lead: Row, words: Words) -> str:
    """What tells a row from the leading one."""
    who = words.people(row["attribute"], row["group"]) if row["group"] else ""
    apart = [f"'{row['class']}'" if row["class"] != lead["class"] else ""]
    if row["stratum"] != lead["stratum"]:
        apart.append(place(row, words).rstrip(", ") or "over all")
    shown = [who if row["group"] != lead["group"] or not any(apart) else "", *apart]
    return ", ".join(filter(None, shown))


def _joined(parts: list[Said]) -> Said:
    first, others = parts[0], parts[1:]
    return replace(
        first,
        summary=first.summary or first.line,
        line=" ".join(part.line for part in parts),
        detail=" ".join(filter(None, [first.detail, *(part.line for part in others)])),
    )


def _say_none(finding: Plain) -> Said:
    """That chance explains all comparisons of an attribute."""
    lens, attribute = finding["lens"], finding["attribute"]
    count = len(finding["numbers"])
    one, many = _COMPARISONS.get(lens, ("gap", "gaps"))
    where = f"By {attribute}"
    if lens == "counterfactual":
        where = f"When only {swapped_words(attribute)} are exchanged"
    what = f"each of the {count:,} {many}" if count > 1 else f"the one {one}"
    headline = f"{where}, no difference is shown"
    return Said(
        headline=headline,
        detail=f"Chance alone could explain {what}.",
        line=f"{headline}: chance alone could explain {what}.",
        short=f"no difference by {attribute}",
    )


def settle_sentence(settle: Plain, words: Words | None = None, class_: str | None = None) -> str:
    """What would settle a verdict, in words.

    Examples:
        >>> settle = {"unit": "cases", "how_many": 1873.0, "groups": 2, "among": "true"}
        >>> settle |= {"condition": "if the gap is what it looks like"}
        >>> words = Words(missed=("missed violation", "missed violations"), positive="1")
        >>> print(settle_sentence(settle, words, "1"))
        If the gap is what it looks like, about 1,900 more reviewed violations across both groups \
would settle it four times out of five.
    """
    words = words or Words()
    if settle["how_many"] is None:
        if settle["reason"] == "not judged":
            return f"No limit can be held against it: {settle['why']}."
        if settle["reason"] == "unreviewed":
            return (
                f"More {words.items[1]} reviewed in the same way would not settle it. Review a "
                "random sample of the unreviewed ones in each group."
            )
        return _UNSETTLED.get(settle["reason"], _UNSETTLED["unknown"])
    lacking = settle.get("lacking")
    more = further(settle, words, class_)
    if lacking:
        side = "this group" if lacking == "group" else "the reference"
        return (
            f"Fewer than {UNTOLD_UNDER} cases of {side} are too few for any limit: about {more} "
            "would bring enough of them."
        )
    condition = settle.get("condition") or "if it is what it looks like"
    alone = settle.get("alone")
    fewer = alone is not None and rounded_up(alone) < rounded_up(float(settle["how_many"]))
    instead = f", or about {rounded_up(alone):,.0f} of this group alone," if alone and fewer else ""
    return f"{opening(condition)}, about {more}{instead} would settle it four times out of five."


def further(settle: Plain, words: Words | None = None, class_: str | None = None) -> str:
    """How much more would settle it, with its unit and where to collect it.

    Examples:
        >>> further({"unit": "pairs", "how_many": 1.0})
        '1 more pair of texts'
        >>> further({"unit": "clusters", "how_many": 214.0, "column": "author", "groups": 3})
        '220 more clusters (by author) across all 3 groups'
        >>> further({"unit": "cases", "how_many": 3.0, "among": "untrue"}, class_="1")
        "3 more reviewed cases whose truth is not '1'"
    """
    words = words or Words()
    count = rounded_up(float(settle["how_many"]))
    among = settle.get("among")
    name = class_ if class_ is not None else words.positive
    if settle["unit"] != "cases":
        one, many = _UNITS.get(settle["unit"], (settle["unit"],) * 2)
    elif among == "true" and name is not None and count > 1:
        one, many = "", f"reviewed {words.true_cases(name)}"
    elif among in ("true", "untrue") and name is not None:
        clause = words.true_of(name, not_=among == "untrue")
        one, many = (f"reviewed {noun} {clause}" for noun in words.items)
    else:
        one, many = words.items
    parts = [f"{count:,.0f} more {agree(count, one, many)}"]
    if among not in (None, "true", "untrue"):
        parts.append(among)  # as records wrote it before
    if settle.get("column") and settle["unit"] == "clusters":
        parts.append(f"(by {settle['column']})")
    groups = settle.get("groups")
    # Who labels is of no group: labelers label them all.
    if groups and settle["unit"] != "labelers":
        several = "across both groups" if groups == 2 else f"across all {groups:,} groups"
        parts.append("of this group" if groups == 1 else several)
    return " ".join(parts)


def rounded_up(count: float) -> float:
    """A number of units to two digits, upwards: more would be precision that it has not.

    Examples:
        >>> rounded_up(1873.2), rounded_up(12.1), rounded_up(3.0)
        (1900.0, 13.0, 3.0)
    """
    step = 10.0 ** max(len(str(ceil(count - 1e-9))) - 2, 0)
    return ceil(count / step - 1e-9) * step
