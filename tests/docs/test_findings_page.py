"""The page of twelve findings says what audits of the real data say."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
TOOL = ROOT / "tools" / "make_findings.py"
PAGE = ROOT / "docs" / "explanation" / "findings-on-real-data.md"


def test_it_has_twelve_findings_and_a_question_for_each() -> None:
    text = PAGE.read_text(encoding="utf-8")
    parts = text.split("\n## ")[1:]
    assert len(parts) == 12
    for number, part in enumerate(parts, start=1):
        assert part.startswith(f"{number}. ")
        assert "\n> " in part


@pytest.mark.heavy
@pytest.mark.skipif(not DATA.exists(), reason="the real data is not there")
def test_it_is_what_the_audits_say(tmp_path, monkeypatch) -> None:
    spec = importlib.util.spec_from_file_location("make_findings", TOOL)
    tool = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "make_findings", tool)
    spec.loader.exec_module(tool)
    monkeypatch.chdir(tmp_path)
    assert tool.page(DATA) == PAGE.read_text(encoding="utf-8")
