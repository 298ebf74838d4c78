"""Summaries over groups hold as often as they promise, also where there is no gap at all."""

import numpy as np
import pytest

from evenhand.decisions.roles import Attribute, Roles
from evenhand.decisions.tally import Tally
from evenhand.lenses.lens import Options
from evenhand.lenses.rows import Rows
from evenhand.lenses.statistical import measure_tally

ATTRIBUTE = Attribute(name="group", columns=("group",))
ROLES = Roles(truth="truth", decision="decision", group=("group",), rule="given")
GROUPS, CASES, TABLES = "abc", 400, 300


def audited(generator, hits, alarms):
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
    parts, _ = measure_tally(Tally.of(keys, {"n": counts}), ATTRIBUTE, ROLES, Options())
    return Rows.concatenate(parts)


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
        rows = audited(generator, hits, alarms)
        row = next(iter(rows.where(measure="equalised_odds", class_="1")))
        held[0] += row["family_low"] <= odds + 1e-12 and odds - 1e-12 <= row["family_high"]
        ratios = [r for r in rows.where(measure="impact_ratio", class_="1") if r["low"] is not None]
        held[1] += all(
            r["family_low"] <= selected[r["group"]] / selected[r["reference"]] <= r["family_high"]
            for r in ratios
        )
    assert (held / TABLES >= 0.93).all(), held / TABLES
