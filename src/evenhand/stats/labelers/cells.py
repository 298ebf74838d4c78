"""Labels of each labeler and group, and what they say of the normal quantiles of its rates.

Labeler j says yes to K of N labels of a cell, K ~ Bin(N, Φ(z)), with z = −t for false alarms and
d′ − t for hits. The log likelihood is concave in z; its slopes up to the fourth are closed forms
of φ(z)/Φ(z) and φ(z)/Φ(−z).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from evenhand.errors import DataError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.signal import log_hazard, normal_density


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

    def planes(self) -> tuple[FloatArray, FloatArray]:
        """Yeses and noes as (2, groups, labelers), false alarms before hits.

        Labelers lie beside each other: there are more of them than of groups.
        """
        return to_planes(self.yes), to_planes(self.n - self.yes)


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


def to_planes(table: FloatArray) -> FloatArray:
    """(…, labelers, 2G), two columns a group, as (2, …, G, labelers)."""
    whole = table.reshape(*table.shape[:-1], -1, 2)
    return np.ascontiguousarray(np.moveaxis(np.swapaxes(whole, -3, -2), -1, 0))


def from_planes(planes: FloatArray) -> FloatArray:
    """(2, …, G, labelers) as (…, labelers, 2G), two columns a group."""
    whole = np.swapaxes(np.moveaxis(planes, 0, -1), -3, -2)
    return np.ascontiguousarray(whole).reshape(*whole.shape[:-2], -1)


def to_z(theta: FloatArray) -> FloatArray:
    """z of false alarms and hits from (t, d′) pairs along the last axis."""
    z = np.empty_like(theta)
    z[..., 0::2] = -theta[..., 0::2]
    z[..., 1::2] = theta[..., 1::2] - theta[..., 0::2]
    return z


def log_likelihood(yes: FloatArray, no: FloatArray, z: FloatArray) -> FloatArray:
    """Binomial log likelihood of each cell, without the binomial coefficients."""
    shares = _shares(z)
    below, above = (log_ndtr(z), log_ndtr(-z)) if shares is None else map(np.log, shares)
    return np.asarray(yes * below + no * above)


def slope_and_curve(
    yes: FloatArray, no: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """First slope of each cell's log likelihood in z, and the negative second one."""
    up, down = _hazards(z)
    curve = yes * (up * (z + up)) + no * (down * (down - z))
    return yes * up - no * down, curve


def bends(yes: FloatArray, no: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Third and fourth slope of each cell's log likelihood in z.

    With u = φ/Φ(z), −u′ = u(z + u) = p, p′ = u − p(z + 2u), p″ = −p − p′(z + 2u) − p(1 − 2p); the
    noes are the same seen from −z.

    Examples:
        >>> third, fourth = bends(np.ones(1), np.zeros(1), np.zeros(1))
        >>> round(third.item(), 4), round(fourth.item(), 4)
        (0.218, 0.1148)
    """
    up, down = _hazards(z)

    def of(u: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = u * (x + u)
        twice = x + 2 * u
        first = u - p * twice
        return -first, p + first * twice + p * (1 - 2 * p)

    yeses, noes = of(up, z), of(down, -z)
    return yes * yeses[0] - no * noes[0], yes * yeses[1] + no * noes[1]


def _shares(z: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Φ(z) and Φ(−z) to their last digits, from one tail; None where that is as good as 0."""
    tail = ndtr(-np.abs(z))
    if not tail.all():
        return None
    # Where z is above 0 the tail is Φ(−z): what is added to it elsewhere is then exactly 0.
    more, right = 1 - 2 * tail, (z > 0).astype(np.float64)
    return tail + right * more, tail + (1 - right) * more


def _hazards(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """φ(z)/Φ(z) and φ(z)/Φ(−z)."""
    shares = _shares(z)
    if shares is None:
        return np.exp(log_hazard(z)), np.exp(log_hazard(-z))
    density = normal_density(z)
    return density / shares[0], density / shares[1]
