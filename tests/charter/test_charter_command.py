"""`evenhand charter` as a user runs it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evenhand.charter.starter import STARTER
from evenhand.cli.charter import charter_command
from evenhand.errors import DataError, UsageError

CHARTER = """\
schema = "evenhand.charter/1"
[system]
name = "Moderation"
decision = "remove"
[[choices]]
cost_ratio = 4
tolerance = 1.25
decided_by = "the council"
review_by = 2026-03-01
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(charter_command, [str(a) for a in arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "charter.toml"
    path.write_text(CHARTER, encoding="utf-8")
    return path


def test_new_prints_a_starter_that_check_accepts(tmp_path: Path) -> None:
    new = run("new")
    assert (new.exit_code, new.output) == (0, STARTER)
    (tmp_path / "c.toml").write_text(new.output, encoding="utf-8")
    check = run("check", tmp_path / "c.toml")
    assert check.exit_code == 0
    assert "c.toml can be used.\nNothing is chosen yet" in check.output
    assert "12 things are left open:" in check.output
    assert "- policy: The policy layer has no owner. Ask whoever owns the rules." in check.output


def test_check_takes_a_day(file: Path) -> None:
    late = "- policy (the council): The cost ratio of 4 for everybody was to be reviewed by"
    assert late not in run("check", file, "--today", "2026-03-01").output
    assert f"{late} 2026-03-01, 1 day ago." in run("check", file, "--today", "2026-03-02").output


def test_check_refuses_a_day_that_is_none(file: Path) -> None:
    found = run("check", file, "--today", "soon").exception
    assert isinstance(found, UsageError)
    assert str(found) == "--today soon is not a date. Write it as 2026-01-31."


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_charter_that_cannot_be_used(file: Path, command: str) -> None:
    file.write_text(CHARTER.replace("= 4", "= -4"), encoding="utf-8")
    found = run(command, file).exception
    assert isinstance(found, DataError)
    assert found.exit_code == 4
    assert str(found).startswith(f"{file}, line 6: choices.cost_ratio = -4 is negative")


def test_show_prints_words_and_thresholds(file: Path) -> None:
    shown = run("show", file)
    assert shown.exit_code == 0
    assert shown.output.startswith(
        "Moderation: remove\nChosen: one missed case counts as 4 wrongful decisions (act from 20 % "
        "on), decided by the council, review by 2026-03-01.\n"
    )
    assert "(tolerated 16.7 % to 23.8 %)" in shown.output


def test_without_a_command_it_lists_them() -> None:
    listed = run()
    assert listed.exit_code == 0
    assert "show   Print FILE in words, with the thresholds it implies." in listed.output
