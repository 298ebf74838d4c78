"""The first words of an audit: the finding that leads, and counts that add up."""

from typing import Any

import numpy as np
import pytest

from evenhand.findings.finding import Finding
from evenhand.findings.sentences.verdict import verdict_words
from evenhand.lenses.rows import Rows


def rows(verdicts: list[str], groups: list[str] | None = None, **columns: Any) -> Rows:
    shared = {"measure": "cost_ratio", "attribute": "sex", "limit_low": 1.0, "limit_high": 2.0}
    names = groups or [f"g{i}" for i in range(len(verdicts))]
    return Rows.block((len(verdicts),), verdict=verdicts, group=names, **(shared | columns))


def findings(*verdicts: str) -> list[Finding]:
    return [
        Finding(
            lens="statistical", layer="implementation", verdict=verdict, sentence="S.",
            measure="accuracy_gap", attribute="sex", rows=(), summary=f"Summary {i}.",
        )
        for i, verdict in enumerate(verdicts)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "found", "follows"),
    [
        (["outside", "within"], ["outside"], ""),
        (["outside", "cannot tell"], ["outside"], "(One comparison the data cannot settle.)"),
        (
            ["outside"] * 3 + ["cannot tell"] * 6,
            ["outside"] * 3,
            "(Two more findings lie outside their limits; six comparisons the data cannot settle.)",
        ),
        (["outside"] * 2, ["outside"] * 2, "(One more finding lies outside its limit.)"),
        (["cannot tell"], ["cannot tell"], "(Nothing is shown to lie outside its limit.)"),
        (
            ["cannot tell", "cannot tell", "within"],
            ["cannot tell"],
            "(Nothing is shown to lie outside its limit; two of 3 comparisons the data cannot "
            "settle.)",
        ),
    ],
)
def test_counts_follow_the_finding(verdicts: list[str], found: list[str], follows: str) -> None:
    told = verdict_words(rows(verdicts), verdicts[0], findings(*found, "not assessed"))
    assert told == ("Summary 0.", follows)


@pytest.mark.parametrize(
    ("count", "columns", "headline"),
    [
        (1, {}, "The two mistakes are weighed as agreed for the one group."),
        (2, {}, "The two mistakes are weighed as agreed for both groups."),
        (5, {}, "The two mistakes are weighed as agreed for all 5 groups."),
        (1, {"measure": "accuracy_gap"}, "The one comparison made lies within its limit."),
        (3, {"measure": "accuracy_gap"}, "All 3 comparisons made lie within their limits."),
        (2, {"stratum": ["a", "b"]}, "All 2 comparisons made lie within their limits."),
    ],
)
def test_where_all_is_kept(count: int, columns: dict[str, Any], headline: str) -> None:
    assert verdict_words(rows(["within"] * count, **columns), "within") == (headline, "")


def test_an_implied_threshold_is_not_counted_beside_its_cost_ratio() -> None:
    verdicts = ["outside", "cannot tell"]
    both = Rows.concatenate([rows(verdicts), rows(verdicts, measure="implied_threshold")])
    told = verdict_words(both, "outside", findings("outside"))
    assert told[1] == "(One comparison the data cannot settle.)"


def test_single_labelers_are_not_counted_as_comparisons() -> None:
    people = rows(["cannot tell"] * 2, ["a", "b"], labeler=["Ann", "Bob"])
    told = verdict_words(
        Rows.concatenate([rows(["outside"]), people]), "outside", findings("outside")
    )
    assert told == ("Summary 0.", "")


def test_nothing_judged_still_says_what_was_found() -> None:
    open_ = rows(["not assessed"], limit_low=np.nan, limit_high=np.nan)
    assert verdict_words(open_, "not assessed", findings("not assessed"), limited=True) == (
        "Summary 0.",
        "Nothing in this table is what the limits or the charter speak of, so nothing is judged.",
    )
    assert verdict_words(open_, "not assessed", findings("not assessed")) == (
        "Summary 0.",
        "No limits are set, so nothing is judged; `evenhand charter new` starts that conversation.",
    )
