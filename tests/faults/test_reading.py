"""What a table may hide: every case is read the same on all engines, or refused in one sentence.

Cases are rows of tables: the kind of fault, its name, how it is made and what is expected.
"""

import gzip
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from alike import GIVEN, GROUPS, TRUTH, N, cases, check_same, groups, plain

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import DataError

ENGINES = ["polars", "duckdb", pytest.param("spark", marks=pytest.mark.heavy)]
FLAGS = ("--truth", "y", "--decision", "d", "--group", "g")


def rows_of(**columns: Any) -> list[str]:
    """The lines of a CSV file of plain rows, with or without more columns."""
    return plain(**columns).write_csv().splitlines()


# ---- Files that are refused: the same exit code and sentence on every engine, by the command


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    kind: str
    name: str
    sentence: str
    content: bytes | Callable[[Path], None]
    file: str = "t.csv"
    code: int = 4
    flags: tuple[str, ...] = FLAGS


def text(*lines: str, end: str = "\n") -> bytes:
    return (end.join(lines) + end).encode()


def replaced(line: int, cells: str, lines: list[str] | None = None) -> bytes:
    """Plain lines with one of them another; lines are counted as an editor counts."""
    found = list(lines or rows_of())
    found[line - 1] = cells
    return text(*found)


EVEN = (
    "Give every line as many cells as there are columns; quote a cell that holds a separator or a "
    "line end."
)
LATE = ["y,d,g", *("1,0,f" for _ in range(60_000))]


def two_files(folder: Path) -> None:
    (folder / "parts").mkdir()
    (folder / "parts" / "a.csv").write_bytes(text(*rows_of()))
    (folder / "parts" / "b.csv").write_bytes(replaced(5, "1,0"))


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / "t.csv.zip", "w") as archive:
        archive.writestr("t.csv", text(*rows_of()))


def parquet(name: str) -> Callable[[Path], None]:
    return lambda folder: plain().write_parquet(folder / name)


def scored(cells: list[str]) -> bytes:
    return text("y;g;s", *(f"{y};{g};{s}" for y, g, s in zip(TRUTH, GROUPS, cells * N)))


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "t.csv")


def fifo_inside(folder: Path) -> None:
    (folder / "parts").mkdir()
    plain().write_parquet(folder / "parts" / "a.parquet")
    os.mkfifo(folder / "parts" / "b.parquet")


def two_layouts(folder: Path) -> None:
    for name in ("day=1", "week=1"):
        (folder / "parts" / name).mkdir(parents=True)
        plain().write_parquet(folder / "parts" / name / "a.parquet")


REFUSED = [
    Refused(
        kind="ragged", name="short", content=replaced(4, "1,0"),
        sentence=f"'t.csv' has 2 cells in line 4 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="long", content=replaced(4, "200,1,0,f"),
        sentence=f"'t.csv' has 4 cells in line 4 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="one cell", content=replaced(2, "1"),
        sentence=f"'t.csv' has 1 cell in line 2 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="last line cut off", content=text(*rows_of()) + b"1,0",
        sentence=f"'t.csv' has 2 cells in line 122 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="after many lines", content=replaced(50_001, "1,0,f,x", LATE),
        sentence=f"'t.csv' has 4 cells in line 50,001 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="after a quoted line end",
        content=replaced(5, "1,0", replaced(3, '1,0,"f\nx"').decode().splitlines()),
        sentence=f"'t.csv' has 2 cells in line 5 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="with a quoted separator", content=replaced(3, '1,0,"f,m",x'),
        sentence=f"'t.csv' has 4 cells in line 3 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="gzipped", file="t.csv.gz", content=gzip.compress(replaced(4, "1,0")),
        sentence=f"'t.csv.gz' has 2 cells in line 4 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="second of two files", file="parts/*.csv", content=two_files,
        sentence=f"'parts/b.csv' has 2 cells in line 5 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="ragged", name="with blank lines before",
        content=replaced(6, "1,0", [*rows_of()[:3], "", *rows_of()[3:]]),
        sentence=f"'t.csv' has 2 cells in line 6 and 3 in its header. {EVEN}",
    ),
    Refused(
        kind="quotes", name="within a cell", content=replaced(4, '1,0,5" pipe "x'),
        sentence="'t.csv' has a quotation mark inside a cell in line 4. Put the whole cell in "
        'quotation marks and double those within it: "a 5"" pipe".',
    ),
    Refused(
        kind="quotes", name="never closed", content=replaced(4, '1,0,"f'),
        sentence="'t.csv' opens a quotation mark in line 4 or after it that is never closed. Close "
        "it, or double it if it belongs to the text.",
    ),
    Refused(
        kind="header", name="twice", content=text("y,d,g,g", "1,0,f,a"),
        sentence="'t.csv' has two columns named 'g'. Rename one of them.",
    ),
    Refused(
        kind="header", name="twice under a byte order mark",
        content=b"\xef\xbb\xbf" + text("y,d,g,y", "1,0,f,1"),
        sentence="'t.csv' has two columns named 'y'. Rename one of them.",
    ),
    Refused(
        kind="encoding", name="UTF-16", content="y,d,g\n1,0,f\n".encode("utf-16"),
        sentence="'t.csv' is in UTF-16. Save it as UTF-8 and try again.",
    ),
    Refused(
        kind="encoding", name="UTF-16 without a mark", content="y,d,g\n1,0,f\n".encode("utf-16-le"),
        sentence="'t.csv' cannot be read as CSV: it holds a zero byte. It may be in UTF-16, "
        "damaged or of another format. Save it as UTF-8 and try again.",
    ),
    Refused(
        kind="encoding", name="Latin-1", content=replaced(7, "1,0,é").decode().encode("latin-1"),
        sentence="'t.csv' cannot be read as CSV: line 7 is not UTF-8. Save it as UTF-8 and try "
        "again.",
    ),
    Refused(
        kind="encoding", name="Latin-1 after many lines",
        content=replaced(50_002, "1,0,é", LATE).decode().encode("latin-1"),
        sentence="'t.csv' cannot be read as CSV: line 50,002 is not UTF-8. Save it as UTF-8 and "
        "try again.",
    ),
    Refused(
        kind="encoding", name="carriage returns alone", content=text(*rows_of(), end="\r"),
        sentence="'t.csv' ends its lines with a carriage return alone. Save it with line feeds.",
    ),
    Refused(
        kind="packed", name="zip", file="t.csv.zip", content=zipped, code=2,
        sentence="'t.csv.zip' is a zip archive. Unpack it and give the file inside.",
    ),
    Refused(
        kind="packed", name="zip under another name", content=b"PK\x03\x04" + bytes(60),
        sentence="'t.csv' is a zip archive. Unpack it and give the file inside; save a workbook as "
        "CSV.",
    ),
    Refused(
        kind="packed", name="gzip under another name", content=gzip.compress(text(*rows_of())),
        sentence="'t.csv' is gzipped. Rename it to end in .csv.gz.",
    ),
    Refused(
        kind="packed", name="Parquet under another name", content=parquet("t.csv"),
        sentence="'t.csv' is Parquet under another name. Rename it to end in .parquet.",
    ),
    Refused(
        kind="packed", name="gzip in name only", file="t.csv.gz", content=text(*rows_of()),
        sentence="'t.csv.gz' cannot be read as CSV: Not a gzipped file (b'y,'). It may be damaged, "
        "truncated or of another format.",
    ),
    Refused(
        kind="numbers", name="decimal commas", content=scored(["0,25", "0,75"]),
        flags=("--truth", "y", "--score", "s", "--threshold", "0.5", "--group", "g"),
        sentence="score='s' holds '0,25' in line 2 of 't.csv', which is not a number. Write "
        "numbers with a point: 0.25.",
    ),
    Refused(
        kind="numbers", name="a word late among scores",
        content=text("y,g,s", *["1,f,0.5", "0,m,0.25"] * 8_000, "0,m,high"),
        flags=("--truth", "y", "--score", "s", "--threshold", "0.4", "--group", "g"),
        sentence="score='s' holds 'high' in line 16,002 of 't.csv', which is not a number. Correct "
        "it, or leave the cell empty.",
    ),
    Refused(
        kind="pipes", name="in place of a file", content=fifo, code=2,
        sentence="'t.csv' is a pipe, and a table is read more than once. Save it to a file first.",
    ),
    Refused(
        kind="pipes", name="within a folder", file="parts", content=fifo_inside, code=2,
        sentence="'parts/b.parquet' is a pipe, and a table is read more than once. Save it to a "
        "file first.",
    ),
    Refused(
        kind="pipes", name="a device", file="/dev/null", content=lambda folder: None, code=2,
        sentence="'/dev/null' is a device or a socket, and a table is read more than once. Save it "
        "to a file first.",
    ),
    Refused(
        kind="folders", name="two layouts", file="parts", content=two_layouts,
        sentence="'parts/week=1/a.parquet' lies in folders named after 'week', and "
        "'parts/day=1/a.parquet' in folders named after 'day'. Give files whose folders name the "
        "same columns.",
    ),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("case", cases(REFUSED))
def test_refused_files(
    case: Refused,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if callable(case.content):
        case.content(tmp_path)
    else:
        (tmp_path / case.file).write_bytes(case.content)
    with pytest.raises(SystemExit) as end:
        main(["audit", case.file, *case.flags, "--engine", engine])
    said = capsys.readouterr()
    assert said.err == f"evenhand: {case.sentence}\n"
    assert (end.value.code, said.out) == (case.code, "")


@pytest.mark.kind("header")
def test_columns_that_differ_in_case_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    plain(Y=["a", "b"] * 60).write_csv(path)
    roles = {**GIVEN, "group": "Y"}
    assert groups(eh.audit(eh.Decisions(path, **roles))) == ["a", "b"]
    with pytest.raises(DataError) as caught:
        eh.Decisions(path, engine="duckdb", **roles)
    assert str(caught.value) == (
        f"'{path}' has the columns 'y' and 'Y', which engine='duckdb' does not tell apart. Rename "
        "one of them, or choose engine='polars'."
    )


# ---- Files that are read: the same numbers on every engine, and those of the plain table


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    kind: str
    name: str
    content: bytes | Callable[[Path], Any]
    expected: Callable[[], Any] = plain
    file: str = "t.csv"
    roles: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)


def written(sign: str) -> bytes:
    return plain().write_csv(separator=sign).encode()


def with_codes(codes: list[str], column: str = "g") -> bytes:
    return plain(**{column: (codes * N)[:N]}).write_csv().encode()


def three_endings(folder: Path) -> None:
    parts = folder / "parts" / "deeper"
    parts.mkdir(parents=True)
    table = plain()
    table[:30].write_parquet(folder / "parts" / "a.parquet")
    table[30:60].write_parquet(folder / "parts" / "b.pq")
    table[60:90].write_parquet(folder / "parts" / "c.PARQUET")
    table[90:].write_parquet(parts / "d.Parquet")


def with_leftovers(folder: Path) -> None:
    """A folder that also holds what writers leave: hidden, half done, or for themselves."""
    parts = folder / "parts"
    for name in (".a.parquet.x1", "_temporary", ".hidden"):
        (parts / name).mkdir(parents=True)
        plain().write_parquet(parts / name / "whole.parquet")
    for name in (".b.parquet", "_c.parquet"):
        plain().write_parquet(parts / name)
    (parts / "scored.parquet.partial").write_bytes(b"SQLite format 3")
    plain().write_parquet(parts / "a.parquet")


def hive(folder: Path, *, values: list[str | None], ending: str = "parquet") -> None:
    """Rows by group, one folder each, without the column that the folders stand for."""
    for group, value in zip(("f", "m"), values):
        place = folder / "parts" / f"g={value or '__HIVE_DEFAULT_PARTITION__'}"
        place.mkdir(parents=True)
        rows = plain().filter(pl.col("g") == group).drop("g")
        getattr(rows, f"write_{ending}")(place / f"x.{ending}")


def named(f: Any, m: Any) -> Callable[[], pl.DataFrame]:
    return lambda: plain(g=[f if group == "f" else m for group in GROUPS])


def linked_back(folder: Path) -> None:
    three_endings(folder)
    os.symlink(folder / "parts", folder / "parts" / "deeper" / "back")


# Two numbers that are the same as floating-point numbers.
LONG = ["90071992547409931", "90071992547409932"]
WORDS = [" a", "NA", "null"]
TIMES = ["2026-11-01T00:00:00", "12:30:00"] * 60
MOMENTS = {"g": ["2026-11-01", "x"] * 60, "y": TIMES, "d": TIMES}
READ = [
    Read(kind="separators", name="semicolons", content=written(";")),
    Read(kind="separators", name="tabs", content=written("\t"), file="t.tsv"),
    Read(kind="separators", name="bars", content=written("|")),
    Read(kind="lines", name="blank ones", content=text(*rows_of()[:5], "", *rows_of()[5:], "", "")),
    Read(
        kind="lines", name="blank ones with returns",
        content=text(*rows_of()[:9], "", *rows_of()[9:], end="\r\n"),
    ),
    Read(kind="lines", name="carriage returns", content=text(*rows_of(), end="\r\n")),
    Read(kind="lines", name="no end", content=text(*rows_of())[:-1]),
    Read(kind="encoding", name="a byte order mark", content=b"\xef\xbb\xbf" + text(*rows_of())),
    Read(kind="quotes", name="all cells", content=plain().write_csv(quote_style="always").encode()),
    Read(
        kind="quotes", name="nothing in quotes is missing",
        content=plain(g=["", *GROUPS[1:]]).write_csv(quote_style="always").encode(),
        expected=lambda: plain(g=[None, *GROUPS[1:]]),
    ),
    Read(
        kind="quotes", name="line ends, marks and separators",
        content=plain().write_csv().replace(",f\n", ',"a\n""b"", c"\n').encode(),
        expected=lambda: plain(g=['a\n"b", c' if g == "f" else g for g in GROUPS]),
    ),
    Read(kind="packed", name="gzip", content=gzip.compress(text(*rows_of())), file="t.csv.gz"),
    Read(
        kind="labels", name="01 and 1", content=with_codes(["01", "1"]),
        expected=lambda: plain(g=["01", "1"] * 60), labels={"group": ["01", "1"]},
    ),
    Read(
        kind="labels", name="01 after many of 1",
        content=text("y,d,g", *["1,0,1", "0,1,2"] * 15_000, "1,1,01"),
        expected=lambda: pl.DataFrame(
            {
                "y": [1, 0] * 15_000 + [1],
                "d": [0, 1] * 15_000 + [1],
                "g": ["1", "2"] * 15_000 + ["01"],
            }
        ),
    ),
    Read(
        kind="labels", name="T and F", content=with_codes(["T", "F"]),
        expected=lambda: plain(g=["T", "F"] * 60), labels={"group": ["F", "T"]},
    ),
    Read(
        kind="labels", name="True and False", content=with_codes(["True", "False"]),
        expected=lambda: plain(g=[True, False] * 60), labels={"group": ["0", "1"]},
    ),
    Read(
        kind="labels", name="numbers as others write them", content=with_codes(["1.0", "2.0", ""]),
        expected=lambda: plain(g=[1, 2, None] * 40), labels={"group": ["1", "2"]},
    ),
    Read(
        kind="labels", name="truth 1.0 and decision 1",
        content=plain(y=[float(y) for y in TRUTH]).write_csv().encode(),
    ),
    Read(
        kind="labels", name="days and moments",
        content=with_codes(["2026-11-01", "2026-11-01T05:00:00"]),
        expected=lambda: plain(g=["2026-11-01", "2026-11-01T05:00:00"] * 60),
    ),
    Read(
        kind="labels", name="long codes", content=with_codes(LONG),
        expected=lambda: plain(g=LONG * 60), labels={"group": LONG},
    ),
    Read(
        kind="labels", name="spaces and words for nothing", content=with_codes(WORDS),
        expected=lambda: plain(g=WORDS * 40), labels={"group": WORDS},
    ),
    Read(kind="folders", name="any ending", content=three_endings, file="parts"),
    Read(kind="folders", name="links in a circle", content=linked_back, file="parts"),
    Read(kind="folders", name="what is not finished", content=with_leftovers, file="parts"),
    Read(
        kind="folders", name="any depth by two stars", file="parts/**/*.parquet",
        content=lambda folder: hive(folder, values=["a", "b"]), expected=named("a", "b"),
    ),
    Read(
        kind="hive", name="days", file="parts",
        content=lambda folder: hive(folder, values=["2026-11-01", "2026-11-02"]),
        expected=named("2026-11-01", "2026-11-02"), labels={"group": ["2026-11-01", "2026-11-02"]},
    ),
    Read(
        kind="hive", name="01 and 1", file="parts",
        content=lambda folder: hive(folder, values=["01", "1"]), expected=named("01", "1"),
    ),
    Read(
        kind="hive", name="whole numbers", file="parts",
        content=lambda folder: hive(folder, values=["7", "12"]), expected=named(7, 12),
        labels={"group": ["7", "12"]},
    ),
    Read(
        kind="hive", name="spaces and nothing", file="parts",
        content=lambda folder: hive(folder, values=["a%20b", None]), expected=named("a b", None),
        labels={"group": ["a b"]},
    ),
    Read(
        kind="hive", name="by a glob of folders", file="parts/g=*",
        content=lambda folder: hive(folder, values=["a", "b"]), expected=named("a", "b"),
    ),
    Read(
        kind="hive", name="CSV files by a glob", file="parts/*/x.csv",
        content=lambda folder: hive(folder, values=["01", "1"], ending="csv"),
        expected=named("01", "1"),
    ),
    Read(
        kind="hive", name="JSON Lines by a glob", file="parts/*/x.ndjson",
        content=lambda folder: hive(folder, values=["7", "12"], ending="ndjson"),
        expected=named(7, 12),
    ),
    Read(
        kind="hive", name="below a folder of that form", file="run=5/parts",
        content=lambda folder: hive(folder / "run=5", values=["a", "b"]), expected=named("a", "b"),
    ),
    Read(
        kind="labels", name="dates and words in JSON Lines", file="t.jsonl",
        content=plain(**MOMENTS).write_ndjson().encode(), expected=lambda: plain(**MOMENTS),
        roles={"positive": "12:30:00"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", cases(READ))
def test_files_are_read_alike(
    case: Read,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    if callable(case.content):
        case.content(tmp_path)
    else:
        (tmp_path / case.file).write_bytes(case.content)
    roles = {**GIVEN, **case.roles}
    found = eh.audit(eh.Decisions(case.file, engine=engine, **roles), keep_small=True)
    check_same(found, eh.audit(eh.Decisions(case.expected(), **roles), keep_small=True))
    for key, names in case.labels.items():
        assert groups(found, key=key) == names
