"""Inferred group membership: rates corrected by a known confusion of groups, and bounds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import FloatArray, critical
from evenhand.stats.rates import wilson

LARGEST_CONDITION = 1e8


def true_given_assigned(assigned_given_true: ArrayLike, *, shares: ArrayLike) -> FloatArray:
    """P(true group | assigned group), rows assigned, from P(assigned | true) and true shares.

    Examples:
        >>> true_given_assigned([[0.95, 0.05], [0.2, 0.8]], shares=[0.7, 0.3]).round(4).tolist()
        [[0.9172, 0.0828], [0.1273, 0.8727]]
    """
    confusion, share = np.asarray(assigned_given_true, dtype=float), np.asarray(shares, dtype=float)
    _stochastic(confusion, "P(assigned | true)")
    if share.shape != (len(confusion),) or np.any(share < 0) or abs(share.sum() - 1) > 1e-6:
        raise UsageError(
            f"shares={share.tolist()} do not fit. Give one share of 0 or more for each true "
            "group, adding up to 1."
        )
    joint = confusion * share[:, None]
    assigned = joint.sum(axis=0)
    if np.any(assigned <= 0):
        raise DataError("A group is never assigned. Leave it out of the confusion matrix.")
    return np.asarray((joint / assigned).T)


def _stochastic(matrix: FloatArray, name: str) -> None:
    if matrix.ndim != 2 or np.any(matrix < 0) or np.any(np.abs(matrix.sum(axis=1) - 1) > 1e-6):
        raise UsageError(
            f"{name} is not a matrix of probabilities. Every row must add up to 1 without "
            "negative entries."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRates:
    """Rates by true group solved from rates by assigned group.

    `condition` is the matrix's condition number: how much sampling error is blown up. `outside`
    marks solutions that are no probabilities, which speaks against the assumption.
    """

    observed: FloatArray
    value: FloatArray
    covariance: FloatArray
    low: FloatArray
    high: FloatArray
    condition: float
    outside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    method: str

    def gap(self, *, group: int, reference: int, level: float = 0.95) -> tuple[float, float, float]:
        """Corrected group − reference with its interval."""
        value = float(self.value[group] - self.value[reference])
        c = self.covariance
        spread = c[group, group] + c[reference, reference] - 2 * c[group, reference]
        half = critical(level) * float(np.sqrt(spread))
        return value, value - half, value + half


def corrected_group_rates(
    hits: ArrayLike, n: ArrayLike, *, membership: ArrayLike, level: float = 0.95
) -> CorrectedRates:
    """Rates of true groups from counts by assigned group and P(true | assigned).

    Assumes that being assigned wrongly does not depend on the decision given the true group.
    For a true or false positive rate give counts and membership within that truth value.

    Examples:
        >>> members = true_given_assigned([[0.95, 0.05], [0.2, 0.8]], shares=[0.7, 0.3])
        >>> found = corrected_group_rates([4110, 552], [14500, 4400], membership=members)
        >>> found.value.round(3).tolist()
        [0.3, 0.1]
    """
    k, size = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    matrix = np.asarray(membership, dtype=float)
    _stochastic(matrix, "P(true | assigned)")
    if matrix.shape != (k.size, k.size):
        raise DataError(
            f"membership has shape {matrix.shape} for {k.size} assigned groups. "
            "Give a square matrix, rows assigned and columns true."
        )
    condition = float(np.linalg.cond(matrix))
    if not condition < LARGEST_CONDITION:
        raise DataError(
            "The confusion of groups cannot be undone: two assigned groups have the same mix of "
            "true groups. Merge them or use the bounds."
        )
    observed = k / np.where(size > 0, size, np.nan)
    inverse = np.linalg.inv(matrix)
    value = inverse @ observed
    # Half a case each way keeps the variance of a rate of 0 or 1 from vanishing.
    middle = (k + 0.5) / (size + 1)
    spread = np.diag(middle * (1 - middle) / np.where(size > 0, size, np.nan))
    covariance = inverse @ spread @ inverse.T
    half = critical(level) * np.sqrt(np.diag(covariance))
    return CorrectedRates(
        observed=observed,
        value=np.asarray(value),
        covariance=np.asarray(covariance),
        low=np.clip(value - half, 0.0, 1.0),
        high=np.clip(value + half, 0.0, 1.0),
        condition=condition,
        outside=np.asarray((value < 0) | (value > 1)),
        method="inversion of P(true | assigned), delta method",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBounds:
    """Lowest and highest rate of each true group that the data allow without assumption.

    `low` and `high` take the observed rates as they are; `outer_low` and `outer_high` take
    their Wilson limits instead.
    """

    low: FloatArray
    high: FloatArray
    outer_low: FloatArray
    outer_high: FloatArray


def group_rate_bounds(
    hits: ArrayLike,
    n: ArrayLike,
    *,
    membership: ArrayLike,
    assigned_shares: ArrayLike | None = None,
    level: float = 0.95,
) -> GroupBounds:
    """Bounds on true groups' rates that hold whatever wrong assignment depends on.

    Within an assigned group of rate r that holds a share P of group g, g's rate lies between
    (r−1+P)/P and r/P; these are averaged over assigned groups by P(assigned | g).

    Examples:
        >>> found = group_rate_bounds([283, 125], [1000, 1000],
        ...                           membership=[[0.9, 0.1], [0.1, 0.9]])
        >>> found.low.round(2).tolist(), found.high.round(2).tolist()
        ([0.18, 0.03], [0.38, 0.22])
    """
    k, size = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    matrix = np.asarray(membership, dtype=float)
    _stochastic(matrix, "P(true | assigned)")
    assigned = size / size.sum() if assigned_shares is None else np.asarray(assigned_shares, float)
    joint = matrix * assigned[:, None]
    given_true = joint / joint.sum(axis=0)
    rate = k / np.where(size > 0, size, np.nan)
    low, high = wilson(k, size, z=critical(level))

    def least(r: FloatArray) -> FloatArray:
        inside = np.divide(
            r[:, None] - 1 + matrix, matrix, out=np.zeros_like(matrix), where=matrix > 0
        )
        return np.asarray((given_true * np.maximum(inside, 0.0)).sum(axis=0))

    def most(r: FloatArray) -> FloatArray:
        inside = np.divide(r[:, None], matrix, out=np.ones_like(matrix), where=matrix > 0)
        return np.asarray((given_true * np.minimum(inside, 1.0)).sum(axis=0))

    return GroupBounds(
        low=least(rate),
        high=most(rate),
        outer_low=least(np.asarray(low)),
        outer_high=most(np.asarray(high)),
    )
