"""Sets of cost ratios, what error-rate limits require, and why two cost ratios differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit, ndtr

from evenhand.errors import DataError, UsageError
from evenhand.stats.estimate import contrast, critical
from evenhand.stats.labelers.parts import cost_ratio_parts, part_values
from evenhand.stats.labelers.signal import signal_detection, threshold_model
from evenhand.stats.thresholds.histogram import ScoreHistogram
from evenhand.stats.thresholds.implied import DiscreteMargins, discrete_margins
from evenhand.stats.thresholds.required import (
    rates_at_cost_ratio,
    required_cost_ratio,
)
from evenhand.stats.thresholds.sets import CostSet, make_set, set_ratio

Z = critical(0.95)
CANCER = [1 / 8, 1 / 6, 1 / 4, 1 / 2]


def cells(counts, threshold: float = 0.25) -> ScoreHistogram:
    return ScoreHistogram.of_counts(counts, positions=CANCER, thresholds=threshold)


def cost_set(margins: DiscreteMargins) -> CostSet:
    """Cost ratios that each group's decisions do not tell apart."""
    return make_set(
        margins.cost_ratio_low, margins.cost_ratio_high,
        low=margins.cost_ratio_lowest, high=margins.cost_ratio_highest,
    )  # fmt: skip


class TestSets:
    def test_the_cancer_example(self):
        # Men: 2 of 8 at ¼ accepted, 2 of 12 at ⅙ refused: from 3 to 5. Treating three: 5 to 7.
        men = [[[7, 1], [10, 2], [6, 2], [2, 2]]]
        two = cost_set(discrete_margins(cells(men)))
        assert (two.set_low[0], two.set_high[0]) == (pytest.approx(3), pytest.approx(5))
        three = cost_set(discrete_margins(cells(men, 1 / 6)))
        assert (three.set_low[0], three.set_high[0]) == (pytest.approx(5), pytest.approx(7))
        assert two.low[0] < 3 < 5 < two.high[0]
        ratio = set_ratio(three, two)
        assert (ratio.set_low[0], ratio.set_high[0]) == (pytest.approx(1), pytest.approx(7 / 3))
        implied = two.implied()
        assert (implied.set_low[0], implied.set_high[0]) == (
            pytest.approx(1 / 6),
            pytest.approx(1 / 4),
        )

    def test_what_is_no_set(self):
        # Nobody has it on either side; it falls at the threshold; nobody below the threshold.
        nobody = cost_set(discrete_margins(cells([[[7, 0], [10, 0], [6, 0], [2, 0]]])))
        falls = cost_set(discrete_margins(cells([[[7, 1], [2, 8], [8, 2], [2, 2]]])))
        one_side = cost_set(discrete_margins(cells([[[0, 0], [0, 0], [8, 2], [2, 2]]])))
        for found in (nobody, falls, one_side):
            assert not found.identified.any()
            assert np.isnan([found.set_low, found.set_high]).all()
        ratio = set_ratio(
            nobody, cost_set(discrete_margins(cells([[[7, 1], [10, 2], [6, 2], [2, 2]]])))
        )
        assert np.isnan([ratio.set_low, ratio.low, ratio.high]).all()

    def test_open_ends_stay_open(self):
        open_above = make_set(3.0, np.inf, low=1.0, high=np.inf)
        other = make_set(1.0, 2.0, low=0.5, high=4.0)
        ratio = set_ratio(open_above, other)
        assert (ratio.set_low, ratio.set_high) == (pytest.approx(1.5), np.inf)
        assert ratio.high == np.inf
        assert 0 < ratio.low < 1.5
        turned = set_ratio(other, open_above)
        assert (turned.set_low, turned.low) == (0.0, 0.0)
        assert turned.set_high == pytest.approx(2 / 3)
        assert turned.high > 2 / 3

    @given(st.tuples(*[st.floats(0.05, 20)] * 4), st.tuples(*[st.floats(0.05, 20)] * 4))
    def test_turning_the_ratio_round_turns_its_ends(self, first, second):
        a, b = (
            make_set(sorted(x)[1], sorted(x)[2], low=sorted(x)[0], high=sorted(x)[3])
            for x in (first, second)
        )
        one, other = set_ratio(a, b), set_ratio(b, a)
        assert one.set_low == pytest.approx(1 / other.set_high)
        assert one.low == pytest.approx(1 / other.high)
        assert one.low <= one.set_low * (1 + 1e-9) <= one.set_high * (1 + 2e-9)
        assert one.set_high <= one.high * (1 + 1e-9)

    def test_outer_limits_hold_the_whole_set(self):
        """Both ends lie within the limits of 95 % of tables, and the ratio's in those of it."""
        generator = np.random.default_rng(1)
        n = np.array([400, 500, 300, 200])
        truth = np.array([[0.08, 0.15, 0.30, 0.5], [0.10, 0.20, 0.26, 0.6]])
        yes = generator.binomial(n, truth, (2000, 2, 4))
        tables = np.stack([n - yes, yes], axis=-1)
        sets = [cost_set(discrete_margins(cells(tables[:, g]))) for g in (0, 1)]
        ends = [(1 / truth[g, 2] - 1, 1 / truth[g, 1] - 1) for g in (0, 1)]
        ratio = set_ratio(*sets)
        true_low, true_high = ends[0][0] / ends[1][1], ends[0][1] / ends[1][0]
        held = (ratio.low <= true_low) & (true_high <= ratio.high)
        assert 0.93 <= held[ratio.identified].mean() <= 0.975
        for found, (low, high) in zip(sets, ends):
            assert 0.93 <= ((found.low <= low) & (high <= found.high)).mean() <= 0.975


class TestRequired:
    def test_by_hand(self):
        # FPR = FNR = Φ(−1), φ = 0.2 is c = 4 (t = 1, d′ = 2).
        found = rates_at_cost_ratio(4, prevalence=0.2, separation=2.0)
        assert found.criterion == pytest.approx(1)
        assert found.false_positive_rate == pytest.approx(0.15865525)
        assert found.false_negative_rate == pytest.approx(0.15865525)

    @given(
        st.floats(0.02, 0.6),
        st.floats(0.3, 3.5),
        st.floats(0.1, 20),
        st.sampled_from(["false_positive_rate", "false_negative_rate", "selection_rate"]),
        st.floats(0.001, 0.2),
    )
    def test_the_ratios_at_the_ends_lead_to_the_ends_of_the_band(self, phi, d, c, rate, limit):
        other = getattr(rates_at_cost_ratio(c, prevalence=0.3, separation=1.5), rate)
        low, high = float(other) - limit, float(other) + limit
        found = required_cost_ratio(
            rate, low=low, high=high, prevalence=phi, separation=d, chosen=c
        )
        assert found.low <= found.nearest <= found.high
        for cost, end in ((found.nearest, None), (found.low, low), (found.high, high)):
            if not 0 < cost < np.inf:
                continue
            reached = float(getattr(rates_at_cost_ratio(cost, prevalence=phi, separation=d), rate))
            assert low - 1e-7 <= reached <= high + 1e-7
            if end is not None and 1e-6 < end < 1 - 1e-6 and low > 1e-6 and high < 1 - 1e-6:
                assert min(abs(reached - low), abs(reached - high)) < 1e-7
        own = float(getattr(rates_at_cost_ratio(c, prevalence=phi, separation=d), rate))
        if low < own < high:
            assert found.factor == pytest.approx(1)
        elif own < low - 1e-9 or own > high + 1e-9:
            assert found.factor != pytest.approx(1, abs=1e-12)

    def test_what_cannot_be(self):
        blind = required_cost_ratio(
            "false_negative_rate", low=0.1, high=0.2, prevalence=0.2, separation=0.0, chosen=4
        )
        assert np.isnan([blind.low, blind.nearest, blind.factor]).all()
        with pytest.raises(UsageError, match="cannot be equalised"):
            required_cost_ratio(
                "precision", low=0.1, high=0.2, prevalence=0.2, separation=1.0, chosen=4
            )


numbers = st.floats(-1.5, 3.0)


class TestParts:
    @given(*[numbers] * 6)
    def test_parts_add_up_and_mirror(self, a, b, t, t_reference, d, d_reference):
        values = {
            "log_odds_against": a,
            "log_odds_against_reference": b,
            "criterion": t,
            "criterion_reference": t_reference,
            "separation": d,
            "separation_reference": d_reference,
        }
        found = part_values(**values)
        total = (a - t * d + d**2 / 2) - (b - t_reference * d_reference + d_reference**2 / 2)
        assert found.total == pytest.approx(total, abs=1e-9)
        turned = part_values(
            **{
                name: values[
                    name.removesuffix("_reference")
                    if name.endswith("_reference")
                    else f"{name}_reference"
                ]
                for name in values
            }
        )
        assert turned.bar == pytest.approx(-found.bar, abs=1e-9)
        assert turned.skill == pytest.approx(-found.skill, abs=1e-9)
        # Shapley by hand: the mean over both orders of changing t and d′.
        first = -(t - t_reference) * d_reference
        last = -(t - t_reference) * d
        assert found.bar == pytest.approx((first + last) / 2, abs=1e-9)

    def test_intervals_agree_with_the_contrast_of_log_cost_ratios(self):
        a, b = signal_detection(80, 20, 90, 810), signal_detection(60, 40, 45, 855)
        z = [a.z_false_alarm, a.z_hit, b.z_false_alarm, b.z_hit]
        v = [
            (a.criterion_error**2),
            (a.separation_error**2 - a.criterion_error**2),
            (b.criterion_error**2),
            (b.separation_error**2 - b.criterion_error**2),
        ]
        found = cost_ratio_parts(
            z,
            covariance=np.diag(v),
            log_odds_against=[a.prevalence_part, b.prevalence_part],
            log_odds_error=[a.prevalence_part_error, b.prevalence_part_error],
        )
        whole = contrast(
            a.log_cost_ratio,
            b.log_cost_ratio,
            standard_error=a.log_cost_ratio_error,
            standard_error_reference=b.log_cost_ratio_error,
        )
        assert found.total.value == pytest.approx(float(whole.value))
        assert found.total.standard_error == pytest.approx(float(whole.standard_error))
        parts = (found.prevalence, found.bar, found.skill)
        assert sum(p.value for p in parts) == pytest.approx(float(whole.value))

    def test_slopes_against_differences(self):
        z = np.array([-1.3, 0.7, -0.9, 1.1])

        def values(q):
            found = part_values(
                log_odds_against=1.5,
                log_odds_against_reference=1.2,
                criterion=-q[0],
                criterion_reference=-q[2],
                separation=q[1] - q[0],
                separation_reference=q[3] - q[2],
            )
            return np.array([found.bar, found.skill])

        step = 1e-6 * np.eye(4)
        slopes = np.array([(values(z + h) - values(z - h)) / 2e-6 for h in step])
        for place, name in enumerate(("bar", "skill")):
            for k in range(4):
                v = np.zeros((4, 4))
                v[k, k] = 1.0
                found = getattr(
                    cost_ratio_parts(z, covariance=v, log_odds_against=[1.5, 1.2]), name
                )
                assert found.standard_error == pytest.approx(abs(slopes[k, place]), abs=1e-6)

    @pytest.mark.parametrize(
        ("group", "equal_cost", "equal_bar"),
        [
            ((0.25, 1.6, 1.2), True, True),
            ((0.10, 1.6, None), True, False),
            ((0.10, 1.6, 1.2), False, True),
            ((0.25, 1.6, 1.7), False, False),
        ],
    )
    def test_the_four_combinations_are_told_apart(self, group, equal_cost, equal_bar):
        """Planted: same or other weight, same or other bar; intervals cover and tell."""
        reference = (0.25, 1.6, 1.2)
        phi, d, t = group
        cost = -logit(reference[0]) - reference[2] * reference[1] + reference[1] ** 2 / 2
        if t is None:
            t = float(rates_at_cost_ratio(np.exp(cost), prevalence=phi, separation=d).criterion)
        own = float(threshold_model(phi, separation=d, criterion=t).log_cost_ratio)
        assert (own == pytest.approx(cost)) == equal_cost
        assert (t == reference[2]) == equal_bar
        truth = part_values(
            log_odds_against=-logit(phi),
            log_odds_against_reference=-logit(reference[0]),
            criterion=t,
            criterion_reference=reference[2],
            separation=d,
            separation_reference=reference[1],
        )
        generator = np.random.default_rng(4)
        held = np.zeros(4)
        for _ in range(300):
            sides = []
            for p, skill, bar in ((phi, d, t), reference):
                positives = generator.binomial(1500, p)
                hits = generator.binomial(positives, ndtr(skill - bar))
                alarms = generator.binomial(1500 - positives, ndtr(-bar))
                sides.append(
                    signal_detection(hits, positives - hits, alarms, 1500 - positives - alarms)
                )
            z = [q for s in sides for q in (s.z_false_alarm, s.z_hit)]
            v = [
                w for s in sides
                for w in (s.criterion_error**2, s.separation_error**2 - s.criterion_error**2)
            ]  # fmt: skip
            found = cost_ratio_parts(
                z,
                covariance=np.diag(v),
                log_odds_against=[s.prevalence_part for s in sides],
                log_odds_error=[s.prevalence_part_error for s in sides],
            )
            held += [
                c.low <= value <= c.high
                for c, value in (
                    (found.total, truth.total),
                    (found.prevalence, truth.prevalence),
                    (found.bar, truth.bar),
                    (found.skill, truth.skill),
                )
            ]
        assert (held / 300 >= 0.92).all()

    def test_the_words_for_a_wrong_shape(self):
        with pytest.raises(DataError, match="Give four quantiles"):
            cost_ratio_parts([1.0, 2.0], covariance=np.eye(4), log_odds_against=[0, 0])
