"""One table of a charter file, read key by key; every refusal names line, value and remedy.

A refusal is noted and reading goes on with nothing in the value's place, so that one reading
finds all of them.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite, nan
from typing import Any

from evenhand.charter.lines import Path, key_lines
from evenhand.charter.problems import Problems
from evenhand.decisions.labels import label
from evenhand.errors import nearest


class Entry:
    """A table of the file and where it stands.

    Examples:
        >>> top = Entry("c.toml", {"system": {"name": 3}}, text="[system]\\nname = 3")
        >>> top.table("system").text("name") is None
        True
        >>> print(top.problems.error())
        c.toml, line 2: system.name = 3 is not text. Put words in quotes.
    """

    def __init__(
        self,
        source: str,
        data: Mapping[str, Any],
        *,
        text: str = "",
        path: Path = (),
        lines: Mapping[Path, int] | None = None,
        problems: Problems | None = None,
    ) -> None:
        self.source = source
        self.data = data
        self.path = path
        self.lines = key_lines(text) if lines is None else lines
        self.problems = Problems(source) if problems is None else problems

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def refuse(self, key: str | None, wrong: str) -> None:
        """Note what is wrong with this key's value, or with the table where there is no key."""
        path = self.path if key is None else (*self.path, key)
        value = "" if key is None else f" = {shown(self.data[key])}"
        self.note(path, f"{_dotted(path)}{value} {wrong}")

    def note(self, path: Path, words: str) -> None:
        """Note a refusal in these words, with the line that the path stands on."""
        line = self._line(path)
        place = self.source if line is None else f"{self.source}, line {line}"
        self.problems.add(f"{place}: {words}", line=line or 0)

    def only(self, known: Iterable[str]) -> None:
        """Refuse every key that is not known."""
        names = list(known)
        for key in self.data:
            if key not in names:
                what = f"of [{_dotted(self.path)}]" if self.path else "of a charter"
                self.note(
                    (*self.path, key),
                    f"{key!r} is not a key {what}.{nearest(key, names)} "
                    f"The keys are {', '.join(names)}.",
                )

    def lacks(self, key: str) -> bool:
        """Whether nothing is written under this key, not even something wrong."""
        value = self.data.get(key, "")
        return isinstance(value, str) and not value.strip()

    def text(self, key: str) -> str | None:
        """Words, or None where there are none yet."""
        value = self.data.get(key, "")
        if not isinstance(value, str):
            self.refuse(key, "is not text. Put words in quotes.")
            return None
        return " ".join(value.split()) or None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of words; one text stands for a list of one."""
        value = self.data.get(key, ())
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not all(isinstance(v, str) for v in listed):
            self.refuse(key, 'is not a list of names. Write it as ["one", "another"].')
            return ()
        return tuple(v.strip() for v in listed if v.strip())

    def labels(self, key: str) -> tuple[str, ...]:
        """Values of a column, spelled as results spell them; one stands for a list of one."""
        value = self.data.get(key, ())
        listed = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(v, str | int | float) for v in listed):
            self.refuse(key, 'is not a value of a column. Write it as "north" or 1.')
            return ()
        return tuple(name for v in listed if (name := label(v)))

    def choice(self, key: str, known: tuple[str, ...]) -> str | None:
        """One of a few known words."""
        value = self.text(key)
        if value is not None and value not in known:
            self.refuse(key, f"is not known.{nearest(value, list(known))} Write {_either(known)}.")
            return None
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where nothing is said."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, "is neither true nor false. Write one of the two, without quotes.")
            return False
        return value

    def day(self, key: str) -> datetime.date | None:
        """A date, or None where there is none yet."""
        value = self.data.get(key, "")
        if isinstance(value, datetime.datetime):
            return value.date()
        if isinstance(value, datetime.date):
            return value
        if isinstance(value, str) and not value.strip():
            return None
        try:
            return datetime.date.fromisoformat(value.strip())
        except (ValueError, AttributeError):
            self.refuse(key, f"is not a date. Write year-month-day, such as {key} = 2026-01-31.")
            return None

    def number(self, key: str, remedy: str) -> float:
        """A finite number; NaN where it was refused, with the remedy."""
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, f"is not a number. {remedy}")
            return nan
        if not isfinite(value):
            self.refuse(key, f"is not finite. {remedy}")
            return nan
        return float(value)

    def table(self, key: str) -> "Entry":
        """The table under this key; an empty one where there is none."""
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            head = _dotted((*self.path, key))
            self.refuse(key, f"is not a table. Write [{head}] and its keys on lines of their own.")
            value = {}
        return self._inner(value, (*self.path, key))

    def tables(self, key: str) -> list["Entry"]:
        """The tables of an array, written [[key]] each."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            head = _dotted((*self.path, key))
            self.note(
                (*self.path, key),
                f"{head} is not a list of tables. Write [[{head}]] above each of them.",
            )
            return []
        return [self._inner(v, (*self.path, key, i)) for i, v in enumerate(value)]

    def _inner(self, data: Mapping[str, Any], path: Path) -> "Entry":
        return Entry(self.source, data, path=path, lines=self.lines, problems=self.problems)

    @property
    def line(self) -> int | None:
        """The line on which the table starts."""
        return self.lines.get(self.path)

    def _line(self, path: Path) -> int | None:
        # A table that only its subtables name has no line of its own: the nearest above has.
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines[path] if path else None


def shown(value: Any) -> str:
    """A value as the charter writes it.

    Examples:
        >>> shown("3:1"), shown([3, 5.5]), shown(True), shown(datetime.date(2026, 1, 31))
        ('"3:1"', '[3, 5.5]', 'true', '2026-01-31')
    """
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(shown(v) for v in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {shown(v)}" for k, v in value.items()) + "}"
    return str(value)


def _dotted(path: Path) -> str:
    return ".".join(part for part in path if isinstance(part, str))


def _either(known: tuple[str, ...]) -> str:
    quoted = [f'"{word}"' for word in known]
    return " or ".join((", ".join(quoted[:-1]), quoted[-1])) if len(quoted) > 1 else quoted[0]
