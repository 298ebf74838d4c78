"""Real data, where it lies beside the repository: people's predictions, and a credit score."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh

DATA = Path(__file__).parents[3] / "shared" / "data"
LABELS, SCORES = DATA / "labelers_recidivism.csv", DATA / "fico_transrisk.csv"
pytestmark = pytest.mark.heavy
ROLES = {"truth": "truth", "decision": "label", "labeler": "labeler", "item": "item"}


def needed(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"{path.name} does not lie beside the repository")
    return path


def audited(frame: pl.DataFrame, **roles: Any) -> eh.Audit:
    return eh.audit(eh.Decisions(frame, **ROLES, **roles), lenses=["labelers"])


def one(audit: eh.Audit, measure: str, **keys: Any) -> dict[str, Any]:
    found = list(audit.rows.where(measure=measure, labeler=None, stratum=None, **keys))
    assert len(found) == 1
    return found[0]


def test_recidivism_by_race_gives_the_values_of_the_methods() -> None:
    frame = pl.read_csv(needed(LABELS)).filter(
        pl.col("race").is_in(["African-American", "Caucasian"])
    )
    assert frame.height == 4938
    audit = audited(frame, group="race", reference={"race": "Caucasian"})
    table = audit.details["labelers"]["attributes"][0]
    found = table["pooled_contrasts"][0]
    gap = found["criterion_gap"]
    assert gap["value"] == pytest.approx(-0.210, abs=0.01)
    assert gap["sd_without_items"] == pytest.approx(0.054, abs=0.005)
    assert gap["sd"] == pytest.approx(0.090, abs=0.005)
    assert [gap["low"], gap["high"]] == pytest.approx([-0.39, -0.04], abs=0.02)
    assert gap["reliability"] == pytest.approx(0.06, abs=0.03)
    reliability = table["forest"]["reliability"]
    assert reliability["criterion"][0] == pytest.approx(0.81, abs=0.03)
    assert reliability["separation"][0] == pytest.approx(0.22, abs=0.05)
    total, behaviour = found["log_cost_ratio_gap"]["value"], found["behaviour_gap"]["value"]
    assert total == pytest.approx(-0.69, abs=0.02)
    assert behaviour == pytest.approx(0.13, abs=0.02)
    assert one(audit, "cost_ratio_prevalence_part")["value"] == pytest.approx(-0.82, abs=0.01)
    assert any("separation cannot be put in any order" in note for note in audit.notes)
    assert any("shared by most labelers" in note for note in audit.notes)
    assert any("which items were judged" in note for note in audit.notes)


def test_recidivism_by_sex_runs_end_to_end() -> None:
    audit = audited(pl.read_csv(needed(LABELS)), group="sex")
    gap = one(audit, "criterion_gap", group="female")
    assert gap["reference"] == "male"
    # Labelers need stronger signs before they predict that a woman reoffends.
    assert gap["low"] > 0
    skill = one(audit, "separation_gap")
    assert skill["low"] < 0 < skill["high"]
    first = next(f.line for f in audit.findings if f.measure.startswith("cost_ratio"))
    assert "The data show no difference in skill." in first


def test_recidivism_by_every_race_hides_the_small_ones() -> None:
    audit = audited(pl.read_csv(needed(LABELS)), group="race")
    small = one(audit, "criterion", group="Native American")
    assert small["value"] is None
    assert one(audit, "criterion", group="Asian")["value"] is not None
    assert one(audit, "criterion", group="Hispanic")["n"] == 465


def expanded(path: Path) -> pl.DataFrame:
    """One row per person of the file, repaid as often as it says at their score."""
    table = pl.read_csv(path).sort("group", "score")
    rows = []
    for (group,), part in table.group_by("group", maintain_order=True):
        share = np.diff(part["cumulative_percent"].to_numpy() / 100, prepend=0.0)
        n = np.rint(np.maximum(share, 0) * part["people"][0]).astype(int)
        good = np.rint(n * (1 - part["percent_bad"].to_numpy() / 100)).astype(int)
        for score, count, repaid in zip(part["score"], n, good):
            rows.append(
                pl.DataFrame(
                    {
                        "score": [float(score)] * count,
                        "group": [group] * count,
                        "repaid": [1] * repaid + [0] * (count - repaid),
                    },
                    schema={"score": pl.Float64, "group": pl.String, "repaid": pl.Int64},
                )
            )
    return pl.concat(rows)


def test_credit_scores_run_end_to_end() -> None:
    frame = expanded(needed(SCORES))
    decisions = eh.Decisions(frame, truth="repaid", score="score", threshold=50, group="group")
    audit = eh.audit(decisions, lenses=["thresholds"])
    rows = audit.rows.where(measure="implied_threshold", stratum=None)
    values = {row["group"]: row for row in rows}
    assert len(values) == 4
    table = pl.read_csv(SCORES)
    for group, row in values.items():
        near = table.filter((pl.col("group") == group) & (pl.col("score") - 50).abs().le(1))
        repaid = 1 - near["percent_bad"].mean() / 100
        assert row["value"] == pytest.approx(repaid, abs=0.05), group
        assert row["low"] < row["value"] < row["high"]
