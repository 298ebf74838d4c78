"""What scores say beyond decisions: areas under the curve and calibration, by group."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from evenhand.decisions.labels import ordered
from evenhand.decisions.roles import Attribute
from evenhand.decisions.tallies.scores import BINS, ScoreTallies
from evenhand.decisions.tally import Tally
from evenhand.lenses.rows import Column, Options, Rows, choose, words
from evenhand.lenses.scope import ONE_CLUSTER, Scope, choose_reference
from evenhand.lenses.statistical.compare import NOBODY, WEIGHTLESS, adjust_p
from evenhand.lenses.statistical.rates import method_name
from evenhand.stats.auc import (
    Auc,
    PlacementSums,
    apart,
    auc_gap,
    auc_gap_p,
    clustered_delong,
    undefined_reason,
    weighted_delong,
)
from evenhand.stats.calibration import ClusteredBins, bounded_logit, recalibrate
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import bonferroni
from evenhand.stats.rates import wilson
from evenhand.stats.weights import clustered_rate, weighted_rate

CURVE_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCells:
    """A tally of scored rows by (stratum, group, truth…), and how its rows count.

    `kind` is `counted`, `weighted` or `clustered`; clusters may be weighted too.
    """

    tally: Tally
    strata: tuple[str | None, ...]
    groups: tuple[str, ...]
    kind: str
    weighted: bool

    @classmethod
    def of(cls, *tallies: Tally) -> "list[ScoreCells]":
        """The cells of several tallies, brought to the same groups and strata."""
        for key in ("group", "stratum"):
            if key in tallies[0].labels:
                every = ordered({name for tally in tallies for name in tally.labels[key]})
                tallies = tuple(tally.relabel(key, every) for tally in tallies)
        return [cls._of(tally.relabel("y", ["0", "1"])) for tally in tallies]

    @classmethod
    def _of(cls, tally: Tally) -> "ScoreCells":
        weighted, clustered = "w" in tally.sums, "cluster" in tally.labels
        return cls(
            tally=tally,
            strata=tally.labels.get("stratum", (None,)),
            groups=tally.labels["group"],
            kind="clustered" if clustered else "weighted" if weighted else "counted",
            weighted=weighted,
        )

    def dense(self, keys: list[str], sum_: str) -> FloatArray:
        """Sums by (stratum, group, …keys)."""
        by = ["stratum"] if "stratum" in self.tally.labels else []
        found = self.tally.dense([*by, "group", *keys], sum_)
        return found if by else found[None]

    def weight(self, keys: list[str]) -> FloatArray:
        """Weight by (stratum, group, …keys): rows where none have weights."""
        return self.dense(keys, "w" if self.weighted else "n")

    def places(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which rows of the tally lie in a cell, and each one's cell number."""
        codes = self.tally.codes
        layer = codes.get("stratum", np.zeros(len(self.tally), dtype=np.int64))
        needed = [codes["group"], codes["y"], layer, codes.get("cluster", layer)]
        use = np.all([code >= 0 for code in needed], axis=0)
        return use, layer * len(self.groups) + codes["group"]

    def method(self, name: str) -> str:
        """The name of a method, with how rows count."""
        return method_name(name, self.kind)

    def on_grid(self, name: str, error: FloatArray) -> Column:
        """The method of each number from the grid, with how far it may lie from the scores'."""
        known = self.method(name)
        told = [f"{known}; from a grid of scores, at most {_rounded_up(e)} off" for e in error.flat]
        plain = [told[i] if e > 0 else known for i, e in enumerate(error.flat)]
        return words(plain).reshape(error.shape)


def score_rows(
    scores: ScoreTallies, attribute: Attribute, options: Options, *, classes: dict[str, str]
) -> list[Rows]:
    """Areas and calibration of every class that has a score column, by group.

    `classes` says which column holds the score of which class. Weights, reviews and clusters
    count as they do for rates; with a stratum all of it comes again within each.
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
        placements: list[Tally] = []
        calibrated: list[Rows] = []
        # Column by column: what is held of one is looked for but once.
        for name, column in classes.items():
            placements.append(scores.placements(attribute, column, name, within=within))
            if decisions.is_probability(column):
                bins = scores.bins(attribute, column, name, within=within)
                calibrated += calibration_rows(replace(scope, positive=name), bins)
        cells = ScoreCells.of(*placements)
        if not cells[0].groups or not cells[0].strata:
            continue
        scope = replace(scope, classes=tuple(classes), strata=cells[0].strata)
        parts += [*area_rows(scope, cells, asked=asked), *calibrated]
    return parts


def area_rows(scope: Scope, cells: list[ScoreCells], *, asked: str | None) -> list[Rows]:
    """Areas of every (stratum, group, class), and their gaps to the reference group.

    Where no group is asked for as the reference, it is the one with most scored rows.
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
    area = _stack([one for one, _ in areas])
    covariance = np.stack([one for _, one in areas], axis=2)
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
            measure="auc",
            group=words(groups)[:, None],
            value=area.value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=cases,
            method=cells[0].on_grid("delong", off),
            undefined=reasons,
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
    p = auc_gap_p(mine, theirs)
    missing = choose(reasons[:, others] == None, reasons[:, [reference]], reasons[:, others])  # noqa: E711
    rows.append(
        scope.block(
            value.shape,
            **shared,
            measure="auc_gap",
            group=words([groups[i] for i in others])[:, None],
            reference=named,
            value=value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=cases[:, others],
            n_reference=np.broadcast_to(cases[:, [reference]], value.shape),
            p=p,
            p_adjusted=adjust_p(scope, p),
            method=cells[0].on_grid("delong", off[:, others] + off[:, [reference]]),
            undefined=choose(np.isfinite(value), None, missing),
        )
    )
    return rows


def calibration_rows(scope: Scope, bins: Tally) -> list[Rows]:
    """Observed share per tenth of the score, and the line of logistic recalibration, by group.

    The scope's positive is the class whose score it is.
    """
    if not len(bins):
        return []
    order = [str(i) for i in range(BINS)]
    (cells,) = ScoreCells.of(bins.relabel("bin", order))
    return [_curve(scope, cells), *_lines(scope, cells)]


def _areas(cells: ScoreCells, reference: int) -> tuple[Auc, FloatArray]:
    """Areas by (stratum, group) of one class, and their covariance with the reference's."""
    shape = (len(cells.strata), len(cells.groups))
    if cells.kind != "clustered":
        names = PlacementSums.__dataclass_fields__
        sums = ("n", "n", "n", "d", "d2", "d", "d2")
        if cells.weighted:
            sums = ("w", "w2", "w4", "wd", "wd2", "w2d", "w2d2")
        found = {name: cells.dense(["y"], sum_) for name, sum_ in zip(names, sums)}
        return weighted_delong(PlacementSums(**found)), np.zeros(shape)
    use, cell = cells.places()
    weight, placed = ("w", "wd") if cells.weighted else ("n", "d")
    numbers = np.arange(shape[0] * shape[1]).reshape(shape)
    area, shared = clustered_delong(
        cells.tally.sums[weight][use],
        placed=cells.tally.sums[placed][use],
        truth=cells.tally.codes["y"][use],
        cell=cell[use],
        cluster=cells.tally.codes["cluster"][use],
        reference=np.broadcast_to(numbers[:, [reference]], shape).reshape(-1),
    )
    fields = {f: getattr(area, f).reshape(shape) for f in Auc.__dataclass_fields__}
    return Auc(**fields), shared.reshape(shape)


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


def _curve(scope: Scope, cells: ScoreCells) -> Rows:
    """The weighted share of hits in every tenth of the score, by (stratum, group, tenth)."""
    n = _tenths(cells.dense(["bin"], "n"))
    mass, yes = cells.weight(["bin"]), cells.weight(["y", "bin"])[:, :, 1]
    mass, yes = _tenths(mass), _tenths(yes)
    with np.errstate(all="ignore"):
        share = yes / mass
    members = (n > 0).sum(axis=(1, 2))
    limits = [scope.z, *(bonferroni(scope.level, members=int(k)) for k in members)]
    ends = [wilson(*_effective(cells, yes, mass, q), z=q) for q in limits]
    low, high = ends[0]
    # Each stratum is a family of its own, with its own critical value.
    family_low, family_high = (
        np.stack([ends[1 + k][side][k] for k in range(len(cells.strata))]) for side in (0, 1)
    )
    edges = np.linspace(0, 1, CURVE_BINS + 1)
    places = [f"score {a:.1f}-{b:.1f}" for a, b in pairwise(edges)]
    named = [[p if name is None else f"{name}, {p}" for p in places] for name in cells.strata]
    return scope.block(
        share.shape,
        measure="calibration",
        group=words(cells.groups)[:, None],
        stratum=np.array(named, dtype=object)[:, None, :],
        value=share,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=n,
        method=cells.on_grid("wilson", _astray(cells, n)),
        undefined=choose(n == 0, NOBODY, choose(mass > 0, None, WEIGHTLESS)),
        no_interval=choose((n > 0) & (mass > 0) & np.isnan(low), ONE_CLUSTER),
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


def _rounded_up(error: float) -> str:
    """A bound in two digits, never below itself."""
    step = 10.0 ** (np.floor(np.log10(error)) - 1) if error > 0 else 1.0
    return f"{np.ceil(error / step) * step:.1e}"


def _tenths(values: FloatArray) -> FloatArray:
    return np.asarray(values.reshape(*values.shape[:-1], CURVE_BINS, -1).sum(axis=-1))


def _effective(
    cells: ScoreCells, yes: FloatArray, mass: FloatArray, z: float
) -> tuple[FloatArray, FloatArray]:
    """Hits and cases to put into Wilson's formula, by (stratum, group, tenth)."""
    if cells.kind == "counted":
        return yes, mass
    if cells.kind == "weighted":
        squares = cells.dense(["y", "bin"], "w2")
        hit, miss = _tenths(squares[:, :, 1]), _tenths(squares[:, :, 0])
        found = weighted_rate(yes, mass - yes, hit_squares=hit, miss_squares=miss)
        return found.hits, found.n
    use, cell = cells.places()
    tally = cells.tally
    weight = tally.sums["w" if cells.weighted else "n"][use]
    tenth = tally.codes["bin"][use] // (BINS // CURVE_BINS)
    clustered = clustered_rate(
        weight * tally.codes["y"][use],
        weight,
        cell=cell[use] * CURVE_BINS + tenth,
        cluster=tally.codes["cluster"][use],
        cells=yes.size,
        squares=tally.sums["w2"][use] if cells.weighted else None,
    )
    hits, n = clustered.effective(z=z)
    return hits.reshape(yes.shape), n.reshape(yes.shape)


def _lines(scope: Scope, cells: ScoreCells) -> list[Rows]:
    """Intercept and slope of the recalibration line, by (stratum, group)."""
    rows = cells.dense([], "n")
    mass = cells.weight(["bin"])
    with np.errstate(all="ignore"):
        mean = cells.dense(["bin"], "s") / mass
        # As many as there are rows, so that small weights do not look like no data.
        scale = (rows / mass.sum(axis=-1))[..., None]
    scale = np.where(np.isfinite(scale), scale, 0.0)
    yes = cells.weight(["y", "bin"])[:, :, 1]
    extra: dict[str, Any] = {}
    degrees = np.full(rows.shape, np.inf)
    if cells.kind == "clustered":
        extra["clusters"], degrees = _clusters(cells, scale, rows.shape)
    elif cells.kind == "weighted":
        extra["squares"] = cells.dense(["bin"], "w2") * scale**2
    line = recalibrate(bounded_logit(mean), hits=yes * scale, n=mass * scale, **extra)
    family = bonferroni(scope.level, members=len(cells.groups))
    z, q = (_student(value, degrees) for value in (scope.z, family))
    parts = []
    for what, value, error in (
        ("calibration_intercept", line.in_the_large, line.in_the_large_error),
        ("calibration_slope", line.slope, line.slope_error),
    ):
        reason = choose(rows == 0, NOBODY, "truth has one class, or the scores separate it")
        parts.append(
            scope.block(
                value.shape,
                measure=what,
                group=words(cells.groups),
                stratum=words(cells.strata)[:, None],
                value=value,
                low=value - z * error,
                high=value + z * error,
                family_low=value - q * error,
                family_high=value + q * error,
                n=rows,
                method=cells.method("logistic recalibration"),
                undefined=choose(np.isfinite(value), None, reason),
                no_interval=choose(np.isfinite(value) & np.isnan(error), ONE_CLUSTER),
            )
        )
    return parts


def _clusters(
    cells: ScoreCells, scale: FloatArray, shape: tuple[int, ...]
) -> tuple[ClusteredBins, FloatArray]:
    """What each cluster has in every bin, and the clusters less one of each line."""
    use, cell = cells.places()
    tally = cells.tally
    weight = tally.sums["w" if cells.weighted else "n"][use] * scale.reshape(-1)[cell[use]]
    cluster = tally.codes["cluster"][use]
    pairs = np.unique(np.stack([cell[use], cluster], axis=1), axis=0)
    clusters = np.bincount(pairs[:, 0], minlength=int(np.prod(shape))).reshape(shape)
    held = ClusteredBins(
        line=cell[use],
        bin=tally.codes["bin"][use],
        cluster=cluster,
        hits=weight * tally.codes["y"][use],
        n=weight,
    )
    return held, clusters.astype(np.float64) - 1.0


def _student(z: float, degrees: FloatArray) -> FloatArray:
    """Student's critical value at the level of z; z itself without end of degrees."""
    with np.errstate(all="ignore"):
        t = -stdtrit(np.where(np.isfinite(degrees), degrees, 1.0), ndtr(-z))
    return np.asarray(np.where(np.isfinite(degrees), t, z))
