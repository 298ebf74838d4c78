"""One gate: command, Python, pytest, pull request and commit say the same of the same data."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import CannotTell, LimitExceeded, UsageError
from evenhand.findings.gate import gate
from evenhand.simulate.moderation import moderation

pytest_plugins = ["pytester"]
PLUGIN = "evenhand.integrations.pytest_fixture"
ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOK = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
CHARTER = """
schema = "evenhand.charter/1"
[limits]
true_positive_rate_gap = {limit}
[roles]
truth = "violates"
decision = "removed"
group = "gender"
"""
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT / "src"),
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Posts with a planted bias, and a charter whose limit it breaks."""
    place = tmp_path_factory.mktemp("gate")
    moderation(6000).frame.write_parquet(place / "posts.parquet")
    (place / "charter.toml").write_text(CHARTER.format(limit=0.02))
    return place


def by_command(folder: Path, *more: str, charter: str = "charter.toml") -> tuple[int, str]:
    record = folder / "audit.json"
    with pytest.raises(SystemExit) as end:
        main(["audit", str(folder / "posts.parquet"), "--charter", str(folder / charter),
              "--json", str(record), *more])  # fmt: skip
    return end.value.code, json.loads(record.read_text())["sentence"]


@pytest.fixture
def by_pytest(folder, pytester, monkeypatch):
    """Run a test in a suite of its own; the plugin is named where it is not installed."""
    known = [one.value for one in entry_points(group="pytest11")]
    named = () if PLUGIN in known else ("-p", PLUGIN)
    place = folder / "suite"
    place.mkdir(exist_ok=True)

    def run(test: str, *, charter: str = "charter.toml") -> tuple[int, str]:
        (place / "test_posts.py").write_text(test)
        (place / "pytest.ini").write_text(f"[pytest]\nevenhand_charter = ../{charter}\n")
        monkeypatch.chdir(place)
        flags = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov")
        done = pytester.runpytest_inprocess(*named, *flags, "test_posts.py")
        sys.modules.pop("test_posts", None)
        return int(done.ret), done.stdout.str()

    return run


def by_action(folder: Path, **inputs: str) -> tuple[int, dict[str, str]]:
    """The action's own shell step, with its inputs as GitHub would fill them in."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "gate")
    defaults = {name: given.get("default", "") for name, given in ACTION["inputs"].items()}
    values = {**defaults, "data": "posts.parquet", "charter": "charter.toml", **inputs}
    filled = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m[1]], text)
        for name, text in step["env"].items()
    }
    outputs = {"GITHUB_OUTPUT": folder / "output", "GITHUB_STEP_SUMMARY": folder / "summary"}
    for path in outputs.values():
        path.write_text("")
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env={**ENVIRONMENT, **filled, **{k: str(v) for k, v in outputs.items()}},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = dict(line.split("=", 1) for line in outputs["GITHUB_OUTPUT"].read_text().splitlines())
    return done.returncode, {
        **said,
        "summary": outputs["GITHUB_STEP_SUMMARY"].read_text(),
        "shown": done.stdout,
        "errors": done.stderr,
    }


def without_limits() -> str:
    return re.sub(r"\[limits\].*?(?=\[roles\])", "", CHARTER, flags=re.DOTALL)


TEST = """
def test_posts(evenhand):
    evenhand.audit("../posts.parquet")
"""


def test_all_gates_say_the_same_of_the_same_data(folder, by_pytest):
    code, sentence = by_command(folder, "--fail-on", "outside")
    assert code == 1
    assert sentence.startswith("Women whose truth is")
    result = eh.audit(folder / "posts.parquet", charter=folder / "charter.toml")
    with pytest.raises(LimitExceeded) as told:
        eh.check(result, fail_on="outside")
    first, *beyond = str(told.value).splitlines()
    assert first == sentence
    assert beyond == list(gate(result).beyond)

    failed, shown = by_pytest(TEST)
    assert failed == 1
    assert sentence in shown
    lines = gate(result).lines
    assert len(lines) == len(result.findings)
    assert all(line in shown for line in lines)
    assert "Traceback" not in shown

    ended, said = by_action(folder)
    assert (ended, said["code"], said["sentence"]) == (1, "1", sentence)
    assert said["summary"].startswith("### Evenhand: Gap found")
    assert f"::notice title=Evenhand::Gap found: {sentence}" in said["shown"]
    assert "::error title=Evenhand" in said["shown"]
    assert {p.name for p in (folder / "evenhand-audit").iterdir()} == {
        "audit.json", "audit.md", "report.html",
    }  # fmt: skip

    script = Path(sys.executable).parent / "evenhand"
    assert HOOK["entry"].split()[0] == script.name
    hook = subprocess.run(
        [script, *HOOK["entry"].split()[1:], "charter.toml"],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert hook.returncode == 0
    assert "charter.toml can be used." in hook.stdout


def test_pytest_finds_the_plugin_by_itself():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"evenhand": PLUGIN}
    assert callable(import_module(PLUGIN).AuditGate.audit)


def test_all_gates_let_the_same_pass(folder, by_pytest):
    (folder / "wide.toml").write_text(CHARTER.format(limit=0.9))
    code, sentence = by_command(folder, charter="wide.toml")
    assert code == 0
    passed, shown = by_pytest(TEST, charter="wide.toml")
    assert passed == 0
    assert f"test_posts.py::test_posts: {sentence}" in shown


def test_what_cannot_be_told_fails_where_it_is_to(folder, by_pytest):
    moderation(400).frame.write_parquet(folder / "few.parquet")
    result = eh.audit(folder / "few.parquet", charter=folder / "charter.toml")
    assert result.verdict == "cannot tell"
    eh.check(result)
    with pytest.raises(CannotTell):
        eh.check(result, fail_on="cannot-tell")
    test = TEST.replace('posts.parquet"', 'few.parquet", fail_on="cannot-tell"')
    code, shown = by_pytest(test)
    assert code == 1
    assert result.sentence in shown


def test_a_gate_without_limits_is_refused(folder, by_pytest):
    (folder / "none.toml").write_text(without_limits())
    result = eh.audit(folder / "posts.parquet", charter=folder / "none.toml")
    eh.check(result)
    with pytest.raises(UsageError) as told:
        eh.check(result, fail_on="outside")
    assert str(told.value) == (
        "The gate has no limits, so that nothing can fail. Set one, such as "
        "true_positive_rate_gap=0.05 (--limit), or give a charter that does (--charter)."
    )
    code, shown = by_pytest(TEST, charter="none.toml")
    assert code == 1
    assert f"evenhand: {told.value}" in shown
    with pytest.raises(UsageError, match=r"^fail_on='outsde' is not known. Did you mean 'outside'"):
        eh.check(result, fail_on="outsde")


def test_a_charter_in_another_folder_is_found_or_told(folder, by_pytest):
    suite = folder / "suite"
    (suite / "policy").mkdir(parents=True, exist_ok=True)
    (suite / "policy" / "rules.toml").write_text(CHARTER.format(limit=0.9))
    test = TEST.replace('posts.parquet"', 'posts.parquet", charter="rules.toml"')
    code, shown = by_pytest(test)
    assert code == 1
    assert "There is no charter 'rules.toml' in " in shown
    assert "There is one at 'policy/rules.toml': write that." in shown
    code, _ = by_pytest(test.replace("rules.toml", "policy/rules.toml"))
    assert code == 0


@pytest.mark.heavy
def test_the_action_in_every_case(folder):
    frame = moderation(3000).frame.rename({"gender": "the gender"})
    frame.write_parquet(folder / "spaced posts.parquet")
    flags = (
        "--truth violates --decision removed --group 'the gender' --limit selection_rate_gap=0.9"
    )
    ended, said = by_action(folder, data="spaced posts.parquet", charter="", arguments=flags)
    assert ended == 0, said["errors"]
    assert "the gender" in (folder / "evenhand-audit" / "audit.json").read_text()
    moderation(400).frame.write_parquet(folder / "few.parquet")
    assert by_action(folder, data="few.parquet")[0] == 0
    assert by_action(folder, data="few.parquet", **{"fail-on": "cannot-tell"})[0] == 3
    (folder / "none.toml").write_text(without_limits())
    ended, said = by_action(folder, charter="none.toml", out="nothing")
    assert (ended, said["code"], said["summary"]) == (2, "2", "")
    assert "The gate has no limits" in said["errors"]


def test_the_action_pins_what_it_uses_and_fills_no_input_into_shell():
    for step in ACTION["runs"]["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
        else:
            assert "${{" not in step["run"]
            assert step["shell"] == "bash"


def test_the_hook_fails_on_a_charter_that_cannot_be_used(tmp_path, capsys):
    good, bad = tmp_path / "charter.toml", tmp_path / "bad.toml"
    good.write_text(CHARTER.format(limit=0.05))
    bad.write_text(CHARTER.format(limit='"wide"'))
    with pytest.raises(SystemExit) as end:
        main(["charter", "check", str(good), str(bad)])
    assert end.value.code == 4
    said = capsys.readouterr()
    assert f"{good} can be used." in said.out
    assert "bad.toml" in said.err
    assert re.search(HOOK["files"], "policy/charter.toml")
    assert not re.search(HOOK["files"], "mycharter.toml")


PAGE = (ROOT / "docs/how-to/gate-a-pull-request.md").read_text(encoding="utf-8")


def test_the_page_shows_what_works(folder, by_pytest):
    code = re.search(r"```python\n(def test_posts.*?)```", PAGE, re.DOTALL)[1]
    failed, shown = by_pytest(code.replace("posts.parquet", "../posts.parquet"))
    assert failed == 1
    assert "at most 2 was agreed" in shown
    job, hooks = (
        yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    )
    step = job["jobs"]["audit"]["steps"][-1]
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert hooks["repos"][0]["hooks"] == [{"id": HOOK["id"]}]
