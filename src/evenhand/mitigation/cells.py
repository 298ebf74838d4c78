"""Class × group cells of a training set: the names, the codes of every row and the counts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError, nearest

Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Rows by class and group; `counts` has one row a class and one column a group.

    Examples:
        >>> cells = cells_of(["nurse", "nurse", "pilot"], group=["f", "m", "m"])
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
    def lone(self) -> tuple[Any, ...]:
        """Classes whose rows all belong to one group."""
        return tuple(self.classes[c] for c in np.flatnonzero((self.counts > 0).sum(axis=1) == 1))

    def take(self, rows: Any) -> "Cells":
        """The cells of some of the rows, under the same names."""
        truth, group = self.truth[rows], self.group[rows]
        flat = np.bincount(truth * len(self.groups) + group, minlength=self.counts.size)
        return replace(
            self,
            truth=truth,
            group=group,
            counts=flat.reshape(self.counts.shape).astype(np.int64),
        )

    @property
    def index(self) -> Codes:
        """Number of each row's cell: class · groups + group."""
        return np.asarray(self.truth * len(self.groups) + self.group, dtype=np.intp)


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


def cells_of(truth: Any, *, group: Any) -> Cells:
    """The cells of a training set, after checking that both columns fit together."""
    classes, y = coded(truth, argument="truth")
    groups, g = coded(group, argument="group")
    if y.size != g.size:
        raise UsageError(
            f"group has {g.size} values for {y.size} rows. Give the group of every row."
        )
    if not y.size:
        raise DataError("There are no training rows. Give at least one.")
    flat = np.bincount(y * len(groups) + g, minlength=len(classes) * len(groups))
    counts = flat.reshape(len(classes), len(groups)).astype(np.int64)
    return Cells(classes=classes, groups=groups, truth=y, group=g, counts=counts)


def place_of(name: Any, known: Iterable[Any], *, argument: str) -> int:
    """Position of a name among the known ones, or a sentence that says which are known."""
    names = list(known)
    if name not in names:
        listed = ", ".join(str(each) for each in names)
        hint = nearest(str(name), [str(each) for each in names])
        raise UsageError(f"{argument}={name!r} is not among {listed}.{hint}")
    return names.index(name)


def several(values: Iterable[Any], *, most: int = 5) -> str:
    """Names joined by commas, the first few of a long list and how many more there are.

    Examples:
        >>> several("abcdefg", most=3)
        'a, b, c and 4 more'
    """
    names = [str(each) for each in values]
    rest = len(names) - most
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:most])} and {rest} more"
