"""Documents that were damaged: refused in one sentence or read, never called a bug of ours."""

import io
import json
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.cli.demo import CHARTER
from evenhand.errors import DataError
from evenhand.models.table import KeptScores, model_identity
from evenhand.remedies.ledger.compare import compare
from evenhand.remedies.ledger.files import PartStore
from evenhand.simulate.biographies import Occupation, biographies
from evenhand.simulate.labelers import LabelerGroup, Variation, simulate_labelers
from evenhand.simulate.moderation import Group, moderation

pytestmark = pytest.mark.kind("damage")
GONE = object()
WRONG: list[Any] = [
    GONE, None, True, "abc", "", "\x1b[31m", 0, -1, 10**30, 1e300, -1e300, 0.5, [], {}, [None],
    {"a": 1}, [[[]]], ["abc", "abc"], "NaN!",
]  # fmt: skip
DEEP = '{"a": ' * 3_000 + "1" + "}" * 3_000


# Documents to damage.


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of every lens, a norm scorer, a ledger, a charter, a side file, and their data."""
    place = tmp_path_factory.mktemp("documents")
    (place / "charter.toml").write_text(CHARTER)
    records = {"posts": posts(place), "labels": labels(), "texts": texts()}
    for name, record in records.items():
        (place / f"{name}.json").write_text(record.to_json())
    people = range(700)
    table = pl.DataFrame(
        {
            "hours": [30 + 5 * (i % 2) + i % 7 for i in people],
            "title": ["abcdef"[i % 6] for i in people],
            "gender": ["fm"[(i // 6) % 2] for i in people],
        }
    )
    table.write_csv(place / "people.csv")
    few = {title: Occupation(female_share=0.5) for title in ("nurse", "poet", "pilot", "rapper")}
    bios = biographies(1_000, occupations=few, seed=3).frame
    bios.write_parquet(place / "bios.parquet")
    bios.head(20).write_parquet(place / "few.parquet")
    compare(
        bios.head(300), text="text", truth="title", group="gender", remedies=["kamiran_calders"],
        texts={"representations": ["bow"]}, seeds=1, out=place / "ledger",
    )  # fmt: skip
    return place


def posts(place: Path) -> eh.Audit:
    groups = {
        "female": Group(share=0.5, base_rate=0.2, threshold=0.6),
        "male": Group(share=0.5, base_rate=0.2, threshold=0.4),
    }
    return eh.audit(
        moderation(900, groups=groups, seed=0).frame,
        truth="violates", score="score", threshold={"female": 0.6, "male": 0.4}, group="gender",
        limits={"true_positive_rate_gap": 0.05}, charter=place / "charter.toml",
        settings={"evidence": 2}, arguments={"command": "evenhand audit"},
    )  # fmt: skip


def labels() -> eh.Audit:
    signals = {"f": 0.9, "m": 0.4}
    made = simulate_labelers(
        {g: LabelerGroup(prevalence=0.3, separation=1.8, criterion=c) for g, c in signals.items()},
        labelers=4, items_each=60, seed=0,
        variation=Variation(criterion_across=0.2, separation_across=0.1),
    )  # fmt: skip
    return eh.audit(
        made.frame, truth="truth", decision="decision", labeler="labeler", item="item",
        group="group", limits={"criterion_gap": 0.1},
    )  # fmt: skip


def texts() -> eh.Audit:
    rng, n = np.random.default_rng(0), 600
    truth = rng.choice(list("abcd"), n)
    decision = np.where(rng.random(n) < 0.8, truth, rng.choice(list("abcd"), n))
    table = {
        "gender": rng.choice(["female", "male"], n), "title": truth, "decision": decision,
        "decision@female": np.where(rng.random(n) < 0.9, decision, "a"), "decision@male": decision,
        "text": [f"text {i} she" for i in range(n)],
        "text@female": [f"text {i} she" for i in range(n)],
        "text@male": [f"text {i} he" for i in range(n)],
        "norm@female": rng.random(n), "norm@male": rng.random(n), "score:truth": rng.random(n),
    }  # fmt: skip
    return eh.audit(
        pl.DataFrame(table), truth="title", group="gender", text="text",
        limits={"norm_bias": 0.3}, settings={"evidence": 2},
    )  # fmt: skip


# Damage.


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document; of a list its first and last entry."""
    if at:
        yield at
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*at, name))
    elif isinstance(value, list) and value:
        for i in {0, len(value) - 1}:
            yield from places(value[i], (*at, i))


def damaged(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    """A copy of the document with another value in one place; the rest is shared."""
    if not at:
        return value
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    if len(at) == 1 and value is GONE:
        del copy[at[0]]
    else:
        copy[at[0]] = damaged(copy[at[0]], at[1:], value)
    return copy


def words_of(draw: Callable[..., Any], document: Any, found: list[tuple[Any, ...]]) -> str:
    """A document as JSON with one to three places damaged, cut short, or nested too deep."""
    how = draw(st.sampled_from(["places"] * 8 + ["cut", "deep", "digits", "NaN"]))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.sampled_from(found))
        value = draw(st.sampled_from(WRONG))
        try:
            document = damaged(document, at, "@@" if how not in {"places", "cut"} else value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier damage took this place away
    words = json.dumps(document)
    if how == "cut":
        return words[: draw(st.integers(0, len(words) - 1))]
    odd = {"deep": DEEP, "digits": "9" * 5_000, "NaN": "NaN"}.get(how)
    return words if odd is None else words.replace('"@@"', odd)


def assert_well_ended(ended: tuple[int, str, str], *, codes: set[int]) -> None:
    """Success, or one sentence and its exit code."""
    code, _, err = ended
    assert code in codes, err
    if code:
        assert re.fullmatch(r"evenhand: [^\n]+\n", err), err


RECORDS = ("posts", "labels", "texts")


@pytest.mark.parametrize("name", RECORDS)
def test_records(name: str, home: Path, run: Any) -> None:
    record = json.loads((home / f"{name}.json").read_text())
    found = list(places(record))

    @settings(max_examples=120)
    @given(st.data())
    def damage(data: Any) -> None:
        Path("r.json").write_text(words_of(data.draw, record, found))
        flags = ["--out", "r.html", "--markdown", "r.md", "--junit", "r.xml", "--card", "card.md",
                 "--cyclonedx", "r.cdx", "--github", "--no-charts"]  # fmt: skip
        assert_well_ended(run("report", "r.json", *flags), codes={4})

    damage()


def test_what_one_form_refuses_costs_none(home: Path, run: Any) -> None:
    record = json.loads((home / "labels.json").read_text())
    del record["details"]["labelers"]["attributes"][0]["splits"][0]["total"]["value"]
    # The first schema had no checksum that would tell at the door.
    del record["checksum"]
    Path("r.json").write_text(json.dumps(record | {"schema": "evenhand.audit/1"}))
    ended = run("report", "r.json", "--out", "r.html", "--markdown", "r.md", "--no-charts")
    assert ended[0::2] == (
        4,
        "evenhand: 'r.json' was changed after it was written, and cannot be shown as it is. "
        "Make it again.\n",
    )
    assert not Path("r.md").exists()  # Markdown alone could be made of it


def test_records_compared(home: Path, run: Any) -> None:
    record = json.loads((home / "posts.json").read_text())
    found = list(places(record))

    @settings(max_examples=30)
    @given(st.data())
    def damage(data: Any) -> None:
        Path("r.json").write_text(words_of(data.draw, record, found))
        both = [home / "posts.json", "r.json"]
        both = both if data.draw(st.booleans()) else both[::-1]
        assert_well_ended(run("report", *both, "--out", "r.html", "--no-charts"), codes={4})

    damage()


def test_ledgers(home: Path, run: Any) -> None:
    ledger = json.loads((home / "ledger/ledger.json").read_text())
    found = list(places(ledger))

    @settings(max_examples=80)
    @given(st.data())
    def damage(data: Any) -> None:
        Path("ledger.json").write_text(words_of(data.draw, ledger, found))
        ended = run("report", "ledger.json", "--out", "r.html", "--no-charts")
        assert_well_ended(ended, codes={4})

    damage()


def test_parts_of_a_ledger_are_made_again(home: Path, tmp_path: Path) -> None:
    part = next((home / "ledger/parts").glob("*.json"))
    document, arrays = json.loads(part.read_text()), part.with_suffix(".npz").read_bytes()
    found = list(places(document))
    shutil.copytree(home / "ledger", tmp_path / "ledger")
    store = PartStore(tmp_path / "ledger")
    copy = tmp_path / "ledger/parts" / part.name

    @settings(max_examples=80)
    @given(st.data())
    def damage(data: Any) -> None:
        if data.draw(st.booleans()):
            copy.write_text(words_of(data.draw, document, found))
        else:
            copy.with_suffix(".npz").write_bytes(broken_bytes(data.draw, arrays))
        store.load(part.stem)  # a part or None; whatever is wrong with it, no error

    damage()


TOKENS = ["true", '"abc"', "10" * 20, "9" * 5_000, "nan", "-inf", "[[[]]]", "{}", "2026-01-31",
          "2026-13-77", "'''", "[" * 2_000, "\x1b", "{a=1}", '["a", 1]', "-0.0",
          "1e400"]  # fmt: skip


@pytest.mark.parametrize("command", ["check", "show", "audit"])
def test_charters(command: str, home: Path, run: Any) -> None:
    lines = CHARTER.splitlines()

    @settings(max_examples=80)
    @given(st.data())
    def damage(data: Any) -> None:
        left = list(lines)
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(left) - 1))
            name, separator, _ = left[at].partition(" = ")
            how = data.draw(st.sampled_from(["value", "value", "drop", "double", "name", "cut"]))
            if how == "value" and separator:
                left[at] = f"{name} = {data.draw(st.sampled_from(TOKENS))}"
            elif how == "name":
                left[at] = data.draw(st.sampled_from(["[x]", "[[choices]]", "x = 1", "[limits]"]))
            elif how == "double":
                left.insert(at, left[at])
            else:
                left[at] = "" if how == "drop" else left[at][: len(left[at]) // 2]
        Path("c.toml").write_text("\n".join(left))
        if command == "audit":
            flags = ["--truth", "title", "--decision", "title", "--group", "gender", "--quiet"]
            ended = run("audit", home / "people.csv", *flags, "--charter", "c.toml")
        else:
            ended = run("charter", command, "c.toml")
        assert ended[0] in {0, 1, 2, 4}, ended[2]
        assert "something went wrong inside" not in ended[2]

    damage()


def broken_bytes(draw: Callable[..., Any], content: bytes) -> bytes:
    """Bytes cut short, or with some of them changed."""
    if draw(st.booleans()):
        return content[: draw(st.integers(0, len(content) - 1))]
    held = bytearray(content)
    for _ in range(draw(st.integers(1, 20))):
        held[draw(st.integers(0, len(held) - 1))] = draw(st.integers(0, 255))
    return bytes(held)


def broken_array(draw: Callable[..., Any], array: Any) -> Any:
    how = draw(st.sampled_from(["shape", "short", "kind", "NaN", "empty", "words", "order"]))
    if how == "shape":
        return array.reshape(1, -1) if array.ndim != 2 else array.T
    if how == "short":
        return array[:-1]
    if how == "kind":
        return array.astype(np.int32)
    if how == "NaN":
        return np.full(array.shape, np.nan)
    if how == "empty":
        return array[:0]
    return np.array(["abc"] * max(1, array.size)) if how == "words" else array[::-1]


@pytest.mark.parametrize("kind", ["texts", "vectors", "numbers"])
def test_norms(kind: str, home: Path, run: Any, tmp_path: Path) -> None:
    roles = ["--truth", "title", "--group", "gender"]
    how = {
        "texts": ["few.parquet", "bios.parquet", "--text", "text", "--bag-of-words"],
        "vectors": ["few.parquet", "bios.parquet", "--text", "text"],
        "numbers": ["people.csv", "people.csv", "--features", "hours"],
    }[kind]
    few, data_file, *flags = how
    ended = run("norms", "fit", home / data_file, *roles, *flags, "--out", "norms")
    assert ended[0] == 0, ended[2]
    document = json.loads(Path("norms/norms.json").read_text())
    whole = Path("norms/arrays.npz").read_bytes()
    with np.load("norms/arrays.npz") as held:
        arrays = {name: held[name] for name in held.files}
    found = list(places(document))
    score = ["norms", "score", home / few, "--norms", "norms", "--truth", "title"]
    score += ["--text", "text"] if kind != "numbers" else []
    assert run(*score, "--out", "o.parquet")[0] == 0

    @settings(max_examples=70)
    @given(st.data())
    def damage(data: Any) -> None:
        Path("norms/norms.json").write_text(json.dumps(document))
        Path("norms/arrays.npz").write_bytes(whole)
        where = data.draw(st.sampled_from(["document", "bytes", "array", "gone", "file"]))
        if where == "document":
            Path("norms/norms.json").write_text(words_of(data.draw, document, found))
        elif where == "bytes":
            Path("norms/arrays.npz").write_bytes(broken_bytes(data.draw, whole))
        elif where == "file":
            Path("norms/arrays.npz").unlink()
        else:
            name = data.draw(st.sampled_from(sorted(arrays)))
            left = {key: value for key, value in arrays.items() if key != name}
            if where == "array":
                left[name] = broken_array(data.draw, arrays[name])
            np.savez("norms/arrays.npz", **left)
        assert_well_ended(run(*score, "--out", "o.parquet"), codes={0, 2, 4})

    damage()


def test_manifests(home: Path, run: Any) -> None:
    fit = ["norms", "fit", home / "people.csv", "--truth", "title", "--group", "gender",
           "--features", "hours", "--out", "norms"]  # fmt: skip
    assert run(*fit)[0] == 0
    manifest = json.loads(Path("norms/manifest.json").read_text())
    found = list(places(manifest))

    @settings(max_examples=25)
    @given(st.data())
    def damage(data: Any) -> None:
        words = words_of(data.draw, manifest, found)
        Path("norms/manifest.json").write_text(words)
        before = {path.name: path.read_bytes() for path in Path("norms").iterdir()}
        ended = run(*fit)
        assert_well_ended(ended, codes={0, 2})
        if ended[0]:
            assert {path.name: path.read_bytes() for path in Path("norms").iterdir()} == before
        else:
            shutil.rmtree("norms")
            assert run(*fit)[0] == 0

    damage()


SIDE = "o.parquet.partial"
STATEMENTS = [
    "DROP TABLE kept", "DROP TABLE about", "DELETE FROM about WHERE name = 'classes'",
    "UPDATE about SET value = '[' WHERE name = 'classes'",
    "UPDATE about SET value = NULL WHERE name = 'classes'",
    "UPDATE about SET value = '[1, 2]' WHERE name = 'classes'",
    "UPDATE about SET value = '[]' WHERE name = 'classes'",
    "UPDATE about SET value = '[\"0\", \"0\"]' WHERE name = 'classes'",
    "UPDATE about SET value = '[\"0\", \"1\", \"2\"]' WHERE name = 'classes'",
    "UPDATE about SET value = x'ff00' WHERE name = 'classes'",
    "UPDATE about SET value = 7 WHERE name = 'model'",
    "UPDATE kept SET scores = x'00'", "UPDATE kept SET scores = NULL", "UPDATE kept SET scores = 3",
    "UPDATE kept SET scores = x'000000000000f07f000000000000f07f'",
    "UPDATE kept SET scores = 'sixteen letters!'", "ALTER TABLE kept RENAME COLUMN scores TO s",
    "DROP TABLE about; CREATE TABLE about (a, b, c)", "DELETE FROM kept",
    "DROP TABLE kept; CREATE VIEW kept AS SELECT 1 AS text, 2 AS scores",
]  # fmt: skip


def test_side_files(home: Path, run: Any) -> None:
    Path("asked.py").write_text("def ask(texts):\n    return [[0.5, 0.5]] * len(texts)\n")
    texts = pl.read_parquet(home / "few.parquet")["text"].to_list()
    with KeptScores("kept", model=model_identity("asked:ask")) as kept:
        kept.add(texts[:9], np.full((9, 2), 0.5), classes=("0", "1"))
    content = Path("kept").read_bytes()
    score = ["score", home / "few.parquet", "--text", "text", "--model", "asked:ask", "--out",
             "o.parquet"]  # fmt: skip

    def put(new: bytes) -> None:
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{SIDE}{ending}").unlink(missing_ok=True)
        Path(SIDE).write_bytes(new)

    put(content)
    code, out, _ = run(*score)
    assert (code, "9 were kept from before" in out) == (0, True)

    @settings(max_examples=120)
    @given(st.data())
    def damage(data: Any) -> None:
        if data.draw(st.booleans()):
            put(broken_bytes(data.draw, content))
        else:
            put(content)
            with closing(sqlite3.connect(SIDE)) as file:
                file.executescript(data.draw(st.sampled_from(STATEMENTS)))
        ended = run(*score)
        assert_well_ended(ended, codes={0, 2, 4})
        if ended[0]:
            # What is wrong with it is left behind by starting anew.
            assert run(*score, "--fresh")[0] == 0

    damage()


def test_tallies(tmp_path: Path) -> None:
    table = {"y": ["a", "b", "a"] * 9, "d": ["a", "b", "b"] * 9, "g": ["f", "m", None] * 9}
    tallies = eh.tally(table, truth="y", decision="d", group="g", positive="a")
    path = tmp_path / "t.tallies"
    content = tallies.to_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["set.json"])
    found = list(places(document))

    def use() -> None:
        with suppress(DataError):
            again = eh.Tallies.load(path)
            again.fingerprint()
            again.table("counts/g").dense(["group", "truth"], "n")

    @settings(max_examples=200)
    @given(st.data())
    def damage(data: Any) -> None:
        changed = words_of(data.draw, document, found)
        with zipfile.ZipFile(path, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, changed if name == "set.json" else part)
        use()

    @settings(max_examples=100)
    @given(st.data())
    def damage_bytes(data: Any) -> None:
        path.write_bytes(broken_bytes(data.draw, content))
        use()

    damage()
    damage_bytes()


def test_tally_sets_in_commands(run: Any) -> None:
    table = {"y": [0, 1, 1] * 40, "s": [0.2, 0.6, 0.7, 0.9] * 30, "g": ["f", "m", "m"] * 40}
    eh.tally(table, truth="y", score="s", threshold=0.5, group="g").save("whole.tallies")
    with zipfile.ZipFile("whole.tallies") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["set.json"])
    found = list(places(document))

    @settings(max_examples=60)
    @given(st.data())
    def damage(data: Any) -> None:
        words = words_of(data.draw, document, found)
        with zipfile.ZipFile("t.tallies", "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, words if name == "set.json" else part)
        given = data.draw(st.sampled_from([["t.tallies"], ["t.tallies", "whole.tallies"]]))
        assert_well_ended(run("audit", *given, "--quiet"), codes={0, 2, 4})

    damage()


CHANGES = [
    "DELETE FROM about", "DELETE FROM periods", "DROP TABLE judgements", "DROP TABLE tallies",
    "UPDATE about SET value = '[' WHERE name = 'roles'", "UPDATE about SET value = x'ff'",
    "UPDATE about SET value = '7' WHERE name = 'every'", "DELETE FROM about WHERE name = 'seal'",
    "UPDATE settings SET document = '[]'", "UPDATE settings SET document = 7",
    "UPDATE periods SET first = 'x'", "UPDATE periods SET number = 'abc'",
    "UPDATE periods SET rows = -1", "UPDATE tallies SET content = x'00'",
    "UPDATE judgements SET document = '{}'", "UPDATE series SET content = x'00'",
    "UPDATE lines SET content = 'abc'", "INSERT INTO posts VALUES (99, 'x', 'y')",
]  # fmt: skip


def test_stores(run: Any) -> None:
    days = [f"2026-01-{5 + i // 40:02d}" for i in range(840)]
    table = {"d": [0, 1, 1, 0] * 210, "g": ["f", "m", "m"] * 280, "t": days}
    pl.DataFrame(table).write_csv("d.csv")
    watch = ["watch", "store", "d.csv", "--time", "t", "--every", "week", "--tz", "UTC",
             "--decision", "d", "--group", "g", "--limit", "selection_rate_gap=0.3"]  # fmt: skip
    assert run(*watch, "--quiet")[0] == 0
    with closing(sqlite3.connect("store/watch.sqlite")) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = Path("store/watch.sqlite").read_bytes()
    calls = [["watch", "store", "--json", "w.json"], ["alarms", "store"], [*watch, "--quiet"],
             ["watch", "store", "--export", "tables", "--quiet"]]  # fmt: skip

    @settings(max_examples=60)
    @given(st.data())
    def damage(data: Any) -> None:
        for left in Path("store").glob("watch.sqlite*"):
            left.unlink()
        Path("store/watch.sqlite").write_bytes(content)
        if data.draw(st.booleans()):
            Path("store/watch.sqlite").write_bytes(broken_bytes(data.draw, content))
        else:
            with closing(sqlite3.connect("store/watch.sqlite")) as file:
                names = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
                for (name,) in file.execute(names).fetchall():
                    file.execute(f"DROP TRIGGER {name}")
                file.executescript(data.draw(st.sampled_from(CHANGES)))
        assert_well_ended(run(*data.draw(st.sampled_from(calls))), codes={0, 2, 4})

    damage()


PRODIGY = [
    {"label": "SPAM", "_input_hash": i // 2, "answer": ("accept", "reject")[i % 3 == 0],
     "_annotator_id": "ab"[i % 2], "_timestamp": 1_700_000_000 + i,
     "meta": {"gold": "SPAM", "region": ("north", "south")[i % 2]}}
    for i in range(60)
]  # fmt: skip
STUDIO = [
    {"id": i, "data": {"text": "x", "region": "ns"[i % 2], "gold": "a"},
     "annotations": [{"id": 10 * i + k, "completed_by": {"id": k, "email": f"{k}@x"},
                      "lead_time": 3.5, "created_at": "2026-01-31T10:00:00Z",
                      "result": [{"from_name": "q", "to_name": "t", "type": "choices",
                                  "value": {"choices": ["ab"[(i + k) % 2]]}}]}
                     for k in range(3)]}
    for i in range(20)
]  # fmt: skip
EXPORTS = {
    "prodigy": (PRODIGY, "meta.region", "meta.gold", "SPAM"),
    "label-studio": (STUDIO, "data.region", "data.gold", "a"),
}


@pytest.mark.parametrize("tool", EXPORTS)
def test_exports(tool: str, run: Any) -> None:
    records, group, truth, positive = EXPORTS[tool]
    found = list(places(records))
    call = ["--from", tool, "--group", group, "--truth", truth, "--quiet"]
    call += ["--positive", positive]
    Path("e.json").write_text(json.dumps(records))
    assert run("audit", "e.json", *call)[::2] == (0, "")

    @settings(max_examples=80)
    @given(st.data())
    def damage(data: Any) -> None:
        Path("e.json").write_text(words_of(data.draw, records, found))
        assert_well_ended(run("audit", "e.json", *call), codes={0, 2, 4})

    damage()


TOML = {
    "lexicon": (
        (resources.files("evenhand.text") / "lexicons/gender_they.toml").read_text("utf-8"),
        ["swap", "few.parquet", "--text", "text", "--no-probe", "--out", "o.parquet",
         "--lexicon", "c.toml"],
    ),
    "form": (
        '[ll144]\nsex = "sex"\nrace = "race"\nunknown = ["x"]\naudit_date = 2026-01-31\n'
        'data = "past"\ntool = "T"\n[ll144.exclude]\nd = "few"\n',
        ["audit", "hired.csv", "--decision", "d", "--group", "sex", "--group", "race", "--form",
         "ll144=f.html", "--form-details", "c.toml", "--quiet"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOML)
def test_lexicons_and_details(kind: str, run: Any) -> None:
    text, call = TOML[kind]
    pl.DataFrame({"text": ["He ran.", "They are here."]}).write_parquet("few.parquet")
    table = {
        "d": [0, 1] * 60,
        "sex": ["f", "m", "m"] * 40,
        "race": ["a", "b", "c", "c"] * 29 + ["a", "b", "c", "d"],
    }
    pl.DataFrame(table).write_csv("hired.csv")
    lines = text.splitlines()
    Path("c.toml").write_text(text)
    assert run(*call)[::2] == (0, "")

    @settings(max_examples=80)
    @given(st.data())
    def damage(data: Any) -> None:
        left = list(lines)
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(left) - 1))
            name, separator, _ = left[at].partition(" = ")
            how = data.draw(st.sampled_from(["value", "value", "drop", "double", "cut"]))
            if how == "value" and separator:
                left[at] = f"{name} = {data.draw(st.sampled_from(TOKENS))}"
            elif how == "double":
                left.insert(at, left[at])
            else:
                left[at] = "" if how == "drop" else left[at][: len(left[at]) // 2]
        Path("c.toml").write_text("\n".join(left))
        code, _, err = run(*call)
        assert code in {0, 2, 4}, err
        assert "something went wrong inside" not in err

    damage()
