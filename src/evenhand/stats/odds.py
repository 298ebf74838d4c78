"""Odds of counts: hits for each other case, with the gap and the ratio of two groups.

Of two kinds of cases that exclude each other, such as missed and wrong decisions, the first are
binomial given how many there are of both. An odds is an increasing function of that share, so its
limits are the share's. Every function broadcasts, as those of shares do; undefined is NaN, and an
odds without a case to divide by is undefined, never infinite.
"""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.estimate import FloatArray
from evenhand.stats.rates import LOG_END, Interval, score_limits, square_and_add, wilson


def odds(share: ArrayLike) -> FloatArray:
    """Hits for each other case; NaN where every case is a hit.

    Examples:
        >>> odds([0.0, 0.6, 1.0]).round(3).tolist()
        [0.0, 1.5, nan]
    """
    p = np.asarray(share, np.float64)
    with np.errstate(all="ignore"):
        return np.where(p < 1, p / (1 - p), np.nan)


def odds_slope(share: ArrayLike) -> FloatArray:
    """How much faster the odds move than the share: 1 ÷ (1 − p)².

    Examples:
        >>> odds_slope([0.0, 0.5]).tolist()
        [1.0, 4.0]
    """
    p = np.asarray(share, np.float64)
    with np.errstate(all="ignore"):
        return np.where(p < 1, 1 / (1 - p) ** 2, np.nan)


def odds_limits(hits: ArrayLike, n: ArrayLike, *, z: ArrayLike) -> Interval:
    """Wilson's limits of the share of hits, as odds; NaN where the odds are undefined.

    In the logarithm they lie as far below the odds as above (Newcombe 2001).

    Examples:
        >>> low, high = odds_limits(120, 200, z=1.959964)
        >>> print(f"{low:.3f} {high:.3f}")
        1.131 1.989
    """
    k, cases = np.asarray(hits, np.float64), np.asarray(n, np.float64)
    low, high = (odds(end) for end in wilson(k, cases, z=z))
    defined = k < cases
    return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


def odds_gap_limits(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    z: ArrayLike,
) -> Interval:
    """Interval of the gap of two odds, group − reference: squares of both sides' limits added.

    What Newcombe's interval is to shares (MOVER, Zou & Donner 2008).

    Examples:
        >>> low, high = odds_gap_limits(120, 200, 60, 240, z=1.959964)
        >>> print(f"{low:.3f} {high:.3f}")
        0.781 1.662
    """
    own, other = (
        (odds(np.asarray(k, np.float64) / np.asarray(m, np.float64)), odds_limits(k, m, z=z))
        for k, m in _sides(hits, n, hits_reference, n_reference)
    )
    return square_and_add(*own, *other)


def odds_ratio_limits(
    hits: ArrayLike,
    n: ArrayLike,
    hits_reference: ArrayLike,
    n_reference: ArrayLike,
    *,
    z: ArrayLike,
) -> Interval:
    """Score interval of the ratio of two odds, group ÷ reference (Miettinen & Nurminen 1985).

    What Koopman's interval is to shares. NaN where the ratio is undefined: without a hit in the
    reference, or without another case on either side.

    Examples:
        >>> low, high = odds_ratio_limits(120, 200, 60, 240, z=1.959964)
        >>> print(f"{low:.3f} {high:.3f}")
        2.997 6.756
    """
    arrays = (np.asarray(x, np.float64) for x in (hits, n, hits_reference, n_reference, z))
    k1, n1, k2, n2, z = np.broadcast_arrays(*arrays)
    defined = (n1 > 0) & (k1 < n1) & (k2 > 0) & (k2 < n2)
    with np.errstate(all="ignore"):
        log_ratio = np.log(k1 / (n1 - k1)) - np.log(k2 / (n2 - k2))
        # Woolf's limits with half a case added: a start close to the end.
        cells = (k1, n1 - k1, k2, n2 - k2)
        width = z * np.sqrt(np.sum([1 / (cell + 0.5) for cell in cells], axis=0))
    centre = np.where(defined, np.clip(log_ratio, -LOG_END, LOG_END), 0.0)
    found = score_limits(
        odds_ratio_score,
        (k1, n1, k2, n2),
        z,
        centre=centre,
        width=width,
        wanted=np.stack([defined & (k1 > 0), defined]),
    )
    low, high = np.exp(np.clip(found, -LOG_END, LOG_END))
    low = np.where(k1 <= 0, 0.0, low)
    return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


def odds_ratio_score(
    log_ratio: FloatArray, k1: FloatArray, n1: FloatArray, k2: FloatArray, n2: FloatArray
) -> FloatArray:
    """How many standard errors the counts lie from this odds ratio, by the restricted likelihood.

    With N ÷ (N − 1) in its variance, as the test of equal rates has it.
    """
    with np.errstate(all="ignore"):
        ratio = np.exp(log_ratio)
        hits, total = k1 + k2, n1 + n2
        square = n2 * (ratio - 1)
        linear = n1 * ratio + n2 - hits * (ratio - 1)
        root = np.sqrt(np.maximum(linear * linear + 4 * square * hits, 0.0))
        # The root between 0 and 1, written so that nothing cancels.
        p2 = np.where(linear >= 0, 2 * hits / (linear + root), (root - linear) / (2 * square))
        p2 = np.clip(p2, 0.0, 1.0)
        p1 = ratio * p2 / (1 - p2 + ratio * p2)
        excess = k1 - n1 * p1
        inverse = 1 / (n1 * p1 * (1 - p1)) + 1 / (n2 * p2 * (1 - p2))
        score = np.abs(excess) * np.sqrt(inverse * (total - 1) / total)
        return np.asarray(np.where(excess == 0, 0.0, np.minimum(score, 1e9)))


def _sides(
    hits: ArrayLike, n: ArrayLike, hits_reference: ArrayLike, n_reference: ArrayLike
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    k1, n1, k2, n2 = (np.asarray(x, np.float64) for x in (hits, n, hits_reference, n_reference))
    with np.errstate(all="ignore"):
        return (k1, np.where(n1 > 0, n1, np.nan)), (k2, np.where(n2 > 0, n2, np.nan))
