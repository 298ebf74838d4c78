"""Rows of the average labeler: a group against its reference, and how many labelers share it.

Rows of groups pool all labels; where labelers differ much in their bar, the average labeler's
difference is larger. It comes from the pooled model, which needs five labelers.
"""

import numpy as np

from evenhand.lenses.labeler_counts import Sample
from evenhand.lenses.labeler_groups import Setting
from evenhand.lenses.rows import Rows, words
from evenhand.stats.estimate import FloatArray
from evenhand.stats.pooled_signal import PooledQuantity, PooledSignal, summarise

AVERAGED: tuple[PooledQuantity, ...] = ("criterion", "separation")
SHARED = "criterion_gap_shared"


def average_rows(
    setting: Setting, sample: Sample, pooled: PooledSignal, *, reference: int
) -> list[Rows]:
    """`criterion_gap_average`, `separation_gap_average` and `criterion_gap_shared` by group.

    The last is the share of labelers whose own difference in criterion has the sign of the
    average labeler's. Groups that nobody could judge are left out.
    """
    totals = sample.totals
    able = (totals[:, :2].sum(axis=1) > 0) & (totals[:, 2:].sum(axis=1) > 0)
    others = [int(g) for g in np.flatnonzero(able) if g != reference]
    if not others or not able[reference]:
        return []
    # Contrasts share the reference and the labelers: Bonferroni holds whatever their joint law.
    family = 1 - (1 - setting.level) / len(others)
    shared = {
        "group": words([sample.groups[g] for g in others]),
        "reference": sample.groups[reference],
        "method": f"{pooled.method}; of the average labeler",
    }
    labels = {"n": sample.labels[others], "n_reference": sample.labels[reference]}
    parts = []
    for quantity in AVERAGED:
        draws = pooled.population_draws(quantity)
        ends = _ends(draws[:, others] - draws[:, [reference]], setting.level, family)
        measure = f"{quantity}_gap_average"
        parts.append(setting.block((len(others),), measure=measure, **ends, **labels, **shared))
    judged = sample.counts.sum(axis=2) > 0
    both = np.array([(judged[:, g] & judged[:, reference]).sum() for g in others], dtype=float)
    lean = np.stack(
        [pooled.leaning("criterion", group=g, reference=reference) for g in others], axis=1
    )
    # The mean of a share near 1 can lie outside its own limits; the median cannot.
    ends = _ends(lean, setting.level, family) | {"value": np.median(lean, axis=0)}
    told = shared | {"method": f"{pooled.method}; share of labelers; n is labelers"}
    parts.append(setting.block((len(others),), measure=SHARED, n=both, **ends, **told))
    return parts


def _ends(draws: FloatArray, level: float, family: float) -> dict[str, FloatArray]:
    found, wide = summarise(draws, level=level), summarise(draws, level=family)
    return {
        "value": found.mean,
        "low": found.low,
        "high": found.high,
        "family_low": wide.low,
        "family_high": wide.high,
    }
