"""The first line of an audit: counts that add up, in words that a policy owner reads."""

from typing import Any

import numpy as np
import pytest

from evenhand.findings.verdict_sentences import verdict_sentence
from evenhand.lenses.rows import Rows


def rows(verdicts: list[str], groups: list[str] | None = None, **columns: Any) -> Rows:
    shared = {"measure": "cost_ratio", "attribute": "sex", "limit_low": 1.0, "limit_high": 2.0}
    names = groups or [f"g{i}" for i in range(len(verdicts))]
    return Rows.block((len(verdicts),), verdict=verdicts, group=names, **(shared | columns))


@pytest.mark.parametrize(
    ("verdicts", "verdict", "told"),
    [
        (
            ["outside", "within", "cannot tell"],
            "outside",
            "Gap found: the two mistakes are not weighed as agreed for 1 of 3 groups (g0); for 1 "
            "it cannot be told from this data.",
        ),
        (
            ["outside"] * 5,
            "outside",
            "Gap found: the two mistakes are not weighed as agreed for all 5 groups (g0, g1, g2 "
            "and 2 more).",
        ),
        (
            ["cannot tell", "within"],
            "cannot tell",
            "Cannot tell: whether the two mistakes are weighed as agreed cannot be told for 1 of 2 "
            "groups from this data.",
        ),
        (
            ["within", "within"],
            "within",
            "Nothing outside limits: the two mistakes are weighed as agreed for both groups.",
        ),
        (
            ["within"],
            "within",
            "Nothing outside limits: the two mistakes are weighed as agreed for the one group.",
        ),
    ],
)
def test_cost_ratios_are_counted_by_group(verdicts: list[str], verdict: str, told: str) -> None:
    assert verdict_sentence(rows(verdicts), verdict) == told


def test_an_implied_threshold_is_not_counted_beside_its_cost_ratio() -> None:
    costs = rows(["outside", "within"])
    both = Rows.concatenate([costs, rows(["outside", "within"], measure="implied_threshold")])
    assert verdict_sentence(both, "outside") == verdict_sentence(costs, "outside")
    alone = rows(["outside", "within"], measure="implied_threshold")
    assert verdict_sentence(alone, "outside") == (
        "Gap found: 1 of 2 comparisons lies outside its limit."
    )


def test_with_other_limits_comparisons_are_counted() -> None:
    mixed = Rows.concatenate(
        [rows(["outside", "within"]), rows(["outside"], ["f"], measure="accuracy_gap")]
    )
    assert verdict_sentence(mixed, "outside") == (
        "Gap found: 2 of 3 comparisons lie outside their limits."
    )
    strata = rows(["outside", "within"], stratum=["easy", "hard"])
    assert verdict_sentence(strata, "outside") == (
        "Gap found: 1 of 2 comparisons lies outside its limit."
    )


def test_labelers_are_counted_apart_and_not_named() -> None:
    people = rows(
        ["outside", "outside", "cannot tell"], ["a", "b", "a"], labeler=["Ann", "Ann", "Bob"]
    )
    told = verdict_sentence(Rows.concatenate([rows(["within", "within"]), people]), "outside")
    assert told == (
        "Gap found: the two mistakes are weighed as agreed for both groups; 1 of 2 labelers lies "
        "outside alone."
    )
    many = rows(["outside"] * 2, ["a", "b"], labeler=["Ann", "Bob"])
    told = verdict_sentence(Rows.concatenate([rows(["outside", "within"]), many]), "outside")
    assert told.endswith("(g0); 2 of 2 labelers lie outside by themselves.")


def test_nothing_judged() -> None:
    open_ = rows(["not assessed"], limit_low=np.nan, limit_high=np.nan)
    assert verdict_sentence(open_, "not assessed", limited=True) == (
        "Not assessed: nothing in this table is what the limits or the charter speak of."
    )
    assert verdict_sentence(open_, "not assessed") == (
        "Not assessed: no limit was given, so nothing is judged. Set one with --limit or a charter."
    )
