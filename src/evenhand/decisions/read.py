"""Files and frames of every kind, opened lazily as one Narwhals frame."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import isnan
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from evenhand.decisions.elsewhere import is_address, is_database, open_addresses, open_database
from evenhand.decisions.labels import label, ordered
from evenhand.decisions.paths import (
    UNEXPANDED,
    Files,
    exact_pattern,
    find_files,
    packing,
    plain_path,
)
from evenhand.decisions.tally import Codes, encode
from evenhand.errors import DataError, EvenhandError, MissingExtra, UsageError, nearest
from evenhand.speech import without_secrets
from evenhand.stats.estimate import FloatArray

if TYPE_CHECKING:
    from evenhand.decisions.csv_files import CsvTable

ENGINES = ("polars", "duckdb", "spark")
# What DuckDB makes of texts in JSON by itself, where others leave them as they are.
FOUND_IN_TEXT = {"DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIME", "UUID", "JSON"}
_LONGEST_LINE = 1 << 20
Frame = nw.LazyFrame[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTable:
    """A lazy frame, the name of its source and the engine that holds it.

    `csv` is what is known of CSV files, whose columns get their types from the roles they have.
    """

    frame: Frame
    source: str
    engine: str
    csv: "CsvTable | None" = None
    session: Any = None

    def settle(
        self,
        *,
        labels: Collection[str] = (),
        numbers: Mapping[str, str] | None = None,
        texts: Collection[str] = (),
        words: Sequence[str] = (),
    ) -> "OpenTable":
        """The table with the types of its columns known; CSV files are looked through for it.

        `labels` are names, `numbers` hold numbers (each with its role), `texts` are read as text.
        Of labels and numbers, `words` are no values.
        """
        if self.csv is None:
            return self
        csv = self.csv.settle(labels=labels, numbers=numbers or {}, texts=texts, words=words)
        return replace(self, csv=csv, frame=csv.open(self.engine, spark=self.session))


def open_table(
    data: Any, *, engine: str | None = None, spark_master: str = "local[*]"
) -> OpenTable:
    """A table over the data, whatever it is.

    Paths (one, several or a glob) are opened by `engine`; a frame stays in the engine it is in.

    Examples:
        >>> table = open_table({"removed": [0, 1], "gender": ["f", "m"]})
        >>> table.frame.collect_schema().names(), table.source, table.engine
        (['removed', 'gender'], 'arrays', 'polars')
    """
    if engine is not None and engine not in ENGINES:
        raise UsageError(
            f"engine={engine!r} is not an engine.{nearest(str(engine), list(ENGINES))} "
            f"Choose one of {', '.join(ENGINES)}."
        )
    several = list(data) if isinstance(data, list | tuple) else [data]
    if several and all(is_address(each) for each in several):
        return _at_addresses(several, engine=engine or "polars", spark_master=spark_master)
    if isinstance(data, str | Path) and is_database(data):
        frame = nw.from_native(open_database(str(data), engine=engine)).lazy()
        return OpenTable(frame=frame, source=str(data), engine="duckdb")
    if isinstance(data, str | Path):
        return open_files(find_files([data]), engine=engine or "polars", spark_master=spark_master)
    if isinstance(data, list | tuple) and data and all(isinstance(d, str | Path) for d in data):
        return open_files(find_files(data), engine=engine or "polars", spark_master=spark_master)
    if isinstance(data, Mapping):
        return OpenTable(frame=_from_arrays(data), source="arrays", engine="polars")
    return _from_frame(data)


def open_files(files: Files, *, engine: str, spark_master: str) -> OpenTable:
    """One table over files of one format."""
    session = _spark_session(spark_master) if engine == "spark" else None
    csv = _csv_table(files) if files.kind == "csv" else None
    try:
        if csv is not None:
            frame = csv.open(engine, spark=session)
        elif files.kind == "parquet":
            frame = _open_parquet(files, engine, session)
        else:
            frame = _open_parts(files, engine, session)
        columns = frame.collect_schema().names()
    except EvenhandError:
        raise
    except engine_faults() as error:
        raise unreadable(files.source, files.kind, error) from error
    if not columns:
        raise DataError(f"'{files.source}' has no columns. Give a file with a header.")
    return OpenTable(frame=frame, source=files.source, engine=engine, csv=csv, session=session)


def _at_addresses(addresses: list[str], *, engine: str, spark_master: str) -> OpenTable:
    """One table over Parquet in an object store."""
    source = without_secrets(addresses[0])
    source = source if len(addresses) == 1 else f"{source} and {len(addresses) - 1} more"
    session = _spark_session(spark_master) if engine == "spark" else None
    try:
        native = open_addresses(addresses, engine=engine, session=session)
        frame: Frame = nw.from_native(native).lazy()
        frame.collect_schema()
    except EvenhandError:
        raise
    except ImportError:
        raise MissingExtra("duckdb", "engine='duckdb'") from None
    except Exception as error:
        reason = without_secrets(str(error).strip().partition("\n")[0])[:200].rstrip(".")
        raise DataError(
            f"'{source}' cannot be read by {engine}: {reason}. Credentials are taken from the "
            "environment, as the engine's own documentation says."
        ) from error
    return OpenTable(frame=frame, source=source, engine=engine, session=session)


def collect_together(frames: Sequence[Frame], *, engine: str) -> list[nw.DataFrame[Any]]:
    """Lazy frames computed by the engine that holds them; Polars reads what they share once."""
    if engine != "polars":
        return [frame.collect() for frame in frames]
    if len(frames) == 1:
        return [frames[0].collect(engine="streaming")]
    found = pl.collect_all([frame.to_native() for frame in frames], engine="streaming")
    return [nw.from_native(table, eager_only=True) for table in found]


def batches_come(engine: str) -> bool:
    """Whether the engine hands out rows a batch at a time."""
    import polars as pl

    return engine == "polars" and hasattr(pl.LazyFrame, "collect_batches")


def collect_batches(frame: Frame, *, engine: str, rows: int | None) -> Iterator[Any]:
    """A lazy frame as Polars tables of some rows each, in their order; else the whole of it."""
    if not batches_come(engine):
        yield frame.collect().to_polars()
        return
    yield from nw.to_native(frame).collect_batches(chunk_size=rows, maintain_order=True)


def key_codes(column: nw.Series[Any]) -> tuple[tuple[str, ...], Codes]:
    """Labels of a key in order, and for each value the place of its label; -1 where missing."""
    kind = column.dtype
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return _word_codes(column)
    if kind == nw.Boolean:
        column = column.cast(nw.Int8)
    # NumPy has no whole numbers of 128 bits.
    if not column.dtype.is_integer() or column.dtype in (nw.Int128, nw.UInt128):
        return encode(column.to_list())
    lacking = column.is_null()
    if not lacking.any():
        return encode(np.asarray(column.to_numpy()))
    there = np.asarray(~lacking.to_numpy())
    labels, places = encode(np.asarray(column.drop_nulls().to_numpy()))
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[there] = places
    return labels, codes


def _word_codes(column: nw.Series[Any]) -> tuple[tuple[str, ...], Codes]:
    """The same of words: hashed where they lie, none of them becomes an object but its label."""
    words = column.to_polars().cast(pl.String)
    labels = ordered(words.drop_nulls().unique().to_list())
    places = words.cast(pl.Enum(labels)).to_physical()
    return tuple(labels), places.cast(pl.Int64).fill_null(-1).to_numpy()


def number_values(column: nw.Series[Any]) -> FloatArray:
    """A column of numbers as an array; NaN where one is missing."""
    wide = column.dtype in (nw.Int128, nw.UInt128)
    plain = (column.dtype.is_integer() or column.dtype.is_float()) and not wide
    return np.asarray(column.to_numpy() if plain else column.to_list(), dtype=np.float64)


def engine_faults() -> tuple[type[BaseException], ...]:
    """What engines raise; Polars' panic over damaged bytes is none of Python's own errors."""
    from polars.exceptions import PanicException

    return Exception, PanicException


def unreadable(source: str, kind: str, error: BaseException) -> DataError:
    """The error of a file that cannot be read, with the engine's first line as the reason."""
    text = str(error).strip()
    if text.startswith("An error occurred while calling"):
        # Spark names its own call first; what went wrong stands in the last cause.
        causes = re.findall(r"^(?:: |Caused by: )[\w.$]+: (.+)$", text, re.MULTILINE)
        text = causes[-1] if causes else text
    reason = text.splitlines()[0][:200] if text else type(error).__name__
    names = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON Lines", "arrow": "Arrow"}
    label = names.get(kind, kind)
    if any(word in text for word in ("type mismatch", "find column", "schema names differ")):
        reason = reason.partition(", hint:")[0].partition(", consider")[0]
        hint = "Give files with the same columns, each of one type."
    elif "not supported for" in text:
        hint = "Write it to Parquet, or tally its parts and audit what they add up to."
    else:
        hint = "It may be damaged, truncated or of another format."
    return DataError(f"'{source}' cannot be read as {label}: {reason.rstrip('.')}. {hint}")


def _open_parquet(files: Files, engine: str, session: Any) -> Frame:
    """Parquet files, with the columns that their folders stand for."""
    hive = bool(files.partitions)
    above = files.above if hive else set()
    if engine == "polars":
        # The first file says which columns there are; more of them in another are not needed.
        native: Any = pl.scan_parquet(
            list(map(plain_path, files.paths)),
            glob=False,
            extra_columns="ignore",
            hive_partitioning=hive,
            hive_schema=dict.fromkeys([*files.partitions, *above], pl.String) if hive else None,
        )
    elif engine == "duckdb":
        native = _duckdb().sql(
            "SELECT * FROM read_parquet($paths, hive_partitioning = $hive, "
            "hive_types_autocast = false)",
            params={"paths": list(map(exact_pattern, files.paths)), "hive": hive},
        )
    else:
        native = _spark_parquet(files, session)
    frame: Frame = nw.from_native(native).lazy()
    if above and engine != "spark":
        frame = _below(frame, files, above)
    return _typed(frame, files.partitions)


def _csv_table(files: Files) -> "CsvTable":
    from evenhand.decisions.csv_files import csv_table

    return csv_table(files)


def _below(frame: Frame, files: Files, above: set[str]) -> Frame:
    """The frame without columns that folders above the one that was given stand for."""
    own = pl.read_parquet_schema(plain_path(files.paths[0]))
    clash = sorted((above - set(files.partitions)) & set(own))
    if clash:
        raise DataError(
            f"'{files.source}' lies in a folder named '{clash[0]}=…', which engines take for the "
            f"column {clash[0]!r} of its rows. Rename that folder."
        )
    return frame.drop(*sorted(above - set(files.partitions)))


def _typed(frame: Frame, partitions: Mapping[str, str]) -> Frame:
    """The values of folders are text; all are known, so they get the type they are written in."""
    from evenhand.decisions.csv_files import as_kinds

    return as_kinds(frame, partitions)


def _open_parts(files: Files, engine: str, session: Any) -> Frame:
    """Files of other formats, those of each folder together with what the folder stands for."""
    opener = {"polars": _open_polars, "duckdb": _open_duckdb, "spark": _open_spark}[engine]
    parts: list[Frame] = []
    values = [tuple(files.values(i).items()) for i in range(len(files.paths))]
    for folder, group in groupby(zip(values, files.paths), key=lambda pair: pair[0]):
        native = opener([str(path) for _, path in group], files.kind, session)
        part: Frame = nw.from_native(native).lazy()
        fixed = [nw.lit(value, dtype=nw.String).alias(name) for name, value in folder]
        parts.append(_typed(part.with_columns(*fixed), files.partitions) if fixed else part)
    return parts[0] if len(parts) == 1 else nw.concat(parts)


def _open_polars(paths: list[str], kind: str, _: Any) -> Any:
    if kind == "arrow":
        return pl.scan_ipc(list(map(plain_path, paths)), glob=False)
    if any(path.endswith(".gz") for path in paths):
        import gzip

        texts = [gzip.decompress(Path(p).read_bytes()) for p in paths]
        first = texts[0].partition(b"\n")[0]
        return _as_written(pl.concat([pl.read_ndjson(text).lazy() for text in texts]), first)
    with open(paths[0], "rb") as opened:
        first = opened.readline(_LONGEST_LINE)
    patterns = list(map(exact_pattern, paths))
    return _as_written(pl.scan_ndjson(patterns, infer_schema_length=10_000), first)


def _as_written(frame: Any, line: bytes) -> Any:
    """Columns as the first line of JSON Lines has them: Polars finds them in any order."""
    try:
        written = json.loads(line)
    except ValueError:
        return frame
    names = frame.collect_schema().names()
    known = [name for name in written if name in set(names)] if isinstance(written, dict) else []
    return frame.select(*known, *sorted(set(names) - set(known))) if known else frame


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "engine='duckdb'") from None
    return duckdb


def _open_duckdb(paths: list[str], kind: str, _: Any) -> Any:
    duckdb = _duckdb()
    if kind == "jsonl":
        patterns = list(map(exact_pattern, paths))
        read = partial(
            duckdb.read_json,
            format="newline_delimited",
            hive_partitioning=False,
            compression=packing(paths),
        )
        relation = read(patterns)
        kinds = {name: str(type_) for name, type_ in zip(relation.columns, relation.types)}
        if not FOUND_IN_TEXT & set(kinds.values()):
            return relation
        kinds = {n: "VARCHAR" if kind in FOUND_IN_TEXT else kind for n, kind in kinds.items()}
        return read(patterns, columns=kinds)
    import pyarrow.dataset

    table = pyarrow.dataset.dataset(list(map(plain_path, paths)), format="ipc")
    return duckdb.from_arrow(table)


def _spark_session(master: str) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("spark", "engine='spark'") from None
    session = (
        SparkSession.builder.master(master)
        .appName("evenhand")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    # What goes wrong is raised and told in a sentence; the logs would add a stack trace.
    session.sparkContext.setLogLevel("OFF")
    import logging

    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    return session


def _spark_parquet(files: Files, session: Any) -> Any:
    """Parquet files by Spark, the values of their folders as text."""
    setting = "spark.sql.sources.partitionColumnTypeInference.enabled"
    before = session.conf.get(setting)
    session.conf.set(setting, "false")
    try:
        parts = []
        for root, group in groupby(zip(files.roots, files.paths), key=lambda pair: pair[0]):
            read = session.read.options(**UNEXPANDED)
            if files.partitions:
                read = read.option("basePath", str(root.resolve()))
            parts.append(read.parquet(*(str(path.resolve()) for _, path in group)))
    finally:
        session.conf.set(setting, before)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return whole


def _open_spark(paths: list[str], kind: str, session: Any) -> Any:
    absolute = [str(Path(p).resolve()) for p in paths]
    if kind == "jsonl":
        return session.read.options(**UNEXPANDED).json(absolute, mode="FAILFAST")
    # Spark knows neither string views nor dictionaries: plain types only.
    plain = pl.scan_ipc(absolute, glob=False).with_columns(
        pl.selectors.categorical().cast(pl.String)
    )
    return session.createDataFrame(plain.collect().to_arrow(compat_level=pl.CompatLevel.oldest()))


def _from_arrays(data: Mapping[str, Any]) -> Frame:
    lengths = {name: len(values) for name, values in data.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise DataError(f"The arrays differ in length: {told}. Give one value per row in each.")
    columns = {}
    for name, values in data.items():
        try:
            columns[str(name)] = _array_column(values)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise DataError(
                f"The array {str(name)!r} cannot be made into a column: {reason}."
            ) from error
    return nw.from_native(pl.DataFrame(columns).lazy())


def _array_column(values: Any) -> Any:
    """An array as a Polars column; values of several types by the names results would give them."""
    if type(values).__module__.partition(".")[0] == "pandas":
        return _pandas_column(values)
    if isinstance(values, list | tuple) or str(getattr(values, "dtype", "")) == "object":
        values = list(values)
        missing = {i for i, v in enumerate(values) if v is None or (type(v) is float and isnan(v))}
        types = {type(value) for i, value in enumerate(values) if i not in missing}
        numbers = all(issubclass(kind, Real) for kind in types)
        # Polars would number periods, and take bytes and words for the same.
        if (len(types) > 1 and not numbers) or any(
            kind.__module__.startswith("pandas") for kind in types
        ):
            values = [label(value) for value in values]
    return pl.Series(values, strict=False)


def _from_frame(data: Any) -> OpenTable:
    if any(kind.__module__ == "pyarrow._dataset" for kind in type(data).__mro__):
        return OpenTable(
            frame=nw.from_native(pl.scan_pyarrow_dataset(data)),
            source="pyarrow dataset",
            engine="polars",
        )
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise UsageError(
            f"data of type {type(data).__name__} is not a table. Give a path, a pandas, Polars, "
            "PyArrow, DuckDB, Spark, Dask or Ibis table, or a dict of arrays."
        ) from None
    except nw.exceptions.DuplicateError:
        raise DataError("Two columns of the table have one name. Rename one of them.") from None
    name = str(frame.implementation).lower()
    source = f"{name} table"
    if name == "pyarrow":
        # PyArrow cannot rank within groups; Polars reads the same memory without a copy.
        native = _from_arrow(data)
    elif name == "pandas":
        native = _from_pandas(data)
    else:
        return OpenTable(
            frame=frame.lazy(), source=source, engine={"pyspark": "spark"}.get(name, name)
        )
    return OpenTable(frame=nw.from_native(native.lazy()), source=source, engine="polars")


def _from_arrow(table: Any) -> Any:
    """An Arrow table in Polars; a column of a type that Polars does not know is told by name."""
    try:
        return pl.DataFrame(table)
    except Exception:
        for name in table.column_names:
            try:
                pl.DataFrame(table.select([name]))
            except Exception as error:
                raise DataError(
                    f"The column {name!r} holds {table.schema.field(name).type}, which cannot be "
                    "read. Leave it out, or convert it."
                ) from error
        raise


def _from_pandas(table: Any) -> Any:
    """A pandas table in Polars: there a missing value stays missing in comparisons and casts.

    In pandas `NaN == 1` is False and NaN has no integer, so that each tally would need care.
    """
    columns: dict[str, Any] = {}
    for name in table.columns:
        if str(name) in columns:
            raise DataError(f"Two columns of the table are named {str(name)!r}. Rename one.")
        columns[str(name)] = _pandas_column(table[name])
    return pl.DataFrame(columns)


def _pandas_column(column: Any) -> Any:
    """A pandas column in Polars: by its type, or by the names that results would give its values.

    Periods, intervals and values of several types have no type of their own there: Polars would
    number the first, take the second for pairs, and cut the time off among dates.
    """
    try:
        if str(column.dtype) == "object":
            if not column.notna().any():
                return pl.Series([None] * len(column), dtype=pl.Null)
            column = _of_one_type(column)
        if _is_span(column.dtype):
            return pl.Series([label(v) for v in column], dtype=pl.String)
        try:
            series = pl.from_pandas(column)
        except ImportError:  # of words, missing values and categories Polars asks for PyArrow
            series = without_arrow(column)
    except Exception:
        return pl.Series([label(v) for v in column], dtype=pl.String)
    if type(series.dtype).__name__ in {"Extension", "Object"}:
        return pl.Series([label(v) for v in column], dtype=pl.String)
    return series


def without_arrow(column: Any) -> Any:
    """A pandas column in Polars value by value, where PyArrow is not installed."""
    missing = column.isna().to_numpy()
    values = [None if gone else v for v, gone in zip(column.astype(object), missing)]
    return pl.Series(values, strict=True)


def _is_span(kind: Any) -> bool:
    """Whether pandas holds periods or intervals, or categories of them."""
    inner = getattr(getattr(kind, "categories", None), "dtype", kind)
    return str(inner).startswith(("interval", "period"))


def _of_one_type(column: Any) -> Any:
    """A column of Python's objects as it is if they are of one type, else by their names."""
    known = column[column.notna()]
    types = set(map(type, known))
    if len(types) < 2 or all(issubclass(kind, Real) for kind in types):
        return column
    return column.map(label)
