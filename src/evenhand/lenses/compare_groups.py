"""Gaps and ratios between groups, marginal and simultaneous over their family."""

from dataclasses import dataclass

import numpy as np

from evenhand.lenses.confusion import Confusion
from evenhand.lenses.group_rates import GroupRates
from evenhand.lenses.rows import Column, Rows, choose, words
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import benjamini_hochberg, gap_quantile, sidak
from evenhand.stats.rates import koopman, miettinen_nurminen_p, newcombe, wilson

DRAWS = 1_000
NOBODY = "no cases in the group"
NO_REFERENCE = "no cases in the reference"
WEIGHTLESS = "all cases in the group have weight 0"
WEIGHTLESS_REFERENCE = "all cases in the reference have weight 0"
ONE_CLUSTER = "no interval: all cases in the group are one cluster"
ONE_CLUSTER_REFERENCE = "no interval: all cases in the reference are one cluster"
REFERENCE_ZERO = "the reference's rate is 0"
# Rates that mirror another have the same law up to sign.
MIRRORS = {"false_negative_rate": "true_positive_rate", "true_negative_rate": "false_positive_rate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the rows of one attribute share."""

    attribute: str
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    strata: tuple[str | None, ...]
    rule: str | None
    level: float
    seed: int

    @property
    def z(self) -> float:
        """Critical value of a marginal interval."""
        return critical(self.level)

    def block(self, shape: tuple[int, ...], **columns: object) -> Rows:
        """Rows of the statistical lens with the columns that all share."""
        return Rows.block(
            shape,
            lens="statistical",
            attribute=self.attribute,
            rule=self.rule,
            level=self.level,
            **columns,
        )


class Noise:
    """Critical values of gaps to one group, from the law of the estimates; each found once."""

    def __init__(self, table: Confusion, setting: Setting) -> None:
        self.table, self.setting = table, setting
        self._found: dict[tuple[str, int, int], float] = {}

    def quantile(self, rate: str, stratum: int, *, errors: FloatArray, reference: int) -> float:
        """The quantile of max|t| over groups and classes; mirrored rates share it."""
        source = MIRRORS.get(rate, rate)
        key = (source, stratum, reference)
        if key not in self._found:
            self._found[key] = gap_quantile(
                self.table.correlations(source, stratum),
                errors=errors,
                reference=reference,
                level=self.setting.level,
                draws=DRAWS,
                seed=self.setting.seed,
            )
        return self._found[key]


def rate_rows(setting: Setting, rate: str, rates: GroupRates) -> Rows:
    """The rate of every (stratum, group, class)."""
    q = _sidak_values(setting, rates.variance)
    low, high = wilson(*rates.effective(setting.z), z=setting.z)
    family_low, family_high = wilson(*rates.effective(q), z=q)
    return setting.block(
        rates.value.shape,
        measure=rate,
        **{"class": words(setting.classes)},
        group=words(setting.groups)[:, None],
        stratum=words(setting.strata)[:, None, None],
        value=rates.value,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=rates.cases,
        method=_method("wilson", rates.kind),
        undefined=_lacking(rates, NOBODY, WEIGHTLESS, ONE_CLUSTER),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Which groups are compared with what: rates, the other side's rates, and their names."""

    index: list[int]
    group: GroupRates
    reference: GroupRates
    reference_name: str
    whole: bool = False
    certainty: FloatArray | float = 1.0

    def counts(self, z: FloatArray | float) -> list[FloatArray]:
        """Effective hits and cases of both sides, for an interval with this critical value."""
        sides = (*self.group.effective(z), *self.reference.effective(z))
        return [np.asarray(side * self.certainty) for side in sides]

    @property
    def share(self) -> FloatArray:
        """The group's own share of the other side, by which gaps shrink where that is everybody."""
        mine, others = self.group.mass, self.reference.mass
        if not self.whole:
            return np.zeros(np.broadcast_shapes(mine.shape, others.shape))
        with np.errstate(all="ignore"):
            return np.asarray(mine / (mine + others))


def comparison_rows(setting: Setting, rate: str, pairing: Pairing, noise: Noise) -> list[Rows]:
    """Gap and ratio of every (stratum, group, class) against the other side."""
    left, right, z = pairing.group, pairing.reference, setting.z
    q = _family(setting, pairing, noise, rate)
    shape = left.value.shape
    counts = pairing.counts(z)
    p = miettinen_nurminen_p(*counts)
    adjusted = np.stack([benjamini_hochberg(stratum) for stratum in p])
    reason = choose(
        (left.mass > 0) & ((right.mass <= 0) | ~left.unsure),
        _lacking(right, NO_REFERENCE, WEIGHTLESS_REFERENCE, ONE_CLUSTER_REFERENCE),
        _lacking(left, NOBODY, WEIGHTLESS, ONE_CLUSTER),
    )
    shared = {
        "class": words(setting.classes),
        "group": words([setting.groups[i] for i in pairing.index])[:, None],
        "stratum": words(setting.strata)[:, None, None],
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

    low, high = newcombe(*counts, z=z)
    family_low, family_high = newcombe(*pairing.counts(q), z=q)
    gap_rows = setting.block(
        shape,
        measure=f"{rate}_gap",
        value=scaled(left.value - right.value),
        low=scaled(low),
        high=scaled(high),
        family_low=scaled(family_low),
        family_high=scaled(family_high),
        method=_method("newcombe", left.kind),
        undefined=reason,
        **shared,
    )
    with np.errstate(all="ignore"):
        value = np.where(right.value > 0, left.value / right.value, np.nan)
    both = [np.stack(sides) for sides in zip(counts, pairing.counts(q))]
    critical_values = np.stack([np.full_like(q, z), q])
    (low, family_low), (high, family_high) = koopman(*both, z=critical_values)
    gone = np.isnan(value)
    undefined = choose(gone & (left.mass > 0) & (right.mass > 0), REFERENCE_ZERO, reason)
    ratio_rows = setting.block(
        shape,
        measure=f"{rate}_ratio",
        value=ratio_of(value),
        low=np.where(gone, np.nan, ratio_of(low)),
        high=np.where(gone, np.nan, ratio_of(high)),
        family_low=np.where(gone, np.nan, ratio_of(family_low)),
        family_high=np.where(gone, np.nan, ratio_of(family_high)),
        method=_method("koopman", left.kind),
        undefined=undefined,
        **shared,
    )
    return [gap_rows, ratio_rows]


def _family(setting: Setting, pairing: Pairing, noise: Noise, rate: str) -> FloatArray:
    """One critical value per stratum for all gaps of a family, shaped (stratum, 1, 1).

    Gaps to one reference move together, so theirs is the quantile of max|t| under the normal law
    of the count table, the limit of resampling its counts. Gaps to the rest get Šidák's value,
    which holds under any normal law. Ratios use the same value: on the log scale their law
    differs only in how much of the noise is the reference's.
    """
    total = pairing.group.variance + pairing.reference.variance
    if pairing.group.value.shape[1] == len(setting.groups):
        return _sidak_values(setting, total)
    place = next(i for i in range(len(setting.groups)) if i not in pairing.index)
    own, theirs = (np.sqrt(side.variance) for side in (pairing.group, pairing.reference))
    errors = np.insert(own, place, theirs[:, 0], axis=1)
    found = [
        noise.quantile(rate, stratum, errors=errors[stratum], reference=place)
        for stratum in range(len(setting.strata))
    ]
    return np.array(found).reshape(-1, 1, 1)


def _sidak_values(setting: Setting, variance: FloatArray) -> FloatArray:
    """Šidák's critical value per stratum for its members that vary, shaped (stratum, 1, 1)."""
    members = (variance > 0).reshape(len(variance), -1).sum(axis=1)
    found = [sidak(setting.level, members=int(count)) for count in members]
    return np.array(found).reshape(-1, 1, 1)


def _lacking(rates: GroupRates, nobody: str, weightless: str, one_cluster: str) -> Column:
    """Why a rate does not exist or has no interval, or None where it has both."""
    known = choose(rates.mass > 0, choose(rates.unsure, one_cluster, None), weightless)
    return choose(rates.cases == 0, nobody, known)


def _method(name: str, kind: str) -> str:
    return name if kind == "counted" else f"{name}, {kind}"
