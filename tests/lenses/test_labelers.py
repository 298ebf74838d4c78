"""The labelers lens: oracles through the lens, edge cases, settings and words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import logit, ndtr, ndtri

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.findings.sentences.labelers import say_labels
from evenhand.findings.sentences.words import Words
from evenhand.lenses.labelers import lens as labelers
from evenhand.lenses.measures import CATALOGUE
from evenhand.lenses.rows import COLUMNS, LensResult, Options, Rows
from evenhand.lenses.settings import setting_for
from evenhand.simulate.labelers import LabelerGroup, Variation, simulate_labelers
from evenhand.speech import few
from evenhand.stats.labelers.signal import ez_diffusion
from evenhand.stats.noisy_truth import corrected_counts

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
ROLES = {"truth": "truth", "decision": "decision", "labeler": "labeler", "group": "group"}
A, B = (80, 20, 90, 810), (60, 40, 45, 855)


def labels(counts: dict[tuple[str, str], tuple[int, int, int, int]]) -> pl.DataFrame:
    """One row per label from hits, misses, false alarms and correct rejections."""
    parts = []
    for (labeler, group), cells in counts.items():
        for (truth, decision), n in zip(((1, 1), (1, 0), (0, 1), (0, 0)), cells):
            parts.append(
                {
                    "labeler": [labeler] * n,
                    "group": [group] * n,
                    "truth": [truth] * n,
                    "decision": [decision] * n,
                }
            )
    schema = {"labeler": pl.String, "group": pl.String, "truth": pl.Int64, "decision": pl.Int64}
    frame = pl.concat([pl.DataFrame(part, schema=schema) for part in parts])
    return frame.with_columns(item=pl.int_range(pl.len()))


def measured(frame: Any, *, settings: dict[str, Any] | None = None, **roles: Any) -> LensResult:
    decisions = eh.Decisions(frame, **{**ROLES, **roles})
    return labelers.measure(decisions, Options(settings=settings or {}))


def one(rows: Rows, measure: str, **keys: Any) -> dict[str, Any]:
    keys = {"labeler": None, "stratum": None} | keys
    found = list(rows.where(measure=measure, **keys))
    assert len(found) == 1, found
    return found[0]


# A hand value: FPR 0.1 gives t = 1.2816; FNR 0.2 gives d′ = 1.2816 + 0.8416 = 2.1232; φ = 0.1,
# so log c = ln 9 + (0.8416² − 1.2816²)/2 = 2.1972 − 0.4670 = 1.7302 and c = 5.642.
@pytest.mark.parametrize("item", [None, "item"])
def test_one_labeler_gives_the_published_numbers(item: str | None) -> None:
    rows = measured(labels({("x", "A"): A}), item=item).rows
    told = ORACLES["3.6b_sdt_counts"]
    assert one(rows, "criterion")["value"] == pytest.approx(told["t"])
    assert one(rows, "separation")["value"] == pytest.approx(told["d_prime"])
    assert one(rows, "prevalence")["value"] == pytest.approx(told["phi"])
    assert one(rows, "implied_threshold")["value"] == pytest.approx(told["implied_threshold"])
    ratio = one(rows, "cost_ratio")
    assert ratio["value"] == pytest.approx(told["cost_ratio"])
    assert [ratio["low"], ratio["high"]] == pytest.approx(told["ci95_cost_ratio"])
    assert (ratio["n"], one(rows, "prevalence")["n"]) == (1000, 1000)
    assert "of this labeler alone" in ratio["method"]


def test_implied_threshold_and_cost_ratio_agree_to_their_limits() -> None:
    rows = measured(labels({("x", "A"): A, ("x", "B"): B})).rows
    for group in "AB":
        p, c = (one(rows, m, group=group) for m in ("implied_threshold", "cost_ratio"))
        for mine, other in (("value", "value"), ("low", "high"), ("family_high", "family_low")):
            assert p[mine] == pytest.approx(1 / (1 + c[other]))


def test_two_groups_of_one_labeler_give_the_published_contrast() -> None:
    rows = measured(labels({("x", "A"): A, ("x", "B"): B}), reference={"group": "B"}).rows
    told = ORACLES["3.6c_sdt_two_groups"]
    ratio = one(rows, "cost_ratio_ratio", group="A")
    assert np.log(ratio["value"]) == pytest.approx(told["diff_log_c"])
    assert ratio["p"] == pytest.approx(told["p"], rel=1e-6)
    parts = [one(rows, f"cost_ratio_{p}_part", group="A") for p in ("prevalence", "bar", "skill")]
    assert sum(part["value"] for part in parts) == pytest.approx(told["diff_log_c"])
    assert parts[0]["value"] == pytest.approx(0.0, abs=1e-12)
    gap = one(rows, "implied_threshold_gap", group="A")
    assert gap["value"] == pytest.approx(0.1505619328 - 0.2938942038)


def test_swapping_group_and_reference_mirrors_every_contrast() -> None:
    frame = simulate_labelers(labelers=12, items_each=200).frame
    left = measured(frame, reference={"group": "A"}).rows
    right = measured(frame, reference={"group": "B"}).rows
    for measure in ("criterion_gap", "separation_gap", "implied_threshold_gap", "prevalence_gap"):
        ours, theirs = one(left, measure, group="B"), one(right, measure, group="A")
        assert ours["value"] == pytest.approx(-theirs["value"])
        assert ours["low"] == pytest.approx(-theirs["high"])
        assert ours["p"] == pytest.approx(theirs["p"])
    ours, theirs = one(left, "cost_ratio_ratio"), one(right, "cost_ratio_ratio")
    assert ours["low"] == pytest.approx(1 / theirs["high"])


def test_zero_cells_are_corrected_in_all_cells_and_said() -> None:
    told = ORACLES["3.6d_sdt_zero_cells"]["loglinear"]
    result = measured(labels({("x", "A"): (20, 0, 0, 50), ("x", "B"): A}))
    ratio = one(result.rows, "cost_ratio", group="A")
    assert ratio["value"] == pytest.approx(told["cost_ratio"])
    assert [ratio["low"], ratio["high"]] == pytest.approx(told["ci95_cost_ratio"])
    for row in result.rows.where(measure="criterion", labeler=None):
        assert "log-linear correction on all cells" in row["method"]
    # B has no empty cell and is corrected all the same: (90 + ½)/901.
    assert one(result.rows, "criterion", group="B")["value"] == pytest.approx(1.2783, abs=1e-3)


def test_clusters_of_labelers_widen_the_interval_as_published() -> None:
    # Hits of five labelers, 9 5 8 2 6 of 10: the design effect of the hit rate is 3.125.
    told = ORACLES["3.12_cluster_by_labeller"]
    counts = {
        (f"L{i}", "A"): (h, n - h, 15 + i % 2, 85 - i % 2)
        for i, (h, n) in enumerate(told["hits_of_n"])
    }
    rows = measured(labels(counts)).rows
    separation = one(rows, "separation")
    assert "clustered by 5 labelers" in separation["method"]
    density = np.exp(-(0.2533471031**2) / 2) / np.sqrt(2 * np.pi)  # at Φ⁻¹(0.6)
    half = (separation["high"] - separation["low"]) / 2 / 2.7764451052  # t with 4 df
    assert half >= told["se_cluster"] / density * 0.98


def test_prevalence_passed_in_takes_the_place_of_the_samples() -> None:
    frame = labels({("x", "A"): A, ("x", "B"): B})
    rows = measured(frame, settings={"prevalence": 0.1}).rows
    ratio = one(rows, "cost_ratio", group="A")
    # Its error falls from 0.1758 to 0.1407: the prevalence is no longer estimated.
    half = np.log(ratio["high"] / ratio["value"]) / 1.959964
    assert half == pytest.approx(0.1407, abs=1e-4)
    given = one(rows, "prevalence", group="A")
    assert (given["value"], given["low"], given["high"], given["method"]) == (
        0.1,
        0.1,
        0.1,
        "given",
    )
    nested = {"prevalence": {"all": 0.1, "group": {"B": 0.02}}}
    rows = measured(frame, settings=nested).rows
    assert one(rows, "prevalence", group="B")["value"] == 0.02
    assert one(rows, "prevalence", group="A")["value"] == 0.1
    part = one(rows, "cost_ratio_prevalence_part", group="B")
    assert part["value"] == pytest.approx(np.log(49 / 9))
    assert one(rows, "prevalence_gap", group="B")["p"] is None


def test_a_given_prevalence_is_shared_out_over_strata() -> None:
    easy, hard = labels({("x", "A"): (90, 10, 20, 880)}), labels({("x", "A"): (60, 40, 30, 70)})
    frame = pl.concat([easy.with_columns(s=pl.lit("easy")), hard.with_columns(s=pl.lit("hard"))])
    rows = measured(frame, stratum="s", settings={"prevalence": 0.02}).rows
    # Odds 0.02/0.98 times (100/200)/(900/1000) among easy items, (100/200)/(100/1000) among hard.
    odds = {"easy": 0.02 / 0.98 * 0.5 / 0.9, "hard": 0.02 / 0.98 * 0.5 / 0.1}
    for stratum, value in odds.items():
        found = one(rows, "prevalence", stratum=stratum)["value"]
        assert found == pytest.approx(value / (1 + value))


def test_strata_have_rows_of_their_own_and_a_summary() -> None:
    frames = []
    for seed, (name, d) in enumerate((("easy", 3.0), ("hard", 1.0))):
        groups = {"A": LabelerGroup(separation=d), "B": LabelerGroup(separation=d, criterion=0.8)}
        made = simulate_labelers(groups, labelers=10, items_each=400, seed=seed)
        frames.append(made.frame.with_columns(level=pl.lit(name)))
    rows = measured(pl.concat(frames), stratum="level", item="item").rows
    values = {s: one(rows, "separation", group="A", stratum=s)["value"] for s in ("easy", "hard")}
    assert values["easy"] > values["hard"] + 1
    gaps = [one(rows, "criterion_gap", group="B", stratum=s) for s in ("easy", "hard")]
    summary = one(rows, "criterion_gap", group="B", stratum="<summary>")
    least, most = (end(g["value"] for g in gaps) for end in (min, max))
    assert least <= summary["value"] <= most
    assert summary["high"] - summary["low"] < min(g["high"] - g["low"] for g in gaps)
    assert not len(rows.where(stratum="easy", labeler="L01"))


def test_a_noisy_truth_is_corrected_beside_the_raw_value() -> None:
    # True rates 0.9 and 0.05 at φ = 0.2 seen through an expert of sensitivity 0.9, specificity
    # 0.95: of 10,000 labels, hits = 0.9·1800 + 0.05·400 = 1640, misses 0.9·200 + 0.05·7600 = 560.
    seen = (1640, 560, 560, 7240)
    quality = {"truth_quality": {"all": {"sensitivity": 0.9, "specificity": 0.95}}}
    rows = measured(labels({("x", "A"): seen}), settings=quality).rows
    assert one(rows, "prevalence")["value"] == pytest.approx(0.22)
    assert one(rows, "prevalence_corrected")["value"] == pytest.approx(0.2)
    assert one(rows, "criterion_corrected")["value"] == pytest.approx(1.6448536)
    assert one(rows, "separation_corrected")["value"] == pytest.approx(1.6448536 + 1.2815516)
    ratio = one(rows, "cost_ratio_corrected")
    assert ratio["value"] == pytest.approx(4 * np.exp((1.2815516**2 - 1.6448536**2) / 2), rel=1e-6)
    assert ratio["low"] < ratio["value"] < ratio["high"]
    assert ratio["low"] < one(rows, "implied_threshold_corrected")["n"]
    flat = {"truth_sensitivity": 0.9, "truth_specificity": {"A": 0.95}}
    again = measured(labels({("x", "A"): seen}), settings=flat).rows
    assert one(again, "cost_ratio_corrected")["value"] == ratio["value"]


def test_the_corrected_interval_covers_like_resampled_counts() -> None:
    seen = np.array([1640, 560, 560, 7240])
    settings = {"truth_sensitivity": 0.9, "truth_specificity": 0.95}
    row = one(
        measured(labels({("x", "A"): tuple(seen)}), settings=settings).rows, "cost_ratio_corrected"
    )
    half = np.log(row["high"] / row["low"]) / 2 / 1.959964
    drawn = np.random.default_rng(0).multinomial(seen.sum(), seen / seen.sum(), 4000)
    found = corrected_counts(*drawn.T, sensitivity=0.9, specificity=0.95)
    z_hit, z_alarm = ndtri(found.hit_rate), ndtri(found.false_alarm_rate)
    log_c = -logit(found.prevalence) + (z_hit**2 - z_alarm**2) / 2
    assert half == pytest.approx(np.nanstd(log_c), rel=0.06)


def test_a_truth_that_contradicts_its_quality_is_undefined_with_a_reason() -> None:
    settings = {"truth_sensitivity": 0.95, "truth_specificity": 0.91}
    row = one(measured(labels({("x", "A"): A}), settings=settings).rows, "cost_ratio_corrected")
    assert row["value"] is None
    assert row["undefined"] == (
        "the correction leaves [0, 1]: the labels contradict the expert's stated quality"
    )


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ((0, 0, 20, 80), "no positives among the items judged"),
        ((20, 30, 0, 0), "no negatives among the items judged"),
    ],
)
def test_without_positives_or_negatives_there_is_no_number(cells: Any, reason: str) -> None:
    frame = labels({(f"L{i}", g): (A if g == "B" else cells) for i in range(6) for g in "AB"})
    rows = measured(frame).rows
    for measure in ("cost_ratio", "criterion", "separation", "implied_threshold"):
        row = one(rows, measure, group="A")
        assert (row["value"], row["low"], row["undefined"]) == (None, None, reason)
        assert one(rows, measure, group="B")["value"] is not None
    assert one(rows, "criterion_gap", group="A")["undefined"] == reason
    assert set(rows.where(group="A", labeler="L0", measure="criterion").plain("undefined")) == {
        reason
    }
    against = measured(frame, reference={"group": "A"}).rows
    assert one(against, "criterion_gap", group="B")["undefined"] == f"reference: {reason}"


def test_a_labeler_without_positives_gets_a_number_from_the_pool() -> None:
    counts = {(f"L{i}", g): (12, 6, 8, 40) for i in range(8) for g in "AB"}
    counts["L0", "A"] = (0, 0, 8, 40)
    rows = measured(labels(counts)).rows
    lonely = one(rows, "separation", labeler="L0", group="A")
    other = one(rows, "separation", labeler="L1", group="A")
    assert "from the pool" in lonely["method"]
    assert "from the pool" not in other["method"]
    assert lonely["high"] - lonely["low"] > other["high"] - other["low"]


def test_fewer_than_five_labelers_are_not_pooled() -> None:
    counts = {(f"L{i}", g): (20 + i, 10, 8, 60) for i in range(3) for g in "AB"}
    result = measured(labels(counts))
    row = one(result.rows, "criterion", labeler="L0", group="A")
    # (8 + ½)/(68 + 1): the log-linear correction, though no cell is empty.
    assert row["value"] == pytest.approx(1.1595, abs=1e-3)
    assert "log-linear" in row["method"]
    assert "too few labelers to pool" in row["method"]
    assert (
        "3 labelers are too few to learn from one about another (5 are needed): each stands "
        "alone, with a wide interval." in result.notes
    )
    assert result.details["attributes"][0]["forest"]["pooled"] is False
    assert one(result.rows, "criterion_gap", labeler="L0", group="A")["reference"] == "<rest>"


def test_reversed_labelling_and_few_errors_are_said() -> None:
    counts = {("x", "A"): (20, 80, 810, 90), ("x", "B"): (97, 3, 4, 896)}
    result = measured(labels(counts))
    assert (
        "group A: yes is said less often where the truth is yes: reversed labelling."
        in result.notes
    )
    assert "group B: only 3 false negatives; read the interval, not the value." in result.notes
    assert "group B: only 4 false positives; read the interval, not the value." in result.notes
    assert "fewer than 10 errors of a kind" in one(result.rows, "cost_ratio", group="B")["method"]
    audit = eh.audit(
        eh.Decisions(labels(counts), **ROLES),
        lenses=["labelers"],
        limits={"cost_ratio": "0.01:0.02"},
    )
    verdicts = {
        r["group"]: r["verdict"] for r in audit.rows.where(measure="cost_ratio", labeler=None)
    }
    assert verdicts == {"A": "cannot tell", "B": "cannot tell"}


def test_labels_that_never_vary_carry_no_information() -> None:
    result = measured(labels({("x", "A"): (50, 0, 100, 0), ("x", "B"): (0, 50, 0, 100)}))
    assert "group A: labelers always say yes, so labels carry no information." in result.notes
    assert "group B: labelers never say yes, so labels carry no information." in result.notes


def test_repeated_labels_are_kept_and_counted() -> None:
    frame = labels({(f"L{i}", g): (10, 5, 5, 30) for i in range(5) for g in "AB"})
    twice = pl.concat([frame, frame.head(3)])
    result = measured(twice, item="item")
    assert result.notes[0] == "3 labels repeat a labeler's label of the same item; all were kept."
    assert one(result.rows, "criterion", group="A")["n"] == 253
    # An item judged twice is one item still.
    assert one(result.rows, "prevalence", group="A")["n"] == 250
    once = measured(pl.concat([frame, frame.head(1)]), item="item")
    assert once.notes[0] == "1 label repeats a labeler's label of the same item; all were kept."


def test_shared_items_are_clustered_two_ways() -> None:
    made = simulate_labelers(
        labelers=20, items_each=60, shared_items=40, item_share=0.4, seed=3
    ).frame
    alone = measured(made).rows
    both = measured(made, item="item").rows
    narrow, wide = one(alone, "criterion_gap"), one(both, "criterion_gap")
    assert narrow["value"] == pytest.approx(wide["value"])
    assert wide["high"] - wide["low"] > 1.3 * (narrow["high"] - narrow["low"])
    assert "two-way clusters, labelers and items" in wide["method"]
    assert "jackknife over 20 labelers" in narrow["method"]
    assert one(both, "prevalence", group="A")["n"] == 40


def bar_for(cost_ratio: float, prevalence: float, separation: float = 2.0) -> LabelerGroup:
    """A group whose labelers weigh a miss by this cost ratio."""
    odds = np.log((1 - prevalence) / prevalence)
    t = float((odds - np.log(cost_ratio)) / separation + separation / 2)
    return LabelerGroup(prevalence=prevalence, separation=separation, criterion=t)


def explained(groups: dict[str, LabelerGroup], **made: Any) -> tuple[str, eh.Audit]:
    frame = simulate_labelers(groups, **({"labelers": 25, "items_each": 600, "seed": 4} | made))
    audit = eh.audit(
        eh.Decisions(frame.frame, reference={"group": "A"}, **ROLES), lenses=["labelers"]
    )
    lead = next(f for f in audit.findings if f.measure.startswith("cost_ratio"))
    return lead.sentence, audit


NONE = "The data show no difference between group B and group A in how the two mistakes are weighed"
CASES = "cases whose truth is '1'"
BAR = "their bar, how much evidence labelers ask for, is"
NO_SKILL = "The data show no difference in skill."


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"A": bar_for(3, 0.25), "B": bar_for(3, 0.25)},
         f"{NONE}, nor in the bar (how much evidence labelers ask for). {NO_SKILL}"),
        ({"A": bar_for(3, 0.25), "B": bar_for(3, 0.10)},
         f"{NONE}: labelers do ask for more evidence about group B ({BAR} higher), as one "
         f"standard asks for where {CASES} are less common. {NO_SKILL}"),
        ({"A": bar_for(3, 0.25), "B": bar_for(9, 0.10)},
         "Labelers weigh the two mistakes differently for group B and group A, though the data "
         "show no difference in the bar (how much evidence labelers ask for): "
         f"{CASES} are less common among group B, and one bar then weighs them differently. "
         f"{NO_SKILL}"),
        ({"A": bar_for(3, 0.25), "B": bar_for(9, 0.25)},
         f"Labelers ask for less evidence about group B ({BAR} lower). {NO_SKILL}"),
        ({"A": bar_for(3, 0.10), "B": bar_for(1.8, 0.25)},
         f"Labelers do ask for less evidence about group B ({BAR} lower), but {CASES} are so much "
         "more common among them in this data that the bar would have to fall further for both "
         f"mistakes to weigh the same. {NO_SKILL}"),
        ({"A": bar_for(3, 0.25, 2.5), "B": bar_for(3, 0.25, 1.2)},
         f"{NONE}: labelers do ask for less evidence about group B ({BAR} lower), as one "
         f"standard asks for where labelers tell {CASES} from others less well for group B."),
    ],
    ids=["same, same", "same, other", "other, same", "other, other", "not far enough", "by skill"],
)  # fmt: skip
def test_every_combination_of_weight_and_bar_has_its_sentence(
    groups: dict[str, LabelerGroup], said: str
) -> None:
    told, audit = explained(groups)
    assert f". {said} " in told
    # Where to look is said of a difference in weight alone.
    assert not (NONE in told and any("where to look" in note for note in audit.notes))
    parts = [one(audit.rows, f"cost_ratio_{p}", group="B")
             for p in ("prevalence_part", "bar_part_average", "skill_part_average")]  # fmt: skip
    ratio = one(audit.rows, "cost_ratio_ratio_average", group="B")
    total = sum(part["value"] for part in parts)
    assert total == pytest.approx(np.log(ratio["value"]), abs=0.01)
    for part in parts:
        ends = " to ".join(
            few(np.exp(part[end])) if part[end] >= 0 else f"{np.exp(part[end]):.2f}"
            for end in ("family_low", "family_high")
        )
        assert f"({ends})" in told
    for basis in ("", "_average"):
        parts = [
            one(audit.rows, f"cost_ratio_{p}_part{basis}", group="B") for p in ("bar", "skill")
        ]
        both = [groups["B"], groups["A"]]
        t, d = ([getattr(g, name) for g in both] for name in ("criterion", "separation"))
        planted = (-(t[0] - t[1]) * np.mean(d), (d[0] - d[1]) * (np.mean(d) - np.mean(t)))
        for part, truth in zip(parts, planted):
            assert part["low"] < truth < part["high"]


def test_the_average_labeler_leads_where_labelers_were_pooled() -> None:
    groups = {"A": bar_for(3, 0.25), "B": bar_for(9, 0.25)}
    _, audit = explained(groups)
    names = {f.measure for f in audit.findings}
    assert {"cost_ratio_ratio_average", "criterion_gap_average"} <= names
    assert not {"cost_ratio_ratio", "criterion_gap"} & names
    _, alone = explained(groups, labelers=4, items_each=2000)
    names = {f.measure for f in alone.findings}
    assert {"cost_ratio_ratio", "criterion_gap"} <= names
    # A limit judges what it names, and nothing says it a second time.
    bound = eh.audit(audit_of(groups), lenses=["labelers"], limits={"criterion_gap": 0.1})
    names = {f.measure for f in bound.findings}
    assert "criterion_gap" in names
    assert "criterion_gap_average" not in names


def audit_of(groups: dict[str, LabelerGroup]) -> eh.Decisions:
    frame = simulate_labelers(groups, labelers=25, items_each=600, seed=4).frame
    return eh.Decisions(frame, reference={"group": "A"}, **ROLES)


def test_who_carries_a_difference_is_said() -> None:
    rng = np.random.default_rng(1)
    shared, few = {}, {}
    for i in range(30):
        negatives = 200
        for group, leans in (("A", 0.0), ("B", 0.5)):
            for held, moved in ((shared, leans), (few, 3 * leans if i < 4 else 0.0)):
                alarms = int(rng.binomial(negatives, ndtr(-1.2 + moved)))
                hits = int(rng.binomial(80, ndtr(0.8 + moved)))
                held[f"L{i:02d}", group] = (hits, 80 - hits, alarms, negatives - alarms)
    notes = measured(labels(shared), reference={"group": "A"}).notes
    assert any("is shared by most labelers" in n and "guidelines" in n for n in notes)
    notes = measured(labels(few), reference={"group": "A"}).notes
    assert any("sits with few" in n and "coaching" in n for n in notes), notes


def test_labelers_are_ordered_by_name_and_never_ranked() -> None:
    frame = simulate_labelers(labelers=12, items_each=60, seed=5).frame
    result = measured(frame)
    rows = result.rows.where(measure="criterion", group="A")
    names = [name for name in rows["labeler"] if name is not None]
    assert names == sorted(names)
    assert any("cannot be put in any order: reliability is below 0.5" in n for n in result.notes)
    shown = str(eh.audit(eh.Decisions(frame, **ROLES), limits={"cost_ratio": "4:5"}))
    assert not any(name in shown for name in names)


def test_labels_by_the_toss_of_a_coin_are_not_called_within() -> None:
    # d′ = 0: the implied threshold is the prevalence, 0.1, and c = 9, wherever the bar stands.
    coin = {(f"L{i}", g): (25, 25, 225, 225) for i in range(8) for g in "AB"}
    decisions = eh.Decisions(labels(coin), **ROLES)
    audit = eh.audit(decisions, lenses=["labelers"], limits={"cost_ratio": "2:20"})
    assert audit.verdict == "cannot tell"
    rows = audit.rows.where(measure="cost_ratio")
    assert set(rows.plain("verdict")) == {"cannot tell"}
    told = audit.findings[0].sentence
    assert told.endswith(
        "No limit can be held against it: labels are not shown to tell the truth apart."
    )
    assert one(audit.rows, "separation", group="A")["method"].endswith("8 labelers")
    noisy = coin | {(f"L{i}", "A"): (30, 20, 225, 225) for i in range(2)}
    notes = measured(labels(noisy)).notes
    assert (
        "group A: labels are not shown to carry information (separation may be 0), so the cost "
        "ratio says more of the prevalence than of a standard." in notes
    )
    ratio = one(measured(labels(noisy)).rows, "cost_ratio_ratio", group="B")
    assert ratio["unjudged"] == "labels are not shown to tell the truth apart"
    assert ratio["method"].endswith(f"; no limit is held against it: {ratio['unjudged']}")


def test_the_average_labeler_has_rows_beside_those_of_pooled_labels() -> None:
    groups = {"A": LabelerGroup(prevalence=0.3), "B": LabelerGroup(prevalence=0.3, criterion=0.7)}
    spread = Variation(criterion_across=0.8)
    frame = simulate_labelers(groups, labelers=60, items_each=200, variation=spread, seed=3).frame
    result = measured(frame, reference={"group": "A"})
    average = one(result.rows, "criterion_gap_average", group="B")
    pooled = one(result.rows, "criterion_gap", group="B")
    # Planted −0.5; labels pooled over bars of SD 0.8 show −0.5/√(1 + 0.8²) = −0.39.
    assert average["low"] <= -0.5 <= average["high"]
    assert pooled["value"] == pytest.approx(-0.39, abs=0.05)
    assert average["value"] < pooled["value"] - 0.05
    assert average["method"].endswith("of the average labeler")
    told = result.details["attributes"][0]["pooled_contrasts"][0]
    assert average["value"] == pytest.approx(told["criterion_gap"]["value"])
    shared = one(result.rows, "criterion_gap_shared", group="B")
    assert (shared["n"], shared["reference"]) == (60, "A")
    assert 0.9 <= shared["value"] <= 1
    assert shared["low"] <= shared["value"] <= shared["high"]
    assert one(result.rows, "separation_gap_average", group="B")["low"] < 0
    told_in_words = say_labels(average, Words())
    assert told_in_words is not None
    assert told_in_words.headline == (
        "The average labeler asks for less evidence about group B than about group A"
    )
    note = next(n for n in result.notes if "shared by most" in n)
    assert note.startswith("B against A (the average labeler's criterion −0.5")


def test_the_average_labeler_speaks_only_where_there_is_one() -> None:
    few = simulate_labelers(labelers=4, items_each=100, seed=1).frame
    many = simulate_labelers(labelers=6, items_each=100, seed=1).frame
    blind = many.filter((pl.col("group") == "A") | (pl.col("truth") == 0))
    for frame, roles in ((few, {}), (many, {"reference": {"group": "<rest>"}}), (blind, {})):
        rows = measured(frame, **roles).rows
        assert not len(rows.where(measure="criterion_gap_average"))
        assert not len(rows.where(measure="criterion_gap_shared"))


def test_family_of_the_average_labeler_holds_for_all_groups() -> None:
    groups = {name: LabelerGroup(prevalence=0.3) for name in "ABC"}
    frame = simulate_labelers(groups, labelers=12, items_each=90, seed=2).frame
    rows = measured(frame, reference={"group": "A"}).rows.where(measure="criterion_gap_average")
    assert list(rows["group"]) == ["B", "C"]
    assert np.all(rows["family_low"] < rows["low"])
    assert np.all(rows["family_high"] > rows["high"])


def test_labelers_who_surely_differ_from_the_rest_are_counted_and_not_named() -> None:
    alike = {(f"L{i}", g): (30, 20, 40, 210) for i in range(9) for g in "AB"}
    odd = {("L9", g): (49, 1, 150, 100) for g in "AB"}
    notes = measured(labels(alike | odd)).notes
    told = [n for n in notes if "than the others" in n]
    assert told == [
        "By group, 1 of 10 labelers holds another bar than the others "
        "(criterion against the rest, allowing for all labelers at once)."
    ]
    assert not any("than the others" in n for n in measured(labels(alike)).notes)


def test_single_labelers_count_for_the_verdict_only_when_surely_outside() -> None:
    groups = {name: LabelerGroup(prevalence=0.3) for name in "AB"}
    frame = simulate_labelers(groups, labelers=40, items_each=60, seed=6).frame
    decisions = eh.Decisions(frame, **ROLES)
    wide = eh.audit(decisions, lenses=["labelers"], limits={"cost_ratio": "0.5:4"})
    verdicts = wide.rows.where(measure="cost_ratio")
    assert set(verdicts.where(labeler="L01").plain("verdict")) - {"within"}
    assert wide.verdict == "within"
    assert wide.sentence == ("The two mistakes are weighed as agreed for both groups.")
    low = eh.audit(decisions, lenses=["labelers"], limits={"cost_ratio": "0.01:0.02"})
    told = [f.line for f in low.findings if f.line.startswith("40 of 40 labelers")]
    assert told == [
        "40 of 40 labelers weigh the two mistakes otherwise than agreed, beyond what chance "
        "explains."
    ]


def test_the_average_over_groups_is_weighed_by_the_groups_not_by_the_labeler() -> None:
    counts = {(f"L{i}", g): (12, 6, 8, 40) for i in range(6) for g in "AB"}
    counts["L0", "B"] = (1, 1, 1, 3)
    rows = measured(labels(counts)).rows
    whole = one(rows, "criterion", labeler="L1", group=None)
    parts = [one(rows, "criterion", labeler="L1", group=g)["value"] for g in "AB"]
    n = {g: sum(sum(c) for (_, h), c in counts.items() if h == g) for g in "AB"}
    share = n["A"] / (n["A"] + n["B"])
    assert whole["value"] == pytest.approx(share * parts[0] + (1 - share) * parts[1])
    assert (whole["n"], whole["group"]) == (132, None)


def test_response_times_are_read_by_ez_diffusion() -> None:
    frame = simulate_labelers(labelers=10, items_each=100, seconds=True, seed=2).frame
    result = measured(frame, seconds="seconds")
    table = {t["group"]: t for t in result.details["attributes"][0]["times"]}
    mine = frame.filter((pl.col("group") == "A") & (pl.col("truth") == pl.col("decision")))
    assert table["A"]["mean_seconds"] == pytest.approx(mine["seconds"].mean())
    assert table["A"]["sd_seconds"] == pytest.approx(mine["seconds"].std())
    right = (frame["truth"] == frame["decision"]).filter(frame["group"] == "A").mean()
    assert table["A"]["share_right"] == pytest.approx(right)
    found = ez_diffusion(
        right, variance_seconds=mine["seconds"].var(), mean_seconds=mine["seconds"].mean()
    )
    assert table["A"]["drift"] == pytest.approx(float(found.drift))
    assert "boundary_gap" in table["B"]["against"]


def test_times_that_no_decision_takes_say_nothing_of_care() -> None:
    # Half of group B's labels wait for hours: the closed form would need less than no time.
    frame = simulate_labelers(labelers=6, items_each=200, seconds=True, seed=2).frame
    waits = (pl.col("group") == "B") & (pl.int_range(pl.len()) % 2 == 0)
    odd = frame.with_columns(seconds=pl.when(waits).then(9000.0).otherwise(pl.col("seconds")))
    found = measured(odd, seconds="seconds", reference={"group": "A"})
    said = [n for n in found.notes if n.startswith("B: seconds vary more than any time")]
    assert said == [
        "B: seconds vary more than any time to decide would, so nothing is said of care or speed. "
        "Leave pauses out with longest_seconds."
    ]
    assert not any("EZ-diffusion" in n for n in found.notes)
    tables = {t["group"]: t for t in found.details["attributes"][0]["times"]}
    assert tables["B"]["boundary"] is None
    assert not any("against" in table for table in tables.values())


def test_very_long_times_are_warned_of_and_can_be_left_out() -> None:
    frame = simulate_labelers(labelers=6, items_each=100, seconds=True, seed=2).frame
    pause = pl.when(pl.int_range(pl.len()) < 5).then(4000.0).otherwise(pl.col("seconds"))
    odd = frame.with_columns(seconds=pause)
    assert any("a few very long times rule" in n for n in measured(odd, seconds="seconds").notes)
    # Neither group is compared with one whose times are not to be trusted, whichever it is.
    assert set(odd.filter(pl.col("seconds") > 1000)["group"]) == {"A"}
    for reference in "AB":
        found = measured(odd, seconds="seconds", reference={"group": reference})
        assert not any("care" in n and "EZ-diffusion" in n for n in found.notes)
        tables = found.details["attributes"][0]["times"]
        assert not any("against" in table for table in tables)
        assert {t["group"]: t["boundary"] is None for t in tables} == {"A": True, "B": False}
    cut = measured(odd, seconds="seconds", settings={"longest_seconds": 60})
    assert not any("a few very long times rule" in n for n in cut.notes)
    with pytest.raises(UsageError) as caught:
        measured(odd, seconds="seconds", settings={"longest_seconds": 0})
    assert str(caught.value) == (
        "longest_seconds=0 is not a number above 0. Give the longest time that counts as "
        "labelling, such as 60."
    )


def test_sensitivity_to_unequal_variance_is_in_the_details() -> None:
    result = measured(labels({("x", "A"): A}))
    told = ORACLES["3.7_unequal_variance"]["sigma"]
    curve = result.details["attributes"][0]["sensitivity"][0]
    assert dict(zip(map(str, curve["sigma"]), curve["implied_threshold"])) == pytest.approx(
        {sigma: values["implied_threshold"] for sigma, values in told.items()}
    )


def test_easy_items_move_the_estimate() -> None:
    # METHODS 3.5: 900 obviously benign items more turn 0.151 into 0.131, 300 violations 0.207.
    base = {("x", "A"): A}
    benign, plain = {("x", "A"): (80, 20, 90, 1710)}, measured(labels(base)).rows
    flooded = {("x", "A"): (380, 20, 90, 810)}
    values = [
        one(measured(labels(c)).rows, "implied_threshold")["value"] for c in (benign, flooded)
    ]
    assert one(plain, "implied_threshold")["value"] == pytest.approx(0.151, abs=5e-4)
    assert values == pytest.approx([0.131, 0.207], abs=5e-4)


def test_every_measure_is_in_the_catalogue_and_back() -> None:
    frame = simulate_labelers(labelers=6, items_each=60).frame
    settings = {"truth_sensitivity": 0.99, "truth_specificity": 0.99}
    seen = set(measured(frame, settings=settings).rows["measure"])
    assert seen == {name for name, m in CATALOGUE.items() if "labelers" in m.lenses}


@pytest.mark.parametrize(
    ("roles", "lack"),
    [
        ({"labeler": None}, "a labeler column"),
        ({"group": None}, "a group column"),
        ({"truth": None}, "a truth column: what an expert says is the case"),
        ({"decision": None}, "a decision column: what the labeler said"),
    ],
)
def test_a_table_that_lacks_a_column_says_which(roles: dict[str, None], lack: str) -> None:
    given = {k: v for k, v in {**ROLES, **roles}.items() if v is not None}
    table = {"truth": [1], "decided": [1], "labeler": ["x"], "group": ["a"]}
    if "decision" in given:
        given["decision"] = "decided"
    assert labelers.lacks(eh.Decisions(table, **given)) == lack


def test_more_than_two_classes_need_a_positive() -> None:
    table = {"truth": ["a", "b", "c"] * 9, "decision": ["a", "b", "b"] * 9}
    table |= {"labeler": ["x"] * 27, "group": ["f"] * 27}
    result = measured(table)
    assert result.notes == (
        "Labelers decide between 2 classes: signal detection needs one that counts as positive "
        "(--positive).",
    )
    assert len(measured(table, positive="b").rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"prevalence": 2},
            "prevalence=2 is not between 0 and 1. For two in a hundred write 0.02.",
        ),
        (
            {"prevalence": {"a": 0.1}},
            "prevalence names 'a', which is not a group. Did you mean 'A'? The groups are A, B.",
        ),
        (
            {"truth_sensitivity": {"C": 0.1}, "truth_specificity": 0.9},
            "truth_sensitivity names 'C', which is not a group. The groups are A, B.",
        ),
        (
            {"truth_sensitivity": 0.5, "truth_specificity": 0.4},
            "sensitivity + specificity = 0.9 is not above 1: such an expert does no better than "
            "chance, and no truth can be recovered.",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        measured(labels({("x", "A"): A, ("x", "B"): B}), settings=settings)
    assert str(caught.value).startswith(message.split(" Did")[0])


def test_an_unknown_reference_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        measured(labels({("x", "A"): A, ("x", "B"): B}), reference={"group": "C"})
    assert "reference='C' is not a group." in str(caught.value)
    assert "The groups are A, B; or write <rest> or <overall>." in str(caught.value)


def test_comparison_with_everybody_else() -> None:
    counts = {(f"L{i}", g): (20, 10 + k, 8, 60 + k) for i in range(6) for k, g in enumerate("ABC")}
    rest = measured(labels(counts), reference={"group": "<rest>"})
    row = one(rest.rows, "criterion_gap", group="A", reference="<rest>")
    # The rest taken as one group of its own.
    frame = labels(counts).with_columns(
        group=pl.when(pl.col("group") == "A").then(pl.col("group")).otherwise(pl.lit("Z"))
    )
    same = one(measured(frame, reference={"group": "Z"}).rows, "criterion_gap", group="A")
    assert row["value"] == pytest.approx(same["value"])
    assert row["low"] == pytest.approx(same["low"])
    assert row["n_reference"] == same["n_reference"]
    overall = measured(labels(counts), reference={"group": "<overall>"})
    assert any("instead of all items" in note for note in overall.notes)


def test_rows_without_a_value_are_counted_or_refused() -> None:
    frame = labels({(f"L{i}", g): (12, 6, 8, 40) for i in range(6) for g in "AB"})
    holes = frame.with_columns(
        truth=pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise(pl.col("truth")),
        labeler=pl.when(pl.int_range(pl.len()) % 11 == 1).then(None).otherwise(pl.col("labeler")),
    )
    result = measured(holes)
    assert result.excluded == {
        "no labeler (labelers)": holes["labeler"].null_count(),
        "no truth (labelers)": holes["truth"].null_count(),
    }
    used = holes.drop_nulls().filter(pl.col("group") == "A").height
    assert one(result.rows, "criterion", group="A")["n"] == used
    with pytest.raises(DataError, match="missing='error' and the data has"):
        measured(holes, missing="error")
    nothing = frame.with_columns(truth=pl.lit(None, dtype=pl.Int64))
    with pytest.raises(DataError) as caught:
        measured(nothing)
    assert str(caught.value) == (
        "Nothing is left to measure for group='group': no row has a group, a labeler, a truth "
        "and a decision."
    )


def test_a_group_without_complete_labels_leaves() -> None:
    frame = labels({(f"L{i}", g): (12, 6, 8, 40) for i in range(6) for g in "ABC"})
    gone = pl.when(pl.col("group") == "C").then(None).otherwise(pl.col("truth"))
    rows = measured(frame.with_columns(truth=gone)).rows
    assert set(rows["group"]) == {"A", "B", None}


def test_decisions_from_a_score_and_a_threshold() -> None:
    frame = labels({("x", "A"): A})
    scored = frame.with_columns(sure=pl.col("decision") * 0.6 + 0.2)
    rows = measured(scored, decision=None, score="sure", threshold=0.5, item="item").rows
    assert one(rows, "criterion")["value"] == pytest.approx(1.281551566)
    assert one(rows, "criterion")["rule"] == "score>=t"


def test_words_for_classes_and_another_positive() -> None:
    frame = labels({("x", "A"): A})
    said = {1: "insult", 0: "fine"}
    named = frame.with_columns(
        pl.col("truth", "decision").replace_strict(said, return_dtype=pl.String)
    )
    rows = measured(named, positive="insult", item="item").rows
    assert one(rows, "cost_ratio")["value"] == pytest.approx(5.641785087)
    assert one(rows, "cost_ratio")["class"] == "insult"
    # With the negative as the positive, a miss is what a false alarm was: c becomes 1/c.
    turned = measured(frame, positive="0", item="item").rows
    assert one(turned, "cost_ratio")["value"] == pytest.approx(1 / 5.641785087)


def test_weights_are_not_read_and_that_is_said() -> None:
    frame = labels({("x", "A"): A}).with_columns(w=pl.lit(3.0))
    result = measured(frame, weight="w")
    assert one(result.rows, "criterion")["n"] == 1000
    assert "The labelers lens counts every label once and does not read weights." in result.notes


def test_agreement_beyond_chance_is_no_certainty() -> None:
    # Six labelers with the very same counts: their spread is 0, their error is not.
    counts = {(f"L{i}", g): (12, 6, 8, 40) for i in range(6) for g in "AB"}
    rows = measured(labels(counts)).rows
    for measure in ("criterion", "separation"):
        row = one(rows, measure, group="A")
        assert row["high"] - row["low"] > 0.2
    gap = one(rows, "criterion_gap")
    assert gap["low"] < -0.1 < 0.1 < gap["high"]


def test_families_hold_all_groups_and_labelers() -> None:
    frame = simulate_labelers(
        {n: LabelerGroup() for n in "ABC"}, labelers=8, items_each=150, seed=7
    ).frame
    rows = measured(frame).rows
    for row in rows:
        if row["low"] is None or row["measure"].startswith("prevalence"):
            continue
        assert row["family_low"] <= row["low"] + 1e-12
        assert row["family_high"] >= row["high"] - 1e-12
    group = one(rows, "criterion", group="A")
    assert group["family_high"] > group["high"]
    own = one(rows, "criterion", group="A", labeler="L1")
    assert own["family_high"] > own["high"]


def test_settings_for_a_group() -> None:
    nested = {"prevalence": {"all": 0.02, "gender": {"female": 0.03}}}
    assert setting_for(nested, "prevalence", "gender", "female") == 0.03
    assert setting_for(nested, "prevalence", "gender", "male") == 0.02
    assert setting_for(nested, "prevalence", "race", "a") == 0.02
    assert setting_for({"prevalence": 0.5}, "prevalence", "race", "a") == 0.5
    assert setting_for({}, "prevalence", "race", "a") is None
    assert setting_for({"prevalence": {"race": {"all": 0.4}}}, "prevalence", "race", "a") == 0.4


@pytest.mark.parametrize(
    ("measure", "value", "labeler", "reference", "told"),
    [
        (
            "criterion_gap",
            0.2,
            None,
            "m",
            "Labelers ask for more evidence about group f than about group m",
        ),
        (
            "criterion_gap",
            0.0,
            None,
            "m",
            "The data cannot tell whether labelers ask for less evidence about group f than about "
            "group m",
        ),
        (
            "separation_gap",
            0.2,
            None,
            "m",
            "Labelers tell cases whose truth is '1' from others better for group f than for "
            "group m",
        ),
        (
            "separation_gap",
            -0.2,
            None,
            "m",
            "Labelers tell cases whose truth is '1' from others less well for group f than for "
            "group m",
        ),
        (
            "prevalence_gap",
            0.2,
            None,
            "m",
            "Cases whose truth is '1' are more common among labels about group f than about "
            "group m",
        ),
        (
            "criterion_gap",
            -0.2,
            "L1",
            "<rest>",
            "Labeler L1 asks for less evidence about group f than other labelers do",
        ),
    ],
)
def test_comparisons_in_words(
    measure: str, value: float, labeler: str | None, reference: str, told: str
) -> None:
    row = dict.fromkeys(COLUMNS) | {"lens": "labelers", "measure": measure, "class": "1"}
    row |= {"group": "f", "attribute": "sex", "labeler": labeler, "reference": reference}
    ends = {"family_low": value - 0.01, "family_high": value + 0.01}
    found = say_labels(row | ends | {"value": value}, Words())
    assert found is not None
    assert found.headline == told


def test_the_lens_runs_beside_the_statistical_one() -> None:
    frame = simulate_labelers(labelers=6, items_each=100).frame
    audit = eh.audit(eh.Decisions(frame, item="item", **ROLES))
    assert {"statistical", "labelers"} <= set(audit.rows["lens"])
    assert audit.data["lenses"]["labelers"] is None
    assert json.loads(audit.to_json())["details"]["labelers"]["positive"] == "1"


def test_the_planted_standard_is_found() -> None:
    variation = Variation(criterion_across=0.2, separation_across=0.2)
    made = simulate_labelers(labelers=30, items_each=400, variation=variation, seed=11)
    rows = measured(made.frame, item="item").rows
    planted = {row["group"]: row for row in made.planted.iter_rows(named=True)}
    for group in "AB":
        row = one(rows, "cost_ratio", group=group)
        assert row["family_low"] < planted[group]["cost_ratio"] < row["family_high"]
    gap = one(rows, "criterion_gap")
    assert gap["low"] < -0.3 < gap["high"] < 0


def test_labels_without_an_item_are_said() -> None:
    frame = labels({(f"L{i}", g): (12, 6, 8, 40) for i in range(5) for g in "AB"})
    some = pl.when(pl.col("item") < 3).then(None).otherwise(pl.col("item"))
    result = measured(frame.with_columns(item=some), item="item")
    assert (
        "3 labels name no item: counted as labels, but neither for the prevalence nor for items' "
        "clusters." in result.notes
    )
    assert one(result.rows, "criterion", group="A")["n"] == 330
    assert one(result.rows, "prevalence", group="A")["n"] == 327


def test_further_cases_follow_the_width_of_the_interval() -> None:
    # log c = 1.7302 ± 0.1758 against log 7 = 1.9459: ((1.96 + 0.842)·0.1758/0.2157)² = 5.21 times
    # as many labels, 4,213 more than 1,000, said as 4,300.
    decisions = eh.Decisions(labels({("x", "A"): A}), **ROLES)
    audit = eh.audit(decisions, lenses=["labelers"], limits={"cost_ratio": "1:7"})
    told = next(f.sentence for f in audit.findings if f.measure == "cost_ratio")
    assert told.endswith(
        "1 to 7 was agreed. If the value is what it looks like, about 4,300 more labels "
        "of this group would settle it four times out of five."
    )
    threshold = eh.audit(decisions, lenses=["labelers"], limits={"implied_threshold": "0.14:0.9"})
    told = next(f.sentence for f in threshold.findings if f.measure == "implied_threshold")
    assert "About 0 further" not in told


def test_two_labelers_without_empty_cells_are_not_corrected() -> None:
    # Without the second labeler there would be no miss at all, but nobody is left out of two.
    rows = measured(labels({("x", "A"): (30, 0, 40, 400), ("y", "A"): (50, 20, 50, 410)})).rows
    assert "no correction" in one(rows, "cost_ratio")["method"]
    assert one(rows, "cost_ratio")["value"] == pytest.approx(5.641785087)
