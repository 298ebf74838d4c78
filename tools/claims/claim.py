"""A claim about how often something holds, and how often it does in simulations.

A claim is simulated in chunks, each with a seed of its own, so that the result depends neither on
the number of processes nor on which of them took which chunk.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from math import sqrt
from multiprocessing import get_context
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

CHUNK = 100
HOMES = (
    "claims.statistics",
    "claims.thresholds",
    "claims.audits",
    "claims.joined",
    "claims.edges",
    "claims.steps",
    "claims.watching",
)

Simulation = Callable[[np.random.Generator, int], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What should happen how often, in which setting.

    `simulate(generator, repetitions)` gives 1 for each repetition in which it happened, 0 where
    it did not, NaN where the question did not arise. `share` is the part of the repetitions asked
    for that this claim needs: whole audits are slow. `said` are the words beside the number where
    it is known to hold less often than it should.
    """

    measure: str
    setting: str
    wanted: tuple[float, float]
    simulate: Simulation
    kind: str = "coverage"
    share: float = 1.0
    said: str = ""

    @property
    def name(self) -> str:
        """Measure and setting."""
        return f"{self.measure} · {self.setting}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How often a claim came true, of how many repetitions in which the question arose."""

    claim: Claim
    hits: float
    repetitions: int

    @property
    def rate(self) -> float:
        """Share of repetitions in which it happened; NaN where the question never arose."""
        return self.hits / self.repetitions if self.repetitions else float("nan")

    @property
    def error(self) -> float:
        """Monte-Carlo standard error, that of (k + 1) of (n + 2) so that 0 of n has one."""
        if not self.repetitions:
            return float("nan")
        p = (self.hits + 1) / (self.repetitions + 2)
        return sqrt(p * (1 - p) / self.repetitions)

    @property
    def verdict(self) -> str:
        """Whether the rate lies where it is wanted, give or take two Monte-Carlo errors."""
        if not self.repetitions:
            return "never arose"
        low, high = self.claim.wanted
        if self.rate + 2 * self.error < low:
            return "below"
        return "above" if self.rate - 2 * self.error > high else "holds"


def registry(homes: Sequence[str] = HOMES) -> tuple[Claim, ...]:
    """All claims of these modules, in their order."""
    return tuple(claim for home in homes for claim in import_module(home).CLAIMS)


def run(
    claims: Sequence[Claim],
    *,
    repetitions: int,
    processes: int = 1,
    seed: int = 0,
    homes: Sequence[str] = HOMES,
    progress: Callable[[Outcome], None] | None = None,
    so_far: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """The outcome of every claim, in order; `progress` is called as each is known.

    `so_far` is called as each chunk is known, so that a run that is ended early loses little.
    """
    asked = [max(1, round(repetitions * claim.share)) for claim in claims]
    tasks = [
        (place, part, min(CHUNK, count - start))
        for place, count in enumerate(asked)
        for part, start in enumerate(range(0, count, CHUNK))
    ]
    if processes <= 1:
        simulated: Iterable[NDArray[np.float64]] = (
            simulate_chunk(claims[place], seed, part, size) for place, part, size in tasks
        )
        return _gather(claims, tasks, simulated, progress, so_far)
    names = [claim.name for claim in claims]
    # Spawned, not forked: the engine's threads do not survive a fork.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        arguments = zip(
            *((tuple(homes), names[place], seed, part, size) for place, part, size in tasks)
        )
        simulated = pool.map(_by_name, *arguments)
        return _gather(claims, tasks, simulated, progress, so_far)


def simulate_chunk(claim: Claim, seed: int, part: int, size: int) -> NDArray[np.float64]:
    """One chunk of a claim's repetitions."""
    generator = np.random.default_rng([seed, part, crc32(claim.name.encode())])
    return np.asarray(claim.simulate(generator, size), dtype=np.float64)


def _by_name(
    homes: tuple[str, ...], name: str, seed: int, part: int, size: int
) -> NDArray[np.float64]:
    claim = next(claim for claim in registry(homes) if claim.name == name)
    return simulate_chunk(claim, seed, part, size)


def _gather(
    claims: Sequence[Claim],
    tasks: Sequence[tuple[int, int, int]],
    simulated: Iterable[NDArray[np.float64]],
    progress: Callable[[Outcome], None] | None,
    so_far: Callable[[Outcome], None] | None,
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    hits, count = 0.0, 0
    for place, (task, result) in enumerate(zip(tasks, simulated)):
        known = result[~np.isnan(result)]
        hits, count = hits + float(known.sum()), count + known.size
        outcome = Outcome(claim=claims[task[0]], hits=hits, repetitions=count)
        if so_far is not None:
            so_far(outcome)
        if place + 1 == len(tasks) or tasks[place + 1][0] != task[0]:
            outcomes.append(outcome)
            hits, count = 0.0, 0
            if progress is not None:
                progress(outcome)
    return outcomes
