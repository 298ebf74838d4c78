"""Pooled signal detection: how labelers vary, weighed by its evidence, and draws of each of them.

The six numbers of S_u and S_w (`modes.py`) are looked for by their evidence, proposed around its
mode, and weighed; labelers and means are drawn given each.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import gammaincinv, ndtri

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.cells import CellCounts
from evenhand.stats.labelers.evidence import log_posterior, log_posterior_slope
from evenhand.stats.labelers.modes import Modes, find_modes
from evenhand.stats.labelers.variation import hyper_sds, hyper_size

FREEDOM = 5.0
LARGEST_PROPOSAL_SD = 0.6
HESSIAN_STEP = 0.02
# About a standard error of t's SD, d′'s and their correlation's z with one labeler.
UNITS = (0.3, 0.3, 3.0)
CLOSE = 0.02
# The last Newton steps, whose squares are what is missing: where the mode is looked for, and where
# θ's modes start from those at the mode and hardly move.
SEARCHED, WEIGHED = 5e-3, 5e-2
# Rows of hyperparameters that together weigh less are left out.
LEAST_WEIGHT = 1e-3
ADAPT_BELOW = 0.3
FEWEST_EFFECTIVE_DRAWS = 30.0


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


def _outer_mode(cells: CellCounts) -> tuple[FloatArray, Modes]:
    """Hyperparameters of highest posterior, by BFGS along the evidence's own slope.

    It is looked for in units of about its own error, and no more closely than a centre of
    proposals asks for.
    """
    from scipy.optimize import minimize

    size = hyper_size(cells.groups)
    first = np.array([0.3, 0.3, 0.0, 0.15, 0.15, 0.0])[:size]
    unit = np.array(2 * UNITS)[:size] / np.sqrt(cells.labelers)
    warm = find_modes(cells, first)

    def target(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal warm
        row = (x * unit)[None]
        warm = find_modes(cells, row, start=(warm.planes, warm.means), tolerance=SEARCHED)
        slope = log_posterior_slope(cells, row, warm)[0]
        return -float(log_posterior(row, warm)[0]), -slope * unit

    found = minimize(
        target, first / unit, jac=True, method="BFGS", options={"gtol": CLOSE, "maxiter": 100}
    )
    mode = found.x * unit
    signed = _signed(size)
    mode[signed] = np.abs(mode[signed])
    return mode, find_modes(cells, mode, start=(warm.planes, warm.means))


def _curvature(cells: CellCounts, mode: FloatArray, start: Modes) -> FloatArray:
    """Covariance of the Laplace approximation, no axis wider than 0.6."""
    size = mode.size
    unit = np.eye(size) * HESSIAN_STEP
    rows = mode + np.concatenate([unit, -unit])
    around = find_modes(cells, rows, start=(start.planes, start.means))
    slope = log_posterior_slope(cells, rows, around)
    hessian = (slope[:size] - slope[size:]) / (2 * HESSIAN_STEP)
    return _capped(np.linalg.eigh(-(hessian + hessian.T) / 2), inverse=True)


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
    steps = ndtri(points[:, :-1]) / mix[:, None]
    # Rows that are as far away beside each other: they take as many steps to their modes.
    hyper = mean + steps[np.argsort((steps**2).sum(axis=1))] @ root.T
    signed = _signed(size)
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


def _signed(size: int) -> list[int]:
    """Which hyperparameters are standard deviations, whose sign says nothing."""
    return [0, 1] if size == 3 else [0, 1, 3, 4]


def _weighted(
    cells: CellCounts, proposal: tuple[FloatArray, FloatArray], start: Modes
) -> HyperPosterior:
    hyper, log_density = proposal
    modes = find_modes(cells, hyper, start=(start.planes, start.means), tolerance=WEIGHED)
    log_weight = log_posterior(hyper, modes) - log_density
    weights = np.exp(log_weight - log_weight.max())
    weights /= weights.sum()
    order = np.argsort(weights)
    rows = np.sort(order[np.cumsum(weights[order]) > LEAST_WEIGHT])
    return HyperPosterior(
        hyper=hyper[rows],
        weights=weights[rows] / weights[rows].sum(),
        modes=modes[rows],
        effective=float(1 / (weights**2).sum()),
    )


def hyper_posterior(cells: CellCounts, *, draws: int = 128, seed: int = 0) -> HyperPosterior:
    """Weighted draws of the hyperparameters.

    Draws come from a folded t₅ at the mode. With an effective number under 30 % the proposal is
    adapted once; under 30 draws, the whole is repeated with four times as many.
    """
    mode, start = _outer_mode(cells)
    laplace = _curvature(cells, mode, start)

    def attempt(count: int) -> HyperPosterior:
        found = _weighted(cells, _proposal(mode, laplace, count, seed), start)
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
                trust * mean + (1 - trust) * mode,
                _capped(np.linalg.eigh(mixed), inverse=False),
                count,
                seed + 1,
            ),
            start,
        )
        return again if again.effective > found.effective else found

    found = attempt(draws)
    return attempt(4 * draws) if found.effective < FEWEST_EFFECTIVE_DRAWS else found
