"""The file that is named is the file that is read, whatever signs its name holds."""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.datasets.civil_comments import read_civil_comments
from evenhand.decisions.batches import open_batches
from evenhand.errors import UsageError

ROLES: dict[str, Any] = {"decision": "d", "group": "g"}
FLAGS = ("--decision", "d", "--group", "g")
ENGINES = ["polars", "duckdb", pytest.param("spark", marks=pytest.mark.heavy)]
ENDINGS = ["csv", "csv.gz", "parquet", "jsonl", "jsonl.gz", "arrow"]
# Names of files with those that they find where they are taken for patterns or home folders.
NAMES = {
    "a[1]": "a1",
    "b*": "b1",
    "[2024]/x": "2/x",
    "q?/y": "q1/y",
    "c{1,2}": "c1",
    "[!a]": "b",
    "back\\slash/z": "back/slash/z",
    "~/h": "h",
    "day:1/k": "day/k",
}


def write(path: Path, *groups: str) -> Path:
    """A file of twenty rows for each of these groups."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [name for name in groups for _ in range(20)]
    rows = len(names)
    frame = pl.DataFrame({"d": [0, 1] * (rows // 2), "g": names, "y": [0, 0, 1, 1] * (rows // 4)})
    kind = path.name.rpartition("x.")[2] if path.suffix == ".gz" else path.suffix[1:]
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    writer = {"csv": "write_csv", "jsonl": "write_ndjson", "arrow": "write_ipc"}
    getattr(frame, writer.get(plain.suffix[1:], f"write_{kind}"))(plain.absolute())
    if plain != path:
        import gzip

        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return path


def groups_of(data: Any, **options: Any) -> list[str]:
    """The groups that an audit of the data knows."""
    result = eh.audit(eh.Decisions(data, **ROLES, **options))
    return sorted(set(result.by_group()["group"]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_engine_takes_a_name_for_a_pattern(
    engine: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, other in NAMES.items():
        write(Path(f"{other}.{ending}"), "other", "else")
        write(Path(f"{name}.{ending}"), name, "both")
    names = [name for name in NAMES if engine != "spark" or ":" not in name]
    for name in names:
        path = Path(f"{name}.{ending}")
        for given in (str(path), path, path.absolute()):
            assert groups_of(given, engine=engine) == sorted([name, "both"]), given
    assert groups_of([f"{name}.{ending}" for name in names], engine=engine) == sorted(
        [*names, "both"]
    )


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow"])
def test_commands_read_the_file_they_are_given(engine: str, ending: str, run: Any) -> None:
    write(Path(f"a1.{ending}"), "f", "m")
    write(Path(f"2/x.{ending}"), "f", "m")
    named = [write(Path(f"{name}.{ending}"), "here", "there") for name in ("a[1]", "[2024]/x")]
    for path in named:
        flags = (*FLAGS, "--engine", engine)
        code, _, said = run("audit", path, *flags, "--json", "audit.json")
        assert (code, said) == (0, "")
        record = json.loads(Path("audit.json").read_text())
        assert {row["group"] for row in record["results"]} - {None} == {"here", "there"}
        assert record["data"]["source"] == str(path)
        code, printed, _ = run("verify", path, "--truth", "y", *flags)
        assert code == 0
        assert "agrees" in printed
        code, _, said = run("tally", path, *flags, "--out", "t.tallies")
        assert code == 0, said
        assert set(eh.audit("t.tallies").by_group()["group"]) == {"here", "there"}


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_pattern_finds_names_that_look_like_patterns(
    engine: str, ending: str, tmp_path: Path
) -> None:
    for name in ("a[1]", "a1", "a*"):
        write(tmp_path / "[x]" / f"{name}.{ending}", name, "both")
    write(tmp_path / "x" / f"a1.{ending}", "other", "else")
    found = groups_of(str(tmp_path / "[[]x]" / f"a*.{ending}"), engine=engine)
    assert found == ["a*", "a1", "a[1]", "both"]
    assert groups_of(str(tmp_path / "*" / f"a1.{ending}"), engine=engine) == [
        "a1",
        "both",
        "else",
        "other",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_folders_of_partitions_by_an_absolute_path(engine: str, tmp_path: Path) -> None:
    for above in ("plain", "year=2024", "[2024]"):
        for value in ("a", "[a]"):
            place = tmp_path / above / "parts" / f"g={value}"
            place.mkdir(parents=True)
            pl.DataFrame({"d": [0, 1] * 10}).write_parquet(place / "x.parquet")
        folder = tmp_path / above / "parts"
        assert folder.is_absolute()
        for given in (folder, folder / "g=*", folder / "*" / "*.parquet"):
            assert groups_of(given, engine=engine) == ["[a]", "a"], (above, given)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pattern_below_a_folder_that_is_named_like_one(engine: str, tmp_path: Path) -> None:
    write(tmp_path / "[2024]" / "x.csv", "here", "both")
    write(tmp_path / "2" / "x.csv", "there", "else")
    assert groups_of(tmp_path / "[2024]" / "*.csv", engine=engine) == ["both", "here"]
    assert groups_of(tmp_path / "[2-3]" / "*.csv", engine=engine) == ["else", "there"]


def test_a_folder_of_partitions_by_an_absolute_path_in_a_command(run: Any, tmp_path: Path) -> None:
    for value in ("a", "b"):
        place = tmp_path / "parts" / f"g={value}"
        place.mkdir(parents=True)
        pl.DataFrame({"d": [0, 1] * 10}).write_parquet(place / "x.parquet")
    for engine in ("polars", "duckdb"):
        code, printed, said = run("audit", tmp_path / "parts", *FLAGS, "--engine", engine)
        assert (code, said) == (0, "")
        assert "40 rows." in printed


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_folder_that_is_not_the_tables_says_nothing_of_its_rows(
    ending: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "g=z" / f"x.{ending}", "f", "m")
    for engine in ("polars", "duckdb"):
        assert groups_of(path, engine=engine) == ["f", "m"]
        assert eh.Decisions(path, **ROLES, engine=engine).columns == ["d", "g", "y"]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_file_is_given_twice_by_whatever_link(engine: str, run: Any) -> None:
    first = write(Path("a.csv"), "f", "m")
    for name, link in (("hard.csv", os.link), ("soft.csv", os.symlink)):
        link(first, name)
        sentence = f"'{name}' is given twice, so its rows would count twice."
        with pytest.raises(UsageError) as caught:
            eh.Decisions([first, name], **ROLES, engine=engine)
        assert str(caught.value) == sentence
        code, printed, said = run("audit", first, name, *FLAGS, "--engine", engine)
        assert (code, printed, said) == (2, "", f"evenhand: {sentence}\n")


@pytest.mark.parametrize("ending", ENDINGS)
def test_tables_that_are_read_in_batches(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Even where the folder for temporary files has such a name.
    for name in ("[t]", "t"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "[t]"))
    path = write(tmp_path / f"a[1].{ending}", "here")
    write(tmp_path / f"a1.{ending}", "there")
    with open_batches(path) as table:
        assert table.counts("group", "g") == {"here": 20}


def test_a_swap_reads_the_file_it_is_given(run: Any) -> None:
    pl.DataFrame({"t": ["She ran."]}).write_csv("a[1].csv")
    pl.DataFrame({"t": ["The dog ran."]}).write_csv("a1.csv")
    code, _, said = run("swap", "a[1].csv", "--text", "t", "--no-probe", "--out", "o.csv")
    assert code == 0, said
    assert "He ran." in Path("o.csv").read_text()


def test_an_output_beside_a_file_that_is_named_like_a_pattern(run: Any) -> None:
    write(Path("a[1].csv"), "f", "m")
    code, _, said = run("audit", "a[1].csv", *FLAGS, "--out", "a1.csv")
    assert (code, said) == (0, "")
    assert Path("a1.csv").exists()
    code, _, said = run("audit", "a[1].csv", *FLAGS, "--out", "a[1].csv")
    assert code == 2
    assert said.startswith("evenhand: --out 'a[1].csv' would overwrite the data.")


def test_datasets_are_read_from_the_folder_that_is_named(tmp_path: Path) -> None:
    for folder, word in (("[x]", "here"), ("x", "there")):
        (tmp_path / folder).mkdir()
        for part in ("train", "test_public_expanded", "test_private_expanded"):
            frame = pl.DataFrame(
                {
                    "id": [1, 2],
                    "comment_text": [word, word],
                    "female": [1.0, 0.0],
                    "male": [0.0, 1.0],
                    "target" if part == "train" else "toxicity": [0.9, 0.1],
                }
            )
            frame.write_csv(tmp_path / folder / f"{part}.csv")
    assert set(read_civil_comments(tmp_path / "[x]")["text"]) == {"here"}
