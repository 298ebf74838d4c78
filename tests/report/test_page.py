"""The report page: parsed, not looked at. Escaping, structure, words that agree with numbers."""

import copy
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import DataError, MissingExtra
from evenhand.report import page as page_module
from evenhand.report import svg as svg_module
from evenhand.report.page import POLICY, as_page, summarise
from evenhand.report.view import View
from evenhand.simulate.counterfactual import paired_decisions
from evenhand.simulate.labelers import simulate_labelers
from evenhand.simulate.moderation import moderation
from evenhand.simulate.norms import simulate_norms
from evenhand.simulate.scores import ScoreGroup, simulate_scores
from evenhand.speech import number

VOID = {"meta", "link", "br", "img", "input", "hr"}
CHARTER = """
schema = "evenhand.charter/1"
[system]
name = "Removal of <b>comments</b>"
decision = "remove"
[policy]
owner = "Policy council"
review_by = 2031-01-31
[[choices]]
cost_ratio = 1
tolerance = 1.3
positive_is = "burden"
decided_by = "Policy council"
review_by = 2031-01-31
reason = "Appeals are slow."
[limits]
true_positive_rate_gap = 0.05
"""


class Reader(HTMLParser):
    """Collects what the tests ask for, and fails on a tag that is not closed in its place."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).replace("\u00a0", " ").split())


def parsed(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def audited(frame: Any, *, limits: Any = None, charter: Any = None, **roles: Any) -> Any:
    settings = {"cost_ratio": 1.0} if "score" in roles else {}
    result = eh.audit(
        eh.Decisions(frame, **roles), limits=limits, charter=charter, settings=settings
    )
    return json.loads(result.to_json())


@pytest.fixture(scope="module")
def scores(tmp_path_factory: Any) -> Any:
    path = tmp_path_factory.mktemp("charter") / "charter.toml"
    path.write_text(CHARTER, encoding="utf-8")
    groups = {"A": ScoreGroup(), "B": ScoreGroup(shift=0.8, n=3000), "C": ScoreGroup(n=120)}
    frame = simulate_scores(groups).frame.rename({"group": "writer"})
    roles = {"truth": "truth", "score": "score", "threshold": 0.5, "group": "writer"}
    return audited(frame, charter=path, **roles)


@pytest.fixture(scope="module")
def people() -> Any:
    frame = simulate_labelers(labelers=8, items_each=120, seed=3).frame
    roles = {"truth": "truth", "decision": "decision", "group": "group", "labeler": "labeler"}
    return audited(frame, limits={"criterion_gap": 0.1}, **roles)


@pytest.fixture(scope="module")
def occupations() -> Any:
    """Three classes with paired decisions, and norms: every lens of an occupation classifier."""
    pairs = paired_decisions(4000, gamma=(1.0, 0.0, -1.0), delta=(0.5, -0.5, 0.0)).frame
    limits = {"true_positive_rate_gap": 0.05, "counterfactual_true_positive_rate_gap": 0.02}
    return audited(pairs, limits=limits, truth="truth", decision="decision", group="gender")


@pytest.fixture(scope="module")
def norms() -> Any:
    frame = simulate_norms(120, strength=2.0).frame
    decided = pl.Series("decision", frame["title"].to_list())
    frame = frame.with_columns(decided)
    return audited(
        frame, limits={"norm_bias": 0.3}, truth="title", decision="decision", group="gender"
    )


def test_the_page_says_that_the_corrected_bias_is_judged(norms: Any) -> None:
    page = as_page(norms)
    assert "Freed of it, ρ is +" in page
    assert "and limits are held against that." in page
    assert "female: +0.981, freed of sampling error" in page


RECORDS = ("scores", "people", "occupations", "norms")


@pytest.mark.parametrize("name", RECORDS)
def test_page_is_well_formed_and_asks_for_nothing(name: str, request: Any) -> None:
    page = as_page(request.getfixturevalue(name))
    reader = parsed(page)
    assert page.startswith("<!doctype html>")
    names = [tag for tag, _ in reader.tags]
    for banned in ("script", "link", "iframe", "object", "img", "form"):
        assert banned not in names
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", page)
    assert "@import" not in page
    policies = [
        attrs["content"]
        for tag, attrs in reader.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [POLICY]
    assert not [attrs for _, attrs in reader.tags if any(key.startswith("on") for key in attrs)]


@pytest.mark.parametrize("name", RECORDS)
def test_page_can_be_read_by_everybody(name: str, request: Any) -> None:
    reader = parsed(as_page(request.getfixturevalue(name)))
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in reader.tags:
        for key in ("aria-labelledby", "aria-describedby"):
            assert set(attrs.get(key, "").split()) <= set(ids)
        if attrs.get("href", "").startswith("#"):
            assert attrs["href"][1:] in ids
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    for tag, attrs in reader.tags:
        if tag == "svg":
            assert attrs.get("aria-hidden") == "true" or attrs.get("role") == "img"
        if attrs.get("role") == "img":
            assert attrs["aria-labelledby"]
        if tag == "th":
            assert attrs["scope"] in ("col", "row")


def test_every_figure_has_numbers_and_csv(scores: Any) -> None:
    page = summarise(scores)
    figures = list(page_module._figures(page["sections"]))
    assert len(figures) >= 6
    reader = parsed(as_page(scores))
    links = {a["download"]: a["href"] for t, a in reader.tags if t == "a" and "download" in a}
    for block, _ in figures:
        assert block["numbers"]["rows"]
        assert links[f"{block['id']}.csv"].startswith("data:text/csv;charset=utf-8,")
        assert len(block["csv"].splitlines()) > 1


def test_first_screen_says_what_matters(scores: Any) -> None:
    screen = summarise(scores)["screen"]
    lead = View.of(scores).findings[0]
    assert screen["tag"]["verdict"] == scores["verdict"]
    assert screen["big"].lower() == lead["headline"].lower()
    assert screen["detail"][0] == lead["detail"]
    assert screen["next"]["text"]
    assert screen["next"]["who"]
    assert "one missed case counts as one wrongful decision" in screen["agreed"].lower()
    assert "charter of Policy council, review by 2031-01-31" in summarise(scores)["meta"]


def test_first_screen_shows_rates_of_every_group_before_any_gap(scores: Any) -> None:
    screen = summarise(scores)["screen"]
    table = screen["rates"][0]
    assert sorted(row[0] for row in table["rows"]) == ["A", "B", "C"]
    rates = {
        row["group"]: row
        for row in scores["results"]
        if row["measure"] == "selection_rate" and row["class"] == "1"
    }
    column = next(
        i for i, head in enumerate(table["columns"]) if "selection rate" in head["name"].lower()
    )
    for row in table["rows"]:
        rate = rates[row[0]]
        assert row[column]["text"] == f"{rate['value']:.1%}"
        ends = f"[{100 * rate['family_low']:.1f}, {100 * rate['family_high']:.1f}]"
        assert row[column]["small"] == ends
        assert row[-1] == f"{rate['n']:,.0f}"
    text = parsed(as_page(scores)).text
    assert text.index(f"{rates['A']['value']:.1%}") < text.index("Gap in")


def test_the_picture_holds_every_group_its_interval_and_the_band(scores: Any) -> None:
    picture = summarise(scores)["screen"]["picture"]
    rows = {
        row["group"]: row
        for row in scores["results"]
        if row["lens"] == "thresholds" and row["measure"] == "implied_threshold"
    }
    chart = picture["charts"][0]
    assert chart["agreed"] == "agreed: 43% to 57%"
    for mark in chart["rows"]:
        row = rows.pop(mark["label"])
        assert (mark["low"], mark["high"]) == (row["family_low"], row["family_high"])
        assert mark["text"] == f"{row['value']:.1%}"
    assert all(row["value"] is None for row in rows.values())
    values = [mark["value"] for mark in chart["rows"]]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("name", RECORDS)
def test_sentences_and_tables_agree(name: str, request: Any) -> None:
    """Every finding is on the page in its own words, and its numbers stand in its rows."""
    record = request.getfixturevalue(name)
    text = parsed(as_page(record)).text
    view = View.of(record)
    for finding, recorded in zip(view.findings, record["findings"], strict=True):
        assert finding["sentence"] == recorded["sentence"]
        line = " ".join(finding["line"].split())
        assert line in text or (finding["headline"] in text and finding["detail"] in text)
        row = view.lead_row(finding) if finding["rows"] else None
        if row is not None and row["measure"].endswith("_gap"):
            shown = [f"{100 * abs(row['value']):.{places}f} point" for places in range(3)]
            shown.append(f"{abs(row['value']):.2f} standard deviations")
            # A span that leaves the direction open is said by its ends alone.
            shown.append("anything from ")
            assert any(one in finding["sentence"] for one in shown)
            assert any(one in text for one in (*shown[:-1], number(abs(row["value"]))))


def test_sections_follow_the_lenses(scores: Any, people: Any, occupations: Any, norms: Any) -> None:
    def ids(record: Any) -> list[str]:
        return [section["id"] for section in summarise(record)["sections"]]

    assert ids(scores) == ["costs", "thresholds", "gaps", "where", "quality", "methods"]
    assert ids(people) == ["gaps", "labelers", "where", "quality", "methods"]
    assert ids(occupations) == ["gaps", "counterfactual", "quality", "methods"]
    assert ids(norms) == ["gaps", "norms", "where", "quality", "methods"]


def test_data_cannot_become_markup() -> None:
    nasty = (
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "a" * 300,
        "😀 שלום",
        "",
    )
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "<b>who</b>": [nasty[i] for i in rng.integers(0, 5, 3000)],
            "y": [("<i>x</i>", "ok", "'c'")[i] for i in rng.integers(0, 3, 3000)],
            "d": [("<i>x</i>", "ok", "'c'")[i] for i in rng.integers(0, 3, 3000)],
        }
    )
    record = audited(
        frame, limits={"true_positive_rate_gap": 0.01}, truth="y", decision="d", group="<b>who</b>"
    )
    page = as_page(record)
    reader = parsed(page)
    assert {"script", "img", "i", "b"} & {tag for tag, _ in reader.tags} == set()
    assert "<script>alert(1)</script>" in reader.text
    long = [a["title"] for t, a in reader.tags if t == "bdi" and len(a.get("title", "")) == 300]
    assert long


def test_flags_stay_on_one_line_and_data_cannot_become_markup_by_them() -> None:
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "--x<b>"], 3000)
    frame = pl.DataFrame({"g": group, "d": (rng.random(3000) < 0.2 + 0.4 * (group == "a")) * 1})
    record = audited(frame, limits={"selection_rate_gap": 0.01}, decision="d", group="g")
    page = as_page(record)
    assert 'compare within it (<span class="flag">--stratum</span>)' in page
    assert "b" not in {tag for tag, _ in parsed(page).tags}


def test_words_that_weigh_are_drawn_class_by_class(norms: Any) -> None:
    held = copy.deepcopy(norms)
    trend = held["details"]["norms"]["trends"][0]
    classes = trend["classes"]
    words = [
        {"word": word, "class": name, "classifier": 2.0, "norm": way, "relevant": way > 0}
        for name in classes
        for word, way in (("<b>hair</b>", 0.5), ("code", -0.9))
    ]
    words += [{"word": "damaged", "class": classes[0], "classifier": None, "norm": 1.0}, "x"]
    held["details"]["norms"] |= {"words": words, "words_toward": trend["group"]}
    page = as_page(held)
    reader = parsed(page)
    assert "b" not in {tag for tag, _ in reader.tags}
    assert "‘code’, untypical of" in reader.text
    found = [
        block for block, _ in page_module._figures(summarise(held)["sections"])
        if block["id"] == "norm-words"
    ]  # fmt: skip
    r = dict(zip(classes, trend["correlation"]))
    drawn = [chart["title"] for chart in found[0]["charts"]]
    ranked = sorted(classes, key=lambda name: -r[name])
    assert drawn == [*ranked[:2], *ranked[-2:]]
    points = found[0]["charts"][0]["points"]
    assert [(p["name"], p["x"], p["y"], p["kind"]) for p in points] == [
        ("code", -0.9, 2.0, "silent"),
        ("<b>hair</b>", 0.5, 2.0, "telling"),
    ]
    held["details"]["norms"]["words"] = []
    assert 'id="norm-words"' not in as_page(held)


def test_many_groups_and_classes_stay_small() -> None:
    rng = np.random.default_rng(1)
    n = 40_000
    many = pl.DataFrame(
        {
            "g": [f"group {i}" for i in rng.integers(0, 500, n)],
            "y": rng.integers(0, 2, n),
            "d": rng.integers(0, 2, n),
        }
    )
    record = audited(many, limits={"selection_rate_gap": 0.05}, truth="y", decision="d", group="g")
    page = as_page(record)
    assert len(page.encode()) < 1_500_000
    text = parsed(page).text
    assert "The 30 that matter most of 499 are drawn; all are in the CSV." in text


def test_two_hundred_classes() -> None:
    rng = np.random.default_rng(2)
    n = 30_000
    truth = rng.integers(0, 200, n)
    frame = pl.DataFrame(
        {
            "g": np.where(rng.random(n) < 0.5, "f", "m"),
            "y": [f"class {i}" for i in truth],
            "d": [f"class {i}" for i in np.where(rng.random(n) < 0.7, truth, 0)],
        }
    )
    record = audited(
        frame, limits={"true_positive_rate_gap": 0.05}, truth="y", decision="d", group="g"
    )
    text = parsed(as_page(record)).text
    assert "The 30 that matter most of 200 are drawn; all are in the CSV." in text


def test_small_cells_are_hidden_even_when_kept() -> None:
    frame = pl.DataFrame(
        {"g": ["a"] * 300 + ["b"] * 7, "y": [1, 0, 1] * 102 + [1], "d": [1, 0, 0] * 102 + [0]}
    )
    decisions = eh.Decisions(frame, truth="y", decision="d", group="g")
    record = eh.audit(decisions, keep_small=True).record()
    kept = [r for r in record["results"] if r["group"] == "b" and r["measure"] == "selection_rate"]
    assert kept[0]["value"] is not None
    page = summarise(record)
    for block, _ in page_module._figures(page["sections"]):
        for chart in block["charts"]:
            assert all(row["value"] is None for row in chart.get("rows", []) if row["label"] == "b")


def test_all_cannot_tell() -> None:
    frame = moderation(600, seed=2).frame
    record = audited(
        frame,
        limits={"true_positive_rate_gap": 0.05},
        truth="violates",
        decision="removed",
        group="gender",
    )
    assert record["verdict"] == "cannot tell"
    reader = parsed(as_page(record))
    assert "Cannot tell" in reader.text
    assert "Outside" not in {text.strip() for text in reader.texts}


def test_no_results(scores: Any) -> None:
    empty = {**scores, "results": [], "findings": [], "details": {}, "verdict": "not assessed"}
    empty |= {"charter": None, "sentence": "Not assessed: nothing.", "notes": []}
    text = parsed(as_page(empty)).text
    assert "Nothing could be measured: see data quality." in text
    assert [s["id"] for s in summarise(empty)["sections"]] == ["quality", "methods"]


def test_without_the_extra_tables_stand_alone(scores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "vl_convert":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    page = as_page(scores)
    assert "<svg class=" not in page
    text = parsed(page).text
    assert "To add the charts, run pip install 'evenhand[report]' and render it again." in text
    with pytest.raises(MissingExtra, match="A chart needs the extra 'report'"):
        svg_module.raw_svg({})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verdict": "fair"}, "its verdict is 'fair'"),
        ({"results": [{"lens": "statistical"}]}, "result 1 has no 'measure'"),
        ({"results": ["x"]}, "result 1 is not a row"),
        ({"findings": [{}]}, "finding 1 has no sentence"),
        ({"data": None}, "its 'data' is not what it should be"),
    ],
)
def test_damaged_records_are_refused(scores: Any, change: Any, words: str) -> None:
    with pytest.raises(DataError, match=re.escape(f"The record is damaged: {words}.")):
        as_page({**scores, **change})


def test_older_records_lack_keys(scores: Any) -> None:
    bare = {k: scores[k] for k in ("schema", "made", "data", "results", "findings", "verdict")}
    assert parsed(as_page(copy.deepcopy(bare))).text


def test_full_audit_is_light(occupations: Any, norms: Any) -> None:
    assert len(as_page(norms).encode()) < 700_000
    assert len(as_page(occupations).encode()) < 700_000
