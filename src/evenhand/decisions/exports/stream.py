"""The records of an export, one after the other: JSON, JSON Lines, Parquet, packed or zipped."""

import gzip
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenhand.decisions.paths import check_is_file, plain_path
from evenhand.errors import DataError, MissingExtra, UsageError
from evenhand.files.places import find_matches

# One JSON document is taken whole up to here; beyond it takes several times as much memory.
LARGEST_WHOLE = 100_000_000
LINES = {".jsonl", ".ndjson"}
ENDINGS = (".json", ".jsonl", ".ndjson", ".gz", ".zip", ".parquet")
# Rows of a Parquet file that are held at once.
SLICE = 10_000
# Half of a character of two parts, as JSON may write it.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """One record, the name of the file it stands in without its ending, and its number there."""

    content: dict[str, Any]
    stem: str
    number: int
    source: str

    @property
    def place(self) -> str:
        """Where the record is, as a message says it."""
        return f"'{self.source}', record {self.number:,}"


def export_records(paths: Sequence[str | Path]) -> Iterator[ExportRecord]:
    """Every record of the files, in their order; a zip stands for the files in it."""
    for path in _files(paths):
        if path.suffix.lower() == ".zip":
            yield from _zipped(path)
            continue
        if path.suffix.lower() == ".parquet":
            yield from _numbered(_rows(path), path.stem, str(path))
            continue
        packed = path.suffix.lower() == ".gz"
        inner = Path(path.stem) if packed else Path(path.name)
        with _reading(str(path)), gzip.open(path) if packed else path.open("rb") as stream:
            size = None if packed else path.stat().st_size
            yield from _records(stream, inner, source=str(path), size=size)


def _files(paths: Sequence[str | Path]) -> list[Path]:
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        matches = [path] if path.exists() else list(map(Path, find_matches(given)))
        if not matches:
            raise UsageError(f"There is no file '{given}'. Give the export as the tool wrote it.")
        found += matches
    for path in found:
        if path.is_dir():
            raise UsageError(f"'{path}' is a folder. Name the files of the export in it.")
        check_is_file(path)
        if not path.name.lower().endswith(ENDINGS):
            raise UsageError(
                f"'{path}' is not an export that can be read. Export as JSON or JSON Lines: a name "
                f"that ends in {', '.join(ENDINGS)}."
            )
    return found


@contextmanager
def _reading(source: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"'{source}' cannot be read: {reason.rstrip('.')}.") from error


def _zipped(path: Path) -> Iterator[ExportRecord]:
    with _reading(str(path)), zipfile.ZipFile(path) as packed:
        inside = [i for i in packed.infolist() if Path(i.filename).suffix in {".json", *LINES}]
        if not inside:
            raise DataError(f"'{path}' holds no .json or .jsonl file. Give the export itself.")
        for info in sorted(inside, key=lambda info: info.filename):
            with packed.open(info) as stream:
                source = f"{path}/{info.filename}"
                yield from _records(stream, Path(info.filename), source=source, size=info.file_size)


def _records(stream: Any, name: Path, *, source: str, size: int | None) -> Iterator[ExportRecord]:
    first = stream.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if name.suffix.lower() in LINES:
        contents = _lines(stream, source)
    elif first == b"[":
        contents = _array(stream, source, size)
    else:
        contents = _documents(stream, source)
    yield from _numbered(contents, name.stem, source)


def _numbered(contents: Iterator[Any], stem: str, source: str) -> Iterator[ExportRecord]:
    for number, content in enumerate(contents, 1):
        if not isinstance(content, dict):
            raise DataError(
                f"'{source}', record {number:,} is not an object but {type(content).__name__}. "
                "Give the export as the tool wrote it."
            )
        yield ExportRecord(content=content, stem=stem, number=number, source=source)


def _rows(path: Path) -> Iterator[Any]:
    """The rows of a dataset that is kept in Parquet, a slice at a time."""
    import polars as pl

    try:
        table = pl.scan_parquet(plain_path(path), glob=False, hive_partitioning=False)
        rows = table.select(pl.len()).collect().item()
        for start in range(0, rows, SLICE):
            yield from table.slice(start, SLICE).collect().iter_rows(named=True)
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"'{path}' cannot be read as Parquet: {reason}.") from error


def _lines(stream: IO[bytes], source: str) -> Iterator[Any]:
    for number, line in enumerate(stream, 1):
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if text:
            yield _parsed(text, f"'{source}', line {number:,}")


def _array(stream: IO[bytes], source: str, size: int | None) -> Iterator[Any]:
    """The items of one JSON array; a large one is never held whole."""
    if size is None:
        # Packed: only reading tells how much there is.
        head = stream.read(LARGEST_WHOLE + 1)
        if len(head) <= LARGEST_WHOLE:
            yield from _parsed(head, f"'{source}'")
            return
        del head
        stream.seek(0)
    elif size <= LARGEST_WHOLE:
        yield from _parsed(stream.read(), f"'{source}'")
        return
    try:
        import ijson
    except ImportError:
        much = "" if size is None else f" of {size / 1e6:,.0f} MB"
        raise MissingExtra("exports", f"'{source}', one large JSON document{much},") from None
    try:
        yield from ijson.items(stream, "item", use_float=True)
    except ijson.JSONError as error:
        raise DataError(_damaged(f"'{source}'", str(error))) from error


def _documents(stream: IO[bytes], source: str) -> Iterator[Any]:
    """JSON Lines under another name, or one document that holds the records by name."""
    line = stream.readline()
    try:
        json.loads(line)
    except ValueError:
        if (whole := line + stream.read()).strip():
            yield _parsed(whole, f"'{source}'")
        return
    yield _parsed(line, f"'{source}', line 1")
    yield from _lines(stream, source)


def _parsed(text: bytes, where: str) -> Any:
    try:
        found = json.loads(text)
        if _HALF.search(text):
            json.dumps(found, ensure_ascii=False).encode()  # half a character is no text
    except (ValueError, RecursionError) as error:
        raise DataError(_damaged(where, str(error))) from error
    return found


def _damaged(where: str, reason: str) -> str:
    line = reason.partition("\n")[0].rstrip(".")
    return f"{where} is not JSON: {line}. The export may be cut off; export again."
