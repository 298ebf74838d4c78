"""Pooled signal detection: a binomial probit hierarchy over labelers, its modes and evidence.

Labeler j has θ_j = (t, d′) for each group; K_jc ~ Bin(N_jc, Φ(z_jc)) with z = −t for false alarms
and d′ − t for hits. θ_j ~ N(β, Σ), Σ = 11ᵀ⊗S_u + I⊗S_w: what a labeler does in every group, and
what only in one. Given the six numbers in S_u and S_w, θ and β are found by Newton steps, batched
over such hyperparameters, and integrated out by Laplace's method. β is integrated, not plugged
in, which is why ten labelers are enough.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, log_ndtr, ndtr, ndtri

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


FREEDOM = 5.0
LARGEST_PROPOSAL_SD = 0.6
GRADIENT_STEP = 1e-3
HESSIAN_STEP = 0.02
# Slopes by differences do not fit the value to its last digits. Close to the mode a line search
# would look some fifty times for a decrease that rounding hides, and give up where it began.
SAME_VALUE = 2e-15
STILL = 3
ADAPT_BELOW = 0.3
FEWEST_EFFECTIVE_DRAWS = 30.0
RESAMPLED = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperPosterior:
    """Weighted hyperparameter draws with their modes; `effective` is their effective number."""

    hyper: FloatArray
    weights: FloatArray
    modes: Modes
    effective: float

    @property
    def sds(self) -> FloatArray:
        """Weighted medians of the standard deviations: t and d′ per labeler, then within."""
        values = hyper_sds(self.hyper)
        order = np.argsort(values, axis=0)
        cumulative = np.cumsum(self.weights[order], axis=0)
        at = (cumulative < 0.5).sum(axis=0)
        ranked = np.take_along_axis(values, order, axis=0)
        return np.asarray(ranked[np.minimum(at, len(values) - 1), np.arange(values.shape[1])])


def _log_posterior(cells: CellCounts, hyper: FloatArray, start: Modes | None) -> FloatArray:
    return find_modes(cells, hyper, start=start).log_marginal + log_prior(hyper)


def _outer_mode(cells: CellCounts) -> tuple[FloatArray, Modes]:
    """Hyperparameters of highest posterior, by BFGS with all differences in one batch."""
    from scipy.optimize import minimize

    size = hyper_size(cells.groups)
    first = np.array([0.3, 0.3, 0.0, 0.15, 0.15, 0.0])[:size]
    best, last, still = first, np.inf, 0
    steps = np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)]) * GRADIENT_STEP
    warm = find_modes(cells, first)

    def target(h: FloatArray) -> tuple[float, FloatArray]:
        nonlocal warm, last, still
        rows = h + steps
        warm = find_modes(cells, rows, start=warm)
        value = warm.log_marginal + log_prior(rows)
        still = still + 1 if abs(float(value[0]) - last) <= SAME_VALUE * abs(last) else 0
        last = float(value[0])
        if still == STILL:
            raise _Stalled
        slope = (value[1 : size + 1] - value[size + 1 :]) / (2 * GRADIENT_STEP)
        return -last, -slope

    def accept(xk: FloatArray) -> None:
        nonlocal best, still
        best, still = xk.copy(), 0

    with suppress(_Stalled):
        minimize(target, first, jac=True, method="BFGS", callback=accept,
                 options={"gtol": 1e-3, "maxiter": 100})  # fmt: skip
    return best, find_modes(cells, best, start=warm)


class _Stalled(Exception):
    """The line search moves within what rounding leaves of the target."""


def _curvature(cells: CellCounts, mode: FloatArray, start: Modes) -> FloatArray:
    """Covariance of the Laplace approximation, no axis wider than 0.6."""
    size = mode.size
    unit = np.eye(size) * HESSIAN_STEP
    pairs = [(i, j) for i in range(size) for j in range(i)]
    points = [mode]
    points += [mode + sign * unit[i] for i in range(size) for sign in (1, -1)]
    points += [
        mode + a * unit[i] + b * unit[j] for i, j in pairs for a, b in product((1, -1), repeat=2)
    ]
    value = _log_posterior(cells, np.array(points), start)
    hessian = np.zeros((size, size))
    for i in range(size):
        hessian[i, i] = (value[1 + 2 * i] - 2 * value[0] + value[2 + 2 * i]) / HESSIAN_STEP**2
    for k, (i, j) in enumerate(pairs):
        at = 1 + 2 * size + 4 * k
        mixed = value[at] - value[at + 1] - value[at + 2] + value[at + 3]
        hessian[i, j] = hessian[j, i] = mixed / (4 * HESSIAN_STEP**2)
    return _capped(np.linalg.eigh(-hessian), inverse=True)


def _capped(eigen: tuple[FloatArray, FloatArray], *, inverse: bool) -> FloatArray:
    values, axes = eigen
    largest = LARGEST_PROPOSAL_SD**2
    if inverse:
        # A flat or rising axis has no Laplace spread; it gets the widest one allowed.
        spread = np.where(values > 1 / largest, 1 / np.where(values > 0, values, 1.0), largest)
    else:
        spread = np.clip(values, 1e-6, largest)
    return np.asarray((axes * spread) @ axes.T)


def _proposal(
    mean: FloatArray, covariance: FloatArray, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Folded t₅ points and their log density, without constants."""
    from scipy.stats import qmc

    size = mean.size
    points = qmc.Sobol(size + 1, scramble=True, rng=np.random.default_rng(seed)).random(draws)
    points = np.clip(points, 1e-9, 1 - 1e-9)
    mix = np.sqrt(2 * gammaincinv(FREEDOM / 2, points[:, -1]) / FREEDOM)
    root = np.linalg.cholesky(covariance)
    hyper = mean + (ndtri(points[:, :-1]) / mix[:, None]) @ root.T
    signed = [0, 1] if size == 3 else [0, 1, 3, 4]
    hyper[:, signed] = np.abs(hyper[:, signed])
    inverse = np.linalg.inv(covariance)
    densities = []
    for flips in product((1.0, -1.0), repeat=len(signed)):
        image = hyper.copy()
        image[:, signed] *= flips
        away = image - mean
        distance = np.einsum("si,ij,sj->s", away, inverse, away)
        densities.append(-(FREEDOM + size) / 2 * np.log1p(distance / FREEDOM))
    return hyper, np.logaddexp.reduce(densities, axis=0) - float(np.log(np.diag(root)).sum())


def _weighted(
    cells: CellCounts, proposal: tuple[FloatArray, FloatArray], start: Modes
) -> HyperPosterior:
    hyper, log_density = proposal
    modes = find_modes(cells, hyper, start=start)
    log_weight = modes.log_marginal + log_prior(hyper) - log_density
    weights = np.exp(log_weight - log_weight.max())
    weights /= weights.sum()
    return HyperPosterior(
        hyper=hyper, weights=weights, modes=modes, effective=float(1 / (weights**2).sum())
    )


def hyper_posterior(cells: CellCounts, *, draws: int = 128, seed: int = 0) -> HyperPosterior:
    """Weighted draws of the hyperparameters.

    Draws come from a folded t₅ at the mode. With an effective number under 30 % the proposal is
    adapted once; under 30 draws, the whole is repeated with four times as many.
    """
    mode, start = _outer_mode(cells)
    laplace = _curvature(cells, mode, start)
    signed = [0, 1] if mode.size == 3 else [0, 1, 3, 4]
    centre = mode.copy()
    centre[signed] = np.abs(centre[signed])

    def attempt(count: int) -> HyperPosterior:
        found = _weighted(cells, _proposal(centre, laplace, count, seed), start)
        if found.effective >= ADAPT_BELOW * count:
            return found
        trust = found.effective / (found.effective + 18)
        mean = found.weights @ found.hyper
        away = found.hyper - mean
        spread = (found.weights[:, None] * away).T @ away
        mixed = trust * spread + (1 - trust) * laplace
        again = _weighted(
            cells,
            _proposal(
                trust * mean + (1 - trust) * centre,
                _capped(np.linalg.eigh(mixed), inverse=False),
                count,
                seed + 1,
            ),
            start,
        )
        return again if again.effective > found.effective else found

    found = attempt(draws)
    return attempt(4 * draws) if found.effective < FEWEST_EFFECTIVE_DRAWS else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Joint draws: β (draws, 2G), θ (draws, labelers, 2G), labelers' weights and which row.

    Weights have mean 1 within each hyperparameter draw: the exact conditional against its
    Gaussian approximation.
    """

    beta: FloatArray
    theta: FloatArray
    weights: FloatArray


def joint_draws(
    cells: CellCounts,
    posterior: HyperPosterior,
    *,
    draws: int = RESAMPLED,
    seed: int = 0,
    known_mean: bool = False,
) -> Draws:
    """Systematic resampling of hyperparameters, then β and every labeler's θ given them."""
    rng = np.random.default_rng(seed)
    edges = np.cumsum(posterior.weights)
    where = np.searchsorted(edges / edges[-1], (np.arange(draws) + rng.random()) / draws)
    where = np.minimum(where, len(edges) - 1)
    modes = posterior.modes
    size = modes.beta.shape[1]
    beta = np.empty((draws, size))
    theta = np.empty((draws, cells.labelers, size))
    weights = np.empty((draws, cells.labelers))
    for s in np.unique(where):
        at = np.flatnonzero(where == s)
        precision, inverse = modes.precision[s], modes.inverse(int(s))
        noise = rng.standard_normal((at.size, size))
        # Rows of noise times the inverse root have the covariance S⁻¹.
        root = np.linalg.inv(np.linalg.cholesky(modes.beta_precision[s]))
        moved = np.zeros_like(noise) if known_mean else noise @ root
        beta[at] = modes.beta[s] + moved
        centre = modes.theta[s] + np.einsum("jik,mk->mji", inverse, moved @ precision)
        noise = rng.standard_normal((at.size, cells.labelers, size))
        own = centre + (np.linalg.cholesky(inverse) @ noise[..., None])[..., 0]
        theta[at] = own
        away = own - beta[at, None]
        exact = log_likelihood(cells, to_z(own))
        exact -= 0.5 * ((away @ precision) * away).sum(axis=-1)
        log_weight = exact + 0.5 * (noise**2).sum(axis=-1)
        ratio = np.exp(log_weight - log_weight.max(axis=0))
        weights[at] = ratio / ratio.mean(axis=0)
    return Draws(beta=beta, theta=theta, weights=weights)
