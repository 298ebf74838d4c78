"""Where each key of a TOML text stands, so that an error can name the line."""

import re
import tomllib

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
