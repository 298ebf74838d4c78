"""The labelers lens on every engine, and what must hold however the rows lie."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.decisions.tallies.labelers import item_table, label_counts, repeated_labels
from evenhand.errors import DataError
from evenhand.lenses.labelers import lens as labelers
from evenhand.lenses.rows import Options, Rows
from evenhand.simulate.labelers import Variation, simulate_labelers

EVERY = ["polars lazy", "pandas", "pandas arrow", "pyarrow", "duckdb"]
ENGINES = [*EVERY, pytest.param("spark", marks=pytest.mark.heavy)]
ROLES = {"truth": "truth", "decision": "decision", "labeler": "labeler", "item": "item"}
ROLES |= {"group": "group", "stratum": "level", "seconds": "seconds"}
NUMBERS = ("value", "low", "high", "family_low", "family_high", "n", "n_reference", "p")


def made() -> pl.DataFrame:
    """Shared items, repeated labels, two levels of difficulty, and nulls in every column."""
    frame = simulate_labelers(
        labelers=7,
        items_each=80,
        shared_items=60,
        item_share=0.2,
        seconds=True,
        variation=Variation(criterion_across=0.2),
        seed=1,
    ).frame
    frame = pl.concat([frame, frame.head(4)])
    place = pl.int_range(pl.len())
    frame = frame.with_columns(level=pl.col("item").str.slice(-1).is_in(["1", "2", "3"]))
    frame = frame.with_columns(
        level=pl.when("level").then(pl.lit("hard")).otherwise(pl.lit("easy"))
    )
    return frame.with_columns(
        pl.when(place % 41 == k).then(None).otherwise(pl.col(name)).alias(name)
        for k, name in enumerate(frame.columns)
    )


TABLE = made()


def on(engine: str, table: pl.DataFrame, request: pytest.FixtureRequest) -> Any:
    if engine == "polars lazy":
        return table.lazy()
    if engine == "pandas":
        return table.to_pandas()
    if engine == "pandas arrow":
        return table.to_pandas(use_pyarrow_extension_array=True)
    if engine == "pyarrow":
        return table.to_arrow()
    if engine == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(table.to_arrow())
    kinds = {pl.String: "string", pl.Int64: "bigint", pl.Float64: "double"}
    schema = ", ".join(f"`{name}` {kinds[type(kind)]}" for name, kind in table.schema.items())
    return request.getfixturevalue("spark").createDataFrame(table.rows(), schema=schema)


def rows_of(data: Any, **roles: Any) -> Rows:
    return labelers.measure(eh.Decisions(data, **{**ROLES, **roles}), Options()).rows


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_rows(engine: str, request: pytest.FixtureRequest) -> None:
    ours, theirs = rows_of(TABLE), rows_of(on(engine, TABLE, request))
    assert len(ours) == len(theirs)
    for name in ("measure", "group", "reference", "stratum", "labeler", "undefined"):
        assert ours[name].tolist() == theirs[name].tolist()
    for name in NUMBERS:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-9, equal_nan=True)


def test_tallies_equal_plain_loops() -> None:
    decisions = eh.Decisions(TABLE, **ROLES)
    attribute = decisions.roles.attributes[0]
    counts: dict[tuple[Any, ...], int] = {}
    times: dict[tuple[Any, ...], float] = {}
    items: dict[tuple[Any, ...], list[int]] = {}
    pairs: dict[tuple[Any, ...], int] = {}
    for row in TABLE.iter_rows(named=True):
        key = (row["labeler"], row["group"], row["truth"], row["decision"])
        if None not in key:
            counts[key] = counts.get(key, 0) + 1
            times[key] = times.get(key, 0.0) + (row["seconds"] or 0.0)
        if None not in (*key, row["item"]):
            mine = items.setdefault((row["item"], row["group"], row["truth"]), [0, 0])
            mine[0] += row["decision"]
            mine[1] += 1
        if None not in (row["labeler"], row["truth"], row["decision"], row["item"]):
            pair = (row["labeler"], row["item"])
            pairs[pair] = pairs.get(pair, 0) + 1
    tally = label_counts(decisions, attribute)
    dense = tally.dense(["labeler", "group", "truth", "decision"], "n")
    seconds = tally.dense(["labeler", "group", "truth", "decision"], "seconds")
    for (labeler, group, truth, decision), n in counts.items():
        at = (tally.labels["labeler"].index(labeler), "AB".index(group), truth, decision)
        assert dense[at] == n
        assert seconds[at] == pytest.approx(times[labeler, group, truth, decision])
    found = item_table(decisions, attribute, positive="1", groups=("A", "B"))
    assert found is not None
    ours = sorted(zip(found.group, found.truth, found.yes, found.labels))
    theirs = sorted(("AB".index(g), t, k, m) for (_, g, t), (k, m) in items.items())
    assert ours == [tuple(map(float, cells)) for cells in theirs]
    assert repeated_labels(decisions) == sum(n - 1 for n in pairs.values())


def test_long_and_impossible_times_do_not_count() -> None:
    table = {"truth": [1, 1, 1, 1], "decision": [1] * 4, "labeler": ["x"] * 4, "group": ["A"] * 4}
    table["seconds"] = [2.0, 90.0, -1.0, 0.0]
    roles = {k: v for k, v in ROLES.items() if k not in ("item", "stratum")}
    decisions = eh.Decisions(table, **roles)
    tally = label_counts(decisions, decisions.roles.attributes[0], longest_seconds=60)
    assert (tally.total("timed"), tally.total("seconds"), tally.total()) == (1.0, 2.0, 4.0)


def agree(one: Rows, other: Rows, columns: tuple[str, ...] = NUMBERS) -> None:
    keys = ("measure", "group", "reference", "stratum", "labeler")
    left = {tuple(r[k] for k in keys): r for r in one}
    right = {tuple(r[k] for k in keys): r for r in other}
    assert left.keys() == right.keys()
    for key, row in left.items():
        for column in columns:
            mine, theirs = row[column], right[key][column]
            assert (mine is None) == (theirs is None), (key, column)
            assert mine is None or mine == pytest.approx(theirs, abs=1e-8), (key, column)


def test_order_of_rows_does_not_matter() -> None:
    agree(rows_of(TABLE), rows_of(TABLE.sample(fraction=1.0, shuffle=True, seed=3)))


def test_names_of_groups_do_not_matter() -> None:
    named = TABLE.with_columns(
        group=pl.col("group").replace_strict({"A": "x", "B": "y"}, return_dtype=pl.String)
    )
    rows = rows_of(named)
    back = {"x": "A", "y": "B"}
    columns = {
        k: np.array([back.get(v, v) for v in rows[k]], dtype=object) for k in ("group", "reference")
    }
    agree(rows_of(TABLE), rows.replace(**columns))


def test_twice_the_labelers_narrow_the_interval_and_keep_the_value() -> None:
    frame = simulate_labelers(labelers=8, items_each=120, seed=9).frame
    again = frame.with_columns(pl.col("labeler") + "b", pl.col("item") + "b")
    plain = {"stratum": None, "seconds": None}
    once, twice = rows_of(frame, **plain), rows_of(pl.concat([frame, again]), **plain)
    for measure in ("criterion", "separation", "cost_ratio", "prevalence"):
        a = next(iter(once.where(measure=measure, group="A", labeler=None)))
        b = next(iter(twice.where(measure=measure, group="A", labeler=None)))
        assert a["value"] == pytest.approx(b["value"])
        assert b["high"] - b["low"] < a["high"] - a["low"]


small = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([0, 1, None]),
        st.sampled_from([0, 1, None]),
        st.sampled_from(["x", "y", "z", None]),
        st.integers(0, 5),
        st.sampled_from(["s", "t", None]),
    ),
    min_size=1,
    max_size=40,
)


@given(small)
@settings(max_examples=40)
def test_any_small_table_is_measured_or_refused_in_words(rows: list[tuple[Any, ...]]) -> None:
    names = ("group", "truth", "decision", "labeler", "item", "level")
    kinds = [pl.String, pl.Int64, pl.Int64, pl.String, pl.Int64, pl.String]
    frame = pl.DataFrame(rows, schema=dict(zip(names, kinds)), orient="row")
    if frame.drop_nulls(["group", "truth", "decision", "labeler"]).is_empty():
        with pytest.raises(DataError, match="Nothing is left to measure"):
            rows_of(frame, seconds=None)
        return
    found = rows_of(frame, seconds=None)
    for row in found:
        assert (row["undefined"] is None) == (row["value"] is not None), row
        if row["value"] is not None and row["low"] is not None:
            assert row["low"] - 1e-9 <= row["value"] <= row["high"] + 1e-9
            assert row["family_low"] - 1e-9 <= row["low"]
