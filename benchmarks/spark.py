"""An audit of simulated rows on Spark in local mode, with the plans that ran.

    python benchmarks/spark.py [--rows 100000000] [--score] [--clusters 5000000]

Rows are made by Spark itself, so that none is read or kept. What is told of every plan: whether
there is a window, and how many rows came to the driver. Processor time is Spark's and Python's.
"""

import argparse
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import evenhand as eh

GROUPS = 20


def simulated(session: Any, rows: int, clusters: int) -> Any:
    """Decisions with a score, 20 groups of unequal sizes and one whose threshold is higher."""
    from pyspark.sql import functions as f

    share = f.rand(seed=1)
    group = f.floor(share * share * GROUPS)
    score = f.round(f.rand(seed=2), 4)
    cut = f.when(group == 3, 0.6).otherwise(0.5)
    return session.range(rows).select(
        f.concat(f.lit("g"), group.cast("string")).alias("group"),
        (f.rand(seed=3) < score).cast("int").alias("truth"),
        (score >= cut).cast("int").alias("decision"),
        score.alias("score"),
        (f.col("id") % clusters).alias("cluster"),
    )


def executions(session: Any) -> list[tuple[str, str]]:
    """What was asked for and the plan that Spark ran for it, of every query of the session."""
    store = session._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    return [
        (found.apply(i).description(), found.apply(i).physicalPlanDescription())
        for i in range(found.size())
    ]


def processor_seconds(session: Any) -> float:
    """What this process, Spark's and its workers' have used, those that ended included."""
    spark = str(session._jvm.java.lang.ProcessHandle.current().pid())
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            stats[path.parent.name] = path.read_text().rpartition(")")[2].split()
    ours, ticks = {spark}, 0
    while more := {pid for pid, stat in stats.items() if stat[1] in ours} - ours:
        ours |= more
    for pid in ours:
        ticks += sum(map(int, stats[pid][11:15]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def counted_rows(session: Any) -> list[int]:
    """A list to which every table that comes to the driver adds its rows."""
    kind, handed = type(session.range(1)), []
    to_arrow = kind.toArrow

    def noted(frame: Any) -> Any:
        table = to_arrow(frame)
        handed.append(table.num_rows)
        return table

    kind.toArrow = noted
    return handed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--score", action="store_true", help="Audit the score too.")
    parser.add_argument("--clusters", type=int, default=0, help="Clusters that rows come in.")
    given = parser.parse_args()
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    table = simulated(session, given.rows, given.clusters or 1)
    simulated(session, 10_000, 1).groupBy("group").count().collect()  # what starting costs is apart
    start, used = time.perf_counter(), processor_seconds(session)
    counted = table.groupBy("group", "truth", "decision").count().collect()
    count, count_used = time.perf_counter() - start, processor_seconds(session) - used
    before = len(executions(session))
    roles: dict[str, Any] = {"truth": "truth", "decision": "decision", "group": "group"}
    if given.score:
        roles |= {"score": "score", "threshold": 0.5, "decision": None}
    if given.clusters:
        roles["cluster"] = "cluster"
    handed = counted_rows(session)
    start, used = time.perf_counter(), processor_seconds(session)
    result = eh.audit(table, **roles)
    taken, taken_used = time.perf_counter() - start, processor_seconds(session) - used
    plans = executions(session)[before:]
    for number, (_, plan) in enumerate(plans, 1):
        print(f"--- query {number} of the audit")
        print(plan.split("\n\n")[0])
    windows = [
        number for number, (_, plan) in enumerate(plans, 1) if re.search(r"\bWindow\b", plan)
    ]
    print(
        f"{given.rows:,} rows, {len(counted)} cells: bare count {count:.1f} s ({count_used:.1f} s "
        f"of processor), audit {taken:.1f} s ({taken_used:.1f} s): {taken / count:.1f} times, "
        f"{taken_used / count_used:.1f} in processor time; {len(plans)} queries, windows in "
        f"{windows or 'none'}, rows that came to the driver: {handed}."
    )
    print(result.sentence)
    session.stop()


if __name__ == "__main__":
    main()
