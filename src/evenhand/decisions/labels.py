"""One spelling for every value that names a class or a group, whatever type it came as."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isnan, nan
from typing import Any

MISSING = "<missing>"
# What stands in a row where a group or a stratum would: everybody else, everybody, all strata.
REST, OVERALL, SUMMARY = "<rest>", "<overall>", "<summary>"
# No group may be named so: rows would be taken for those of a comparison, or of no group at all.
RESERVED = (REST, OVERALL, MISSING)
# Digits of the longest whole number that Python reads by itself.
_LONGEST = 4_000
_ALL_BUT = "not:"
# A value of a crossed group: quoted where it has a star of its own.
_CROSSED = re.compile(r"(?:^|(?<=\*))(?:'[^']*\*[^']*'(?=\*|$)|[^*]*)")


def all_but(name: str) -> str:
    """The name of all classes but one, where they stand together."""
    return f"{_ALL_BUT}{name}"


def excepted(name: str) -> str | None:
    """The class that a name leaves out, where it is that of all others; else None.

    Examples:
        >>> excepted(all_but("nurse")), excepted("nurse")
        ('nurse', None)
    """
    return name.removeprefix(_ALL_BUT) if name.startswith(_ALL_BUT) else None


def label(value: Any) -> str | None:
    """The name of a class or group; None where there is no value.

    Text stays as it is written. A number that is whole is shown as whole, a moment at midnight as
    its day, a moment with a time zone in UTC: what every engine and format has in common.

    Examples:
        >>> [label(v) for v in (True, 1, 1.0, "01", b"nurse", None, float("nan"), 0.5)]
        ['1', '1', '1', '01', 'nurse', None, None, '0.5']
        >>> [label(v) for v in (Decimal("0.70"), date(2026, 11, 1), datetime(2026, 11, 1, 5))]
        ['0.7', '2026-11-01', '2026-11-01 05:00:00']
    """
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if isnan(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        whole = value == value.to_integral_value() if value.is_finite() else False
        return str(int(value)) if whole else format(value.normalize(), "f")
    if isinstance(value, date | time):
        return None if str(value) == "NaT" else _moment(value)
    item = getattr(value, "item", None)
    if item is not None:
        return label(item())
    text = str(value)
    return None if text in {"<NA>", "NaT"} else text


def _moment(value: date | time) -> str:
    if not isinstance(value, datetime):
        return str(value)
    if value.tzinfo is not None:
        return str(value.astimezone(UTC))
    return str(value.date() if value.time() == time() else value)


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


def crossed_values(name: str) -> list[str]:
    """The values of a crossed group by its name.

    Examples:
        >>> crossed_values("female*north"), crossed_values("'a*b'*c"), crossed_values("o'er*c")
        (['female', 'north'], ['a*b', 'c'], ["o'er", 'c'])
    """
    return [one.strip("'") if "*" in one else one for one in _CROSSED.findall(name)]


def ordered(labels: Iterable[str]) -> list[str]:
    """Labels in the order people expect: numbers by size, then words by name.

    Examples:
        >>> ordered({"10", "9", "b", "a", "nan"})
        ['9', '10', 'a', 'b', 'nan']
    """

    named = list(labels)
    if all(map(_begins_a_word, {text[:1] for text in named})):
        return sorted(named)
    words: list[str] = []
    numbers: list[tuple[float, str]] = []
    for text in named:
        try:
            number = nan if _begins_a_word(text[:1]) else float(text)
        except ValueError:
            number = nan
        # A word that reads as NaN is neither before nor after any number.
        if isnan(number):
            words.append(text)
        else:
            numbers.append((number, text))
    return [text for _, text in sorted(numbers)] + sorted(words)


def _begins_a_word(letter: str) -> bool:
    """Whether no number begins so: of those only NaN and infinity begin with a letter."""
    return letter.isalpha() and letter not in "nNiI"


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
        >>> [as_in_numbers(t) for t in ("1.0", "true", "0.50", "<rest>", "9007199254740993")]
        ['1', '1', '0.5', '<rest>', '9007199254740993']
    """
    if text.lstrip("-").isdecimal() and text.isascii() and len(text) < _LONGEST:
        return str(int(text))  # a float would round those beyond 2**53
    try:
        number = {"true": 1.0, "false": 0.0}.get(text.lower())
        return label(float(text) if number is None else number) or text
    except ValueError:
        return text
