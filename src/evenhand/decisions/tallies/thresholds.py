"""Score histograms around a threshold, by group, truth and stratum.

Rows are placed by their distance x = score − threshold, so that groups with thresholds of their
own share one grid with an edge at 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.decisions.labels import label
from evenhand.decisions.read import Frame
from evenhand.decisions.roles import Attribute
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.scores import is_class
from evenhand.decisions.tally import Tally
from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.histogram import ScoreHistogram

if TYPE_CHECKING:
    from evenhand.decisions.tallies.grid_margins import Distances

BINS = 1_000
# Hashing cells is what a histogram costs on a large table, where fewer bins are as exact: their
# width is small against the bandwidth, and the estimate itself is taken from the rows.
LARGE, LARGE_BINS = 1_000_000, 250
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Rows by (stratum, group), distance from the threshold and truth.

    `values` has axes (stratum, group, bin) for each sum; the first stratum is the whole table.
    `keys` holds each group's raw column values, `binary` whether the truth was 0 and 1 alone,
    `positions` are the middles of the bins, `lowest` the least distance in each where that
    was asked for. With `scores`, distances are the scores themselves. `totals` are the sums of
    distances by (stratum, group, bin, truth) and `middles` the bins' own, where one pass took them;
    `distances` the cells of the grid, where they came from a tally set.
    """

    tally: Tally
    groups: tuple[str, ...]
    strata: tuple[str | None, ...]
    keys: tuple[Key, ...]
    stratum_keys: tuple[Any, ...]
    values: dict[str, FloatArray]
    positions: FloatArray
    width: float
    binary: bool
    unusable: int
    lowest: FloatArray | None = None
    middles: FloatArray | None = None
    totals: FloatArray | None = None
    distances: "Distances | None" = None

    def histogram(self, stratum: int = 0) -> ScoreHistogram:
        """The score histogram of one stratum, in distances from the threshold."""
        held = {name: array[stratum] for name, array in self.values.items()}

        def split(total: str, yes: str) -> FloatArray:
            return np.stack([held[total] - held[yes], held[yes]], axis=-1)

        weighted = "omega" in held
        return ScoreHistogram.of_counts(
            split("n", "y"),
            positions=self.positions,
            thresholds=0.0,
            weights=split("omega", "omega_y") if weighted else None,
            squares=split("omega2", "omega2_y") if weighted else None,
        )


def truth_expression(decisions: Decisions, positive: str | None) -> nw.Expr:
    """1 where the truth is positive, 0 where not, null where unknown; None trusts 0 and 1."""
    column = nw.col(str(decisions.roles.truth))
    return column.cast(nw.Int64) if positive is None else is_class(decisions, positive)


def counts_as_binary(decisions: Decisions) -> bool:
    """Whether the truth may be read as it is: whole numbers or booleans, nothing said of them."""
    roles = decisions.roles
    kind = decisions.schema[str(roles.truth)]
    return roles.positive is None and (kind.is_integer() or kind == nw.Boolean)


def truth_values(decisions: Decisions) -> Tally:
    """Rows by truth alone, to find the classes."""
    return decisions.aggregate({"truth": nw.col(str(decisions.roles.truth))}, {})


def margin_frame(
    decisions: Decisions,
    attribute: Attribute,
    positive: str | None,
    *,
    scores: bool = False,
    near: float | None = None,
) -> tuple[Frame, list[str]]:
    """Columns `group…`, `stratum`, `x`, `y`, `omega`, `cluster`, and the names of the keys.

    `x` or `y` is null in a row that cannot be used; with `scores`, `x` is the score itself. With
    `near`, only rows less than this far from the threshold: a filter that readers can act on.
    """
    roles = decisions.roles
    keys: dict[str, nw.Expr] = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    keys |= decisions.stratum_key()
    score = nw.col(str(roles.score)).cast(nw.Float64)
    y = truth_expression(decisions, positive)
    distance = score if scores else score - decisions.threshold_expression(roles.score)
    known: nw.Expr | None = None
    columns = [expression.alias(name) for name, expression in keys.items()]
    if roles.weight or roles.review_share:
        omega: Any = nw.col(roles.weight).cast(nw.Float64) if roles.weight else nw.lit(1.0)
        if roles.review_share:
            omega = omega / nw.col(roles.review_share).cast(nw.Float64)
        known = ~y.is_null() & ~omega.is_null() & (omega > 0)
        columns.append(omega.alias("omega"))
    if roles.cluster:
        named = ~y.is_null() & ~nw.col(roles.cluster).is_null()
        known = named if known is None else known & named
        columns.append(nw.col(roles.cluster).alias("cluster"))
    table = decisions.frame if near is None else decisions.frame.filter(distance.abs() < near)
    if known is not None:
        distance = nw.when(known).then(distance).otherwise(nw.lit(None, dtype=nw.Float64))
    return table.select(*columns, y.alias("y"), distance.alias("x")), list(keys)


def margins(
    decisions: Decisions,
    attribute: Attribute,
    *,
    positive: str | None,
    scores: bool = False,
    lowest: bool = False,
    small: bool = False,
) -> Margins:
    """The histogram of distances from the threshold, by group, truth and stratum.

    Coarse first unless the table is known to be small, then finer where it is. Where a few far
    scores squeeze the others into few bins, it is taken over the range of nearly all, the far
    ones in the outermost bins.
    """

    def binned(edges: tuple[float, float], bins: int, clipped: bool) -> Margins:
        return _binned(decisions, attribute, positive, (scores, lowest), edges, bins, clipped)

    edges = _span(decisions, attribute, scores)
    return closer_look(binned, edges, scores=scores, bins=BINS if small else LARGE_BINS)


def closer_look(
    binned: Callable[[tuple[float, float], int, bool], Margins],
    edges: tuple[float, float],
    *,
    scores: bool,
    bins: int,
) -> Margins:
    """Margins in bins that suit the scores: `binned` takes edges, bins and whether to clip."""
    clipped = False
    for _ in range(4):
        found = binned(edges, bins, clipped)
        counts = found.values["n"][0].sum(axis=0)
        squeezed = is_squeezed(counts, bins)
        if squeezed:
            inner = _inner(counts)
            low = found.positions[max(inner[0] - 1, 0)] - found.width
            high = found.positions[min(inner[-1] + 2, counts.size - 1)] + found.width
            close = (low, high) if scores else (min(low, 0.0), max(high, 0.0))
            squeezed = close[1] - close[0] < 0.5 * (edges[1] - edges[0])
            if squeezed:
                edges, clipped = close, True
        fine = bins == BINS or counts.sum() > LARGE
        if fine and not squeezed:
            return found
        bins = LARGE_BINS if bins != BINS and counts.sum() > LARGE else BINS
    return found


def is_squeezed(counts: FloatArray, bins: int) -> bool:
    """Whether few bins are occupied: discrete scores, or some squeezed together by a few far ones.

    A closer look tells which.
    """
    inner = _inner(counts).size
    return 0 < inner <= bins // 10 and int(np.count_nonzero(counts)) > 2


def _inner(counts: FloatArray) -> NDArray[np.intp]:
    share = np.cumsum(counts) / max(counts.sum(), 1.0)
    return np.flatnonzero((share > 0.002) & (share < 0.998))


def _span(decisions: Decisions, attribute: Attribute, scores: bool) -> tuple[float, float]:
    roles = decisions.roles
    low = decisions.survey.get(f"min:{roles.score}", 0.0)
    high = decisions.survey.get(f"max:{roles.score}", 0.0)
    if scores:
        return low, high
    if isinstance(roles.threshold, int | float):
        cut = float(roles.threshold)
        return min(low - cut, 0.0), max(high - cut, 0.0)
    table = thresholds_by_group(decisions, attribute)
    if not table:
        return 0.0, 0.0
    least = min(t for t, _ in table.values())
    most = max(t for _, t in table.values())
    return min(low - most, 0.0), max(high - least, 0.0)


def thresholds_by_group(
    decisions: Decisions, attribute: Attribute
) -> dict[tuple[str | None, ...], tuple[float, float]]:
    """Least and greatest threshold in force for each group, by the labels of its columns."""
    groups = {f"group{i}": nw.col(c) for i, c in enumerate(attribute.columns)}
    cut = decisions.threshold_expression()
    cut = cut if isinstance(cut, nw.Expr) else nw.lit(float(cut))
    frame = decisions.frame.select(
        *(e.alias(k) for k, e in groups.items()), cut.cast(nw.Float64).alias("t")
    )
    columns = decisions.collect(
        frame.group_by(*groups).agg(nw.col("t").min().alias("low"), nw.col("t").max().alias("high"))
    )
    found: dict[tuple[str | None, ...], tuple[float, float]] = {}
    for i, (low, high) in enumerate(zip(columns["low"], columns["high"])):
        if low is not None and low == low:
            found[tuple(label(columns[k][i]) for k in groups)] = (float(low), float(high))
    return found


def _binned(
    decisions: Decisions,
    attribute: Attribute,
    positive: str | None,
    asked: tuple[bool, bool],
    edges: tuple[float, float],
    bins: int,
    clipped: bool,
) -> Margins:
    low, high = edges
    scores, lowest = asked
    frame, keys = margin_frame(decisions, attribute, positive, scores=scores)
    width = (high - low) / bins if high > low else 1.0
    origin = low if scores else 0.0
    first, last = floor((low - origin) / width), ceil((high - origin) / width)
    scaled: Any = (nw.col("x") - origin) * (1.0 / width) if origin else nw.col("x") * (1.0 / width)
    # The threshold has a cell of its own: bins reach up to it from below and start beyond it.
    number = nw.when(nw.col("x") < origin).then(scaled.floor()).otherwise(scaled.ceil())
    if clipped:
        number = number.clip(first, last)
    placed = frame.with_columns(number.cast(nw.Int32).alias("bin"))
    sums: dict[str, nw.Expr] = {"y": nw.col("y")}
    if positive is None:
        sums["y2"] = nw.col("y") * nw.col("y")
    if decisions.roles.weight or decisions.roles.review_share:
        omega = nw.col("omega")
        sums |= {"omega": omega, "omega_y": omega * nw.col("y")}
        sums |= {"omega2": omega * omega, "omega2_y": omega * omega * nw.col("y")}
    named = [e.alias(f"sum:{k}") for k, e in sums.items()]
    wanted = [nw.col(f"sum:{k}").sum() for k in sums]
    if lowest:
        named.append(nw.when(~nw.col("y").is_null()).then(nw.col("x")).alias("x"))
        wanted.append(nw.col("x").min().alias("lowest"))
    selected = placed.select(*keys, "bin", *named)
    # Rows without a truth fall into bins too: `known` counts those with one.
    counts = nw.len().alias("n"), nw.col("sum:y").count().alias("known")
    columns = decisions.collect(selected.group_by(*keys, "bin").agg(*counts, *wanted))
    return _gathered(decisions, attribute, columns, keys, sums, origin, width, (first, last))


def _gathered(
    decisions: Decisions,
    attribute: Attribute,
    columns: Mapping[str, list[Any]],
    keys: list[str],
    sums: Mapping[str, Any],
    origin: float,
    width: float,
    ends: tuple[int, int],
) -> Margins:
    """The engine's answer as arrays by (stratum, group, bin)."""
    held = {"n": columns["n"], "known": columns["known"], **{k: columns[f"sum:{k}"] for k in sums}}
    numbers: dict[str, Sequence[float]] = {
        k: [0.0 if v is None else v for v in values] for k, values in held.items()
    }
    tally = Tally.of({k: columns[k] for k in (*keys, "bin")}, numbers)
    named = decisions.name_groups(tally, attribute)
    bin_of = np.array([np.nan if b is None else b for b in columns["bin"]], dtype=float)
    usable = np.isfinite(bin_of)
    group = named.codes["group"]
    raw = list(zip(*(columns[k] for k in keys if k.startswith("group"))))
    raws = first_values(raw, group, len(named.labels["group"]))
    strata: tuple[str | None, ...] = (None, *named.labels.get("stratum", ()))
    layer = named.codes["stratum"] if "stratum" in named.codes else np.full(len(group), -1)
    stratum_raws = first_values(columns.get("stratum", [None] * len(group)), layer, len(strata) - 1)
    number = np.arange(ends[0], ends[1] + 1)
    cells = number.size
    shape = (len(strata), len(named.labels["group"]), cells)
    use = usable & (group >= 0)
    column = np.where(usable, bin_of, 0).astype(np.intp) - ends[0]
    column = np.clip(column, 0, cells - 1)

    def dense(values: FloatArray) -> FloatArray:
        array = np.zeros(shape)
        np.add.at(array[0], (group[use], column[use]), values[use])
        inside = use & (layer >= 0)
        np.add.at(array, (layer[inside] + 1, group[inside], column[inside]), values[inside])
        return array

    lowest = None
    if "lowest" in columns:
        lowest = np.full(shape[1:], np.inf)
        least = np.array([np.inf if v is None else v for v in columns["lowest"]])
        np.minimum.at(lowest, (group[use], column[use]), least[use])
    values = {name: dense(array) for name, array in tally.sums.items() if name != "n"}
    values["n"] = values.pop("known")
    return Margins(
        tally=named,
        groups=named.labels["group"],
        strata=strata,
        keys=raws,
        stratum_keys=stratum_raws,
        values=values,
        positions=origin + (number - 0.5 * np.sign(number)) * width,
        width=width,
        binary="y2" not in values or bool(np.array_equal(values["y2"], values["y"])),
        unusable=int(tally.sums["n"][group >= 0].sum() - values["n"][0].sum()),
        lowest=lowest,
    )


def first_values(raw: Sequence[Any], codes: NDArray[np.int64], size: int) -> tuple[Any, ...]:
    """The raw value behind each code, from the first row that has it."""
    found, where = np.unique(codes, return_index=True)
    place = dict(zip(found.tolist(), where.tolist()))
    return tuple(raw[place[code]] for code in range(size))
