"""Which words belong to a class: significantly more frequent in it, for every group apart.

What is left, the task-irrelevant words, can only tell how a person writes, not what they do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import ndtr

from evenhand.decisions.tally import Codes
from evenhand.errors import UsageError
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import benjamini_hochberg

UNITS = ("token", "document")
# How a word must differ to belong to the class: more in every group; different in every group;
# different in any group. The first is the paper's wording.
VARIANTS = ("more in all", "different in all", "different in any")
FEW_EXPECTED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTest:
    """Tests of one word's frequency inside a class against outside, by word.

    `p` is one-sided, for being more frequent inside; `exact` marks Fisher's test, used where an
    expected count is under five. NaN for a word that does not occur.
    """

    chi_square: FloatArray
    p: FloatArray
    p_two_sided: FloatArray
    more: NDArray[np.bool_]
    exact: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Relevant words by class (classes × words), and the share of irrelevant words by variant.

    `irrelevant_shares` are of the vocabulary, `irrelevant_use` of the class's words as often as
    they stand in its texts. `tested` marks the classes that every group has; the words of the
    others are not known, and their shares are NaN.
    """

    classes: tuple[str, ...]
    groups: tuple[str, ...]
    unit: str
    variant: str
    relevant: NDArray[np.bool_]
    tested: NDArray[np.bool_]
    irrelevant_shares: Mapping[str, FloatArray]
    irrelevant_use: Mapping[str, FloatArray]


def word_test(
    inside: ArrayLike, outside: ArrayLike, *, inside_size: float, outside_size: float
) -> WordTest:
    """Pearson's chi-square without correction, by direction; Fisher's test where counts are small.

    Examples:
        >>> found = word_test([30], [50], inside_size=1000, outside_size=9000)
        >>> print(f"{found.chi_square[0]:.3f} {found.p[0]:.3g} {bool(found.more[0])}")
        67.764 9.21e-17 True
    """
    a, b = (np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (inside, outside))
    first, second = float(inside_size), float(outside_size)
    total, word = first + second, a + b
    with np.errstate(all="ignore"):
        cross = a * (second - b) - b * (first - a)
        square = total * cross**2 / (word * (total - word) * first * second)
        expected = np.minimum(word, total - word) * min(first, second) / total
        z = np.sqrt(square)
        more = a * second > b * first
        p = np.where(more, ndtr(-z), ndtr(z))
        both = 2 * ndtr(-z)
    there = (word > 0) & (word < total) & (first > 0) & (second > 0)
    exact = there & (expected < FEW_EXPECTED)
    if exact.any():
        above, below = _fisher(a[exact], word[exact], inside=first, total=total)
        p[exact], both[exact] = above, np.minimum(1.0, 2 * np.minimum(above, below))
    for column in (square, p, both):
        column[~there] = np.nan
    return WordTest(chi_square=square, p=p, p_two_sided=both, more=more & there, exact=exact)


def _fisher(
    a: FloatArray, word: FloatArray, *, inside: float, total: float
) -> tuple[FloatArray, FloatArray]:
    """P(X ≥ a) and P(X ≤ a) of the hypergeometric law, once for each distinct pair of counts."""
    from scipy.stats import hypergeom

    pairs, place = np.unique(np.stack([a, word]), axis=1, return_inverse=True)
    law = hypergeom(int(total), pairs[1].astype(np.int64), int(inside))
    above, below = law.sf(pairs[0] - 1), law.cdf(pairs[0])
    return np.asarray(above[place.ravel()]), np.asarray(below[place.ravel()])


def task_relevance(
    counts: sparse.csr_matrix,
    *,
    truth: Codes,
    group: Codes,
    classes: Sequence[str],
    groups: Sequence[str],
    unit: str = "token",
    variant: str = VARIANTS[0],
    rate: float = 0.05,
) -> Relevance:
    """The words of each class, by a test for each group and Benjamini–Hochberg over the words.

    Args:
        counts: Texts × words.
        truth: Class of each text, as a place in `classes`; -1 where unknown.
        group: Group of each text, as a place in `groups`; -1 for any other.
        classes: Names of the classes.
        groups: Names of the groups; a relevant word must pass in each.
        unit: "token" counts occurrences, "document" texts (words of one text are not
            independent, so that this is the more careful one).
        variant: How a word must differ; one of `VARIANTS`.
        rate: False discovery rate within each class and group.
    """
    for name, value, known in (("unit", unit, UNITS), ("variant", variant, VARIANTS)):
        if value not in known:
            raise UsageError(f"{name}={value!r} is not one of {', '.join(known)}.")
    table, sizes = cell_words(counts, truth, group, len(classes), len(groups), unit=unit)
    shape = (len(classes), len(groups), counts.shape[1])
    found = {name: np.zeros(shape, dtype=bool) for name in ("more", "different")}
    for g in range(len(groups)):
        every, size = table[g].sum(axis=0), sizes[g].sum()
        for c in range(len(classes)):
            if not 0 < sizes[g, c] < size:
                continue
            one = word_test(
                table[g, c],
                every - table[g, c],
                inside_size=sizes[g, c],
                outside_size=size - sizes[g, c],
            )
            with np.errstate(invalid="ignore"):
                found["more"][c, g] = (benjamini_hochberg(one.p) <= rate) & one.more
                found["different"][c, g] = benjamini_hochberg(one.p_two_sided) <= rate
    relevant = {
        VARIANTS[0]: found["more"].all(axis=1),
        VARIANTS[1]: found["different"].all(axis=1),
        VARIANTS[2]: found["different"].any(axis=1),
    }
    tested = np.asarray((sizes > 0).all(axis=0))
    used = table.sum(axis=0)
    with np.errstate(invalid="ignore"):
        used = np.where(tested[:, None], used / used.sum(axis=1, keepdims=True), np.nan)
    even = np.where(tested[:, None], 1 / used.shape[1], np.nan)
    return Relevance(
        classes=tuple(classes),
        groups=tuple(groups),
        unit=unit,
        variant=variant,
        relevant=np.asarray(relevant[variant]),
        tested=tested,
        irrelevant_shares={name: (even * ~words).sum(axis=1) for name, words in relevant.items()},
        irrelevant_use={name: (used * ~words).sum(axis=1) for name, words in relevant.items()},
    )


def cell_words(
    counts: sparse.csr_matrix, truth: Codes, group: Codes, classes: int, groups: int, *, unit: str
) -> tuple[FloatArray, FloatArray]:
    """How often each word occurs in each (group, class), and how much text the cell has."""
    known = np.flatnonzero((truth >= 0) & (group >= 0))
    cell = group[known] * classes + truth[known]
    shape: Any = (groups * classes, counts.shape[0])
    ones = np.ones(known.size, dtype=np.float64)
    members = sparse.csr_matrix((ones, (cell, known)), shape=shape)
    if unit == "document":
        held = sparse.csr_matrix(
            (np.ones_like(counts.data), counts.indices, counts.indptr), shape=counts.shape
        )
        sizes = np.bincount(cell, minlength=groups * classes).astype(np.float64)
        table = np.asarray((members @ held).toarray(), dtype=np.float64)
    else:
        table = np.asarray((members @ counts).toarray(), dtype=np.float64)
        sizes = table.sum(axis=1)
    return table.reshape(groups, classes, -1), sizes.reshape(groups, classes)
