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


def is_weighted(decisions: Decisions) -> bool:
    """Whether rows that have a truth count by a weight, their own or their review's."""
    return bool(decisions.roles.weight or decisions.roles.review_share)


def scored(
    decisions: Decisions, attribute: Attribute, score: str, name: str, *, within: bool = False
) -> tuple[Frame, list[str]]:
    """Rows with a score, a truth and a group, and the keys of the cells they are compared in.

    Columns `group…`, with `within` the `stratum`, `y` (truth is the class), `s`, and where there
    are any `omega`, the weight by which a row stands for others, and `cluster`.
    """
    roles = decisions.roles
    keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    if within:
        keys |= decisions.stratum_key()
    columns = {**keys, "y": is_class(decisions, name), "s": nw.col(score).cast(nw.Float64)}
    needed = [str(roles.truth), score, roles.weight, roles.review_share, roles.together]
    if is_weighted(decisions):
        omega: Any = nw.col(roles.weight).cast(nw.Float64) if roles.weight else nw.lit(1.0)
        if roles.review_share:
            omega = omega / nw.col(roles.review_share).cast(nw.Float64)
        columns["omega"] = omega
    if roles.together:
        columns["cluster"] = nw.col(roles.together)
    known = [~nw.col(column).is_null() for column in needed if column]
    frame = decisions.frame.filter(*known).select(*(e.alias(k) for k, e in columns.items()))
    if within:
        frame = frame.filter(~nw.col("stratum").is_null())
    return frame, list(keys)


def placements(
    decisions: Decisions, attribute: Attribute, score: str, name: str, *, within: bool = False
) -> Tally:
    """Sums of placements d by group, truth and, where there are any, stratum and cluster.

    A row's placement is how many rows of the other truth lie below it in its cell, ties as half:
    Σd and Σd². With weights ω it is how much they weigh: Σω, Σω², Σω⁴, Σωd, Σωd², Σω²d, Σω²d².
    """
    frame, keys = scored(decisions, attribute, score, name, within=within)
    d, omega = nw.col("d"), nw.col("omega")
    sums = {"d": d, "d2": d * d}
    if is_weighted(decisions):
        placed = _weighed(frame, keys)
        squares = omega * omega
        sums = {"w": omega, "w2": squares, "w4": squares * squares, "wd": omega * d}
        sums |= {"wd2": omega * d * d, "w2d": squares * d, "w2d2": squares * d * d}
    else:
        every = nw.col("s").rank("average").over(*keys)
        own = nw.col("s").rank("average").over(*keys, "y")
        placed = frame.with_columns(every.alias("rank"), own.alias("own"))
        placed = placed.with_columns((nw.col("rank") - nw.col("own")).alias("d"))
    return _summed(decisions, attribute, placed, [*keys, "y"], sums)


def score_bins(
    decisions: Decisions, attribute: Attribute, score: str, name: str, *, within: bool = False
) -> Tally:
    """Histogram of a probability score by (group, truth, bin), with the sum of scores per bin.

    With weights ω: Σω, Σω² and Σωs.
    """
    frame, keys = scored(decisions, attribute, score, name, within=within)
    scaled: Any = (nw.col("s") * BINS).floor().cast(nw.Int64)
    binned = frame.with_columns(
        nw.when(scaled >= BINS).then(BINS - 1).otherwise(scaled).alias("bin")
    )
    s, omega = nw.col("s"), nw.col("omega")
    sums = {"s": s}
    if is_weighted(decisions):
        sums = {"w": omega, "w2": omega * omega, "s": omega * s}
    return _summed(decisions, attribute, binned, [*keys, "y", "bin"], sums)


def _weighed(frame: Frame, keys: list[str]) -> Frame:
    """The rows with `d`: the weight of the other truth's rows below, and half of those level."""
    omega, y = nw.col("omega"), nw.col("y")
    split = frame.with_columns((omega * (1 - y)).alias("w0"), (omega * y).alias("w1"))
    split = split.with_columns(
        *(nw.col(w).cum_sum().over(*keys, order_by="s").alias(f"up{w}") for w in ("w0", "w1"))
    )
    # A running sum stops somewhere among equal scores: its greatest value there is the whole.
    level = split.with_columns(
        *(nw.col(f"up{w}").max().over(*keys, "s").alias(f"to{w}") for w in ("w0", "w1")),
        *(nw.col(w).sum().over(*keys, "s").alias(f"at{w}") for w in ("w0", "w1")),
    )
    below = {w: nw.col(f"to{w}") - nw.col(f"at{w}") * 0.5 for w in ("w0", "w1")}
    return level.with_columns(nw.when(y == 1).then(below["w0"]).otherwise(below["w1"]).alias("d"))


def _summed(
    decisions: Decisions, attribute: Attribute, frame: Frame, by: list[str], sums: dict[str, Any]
) -> Tally:
    if decisions.roles.together:
        by = [*by, "cluster"]
    keys: dict[str, nw.Expr] = {key: nw.col(key) for key in by}
    return decisions.name_groups(decisions.aggregate(keys, sums, frame=frame), attribute)
