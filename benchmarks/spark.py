"""An audit of simulated rows on Spark in local mode, with the plans that ran.

    python benchmarks/spark.py [--rows 100000000] [--score]

Rows are made by Spark itself, so that none is read or kept. What is checked of every plan: that
there is no window, and that what comes to the driver is a tally.
"""

import argparse
import re
import time
from typing import Any

import evenhand as eh

GROUPS = 20


def simulated(session: Any, rows: int) -> Any:
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
    )


def executions(session: Any) -> list[tuple[str, str]]:
    """What was asked for and the plan that Spark ran for it, of every query of the session."""
    store = session._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    return [
        (found.apply(i).description(), found.apply(i).physicalPlanDescription())
        for i in range(found.size())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--score", action="store_true", help="Audit the score too.")
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
    table = simulated(session, given.rows)
    simulated(session, 10_000).groupBy("group").count().collect()  # what starting costs is apart
    start = time.perf_counter()
    counted = table.groupBy("group", "truth", "decision").count().collect()
    count = time.perf_counter() - start
    before = len(executions(session))
    roles: dict[str, Any] = {"truth": "truth", "decision": "decision", "group": "group"}
    if given.score:
        roles |= {"score": "score", "threshold": 0.5, "decision": None}
    start = time.perf_counter()
    result = eh.audit(table, **roles)
    taken = time.perf_counter() - start
    plans = executions(session)[before:]
    for number, (_, plan) in enumerate(plans, 1):
        print(f"--- query {number} of the audit")
        print(plan.split("\n\n")[0])
    windows = [
        number for number, (_, plan) in enumerate(plans, 1) if re.search(r"\bWindow\b", plan)
    ]
    print(
        f"{given.rows:,} rows, {len(counted)} cells: bare count {count:.1f} s, audit {taken:.1f} s "
        f"({taken / count:.1f} times), {len(plans)} queries, windows in {windows or 'none'}."
    )
    print(result.sentence)
    session.stop()


if __name__ == "__main__":
    main()
