"""Counts as the engine gives them: labels by hashing, and all attributes in one pass."""

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.decisions.counts import count_attributes
from evenhand.decisions.labels import ordered
from evenhand.decisions.read import key_codes
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import encode

VALUES = {
    "words": ["b", None, "a", "b", ""],
    "numerals": ["10", "9", None, "nan", "x"],
    "whole": [3, None, 1, 3],
    "no null": [3, 2, 3],
    "parts": [1.0, None, 0.5, 1.0],
    "booleans": [True, None, False],
    "nothing": [None, None],
    "hashes": [2**64 - 1, 5],
}


@pytest.mark.parametrize("name", VALUES)
def test_codes_of_a_column_are_those_of_its_values(name):
    column = pl.Series(VALUES[name], dtype=pl.UInt64 if name == "hashes" else None)
    labels, codes = key_codes(nw.from_native(column, series_only=True))
    expected, places = encode(VALUES[name])
    assert labels == expected
    assert codes.tolist() == places.tolist()


@pytest.mark.parametrize("name", ["words", "whole", "booleans"])
def test_codes_of_arrow_are_those_of_polars(name):
    column = nw.from_native(pa.chunked_array([VALUES[name]]), series_only=True)
    labels, codes = key_codes(column)
    assert (labels, codes.tolist()) == (encode(VALUES[name])[0], encode(VALUES[name])[1].tolist())


@given(st.lists(st.sampled_from(["a", "é", "n", "nan", "inf", "Infinity", "1", "01", "-2", "1e3",
                                 "İ", "", "_", "x9", "٣"]), unique=True))  # fmt: skip
def test_numbers_come_before_words(labels):
    # The order written out: numbers by size and then as written, words by their letters.
    def key(text):
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        return (1, 0.0, text) if np.isnan(number) else (0, number, text)

    assert ordered(labels) == sorted(labels, key=key)


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("missing", ["drop", "group"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_attributes_counted_at_once_are_those_counted_alone(crossed, missing, engine, tmp_path):
    rng = np.random.default_rng(3)
    rows = 4_000
    frame = pl.DataFrame(
        {
            "truth": rng.integers(0, 2, rows),
            "decision": rng.integers(0, 2, rows),
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.choice(["old", "young"], rows),
            "site": rng.integers(0, 3, rows),
            "who": rng.integers(0, 90, rows),
            "weight": rng.uniform(0.5, 2, rows),
        }
    ).with_columns(
        pl.when(pl.Series(rng.random(rows) > 0.05)).then(pl.col(c)).alias(c)
        for c in ("truth", "sex", "age", "who")
    )
    frame.write_parquet(tmp_path / "table.parquet")
    decisions = Decisions(
        tmp_path / "table.parquet",
        engine=engine,
        truth="truth",
        decision="decision",
        group=["sex", "age"],
        crossed=crossed,
        stratum="site",
        cluster="who",
        weight="weight",
        missing=missing,
    )
    attributes = decisions.roles.attributes
    together = count_attributes(decisions, attributes, cluster=True)
    assert len(together) == (3 if crossed else 2)
    for attribute, tally in zip(attributes, together, strict=True):
        alone = decisions.count(attribute, cluster=True).compact()
        tally = tally.compact()
        assert tally.labels == alone.labels
        assert {k: v.tolist() for k, v in tally.codes.items()} == {
            k: v.tolist() for k, v in alone.codes.items()
        }
        assert tally.sums["n"].tolist() == alone.sums["n"].tolist()
        for name in ("weight", "weight2"):
            assert tally.sums[name] == pytest.approx(alone.sums[name], rel=1e-12)


def test_crossed_attributes_ask_the_engine_once(monkeypatch):
    table = {"d": [1, 0, 1, 0], "sex": ["f", "m", "f", "m"], "site": ["a", "a", "b", "b"]}
    decisions = Decisions(table, decision="d", group=["sex", "site"], crossed=True)
    asked = []
    answer = decisions.answer
    monkeypatch.setattr(decisions, "answer", lambda each: asked.append(len(each)) or answer(each))
    count_attributes(decisions, decisions.roles.attributes)
    assert asked == [1]
