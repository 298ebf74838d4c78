"""Every page's code runs: Python blocks and `evenhand` commands, in order, in one folder."""

import re
import shlex
from pathlib import Path

import pytest

from evenhand.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    return [(m[1], m[2].strip(), m[3]) for m in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def run_command(line: str) -> None:
    """One `$ evenhand …` line; a finding outside its limit (exit 1) is a result, not a failure."""
    command, _, target = line.partition(" > ")
    words = shlex.split(command, comments=True)
    assert words[0] == "evenhand", line
    import contextlib
    import io

    out = io.StringIO()
    with pytest.raises(SystemExit) as end, contextlib.redirect_stdout(out):
        main(words[1:])
    assert end.value.code in (0, 1), f"{line}: exit {end.value.code}"
    if target:
        Path(target.strip()).write_text(out.getvalue())


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for language, mark, code in blocks(page):
        if "no-run" in mark:
            continue
        if language == "python":
            exec(compile(code, str(page), "exec"), names)
        elif language == "console":
            joined = code.replace("\\\n", " ")
            for line in joined.splitlines():
                if line.startswith("$ evenhand"):
                    run_command(line.removeprefix("$ "))


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_to_files_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
