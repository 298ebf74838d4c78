"""Records compared: on all measures, in order, in Markdown, and a model beside its labelers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import evenhand as eh
from evenhand.cli.main import evenhand
from evenhand.errors import UsageError
from evenhand.findings.record import record_text
from evenhand.report.beside import labelers_beside
from evenhand.report.compare import change_sentence, changes, compare_records
from evenhand.report.figures import PAPER_POINTS, paper_charts
from evenhand.report.page import as_page, summarise
from evenhand.report.render import render
from evenhand.report.view import View
from evenhand.simulate.labelers import simulate_labelers
from evenhand.simulate.moderation import Group, moderation

SHARES = {"a": 0.6, "b": 0.4}


def at_cut(cut: int, *, seed: int = 0, at: str = "2026-01-05T00:00:00+00:00") -> Any:
    """Defendants with scores from 1 to 10, flagged from a cut on; two groups at the same rates."""
    rng = np.random.default_rng(seed)
    n = 6000
    group = rng.choice(list(SHARES), n, p=list(SHARES.values()))
    truth = (rng.random(n) < 0.45).astype(int)
    score = np.clip(np.round(4.7 + 1.6 * truth + rng.normal(0, 2.4, n)), 1, 10)
    frame = pl.DataFrame({"race": group, "truth": truth, "flagged": (score >= cut).astype(int)})
    roles = {"truth": "truth", "decision": "flagged", "group": "race"}
    record = json.loads(eh.audit(eh.Decisions(frame, **roles)).to_json())
    record["made"]["at"] = at
    return record


@pytest.fixture(scope="module")
def five() -> Any:
    return at_cut(5)


@pytest.fixture(scope="module")
def seven() -> Any:
    return at_cut(7, at="2026-02-05T00:00:00+00:00")


def rate(record: Any, group: str, measure: str = "selection_rate") -> Any:
    return next(
        row for row in record["results"]
        if row["measure"] == measure and row["group"] == group and row["class"] == "1"
    )  # fmt: skip


def test_a_moved_cut_is_said_though_no_gap_moved(five: Any, seven: Any) -> None:
    """Both groups are flagged less often by the same amount: rates moved, gaps did not."""
    found = changes(View.of(five), View.of(seven))
    moved = {(one.now["measure"], one.now["group"]) for one in found if one.moved}
    assert {("selection_rate", "a"), ("selection_rate", "b")} <= moved
    assert not {measure for measure, _ in moved if measure.endswith("_gap")}
    for group in SHARES:
        assert rate(five, group)["family_low"] > rate(seven, group)["family_high"]
    sentence = change_sentence([View.of(five), View.of(seven)], found)
    before, now = (f"{rate(record, 'a')['value']:.1%}" for record in (five, seven))
    assert re.search(rf"Most clearly: Selection rate, a: {before} \(.*\) → {now} \(", sentence)
    page = as_page(seven, earlier=[five])
    assert f"Selection rate, a: {before}" in page
    assert "None of" not in page


def test_every_measure_is_compared_once(five: Any) -> None:
    """Mirrors, ratios, corrected numbers and sizes over groups repeat what is compared already."""
    found = changes(View.of(five), View.of(five))
    measures = {one.now["measure"] for one in found}
    rates = {"selection_rate", "true_positive_rate", "false_positive_rate", "precision", "accuracy"}
    assert rates <= measures
    assert {f"{name}_gap" for name in rates} <= measures
    assert not {name for name in measures if name.startswith(("false_negative", "true_negative"))}
    assert not {name for name in measures if name.endswith(("_worst", "_corrected", "_null_level"))}
    assert not any(one.moved for one in found)


def test_three_records_in_order(five: Any, seven: Any) -> None:
    """There and back: the first and the last are alike, and the movement between is said."""
    back = {**five, "made": {**five["made"], "at": "2026-03-05T00:00:00+00:00"}}
    found = compare_records(five, seven, back)
    assert found.sentence.startswith("Over 3 audits since 2026-01-05, ")
    first = found.changes[0]
    assert first.moved
    values = [row["value"] for row in first.rows]
    assert values[0] == values[2] != values[1]
    section = summarise(back, earlier=[five, seven])["sections"][0]
    assert section["kicker"] == "3 audits in order"
    figure = next(one for one in section["blocks"] if one["kind"] == "figure")
    names = [item["text"] for item in figure["legend"]]
    assert names == ["1 · 2026-01-05", "2 · 2026-02-05", "3 · 2026-03-05"]
    line = [mark for mark in figure["charts"][0]["rows"] if mark["line"] == "a"]
    assert [mark["series"] for mark in line] == names
    assert [mark["value"] for mark in line] == [rate(r, "a")["value"] for r in (five, seven, back)]


def test_the_comparison_is_in_the_markdown(five: Any, seven: Any) -> None:
    text = render(five, seven, form="markdown")
    alone = render(seven, form="markdown")
    assert text.startswith(alone)
    assert "### What moved" in text
    before, now = (f"{rate(record, 'b')['value']:.1%}" for record in (five, seven))
    assert re.search(rf"- Selection rate, b: {before} \(.*\) → {now} \(", text)


SYSTEM = """
schema = "evenhand.charter/1"
[system]
name = "Comment removal"
[implementation]
owner = "the model team"
[[choices]]
cost_ratio = 4
tolerance = 1.5
positive_is = "burden"
decided_by = "the council"
reason = "Appeals are slow."
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: Any) -> tuple[Any, Any]:
    """A model's record and its labelers', which call the column of groups by another name."""
    charter = tmp_path_factory.mktemp("charter") / "charter.toml"
    charter.write_text(SYSTEM, encoding="utf-8")
    groups = {"A": Group(share=0.5), "B": Group(share=0.5, threshold=0.7)}
    posts = moderation(6000, groups=groups).frame
    roles = {"truth": "violates", "score": "score", "threshold": 0.5, "group": "gender"}
    model = eh.audit(eh.Decisions(posts, **roles), charter=charter)
    labels = simulate_labelers(labelers=8, items_each=120, seed=3).frame
    own = {"truth": "truth", "decision": "decision", "group": "group", "labeler": "labeler"}
    people = eh.audit(eh.Decisions(labels, **own), charter=charter)
    return json.loads(model.to_json()), json.loads(people.to_json())


def test_a_model_and_its_labelers_stand_on_one_page(pair: tuple[Any, Any]) -> None:
    model, labelers = pair
    for given in (pair, pair[::-1]):
        page = summarise(given[1], earlier=[given[0]])
        ids = [section["id"] for section in page["sections"]]
        assert ids[:2] == ["beside", "labelers"]
        assert "comparison" not in ids
        assert "thresholds" in ids
        assert page["meta"] == summarise(model)["meta"]
    figure = next(b for b in page["sections"][0]["blocks"] if b["kind"] == "figure")
    implied = figure["charts"][0]
    assert implied["title"].lower() == "implied threshold"
    for series, record, lens in (
        ("The model", model, "thresholds"),
        ("Its labelers", labelers, "labelers"),
    ):
        told = {m["line"]: m["value"] for m in implied["rows"] if m["series"] == series}
        rows = {
            row["group"]: row["value"]
            for row in record["results"]
            if row["lens"] == lens and row["measure"] == "implied_threshold"
            and row["stratum"] is None and row["labeler"] is None
        }  # fmt: skip
        assert told == {group: rows[group] for group in told}
        assert set(told) == {"A", "B"}
    text = as_page(labelers, earlier=[model])
    assert "share none" not in text
    assert "The model and its labelers" in text


def test_records_of_two_systems_are_no_pair(pair: tuple[Any, Any]) -> None:
    model, labelers = pair
    system = {**labelers["charter"]["system"], "name": "Another"}
    other = {**labelers, "charter": {**labelers["charter"], "system": system}}
    assert labelers_beside(View.of(other), [View.of(model)]) is None
    assert labelers_beside(View.of(model), [View.of(model)]) is None
    assert labelers_beside(View.of(labelers), [View.of(model)]) is not None


def test_figures_are_written_in_a_papers_size(five: Any, tmp_path: Path) -> None:
    path, folder = tmp_path / "audit.json", tmp_path / "figures"
    path.write_text(record_text(five), encoding="utf-8")
    done = CliRunner().invoke(evenhand, ["report", str(path), "--figures", str(folder)])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "report.html").exists()
    names = [name for name, _ in paper_charts(five)]
    assert names[0] == "picture"
    written = {file.name for file in folder.iterdir()} - {"manifest.json"}
    assert written == {f"{name}.{end}" for name in names for end in ("svg", "png", "pdf")}
    for name in names:
        svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
        width = re.search(r'width="([\d.]+)pt"', svg)
        assert width is not None
        assert float(width[1]) == pytest.approx(PAPER_POINTS, abs=4)
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        pdf = (folder / f"{name}.pdf").read_bytes()
        assert pdf.startswith(b"%PDF")
        box = re.search(rb"/MediaBox ?\[0 0 ([\d.]+) ", pdf)
        assert box is not None
        assert float(box[1]) == pytest.approx(PAPER_POINTS, abs=4)
    # Written again it takes its own place; what somebody else put there is never lost.
    render(five, figures=folder, charts=False)
    (folder / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds 'mine\.txt', which Evenhand did not write"):
        render(five, figures=folder, charts=False)
