"""Labelers with a known criterion, separation and prevalence in each group."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.signal import threshold_model


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelerGroup:
    """One group of items as the average labeler treats it: φ, d′ and t."""

    prevalence: float = 0.1
    separation: float = 2.0
    criterion: float = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Standard deviations of criterion and separation between labelers.

    `across` moves a labeler in every group alike, `within` in one group only.
    """

    criterion_across: float = 0.0
    separation_across: float = 0.0
    criterion_within: float = 0.0
    separation_within: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLabels:
    """Rows with labeler, item, group, truth, decision (and seconds); and what was planted.

    `planted` has one row per group, for the average labeler; `labelers` one per labeler and
    group. Both hold criterion, separation, implied threshold and log cost ratio.
    """

    frame: pl.DataFrame
    planted: pl.DataFrame
    labelers: pl.DataFrame


DEFAULT_GROUPS: Mapping[str, LabelerGroup] = {
    "A": LabelerGroup(),
    "B": LabelerGroup(criterion=0.9),
}


def simulate_labelers(
    groups: Mapping[str, LabelerGroup] | None = None,
    *,
    labelers: int = 40,
    items_each: int = 50,
    variation: Variation | None = None,
    shared_items: int | None = None,
    item_share: float = 0.0,
    seconds: bool = False,
    seed: int = 0,
) -> SimulatedLabels:
    """Labels by signal detection: yes where signal exceeds the labeler's criterion.

    Each labeler judges `items_each` items, spread evenly over groups: new ones, or a sample of
    `shared_items` per group that others judge too. `item_share` is the share of the signal's
    noise that belongs to the item and is the same for every labeler.

    Examples:
        >>> found = simulate_labelers(labelers=3, items_each=4)
        >>> found.frame.columns, found.frame.height
        (['labeler', 'item', 'group', 'truth', 'decision'], 12)
        >>> found.planted["cost_ratio"].round(2).to_list()
        [6.03, 10.99]
    """
    chosen = dict(DEFAULT_GROUPS if groups is None else groups)
    _check(chosen, labelers, items_each, shared_items, item_share)
    spread = variation or Variation()
    rng = np.random.default_rng(seed)
    across = rng.standard_normal((labelers, 2)) * [
        spread.criterion_across,
        spread.separation_across,
    ]
    names = [f"L{j:0{len(str(labelers))}d}" for j in range(1, labelers + 1)]
    quota = [len(part) for part in np.array_split(np.arange(items_each), len(chosen))]
    frames, own = [], []
    for (name, group), each in zip(chosen.items(), quota):
        within = rng.standard_normal((labelers, 2)) * [
            spread.criterion_within,
            spread.separation_within,
        ]
        theta = np.array([group.criterion, group.separation]) + across + within
        item = _assign(rng, labelers, each, shared_items)
        frames.append(_labels(rng, name, group, theta, item, names, item_share, seconds))
        own.append(
            _planted(theta, group.prevalence, {"labeler": names, "group": [name] * labelers})
        )
    average = [
        _planted(np.array([[g.criterion, g.separation]]), g.prevalence, {"group": [name]})
        for name, g in chosen.items()
    ]
    return SimulatedLabels(
        frame=pl.concat(frames).sort("labeler", "item"),
        planted=pl.concat(average),
        labelers=pl.concat(own),
    )


def _check(
    groups: Mapping[str, LabelerGroup],
    labelers: int,
    items_each: int,
    shared_items: int | None,
    item_share: float,
) -> None:
    if not groups:
        raise UsageError("groups is empty. Give at least one group, as {'A': LabelerGroup()}.")
    if labelers < 1 or items_each < len(groups):
        raise UsageError(
            f"labelers={labelers}, items_each={items_each} leave a group without labels. "
            "Give at least one labeler and one item for each group."
        )
    most = -(-items_each // len(groups))
    if shared_items is not None and shared_items < most:
        raise UsageError(
            f"shared_items={shared_items} is fewer than the {most} items a labeler judges in a "
            f"group. Give at least {most}."
        )
    if not 0 <= item_share < 1:
        raise UsageError(f"item_share={item_share:g} is not a share. Give 0 or more, below 1.")


def _assign(
    rng: np.random.Generator, labelers: int, each: int, shared: int | None
) -> NDArray[np.intp]:
    """Item numbers judged by each labeler, no item twice by one labeler."""
    if shared is None:
        return np.arange(labelers * each).reshape(labelers, each)
    return np.argsort(rng.random((labelers, shared)), axis=1)[:, :each]


def _labels(
    rng: np.random.Generator,
    name: str,
    group: LabelerGroup,
    theta: FloatArray,
    item: NDArray[np.intp],
    names: list[str],
    item_share: float,
    seconds: bool,
) -> pl.DataFrame:
    count = int(item.max()) + 1
    truth = (rng.random(count) < group.prevalence).astype(np.int64)
    common = rng.standard_normal(count) * np.sqrt(item_share)
    own = rng.standard_normal(item.shape) * np.sqrt(1 - item_share)
    signal = theta[:, 1:] * truth[item] + common[item] + own
    margin = signal - theta[:, :1]
    columns = {
        "labeler": np.repeat(names, item.shape[1]),
        "item": [f"{name}{i:06d}" for i in item.ravel()],
        "group": [name] * item.size,
        "truth": truth[item].ravel(),
        "decision": (margin > 0).astype(np.int64).ravel(),
    }
    if seconds:
        # Slower near the criterion: close calls take longer, as in every diffusion model.
        pace = rng.gamma(4.0, 0.25, size=item.shape)
        columns["seconds"] = (0.3 + pace * 2.0 / (1.0 + np.abs(margin))).ravel()
    return pl.DataFrame(columns)


def _planted(theta: FloatArray, prevalence: float, keys: dict[str, list[str]]) -> pl.DataFrame:
    model = threshold_model(prevalence, separation=theta[:, 1], criterion=theta[:, 0])
    return pl.DataFrame(
        {
            **keys,
            "prevalence": np.full(len(theta), prevalence),
            "criterion": theta[:, 0],
            "separation": theta[:, 1],
            "implied_threshold": model.implied_threshold,
            "log_cost_ratio": model.log_cost_ratio,
            "cost_ratio": np.exp(model.log_cost_ratio),
        }
    )
