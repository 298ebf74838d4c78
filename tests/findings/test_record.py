"""The record: one document, read back whole, refused when unknown, never half written."""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.findings import record as recorded
from evenhand.findings.record import write_text
from evenhand.lenses.rows import COLUMNS
from evenhand.simulate.moderation import moderation


@pytest.fixture(scope="module")
def audit() -> eh.Audit:
    posts = moderation(1200, seed=1).frame.with_columns(
        pl.when(pl.col("post") < 5).then(None).otherwise(pl.col("gender")).alias("gender")
    )
    decisions = eh.Decisions(
        posts, truth="violates", decision="removed", score="score", group=["gender", "region"]
    )
    limits = {"true_positive_rate_gap": 0.05}
    return eh.audit(decisions, limits=limits, arguments={"command": "audit"})


def test_round_trip(audit: eh.Audit, tmp_path: Path) -> None:
    write_text(tmp_path / "audit.json", audit.to_json())
    read = eh.read_record(tmp_path / "audit.json")
    assert read == json.loads(json.dumps(audit.record()))
    assert read["schema"] == "evenhand.audit/1"
    assert list(read["results"][0]) == list(COLUMNS)
    assert read["data"]["rows"] == 1200
    assert {"reason": "no gender", "rows": 5} in read["data"]["excluded"]
    assert read["data"]["roles"]["group"] == ["gender", "region"]
    assert set(read["made"]) >= {"at", "version", "engine", "seed", "arguments"}
    assert read["made"]["arguments"] == {"command": "audit"}
    for finding in read["findings"]:
        assert set(finding) >= {"lens", "layer", "verdict", "sentence", "rows"}
        for place in finding["rows"]:
            assert read["results"][place]["measure"] == finding["measure"]


def test_the_json_is_strict(audit: eh.Audit) -> None:
    def refuse(word: str) -> Any:
        raise AssertionError(word)

    document = json.loads(audit.to_json(), parse_constant=refuse)
    for row in document["results"]:
        assert (row["value"] is None) == (row["undefined"] is not None)
        assert row["n"] is None or row["n"] == int(row["n"])


def test_an_audit_repeats_itself(audit: eh.Audit) -> None:
    posts = moderation(1200, seed=1).frame.sample(fraction=1.0, shuffle=True, seed=3)
    posts = posts.with_columns(
        pl.when(pl.col("post") < 5).then(None).otherwise(pl.col("gender")).alias("gender")
    )
    roles = {"truth": "violates", "decision": "removed", "score": "score"}
    again = eh.audit(
        eh.Decisions(posts, group=["gender", "region"], **roles),
        limits={"true_positive_rate_gap": 0.05},
        arguments={"command": "audit"},
    )
    one, two = audit.record(), again.record()
    assert one["data"] == two["data"]
    assert one["findings"] == two["findings"]
    other = eh.audit(eh.Decisions(posts.head(1199), group=["gender", "region"], **roles))
    assert other.data["fingerprint"] != one["data"]["fingerprint"]


REFUSED = [
    ("{}", "has no schema; this version reads evenhand.audit/1. Make the record again with: "
     "evenhand audit … --json"),
    ('{"schema": "evenhand.audit/9"}', "has schema 'evenhand.audit/9'; this version reads "
     "evenhand.audit/1. Make the record again with: evenhand audit … --json"),
    ("[1]", "has no schema; this version reads evenhand.audit/1. Make the record again with: "
     "evenhand audit … --json"),
    ('{"schema": "evenhand.audit/1", "made": {}}', "is a damaged record: it has no 'data'."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_other_documents_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        eh.read_record(path)
    assert str(caught.value) == f"'{path}' {words}"


def test_files_that_hold_no_record(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        eh.read_record(tmp_path / "none.json")
    assert str(caught.value) == f"There is no file '{tmp_path / 'none.json'}'."
    for name, content in (("cut.json", b'{"schema": "even'), ("bytes.json", b"\xff\xfe\x00")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name}' cannot be read as a record: "):
            eh.read_record(tmp_path / name)


def test_writing_replaces_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_text("old")
    write_text(path, "new — ünïcode")
    assert path.read_text(encoding="utf-8") == "new — ünïcode"
    assert [p.name for p in tmp_path.iterdir()] == ["audit.json"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("broken", ["replace", "fdopen"])
def test_the_old_file_survives(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.json"
    path.write_text("old")

    class Full:
        def __init__(self, handle: int) -> None:
            self.handle = handle

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.handle)

        def write(self, text: str) -> None:
            raise OSError(28, "No space left on device")

    def full(*given: Any, **_: Any) -> Any:
        if broken == "fdopen":
            return Full(given[0])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorded.os, broken, full)
    with pytest.raises(UsageError) as caught:
        write_text(path, "new")
    monkeypatch.undo()
    assert str(caught.value) == (
        f"'{path}' cannot be written: No space left on device. The old file is unchanged."
    )
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["audit.json"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    lost = tmp_path / "nowhere" / "audit.json"
    with pytest.raises(UsageError) as caught:
        write_text(lost, "new")
    assert str(caught.value) == (
        f"'{lost}' cannot be written: there is no folder '{lost.parent}'. Choose another place."
    )
    with pytest.raises(UsageError) as caught:
        write_text(tmp_path, "new")
    assert str(caught.value) == (
        f"'{tmp_path}' cannot be written: it is a folder. Choose another place."
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_protected_file_survives(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(UsageError, match="cannot be written: permission denied"):
        write_text(path, "new")
    assert path.read_text() == "old"


def test_tallies_are_saved_and_read(tmp_path: Path, audit: eh.Audit) -> None:
    posts = moderation(300, seed=2).frame
    decisions = eh.Decisions(posts, truth="violates", decision="removed", group="gender")
    tally = decisions.count(decisions.roles.attributes[0])
    tally.save(tmp_path / "t.json")
    again = eh.Tally.load(tmp_path / "t.json")
    assert again.fingerprint() == tally.fingerprint()
    assert again.merge(tally).total() == 600
    (tmp_path / "t.json").write_text('{"schema": "x"}')
    with pytest.raises(DataError) as caught:
        eh.Tally.load(tmp_path / "t.json")
    assert (
        str(caught.value) == f"'{tmp_path / 't.json'}' is not a tally of schema evenhand.tally/1."
    )
    with pytest.raises(DataError, match="cannot be read as a tally"):
        eh.Tally.load(tmp_path / "none.json")
    other = eh.Tally.of({"truth": ["a"]}, {"n": [1]})
    with pytest.raises(DataError) as caught:
        tally.merge(other)
    assert str(caught.value) == (
        "Tallies of different things cannot be merged: ['decision', 'group', 'truth'] with sums "
        "['n'], and ['truth'] with sums ['n']."
    )
