"""How many wrong decisions a limit asks for: by hand, by counting again, and covered."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.findings.sentences.redecide import decisions_beyond, decisions_step, undone, worse_off
from evenhand.findings.sentences.words import Words
from evenhand.lenses.rows import Row
from evenhand.report.page import summarise
from evenhand.stats.rates import koopman, wilson

Z = 1.959963984540054
# Selected and all, by group and truth: of the true ones .30, .50 and .60 are found.
Counts = Mapping[tuple[str, int], tuple[int, int]]
COUNTS: Counts = {
    ("a", 1): (240, 800), ("b", 1): (500, 1000), ("c", 1): (360, 600),
    ("a", 0): (100, 1000), ("b", 0): (100, 1000), ("c", 0): (100, 1000),
}  # fmt: skip
WHERE_FROM = (
    "Look first where it comes from: how common and how well told apart true cases are in each "
    "group, and how good their labels are. Then compare remedies side by side, with what each "
    "costs (evenhand compare)."
)
DEPENDS_ON = (
    "Look first whether the groups differ in what decisions should depend on, and compare within "
    "it (--stratum). Then compare remedies side by side, with what each costs (evenhand compare)."
)


def table(counts: Counts) -> dict[str, list[Any]]:
    rows = [(g, t, int(i < k)) for (g, t), (k, n) in counts.items() for i in range(n)]
    return {name: [row[i] for row in rows] for i, name in enumerate(("group", "truth", "yes"))}


def audited(counts: Counts, limits: dict[str, Any], *, reference: str = "c", **more: Any) -> Any:
    return eh.audit(
        table(counts), truth="truth", decision="yes", group="group", positive="1", limits=limits,
        reference={"group": reference}, lenses=["statistical"], **more,
    )  # fmt: skip


def moved(counts: Counts, key: tuple[str, int], by: int) -> Counts:
    hits, n = counts[key]
    return {**counts, key: (hits + by, n)}


def value_of(audit: eh.Audit, measure: str, group: str, reference: str = "c") -> float:
    rows = audit.rows.where(measure=measure, group=group, reference=reference, class_="1")
    return float(next(iter(rows))["value"])


# What a's 800 true cases would have to be beside c's rate of .6: .75 × .6 × 800 = 360, 120 more
# than 240; and five points below, .55 × 800 = 440, 200 more.
BY_HAND = {"true_positive_rate_ratio": (0.75, 120), "true_positive_rate_gap": (0.05, 200)}


@pytest.mark.parametrize("measure", BY_HAND)
def test_by_hand_and_counted_again(measure: str) -> None:
    limit, many = BY_HAND[measure]
    audit = audited(COUNTS, {measure: limit})
    assert re.match(
        rf"To keep what was agreed, about {many} \(\d+ to \d+\) of the 560 wrong decisions on "
        r"people of group a whose truth is '1' would have to be decided differently\. Look first ",
        str(audit.findings[0].next),
    ), audit.findings[0].next
    edge = -limit if measure.endswith("gap") else limit
    after, short = (
        value_of(audited(moved(COUNTS, ("a", 1), by), {measure: limit}), measure, "a")
        for by in (many, many - 1)
    )
    assert short < edge - 1e-9 <= after
    assert after == pytest.approx(edge, abs=1 / 600)


# Of 70 people of the smaller group 7 are flagged wrongly, of 1,200 of the larger one 641: it is
# the larger group, which others are compared with, that is worse off.
FLAGGED: Counts = {
    ("few", 0): (7, 70), ("few", 1): (30, 60),
    ("many", 0): (641, 1200), ("many", 1): (600, 1200),
}  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "limit", "many"),
    # 641 − (0.1 + 0.05) × 1,200 = 461; 641 − 0.1 ÷ 0.8 × 1,200 = 491.
    [("false_positive_rate_gap", 0.05, 461), ("false_positive_rate_ratio", 0.8, 491)],
)
def test_the_worse_off_reference_is_counted_and_nobody_else_is_flagged(
    measure: str, limit: float, many: int
) -> None:
    def value(counts: Counts) -> float:
        found = audited(counts, {measure: limit}, reference="many")
        return value_of(found, measure, "few", "many")

    said = str(audited(FLAGGED, {measure: limit}, reference="many").findings[0].next)
    assert re.match(
        rf"To keep what was agreed, about {many} \(\d+ to \d+\) of the 641 wrong decisions on "
        r"people of group many whose truth is not '1' would have to be decided differently\. Look",
        said,
    ), said
    edge = -limit if measure.endswith("gap") else limit
    assert value(moved(FLAGGED, ("many", 0), 1 - many)) < edge - 1e-9
    assert value(moved(FLAGGED, ("many", 0), -many)) >= edge - 1e-9


def test_the_command_line_asks_for_fewer_wrong_decisions_on_the_worse_off(run, tmp_path) -> None:
    pl.DataFrame(table(FLAGGED)).write_csv(tmp_path / "flagged.csv")
    roles = ("--truth", "truth", "--decision", "yes", "--group", "group", "--positive", "1")
    code, said, _ = run("audit", tmp_path / "flagged.csv", *roles,
                        "--limit", "false_positive_rate_gap=0.05")  # fmt: skip
    assert code == 1
    told = " ".join(said.split())
    assert re.search(
        r"about 461 \(\d+ to \d+\) of the 641 wrong decisions on people of group many whose truth "
        r"is not '1' would have to be decided differently",
        told,
    )
    assert "decisions on people of group few" not in told


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize(
    ("measure", "limit"),
    [("impact_ratio", 0.8), ("selection_rate_ratio", 0.8), ("selection_rate_gap", 0.05),
     ("selection_rate_gap_worst", 0.05)],
)  # fmt: skip
def test_of_selection_no_decision_is_known_to_be_wrong(
    measure: str, limit: float, *, truth: bool
) -> None:
    columns = table(COUNTS)
    roles = {"truth": "truth"} if truth else {}
    audit = eh.audit(columns, decision="yes", group="group", positive="1", lenses=["statistical"],
                     reference={"group": "c"}, limits={measure: limit}, **roles)  # fmt: skip
    assert audit.findings[0].verdict == "outside"
    assert audit.findings[0].next == DEPENDS_ON


def test_the_command_line_gives_no_number_of_selections(run, tmp_path) -> None:
    pl.DataFrame(table(COUNTS)).drop("truth").write_csv(tmp_path / "chosen.csv")
    code, said, _ = run("audit", tmp_path / "chosen.csv", "--decision", "yes", "--group", "group",
                        "--positive", "1", "--limit", "impact_ratio=0.8")  # fmt: skip
    assert code == 1
    assert f"What to do - {DEPENDS_ON} Implementation" in " ".join(said.split())


@pytest.mark.parametrize(
    ("measure", "positive_is", "told"),
    [("false_positive_rate_gap", "burden", True), ("false_positive_rate_gap", "benefit", False),
     ("true_positive_rate_gap", "benefit", True), ("true_positive_rate_gap", "burden", False),
     ("precision_gap", "burden", True), ("precision_gap", "benefit", False),
     ("accuracy_gap", "benefit", True)],
)  # fmt: skip
def test_a_mistake_in_somebodys_favour_is_not_advised_to_be_undone(
    measure: str, positive_is: str, *, told: bool
) -> None:
    counts: Counts = {
        ("a", 1): (300, 1000), ("a", 0): (500, 1000), ("c", 1): (600, 1000), ("c", 0): (200, 1000),
    }  # fmt: skip
    audit = audited(counts, {measure: 0.05}, positive_is=positive_is)
    assert audit.findings[0].verdict == "outside"
    said = str(audit.findings[0].next)
    assert said.startswith("To keep what was agreed, about ") == told
    assert said.endswith(WHERE_FROM)
    assert told or said == WHERE_FROM


def test_everybody_else_is_named_as_such() -> None:
    roles = {"truth": "truth", "decision": "yes", "group": "group", "positive": "1"}
    audit = eh.audit(table(FLAGGED), **roles, limits={"false_positive_rate_gap": 0.05},
                     reference="<rest>", lenses=["statistical"])  # fmt: skip
    steps = [str(one.next) for one in audit.findings if one.verdict == "outside"]
    assert re.search(
        r"of the 641 wrong decisions on (people of group many|everybody else) whose truth is not "
        r"'1' would have to be decided differently", steps[0]
    ), steps  # fmt: skip


def test_no_limit_asks_for_more_wrong_decisions() -> None:
    """A band that lies on one side of none, or of what a rate is: more mistakes would keep it."""
    for limits in (
        {"true_positive_rate_gap": "0.15:0.3"},
        {"false_positive_rate": "0.3:0.5"},
        {"true_positive_rate": "0:0.1"},
        {"accuracy": "0:0.2"},
    ):
        # Of a's true cases 67.5% are found, of c's 60%.
        counts = {**COUNTS, ("a", 1): (540, 800)}
        audit = audited({key: counts[key] for key in counts if key[0] != "b"}, limits)
        assert audit.verdict == "outside"
        assert audit.findings[0].next == WHERE_FROM, limits


def test_people_overall_are_no_group_to_decide_better_about() -> None:
    lead: Row = {
        "measure": "false_positive_rate_gap", "group": "a", "reference": "<overall>", "value": -0.2,
        "limit_low": -0.05, "limit_high": 0.05, "class": "1", "stratum": None, "attribute": "g",
    }  # fmt: skip
    assert worse_off(lead, Words()) is None
    assert worse_off(lead | {"reference": "b"}, Words()) == "reference"
    assert worse_off(lead | {"value": 0.2}, Words()) == "group"


def test_of_a_widest_gap_only_the_worse_off_side_is_counted() -> None:
    # a and c lie 30 points apart, 5 may: a quarter of the decisions on a's true cases.
    said = str(audited(COUNTS, {"true_positive_rate_gap_worst": 0.05}).findings[0].next)
    assert re.match(
        r"To keep what was agreed between these two groups, about 200 \(\d+ to \d+\) of the 560 "
        r"wrong decisions on people of group a whose truth is '1' would have to be decided diff",
        said,
    ), said
    assert "group c" not in said


def test_the_larger_error_gap_names_its_rate_and_counts() -> None:
    cells = {("a", 1): (50, 100), ("c", 1): (90, 100), ("a", 0): (30, 100), ("c", 0): (40, 100)}
    found = audited(cells, {"equalised_odds": 0.1}).findings[0]
    assert found.headline == (
        "Of all groups, group c and group a differ most in how often those whose truth is '1' get "
        "decision '1'"
    )
    assert found.detail.startswith("90% against 50%: 40 points (")
    # 30 of a hundred, of which 50 are missed.
    assert re.match(
        r"To keep what was agreed between these two groups, about 30 \(\d+ to \d+\) of the 50 "
        r"wrong decisions on people of group a whose truth is '1' would have", str(found.next)
    ), found.next  # fmt: skip


# --- whatever the table -------------------------------------------------------------------------

RATES = ("true_positive_rate", "false_positive_rate", "false_negative_rate", "true_negative_rate",
         "accuracy", "precision", "selection_rate")  # fmt: skip
FORMS = ("_gap", "_ratio", "_gap_worst", "_spread", "")
Cells = dict[str, dict[str, int]]
TOLD = re.compile(
    r"about ([\d,]+) \((?:up to [\d,]+|[\d,]+ to [\d,]+)\) of the ([\d,]+) wrong decisions? on "
    r"(.*?) would have to be decided differently"
)
KINDS = {"whose truth is '1'": ("fn",), "whose truth is not '1'": ("fp",), "who get": ("fp",)}


def rate(cells: dict[str, int], name: str) -> float:
    tp, fp, fn, tn = (float(cells[one]) for one in ("tp", "fp", "fn", "tn"))
    return {
        "true_positive_rate": tp / (tp + fn), "false_negative_rate": fn / (tp + fn),
        "false_positive_rate": fp / (fp + tn), "true_negative_rate": tn / (fp + tn),
        "accuracy": (tp + tn) / (tp + fp + fn + tn), "precision": tp / (tp + fp),
    }[name]  # fmt: skip


def undo(cells: Cells, group: str, kinds: tuple[str, ...], many: int) -> Cells:
    """So many wrong decisions of a group made right, of either kind in proportion."""
    own = dict(cells[group])
    for i, kind in enumerate(kinds):
        last = i == len(kinds) - 1
        by = many if last else round(many * own[kind] / sum(own[one] for one in kinds[i:]))
        own[kind] -= by
        own[{"fn": "tp", "fp": "tn"}[kind]] += by
        many -= by
    assert min(own.values()) >= 0
    return {**cells, group: own}


def beyond(cells: Cells, lead: Row, name: str, form: str) -> float:
    """How far a number lies from its limits, counted anew."""
    low, high = lead["limit_low"], lead["limit_high"]
    if form == "_spread":
        value = float(np.std([rate(one, name) for one in cells.values()]))
    else:
        value = rate(cells[lead["group"]], name)
        other = 0.0 if form == "" else rate(cells[lead["reference"]], name)
        value = value / other if form == "_ratio" else value - other
        value = abs(value) if form == "_gap_worst" else value
    return float(max(value - high, low - value))


def steps(audit: eh.Audit) -> Iterator[tuple[str, str, Row, str]]:
    rows = list(audit.rows)
    for one in audit.findings:
        if one.verdict == "outside":
            form = next(form for form in FORMS if one.measure.endswith(form))
            yield one.measure.removesuffix(form), form, rows[one.numbers[0]], str(one.next)


@settings(max_examples=40)
@given(
    shares=st.lists(st.tuples(*[st.floats(0.05, 0.95)] * 2), min_size=3, max_size=3),
    sizes=st.lists(st.tuples(*[st.integers(120, 1500)] * 2), min_size=3, max_size=3),
    reference=st.sampled_from(["a", "b", "c"]),
    positive_is=st.sampled_from([None, "benefit", "burden"]),
    form=st.sampled_from(FORMS),
)
def test_what_is_asked_for_makes_nobody_worse_off(
    shares: Any, sizes: Any, reference: str, positive_is: str | None, form: str
) -> None:
    counts = {
        (name, t): (round(share[t] * n[t]), n[t])
        for name, share, n in zip("abc", shares, sizes)
        for t in (0, 1)
    }
    cells = {
        name: {"tp": counts[name, 1][0], "fn": counts[name, 1][1] - counts[name, 1][0],
               "fp": counts[name, 0][0], "tn": counts[name, 0][1] - counts[name, 0][0]}
        for name in "abc"
    }  # fmt: skip
    band = {"_ratio": 0.9, "": "0.3:0.6"}.get(form, 0.03)
    more = {"positive_is": positive_is} if positive_is else {}
    for name in RATES:
        audit = audited(counts, {f"{name}{form}": band}, reference=reference, **more)
        for base, kind, lead, said in steps(audit):
            told = TOLD.search(said)
            assert "otherwise" not in said
            if told is None:
                assert "about" not in said
                continue
            assert base != "selection_rate"
            many, all_ = (int(told[i].replace(",", "")) for i in (1, 2))
            group = re.search(r"group ([abc])", told[3])[1]
            wrong = next((v for k, v in KINDS.items() if k in told[3]), ("fn", "fp"))
            assert {None: "", "benefit": ("fp",), "burden": ("fn",)}[positive_is] != wrong
            assert all_ == sum(cells[group][one] for one in wrong)
            assert many <= all_
            after = undo(cells, group, wrong, many)
            mistakes = [sum(one[k] for one in cells.values()) for k in ("fn", "fp")]
            left = [sum(one[k] for one in after.values()) for k in ("fn", "fp")]
            assert all(end <= start for end, start in zip(left, mistakes))
            assert sum(mistakes) - sum(left) == many
            assert beyond(after, lead, base, kind) < beyond(cells, lead, base, kind)
            if kind != "_spread":
                # As near as whole decisions allow.
                assert abs(beyond(after, lead, base, kind)) < 0.03


# --- covered ------------------------------------------------------------------------------------


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


def missed(rng: np.random.Generator, sizes: tuple[int, int], rates: tuple[float, float],
           edge: float) -> tuple[Row, list[Row]]:  # fmt: skip
    """The same of those whose truth is '1'."""
    lead, held = simulated(rng, sizes, rates, edge)
    renamed = [one | {"measure": "true_positive_rate"} for one in held]
    return lead | {"measure": "true_positive_rate_ratio", "n_reference": sizes[1]}, renamed


def test_nothing_is_said_where_no_number_follows() -> None:
    lead, held = missed(np.random.default_rng(1), (200, 200), (0.2, 0.6), 0.8)
    assert decisions_step(lead, Words(), held).startswith("To keep what was agreed, about ")
    assert decisions_step(lead, Words(), []) == ""
    assert decisions_step(lead, Words(), [held[0], held[1] | {"low": None}]) == ""
    assert decisions_step(None, Words(), held) == ""
    where = "18-30"
    there = decisions_step(
        lead | {"stratum": where}, Words(stratum="age"), [one | {"stratum": where} for one in held]
    )
    assert "wrong decisions on people of group a whose truth is '1' where age is 18-30 would" in (
        there
    )
    # The rates of another part of the table say nothing of this one.
    assert decisions_step(lead | {"stratum": where}, Words(stratum="age"), held) == ""


# By colour and sex: true cases of Black men and of Black people are found as much less often.
PEOPLE = {
    ("b", "m"): (180, 360),
    ("b", "f"): (20, 40),
    ("w", "m"): (700, 1000),
    ("w", "f"): (70, 100),
}


def test_what_is_said_of_a_part_is_not_said_again_of_the_whole() -> None:
    rows = [(*key, 1, int(i < k)) for key, (k, n) in PEOPLE.items() for i in range(n)]
    rows += [(*key, 0, int(i < 20)) for key in PEOPLE for i in range(100)]
    names = ("colour", "sex", "truth", "yes")
    audit = eh.audit(
        {name: [row[i] for row in rows] for i, name in enumerate(names)},
        truth="truth", decision="yes", group=["colour", "sex"], crossed=True, positive="1",
        reference={"colour": "w", "colour*sex": "w*m"}, limits={"true_positive_rate_gap": 0.05},
        lenses=["statistical"],
    )  # fmt: skip
    steps = [str(one.next) for one in audit.findings if one.verdict == "outside"]
    # (0.20 − 0.05) × 400 = 60 of the 200 that are missed.
    assert steps[0].startswith("To keep what was agreed, about 60 (")
    assert "of the 200 wrong decisions on people of group b whose truth is '1' would" in steps[0]
    assert steps[1] == (
        "The 180 wrong decisions on people whose colour is b and sex is m and whose truth is '1' "
        "are among the 200 on group b: what is done about those counts here too."
    )


def test_a_part_that_asks_for_more_is_said_beside_the_whole() -> None:
    lead, held = missed(np.random.default_rng(1), (200, 200), (0.2, 0.6), 0.8)
    whole = lead | {"attribute": "g", "group": "a", "reference": "c"}
    part = whole | {"attribute": "g*s", "group": "a*m", "reference": "c*m"}
    parts = [one | {"group": f"{one['group']}*m"} for one in held]
    told = Words(told=((part, *parts),))
    many = round(200 * (1 - held[0]["value"]))
    assert decisions_step(whole, told, held) == (
        f"Of the {many} wrong decisions on people of group a whose truth is '1', {many} are on "
        "people whose g is a and s is m: what is done about those counts here too."
    )
    lesser = [parts[0] | {"value": 0.45}, parts[1]]
    assert decisions_step(whole, Words(told=((part, *lesser),)), held).startswith("To keep what")
    other = part | {"reference": "d*m"}
    assert decisions_step(whole, Words(told=((other, *parts),)), held).startswith("To keep what")


def test_what_was_not_asked_for_is_not_referred_to() -> None:
    """Beside a gap of selection rates, of which no number was said, an error rate says its own."""
    lead, held = missed(np.random.default_rng(1), (200, 200), (0.2, 0.6), 0.8)
    chosen = [one | {"measure": "selection_rate"} for one in held]
    before = (lead | {"measure": "selection_rate_ratio"}, *chosen)
    assert undone(before[0], Words(), chosen) is None
    said = decisions_step(lead, Words(told=(before,)), held)
    assert said.startswith("To keep what was agreed, about ")


def test_a_gap_that_nobody_judges_is_not_said_again_beside_its_ratio() -> None:
    def measures(name: str, limit: float) -> list[str]:
        columns = table({("a", 1): (240, 800), ("c", 1): (360, 600)})
        audit = eh.audit(columns, decision="yes", group="group", positive="1",
                         reference={"group": "c"}, limits={name: limit})  # fmt: skip
        return [one.measure for one in audit.findings]

    assert measures("impact_ratio", 0.8) == ["impact_ratio"]
    assert measures("selection_rate_gap", 0.05) == ["selection_rate_gap"]


def test_the_picture_has_the_band_of_a_ratio_and_both_groups_of_a_widest_gap() -> None:
    def picture(measure: str, limit: float) -> Any:
        columns = table({key: pair for key, pair in COUNTS.items() if key[1]})
        audit = eh.audit(columns, decision="yes", group="group", positive="1",
                         reference={"group": "c"}, limits={measure: limit})  # fmt: skip
        return summarise(audit.record())["screen"]["picture"]

    chart = picture("impact_ratio", 0.8)["charts"][0]
    # 0.8 × 0.6 = 0.48, and 1.25 × 0.6 = 0.75.
    assert chart["agreed"] == "agreed: 0.8 to 1.25 × c"
    for row in chart["rows"]:
        assert (row["limit_low"], row["limit_high"]) == pytest.approx((0.48, 0.75))
    drawn = picture("selection_rate_gap_worst", 0.05)
    assert [item["text"] for item in drawn["legend"]] == ["Outside its limit", "Others"]


@pytest.mark.parametrize(
    "measure",
    [
        "true_positive_rate_gap",
        "false_positive_rate_gap",
        "true_positive_rate_ratio",
        "accuracy_gap",
    ],
)
def test_the_number_is_the_same_whichever_group_is_the_reference(measure: str) -> None:
    limits = {measure: 0.99 if measure.endswith("ratio") else 0.03}
    counted = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        parts = []
        for group, n in (("a", 800), ("b", 500)):
            rates = (0.1 + 0.2 * rng.random(), 0.8 - 0.2 * rng.random())
            parts += [
                pl.DataFrame({"y": truth, "d": (rng.random(n) < rate).astype(int), "g": group})
                for truth, rate in enumerate(rates)
            ]
        steps = set()
        for reference in ("a", "b"):
            audit = eh.audit(
                pl.concat(parts),
                truth="y", decision="d", group="g", reference=reference, limits=limits,
            )  # fmt: skip
            outside = [one.next for one in audit.findings if one.verdict == "outside"]
            steps.add(re.search(r"about .* would have to", outside[0])[0] if outside else None)
        assert len(steps) == 1
        counted += steps != {None}
    assert counted >= 3
