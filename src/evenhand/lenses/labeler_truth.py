"""Labelers against the truth behind a noisy expert, beside what the expert alone shows."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.lenses.labeler_counts import Sample
from evenhand.lenses.labeler_groups import GroupSignal, Setting, quantile
from evenhand.lenses.rows import Rows, words
from evenhand.stats.estimate import FloatArray
from evenhand.stats.misclassified import corrected_counts
from evenhand.stats.signal import corrected_rates, normal_density

STEP = 1e-4
# Each is computed on a scale without ends, and told on its own.
MEASURES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "criterion_corrected": np.asarray,
    "separation_corrected": np.asarray,
    "prevalence_corrected": expit,
    "cost_ratio_corrected": np.exp,
    "implied_threshold_corrected": expit,
}


def corrected_rows(
    setting: Setting,
    sample: Sample,
    signal: GroupSignal,
    *,
    sensitivity: FloatArray,
    specificity: FloatArray,
) -> list[Rows]:
    """Rows of the groups whose truth has a known quality, named `…_corrected`.

    Errors are by the delta method from the counts, widened by how much clusters of labelers and
    items widen those of the raw rates.
    """
    places = np.flatnonzero(np.isfinite(sensitivity) & np.isfinite(specificity))
    if not places.size:
        return []
    totals = sample.totals[places]
    quality = {"sensitivity": sensitivity[places], "specificity": specificity[places]}
    given = np.where(sample.given[places], sample.prevalence[places], np.nan)
    checked = corrected_counts(*totals.T, **quality)
    undefined = [str(reason) if reason is not None else None for reason in checked.undefined]
    edge = (checked.hit_rate <= 0) | (checked.hit_rate >= 1)
    edge |= (checked.false_alarm_rate <= 0) | (checked.false_alarm_rate >= 1)
    for i in np.flatnonzero(edge):
        undefined[i] = undefined[i] or "a corrected rate is 0 or 1"
    gone = np.array([reason is not None for reason in undefined])
    value = _quantities(totals, given=given, **quality)
    slope = np.stack(
        [(_quantities(_grown(totals, k), given=given, **quality) - value) / STEP for k in range(4)]
    )
    n = totals.sum(axis=1)
    # Shares do not change with the size of the table, so log cells vary by 1/n each.
    variance = slope**2 / np.where(totals > 0, totals, np.inf).T[:, None]
    error = np.sqrt(variance.sum(axis=0)) * _widening(sample, signal, places)
    freedom = signal.freedom[places]
    q = quantile(setting.level, freedom)
    family = quantile(setting.level, freedom, members=int((~gone).sum()))
    parts = []
    for k, (measure, told) in enumerate(MEASURES.items()):
        ends = {
            "value": value[k],
            "low": value[k] - q * error[k],
            "high": value[k] + q * error[k],
            "family_low": value[k] - family * error[k],
            "family_high": value[k] + family * error[k],
        }
        parts.append(
            setting.block(
                (places.size,),
                measure=measure,
                group=words([sample.groups[g] for g in places]),
                stratum=sample.stratum,
                n=n,
                method=words(
                    [
                        f"truth of sensitivity {a:g}, specificity {b:g}; delta method"
                        for a, b in zip(quality["sensitivity"], quality["specificity"])
                    ]
                ),
                undefined=words(undefined),
                **{name: np.where(gone, np.nan, told(end)) for name, end in ends.items()},
            )
        )
    return parts


def _grown(totals: FloatArray, cell: int) -> FloatArray:
    """The counts with one cell grown by a small share of itself."""
    factor = np.ones(4)
    factor[cell] += STEP
    return np.asarray(totals * factor)


def _quantities(
    totals: FloatArray, *, given: FloatArray, sensitivity: FloatArray, specificity: FloatArray
) -> FloatArray:
    """t, d′, logit φ, log c and −log c against the truth, (5, groups)."""
    found = corrected_counts(*totals.T, sensitivity=sensitivity, specificity=specificity)
    rates = corrected_rates(
        found.hits,
        found.misses,
        found.false_alarms,
        found.correct_rejections,
        correction="none",
    )
    z_hit, z_alarm = rates.z_hit, rates.z_false_alarm
    with np.errstate(all="ignore"):
        odds = logit(np.where(np.isfinite(given), given, found.prevalence))
    log_c = -odds + (z_hit**2 - z_alarm**2) / 2
    return np.stack([-z_alarm, z_hit - z_alarm, odds, log_c, -log_c])


def _widening(sample: Sample, signal: GroupSignal, places: NDArray[np.intp]) -> FloatArray:
    """How much wider clusters make the raw rates' errors than independent labels would be."""
    totals, found = sample.totals, signal.found
    n = np.stack([totals[:, 2:].sum(axis=1), totals[:, :2].sum(axis=1)])
    rate = np.stack([found.false_alarm_rate, found.hit_rate])
    z = np.stack([found.z_false_alarm, found.z_hit])
    diagonal = np.diag(signal.rates.two_way)
    with np.errstate(all="ignore"):
        plain = rate * (1 - rate) / (n * normal_density(z) ** 2)
        effect = np.stack([diagonal[0::2], diagonal[1::2]]) / plain
    return np.asarray(np.sqrt(np.fmax(1.0, np.nanmax(effect, axis=0)))[places])
