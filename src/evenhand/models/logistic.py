"""Ridge logistic regression of many classes at once by L-BFGS: each step is one pass for all.

Per class (one-versus-rest) or jointly (multinomial), minimises
Σ_i c_i·loss_i + penalty/2·|w|² with free intercepts.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Matrix = Any  # a NumPy array or a SciPy CSR matrix of floats
SUFFICIENT = 1e-4
TRIES = 25


@dataclass(slots=True)
class Design:
    """Rows × features with the products a linear model needs, for all classes in one pass.

    With an intercept, features are centred at their weighted mean inside the products, never in
    memory: the intercept is then all but independent of the weights, and an optimiser that knows
    only the diagonal needs several times fewer passes on word counts.
    """

    rows: int
    width: int
    mean: NDArray[Any]
    squares: NDArray[Any]
    intercept: bool
    dtype: Any
    _forward: list[tuple[slice, Matrix]]
    _backward: list[tuple[slice, Matrix]]
    _pool: ThreadPoolExecutor

    @classmethod
    def of(
        cls,
        matrix: Matrix,
        *,
        weights: NDArray[Any],
        intercept: bool,
        pool: ThreadPoolExecutor,
        parts: int,
    ) -> "Design":
        """The design of a matrix with row weights; float32 stays float32, else float64."""
        dtype = np.dtype(np.float32 if matrix.dtype == np.float32 else np.float64)
        rows, width = matrix.shape
        c = weights.astype(dtype)
        total = float(weights.sum())
        filled = not sparse.issparse(matrix)
        if not filled:
            matrix = sparse.csr_matrix(matrix, dtype=dtype)
            transposed = matrix.T.tocsr()
            mean = (transposed @ c) / total
            squares = transposed.multiply(transposed).tocsr() @ c - total * mean * mean
            forward, backward = row_blocks(matrix, parts), row_blocks(transposed, parts)
        else:
            matrix = np.ascontiguousarray(matrix, dtype=dtype)
            mean = (c @ matrix) / total
            squares = c @ (matrix - mean) ** 2
            forward = [(slice(0, rows), matrix)]
            backward = [(slice(0, width), matrix.T)]
        if not intercept:
            squares = squares + total * mean * mean
            mean = np.zeros_like(mean)
        mean, squares = mean.astype(dtype), np.maximum(squares, 0).astype(dtype)
        return cls(rows, width, mean, squares, intercept, dtype, forward, backward, pool)

    def times(self, parameters: NDArray[Any]) -> NDArray[Any]:
        """Rows × classes: centred features times weights, plus intercepts (the last column)."""
        turned = np.empty((self.width, len(parameters)), dtype=self.dtype)

        def turn(block: slice) -> None:
            turned[block] = parameters[:, : self.width][:, block].T

        self.each_block(turn, length=self.width, columns=len(parameters))
        product = np.empty((self.rows, len(parameters)), dtype=self.dtype)
        level = parameters[:, self.width] - self.mean @ turned if self.intercept else 0

        def work(part: tuple[slice, Matrix]) -> None:
            place, block = part
            product[place] = block @ turned
            product[place] += level

        list(self._pool.map(work, self._forward))
        return product

    def gradient(self, residuals: NDArray[Any]) -> NDArray[Any]:
        """Classes × parameters: the transposed product, intercepts last."""
        result = np.empty((residuals.shape[1], self.width + self.intercept), dtype=self.dtype)
        sums = residuals.sum(axis=0, dtype=np.float64).astype(self.dtype)
        if self.intercept:
            result[:, self.width] = sums

        def work(part: tuple[slice, Matrix]) -> None:
            place, block = part
            product = block @ residuals
            if self.intercept:
                product -= self.mean[place, None] * sums
            result[:, place] = product.T

        list(self._pool.map(work, self._backward))
        return result

    def curvature(self, bends: NDArray[Any]) -> NDArray[Any]:
        """Classes × parameters: Σ bend·(feature - mean)², the diagonal of the loss's Hessian."""
        result = np.empty((bends.shape[1], self.width + self.intercept), dtype=self.dtype)
        sums = bends.sum(axis=0, dtype=np.float64).astype(self.dtype)
        result[:, self.width :] = sums[:, None]

        def work(part: tuple[slice, Matrix]) -> None:
            place, block = part
            product = squared(block) @ bends
            if self.intercept:
                mean = self.mean[place, None]
                product -= 2 * mean * (block @ bends) - mean * mean * sums
            result[:, place] = np.maximum(product, 0).T

        list(self._pool.map(work, self._backward))
        return result

    def each_block(self, work: Callable[[slice], Any], *, length: int, columns: int) -> list[Any]:
        """What `work` gives for each run of `length` that is small enough to stay in cache."""
        size = max(1, 65_536 // max(1, columns))
        return list(self._pool.map(work, row_slices(length, size)))

    def each(self, work: Callable[[int], Any], *, count: int) -> list[Any]:
        """What `work` gives for each of `count` independent problems."""
        return list(self._pool.map(work, range(count)))


def squared(block: Matrix) -> Matrix:
    """Each entry times itself; a sparse block shares its pattern with the result."""
    filled = not sparse.issparse(block)
    if filled:
        return block * block
    arrays = (block.data * block.data, block.indices, block.indptr)
    return sparse.csr_matrix(arrays, shape=block.shape, copy=False)


def thread_count(threads: int | None) -> int:
    """Threads to use: those asked for, else one a core, at most eight."""
    return threads or min(8, os.cpu_count() or 1)


def row_slices(length: int, size: int) -> list[slice]:
    """Runs of at most `size` that together make up `length`."""
    return [slice(start, min(length, start + size)) for start in range(0, length, size)]


def row_blocks(matrix: sparse.csr_matrix, count: int) -> list[tuple[slice, sparse.csr_matrix]]:
    """The matrix cut by rows into `count` blocks of like content."""
    targets = np.linspace(0, matrix.nnz, count + 1)[1:-1]
    cuts = [0, *np.searchsorted(matrix.indptr, targets).tolist(), matrix.shape[0]]
    blocks = []
    for first, last in pairwise(cuts):
        start, stop = matrix.indptr[first], matrix.indptr[last]
        arrays = (
            matrix.data[start:stop],
            matrix.indices[start:stop],
            matrix.indptr[first : last + 1] - start,
        )
        # Views, not slices of the matrix: the content is never copied.
        shape = (last - first, matrix.shape[1])
        block = sparse.csr_matrix(arrays, shape=shape, copy=False)
        blocks.append((slice(first, last), block))
    return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticFit:
    """Weights (classes × features) and intercepts, with the objective that each problem reached."""

    weights: NDArray[Any]
    intercepts: NDArray[Any]
    objective: NDArray[np.float64]
    iterations: int
    converged: NDArray[np.bool_]


@dataclass(slots=True)
class Memory:
    """The last steps and gradient changes of one problem, and the direction they suggest."""

    size: int
    steps: list[NDArray[Any]] = field(default_factory=list)
    changes: list[NDArray[Any]] = field(default_factory=list)
    products: list[float] = field(default_factory=list)

    def add(self, step: NDArray[Any], change: NDArray[Any]) -> None:
        """Remember a step, unless rounding has eaten its curvature."""
        product = dot(step, change)
        if product <= 1e-10 * np.sqrt(dot(step, step) * dot(change, change)):
            return
        self.steps.append(step)
        self.changes.append(change)
        self.products.append(product)
        if len(self.steps) > self.size:
            del self.steps[0], self.changes[0], self.products[0]

    def direction(self, gradient: NDArray[Any], inverse: NDArray[Any]) -> NDArray[Any]:
        """Minus the gradient, turned by the remembered curvature around a diagonal guess."""
        q = gradient.copy()
        shares = []
        past = list(zip(self.steps, self.changes, self.products, strict=True))
        for step, change, product in reversed(past):
            share = dot(step, q) / product
            q -= q.dtype.type(share) * change
            shares.append(share)
        q *= inverse
        if past:
            _, change, product = past[-1]
            q *= q.dtype.type(product / dot(change, inverse * change))
        for (step, change, product), share in zip(past, reversed(shares), strict=True):
            q += q.dtype.type(share - dot(change, q) / product) * step
        return -q


def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Inner product outside BLAS, whose own threads would fight with ours."""
    return float(np.einsum("i,i->", a, b))


@dataclass(slots=True)
class Loss:
    """Log-loss of every row and class, with its residuals, one block of rows at a time.

    `labels` gives each row's column, or -1 for none. `sides`, two rows of factors for the rest and
    for the class itself, balances one-versus-rest problems.
    """

    labels: NDArray[np.intp]
    weights: NDArray[Any]
    multinomial: bool
    sides: NDArray[Any] | None

    def of(
        self, logits: NDArray[Any], block: slice, columns: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Summed loss of each problem, and residuals (weighted probability minus truth)."""
        own, column = self._truth(block, columns)
        c = self._factors(block, columns, own, column)
        if self.multinomial:
            top = logits.max(axis=1, keepdims=True)
            powers = np.exp(logits - top)
            total = powers.sum(axis=1, keepdims=True)
            residuals = c * (powers / total)
            residuals[own, column] -= c[own, 0]
            losses = (c * (np.log(total) + top))[:, 0]
            losses[own] -= c[own, 0] * logits[own, column]
            return np.array([losses.sum(dtype=np.float64)]), residuals
        powers = np.exp(-np.abs(logits))
        probability = np.where(logits >= 0, 1, powers) / (1 + powers)
        losses = np.log1p(powers)
        own_loss = losses[own, column] + np.maximum(-logits[own, column], 0)
        losses += np.maximum(logits, 0)
        losses[own, column] = own_loss
        probability[own, column] -= 1
        return (losses * c).sum(axis=0, dtype=np.float64), probability * c

    def bends(self, logits: NDArray[Any], block: slice, columns: NDArray[np.intp]) -> NDArray[Any]:
        """Second derivative of every row's loss by each of its logits."""
        c = self._factors(block, columns, *self._truth(block, columns))
        if self.multinomial:
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            probability = powers / powers.sum(axis=1, keepdims=True)
            return np.asarray(c * probability * (1 - probability))
        powers = np.exp(-np.abs(logits))
        return np.asarray(c * powers / (1 + powers) ** 2)

    def _truth(
        self, block: slice, columns: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of the block whose class is among the columns, and which column that is."""
        labels = self.labels[block]
        place = np.full(int(labels.max(initial=-1)) + 2, -1)
        inside = columns < place.size - 1
        place[columns[inside]] = np.flatnonzero(inside)
        column = place[labels]
        own = np.flatnonzero(column >= 0)
        return own, column[own]

    def _factors(
        self,
        block: slice,
        columns: NDArray[np.intp],
        own: NDArray[np.intp],
        column: NDArray[np.intp],
    ) -> NDArray[Any]:
        """Weight of each row, or of each row and column where the sides are balanced."""
        c: NDArray[Any] = self.weights[block, None]
        if self.sides is None:
            return c
        factor = np.tile(self.sides[0, columns], (len(c), 1))
        factor[own, column] = self.sides[1, columns[column]]
        return np.asarray(c * factor)


def fit_logistic(
    matrix: Matrix,
    labels: NDArray[np.intp],
    *,
    classes: int,
    multinomial: bool = False,
    penalty: float = 1.0,
    weights: NDArray[Any] | None = None,
    sides: NDArray[Any] | None = None,
    intercept: bool = True,
    start: tuple[NDArray[Any], NDArray[Any]] | None = None,
    tolerance: float = 1e-5,
    max_iterations: int = 500,
    memory: int = 8,
    threads: int | None = None,
) -> LogisticFit:
    """Weights of all classes, fitted together; classes that have settled leave the passes.

    A problem has settled when half the squared gradient in the metric of the diagonal, an estimate
    of what is left to gain, is below `tolerance` times its objective.

    Examples:
        >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
        >>> fit = fit_logistic(rows, np.array([0, 0, 1, 1]), classes=2)
        >>> fit.weights.round(2).tolist(), bool(fit.converged.all())
        ([[-0.96], [0.96]], True)
    """
    rows = matrix.shape[0]
    c = np.ones(rows) if weights is None else np.asarray(weights, dtype=np.float64)
    parts = thread_count(threads)
    # SciPy's and NumPy's inner loops leave Python's lock to others, so threads are enough.
    with ThreadPoolExecutor(parts) as pool:
        design = Design.of(matrix, weights=c, intercept=intercept, pool=pool, parts=parts)
        factors = None if sides is None else np.asarray(sides, dtype=design.dtype)
        loss = Loss(np.asarray(labels), c.astype(design.dtype), multinomial, factors)
        fit = Descent(design, loss, classes=classes, penalty=penalty, start=start, memory=memory)
        return fit.run(tolerance=tolerance, max_iterations=max_iterations)


class Descent:
    """All problems side by side: parameters, gradients and memories, one row for each problem."""

    def __init__(
        self,
        design: Design,
        loss: Loss,
        *,
        classes: int,
        penalty: float,
        start: tuple[NDArray[Any], NDArray[Any]] | None,
        memory: int,
    ) -> None:
        self.design, self.loss, self.classes, self.penalty = design, loss, classes, penalty
        self.each = classes if loss.multinomial else 1
        problems = classes // self.each
        share = class_shares(loss, classes)
        parameters = np.zeros((classes, design.width + design.intercept), dtype=design.dtype)
        if start is not None:
            parameters[:, : design.width] = start[0]
        if design.intercept:
            if start is None:
                level = np.log(share) if loss.multinomial else np.log(share / (1 - share))
            else:
                level = start[1] + parameters[:, : design.width] @ design.mean
            parameters[:, design.width] = level
        spread = share * (1 - share)
        inverse = np.empty_like(parameters)
        inverse[:, : design.width] = 1 / (spread[:, None] * design.squares + penalty)
        if design.intercept:
            inverse[:, design.width] = 1 / (spread * loss.weights.sum(dtype=np.float64))
        self.parameters = parameters.reshape(problems, -1)
        self.inverse = inverse.reshape(problems, -1)
        self.ridge = np.full_like(parameters, penalty)
        self.ridge[:, design.width :] = 0
        self.ridge = self.ridge.reshape(problems, -1)
        self.memories = [Memory(memory) for _ in range(problems)]
        self.objective = np.full(problems, np.inf)
        self.ridge_value = np.zeros(problems)
        self.converged = np.zeros(problems, dtype=bool)

    def run(self, *, tolerance: float, max_iterations: int) -> LogisticFit:
        """Descend until every problem has settled or the iterations are spent."""
        active = np.arange(len(self.memories))
        logits = self.design.times(self._columns(self.parameters))
        still = np.zeros(logits.shape[1], dtype=logits.dtype)
        value, logits, residuals = self._evaluate(logits, active, along=logits, scale=still)
        pull = self.ridge * self.parameters
        self.ridge_value = np.array([dot(a, b) for a, b in zip(pull, self.parameters)]) / 2
        self.objective = value + self.ridge_value
        gradient = self.design.gradient(residuals).reshape(active.size, -1) + pull
        done = 0
        while done < max_iterations:
            left = self._settle(active, gradient, tolerance)
            if left.any() and not left.all():
                # A settled class leaves the passes at once: its column costs as much as any other.
                columns = np.repeat(left, self.each)
                logits, gradient = np.ascontiguousarray(logits[:, columns]), gradient[left]
            active = active[left]
            if not active.size:
                break
            logits, gradient = self._step(active, logits, gradient)
            done += 1
            if done & (done + 1) == 0:
                # After 1, 3, 7, 15 … steps: fitted rows have lost most of their curvature, and
                # the guess from the class shares would keep frequent words from moving.
                self._renew(active, logits)
        else:
            self._settle(active, gradient, tolerance)
        table = self._columns(self.parameters)
        weights = table[:, : self.design.width].copy()
        intercepts = np.zeros(self.classes, dtype=table.dtype)
        if self.design.intercept:
            intercepts = table[:, self.design.width] - weights @ self.design.mean
        return LogisticFit(
            weights=weights,
            intercepts=intercepts,
            objective=self.objective,
            iterations=done,
            converged=self.converged,
        )

    def _columns(self, table: NDArray[Any]) -> NDArray[Any]:
        return table.reshape(-1, self.design.width + self.design.intercept)

    def _class_columns(self, active: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.arange(self.classes) if self.each > 1 else active

    def _evaluate(
        self,
        logits: NDArray[Any],
        active: NDArray[np.intp],
        *,
        along: NDArray[Any],
        scale: NDArray[Any],
    ) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        """Loss, logits and residuals of each problem, this far along its direction."""
        columns = self._class_columns(active)
        reached, residuals = np.empty_like(logits), np.empty_like(logits)

        def work(block: slice) -> NDArray[np.float64]:
            reached[block] = logits[block] + along[block] * scale
            value, residuals[block] = self.loss.of(reached[block], block, columns)
            return value

        values = self.design.each_block(work, length=self.design.rows, columns=logits.shape[1])
        return np.sum(values, axis=0), reached, residuals

    def _renew(self, active: NDArray[np.intp], logits: NDArray[Any]) -> None:
        """Take the diagonal guess of the inverse Hessian anew, at the present parameters."""
        columns = self._class_columns(active)
        bends = np.empty_like(logits)

        def work(block: slice) -> None:
            bends[block] = self.loss.bends(logits[block], block, columns)

        self.design.each_block(work, length=self.design.rows, columns=logits.shape[1])
        curvature = self.design.curvature(bends).reshape(active.size, -1)
        least = 1e-8 * float(self.loss.weights.sum(dtype=np.float64))
        for row, k in enumerate(active):
            # An intercept has no ridge to bound it where every row is fitted.
            floor = np.where(self.ridge[k] > 0, 0, least).astype(self.design.dtype)
            self.inverse[k] = 1 / np.maximum(curvature[row] + self.ridge[k], floor)

    def _settle(
        self, active: NDArray[np.intp], gradient: NDArray[Any], tolerance: float
    ) -> NDArray[np.bool_]:
        """Mark problems with nothing left to gain; true for those that go on."""
        left = [dot(g * self.inverse[k], g) / 2 for k, g in zip(active, gradient, strict=True)]
        settled = np.array(left) <= tolerance * self.objective[active]
        self.converged[active] |= settled
        return ~self.converged[active]

    def _step(
        self, active: NDArray[np.intp], logits: NDArray[Any], gradient: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """One step of every active problem, each with its own length; new logits and gradients."""

        direction = np.empty_like(gradient)

        def turn(row: int) -> tuple[float, float, float]:
            k = active[row]
            way = self.memories[k].direction(gradient[row], self.inverse[k])
            if dot(gradient[row], way) >= 0:
                # Rounding has spoilt the memory: begin again from the diagonal.
                self.memories[k] = Memory(self.memories[k].size)
                way = -gradient[row] * self.inverse[k]
            direction[row] = way
            pull = self.ridge[k] * way
            return dot(gradient[row], way), dot(pull, self.parameters[k]), dot(pull, way)

        slopes = np.array(self.design.each(turn, count=active.size)).T
        along = self.design.times(self._columns(direction))
        length, reached, residuals = self._search(active, logits, along, slopes)
        self.converged[active[length == 0]] = True
        change = self.design.gradient(residuals).reshape(active.size, -1)

        def learn(row: int) -> None:
            k = active[row]
            step = direction[row] * direction.dtype.type(length[row])
            self.parameters[k] += step
            change[row] += self.ridge[k] * self.parameters[k]
            self.memories[k].add(step, change[row] - gradient[row])

        self.design.each(learn, count=active.size)
        return reached, change

    def _search(
        self,
        active: NDArray[np.intp],
        logits: NDArray[Any],
        along: NDArray[Any],
        slopes: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        """Length of each problem's step, shortened until its objective falls far enough.

        The model is linear, so every trial reuses the one product along the direction.
        """
        fall, pull, bend = slopes
        before = self.objective[active]
        ridge = self.ridge_value[active]
        slack = 50 * np.finfo(self.design.dtype).eps * np.abs(before)
        length = np.ones(active.size)
        for trial in range(TRIES):
            scale = np.repeat(length, self.each).astype(self.design.dtype)
            value, reached, residuals = self._evaluate(logits, active, along=along, scale=scale)
            penalty = ridge + length * pull + length**2 * bend / 2
            short = value + penalty > before + SUFFICIENT * length * fall + slack
            if not short.any():
                break
            # Where nothing helps, rounding is all that is left: stay where it is.
            length = np.where(short, 0.0 if trial == TRIES - 2 else length * 0.4, length)
        self.objective[active], self.ridge_value[active] = value + penalty, penalty
        return length, reached, residuals


def class_shares(loss: Loss, classes: int) -> NDArray[np.float64]:
    """Weighted share of each class, kept off 0 and 1, where the logit has no value."""
    weights = loss.weights.astype(np.float64)
    own = loss.labels >= 0
    mass = np.bincount(loss.labels[own], weights=weights[own], minlength=classes)
    rest = weights.sum() - mass
    if loss.sides is not None:
        rest, mass = rest * loss.sides[0], mass * loss.sides[1]
    return np.asarray(np.clip(mass / (mass + rest), 1e-6, 1 - 1e-6), dtype=np.float64)
