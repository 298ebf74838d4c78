"""Library = command line: each command has a Python twin with the same words."""

import inspect
import json
import typing
from dataclasses import fields
from xml.etree import ElementTree

import click
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.main import COMMANDS
from evenhand.cli.main import evenhand as command_line
from evenhand.decisions.keywords import RoleArguments, TableArguments, meanings
from evenhand.decisions.roles import Roles
from evenhand.errors import UsageError
from evenhand.remedies.ledger.task import LedgerSettings
from evenhand.remedies.ledger.texts import TextSettings
from evenhand.report.table import as_people_csv
from evenhand.simulate.moderation import moderation
from evenhand.text.table import TextChanges

TWINS = {
    "audit": eh.audit,
    "plan": eh.plan,
    "charter check": eh.read_charter,
    "charter show": eh.read_charter,
    "swap": eh.swap_table,
    "score": eh.score_table,
    "norms fit": eh.fit_norms,
    "norms score": eh.score_norms,
    "compare": eh.compare,
    "remedy": eh.remedy_table,
    "words weights": eh.word_table,
    "words filter": eh.filter_words,
    "report": eh.render,
    "reproduce": eh.reproduce,
    "verify": eh.verify,
    "tally": eh.tally,
    "watch": eh.watch,
    "alarms": eh.alarms,
}
# Commands without a twin, and why.
ALONE = {
    "demo": "runs the other commands on simulated data",
    "charter new": "prints a starter file to edit",
}
# Words of the command line that a function has otherwise, by command; "" for every command.
OTHERWISE = {
    "": {
        "data": "decisions",  # the first argument, a table or the path of one
        "json_path": None,  # result.save, report.to_json
    },
    "audit": {
        # Where results go: result.save(path) by its ending.
        **dict.fromkeys(("out_path", "csv_path", "markdown_path", "junit_path")),
        "figures": None,  # eh.render(result, figures=…)
        **dict.fromkeys(("quiet", "verbose", "fail_on")),  # what is printed, and eh.check
        **dict.fromkeys(("dry_run", "list_measures")),  # questions about the command
        **dict.fromkeys(("norm_folder", "model", "trust"), "words"),
        "form_details": "forms",
        **dict.fromkeys(("tool", "question", "has", "truth_labeler")),  # eh.read_labels
    },
    "charter check": {"file": "path", "today": None},  # charter.concerns(today=…)
    "charter show": {"file": "path"},
    "tally": {"out_path": None},  # tallies.save
    "watch": {
        **dict.fromkeys(("out_path", "markdown_path", "junit_path", "github")),  # result.save
        **dict.fromkeys(("quiet", "export_path")),  # what is printed, and Store.export
    },
    "swap": {"mask_titles": "title", "titles": "forms", "mask_scope": "scope"},
    "norms fit": {"no_scrub": "scrub", "no_irrelevant": "irrelevant"},
    "report": {
        "out": "path",
        **dict.fromkeys(("markdown", "junit", "card", "cyclonedx", "github", "forms"), "form"),
    },
}
# Flags that are given several times are named by the plural.
PLURALS = {
    "groups": "group",
    "thresholds": "threshold",
    "references": "reference",
    "counterfactuals": "counterfactual",
    "norms": "norm",
    "prevalences": "prevalence",
    "sensitivities": "truth_sensitivity",
    "specificities": "truth_specificity",
}
# What a mapping or a dataclass among the arguments holds.
HELD = {
    "audit": {  # settings
        "bandwidth", "longest_seconds", "counterfactual_reference", "not_class", "evidence",
        "prevalence", "truth_sensitivity", "truth_specificity",
    },
    "compare": {each.name for kind in (TextSettings, LedgerSettings) for each in fields(kind)},
    "swap": {each.name for each in fields(TextChanges)},
}  # fmt: skip
# Arguments without a flag.
PYTHON_ONLY = {
    "progress": "the command shows it by itself",
    "arguments": "the command tells its own line",
    "limits": "flag --limit",
    "lenses": "flag --lens",
    "settings": "flags of their own",
    "texts": "flags of their own",
    "changes": "flags of their own",
    "words": "flags --norms and --model",
    "form": "flags of their own",
    "path": "flags of their own",
    "data": "the first argument",
    "decisions": "the first argument",
    "train": "the first file",
    "test": "the second file",
    "norm_irrelevant": "found by its columns' names",
}


def leaves() -> dict[str, click.Command]:
    """Every command that does something, by its words."""
    with click.Context(command_line) as top:
        commands = {name: command_line.get_command(top, name) for name in COMMANDS}
    out = {}
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        out |= {f"{name} {sub}": one for sub, one in inner.items()} if inner else {name: command}
    return out


def test_every_command_has_a_twin_or_a_reason():
    assert set(leaves()) == {*TWINS, *ALONE}
    public = {getattr(eh, name) for name in eh.__all__ if not inspect.isclass(getattr(eh, name))}
    assert set(TWINS.values()) <= public


@pytest.mark.parametrize("words", TWINS)
def test_flags_and_arguments_have_the_same_words(words):
    taken = set(inspect.signature(TWINS[words]).parameters)
    other = OTHERWISE[""] | OTHERWISE.get(words, {})
    flags = set()
    for parameter in leaves()[words].params:
        name = parameter.name
        if not parameter.expose_value:  # such as --list, which prints and stops
            continue
        if name in PLURALS and name not in taken:
            name = PLURALS[name]
        if name not in taken | HELD.get(words, set()) and name in other:
            name = other[name]
        flags.add(name)
    flags.discard(None)
    known = taken | HELD.get(words, set())
    assert flags - known - {"decisions"} == set()
    assert taken - flags - set(PYTHON_ONLY) == set()


def test_the_same_defaults():
    for words, function in TWINS.items():
        taken = inspect.signature(function).parameters
        for flag in leaves()[words].params:
            if flag.name in taken and flag.default not in (None, (), False) and flag.expose_value:
                if flag.name == "spark_master" or type(flag.default).__name__ == "Sentinel":
                    continue
                ours = taken[flag.name].default
                assert ours in (flag.default, None), (words, flag.name)


def test_every_role_is_a_keyword_with_a_line_on_it():
    hints = typing.get_type_hints(RoleArguments)
    assert set(hints) == set(Roles.__slots__)
    for thing, arguments in (
        (eh.Decisions, RoleArguments), (eh.audit, TableArguments), (eh.verify, TableArguments),
        (eh.tally, TableArguments),
    ):  # fmt: skip
        places = inspect.signature(thing).parameters
        for name, meaning in meanings(arguments).items():
            assert places[name].kind is inspect.Parameter.KEYWORD_ONLY
            assert f"    {name}: {meaning}." in thing.__doc__
        assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in places.values())


def test_an_unknown_role_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"^'labeller' is not a role. Did you mean 'labeler'\?"):
        eh.Decisions({"y": [1], "g": ["a"]}, labeller="y")


@pytest.fixture(scope="module")
def posts() -> pl.DataFrame:
    return moderation(3000).frame


@pytest.fixture(scope="module")
def result(posts):
    roles = {"truth": "violates", "score": "score", "threshold": 0.5, "group": "gender"}
    return eh.audit(posts, **roles, limits={"selection_rate_gap": 0.05})


def test_a_result_saves_itself_by_the_ending(result, tmp_path):
    for ending in ("html", "md", "json", "csv", "xml"):
        result.save(tmp_path / f"audit.{ending}")
    assert (tmp_path / "audit.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "audit.md").read_text().startswith("### Evenhand: ")
    assert json.loads((tmp_path / "audit.json").read_text()) == json.loads(result.to_json())
    assert (tmp_path / "audit.csv").read_text() == as_people_csv(result.to_frame())
    assert ElementTree.parse(tmp_path / "audit.xml").getroot().get("name") == "evenhand"
    again = eh.read_record(tmp_path / "audit.json")
    assert eh.render(again, form="csv") == (tmp_path / "audit.csv").read_text()


def test_other_endings_are_refused_and_nothing_is_written(result, tmp_path):
    with pytest.raises(UsageError) as told:
        result.save(tmp_path / "audit.txt")
    assert str(told.value) == (
        f"'{tmp_path}/audit.txt' does not say by its ending what to write. Choose a name that ends "
        "in .html, .md, .json, .csv, .xml."
    )
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="cannot be written: there is no folder"):
        result.save(tmp_path / "nowhere" / "audit.html")
    with pytest.raises(UsageError, match=r"^form='pagee' is not a form. Did you mean 'page'\?"):
        eh.render(result, form="pagee")
    with pytest.raises(UsageError, match=r"^A int cannot be rendered"):
        eh.render(3)
    with pytest.raises(UsageError, match=r"^Name one record, several to compare"):
        eh.render()


def test_by_group_has_every_group_and_class_once(result, posts):
    frame = result.by_group()
    assert frame.select("attribute", "group", "class").is_unique().all()
    assert len(frame) == 3 * 2
    female = frame.filter(group="female", **{"class": "1"}).row(0, named=True)
    mine = posts.filter(gender="female")
    removed = mine.select((pl.col("score") >= 0.5).mean()).item()
    assert female["n"] == len(mine) == female["selection_rate_n"]
    assert female["selection_rate"] == pytest.approx(removed)
    assert female["selection_rate_low"] < removed < female["selection_rate_high"]
    assert female["true_positive_rate_n"] == mine["violates"].sum()
    ratio = result.rows.where(measure="cost_ratio", group="female")
    assert female["cost_ratio"] == ratio["value"][0]
    # Labelers were not measured; the columns are there all the same.
    assert female["separation"] is None
    assert frame.columns == eh.audit(
        {"d": [0, 1] * 20, "g": ["a", "b"] * 20}, decision="d", group="g"
    ).by_group().columns  # fmt: skip


def test_by_group_hides_cells_under_ten():
    table = {"y": [1] * 7 + [0] * 43 + [1, 0] * 50, "g": ["a"] * 50 + ["b"] * 100}
    table["d"] = [1, 0] * 75
    held = eh.audit(table, truth="y", decision="d", group="g", keep_small=True).by_group()
    row = held.filter(group="a", **{"class": "1"}).row(0, named=True)
    assert row["false_positive_rate_n"] == 43
    assert (row["true_positive_rate"], row["true_positive_rate_n"]) == (None, None)


def test_charts_by_name_show_themselves(result):
    assert next(iter(result.charts)) == result.chart().name
    name = "selection-rate-gap-gender"
    assert result.charts[name]._repr_svg_().startswith("<svg")
    assert "spec" not in repr(result.charts[name])


def test_an_audit_compares_itself_with_an_older_one(result, posts, tmp_path):
    moved = posts.with_columns(
        score=pl.when(gender="female").then(pl.col("score") / 2).otherwise("score")
    )
    roles = {"truth": "violates", "score": "score", "threshold": 0.5, "group": "gender"}
    now = eh.audit(moved, **roles, limits={"selection_rate_gap": 0.05})
    comparison = now.compare(result)
    gaps = {(one.now["measure"], one.now["group"]) for one in comparison.moved}
    assert ("selection_rate_gap", "female") in gaps
    assert ("selection_rate_gap", "nonbinary") not in gaps
    frame = comparison.to_frame()
    row = frame.filter(measure="selection_rate_gap", group="female").row(0, named=True)
    assert row["moved"]
    assert row["value_before"] == result.rows.where(
        measure="selection_rate_gap", group="female", reference="male", class_="1"
    )["value"][0]  # fmt: skip
    assert frame["moved"].to_list() == sorted(frame["moved"].to_list(), reverse=True)
    assert "moved beyond sampling error" in str(comparison)
    assert "Selection rate gap, female: " in comparison._repr_html_()
    # The page says the same, and a record or its file does as well.
    page = eh.render(result, now, charts=False)
    assert comparison.sentence in page.replace("\u00a0", " ")
    result.save(tmp_path / "old.json")
    assert str(now.compare(tmp_path / "old.json")) == str(comparison)
    assert str(now.compare(result.record())) == str(comparison)


def test_verify_gives_a_list(posts):
    checks = eh.verify(posts, truth="violates", decision="removed", group="gender")
    assert [check.tool.split()[0] for check in checks] == ["Fairlearn", "AIF360"]
    decisions = eh.Decisions(posts, truth="violates", decision="removed", group="gender")
    with pytest.raises(UsageError, match=r"^'truth' is not an argument of verify\."):
        eh.verify(decisions, truth="violates")


def test_a_charter_speaks_as_the_command_shows_it(tmp_path, capsys):
    from evenhand.charter.words import STARTER
    from evenhand.cli.main import main

    path = tmp_path / "charter.toml"
    path.write_text(STARTER, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["charter", "show", str(path)])
    charter = eh.read_charter(path)
    assert capsys.readouterr().out == str(charter)
    with pytest.raises(SystemExit):
        main(["charter", "check", str(path)])
    said = capsys.readouterr().out
    assert charter.concerns()
    assert all(concern.sentence in said for concern in charter.concerns())
