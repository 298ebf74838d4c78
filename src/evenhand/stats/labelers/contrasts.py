"""Contrasts of signal detection: between groups, labelers and their clusters of labels.

Tables of counts have shape (labelers, groups, 4): hits, misses, false alarms, correct rejections.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from evenhand.errors import DataError
from evenhand.stats.estimate import (
    Contrast,
    FloatArray,
    contrast,
    satterthwaite,
    student_critical,
)
from evenhand.stats.labelers.parts import PartValues, part_values
from evenhand.stats.labelers.signal import (
    Correction,
    corrected_rates,
    normal_density,
    signal_detection,
)
from evenhand.stats.strata import JackknifeSummary, jackknife_summary

Quantity = Literal["criterion", "separation", "log_cost_ratio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jackknife:
    """Contrasts between two groups judged by the same labelers, by leaving each labeler out.

    `behaviour`, what the log cost ratios differ by beside prevalence, is `bar` + `skill`.
    `influence` holds, for each labeler, how far the contrast in log cost ratio moves when that
    labeler is left out (times labelers − 1).
    """

    criterion: Contrast
    separation: Contrast
    log_cost_ratio: Contrast
    behaviour: Contrast
    bar: Contrast
    skill: Contrast
    influence: FloatArray
    labelers: int
    method: str


def jackknife_contrast(
    counts: ArrayLike,
    *,
    group: int = 0,
    reference: int = 1,
    prevalence: ArrayLike | None = None,
    prevalence_error: ArrayLike | None = None,
    items: ArrayLike | None = None,
    correction: Correction = "auto",
    level: float = 0.95,
) -> Jackknife:
    """Criterion, separation and log cost ratio, group − reference, by jackknife over labelers.

    The prevalences stay fixed while labelers are left out; their own error, which comes from
    items, is added. Intervals use t with labelers − 1 degrees of freedom.

    Examples:
        >>> table = np.random.default_rng(0).integers(15, 30, size=(12, 2, 4))
        >>> found = jackknife_contrast(table)
        >>> found.labelers, bool(found.log_cost_ratio.standard_error > 0)
        (12, True)
    """
    table = _table(counts)[:, [group, reference]]
    table = table[table.sum(axis=(1, 2)) > 0]
    labelers = len(table)
    whole = table.sum(axis=0)

    def pick(value: ArrayLike | None) -> FloatArray | None:
        if value is None:
            return None
        array = np.asarray(value, dtype=float)
        return array if array.ndim == 0 else array[[group, reference]]

    parts = whole - table
    used: Correction = correction
    if correction == "auto":
        # One correction for all: a zero cell in one leave-one-out sample must not set it apart.
        everything = np.moveaxis(np.concatenate([parts, whole[None]]), -1, 0)
        needed = corrected_rates(*everything).method != "no correction"
        used = "log-linear" if needed else "none"
    left = corrected_rates(*np.moveaxis(parts, -1, 0), correction=used)
    behaviour = (left.z_hit**2 - left.z_false_alarm**2) / 2
    full = signal_detection(
        *whole.T,
        prevalence=pick(prevalence),
        prevalence_error=pick(prevalence_error),
        items=pick(items),
        correction=used,
        level=level,
    )
    extra = float((full.prevalence_part_error**2).sum())

    def judged(values: FloatArray, whole_value: FloatArray, more: float = 0.0) -> Contrast:
        return between(values[:, 0] - values[:, 1], whole_value[0] - whole_value[1], more)

    def between(each: FloatArray, value: FloatArray, more: float = 0.0) -> Contrast:
        spread = (labelers - 1) / labelers * ((each - each.mean()) ** 2).sum() if labelers else 0.0
        return contrast(
            value, standard_error=np.sqrt(spread + more), freedom=labelers - 1, level=level
        )

    def shared(z_hit: FloatArray, z_alarm: FloatArray) -> PartValues:
        return part_values(
            log_odds_against=0.0,
            log_odds_against_reference=0.0,
            criterion=-z_alarm[..., 0],
            criterion_reference=-z_alarm[..., 1],
            separation=(z_hit - z_alarm)[..., 0],
            separation_reference=(z_hit - z_alarm)[..., 1],
        )

    each, parts_whole = (shared(one.z_hit, one.z_false_alarm) for one in (left, full))
    moved = (full.behaviour[0] - full.behaviour[1]) - (behaviour[:, 0] - behaviour[:, 1])
    return Jackknife(
        criterion=judged(-left.z_false_alarm, full.criterion),
        separation=judged(left.z_hit - left.z_false_alarm, full.separation),
        log_cost_ratio=judged(behaviour, full.log_cost_ratio, extra),
        behaviour=judged(behaviour, full.behaviour),
        bar=between(each.bar, parts_whole.bar),
        skill=between(each.skill, parts_whole.skill),
        influence=(labelers - 1) * moved,
        labelers=labelers,
        method=f"jackknife over {labelers} labelers, {left.method}",
    )


def jackknife_over_strata(
    counts: ArrayLike,
    *,
    weights: ArrayLike,
    prevalence_part: ArrayLike = 0.0,
    prevalence_error: ArrayLike = 0.0,
    item_variance: ArrayLike = 0.0,
    z: float,
) -> dict[Quantity, JackknifeSummary]:
    """Group − reference summed over strata, by leaving each labeler out of all of them at once.

    `counts` are (labelers, strata, 2, 4), group before reference; `weights` (strata,) stay fixed
    while labelers are left out. A labeler who judges in several strata moves them all alike:
    taken for independent, strata cover as little as 76 %. For the log cost ratio,
    `prevalence_part` is Δlogit(1−φ) of each stratum and `prevalence_error` its standard error.
    `item_variance` (strata, 4) is what items that several labelers judge add to the variance of
    z_F and z_H, of the group and then of the reference.

    Examples:
        >>> table = np.random.default_rng(0).integers(15, 30, size=(12, 3, 2, 4))
        >>> found = jackknife_over_strata(table, weights=[1, 1, 2], z=1.96)
        >>> bool(found["criterion"].standard_error > 0), float(found["criterion"].freedom.round())
        (True, 11.0)
    """
    table = np.asarray(counts, dtype=float)
    if table.ndim != 4 or table.shape[2:] != (2, 4):
        raise DataError(
            f"counts have shape {table.shape}. Give (labelers, strata, 2, 4): group and reference; "
            "hits, misses, false alarms, correct rejections."
        )
    table = table[table.sum(axis=(1, 2, 3)) > 0]
    whole = table.sum(axis=0)
    every = np.concatenate([whole[None], whole - table])
    # One correction for all: a zero cell in one leave-one-out sample must not set it apart.
    needed = corrected_rates(*np.moveaxis(every, -1, 0)).method != "no correction"
    kind: Correction = "log-linear" if needed else "none"
    rates = corrected_rates(*np.moveaxis(every, -1, 0), correction=kind)
    z_hit, z_alarm = rates.z_hit, rates.z_false_alarm
    part = np.broadcast_to(np.asarray(prevalence_part, dtype=float), whole.shape[:1])
    share = np.broadcast_to(np.asarray(weights, dtype=float), whole.shape[:1])
    values: dict[Quantity, FloatArray] = {
        "criterion": -z_alarm,
        "separation": z_hit - z_alarm,
        "log_cost_ratio": (z_hit**2 - z_alarm**2) / 2,
    }
    # What z_F and z_H, in turn, move each quantity by.
    slopes: dict[Quantity, tuple[FloatArray | float, FloatArray | float]] = {
        "criterion": (-1.0, 0.0),
        "separation": (-1.0, 1.0),
        "log_cost_ratio": (-z_alarm[0], z_hit[0]),
    }
    items = np.broadcast_to(np.asarray(item_variance, dtype=float), (len(whole), 4))
    sizes = table.sum(axis=(1, 2, 3))
    found: dict[Quantity, JackknifeSummary] = {}
    for name, value in values.items():
        gap = value[..., 0] - value[..., 1]
        if name == "log_cost_ratio":
            gap = gap + part
        # A stratum that only this labeler filled is gone without them; the others keep theirs.
        used = np.isfinite(gap) & (share > 0)
        with np.errstate(all="ignore"):
            mass = np.where(used, share, 0.0)
            total = (mass * np.where(used, gap, 0.0)).sum(axis=1) / mass.sum(axis=1)
        summary = jackknife_summary(total[0], total[1:], sizes=sizes, z=z)
        by_alarm, by_hit = slopes[name]
        extra = (by_alarm**2 * items[:, 0::2] + by_hit**2 * items[:, 1::2]).sum(axis=1)
        if name == "log_cost_ratio":
            extra = extra + np.asarray(prevalence_error, dtype=float) ** 2
        if np.any(extra[used[0]] > 0):
            errors = np.sqrt(np.where(used[0], extra, 0.0))
            summary = _with_more_error(summary, mass[0] / mass[0].sum() * errors, z=z)
        found[name] = summary
    return found


def _with_more_error(
    summary: JackknifeSummary, errors: FloatArray, *, z: float
) -> JackknifeSummary:
    """The summary with independent errors added, and the freedom that the sum has."""
    extra = float(np.sqrt((errors**2).sum()))
    error = np.hypot(summary.standard_error, extra)
    freedom = satterthwaite(
        summary.standard_error, extra, freedom=summary.freedom, freedom_reference=np.inf
    )
    half = student_critical(z, freedom=freedom) * error
    return replace(
        summary,
        standard_error=error,
        freedom=freedom,
        low=summary.value - half,
        high=summary.value + half,
    )


def _table(counts: ArrayLike) -> FloatArray:
    table = np.asarray(counts, dtype=float)
    if table.ndim != 3 or table.shape[2] != 4:
        raise DataError(
            f"counts have shape {table.shape}. Give (labelers, groups, 4): hits, misses, "
            "false alarms, correct rejections."
        )
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstRest:
    """Each labeler − all others on the same group; arrays of shape (labelers, groups)."""

    criterion: Contrast
    separation: Contrast
    behaviour: Contrast


def against_rest(
    counts: ArrayLike, *, correction: Correction = "auto", level: float = 0.95
) -> AgainstRest:
    """Each labeler's criterion, separation and log cost ratio minus those of the rest.

    Labelers of one group share its prevalence, so their log cost ratios differ by behaviour only.

    Examples:
        >>> table = np.tile([30.0, 10, 8, 60], (6, 1, 1))
        >>> table[0, 0] = [20, 20, 2, 66]
        >>> found = against_rest(table)
        >>> bool(found.criterion.value[0, 0] > 0)
        True
    """
    table = _table(counts)
    rest = table.sum(axis=0) - table
    both = signal_detection(
        *np.moveaxis(np.stack([table, rest]), -1, 0), prevalence=0.5, correction=correction
    )

    def between(value: FloatArray, error: FloatArray) -> Contrast:
        return contrast(
            value[0],
            value[1],
            standard_error=error[0],
            standard_error_reference=error[1],
            level=level,
        )

    return AgainstRest(
        criterion=between(both.criterion, both.criterion_error),
        separation=between(both.separation, both.separation_error),
        behaviour=between(both.behaviour, both.behaviour_error),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredRates:
    """Pooled rates with cluster-robust covariance, on the scale of rates and of their z.

    `labeler`, `item_extra` and `two_way` are on the z scale; cells are columns.
    """

    rate: FloatArray
    z: FloatArray
    labeler: FloatArray
    item_extra: FloatArray
    two_way: FloatArray
    design_effect: FloatArray
    freedom: float


def one_way_variance(yes: ArrayLike, n: ArrayLike) -> FloatArray:
    """Covariance of pooled rates when the rows of `yes` and `n` are clusters; cells are columns.

    Examples:
        >>> yes, n = [[9], [5], [8], [2], [6]], [[10]] * 5
        >>> round(float(np.sqrt(one_way_variance(yes, n)[0, 0])), 4)
        0.1225
    """
    k, size = np.asarray(yes, dtype=float), np.asarray(n, dtype=float)
    total = size.sum(axis=0)
    rate = k.sum(axis=0) / np.where(total > 0, total, np.nan)
    scaled = (k - rate * size) / np.where(total > 0, total, np.nan)
    clusters = len(k)
    factor = clusters / (clusters - 1) if clusters > 1 else np.nan
    return np.asarray(factor * scaled.T @ scaled)


def clustered_rates(
    labeler_yes: ArrayLike,
    *,
    labeler_n: ArrayLike,
    item_yes: ArrayLike,
    item_n: ArrayLike,
    item_cell: ArrayLike,
    correction: Correction = "auto",
) -> ClusteredRates:
    """Two-way cluster-robust errors, labelers and items: V_labeler + V_item − V_labeler×item.

    `labeler_yes` and `labeler_n` have shape (labelers, cells). An item belongs to one cell (its
    group and truth): yeses, labels and cell number of each item. One label per labeler and item.
    The variance of a cell never falls below the larger of its one-way variances.

    Examples:
        >>> found = clustered_rates([[2, 1], [1, 2]], labeler_n=[[4, 2], [4, 2]],
        ...     item_yes=[1, 2, 0, 0, 2, 1], item_n=[2] * 6, item_cell=[0, 0, 0, 0, 1, 1])
        >>> found.rate.tolist()
        [0.375, 0.75]
    """
    yes, n = np.asarray(labeler_yes, dtype=float), np.asarray(labeler_n, dtype=float)
    k, m = np.asarray(item_yes, dtype=float), np.asarray(item_n, dtype=float)
    cell = np.asarray(item_cell, dtype=np.intp)
    cells = n.shape[1]
    total, hits = n.sum(axis=0), yes.sum(axis=0)
    safe = np.where(total > 0, total, np.nan)
    raw = hits / safe
    edge = bool(np.any((total > 0) & ((hits == 0) | (hits == total))))
    correct = correction == "log-linear" or (correction == "auto" and edge)
    rate = (hits + 0.5) / (safe + 1) if correct else raw
    z = ndtri(rate)
    with np.errstate(divide="ignore"):
        slope = 1.0 / normal_density(z)
    by_labeler = one_way_variance(yes, n)
    items = np.bincount(cell, minlength=cells).astype(float)
    around = np.bincount(cell, (k - raw[cell] * m) ** 2, minlength=cells) / safe**2
    factor = np.where(items > 1, items / np.where(items > 1, items - 1, 1.0), np.nan)
    by_item = factor * around
    plain = raw * (1 - raw) / safe
    own = np.diag(by_labeler)
    diagonal = np.fmax(np.fmax(own + by_item - plain, own), by_item)
    two_way = by_labeler + np.diag(diagonal - own)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = diagonal / plain
    return ClusteredRates(
        rate=rate,
        z=z,
        labeler=by_labeler * np.outer(slope, slope),
        item_extra=(by_item - plain) * slope**2,
        two_way=two_way * np.outer(slope, slope),
        design_effect=effect,
        freedom=float(min(len(yes), items.sum()) - 1),
    )


def clustered_contrast(
    rates: ClusteredRates,
    *,
    quantity: Quantity = "criterion",
    group: int = 0,
    reference: int = 1,
    prevalence_part: ArrayLike = 0.0,
    prevalence_error: float = 0.0,
    level: float = 0.95,
) -> Contrast:
    """Group − reference with two-way errors; cells are false alarms then hits of each group.

    The fallback where the pooled model is not run: t with min(labelers, items) − 1 degrees of
    freedom. For the log cost ratio, `prevalence_part` is Δlogit(1−φ) and `prevalence_error` its
    standard error.

    Examples:
        >>> found = clustered_rates(
        ...     [[2, 3, 3, 3], [1, 3, 2, 2]], labeler_n=[[4, 4, 4, 4]] * 2,
        ...     item_yes=[1, 2, 0, 0, 2, 2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1], item_n=[2] * 16,
        ...     item_cell=[0] * 4 + [1] * 4 + [2] * 4 + [3] * 4)
        >>> round(float(clustered_contrast(found).value), 3)
        0.637
    """
    gradient = np.zeros(rates.z.size)
    for which, sign in ((group, 1.0), (reference, -1.0)):
        alarm, hit = 2 * which, 2 * which + 1
        if quantity == "criterion":
            gradient[alarm] -= sign
        elif quantity == "separation":
            gradient[[alarm, hit]] += [-sign, sign]
        else:
            gradient[[alarm, hit]] += [-sign * rates.z[alarm] / 2, sign * rates.z[hit] / 2]
    value = gradient @ rates.z
    # log c is quadratic in z: its derivative is twice the factor that gives its value.
    slope = 2 * gradient if quantity == "log_cost_ratio" else gradient
    return contrast(
        value + np.asarray(prevalence_part, dtype=float),
        standard_error=np.sqrt(slope @ rates.two_way @ slope + prevalence_error**2),
        freedom=rates.freedom,
        level=level,
    )
