"""Whole audits against a scan of the columns they read, in CPU time.

    python benchmarks/run.py audits
    EVENHAND_BENCH_ROWS=2000000 python benchmarks/run.py audits    on a small machine

The column scan is `scan_parquet(f).group_by(group, truth).agg(len, sum(score))`, the bare count
`scan_parquet(f).group_by(keys).len()`, both on Polars' streaming engine in a process of their own.
Beyond five million rows scores are counted on the fixed grid, up to there they are sorted.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from measured import alone, largest_parts

ROWS = int(os.environ.get("EVENHAND_BENCH_ROWS", "10000000"))
SETUP = "import evenhand as eh"
LENS = (
    "import evenhand as eh\n"
    "from evenhand.lenses.statistical import lens\n"
    "from evenhand.lenses.rows import Options"
)


def write_scores(path: Path, rows: int) -> None:
    """Scores with a truth that follows them, groups, strata, weights."""
    rng = np.random.default_rng(0)
    score = rng.beta(1.2, 4, rows)
    truth = rng.random(rows) < 1 / (1 + np.exp(-8 * (score - 0.55)))
    frame = pl.DataFrame(
        {
            "group": rng.integers(0, 20, rows, dtype=np.int32),
            "school": rng.integers(0, 1_000, rows, dtype=np.int32),
            "site": rng.integers(0, 10, rows, dtype=np.int32),
            "truth": truth.astype(np.int8),
            "score": score,
            "weight": rng.uniform(0.5, 2, rows),
        }
    )
    named = [pl.format(f"{c} {{}}", c).alias(c) for c in ("group", "school", "site")]
    frame.with_columns(named).write_parquet(path)


def write_classes(path: Path, rows: int, classes: int = 28) -> None:
    """One score column for each class, and which of them is true."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, classes, rows)
    columns = {f"score:c{k}": rng.random(rows, dtype=np.float64) for k in range(classes)}
    frame = pl.DataFrame({"truth": truth, "group": rng.integers(0, 20, rows), **columns})
    frame.with_columns(
        pl.format("c{}", "truth").alias("truth"), pl.format("group {}", "group").alias("group")
    ).write_parquet(path)


def write_decisions(path: Path, rows: int, *, groups: int, classes: int) -> None:
    """Decisions on many groups or classes, with clusters and strata."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, classes, rows)
    wrong = rng.random(rows) > 0.7
    cluster = rng.integers(0, max(rows // 20, 1), rows)
    frame = pl.DataFrame(
        {
            "group": cluster % groups,
            "region": rng.integers(0, 5, rows),
            "site": rng.integers(0, 10, rows),
            "truth": truth,
            "decision": np.where(wrong, rng.integers(0, classes, rows), truth),
            "cluster": cluster,
        }
    )
    words = {c: "class" if c in ("truth", "decision") else c for c in frame.columns}
    frame.with_columns(
        pl.format(f"{word} {{}}", c).alias(c) for c, word in words.items()
    ).write_parquet(path)


def scan(path: Path) -> dict[str, float]:
    """The column scan."""
    query = (
        f"pl.scan_parquet({str(path)!r}).group_by('group', 'truth').agg(pl.len(), "
        "pl.col('^score.*$').sum()).collect(engine='streaming')"
    )
    return alone("import polars as pl", query)


def count(path: Path, *keys: str) -> dict[str, float]:
    """The bare count."""
    query = f"pl.scan_parquet({str(path)!r}).group_by({list(keys)!r}).len()"
    return alone("import polars as pl", f"{query}.collect(engine='streaming')")


def line(job: str, unit: dict[str, float], found: dict[str, float], wanted: str) -> str:
    return (
        f"| {job} | {unit['cpu']:.2f} | {found['cpu']:.2f} | {found['cpu'] / unit['cpu']:.1f} | "
        f"{wanted} | {found['peak_mb']:.0f} |"
    )


COLLECTS = """
import evenhand as eh
import polars as pl
made, collect = [], pl.LazyFrame.collect
def counting(self, *args, **kwargs):
    made.append(self)
    return collect(self, *args, **kwargs)
pl.LazyFrame.collect = counting
"""


def scored(folder: Path) -> list[str]:
    """Audits with scores, against the column scan; a profile of what takes longer than wanted."""
    path = folder / "scores.parquet"
    write_scores(path, ROWS)
    roles = "truth='truth', score='score', threshold=0.5"
    unit = scan(path)
    lines, notes = [], []
    for job, more, wanted in (
        ("full audit with score, 20 groups", "group='group'", 8),
        ("the same with 10 strata", "group='group', stratum='site'", 12),
        ("the same with weights", "group='group', weight='weight'", 12),
        ("the same with 1,000 groups", "group='school'", 12),
        ("its tally set, 20 groups", "group='group'", None),
    ):
        call = f"eh.{'audit' if wanted else 'tally'}({str(path)!r}, {roles}, {more})"
        found = alone(SETUP, call, repeats=2)
        told = {None: "", 8: "≤ 8, then 5"}.get(wanted, f"≤ {wanted}")
        lines.append(line(f"{job}, {ROWS / 1e6:g}M rows", unit, found, told))
        notes += late(job, call, found["cpu"] / unit["cpu"], wanted)
    rows = ROWS // 10
    write_classes(path, rows)
    call = f"eh.audit({str(path)!r}, truth='truth', group='group')"
    unit, found = scan(path), alone(SETUP, call, repeats=2)
    many = alone(
        COLLECTS, f"{call}; open({str(folder / 'collects')!r}, 'w').write(str(len(made)))", 1
    )
    collects = int((folder / "collects").read_text()) if many else 0
    job = f"28 score columns, {rows / 1e6:g}M rows ({collects} collects)"
    lines.append(line(job, unit, found, "≤ 8, ≤ 4 collects"))
    notes += late("28 score columns", call, found["cpu"] / unit["cpu"], 8)
    path.unlink()
    return [*lines, *large(folder, roles), *notes]


def late(job: str, call: str, ratio: float, wanted: float | None) -> list[str]:
    """Where the time goes of a job that takes longer than wanted."""
    if wanted is None or ratio <= wanted:
        return []
    return ["", f"Profile, {job}: {'; '.join(largest_parts(SETUP, call))}."]


def large(folder: Path, roles: str) -> list[str]:
    """Peak memory of a table five times as large, without and with weights, in several files."""
    parts = 5
    for part in range(parts):
        write_scores(folder / f"part-{part}.parquet", ROWS)
    files = str(folder / "part-*.parquet")
    unit = scan(Path(files))
    lines = []
    for job, more in (("20 groups", ""), ("with weights", ", weight='weight'")):
        call = f"eh.audit({files!r}, {roles}, group='group'{more})"
        found = alone(SETUP, call, repeats=1)
        name = f"full audit with score, {job}, {parts * ROWS / 1e6:g}M rows, once"
        lines.append(line(name, unit, found, "< 2 GB"))
    for part in range(parts):
        (folder / f"part-{part}.parquet").unlink()
    return lines


def counted(folder: Path) -> list[str]:
    """Decisions alone, against the bare count of their keys."""
    path = folder / "decisions.parquet"
    lines = []
    for groups, classes, rows, wanted in (
        (1_000, 28, ROWS, "≤ 3, 1 GB"),
        (999, 200, ROWS, "≤ 10, 3 GB"),
    ):
        write_decisions(path, rows, groups=groups, classes=classes)
        call = (
            f"lens.measure(eh.Decisions({str(path)!r}, truth='truth', decision='decision', "
            "group='group'), Options())"
        )
        unit = count(path, "group", "truth", "decision")
        job = f"{groups:,} groups × {classes} classes, {rows / 1e6:g}M rows"
        lines.append(line(job, unit, alone(LENS, call, repeats=1), wanted))
    write_decisions(path, ROWS, groups=20, classes=2)
    roles = "truth='truth', decision='decision', positive='class 1', group='group'"
    keys = ("group", "truth", "decision")
    for job, more, extra, wanted in (
        ("clusters of 20 rows", ", cluster='cluster'", ("cluster",), "≤ 3"),
        ("10 strata", ", stratum='site'", ("site",), "≤ 1.5"),
        ("crossed attributes", ", crossed=True", ("region",), "≤ 2"),
    ):
        told = roles.replace("'group'", "['group', 'region']", 1) if "crossed" in more else roles
        call = f"lens.measure(eh.Decisions({str(path)!r}, {told}{more}), Options())"
        found = alone(LENS, call, repeats=2)
        lines.append(
            line(f"{job}, {ROWS / 1e6:g}M rows", count(path, *keys, *extra), found, wanted)
        )
    return lines


def run() -> list[str]:
    head = [
        "CPU seconds, against the column scan (audits with scores) or the bare count of the same "
        "keys (decisions alone):",
        "",
        "| job | unit s | audit s | ratio | wanted | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        return [*head, *counted(Path(folder)), *scored(Path(folder))]
