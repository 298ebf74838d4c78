"""Sums over clusters that stay where they are: each part of them is summed on its own machine.

A table by cluster has about as many rows as the data where clusters are small. On one machine it
is held; in Spark it stays there, and what comes back is as large as the result.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.decisions.question import join_groups, read_tally
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray

PartSums = Callable[[Tally], Mapping[str, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What a worker of Spark does with the rows by cluster that it holds: sums, by their places."""

    keys: tuple[str, ...]
    sums: tuple[str, ...]
    attribute: Attribute
    missing: str
    function: PartSums

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        held = list(batches)
        if not sum(batch.num_rows for batch in held):
            return
        table = nw.from_native(pa.Table.from_batches(held), eager_only=True)
        part = join_groups(
            read_tally(table, self.keys, self.sums), self.attribute, missing=self.missing
        )
        values = np.concatenate([each.reshape(-1) for each in self.function(part).values()])
        place = np.flatnonzero(values != 0)
        yield pa.RecordBatch.from_pydict({"place": place.astype(np.int64), "value": values[place]})


def sum_over_clusters(
    decisions: Decisions, attribute: Attribute, function: PartSums
) -> dict[str, FloatArray]:
    """Sums over all clusters of what a function of a tally of some whole clusters gives.

    Spark brings the rows of a cluster to one worker, which needs Evenhand as the driver does, and
    adds up what workers found.
    """
    from pyspark.errors import PythonException
    from pyspark.sql import functions as f

    question = decisions.count_question(attribute, cluster=True)
    work = _Part(
        keys=question.keys,
        sums=question.sums,
        attribute=attribute,
        missing=decisions.roles.missing,
        function=function,
    )
    with decisions.engine_errors(), _own_python(question.frame.to_native()):
        native: Any = question.frame.filter(~nw.col("key:cluster").is_null()).to_native()
        by_worker = native.repartition(f.col("`key:cluster`")).mapInArrow(
            work, "place long, value double"
        )
        try:
            summed = by_worker.groupBy("place").agg(f.sum("value").alias("value")).toArrow()
        except PythonException as error:
            reason = str(error).strip().splitlines()[-1].strip().rstrip(".")
            raise DataError(
                f"Spark's workers could not add up {decisions.roles.together!r}, which has more "
                f"cells than its driver takes: {reason}. Install Evenhand where they run and name "
                "that Python with PYSPARK_PYTHON, or audit without cluster."
            ) from error
    none = Tally.of({k: [] for k in _named(question.keys)}, {k: [] for k in ("n", *question.sums)})
    shapes = {name: values.shape for name, values in function(none).items()}
    flat = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()))
    flat[np.asarray(summed["place"])] = np.asarray(summed["value"])
    found, start = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        found[name] = flat[start : start + size].reshape(shape)
        start += size
    return found


@contextmanager
def _own_python(native: Any) -> Iterator[None]:
    """Workers on this machine run the Python that this is, wherever another is found first."""
    session = native.sparkSession
    context = getattr(session, "_sc", None)
    if context is None or not str(context.master).startswith("local"):
        yield
        return
    before, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


def _named(keys: Iterable[str]) -> list[str]:
    """The keys of a tally whose groups are joined."""
    return ["group", *(k for k in keys if not k.removeprefix("group").isdigit())]
