"""Summaries over groups hold as often as they promise, also where there is no gap at all."""

import numpy as np
import pytest

from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.tally import Tally
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.statistical.confusion import confusion
from evenhand.lenses.statistical.lens import ODDS, attribute_scope, measure_tally
from evenhand.lenses.statistical.rates import group_rates
from evenhand.lenses.statistical.summaries import (
    equalised_odds_rows,
    impact_ratio_rows,
    worst,
)

ATTRIBUTE = Attribute(name="group", columns=("group",))
ROLES = Roles(truth="truth", decision="decision", group=("group",), rule="given")
GROUPS, CASES, TABLES = "abc", 400, 300


def drawn(generator, hits, alarms):
    """The tally of a table with these rates of hits and of false alarms by group."""
    keys = {"group": [], "truth": [], "decision": []}
    counts = []
    for group, hit, alarm in zip(GROUPS, hits, alarms):
        positives = generator.binomial(CASES, 0.4)
        found = generator.binomial(positives, hit)
        wrong = generator.binomial(CASES - positives, alarm)
        cells = [(1, 1, found), (1, 0, positives - found)]
        cells += [(0, 1, wrong), (0, 0, CASES - positives - wrong)]
        for truth, decision, n in cells:
            for name, value in (("group", group), ("truth", truth), ("decision", decision)):
                keys[name].append(value)
            counts.append(n)
    return Tally.of(keys, {"n": counts})


def odds_and_impact(tally):
    """Equalised odds and impact ratios alone, as the lens makes them: a tenth of all its rows."""
    table = confusion(tally, ROLES)
    scope = attribute_scope(table, ATTRIBUTE, ROLES, Options())
    rates = {rate: group_rates(table, rate) for rate in (*ODDS, "selection_rate")}
    pairs = {r: worst(scope, rates[r], certainty=None, rates_at_once=len(ODDS)) for r in ODDS}
    cases = {rate: rates[rate].cases for rate in ODDS}
    ratios = impact_ratio_rows(scope, rates["selection_rate"], certainty=None)
    return Rows.concatenate([equalised_odds_rows(scope, pairs, cases), ratios])


def test_parts_of_the_lens_are_what_it_gives():
    tally = drawn(np.random.default_rng(5), [0.8, 0.7, 0.75], [0.2, 0.2, 0.25])
    whole = Rows.concatenate(measure_tally(tally, ATTRIBUTE, ROLES, Options())[0])
    alone = odds_and_impact(tally)
    for name in ("equalised_odds", "impact_ratio"):
        assert list(alone.where(measure=name)) == list(whole.where(measure=name))


@pytest.mark.parametrize(
    ("hits", "alarms"),
    [([0.8, 0.8, 0.8], [0.2, 0.2, 0.2]), ([0.8, 0.7, 0.75], [0.2, 0.2, 0.25])],
    ids=["no gap", "gaps"],
)
def test_equalised_odds_and_impact_ratios_cover(hits, alarms):
    generator = np.random.default_rng(5)
    odds = max(np.ptp(hits), np.ptp(alarms))
    selected = dict(zip(GROUPS, 0.4 * np.array(hits) + 0.6 * np.array(alarms)))
    held = np.zeros(2)
    for _ in range(TABLES):
        rows = odds_and_impact(drawn(generator, hits, alarms))
        row = next(iter(rows.where(measure="equalised_odds", class_="1")))
        held[0] += row["family_low"] <= odds + 1e-12 and odds - 1e-12 <= row["family_high"]
        ratios = [r for r in rows.where(measure="impact_ratio", class_="1") if r["low"] is not None]
        held[1] += all(
            r["family_low"] <= selected[r["group"]] / selected[r["reference"]] <= r["family_high"]
            for r in ratios
        )
    assert (held / TABLES >= 0.93).all(), held / TABLES


def decided(counts, **names):
    """The rows of decisions alone, from counts by (stratum or group …, class)."""
    axes = [*names, "decision"]
    labels = [*names.values(), [f"k{i}" for i in range(counts.shape[-1])]]
    if counts.shape[-1] == 2:
        labels[-1] = ["0", "1"]
    places = np.indices(counts.shape).reshape(counts.ndim, -1)
    keys = {axis: np.array(label)[at].tolist() for axis, label, at in zip(axes, labels, places)}
    roles = Roles(
        decision="decision",
        group=("group",),
        rule="given",
        reference={"group": "a"},
        stratum="stratum" if "stratum" in names else None,
    )
    tally = Tally.of(keys, {"n": counts.reshape(-1).tolist()})
    return Rows.concatenate(measure_tally(tally, ATTRIBUTE, roles, Options())[0])


def test_numbers_over_classes_and_groups_hold_together():
    """What the report says of all classes and groups of a measure is true of these too."""
    generator = np.random.default_rng(2)
    p = np.array([0.3, 0.22, 0.18, 0.14, 0.1, 0.06])
    rates = np.stack([p, np.roll(p, 1), p[[1, 0, 3, 2, 5, 4]]])
    truth = {
        "selection_rate_gap_worst": np.ptp(rates, axis=0),
        "selection_rate_spread": rates.std(axis=0),
        "selection_rate_gap_rms": np.sqrt(((rates[1:] - rates[0]) ** 2).mean(axis=1)),
    }
    held = dict.fromkeys(truth, 0)
    for _ in range(150):
        counts = np.stack([generator.multinomial(n, r) for n, r in zip((720, 360, 120), rates)])
        rows = decided(counts, group=list("abc"))
        for measure, true in truth.items():
            own = rows.where(measure=measure)
            assert len(own) == len(true)
            held[measure] += bool(
                ((own["family_low"] <= true) & (true <= own["family_high"])).all()
            )
    # At 95 % fewer than 136 of 150 happen once in sixty times.
    assert min(held.values()) >= 136, held


def test_strata_at_the_limit_seldom_make_a_headline():
    generator = np.random.default_rng(3)
    strata, n, limit = 12, 300, 0.05
    found = 0
    for _ in range(150):
        hits = generator.binomial(n, np.array([0.3, 0.3 + limit]), (strata, 2))
        counts = np.stack([n - hits, hits], axis=-1)
        names = [f"s{i:02}" for i in range(strata)]
        rows = decided(counts, stratum=names, group=list("ab"))
        own = rows.where(measure="selection_rate_gap", class_="1")
        # Each stratum, the whole table and the summary.
        assert len(own) == strata + 2
        found += bool(((own["family_low"] > limit) | (own["family_high"] < -limit)).any())
    assert found <= 12


def test_the_mirror_class_leaves_the_family():
    rows = decided(np.array([[60, 40], [70, 80]]), group=list("ab"))
    for row in rows.where(measure="selection_rate_gap"):
        # Two groups of a binary decision make one comparison.
        assert (row["family_low"], row["family_high"]) == pytest.approx((row["low"], row["high"]))


def test_a_tiny_group_is_never_what_others_are_compared_with():
    rows = decided(np.array([[400, 200], [300, 120], [2, 16]]), group=list("abc"))
    own = list(rows.where(measure="impact_ratio", class_="1"))
    assert {row["reference"] for row in own} == {"a"}
    tiny = next(row for row in own if row["group"] == "c")
    # 16 of 18 against 200 of 600.
    assert tiny["value"] == pytest.approx(16 / 18 * 3)
    assert tiny["method"].endswith("too few cases to be the highest rate")
    none = decided(np.array([[20, 20], [20, 25]]), group=list("ab")).where(measure="impact_ratio")
    assert set(none["undefined"]) == {"no group has 2 % of the rows and 50 cases to compare with"}
