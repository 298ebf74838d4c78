"""Rows as sentences: who, what happens to them, how often, against whom, how sure.

A sentence is made from the same row as the table beside it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from evenhand.decisions.labels import SUMMARY, excepted
from evenhand.findings.sentences.agreed import ending, plain_value
from evenhand.findings.sentences.costs import (
    as_weights,
    say_costs,
    say_labeler_costs,
    say_weights,
)
from evenhand.findings.sentences.labelers import say_labels
from evenhand.findings.sentences.rates import (
    enough,
    largest_gap,
    place,
    pointed_at,
    say_auc,
    say_comparison,
    say_impact,
    say_rate,
    say_size,
    wanted_rates,
)
from evenhand.findings.sentences.redecide import rates_within, weightiest_stratum, worse_off
from evenhand.findings.sentences.texts import say_norm, say_swap
from evenhand.findings.sentences.unreviewed import say_unreviewed
from evenhand.findings.sentences.words import Said, Words, why_not, words
from evenhand.lenses.measures import look_up, surely_apart
from evenhand.lenses.rows import Row
from evenhand.speech import number, opening, signed

LookUp = Callable[..., Iterable[Row]]
_FLIPS = "flip_rate"
# By whether all words are looked at, or only those that say nothing of the class.
_CORRELATIONS = {True: "norm_correlation", False: "norm_correlation_irrelevant"}


def row_sentence(row: Row, words: Words | None = None, look: LookUp | None = None) -> str:
    """One row in words; `look` finds the rows of an audit by their columns.

    Examples:
        >>> row = dict.fromkeys(["stratum", "labeler", "norm", "undefined", "verdict"])
        >>> row |= {"measure": "true_positive_rate_gap", "class": "1", "group": "female"}
        >>> row |= {"reference": "male", "value": -0.1, "family_low": -0.15, "family_high": -0.05}
        >>> row |= {"n": 400, "n_reference": 900, "attribute": "gender", "lens": "statistical"}
        >>> row_sentence(row | {"limit_low": None, "limit_high": None})
        "Women whose truth is '1' get decision '1' 10 points less often than men (5 to 15)."
    """
    given: list[Row] = []
    if look is not None:
        for asked in wanted_rows(row):
            keys = {"class_" if key == "class" else key: value for key, value in asked.items()}
            given += chosen(row, list(look(**keys)))
    return say_row(row, words or Words(), given).line


def wanted_rows(row: Row) -> list[dict[str, Any]]:
    """The columns of other rows that a row's sentence states: rates, the largest class, flips."""
    record = look_up(row["measure"])
    same = {key: row.get(key) for key in ("lens", "attribute", "group", "reference", "stratum")}
    if record.parts is not None and record.counts == "classes" and row["group"] is not None:
        if "counterfactual" in record.lenses:
            return [same | {"measure": "flip_rate", "class": None}]
        return [same | {"measure": record.parts}]
    return wanted_rates(row)


def chosen(row: Row, found: Sequence[Row]) -> list[Row]:
    """Of the rows that were asked for, those that are said: of many classes the largest gap.

    That is the class to point at, and with it the class whose gap is larger still but which rests
    on few cases or may be chance, so that nobody calls the first the largest of all.
    """
    record = look_up(row["measure"])
    if record.parts is None or "counterfactual" in record.lenses:
        return list(found[:1])
    said = (pointed_at(found), largest_gap(found))
    return [one for one in found if any(one is other for other in said)]


def wanted_behind(lead: Row) -> list[dict[str, Any]]:
    """The columns of the rows that the next step with a leading row looks at."""
    record, lens = look_up(lead["measure"]), lead["lens"]
    same = {key: lead.get(key) for key in ("lens", "attribute", "stratum")}
    pair = {key: lead.get(key) for key in ("group", "reference")}
    if lens == "statistical" and record.counts == "groups" and record.parts is not None:
        whose = {"class": lead["class"], "measure": record.parts, "reference": None}
        return [same | whose]
    if lens == "statistical" and lead["stratum"] == SUMMARY:
        keys = ("lens", "attribute", "class", "measure", "labeler")
        same = {key: lead.get(key) for key in keys}
        # Whether as many wrong decisions are there as a limit asks for is seen within strata.
        side = worse_off(lead, Words())
        whose = {"measure": record.base, "group": lead[side or "group"], "reference": None}
        return [same | pair, *([same | whose] if side else [])]
    if lens == "counterfactual" and record.parts is None and record.name != _FLIPS:
        return [same | pair | {"measure": _FLIPS, "class": None}]
    if lens == "norms" and record.counts == "classes":
        name = _CORRELATIONS[record.variant_of is None]
        return [same | {"group": lead["group"], "norm": lead["norm"], "measure": name}]
    return []


def chosen_behind(lead: Row, found: Sequence[Row]) -> list[Row]:
    """Of the rows that were asked for, those to start with; of a spread all that it is taken of."""
    if lead["lens"] == "norms":
        return [one for one in (closest_class(found),) if one is not None]
    if lead["stratum"] == SUMMARY and lead["lens"] == "statistical":
        most = weightiest_stratum(lead, found)
        rates = (one for side in ("group", "reference") for one in rates_within(lead, found, side))
        return [*([most] if most is not None else []), *rates]
    return list(found)


def closest_class(found: Sequence[Row]) -> Row | None:
    """The class whose scores depend most on a norm, of those that chance does not explain."""
    measures = _CORRELATIONS.values()
    known = [
        one
        for one in found
        if one["measure"] in measures
        and one["value"] is not None
        and enough(one)
        and surely_apart(one)
        # The rows of all other classes are no class to start with.
        and excepted(str(one["class"])) is None
    ]
    return max(known, key=lambda one: abs(one["value"]), default=None)


def say_row(row: Row, words: Words, given: Sequence[Row] = ()) -> Said:
    """One row in words, with the other rows that its sentence states."""
    said = _say(row, words, given)
    return said if said.short else replace(said, short=short_name(row, words))


def _say(row: Row, words: Words, given: Sequence[Row]) -> Said:
    if row["value"] is None and row.get("set_low") is None:
        what = f"{_label(row)}{_whose(row, words)}"
        comma = "," if row["reference"] else ""
        said = f"{place(row, words)}{what}{comma} is {why_not(row['undefined'])}."
        return Said.plainly(opening(said))
    label = f"{_label(row)}{_whose(row, words)}"
    return say_unreviewed(row, words, given, say=_measured, label=label) or _measured(
        row, words, given
    )


def _measured(row: Row, words: Words, given: Sequence[Row]) -> Said:
    """A row that has a number, or a set of them."""
    if row["measure"] in ("cost_ratio", "implied_threshold") and not row.get("labeler"):
        weights = as_weights(row)
        if weights is not None and row["stratum"] is None:
            say = say_labeler_costs if row.get("lens") == "labelers" else say_costs
            return say([weights], words)
    weighed = say_weights(row, words, given)
    if weighed is not None or row["value"] is None:
        return weighed or _generic(row, words)
    return (
        say_labels(row, words, given)
        or say_norm(row, words)
        or say_swap(row, words, given)
        or say_size(row, words, given)
        or say_auc(row, words, given)
        or say_impact(row, words, given)
        or say_comparison(row, words, given)
        or say_rate(row, words)
        or _generic(row, words)
    )


def _generic(row: Row, words: Words) -> Said:
    """Any other number by its label."""
    headline = f"{_label(row)}{_whose(row, words)}"
    value = plain_value(row) if row["value"] is not None else _set(row)
    where = place(row, words)
    return Said(
        headline=opening(f"{where}{headline}"),
        detail=f"{value}{ending(row, unit=True)}",
        line=opening(f"{where}{headline}: {value}{ending(row, unit=True)}"),
    )


def _set(row: Row) -> str:
    high = row["set_high"]
    return f"anything from {number(row['set_low'])} {f'to {number(high)}' if high else 'on'}"


def short_name(row: Row, words_: Words) -> str:
    """A short name of what a row is about, to link to it.

    Examples:
        >>> row = {"measure": "accuracy_gap", "class": "1", "attribute": "sex", "group": "female"}
        >>> short_name(row, Words(positive="1"))
        'accuracy gap, women'
    """
    parts = [words(row["measure"])]
    if row["class"] is not None and words_.positive is None:
        parts.append(f"'{row['class']}'")
    if row["group"] is not None:
        parts.append(words_.people(row["attribute"], row["group"]))
    return ", ".join(parts)


def value_text(row: Row) -> str:
    """A value as tables print it: with its sign where it is a gap.

    Examples:
        >>> value_text({"measure": "accuracy_gap", "value": 0.05})
        '+0.050'
    """
    signs = look_up(row["measure"]).kind == "gap"
    return signed(row["value"]) if signs else number(row["value"])


def _label(row: Row) -> str:
    return words(row["measure"])


def _whose(row: Row, words: Words) -> str:
    parts = []
    if row["class"] and words.positive is None:
        parts.append(f" of '{row['class']}'")
    attribute = row["attribute"]
    if row["group"] and row["reference"]:
        own, other = (words.people(attribute, row[side]) for side in ("group", "reference"))
        parts.append(f", {own} against {other}")
    elif row["group"]:
        parts.append(f" for {words.people(attribute, row['group'])}")
    elif attribute:
        parts.append(f" by {attribute}")
    if row.get("labeler"):
        parts.append(f", labeler {row['labeler']}")
    return "".join(parts)
