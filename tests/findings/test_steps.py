"""What to do about each finding outside its limit, with a number where one is advice: by hand."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.labels import SUMMARY, excepted
from evenhand.findings.find import find
from evenhand.findings.finding import Finding
from evenhand.findings.limits import Limit, judge
from evenhand.findings.order import strength
from evenhand.findings.sentences.agreed import two
from evenhand.findings.sentences.finding import _UNSETTLED
from evenhand.findings.sentences.redecide import decisions_step, wrong_decisions
from evenhand.findings.sentences.rescore import calibration_step, ranking_step
from evenhand.findings.sentences.rows import chosen_behind
from evenhand.findings.sentences.steps import next_step
from evenhand.findings.sentences.varying import decisions_of_furthest, spread_step
from evenhand.findings.sentences.words import Words, positive_class
from evenhand.lenses.measures import CATALOGUE, look_up, surely_apart
from evenhand.lenses.rows import COLUMNS, Row
from evenhand.simulate.counterfactual import paired_decisions
from evenhand.simulate.labelers import LabelerGroup, simulate_labelers
from evenhand.simulate.moderation import Group, moderation
from evenhand.simulate.norms import simulate_norms
from evenhand.stats.rates import wilson

Z = 1.959963984540054
POSTS = Words(
    item=("post", "posts"), link="by", decided="removed", positive="1",
    truth=("break the rules", "do not break the rules"), class_=("kind", "kinds"),
    missed=("missed violation", "missed violations"), stratum="region",
    wrong=("wrongful removal", "wrongful removals"),
)  # fmt: skip


# --- the whole catalogue ------------------------------------------------------------------------

# Those that no table here has: what is corrected for errors of the truth needs their sizes.
ELSEWHERE = {
    "calibration",  # takes no limit
    "prevalence_lowest_accepted", "prevalence_highest_refused",
    "implied_threshold_corrected", "criterion_corrected", "separation_corrected",
    "prevalence_corrected", "cost_ratio_corrected", "counterfactual_score_gap", "changed_share",
    "norm_bias_irrelevant", "norm_bias_corrected_irrelevant", "norm_slope_irrelevant",
    "norm_correlation_irrelevant", "norm_correlation_mean_irrelevant",
    "norm_correlation_mean_corrected_irrelevant",
}  # fmt: skip
TABLES = ("scores", "pairs", "labelers", "norms")
# Those that another row of the table stands in for, or that have no interval there.
INSIDE = {
    "scores": {"implied_threshold_linear"},
    "labelers": {"criterion_gap_shared"},
    "norms": {"norm_bias_corrected", "norm_correlation_mean_corrected"},
}  # fmt: skip


@cache
def audited(name: str) -> eh.Audit:
    if name in ("scores", "decisions"):
        groups = {
            "female": Group(share=0.4, base_rate=0.2, threshold=0.6),
            "male": Group(share=0.4, base_rate=0.2, threshold=0.4),
            "nonbinary": Group(share=0.2, base_rate=0.35, threshold=0.2, separation=0.8),
        }
        table = moderation(8_000, groups=groups, seed=1).frame
        shared: dict[str, Any] = {"truth": "violates", "group": "gender", "positive": "1",
                                  "reference": {"gender": "male"}}  # fmt: skip
        if name == "decisions":
            return eh.audit(table.drop("score"), decision="removed", **shared)
        cuts = {key: one.threshold for key, one in groups.items()}
        return eh.audit(table, score="score", threshold=cuts, **shared)
    if name == "pairs":
        made = paired_decisions(3_000, gamma=(1.5, 0, -1.5, 0.5), delta=(1, 0.5, -1, 0), seed=2)
        return eh.audit(made.frame, truth="truth", decision="decision", group="gender")
    if name == "labelers":
        people = {"A": LabelerGroup(criterion=0.4, separation=2.0),
                  "B": LabelerGroup(criterion=1.2, separation=1.2, prevalence=0.5)}  # fmt: skip
        labels = simulate_labelers(people, labelers=12, items_each=300, seed=3).frame
        roles = {"truth": "truth", "decision": "decision", "group": "group", "labeler": "labeler"}
        return eh.audit(labels, **roles, reference={"group": "A"}, lenses=["labelers"])
    texts = simulate_norms(200, strength=2.0, scatter=0.1, seed=4).frame
    return eh.audit(texts, truth="title", group="gender")


def band(row: Row, *, outside: bool) -> tuple[float, float] | None:
    """A limit that a row lies beyond for certain, or one that its interval straddles."""
    low, high, value = row["family_low"], row["family_high"], row["value"]
    if None in (low, high, value) or low == high:
        return None
    record = look_up(row["measure"])
    still = record.neutral or 0.0
    away = min(abs(low - still), abs(high - still)) if (low - still) * (high - still) > 0 else 0.0
    edge = (still + away / 2 * (1 if low > still else -1)) if outside else value
    if outside and not away:
        return None
    if record.kind in ("gap", "correlation"):
        return -abs(edge), abs(edge)
    if record.kind == "ratio":
        return (edge, 1 / edge) if edge < 1 else (1 / edge, edge)
    return (
        (edge, high + 9.0) if edge > value else (min(0.0, low - 9.0) if record.low else 0.0, edge)
    )


def found(name: str, words: Words, *, outside: bool) -> Iterator[tuple[str, Finding]]:
    audit = audited(name)
    positive = positive_class(audit.details)
    for measure in sorted(limited(name)):
        known = [
            (row, one)
            for row in audit.rows.where(measure=measure)
            if row["labeler"] is None and row["reference"] != "<rest>" and row["stratum"] is None
            and (row["group"] is None or row["group"] != row["reference"])
            and row["class"] in (None, positive or row["class"])
            and (one := band(row, outside=outside)) is not None
        ]  # fmt: skip
        if not known:
            continue
        surest = max(known, key=lambda pair: strength(pair[0]) or abs(pair[0]["value"]))
        limit = Limit(measure=measure, low=surest[1][0], high=surest[1][1])
        rows = judge(audit.rows, [limit], positive=positive)
        for finding in find(rows, words, positive=positive, details=audit.details):
            if finding.measure == measure and finding.rows:
                yield measure, finding


def limited(name: str) -> set[str]:
    return {m for m in audited(name).rows["measure"] if look_up(m).takes_limit} - ELSEWHERE


@pytest.mark.parametrize("name", TABLES)
def test_what_to_do_has_a_number_whatever_lies_outside(name: str) -> None:
    words = POSTS if name in ("scores", "labelers") else Words()
    outside = [(m, one) for m, one in found(name, words, outside=True) if one.verdict == "outside"]
    assert limited(name) - {measure for measure, _ in outside} == INSIDE.get(name, set())
    for measure, one in outside:
        said = str(one.next)
        if one.lens == "labelers" and re.search("the (labeler|[a-z]+ labelers) who lies? o", said):
            continue  # they are counted in words
        assert not re.search(r"  | \.|[^.]$", said), said
        number = re.search(r"\(([\d.,%−]+ to [\d.,%−]+|up to [\d.,]+)", said)
        if withheld_of(name, measure):
            assert not number, (measure, said)
            assert "Look first" in said
            continue
        assert number, (measure, said)


def withheld_of(name: str, measure: str) -> bool:
    """Whether nobody knows which of its decisions are wrong, or only more mistakes keep a limit."""
    record = look_up(measure)
    # `band` says that as many at most may be decided rightly.
    if measure in ("true_positive_rate", "true_negative_rate", "accuracy", "precision"):
        return True
    selected = record.base == "selection_rate" or measure == "selection_rate"
    return selected and "counterfactual" not in record.lenses and record.counts != "classes"


def test_the_tables_have_every_measure_of_the_catalogue() -> None:
    everything = {name for name, one in CATALOGUE.items() if one.takes_limit} - ELSEWHERE
    assert set().union(*map(limited, TABLES)) == everything


@pytest.mark.parametrize("name", ["decisions", "norms"])
def test_what_is_open_says_how_many_more_or_why_not(name: str) -> None:
    said = [
        one.next for _, one in found(name, POSTS, outside=False) if one.verdict == "cannot tell"
    ]
    assert said
    for one in said:
        why_not = one in _UNSETTLED.values() or str(one).startswith("No limit can be held against")
        assert why_not or re.search(r"about [\d,]+ more ", str(one)), one


# --- by hand ------------------------------------------------------------------------------------


def row(measure: str, value: float, low: float, high: float, **columns: Any) -> dict[str, Any]:
    shared = {"lens": "statistical", "attribute": "g", "class": "1", "level": 0.95}
    ends = {"low": low, "high": high, "family_low": low, "family_high": high}
    whose = {"group": "a", "reference": "c", "n": 1000, "n_reference": 1000}
    limits = {"limit_low": -0.05, "limit_high": 0.05, "verdict": "outside"}
    return dict.fromkeys(COLUMNS) | shared | ends | whose | limits | {
        "measure": measure, "value": value, **columns,
    }  # fmt: skip


def rate(measure: str, group: str, hits: int, n: int, **columns: Any) -> dict[str, Any]:
    low, high = (float(end) for end in wilson(hits, n, z=Z))
    more = {"reference": None, "n": n, "n_reference": None, "limit_low": None, "limit_high": None}
    return row(measure, hits / n, low, high, group=group, **(more | columns))


def table(counts: dict[tuple[str, int, int], int]) -> dict[str, list[Any]]:
    """A table of so many rows of each group, truth and decision."""
    rows = [key for key, n in counts.items() for _ in range(n)]
    return {name: [one[i] for one in rows] for i, name in enumerate(("group", "truth", "yes"))}


def precise(dropped: int) -> eh.Audit:
    """Of 1,000 selected in a 600 rightly so, of 1,000 in c 800; without some of a's wrong ones."""
    counts = {("a", 1, 1): 600, ("a", 0, 1): 400 - dropped, ("a", 0, 0): 500 + dropped,
              ("c", 1, 1): 800, ("c", 0, 1): 200, ("c", 0, 0): 500}  # fmt: skip
    return eh.audit(table(counts), truth="truth", decision="yes", group="group", positive="1",
                    reference={"group": "c"}, limits={"precision_gap": 0.05},
                    lenses=["statistical"])  # fmt: skip


def test_of_precision_wrong_decisions_fall_away() -> None:
    # 600 ÷ (1,000 − x) = 0.75 asks for x = 200, and 199 are too few.
    found_ = precise(0).findings[0]
    said = str(found_.next)
    assert re.match(
        r"To keep what was agreed, about 200 \(\d+ to \d+\) of the 400 wrong decisions on people "
        r"of group a who get decision '1' would have to be decided differently\. Look first", said
    ), said  # fmt: skip
    short, enough = (
        next(iter(precise(x).rows.where(measure="precision_gap", group="a", class_="1")))["value"]
        for x in (199, 200)
    )
    assert short < -0.05
    assert enough == pytest.approx(-0.05)


def test_of_precision_the_lower_side_moves_whichever_leads() -> None:
    low, high = rate("precision", "a", 600, 1000), rate("precision", "c", 800, 1000)
    below = row("precision_gap", -0.2, -0.24, -0.16)
    above = row("precision_gap", 0.2, 0.16, 0.24, group="c", reference="a")
    for lead, rates in ((below, [low, high]), (above, [high, low])):
        counted = wrong_decisions(lead, rates)
        assert counted is not None
        assert counted[0] == pytest.approx(200)
        said = decisions_step(lead, POSTS, rates)
        assert "of the 400 wrong decisions on posts by group a that are removed would" in said
    ratio = row("precision_ratio", 0.75, 0.7, 0.8, limit_low=0.9, limit_high=1 / 0.9)
    # 600 ÷ (1,000 − x) = 0.9 × 0.8 = 0.72.
    assert (wrong_decisions(ratio, [low, high]) or [0])[0] == pytest.approx(1000 - 600 / 0.72)
    widest = row("precision_gap_worst", 0.2, 0.16, 0.24, group="c", reference="a", limit_low=0.0)
    assert "about 200 (" in decisions_step(widest, POSTS, [high, low])
    alone = low | {"limit_low": 0.75, "limit_high": 1.0}
    assert (wrong_decisions(alone, []) or [0])[0] == pytest.approx(200)
    assert wrong_decisions(high | {"limit_low": 0.0, "limit_high": 0.7}, []) is None


def test_a_rate_of_one_group_counts_its_wrong_decisions() -> None:
    lead = rate("false_positive_rate", "a", 240, 800, limit_low=0.0, limit_high=0.1)
    # (0.30 − 0.10) × 800.
    assert decisions_step(lead, Words()).startswith("To keep what was agreed, about 160 (1")
    assert "of the 240 wrong decisions on people of group a whose truth is not '1'" in (
        decisions_step(lead, Words())
    )


SPREAD = {"a": (100, 500), "b": (250, 500), "c": (240, 500), "d": (260, 500)}


def spread(counts: dict[str, tuple[int, int]], limit: float) -> tuple[Row, list[dict[str, Any]]]:
    rates = [rate("true_positive_rate", name, *pair) for name, pair in counts.items()]
    values = [one["value"] for one in rates]
    own = {"group": None, "reference": None, "n": len(rates), "n_reference": None}
    size = float(np.std(values))
    return row("true_positive_rate_spread", size, size - 0.02, size + 0.02, limit_low=0.0,
               limit_high=limit, **own), rates  # fmt: skip


def test_of_a_spread_the_furthest_group_is_counted_and_named() -> None:
    # a at .2 beside .5, .48 and .52. A spread of .06: (r − .5)² = 16/3 × .0036 − 4 × .0008/3 =
    # .018133, so that r = .3653: 0.1653 × 500 = 82.7 more.
    lead, rates = spread(SPREAD, 0.06)
    counted = decisions_of_furthest(lead, rates)
    assert counted is not None
    assert counted[0] == pytest.approx(82.67, abs=0.01)
    moved = {**SPREAD, "a": (183, 500)}
    short = {**SPREAD, "a": (182, 500)}
    sizes = [spread(counts, 0.06)[0]["value"] for counts in (moved, short)]
    assert sizes[0] <= 0.06 < sizes[1]
    said = spread_step(lead, Words(), rates)
    assert re.fullmatch(
        r"Group a lies furthest from the other groups: 20\.0% against 50\.0% on average\. To keep "
        r"what was agreed with the others as they are, about 83 \(\d+ to \d+\) of the 400 wrong "
        r"decisions on people of group a whose truth is '1' would have to be decided differently\.",
        said,
    ), said  # fmt: skip


def test_of_a_spread_nobody_is_brought_nearer_by_more_mistakes_or_by_unknown_ones() -> None:
    first = "Group a lies furthest from the other groups: 20.0% against 50.0% on average."
    lead, rates = spread(SPREAD, 0.06)
    for measure in ("false_positive_rate", "selection_rate"):
        one = lead | {"measure": f"{measure}_spread"}
        assert spread_step(one, Words(), [rate | {"measure": measure} for rate in rates]) == first


def test_a_spread_that_one_group_cannot_mend_says_by_how_much_it_would_have_to_fall() -> None:
    lead, rates = spread(SPREAD, 0.01)
    assert decisions_of_furthest(lead, rates) is None
    said = spread_step(lead, Words(), rates)
    assert said.startswith("Group a lies furthest from the other groups: 20.0% against 50.0% on")
    assert "the true positive rate spread would have to fall by 12.1 points (10.1 to 14.1)." in said
    # Where not all rates are known, nobody is called the furthest.
    assert spread_step(lead, Words(), rates[:3]) == ""


def test_of_scores_pairs_are_put_in_order_where_it_is_done_worse() -> None:
    for sign, who in ((-1, "group a"), (1, "group c")):
        lead = row("auc_gap", sign * 0.15, *sorted((sign * 0.11, sign * 0.19)))
        assert ranking_step(lead, Words()) == (
            "To keep what was agreed, about 10 (6 to 14) more of every 100 pairs would have to be "
            f"put in the right order for {who}. No cut does that: give the model more to go by "
            "there, such as better features or more labels."
        )
    own = row("auc", 0.6, 0.58, 0.62, reference=None, limit_low=0.7, limit_high=1.0)
    assert "about 10 (8 to 12) more of every 100 pairs" in ranking_step(own, Words())
    assert ranking_step(own | {"limit_low": 0.0, "limit_high": 0.5}, Words()) == ""


def test_scores_are_read_as_what_is_the_case() -> None:
    # 1 ÷ (1 + e) = 26.9%; and −1.2 and −0.8 give 23.1% and 31.0%.
    lead = row("calibration_intercept", -1.0, -1.2, -0.8, limit_low=-0.2, limit_high=0.2)
    assert calibration_step(lead, Words()) == (
        "Recalibrate the scores of group a: where they say 50%, it is 26.9% (23.1% to 31.0%). "
        "Their order stays, and decisions at a fixed cut change."
    )
    slope = row("calibration_slope", 0.5, 0.45, 0.55, limit_low=0.8, limit_high=1.25)
    assert "multiply their log-odds by 0.50 (0.45 to 0.55)." in calibration_step(slope, Words())
    # Beside its limit it may lie at the limit: it would not be told otherwise.
    near = row("calibration_slope", 0.7, 0.61, 0.79, limit_low=0.8, limit_high=1.25)
    assert "by 0.70 (0.61 to 0.80)." in calibration_step(near, Words())


def region(name: str, group: str, n: int, hits: int) -> list[tuple[str, str, int]]:
    return [(name, group, int(i < hits)) for i in range(n)]


def within_regions(true: int) -> list[str]:
    """In six regions 20 points fewer of a are selected; over all it is two points."""
    rows = []
    for k in range(6):
        many, few, p = 80 + 40 * k, 280 - 40 * k, 0.3 + 0.1 * k
        rows += region(f"r{k}", "a", many, round(many * (p - 0.2)))
        rows += region(f"r{k}", "c", few, round(few * p))
    rows = [(*row, true) for row in rows]
    # Beside them as many others of either group, all decided rightly.
    rows += [(name, group, 1 - true, 1 - true) for name, group, _, _ in rows]
    frame = pl.DataFrame(rows, schema=["region", "group", "yes", "truth"], orient="row")
    measure = "true_positive_rate_gap" if true else "false_positive_rate_gap"
    audit = eh.audit(frame, truth="truth", decision="yes", group="group", stratum="region",
                     positive="1", reference={"group": "c"}, limits={measure: 0.1},
                     lenses=["statistical"])  # fmt: skip
    [told] = [one for one in audit.findings if one.verdict == "outside"]
    assert told.claim is not None
    assert told.claim.stratum == SUMMARY
    return [str(told.next), told.line]


def test_over_strata_the_same_share_moves_and_the_weightiest_comes_first() -> None:
    said, line = within_regions(true=1)
    # (0.20 − 0.10) of 1,080 decisions, of which 448 are right; the two regions in the middle weigh
    # most, 160 × 200 ÷ 360.
    assert re.match(
        r"To keep what was agreed within region, about 108 \((\d+ to|up to) \d+\) of the 632 wrong "
        r"decisions on people of group a whose truth is '1' would have to be decided differently, "
        r"the same share of all decisions on them in each\. Start where region is r[23]: 20 points "
        r"fewer \(\d+ to \d\d\)\. ", said
    ), said  # fmt: skip
    # The rates within a stratum are none of all strata together.
    assert line.startswith("Over all strata of region together, people of group a whose truth is")
    assert " against " not in line


def test_over_strata_the_worse_off_side_needs_as_many_wrong_decisions_in_each() -> None:
    # Wrongly selected are those of c, in each region by 20 points more: (0.20 − 0.10) × 1,080.
    said, _ = within_regions(true=0)
    assert re.match(
        r"To keep what was agreed within region, about 108 \((\d+ to|up to) \d+\) of the 524 wrong "
        r"decisions on people of group c whose truth is not '1' would have", said
    ), said  # fmt: skip


def test_over_strata_a_stratum_without_enough_wrong_decisions_leaves_the_number_out() -> None:
    lead = row("true_positive_rate_gap", -0.2, -0.24, -0.16, stratum=SUMMARY)
    # Of 500 decisions on a in each stratum 75 would have to move.
    first = rate("true_positive_rate", "a", 250, 500, stratum="r1")
    for right, said in ((400, "about 150 (110 to 190) of the 350 wrong decisions on"), (450, "")):
        second = rate("true_positive_rate", "a", right, 500, stratum="r2")
        step = decisions_step(lead, Words(), [first, second])
        assert said in step
        assert bool(step) == bool(said)
    # Nor is it said where the rate of a stratum is not known.
    assert decisions_step(lead, Words(), [first]) == ""


def test_of_selection_over_strata_only_where_to_start_is_said() -> None:
    lead = row("selection_rate_gap", -0.2, -0.24, -0.16, stratum=SUMMARY)
    there = row("selection_rate_gap", -0.2, -0.3, -0.1, stratum="r2")
    assert decisions_step(lead, POSTS, [there]) == (
        "Start where region is r2: 20 points fewer (10 to 30)."
    )


def test_what_was_asked_of_the_same_decisions_is_not_asked_again() -> None:
    counts = {("a", 1, 1): 240, ("a", 1, 0): 560, ("c", 1, 1): 360, ("c", 1, 0): 240,
              ("a", 0, 0): 100, ("c", 0, 0): 100}  # fmt: skip
    audit = eh.audit(
        table(counts), truth="truth", decision="yes", group="group", positive="1",
        reference={"group": "c"}, lenses=["statistical"],
        limits={"true_positive_rate_gap": 0.05, "true_positive_rate_ratio": 0.8},
    )  # fmt: skip
    steps = [str(one.next) for one in audit.findings if one.verdict == "outside"]
    # .3 against .6: 200 of 800 for 5 points, 144 for four fifths.
    more = next(one for one in steps if "about 200 (" in one)
    less = next(one for one in steps if "about 144 (" in one)
    assert more.startswith("To keep what was agreed, about 200 (")
    assert steps.index(more) < steps.index(less)
    assert re.fullmatch(
        r"What is done about wrong decisions on people of group a whose truth is '1' to keep the "
        r"other limit counts here too: this one asks for about 144 \(\d+ to \d+\) of them\.", less
    ), less  # fmt: skip


def test_of_a_norm_over_classes_the_class_that_depends_most_on_it_comes_first() -> None:
    audit = audited("norms")
    lead = next(one for one in audit.rows.where(measure="norm_bias", group="male", norm="male"))
    classes = audit.rows.where(measure="norm_correlation", group="male", norm="male", stratum=None)
    own = [one for one in classes if excepted(one["class"]) is None and one["n"] >= 50]
    most = max((one for one in own if surely_apart(one)), key=lambda one: abs(one["value"]))
    [first] = chosen_behind(lead, list(classes))
    assert first["class"] == most["class"]
    finding = {"verdict": "outside", "layer": "implementation", "lens": "norms"}
    assert next_step(finding, lead, Words(), {}, [first]).startswith(
        f"Start with the class '{most['class']}', where scores depend most on the norm: a rank "
        f"correlation of {two(most['value'])} ("
    )
