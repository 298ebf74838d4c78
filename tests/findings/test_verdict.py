"""Rows against limits: boundaries, small cells, what further cases would settle."""

import re
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.errors import LimitExceeded, UsageError
from evenhand.findings.limits import Limit, hide_row, hide_small, judge, overall, read_limits
from evenhand.lenses.rows import Rows

BAND = [Limit(measure="selection_rate_gap", low=-0.05, high=0.05)]


def judged(low: float, high: float, **columns: Any) -> str:
    given = {"measure": "selection_rate_gap", "lens": "statistical", "n": 100, "n_reference": 100}
    row = {**given, "reference": "m", "value": (low + high) / 2, **columns}
    rows = Rows.block((1,), family_low=low, family_high=high, **row)
    return str(judge(rows, BAND)["verdict"][0])


BOUNDARIES = [
    (-0.05, 0.05, "within"),
    (-0.01, 0.01, "within"),
    (-0.0500001, 0.02, "cannot tell"),
    (-0.02, 0.0500001, "cannot tell"),
    (0.05, 0.09, "cannot tell"),
    (0.0500001, 0.09, "outside"),
    (-0.09, -0.0500001, "outside"),
    (-0.09, -0.05, "cannot tell"),
    (-0.2, 0.2, "cannot tell"),
    (float("nan"), float("nan"), "cannot tell"),
]


@pytest.mark.parametrize(("low", "high", "verdict"), BOUNDARIES)
def test_boundaries(low: float, high: float, verdict: str) -> None:
    assert judged(low, high) == verdict


def test_no_limit_is_not_assessed() -> None:
    assert judged(0.2, 0.3, measure="accuracy_gap") == "not assessed"


@pytest.mark.parametrize("column", ["n", "n_reference"])
def test_under_fifty_cannot_be_told(column: str) -> None:
    assert judged(0.2, 0.3, **{column: 49}) == "cannot tell"
    assert judged(0.2, 0.3, **{column: 50}) == "outside"
    assert judged(0.0, 0.01, **{column: 49}) == "cannot tell"


def test_sizes_over_classes_count_classes_not_cases() -> None:
    rows = Rows.block(
        (1,), lens="statistical", measure="selection_rate_gap_rms", value=0.2, family_low=0.1,
        family_high=0.3, n=4,
    )  # fmt: skip
    limits = [Limit(measure="selection_rate_gap_rms", low=0.0, high=0.05)]
    assert judge(rows, limits)["verdict"].tolist() == ["outside"]
    assert hide_small(rows).plain("value") == [0.2]


def test_the_interval_of_the_family_decides_not_the_marginal_one() -> None:
    rows = Rows.block(
        (1,), measure="selection_rate_gap", reference="m", value=-0.01, low=-0.04, high=0.02,
        family_low=-0.06, family_high=0.04, n=100, n_reference=100,
    )  # fmt: skip
    assert judge(rows, BAND)["verdict"].tolist() == ["cannot tell"]


@pytest.mark.parametrize("column", ["n", "n_reference"])
def test_under_ten_is_hidden(column: str) -> None:
    for count in (9, 10):
        rows = Rows.block(
            (1,), measure="selection_rate_gap", value=0.2, low=0.1, high=0.3, p=0.01,
            **{"n": 100, "n_reference": 100, column: count},
        )  # fmt: skip
        for row in (next(iter(hide_small(rows))), hide_row(next(iter(rows)))):
            if count == 9:
                assert row["undefined"] == "fewer than 10 cases: hidden"
                assert [row[k] for k in ("value", "low", "high", "p")] == [None] * 4
            else:
                assert (row["value"], row["undefined"]) == (0.2, None)


def test_undefined_keeps_its_own_reason() -> None:
    rows = Rows.block((1,), measure="selection_rate", n=0, undefined="no cases in the group")
    assert hide_small(rows).plain("undefined") == ["no cases in the group"]


def test_overall_verdict() -> None:
    order = ["outside", "cannot tell", "within", "not assessed"]
    for many in product(order, repeat=3):
        assert overall(many) == min(many, key=order.index)
    assert overall([]) == "not assessed"


def test_limits_in_every_form() -> None:
    found = read_limits(
        {
            "selection_rate_gap": 0.05,
            "accuracy_gap_rms": "0.1",
            "selection_rate_ratio": 0.8,
            "precision_ratio": 1.25,
            "accuracy": "0.7:1",
            "false_positive_rate_gap": "-0.02:0.05",
        }
    )
    assert [(limit.low, limit.high) for limit in found] == [
        (-0.05, 0.05),
        (0.0, 0.1),
        (0.8, 1.25),
        (0.8, 1.25),
        (0.7, 1.0),
        (-0.02, 0.05),
    ]
    told = (
        "limit selection_rate_gap=inf has no end on one side, so nothing could be judged. Write "
        "both ends, such as selection_rate_gap=-1:0.05."
    )
    with pytest.raises(UsageError, match=f"^{re.escape(told)}$"):
        read_limits({"selection_rate_gap": "inf"})


def table(counts: dict[str, tuple[int, int]]) -> pl.DataFrame:
    parts = [(g, d) for g, (hits, n) in counts.items() for d in [1] * hits + [0] * (n - hits)]
    return pl.DataFrame(parts, schema=["group", "decision"], orient="row")


def audited(counts: dict[str, tuple[int, int]], **asked: Any) -> eh.Audit:
    reference = asked.pop("reference", None)
    decisions = eh.Decisions(table(counts), decision="decision", group="group", reference=reference)
    return eh.audit(decisions, **asked)


def test_check_raises_exactly_where_something_is_outside() -> None:
    limits = {"selection_rate_gap": 0.05}
    outside = audited({"a": (500, 1000), "b": (300, 1000)}, limits=limits)
    with pytest.raises(LimitExceeded) as caught:
        eh.check(outside)
    # a: 500 of 1,000, b: 300 of 1,000. The reference is the first of two as large.
    told, row = str(caught.value).splitlines()
    assert (
        told
        == outside.sentence
        == (
            "Group b gets decision '1' 20 points less often than group a (16 to 24); at most 5 was "
            "agreed."
        )
    )
    assert row.startswith("selection_rate_gap of '1', b against a: −0.200 [−0.2")
    assert row.endswith("], limit −0.050 to 0.050")
    assert caught.value.exit_code == 1
    within = audited({"a": (5000, 10_000), "b": (5010, 10_000)}, limits=limits)
    unclear = audited({"a": (52, 100), "b": (47, 100)}, limits=limits)
    unjudged = audited({"a": (500, 1000), "b": (300, 1000)})
    verdicts = [a.verdict for a in (within, unclear, unjudged)]
    assert verdicts == ["within", "cannot tell", "not assessed"]
    for audit in (within, unclear, unjudged):
        eh.check(audit)


def test_sentences_of_the_verdict() -> None:
    limits = {"selection_rate_gap": 0.05}
    counts = {"a": (5000, 10_000), "b": (3000, 10_000), "c": (2000, 10_000), "d": (40, 80)}
    assert audited(counts, limits=limits, reference="a").sentence == (
        "Group c gets decision '1' less than half as often as group a: 20.0% against 50.0%, 30.0 "
        "points fewer (28.5 to 31.5); at most 5 was agreed. Outside as well: group b 20.0 points "
        "fewer (18.4 to 21.6). (One comparison the data cannot settle.)"
    )
    assert audited({"a": (52, 100), "b": (47, 100)}, limits=limits).sentence == (
        "47% of group b get decision '1', 52% of group a. The data cannot tell: anything from 18 "
        "points fewer to 9 points more fits; at most 5 was agreed. (Nothing is shown to lie "
        "outside its limit.)"
    )


def test_a_limit_that_nothing_meets_is_said() -> None:
    audit = audited({"a": (50, 100), "b": (50, 100)}, limits={"true_positive_rate_gap": 0.05})
    assert audit.verdict == "not assessed"
    assert audit.notes == (
        "The limit on true_positive_rate_gap was not assessed: nothing in this table gives that "
        "measure.",
    )


@pytest.mark.parametrize("reference", ["<rest>", "<overall>", "a"])
def test_limits_hold_for_the_reference_asked_for(reference: str) -> None:
    counts = {"a": (500, 1000), "b": (500, 1000), "c": (100, 1000)}
    audit = audited(counts, limits={"selection_rate_gap": 0.05}, reference=reference)
    rows = audit.rows.take(audit.rows["verdict"] != "not assessed")
    assert set(rows["reference"]) == {reference}
    assert audit.verdict == "outside"
    how = {"<overall>": "about a quarter"}.get(reference, "less than a quarter")
    assert audit.sentence.startswith(f"Group c gets decision '1' {how} as often as ")


def test_small_cells_are_in_the_record_only_when_kept() -> None:
    counts = {"a": (500, 1000), "b": (3, 8)}
    where = {"measure": "selection_rate", "class_": "1", "group": "b"}
    assert audited(counts).rows.where(**where).plain("value") == [None]
    kept = audited(counts, keep_small=True, limits={"selection_rate_gap": 0.05})
    assert kept.rows.where(**where).plain("value") == [0.375]
    # Kept for the JSON, and still not shown to anybody.
    assert "0.375" in kept.to_json()
    assert "−0.125" not in str(kept)
    assert "−0.125" not in kept._repr_html_()
    assert not any("−0.125" in finding.sentence for finding in kept.findings)


@pytest.mark.parametrize(
    ("hits", "n", "limit"),
    [(110, 200, {"selection_rate_gap": 0.02}), (104, 200, {"selection_rate_gap": 0.05}),
     (118, 200, {"selection_rate_ratio": 0.9}), (120, 240, {"selection_rate": "0.4:0.55"})],
)  # fmt: skip
def test_further_cases_settle_the_verdict(hits: int, n: int, limit: dict[str, Any]) -> None:
    def grown(times: float, *, reference: float) -> eh.Audit:
        size, other = round(n * times), round(600 * reference)
        counts = {"a": (other // 2, other), "b": (round(size * hits / n), size)}
        return audited(counts, limits=limit)

    first = grown(1.0, reference=1.0)
    assert first.verdict == "cannot tell"
    settle = first.findings[0].settle
    assert settle is not None
    assert settle.how_many is not None
    one = "selection_rate" in limit
    assert settle.groups == (1 if one else 2)
    times = 1 + settle.how_many / (n if one else n + 600)
    # Four times out of five, so it does at the value itself, and with less than half of it not.
    assert grown(times, reference=1 if one else times).verdict in {"within", "outside"}
    assert grown(0.45 * times, reference=1 if one else 0.45 * times).verdict == "cannot tell"
    if settle.alone is not None:
        assert grown(1 + settle.alone / n, reference=1.0).verdict in {"within", "outside"}


def test_this_group_alone_where_the_reference_is_large() -> None:
    def grown(size: int) -> eh.Audit:
        counts = {"a": (50_000, 100_000), "b": (round(size * 0.55), size)}
        return audited(counts, limits={"selection_rate_gap": 0.02})

    settle = grown(200).findings[0].settle
    assert settle is not None
    assert settle.alone is not None
    assert settle.how_many is not None
    assert settle.alone < settle.how_many / 100
    assert grown(200 + round(settle.alone)).verdict == "outside"
    assert grown(round(0.45 * (200 + settle.alone))).verdict == "cannot tell"


def test_at_the_limit_no_number_would_do() -> None:
    audit = audited({"a": (5000, 10_000), "b": (110, 200)}, limits={"selection_rate_gap": 0.05})
    assert audit.verdict == "cannot tell"
    end = (
        " It lies so close to the limit that more cases would hardly settle it, so decide "
        "whether that is near enough."
    )
    assert audit.findings[0].sentence.endswith(end)


def test_a_floor_that_lacks_is_said() -> None:
    # 30 of the reference: 50 need two thirds more of everybody.
    few = audited(
        {"a": (15, 30), "b": (150, 200)},
        limits={"selection_rate_gap": 0.1},
        reference={"group": "a"},
    )
    settle = few.findings[0].settle
    assert settle is not None
    assert settle.how_many == pytest.approx(max(230 * 20 / 30, settle.how_many))
    assert settle.alone is None
    sure = audited(
        {"a": (1, 30), "b": (190, 200)},
        limits={"selection_rate_gap": 0.1},
        reference={"group": "a"},
    )
    assert sure.verdict == "cannot tell"
    assert sure.findings[0].sentence.endswith(
        "Fewer than 50 cases of the reference are too few for any limit: about 160 more cases "
        "across both groups would bring enough of them."
    )


@given(st.floats(-0.5, 0.5), st.floats(0, 0.3), st.floats(0.001, 0.4), st.integers(0, 200))
def test_verdicts_follow_from_interval_and_band(
    centre: float, half: float, limit: float, n: int
) -> None:
    rows = Rows.block(
        (1,), lens="statistical", measure="accuracy_gap", reference="m", value=centre,
        family_low=centre - half, family_high=centre + half, n=n, n_reference=500,
    )  # fmt: skip
    row = next(iter(judge(rows, read_limits({"accuracy_gap": limit}))))
    if row["verdict"] == "within":
        assert n >= 50
        assert abs(centre) + half <= limit + 1e-12
    elif row["verdict"] == "outside":
        assert n >= 50
        assert abs(centre) - half > limit - 1e-12
    else:
        assert n < 50 or (abs(centre) - half <= limit and abs(centre) + half >= limit)
    assert np.isclose(row["limit_high"], limit)


def test_the_base_of_an_impact_ratio_is_not_judged_against_itself() -> None:
    decided = [1, 0] * 4_000
    table = {"d": decided, "g": ["a"] * 4_000 + ["b"] * 4_000}
    found = eh.audit(table, decision="d", group="g", limits={"impact_ratio": 0.8})
    rows = found.rows.where(measure="impact_ratio", class_="1")
    assert sorted(rows["verdict"]) == ["not assessed", "within"]
    assert found.verdict == "within"
