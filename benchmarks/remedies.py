"""The ledger against its own baseline fits, and three remedies at a large size.

    python benchmarks/run.py remedies        (about a quarter of an hour; not in `make bench`)
    python benchmarks/remedies.py --rows 40000 --out ledger40k
    python benchmarks/remedies.py --rows 400000 --seeds 1 --representation bow \
        --remedy augment --remedy kamiran_calders

The unit of the ledger is the baseline: the time of its fits, one for each seed and
representation, in the same run. Reductions refit every class many times and are counted apart.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

ROWS, LARGE = 40_000, 400_000
AT_LARGE = ("augment", "kamiran_calders")
MOST_GB, MOST_RATIO = 12, 40
COLUMNS = {"text": "text", "truth": "title", "group": "gender", "name": "name"}


class Watch(threading.Thread):
    """The largest memory that a process and its children have held together, in GB."""

    def __init__(self, process: int, *, every: float = 0.25) -> None:
        super().__init__(daemon=True)
        self.process, self.every, self.peak = process, every, 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(self.every):
            self.peak = max(self.peak, sum(map(_resident, _family(self.process))))


def _family(process: int) -> list[int]:
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        found += [each for child in children for each in _family(int(child))]
    return found


def _resident(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    held = [int(line.split()[1]) for line in lines if line.startswith("VmRSS:")]
    return held[0] / 2**20 if held else 0.0


def measured(
    rows: int,
    *,
    remedies: tuple[str, ...] = (),
    representations: tuple[str, ...] = ("bow", "vectors"),
    seeds: int = 3,
    out: str | None = None,
) -> dict:
    """One ledger by the command, in a process of its own: its times, document and memory."""
    from evenhand.simulate.biographies import biographies

    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "biographies.parquet"
        biographies(rows, leak="class_words", first_names=True, seed=1).frame.write_parquet(table)
        place = Path(out or Path(folder) / "ledger")
        flags = [part for role, column in COLUMNS.items() for part in (f"--{role}", column)]
        flags += [part for each in representations for part in ("--representation", each)]
        flags += [part for each in remedies for part in ("--remedy", each)]
        program = "import sys; from evenhand.cli.main import main; main(sys.argv[1:])"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program, "compare", str(table), *flags,
             "--seeds", str(seeds), "--out", str(place)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        watch = Watch(process.pid)
        watch.start()
        process.communicate()
        wall = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        watch.done.set()
        if process.returncode:
            raise RuntimeError(f"evenhand compare ended with {process.returncode}.")
        document = json.loads((place / "ledger.json").read_text())
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "peak": watch.peak, "rows": document["rows"]}


def baseline_alone(rows: int, *, seeds: int = 3) -> dict:
    """Wall and processor seconds of the baseline fits by themselves, one thread each.

    On a machine that others use, processor time is what a ratio can be trusted in.
    """
    from evenhand.remedies.ledger.rows import join_rows, read_people, two_parts
    from evenhand.remedies.ledger.task import Task
    from evenhand.remedies.ledger.texts import prepare_texts
    from evenhand.simulate.biographies import biographies

    frame = biographies(rows, leak="class_words", first_names=True, seed=1).frame
    people = read_people(frame, **COLUMNS)
    divided = join_rows(*two_parts(people, split=None, test_share=0.25, seed=0))
    texts = prepare_texts(divided, representations=("bow", "vectors"))
    wall = cpu = 0.0
    with threadpool_limits(1):
        for representation in texts.representations:
            for seed in range(seeds):
                drawn = divided.drawn(seed, redraw=seeds > 1)
                task = Task(texts=texts, representation=representation, rows=drawn, seed=seed)
                if seed == 0:
                    # The first fit of a process loads libraries, which is no part of any fit.
                    task.classifier().fit(task.table, task.y)
                began = time.perf_counter(), time.process_time()
                task.classifier().fit(task.table, task.y)
                wall += time.perf_counter() - began[0]
                cpu += time.process_time() - began[1]
    return {"wall": wall, "cpu": cpu}


def unit_of(rows: list[dict]) -> float:
    """Seconds of the baseline fits of all seeds and representations."""
    return sum(row["seconds"] for row in rows if row["remedy"] == "baseline")


def ledger_lines(rows: int, found: dict, alone: dict, reductions: dict | None) -> list[str]:
    """The whole run against the baseline fits, and the remedies that took longest."""
    done = [row for row in found["rows"] if row["status"] == "measured"]
    unit, names = unit_of(done), {row["remedy"] for row in done}
    shown = list(dict.fromkeys(row["representation"] for row in done))
    lines = [
        f"{rows:,} biographies, 28 occupations, {' and '.join(shown)}, {done[0]['seeds']} seeds, "
        f"baseline and {len(names) - 1} remedies, one command:",
        "",
        "| | seconds | × baseline fits |",
        "|---|---|---|",
        f"| baseline fits ({len(shown)} × {done[0]['seeds']}) | {unit:.1f} | 1 |",
        f"| whole ledger, without reductions (aim {MOST_RATIO}×) | {found['wall']:.0f} "
        f"| {found['wall'] / unit:.1f} |",
    ]
    if reductions is not None:
        spent = sum(r["seconds"] for r in reductions["rows"] if r["remedy"] == "reductions")
        lines.append(
            f"| reductions, ten steps, vectors, one seed, against one fit | {spent:.0f} "
            f"| {spent / unit_of(reductions['rows']):.0f} |"
        )
    for row in sorted(done, key=lambda row: -row["seconds"])[:8]:
        name = f"fits of {row['remedy']} ({row['representation']})"
        lines.append(f"| {name} | {row['seconds']:.1f} | {row['seconds'] / unit:.1f} |")
    lines += [
        "",
        f"Processor time of the whole ledger {found['cpu']:.0f} s, of the baseline fits alone "
        f"{alone['cpu']:.1f} s: {found['cpu'] / alone['cpu']:.1f}×, or "
        f"{found['cpu'] / alone['cpu'] / 2:.1f}× on two cores. Against the fits alone "
        f"({alone['wall']:.1f} s) the whole took {found['wall'] / alone['wall']:.1f}×. "
        f"Peak memory {found['peak']:.2f} GB.",
    ]
    return lines


def large_lines(rows: int, found: dict) -> list[str]:
    """Time and memory of the few remedies at the large size."""
    told = ", ".join(
        f"{r['remedy']} {r['seconds']:.0f} s" for r in found["rows"] if r["status"] == "measured"
    )
    return [
        f"{rows:,} biographies, word counts, once: {found['wall']:.0f} s, peak memory "
        f"{found['peak']:.1f} GB (aim {MOST_GB} GB). Fits: {told}.",
    ]


def run() -> list[str]:
    """The ledger at 40,000 rows, reductions apart, and three remedies at 400,000."""
    from evenhand.remedies.ledger.registry import BASELINE, REMEDIES

    named = tuple(name for name in REMEDIES if name not in (BASELINE, "reductions"))
    alone = baseline_alone(ROWS)
    ledger = measured(ROWS, remedies=named)
    reductions = measured(ROWS, remedies=("reductions",), representations=("vectors",), seeds=1)
    large = measured(LARGE, remedies=AT_LARGE, representations=("bow",), seeds=1)
    return [*ledger_lines(ROWS, ledger, alone, reductions), "", *large_lines(LARGE, large)]


def main() -> None:
    """One ledger of any size, its times printed as multiples of its baseline fits."""
    from evenhand.remedies.ledger.registry import BASELINE, REMEDIES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--representation", action="append", choices=["bow", "vectors"])
    parser.add_argument("--remedy", action="append", choices=list(REMEDIES))
    parser.add_argument("--out", help="folder of the ledger; parts already there are not counted")
    asked = parser.parse_args()
    named = asked.remedy or [name for name in REMEDIES if name not in (BASELINE, "reductions")]
    found = measured(
        asked.rows,
        remedies=tuple(named),
        representations=tuple(asked.representation or ("bow", "vectors")),
        seeds=asked.seeds,
        out=asked.out,
    )
    alone = baseline_alone(asked.rows, seeds=asked.seeds)
    lines = ledger_lines(asked.rows, found, alone, None)
    print("\n".join([*lines, "", *large_lines(asked.rows, found)]))


if __name__ == "__main__":
    main()
