"""`evenhand charter` as a user runs it."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evenhand.charter.words import STARTER
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
    assert "13 things are left open:" in check.output
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
        "Moderation: remove\nChosen: one missed case counts as 4 wrongful decisions (act from 20% "
        "on), decided by the council, review by 2026-03-01.\n"
    )
    assert "(tolerated 16.7% to 23.8%)" in shown.output


def test_without_a_command_it_lists_them() -> None:
    listed = run()
    assert listed.exit_code == 0
    assert "show   Print FILE in words, with the thresholds it implies." in listed.output


CONFLICT = (
    CHARTER
    + """\
[[stakeholders]]
name = "readers"
[[stakeholders]]
name = "writers"
consulted = true
[[catalogue]]
outcome = "false_negative"
borne_by = "readers"
what = "An insult stays up."
[[catalogue]]
outcome = "false_positive"
borne_by = "writers"
what = "A comment disappears."
[limits]
false_negative_rate_gap = 0.05
accuracy_gap = 0.1
[prevalence.sex]
m = 0.2
f = 0.1
"""
)


def test_check_names_what_cannot_all_hold_and_who_was_not_heard(file: Path) -> None:
    file.write_text(CONFLICT, encoding="utf-8")
    output = run("check", file).output
    assert (
        "The limit on false_negative_rate_gap and the chosen cost ratio contradict each other "
        "where true cases are more common in one group than in another" in output
    )
    # FNR 0.159 + 0.05 at t = 2 + z(0.209) = 1.189: log c = logit(0.9) − 2t + 2 = 1.819.
    assert (
        "With true cases in 20% of sex=m and 10% of sex=f, and evidence that separates them by 2 "
        "standard deviations, the limit on false_negative_rate_gap would need a cost ratio of 6.17 "
        "for f instead of 4." in output
    )
    assert "accuracy_gap" not in output
    assert "Readers: they bear the cost of a false negative and were not consulted." in output
    assert "Writers: they bear" not in output


def test_equal_prevalences_need_no_other_cost_ratio(file: Path) -> None:
    file.write_text(CONFLICT.replace("f = 0.1", "f = 0.2"), encoding="utf-8")
    assert "would need a cost ratio" not in run("check", file).output


def test_a_charter_may_choose_one_bar(file: Path) -> None:
    bar = """\
schema = "evenhand.charter/1"
[[choices]]
compare = "bar"
tolerance = 0.2
decided_by = "the council"
"""
    file.write_text(bar, encoding="utf-8")
    check = run("check", file).output
    assert (
        "Chosen: one bar for every group (as much evidence asked for), at most 0.2 standard "
        "deviations apart, decided by the council, no review date." in check
    )
    assert "The choice of one bar for everybody has no review date." in check
    assert "No cost ratio is chosen" not in check
    file.write_text(bar + "[[choices]]\ncost_ratio = 4\ntolerance = 1.25\n", encoding="utf-8")
    assert "One bar and the chosen cost ratio contradict each other" in run("check", file).output
