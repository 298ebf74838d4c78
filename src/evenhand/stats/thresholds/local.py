"""Prevalence at a threshold: tricube local regression of a 0/1 truth on a score, per group.

With u = (s−t)/h and w = (1−|u|³)³ inside |u| < 1, everything but HC3 is a function of a few
sums per group (`LocalMoments`), so it can be computed wherever the rows are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.weights import add_up, distinct

Robust = Literal["HC0", "HC1"]


def tricube(u: ArrayLike) -> FloatArray:
    """Tricube kernel weight (1−|u|³)³ inside (−1, 1), else 0.

    Examples:
        >>> tricube([0.0, 0.5, 1.0]).round(4).tolist()
        [1.0, 0.6699, 0.0]
    """
    distance = np.minimum(np.abs(np.asarray(u, dtype=float)), 1.0)
    # Products: powers of arrays are far slower.
    rest = 1.0 - distance * distance * distance
    return np.asarray(rest * rest * rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMoments:
    """Sums around the threshold, one row per group.

    With sampling weights ω, `weight` holds Σωwuᵏ, `outcome` Σωwyuᵏ, `squared` Σω²w²uᵏ and
    `squared_outcome` Σω²w²yuᵏ. A local quadratic needs powers 0..4, 0..2, 0..8 and 0..6; a local
    linear alone 0..2, 0..1, 0..4 and 0..3. `n` counts rows inside the bandwidth, `n_below` those
    of them under the threshold (to tell a boundary), where the engine counted them.
    """

    n: FloatArray
    weight: FloatArray
    outcome: FloatArray
    squared: FloatArray
    squared_outcome: FloatArray
    n_below: FloatArray | None = None

    @property
    def degree(self) -> int:
        """Highest polynomial that these sums allow, 1 or 2."""
        return 2 if self.weight.shape[1] >= 5 else 1

    @property
    def n_effective(self) -> FloatArray:
        """Kish's effective number of rows, (Σw)²/Σw²."""
        top, bottom = self.weight[:, 0] ** 2, self.squared[:, 0]
        return np.divide(top, bottom, out=np.zeros(top.shape), where=bottom > 0)


def local_moments(
    scores: ArrayLike,
    *,
    truth: ArrayLike,
    threshold: ArrayLike,
    bandwidth: ArrayLike,
    groups: ArrayLike | None = None,
    n_groups: int | None = None,
    weights: ArrayLike | None = None,
) -> LocalMoments:
    """The 25 sums of the local quadratic from rows, one row per group.

    `groups` are group numbers from 0; `threshold` and `bandwidth` are one number or one each.

    Examples:
        >>> found = local_moments([0.4, 0.5, 0.6], truth=[0, 1, 1], threshold=0.5, bandwidth=0.2)
        >>> found.n.tolist(), found.weight[0].round(3).tolist()
        ([3.0], [2.34, 0.0, 0.335, 0.0, 0.084])
    """
    s, y = np.asarray(scores, dtype=float), np.asarray(truth, dtype=float)
    which = np.zeros(s.size, dtype=np.intp) if groups is None else np.asarray(groups, dtype=np.intp)
    count = n_groups if n_groups is not None else int(which.max(initial=0)) + 1
    omega = np.ones(s.size) if weights is None else np.asarray(weights, dtype=float)
    t, h = _per_group(threshold, count), _bandwidth(bandwidth, count)
    u = (s - t[which]) / h[which]
    near = np.abs(u) < 1
    return sum_up(u[near], y[near], omega[near], omega[near] ** 2, which[near], count)


def sum_up(
    u: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    omega_squared: FloatArray,
    which: NDArray[np.intp],
    count: int,
    rows: FloatArray | None = None,
) -> LocalMoments:
    """Sums by group of rows, or of cells that stand for `rows` rows each."""
    rows = np.ones(u.size) if rows is None else rows
    return sum_cells(u, omega, omega * y, omega_squared, omega_squared * y, which, count, rows)


def sum_cells(
    u: FloatArray,
    omega: FloatArray,
    omega_yes: FloatArray,
    omega_squared: FloatArray,
    omega_squared_yes: FloatArray,
    which: NDArray[np.intp],
    count: int,
    rows: FloatArray,
) -> LocalMoments:
    """Sums by group of cells, of whose rows some have a positive truth."""
    kernel = tricube(u)
    squared = kernel**2

    # Groups that come one after the other, as cells of a histogram do, are summed as they lie.
    steps = np.diff(which)
    in_order = which.size > 0 and bool(steps.min(initial=0) >= 0)
    starts = np.flatnonzero(np.append(True, steps)) if in_order else None

    def total(values: FloatArray) -> FloatArray:
        if starts is None:
            return np.bincount(which, values, minlength=count).astype(np.float64)
        found = np.zeros(count)
        found[which[starts]] = np.add.reduceat(values, starts)
        return found

    def sums(base: FloatArray, highest: int) -> FloatArray:
        found = np.empty((count, highest + 1))
        for k in range(highest + 1):
            found[:, k] = total(base)
            if k < highest:
                base *= u
        return found

    return LocalMoments(
        n=total(rows),
        n_below=total(rows * (u < 0)),
        weight=sums(omega * kernel, 4),
        outcome=sums(omega_yes * kernel, 2),
        squared=sums(omega_squared * squared, 8),
        squared_outcome=sums(omega_squared_yes * squared, 6),
    )


def _per_group(value: ArrayLike, count: int) -> FloatArray:
    return np.broadcast_to(np.asarray(value, dtype=float), (count,))


def _bandwidth(value: ArrayLike, count: int) -> FloatArray:
    h = _per_group(value, count)
    # NaN is a bandwidth that no rule could give; it leaves its group without rows.
    if np.any(h <= 0):
        raise UsageError(
            f"bandwidth={float(h[h <= 0][0]):g} is not above 0. "
            "Give the distance from the threshold within which rows count."
        )
    return np.where(np.isnan(h), 1.0, h)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFit:
    """Local polynomial at the threshold: coefficients in powers of u and their covariance.

    `coefficients[:, 0]` is the prevalence at the threshold. NaN where the window holds too few
    distinct scores for the degree.
    """

    degree: int
    coefficients: FloatArray
    covariance: FloatArray
    inverse: FloatArray

    @property
    def value(self) -> FloatArray:
        """Prevalence at the threshold."""
        return self.coefficients[:, 0]

    @property
    def standard_error(self) -> FloatArray:
        """Robust standard error of the prevalence at the threshold."""
        # Rounding can leave a variance of 0 just below it.
        return np.asarray(np.sqrt(np.maximum(self.covariance[:, 0, 0], 0.0)))


def _hankel(powers: FloatArray, size: int) -> FloatArray:
    """Matrices whose (i, j) entry is the sum with u to the power i + j."""
    index = np.add.outer(np.arange(size), np.arange(size))
    return powers[:, index]


def _solve(gram: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients and inverse Gram matrix, NaN where it is singular."""
    scale = gram[:, :1, :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = np.where(scale > 0, gram / scale, 0.0)
    smallest = np.linalg.eigvalsh(unit)[:, 0]
    # Rows at too few distinct scores leave an eigenvalue of rounding size, near 1e-16.
    usable = (gram[:, 0, 0] > 0) & (smallest > 1e-11)
    safe = np.where(usable[:, None, None], gram, np.eye(gram.shape[1]))
    inverse = np.where(usable[:, None, None], np.linalg.inv(safe), np.nan)
    return np.einsum("gij,gj->gi", inverse, right), inverse


def local_fit(moments: LocalMoments, *, degree: int = 1, robust: Robust = "HC1") -> LocalFit:
    """Weighted least squares of truth on powers of u, with its sandwich covariance.

    Kernel weights are no precisions, so the naive covariance is wrong.

    Examples:
        >>> sums = local_moments([0.3, 0.4, 0.5, 0.6, 0.7], truth=[0, 0, 1, 0, 1],
        ...                      threshold=0.5, bandwidth=0.3)
        >>> fit = local_fit(sums)
        >>> f"{fit.value[0]:.3f} ± {fit.standard_error[0]:.3f}"
        '0.387 ± 0.302'
    """
    if degree not in (1, 2) or degree > moments.degree:
        raise UsageError(
            f"degree={degree} needs sums that were not taken. Use 1, or 2 with all 25 sums."
        )
    k = degree + 1
    coefficients, inverse = _solve(_hankel(moments.weight, k), moments.outcome[:, :k])
    # Σw²(y − x'β)²xx' expands into sums because y² = y.
    squares = np.zeros((len(coefficients), 2 * degree + 1))
    for i in range(k):
        for j in range(k):
            squares[:, i + j] += coefficients[:, i] * coefficients[:, j]
    meat = _hankel(moments.squared_outcome, k)
    for i in range(k):
        shifted = _hankel(moments.squared_outcome[:, i:], k)
        meat = meat - 2.0 * coefficients[:, i, None, None] * shifted
    for i in range(2 * degree + 1):
        meat = meat + squares[:, i, None, None] * _hankel(moments.squared[:, i:], k)
    covariance = inverse @ meat @ inverse
    if robust == "HC1":
        spare = moments.n - k
        factor = np.where(spare > 0, moments.n / np.where(spare > 0, spare, 1.0), np.nan)
        covariance = covariance * factor[:, None, None]
    return LocalFit(
        degree=degree, coefficients=coefficients, covariance=covariance, inverse=inverse
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFit:
    """Cluster-robust local fit: values and their covariance over groups, not only within them.

    Groups that share clusters (one producer, many groups) are not independent; `covariance` is
    the full groups × groups matrix of the prevalences, `clusters` counts clusters per group and
    `effective` how many that bear equally on the value would tell as much.
    """

    value: FloatArray
    covariance: FloatArray
    clusters: FloatArray
    effective: FloatArray

    @property
    def standard_error(self) -> FloatArray:
        """Cluster-robust standard error of each group's prevalence."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


def cluster_fit(
    weight: ArrayLike,
    *,
    outcome: ArrayLike,
    groups: ArrayLike,
    clusters: ArrayLike,
    degree: int = 1,
    n_groups: int | None = None,
    jackknife: bool = False,
) -> ClusterFit:
    """Local fit with cluster-robust errors from sums per (cluster, group).

    `weight` holds Σwuᵏ for k up to 2·degree, `outcome` Σwyuᵏ for k up to degree, one row for
    each pair of cluster and group that occurs. The factor is C/(C−1). With `jackknife`, errors
    come from leaving each cluster out, factor (C−1)/C: a few large clusters near the threshold
    pull the fit towards themselves, and the plain residuals are then too small.

    Examples:
        >>> fit = cluster_fit([[1.0, 0.2, 0.5], [1.0, -0.3, 0.4], [0.5, 0.1, 0.3]],
        ...                   outcome=[[1, 0.3], [0, 0], [0.5, 0.1]],
        ...                   groups=[0, 0, 0], clusters=[0, 1, 2])
        >>> f"{fit.value[0]:.3f} ± {fit.standard_error[0]:.3f}"
        '0.600 ± 0.306'
    """
    powers, yes = np.asarray(weight, dtype=float), np.asarray(outcome, dtype=float)
    if powers.shape[1] < 2 * degree + 1 or yes.shape[1] < degree + 1:
        raise DataError(
            f"A local polynomial of degree {degree} needs sums of powers 0 to {2 * degree}; "
            f"{powers.shape[1]} were given. Take the missing sums."
        )
    which = np.asarray(groups, dtype=np.int64)
    _, cluster = distinct(np.asarray(clusters, dtype=np.int64))
    count = n_groups if n_groups is not None else int(which.max(initial=0)) + 1

    def total(values: FloatArray) -> FloatArray:
        return np.stack([add_up(column, which, count) for column in values.T], axis=1)

    whole = LocalTotals.of(total(powers), outcome=total(yes), degree=degree)
    products = cluster_products(
        powers, outcome=yes, groups=which, clusters=cluster, whole=whole, jackknife=jackknife
    )
    return products_fit(products, whole=whole, jackknife=jackknife)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTotals:
    """Local fits of groups to all their rows, and what they were fitted to."""

    gram: FloatArray
    coefficients: FloatArray
    inverse: FloatArray

    @classmethod
    def of(cls, weight: FloatArray, *, outcome: FloatArray, degree: int) -> "LocalTotals":
        """The fits to Σwuᵏ and Σwyuᵏ of each group."""
        k = degree + 1
        gram = _hankel(weight, k)
        coefficients, inverse = _solve(gram, outcome[:, :k])
        return cls(gram=gram, coefficients=coefficients, inverse=inverse)


def cluster_products(
    weight: FloatArray,
    *,
    outcome: FloatArray,
    groups: NDArray[np.int64],
    clusters: NDArray[np.int64],
    whole: LocalTotals,
    jackknife: bool,
) -> dict[str, FloatArray]:
    """Sums over some clusters of products of how far each moves the fits; they can be added.

    Rows as for `cluster_fit`, of these clusters alone, each whole. `pairs` counts the rows of each
    group, `clusters` those with any weight, `moved` are the products by (group, group) and
    `squares` the squared shares of what is in each value.
    """
    from scipy import sparse

    count, k = whole.coefficients.shape
    own = _hankel(weight, k)
    residual = outcome[:, :k] - np.einsum("cij,cj->ci", own, whole.coefficients[groups])
    leaning = whole.inverse[groups][:, 0]
    moved = np.einsum("cj,cj->c", leaning, residual)
    if jackknife and groups.size:
        # Without the cluster: β₋ − β = −(A − A_c)⁻¹u_c, exactly. Where that is singular, A stays.
        left = _solve(whole.gram[groups] - own, residual)[0]
        moved = np.where(np.isfinite(left[:, 0]), left[:, 0], moved)
    width = int(clusters.max(initial=-1)) + 1
    influence = sparse.csr_array((moved, (groups, clusters)), shape=(count, width))
    # What each cluster's rows weigh in the value itself: these shares add up to 1.
    share = np.nan_to_num(np.einsum("cj,cj->c", leaning, weight[:, :k]))
    return {
        "moved": (influence @ influence.T).toarray(),
        "clusters": add_up((weight[:, 0] > 0).astype(np.float64), groups, count),
        "pairs": add_up(np.ones(groups.size), groups, count),
        "squares": add_up(share**2, groups, count),
    }


def products_fit(
    products: Mapping[str, FloatArray], *, whole: LocalTotals, jackknife: bool
) -> ClusterFit:
    """What `cluster_fit` gives, from `cluster_products` of all clusters."""
    size, squares = products["clusters"], products["squares"]
    factor = np.where(size > 1, size / np.where(size > 1, size - 1, 1.0), np.nan)
    if jackknife:
        factor = 1 / factor
    covariance = products["moved"] * np.sqrt(np.outer(factor, factor))
    unknown = np.isnan(np.diag(covariance)) | (products["pairs"] == 0)
    covariance[unknown], covariance[:, unknown] = np.nan, np.nan
    return ClusterFit(
        value=whole.coefficients[:, 0],
        covariance=covariance,
        clusters=size,
        effective=np.divide(1.0, squares, out=np.zeros(size.shape), where=squares > 0),
    )
