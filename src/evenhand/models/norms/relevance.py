"""Which words belong to a class: significantly more frequent in it, for every group apart.

What is left, the task-irrelevant words, can only tell how a person writes, not what they do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_ndtr, ndtr

from evenhand.decisions.tally import Codes
from evenhand.errors import UsageError, nearest
from evenhand.stats.estimate import FloatArray
from evenhand.stats.families import benjamini_hochberg

UNITS = ("token", "document")
# How a word must differ to belong to the class: more in every group; different in every group;
# different in any group. The first is the paper's wording.
VARIANTS = ("more in all", "different in all", "different in any")
# What a share of relevant words is a share of: the class's words as often as they are written, or
# the words there are.
MEASURES = ("use", "vocabulary")
CHOSEN = "chosen"
FDR = 0.05
FEW_EXPECTED = 5.0


def spoken(variant: str) -> str:
    """A variant as a sentence has it.

    Examples:
        >>> spoken("more in all"), spoken("different in any")
        ('more in all groups', 'different in any group')
    """
    return f"{variant} group{'s' if variant.endswith('all') else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a word is relevant to a class: it passes a test, or is among the most associated.

    Without `relevant`, words are tested for each group at the false discovery rate `fdr` (0.05),
    as the paper has it. With it, words are taken in the order of their p-values, the worst of the
    groups, up to a share of the class's words (under 1) or a number of words (1 and more); a share
    is of the words as often as they are written ("use") or of the "vocabulary". `variant` says how
    a word must differ, `unit` what the tests count: "token" or "document".

    Examples:
        >>> Rule().words, Rule(relevant=0.6).words
        ('more in all groups at a false discovery rate of 0.05', \
'the 60% of the words as used most typical of the class')
        >>> Rule(relevant=0.6, fdr=0.1)
        Traceback (most recent call last):
        evenhand.errors.UsageError: relevant=0.6 and fdr=0.1 are two rules. Choose one: how many \
words are relevant, or the false discovery rate of a test.
    """

    relevant: float | None = None
    of: str = MEASURES[0]
    fdr: float | None = None
    variant: str = VARIANTS[0]
    unit: str = UNITS[0]

    def __post_init__(self) -> None:
        for name, value, known in (
            ("unit", self.unit, UNITS),
            ("variant", self.variant, VARIANTS),
            ("relevant_of", self.of, MEASURES),
        ):
            if value not in known:
                raise UsageError(
                    f"{name}={value!r} is not one of {', '.join(known)}."
                    f"{nearest(str(value), list(known))}"
                )
        if self.relevant is not None and self.fdr is not None:
            raise UsageError(
                f"relevant={self.relevant:g} and fdr={self.fdr:g} are two rules. Choose one: how "
                "many words are relevant, or the false discovery rate of a test."
            )
        if self.fdr is not None and not 0 < self.fdr < 1:
            raise UsageError(f"fdr={self.fdr:g} is not a rate between 0 and 1, such as 0.05.")
        many = self.relevant
        if many is not None and not (0 < many < 1 or (many >= 1 and many == int(many))):
            raise UsageError(
                f"relevant={many:g} is neither a share under 1, such as 0.6, nor a whole number of "
                "words, such as 500."
            )

    @property
    def rate(self) -> float:
        """The false discovery rate of the tests."""
        return FDR if self.fdr is None else self.fdr

    @property
    def words(self) -> str:
        """The rule as the quality card tells it."""
        if self.relevant is None:
            return f"{spoken(self.variant)} at a false discovery rate of {self.rate:g}"
        if self.relevant >= 1:
            return f"the {self.relevant:,.0f} words most typical of the class"
        of = "words as used" if self.of == MEASURES[0] else "vocabulary"
        return f"the {100 * self.relevant:.4g}% of the {of} most typical of the class"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTest:
    """Tests of one word's frequency inside a class against outside, by word.

    `p` is one-sided, for being more frequent inside, `log_p` its logarithm, which tells words
    apart whose p is 0 to sixteen digits; `exact` marks Fisher's test, used where an expected count
    is under five. NaN for a word that does not occur.
    """

    chi_square: FloatArray
    p: FloatArray
    p_two_sided: FloatArray
    log_p: FloatArray
    log_p_two_sided: FloatArray
    more: NDArray[np.bool_]
    exact: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Relevant words by class (classes × words), and the share of irrelevant words by rule.

    `irrelevant_shares` are of the vocabulary, `irrelevant_use` of the class's words as often as
    they stand in its texts: for the variants of the test and, where the rule is none of them,
    for what was "chosen". `tested` marks the classes that every group has; the words of the others
    are not known, and their shares are NaN.
    """

    classes: tuple[str, ...]
    groups: tuple[str, ...]
    rule: Rule
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
        p, log_p = (np.where(more, law(-z), law(z)) for law in (ndtr, log_ndtr))
        both, log_both = 2 * ndtr(-z), np.log(2.0) + log_ndtr(-z)
    there = (word > 0) & (word < total) & (first > 0) & (second > 0)
    exact = there & (expected < FEW_EXPECTED)
    if exact.any():
        above, below = _fisher(a[exact], word[exact], inside=first, total=total)
        p[exact], both[exact] = above, np.minimum(1.0, 2 * np.minimum(above, below))
        for logarithm, plain in ((log_p, p), (log_both, both)):
            logarithm[exact] = np.log(np.maximum(plain[exact], np.finfo(np.float64).tiny))
    for column in (square, p, both, log_p, log_both):
        column[~there] = np.nan
    return WordTest(
        chi_square=square,
        p=p,
        p_two_sided=both,
        log_p=log_p,
        log_p_two_sided=log_both,
        more=more & there,
        exact=exact,
    )


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
    rule: Rule | None = None,
) -> Relevance:
    """The words of each class, by a test for each group and Benjamini–Hochberg over the words.

    Args:
        counts: Texts × words.
        truth: Class of each text, as a place in `classes`; -1 where unknown.
        group: Group of each text, as a place in `groups`; -1 for any other.
        classes: Names of the classes.
        groups: Names of the groups.
        rule: When a word is relevant; by default the paper's test.
    """
    rule = Rule() if rule is None else rule
    words = counts.shape[1]
    if rule.relevant is not None and rule.relevant >= words:
        raise UsageError(
            f"relevant={rule.relevant:g} is all of the {words:,} words there are: none would be "
            "irrelevant. Give fewer, or a share under 1."
        )
    table, sizes = cell_words(counts, truth, group, len(classes), len(groups), unit=rule.unit)
    tested = np.asarray((sizes > 0).all(axis=0))
    shape = (len(classes), words)
    relevant = {name: np.zeros(shape, dtype=bool) for name in VARIANTS}
    if rule.relevant is not None:
        relevant[CHOSEN] = np.zeros(shape, dtype=bool)
    every, whole = table.sum(axis=1), sizes.sum(axis=1)
    for c in range(len(classes)):
        tests = [
            word_test(
                table[g, c],
                every[g] - table[g, c],
                inside_size=sizes[g, c],
                outside_size=whole[g] - sizes[g, c],
            )
            for g in range(len(groups))
        ]
        with np.errstate(invalid="ignore"):
            more = [(benjamini_hochberg(one.p) <= rule.rate) & one.more for one in tests]
            other = [benjamini_hochberg(one.p_two_sided) <= rule.rate for one in tests]
        found = (np.all(more, axis=0), np.all(other, axis=0), np.any(other, axis=0))
        for name, each in zip(VARIANTS, found, strict=True):
            relevant[name][c] = each
        if rule.relevant is not None and tested[c]:
            relevant[CHOSEN][c] = most_typical(tests, table[:, c].sum(axis=0), rule=rule)
    used = table.sum(axis=0)
    with np.errstate(invalid="ignore"):
        used = np.where(tested[:, None], used / used.sum(axis=1, keepdims=True), np.nan)
    even = np.where(tested[:, None], 1 / words, np.nan)
    return Relevance(
        classes=tuple(classes),
        groups=tuple(groups),
        rule=rule,
        relevant=relevant[rule.variant if rule.relevant is None else CHOSEN],
        tested=tested,
        irrelevant_shares={name: (even * ~each).sum(axis=1) for name, each in relevant.items()},
        irrelevant_use={name: (used * ~each).sum(axis=1) for name, each in relevant.items()},
    )


def most_typical(tests: Sequence[WordTest], often: FloatArray, *, rule: Rule) -> NDArray[np.bool_]:
    """The words most typical of a class, as many as the rule says; `often` counts them there.

    Examples:
        >>> tests = [word_test([30, 5, 20], [50, 45, 180], inside_size=99, outside_size=900)]
        >>> most_typical(tests, np.array([30.0, 5.0, 20.0]), rule=Rule(relevant=2)).tolist()
        [True, False, True]
    """
    one_sided = rule.variant == VARIANTS[0]
    evidence = np.array([one.log_p if one_sided else one.log_p_two_sided for one in tests])
    evidence = np.where(np.isnan(evidence), 0.0, evidence)
    worst = evidence.min(axis=0) if rule.variant == VARIANTS[2] else evidence.max(axis=0)
    # A word that one group never writes in the class has p = 1 whatever the others do.
    order = np.lexsort((evidence.sum(axis=0), worst))
    share = float(rule.relevant or 0.0)
    if share >= 1:
        count = int(share)
    elif rule.of == MEASURES[1]:
        count = round(share * order.size)
    else:
        covered = np.cumsum(often[order]) / often.sum()
        count = int(np.argmin(np.abs(covered - share))) + 1
    found = np.zeros(order.size, dtype=bool)
    found[order[: min(max(count, 1), order.size - 1)]] = True
    return found


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
