"""A full audit of 28 classes, as the demo makes it: the page stays small and quick."""

import time
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.cli.demo_stories import LIMITS, occupation_story
from evenhand.models.carrying_words import model_words
from evenhand.report.html import as_page

pytestmark = pytest.mark.heavy
MOST_BYTES, MOST_SECONDS = 700_000, 4.0


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


def test_a_full_audit_is_drawn_in_time(folder: Path) -> None:
    import joblib

    words = model_words(joblib.load(folder / "model.joblib"), norms=folder / "norms")
    roles = {"truth": "title", "group": "gender", "reference": {"gender": "male"}}
    decisions = eh.Decisions(folder / "normed.parquet", **roles, text="text")
    record = eh.audit(decisions, limits=LIMITS, words=words).record()
    as_page(record)  # the renderer starts once
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        page = as_page(record)
        taken.append(time.perf_counter() - start)
    assert len(page.encode()) <= MOST_BYTES
    # Twice as long is allowed: the machine may be doing other things.
    assert min(taken) <= 2 * MOST_SECONDS
