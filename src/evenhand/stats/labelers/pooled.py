"""Pooled signal detection: how labelers vary, weighed by its evidence, and draws of each of them.

The six numbers of S_u and S_w (`modes.py`) are looked for by their evidence, proposed around its
mode, and weighed; labelers and means are drawn given each.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import gammaincinv, ndtri

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.modes import (
    CellCounts,
    Modes,
    find_modes,
    hyper_sds,
    hyper_size,
    log_likelihood,
    log_prior,
    to_z,
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
