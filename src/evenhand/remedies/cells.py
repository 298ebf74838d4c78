"""Training rows by class and group: what every remedy counts, weighs, draws or splits.

Nothing here needs scikit-learn, so what only counts or describes does without it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UnusableRows, UsageError, nearest
from evenhand.speech import listed, plural
from evenhand.stats.estimate import FloatArray

Codes = NDArray[np.intp]
ROUTING = (
    "In a pipeline, a search or a cross-validation it travels by scikit-learn's metadata routing: "
    "sklearn.set_config(enable_metadata_routing=True)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCells:
    """Rows by class and group; `counts` has one row a class and one column a group.

    Examples:
        >>> cells = training_cells(["nurse", "nurse", "pilot"], group=["f", "m", "m"])
        >>> cells.counts.tolist(), cells.empty
        ([[1, 1], [0, 1]], (('pilot', 'f'),))
    """

    classes: tuple[Any, ...]
    groups: tuple[Any, ...]
    truth: Codes
    group: Codes
    counts: NDArray[np.int64]

    @property
    def empty(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs of class and group without a row."""
        return tuple((self.classes[c], self.groups[g]) for c, g in np.argwhere(self.counts == 0))

    @property
    def without_rows(self) -> str:
        """The empty pairs in a sentence; nothing where there are none."""
        pairs = several(f"{c} of {g}" for c, g in self.empty)
        return f"No training rows: {pairs} (class of group)." if pairs else ""

    @property
    def lone(self) -> tuple[Any, ...]:
        """Classes whose rows all belong to one group."""
        return tuple(self.classes[c] for c in np.flatnonzero((self.counts > 0).sum(axis=1) == 1))

    @property
    def index(self) -> Codes:
        """Number of each row's cell: class · groups + group."""
        return np.asarray(self.truth * len(self.groups) + self.group, dtype=np.intp)

    def take(self, rows: Any) -> "TrainingCells":
        """The cells of some of the rows, under the same names."""
        truth, group = self.truth[rows], self.group[rows]
        return replace(self, truth=truth, group=group, counts=_counts(truth, group, self.counts))


def training_cells(truth: Any, *, group: Any) -> TrainingCells:
    """The cells of a training set, after checking that both columns fit together."""
    classes, y = coded(truth, argument="truth")
    groups, g = coded(group, argument="group")
    if y.size != g.size:
        raise UsageError(
            f"group has {g.size} values for {y.size} rows. Give the group of every row."
        )
    if not y.size:
        raise UnusableRows("There are no training rows. Give at least one.")
    counts = _counts(y, g, np.zeros((len(classes), len(groups))))
    return TrainingCells(classes=classes, groups=groups, truth=y, group=g, counts=counts)


def coded(values: Any, *, argument: str) -> tuple[tuple[Any, ...], Codes]:
    """Distinct values in order, and the place of each row's value among them.

    Examples:
        >>> coded(["b", "a", "b"], argument="group")
        (('a', 'b'), array([1, 0, 1]))
    """
    rows = np.asarray(values)
    if rows.ndim != 1:
        raise UsageError(
            f"{argument} has the shape {rows.shape}. Give a list with one value for each row."
        )
    if rows.dtype == object or rows.dtype.kind == "f":
        plain = rows.tolist()
        missing = sum(each is None or each != each for each in plain)
        if missing:
            raise DataError(
                f"{argument} is missing in {missing} of {len(plain)} rows. "
                "Leave these rows out, or give them a value of their own."
            )
        if rows.dtype == object:
            names = tuple(sorted(set(plain), key=lambda each: (str(type(each)), each)))
            place = {name: at for at, name in enumerate(names)}
            return names, np.array([place[each] for each in plain], dtype=np.intp)
    found, codes = np.unique(rows, return_inverse=True)
    return tuple(found.tolist()), np.asarray(codes, dtype=np.intp)


def row_groups(
    group: Any, *, rows: int, known: Sequence[Any], remedy: str = "This remedy"
) -> Codes:
    """Codes among the known groups of rows to be decided about; −1 for a group not known.

    Examples:
        >>> row_groups(["m", "x"], rows=2, known=("f", "m"))
        array([ 1, -1])
    """
    if group is None:
        raise UsageError(
            f"{remedy} needs the group of each row to decide. "
            f"Give group= with one for each row. {ROUTING}"
        )
    names, codes = coded(group, argument="group")
    if codes.size != rows:
        raise UsageError(f"group has {codes.size} values for {rows} rows. Give one for each row.")
    place = {name: at for at, name in enumerate(known)}
    return np.array([place.get(name, -1) for name in names], dtype=np.intp)[codes]


def row_weights(given: Any, *, rows: int) -> FloatArray:
    """Weights of the rows, ones where none are given; refused where they cannot be used."""
    if given is None:
        return np.ones(rows)
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (rows,):
        raise UnusableRows(
            f"sample_weight has the shape {weights.shape} for {rows} rows. Give one for each row."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise UnusableRows(
            f"sample_weight has {weights[bad][0]:g}. Give finite weights of 0 or more."
        )
    if not weights.sum() > 0:
        raise UnusableRows("The weights sum to zero. Give some rows a weight above 0.")
    return weights


def place_of(name: Any, known: Iterable[Any], *, argument: str) -> int:
    """Position of a name among the known ones, or a sentence that says which are known."""
    names = list(known)
    if name not in names:
        words = [str(each) for each in names]
        raise UsageError(
            f"{argument}={name!r} is not among {', '.join(words)}.{nearest(str(name), words)}"
        )
    return names.index(name)


def check_choice(argument: str, given: Any, known: Sequence[str]) -> None:
    """Refuse a word that is not one of the known ones, and name the nearest."""
    if given not in known:
        raise UsageError(
            f"{argument}={given!r} is not one of {', '.join(known)}."
            + nearest(str(given), list(known))
        )


def held_out(cell: Codes, share: Fraction, *, seed: int) -> NDArray[np.bool_]:
    """A mask of held-out rows, the share of every cell rounded up, one row always left in.

    Examples:
        >>> held_out(np.array([0, 0, 0, 0, 1]), Fraction(1, 4), seed=0).sum()
        np.int64(1)
    """
    rng = np.random.default_rng([seed, 0x5B11])
    order = np.lexsort((rng.random(cell.size), cell))
    sizes = np.bincount(cell)
    held = np.array([min(ceil(int(n) * share), max(int(n) - 1, 0)) for n in sizes])
    starts = np.cumsum(sizes) - sizes
    number = np.arange(cell.size) - starts[cell[order]]
    mask = np.zeros(cell.size, dtype=bool)
    mask[order] = number < held[cell[order]]
    return mask


def few_left(cells: TrainingCells) -> list[str]:
    """Said where one rare group takes away most of the rows of all others.

    Undersampling and weights within a class bring every group down to the smallest one there.

    Examples:
        >>> rare = training_cells(["a"] * 9, group=["f"] * 4 + ["m"] * 4 + ["x"])
        >>> print(*few_left(rare))
        Each class is brought down to its smallest group: 3 of 9 rows' worth is left, and 8 would \
be without x (1 row).
    """
    totals = cells.counts.sum(axis=0)
    rarest = int(totals.argmin())
    if len(cells.groups) < 3:
        return []
    left, without = (
        _smallest_alike(table) for table in (cells.counts, np.delete(cells.counts, rarest, axis=1))
    )
    if left >= without / 2:
        return []
    return [
        f"Each class is brought down to its smallest group: {left:,} of {totals.sum():,} rows' "
        f"worth is left, and {without:,} would be without {cells.groups[rarest]} "
        f"({plural(int(totals[rarest]), 'row')})."
    ]


def _smallest_alike(counts: NDArray[np.int64]) -> int:
    """Rows in all where every group of a class has as many as the smallest that is there."""
    there = counts > 0
    smallest = np.where(there, counts, counts.max(initial=0)).min(axis=1, initial=counts.max())
    return int((there.sum(axis=1) * smallest).sum())


def several(values: Iterable[Any], *, most: int = 5) -> str:
    """Names of any kind one after another; beyond five the others are counted.

    Examples:
        >>> several("ab"), several("abcdefg", most=3)
        ('a and b', 'a, b, c and 4 more')
    """
    return listed([str(each) for each in values], most=most)


def as_rows(X: Any) -> Any:
    """What has rows as it is: a matrix, a frame or a list; anything else as an array."""
    return X if hasattr(X, "shape") or hasattr(X, "__len__") else np.asarray(X)


def row_count(X: Any) -> int:
    """Number of rows of a matrix, a frame or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def is_sparse(X: Any) -> bool:
    """Whether a matrix is one of SciPy's sparse ones."""
    return hasattr(X, "tocsr")


def take(X: Any, rows: Any) -> Any:
    """These rows of a matrix, a frame or a list; `rows` are numbers or a mask."""
    places = np.arange(row_count(X))[rows]
    if hasattr(X, "iloc"):
        return X.iloc[places]
    if is_sparse(X):
        return X.tocsr()[places]
    return X[places] if hasattr(X, "shape") else [X[row] for row in places]


def _counts(truth: Codes, group: Codes, like: NDArray[Any]) -> NDArray[np.int64]:
    flat = np.bincount(truth * like.shape[1] + group, minlength=like.size)
    return flat.reshape(like.shape).astype(np.int64)
