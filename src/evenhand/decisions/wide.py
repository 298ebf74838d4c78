"""Tables of many score columns: looked through once, and kept where they are not too large.

Their numbers are checked, decisions are counted from them, and areas need all of them: three
queries would read every column from its file three times.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from evenhand.decisions.columns import label_columns, number_columns
from evenhand.decisions.roles import Roles

if TYPE_CHECKING:
    import polars as pl

# Scores that are kept in memory at once: 30M, 240 MB.
MOST_HELD = 30_000_000
# Rows that are looked through at a time.
BATCH = 2**17


def is_wide(roles: Roles) -> bool:
    """Whether there is a score column for each of several classes."""
    return len(roles.scores) > 1


def wide_columns(roles: Roles) -> list[str]:
    """The columns that decisions and scores are counted by."""
    roles_of = label_columns(roles) | number_columns(roles)
    others = ("counterfactual", "norm", "seconds", "item")
    return [column for column, role in roles_of.items() if role not in others]


def facts_asked(columns: Sequence[str]) -> list[nw.Expr]:
    """What an engine is asked of columns of numbers: what `look_through` finds of them."""
    asked = [nw.len().alias("rows")]
    for i, column in enumerate(columns):
        value = nw.col(column).cast(nw.Float64)
        odd = ~value.is_finite() & ~value.is_null()
        asked += [
            odd.cast(nw.Int64).sum().alias(f"bad{i}"),
            value.min().alias(f"min{i}"),
            value.max().alias(f"max{i}"),
        ]
    return asked


def look_through(
    batches: "Iterable[pl.DataFrame]", columns: Sequence[str], *, scores: int
) -> "tuple[dict[str, Any], pl.DataFrame | None]":
    """The number of rows, of each column its ends and what is not finite, and the table itself.

    Facts are `rows` and by a column's place `min0`, `max0` and `bad0`; the table is None where
    it holds too many rows of so many scores.

    Examples:
        >>> import polars as pl
        >>> parts = [pl.DataFrame({"s": [0.5, None]}), pl.DataFrame({"s": [0.25, float("inf")]})]
        >>> facts, table = look_through(parts, ["s"], scores=1)
        >>> facts
        {'rows': 4, 'min0': 0.25, 'max0': inf, 'bad0': 1}
    """
    import polars as pl

    facts: dict[str, Any] = {"rows": 0}
    for i in range(len(columns)):
        facts |= {f"min{i}": None, f"max{i}": None, f"bad{i}": 0}
    kept: list[pl.DataFrame] | None = []
    for batch in batches:
        facts["rows"] += batch.height
        for i, column in enumerate(columns):
            numbers = batch[column].cast(pl.Float64)
            if len(numbers) > numbers.null_count():
                for end, choose in (("min", min), ("max", max)):
                    ends = getattr(numbers, end)(), facts[f"{end}{i}"]
                    facts[f"{end}{i}"] = choose(each for each in ends if each is not None)
            # A sum is finite only if its terms are; where it is not, it may just be too large.
            if not np.isfinite(float(numbers.sum())):
                facts[f"bad{i}"] += int((~numbers.is_finite()).sum())
        if kept is not None:
            kept.append(batch)
        if facts["rows"] * scores > MOST_HELD:
            kept = None
    return facts, pl.concat(kept) if kept else None
