"""A record on the terminal, as Markdown, as JUnit and in a notebook."""

import html
import io
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

import evenhand as eh
from evenhand.report.junit import as_junit
from evenhand.report.markdown import as_markdown
from evenhand.report.notebook import as_fragment
from evenhand.report.terminal import as_text, show
from evenhand.simulate.moderation import moderation

NASTY = (
    "<script>alert(1)</script>",
    "a|b`c*d_e[x](http://y)",
    "bell\x07 and \x1b[31mred\x1b[0m",
    "line\nbreak\rreturn",
    "漢字の名前がとても長い場合でも表は百桁に収まる必要があります、本当に",
    "an_extraordinarily_long_group_name_without_any_space_that_no_table_of_a_hundred_columns_holds",
    "\ufffe\uffff end",
    "",
)
LIMITS = {"selection_rate_gap": 0.05, "true_positive_rate_gap": 0.08}


def audited(frame: pl.DataFrame, *, limits: dict[str, float] | None = None, **roles: Any) -> Any:
    given = {"truth": "violates", "decision": "removed", "group": ["gender", "region"], **roles}
    return eh.audit(eh.Decisions(frame, **given), limits=limits, lenses=["statistical"]).record()


@pytest.fixture(scope="module")
def plain() -> Any:
    return audited(moderation(9000, seed=1).frame)


@pytest.fixture(scope="module")
def limited() -> Any:
    return audited(moderation(9000, seed=1).frame, limits=LIMITS)


@pytest.fixture(scope="module")
def nasty() -> Any:
    """A record whose group values, classes and column name are as bad as data can be."""
    rng = np.random.default_rng(0)
    n = 4000
    name = "<b>who|\x01</b>"
    frame = pl.DataFrame(
        {
            name: [NASTY[i] for i in rng.integers(0, len(NASTY), n)],
            "violates": [("<i>ok</i>", "b|ad", "c")[i] for i in rng.integers(0, 3, n)],
            "removed": [("<i>ok</i>", "b|ad", "c")[i] for i in rng.integers(0, 3, n)],
        }
    ).with_columns(pl.when(pl.int_range(n) < 3).then(None).otherwise(pl.col(name)).alias(name))
    return audited(frame, limits=LIMITS, group=name)


def as_shown(record: Any, width: int) -> str:
    out = io.StringIO()
    show(record, Console(file=out, width=width, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("which", ["plain", "limited", "nasty"])
def test_terminal_fits_a_hundred_columns(which: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(which)
    for text in (as_text(record), as_shown(record, 100), as_shown(record, 100)):
        assert max(cell_len(line) for line in text.splitlines()) <= 100
    wide = as_shown(record, 240)
    tables = [line for line in wide.splitlines() if "──" in line]
    assert tables
    assert max(map(len, tables)) <= 100


def test_terminal_says_the_verdict_first(plain: Any, limited: Any) -> None:
    assert as_text(plain).startswith("Not assessed: no limit was given, so nothing is judged.")
    text = as_text(limited)
    assert text.startswith("Gap found: ")
    assert "9,000 rows of polars table, polars." in text
    assert "Impact ratios: selection rate by the highest group's (no pass mark is implied)" in text
    assert "Intervals hold at 95% for all classes and groups of a measure together." in text
    marks = [line[0] for line in text.splitlines() if line[:2] in {"✗ ", "? ", "✓ ", "· "}]
    assert marks == sorted(marks, key="✗?✓·".index)


def test_terminal_colours_follow_the_terminal(
    limited: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in as_text(limited)


def test_data_cannot_steer_the_terminal(nasty: Any) -> None:
    for text in (as_text(nasty), as_shown(nasty, 100)):
        assert "\x1b" not in text
        assert "\x07" not in text


def test_printing_an_audit_is_the_same_text() -> None:
    posts = moderation(800, seed=1).frame
    audit = eh.audit(eh.Decisions(posts, decision="removed", group="gender"))
    assert str(audit) == as_text(audit.record())


def unescaped(mark: str, text: str) -> list[str]:
    return re.findall(rf"(?<!\\){re.escape(mark)}", text)


def test_markdown_escapes_the_data(nasty: Any) -> None:
    text = as_markdown(nasty)
    for mark in "<>`*[]":
        assert not unescaped(mark, text), mark
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| measure"))
    columns = len(unescaped("|", lines[start]))
    body = [line for line in lines[start:] if line.startswith("|")]
    assert len(body) > 5
    assert {len(unescaped("|", line)) for line in body} == {columns}
    assert "3 rows left out: no \\<b\\>who\\|" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


def test_markdown_of_a_plain_record(limited: Any) -> None:
    text = as_markdown(limited)
    assert text.startswith("### Evenhand: Gap found: ")
    assert "\n- ✗ " in text
    assert text.rstrip().endswith(f"fingerprint {limited['data']['fingerprint']}.")
    assert "| selection rate gap | 1 | female | male |" in text


@pytest.mark.parametrize("which", ["plain", "limited", "nasty"])
def test_junit_parses(which: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(which)
    suite = ElementTree.fromstring(as_junit(record))
    cases = suite.findall("testcase")
    verdicts = [r["verdict"] for r in record["results"] if r["verdict"] != "not assessed"]
    assert len(cases) == len(verdicts) == int(suite.attrib["tests"])
    assert len(suite.findall("testcase/failure")) == verdicts.count("outside")
    assert len(suite.findall("testcase/skipped")) == verdicts.count("cannot tell")
    assert suite.attrib["failures"] == str(verdicts.count("outside"))
    names = [(c.attrib["classname"], c.attrib["name"]) for c in cases]
    if which != "nasty":
        assert len(set(names)) == len(names)


def test_junit_messages_are_the_sentences(limited: Any) -> None:
    suite = ElementTree.fromstring(as_junit(limited))
    messages = {failure.attrib["message"] for failure in suite.findall("testcase/failure")}
    outside = [f["sentence"] for f in limited["findings"] if f["verdict"] == "outside"]
    assert outside
    assert set(outside) <= messages


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("which", ["plain", "limited", "nasty"])
def test_notebook_has_no_script_and_closes_its_tags(
    which: str, request: pytest.FixtureRequest
) -> None:
    record = request.getfixturevalue(which)
    fragment = as_fragment(record)
    tags = Tags()
    tags.feed(fragment)
    tags.close()
    assert not tags.open
    allowed = {
        "div",
        "style",
        "p",
        "strong",
        "ul",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert set(tags.seen) <= allowed
    assert "<script" not in fragment
    assert record["sentence"] in " ".join(tags.words)


def test_notebook_keeps_the_name_readable(nasty: Any) -> None:
    fragment = as_fragment(nasty)
    assert html.escape("<script>alert(1)</script>") in fragment


def test_rows_shown_without_limits(plain: Any) -> None:
    text = as_text(plain)
    # Only the positive class, only against the reference, only the gaps that audits start from.
    assert "true negative rate" not in text
    assert "<rest>" not in text


def test_the_rest_is_shown_where_it_is_the_reference() -> None:
    record = audited(moderation(3000, seed=2).frame, group="gender", reference="<rest>")
    assert "<rest>" in as_text(record)
    assert "selection rate gap" in as_text(record)


def test_what_was_left_out_is_said(nasty: Any) -> None:
    assert "3 rows left out: no <b>who|" in as_text(nasty)
    one = moderation(500, seed=2).frame.with_columns(
        pl.when(pl.col("post") == 0).then(None).otherwise(pl.col("removed")).alias("removed")
    )
    assert "1 row left out: no decision." in as_text(audited(one))


def test_a_record_can_be_shown_from_its_file(limited: Any, tmp_path: Any) -> None:
    import json

    (tmp_path / "a.json").write_text(json.dumps(limited), encoding="utf-8")
    read = eh.read_record(tmp_path / "a.json")
    for form in (as_text, as_markdown, as_junit, as_fragment):
        assert form(read) == form(limited)
