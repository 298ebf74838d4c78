"""A full audit of 28 classes, as the demo makes it: the page stays small and quick."""

from pathlib import Path
from typing import Any

import pytest
from work import times_as_long

import evenhand as eh
from evenhand.cli.demo import occupation_story
from evenhand.models.words import model_words
from evenhand.report import svg
from evenhand.report.page import as_page

pytestmark = pytest.mark.heavy
MOST_BYTES = 700_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    place = Path(tmp_path_factory.mktemp("demo"))
    occupation_story(place, seed=0, step=lambda words: None)
    return place


def test_the_demo_page_with_remedies_is_small(folder: Path) -> None:
    page = (folder / "occupations.html").read_bytes()
    assert len(page) <= MOST_BYTES
    for name in (b"norm-words", b"strips-bow-female", b"norms-remedies-bow-male", b"training-bow"):
        assert b'id="' + name in page


def test_a_full_audit_takes_little_more_than_its_charts(folder: Path, monkeypatch: Any) -> None:
    import joblib

    words = model_words(joblib.load(folder / "model.joblib"), norms=folder / "norms")
    roles = {"truth": "title", "group": "gender", "reference": {"gender": "male"}}
    decisions = eh.Decisions(folder / "normed.parquet", **roles, text="text")
    record = eh.audit(decisions, charter=folder / "occupations.toml", words=words).record()
    draw, charts = svg.raw_svg, []
    monkeypatch.setattr(svg, "raw_svg", lambda chart: charts.append(chart) or draw(chart))
    page = as_page(record)
    assert len(page.encode()) <= MOST_BYTES
    assert 0 < len(charts) <= 30
    assert page.count('<svg class="chart"') == len(charts), "a chart was drawn and not shown"
    monkeypatch.undo()
    ratio = times_as_long(lambda: as_page(record), lambda: [draw(chart) for chart in charts])
    print(f"the page: {ratio:.2f} times its {len(charts)} charts")
    assert ratio < 2
