"""Calibration of scores by group: observed shares against scores, and the recalibration line."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from evenhand.decisions.roles import Attribute
from evenhand.decisions.score_tallies import BINS
from evenhand.decisions.tally import Tally
from evenhand.lenses.compare_groups import NOBODY, ONE_CLUSTER, WEIGHTLESS
from evenhand.lenses.lens import Options
from evenhand.lenses.rows import Rows, choose, words
from evenhand.lenses.score_cells import ScoreCells
from evenhand.stats.calibration import ClusteredBins, bounded_logit, recalibrate
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import bonferroni
from evenhand.stats.rates import wilson
from evenhand.stats.weights import clustered_rate, weighted_rate

CURVE_BINS = 10


def calibration_rows(bins: Tally, attribute: Attribute, name: str, options: Options) -> list[Rows]:
    """Observed share per tenth of the score, and the line of logistic recalibration, by group."""
    if not len(bins):
        return []
    same = {
        "lens": "statistical",
        "attribute": attribute.name,
        "class": name,
        "level": options.level,
    }
    order = [str(i) for i in range(BINS)]
    (cells,) = ScoreCells.of(bins.relabel("bin", order))
    return [_curve(cells, same, options.level), *_lines(cells, same, options.level)]


def _curve(cells: ScoreCells, same: dict[str, Any], level: float) -> Rows:
    """The weighted share of hits in every tenth of the score, by (stratum, group, tenth)."""
    n = _tenths(cells.dense(["bin"], "n"))
    mass, yes = cells.weight(["bin"]), cells.weight(["y", "bin"])[:, :, 1]
    mass, yes = _tenths(mass), _tenths(yes)
    with np.errstate(all="ignore"):
        share = yes / mass
    z = critical(level)
    limits = [z, *(bonferroni(level, members=int(k)) for k in (n > 0).sum(axis=(1, 2)))]
    found = [wilson(*_effective(cells, yes, mass, q), z=q) for q in limits]
    low, high = found[0]
    # Each stratum is a family of its own, with its own critical value.
    family_low, family_high = (
        np.stack([found[1 + k][side][k] for k in range(len(cells.strata))]) for side in (0, 1)
    )
    edges = np.linspace(0, 1, CURVE_BINS + 1)
    places = [f"score {a:.1f}-{b:.1f}" for a, b in pairwise(edges)]
    named = [[p if name is None else f"{name}, {p}" for p in places] for name in cells.strata]
    return Rows.block(
        share.shape,
        **same,
        measure="calibration",
        group=words(cells.groups)[:, None],
        stratum=np.array(named, dtype=object)[:, None, :],
        value=share,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=n,
        method=cells.method("wilson"),
        undefined=choose(
            n == 0, NOBODY, choose(mass > 0, choose(np.isnan(low), ONE_CLUSTER), WEIGHTLESS)
        ),
    )


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


def _lines(cells: ScoreCells, same: dict[str, Any], level: float) -> list[Rows]:
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
    family = bonferroni(level, members=len(cells.groups))
    z, q = (_student(value, degrees) for value in (critical(level), family))
    told = []
    for what, value, error in (
        ("calibration_intercept", line.in_the_large, line.in_the_large_error),
        ("calibration_slope", line.slope, line.slope_error),
    ):
        reason = choose(rows == 0, NOBODY, "truth has one class, or the scores separate it")
        told.append(
            Rows.block(
                value.shape,
                **same,
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
                undefined=choose(np.isfinite(value), choose(np.isnan(error), ONE_CLUSTER), reason),
            )
        )
    return told


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
