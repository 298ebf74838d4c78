"""Texts, labelers and an audit of a few rows: what they take beside the work they cannot avoid.

    python benchmarks/run.py people

CPU time, best of three. A swap as a command is held against the function that rewrites the same
texts under both values; 8 groups of labelers against 2; a tiny audit is a process of its own.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

TEXTS, LABELS, LABELERS = 40_000, 200_000, 200
TINY = """
import evenhand as eh
table = {"y": [0, 1] * 40, "d": [0, 1, 1, 1] * 20, "g": ["a", "b"] * 40}
str(eh.audit(table, truth="y", decision="d", group="g"))
"""
IMPORTS = {
    "Python alone": "pass",
    "and NumPy": "import numpy",
    "and Polars": "import numpy, polars",
    "and Narwhals": "import numpy, polars, narwhals",
    "the audit": TINY,
}
COMMAND = """
import sys
from evenhand.cli.main import main
sys.argv = ["evenhand", "audit", {path!r}, "--truth", "y", "--decision", "d", "--group", "g"]
main()
"""


def cpu(work: Callable[[], Any], repeats: int = 3) -> float:
    """CPU seconds of a piece of work, the best of several."""
    used = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        used.append(time.process_time() - start)
    return min(used)


def swapping() -> list[str]:
    """Both values of gender_pronouns on simulated biographies of about 68 words."""
    import sklearn.linear_model  # noqa: F401 — what importing it takes is no part of a swap

    from evenhand.simulate.biographies import biographies
    from evenhand.text.swap import swap_texts
    from evenhand.text.table import swap_table

    lines = ["| texts | function, texts a CPU s | command × function | with the leak probe × |"]
    lines.append("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for many in (TEXTS // 4, TEXTS):
            frame = biographies(many, seed=1).frame.select("text")
            path, out = Path(folder) / "texts.parquet", Path(folder) / "out.parquet"
            frame.write_parquet(path)
            texts = frame["text"].to_list()
            alone = cpu(lambda: [swap_texts(texts, to=value) for value in ("female", "male")])  # noqa: B023
            command, probed = (
                cpu(lambda: swap_table(path, text="text", out=out, probe=probe))  # noqa: B023
                for probe in (False, True)
            )
            lines.append(
                f"| {many:,} | {2 * many / alone:,.0f} | {command / alone:.1f} | "
                f"{probed / alone:.1f} |"
            )
    return lines


def labels(groups: int) -> pl.DataFrame:
    """Labels of people whose bars differ, of items in so many groups."""
    rng = np.random.default_rng(0)
    who, truth = rng.integers(0, LABELERS, LABELS), rng.random(LABELS) < 0.3
    bar = 0.8 + rng.normal(0, 0.3, LABELERS)[who]
    return pl.DataFrame(
        {
            "who": who,
            "group": rng.integers(0, groups, LABELS).astype(str),
            "truth": truth.astype(int),
            "decision": (rng.normal(0, 1, LABELS) + 1.5 * truth > bar).astype(int),
        }
    )


def labelling() -> list[str]:
    """The labelers lens on 2 and on 8 groups."""
    import evenhand as eh

    roles: dict[str, Any] = {"truth": "truth", "decision": "decision", "group": "group"}
    used = {}
    for groups in (2, 8):
        frame = labels(groups)
        used[groups] = cpu(
            lambda: eh.audit(frame, labeler="who", lenses=["labelers"], **roles)  # noqa: B023
        )
    return [
        f"{LABELERS} labelers, {LABELS:,} labels: 2 groups {used[2]:.2f} s, 8 groups "
        f"{used[8]:.2f} s, {used[8] / used[2]:.1f} times (wanted 1.5)."
    ]


def processes() -> list[str]:
    """CPU seconds of processes of their own, user and system, once they are compiled.

    Bytecode is kept, as it is where a package is installed, whatever the environment says.
    """
    lines = ["| a process that imports | CPU s |", "|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        kept["PYTHONPYCACHEPREFIX"] = folder
        table = Path(folder) / "decisions.csv"
        table.write_text("y,d,g\n" + "0,0,a\n1,1,b\n0,1,a\n1,1,b\n" * 20)
        codes = IMPORTS | {"the audit as a command": COMMAND.format(path=str(table))}
        for name, code in codes.items():
            used = []
            for _ in range(4):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                asked = [sys.executable, "-c", code]
                subprocess.run(asked, check=True, env=kept, stdout=subprocess.DEVNULL)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            lines.append(f"| {name} | {min(used):.2f} |")
    return lines


def run() -> list[str]:
    return [
        "A swap as a command, which reads, writes and judges its own validity on 10,000 texts:",
        "",
        *swapping(),
        "",
        *labelling(),
        "",
        "A tiny audit, 80 rows, and what it imports (wanted .4 s):",
        "",
        *processes(),
    ]
