"""Commands killed at any moment: inputs whole, outputs old or new, and the next run succeeds."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.files.folders import check_folder
from evenhand.models.norms.scorer import load_norms
from evenhand.remedies.ledger.files import read_ledger
from evenhand.simulate.biographies import biographies, occupations

MODEL = "def ask(texts):\n    return [[len(text) % 3, 1.0] for text in texts]\n"
FEW = {name: occupations()[name] for name in ("professor", "nurse", "surgeon")}
OLD = "old\n"
INPUTS = ("bios.csv", "days.csv", "people.csv", "mine.py")
Check = Callable[[Path], None]


def whole_json(path: Path) -> None:
    json.loads(path.read_text())


def whole_page(path: Path) -> None:
    assert path.read_text().rstrip().endswith("</html>")


def whole_table(path: Path) -> None:
    assert len(pl.read_parquet(path)) == 240


def whole_rows(path: Path) -> None:
    assert len(pl.read_parquet(path)) > 0


def whole_folder(path: Path) -> None:
    """A folder that is as its manifest says, or not there yet."""
    if path.exists():
        check_folder(path, kind="tables of stores")


def whole_lines(path: Path) -> None:
    assert path.read_text().endswith("\n")


# What is run, and how each of its outputs is known to be new; folders have no old form but a run.
COMMANDS: dict[str, tuple[list[str], dict[str, Check]]] = {
    "swap": (
        ["swap", "bios.csv", "--text", "text", "--no-probe", "--out", "out.parquet",
         "--json", "out.json"],
        {"out.parquet": whole_table, "out.json": whole_json},
    ),
    "score": (
        ["score", "bios.csv", "--text", "text", "--model", "mine:ask", "--out", "out.parquet",
         "--batch-size", "16", "--json", "out.json"],
        {"out.parquet": whole_table, "out.json": whole_json},
    ),
    "norms fit": (
        ["norms", "fit", "people.csv", "--features", "hours", "--truth", "title", "--group",
         "gender", "--out", "norms"],
        {"norms": lambda path: load_norms(path) and None},
    ),
    "audit": (
        ["audit", "bios.csv", "--truth", "title", "--decision", "given", "--group", "gender",
         "--out", "out.html", "--json", "out.json", "--csv", "out.csv", "--markdown", "out.md",
         "--junit", "out.xml"],
        {"out.html": whole_page, "out.json": whole_json, "out.csv": whole_lines,
         "out.md": whole_lines, "out.xml": whole_lines},
    ),
    "compare": (
        ["compare", "bios.csv", "--text", "text", "--truth", "title", "--group", "gender",
         "--out", "ledger", "--remedy", "kamiran_calders", "--representation", "bow",
         "--seeds", "1"],
        {"ledger": lambda path: read_ledger(path) and None},
    ),
    "tally": (
        ["tally", "bios.csv", "--truth", "title", "--decision", "given", "--group", "gender",
         "--out", "out.tallies"],
        {"out.tallies": lambda path: eh.Tallies.load(path) and None},
    ),
    "watch": (
        ["watch", "store", "days.csv", "--time", "day", "--every", "week", "--tz", "UTC",
         "--truth", "title", "--decision", "given", "--group", "gender", "--positive", "nurse",
         "--limit", "selection_rate_gap=0.9", "--out", "out.html", "--json", "out.json",
         "--export", "tables"],
        {"out.html": whole_page, "out.json": whole_json, "tables": whole_folder},
    ),
    "remedy": (
        ["remedy", "augment", "bios.csv", "--text", "text", "--truth", "title", "--group",
         "gender", "--out", "out.parquet", "--json", "out.json"],
        {"out.parquet": whole_rows, "out.json": whole_json},
    ),
}  # fmt: skip
FOLDERS = {"norms", "ledger", "tables"}
# How often each is killed at a moment drawn at random; a comparison takes longest.
KILLS = dict.fromkeys(COMMANDS, 10)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = biographies(240, occupations=FEW, seed=3).frame
    titles = made["title"].to_list()
    given = pl.Series("given", titles[1:] + titles[:1])
    made.with_columns(given).write_csv(tmp_path / "bios.csv")
    days = pl.Series("day", [f"2026-01-{1 + i % 28:02d}" for i in range(240)])
    made.with_columns(given, days).write_csv(tmp_path / "days.csv")
    people = range(700)
    pl.DataFrame(
        {
            "hours": [30 + 5 * (i % 2) + i % 7 for i in people],
            "title": ["abcdef"[i % 6] for i in people],
            "gender": ["fm"[(i // 6) % 2] for i in people],
        }
    ).write_csv(tmp_path / "people.csv")
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path


def inputs(place: Path) -> dict[str, bytes]:
    return {name: (place / name).read_bytes() for name in INPUTS}


def leftovers(*places: Path) -> list[str]:
    return [path.name for place in places for path in place.rglob(".evenhand-*")]


def check_outputs(place: Path, outputs: dict[str, Check]) -> None:
    for name, is_whole in outputs.items():
        path = place / name
        if path.is_file() and path.read_text(errors="replace") == OLD:
            continue
        is_whole(path)


def prepare(place: Path, outputs: dict[str, Check], run: Callable[[], Any]) -> None:
    """Outputs of an older run: a file with a line in it, or a folder that was written before."""
    if FOLDERS & set(outputs):
        assert run().code == 0
    for name in set(outputs) - FOLDERS:
        (place / name).write_text(OLD)


@pytest.mark.kind("kills")
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_at_random_moments(command: str, place: Path, killable: Any) -> None:
    arguments, outputs = COMMANDS[command]
    before = inputs(place)
    first = killable(place, *arguments)
    assert first.code == 0, first.said
    prepare(place, outputs, lambda: killable(place, *arguments))
    moments = Random(f"{command} killed")
    died = 0
    for _ in range(KILLS[command]):
        end = killable(place, *arguments, seconds=moments.uniform(0, first.seconds))
        assert end.code in (0, -9), end.said
        died += end.code == -9
        assert inputs(place) == before
        check_outputs(place, outputs)
    assert died > KILLS[command] / 3, "the moments miss the command"
    again = killable(place, *arguments)
    assert again.code == 0, again.said
    check_outputs(place, outputs)
    assert not any((place / n).is_file() and (place / n).read_text("utf-8", "replace") == OLD
                   for n in outputs)  # fmt: skip
    assert inputs(place) == before
    assert leftovers(place, killable.temporary) == []


@pytest.mark.kind("kills")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("command", ["swap", "score", "norms fit"])
def test_killed_at_every_change_of_the_file_system(
    command: str, after: bool, place: Path, killable: Any
) -> None:
    arguments, outputs = COMMANDS[command]
    before = inputs(place)
    first = killable(place, *arguments)
    assert first.code == 0, first.said
    prepare(place, outputs, lambda: killable(place, *arguments))
    steps = killable(place, *arguments).steps
    assert steps is not None
    for step in range(1, steps + 1):
        for name in set(outputs) - FOLDERS:
            (place / name).write_text(OLD)
        end = killable(place, *arguments, step=step, after=after)
        assert end.code in (0, -9), end.said
        assert inputs(place) == before
        check_outputs(place, outputs)  # whoever reads a folder mends what was broken off
    again = killable(place, *arguments)
    assert again.code == 0, again.said
    assert leftovers(place, killable.temporary) == []
