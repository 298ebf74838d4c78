"""Words that are filled into a drawn chart, held against those that the renderer writes itself."""

import re
from typing import Any

import pytest

from evenhand.report import svg as drawing
from evenhand.report.axis_words import AxisWords, surely_fits, with_words, without_words
from evenhand.report.charts import specification

vl_convert = pytest.importorskip("vl_convert")


def chart(names: list[str], **more: Any) -> dict[str, Any]:
    rows = [
        {"label": name, "value": 0.1 * i, "low": 0.1 * i - 0.2, "high": 0.1 * i + 0.1}
        | {"verdict": "within" if i % 2 else "outside", "tip": name, "set_low": None}
        for i, name in enumerate(names)
    ]
    return {"kind": "forest", "rows": rows, "axis": "Gap", "format": "points", "zero": 0.0} | more


def as_rendered(spec: dict[str, Any]) -> str:
    return re.sub(r"clip\d+", "clip", vl_convert.vegalite_to_svg(spec))


@pytest.mark.parametrize("width", [340, 720])
@pytest.mark.parametrize(
    ("names", "filled"),
    [
        ([f"class {i}: group {7 * i}" for i in range(14)], True),
        (["men & women", "those < 30 years", "all the others"], True),
        (["日本の人", "people of the others"], False),
        (["WOMEN", "MEN"], False),
    ],
)
def test_filled_names_are_those_of_the_renderer(names: list[str], filled: bool, width: int) -> None:
    spec = specification(chart(names), width=width)
    assert bool(without_words(spec)[1].names) is filled
    assert re.sub(r"clip\d+", "clip", drawing.raw_svg(spec)) == as_rendered(spec)


def test_a_line_that_is_not_drawn_leaves_the_names_to_the_renderer() -> None:
    made = chart([f"group {i} of these" for i in range(4)])
    made["rows"][2] |= {"value": None, "low": None, "high": None}
    spec = specification(made)
    assert without_words(spec)[1].names
    assert re.sub(r"clip\d+", "clip", drawing.raw_svg(spec)) == as_rendered(spec)


def test_odd_names_are_measured() -> None:
    odd = ("", " a", "a  b", "a\nb", "é")
    assert [surely_fits(name, 500.0, size=12.5) for name in odd] == [False] * 5


@pytest.mark.parametrize("width", [340, 430, 720])
@pytest.mark.parametrize(
    "title",
    [
        "Gap",
        "Gap in true positive rate, each group against group 3, in points",
        "Rate of \"A & B\" beside 'C', <in points> (1x is no difference)",
        "x",
    ],
)
def test_filled_titles_are_those_of_the_renderer(title: str, width: int) -> None:
    names = [f"class {i}: group {7 * i}" for i in range(9)]
    spec = specification(chart(names, axis=title), width=width)
    words = without_words(spec)[1]
    assert " ".join(words.title) == title
    assert re.sub(r"clip\d+", "clip", drawing.raw_svg(spec)) == as_rendered(spec)


@pytest.mark.parametrize("title", ["Rate of ÆØÅ", "W" * 60])
def test_titles_that_may_not_fit_are_measured(title: str) -> None:
    spec = specification(chart([f"class {i}: group {7 * i}" for i in range(9)], axis=title))
    words = without_words(spec)[1]
    assert words.names
    assert not words.title
    assert re.sub(r"clip\d+", "clip", drawing.raw_svg(spec)) == as_rendered(spec)


def test_a_drawing_without_room_for_a_title_is_drawn_again() -> None:
    label = '<g class="role-axis-label" pointer-events="none"><text x="1"/></g>'
    assert with_words(label, AxisWords(names=("a",))) is not None
    assert with_words(label, AxisWords(names=("a",), title=("Gap",))) is None
