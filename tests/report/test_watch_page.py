"""The page of a look at a store: its charts, what it says once, and how it looks in a browser."""

import csv
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

import evenhand as eh
from evenhand.report.watch import as_watch_markdown, as_watch_page
from evenhand.report.watch_charts import PHONE, SMALL, WIDE, line_chart, waterfall
from evenhand.simulate.weeks import moderation_weeks


@pytest.fixture(scope="module")
def document(tmp_path_factory: Any) -> dict[str, Any]:
    """Sixteen weeks with a threshold raised in the eleventh, the last one cut off."""
    frame = moderation_weeks(16, posts=1_500, changed=11, after=0.8).frame
    frame = frame.filter(frame["decided_at"] < frame["decided_at"].max() - timedelta(days=2))
    result = eh.watch(
        tmp_path_factory.mktemp("watch") / "store", frame, time="decided_at", every="week",
        truth="violates", score="score", threshold="cut", group="gender", reference="male",
        stratum="topic", limits={"false_negative_rate_gap": 0.05}, horizon=52,
    )  # fmt: skip
    return result.document


def lead(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    alarm = next(a for a in document["alarms"] if a["detector"] == "change")
    return next(s for s in document["series"] if s["group"] == alarm["group"]), alarm


@pytest.mark.parametrize("layout", [WIDE, PHONE, SMALL])
def test_a_line_chart_draws_every_period_inside(document: dict[str, Any], layout: Any) -> None:
    one, alarm = lead(document)
    picture = ElementTree.fromstring(line_chart(one, document, alarm, layout))
    dots = list(picture.iter("circle"))
    assert len(dots) == len(one["periods"]) == 15
    assert all(0 <= float(dot.get("cx")) <= layout.width for dot in dots)
    assert all(layout.top - 1 <= float(dot.get("cy")) <= layout.floor + 1 for dot in dots)
    since = [d for d in dots if d.get("fill") == "var(--bad)"]
    assert len(since) == 15 - one["periods"].index(alarm["onset"])
    # What is not judged is shaded; n is a bar for each period where there is room.
    fills = [rect.get("fill") for rect in picture.iter("rect")]
    assert fills.count("var(--untold)") == 1
    assert fills.count("var(--ink2)") == (0 if layout is SMALL else 15)
    for text in picture.iter("text"):
        assert 0 <= float(text.get("y")) <= layout.height


@pytest.mark.parametrize("wide", [True, False])
def test_the_parts_step_from_before_to_since(document: dict[str, Any], wide: bool) -> None:
    _, alarm = lead(document)
    mine = [c for c in document["causes"] if c["alarm"] == alarm["id"]]
    picture = ElementTree.fromstring(waterfall(mine, alarm, wide=wide))
    said = [text.text for text in picture.iter("text")]
    assert "threshold raised" in said
    assert said[0] == "before week 11"
    assert "since week 11" in said
    bars = list(picture.iter("rect"))
    named = [c for c in mine if c["stratum"] is None and c["part"] != "total"]
    assert len(bars) == len(named) + 2
    # The last bar ends where the last part does.
    last, end = bars[-2], bars[-1]
    ends = [float(last.get("x")), float(last.get("x")) + float(last.get("width"))]
    assert min(abs(float(end.get("x")) + float(end.get("width")) - e) for e in ends) < 2.1


def test_what_leads_is_said_once(document: dict[str, Any]) -> None:
    page = as_watch_page(document)
    headline = document["headline"].replace("'", "&#39;")
    # A number is not parted from its unit.
    assert re.search(r"\d points", headline)
    assert re.search(r"<h1>[^<]*\d\u00a0points[^<]*</h1>", page)
    page = page.replace("\u00a0", " ")
    assert page.count(headline) == 1
    assert "It leads this page." in page
    text = as_watch_markdown(document)
    assert text.count(document["headline"]) == 1


def test_every_chart_has_its_numbers_as_csv(document: dict[str, Any]) -> None:
    page = as_watch_page(document)
    link = page.split('href="data:text/csv;charset=utf-8,')[1].split('"')[0].replace("&#39;", "'")
    rows = list(csv.DictReader(StringIO(unquote(link))))
    one, _ = lead(document)
    mine = [row for row in rows if row["group"] == one["group"]]
    assert [row["period"] for row in mine] == one["periods"]
    assert [float(row["own"]) for row in mine] == one["gap"]
    assert len(rows) == sum(len(series["periods"]) for series in document["series"])


@pytest.mark.heavy
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_it_looks_as_it_should(
    screen: Any, document: dict[str, Any], size: tuple[int, int], scheme: str, tmp_path: Path
) -> None:
    path = tmp_path / "watch.html"
    path.write_text(as_watch_page(document), encoding="utf-8")
    screen.theme(scheme)
    screen.show(path, *size)
    assert screen.whole()[0] <= size[0]
    assert screen.complaints() == []
    shown = screen.run(
        "return [...document.querySelectorAll('.wide svg, .narrow svg')]"
        ".filter(e => e.getBoundingClientRect().width > 0)"
        ".map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
    )
    assert len(shown) == 2
    assert all(left >= 0 and right <= size[0] for left, right in shown)
    assert document["headline"][:30] in screen.first_view()
    screen.keep(size[0], screen.whole()[1], f"watch-{size[0]}-{scheme}.png")
