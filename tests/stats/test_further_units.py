"""Further units that would settle a verdict: by the family's interval, by one group, of a size."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats import power
from evenhand.stats.estimate import critical
from evenhand.stats.power import (
    family_critical,
    further_units,
    further_units_of_group,
    further_units_of_size,
    units_for_floor,
)
from evenhand.stats.rates import newcombe
from evenhand.stats.spread import quadratic_moments, size_of

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "corrections.json").read_text())
Z = critical(0.95)
BAND = {"low": -0.05, "high": 0.05}


def test_oracle_both_groups() -> None:
    case = ORACLES["16.1a_further_both"]
    given_ = case["inputs"]
    half = given_["q"] * given_["se"]
    more = further_units(
        given_["value"],
        family_low=given_["value"] - half,
        family_high=given_["value"] + half,
        z=given_["q"],
        low=-given_["limit"],
        high=given_["limit"],
        units=given_["n"],
    )
    assert more.ratio == pytest.approx(case["ratio"], abs=1e-6)
    assert more.units == pytest.approx(case["units"], abs=1e-6)


def test_oracle_this_group_alone() -> None:
    case = ORACLES["16.1b_further_this_group_only"]
    given_ = case["inputs"]
    more = further_units_of_group(
        0.05 + given_["distance"],
        variance=given_["var_group"],
        variance_reference=given_["var_reference"],
        z=given_["q"],
        **BAND,
        units=given_["n_group"],
    )
    assert more.ratio == pytest.approx(case["ratio"], abs=1e-6)
    assert more.units == pytest.approx(case["units"], rel=1e-6)


def test_ratios_by_hand_on_the_log_scale() -> None:
    # log 1.6 − log 1.25 = 0.24686; se = (log 2 − log 1.28)/(2·2) = 0.111572;
    # r = (2.841621·0.111572/0.24686)² = 1.64943: 100 units need 64.9 more.
    more = further_units(
        1.6, family_low=1.28, family_high=2.0, z=2.0, low=0.8, high=1.25, units=100, on_log=True
    )
    assert float(more.units) == pytest.approx(64.94, abs=0.02)
    mirrored = further_units(
        1 / 1.6,
        family_low=0.5,
        family_high=1 / 1.28,
        z=2.0,
        low=0.8,
        high=1.25,
        units=100,
        on_log=True,
    )
    assert float(mirrored.units) == pytest.approx(float(more.units))


def test_a_rare_rate_uses_both_arms() -> None:
    # The lower arm of a rare rate is short; one arm alone would promise that nothing is lacking.
    more = further_units(
        0.02, family_low=0.012, family_high=0.06, z=2.0, low=0, high=0.03, units=100
    )
    assert more.ratio == pytest.approx(((2 + 0.8416212) * 0.012 / 0.01) ** 2, rel=1e-6)


def test_reasons() -> None:
    ends = {"family_low": 0.0, "family_high": 0.1, "z": Z, "units": 500, **BAND}
    assert str(further_units(0.0503, **ends).reason) == "too close to the limit to be settled"
    assert str(further_units(0.0497, **ends).reason) == power.TOO_CLOSE
    far = further_units(0.0535, **ends)
    assert str(far.reason) == power.TOO_CLOSE
    assert np.isnan([far.units, far.ratio]).all()
    assert str(further_units(np.nan, **ends).reason) == "no value to settle"
    assert str(further_units(0.0, **{**ends, "units": 0}).reason) == power.UNKNOWN
    alone = {"variance": 0.001, "z": Z, "units": 100, **BAND}
    lacking = further_units_of_group(0.06, variance_reference=0.001, **alone)
    assert str(lacking.reason) == ("the reference is too small for this group alone to settle it")
    unknown = further_units_of_group(np.nan, variance_reference=0.001, **alone)
    assert str(unknown.reason) == power.UNKNOWN


def test_open_bands_and_axes() -> None:
    shared = {"family_low": [[-0.1], [0.0]], "family_high": [[0.1], [0.2]], "z": Z, "units": 10}
    more = further_units([[0.0], [0.1]], low=-np.inf, high=[0.05, 0.3], **shared)
    assert more.units.shape == (2, 2)
    alone = further_units(0.1, family_low=0.0, family_high=0.2, z=Z, units=10, low=-9, high=0.3)
    assert more.units[1, 1] == pytest.approx(float(alone.units))


@given(
    st.floats(-0.3, 0.3),
    st.floats(0.005, 0.2),
    st.floats(1.5, 4.0),
    st.floats(1e-6, 1e-3),
    st.floats(1e-5, 1e-2),
)
def test_the_group_alone_needs_more_than_its_share(value, limit, z, reference, own) -> None:
    """The root solves its equation, and more data in the reference never hurts."""
    more = further_units_of_group(
        value, variance=own, variance_reference=reference, z=z, low=-limit, high=limit, units=100
    )
    if str(more.reason):
        return
    left = own / float(more.ratio)
    distance = min(abs(value - limit), abs(value + limit))
    assert z * np.sqrt(reference + left) + power._POWER * np.sqrt(left) == pytest.approx(distance)
    surer = further_units_of_group(
        value,
        variance=own,
        variance_reference=reference / 2,
        z=z,
        low=-limit,
        high=limit,
        units=100,
    )
    assert surer.ratio <= more.ratio * (1 + 1e-9)


@given(st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=12), st.floats(0.02, 0.3))
def test_size_by_its_own_inequality(gaps, limit) -> None:
    moments = quadratic_moments(gaps, variances=np.full(len(gaps), 0.002))
    more = further_units_of_size(moments, z=Z, low=0, high=limit, units=1000)
    if str(more.reason):
        return
    x = max(float(moments.total - moments.trace), 0.0)
    wanted = len(gaps) * limit**2

    def lacking(r: float) -> float:
        def deviation(of: float) -> float:
            return np.sqrt(4 * moments.along * of / r + 2 * moments.trace_squared / r**2)

        return Z * deviation(wanted) + power._POWER * deviation(x) - abs(x - wanted)

    assert lacking(float(more.ratio) * 1.0001) <= 0
    assert lacking(float(more.ratio) * 0.999) > 0 or more.ratio < 1e-4


def test_a_floor_is_named_by_the_side_that_lacks_it() -> None:
    more, side = units_for_floor(
        [400, 20, 60, 0], [30, 25, np.nan, 80], floor=50, units=[900, 90, 60, 80]
    )
    # 900·(50/30 − 1) = 600, 90·(50/20 − 1) = 135; a side of nobody cannot grow by its share.
    assert more[:3].tolist() == pytest.approx([600, 135, 0])
    assert np.isnan(more[3])
    assert side.tolist() == ["reference", "group", "", "group"]


def test_critical_value_recovered_from_widths() -> None:
    assert family_critical(0.8, 1.25, family_low=0.64, family_high=1.5625, z=2.0, on_log=True) == (
        pytest.approx(4.0)
    )
    # No width to compare: the marginal value.
    assert family_critical(0.1, 0.1, family_low=0.1, family_high=0.1, z=2.0) == 2.0


def settles(generator, *, clusters: bool) -> tuple[float, float]:
    """Share settled after collecting what clusters ask for, and what rows alone would promise."""
    size, rho = 20, 0.2
    rates = np.array([0.42, 0.30])

    def draw(repetitions: int, groups: int) -> np.ndarray:
        alpha = rates * (1 - rho) / rho
        beta = (1 - rates) * (1 - rho) / rho
        own = generator.beta(alpha[:, None], beta[:, None], (repetitions, 2, groups))
        return generator.binomial(size, own)

    def gap(hits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        share = hits / size
        value = share.mean(-1)
        error = np.sqrt(share.var(-1, ddof=1).sum(-1) / hits.shape[-1])
        if not clusters:
            error = np.sqrt((value * (1 - value)).sum(-1) / (size * hits.shape[-1]))
        return value[:, 0] - value[:, 1], error

    now = 15
    # The truth is what the gap looks like: 0.12 against a limit of 0.05.
    more = further_units(
        0.12,
        family_low=0.12 - Z * gap(draw(4000, now))[1].mean(),
        family_high=0.12 + Z * gap(draw(4000, now))[1].mean(),
        z=Z,
        **BAND,
        units=2 * now,
    )
    later = now + int(np.ceil(float(more.units) / 2))
    hits = draw(800, later) / size
    value = hits.mean(-1)
    error = np.sqrt(hits.var(-1, ddof=1).sum(-1) / later)
    gaps = value[:, 0] - value[:, 1]
    settled = (gaps - Z * error > 0.05) | (np.abs(gaps) + Z * error < 0.05)
    return float(settled.mean()), float(more.units)


def test_four_of_five_settle_with_clusters() -> None:
    """Rows taken for independent ask for a quarter of it and settle a third."""
    share, _ = settles(np.random.default_rng(3), clusters=True)
    assert 0.75 <= share <= 0.9
    naive, _ = settles(np.random.default_rng(3), clusters=False)
    assert naive < 0.6


def test_four_of_five_settle_with_rows() -> None:
    generator = np.random.default_rng(4)
    n = np.array([300, 500])
    low, high = newcombe(0.42 * 300, 300, 0.30 * 500, 500, z=Z)
    more = further_units(0.12, family_low=low, family_high=high, z=Z, **BAND, units=n.sum())
    later = np.round(n * (1 + float(more.units) / n.sum()))
    hits = generator.binomial(later.astype(int), [0.42, 0.30], (4000, 2))
    low, high = newcombe(hits[:, 0], later[0], hits[:, 1], later[1], z=Z)
    assert 0.75 <= ((low > 0.05) | (high < -0.05)).mean() <= 0.88


@pytest.mark.parametrize(
    ("size", "limit", "least", "most"), [(0.03, 0.06, 0.8, 0.93), (0.08, 0.05, 0.7, 0.85)]
)
def test_about_four_of_five_sizes_settle(size, limit, least, most) -> None:
    """Sums of squares are skewed: sizes inside settle .86 to .94, sizes outside .70 to .76."""
    generator = np.random.default_rng(5)
    truth = np.tile([size, -size], 6)
    variance = np.full(12, 0.003)
    # At its mean the sum of squares is the true one with the noise added.
    swollen = truth * np.sqrt(1 + variance.sum() / (truth**2).sum())
    moments = quadratic_moments(swollen, variances=variance)
    more = further_units_of_size(moments, z=Z, low=0, high=limit, units=1000)
    later = variance / float(more.ratio)
    seen = truth + generator.standard_normal((3000, 12)) * np.sqrt(later)
    found = size_of(quadratic_moments(seen, variances=later), z=Z)
    assert least <= ((found.low > limit) | (found.high < limit)).mean() <= most
