"""What scores say beyond decisions: areas under the curve and calibration, by group."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from evenhand.decisions.roles import Attribute
from evenhand.decisions.tallies.scores import BINS, TENTHS, ScoreTallies, ScoreTally
from evenhand.lenses.rows import Column, Options, Rows, choose, words
from evenhand.lenses.scope import ONE_CLUSTER, Scope, choose_reference
from evenhand.lenses.statistical.compare import NOBODY, WEIGHTLESS, adjust_p, of_reference
from evenhand.lenses.statistical.rates import few_items
from evenhand.lenses.statistical.score_cells import PartAreas, PartBins, ScoreCells, named
from evenhand.stats.auc import (
    Auc,
    PlacementSums,
    apart,
    auc_gap,
    auc_gap_p,
    clustered_delong,
    placed_area,
    undefined_reason,
    units_by_truth,
    weighted_delong,
)
from evenhand.stats.calibration import Recalibration, bounded_logit, fit_lines, recalibrate
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import bonferroni
from evenhand.stats.rates import wilson
from evenhand.stats.special import ndtr, stdtrit
from evenhand.stats.weights import ClusteredRate, weighted_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Weight and hits by tenth of the score, the lines of recalibration, and what clusters do.

    `rates` are the clusters' in every tenth, `degrees` the clusters less one of every line;
    None and without end where rows come in none.
    """

    tenths: tuple[FloatArray, FloatArray]
    line: Recalibration
    rates: ClusteredRate | None
    degrees: FloatArray

    @classmethod
    def of(cls, cells: ScoreCells) -> "Calibration":
        """What the bins of scores say, by (stratum, group)."""
        rows, weight = cells.dense([], "n"), cells.weight(["y", "bin"])
        yes = weight[:, :, 1]
        mass = weight[:, :, 0] + yes
        with np.errstate(all="ignore"):
            mean = cells.dense(["bin"], "s") / mass
            # As many as there are rows, so that small weights do not look like no data.
            scale = (rows / mass.sum(axis=-1))[..., None]
        scale = np.where(np.isfinite(scale), scale, 0.0)
        bins: dict[str, Any] = {"hits": yes * scale, "n": mass * scale}
        tenths, logits = (_tenths(mass), _tenths(yes)), bounded_logit(mean)
        if cells.kind != "clustered":
            if cells.kind == "weighted":
                bins["squares"] = cells.dense(["bin"], "w2") * scale**2
            line, degrees = recalibrate(logits, **bins), np.full(rows.shape, np.inf)
            return cls(tenths=tenths, line=line, rates=None, degrees=degrees)
        lines = fit_lines(logits, **bins)
        total, hits = (each.reshape(-1) for each in tenths)
        whole = PartBins(
            labels=cells.tally.labels,
            scale=scale.reshape(-1),
            hits=hits,
            total=total,
            **lines.of_bins(),
        )
        products = whole(cells.tally) if cells.distant is None else cells.distant.add_up(whole)
        squares = _tenths(cells.dense(["bin"], "w2" if cells.weighted else "n")).reshape(-1)
        return cls(
            tenths=tenths,
            line=lines.recalibration(named(products, "line/")),
            rates=ClusteredRate.of_sums(hits, total, squares, **named(products, "tenth/")),
            degrees=products["line/clusters"].reshape(rows.shape) - 1.0,
        )


def score_rows(
    scores: ScoreTallies,
    attribute: Attribute,
    options: Options,
    *,
    classes: dict[str, str],
    fewest: int = 0,
) -> list[Rows]:
    """Areas and calibration of every class that has a score column, by group.

    `classes` says which column holds the score of which class. Weights, reviews and clusters
    count as they do for rates, those of fewer than `fewest` clusters too; with a stratum all of
    it comes again within each.
    """
    if not classes:
        return []
    decisions = scores.decisions
    # What scores say holds whatever rule decided.
    scope = Scope(
        lens="statistical",
        attribute=attribute.name,
        level=options.level,
        seed=options.seed,
        stratified=decisions.roles.stratum is not None,
    )
    asked = decisions.roles.reference.get(attribute.name)
    parts: list[Rows] = []
    for within in (False, True) if decisions.roles.stratum else (False,):
        placements: list[ScoreTally] = []
        calibrated: list[Rows] = []
        # Column by column: what is held of one is looked for but once.
        for name, column in classes.items():
            placements.append(scores.placements(attribute, column, name, within=within))
            if decisions.is_probability(column):
                bins = scores.bins(attribute, column, name, within=within)
                calibrated += calibration_rows(replace(scope, positive=name), bins, fewest=fewest)
        cells = ScoreCells.of(*placements)
        if not cells[0].groups or not cells[0].strata:
            continue
        scope = replace(scope, classes=tuple(classes), strata=cells[0].strata)
        parts += [*area_rows(scope, cells, asked=asked, fewest=fewest), *calibrated]
    return parts


def area_rows(
    scope: Scope, cells: list[ScoreCells], *, asked: str | None, fewest: int = 0
) -> list[Rows]:
    """Areas of every (stratum, group, class), and their gaps to the reference group.

    Where no group is asked for as the reference, it is the one with most scored rows. One that
    has fewer than `fewest` clusters with either truth has no interval.
    """
    groups, strata = cells[0].groups, cells[0].strata
    # (stratum, group, class, truth), as rows and as what they weigh.
    counts, weight = (
        np.stack([getattr(cell, name)(["y"], *rest) for cell in cells], axis=2)
        for name, rest in (("dense", ["n"]), ("weight", []))
    )
    named = choose_reference(groups, counts.sum(axis=(0, 2, 3)), asked if asked in groups else None)
    reference = groups.index(named)
    off = np.zeros(counts.shape[:-1])
    if "meets" in cells[0].tally.sums:
        meets = np.stack([cell.dense(["y"], "meets")[..., 1] for cell in cells], axis=2)
        with np.errstate(all="ignore"):
            off = np.nan_to_num(meets / weight.prod(axis=-1) / 2)
    areas = [_areas(cell, reference) for cell in cells]
    area = _stack([one for one, *_ in areas])
    covariance = np.stack([one for _, one, _ in areas], axis=2)
    few = few_items(np.stack([units for *_, units in areas], axis=2), fewest)
    reasons = _reasons(counts, weight)
    shared = {
        "class": words(scope.classes),
        "stratum": words(strata)[:, None, None],
    }
    q = _family(area.value, scope)
    low, high = area.interval(z=scope.z)
    family_low, family_high = area.interval(z=q)
    cases = counts.min(axis=-1)
    rows = [
        scope.block(
            area.value.shape,
            **shared,
            **_unless(few, low=low, high=high, family_low=family_low, family_high=family_high),
            measure="auc",
            group=words(groups)[:, None],
            value=area.value,
            n=cases,
            method=cells[0].on_grid("delong", off),
            undefined=reasons,
            no_interval=choose(np.isfinite(area.value), few),
        )
    ]
    others = [i for i in range(len(groups)) if i != reference]
    if not others:
        return rows
    mine, theirs = apart(
        _part(area, others), _part(area, [reference]), covariance=covariance[:, others]
    )
    value = mine.value - theirs.value
    low, high = auc_gap(mine, theirs, z=scope.z)
    family_low, family_high = auc_gap(mine, theirs, z=_family(value, scope))
    own_few, theirs_few = few[:, others], of_reference(few[:, [reference]])
    few = choose(own_few != None, own_few, theirs_few)  # noqa: E711
    p = _unless(few, p=auc_gap_p(mine, theirs))["p"]
    missing = choose(reasons[:, others] == None, reasons[:, [reference]], reasons[:, others])  # noqa: E711
    rows.append(
        scope.block(
            value.shape,
            **shared,
            measure="auc_gap",
            group=words([groups[i] for i in others])[:, None],
            reference=named,
            value=value,
            **_unless(few, low=low, high=high, family_low=family_low, family_high=family_high),
            n=cases[:, others],
            n_reference=np.broadcast_to(cases[:, [reference]], value.shape),
            p=p,
            p_adjusted=adjust_p(scope, p),
            method=cells[0].on_grid("delong", off[:, others] + off[:, [reference]]),
            undefined=choose(np.isfinite(value), None, missing),
            no_interval=choose(np.isfinite(value), few),
        )
    )
    return rows


def _unless(few: Column, **numbers: FloatArray) -> dict[str, FloatArray]:
    """Numbers that say how sure something is, none where there is a reason to say nothing."""
    gone = few != None  # noqa: E711
    return {name: np.where(gone, np.nan, each) for name, each in numbers.items()}


def calibration_rows(scope: Scope, bins: ScoreTally, *, fewest: int = 0) -> list[Rows]:
    """Observed share per tenth of the score, and the line of logistic recalibration, by group.

    The scope's positive is the class whose score it is. A share or a line of fewer than `fewest`
    clusters has no interval.
    """
    if not len(bins.tally):
        return []
    order = [str(i) for i in range(BINS)]
    (cells,) = ScoreCells.of(
        ScoreTally(tally=bins.tally.relabel("bin", order), distant=bins.distant)
    )
    fitted = Calibration.of(cells)
    return [_curve(scope, cells, fitted, fewest), *_lines(scope, cells, fitted, fewest)]


def _areas(cells: ScoreCells, reference: int) -> tuple[Auc, FloatArray, FloatArray]:
    """Areas by (stratum, group) of one class, their covariance with the reference's, and units.

    Those are the clusters with positives or with negatives, whichever are fewer; 0 without any.
    """
    shape = (len(cells.strata), len(cells.groups))
    if cells.kind != "clustered":
        names = PlacementSums.__dataclass_fields__
        sums = ("n", "n", "n", "d", "d2", "d", "d2")
        if cells.weighted:
            sums = ("w", "w2", "w4", "wd", "wd2", "w2d", "w2d2")
        found = {name: cells.dense(["y"], sum_) for name, sum_ in zip(names, sums)}
        return weighted_delong(PlacementSums(**found)), np.zeros(shape), np.zeros(shape)
    numbers = np.arange(shape[0] * shape[1]).reshape(shape)
    compared = np.broadcast_to(numbers[:, [reference]], shape).reshape(-1)
    if cells.distant is None:
        rows = cells.placed()
        area, shared = clustered_delong(**rows, reference=compared)
        of_units = {name: rows[name] for name in ("weight", "truth", "cell")}
        units = units_by_truth(**of_units, cells=compared.size)
    else:
        total = cells.weight(["y"]).reshape(-1, 2)
        above = cells.dense(["y"], cells.names[1])[..., 1].reshape(-1)
        whole = PartAreas(
            labels=cells.tally.labels,
            reference=compared,
            total=total,
            area=placed_area(total, above),
        )
        products = cells.distant.add_up(whole)
        (area, shared), units = whole.finish(products), products["units"]
    fields = {f: getattr(area, f).reshape(shape) for f in Auc.__dataclass_fields__}
    return Auc(**fields), shared.reshape(shape), units.min(axis=-1).reshape(shape)


def _stack(areas: list[Auc]) -> Auc:
    """Areas of several classes as one, classes in the last axis."""
    fields = Auc.__dataclass_fields__
    return Auc(**{f: np.stack([getattr(a, f) for a in areas], axis=-1) for f in fields})


def _part(area: Auc, groups: list[int]) -> Auc:
    return Auc(**{f: getattr(area, f)[:, groups] for f in Auc.__dataclass_fields__})


def _family(value: FloatArray, scope: Scope) -> FloatArray:
    """Critical value of a family; classes share rows, so it is Bonferroni's.

    The rows within strata, which are asked for at once, are one family.
    """
    members = np.isfinite(value).sum(axis=(1, 2))
    members = np.where(scope.within, members[scope.within].sum(), members)
    found = [bonferroni(scope.family_level, members=int(count)) for count in members]
    return np.array(found).reshape(-1, 1, 1)


def _reasons(counts: FloatArray, weight: FloatArray) -> Column:
    """Why an area does not exist, by (stratum, group, class)."""
    found: Column = np.vectorize(undefined_reason, otypes=[object])(counts[..., 1], counts[..., 0])
    for side, name in ((0, "negatives"), (1, "positives")):
        gone = (counts[..., side] > 0) & (weight[..., side] <= 0)
        found = choose(gone, f"all {name} in the group have weight 0", found)
    return found


def _curve(scope: Scope, cells: ScoreCells, fitted: Calibration, fewest: int) -> Rows:
    """The weighted share of hits in every tenth of the score, by (stratum, group, tenth)."""
    n = _tenths(cells.dense(["bin"], "n"))
    mass, yes = fitted.tenths
    with np.errstate(all="ignore"):
        share = yes / mass
    members = (n > 0).sum(axis=(1, 2))
    limits = [scope.z, *(bonferroni(scope.level, members=int(k)) for k in members)]
    ends = [wilson(*_effective(cells, fitted, q), z=q) for q in limits]
    low, high = ends[0]
    # Each stratum is a family of its own, with its own critical value.
    family_low, family_high = (
        np.stack([ends[1 + k][side][k] for k in range(len(cells.strata))]) for side in (0, 1)
    )
    few = few_items(np.zeros(n.shape), fewest)
    if fitted.rates is not None:
        few = few_items(fitted.rates.clusters.reshape(n.shape), fewest)
    edges = np.linspace(0, 1, TENTHS + 1)
    places = [f"score {a:.1f}-{b:.1f}" for a, b in pairwise(edges)]
    named = [[p if name is None else f"{name}, {p}" for p in places] for name in cells.strata]
    return scope.block(
        share.shape,
        measure="calibration",
        group=words(cells.groups)[:, None],
        stratum=np.array(named, dtype=object)[:, None, :],
        value=share,
        **_unless(few, low=low, high=high, family_low=family_low, family_high=family_high),
        n=n,
        method=cells.on_grid("wilson", _astray(cells, n)),
        undefined=choose(n == 0, NOBODY, choose(mass > 0, None, WEIGHTLESS)),
        no_interval=choose(
            (n > 0) & (mass > 0),
            choose(few != None, few, choose(np.isnan(low), ONE_CLUSTER)),  # noqa: E711
        ),
    )


def _astray(cells: ScoreCells, n: FloatArray) -> FloatArray:
    """How far a share may be off for rows whose cell an edge of a tenth cuts through."""
    if "astray" not in cells.tally.sums:
        return np.zeros(n.shape)
    rows = cells.dense(["bin"], "astray").reshape(*n.shape, -1)
    edges = rows[..., :-1, -1] + rows[..., 1:, 0]
    at_edge = np.zeros(n.shape)
    at_edge[..., :-1] += edges
    at_edge[..., 1:] += edges
    with np.errstate(all="ignore"):
        return np.where(n > 0, np.minimum(at_edge / n, 1.0), 0.0)


def _tenths(values: FloatArray) -> FloatArray:
    return np.asarray(values.reshape(*values.shape[:-1], TENTHS, -1).sum(axis=-1))


def _effective(cells: ScoreCells, fitted: Calibration, z: float) -> tuple[FloatArray, FloatArray]:
    """Hits and cases to put into Wilson's formula, by (stratum, group, tenth)."""
    mass, yes = fitted.tenths
    if fitted.rates is not None:
        hits, n = fitted.rates.effective(z=z)
        return hits.reshape(yes.shape), n.reshape(yes.shape)
    if cells.kind == "counted":
        return yes, mass
    squares = cells.dense(["y", "bin"], "w2")
    hit, miss = _tenths(squares[:, :, 1]), _tenths(squares[:, :, 0])
    found = weighted_rate(yes, mass - yes, hit_squares=hit, miss_squares=miss)
    return found.hits, found.n


def _lines(scope: Scope, cells: ScoreCells, fitted: Calibration, fewest: int) -> list[Rows]:
    """Intercept and slope of the recalibration line, by (stratum, group)."""
    few = few_items(fitted.degrees + 1.0, fewest)
    rows, line = cells.dense([], "n"), fitted.line
    family = bonferroni(scope.level, members=len(cells.groups))
    z, q = (_student(value, fitted.degrees) for value in (scope.z, family))
    parts = []
    for what, value, error in (
        ("calibration_intercept", line.in_the_large, line.in_the_large_error),
        ("calibration_slope", line.slope, line.slope_error),
    ):
        reason = choose(rows == 0, NOBODY, "truth has one class, or the scores separate it")
        ends = {"low": value - z * error, "high": value + z * error}
        ends |= {"family_low": value - q * error, "family_high": value + q * error}
        unsure = choose(few != None, few, choose(np.isnan(error), ONE_CLUSTER))  # noqa: E711
        parts.append(
            scope.block(
                value.shape,
                measure=what,
                group=words(cells.groups),
                stratum=words(cells.strata)[:, None],
                value=value,
                **_unless(few, **ends),
                n=rows,
                method=cells.method("logistic recalibration"),
                undefined=choose(np.isfinite(value), None, reason),
                no_interval=choose(np.isfinite(value), unsure),
            )
        )
    return parts


def _student(z: float, degrees: FloatArray) -> FloatArray:
    """Student's critical value at the level of z; z itself without end of degrees."""
    with np.errstate(all="ignore"):
        t = -stdtrit(np.where(np.isfinite(degrees), degrees, 1.0), ndtr(-z))
    return np.asarray(np.where(np.isfinite(degrees), t, z))
