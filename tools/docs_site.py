"""What the site needs beyond the pages as they stand: notebooks as pages, and marks taken out."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

# "no-run" tells the tests not to run a block; the highlighter would not know the block for one.
_MARK = re.compile(r"^```(\w+) no-run$", re.MULTILINE)
_NOTEBOOK = re.compile(r"(\]\([^)\s]*)\.ipynb([)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page for each notebook."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            path = Path(config.docs_dir) / file.src_uri
            notebook = json.loads(path.read_text(encoding="utf-8"))
            uri = file.src_uri.removesuffix(".ipynb")
            text = as_markdown(notebook, name=Path(uri).name)
            files.append(File.generated(config, f"{uri}.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to notebooks lead to their pages, but for the link to the notebook itself."""
    markdown = _MARK.sub(r"```\1", markdown)
    return markdown if page.file.generated_by else _NOTEBOOK.sub(r"\1.md\2", markdown)


def as_markdown(notebook: dict[str, Any], *, name: str) -> str:
    """A notebook as a page: its words, its code, and what that printed and drew."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            parts += _shown(output)
    sources = f"[a notebook]({name}.ipynb), made from [plain Python]({name}.py)"
    parts.insert(1, f"*This page is {sources}.*")
    return "\n\n".join(parts) + "\n"


def _shown(output: dict[str, Any]) -> Iterator[str]:
    data = output.get("data", {})
    if "image/svg+xml" in data:
        drawn = "".join(data["image/svg+xml"]).replace("\n", " ")
        # The renderer draws for white paper.
        yield f'<figure style="background:#fff">{drawn}</figure>'
    elif "text/html" in data:
        yield "<div>" + "".join(data["text/html"]).replace("\n", " ") + "</div>"
    else:
        text = "".join(output.get("text") or data["text/plain"]).rstrip()
        yield f"```text\n{text}\n```"
