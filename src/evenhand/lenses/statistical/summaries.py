"""One number over classes, over groups or over strata.

Root mean square, spread, worst pair, equalised odds, the four-fifths table, Mantel–Haenszel gaps.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import SUMMARY
from evenhand.lenses.rows import Column, Rows, choose, words
from evenhand.lenses.scope import HIDDEN_UNDER, Scope
from evenhand.lenses.statistical.compare import DRAWS, Pairing, adjust_p
from evenhand.lenses.statistical.confusion import (
    MOST_COVARIED_CLASSES,
    Confusion,
    weight_column,
)
from evenhand.lenses.statistical.rates import FEWEST_ITEMS, GroupRates
from evenhand.speech import opening
from evenhand.stats.estimate import FloatArray, student_critical
from evenhand.stats.families import sidak
from evenhand.stats.rates import base_group, koopman
from evenhand.stats.special import ndtr, stdtr
from evenhand.stats.spread import (
    Size,
    WorstPair,
    joined_moments,
    quadratic_moments,
    rate_variance,
    size_of,
    spread_moments,
    worst_pair,
)
from evenhand.stats.strata import StratifiedGap, mantel_haenszel_gap

NO_BASE = "no group has 2 % of the rows and 50 cases to compare with"
NO_GAP, NO_TWO_GROUPS = "no class has a gap", "fewer than two groups with cases"
TOO_FEW_GROUPS = f"fewer than two groups with {HIDDEN_UNDER} cases"
TOO_FEW_CLASSES = f"fewer than two classes with {HIDDEN_UNDER} cases"
TOO_FEW = "too few cases to be the highest rate"
NOT_WITHOUT = "nothing is left of it without one of its clusters"
# Covariances over classes that are held at once, a dozen times over: 2 MB, which stay near.
MOST_COVARIANCES = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The largest gap between two groups, marginal and at the critical value of its family."""

    marginal: WorstPair
    family: WorstPair

    def mirrored(self) -> "Worst":
        """The worst pair of the rates that these leave over."""
        return Worst(marginal=self.marginal.mirrored(), family=self.family.mirrored())


def rms_rows(
    scope: Scope, rate: str, pairing: Pairing, *, table: Confusion, rates: GroupRates
) -> Rows:
    """Root mean square of a group's gaps over classes, plain and corrected, with its null level.

    `rates` are those of all groups, from which the pairing was made.
    """
    apart = 1 - pairing.share
    hidden = pairing.hidden(scope)
    gaps = np.where(hidden, np.nan, apart * (pairing.group.value - pairing.reference.value))
    parts, known = [], []
    whole = [slice(0, len(pairing.index))]
    batches = _batches(len(pairing.index), len(scope.classes))
    for few in whole if rates.kind == "clustered" else batches:
        covariance, judged = _gap_covariance(
            scope, rate, pairing, table=table, rates=rates, few=few
        )
        own = apart[:, few]
        covariance *= own[..., :, None] * own[..., None, :]
        parts.append(quadratic_moments(gaps[:, few], covariance=covariance))
        known.append(judged)
    moments = joined_moments(parts)
    (clusters,) = known if rates.kind == "clustered" else (None,)
    # All groups of a stratum are one family, and so are all strata.
    vary = (moments.trace > 0).sum(axis=1)
    q = scope.shared_critical(vary[:, None])

    def limits(critical: FloatArray | float) -> Size:
        if clusters is not None:
            critical = student_critical(critical, freedom=np.maximum(clusters - 1, 1.0))
        return size_of(moments, z=critical)

    total = len(scope.classes)
    name = "moments" if clusters is None else "moments, clustered"
    if total > MOST_COVARIED_CLASSES or (clusters is None and table.joint is None):
        name += ", classes taken as independent"
    return _sizes(
        scope,
        f"{rate}_gap_rms",
        (limits(scope.z), limits(q)),
        shape=gaps.shape[:2],
        method=size_method(name, moments.members, hidden=hidden.sum(axis=-1), total=total),
        undefined=size_reason(
            moments.members,
            hidden=hidden.sum(axis=-1),
            none=_few(rates, NO_GAP, "no class with a gap rests"),
        ),
        n=moments.members.astype(float),
        group=words([scope.groups[i] for i in pairing.index]),
        reference=pairing.reference_name,
        stratum=words(scope.strata)[:, None],
    )


def size_method(
    name: str, members: NDArray[np.int64], *, hidden: NDArray[np.int64], total: int
) -> Column:
    """The method of a size over classes, with how many of them it leaves out and why.

    Examples:
        >>> size_method("moments", np.array([5, 3]), hidden=np.array([0, 1]), total=5).tolist()
        ['moments', 'moments; 1 of 5 classes undefined; 1 of 5 classes hidden']
    """
    parts = ((total - members - hidden, "undefined"), (hidden, "hidden"))
    method = choose(members >= 0, name)
    for counts, why in parts:
        more = np.reshape(
            words(f"; {k} of {total} classes {why}" if k > 0 else "" for k in counts.ravel()),
            counts.shape,
        )
        method = method + more
    return method


def size_reason(
    members: NDArray[np.int64], *, hidden: NDArray[np.int64], none: str = NO_GAP
) -> Column:
    """Why there is no size over classes, or None where there is one; `none` where no class is."""
    empty = choose(members == 0, none)
    return choose((hidden > 0) & (members < 2), TOO_FEW_CLASSES, empty)


def _batches(groups: int, classes: int) -> list[slice]:
    """Groups in parts whose covariances over classes can be held at once."""
    size = max(1, MOST_COVARIANCES // classes**2)
    return [slice(start, start + size) for start in range(0, groups, size)]


def _gap_covariance(
    scope: Scope,
    rate: str,
    pairing: Pairing,
    *,
    table: Confusion,
    rates: GroupRates,
    few: slice,
) -> tuple[FloatArray, FloatArray | None]:
    """Covariance over classes of a few of a pairing's gaps, and their clusters, if any."""
    chosen = pairing.index[few]
    if rates.kind == "clustered":
        covariance, clusters = rates.class_covariance(None if pairing.whole else scope.place)
        return _without_few(covariance[:, chosen], pairing), clusters[:, chosen]
    weight = weight_column(table.sums, rate)
    strata, _, classes = pairing.group.value.shape
    covariance = np.zeros((strata, len(chosen), classes, classes))
    everybody = slice(None)
    sides = [(pairing.group, chosen, False, few)]
    sides.append((pairing.reference, [scope.place or 0], False, everybody))
    if pairing.whole:
        sides[1] = (pairing.reference, chosen, True, few)
    index = np.arange(classes)
    for side, places, rest, part in sides:
        variance = rate_variance(*side.effective(scope.z))[:, part]
        error = np.sqrt(variance)
        for stratum in range(strata):
            together = table.correlations(
                rate,
                stratum,
                weight=weight,
                most=MOST_COVARIED_CLASSES,
                rest=rest,
                groups=places,
            )
            own = error[stratum][..., :, None] * error[stratum][..., None, :]
            # A rate of 0 or 1 moves with no other, and has the variance that it has.
            with np.errstate(invalid="ignore", over="ignore"):
                own *= together
            np.copyto(own, 0.0, where=~np.isfinite(own))
            own[..., index, index] = variance[stratum]
            covariance[stratum] += own
    return covariance, None


def _without_few(covariance: FloatArray, pairing: Pairing) -> FloatArray:
    """Covariance over classes of a pairing's gaps, NaN where nothing is told of a class's gap."""
    if pairing.no_interval is not None:
        gone, index = pairing.no_interval != None, np.arange(covariance.shape[-1])  # noqa: E711
        covariance[..., index, index] = np.where(gone, np.nan, covariance[..., index, index])
    return covariance


def _few(rates: GroupRates, reason: str, rests: str) -> str:
    """Why there is too little for a number: as it is, or as it is where items are too few."""
    return reason if rates.no_interval is None else f"{rests} on {FEWEST_ITEMS} items or more"


def spread_rows(scope: Scope, rate: str, rates: GroupRates, *, shared: FloatArray | None) -> Rows:
    """Standard deviation of a rate over groups, plain and corrected, with its null level.

    `shared` is what the groups' rates have in common through clusters.
    """

    def limits(critical: FloatArray | float) -> Size:
        by_group = np.asarray(critical)[:, None] if np.ndim(critical) else critical
        hits, n = (np.moveaxis(side, 1, -1) for side in rates.effective(by_group))
        return size_of(spread_moments(hits, n, covariance=shared), z=critical)

    marginal = limits(scope.z)
    family = limits(scope.shared_critical(marginal.n_used >= 2))
    return _sizes(
        scope,
        f"{rate}_spread",
        (marginal, family),
        shape=marginal.value.shape,
        method="moments",
        undefined=_lacking_groups(scope, rates, marginal.n_used),
        n=marginal.n_used.astype(float),
        stratum=words(scope.strata)[:, None],
        **{"class": words(scope.classes)},
    )


def worst_rows(scope: Scope, rate: str, rates: GroupRates, worst: Worst) -> Rows:
    """The largest gap between two groups per class, and what noise alone would give."""
    names = words([*scope.groups, None])
    pair, family = worst.marginal, worst.family
    shape = pair.value.shape
    low, high = names[pair.lowest], names[pair.highest]
    shared = {
        "class": words(scope.classes),
        "stratum": words(scope.strata)[:, None],
        "group": high,
        "reference": low,
        "n": _pick(rates.cases, pair.highest),
        "n_reference": _pick(rates.cases, pair.lowest),
        "undefined": _lacking_groups(scope, rates, pair.n_used),
    }
    found = scope.block(
        shape,
        measure=f"{rate}_gap_worst",
        value=pair.value,
        low=pair.low,
        high=pair.high,
        family_low=family.low,
        family_high=family.high,
        method="newcombe, all pairs",
        **shared,
    )
    null = scope.block(
        shape,
        measure=f"{rate}_gap_worst_null_level",
        value=pair.null,
        method="if all groups shared one rate",
        **shared,
    )
    return Rows.concatenate([found, null])


def _lacking_groups(scope: Scope, rates: GroupRates, used: NDArray[np.int64]) -> Column:
    """Why nothing can be said over groups, or None where two of them are there."""
    hidden = scope.hides(rates.cases).any(axis=1)
    lacking = _few(rates, NO_TWO_GROUPS, "fewer than two groups rest")
    return choose(used < 2, choose(hidden, TOO_FEW_GROUPS, lacking))


def worst(
    scope: Scope, rates: GroupRates, *, certainty: FloatArray | None, rates_at_once: int = 1
) -> Worst:
    """The largest gap between two groups, per stratum and class.

    The limits hold for this many rates together; the level that noise alone would reach is found
    for one rate only. `certainty` is how much surer gaps are than rates, where clusters are shared.
    """

    def pair(z: FloatArray | float, draws: int) -> WorstPair:
        by_group = np.asarray(z)[:, None] if np.ndim(z) else z
        hits, n = (np.moveaxis(side, 1, -1) for side in rates.effective(by_group))
        return worst_pair(hits, n, z=z, certainty=certainty, draws=draws, seed=scope.seed)

    several = rates_at_once > 1
    marginal = pair(_at_once(scope.z, rates_at_once), 0 if several else DRAWS)
    members = rates_at_once * (marginal.n_used >= 2)
    return Worst(marginal=marginal, family=pair(scope.shared_critical(members), 0))


def _at_once(z: float, members: int) -> float:
    """Šidák's critical value of several members at the level of z."""
    return sidak(float(2 * ndtr(z) - 1), members=members)


def equalised_odds_rows(
    scope: Scope, pairs: dict[str, Worst], cases: dict[str, FloatArray]
) -> Rows:
    """The larger of the worst gaps in true and false positive rates.

    The limits are the larger of both pairs' limits, which hold together: where both do, so do
    these. At one pair's own level no gap at all would be called one twice as often as it may.
    """
    both = pairs["true_positive_rate"], pairs["false_positive_rate"]
    first, second = (worst.marginal for worst in both)
    defined = (first.n_used > 1) & (second.n_used > 1)

    def larger(kind: str, end: str) -> FloatArray:
        sides = [getattr(getattr(worst, kind), end) for worst in both]
        return np.where(defined, np.maximum(*sides), np.nan)

    names = words([*scope.groups, None])
    lead = first.value >= second.value
    highest = np.where(lead, first.highest, second.highest)
    lowest = np.where(lead, first.lowest, second.lowest)
    counted = [cases["true_positive_rate"], cases["false_positive_rate"]]
    hidden = np.any([scope.hides(each).any(axis=1) for each in counted], axis=0)
    n, n_reference = (
        np.where(lead, _pick(counted[0], which), _pick(counted[1], which))
        for which in (highest, lowest)
    )
    return scope.block(
        defined.shape,
        measure="equalised_odds",
        value=larger("marginal", "value"),
        low=larger("marginal", "low"),
        high=larger("marginal", "high"),
        family_low=larger("family", "low"),
        family_high=larger("family", "high"),
        n=n,
        n_reference=n_reference,
        method=choose(
            lead,
            "worst pair; true positive rate leads",
            "worst pair; false positive rate leads",
        ),
        undefined=choose(defined, None, choose(hidden, TOO_FEW_GROUPS, NO_TWO_GROUPS)),
        group=names[highest],
        reference=names[lowest],
        stratum=words(scope.strata)[:, None],
        **{"class": words(scope.classes)},
    )


def impact_ratio_rows(scope: Scope, rates: GroupRates, *, certainty: FloatArray | None) -> Rows:
    """Each group's selection rate by the highest group's: the four-fifths table, no pass mark.

    A group of a few people is never the highest: against one of 18 every other looks bad.
    """
    value, cases = rates.value, rates.cases
    known = cases if rates.no_interval is None else np.where(rates.no_interval == None, cases, 0.0)  # noqa: E711
    best, eligible = base_group(np.moveaxis(value, 1, -1), np.moveaxis(known, 1, -1))
    eligible = np.moveaxis(eligible, -1, 1)
    none = (best < 0)[:, None, :]
    top = np.maximum(best, 0)[:, None, :]
    own = np.arange(len(scope.groups))[None, :, None] == top
    # How much surer the ratio is where the group shares clusters with the highest.
    sure: FloatArray | float = 1.0
    if certainty is not None:
        against = np.take_along_axis(certainty, np.maximum(best, 0)[..., None, None], axis=-1)
        sure = np.moveaxis(against[..., 0], -1, 1)

    def limits(critical: FloatArray | float) -> list[FloatArray]:
        sides = rates.effective(critical)
        theirs = [np.take_along_axis(side, top, axis=1) * sure for side in sides]
        ends = koopman(*(side * sure for side in sides), *theirs, z=critical)
        return [np.where(own | gone, np.nan, end) for end in ends]

    highest = np.take_along_axis(value, top, axis=1)
    with np.errstate(all="ignore"):
        ratio = np.where((highest > 0) & ~none, value / highest, np.nan)
    gone = np.isnan(ratio)
    low, high = limits(scope.z)
    q = scope.shared_critical((~gone & ~own).sum(axis=1))
    family_low, family_high = limits(q[:, None, :])
    base = words([*scope.groups, None])[best]
    return scope.block(
        value.shape,
        measure="impact_ratio",
        value=ratio,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=cases,
        n_reference=np.where(none, np.nan, np.take_along_axis(cases, top, axis=1)),
        group=words(scope.groups)[:, None],
        reference=base[:, None, :],
        stratum=words(scope.strata)[:, None, None],
        method=choose(
            eligible,
            "koopman; against the highest rate",
            f"koopman; against the highest rate; {TOO_FEW}",
        ),
        undefined=choose(
            cases == 0,
            "no cases in the group",
            choose(none, NO_BASE, choose(gone, "nobody was selected")),
        ),
        no_interval=choose(~gone & ~own, rates.no_interval),
        **{"class": words(scope.classes)},
    )


def stratified_rows(
    scope: Scope, rate: str, pairing: Pairing, *, rates: GroupRates
) -> tuple[list[Rows], list[str]]:
    """Mantel–Haenszel gaps over strata, their homogeneity, and sentences on reversals of sign.

    Clusters that span strata correlate them: then the whole summary is taken without each
    cluster in turn, since only that sees it. The test of homogeneity counts effective cases.
    """
    sides = pairing.counts(scope.z)
    within = [np.moveaxis(side[1:], 0, -1) for side in sides]
    gap = mantel_haenszel_gap(*within, z=scope.z)
    used, few, why = _over_strata(pairing, gap)
    q = _summary_critical(scope, used)
    p, value, method = gap.p, gap.value, "mantel-haenszel"
    if rates.clusters is None:
        family = mantel_haenszel_gap(*within, z=q)
        ends = [gap.low, gap.high, family.low, family.high]
    else:
        method = "mantel-haenszel, jackknife over clusters"
        assert scope.place is not None
        value, error, freedom = rates.clusters.over_strata(pairing.index, scope.place, scope.z)
        error = np.where(few, np.nan, error)
        ends = []
        for z in (np.asarray(scope.z), q):
            half = student_critical(z, freedom=np.where(freedom > 0, freedom, 1.0)) * error
            ends += [np.maximum(value - half, -1.0), np.minimum(value + half, 1.0)]
        with np.errstate(all="ignore"):
            p = 2 * stdtr(freedom, -np.abs(value / error))
    low, high, family_low, family_high = ends
    reason = choose(~used, "no stratum has cases of both")
    names = [scope.groups[i] for i in pairing.index]
    shared = {
        "class": words(scope.classes),
        "group": words(names)[:, None],
        "reference": pairing.reference_name,
        "stratum": SUMMARY,
        "n": np.broadcast_to(pairing.group.cases[1:], pairing.group.value[1:].shape).sum(axis=0),
        "n_reference": np.broadcast_to(
            pairing.reference.cases[1:], pairing.group.value[1:].shape
        ).sum(axis=0),
        "undefined": reason,
    }
    gap_rows = scope.block(
        gap.value.shape,
        measure=f"{rate}_gap",
        value=value,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        p=p,
        p_adjusted=adjust_p(replace(scope, strata=(None,)), p[None])[0],
        method=method,
        no_interval=choose(np.isfinite(value) & np.isnan(low), why),
        **shared,
    )
    test_rows = scope.block(
        gap.value.shape,
        measure=f"{rate}_gap_homogeneity",
        value=np.where(gap.degrees > 0, gap.homogeneity, np.nan),
        p=gap.homogeneity_p,
        method=choose(
            gap.degrees > 0, [[f"chi-square({d})" for d in r] for r in gap.degrees], None
        ),
        **{
            **shared,
            "undefined": choose(gap.degrees > 0, None, "fewer than two strata with cases"),
        },
    )
    crude = pairing.group.value[0] - pairing.reference.value[0]
    with np.errstate(all="ignore"):
        turned = (crude * value < 0) & ((low > 0) | (high < 0))
    what = opening(rate.replace("_", " "))
    notes = [
        f"{what} of '{scope.classes[c]}', {names[g]} against {pairing.reference_name}: the gap "
        f"is {crude[g, c]:+.3f} in the whole table and {value[g, c]:+.3f} within "
        "strata, so the strata explain its sign (Simpson's paradox)."
        for g, c in np.argwhere(turned)
    ]
    return [gap_rows, test_rows], notes


def _over_strata(
    pairing: Pairing, gap: StratifiedGap
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Column | str]:
    """Which gaps have a stratum with cases of both, which have no interval, and why a gap has none.

    A group may have few items in every stratum and enough in all of them together.
    """
    used, reasons = gap.n_used > 0, pairing.no_interval
    if reasons is None:
        return used, np.zeros(used.shape, dtype=bool), NOT_WITHOUT
    both = (pairing.group.mass[1:] > 0) & (pairing.reference.mass[1:] > 0)
    few = reasons[0] != None  # noqa: E711
    return np.asarray(both.any(axis=0)), few, choose(few, reasons[0], NOT_WITHOUT)


def _summary_critical(scope: Scope, used: NDArray[np.bool_]) -> FloatArray:
    """Critical values of the summaries, a family of their own, shaped (1, class)."""
    over_strata = replace(scope, strata=(None,), stratified=True)
    return over_strata.shared_critical(used.sum(axis=0)[None])


def _sizes(
    scope: Scope,
    measure: str,
    sizes: tuple[Size, Size],
    *,
    shape: tuple[int, ...],
    undefined: object,
    **shared: object,
) -> Rows:
    marginal, family = sizes
    interval = {
        "low": marginal.low,
        "high": marginal.high,
        "family_low": family.low,
        "family_high": family.high,
    }
    values = {"": marginal.value, "_corrected": marginal.corrected}
    parts = [
        scope.block(
            shape,
            measure=f"{measure}{end}",
            value=value,
            undefined=undefined,
            **interval,
            **shared,
        )
        for end, value in values.items()
    ]
    null = scope.block(
        shape, measure=f"{measure}_null_level", value=marginal.null, undefined=undefined, **shared
    )
    return Rows.concatenate([*parts, null])


def _pick(cases: FloatArray, group: np.ndarray) -> FloatArray:
    by_class = np.moveaxis(cases, 1, -1)
    safe = np.where(group < 0, 0, group)
    picked = np.take_along_axis(by_class, safe[..., None], axis=-1)[..., 0]
    return np.where(group < 0, np.nan, picked)
