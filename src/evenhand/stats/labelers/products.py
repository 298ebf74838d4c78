"""Quantiles of the log cost ratio, d′²/2 − t·d′ and what is independent, of nearly normal (t, d′).

Given hyperparameters and d′ it is normal: its distribution is a mean over both, by some rows of
hyperparameters and Gauss–Hermite quadrature. Where labels are few it is too skewed for a series
in its cumulants.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.cumulants import Cumulants
from evenhand.stats.labelers.pairs import Pairs
from evenhand.stats.labelers.signal import normal_density

NODES = 7
# Quantiles lie within so many standard deviations of the mean; a step of so few is the last.
FURTHEST, CLOSE, MOST_STEPS = 20.0, 2e-3, 25
# A normal law never gets narrower than so much of the whole one, however close d′ is to 0.
NARROWEST = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """The log cost ratio without the prevalence, normal (t, d′) given rows that weigh alike.

    `t`, `d` and `covariance` are (rows, labelers, groups). `cumulants` are those over all rows,
    and `skew` what the likelihood adds to the skewness.
    """

    t: FloatArray
    d: FloatArray
    covariance: Pairs
    cumulants: Cumulants
    skew: FloatArray

    def quantile(self, tail: float, *, odds: FloatArray, variance: FloatArray) -> FloatArray:
        """The quantile with the prevalence's part added, normal around `odds`."""
        whole = self.cumulants.wider(variance)
        alone = Cumulants(
            mean=np.zeros_like(self.skew),
            variance=whole.variance,
            third=self.skew * self.cumulants.variance**1.5,
            fourth=np.zeros_like(self.skew),
        )
        leaning = alone.leaning(tail)
        away = standard_product(tail, self.t, self.d, self.covariance, more=variance)
        return np.asarray(whole.mean + odds + whole.sd * (away + leaning))


def bend_variance(covariance: Pairs) -> FloatArray:
    """Variance of yᵀBy/2 with B the second slopes of d′²/2 − t·d′: tr(BVBV)/2."""
    cross, last = covariance.cross, covariance.last
    away = cross - covariance.first
    return np.asarray((cross * cross + (last - cross) ** 2) / 2 - last * away)


def standard_product(
    tail: float, t: FloatArray, d: FloatArray, covariance: Pairs, *, more: FloatArray | float = 0.0
) -> FloatArray:
    """Quantiles of d²/2 − t·d + e, e ~ N(0, more), in standard deviations from the mean.

    (t, d) are mixed of normal ones along the first axis. By Newton's steps on the scale of normal
    quantiles, on which the distribution is nearly straight.

    Examples:
        >>> one = np.ones((1, 1))
        >>> spread = Pairs(0.02 * one, 0 * one, 0.03 * one)
        >>> standard_product(0.025, one, 1.5 * one, spread).round(2).tolist()
        [-1.84]
    """
    x, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = np.repeat(weights / weights.sum(), len(t)) / len(t)
    on_d = covariance.cross / covariance.last
    at = d + np.sqrt(covariance.last) * x.reshape(-1, *[1] * t.ndim)
    mean = (at * (at / 2 - t - on_d * (at - d))).reshape(-1, *t.shape[1:])
    left = covariance.first - on_d * covariance.cross
    apart = (at * at * left).reshape(mean.shape) + more
    centre = np.tensordot(weights, mean, 1)
    mean -= centre
    whole = np.sqrt(np.tensordot(weights, mean**2 + apart, 1))
    inverse = 1 / np.maximum(np.sqrt(apart), NARROWEST * whole)
    goal = float(ndtri(tail))
    found = goal * whole
    low, high = -FURTHEST * whole, FURTHEST * whole
    for _ in range(MOST_STEPS):
        away = (found - mean) * inverse
        reached = np.clip(np.tensordot(weights, ndtr(away), 1), 1e-12, 1 - 1e-12)
        slope = np.tensordot(weights, normal_density(away) * inverse, 1)
        z = ndtri(reached)
        low, high = np.where(z < goal, found, low), np.where(z < goal, high, found)
        step = (goal - z) * normal_density(z) / np.maximum(slope, 1e-300)
        nearer = found + step
        # Between parts that lie apart the distribution is flat, and a step may lead anywhere.
        nearer = np.where((nearer > low) & (nearer < high), nearer, (low + high) / 2)
        moved, found = np.abs(nearer - found), nearer
        if np.all(moved <= CLOSE * whole):
            break
    return np.asarray(found / whole)
