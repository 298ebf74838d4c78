"""A binomial probit hierarchy over labelers: its modes and evidence, given how labelers vary.

Labeler j has θ_j = (t, d′) for each group; K_jc ~ Bin(N_jc, Φ(z_jc)) with z = −t for false alarms
and d′ − t for hits. θ_j ~ N(β, Σ), Σ = 11ᵀ⊗S_u + I⊗S_w: what a labeler does in every group, and
what only in one. Given the six numbers in S_u and S_w, θ and β are found by Newton steps, batched
over such hyperparameters, and integrated out by Laplace's method. β is integrated, not plugged
in, which is why ten labelers are enough.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.signal import log_hazard, normal_density

SMALLEST_SD = 0.01
PRIOR_MEAN = (1.0, 1.5)
PRIOR_SD = 2.0
SCALE_LABELER = 0.5
SCALE_WITHIN = 0.25
SCALE_CORRELATION = 0.5
LARGEST_STEP = 2.0
LARGEST_Z = 7.0
TOLERANCE = 1e-6
LARGEST_BATCH = 8_000_000  # numbers in one array of Hessians, about 64 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """Yeses and labels of each labeler, columns F₁, H₁, F₂, H₂, … (false alarms, hits).

    Labelers without any label are not allowed in.
    """

    yes: FloatArray
    n: FloatArray

    @property
    def labelers(self) -> int:
        """Number of labelers."""
        return int(self.n.shape[0])

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.n.shape[1] // 2)


def cell_counts(counts: ArrayLike) -> CellCounts:
    """Cells of the hierarchy from counts (labelers, groups, 4).

    The four are hits, misses, false alarms and correct rejections.

    Examples:
        >>> cell_counts([[[8, 2, 3, 17]]]).n.tolist()
        [[20.0, 10.0]]
    """
    table = np.asarray(counts, dtype=float)
    if table.ndim != 3 or table.shape[2] != 4:
        raise DataError(
            f"counts have shape {table.shape}. Give (labelers, groups, 4): hits, misses, "
            "false alarms, correct rejections."
        )
    if np.any(table < 0) or np.any(table.sum(axis=(1, 2)) == 0):
        raise DataError("Every labeler needs at least one label and no count below 0.")
    hits, misses, alarms, rejections = np.moveaxis(table, -1, 0)
    shape = (len(table), 2 * table.shape[1])
    yes = np.stack([alarms, hits], axis=-1).reshape(shape)
    n = np.stack([alarms + rejections, hits + misses], axis=-1).reshape(shape)
    return CellCounts(yes=yes, n=n)


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


def _two_by_two(sds: FloatArray, correlation: FloatArray) -> FloatArray:
    off = correlation * sds[:, 0] * sds[:, 1]
    return np.stack(
        [np.stack([sds[:, 0] ** 2, off], axis=-1), np.stack([off, sds[:, 1] ** 2], axis=-1)],
        axis=-2,
    )


def _correlation(z: FloatArray) -> FloatArray:
    """Correlation of Fisher's z, kept so far from 1 that its covariance has an inverse."""
    return np.tanh(np.clip(z, -LARGEST_Z, LARGEST_Z))


def population_covariance(hyper: ArrayLike, *, groups: int) -> FloatArray:
    """Σ for each row of hyperparameters, shape (rows, 2·groups, 2·groups).

    Examples:
        >>> population_covariance([[0.3, 0.2, 0.0]], groups=1).round(4).tolist()
        [[[0.0901, 0.0], [0.0, 0.0401]]]
    """
    h = np.atleast_2d(np.asarray(hyper, dtype=float))
    sds = hyper_sds(h)
    labeler = _two_by_two(sds[:, :2], _correlation(h[:, 2]))
    if groups == 1:
        return labeler
    within = _two_by_two(sds[:, 2:], _correlation(h[:, 5]))
    whole = np.tile(labeler, (1, groups, groups))
    for g in range(groups):
        at = slice(2 * g, 2 * g + 2)
        whole[:, at, at] += within
    return whole


def log_prior(hyper: ArrayLike) -> FloatArray:
    """Log prior of signed parameters, without constants."""
    h = np.atleast_2d(np.asarray(hyper, dtype=float))
    scale = np.array([SCALE_LABELER, SCALE_LABELER, SCALE_CORRELATION])
    if h.shape[1] == 6:
        scale = np.append(scale, [SCALE_WITHIN, SCALE_WITHIN, SCALE_CORRELATION])
    return np.asarray(-0.5 * ((h / scale) ** 2).sum(axis=1))


def to_z(theta: FloatArray) -> FloatArray:
    """z of false alarms and hits from (t, d′) pairs along the last axis."""
    z = np.empty_like(theta)
    z[..., 0::2] = -theta[..., 0::2]
    z[..., 1::2] = theta[..., 1::2] - theta[..., 0::2]
    return z


def _shares(z: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Φ(z) and Φ(−z) to their last digits, from one tail; None where that is as good as 0."""
    tail = ndtr(-np.abs(z))
    if not tail.all():
        return None
    rest, right = 1 - tail, z > 0
    return np.where(right, rest, tail), np.where(right, tail, rest)


def log_likelihood(cells: CellCounts, z: FloatArray) -> FloatArray:
    """Binomial log likelihood of each labeler, without the binomial coefficients."""
    shares = _shares(z)
    below, above = (log_ndtr(z), log_ndtr(-z)) if shares is None else map(np.log, shares)
    return np.asarray((cells.yes * below + (cells.n - cells.yes) * above).sum(-1))


def _hazards(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """φ(z)/Φ(z) and φ(z)/Φ(−z)."""
    shares = _shares(z)
    if shares is None:
        return np.exp(log_hazard(z)), np.exp(log_hazard(-z))
    density = normal_density(z)
    return density / shares[0], density / shares[1]


def _derivatives(cells: CellCounts, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient in θ and the blocks of the likelihood's negative Hessian."""
    z = to_z(theta)
    up, down = _hazards(z)
    no = cells.n - cells.yes
    slope = cells.yes * up - no * down
    curve = cells.yes * up * (z + up) + no * down * (down - z)
    gradient = np.empty_like(theta)
    gradient[..., 0::2] = -slope[..., 0::2] - slope[..., 1::2]
    gradient[..., 1::2] = slope[..., 1::2]
    return gradient, curve


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocks:
    """Inverse Hessians of all labelers as 2×2 blocks plus a part of rank 2.

    Σ is block-diagonal plus rank 2, so H_j is too: H⁻¹ = blockdiag(E) + X K Xᵀ. Twenty groups
    then cost ten times as much as two, not a thousand times. With one group X is 0.
    """

    diagonal: FloatArray
    factor: FloatArray
    core: FloatArray
    log_determinant: FloatArray

    def solve(self, vector: FloatArray) -> FloatArray:
        """H⁻¹ times a vector of every labeler, (rows, labelers, 2G)."""
        pairs = vector.reshape(*vector.shape[:-1], -1, 2)
        along = np.einsum("bjgki,bjgk->bji", self.factor, pairs)
        along = np.einsum("bjik,bjk->bji", self.core, along)
        own = np.einsum("bjgik,bjgk->bjgi", self.diagonal, pairs)
        own += np.einsum("bjgik,bjk->bjgi", self.factor, along)
        return np.asarray(own.reshape(vector.shape))

    def total(self) -> FloatArray:
        """Sum of H⁻¹ over labelers."""
        rows, labelers, groups = self.diagonal.shape[:3]
        tall = self.factor.reshape(rows, labelers, 2 * groups, 2)
        left = np.moveaxis(tall @ self.core, 1, 2).reshape(rows, 2 * groups, -1)
        right = np.moveaxis(tall, 1, 2).reshape(rows, 2 * groups, -1)
        whole = left @ np.swapaxes(right, 1, 2)
        blocks = self.diagonal.sum(axis=1)
        for g in range(groups):
            at = slice(2 * g, 2 * g + 2)
            whole[:, at, at] += blocks[:, g]
        return np.asarray(whole)

    def dense(self, row: int) -> FloatArray:
        """H⁻¹ of every labeler, (labelers, 2G, 2G)."""
        labelers, groups = self.diagonal.shape[1:3]
        tall = self.factor[row].reshape(labelers, 2 * groups, 2)
        whole = tall @ self.core[row] @ np.swapaxes(tall, -1, -2)
        for g in range(groups):
            at = slice(2 * g, 2 * g + 2)
            whole[:, at, at] += self.diagonal[row, :, g]
        return np.asarray(whole)

    @classmethod
    def joined(cls, parts: list["_Blocks"]) -> "_Blocks":
        """The blocks of all rows, from those of some rows each."""
        names = ("diagonal", "factor", "core", "log_determinant")
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Modes and curvatures for each hyperparameter row (first axis).

    `theta` (rows, labelers, 2G), `beta` (rows, 2G), `precision` the inverse of Σ, `blocks` those
    of each labeler's Hessian, `beta_precision` that of β, `log_marginal` without constants and
    without the prior of the hyperparameters.
    """

    theta: FloatArray
    beta: FloatArray
    precision: FloatArray
    blocks: _Blocks
    beta_precision: FloatArray
    log_marginal: FloatArray

    def inverse(self, row: int) -> FloatArray:
        """Inverse Hessian of every labeler, (labelers, 2G, 2G), given a row's hyperparameters."""
        return self.blocks.dense(row)


def _invert_pairs(
    first: FloatArray, cross: FloatArray, last: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Inverses and log determinants of symmetric 2×2 matrices, given by their entries."""
    determinant = first * last - cross**2
    inverse = np.empty((*determinant.shape, 2, 2))
    inverse[..., 0, 0] = last / determinant
    inverse[..., 1, 1] = first / determinant
    inverse[..., 0, 1] = inverse[..., 1, 0] = -cross / determinant
    return inverse, np.asarray(np.log(determinant))


def _blocks(curve: FloatArray, h: FloatArray) -> _Blocks:
    """Inverse Hessians from the likelihood's curvature and the hyperparameters."""
    rows, labelers, size = curve.shape
    groups = size // 2
    sds = hyper_sds(h)
    across = np.linalg.inv(_two_by_two(sds[:, :2], _correlation(h[:, 2])))
    near = across if groups == 1 else np.linalg.inv(_two_by_two(sds[:, 2:], _correlation(h[:, 5])))
    alarm, hit = curve[..., 0::2], curve[..., 1::2]
    inner = near[:, None, None]
    diagonal, logs = _invert_pairs(
        alarm + hit + inner[..., 0, 0], inner[..., 0, 1] - hit, hit + inner[..., 1, 1]
    )
    log_determinant = logs.sum(axis=2)
    if groups == 1:
        return _Blocks(
            diagonal=diagonal,
            factor=np.zeros_like(diagonal),
            core=np.zeros((rows, labelers, 2, 2)),
            log_determinant=log_determinant,
        )
    factor = np.empty_like(diagonal)
    for i, k in product(range(2), repeat=2):
        # Numbers of all labelers at once; a product of many tiny matrices calls for each of them.
        factor[..., i, k] = diagonal[..., i, 0] * inner[..., 0, k]
        factor[..., i, k] += diagonal[..., i, 1] * inner[..., 1, k]
    middle = across + groups * near
    gap = middle[:, None] - inner[:, 0] @ factor.sum(axis=2)
    core, log_gap = _invert_pairs(gap[..., 0, 0], gap[..., 0, 1], gap[..., 1, 1])
    return _Blocks(
        diagonal=diagonal,
        factor=np.asarray(factor),
        core=core,
        log_determinant=log_determinant + log_gap - np.linalg.slogdet(middle)[1][:, None],
    )


def find_modes(
    cells: CellCounts,
    hyper: ArrayLike,
    *,
    start: Modes | None = None,
    known_mean: ArrayLike | None = None,
) -> Modes:
    """Modes of θ and β for every row of hyperparameters at once.

    `start` gives the first row's modes to begin from. With `known_mean`, β is not estimated but
    held there: labelers judged against a population that is known.

    Examples:
        >>> cells = cell_counts([[[8, 2, 3, 17]]])
        >>> modes = find_modes(cells, [[0.3, 0.3, 0.0]], known_mean=[1.0, 1.5])
        >>> modes.theta[0, 0].round(2).tolist()
        [0.96, 1.6]
    """
    h = np.atleast_2d(np.asarray(hyper, dtype=float))
    size = cells.n.shape[1]
    most = max(1, LARGEST_BATCH // (cells.labelers * size * size))
    if len(h) <= most:
        return _find_modes(cells, h, start, known_mean)
    parts = [_find_modes(cells, h[i : i + most], start, known_mean) for i in range(0, len(h), most)]
    names = ("theta", "beta", "precision", "beta_precision", "log_marginal")
    return Modes(
        blocks=_Blocks.joined([p.blocks for p in parts]),
        **{name: np.concatenate([getattr(p, name) for p in parts]) for name in names},
    )


def _find_modes(
    cells: CellCounts, h: FloatArray, start: Modes | None, known_mean: ArrayLike | None
) -> Modes:
    groups, labelers, rows = cells.groups, cells.labelers, len(h)
    covariance = population_covariance(h, groups=groups)
    precision: FloatArray = np.asarray(np.linalg.inv(covariance), dtype=float)
    centre = np.tile(PRIOR_MEAN, groups)
    fixed = known_mean is not None
    loose = np.eye(2 * groups) / PRIOR_SD**2
    first = centre if known_mean is None else np.asarray(known_mean, dtype=float)
    beta = np.tile(first, (rows, 1)) if start is None else np.tile(start.beta[0], (rows, 1))
    theta = (
        np.tile(first, (rows, labelers, 1))
        if start is None
        else np.tile(start.theta[0], (rows, 1, 1))
    )
    moved = np.inf
    # Damped Newton on a concave target converges; 200 steps of up to 2 reach any data's mode.
    for _ in range(200):
        gradient, curve = _derivatives(cells, theta)
        blocks = _blocks(curve, h)
        away = theta - beta[:, None]
        gradient = gradient - away @ precision
        beta_precision = labelers * precision + loose - precision @ blocks.total() @ precision
        if moved < TOLERANCE:
            break
        step = np.zeros_like(beta)
        if not fixed:
            pushed = blocks.solve(gradient).sum(axis=1)
            upward = np.einsum("bik,bk->bi", precision, away.sum(axis=1) + pushed)
            upward -= (beta - centre) @ loose
            step = np.linalg.solve(beta_precision, upward[..., None])[..., 0]
        pull = gradient + np.einsum("bik,bk->bi", precision, step)[:, None]
        steps = blocks.solve(pull)
        largest = np.maximum(np.abs(steps).max(axis=(1, 2)), np.abs(step).max(axis=1))
        shrink = np.minimum(1.0, LARGEST_STEP / np.maximum(largest, 1e-300))
        theta = theta + shrink[:, None, None] * steps
        beta = beta + shrink[:, None] * step
        moved = float(largest.max())
    away = theta - beta[:, None]
    log_marginal = (
        log_likelihood(cells, to_z(theta)).sum(axis=1)
        - 0.5 * ((away @ precision) * away).sum(axis=(1, 2))
        - 0.5 * np.einsum("bi,ik,bk->b", beta - centre, loose, beta - centre)
        - 0.5 * labelers * np.linalg.slogdet(covariance)[1]
        - 0.5 * blocks.log_determinant.sum(axis=1)
        - 0.5 * np.linalg.slogdet(beta_precision)[1]
    )
    return Modes(
        theta=theta,
        beta=beta,
        precision=precision,
        blocks=blocks,
        beta_precision=beta_precision,
        log_marginal=log_marginal,
    )
