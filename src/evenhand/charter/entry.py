"""One table of a charter file, read key by key; every refusal names line, value and remedy.

A refusal is noted and reading goes on with nothing in the value's place, so that one reading
finds all of them.
"""

import datetime
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite, nan
from typing import Any

from evenhand.decisions.labels import label
from evenhand.errors import DataError, nearest

Path = tuple[str | int, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_LONG = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}', re.DOTALL)
_PLAIN = re.compile(r"[^,\]}\n#]*")
_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")


def key_lines(text: str) -> dict[Path, int]:
    """The line of every key and table of a valid TOML text, by its path.

    `tomllib` reads values without their places; this walks the same text for the places alone.

    Examples:
        >>> key_lines('a = 1\\n\\n[[b]]\\nc = {d = 2}\\n[[b]]')
        {('a',): 1, ('b', 0): 3, ('b', 0, 'c'): 4, ('b', 0, 'c', 'd'): 4, ('b', 1): 5}
    """
    return _Walk(text).lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        # How many tables each array of tables has so far: a header speaks of the last one.
        self.counts: dict[Path, int] = {}
        table: Path = ()
        self.skip(_GAP)
        while self.at < len(text):
            if text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_GAP)

    def skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group()

    def note(self, path: Path, at: int) -> None:
        self.lines.setdefault(path, self.text.count("\n", 0, at) + 1)

    def key(self) -> list[str]:
        parts: list[str] = []
        while True:
            self.skip(_SPACE)
            quoted = self.skip(_QUOTED)
            bare = quoted or self.skip(_BARE)
            parts.append(str(tomllib.loads(f"k = {quoted}")["k"]) if quoted else bare)
            self.skip(_SPACE)
            if self.text[self.at : self.at + 1] != ".":
                return parts
            self.at += 1

    def header(self) -> Path:
        start = self.at
        several = self.text.startswith("[[", self.at)
        self.at += 2 if several else 1
        *parents, last = self.key()
        self.at += 2 if several else 1
        path: Path = ()
        for part in parents:
            path = self.latest((*path, part))
        path = (*path, last)
        if several:
            self.counts[path] = self.counts.get(path, 0) + 1
        path = self.latest(path)
        self.note(path, start)
        return path

    def latest(self, path: Path) -> Path:
        return (*path, self.counts[path] - 1) if path in self.counts else path

    def pair(self, table: Path) -> None:
        start = self.at
        path = table
        for part in self.key():
            path = (*path, part)
            self.note(path, start)
        self.at += 1  # the equals sign
        self.value(path)

    def value(self, path: Path) -> None:
        self.skip(_SPACE)
        mark = self.text[self.at : self.at + 1]
        if mark == "[":
            self.inside(path, "]")
        elif mark == "{":
            self.inside(path, "}")
        else:
            _ = self.skip(_LONG) or self.skip(_QUOTED) or self.skip(_PLAIN)

    def inside(self, path: Path, end: str) -> None:
        self.at += 1
        self.skip(_GAP)
        count = 0
        while self.text[self.at] != end:
            if end == "}":
                self.pair(path)
            else:
                self.note((*path, count), self.at)
                self.value((*path, count))
                count += 1
            self.skip(_GAP)
        self.at += 1


MOST_TOLD = 20


class Problems:
    """Refusals of one file in the order of its lines.

    Examples:
        >>> found = Problems("c.toml")
        >>> found.add("c.toml, line 7: b is wrong. Mend it.", line=7)
        >>> found.add("c.toml, line 3: a is wrong. Mend it.", line=3)
        >>> print(found.error())
        c.toml has 2 mistakes:
        - c.toml, line 3: a is wrong. Mend it.
        - c.toml, line 7: b is wrong. Mend it.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._found: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, message: str, *, line: int = 0) -> None:
        """Note a refusal; the same words about the same line count once."""
        if (line, message) not in self._found:
            self._found.append((line, message))

    def error(self) -> DataError:
        """All refusals as one error: the sentence itself where there is one."""
        told = [message for _, message in sorted(self._found, key=lambda one: one[0])]
        if len(told) == 1:
            return DataError(told[0])
        lines = [f"{self.source} has {len(told):,} mistakes:"]
        lines += [f"- {message}" for message in told[:MOST_TOLD]]
        if len(told) > MOST_TOLD:
            lines.append(f"- and {len(told) - MOST_TOLD:,} more. Mend these first.")
        return DataError("\n".join(lines))


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
