"""Ranks of held columns, of batches of classes and by the engine's windows are the same."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies import norms as norm_tallies
from evenhand.decisions.tallies.norms import norm_counts, own_ranks
from evenhand.decisions.tally import Tally
from evenhand.stats import ranks as rank_cells

NORMS = {"f": "norm@f", "m": "norm@m"}


def table(rows: int = 900, *, seed: int = 0) -> pl.DataFrame:
    """Three classes, two groups and two strata; scores with ties and of either sign."""
    rng = np.random.default_rng(seed)
    norm = rng.random(rows)
    return pl.DataFrame(
        {
            "title": rng.choice(["nurse", "surgeon", "poet"], rows),
            "gender": rng.choice(["f", "m"], rows),
            "place": rng.integers(0, 2, rows),
            "old": rng.random(rows) < 0.5,
            "score:truth": np.round(norm + rng.standard_normal(rows), 1),
            "norm@f": norm,
            "norm@m": 1 - norm,
        }
    )


def decisions_on(data: Any, **roles: Any) -> Decisions:
    return Decisions(data, **{"truth": "title", "group": "gender", **roles})


def ranks(decisions: Decisions, *, stratified: bool = False) -> tuple[Any, Tally]:
    attribute = decisions.roles.attributes[-1]
    counted = norm_counts(decisions, attribute, norms=list(NORMS.values()))
    found = own_ranks(decisions, attribute, norms=NORMS, stratified=stratified, counted=counted)
    assert found is not None
    assert found.moves is None
    return counted, found.tally


def same(one: Tally, other: Tally) -> None:
    keys = list(one.labels)
    assert one.labels == other.labels
    assert set(one.sums) == set(other.sums)
    for name in one.sums:
        np.testing.assert_allclose(one.dense(keys, name), other.dense(keys, name), rtol=1e-13)


def by_windows(decisions: Decisions, monkeypatch: Any, *, stratified: bool = False) -> Tally:
    with monkeypatch.context() as patch:
        patch.setattr(norm_tallies, "hold_columns", lambda *_, **__: None)
        patch.setattr(norm_tallies, "in_memory", lambda *_: None)
        return ranks(decisions, stratified=stratified)[1]


@pytest.mark.parametrize("stratified", [False, True], ids=["together", "by stratum"])
@pytest.mark.parametrize(
    "roles",
    [{}, {"truth": "place"}, {"group": "old"}, {"group": ["gender", "old"], "crossed": True}],
    ids=["words", "integers", "booleans", "crossed"],
)
def test_held_columns_rank_as_windows_do(roles, stratified, monkeypatch):
    decisions = decisions_on(table(), stratum="place" if "truth" not in roles else "title", **roles)
    counted, tally = ranks(decisions, stratified=stratified)
    assert counted.held is not None
    same(tally, by_windows(decisions, monkeypatch, stratified=stratified))


def test_a_missing_key_is_a_cell_of_its_own(monkeypatch):
    holed = table().with_columns(
        pl.when(pl.int_range(pl.len()) % 7 > 0).then("gender").alias("gender")
    )
    decisions = decisions_on(holed)
    counted, tally = ranks(decisions)
    assert counted.held is not None
    assert tally.missing("group") == holed["gender"].null_count()
    same(tally, by_windows(decisions, monkeypatch))


@pytest.mark.parametrize("size", [50, 20_000])
def test_a_table_in_chunks_of_any_size(size, monkeypatch):
    pieces = [table(size, seed=seed) for seed in range(4)]
    decisions = decisions_on(pl.concat(pieces, rechunk=False))
    counted, tally = ranks(decisions)
    assert counted.held is not None
    assert tally.total() == 4 * size
    same(tally, by_windows(decisions, monkeypatch))


def test_what_cannot_be_held_is_ranked_all_the_same(monkeypatch):
    holed = pl.when(pl.int_range(pl.len()) > 0).then("norm@f").alias("norm@f")
    decisions = decisions_on(table().with_columns(holed))
    counted, tally = ranks(decisions)
    assert counted.held is None
    same(tally, by_windows(decisions, monkeypatch))


@pytest.mark.parametrize(
    "column",
    [pl.col("title").cast(pl.Categorical), pl.col("place").cast(pl.Float64).alias("title")],
    ids=["categories", "fractions as classes"],
)
def test_keys_of_any_type_are_held(column, monkeypatch):
    decisions = decisions_on(table().with_columns(column))
    counted, tally = ranks(decisions)
    assert counted.held is not None
    same(tally, by_windows(decisions, monkeypatch))


def test_numbers_too_large_to_add_up_are_held():
    decisions = decisions_on(table().with_columns((pl.col("norm@f") + 1) * 8e307))
    assert ranks(decisions)[0].held is not None


def test_many_cells_are_told_apart():
    rng = np.random.default_rng(0)
    rows = 20_000
    wide = pl.DataFrame(
        {
            "title": [f"occupation_{i}" for i in rng.integers(0, 28, rows)],
            "gender": [f"group_{i}" for i in rng.integers(0, 20, rows)],
            "score:truth": rng.random(rows),
            "norm@f": rng.random(rows),
            "norm@m": rng.random(rows),
        }
    )
    counted, tally = ranks(decisions_on(wide))
    assert counted.held is not None
    assert tally.dense(["group", "truth"], "n").sum() == rows


def test_more_rows_than_can_be_held_are_ranked_in_batches_of_classes(monkeypatch):
    data = table()
    whole = ranks(decisions_on(data))[1]
    asked = []
    kept = norm_tallies.rank_moments
    monkeypatch.setattr(norm_tallies, "MOST_NUMBERS", 2_000)
    monkeypatch.setattr(
        norm_tallies, "rank_moments", lambda *a, **k: asked.append(k["rows"]) or kept(*a, **k)
    )
    counted, tally = ranks(decisions_on(data))
    assert counted.held is None
    # 300 rows of three numbers in a class, or of one: a class at once, or three.
    assert counted.batches(3) == [["nurse"], ["poet"], ["surgeon"]]
    assert counted.batches(1) == [["nurse", "poet", "surgeon"]]
    assert len(asked) == 3
    same(tally, whole)


def test_a_norm_column_may_be_called_score():
    data = table().with_columns(pl.col("norm@f").alias("score"))
    decisions = decisions_on(data)
    attribute = decisions.roles.attributes[-1]
    counted = norm_counts(decisions, attribute, norms=["score", "norm@f"])
    found = own_ranks(
        decisions,
        attribute,
        norms={"f": "norm@f", "same": "score"},
        stratified=False,
        counted=counted,
    )
    assert counted.held is not None
    assert found is not None
    keys = ["group", "truth"]
    assert (found.tally.dense(keys, "xy:f") == found.tally.dense(keys, "xy:same")).all()


def test_lines_met_late_and_cells_of_several_lines_are_ranked_alike(monkeypatch):
    first = table(600).filter(pl.col("title") != "poet")
    data = pl.concat([first, table(700, seed=1)], rechunk=False)
    monkeypatch.setattr(rank_cells, "CHUNK", 1)
    monkeypatch.setattr(rank_cells, "CHUNK_BY_CELL", 1)
    decisions = decisions_on(data, stratum="place")
    for stratified in (False, True):
        counted, tally = ranks(decisions, stratified=stratified)
        assert counted.held is not None
        same(tally, by_windows(decisions, monkeypatch, stratified=stratified))
