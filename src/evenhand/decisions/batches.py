"""Tables read and written a batch of rows at a time, so that memory does not grow with the file.

Parquet is read in slices; other formats are first rewritten as Parquet in a temporary folder,
since a slice of a CSV file can only be found by reading everything before it.
"""

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.decisions.csv_files import with_kinds
from evenhand.decisions.labels import label
from evenhand.decisions.read import open_table, unreadable
from evenhand.decisions.roles import check_column
from evenhand.errors import DataError, UsageError
from evenhand.files import check_writable
from evenhand.files.places import check_places, is_stream
from evenhand.files.writing import new_file, no_room, refusals, scratch
from evenhand.stats.estimate import FloatArray

MOST_ROWS = 8_192
BYTES_AT_ONCE = 32 * 2**20
MOST_GROUPS = 1_000
# What a table is written as, by the ending of its name.
WRITTEN = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".jsonl": "jsonl",
           ".ndjson": "jsonl"}  # fmt: skip
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC))


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
        check_column(role, column, self.columns)

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

    def pick(self, rows: NDArray[np.int64]) -> Iterator[Batch]:
        """These rows in this order, with repeats; batches begin at their place among them."""
        frame = self._collect(self.scan)
        for start in range(0, len(rows), MOST_ROWS):
            yield Batch(start=start, frame=frame[rows[start : start + MOST_ROWS]])

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
    table = open_table(data)
    source, engine = table.source, table.engine
    if engine != "polars":
        raise UsageError(f"A {engine} table cannot be read in batches. Write it to Parquet first.")
    table = table.settle(texts=table.csv.columns if table.csv else ())
    scan: pl.LazyFrame = table.frame.to_native()
    with ExitStack() as stack:
        if not _is_parquet(data):
            copy = stack.enter_context(scratch()) / "table"
            try:
                scan.sink_parquet(copy, row_group_size=MOST_ROWS, compression="lz4")
            except (pl.exceptions.PolarsError, OSError) as error:
                why = _system_reason(error, copy.parent)
                raise (no_room(why) if why else unreadable(source, _kind(source), error)) from error
            scan = pl.scan_parquet(copy, glob=False)
            if table.csv is not None:
                scan = with_kinds(scan)
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


def check_table_path(path: str | Path, *, data: Any = None) -> Path:
    """The path of a table to write, refused at once where it cannot or must not be written.

    `data` is what will be read: a file of it is never overwritten.
    """
    target = Path(path)
    given = data if isinstance(data, list | tuple) else [data]
    check_places({"": path}, {"the data": [one for one in given if isinstance(one, str | Path)]})
    if target.suffix.lower() not in WRITTEN and not is_stream(path):
        raise UsageError(
            f"'{path}' does not say by its ending what to write. Name the output such as "
            "out.parquet, out.csv or out.jsonl."
        )
    check_writable(target)
    return target


def write_batches(batches: Iterable[Batch], path: str | Path) -> None:
    """A file of all batches in their order, written whole or not at all, as its ending says.

    Each batch becomes a file of its own, and the last step joins them: whatever goes wrong
    before leaves an older file at the path as it was. A stream is written to as Parquet.
    """
    target = check_table_path(path)
    kind = WRITTEN.get(target.suffix.lower(), "parquet")
    with new_file(path) as made:
        parts = []
        for number, batch in enumerate(batches):
            if kind == "csv":
                _check_flat(batch.frame.schema, path)
            parts.append(made.with_name(f"{number:08d}"))
            with _write_errors(path):
                batch.frame.write_parquet(parts[-1], compression="lz4")
        with _write_errors(path):
            whole = pl.scan_parquet(parts, glob=False)
            if kind == "csv":
                whole.sink_csv(made)
            elif kind == "jsonl":
                whole.sink_ndjson(made)
            else:
                whole.sink_parquet(made, row_group_size=4 * MOST_ROWS)


def _check_flat(schema: Mapping[str, Any], path: str | Path) -> None:
    """Refuses columns that have no place in a line of text."""
    for column, kind in schema.items():
        if kind.is_nested() or kind == pl.Binary:
            raise UsageError(
                f"'{path}' cannot hold the column {column!r} of {kind}, which is no single value. "
                "Name the output such as out.parquet."
            )


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """A file of a whole frame, written whole or not at all."""
    write_batches([Batch(start=0, frame=frame)], path)


@contextmanager
def _write_errors(path: str | Path) -> Iterator[None]:
    """What the engine says when it cannot write, as what the system says."""
    with refusals(path):
        try:
            yield
        except pl.exceptions.PolarsError as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            reason = _system_reason(error, Path(path).parent)
            raise OSError(None, reason or first) from error


def _system_reason(error: Exception, folder: Path) -> str | None:
    """What a full disk is called, where that is what the engine met in this folder."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    number = int(found.group(1)) if found else getattr(error, "errno", None)
    if number is None:
        number = _refused(folder)  # some versions keep the system's own word to themselves
    return os.strerror(number) if number in _FULL else None


def _refused(folder: Path) -> int | None:
    """The number of the system's refusal to write a little there; None where it takes it."""
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))
            file.flush()
    except OSError as error:
        return error.errno
    return None


def batch_numbers(batch: Batch, columns: Sequence[str]) -> FloatArray:
    """These columns of a batch, rows × columns; NaN where there is no value.

    Examples:
        >>> batch = Batch(start=0, frame=pl.DataFrame({"age": [30, None], "hours": [1.5, 2.0]}))
        >>> batch_numbers(batch, ["age", "hours"]).tolist()
        [[30.0, 1.5], [nan, 2.0]]
    """
    for column in columns:
        kind = batch.frame.schema[column]
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
            raise DataError(
                f"features={column!r} holds {kind}, not numbers. "
                "Convert it to numbers, or leave it out."
            )
    held = [batch.frame[column].cast(pl.Float64).fill_null(np.nan).to_numpy() for column in columns]
    return np.stack(held, axis=1)
