"""Tables that are no files of ours to look through: DuckDB's databases, object stores, datasets.

Each is handed to the engine that can read it; what none can read is refused with the way to go.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evenhand.errors import DataError, MissingExtra, UsageError, nearest
from evenhand.speech import without_secrets

DATABASE = ".duckdb"
WITHIN = "::"
# What Polars reads by itself, with the credentials of the environment.
STORES = {"s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl", "http", "https", "hf"}
# A store that does not answer is given up after seconds, not after minutes.
PATIENCE = {"max_retries": 2, "retry_timeout_ms": 20_000, "connect_timeout": "10s"}


def is_address(data: Any) -> bool:
    """Whether this is an address such as s3://bucket/part.parquet, not a path.

    Examples:
        >>> is_address("s3://bucket/*.parquet"), is_address("data/part.parquet")
        (True, False)
    """
    return isinstance(data, str) and re.match(r"[A-Za-z][\w+.-]+://", data) is not None


def is_database(data: Any) -> bool:
    """Whether this is a database of DuckDB, with or without the name of a table in it.

    Examples:
        >>> is_database("posts.duckdb"), is_database("posts.duckdb::decisions")
        (True, True)
    """
    return str(data).partition(WITHIN)[0].lower().endswith(DATABASE)


def place_of(data: str) -> str:
    """The file that a name of a table stands in, for those who guard files.

    Examples:
        >>> place_of("posts.duckdb::decisions"), place_of("posts.csv")
        ('posts.duckdb', 'posts.csv')
    """
    return data.partition(WITHIN)[0] if is_database(data) else data


def open_database(data: str, *, engine: str | None) -> Any:
    """A table of a DuckDB database, which is opened for reading alone."""
    path, _, name = str(data).partition(WITHIN)
    if engine not in (None, "duckdb"):
        raise UsageError(
            f"'{path}' is a database of DuckDB, which {engine} does not read. "
            "Leave the engine out, or write the table to Parquet."
        )
    if not Path(path).is_file():
        raise DataError(f"There is no file '{path}'.")
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "A .duckdb file") from None
    try:
        base = duckdb.connect(path, read_only=True)
        known = base.sql(
            "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
        ).fetchall()
    except duckdb.Error as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise DataError(f"'{path}' cannot be read as a DuckDB database: {reason}.") from error
    return _table_of(base, known, path=path, name=name)


def _table_of(base: Any, known: Sequence[tuple[str, str]], *, path: str, name: str) -> Any:
    names = {table if schema == "main" else f"{schema}.{table}": (schema, table)
             for schema, table in known}  # fmt: skip
    if not names:
        raise DataError(f"'{path}' holds no table.")
    if not name and len(names) > 1:
        listed = ", ".join(names)
        raise UsageError(
            f"'{path}' holds {len(names)} tables ({listed}). "
            f"Name one: {path}{WITHIN}{next(iter(names))}"
        )
    if name and name not in names:
        raise DataError(
            f"'{path}' holds no table {name!r}.{nearest(name, list(names))} "
            f"It has {', '.join(names)}."
        )
    schema, table = names[name or next(iter(names))]
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table))
    return base.sql(f"SELECT * FROM {quoted}")


def open_addresses(addresses: Sequence[str], *, engine: str, session: Any) -> Any:
    """Parquet in an object store, opened by the engine; `session` is Spark's."""
    shown = without_secrets(addresses[0])
    for address in addresses:
        if not re.search(r"(\.parquet|\.pq|/|/[^.]*)$", urlsplit(address).path, re.IGNORECASE):
            raise UsageError(
                f"'{without_secrets(address)}' is not Parquet, and other files are looked through "
                "before they are read, which takes a copy here. Download it, or store it as "
                "Parquet."
            )
    if engine == "spark":
        return session.read.parquet(*addresses)
    schemes = {address.partition("://")[0].lower() for address in addresses}
    if engine == "duckdb":
        import duckdb

        return duckdb.sql("SELECT * FROM read_parquet($paths)", params={"paths": list(addresses)})
    if not schemes <= STORES:
        raise UsageError(
            f"'{shown}' is an address that Polars does not read. Run where it is known: "
            "--engine spark --spark-master MASTER, or in Python with a Spark or Ibis table."
        )
    import polars as pl

    return pl.scan_parquet(list(addresses), storage_options=PATIENCE, extra_columns="ignore")
