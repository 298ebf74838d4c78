"""The site: built strictly, showing what GitHub shows, and asking for nothing from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

build = pytest.importorskip("mkdocs.commands.build", reason="the extra docs is not installed")

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site in a folder of its own; a warning of MkDocs is an error."""
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        config = load_config("mkdocs.yml", site_dir=str(folder))
        assert config.strict
        build.build(config)
    return folder


class Requests(HTMLParser):
    """Addresses that a browser would fetch by itself."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        address = dict(attrs).get(FETCHED.get(tag, ""))
        if address:
            self.addresses.append(address)


def test_nothing_is_fetched_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        reader = Requests()
        reader.feed(page.read_text(encoding="utf-8"))
        assert reader.addresses
        assert [each for each in reader.addresses if "//" in each] == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)[\"']?(?:https?:)?//", sheet.read_text()), sheet


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_show_alike_on_github_and_on_the_site(site, page):
    """Lists, tables and blocks: two readers of Markdown differ in what they take for one."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    github = MarkdownIt("commonmark").enable("table").render(text)
    whole = (site / page).with_suffix(".html").read_text(encoding="utf-8")
    own = whole[whole.index("<article") : whole.index("</article>")]
    for tag in ("li", "tr", "pre", "h2", "h3"):
        here, there = (len(re.findall(rf"<{tag}[ >]", html)) for html in (own, github))
        assert here == there, f"{tag}: {here} on the site, {there} on GitHub"


def test_notebooks_are_pages_with_their_charts(site):
    for notebook in (ROOT / "docs" / "examples").glob("*.ipynb"):
        page = (site / "examples" / notebook.stem).with_suffix(".html").read_text(encoding="utf-8")
        assert "<figure" in page
        assert "<svg" in page
        assert f'href="{notebook.name}"' in page
        assert (site / "examples" / notebook.name).exists()
    index = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="examples/audit-a-table.html"' in index
