"""Where output goes: never onto an input, never half written, never into the wrong thing."""

import ast
import itertools
import json
import os
import re
import socket
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli import main as entry
from evenhand.cli.main import evenhand
from evenhand.cli.output import FormOutput, Guarded, Input, Output
from evenhand.errors import DataError, UsageError
from evenhand.files import write_text, writing
from evenhand.files.folders import check_folder, close_folder, new_folder, open_folder
from evenhand.files.places import check_places
from evenhand.models.endpoint import EndpointPredictor
from evenhand.models.table import KeptScores, address_identity, model_identity
from evenhand.report.formats import as_card_section, put_into
from evenhand.watching.alarms import _post

kind = pytest.mark.kind
TABLE = pl.DataFrame({"y": [0, 1] * 60, "d": [0, 1, 1, 0] * 30, "g": ["f", "m"] * 60})
AUDIT = ["audit", "data.csv", "--truth", "y", "--decision", "d", "--group", "g"]
posix = pytest.mark.skipif(os.name != "posix", reason="needs devices, links and signals")


@pytest.fixture
def data(run: Any) -> Any:
    """A table to audit in the folder that commands run in."""
    TABLE.write_csv("data.csv")
    return run


# Every command, found by walking them: no output is an input or another output.


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(leaves(evenhand))


def typed(command: click.Command, kind: type) -> list[click.Parameter]:
    return [one for one in command.params if isinstance(one.type, kind)]


def arguments_of(name: str, given: dict[str, str]) -> list[str]:
    """A call of a command with these parameters, and whatever else it cannot do without."""
    command, words = COMMANDS[name], name.split()
    for one in command.params:
        value = given.get(one.name or "")
        if value is None and one.required:
            kind = one.type
            value = kind.choices[0] if isinstance(kind, click.Choice) else "1"
            value = f"unused-{one.name}" if isinstance(kind, Input | Output) else value
        if value is not None and isinstance(one.type, FormOutput):
            value = f"ll144={value}"
        if value is not None:
            words += [value] if isinstance(one, click.Argument) else [max(one.opts, key=len), value]
    return words


def flag_of(name: str, parameter: str) -> str:
    """The flag of a command's parameter, as messages name it."""
    return next(max(one.opts, key=len) for one in COMMANDS[name].params if one.name == parameter)


PAIRS = [
    (name, one.name, other.name)
    for name, command in COMMANDS.items()
    for one in typed(command, Output)
    for other in typed(command, Input)
]
OUTPUT_PAIRS = [
    (name, one.name, other.name)
    for name, command in COMMANDS.items()
    for one, other in itertools.combinations(typed(command, Output), 2)
]


@kind("outputs")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_declares_what_it_reads_and_writes(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, Guarded), "its outputs are not checked"
    for one in command.params:
        metavar = str(getattr(one, "metavar", "") or "")
        named = one.name or ""
        is_place = metavar in {"FILE", "KEYFILE", "FOLDER", "MODEL", "NAME|FILE", "FORM=FILE"} or (
            # An argument is a place, but for the name of a remedy.
            (isinstance(one, click.Argument) and metavar not in {"NAME", "p1|p2|p3"})
            or named in {"folder", "out"}
            or named.endswith("_path")
        )
        assert is_place == isinstance(one.type, Input | Output), f"--{named} has no such type"


def test_the_walk_finds_the_commands() -> None:
    assert {"audit", "norms fit", "charter new", "demo", "verify"} <= set(COMMANDS)
    assert len(PAIRS) > 35
    assert len(OUTPUT_PAIRS) > 20


@kind("outputs")
@pytest.mark.parametrize("way", ["same", "dotted", "absolute", "link", "hard link"])
@pytest.mark.parametrize(("name", "output", "read"), PAIRS, ids=[" ".join(p) for p in PAIRS])
def test_no_output_is_an_input(run: Any, name: str, output: str, read: str, way: str) -> None:
    Path("here").mkdir()
    Path("here/precious.parquet").write_text("precious")
    other = Path("here/other.parquet")
    if way == "link":
        other.symlink_to("precious.parquet")
    elif way == "hard link":
        other.hardlink_to("here/precious.parquet")
    place = {
        "same": "here/precious.parquet",
        "dotted": "./here/../here/precious.parquet",
        "absolute": str(Path("here/precious.parquet").absolute()),
    }.get(way, str(other))
    given = {read: "here/precious.parquet", output: place}
    code, out, err = run(*arguments_of(name, given))
    assert (code, out) == (2, "")
    assert err.startswith(f"evenhand: {flag_of(name, output)} {place!r} would overwrite ")
    assert Path("here/precious.parquet").read_text() == "precious"
    assert sorted(path.name for path in Path().rglob("*")) == sorted(
        ["here", "precious.parquet"] + ["other.parquet"] * ("link" in way)
    )


@kind("outputs")
@pytest.mark.parametrize(
    ("name", "one", "other"), OUTPUT_PAIRS, ids=[" ".join(p) for p in OUTPUT_PAIRS]
)
def test_no_output_is_another_output(run: Any, name: str, one: str, other: str) -> None:
    given = {one: "out.parquet", other: "./out.parquet"}
    code, out, err = run(*arguments_of(name, given))
    assert (code, out) == (2, "")
    assert " both name './out.parquet'. Give each a place of its own.\n" in err
    assert not Path("out.parquet").exists()


@kind("outputs")
@pytest.mark.parametrize(("name", "output", "read"), PAIRS, ids=[" ".join(p) for p in PAIRS])
def test_no_output_goes_into_a_folder_that_is_read(
    run: Any, name: str, output: str, read: str
) -> None:
    Path("read").mkdir()
    Path("read/part.parquet").write_text("precious")
    code, _, err = run(*arguments_of(name, {read: "read", output: "read/new.parquet"}))
    assert code == 2
    assert "lies in 'read', which is read: the next run would read it too. Choose another" in err
    code, _, err = run(*arguments_of(name, {read: "read/*.parquet", output: "read/new.parquet"}))
    assert code == 2
    assert "fits 'read/*.parquet', which is read: the next run would read it too." in err
    assert [path.name for path in Path("read").iterdir()] == ["part.parquet"]


@kind("outputs")
@pytest.mark.parametrize(
    ("outputs", "inputs", "folders", "words"),
    [
        ({"--out": "d", "--json": "d/x"}, {}, ["--out"], "--out and --json lie in each other."),
        ({"--json": "d/x", "--out": "d"}, {}, ["--out"], "--json and --out lie in each other."),
        ({"--json": "d/e/x.csv"}, {"the data": ["d/**/*.csv"]}, [], "fits 'd/**/*.csv'"),
        ({"--json": "-", "--csv": "/dev/stdout"}, {}, [], "--json and --csv both name"),
        ({"--json": "mine.py"}, {"what --model names": ["mine.py"]}, [], "would overwrite what"),
    ],
)
def test_places_that_lie_in_each_other(outputs, inputs, folders, words) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        check_places(outputs, inputs, folders=folders)


@kind("outputs")
@pytest.mark.parametrize(
    ("outputs", "inputs"),
    [
        ({"--json": "d/x.json"}, {"the data": ["d/*.csv"]}),
        ({"--json": "d/e/x.csv"}, {"the data": ["d/*.csv"]}),
        ({"--json": "/dev/null", "--csv": "/dev/null"}, {}),
        ({"--json": "a.json", "--csv": "a.csv"}, {"the data": ["a.parquet"]}),
        ({"--json": "-"}, {"the data": ["a.parquet"]}),
    ],
)
def test_places_of_their_own_are_left_alone(outputs, inputs) -> None:
    check_places(outputs, inputs)


@kind("outputs")
def test_a_folder_with_the_data_in_it_is_not_written_to(run: Any) -> None:
    Path("d").mkdir()
    TABLE.write_csv("d/a.csv")
    for name in ("norms fit", "compare"):
        code, _, err = run(*arguments_of(name, {"data": "d/a.csv", "out": "d"}))
        told = "evenhand: --out 'd' holds 'd/a.csv', which is read. Choose another place.\n"
        assert (code, err) == (2, told)


@kind("outputs")
def test_the_side_files_of_score_and_the_module_of_a_model_are_places_too(run: Any) -> None:
    Path("mine.py").write_text("precious")
    flags = ["--text", "t", "--out", "o.parquet"]
    code, _, err = run("score", "x.csv", *flags, "--model", "mine:ask", "--json", "mine.py")
    assert (code, "--json 'mine.py' would overwrite what --model names" in err) == (2, True)
    code, _, err = run("score", "x.csv", *flags, "--model", "m", "--json", "o.parquet.partial")
    assert (code, "both name 'o.parquet.partial'" in err) == (2, True)
    code, _, err = run("score", "o.parquet.partial", *flags, "--model", "m")
    assert (code, "the side file .partial of --out" in err) == (2, True)


@kind("outputs")
def test_the_page_that_report_writes_by_default_is_an_output(run: Any) -> None:
    Path("report.html").write_text("precious")
    code, _, err = run("report", "report.html")
    assert code == 2
    assert err == (
        "evenhand: --out 'report.html' would overwrite the record. Choose another place.\n"
    )


@kind("outputs")
def test_an_empty_name_is_no_place(data: Any) -> None:
    assert data(*AUDIT, "--json", "") == (
        2,
        "",
        "evenhand: --json names no place. Give a name such as out.parquet.\n",
    )


# Links, devices and pipes.


@kind("devices")
@posix
def test_a_link_stays_and_its_target_is_replaced(data: Any) -> None:
    Path("kept").mkdir()
    Path("kept/real.json").write_text("old")
    Path("link.json").symlink_to("kept/real.json")
    Path("new.json").symlink_to("kept/none.json")
    for name, real in (("link.json", "kept/real.json"), ("new.json", "kept/none.json")):
        assert data(*AUDIT, "--json", name, "--quiet")[0] == 0
        assert Path(name).is_symlink()
        assert json.loads(Path(real).read_text())["data"]["rows"] == 120
    assert sorted(path.name for path in Path("kept").iterdir()) == ["none.json", "real.json"]


def device(name: str, numbers: tuple[int, int]) -> str:
    """A device of our own where we may make one: no test may put the system's at risk."""
    if os.geteuid() == 0:
        try:
            os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(*numbers))
            open(name, "wb", buffering=0).close()
        except OSError:
            pytest.skip("as root, and no device can be made here")
        return name
    return {(1, 3): "/dev/null", (1, 7): "/dev/full"}[numbers]


@kind("devices")
@posix
def test_a_device_stays_a_device(data: Any) -> None:
    null = device("null.json", (1, 3))
    flags = ["--json", null, "--csv", null, "--out", null, "--markdown", null, "--junit", null]
    assert data(*AUDIT, *flags, "--quiet")[0] == 0
    assert stat.S_ISCHR(os.stat(null).st_mode)
    pl.DataFrame({"bio": ["He ran."]}).write_csv("bios.csv")
    code, _, _ = data("swap", "bios.csv", "--text", "bio", "--no-probe", "--out", null)
    assert (code, stat.S_ISCHR(os.stat(null).st_mode)) == (0, True)


@kind("devices")
@posix
def test_a_full_device_is_told(data: Any) -> None:
    full = device("full.json", (1, 7))
    assert data(*AUDIT, "--json", full, "--quiet") == (
        2,
        "",
        f"evenhand: '{full}' cannot be written: No space left on device. Choose another place.\n",
    )


@kind("devices")
@posix
@pytest.mark.parametrize("name", ["fifo", "out.parquet"])
def test_a_pipe_is_written_to_as_a_stream(data: Any, name: str) -> None:
    os.mkfifo(name)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(Path(name).read_bytes()))
    reader.start()
    if name == "fifo":
        assert data(*AUDIT, "--json", name, "--quiet")[0] == 0
    else:
        pl.DataFrame({"bio": ["He ran."] * 30_000}).write_csv("bios.csv")
        assert data("swap", "bios.csv", "--text", "bio", "--no-probe", "--out", name)[0] == 0
    reader.join()
    assert stat.S_ISFIFO(os.stat(name).st_mode)
    assert got[0][:4] == (b"{\n " if name == "fifo" else b"PAR1")[:4] or got[0].startswith(b"{")
    assert len(got[0]) > 1_000


@kind("devices")
@posix
def test_a_pipe_without_a_reader_is_given_up(data: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(writing, "PATIENCE", 0.2)
    os.mkfifo("fifo")
    assert data(*AUDIT, "--json", "fifo", "--quiet") == (
        2,
        "",
        "evenhand: 'fifo' is a pipe that nobody reads, after 0.2 seconds. Start its reader first."
        "\n",
    )


@kind("devices")
@posix
def test_a_reader_that_stops_reading_is_given_up(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(writing, "PATIENCE", 0.2)
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(UsageError, match=r"was not read on for 0\.2 seconds"):
        write_text(tmp_path / "fifo", "x" * 2_000_000)
    os.close(reader)


@kind("devices")
@posix
def test_a_reader_that_leaves_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    threading.Timer(0.2, os.close, [reader]).start()
    with pytest.raises(UsageError, match="its reader has gone"):
        write_text(tmp_path / "fifo", "x" * 2_000_000)


@kind("devices")
@posix
@pytest.mark.parametrize("kind", ["folder", "socket"])
def test_what_is_no_file_is_refused(data: Any, kind: str) -> None:
    if kind == "folder":
        Path("x").mkdir()
    else:
        held = socket.socket(socket.AF_UNIX)
        held.bind("x")
        held.close()
    code, _, err = data(*AUDIT, "--json", "x")
    assert (code, err) == (2, f"evenhand: 'x' cannot be written: it is a {kind}. Choose another "
                              "place.\n")  # fmt: skip


@kind("devices")
@posix
def test_standard_output_by_its_path(shell: Any, tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "data.csv")
    audit = " ".join(AUDIT)
    done = shell(f"$EVENHAND {audit} --json /dev/stdout")
    assert json.loads(done.stdout)["data"]["rows"] == 120
    done = shell(f"$EVENHAND {audit} --json /dev/stdout > file.json; ls -a")
    assert json.loads((tmp_path / "file.json").read_text())["data"]["rows"] == 120
    assert done.stdout.split() == [".", "..", "data.csv", "file.json", "temporary"]


# Documents that come through pipes and devices.

DOCUMENTS: dict[str, list[str]] = {
    "a record": ["report", "PLACE", "--out", "r.html"],
    "a charter": ["charter", "check", "PLACE"],
    "a tally set": ["audit", "PLACE.tallies"],
    "a key": ["tally", "data.csv", "--decision", "d", "--group", "g", "--labeler", "y",
              "--pseudonyms", "PLACE", "--out", "t.tallies"],
    "details of a form": ["audit", "data.csv", "--decision", "d", "--group", "g", "--form",
                          "ll144=f.html", "--form-details", "PLACE"],
}  # fmt: skip


@kind("pipes")
@posix
@pytest.mark.parametrize("what", DOCUMENTS)
def test_documents_from_pipes_that_nobody_writes(data: Any, what: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("evenhand.files.reading.PATIENCE", 0.2)
    os.mkfifo("pipe")
    os.symlink("pipe", "pipe.tallies")
    typed = [part.replace("PLACE", "pipe") for part in DOCUMENTS[what]]
    code, out, err = data(*typed)
    assert (code, out) == (2, "")
    assert "is a pipe that nobody writes to, after 0.2 seconds. Save it to a file first." in err
    null = device("null", (1, 3))
    os.symlink(null, "null.tallies")
    code, _, err = data(*(part.replace("PLACE", "null") for part in DOCUMENTS[what]))
    assert (code, "is a device or a socket, not a file." in err) == (2, True)


@kind("pipes")
@posix
def test_a_document_from_a_pipe_is_read(data: Any) -> None:
    assert data(*AUDIT, "--json", "a.json", "--quiet")[0] == 0
    content = Path("a.json").read_bytes()
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(content))
    writer.start()
    code, out, err = data("report", "pipe", "--markdown", "-")
    writer.join()
    assert (code, err) == (0, "")
    assert out.startswith("### Evenhand")


# Folders.


def make_folder(path: Path, **texts: str) -> None:
    with new_folder(path, kind="norms") as made:
        for name, text in texts.items():
            (made / name).write_text(text)


@kind("folders replaced")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "diary.txt").write_text("mine"), "it holds 'diary.txt', which Evenhand"),
        (lambda f: (f / "sub").mkdir() or (f / "sub/a").write_text("x"), "it holds 'sub/a', which"),
        (lambda f: (f / "a").write_text("mine"), "'a' in it was changed since Evenhand wrote it"),
        (lambda f: (f / "manifest.json").unlink(), "it holds 'a', which Evenhand did not write"),
        (lambda f: (f / "manifest.json").write_text("[" * 9_999), "it holds 'a', which Evenhand"),
        (lambda f: (f / "l").symlink_to("/etc"), "it holds 'l', which Evenhand did not write"),
        (lambda f: (f / "a").unlink() or (f / "a").symlink_to("b"), "'a' in it was changed"),
    ],
    ids=["more", "deeper", "changed", "no manifest", "no JSON", "link", "replaced"],
)
def test_only_a_folder_that_is_wholly_ours_is_replaced(tmp_path: Path, spoil, words: str) -> None:
    home = tmp_path / "norms"
    make_folder(home, a="one", b="two")
    make_folder(home, a="three", b="two")
    assert (home / "a").read_text() == "three"
    spoil(home)
    held = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=re.escape(f"'{home}' cannot be written: {words}")):
        make_folder(home, a="four")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == held


@kind("folders replaced")
def test_a_folder_of_another_kind_is_not_replaced(tmp_path: Path) -> None:
    make_folder(tmp_path / "x", a="one")
    with pytest.raises(UsageError, match="it is a folder of norms, not of ledgers"):
        check_folder(tmp_path / "x", kind="ledgers")


@kind("folders replaced")
@pytest.mark.parametrize("name", [".", "..", "../.."])
def test_the_working_folder_is_never_replaced(run: Any, name: str, tmp_path: Path) -> None:
    TABLE.write_csv("data.csv")
    flags = ["--features", "d", "--truth", "y", "--group", "g", "--out", name]
    code, _, err = run("norms", "fit", "elsewhere.csv", *flags)
    assert code == 2
    assert "it is the folder you are in, or one around it. Choose another place." in err
    assert Path("data.csv").exists()


@kind("folders replaced")
def test_norms_are_fitted_again_and_into_nothing_else(run: Any) -> None:
    people = range(700)
    pl.DataFrame(
        {
            "hours": [30 + 5 * (i % 2) + i % 7 for i in people],
            "title": ["abcdef"[i % 6] for i in people],
            "gender": ["fm"[(i // 6) % 2] for i in people],
        }
    ).write_csv("people.csv")
    fit = ["norms", "fit", "people.csv", "--features", "hours", "--truth", "title", "--group",
           "gender", "--out"]  # fmt: skip
    assert run(*fit, "norms")[0] == 0
    assert run(*fit, "norms")[0] == 0
    Path("norms/thesis.tex").write_text("years")
    code, _, err = run(*fit, "norms")
    assert (code, err) == (2, "evenhand: 'norms' cannot be written: it holds 'thesis.tex', which "
                              "Evenhand did not write. Choose another place.\n")  # fmt: skip
    assert Path("norms/thesis.tex").read_text() == "years"
    Path("linked").symlink_to("elsewhere")
    assert run(*fit, "linked")[0] == 0
    assert Path("linked").is_symlink()
    assert run("norms", "score", "people.csv", "--norms", "linked", "--out", "o.parquet")[0] == 0


@kind("folders replaced")
def test_a_folder_filled_file_by_file_is_ours_as_it_was_left(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    open_folder(home, ["a.txt", "parts/*"], kind="demos")
    (home / "a.txt").write_text("half")  # a run that was killed here may begin again
    (home / "parts").mkdir()
    (home / "parts/1").write_text("x")
    open_folder(home, ["a.txt", "parts/*"], kind="demos")
    close_folder(home, kind="demos")
    check_folder(home, kind="demos")
    (home / "a.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"'a\.txt' in it was changed since Evenhand wrote it"):
        open_folder(home, ["a.txt"], kind="demos")


@kind("folders replaced")
def test_the_demo_goes_into_a_folder_of_its_own(run: Any) -> None:
    Path("mine").mkdir()
    Path("mine/model.joblib").write_text("precious")
    code, _, err = run("demo", "--folder", "mine")
    assert (code, "it holds 'model.joblib', which Evenhand did not write" in err) == (2, True)
    assert run("demo", "--folder", ".")[0] == 2


@kind("folders replaced")
@posix
def test_what_another_process_still_uses_is_not_swept(tmp_path: Path) -> None:
    with writing.staging(tmp_path, target="x") as stage:
        (stage.folder / "whole").write_text("half")
        write_text(tmp_path / "y", "done")
        assert (stage.folder / "whole").read_text() == "half"
        left = tmp_path / ".evenhand-dead"
        left.mkdir()
        (left / "owner").write_text("{}")
        (left / "copy").write_text("a copy of the data")
        write_text(tmp_path / "z", "done")
        assert not left.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["y", "z"]


@kind("folders replaced")
def test_the_mode_of_a_file_stays(tmp_path: Path) -> None:
    secret = tmp_path / "audit.json"
    secret.write_text("old")
    secret.chmod(0o600)
    write_text(secret, "new")
    assert (secret.read_text(), stat.S_IMODE(secret.stat().st_mode)) == ("new", 0o600)


# What the system refuses is no bug of ours.


@kind("exit 5")
@posix
@pytest.mark.parametrize(
    ("size", "line"),
    [
        (4, "swap bios.csv --text text --no-probe --out out.parquet"),
        (4, "swap bios.parquet --text text --no-probe --out out.parquet"),
        (4, "score bios.csv --text text --model mine:ask --out out.parquet"),
        (16, "score bios.parquet --text text --model mine:ask --out out.parquet"),
        (4, "score bios.parquet --text text --model mine:ask --out out.parquet"),
        (1, "norms fit people.parquet --features hours --truth title --group gender --out norms"),
        (4, "audit people.csv --truth title --decision title --group gender --out out.html"),
    ],
)
def test_a_full_disk_ends_in_a_sentence(shell: Any, tmp_path: Path, size: int, line: str) -> None:
    words = " ".join(f"word{i}" for i in range(40))
    bios = pl.DataFrame({"text": [f"He ran {i} {words}." for i in range(900)]})
    bios.write_csv(tmp_path / "bios.csv")
    bios.write_parquet(tmp_path / "bios.parquet")
    people = range(700)
    people_table = pl.DataFrame(
        {
            "hours": [30 + 5 * (i % 2) + i % 7 for i in people],
            "title": ["abcdef"[i % 6] for i in people],
            "gender": ["fm"[(i // 6) % 2] for i in people],
        }
    )
    people_table.write_csv(tmp_path / "people.csv")
    people_table.write_parquet(tmp_path / "people.parquet")
    (tmp_path / "mine.py").write_text("def ask(texts):\n    return [[0.5, 0.5]] * len(texts)\n")
    (tmp_path / "out.html").write_text("old")
    # No file may grow over some KiB: what a full disk does, at a size of our choosing.
    done = shell(f"trap '' XFSZ; ulimit -f {size}; exec $EVENHAND {line}")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert re.fullmatch(r"evenhand: [^\n]+\.\n", done.stderr), done.stderr
    assert (tmp_path / "out.html").read_text() == "old"
    assert not list(tmp_path.rglob(".evenhand-*"))


@kind("exit 5")
@posix
def test_a_forbidden_folder_ends_in_a_sentence(data: Any) -> None:
    code, out, err = data(*AUDIT, "--json", "/proc/evenhand.json")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"evenhand: '/proc/evenhand.json' cannot be written: [^\n]+\.\n", err)
    pl.DataFrame({"bio": ["He ran."]}).write_csv("bios.csv")
    code, out, err = data("swap", "bios.csv", "--text", "bio", "--out", "/proc/x.parquet")
    assert (code, out) == (2, "")
    code, out, err = data(*arguments_of("norms fit", {"data": "data.csv", "out": "/proc/norms"}))
    assert (code, out) == (2, "")
    assert "Traceback" not in err


@kind("exit 5")
def test_no_room_for_temporary_files_is_told(data: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(writing.tempfile, "gettempdir", lambda: "/proc")
    pl.DataFrame({"bio": ["He ran."]}).write_csv("bios.csv")
    code, _, err = data("swap", "bios.csv", "--text", "bio", "--out", "x.parquet")
    assert code == 2
    assert err.startswith("evenhand: There is no place for temporary files: ")
    assert err.endswith(" Set TMPDIR to a folder with room.\n")


@kind("exit 5")
@posix
def test_terminals_that_know_only_ascii(shell: Any, tmp_path: Path) -> None:
    TABLE.with_columns(g=pl.lit("é")).vstack(TABLE).write_csv(tmp_path / "data.csv")
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = shell(f"$EVENHAND {' '.join(AUDIT)}", **ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\\xe9" in done.stdout
    done = shell(f"$EVENHAND {' '.join(AUDIT)} --json -", **ascii_only)
    assert "é" in {row["group"] for row in json.loads(done.stdout)["results"]}
    done = shell("$EVENHAND audit data.csv --decision é --group g", **ascii_only)
    assert (done.returncode, done.stderr.isascii()) == (2, True)


@kind("exit 5")
@posix
@pytest.mark.parametrize(
    ("closed", "code"),
    [(">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), ("> /dev/full", 2), ("2> /dev/full", 0)],
)
def test_streams_that_are_closed_or_full(
    shell: Any, tmp_path: Path, closed: str, code: int
) -> None:
    TABLE.write_csv(tmp_path / "data.csv")
    done = shell(f"$EVENHAND {' '.join(AUDIT)} --json out.json {closed}")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["data"]["rows"] == 120
    if code:
        assert done.stderr == (
            "evenhand: Standard output cannot be written: No space left on device.\n"
        )
    wrong = shell(f"$EVENHAND audit data.csv --decision nothing {closed}")
    assert wrong.returncode == 2


@kind("exit 5")
@posix
def test_a_reader_that_has_seen_enough_does_not_change_the_verdict(
    shell: Any, tmp_path: Path
) -> None:
    TABLE.write_csv(tmp_path / "data.csv")
    line = f"$EVENHAND {' '.join(AUDIT)} --limit selection_rate_gap=0.0001 | true"
    TABLE.with_columns(d=pl.when(pl.col("g") == "f").then(1).otherwise(0)).write_csv(
        tmp_path / "data.csv"
    )
    done = shell(f"set -o pipefail; sleep 0.2; {line}")
    assert (done.returncode, done.stderr) == (1, "")


@kind("exit 5")
def test_two_runs_of_score_do_not_share_a_side_file(run: Any) -> None:
    pl.DataFrame({"bio": ["He ran."]}).write_csv("bios.csv")
    Path("theirs.py").write_text("def ask(texts):\n    return [[0.5, 0.5]] * len(texts)\n")
    flags = ["--text", "bio", "--model", "theirs:ask", "--out", "o.parquet"]
    with KeptScores("o.parquet.partial", model="x") as held:
        held.add(["He ran."], pl.DataFrame({"a": [0.5], "b": [0.5]}).to_numpy(), classes=("0", "1"))
        for more in ([], ["--fresh"]):
            assert run("score", "bios.csv", *flags, *more) == (
                2,
                "",
                "evenhand: Another run is writing the side file 'o.parquet.partial'. Wait for it, "
                "or choose another --out.\n",
            )
        assert held.unknown(["He ran."]) == []
    assert run("score", "bios.csv", *flags, "--fresh")[0] == 0
    assert not Path("o.parquet.partial").exists()


@kind("exit 5")
@posix
def test_runs_of_score_at_once_end_well(shell: Any, tmp_path: Path) -> None:
    pl.DataFrame({"bio": [f"He ran {i}." for i in range(400)]}).write_csv(tmp_path / "bios.csv")
    (tmp_path / "mine.py").write_text(
        "import time\ndef ask(texts):\n    time.sleep(0.02)\n    return [[0.5, 0.5]] * len(texts)\n"
    )
    score = "$EVENHAND score bios.csv --text bio --model mine:ask --batch-size 16 --out o.parquet"
    done = shell(f"for i in 1 2 3; do ( {score}; echo code $? ) & done; wait")
    codes = sorted(re.findall(r"code (\d)", done.stdout))
    assert codes[0] == "0"
    assert set(codes) <= {"0", "2"}, done.stderr
    assert len(pl.read_parquet(tmp_path / "o.parquet")) == 400
    names = sorted(path.name for path in tmp_path.iterdir() if path.name[0] != "_")
    assert names == ["bios.csv", "mine.py", "o.parquet", "temporary"]


# Servers that never end.


@contextmanager
def server(
    talk: Callable[[socket.socket, threading.Event], None], said_all: threading.Event | None = None
) -> Iterator[str]:
    """A server that talks to whoever connects until the test is over, 20 seconds at most."""
    over = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)
    threads: list[threading.Thread] = []

    def serve() -> None:
        for _ in range(200):
            if over.is_set():
                return
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            threads.append(threading.Thread(target=chat, args=[connection]))
            threads[-1].start()

    def chat(connection: socket.socket) -> None:
        with connection:
            connection.settimeout(5)
            try:
                connection.recv(65_536)
                talk(connection, over)
            except OSError:
                return
            if said_all is not None and not over.is_set():
                said_all.set()

    threads.append(threading.Thread(target=serve))
    threads[0].start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/predict"
    finally:
        over.set()
        for thread in threads:
            thread.join()
        listening.close()


def trickle(first: bytes, part: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(first)
        for _ in range(500):
            if over.wait(0.03):
                return
            connection.sendall(part)

    return talk


def flood(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not over.is_set():
        connection.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")


OK = b"HTTP/1.1 200 OK\r\n"
TALKS = {
    "silence": lambda connection, over: over.wait(15) and None,
    "status line": trickle(b"HTTP/1.1 2", b"0"),
    "headers": trickle(OK, b"X: y\r\n"),
    "one header": trickle(OK + b"X: ", b"y"),
    "body": trickle(OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "body without length": trickle(OK + b"\r\n", b" "),
    "chunks": trickle(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "chunk extensions": trickle(OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
    "100 Continue": trickle(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an error's body": trickle(b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n", b" "),
}


@kind("time-outs")
@pytest.mark.parametrize("talk", TALKS)
def test_the_time_out_bounds_the_whole_call(talk: str) -> None:
    said_all = threading.Event()
    with server(TALKS[talk], said_all) as url:
        with pytest.raises(DataError) as caught:
            EndpointPredictor(url, timeout=0.4, retries=0).scores(["a"])
        # The server would talk for 15 seconds: what ended the call was its own limit.
        assert not said_all.is_set()
    assert re.search(
        r"did not answer within 0\.4 seconds|answered 500 No|broke off", str(caught.value)
    )


@kind("time-outs")
@pytest.mark.parametrize("talk", ["headers", "100 Continue", "status line"])
def test_an_address_that_is_told_of_alarms_has_a_time_too(
    talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_all = threading.Event()
    monkeypatch.setattr("evenhand.watching.alarms.ONE_TRY", 0.6)
    monkeypatch.setattr("evenhand.watching.alarms.PAUSES", (0.0,))
    with server(TALKS[talk], said_all) as url:
        reason = _post(url, {"id": 1}, key="k", end=float("inf"))
        assert not said_all.is_set()
    assert re.search("did not answer in time|broke off its answer", reason)


@kind("time-outs")
def test_the_size_of_an_answer_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr("evenhand.models.endpoint.LARGEST_ANSWER", 4 * 2**20)
    with server(flood) as url, pytest.raises(DataError, match=r"answered with more than 4 MiB\."):
        EndpointPredictor(url, timeout=15, retries=0).scores(["a"])


@kind("exit 5")
@pytest.mark.parametrize(
    "answer",
    [b"[" * 100_000, b'{"scores": [[' + b"9" * 5_000 + b"]]}", b'{"scores": [[1e999]]}',
     b'{"scores": [[NaN]]}', b'{"scores": 1}', b'{"scores": [[1]], "classes": 3}', b"\xff\xfe"],
    ids=["deep", "digits", "infinite", "NaN", "number", "classes", "bytes"],
)  # fmt: skip
def test_answers_that_are_none(answer: bytes) -> None:
    head = OK + f"Content-Length: {len(answer)}\r\n\r\n".encode()
    talk = server(lambda connection, _: connection.sendall(head + answer))
    with talk as url, pytest.raises(DataError) as caught:
        EndpointPredictor(url, timeout=5, retries=0).scores(["a"])
    assert str(caught.value).startswith(url)


# Nothing leaks: secrets, terminal escapes, formulas, copies of the data.


@kind("secrets")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://me:hunter2@127.0.0.1:1/p", "url='http://…@127.0.0.1:1/p' holds a password"),
        ("http://127.0.0.1:1/p?token=hunter2", "http://127.0.0.1:1/p?… cannot be reached"),
        ("http://127.0.0.1:x/p?token=hunter2", "url='http://127.0.0.1:x/p?…' is not an address"),
        ("http:///p?token=hunter2", "url='http:///p?…' is not an address"),
        ("http://127.0.0.1:1/p x?token=hunter2", "is not an address"),
        ("http://[::1/p?token=hunter2", "is not an address"),
    ],
)
def test_secrets_of_an_address_are_never_shown(run: Any, url: str, words: str) -> None:
    pl.DataFrame({"bio": ["He ran."]}).write_csv("bios.csv")
    flags = ["--text", "bio", "--out", "o.parquet", "--retries", "0", "--timeout", "1"]
    code, out, err = run("score", "bios.csv", *flags, "--model", url)
    assert code in (2, 4)
    assert words in err
    assert "hunter2" not in out + err
    for path in Path().iterdir():
        assert b"hunter2" not in path.read_bytes()


@kind("secrets")
def test_secrets_of_an_address_stay_out_of_side_files(tmp_path: Path) -> None:
    url = "https://host/p?model=a&api_key=hunter2&k=sesame"
    with KeptScores(tmp_path / "side", model=model_identity(url)) as kept:
        kept.add(["x"], pl.DataFrame({"a": [0.5], "b": [0.5]}).to_numpy(), classes=("0", "1"))
    about = dict(sqlite3.connect(tmp_path / "side").execute("SELECT * FROM about"))
    assert about["model"].startswith("https://host/p?… ")
    for path in tmp_path.iterdir():
        assert b"hunter2" not in path.read_bytes()
        assert b"sesame" not in path.read_bytes()
    assert "hunter2" not in repr(EndpointPredictor(url))
    # A new key goes on with what is scored; another model does not.
    assert address_identity(url) == address_identity(url.replace("hunter2", "other"))
    assert address_identity(url) != address_identity(url.replace("model=a", "model=b"))


@kind("secrets")
def test_secrets_of_an_address_stay_out_of_records(data: Any, monkeypatch: Any) -> None:
    typed = ["evenhand", *AUDIT, "--spark-master", "spark://me:hunter2@host?token=sesame"]
    monkeypatch.setattr("sys.argv", typed)
    assert data(*AUDIT, "--json", "a.json", "--quiet")[0] == 0
    text = Path("a.json").read_text()
    assert "spark://…@host?…" in text
    assert "hunter2" not in text
    assert "sesame" not in text


ESCAPE = "\x1b]0;owned\x07\x9b31m\u202e"


@kind("escapes")
@pytest.mark.parametrize(
    "typed",
    [
        ["audit", f"{ESCAPE}.csv", "--decision", "d"],
        ["audit", "data.csv", "--decision", ESCAPE],
        ["audit", "data.csv", "--decision", "d", "--group", "g", "--limit", f"{ESCAPE}=1"],
        ["audit", "data.csv", "--decision", "d", "--charter", "bad.toml"],
        ["audit", "odd.csv", "--decision", "d", "--group", f"g{ESCAPE}", "--dry-run"],
        ["audit", "odd.csv", "--decision", "d", "--group", f"g{ESCAPE}"],
        ["audit", "odd.csv", "--decision", "d", "--group", f"g{ESCAPE}", "--positive", ESCAPE],
        ["audit", "odd.csv", "--decision", f"g{ESCAPE}"],
        ["audit", "data.csv", f"--{ESCAPE}"],
        [ESCAPE],
        ["report", "bad.json"],
        ["report", f"{ESCAPE}.json"],
        ["charter", "check", "bad.toml"],
        ["charter", "show", "odd.toml"],
        ["charter", "check", "odd.toml"],
        ["swap", "odd.csv", "--text", f"g{ESCAPE}", "--out", f"{ESCAPE}.parquet", "--no-probe"],
        ["score", "odd.csv", "--text", f"g{ESCAPE}", "--model", "odd:ask", "--out", "o.parquet"],
        ["verify", "odd.csv", "--truth", "y", "--decision", "d", "--group", f"g{ESCAPE}"],
        ["norms", "score", "odd.csv", "--norms", ESCAPE, "--out", "o.parquet"],
    ],
    ids=lambda typed: " ".join(typed).replace(ESCAPE, "ESC"),
)
def test_terminal_escapes_never_reach_a_terminal(data: Any, typed: list[str]) -> None:
    label = f"f{ESCAPE}"
    odd = TABLE.with_columns(g=pl.when(pl.col("g") == "f").then(pl.lit(label)).otherwise("g"))
    odd.rename({"g": f"g{ESCAPE}"}).write_csv("odd.csv")
    Path("odd.py").write_text(f"def ask(texts):\n    raise ValueError({ESCAPE!r})\n")
    Path("bad.toml").write_text(f'schema = "x"\n["{ESCAPE}"]\n')
    Path("odd.toml").write_text(
        'schema = "evenhand.charter/1"\n[system]\nname = '
        f"{json.dumps(ESCAPE)}\n[[choices]]\ncost_ratio = 2\nreason = {json.dumps(ESCAPE)}\n"
    )
    Path("bad.json").write_text(json.dumps({"schema": f"x{ESCAPE}"}))
    _, out, err = data(*typed)
    assert out + err
    for sign in ("\x1b", "\x07", "\x9b", "\u202e"):
        assert sign not in out + err


@kind("escapes")
def test_everything_is_printed_through_one_door() -> None:
    """A command that printed by itself could let an escape through."""
    for path in Path(entry.__file__).parent.glob("*.py"):
        if path.name == "output.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"print", "click.echo", "click.secho"}, (path, node.lineno)


@kind("formulas")
def test_labels_are_no_formulas_in_tables_for_people(data: Any) -> None:
    names = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "-1", "plain"]
    table = {"d": [0, 1] * 140, "g": [names[i % 7] for i in range(280)]}
    pl.DataFrame(table).write_parquet("odd.parquet")
    flags = ["--decision", "d", "--group", "g", "--csv", "rows.csv", "--json", "a.json"]
    assert data("audit", "odd.parquet", *flags, "--quiet")[0] == 0
    rows = pl.read_csv("rows.csv", infer_schema=False)
    shown = set(rows["group"].to_list()) - {None}
    assert {"'=cmd|' /C calc'!A0", "'+1+1", "'-2+3", "'@SUM(A1)", "'\t=1", "-1"} <= shown
    gaps = rows.filter(pl.col("measure") == "selection_rate_gap")["value"].drop_nulls()
    assert [float(value) for value in gaps]  # numbers stay numbers, below 0 too
    # What a command reads back stays as it is.
    held = {row["group"] for row in json.loads(Path("a.json").read_text())["results"]}
    assert set(names) <= held


@kind("model card")
def test_a_backtick_does_not_break_out_of_the_model_card() -> None:
    odd = "g` <script>alert(1)</script> <!-- evenhand: end --> `"
    record = {
        "schema": "evenhand.audit/1", "made": {"version": "1"}, "results": [], "findings": [],
        "data": {"fingerprint": "f", "rows": 3, "roles": {"group": [odd, "plain"]}},
        "verdict": "not assessed",
    }  # fmt: skip
    section = as_card_section(record)
    line = next(line for line in section.splitlines() if line.startswith("Audited on"))
    assert re.sub(r"\\.", "", line).count("`") == 2  # those around the plain name
    assert "<script" not in re.sub(r"\\.", "", line)
    assert section.count("<!-- evenhand: end -->") == 1
    card = put_into("# Card\n", section)
    assert put_into(card, section) == card


@kind("copies of the data")
@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_copies_of_the_data_are_removed_when_a_run_is_stopped(
    killable: Any, tmp_path: Path, name: str
) -> None:
    import signal

    number = int(getattr(signal, name))
    bios = pl.DataFrame({"bio": [f"He ran {i}." for i in range(500)]})
    bios.write_csv(tmp_path / "bios.csv")
    (tmp_path / "slow.py").write_text(
        "import time\ndef ask(texts):\n    time.sleep(0.2)\n    return [[0.5, 0.5]] * len(texts)\n"
    )
    flags = ["--text", "bio", "--model", "slow:ask", "--batch-size", "8", "--out", "o.parquet"]
    end = killable(
        tmp_path, "score", "bios.csv", *flags, seconds=0.3, when="o.parquet.partial", signal=number
    )
    assert (end.code, end.said) == (128 + number, "evenhand: stopped.\n")
    assert list(killable.temporary.iterdir()) == []
    assert not list(tmp_path.rglob(".evenhand-*"))
    # After a kill they stay, and go with the next run.
    flags[-1] = "p.parquet"
    end = killable(tmp_path, "score", "bios.csv", *flags, seconds=0.3, when="p.parquet.partial")
    assert end.code == -9
    assert len(list(killable.temporary.iterdir())) == 1
    bios.head(2).write_csv(tmp_path / "few.csv")
    assert (
        killable(tmp_path, "swap", "few.csv", *flags[:2], "--no-probe", "--out", "s.parquet").code
        == 0
    )
    assert list(killable.temporary.iterdir()) == []


@kind("time-outs")
@posix
def test_a_stop_ends_a_step_that_does_not_listen(killable: Any, tmp_path: Path) -> None:
    import signal

    pl.DataFrame({"bio": ["He ran."]}).write_csv(tmp_path / "bios.csv")
    # Code outside Python that lets others run but never looks up, as an engine's may.
    (tmp_path / "deaf.py").write_text(
        "import time\nfrom ctypes import CDLL\nfrom evenhand.cli import main\nmain.GRACE = 0.5\n"
        "def ask(texts):\n    open('asked', 'w').close()\n    libc = CDLL(None)\n"
        "    for _ in range(200): libc.sleep(60)\n"
    )
    flags = ["--text", "bio", "--model", "deaf:ask", "--out", "o.parquet"]
    end = killable(tmp_path, "score", "bios.csv", *flags, seconds=0.3, when="asked",
                   signal=int(signal.SIGTERM))  # fmt: skip
    assert end.code == 143
    assert end.seconds < 10
    assert list(killable.temporary.iterdir()) == []


@kind("exit 5")
@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 50_000, "9" * 5_000, "NaN", ""])
def test_documents_that_are_too_much(run: Any, content: str) -> None:
    Path("x.json").write_text(content)
    Path("norms").mkdir()
    Path("norms/norms.json").write_text(content)
    pl.DataFrame({"bio": ["He ran."]}).write_csv("bios.csv")
    for typed in (
        ["report", "x.json", "--out", "r.html"],
        ["norms", "score", "bios.csv", "--norms", "norms", "--text", "bio", "--out", "o.parquet"],
    ):
        code, out, err = run(*typed)
        assert (code, out) == (4, "")
        assert re.fullmatch(r"evenhand: [^\n]+\.\n", err), err
    with pytest.raises(DataError):
        eh.Tallies.load("x.json")
