"""How much work something is, in units that no machine and no neighbour on it changes."""

import sys
import time
from collections.abc import Callable
from typing import Any

Work = Callable[[], Any]


def calls(work: Work) -> int:
    """How many function calls, Python's and C's, a piece of work makes.

    The same on every machine, so a test may hold it: work that is done twice, or once for each
    text where once would do, shows here. What happens inside one call of C does not.
    """
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def times_as_long(work: Work, bare: Work, *, runs: int = 3) -> float:
    """CPU time of one piece of work in units of another, each the best of several runs.

    For heavy tests: a ratio moves little with the machine, but it does move.
    """
    return _seconds(work, runs) / _seconds(bare, runs)


def _seconds(work: Work, runs: int) -> float:
    """CPU seconds of all threads: the wall of a shared machine says little."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)
