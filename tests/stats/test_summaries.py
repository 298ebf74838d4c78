"""Summaries over strata whose clusters or labelers span them, and the two tiers of strata."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims.draws import clusters_over_strata, labels_over_strata
from evenhand.errors import DataError
from evenhand.stats.estimate import critical, satterthwaite, student_critical
from evenhand.stats.families import halved_level, sidak
from evenhand.stats.labelers.contrasts import jackknife_contrast, jackknife_over_strata
from evenhand.stats.rates import base_group, newcombe
from evenhand.stats.strata import (
    jackknife_summary,
    mantel_haenszel_gap,
    mantel_haenszel_jackknife,
)

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "corrections.json").read_text())
Z = critical(0.95)


def long_form(n, hits) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """(cluster, stratum, side) tables as the columns of rows that occur, group before reference."""
    n, hits = np.asarray(n, float), np.asarray(hits, float)
    cluster, stratum = np.nonzero(n.sum(-1) > 0)
    columns = [hits[..., 1], n[..., 1], hits[..., 0], n[..., 0]]
    keys = {"stratum": stratum, "cluster": cluster}
    return [column[cluster, stratum] for column in columns], keys


def test_oracle_mantel_haenszel_by_jackknife() -> None:
    case = ORACLES["16.2_mh_jackknife"]
    columns, keys = long_form(case["inputs"]["n"], case["inputs"]["hits"])
    found = mantel_haenszel_jackknife(*columns, **keys, z=Z)
    assert found.value == pytest.approx(case["value"], abs=1e-6)
    assert found.standard_error == pytest.approx(case["se_jackknife"], abs=1e-6)
    assert found.effective == pytest.approx(case["clusters_effective"], abs=1e-6)
    assert found.freedom == pytest.approx(case["df"], abs=1e-6)
    assert (found.low, found.high) == (
        pytest.approx(case["low"], abs=1e-6),
        pytest.approx(case["high"], abs=1e-6),
    )


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 5))
def test_value_and_error_are_those_of_leaving_out(seed, clusters, strata) -> None:
    generator = np.random.default_rng(seed)
    n = generator.integers(0, 8, (clusters, strata, 2)).astype(float)
    hits = generator.binomial(n.astype(int), 0.4).astype(float)
    columns, keys = long_form(n, hits)
    if not len(columns[0]):
        return
    found = mantel_haenszel_jackknife(*columns, **keys, z=Z)

    def whole(keep) -> float:
        k, m = hits[keep].sum(0), n[keep].sum(0)
        k, m = k[(m > 0).all(1)], m[(m > 0).all(1)]
        weight = m.prod(1) / m.sum(1)
        return (
            float(weight @ (k[:, 1] / m[:, 1] - k[:, 0] / m[:, 0]) / weight.sum())
            if len(m)
            else np.nan
        )

    everybody = np.arange(clusters)
    assert float(found.value) == pytest.approx(whole(everybody), nan_ok=True)
    used = [c for c in everybody if (n[c][(n.sum(0) > 0).all(1)]).sum() > 0]
    left = np.array([whole(np.delete(everybody, c)) for c in used])
    if len(used) > 1:
        size = len(used)
        want = np.sqrt((size - 1) / size * ((left - float(found.value)) ** 2).sum())
        assert float(found.standard_error) == pytest.approx(want, nan_ok=True, abs=1e-12)


def test_further_axes_and_split_rows() -> None:
    generator = np.random.default_rng(0)
    n = generator.integers(1, 9, (20, 3, 2)).astype(float)
    hits = generator.binomial(n.astype(int), 0.4).astype(float)
    columns, keys = long_form(n, hits)
    one = mantel_haenszel_jackknife(*columns, **keys, z=Z)
    both = mantel_haenszel_jackknife(
        *(np.stack([c, c * (1 if i % 2 else 0.5)], axis=1) for i, c in enumerate(columns)),
        **keys,
        z=Z,
    )
    assert both.low.shape == (2,)
    assert both.low[0] == pytest.approx(float(one.low))
    # The same rows in two halves, under other names for the clusters.
    twice = [np.concatenate([c / 2, c / 2]) for c in columns]
    again = mantel_haenszel_jackknife(
        *twice,
        stratum=np.tile(keys["stratum"], 2),
        cluster=np.tile([f"c{c}" for c in keys["cluster"]], 2),
        z=Z,
    )
    assert again.high == pytest.approx(float(one.high))


def test_nothing_left_and_one_cluster() -> None:
    # Cluster 1 alone has the reference: without it there is no gap.
    found = mantel_haenszel_jackknife(
        [3, 2], [5, 5], [0, 1], [0, 4], stratum=[0, 0], cluster=[0, 1], z=Z
    )
    assert found.value == pytest.approx(0.25)
    assert np.isnan([found.standard_error, found.low, found.high]).all()
    alone = mantel_haenszel_jackknife([3], [5], [1], [4], stratum=[0], cluster=[0], z=Z)
    assert np.isnan([alone.low, alone.freedom]).all()
    empty = mantel_haenszel_jackknife([3], [5], [0], [0], stratum=[0], cluster=[0], z=Z)
    assert np.isnan(empty.value)


def test_jackknife_of_a_mean_is_its_t_interval() -> None:
    x = np.random.default_rng(1).standard_normal(12)
    left = (x.sum() - x) / 11
    found = jackknife_summary(x.mean(), left, sizes=np.full(12, 7), z=Z)
    assert found.freedom == 11
    half = 2.200985 * x.std(ddof=1) / np.sqrt(12)
    assert found.high - x.mean() == pytest.approx(half, rel=1e-6)


def test_student_and_satterthwaite_by_hand() -> None:
    assert float(student_critical(2.5758293, freedom=10)) == pytest.approx(3.169273, abs=1e-5)
    assert np.isnan(student_critical(2.0, freedom=0))
    # (1 + 4)²/(1/5 + 16/20) = 25.
    assert float(satterthwaite(1.0, 2.0, freedom=5, freedom_reference=20)) == pytest.approx(25)


@pytest.mark.parametrize("sizes", ["even", "uneven"])
@pytest.mark.parametrize("crossing", [True, False])
def test_clusters_that_span_strata_are_covered(sizes, crossing) -> None:
    """The score interval, which takes rows for independent, covers less than .90 of the same."""
    table = clusters_over_strata(
        np.random.default_rng(7), 1000, clusters=15, uneven=sizes == "uneven", crossing=crossing
    )
    found = mantel_haenszel_jackknife(
        *table.columns, stratum=table.stratum, cluster=table.cluster, z=Z
    )
    truth = table.truth
    assert 0.925 <= ((found.low <= truth) & (truth <= found.high)).mean() <= 0.985
    k, m = table.hits.sum(1), table.n.sum(1)
    score = mantel_haenszel_gap(k[..., 1], m[..., 1], k[..., 0], m[..., 0], z=Z)
    assert ((score.low <= truth) & (truth <= score.high)).mean() < 0.9


def test_labelers_who_judge_in_every_stratum_are_covered() -> None:
    """Strata weighed by precision, as if independent, covered .76 of the criterion gap."""
    generator = np.random.default_rng(12)
    inside = {"all": 0, "apart": 0}
    repetitions = 200
    # A labeler's bar moves the pooled rate, whose own criterion is the mean one shrunk.
    truth = 0.3 / np.sqrt(1 + 0.35**2)
    for _ in range(repetitions):
        counts = labels_over_strata(generator, labelers=12, strata=4, spread=0.35)
        found = jackknife_over_strata(counts, weights=np.ones(4), z=Z)["criterion"]
        inside["all"] += bool(found.low <= truth <= found.high)
        apart = [jackknife_contrast(counts[:, s]).criterion for s in range(4)]
        error = np.sqrt(sum(c.standard_error**2 for c in apart)) / 4
        centre = np.mean([c.value for c in apart])
        inside["apart"] += bool(abs(centre - truth) <= Z * error)
    assert 0.92 <= inside["all"] / repetitions <= 0.99
    assert inside["apart"] / repetitions < 0.88


def test_one_stratum_is_the_plain_jackknife() -> None:
    counts = labels_over_strata(np.random.default_rng(3), labelers=9, strata=1, spread=0.3)
    found = jackknife_over_strata(
        counts, weights=[2.0], prevalence_part=0.4, prevalence_error=0.1, z=Z
    )
    plain = jackknife_contrast(counts[:, 0], prevalence=[0.3, 0.3])
    for name in ("criterion", "separation"):
        one = getattr(plain, name)
        assert found[name].value == pytest.approx(float(one.value))
        # Centred on the whole here, on the mean of the left-out there: alike to a few per cent.
        assert found[name].standard_error == pytest.approx(float(one.standard_error), rel=0.02)
    costs = found["log_cost_ratio"]
    assert costs.value == pytest.approx(float(plain.behaviour.value) + 0.4)
    assert costs.standard_error > 0.1
    assert costs.freedom > found["criterion"].freedom


def test_a_stratum_only_one_labeler_filled_is_left_out_with_them() -> None:
    counts = labels_over_strata(np.random.default_rng(4), labelers=6, strata=2, spread=0.2)
    counts[1:, 1] = 0
    found = jackknife_over_strata(counts, weights=[1.0, 1.0], z=Z)["criterion"]
    assert np.isfinite(found.standard_error)


def test_the_words_for_a_wrong_shape() -> None:
    with pytest.raises(DataError, match=r"counts have shape \(3, 2, 4\)\. Give \(labelers, strata"):
        jackknife_over_strata(np.ones((3, 2, 4)), weights=[1.0], z=Z)


def test_oracle_two_tiers() -> None:
    case = ORACLES["16.3_q_strata"]
    per, strata = case["inputs"]["comparisons_per_stratum"], case["inputs"]["strata"]
    half = halved_level(0.95)
    assert sidak(half, members=strata * per) == pytest.approx(case["q_rows_half"], abs=1e-6)
    assert sidak(half, members=per) == pytest.approx(case["q_overall_half"], abs=1e-6)
    assert sidak(0.95, members=strata * per) == pytest.approx(case["q_rows"], abs=1e-6)
    assert halved_level(0.9) == pytest.approx(0.95)


def test_no_gap_in_twenty_strata_is_no_headline() -> None:
    """Each stratum with its own family, as before: a gap at the limit is 'found' in half."""
    generator = np.random.default_rng(8)
    repetitions, strata, n = 600, 20, 400
    half = halved_level(0.95)
    # Exactly at the limit of 0.05 everywhere.
    k = generator.binomial(n, np.array([0.35, 0.30]), (repetitions, strata, 2))

    def outside(q: float) -> float:
        low, high = newcombe(k[..., 0], n, k[..., 1], n, z=q)
        return float(((low > 0.05) | (high < -0.05)).any(axis=1).mean())

    over = k.sum(1)
    low, _ = newcombe(over[:, 0], strata * n, over[:, 1], strata * n, z=sidak(half, members=1))
    whole = low > 0.05
    rows = newcombe(k[..., 0], n, k[..., 1], n, z=sidak(half, members=strata))[0] > 0.05
    assert (rows.any(axis=1) | whole).mean() <= 0.05
    assert outside(Z) > 0.3


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3000)), min_size=1, max_size=8),
)
def test_the_base_is_the_highest_of_the_large(groups) -> None:
    rate, n = (np.array(x, float) for x in zip(*groups))
    base, eligible = base_group(rate, n)
    assert (eligible == ((n >= 50) & (n >= 0.02 * n.sum()))).all()
    if eligible.any():
        assert eligible[base]
        assert rate[base] == rate[eligible].max()
    else:
        assert base == -1


def test_a_tiny_highest_group_no_longer_makes_an_impact() -> None:
    """Equal rates, one group of 18: against it another falls below 0.8 in a quarter of audits."""
    generator = np.random.default_rng(2)
    n = np.array([18, 700, 900, 382])
    hits = generator.binomial(n, 0.3, (2000, 4))
    rate = hits / n
    base, _ = base_group(rate, np.broadcast_to(n, rate.shape))

    def below(which) -> float:
        top = np.take_along_axis(rate, which[:, None], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float((rate[:, 1:] / top < 0.8).any(axis=1).mean())

    assert below(rate.argmax(axis=1)) > 0.2
    assert below(base) < 0.06
    assert (base > 0).all()
