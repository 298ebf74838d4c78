"""Why a gap moved: parts that sum to the movement, whatever moved it."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.simulate.weeks import moderation_weeks
from evenhand.watching.causes import Side, movement_rows, parts_of

ROLES: dict[str, Any] = {
    "time": "decided_at", "every": "week", "truth": "violates", "score": "score",
    "threshold": "cut", "group": "gender", "reference": "male", "stratum": "topic",
}  # fmt: skip


def summed(causes: list[dict[str, Any]], *, strata: bool = False) -> dict[str, float]:
    return {c["part"]: c["value"] for c in causes if (c["stratum"] is not None) == strata}


@given(st.integers(0, 2**32 - 1))
def test_parts_sum_to_the_movement(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 40, (2, 2, 3, 2, 3)).astype(float)
    counts[..., 0, :, :] += 1  # no window without a case
    cuts = rng.dirichlet([1.0, 1.0], size=2)
    sides = [Side(counts=counts[g], cuts=cuts) for g in (0, 1)]
    moved = 0.0
    for sign, side in zip((1, -1), sides):
        cases, hits = side.counts.sum(axis=(1, 2, 3)), side.counts[:, :, 1].sum(axis=(1, 2))
        change = hits[1] / cases[1] - hits[0] / cases[0]
        parts = parts_of(side)
        assert (parts.mix + parts.threshold + parts.scores).sum() == pytest.approx(
            change, abs=1e-12
        )
        moved += sign * change
    rows = movement_rows(sides, ["a", "b", "c"], draws=20)
    total = rows[0]["value"]
    assert total == pytest.approx(moved, abs=1e-12)
    assert sum(r["value"] for r in rows[1:] if r["stratum"] is None) == pytest.approx(
        total, abs=1e-12
    )
    assert sum(r["value"] for r in rows if r["stratum"] is not None) == pytest.approx(
        total, abs=1e-12
    )


def watched(tmp_path: Path, frame: pl.DataFrame, **more: Any) -> list[dict[str, Any]]:
    result = eh.watch(
        tmp_path / "s", frame, measures=["false_negative_rate_gap"], since="2025-W07",
        **{**ROLES, **more},
    )  # fmt: skip
    return [c for c in result.document["causes"] if c["group"] == "nonbinary"]


def test_a_raised_threshold_is_named(tmp_path: Path) -> None:
    frame = moderation_weeks(12, changed=7, after=0.7, satire=(0.1, 0.1)).frame
    causes = watched(tmp_path, frame)
    parts = summed(causes)
    assert parts["threshold"] > 0.1
    assert abs(parts["mix"]) < 0.01
    assert abs(parts["scores"]) < 0.05
    threshold = next(c for c in causes if c["part"] == "threshold" and c["stratum"] is None)
    assert threshold["words"] == "the threshold was raised"
    assert threshold["low"] > 0
    # What moved is what the rows themselves say, before against since.
    violations = frame.filter(pl.col("violates") == 1).with_columns(
        missed=pl.col("score") < pl.col("cut"),
        late=pl.col("decided_at") >= pl.lit("2025-02-10").str.to_datetime(),
    )
    rates = {
        (g, late): rate
        for g, late, rate in violations.group_by("gender", "late")
        .agg(pl.col("missed").mean())
        .iter_rows()
    }
    moved = (rates["nonbinary", True] - rates["nonbinary", False]) - (
        rates["male", True] - rates["male", False]
    )
    assert parts["total"] == pytest.approx(moved, abs=1e-12)
    named = parts["mix"] + parts["threshold"] + parts["scores"]
    assert named == pytest.approx(moved, abs=1e-12)


def test_another_mix_is_named(tmp_path: Path) -> None:
    frame = moderation_weeks(12, changed=99, satire=(0.05, 0.9)).frame
    causes = watched(tmp_path, frame)
    parts = summed(causes)
    assert parts["mix"] > 0.05
    assert abs(parts["threshold"]) < 1e-9
    mix = next(c for c in causes if c["part"] == "mix" and c["stratum"] is None)
    assert mix["words"] == "more cases of group nonbinary are satire"


def test_parts_that_cancel_are_shown(tmp_path: Path) -> None:
    # Scores of one group rise by as much as its threshold: nothing moves, and two things did.
    frame = moderation_weeks(12, changed=7, after=0.7, satire=(0.1, 0.1)).frame
    lifted = pl.when(pl.col("cut") > 0.6).then(
        1 / (1 + (-((pl.col("score") / (1 - pl.col("score"))).log() + 0.8473)).exp())
    )
    frame = frame.with_columns(score=lifted.otherwise("score"))
    parts = summed(watched(tmp_path, frame))
    assert abs(parts["total"]) < 0.05
    assert parts["threshold"] > 0.1
    assert parts["scores"] < -0.1


def test_without_scores_rates_within_strata_are_the_rest(tmp_path: Path) -> None:
    frame = moderation_weeks(12, changed=7, after=0.7).frame.with_columns(
        removed=(pl.col("score") >= pl.col("cut")).cast(pl.Int64)
    )
    causes = watched(tmp_path, frame, score=None, threshold=None, decision="removed")
    parts = summed(causes)
    assert set(parts) == {"total", "mix", "rate"}
    assert parts["rate"] > 0.1
    assert {c["stratum"] for c in causes} == {None, "other", "satire"}


def test_without_strata_or_scores_there_is_nothing_to_part(tmp_path: Path) -> None:
    frame = moderation_weeks(12, posts=400).frame.with_columns(
        removed=(pl.col("score") >= pl.col("cut")).cast(pl.Int64)
    )
    assert (
        watched(tmp_path, frame, score=None, threshold=None, stratum=None, decision="removed") == []
    )


def test_a_moved_threshold_is_told_from_moved_calibration(tmp_path: Path) -> None:
    frame = moderation_weeks(16, changed=9, after=0.7, satire=(0.1, 0.1)).frame
    roles = {**ROLES, "stratum": None}
    result = eh.watch(
        tmp_path / "a", frame, measures=["implied_threshold"], since="2025-W09", **roles
    )
    parts = {
        c["part"]: c
        for c in result.document["causes"]
        if c["group"] == "nonbinary" and c["measure"] == "implied_threshold"
    }
    assert parts["threshold"]["low"] > 0.05
    assert abs(parts["calibration"]["value"]) < 0.1
    assert parts["threshold"]["value"] + parts["calibration"]["value"] == pytest.approx(
        parts["total"]["value"], abs=1e-12
    )
    assert parts["threshold"]["words"] == "the threshold was raised"


def test_labelers_who_ask_for_less_evidence_have_lowered_their_bar(tmp_path: Path) -> None:
    from datetime import date, timedelta

    from evenhand.simulate.labelers import LabelerGroup, simulate_labelers

    parts = []
    for half, bar in enumerate((0.9, 0.3)):
        group = LabelerGroup(prevalence=0.4, separation=1.8, criterion=bar)
        still = LabelerGroup(prevalence=0.4, separation=1.8, criterion=0.9)
        made = simulate_labelers({"a": still, "b": group}, labelers=10, items_each=160, seed=half)
        days = [
            date(2025, 1, 6) + timedelta(days=35 * half + i % 35) for i in range(made.frame.height)
        ]
        parts.append(made.frame.with_columns(day=pl.Series(days)))
    result = eh.watch(
        tmp_path / "s", pl.concat(parts), time="day", every="week", truth="truth",
        decision="decision", labeler="labeler", group="group", reference="a",
        measures=["criterion_gap"], since="2025-W07",
    )  # fmt: skip
    found = {c["part"]: c for c in result.document["causes"]}
    assert found["bar"]["low"] > 0.3
    assert abs(found["skill"]["value"]) < 0.4
    assert found["prevalence"]["low"] < 0 < found["prevalence"]["high"]
    named = sum(found[name]["value"] for name in ("prevalence", "bar", "skill"))
    assert named == pytest.approx(found["total"]["value"], abs=1e-12)
