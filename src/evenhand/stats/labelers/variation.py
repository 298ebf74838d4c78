"""How labelers vary: the covariance of what they do in every group and of what only in one.

θ_j ~ N(β, Σ), Σ = 11ᵀ⊗S_u + I⊗S_w, from six numbers whatever the number of groups, three with one
group. Standard deviations are √(x² + 0.01²) of a signed number and correlations tanh of another.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.pairs import Pairs

SMALLEST_SD = 0.01
SCALE_LABELER = 0.5
SCALE_WITHIN = 0.25
SCALE_CORRELATION = 0.5
LARGEST_Z = 7.0


def hyper_size(groups: int) -> int:
    """How many hyperparameters there are: three for one group, else six."""
    return 3 if groups == 1 else 6


def hyper_sds(hyper: ArrayLike) -> FloatArray:
    """Standard deviations (t, d′ per labeler; t, d′ per labeler and group) of signed parameters.

    √(x² + 0.01²) is even and smooth at 0, where a log scale would run off to −∞.

    Examples:
        >>> hyper_sds([[0.0, -0.3, 0.1]]).round(4).tolist()
        [[0.01, 0.3002]]
    """
    h = np.asarray(hyper, dtype=float)
    columns = [0, 1] if h.shape[-1] == 3 else [0, 1, 3, 4]
    return np.asarray(np.sqrt(h[..., columns] ** 2 + SMALLEST_SD**2))


def log_prior(hyper: ArrayLike) -> FloatArray:
    """Log prior of signed parameters, without constants."""
    h = np.atleast_2d(np.asarray(hyper, dtype=float))
    return np.asarray(-0.5 * ((h / _scales(h)) ** 2).sum(axis=1))


def log_prior_slope(hyper: FloatArray) -> FloatArray:
    """Slope of the log prior by each of the numbers."""
    return -hyper / _scales(hyper) ** 2


def _scales(h: FloatArray) -> FloatArray:
    scale = [SCALE_LABELER, SCALE_LABELER, SCALE_CORRELATION]
    within = [SCALE_WITHIN, SCALE_WITHIN, SCALE_CORRELATION]
    return np.array(scale + within if h.shape[1] == 6 else scale)


def covariance_pairs(hyper: FloatArray) -> list[Pairs]:
    """S_u and, with more than one group, S_w; one for each row of hyperparameters."""
    sds = hyper_sds(hyper)
    found = []
    for k in range(hyper.shape[1] // 3):
        # Kept so far from a correlation of 1 that the covariance has an inverse.
        correlation = np.tanh(np.clip(hyper[:, 3 * k + 2], -LARGEST_Z, LARGEST_Z))
        t, d = sds[:, 2 * k], sds[:, 2 * k + 1]
        found.append(Pairs(t**2, correlation * t * d, d**2))
    return found


def covariance_slope(hyper: FloatArray, by: list[Pairs]) -> FloatArray:
    """Slope by the hyperparameters of what has slopes `by` in S_u and S_w.

    A slope in a matrix S is the B for which a change of S adds tr(B·dS).
    """
    sds, found = hyper_sds(hyper), np.empty_like(hyper)
    for k, slope in enumerate(by):
        z = hyper[:, 3 * k + 2]
        correlation = np.tanh(np.clip(z, -LARGEST_Z, LARGEST_Z))
        t, d = sds[:, 2 * k], sds[:, 2 * k + 1]
        by_t = 2 * (slope.first * t + slope.cross * correlation * d)
        by_d = 2 * (slope.last * d + slope.cross * correlation * t)
        found[:, 3 * k] = by_t * hyper[:, 3 * k] / t
        found[:, 3 * k + 1] = by_d * hyper[:, 3 * k + 1] / d
        bend = np.where(np.abs(z) < LARGEST_Z, 1 - correlation**2, 0.0)
        found[:, 3 * k + 2] = 2 * slope.cross * t * d * bend
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Σ⁻¹ = I⊗near − 11ᵀ⊗common of each row, and log|Σ|.

    `total` is (S_w + G·S_u)⁻¹, by which Σ⁻¹ multiplies what all groups share. Places of the three
    are (rows, 1, 1), so that they meet arrays of (rows, groups, labelers).
    """

    near: Pairs
    common: Pairs
    total: Pairs
    log_determinant: FloatArray

    def on(self, t: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ⁻¹ times vectors (rows, groups, …) of every labeler."""
        own = self.near.on(t, d)
        shared = self.common.on(t.sum(axis=1, keepdims=True), d.sum(axis=1, keepdims=True))
        return own[0] - shared[0], own[1] - shared[1]

    def dense(self, groups: int) -> FloatArray:
        """Σ⁻¹ of each row, all criteria before all separations."""
        apart, alike = np.eye(groups), np.ones((groups, groups))
        return np.asarray(
            np.block(
                [
                    [near * apart - common * alike for near, common in row]
                    for row in (
                        (
                            (self.near.first, self.common.first),
                            (self.near.cross, self.common.cross),
                        ),
                        ((self.near.cross, self.common.cross), (self.near.last, self.common.last)),
                    )
                ]
            )
        )


def precision_of(hyper: FloatArray, *, groups: int) -> Precision:
    """Inverse of the population covariance for each row of hyperparameters."""
    pairs = [one[:, None, None] for one in covariance_pairs(hyper)]
    across = pairs[0]
    if groups == 1:
        near = across.inverse()
        return Precision(
            near=near,
            common=near * 0.0,
            total=near,
            log_determinant=np.log(across.determinant[:, 0, 0]),
        )
    within = pairs[1]
    near, whole = within.inverse(), within + across * groups
    middle = across.inverse() + near * groups
    logs = (groups - 1) * np.log(within.determinant) + np.log(whole.determinant)
    return Precision(
        near=near,
        common=middle.inverse().within(near),
        total=whole.inverse(),
        log_determinant=logs[:, 0, 0],
    )
