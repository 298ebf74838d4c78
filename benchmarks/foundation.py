"""The statistical lens against a bare count and against peers."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from measured import alone, best

from evenhand.speech import few

GROUPS, CLASSES = 20, 28


def write_decisions(path: Path, rows: int, *, text: bool, seed: int = 0) -> None:
    """A Parquet file with group, truth and decision, as integers or as words."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, GROUPS, rows, dtype=np.int32)
    truth = rng.integers(0, CLASSES, rows, dtype=np.int32)
    wrong = rng.random(rows) > 0.7
    decision = np.where(wrong, rng.integers(0, CLASSES, rows, dtype=np.int32), truth)
    frame = pl.DataFrame({"group": group, "truth": truth, "decision": decision})
    if text:
        frame = frame.select(
            pl.format("group_{}", "group").alias("group"),
            pl.format("occupation_{}", "truth").alias("truth"),
            pl.format("occupation_{}", "decision").alias("decision"),
        )
    frame.write_parquet(path)


def lens_against_count(path: Path, repeats: int = 3) -> tuple[dict[str, float], dict[str, float]]:
    """The bare count and the lens with all its intervals, each in a process of its own."""
    count = alone(
        "import polars as pl",
        f"pl.scan_parquet({str(path)!r}).group_by('group', 'truth', 'decision').len()"
        ".collect(engine='streaming')",
        repeats,
    )
    lens = alone(
        "from evenhand.decisions.table import Decisions\n"
        "from evenhand.lenses.statistical import lens as statistical\n"
        "from evenhand.lenses.rows import Options",
        f"statistical.measure(Decisions({str(path)!r}, truth='truth', decision='decision', "
        "group='group', classes=True), Options())",
        repeats,
    )
    return count, lens


def by_hand(path: Path) -> list[str]:
    """The same counts written by hand: the limit of any audit that reads the rows."""
    polars = (
        f"pl.scan_parquet({str(path)!r}).group_by('group', 'truth', 'decision').len()"
        ".collect(engine='streaming')"
    )
    sql = f'SELECT "group", truth, decision, count(*) FROM {str(path)!r} GROUP BY ALL'
    cells = GROUPS * CLASSES * CLASSES
    numpy = (
        f"t = pl.read_parquet({str(path)!r}); g, y, d = (t[c].to_numpy() for c in t.columns); "
        f"np.bincount((g * {CLASSES} + y) * {CLASSES} + d, minlength={cells})"
    )
    found = {
        "Polars": alone("import polars as pl", polars),
        "DuckDB": alone("import duckdb", f"duckdb.sql({sql!r}).fetchall()"),
        "NumPy": alone("import numpy as np\nimport polars as pl", numpy),
    }
    named = [
        f"{name} {each['cpu']:.2f} s ({each['peak_mb']:.0f} MB)" for name, each in found.items()
    ]
    return [
        "",
        "The same counts of 10M rows of integers written by hand, without any interval: "
        f"{', '.join(named)}.",
    ]


def scale(folder: Path) -> list[str]:
    lines = [
        f"Statistical lens with every interval, {GROUPS} groups × {CLASSES} classes, from Parquet, "
        "CPU seconds:",
        "",
        "| rows | columns | bare count s | lens s | ratio | lens peak MB | count peak MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for rows, text, repeats in (
        (10_000_000, False, 5),
        (10_000_000, True, 3),
        (50_000_000, False, 1),
    ):
        path = folder / "decisions.parquet"
        write_decisions(path, rows, text=text)
        count, lens = lens_against_count(path, repeats)
        ratio = lens["cpu"] / count["cpu"]
        kind = "words" if text else "integers"
        lines.append(
            f"| {rows / 1e6:.0f}M | {kind} | {count['cpu']:.3f} | {lens['cpu']:.3f} | "
            f"{ratio:.2f} | {lens['peak_mb']:.0f} | {count['peak_mb']:.0f} |"
        )
        if rows == 10_000_000 and not text:
            hand = by_hand(path)
    return lines + hand


def in_words(rows: int, seed: int = 0) -> pl.DataFrame:
    """A table as people have it: group, truth and decision in words."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    truth = rng.random(rows) < 0.3
    decision = np.where(rng.random(rows) < 0.8, truth, ~truth)
    return pl.DataFrame(
        {
            "gender": np.where(group == 1, "male", "female"),
            "truth": np.where(truth, "violates", "harmless"),
            "decision": np.where(decision, "violates", "harmless"),
        }
    )


def numbered(table: pl.DataFrame) -> dict[str, np.ndarray]:
    """Truth and decision as the 0 and 1 that peers ask for, groups as words."""
    positive = {name: (table[name] == "violates") for name in ("truth", "decision")}
    numbers = {name: column.cast(pl.Int64).to_numpy() for name, column in positive.items()}
    return {"gender": table["gender"].to_numpy(), **numbers}


RATES = ("selection_rate", "true_positive_rate", "false_positive_rate", "false_negative_rate")
Work = Callable[[], object]


def ours(table: Any) -> Work:
    """A whole audit, as a user calls it: every rate, interval, gap, family, verdict, finding."""
    import evenhand as eh

    return lambda: eh.audit(
        table, truth="truth", decision="decision", group="gender", positive="violates"
    )


def fairlearn(
    table: pl.DataFrame, rates: tuple[str, ...] = RATES, draws: int | None = None
) -> Work:
    from fairlearn import metrics

    columns = numbered(table)
    boot = {} if draws is None else {"n_boot": draws, "ci_quantiles": [0.025, 0.975]}

    def work() -> None:
        found = metrics.MetricFrame(
            metrics={name: getattr(metrics, name) for name in rates},
            y_true=columns["truth"],
            y_pred=columns["decision"],
            sensitive_features=columns["gender"],
            **boot,
        )
        found.by_group, found.difference()

    return work


def aif360(table: pl.DataFrame) -> Work:
    import pandas as pd
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric

    columns = numbered(table)
    gender = (columns["gender"] == "male").astype(float)
    truth, decision = (
        BinaryLabelDataset(
            df=pd.DataFrame({"gender": gender, "label": columns[label].astype(float)}),
            label_names=["label"],
            protected_attribute_names=["gender"],
        )
        for label in ("truth", "decision")
    )

    def work() -> None:
        metric = ClassificationMetric(
            truth, decision,
            privileged_groups=[{"gender": 1.0}], unprivileged_groups=[{"gender": 0.0}],
        )  # fmt: skip
        for privileged in (True, False):
            metric.selection_rate(privileged=privileged)
            metric.performance_measures(privileged=privileged)

    return work


def aequitas(table: pl.DataFrame) -> Work:
    import pandas as pd
    from aequitas.group import Group

    columns = numbered(table)
    frame = pd.DataFrame(
        {
            "score": columns["decision"],
            "label_value": columns["truth"],
            "gender": columns["gender"],
        }
    )
    return lambda: Group().get_crosstabs(frame)


TOOLS: dict[str, Callable[[pl.DataFrame], Work]] = {
    "Evenhand": ours,
    "Evenhand, from pandas": lambda table: ours(table.to_pandas()),
    "Fairlearn, one metric": lambda table: fairlearn(table, RATES[:1]),
    "Fairlearn, four metrics": fairlearn,
    "AIF360": aif360,
    "aequitas": aequitas,
}
SIZES = (10_000, 100_000, 1_000_000)


def seconds_of(tool: str, table: pl.DataFrame) -> float | None:
    """Least CPU time of a tool on a table that it takes as it is; None where it breaks."""
    try:
        work = TOOLS[tool](table)
        return best(work, repeats=5 if len(table) < SIZES[-1] else 3)
    except Exception as error:  # a peer that breaks is a result, not a reason to stop
        if tool.startswith("Evenhand"):
            raise
        print(f"{tool} failed: {type(error).__name__}: {error}")
        return None


def peers() -> list[str]:
    """Whole audits beside peers; each tool is handed the table in the form that it takes."""
    tables = {rows: in_words(rows) for rows in SIZES}
    found = {tool: [seconds_of(tool, table) for table in tables.values()] for tool in TOOLS}
    mine = found["Evenhand"]
    lines = [
        "",
        "A whole audit of two groups, in memory, CPU seconds: ours `eh.audit` of a table of words, "
        "with every interval, gap, ratio, family and finding; theirs their own rates, without "
        "intervals. Each tool is handed the table in the form that it takes (words here, 0 and 1 "
        "or floats there), made before the clock starts. Fairlearn is called as "
        "`MetricFrame(metrics=…)` with `by_group` and `difference()`, with one metric "
        "(`selection_rate`) and with four (the true and false positive and the false negative "
        "rate too); AIF360 is given its own data sets. Words in pandas are Python's objects, which "
        "ours has to convert within its time:",
        "",
        f"| tool | {' | '.join(f'{rows:,} rows | times ours' for rows in SIZES)} |",
        f"|---|{'---|---|' * len(SIZES)}",
    ]
    for tool, times in found.items():
        cells = [
            "failed | " if one is None else f"{one:.3f} | {few(one / own)}"
            for one, own in zip(times, mine)
        ]
        lines.append(f"| {tool} | {' | '.join(cells)} |")
    small = tables[SIZES[0]]
    boot = best(fairlearn(small, draws=1000), repeats=1)
    lines += [
        "",
        f"With intervals, on {SIZES[0]:,} rows (the largest size at which Fairlearn's 1,000 "
        f"bootstraps finish in minutes): Evenhand {mine[0]:.3f} s, Fairlearn with four metrics and "
        f"`n_boot=1000` {boot:.0f} s, {boot / mine[0]:,.0f} times ours.",
    ]
    return lines


def start_up() -> list[str]:
    python = sys.executable
    bare = best(lambda: subprocess.run([python, "-c", "pass"], check=True), repeats=5)
    loaded = best(lambda: subprocess.run([python, "-c", "import evenhand"], check=True), repeats=5)
    command = str(Path(python).parent / "evenhand")
    shown = best(
        lambda: subprocess.run([command, "--help"], check=True, capture_output=True), repeats=5
    )
    return [
        "",
        f"Start-up: Python alone {bare:.3f} s, `import evenhand` {loaded:.3f} s, "
        f"`evenhand --help` {shown:.3f} s.",
    ]


def run() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return [*scale(Path(folder)), *peers(), *start_up()]
