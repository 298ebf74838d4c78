"""Norm bias of a remedy over all its runs, with interval and p; small groups, with power.

Runs differ in the rows they are trained on and share the rows they are judged on, so the classes
bring most of the uncertainty: ρ's interval is that of the mean over runs, wider by what the runs
differ by.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.lenses.scope import HIDDEN_UNDER
from evenhand.remedies.ledger.measures import Outcome
from evenhand.stats.estimate import Estimate, FloatArray, critical, number
from evenhand.stats.ranks import (
    FEWEST_ROWS,
    average_ranks,
    bonett_wright,
    correlation_p,
    permutation_p,
    smallest_detectable,
    smallest_significant,
    spearman,
)
from evenhand.stats.trend import FEWEST_CLASSES, kept_classes, too_few

if TYPE_CHECKING:
    from evenhand.remedies.ledger.texts import LedgerTexts

Estimates = Mapping[tuple[str, str], Estimate]


def norm_estimates(texts: "LedgerTexts", runs: Sequence[Outcome], *, level: float) -> Estimates:
    """ρ by measure and group over the runs of one remedy, for each scorer of the ledger."""
    found: dict[tuple[str, str], Estimate] = {}
    for end, norms in (
        ("", texts.norms.first),
        ("_irrelevant", texts.norms.irrelevant),
        ("_second", texts.norms.second),
    ):
        for group, norm in norms.items():
            shares, r, _ = class_correlations(texts, runs, group=group, norm=norm)
            found[f"norm_bias{end}", group] = mean_rank_trend(shares, r, level=level)
    return found


def class_correlations(
    texts: "LedgerTexts", runs: Sequence[Outcome], *, group: str, norm: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share of a group in every class, runs × classes its correlations, and rows behind them."""
    rows = texts.rows
    truth, code = rows.truth[rows.test], rows.group[rows.test]
    own = code == rows.groups.index(group)
    counts = np.bincount(truth[truth >= 0], minlength=len(rows.classes))
    cell = np.bincount(truth[own & (truth >= 0)], minlength=len(rows.classes))
    shares = np.full(counts.size, np.nan)
    np.divide(cell, counts, out=shares, where=counts > 0)
    r, n = np.full((len(runs), counts.size), np.nan), np.zeros(counts.size)
    for c in range(counts.size):
        at = np.flatnonzero(own & (truth == c) & np.isfinite(norm))
        n[c] = at.size
        if at.size >= FEWEST_ROWS:
            r[:, c] = [float(spearman(run.own[at], norm[at])) for run in runs]
    return shares, r, n


def mean_rank_trend(shares: FloatArray, r: FloatArray, *, level: float = 0.95) -> Estimate:
    """Mean over runs of Spearman's ρ of r_c with p_c; of one run the estimate of the norms lens.

    The variance on Fisher's scale is Bonett and Wright's, (1 + ρ²/2) ÷ (classes − 3), plus what
    the mean over runs varies by; p comes from permuting the classes of the mean ranks.

    Examples:
        >>> shares = np.array([0.1, 0.25, 0.45, 0.7, 0.9])
        >>> print(mean_rank_trend(shares, np.array([[-0.3, -0.05, -0.1, 0.05, 0.2]])))
        0.900 [-0.169, 0.996] n=5
    """
    kept = kept_classes(shares, *r) if len(r) else np.zeros(shares.size, dtype=bool)
    p, known = shares[kept], r[:, kept]
    if p.size < FEWEST_CLASSES:
        return too_few(int(p.size), level=level)
    rho = spearman(np.broadcast_to(p, known.shape), known)
    if not np.isfinite(rho).all():
        reason = "the shares or the correlations are the same in every class"
        return Estimate.none(reason, level=level, n=int(p.size))
    mean, z = float(rho.mean()), critical(level)
    low, high = (float(end) for end in bonett_wright(mean, p.size, z=z))
    if len(rho) > 1 and abs(mean) < 1:
        # On Fisher's scale by its slope at the mean: a run with ρ = 1 lies infinitely far out.
        runs = float(rho.var(ddof=1)) / len(rho) / (1 - mean**2) ** 2
        variance = (1 + mean**2 / 2) / (p.size - 3) + runs
        low, high = (
            float(np.tanh(np.arctanh(mean) + side * z * variance**0.5)) for side in (-1, 1)
        )
    return Estimate(
        value=mean,
        low=low,
        high=high,
        level=level,
        n=int(p.size),
        p=permutation_p(p, average_ranks(known).mean(axis=0)),
        method="mean over runs of Spearman over classes, Bonett-Wright interval, permutation p",
    )


def small_group_rows(
    texts: "LedgerTexts", runs: Mapping[str, Sequence[Outcome]], *, level: float
) -> list[dict[str, Any]]:
    """Groups without a norm of their own, class by class, with everybody else's norms.

    A scorer learned from twenty people says nothing, so their scores are correlated with the
    norms of the larger groups (the first paper's Table 3). Where each group has a model of its own,
    `model` says whose scores they are. `significant` is the least |r| that could be told from 0
    with so few rows, `detectable` one found four times in five.
    """
    small = [name for name in texts.rows.groups if name not in texts.norms.first]
    out: list[dict[str, Any]] = []
    for group in small:
        for remedy, outcomes in runs.items():
            models: dict[str | None, list[Outcome]] = {None: list(outcomes)}
            for name in outcomes[0].under if outcomes else ():
                models[name] = [replace(run, own=run.under[name]) for run in outcomes]
            for model, scored in models.items():
                place = {"remedy": remedy, "model": model}
                for norm, column in texts.norms.first.items():
                    made = _small_classes(texts, scored, (group, norm), column, level)
                    out += [place | each for each in made]
    return out


def _small_classes(
    texts: "LedgerTexts",
    runs: Sequence[Outcome],
    whose: tuple[str, str],
    norm: FloatArray,
    level: float,
) -> Iterator[dict[str, Any]]:
    group, named = whose
    _, r, n = class_correlations(texts, runs, group=group, norm=norm)
    for c in np.flatnonzero(n >= HIDDEN_UNDER):
        known = r[:, c][np.isfinite(r[:, c])]
        if not known.size:
            continue
        mean, rows = float(known.mean()), int(n[c])
        low, high = bonett_wright(mean, rows, z=critical(level))
        yield {
            "class": texts.rows.classes[c],
            "group": group,
            "norm": named,
            "value": mean,
            "low": number(float(low)),
            "high": number(float(high)),
            "n": rows,
            "p": number(float(correlation_p(mean, rows))),
            "significant": float(smallest_significant(rows, level=level)),
            "detectable": float(smallest_detectable(rows, level=level)),
        }
