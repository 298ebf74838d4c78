"""The evidence of hyperparameters has a slope in closed form.

v is each cell's variance of z, w its curvature, and (u, u_β) the joint Hessian's inverse times
Aᵀ(w′∘v). With a = θ̂_j − β̂, b = u_j − u_β and M = JΣ − Σ_j[aaᵀ + Cov(θ_j − β) − (abᵀ + baᵀ)/2], the
log evidence has slope −½·Σ⁻¹MΣ⁻¹ in Σ: the modes move by the implicit function theorem, and the
curvature with them.
"""

import numpy as np

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.cells import CellCounts, bends
from evenhand.stats.labelers.covariances import Covariances
from evenhand.stats.labelers.modes import Modes, flat, unflat, z_planes
from evenhand.stats.labelers.pairs import Pairs
from evenhand.stats.labelers.variation import (
    covariance_pairs,
    covariance_slope,
    log_prior,
    log_prior_slope,
)


def log_posterior(hyper: FloatArray, modes: Modes) -> FloatArray:
    """Log posterior of each row of hyperparameters, without constants."""
    return modes.log_marginal + log_prior(hyper)


def log_posterior_slope(cells: CellCounts, hyper: FloatArray, modes: Modes) -> FloatArray:
    """Slope of the log posterior by the hyperparameters, (rows, hyperparameters)."""
    groups, labelers, prior = modes.groups, modes.labelers, modes.prior
    covariances = Covariances(modes)
    push, push_means = _pushes(cells, covariances)
    away = modes.planes - modes.means[..., None]
    # Minus b, with which (abᵀ + baᵀ)/2 − aaᵀ is an outer product of a with a − b.
    behind = away - push + push_means[..., None]
    across = modes.total @ prior.dense(groups) @ modes.spread
    of_means = labelers * modes.spread - across - np.swapaxes(across, 1, 2)
    pairs = covariance_pairs(hyper)
    alone = sum(pairs[1:], pairs[0])
    everywhere = sum((one * (1 / groups) for one in pairs[1:]), pairs[0])
    by_group = (
        alone * (labelers * groups)
        - _by_group(of_means)
        - covariances.blocks.sum(2).sum(1)
        - _outer(away, behind, "irgj,krgj->rik")
    )
    over_all = (
        everywhere * (labelers * groups**2)
        - _over_all(of_means + modes.total)
        - covariances.over_all()
        - _outer(away.sum(axis=2), behind.sum(axis=2), "irj,krj->rik")
    )
    near, shared = prior.near[:, 0, 0], prior.total[:, 0, 0]
    alike = over_all.within(shared)
    apart = (by_group - over_all * (1 / groups)).within(near)
    slopes = [alike * -0.5, (alike * (1 / groups) + apart) * -0.5]
    return covariance_slope(hyper, slopes[: len(pairs)]) + log_prior_slope(hyper)


def _pushes(cells: CellCounts, covariances: Covariances) -> tuple[FloatArray, FloatArray]:
    """u and u_β, as planes of θ and of β."""
    modes, spread = covariances.modes, covariances.blocks
    yes, no = (one[:, None] for one in cells.planes())
    third, _ = bends(yes, no, z_planes(modes.planes))
    alarm = -third[0] * spread.first
    hit = -third[1] * (spread.first - 2 * spread.cross + spread.last)
    pushed = np.stack(modes.solve(-alarm - hit, hit)).sum(axis=-1)
    means = unflat(modes.spread @ modes.prior.dense(modes.groups) @ flat(pushed))
    held = modes.prior.on(*means[..., None])
    return np.stack(modes.solve(held[0] - alarm - hit, held[1] + hit)), means


def _by_group(dense: FloatArray) -> Pairs:
    """Sum of the 2×2 blocks of each group."""
    rows, size = dense.shape[:2]
    return _symmetric(np.einsum("rigkg->rik", dense.reshape(rows, 2, size // 2, 2, size // 2)))


def _over_all(dense: FloatArray) -> Pairs:
    """Sum of the 2×2 blocks of all pairs of groups."""
    rows, size = dense.shape[:2]
    return _symmetric(dense.reshape(rows, 2, size // 2, 2, size // 2).sum(axis=(2, 4)))


def _outer(left: FloatArray, right: FloatArray, subscripts: str) -> Pairs:
    return _symmetric(np.einsum(subscripts, left, right))


def _symmetric(table: FloatArray) -> Pairs:
    return Pairs(table[:, 0, 0], (table[:, 0, 1] + table[:, 1, 0]) / 2, table[:, 1, 1])
