"""What scores say beyond decisions: the area under the curve, by group."""

import numpy as np

from evenhand.decisions.roles import Attribute
from evenhand.decisions.score_tallies import placements, score_bins
from evenhand.decisions.table import Decisions
from evenhand.lenses.calibrated_scores import calibration_rows
from evenhand.lenses.lens import Options
from evenhand.lenses.rows import Column, Rows, choose, words
from evenhand.lenses.score_cells import ScoreCells
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
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.families import benjamini_hochberg, bonferroni


def score_rows(
    decisions: Decisions, attribute: Attribute, options: Options, *, classes: dict[str, str]
) -> list[Rows]:
    """Areas and calibration of every class that has a score column, by group.

    `classes` says which column holds the score of which class. Weights, reviews and clusters
    count as they do for rates; with a stratum all of it comes again within each.
    """
    if not classes:
        return []
    parts: list[Rows] = []
    for within in (False, True) if decisions.roles.stratum else (False,):
        cells = ScoreCells.of(
            *(
                placements(decisions, attribute, column, name, within=within)
                for name, column in classes.items()
            )
        )
        if not cells[0].groups or not cells[0].strata:
            continue
        parts += area_rows(decisions, attribute, cells, options, classes=tuple(classes))
        for name, column in classes.items():
            if decisions.is_probability(column):
                bins = score_bins(decisions, attribute, column, name, within=within)
                parts += calibration_rows(bins, attribute, name, options)
    return parts


def area_rows(
    decisions: Decisions,
    attribute: Attribute,
    cells: list[ScoreCells],
    options: Options,
    *,
    classes: tuple[str, ...],
) -> list[Rows]:
    """Areas of every (stratum, group, class), and their gaps to the reference group."""
    groups, strata, kind = cells[0].groups, cells[0].strata, cells[0].method("delong")
    # (stratum, group, class, truth), as rows and as what they weigh.
    counts, weight = (
        np.stack([getattr(cell, name)(["y"], *rest) for cell in cells], axis=2)
        for name, rest in (("dense", ["n"]), ("weight", []))
    )
    reference = _reference(decisions, attribute, counts, groups)
    found = [_areas(cell, reference) for cell in cells]
    area = _stack([one for one, _ in found])
    shared = np.stack([one for _, one in found], axis=2)
    reasons = _reasons(counts, weight)
    same = {
        "lens": "statistical",
        "attribute": attribute.name,
        "class": words(classes),
        "level": options.level,
        "method": kind,
        "stratum": words(strata)[:, None, None],
    }
    z = critical(options.level)
    q = _family(area.value, options.level)
    low, high = area.interval(z=z)
    family_low, family_high = area.interval(z=q)
    cases = counts.min(axis=-1)
    rows = [
        Rows.block(
            area.value.shape,
            **same,
            measure="auc",
            group=words(groups)[:, None],
            value=area.value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=cases,
            undefined=reasons,
        )
    ]
    others = [i for i in range(len(groups)) if i != reference]
    if not others:
        return rows
    mine, theirs = apart(
        _part(area, others), _part(area, [reference]), covariance=shared[:, others]
    )
    value = mine.value - theirs.value
    low, high = auc_gap(mine, theirs, z=z)
    family_low, family_high = auc_gap(mine, theirs, z=_family(value, options.level))
    p = auc_gap_p(mine, theirs)
    missing = choose(reasons[:, others] == None, reasons[:, [reference]], reasons[:, others])  # noqa: E711
    rows.append(
        Rows.block(
            value.shape,
            **same,
            measure="auc_gap",
            group=words([groups[i] for i in others])[:, None],
            reference=groups[reference],
            value=value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=cases[:, others],
            n_reference=np.broadcast_to(cases[:, [reference]], value.shape),
            p=p,
            p_adjusted=np.stack([benjamini_hochberg(stratum) for stratum in p]),
            undefined=choose(np.isfinite(value), None, missing),
        )
    )
    return rows


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


def _family(value: FloatArray, level: float) -> FloatArray:
    """Critical values shaped (stratum, 1, 1); classes share rows, so it is Bonferroni's."""
    members = np.isfinite(value).sum(axis=(1, 2))
    found = [bonferroni(level, members=int(count)) for count in members]
    return np.array(found).reshape(-1, 1, 1)


def _reasons(counts: FloatArray, weight: FloatArray) -> Column:
    """Why an area does not exist, by (stratum, group, class)."""
    found: Column = np.vectorize(undefined_reason, otypes=[object])(counts[..., 1], counts[..., 0])
    for side, name in ((0, "negatives"), (1, "positives")):
        gone = (counts[..., side] > 0) & (weight[..., side] <= 0)
        found = choose(gone, f"all {name} in the group have weight 0", found)
    return found


def _reference(
    decisions: Decisions, attribute: Attribute, counts: FloatArray, groups: tuple[str, ...]
) -> int:
    asked = decisions.roles.reference.get(attribute.name)
    if asked in groups:
        return groups.index(str(asked))
    return int(np.argmax(counts.sum(axis=(0, 2, 3))))
