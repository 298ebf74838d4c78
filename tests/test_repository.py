"""What holds the repository together beside its code: workflow, hooks, lock, forms, no clock."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import evenhand

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
CLOCKS = {"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
          "process_time", "process_time_ns", "thread_time"}  # fmt: skip


def parsed(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in parsed(path)["jobs"].values():
        yield from job["steps"]


def test_targets_are_there_and_explained():
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^make ([\w-]+) ", contributing, re.MULTILINE)) == TARGETS
    for target in TARGETS:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target
    assert "make check test test-heavy" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_workflow_runs_make_and_may_only_read(path):
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for step in steps(path):
        if "run" in step:
            program, *words = re.sub(r"\$\{\{.*?\}\}", "", step["run"]).split()
            assert program == "make", step["run"]
            assert {word for word in words if "=" not in word} <= TARGETS
        else:
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
    assert all(job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())


def test_the_workflow_runs_everything_that_has_to_pass():
    run = " ".join(step.get("run", "") for path in WORKFLOWS for step in steps(path)).split()
    assert {"check", "test", "test-heavy", "test-minimum", "coverage"} <= set(run)
    matrix = parsed(ROOT / ".github/workflows/checks.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert [each["python"] for each in matrix["include"]] == ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_forms_ask_for_what_an_answer_needs(path):
    form = parsed(path)
    assert form["name"]
    assert form["description"]
    fields = {each["id"]: each for each in form["body"]}
    assert len(fields) == len(form["body"])
    for field in fields.values():
        assert field["type"] in {"textarea", "input", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]
    assert any(field.get("validations", {}).get("required") for field in fields.values())


def test_a_wrong_number_comes_with_its_record():
    fields = {each["id"]: each for each in parsed(FORMS[1])["body"]}
    assert fields["record"]["validations"] == {"required": True}


def test_hooks_run_what_is_installed():
    hooks = parsed(ROOT / ".pre-commit-config.yaml")
    assert [source["repo"] for source in hooks["repos"]] == ["local"]
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")
        for script in re.findall(r"tools/\w+\.py", hook["entry"]):
            assert (ROOT / script).exists(), script


def test_the_citation_is_of_this_version():
    citation = parsed(ROOT / "CITATION.cff")
    assert str(citation["version"]) == evenhand.__version__
    assert citation["license"] == "Apache-2.0"


def test_the_lock_has_all_that_is_named():
    import versions

    assert list(versions.disagreements()) == []


def test_a_lock_that_lacks_something_is_told(tmp_path, monkeypatch):
    import versions

    held = versions.locked()
    held.pop("numpy")
    lines = [f"{name}=={number}" for name, number in (held | {"scipy": "1.0"}).items()]
    (tmp_path / "tested.txt").write_text("# made\n" + "\n".join(lines))
    monkeypatch.setattr(versions, "LOCK", tmp_path / "tested.txt")
    scipy = next(need for need in versions.declared() if need.name == "scipy")
    assert list(versions.disagreements()) == [
        "pyproject.toml names numpy, which tested.txt does not have.",
        f"pyproject.toml asks for {scipy}, and tested.txt has 1.0.",
    ]
    assert versions.main("check") == 1


def test_lowest_versions_are_those_promised_to_users():
    import versions

    lowest = versions.lowest()
    assert {need.name for need in versions.declared()} <= set(lowest)
    assert {"duckdb", "pandas", "scikit-learn"} <= set(lowest)
    assert not {"pytest", "ruff", "mkdocs"} & set(lowest)
    for need in versions.declared():
        assert need.specifier.contains(lowest[need.name])


def test_files_are_tidy():
    import tidy

    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    paths = [ROOT / name for name in names if not name.startswith("tests/oracles/")]
    wrong = {p.name: tidy.complaints(p.read_bytes()) for p in paths if p.is_file()}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_what_is_not_tidy_is_told_and_mended(tmp_path, capsys):
    import tidy

    path = tmp_path / "a.md"
    path.write_bytes(b"one  \n<<<<<<< mine\ntwo\n\n\n")
    assert tidy.main([str(path)]) == 1
    assert capsys.readouterr().out == (
        f"{path} has marks of a merge in it.\n"
        f"{path} has blanks at line ends, or does not end in one line break.\n"
    )
    assert path.read_bytes() == b"one\n<<<<<<< mine\ntwo\n"
    assert "bytes" in tidy.complaints(b"x" * (tidy.MOST_BYTES + 1))[0]


def clock_readings(tree: ast.AST) -> list[str]:
    """Clocks that a module reads, as `time.perf_counter` or imported by name."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += [node.attr] if node.value.id == "time" and node.attr in CLOCKS else []
        elif isinstance(node, ast.ImportFrom) and node.module in {"time", "timeit"}:
            found += [name.name for name in node.names if name.name != "sleep"]
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name == "timeit"]
    return found


def uses(function: ast.FunctionDef, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function))


def test_no_test_reads_a_clock():
    """Seconds say as much of the neighbours on a machine as of the code."""
    for path in (ROOT / "tests").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        # What is killed at a random moment needs a clock to be killed by; nothing is held to it.
        if path.name not in {"work.py", "killable.py"}:
            assert clock_readings(tree) == [], path.name
        text = path.read_text(encoding="utf-8")
        everywhere = "pytestmark = pytest.mark.heavy" in text
        for node in ast.walk(tree) if "times_as_long" in text else ():
            if isinstance(node, ast.FunctionDef) and uses(node, "times_as_long"):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                assert everywhere or "pytest.mark.heavy" in marks, f"{path.name}: {node.name}"


def test_clocks_are_recognised():
    assert clock_readings(ast.parse("import time\nt = time.perf_counter()")) == ["perf_counter"]
    assert clock_readings(ast.parse("from time import process_time")) == ["process_time"]
    assert clock_readings(ast.parse("import time\ntime.sleep(1)")) == []
