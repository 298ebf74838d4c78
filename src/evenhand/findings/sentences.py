"""Numbers as sentences: direction and who is affected first, then the value with its interval.

A sentence is made from the same row as the table beside it, and rounds as the table does.
"""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.cost_sentences import cost_words, why_not
from evenhand.findings.labeler_sentences import labeler_words
from evenhand.findings.norm_sentences import counts_classes, norm_words
from evenhand.findings.rms_sentences import rms_words
from evenhand.findings.swap_sentences import swap_words

Row = Mapping[str, Any]

# {g} group, {r} reference, {c} class, {d} the class as decided; {more} comes from the sign.
_COMPARED = {
    "selection_rate": "{d} is decided {more} often for {g} than for {r}",
    "true_positive_rate": "where the truth is {c}, {g} is decided {d} {more} often than {r}",
    "false_positive_rate": ("where the truth is not {c}, {g} is decided {d} {more} often than {r}"),
    "false_negative_rate": "where the truth is {c}, {g} is missed {more} often than {r}",
    "true_negative_rate": (
        "where the truth is not {c}, {g} is rightly spared it {more} often than {r}"
    ),
    "precision": "a decision {d} is right {more} often for {g} than for {r}",
    "accuracy": "decisions on {c} are right {more} often for {g} than for {r}",
    "auc": "scores tell {c} from the rest {well} for {g} than for {r}",
}
_SAME = {
    "selection_rate": "{d} is decided as often for {g} as for {r}",
    "true_positive_rate": "where the truth is {c}, {g} is decided {d} as often as {r}",
    "false_positive_rate": "where the truth is not {c}, {g} is decided {d} as often as {r}",
    "false_negative_rate": "where the truth is {c}, {g} is missed as often as {r}",
    "true_negative_rate": "where the truth is not {c}, {g} is rightly spared it as often as {r}",
    "precision": "a decision {d} is right as often for {g} as for {r}",
    "accuracy": "decisions on {c} are right as often for {g} as for {r}",
    "auc": "scores tell {c} from the rest as well for {g} as for {r}",
}
_SHORT = {"auc": "AUC", "rms": "RMS"}
_OTHERS = {"<rest>": "everybody else", "<overall>": "people overall"}
TAGS = {
    "outside": "Gap found",
    "within": "Nothing outside limits",
    "cannot tell": "Cannot tell",
    "not assessed": "Not assessed",
}


def number(value: float | None) -> str:
    """A value as tables and sentences print it: three decimals, a real minus sign.

    Examples:
        >>> number(-0.12345), number(0.0), number(None)
        ('−0.123', '0.000', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.3f}"
    if text == "-0.000":
        text = "0.000"
    return text.replace("-", "−")


def signed(value: float | None) -> str:
    """A difference, with its sign.

    Examples:
        >>> signed(0.05), signed(-0.05), signed(0.0)
        ('+0.050', '−0.050', '0.000')
    """
    text = number(value)
    return f"+{text}" if value is not None and value > 0 and text != "0.000" else text


def interval(row: Row, *, family: bool = True) -> str:
    """The interval of a row: the one that holds for its whole family, unless asked otherwise."""
    low, high = ("family_low", "family_high") if family else ("low", "high")
    if row[low] is None or row[high] is None:
        return ""
    return f"[{number(row[low])}, {number(row[high])}]"


def plural(count: float, one: str, many: str | None = None) -> str:
    """A count with its noun.

    Examples:
        >>> plural(1, "case"), plural(1200, "case"), plural(2, "class", "classes")
        ('1 case', '1,200 cases', '2 classes')
    """
    shown = f"{count:,.0f}"
    return f"{shown} {one if shown == '1' else many or one + 's'}"


def words(measure: str) -> str:
    """A measure's name in plain words.

    Examples:
        >>> words("true_positive_rate_gap_rms_corrected")
        'true positive rate gap RMS corrected'
    """
    return " ".join(_SHORT.get(word, word) for word in measure.split("_"))


def base_of(measure: str) -> str | None:
    """The rate that a gap or ratio compares, or None."""
    for suffix in ("_gap", "_ratio"):
        if measure.endswith(suffix):
            return measure.removesuffix(suffix)
    return None


def row_sentence(row: Row, *, meaning: Mapping[str, str] | None = None) -> str:
    """One row in words, from its direction to its number of cases.

    `meaning` says what a class is for the person decided about: a benefit or a burden.

    Examples:
        >>> row = dict.fromkeys(["stratum", "labeler", "norm", "undefined"])
        >>> row |= {"measure": "true_positive_rate_gap", "class": "1", "group": "f"}
        >>> row |= {"reference": "m", "value": -0.1, "family_low": -0.15, "family_high": -0.05}
        >>> row |= {"n": 400, "n_reference": 900, "attribute": "gender"}
        >>> for part in row_sentence(row).split(": "):
        ...     print(part)
        Where the truth is '1', f is decided '1' less often than m
        gap −0.100 [−0.150, −0.050], n = 400 and 900.
    """
    if row["value"] is None:
        what = f"{words(row['measure'])}{_of(row)}"
        return f"{_capital(what)} is {why_not(str(row['undefined']))}."
    base = base_of(row["measure"])
    reference = _OTHERS.get(row["reference"], row["reference"])
    place = f" in stratum {row['stratum']}" if row["stratum"] else ""
    cases = f"n = {row['n']:,.0f}" if row["n"] is not None else ""
    if cases and (counts_classes(row["measure"]) or "_rms" in row["measure"]):
        cases = plural(row["n"], "class", "classes")
    elif cases and "_spread" in row["measure"]:
        cases = plural(row["n"], "group")
    if row["n_reference"] is not None:
        cases += f" and {row['n_reference']:,.0f}"
    same = number(row["value"]) == "0.000"
    swapped = swap_words(row, _class(row["class"], meaning or {}), same=same)
    costs = cost_words(row, reference) or labeler_words(row, reference) or norm_words(row)
    costs = costs or rms_words(row, reference)
    if costs is not None:
        told, shown = costs
    elif swapped is not None:
        told, shown = swapped, f"gap {signed(row['value'])}"
    elif base in _COMPARED:
        is_ratio = row["measure"].endswith("_ratio")
        value = row["value"] - 1 if is_ratio else row["value"]
        level = number(value) in {"0.000", "−0.000"}
        form = _SAME[base] if level else _COMPARED[base]
        told = form.format(
            g=row["group"],
            r=reference,
            c=f"'{row['class']}'",
            d=_class(row["class"], meaning or {}),
            more="more" if value > 0 else "less",
            well="better" if value > 0 else "less well",
        )
        shown = f"ratio {number(row['value'])}" if is_ratio else f"gap {signed(row['value'])}"
        shown = f"AUC {shown}" if base == "auc" else shown
    else:
        told = f"{words(row['measure'])}{_of(row)}"
        shown = number(row["value"])
    numbers = ", ".join(part for part in (f"{shown} {interval(row)}".strip(), cases) if part)
    return f"{_capital(told)}{place}: {numbers}."


def _class(name: str, meaning: Mapping[str, str]) -> str:
    return f"'{name}' (a {meaning[name]})" if name in meaning else f"'{name}'"


def _of(row: Row) -> str:
    parts = []
    if row["class"]:
        parts.append(f" of '{row['class']}'")
    if row["group"] and row["reference"]:
        reference = _OTHERS.get(row["reference"], row["reference"])
        parts.append(f", {row['group']} against {reference}")
    elif row["group"]:
        parts.append(f" for {row['group']}")
    elif row["attribute"]:
        parts.append(f" by {row['attribute']}")
    if row.get("labeler"):
        parts.append(f", labeler {row['labeler']}")
    return "".join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
