"""Codes of keys are the same in every batch, whatever the batches."""

import numpy as np
import polars as pl
import pytest

from evenhand.decisions.labels import label
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies import coding
from evenhand.decisions.tallies.coding import Coder, RowLines
from evenhand.decisions.tallies.key_lines import KeyLines
from evenhand.decisions.tallies.scores import ScoreTallies

WORDS = [*(f"w{i}" for i in range(5_000)), "a word of more than twelve bytes", "", None]


def keys(rows: int = 40_000) -> pl.DataFrame:
    """Words, of which some share the first bits of their hashes, and keys of other types."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "word": [WORDS[i] for i in rng.integers(0, len(WORDS), rows)],
            "number": rng.integers(-3, 400, rows),
            "small": rng.integers(0, 3, rows).astype(np.uint8),
            "far": rng.integers(0, 4, rows) * 2**40,
            "yes": rng.random(rows) < 0.5,
            "part": rng.choice([0.5, 1.0, 2.0], rows),
        }
    ).with_columns(pl.col("word").cast(pl.Categorical).alias("category"))


@pytest.mark.parametrize("column", keys(1).columns)
@pytest.mark.parametrize("rows", [999, 100_000], ids=["in batches", "at once"])
def test_a_code_stands_for_one_value(column, rows):
    table = keys()
    coder = Coder()
    found = [coder.codes(batch[column]) for batch in table.iter_slices(rows)]
    codes = np.concatenate(found).tolist()
    assert [[*coder.names, None][code] for code in codes] == [label(v) for v in table[column]]


@pytest.mark.parametrize("rows", [999, 100_000], ids=["in batches", "at once"])
def test_a_line_stands_for_one_combination(rows):
    table, lines = keys(), RowLines()
    found = [lines.numbered(batch, table.columns[:5]) for batch in table.iter_slices(rows)]
    keys_of_rows = [lines.keys[line] for line in np.concatenate(found).tolist()]
    assert keys_of_rows == table.select(table.columns[:5]).rows()
    assert len(set(lines.keys)) == len(lines)


def test_words_whose_hashes_begin_alike_are_told_apart():
    hashes = pl.DataFrame({"word": WORDS[:5_000]}).hash_rows(coding.SEED).to_numpy()
    assert len(set((hashes >> np.uint64(64 - coding.SLOT_BITS)).tolist())) < 5_000
    words, coder = pl.Series(WORDS * 2), Coder()
    assert coder.codes(words).tolist() == coder.codes(words).tolist()
    assert sorted(coder.names) == sorted(WORDS[:-1])


@pytest.mark.parametrize("most", [2**24, 10], ids=["listed", "sorted"])
def test_lines_keep_their_numbers_as_keys_grow(most, monkeypatch):
    monkeypatch.setattr("evenhand.decisions.tallies.key_lines.MOST_LISTED", most)
    rng = np.random.default_rng(1)
    lines, seen = KeyLines(), {}
    for size in (2, 2, 5, 40):
        parts = [rng.integers(-1, size, 300).astype(np.int32) for _ in range(2)]
        for line, pair in zip(lines.numbered(parts, [size, size]).tolist(), zip(*parts)):
            assert seen.setdefault(line, pair) == pair
    assert len(set(seen.values())) == len(seen) == len(lines)
    assert {line: tuple(map(int, pair)) for line, pair in seen.items()} == dict(
        enumerate(lines.keys)
    )


def test_numbers_below_zero_take_nobody_elses_place():
    coder = Coder()
    for batch in ([5, 0], [-1, 5], [5, 0, 3], [5, 0, 3, -1], [3, 5]):
        found = coder.codes(pl.Series(batch))
        assert [coder.names[code] for code in found] == [str(number) for number in batch]


def test_clusters_by_group_and_bin_take_no_more_room_than_rows():
    # 200 groups × 2 truths × 1,000 bins × 20,000 clusters: 8 billion cells, of which few occur.
    rows = 20_000
    table = {
        "y": [0, 1] * (rows // 2),
        "s": np.linspace(0, 1, rows),
        "g": [f"g{i % 200}" for i in range(rows)],
        "c": [f"c{i}" for i in range(rows)],
    }
    decisions = Decisions(table, truth="y", score="s", threshold=0.5, group="g", cluster="c")
    attribute = decisions.roles.attributes[0]
    bins = ScoreTallies(decisions, ["s"]).bins(attribute, "s", "1", within=False)
    assert bins.tally.total() == rows
