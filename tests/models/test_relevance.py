"""Words of a class: the tests behind them, their small counts, and what is left."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2_contingency, fisher_exact
from statsmodels.stats.multitest import fdrcorrection

from evenhand.errors import UsageError
from evenhand.models.relevance import VARIANTS, cell_words, task_relevance, word_test
from evenhand.stats.families import benjamini_hochberg, benjamini_yekutieli

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
    assert int((benjamini_yekutieli(case["p"]) <= 0.05).sum()) == case["by_rejected"]
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
        counts, truth=truth, group=group, classes=list("abc"), groups=["f", "m"], unit=unit
    )
    assert found.tested.all()
    assert np.flatnonzero(found.relevant[0]).tolist() == [0, 1, 2]
    shares = {name: share[0] for name, share in found.irrelevant_shares.items()}
    assert shares[VARIANTS[0]] == pytest.approx(27 / 30)
    assert shares[VARIANTS[0]] >= shares[VARIANTS[1]] >= shares[VARIANTS[2]]
    either = task_relevance(
        counts, truth=truth, group=group, classes=list("abc"), groups=["f", "m"], unit=unit,
        variant="different in any",
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


def test_unknown_units_and_variants_are_refused():
    counts, truth, group = corpus()
    shared = {"truth": truth, "group": group, "classes": list("abc"), "groups": ["f", "m"]}
    with pytest.raises(UsageError, match="unit='word' is not one of token, document"):
        task_relevance(counts, unit="word", **shared)
    with pytest.raises(UsageError, match="variant='any' is not one of more in all, different in"):
        task_relevance(counts, variant="any", **shared)
