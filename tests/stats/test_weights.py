"""Weighted and clustered rates as effective counts."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from evenhand.stats import weights
from evenhand.stats.estimate import critical
from evenhand.stats.rest import rest_of_groups

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
Z = critical(0.95)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_unit_weights_change_nothing(case) -> None:
    hits, n = case
    rate = weights.weighted_rate(hits, n - hits, hit_squares=hits, miss_squares=n - hits)
    assert rate.hits == pytest.approx(hits)
    assert rate.n == pytest.approx(n)
    ones = np.ones(n)
    alone = weights.clustered_rate(
        np.arange(n) < hits, ones, cell=np.zeros(n, int), cluster=np.arange(n), cells=1
    )
    assert alone.value[0] == pytest.approx(hits / n)
    assert alone.n[0] == pytest.approx(n)
    if n >= 2 and 0 < hits < n:
        # One row a cluster: V = p·q ÷ (n − 1)
        assert alone.variance[0] == pytest.approx(hits * (n - hits) / n**2 / (n - 1))


def test_weighted_variance_from_rows() -> None:
    generator = np.random.default_rng(0)
    w, y = generator.gamma(2, size=80), generator.random(80) < 0.3
    rate = weights.weighted_rate(
        w[y].sum(), w[~y].sum(), hit_squares=(w[y] ** 2).sum(), miss_squares=(w[~y] ** 2).sum()
    )
    fit = sm.WLS(y.astype(float), np.ones(80), weights=w).fit(cov_type="HC0")
    assert rate.value == pytest.approx(fit.params[0])
    assert rate.variance == pytest.approx(fit.bse[0] ** 2)
    assert rate.hits / rate.n == pytest.approx(float(rate.value))
    # The effective count allows for at least the variance measured, and hardly more here.
    assert 1 <= rate.value * (1 - rate.value) / rate.n / rate.variance < 1.05


def test_few_hits_do_not_show_how_uneven_weights_are() -> None:
    # Hits weigh 1, 1; misses 1 and 10 ten times each. By hand: Σw² ÷ Σw over all is
    # (2 + 10 + 1000) ÷ (2 + 10 + 100) = 9.0357. Hits: own ½, implied 9.0357/2 = 4.5179,
    # (2·0.5 + 10·4.5179)/12 = 3.8482; misses: own 1010/110² = 0.083471 exceeds 9.0357/110.
    rate = weights.weighted_rate(2.0, 110.0, hit_squares=2.0, miss_squares=1010.0)
    share = 2 / 112
    assert rate.n == pytest.approx(1 / (share * (1 - share) * (3.84821 + 0.083471)), rel=1e-4)


def test_uneven_review_of_many_keeps_the_linearised_variance() -> None:
    # All 300 hits were reviewed and a tenth of 700 misses: nothing is left to guess.
    rate = weights.weighted_rate(3000.0, 7000.0, hit_squares=3000.0, miss_squares=70_000.0)
    assert rate.value * (1 - rate.value) / rate.n == pytest.approx(float(rate.variance), rel=0.05)


def test_kish_where_nobody_is_a_hit() -> None:
    # weights 1, 1, 2: (1 + 1 + 2)² ÷ (1 + 1 + 4) = 16/6
    rate = weights.weighted_rate([0.0, 4.0], [4.0, 0.0], hit_squares=[0, 6], miss_squares=[6, 0])
    assert rate.n == pytest.approx([16 / 6] * 2)
    assert rate.hits == pytest.approx([0, 16 / 6])


def test_scale_of_weights_does_not_matter() -> None:
    small = weights.weighted_rate(3.0, 5.0, hit_squares=4.0, miss_squares=9.0)
    large = weights.weighted_rate(30.0, 50.0, hit_squares=400.0, miss_squares=900.0)
    assert [small.value, float(small.n)] == pytest.approx([large.value, float(large.n)])


def test_no_weight_is_undefined() -> None:
    rate = weights.weighted_rate(0.0, 0.0, hit_squares=0.0, miss_squares=0.0)
    assert np.isnan([rate.value, rate.variance, rate.hits, rate.n]).all()


def test_oracle_clusters() -> None:
    oracle = ORACLES["3.12_cluster_by_labeller"]
    hits, n = np.array(oracle["hits_of_n"]).T
    rate = weights.clustered_rate(hits, n, cell=np.zeros(5, int), cluster=np.arange(5), cells=1)
    assert rate.value[0] == pytest.approx(oracle["p"])
    assert np.sqrt(rate.variance[0]) == pytest.approx(oracle["se_cluster"], abs=1e-9)
    assert rate.design_effect[0] == pytest.approx(oracle["design_effect"])
    # 0.24 ÷ 0.015 = 16 cases, times (1.95996 ÷ t(4) = 2.77645)² = 0.49833
    effective_hits, effective_n = rate.effective(z=Z)
    assert effective_n[0] == pytest.approx(16 * 0.498327, rel=1e-5)
    assert effective_hits[0] / effective_n[0] == pytest.approx(0.6)


def without_each(cluster: np.ndarray, fit: Callable[[np.ndarray], float]) -> float:
    """Jackknife variance of what `fit` gives for the rows that stay."""
    names = np.unique(cluster)
    everything = fit(np.ones(cluster.size, dtype=bool))
    changes = np.array([fit(cluster != name) for name in names]) - everything
    return float((names.size - 1) / names.size * (changes**2).sum())


def test_clusters_equal_refitting_and_rows_may_repeat() -> None:
    generator = np.random.default_rng(1)
    rows = 300
    cluster, cell = generator.integers(0, 25, rows), generator.integers(0, 3, rows)
    w, y = generator.gamma(3, size=rows), (generator.random(rows) < 0.4).astype(float)
    rate = weights.clustered_rate(w * y, w, cell=cell, cluster=cluster, cells=4, squares=w**2)
    for c in range(3):
        own = cell == c
        value, weight, whose = y[own], w[own], cluster[own]

        def fit(stay: np.ndarray, value=value, weight=weight) -> float:
            return sm.WLS(value[stay], np.ones(stay.sum()), weights=weight[stay]).fit().params[0]

        assert rate.value[c] == pytest.approx(fit(np.ones(value.size, dtype=bool)))
        assert rate.variance[c] == pytest.approx(without_each(whose, fit))
        sizes = np.bincount(whose, weight)
        assert rate.n_clusters[c] == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())
        assert rate.n[c] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert np.isnan(rate.value[3])
    assert np.isnan(rate.effective(z=Z)[1][3])


def test_even_clusters_equal_the_sandwich() -> None:
    generator = np.random.default_rng(3)
    hits = generator.binomial(10, 0.4, 20)
    rate = weights.clustered_rate(
        hits, np.full(20, 10), cell=np.zeros(20, int), cluster=np.arange(20), cells=1
    )
    y = (np.arange(10) < hits[:, None]).astype(float).ravel()
    fit = sm.OLS(y, np.ones(200)).fit(
        cov_type="cluster",
        cov_kwds={"groups": np.repeat(np.arange(20), 10), "use_correction": False},
    )
    assert rate.variance[0] == pytest.approx(fit.bse[0] ** 2 * 20 / 19)
    assert rate.n_clusters[0] == pytest.approx(20)


def test_uneven_clusters_by_hand() -> None:
    # 6 of 10, 1 of 5, 1 of 5: p = 0.4. Without the first 2/10, without either other 7/15.
    # V = 2/3 · (0.2² + 2·0.066667²) = 0.0325926; worth 20² ÷ (100 + 25 + 25) = 2.6667 clusters.
    rate = weights.clustered_rate([6, 1, 1], [10, 5, 5], cell=[0] * 3, cluster=range(3), cells=1)
    assert rate.variance[0] == pytest.approx(0.0325926, abs=1e-7)
    # 0.24 ÷ 0.0325926 = 7.363636 cases, times (1.95996 ÷ t(1.66667))².
    _, n = rate.effective(z=Z)
    assert n[0] == pytest.approx(7.363636 * (Z / student.ppf(0.975, 5 / 3)) ** 2, rel=1e-6)


def test_one_cluster_has_no_interval() -> None:
    rate = weights.clustered_rate([3], [10], cell=[0], cluster=[0], cells=1)
    assert np.isnan(rate.variance[0])
    assert np.isnan(rate.effective(z=Z)[1][0])


def test_clusters_without_hits_count_as_one_case_each() -> None:
    rate = weights.clustered_rate([0] * 4, [10] * 4, cell=[0] * 4, cluster=range(4), cells=1)
    _, n = rate.effective(z=Z)
    assert n[0] == pytest.approx(4 * (Z / 3.182446) ** 2, rel=1e-5)


def test_covariance_of_gaps_equals_refitting_a_regression() -> None:
    generator = np.random.default_rng(2)
    rows = 400
    cluster, group = generator.integers(0, 20, rows), generator.integers(0, 2, rows)
    effect = generator.normal(0, 0.2, 20)[cluster]
    y = (generator.random(rows) < np.clip(0.4 + effect, 0, 1)).astype(float)
    rate = weights.clustered_rate(y, np.ones(rows), cell=group, cluster=cluster, cells=2)
    covariance = weights.clustered_covariance(
        y, np.ones(rows), cell=group, cluster=cluster, reference=[0, 0]
    )
    assert covariance[0] == pytest.approx(rate.variance[0])
    variance = rate.variance.sum() - 2 * covariance[1]

    def fit(stay: np.ndarray) -> float:
        return sm.OLS(y[stay], sm.add_constant(group[stay].astype(float))).fit().params[1]

    assert variance == pytest.approx(without_each(cluster, fit))
    apart = weights.clustered_covariance(
        y, np.ones(rows), cell=group, cluster=cluster + 100 * group, reference=[0, 0]
    )
    assert apart[1] == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("many", [30, 20_000])
def test_the_rest_of_every_group_is_that_of_its_pairs_alone(weighted, nested, many):
    # Each group's rest counted on its own, as one more cell beside the group's. Few clusters are
    # looked at one by one, of many only moments.
    rng = np.random.default_rng(2)
    shape = (2, 3, 2)
    cells = int(np.prod(shape))
    pairs = sorted(
        {
            (int(c), int(k))
            for c, k in zip(rng.integers(0, cells, 7 * many), rng.integers(0, many, 7 * many))
        }
    )
    cell, cluster = np.array(pairs).T
    if nested:
        cluster = cluster * 3 + cell // 2 % 3
    weight = rng.uniform(0.5, 3, cell.size) if weighted else rng.integers(1, 9, cell.size) * 1.0
    hits = np.floor(weight * rng.random(cell.size) * 4) / 4
    squares = weight**2
    rest, shared = rest_of_groups(
        hits, weight, cell=cell, cluster=cluster, squares=squares, shape=shape
    )
    stratum, group, place = np.unravel_index(cell, shape)
    for one in range(3):
        whose = stratum * 2 + place + np.where(group == one, 0, 4)
        rows = {"hit_weight": hits, "weight": weight, "cell": whose, "cluster": cluster}
        expected = weights.clustered_rate(**rows, cells=8, squares=squares)
        both = weights.clustered_covariance(**rows, reference=np.tile(np.arange(4, 8), 2))
        for name in ("value", "variance", "n", "clusters", "n_clusters"):
            found = getattr(rest, name).reshape(shape)[:, one].reshape(-1)
            assert found == pytest.approx(getattr(expected, name)[4:], rel=1e-12, nan_ok=True), name
        assert shared.reshape(shape)[:, one].reshape(-1) == pytest.approx(both[:4], abs=1e-15)


def test_a_group_without_any_other_has_no_rest():
    rest, _ = rest_of_groups(
        [1.0, 2.0], [2.0, 3.0], cell=[0, 0], cluster=[0, 1], squares=None, shape=(1, 2, 1)
    )
    assert np.isnan(rest.value[0])
    assert np.isnan(rest.variance[0])
    assert rest.value[1] == pytest.approx(3 / 5)
