"""Implied thresholds of one attribute: bandwidths, local fits and discrete sets, by stratum."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from evenhand.decisions.labels import label
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.grid_margins import (
    distance_sums,
    distance_values,
    distant_pairs,
    grid_margins,
    group_cuts,
)
from evenhand.decisions.tallies.near import LocalPairs, LocalSums, local_sums, score_values
from evenhand.decisions.tallies.thresholds import (
    Margins,
    counts_as_binary,
    margins,
    thresholds_by_group,
    truth_values,
)
from evenhand.decisions.tallies.unit_grid import near_sums, unit_margins, whole_cells
from evenhand.decisions.tally import Tally
from evenhand.errors import DataError, UsageError
from evenhand.lenses.scope import HIDDEN_UNDER, UNTOLD_UNDER
from evenhand.lenses.statistical.confusion import find_classes
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.thresholds.costs import cost_ratio
from evenhand.stats.thresholds.histogram import ScoreHistogram, rule_of_thumb_bandwidth
from evenhand.stats.thresholds.implied import (
    FEWEST_EFFECTIVE,
    MOST_DISCRETE_VALUES,
    DiscreteMargins,
    ImpliedThresholds,
    discrete_margins,
    implied_thresholds,
    threshold_limits,
)
from evenhand.stats.thresholds.local import (
    ClusterFit,
    LocalTotals,
    cluster_fit,
    cluster_products,
    products_fit,
)
from evenhand.stats.thresholds.sets import CostSet, make_set

# Rows for each distinct score before few scores are called discrete rather than a small sample.
ROWS_PER_VALUE = 3
# Every cell is one branch of the expression that gives a row its bandwidth.
MOST_EXACT_CELLS = 200
# So many clusters are left out one by one; of more, none is large enough to matter.
MOST_LEFT_OUT = 200_000
# The fits whose errors clusters change, and the degrees of their polynomials.
DEGREES = {"linear_clusters": 1, "quadratic_clusters": 2}


@dataclass(frozen=True, kw_only=True)
class Margin:
    """The implied thresholds of every group within one stratum (None: the whole table).

    `discrete` holds the sets of groups whose scores take few values; `window` the share of
    positive truths inside the bandwidth, with effective hits and rows; `rule` says in words where
    the bandwidth comes from, `given` whether it was asked for.
    """

    stratum: str | None
    groups: tuple[str, ...]
    histogram: ScoreHistogram
    found: ImpliedThresholds
    discrete: dict[int, DiscreteMargins]
    values: dict[int, ScoreHistogram]
    window: FloatArray
    rule: str
    given: bool = False

    @property
    def n(self) -> FloatArray:
        """Rows inside the bandwidth; where too few of many are effective, those that are.

        Sampling weights can leave many rows that say little: the floor on cases, under which
        nothing can be told, then has to see the effective ones. None of them is hidden for it.
        Of a set, the rows at the score beside the threshold that has fewer.
        """
        rows, effective = self.found.n, np.floor(self.found.n_effective)
        few = (effective < FEWEST_EFFECTIVE) & (rows >= UNTOLD_UNDER)
        count = np.where(few, np.maximum(effective, HIDDEN_UNDER), rows)
        for g, part in self.discrete.items():
            count[g] = min(part.accepted_n[0], part.refused_n[0])
        return count

    @property
    def value(self) -> FloatArray:
        """Implied threshold of each group, in the middle of its interval; NaN for a set.

        The local quadratic's: on a steep curve the local line lies outside its own interval.
        """
        centre = self.found.centre
        with np.errstate(invalid="ignore"):
            return np.where((centre > 0) & (centre < 1), centre, np.nan)

    @cached_property
    def undefined(self) -> list[str | None]:
        """Why a group has neither an implied threshold nor a set of them."""
        reasons = list(self.found.undefined)
        counts, value = self.histogram.counts[..., 0] + self.histogram.counts[..., 1], self.value
        rows, occupied = counts.sum(axis=1), np.count_nonzero(counts, axis=1)
        for g in range(len(self.groups)):
            if rows[g] == 0:
                reasons[g] = "no cases in the group"
            elif g in self.discrete:
                reasons[g] = discrete_reason(self.discrete[g])
            elif occupied[g] < 2:
                reasons[g] = "fewer than 2 distinct scores in the group"
            elif reasons[g] is None and np.isnan(value[g]):
                reasons[g] = f"the estimate {self.found.centre[g]:.3f} lies outside (0, 1)"
        return reasons

    def sets(self, *, level: float) -> CostSet:
        """The set of cost ratios of each group; a group with a value is a set of one.

        The outer limits hold at `level`.
        """
        ends = [self.value, self.value, *threshold_limits(self.found, z=critical(level))]
        for g in self.discrete:
            part = discrete_margins(self.values[g], level=level)
            numbers = (part.refused, part.accepted, part.refused_low, part.accepted_high)
            for end, number in zip(ends, numbers):
                end[g] = number[0]
        low, high, outer_low, outer_high = (cost_ratio(end) for end in ends)
        return make_set(high, low, low=outer_high, high=outer_low)


def discrete_reason(found: DiscreteMargins) -> str | None:
    """Why discrete scores leave not even a set of cost ratios; None where they do."""
    if found.accepted_n[0] == 0 or found.refused_n[0] == 0:
        side = "at or above" if found.accepted_n[0] == 0 else "below"
        return f"scores are discrete and none lies {side} the threshold"
    if found.refused[0] > found.accepted[0]:
        return (
            "scores are discrete and prevalence is higher below the threshold than at it: "
            "no cost ratio makes this threshold the best"
        )
    if found.accepted[0] == 0 or found.refused[0] == 1:
        return f"scores are discrete and all truths beside the threshold are {found.accepted[0]:g}"
    return None


def tally_margins(
    decisions: Decisions, attribute: Attribute, *, scores: bool = False, lowest: bool = False
) -> tuple[Margins, str | None, str]:
    """The histogram, the value of the truth it counts (None: 1 of 0 and 1), and its name."""
    if decisions.tallies is not None:
        positive = _positive(decisions, decisions.count(attribute))
        found = grid_margins(decisions, attribute, positive=positive, scores=scores, lowest=lowest)
        return _not_empty(found, attribute), positive, positive
    if counts_as_binary(decisions):
        found = _margins(decisions, attribute, None, scores=scores, lowest=lowest)
        if found.binary:
            return _not_empty(found, attribute), None, "1"
    positive = _positive(decisions, truth_values(decisions))
    found = _margins(decisions, attribute, positive, scores=scores, lowest=lowest)
    return _not_empty(found, attribute), positive, positive


def _positive(decisions: Decisions, tally: Tally) -> str:
    """The value of the truth that a threshold decides for."""
    _, positive = find_classes(tally.without("decision"), decisions.roles)
    if positive is None:
        raise UsageError(
            f"truth={decisions.roles.truth!r} has more than two values and a threshold decides "
            "between two. Say which value counts as positive (--positive)."
        )
    return positive


def measure_margins(
    decisions: Decisions,
    attribute: Attribute,
    tallied: Margins,
    *,
    positive: str | None,
    bandwidth: float | None,
    level: float,
) -> list[Margin]:
    """The margins of the whole table and of every stratum.

    Sums of the local fit are taken from the rows in a second pass, since binned ones are off by
    up to a tenth of a standard error in small groups; beyond 200 cells they are the histogram's.
    Where one pass also took the mean score of every bin, those give the sums as well: the
    estimate is then off by less than a hundredth of its interval's width.
    """
    columns = [f"group{i}" for i in range(len(attribute.columns))]
    groups = [dict(zip(columns, key)) for key in tallied.keys]
    found = []
    layers: list[tuple[Sequence[int], list[dict[str, Any]]]] = [([0], groups)]
    if len(tallied.strata) > 1:
        inside = [{**cell, "stratum": raw} for raw in tallied.stratum_keys for cell in groups]
        layers.append((range(1, len(tallied.strata)), inside))
    cuts = group_thresholds(decisions, attribute, tallied)
    for places, cells in layers:
        parts = [tallied.histogram(k) for k in places]
        histogram = stacked(parts)
        values = _discrete(decisions, attribute, tallied, histogram, cells, positive, places)
        h = np.full(len(cells), bandwidth) if bandwidth else rule_of_thumb_bandwidth(histogram)
        h = np.where([i in values for i in range(len(cells))], np.nan, h)
        whole = whole_cells(h) if tallied.totals is not None and not bandwidth else None
        if tallied.distances is not None:
            sums, source = distance_sums(tallied, places, h), "; sums from the grid of scores"
            distant = distant_pairs(
                decisions, attribute, positive=str(positive), strata=places, bandwidths=h
            )
            sums = replace(sums, distant=distant)
        elif whole is not None:
            h = whole
            sums, source = near_sums(tallied, places, h), ""
        elif len(cells) <= MOST_EXACT_CELLS:
            sums = local_sums(decisions, attribute, positive=positive, cells=cells, bandwidths=h)
            source = ""
        else:
            sums, source = binned_sums(histogram, h), "; sums from the histogram"
        fits = _distant_fits(sums, len(places))
        for j, k in enumerate(places):
            mine = slice(j * len(groups), (j + 1) * len(groups))
            here = {i - mine.start: v for i, v in values.items() if mine.start <= i < mine.stop}
            estimate = _fit(
                sums, mine, threshold=cuts, bandwidth=h[mine], level=level, fits=fits[j]
            )
            named = "bandwidth given" if bandwidth else "bandwidth by Fan and Gijbels' rule"
            found.append(
                Margin(
                    stratum=tallied.strata[k],
                    groups=tallied.groups,
                    histogram=parts[j],
                    found=estimate,
                    discrete={g: discrete_margins(v, level=level) for g, v in here.items()},
                    values=here,
                    window=sums.window[mine],
                    rule=named + source,
                    given=bool(bandwidth),
                )
            )
    return found


def group_thresholds(decisions: Decisions, attribute: Attribute, tallied: Margins) -> FloatArray:
    """The threshold of each group; NaN where rows of one group have several."""
    cut = decisions.roles.threshold
    if isinstance(cut, int | float):
        return np.full(len(tallied.groups), float(cut))
    if tallied.distances is not None:
        return group_cuts(tallied)
    table = thresholds_by_group(decisions, attribute)
    both = [table.get(tuple(map(label, key)), (np.nan, np.nan)) for key in tallied.keys]
    return np.array([low if low == high else np.nan for low, high in both])


def stacked(parts: Sequence[ScoreHistogram]) -> ScoreHistogram:
    """Several histograms of the same cells as one with all their groups."""
    if len(parts) == 1:
        return parts[0]
    return ScoreHistogram(
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("positions", "thresholds", "counts", "weights", "squares")
        }
    )


def binned_sums(histogram: ScoreHistogram, bandwidths: FloatArray) -> LocalSums:
    """Sums of the local fit from the histogram alone."""
    moments = histogram.moments(bandwidths)
    inside = (np.abs(histogram.positions) < bandwidths[:, None])[:, :, None]
    weights, squares = histogram.weights * inside, histogram.squares * inside
    window = [weights.sum(axis=(1, 2)), weights[:, :, 1].sum(axis=1), squares.sum(axis=(1, 2))]
    return LocalSums(moments=moments, window=np.column_stack(window))


def _margins(
    decisions: Decisions, attribute: Attribute, positive: str | None, *, scores: bool, lowest: bool
) -> Margins:
    """The histogram from one pass where its grid fits a large table, else from a look and two."""
    fits = False
    if not scores and not lowest:
        found, fits = unit_margins(decisions, attribute, positive=positive)
        if found is not None:
            return found
    return margins(
        decisions, attribute, positive=positive, scores=scores, lowest=lowest, small=fits
    )


def _not_empty(found: Margins, attribute: Attribute) -> Margins:
    if found.values["n"][0].sum() == 0:
        raise DataError(
            f"Nothing is left to measure for group={attribute.name!r}: no row has a group, a "
            "truth, a score and a threshold."
        )
    return found


def _discrete(
    decisions: Decisions,
    attribute: Attribute,
    tallied: Margins,
    histogram: ScoreHistogram,
    cells: Sequence[dict[str, Any]],
    positive: str | None,
    strata: Sequence[int],
) -> dict[int, ScoreHistogram]:
    """The exact values of cells whose scores are few."""
    counts = histogram.counts[..., 0] + histogram.counts[..., 1]
    occupied, rows = (counts > 0).sum(axis=1), counts.sum(axis=1)
    maybe = (occupied >= 2) & (occupied <= MOST_DISCRETE_VALUES)
    maybe &= rows >= ROWS_PER_VALUE * occupied
    places = np.flatnonzero(maybe).tolist()
    if not places:
        return {}
    if tallied.distances is not None:
        groups = len(tallied.groups)
        exact = distance_values(tallied, [(strata[i // groups], i % groups) for i in places])
    else:
        chosen = [cells[i] for i in places]
        exact = score_values(decisions, attribute, positive=positive, cells=chosen)
    return {
        i: values
        for i, values in zip(places, exact)
        if values.positions.shape[1] <= MOST_DISCRETE_VALUES
        and rows[i] >= ROWS_PER_VALUE * values.positions.shape[1]
    }


def _fit(
    sums: LocalSums,
    mine: slice,
    *,
    threshold: FloatArray,
    bandwidth: FloatArray,
    level: float,
    fits: Mapping[str, ClusterFit],
) -> ImpliedThresholds:
    held = sums.moments
    moments = replace(
        held,
        n=held.n[mine],
        weight=held.weight[mine],
        outcome=held.outcome[mine],
        squared=held.squared[mine],
        squared_outcome=held.squared_outcome[mine],
        n_below=None if held.n_below is None else held.n_below[mine],
    )
    fits = fits or _cluster_fits(sums.pairs, mine)
    return implied_thresholds(
        moments, threshold=threshold, bandwidth=bandwidth, level=level, **fits
    )


def _cluster_fits(pairs: LocalPairs | None, mine: slice) -> dict[str, ClusterFit]:
    """The fits with the errors of clusters, of the cells of a stratum that has any."""
    keep = (
        np.zeros(0, bool)
        if pairs is None
        else (pairs.cell >= mine.start) & (pairs.cell < mine.stop)
    )
    if pairs is None or not keep.any():
        return {}
    return {
        name: cluster_fit(
            pairs.weight[keep],
            outcome=pairs.outcome[keep],
            groups=pairs.cell[keep] - mine.start,
            clusters=pairs.cluster[keep],
            degree=degree,
            n_groups=mine.stop - mine.start,
            jackknife=int(keep.sum()) <= MOST_LEFT_OUT,
        )
        for name, degree in DEGREES.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFits:
    """What a part of the clusters adds to every product that the errors of fits need.

    A function of the `LocalPairs` of whole clusters; `fits` are those to all rows, by stratum and
    degree. Both kinds of product are added up: how many clusters there are is known in the end.
    """

    fits: tuple[Mapping[str, LocalTotals], ...]

    def __call__(self, pairs: LocalPairs) -> dict[str, FloatArray]:
        """Products by name."""
        found: dict[str, FloatArray] = {}
        for stratum, (mine, fits) in enumerate(self._strata()):
            keep = (pairs.cell >= mine.start) & (pairs.cell < mine.stop)
            for (name, whole), jackknife in product(fits.items(), (False, True)):
                sums = cluster_products(
                    pairs.weight[keep],
                    outcome=pairs.outcome[keep],
                    groups=pairs.cell[keep] - mine.start,
                    clusters=pairs.cluster[keep],
                    whole=whole,
                    jackknife=jackknife,
                )
                found |= {f"{stratum}/{name}/{jackknife}/{k}": v for k, v in sums.items()}
        return found

    def finish(self, products: Mapping[str, FloatArray]) -> list[dict[str, ClusterFit]]:
        """The fits of every stratum, with the errors that the products of all clusters give."""
        found: list[dict[str, ClusterFit]] = []
        for stratum, (_, fits) in enumerate(self._strata()):
            made = {}
            for name, whole in fits.items():
                pairs = products[f"{stratum}/{name}/True/pairs"].sum()
                jackknife = bool(pairs <= MOST_LEFT_OUT)
                prefix = f"{stratum}/{name}/{jackknife}/"
                own = {
                    k.removeprefix(prefix): v for k, v in products.items() if k.startswith(prefix)
                }
                if pairs:
                    made[name] = products_fit(own, whole=whole, jackknife=jackknife)
            found.append(made)
        return found

    def _strata(self) -> Iterator[tuple[slice, Mapping[str, LocalTotals]]]:
        """Which cells are a stratum's, and the fits there."""
        start = 0
        for fits in self.fits:
            size = len(next(iter(fits.values())).coefficients)
            yield slice(start, start + size), fits
            start += size


def _distant_fits(sums: LocalSums, strata: int) -> list[dict[str, ClusterFit]]:
    """The fits of every stratum whose clusters stay in Spark; none where they do not."""
    if sums.distant is None:
        return [{} for _ in range(strata)]
    held = [np.split(each, strata) for each in (sums.moments.weight, sums.moments.outcome)]
    part = PartFits(
        fits=tuple(
            {name: LocalTotals.of(w, outcome=y, degree=d) for name, d in DEGREES.items()}
            for w, y in zip(*held, strict=True)
        )
    )
    return part.finish(sums.distant.add_up(part))
