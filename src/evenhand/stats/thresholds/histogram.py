"""Score histograms around a threshold: any bandwidth, HC3, curves and bootstrap without rows."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.thresholds.local import (
    LocalFit,
    LocalMoments,
    local_fit,
    sum_cells,
    sum_up,
    tricube,
)

TRICUBE_SECOND_MOMENT = 35 / 243
TRICUBE_ROUGHNESS = 175 / 247
BANDWIDTH_CONSTANT = (TRICUBE_ROUGHNESS / TRICUBE_SECOND_MOMENT**2) ** 0.2


# Cells that are summed up at a time.
BLOCK = 2**16
# Least eigenvalue of polynomials' mean products from which on sums give their fit.
_SUREST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGrid:
    """Bins over a score's range with an edge at the threshold, which has a cell of its own.

    Cells are numbered from the lowest score: `below` bins of equal width under the threshold,
    the cell of scores equal to it, then bins above it. A tally needs only `below`, `above`,
    `low`, `high` and `threshold` to number a row: floor(below·(s−low)/(threshold−low)), and
    below + 1 + floor(above·(s−threshold)/(high−threshold)), the highest score in the last bin.

    Examples:
        >>> grid = ScoreGrid.over(0.0, 1.0, threshold=0.8, bins=10)
        >>> grid.cell([0.05, 0.8, 0.95, 1.0]).tolist()
        [0, 8, 10, 10]
    """

    threshold: float
    low: float
    high: float
    below: int
    above: int

    @classmethod
    def over(cls, low: float, high: float, *, threshold: float, bins: int = 1000) -> "ScoreGrid":
        """A grid of this many bins, shared out in proportion to the two sides."""
        low, high = min(low, threshold), max(high, threshold)
        if low == high:
            return cls(threshold=threshold, low=low, high=high, below=0, above=0)
        share = (threshold - low) / (high - low)
        under = round(bins * share)
        if 0 < share < 1:
            under = min(max(under, 1), bins - 1)
        return cls(threshold=threshold, low=low, high=high, below=under, above=bins - under)

    @property
    def cells(self) -> int:
        """Number of cells, the threshold's own included."""
        return self.below + 1 + self.above

    @property
    def positions(self) -> FloatArray:
        """Score that stands for each cell: bin centres and the threshold itself."""
        return np.concatenate(
            [
                self.low + (np.arange(self.below) + 0.5) * self._step(self.low, self.below),
                [self.threshold],
                self.threshold + (np.arange(self.above) + 0.5) * self._step(self.high, self.above),
            ]
        )

    def _step(self, end: float, bins: int) -> float:
        return abs(self.threshold - end) / bins if bins else 0.0

    def cell(self, scores: ArrayLike) -> NDArray[np.intp]:
        """Cell number of each score."""
        s = np.asarray(scores, dtype=float)
        under = self.below * (s - self.low) / max(self.threshold - self.low, 1e-300)
        over = self.above * (s - self.threshold) / max(self.high - self.threshold, 1e-300)
        left = np.clip(np.floor(under), 0, max(self.below - 1, 0))
        right = self.below + 1 + np.clip(np.floor(over), 0, max(self.above - 1, 0))
        cell = np.where(s < self.threshold, left, np.where(s > self.threshold, right, self.below))
        return np.asarray(cell, dtype=np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreHistogram:
    """Counts by (group, cell, truth); `positions` and `thresholds` per group.

    `counts` has shape (groups, cells, 2), truth 0 then 1. With sampling weights ω, `weights`
    holds Σω and `squares` Σω² in the same cells; without, both are the counts.
    """

    positions: FloatArray
    thresholds: FloatArray
    counts: FloatArray
    weights: FloatArray
    squares: FloatArray

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.counts.shape[0])

    @classmethod
    def of_counts(
        cls,
        counts: ArrayLike,
        *,
        positions: ArrayLike,
        thresholds: ArrayLike,
        weights: ArrayLike | None = None,
        squares: ArrayLike | None = None,
    ) -> "ScoreHistogram":
        """A histogram from a tally; positions shared by all groups or one row each."""
        n = np.asarray(counts, dtype=float)
        if n.ndim != 3 or n.shape[2] != 2:
            raise DataError(
                f"counts have shape {n.shape}. Give (groups, cells, 2), truth 0 then truth 1."
            )
        if (weights is None) != (squares is None):
            raise DataError("Sampling weights need both their sums and their sums of squares.")
        return cls(
            counts=n,
            positions=np.broadcast_to(np.asarray(positions, dtype=float), n.shape[:2]),
            thresholds=np.broadcast_to(np.asarray(thresholds, dtype=float), n.shape[:1]),
            weights=n if weights is None else np.asarray(weights, dtype=float),
            squares=n if squares is None else np.asarray(squares, dtype=float),
        )

    def moments(self, bandwidth: ArrayLike) -> LocalMoments:
        """Sums of the local fit at this bandwidth, one number or one per group."""
        h = np.broadcast_to(np.asarray(bandwidth, dtype=float), self.thresholds.shape)
        h = np.where(np.isnan(h), 1.0, h)
        near = self._near(float(h.max(initial=0.0)))
        step = max(1, BLOCK // max(self.counts.shape[1], 1))
        # A few groups at a time, whose arrays stay near.
        parts = [
            self._block_moments(slice(first, first + step), h[first : first + step], near)
            for first in range(0, max(self.groups, 1), step)
        ]
        if len(parts) == 1:
            return parts[0]
        names = ("n", "weight", "outcome", "squared", "squared_outcome", "n_below")
        return LocalMoments(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )

    def _near(self, widest: float) -> slice:
        """Which cells lie within a distance of the thresholds, where all groups share both."""
        shared = self.positions.strides[0] == 0 and self.thresholds.strides == (0,)
        if (
            not shared
            or not self.groups
            or not np.all(self.positions[0, 1:] >= self.positions[0, :-1])
        ):
            return slice(None)
        ends = self.thresholds[0] - widest, self.thresholds[0] + widest
        first, last = np.searchsorted(self.positions[0], ends)
        return slice(max(int(first) - 1, 0), int(last) + 1)

    def _block_moments(self, groups: slice, h: FloatArray, near: slice) -> LocalMoments:
        distance = (self.positions[groups, near] - self.thresholds[groups, None]) / h[:, None]
        counts = self.counts[groups, near]
        rows = counts[..., 0] + counts[..., 1]
        at = np.nonzero((np.abs(distance) < 1) & (rows > 0))

        def both(of: FloatArray) -> tuple[FloatArray, FloatArray]:
            """All rows of the cells, and those with a positive truth."""
            no, yes = of[groups, near, 0][at], of[groups, near, 1][at]
            return no + yes, yes

        n, yes = both(self.counts)
        plain = self.weights is self.counts and self.squares is self.counts
        weights = (n, yes, n, yes) if plain else (*both(self.weights), *both(self.squares))
        return sum_cells(distance[at], *weights, at[0], len(h), n)


def score_histogram(
    scores: ArrayLike,
    *,
    truth: ArrayLike,
    threshold: float,
    groups: ArrayLike | None = None,
    n_groups: int | None = None,
    weights: ArrayLike | None = None,
    bins: int = 1000,
) -> ScoreHistogram:
    """Histogram of rows on a grid with an edge at the threshold.

    Examples:
        >>> found = score_histogram([0.1, 0.5, 0.9], truth=[0, 1, 1], threshold=0.5, bins=4)
        >>> found.counts[0, :, 1].tolist()
        [0.0, 0.0, 1.0, 0.0, 1.0]
    """
    s, y = np.asarray(scores, dtype=float), np.asarray(truth, dtype=np.intp)
    which = np.zeros(s.size, dtype=np.intp) if groups is None else np.asarray(groups, dtype=np.intp)
    count = n_groups if n_groups is not None else int(which.max(initial=0)) + 1
    if s.size == 0:
        raise DataError("There are no scores to count. Give at least one row.")
    grid = ScoreGrid.over(float(s.min()), float(s.max()), threshold=threshold, bins=bins)
    shape = (count, grid.cells, 2)
    flat = np.ravel_multi_index((which, grid.cell(s), y), shape)

    def tally(values: FloatArray | None) -> FloatArray:
        size = int(np.prod(shape))
        return np.bincount(flat, values, minlength=size).astype(float).reshape(shape)

    omega = None if weights is None else np.asarray(weights, dtype=float)
    return ScoreHistogram.of_counts(
        tally(None),
        positions=grid.positions,
        thresholds=threshold,
        weights=None if omega is None else tally(omega),
        squares=None if omega is None else tally(omega**2),
    )


def cell_moments(
    counts: FloatArray,
    *,
    totals: FloatArray,
    middles: FloatArray,
    width: float,
    bandwidth: FloatArray,
) -> tuple[LocalMoments, FloatArray]:
    """Sums of the local fit from cells with known mean distances, and the counts that enter.

    `counts` and `totals` (Σ distance) are (groups, cells, 2); each bandwidth is a whole number
    of cells. A cell's rows count as two halves, the standard deviation of an even spread either
    side of their mean, so that what is left out is of third order in width ÷ bandwidth.

    Examples:
        >>> counts, totals = np.array([[[2.0, 1], [1, 3]]]), np.array([[[-0.2, -0.1], [0.1, 0.3]]])
        >>> middles, h = np.array([-0.1, 0.1]), np.array([0.2])
        >>> sums, _ = cell_moments(counts, totals=totals, middles=middles, width=0.2, bandwidth=h)
        >>> sums.n.tolist(), sums.n_below.tolist()
        ([7.0], [3.0])
    """
    inside = counts * (np.abs(middles) < bandwidth[:, None])[:, :, None]
    at = np.nonzero(inside)
    group, truth = at[0], at[2]
    n, size = counts[at], len(counts)
    mean, half = totals[at] / n, width / np.sqrt(12)
    u = np.concatenate([mean - half, mean + half]) / np.tile(bandwidth[group], 2)
    rows = np.tile(n / 2, 2)
    which = np.tile(group, 2)
    sums = sum_up(u, np.tile(truth, 2).astype(float), rows, rows, which, size, rows=rows)
    # A half may lie beyond the edge of its cell: rows are counted by cell.
    under = (inside * (middles < 0)[:, None]).sum(axis=(1, 2))
    return replace(sums, n=inside.sum(axis=(1, 2)), n_below=under), inside


def rule_of_thumb_bandwidth(histogram: ScoreHistogram, *, central: float = 0.9) -> FloatArray:
    """Fan and Gijbels' rule for each group: a global quartic gives variance and curvature.

    Curvature is weighed over the central 90 % of the group's scores. Never wider than the
    range of the group's scores; NaN for a group with fewer than two distinct scores. Sampling
    weights do not enter: they move the best bandwidth, not the estimate it is used for.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> s = rng.random(4000)
        >>> y = rng.random(4000) < 1 / (1 + np.exp(-8 * (s - 0.5)))
        >>> found = score_histogram(s, truth=y, threshold=0.5)
        >>> bool(0.1 < rule_of_thumb_bandwidth(found)[0] < 0.6)
        True
    """
    step = max(1, BLOCK // 4 // max(histogram.counts.shape[1], 1))
    found = np.empty(histogram.groups)
    # A few groups at a time, whose arrays stay near.
    for first in range(0, histogram.groups, step):
        some = slice(first, first + step)
        positions, counts = histogram.positions[some], histogram.counts[some]
        found[some] = _rules_of_thumb(positions, counts, central)
        for g in np.flatnonzero(np.isnan(found[some])).tolist():
            found[first + g] = _rule_of_thumb(positions[g], counts[g], central)
    return found


def _rules_of_thumb(positions: FloatArray, counts: FloatArray, central: float) -> FloatArray:
    """The rule for groups whose quartics follow from sums of Legendre's polynomials.

    NaN for those with too few scores, or where these lie so that sums would lose digits.
    """
    yes = counts[..., 1]
    n = counts[..., 0] + yes
    used, rows = n > 0, n.sum(axis=1)
    first = used.argmax(axis=1)
    last = n.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
    at = np.arange(len(n))
    low, high = positions[at, first], positions[at, last]
    with np.errstate(all="ignore"):
        span, scale = high - low, (high - low) / 2
        x = (positions - (low / 2 + high / 2)[:, None]) / scale[:, None]
        x = np.where(used, x, 0.0)
        square = x * x
        cubic, quartic = (5 * square - 3) / 2, ((35 * square - 30) * square + 3) / 8
        basis = np.stack([np.ones_like(x), x, (3 * square - 1) / 2, x * cubic, quartic], axis=1)
        gram = np.einsum("gic,gjc->gij", basis * n[:, None], basis)
        unit = np.where(np.isfinite(gram), gram, 0.0) / np.maximum(rows, 1.0)[:, None, None]
        sure = (np.linalg.eigvalsh(unit)[:, 0] > _SUREST) & (np.count_nonzero(used, axis=1) > 5)
        inverse = np.linalg.inv(np.where(sure[:, None, None], unit, np.eye(5)))
        fit, fitted = np.zeros((len(n), 5)), np.zeros_like(x)
        for _ in range(2):
            # What the first fit leaves over is fitted again, for the digits that sums lost.
            left = np.einsum("gic,gc->gi", basis, yes - n * fitted) / rows[:, None]
            fit = fit + np.einsum("gij,gj->gi", inverse, left)
            fitted = np.einsum("gi,gic->gc", fit, basis)
        rest = yes.sum(axis=1) - 2 * (fitted * yes).sum(axis=1) + (n * fitted**2).sum(axis=1)
        bend = 3 * fit[:, 2, None] + 15 * fit[:, 3, None] * x
        bend += fit[:, 4, None] * (105 * square - 15) / 2
        share = np.cumsum(n, axis=1) / rows[:, None]
        ends = (1 - central) / 2, (1 + central) / 2 - 1e-12
        start, stop = (np.count_nonzero(share < end, axis=1) for end in ends)
        inner = (share >= ends[0]) & (np.arange(n.shape[1]) <= stop[:, None])
        curvature = (n * bend**2 * inner).sum(axis=1)
        length = x[at, np.minimum(stop, n.shape[1] - 1)] - x[at, start]
        spare = rows - 5
        best = BANDWIDTH_CONSTANT * (rest / spare * length / curvature) ** 0.2
        flat = (spare <= 0) | (rest <= 0) | (curvature <= 0) | (length <= 0)
        found = np.where(flat, span, np.minimum(best * scale, span))
    return np.where(sure, found, np.nan)


def _rule_of_thumb(positions: FloatArray, counts: FloatArray, central: float) -> float:
    n = counts.sum(axis=1)
    used = n > 0
    s, n, yes = positions[used], n[used], counts[used, 1]
    if s.size < 2:
        return float("nan")
    span = float(s[-1] - s[0])
    centre, scale = s[0] / 2 + s[-1] / 2, span / 2
    x = (s - centre) / scale
    degree = min(4, s.size - 1)
    design = np.vander(x, degree + 1, increasing=True)
    root = np.sqrt(n)
    fit, *_ = np.linalg.lstsq(design * root[:, None], yes / root, rcond=None)
    fitted = design @ fit
    rest = float(yes.sum() - 2 * fitted @ yes + n @ fitted**2)
    spare = n.sum() - degree - 1
    order = np.arange(2, degree + 1)
    bend = design[:, : max(degree - 1, 0)] @ (fit[2:] * order * (order - 1))
    share = np.cumsum(n) / n.sum()
    low, high = (1 - central) / 2, (1 + central) / 2
    first, last = np.searchsorted(share, low), np.searchsorted(share, high - 1e-12)
    inner = slice(int(first), int(last) + 1)
    # In units of half the span, whatever numbers the scores are: their powers might overflow.
    curvature = float(n[inner] @ bend[inner] ** 2)
    length = float(x[inner][-1] - x[inner][0])
    if spare <= 0 or rest <= 0 or curvature <= 0 or length <= 0:
        return span
    best = BANDWIDTH_CONSTANT * (rest / spare * length / curvature) ** 0.2
    return float(min(best * scale, span))


def leverage_fit(histogram: ScoreHistogram, *, bandwidth: ArrayLike, degree: int = 1) -> LocalFit:
    """Local fit with HC3 errors, whose leverages need the histogram rather than sums.

    Examples:
        >>> s, y = [0.35, 0.4, 0.5, 0.6, 0.65], [0, 0, 1, 0, 1]
        >>> cells = score_histogram(s, truth=y, threshold=0.5, bins=60)
        >>> f"{leverage_fit(cells, bandwidth=0.3).standard_error[0]:.3f}"
        '0.312'
    """
    h = np.broadcast_to(np.asarray(bandwidth, dtype=float), histogram.thresholds.shape)
    fit = local_fit(histogram.moments(h), degree=degree, robust="HC0")
    u = (histogram.positions - histogram.thresholds[:, None]) / h[:, None]
    inside = np.flatnonzero((np.abs(u) < 1).any(axis=0))
    # Cells outside every window weigh nothing.
    span = slice(int(inside[0]), int(inside[-1]) + 1) if inside.size else slice(0, 0)
    u, n = u[:, span], histogram.counts[:, span]
    kernel = tricube(u)[:, :, None]
    # A cell's rows share its mean weight: exact without sampling weights, close with them.
    omega = (n > 0).astype(np.float64)
    if histogram.weights is not histogram.counts:
        omega = np.divide(histogram.weights[:, span], n, out=np.zeros_like(n), where=n > 0)
    leaning = np.zeros((len(u), 2 * degree + 1))
    for i, j in np.ndindex(degree + 1, degree + 1):
        leaning[:, i + j] += fit.inverse[:, i, j]
    hat = _polynomial(leaning, u)[:, :, None] * omega * kernel
    residual = np.array([0.0, 1.0]) - _polynomial(fit.coefficients, u)[:, :, None]
    squares = histogram.squares[:, span] * kernel * kernel
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = residual / (1.0 - hat)
        both = np.where(squares > 0, squares * missed * missed, 0.0)
    scaled = both[..., 0] + both[..., 1]
    sums = np.empty_like(leaning)
    for k in range(2 * degree + 1):
        sums[:, k] = scaled.sum(axis=1)
        scaled = scaled * u
    meat = sums[:, np.add.outer(np.arange(degree + 1), np.arange(degree + 1))]
    return LocalFit(
        degree=degree,
        coefficients=fit.coefficients,
        covariance=fit.inverse @ meat @ fit.inverse,
        inverse=fit.inverse,
    )


def _polynomial(coefficients: FloatArray, u: FloatArray) -> FloatArray:
    """Polynomials by group at the cells of each."""
    found = np.zeros_like(u)
    for k in reversed(range(coefficients.shape[1])):
        found = found * u + coefficients[:, k, None]
    return found
