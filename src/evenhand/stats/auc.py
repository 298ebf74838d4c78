"""Area under the ROC curve from sums of placements: DeLong's variance, and differences.

A positive's placement is d = R − R⁺, its average rank among all rows minus that among the
positives: the number of negatives below it. A negative's is e = R − R⁻, the positives below it.
Σd, Σd², Σe and Σe² per cell are all that is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import Interval, square_and_add, wilson
from evenhand.stats.special import expit, logit, ndtr, stdtrit
from evenhand.stats.weights import add_up, distinct

# How many cases' worth the model variance counts beside DeLong's own; see `Auc.effective_n`.
_PRIOR = 2.0
_PRIOR_CASES = 10.0


# From so many scores on, sorting by their first bits pays; up to so many, looking others up.
FEW_SCORES, MOST_LOOKED_UP = 1_000, 2**13


@dataclass(frozen=True, slots=True, kw_only=True)
class Auc:
    """Areas per cell with DeLong's variance; NaN without positives or without negatives.

    `variance` is NaN with a single positive or negative; the interval then still exists.
    """

    value: FloatArray
    variance: FloatArray
    positives: FloatArray
    negatives: FloatArray
    degrees: FloatArray

    def effective_n(self, *, z: ArrayLike) -> FloatArray:
        """Number of cases for which Wilson's interval has the width that this area needs.

        Few misplaced cases make DeLong's variance too small (coverage 25–90 % at areas of 0.95
        and more), so it is averaged with the variance of exponential scores (Hanley & McNeil
        1982, the larger way round) weighing two cases, gets Welch's t, and is kept under its
        bound area·(1 − area) ÷ min(positives, negatives).
        """
        critical = np.asarray(z, np.float64)
        least = np.minimum(self.positives, self.negatives)
        with np.errstate(all="ignore"):
            spread = self.value * (1 - self.value)
            t = -stdtrit(self.degrees, ndtr(-critical))
            # At an area of 0 or 1 a variance is what rounding leaves of none.
            known = (self.variance > 0) & (spread > 0)
            own = np.where(known, self.variance / spread * (t / critical) ** 2, 0.0)
            informative = np.where(np.isfinite(self.variance), 4 * spread * least, 0.0)
            inverse = (informative * own + _PRIOR * self._model()) / (informative + _PRIOR)
            n = np.maximum(1 / inverse, least)
        return np.where(least > 0, n, np.nan)

    def interval(self, *, z: ArrayLike) -> Interval:
        """Limits of the area, inside [0, 1] and never of zero width."""
        n = self.effective_n(z=z)
        return wilson(self.value * n, n, z=z)

    def _shrunk(self) -> FloatArray:
        least = np.minimum(self.positives, self.negatives)
        return np.asarray((self.value * least + 1) / (least + 2))

    def _model(self) -> FloatArray:
        """Variance under exponential scores, relative to area·(1 − area)."""
        area = self._shrunk()
        first, second = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
        more, other = self.positives - 1, self.negatives - 1
        pairs = np.maximum(more * first + other * second, more * second + other * first)
        spread = area * (1 - area)
        return np.asarray((spread + pairs) / (self.positives * self.negatives) / spread)


def sorted_placements(
    scores: FloatArray,
    cell: NDArray[np.int64],
    *,
    lines: int,
    by_line: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Sums of placements and of their squares by cell, 2·line + truth; ties count as half.

    The side of a line with fewer rows is sorted; where the other's rows fall among them says as
    much of both. `by_line` are rows in the order of their lines, and where each line begins, for
    whoever asks of the same lines again.

    Examples:
        >>> scores, truth = np.array([0.2, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1])
        >>> d, d2 = sorted_placements(scores, truth, lines=1)
        >>> d.tolist(), d2.tolist()
        ([0.5, 3.5], [0.25, 6.25])
    """
    order, starts = rows_by_cell(cell // 2, lines) if by_line is None else by_line
    held, positive = scores[order], (cell & 1).astype(bool)[order]
    sums = np.zeros((2, 2 * lines))
    for line in np.flatnonzero(np.diff(starts) > 0).tolist():
        part = slice(starts[line], starts[line + 1])
        values, yes = held[part], positive[part]
        sides = values[~yes], values[yes]
        if not sides[0].size or not sides[1].size:
            continue
        sums[:, 2 * line], sums[:, 2 * line + 1] = _both_sides(*sides)
    return sums[0], sums[1]


def _both_sides(low: FloatArray, high: FloatArray) -> tuple[tuple[float, float], ...]:
    """Sums over each array of how much of the other lies below its values, and of its squares.

    What is level counts as half. The values of neither come in their order.
    """
    if low.size < high.size:
        mine, theirs = _both_sides(high, low)
        return theirs, mine
    if high.size > MOST_LOOKED_UP:
        low, high = in_order(low), in_order(high)
        left, right = (np.searchsorted(low, high, side) for side in ("left", "right"))
        # A value of `low` lies above those that come before its place, and not below its equals.
        above, upto = (
            np.cumsum(np.bincount(each, minlength=low.size + 1)) for each in (right, left)
        )
        return _summed((above[: low.size] + upto[: low.size]) / 2), _summed((left + right) / 2)
    high = np.sort(high)
    left, tied, right = _looked_up(low, high)
    # Places are few: how many values have each says as much as the values do.
    at_left = np.bincount(left, minlength=high.size + 1)
    at_right = at_left.copy()
    np.subtract.at(at_right, left[tied], 1)
    np.add.at(at_right, right, 1)
    below, upto = (np.cumsum(each)[: high.size] for each in (at_right, at_left))
    place = np.arange(high.size + 1.0)
    level = (left[tied] + right) / 2
    alone = at_left - np.bincount(left[tied], minlength=high.size + 1)
    own = (alone * place).sum() + level.sum(), (alone * place**2).sum() + (level**2).sum()
    return own, _summed((below + upto) / 2)


def _summed(d: FloatArray) -> tuple[float, float]:
    # Not d @ d: waking threads for it takes longer than the sum.
    return float(d.sum()), float(np.square(d).sum())


def _looked_up(
    values: FloatArray, among: FloatArray
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Where values in no order fall among a few that are sorted: left of their equals.

    Also which of them have equals there, and their places to the right of those. Buckets of equal
    width that hold none of the few tell a value's place at once.
    """
    buckets = 2**16
    with np.errstate(all="ignore"):
        scale = (buckets - 3) / (among[-1] - among[0])
    if values.size < FEW_SCORES or not (np.isfinite(scale) and scale > 0):
        left, right = (np.searchsorted(among, values, side) for side in ("left", "right"))
        tied = np.flatnonzero(left != right)
        return left, tied, right[tied]

    def bucket(of: FloatArray) -> NDArray[np.uint16]:
        # The first and the last one are for what lies beyond the few.
        place: FloatArray = np.clip((of - among[0]) * scale + 1.0, 0.0, buckets - 1.0)
        return place.astype(np.uint16)

    held = np.bincount(bucket(among), minlength=buckets)
    # Beside its place, whether a bucket holds any: negative where it does.
    table = np.where(held > 0, -1, np.cumsum(held) - held)
    left = table[bucket(values)]
    unknown = np.flatnonzero(left < 0)
    close = values[unknown]
    left[unknown], right = (np.searchsorted(among, close, side) for side in ("left", "right"))
    apart = right != left[unknown]
    return left, unknown[apart], right[apart]


def row_placements(
    scores: FloatArray, cell: NDArray[np.int64], weights: FloatArray | None, *, lines: int
) -> FloatArray:
    """The placement of every row: the weight of its line's rows of the other truth below it.

    Examples:
        >>> scores, truth = np.array([0.9, 0.4, 0.6, 0.4]), np.array([1, 1, 0, 0])
        >>> row_placements(scores, truth, np.array([1.0, 3, 2, 1]), lines=1).tolist()
        [3.0, 0.5, 3.0, 1.5]
    """
    order, starts = rows_by_cell(cell, 2 * lines)
    placed = np.zeros(scores.size)
    for line in np.flatnonzero(np.diff(starts[::2]) > 0).tolist():
        first, middle, last = starts[2 * line : 2 * line + 3]
        sides = []
        for rows in (order[first:middle], order[middle:last]):
            rows = rows[np.argsort(scores[rows], kind="stable")]
            mass = np.ones(rows.size) if weights is None else weights[rows]
            sides.append((rows, scores[rows], np.concatenate([[0.0], np.cumsum(mass)])))
        for (rows, mine, _), (_, theirs, below) in (sides, sides[::-1]):
            left, right = (np.searchsorted(theirs, mine, side) for side in ("left", "right"))
            placed[rows] = (below[left] + below[right]) / 2
    return placed


def in_order(scores: FloatArray) -> FloatArray:
    """The scores sorted: by their first 16 bits in one pass, then the little that is left.

    Examples:
        >>> in_order(np.array([0.7, 0.1, 0.4])).tolist()
        [0.1, 0.4, 0.7]
    """
    if scores.size < FEW_SCORES:
        return np.sort(scores)
    low, high = scores.min(), scores.max()
    with np.errstate(all="ignore"):
        scale = (2**16 - 1) / (high - low)
    if not (np.isfinite(scale) and scale > 0):
        return np.sort(scores)
    first = np.argsort(((scores - low) * scale).astype(np.uint16), kind="stable")
    # Of what is nearly in order the stable sort makes short work.
    return np.sort(scores[first], kind="stable")


def rows_by_cell(cell: NDArray[np.int64], cells: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows in the order of their cells, and where each cell begins; the last one ends the rows.

    Examples:
        >>> [part.tolist() for part in rows_by_cell(np.array([1, 0, 1]), 2)]
        [[1, 0, 2], [0, 1, 3]]
    """
    # Numbers of two bytes are sorted in one pass over each.
    short = cell.astype(np.uint16) if cells <= 2**16 else cell
    order = np.argsort(short, kind="stable")
    sizes = np.bincount(cell, minlength=cells)
    return order, np.concatenate([[0], np.cumsum(sizes)])


def delong(
    positives: ArrayLike,
    negatives: ArrayLike,
    *,
    placement: ArrayLike,
    placement_squares: ArrayLike,
    negative_placement_squares: ArrayLike,
) -> Auc:
    """Area under the curve: the chance that a positive scores above a negative, ties as half.

    Sums per cell: Σd and Σd² over the positives, Σe² over the negatives (Σe follows).

    Examples:
        >>> area = delong(2, 3, placement=5, placement_squares=13, negative_placement_squares=1)
        >>> print(f"{area.value:.4f} ± {area.variance ** 0.5:.4f}")
        0.8333 ± 0.2357
        >>> low, high = area.interval(z=1.96)
        >>> print(f"{low:.2f} {high:.2f}")
        0.24 0.99
    """
    n1, n0, d, d2, e2 = (
        np.asarray(part, np.float64)
        for part in (
            positives,
            negatives,
            placement,
            placement_squares,
            negative_placement_squares,
        )
    )
    with np.errstate(all="ignore"):
        value = d / (n1 * n0)
        of_positives = np.maximum(d2 / n0**2 - n1 * value**2, 0.0) / (n1 - 1) / n1
        of_negatives = np.maximum(e2 / n1**2 - n0 * (1 - value) ** 2, 0.0) / (n0 - 1) / n0
        both = (n1 > 1) & (n0 > 1)
        variance = np.where(both, of_positives + of_negatives, np.nan)
        degrees = variance**2 / (of_positives**2 / (n1 - 1) + of_negatives**2 / (n0 - 1))
    return Auc(value=value, variance=variance, positives=n1, negatives=n0, degrees=degrees)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSums:
    """Sums over weighted rows by truth in the last axis, negatives first.

    A row's placement d is the weight of the rows of the other truth below it, ties as half.
    `weight` Σω, `weight_squares` Σω², `weight_fourths` Σω⁴, `placed` Σωd, `placed_squares` Σωd²,
    `squares_placed` Σω²d, `squares_placed_squares` Σω²d².
    """

    weight: FloatArray
    weight_squares: FloatArray
    weight_fourths: FloatArray
    placed: FloatArray
    placed_squares: FloatArray
    squares_placed: FloatArray
    squares_placed_squares: FloatArray


def weighted_delong(sums: PlacementSums) -> Auc:
    """Area under the curve of weighted rows, with the variance of its linearisation.

    Equal to `delong` where every weight is 1. Uneven weights make that variance too small as
    often as not: it is drawn towards what the weights alone imply, if that is more, with the
    weight of ten cases, and has (Σω²)² ÷ Σω⁴ − 1 degrees of freedom. `positives` and `negatives`
    are effective numbers (Kish's).

    Examples:
        >>> n, d, d2 = np.array([3.0, 2]), np.array([1.0, 5]), np.array([1.0, 13])
        >>> area = weighted_delong(PlacementSums(
        ...     weight=n, weight_squares=n, weight_fourths=n, placed=d, placed_squares=d2,
        ...     squares_placed=d, squares_placed_squares=d2))
        >>> print(f"{area.value:.4f} ± {area.variance ** 0.5:.4f}")
        0.8333 ± 0.2357
    """
    own, other, squares = sums.weight, sums.weight[..., ::-1], sums.weight_squares
    with np.errstate(all="ignore"):
        area = np.clip(sums.placed[..., 1] / (own[..., 1] * own[..., 0]), 0.0, 1.0)
        mean = np.stack([1 - area, area], axis=-1)
        seen = sums.squares_placed_squares / other**2 - 2 * mean * sums.squares_placed / other
        seen = np.maximum(seen + mean**2 * squares, 0.0)
        implied = np.maximum(sums.placed_squares / other**2 - mean**2 * own, 0.0) * squares / own
        n, steady = own**2 / squares, squares**2 / sums.weight_fourths
        drawn = (n * seen + _PRIOR_CASES * np.maximum(seen, implied)) / (n + _PRIOR_CASES)
        parts = np.where(n > 1, drawn / own**2 * n / (n - 1), np.nan)
        variance = parts.sum(axis=-1)
        degrees = variance**2 / (parts**2 / (steady - 1)).sum(axis=-1)
    n = np.where(own > 0, n, 0.0)
    return Auc(
        value=area, variance=variance, positives=n[..., 1], negatives=n[..., 0], degrees=degrees
    )


def clustered_delong(
    weight: FloatArray,
    *,
    placed: FloatArray,
    truth: NDArray[np.int64],
    cell: NDArray[np.int64],
    cluster: NDArray[np.int64],
    reference: NDArray[np.int64],
) -> tuple[Auc, FloatArray]:
    """Areas of cells whose rows come in clusters, and their covariance with a reference cell.

    One row for each (cell, truth, cluster) that occurs: Σω and Σωd. A cluster moves the area by
    its positives and its negatives together (Obuchowski 1997); the variance is that of these
    moves over K clusters, by K/(K − 1), and `degrees` are K − 1. Each cluster counts as one case
    for `positives` and `negatives`. `reference` names for each cell the one it is compared with.

    Examples:
        >>> one = np.ones(5)
        >>> area, _ = clustered_delong(one, placed=np.array([2.0, 3, 0, 0, 1]),
        ...     truth=np.array([1, 1, 0, 0, 0]), cell=np.zeros(5, int), cluster=np.arange(5),
        ...     reference=np.zeros(1, int))
        >>> print(f"{area.value[0]:.4f} {area.degrees[0]:.0f}")
        0.8333 4
    """
    cells, sides = len(reference), 2 * cell + truth
    total, above = (add_up(each, sides, 2 * cells).reshape(cells, 2) for each in (weight, placed))
    whole = {"total": total, "area": placed_area(total, above[:, 1])}
    products = area_products(
        weight, placed=placed, truth=truth, cell=cell, cluster=cluster, reference=reference, **whole
    )
    return products_area(products, reference=reference, **whole)


def placed_area(total: FloatArray, placed: FloatArray) -> FloatArray:
    """Areas of cells from their weight by truth, (cells, 2), and from Σωd of the positives."""
    with np.errstate(all="ignore"):
        return np.clip(placed / (total[:, 0] * total[:, 1]), 0.0, 1.0)


def area_products(
    weight: FloatArray,
    *,
    placed: FloatArray,
    truth: NDArray[np.int64],
    cell: NDArray[np.int64],
    cluster: NDArray[np.int64],
    reference: NDArray[np.int64],
    total: FloatArray,
    area: FloatArray,
) -> dict[str, FloatArray]:
    """Sums over some clusters of products of how far each moves areas; those of all can be added.

    Rows as for `clustered_delong`, of these clusters alone, each whole; `total` and `area` are
    those of all clusters: the weight by (cell, truth), and the areas.
    """
    cells = len(reference)
    with np.errstate(all="ignore"):
        mean = np.where(truth == 1, area[cell], 1 - area[cell])
        move = (placed / total[cell, 1 - truth] - mean * weight) / total[cell, truth]
        move = np.where(truth == 1, move, -move)
    width = int(cluster.max(initial=0)) + 1
    pairs, at = distinct(cell * width + cluster)
    moved = add_up(move, at, len(pairs))
    which, whose = pairs // width, pairs % width
    shared = np.zeros(cells)
    for place in np.unique(reference):
        theirs = np.zeros(width)
        theirs[whose[which == place]] = moved[which == place]
        mine = reference[which] == place
        shared += add_up(moved[mine] * theirs[whose[mine]], which[mine], cells)
    return {
        "weight_squares": add_up(weight**2, 2 * cell + truth, 2 * cells).reshape(cells, 2),
        "clusters": np.bincount(which, minlength=cells).astype(np.float64),
        "units": units_by_truth(weight, truth=truth, cell=cell, cells=cells),
        "moved": add_up(moved**2, which, cells),
        "shared": shared,
    }


def units_by_truth(
    weight: FloatArray, *, truth: NDArray[np.int64], cell: NDArray[np.int64], cells: int
) -> FloatArray:
    """How many clusters have negatives and positives in each cell, (cells, 2).

    Rows as for `clustered_delong`.

    Examples:
        >>> truth, cell = np.array([1, 1, 0]), np.array([0, 0, 0])
        >>> units_by_truth(np.array([2.0, 1.0, 1.0]), truth=truth, cell=cell, cells=1).tolist()
        [[1.0, 2.0]]
    """
    there = (weight > 0).astype(np.float64)
    return add_up(there, 2 * cell + truth, 2 * cells).reshape(cells, 2)


def products_area(
    products: Mapping[str, FloatArray],
    *,
    reference: NDArray[np.int64],
    total: FloatArray,
    area: FloatArray,
) -> tuple[Auc, FloatArray]:
    """What `clustered_delong` gives, from `area_products` of all clusters."""
    clusters = products["clusters"]
    with np.errstate(all="ignore"):
        factor = np.where(clusters > 1, clusters / (clusters - 1), np.nan)
        n = np.where(total > 0, total**2 / products["weight_squares"], 0.0)
        found = Auc(
            value=area,
            variance=products["moved"] * factor,
            positives=n[:, 1],
            negatives=n[:, 0],
            degrees=clusters - 1,
        )
        return found, products["shared"] * np.sqrt(factor * factor[reference])


def apart(area: Auc, reference: Auc, *, covariance: FloatArray) -> tuple[Auc, Auc]:
    """Two areas with the variances that their difference has where clusters span both.

    Examples:
        >>> area = delong(2, 3, placement=5, placement_squares=13, negative_placement_squares=1)
        >>> half = apart(area, area, covariance=area.variance / 2)
        >>> [round(float(side.variance / area.variance), 3) for side in half]
        [0.5, 0.5]
    """
    with np.errstate(all="ignore"):
        factor = 1 - 2 * covariance / (area.variance + reference.variance)
    factor = np.where(np.isfinite(factor) & (factor > 0), factor, 1.0)
    first, second = (replace(side, variance=side.variance * factor) for side in (area, reference))
    return first, second


def auc_gap(area: Auc, reference: Auc, *, z: ArrayLike) -> Interval:
    """Interval of the difference of two independent areas, group − reference.

    The two intervals are combined as Newcombe combines Wilson's.

    Examples:
        >>> area = delong(2, 3, placement=5, placement_squares=13, negative_placement_squares=1)
        >>> low, high = auc_gap(area, area, z=1.96)
        >>> print(f"{low:.2f} {high:.2f}")
        -0.61 0.61
    """
    sides = area.interval(z=z), reference.interval(z=z)
    return square_and_add(area.value, sides[0], reference.value, sides[1])


def auc_gap_p(area: Auc, reference: Auc) -> FloatArray:
    """Two-sided p of equal areas, with the variances that the intervals use.

    Examples:
        >>> area = delong(2, 3, placement=5, placement_squares=13, negative_placement_squares=1)
        >>> float(auc_gap_p(area, area))
        1.0
    """
    total = np.zeros(())
    for side in (area, reference):
        shrunk = side._shrunk()
        total = total + shrunk * (1 - shrunk) / side.effective_n(z=1.96)
    with np.errstate(all="ignore"):
        return np.asarray(2 * ndtr(-np.abs(area.value - reference.value) / np.sqrt(total)))


def mean_auc(scores: FloatArray, truth: NDArray[np.int64], *, z: float) -> tuple[float, ...]:
    """Mean over classes of the area of each against its rest, with its limits.

    `scores` has one column a class, `truth` the class of every row. A row is a positive of one
    class and a negative of all the others, so what it adds to every area is summed before it is
    squared; the limits are those of the logit. They are NaN with a class of a single row, and
    where every row is in its place.

    Examples:
        >>> scores = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]])
        >>> [round(each, 3) for each in mean_auc(scores, np.array([0, 0, 1, 1]), z=1.96)]
        [0.75, 0.069, 0.992]
    """
    areas, moved = [], np.zeros(truth.size)
    for c in range(scores.shape[1]):
        own = (truth == c).astype(np.int64)
        positives = int(own.sum())
        if not 0 < positives < truth.size:
            continue
        sizes = np.array([truth.size - positives, positives])
        placed = row_placements(scores[:, c], own, None, lines=1)
        area = float(placed[own == 1].sum() / sizes.prod())
        areas.append(area)
        # A negative's placement counts the positives below it: it moves the area down.
        share = np.where(own == 1, placed / sizes[0], 1 - placed / sizes[1])
        with np.errstate(all="ignore"):
            moved += (share - area) / np.sqrt(sizes * (sizes - 1.0))[own]
    value = float(np.mean(areas)) if areas else float("nan")
    spread = value * (1 - value)
    if not (spread > 0 and np.isfinite(moved).all()):
        return value, float("nan"), float("nan")
    half = z * float(np.sqrt(np.square(moved).sum())) / len(areas) / spread
    low, high = expit(logit(value) + np.array([-half, half]))
    return value, float(low), float(high)


def undefined_reason(positives: float, negatives: float) -> str | None:
    """Why an area does not exist, or None where it does.

    Examples:
        >>> undefined_reason(0, 5)
        'no positives in the group'
    """
    if positives == 0:
        return "no positives in the group"
    return "no negatives in the group" if negatives == 0 else None
