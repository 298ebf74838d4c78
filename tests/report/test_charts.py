"""Charts as specifications: what a reader sees of names, scales, sets, ratios and many lines."""

import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.lenses.rows import COLUMNS
from evenhand.report import page as page_module
from evenhand.report.blocks import by_class, by_group, forest_figure, value_text
from evenhand.report.charts import NARROW, WIDE, specification
from evenhand.report.page import as_page, summarise
from evenhand.report.svg import raw_svg
from evenhand.simulate.labelers import simulate_labelers
from evenhand.simulate.moderation import moderation

NO_ROW = {name: None for name in COLUMNS if not name.startswith("family")}


def row(measure: str, value: float | None, **more: Any) -> dict[str, Any]:
    ends = {"family_low": None, "family_high": None}
    if value is not None:
        ends = {"family_low": value - 0.01, "family_high": value + 0.01}
    held = {"lens": "statistical", "measure": measure, "value": value, "verdict": "not assessed"}
    return {**NO_ROW, **held, "attribute": "gender", **ends, **more}


def figure(rows: list[Any], **more: Any) -> Any:
    given = {"title": "T", "axis": "A", "read": "r.", **more}
    return forest_figure("f", rows, **given)


def blocks(record: Any) -> list[dict[str, Any]]:
    return [block for block, _ in page_module.figures(summarise(record))]


def texts(spec: Any) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", raw_svg(spec))


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("letter", ["m", "W", "f", "漢"])
def test_a_group_of_one_letter_keeps_its_letter(letter: str, width: int) -> None:
    chart = figure([row("selection_rate", 0.3, group=letter)])["charts"][0]
    shown = texts(specification(chart, width=width))
    assert letter in shown
    assert "…" not in "".join(shown)


def test_ratios_are_on_a_log_scale_with_their_line_at_one() -> None:
    frame = moderation(6000, seed=3).frame
    roles = {"truth": "violates", "decision": "removed", "group": "gender"}
    record = eh.audit(eh.Decisions(frame, **roles), limits={"selection_rate_ratio": 0.8}).record()
    found = next(b for b in blocks(record) if b["id"] == "selection-rate-ratio-gender")
    chart = found["charts"][0]
    assert found["plain"] == "Ratio of selection rate by gender"
    assert chart["axis"].startswith("Ratio of selection rate")
    assert "gap" not in chart["axis"].lower()
    assert (chart["zero"], chart["log"]) == (1.0, True)
    spec = specification(chart)
    lines = [layer for layer in spec["layer"] if layer["mark"].get("type") == "rule"]
    assert [line["data"]["values"] for line in lines if "data" in line] == [[{"v": 1.0}]]
    marks = next(one for one in spec["layer"] if one["mark"].get("type") == "point")
    assert marks["encoding"]["x"]["scale"]["type"] == "log"
    assert any("×" in text for text in texts(spec))


def test_a_ratio_that_reaches_zero_is_drawn_to_the_edge() -> None:
    rows = [row("selection_rate_ratio", 0.5, group="a", family_low=0.0, family_high=1.5)]
    mark = figure(rows)["charts"][0]["rows"][0]
    assert 0 < mark["low"] < 0.5
    assert "a" in texts(specification(figure(rows)["charts"][0]))


def test_lines_are_sorted_by_value_and_printed_in_points() -> None:
    values = {"a": -0.05, "b": 0.2, "c": 0.1}
    rows = [row("selection_rate_gap", value, group=name) for name, value in values.items()]
    chart = figure(rows, zero=0.0)["charts"][0]
    assert [mark["label"] for mark in chart["rows"]] == ["b", "c", "a"]
    shown = texts(specification(chart))
    assert "+20" in shown
    assert "0.2" not in shown
    assert chart["axis"] == "A, in points"


def test_small_classes_share_one_line() -> None:
    small = "fewer than 10 cases: hidden"
    rows = [row("accuracy_gap", 0.1, **{"class": f"c{i}", "group": "f"}) for i in range(4)]
    rows += [
        row("accuracy_gap", None, **{"class": f"s{i}", "group": "f", "undefined": small})
        for i in range(24)
    ]
    made = figure(rows, label=by_class, lines=("class", "classes"))
    assert len(made["charts"][0]["rows"]) == 4
    assert len(made["numbers"]["rows"]) == 4
    assert made["notes"] == [f"24 classes have no number (s0, s1, s2 and 21 more): {small}."]
    assert made["csv"].count("s23") == 1


def test_a_set_is_a_bar_in_charts_and_from_to_in_tables() -> None:
    known = {"set_low": 0.2, "set_high": 0.35, "family_low": 0.18, "family_high": 0.4}
    rows = [row("implied_threshold", None, group="a", **known)]
    rows.append(row("implied_threshold", 0.1, group="b"))
    made = figure(rows, label=by_group)
    assert [mark["label"] for mark in made["charts"][0]["rows"]] == ["a", "b"]
    spec = specification(made["charts"][0])
    bars = [layer for layer in spec["layer"] if layer["mark"].get("type") == "bar"]
    assert [bar["encoding"]["x"]["field"] for bar in bars] == ["set_low"]
    assert bars[0]["encoding"]["x2"]["field"] == "set_high"
    assert value_text(rows[0]) == "from 0.200 to 0.350"
    assert made["numbers"]["rows"][0][1] == "from 0.200 to 0.350"
    assert "A bar is a set" in made["read"]


@pytest.fixture(scope="module")
def people() -> Any:
    frame = simulate_labelers(labelers=109, items_each=40, seed=3).frame
    roles = {"truth": "truth", "decision": "decision", "group": "group", "labeler": "labeler"}
    return json.loads(eh.audit(eh.Decisions(frame, **roles)).to_json())


def test_many_labelers_are_a_distribution_without_names(people: Any) -> None:
    found = next(b for b in blocks(people) if b["id"] == "labelers-group")
    forest = people["details"]["labelers"]["attributes"][0]["forest"]
    names = {str(name) for name in forest["labelers"]}
    assert len(names) == 109
    groups = set(forest["groups"])
    for chart in found["charts"]:
        assert chart["kind"] == "strips"
        assert {mark["line"] for mark in chart["rows"]} <= groups
    ticks = [mark for mark in found["charts"][0]["rows"] if "followed" not in mark]
    assert len(ticks) > 109
    assert found["csv"].splitlines()[0] == "group,quantity,value,low,high,labels"
    cells = {str(cell) for line in found["numbers"]["rows"] for cell in line}
    assert not names & cells
    page = as_page(people)
    assert not [name for name in names if f">{name}<" in page]


def test_norm_tables_say_whose_norm() -> None:
    rng = np.random.default_rng(0)
    n = 1200
    frame = pl.DataFrame(
        {
            "gender": np.where(rng.random(n) < 0.5, "f", "m"),
            "title": [f"t{i}" for i in rng.integers(0, 4, n)],
            "norm@f": rng.random(n),
            "norm@m": rng.random(n),
            "score:t0": rng.random(n),
        }
    )
    frame = frame.with_columns(
        pl.col("title").alias("decision"),
        *(pl.Series(f"score:t{i}", rng.random(n)) for i in range(1, 4)),
    )
    decisions = eh.Decisions(frame, truth="title", decision="decision", group="gender")
    record = json.loads(eh.audit(decisions).to_json())
    tables = [b["numbers"] for b in blocks(record) if b["id"].startswith("norms-gender")]
    assert tables
    for table in tables:
        assert re.search(r"the norm of [fm], among [fm]", table["caption"])
        assert any(re.fullmatch("With the norm of [fm]", c["name"]) for c in table["columns"])


def test_calibration_is_drawn_with_its_intervals() -> None:
    rng = np.random.default_rng(1)
    n = 4000
    score = rng.random(n)
    frame = pl.DataFrame(
        {"g": np.where(rng.random(n) < 0.5, "a", "b"), "s": score, "y": rng.random(n) < score}
    ).with_columns(pl.col("y").cast(pl.Int8))
    decisions = eh.Decisions(frame, truth="y", score="s", threshold=0.5, group="g")
    record = json.loads(eh.audit(decisions).to_json())
    found = next(b for b in blocks(record) if b["id"] == "calibration-g")
    for series in found["charts"][0]["series"]:
        assert all(low <= y <= high for low, y, high in
                   zip(series["low"], series["y"], series["high"]))  # fmt: skip
    spec = specification(found["charts"][0])
    assert any(layer["encoding"].get("y2") == {"field": "high"} for layer in spec["layer"])
