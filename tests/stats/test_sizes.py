"""Root mean squares and spreads with the covariance between their members; worst pairs."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ncx2

from claims.draws import shared_labelers
from evenhand.errors import UsageError
from evenhand.stats.estimate import critical, student_critical
from evenhand.stats.families import sidak
from evenhand.stats.rates import koopman
from evenhand.stats.spread import (
    influence_covariance,
    multinomial_covariance,
    paired_covariance,
    quadratic_moments,
    rate_spread,
    rate_variance,
    root_mean_square,
    spread_moments,
    worst_pair,
)
from evenhand.stats.weights import group_covariance, pair_certainty

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "corrections.json").read_text())
Z = critical(0.95)


@pytest.mark.parametrize("key", ["16.5a_rms_multinomial", "16.5b_rms_guard_active"])
def test_oracle_rms_of_a_multinomial(key) -> None:
    case = ORACLES[key]
    one, two = (np.array(case["inputs"][side]) for side in ("group", "reference"))
    s = multinomial_covariance(one) + multinomial_covariance(two)
    gaps = one / one.sum() - two / two.sum()
    moments = quadratic_moments(gaps, covariance=s)
    assert moments.total == pytest.approx(case["T"], abs=1e-6)
    assert moments.trace == pytest.approx(case["trace"], abs=1e-6)
    assert moments.trace_squared == pytest.approx(case["trace2"], abs=1e-6)
    assert moments.along == pytest.approx(max(case["rho"], case["trace2"] / case["trace"]))
    size = root_mean_square(gaps, covariance=s, z=case["inputs"]["q"])
    for name, field in (("plain", "value"), ("corrected",) * 2, ("low",) * 2, ("high",) * 2):
        assert getattr(size, field) == pytest.approx(case[name], abs=1e-6)


def test_oracle_spread_of_six_classes() -> None:
    case = ORACLES["16.4a_spread_joint_6_classes"]
    q = sidak(0.95, members=case["inputs"]["classes"])
    assert q == pytest.approx(case["q"], abs=1e-6)
    moments = spread_moments(case["inputs"]["hits"], case["inputs"]["n"])
    assert moments.total == pytest.approx(case["T"], abs=1e-6)
    assert moments.trace == pytest.approx(case["trace"], abs=1e-6)
    assert moments.trace_squared == pytest.approx(case["trace2"], abs=1e-6)
    size = rate_spread(case["inputs"]["hits"], case["inputs"]["n"], z=q)
    for name, field in (("plain", "value"), ("corrected",) * 2, ("low",) * 2, ("high",) * 2):
        assert getattr(size, field) == pytest.approx(case[name], abs=1e-6)


def test_oracle_worst_pair_of_six_classes() -> None:
    case = ORACLES["16.4b_worst_pair_joint_6_classes"]
    z = sidak(0.95, members=case["inputs"]["classes"])
    worst = worst_pair(case["inputs"]["hits"], case["inputs"]["n"], z=z, draws=0)
    for name in ("value", "low", "high"):
        assert getattr(worst, name) == pytest.approx(case[name], abs=1e-6)


def test_one_gap_by_hand() -> None:
    # K = 1: T/v is noncentral χ² with 1 degree of freedom exactly, a = v.
    size = root_mean_square([0.3], variances=[0.01], z=2.0)
    low, high = size.low**2 / 0.01, size.high**2 / 0.01
    assert ncx2.cdf(9, 1, low) == pytest.approx(0.9772498680518208)
    assert ncx2.cdf(9, 1, high) == pytest.approx(1 - 0.9772498680518208)
    assert size.null == pytest.approx(0.1)
    assert size.corrected == pytest.approx(np.sqrt(0.08))


gaps_and_noise = st.lists(
    st.tuples(st.floats(-0.6, 0.6), st.floats(1e-6, 0.05)), min_size=1, max_size=10
)


@given(gaps_and_noise, st.floats(0.7, 4.5), st.floats(1e-3, 1e3))
def test_limits_hold_the_corrected_value_and_scale(members, z, factor) -> None:
    gaps, v = (np.array(part) for part in zip(*members))
    size = root_mean_square(gaps, variances=v, z=z)
    slack = 1e-6 * size.null
    assert 0 <= size.low <= size.corrected + slack
    assert size.corrected <= size.high + slack
    assert size.high > 0
    scaled = root_mean_square(factor * gaps, variances=factor**2 * v, z=z)
    assert scaled.low == pytest.approx(factor * size.low, rel=1e-5, abs=1e-5 * factor * size.null)
    assert scaled.high == pytest.approx(factor * size.high, rel=1e-5)
    turned = root_mean_square(-gaps[::-1], covariance=np.diag(v[::-1]), z=z)
    assert turned.low == pytest.approx(size.low, abs=1e-9)
    assert turned.high == pytest.approx(size.high, abs=1e-9)
    wider = root_mean_square(gaps, variances=v, z=z + 0.5)
    assert wider.low <= size.low + slack
    assert wider.high >= size.high - slack


def test_far_from_zero_the_gamma_takes_over_smoothly() -> None:
    # At 400 noncentral χ² and gamma meet: the limits must not jump there.
    gaps = np.linspace(0.19, 0.21, 201)[:, None] * np.ones(3)
    size = root_mean_square(gaps, variances=np.full(3, 0.0003), z=Z)
    steps = np.diff(size.high)
    assert (steps > 0).all()
    assert steps.max() < 3 * np.median(steps)
    huge = root_mean_square([40.0, -30.0], variances=[1e-4, 1e-4], z=Z)
    assert 0.99 < huge.low / huge.value < huge.high / huge.value < 1.01


def test_members_without_variance_are_left_out() -> None:
    whole = root_mean_square([0.1, 0.2], covariance=np.diag([0.01, 0.02]), z=Z)
    s = np.diag([0.01, 0.02, np.nan])
    partial = root_mean_square([0.1, 0.2, 0.3], covariance=s, z=Z)
    assert partial.n_used == 2
    assert partial.high == pytest.approx(float(whole.high))
    nothing = root_mean_square([np.nan], variances=[np.nan], z=Z)
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()
    certain = root_mean_square([0.1], variances=[0.0], z=Z)
    assert certain.value == pytest.approx(0.1)
    assert np.isnan([certain.low, certain.high]).all()


def test_one_of_two_is_asked_for() -> None:
    with pytest.raises(UsageError, match="covariance or their variances, one of the two"):
        quadratic_moments([0.1])


def test_spread_of_two_groups_is_half_their_gap() -> None:
    hits, n = np.array([70.0, 40.0]), np.array([100.0, 80.0])
    smoothed = (hits + 1) / (n + 2)
    v = (smoothed * (1 - smoothed) / (n - 1)).sum()
    spread = rate_spread(hits, n, z=Z)
    gap = root_mean_square([0.2], variances=[v], z=Z)
    for name in ("value", "corrected", "low", "high", "null"):
        assert getattr(spread, name) == pytest.approx(getattr(gap, name) / 2)


def test_spread_leaves_small_groups_out_and_keeps_axes() -> None:
    hits, n = (
        np.array([[5.0, 30, 9, 0], [1.0, 1, 0, 0]]),
        np.array([[10.0, 50, 30, 1], [2, 1, 0, 0]]),
    )
    found = rate_spread(hits, n, z=Z)
    assert found.n_used.tolist() == [3, 1]
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()
    three = rate_spread(hits[0, :3], n[0, :3], z=Z)
    assert found.high[0] == pytest.approx(float(three.high))


def test_shared_clusters_narrow_the_spread() -> None:
    hits, n = [30.0, 40.0, 50.0], [100.0] * 3
    shared = np.full((3, 3), 0.0015)
    assert rate_spread(hits, n, z=Z, covariance=shared).high < rate_spread(hits, n, z=Z).high
    # What all groups share does not show in their distances from each other.
    moments = spread_moments(hits, n, covariance=shared)
    assert moments.trace == pytest.approx(spread_moments(hits, n).trace - 2 * 0.0015)


def test_covariances_against_draws() -> None:
    generator = np.random.default_rng(0)
    p = np.array([0.5, 0.3, 0.2])
    drawn = generator.multinomial(40, p, 20_000)
    assert multinomial_covariance(drawn).mean(0) == pytest.approx(np.cov(drawn.T / 40), abs=2e-4)
    table = np.array([[0.3, 0.1, 0.02], [0.03, 0.25, 0.05], [0.05, 0.0, 0.2]])
    pairs = generator.multinomial(60, table.ravel(), 20_000).reshape(-1, 3, 3)
    gaps = (pairs.sum(-1) - pairs.sum(-2)) / 60
    expected = np.cov(gaps.T) + np.eye(3) / 62**2
    assert paired_covariance(pairs).mean(0) == pytest.approx(expected, abs=2e-4)
    assert np.isnan(multinomial_covariance([1, 0])).all()


def test_influence_covariance_is_that_of_the_mean() -> None:
    x = np.random.default_rng(1).standard_normal((30, 4))
    found = influence_covariance((x - x.mean(0)) / 30)
    assert found == pytest.approx(np.cov(x.T) / 30)
    padded = np.concatenate([(x - x.mean(0)) / 30, np.zeros((5, 4))])
    assert influence_covariance(padded, clusters=30) == pytest.approx(found)


def paired_shares(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares of two groups that differ where classes are largest, as mistaken pairs of them do."""
    p = np.full(classes, 0.2 / (classes - 2))
    p[:2] = 0.4
    other = p.copy()
    other[:2] = 0.55, 0.25
    return other, p


@pytest.mark.parametrize(("classes", "n"), [(4, 300), (28, 3000)])
def test_rms_over_classes_covers(classes, n) -> None:
    """Variances alone cover .87 however many cases there are, as they did before: classes share."""
    generator = np.random.default_rng(classes)
    other, p = paired_shares(classes)
    truth = np.sqrt(((other - p) ** 2).mean())
    one, two = generator.multinomial(n, other, 1500), generator.multinomial(n, p, 1500)
    gaps = one / n - two / n
    s = multinomial_covariance(one) + multinomial_covariance(two)

    def coverage(**noise) -> float:
        size = root_mean_square(gaps, z=Z, **noise)
        return float(((size.low <= truth) & (truth <= size.high)).mean())

    assert 0.935 <= coverage(covariance=s) <= 0.97
    assert coverage(variances=np.diagonal(s, axis1=1, axis2=2)) < 0.89


def test_clustered_selection_covers() -> None:
    """40 clusters of 15, three classes: t(J − 1) in place of z, covariance by influence."""
    generator = np.random.default_rng(9)
    repetitions, clusters, size = 1000, 40, 15
    p = np.array([[0.5, 0.3, 0.2], [0.35, 0.4, 0.25]])
    truth = np.sqrt(((p[0] - p[1]) ** 2).mean())
    shares = np.stack(
        [
            generator.multinomial(size, generator.dirichlet(4 * row, (repetitions, clusters)))
            for row in p
        ]
    )
    shares = shares / size
    gaps = shares[0].mean(1) - shares[1].mean(1)
    s = sum(
        influence_covariance(np.moveaxis(side - side.mean(1, keepdims=True), 1, 0) / clusters)
        for side in shares
    )
    found = root_mean_square(gaps, covariance=s, z=student_critical(Z, freedom=clusters - 1))
    assert 0.93 <= ((found.low <= truth) & (truth <= found.high)).mean() <= 0.99
    rows = sum(multinomial_covariance((side * size).sum(1)) for side in shares)
    naive = root_mean_square(gaps, covariance=rows, z=Z)
    assert ((naive.low <= truth) & (truth <= naive.high)).mean() < 0.9


def test_aggregates_cover_jointly_over_classes() -> None:
    """Twelve classes, each at its own 95 %, as before: spread .52, worst pair .78 of audits."""
    generator = np.random.default_rng(4)
    n = np.array([1200, 1200, 1200])
    p = np.array([[0.1, 0.2, 0.3, 0.5, 0.6, 0.7] * 2, [0.2, 0.3, 0.4, 0.4, 0.5, 0.6] * 2])
    p = np.concatenate([p, p[:1]]).T
    hits = generator.binomial(n, p, (600, 12, 3))

    def joint(found, truth) -> float:
        inside = (found.low <= truth) & (truth <= found.high)
        return float(inside.all(axis=1).mean())

    q = sidak(0.95, members=12)
    assert 0.93 <= joint(rate_spread(hits, n, z=q), p.std(axis=1)) <= 0.98
    assert joint(rate_spread(hits, n, z=Z), p.std(axis=1)) < 0.75
    assert 0.93 <= joint(worst_pair(hits, n, z=q, draws=0), np.ptp(p, axis=1)) <= 1
    assert joint(worst_pair(hits, n, z=Z, draws=0), np.ptp(p, axis=1)) < 0.92


def test_certainty_of_the_worst_pair() -> None:
    hits, n = np.array([60.0, 45.0, 40.0]), np.array([100.0, 100.0, 100.0])
    plain = worst_pair(hits, n, z=Z, draws=0)
    same = worst_pair(hits, n, z=Z, draws=0, certainty=np.ones((3, 3)))
    assert (same.low, same.high) == (plain.low, plain.high)
    v = rate_variance(hits, n)
    shared = 0.5 * np.sqrt(v[:, None] * v)
    surer = worst_pair(hits, n, z=Z, draws=0, certainty=pair_certainty(v, shared))
    assert surer.low > plain.low
    assert surer.high < plain.high
    assert surer.value == plain.value


def test_group_covariance_against_each_pair() -> None:
    generator = np.random.default_rng(2)
    shape = (2, 3, 2)
    cell = np.tile(np.arange(12), 25)
    cluster = np.repeat(np.arange(25), 12)
    weight = generator.integers(1, 6, cell.size).astype(float)
    hits = generator.binomial(weight.astype(int), 0.4).astype(float)
    found = group_covariance(hits, weight, cell=cell, cluster=cluster, shape=shape, axis=1)
    assert found.shape == (2, 2, 3, 3)
    place = np.arange(12).reshape(shape)
    one, other = place[1, 0, 1], place[1, 2, 1]
    rates = [hits[cell == c].sum() / weight[cell == c].sum() for c in (one, other)]
    parts = [
        (hits[cell == c] - rate * weight[cell == c]) / (weight[cell == c].sum() - weight[cell == c])
        for c, rate in zip((one, other), rates)
    ]
    assert found[1, 1, 0, 2] == pytest.approx(24 / 25 * (parts[0] * parts[1]).sum())
    assert found[1, 1, 0, 0] == pytest.approx(24 / 25 * (parts[0] ** 2).sum())
    alone = group_covariance([3], [4], cell=[0], cluster=[0], shape=(1, 1), axis=0)
    assert np.isnan(alone).all()


def test_shared_clusters_in_worst_pair_and_impact_ratio() -> None:
    """Labelers who judge all groups: without what they share intervals cover .99 and more."""
    hits, truth = shared_labelers(np.random.default_rng(11), 300)
    repetitions, labelers, _ = hits.shape
    n = np.full((labelers, 3), 10.0)
    cell = np.tile(np.arange(3), labelers)
    cluster = np.repeat(np.arange(labelers), 3)
    inside = {"surer": 0, "plain": 0, "ratio": 0}
    z = critical(0.95)
    for one in hits:
        shared = group_covariance(
            one.ravel(), n.ravel(), cell=cell, cluster=cluster, shape=(3,), axis=0
        )
        rate = one.sum(0) / n.sum(0)
        v = np.diag(shared)
        effective = rate * (1 - rate) / v
        counts = (rate * effective, effective)
        sure = pair_certainty(v, shared)
        for name, certainty in (("surer", sure), ("plain", None)):
            worst = worst_pair(*counts, z=z, draws=0, certainty=certainty)
            inside[name] += bool(worst.low <= truth.max() - truth.min() <= worst.high)
        low, high = koopman(
            *(side[2] * sure[2, 0] for side in counts),
            *(side[0] * sure[2, 0] for side in counts),
            z=z,
        )
        inside["ratio"] += bool(low <= truth[2] / truth[0] <= high)
    # Tukey's value is for three pairs at once; of one pair it covers .98.
    assert 0.93 <= inside["surer"] / repetitions <= 0.995
    assert inside["plain"] > inside["surer"]
    assert 0.92 <= inside["ratio"] / repetitions <= 0.98
