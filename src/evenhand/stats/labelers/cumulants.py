"""Limits of numbers that are nearly normal, from their first four cumulants.

A posterior mixed of normal ones over hyperparameters, or bent a little by its likelihood, is known
by its cumulants to a small part of its standard deviation, where the quantiles of two thousand
draws miss by a twentieth of it.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from evenhand.stats.estimate import FloatArray

# Beyond these a number is far from normal, and the series no longer close to it.
MOST_SKEWED, LEAST_HEAVY = 1.5, -0.5
# Skewness of a mixture is that of its widest parts more than of where its quantiles lie. By how
# much less it moves these is taken from draws of labelers with 20 to 60 labels each.
WIDEST = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cumulants:
    """Mean, variance, third and fourth cumulant; of an array of numbers."""

    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    fourth: FloatArray

    def __add__(self, other: "Cumulants") -> "Cumulants":
        """Cumulants of a sum of what is independent."""
        return Cumulants(
            mean=self.mean + other.mean,
            variance=self.variance + other.variance,
            third=self.third + other.third,
            fourth=self.fourth + other.fourth,
        )

    def bent(self, by: "Cumulants") -> "Cumulants":
        """The same with corrections added, the first terms of a series.

        Where they are not small they are held: no variance is taken away whole, nor doubled.
        """
        share = by.variance / self.variance
        factor = np.where(share < 0, 1 / (1 - np.minimum(share, 0.0)), 1 + np.tanh(share))
        return replace(self + by, variance=self.variance * factor)

    def over_mixture(self, kurtosis: FloatArray, *, power: int) -> "Cumulants":
        """Corrections at the mean of a mixture, as they are on average over it.

        The third goes with the variance to a power, the fourth with it to the next: the mean of
        vᵖ exceeds v̄ᵖ by p(p − 1)/2 squared coefficients of variation, and the mixture's kurtosis
        is three of them.
        """
        of_v = np.clip(kurtosis, 0.0, 1.0) / 3
        third, fourth = (1 + p * (p - 1) / 2 * of_v for p in (power, power + 1))
        return replace(self, third=self.third * third, fourth=self.fourth * fourth)

    def wider(self, variance: FloatArray | float) -> "Cumulants":
        """The same with the variance of something normal and independent added."""
        return replace(self, variance=self.variance + variance)

    def at(self, mean: FloatArray) -> "Cumulants":
        """The same around another mean."""
        return replace(self, mean=mean)

    @property
    def sd(self) -> FloatArray:
        """Standard deviation."""
        return np.asarray(np.sqrt(self.variance))

    def quantile(self, tail: float) -> FloatArray:
        """The number under which a share `tail` of the posterior lies."""
        return np.asarray(self.mean + self.sd * self.standard(tail))

    def standard(self, tail: float) -> FloatArray:
        """The same in standard deviations from the mean.

        Cornish and Fisher's series. Tails that are heavier than the skewness explains, from
        standard deviations that are themselves not known, are those of Student's t of that
        kurtosis, which the series alone would overdo.

        Examples:
            >>> one = Cumulants(mean=np.zeros(1), variance=np.ones(1), third=np.zeros(1),
            ...                 fourth=np.ones(1))
            >>> one.standard(0.975).round(2).tolist()  # t with 10 degrees of freedom: 1.99
            [1.99]
        """
        z = float(ndtri(tail))
        heavy = self._excess()
        cubic, bent = (z**3 - 3 * z) / 24, (2 * z**3 - 5 * z) / 36
        straight = _student(z, np.maximum(heavy, 0.0)) + cubic * np.minimum(heavy, 0.0)
        return np.asarray(
            straight + self.leaning(tail) + (1.5 * cubic - bent) * self._skewness() ** 2
        )

    def leaning(self, tail: float) -> FloatArray:
        """By how much skewness moves the quantile, in standard deviations, to first order."""
        lasting = self._skewness() / (1 + WIDEST * np.maximum(self._excess(), 0.0))
        return np.asarray((float(ndtri(tail)) ** 2 - 1) / 6 * lasting)

    def _skewness(self) -> FloatArray:
        return np.clip(self.third / self.variance**1.5, -MOST_SKEWED, MOST_SKEWED)

    def _excess(self) -> FloatArray:
        """Kurtosis beyond that of a gamma law of the same skewness."""
        of_gamma = 1.5 * self._skewness() ** 2
        return np.maximum(self.fourth / self.variance**2 - of_gamma, LEAST_HEAVY)


def _student(z: float, kurtosis: FloatArray) -> FloatArray:
    """Quantile of Student's t of a kurtosis, scaled to variance 1, where the normal one is z.

    By its series in 1/ν (Abramowitz & Stegun 26.7.5), with ν = 4 + 6/kurtosis.
    """
    spare = kurtosis / (6 + 4 * kurtosis)
    one = (z**3 + z) / 4
    two = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    three = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return np.asarray((z + spare * (one + spare * (two + spare * three))) * np.sqrt(1 - 2 * spare))


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


def of_moments(centre: FloatArray, moments: FloatArray) -> Cumulants:
    """Cumulants from raw moments around a centre."""
    one, two, three, four = moments
    variance = two - one**2
    return Cumulants(
        mean=centre + one,
        variance=variance,
        third=three - 3 * one * two + 2 * one**3,
        fourth=four - 4 * one * three + 6 * one**2 * two - 3 * one**4 - 3 * variance**2,
    )
