"""The counterfactual, thresholds and norms lenses against a bare count of their key columns."""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from measured import alone

ROWS, CLASSES = 10_000_000, 28


def write_pairs(path: Path) -> list[str]:
    """Truth and a decision under two values of the group, as words."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, CLASSES, ROWS, dtype=np.int32)
    wrong, flipped = rng.random(ROWS) > 0.8, rng.random(ROWS) > 0.97
    first = np.where(wrong, rng.integers(0, CLASSES, ROWS, dtype=np.int32), truth)
    second = np.where(flipped, rng.integers(0, CLASSES, ROWS, dtype=np.int32), first)
    columns = {"truth": truth, "decision@female": first, "decision@male": second}
    frame = pl.DataFrame(columns)
    frame.select(pl.format("occupation_{}", name).alias(name) for name in columns).write_parquet(
        path
    )
    return list(columns)


def write_scores(path: Path) -> list[str]:
    """Twenty groups with a score and a truth that follows it."""
    rng = np.random.default_rng(0)
    score = rng.beta(1.2, 4, ROWS)
    truth = rng.random(ROWS) < 1 / (1 + np.exp(-8 * (score - 0.55)))
    group = rng.integers(0, 20, ROWS, dtype=np.int32)
    frame = pl.DataFrame({"group": group, "truth": truth.astype(np.int8), "score": score})
    frame.select(pl.format("group_{}", "group").alias("group"), "truth", "score").write_parquet(
        path
    )
    return ["group", "truth"]


def write_norms(path: Path) -> list[str]:
    """Two groups, the score of the own class and a norm score each."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, CLASSES, ROWS, dtype=np.int32)
    group = rng.integers(0, 2, ROWS, dtype=np.int32)
    norm = rng.random(ROWS)
    pl.DataFrame({"truth": truth, "group": group}).select(
        pl.format("occupation_{}", "truth").alias("truth"),
        pl.format("group_{}", "group").alias("group"),
        pl.Series("score:truth", 0.3 * norm + rng.random(ROWS)),
        pl.Series("norm@group_0", norm),
    ).write_parquet(path)
    return ["group", "truth"]


SUITES = {
    "counterfactual": (write_pairs, "truth='truth'"),
    "thresholds": (write_scores, "truth='truth', score='score', threshold=0.5, group='group'"),
    "norms": (write_norms, "truth='truth', group='group'"),
}


WANTED = {"thresholds": "≤ 2.5", "norms": "≤ 4"}


def run() -> list[str]:
    lines = [
        "10M rows from Parquet, CPU seconds; the bare count groups by the lens's key columns "
        "(words), the scan also sums the columns of numbers that the lens reads:",
        "",
        "| lens | bare count s | scan s | lens s | ratio to the count | wanted | ratio to the scan "
        "| lens peak MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, (write, roles) in SUITES.items():
            path = Path(folder) / f"{name}.parquet"
            keys = write(path)
            count = alone(
                "import polars as pl",
                f"pl.scan_parquet({str(path)!r}).group_by({keys!r}).len()"
                ".collect(engine='streaming')",
            )
            scan = alone(
                "import polars as pl\nimport polars.selectors as cs",
                f"pl.scan_parquet({str(path)!r}).group_by({keys!r}).agg(pl.len(), "
                "cs.float().sum()).collect(engine='streaming')",
            )
            lens = alone(
                "from evenhand.decisions.table import Decisions\n"
                f"from evenhand.lenses.{name} import lens\n"
                "from evenhand.lenses.rows import Options",
                f"lens.measure(Decisions({str(path)!r}, {roles}), Options())",
            )
            lines.append(
                f"| {name} | {count['cpu']:.3f} | {scan['cpu']:.3f} | {lens['cpu']:.3f} | "
                f"{lens['cpu'] / count['cpu']:.2f} | {WANTED.get(name, '')} | "
                f"{lens['cpu'] / scan['cpu']:.2f} | {lens['peak_mb']:.0f} |"
            )
            path.unlink()
    return lines
