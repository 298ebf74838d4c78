"""Words of a class: the tests behind them, their small counts, and what is left."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2_contingency, fisher_exact
from statsmodels.stats.multitest import fdrcorrection

from evenhand.errors import UsageError
from evenhand.models.norms.relevance import (
    CHOSEN,
    VARIANTS,
    Rule,
    cell_words,
    task_relevance,
    word_test,
)
from evenhand.stats.families import benjamini_hochberg

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())


def test_chi_square_as_in_oracle_1_8():
    case = ORACLES["1.8_chi2_word"]
    (a, c), (b, d) = case["table"]
    found = word_test([a], [b], inside_size=a + c, outside_size=b + d)
    assert found.chi_square[0] == pytest.approx(case["x2"])
    assert found.p[0] == pytest.approx(case["p_one_sided"])
    assert found.p_two_sided[0] == pytest.approx(case["p"])
    assert found.more[0]
    assert not found.exact[0]


def test_adjustment_as_in_oracle_1_9():
    case = ORACLES["1.9_bh"]
    adjusted = benjamini_hochberg(case["p"])
    assert adjusted.tolist() == pytest.approx(case["adjusted"])
    assert int((adjusted <= 0.05).sum()) == case["n_rejected"]
    assert fdrcorrection(case["p"])[0].sum() == case["n_rejected"]


def test_every_table_equals_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 60, 200), rng.integers(0, 90, 200)
    found = word_test(a, b, inside_size=300, outside_size=900)
    for k in range(200):
        table = np.array([[a[k], 300 - a[k]], [b[k], 900 - b[k]]])
        if a[k] + b[k] == 0:
            assert np.isnan(found.p[k])
            continue
        square, both, _, expected = chi2_contingency(table, correction=False)
        assert found.exact[k] == (expected.min() < 5)
        if found.exact[k]:
            assert found.p[k] == pytest.approx(fisher_exact(table, alternative="greater")[1])
            continue
        assert found.chi_square[k] == pytest.approx(square)
        assert found.p_two_sided[k] == pytest.approx(both)
        assert found.p[k] == pytest.approx(both / 2 if found.more[k] else 1 - both / 2)


def corpus(seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Two groups, three classes, thirty words: words 0-2 belong to class 0 for both groups, word 3
    to class 0 among the first group alone, and word 4 is rarer in class 0."""
    rng = np.random.default_rng(seed)
    n = 1_200
    truth, group = rng.integers(0, 3, n), rng.integers(0, 2, n)
    rate = np.full((n, 30), 0.5)
    own = truth == 0
    rate[own, :3] = 2.0
    rate[own & (group == 0), 3] = 2.0
    rate[own, 4] = 0.05
    return sparse.csr_matrix(rng.poisson(rate).astype(np.float32)), truth, group


@pytest.mark.parametrize("unit", ["token", "document"])
def test_relevant_words_are_more_frequent_for_every_group(unit: str) -> None:
    counts, truth, group = corpus()
    found = task_relevance(
        counts,
        truth=truth,
        group=group,
        classes=list("abc"),
        groups=["f", "m"],
        rule=Rule(unit=unit),
    )
    assert found.tested.all()
    assert np.flatnonzero(found.relevant[0]).tolist() == [0, 1, 2]
    shares = {name: share[0] for name, share in found.irrelevant_shares.items()}
    assert shares[VARIANTS[0]] == pytest.approx(27 / 30)
    assert shares[VARIANTS[0]] >= shares[VARIANTS[1]] >= shares[VARIANTS[2]]
    either = task_relevance(
        counts, truth=truth, group=group, classes=list("abc"), groups=["f", "m"],
        rule=Rule(unit=unit, variant="different in any"),
    )  # fmt: skip
    assert {0, 1, 2, 3, 4} <= set(np.flatnonzero(either.relevant[0]).tolist())


def test_cells_count_tokens_or_texts():
    counts = sparse.csr_matrix(np.array([[2, 0], [1, 1], [0, 3]], dtype=np.float32))
    truth, group = np.array([0, 0, 1]), np.array([0, 0, -1])
    table, sizes = cell_words(counts, truth, group, 2, 1, unit="token")
    assert table.tolist() == [[[3.0, 1.0], [0.0, 0.0]]]
    assert sizes.tolist() == [[4.0, 0.0]]
    table, sizes = cell_words(counts, truth, group, 2, 1, unit="document")
    assert table.tolist() == [[[2.0, 1.0], [0.0, 0.0]]]
    assert sizes.tolist() == [[2.0, 0.0]]


def test_a_class_without_a_group_is_not_tested():
    counts, truth, group = corpus()
    group = np.where(truth == 2, 0, group)
    found = task_relevance(counts, truth=truth, group=group, classes=list("abc"), groups=["f", "m"])
    assert found.tested.tolist() == [True, True, False]
    assert not found.relevant[2].any()
    assert np.isnan(found.irrelevant_shares[VARIANTS[0]]).tolist() == [False, False, True]
    assert np.isnan(found.irrelevant_use[VARIANTS[0]]).tolist() == [False, False, True]


def test_share_of_the_words_as_used():
    counts, truth, group = corpus()
    found = task_relevance(counts, truth=truth, group=group, classes=list("abc"), groups=["f", "m"])
    used = np.asarray(counts[truth == 0].sum(axis=0)).ravel()
    expected = 1 - used[:3].sum() / used.sum()
    assert found.irrelevant_use[VARIANTS[0]][0] == pytest.approx(expected)
    # Three words of thirty are a tenth of the vocabulary and a third of what is written:
    # 3 x 2.0 of 3 x 2.0 + 25 x 0.5 + 0.05 and half of 2.0 + 0.5.
    assert found.irrelevant_shares[VARIANTS[0]][0] == pytest.approx(0.9)
    assert expected == pytest.approx(1 - 6 / 19.8, abs=0.02)


@pytest.mark.parametrize(
    ("rows", "vocabulary", "use"), [(4_000, 0.98, 0.675), (255_000, 0.854, 0.38)]
)
def test_the_share_of_the_vocabulary_stays_high_in_any_corpus(rows, vocabulary, use):
    """Every word differs between classes, by a factor of e^±1, and yet rare ones cannot show it."""
    rng = np.random.default_rng(0)
    zipf = 1 / (np.arange(1, 20_001) + 2.7) ** 1.05
    cells = [
        rng.multinomial(rows * 65 // 16, p / p.sum())
        for p in zipf * np.exp(rng.standard_normal((8, zipf.size)))
        for _ in range(2)
    ]
    found = task_relevance(
        sparse.csr_matrix(np.array(cells, dtype=np.float64)),
        truth=np.repeat(np.arange(8), 2),
        group=np.tile([0, 1], 8),
        classes=list("abcdefgh"),
        groups=["f", "m"],
    )
    assert found.irrelevant_shares[VARIANTS[0]].mean() == pytest.approx(vocabulary, abs=0.02)
    assert found.irrelevant_use[VARIANTS[0]].mean() == pytest.approx(use, abs=0.02)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"unit": "word"}, "unit='word' is not one of token, document."),
        ({"variant": "any"}, "variant='any' is not one of more in all, different in all, different "
                             "in any."),
        ({"of": "uses"}, "relevant_of='uses' is not one of use, vocabulary. Did you mean 'use'?"),
        ({"fdr": 5}, "fdr=5 is not a rate between 0 and 1, such as 0.05."),
        ({"relevant": 1.5}, "relevant=1.5 is neither a share under 1, such as 0.6, nor a whole "
                            "number of words, such as 500."),
        ({"relevant": 0}, "relevant=0 is neither a share under 1, such as 0.6, nor a whole number "
                          "of words, such as 500."),
        ({"relevant": 0.5, "fdr": 0.05}, "relevant=0.5 and fdr=0.05 are two rules. Choose one: how "
                                         "many words are relevant, or the false discovery rate of "
                                         "a test."),
    ],
)  # fmt: skip
def test_rules_that_are_none_are_refused(rule, words):
    with pytest.raises(UsageError) as refused:
        Rule(**rule)
    assert str(refused.value) == words


def relevance(rule: Rule):
    counts, truth, group = corpus()
    shared = {"truth": truth, "group": group, "classes": list("abc"), "groups": ["f", "m"]}
    return counts, truth, task_relevance(counts, rule=rule, **shared)


def test_as_many_words_as_asked_for_the_most_typical_first():
    for number in (1, 2, 3, 10):
        _, _, found = relevance(Rule(relevant=number))
        assert found.relevant.sum(axis=1).tolist() == [number] * 3
        # Words 0 to 2 belong to the class for both groups, and no other does.
        assert set(np.flatnonzero(found.relevant[0])) <= {0, 1, 2} or number > 3
        assert found.irrelevant_shares[CHOSEN].tolist() == pytest.approx([1 - number / 30] * 3)
    # Word 3 does for the first group alone: its worst p-value is like any other word's.
    assert {0, 1, 2} <= set(np.flatnonzero(found.relevant[0]))
    with pytest.raises(UsageError) as refused:
        relevance(Rule(relevant=30))
    assert str(refused.value) == (
        "relevant=30 is all of the 30 words there are: none would be irrelevant. Give fewer, or a "
        "share under 1."
    )


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
def test_a_share_of_the_words_as_used_or_of_the_vocabulary(share):
    counts, truth, found = relevance(Rule(relevant=share))
    for c in range(3):
        often = np.asarray(counts[truth == c].sum(axis=0)).ravel()
        covered = often[found.relevant[c]].sum() / often.sum()
        # No word is more than an eighth of a class's text, so that half of that is the most it
        # can be off.
        assert covered == pytest.approx(share, abs=0.065)
        assert found.irrelevant_use[CHOSEN][c] == pytest.approx(1 - covered)
    _, _, found = relevance(Rule(relevant=share, of="vocabulary"))
    assert found.relevant.sum(axis=1).tolist() == [round(share * 30)] * 3


def test_other_variants_order_words_by_their_difference():
    # Word 4 is twenty times rarer in class 0 for both groups, word 3 more frequent for one alone.
    _, _, all_ = relevance(Rule(relevant=4, variant="different in all"))
    assert set(np.flatnonzero(all_.relevant[0])) == {0, 1, 2, 4}
    _, _, any_ = relevance(Rule(relevant=5, variant="different in any"))
    assert set(np.flatnonzero(any_.relevant[0])) == {0, 1, 2, 3, 4}


def test_a_stricter_rate_finds_fewer_words():
    many = [relevance(Rule(fdr=rate))[2].relevant.sum() for rate in (0.5, 0.05, 1e-12)]
    assert many[0] > many[1] >= many[2] > 0
    assert Rule(fdr=0.01).words == "more in all groups at a false discovery rate of 0.01"
    assert Rule(relevant=500).words == "the 500 words most typical of the class"


def test_logarithms_tell_words_apart_whose_p_is_zero():
    found = word_test([4_000, 6_000], [10, 10], inside_size=1e5, outside_size=1e6)
    assert found.p.tolist() == [0.0, 0.0]
    assert found.log_p[1] < found.log_p[0] < -1_000
    plain = word_test([30], [50], inside_size=1_000, outside_size=9_000)
    assert plain.log_p == pytest.approx(np.log(plain.p))
    assert plain.log_p_two_sided == pytest.approx(np.log(plain.p_two_sided))
