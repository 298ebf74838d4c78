"""Simulate claims and write their table.

make simulate                        all claims, 2,000 repetitions (a fraction of them for audits)
make simulate REPS=200               a quick look
PYTHONPATH=tools python -m claims --only "impact ratio" --repetitions 500 --no-page
PYTHONPATH=tools python -m claims --only looks:      rows of other claims stay as they are
"""

import argparse
import sys
from os import cpu_count

from claims.claim import Outcome, registry, run
from claims.page import PAGE, held, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="claims", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="claims whose name holds these words")
    parser.add_argument("--no-page", action="store_true", help="print, and leave the page as it is")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a claim fails")
    asked = parser.parse_args()
    claims = [c for c in registry() if not asked.only or asked.only.lower() in c.name.lower()]
    if not claims:
        parser.error(f"no claim has {asked.only!r} in its name")
    outcomes = run(
        claims,
        repetitions=asked.repetitions,
        processes=asked.processes,
        seed=asked.seed,
        progress=show,
    )
    if not asked.no_page:
        others = held([c for c in registry() if c not in claims]) if asked.only else []
        by_name = {outcome.claim.name: outcome for outcome in [*others, *outcomes]}
        write([by_name[c.name] for c in registry() if c.name in by_name])
        print(f"Written to {PAGE}.", file=sys.stderr)
    failing = sum(outcome.verdict in ("below", "above") for outcome in outcomes)
    if failing:
        print(f"{failing} of {len(outcomes)} claims are not as wanted.", file=sys.stderr)
    return int(bool(failing) and asked.strict)


def show(outcome: Outcome) -> None:
    low, high = outcome.claim.wanted
    print(
        f"{outcome.verdict:11} {outcome.rate:6.3f} ± {outcome.error:.3f}  wanted {low:g}–{high:g}"
        f"  n={outcome.repetitions:<5} {outcome.claim.name}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
