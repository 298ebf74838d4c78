"""What scores say beyond decisions: area under the curve and calibration, by group."""

from itertools import pairwise

import numpy as np

from evenhand.decisions.roles import Attribute
from evenhand.decisions.score_tallies import BINS, placements, score_bins
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally
from evenhand.lenses.lens import Options
from evenhand.lenses.rows import Rows, choose, words
from evenhand.stats.auc import Auc, auc_gap, auc_gap_p, delong, undefined_reason
from evenhand.stats.calibration import bounded_logit, recalibrate
from evenhand.stats.estimate import critical
from evenhand.stats.families import benjamini_hochberg, bonferroni
from evenhand.stats.rates import wilson

CURVE_BINS = 10


def score_rows(
    decisions: Decisions, attribute: Attribute, options: Options, *, classes: dict[str, str]
) -> list[Rows]:
    """Areas and calibration of every class that has a score column, by group.

    `classes` says which column holds the score of which class.
    """
    areas, parts = [], []
    names = tuple(classes)
    groups: tuple[str, ...] = ()
    for name, column in classes.items():
        tally = placements(decisions, attribute, column, name)
        groups = tally.labels["group"]
        areas.append(_areas(tally))
        if decisions.is_probability(column):
            bins = score_bins(decisions, attribute, column, name)
            parts += calibration_rows(bins, attribute, name, options)
    if not groups:
        return []
    stacked = Auc(
        **{f: np.stack([getattr(a, f) for a in areas], axis=1) for f in Auc.__dataclass_fields__}
    )
    reference = _reference(decisions, attribute, stacked, groups)
    return [*_area_rows(stacked, attribute, groups, names, reference, options), *parts]


def calibration_rows(bins: Tally, attribute: Attribute, name: str, options: Options) -> list[Rows]:
    """Observed share per tenth of the score, and the line of logistic recalibration, by group."""
    groups = bins.labels["group"]
    order = [str(i) for i in range(BINS)]
    by_truth = bins.relabel("bin", order).relabel("y", ["0", "1"])
    n = by_truth.dense(["group", "bin"], "n")
    hits = by_truth.dense(["group", "y", "bin"], "n")[:, 1]
    total = by_truth.dense(["group", "bin"], "s")
    z = critical(options.level)
    wide_n, wide_hits = (x.reshape(len(groups), CURVE_BINS, -1).sum(-1) for x in (n, hits))
    low, high = wilson(wide_hits, wide_n, z=z)
    q = bonferroni(options.level, members=int((wide_n > 0).sum()))
    family_low, family_high = wilson(wide_hits, wide_n, z=q)
    edges = np.linspace(0, 1, CURVE_BINS + 1)
    with np.errstate(all="ignore"):
        share = wide_hits / wide_n
        mean = total / n
    shared = {
        "lens": "statistical",
        "attribute": attribute.name,
        "class": name,
        "level": options.level,
    }
    curve = Rows.block(
        share.shape,
        **shared,
        measure="calibration",
        group=words(groups)[:, None],
        stratum=words([f"score {a:.1f}-{b:.1f}" for a, b in pairwise(edges)]),
        value=share,
        low=low,
        high=high,
        family_low=family_low,
        family_high=family_high,
        n=wide_n,
        method="wilson",
        undefined=choose(wide_n == 0, "no cases in the group", None),
    )
    line = recalibrate(bounded_logit(mean), hits=hits, n=n)
    q = bonferroni(options.level, members=len(groups))
    told = [curve]
    for what, value, error in (
        ("calibration_intercept", line.in_the_large, line.in_the_large_error),
        ("calibration_slope", line.slope, line.slope_error),
    ):
        told.append(
            Rows.block(
                value.shape,
                **shared,
                measure=what,
                group=words(groups),
                value=value,
                low=value - z * error,
                high=value + z * error,
                family_low=value - q * error,
                family_high=value + q * error,
                n=line.n,
                method="logistic recalibration",
                undefined=choose(
                    np.isfinite(value), None, "truth has one class, or the scores separate it"
                ),
            )
        )
    return told


def _areas(tally: Tally) -> Auc:
    both = tally.relabel("y", ["0", "1"])
    n, d, d2 = (both.dense(["group", "y"], s) for s in ("n", "d", "d2"))
    return delong(
        n[:, 1],
        n[:, 0],
        placement=d[:, 1],
        placement_squares=d2[:, 1],
        negative_placement_squares=d2[:, 0],
    )


def _area_rows(
    area: Auc,
    attribute: Attribute,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
    reference: int,
    options: Options,
) -> list[Rows]:
    z = critical(options.level)
    # Areas of different classes share rows; Bonferroni holds whatever their dependence.
    q = bonferroni(options.level, members=int(np.isfinite(area.value).sum()))
    low, high = area.interval(z=z)
    family_low, family_high = area.interval(z=q)
    reasons = np.vectorize(undefined_reason, otypes=[object])(area.positives, area.negatives)
    shared = {
        "lens": "statistical",
        "attribute": attribute.name,
        "class": words(classes),
        "level": options.level,
        "method": "delong",
    }
    rows = [
        Rows.block(
            area.value.shape,
            **shared,
            measure="auc",
            group=words(groups)[:, None],
            value=area.value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=np.minimum(area.positives, area.negatives),
            undefined=reasons,
        )
    ]
    others = [i for i in range(len(groups)) if i != reference]
    if not others:
        return rows

    def part(index: list[int]) -> Auc:
        return Auc(**{f: getattr(area, f)[index] for f in Auc.__dataclass_fields__})

    mine, theirs = part(others), part([reference])
    low, high = auc_gap(mine, theirs, z=z)
    q = bonferroni(options.level, members=int(np.isfinite(mine.value - theirs.value).sum()))
    family_low, family_high = auc_gap(mine, theirs, z=q)
    p = auc_gap_p(mine, theirs)
    rows.append(
        Rows.block(
            mine.value.shape,
            **shared,
            measure="auc_gap",
            group=words([groups[i] for i in others])[:, None],
            reference=groups[reference],
            value=mine.value - theirs.value,
            low=low,
            high=high,
            family_low=family_low,
            family_high=family_high,
            n=np.minimum(mine.positives, mine.negatives),
            n_reference=np.minimum(theirs.positives, theirs.negatives),
            p=p,
            p_adjusted=benjamini_hochberg(p),
            undefined=choose(
                np.isfinite(mine.value - theirs.value),
                None,
                choose(reasons[others] == None, reasons[[reference]], reasons[others]),  # noqa: E711
            ),
        )
    )
    return rows


def _reference(
    decisions: Decisions, attribute: Attribute, area: Auc, groups: tuple[str, ...]
) -> int:
    asked = decisions.roles.reference.get(attribute.name)
    if asked in groups:
        return groups.index(str(asked))
    return int(np.argmax(area.positives.sum(axis=1) + area.negatives.sum(axis=1)))
