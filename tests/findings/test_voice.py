"""How findings speak: whole sentences, by kind of row, by verdict, with and without words."""

from dataclasses import replace
from typing import Any

import pytest

from evenhand.findings.sentences.costs import say_costs, say_labeler_costs, say_undefined
from evenhand.findings.sentences.labelers import parts_in_words, standard_in_words
from evenhand.findings.sentences.relabel import single_labelers_step
from evenhand.findings.sentences.rows import say_row
from evenhand.findings.sentences.steps import next_step, source_of
from evenhand.findings.sentences.words import Words
from evenhand.lenses.rows import COLUMNS

POSTS = Words(
    item=("post", "posts"),
    link="by",
    decided="removed",
    truth=("break the rules", "do not break the rules"),
    missed=("missed violation", "missed violations"),
    wrong=("wrongful removal", "wrongful removals"),
    people_names={"gender": {"nonbinary": "nonbinary people"}},
    positive="1",
)
DEFENDANTS = Words(
    item=("defendant", "defendants"),
    decided="flagged",
    truth=("reoffended", "did not reoffend"),
    missed=("missed reoffender", "missed reoffenders"),
    wrong=("wrongful prediction", "wrongful predictions"),
    people_names={
        "race": {"AA": "African-American defendants", "C": "Caucasian defendants"},
    },
    positive="1",
)
LOANS = Words(decided="approved", positive="1", meaning={"1": "benefit"})
BIOS = Words(
    item=("biography", "biographies"), link="of", class_=("occupation", "occupations")
)  # fmt: skip
BARE = Words(positive="1")
BURDEN = Words(positive="1", meaning={"1": "burden"})


def row(measure: str, value: float | None, *ends: float | None, **columns: Any) -> dict[str, Any]:
    low, high = ends or (None, None)
    lens = columns.pop("lens", "statistical")
    shared = {"lens": lens, "attribute": "gender", "class": "1", "level": 0.95, "n": 5000}
    return (
        dict.fromkeys(COLUMNS)
        | {"measure": measure, "value": value, "family_low": low, "family_high": high}
        | {"verdict": "not assessed", "reference": "male", "group": "nonbinary"}
        | shared
        | columns
    )


def rate(name: str, value: float, group: str, **columns: Any) -> dict[str, Any]:
    return row(name, value, group=group, **columns)


def limit(low: float, high: float, verdict: str) -> dict[str, Any]:
    return {"limit_low": low, "limit_high": high, "verdict": verdict}


def two(name: str, own: float, other: float, **columns: Any) -> list[dict[str, Any]]:
    """The rates of the group and of men."""
    group = columns.pop("group", "nonbinary")
    reference = columns.pop("reference", "male")
    return [rate(name, own, group, **columns), rate(name, other, reference, **columns)]


S, T, F = "selection_rate", "true_positive_rate", "false_positive_rate"
OUT, IN, OPEN = "outside", "within", "cannot tell"
RACE = {"attribute": "race", "group": "AA", "reference": "C"}
WOMEN = {"group": "female"}
LINES: dict[str, tuple[Words, dict[str, Any], list[dict[str, Any]], str]] = {
    # --- gaps: who, what, how often, against whom, how sure
    "selection": (
        POSTS,
        row(f"{S}_gap", 0.176, 0.162, 0.189),
        two(S, 0.361, 0.185),
        (
            "36.1% of posts by nonbinary people are removed, 18.5% of men's: 17.6 points more "
            "(16.2 to 18.9)."
        ),
    ),
    "selection less": (
        POSTS,
        row(f"{S}_gap", -0.05, -0.08, -0.02, **WOMEN),
        two(S, 0.1, 0.15, **WOMEN),
        "10% of posts by women are removed, 15% of men's: 5 points fewer (2 to 8).",
    ),
    "selection without words": (
        BARE,
        row(f"{S}_gap", 0.176, 0.162, 0.189),
        two(S, 0.361, 0.185),
        (
            "36.1% of group nonbinary get decision '1', 18.5% of men: 17.6 points more (16.2 to "
            "18.9)."
        ),
    ),
    "selection, a burden": (
        BURDEN,
        row(f"{S}_gap", 0.176, 0.162, 0.189),
        two(S, 0.361, 0.185),
        (
            "36.1% of group nonbinary get decision '1' (a burden), 18.5% of men: 17.6 points "
            "more (16.2 to 18.9)."
        ),
    ),
    "selection, a benefit": (
        LOANS,
        row(f"{S}_gap", -0.12, -0.15, -0.09, **WOMEN, **limit(-0.05, 0.05, OUT)),
        two(S, 0.48, 0.6, **WOMEN),
        ("48% of women are approved, 60% of men: 12 points fewer (9 to 15); at most 5 was agreed."),
    ),
    "the decision's own words": (
        Words(decision="take the post down", positive="1"),
        row(f"{S}_gap", 0.1, 0.05, 0.15, **WOMEN),
        two(S, 0.3, 0.2, **WOMEN),
        (
            "30% of women get the decision to take the post down, 20% of men: 10 points more (5 "
            "to 15)."
        ),
    ),
    "an item without of": (
        Words(item=("loan", "loans"), decided="approved", positive="1"),
        row(f"{S}_gap", 0.1, 0.05, 0.15, **WOMEN),
        two(S, 0.3, 0.2, **WOMEN),
        "30% of loans of women are approved, 20% of men's: 10 points more (5 to 15).",
    ),
    "of without an item": (
        Words(link="by", decided="removed", positive="1"),
        row(f"{S}_gap", 0.1, 0.05, 0.15, **WOMEN),
        two(S, 0.3, 0.2, **WOMEN),
        "30% of women are removed, 20% of men: 10 points more (5 to 15).",
    ),
    "without rates": (
        LOANS,
        row(f"{S}_gap", -0.12, -0.15, -0.09, **WOMEN),
        [],
        "Women are approved 12 points less often than men (9 to 15).",
    ),
    "only one rate": (
        LOANS,
        row(f"{S}_gap", -0.12, -0.15, -0.09, **WOMEN),
        [rate(S, 0.48, "female")],
        "48% of women are approved, 60% of men: 12 points fewer (9 to 15).",
    ),
    "no interval": (
        LOANS,
        row(f"{S}_gap", -0.12, verdict="", **WOMEN),
        two(S, 0.48, 0.6, **WOMEN),
        "48% of women are approved, 60% of men: 12 points fewer.",
    ),
    "everybody else": (
        POSTS,
        row(f"{S}_gap", 0.176, 0.162, 0.189, reference="<rest>"),
        two(S, 0.361, 0.185, reference="<rest>"),
        (
            "36.1% of posts by nonbinary people are removed, 18.5% of everybody else's: 17.6 "
            "points more (16.2 to 18.9)."
        ),
    ),
    "people overall": (
        LOANS,
        row(f"{S}_gap", -0.06, -0.08, -0.04, reference="<overall>", **WOMEN),
        two(S, 0.48, 0.54, reference="<overall>", **WOMEN),
        "48% of women are approved, 54% of people overall: 6 points fewer (4 to 8).",
    ),
    "missing group": (
        LOANS,
        row(f"{S}_gap", -0.06, -0.08, -0.04, group="<missing>"),
        two(S, 0.48, 0.54, group="<missing>"),
        (
            "48% of people whose gender is missing are approved, 54% of men: 6 points fewer (4 "
            "to 8)."
        ),
    ),
    "numbered groups": (
        BARE,
        row(f"{S}_gap", 0.5, 0.4, 0.6, attribute="old", group="1", reference="0"),
        two(S, 0.7, 0.2, attribute="old", group="1", reference="0"),
        ("70% of group old=1 get decision '1', 20% of group old=0: 50 points more (40 to 60)."),
    ),
    "crossed": (
        POSTS,
        row(
            f"{S}_gap",
            0.2,
            0.15,
            0.25,
            attribute="gender*region",
            group="female*north",
            reference="male*south",
        ),
        two(S, 0.4, 0.2, attribute="gender*region", group="female*north", reference="male*south"),
        (
            "40% of posts by women whose region is north are removed, 20% of those by men whose "
            "region is south: 20 points more (15 to 25)."
        ),
    ),
    "in a stratum": (
        LOANS,
        row(f"{S}_gap", -0.12, -0.15, -0.09, stratum="north", **WOMEN),
        two(S, 0.48, 0.6, stratum="north", **WOMEN),
        ("In stratum north, 48% of women are approved, 60% of men: 12 points fewer (9 to 15)."),
    ),
    "over strata": (
        LOANS,
        row(f"{S}_gap", -0.12, -0.15, -0.09, stratum="<summary>", **WOMEN),
        [],
        ("Over all strata together, women are approved 12 points less often than men (9 to 15)."),
    ),
    "tiny rates": (
        POSTS,
        row(f"{S}_gap", 0.00042, 0.00036, 0.00048, **WOMEN),
        two(S, 0.00142, 0.001, **WOMEN),
        (
            "0.142% of posts by women are removed, 0.100% of men's: 0.042 points more (0.036 to "
            "0.048)."
        ),
    ),
    "one point": (
        LOANS,
        row(f"{S}_gap", 0.01, -0.05, 0.07, **WOMEN, **limit(-0.1, 0.1, IN)),
        two(S, 0.5, 0.49, **WOMEN),
        (
            "50% of women are approved, 49% of men: 1 point more (5 points fewer to 7 points "
            "more); at most 10 was agreed, and that is kept."
        ),
    ),
    "no difference": (
        LOANS,
        row(f"{S}_gap", 0.0001, -0.02, 0.02, **WOMEN, **limit(-0.05, 0.05, IN)),
        two(S, 0.5, 0.4999, **WOMEN),
        (
            "50% of women are approved, 50% of men: no difference (2 points fewer to 2 points "
            "more); at most 5 was agreed, and that is kept."
        ),
    ),
    "cannot tell the direction": (
        POSTS,
        row(f"{S}_gap", 0.035, -0.02, 0.09),
        two(S, 0.22, 0.185),
        (
            "22% of posts by nonbinary people are removed, 18% of men's. The data cannot tell: "
            "anything from 2 points fewer to 9 points more fits."
        ),
    ),
    "cannot tell, limited": (
        POSTS,
        row(f"{S}_gap", 0.035, -0.02, 0.09, **limit(-0.05, 0.05, OPEN)),
        two(S, 0.22, 0.185),
        (
            "22% of posts by nonbinary people are removed, 18% of men's. The data cannot tell: "
            "anything from 2 points fewer to 9 points more fits; at most 5 was agreed."
        ),
    ),
    "apart, and the limit open": (
        POSTS,
        row(f"{S}_gap", 0.06, 0.03, 0.09, **limit(-0.05, 0.05, OPEN)),
        two(S, 0.24, 0.18),
        (
            "24% of posts by nonbinary people are removed, 18% of men's: 6 points more (3 to "
            "9). At most 5 was agreed: the data cannot tell whether that is kept."
        ),
    ),
    "a limit of two sides": (
        LOANS,
        row(f"{S}_gap", -0.12, -0.15, -0.09, **WOMEN, **limit(-0.02, 0.05, OUT)),
        two(S, 0.48, 0.6, **WOMEN),
        (
            "48% of women are approved, 60% of men: 12 points fewer (9 to 15); from 2 points "
            "fewer to 5 points more was agreed."
        ),
    ),
    # --- errors
    "true positives": (
        POSTS,
        row(f"{T}_gap", 0.161, 0.134, 0.185),
        two(T, 0.929, 0.768),
        (
            "Of posts that break the rules, 92.9% of nonbinary people's are removed and 76.8% "
            "of men's: 16.1 points more (13.4 to 18.5)."
        ),
    ),
    "false positives": (
        POSTS,
        row(f"{F}_gap", 0.179, 0.166, 0.193),
        two(F, 0.282, 0.103),
        (
            "Of posts that do not break the rules, 28.2% of nonbinary people's are removed and "
            "10.3% of men's: 17.9 points more (16.6 to 19.3)."
        ),
    ),
    "false positives of people": (
        DEFENDANTS,
        row(f"{F}_gap", 0.214, 0.182, 0.245, **RACE),
        two(F, 0.448, 0.235, **RACE),
        (
            "Of defendants who did not reoffend, 44.8% of African-American ones are flagged and "
            "23.5% of Caucasian ones: 21.4 points more (18.2 to 24.5)."
        ),
    ),
    "false negatives": (
        POSTS,
        row("false_negative_rate_gap", -0.161, -0.185, -0.134),
        two("false_negative_rate", 0.071, 0.232),
        (
            "Of posts that break the rules, 7.1% of nonbinary people's are not removed and "
            "23.2% of men's: 16.1 points fewer (13.4 to 18.5)."
        ),
    ),
    "true negatives": (
        BARE,
        row("true_negative_rate_gap", -0.18, -0.19, -0.17),
        two("true_negative_rate", 0.72, 0.9),
        (
            "Of those whose truth is not '1', 72% of group nonbinary do not get decision '1' "
            "and 90% of men: 18 points fewer (17 to 19)."
        ),
    ),
    "errors without words": (
        BARE,
        row(f"{F}_gap", 0.214, 0.182, 0.245),
        two(F, 0.448, 0.235),
        (
            "Of those whose truth is not '1', 44.8% of group nonbinary get decision '1' and "
            "23.5% of men: 21.4 points more (18.2 to 24.5)."
        ),
    ),
    "precision": (
        POSTS,
        row("precision_gap", -0.12, -0.14, -0.10),
        two("precision", 0.44, 0.56),
        (
            "Of posts that are removed, 44% of nonbinary people's break the rules and 56% of "
            "men's: 12 points fewer (10 to 14)."
        ),
    ),
    "precision without words": (
        BARE,
        row("precision_gap", -0.12, -0.14, -0.10),
        two("precision", 0.44, 0.56),
        (
            "Of those who get decision '1', 44% of group nonbinary have truth '1' and 56% of "
            "men: 12 points fewer (10 to 14)."
        ),
    ),
    "accuracy": (
        POSTS,
        row("accuracy_gap", -0.138, -0.150, -0.125),
        two("accuracy", 0.743, 0.881),
        (
            "Decisions are right for 74.3% of posts by nonbinary people and 88.1% of men's: "
            "13.8 points fewer (12.5 to 15.0)."
        ),
    ),
    "one class of many": (
        BIOS,
        row(f"{T}_gap", 0.2, 0.1, 0.3, **{"class": "nurse"}, **WOMEN),
        two(T, 0.8, 0.6, **{"class": "nurse"}, **WOMEN),
        (
            "Of biographies whose occupation is 'nurse', 80% of women's are given the "
            "occupation 'nurse' and 60% of men's: 20 points more (10 to 30)."
        ),
    ),
    "one class of many without words": (
        Words(),
        row(f"{S}_gap", 0.081, 0.062, 0.102, **{"class": "nurse"}, **WOMEN),
        two(S, 0.086, 0.005, **{"class": "nurse"}, **WOMEN),
        "8.6% of women get decision 'nurse', 0.5% of men: 8.1 points more (6.2 to 10.2).",
    ),
    # --- ratios, pairs, sizes
    "ratio": (
        POSTS,
        row(f"{S}_ratio", 1.95, 1.86, 2.04, **limit(0.8, 1.25, OUT)),
        two(S, 0.361, 0.185),
        (
            "Posts by nonbinary people are removed 1.95 times as often as men's (1.86 to 2.04): "
            "36.1% against 18.5%; 0.8 to 1.25 was agreed."
        ),
    ),
    "ratio open": (
        LOANS,
        row(f"{S}_ratio", 0.95, 0.78, 1.15, **WOMEN, **limit(0.8, 1.25, OPEN)),
        two(S, 0.38, 0.4, **WOMEN),
        (
            "The data cannot tell whether women are approved less often than men: 38.0% against "
            "40.0%, and anything from 0.78 to 1.15 times fits; 0.8 to 1.25 was agreed."
        ),
    ),
    "impact ratio": (
        LOANS,
        row("impact_ratio", 0.8, 0.75, 0.86, **WOMEN, **limit(0.8, 1.25, OPEN)),
        [],
        (
            "Women are approved 0.80 times as often as men (0.75 to 0.86); theirs is the highest "
            "rate of all groups. 0.8 to 1.25 was agreed: the data cannot tell whether that is kept."
        ),
    ),
    "impact ratio with its rates": (
        LOANS,
        row("impact_ratio", 0.5, 0.46, 0.54, **WOMEN, **limit(0.8, 1.25, OUT)),
        [row("selection_rate", 0.3, group="female"), row("selection_rate", 0.6, group="male")],
        (
            "Women are approved 0.50 times as often as men (0.46 to 0.54): 30.0% against 60.0%, "
            "the highest rate of all groups; 0.8 to 1.25 was agreed."
        ),
    ),
    "larger gap of the two error rates": (
        LOANS,
        row("equalised_odds", 0.2, 0.15, 0.25, **WOMEN, **limit(0.0, 0.05, OUT)),
        [
            row("true_positive_rate", 0.9, group="female"),
            row("true_positive_rate", 0.8, group="male"),
            row("false_positive_rate", 0.5, group="female"),
            row("false_positive_rate", 0.3, group="male"),
        ],
        (
            "The widest gap between two groups: of those whose truth is not '1', 50% of women are "
            "approved and 30% of men, 20 points (15 to 25); at most 5 was agreed."
        ),
    ),
    "highest of all": (
        LOANS,
        row("impact_ratio", 1.0, group="male"),
        [],
        "Of all groups, men are approved most often.",
    ),
    "worst pair": (
        POSTS,
        row(f"{S}_gap_worst", 0.177, 0.16, 0.19, reference="female", **limit(0, 0.1, OUT)),
        two(S, 0.361, 0.184, reference="female"),
        (
            "The widest gap between two groups: 36.1% of posts by nonbinary people are removed, "
            "18.4% of women's, 17.7 points (16.0 to 19.0); at most 10 was agreed."
        ),
    ),
    "worst pair without rates": (
        POSTS,
        row(f"{F}_gap_worst", 0.177, 0.16, 0.19, reference="female"),
        [],
        (
            "Of all groups, nonbinary people and women differ most in how often posts "
            "that do not break the rules are removed: 17.7 points (16.0 to 19.0)."
        ),
    ),
    "spread": (
        POSTS,
        row(f"{S}_spread", 0.064, 0.035, 0.093, group=None, reference=None, n=3),
        [],
        (
            "The selection rate varies between the groups of gender: typically 6.4 points from "
            "the mean of 3 groups (3.5 to 9.3), sampling noise included."
        ),
    ),
    "typical gap": (
        BIOS,
        row(f"{T}_gap_rms_corrected", 0.189, 0.136, 0.249, n=28, **{"class": None}, **WOMEN),
        [row(f"{T}_gap", 0.5, 0.4, 0.6, **{"class": "composer"}, **WOMEN)],
        (
            "Women and men are not recognised equally well in their own occupation: a typical "
            "gap of 19 points over 28 occupations (14 to 25), largest for 'composer'."
        ),
    ),
    "typical gap, a larger one on few cases": (
        BIOS,
        row(f"{T}_gap_rms_corrected", 0.189, 0.136, 0.249, n=28, **{"class": None}, **WOMEN),
        [
            row(f"{T}_gap", 0.13, -0.1, 0.3, **{"class": "teacher"}, **WOMEN),
            row(f"{T}_gap", 0.42, 0.1, 0.7, **{"class": "composer"}, **(WOMEN | {"n": 11})),
        ],
        (
            "Women and men are not recognised equally well in their own occupation: a typical "
            "gap of 19 points over 28 occupations (14 to 25), largest for 'teacher' among the "
            "occupations with 50 cases or more in each group."
        ),
    ),
    "typical gap, a larger one that may be chance": (
        BIOS,
        row(f"{T}_gap_rms_corrected", 0.189, 0.136, 0.249, n=28, **{"class": None}, **WOMEN),
        [
            row(f"{T}_gap", 0.42, -0.1, 0.7, **{"class": "composer"}, **WOMEN),
            row(f"{T}_gap", 0.13, 0.05, 0.3, **{"class": "teacher"}, **WOMEN),
        ],
        (
            "Women and men are not recognised equally well in their own occupation: a typical "
            "gap of 19 points over 28 occupations (14 to 25), largest for 'teacher' among the "
            "occupations where it is beyond doubt."
        ),
    ),
    "typical gap open": (
        BIOS,
        row(
            f"{T}_gap_rms_corrected",
            0.02,
            0.0,
            0.049,
            n=28,
            **{"class": None},
            **WOMEN,
            **limit(0, 0.05, IN),
        ),
        [],
        (
            "Women and men are recognised equally well in their own occupation, as far as was "
            "agreed: a typical gap of 2.0 points over 28 occupations (up to 4.9 points); at "
            "most 5 was agreed, and that is kept."
        ),
    ),
    "typical gap with noise": (
        Words(),
        row("accuracy_gap_rms", 0.05, 0.03, 0.07, n=3, **{"class": None}, **WOMEN),
        [],
        (
            "Women and men are not decided about equally well over the classes: a typical gap "
            "of 5 points over 3 classes (3 to 7), sampling noise included."
        ),
    ),
    "equalised odds": (
        POSTS,
        row("equalised_odds", 0.185, 0.11, 0.279, **limit(0, 0.1, OUT)),
        [],
        (
            "Larger gap of the two error rates, nonbinary people against men: 18 points "
            "(11 to 28); at most 10 points was agreed."
        ),
    ),
    # --- shares, scores, others
    "a rate": (
        POSTS,
        row(S, 0.361, 0.350, 0.372, reference=None),
        [],
        "36.1% of posts by nonbinary people are removed (35.0% to 37.2%).",
    ),
    "a rate outside its band": (
        POSTS,
        row("precision", 0.61, 0.58, 0.64, reference=None, **limit(0.7, 1.0, OUT)),
        [],
        (
            "61% of posts by nonbinary people that are removed break the rules (58% to 64%); at "
            "least 70% was agreed."
        ),
    ),
    "a rate of at most": (
        POSTS,
        row("false_negative_rate", 0.07, 0.056, 0.09, reference=None, **limit(0, 0.1, IN)),
        [],
        (
            "7.0% of posts by nonbinary people that break the rules are not removed (5.6% to "
            "9.0%); at most 10% was agreed, and that is kept."
        ),
    ),
    "AUC": (
        POSTS,
        row("auc", 0.82, 0.8, 0.84, reference=None),
        [],
        (
            "For nonbinary people, scores put violations above others in 82.0% of pairs (80.0% "
            "to 84.0%)."
        ),
    ),
    "AUC gap": (
        POSTS,
        row("auc_gap", -0.06, -0.09, -0.03),
        two("auc", 0.82, 0.88),
        (
            "Scores tell violations from others less well for nonbinary people than for men: "
            "right in 82% of pairs against 88% (AUC), 6 points fewer (3 to 9)."
        ),
    ),
    "calibration": (
        POSTS,
        row("calibration_slope", 0.9, 0.85, 0.95, reference=None, **limit(0.95, 1.05, OPEN)),
        [],
        (
            "Calibration slope for nonbinary people: 0.90 (0.85 to 0.95). 0.95 to 1.05 was "
            "agreed: the data cannot tell whether that is kept."
        ),
    ),
    "undefined": (
        POSTS,
        row(f"{T}_gap", None, undefined="no cases in the group"),
        [],
        (
            "True positive rate gap, nonbinary people against men, is undefined: no cases in "
            "the group."
        ),
    ),
    "hidden": (
        BARE,
        row(S, None, reference=None, undefined="fewer than 10 cases: hidden"),
        [],
        "Selection rate for group nonbinary is hidden: fewer than 10 cases.",
    ),
    "an unknown measure": (
        BARE,
        row("former_gap", 0.123, 0.1, 0.15),
        [],
        "Former gap, group nonbinary against men: 0.12 (0.10 to 0.15).",
    ),
    # --- texts
    "swap": (
        BIOS,
        row(
            "counterfactual_selection_rate_gap",
            0.032,
            0.02,
            0.044,
            lens="counterfactual",
            **{"class": "nurse"},
            **WOMEN,
        ),
        [],
        (
            "Changing nothing but the gendered words changes the answer: rewritten as women, "
            "biographies are given the occupation 'nurse' 3.2 points more often than rewritten "
            "as men (2.0 to 4.4)."
        ),
    ),
    "swap open": (
        BIOS,
        row(
            "counterfactual_true_positive_rate_gap",
            0.01,
            -0.02,
            0.04,
            lens="counterfactual",
            **{"class": "nurse"},
            **WOMEN,
        ),
        [],
        (
            "The data cannot tell whether the gendered words alone change the answer: anything "
            "from 2 points fewer to 4 points more fits when biographies whose occupation is "
            "'nurse' are rewritten as women instead of men."
        ),
    ),
    "flips": (
        BIOS,
        row(
            "flip_rate",
            0.032,
            0.028,
            0.038,
            lens="counterfactual",
            **{"class": None},
            **WOMEN,
            **limit(0, 0.02, OUT),
        ),
        [],
        (
            "Changing nothing but the gendered words changes the answer: 3.2% of biographies "
            "get another occupation (2.8 to 3.8); at most 2% was agreed."
        ),
    ),
    "swap over classes": (
        BIOS,
        row(
            "counterfactual_true_positive_rate_gap_rms_corrected",
            0.056,
            0.046,
            0.067,
            lens="counterfactual",
            **{"class": None},
            **WOMEN,
            **limit(0, 0.02, OUT),
        ),
        [row("flip_rate", 0.032, 0.028, 0.038, **{"class": None}, **WOMEN)],
        (
            "Changing nothing but the gendered words changes the answer: 3.2% of biographies "
            "get another occupation (2.8 to 3.8), and the typical gap over occupations that "
            "this alone makes is 5.6 points (4.6 to 6.7); at most 2 was agreed."
        ),
    ),
    "norm bias": (
        BIOS,
        row(
            "norm_bias",
            0.875,
            0.71,
            0.95,
            lens="norms",
            group="male",
            reference=None,
            norm="male",
            n=27,
            **{"class": None},
        ),
        [],
        (
            "The more men an occupation has, the higher the classifier scores men whose "
            "biographies read like a typical man's (rank correlation 0.88 over 27 occupations, "
            "0.71 to 0.95)."
        ),
    ),
    "norm bias open": (
        Words(),
        row(
            "norm_bias",
            0.2,
            -0.2,
            0.55,
            lens="norms",
            group="f",
            reference=None,
            norm="f",
            n=9,
            **{"class": None},
        ),
        [],
        (
            "The data cannot tell whether the more people of group f a class has, the higher "
            "the classifier scores people of group f whose texts read like group f's typically "
            "do: rank correlations from −0.20 to 0.55 over 9 classes fit."
        ),
    ),
    "norm bias by words that say nothing": (
        BIOS,
        row(
            "norm_bias_irrelevant",
            -0.5,
            -0.7,
            -0.2,
            lens="norms",
            group="female",
            reference=None,
            norm="female",
            n=27,
            **{"class": None},
        ),
        [],
        (
            "The more women an occupation has, the lower the classifier scores women whose "
            "biographies read like a typical woman's in words that say nothing of the "
            "occupation (rank correlation −0.50 over 27 occupations, −0.70 to −0.20)."
        ),
    ),
    "norm correlation": (
        BIOS,
        row(
            "norm_correlation",
            0.4,
            0.2,
            0.6,
            lens="norms",
            group="female",
            reference=None,
            norm="female",
            **{"class": "nurse"},
        ),
        [],
        (
            "Among women whose occupation is 'nurse', the more their biographies read like a "
            "typical woman's, the higher the score (rank correlation 0.40, 0.20 to 0.60)."
        ),
    ),
    "norm slope": (
        BIOS,
        row(
            "norm_slope",
            1.6,
            1.2,
            2.0,
            lens="norms",
            group="female",
            reference=None,
            norm="female",
            n=27,
            **{"class": None},
        ),
        [],
        (
            "From occupations without women to occupations of women alone, the link between "
            "score and norm score (how much a text reads like a typical member's) rises by 1.60 "
            "(1.20 to 2.00) over 27 occupations."
        ),
    ),
    "typical norm correlation": (
        BIOS,
        row(
            "norm_correlation_mean",
            0.12,
            0.1,
            0.14,
            lens="norms",
            group="female",
            reference=None,
            norm="female",
            n=27,
            **{"class": None},
        ),
        [],
        (
            "Scores of women follow how much their biographies read like a typical woman's: a "
            "typical rank correlation of 0.12 over 27 occupations, 0.10 to 0.14."
        ),
    ),
    # --- labelers and weights
    "bar": (
        POSTS,
        row("criterion_gap", -0.465, -0.566, -0.363, lens="labelers"),
        [],
        (
            "Labelers ask for less evidence about nonbinary people than about men: their bar "
            "(how much evidence labelers ask for) is 0.47 standard deviations lower (0.36 to "
            "0.57)."
        ),
    ),
    "bar open": (
        POSTS,
        row("criterion_gap", -0.05, -0.2, 0.1, lens="labelers", **limit(-0.1, 0.1, OPEN)),
        [],
        (
            "The data cannot tell whether labelers ask for less evidence about nonbinary people "
            "than about men: differences in the bar (how much evidence labelers ask for) from "
            "−0.20 to 0.10 standard deviations fit; at most 0.1 was agreed."
        ),
    ),
    "bar of the average labeler": (
        DEFENDANTS,
        row("criterion_gap_average", 0.3, 0.1, 0.5, lens="labelers", **RACE),
        [],
        (
            "The average labeler asks for more evidence about African-American defendants than "
            "about Caucasian defendants: their bar (how much evidence labelers ask for) is 0.30 "
            "standard deviations higher (0.10 to 0.50)."
        ),
    ),
    "skill": (
        POSTS,
        row("separation_gap", 0.3, 0.1, 0.5, lens="labelers"),
        [],
        (
            "Labelers tell violations from others better for nonbinary people than for men: "
            "their skill (how far apart true and other cases look to labelers) is 0.30 standard "
            "deviations higher (0.10 to 0.50)."
        ),
    ),
    "prevalence": (
        POSTS,
        row("prevalence_gap", 0.05, 0.02, 0.08, lens="labelers"),
        two("prevalence", 0.2, 0.15),
        (
            "Violations are more common among labels about nonbinary people than about men: 20% "
            "against 15%, 5 points more (2 to 8)."
        ),
    ),
    "weights by labelers": (
        DEFENDANTS,
        row("cost_ratio_ratio", 0.49, 0.35, 0.68, lens="labelers", **RACE),
        two("cost_ratio", 0.81, 1.66, **RACE),
        (
            "Labelers treat a missed reoffender as half as serious for African-American "
            "defendants as for Caucasian defendants: 0.8 against 1.7 wrongful predictions, 0.49 "
            "times as much (0.35 to 0.68)."
        ),
    ),
    "weights by labelers open": (
        POSTS,
        row("cost_ratio_ratio", 1.2, 0.8, 1.7, lens="labelers"),
        [],
        (
            "The data cannot tell whether labelers treat a missed violation more seriously for "
            "nonbinary people than for men: anything from 0.80 to 1.70 times as much fits."
        ),
    ),
    "weights by labelers alike": (
        POSTS,
        row("cost_ratio_ratio", 1.05, 0.9, 1.2, lens="labelers", **limit(0.8, 1.25, "within")),
        [],
        (
            "Labelers treat a missed violation about as seriously for nonbinary people as for "
            "men: 1.05 times as much (0.90 to 1.20); 0.8 to 1.25 was agreed, and that is kept."
        ),
    ),
    "bars alike": (
        POSTS,
        row("criterion_gap", 0.05, -0.04, 0.1, lens="labelers", **limit(-0.2, 0.2, "within")),
        [],
        (
            "Labelers ask for about as much evidence about nonbinary people as about men: their "
            "bar (how much evidence labelers ask for) is 0.05 standard deviations higher (−0.04 "
            "to 0.10); at most 0.2 was agreed, and that is kept."
        ),
    ),
    "skill alike": (
        POSTS,
        row("separation_gap", -0.05, -0.1, 0.04, lens="labelers", **limit(-0.2, 0.2, "within")),
        [],
        (
            "Labelers tell violations from others about as well for nonbinary people as for men: "
            "their skill (how far apart true and other cases look to labelers) is 0.05 standard "
            "deviations lower (−0.10 to 0.04); at most 0.2 was agreed, and that is kept."
        ),
    ),
    "weights by scores alike": (
        POSTS,
        row("cost_ratio_ratio", 1.05, 0.9, 1.2, lens="thresholds", **limit(0.8, 1.25, "within")),
        two("cost_ratio", 4.2, 4.0),
        (
            "Posts by nonbinary people are removed on about as much evidence as men's: from a 19% "
            "chance of a violation on against 20%. One missed violation weighs 1.05 times as "
            "much (0.90 to 1.20); 0.8 to 1.25 was agreed, and that is kept."
        ),
    ),
    "weights by few scores": (
        POSTS,
        row("cost_ratio_ratio", None, 1.6, 7.5, lens="thresholds", set_low=2.0, set_high=6.0)
        | {"undefined": None},
        [],
        (
            "Posts by nonbinary people are removed on weaker evidence than men's: one missed "
            "violation weighs anything from 2.00 to 6.00 times as much (1.60 to 7.50)."
        ),
    ),
    "weights by scores": (
        POSTS,
        row("cost_ratio_ratio", 3.8, 2.51, 5.76, lens="thresholds"),
        two("cost_ratio", 15.6, 4.09),
        (
            "Posts by nonbinary people are removed on weaker evidence than men's: from a 6.0% "
            "chance of a violation on against 20%. One missed violation weighs 3.80 times as "
            "much (2.51 to 5.76)."
        ),
    ),
    "thresholds apart": (
        POSTS,
        row("implied_threshold_gap", -0.14, -0.17, -0.11, lens="thresholds"),
        two("implied_threshold", 0.06, 0.2),
        (
            "Posts by nonbinary people are removed on weaker evidence than men's: from a 6.0% "
            "chance of a violation on against 20%. The implied threshold is 14 points lower (11 "
            "to 17)."
        ),
    ),
    "an implied threshold": (
        POSTS,
        row(
            "implied_threshold",
            0.06,
            0.041,
            0.088,
            lens="thresholds",
            reference=None,
            **limit(0.14, 0.27, OUT),
        ),
        [],
        "Posts by nonbinary people are removed on far weaker evidence than agreed: from a "
        "6.0% chance of a violation on (4.1% to 8.8%), where 14% to 27% was agreed. For "
        "nonbinary people one missed violation is treated as seriously as 16 wrongful "
        "removals (10 to 23). Agreed: 2.7 to 6.1.",
    ),
    "an implied threshold without an end": (
        POSTS,
        row("implied_threshold", 0.01, 0.0, 0.02, lens="thresholds", reference=None),
        [],
        "Implied threshold for nonbinary people: 1% (0% to 2%).",
    ),
    "an implied threshold of labelers": (
        POSTS,
        row("implied_threshold", 0.2, 0.1, 0.25, lens="labelers", reference=None),
        [],
        "Labelers treat one missed violation about nonbinary people as seriously as 4.0 "
        "wrongful removals (3.0 to 9.0).",
    ),
    "a weight in a stratum": (
        POSTS,
        row("cost_ratio", 4.0, 3.0, 5.0, lens="thresholds", reference=None, stratum="north"),
        [],
        "In stratum north, weight of a miss for nonbinary people: 4.00 (3.00 to 5.00).",
    ),
    "one labeler": (
        POSTS,
        row("criterion_gap", -0.2, -0.3, -0.1, lens="labelers", labeler="L7", reference="<rest>"),
        [],
        "Labeler L7 asks for less evidence about nonbinary people than other labelers do: "
        "their bar (how much evidence labelers ask for) is 0.20 standard deviations lower "
        "(0.10 to 0.30).",
    ),
}


def cost(group: str, value: float | None, *ends: float, **columns: Any) -> dict[str, Any]:
    return row(
        "cost_ratio", value, *ends, lens="thresholds", group=group, reference=None, **columns
    )


BAND = {"limit_low": 8 / 3, "limit_high": 6.0}
THREE = [
    cost("nonbinary", 16.7, 10.3, 23.5, verdict=OUT, **BAND),
    cost("female", 3.7, 3.17, 4.63, verdict=IN, **BAND),
    cost("male", 4.0, 3.4, 4.9, verdict=IN, **BAND),
]
COSTS: dict[str, tuple[Any, Words, list[dict[str, Any]], str]] = {
    "weaker evidence": (
        say_costs,
        POSTS,
        THREE,
        (
            "Posts by nonbinary people are removed on far weaker evidence than agreed: from a "
            "5.6% chance of a violation on (4.1% to 8.8%), where 14% to 27% was agreed. Women "
            "21%, men 20%. For nonbinary people one missed violation is treated as seriously as "
            "17 wrongful removals (10 to 24); for women 3.7, for men 4.0. Agreed: 2.7 to 6."
        ),
    ),
    "stronger evidence": (
        say_costs,
        POSTS,
        [cost("female", 1.2, 0.9, 1.6, verdict=OUT, **BAND)],
        (
            "Posts by women are removed only on far stronger evidence than agreed: from a 45% "
            "chance of a violation on (38% to 53%), where 14% to 27% was agreed. For women one "
            "missed violation is treated as seriously as 1.2 wrongful removals (0.9 to 1.6). "
            "Agreed: 2.7 to 6."
        ),
    ),
    "a little weaker": (
        say_costs,
        BARE,
        [cost("female", 7.0, 6.2, 8.1, verdict=OUT, **BAND)],
        (
            "Women get decision '1' on weaker evidence than agreed: from a 12% chance of '1' on "
            "(11% to 14%), where 14% to 27% was agreed. For women one missed '1' is treated as "
            "seriously as 7.0 wrong ones (6.2 to 8.1). Agreed: 2.7 to 6."
        ),
    ),
    "evidence alike": (
        say_costs,
        POSTS,
        [cost("female", 4.0, 3.0, 5.2), cost("male", 4.5, 3.3, 6.1)],
        (
            "Posts by women are removed from a 20% chance of a violation on (16% to 25%); men 18%; "
            "no difference between them is shown. For women one missed violation is treated as "
            "seriously as 4.0 wrongful removals (3.0 to 5.2); for men 4.5."
        ),
    ),
    "evidence open": (
        say_costs,
        POSTS,
        [cost("male", 4.5, 3.3, 6.1, verdict=OPEN, **BAND)],
        (
            "The data cannot tell whether posts by men are removed on the evidence agreed: "
            "anything from a 14.1% to a 23.3% chance of a violation fits; 14.3% to 27.3% was "
            "agreed. For men one missed violation is treated as seriously as 4.5 wrongful "
            "removals (3.3 to 6.1). Agreed: 2.7 to 6."
        ),
    ),
    "evidence as agreed": (
        say_costs,
        POSTS,
        [cost("male", 4.0, 3.3, 5.1, verdict=IN, **BAND)],
        (
            "Posts by men are removed on the evidence agreed: from a 20% chance of a violation "
            "on (16% to 23%), where 14% to 27% was agreed. For men one missed violation is "
            "treated as seriously as 4.0 wrongful removals (3.3 to 5.1). Agreed: 2.7 to 6."
        ),
    ),
    "no limit on evidence": (
        say_costs,
        POSTS,
        [cost("female", 4.0, 3.0, 5.0), cost("male", 1.0, 0.9, 1.3)],
        (
            "Posts by women are removed from a 20% chance of a violation on (17% to 25%); men "
            "50%. For women one missed violation is treated as seriously as 4.0 wrongful "
            "removals (3.0 to 5.0); for men 1.0."
        ),
    ),
    "a set of thresholds": (
        say_costs,
        POSTS,
        [cost("female", None, set_low=2.0, set_high=4.0)],
        (
            "Posts by women are removed from a 20% to 33% chance of a violation on. For women "
            "one missed violation is treated as seriously as anything from 2.0 to 4.0 wrongful "
            "removals."
        ),
    ),
    "a set without an end": (
        say_costs,
        POSTS,
        [cost("female", None, set_low=4.0)],
        (
            "Posts by women are removed from a 0% to 20% chance of a violation on. For women "
            "one missed violation is treated as seriously as 4.0 or more wrongful removals."
        ),
    ),
    "many groups": (
        say_costs,
        BARE,
        [
            cost("x", 30.0, 20, 40, verdict=OUT, **BAND),
            cost("y", 20.0, 12, 28, verdict=OUT, **BAND),
            *(cost(name, 4.0, 3, 5, verdict=IN, **BAND) for name in "abc"),
            cost("d", 3.0, 2.8, 5, verdict=IN, **BAND),
        ],
        (
            "Group x gets decision '1' on far weaker evidence than agreed: from a 3.2% chance "
            "of '1' on (2.4% to 4.8%), where 14% to 27% was agreed. Group y 4.8%, group a 20%, "
            "group b 20%, 2 more groups between 20% and 25%. Outside as well: group y. For "
            "group x one missed '1' is treated as seriously as 30 wrong ones (20 to 40); for "
            "group y 20, for group a 4.0, for group b 4.0, 2 more groups between 3.0 and 4.0. "
            "Agreed: 2.7 to 6."
        ),
    ),
    "labelers outside": (
        say_labeler_costs,
        POSTS,
        THREE,
        (
            "Labelers treat a missed violation far more seriously for nonbinary people than "
            "agreed: as seriously as 17 wrongful removals (10 to 24), where 2.7 to 6 was "
            "agreed. Women 3.7, men 4.0."
        ),
    ),
    "labelers less": (
        say_labeler_costs,
        BARE,
        [cost("female", 2.0, 1.6, 2.4, verdict=OUT, **BAND)],
        (
            "Labelers treat a missed '1' less seriously for women than agreed: as seriously as "
            "2.0 wrong ones (1.6 to 2.4), where 2.7 to 6 was agreed."
        ),
    ),
    "labelers open": (
        say_labeler_costs,
        POSTS,
        [cost("male", 4.5, 3.3, 6.1, verdict=OPEN, **BAND)],
        (
            "The data cannot tell whether labelers weigh mistakes about men as agreed: anything "
            "from 3.3 to 6.1 wrongful removals for one missed violation fits; 2.7 to 6 was "
            "agreed."
        ),
    ),
    "labelers as agreed": (
        say_labeler_costs,
        POSTS,
        [cost("male", 4.0, 3.3, 5.1, verdict=IN, **BAND)],
        (
            "Labelers weigh mistakes about men as agreed: one missed violation as seriously as "
            "4.0 wrongful removals (3.3 to 5.1), where 2.7 to 6 was agreed."
        ),
    ),
    "labelers without a limit": (
        say_labeler_costs,
        POSTS,
        [cost("male", 4.0, 3.3, 5.1)],
        (
            "Labelers treat one missed violation about men as seriously as 4.0 wrongful "
            "removals (3.3 to 5.1)."
        ),
    ),
    "two reasons for no number": (
        say_undefined,
        BARE,
        [
            cost("f", None, undefined="no score"),
            cost("female", None, undefined="fewer than 10 cases: hidden"),
        ],
        (
            "The weight of a miss for group f is undefined: no score; that for women is hidden: "
            "fewer than 10 cases."
        ),
    ),
}


def explained(
    ratio: tuple[float, float, float], bar: tuple[float, float, float],
    skill: tuple[float, float, float], parts: tuple[float, float, float],
    unjudged: str | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """The rows that say why weights differ: value and interval of each, parts as logarithms."""
    named = {"cost_ratio_ratio": ratio, "criterion_gap": bar, "separation_gap": skill}
    names = ("cost_ratio_prevalence_part", "cost_ratio_bar_part", "cost_ratio_skill_part")
    named |= {name: (part, part - 0.1, part + 0.1) for name, part in zip(names, parts)}
    return [row(name, *number, unjudged=unjudged, **RACE) for name, number in named.items()]


NO_SKILL = (0.05, -0.1, 0.2)
STANDARDS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "neither differs": (
        explained((1.1, 0.8, 1.4), (0.1, -0.1, 0.3), NO_SKILL, (0.1, -0.1, 0.0)),
        (
            "The data show no difference between African-American defendants and Caucasian "
            "defendants in how the two mistakes are weighed, nor in the bar (how much evidence "
            "labelers ask for). The data show no difference in skill. For African-American "
            "defendants a miss weighs 1.1 times as much as for Caucasian defendants (0.8 to "
            "1.4): 1.1 times (1.0 to 1.2) by how common reoffenders are, 0.90 times (0.82 to "
            "1.0) by the bar and 1.0 times (0.90 to 1.1) by skill."
        ),
    ),
    "the bar alone": (
        explained((1.0, 0.8, 1.3), (0.6, 0.4, 0.8), NO_SKILL, (1.1, -1.1, 0.0)),
        (
            "The data show no difference between African-American defendants and Caucasian "
            "defendants in how the two mistakes are weighed: labelers do ask for more evidence "
            "about African-American defendants (their bar, how much evidence labelers ask for, "
            "is higher), as one standard asks for where reoffenders are less common. The data "
            "show no difference in skill. For African-American defendants a miss weighs 1.0 "
            "times as much as for Caucasian defendants (0.8 to 1.3): 3.0 times (2.7 to 3.3) by "
            "how common reoffenders are, 0.33 times (0.30 to 0.37) by the bar and 1.0 times "
            "(0.90 to 1.1) by skill."
        ),
    ),
    "the weight alone": (
        explained((0.5, 0.4, 0.7), (0.0, -0.1, 0.1), NO_SKILL, (-0.7, 0.0, 0.0)),
        (
            "Labelers weigh the two mistakes differently for African-American defendants and "
            "Caucasian defendants, though the data show no difference in the bar (how much "
            "evidence labelers ask for): reoffenders are more common among African-American "
            "defendants, and one bar then weighs them differently. The data show no difference "
            "in skill. For African-American defendants a miss weighs 0.5 times as much as for "
            "Caucasian defendants (0.4 to 0.7): 0.50 times (0.45 to 0.55) by how common "
            "reoffenders are, 1.0 times (0.90 to 1.1) by the bar and 1.0 times (0.90 to 1.1) by "
            "skill."
        ),
    ),
    "both, one way": (
        explained((3.0, 2.0, 4.7), (-0.5, -0.6, -0.4), NO_SKILL, (0.1, 0.9, 0.1)),
        (
            "Labelers ask for less evidence about African-American defendants (their bar, how "
            "much evidence labelers ask for, is lower). The data show no difference in skill. "
            "For African-American defendants a miss weighs 3.0 times as much as for Caucasian "
            "defendants (2.0 to 4.7): 1.1 times (1.0 to 1.2) by how common reoffenders are, 2.5 "
            "times (2.2 to 2.7) by the bar and 1.1 times (1.0 to 1.2) by skill."
        ),
    ),
    "both, against each other": (
        explained((0.49, 0.35, 0.68), (-0.3, -0.4, -0.2), NO_SKILL, (-1.2, 0.5, 0.0)),
        (
            "Labelers do ask for less evidence about African-American defendants (their bar, "
            "how much evidence labelers ask for, is lower), but reoffenders are so much more "
            "common among them in this data that the bar would have to fall further for both "
            "mistakes to weigh the same. The data show no difference in skill. For "
            "African-American defendants a miss weighs 0.5 times as much as for Caucasian "
            "defendants (0.3 to 0.7): 0.30 times (0.27 to 0.33) by how common reoffenders are, "
            "1.6 times (1.5 to 1.8) by the bar and 1.0 times (0.90 to 1.1) by skill."
        ),
    ),
    "skill differs": (
        explained((3.0, 2.0, 4.7), (-0.5, -0.6, -0.4), (0.4, 0.2, 0.6), (0.1, 0.9, 0.1)),
        (
            "Labelers ask for less evidence about African-American defendants (their bar, how "
            "much evidence labelers ask for, is lower). Labelers tell reoffenders from others "
            "better for African-American defendants. For African-American defendants a miss "
            "weighs 3.0 times as much as for Caucasian defendants (2.0 to 4.7): 1.1 times (1.0 "
            "to 1.2) by how common reoffenders are, 2.5 times (2.2 to 2.7) by the bar and 1.1 "
            "times (1.0 to 1.2) by skill."
        ),
    ),
    "skill explains it": (
        explained((1.0, 0.8, 1.3), (0.6, 0.4, 0.8), (0.4, 0.2, 0.6), (0.1, -0.8, 0.7)),
        (
            "The data show no difference between African-American defendants and Caucasian "
            "defendants in how the two mistakes are weighed: labelers do ask for more evidence "
            "about African-American defendants (their bar, how much evidence labelers ask for, "
            "is higher), as one standard asks for where labelers tell reoffenders from others "
            "better for African-American defendants. For African-American defendants a miss "
            "weighs 1.0 times as much as for Caucasian defendants (0.8 to 1.3): 1.1 times (1.0 "
            "to 1.2) by how common reoffenders are, 0.45 times (0.41 to 0.50) by the bar and "
            "2.0 times (1.8 to 2.2) by skill."
        ),
    ),
    "nothing can be judged": (
        explained(
            (3.0, 2.0, 4.7),
            (-0.5, -0.6, -0.4),
            NO_SKILL,
            (0.1, 0.9, 0.1),
            "fewer than 5 errors of a kind",
        ),
        (
            "The data cannot tell whether African-American defendants and Caucasian defendants "
            "are held to one standard: fewer than 5 errors of a kind."
        ),
    ),
}


CURVE = {
    "attribute": "gender", "group": "nonbinary", "cheapest": {"threshold": 0.58},
    "threshold_low": 0.55, "threshold_high": 0.61, "present": {"threshold": 0.35},
}  # fmt: skip
NAMES_AND_CUTS = (("nonbinary", 0.35), ("male", 0.6), ("female", 0.6))
TODAY = [{"group": name, "threshold": cut} for name, cut in NAMES_AND_CUTS]
AUDITED = [
    {"attribute": "gender", "group": "nonbinary", "threshold": cut, "verdict": verdict}
    for cut, verdict in ((0.58, OPEN), (0.59, IN))
]
DETAILS = {
    "thresholds": {
        "attributes": [{"attribute": "gender", "groups": TODAY}],
        "cost_curves": {"groups": [CURVE]},
        "audited_cuts": AUDITED,
    }
}
LAW = "Whether groups may have cuts of their own is a question of law."
COMPARE = "compare remedies side by side, with what each costs (evenhand compare)."
# 16.7 − 6 = 10.7, up to 23.5 − 6 = 17.5; the nearer end allows for its being told only outside.
LESS = "To keep what was agreed, the weight of a miss would have to fall by 11 (1.0 to 18)."
STEPS = {
    "thresholds": "A cut of 0.59 for nonbinary people would be within what was agreed (audited "
    f"again with it); today theirs is 0.35, everybody else's 0.60. {LAW}",
    "labelers": f"{LESS} Go through labels on posts by nonbinary people with the labelers, and say "
    "in the guideline and in training how much evidence is enough.",
    "counterfactual": f"{LESS} Train on texts with the words exchanged, or mask them, and "
    f"{COMPARE}",
    "norms": f"{LESS} Look at the words that carry it, and {COMPARE}",
    "statistical": f"{LESS} Look first where it comes from: how common and how well told apart "
    f"true cases are in each group, and how good their labels are. Then {COMPARE}",
    "another": f"{LESS} Find out where it comes from, and {COMPARE}",
}


@pytest.mark.parametrize("lens", STEPS)
def test_what_to_do_next(lens: str) -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": lens}
    assert next_step(finding, THREE[0], POSTS, DETAILS) == STEPS[lens]
    for verdict in (IN, OPEN, "not assessed"):
        assert next_step(finding | {"verdict": verdict}, THREE[0], POSTS, DETAILS) == ""


def with_cuts(cuts: dict[str, float | None], *tried: tuple[float, str]) -> Any:
    """Details of an audit in which groups have these cuts, and these were audited."""
    today = [{"group": name, "threshold": cut} for name, cut in cuts.items()]
    shown: dict[str, Any] = {
        "attributes": [{"attribute": "gender", "groups": today}],
        "cost_curves": {"groups": [CURVE]},
    }
    if tried:
        shown["audited_cuts"] = [
            {"attribute": "gender", "group": "nonbinary", "threshold": cut, "verdict": verdict}
            for cut, verdict in tried
        ]
    return {"thresholds": shown}


THEIRS_ALONE = {"nonbinary": 0.35, "male": 0.6, "female": 0.6}
ONE_FOR_ALL = dict.fromkeys(THEIRS_ALONE, 0.6)
# What is said of cuts: today's, and one only where an audit with it says within.
CUTS = {
    "not tried, as in a record of before": (
        with_cuts(THEIRS_ALONE),
        "Nonbinary people's cut is 0.35 today, everybody else's 0.60.",
    ),
    "none within": (
        with_cuts(THEIRS_ALONE, (0.58, OPEN), (0.59, OUT)),
        "Nonbinary people's cut is 0.35 today, everybody else's 0.60; of the cuts tried none is "
        "shown to be within what was agreed.",
    ),
    "one cut for all, and one within": (
        with_cuts(ONE_FOR_ALL, (0.655, IN)),
        "A cut of 0.655 for nonbinary people would be within what was agreed (audited again with "
        "it); today one cut of 0.600 holds for all.",
    ),
    "one cut for all, none within": (
        with_cuts(ONE_FOR_ALL, (0.66, OPEN)),
        "Today one cut of 0.60 holds for all; of the cuts tried for nonbinary people none is "
        "shown to be within what was agreed.",
    ),
    "one cut for all, not tried": (
        with_cuts(ONE_FOR_ALL),
        "Today one cut of 0.60 holds for all.",
    ),
    "three cuts": (
        with_cuts({"nonbinary": 35.0, "male": 60.0, "female": 55.0}, (62.0, IN)),
        "A cut of 62 for nonbinary people would be within what was agreed (audited again with "
        "it); today theirs is 35, men's 60 and women's 55.",
    ),
    "many cuts": (
        with_cuts({"nonbinary": -0.5, "a": -0.25, "b": 0.5, "c": 1.0, "d": 1.5}),
        "Nonbinary people's cut is −0.50 today, everybody else's between −0.25 and 1.50.",
    ),
    "a group with several": (
        with_cuts({"nonbinary": 0.35, "male": 0.6, "female": None}),
        "Nonbinary people's cut is 0.35 today.",
    ),
    "they have several": (
        with_cuts({"nonbinary": None, "male": 0.6}),
        "Move the cut for posts by nonbinary people to where the chance of a violation is 14%; "
        "today it is 5.6% (4.1% to 8.8%).",
    ),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_is_named_only_where_an_audit_says_within(name: str) -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": "thresholds"}
    details, expected = CUTS[name]
    assert next_step(finding, THREE[0], POSTS, details) == f"{expected} {LAW}"


def test_what_to_do_counts_the_wrong_decisions_between_a_gap_and_its_limit() -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": "statistical"}
    # 10 points of 400 decisions over a limit of 5: (0.10 − 0.05) × 400 = 20, up to 0.09 × 400 = 36.
    # Told only where it is shown to lie beyond, it may be none: 0.05 is 2.4 standard errors.
    gap = {
        "measure": "false_positive_rate_gap",
        "attribute": "gender",
        "group": "female",
        "reference": "male",
        "class": "1",
        "stratum": None,
        "value": 0.10,
        "n": 400,
        "n_reference": 800,
        "family_low": 0.06,
        "family_high": 0.14,
        "limit_low": -0.05,
        "limit_high": 0.05,
    }
    rate = {"measure": "false_positive_rate", "stratum": None}
    rates = [rate | {"group": "female", "value": 0.40}, rate | {"group": "male", "value": 0.30}]
    said = next_step(finding, gap, POSTS, {}, rates)
    assert said.startswith(
        "To keep what was agreed, about 20 (up to 36) of the 160 wrong decisions on posts by women "
        "that do not break the rules would have to be decided differently. Look first where it "
        "comes from: "
    )
    # 25 points, 20 beyond: 80 from 64 to 96, for 10 standard errors leave nothing to allow for.
    far = gap | {"value": 0.25, "family_low": 0.21, "family_high": 0.29}
    assert "about 80 (64 to 96) of the 160" in next_step(finding, far, POSTS, {}, rates)
    # Of the reference, which is worse off below: 0.05 × 800, and 0.30 × 800 are wrong.
    down = gap | {"value": -0.10, "family_low": -0.14, "family_high": -0.06}
    turned = [rates[0] | {"value": 0.20}, rates[1]]
    assert next_step(finding, down, POSTS, {}, turned).startswith(
        "To keep what was agreed, about 40 (up to 72) of the 240 wrong decisions on posts by men "
    )
    heard = replace(POSTS, heard=frozenset({source_of(gap)}))
    assert next_step(finding, gap, heard, {}, rates).endswith("have to be decided differently.")
    # Which selections are right nobody knows.
    chosen = gap | {"measure": "selection_rate_gap"}
    source = (
        "Look first whether the groups differ in what decisions should depend on, and compare "
        f"within it (--stratum). Then {COMPARE}"
    )
    assert next_step(finding, chosen, POSTS) == source
    heard = replace(POSTS, heard=frozenset({source_of(chosen)}))
    assert next_step(finding, chosen, heard) == source


def test_what_to_do_names_the_class_and_the_texts_to_start_with() -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": "statistical"}
    size = row(f"{T}_gap_rms_corrected", 0.19, 0.14, 0.25, group="female", **{"class": None})
    largest = row(f"{T}_gap", -0.3, -0.4, -0.2, group="female", **{"class": "composer"})
    assert next_step(finding, size, BIOS, {}, [largest]).startswith(
        "Start with the occupation 'composer': 30 points fewer (20 to 40) for biographies of "
        "women. Look first where it comes from"
    )
    doubtful = row(f"{T}_gap", -0.3, -0.7, 0.1, group="female", **{"class": "composer"})
    assert next_step(finding, size, BIOS, {}, [doubtful]).startswith(
        "No occupation is beyond doubt alone; the largest seen is 'composer', "
    )
    finding["lens"] = "counterfactual"
    flips = row("flip_rate", 0.032, 0.028, 0.038, lens="counterfactual", n=4500)
    for lead, given in ((flips, []), (size, [flips])):
        assert next_step(finding, lead, BIOS, {}, given) == (
            "Read some of the 144 biographies of 4,500 that get another occupation (126 to 171 in "
            "tables like this), train on texts with the words exchanged, or mask them, and "
            f"{COMPARE}"
        )


LABELLED = {
    "group": "nonbinary", "hits": 270.0, "misses": 30.0, "false_alarms": 230.0,
    "correct_rejections": 470.0, "z_hit": 1.2816, "z_false_alarm": -0.4439,
    "variance_hit": 0.0098, "variance_false_alarm": 0.0024, "covariance": 0.0,
}  # fmt: skip
LABELS = {"labelers": {"attributes": [{"attribute": "gender", "counts": [LABELLED]}]}}
GUIDE = "Then say in the guideline and in training how much evidence is enough."
TRAIN = "Then give labelers more to go by, or train them on such cases."


def beyond(measure: str, value: float, low: float, high: float, *edges: float) -> dict[str, Any]:
    ends = {"low": low, "high": high, "limit_low": edges[0], "limit_high": edges[1]}
    return row(measure, value, low, high, lens="labelers", **ends)


# A bar that moves by s turns n·(Φ(z) − Φ(z − s)) of either truth. A weight of 12 where 6 was
# agreed asks for s = log(2)/1.7255 = 0.402: 300·(.9 − .8106) + 700·(.3286 − .1989) = 118. A bar
# 0.5 lower that may be 0.2 lower has to rise by 0.3: 300·(.9 − .8369) + 700·(.3286 − .2285) = 89.
# Skill that lacks 0.3 misses 300·(.9431 − .9) = 13. The nearer ends allow for the number being told
# only where it is shown to lie beyond.
TURNED = {
    "weight": (
        beyond("cost_ratio", 12.0, 8.0, 18.0, 2.0, 6.0),
        "Go through the most doubtful of the 500 labels 'removed' on posts by nonbinary people "
        "with the labelers: about 118 (36 to 176) would come out otherwise if the two mistakes "
        f"were weighed as agreed. {GUIDE}",
    ),
    "weight, too small": (
        beyond("cost_ratio", 1.0, 0.7, 1.43, 2.0, 6.0),
        "Go through the most doubtful of the 500 labels 'not removed' on posts by nonbinary people "
        "with the labelers: about 124 (18 to 202) would come out otherwise if the two mistakes "
        f"were weighed as agreed. {GUIDE}",
    ),
    "compared weight": (
        beyond("cost_ratio_ratio", 2.5, 1.6, 3.9, 0.8, 1.25),
        "Go through the most doubtful of the 500 labels 'removed' on posts by nonbinary people "
        "with the labelers: about 118 (11 to 183) would come out otherwise if the two mistakes "
        f"were weighed as agreed. {GUIDE}",
    ),
    "implied threshold": (
        beyond("implied_threshold", 1 / 13, 1 / 19, 1 / 9, 1 / 7, 1 / 3),
        "Go through the most doubtful of the 500 labels 'removed' on posts by nonbinary people "
        "with the labelers: about 118 (36 to 176) would come out otherwise if the two mistakes "
        f"were weighed as agreed. {GUIDE}",
    ),
    "bar": (
        beyond("criterion_gap", -0.5, -0.65, -0.35, -0.2, 0.2),
        "Go through the most doubtful of the 500 labels 'removed' on posts by nonbinary people "
        "with the labelers: about 89 (32 to 135) would come out otherwise if as much evidence were "
        f"asked for as was agreed. {GUIDE}",
    ),
    "skill": (
        beyond("separation_gap", -0.5, -0.7, -0.3, -0.2, 0.2),
        "Go through the most doubtful of the 30 labels 'not removed' on posts by nonbinary people "
        "that break the rules with the labelers: about 13 (up to 24) would come out otherwise if "
        f"true cases were told from others as well as agreed. {TRAIN}",
    ),
}


@pytest.mark.parametrize("name", TURNED)
def test_what_to_do_counts_the_labels_at_stake(name: str) -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": "labelers"}
    lead, said = TURNED[name]
    assert next_step(finding, lead, POSTS, LABELS) == said


@pytest.mark.parametrize(
    ("name", "meaning", "counted"),
    [
        ("weight", "burden", True),
        ("weight", "benefit", False),
        ("weight, too small", "burden", False),
        ("weight, too small", "benefit", True),
        ("skill", "burden", False),
    ],
)
def test_no_number_of_labels_to_turn_against_people(name: str, meaning: str, counted: bool) -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": "labelers"}
    lead, said = TURNED[name]
    step = next_step(finding, lead, replace(POSTS, meaning={"1": meaning}), LABELS)
    if counted:
        assert step == said
        return
    then = "give labelers more to go by, or train them on such cases."
    if name != "skill":
        then = "say in the guideline and in training how much evidence is enough."
    assert step.endswith(
        f"Go through labels on posts by nonbinary people with the labelers, and {then}"
    )
    assert "otherwise" not in step


def test_few_labels_of_a_truth_are_not_counted_on() -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": "labelers"}
    lead, few = TURNED["weight"][0], {**LABELLED, "hits": 30.0, "misses": 10.0}
    # 12 − 6, and 18 − 6 at most.
    plain = (
        "To keep what was agreed, the weight of a miss would have to fall by 6.0 (up to 12). Go "
        "through labels on posts by nonbinary people with the labelers, and say in the"
    )
    for counts in (few, {**LABELLED, "z_hit": None}, {**LABELLED, "group": "male"}):
        held = {"labelers": {"attributes": [{"attribute": "gender", "counts": [counts]}]}}
        assert next_step(finding, lead, POSTS, held).startswith(plain)


def test_what_to_do_without_a_number_or_a_group() -> None:
    finding = {"verdict": OUT, "layer": "implementation", "lens": "thresholds"}
    # 1 ÷ (1 + 6), and 1 ÷ 17.7 from 1 ÷ 24.5 to 1 ÷ 11.3.
    moved = (
        "Move the cut for posts by nonbinary people to where the chance of a violation is 14%; "
        f"today it is 5.6% (4.1% to 8.8%). {LAW}"
    )
    assert next_step(finding, THREE[0], POSTS) == moved
    nobody = {
        "thresholds": {"cost_curves": {"groups": [CURVE | {"cheapest": {"threshold": None}}]}}
    }
    assert next_step(finding, THREE[0], POSTS, nobody) == moved
    assert single_labelers_step(1) == (
        "Go through disputed labels with the labeler who lies outside, before anything is held "
        "against that person."
    )
    assert next_step(finding | {"layer": "policy"}, THREE[0], POSTS) == (
        "Decide which of the two gives way: the limit, which is broken by 11 (1.0 to 18), or the "
        "weight of the two mistakes."
    )


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str) -> None:
    words, one, given, expected = LINES[name]
    assert say_row(one, words, given).line == expected


@pytest.mark.parametrize("name", COSTS)
def test_costs(name: str) -> None:
    say, words, rows, expected = COSTS[name]
    assert say(rows, words).line == expected


@pytest.mark.parametrize("name", STANDARDS)
def test_standards(name: str) -> None:
    rows, expected = STANDARDS[name]
    said = standard_in_words(rows, DEFENDANTS), parts_in_words(rows, DEFENDANTS)
    assert " ".join(filter(None, said)) == expected
