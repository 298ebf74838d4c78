"""Resampled count tables."""

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.stats.families import count_bootstrap


def test_counts_have_the_law_of_resampled_rows() -> None:
    counts = np.array([5, 15, 0, 30])
    drawn = count_bootstrap(counts, draws=4000, seed=1)
    rows = np.repeat(np.arange(4), counts)
    generator = np.random.default_rng(2)
    by_rows = np.stack([np.bincount(generator.choice(rows, 50), minlength=4) for _ in range(4000)])
    assert drawn.mean(0) == pytest.approx(counts, abs=0.25)
    assert np.cov(drawn.T) == pytest.approx(np.cov(by_rows.T), abs=0.8)
    assert (drawn[:, 2] == 0).all()
    assert (drawn.sum(1) == 50).all()


def test_shape_seed_and_empty_table() -> None:
    table = np.arange(12).reshape(3, 4)
    assert count_bootstrap(table, draws=7).shape == (7, 3, 4)
    assert (count_bootstrap(table, seed=3) == count_bootstrap(table, seed=3)).all()
    assert (count_bootstrap([0, 0], draws=2) == 0).all()


@pytest.mark.parametrize("counts", [[1, -1], [1.0, float("nan")]])
def test_bad_counts_are_refused(counts) -> None:
    with pytest.raises(DataError) as error:
        count_bootstrap(counts)
    assert str(error.value) == (
        "counts hold a negative or missing number. A table of counts needs numbers from 0 up."
    )
