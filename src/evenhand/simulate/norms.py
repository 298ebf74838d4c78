"""Scores that reward a norm to a known degree: every r_c in closed form.

A latent a ~ N(0, 1) enters the log-odds of a row's own class as κ_c·a + noise, with κ_c =
k(p_c - ½) + τξ_c: the larger the group's share of a class, the more its norm is rewarded. The norm
is a itself, moved up for women and down for men, which changes no correlation within a group.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy.special import expit

from evenhand.errors import UsageError
from evenhand.simulate.biography_words import FEMALE_SHARE
from evenhand.stats.estimate import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNorms:
    """Rows with title, gender, score:truth, norm@female and norm@male; and what was planted.

    `planted` has one row per class: share (of women), kappa, and correlation, the population's r_c
    of women with the female norm. That of men with the male norm is its negative.
    """

    frame: pl.DataFrame
    planted: pl.DataFrame


def planted_correlation(kappa: ArrayLike) -> FloatArray:
    """Population Spearman correlation of a and κa + ε for independent standard normal a and ε.

    Examples:
        >>> planted_correlation([0.0, 0.5, 1.0]).round(4).tolist()
        [0.0, 0.4307, 0.6902]
    """
    slope = np.asarray(kappa, dtype=np.float64)
    return np.asarray(6 / np.pi * np.arcsin(slope / (2 * np.sqrt(slope * slope + 1))))


def simulate_norms(
    rows: int = 1_000,
    *,
    shares: Mapping[str, float] | None = None,
    strength: float = 1.0,
    scatter: float = 0.0,
    apart: float = 1.0,
    seed: int = 0,
) -> SimulatedNorms:
    """Scored rows of every class, women and men by the class's share, with a planted norm bias.

    `rows` is the number in each class; `shares` the share of women by class (default the 28
    occupations of the public corpus). `strength` k and `scatter` τ make κ_c; with τ = 0 and k > 0
    the norm bias ρ is exactly 1, with both 0 every r_c is 0 and ρ has no value. Women's norms lie
    `apart` standard deviations above men's: with 0 they tell nothing of who is a woman.

    Examples:
        >>> made = simulate_norms(50, shares={"nurse": 0.9, "surgeon": 0.15}, strength=2.0)
        >>> made.frame.columns
        ['title', 'gender', 'score:truth', 'norm@female', 'norm@male']
        >>> made.planted["correlation"].round(3).to_list()
        [0.607, -0.555]
    """
    chosen = dict(FEMALE_SHARE if shares is None else shares)
    if rows < 1 or not chosen:
        raise UsageError(f"rows={rows} in {len(chosen)} classes: give one or more of each.")
    for title, share in chosen.items():
        if not 0 <= share <= 1:
            raise UsageError(f"{title!r} has the share {share}. A share lies between 0 and 1.")
    rng = np.random.default_rng(seed)
    p = np.array(list(chosen.values()), dtype=np.float64)
    kappa = strength * (p - 0.5) + scatter * rng.standard_normal(p.size)
    place = np.repeat(np.arange(p.size), rows)
    female = rng.random(place.size) < p[place]
    norm = rng.standard_normal(place.size)
    logit = kappa[place] * norm + rng.standard_normal(place.size)
    titles = np.array(list(chosen))
    typical = norm + np.where(female, apart / 2, -apart / 2)
    frame = pl.DataFrame(
        {
            "title": titles[place],
            "gender": np.where(female, "female", "male"),
            "score:truth": expit(logit),
            "norm@female": expit(typical),
            "norm@male": expit(-typical),
        }
    )
    planted = pl.DataFrame(
        {
            "class": titles,
            "share": p,
            "kappa": kappa,
            "correlation": planted_correlation(kappa),
        }
    )
    return SimulatedNorms(frame=frame, planted=planted)
