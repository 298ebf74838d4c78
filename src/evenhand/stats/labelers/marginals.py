"""Every labeler's numbers, their posterior summed up without drawing it.

Given hyperparameters θ is nearly normal, with a covariance in closed form; over hyperparameters it
is a mixture, whose moments are weighted sums. What the likelihood bends is added once, at the mean
of the hyperparameters, as it hardly changes with them. The cost ratio is a quadratic form of
(t, d′), which has cumulants in closed form too.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.estimate import FloatArray
from evenhand.stats.labelers.bent import Bent
from evenhand.stats.labelers.cells import CellCounts
from evenhand.stats.labelers.covariances import Covariances
from evenhand.stats.labelers.mixtures import Bend, Mixture, mixture_of, of_moments, raw_moments
from evenhand.stats.labelers.modes import LARGEST_BATCH, find_modes
from evenhand.stats.labelers.pairs import Pairs
from evenhand.stats.labelers.pooled import HyperPosterior
from evenhand.stats.labelers.products import Products, bend_variance

# By group; over all groups; less the other labelers' mean; less the same labeler's reference.
Kind = Literal["groups", "whole", "rest", "own"]
# `behaviour` is the log cost ratio without the prevalence.
Name = Literal["criterion", "separation", "behaviour"]
Key = tuple[Kind, Name]
# How many rows of hyperparameters quantiles are mixed of.
MOST_MIXED, FEWEST_ROWS, MOST_ROWS = 20_000, 6, 40
BOTH: tuple[Name, ...] = ("criterion", "separation")
# A number's mean, less what all rows have in common, and variance given each row.
Given = tuple[FloatArray, FloatArray]
# What behaviour, d′²/2 − t·d′, bends by.
BEND = np.array([[0.0, -1.0], [-1.0, 1.0]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """Every labeler's numbers by kind and name, (labelers, groups).

    Over groups they are (labelers, 1); there are no own ones of the reference itself. `moves` is
    how far means of θ lie from modes, planes (2, groups, labelers).
    """

    numbers: dict[Key, Mixture | Products]
    moves: FloatArray


def marginals(
    cells: CellCounts,
    posterior: HyperPosterior,
    *,
    share: FloatArray,
    reference: int,
    shift: Pairs,
) -> Marginals:
    """Every labeler's numbers by group, over groups, against the rest and against a reference.

    Over groups each counts by its `share`. `shift` (groups,) is the covariance of what items add
    to t and d′ of all labelers alike.
    """
    modes, weights = posterior.modes, posterior.weights
    average = np.tensordot(weights, modes.planes, axes=(0, 1))
    start = average[:, None], np.tensordot(weights, modes.means, axes=(0, 1))[:, None]
    bent = Bent(cells, find_modes(cells, weights @ posterior.hyper, start=start))
    what = _What(
        centre=average + bent.moves,
        share=share,
        reference=reference,
        shift=shift[:, None],
    )
    moments: dict[Key, FloatArray] = {}
    blocks = np.zeros((3, *average.shape[1:]))
    most = max(1, LARGEST_BATCH // cells.n.size)
    for at in range(0, len(weights), most):
        rows = slice(at, at + most)
        away = modes.planes[:, rows] - average[:, None]
        covariances = Covariances(modes[rows])
        for key, (mean, variance) in _given(away, covariances, what).items():
            moments[key] = moments.get(key, 0.0) + raw_moments(weights[rows], mean, variance)
        own = covariances.blocks
        parts = own.first + away[0] ** 2, own.cross + away[0] * away[1], own.last + away[1] ** 2
        blocks += [np.tensordot(weights[rows], part, 1) for part in parts]
    centres, sums = _centres(what), _sums(what)
    beyond = _beyond_sums(bent, what, sums)
    some = _some_rows(posterior, cells.n.size)
    covariances = Covariances(modes[some])
    given = _given(modes.planes[:, some] - average[:, None], covariances, what)
    numbers: dict[Key, Mixture | Products] = {}
    for key, raw in moments.items():
        kind, name = key
        plain = of_moments(centres[key], raw)
        # Less the other labelers' mean a number is bent as it is by itself.
        bend = bent.of(sums["groups" if kind == "rest" else kind, name]).over(plain, power=3)
        if key in beyond:
            bend = bend + beyond[key].over(plain, power=2)
        mean, variance = (np.swapaxes(each, 1, 2) for each in given[key])
        found = mixture_of(plain, bend, given=(mean, variance))
        numbers[key] = found
        if key == ("groups", "behaviour"):
            t, d = np.swapaxes(modes.planes[:, some] + bent.moves[:, None], 2, 3)
            seen = (covariances.blocks + what.shift).turned()
            numbers[key] = Products(t=t, d=d, covariance=seen, noise=np.zeros(1), whole=found)
    return Marginals(numbers=numbers, moves=bent.moves)


def _some_rows(posterior: HyperPosterior, numbers: int) -> NDArray[np.intp]:
    """Rows of hyperparameters that stand for all of them, alike in weight, from narrow to wide.

    Many labelers leave little doubt about hyperparameters: fewer rows do.
    """
    own = posterior.modes.own
    wide = np.argsort((own.first + own.last).mean(axis=(1, 2)))
    reached = np.cumsum(posterior.weights[wide])
    count = int(np.clip(MOST_MIXED // numbers, FEWEST_ROWS, MOST_ROWS))
    middles = (np.arange(count) + 0.5) / count * reached[-1]
    return np.asarray(wide[np.searchsorted(reached, middles)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _What:
    """What of labelers is summed up, and around which (t, d′): planes (2, groups, labelers).

    `shift` is (groups, 1).
    """

    centre: FloatArray
    share: FloatArray
    reference: int
    shift: Pairs

    @property
    def others(self) -> list[int]:
        """All groups but the reference."""
        return [g for g in range(len(self.share)) if g != self.reference]


def _given(away: FloatArray, covariances: Covariances, what: _What) -> dict[Key, Given]:
    """Means, less those of all rows together, and variances given each row of hyperparameters."""
    own, by_share, nothing = covariances.blocks, what.share[:, None], np.zeros(1)
    groups, labelers = own.first.shape[1:]
    seen = own + what.shift
    t, d = away + what.centre[:, None]
    by_t, by_d = -d, d - t
    cost = d * d / 2 - t * d - seen.cross + seen.last / 2 - _behaviour(what.centre)
    bend = bend_variance(seen)
    found: dict[Key, Given] = {
        ("groups", "criterion"): (away[0], seen.first),
        ("groups", "separation"): (away[1], seen.last),
        ("groups", "behaviour"): (cost, seen.form(by_t, by_d) + bend),
    }
    # Over groups what items add is independent, and so is how the cost ratio bends but for what
    # groups share of it, which is added in the end.
    extra: dict[Name, tuple[FloatArray, FloatArray, FloatArray]] = {
        "criterion": (by_share, nothing, what.shift.first),
        "separation": (nothing, by_share, what.shift.last),
        "behaviour": (by_share * by_t, by_share * by_d, what.shift.form(by_t, by_d) + bend),
    }
    for name, (first, last, more) in extra.items():
        mean = (by_share * found["groups", name][0]).sum(axis=1, keepdims=True)
        alone = (by_share**2 * more).sum(axis=-2, keepdims=True)
        found["whole", name] = mean, covariances.weighed(first, last)[:, None] + alone
    count = labelers / (labelers - 1)
    for name, each, rest in zip(BOTH, away, covariances.against_rest()):
        found["rest", name] = count * (each - each.mean(axis=2, keepdims=True)), rest
    if groups > 1:
        at, reference = what.others, [what.reference]
        for name, each, gap, shift in zip(
            BOTH, away, covariances.gaps(what.reference), (what.shift.first, what.shift.last)
        ):
            apart = gap + shift[at] + shift[reference]
            found["own", name] = each[:, at] - each[:, reference], apart
    return found


def _behaviour(planes: FloatArray) -> FloatArray:
    """The log cost ratio of (t, d′) without the prevalence."""
    t, d = planes
    return np.asarray(d * d / 2 - t * d)


def _centres(what: _What) -> dict[Key, FloatArray]:
    """Around what each number's moments were taken, (labelers, numbers)."""
    centre, share = what.centre, what.share
    count = centre.shape[2] / (centre.shape[2] - 1)
    found: dict[Key, FloatArray] = {}
    for name, plane in zip((*BOTH, "behaviour"), (*centre, _behaviour(centre))):
        found["groups", name] = plane.T
        found["whole", name] = plane.T @ share[:, None]
        found["rest", name] = count * (plane - plane.mean(axis=1, keepdims=True)).T
        found["own", name] = (plane[what.others] - plane[[what.reference]]).T
    return found


def _sums(what: _What) -> dict[Key, FloatArray]:
    """By what each number weighs t and d′ of all groups: (labelers or 1, numbers, 2G)."""
    groups, (t, d) = len(what.share), what.centre
    apart = np.eye(2 * groups)
    cost = np.zeros((t.shape[1], groups, 2 * groups))
    at = np.arange(groups)
    cost[:, at, 2 * at], cost[:, at, 2 * at + 1] = -d.T, (d - t).T
    found: dict[Key, FloatArray] = {}
    for name, each in zip((*BOTH, "behaviour"), (apart[None, 0::2], apart[None, 1::2], cost)):
        found["groups", name] = each
        found["whole", name] = (what.share[:, None] * each).sum(axis=1, keepdims=True)
        if name != "behaviour" and what.others:
            found["own", name] = each[:, what.others] - each[:, [what.reference]]
    return found


def _beyond_sums(bent: Bent, what: _What, sums: dict[Key, FloatArray]) -> dict[Key, Bend]:
    """What the log cost ratio has beyond a sum of t and d′, as it bends with them.

    By group its own bending is that of products; over groups what they share of it is left.
    """
    groups, share, shift = len(what.share), what.share, what.shift
    t, d = (plane.T for plane in what.centre)
    slopes, at = np.stack([-d, d - t], axis=-1), np.arange(groups)
    apart = np.zeros((groups, 2, groups, 2))
    apart[at, :, at] = shift.table[:, 0]
    dense = bent.covariance + apart.reshape(2 * groups, 2 * groups)
    alone = np.moveaxis(dense.reshape(-1, groups, 2, groups, 2)[:, at, :, at], 0, 1)
    weighed = (share[:, None] * slopes).reshape(len(t), -1)
    whole = quadratic(weighed, dense, np.kron(np.diag(share), BEND))
    between = whole.variance - quadratic(slopes, alone, BEND).variance @ share**2
    by_group: Key = ("groups", "behaviour")
    over_groups: Key = ("whole", "behaviour")
    met = bent.met_by_bends(sums[over_groups], share[None])
    return {
        by_group: Bend(
            variance=bent.met_by_bends(sums[by_group], np.eye(groups)), third=np.zeros(t.shape)
        ),
        over_groups: Bend(variance=between[:, None] + met, third=whole.third[:, None]),
    }


def quadratic(slopes: FloatArray, covariance: FloatArray, bend: FloatArray) -> Bend:
    """What gᵀy + yᵀBy/2 of normal y around 0 has beyond the variance of gᵀy.

    Examples:
        >>> found = quadratic(np.zeros((1, 1)), np.ones((1, 1, 1)), 2 * np.ones((1, 1)))  # χ²₁
        >>> float(found.variance[0]), float(found.third[0])
        (2.0, 8.0)
    """
    turned = bend @ covariance
    along = (covariance @ slopes[..., None])[..., 0]

    def trace(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.asarray((left * np.swapaxes(right, -1, -2)).sum(axis=(-1, -2)))

    return Bend(
        variance=trace(turned, turned) / 2,
        third=3 * (along * (along @ bend)).sum(axis=-1) + trace(turned @ turned, turned),
    )
