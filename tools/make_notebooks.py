"""The notebooks in docs/examples, made from the plain Python files beside them and executed.

python tools/make_notebooks.py          run every cell and write the notebooks
python tools/make_notebooks.py --check  run every cell; exit 1 where a notebook is not current

A cell starts with `# %%`, a cell of words with `# %% [markdown]`. Cells run in this process, each
notebook in a folder of its own: no kernel is needed, and a diff of the source reads like code.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "examples"
WORDS = "# %% [markdown]"
MOST_BYTES = 200_000
PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)
NUMBER = re.compile(r"(?:\d[\d,]*)?\.\d+|\d[\d,]*")
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cells(source: str) -> list[tuple[str, str]]:
    """Kind and text of each cell: words without their `# `, code as it stands."""
    found = []
    for part in re.split(r"^(?=# %%)", source, flags=re.MULTILINE):
        mark, _, body = part.partition("\n")
        if not mark.startswith("# %%"):
            if part.strip():
                raise SystemExit(f"Before the first cell stands {part.strip()[:40]!r}.")
        elif mark == WORDS:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().split("\n")]
            found.append(("markdown", "\n".join(lines)))
        else:
            found.append(("code", body.strip()))
    return found


def execute(source: str) -> dict[str, Any]:
    """The notebook of a source, with what its cells print and show."""
    names: dict[str, Any] = {"__name__": "notebook"}
    made: list[dict[str, Any]] = []
    count = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for kind, text in cells(source):
            cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{len(made) + 1}"}
            cell |= {"metadata": {}, "source": lines(text)}
            if kind == "code":
                count += 1
                cell |= {"execution_count": count, "outputs": list(outputs(text, names, count))}
            made.append(cell)
    return {"cells": made, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}


def outputs(text: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """What one cell printed, then what its last line is, if that is a value."""
    tree = ast.parse(text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())}
    if value is not None:
        shown = {"data": display(value), "execution_count": count, "metadata": {}}
        yield shown | {"output_type": "execute_result"}


def display(value: Any) -> dict[str, list[str]]:
    """The richest form that pages and notebooks can both show, and a line in its place."""
    data = {"text/plain": lines(f"<{type(value).__name__}>")}
    if hasattr(value, "_repr_svg_"):
        return {"image/svg+xml": lines(value._repr_svg_())} | data
    if hasattr(value, "_repr_html_"):
        return {"text/html": lines(value._repr_html_())} | data
    return {"text/plain": lines(repr(value))}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def sayings(notebook: dict[str, Any]) -> list[str]:
    """All that a notebook says, cell by cell; of a picture the words in it, not their places."""
    said = []
    for cell in notebook["cells"]:
        said += [cell["cell_type"], "".join(cell["source"])]
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", ())})
            for kind, text in data.items():
                said += [kind, PICTURE.sub(_words, "".join(text))]
    return said


def _words(picture: re.Match[str]) -> str:
    return " ".join(re.findall(r">([^<>]+)</(?:text|title)>", picture.group()))


def alike(held: dict[str, Any], made: dict[str, Any]) -> bool:
    """Whether two notebooks say the same: every word, and numbers to 2% or 0.025.

    Libraries of linear algebra differ in the last digits, by processor too, which moves a case or
    two; where 28 classes are ranked, two that change places move a bound of ρ by 0.02.
    """
    mine, theirs = "\n".join(sayings(held)), "\n".join(sayings(made))
    if NUMBER.sub("#", mine) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(mine), NUMBER.findall(theirs), strict=True)
    numbers = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    return all(isclose(a, b, rel_tol=0.02, abs_tol=0.025) for a, b in numbers)


def main(check: bool) -> int:
    # Tables are as wide as the page, whatever the terminal.
    os.environ |= {"COLUMNS": "100", "POLARS_TABLE_WIDTH": "100"}
    stale = []
    for source in sorted(FOLDER.glob("*.py")):
        path = source.with_suffix(".ipynb")
        notebook = execute(source.read_text(encoding="utf-8"))
        text = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
        size = len(text.encode())
        if size > MOST_BYTES:
            raise SystemExit(f"{path.name} has {size:,} bytes; {MOST_BYTES:,} are the most.")
        if not check:
            path.write_text(text, encoding="utf-8")
            continue
        held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"cells": []}
        if not alike(held, notebook):
            stale.append(path.name)
    if stale:
        print(f"Not current: {', '.join(stale)}. Run: make docs")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
