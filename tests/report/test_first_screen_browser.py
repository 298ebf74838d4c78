"""The first screens as a reader meets them: who, what, how much, how sure, what next, whose job."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.cli.demo import moderation_story, occupation_story

pytestmark = pytest.mark.heavy
# What a reader can see without scrolling, on the window and on the sheet of paper.
WINDOW, PHONE, PAPER = (1280, 800), (390, 844), (703, 1032)
# Decisions on 3,283 defendants as ProPublica published them (2016): flagged or not, reoffended
# within two years or not.
DEFENDANTS = {
    "African-American": {(0, 0): 990, (0, 1): 805, (1, 0): 532, (1, 1): 1369},
    "Caucasian": {(0, 0): 1139, (0, 1): 349, (1, 0): 461, (1, 1): 505},
}


def _defendants(folder: Path) -> None:
    rows = [
        (race, *cell) for race, cells in DEFENDANTS.items() for cell, n in cells.items()
        for _ in range(n)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["race", "reoffended", "flagged"], orient="row")
    roles = {"truth": "reoffended", "decision": "flagged", "group": "race"}
    eh.audit(frame, **roles, reference={"race": "Caucasian"}).save(folder / "defendants.html")


def _regions(folder: Path) -> None:
    """Twelve regions; harmless payments of region E are blocked twice as often as elsewhere."""
    rng = np.random.default_rng(3)
    n = 24_000
    region = rng.integers(0, 12, n)
    fraud = (rng.random(n) < 0.3).astype(int)
    blocked = rng.random(n) < np.where(fraud == 1, 0.7, 0.08 + 0.1 * (region == 4))
    frame = pl.DataFrame(
        {
            "region": [f"region {'ABCDEFGHIJKL'[i]}" for i in region],
            "fraud": fraud,
            "blocked": blocked.astype(int),
        }
    )
    limits = {"false_positive_rate_gap": 0.05}
    roles = {"truth": "fraud", "decision": "blocked", "group": "region"}
    eh.audit(frame, **roles, positive_is="burden", limits=limits).save(folder / "regions.html")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    place = Path(tmp_path_factory.mktemp("first-screens"))
    moderation_story(place, seed=0, step=lambda words: None)
    occupation_story(place, seed=0, step=lambda words: None)
    _defendants(place)
    _regions(place)
    return place


# The answers that the first screen of each page must hold.
ANSWERS = {
    "report": {
        "who": "Posts by nonbinary people",
        "what": "are removed on far weaker evidence than agreed",
        "how much": "From a 6.0% chance of a violation on",
        "how sure": "(4.1% to 8.8%), where 14% to 27% was agreed",
        "what next": "A cut of 0.65 for nonbinary people would be within what was agreed",
        "whose job": "Implementation: the model team.",
    },
    "labelers": {
        "who": "for nonbinary people than agreed",
        "what": "Labelers treat a missed violation more seriously",
        "how much": "As seriously as 11 wrongful removals",
        "how sure": "(7.4 to 16), where 2.7 to 6 was agreed",
        "what next": "about 196 (38 to 299) would come out otherwise if the two mistakes",
        "whose job": "Implementation: guidelines and training.",
    },
    "occupations": {
        "who": "men whose",
        "what": "the higher the classifier scores men",
        "how much": "Rank correlation 0.92 over 27",
        "how sure": "0.74 to 0.99; at most 0.3 was agreed",
        "what next": "Of the remedies compared, start from residualise: it lowers the norm slope",
        "whose job": "Implementation: the model team.",
    },
    "defendants": {
        "who": "group African-American",
        "what": "whose truth is not '1' get decision '1' nearly twice as often as group Caucasian",
        "how much": "44.8% against 23.5%, 21.4 points more",
        "how sure": "(18.2 to 24.5)",
        "what next": "Agree on how large a difference is acceptable, and write it down.",
        "whose job": "Policy: nobody is named yet",
    },
    "regions": {
        "who": "group region E",
        "what": "whose truth is not '1' get decision '1' (a burden) twice as often",
        "how much": "points more (",
        "how sure": "; at most 5 was agreed",
        "what next": "To keep what was agreed, about 53 (up to 104) of the 253 wrong decisions on",
        "whose job": "Implementation: engineers and label operations.",
    },
}
PAGES = list(ANSWERS)


@pytest.mark.parametrize("name", PAGES)
def test_one_screen_answers_what_a_person_asks(screen: Any, folder: Path, name: str) -> None:
    screen.theme("light")
    screen.show(folder / f"{name}.html", *WINDOW)
    seen = screen.first_view()
    print(seen)
    for question, answer in ANSWERS[name].items():
        assert answer in seen, question


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WINDOW, PHONE], ids=["window", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_first_screens_look_as_they_should(
    screen: Any, folder: Path, name: str, size: tuple[int, int], scheme: str
) -> None:
    screen.theme(scheme)
    screen.show(folder / f"{name}.html", *size)
    width, height = size
    assert screen.whole()[0] <= width
    headline, chart = screen.run(
        """
        const box = e => { const b = e.getBoundingClientRect();
                           return [b.left, b.top, b.right, b.bottom] };
        const charts = [...document.querySelectorAll('.picture svg.chart')];
        return [box(document.querySelector('.big')), box(charts.find(e => e.checkVisibility()))]
        """
    )
    assert headline[3] <= height
    if size is WINDOW:
        # One picture, in the right half, wholly seen.
        assert chart[0] >= width / 2
        assert chart[3] <= height
    else:
        assert chart[1] >= headline[3]
        assert chart[2] <= width
    names = screen.run(
        "return [...document.querySelectorAll('.picture text')].map(e => e.textContent)"
    )
    assert not [text for text in names if text.strip() == "…"]
    screen.keep(width, height, f"first_{name}_{width}_{scheme}.png")
    assert screen.complaints() == []


@pytest.mark.parametrize("name", PAGES)
def test_the_first_sheet_of_paper_is_for_executives(screen: Any, folder: Path, name: str) -> None:
    """Everything of the first screen on one sheet, and nothing else on it."""
    screen.theme("light", media="print")
    screen.show(folder / f"{name}.html", *PAPER)
    bottom, after = screen.run(
        """
        const first = document.querySelector('.first');
        return [first.getBoundingClientRect().bottom, getComputedStyle(first).breakAfter]
        """
    )
    assert bottom <= PAPER[1]
    assert after == "page"
    screen.keep(*PAPER, f"first_{name}_paper.png")
    screen.theme("light")
