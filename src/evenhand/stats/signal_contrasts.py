"""Contrasts of signal detection: between groups, labelers and their clusters of labels.

Tables of counts have shape (labelers, groups, 4): hits, misses, false alarms, correct rejections.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.stats.contrast import Contrast, contrast
from evenhand.stats.estimate import FloatArray
from evenhand.stats.signal import (
    Correction,
    SignalDetection,
    corrected_rates,
    signal_detection,
)

Quantity = Literal["criterion", "separation", "log_cost_ratio"]


def independent_contrast(
    group: SignalDetection, reference: SignalDetection, *, quantity: Quantity = "log_cost_ratio"
) -> Contrast:
    """Group − reference when different labelers judged different items.

    Examples:
        >>> a, b = signal_detection(80, 20, 90, 810), signal_detection(60, 40, 45, 855)
        >>> found = independent_contrast(a, b)
        >>> print(f"{found.value:.3f} z={found.statistic:.2f} p={found.p:.5f}")
        0.854 z=3.59 p=0.00033
    """
    errors = {
        "criterion": (group.criterion_error, reference.criterion_error),
        "separation": (group.separation_error, reference.separation_error),
        "log_cost_ratio": (group.log_cost_ratio_error, reference.log_cost_ratio_error),
    }[quantity]
    return contrast(
        getattr(group, quantity),
        getattr(reference, quantity),
        standard_error=errors[0],
        standard_error_reference=errors[1],
        level=group.level,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Difference in log cost ratio as its prevalence part and its behaviour part."""

    total: FloatArray
    prevalence: FloatArray
    behaviour: FloatArray


def split_log_cost_ratio(group: SignalDetection, reference: SignalDetection) -> Split:
    """Δlog c = Δlogit(1−φ) + Δ(z_H² − z_F²)/2, group − reference.

    Examples:
        >>> a = signal_detection(80, 20, 90, 810, prevalence=0.2)
        >>> b = signal_detection(80, 20, 90, 810, prevalence=0.1)
        >>> found = split_log_cost_ratio(a, b)
        >>> print(f"{found.total:.3f} = {found.prevalence:.3f} + {found.behaviour:.3f}")
        -0.811 = -0.811 + 0.000
    """
    return Split(
        total=group.log_cost_ratio - reference.log_cost_ratio,
        prevalence=group.prevalence_part - reference.prevalence_part,
        behaviour=group.behaviour - reference.behaviour,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Jackknife:
    """Contrasts between two groups judged by the same labelers, by leaving each labeler out.

    `influence` holds, for each labeler, how far the contrast in log cost ratio moves when that
    labeler is left out (times labelers − 1).
    """

    criterion: Contrast
    separation: Contrast
    log_cost_ratio: Contrast
    behaviour: Contrast
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
        each = values[:, 0] - values[:, 1]
        spread = (labelers - 1) / labelers * ((each - each.mean()) ** 2).sum() if labelers else 0.0
        return contrast(
            whole_value[0],
            whole_value[1],
            standard_error=np.sqrt(spread + more),
            freedom=labelers - 1,
            level=level,
        )

    moved = (full.behaviour[0] - full.behaviour[1]) - (behaviour[:, 0] - behaviour[:, 1])
    return Jackknife(
        criterion=judged(-left.z_false_alarm, full.criterion),
        separation=judged(left.z_hit - left.z_false_alarm, full.separation),
        log_cost_ratio=judged(behaviour, full.log_cost_ratio, extra),
        behaviour=judged(behaviour, full.behaviour),
        influence=(labelers - 1) * moved,
        labelers=labelers,
        method=f"jackknife over {labelers} labelers, {left.method}",
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
class Sharing:
    """Whether a difference between groups is most labelers' or a few labelers'.

    `same_direction` is the share of labelers (with both groups) who lean as the whole does, and
    `few` the least number of labelers without whom the difference would be at most half. None
    when no number short of all but one would do.
    """

    same_direction: float
    labelers: int
    few: int | None

    @property
    def shared(self) -> bool:
        """Most labelers lean the same way, and no small part of them carries half of it."""
        return self.same_direction > 0.5 and (
            self.few is None or self.few > max(1, 0.2 * self.labelers)
        )


def sharing(
    counts: ArrayLike,
    *,
    group: int = 0,
    reference: int = 1,
    quantity: Literal["criterion", "separation", "behaviour"] = "criterion",
) -> Sharing:
    """How a difference between two groups is spread over labelers.

    Examples:
        >>> table = np.tile([[30.0, 10, 8, 60], [30, 10, 16, 52]], (20, 1, 1))
        >>> sharing(table).shared
        True
    """
    table = _table(counts)[:, [group, reference]]
    table = table[(table.sum(axis=2) > 0).all(axis=1)]

    def difference(cells: FloatArray) -> FloatArray:
        rates = corrected_rates(*np.moveaxis(cells, -1, 0), correction="log-linear")
        value = {
            "criterion": -rates.z_false_alarm,
            "separation": rates.z_hit - rates.z_false_alarm,
            "behaviour": (rates.z_hit**2 - rates.z_false_alarm**2) / 2,
        }[quantity]
        return np.asarray(value[..., 0] - value[..., 1])

    labelers = len(table)
    if labelers < 2:
        return Sharing(same_direction=float("nan"), labelers=labelers, few=None)
    total = table.sum(axis=0)
    whole = float(difference(total))
    own = difference(table)
    own = own[~np.isnan(own)]
    alone = difference(total - table)
    order = np.argsort(np.where(np.isnan(alone), np.inf, np.sign(whole) * alone))
    without = difference(total - np.cumsum(table[order[:-1]], axis=0))
    halved = np.flatnonzero(np.sign(whole) * without <= abs(whole) / 2)
    return Sharing(
        same_direction=float((np.sign(own) == np.sign(whole)).mean()) if own.size else float("nan"),
        labelers=labelers,
        few=int(halved[0]) + 1 if halved.size else None,
    )
