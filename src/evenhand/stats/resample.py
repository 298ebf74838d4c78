"""Resampling of count tables, and intervals over repeated runs."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from evenhand.errors import DataError
from evenhand.stats.estimate import Estimate


def count_bootstrap(counts: ArrayLike, *, draws: int = 2000, seed: int = 0) -> NDArray[np.int64]:
    """Resampled tables of counts (draws × the table's shape), each with the table's total.

    Drawing rows with replacement and counting them again has exactly this multinomial law, so
    the cost depends on the number of cells and never on the number of rows.

    Examples:
        >>> count_bootstrap([[30, 10], [0, 60]], draws=3).sum(axis=(1, 2)).tolist()
        [100, 100, 100]
    """
    table = np.asarray(counts, dtype=np.float64)
    total = round(float(table.sum())) if table.size and np.isfinite(table).all() else -1
    if total < 0 or (table < 0).any():
        raise DataError(
            "counts hold a negative or missing number. A table of counts needs numbers from 0 up."
        )
    if total == 0:
        return np.zeros((draws, *table.shape), dtype=np.int64)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(total, table.ravel() / table.sum(), size=draws)
    return np.asarray(drawn.reshape(draws, *table.shape), dtype=np.int64)


def runs(values: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean over repeated runs, with its t interval; NaN runs are left out.

    Examples:
        >>> print(runs([7.1, 8.6, 7.9]))
        7.867 [6.002, 9.731] n=3
        >>> print(runs([]))
        undefined: no runs
    """
    results = np.asarray(values, dtype=np.float64).ravel()
    results = results[~np.isnan(results)]
    n = len(results)
    if n == 0:
        return Estimate.none("no runs", level=level, n=0, method="t over runs")
    mean = float(results.mean())
    if n == 1:
        return Estimate(value=mean, level=level, n=1, method="t over runs")
    half = float(stdtrit(n - 1, 0.5 + level / 2) * results.std(ddof=1) / np.sqrt(n))
    return Estimate(
        value=mean, low=mean - half, high=mean + half, level=level, n=n, method="t over runs"
    )
