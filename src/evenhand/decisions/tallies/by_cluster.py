"""Sums over clusters that stay where they are: each part of them is summed on its own machine.

A table by cluster has about as many rows as the data where clusters are small. On one machine it
is held; in Spark it stays there, and what comes back is as large as the result.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.decisions.question import Question, join_groups, read_tally
from evenhand.decisions.read import key_codes, number_values
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray

PartSums = Callable[[Any], Mapping[str, FloatArray]]
# Cells by cluster that Spark hands to its driver; of more, only sums over clusters leave it.
MOST_AT_DRIVER = 100_000
CLUSTER = "cluster"
# Clusters of up to so many rows have about as many cells as rows: counting rows where they come
# together is then cheaper than counting them before.
FEW_ROWS = 200
# Rows that a worker counts at a time.
AT_ONCE = 2**21


def stay_in_spark(decisions: Decisions, question: Question) -> bool:
    """Whether a question by cluster has more cells than Spark's driver takes.

    Cells are as many as clusters at least, and at most as many as rows. In between Spark estimates
    them, as it does clusters, in a pass that shuffles nothing: to about a twentieth.
    """
    if decisions.engine != "spark" or CLUSTER not in question.keys:
        return False
    clusters, rows = _sizes(decisions)
    if clusters > MOST_AT_DRIVER or rows <= MOST_AT_DRIVER:
        return clusters > MOST_AT_DRIVER
    from pyspark.sql import functions as f

    keys = f.struct(*(f.col(f"`key:{key}`") for key in question.keys))
    with decisions.engine_errors():
        native: Any = question.rows.to_native()
        estimate = native.agg(f.approx_count_distinct(keys).alias("cells")).toArrow()
    return int(estimate["cells"][0].as_py()) > MOST_AT_DRIVER


def _sizes(decisions: Decisions) -> tuple[int, int]:
    """About how many clusters Spark holds, and how many rows; looked at once."""
    held = decisions.__dict__.setdefault("cluster_sizes", {})
    column = str(decisions.roles.together)
    if column not in held:
        from pyspark.sql import functions as f

        names = nw.col(column).alias("name")
        with decisions.engine_errors():
            native: Any = decisions.frame.select(names).to_native()
            clusters, rows = f.approx_count_distinct("name"), f.count(f.lit(1))
            found = native.agg(clusters.alias("clusters"), rows.alias("rows")).toArrow()
        held[column] = tuple(int(found[name][0].as_py()) for name in ("clusters", "rows"))
    clusters, rows = held[column]
    return clusters, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class DistantClusters:
    """Clusters that stay in Spark: of a question by cluster only sums over clusters leave it.

    `first`, where it is given, makes of the tally of some whole clusters what functions take; the
    workers call it.
    """

    decisions: Decisions
    question: Question
    first: Callable[[Tally], Any] | None = None

    def add_up(self, function: PartSums) -> dict[str, FloatArray]:
        """Sums over all clusters of what a function of a tally of some whole clusters gives.

        Spark brings the rows of a cluster to one worker, which needs Evenhand as the driver does,
        and adds up what workers found.
        """
        from pyspark.errors import PythonException
        from pyspark.sql import functions as f

        decisions, question = self.decisions, self.question
        clusters, rows = _sizes(decisions)
        raw = rows <= FEW_ROWS * max(clusters, 1)
        work = _Part(
            raw=raw,
            keys=question.keys,
            sums=question.sums,
            attribute=question.attribute,
            missing=decisions.roles.missing,
            functions=(function,) if self.first is None else (self.first, function),
        )
        with decisions.engine_errors(), _own_python(question.frame.to_native()):
            table = question.rows if raw else question.frame
            native: Any = table.filter(~nw.col("key:cluster").is_null()).to_native()
            by_worker = native.repartition(f.col("`key:cluster`")).mapInArrow(
                work, "place long, value double"
            )
            try:
                summed = by_worker.groupBy("place").agg(f.sum("value").alias("value")).toArrow()
            except PythonException as error:
                reason = str(error).strip().splitlines()[-1].strip().rstrip(".")
                raise DataError(
                    f"Spark's workers could not add up {decisions.roles.together!r}, which has "
                    f"more cells than its driver takes: {reason}. Install Evenhand where they run "
                    "and name that Python with PYSPARK_PYTHON, or audit without cluster."
                ) from error
        shapes = {name: values.shape for name, values in work.found(work.none()).items()}
        flat = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()))
        flat[np.asarray(summed["place"])] = np.asarray(summed["value"])
        found, start = {}, 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            found[name] = flat[start : start + size].reshape(shape)
            start += size
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What a worker of Spark does with its rows, or cells by cluster: sums, by their places."""

    keys: tuple[str, ...]
    sums: tuple[str, ...]
    attribute: Attribute | None
    missing: str
    functions: tuple[Callable[[Any], Any], ...]
    raw: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        tallies: list[Tally] = []
        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            if sum(each.num_rows for each in held) >= AT_ONCE:
                tallies, held = [*tallies, self._read(held)], []
        if sum(batch.num_rows for batch in held):
            tallies.append(self._read(held))
        if not tallies:
            return
        found = self.found(self._named(reduce(Tally.merge, tallies)))
        values = np.concatenate([each.reshape(-1) for each in found.values()])
        place = np.flatnonzero(values != 0)
        yield pa.RecordBatch.from_pydict({"place": place.astype(np.int64), "value": values[place]})

    def _read(self, batches: list[Any]) -> Tally:
        """The tally of some rows, or of cells."""
        import pyarrow as pa

        table = nw.from_native(pa.Table.from_batches(batches), eager_only=True)
        if not self.raw:
            return read_tally(table, self.keys, self.sums)
        # A sum leaves out what is missing.
        sums = {k: np.nan_to_num(number_values(table[f"sum:{k}"])) for k in self.sums}
        keys = {k: key_codes(table[f"key:{k}"]) for k in self.keys}
        return Tally.coded(keys, {"n": np.ones(len(table)), **sums}).compact()

    def found(self, part: Any) -> Mapping[str, FloatArray]:
        """What the functions, one after the other, make of a tally of some clusters."""
        for function in self.functions:
            part = function(part)
        return part  # type: ignore[no-any-return]

    def none(self) -> Tally:
        """The tally of no clusters: what functions make of it has the shapes of all."""
        sums: dict[str, list[float]] = {name: [] for name in ("n", *self.sums)}
        return self._named(Tally.of({key: [] for key in self.keys}, sums))

    def _named(self, tally: Tally) -> Tally:
        if self.attribute is None:
            return tally
        return join_groups(tally, self.attribute, missing=self.missing)


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
