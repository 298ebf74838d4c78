"""`evenhand tally` and `evenhand audit` of what it wrote."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from evenhand.cli.main import main
from evenhand.simulate.moderation import moderation

ROLES = ["--truth", "violates", "--decision", "removed", "--group", "gender"]


@pytest.fixture
def weeks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    posts = moderation(900, seed=4).frame
    posts = posts.with_columns(cluster=pl.int_range(pl.len()) % 40)
    posts[:400].write_parquet("one.parquet")
    posts[400:].write_csv("two.csv")
    return posts


def run(capsys: pytest.CaptureFixture[str], *typed: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(typed))
    told = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, told.out, told.err


def test_weeks_are_tallied_and_audited_together(
    weeks: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in ("one.parquet", "two.csv"):
        code, out, err = run(capsys, "tally", table, *ROLES, "--out", f"{table[:3]}.tallies")
        assert (code, out) == (0, "")
        assert re.match(r"\d+ rows in 1 table. Audit it with: evenhand audit", err)
    weeks.write_parquet("all.parquet")
    code, _, _ = run(capsys, "audit", "one.tallies", "two.tallies", "--json", "sets.json")
    assert code == 0
    run(capsys, "audit", "all.parquet", *ROLES, "--json", "rows.json")
    sets, rows = (json.loads(Path(f"{name}.json").read_text()) for name in ("sets", "rows"))
    assert sets["results"] == rows["results"]
    assert sets["data"]["fingerprint"] == rows["data"]["fingerprint"]
    assert sets["data"]["source"] == "one.parquet, two.csv"
    assert sets["made"]["engine"] == "tallies"


def test_what_goes_wrong_is_said_in_one_sentence(
    weeks: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "tally", "one.parquet", *ROLES)[0] == 2
    run(capsys, "tally", "one.parquet", *ROLES, "--out", "one.tallies")
    code, _, err = run(capsys, "tally", "one.parquet", *ROLES, "--out", "one.parquet")
    assert (code, "would overwrite the data" in err) == (2, True)
    code, _, err = run(capsys, "audit", "one.tallies", "two.csv")
    assert code == 2
    assert err.startswith("evenhand: 'two.csv' is no tally set and others are. Tally it first")
    run(capsys, "tally", "two.csv", *ROLES, "--cluster", "cluster", "--out", "two.tallies")
    code, _, err = run(capsys, "audit", "one.tallies", "two.tallies")
    assert code == 4
    assert err.startswith("evenhand: The tally sets differ in cluster: none and 'cluster'.")
    Path("bad.tallies").write_bytes(Path("one.tallies").read_bytes()[:300])
    code, _, err = run(capsys, "audit", "bad.tallies")
    assert code == 4
    assert re.fullmatch(r"evenhand: 'bad.tallies' is a damaged tally set: [^\n]+\.\n", err)


def test_pseudonyms_come_from_a_key_file(
    weeks: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    clustered = [*ROLES, "--cluster", "cluster", "--pseudonyms", "key.txt"]
    code, _, err = run(capsys, "tally", "one.parquet", *clustered, "--out", "one.tallies")
    assert (code, "Make a key with: openssl rand" in err) == (2, True)
    Path("key.txt").write_text("0123456789abcdef0123456789abcdef\n")
    for table in ("one.parquet", "two.csv"):
        assert run(capsys, "tally", table, *clustered, "--out", f"{table[:3]}.tallies")[0] == 0
    code, out, _ = run(capsys, "audit", "one.tallies", "two.tallies", "--json", "-")
    units = json.loads(out)["details"]["statistical"]["units"]["gender"]
    assert (units["unit"], units["count"]) == ("clusters", 40)
    assert code == 0
