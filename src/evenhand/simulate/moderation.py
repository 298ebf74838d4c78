"""Moderation decisions with a planted, known difference between groups."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from evenhand.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """How one group's posts are scored and decided.

    Posts violate the rules at `base_rate`. Scores are a logistic of a normal signal that lies
    `separation` higher for violations; a post is removed from `threshold` on.
    """

    share: float = 1.0
    base_rate: float = 0.1
    threshold: float = 0.5
    separation: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moderation:
    """Simulated decisions and the values that were planted, by group."""

    frame: Any
    planted: dict[str, dict[str, float]] = field(default_factory=dict)


EXAMPLE = {
    "female": Group(share=0.45, base_rate=0.12, threshold=0.6),
    "male": Group(share=0.5, base_rate=0.12, threshold=0.4),
    "nonbinary": Group(share=0.05, base_rate=0.12, threshold=0.4),
}
REGIONS = ("east", "north", "south", "west")
_SLOPE = 1.5


def moderation(n: int, *, groups: Mapping[str, Group] | None = None, seed: int = 0) -> Moderation:
    """Posts with gender, region, violates, score and removed, and the true rates of each group.

    Region has nothing to do with anything: an audit should find nothing there.

    Examples:
        >>> posts = moderation(1000, groups={"a": Group(), "b": Group(threshold=0.6)})
        >>> posts.frame.columns
        ['post', 'gender', 'region', 'violates', 'score', 'removed']
        >>> {name: round(p["true_positive_rate"], 3) for name, p in posts.planted.items()}
        {'a': 0.841, 'b': 0.767}
    """
    import polars as pl

    chosen = dict(EXAMPLE if groups is None else groups)
    if n < 1 or not chosen:
        raise UsageError(f"n={n} and {len(chosen)} groups: give at least one of each.")
    names = list(chosen)
    rng = np.random.default_rng(seed)
    share = np.array([group.share for group in chosen.values()])
    which = rng.choice(len(names), size=n, p=share / share.sum())
    base, cut, apart = (
        np.array([getattr(group, name) for group in chosen.values()])[which]
        for name in ("base_rate", "threshold", "separation")
    )
    violates = rng.random(n) < base
    signal = rng.standard_normal(n) + np.where(violates, apart / 2, -apart / 2)
    score = expit(_SLOPE * signal)
    frame = pl.DataFrame(
        {
            "post": np.arange(n),
            "gender": pl.Series(np.array(names, dtype=object)[which].tolist(), dtype=pl.String),
            "region": np.array(REGIONS)[rng.integers(0, len(REGIONS), n)],
            "violates": violates.astype(np.int8),
            "score": score,
            "removed": (score >= cut).astype(np.int8),
        }
    )
    return Moderation(frame=frame, planted={k: true_rates(g) for k, g in chosen.items()})


def true_rates(group: Group) -> dict[str, float]:
    """The rates that a group's posts have in the long run, in closed form."""
    signal = np.log(group.threshold / (1 - group.threshold)) / _SLOPE
    hit = float(ndtr(group.separation / 2 - signal))
    alarm = float(ndtr(-group.separation / 2 - signal))
    selected = group.base_rate * hit + (1 - group.base_rate) * alarm
    return {
        "selection_rate": selected,
        "true_positive_rate": hit,
        "false_positive_rate": alarm,
        "precision": group.base_rate * hit / selected,
        "accuracy": group.base_rate * hit + (1 - group.base_rate) * (1 - alarm),
    }
