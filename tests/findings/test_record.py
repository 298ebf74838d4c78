"""The record: one document, read back whole, refused when unknown, never half written."""

import json
import os
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.files import write_text, writing
from evenhand.lenses.rows import COLUMNS
from evenhand.report.formats import as_junit, as_markdown
from evenhand.report.page import as_page, summarise
from evenhand.simulate.labelers import LabelerGroup, simulate_labelers
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
    assert read["schema"] == "evenhand.audit/2"
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


def test_findings_are_data(audit: eh.Audit) -> None:
    record = json.loads(audit.to_json())
    fields = "lens layer owner verdict claim numbers certainty settle"
    fields += " short headline detail line summary next whose sentence measure attribute rows"
    for finding in record["findings"]:
        assert list(finding) == fields.split()
        claim, certainty = finding["claim"], finding["certainty"]
        assert claim["attribute"] == finding["attribute"]
        if not finding["rows"]:
            assert certainty["kind"] == "none proven"
            assert f" {len(finding['numbers'])} gap" in finding["detail"]
            continue
        lead = record["results"][finding["numbers"][0]]
        keys = ("measure", "attribute", "group", "reference", "class", "stratum")
        assert {key: claim[key] for key in keys} == {key: lead[key] for key in keys}
        assert lead["verdict"] == finding["verdict"]
        assert certainty["level"] == 0.95
        apart = lead["family_low"] > 0 or lead["family_high"] < 0
        assert certainty["kind"] == ("proven difference" if apart else "none proven")
        assert claim["direction"] == ("more" if lead["value"] > 0 else "less")
        assert (finding["settle"] is None) == (finding["verdict"] != "cannot tell")


OLD = Path(__file__).parent / "record_1.json"


def test_records_of_the_first_schema_are_read() -> None:
    old, read = json.loads(OLD.read_text(encoding="utf-8")), eh.read_record(OLD)
    assert (old["schema"], read["schema"]) == ("evenhand.audit/1", "evenhand.audit/2")
    assert {row["lens"] for row in old["results"]} == {"statistical", "causal", "norms"}
    assert {row["lens"] for row in read["results"]} == {"statistical", "counterfactual", "norms"}
    assert {one["lens"] for one in read["findings"]} == {"statistical", "counterfactual", "norms"}
    assert set(read["details"]) == {"statistical", "counterfactual"}
    assert list(read["data"]["lenses"])[:2] == ["statistical", "counterfactual"]
    for before, after in zip(old["results"], read["results"], strict=True):
        assert set(after) == set(COLUMNS)
        assert {k: after[k] for k in before if k != "lens"} == {
            k: before[k] for k in before if k != "lens"
        }
    for before, after in zip(old["findings"], read["findings"], strict=True):
        assert after["sentence"] == before["sentence"]
        new = ("claim", "numbers", "certainty", "settle", "headline", "line", "next", "whose")
        assert [after[name] for name in new] == [None] * 8


def test_what_no_limit_is_held_against_is_data_in_every_schema(tmp_path: Path) -> None:
    labels = pl.DataFrame(
        [
            (f"l{i % 7}", f"{group}{i}", group, i % 2, (i // 2) % 2)
            for group in "ab"
            for i in range(1400)
        ],
        schema=["who", "item", "g", "y", "d"], orient="row",
    )  # fmt: skip
    roles = {"labeler": "who", "item": "item", "truth": "y", "decision": "d", "group": "g"}
    result = eh.audit(labels, lenses=["labelers"], limits={"cost_ratio": "2:20"}, **roles)
    record, path = result.record(), tmp_path / "audit.json"
    blind = "labels are not shown to tell the truth apart"
    places = record["asides"]["unjudged"][blind]
    assert {record["results"][place]["measure"] for place in places} >= {"cost_ratio"}
    assert all(tuple(row) == COLUMNS for row in record["results"])
    said = f"o limit can be held against it: {blind}."
    result.save(path)
    assert said in eh.render(eh.read_record(path), form="markdown")
    # The first schema has it in the words of the method, and nowhere else.
    old = {name: value for name, value in record.items() if name != "asides"}
    old["schema"] = "evenhand.audit/1"
    for row in old["results"]:
        row["method"] = (row["method"] or "").replace(
            "no limit is held against it", "cannot be told"
        )
    path.write_text(json.dumps(old), encoding="utf-8")
    assert eh.read_record(path)["asides"]["unjudged"][blind] == places
    wrong = {**record, "asides": {"unjudged": {blind: [10_000]}, "judged_as": {}}}
    with pytest.raises(DataError, match="'unjudged' refers to results that it does not hold"):
        as_page(wrong, charts=False)


def test_records_of_the_first_schema_are_shown(tmp_path: Path) -> None:
    read = eh.read_record(OLD)
    page = as_page(read, charts=False)
    sections = [section["id"] for section in summarise(read)["sections"]]
    assert sections == ["gaps", "counterfactual", "norms", "quality", "methods"]
    for finding in read["findings"]:
        assert escape(finding["sentence"].rstrip("."), quote=False).replace("'", "&#39;") in (
            page.replace("\u00a0", " ")
        )
    assert "Over the classes, exchanging only the words of the group" in as_markdown(read)
    assert as_junit(read).count("<failure") == 4
    # 15 gaps, 2 norm biases, a root mean square, 2 without noise (limited) and a flip rate.
    out = tmp_path / "report.html"
    with pytest.raises(SystemExit) as ended:
        main(["report", str(OLD), str(OLD), "--out", str(out), "--no-charts"])
    assert ended.value.code == 0
    assert "none of 21 numbers moved beyond sampling error" in out.read_text(encoding="utf-8")


READS = (
    "this version reads evenhand.audit/1 and evenhand.audit/2. Make the record again with: "
    "evenhand audit … --json"
)
REFUSED = [
    ("{}", f"has no schema; {READS}"),
    ('{"schema": "evenhand.audit/9"}', f"has schema 'evenhand.audit/9'; {READS}"),
    ("[1]", f"has no schema; {READS}"),
    ('{"schema": "evenhand.audit/1", "made": {}}', "is a damaged record: it has no 'data'."),
]


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


@pytest.mark.parametrize("broken", ["replace", "fsync", "write"])
def test_the_old_file_survives(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.json"
    path.write_text("old")

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, broken, full)
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
    tallies = eh.tally(posts, truth="violates", decision="removed", group="gender")
    tallies.save(tmp_path / "t.tallies")
    again = eh.Tallies.load(tmp_path / "t.tallies")
    assert again.fingerprint() == tallies.fingerprint()
    assert (again + tallies).table("counts/gender").total() == 600
    (tmp_path / "t.tallies").write_text('{"schema": "x"}')
    with pytest.raises(DataError) as caught:
        eh.Tallies.load(tmp_path / "t.tallies")
    assert str(caught.value) == (
        f"'{tmp_path / 't.tallies'}' is not a tally set. Make one with: evenhand tally DATA --out "
        "week.tallies"
    )
    with pytest.raises(DataError, match=r"There is no file '.*none\.tallies'"):
        eh.Tallies.load(tmp_path / "none.tallies")
    tally, other = tallies.table("counts/gender"), Tally.of({"truth": ["a"]}, {"n": [1]})
    with pytest.raises(DataError) as caught:
        tally.merge(other)
    assert str(caught.value) == (
        "Tallies of different things cannot be merged: ['decision', 'group', 'truth'] with sums "
        "['n'], and ['truth'] with sums ['n']."
    )


def test_records_of_labelers_are_read_back_and_stand_beside_the_models(tmp_path: Path) -> None:
    groups = {
        name: LabelerGroup(prevalence=0.3, separation=1.5, criterion=bar)
        for name, bar in (("female", 0.8), ("male", 0.8), ("nonbinary", 0.3))
    }
    labels = simulate_labelers(groups, labelers=12, items_each=120, seed=2).frame
    roles = {"truth": "truth", "decision": "decision", "labeler": "labeler", "item": "item"}
    people = eh.audit(labels, **roles, group="group")
    posts = moderation(4000, seed=1).frame
    model = eh.audit(posts, truth="violates", decision="removed", score="score", group="gender")
    for name, audit in (("labels", people), ("model", model)):
        write_text(tmp_path / f"{name}.json", audit.to_json())
    read = eh.read_record(tmp_path / "labels.json")
    assert read["details"]["labelers"]["attributes"][0]["splits"][0]["bar"]["low"] is not None
    both = [tmp_path / "model.json", tmp_path / "labels.json"]
    assert "The model and its labelers" in eh.render(*both, charts=False)
    text = eh.render(*both, form="markdown")
    assert "### The model and its labelers: " in text
    assert "| group | rate | the model | its labelers |" in text
    assert "What moved" not in text
