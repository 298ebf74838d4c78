"""Draws of β and of every labeler's θ from their joint posterior, for what holds of many at once.

Labelers share β and the hyperparameters: how far the furthest of them lies, or how many lean one
way, is no sum over labelers. Single numbers need no draws (`marginals.py`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.modes import LARGEST_BATCH
from evenhand.stats.labelers.pairs import Pairs
from evenhand.stats.labelers.pooled import HyperPosterior

DRAWN = 2048
# So many numbers of labelers at most; more labelers or groups get fewer draws, never under 512.
MOST_DRAWN, FEWEST_DRAWN = 1_700_000, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """β as planes (2, draws, groups), and θ as planes (2, some draws, groups, labelers).

    θ, in single precision, goes with every `stride`th draw of β.
    """

    means: FloatArray
    planes: FloatArray
    stride: int


def joint_draws(posterior: HyperPosterior, *, draws: int = DRAWN, seed: int = 0) -> Draws:
    """Systematic resampling of hyperparameters, then β and every labeler's θ given them."""
    rng = np.random.default_rng(seed)
    modes = posterior.modes
    edges = np.cumsum(posterior.weights)
    where = np.searchsorted(edges / edges[-1], (np.arange(draws) + rng.random()) / draws)
    where = np.minimum(where, len(edges) - 1)
    groups, labelers = modes.groups, modes.labelers
    away = rng.standard_normal((draws, 2 * groups))
    for row in np.unique(where):
        at = where == row
        away[at] = away[at] @ np.linalg.cholesky(modes.spread[row]).T
    away = np.moveaxis(away.reshape(draws, 2, groups), 1, 0)
    size = 2 * groups * labelers
    stride = int(np.ceil(draws / np.clip(MOST_DRAWN // size, FEWEST_DRAWN, draws)))
    chosen = where[::stride]
    planes = []
    own, link = _small(modes.own), _small(modes.link)
    near, common = _small(modes.prior.near), _small(modes.prior.common)
    centre, apart = single(modes.planes), single(away[:, ::stride])
    most = max(1, LARGEST_BATCH // size)
    for first in range(0, len(chosen), most):
        part = slice(first, first + most)
        rows = chosen[part]
        t, d = apart[:, part, :, None]
        held = common[rows].on(t.sum(axis=1, keepdims=True), d.sum(axis=1, keepdims=True))
        t, d = (one - other for one, other in zip(near[rows].on(t, d), held))
        planes.append(centre[:, rows] + _around(own[rows], link[rows], t, d, rng))
    return Draws(
        means=modes.means[:, where] + away,
        planes=np.concatenate(planes, axis=1),
        stride=stride,
    )


def _around(
    own: Pairs, link: Pairs, t: FloatArray, d: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """θ of all labelers around its modes, (t, d) being Σ⁻¹ times what β is away from its own.

    H⁻¹ = D + D(11ᵀ⊗κ)D is the covariance of a part of each group and of one that groups share.
    """
    met = own.on(t, d)
    shared = link.on(met[0].sum(axis=1, keepdims=True), met[1].sum(axis=1, keepdims=True))
    common = _root(link, _noise(rng, link.first.shape))
    moved = own.on(t + (shared[0] + common[0]), d + (shared[1] + common[1]))
    noise = _root(own, _noise(rng, own.first.shape))
    return np.stack([moved[0] + noise[0], moved[1] + noise[1]])


def single(values: NDArray[np.floating[Any]]) -> FloatArray:
    """Numbers in single precision: what is drawn is not known to more digits."""
    return values.astype(np.float32, copy=False)


def _small(pairs: Pairs) -> Pairs:
    return Pairs(single(pairs.first), single(pairs.cross), single(pairs.last))


def _noise(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return single(rng.standard_normal((2, *shape), dtype=np.float32))


def _root(covariance: Pairs, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Noise with a covariance, by its triangular root; one that is 0 stays 0."""
    first = np.sqrt(covariance.first)
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = np.where(first > 0, covariance.cross / first, np.float32(0))
    last = np.sqrt(np.maximum(covariance.last - cross * cross, np.float32(0)))
    return first * noise[0], cross * noise[0] + last * noise[1]
