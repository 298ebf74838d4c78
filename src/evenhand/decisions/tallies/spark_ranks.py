"""Weighted ranks of scores and norms within cells, and each row's influence, by Spark's windows.

The same numbers as `stats.sampled_ranks` makes of rows in memory, for rows that stay in Spark: all
rows of a cell are sorted by one worker, on its disk where they are many, and none comes here.
"""

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from evenhand.decisions.read import Frame

# Columns that rows come with, and those that they get: the weight in rows of the cell, the rank of
# the score and whether it is tied. The numbers of the norms follow `norm`, `y` and `influence`.
SCORE, WEIGHT, OMEGA, RANK, TIED, ROWS = "s", "w", "omega", "x", "tied", "rows"


def ranked_rows(frame: Frame, marks: Sequence[str], norms: int) -> Frame:
    """Rows with their ranks within the cells that `marks` make, and their influence there.

    The frame has the score, as many columns of norms, and a weight where rows have one. Ranks lie
    between -½ and ½, and weights add up to the rows of a cell; rows without weight are left out.
    Spark leaves out of its plan what a question does not ask for.
    """
    from pyspark.sql import functions as f

    native: Any = frame.to_native()
    if WEIGHT in native.columns:
        native = native.filter(f.col(WEIGHT) > 0)
    else:
        native = native.withColumn(WEIGHT, f.lit(1.0))
    columns = [SCORE, *(f"norm{i}" for i in range(norms))]
    # Adding 0 makes one zero of the two that compare equal and differ in sign.
    native = native.withColumns({name: f.col(name) + f.lit(0.0) for name in columns})
    whole = _Cells(marks)
    native = native.withColumns(
        {ROWS: whole.total(f.lit(1.0)), "cell_weight": whole.total(f.col(WEIGHT))}
    )
    native = native.withColumn(OMEGA, f.col(WEIGHT) * f.col(ROWS) / f.col("cell_weight"))
    orders = [_Order(marks, name) for name in columns]
    ranks = [RANK, *(f"y{i}" for i in range(norms))]
    for order, name in zip(orders, ranks, strict=True):
        native = native.withColumn(name, order.rank())
    native = native.withColumn(TIED, (orders[0].alike() > 1).cast("double"))
    found: Frame = nw.from_native(_with_influence(native, whole, orders, ranks)).lazy()
    return found


def _with_influence(
    native: Any, whole: "_Cells", orders: Sequence["_Order"], ranks: Sequence[str]
) -> Any:
    """Rows with how far their weight moves the correlation of the score with each norm."""
    from pyspark.sql import functions as f

    n, omega, (x, *ys) = f.col(ROWS), f.col(OMEGA), [f.col(name) for name in ranks]
    names = {name: f.col(name) for name in ranks}
    sums = {f"sum {name}": whole.total(omega * rank) for name, rank in names.items()}
    sums |= {f"square {name}": whole.total(omega * rank**2) / n for name, rank in names.items()}
    sums |= {f"xy{i}": whole.total(omega * x * y) / n for i, y in enumerate(ys)}
    native = native.withColumns(sums)
    # What lies above a row by its own column, seen through that column's ranks and the other's.
    pushed = {name: order.above(name) for name, order in zip(ranks, orders, strict=True)}
    for i, order in enumerate(orders[1:]):
        pushed[f"x by y{i}"] = orders[0].above(f"y{i}")
        pushed[f"y{i} by x"] = order.above(RANK)
    for name, above in pushed.items():
        native = native.withColumn(f"above {name}", above / n)
    found = {}
    for i, y in enumerate(ys):
        xy, xx, yy = f.col(f"xy{i}"), f.col(f"square {RANK}"), f.col(f"square y{i}")
        across = f.col(f"above x by y{i}") + f.col(f"above y{i} by x")
        by_xy = x * y + across - 3 * xy
        by_xx = x * x + 2 * f.col(f"above {RANK}") - 3 * xx
        by_yy = y * y + 2 * f.col(f"above y{i}") - 3 * yy
        size = f.sqrt(xx * yy)
        influence = by_xy / size - xy / size / 2 * (by_xx / xx + by_yy / yy)
        # A column that does not vary correlates with nothing, and Spark refuses to divide by 0.
        found[f"influence{i}"] = f.when((xx > 0) & (yy > 0), influence)
    return native.withColumns(found)


class _Cells:
    """Sums over whole cells, told to each of their rows."""

    def __init__(self, marks: Sequence[str]) -> None:
        from pyspark.sql import Window

        self.marks = [f"`{mark}`" for mark in marks]
        self.window: Any = Window.partitionBy(*self.marks)

    def total(self, column: Any) -> Any:
        """The sum of a column over the row's cell."""
        from pyspark.sql import functions as f

        return f.sum(column).over(self.window)


class _Order(_Cells):
    """Sums over the rows of a cell that lie below a row in some column, or level with it."""

    def __init__(self, marks: Sequence[str], column: str) -> None:
        from pyspark.sql import Window

        super().__init__(marks)
        first, here = Window.unboundedPreceding, Window.currentRow
        self.below: Any = self.window.orderBy(column).rangeBetween(first, here)
        self.level: Any = Window.partitionBy(*self.marks, column)

    def alike(self) -> Any:
        """Rows of the cell with the row's own value."""
        from pyspark.sql import functions as f

        return f.sum(f.lit(1.0)).over(self.level)

    def rank(self) -> Any:
        """The row's rank: the weight below it and half of the weight level with it."""
        from pyspark.sql import functions as f

        mass = f.sum(OMEGA)
        rank = (mass.over(self.below) - mass.over(self.level) / 2) / f.col(ROWS) - 0.5
        # Weights add up to n but for rounding, which would look like a column that varies.
        return f.when(self.alike() < f.col(ROWS), rank).otherwise(0.0)

    def above(self, rank: str) -> Any:
        """The sum of weighed ranks over the rows above, and half of the row's own level."""
        from pyspark.sql import functions as f

        mass = f.sum(f.col(OMEGA) * f.col(rank))
        below, level = mass.over(self.below), mass.over(self.level)
        return f.col(f"sum {rank}") - below + level / 2
