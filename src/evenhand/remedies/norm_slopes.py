"""How class scores go along with a norm inside class × group cells, and how much to take away.

Slopes and trends are learnt from scores of rows that the models have not seen: `crossfit` makes
them, with a norm scorer fitted in the same folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, softmax

from evenhand.errors import DataError, UsageError
from evenhand.models.norms.fit import training_groups
from evenhand.remedies.cells import (
    Codes,
    TrainingCells,
    check_choice,
    place_of,
    row_count,
    several,
    take,
)
from evenhand.remedies.estimator import class_logits, fit_weighted, fresh
from evenhand.remedies.reweigh import within_class_weights
from evenhand.stats.estimate import FloatArray
from evenhand.stats.ranks import FEWEST_ROWS

# Variance of a slope that its class has too few rows to estimate: it then follows the line.
UNKNOWN = 1e6
STEPS = 200
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
    logits: FloatArray,
    *,
    norm: FloatArray,
    cells: TrainingCells,
    focal: int,
    reach: Reach = "everybody",
) -> NormSlopes:
    """Slopes from cross-fitted logits (rows × classes) and norms; `focal` numbers the norm group.

    Both are centred inside every class × group cell and the cells of a class pooled, so a slope
    says what the norm does among people of one class and one group. With `reach` "likely" it is
    the slope on norm × probability of the class that leaves them no covariance with the norm.

    Examples:
        >>> from evenhand.remedies.cells import training_cells
        >>> cells = training_cells(["a", "a", "b", "b"] * 3, group=["f"] * 6 + ["m"] * 6)
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
    check_choice("reach", reach, REACHES)
    return reach  # type: ignore[no-any-return]


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


def norm_trend(
    logits: FloatArray, *, norm: FloatArray, cells: TrainingCells, focal: int
) -> NormTrend:
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
    strength: float, logits: FloatArray, *, norm: FloatArray, cells: TrainingCells, focal: int
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


def accuracy_of(logits: FloatArray, cells: TrainingCells) -> float:
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


def fold_numbers(cells: TrainingCells, *, folds: int, seed: int, origin: Any = None) -> Codes:
    """Fold of each row, drawn within class × group so that every fold has its share of each.

    Rows with one `origin`, such as a text and its counterfactual copy, stay together: a model
    that has seen the copy has seen the row.

    Examples:
        >>> from evenhand.remedies.cells import training_cells
        >>> cells = training_cells(["a"] * 4 + ["b"] * 4, group=["f", "m"] * 4)
        >>> fold = fold_numbers(cells, folds=2, seed=0)
        >>> np.bincount(cells.index * 2 + fold).tolist()
        [1, 1, 1, 1, 1, 1, 1, 1]
    """
    if not 2 <= folds <= cells.truth.size:
        raise UsageError(
            f"folds={folds} is not between 2 and the {cells.truth.size} training rows."
        )
    small = cells.counts.sum(axis=1) < 2
    if small.any():
        named = several(np.array(cells.classes, dtype=object)[small])
        raise DataError(
            f"Only one training row of {named}: no fold without it could learn the class. "
            "Leave such classes out."
        )
    first, member = np.arange(cells.truth.size), np.arange(cells.truth.size)
    if origin is not None:
        _, first, member = np.unique(origin, return_index=True, return_inverse=True)
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(first.size), cells.group[first], cells.truth[first]))
    # Dealing the rows out in turn, cell after cell, evens out classes and cells at once.
    fold = np.empty(first.size, dtype=np.intp)
    fold[order] = np.arange(first.size) % folds
    return np.asarray(fold[member])


def original_rows(is_counterfactual: Any, *, rows: int) -> NDArray[np.bool_]:
    """Which rows are no counterfactual copies; all of them where nothing is said."""
    if is_counterfactual is None:
        return np.ones(rows, dtype=bool)
    copies = np.asarray(is_counterfactual, dtype=bool)
    if copies.shape != (rows,):
        raise UsageError(
            f"is_counterfactual has the shape {copies.shape} for {rows} rows. Give one a row."
        )
    if copies.all():
        raise DataError("All training rows are counterfactual copies. Give the originals as well.")
    return ~copies


@dataclass(frozen=True, slots=True)
class FittedNorm:
    """Norm logits of rows, by a fitted estimator of two classes or a callable."""

    model: Any

    def __call__(self, features: Any) -> FloatArray:
        rows = row_count(features)
        if hasattr(self.model, "predict_proba") or hasattr(self.model, "decision_function"):
            return checked_norm(norm_logits(self.model, features), rows=rows)
        return checked_norm(self.model(features), rows=rows)


@dataclass(frozen=True, slots=True)
class NormEstimator:
    """Logits of looking like a typical member of one group, from an estimator or a callable.

    An estimator is fitted to tell the group's rows from the others, with the weights α that even
    out the groups of each class (of more than two, small ones are left out); a callable gives
    logits as it stands and is never fitted.
    """

    scorer: Any
    norm_group: Any

    def fitted(self, features: Any, cells: TrainingCells, rows: Codes) -> FittedNorm:
        """What gives norm logits after learning from these rows."""
        if not hasattr(self.scorer, "fit") and self.scorer is not None:
            return FittedNorm(self.scorer)
        weights = within_class_weights(
            cells.truth[rows], group=cells.group[rows], groups=_learnt_from(cells)
        ).weights
        focal = cells.group[rows] == cells.groups.index(self.norm_group)
        return FittedNorm(fit_weighted(fresh(self.scorer), take(features, rows), focal, weights))


def norm_logits(model: Any, features: Any) -> FloatArray:
    """Logit of the norm by a fitted estimator of two classes."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(features), dtype=np.float64)
    share = np.asarray(model.predict_proba(features), dtype=np.float64)[:, 1]
    return np.asarray(logit(np.clip(share, 1e-12, 1 - 1e-12)))


def checked_norm(values: Any, *, rows: int) -> FloatArray:
    """Norm logits as an array, refused where they do not fit the rows."""
    norm = np.asarray(values, dtype=np.float64)
    if norm.shape != (rows,):
        raise UsageError(
            f"The norm has the shape {norm.shape} for {rows} rows. Give one logit for each row."
        )
    if not np.isfinite(norm).all():
        raise DataError(
            f"The norm is not finite in {int((~np.isfinite(norm)).sum())} of {rows} rows. "
            "Give logits, with probabilities kept off 0 and 1."
        )
    return norm


def chosen_group(norm_group: Any, cells: TrainingCells) -> Any:
    """The group whose norm is scored: as given, or the second of two."""
    if len(cells.groups) < 2:
        raise DataError(
            f"All training rows belong to the group {cells.groups[0]!r}. "
            "A norm needs rows of at least two groups."
        )
    if norm_group is None:
        if len(cells.groups) > 2:
            raise UsageError(
                f"There are {len(cells.groups)} groups ({several(cells.groups)}). "
                "Say with norm_group= whose norm is scored."
            )
        return cells.groups[1]
    place_of(norm_group, cells.groups, argument="norm_group")
    learnt = _learnt_from(cells)
    if learnt is not None and cells.groups.index(norm_group) not in learnt:
        raise DataError(
            f"The group {norm_group!r} is too small to learn a norm from: 200 rows, and 20 in at "
            "least five classes, are needed. Choose a larger group with norm_group=."
        )
    return norm_group


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossFitted:
    """Class logits and norm logits of the training rows, each from models that left them out.

    `logits` is None where only the norm was asked for.
    """

    norm: FloatArray
    logits: FloatArray | None


def crossfit(
    X: Any,
    y: Any,
    *,
    cells: TrainingCells,
    norm: NormEstimator,
    norm_features: Any,
    estimator: Any = None,
    classify: bool = True,
    weights: FloatArray | None = None,
    folds: int = 5,
    seed: int = 0,
    origin: Any = None,
    originals: NDArray[np.bool_] | None = None,
) -> CrossFitted:
    """Scores of every row by classifier and norm scorer fitted on the other folds.

    Only `originals` train the norm scorer: a text and its counterfactual copy look alike to it.
    """
    truth = np.asarray(y)
    fold = fold_numbers(cells, folds=folds, seed=seed, origin=origin)
    norms = np.empty(truth.size)
    columns = 1 if len(cells.classes) == 2 else len(cells.classes)
    logits = np.empty((truth.size, columns)) if classify else None
    for number in range(folds):
        inside, outside = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        learnt = outside if originals is None else outside[originals[outside]]
        norms[inside] = norm.fitted(norm_features, cells, learnt)(take(norm_features, inside))
        if logits is None:
            continue
        given = None if weights is None else weights[outside]
        model = fit_weighted(fresh(estimator), take(X, outside), truth[outside], given)
        logits[inside] = _all_columns(model, take(X, inside), classes=np.unique(truth))
    return CrossFitted(norm=norms, logits=logits)


def _weights(logits: FloatArray, reach: Reach) -> FloatArray:
    """How far a class's correction reaches each row: fully, or as the row is likely of it."""
    if reach == "everybody" or logits.shape[1] == 1:
        return np.ones((1, logits.shape[1]))
    return np.asarray(softmax(logits, axis=1))


def _centres(norm: FloatArray, cells: TrainingCells, columns: int, reach: Reach) -> FloatArray:
    """The mean norm of all rows, or for each class that of its own people, groups alike."""
    if reach == "everybody" or columns == 1:
        return np.full(columns, norm.mean())
    total = np.bincount(cells.index, norm, minlength=cells.counts.size).reshape(cells.counts.shape)
    there = cells.counts > 0
    means = np.divide(total, cells.counts, out=np.zeros(total.shape), where=there)
    return np.asarray(means.sum(axis=1) / np.maximum(there.sum(axis=1), 1))


def _cell_means(values: FloatArray, cells: TrainingCells) -> FloatArray:
    size = cells.counts.size
    total = np.bincount(cells.index, values, minlength=size)
    return np.asarray((total / np.maximum(cells.counts.ravel(), 1))[cells.index])


def _shares(cells: TrainingCells, focal: int, columns: int) -> FloatArray:
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


def _learnt_from(cells: TrainingCells) -> list[int] | None:
    """Codes of the groups that train a norm scorer: of more than two, those large enough."""
    if len(cells.groups) < 3:
        return None
    truth = [str(code) for code in cells.truth.tolist()]
    try:
        found = training_groups(truth, [str(code) for code in cells.group.tolist()])
    except DataError:
        return None
    return [int(code) for code in found]


def _all_columns(model: Any, X: Any, *, classes: NDArray[Any]) -> FloatArray:
    """Logits in the order of all classes; one that the fold lacked has the lowest there is."""
    found = class_logits(model, X)
    if len(model.classes_) == classes.size:
        return found
    if found.shape[1] == 1:
        found = np.column_stack([-found, found])
    table = np.full((found.shape[0], classes.size), found.min())
    table[:, np.searchsorted(classes, model.classes_)] = found
    return table
