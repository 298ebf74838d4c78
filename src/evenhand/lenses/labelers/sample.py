"""What labelers said of each group's items, as one table of counts for each stratum."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.decisions.roles import Roles
from evenhand.decisions.tallies.labelers import ItemTable
from evenhand.decisions.tally import Tally
from evenhand.errors import UsageError
from evenhand.lenses.settings import setting_for
from evenhand.lenses.statistical.confusion import prepare
from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.posterior import FEWEST_LABELERS
from evenhand.stats.labelers.signal import Correction, corrected_rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Counts (labelers, groups, 4) of one stratum, and the prevalence of what labelers see.

    The four are hits, misses, false alarms and correct rejections. `prevalence` is known from
    `prevalence_n` distinct items (labels where items are not named), exactly where it is given.
    """

    groups: tuple[str, ...]
    labelers: tuple[str, ...]
    stratum: str | None
    counts: FloatArray
    items: ItemTable | None
    prevalence: FloatArray
    prevalence_n: FloatArray
    given: NDArray[np.bool_]
    correction: Correction

    @property
    def totals(self) -> FloatArray:
        """Counts by group over all labelers, (groups, 4)."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def labels(self) -> FloatArray:
        """Labels by group."""
        return np.asarray(self.totals.sum(axis=1))

    @property
    def judges(self) -> FloatArray:
        """How many labelers judged each group."""
        return np.asarray((self.counts.sum(axis=2) > 0).sum(axis=0), dtype=np.float64)

    @property
    def repeated(self) -> bool:
        """Whether items were judged by more than one labeler."""
        return self.items is not None and self.items.repeated

    @property
    def poolable(self) -> bool:
        """Whether there are labelers enough to learn from one about another."""
        return int((self.counts.sum(axis=(1, 2)) > 0).sum()) >= FEWEST_LABELERS

    @property
    def prevalence_error(self) -> FloatArray:
        """Standard error of each prevalence; 0 where it is given."""
        with np.errstate(all="ignore"):
            error = np.sqrt(self.prevalence * (1 - self.prevalence) / self.prevalence_n)
        return np.where(self.given, 0.0, error)

    def usable_prevalence(self) -> FloatArray:
        """Prevalences strictly between 0 and 1; one half where there is none to divide by."""
        inside = (self.prevalence > 0) & (self.prevalence < 1)
        return np.where(inside, self.prevalence, 0.5)

    def pair(self, group: int, reference: int | None) -> "Sample":
        """Two groups alone: this one and the reference, or all others where there is none."""
        size = len(self.groups)
        others = [reference] if reference is not None else [g for g in range(size) if g != group]
        counts = np.stack([self.counts[:, group], self.counts[:, others].sum(axis=1)], axis=1)
        items = self.items
        if items is not None:
            items = items.take(np.isin(items.group, [group, *others]))
            items = replace(items, group=np.where(items.group == group, 0.0, 1.0))
        weight = self.prevalence_n[others]
        with np.errstate(all="ignore"):
            share = np.nansum(self.prevalence[others] * weight) / np.nansum(weight)
        return replace(
            self,
            groups=(self.groups[group], "<reference>"),
            counts=counts,
            items=items,
            prevalence=np.array([self.prevalence[group], share]),
            prevalence_n=np.array([self.prevalence_n[group], weight.sum()]),
            given=np.array([self.given[group], bool(self.given[others].all())]),
        )


def label_tables(
    tally: Tally, roles: Roles
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...], tuple[str, ...], str | None]:
    """Counts (all and strata, labelers, groups, 4), labelers, groups, strata and the positive.

    Labelers and groups without a complete label are left out; without a positive, all counts.
    """
    ready, classes, positive = prepare(tally, roles)
    groups, strata = ready.labels["group"], ready.labels["stratum"]
    if positive is None:
        return np.zeros((1, 0, len(groups), 4)), (), groups, strata, None
    yes = classes.index(positive)
    no = 1 - yes
    keys = ["stratum", "labeler", "group", "truth", "decision"]
    dense = ready.dense(keys, "n", keep_missing=["stratum"])
    dense = np.concatenate([dense.sum(axis=0, keepdims=True), dense[:-1]])
    cells = [dense[..., yes, yes], dense[..., yes, no], dense[..., no, yes], dense[..., no, no]]
    counts = np.stack(cells, axis=-1)
    there, seen = counts[0].sum(axis=(1, 2)) > 0, counts[0].sum(axis=(0, 2)) > 0
    labelers = tuple(n for n, keep in zip(ready.labels["labeler"], there) if keep)
    groups = tuple(n for n, keep in zip(groups, seen) if keep)
    return counts[:, there][:, :, seen], labelers, groups, strata, positive


def needed_correction(counts: FloatArray) -> Correction:
    """The correction that all cells of all groups share: log-linear once a rate is 0 or 1.

    Samples that leave one labeler out count too where there is a jackknife, so that it needs no
    other correction.
    """
    whole = counts.sum(axis=0)
    left = whole - counts if len(counts) >= FEWEST_LABELERS else counts[:0]
    cells = np.concatenate([whole[None], left])
    found = corrected_rates(*np.moveaxis(cells, -1, 0)).method
    return "none" if found == "no correction" else "log-linear"


def samples(
    counts: FloatArray,
    *,
    labelers: tuple[str, ...],
    groups: tuple[str, ...],
    strata: tuple[str, ...],
    items: ItemTable | None,
    stratum_items: ItemTable | None,
    given: FloatArray,
) -> list[Sample]:
    """The whole table and each stratum; `given` holds prevalences passed in, NaN elsewhere."""
    found: list[Sample] = []
    for s, name in enumerate((None, *strata)):
        mine = items
        if s and stratum_items is not None:
            mine = stratum_items.take(stratum_items.stratum == s - 1)
        share, n = _shares(counts[s], mine)
        known = np.isfinite(given)
        if s:
            # Enrichment by truth leaves the mix of strata within each truth as it was.
            with np.errstate(all="ignore"):
                moved = expit(logit(given) + logit(share) - logit(_shares(counts[0], items)[0]))
            share = np.where(known & np.isfinite(moved), moved, share)
        else:
            share = np.where(known, given, share)
        found.append(
            Sample(
                groups=groups,
                labelers=labelers,
                stratum=name,
                counts=counts[s],
                items=mine,
                prevalence=share,
                prevalence_n=n,
                given=known,
                correction=needed_correction(counts[s]),
            )
        )
    return found


def given_prevalence(
    settings: Mapping[str, Any], attribute: str, groups: tuple[str, ...]
) -> FloatArray:
    """Prevalences passed in, by group; NaN where the sample has to tell.

    Examples:
        >>> given_prevalence({"prevalence": {"f": 0.1}}, "sex", ("f", "m")).tolist()
        [0.1, nan]
    """
    found = np.full(len(groups), np.nan)
    for g, name in enumerate(groups):
        value = setting_for(settings, "prevalence", attribute, name)
        if value is None:
            continue
        try:
            share = float(value)
        except (TypeError, ValueError):
            share = float("nan")
        if not 0 < share < 1:
            raise UsageError(
                f"prevalence={value!r} is not between 0 and 1. For two in a hundred write 0.02."
            )
        found[g] = share
    return found


def _shares(counts: FloatArray, items: ItemTable | None) -> tuple[FloatArray, FloatArray]:
    """Share of positives among distinct items, or among labels, and how many those are."""
    size = counts.shape[1]
    if items is not None:
        group = items.group.astype(np.intp)
        n = np.bincount(group, minlength=size).astype(np.float64)
        positives = np.bincount(group, items.truth, minlength=size)
    else:
        total = counts.sum(axis=0)
        n, positives = total.sum(axis=1), total[:, :2].sum(axis=1)
    with np.errstate(all="ignore"):
        return np.asarray(positives / np.where(n > 0, n, np.nan)), np.asarray(n)
