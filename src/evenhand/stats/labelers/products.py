"""The log cost ratio, d′²/2 − t·d′, of nearly normal (t, d′).

Given hyperparameters and d′ it is normal: its quantiles are those of a mixture over both, by some
rows of hyperparameters and Gauss–Hermite quadrature. Where labels are few it is too skewed for a
correction to the normal law.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.mixtures import Mixture, leaning, standard_quantile
from evenhand.stats.labelers.pairs import Pairs

NODES = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """The log cost ratio, normal (t, d′) given some rows that weigh alike.

    `t`, `d` and `covariance` are (rows, labelers, groups). `noise` is the variance of what is
    added independently. `whole` has mean, variance and skewness over all rows, noise and all.
    """

    t: FloatArray
    d: FloatArray
    covariance: Pairs
    noise: FloatArray
    whole: Mixture

    @property
    def mean(self) -> FloatArray:
        """Mean over all rows."""
        return self.whole.mean

    @property
    def sd(self) -> FloatArray:
        """Standard deviation over all rows."""
        return self.whole.sd

    @property
    def variance(self) -> FloatArray:
        """Variance over all rows."""
        return self.whole.variance

    def with_noise(self, mean: FloatArray, variance: FloatArray) -> "Products":
        """The same with something normal and independent added."""
        return Products(
            t=self.t,
            d=self.d,
            covariance=self.covariance,
            noise=self.noise + variance,
            whole=self.whole.with_noise(mean, variance),
        )

    def quantile(self, tail: float) -> FloatArray:
        """The number under which a share `tail` of the posterior lies."""
        away = product_quantile(tail, self.t, self.d, self.covariance, noise=self.noise)
        return np.asarray(self.mean + self.sd * (away + leaning(tail, self.whole.skew)))


def bend_variance(covariance: Pairs) -> FloatArray:
    """Variance of yᵀBy/2 with B the second slopes of d′²/2 − t·d′: tr(BVBV)/2."""
    cross, last = covariance.cross, covariance.last
    away = cross - covariance.first
    return np.asarray((cross * cross + (last - cross) ** 2) / 2 - last * away)


def product_quantile(
    tail: float, t: FloatArray, d: FloatArray, covariance: Pairs, *, noise: FloatArray | float = 0.0
) -> FloatArray:
    """Quantiles of d²/2 − t·d + e, e ~ N(0, noise), in standard deviations from the mean.

    (t, d) are mixed of normal ones along the first axis.

    Examples:
        >>> one = np.ones((1, 1))
        >>> spread = Pairs(0.02 * one, 0 * one, 0.03 * one)
        >>> product_quantile(0.025, one, 1.5 * one, spread).round(2).tolist()
        [-1.84]
    """
    x, weights = np.polynomial.hermite_e.hermegauss(NODES)
    on_d = covariance.cross / covariance.last
    at = d + np.sqrt(covariance.last) * x.reshape(-1, *[1] * t.ndim)
    mean = at * (at / 2 - t - on_d * (at - d))
    apart = at * at * (covariance.first - on_d * covariance.cross) + noise
    shape = -1, *t.shape[1:]
    parts = np.repeat(weights / weights.sum(), len(t)) / len(t)
    return standard_quantile(tail, mean.reshape(shape), apart.reshape(shape), weights=parts)
