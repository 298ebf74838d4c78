"""Records that were changed after they were written are refused by every reader."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.errors import DataError
from evenhand.simulate.moderation import moderation

OLD = Path(__file__).parent / "record_1.json"
CHANGED = (
    "'{}' was changed after it was written: its checksum does not fit. "
    "Use the record as it was written, or audit again."
)
BARE = (
    "'{}' has no checksum, with which every record ends. "
    "Use the record as it was written, or audit again."
)


@pytest.fixture(scope="module")
def result() -> Any:
    """An audit with something outside its limit."""
    return eh.audit(
        eh.Decisions(moderation(4_000).frame, truth="violates", decision="removed", group="gender"),
        limits={"true_positive_rate_gap": 0.01},
    )


def milder(text: str) -> str:
    """The record with its verdict and a rate changed, as whoever wants a better one would."""
    document = json.loads(text)
    value = next(row["value"] for row in document["results"] if row["value"])
    changed = text.replace('"verdict": "outside"', '"verdict": "within"')
    changed = changed.replace(f'"value": {value!r}', '"value": 0.123', 1)
    assert changed != text
    return changed


def without_seal(text: str) -> str:
    """The record without the line that holds its checksum."""
    kept, _, _ = text.rpartition(',\n "checksum"')
    return f"{kept}\n}}\n"


def with_other_signs(text: str) -> str:
    """The same content, written by another program."""
    return json.dumps(json.loads(text))


CHANGES: list[tuple[Callable[[str], str], str]] = [
    (milder, CHANGED),
    (with_other_signs, CHANGED),
    (without_seal, BARE),
    (lambda text: without_seal(milder(text)), BARE),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES)
def test_a_changed_record_is_refused(
    change: Callable[[str], str], sentence: str, result: Any, run: Any
) -> None:
    result.save("whole.json")
    Path("audit.json").write_text(change(Path("whole.json").read_text("utf-8")), "utf-8")
    words = sentence.format("audit.json")
    for read in (
        lambda: eh.read_record("audit.json"),
        lambda: eh.render("audit.json", form="markdown"),
        lambda: eh.render("whole.json", "audit.json", form="markdown"),
        lambda: eh.render("audit.json", "whole.json", form="markdown"),
        lambda: eh.render("audit.json", form="json"),
        lambda: result.compare("audit.json"),
    ):
        with pytest.raises(DataError) as caught:
            read()
        assert str(caught.value) == words
    forms = {
        "--out": "r.html", "--markdown": "r.md", "--junit": "r.xml", "--card": "card.md",
        "--cyclonedx": "r.cdx", "--form": "ll144=t.csv", "--figures": "figures",
    }  # fmt: skip
    for flag, place in forms.items():
        assert run("report", "audit.json", flag, place) == (4, "", f"evenhand: {words}\n")
        assert not Path(place.removeprefix("ll144=")).exists()
    assert run("report", "audit.json", "--github") == (4, "", f"evenhand: {words}\n")
    assert run("report", "whole.json", "audit.json") == (4, "", f"evenhand: {words}\n")
    assert run("report", "audit.json", "whole.json") == (4, "", f"evenhand: {words}\n")


def test_every_record_is_written_with_its_seal(result: Any, run: Any) -> None:
    frame = moderation(4_000).frame
    frame.write_parquet("posts.parquet")
    flags = ["--truth", "violates", "--decision", "removed", "--group", "gender"]
    assert run("audit", "posts.parquet", *flags, "--json", "by_command.json")[0] == 0
    result.save("by_save.json")
    eh.render(result, path="by_render.json")
    eh.render(result.record(), path="of_a_dict.json")
    eh.render("by_save.json", path="again.json")
    Path("by_text.json").write_text(result.to_json(), "utf-8")
    eh.render(eh.read_record(OLD), path="of_the_first_schema.json")
    written = sorted(path.name for path in Path().glob("*.json"))
    assert len(written) == 7
    for name in written:
        eh.read_record(name)
    assert Path("again.json").read_bytes() == Path("by_save.json").read_bytes()


def test_what_systems_do_to_the_ends_of_lines_is_no_change(result: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    content = result.to_json().encode()
    for written in (content, content + b"\n", BOM_UTF8 + content.replace(b"\n", b"\r\n")):
        path.write_bytes(written)
        assert eh.read_record(path)["verdict"] == "outside"


def test_a_record_that_is_a_dict_has_no_seal(result: Any) -> None:
    record = json.loads(result.to_json())
    shown = eh.render(record, form="markdown")
    assert eh.render({**record, "checksum": "sha256:0"}, form="markdown") == shown
    del record["checksum"]
    assert eh.render(record, form="markdown") == shown


def test_records_of_the_first_schema_had_none(run: Any) -> None:
    record = json.loads(OLD.read_text("utf-8"))
    assert "checksum" not in record
    record["verdict"] = "within"
    Path("old.json").write_text(json.dumps(record), "utf-8")
    assert eh.read_record("old.json")["verdict"] == "within"
    assert run("report", "old.json", "--markdown", "old.md")[0] == 0
    # One that has a checksum was never of the first schema.
    Path("lowered.json").write_text(json.dumps(record | {"checksum": "sha256:0"}), "utf-8")
    code, _, said = run("report", "lowered.json", "--markdown", "new.md")
    assert (code, said) == (4, f"evenhand: {CHANGED.format('lowered.json')}\n")
