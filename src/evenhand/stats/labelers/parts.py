"""Why two groups' cost ratios differ: prevalence, bar and skill.

log c = logit(1−φ) − t·d′ + d′²/2. The cost ratio is the standard; the criterion t is the bar: how
much evidence is asked for. One standard needs different bars where prevalence or skill differ,
and one bar makes different standards there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError
from evenhand.stats.estimate import Contrast, FloatArray, contrast


@dataclass(frozen=True, slots=True, kw_only=True)
class PartValues:
    """The three parts of a difference in log cost ratio, group − reference; they add up to it."""

    prevalence: FloatArray
    bar: FloatArray
    skill: FloatArray

    @property
    def total(self) -> FloatArray:
        """The difference in log cost ratio."""
        return np.asarray(self.prevalence + self.bar + self.skill)


def part_values(
    *,
    log_odds_against: ArrayLike,
    log_odds_against_reference: ArrayLike,
    criterion: ArrayLike,
    criterion_reference: ArrayLike,
    separation: ArrayLike,
    separation_reference: ArrayLike,
) -> PartValues:
    """Shapley parts of Δlog c: what each of φ, t and d′ adds, averaged over their orders.

    Prevalence stands alone in log c; bar and skill share the product t·d′, so that each is
    taken at the other's mean over both groups: bar −Δt·d̄′, skill Δd′·(d̄′ − t̄). Everything
    broadcasts: pass posterior draws for draws of the parts.

    Examples:
        >>> found = part_values(log_odds_against=2.2, log_odds_against_reference=1.1,
        ...                     criterion=1.4, criterion_reference=1.0,
        ...                     separation=2.0, separation_reference=2.0)
        >>> [round(float(x), 2) for x in (found.prevalence, found.bar, found.skill, found.total)]
        [1.1, -0.8, 0.0, 0.3]
    """
    odds, odds_reference = (
        np.asarray(x, float) for x in (log_odds_against, log_odds_against_reference)
    )
    t, t_reference = (np.asarray(x, float) for x in (criterion, criterion_reference))
    d, d_reference = (np.asarray(x, float) for x in (separation, separation_reference))
    middle_t, middle_d = (t + t_reference) / 2, (d + d_reference) / 2
    return PartValues(
        prevalence=np.asarray(odds - odds_reference),
        bar=np.asarray(-(t - t_reference) * middle_d),
        skill=np.asarray((d - d_reference) * (middle_d - middle_t)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRatioParts:
    """The parts with their intervals, on the log scale: exp of value and limits are factors."""

    total: Contrast
    prevalence: Contrast
    bar: Contrast
    skill: Contrast


def cost_ratio_parts(
    z: ArrayLike,
    *,
    covariance: ArrayLike,
    log_odds_against: ArrayLike,
    log_odds_error: ArrayLike = (0.0, 0.0),
    freedom: float = np.inf,
    level: float = 0.95,
) -> CostRatioParts:
    """Prevalence, bar and skill parts of Δlog c with delta-method intervals.

    `z` are the four normal quantiles of false-alarm and hit rate, of the group and then of the
    reference, and `covariance` (4, 4) theirs, clustered by labelers and items as for any contrast
    (`ClusteredRates.z`, `.two_way`). `log_odds_against` are logit(1−φ) of both, known from items
    with `log_odds_error`. t with `freedom` for all but the prevalence part.

    Examples:
        >>> v = np.diag([0.01, 0.03, 0.01, 0.03])
        >>> found = cost_ratio_parts([-1.4, 0.6, -1.0, 1.0], covariance=v,
        ...                          log_odds_against=[2.2, 1.1])
        >>> print(f"{found.bar.value:.2f} [{found.bar.low:.2f}, {found.bar.high:.2f}]")
        -0.80 [-1.37, -0.23]
    """
    quantiles, v = np.asarray(z, dtype=float), np.asarray(covariance, dtype=float)
    if quantiles.shape != (4,) or v.shape != (4, 4):
        raise DataError(
            f"z has shape {quantiles.shape} and covariance {v.shape}. Give four quantiles, false "
            "alarms and hits of the group and of the reference, and their 4 × 4 covariance."
        )
    odds = np.broadcast_to(np.asarray(log_odds_against, dtype=float), (2,))
    odds_error = np.broadcast_to(np.asarray(log_odds_error, dtype=float), (2,))
    alarm, hit = quantiles[0::2], quantiles[1::2]
    t, d = -alarm, hit - alarm
    values = part_values(
        log_odds_against=odds[0],
        log_odds_against_reference=odds[1],
        criterion=t[0],
        criterion_reference=t[1],
        separation=d[0],
        separation_reference=d[1],
    )
    gaps, middles = (t[0] - t[1], d[0] - d[1]), (t.mean(), d.mean())
    # Derivatives by t and d′ of the group and of the reference, in turn.
    bar = np.array([-middles[1], -gaps[0] / 2, middles[1], -gaps[0] / 2])
    away = middles[1] - middles[0]
    skill = np.array([-gaps[1] / 2, away + gaps[1] / 2, -gaps[1] / 2, -away + gaps[1] / 2])
    # t = −z_F and d′ = z_H − z_F.
    to_z = np.kron(np.eye(2), [[-1.0, 0.0], [-1.0, 1.0]])
    known = float((odds_error**2).sum())

    def judged(value: FloatArray, by: FloatArray | None, extra: float) -> Contrast:
        slope = np.zeros(4) if by is None else by @ to_z
        # A difference of exact zeros may fall below 0 by a rounding.
        variance = max(float(slope @ v @ slope), 0.0)
        error = np.sqrt(variance + extra)
        # The error of prevalence is known from items: it adds no doubt about the labelers' own.
        spare = freedom * ((variance + extra) / variance) ** 2 if variance > 0 else np.inf
        return contrast(value, standard_error=error, freedom=spare, level=level)

    return CostRatioParts(
        total=judged(values.total, bar + skill, known),
        prevalence=judged(values.prevalence, None, known),
        bar=judged(values.bar, bar, 0.0),
        skill=judged(values.skill, skill, 0.0),
    )
