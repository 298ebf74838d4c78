"""How correlations measured class by class rise with a share: ρ, its correction, slope and size.

Each class c brings a share p_c, a rank correlation r_c and the n_c rows behind it. ρ speaks of
classes like these, so its uncertainty comes from the classes; the slope and the mean |r_c| say how
large the pattern is, which ρ, being free of scale, cannot.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtr, stdtrit

from evenhand.stats.estimate import Estimate, FloatArray, critical, number, student_critical
from evenhand.stats.ranks import average_ranks, bonett_wright, permutation_p, spearman
from evenhand.stats.sampled_ranks import SharedError

# With four classes even a perfect order has a permutation p of 0.08.
FEWEST_CLASSES = 5
# Below this share of true variance the correction multiplies ρ, and its error, by more than 3.
LEAST_RELIABILITY = 0.1
# From here on ρ needs no correction.
RELIABLE = 0.95
# What a method says where clusters have rows in several classes.
WIDER = ", wider by the clusters that classes share"


def class_columns(*columns: ArrayLike) -> list[FloatArray]:
    """The columns as arrays, restricted to the classes where all of them are defined."""
    kept = kept_classes(*columns)
    return [np.asarray(column, dtype=np.float64)[kept] for column in columns]


def kept_classes(*columns: ArrayLike) -> NDArray[np.bool_]:
    """Where all columns are defined."""
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    return np.asarray(np.all([np.isfinite(column) for column in arrays], axis=0))


def large_classes(n: ArrayLike, *columns: ArrayLike) -> NDArray[np.bool_]:
    """Where all columns are defined and more than three rows stand behind them."""
    return kept_classes(n, *columns) & (np.asarray(n, dtype=np.float64) > 3)


def too_few(classes: int, *, level: float) -> Estimate:
    """The refusal for fewer classes than a trend over classes needs."""
    reason = f"{classes} classes have a value and {FEWEST_CLASSES} are needed"
    return Estimate.none(reason, level=level, n=classes)


def rank_trend(
    shares: ArrayLike,
    correlations: ArrayLike,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    shared: SharedError | None = None,
) -> Estimate:
    """Spearman's ρ of r_c with p_c over classes, Bonett–Wright interval, permutation p-value.

    With `shared` errors the interval is wider by what they add to the variance, seen through the
    slope of r_c on the ranks of p_c, and p is no less than that of the wider interval.

    Examples:
        >>> shares, correlations = [0.1, 0.25, 0.45, 0.7, 0.9], [-0.3, -0.05, -0.1, 0.05, 0.2]
        >>> print(rank_trend(shares, correlations))
        0.900 [-0.169, 0.996] n=5
        >>> print(rank_trend(shares[:4], correlations[:4]))
        undefined: 4 classes have a value and 5 are needed
    """
    p, r = class_columns(shares, correlations)
    if p.size < FEWEST_CLASSES:
        return too_few(p.size, level=level)
    rho = float(spearman(p, r))
    if not np.isfinite(rho):
        reason = "the shares or the correlations are the same in every class"
        return Estimate.none(reason, level=level, n=p.size)
    low, high = bonett_wright(rho, p.size, z=critical(level))
    least = permutation_p(p, r, draws=draws, seed=seed)
    method = "Spearman over classes, Bonett-Wright interval, permutation p"
    if shared is not None and abs(rho) < 1:
        u, v = ((x - x.mean()) / x.std() for x in (average_ranks(p), r))
        gradient = (u - rho * v) / (p.size * r.std()) / (1 - rho * rho)
        own = (1 + rho * rho / 2) / (p.size - 3)
        mine = shared.take(kept_classes(shares, correlations))
        variance, df = mine.join(own, gradient, freedom=np.inf)
        if variance > own:
            half = float(student_critical(critical(level), freedom=df)) * variance**0.5
            low, high = np.tanh(np.arctanh(rho) + np.array([-half, half]))
            least = max(least, 2 * float(stdtr(df, -abs(np.arctanh(rho)) / variance**0.5)))
            method = f"Spearman over classes, Bonett-Wright interval{WIDER}, t"
    return Estimate(
        value=rho,
        low=float(low),
        high=float(high),
        level=level,
        n=p.size,
        p=least,
        method=method,
    )


def class_variances(correlations: ArrayLike, n: ArrayLike) -> FloatArray:
    """Sampling variance of each class's rank correlation, at the typical size of them all.

    (1 − μ²)²(1 + μ²/2) ÷ (n − 1), μ² the mean square of the r_c without its noise, at most 0.9:
    taken at each r_c itself, small classes with a large r by luck would look sure. NaN where
    either is missing.

    Examples:
        >>> class_variances([-0.2, 0.2, 0.2], [101, 101, 26]).round(4).tolist()
        [0.0097, 0.0097, 0.0388]
    """
    r, rows = np.asarray(correlations, np.float64), np.asarray(n, np.float64)
    known = np.isfinite(r) & (rows > 1)
    safe = np.where(known, rows - 1.0, np.nan)
    square = np.mean(r[known] ** 2 - 1.0 / safe[known]) if known.any() else 0.0
    typical = float(np.clip(square, 0.0, 0.9))
    return np.where(known, (1 - typical) ** 2 * (1 + typical / 2) / safe, np.nan)


def reliability(
    correlations: ArrayLike, n: ArrayLike, *, shared: SharedError | None = None
) -> float:
    """Share of the variance of r_c over classes that is not sampling error; at most 1.

    Negative where the classes differ by less than chance alone would make them; NaN with fewer
    than two classes of at least four rows.

    Examples:
        >>> round(reliability([-0.3, -0.1, 0.1, 0.3], [103, 103, 103, 103]), 3)
        0.862
    """
    kept = large_classes(n, correlations)
    r, rows = (np.asarray(column, dtype=np.float64)[kept] for column in (correlations, n))
    if r.size < 2 or np.ptp(r) == 0:
        return float("nan")
    apart = 1.0 if shared is None else shared.take(kept).apart
    return float(1.0 - apart * np.mean(class_variances(r, rows)) / np.var(r, ddof=1))


def leading_trend(rho: Estimate, *, reliability: float) -> tuple[Estimate, bool]:
    """The ρ that carries the verdict, and whether that is the corrected one.

    Below a reliability of 0.95 ρ itself covers as little as 85 % of the latent one; then the
    corrected ρ leads, undefined where hardly any of the classes' variance is theirs.

    Examples:
        >>> observed = Estimate(value=0.6, low=0.2, high=0.82, n=28)
        >>> leading_trend(observed, reliability=0.97)[1]
        False
        >>> print(leading_trend(observed, reliability=0.75)[0])
        0.693 [0.231, 0.947] n=28
    """
    if rho.value is None or reliability >= RELIABLE:
        return rho, False
    return corrected(rho, reliability=reliability), True


def corrected(rho: Estimate, *, reliability: float) -> Estimate:
    """ρ freed of the attenuation that error in the r_c causes: value and limits over √reliability.

    Clipped at ±1. Covers 97-99 %: the division widens the interval a little more than needed.

    Examples:
        >>> observed = Estimate(value=0.6, low=0.2, high=0.82, n=28)
        >>> print(corrected(observed, reliability=0.75))
        0.693 [0.231, 0.947] n=28
    """
    if rho.value is None or rho.low is None or rho.high is None:
        return Estimate.none(rho.undefined or "no ρ", level=rho.level, n=rho.n)
    if not reliability > LEAST_RELIABILITY:
        reason = (
            f"reliability of the class correlations is {reliability:.2f}, not above "
            f"{LEAST_RELIABILITY}: they differ hardly more than chance would make them"
        )
        return Estimate.none(reason, level=rho.level, n=rho.n)
    value, low, high = np.clip(
        np.array([rho.value, rho.low, rho.high]) / np.sqrt(min(1.0, reliability)), -1.0, 1.0
    )
    return Estimate(
        value=float(value),
        low=float(low),
        high=float(high),
        level=rho.level,
        n=rho.n,
        p=rho.p,
        method=f"corrected for attenuation, reliability {reliability:.3f}",
    )


def slope(
    shares: ArrayLike,
    correlations: ArrayLike,
    n: ArrayLike,
    *,
    level: float = 0.95,
    shared: SharedError | None = None,
) -> Estimate:
    """Rise of r_c from a share of 0 to a share of 1, by random-effects regression over classes.

    Weights 1/(error variance + variance between classes), the latter by Paule & Mandel (1982), and
    t with C - 2 degrees of freedom. With classes of 20 to 10,000 rows least squares covers as
    little as 75 % with nine classes and is up to four times as wide with 28.

    Examples:
        >>> print(slope([0.1, 0.3, 0.5, 0.7, 0.9], [-0.2, -0.1, 0.0, 0.1, 0.2], [400] * 5))
        0.500 [0.251, 0.749] n=5
    """
    p, r, rows = class_columns(shares, correlations, n)
    p, r, rows = p[rows > 3], r[rows > 3], rows[rows > 3]
    if p.size < FEWEST_CLASSES:
        return too_few(p.size, level=level)
    if np.ptp(p) == 0:
        return Estimate.none("the shares are the same in every class", level=level, n=p.size)
    # The error variance at the typical size of r: at each r_c itself a lucky ±1 would outweigh all.
    typical = float(np.sum((rows - 3) * r * r) / np.sum(rows - 3))
    error = np.maximum((1 - typical) ** 2, 1e-6) * (1 + typical / 2) / (rows - 3)
    between = between_variance(p, r, error)
    weight = 1.0 / (error + between)
    rise, own, _ = weighted_line(p, r, weight)
    variance, df = own, float(p.size - 2)
    if shared is not None:
        gradient = weight * (p - (weight @ p) / weight.sum()) * own
        mine = shared.take(large_classes(n, shares, correlations))
        variance, df = mine.join(own, gradient, freedom=df)
    wider = WIDER if variance > own else ""
    half = float(stdtrit(df, 0.5 + level / 2)) * variance**0.5
    return Estimate(
        value=rise,
        low=rise - half,
        high=rise + half,
        level=level,
        n=p.size,
        p=float(2 * stdtr(df, -abs(rise) / variance**0.5)),
        method=f"random-effects regression over classes (Paule-Mandel), t interval{wider}",
    )


def weighted_line(p: FloatArray, r: FloatArray, weight: FloatArray) -> tuple[float, float, float]:
    """Slope of a weighted line, its variance 1/Σw(p - p̄)², and the weighted sum of squares left."""
    total = weight.sum()
    u, v = p - (weight @ p) / total, r - (weight @ r) / total
    spread = float(weight @ (u * u))
    rise = float(weight @ (u * v)) / spread
    return rise, 1.0 / spread, float(weight @ (v - rise * u) ** 2)


def between_variance(p: FloatArray, r: FloatArray, error: FloatArray) -> float:
    """Paule–Mandel variance between classes: the one that makes the weighted residuals C - 2."""
    target = p.size - 2

    def left(between: float) -> float:
        return weighted_line(p, r, 1.0 / (error + between))[2]

    if left(0.0) <= target:
        return 0.0
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle) > target else (low, middle)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanSize:
    """Mean |r_c| beside its mean, and the upper limit of it, if every r_c were 0."""

    estimate: Estimate
    floor: float
    floor_high: float


def mean_size(
    correlations: ArrayLike,
    n: ArrayLike,
    *,
    level: float = 0.95,
    shared: SharedError | None = None,
) -> MeanSize:
    """Mean |r_c| over classes with its t interval, noise floor, and p-value of lying above it.

    The plain mean cannot reach 0, so it is to be read against the floor: under no correlation r_c
    has variance 1/(n_c - 1), and its absolute value the mean √(2/π(n_c - 1)).

    Examples:
        >>> size = mean_size([0.2, -0.1, 0.3, 0.0, -0.25], [101] * 5)
        >>> print(size.estimate, round(size.floor, 3), round(size.floor_high, 3))
        0.170 [0.020, 0.320] n=5 0.08 0.133
    """
    kept = large_classes(n, correlations)
    signed, rows = (np.asarray(column, dtype=np.float64)[kept] for column in (correlations, n))
    r, classes = np.abs(signed), signed.size
    if classes < 2:
        none = Estimate.none("fewer than two classes have a correlation", level=level, n=classes)
        return MeanSize(estimate=none, floor=float("nan"), floor_high=float("nan"))
    value = float(r.mean())
    floor = float(np.mean(np.sqrt(2 / (np.pi * (rows - 1)))))
    noise = float(np.sqrt(np.sum((1 - 2 / np.pi) / (rows - 1)))) / classes
    own = float(r.var(ddof=1)) / classes
    variance, df = own, float(classes - 1)
    if shared is not None:
        variance, df = shared.take(kept).join(own, np.sign(signed) / classes, freedom=df)
    half = float(stdtrit(df, 0.5 + level / 2)) * variance**0.5
    wider = WIDER if variance > own else ""
    estimate = Estimate(
        value=value,
        low=max(0.0, value - half),
        high=min(1.0, value + half),
        level=level,
        n=classes,
        p=float(ndtr(-(value - floor) / noise)),
        method=f"mean over classes, t interval{wider}; {floor:.3f} expected if every correlation "
        "were 0",
    )
    return MeanSize(estimate=estimate, floor=floor, floor_high=floor + critical(level) * noise)


WEAK_SIGNAL = (
    "correlations hardly exceed their sampling error, and the interval may hold in nine of ten "
    "data sets alone"
)


def latent_mean_size(
    shares: ArrayLike,
    correlations: ArrayLike,
    n: ArrayLike,
    *,
    level: float = 0.95,
    shared: SharedError | None = None,
) -> Estimate:
    """Mean |r_c| over classes freed of what sampling error adds to it, by jackknife over classes.

    From the mean is taken mean[F(m, V + s²) − F(m, V)], F(m, v) the mean of |N(m, v)|, m the
    line of r_c over the shares, s² the classes' sampling variances and V what is left of the
    variance around the line without them. t with C − 1 degrees of freedom; the value may lie
    below 0 by luck and is shown as 0, and so is the lower limit where chance alone would give as
    much. Very weak signals are covered .88 to .93, and `method` says so.

    Examples:
        >>> shares, r = [0.1, 0.3, 0.5, 0.7, 0.9], [-0.3, -0.1, 0.05, 0.2, 0.25]
        >>> print(latent_mean_size(shares, r, [60, 80, 60, 80, 60]))
        0.158 [0.000, 0.319] n=5
    """
    large = large_classes(n, shares, correlations)
    p, r, rows = (np.asarray(x, dtype=np.float64)[large] for x in (shares, correlations, n))
    if p.size < FEWEST_CLASSES:
        return too_few(p.size, level=level)
    if np.ptp(p) == 0:
        return Estimate.none("the shares are the same in every class", level=level, n=p.size)
    classes = p.size
    noise = class_variances(r, rows)
    # Each row leaves one class out; the sampling variances stay as they are.
    kept = np.arange(classes) != np.arange(classes)[:, None]
    others = [np.broadcast_to(x, kept.shape)[kept].reshape(classes, -1) for x in (p, r, noise)]
    value = float(_size_without_noise(p[None], r[None], noise[None])[0])
    left = _size_without_noise(*others)
    own = float((classes - 1) / classes * ((left - left.mean()) ** 2).sum())
    variance, df = own, float(classes - 1)
    if shared is not None:
        variance, df = shared.take(large).join(own, np.sign(r) / classes, freedom=df)
    half = float(stdtrit(df, 0.5 + level / 2)) * variance**0.5
    wider = WIDER if variance > own else ""
    # Near 0 the correction hinges on whether any variance is left, and the jackknife misses that:
    # what chance alone would give may be nothing.
    chance = float(np.abs(r).mean()) <= mean_size(r, rows, level=level).floor_high
    weak = f"; {WEAK_SIGNAL}" if float((r**2).mean()) < 2 * float(noise.mean()) else ""
    return Estimate(
        value=max(0.0, value),
        low=0.0 if chance else max(0.0, value - half),
        high=min(1.0, max(0.0, value + half)),
        level=level,
        n=classes,
        method=f"mean over classes without sampling error, jackknife over classes, t{wider}{weak}",
    )


def _size_without_noise(p: FloatArray, r: FloatArray, noise: FloatArray) -> FloatArray:
    """Corrected mean |r| of each row of classes."""
    u = p - p.mean(axis=-1, keepdims=True)
    spread = (u * u).sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        rise = np.where(spread > 0, (u * r).sum(axis=-1, keepdims=True) / spread, 0.0)
    line = r.mean(axis=-1, keepdims=True) + rise * u
    around = ((r - line) ** 2).sum(axis=-1) / (r.shape[-1] - 2)
    between = np.maximum(around - noise.mean(axis=-1), 0.0)[..., None]
    extra = folded_mean(line, between + noise) - folded_mean(line, between)
    return np.asarray((np.abs(r) - extra).mean(axis=-1))


def folded_mean(mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Mean of |X| where X is normal.

    Examples:
        >>> folded_mean([0.0, 2.0], [1.0, 0.0]).round(4).tolist()
        [0.7979, 2.0]
    """
    m, v = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(variance, np.float64))
    spread = np.sqrt(np.maximum(v, 0.0))
    with np.errstate(all="ignore"):
        away = np.where(spread > 0, m / spread, np.inf)
        folded = spread * np.sqrt(2 / np.pi) * np.exp(-(away**2) / 2) + m * (1 - 2 * ndtr(-away))
    return np.asarray(np.where(spread > 0, folded, np.abs(m)))


def meng(first: float, second: float, between: float, *, n: int) -> tuple[float, float]:
    """z and two-sided p of two correlations with one shared column (Meng, Rosenthal & Rubin 1992).

    `between` is the correlation of the two columns that are not shared.

    Examples:
        >>> z, p = meng(0.85, 0.55, 0.6, n=28)
        >>> print(f"z={z:.3f} p={p:.4f}")
        z=2.801 p=0.0051
    """
    # At ±1 Fisher's z is infinite; half a step of the ranks keeps it finite, as in bonett_wright.
    limit = 1 - max(6 / (n**3 - n), 1e-15)
    a, b = (max(-limit, min(limit, r)) for r in (first, second))
    square = (a * a + b * b) / 2
    fraction = min(1.0, (1 - between) / (2 * (1 - square)))
    inflation = (1 - fraction * square) / (1 - square)
    spread = 2 * (1 - between) * inflation
    if n <= 3 or spread <= 0:
        return float("nan"), float("nan")
    z = float((np.arctanh(a) - np.arctanh(b)) * np.sqrt((n - 3) / spread))
    return z, float(2 * ndtr(-abs(z)))


def compare_trends(
    shares: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> Estimate:
    """ρ of the first model minus ρ of the second on the same classes: Meng's p, paired bootstrap.

    Examples:
        >>> shares = [0.1, 0.2, 0.35, 0.5, 0.6, 0.8, 0.9]
        >>> steep = [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4]
        >>> flat = [0.1, -0.2, 0.0, 0.2, -0.1, 0.1, 0.0]
        >>> result = compare_trends(shares, steep, flat)
        >>> round(result.value, 3), round(result.p, 3)
        (0.945, 0.001)
    """
    p, a, b = class_columns(shares, first, second)
    if p.size < FEWEST_CLASSES:
        return too_few(p.size, level=level)
    one, two, between = float(spearman(p, a)), float(spearman(p, b)), float(spearman(a, b))
    if not np.isfinite([one, two, between]).all():
        reason = "the shares or one model's correlations are the same in every class"
        return Estimate.none(reason, level=level, n=p.size)
    rows = np.random.default_rng(seed).integers(p.size, size=(draws, p.size))
    low, high = percentiles(spearman(p[rows], a[rows]) - spearman(p[rows], b[rows]), level=level)
    return Estimate(
        value=one - two,
        low=number(low),
        high=number(high),
        level=level,
        n=p.size,
        p=number(meng(one, two, between, n=p.size)[1]),
        method="paired bootstrap over classes; p by Meng, Rosenthal & Rubin",
    )


def bootstrap_trend(
    shares: ArrayLike,
    correlations: ArrayLike,
    n: ArrayLike,
    *,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> Estimate:
    """ρ with a percentile bootstrap over classes and rows: for comparison only, never the default.

    Classes are drawn again with replacement and each r_c moved by its own error on Fisher's scale,
    which is what drawing its rows again does, without needing the rows.

    Examples:
        >>> shares, correlations = [0.1, 0.25, 0.45, 0.7, 0.9], [-0.3, -0.05, -0.1, 0.05, 0.2]
        >>> bootstrap_trend(shares, correlations, [200] * 5).value
        0.9
    """
    p, r, rows = class_columns(shares, correlations, n)
    p, r, rows = p[rows > 3], r[rows > 3], rows[rows > 3]
    if p.size < FEWEST_CLASSES:
        return too_few(p.size, level=level)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(p.size, size=(draws, p.size))
    centre = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    error = np.sqrt((1 + r * r / 2) / (rows - 3))
    moved = np.tanh(centre[drawn] + error[drawn] * generator.standard_normal(drawn.shape))
    low, high = percentiles(spearman(p[drawn], moved), level=level)
    value = float(spearman(p, r))
    return Estimate(
        value=number(value),
        low=number(low),
        high=number(high),
        level=level,
        n=p.size,
        method="bootstrap over classes and rows",
        undefined=None if np.isfinite(value) else "the shares are the same in every class",
    )


def percentiles(draws: FloatArray, *, level: float) -> Sequence[float]:
    """Lower and upper percentile of the defined draws, NaN where there are none."""
    kept = draws[np.isfinite(draws)]
    if not kept.size:
        return float("nan"), float("nan")
    low, high = np.quantile(kept, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)
