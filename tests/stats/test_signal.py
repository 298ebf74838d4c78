"""Signal detection: oracles, hand values, contrasts, clusters, properties and coverage."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtr

from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import contrast
from evenhand.stats.labelers.contrasts import (
    against_rest,
    clustered_contrast,
    clustered_rates,
    jackknife_contrast,
    one_way_variance,
)
from evenhand.stats.labelers.signal import (
    corrected_rates,
    ez_diffusion,
    log_hazard,
    normal_density,
    signal_detection,
    threshold_model,
    unequal_variance,
)

HERE = Path(__file__).parent.parent / "oracles"
ORACLES = json.loads((HERE / "oracles.json").read_text())
MONTE_CARLO = json.loads((HERE / "monte_carlo.json").read_text())
POOLING = json.loads((HERE / "pooling.json").read_text())

counts = st.tuples(*[st.integers(1, 500)] * 4)


def check(found, want):
    assert found.hit_rate == pytest.approx(want["TPR"], abs=1e-9)
    assert found.false_alarm_rate == pytest.approx(want["FPR"], abs=1e-9)
    assert 1 - found.hit_rate == pytest.approx(want["FNR"], abs=1e-9)
    assert found.prevalence == pytest.approx(want["phi"], abs=1e-9)
    assert found.criterion == pytest.approx(want["t"], abs=1e-8)
    assert found.separation == pytest.approx(want["d_prime"], abs=1e-8)
    # Macmillan and Creelman's criterion c is t − d′/2, their ln β the negative behaviour part.
    assert found.criterion - found.separation / 2 == pytest.approx(want["criterion_c"], abs=1e-8)
    assert -found.behaviour == pytest.approx(want["ln_beta"], abs=1e-8)
    assert found.area_under_curve == pytest.approx(want["AUC"], abs=1e-8)
    assert found.implied_threshold == pytest.approx(want["implied_threshold"], abs=1e-8)
    assert found.cost_ratio == pytest.approx(want["cost_ratio"], abs=1e-7)
    assert found.log_cost_ratio == pytest.approx(want["log_cost_ratio"], abs=1e-8)
    assert found.log_cost_ratio_error == pytest.approx(want["se_log_cost_ratio"], abs=1e-8)
    assert list(found.interval("cost_ratio")) == pytest.approx(want["ci95_cost_ratio"], rel=1e-7)
    assert found.separation_error == pytest.approx(want["se_d_prime"], abs=1e-8)
    assert found.implied_threshold_error == pytest.approx(want["se_implied"], abs=1e-8)


class TestOracles:
    def test_closed_form(self):
        # FPR = FNR = Φ(−1): t = 1, d′ = 2, so t = d′/2 and the implied threshold is φ.
        want = ORACLES["3.6_sdt_closed_form"]
        found = threshold_model(want["phi"], separation=want["d_prime"], criterion=want["t"])
        assert found.false_alarm_rate == pytest.approx(want["FPR"])
        assert 1 - found.hit_rate == pytest.approx(want["FNR"])
        assert found.implied_threshold == pytest.approx(want["implied_threshold"])
        assert np.exp(found.log_cost_ratio) == pytest.approx(want["cost_ratio"])
        assert ndtr(2 / np.sqrt(2)) == pytest.approx(want["AUC"])
        n = 1e9
        back = signal_detection(
            n * 0.2 * found.hit_rate,
            n * 0.2 * (1 - found.hit_rate),
            n * 0.8 * found.false_alarm_rate,
            n * 0.8 * (1 - found.false_alarm_rate),
        )
        assert [back.criterion, back.separation] == pytest.approx([1, 2])

    def test_counts(self):
        check(signal_detection(80, 20, 90, 810), ORACLES["3.6b_sdt_counts"])

    def test_two_groups(self):
        want = ORACLES["3.6c_sdt_two_groups"]
        a, b = signal_detection(80, 20, 90, 810), signal_detection(60, 40, 45, 855)
        check(a, want["A"])
        check(b, want["B"])
        # Different labelers judged different items: the errors add up.
        found = contrast(
            a.log_cost_ratio,
            b.log_cost_ratio,
            standard_error=a.log_cost_ratio_error,
            standard_error_reference=b.log_cost_ratio_error,
        )
        assert found.value == pytest.approx(want["diff_log_c"], abs=1e-8)
        assert found.standard_error == pytest.approx(want["se"], abs=1e-8)
        assert found.statistic == pytest.approx(want["z"], abs=1e-7)
        assert found.p == pytest.approx(want["p"], abs=1e-10)
        assert np.exp(found.value) == pytest.approx(want["ratio_of_cost_ratios"], abs=1e-7)

    def test_zero_cells(self):
        want = ORACLES["3.6d_sdt_zero_cells"]
        none = signal_detection(20, 0, 0, 50, correction="none")
        assert np.isnan(none.log_cost_ratio)
        assert none.undefined[()] == "a rate is 0 or 1 and no correction was applied"
        found = signal_detection(20, 0, 0, 50)
        check(found, want["loglinear"])
        assert found.method == (
            "equal-variance signal detection, log-linear correction on all cells"
        )
        check(signal_detection(20, 0, 0, 50, correction="half"), want["half"])

    def test_separation_of_zero(self):
        found = signal_detection(30, 70, 270, 630)
        check(found, ORACLES["3.6d_sdt_zero_cells"]["d_prime_zero"])
        assert found.warnings[()] == (
            "labels carry no information: the implied threshold is the prevalence",
        )

    def test_delta_against_bootstrap(self):
        want = ORACLES["3.6e_delta_vs_bootstrap"]
        found = signal_detection(80, 20, 90, 810)
        assert found.log_cost_ratio_error == pytest.approx(want["delta_se"], abs=1e-8)
        rng = np.random.default_rng(0)
        cells = rng.multinomial(1000, [0.08, 0.02, 0.09, 0.81], 4000)
        again = signal_detection(*cells.T, correction="none")
        assert np.nanstd(again.log_cost_ratio) == pytest.approx(
            want["parametric_bootstrap_se"], rel=0.05
        )

    def test_prevalence_passed_in_has_no_error(self):
        found = signal_detection(80, 20, 90, 810, prevalence=0.1)
        assert found.log_cost_ratio_error == pytest.approx(0.1407, abs=1e-4)
        # With its error given it counts again: 0.0949 on the logit scale is 1/√(1000·0.09).
        again = signal_detection(
            80, 20, 90, 810, prevalence=0.1, prevalence_error=np.sqrt(0.09 / 1000)
        )
        assert again.log_cost_ratio_error == pytest.approx(0.1757928473, abs=1e-8)
        assert again.prevalence_low < 0.1 < again.prevalence_high

    def test_unequal_variance(self):
        want = ORACLES["3.7_unequal_variance"]
        sigma = [float(s) for s in want["sigma"]]
        found = unequal_variance(0.8, false_alarm_rate=0.1, prevalence=want["phi"], sigma=sigma)
        for i, row in enumerate(want["sigma"].values()):
            assert found.mean[i] == pytest.approx(row["mu"], abs=1e-8)
            assert found.implied_threshold[i] == pytest.approx(row["implied_threshold"], abs=1e-8)
        assert found.sensitivity[1] == pytest.approx(found.mean[1])
        assert found.sensitivity[3] == pytest.approx(found.mean[3] * np.sqrt(2 / 3.25))
        with pytest.raises(UsageError, match="sigma must be above 0"):
            unequal_variance(0.8, false_alarm_rate=0.1, prevalence=0.1, sigma=0)

    def test_infra_marginality(self):
        want = ORACLES["3.11_infra_marginality"]
        before = signal_detection(80, 20, 90, 810)
        assert before.false_alarm_rate == pytest.approx(want["FPR_before"])
        assert 1 - before.hit_rate == pytest.approx(want["FNR_before"])
        # 90 of 9,000 negatives after flooding with 8,100 obvious ones; 20 of 400 positives.
        flooded = signal_detection([80, 380], [20, 20], [90, 90], [8910, 810])
        assert flooded.false_alarm_rate[0] == pytest.approx(want["FPR_after_900_obvious_benign"])
        assert 1 - flooded.hit_rate[1] == pytest.approx(
            want["FNR_after_flooding_300_obvious_violations"]
        )

    def test_signal_detection_is_not_immune_to_easy_items(self):
        found = signal_detection([80, 80, 80, 380], [20] * 4, [90] * 4, [810, 1710, 9810, 810])
        assert found.implied_threshold.round(3).tolist() == [0.151, 0.131, 0.103, 0.207]

    def test_clusters_of_labelers(self):
        want = ORACLES["3.12_cluster_by_labeller"]
        yes, n = np.array(want["hits_of_n"]).T[..., None]
        variance = one_way_variance(yes, n)[0, 0]
        p = yes.sum() / n.sum()
        assert p == want["p"]
        assert np.sqrt(variance) == pytest.approx(want["se_cluster"], abs=1e-9)
        plain = p * (1 - p) / n.sum()
        assert np.sqrt(plain) == pytest.approx(want["se_binomial"], abs=1e-9)
        assert variance / plain == pytest.approx(want["design_effect"], abs=1e-9)

    def test_ez_diffusion(self):
        want = ORACLES["3.16_ez_diffusion"]
        given_values = want["input"]
        found = ez_diffusion(
            given_values["Pc"],
            variance_seconds=given_values["VRT"],
            mean_seconds=given_values["MRT"],
            scale=given_values["s"],
        )
        assert found.drift == pytest.approx(want["v"], abs=1e-9)
        assert found.boundary == pytest.approx(want["a"], abs=1e-9)
        assert found.non_decision_time == pytest.approx(want["Ter"], abs=1e-9)

    def test_ez_diffusion_edges(self):
        found = ez_diffusion([0.5, 1.0, 0.7], variance_seconds=[0.1, 0.1, 0], mean_seconds=0.7)
        assert found.drift[0] == 0
        assert np.isnan(found.boundary).all()
        fixed = ez_diffusion(1.0, variance_seconds=0.1, mean_seconds=0.7, n=50)
        moved = ez_diffusion(0.99, variance_seconds=0.1, mean_seconds=0.7)
        assert fixed.drift == pytest.approx(moved.drift)

    def test_threshold_model_rates(self):
        want = ORACLES["3.17_threshold_test_rates"]
        found = threshold_model(want["phi"], separation=want["delta"], criterion=want["t"])
        assert found.selection_rate == pytest.approx(want["search_rate"], abs=1e-9)
        assert found.hit_share == pytest.approx(want["hit_rate"], abs=1e-9)
        assert found.implied_threshold == pytest.approx(want["implied_threshold"], abs=1e-9)

    def test_log_linear_cells_of_the_pool(self):
        want = POOLING["A1_loglinear"]
        yes, n = np.array(want["inputs"]["K"]), np.array(want["inputs"]["N"])
        yes, n = yes.reshape(4, 2, 2), n.reshape(4, 2, 2)
        rates = corrected_rates(
            yes[..., 1], (n - yes)[..., 1], yes[..., 0], (n - yes)[..., 0], correction="log-linear"
        )
        z = np.stack([rates.z_false_alarm, rates.z_hit], axis=-1).reshape(4, 4)
        variance = np.stack([rates.variance_false_alarm, rates.variance_hit], axis=-1)
        assert z == pytest.approx(np.array(want["z"]), abs=1e-7)
        # This oracle divides by n + 1 where ours (and 3.6d's) keeps the raw n.
        ours = (variance * n / (n + 1)).reshape(4, 4)
        assert ours == pytest.approx(np.array(want["var"]), abs=1e-7)
        both = np.stack([-rates.z_false_alarm, rates.z_hit - rates.z_false_alarm], axis=-1)
        assert both.reshape(4, 4) == pytest.approx(np.array(want["t_d"]), abs=1e-7)

    def test_two_way_sandwich(self):
        want = POOLING["A4_two_way_sandwich"]
        labels = np.array(want["inputs"]["labels_labelers_by_items"])
        truth = np.array(want["inputs"]["item_truth"])
        yes = np.stack([labels[:, truth == v].sum(axis=1) for v in (0, 1)], axis=1)
        n = np.stack([np.full(4, (truth == v).sum()) for v in (0, 1)], axis=1)
        found = clustered_rates(
            yes, labeler_n=n, item_yes=labels.sum(axis=0), item_n=np.full(6, 4), item_cell=truth
        )
        assert found.rate == pytest.approx(np.array(want["p"]))
        assert found.z == pytest.approx(np.array(want["z"]), abs=1e-7)
        assert found.labeler == pytest.approx(np.array(want["V_labeler"]), abs=1e-7)
        assert found.item_extra == pytest.approx(np.array(want["item_extra"]), abs=1e-7)
        assert found.two_way == pytest.approx(np.array(want["V_two"]), abs=1e-7)
        assert found.freedom == 3


class TestCells:
    def test_correction_reaches_every_cell(self):
        alone = corrected_rates([80], [20], [90], [810])
        beside = corrected_rates([80, 5], [20, 0], [90, 1], [810, 9])
        assert alone.method == "no correction"
        assert beside.hit_rate[0] == pytest.approx(80.5 / 101)

    def test_reasons(self):
        found = signal_detection([0, 5, 0, 3], [0, 5, 0, 3], [4, 0, 0, 2], [6, 0, 0, 2])
        assert found.undefined.tolist() == [
            "no positives among the items judged",
            "no negatives among the items judged",
            "no items judged",
            None,
        ]
        assert np.isnan(found.log_cost_ratio[:3]).all()

    def test_flags(self):
        found = signal_detection([20, 300], [80, 100], [500, 60], [500, 900])
        assert found.warnings[0] == (
            "yes is said less often where the truth is yes: reversed labelling",
        )
        assert found.warnings[1] == ()
        few = signal_detection(50, 3, 9, 200)
        assert few.warnings[()] == (
            "only 3 false negatives; read the interval, not the value",
            "only 9 false positives; read the interval, not the value",
        )

    def test_labelers_by_groups(self):
        table = np.random.default_rng(0).integers(1, 50, (7, 3, 4))
        found = signal_detection(*np.moveaxis(table, -1, 0), prevalence=[0.1, 0.2, 0.3])
        assert found.criterion.shape == (7, 3)
        one = signal_detection(*table[4, 1], prevalence=0.2)
        assert found.log_cost_ratio[4, 1] == pytest.approx(float(one.log_cost_ratio))

    def test_fewer_items_than_labels_widen_the_prevalence(self):
        narrow = signal_detection(80, 20, 90, 810)
        wide = signal_detection(80, 20, 90, 810, items=100)
        assert wide.prevalence_part_error == pytest.approx(1 / np.sqrt(100 * 0.09))
        assert wide.log_cost_ratio_error > narrow.log_cost_ratio_error
        assert wide.prevalence_low < narrow.prevalence_low

    def test_clustered_variances_replace_binomial_ones(self):
        plain = signal_detection(80, 20, 90, 810)
        wide = signal_detection(
            80, 20, 90, 810, variance_hit=0.05, variance_false_alarm=0.04, covariance=0.01
        )
        assert wide.criterion_error == pytest.approx(0.2)
        assert wide.separation_error == pytest.approx(np.sqrt(0.05 + 0.04 - 0.02))
        assert wide.log_cost_ratio_error > plain.log_cost_ratio_error

    @given(counts)
    def test_two_forms_of_the_cost_ratio_agree(self, cells):
        found = signal_detection(*cells, correction="none")
        t, d, phi = found.criterion, found.separation, found.prevalence
        assert float(found.log_cost_ratio) == pytest.approx(
            float(logit(1 - phi) - t * d + d**2 / 2), abs=1e-9
        )
        assert float(found.implied_threshold) == pytest.approx(float(expit(-found.log_cost_ratio)))

    @given(counts)
    def test_swapping_yes_and_no_inverts_the_cost_ratio(self, cells):
        h, m, f, r = cells
        one, two = signal_detection(h, m, f, r), signal_detection(r, f, m, h)
        assert float(two.log_cost_ratio) == pytest.approx(-float(one.log_cost_ratio), abs=1e-9)
        assert float(two.separation) == pytest.approx(float(one.separation), abs=1e-9)
        low, high = one.interval("cost_ratio")
        again = two.interval("cost_ratio")
        assert float(again[0]) == pytest.approx(1 / float(high), rel=1e-9)
        assert float(again[1]) == pytest.approx(1 / float(low), rel=1e-9)

    @given(counts)
    def test_intervals_of_threshold_and_ratio_are_images(self, cells):
        found = signal_detection(*cells)
        low, high = found.interval("cost_ratio")
        first, last = found.interval("implied_threshold")
        assert float(first) == pytest.approx(1 / (1 + float(high)), rel=1e-9)
        assert float(last) == pytest.approx(1 / (1 + float(low)), rel=1e-9)

    def test_intervals_of_criterion_and_separation(self):
        found = signal_detection(80, 20, 90, 810)
        low, high = found.interval("criterion")
        # z_F = −1.2816, V = 0.09/(900·0.1755²) = 0.003247, SE 0.0570: [1.170, 1.393].
        assert [float(low), float(high)] == pytest.approx([1.170, 1.393], abs=1e-3)
        low, high = found.interval("separation")
        assert float(high - low) == pytest.approx(2 * 1.959964 * 0.1538197126, abs=1e-6)

    def test_words(self):
        with pytest.raises(UsageError) as caught:
            signal_detection(8, 2, 9, 81, prevalence=2)
        assert str(caught.value) == (
            "prevalence=2 is not between 0 and 1. For two in a hundred write 0.02."
        )
        with pytest.raises(DataError, match="cannot be negative"):
            signal_detection(-1, 2, 9, 81)
        with pytest.raises(UsageError, match=r"^correction='yes' is unknown\."):
            signal_detection(8, 2, 9, 81, correction="yes")

    def test_hazard_is_stable_in_the_tail(self):
        z = np.array([-2.0, 0.0, 3.0])
        assert np.exp(log_hazard(z)) == pytest.approx(normal_density(z) / ndtr(z))
        # φ(z)/Φ(z) approaches −z far to the left.
        assert float(np.exp(log_hazard(-1000.0))) == pytest.approx(1000.001, rel=1e-6)


def panel(rng, *, labelers=40, each=200, groups=((0.3, 1.5, 0.8), (0.3, 1.5, 0.8)), spread=0.3):
    """Counts (labelers, groups, 4) of labelers whose criteria vary with SD spread."""
    shift = rng.normal(0, spread, labelers)
    table = []
    for phi, d, t in groups:
        positives = rng.binomial(each, phi, labelers)
        hits = rng.binomial(positives, ndtr(d - t - shift))
        alarms = rng.binomial(each - positives, ndtr(-t - shift))
        table.append(np.stack([hits, positives - hits, alarms, each - positives - alarms], axis=-1))
    return np.stack(table, axis=1)


class TestContrasts:
    def test_split(self):
        a = signal_detection(80, 20, 90, 810, prevalence=0.3)
        b = signal_detection(60, 40, 45, 855, prevalence=0.1)
        prevalence = a.prevalence_part - b.prevalence_part
        assert prevalence == pytest.approx(logit(0.7) - logit(0.9))
        total = a.log_cost_ratio - b.log_cost_ratio
        assert total == pytest.approx(prevalence + a.behaviour - b.behaviour)

    def test_jackknife_by_hand(self):
        # Three labelers: the variance is (J−1)/J times the spread of the leave-one-out values.
        table = panel(np.random.default_rng(0), labelers=3)
        found = jackknife_contrast(table, prevalence=0.3)
        left = []
        for j in range(3):
            rest = np.delete(table, j, axis=0).sum(axis=0)
            z = signal_detection(*rest.T, prevalence=0.3)
            left.append(z.criterion[0] - z.criterion[1])
        want = np.sqrt(2 / 3 * np.sum((np.array(left) - np.mean(left)) ** 2))
        assert found.criterion.standard_error == pytest.approx(want)
        assert found.criterion.freedom == 2
        whole = signal_detection(*table.sum(axis=0).T, prevalence=0.3)
        assert found.log_cost_ratio.value == pytest.approx(
            whole.log_cost_ratio[0] - whole.log_cost_ratio[1]
        )
        assert found.influence.shape == (3,)

    def test_prevalences_add_their_own_error(self):
        table = panel(np.random.default_rng(0))
        fixed = jackknife_contrast(table, prevalence=[0.3, 0.3])
        free = jackknife_contrast(table, items=[500, 400])
        extra = free.log_cost_ratio.standard_error**2 - free.behaviour.standard_error**2
        phi = table[:, :, :2].sum(axis=(0, 2)) / table.sum(axis=(0, 2))
        assert extra == pytest.approx((1 / (np.array([500, 400]) * phi * (1 - phi))).sum())
        assert fixed.log_cost_ratio.standard_error == pytest.approx(
            float(fixed.behaviour.standard_error)
        )

    def test_groups_and_reference_swap(self):
        table = panel(np.random.default_rng(3), groups=((0.3, 1.5, 0.8),) * 3)
        one = jackknife_contrast(table, group=0, reference=2)
        two = jackknife_contrast(table, group=2, reference=0)
        assert two.log_cost_ratio.value == pytest.approx(-float(one.log_cost_ratio.value))
        assert two.criterion.low == pytest.approx(-float(one.criterion.high))

    def test_jackknife_covers_where_independence_does_not_matter(self):
        rng, inside = np.random.default_rng(5), []
        for _ in range(400):
            found = jackknife_contrast(panel(rng, groups=((0.3, 1.5, 0.8), (0.3, 1.5, 0.6))))
            # Pooling labelers who vary flattens z by √(1+0.3²).
            want = 0.2 / np.sqrt(1.09)
            inside.append(found.criterion.low <= want <= found.criterion.high)
        assert 0.92 <= np.mean(inside) <= 0.98

    def test_zero_cells_are_corrected_alike(self):
        table = panel(np.random.default_rng(0), labelers=5, each=30)
        table[1:, 0, 2] = 0
        found = jackknife_contrast(table)
        chosen = jackknife_contrast(table, correction="log-linear")
        assert chosen.criterion.value == found.criterion.value
        assert "log-linear" in found.method
        assert np.isfinite(found.log_cost_ratio.standard_error)

    def test_one_labeler_has_no_interval(self):
        found = jackknife_contrast(panel(np.random.default_rng(0), labelers=1), prevalence=0.3)
        assert np.isnan(found.criterion.low)

    def test_against_rest(self):
        table = panel(np.random.default_rng(1), spread=0.0)
        table[0, :, :] = [[10, 50, 2, 138], [12, 48, 3, 137]]
        found = against_rest(table)
        assert np.all(found.criterion.low[0] > 0)
        assert np.mean(found.criterion.p[1:] < 0.05) < 0.15
        rest = signal_detection(*(table.sum(axis=0) - table[0])[0], prevalence=0.5)
        own = signal_detection(*table[0, 0], prevalence=0.5)
        assert found.behaviour.value[0, 0] == pytest.approx(
            float(own.log_cost_ratio - rest.log_cost_ratio)
        )

    def test_clustered_contrast(self):
        table = panel(np.random.default_rng(7))
        hits, misses, alarms, rejections = np.moveaxis(table, -1, 0)
        yes = np.stack([alarms, hits], axis=-1).reshape(len(table), 4)
        n = np.stack([alarms + rejections, hits + misses], axis=-1).reshape(len(table), 4)
        # Items judged once each add nothing: the two-way error is the labelers' one.
        cell = np.repeat(np.arange(4), n.sum(axis=0))
        each = np.concatenate([np.arange(n[:, c].sum()) < yes[:, c].sum() for c in range(4)])
        rates = clustered_rates(
            yes, labeler_n=n, item_yes=each, item_n=np.ones(each.size), item_cell=cell
        )
        found = clustered_contrast(rates)
        jack = jackknife_contrast(table, prevalence=0.3)
        assert found.value == pytest.approx(float(jack.criterion.value))
        assert found.standard_error == pytest.approx(float(jack.criterion.standard_error), rel=0.05)
        for quantity, other in (
            ("separation", jack.separation),
            ("log_cost_ratio", jack.behaviour),
        ):
            found = clustered_contrast(rates, quantity=quantity)
            assert found.value == pytest.approx(float(other.value))
            assert found.standard_error == pytest.approx(float(other.standard_error), rel=0.06)

    def test_student_limits(self):
        # t with 3 degrees of freedom: 3.1824 standard errors at 95 %.
        found = contrast(1.0, standard_error=1.0, freedom=3)
        assert found.high == pytest.approx(1 + 3.182446, abs=1e-6)
        assert np.isnan(contrast(1.0, standard_error=1.0, freedom=0).low)

    def test_words(self):
        with pytest.raises(DataError, match=r"^counts have shape \(2, 4\)\. Give \(labelers,"):
            jackknife_contrast(np.ones((2, 4)))


class TestCoverage:
    @pytest.mark.parametrize(
        ("key", "n", "correction"),
        [
            ("N=1000", 1000, "log-linear"),
            ("N=200", 200, "log-linear"),
            ("N=100_loglinear", 100, "log-linear"),
            ("N=100_no_correction", 100, "none"),
        ],
    )
    def test_as_published(self, key, n, correction):
        want = MONTE_CARLO["S4_sdt_delta_coverage"][key]
        model = threshold_model(0.1, separation=2.0, criterion=1.2)
        assert model.log_cost_ratio == pytest.approx(want["true_log_c"], abs=1e-8)
        rng, runs = np.random.default_rng(8), 20_000
        shares = [
            0.1 * model.hit_rate,
            0.1 * (1 - model.hit_rate),
            0.9 * model.false_alarm_rate,
            0.9 * (1 - model.false_alarm_rate),
        ]
        cells = rng.multinomial(n, shares, runs).T
        found = signal_detection(*cells, correction=correction)
        defined = np.isfinite(found.log_cost_ratio) & np.isfinite(found.log_cost_ratio_error)
        assert 1 - defined.mean() == pytest.approx(want["undefined_share"], abs=0.012)
        value = found.log_cost_ratio[defined]
        assert value.mean() == pytest.approx(
            want["mean"], abs=3 * want["sd"] * np.sqrt(1 / runs + 1 / 20_000)
        )
        low, high = (limit[defined] for limit in found.interval("cost_ratio"))
        truth = np.exp(float(model.log_cost_ratio))
        covered = np.mean((low <= truth) & (truth <= high))
        assert covered == pytest.approx(want["coverage95"], abs=0.006)
        if n == 1000:
            assert 0.93 <= covered <= 0.97
