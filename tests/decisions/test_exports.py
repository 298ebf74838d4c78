"""Exports of labelling tools: each gives the audit that the same labels give in a table."""

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.decisions.exports import stream
from evenhand.decisions.exports.truth import CAVEAT
from evenhand.errors import DataError, MissingExtra, UsageError

WORDS = {0: "fine", 1: "toxic"}


@pytest.fixture(scope="module")
def labels() -> pl.DataFrame:
    """Labels of twelve people, each item judged by several, as one plain table."""
    rng = np.random.default_rng(3)
    rows = []
    for item in range(160):
        truth, dialect = int(rng.random() < 0.35), ("north", "south")[item % 2]
        says = {0: 0.12 if dialect == "north" else 0.25, 1: 0.8}[truth]
        for person in rng.permutation(12)[:6]:
            said = int(rng.random() < says)
            rows.append((str(item), f"L{person}", WORDS[said], WORDS[truth], dialect))
    frame = pl.DataFrame(
        rows, schema=["item", "labeler", "decision", "truth", "dialect"], orient="row"
    )
    return frame.with_columns(seconds=pl.int_range(pl.len()) % 40 + 1.5)


def by_item(labels: pl.DataFrame) -> list[tuple[str, list[dict]]]:
    return [(key[0], rows.to_dicts()) for key, rows in
            labels.group_by("item", maintain_order=True)]  # fmt: skip


def choice(value: str, name: str = "verdict") -> list[dict]:
    return [
        {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [value]}}
    ]


def label_studio(labels: pl.DataFrame, path: Path) -> Path:
    """JSON as documented at labelstud.io/guide/task_format, with ground truth and skipped ones."""
    tasks = []
    for number, (item, rows) in enumerate(by_item(labels)):
        made = [
            {
                "id": 1000 * number + i,
                "completed_by": {"id": row["labeler"], "email": f"{row['labeler']}@example.org"},
                "result": choice(row["decision"]),
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2026-03-09T22:16:08.728353Z",
                "lead_time": row["seconds"],
                "task": item,
            }
            for i, row in enumerate(rows)
        ]
        made.append({"completed_by": 99, "result": choice(rows[0]["truth"]), "ground_truth": True})
        if number % 10 == 0:
            made.append({"completed_by": 7, "result": [], "was_cancelled": True})
        data = {"text": f"post {item}", "dialect": rows[0]["dialect"]}
        tasks.append({"id": item, "data": data, "meta": {}, "annotations": made, "predictions": []})
    path.write_text(json.dumps(tasks))
    return path


def label_studio_min(labels: pl.DataFrame, path: Path) -> Path:
    records = [
        {
            "text": f"post {row['item']}", "dialect": row["dialect"], "gold": row["truth"],
            "id": row["item"], "verdict": row["decision"], "annotator": row["labeler"],
            "annotation_id": i, "created_at": "2026-03-09T22:16:08Z", "updated_at": None,
            "lead_time": row["seconds"],
        }
        for i, row in enumerate(labels.to_dicts())
    ]  # fmt: skip
    path.write_text(json.dumps(records))
    return path


def argilla(labels: pl.DataFrame, path: Path, layout: str = "nested") -> Path:
    """Records as `to_json`, as `to_list(flatten=True)`, and as version 1 wrote them."""
    records = []
    for item, rows in by_item(labels):
        given = [
            {"value": row["decision"], "user_id": row["labeler"], "status": "submitted"}
            for row in rows
        ]
        given.append({"value": None, "user_id": "u-1", "status": "discarded"})
        known = {"dialect": rows[0]["dialect"], "gold": rows[0]["truth"]}
        if layout == "nested":
            record = {
                "id": item, "fields": {"text": f"post {item}"}, "metadata": known,
                "suggestions": {}, "responses": {"verdict": given}, "vectors": {},
            }  # fmt: skip
        elif layout == "flat":
            record = {
                "id": item, "text": f"post {item}", **known,
                "verdict.responses": [one["value"] for one in given],
                "verdict.responses.users": [one["user_id"] for one in given],
                "verdict.responses.status": [one["status"] for one in given],
            }  # fmt: skip
        elif layout == "dataset":
            record = {"text": f"post {item}", "verdict": given, "external_id": item,
                      "metadata": json.dumps(known)}  # fmt: skip
        else:
            answers = [
                {"user_id": one["user_id"], "status": one["status"],
                 "values": {"verdict": {"value": one["value"]}} if one["value"] else None}
                for one in given
            ]  # fmt: skip
            record = {"id": item, "fields": {"text": "t"}, "metadata": known, "responses": answers}
        records.append(record)
    if layout == "dataset":
        path.write_text("\n".join(map(json.dumps, records)))
    else:
        path.write_text(json.dumps(records))
    return path


def in_parquet(path: Path, target: Path) -> Path:
    """A dataset as the Hub keeps it."""
    pl.DataFrame(json.loads(path.read_text())).write_parquet(target)
    return target


def doccano(labels: pl.DataFrame, path: Path) -> Path:
    """The zip of a project whose people annotate apart: a file for each of them."""
    with zipfile.ZipFile(path, "w") as packed:
        for (person,), rows in labels.group_by("labeler", maintain_order=True):
            lines = [
                json.dumps({"id": row["item"], "text": "t", "label": [row["decision"]],
                            "dialect": row["dialect"], "gold": row["truth"], "Comments": []})
                for row in rows.to_dicts()
            ]  # fmt: skip
            packed.writestr(f"{person}.jsonl", "\n".join(lines))
    return path


def prodigy(labels: pl.DataFrame, path: Path) -> Path:
    """The choice interface by `db-out`, one ignored, and a review of every item."""
    options = [{"id": word, "text": word} for word in WORDS.values()]
    lines = [
        {
            "text": "t", "meta": {"dialect": row["dialect"]}, "options": options,
            "accept": [row["decision"]], "answer": "accept", "_input_hash": row["item"],
            "_task_hash": i, "_session_id": f"posts-{row['labeler']}", "_view_id": "choice",
            "_annotator_id": row["labeler"], "_timestamp": 1_770_000_000 + i,
        }
        for i, row in enumerate(labels.to_dicts())
    ]  # fmt: skip
    lines.append({**lines[0], "answer": "ignore", "accept": []})
    for item, rows in by_item(labels):
        lines.append(
            {"text": "t", "meta": {"dialect": rows[0]["dialect"]}, "accept": [rows[0]["truth"]],
             "answer": "accept", "_input_hash": item, "_annotator_id": "chief", "versions": [],
             "_view_id": "review"}
        )  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def plain(row: dict) -> dict:
    return {name: value for name, value in row.items() if name != "attribute"}


def audited(decisions: eh.Decisions) -> list[dict]:
    result = eh.audit(decisions, lenses=["labelers", "statistical"])
    return [plain(row) for row in result.rows]


@pytest.fixture(scope="module")
def in_a_table(labels) -> list[dict]:
    roles = {name: name for name in ("truth", "decision", "labeler", "item")}
    decisions = eh.Decisions(labels.drop("seconds"), group="dialect", positive="toxic", **roles)
    return audited(decisions)


CASES = {
    "label-studio": (label_studio, "export.json", "data.dialect", {}),
    "label-studio, JSON_MIN": (
        label_studio_min, "min.json", "data.dialect",
        {"tool": "label-studio", "question": "verdict", "truth": "data.gold"},
    ),
    "argilla": (argilla, "a.json", "metadata.dialect", {"truth": "metadata.gold"}),
    "argilla, flat": (
        lambda t, p: argilla(t, p, "flat"), "a.json", "dialect",
        {"tool": "argilla", "truth": "gold"},
    ),
    "argilla, dataset of version 1": (
        lambda t, p: argilla(t, p, "dataset"), "a.jsonl", "metadata.dialect",
        {"tool": "argilla", "truth": "metadata.gold"},
    ),
    "argilla, records of version 1": (
        lambda t, p: argilla(t, p, "old"), "a.json", "metadata.dialect",
        {"tool": "argilla", "truth": "metadata.gold"},
    ),
    "argilla, dataset in Parquet": (
        lambda t, p: in_parquet(argilla(t, p.with_suffix(".json"), "flat"), p), "a.parquet",
        "dialect", {"tool": "argilla", "truth": "gold"},
    ),
    "doccano": (doccano, "d.zip", "dialect", {"truth": "gold"}),
    "prodigy": (prodigy, "p.jsonl", "meta.dialect", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_export_gives_the_audit_of_the_same_labels_in_a_table(
    name, labels, in_a_table, tmp_path
):
    write, file, group, given = CASES[name]
    found = eh.read_labels(write(labels, tmp_path / file), **{"tool": name, **given})
    assert len(found.frame) == len(labels)
    decisions = found.decisions(group=group, positive="toxic")
    rows = audited(decisions)
    # Sums are taken in whatever order the engine groups rows: equal but for the last digits.
    assert len(rows) == len(in_a_table)
    for found_row, row in zip(rows, in_a_table):
        numbers = {name for name, value in row.items() if isinstance(value, float)}
        assert found_row == {**row, **{name: found_row[name] for name in numbers}}
        for number in numbers:
            assert found_row[number] == pytest.approx(row[number], rel=1e-9, abs=1e-12), number
    if "studio" in name:
        assert found.frame["seconds"].sum() == labels["seconds"].sum()


def test_what_does_not_count_is_counted_and_said(labels, tmp_path):
    items = labels["item"].n_unique()
    studio = eh.read_labels(label_studio(labels, tmp_path / "e.json"), tool="label-studio")
    assert studio.left_out == {"skipped or cancelled": (items + 9) // 10}
    assert studio.truth_from == "ground truth or review in Label Studio"
    assert f"{plural_of(items)} left out: skipped or cancelled." in str(studio)
    made = eh.read_labels(
        argilla(labels, tmp_path / "a.json"), tool="argilla", truth="metadata.gold"
    )
    assert made.left_out == {"discarded": items}
    assert eh.read_labels(prodigy(labels, tmp_path / "p.jsonl"), tool="prodigy").left_out == {
        "ignored": 1
    }
    result = eh.audit(studio.decisions(group="data.dialect", positive="toxic"))
    assert {"reason": "skipped or cancelled", "rows": (items + 9) // 10} in result.data["excluded"]
    assert "The truth of the items: ground truth or review in Label Studio." in result.notes


def plural_of(items: int) -> str:
    return f"{(items + 9) // 10:,} labels"


def test_one_command_from_an_export_to_the_page(labels, tmp_path, capsys):
    path = label_studio(labels, tmp_path / "export.json")
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit) as end:
        main(["audit", str(path), "--from", "label-studio", "--group", "data.dialect",
              "--positive", "toxic", "--out", str(page)])  # fmt: skip
    assert end.value.code == 0
    assert "labelers" in page.read_text(encoding="utf-8")
    assert "data.dialect" in capsys.readouterr().out


def test_without_a_truth_the_labels_agree_among_themselves_and_it_is_said(labels, tmp_path):
    path = argilla(labels, tmp_path / "a.json")
    found = eh.read_labels(path, tool="argilla", columns=["metadata.dialect"])
    assert found.truth_from == "consensus of the labels (Dawid and Skene)"
    assert found.notes[0] == CAVEAT
    judged = found.frame.select("item", "truth").unique()
    right = labels.select("item", "truth").unique().join(judged, on="item", suffix="_found")
    share = (right["truth"] == right["truth_found"]).mean()
    assert share > 0.9
    result = eh.audit(found.decisions(group="metadata.dialect", positive="toxic"))
    assert CAVEAT in result.notes


def test_spans_count_by_the_label_looked_for(tmp_path):
    def spans(*marks):
        return [{"from_name": "mark", "type": "labels",
                 "value": {"start": 0, "end": 3, "labels": [mark]}} for mark in marks]  # fmt: skip

    tasks = [
        {"id": i, "data": {"dialect": "ab"[i % 2], "gold": i % 2}, "annotations": [
            {"completed_by": 1, "result": spans("slur", "name")},
            {"completed_by": 2, "result": []},
        ]}
        for i in range(4)
    ]  # fmt: skip
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(tasks))
    with pytest.raises(DataError) as told:
        eh.read_labels(path, tool="label-studio", truth="data.gold")
    assert str(told.value) == (
        f"'{path}', record 1 has spans (name and slur) where one choice is expected. Say which "
        "label to look for, and an item counts as 1 where somebody marked it: has='slur' (--has)."
    )
    found = eh.read_labels(path, tool="label-studio", truth="data.gold", has="slur")
    assert found.frame["decision"].to_list() == [1, 0] * 4
    assert found.frame["truth"].to_list() == [0, 0, 1, 1] * 2
    with pytest.raises(UsageError, match=r"^has='insult' was given to no item of this export\.$"):
        eh.read_labels(path, tool="label-studio", truth="data.gold", has="insult")


def test_accept_and_reject_are_two_labels(tmp_path):
    lines = [
        {"text": "t", "label": "SPAM", "answer": answer, "_input_hash": i, "_session_id": "s-al"}
        for i, answer in enumerate(["accept", "reject", "ignore"])
    ]
    path = tmp_path / "p.jsonl"
    path.write_text(
        "\n".join(map(json.dumps, [{**one, "meta": {"gold": "SPAM"}} for one in lines]))
    )
    found = eh.read_labels(path, tool="prodigy", truth="meta.gold")
    assert found.frame["decision"].to_list() == ["SPAM", "not SPAM"]
    assert found.left_out == {"ignored": 1}
    both = [*lines, {**lines[0], "label": "HAM"}]
    path.write_text("\n".join(map(json.dumps, both)))
    with pytest.raises(UsageError, match=r"answers SPAM and HAM. Say which one is audited: "):
        eh.read_labels(path, tool="prodigy")


def refused(path: Path, tool: str, **given) -> str:
    with pytest.raises((DataError, UsageError)) as told:
        eh.read_labels(path, tool=tool, **given)
    return str(told.value)


def test_bad_exports_are_refused_in_a_sentence(labels, tmp_path):
    few = labels.head(40)
    prodigy_file = prodigy(few, tmp_path / "p.jsonl")
    assert refused(prodigy_file, "label-studio") == (
        f"'{prodigy_file}', record 1 is not laid out as Label Studio does it: its keys are 'text', "
        "'meta', 'options', 'accept', 'answer' and '_input_hash'. It looks like one of Prodigy: "
        "--from prodigy."
    )
    assert refused(prodigy_file, "label-studo") == (
        "tool='label-studo' is not a labelling tool that is known. Did you mean 'label-studio'? "
        "Choose one of label-studio, argilla, doccano, prodigy."
    )
    old = tmp_path / "old.json"
    old.write_text(json.dumps([{"id": 1, "data": {}, "completions": []}]))
    assert "as Label Studio wrote before version 1.0" in refused(old, "label-studio")
    shared = tmp_path / "all.jsonl"
    shared.write_text(json.dumps({"id": 1, "text": "t", "label": ["toxic"]}))
    assert refused(shared, "doccano") == (
        f"'{shared}' does not say who labelled what, so that labelers cannot be compared. In "
        "doccano, turn off shared annotation or give the zip with a file for each annotator."
    )
    two = tmp_path / "two.json"
    made = [
        {"completed_by": 1, "result": choice("toxic"), "ground_truth": True},
        {"completed_by": 2, "result": choice("fine"), "ground_truth": True},
        {"completed_by": 3, "result": choice("fine")},
    ]
    two.write_text(json.dumps([{"id": 7, "data": {}, "annotations": made}]))
    assert refused(two, "label-studio").startswith(
        "Item '7' has two truths (ground truth or review in Label Studio): 'toxic' and 'fine'."
    )
    cut = tmp_path / "cut.json"
    cut.write_text(two.read_text()[:-20])
    assert refused(cut, "label-studio").startswith(f"'{cut}' is not JSON: ")
    assert refused(tmp_path / "none.json", "argilla").startswith("There is no file ")
    pair = few.filter(pl.col("labeler").is_in(few["labeler"].unique().sort()[:2]))
    path = argilla(pair, tmp_path / "pair.json")
    assert "must have judged the same items" in refused(path, "argilla")
    assert refused(path, "argilla", truth="metadata.godl") == (
        "truth='metadata.godl' is not a field of the items. Did you mean 'metadata.gold'? They "
        "have fields.text, id, metadata.dialect and metadata.gold."
    )
    assert refused(path, "argilla", truth_labeler="nobody").startswith(
        "truth_labeler='nobody' has labelled nothing in this export."
    )
    missing = refused(path, "argilla", truth="metadata.gold", columns=["data.dialect"])
    assert missing.startswith("'data.dialect' is not a field of the items.")


def test_flags_of_exports_need_the_tool(tmp_path, capsys):
    path = tmp_path / "labels.csv"
    path.write_text("d,g\n1,a\n")
    with pytest.raises(SystemExit) as end:
        main(["audit", str(path), "--decision", "d", "--group", "g", "--has", "slur"])
    assert end.value.code == 2
    assert "--has is for the export of a labelling tool." in capsys.readouterr().err


def test_one_person_can_be_the_truth(labels, tmp_path):
    people = sorted(labels["labeler"].unique())
    path = argilla(labels, tmp_path / "a.json")
    found = eh.read_labels(path, tool="argilla", truth_labeler=people[0])
    assert people[0] not in found.frame["labeler"].to_list()
    assert found.truth_from == f"labels of {people[0]}"
    theirs = labels.filter(labeler=people[0])
    both = found.frame.join(theirs, on="item", suffix="_theirs")
    assert both["truth"].to_list() == both["decision_theirs"].to_list()


def test_large_documents_are_streamed_or_refused(labels, tmp_path, monkeypatch):
    path = label_studio(labels, tmp_path / "export.json")
    whole = eh.read_labels(path, tool="label-studio")
    monkeypatch.setattr(stream, "LARGEST_WHOLE", 1000)
    with monkeypatch.context() as without:
        without.setitem(__import__("sys").modules, "ijson", None)
        with pytest.raises(MissingExtra) as told:
            eh.read_labels(path, tool="label-studio")
    size = f"{path.stat().st_size / 1e6:,.0f} MB"
    assert str(told.value) == (
        f"'{path}', one large JSON document of {size}, needs the extra 'exports', which is not "
        "installed. Run: pip install 'evenhand[exports]'"
    )
    pytest.importorskip("ijson")
    assert eh.read_labels(path, tool="label-studio").frame.equals(whole.frame)
    path.write_text(path.read_text()[:-50])
    with pytest.raises(DataError, match="is not JSON: "):
        eh.read_labels(path, tool="label-studio")


def test_packed_documents_are_read(labels, tmp_path, monkeypatch):
    path = label_studio(labels.head(100), tmp_path / "e.json")
    whole = eh.read_labels(path, tool="label-studio").frame
    packed = tmp_path / "e.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert eh.read_labels(packed, tool="label-studio").frame.equals(whole)
    pytest.importorskip("ijson")
    monkeypatch.setattr(stream, "LARGEST_WHOLE", 1000)
    assert eh.read_labels(packed, tool="label-studio").frame.equals(whole)


def test_packed_lines_are_read(labels, tmp_path):
    path = prodigy(labels.head(100), tmp_path / "p.jsonl")
    packed = tmp_path / "p.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert eh.read_labels(packed, tool="prodigy").frame.equals(
        eh.read_labels(path, tool="prodigy").frame
    )
