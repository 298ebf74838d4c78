"""Number columns of a batch of rows as one array."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from evenhand.decisions.batches import Batch
from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray


def batch_numbers(batch: Batch, columns: Sequence[str]) -> FloatArray:
    """These columns of a batch, rows × columns; NaN where there is no value.

    Examples:
        >>> batch = Batch(start=0, frame=pl.DataFrame({"age": [30, None], "hours": [1.5, 2.0]}))
        >>> batch_numbers(batch, ["age", "hours"]).tolist()
        [[30.0, 1.5], [nan, 2.0]]
    """
    for column in columns:
        kind = batch.frame.schema[column]
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
            raise DataError(
                f"features={column!r} holds {kind}, not numbers. "
                "Convert it to numbers, or leave it out."
            )
    held = [batch.frame[column].cast(pl.Float64).fill_null(np.nan).to_numpy() for column in columns]
    return np.stack(held, axis=1)
