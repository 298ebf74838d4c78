"""Labels that would come out otherwise: by hand, by slopes taken numerically, and covered."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.special import logit, ndtr, ndtri

from evenhand.lenses.scope import UNTOLD_UNDER
from evenhand.stats.labelers.bar import (
    Excess,
    Labels,
    labels_by_bar,
    labels_by_skill,
    labels_by_weight,
)
from evenhand.stats.labelers.signal import normal_density, signal_detection

LABELS = Labels(
    positives=300, negatives=700, z_hit=1.0, z_false_alarm=-0.5,
    variance_hit=0.008, variance_false_alarm=0.003, covariance=0.001,
)  # fmt: skip
STEP, ELSEWHERE = 1e-5, 0.01


def by_weight(z_hit: float, z_alarm: float, rest: float) -> float:
    """log c over its agreed value is what the rates make of it and something else."""
    shift = ((z_hit**2 - z_alarm**2) / 2 + rest) / (z_hit - z_alarm)
    return turned(z_hit, z_alarm, shift)


def by_bar(z_hit: float, z_alarm: float, rest: float) -> float:
    return turned(z_hit, z_alarm, z_alarm - rest)


def by_skill(z_hit: float, z_alarm: float, rest: float) -> float:
    return float(300 * (ndtr(z_hit) - ndtr(z_alarm - rest)))


def turned(z_hit: float, z_alarm: float, shift: float) -> float:
    yes = 300 * (ndtr(z_hit) - ndtr(z_hit - shift))
    return float(yes + 700 * (ndtr(z_alarm) - ndtr(z_alarm - shift)))


@pytest.mark.parametrize(
    ("function", "plainly", "rest", "own"),
    [
        (labels_by_weight, by_weight, 0.3, (1.0, 0.5)),
        (labels_by_bar, by_bar, -0.2, (0.0, -1.0)),
        (labels_by_skill, by_skill, -1.9, (1.0, -1.0)),
    ],
)
def test_as_slopes_taken_numerically_have_it(
    function: Callable[[Labels, Excess], tuple[float, float, float]],
    plainly: Callable[[float, float, float], float],
    rest: float,
    own: tuple[float, float],
) -> None:
    at = np.array([1.0, -0.5, rest])
    slopes = [
        (plainly(*(at + step)) - plainly(*(at - step))) / (2 * STEP) for step in STEP * np.eye(3)
    ]
    covariance = np.array([[0.008, 0.001, 0], [0.001, 0.003, 0], [0, 0, ELSEWHERE]])
    half = 1.96 * np.sqrt(slopes @ covariance @ slopes)
    value = {by_weight: (1 - 0.25) / 2, by_bar: 0.5, by_skill: 1.5}[plainly] + rest
    error = float(np.sqrt(np.array(own) @ covariance[:2, :2] @ own + ELSEWHERE))
    found = function(LABELS, Excess(value=value, error=error, critical=1.96))
    least, most = plainly(*at) - half, plainly(*at) + half
    sign = 1 if plainly(*at) > 0 else -1
    near, far = (found[1], found[2])[::sign]
    assert (found[0], far) == pytest.approx((plainly(*at), most if sign > 0 else least), rel=1e-6)
    # What is told because it lies beyond reaches further towards none.
    assert 0 <= sign * near <= max(sign * (least if sign > 0 else most), 0)


def test_nothing_beyond_turns_nothing() -> None:
    for function in (labels_by_weight, labels_by_bar, labels_by_skill):
        assert function(LABELS, Excess(value=0.0, error=0.1, critical=1.96))[0] == 0


def rates_of(prevalence: float, separation: float, far: float) -> tuple[float, float]:
    """Rates of yes, true and false, of people who weigh a miss `far` times the agreed four."""
    criterion = (separation**2 / 2 - logit(prevalence) - np.log(4 * far)) / separation
    return float(ndtr(separation - criterion)), float(ndtr(-criterion))


# Where errors of a kind are fewer than one in fifty, nothing is judged.
SETTINGS = [
    setting
    for setting in product((0.1, 0.3, 0.5), (1.0, 1.6, 2.5), (0.7, 1.3, 2.0))
    if rates_of(*setting)[0] < 0.98 and rates_of(*setting)[1] > 0.02
]


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize(("prevalence", "separation", "far"), SETTINGS)
def test_intervals_cover(prevalence: float, separation: float, far: float, n: int) -> None:
    rng, runs = np.random.default_rng(7), 600
    hit, alarm = rates_of(prevalence, separation, far)
    positives = rng.binomial(n, prevalence, runs)
    hits, alarms = rng.binomial(positives, hit), rng.binomial(n - positives, alarm)
    found = signal_detection(hits, positives - hits, alarms, n - positives - alarms)
    shift = np.log(far) / separation
    truth = n * (
        prevalence * (hit - ndtr(ndtri(hit) - shift))
        + (1 - prevalence) * (alarm - ndtr(ndtri(alarm) - shift))
    )

    def variance(rate: float, z: float, count: int) -> float:
        return float(rate * (1 - rate) / (count * normal_density(z) ** 2))

    # Of all, and of those that are told: shown to lie beyond, on the side where the truth lies.
    covered, beyond = [], []
    for i in range(runs):
        rates = float(found.hit_rate[i]), float(found.false_alarm_rate[i])
        z = float(found.z_hit[i]), float(found.z_false_alarm[i])
        counts = int(positives[i]), int(n - positives[i])
        if min(counts) < UNTOLD_UNDER:
            continue
        labels = Labels(
            positives=counts[0],
            negatives=counts[1],
            z_hit=z[0],
            z_false_alarm=z[1],
            variance_hit=variance(rates[0], z[0], counts[0]),
            variance_false_alarm=variance(rates[1], z[1], counts[1]),
            covariance=0.0,
        )
        excess = Excess(
            value=float(found.log_cost_ratio[i] - np.log(4)),
            error=float(found.log_cost_ratio_error[i]),
            critical=1.96,
        )
        _, low, high = labels_by_weight(labels, excess)
        covered.append(low <= truth <= high)
        if abs(excess.value) > 1.96 * excess.error and excess.value * np.log(far) > 0:
            beyond.append(covered[-1])
    if len(covered) >= 100:
        assert np.mean(covered) >= 0.91
    if len(beyond) >= 30:
        assert np.mean(beyond) >= 0.91
