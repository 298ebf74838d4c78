"""One more week in a store of many, against the audit of that week alone."""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import date, timedelta
from functools import partial
from os import environ
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from evenhand.watching.store import FILE

PERIODS = int(environ.get("PERIODS", "520"))
GROUPS, CLASSES = 20, int(environ.get("CLASSES", "28"))
# Weeks that are added one by one, beyond those.
MORE = 9
A_WEEK = 20 * GROUPS * CLASSES
LIMITS = {
    "true_positive_rate_gap": 0.1,
    "false_positive_rate_gap": 0.05,
    "selection_rate_gap": 0.05,
}
ROLES = {"truth": "truth", "decision": "decision", "group": "group"}
FIRST = date(2016, 1, 4)


def weeks(first: int, many: int) -> pl.DataFrame:
    """Decisions of so many weeks from a first one on, every day of them; no gap anywhere."""
    rng = np.random.default_rng(first)
    n = many * A_WEEK
    truth = rng.integers(0, CLASSES, n)
    decision = np.where(rng.random(n) < 0.8, truth, rng.integers(0, CLASSES, n))
    day = np.repeat(np.arange(many), A_WEEK) * 7 + np.tile(np.arange(A_WEEK) % 7, many)
    frame = pl.DataFrame(
        {
            "group": rng.integers(0, GROUPS, n),
            "truth": truth,
            "decision": decision,
            "day": np.datetime64(FIRST + timedelta(weeks=first)) + day.astype("timedelta64[D]"),
        }
    )
    words = {"group": "g{}", "truth": "c{}", "decision": "c{}"}
    return frame.with_columns(pl.format(form, name).alias(name) for name, form in words.items())


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it gave."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def lines_held(store: Path) -> int:
    """How many lines a store keeps."""
    with closing(sqlite3.connect(store / FILE)) as held:
        return int(held.execute("SELECT count(*) FROM lines").fetchone()[0])


def run() -> list[str]:
    """The table in Markdown; a week's audit and its adding are timed one after another."""
    import evenhand as eh

    audits, kept, drawn = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        options = {**ROLES, "time": "day", "every": "week", "limits": LIMITS}
        built, _ = timed(lambda: eh.watch(store, weeks(0, PERIODS - 1), **options))
        eh.watch(store, weeks(PERIODS - 1, 1), **options)
        eh.audit(weeks(PERIODS, 1), limits=LIMITS, **ROLES)
        for week in range(PERIODS, PERIODS + MORE):
            one, before = weeks(week, 1), lines_held(store)
            audits.append(timed(partial(eh.audit, one, limits=LIMITS, **ROLES))[0])
            added, watched = timed(partial(eh.watch, store, one, **options))
            (kept if lines_held(store) == before else drawn).append(added)
        page, _ = timed(lambda: watched.save(Path(folder) / "watch.html"))
        size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    alone = median(audits)
    worst = [f"| adding one whose line was newly drawn ({len(drawn)} of {MORE}) | "
             f"{median(drawn):.2f} | {median(drawn) / alone:.1f} | |"] if drawn else []  # fmt: skip
    return [
        f"{PERIODS} weeks of {A_WEEK:,} rows, {GROUPS} groups × {CLASSES} classes, three measures "
        "with a limit, no planned horizon; CPU seconds:",
        "",
        "| job | s | against the audit of the week | wanted |",
        "|---|---|---|---|",
        f"| audit of one week, median of {MORE} | {alone:.2f} | 1 | |",
        f"| adding it to the store, lines kept, median of {len(kept)} | {median(kept):.2f} | "
        f"{median(kept) / alone:.1f} | ≤ 2 |",
        *worst,
        f"| the page | {page:.2f} | {page / alone:.1f} | ≤ 2 s |",
        f"| building the store, once | {built:.0f} | | |",
        "",
        f"The store holds {size / (PERIODS + MORE) / 1024:.0f} KB a period (wanted: 50 at most).",
    ]
