"""Simulate claims and write their table.

make simulate                        all claims, 2,000 repetitions (a fraction of them for audits)
make simulate REPS=200               a quick look
PYTHONPATH=tools python -m claims --only "impact ratio" --repetitions 500 --no-page
PYTHONPATH=tools python -m claims --only looks:      rows of other claims stay as they are

A long run may be made elsewhere, and its numbers be put on the page here:

PYTHONPATH=tools:src python -m claims --home watching --only noise --only change --keep FOLDER
PYTHONPATH=tools python -m claims --take FOLDER
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from os import cpu_count
from pathlib import Path

from claims.claim import HOMES, Claim, Outcome, registry, run
from claims.page import PAGE, held, keep, kept, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="claims", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="claims whose name holds these words")
    parser.add_argument("--home", action="append", help="the module of claims, such as watching")
    parser.add_argument("--keep", type=Path, help="keep numbers in a folder, chunk by chunk")
    parser.add_argument("--take", type=Path, help="simulate nothing: take numbers from a folder")
    parser.add_argument("--no-page", action="store_true", help="print, and leave the page as it is")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a claim fails")
    asked = parser.parse_args()
    homes = [f"claims.{name}" for name in asked.home] if asked.home else HOMES
    claims = chosen(registry(homes), asked.only)
    if not claims:
        parser.error(f"no claim has {asked.only!r} in its name")
    if asked.take is not None:
        outcomes = kept(claims, asked.take)
        for outcome in outcomes:
            show(outcome)
    else:
        outcomes = run(
            claims,
            repetitions=asked.repetitions,
            processes=asked.processes,
            seed=asked.seed,
            homes=homes,
            progress=show,
            so_far=None if asked.keep is None else partial(keep, folder=asked.keep),
        )
    if not (asked.no_page or asked.keep):
        put_on_page(outcomes)
        print(f"Written to {PAGE}.", file=sys.stderr)
    failing = sum(outcome.verdict in ("below", "above") for outcome in outcomes)
    if failing:
        print(f"{failing} of {len(outcomes)} claims are not as wanted.", file=sys.stderr)
    return int(bool(failing) and asked.strict)


def chosen(claims: Sequence[Claim], words: Sequence[str] | None) -> list[Claim]:
    """The claims whose name holds any of these words, those of the first words first."""
    found = [c for part in words or [""] for c in claims if part.lower() in c.name.lower()]
    return list(dict.fromkeys(found))


def put_on_page(outcomes: Sequence[Outcome]) -> None:
    """Put the outcomes on the page; rows of claims that are not among them stay."""
    new = {outcome.claim.name: outcome for outcome in outcomes}
    others = held([claim for claim in registry() if claim.name not in new])
    by_name = {outcome.claim.name: outcome for outcome in others} | new
    write([by_name[claim.name] for claim in registry() if claim.name in by_name])


def show(outcome: Outcome) -> None:
    low, high = outcome.claim.wanted
    print(
        f"{outcome.verdict:11} {outcome.rate:6.3f} ± {outcome.error:.3f}  wanted {low:g}–{high:g}"
        f"  n={outcome.repetitions:<5} {outcome.claim.name}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
