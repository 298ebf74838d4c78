"""What the README says is printed is what is printed."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_five_lines_print_what_the_page_shows(tmp_path, monkeypatch, capsys):
    text = README.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", text, re.DOTALL)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    exec(compile(found[1], "README.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == found[2]
