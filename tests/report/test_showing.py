"""What showing an audit costs: each row is looked at a few times, however many there are."""

import json

import numpy as np
import polars as pl
import pytest
from work import calls

import evenhand as eh
from evenhand.files.documents import sealed
from evenhand.findings.record import record_text
from evenhand.report.render import render

LIMITS = {"true_positive_rate_gap": 0.05, "selection_rate_gap": 0.01}
FORMS = ("page", "markdown", "json", "csv", "junit")


def audited(groups: int, classes: int) -> eh.Audit:
    rng = np.random.default_rng(groups)
    rows = 60 * groups * classes
    truth = rng.integers(0, classes, rows)
    decision = np.where(rng.random(rows) < 0.3, rng.integers(0, classes, rows), truth)
    frame = pl.DataFrame({"group": rng.integers(0, groups, rows), "t": truth, "d": decision})
    named = frame.select(pl.format("c {}", name).alias(name) for name in frame.columns)
    return eh.audit(named, truth="t", decision="d", group="group", limits=LIMITS)


@pytest.fixture(scope="module")
def audits() -> tuple[eh.Audit, eh.Audit]:
    return audited(8, 8), audited(16, 16)


def shown(audit: eh.Audit, form: str) -> int:
    if form == "terminal":
        return calls(lambda: str(audit))
    return calls(lambda: render(audit, form=form, charts=False))


@pytest.mark.parametrize("form", ["terminal", *FORMS])
def test_no_form_looks_through_all_rows_for_each_of_them(audits, form):
    few, many = (shown(audit, form) for audit in audits)
    rows = len(audits[1].rows) / len(audits[0].rows)
    assert rows > 3.5
    # What looked through the rows of a measure for each of them grew with their square.
    assert many < 1.15 * rows * few


def test_a_row_costs_a_few_calls(audits):
    rows = len(audits[1].rows)
    assert shown(audits[1], "terminal") < 25 * rows
    assert shown(audits[1], "csv") < 5 * rows
    assert shown(audits[1], "json") < 25 * rows


@pytest.mark.parametrize("details", [{}, {"results": [], "more": {"results": []}}])
def test_a_record_is_written_as_python_writes_it(details):
    table = {"t": ["a%s\n", '"b": {}', "é", "a%s\n"] * 40, "g": ["f", "m", "m", "f"] * 40}
    audit = eh.audit({**table, "d": [*table["t"][1:], "é"]}, truth="t", decision="d", group="g")
    record = audit.record() | {"details": details}
    plainly = sealed(json.dumps(record, ensure_ascii=False, indent=1, allow_nan=False))
    assert record_text(record) == plainly
    assert record_text({**record, "results": []}, rows=audit.rows) == plainly


@pytest.mark.parametrize(
    "results",
    [[], [{}], [{"a": [1]}], [{"a": 1}, {"b": 1}], [{"a": True}, {"a": None}], [{"%s": 1.5}]],
)
def test_other_rows_are_written_too(results):
    record = {"results": results, "verdict": "within"}
    assert record_text(record) == sealed(json.dumps(record, indent=1))


def test_what_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        record_text({"results": [{"value": float("nan")}]})


def test_a_page_is_the_same_the_second_time(audits):
    record = audits[0].record()
    assert render(record, form="page", charts=False) == render(
        audits[0], form="page", charts=False
    ).replace(audits[0].made["at"], record["made"]["at"])
