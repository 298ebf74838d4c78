"""One lens of an audit on its own: its rows, findings, notebook form and charts."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.report.page import as_page
from evenhand.simulate.counterfactual import paired_decisions
from evenhand.simulate.labelers import simulate_labelers
from evenhand.simulate.norms import simulate_norms
from evenhand.simulate.scores import ScoreGroup, simulate_scores


def _scores() -> Any:
    frame = simulate_scores({"A": ScoreGroup(), "B": ScoreGroup(shift=0.8)}).frame
    roles = {"truth": "truth", "score": "score", "threshold": 0.5, "group": "group"}
    return eh.audit(eh.Decisions(frame, **roles), limits={"true_positive_rate_gap": 0.05})


def _labelers() -> Any:
    frame = simulate_labelers(labelers=8, items_each=120).frame
    roles = {"truth": "truth", "decision": "decision", "labeler": "labeler", "group": "group"}
    return eh.audit(eh.Decisions(frame, **roles))


def _norms() -> Any:
    frame = simulate_norms(120, strength=2.0).frame
    frame = frame.with_columns(pl.Series("decision", frame["title"].to_list()))
    return eh.audit(eh.Decisions(frame, truth="title", decision="decision", group="gender"))


def _pairs() -> Any:
    frame = paired_decisions(3000, gamma=(1.0, 0.0, -1.0), delta=(0.5, -0.5, 0.0)).frame
    return eh.audit(eh.Decisions(frame, truth="truth", decision="decision", group="gender"))


# The audit, one of its lenses, and the chart that leads it.
LENSES = [
    (_scores, "statistical", "true-positive-rate-gap-group"),
    (_scores, "thresholds", "implied-group"),
    (_labelers, "labelers", "labelers-gap-group"),
    (_norms, "norms", "norms-gender-"),
    (_pairs, "counterfactual", "quadrant-"),
]


@pytest.mark.parametrize(("make", "name", "leading"), LENSES, ids=[name for _, name, _ in LENSES])
def test_every_lens_shows_itself(make: Any, name: str, leading: str, tmp_path: Path) -> None:
    whole = make()
    alone = whole.lens(name)
    assert set(alone.rows["lens"]) == {name}
    assert alone.to_frame().equals(whole.to_frame().filter(pl.col("lens") == name))
    told = [one.sentence for one in whole.findings if one.lens == name]
    assert [one.sentence for one in alone.findings] == told
    for one in alone.findings:
        for place in one.rows:
            assert list(alone.rows)[place]["measure"]
    # Findings point at the same rows as before, wherever those stand now.
    rows, before = list(alone.rows), list(whole.rows)
    mine = [one for one in whole.findings if one.lens == name]
    for new, old in zip(alone.findings, mine):
        assert [rows[i] for i in new.rows] == [before[i] for i in old.rows]
    chart = alone.chart()
    assert chart.name.startswith(leading)
    chart.save(tmp_path / "c.svg")
    chart.save(tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    fragment = alone._repr_html_()
    tags: list[str] = []
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    reader.feed(fragment)
    assert {"table", "svg", "figcaption"} <= set(tags)
    assert "script" not in tags
    # Styles reach nothing outside the fragment.
    style = fragment.split("</style>")[0].split("<style scoped>")[1]
    assert all(line.startswith(".evenhand") for line in style.strip().splitlines())
    assert as_page(json.loads(alone.to_json()), charts=False)


def test_a_lens_that_did_not_run_is_refused_in_words() -> None:
    found = _pairs()
    with pytest.raises(UsageError, match=r"The labelers lens did not run: it needs a labeler col"):
        found.lens("labelers")
    with pytest.raises(
        UsageError,
        match=r"There is no result of a lens 'counterfactal'\. Did you mean 'counterfactual'\?",
    ):
        found.lens("counterfactal")


def test_the_lens_answers_to_its_former_name() -> None:
    found = _pairs()
    assert found.lens("causal").verdict == found.lens("counterfactual").verdict


def test_notes_stay_with_their_lens() -> None:
    found = _pairs()
    assert found.lens("counterfactual").notes == found.lens_notes["counterfactual"]
    assert set(found.notes) >= set(found.lens("statistical").notes)
    assert found.rows._repr_html_().count("<table") == 1
