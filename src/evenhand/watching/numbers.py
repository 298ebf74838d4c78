"""A stream's numbers at every look: each period's own gap, all so far, and how both vary."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.alarm_lines import OPEN_HORIZON, SERIES
from evenhand.stats.estimate import FloatArray
from evenhand.stats.sequential import (
    BURN_IN,
    FEWEST_EVENTS,
    best_tau,
    between_upper,
    between_variance,
    gap_so_far,
    paired_gap_so_far,
)
from evenhand.watching.streams import Stream

ESTIMATED, NONE = "estimated", "none"
# Lines over longer sequences are drawn from fewer series.
MOST_LOOKS, FEWER_SERIES = 104, 4_000
# Streams whose numbers are taken while they are at hand.
_AT_HAND = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How sequences are judged."""

    level: float = 0.95
    horizon: int | None = None
    between: str = ESTIMATED
    seed: int = 0
    series: int = SERIES

    @property
    def alpha(self) -> float:
        """How often anything at all may be claimed falsely, for each of the three questions."""
        return 1 - self.level

    def planned(self, look: int) -> int | None:
        """The horizon at a look, counted from 1, while it is not over."""
        return self.horizon if self.horizon and look <= self.horizon else None

    def spans(self, first: int, looks: int) -> list[tuple[int, int]]:
        """Looks from `first` on, counted from 0, parted where the planned ones end.

        A look is judged by the plan that held at it, however many are there when it is.

        Examples:
            >>> Settings(horizon=52).spans(8, 60), Settings().spans(8, 60)
            ([(8, 52), (52, 60)], [(8, 60)])
        """
        ends = sorted({min(max(self.horizon or 0, first), looks), looks})
        starts = [first, *ends]
        return [(begin, end) for begin, end in zip(starts, ends) if end > begin]

    def series_of(self, looks: int) -> int:
        """How many null series a line over so many looks is drawn from."""
        return self.series if looks <= MOST_LOOKS else FEWER_SERIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A stream's numbers by column: each period's own gap, and all so far with its sequence.

    `spread` is the error of a period's gap with the noise between periods, if there may be any.
    """

    gaps: FloatArray
    errors: FloatArray
    spread: FloatArray
    value: FloatArray
    error: FloatArray
    ready: NDArray[np.bool_]
    tau: float
    noisy: bool = True

    @property
    def upper(self) -> FloatArray:
        """How large the noise between periods may be, as known before each."""
        return between_upper(self.gaps, self.errors) if self.noisy else np.zeros_like(self.gaps)


def numbers_of(stream: Stream, settings: Settings) -> Numbers:
    """The numbers of a stream at every look."""
    if stream.kind in ("normal", "labelers"):
        return _lens_numbers(stream, settings)
    if stream.paired:
        gained, lost, n = stream.counts
        value, error = paired_gap_so_far(gained, lost, n)
        total = np.cumsum(n)
        # Without a pair that changed, nothing says that none ever would.
        error = np.maximum(error, 1 / (total + 2))
        gaps = (gained - lost) / n
        moved = (np.cumsum(gained + lost) + 1) / (total + 2)
        errors = np.sqrt(np.maximum(moved - value**2, 1 / (total + 2)) / n)
        between = between_variance(gaps, errors)
        enough = np.cumsum(gained + lost) >= FEWEST_EVENTS
        ready = (np.arange(1, n.size + 1) >= BURN_IN) & enough
        none = settings.between == NONE
        return Numbers(
            gaps=gaps,
            errors=errors,
            spread=errors if none else np.sqrt(errors**2 + between),
            value=value,
            error=error,
            ready=ready,
            tau=_tau(stream.band, error, settings),
            noisy=not none,
        )
    return rate_numbers([stream], settings)[0]


def rate_numbers(streams: Sequence[Stream], settings: Settings) -> list[Numbers]:
    """The numbers of rate gaps that have the same periods, many at once."""
    found: list[Numbers] = []
    for start in range(0, len(streams), _AT_HAND):
        part = streams[start : start + _AT_HAND]
        found += _rate_numbers(part, settings)
    return found


def _rate_numbers(streams: Sequence[Stream], settings: Settings) -> list[Numbers]:
    found = gap_so_far(*np.stack([stream.counts for stream in streams], axis=1))
    none = settings.between == NONE
    spread = found.errors if none else found.spread
    return [
        Numbers(
            gaps=found.gaps[i],
            errors=found.errors[i],
            spread=spread[i],
            value=found.value[i],
            error=found.error[i],
            ready=found.ready[i],
            tau=_tau(stream.band, found.error[i], settings),
            noisy=not none,
        )
        for i, stream in enumerate(streams)
    ]


def _lens_numbers(stream: Stream, settings: Settings) -> Numbers:
    """The numbers of what a lens says by period; all periods together end them."""
    gaps, errors = stream.counts[0], stream.counts[1]
    none = settings.between == NONE or stream.kind == "labelers"
    between = np.zeros_like(gaps) if none else between_variance(gaps, errors)
    spread = np.sqrt(errors**2 + between)
    weight = 1 / spread**2
    value = np.cumsum(weight * gaps) / np.cumsum(weight)
    error = 1 / np.sqrt(np.cumsum(weight))
    if stream.whole is not None:
        value = np.append(value[:-1], stream.whole[0])
        error = np.append(error[:-1], max(stream.whole[1], error[-1] if not none else 0.0))
    looks = np.arange(1, gaps.size + 1) + (stream.looks - gaps.size)
    return Numbers(
        gaps=gaps,
        errors=errors,
        spread=spread,
        value=value,
        error=error,
        ready=looks >= BURN_IN,
        tau=_tau(stream.band, error, settings),
        noisy=not none,
    )


def _tau(band: tuple[float, float] | None, error: FloatArray, settings: Settings) -> float:
    """Where the sequence is narrowest: at the limit, else at the planned horizon."""
    if band is not None and band[1] > band[0]:
        return (band[1] - band[0]) / 2
    at = min(BURN_IN, error.size)
    planned = float(error[at - 1]) * (at / (settings.horizon or OPEN_HORIZON)) ** 0.5
    return best_tau(planned, alpha=settings.alpha)
