"""How well norms tell their own group's people from others of the same class."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import CLUSTER, DistantClusters, stay_in_spark
from evenhand.decisions.tallies.held import hold_scores
from evenhand.decisions.tallies.scores import is_weighted, placement_question, row_weight
from evenhand.decisions.tallies.sets import table_name
from evenhand.decisions.tally import Tally
from evenhand.decisions.wide import MOST_HELD
from evenhand.stats.auc import Auc, PlacementSums, placed_area, weighted_delong
from evenhand.stats.estimate import FloatArray
from evenhand.stats.mean_area import clustered_mean_area, clustered_moves, mean_area, pair_weights

# A group, and the column that holds how much each row looks like it.
Norm = tuple[str, str]
AREAS = "norm_areas"
_NUMBERS = ("value", "variance", "positives", "negatives", "degrees")
# The classes of a table in which a norm's scores are compared, as the tallies of scores key them.
_CLASS = "group0"


def norm_areas(
    decisions: Decisions,
    attribute: Attribute,
    *,
    counts: Tally,
    norms: Iterable[Norm],
) -> dict[Norm, Auc]:
    """The area with which each norm tells its group from others of the same class.

    `norms` are pairs of a group and the column of its norm, of which those are looked at whose
    group the attribute has, by its `counts`; an attribute of several columns has no norms. Rows
    need a class, a group and the norm, and where there are any a weight and a cluster. A tally set
    holds areas itself; an old one holds none.
    """
    known = set(counts.labels["group"])
    asked = list(dict.fromkeys(norm for norm in norms if norm[0] in known))
    if decisions.tallies is not None:
        return _stored(decisions, attribute, asked)
    if not asked or len(attribute.columns) > 1:
        return {}
    # What tells people's groups apart is a score of their group, and their class is what is held
    # alike.
    compared = decisions.with_roles(
        truth=attribute.columns[0],
        group=(str(decisions.roles.truth),),
        crossed=False,
        stratum=None,
        stratum_edges=(),
        reference={},
        missing="drop",
    )
    (classes,) = compared.roles.attributes
    weighted = is_weighted(compared)
    if decisions.engine == "spark":
        placed = {norm: _in_spark(compared, classes, norm) for norm in asked}
        return {norm: _area(*found, weighted=weighted) for norm, found in placed.items()}
    # Columns are read together where that is not too much to hold.
    together = counts.total() * len(asked) <= MOST_HELD
    areas = {}
    for norms_read in [asked] if together else [[norm] for norm in asked]:
        columns = list(dict.fromkeys(column for _, column in norms_read))
        held = hold_scores(compared, columns, row_weight(compared))
        for group, column in norms_read:
            tally = held.placements(classes, column, group, within=False)
            areas[group, column] = _area(tally, None, weighted=weighted)
    return areas


def area_table(areas: Mapping[Norm, Auc]) -> Tally:
    """Areas as a table of a tally set: by group and column, with the rows that they rest on."""
    rows = [area.positives + area.negatives for area in areas.values()]
    sums = {name: [getattr(area, name) for area in areas.values()] for name in _NUMBERS}
    return Tally.of(
        {"group": [group for group, _ in areas], "norm": [column for _, column in areas]},
        {name: [float(value) for value in values] for name, values in ({"n": rows} | sums).items()},
    )


def _stored(decisions: Decisions, attribute: Attribute, asked: Iterable[Norm]) -> dict[Norm, Auc]:
    """The areas of these norms in a tally set, where it has them."""
    tallies, name = decisions.tallies, table_name(AREAS, attribute.name)
    if tallies is None or not tallies.holds(name):
        return {}
    tally = tallies.table(name)
    groups, columns = (
        [tally.labels[key][code] for code in tally.codes[key].tolist()] for key in ("group", "norm")
    )
    found = {
        norm: Auc(**{each: np.asarray(tally.sums[each][place]) for each in _NUMBERS})
        for place, norm in enumerate(zip(groups, columns, strict=True))
    }
    return {norm: found[norm] for norm in asked if norm in found}


def _in_spark(
    decisions: Decisions, attribute: Attribute, norm: Norm
) -> tuple[Tally, DistantClusters | None]:
    """Placements by the engine's windows; clusters stay there where they are too many."""
    group, column = norm
    asked = replace(placement_question(decisions, attribute, column, group, False), attribute=None)
    if not decisions.roles.together or not stay_in_spark(decisions, asked):
        return decisions.answer([asked])[0], None
    plain = placement_question(decisions, attribute, column, group, False, cluster=False)
    tally = decisions.answer([replace(plain, attribute=None)])[0]
    return tally, DistantClusters(decisions=decisions, question=asked)


def _area(tally: Tally, distant: DistantClusters | None, *, weighted: bool) -> Auc:
    """The mean over classes, from placements by class, truth and, where there are any, cluster."""
    tally = tally.relabel("y", ["0", "1"])
    rows = tally.dense([_CLASS, "y"], "n")
    weight, placed = ("w", "wd") if weighted else ("n", "d")
    total = tally.dense([_CLASS, "y"], weight)
    omega = pair_weights(rows, total)
    if distant is None and CLUSTER not in tally.labels:
        names = PlacementSums.__dataclass_fields__
        sums = ("n", "n", "n", "d", "d2", "d", "d2")
        if weighted:
            sums = ("w", "w2", "w4", "wd", "wd2", "w2d", "w2d2")
        dense = {name: tally.dense([_CLASS, "y"], own) for name, own in zip(names, sums)}
        return mean_area(weighted_delong(PlacementSums(**dense)), omega)
    above = tally.dense([_CLASS, "y"], placed)[:, 1]
    part = _Moves(
        classes=tally.labels[_CLASS],
        names=(weight, placed),
        total=total,
        area=placed_area(total, above),
        omega=omega,
    )
    moves = part(tally) if distant is None else distant.add_up(part)
    return clustered_mean_area(moves, total=total, placed=above, omega=omega)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moves:
    """What a part of the clusters adds to the error of the mean area.

    A function of a tally of placements by whole clusters; `names` are its sums of weights and of
    weighted placements, the rest that of all clusters.
    """

    classes: tuple[str, ...]
    names: tuple[str, str]
    total: FloatArray
    area: FloatArray
    omega: FloatArray

    def __call__(self, part: Tally) -> dict[str, FloatArray]:
        """Sums by name."""
        part = part.relabel(_CLASS, self.classes).relabel("y", ["0", "1"])
        codes = [part.codes[key] for key in (_CLASS, "y", CLUSTER)]
        use = (np.stack(codes) >= 0).all(axis=0)
        cell, truth, cluster = (code[use].astype(np.int64) for code in codes)
        weight, placed = (part.sums[name][use] for name in self.names)
        return clustered_moves(
            weight,
            placed=placed,
            truth=truth,
            cell=cell,
            cluster=cluster,
            total=self.total,
            area=self.area,
            omega=self.omega,
        )
