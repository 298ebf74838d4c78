"""Sentences never contradict the row they are made from."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.findings.sentences.rows import row_sentence
from evenhand.findings.sentences.words import Words
from evenhand.lenses.measures import counted_rates
from evenhand.lenses.rows import COLUMNS
from evenhand.simulate.moderation import moderation
from evenhand.speech import number, plural, signed

COMPARED = [f"{rate}{end}" for rate in counted_rates() for end in ("_gap", "_ratio")]


@st.composite
def compared_rows(draw: st.DrawFn) -> dict[str, Any]:
    measure = draw(st.sampled_from(COMPARED))
    centre = 1.0 if measure.endswith("_ratio") else 0.0
    value = draw(st.floats(-0.9, 0.9) | st.floats(-0.002, 0.002)) + centre
    below, above = draw(st.floats(0, 0.3)), draw(st.floats(0, 0.3))
    n, m = draw(st.integers(0, 5000)), draw(st.integers(0, 5000))
    row = dict.fromkeys(COLUMNS)
    return row | {
        "lens": "statistical", "measure": measure, "class": "nurse", "attribute": "gender",
        "group": "female", "reference": draw(st.sampled_from(["male", "<rest>", "<overall>"])),
        "value": value, "low": value - below, "high": value + above, "family_low": value - below,
        "family_high": value + above, "n": n, "n_reference": m, "verdict": "not assessed",
        "stratum": draw(st.sampled_from([None, "north"])),
    }  # fmt: skip


def printed(text: str) -> float:
    return float(text.replace("−", "-").replace("+", ""))


def audit_words() -> Words:
    return Words(positive="1")


@given(compared_rows())
def test_direction_and_numbers_agree_with_the_row(row: dict[str, Any]) -> None:
    sentence = row_sentence(row)
    ratio = row["measure"].endswith("_ratio")
    away = row["value"] - 1 if ratio else row["value"]
    open_ = row["family_low"] <= (1 if ratio else 0) <= row["family_high"]
    assert sentence.lower().replace("in stratum north, ", "").startswith(
        "the data cannot tell"
    ) == (open_)
    if "more often" in sentence:
        assert away > 0
    elif "less often" in sentence:
        assert away < 0 or (open_ and away == 0)
    elif not ratio:
        assert "as often as" in sentence or "are right as often" in sentence
        assert abs(away) < 0.0006
    if ratio and not open_:
        found = re.search(r"([−\d.]+) times as often as .* \(([−\d.]+) to ([−\d.]+)\)", sentence)
        assert found is not None, sentence
        for text, name in zip(found.groups(), ("value", "family_low", "family_high")):
            assert printed(text.replace("-", "−")) == pytest.approx(row[name], abs=0.0051)
    elif not open_:
        found = re.search(
            r"([\d.]+) points? (?:more|less) often than .* \(([\d.]+) to ([\d.]+)\)", sentence
        )
        if found is not None:
            near, far = sorted((abs(row["family_low"]), abs(row["family_high"])))
            for text, number_ in zip(found.groups(), (abs(row["value"]), near, far)):
                assert printed(text) == pytest.approx(100 * number_, abs=0.51)
    else:
        assert "anything from " in sentence
    assert sentence.startswith("In stratum north, ") == (row["stratum"] == "north")
    assert "<" not in sentence
    assert "[" not in sentence


@given(st.floats(-1e6, 1e6) | st.floats(-0.01, 0.01))
def test_numbers_have_one_zero(value: float) -> None:
    assert "-" not in number(value)
    assert printed(number(value)) == round(value, 3)
    assert signed(value).startswith("+") == (printed(number(value)) > 0)
    assert number(-0.0001) == number(0.0001) == signed(-0.0001) == "0.000"


@given(st.integers(0, 10**7))
def test_plurals(count: int) -> None:
    assert plural(count, "case") == f"{count:,} {'case' if count == 1 else 'cases'}"


def test_a_fraction_of_a_case_is_not_one() -> None:
    assert plural(0.6, "case") == "1 case"
    assert plural(1.4, "case") == "1 case"
    assert plural(1.6, "case") == "2 cases"


def test_undefined_rows_say_why() -> None:
    row = dict.fromkeys(COLUMNS) | {
        "measure": "true_positive_rate_gap", "class": "1", "group": "f", "reference": "<rest>",
        "undefined": "no cases in the group", "attribute": "gender",
    }  # fmt: skip
    assert row_sentence(row) == (
        "True positive rate gap of '1', group f against everybody else, is undefined: no cases in "
        "the group."
    )


def test_every_row_of_an_audit_has_a_sentence() -> None:
    posts = moderation(900, seed=3).frame
    decisions = eh.Decisions(
        posts, truth="violates", decision="removed", score="score", group=["gender"],
        stratum="region",
    )  # fmt: skip
    rows = eh.audit(decisions).rows
    for row in rows:
        sentence = row_sentence(row)
        assert sentence.endswith(".")
        assert "None" not in sentence
        assert "nan" not in sentence
        if row["value"] is None:
            assert str(row["undefined"]).removesuffix(": hidden") in sentence
        elif row["family_low"] is not None:
            assert re.search(r"\([^)]* to [^)]*\)|\(up to .*\)|anything from|most often", sentence)


def test_words_that_are_never_said() -> None:
    posts = moderation(6000, seed=3).frame
    roles = {"truth": "violates", "decision": "removed", "group": ["gender", "region"]}
    for limits in (None, {"selection_rate_gap": 0.5}, {"selection_rate_gap": 0.01}):
        audit = eh.audit(eh.Decisions(posts, **roles), limits=limits)
        text = " ".join([audit.sentence, *(f.sentence for f in audit.findings), str(audit)])
        assert not re.search(r"\b(fair|unbiased|passed|favou?red|stricter|privileged)\b", text)


def test_findings_lead_with_what_they_judge() -> None:
    posts = moderation(12_000, seed=3).frame
    roles = {"truth": "violates", "decision": "removed", "group": "gender"}
    audit = eh.audit(eh.Decisions(posts, **roles), limits={"selection_rate_gap": 0.01})
    first = audit.findings[0]
    assert (first.verdict, first.measure) == ("outside", "selection_rate_gap")
    lead = [audit.rows.take([i]) for i in first.rows]
    outside = [next(iter(r)) for r in lead if r["verdict"][0] == "outside"]
    assert any(row_sentence(row, audit_words(), audit.rows.where) == first.line for row in outside)
