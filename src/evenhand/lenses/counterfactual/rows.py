"""The rows of the counterfactual lens: gaps, flip rates, score gaps and texts changed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import stdtr

from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.pairs import pair_sums, score_columns
from evenhand.decisions.tally import Tally
from evenhand.lenses.counterfactual.pairs import (
    PairedGaps,
    PairFamily,
    PairTable,
    flips,
    gap_covariance,
    paired_gaps,
)
from evenhand.lenses.measures import COUNTERFACTUAL_RATES
from evenhand.lenses.rows import Rows, choose, words
from evenhand.lenses.scope import Scope
from evenhand.lenses.statistical.compare import adjust_p
from evenhand.lenses.statistical.rates import method_name
from evenhand.lenses.statistical.summaries import size_method, size_reason
from evenhand.stats.estimate import FloatArray, student_critical
from evenhand.stats.rates import agresti_min, mcnemar_mid_p, wilson
from evenhand.stats.spread import Size, quadratic_moments, size_of

NO_PAIRS = "no pairs"
NO_TEXTS = "the texts are not in the table"
# With fewer clusters than this a size over classes was seen to cover .87 to .93 of the time.
FEW_CLUSTERS = 50
UNSURE = f"fewer than {FEW_CLUSTERS} clusters: it may hold less often than it says"


def rate_gaps(table: PairTable) -> dict[str, PairedGaps]:
    """The paired gaps of every rate that the table has the truth for."""
    rates = COUNTERFACTUAL_RATES if table.has_truth else ("selection_rate",)
    return {rate: paired_gaps(table, rate) for rate in rates}


def gap_rows(
    scope: Scope, table: PairTable, gaps_by_rate: Mapping[str, PairedGaps], family: PairFamily
) -> list[Rows]:
    """Every counterfactual rate gap, and its root mean square over more than two classes."""
    parts: list[Rows] = []
    for rate, gaps in gaps_by_rate.items():
        q = family.critical(rate)
        low, high = agresti_min(*gaps.counts(scope.z), z=scope.z)
        family_low, family_high = agresti_min(*gaps.counts(q), z=q)
        p = np.where(gaps.cases > 0, mcnemar_mid_p(*gaps.counts(scope.z)[:2]), np.nan)
        parts.append(
            _block(
                scope,
                table,
                gaps.value.shape,
                measure=f"counterfactual_{rate}_gap",
                **{"class": words(table.classes)},
                value=gaps.value,
                low=low,
                high=high,
                family_low=family_low,
                family_high=family_high,
                n=gaps.cases,
                p=p,
                p_adjusted=adjust_p(scope, p),
                method=method_name("agresti-min", gaps.kind),
                undefined=choose(gaps.cases == 0, NO_PAIRS),
            )
        )
        if len(table.classes) > 2:
            parts += _size_rows(scope, table, rate, gaps)
    return parts


def flip_rows(scope: Scope, table: PairTable, gaps: PairedGaps, family: PairFamily) -> list[Rows]:
    """The share of pairs decided differently: overall, and for or against each class.

    `gaps` are those of the selection rate.
    """
    share, n, cases = flips(table)
    low, high = wilson(share * n, n, z=scope.z)
    # One number over all classes is a family of its own, with one member for each pair.
    q = scope.shared_critical((cases > 0).sum(axis=1)[:, None])
    family_low, family_high = wilson(share * n, n, z=q)
    overall = _block(
        scope,
        table,
        share.shape,
        measure="flip_rate",
        value=share,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=cases,
        method="wilson",
        undefined=choose(cases == 0, NO_PAIRS),
    )
    q = family.critical("selection_rate", flipped=True)
    (low, high), (family_low, family_high) = (
        wilson(gained + lost, n, z=z)
        for z, (gained, lost, n) in ((z, gaps.counts(z)) for z in (scope.z, q))
    )
    with np.errstate(all="ignore"):
        value = (gaps.gained + gaps.lost) / gaps.n
    by_class = _block(
        scope,
        table,
        value.shape,
        measure="flip_rate",
        **{"class": words(table.classes)},
        value=value,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=gaps.cases,
        method=method_name("wilson", gaps.kind),
        undefined=choose(gaps.cases == 0, NO_PAIRS),
    )
    return [overall, by_class]


def side_rows(scope: Scope, table: PairTable, decisions: Decisions) -> list[Rows]:
    """Score gaps and the share of texts changed, where the table has the columns for them."""
    scores = score_columns(decisions)
    pairs = [(table.values[a], table.values[b]) for a, b in table.pairs]
    tally = pair_sums(decisions, pairs, scores=scores)
    if tally is None:
        return [_changed_rows(scope, table, None)]
    rows = [_changed_rows(scope, table, tally)]
    if scores:
        roles = decisions.roles
        rows.append(
            _score_rows(scope, table, tally, list(scores), weighted=roles.weight is not None,
                        clustered=roles.together is not None)
        )  # fmt: skip
    return rows


def _size_rows(scope: Scope, table: PairTable, rate: str, gaps: PairedGaps) -> list[Rows]:
    """The root mean square of a rate's gaps over classes: plain, corrected, by noise alone."""
    covariance, clusters = gap_covariance(table, rate, gaps)
    hidden = scope.hides(gaps.cases)
    few_classes = hidden.sum(axis=-1)
    moments = quadratic_moments(np.where(hidden, np.nan, gaps.value), covariance=covariance)

    def limits(critical: FloatArray | float) -> Size:
        if clusters is not None:
            critical = student_critical(critical, freedom=np.maximum(clusters - 1, 1.0))
        return size_of(moments, z=critical)

    size = limits(scope.z)
    wide = limits(scope.shared_critical((moments.trace > 0).sum(axis=1)[:, None]))
    total = len(table.classes)
    name = method_name("moments", gaps.kind)
    left_out = size_method(name, moments.members, hidden=few_classes, total=total)
    few = np.zeros(left_out.shape, dtype=bool) if clusters is None else clusters < FEW_CLUSTERS
    shared = {
        "n": moments.members.astype(float),
        "undefined": size_reason(moments.members, hidden=few_classes),
        "method": choose(few, left_out + f"; {UNSURE}", left_out),
    }
    ends = {
        "low": size.low,
        "high": size.high,
        "family_low": wide.low,
        "family_high": wide.high,
    }
    name, shape = f"counterfactual_{rate}_gap_rms", size.value.shape
    return [
        _block(scope, table, shape, measure=name, value=size.value, **ends, **shared),
        _block(
            scope, table, shape, measure=f"{name}_corrected", value=size.corrected, **ends, **shared
        ),
        _block(scope, table, shape, measure=f"{name}_null_level", value=size.null, **shared),
    ]


def _changed_rows(scope: Scope, table: PairTable, tally: Tally | None) -> Rows:
    """The share of texts that a swap changes."""
    shape = (len(table.strata), len(table.pairs))
    counts = [np.zeros(shape), np.zeros(shape)]
    if tally is not None:
        for count, name in zip(counts, ("changed", "texts")):
            for i in range(shape[1]):
                count[:, i] = _sums(table, tally, f"{name}:{i}")
    changed, n = counts
    low, high = wilson(changed, n, z=scope.z)
    q = scope.shared_critical((n > 0).sum(axis=1)[:, None])
    family_low, family_high = wilson(changed, n, z=q)
    with np.errstate(all="ignore"):
        value = changed / n
    return _block(
        scope,
        table,
        shape,
        measure="changed_share",
        value=value,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=n,
        method="wilson",
        undefined=choose(n == 0, NO_TEXTS),
    )


def _score_rows(
    scope: Scope,
    table: PairTable,
    tally: Tally,
    names: list[str | None],
    *,
    weighted: bool,
    clustered: bool,
) -> Rows:
    """Mean difference of scores over pairs, with its t interval; the score is as given.

    Its sums are not by cluster: where rows come in clusters there is no interval, since that of
    single rows would be too narrow.
    """
    shape = (len(table.strata), len(table.pairs), len(names))
    sums = {
        name: np.stack(
            [
                np.stack([_sums(table, tally, f"{name}:{i}:{k}") for k in range(shape[2])], axis=-1)
                for i in range(shape[1])
            ],
            axis=1,
        )
        for name in ("n", "d", "dd", "w", "wd", "ww", "wwd", "wwdd")
    }
    n = sums["n"]
    with np.errstate(all="ignore"):
        if weighted:
            value = sums["wd"] / sums["w"]
            inner = sums["wwdd"] - 2 * value * sums["wwd"] + value**2 * sums["ww"]
            variance = np.maximum(inner, 0.0) / sums["w"] ** 2 * n / (n - 1)
        else:
            value = sums["d"] / n
            variance = np.maximum(sums["dd"] / n - value**2, 0.0) / (n - 1)
        error = np.where((n > 1) & np.bool_(not clustered), np.sqrt(variance), np.nan)
        t = value / error
        # Equal scores in every pair: nothing speaks against no difference.
        t = np.where((error == 0) & (value == 0), 0.0, t)
        p = 2 * stdtr(np.maximum(n - 1, 1), -np.abs(t))
        # Scores are not tallied jointly, so the family's bound is one that holds for any law.
        q = scope.shared_critical((n > 1).sum(axis=1))[:, None, :]
        half, family = (
            student_critical(z, freedom=np.maximum(n - 1, 1)) * error
            for z in (np.asarray(scope.z), q)
        )
    # A single score is the positive class's.
    named = [table.positive if name is None else name for name in names]
    return _block(
        scope,
        table,
        shape,
        measure="counterfactual_score_gap",
        **{"class": words(named)},
        value=value,
        low=value - half,
        high=value + half,
        family_low=value - family,
        family_high=value + family,
        n=n,
        p=p,
        p_adjusted=adjust_p(scope, p),
        method=("mean of pairs" if clustered else "paired t")
        + (", weighted" if weighted else "")
        + ("; no interval: rows come in clusters" if clustered else ""),
        undefined=choose(n == 0, "no pairs with scores"),
    )


def _sums(table: PairTable, tally: Tally, name: str) -> FloatArray:
    """One sum by stratum, the whole table first; zeros where it was not taken."""
    if name not in tally.sums:
        return np.zeros(len(table.strata))
    if "stratum" not in tally.labels:
        return np.array([tally.total(name)])
    ordered_tally = tally.relabel("stratum", [s for s in table.strata if s is not None])
    return np.concatenate([[tally.total(name)], ordered_tally.dense(["stratum"], name)])


def _block(scope: Scope, table: PairTable, shape: tuple[int, ...], **columns: Any) -> Rows:
    """Rows by (stratum, pair) or (stratum, pair, class)."""
    sides = [words(table.values[pair[side]] for pair in table.pairs) for side in (0, 1)]
    group, reference = (side[:, None] if len(shape) == 3 else side for side in sides)
    return scope.block(
        shape,
        group=group,
        reference=reference,
        stratum=words(scope.strata).reshape(-1, *(1,) * (len(shape) - 1)),
        **columns,
    )
