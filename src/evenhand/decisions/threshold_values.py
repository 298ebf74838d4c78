"""Single values beside a threshold: distinct scores of discrete groups, and the nearest rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.decisions.labels import label
from evenhand.decisions.local_tallies import cell_condition
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.threshold_tallies import Margins, margin_frame
from evenhand.stats.estimate import FloatArray
from evenhand.stats.histogram import ScoreHistogram


def score_values(
    decisions: Decisions,
    attribute: Attribute,
    *,
    positive: str | None,
    cells: Sequence[Mapping[str, Any]],
) -> list[ScoreHistogram]:
    """Counts at every distinct distance from the threshold, one histogram for each cell."""
    frame, _ = margin_frame(decisions, attribute, positive)
    keys = list(cells[0])
    here = nw.any_horizontal(*(cell_condition(cell) for cell in cells), ignore_nulls=True)
    known = frame.filter(here & ~nw.col("x").is_null() & ~nw.col("y").is_null())
    sums = []
    if decisions.roles.weight or decisions.roles.review_share:
        known = known.with_columns((nw.col("omega") * nw.col("omega")).alias("omega2"))
        sums = ["omega", "omega2"]
    columns = decisions.collect(
        known.select(*keys, "x", "y", *sums)
        .group_by(*keys, "x", "y")
        .agg(nw.len().alias("n"), *(nw.col(name).sum() for name in sums))
    )
    raw = [tuple(map(label, row)) for row in zip(*(columns[k] for k in keys))]
    distance, truth = np.array(columns["x"], float), np.array(columns["y"], np.intp)
    found = []
    for cell in cells:
        name = tuple(label(cell[k]) for k in keys)
        mine = np.array([row == name for row in raw], dtype=bool)
        values, where = np.unique(distance[mine], return_inverse=True)

        def counted(
            column: str, mine: Any = mine, where: Any = where, size: Any = values.size
        ) -> FloatArray:
            flat = where.reshape(-1) * 2 + truth[mine]
            totals = np.array(columns[column], float)[mine]
            return np.bincount(flat, totals, minlength=2 * size).astype(float).reshape(1, size, 2)

        found.append(
            ScoreHistogram.of_counts(
                counted("n"),
                positions=values,
                thresholds=0.0,
                weights=counted("omega") if sums else None,
                squares=counted("omega2") if sums else None,
            )
        )
    return found


def nearest_rows(
    decisions: Decisions, attribute: Attribute, found: Margins, *, count: int
) -> dict[str, list[dict[str, Any]]]:
    """The rows nearest the threshold in each group: score, truth and, where named, item and text.

    Only rows within the distance that holds `count` rows by the histogram leave the engine.
    """
    roles = decisions.roles
    groups = [f"group{i}" for i in range(len(attribute.columns))]
    named = {"item": roles.item, "text": roles.text}
    shown = {name: column for name, column in named.items() if column}
    extra = decisions.frame.select(
        *(nw.col(c).alias(g) for g, c in zip(groups, attribute.columns)),
        *(nw.col(column).alias(name) for name, column in shown.items()),
        nw.col(str(roles.score)).cast(nw.Float64).alias("score"),
        nw.col(str(roles.truth)).alias("truth"),
        (nw.col(str(roles.score)).cast(nw.Float64) - decisions.threshold_expression()).alias("x"),
    ).filter(~nw.col("truth").is_null())
    counts = found.histogram().counts.sum(axis=2)
    positions = np.abs(found.histogram().positions)
    conditions = []
    for g, raw in enumerate(found.keys):
        order = np.argsort(positions[g], kind="stable")
        enough = np.searchsorted(np.cumsum(counts[g][order]), count)
        reach = positions[g][order][min(enough, order.size - 1)] + 2 * found.width
        cell = dict(zip(groups, raw))
        conditions.append(cell_condition(cell) & (nw.col("x").abs() <= float(reach)))
    columns = decisions.collect(extra.filter(nw.any_horizontal(*conditions, ignore_nulls=True)))
    place = {tuple(map(label, raw)): name for raw, name in zip(found.keys, found.groups)}
    nearest: dict[str, list[dict[str, Any]]] = {name: [] for name in found.groups}
    ranked = sorted(
        range(len(columns["x"])),
        # Ties go by name, so that every engine shows the same rows.
        key=lambda i: (abs(columns["x"][i]), *(str(columns[k][i]) for k in (*shown, "truth"))),
    )
    for i in ranked:
        name = place.get(tuple(label(columns[g][i]) for g in groups))
        if name is not None and len(nearest[name]) < count:
            row = {k: columns[k][i] for k in (*shown, "score")}
            nearest[name].append({**row, "truth": label(columns["truth"][i])})
    return nearest
