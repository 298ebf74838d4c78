"""The report page in a real browser: widths, themes and accessibility. Screenshots are kept."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.report.page import as_page
from evenhand.simulate.labelers import simulate_labelers
from evenhand.simulate.norms import simulate_norms
from evenhand.simulate.scores import ScoreGroup, simulate_scores

pytestmark = pytest.mark.heavy
WIDTHS = (390, 768, 1280, 1600)
PAPER = (703, 1032)


def _scores() -> Any:
    groups = {"A": ScoreGroup(), "B": ScoreGroup(shift=0.8), "x" * 300: ScoreGroup(n=300)}
    frame = simulate_scores(groups).frame
    decisions = eh.Decisions(frame, truth="truth", score="score", threshold=0.5, group="group")
    limits = {"implied_threshold": "0.35:0.45", "true_positive_rate_gap": 0.05}
    return eh.audit(decisions, limits=limits, settings={"cost_ratio": 1.5})


def _norms() -> Any:
    frame = simulate_norms(150, strength=2.0, scatter=0.2).frame
    frame = frame.with_columns(pl.Series("decision", frame["title"].to_list()))
    decisions = eh.Decisions(frame, truth="title", decision="decision", group="gender")
    return eh.audit(decisions, limits={"norm_bias": 0.3, "true_positive_rate_gap": 0.05})


def _labelers() -> Any:
    frame = simulate_labelers(labelers=12, items_each=150, seconds=True).frame
    roles = {"labeler": "labeler", "item": "item", "seconds": "seconds", "group": "group"}
    return eh.audit(eh.Decisions(frame, truth="truth", decision="decision", **roles))


@pytest.fixture(scope="module", params=[_scores, _norms, _labelers], ids=lambda f: f.__name__)
def page(request: Any, tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("page") / f"report{request.param.__name__}.html"
    path.write_text(as_page(json.loads(request.param().to_json())), encoding="utf-8")
    return Path(path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_sideways_scrolling_and_nothing_for_axe(screen: Any, page: Path, scheme: str) -> None:
    screen.theme(scheme)
    for width in WIDTHS:
        screen.show(page, width, 900)
        # Dark is looked at with everything open, light as a reader meets it.
        if scheme == "dark":
            screen.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        wide, high = screen.whole()
        assert wide <= width
        screen.keep(width, min(high, 6000), f"{page.stem}_{width}_{scheme}.png")
        screen.resize(width, 900)
    back = screen.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back[4:-1].split(","))) < 200) is (scheme == "dark")
    assert screen.complaints() == []


def test_print_shows_what_is_folded_and_nothing_beyond_the_paper(screen: Any, page: Path) -> None:
    # A4 with margins of 12 mm is 703 px wide; paper is light whatever the screen is.
    screen.theme("dark", media="print")
    screen.show(page, PAPER[0], 1000)
    folded, beyond, back = screen.run(
        """
        const seen = e => e.checkVisibility({contentVisibilityAuto: true}) && e.offsetHeight > 0;
        const inside = [...document.querySelectorAll('.body details:not([open]) > :not(summary)')];
        const all = [...document.querySelectorAll('main table, main svg.chart, main p')];
        return [inside.filter(e => !seen(e)).length, all.filter(e => seen(e) &&
            e.getBoundingClientRect().right > window.innerWidth + 1).length,
            getComputedStyle(document.body).backgroundColor]
        """
    )
    assert (folded, beyond, back) == (0, 0, "rgb(255, 255, 255)")
    screen.keep(PAPER[0], min(screen.whole()[1], 6000), f"{page.stem}_print.png")
    screen.theme("light")


def test_keyboard_reaches_the_skip_link_first(screen: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    screen.show(page, 1280, 900)
    screen.driver.switch_to.active_element.send_keys(Keys.TAB)
    first = screen.driver.switch_to.active_element
    assert first.text == "Skip to the report"
    assert first.value_of_css_property("outline-style") == "solid"


def test_a_table_on_a_phone_shows_that_it_scrolls(screen: Any, page: Path) -> None:
    screen.theme("light")
    screen.show(page, 390, 844)
    screen.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    tables = screen.run(
        """
        return [...document.querySelectorAll('.scroll')].filter(
            e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1).map(
            e => [getComputedStyle(e.querySelector('caption'), '::after').content,
                  getComputedStyle(e).backgroundAttachment])
        """
    )
    assert tables
    for told, edges in tables:
        assert "scroll here for all rows" in told
        # A shadow at the edge goes away where there is nothing more to see.
        assert {"local", "scroll"} <= {word.strip() for word in edges.split(",")}
