"""Scores with a known prevalence at the threshold in each group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from scipy.special import expit

from evenhand.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGroup:
    """One group's scores: s ~ Beta(first, second), E[Y|s] = logistic(slope·(s−midpoint) + shift).

    `shift` is the calibration shift on the log-odds scale: above 0, scores understate the truth.
    """

    n: int = 4000
    threshold: float = 0.5
    first: float = 1.2
    second: float = 4.0
    slope: float = 8.0
    midpoint: float = 0.55
    shift: float = 0.0

    @property
    def implied_threshold(self) -> float:
        """Prevalence at the threshold."""
        return float(expit(self.slope * (self.threshold - self.midpoint) + self.shift))

    @property
    def cost_ratio(self) -> float:
        """Cost of one false negative in false positives that the threshold implies."""
        return (1 - self.implied_threshold) / self.implied_threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedScores:
    """Rows with group, score, threshold, truth, decision and weight; and what was planted.

    `planted` has one row per group: implied threshold and cost ratio.
    """

    frame: pl.DataFrame
    planted: pl.DataFrame


DEFAULT_GROUPS: Mapping[str, ScoreGroup] = {"A": ScoreGroup(), "B": ScoreGroup(shift=0.6)}


def simulate_scores(
    groups: Mapping[str, ScoreGroup] | None = None,
    *,
    review: Literal["all", "accepted", "sampled"] = "all",
    seed: int = 0,
) -> SimulatedScores:
    """Scored rows whose implied thresholds are known.

    `review` says whose truth is known: everyone's, only that of accepted rows (null below the
    threshold), or a sample drawn more often at high scores, with `weight` its inverse chance.

    Examples:
        >>> found = simulate_scores({"A": ScoreGroup(n=5), "B": ScoreGroup(n=5, shift=0.5)})
        >>> found.frame.columns
        ['group', 'score', 'threshold', 'truth', 'decision', 'weight']
        >>> found.planted["implied_threshold"].round(3).to_list()
        [0.401, 0.525]
    """
    chosen = DEFAULT_GROUPS if groups is None else groups
    if not chosen:
        raise UsageError("groups is empty. Give at least one group, as {'A': ScoreGroup()}.")
    rng = np.random.default_rng(seed)
    frames = []
    for name, group in chosen.items():
        score = rng.beta(group.first, group.second, group.n)
        chance = expit(group.slope * (score - group.midpoint) + group.shift)
        truth = (rng.random(group.n) < chance).astype(np.int64)
        known, weight = np.ones(group.n, dtype=bool), np.ones(group.n)
        if review == "accepted":
            known = score >= group.threshold
        elif review == "sampled":
            inclusion = 0.2 + 0.8 * score
            known = rng.random(group.n) < inclusion
            weight = 1 / inclusion
        frames.append(
            pl.DataFrame(
                {
                    "group": [name] * group.n,
                    "score": score,
                    "threshold": np.full(group.n, group.threshold),
                    "truth": pl.Series(truth).set(pl.Series(~known), None),
                    "decision": (score >= group.threshold).astype(np.int64),
                    "weight": weight,
                }
            )
        )
    planted = pl.DataFrame(
        {
            "group": list(chosen),
            "n": [g.n for g in chosen.values()],
            "threshold": [g.threshold for g in chosen.values()],
            "implied_threshold": [g.implied_threshold for g in chosen.values()],
            "cost_ratio": [g.cost_ratio for g in chosen.values()],
        }
    )
    return SimulatedScores(frame=pl.concat(frames), planted=planted)
