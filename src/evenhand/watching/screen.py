"""Many streams at once: numbers and evidence of all, and a closer look only where one is near.

Twenty groups and twenty-eight classes make more than a thousand comparisons. Almost none of them
comes near an alarm at any look, and that is seen for all of them together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.sequential import (
    BURN_IN,
    MOST_ONSETS,
    log_evidence,
    most_evidence_outside,
)
from evenhand.watching.numbers import Numbers, Settings, rate_numbers
from evenhand.watching.streams import Stream
from evenhand.watching.verdicts import (
    CHANGE,
    LIMIT,
    SLACK,
    Judged,
    LineBook,
    drawn_share,
    judge_stream,
    least_line,
    spent,
)

# Fewer streams with the same periods are looked at one by one: that is quicker.
FEWEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask:
    """A stream to judge: detectors look at columns from `start` on, at looks from `since` on."""

    stream: Stream
    start: int
    since: int
    detectors: tuple[str, ...]


def judge_all(tasks: Sequence[StreamTask], settings: Settings, book: LineBook) -> list[Judged]:
    """Every stream judged, in order; streams of rates with the same periods are screened first."""
    batches: dict[tuple[object, ...], list[int]] = {}
    for i, task in enumerate(tasks):
        if task.stream.kind == "rates":
            key = (id(task.stream.places), task.start, task.since)
            batches.setdefault(key, []).append(i)
    numbers: dict[int, Numbers] = {}
    near: dict[int, tuple[str, ...]] = {}
    for members in batches.values():
        held = rate_numbers([tasks[i].stream for i in members], settings)
        numbers |= dict(zip(members, held))
        if len(members) < FEWEST:
            continue
        found = near_alarm([tasks[i] for i in members], held, len(tasks), settings)
        for detector, flags in found.items():
            for i, flag in zip(members, flags):
                near[i] = (*near.get(i, ()), *([detector] if flag else []))
    return [
        judge_stream(
            task.stream,
            members=len(tasks),
            settings=settings,
            start=task.start,
            since=task.since,
            detectors=[d for d in task.detectors if d in near.get(i, (CHANGE, LIMIT))],
            lines=book,
            numbers=numbers.get(i),
        )
        for i, task in enumerate(tasks)
    ]


def near_alarm(
    tasks: Sequence[StreamTask], numbers: Sequence[Numbers], members: int, settings: Settings
) -> dict[str, NDArray[np.bool_]]:
    """Which streams come near an alarm of each detector at any look that is new."""
    start, since = tasks[0].start, tasks[0].since
    gaps = np.stack([each.gaps for each in numbers])[:, start:]
    information = np.stack([each.spread for each in numbers])[:, start:] ** -2.0
    tau = np.array([each.tau for each in numbers])
    bands = np.array([task.stream.band or (np.nan, np.nan) for task in tasks])
    zero = np.zeros((len(tasks), 1))
    weighted = np.concatenate([zero, np.cumsum(information * gaps, axis=1)], axis=1)
    total = np.concatenate([zero, np.cumsum(information, axis=1)], axis=1)
    looks = gaps.shape[1]
    alpha = settings.alpha / members
    near = {name: np.zeros(len(tasks), dtype=bool) for name in (CHANGE, LIMIT)}
    with np.errstate(all="ignore"):
        for look in range(max(since - start, BURN_IN), looks):
            horizon = settings.planned(look + 1)
            drawn = drawn_share(alpha, settings.series_of(look + 1))
            share = np.full(tau.size, spent(look + 1, drawn, horizon))
            size, error = _since(weighted, total, look, first=BURN_IN, before=True)
            evidence = _summed(log_evidence(size, error, tau=tau[:, None]))
            least = least_line(error, tau, share) + np.log(drawn / alpha)
            near[CHANGE] |= evidence > least - SLACK
            size, error = _since(weighted, total, look, first=0, before=False)
            low, high = bands[:, :1], bands[:, 1:]
            single = most_evidence_outside(size, error, low=low, high=high, tau=tau[:, None])
            if not horizon:
                place = np.arange(look + 2 - single.shape[1], look + 2)
                single = single + np.log(52.0) - np.log(place + 51.0) - np.log(place + 52.0)
            near[LIMIT] |= _summed(single) > np.log((horizon or 1) / alpha) - SLACK
    return near


def _since(
    weighted: FloatArray, total: FloatArray, look: int, *, first: int, before: bool
) -> tuple[FloatArray, FloatArray]:
    """The mean since every onset as seen at a look, less that before it; and its error."""
    onsets = slice(max(first, look - MOST_ONSETS + 1), look + 1)
    mass = total[:, [look + 1]] - total[:, onsets]
    size = (weighted[:, [look + 1]] - weighted[:, onsets]) / mass
    variance = 1 / mass
    if before:
        size = size - weighted[:, onsets] / total[:, onsets]
        variance = variance + 1 / total[:, onsets]
    return size, np.sqrt(variance)


def _summed(evidence: FloatArray) -> FloatArray:
    """The logarithm of the evidence over all onsets."""
    top = evidence.max(axis=1)
    return np.asarray(top + np.log(np.exp(evidence - top[:, None]).sum(axis=1)))
