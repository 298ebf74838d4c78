"""The statistical lens against a bare count and against peers."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from measured import alone, best

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
        "group='group'), Options())",
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


def binary(rows: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    truth = (rng.random(rows) < 0.3).astype(int)
    decision = np.where(rng.random(rows) < 0.8, truth, 1 - truth)
    return pl.DataFrame({"gender": group, "truth": truth, "decision": decision})


def ours(frame: pl.DataFrame) -> None:
    from evenhand.decisions.table import Decisions
    from evenhand.lenses.rows import Options
    from evenhand.lenses.statistical import lens as statistical

    decisions = Decisions(frame, truth="truth", decision="decision", group="gender")
    statistical.measure(decisions, Options())


RATES = ("selection_rate", "true_positive_rate", "false_positive_rate", "false_negative_rate")


def fairlearn(
    frame: pl.DataFrame, draws: int | None = None, rates: tuple[str, ...] = RATES
) -> None:
    from fairlearn import metrics

    columns = {name: frame[name].to_numpy() for name in frame.columns}
    boot = {} if draws is None else {"n_boot": draws, "ci_quantiles": [0.025, 0.975]}
    found = metrics.MetricFrame(
        metrics={name: getattr(metrics, name) for name in rates},
        y_true=columns["truth"],
        y_pred=columns["decision"],
        sensitive_features=columns["gender"],
        **boot,
    )
    found.by_group, found.difference()


def aif360(frame: pl.DataFrame) -> None:
    import pandas as pd
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric

    def dataset(label: str) -> BinaryLabelDataset:
        columns = {"gender": frame["gender"].to_numpy(), "label": frame[label].to_numpy()}
        return BinaryLabelDataset(
            df=pd.DataFrame(columns).astype(float),
            label_names=["label"],
            protected_attribute_names=["gender"],
        )

    metric = ClassificationMetric(
        dataset("truth"), dataset("decision"),
        privileged_groups=[{"gender": 1.0}], unprivileged_groups=[{"gender": 0.0}],
    )  # fmt: skip
    for privileged in (True, False):
        metric.selection_rate(privileged=privileged)
        metric.performance_measures(privileged=privileged)


def aequitas(frame: pl.DataFrame) -> None:
    import pandas as pd
    from aequitas.group import Group

    table = pd.DataFrame(
        {
            "score": frame["decision"].to_numpy(),
            "label_value": frame["truth"].to_numpy(),
            "gender": frame["gender"].to_numpy().astype(str),
        }
    )
    Group().get_crosstabs(table)


def peers() -> list[str]:
    frame = binary(1_000_000)
    mine = best(lambda: ours(frame))
    lines = [
        "",
        "Rates of two groups on the same 1M rows in memory, CPU seconds, each tool doing its own "
        "version of the work (ours with all intervals, gaps, ratios and families; theirs without "
        "intervals). Fairlearn is called as `MetricFrame(metrics=…)` with `by_group` and "
        "`difference()`, with one metric (`selection_rate`) and with four (the true and false "
        "positive and the false negative rate too):",
        "",
        "| tool | s | times ours |",
        "|---|---|---|",
        f"| Evenhand | {mine:.3f} | 1 |",
    ]
    for name, work in (
        ("Fairlearn, one metric", lambda f: fairlearn(f, rates=RATES[:1])),
        ("Fairlearn, four metrics", fairlearn),
        ("AIF360", aif360),
        ("aequitas", aequitas),
    ):
        try:
            seconds = best(lambda work=work: work(frame), repeats=2)
        except Exception as error:  # a peer that breaks is a result, not a reason to stop
            lines.append(f"| {name} | failed: {type(error).__name__} | |")
            continue
        lines.append(f"| {name} | {seconds:.2f} | {seconds / mine:.0f} |")
    small = binary(10_000)
    ours_small = best(lambda: ours(small))
    boot = best(lambda: fairlearn(small, draws=1000), repeats=1)
    lines += [
        "",
        f"With intervals, on 10,000 rows (the largest size at which Fairlearn's 1,000 bootstraps "
        f"finish in minutes): Evenhand {ours_small:.3f} s, Fairlearn with four metrics and "
        f"`n_boot=1000` {boot:.0f} s, {boot / ours_small:,.0f} times ours.",
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
