"""Implied thresholds against a reference: gaps, ratios and their summary over strata."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.lenses.implied_rows import Frame, family_quantile, log_covariance
from evenhand.lenses.margins import Margin, binned_sums
from evenhand.lenses.rows import Rows, choose, words
from evenhand.stats.contrast import Contrast, contrast
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import benjamini_hochberg, bonferroni
from evenhand.stats.histogram import ScoreHistogram, rule_of_thumb_bandwidth
from evenhand.stats.implied import ImpliedThresholds, implied_thresholds

REST = "<rest>"
SUMMARY = "<summary>"


def comparison_rows(frame: Frame, margin: Margin, reference: str) -> tuple[list[Rows], list[Any]]:
    """Gap and ratio against the reference, and the contrasts themselves for the summary."""
    own = margin.undefined
    if reference == REST:
        others, index = rest_of(margin, frame.level), list(range(len(margin.groups)))
        place = np.array(index)
        other_n, reasons = others.n, list(others.undefined)
    else:
        others, r = margin.found, margin.groups.index(reference)
        index = [g for g in range(len(margin.groups)) if g != r]
        place = np.full(len(index), r)
        other_n, reasons = margin.n, own
    mine = np.array(index, dtype=np.intp)
    undefined = [
        own[g] or (f"reference: {reasons[p]}" if reasons[p] else None) for g, p in zip(index, place)
    ]
    blocks, contrasts = [], []
    for measure in ("implied_threshold_gap", "cost_ratio_ratio"):
        log = measure == "cost_ratio_ratio"
        found, covariance = _contrast(margin, others, mine, place, log, frame.level)
        q = (
            bonferroni(frame.level, members=int(np.isfinite(found.standard_error).sum()))
            if reference == REST
            else family_quantile(covariance, level=frame.level, seed=frame.seed)
        )
        centre = (found.low + found.high) / 2
        ends = {
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "family_low": centre - q * found.standard_error,
            "family_high": centre + q * found.standard_error,
        }
        gone = np.array([reason is not None for reason in undefined])
        ends = {k: np.where(gone, np.nan, np.exp(v) if log else v) for k, v in ends.items()}
        p = np.where(gone, np.nan, found.p)
        blocks.append(
            frame.block(
                (len(index),),
                measure=measure,
                group=words([margin.groups[g] for g in index]),
                reference=reference,
                stratum=margin.stratum,
                n=margin.n[mine],
                n_reference=other_n[place],
                p=p,
                p_adjusted=benjamini_hochberg(p),
                method=f"{margin.found.method}; {margin.rule}",
                undefined=words(undefined),
                **ends,
            )
        )
        contrasts.append(found)
    return blocks, contrasts


def _contrast(
    margin: Margin,
    others: ImpliedThresholds,
    mine: NDArray[np.intp],
    place: NDArray[np.intp],
    log: bool,
    level: float,
) -> tuple[Contrast, FloatArray]:
    """Group − reference on one scale, and the covariance of all these differences."""
    own = margin.found
    if log:
        with np.errstate(all="ignore"):
            sides = np.log(own.cost_ratio[mine]), np.log(others.cost_ratio[place])
        centre = own.log_centre[mine] - others.log_centre[place]
        errors = own.log_error[mine], others.log_error[place]
        whole = log_covariance(own)
    else:
        sides = own.value[mine], others.value[place]
        centre = own.centre[mine] - others.centre[place]
        errors = own.centre_error[mine], others.centre_error[place]
        shared = own.centre_covariance
        whole = np.diag(own.centre_error**2) if shared is None else shared
    if others is own:
        covariance = (
            whole[np.ix_(mine, mine)]
            - whole[np.ix_(mine, place)]
            - whole[np.ix_(place, mine)]
            + whole[np.ix_(place, place)]
        )
        between = whole[mine, place]
    else:
        covariance, between = np.diag(errors[0] ** 2 + errors[1] ** 2), np.zeros(mine.size)
    found = contrast(
        *sides,
        standard_error=errors[0],
        standard_error_reference=errors[1],
        covariance=between,
        centre=centre,
        level=level,
    )
    return found, np.asarray(covariance)


def rest_of(margin: Margin, level: float) -> ImpliedThresholds:
    """Everybody else's implied threshold, for each group, from the histogram."""
    held = margin.histogram

    def others(array: FloatArray) -> FloatArray:
        return np.asarray(array.sum(axis=0, keepdims=True) - array)

    pooled = ScoreHistogram(
        positions=held.positions,
        thresholds=held.thresholds,
        counts=others(held.counts),
        weights=others(held.weights),
        squares=others(held.squares),
    )
    given = margin.rule.startswith("bandwidth given")
    h = margin.found.bandwidth if given else rule_of_thumb_bandwidth(pooled)
    return implied_thresholds(
        binned_sums(pooled, h).moments, threshold=np.nan, bandwidth=h, level=level
    )


def summary_rows(
    frame: Frame, margins: list[Margin], contrasts: list[list[Contrast]], reference: str
) -> list[Rows]:
    """Gap and ratio over strata, each stratum weighed by its precision."""
    blocks = []
    every = reference == REST
    names = [name for name in margins[0].groups if every or name != reference]
    places = [margins[0].groups.index(name) for name in names]
    for k, measure in enumerate(("implied_threshold_gap", "cost_ratio_ratio")):
        centres = np.stack([(c[k].low + c[k].high) / 2 for c in contrasts])
        errors = np.stack([c[k].standard_error for c in contrasts])
        with np.errstate(all="ignore"):
            weight = np.where(np.isfinite(centres) & (errors > 0), 1 / errors**2, 0.0)
            total = weight.sum(axis=0)
            value = (weight * np.nan_to_num(centres)).sum(axis=0) / total
            error = np.where(total > 0, 1 / np.sqrt(total), np.nan)
        found = contrast(value, standard_error=error, level=frame.level)
        q = bonferroni(frame.level, members=int((total > 0).sum()))
        ends = {
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "family_low": value - q * error,
            "family_high": value + q * error,
        }
        log = measure == "cost_ratio_ratio"
        used = weight > 0
        blocks.append(
            frame.block(
                (len(names),),
                measure=measure,
                group=words(names),
                reference=reference,
                stratum=SUMMARY,
                n=(np.stack([m.n[places] for m in margins]) * used).sum(axis=0),
                p=found.p,
                p_adjusted=benjamini_hochberg(found.p),
                method="strata weighed by precision",
                undefined=choose(total == 0, "no stratum has an interval for both"),
                **{name: np.exp(v) if log else v for name, v in ends.items()},
            )
        )
    return blocks
