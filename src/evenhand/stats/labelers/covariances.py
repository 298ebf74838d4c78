"""Covariances of labelers' θ, the uncertainty of β among them, given hyperparameters.

Labeler j is θ̂ + e + H⁻¹Q(β − β̂) with e ~ N(0, H⁻¹): its covariance is H⁻¹ + H⁻¹CH⁻¹ with
C = QS⁻¹Q. As H⁻¹ = D + D(11ᵀ⊗κ)D, every block of it is a product of 2×2 matrices, with no matrix
of all groups for each labeler.
"""

from functools import cached_property

import numpy as np

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.modes import Modes
from evenhand.stats.labelers.pairs import Pairs

Square = tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


class Covariances:
    """Blocks of each labeler's covariance; arrays are (rows, groups, labelers)."""

    def __init__(self, modes: Modes) -> None:
        self.modes = modes
        dense = modes.prior.dense(modes.groups)
        self.by_means = dense @ modes.spread @ dense

    def summed(self, by: FloatArray) -> Square:
        """ΣD·by over groups: what all groups of a labeler together meet of a matrix of means."""
        own, groups = self.modes.own, self.modes.groups
        turned = np.swapaxes(by, 1, 2)
        first = turned @ np.concatenate([own.first, own.cross], axis=1)
        last = turned @ np.concatenate([own.cross, own.last], axis=1)
        return (first[:, :groups], first[:, groups:]), (last[:, :groups], last[:, groups:])

    @cached_property
    def linked(self) -> Square:
        """κ·ΣDC by groups."""
        (a, b), (c, d) = self.summed(self.by_means)
        (a, c), (b, d) = self.modes.link.on(a, c), self.modes.link.on(b, d)
        return (a, b), (c, d)

    @cached_property
    def shared(self) -> Pairs:
        """κ + κ·ΣΣDCD·κ: what any two groups of a labeler share, (rows, 1, labelers)."""
        own, link = self.modes.own, self.modes.link
        (a, b), (c, d) = self.linked

        def all_groups(
            left: FloatArray, right: FloatArray, by: tuple[FloatArray, FloatArray]
        ) -> FloatArray:
            return np.asarray((left * by[0] + right * by[1]).sum(axis=1, keepdims=True))

        one, two = (own.first, own.cross), (own.cross, own.last)
        whole = (
            (all_groups(a, b, one), all_groups(a, b, two)),
            (all_groups(c, d, one), all_groups(c, d, two)),
        )
        first, last = link.on(*whole[0]), link.on(*whole[1])
        return link + Pairs(first[0], (first[1] + last[0]) / 2, last[1])

    def sway(self) -> Pairs:
        """D⁻¹(V − D)D⁻¹ for the block V of each group: what comes of other groups and of β."""
        groups, at = self.modes.groups, np.arange(self.modes.groups)
        (a, b), (c, d) = self.linked
        blocks, shared = self.by_means[..., None], self.shared
        return Pairs(
            shared.first + blocks[:, at, at] + 2 * a,
            shared.cross + blocks[:, at, groups + at] + b + c,
            shared.last + blocks[:, groups + at, groups + at] + 2 * d,
        )

    @cached_property
    def swayed(self) -> Pairs:
        """What other groups and β add to the blocks D."""
        return self.sway().within(self.modes.own)

    @cached_property
    def blocks(self) -> Pairs:
        """Covariance of t and d′ of each group."""
        return self.modes.own + self.swayed

    def over_all(self) -> Pairs:
        """Sum of H⁻¹CH⁻¹ over labelers and all pairs of groups, (rows,)."""
        own, link = self.modes.own, self.modes.link
        whole = own.sum(1, keepdims=True)
        columns = []
        for t, d in ((1.0, 0.0), (0.0, 1.0)):
            shared = link.on(*whole.on(np.asarray(t), np.asarray(d)))
            columns.append(np.concatenate(own.on(shared[0] + t, shared[1] + d), axis=1))
        met = [self.by_means @ column for column in columns]
        return Pairs(
            (columns[0] * met[0]).sum(axis=(1, 2)),
            (columns[0] * met[1]).sum(axis=(1, 2)),
            (columns[1] * met[1]).sum(axis=(1, 2)),
        )

    def gaps(self, reference: int) -> tuple[FloatArray, FloatArray]:
        """Variances of every other group's t and d′ minus those of a reference."""
        own, groups, r = self.modes.own, self.modes.groups, self.modes.groups + reference
        (a, b), (c, d) = self.linked
        by, blocks, at = self.by_means, self.blocks, slice(reference, reference + 1)

        def shared(
            left: tuple[FloatArray, FloatArray], right: tuple[FloatArray, FloatArray]
        ) -> FloatArray:
            """The block of both groups, between a row of D of one and a column of the other's."""
            one, two = self.shared.on(*left)
            one = one + left[0] * (by[:, :groups, reference, None] + a[:, at] + a)
            one += left[1] * (by[:, groups:, reference, None] + c[:, at] + b)
            two = two + left[0] * (by[:, :groups, r, None] + b[:, at] + c)
            two += left[1] * (by[:, groups:, r, None] + d[:, at] + d)
            return one * right[0][:, at] + two * right[1][:, at]

        first, last = (own.first, own.cross), (own.cross, own.last)
        others = np.arange(groups) != reference
        t = blocks.first + blocks.first[:, at] - 2 * shared(first, first)
        d = blocks.last + blocks.last[:, at] - 2 * shared(last, last)
        return t[:, others], d[:, others]

    def against_rest(self) -> tuple[FloatArray, FloatArray]:
        """Variances of a labeler's t and d′ minus the mean of all others'."""
        modes, own, link = self.modes, self.modes.own, self.modes.link
        labelers, groups = modes.labelers, modes.groups
        total = modes.total / labelers
        met = self.by_means @ total
        whole = np.diagonal(total / labelers + total @ met, axis1=1, axis2=2)[..., None]
        (a, b), (c, d) = self.summed(met)
        alone, at = own + link.within(own), np.arange(groups)
        (a, c), (b, d) = link.on(a, c), link.on(b, d)
        met = met[..., None]
        with_mean = (
            own.first * (met[:, at, at] + a) + own.cross * (met[:, groups + at, at] + c),
            own.cross * (met[:, at, groups + at] + b)
            + own.last * (met[:, groups + at, groups + at] + d),
        )
        parts = (
            (self.blocks.first, alone.first, with_mean[0], whole[:, :groups]),
            (self.blocks.last, alone.last, with_mean[1], whole[:, groups:]),
        )
        scale = (labelers / (labelers - 1)) ** 2
        t, d = (
            scale * (block - 2 / labelers * one - 2 * other + mean)
            for block, one, other, mean in parts
        )
        return t, d

    def weighed(self, t: FloatArray, d: FloatArray) -> FloatArray:
        """Variance of sums over groups, weighed by arrays that meet (groups, labelers)."""
        shape = self.modes.own.first.shape
        left = np.broadcast_to(t, shape), np.broadcast_to(d, shape)
        columns = self.modes.solve(*left)
        flat = np.concatenate(columns, axis=1)
        alone = (left[0] * columns[0] + left[1] * columns[1]).sum(axis=1)
        return np.asarray(alone + (flat * (self.by_means @ flat)).sum(axis=1))
