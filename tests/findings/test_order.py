"""What leads: outside by how far, then what was asked, then the rest by evidence."""

from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.charter.read import parse_charter
from evenhand.findings.find import find
from evenhand.findings.order import beyond, leading, strength
from evenhand.findings.sentences.words import Words
from evenhand.lenses.rows import COLUMNS, Rows

WORDS = """\
schema = "evenhand.charter/1"
[system]
item = ["defendant", "defendants"]
decided = "flagged"
truth = ["reoffended", "did not reoffend"]
[system.groups.race]
African-American = "African-American defendants"
Caucasian = "Caucasian defendants"
"""


def defendants() -> pl.DataFrame:
    """As many as ProPublica counted: flagged or not, by what happened in the next two years."""
    counts = {
        ("African-American", 0): (805, 990), ("African-American", 1): (1369, 532),
        ("Caucasian", 0): (349, 1139), ("Caucasian", 1): (505, 461),
    }  # fmt: skip
    rows = [
        (race, truth, decision)
        for (race, truth), pair in counts.items()
        for decision, n in zip((1, 0), pair)
        for _ in range(n)
    ]
    return pl.DataFrame(rows, schema=["race", "truth", "decision"], orient="row")


ROLES = {"truth": "truth", "decision": "decision", "group": "race"}


def test_without_limits_errors_lead_and_the_verdict_states_them() -> None:
    charter = parse_charter(WORDS)
    audit = eh.audit(defendants(), charter=charter, reference={"race": "Caucasian"}, **ROLES)
    assert audit.verdict == "not assessed"
    # 805 of 1,795 against 349 of 1,488. More are selected with even smaller p; errors go first.
    assert audit.sentence == (
        "African-American defendants who did not reoffend are flagged nearly twice as often as "
        "Caucasian ones: 44.8% against 23.5%, 21.4 points more (18.2 to 24.5). No limits are set, "
        "so nothing is judged; `evenhand charter new` starts that conversation."
    )
    found = [one.measure for one in audit.findings if one.lens == "statistical"]
    assert found[0] == "false_positive_rate_gap"
    assert found.index("true_positive_rate_gap") < found.index("selection_rate_gap")
    assert audit.record()["headline"] == (
        "African-American defendants who did not reoffend are flagged nearly twice as often as "
        "Caucasian ones: 44.8% against 23.5%, 21.4 points more (18.2 to 24.5)."
    )


def test_words_come_from_the_charter_of_the_record_alone() -> None:
    bare = eh.audit(defendants(), reference={"race": "Caucasian"}, **ROLES)
    assert bare.findings[0].line == (
        "Of those whose truth is not '1', 44.8% of group African-American get decision '1' and "
        "23.5% of group Caucasian: 21.4 points more (18.2 to 24.5)."
    )


def row(value: float, half: float, **columns: Any) -> dict[str, Any]:
    ends = {"low": value - half, "high": value + half}
    ends |= {f"family_{name}": end for name, end in ends.items()}
    shared = {"measure": "accuracy_gap", "value": value, "level": 0.95, "n": 500}
    return dict.fromkeys(COLUMNS) | shared | ends | {"n_reference": 900} | columns


LIMIT = {"limit_low": -0.05, "limit_high": 0.05}


def test_how_far_beyond_in_standard_errors() -> None:
    # 0.1 ± 0.0392 is 0.1 ± 1.96 · 0.02: 2.5 errors beyond 0.05, and 5 from no difference.
    one = row(0.1, 0.0392, **LIMIT)
    assert beyond(one) == pytest.approx(2.5, abs=1e-3)
    assert strength(one) == pytest.approx(5.0, abs=1e-3)
    assert beyond(row(-0.1, 0.0392, **LIMIT)) == pytest.approx(2.5, abs=1e-3)
    assert beyond(row(0.0, 0.0392, **LIMIT)) == pytest.approx(-2.5, abs=1e-3)
    # Weights are as far at half as at twice: log 2 over the same error of the logarithm.
    band = {"measure": "cost_ratio", "limit_low": 2.0, "limit_high": 8.0}
    high = row(16, 0, **band) | {"low": 8.0, "high": 32.0}
    low = row(1, 0, **band) | {"low": 0.5, "high": 2.0}
    assert beyond(high) == pytest.approx(1.96, abs=1e-3)
    assert beyond(low) == pytest.approx(beyond(high))
    # A size has no lower end to fall below.
    size = {"measure": "accuracy_gap_rms", "limit_low": 0.0, "limit_high": 0.05}
    assert beyond(row(0.01, 0.01, **size)) < 0


def test_of_those_clearly_outside_the_furthest_leads() -> None:
    ordinary = row(-0.07, 0.004, verdict="outside", group="ordinary", **LIMIT)
    outlier = row(-0.4, 0.1, verdict="outside", group="outlier", **LIMIT)
    marginal = row(-0.5, 0.44, verdict="outside", group="marginal", **LIMIT)
    assert leading([ordinary, outlier, marginal]) is outlier
    few = row(-0.9, 0.1, verdict="outside", **LIMIT, n=38)
    assert leading([few, ordinary]) is ordinary


def test_half_is_as_far_as_twice() -> None:
    third = row(1 / 3, 0.05, measure="accuracy_ratio", verdict="not assessed")
    twice = row(2.0, 0.1, measure="accuracy_ratio", verdict="not assessed")
    assert leading([third, twice]) is third


def test_of_what_is_open_the_largest_leads() -> None:
    small = row(-0.02, 0.015, verdict="cannot tell", **LIMIT)
    large = row(-0.051, 0.06, verdict="cannot tell", **LIMIT)
    assert leading([small, large]) is large


def table(**columns: Any) -> Rows:
    count = len(columns["value"])
    shared = {"lens": "statistical", "level": 0.95, "n": 900, "n_reference": 900, "class": "1"}
    low = [v - 0.02 for v in columns["value"]]
    high = [v + 0.02 for v in columns["value"]]
    ends = {"low": low, "high": high, "family_low": low, "family_high": high}
    return Rows.block((count,), **(shared | {"reference": "m"} | ends | columns))


def test_a_larger_crossed_gap_leads_and_nobody_outside_is_hidden() -> None:
    rows = table(
        measure="selection_rate_gap",
        attribute=["sex", "sex*age", "sex*age", "sex*age"],
        group=["f", "f*old", "x*old", "f*young"],
        value=[0.1, 0.15, 0.3, 0.12],
        verdict="outside", limit_low=-0.05, limit_high=0.05,
    )  # fmt: skip
    first, second = find(rows, Words(positive="1"))
    assert (first.attribute, second.attribute) == ("sex*age", "sex")
    assert first.line == (
        "People whose sex is x and age is old get decision '1' 30 points more often than group m "
        "(28 to 32); at most 5 was agreed. Outside as well: people whose sex is f and age is old, "
        "15 points more (13 to 17); people whose sex is f and age is young, 12 points more (10 to "
        "14)."
    )


def test_outside_by_errors_then_what_was_asked_then_the_rest() -> None:
    rows = table(
        measure=["accuracy_gap", "false_positive_rate_gap", "true_positive_rate_gap",
                 "selection_rate_gap", "precision_gap"],
        attribute="sex", group="f", value=[0.04, 0.3, 0.15, 0.4, 0.04],
        verdict=["within", "outside", "outside", "not assessed", "cannot tell"],
        limit_low=[-0.09, -0.05, -0.05, float("nan"), -0.05],
        limit_high=[0.09, 0.05, 0.05, float("nan"), 0.05],
    )  # fmt: skip
    assert [one.measure for one in find(rows, Words())] == [
        "false_positive_rate_gap", "true_positive_rate_gap", "precision_gap", "accuracy_gap",
        "selection_rate_gap",
    ]  # fmt: skip


def test_a_group_under_fifty_never_leads() -> None:
    rows = table(
        measure=["false_positive_rate_gap", "selection_rate_gap"], attribute="race",
        group=["Asian", "Black"], value=[0.5, 0.1], verdict="cannot tell", n=[38, 900],
        limit_low=-0.05, limit_high=0.05,
    )  # fmt: skip
    assert [one.claim.group for one in find(rows, Words()) if one.claim] == ["Black", "Asian"]


def test_one_choice_is_said_on_one_scale() -> None:
    rows = table(
        lens="thresholds", measure=["cost_ratio", "cost_ratio", "cost_ratio_ratio"],
        attribute="sex", group=["f", "m", "f"], reference=[None, None, "m"],
        value=[16.0, 4.0, 4.0], verdict=["outside", "within", "not assessed"],
        limit_low=[3.0, 3.0, float("nan")], limit_high=[6.0, 6.0, float("nan")],
    )  # fmt: skip
    assert [one.measure for one in find(rows, Words())] == ["cost_ratio"]
    free = rows.replace(
        verdict=["not assessed"] * 3, limit_low=[float("nan")] * 3, limit_high=[float("nan")] * 3
    )
    [one] = find(free, Words())
    assert one.measure == "cost_ratio_ratio"
    assert one.headline == "Group f gets decision '1' on weaker evidence than group m"
