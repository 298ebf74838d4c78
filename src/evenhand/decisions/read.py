"""Files and frames of every kind, opened lazily as one Narwhals frame."""

import codecs
import logging
import re
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import narwhals as nw

from evenhand.decisions.labels import label
from evenhand.errors import DataError, MissingExtra, UsageError, nearest

ENGINES = ("polars", "duckdb", "spark")
LOOK_INTO = 1 << 20
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
Frame = nw.LazyFrame[Any]


def open_table(
    data: Any, *, engine: str | None = None, spark_master: str = "local[*]"
) -> tuple[Frame, str, str]:
    """A lazy frame over the data, the name of its source and the engine that holds it.

    Paths (one, several or a glob) are opened by `engine`; a frame stays in the engine it is in.

    Examples:
        >>> frame, source, engine = open_table({"removed": [0, 1], "gender": ["f", "m"]})
        >>> frame.collect_schema().names(), source, engine
        (['removed', 'gender'], 'arrays', 'polars')
    """
    if engine is not None and engine not in ENGINES:
        raise UsageError(
            f"engine={engine!r} is not an engine.{nearest(str(engine), list(ENGINES))} "
            f"Choose one of {', '.join(ENGINES)}."
        )
    if isinstance(data, str | Path):
        return open_files(_expand([data]), engine=engine or "polars", spark_master=spark_master)
    if isinstance(data, list | tuple) and data and all(isinstance(d, str | Path) for d in data):
        return open_files(_expand(data), engine=engine or "polars", spark_master=spark_master)
    if isinstance(data, Mapping):
        return _from_arrays(data), "arrays", "polars"
    return _from_frame(data)


def open_files(paths: Sequence[Path], *, engine: str, spark_master: str) -> tuple[Frame, str, str]:
    """One lazy frame over files of one format."""
    kinds = {_format(path) for path in paths}
    if len(kinds) > 1:
        raise UsageError(
            f"The files are of {len(kinds)} formats ({', '.join(sorted(kinds))}). "
            "Give files of one format."
        )
    for path in paths:
        if path.is_dir() and next(path.glob("**/*.parquet"), None) is None:
            raise DataError(
                f"'{path}' holds no Parquet file. Give a folder of .parquet files, or name the "
                "files themselves."
            )
        if path.is_file() and path.stat().st_size == 0:
            raise DataError(f"'{path}' is empty. Give a file with a header and at least one row.")
    source = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    openers = {"polars": _open_polars, "duckdb": _open_duckdb, "spark": _open_spark}
    kind = kinds.pop()
    if kind == "csv":
        _check_header(paths[0])
    try:
        native = openers[engine]([str(path) for path in paths], kind, spark_master)
        frame: Frame = nw.from_native(native).lazy()
        columns = frame.collect_schema().names()
    except (UsageError, DataError):
        raise
    except Exception as error:
        raise unreadable(source, kind, error) from error
    if not columns:
        raise DataError(f"'{source}' has no columns. Give a file with a header.")
    return frame, source, engine


def _check_header(path: Path) -> None:
    """Refuse a column name that stands twice: each engine would rename it in its own way."""
    import csv
    import gzip

    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            names = next(csv.reader(file), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        return  # the engine will say what is wrong with it
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        raise DataError(f"'{path}' has two columns named {twice[0]!r}. Rename one of them.")


def check_encoding(paths: Sequence[str]) -> None:
    """Refuse text files whose beginning is not UTF-8."""
    import gzip

    for path in paths:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            start = file.read(LOOK_INTO)
        try:
            codecs.getincrementaldecoder("utf-8")().decode(start, final=len(start) < LOOK_INTO)
        except UnicodeDecodeError as error:
            raise unreadable(path, "csv", error) from None


def unreadable(source: str, kind: str, error: Exception) -> DataError:
    """The error of a file that cannot be read, with the engine's first line as the reason."""
    text = str(error).strip()
    if text.startswith("An error occurred while calling"):
        # Spark names its own call first; what went wrong stands in the last cause.
        causes = re.findall(r"^(?:: |Caused by: )[\w.$]+: (.+)$", text, re.MULTILINE)
        text = causes[-1] if causes else text
    reason = text.splitlines()[0][:200] if text else type(error).__name__
    names = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON Lines", "arrow": "Arrow"}
    label = names.get(kind, kind)
    if kind == "csv" and "utf" in text.lower():
        hint = "Save it as UTF-8 and try again."
    elif any(word in text for word in ("type mismatch", "find column", "schema names differ")):
        reason = reason.partition(", hint:")[0].partition(", consider")[0]
        hint = "Give files with the same columns, each of one type."
    else:
        hint = "It may be damaged, truncated or of another format."
    return DataError(f"'{source}' cannot be read as {label}: {reason.rstrip('.')}. {hint}")


def overwrites(path: str | Path, data: Any) -> bool:
    """Whether this path is one of the files that would be read.

    Examples:
        >>> overwrites("./a.parquet", ["a.parquet", "b.parquet"]), overwrites("c.parquet", {})
        (True, False)
    """
    place = Path(path).resolve()
    given = data if isinstance(data, list | tuple) else [data]
    named = [str(each) for each in given if isinstance(each, str | Path)]
    read = {Path(name).resolve() for text in named for name in (glob(text) or [text])}
    within = place.exists() and not read.isdisjoint(place.parents)
    return place in read or within


def _expand(data: Sequence[Any]) -> list[Path]:
    paths: list[Path] = []
    for item in data:
        text = str(item)
        if text in {"-", "/dev/stdin"}:
            raise UsageError("A table is read from files, not from standard input. Save it first.")
        if any(mark in text for mark in "*?["):
            found = sorted(glob(text))
            if not found:
                raise DataError(f"No file matches '{text}'.")
            paths += [Path(name) for name in found]
        elif not Path(text).exists():
            parent = Path(text).parent
            siblings = [p.name for p in parent.iterdir()] if parent.is_dir() else []
            raise DataError(f"There is no file '{text}'.{nearest(Path(text).name, siblings)}")
        else:
            paths.append(Path(text))
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise UsageError(f"'{path}' is given twice, so its rows would count twice.")
        seen.add(path.resolve())
    return paths


def _format(path: Path) -> str:
    if path.is_dir():
        return "parquet"
    suffixes = [s.lower() for s in path.suffixes]
    while suffixes and suffixes[-1] in {".gz", ".zst"}:
        suffixes.pop()
    kind = FORMATS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise UsageError(
            f"'{path}' is of no known format. Give Parquet (.parquet), CSV (.csv), "
            "JSON Lines (.jsonl) or Arrow (.arrow), gzipped if you like."
        )
    return kind


def _open_polars(paths: list[str], kind: str, _: str) -> Any:
    import polars as pl

    if kind == "parquet":
        files = [f"{p}/**/*.parquet" if Path(p).is_dir() else p for p in paths]
        # The first file says which columns there are; more of them in another are not needed.
        return pl.scan_parquet(files, extra_columns="ignore")
    if kind == "arrow":
        return pl.scan_ipc(paths)
    if kind == "csv":
        return pl.scan_csv(paths, infer_schema_length=10_000, try_parse_dates=False)
    if any(path.endswith(".gz") for path in paths):
        import gzip

        return pl.concat(
            [pl.read_ndjson(gzip.decompress(Path(p).read_bytes())).lazy() for p in paths]
        )
    return pl.scan_ndjson(paths, infer_schema_length=10_000)


def _open_duckdb(paths: list[str], kind: str, _: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "engine='duckdb'") from None
    if kind == "parquet":
        return duckdb.read_parquet([f"{p}/**/*.parquet" if Path(p).is_dir() else p for p in paths])
    if kind == "csv":
        # By name: a file with other columns must not be read by their order.
        return duckdb.read_csv(paths, union_by_name=True, header=True)
    if kind == "jsonl":
        return duckdb.read_json(paths, format="newline_delimited")
    import pyarrow.dataset

    table = pyarrow.dataset.dataset(paths, format="ipc")
    return duckdb.from_arrow(table)


def _open_spark(paths: list[str], kind: str, master: str) -> Any:
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
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    absolute = [str(Path(p).resolve()) for p in paths]
    if kind == "parquet":
        return session.read.option("recursiveFileLookup", "true").parquet(*absolute)
    if kind == "csv":
        # Spark would put a mark in place of what is not UTF-8 and read on.
        check_encoding(paths)
        return session.read.csv(absolute, header=True, inferSchema=True, mode="FAILFAST")
    if kind == "jsonl":
        return session.read.json(absolute, mode="FAILFAST")
    import polars as pl

    # Spark knows neither string views nor dictionaries: plain types only.
    plain = pl.scan_ipc(absolute).with_columns(pl.selectors.categorical().cast(pl.String))
    return session.createDataFrame(plain.collect().to_arrow(compat_level=pl.CompatLevel.oldest()))


def _from_arrays(data: Mapping[str, Any]) -> Frame:
    import polars as pl

    lengths = {name: len(values) for name, values in data.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise DataError(f"The arrays differ in length: {told}. Give one value per row in each.")
    try:
        return nw.from_native(pl.DataFrame(dict(data), strict=False).lazy())
    except Exception as error:
        raise DataError(f"The arrays cannot be made into a table: {error}.") from error


def _from_frame(data: Any) -> tuple[Frame, str, str]:
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise UsageError(
            f"data of type {type(data).__name__} is not a table. Give a path, a pandas, Polars, "
            "PyArrow, DuckDB or Spark table, or a dict of arrays."
        ) from None
    except nw.exceptions.DuplicateError:
        raise DataError("Two columns of the table have one name. Rename one of them.") from None
    name = str(frame.implementation).lower()
    source = f"{name} table"
    if name == "pyarrow":
        # PyArrow cannot rank within groups; Polars reads the same memory without a copy.
        import polars as pl

        return nw.from_native(pl.DataFrame(data).lazy()), source, "polars"
    if name == "pandas":
        return nw.from_native(_from_pandas(data).lazy()), source, "polars"
    engine = {"pyspark": "spark"}.get(name, name)
    return frame.lazy(), source, engine


def _from_pandas(table: Any) -> Any:
    """A pandas table in Polars: there a missing value stays missing in comparisons and casts.

    In pandas `NaN == 1` is False and NaN has no integer, so that each tally would need care.
    """
    import polars as pl

    columns: dict[str, Any] = {}
    for name in table.columns:
        if str(name) in columns:
            raise DataError(f"Two columns of the table are named {str(name)!r}. Rename one.")
        try:
            columns[str(name)] = pl.from_pandas(table[name])
        except ImportError:
            raise MissingExtra("pandas", "A pandas table") from None
        except Exception:
            # Values of several types: by the names that results would give them.
            columns[str(name)] = pl.Series([label(v) for v in table[name]], dtype=pl.String)
    return pl.DataFrame(columns)
