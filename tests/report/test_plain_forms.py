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
from evenhand.findings.record import record_text
from evenhand.report.blocks import interval_text
from evenhand.report.formats import as_junit, as_markdown
from evenhand.report.notebook import as_fragment
from evenhand.report.table import cells
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


def as_shown(record: Any, width: int, *, verbose: bool = False) -> str:
    out = io.StringIO()
    show(record, Console(file=out, width=width, color_system=None), verbose=verbose)
    return out.getvalue()


@pytest.mark.parametrize("width", [50, 100, 240])
@pytest.mark.parametrize("which", ["plain", "limited", "nasty"])
def test_terminal_fits_the_window(which: str, width: int, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(which)
    assert max(cell_len(line) for line in as_text(record).splitlines()) <= 100
    for verbose in (False, True):
        lines = as_shown(record, width, verbose=verbose).splitlines()
        assert max(map(cell_len, lines)) <= width


def test_terminal_follows_the_order_of_the_first_screen(plain: Any, limited: Any) -> None:
    assert " ".join(as_text(plain).split()).startswith(f"Not assessed {plain['sentence']}")
    assert "No limits are set, so nothing is judged" in plain["sentence"]
    text = as_text(limited)
    assert " ".join(text.split()).startswith(f"Gap found {limited['sentence']}")
    lines = text.splitlines()
    assert "9,000 rows." in text
    assert "polars" not in text
    starts = ("gender, compared with male", "✗ ", "What to do")
    order = [next(i for i, line in enumerate(lines) if line.startswith(s)) for s in starts]
    assert order == sorted(order)
    assert "Intervals hold at 95% for all classes and groups of a measure together." in text
    marks = [line[0] for line in text.splitlines() if line[:2] in {"✗ ", "? ", "✓ ", "· "}]
    assert 0 < len(marks) <= 3
    assert marks == sorted(marks, key="✗?✓·".index)


def test_what_is_folded_is_counted_and_shown_to_those_who_ask(limited: Any) -> None:
    short, full = as_shown(limited, 100), as_shown(limited, 100, verbose=True)
    assert "Impact ratios" not in short
    assert "--verbose adds" in short
    assert "Impact ratios: selection rate by the highest group's (no pass mark is implied)" in full
    assert "--verbose" not in full
    assert limited["headline"] in " ".join(full.split())
    for finding in limited["findings"][1:]:
        assert finding["line"] in " ".join(full.split())


def test_rates_on_the_terminal_are_those_of_the_record(plain: Any) -> None:
    lines = as_shown(plain, 120).splitlines()
    for row in plain["results"]:
        alone = row["reference"] is None and row["class"] == "1"
        if not (alone and row["measure"] == "selection_rate" and row["group"]):
            continue
        line = next(line for line in lines if line.startswith(f" {row['group']} "))
        share = f"{100 * row['value']:.1f}%"
        bounds = f"[{100 * row['family_low']:.1f}, {100 * row['family_high']:.1f}]"
        assert f"{share} {bounds} {row['n']:,.0f}" in " ".join(line.split())


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
    starts = [i for i, line in enumerate(lines) if line.startswith("|---")]
    assert len(starts) > 1
    for start in starts:
        columns = len(unescaped("|", lines[start]))
        stop = next(i for i in range(start, len(lines) + 1) if not "".join(lines[i : i + 1]))
        body = lines[start - 1 : stop]
        assert len(body) > 4
        assert {len(unescaped("|", line)) for line in body} == {columns}
    assert "3 rows left out: no \\<b\\>who\\|" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


def test_markdown_of_a_plain_record(limited: Any) -> None:
    text = as_markdown(limited)
    assert text.startswith("### Evenhand: Gap found: Women get decision '1' ")
    assert "\n- ✗ " in text
    assert text.rstrip().endswith(f"fingerprint {limited['data']['fingerprint']}.")
    assert "| selection rate gap | 1 | female | male |" in text
    starts = ("#### gender, compared with male", "- ✗ ", "#### What to do", "#### Comparisons")
    order = [text.index(f"\n{start}") for start in starts]
    assert order == sorted(order)


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
    failures = suite.findall("testcase/failure")
    messages = {failure.attrib["message"] for failure in failures}
    outside = [f["line"] for f in limited["findings"] if f["verdict"] == "outside"]
    assert outside
    # A finding names what was agreed in its line; a row has it below its own.
    assert all(any(line.startswith(m.removesuffix(".")) for m in messages) for line in outside)
    assert all("Limit: −0.0" in failure.text for failure in failures)
    assert limited["headline"] in " ".join(suite.find("system-out").text.split())


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
        "details",
        "summary",
    }
    # The picture of the first screen.
    drawn = {
        "figure",
        "figcaption",
        "svg",
        "g",
        "path",
        "text",
        "tspan",
        "line",
        "rect",
        "title",
        "defs",
        "clippath",
    }
    assert {"figure", "svg", "figcaption"} <= set(tags.seen) <= allowed | drawn
    assert "<script" not in fragment
    words = "".join(tags.words)
    headline = record["headline"]
    assert headline[:1].upper() + headline[1:] in words
    rates = " rate by " if which == "nasty" else "gender, compared with male"
    order = [words.index(part) for part in (headline[1:], rates, "Comparisons and notes")]
    assert order == sorted(order)
    assert fragment.index("<figure") < fragment.index("<table")


def test_notebook_keeps_the_name_readable(nasty: Any) -> None:
    fragment = as_fragment(nasty)
    assert html.escape("<script>alert(1)</script>") in fragment


def test_rows_shown_without_limits(plain: Any) -> None:
    text = as_text(plain, verbose=True)
    # Only the positive class, only against the reference, only the gaps that audits start from.
    assert "true negative rate" not in text
    assert "<rest>" not in text


def test_the_rest_is_shown_where_it_is_the_reference() -> None:
    record = audited(moderation(3000, seed=2).frame, group="gender", reference="<rest>")
    assert "<rest>" in as_text(record, verbose=True)
    assert "selection rate gap" in as_text(record, verbose=True)


def test_what_was_left_out_is_said(nasty: Any) -> None:
    assert "3 rows left out: no <b>who|" in as_text(nasty)
    one = moderation(500, seed=2).frame.with_columns(
        pl.when(pl.col("post") == 0).then(None).otherwise(pl.col("removed")).alias("removed")
    )
    assert "1 row left out: no decision." in as_text(audited(one))


def test_a_record_can_be_shown_from_its_file(limited: Any, tmp_path: Any) -> None:
    (tmp_path / "a.json").write_text(record_text(limited), encoding="utf-8")
    read = eh.read_record(tmp_path / "a.json")
    for form in (as_text, as_markdown, as_junit, as_fragment):
        assert form(read) == form(limited)


def test_a_value_without_interval_says_why() -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"violates": rng.integers(0, 2, 400), "removed": rng.integers(0, 2, 400)})
    # All of x's rows are one cluster.
    frame = frame.with_columns(
        gender=pl.Series(["x"] * 100 + ["m"] * 300),
        who=pl.Series([0] * 100 + list(range(1, 301))),
    )
    roles = {"group": "gender", "cluster": "who", "reference": "m"}
    record = audited(frame, limits={"selection_rate_gap": 0.05}, **roles)
    (row,) = [row for row in record["results"] if row["verdict"] != "not assessed"]
    assert row["value"] is not None
    why = "no interval: all cases in the group are one cluster"
    assert cells(row)[5] == interval_text(row) == why
    # Records of the first schema have it in the other column.
    older = {name: value for name, value in row.items() if name != "no_interval"}
    assert cells(older | {"undefined": why})[5] == why


def test_where_nothing_is_found_the_notes_say_why() -> None:
    alone = eh.audit({"d": [1, 0] * 50, "g": ["a"] * 100}, decision="d", group="g")
    assert not alone.findings
    assert "- group='g' has one value, 'a': there is nothing to compare it with." in str(alone)


def test_what_was_asked_for_and_is_not_there_is_never_folded() -> None:
    table = {"d": [1, 0, 0, 1] * 200, "g": ["Male", "male ", "x", "x"] * 200}
    limits = {"selection_rate_gap": 0.2, "auc_gap": 0.1}
    record = eh.audit(table, decision="d", group="g", limits=limits).record()
    unmet = "The limit on auc_gap was not assessed: nothing in this table gives that measure."
    alike = "The groups 'Male' and 'male ' differ only in case"
    for text in (as_text(record), as_markdown(record), html.unescape(as_fragment(record))):
        told = " ".join(text.replace("\\_", "_").split())
        assert unmet in told
        assert alike in told
        assert told.index(unmet) < told.index("compared with")


def test_a_set_is_told_from_its_ends(plain: Any) -> None:
    row = next(r for r in plain["results"] if r["measure"] == "selection_rate_gap")
    ends = {"value": None, "set_low": 0.123, "set_high": 0.345, "undefined": None}
    assert cells({**row, **ends})[4] == "from 0.123 to 0.345"
    assert cells({**row, "value": None, "undefined": "no cases in the group"})[4] == "undefined"
