"""Numbers of the norms lens of which nothing is claimed: classes pooled, and norms not known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.lenses.rows import Row

ROLES: dict[str, Any] = {"truth": "title", "group": "gender"}
AUDIT = ("audit", "--truth", "title", "--group", "gender", "--lens", "norms")


def unrelated(classes: int = 4, rows: int = 1_200, *, seed: int = 0) -> pl.DataFrame:
    """Scores of every class that within each have nothing to do with norms, and over all do.

    Women are more typical of women everywhere, the people of later classes more than others; and
    the score of the first class is the higher, the later the class.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    female = rng.random(rows) < 0.5
    norm = rng.standard_normal(rows) + 0.8 * truth + np.where(female, 0.5, -0.5)
    scores = rng.standard_normal((rows, classes)) + 0.8 * truth[:, None]
    return pl.DataFrame(
        {
            "title": [f"c{k}" for k in truth],
            "gender": np.where(female, "female", "male"),
            **{f"score:c{k}": 1 / (1 + np.exp(-scores[:, k])) for k in range(classes)},
            "norm@female": 1 / (1 + np.exp(-norm)),
            "norm@male": 1 / (1 + np.exp(norm)),
        }
    )


def correlations(result: Any, *, pooled: bool) -> list[Row]:
    rows = result.rows.where(measure="norm_correlation")
    return [row for row in rows if row["class"].startswith("not:") is pooled]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_classes_that_are_pooled_claim_nothing(engine: str) -> None:
    table = unrelated()
    if engine == "duckdb":
        table = pytest.importorskip("duckdb").from_arrow(table.to_arrow())
    result = eh.audit(table, lenses=["norms"], **ROLES)
    pooled = correlations(result, pooled=True)
    # The trap is there: every correlation over several classes leaves out 0, none within one does.
    assert len(pooled) == 16
    assert all(row["family_low"] > 0 or row["family_high"] < 0 for row in pooled)
    own = correlations(result, pooled=False)
    assert not any(row["family_low"] > 0 or row["family_high"] < 0 for row in own)
    assert [one.sentence for one in result.findings] == [
        "By gender, no difference is shown: chance alone could explain each of the 16 correlations "
        "with a norm."
    ]
    assert result.record()["headline"] == result.findings[0].sentence
    assert "not:" not in str(result)


def test_thirty_tables_without_norm_bias_accuse_nobody() -> None:
    claims = [
        one
        for seed in range(30)
        for one in eh.audit(
            unrelated(3, 400, seed=seed),
            lenses=["norms"],
            settings={"bootstrap": False},
            **ROLES,
        ).findings
        if one.claim is not None and str(one.claim.class_).startswith("not:")
    ]
    assert claims == []


def test_no_limit_is_held_against_classes_that_are_pooled(run, tmp_path: Path) -> None:
    path = tmp_path / "scored.parquet"
    unrelated(rows=6_000).write_parquet(path)
    told, page = tmp_path / "audit.json", tmp_path / "audit.html"
    code, out, _ = run(*AUDIT, path, "--limit", "norm_correlation=0.3", "--json", told,
                       "--out", page)  # fmt: skip
    record = json.loads(told.read_text())
    assert (code, record["verdict"]) == (0, "within")
    assert "not:" not in out
    rows = [row for row in record["results"] if row["measure"] == "norm_correlation"]
    pooled = [row for row in rows if row["class"].startswith("not:")]
    assert len(pooled) == 16
    assert max(abs(row["value"]) for row in pooled) > 0.3
    assert {row["verdict"] for row in pooled} == {"not assessed"}
    assert {row["limit_low"] for row in pooled} == {None}
    assert all(
        row["method"].endswith(
            "; no limit is held against it: the rows of all other classes are pooled"
        )
        for row in pooled
    )
    assert {row["verdict"] for row in rows if row not in pooled} == {"within"}
    screen = page.read_text().split('id="norms"')[0]
    assert "not:" not in screen


def test_of_two_classes_the_other_is_judged_as_before() -> None:
    table = unrelated(2, 6_000).with_columns(
        pl.col("score:c0") + 2 * pl.col("norm@female") * (pl.col("title") == "c1")
    )
    result = eh.audit(table, lenses=["norms"], limits={"norm_correlation": 0.3}, **ROLES)
    other = [row for row in correlations(result, pooled=True) if row["class"] == "not:c0"]
    assert {row["verdict"] for row in other} == {"outside"}
    assert result.verdict == "outside"
    assert result.findings[0].claim.class_ == "not:c0"
    assert not any("pooled" in str(row["method"]) for row in other)
