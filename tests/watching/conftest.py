"""Simulated weeks that the tests of watching share."""

from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenhand.watching import run
from evenhand.watching.numbers import Settings

MONDAY = date(2026, 1, 5)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines from few series, so that a look takes a second."""
    monkeypatch.setattr(run, "Settings", partial(Settings, series=1_000))


@pytest.fixture
def weeks() -> Callable[..., pl.DataFrame]:
    return simulated_weeks


def simulated_weeks(
    many: int = 14,
    *,
    first: int = 0,
    jump: float = 0.0,
    at: int = 10,
    n: int = 400,
    seed: int = 0,
    **columns: Any,
) -> pl.DataFrame:
    """Weeks of decisions on two groups; from week `at` on one is decided on more often."""
    parts = []
    for week in range(first, first + many):
        rng = np.random.default_rng([seed, week])
        group = rng.choice(["f", "m"], n)
        rate = np.where((group == "f") & (week >= at), 0.3 + jump, 0.3)
        days = [MONDAY + timedelta(days=7 * week + i % 7) for i in range(n)]
        parts.append(
            pl.DataFrame(
                {"day": days, "g": group, "d": (rng.random(n) < rate).astype(np.int64)}
            ).with_columns(**{name: pl.lit(value) for name, value in columns.items()})
        )
    return pl.concat(parts)
