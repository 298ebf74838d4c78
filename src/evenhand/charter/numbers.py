"""The numbers of a charter: cost ratios with their bands, limits, prevalence, truth quality."""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite, nan
from typing import Any, TypeVar

from evenhand.charter.charter import BarChoice, Choice, TruthQuality
from evenhand.charter.entry import Entry
from evenhand.decisions.labels import label
from evenhand.decisions.roles import COLUMN_ROLES, MISSING_POLICIES, RULES, Roles
from evenhand.errors import UsageError, nearest
from evenhand.lenses.measures import limit_band

POSITIVE_IS = ("benefit", "burden")
_WORDS = {"rule": RULES, "missing": MISSING_POLICIES, "positive_is": POSITIVE_IS}
_TABLES = ("counterfactual", "norm", "norm_irrelevant")
_CUT = "Write a number such as 0.8, the name of a column, or one number for each group."


def read_charter_roles(entry: Entry) -> dict[str, Any]:
    """The roles as `Decisions` takes them, `group` always as a list."""
    entry.only(Roles.__slots__)
    found: dict[str, Any] = {}
    for key in entry:
        value = _role(entry, key) if key in Roles.__slots__ else None
        if value not in (None, (), [], {}):
            found[key] = value
    return found


def _role(entry: Entry, key: str) -> Any:
    value = entry.data[key]
    if key in COLUMN_ROLES:
        return entry.text(key)
    if key in _WORDS:
        return entry.choice(key, _WORDS[key])
    if key in ("group", "missing_words"):
        return list(entry.texts(key))
    if key in ("crossed", "classes"):
        return entry.flag(key)
    if key == "positive":
        if isinstance(value, str | int | float):
            return label(value) or None
        entry.refuse(key, "is not a value. Write the value that counts as positive.")
        return None
    if key == "stratum_edges":
        return _edges(entry, key)
    if key == "threshold":
        return _threshold(entry, key)
    if key in ("reference", "scores") and isinstance(value, str):
        return entry.text(key)
    if key in (*_TABLES, "reference", "scores"):
        table = entry.table(key)
        return {name: table.text(name) for name in table}
    raise KeyError(key)  # a role that Decisions learned and the charter did not


def _edges(entry: Entry, key: str) -> list[float]:
    value = entry.data[key]
    numbers = isinstance(value, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )
    if not numbers:
        entry.refuse(key, "is not a list of numbers. Write it as [18, 30, 65].")
        return []
    return [float(v) for v in value]


def _threshold(entry: Entry, key: str) -> Any:
    value = entry.data[key]
    if isinstance(value, str):
        return entry.text(key)
    if isinstance(value, dict):
        table = entry.table(key)
        return {name: table.number(name, "Write a number such as 0.8.") for name in table}
    return entry.number(key, _CUT)


Key = tuple[str | None, str | None]
Value = TypeVar("Value")
RATIO = "Write how many false positives one false negative counts as, such as cost_ratio = 3"
_FACTOR = "Write a factor above 1, such as 1.25, or a band, such as [3, 5]."
_CHOICE_KEYS = (
    "compare",
    "cost_ratio",
    "tolerance",
    "attribute",
    "group",
    "positive_is",
    "decided_by",
    "decided_on",
    "review_by",
    "reason",
)


COMPARED = ("cost_ratio", "bar")
_BAR_KEYS = ("compare", "tolerance", "decided_by", "decided_on", "review_by", "reason")
_APART = "Write how far bars may differ, in standard deviations, such as 0.2"


def read_bar(top: Entry) -> BarChoice | None:
    """The choice of one bar, where a choice says compare = "bar"."""
    found = None
    for entry in top.tables("choices"):
        if not _is_bar(entry):
            continue
        entry.only(_BAR_KEYS)
        if found is not None:
            entry.refuse(None, "chooses one bar a second time. Keep one of the two.")
            continue
        apart = nan
        if "tolerance" not in entry:
            entry.refuse(None, f"has no tolerance. {_APART}.")
        else:
            apart = entry.number("tolerance", f"{_APART}.")
        if apart <= 0:
            entry.refuse("tolerance", f"leaves no room. {_APART}, above 0.")
        found = BarChoice(tolerance=apart, **_decided(entry))
    return found


def _is_bar(entry: Entry) -> bool:
    return "compare" in entry and entry.data["compare"] == "bar"


def _decided(entry: Entry) -> dict[str, Any]:
    """Who decided, when, until when and why."""
    decided_on, review_by = entry.day("decided_on"), entry.day("review_by")
    if decided_on and review_by and review_by <= decided_on:
        entry.refuse(
            "review_by", f"is not after decided_on = {decided_on}. Give a later day for the review."
        )
    return {
        "decided_by": entry.text("decided_by"),
        "decided_on": decided_on,
        "review_by": review_by,
        "reason": entry.text("reason"),
    }


def read_choices(top: Entry, roles: Mapping[str, Any]) -> tuple[Choice, ...]:
    """The cost ratios chosen, at most one for everybody and one for each group."""
    found: dict[Key, Choice] = {}
    first: dict[Key, int | None] = {}
    positive_is = roles.get("positive_is")
    for entry in top.tables("choices"):
        if _is_bar(entry):
            continue
        entry.only(_CHOICE_KEYS)
        entry.choice("compare", COMPARED)
        key = whom(entry, roles.get("group", []))
        choice = _choice(entry, key or (None, None))
        if choice.positive_is and positive_is and choice.positive_is != positive_is:
            entry.refuse(
                "positive_is",
                f'contradicts "{positive_is}", said before. One decision is either a benefit or a '
                "burden for the person decided about: say the same everywhere.",
            )
        positive_is = choice.positive_is or positive_is
        if key is None:
            continue
        _check_crossing(entry, key[0], roles)
        if key in found:
            before = f", first on line {first[key]}" if first[key] else ""
            entry.refuse(
                None,
                f"chooses a cost ratio for {choice.whom} a second time{before}. "
                "Keep one of the two.",
            )
            continue
        found[key], first[key] = choice, entry.line
    return tuple(found.values())


def whom(entry: Entry, groups: Iterable[str]) -> Key | None:
    """The attribute and group that a table speaks of, or None where that was refused.

    A pair is two columns crossed, `a*b`.
    """
    before = len(entry.problems)
    columns, values = entry.texts("attribute"), entry.labels("group")
    if len(entry.problems) > before:
        return None
    known = list(groups)
    if columns and not values:
        entry.refuse(
            "attribute", "has no group beside it. Add group, or leave attribute out for everybody."
        )
        return None
    if values and not columns and len(known) == 1:
        columns = (known[0],)
    if values and not columns:
        entry.refuse("group", 'does not say of which column. Add attribute, such as "gender".')
        return None
    if not values:
        return None, None
    attribute, group = "*".join(columns), "*".join(values)
    crossed = attribute.count("*") + 1
    if crossed > 1 and group.count("*") + 1 < crossed:
        entry.refuse(
            "group",
            f"names too few values for {attribute}. Write one for each column, in the same order: "
            f'"{"*".join("abcdefgh"[:crossed])}".',
        )
        return None
    return attribute, group


def _check_crossing(entry: Entry, attribute: str | None, roles: Mapping[str, Any]) -> None:
    """A choice must speak of a column, or of the crossing of columns, that the audit will form."""
    columns = roles.get("group", [])
    if attribute is None or not columns or "attribute" not in entry:
        return
    formed = "*".join(columns)
    if "*" not in attribute:
        if attribute not in columns:
            entry.refuse(
                "attribute",
                f"is not a group column of [roles].{nearest(attribute, columns)} "
                f"They are {', '.join(columns)}.",
            )
    elif attribute != formed:
        entry.refuse(
            "attribute",
            f"is not how [roles] crosses its group columns, which gives {formed}. "
            "Write the columns in the same order in both places.",
        )
    elif roles.get("crossed") is False:
        entry.refuse(
            "attribute", "is a pair, but [roles] says crossed = false. Set crossed = true."
        )


def _choice(entry: Entry, key: Key) -> Choice:
    """One choice; NaN stands for numbers that were refused."""
    ratio = _ratio(entry)
    low, high = _band(entry, ratio)
    return Choice(
        cost_ratio=ratio,
        low=low,
        high=high,
        attribute=key[0],
        group=key[1],
        positive_is=entry.choice("positive_is", POSITIVE_IS),
        **_decided(entry),
    )


def _ratio(entry: Entry) -> float:
    if "cost_ratio" not in entry:
        entry.refuse(None, f"has no cost_ratio. {RATIO}.")
        return nan
    remedy = f"{RATIO}, or 0.333 where one false positive counts as 3 false negatives."
    ratio = entry.number("cost_ratio", remedy)
    if ratio <= 0:
        kind = "negative" if ratio < 0 else "zero"
        entry.refuse(
            "cost_ratio", f"is {kind}, as if a mistake were free or wished for. {RATIO}, above 0."
        )
        return nan
    return ratio


def _band(entry: Entry, ratio: float) -> tuple[float, float]:
    """The tolerated band: c/f … f·c for a factor f, or both ends as given."""
    if "tolerance" not in entry:
        entry.refuse(None, f"has no tolerance. {_FACTOR}")
        return nan, nan
    given = entry.data["tolerance"]
    if not isinstance(given, list):
        factor = entry.number("tolerance", _FACTOR)
        if factor <= 1:
            entry.refuse("tolerance", f"leaves no room around the cost ratio. {_FACTOR}")
        return ratio / (factor or nan), ratio * factor
    ends = [v for v in given if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(ends) != 2 or len(given) != 2 or not all(isfinite(v) for v in ends):
        entry.refuse("tolerance", f"is not a band of two numbers. {_FACTOR}")
        return nan, nan
    low, high = float(ends[0]), float(ends[1])
    if not 0 < low < high:
        entry.refuse("tolerance", "is not a band. Write the lower end first, above 0.")
    elif ratio < low or ratio > high:
        entry.refuse("tolerance", f"does not hold the chosen cost ratio {ratio:g}. Widen the band.")
    return low, high


def limit_table(entry: Entry, *, chosen: bool, bar: bool = False) -> dict[str, tuple[float, float]]:
    """Bands for other measures, by the rules of `--limit`."""
    found: dict[str, tuple[float, float]] = {}
    for name in entry:
        said = ("cost_ratio", "implied_threshold") if chosen else ()
        if name in said or (bar and name == "criterion_gap"):
            entry.refuse(
                name, "says again what [[choices]] says. Change the tolerance there, and drop this."
            )
            continue
        value = entry.data[name]
        text = ":".join(map(str, value)) if isinstance(value, list) else str(value)
        try:
            found[name] = limit_band(name, text)
        except UsageError as error:
            entry.note((*entry.path, name), str(error))
            continue
        if not isfinite(found[name][0]):
            entry.refuse(
                name, "has no lower end, so nothing could be judged. Write a number such as 0.05."
            )
    return found


def read_prevalence(entry: Entry) -> dict[Key, float]:
    """Shares of true cases in the population, for everybody (`all`) or by group."""
    remedy = "Write the share of true cases, between 0 and 1, such as 0.02."

    def share(table: Entry, key: str) -> float:
        value = table.number(key, remedy)
        if value <= 0 or value >= 1:
            table.refuse(key, f"is not a share. {remedy}")
        return value

    return _by_group(entry, share)


def read_truth_quality(entry: Entry) -> dict[Key, TruthQuality]:
    """Sensitivity and specificity of the truth, for everybody (`all`) or by group."""
    remedy = "Write a share above 0 and at most 1, such as 0.95."

    def quality(table: Entry, key: str) -> TruthQuality:
        one = table.table(key)
        one.only(TruthQuality.__slots__)
        shares = dict.fromkeys(TruthQuality.__slots__, nan)
        for name in shares:
            if name not in one:
                if isinstance(table.data[key], dict):
                    table.refuse(key, f"has no {name}. Give both sensitivity and specificity.")
                continue
            shares[name] = one.number(name, remedy)
            if shares[name] <= 0 or shares[name] > 1:
                one.refuse(name, f"is not a share. {remedy}")
                shares[name] = nan
        found = TruthQuality(**shares)
        if found.sensitivity + found.specificity <= 1:
            table.refuse(
                key, "is no better than a coin: the two must add up to more than 1. Check them."
            )
        return found

    return _by_group(entry, quality)


def _by_group(entry: Entry, read: Callable[[Entry, str], Value]) -> dict[Key, Value]:
    found: dict[Key, Value] = {}
    for attribute in entry:
        if attribute == "all":
            found[None, None] = read(entry, attribute)
            continue
        if not isinstance(entry.data[attribute], dict):
            head = str(entry.path[-1])
            entry.refuse(
                attribute,
                f"is not a table. Write all = … for everybody, or [{head}.{attribute}] with a line "
                "for each group.",
            )
            continue
        table = entry.table(attribute)
        for group in table:
            found[attribute, group] = read(table, group)
    return found
