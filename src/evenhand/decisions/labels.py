"""One spelling for every value that names a class or a group, whatever type it came as."""

from collections.abc import Iterable
from math import isnan
from typing import Any

MISSING = "<missing>"


def label(value: Any) -> str | None:
    """The name of a class or group; None where there is no value.

    Examples:
        >>> [label(v) for v in (True, 1, 1.0, "nurse", b"nurse", None, float("nan"), 0.5)]
        ['1', '1', '1', 'nurse', 'nurse', None, None, '0.5']
    """
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if isnan(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    item = getattr(value, "item", None)
    if item is not None:
        return label(item())
    text = str(value)
    return None if text in {"<NA>", "NaT"} else text


def crossed_name(parts: Iterable[str]) -> str:
    """The name of a crossed group; a star joins its values, so one within a value is quoted.

    Examples:
        >>> crossed_name(["female", "north"]), crossed_name(["a*b", "c"]), crossed_name(["a*b"])
        ('female*north', "'a*b'*c", 'a*b')
    """
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    return "*".join(f"'{part}'" if "*" in part else part for part in listed)


def ordered(labels: Iterable[str]) -> list[str]:
    """Labels in the order people expect: numbers by size, then words by name.

    Examples:
        >>> ordered({"10", "9", "b", "a"})
        ['9', '10', 'a', 'b']
    """

    def key(text: str) -> tuple[int, float, str]:
        try:
            return (0, float(text), text)
        except ValueError:
            return (1, 0.0, text)

    return sorted(labels, key=key)


def spellings(label: str) -> list[str]:
    """How a label may be written once its column is cast to text.

    Examples:
        >>> spellings("1"), spellings("nurse")
        (['1', '1.0', 'true', 'True'], ['nurse'])
    """
    words = [label]
    if label.lstrip("-").isdigit():
        words.append(f"{label}.0")
    return words + {"1": ["true", "True"], "0": ["false", "False"]}.get(label, [])


def as_in_numbers(text: str) -> str:
    """The label of a value that was written as text, where its column holds numbers or booleans.

    Examples:
        >>> [as_in_numbers(t) for t in ("1.0", "true", "0.50", "<rest>")]
        ['1', '1', '0.5', '<rest>']
    """
    try:
        number = {"true": 1.0, "false": 0.0}.get(text.lower())
        return label(float(text) if number is None else number) or text
    except ValueError:
        return text
