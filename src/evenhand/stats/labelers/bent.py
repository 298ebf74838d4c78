"""How far a posterior is from the normal one around its mode: the first terms of the series.

The log likelihood of a cell has a third and a fourth slope in its z. With few labels they move the
mean off the mode, change the variance and skew what is left; each by sums over cells of these
slopes and of covariances at the mode (Tierney & Kadane 1986; the diagrams of one loop).
"""

import numpy as np

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.cells import CellCounts, bends, to_planes, to_z
from evenhand.stats.labelers.mixtures import Bend
from evenhand.stats.labelers.modes import Modes, by_turns


class Bent:
    """What bends every labeler's posterior, at one row of hyperparameters.

    `moves` is how far means lie from modes by a labeler's own labels, as planes (2, groups,
    labelers), and `covariance` that of θ, (labelers, 2G, 2G), t and d′ by turns.
    """

    def __init__(self, cells: CellCounts, modes: Modes) -> None:
        inverse = modes.inverse(0)
        by_means = inverse @ modes.precision[0]
        spread = by_turns(modes.spread)[0]
        self.covariance = inverse + by_means @ spread @ np.swapaxes(by_means, 1, 2)
        # Of θ with z, and of z.
        self.with_z = to_z(self.covariance)
        self.of_z = np.swapaxes(to_z(np.swapaxes(self.with_z, 1, 2)), 1, 2)
        self.third, self.fourth = bends(cells.yes, cells.n - cells.yes, to_z(modes.theta[0]))
        variance = np.diagonal(self.of_z, axis1=1, axis2=2)
        pushed = self.third * variance / 2
        self.on_variance = self.fourth * variance / 2
        self.on_variance += self.third * np.einsum("jkc,jc->jk", self.of_z, pushed)
        moves = np.einsum("jac,jc->ja", self.with_z, pushed)
        # Small ones as they are, and none beyond a standard deviation.
        sds = np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))
        self.moves = to_planes(sds * np.tanh(moves / sds))

    def of(self, weights: FloatArray) -> Bend:
        """What bending adds to sums of θ, (labelers, sums).

        `weights` are (labelers, sums, 2G) or hold for all labelers.
        """
        meets = weights @ self.with_z
        third = meets * self.third[:, None]
        twice = (third * (third @ self.of_z**2)).sum(axis=-1) / 2
        return Bend(
            variance=(meets * meets * self.on_variance[:, None]).sum(axis=-1) + twice,
            third=(meets * meets * third).sum(axis=-1),
        )

    def met_by_bends(self, weights: FloatArray, groups: FloatArray) -> FloatArray:
        """What skewness adds to the variance of sums that also bend, as behaviour does in (t, d′).

        `groups` (sums, G) are the weights by which each group's d′²/2 − t·d′ counts.
        """
        t, d = self.with_z[:, 0::2], self.with_z[:, 1::2]
        bends_of_z = groups @ (d * d - 2 * t * d)
        return np.asarray(((weights @ self.with_z) * bends_of_z * self.third[:, None]).sum(-1))
