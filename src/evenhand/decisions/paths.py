"""Which files a table is read from: globs, folders and the columns that folders are named after."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from evenhand.errors import DataError, UsageError, nearest
from evenhand.files.places import find_matches, pattern_root

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
PACKED = {".gz", ".zst"}
WILD = "*?["
# How Spark is told to take a path as it is written.
UNEXPANDED = {"__globPaths__": "false"}
# What a run that was broken off leaves behind.
UNFINISHED = (".partial", ".partial-wal", ".partial-shm", ".partial-journal", ".tmp")
# How Hive writes that a partition has no value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of one table, their format, and what their folders say of their rows.

    `partitions` holds the kind of each column that folders such as `day=2026-11-01` stand for,
    below the folder of `roots` that belongs to each file.
    """

    source: str
    kind: str
    paths: tuple[Path, ...]
    roots: tuple[Path, ...]
    partitions: dict[str, str]

    def values(self, place: int) -> dict[str, str | None]:
        """What the folders of a file say of its rows."""
        return partition_values(self.paths[place], self.roots[place])

    @property
    def above(self) -> set[str]:
        """Names of folders of that form higher up, which are not the table's."""
        return {
            name
            for root in set(self.roots)
            for name in partition_values(root / "x", Path(root.anchor))
        }


def find_files(data: Sequence[Any]) -> Files:
    """The files that paths, globs and folders stand for; all of one format."""
    given = _expand(data)
    kinds = {_format(path) for path, _ in given}
    if len(kinds) > 1:
        raise UsageError(
            f"The files are of {len(kinds)} formats ({', '.join(sorted(kinds))}). "
            "Give files of one format."
        )
    places: list[tuple[Path, Path]] = []
    for path, root in given:
        if not path.is_dir():
            places.append((path, root))
            continue
        inside = sorted(_parquet_files(path, set()))
        if not inside:
            raise DataError(
                f"'{path}' holds no Parquet file. Give a folder of .parquet files, or name the "
                "files themselves."
            )
        places += [(file, root) for file in inside]
    _check_files(path for path, _ in places)
    shown = [path for path, _ in given]
    source = str(shown[0]) if len(shown) == 1 else f"{shown[0]} and {len(shown) - 1} more"
    return Files(
        source=source,
        kind=kinds.pop(),
        paths=tuple(path for path, _ in places),
        roots=tuple(root for _, root in places),
        partitions=_partitions(places),
    )


def plain_path(path: str | Path) -> str:
    """A file's path as text in which an engine sees neither a home folder nor an address.

    Examples:
        >>> plain_path("data/a.csv"), plain_path("~/a.csv").endswith("/~/a.csv")
        ('data/a.csv', True)
    """
    first = next(iter(Path(path).parts), "")
    misread = first.startswith("~") or ":" in first
    return os.path.abspath(path) if misread else str(path)


def exact_pattern(path: str | Path) -> str:
    """The pattern that only this file fits, for engines that expand whatever they are given.

    Examples:
        >>> exact_pattern("2024/a[1].csv"), exact_pattern("b*.csv")
        ('2024/a[[]1].csv', 'b[*].csv')
    """
    return "".join(f"[{sign}]" if sign in WILD else sign for sign in plain_path(path))


def packing(paths: Iterable[str | Path]) -> str | None:
    """How all of these files are packed, by their names: gzip, zstd or not at all.

    None where they differ: then their reader has to find it out.
    """
    names = {".gz": "gzip", ".zst": "zstd"}
    ways = {names.get(Path(path).suffix.lower(), "none") for path in paths}
    return ways.pop() if len(ways) == 1 else None


def _check_files(paths: Iterable[Path]) -> None:
    seen: set[tuple[int, int]] = set()
    for path in paths:
        status = path.stat()
        if status.st_size == 0:
            raise DataError(f"'{path}' is empty. Give a file with a header and at least one row.")
        # By what the system calls the file: a link to it, of either kind, is the same file.
        if (status.st_dev, status.st_ino) in seen:
            raise UsageError(f"'{path}' is given twice, so its rows would count twice.")
        seen.add((status.st_dev, status.st_ino))


def _expand(data: Sequence[Any]) -> list[tuple[Path, Path]]:
    """Each path with the folder below which folders speak of its rows."""
    paths: list[tuple[Path, Path]] = []
    for item in data:
        text = str(item)
        path = Path(text)
        if text in {"-", "/dev/stdin"}:
            raise UsageError("A table is read from files, not from standard input. Save it first.")
        if path.exists():
            paths.append((path, path if path.is_dir() else path.parent))
        elif any(mark in text for mark in WILD):
            # Two stars match folders too, whose files they match anyway.
            matches = [Path(name) for name in find_matches(text, recursive=True)]
            matches = [p for p in matches if is_finished(p) and not ("**" in text and p.is_dir())]
            if not matches:
                raise DataError(f"No file matches '{text}'.")
            paths += [(each, pattern_root(path)) for each in matches]
        else:
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise DataError(f"There is no file '{text}'.{nearest(path.name, siblings)}")
    for path, _ in paths:
        check_is_file(path)
    return paths


def check_is_file(path: Path) -> None:
    """Refuse a pipe, a socket or a device: a table is read more than once."""
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    what = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
    raise UsageError(
        f"'{path}' is {what}, and a table is read more than once. Save it to a file first."
    )


def is_finished(path: Path) -> bool:
    """Whether a file is neither hidden nor what a run left unfinished.

    A name that begins with a dot or an underscore is what writers use for their own.

    Examples:
        >>> [is_finished(Path(name)) for name in ("a.parquet", ".a.parquet.x", "a.parquet.partial")]
        [True, False, False]
    """
    return not path.name.startswith((".", "_")) and not path.name.endswith(UNFINISHED)


def _parquet_files(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """The Parquet files within a folder, in whatever case they are named; nothing hidden."""
    if folder.resolve() in seen:
        return  # a link back to where we came from
    seen.add(folder.resolve())
    for path in filter(is_finished, folder.iterdir()):
        if path.is_dir():
            yield from _parquet_files(path, seen)
        elif FORMATS.get(path.suffix.lower()) == "parquet":
            check_is_file(path)
            yield path


def partition_values(path: Path, root: Path) -> dict[str, str | None]:
    """What the folders `name=value` between a root and a file say of its rows.

    Examples:
        >>> partition_values(Path("data/day=2026-11-01/place=a%20b/x.parquet"), Path("data"))
        {'day': '2026-11-01', 'place': 'a b'}
    """
    inside = path.parent.relative_to(root).parts
    split = [part.partition("=") for part in inside]
    named = {unquote(name): unquote(value) for name, sign, value in split if sign and name}
    return {name: None if value == NO_VALUE else value for name, value in named.items()}


def _partitions(places: Sequence[tuple[Path, Path]]) -> dict[str, str]:
    """The columns that folders stand for, with how their values are written."""
    folders = [partition_values(path, root) for path, root in places]
    for values, (path, _) in zip(folders, places):
        if set(values) != set(folders[0]):
            raise DataError(
                f"'{path}' lies in folders named after {_listed(values)}, and '{places[0][0]}' in "
                f"folders named after {_listed(folders[0])}. Give files whose folders name the "
                "same columns."
            )
    from evenhand.decisions.csv_text import kind_of

    return {name: kind_of(values[name] or "" for values in folders) for name in folders[0]}


def _listed(names: Iterable[str]) -> str:
    return " and ".join(map(repr, names)) or "no column"


def _format(path: Path) -> str:
    if path.is_dir():
        return "parquet"
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".zip":
        raise UsageError(f"'{path}' is a zip archive. Unpack it and give the file inside.")
    while suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    kind = FORMATS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise UsageError(
            f"'{path}' is of no known format. Give Parquet (.parquet), CSV (.csv), "
            "JSON Lines (.jsonl) or Arrow (.arrow), gzipped if you like."
        )
    return kind
