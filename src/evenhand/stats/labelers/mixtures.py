"""Limits of numbers that are normal given hyperparameters, but for a little skewness.

Their mean and variance are those over all rows of hyperparameters; their quantiles those of a
mixture of some rows that weigh alike, where two thousand draws would miss by a twentieth of a
standard deviation.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.signal import normal_density

# Quantiles lie within so many standard deviations of the mean. A step of so few is the last: its
# square is what is missing.
FURTHEST, CLOSE, MOST_STEPS = 20.0, 2e-2, 25
# No part of a mixture is narrower than so much of the whole.
NARROWEST = 0.05
# Beyond this a first correction for skewness is none.
MOST_SKEWED = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Mean, variance and kurtosis of mixtures."""

    mean: FloatArray
    variance: FloatArray
    kurtosis: FloatArray


def raw_moments(weights: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Raw moments, one to four, of normal numbers mixed along the first axis; add them up.

    Means are given as differences from some centre near theirs, (rows, numbers, labelers); the
    moments are (4, labelers, numbers).
    """
    square = mean * mean
    whole = square + variance
    each = (
        mean,
        whole,
        mean * (whole + 2 * variance),
        whole * whole + 2 * variance * (whole + square),
    )
    return np.stack([np.tensordot(weights, one, 1).T for one in each])


def of_moments(centre: FloatArray, moments: FloatArray) -> Moments:
    """Mean, variance and kurtosis from raw moments around a centre."""
    one, two, three, four = moments
    variance = two - one**2
    fourth = four - 4 * one * three + 6 * one**2 * two - 3 * one**4
    return Moments(mean=centre + one, variance=variance, kurtosis=fourth / variance**2 - 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bend:
    """What a likelihood that is not normal adds to a number's variance and third cumulant."""

    variance: FloatArray
    third: FloatArray

    def __add__(self, other: "Bend") -> "Bend":
        return Bend(variance=self.variance + other.variance, third=self.third + other.third)

    def over(self, mixture: Moments, *, power: int) -> "Bend":
        """Corrections at the mean of a mixture, as they are on average over it.

        The third cumulant goes with the variance to a power: the mean of vᵖ exceeds v̄ᵖ by
        p(p − 1)/2 squared coefficients of variation, and the kurtosis is three of them.
        """
        more = power * (power - 1) / 6 * np.clip(mixture.kurtosis, 0.0, 1.0)
        return replace(self, third=self.third * (1 + more))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Numbers with their mean and variance, and how they lie given some rows that weigh alike.

    `given` are means and variances, rows along the first axis. `skew` is the skewness that comes
    of no difference between rows.
    """

    mean: FloatArray
    variance: FloatArray
    skew: FloatArray
    given: tuple[FloatArray, FloatArray]

    @property
    def sd(self) -> FloatArray:
        """Standard deviation."""
        return np.asarray(np.sqrt(self.variance))

    def with_noise(self, mean: FloatArray, variance: FloatArray) -> "Mixture":
        """The same with something normal and independent added."""
        whole = self.variance + variance
        return Mixture(
            mean=self.mean + mean,
            variance=whole,
            skew=self.skew * (self.variance / whole) ** 1.5,
            given=(self.given[0], self.given[1] + variance),
        )

    def quantile(self, tail: float) -> FloatArray:
        """The number under which a share `tail` of the posterior lies."""
        standard = standard_quantile(tail, *self.given) + leaning(tail, self.skew)
        return np.asarray(self.mean + self.sd * standard)


def mixture_of(plain: Moments, bend: Bend, *, given: tuple[FloatArray, FloatArray]) -> Mixture:
    """A mixture with corrections, the first terms of a series.

    Where they are not small they are held: no variance is taken away whole, nor doubled.
    """
    share = bend.variance / plain.variance
    factor = np.where(share < 0, 1 / (1 - np.minimum(share, 0.0)), 1 + np.tanh(share))
    return Mixture(
        mean=plain.mean,
        variance=plain.variance * factor,
        skew=bend.third / plain.variance**1.5,
        given=given,
    )


def leaning(tail: float, skew: FloatArray) -> FloatArray:
    """By how many standard deviations skewness moves a quantile, to first order.

    Examples:
        >>> leaning(0.975, np.array([0.0, 0.3])).round(3).tolist()
        [0.0, 0.142]
    """
    held = np.clip(skew, -MOST_SKEWED, MOST_SKEWED)
    return np.asarray((float(ndtri(tail)) ** 2 - 1) / 6 * held)


def standard_quantile(
    tail: float, mean: FloatArray, variance: FloatArray, *, weights: FloatArray | None = None
) -> FloatArray:
    """Quantile of a mixture along the first axis, in its standard deviations from its mean.

    By Newton's steps on the scale of normal quantiles, on which the distribution is nearly
    straight.

    Examples:
        >>> standard_quantile(0.975, np.zeros((2, 1)), np.array([[0.5], [1.5]])).round(2).tolist()
        [2.04]
    """
    parts = np.full(len(mean), 1 / len(mean)) if weights is None else weights
    centre = np.tensordot(parts, mean, 1)
    away = mean - centre
    whole = np.sqrt(np.tensordot(parts, away * away + variance, 1))
    inverse = 1 / np.maximum(np.sqrt(variance), NARROWEST * whole)
    goal = float(ndtri(tail))
    found = goal * whole
    low, high = -FURTHEST * whole, FURTHEST * whole
    for _ in range(MOST_STEPS):
        standard = (found - away) * inverse
        reached = np.clip(np.tensordot(parts, ndtr(standard), 1), 1e-12, 1 - 1e-12)
        slope = np.tensordot(parts, normal_density(standard) * inverse, 1)
        z = ndtri(reached)
        low, high = np.where(z < goal, found, low), np.where(z < goal, high, found)
        nearer = found + (goal - z) * normal_density(z) / np.maximum(slope, 1e-300)
        # Between parts that lie apart the distribution is flat, and a step may lead anywhere.
        nearer = np.where((nearer > low) & (nearer < high), nearer, (low + high) / 2)
        moved, found = np.abs(nearer - found), nearer
        if np.all(moved <= CLOSE * whole):
            break
    return np.asarray(found / whole)
