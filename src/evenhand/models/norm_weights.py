"""Which groups train a norm scorer, and what each row weighs so that classes tell it nothing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evenhand.decisions.tally import Codes, encode
from evenhand.errors import DataError, UsageError, nearest
from evenhand.stats.estimate import FloatArray

LEAST_ROWS, LEAST_IN_CLASS, LEAST_CLASSES = 200, 20, 5


def cell_counts(
    truth: Sequence[object], group: Sequence[object]
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...], Codes, Codes]:
    """Rows by (class, group), the names of both, and the codes of every row (-1: missing)."""
    if len(truth) != len(group):
        raise UsageError(
            f"truth has {len(truth):,} values and group {len(group):,}. Give one of each a row."
        )
    classes, c = encode(truth)
    groups, g = encode(group)
    known = (c >= 0) & (g >= 0)
    flat = np.bincount(c[known] * len(groups) + g[known], minlength=len(classes) * len(groups))
    return flat.reshape(len(classes), len(groups)).astype(np.float64), classes, groups, c, g


def training_groups(truth: Sequence[object], group: Sequence[object]) -> tuple[str, ...]:
    """Groups large enough to train a norm scorer: 200 rows, and 20 in at least five classes.

    Without this floor one rare group would set the weight of every class to almost nothing.

    Examples:
        >>> truth, group = ["a", "b", "c", "d", "e"] * 80, ["f"] * 200 + ["m"] * 195 + ["x"] * 5
        >>> training_groups(truth, group)
        Traceback (most recent call last):
        evenhand.errors.DataError: Only 'f' has 200 rows and 20 in at least 5 classes; a norm \
scorer needs two such groups. Give more rows, or name the groups to learn from (--norm-group).
    """
    counts, classes, groups, _, _ = cell_counts(truth, group)
    if len(groups) < 2:
        only = f"'{groups[0]}'" if groups else "none"
        raise DataError(
            f"The group column has one value alone, {only}. "
            "A norm scorer tells groups apart: it needs rows of two or more."
        )
    needed = min(LEAST_CLASSES, len(classes))
    large = (counts.sum(0) >= LEAST_ROWS) & ((counts >= LEAST_IN_CLASS).sum(0) >= needed)
    found = tuple(name for name, kept in zip(groups, large, strict=True) if kept)
    if len(found) < 2:
        told = f"Only {found[0]!r} has" if found else "No group has"
        raise DataError(
            f"{told} {LEAST_ROWS} rows and {LEAST_IN_CLASS} in at least {needed} classes; a norm "
            "scorer needs two such groups. Give more rows, or name the groups to learn from "
            "(--norm-group)."
        )
    return found


def alpha_table(counts: ArrayLike, *, used: Sequence[bool]) -> FloatArray:
    """Weights α of classes × groups: the rows of a class's smallest used group ÷ those of each.

    0 for a group that is not used or not there, and for a class with fewer than two that are.

    Examples:
        >>> alpha_table([[1, 4, 2], [3, 0, 5]], used=[True, True, False]).tolist()
        [[1.0, 0.25, 0.0], [0.0, 0.0, 0.0]]
    """
    rows = np.asarray(counts, dtype=np.float64)
    there = (rows > 0) & np.asarray(used, dtype=bool)
    least = np.where(there, rows, np.inf).min(axis=1, initial=np.inf)
    least[there.sum(axis=1) < 2] = 0.0
    return np.where(there, least[:, None], 0.0) / np.maximum(rows, 1)


def alpha_weights(
    truth: Sequence[object], group: Sequence[object], *, groups: Sequence[str] | None = None
) -> FloatArray:
    """Weight of each row, so that within every class all groups weigh what the smallest does.

    α = min_k n_ck ÷ n_cl over the groups present in the class. A class with fewer than two of them
    weighs nothing, and so does a row of no class or of another group.

    Examples:
        >>> alpha_weights(["c"] * 4, ["she", "he", "he", "he"]).round(3).tolist()
        [1.0, 0.333, 0.333, 0.333]
    """
    counts, _, names, c, g = cell_counts(truth, group)
    chosen = names if groups is None else tuple(groups)
    for name in chosen:
        if name not in names:
            raise UsageError(
                f"{name!r} is not a group of the training rows.{nearest(name, list(names))} "
                f"They have {', '.join(names[:8])}."
            )
    table = alpha_table(counts, used=[name in chosen for name in names])
    weights = np.zeros(len(c))
    known = (c >= 0) & (g >= 0)
    weights[known] = table[c[known], g[known]]
    return weights
