"""Local regression at a threshold: hand values, oracles, peers, properties and coverage."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from evenhand.errors import DataError, UsageError
from evenhand.stats.calibration import (
    Monotonicity,
    fall_tests,
    isotonic_fit,
    prevalence_bins,
)
from evenhand.stats.estimate import contrast
from evenhand.stats.thresholds.costs import cost_ratio_interval
from evenhand.stats.thresholds.histogram import (
    BANDWIDTH_CONSTANT,
    TRICUBE_ROUGHNESS,
    TRICUBE_SECOND_MOMENT,
    ScoreGrid,
    ScoreHistogram,
    _rule_of_thumb,
    _rules_of_thumb,
    leverage_fit,
    rule_of_thumb_bandwidth,
    score_histogram,
)
from evenhand.stats.thresholds.implied import (
    bandwidth_curve,
    cost_ratio_gap,
    discrete_margins,
    family_limits,
    implied_threshold_gap,
    implied_thresholds,
)
from evenhand.stats.thresholds.local import (
    cluster_fit,
    local_fit,
    local_moments,
    tricube,
)

HERE = Path(__file__).parent.parent / "oracles"
ORACLES = json.loads((HERE / "oracles.json").read_text())
MONTE_CARLO = json.loads((HERE / "monte_carlo.json").read_text())
LINE = ORACLES["3.4_local_linear"]
TRUTH = float(expit(8 * (0.5 - 0.55)))


def generator(rng, n):
    score = rng.beta(1.2, 4, n)
    return score, (rng.random(n) < expit(8 * (score - 0.55))).astype(int)


def worked():
    return local_moments(LINE["scores"], truth=LINE["y"], threshold=0.5, bandwidth=0.15)


class TestOracles:
    def test_local_linear(self):
        # Rows at |s−t| = 0.15 exactly have weight (1−1³)³ = 0 and count for nothing.
        sums = worked()
        fit = local_fit(sums)
        assert fit.value[0] == pytest.approx(LINE["beta0"], abs=1e-9)
        assert fit.coefficients[0, 1] / 0.15 == pytest.approx(LINE["beta1"], abs=1e-8)
        assert sums.n[0] == LINE["n_in"]
        assert sums.n_effective[0] == pytest.approx(LINE["n_eff"], abs=1e-7)
        assert fit.standard_error[0] == pytest.approx(LINE["se_hc1"], abs=1e-9)
        plain = local_fit(sums, robust="HC0")
        assert plain.standard_error[0] == pytest.approx(LINE["se_hc0"], abs=1e-9)

    def test_weights(self):
        u = (np.array(LINE["scores"]) - 0.5) / 0.15
        weights = tricube(u)
        assert weights[weights > 1e-12].round(6).tolist() == LINE["weights_nonzero"]

    def test_local_quadratic(self):
        fit = local_fit(worked(), degree=2)
        assert fit.value[0] == pytest.approx(LINE["local_quadratic_beta0"], abs=1e-9)
        assert fit.standard_error[0] == pytest.approx(LINE["local_quadratic_se_hc1"], abs=1e-9)

    def test_bias_corrected_linear_is_the_quadratic(self):
        want = ORACLES["3.5b_rbc_identity"]
        sums = worked()
        linear, quadratic = local_fit(sums), local_fit(sums, degree=2)
        curvature = quadratic.coefficients[0, 2] / 0.15**2
        loading = (linear.inverse[0] @ sums.weight[0, 2:4])[0] * 0.15**2
        assert curvature == pytest.approx(want["beta2_LQ"], abs=1e-7)
        assert loading == pytest.approx(want["bias_loading"], abs=1e-9)
        corrected = linear.value[0] - loading * curvature
        assert corrected == pytest.approx(want["beta0_bias_corrected"], abs=1e-9)
        assert corrected == pytest.approx(quadratic.value[0], abs=1e-12)

    def test_leverage_errors_from_the_histogram(self):
        cells = ScoreHistogram.of_counts(
            np.stack([1 - np.array(LINE["y"]), LINE["y"]], axis=1)[None],
            positions=LINE["scores"],
            thresholds=0.5,
        )
        fit = leverage_fit(cells, bandwidth=0.15)
        assert fit.standard_error[0] == pytest.approx(LINE["se_hc3"], abs=1e-9)

    def test_cost_ratio(self):
        want = ORACLES["3.4b_cost_ratio_delta"]
        found = cost_ratio_interval(want["p"], standard_error=want["se_p"])
        assert found.log_value == pytest.approx(want["log_c"], abs=1e-9)
        assert found.log_standard_error == pytest.approx(want["se_log_c"], abs=1e-8)
        assert [found.low, found.high] == pytest.approx(want["ci_c"], abs=1e-8)
        assert found.value == pytest.approx(LINE["cost_ratio"], abs=1e-8)

    def test_group_contrast(self):
        # The oracle prints B's estimate and error but not its rows. Of the 2¹⁵ series of truths
        # in the window only this one and its mirror image have both.
        want = ORACLES["3.4c_group_contrast"]
        truth = [0, 0, 0, *[0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 1], 0, 0, 0]
        a = local_fit(worked())
        b = local_fit(local_moments(LINE["scores"], truth=truth, threshold=0.5, bandwidth=0.15))
        assert b.value[0] == pytest.approx(want["beta0_B"], abs=1e-9)
        found = contrast(
            a.value[0],
            b.value[0],
            standard_error=a.standard_error[0],
            standard_error_reference=b.standard_error[0],
        )
        assert found.value == pytest.approx(want["diff"], abs=1e-9)
        assert found.standard_error == pytest.approx(want["se"], abs=1e-9)
        assert found.statistic == pytest.approx(want["z"], abs=1e-7)
        assert found.p == pytest.approx(want["p"], abs=1e-8)

    def test_bandwidth_constants(self):
        want = ORACLES["3.5_bandwidth"]
        assert pytest.approx(want["mu2"]) == TRICUBE_SECOND_MOMENT
        assert pytest.approx(want["R"]) == TRICUBE_ROUGHNESS
        assert pytest.approx(want["const"]) == BANDWIDTH_CONSTANT
        u = np.linspace(-1, 1, 200001)
        kernel = tricube(u) * want["tricube_norm"]
        assert np.trapezoid(kernel, u) == pytest.approx(1, abs=1e-8)
        assert np.trapezoid(kernel * u**2, u) == pytest.approx(TRICUBE_SECOND_MOMENT, abs=1e-8)
        assert np.trapezoid(kernel**2, u) == pytest.approx(TRICUBE_ROUGHNESS, abs=1e-8)
        example = want["example"]
        noise = example["sig2"] / (example["m2"] ** 2 * example["f_at_t"] * example["n"])
        assert BANDWIDTH_CONSTANT * noise**0.2 == pytest.approx(example["h"], abs=1e-9)

    def test_isotonic(self):
        want = ORACLES["3.15_pava"]
        assert isotonic_fit(want["x"]).tolist() == pytest.approx(want["fit"])


class TestAgainstStatsmodels:
    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(4)
        score, truth = generator(rng, 600)
        return score, truth, rng.integers(0, 40, 600), rng.uniform(0.5, 3, 600)

    def fit(self, score, truth, weights, degree):
        import statsmodels.api as sm

        u = (score - 0.4) / 0.2
        near = np.abs(u) < 1
        design = u[near, None] ** np.arange(degree + 1)
        return sm.WLS(truth[near], design, weights=tricube(u[near]) * weights[near]), near

    @pytest.mark.parametrize("degree", [1, 2])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_sandwich(self, data, degree, weighted):
        score, truth, _, omega = data
        omega = omega if weighted else np.ones_like(omega)
        model, _ = self.fit(score, truth, omega, degree)
        sums = local_moments(score, truth=truth, threshold=0.4, bandwidth=0.2, weights=omega)
        for kind in ("HC0", "HC1"):
            peer = model.fit(cov_type=kind)
            fit = local_fit(sums, degree=degree, robust=kind)
            assert fit.coefficients[0] == pytest.approx(peer.params, abs=1e-10)
            assert fit.covariance[0] == pytest.approx(peer.cov_params(), abs=1e-10)

    @pytest.mark.parametrize("degree", [1, 2])
    def test_leverage(self, data, degree):
        score, truth, _, omega = data
        model, _ = self.fit(score, truth, np.ones_like(omega), degree)
        order = np.argsort(score)
        counts = np.stack([1 - truth[order], truth[order]], axis=1)[None]
        cells = ScoreHistogram.of_counts(counts, positions=score[order], thresholds=0.4)
        fit = leverage_fit(cells, bandwidth=0.2, degree=degree)
        assert fit.covariance[0] == pytest.approx(model.fit(cov_type="HC3").cov_params(), abs=1e-10)

    @pytest.mark.parametrize("degree", [1, 2])
    def test_clusters(self, data, degree):
        score, truth, producer, _ = data
        model, near = self.fit(score, truth, np.ones(600), degree)
        peer = model.fit(
            cov_type="cluster",
            cov_kwds={"groups": producer[near], "use_correction": False},
        )
        present = np.unique(producer[near])
        parts = [
            local_moments(
                score[producer == c], truth=truth[producer == c], threshold=0.4, bandwidth=0.2
            )
            for c in present
        ]
        fit = cluster_fit(
            np.concatenate([p.weight for p in parts]),
            outcome=np.concatenate([p.outcome for p in parts]),
            groups=np.zeros(len(parts), dtype=int),
            clusters=present,
            degree=degree,
        )
        c = len(present)
        assert fit.value[0] == pytest.approx(peer.params[0], abs=1e-10)
        assert fit.covariance[0, 0] == pytest.approx(
            peer.cov_params()[0, 0] * c / (c - 1), abs=1e-10
        )

    def test_clusters_of_one_row_are_the_plain_sandwich(self, data):
        score, truth, *_ = data
        parts = [
            local_moments([s], truth=[y], threshold=0.4, bandwidth=0.2)
            for s, y in zip(score, truth)
        ]
        fit = cluster_fit(
            np.concatenate([p.weight for p in parts]),
            outcome=np.concatenate([p.outcome for p in parts]),
            groups=np.zeros(600, dtype=int),
            clusters=np.arange(600),
        )
        sums = local_moments(score, truth=truth, threshold=0.4, bandwidth=0.2)
        plain = local_fit(sums, robust="HC0")
        n = sums.n[0]
        assert fit.covariance[0, 0] == pytest.approx(plain.covariance[0, 0, 0] * n / (n - 1))

    def test_groups_that_share_clusters_covary(self):
        # Group 1 is group 0 over again, so the two are perfectly correlated.
        weight = np.array([[1.0, 0.2, 0.5], [1, -0.3, 0.4], [0.5, 0.1, 0.3]] * 2)
        outcome = np.array([[1.0, 0.3], [0, 0], [0.5, 0.1]] * 2)
        fit = cluster_fit(
            weight, outcome=outcome, groups=[0, 0, 0, 1, 1, 1], clusters=[0, 1, 2] * 2
        )
        assert fit.covariance == pytest.approx(np.full((2, 2), fit.covariance[0, 0]))


def cluster_sums(score, truth, cluster, *, threshold, bandwidth):
    """Σwuᵏ (0..4) and Σwyuᵏ (0..2) of every cluster, from rows."""
    u = (score - threshold) / bandwidth
    powers = tricube(u)[:, None] * u[:, None] ** np.arange(5)
    size = int(cluster.max()) + 1
    weight, outcome = np.zeros((size, 5)), np.zeros((size, 3))
    np.add.at(weight, cluster, powers)
    np.add.at(outcome, cluster, powers[:, :3] * truth[:, None])
    return weight, outcome


class TestFewClusters:
    @pytest.mark.parametrize("degree", [1, 2])
    def test_the_jackknife_leaves_each_cluster_out(self, degree):
        rng = np.random.default_rng(3)
        score, cluster = rng.random(400), np.repeat(np.arange(8), 50)
        truth = rng.random(400) < score
        near = {"threshold": 0.5, "bandwidth": 0.3}
        weight, outcome = cluster_sums(score, truth, cluster, **near)
        fit = cluster_fit(
            weight, outcome=outcome, groups=[0] * 8, clusters=range(8), degree=degree,
            jackknife=True,
        )  # fmt: skip
        whole = local_fit(local_moments(score, truth=truth, **near), degree=degree).value[0]
        left = [
            local_fit(
                local_moments(score[cluster != c], truth=truth[cluster != c], **near),
                degree=degree,
            ).value[0]
            for c in range(8)
        ]
        want = 7 / 8 * ((np.array(left) - whole) ** 2).sum()
        assert fit.value[0] == pytest.approx(whole, abs=1e-10)
        assert fit.covariance[0, 0] == pytest.approx(want, rel=1e-9)
        # The value is linear in the truths: a cluster of ones alone gives what it weighs in it.
        ones = [
            local_fit(
                local_moments(score, truth=(cluster == c).astype(float), **near), degree=degree
            ).value[0]
            for c in range(8)
        ]
        assert sum(ones) == pytest.approx(1)
        assert fit.effective[0] == pytest.approx(1 / (np.array(ones) ** 2).sum())

    def test_a_cluster_that_cannot_be_left_out_keeps_its_plain_residual(self):
        # All scores but one cluster's are equal: without it there is no slope to fit.
        weight = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.5, 0.6]])
        fit = cluster_fit(
            weight,
            outcome=[[1, 0], [0, 0], [1.0, 0.4]],
            groups=[0] * 3,
            clusters=range(3),
            jackknife=True,
        )
        assert np.isfinite(fit.covariance).all()

    def test_intervals_cover_with_twenty_clusters(self):
        # Clusters of 200 rows whose scores lie together, so that few of them are near the
        # threshold. The plain sandwich with normal quantiles covers 82 %.
        rng = np.random.default_rng(5)
        nodes, mass = np.polynomial.hermite_e.hermegauss(40)
        planted = float((expit(8 * (0.4 - 0.55) + 0.5 * nodes) * mass).sum() / mass.sum())
        cluster = np.repeat(np.arange(20), 200)
        hits, repeats = 0, 300
        for _ in range(repeats):
            own = rng.beta(1.2, 4, 20)[cluster]
            score = 0.7 * own + 0.3 * rng.beta(1.2, 4, cluster.size)
            lean = rng.normal(0, 0.5, 20)[cluster]
            truth = rng.random(cluster.size) < expit(8 * (score - 0.55) + lean)
            near = {"threshold": 0.4, "bandwidth": 0.25}
            weight, outcome = cluster_sums(score, truth, cluster, **near)
            fits = {
                name: cluster_fit(
                    weight, outcome=outcome, groups=[0] * 20, clusters=range(20), degree=degree,
                    jackknife=True,
                )
                for name, degree in (("linear_clusters", 1), ("quadratic_clusters", 2))
            }  # fmt: skip
            found = implied_thresholds(local_moments(score, truth=truth, **near), **near, **fits)
            hits += found.low[0] <= planted <= found.high[0]
        assert 0.92 <= hits / repeats <= 0.99


def resampled_values(cells, *, bandwidth, draws, degree):
    """The fit at the threshold in samples drawn again: cells have the law of rows."""
    rng = np.random.default_rng(0)
    counts = cells.counts[0]
    total = int(counts.sum())
    drawn = rng.multinomial(total, counts.ravel() / total, size=draws)
    values = []
    for part in np.array_split(drawn.reshape(draws, *counts.shape), max(1, draws // 20)):
        again = ScoreHistogram.of_counts(part, positions=cells.positions[0], thresholds=0.5)
        values.append(local_fit(again.moments(bandwidth), degree=degree).value)
    return np.concatenate(values)


class TestHistogram:
    def test_close_to_rows(self):
        score, truth = generator(np.random.default_rng(1), 200_000)
        score = np.where(np.arange(score.size) % 997 == 0, 0.5, score)
        cells = score_histogram(score, truth=truth, threshold=0.5)
        rows = local_moments(score, truth=truth, threshold=0.5, bandwidth=0.12)
        for degree in (1, 2):
            a = local_fit(rows, degree=degree)
            b = local_fit(cells.moments(0.12), degree=degree)
            assert b.value[0] == pytest.approx(a.value[0], abs=2e-5)
            assert b.standard_error[0] == pytest.approx(a.standard_error[0], abs=1e-5)
        assert cells.moments(0.12).n[0] == pytest.approx(rows.n[0], rel=6e-3)

    def test_threshold_has_a_cell_of_its_own(self):
        grid = ScoreGrid.over(0, 1, threshold=0.3, bins=10)
        assert grid.cells == 11
        assert grid.cell([0.0, 0.2999, 0.3, 0.3001, 1.0]).tolist() == [0, 2, 3, 4, 10]
        assert grid.positions[3] == 0.3

    @given(st.floats(0, 1), st.integers(2, 60), st.lists(st.floats(0, 1), min_size=1, max_size=30))
    def test_every_score_lies_in_its_cell(self, threshold, bins, scores):
        grid = ScoreGrid.over(0.0, 1.0, threshold=threshold, bins=bins)
        cell = grid.cell(scores)
        at = grid.positions[cell]
        side = np.sign(np.array(scores) - threshold)
        assert np.all(np.sign(at - threshold) == side)
        widest = max(grid.threshold / max(grid.below, 1), (1 - threshold) / max(grid.above, 1))
        assert np.all(np.abs(at - scores) <= widest / 2 + 1e-9)

    def test_threshold_at_an_end(self):
        grid = ScoreGrid.over(0.2, 0.9, threshold=0.2, bins=5)
        assert (grid.below, grid.above, grid.cells) == (0, 5, 6)
        assert ScoreGrid.over(0.4, 0.4, threshold=0.4).cells == 1

    def test_sampling_weights(self):
        score, truth = generator(np.random.default_rng(2), 3000)
        omega = np.where(score > 0.3, 1.0, 4.0)
        cells = score_histogram(score, truth=truth, threshold=0.3, weights=omega)
        rows = local_moments(score, truth=truth, threshold=0.3, bandwidth=0.15, weights=omega)
        a, b = local_fit(rows), local_fit(cells.moments(0.15))
        assert b.value[0] == pytest.approx(a.value[0], abs=1e-3)
        assert b.standard_error[0] == pytest.approx(a.standard_error[0], abs=1e-4)

    def test_bootstrap_agrees_with_the_sandwich(self):
        score, truth = generator(np.random.default_rng(3), 4000)
        cells = score_histogram(score, truth=truth, threshold=0.5)
        for degree in (1, 2):
            draws = resampled_values(cells, bandwidth=0.15, draws=400, degree=degree)
            fit = local_fit(cells.moments(0.15), degree=degree)
            assert draws.std() == pytest.approx(fit.standard_error[0], rel=0.1)
            assert draws.mean() == pytest.approx(fit.value[0], abs=4e-3)

    def test_rule_of_thumb_against_a_direct_computation(self):
        rng = np.random.default_rng(7)
        score = np.round(rng.random(2000), 2)
        truth = (rng.random(2000) < expit(6 * (score - 0.5))).astype(int)
        values, inverse = np.unique(score, return_inverse=True)
        counts = np.zeros((1, values.size, 2))
        np.add.at(counts[0], (inverse, truth), 1)
        cells = ScoreHistogram.of_counts(counts, positions=values, thresholds=0.5)
        quartic = np.polynomial.Polynomial.fit(score, truth, 4).convert()
        rest = ((truth - quartic(score)) ** 2).sum() / (2000 - 5)
        low, high = np.quantile(score, [0.05, 0.95], method="inverted_cdf")
        bend = (quartic.deriv(2)(score[(score >= low) & (score <= high)]) ** 2).sum()
        want = 2.026205598 * (rest * (high - low) / bend) ** 0.2
        assert rule_of_thumb_bandwidth(cells)[0] == pytest.approx(want, rel=1e-6)

    @pytest.mark.parametrize("power", [0, 4])
    def test_rules_of_thumb_from_sums_are_those_of_least_squares(self, power):
        rng = np.random.default_rng(11)
        where = np.sort(rng.random(400)) ** (1 + power)
        n = rng.integers(0, 30, (150, 400)) * (rng.random((150, 1)) > rng.random((150, 400)))
        yes = rng.binomial(n, expit(6 * (where - 0.4)))
        counts = np.stack([n - yes, yes], axis=-1).astype(float)
        counts[0], counts[1, 4:], counts[2, :, 0] = 0.0, 0.0, 0.0
        places = np.broadcast_to(where, n.shape)
        sums = _rules_of_thumb(places, counts, 0.9)
        squares = np.array([_rule_of_thumb(*each, 0.9) for each in zip(places, counts)])
        told = np.isfinite(sums)
        assert told.sum() > (20 if power else 140)
        assert not told[:2].any()
        np.testing.assert_allclose(sums[told], squares[told], rtol=1e-11)
        # What sums do not tell, least squares do.
        cells = ScoreHistogram.of_counts(counts, positions=where, thresholds=0.5)
        np.testing.assert_allclose(rule_of_thumb_bandwidth(cells), squares, rtol=1e-11)

    def test_rule_of_thumb_without_curvature_or_scores(self):
        # Two distinct scores fit a line only: no curvature, so the whole range.
        cells = ScoreHistogram.of_counts(
            [[[5, 1], [2, 4]], [[5, 1], [0, 0]]], positions=[0.2, 0.7], thresholds=0.5
        )
        found = rule_of_thumb_bandwidth(cells)
        assert found[0] == pytest.approx(0.5)
        assert np.isnan(found[1])

    def test_words(self):
        with pytest.raises(DataError, match=r"^counts have shape \(2, 2\)\. Give \(groups, cells"):
            ScoreHistogram.of_counts([[1, 2], [3, 4]], positions=[0, 1], thresholds=0.5)
        with pytest.raises(DataError, match="need both their sums and their sums of squares"):
            ScoreHistogram.of_counts(
                np.ones((1, 2, 2)), positions=[0, 1], thresholds=0.5, weights=np.ones((1, 2, 2))
            )
        with pytest.raises(DataError, match=r"^There are no scores to count"):
            score_histogram([], truth=[], threshold=0.5)
        with pytest.raises(UsageError, match=r"^bandwidth=-0.1 is not above 0\."):
            local_moments([0.5], truth=[1], threshold=0.5, bandwidth=-0.1)
        with pytest.raises(UsageError, match=r"^degree=3 needs sums that were not taken"):
            local_fit(worked(), degree=3)
        with pytest.raises(DataError, match="degree 2 needs sums of powers 0 to 4; 3 were given"):
            cluster_fit([[1, 0, 1]], outcome=[[1, 0]], groups=[0], clusters=[0], degree=2)


def implied(score, truth, *, threshold=0.5, bandwidth=0.2, **rest):
    sums = local_moments(score, truth=truth, threshold=threshold, bandwidth=bandwidth, **rest)
    return implied_thresholds(sums, threshold=threshold, bandwidth=bandwidth)


class TestImplied:
    def test_value_interval_and_cost_ratio_agree(self):
        score, truth = generator(np.random.default_rng(0), 4000)
        found = implied(score, truth)
        assert found.undefined == (None,)
        assert found.tellable == (True,)
        assert found.cost_ratio[0] == pytest.approx(1 / found.value[0] - 1)
        assert found.cost_ratio_low[0] == pytest.approx(1 / found.high[0] - 1)
        assert found.cost_ratio_high[0] == pytest.approx(1 / found.low[0] - 1)
        assert found.slope[0] > 0
        low, high = family_limits(found, quantile=1.959963984540054)
        assert (low[0], high[0]) == (pytest.approx(found.low[0]), pytest.approx(found.high[0]))

    def test_no_score_within_the_bandwidth(self):
        found = implied([0.1, 0.2], [0, 1], bandwidth=0.1)
        assert found.undefined == ("no score lies within the bandwidth of the threshold",)
        assert np.isnan(found.value[0])
        assert found.tellable == (False,)

    def test_one_distinct_score(self):
        found = implied([0.45] * 50, [0, 1] * 25)
        assert found.undefined == (
            "fewer than 2 distinct scores lie within the bandwidth of the threshold",
        )

    @pytest.mark.parametrize("truth", [0, 1])
    def test_all_truths_equal(self, truth):
        found = implied(np.linspace(0.4, 0.6, 50), [truth] * 50)
        assert found.undefined == (f"all truths within the bandwidth are {truth}",)

    def test_estimate_outside_zero_and_one(self):
        score = np.linspace(0.501, 0.69, 200)
        found = implied(score, score > 0.55)
        assert found.raw[0] < 0
        assert found.undefined == (f"the estimate {found.raw[0]:.3f} lies outside (0, 1)",)
        assert found.clipped[0] == 0
        assert np.isnan(found.cost_ratio[0])

    def test_few_rows_are_shown_and_cannot_be_told(self):
        found = implied(LINE["scores"], LINE["y"], bandwidth=0.15)
        assert found.value[0] == pytest.approx(LINE["beta0"])
        assert found.tellable == (False,)
        assert found.warnings[0] == (
            "only 10.6 effective rows near the threshold; 30 are needed to tell",
        )

    def test_one_sided(self):
        score, truth = generator(np.random.default_rng(0), 20_000)
        above, below = implied(score[score >= 0.5], truth[score >= 0.5]), None
        assert above.warnings[0] == (
            "no truth is known below the threshold: a one-sided boundary fit",
        )
        assert abs(above.value[0] - TRUTH) < 4 * above.standard_error[0]
        below = implied(score[score < 0.5], truth[score < 0.5])
        assert below.warnings[0] == (
            "no truth is known above the threshold: a one-sided boundary fit",
        )

    def test_interval_that_cannot_be_formed(self):
        # Two distinct scores carry a line but no parabola.
        found = implied([0.45] * 40 + [0.55] * 40, [0, 1] * 40)
        assert found.value[0] == pytest.approx(0.5)
        assert np.isnan(found.low[0])
        assert "there is no interval" in found.warnings[0][0]
        assert found.tellable == (False,)

    def test_groups_have_their_own_thresholds(self):
        score, truth = generator(np.random.default_rng(0), 8000)
        groups = np.arange(8000) % 2
        together = implied(
            score, truth, groups=groups, threshold=np.array([0.5, 0.6]), bandwidth=[0.2, 0.25]
        )
        alone = implied(score[groups == 1], truth[groups == 1], threshold=0.6, bandwidth=0.25)
        assert together.value[1] == pytest.approx(alone.value[0], abs=1e-12)
        assert together.high[1] == pytest.approx(alone.high[0], abs=1e-12)

    def test_contrasts(self):
        rng = np.random.default_rng(5)
        score, truth = generator(rng, 8000)
        groups = np.arange(8000) % 2
        found = implied(score, truth, groups=groups)
        gap = implied_threshold_gap(found, group=[0, 1], reference=[1, 0])
        assert gap.value[0] == pytest.approx(found.centre[0] - found.centre[1])
        assert gap.value[0] == -gap.value[1]
        assert gap.low[0] == pytest.approx(-gap.high[1])
        assert gap.p[0] == pytest.approx(gap.p[1])
        ratio = cost_ratio_gap(found, group=0, reference=1)
        centres = found.cost_ratio_centre
        assert np.exp(ratio.value) == pytest.approx(centres[0] / centres[1])
        assert ratio.standard_error == pytest.approx(np.hypot(*found.log_error))

    def test_clusters_enter_errors_and_contrasts(self):
        rng = np.random.default_rng(6)
        score, truth = generator(rng, 3000)
        # Every row three times over: clustered errors must not believe in the copies.
        score3, truth3 = np.repeat(score, 3), np.repeat(truth, 3)
        parts = [
            local_moments(score[i : i + 1], truth=truth[i : i + 1], threshold=0.5, bandwidth=0.2)
            for i in range(3000)
        ]
        weight = 3 * np.concatenate([p.weight for p in parts])
        outcome = 3 * np.concatenate([p.outcome for p in parts])
        keys = {"groups": np.zeros(3000, dtype=int), "clusters": np.arange(3000)}
        sums = local_moments(score3, truth=truth3, threshold=0.5, bandwidth=0.2)
        found = implied_thresholds(
            sums,
            threshold=0.5,
            bandwidth=0.2,
            linear_clusters=cluster_fit(weight, outcome=outcome, degree=1, **keys),
            quadratic_clusters=cluster_fit(weight, outcome=outcome, degree=2, **keys),
        )
        single = implied(score, truth)
        assert found.value[0] == pytest.approx(single.value[0])
        assert found.low[0] == pytest.approx(single.low[0], abs=1e-3)
        assert found.method.count("cluster-robust") == 1
        gap = implied_threshold_gap(found, group=0, reference=0)
        assert gap.standard_error == pytest.approx(0, abs=1e-12)

    def test_sensitivity_curve(self):
        score, truth = generator(np.random.default_rng(0), 4000)
        cells = score_histogram(score, truth=truth, threshold=0.5)
        curve = bandwidth_curve(cells, bandwidths=[0.1, 0.2, 0.4])
        widths = [float(fit.high[0] - fit.low[0]) for fit in curve]
        assert widths == sorted(widths, reverse=True)
        assert [fit.bandwidth[0] for fit in curve] == [0.1, 0.2, 0.4]

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10_000), st.floats(-3, 3), st.floats(0.5, 20))
    def test_moving_and_stretching_the_score_changes_nothing(self, seed, move, stretch):
        score, truth = generator(np.random.default_rng(seed), 300)
        one = implied(score, truth, threshold=0.3)
        two = implied(
            stretch * score + move, truth, threshold=stretch * 0.3 + move, bandwidth=stretch * 0.2
        )
        assert two.raw[0] == pytest.approx(one.raw[0], abs=1e-6)
        if one.undefined[0] is None:
            assert two.high[0] == pytest.approx(one.high[0], abs=1e-6, nan_ok=True)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10_000))
    def test_swapping_truth_mirrors(self, seed):
        score, truth = generator(np.random.default_rng(seed), 400)
        one, two = implied(score, truth, threshold=0.4), implied(score, 1 - truth, threshold=0.4)
        assert two.raw[0] == pytest.approx(1 - one.raw[0], abs=1e-9)
        if one.undefined[0] is None:
            assert two.low[0] == pytest.approx(1 - one.high[0], abs=1e-9, nan_ok=True)
            assert np.log(two.cost_ratio[0]) == pytest.approx(-np.log(one.cost_ratio[0]))

    def test_order_of_rows_does_not_matter(self):
        score, truth = generator(np.random.default_rng(9), 2000)
        order = np.random.default_rng(1).permutation(2000)
        assert implied(score[order], truth[order]).low[0] == pytest.approx(
            implied(score, truth).low[0], abs=1e-12
        )


class TestDiscrete:
    # Men in the worked example: risks 1/8, 1/6, 1/4, 1/2 with 8, 12, 8, 4 people.
    MEN = ScoreHistogram.of_counts(
        [[[7, 1], [10, 2], [6, 2], [2, 2]]], positions=[1 / 8, 1 / 6, 1 / 4, 1 / 2], thresholds=0.25
    )

    def test_set_of_cost_ratios(self):
        found = discrete_margins(self.MEN)
        assert found.accepted[0] == pytest.approx(1 / 4)
        assert found.refused[0] == pytest.approx(1 / 6)
        assert (found.cost_ratio_low[0], found.cost_ratio_high[0]) == (
            pytest.approx(3),
            pytest.approx(5),
        )
        assert found.cost_ratio_lowest[0] < 3 < 5 < found.cost_ratio_highest[0]
        # Wilson for 2 of 8: [0.0715, 0.5907].
        assert found.accepted_low[0] == pytest.approx(0.0715, abs=1e-4)
        assert found.accepted_high[0] == pytest.approx(0.5907, abs=1e-4)
        assert (found.accepted_n[0], found.refused_n[0]) == (8, 12)

    def test_treating_three(self):
        cells = ScoreHistogram.of_counts(
            self.MEN.counts, positions=self.MEN.positions[0], thresholds=1 / 6
        )
        found = discrete_margins(cells)
        assert found.cost_ratio_low[0] == pytest.approx(5)
        assert found.cost_ratio_high[0] == pytest.approx(7)

    def test_nobody_refused(self):
        cells = ScoreHistogram.of_counts(
            self.MEN.counts, positions=self.MEN.positions[0], thresholds=0.0
        )
        found = discrete_margins(cells)
        assert np.isnan(found.refused[0])
        assert np.isnan(found.cost_ratio_high[0])
        assert found.accepted_score[0] == 1 / 8


def test_a_group_is_tested_as_if_it_were_alone() -> None:
    rng = np.random.default_rng(6)
    counts = rng.integers(0, 9, (12, 30, 2)).astype(float)
    counts[:4, 8:] = 0
    cells = ScoreHistogram.of_counts(counts, positions=np.arange(30.0), thresholds=15.0)
    bins = prevalence_bins(cells, half_widths=np.inf)
    together = fall_tests(bins, draws=99, seed=4)
    alone = [fall_tests([one], draws=99, seed=4)[0] for one in bins]
    assert [(t.p, t.drop) for t in together] == [(t.p, t.drop) for t in alone]
    assert len({t.p for t in together}) > 3
    for found in together:
        # The largest fall, pair by pair.
        n, rate = found.n + 1, (found.prevalence * found.n + 0.5) / (found.n + 1)
        error = rate * (1 - rate) / n
        falls = [(rate[i] - rate[j]) / np.sqrt(error[i] + error[j])
                 for i in range(n.size) for j in range(i + 1, n.size)]  # fmt: skip
        assert found.drop == pytest.approx(max(0.0, *falls), rel=1e-12)


def monotonicity(
    cells: ScoreHistogram, *, half_width: float = np.inf, bins: int = 10, draws: int = 999
) -> Monotonicity:
    (found,) = prevalence_bins(cells, half_widths=half_width, bins=bins)
    return fall_tests([found], draws=draws, seed=0)[0]


class TestMonotone:
    def test_groups_are_binned_alike_together_and_alone(self):
        rng = np.random.default_rng(2)
        which, score = rng.integers(0, 3, 2000), rng.random(2000)
        cells = score_histogram(score, truth=score > 0.4, threshold=0.5, groups=which, n_groups=4)
        widths = np.array([0.2, 0.5, 0.05, 1.0])
        together = prevalence_bins(cells, half_widths=widths)
        assert together[3] is None
        for g in range(3):
            alone = ScoreHistogram.of_counts(
                cells.counts[[g]], positions=cells.positions[[g]], thresholds=0.5
            )
            (one,) = prevalence_bins(alone, half_widths=widths[g])
            for name in ("scores", "n", "yes"):
                assert np.array_equal(getattr(one, name), getattr(together[g], name))

    def test_rising_prevalence_is_rarely_questioned(self):
        rng = np.random.default_rng(0)
        p = []
        for _ in range(80):
            score, truth = generator(rng, 1000)
            p.append(monotonicity(score_histogram(score, truth=truth, threshold=0.3), draws=199).p)
        assert np.mean(np.array(p) < 0.05) <= 0.1

    def test_fall_is_found_and_said(self):
        rng = np.random.default_rng(1)
        score = rng.random(3000)
        truth = rng.random(3000) < 0.5 + 0.4 * np.sin(2 * np.pi * score)
        found = monotonicity(score_histogram(score, truth=truth, threshold=0.5), half_width=0.3)
        assert found.p < 0.01
        assert found.warning is not None
        assert found.warning.startswith("prevalence falls as the score rises near the threshold")
        assert np.all(np.diff(found.fitted) >= 0)
        assert found.n.sum() == pytest.approx(np.sum(np.abs(score - 0.5) <= 0.3), rel=0.01)

    def test_undefined(self):
        found = monotonicity(score_histogram([0.5, 0.5], truth=[0, 1], threshold=0.5))
        assert found.undefined == "fewer than 2 distinct scores near the threshold"
        assert found.warning is None
        assert isotonic_fit([]).size == 0
        lone = monotonicity(score_histogram([0.4, 0.6], truth=[1, 0], threshold=0.5), bins=1)
        assert lone.drop == 0
        assert lone.p == 1

    @given(st.lists(st.floats(-10, 10), min_size=1, max_size=30))
    def test_isotonic_keeps_the_sum_and_never_falls(self, values):
        fit = isotonic_fit(values)
        assert fit.sum() == pytest.approx(np.sum(values), abs=1e-8)
        assert np.all(np.diff(fit) >= -1e-12)


class TestCoverage:
    @pytest.mark.parametrize("width", [0.1, 0.2, 0.4])
    def test_bias_and_coverage_as_published(self, width):
        want = MONTE_CARLO["S3_prevalence_at_threshold"][f"d_{str(width).replace('.', '_')}"]
        rng, runs = np.random.default_rng(11), 400
        score = rng.beta(1.2, 4, (runs, 4000))
        truth = rng.random(score.shape) < expit(8 * (score - 0.55))
        sums = local_moments(
            score.ravel(),
            truth=truth.ravel(),
            groups=np.repeat(np.arange(runs), 4000),
            threshold=0.5,
            bandwidth=width,
        )
        linear, quadratic = local_fit(sums), local_fit(sums, degree=2)
        window = np.abs(score - 0.5) <= width
        mean = (truth & window).sum(axis=1) / window.sum(axis=1)
        for name, values in (("ll", linear.value), ("lq", quadratic.value), ("window", mean)):
            noise = want["sd"][name] * np.sqrt(1 / runs + 1 / want["B"])
            assert values.mean() - TRUTH == pytest.approx(want["bias"][name], abs=3 * noise)
            assert values.std() == pytest.approx(want["sd"][name], rel=0.15)
        for name, fit in (("ll_hc1", linear), ("rbc_lq_hc1", quadratic)):
            covered = np.mean(np.abs(fit.value - TRUTH) <= 1.96 * fit.standard_error)
            rate = want["coverage95"][name]
            noise = np.sqrt(rate * (1 - rate) * (1 / runs + 1 / want["B"]))
            assert covered == pytest.approx(rate, abs=3 * noise)

    def test_default_bandwidth(self):
        assert 0.93 <= default_coverage(runs=600, seed=21) <= 0.97

    @pytest.mark.heavy
    def test_default_bandwidth_closely(self):
        assert 0.935 <= default_coverage(runs=6000, seed=22) <= 0.965


def default_coverage(*, runs, seed):
    rng, covered = np.random.default_rng(seed), 0
    for _ in range(runs):
        score, truth = generator(rng, 4000)
        cells = score_histogram(score, truth=truth, threshold=0.5)
        h = rule_of_thumb_bandwidth(cells)
        found = implied_thresholds(cells.moments(h), threshold=0.5, bandwidth=h)
        covered += bool(found.low[0] <= TRUTH <= found.high[0])
    return covered / runs
