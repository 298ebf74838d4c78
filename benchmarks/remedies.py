"""The ledger against its own baseline fits, on simulated biographies of 28 occupations.

    python benchmarks/remedies.py --rows 40000
    python benchmarks/remedies.py --rows 400000 --seeds 1 --representation bow \
        --remedy augment --remedy kamiran_calders

The unit is the baseline: the time of its fits, one for each seed and representation, in the same
run. Reductions refit every class many times and are left out unless named.
"""

import argparse
import resource
import time

from evenhand.mitigation.compare import compare_remedies
from evenhand.mitigation.registry import BASELINE, REMEDIES
from evenhand.simulate.biographies import biographies

COLUMNS = {"text": "text", "truth": "title", "group": "gender", "name": "name"}


def main() -> None:
    """Run one ledger and print its times as multiples of the baseline fits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--representation", action="append", choices=["bow", "vectors"])
    parser.add_argument("--remedy", action="append", choices=list(REMEDIES))
    parser.add_argument("--out", help="folder of the ledger; parts already there are not counted")
    asked = parser.parse_args()
    named = asked.remedy or [name for name in REMEDIES if name not in (BASELINE, "reductions")]
    # The first fit of a process loads libraries, which is no part of any fit.
    compare_remedies(biographies(900).frame, **COLUMNS, seeds=1, remedies=["augment"])
    frame = biographies(asked.rows, leak="class_words", first_names=True, seed=1).frame
    began = time.perf_counter()
    ledger = compare_remedies(
        frame,
        **COLUMNS,
        seeds=asked.seeds,
        representations=asked.representation or ("bow", "vectors"),
        remedies=named,
        out=asked.out,
    )
    wall = time.perf_counter() - began
    unit = sum(row["seconds"] for row in ledger.rows if row["remedy"] == BASELINE)
    print(f"{asked.rows:,} biographies, {asked.seeds} seeds, {len(ledger.rows)} rows")
    for row in sorted(ledger.rows, key=lambda row: -row["seconds"]):
        told = f"{row['seconds'] / unit:6.1f}×" if row["status"] == "measured" else row["reason"]
        print(f"{row['remedy']:<28}{row['representation']:<8} {told}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"whole run {wall / unit:.0f}× the baseline fits, {wall:.0f} s; peak {peak:.1f} GB")


if __name__ == "__main__":
    main()
