"""A tally set: what an audit needs of a table, without its rows.

Tables of sums by keys, under names such as `counts/gender` and `scores/gender/score`. Sums of one
table can be added to those of another, so sets of parts merge into the set of the whole. Ranks
cannot: those tables are `finished`, and `lost` says of each what would bring it back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from evenhand import __version__
from evenhand.decisions.labels import ordered
from evenhand.decisions.roles import Roles
from evenhand.decisions.tallies.grid import on_one_grid
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.files.reading import read_whole
from evenhand.speech import plural

# Keys whose labels are names of people or of what they wrote.
PERSONAL = ("labeler", "item", "cluster")
NAMES, NUMBERS, PSEUDONYMS = "names", "numbers", "pseudonyms"
# Sources that are named when sets are merged; more of them are counted.
MOST_SOURCES = 3
Withheld = tuple[int, int]


def table_name(kind: str, *parts: str) -> str:
    """The name of a table in a set.

    Examples:
        >>> table_name("counts", "gender"), table_name("scores", "sex", "score:nurse")
        ('counts/gender', 'scores/sex/score:nurse')
    """
    return "/".join((kind, *parts))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tallies:
    """What an audit needs of a table, without its rows: merges with `+`, saves and loads itself.

    Attributes:
        source: Where the rows came from, in words.
        roles: The roles of the columns, the rule and the thresholds.
        columns: The columns that lenses look for by name.
        rows: How many rows were counted.
        survey: Least and greatest value of each numeric column.
        tables: Sums by keys, which can be added to those of other rows.
        finished: Sums of ranks, which cannot.
        lost: Why a table is not there, and what would bring it back, by its name.
        names: How labelers, items and clusters are called: by `numbers`, `names` or `pseudonyms`.
        floor: Cells of fewer rows were withheld.
        withheld: Cells and rows that were withheld, by table.
        settings: What was chosen when rows were counted, such as the longest time.
        version: Of Evenhand, when it was made.
        parts: How many sets were merged.

    Examples:
        >>> import evenhand as eh
        >>> table = {"bad": [1, 0] * 20, "removed": [1, 0, 0, 0] * 10, "sex": ["f", "m"] * 20}
        >>> week = eh.tally(table, truth="bad", decision="removed", group="sex")
        >>> week
        <Tallies of arrays: 40 rows, counts/sex>
        >>> (week + week).rows
        80
    """

    source: str
    roles: Roles
    columns: tuple[str, ...]
    rows: int
    survey: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Tally] = field(default_factory=dict)
    finished: Mapping[str, Tally] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    names: str = NAMES
    floor: int = 0
    withheld: Mapping[str, Withheld] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    version: str = __version__
    parts: int = 1

    def __repr__(self) -> str:
        listed = ", ".join([*self.tables, *self.finished])
        return f"<Tallies of {self.source}: {plural(self.rows, 'row')}, {listed}>"

    def __add__(self, other: "Tallies") -> "Tallies":
        """The set of the rows of both."""
        if not isinstance(other, Tallies):
            return NotImplemented
        return self.merge(other)

    def table(self, name: str) -> Tally:
        """A table by its name; where it is not there, an error that says what would bring it."""
        found = self.tables.get(name) or self.finished.get(name)
        if found is None and name in self.withheld:
            keys = {**self.tables, **self.finished}[name].labels
            by = next((f" or without {key}" for key in PERSONAL if key in keys), "")
            raise DataError(
                f"No cell of {name!r} has {self.floor} rows, so the floor withheld all of them. "
                f"Tally with a smaller floor{by}, or audit the table itself."
            )
        if found is None:
            raise DataError(
                self.lost.get(name)
                or f"'{self.source}' holds no tally {name!r}. Tally the table again, or audit it "
                "itself."
            )
        return found

    def holds(self, name: str) -> bool:
        """Whether a table of this name is there."""
        return name in self.tables or name in self.finished

    def with_roles(self, **changes: Any) -> Self:
        """The same set with roles that do not change what was counted, such as the reference."""
        return replace(self, roles=replace(self.roles, **changes))

    def merge(self, other: "Tallies") -> "Tallies":
        """The set of the rows of both; refused, with what differs, where they are not alike."""
        _check_alike(self, other)
        lost = {**self.lost, **other.lost}
        tables: dict[str, Tally] = {}
        for name in dict.fromkeys((*self.tables, *other.tables)):
            one, two = self.tables.get(name), other.tables.get(name)
            if one is not None and two is not None:
                tables[name] = Tally.merge(*on_one_grid(one, two))
            else:
                lost.setdefault(name, f"One of the merged sets holds no tally {name!r}.")
        for name in (*self.finished, *other.finished):
            lost[name] = (
                "Norms are compared by ranks, and ranks within two parts do not give those within "
                "both. Audit the rows of all parts together, or each part's set alone."
            )
        withheld = {
            name: (cells[0] + more[0], cells[1] + more[1])
            for name in dict.fromkeys((*self.withheld, *other.withheld))
            for cells in (self.withheld.get(name, (0, 0)),)
            for more in (other.withheld.get(name, (0, 0)),)
        }
        return replace(
            self,
            source=_sources(self.source, other.source),
            roles=replace(self.roles, classes=self.roles.classes or other.roles.classes),
            columns=tuple(dict.fromkeys((*self.columns, *other.columns))),
            rows=self.rows + other.rows,
            survey=_widest(self.survey, other.survey),
            tables=tables,
            finished={},
            lost={name: why for name, why in lost.items() if name not in tables},
            withheld=withheld,
            parts=self.parts + other.parts,
        )

    def fingerprint(self) -> str:
        """A hash of all counts: the same on every engine and however the rows were parted."""
        marks = [f"{k}:{t.pruned().fingerprint()}" for k, t in sorted(self.tables.items())]
        return sha256("\n".join(marks).encode()).hexdigest()[:16]

    def notes(self) -> list[str]:
        """Sentences on what the set cannot tell, or tells less well than rows would."""
        notes = []
        if self.withheld:
            rows = max(rows for _, rows in self.withheld.values())
            cells = sum(cells for cells, _ in self.withheld.values())
            notes.append(
                f"Cells of fewer than {self.floor} rows were withheld from the tallies: "
                f"{plural(cells, 'cell')}, up to {rows:,} of {plural(self.rows, 'row')} "
                f"({100 * rows / max(self.rows, 1):.1f} %). Rates of small groups and rare "
                "mistakes are missing or too low; audit the rows for those."
            )
        notes += dict.fromkeys(self.lost.values())
        return notes

    def to_bytes(self) -> bytes:
        """The set as the content of a file: a zip of `set.json` and Parquet tables."""
        from evenhand.decisions.tallies.archive import packed

        return packed(self)

    @classmethod
    def from_bytes(cls, content: bytes, *, source: str = "tallies") -> "Tallies":
        """A set from the content of its file; `source` is how messages call it."""
        from evenhand.decisions.tallies.archive import unpacked

        return unpacked(content, source=source)

    def save(self, path: str | Path) -> None:
        """Write the set whole or not at all; no row of anybody is in it."""
        from evenhand.files.writing import write_bytes

        write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, *paths: str | Path) -> "Tallies":
        """Read sets that `save` wrote; several are merged."""
        if not paths:
            raise UsageError("Name a tally set to load, such as week-12.tallies.")
        return merge_all(cls.from_bytes(_content(path), source=str(path)) for path in paths)


def merge_all(sets: Iterable[Tallies]) -> Tallies:
    """The set of the rows of all of them."""
    return reduce(Tallies.merge, sets)


def _content(path: str | Path) -> bytes:
    try:
        return read_whole(path)
    except FileNotFoundError:
        raise DataError(f"There is no file '{path}'.") from None
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror or error}.") from error


def _sources(one: str, other: str) -> str:
    """The sources of a merged set, in an order that does not depend on how it was merged."""
    names, more = set(), 0
    for source in (one, other):
        listed, mark, rest = source.partition(" and ")
        names.update(listed.split(", "))
        more += int(rest.split()[0].replace(",", "")) if mark and rest.split()[0].isdigit() else 0
    first = ordered(names)
    more += len(first[MOST_SOURCES:])
    return ", ".join(first[:MOST_SOURCES]) + (f" and {more} more" if more else "")


def _widest(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Least and greatest values over both; a column without a value in one is the other's."""
    found = dict(one)
    for name, value in other.items():
        pick = min if name.startswith("min:") else max
        found[name] = pick(found[name], value) if name in found else value
    return found


def _check_alike(one: Tallies, other: Tallies) -> None:
    """Refuse sets of different things, with what differs."""
    # That numbers are classes changes how counts are read, and not what was counted.
    mine, theirs = (replace(each.roles, classes=False).used() for each in (one, other))
    for role in dict.fromkeys((*mine, *theirs)):
        if mine.get(role) != theirs.get(role):
            raise _different(role, mine.get(role), theirs.get(role))
    released = [".".join(each.version.split(".")[:2]) for each in (one, other)]
    if released[0] != released[1]:
        raise _different("version", *released)
    chosen = {**one.settings, **other.settings}
    pairs: list[tuple[str, Any, Any]] = [
        ("floor", one.floor or None, other.floor or None),
        ("names", one.names, other.names),
        *((k, one.settings.get(k), other.settings.get(k)) for k in chosen),
    ]
    for name, a, b in pairs:
        if a != b:
            raise _different(name, a, b)
    people = [key for key in PERSONAL for t in one.tables.values() if key in t.labels]
    if people and one.names == NUMBERS:
        raise DataError(
            f"The sets number every {people[0]} on their own, so nobody can tell who is in both. "
            "Tally the parts again with pseudonyms from one key (--pseudonyms KEYFILE), or with "
            "names (--names)."
        )


def _different(what: str, one: Any, other: Any) -> DataError:
    return DataError(
        f"The tally sets differ in {what}: {_said(one)} and {_said(other)}. Merge sets made with "
        "the same roles, rule and thresholds, or audit each alone."
    )


def _said(value: Any) -> str:
    return "none" if value is None else repr(value)
