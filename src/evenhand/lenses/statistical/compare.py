"""Gaps and ratios between groups, marginal and simultaneous over their family."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.lenses.measures import measure
from evenhand.lenses.rows import Column, Rows, choose, words
from evenhand.lenses.scope import HIDDEN_UNDER, ONE_CLUSTER, Scope
from evenhand.lenses.statistical.confusion import Confusion
from evenhand.lenses.statistical.rates import GroupRates, method_name
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import benjamini_hochberg, gap_quantile
from evenhand.stats.rates import miettinen_nurminen_p

DRAWS = 1_000
NOBODY = "no cases in the group"
NO_REFERENCE = "no cases in the reference"
WEIGHTLESS = "all cases in the group have weight 0"
WEIGHTLESS_REFERENCE = "all cases in the reference have weight 0"
ONE_CLUSTER_REFERENCE = "all cases in the reference are one cluster"
# At rates of which so few are expected, Wilson's interval holds in 84 of 100 samples at worst.
LONE_CASE = "it rests on one case, and may hold less often than it says"
REFERENCE_ZERO = "the reference's rate is 0"
TELLING = f"it would tell of a group with fewer than {HIDDEN_UNDER} cases"
_TELLING = ("value", "low", "high", "family_low", "family_high", "p", "p_adjusted")
NO_DIVISOR = "nothing in the group to divide by"
NO_DIVISOR_REFERENCE = "nothing in the reference to divide by"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Which groups are compared with what: rates, the other side's rates, and their names.

    `telling` are comparisons from which a hidden group could be worked out.
    """

    index: list[int]
    group: GroupRates
    reference: GroupRates
    reference_name: str
    whole: bool = False
    certainty: FloatArray | float = 1.0
    telling: NDArray[np.bool_] | None = None

    def counts(self, z: FloatArray | float) -> list[FloatArray]:
        """Effective hits and cases of both sides, for an interval with this critical value."""
        sides = (*self.group.effective(z), *self.reference.effective(z))
        return [np.asarray(side * self.certainty) for side in sides]

    def hidden(self, scope: Scope) -> NDArray[np.bool_]:
        """Comparisons that are hidden, for their own few cases or for those of another group."""
        own = scope.hides(self.group.cases, self.reference.cases)
        return own if self.telling is None else own | self.telling

    @property
    def no_interval(self) -> Column | None:
        """Why nothing is told of how sure gaps are; None where that is told of all of them."""
        own, theirs = self.group.no_interval, self.reference.no_interval
        if own is None or theirs is None:
            return own
        return choose(own != None, own, of_reference(theirs))  # noqa: E711

    @property
    def share(self) -> FloatArray:
        """The group's own share of the other side, by which gaps shrink where that is everybody."""
        mine, others = self.group.mass, self.reference.mass
        if not self.whole:
            return np.zeros(np.broadcast_shapes(mine.shape, others.shape))
        with np.errstate(all="ignore"):
            return np.asarray(mine / (mine + others))


def of_reference(reasons: Column) -> Column:
    """Reasons of the reference's numbers, as they stand beside a comparison with it.

    Examples:
        >>> of_reference(words(["rests on 3 items", ONE_CLUSTER, None])).tolist()
        ['the reference rests on 3 items', 'all cases in the reference are one cluster', None]
    """
    known = {None: None, ONE_CLUSTER: ONE_CLUSTER_REFERENCE}
    said = [known.get(why, f"the reference {why}") for why in reasons.flat]
    return words(said).reshape(reasons.shape)


class Noise:
    """Critical values of gaps to one group, from the law of the estimates; each found once."""

    def __init__(self, table: Confusion, scope: Scope) -> None:
        self.table, self.scope = table, scope
        self._found: dict[tuple[str, int, int], FloatArray] = {}

    def quantiles(
        self, rate: str, stratum: int, *, errors: FloatArray, reference: int
    ) -> FloatArray:
        """The quantile of max|t| over groups and classes, by class; mirrored rates share it."""
        # A rate and the one that it leaves over have the same law up to sign.
        source = min(rate, measure(rate).mirror or rate)
        key = (source, stratum, reference)
        if key not in self._found:
            size = errors.shape[1]
            if self.scope.mirrored:
                # Each of two classes is one family with its groups: the other is its mirror.
                alone = np.ones((len(errors), 1, 1))
                found = [self._quantile(alone, errors[:, [c]], reference) for c in range(size)]
            else:
                together = self.table.correlations(source, stratum)
                found = [self._quantile(together, errors, reference)] * size
            self._found[key] = np.array(found)
        return self._found[key]

    def _quantile(self, correlations: FloatArray, errors: FloatArray, reference: int) -> float:
        return gap_quantile(
            correlations,
            errors=errors,
            reference=reference,
            level=self.scope.family_level,
            draws=DRAWS,
            seed=self.scope.seed,
        )


def rate_rows(scope: Scope, rate: str, rates: GroupRates) -> Rows:
    """The rate of every (stratum, group, class)."""
    hidden = scope.hides(rates.cases)
    q = sidak_values(scope, rates.unrevealing(hidden).variance)
    hits, n = rates.effective(scope.z)
    scale = rates.scale
    low, high = scale.alone(hits, n, z=scope.z)
    with np.errstate(invalid="ignore"):
        rarer = np.minimum(hits, n - hits)
        lone = (rarer > 0) & (rarer <= 1) & ~hidden
    method = method_name(scale.methods[0], rates.kind)
    family_low, family_high = scale.alone(*rates.effective(q), z=q)
    return scope.block(
        rates.value.shape,
        measure=rate,
        **{"class": words(scope.classes)},
        group=words(scope.groups)[:, None],
        stratum=words(scope.strata)[:, None, None],
        value=rates.on_scale,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=rates.cases,
        method=choose(lone, f"{method}; {LONE_CASE}", method),
        undefined=_lacking(rates, NOBODY, WEIGHTLESS, NO_DIVISOR),
        no_interval=choose(np.isfinite(rates.on_scale), rates.reasons(ONE_CLUSTER)),
    )


def comparison_rows(scope: Scope, rate: str, pairing: Pairing, noise: Noise) -> list[Rows]:
    """Gap and ratio of every (stratum, group, class) against the other side."""
    left, right, z = pairing.group, pairing.reference, scope.z
    q = _family(scope, pairing, noise, rate)
    shape = left.value.shape
    counts = pairing.counts(z)
    own, theirs, scale = left.on_scale, right.on_scale, left.scale
    both = np.isfinite(own) & np.isfinite(theirs)
    # Of equal shares, which is also of equal odds.
    p = np.where(both, miettinen_nurminen_p(*counts), np.nan)
    # What is hidden counts as the least evidence, so that no other p tells of it.
    adjusted = adjust_p(scope, np.where(pairing.hidden(scope) & both, 1.0, p))
    reason = choose(
        np.isfinite(own),
        _lacking(right, NO_REFERENCE, WEIGHTLESS_REFERENCE, NO_DIVISOR_REFERENCE),
        _lacking(left, NOBODY, WEIGHTLESS, NO_DIVISOR),
    )
    unsure = choose(
        left.unsure,
        left.reasons(ONE_CLUSTER),
        of_reference(right.reasons(ONE_CLUSTER)),
    )
    shared = {
        "class": words(scope.classes),
        "group": words([scope.groups[i] for i in pairing.index])[:, None],
        "stratum": words(scope.strata)[:, None, None],
        "reference": pairing.reference_name,
        "n": left.cases,
        "n_reference": right.cases + (left.cases if pairing.whole else 0.0),
        "p": p,
        "p_adjusted": adjusted,
    }
    share = pairing.share

    def scaled(gap: FloatArray) -> FloatArray:
        return gap * (1 - share)

    def ratio_of(ratio: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.where(share > 0, 1 / (share + (1 - share) / ratio), ratio)

    low, high = scale.gap(*counts, z=z)
    family_low, family_high = scale.gap(*pairing.counts(q), z=q)
    gap_rows = scope.block(
        shape,
        measure=f"{rate}_gap",
        value=scaled(own - theirs),
        low=scaled(low),
        high=scaled(high),
        family_low=scaled(family_low),
        family_high=scaled(family_high),
        method=method_name(scale.methods[1], left.kind),
        undefined=reason,
        no_interval=choose(both, unsure),
        **shared,
    )
    with np.errstate(all="ignore"):
        value = np.where(theirs > 0, own / theirs, np.nan)
    at_once = [np.stack(sides) for sides in zip(counts, pairing.counts(q))]
    critical_values = np.stack([np.full_like(q, z), q])
    (low, family_low), (high, family_high) = scale.ratio(*at_once, z=critical_values)
    gone = np.isnan(value)
    ratio_rows = scope.block(
        shape,
        measure=f"{rate}_ratio",
        value=ratio_of(value),
        low=np.where(gone, np.nan, ratio_of(low)),
        high=np.where(gone, np.nan, ratio_of(high)),
        family_low=np.where(gone, np.nan, ratio_of(family_low)),
        family_high=np.where(gone, np.nan, ratio_of(family_high)),
        method=method_name(scale.methods[2], left.kind),
        undefined=choose(gone & both, REFERENCE_ZERO, reason),
        no_interval=choose(both & ~gone, unsure),
        **shared,
    )
    return [_untelling(rows, pairing) for rows in (gap_rows, ratio_rows)]


def _untelling(rows: Rows, pairing: Pairing) -> Rows:
    """The rows without the numbers of comparisons that are withheld."""
    if pairing.telling is None or not pairing.telling.any():
        return rows
    cells = pairing.telling.ravel()
    numbers = {name: np.where(cells, np.nan, rows[name]) for name in _TELLING}
    return rows.replace(
        **numbers,
        undefined=choose(cells, TELLING, rows["undefined"]),
        no_interval=choose(cells, None, rows["no_interval"]),
    )


def _family(scope: Scope, pairing: Pairing, noise: Noise, rate: str) -> FloatArray:
    """Critical values of the families of gaps, shaped (stratum, 1, class).

    Gaps to one reference move together, so over the whole table theirs is the quantile of max|t|
    under the normal law of the count table, the limit of resampling its counts. Gaps to the rest
    and gaps within strata, which are one family, get Šidák's value, which holds under any normal
    law. Ratios use the same value: on the log scale their law differs only in how much of the
    noise is the reference's.
    """
    sides = (pairing.group, pairing.reference)
    group, reference = (side.unrevealing(scope.hides(side.cases)) for side in sides)
    q = sidak_values(scope, group.variance + reference.variance)
    if pairing.group.value.shape[1] == len(scope.groups):
        return q
    (place,) = {*range(len(scope.groups))} - {*pairing.index}
    own, theirs = (np.sqrt(side.variance_on_scale) for side in (group, reference))
    errors = np.insert(own, place, theirs[:, 0], axis=1)
    for stratum in np.flatnonzero(~scope.within):
        q[stratum, 0] = noise.quantiles(rate, int(stratum), errors=errors[stratum], reference=place)
    return q


def sidak_values(scope: Scope, variance: FloatArray) -> FloatArray:
    """Šidák's critical values for the members that vary, shaped (stratum, 1, class)."""
    return scope.shared_critical((variance > 0).sum(axis=1))[:, None, :]


def adjust_p(scope: Scope, p: FloatArray) -> FloatArray:
    """P-values by (stratum, group, class) adjusted within the families that intervals hold for."""
    adjusted = np.full(p.shape, np.nan)
    parts = [np.array([stratum]) for stratum in np.flatnonzero(~scope.within)]
    classes = np.arange(p.shape[2])
    for strata in filter(len, [*parts, np.flatnonzero(scope.within)]):
        for family in np.split(classes, len(classes)) if scope.mirrored else [classes]:
            where = np.ix_(strata, np.arange(p.shape[1]), family)
            adjusted[where] = benjamini_hochberg(p[where])
    return adjusted


def _lacking(rates: GroupRates, nobody: str, weightless: str, no_divisor: str) -> Column:
    """Why a rate does not exist, or None where it does."""
    divided = choose(np.isfinite(rates.on_scale), None, no_divisor)
    return choose(rates.cases == 0, nobody, choose(rates.mass > 0, divided, weightless))
