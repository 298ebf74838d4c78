"""The notebooks say what their sources print today, and show it in few bytes."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))


def test_notebooks_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_notebooks.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_source_has_its_notebook():
    sources = sorted((ROOT / "docs" / "examples").glob("*.py"))
    assert [path.with_suffix(".ipynb") for path in sources] == NOTEBOOKS
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_were_executed_and_show_charts(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    shown = [out for cell in code for out in cell["outputs"]]
    assert any("image/svg+xml" in out.get("data", {}) for out in shown)
    assert not any(out["output_type"] == "error" for out in shown)
    assert str(ROOT) not in path.read_text(encoding="utf-8")


SOURCE = """\
# %% [markdown]
# # Title
#
# Words.

# %%
x = 2
print("two", x)
x / 4

# %%
x = 3
"""


def test_cells_run_in_order_and_keep_what_they_show():
    import make_notebooks as maker

    words, first, second = maker.execute(SOURCE)["cells"]
    assert "".join(words["source"]) == "# Title\n\nWords."
    printed, value = first["outputs"]
    assert printed["text"] == ["two 2\n"]
    assert value["data"] == {"text/plain": ["0.5"]}
    assert second["outputs"] == []
    assert (first["execution_count"], second["execution_count"]) == (1, 2)


def test_a_notebook_is_stale_where_words_or_numbers_moved():
    import make_notebooks as maker

    made = maker.execute(SOURCE)
    held = copy.deepcopy(made)
    assert maker.alike(held, made)
    output = held["cells"][1]["outputs"][1]
    output["data"] = {"text/plain": ["0.52"]}
    assert maker.alike(held, made), "the last digits differ between machines"
    output["data"] = {"text/plain": ["0.53"]}
    assert not maker.alike(held, made)
    output["data"] = {"text/plain": [".53"]}
    assert not maker.alike(held, made), "a number may begin with its point"
    output["data"] = {"text/plain": ["0.5 more"]}
    assert not maker.alike(held, made)
    assert not maker.alike({"cells": []}, made)


def test_a_picture_is_compared_by_its_words():
    import make_notebooks as maker

    def drawn(text, place):
        svg = f'<svg><text x="{place}">{text}</text></svg>'
        output = {"data": {"image/svg+xml": [svg]}, "output_type": "execute_result"}
        return {"cells": [{"cell_type": "code", "source": ["c"], "outputs": [output]}]}

    assert maker.alike(drawn("female", 1), drawn("female", 90))
    assert not maker.alike(drawn("female", 1), drawn("male", 1))


def test_code_before_the_first_cell_is_refused():
    import make_notebooks as maker

    with pytest.raises(SystemExit, match="Before the first cell stands 'import os'"):
        maker.cells("import os\n# %%\n")
