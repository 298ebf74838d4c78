"""How class scores go along with a norm inside class × group cells, and how much to take away."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import UsageError
from evenhand.mitigation.cells import Cells
from evenhand.stats.estimate import FloatArray
from evenhand.stats.ranks import spearman

# Variance of a slope that its class has too few rows to estimate: it then follows the line.
UNKNOWN = 1e6
STEPS = 200
FEWEST_ROWS = 3  # for a rank correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class NormSlopes:
    """Within-cell slope of each class score on the norm, as estimated and shrunk to a line.

    `raw` b_c with variance `variance`; `line` (a₀, a₁) in the norm group's share `shares`;
    `spread` t², the variance of true slopes around the line; `shrunk` β_c; `centre` the mean of
    the norm over the fitting rows.
    """

    raw: FloatArray
    variance: FloatArray
    shares: FloatArray
    line: tuple[float, float]
    spread: float
    shrunk: FloatArray
    centre: float


def norm_slopes(logits: FloatArray, *, norm: FloatArray, cells: Cells, focal: int) -> NormSlopes:
    """Slopes from cross-fitted logits (rows × classes) and norms; `focal` numbers the norm group.

    Both are centred inside every class × group cell and the cells of a class pooled, so a slope
    says what the norm does among people of one class and one group.

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
    raw, variance = np.zeros(columns), np.full(columns, UNKNOWN)
    for c in range(columns):
        own = np.ones(u.size, dtype=bool) if columns == 1 else cells.truth == c
        v = logits[own, c] - _cell_means(logits[:, c], cells)[own]
        square = float(u[own] @ u[own])
        if square <= 0:
            continue
        raw[c] = float(u[own] @ v) / square
        rest = v - raw[c] * u[own]
        # One mean for each cell and the slope: 3 with two groups.
        spare = int(own.sum()) - np.unique(cells.index[own]).size - 1
        if spare > 1:
            variance[c] = max(float(rest @ rest) / spare / square, 1e-12)
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
        centre=float(norm.mean()),
    )


def _cell_means(values: FloatArray, cells: Cells) -> FloatArray:
    size = cells.counts.size
    total = np.bincount(cells.index, values, minlength=size)
    return np.asarray((total / np.maximum(cells.counts.ravel(), 1))[cells.index])


def _shares(cells: Cells, focal: int, columns: int) -> FloatArray:
    share = cells.counts[:, focal] / cells.counts.sum(axis=1)
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

    @property
    def slope(self) -> float:
        """Mean over the groups of the slope of r_c on the norm group's share."""
        known = self.slopes[np.isfinite(self.slopes)]
        return float(known.mean()) if known.size else float("nan")


def norm_trend(logits: FloatArray, *, norm: FloatArray, cells: Cells, focal: int) -> NormTrend:
    """r_c of each group and the least-squares slope of r_c on p_c, NaN with under three classes."""
    columns = logits.shape[1]
    shape = (columns, len(cells.groups))
    r = np.full(shape, np.nan)
    for c in range(columns):
        title = 1 if columns == 1 else c
        for g in range(shape[1]):
            own = (cells.truth == title) & (cells.group == g)
            if own.sum() >= FEWEST_ROWS:
                r[c, g] = float(spearman(logits[own, c], norm[own]))
    shares = _shares(cells, focal, columns)
    slopes, size = np.full(shape[1], np.nan), np.full(shape[1], np.nan)
    for g in range(shape[1]):
        known = np.isfinite(r[:, g])
        if known.any():
            size[g] = np.abs(r[known, g]).mean()
        if known.sum() > 2 and np.ptp(shares[known]) > 0:
            slopes[g] = np.polyfit(shares[known], r[known, g], 1)[0]
    return NormTrend(correlations=r, slopes=slopes, mean_absolute=size)


def residual(logits: FloatArray, *, norm: FloatArray, slopes: NormSlopes, strength: float) -> Any:
    """Logits less `strength` times what the norm's slopes explain of them."""
    return logits - strength * np.outer(norm - slopes.centre, slopes.shrunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthStep:
    """What one strength gives on cross-fitted scores: accuracy, slope by group and mean |r_c|."""

    strength: float
    accuracy: float
    slopes: tuple[float, ...]
    mean_absolute: tuple[float, ...]

    @property
    def slope(self) -> float:
        """Mean of the groups' slopes."""
        known = [each for each in self.slopes if np.isfinite(each)]
        return float(np.mean(known)) if known else float("nan")


def accuracy_of(logits: FloatArray, cells: Cells) -> float:
    """Share of rows whose largest logit is their own class's."""
    chosen = (logits[:, 0] > 0).astype(int) if logits.shape[1] == 1 else logits.argmax(axis=1)
    return float((chosen == cells.truth).mean())


def pick_strength(steps: list[StrengthStep], *, budget: float) -> tuple[float, str]:
    """The largest strength within the budget before the slope passes 0, and what stopped it.

    `steps` go from strength 0 upwards.
    """
    if not 0 <= budget <= 1:
        raise UsageError(
            f"budget={budget} is not a share of accuracy between 0 and 1, such as 0.01."
        )
    first = steps[0]
    chosen, why = first.strength, "the largest strength tried"
    for step in steps[1:]:
        if first.accuracy - step.accuracy > budget:
            return chosen, f"the accuracy budget of {budget:g}"
        if np.isfinite(first.slope) and step.slope * np.sign(first.slope) < 0:
            return chosen, "the slope, which would pass 0"
        chosen = step.strength
    return chosen, why
