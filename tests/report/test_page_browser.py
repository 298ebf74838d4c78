"""The report page in a real browser: widths, themes and accessibility. Screenshots are kept."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.report.html import as_page
from evenhand.simulate.labelers import simulate_labelers
from evenhand.simulate.norms import simulate_norms
from evenhand.simulate.scores import ScoreGroup, simulate_scores

pytestmark = pytest.mark.heavy
ARTEFACTS = Path(__file__).parents[2] / "artefacts"
WIDTHS = (390, 768, 1280, 1600)
RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document).then(r => done(r.violations.map(v => v.id + ': ' + v.nodes[0].html)));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: Any) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    quiet = "headless=new no-sandbox disable-gpu disable-sync no-first-run hide-scrollbars"
    for flag in (*quiet.split(), "disable-background-networking", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    found.set_script_timeout(300)
    yield found
    found.quit()


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
def test_no_sideways_scrolling_and_nothing_for_axe(browser: Any, page: Path, scheme: str) -> None:
    from axe_core_python import __file__ as package

    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    for width in WIDTHS:
        _resize(browser, width, 900)
        browser.get(page.as_uri())
        # Dark is looked at with everything open, light as a reader meets it.
        opened = "document.querySelectorAll('details').forEach(d => d.open = true)"
        if scheme == "dark":
            browser.execute_script(opened)
        wide, high = browser.execute_script(
            "const e = document.scrollingElement; return [e.scrollWidth, e.scrollHeight]"
        )
        assert wide <= width
        _keep(browser, width, min(high, 6000), f"{page.stem}_{width}_{scheme}.png")
        _resize(browser, width, 900)
    back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back[4:-1].split(","))) < 200) is (scheme == "dark")
    browser.execute_script((Path(package).parent / "axe.min.js").read_text(encoding="utf-8"))
    assert browser.execute_async_script(RUN_AXE) == []


def test_print_shows_what_is_folded_and_nothing_beyond_the_paper(browser: Any, page: Path) -> None:
    # A4 with the browser's own margins is 718 px wide; paper is light whatever the screen is.
    media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    _resize(browser, 718, 1000)
    browser.get(page.as_uri())
    folded, beyond, back = browser.execute_script(
        """
        const seen = e => e.checkVisibility({contentVisibilityAuto: true}) && e.offsetHeight > 0;
        const inside = [...document.querySelectorAll('main details:not([open]) > :not(summary)')];
        const all = [...document.querySelectorAll('main table, main svg.chart, main p')];
        return [inside.filter(e => !seen(e)).length, all.filter(e => seen(e) &&
            e.getBoundingClientRect().right > 719).length,
            getComputedStyle(document.body).backgroundColor]
        """
    )
    assert (folded, beyond, back) == (0, 0, "rgb(255, 255, 255)")
    high = browser.execute_script("return document.scrollingElement.scrollHeight")
    _keep(browser, 718, min(high, 6000), f"{page.stem}_print.png")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_keyboard_reaches_the_skip_link_first(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(page.as_uri())
    browser.switch_to.active_element.send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.text == "Skip to the report"
    assert first.value_of_css_property("outline-style") == "solid"


def _resize(browser: Any, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def _keep(browser: Any, width: int, height: int, name: str) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    _resize(browser, width, height)
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
    (ARTEFACTS / name).write_bytes(base64.b64decode(shot))
