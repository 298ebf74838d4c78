"""How class scores go along with a norm inside class × group cells, and how much to take away."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import softmax

from evenhand.errors import UsageError, nearest
from evenhand.mitigation.cells import Cells
from evenhand.stats.estimate import FloatArray

# Variance of a slope that its class has too few rows to estimate: it then follows the line.
UNKNOWN = 1e6
STEPS = 200
FEWEST_ROWS = 3  # for a rank correlation
Reach = Literal["everybody", "likely"]
REACHES: tuple[Reach, ...] = ("everybody", "likely")


@dataclass(frozen=True, slots=True, kw_only=True)
class NormSlopes:
    """Within-cell slope of each class score on the norm, as estimated and shrunk to a line.

    `raw` b_c with variance `variance`; `line` (a₀, a₁) in the norm group's share `shares`;
    `spread` t², the variance of true slopes around the line; `shrunk` β_c; `centre` the norm at
    which a class's score stays as it is; `reach` whose scores the slopes are for.
    """

    raw: FloatArray
    variance: FloatArray
    shares: FloatArray
    line: tuple[float, float]
    spread: float
    shrunk: FloatArray
    centre: FloatArray
    reach: Reach = "everybody"


def norm_slopes(
    logits: FloatArray, *, norm: FloatArray, cells: Cells, focal: int, reach: Reach = "everybody"
) -> NormSlopes:
    """Slopes from cross-fitted logits (rows × classes) and norms; `focal` numbers the norm group.

    Both are centred inside every class × group cell and the cells of a class pooled, so a slope
    says what the norm does among people of one class and one group. With `reach` "likely" it is
    the slope on norm × probability of the class that leaves them no covariance with the norm.

    Examples:
        >>> from evenhand.mitigation.cells import cells_of
        >>> cells = cells_of(["a", "a", "b", "b"] * 3, group=["f"] * 6 + ["m"] * 6)
        >>> z = np.arange(12.0)
        >>> found = norm_slopes((0.5 * z + (z > 5))[:, None], norm=z, cells=cells, focal=0)
        >>> found.raw.round(6).tolist()
        [0.5]
    """
    # Of two classes there is one column, the second's, and all rows of both classes bear on it.
    columns = logits.shape[1]
    u = norm - _cell_means(norm, cells)
    centre = _centres(norm, cells, columns, reach)
    taken = _weights(logits, reach) * (norm[:, None] - centre)
    raw, variance = np.zeros(columns), np.full(columns, UNKNOWN)
    for c in range(columns):
        own = np.ones(u.size, dtype=bool) if columns == 1 else cells.truth == c
        v = logits[own, c] - _cell_means(logits[:, c], cells)[own]
        q = taken[own, c] - _cell_means(taken[:, c], cells)[own]
        product = float(u[own] @ q)
        if product <= 0:
            continue
        raw[c] = float(u[own] @ v) / product
        rest = v - raw[c] * q
        # One mean for each cell and the slope: 3 with two groups.
        spare = int(own.sum()) - np.unique(cells.index[own]).size - 1
        if spare > 1:
            square = float(u[own] @ u[own])
            variance[c] = max(float(rest @ rest) / spare * square / product**2, 1e-12)
    shares = _shares(cells, focal, columns)
    line, spread = _line(raw, variance, shares)
    fitted = line[0] + line[1] * shares
    keep = spread / (spread + variance) if columns > 2 else np.ones(columns)
    shrunk = fitted + keep * (raw - fitted) if columns > 2 else raw.copy()
    return NormSlopes(
        raw=raw,
        variance=variance,
        shares=shares,
        line=line,
        spread=spread,
        shrunk=shrunk,
        centre=centre,
        reach=reach,
    )


def checked_reach(reach: Any) -> Reach:
    """The reach as given, refused where it is none."""
    if reach not in REACHES:
        raise UsageError(
            f"reach={reach!r} is not one of {', '.join(REACHES)}."
            + nearest(str(reach), list(REACHES))
        )
    return reach  # type: ignore[no-any-return]


def _weights(logits: FloatArray, reach: Reach) -> FloatArray:
    """How far a class's correction reaches each row: fully, or as the row is likely of it."""
    if reach == "everybody" or logits.shape[1] == 1:
        return np.ones((1, logits.shape[1]))
    return np.asarray(softmax(logits, axis=1))


def _centres(norm: FloatArray, cells: Cells, columns: int, reach: Reach) -> FloatArray:
    """The mean norm of all rows, or for each class that of its own people, groups alike."""
    if reach == "everybody" or columns == 1:
        return np.full(columns, norm.mean())
    total = np.bincount(cells.index, norm, minlength=cells.counts.size).reshape(cells.counts.shape)
    there = cells.counts > 0
    means = np.divide(total, cells.counts, out=np.zeros(total.shape), where=there)
    return np.asarray(means.sum(axis=1) / np.maximum(there.sum(axis=1), 1))


def _cell_means(values: FloatArray, cells: Cells) -> FloatArray:
    size = cells.counts.size
    total = np.bincount(cells.index, values, minlength=size)
    return np.asarray((total / np.maximum(cells.counts.ravel(), 1))[cells.index])


def _shares(cells: Cells, focal: int, columns: int) -> FloatArray:
    rows = cells.counts.sum(axis=1)
    # A class that some of the folds lack stands at the share of all rows.
    share = np.full(rows.size, cells.counts[:, focal].sum() / rows.sum())
    np.divide(cells.counts[:, focal], rows, out=share, where=rows > 0)
    return np.asarray(share[1:] if columns == 1 else share)


def _line(raw: FloatArray, variance: FloatArray, shares: FloatArray) -> tuple[Any, float]:
    """Weighted line through the slopes, with the variance around it by iteration."""
    count = raw.size
    if count < 3:
        return (float(raw.mean()), 0.0), 0.0
    design = np.column_stack([np.ones(count), shares])
    spread = 0.0
    for _ in range(STEPS):
        w = 1 / (variance + spread)
        root = np.sqrt(w)
        fit = np.linalg.lstsq(design * root[:, None], raw * root, rcond=None)[0]
        rest = raw - design @ fit
        excess = float(w**2 @ (rest**2 - variance)) / float(w @ w)
        new = max(0.0, excess) * count / (count - 2)
        done = abs(new - spread) <= 1e-10 * (1e-6 + spread)
        spread = new
        if done:
            break
    return (float(fit[0]), float(fit[1])), spread


@dataclass(frozen=True, slots=True, kw_only=True)
class NormTrend:
    """Rank correlations of scores with the norm by class × group, and their slope on shares."""

    correlations: FloatArray
    slopes: FloatArray
    mean_absolute: FloatArray
    spread: float

    @property
    def size(self) -> float:
        """Norm bias in one number: mean |r_c| and |slope| × spread of the shares, over groups."""
        known = self.mean_absolute[np.isfinite(self.mean_absolute)]
        if not known.size:
            return float("nan")
        sloped = np.abs(self.slopes[np.isfinite(self.slopes)])
        return float(known.mean() + (sloped.mean() * self.spread if sloped.size else 0.0))

    @property
    def slope(self) -> float:
        """Mean over the groups of the slope of r_c on the norm group's share."""
        known = self.slopes[np.isfinite(self.slopes)]
        return float(known.mean()) if known.size else float("nan")


def norm_trend(logits: FloatArray, *, norm: FloatArray, cells: Cells, focal: int) -> NormTrend:
    """r_c of each group and the least-squares slope of r_c on p_c, NaN with under three classes."""
    columns = logits.shape[1]
    shape = (columns, len(cells.groups))
    rows = np.flatnonzero(cells.truth == 1) if columns == 1 else np.arange(norm.size)
    column = np.zeros(rows.size, dtype=np.intp) if columns == 1 else cells.truth
    r = _correlations(
        logits[rows, column], norm[rows], column * shape[1] + cells.group[rows], columns * shape[1]
    ).reshape(shape)
    shares = _shares(cells, focal, columns)
    slopes, size = np.full(shape[1], np.nan), np.full(shape[1], np.nan)
    for g in range(shape[1]):
        known = np.isfinite(r[:, g])
        if known.any():
            size[g] = np.abs(r[known, g]).mean()
        if known.sum() > 2 and np.ptp(shares[known]) > 0:
            slopes[g] = np.polyfit(shares[known], r[known, g], 1)[0]
    return NormTrend(
        correlations=r, slopes=slopes, mean_absolute=size, spread=float(np.std(shares))
    )


def _correlations(score: FloatArray, norm: FloatArray, cell: Any, size: int) -> FloatArray:
    """Spearman's r of score and norm inside each cell, NaN for a few rows or constant ones."""
    rows = np.bincount(cell, minlength=size)
    a, b = _cell_ranks(score, cell, rows), _cell_ranks(norm, cell, rows)
    product, one, other = (
        np.bincount(cell, each, minlength=size) for each in (a * b, a * a, b * b)
    )
    known = (rows >= FEWEST_ROWS) & (one > 0) & (other > 0)
    r = np.full(size, np.nan)
    np.divide(product, np.sqrt(one * other), out=r, where=known)
    return r


def _cell_ranks(values: FloatArray, cell: Any, rows: Any) -> FloatArray:
    """Ranks inside cells, ties at their mean, less the mean rank of the cell."""
    order = np.lexsort((values, cell))
    v, c = values[order], cell[order]
    first = np.ones(v.size, dtype=bool)
    first[1:] = (v[1:] != v[:-1]) | (c[1:] != c[:-1])
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], v.size)
    middle = ((starts + ends - 1) / 2)[np.cumsum(first) - 1]
    begin = np.cumsum(rows) - rows
    ranks = np.empty(v.size)
    ranks[order] = middle - begin[c] - (rows[c] - 1) / 2
    return ranks


def residual(logits: FloatArray, *, norm: FloatArray, slopes: NormSlopes, strength: float) -> Any:
    """Logits less `strength` times what the norm's slopes explain of them."""
    taken = _weights(logits, slopes.reach) * (norm[:, None] - slopes.centre)
    return logits - strength * slopes.shrunk * taken


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthStep:
    """What one strength gives on cross-fitted scores: accuracy, slope by group and mean |r_c|.

    `bias` is norm bias in one number, by which strengths are compared (`NormTrend.size`).
    """

    strength: float
    accuracy: float
    slopes: tuple[float, ...]
    mean_absolute: tuple[float, ...]
    bias: float

    @property
    def slope(self) -> float:
        """Mean of the groups' slopes."""
        known = [each for each in self.slopes if np.isfinite(each)]
        return float(np.mean(known)) if known else float("nan")


def strength_step(
    strength: float, logits: FloatArray, *, norm: FloatArray, cells: Cells, focal: int
) -> StrengthStep:
    """What a strength has given: its logits of rows that neither model nor slopes have seen."""
    trend = norm_trend(logits, norm=norm, cells=cells, focal=focal)
    return StrengthStep(
        strength=strength,
        accuracy=accuracy_of(logits, cells),
        slopes=tuple(trend.slopes.tolist()),
        mean_absolute=tuple(trend.mean_absolute.tolist()),
        bias=trend.size,
    )


def mean_step(steps: Sequence[StrengthStep]) -> StrengthStep:
    """The same strength on several sets of rows, in the mean of those that tell."""

    def mean(*values: float) -> float:
        known = [each for each in values if np.isfinite(each)]
        return float(np.mean(known)) if known else float("nan")

    return StrengthStep(
        strength=steps[0].strength,
        accuracy=mean(*(each.accuracy for each in steps)),
        slopes=tuple(map(mean, *(each.slopes for each in steps))),
        mean_absolute=tuple(map(mean, *(each.mean_absolute for each in steps))),
        bias=mean(*(each.bias for each in steps)),
    )


def accuracy_of(logits: FloatArray, cells: Cells) -> float:
    """Share of rows whose largest logit is their own class's."""
    chosen = (logits[:, 0] > 0).astype(int) if logits.shape[1] == 1 else logits.argmax(axis=1)
    return float((chosen == cells.truth).mean())


def pick_strength(steps: list[StrengthStep], *, budget: float) -> tuple[float, str]:
    """The strength of least norm bias within the accuracy budget, and what stopped it there.

    `steps` go from strength 0 upwards; one that breaks the budget ends the search. More strength
    is not better as such: past the least bias it reverses what is left, or adds a slope where
    the classes lean against it.
    """
    if not 0 <= budget <= 1:
        raise UsageError(
            f"budget={budget} is not a share of accuracy between 0 and 1, such as 0.01."
        )
    first = best = last = steps[0]
    why = "the largest strength tried"
    for step in steps[1:]:
        if first.accuracy - step.accuracy > budget:
            why = f"the accuracy budget of {budget:g}"
            break
        last = step
        if step.bias < best.bias:
            best = step
    if best is not last:
        why = "norm bias, which more would not lower"
    return best.strength, why
