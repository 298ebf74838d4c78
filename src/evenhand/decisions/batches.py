"""Tables read and written a batch of rows at a time, so that memory does not grow with the file.

Parquet is read in slices; other formats are first rewritten as Parquet in a temporary folder,
since a slice of a CSV file can only be found by reading everything before it.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.decisions.labels import label
from evenhand.decisions.read import open_table, overwrites, unreadable
from evenhand.errors import DataError, UsageError, nearest

MOST_ROWS = 8_192
BYTES_AT_ONCE = 32 * 2**20
MOST_GROUPS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows that follow each other, from row `start` of the table on."""

    start: int
    frame: pl.DataFrame

    def __len__(self) -> int:
        return len(self.frame)

    def strings(self, column: str) -> list[str | None]:
        """The values of a text column."""
        return self.frame[column].cast(pl.String).to_list()

    def labels(self, column: str) -> list[str | None]:
        """The values of a column as names of classes or groups."""
        return [label(value) for value in self.frame[column].to_list()]

    def with_columns(self, columns: Mapping[str, Any]) -> "Batch":
        """The batch with columns added or replaced; a number that is not finite becomes null."""
        made = [pl.Series(name, values) for name, values in columns.items()]
        made = [each.fill_nan(None) if each.dtype.is_float() else each for each in made]
        # A column without any value would otherwise have another type than in its neighbours.
        made = [each.cast(pl.String) if each.dtype == pl.Null else each for each in made]
        return Batch(start=self.start, frame=self.frame.with_columns(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTable:
    """A table on disk that is read in batches; made by `open_batches`."""

    source: str
    rows: int
    schema: Mapping[str, Any]
    scan: pl.LazyFrame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema)

    def check_column(self, role: str, column: str) -> None:
        """Raises unless the table has this column."""
        if column not in self.schema:
            raise UsageError(
                f"{role}={column!r} is not a column of the table.{nearest(column, self.columns)}"
            )

    def check_texts(self, role: str, column: str) -> None:
        """Raises unless this is a column of texts with at least one that is not null."""
        self.check_column(role, column)
        kind = self.schema[column]
        if kind not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
            raise DataError(
                f"{role}={column!r} holds {kind}, not texts. Convert the column to text first."
            )
        if not self.rows:
            raise DataError(f"'{self.source}' has no rows.")
        if not self._one(pl.col(column).is_not_null().any()):
            raise DataError(
                f"{role}={column!r} is null in all {self.rows:,} rows. "
                "Name the column that holds the texts."
            )

    def counts(self, role: str, column: str) -> dict[str, int]:
        """How often each value of a column occurs, nulls left out; refused for an id column."""
        self.check_column(role, column)
        found = self._collect(self.scan.group_by(column).agg(pl.len().alias("\0n")))
        if len(found) > MOST_GROUPS:
            raise DataError(
                f"{role}={column!r} has {len(found):,} values; at most {MOST_GROUPS:,} can be "
                "told apart. It looks like an id column: name another."
            )
        told: dict[str, int] = {}
        for value, n in zip(found[column].to_list(), found["\0n"].to_list()):
            name = label(value)
            if name is not None:
                told[name] = told.get(name, 0) + n
        return told

    def rows_at_once(self, columns: Sequence[str]) -> int:
        """Rows of a batch, fewer where the texts of these columns are long."""
        sizes = [pl.col(c).cast(pl.String).str.len_bytes().sum() for c in columns]
        total = self._one(pl.sum_horizontal(sizes)) or 0
        mean = max(1.0, total / max(1, self.rows))
        return int(min(MOST_ROWS, max(1, BYTES_AT_ONCE // mean)))

    def read(self, size: int) -> Iterator[Batch]:
        """All rows in their order, `size` at a time; a table without rows gives one empty batch."""
        for start in range(0, max(1, self.rows), size):
            yield Batch(start=start, frame=self._collect(self.scan.slice(start, size)))

    def _one(self, expression: pl.Expr) -> Any:
        return self._collect(self.scan.select(expression)).item()

    def _collect(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        try:
            return lazy.collect(engine="streaming")
        except pl.exceptions.PolarsError as error:
            raise unreadable(self.source, "parquet", error) from error


@contextmanager
def open_batches(data: Any) -> Iterator[BatchTable]:
    """A table of any known format, ready to be read in batches.

    Examples:
        >>> with open_batches({"bio": ["She ran.", "He sat.", None]}) as table:
        ...     [batch.strings("bio") for batch in table.read(2)]
        [['She ran.', 'He sat.'], [None]]
    """
    frame, source, engine = open_table(data)
    if engine != "polars":
        raise UsageError(f"A {engine} table cannot be read in batches. Write it to Parquet first.")
    scan: pl.LazyFrame = frame.to_native()
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        if not _is_parquet(data):
            copy = Path(folder) / "table.parquet"
            try:
                scan.sink_parquet(copy, row_group_size=MOST_ROWS, compression="lz4")
            except pl.exceptions.PolarsError as error:
                raise unreadable(source, _kind(source), error) from error
            scan = pl.scan_parquet(copy)
        schema = dict(scan.collect_schema())
        rows = int(scan.select(pl.len()).collect().item())
        yield BatchTable(source=source, rows=rows, schema=schema, scan=scan)


def _is_parquet(data: Any) -> bool:
    first = data[0] if isinstance(data, list | tuple) and data else data
    if not isinstance(first, str | Path):
        return False
    return Path(first).is_dir() or Path(first).suffix.lower() in {".parquet", ".pq"}


def _kind(source: str) -> str:
    return "csv" if ".csv" in source.lower() else "table"


def check_writable(path: str | Path) -> None:
    """Refuse an output path at once, before anything is computed for it."""
    target = Path(path)
    if target.is_dir():
        why = "it is a folder"
    elif not target.parent.is_dir():
        why = f"there is no folder '{target.parent}'"
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        why = "permission denied"
    else:
        return
    raise UsageError(f"'{path}' cannot be written: {why}. Choose another place.")


def check_parquet_path(path: str | Path, *, data: Any = None) -> Path:
    """The path of a Parquet file to write, refused at once where it cannot or must not be written.

    `data` is what will be read: a file of it is never overwritten.
    """
    target = Path(path)
    if overwrites(target, data):
        raise UsageError(f"'{path}' would overwrite the data. Choose another place.")
    if target.suffix.lower() not in {".parquet", ".pq"}:
        raise UsageError(f"'{path}' is not a Parquet file. Name the output such as out.parquet.")
    check_writable(target)
    return target


def write_batches(batches: Iterable[Batch], path: str | Path) -> None:
    """A Parquet file of all batches in their order, written whole or not at all.

    Each batch becomes a file of its own, and the last step joins them: whatever goes wrong
    before leaves an older file at the path as it was.
    """
    target = check_parquet_path(path)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            parts = []
            for number, batch in enumerate(batches):
                parts.append(Path(folder) / f"{number:08d}.parquet")
                batch.frame.write_parquet(parts[-1], compression="lz4")
            whole = Path(folder) / "whole.parquet"
            pl.scan_parquet(parts).sink_parquet(whole, row_group_size=4 * MOST_ROWS)
            os.replace(whole, target)
    except OSError as error:
        raise UsageError(
            f"'{path}' cannot be written: {error.strerror or error}. The old file is unchanged."
        ) from error
