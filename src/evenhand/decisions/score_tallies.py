"""Tallies of scores: placements for the area under the curve, and histograms."""

from typing import Any

import narwhals as nw

from evenhand.decisions.labels import spellings
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tally import Tally

BINS = 1_000


def is_class(decisions: Decisions, name: str) -> nw.Expr:
    """Whether the truth is this class, as 0 or 1; null where the truth is unknown."""
    truth = nw.col(str(decisions.roles.truth))
    return truth.cast(nw.String).is_in(spellings(name)).cast(nw.Int64)


def scored(
    decisions: Decisions, attribute: Attribute, score: str, name: str
) -> tuple[Frame, list[str]]:
    """Rows with a score, a truth and a group: columns `group…`, `y` (truth is the class), `s`."""
    groups = [f"group{i}" for i in range(len(attribute.columns))]
    keys = [nw.col(c).alias(g) for g, c in zip(groups, attribute.columns)]
    known = ~nw.col(str(decisions.roles.truth)).is_null() & ~nw.col(score).is_null()
    frame = decisions.frame.filter(known).select(
        *keys, is_class(decisions, name).alias("y"), nw.col(score).cast(nw.Float64).alias("s")
    )
    return frame, groups


def placements(decisions: Decisions, attribute: Attribute, score: str, name: str) -> Tally:
    """By group and truth: Σ and Σ² of (rank among all − rank within the truth's own rows).

    Such a rank difference counts the rows of the other kind that lie below, ties as half.
    """
    frame, groups = scored(decisions, attribute, score, name)
    every = nw.col("s").rank("average").over(*groups)
    own = nw.col("s").rank("average").over(*groups, "y")
    ranked = frame.with_columns(every.alias("rank"), own.alias("own"))
    keys: dict[str, nw.Expr] = {g: nw.col(g) for g in groups}
    d = nw.col("rank") - nw.col("own")
    tally = decisions.aggregate({**keys, "y": nw.col("y")}, {"d": d, "d2": d * d}, frame=ranked)
    return decisions.name_groups(tally, attribute)


def score_bins(decisions: Decisions, attribute: Attribute, score: str, name: str) -> Tally:
    """Histogram of a probability score by (group, truth, bin), with the sum of scores per bin."""
    frame, groups = scored(decisions, attribute, score, name)
    scaled: Any = (nw.col("s") * BINS).floor().cast(nw.Int64)
    binned = frame.with_columns(
        nw.when(scaled >= BINS).then(BINS - 1).otherwise(scaled).alias("bin")
    )
    keys: dict[str, nw.Expr] = {g: nw.col(g) for g in groups}
    tally = decisions.aggregate(
        {**keys, "y": nw.col("y"), "bin": nw.col("bin")}, {"s": nw.col("s")}, frame=binned
    )
    return decisions.name_groups(tally, attribute)
