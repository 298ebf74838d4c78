"""The column roles of a charter, so that an audit with a charter needs no flags."""

from typing import Any

from evenhand.charter.entry import Entry
from evenhand.decisions.labels import label
from evenhand.decisions.roles import COLUMN_ROLES, MISSING_POLICIES, RULES, Roles

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
    if key == "group":
        return list(entry.texts(key))
    if key == "crossed":
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
