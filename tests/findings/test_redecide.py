"""How many decisions a limit asks for: by hand, by counting again, and covered."""

from math import ceil
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.findings.sentences.redecide import decisions_beyond, decisions_step
from evenhand.findings.sentences.words import Words
from evenhand.lenses.rows import Row
from evenhand.report.page import summarise
from evenhand.stats.rates import koopman, wilson

Z = 1.959963984540054
# Selected and all, by group: rates of .30, .50 and .60.
COUNTS = {"a": (240, 800), "b": (500, 1000), "c": (360, 600)}


def table(counts: dict[str, tuple[int, int]]) -> dict[str, list[Any]]:
    rows = [(g, int(i < k)) for g, (k, n) in counts.items() for i in range(n)]
    return {"group": [g for g, _ in rows], "decision": [d for _, d in rows]}


def audited(counts: dict[str, tuple[int, int]], measure: str, limit: Any) -> eh.Audit:
    limits, reference = {measure: limit}, {"group": "c"}
    return eh.audit(
        table(counts), decision="decision", group="group", positive="1", limits=limits,
        reference=reference, lenses=["statistical"],
    )  # fmt: skip


def moved(counts: dict[str, tuple[int, int]], group: str, by: int) -> dict[str, tuple[int, int]]:
    hits, n = counts[group]
    return counts | {group: (hits + by, n)}


def value_of(audit: eh.Audit, measure: str, group: str) -> float:
    rows = audit.rows.where(measure=measure, group=group, reference="c", class_="1")
    return float(next(iter(rows))["value"])


# What a's 800 decisions would have to be beside c's rate of .6: .8 × .6 × 800 = 384, 144 more than
# 240; .75 × .6 × 800 = 360, 120 more; and five points below, .55 × 800 = 440, 200 more.
BY_HAND = {
    "impact_ratio": (0.8, 144),
    "selection_rate_ratio": (0.75, 120),
    "selection_rate_gap": (0.05, 200),
}


@pytest.mark.parametrize("measure", BY_HAND)
def test_by_hand_and_counted_again(measure: str) -> None:
    limit, many = BY_HAND[measure]
    audit = audited(COUNTS, measure, limit)
    assert f"about {many} (" in str(audit.findings[0].next)
    assert "of the 800 decisions on group a would have to come out" in str(audit.findings[0].next)
    edge = -limit if measure.endswith("gap") else limit
    after = value_of(audited(moved(COUNTS, "a", many), measure, limit), measure, "a")
    short = value_of(audited(moved(COUNTS, "a", many - 1), measure, limit), measure, "a")
    assert short < edge - 1e-9 <= after
    assert after == pytest.approx(edge, abs=1 / 600)


def test_a_rate_that_is_too_high_comes_down() -> None:
    counts = {"a": (421, 500), "b": (300, 1000), "c": (300, 600)}
    audit = audited(counts, "selection_rate_ratio", 0.8)
    many = ceil(421 - 1.25 * 0.5 * 500)  # .625 × 500 = 312.5 may be selected
    assert f"about {round(108.5):,} (" in str(audit.findings[0].next)
    after = value_of(audited(moved(counts, "a", -many), "selection_rate_ratio", 0.8),
                     "selection_rate_ratio", "a")  # fmt: skip
    assert after <= 1.25 < after + 0.01


def test_either_side_of_a_widest_gap_may_move() -> None:
    # a and c lie 30 points apart, 5 may: a quarter of the decisions of either.
    said = str(audited(COUNTS, "selection_rate_gap_worst", 0.05).findings[0].next)
    assert "To keep what was agreed between these two groups, about 150 (" in said
    assert "of the 600 decisions on group c, or 200 (" in said
    assert "of the 800 decisions on group a, would have to come out otherwise." in said


def test_the_larger_error_gap_names_its_rate_and_counts() -> None:
    cells = {("a", 1): (50, 100), ("c", 1): (90, 100), ("a", 0): (30, 100), ("c", 0): (40, 100)}
    rows = [(g, t, int(i < k)) for (g, t), (k, n) in cells.items() for i in range(n)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("group", "truth", "yes"))}
    audit = eh.audit(columns, truth="truth", decision="yes", group="group", positive="1",
                     limits={"equalised_odds": 0.1}, lenses=["statistical"])  # fmt: skip
    found = audit.findings[0]
    assert found.headline == (
        "Of all groups, group c and group a differ most in how often those whose truth is '1' get "
        "decision '1'"
    )
    assert found.detail.startswith("90% against 50%: 40 points (")
    # 30 of a hundred on either side.
    assert str(found.next).count("30 (") == 2


def simulated(rng: np.random.Generator, sizes: tuple[int, int], rates: tuple[float, float],
              edge: float) -> tuple[Row, list[Row]]:  # fmt: skip
    hits = [int(rng.binomial(n, p)) for n, p in zip(sizes, rates)]
    held: list[Row] = []
    for name, k, n in zip("ac", hits, sizes):
        low, high = (float(end) for end in wilson(k, n, z=Z))
        held.append({"measure": "selection_rate", "group": name, "value": k / n, "low": low,
                     "high": high})  # fmt: skip
    low, high = (float(end) for end in koopman(hits[0], sizes[0], hits[1], sizes[1], z=Z))
    lead: Row = {
        "measure": "selection_rate_ratio", "group": "a", "reference": "c", "n": sizes[0],
        "value": held[0]["value"] / held[1]["value"], "low": low, "high": high, "family_low": low,
        "family_high": high, "level": 0.95, "limit_low": edge, "limit_high": 1 / edge,
        "stratum": None, "class": "1", "attribute": "group",
    }  # fmt: skip
    return lead, held


@pytest.mark.parametrize("sizes", [(100, 100), (100, 2000), (2000, 100)])
@pytest.mark.parametrize("rates", [(0.1, 0.3), (0.3, 0.6), (0.9, 0.5)])
def test_intervals_cover_where_they_are_told(
    sizes: tuple[int, int], rates: tuple[float, float]
) -> None:
    rng, edge, covered = np.random.default_rng(3), 0.8, []
    wanted = rates[1] * (edge if rates[0] < rates[1] else 1 / edge)
    truth = sizes[0] * abs(rates[0] - wanted)
    for _ in range(600):
        lead, held = simulated(rng, sizes, rates, edge)
        if lead["family_high"] < edge or lead["family_low"] > 1 / edge:
            counted = decisions_beyond(lead, held)
            assert counted is not None
            covered.append(counted[1] <= truth <= counted[2])
    assert np.mean(covered) >= 0.93
    assert len(covered) > 100


def test_beside_its_limit_the_usual_interval_would_not_hold() -> None:
    """True rates whose ratio lies just beyond 0.8: told in one of eleven tables."""
    rng, held_by = np.random.default_rng(5), {"told": 0, "allowed for": 0, "usual": 0}
    truth = 1500 * (0.8 * 0.4 - 0.31)
    for _ in range(1200):
        lead, held = simulated(rng, (1500, 1500), (0.31, 0.4), 0.8)
        if lead["family_high"] < 0.8:
            counted = decisions_beyond(lead, held)
            assert counted is not None
            own, other = (one["value"] for one in held)
            near = 1500 * (0.8 * other - own) - (counted[2] - counted[0])
            held_by["told"] += 1
            held_by["allowed for"] += counted[1] <= truth <= counted[2]
            held_by["usual"] += near <= truth <= counted[2]
    assert held_by["told"] > 80
    assert held_by["allowed for"] / held_by["told"] >= 0.95
    assert held_by["usual"] / held_by["told"] <= 0.85


def test_nothing_is_said_where_no_number_follows() -> None:
    lead, held = simulated(np.random.default_rng(1), (200, 200), (0.2, 0.6), 0.8)
    assert decisions_step(lead, Words(), held).startswith("To keep what was agreed, about ")
    assert decisions_step(lead, Words(), []) == ""
    assert decisions_step(lead, Words(), [held[0], held[1] | {"low": None}]) == ""
    assert decisions_step(None, Words(), held) == ""
    there = decisions_step(lead | {"stratum": "18-30"}, Words(stratum="age"), held)
    assert "decisions on group a where age is 18-30 would have to" in there


# By colour and sex: Black men and Black people lie as far below as the other.
PEOPLE = {
    ("b", "m"): (180, 360),
    ("b", "f"): (20, 40),
    ("w", "m"): (700, 1000),
    ("w", "f"): (70, 100),
}


def test_what_is_said_of_a_part_is_not_said_again_of_the_whole() -> None:
    rows = [(*key, int(i < k)) for key, (k, n) in PEOPLE.items() for i in range(n)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("colour", "sex", "yes"))}
    audit = eh.audit(
        columns, decision="yes", group=["colour", "sex"], crossed=True, positive="1",
        reference={"colour": "w", "colour*sex": "w*m"}, limits={"selection_rate_gap": 0.05},
    )  # fmt: skip
    steps = [str(one.next) for one in audit.findings if one.verdict == "outside"]
    # (0.20 − 0.05) × 400 = 60 of all.
    assert steps[0].startswith("To keep what was agreed, about 60 (")
    assert steps[1] == (
        "The 360 decisions on people whose colour is b and sex is m are among the 400 on group b: "
        "what is done about those counts here too."
    )


def test_a_part_that_asks_for_more_is_said_beside_the_whole() -> None:
    lead, held = simulated(np.random.default_rng(1), (200, 200), (0.2, 0.6), 0.8)
    whole = lead | {"attribute": "g", "group": "a", "reference": "c"}
    part = whole | {"attribute": "g*s", "group": "a*m", "reference": "c*m"}
    parts = [one | {"group": f"{one['group']}*m"} for one in held]
    told = Words(told=((part, *parts),))
    assert decisions_step(whole, told, held).startswith("Of the 200 decisions on group a, 200 are")
    lesser = [parts[0] | {"value": 0.45}, parts[1]]
    assert decisions_step(whole, Words(told=((part, *lesser),)), held).startswith("To keep what")
    other = part | {"reference": "d*m"}
    assert decisions_step(whole, Words(told=((other, *parts),)), held).startswith("To keep what")


def test_a_gap_that_nobody_judges_is_not_said_again_beside_its_ratio() -> None:
    pairs = {"a": (240, 800), "c": (360, 600)}
    said = [one.measure for one in audited(pairs, "impact_ratio", 0.8).findings]
    assert said == ["impact_ratio"]
    said = [one.measure for one in audited(pairs, "selection_rate_gap", 0.05).findings]
    assert said == ["selection_rate_gap"]


def test_the_picture_has_the_band_of_a_ratio_and_both_groups_of_a_widest_gap() -> None:
    def picture(measure: str, limit: float) -> Any:
        return summarise(audited(COUNTS, measure, limit).record())["screen"]["picture"]

    chart = picture("impact_ratio", 0.8)["charts"][0]
    # 0.8 × 0.6 = 0.48, and 1.25 × 0.6 = 0.75.
    assert chart["agreed"] == "agreed: 0.8 to 1.25 × c"
    for row in chart["rows"]:
        assert (row["limit_low"], row["limit_high"]) == pytest.approx((0.48, 0.75))
    drawn = picture("selection_rate_gap_worst", 0.05)
    assert [item["text"] for item in drawn["legend"]] == ["Outside its limit", "Others"]
