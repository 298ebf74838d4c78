"""Result rows of implied thresholds: per group, against a reference, corrected, and as sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.lenses.margins import Margin
from evenhand.lenses.rows import Rows, choose, words
from evenhand.stats.costs import cost_ratio
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import (
    bonferroni,
    correlation,
    group_normals,
    max_t_quantile,
)
from evenhand.stats.implied import (
    ImpliedThresholds,
    discrete_margins,
    family_limits,
)
from evenhand.stats.misclassified import corrected_prevalence
from evenhand.stats.rates import wilson

DRAWS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What the rows of one attribute share."""

    attribute: str
    positive: str
    rule: str | None
    level: float
    seed: int

    def block(self, shape: tuple[int, ...], **columns: Any) -> Rows:
        """Rows of the thresholds lens with the columns that all share."""
        shared = {"class": self.positive, "attribute": self.attribute}
        return Rows.block(
            shape, lens="thresholds", rule=self.rule, level=self.level, **shared, **columns
        )


def family_quantile(covariance: FloatArray, *, level: float, seed: int) -> float:
    """Critical value over all estimates with this covariance, by normal draws."""
    spread = np.diagonal(covariance)
    kept = np.flatnonzero(np.isfinite(spread) & (spread > 0))
    if kept.size < 2:
        return critical(level)
    joint = correlation(covariance[np.ix_(kept, kept)])
    return max_t_quantile(group_normals(joint[None], draws=DRAWS, seed=seed)[:, 0], level=level)


def log_covariance(found: ImpliedThresholds) -> FloatArray:
    """Covariance over groups of the log cost ratios; groups without shared clusters have none."""
    if found.centre_covariance is None:
        return np.diag(found.log_error**2)
    per = found.centre * (1.0 - found.centre)
    return np.asarray(found.centre_covariance / np.outer(per, per))


def method_of(margin: Margin) -> NDArray[Any]:
    """How each group's number came about, its bandwidth included."""
    told = []
    for g in range(len(margin.groups)):
        if g in margin.discrete:
            told.append("set-identified: Wilson at the scores beside the threshold")
            continue
        few = margin.n[g] < margin.found.n[g]
        raw = margin.found.raw[g]
        outside = f"; raw estimate {raw:.4f}" if np.isfinite(raw) and not 0 < raw < 1 else ""
        told.append(
            f"{margin.found.method}; h={margin.found.bandwidth[g]:.4g}, {margin.rule}"
            + outside
            + ("; n is effective rows" if few else "")
        )
    return words(told)


def group_rows(frame: Frame, margin: Margin) -> list[Rows]:
    """Implied threshold and cost ratio of every group, as a point or as a set."""
    found, size = margin.found, len(margin.groups)
    q = family_quantile(log_covariance(found), level=frame.level, seed=frame.seed)
    family_low, family_high = family_limits(found, quantile=q)
    columns = {
        "value": found.value.copy(),
        "low": found.low.copy(),
        "high": found.high.copy(),
        "family_low": np.where(np.isnan(found.low), np.nan, family_low),
        "family_high": np.where(np.isnan(found.low), np.nan, family_high),
        "n": margin.n,
    }
    q_set = bonferroni(frame.level, members=2 * size)
    for g, part in margin.discrete.items():
        columns["n"][g] = min(part.accepted_n[0], part.refused_n[0])
        columns["value"][g] = np.nan
        empty = columns["n"][g] == 0
        straight = part.refused[0] <= part.accepted[0]
        wide = discrete_margins(margin.values[g], level=_level_of(q_set))
        columns["low"][g] = part.refused[0] if straight else np.nan
        columns["high"][g] = part.accepted[0] if straight else np.nan
        outer = wide.refused_low[0], wide.accepted_high[0]
        columns["family_low"][g] = np.nan if empty else min(outer)
        columns["family_high"][g] = np.nan if empty else max(outer)
    shared = {
        "group": words(margin.groups),
        "stratum": margin.stratum,
        "method": method_of(margin),
        "undefined": words(margin.undefined),
        "n": columns.pop("n"),
    }
    turned = {
        "value": cost_ratio(columns["value"]),
        "low": cost_ratio(columns["high"]),
        "high": cost_ratio(columns["low"]),
        "family_low": cost_ratio(columns["family_high"]),
        "family_high": cost_ratio(columns["family_low"]),
    }
    rows = [frame.block((size,), measure="cost_ratio", **turned, **shared)]
    rows.append(frame.block((size,), measure="implied_threshold", **columns, **shared))
    return rows + _side_rows(frame, margin) + [window_rows(frame, margin)]


def _level_of(quantile: float) -> float:
    from scipy.special import ndtr

    return float(2 * ndtr(quantile) - 1)


def _side_rows(frame: Frame, margin: Margin) -> list[Rows]:
    """Prevalence at the lowest accepted and the highest refused score of discrete groups."""
    blocks = []
    places = sorted(margin.discrete)
    if not places:
        return []
    q = bonferroni(frame.level, members=len(places))
    for side in ("accepted", "refused"):
        parts = [margin.discrete[g] for g in places]
        wide = [discrete_margins(margin.values[g], level=_level_of(q)) for g in places]

        def of(held: list[Any], name: str, side: str = side) -> FloatArray:
            return np.array([getattr(part, f"{side}{name}")[0] for part in held])

        n = of(parts, "_n")
        end = "lowest" if side == "accepted" else "highest"
        blocks.append(
            frame.block(
                (len(places),),
                measure=f"prevalence_{end}_{side}",
                group=words([margin.groups[g] for g in places]),
                stratum=margin.stratum,
                value=of(parts, ""),
                low=of(parts, "_low"),
                high=of(parts, "_high"),
                family_low=of(wide, "_low"),
                family_high=of(wide, "_high"),
                n=n,
                method="wilson",
                undefined=choose(n == 0, f"no {side} score in the group"),
            )
        )
    return blocks


def window_rows(frame: Frame, margin: Margin) -> Rows:
    """Share of positive truths inside the bandwidth: biased where the density of scores slopes."""
    total, yes, squares = margin.window.T
    with np.errstate(all="ignore"):
        share = yes / total
        effective = np.where(total > 0, total**2 / squares, 0.0)
    q = bonferroni(frame.level, members=int((total > 0).sum()))
    low, high = wilson(share * effective, effective, z=critical(frame.level))
    family_low, family_high = wilson(share * effective, effective, z=q)
    reasons = [
        reason if reason and (not total[g] or g in margin.discrete) else None
        for g, reason in enumerate(margin.undefined)
    ]
    return frame.block(
        (len(margin.groups),),
        measure="implied_threshold_window",
        group=words(margin.groups),
        stratum=margin.stratum,
        value=share,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=margin.n,
        method="window mean, wilson; biased where the density of scores slopes",
        undefined=words(reasons),
    )


def corrected_rows(
    frame: Frame,
    margin: Margin,
    *,
    sensitivity: Mapping[str, float],
    specificity: Mapping[str, float],
) -> Rows | None:
    """Implied thresholds against the truth behind a truth of known sensitivity and specificity.

    The correction is monotone, so the limits are those of the raw value, corrected.
    """
    places = [
        g for g, name in enumerate(margin.groups) if name in sensitivity and name in specificity
    ]
    if not places:
        return None
    rates: dict[str, Any] = {
        "sensitivity": [sensitivity[margin.groups[g]] for g in places],
        "specificity": [specificity[margin.groups[g]] for g in places],
    }
    found = margin.found
    q = family_quantile(log_covariance(found), level=frame.level, seed=frame.seed)
    family = family_limits(found, quantile=q)
    fixed = corrected_prevalence(found.value[places], **rates)
    outside = fixed.clipped | (fixed.unclipped == 0) | (fixed.unclipped == 1)
    reasons, known = [], margin.undefined
    for i, g in enumerate(places):
        reason = known[g]
        if reason is None and outside[i]:
            reason = f"the corrected estimate {fixed.unclipped[i]:.3f} lies outside (0, 1)"
        reasons.append(reason)
    gone = np.array([reason is not None for reason in reasons])
    limits = {"low": found.low, "high": found.high}
    limits |= {"family_low": family[0], "family_high": family[1]}
    columns = {"value": fixed.value} | {
        name: corrected_prevalence(limit[places], **rates).value for name, limit in limits.items()
    }
    return frame.block(
        (len(places),),
        measure="implied_threshold_corrected",
        group=words([margin.groups[g] for g in places]),
        stratum=margin.stratum,
        n=margin.n[places],
        method=words(
            [
                f"Rogan–Gladen, sensitivity {a:g}, specificity {b:g}; raw {raw:.4f}"
                for a, b, raw in zip(rates["sensitivity"], rates["specificity"], found.raw[places])
            ]
        ),
        undefined=words(reasons),
        **{name: np.where(gone, np.nan, column) for name, column in columns.items()},
    )
