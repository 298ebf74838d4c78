"""Gaps and ratios between groups, marginal and simultaneous over their family."""

from dataclasses import dataclass

import numpy as np

from evenhand.lenses.confusion import Confusion
from evenhand.lenses.group_rates import GroupRates
from evenhand.lenses.rows import Rows, choose, words
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import benjamini_hochberg, group_normals, max_t_quantile
from evenhand.stats.rates import koopman, miettinen_nurminen_p, newcombe, wilson

DRAWS = 1_000
NOBODY = "no cases in the group"
NO_REFERENCE = "no cases in the reference"
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
    """Normal draws with the law of the estimates, by (stratum, draw, group, class), drawn once."""

    def __init__(self, table: Confusion, setting: Setting) -> None:
        self.table, self.setting = table, setting
        self._drawn: dict[str, FloatArray] = {}

    def draws(self, rate: str) -> FloatArray:
        """The draws of one rate; rates that mirror each other share them."""
        name = MIRRORS.get(rate, rate)
        if name not in self._drawn:
            self._drawn[name] = np.stack(
                [
                    group_normals(
                        self.table.correlations(name, stratum), draws=DRAWS, seed=self.setting.seed
                    )
                    for stratum in range(len(self.setting.strata))
                ]
            )
        return self._drawn[name]

    def critical_values(self, statistics: FloatArray) -> FloatArray:
        """One critical value per stratum, shaped to go with (stratum, group, class)."""
        level = self.setting.level
        found = [max_t_quantile(draws, level=level) for draws in statistics]
        return np.array(found).reshape(-1, 1, 1)


def rate_rows(setting: Setting, rate: str, rates: GroupRates, noise: Noise) -> Rows:
    """The rate of every (stratum, group, class)."""
    moving = np.where(rates.variance > 0, 1.0, np.nan)[:, None]
    q = noise.critical_values(noise.draws(rate) * moving)
    low, high = wilson(*rates.effective(setting.z), z=setting.z)
    family_low, family_high = wilson(*rates.effective(q), z=q)
    empty = rates.cases == 0
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
        undefined=choose(empty, NOBODY, None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Which groups are compared with what: rates, the other side's rates, and their names."""

    index: list[int]
    group: GroupRates
    reference: GroupRates
    reference_name: str
    whole: bool = False

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
    q_gap, q_ratio = _family(pairing, noise, rate)
    shape = left.value.shape
    counts = (*left.effective(z), *right.effective(z))
    p = miettinen_nurminen_p(*counts)
    adjusted = np.stack([benjamini_hochberg(stratum) for stratum in p])
    reason = choose(left.cases == 0, NOBODY, choose(right.cases == 0, NO_REFERENCE))
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
    family_low, family_high = newcombe(*left.effective(q_gap), *right.effective(q_gap), z=q_gap)
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
    low, high = koopman(*counts, z=z)
    family_low, family_high = koopman(
        *left.effective(q_ratio), *right.effective(q_ratio), z=q_ratio
    )
    undefined = choose((reason == None) & np.isnan(value), REFERENCE_ZERO, reason)  # noqa: E711
    gone = np.isnan(value)
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


def _family(pairing: Pairing, noise: Noise, rate: str) -> tuple[FloatArray, FloatArray]:
    """Critical values of the gaps' family and of the ratios' (on the log scale)."""
    draws = noise.draws(rate)
    found = []
    for scale in (1.0, None):
        spreads = []
        for side in (pairing.group, pairing.reference):
            with np.errstate(all="ignore"):
                sd = np.sqrt(side.variance) / (side.value if scale is None else scale)
            spreads.append(np.where(sd > 0, sd, np.nan))
        mine, theirs = spreads
        own = draws[:, :, pairing.index] * np.nan_to_num(mine)[:, None]
        if pairing.reference.value.shape[1] == 1 and len(pairing.index) < draws.shape[2]:
            other = [i for i in range(draws.shape[2]) if i not in pairing.index]
            against = draws[:, :, other] * np.nan_to_num(theirs)[:, None]
        else:
            against = _rest_noise(draws, pairing)
            if scale is None:
                with np.errstate(all="ignore"):
                    against = against / pairing.reference.value[:, None]
        total = np.sqrt(np.nan_to_num(mine) ** 2 + np.nan_to_num(theirs) ** 2)
        with np.errstate(all="ignore"):
            statistics = (own - against) / np.where(total > 0, total, np.nan)[:, None]
        found.append(noise.critical_values(statistics))
    return found[0], found[1]


def _rest_noise(draws: FloatArray, pairing: Pairing) -> FloatArray:
    """The noise of everybody else's rate: each other group's, by its share of the cases."""
    cases = pairing.group.mass
    sd = np.sqrt(np.nan_to_num(pairing.group.variance))
    weighted = draws * (sd * cases)[:, None]
    rest = cases.sum(axis=1, keepdims=True) - cases
    with np.errstate(all="ignore"):
        return np.asarray((weighted.sum(axis=2, keepdims=True) - weighted) / rest[:, None])


def _method(name: str, kind: str) -> str:
    return name if kind == "counted" else f"{name}, {kind}"
