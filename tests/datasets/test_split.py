"""The split within cells: the published sizes, a partition, and its hash."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.datasets.split import cell_sizes, split
from evenhand.errors import UsageError

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())[
    "1.14_split"
]


@pytest.mark.parametrize(("n", "sizes"), ORACLE["cell_sizes"].items())
def test_published_cell_sizes(n, sizes):
    assert list(cell_sizes(int(n))) == sizes


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("fm")), max_size=80))
def test_every_row_is_in_exactly_one_part(rows):
    parts = split([y for y, _ in rows], group=[g for _, g in rows], seed=3)
    together = np.concatenate([parts.train, parts.validation, parts.test])
    assert sorted(together.tolist()) == list(range(len(rows)))
    for cell in set(rows):
        at = [k for k, row in enumerate(rows) if row == cell]
        found = [
            len(set(at) & set(p.tolist())) for p in (parts.train, parts.validation, parts.test)
        ]
        assert tuple(found) == cell_sizes(len(at))
    assert len(parts.labels()) == len(rows)


def test_the_hash_tells_splits_apart_and_small_cells_are_named():
    truth, group = ["a"] * 40 + ["b"] * 2, ["f", "m"] * 20 + ["f", "f"]
    first, again, other = (split(truth, group=group, seed=s) for s in (0, 0, 1))
    assert first.hash == again.hash != other.hash
    assert first.small_cells == (("b", "f"),)


def test_bad_arguments():
    with pytest.raises(UsageError, match="group has 1 values for 2 rows of truth"):
        split(["a", "b"], group=["f"])
    with pytest.raises(UsageError) as caught:
        split(["a"], group=["f"], test=0.95)
    assert str(caught.value) == (
        "validation=0.1 and test=0.95 leave nothing to train on. "
        "Give two shares above 0 that add up to less than 1."
    )
