"""Readers on files of the published layouts, written here, and on files that are none."""

import json
import os
import pickle
from pathlib import Path

import polars as pl
import pytest

from evenhand.datasets.biasbios import PROFESSIONS, read_biasbios
from evenhand.datasets.civil_comments import civil_comments_rules, read_civil_comments
from evenhand.errors import DataError, UsageError

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())[
    "2.8_jigsaw_rules"
]
COLUMNS = ["id", "text", "truth", "gender", "name", "split"]
RAW = "Ann Poe is a nurse at a clinic. She likes tea."


def original(**changes):
    """One row of the original pickle."""
    row = {
        "raw": RAW, "name": ("Ann", "", "Poe"), "raw_title": "nurse", "title": "nurse",
        "gender": "F", "start_pos": 31, "path": "crawl/1", "URI": "http://example.org",
        "bio": "_ likes tea.",
    }  # fmt: skip
    return row | changes


def test_parquet(tmp_path):
    path = tmp_path / "train-00000-of-00001.parquet"
    pl.DataFrame({"hard_text": ["He likes tea.", "She sings."], "profession": [21, 5],
                  "gender": [0, 1]}).write_parquet(path)  # fmt: skip
    frame = read_biasbios(path)
    assert frame.columns == COLUMNS
    assert frame.rows() == [
        (0, "He likes tea.", "professor", "male", None, "train"),
        (1, "She sings.", "composer", "female", None, "train"),
    ]
    assert len(PROFESSIONS) == 28


def test_the_original_pickle(tmp_path):
    path = tmp_path / "BIOS.pkl"
    path.write_bytes(pickle.dumps([original(), original(gender="M", title="yoga teacher")]))
    frame = read_biasbios(path)
    assert frame.rows()[0] == (0, "She likes tea.", "nurse", "female", "Ann Poe", None)
    assert frame["truth"][1] == "yoga_teacher"


def test_one_pickle_for_each_split(tmp_path):
    for name, n in (("train", 3), ("dev", 1), ("test", 2)):
        rows = [{"g": "f", "p": "poet", "hard_text": f"{name} {k}", "start": 4} for k in range(n)]
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(rows))
    frame = read_biasbios(tmp_path)
    assert frame["split"].value_counts(sort=True).rows() == [
        ("train", 3), ("test", 2), ("validation", 1)
    ]  # fmt: skip
    assert frame["id"].to_list() == list(range(6))


class Harmful:
    """Runs a command when it is unpickled by a careless reader."""

    def __reduce__(self):
        return (os.system, ("touch harmed",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "BIOS.pkl"
    path.write_bytes(pickle.dumps([original(bio=Harmful())]))
    with pytest.raises(DataError) as caught:
        read_biasbios(path)
    assert f"{str(path)!r} contains {os.system.__module__}.system, which could run code." in str(
        caught.value
    )
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("content", [b"", b"\x80\x05garbage", os.urandom(200), b"cos\nsystem\n"])
def test_damaged_pickles(tmp_path, content):
    path = tmp_path / "x.pkl"
    path.write_bytes(content)
    with pytest.raises(DataError):
        read_biasbios(path)


def test_what_is_wrong_with_biographies(tmp_path):
    def message(path):
        with pytest.raises(DataError) as caught:
            read_biasbios(path)
        return str(caught.value).replace(f"{tmp_path}/", "")

    assert message(tmp_path / "no.parquet") == (
        "'no.parquet' does not exist. Give the path of the biographies."
    )
    (tmp_path / "a.csv").write_text("x")
    assert "is neither a parquet file nor a pickle" in message(tmp_path / "a.csv")
    pl.DataFrame({"hard_text": ["a"]}).write_parquet(tmp_path / "b.parquet")
    assert message(tmp_path / "b.parquet") == (
        "'b.parquet' has no column 'profession'; it has hard_text."
    )
    (tmp_path / "c.parquet").write_bytes(b"nonsense")
    assert message(tmp_path / "c.parquet") == "'c.parquet' is not a readable parquet file."
    (tmp_path / "d.pkl").write_bytes(pickle.dumps([original(gender="?")]))
    assert message(tmp_path / "d.pkl") == (
        "'d.pkl' has the gender '?'. It is written 0 or 1, M or F, male or female."
    )
    (tmp_path / "e.pkl").write_bytes(pickle.dumps({"a": 1}))
    assert message(tmp_path / "e.pkl") == "'e.pkl' does not hold a list of biographies (dicts)."
    pl.DataFrame({"hard_text": ["a"], "profession": [28], "gender": [0]}).write_parquet(
        tmp_path / "f.parquet"
    )
    assert "has the profession 28" in message(tmp_path / "f.parquet")
    (tmp_path / "empty").mkdir()
    assert "has no train, dev or test file" in message(tmp_path / "empty")


def test_published_rules_of_civil_comments():
    rows = pl.DataFrame(
        ORACLE["rows_id_tox_female_male"], schema=["id", "toxicity", "female", "male"], orient="row"
    )
    short = {"female": "F", "male": "M", None: None}
    for row in civil_comments_rules(rows).iter_rows(named=True):
        expected = ORACLE["result"][row["id"]]
        found = {"kept": row["kept"], "gender": short[row["gender"]], "label": row["truth"]}
        assert found == expected
    at_least = civil_comments_rules(rows, at_least=True).filter(pl.col("id") == "r2")
    assert at_least["truth"].item() == 1


def write_comments(folder, n=50):
    header = "id,{0},comment_text,female,male\n"
    body = "".join(f'{k},0.{k % 10},"Text {k}, with ""quotes""",1.0,\n' for k in range(n))
    (folder / "train.csv").write_text(header.format("target") + body)
    for name in ("public", "private"):
        path = folder / f"test_{name}_expanded.csv"
        path.write_text(header.format("toxicity") + "900,0.9,Hi,0.0,1.0\n901,0.9,Hi,0.5,0.5\n")


def test_civil_comments_files(tmp_path):
    write_comments(tmp_path)
    frame = read_civil_comments(tmp_path)
    assert frame.columns == [
        "id", "text", "truth", "gender", "toxicity", "female", "male", "split"
    ]  # fmt: skip
    counts = dict(frame["split"].value_counts().rows())
    assert counts == {"train": 40, "validation": 10, "test": 2}
    assert frame["text"][0] == 'Text 0, with "quotes"'
    assert frame.filter(pl.col("split") == "test")["gender"].to_list() == ["male", "male"]
    assert frame.equals(read_civil_comments(tmp_path))


def test_what_is_wrong_with_comments(tmp_path):
    with pytest.raises(DataError, match=r"train\.csv' does not exist\. The folder needs"):
        read_civil_comments(tmp_path)
    with pytest.raises(UsageError, match="validation=1 is not a share"):
        read_civil_comments(tmp_path, validation=1)
    (tmp_path / "train.csv").write_text("id,target,comment_text,female\n1,0.5,a,1\n")
    with pytest.raises(DataError, match="lacks the column male"):
        read_civil_comments(tmp_path)
    write_comments(tmp_path)
    (tmp_path / "train.csv").write_text("id,target,comment_text,female,male\n1,high,a,1,0\n")
    with pytest.raises(DataError, match="is not the CSV it should be"):
        read_civil_comments(tmp_path)
