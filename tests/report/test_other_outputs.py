"""Comparison of two records, annotations, model card, CycloneDX, single charts, the command."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import evenhand as eh
from evenhand.cli.main import evenhand
from evenhand.errors import DataError, UsageError
from evenhand.files.documents import sealed
from evenhand.findings.record import record_text
from evenhand.remedies.ledger.files import read_ledger
from evenhand.report.charts import specification
from evenhand.report.compare import change_sentence, changes, other_references
from evenhand.report.cyclonedx import document
from evenhand.report.formats import as_annotations, as_card_section, put_into
from evenhand.report.notebook import charts_of, show_chart
from evenhand.report.page import as_page, summarise
from evenhand.report.sections.remedies import remedies_section
from evenhand.report.svg import dressed
from evenhand.report.view import View
from evenhand.simulate.moderation import Group, moderation

SAME = {"f": Group(share=0.5), "m": Group(share=0.5)}
APART = {"f": Group(share=0.5, threshold=0.8), "m": Group(share=0.5)}
CELL = {"low": None, "high": None, "sd": None}


def record(groups: Any, *, seed: int = 0) -> Any:
    frame = moderation(8000, groups=groups, seed=seed).frame
    roles = {"truth": "violates", "decision": "removed", "group": "gender"}
    decisions = eh.Decisions(frame, **roles, reference={"gender": "m"})
    return json.loads(eh.audit(decisions, limits={"true_positive_rate_gap": 0.05}).to_json())


@pytest.fixture(scope="module")
def before() -> Any:
    return record(SAME)


@pytest.fixture(scope="module")
def now() -> Any:
    return record(APART, seed=1)


@pytest.fixture(scope="module")
def ledger() -> Any:
    rows, classes = [], []
    for i, remedy in enumerate(("baseline", "augment")):
        values = {"accuracy": 0.8 - 0.01 * i, "true_positive_rate_gap_rms": 0.2 - 0.1 * i}
        measures = {name: {"all": {**CELL, "value": v}} for name, v in values.items()}
        rows.append(
            {
                "remedy": remedy,
                "representation": "bow",
                "status": "measured",
                "pareto": True,
                "measures": measures,
                "needs_group_at_decision": False,
                "sentence": "as it is.",
            }
        )
        for k, name in enumerate("abcd"):
            classes.append(
                {
                    "remedy": remedy,
                    "representation": "bow",
                    "seed": 0,
                    "class": name,
                    "group": "f",
                    "training_share": 0.2 * k + 0.1,
                    "true_positive_rate_gap": (0.1 * k - 0.15) / (i + 1),
                    "norm_correlation": (0.2 * k - 0.3) / (i + 1),
                }
            )
    lost = {"remedy": "cocl", "representation": "bow", "status": "failed", "reason": "no names"}
    return {"schema": "evenhand.ledger/1", "rows": [*rows, lost], "classes": classes}


def test_movement_is_found_where_it_was_planted(before: Any, now: Any) -> None:
    old, new = View.of(before), View.of(now)
    found = changes(old, new)
    moved = {one.now["measure"] for one in found if one.moved}
    assert "true_positive_rate_gap" in moved
    assert re.fullmatch(
        r"Compared with the audit of \d{4}-\d\d-\d\d, \d+ of \d+ numbers moved beyond sampling "
        r"error, and 1 verdict changed\. Most clearly: True positive rate gap, f: .+ → .+ "
        r"\(cannot tell before, outside now\)\.",
        change_sentence([old, new], found),
    )
    assert "What moved beyond sampling error" in as_page(now, earlier=[before])


def test_nothing_moves_between_two_draws_of_the_same(before: Any) -> None:
    old, new = View.of(before), View.of(record(SAME, seed=5))
    found = changes(old, new)
    assert found
    assert not [one for one in found if one.moved]
    assert "none of" in change_sentence([old, new], found)


def test_audits_with_other_references_say_so_in_one_sentence(before: Any) -> None:
    frame = moderation(8000, groups=SAME).frame
    roles = {"truth": "violates", "decision": "removed", "group": "gender"}
    other = eh.audit(eh.Decisions(frame, **roles, reference={"gender": "f"})).to_json()
    old, new = View.of(before), View.of(json.loads(other))
    told = (
        "The two audits compare with different groups for gender (m before, f now), so their gaps "
        "and ratios cannot be compared: make both with the same --reference."
    )
    assert other_references(old, new) == told
    assert other_references(old, old) is None
    assert change_sentence([old, new], changes(old, new)).endswith(told)
    page = as_page(json.loads(other), earlier=[before])
    assert page.replace('<span class="flag">', "").replace("</span>", "").count(told) == 2


def test_what_another_number_says_is_counted_once(before: Any, now: Any) -> None:
    found = {one.now["measure"] for one in changes(View.of(before), View.of(now))}
    assert {"true_positive_rate_gap", "accuracy_gap", "selection_rate_gap"} <= found
    assert not {m for m in found if m.startswith(("false_negative", "true_negative"))}
    assert not {m for m in found if m.endswith("_ratio") and f"{m[:-6]}_gap" in found}
    # A limit on a ratio keeps it: its verdict may change.
    for held in (before, now):
        limited = {**held, "results": [
            row | ({"limit_low": 0.8, "limit_high": 1.25} if row["measure"] == "accuracy_ratio"
                   else {}) for row in held["results"]]}  # fmt: skip
        measures = {one.now["measure"] for one in changes(View.of(limited), View.of(limited))}
        assert "accuracy_ratio" in measures


def test_annotations_carry_level_and_escape(now: Any) -> None:
    finding = {"verdict": "cannot tell", "sentence": "50% of a,\nb: gap."}
    lines = as_annotations({**now, "findings": [*now["findings"], finding]}).splitlines()
    assert lines[0].startswith("::notice title=Evenhand::Gap found: People of group f whose truth")
    assert lines[1].startswith("::error title=Evenhand%3A People of group f whose truth is '1'")
    # Without a claim a sentence is its own heading: nothing is cut out of it.
    assert lines[-1] == "::warning title=Evenhand%3A 50%25 of a%2C b%3A gap::50%25 of a, b: gap."


def test_card_section_takes_the_place_of_an_older_one(before: Any, now: Any) -> None:
    card = put_into("# My model\n", as_card_section(before))
    newer = put_into(card, as_card_section(now))
    assert newer.startswith("# My model\n")
    assert newer.count("## Bias, Risks, and Limitations") == 1
    assert "less often than group m" in newer
    assert "Audited on 8,000 rows, by `gender`." in newer


def test_cyclonedx_names_group_and_interval(now: Any) -> None:
    found = document(now)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    card = found["components"][0]["modelCard"]
    harms = card["considerations"]["fairnessAssessments"][0]
    assert harms["groupAtRisk"] == "gender=f"
    assert harms["harms"].startswith("Outside: Of those whose truth is '1', 51% of group f get")
    metric = card["quantitativeAnalysis"]["performanceMetrics"][0]
    row = next(
        r for r in now["results"] if r["measure"] == "true_positive_rate_gap" and r["class"] == "1"
    )
    assert float(metric["value"]) == pytest.approx(row["value"], rel=1e-5)
    low = metric["confidenceInterval"]["lowerBound"]
    assert float(low) == pytest.approx(row["family_low"], rel=1e-5)


def test_charts_show_and_save(now: Any, tmp_path: Path) -> None:
    chart = show_chart(now)
    assert chart._repr_svg_().startswith("<svg")
    assert "How to read" in chart._repr_html_()
    chart.save(tmp_path / "c.svg")
    chart.save(tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "c.svg").read_text(encoding="utf-8").startswith("<svg")
    with pytest.raises(UsageError, match=r"neither an SVG nor a PNG"):
        chart.save(tmp_path / "c.jpg")
    with pytest.raises(UsageError, match=r"Did you mean 'accuracy-gap-gender'\?"):
        show_chart(now, "accuracy-gap-gendr")
    assert {"accuracy-gap-gender", "true-positive-rate-gap-gender"} <= set(charts_of(now))


def test_unknown_chart_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'forrest' does not exist\. Did you mean 'forest'"):
        specification({"kind": "forrest"})


def test_labels_in_a_picture_stay_text() -> None:
    svg = '<svg width="9" height="9"><path d="M0" aria-label="&lt;b&gt;0.123456 #b5400b"/></svg>'
    made = dressed(svg, name="a", title="<x>", described="d")
    assert "<title>&lt;b&gt;0.123456 #b5400b</title>" in made
    assert "&lt;x&gt;" in made


def _charts(section: Any) -> list[Any]:
    return [chart for block in section["blocks"] for chart in block.get("charts") or ()]


def test_ledger_page_draws_what_it_has(ledger: Any) -> None:
    page = as_page(None, ledger=ledger)
    for name in ("pareto-bow", "strips-bow-f", "norms-remedies-bow-f", "training-bow-f"):
        assert f'id="{name}"' in page
    assert "Options that were not measured" in page
    assert "no names" in page
    assert "Remedies compared" in as_page(None, ledger={"rows": []})
    # Gaps of remedies in points, without a sign where they are sizes; accuracy in percent.
    drawn = {chart["title"]: chart for chart in _charts(remedies_section(ledger))}
    pareto = drawn["Accuracy against typical true positive rate gap over classes"]
    assert (pareto["x_format"], pareto["y_format"]) == ("size", "%")
    assert pareto["x_axis"].endswith("over classes, in points (left is better)")
    training = drawn["Gaps without a remedy beside the share of f in training"]
    assert (training["x_format"], training["y_format"]) == ("%", "points")
    assert pareto["points"][0]["tip"] == "baseline: accuracy 80.0%, gap 20.0 points"


def test_strips_follow_the_classes_that_the_legend_names(ledger: Any) -> None:
    section = summarise(None, ledger=ledger)["sections"][0]
    block = next(one for one in section["blocks"] if one.get("id") == "strips-bow-f")
    spec = specification(block["charts"][0])
    followed = spec["layer"][-1]["encoding"]
    for i, item in enumerate(block["legend"]):
        for channel, told in (("color", item["colour"]), ("shape", item["shape"])):
            scale = followed[channel]["scale"]
            assert dict(zip(scale["domain"], scale["range"]))[item["text"]] == told, i
    # The legend names them by size; the rows of a ledger come in any order.
    first = {row["label"]: row["value"] for row in spec["data"]["values"] if row.get("followed")}
    assert first


def run(*arguments: str) -> Any:
    return CliRunner().invoke(evenhand, ["report", *arguments])


def test_command_writes_every_output(before: Any, now: Any, ledger: Any, tmp_path: Path) -> None:
    for name, held in (("old", before), ("new", now)):
        (tmp_path / f"{name}.json").write_text(record_text(held), encoding="utf-8")
    folder = tmp_path / "ledger"
    folder.mkdir()
    (folder / "ledger.json").write_text(sealed(json.dumps(ledger)), encoding="utf-8")
    out = tmp_path / "report.html"
    out.write_text("older", encoding="utf-8")
    paths = {name: tmp_path / f"x.{name}" for name in ("markdown", "junit", "card", "cyclonedx")}
    flags = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    done = run(
        str(tmp_path / "old.json"),
        str(tmp_path / "new.json"),
        str(folder),
        "--out",
        str(out),
        "--github",
        *flags,
    )
    assert done.exit_code == 0, done.output
    assert "::error title=" in done.output
    page = out.read_text(encoding="utf-8")
    assert 'id="comparison"' in page
    assert 'id="remedies"' in page
    assert all(path.stat().st_size > 100 for path in paths.values())


def test_a_changed_ledger_is_refused(ledger: Any, tmp_path: Path) -> None:
    folder, page = tmp_path / "ledger", tmp_path / "r.html"
    folder.mkdir()
    place = folder / "ledger.json"
    text = sealed(json.dumps(ledger, indent=1))
    place.write_text(text, encoding="utf-8")
    assert read_ledger(folder)["rows"] == ledger["rows"]
    assert eh.render(folder, form="page", charts=False)
    changed = text.replace('"value": 0.8', '"value": 0.9', 1)
    bare = json.dumps({name: held for name, held in ledger.items() if name != "checksum"})
    for words, why in (
        (changed, "was changed after it was written: its checksum does not fit."),
        (bare, "has no checksum, with which every ledger ends."),
    ):
        assert words != text
        place.write_text(words, encoding="utf-8")
        said = f"'{place}' {why} Use the ledger as it was written, or compare again."
        for given in (folder, place):
            with pytest.raises(DataError) as caught:
                read_ledger(given)
            assert str(caught.value) == said
            with pytest.raises(DataError) as caught:
                eh.render(given, form="page")
            assert str(caught.value) == said
            done = run(str(given), "--out", str(page))
            assert isinstance(done.exception, DataError)
            assert str(done.exception) == said
            assert not page.exists()


def test_command_refuses_in_words(before: Any, tmp_path: Path) -> None:
    good, other = tmp_path / "a.json", tmp_path / "b.json"
    good.write_text(record_text(before), encoding="utf-8")
    other.write_text('{"schema": "evenhand.audit/9"}', encoding="utf-8")
    with pytest.raises(UsageError, match="there is no folder"):
        raise run(str(good), "--out", str(tmp_path / "no" / "r.html")).exception
    with pytest.raises(DataError, match=r"has schema 'evenhand\.audit/9'"):
        raise run(str(other), "--out", str(tmp_path / "r.html")).exception
    with pytest.raises(DataError, match="There is no file"):
        raise run(str(tmp_path / "none.json"), "--out", str(tmp_path / "r.html")).exception
    with pytest.raises(UsageError, match="Name one record, several to compare"):
        raise run().exception
    assert not (tmp_path / "r.html").exists()
