"""Databases, datasets and object stores are read by the engine that can, or refused in words."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError, UsageError

duckdb = pytest.importorskip("duckdb")
ROLES = {"truth": "truth", "decision": "decision", "group": "group"}
TABLE = pl.DataFrame(
    {
        "group": ["a", "b"] * 60,
        "truth": [0, 1, 1, 0] * 30,
        "decision": [0, 1, 1, 1, 0, 0] * 20,
        "score": [i % 11 / 10 for i in range(120)],
    }
)


def rows(data: Any, **roles: Any) -> list[dict[str, Any]]:
    return eh.audit(data, **{**ROLES, **roles}).to_frame().to_dicts()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A database with one table and, in a schema of its own, a view."""
    path = tmp_path / "posts.duckdb"
    with duckdb.connect(str(path)) as made:
        made.register("given", TABLE.to_arrow())
        made.sql('CREATE TABLE "de""cisions" AS SELECT * FROM given')
    return path


def test_the_only_table_of_a_database(base: Path) -> None:
    before = base.read_bytes()
    assert rows(str(base)) == rows(TABLE)
    assert rows(base, score="score", threshold=0.5, decision=None) == rows(
        TABLE, score="score", threshold=0.5, decision=None
    )
    assert rows(f'{base}::de"cisions') == rows(TABLE)
    assert base.read_bytes() == before


def test_one_of_several_tables(base: Path) -> None:
    with duckdb.connect(str(base)) as made:
        made.sql('CREATE SCHEMA late; CREATE VIEW late.few AS SELECT * FROM "de""cisions" LIMIT 90')
    assert rows(f"{base}::late.few") == rows(TABLE.head(90))
    with pytest.raises(UsageError) as caught:
        rows(str(base))
    assert str(caught.value) == (
        f"'{base}' holds 2 tables (late.few, de\"cisions). Name one: {base}::late.few"
    )
    with pytest.raises(DataError) as missing:
        rows(f"{base}::late.fw")
    assert str(missing.value) == (
        f"'{base}' holds no table 'late.fw'. Did you mean 'late.few'? It has late.few, de\"cisions."
    )


def test_databases_that_cannot_be_read(base: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        eh.audit(str(base), engine="polars", **ROLES)
    assert str(caught.value) == (
        f"'{base}' is a database of DuckDB, which polars does not read. Leave the engine out, or "
        "write the table to Parquet."
    )
    broken = tmp_path / "broken.duckdb"
    broken.write_bytes(b"no database" * 1000)
    with pytest.raises(DataError, match=f"'{broken}' cannot be read as a DuckDB database: "):
        rows(str(broken))
    with pytest.raises(DataError, match=r"There is no file 'none\.duckdb'\."):
        rows("none.duckdb")
    empty = tmp_path / "empty.duckdb"
    duckdb.connect(str(empty)).close()
    with pytest.raises(DataError, match=r"holds no table\."):
        rows(str(empty))


def test_a_database_at_the_command_line(base: Path, run: Any) -> None:
    flags = [
        f'{base}::de"cisions',
        "--truth",
        "truth",
        "--decision",
        "decision",
        "--group",
        "group",
    ]
    code, said, _ = run("audit", *flags, "--json", "audit.json")
    assert code == 0
    assert "120 rows" in said
    before = base.read_bytes()
    code, _, error = run("audit", *flags, "--json", base)
    assert code == 2
    assert str(base) in error
    assert base.read_bytes() == before


def test_a_dataset_of_arrow(tmp_path: Path) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    TABLE.head(50).write_parquet(tmp_path / "1.parquet")
    TABLE.tail(70).write_parquet(tmp_path / "2.parquet")
    found = dataset.dataset(tmp_path)
    assert rows(found) == rows(TABLE)
    assert eh.audit(found, **ROLES).record()["data"]["source"] == "pyarrow dataset"


class Store(BaseHTTPRequestHandler):
    """As much of an object store as reading takes: a file by its name, whole or in part."""

    folder: Path

    def _send(self, *, body: bool) -> None:
        path = self.folder / self.path.partition("?")[0].lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        whole = path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        part = whole
        if wanted:
            first, last = wanted.groups()
            start = int(first) if first else max(0, len(whole) - int(last))
            end = min(int(last) + 1, len(whole)) if first and last else len(whole)
            part = whole[start:end]
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(whole)}")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Wed, 18 Nov 2026 00:00:00 GMT")
        self.end_headers()
        if body:
            self.wfile.write(part)

    def do_GET(self) -> None:
        self._send(body=True)

    def do_HEAD(self) -> None:
        self._send(body=False)

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests read what they are sent."""


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is served on this machine as s3://bucket."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Served", (Store,), {"folder": tmp_path / "served"})
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "served" / "bucket").mkdir(parents=True)
    yield tmp_path / "served" / "bucket"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_object_store(bucket: Path) -> None:
    TABLE.head(50).write_parquet(bucket / "1.parquet")
    TABLE.tail(70).write_parquet(bucket / "2.parquet")
    both = ["s3://bucket/1.parquet", "s3://bucket/2.parquet"]
    assert rows(both) == rows(TABLE)
    assert rows(both[0]) == rows(TABLE.head(50))
    result = eh.audit(both, **ROLES)
    assert result.record()["data"]["source"] == "s3://bucket/1.parquet and 1 more"
    with pytest.raises(DataError, match=r"'s3://bucket/3.parquet' cannot be read by polars: "):
        rows("s3://bucket/3.parquet")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "s3://me:pass@bucket/part.csv?token=abc",
            "'s3://…@bucket/part.csv?…' is not Parquet, and other files are looked through before "
            "they are read, which takes a copy here. Download it, or store it as Parquet.",
        ),
        (
            "hdfs://name/part.parquet",
            "'hdfs://name/part.parquet' is an address that Polars does not read. Run where it is "
            "known: --engine spark --spark-master MASTER, or in Python with a Spark or Ibis table.",
        ),
    ],
)
def test_addresses_that_nothing_here_reads(address: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        rows(address)
    assert str(caught.value) == sentence
