"""Groups by the names that the data gives them, told apart where a bare value would not be."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
_LIKE_NOTHING = {"", "nan", "none", "null", "na"}


def name_of(value: str | None, attribute: str | None, *, shared: bool = False) -> str | None:
    """A group as people are shown it; `shared` says that another attribute has the value too.

    Examples:
        >>> name_of("female", "gender"), name_of("1", "gender"), name_of("<rest>", "gender")
        ('female', 'gender=1', '<rest>')
        >>> name_of("yes", "disabled", shared=True), name_of("", "gender")
        ('disabled=yes', "gender=''")
    """
    if value is None or attribute is None or value.startswith("<"):
        return value
    if value.strip().lower() in _LIKE_NOTHING:
        return f"{attribute}={value!r}"
    return f"{attribute}={value}" if shared or _is_number(value) else value


def names_for(rows: Iterable[Row]) -> Callable[[Row], dict[str, Any]]:
    """A function that gives a row's group and reference the names people are shown.

    Examples:
        >>> rows = [{"attribute": "old", "group": "yes"}, {"attribute": "ill", "group": "yes"}]
        >>> names_for(rows)(rows[0] | {"reference": "no"})
        {'attribute': 'old', 'group': 'old=yes', 'reference': 'no'}
    """
    holders: dict[str, set[str]] = {}
    for row in rows:
        if row["group"] is not None:
            holders.setdefault(row["group"], set()).add(row["attribute"])
    shared = {value for value, attributes in holders.items() if len(attributes) > 1}

    def named(row: Row) -> dict[str, Any]:
        attribute = row["attribute"]
        told = {
            key: name_of(row[key], attribute, shared=row[key] in shared)
            for key in ("group", "reference")
        }
        return {**row, **told}

    return named


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
