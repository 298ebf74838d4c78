"""One number over classes or over groups: root mean square, spread, worst pair, equalised odds."""

import numpy as np

from evenhand.lenses.compare_groups import DRAWS, Pairing, Setting
from evenhand.lenses.group_rates import GroupRates
from evenhand.lenses.rows import Rows, choose, words
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import bonferroni, sidak
from evenhand.stats.rates import koopman
from evenhand.stats.spread import WorstPair, gap_variance, rate_variance, rms, spread, worst_pair


def rms_rows(setting: Setting, rate: str, pairing: Pairing) -> Rows:
    """Root mean square of a group's gaps over classes, plain and corrected, with its null level."""
    z = setting.z
    counts = pairing.counts(z)
    apart = 1 - pairing.share
    gaps = apart * (pairing.group.value - pairing.reference.value)
    found = rms(gaps, apart**2 * gap_variance(*counts), z=z)
    used = found.n_used
    skipped = len(setting.classes) - used
    with_skips = choose(
        skipped > 0,
        [[f"moments; {k} of {len(setting.classes)} classes undefined" for k in s] for s in skipped],
        "moments",
    )
    names = [setting.groups[i] for i in pairing.index]
    return _sizes(
        setting,
        f"{rate}_gap_rms",
        (found.value, found.corrected, found.low, found.high, found.null),
        shape=gaps.shape[:2],
        method=with_skips,
        undefined=choose(used == 0, "no class has a gap", None),
        n=used.astype(float),
        group=words(names),
        reference=pairing.reference_name,
        stratum=words(setting.strata)[:, None],
    )


def spread_rows(setting: Setting, rate: str, rates: GroupRates) -> Rows:
    """Standard deviation of a rate over groups, plain and corrected, with its null level."""
    hits, n = rates.effective(setting.z)
    variance = np.moveaxis(rate_variance(hits, n), 1, -1)
    found = spread(np.moveaxis(rates.value, 1, -1), variance, z=setting.z)
    return _sizes(
        setting,
        f"{rate}_spread",
        (found.value, found.corrected, found.low, found.high, found.null),
        shape=found.value.shape,
        method="moments",
        undefined=choose(found.n_used < 2, "fewer than two groups with cases", None),
        n=found.n_used.astype(float),
        stratum=words(setting.strata)[:, None],
        **{"class": words(setting.classes)},
    )


def worst_rows(setting: Setting, rate: str, rates: GroupRates, worst: WorstPair) -> Rows:
    """The largest gap between two groups per class, and what noise alone would give."""
    names = words([*setting.groups, None])
    shape = worst.value.shape
    low, high = names[worst.lowest], names[worst.highest]
    shared = {
        "class": words(setting.classes),
        "stratum": words(setting.strata)[:, None],
        "group": high,
        "reference": low,
        "n": _pick(rates.cases, worst.highest),
        "n_reference": _pick(rates.cases, worst.lowest),
        "undefined": choose(worst.n_used < 2, "fewer than two groups with cases", None),
    }
    found = setting.block(
        shape,
        measure=f"{rate}_gap_worst",
        value=worst.value,
        low=worst.low,
        high=worst.high,
        family_low=worst.low,
        family_high=worst.high,
        method="newcombe, all pairs",
        **shared,
    )
    null = setting.block(
        shape,
        measure=f"{rate}_gap_worst_null_level",
        value=worst.null,
        method="if all groups shared one rate",
        **shared,
    )
    return Rows.concatenate([found, null])


def worst(setting: Setting, rates: GroupRates, *, rates_at_once: int = 1) -> WorstPair:
    """The largest gap between two groups, per stratum and class.

    The limits hold for this many independent rates together; the level that noise alone would
    reach is found for one rate only.
    """
    z = sidak(setting.level, members=rates_at_once)
    hits, n = (np.moveaxis(side, 1, -1) for side in rates.effective(z))
    return worst_pair(hits, n, z=z, draws=DRAWS if rates_at_once == 1 else 0, seed=setting.seed)


def equalised_odds_rows(
    setting: Setting, pairs: dict[str, WorstPair], cases: dict[str, FloatArray]
) -> Rows:
    """The larger of the worst gaps in true and false positive rates.

    The limits are the larger of both pairs' limits, which hold together: where both do, so do
    these. At one pair's own level no gap at all would be called one twice as often as it may.
    """
    first, second = pairs["true_positive_rate"], pairs["false_positive_rate"]
    defined = (first.n_used > 1) & (second.n_used > 1)
    larger = [
        np.where(defined, np.maximum(getattr(first, end), getattr(second, end)), np.nan)
        for end in ("value", "low", "high")
    ]
    names = words([*setting.groups, None])
    lead = first.value >= second.value
    value, low, high = larger
    highest = np.where(lead, first.highest, second.highest)
    lowest = np.where(lead, first.lowest, second.lowest)
    counted = [cases["true_positive_rate"], cases["false_positive_rate"]]
    n, n_reference = (
        np.where(lead, _pick(counted[0], which), _pick(counted[1], which))
        for which in (highest, lowest)
    )
    return setting.block(
        value.shape,
        measure="equalised_odds",
        value=value,
        low=low,
        high=high,
        family_low=low,
        family_high=high,
        n=n,
        n_reference=n_reference,
        method=choose(
            lead,
            "worst pair; true positive rate leads",
            "worst pair; false positive rate leads",
        ),
        undefined=choose(defined, None, "fewer than two groups with cases"),
        group=names[highest],
        reference=names[lowest],
        stratum=words(setting.strata)[:, None],
        **{"class": words(setting.classes)},
    )


def impact_ratio_rows(setting: Setting, rates: GroupRates) -> Rows:
    """Each group's selection rate by the highest group's: the four-fifths table, no pass mark."""
    value, cases, z = rates.value, rates.cases, setting.z
    best = np.argmax(np.where(cases > 0, np.nan_to_num(value), -1.0), axis=1)
    q = bonferroni(setting.level, members=max(len(setting.groups) - 1, 1))
    top = best[:, None, :]

    def limits(critical: float) -> tuple[FloatArray, FloatArray]:
        hits, n = rates.effective(critical)
        against = [np.take_along_axis(side, top, axis=1) for side in (hits, n)]
        low, high = koopman(hits, n, *against, z=critical)
        own = np.arange(len(setting.groups))[None, :, None] == top
        return np.where(own, np.nan, low), np.where(own, np.nan, high)

    highest = np.take_along_axis(value, top, axis=1)
    with np.errstate(all="ignore"):
        ratio = np.where(highest > 0, value / highest, np.nan)
    low, high = limits(z)
    family_low, family_high = limits(q)
    gone = np.isnan(ratio)
    return setting.block(
        value.shape,
        measure="impact_ratio",
        value=ratio,
        low=np.where(gone, np.nan, low),
        high=np.where(gone, np.nan, high),
        family_low=np.where(gone, np.nan, family_low),
        family_high=np.where(gone, np.nan, family_high),
        n=cases,
        n_reference=np.broadcast_to(np.take_along_axis(cases, top, axis=1), value.shape),
        group=words(setting.groups)[:, None],
        reference=words(setting.groups)[best][:, None, :],
        stratum=words(setting.strata)[:, None, None],
        method="koopman; against the highest rate",
        undefined=choose(cases == 0, "no cases in the group", choose(gone, "nobody was selected")),
        **{"class": words(setting.classes)},
    )


def _sizes(
    setting: Setting,
    measure: str,
    found: tuple[FloatArray, ...],
    *,
    shape: tuple[int, ...],
    undefined: object,
    **shared: object,
) -> Rows:
    plain, corrected, low, high, null = found
    interval = {"low": low, "high": high, "family_low": low, "family_high": high}
    parts = [
        setting.block(
            shape, measure=measure, value=plain, undefined=undefined, **interval, **shared
        ),
        setting.block(
            shape,
            measure=f"{measure}_corrected",
            value=corrected,
            undefined=undefined,
            **interval,
            **shared,
        ),
        setting.block(
            shape, measure=f"{measure}_null_level", value=null, undefined=undefined, **shared
        ),
    ]
    return Rows.concatenate(parts)


def _pick(cases: FloatArray, group: np.ndarray) -> FloatArray:
    by_class = np.moveaxis(cases, 1, -1)
    safe = np.where(group < 0, 0, group)
    picked = np.take_along_axis(by_class, safe[..., None], axis=-1)[..., 0]
    return np.where(group < 0, np.nan, picked)
