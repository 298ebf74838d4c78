"""Train, validation and test rows within each class and group, always the same for a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import UsageError

_FEWEST = 3  # a smaller cell has no training row left


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSplit:
    """Row numbers of the three parts, and a hash that tells two splits apart.

    `small_cells` names the cells (class, group) of fewer than three rows, which have no
    training row.
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]
    hash: str
    small_cells: tuple[tuple[Any, Any], ...]

    def labels(self) -> list[str]:
        """The part of every row: "train", "validation" or "test"."""
        out = np.empty(len(self.train) + len(self.validation) + len(self.test), dtype=object)
        for name in ("train", "validation", "test"):
            out[getattr(self, name)] = name
        return out.tolist()


def cell_sizes(n: int, *, validation: float = 0.10, test: float = 0.25) -> tuple[int, int, int]:
    """Rows of a cell for training, validation and test; both held-out parts are rounded up.

    Examples:
        >>> cell_sizes(7), cell_sizes(20), cell_sizes(2)
        ((4, 1, 2), (13, 2, 5), (0, 1, 1))
    """
    # As fractions: in floating point 0.1/0.75 of 75 rows is a little over 10.
    share_test = Fraction(str(test))
    share = Fraction(str(validation)) / (1 - share_test)
    for_test = ceil(n * share_test)
    for_validation = min(n - for_test, ceil((n - for_test) * share))
    return n - for_test - for_validation, for_validation, for_test


def split(
    truth: Sequence[Any],
    *,
    group: Sequence[Any],
    validation: float = 0.10,
    test: float = 0.25,
    seed: int = 0,
) -> DatasetSplit:
    """A split of the rows within every cell of class and group, 65/10/25 unless told otherwise.

    Examples:
        >>> parts = split(["a"] * 20, group=["f"] * 20)
        >>> len(parts.train), len(parts.validation), len(parts.test)
        (13, 2, 5)
    """
    if len(truth) != len(group):
        raise UsageError(f"group has {len(group)} values for {len(truth)} rows of truth.")
    if not (0 < validation < 1 and 0 < test < 1 and validation + test < 1):
        raise UsageError(
            f"validation={validation} and test={test} leave nothing to train on. "
            "Give two shares above 0 that add up to less than 1."
        )
    cells: dict[tuple[Any, Any], list[int]] = {}
    for row, cell in enumerate(zip(truth, group)):
        cells.setdefault(cell, []).append(row)
    generator = np.random.default_rng(seed)
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for cell in sorted(cells, key=lambda cell: (str(cell[0]), str(cell[1]))):
        order = generator.permutation(cells[cell]).tolist()
        sizes = cell_sizes(len(order), validation=validation, test=test)
        at = 0
        for part, size in zip(parts, sizes):
            part += order[at : at + size]
            at += size
    train, valid, held = (np.sort(np.array(part, dtype=np.int64)) for part in parts)
    digest = sha256(b"|".join(part.astype("<i8").tobytes() for part in (train, valid, held)))
    return DatasetSplit(
        train=train,
        validation=valid,
        test=held,
        hash=digest.hexdigest()[:16],
        small_cells=tuple(cell for cell, rows in cells.items() if len(rows) < _FEWEST),
    )
