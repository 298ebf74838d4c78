"""Cuts that give every group the same true positive rate, or the same implied threshold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.cells import Codes, coded, several
from evenhand.stats.estimate import FloatArray
from evenhand.stats.histogram import rule_of_thumb_bandwidth, score_histogram
from evenhand.stats.implied import ImpliedThresholds, implied_thresholds
from evenhand.stats.isotonic import isotonic_fit
from evenhand.stats.local import local_fit, local_moments

CANDIDATES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """One rule a group: accept above `cut`, and at the cut itself with probability `share`.

    `rate` is the true positive rate this gives on the rows it was fitted on, `n` the positive
    rows there and `gap` what remains between the groups, largest minus smallest rate.
    """

    groups: tuple[Any, ...]
    cut: FloatArray
    share: FloatArray
    target: float
    rate: FloatArray
    n: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """Largest minus smallest true positive rate; NaN with fewer than two groups."""
        known = self.rate[np.isfinite(self.rate)]
        return float(np.ptp(known)) if known.size > 1 else float("nan")


def equal_true_positive_rates(
    scores: ArrayLike,
    *,
    truth: ArrayLike,
    group: Any,
    target: float | None = None,
    threshold: float = 0.5,
    randomised: bool = True,
) -> Cuts:
    """Cuts by group with one true positive rate, exact on these rows by chance at the cut.

    `target` is by default the rate of all groups together at `threshold`. Without `randomised`
    each group gets the whole cut that comes nearest, and the gap that remains is in `gap`.

    Examples:
        >>> found = equal_true_positive_rates([0.9, 0.4, 0.8, 0.7], truth=[1] * 4,
        ...                                   group=["f", "f", "m", "m"])
        >>> found.target, found.cut.tolist(), found.share.tolist(), found.gap
        (0.75, [0.4, 0.7], [0.5, 0.5], 0.0)
    """
    s, positive = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    names, g = coded(group, argument="group")
    if not s.shape == positive.shape == g.shape:
        raise UsageError(
            f"{s.size} scores, {positive.size} truths and {g.size} groups do not fit together. "
            "Give one of each for every row."
        )
    if not positive.any():
        raise DataError("No row is positive, so there is no true positive rate to equalise.")
    aim = float((s[positive] >= threshold).mean()) if target is None else float(target)
    if not 0 <= aim <= 1:
        raise UsageError(f"target={aim:g} is not a rate between 0 and 1.")
    cut, share = np.full(len(names), float(threshold)), np.ones(len(names))
    rate = np.full(len(names), np.nan)
    n = np.bincount(g[positive], minlength=len(names))
    for k in np.flatnonzero(n):
        own = s[positive & (g == k)]
        cut[k], share[k] = _cut(own, aim, randomised=randomised)
        rate[k] = accepted(own, cut=cut[k], share=share[k]).mean()
    notes = []
    if (n == 0).any():
        without = several(name for name, count in zip(names, n, strict=True) if not count)
        notes.append(f"No positive rows of {without}: the threshold stays {threshold:g}.")
    return Cuts(groups=names, cut=cut, share=share, target=aim, rate=rate, n=n, notes=tuple(notes))


def accepted(scores: ArrayLike, *, cut: ArrayLike, share: ArrayLike) -> FloatArray:
    """Probability with which each score is accepted."""
    s, at = np.asarray(scores, dtype=np.float64), np.asarray(cut, dtype=np.float64)
    return np.asarray((s > at) + (s == at) * np.asarray(share, dtype=np.float64))


def _cut(scores: FloatArray, target: float, *, randomised: bool) -> tuple[float, float]:
    values, counts = np.unique(scores, return_counts=True)
    values, counts = values[::-1], counts[::-1]
    reached = np.cumsum(counts)
    need = target * scores.size
    if not randomised:
        rates = np.concatenate([[0], reached]) / scores.size
        # Of two equally near cuts the lower one: it takes in more people.
        best = int(np.flatnonzero(np.isclose(abs(rates - target), abs(rates - target).min()))[-1])
        return (float(values[best - 1]), 1.0) if best else (float(values[0]), 0.0)
    at = int(np.searchsorted(reached, need - 1e-9))
    at = min(at, values.size - 1)
    share = (need - (reached[at] - counts[at])) / counts[at]
    return float(values[at]), float(np.clip(share, 0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedCuts:
    """One cut a group at which the truth is as probable as the cost ratio asks.

    `implied` has what the fitting rows say at the cut, with intervals; a cut of ±∞ accepts
    nobody or everybody, because the group's probabilities never reach, or never fall to, the
    target.
    """

    groups: tuple[Any, ...]
    cut: FloatArray
    target: float
    implied: ImpliedThresholds
    notes: tuple[str, ...] = ()


def equal_implied_thresholds(
    scores: ArrayLike,
    *,
    truth: ArrayLike,
    group: Any,
    cost_ratio: float,
    bandwidth: float | None = None,
    level: float = 0.95,
) -> ImpliedCuts:
    """Cuts by group at which the probability of the truth is 1 ÷ (1 + cost_ratio).

    The probability is the tricube local-linear fit that the thresholds lens audits; `bandwidth`
    is by default the rule of thumb of each group.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> s = rng.random(4000)
        >>> y = rng.random(4000) < s
        >>> found = equal_implied_thresholds(s, truth=y, group=["a"] * 4000, cost_ratio=3)
        >>> found.implied.value.round(6).tolist(), bool(abs(found.cut[0] - 0.25) < 0.05)
        ([0.25], True)
    """
    if not (np.isfinite(cost_ratio) and cost_ratio > 0):
        raise UsageError(
            f"cost_ratio={cost_ratio} is not a number above 0. "
            "Give the cost of one false negative in false positives, such as 4."
        )
    s, positive = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    names, g = coded(group, argument="group")
    target = 1 / (1 + cost_ratio)
    cut, h, notes = np.empty(len(names)), np.empty(len(names)), []
    for k, name in enumerate(names):
        cut[k], h[k], word = _implied_cut(s[g == k], positive[g == k], target, bandwidth)
        if word:
            notes.append(f"{name}: {word}")
    at = np.where(np.isfinite(cut), cut, 0.0)
    moments = local_moments(s, truth=positive, threshold=at, bandwidth=h, groups=g)
    found = implied_thresholds(moments, threshold=cut, bandwidth=h, level=level)
    for k, name in enumerate(names):
        if np.isfinite(cut[k]):
            notes += [f"{name}: {each}." for each in found.warnings[k]]
    return ImpliedCuts(groups=names, cut=cut, target=target, implied=found, notes=tuple(notes))


def _implied_cut(
    s: FloatArray, positive: NDArray[np.bool_], target: float, bandwidth: float | None
) -> tuple[float, float, str]:
    """Cut, bandwidth and what has to be said about them."""
    middle = float(np.median(s))
    h = bandwidth
    if h is None:
        h = float(rule_of_thumb_bandwidth(score_histogram(s, truth=positive, threshold=middle))[0])
    if not np.isfinite(h):
        return float("inf"), 1.0, "fewer than two distinct scores, so nobody is accepted."
    grid = np.unique(np.quantile(s, np.linspace(0, 1, CANDIDATES)))
    curve = np.array([_prevalence(s, positive, t, h) for t in grid])
    grid, curve = grid[np.isfinite(curve)], curve[np.isfinite(curve)]
    if grid.size < 2:
        return float("inf"), h, "too few scores for a local fit, so nobody is accepted."
    rising = isotonic_fit(curve)
    if rising[-1] < target:
        return float("inf"), h, f"no score reaches a probability of {target:.3g}; none is accepted."
    if rising[0] > target:
        return float("-inf"), h, f"no score falls to a probability of {target:.3g}; all accepted."
    return _crossing(s, positive, target, h, grid, curve, rising), h, ""


def _crossing(
    s: FloatArray,
    positive: NDArray[np.bool_],
    target: float,
    h: float,
    grid: FloatArray,
    curve: FloatArray,
    rising: FloatArray,
) -> float:
    """Where the fit rises through the target, nearest to where its monotone version does."""
    from scipy.optimize import brentq

    guess = float(grid[int(np.argmax(rising >= target))])
    ups = np.flatnonzero((curve[:-1] < target) & (curve[1:] >= target))
    if not ups.size:
        return guess
    best = ups[np.argmin(np.abs(grid[ups] - guess))]
    return float(
        brentq(lambda t: _prevalence(s, positive, t, h) - target, grid[best], grid[best + 1])
    )


def _prevalence(s: FloatArray, positive: NDArray[np.bool_], t: float, h: float) -> float:
    near = np.abs(s - t) < h
    moments = local_moments(s[near], truth=positive[near], threshold=t, bandwidth=h)
    return float(local_fit(moments).value[0])


def random_draws(rows: int, columns: int, *, seed: int) -> FloatArray:
    """The chances that settle scores at a cut: the same for the same seed."""
    return np.random.default_rng(seed).random((rows, columns))


def group_codes(group: Any, known: tuple[Any, ...], *, rows: int) -> Codes:
    """Codes of groups that must all be known."""
    names, codes = coded(group, argument="group")
    if codes.size != rows:
        raise UsageError(f"group has {codes.size} values for {rows} rows. Give one for each row.")
    new = [name for name in names if name not in known]
    if new:
        raise DataError(
            f"The thresholds were fitted without the group {several(new)}; they know "
            f"{several(known)}. Fit them on rows of every group that will be decided about."
        )
    return np.array([known.index(name) for name in names], dtype=np.intp)[codes]
