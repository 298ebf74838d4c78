"""Sentences never contradict the row they are made from."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.findings.sentences import number, plural, row_sentence, signed
from evenhand.lenses.catalogue import RATES
from evenhand.lenses.rows import COLUMNS
from evenhand.report.table import cells
from evenhand.simulate.moderation import moderation

COMPARED = [f"{rate}{end}" for rate in RATES for end in ("_gap", "_ratio")]


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


@given(compared_rows())
def test_direction_and_numbers_agree_with_the_row(row: dict[str, Any]) -> None:
    sentence = row_sentence(row)
    ratio = row["measure"].endswith("_ratio")
    away = row["value"] - 1 if ratio else row["value"]
    rounded = round(away, 3)
    if "more often" in sentence:
        assert away > 0
    elif "less often" in sentence:
        assert away < 0
    else:
        assert re.search(r"as often (as|for)", sentence)
        assert abs(rounded) == 0
    found = re.search(r"(gap|ratio) ([+−]?[\d.]+) \[([−\d.]+), ([−\d.]+)\]", sentence)
    assert found is not None, sentence
    assert found[1] == ("ratio" if ratio else "gap")
    assert printed(found[2]) == round(row["value"], 3) + 0.0
    assert printed(found[3]) == round(row["family_low"], 3) + 0.0
    assert printed(found[4]) == round(row["family_high"], 3) + 0.0
    if not ratio:
        assert found[2].startswith("+") == (rounded > 0)
        assert found[2].startswith("−") == (rounded < 0)
    assert f"n = {row['n']:,} and {row['n_reference']:,}." in sentence
    assert ("in stratum north" in sentence) == (row["stratum"] == "north")
    assert "<" not in sentence
    # The table beside it prints the same number.
    assert cells(row)[4] == found[2]


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
        "True positive rate gap of '1', f against everybody else is undefined: no cases in the "
        "group."
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
        elif row["n"] is not None:
            assert re.search(r"n = [\d,]+|[\d,]+ (group|class)", sentence)


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
    assert any(row_sentence(row) == first.sentence for row in outside)
