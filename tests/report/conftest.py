"""A real browser for the pages: one for all tests, which skip where none is installed."""

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARTEFACTS = Path(__file__).parents[2] / "artefacts"
RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document).then(r => done(r.violations.map(v => v.id + ': ' + v.nodes[0].html)));
"""
# Words whose every letter lies in the window, as a reader meets them before scrolling.
FIRST_VIEW = """
const seen = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode;
  if (!node.data.trim() || ['STYLE', 'TITLE', 'title', 'desc'].includes(node.parentNode.nodeName))
    continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  if (box.width > 0 && box.top >= 0 && box.left >= 0 && box.bottom <= window.innerHeight)
    seen.push(node.data);
}
return seen.join(' ');
"""


class Screen:
    """A window of any size, light or dark, on screen or on paper."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def theme(self, scheme: str, *, media: str = "") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        held = {"media": media, "features": features}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", held)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def show(self, page: Path, width: int, height: int) -> None:
        self.resize(width, height)
        self.driver.get(page.as_uri())

    def keep(self, width: int, height: int, name: str) -> None:
        """Keep a picture of the page, from its top."""
        ARTEFACTS.mkdir(exist_ok=True)
        self.resize(width, height)
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
        (ARTEFACTS / name).write_bytes(base64.b64decode(shot))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def whole(self) -> tuple[int, int]:
        """How wide and how high the whole page is."""
        wide, high = self.run(
            "const e = document.scrollingElement; return [e.scrollWidth, e.scrollHeight]"
        )
        return int(wide), int(high)

    def first_view(self) -> str:
        """What can be read without scrolling."""
        return " ".join(str(self.run(FIRST_VIEW)).replace("\u00a0", " ").split())

    def complaints(self) -> list[str]:
        """What axe finds wrong for people who see, hear or point otherwise."""
        from axe_core_python import __file__ as package

        self.run((Path(package).parent / "axe.min.js").read_text(encoding="utf-8"))
        return list(self.driver.execute_async_script(RUN_AXE))


@pytest.fixture(scope="session")
def screen(tmp_path_factory: Any) -> Iterator[Screen]:
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
    yield Screen(found)
    found.quit()
