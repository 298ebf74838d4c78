"""A binomial probit hierarchy over labelers: its modes and evidence, given how labelers vary.

Given the six numbers in S_u and S_w (`variation.py`), θ and β are found by Newton steps, all
labelers and groups at once and batched over such hyperparameters, and integrated out by Laplace's
method. β is integrated, not plugged in, which is why ten labelers are enough.

"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.cells import (
    CellCounts,
    from_planes,
    log_likelihood,
    slope_and_curve,
)
from evenhand.stats.labelers.pairs import Pairs
from evenhand.stats.labelers.variation import Precision, precision_of

PRIOR_MEAN = (1.0, 1.5)
PRIOR_SD = 2.0
LARGEST_STEP = 2.0
# Steps square their error: after one of this size the next would be next to nothing.
TOLERANCE = 1e-4
# So many numbers in one array at a time: they stay in the processor's cache.
LARGEST_BATCH = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Modes and curvatures for each hyperparameter row.

    `planes` holds θ as (2, rows, groups, labelers), `means` β as (2, rows, groups), criteria
    before separations. The Hessian of labeler j has the inverse D + D·(11ᵀ⊗link)·D, with D its
    2×2 blocks `own`; `total` is their sum. `curvature` is β's Hessian S with labelers integrated
    out and `spread` its inverse, all criteria before all separations. `log_marginal` is without
    constants and without the prior of the hyperparameters.
    """

    planes: FloatArray
    means: FloatArray
    prior: Precision
    own: Pairs
    link: Pairs
    total: FloatArray
    curvature: FloatArray
    spread: FloatArray
    log_marginal: FloatArray

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> "Modes":
        """The same of some rows."""
        prior = self.prior
        return Modes(
            planes=self.planes[:, rows],
            means=self.means[:, rows],
            prior=Precision(
                near=prior.near[rows],
                common=prior.common[rows],
                total=prior.total[rows],
                log_determinant=prior.log_determinant[rows],
            ),
            own=self.own[rows],
            link=self.link[rows],
            total=self.total[rows],
            curvature=self.curvature[rows],
            spread=self.spread[rows],
            log_marginal=self.log_marginal[rows],
        )

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.planes.shape[2])

    @property
    def labelers(self) -> int:
        """Number of labelers."""
        return int(self.planes.shape[3])

    @property
    def theta(self) -> FloatArray:
        """Modes of labelers, (rows, labelers, 2G), t and d′ by turns."""
        return from_planes(self.planes)

    @property
    def beta(self) -> FloatArray:
        """Modes of β, (rows, 2G), t and d′ by turns."""
        return np.moveaxis(self.means, 0, -1).reshape(self.means.shape[1], -1)

    @property
    def precision(self) -> FloatArray:
        """Σ⁻¹ of each row, (rows, 2G, 2G), t and d′ by turns."""
        return by_turns(self.prior.dense(self.groups))

    def inverse(self, row: int) -> FloatArray:
        """Inverse Hessian of every labeler, (labelers, 2G, 2G), given a row's hyperparameters."""
        groups, labelers = self.groups, self.labelers
        own = np.moveaxis(self.own[row].table, 1, 0)
        tall = own.reshape(labelers, 2 * groups, 2)
        whole = tall @ self.link[row].table[0] @ np.swapaxes(tall, -1, -2)
        for g in range(groups):
            at = slice(2 * g, 2 * g + 2)
            whole[:, at, at] += own[:, g]
        return np.asarray(whole)

    def solve(self, t: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Inverse Hessian times a vector of every labeler, (rows, groups, labelers)."""
        return _solve(self.own, self.link, t, d)


def by_turns(dense: FloatArray) -> FloatArray:
    """Matrices of all criteria before all separations, as t and d′ by turns."""
    size = dense.shape[-1]
    order = np.arange(size).reshape(2, size // 2).T.ravel()
    return np.asarray(dense[..., order[:, None], order])


def find_modes(
    cells: CellCounts,
    hyper: ArrayLike,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    known_mean: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
) -> Modes:
    """Modes of θ and β for every row of hyperparameters at once.

    `start` gives `planes` and `means` to begin from, one row for all or one each; a step below
    `tolerance` is the last. With `known_mean`, β is not estimated but held there: labelers judged
    against a population that is known.

    Examples:
        >>> from evenhand.stats.labelers.cells import cell_counts
        >>> cells = cell_counts([[[8, 2, 3, 17]]])
        >>> modes = find_modes(cells, [[0.3, 0.3, 0.0]], known_mean=[1.0, 1.5])
        >>> modes.theta[0, 0].round(2).tolist()
        [0.96, 1.6]
    """
    h = np.atleast_2d(np.asarray(hyper, dtype=float))
    known = known_mean is not None
    if start is None:
        first = np.tile(PRIOR_MEAN, cells.groups) if known_mean is None else known_mean
        means = np.asarray(first, dtype=float).reshape(-1, 2).T[:, None]
        start = np.repeat(means[..., None], cells.labelers, axis=-1), means
    planes, means = (np.broadcast_to(one, (2, len(h), *one.shape[2:])) for one in start)
    most = max(1, LARGEST_BATCH // cells.n.size)
    return _joined(
        [
            _find_modes(
                cells, h[at : at + most], planes[:, at : at + most], means[:, at : at + most],
                known=known, tolerance=tolerance,
            )
            for at in range(0, len(h), most)
        ]
    )  # fmt: skip


def _find_modes(
    cells: CellCounts,
    h: FloatArray,
    planes: FloatArray,
    means: FloatArray,
    *,
    known: bool,
    tolerance: float,
) -> Modes:
    groups, labelers, rows = cells.groups, cells.labelers, len(h)
    yes, no = (one[:, None] for one in cells.planes())
    prior = precision_of(h, groups=groups)
    dense = prior.dense(groups)
    loose = np.eye(2 * groups) / PRIOR_SD**2
    centre = np.array(PRIOR_MEAN)[:, None, None]
    moved = np.inf
    # Damped Newton on a concave target converges; 200 steps of up to 2 reach any data's mode.
    for _ in range(200):
        z = z_planes(planes)
        slope, curve = slope_and_curve(yes, no, z)
        away = planes - means[..., None]
        held = prior.on(*away)
        gradient = -slope[0] - slope[1] - held[0], slope[1] - held[1]
        own, link, logs = _curvatures(curve, prior)
        total = _total(own, link)
        curvature = labelers * dense + loose - dense @ total @ dense
        if moved < tolerance:
            break
        step = np.zeros_like(means)
        if not known:
            pushed = _solve(own, link, *gradient)
            upward = dense @ flat((away + pushed).sum(axis=-1))
            upward -= flat(means - centre) / PRIOR_SD**2
            step = unflat(np.asarray(np.linalg.solve(curvature, upward), dtype=np.float64))
        pull = prior.on(*step[..., None])
        steps = np.stack(_solve(own, link, gradient[0] + pull[0], gradient[1] + pull[1]))
        largest = np.maximum(np.abs(steps).max(axis=(0, 2, 3)), np.abs(step).max(axis=(0, 2)))
        shrink = np.minimum(1.0, LARGEST_STEP / np.maximum(largest, 1e-300))[:, None]
        planes = planes + shrink[..., None] * steps
        means = means + shrink * step
        moved = float(largest.max())
    fit = log_likelihood(yes, no, z).sum(axis=(0, 2, 3))
    log_marginal = fit - 0.5 * (
        (away[0] * held[0] + away[1] * held[1]).sum(axis=(1, 2))
        + ((means - centre) ** 2).sum(axis=(0, 2)) / PRIOR_SD**2
        + labelers * prior.log_determinant
        + logs
        + np.linalg.slogdet(curvature)[1]
    )
    inverse = np.zeros_like(curvature) if known else np.linalg.inv(curvature)
    return Modes(
        planes=planes,
        means=np.broadcast_to(means, (2, rows, groups)),
        prior=prior,
        own=own,
        link=link,
        total=total,
        curvature=curvature,
        spread=np.asarray(inverse, dtype=np.float64),
        log_marginal=log_marginal,
    )


def z_planes(planes: FloatArray) -> FloatArray:
    """z of false alarms and hits from planes of t and d′."""
    z = np.empty_like(planes)
    np.negative(planes[0], out=z[0])
    np.subtract(planes[1], planes[0], out=z[1])
    return z


def flat(planes: FloatArray) -> FloatArray:
    """(2, rows, groups) as columns (rows, 2G, 1)."""
    return np.swapaxes(planes, 0, 1).reshape(planes.shape[1], -1, 1)


def unflat(columns: FloatArray) -> FloatArray:
    """Columns (rows, 2G, 1) as (2, rows, groups)."""
    return np.swapaxes(columns.reshape(len(columns), 2, -1), 0, 1)


def _curvatures(curve: FloatArray, prior: Precision) -> tuple[Pairs, Pairs, FloatArray]:
    """Blocks and link of the inverse Hessians, and the sum of the Hessians' log determinants.

    H = blockdiag − 11ᵀ⊗common, so that twenty groups cost ten times as much as two.
    """
    near, common = prior.near, prior.common
    alarm, hit = curve
    hessian = Pairs(near.first + alarm + hit, near.cross - hit, near.last + hit)
    logs = np.log(hessian.determinant).sum(axis=(1, 2))
    own = hessian.inverse()
    whole = own.sum(1, keepdims=True)
    # (I − common·ΣD)⁻¹·common, which is symmetric though its factors are not.
    (a, c), (b, d) = common.on(whole.first, whole.cross), common.on(whole.cross, whole.last)
    a, d = 1 - a, 1 - d
    determinant = a * d - b * c
    link = Pairs(
        (d * common.first + b * common.cross) / determinant,
        (d * common.cross + b * common.last) / determinant,
        (c * common.cross + a * common.last) / determinant,
    )
    return own, link, logs + np.log(determinant).sum(axis=(1, 2))


def _solve(own: Pairs, link: Pairs, t: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    one, two = own.on(t, d)
    shared = link.on(one.sum(axis=1, keepdims=True), two.sum(axis=1, keepdims=True))
    more = own.on(*shared)
    return one + more[0], two + more[1]


def _total(own: Pairs, link: Pairs) -> FloatArray:
    """Sum of the inverse Hessians over labelers, all criteria before all separations."""
    first, last = link.on(own.first, own.cross), link.on(own.cross, own.last)
    left = np.concatenate(
        [
            np.concatenate([own.first, own.cross], axis=2),
            np.concatenate([own.cross, own.last], axis=2),
        ],
        axis=1,
    )
    right = np.concatenate([np.concatenate(first, axis=2), np.concatenate(last, axis=2)], axis=1)
    whole = left @ np.swapaxes(right, 1, 2)
    blocks, groups = own.sum(2), own.first.shape[1]
    at = np.arange(groups)
    whole[:, at, at] += blocks.first
    whole[:, at, groups + at] += blocks.cross
    whole[:, groups + at, at] += blocks.cross
    whole[:, groups + at, groups + at] += blocks.last
    return np.asarray(whole)


def _joined(parts: list[Modes]) -> Modes:
    """Modes of all rows, from those of some rows each."""
    if len(parts) == 1:
        return parts[0]

    def along(name: str, axis: int = 0) -> FloatArray:
        return np.concatenate([getattr(part, name) for part in parts], axis=axis)

    def pairs(these: list[Pairs]) -> Pairs:
        return Pairs(*(np.concatenate([getattr(one, e) for one in these]) for e in Pairs.__slots__))

    priors = [part.prior for part in parts]
    return Modes(
        planes=along("planes", 1),
        means=along("means", 1),
        prior=Precision(
            near=pairs([one.near for one in priors]),
            common=pairs([one.common for one in priors]),
            total=pairs([one.total for one in priors]),
            log_determinant=np.concatenate([one.log_determinant for one in priors]),
        ),
        own=pairs([part.own for part in parts]),
        link=pairs([part.link for part in parts]),
        total=along("total"),
        curvature=along("curvature"),
        spread=along("spread"),
        log_marginal=along("log_marginal"),
    )
