"""Calibration of probabilities: recalibration line and curve, from binned sums."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.special import logit
from evenhand.stats.thresholds.histogram import ScoreHistogram
from evenhand.stats.weights import add_up, distinct

_STEPS = 50
# Numbers that are worked on at a time.
BLOCK = 2**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibration:
    """Line logit P(hit) = intercept + slope · logit(score), one for each leading index.

    Calibrated scores have intercept 0 and slope 1; a slope under 1 says that scores are too
    extreme. `in_the_large` is the intercept with the slope held at 1: above 0, hits are more
    frequent than the scores say. NaN where the data do not determine it.
    """

    intercept: FloatArray
    intercept_error: FloatArray
    slope: FloatArray
    slope_error: FloatArray
    in_the_large: FloatArray
    in_the_large_error: FloatArray
    n: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredBins:
    """Weight of hits and of all cases by (line, bin, cluster), one row for each that occurs."""

    line: NDArray[np.int64]
    bin: NDArray[np.int64]
    cluster: NDArray[np.int64]
    hits: FloatArray
    n: FloatArray


def recalibrate(
    logits: ArrayLike,
    *,
    hits: ArrayLike,
    n: ArrayLike,
    squares: ArrayLike | None = None,
) -> Recalibration:
    """Logistic recalibration from bins in the last axis: mean logit, hits and cases of each.

    Binned rows give the same line as single rows up to the width of the bins. Empty bins are
    skipped; hits and misses that the scores separate perfectly have no line. With weights, hits
    and n are sums of them and `squares` sums of their squares, from which errors follow as they
    do without. Rows that come in clusters have `fit_lines` and `bin_products` instead.

    Examples:
        >>> line = recalibrate([-2, 0, 2], hits=[14, 50, 88], n=[100, 100, 100])
        >>> print(f"{line.intercept:.3f} {line.slope:.3f} ± {line.slope_error:.3f}")
        0.042 0.951 ± 0.105
    """
    x, k, m = _used_bins(logits, hits, n)
    meat: _Meat | None = None
    if squares is not None:
        meat = partial(_by_square, x, np.where(m > 0, np.asarray(squares, np.float64), 0.0))
    line = _fit(x, k, m, sloped=True, meat=meat)
    large = _fit(x, k, m, sloped=False, meat=meat)
    return _recalibration(line, large, m)


_Middle = tuple[FloatArray, FloatArray, FloatArray]
_Meat = Callable[[FloatArray], _Middle]


def _used_bins(logits: ArrayLike, hits: ArrayLike, n: ArrayLike) -> tuple[FloatArray, ...]:
    """Mean logits, hits and cases of bins; all 0 in bins that are empty."""
    x, k, m = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (logits, hits, n)))
    used = (m > 0) & np.isfinite(x)
    return np.where(used, x, 0.0), np.where(used, k, 0.0), np.where(used, m, 0.0)


def _recalibration(
    line: tuple[FloatArray, ...], large: tuple[FloatArray, ...], m: FloatArray
) -> Recalibration:
    return Recalibration(
        intercept=line[0],
        intercept_error=line[1],
        slope=line[2],
        slope_error=line[3],
        in_the_large=large[0],
        in_the_large_error=large[1],
        n=m.sum(-1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLines:
    """Lines of recalibration whose errors wait for what clusters add to their equations."""

    x: FloatArray
    n: FloatArray
    line: "_Fitted"
    large: "_Fitted"

    def of_bins(self) -> dict[str, FloatArray]:
        """What `bin_products` takes: logits by (line, bin), and by fit the chances of each."""
        lines, bins = self.x.size // max(self.x.shape[-1], 1), self.x.shape[-1]
        chances = [fit.chance.reshape(lines, bins) for fit in (self.line, self.large)]
        return {"logits": self.x.reshape(lines, bins), "chances": np.stack(chances)}

    def recalibration(self, products: Mapping[str, FloatArray]) -> Recalibration:
        """The lines with the sandwich's errors, from `bin_products` of all clusters.

        The middle of the sandwich is what K clusters add to the two equations, by K/(K − 1).
        """
        count, shape = products["clusters"], self.x.shape[:-1]
        with np.errstate(all="ignore"):
            factor = np.where(count > 1, count / (count - 1), np.nan)
        middles = (products["middles"] * factor).reshape(2, 3, *shape)
        line, large = (
            _errors(fit, (middle[0], middle[1], middle[2]))
            for fit, middle in zip((self.line, self.large), middles)
        )
        return _recalibration(line, large, self.n)


def fit_lines(logits: ArrayLike, *, hits: ArrayLike, n: ArrayLike) -> FittedLines:
    """The lines that `recalibrate` fits, without errors."""
    x, k, m = _used_bins(logits, hits, n)
    line, large = (_newton(x, k, m, sloped=sloped) for sloped in (True, False))
    return FittedLines(x=x, n=m, line=line, large=large)


def bin_products(
    parts: ClusteredBins, *, logits: FloatArray, chances: FloatArray
) -> dict[str, FloatArray]:
    """Sums over some clusters of products of what each adds to a line's two equations.

    Each cluster is whole in `parts`; `chances` are those of a fit to all, by (fit, line, bin).
    `middles` are by (fit, product, line), `clusters` counts those of a line.
    """
    lines = len(logits)
    at = parts.line, parts.bin
    width = int(parts.cluster.max(initial=0)) + 1
    pairs, place = distinct(parts.line * width + parts.cluster)
    owner = pairs // width
    middles = np.zeros((len(chances), 3, lines))
    for fit, chance in enumerate(chances):
        residual = parts.hits - parts.n * chance[at]
        sums = [add_up(residual * power, place, len(pairs)) for power in (1.0, logits[at])]
        for product, (i, j) in enumerate(((0, 0), (0, 1), (1, 1))):
            middles[fit, product] = add_up(sums[i] * sums[j], owner, lines)
    return {
        "middles": middles,
        "clusters": np.bincount(owner, minlength=lines).astype(np.float64),
    }


def _by_square(x: FloatArray, squares: FloatArray, p: FloatArray) -> _Middle:
    """Σω²p(1 − p) times 1, x and x²: with weights of 1 the Hessian itself."""
    spread = squares * p * (1 - p)
    return spread.sum(-1), (spread * x).sum(-1), (spread * x * x).sum(-1)


def bounded_logit(score: ArrayLike, *, margin: float = 1e-6) -> FloatArray:
    """Logit of probabilities, with 0 and 1 moved inside by `margin` so that it is finite.

    Examples:
        >>> bounded_logit([0.0, 0.5]).round(2).tolist()
        [-13.82, 0.0]
    """
    return np.asarray(logit(np.clip(np.asarray(score, np.float64), margin, 1 - margin)))


def _fit(
    x: FloatArray, k: FloatArray, m: FloatArray, *, sloped: bool, meat: _Meat | None
) -> tuple[FloatArray, ...]:
    """Newton's method for (intercept, slope), or for the intercept with slope 1, batched.

    Errors are the model's own, or the sandwich's around what `meat` gives at the fit.
    """
    lines, bins = x.size // max(x.shape[-1], 1), x.shape[-1]
    step = max(1, BLOCK // max(bins, 1))
    if lines > step and meat is None:
        # A few lines at a time, whose arrays stay near.
        flat = [each.reshape(lines, bins) for each in (x, k, m)]
        parts = [
            _fit(*(each[first : first + step] for each in flat), sloped=sloped, meat=None)
            for first in range(0, lines, step)
        ]
        return tuple(
            np.concatenate(column).reshape(x.shape[:-1]) for column in zip(*parts, strict=True)
        )
    fitted = _newton(x, k, m, sloped=sloped)
    return _errors(fitted, None if meat is None else meat(fitted.chance))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """Lines at the end of Newton's steps, and the Hessian and the chances where the last began."""

    intercept: FloatArray
    slope: FloatArray
    sloped: bool
    hessian: _Middle
    chance: FloatArray
    step: FloatArray


def _newton(x: FloatArray, k: FloatArray, m: FloatArray, *, sloped: bool) -> _Fitted:
    shape = x.shape[:-1]
    intercept, slope = np.zeros(shape), np.ones(shape)
    h01 = h11 = np.zeros(shape)
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            # SciPy's function takes several times as long; where this overflows it is 0 or 1.
            p = 1 / (1 + np.exp(-(intercept[..., None] + slope[..., None] * x)))
            expected = m * p
            residual, weight = k - expected, expected * (1 - p)
            g0, h00 = residual.sum(-1), weight.sum(-1)
            if sloped:
                leaning = weight * x
                g1, h01, h11 = (residual * x).sum(-1), leaning.sum(-1), (leaning * x).sum(-1)
                determinant = h00 * h11 - h01**2
                step0 = (h11 * g0 - h01 * g1) / determinant
                step1 = (h00 * g1 - h01 * g0) / determinant
            else:
                step0, step1 = g0 / h00, np.zeros(shape)
            # Long steps overshoot where the curve is flat; halved they still converge.
            scale = 1 / np.maximum(1.0, np.maximum(np.abs(step0), np.abs(step1)) / 2)
            intercept, slope = intercept + scale * step0, slope + scale * step1
            size = np.fmax(np.abs(step0), np.abs(step1))
            if not (size > 1e-10).any():
                break
    return _Fitted(
        intercept=intercept,
        slope=slope,
        sloped=sloped,
        hessian=(h00, h01, h11),
        chance=p,
        step=size,
    )


def _errors(fit: _Fitted, middle: _Middle | None) -> tuple[FloatArray, ...]:
    """Lines and their errors: the model's own, or the sandwich's around a middle."""
    h00, h01, h11 = fit.hessian
    with np.errstate(all="ignore"):
        solved = (fit.step <= 1e-6) & (h00 > 1e-8)
        m00, m01, m11 = fit.hessian if middle is None else middle
        if not fit.sloped:
            error = np.where(solved, np.sqrt(m00) / h00, np.nan)
            return np.where(solved, fit.intercept, np.nan), error
        determinant = h00 * h11 - h01**2
        solved &= determinant > 1e-10 * h00 * np.maximum(h11, 1e-300)
        # Rows of the inverse Hessian around the middle: with the Hessian there, its diagonal.
        first = h11**2 * m00 - 2 * h11 * h01 * m01 + h01**2 * m11
        second = h01**2 * m00 - 2 * h01 * h00 * m01 + h00**2 * m11
        errors = [np.sqrt(np.maximum(part, 0.0)) / determinant for part in (first, second)]
        values = fit.intercept, errors[0], fit.slope, errors[1]
        return tuple(np.where(solved, value, np.nan) for value in values)


def isotonic_fit(values: ArrayLike, *, weights: ArrayLike | None = None) -> FloatArray:
    """Nearest non-decreasing sequence in least squares (pool adjacent violators).

    Examples:
        >>> isotonic_fit([1, 3, 2, 4, 3.5, 5]).tolist()
        [1.0, 2.5, 2.5, 3.75, 3.75, 5.0]
    """
    y = np.asarray(values, dtype=float)
    w = np.ones(y.size) if weights is None else np.asarray(weights, dtype=float)
    # Blocks of one mean, weight and length; a block that would lie below the last one joins it.
    blocks: list[tuple[float, float, int]] = []
    for mean, weight in zip(y.tolist(), w.tolist(), strict=True):
        size = 1
        while blocks and blocks[-1][0] >= mean:
            before, mass, length = blocks.pop()
            mean = (before * mass + mean * weight) / (mass + weight)
            weight, size = mass + weight, length + size
        blocks.append((mean, weight, size))
    return np.repeat([block[0] for block in blocks], [block[2] for block in blocks])


@dataclass(frozen=True, slots=True, kw_only=True)
class Monotonicity:
    """Prevalence in bins of equal counts, its isotonic fit and the p of "it never falls".

    `drop` is the largest fall from one bin to a later one in standard errors. A small p means
    that one threshold cannot be the best everywhere: the cost curve may have several minima.
    """

    scores: FloatArray
    n: FloatArray
    prevalence: FloatArray
    fitted: FloatArray
    drop: float
    p: float
    undefined: str | None = None

    @property
    def warning(self) -> str | None:
        """A sentence when prevalence falls with the score beyond chance at 5 %."""
        if np.isnan(self.p) or self.p >= 0.05:
            return None
        return (
            f"prevalence falls as the score rises near the threshold (p={self.p:.3f}); "
            "the implied threshold may not be the cheapest one"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrevalenceBins:
    """Bins of nearly equal counts of one group: their mean scores, cases and positive truths."""

    scores: FloatArray
    n: FloatArray
    yes: FloatArray


def prevalence_bins(
    histogram: ScoreHistogram, *, half_widths: ArrayLike, bins: int = 10
) -> list[PrevalenceBins | None]:
    """The bins of every group within its half width of the threshold; None of a single score.

    Examples:
        >>> cells = ScoreHistogram.of_counts([[[3, 1], [2, 2], [1, 3]]],
        ...                                  positions=[0.2, 0.5, 0.8], thresholds=0.5)
        >>> found, = prevalence_bins(cells, half_widths=1.0)
        >>> found.n.tolist(), found.yes.tolist()
        ([4.0, 4.0, 4.0], [1.0, 2.0, 3.0])
    """
    distance = np.abs(histogram.positions - histogram.thresholds[:, None])
    reach = np.broadcast_to(np.asarray(half_widths, np.float64), histogram.thresholds.shape)
    everybody = histogram.counts[..., 0] + histogram.counts[..., 1]
    n = np.where(distance <= reach[:, None], everybody, 0.0)
    at = np.nonzero(n)
    with np.errstate(all="ignore"):
        share = (np.cumsum(n, axis=1) - n / 2) / n.sum(axis=1)[:, None]
    cases, groups = n[at], histogram.groups
    flat = at[0] * bins + np.minimum((share[at] * bins).astype(int), bins - 1)

    def total(values: FloatArray) -> FloatArray:
        summed = np.bincount(flat, values, minlength=groups * bins).astype(np.float64)
        return summed.reshape(groups, bins)

    size, yes = total(cases), total(histogram.counts[..., 1][at])
    scores = total(cases * histogram.positions[at])
    several = np.bincount(at[0], minlength=groups) > 1
    there = size > 0
    return [
        PrevalenceBins(
            scores=scores[g][there[g]] / size[g][there[g]],
            n=size[g][there[g]],
            yes=yes[g][there[g]],
        )
        if several[g]
        else None
        for g in range(groups)
    ]


def fall_tests(
    cells: Sequence[PrevalenceBins | None], *, draws: int, seed: int
) -> list[Monotonicity]:
    """Tests of a prevalence that falls from one bin to a later one, one for each group.

    The null distribution is that of samples drawn from the isotonic fit itself, from the same
    seed for every group.

    Examples:
        >>> from evenhand.stats.thresholds.histogram import score_histogram
        >>> s = np.linspace(0, 1, 2000)
        >>> cells = score_histogram(s, truth=(s > 0.3) & (s < 0.6), threshold=0.5)
        >>> bins = prevalence_bins(cells, half_widths=np.inf)
        >>> fall_tests(bins, draws=999, seed=0)[0].p < 0.01
        True
    """
    found: list[Monotonicity] = [_UNTESTED] * len(cells)
    by_size: dict[int, list[int]] = {}
    for place, part in enumerate(cells):
        if part is not None:
            by_size.setdefault(part.n.size, []).append(place)
    for size, places in by_size.items():
        step = max(1, BLOCK // max(draws * size, 1))
        for first in range(0, len(places), step):
            some = places[first : first + step]
            tested = _fall_tests([part for i in some if (part := cells[i])], draws, seed)
            for place, result in zip(some, tested, strict=True):
                found[place] = result
    return found


_NONE = np.empty(0)
_UNTESTED = Monotonicity(
    scores=_NONE,
    n=_NONE,
    prevalence=_NONE,
    fitted=_NONE,
    drop=float("nan"),
    p=float("nan"),
    undefined="fewer than 2 distinct scores near the threshold",
)


def _fall_tests(cells: Sequence[PrevalenceBins], draws: int, seed: int) -> list[Monotonicity]:
    """The tests of groups that have as many bins each."""
    size, yes = np.stack([part.n for part in cells]), np.stack([part.yes for part in cells])
    rate = yes / size
    fitted = np.stack(
        [
            np.clip(isotonic_fit(one, weights=mass), 0.0, 1.0)
            for one, mass in zip(rate, size, strict=True)
        ]
    )
    seen = _largest_drop(yes, size)
    p = np.ones(len(cells))
    # Where nothing falls every sample falls as much, and none has to be drawn.
    falls = np.flatnonzero(seen > 0)
    if falls.size:
        rows = np.round(size[falls]).astype(int)
        rng = np.random.default_rng(seed)
        start = rng.bit_generator.state
        drawn = np.empty((falls.size, draws, size.shape[1]), dtype=np.int64)
        for place, (n, chance) in enumerate(zip(rows, fitted[falls], strict=True)):
            rng.bit_generator.state = start
            drawn[place] = rng.binomial(n, chance, size=(draws, n.size))
        steeper = (
            _largest_drop(drawn, rows[:, None].astype(np.float64)) >= seen[falls, None] - 1e-12
        )
        p[falls] = (1 + np.count_nonzero(steeper, axis=1)) / (draws + 1)
    return [
        Monotonicity(
            scores=part.scores,
            n=part.n,
            prevalence=rate[i],
            fitted=fitted[i],
            drop=float(seen[i]),
            p=float(p[i]),
        )
        for i, part in enumerate(cells)
    ]


def _largest_drop(yes: ArrayLike, size: FloatArray) -> FloatArray:
    """Largest standardised fall between a bin and a later one, in the last axis; 0 where none."""
    # Half a case on each side keeps empty and full bins from having no variance.
    rate = (np.asarray(yes, dtype=float) + 0.5) / (size + 1)
    variance = rate * (1 - rate) / (size + 1)
    # Bins first, so that every pair of them is compared along memory.
    rate, variance = (np.ascontiguousarray(np.moveaxis(a, -1, 0)) for a in (rate, variance))
    largest = np.zeros(rate.shape[1:])
    for earlier, later in combinations(range(len(rate)), 2):
        spread = np.sqrt(variance[earlier] + variance[later])
        np.maximum(largest, (rate[earlier] - rate[later]) / spread, out=largest)
    return largest
