"""The data matrix of a linear model: sparse or dense, centred without being filled, on threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Matrix = Any  # a NumPy array or a SciPy CSR matrix of floats


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
        return list(self._pool.map(work, runs(length, size)))

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


def runs(length: int, size: int) -> list[slice]:
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
