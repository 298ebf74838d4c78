"""The counterfactual lens against hand values, toy data, simulations and every engine."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.pairs import pair_counts
from evenhand.errors import DataError, UsageError
from evenhand.findings.run import audit
from evenhand.lenses.counterfactual import lens as counterfactual
from evenhand.lenses.counterfactual.lens import statistical_gaps
from evenhand.lenses.counterfactual.pairs import PairFamily, pair_table
from evenhand.lenses.counterfactual.rows import gap_rows, rate_gaps
from evenhand.lenses.rows import LensResult, Options
from evenhand.lenses.scope import Scope
from evenhand.lenses.statistical import lens as statistical
from evenhand.report.render import render
from evenhand.simulate.counterfactual import paired_decisions

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
NUMBERS = ("value", "low", "high", "family_low", "family_high", "n", "p", "p_adjusted")
RATES = {"PPR": "selection_rate", "TPR": "true_positive_rate", "FPR": "false_positive_rate"}


def look(table, *, settings=None, level=0.95, **roles) -> LensResult:
    decisions = Decisions(table, **roles)
    return counterfactual.measure(decisions, Options(level=level, settings=settings or {}))


def one(result, measure, **where):
    rows = [
        row
        for row in result.rows.where(measure=measure, **{"stratum": None, **where})
        if "class_" in where or len(result.rows.where(measure=measure, stratum=None)) == 1
    ]
    assert len(rows) == 1, (measure, where, rows)
    return rows[0]


def gap(result, rate, **where):
    return one(result, f"counterfactual_{rate}_gap", **where)


def toy():
    rows = ORACLES["2.1_SG_CG_toy"]["rows_y_g_fact_cf"]
    return {
        "truth": [y for y, *_ in rows],
        "gender": [g for _, g, *_ in rows],
        "decision": [fact for *_, fact, _ in rows],
        "decision@F": [fact if g == "F" else other for _, g, fact, other in rows],
        "decision@M": [fact if g == "M" else other for _, g, fact, other in rows],
    }


def discordant(gained, lost, n):
    """A table of n rows: `gained` are 1 under f alone, `lost` under m alone, the rest 0."""
    f = [1] * gained + [0] * (n - gained)
    m = [0] * gained + [1] * lost + [0] * (n - gained - lost)
    return {"decision@f": f, "decision@m": m}


def biographies(*, n, causal_path, spurious_path, seed):
    """METHODS 12.2: gender words move the score by γ, words that go with gender by δ."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 3, n)
    female = random.random(n) < np.array([0.2, 0.5, 0.8])[truth]
    # The neutral words follow gender in the training texts; rewriting does not touch them.
    neutral = np.where(random.random(n) < 0.9, female, ~female)
    scores = 1.5 * np.eye(3)[truth] + random.normal(size=(n, 3))
    lean = np.array([-1.0, 0.0, 1.0])
    spurious = spurious_path * lean * np.where(neutral, 1, -1)[:, None]

    def decide(written_female):
        sign = np.where(written_female, 1, -1)[:, None]
        return (scores + spurious + causal_path * lean * sign).argmax(axis=1)

    names = np.array(["surgeon", "teacher", "nurse"])
    return {
        "title": names[truth].tolist(),
        "gender": np.where(female, "female", "male").tolist(),
        "decision": names[decide(female)].tolist(),
        "decision@female": names[decide(np.ones(n, bool))].tolist(),
        "decision@male": names[decide(np.zeros(n, bool))].tolist(),
    }


# ---- values -------------------------------------------------------------------------------


def test_toy_of_the_paper_in_full():
    oracle = ORACLES["2.1_SG_CG_toy"]
    decisions = Decisions(toy(), truth="truth", group="gender", positive="a", reference="M")
    result = counterfactual.measure(decisions, Options())
    tally = pair_counts(decisions, decisions.roles.attributes[0])
    table = pair_table(tally, decisions.roles, ["M", "F"])
    beside = statistical_gaps(
        tally, table, decisions.roles.attributes[0], decisions.roles, Options()
    )
    for short, rate in RATES.items():
        for name in "ab":
            found = gap(result, rate, class_=name)
            assert found["value"] == pytest.approx(oracle[f"CG_{short}_{name}"], abs=1e-9)
            assert (found["group"], found["reference"]) == ("F", "M")
            (other,) = beside.where(measure=f"{rate}_gap", class_=name).plain("value")
            assert other == pytest.approx(oracle[f"SG_{short}_{name}"], abs=1e-9)
    # Equation 2, not the accuracy difference of the public notebook.
    notebook = oracle["causal_FPR_in_public_notebook"]["a"]
    assert gap(result, "false_positive_rate", class_="a")["value"] == -notebook


def test_agresti_min_and_mcnemar_as_in_the_oracle():
    oracle = ORACLES["2.12_mcnemar"]
    table = discordant(oracle["b"], oracle["c"], oracle["n"])
    found = gap(
        look(table, settings={"counterfactual_reference": "m"}), "selection_rate", class_="1"
    )
    assert found["value"] == pytest.approx(oracle["CG"])
    assert [found["low"], found["high"]] == pytest.approx(oracle["agresti_min_ci"], abs=1e-9)
    assert found["p"] == pytest.approx(oracle["p_mid"], abs=1e-9)
    assert (found["n"], found["n_reference"], found["method"]) == (200, None, "agresti-min")


def test_flip_rates_by_hand():
    # 14 + 5 of 200 pairs differ; of two classes each flip is one for either class.
    result = look(discordant(14, 5, 200))
    flips = result.rows.where(measure="flip_rate")
    assert flips.plain("value") == pytest.approx([19 / 200] * 3)
    assert flips.plain("class") == [None, "0", "1"]
    # Wilson at 19 of 200.
    assert flips.plain("low") == pytest.approx([0.06169] * 3, abs=1e-4)
    assert flips.plain("high") == pytest.approx([0.14370] * 3, abs=1e-4)


def test_flip_rate_of_a_class_counts_only_what_enters_or_leaves_it():
    # a→b, b→c and c→c: class a is left once, b is entered once and left once, c entered once.
    table = {"decision@f": ["b", "c", "c"], "decision@m": ["a", "b", "c"]}
    flips = look(table).rows.where(measure="flip_rate")
    found = dict(zip(flips.plain("class"), flips.plain("value")))
    assert found == pytest.approx({None: 2 / 3, "a": 1 / 3, "b": 2 / 3, "c": 1 / 3})


def test_root_mean_square_by_hand():
    # 40 pairs of truth a, b, c each; hits gained and lost under f: a 6−2, b 3−5, c 0−0.
    def side(name, gained, lost):
        wrong = "a" if name == "c" else "c"
        f = [name] * gained + [wrong] * lost + [name] * (40 - gained - lost)
        m = [wrong] * gained + [name] * lost + [name] * (40 - gained - lost)
        return [name] * 40, f, m

    parts = [side("a", 6, 2), side("b", 3, 5), side("c", 0, 0)]
    truth, f, m = ([name for part in parts for name in part[i]] for i in range(3))
    result = look(
        {"truth": truth, "decision@f": f, "decision@m": m},
        truth="truth",
        settings={"counterfactual_reference": "m"},
    )
    # Gaps 0.1, −0.05, 0: √((0.01 + 0.0025) ÷ 3) = 0.06455.
    # v = ((b + c)/n − gap²)/(n − 1) + 1/42²: (0.2 − 0.01)/39, (0.2 − 0.0025)/39, 0, and
    # 0.00056689 each; mean 0.0038789.
    name = "counterfactual_true_positive_rate_gap_rms"
    assert one(result, name)["value"] == pytest.approx(0.0645497, abs=1e-7)
    assert one(result, f"{name}_null_level")["value"] == pytest.approx(0.0622805, abs=1e-6)
    # √(0.0041667 − 0.0038789)
    assert one(result, f"{name}_corrected")["value"] == pytest.approx(0.0169649, abs=1e-6)
    assert one(result, name)["low"] == 0 < one(result, name)["high"]


def test_score_gap_is_the_paired_t():
    from scipy.stats import ttest_rel

    random = np.random.default_rng(4)
    f, m = random.random(50), random.random(50)
    table = discordant(3, 2, 50) | {"score@f": f, "score@m": m}
    found = one(look(table, settings={"counterfactual_reference": "m"}), "counterfactual_score_gap")
    expected = ttest_rel(f, m)
    limits = expected.confidence_interval()
    assert found["value"] == pytest.approx((f - m).mean())
    assert [found["low"], found["high"]] == pytest.approx([limits.low, limits.high])
    assert found["p"] == pytest.approx(expected.pvalue)
    assert found["class"] == "1"


def test_score_gap_of_clusters_has_no_interval_of_single_rows():
    rng = np.random.default_rng(0)
    own = rng.uniform(0.2, 0.8, 1200)
    moved = own + np.repeat(rng.normal(0, 0.1, 60), 20)
    table = {"y": [0, 1] * 600, "g": ["f", "m"] * 600, "score": own, "score@f": own}
    table |= {"score@m": moved, "decision": own > 0.5, "decision@f": own > 0.5}
    table |= {"decision@m": moved > 0.5, "who": np.repeat(np.arange(60), 20)}
    roles = {"truth": "y", "score": "score", "decision": "decision", "group": "g"}
    told = audit(pl.DataFrame(table), **roles, cluster="who", lenses=["counterfactual"],
                 limits={"counterfactual_score_gap": 0.05})  # fmt: skip
    [row] = told.rows.where(measure="counterfactual_score_gap")
    assert row["value"] == pytest.approx(np.mean(moved - own))
    assert [row[end] for end in ("low", "high", "family_low", "family_high", "p")] == [None] * 5
    assert row["method"] == "mean of pairs; no interval: rows come in clusters"
    assert row["verdict"] == "cannot tell"
    assert "Cannot tell" in render(told, form="page")
    assert "Cannot tell" in str(told)


def test_score_gaps_of_several_classes_keep_pairs_with_both_scores():
    table = {
        "decision@f": ["a", "b", "c", "a"],
        "decision@m": ["a", "b", "a", "a"],
        "score:a": [0.5] * 4,
        "score:a@f": [0.5, 0.2, None, 0.8],
        "score:a@m": [0.4, 0.1, 0.3, 0.5],
        "score:b": [0.5] * 4,
        "score:b@f": [0.1] * 4,
        "score:b@m": [0.1] * 4,
    }
    result = look(table, settings={"counterfactual_reference": "m"})
    a, b = (one(result, "counterfactual_score_gap", class_=name) for name in "ab")
    assert (a["value"], a["n"]) == (pytest.approx((0.1 + 0.1 + 0.3) / 3), 3)
    assert (b["value"], b["p"], b["low"], b["high"]) == (0.0, 1.0, 0.0, 0.0)


def test_rows_for_both_classes_of_a_binary_decision():
    # Truth 1: 10 gained of 60; truth 0: 4 gained of 40. What class 1 gains, class 0 loses.
    table = {
        "truth": [1] * 60 + [0] * 40,
        "decision@f": [1] * 10 + [0] * 50 + [1] * 4 + [0] * 36,
        "decision@m": [0] * 100,
    }
    result = look(table, truth="truth", settings={"counterfactual_reference": "m"})
    found = {
        (rate, name): gap(result, rate, class_=name)["value"]
        for rate in RATES.values()
        for name in "01"
    }
    assert found == pytest.approx(
        {
            ("selection_rate", "1"): 14 / 100,
            ("selection_rate", "0"): -14 / 100,
            ("true_positive_rate", "1"): 10 / 60,
            ("true_positive_rate", "0"): -4 / 40,
            ("false_positive_rate", "1"): 4 / 40,
            ("false_positive_rate", "0"): -10 / 60,
        }
    )


# ---- the generator of METHODS 12.2 --------------------------------------------------------


def test_no_causal_path_gives_gaps_of_exactly_zero():
    table = biographies(n=3000, causal_path=0.0, spurious_path=0.8, seed=1)
    result = look(table, truth="title", group="gender", reference="male")
    gaps = [row for row in result.rows if row["measure"].startswith("counterfactual_")]
    shown = [row for row in gaps if not row["measure"].endswith("_null_level")]
    assert {row["value"] for row in shown} == {0.0}
    assert all(row["low"] <= 0 <= row["high"] for row in gaps if row["low"] is not None)
    found = result.details["quadrant"]
    largest = max(abs(value) for value in found["statistical"])
    assert largest > 0.2
    assert set(found["signs"]) == {None}


def test_no_spurious_path_gives_gaps_that_are_alike():
    table = biographies(n=30000, causal_path=0.5, spurious_path=0.0, seed=2)
    result = look(table, truth="title", group="gender", reference="male")
    found = result.details["quadrant"]
    for i, measure in enumerate(found["measure"]):
        if measure == "true_positive_rate_gap":
            theirs = found["statistical_low"][i], found["statistical_high"][i]
            assert theirs[0] <= found["counterfactual"][i] <= theirs[1]
            assert found["signs"][i] in ("agree", "disagree")


def test_paths_that_pull_apart_land_in_opposite_quadrants():
    table = biographies(n=20000, causal_path=-0.25, spurious_path=0.9, seed=3)
    result = look(table, truth="title", group="gender", reference="male")
    found = result.details["quadrant"]
    place = [
        i
        for i in range(len(found["class"]))
        if (found["measure"][i], found["class"][i]) == ("true_positive_rate_gap", "nurse")
    ]
    assert [found["signs"][i] for i in place] == ["surely disagree"]
    assert found["statistical_low"][place[0]] > 0 > found["counterfactual_high"][place[0]]
    assert (
        "Gap in true positive rate, female against male: the statistical and the counterfactual "
        "gap have opposite signs for 'nurse', 'surgeon', and both intervals leave out 0."
        in result.notes
    )


def test_statistical_side_of_the_quadrant_is_the_statistical_lens():
    table = biographies(n=2000, causal_path=0.3, spurious_path=0.3, seed=5)
    decisions = Decisions(table, truth="title", group="gender", reference="male")
    found = counterfactual.measure(decisions, Options()).details["quadrant"]
    rows = statistical.measure(decisions, Options()).rows
    for i, measure in enumerate(found["measure"]):
        (row,) = rows.where(measure=measure, class_=found["class"][i], reference="male")
        told = [found[f"statistical{end}"][i] for end in ("", "_low", "_high")]
        assert told == [row["value"], row["family_low"], row["family_high"]]


@pytest.mark.parametrize(
    ("gamma", "delta"),
    [
        ((0.0, 0.0, 0.0), (2.0, 0.0, -2.0)),
        ((1.0, 0.0, -1.0), (0.0, 0.0, 0.0)),
        ((-0.6, 0.0, 0.6), (2.0, 0.0, -2.0)),
    ],
)
def test_planted_gaps_are_found(gamma, delta):
    made = paired_decisions(20_000, gamma=gamma, delta=delta, female_share=0.4, seed=17)
    result = look(made.frame, truth="truth", group="gender", reference="male")
    found = result.details["quadrant"]
    for i, (measure, name) in enumerate(zip(found["measure"], found["class"])):
        if measure != "true_positive_rate_gap":
            continue
        for side in ("statistical", "counterfactual"):
            planted = made.planted[name][f"{side}_gap"]
            assert found[f"{side}_low"][i] <= planted <= found[f"{side}_high"][i]
        if not any(gamma):
            assert found["counterfactual"][i] == 0
        if any(gamma) and any(delta) and gamma["abc".index(name)]:
            assert found["signs"][i] == "surely disagree"


# ---- coverage -----------------------------------------------------------------------------


def test_intervals_cover_marginally_and_as_a_family():
    # 1,500 tables of 150 pairs as strata of one: a class is gained with chance 0.12 or 0.05
    # and lost with 0.05 or 0.08.
    random = np.random.default_rng(11)
    tables, pairs = 1500, 150
    cells = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("a", "a"), ("c", "c")]
    chance = [0.12, 0.05, 0.03, 0.05, 0.45, 0.30]
    drawn = random.choice(len(cells), size=tables * pairs, p=chance)
    f, m = (np.array([cell[i] for cell in cells])[drawn] for i in (0, 1))
    table = pl.DataFrame(
        {"decision@f": f, "decision@m": m, "table": np.repeat(np.arange(tables), pairs)}
    )
    decisions = Decisions(table, stratum="table")
    held = pair_table(pair_counts(decisions, None), decisions.roles, ["m", "f"])
    # Tables instead of strata: each is a family by itself.
    scope = Scope(
        lens="counterfactual", attribute="sex", level=0.95, seed=0, classes=held.classes,
        groups=held.values, strata=(None,) * (tables + 1), reference="m",
    )  # fmt: skip
    rows = gap_rows(scope, held, rate_gaps(held), PairFamily(held, scope))[0]
    true = {"a": 0.12 - 0.05, "b": 0.05 + 0.03 - 0.12 - 0.05, "c": 0.05 - 0.03}
    truth = np.array([true[name] for name in rows["class"]])
    inside = np.arange(len(rows)) >= 3
    marginal = ((rows["low"] <= truth) & (truth <= rows["high"]))[inside]
    family = ((rows["family_low"] <= truth) & (truth <= rows["family_high"]))[inside]
    assert 0.93 <= marginal.mean() <= 0.97
    assert 0.93 <= family.reshape(tables, 3).all(axis=1).mean() <= 0.98


@pytest.mark.parametrize(
    ("classes", "pairs", "gained", "lost"),
    [(4, 50, 0.01, 0.0), (4, 100, 0.003, 0.0), (4, 60, 0.1, 0.05), (8, 150, 0.02, 0.02)],
)
def test_root_mean_square_covers_even_where_hardly_a_pair_flips(classes, pairs, gained, lost):
    # 250 tables as strata; every class gains with the first chance and loses with the second,
    # so that the root mean square is their difference.
    random = np.random.default_rng(16)
    tables = 250
    shape = (tables, classes, pairs)
    move = random.choice([1, -1, 0], p=[gained, lost, 1 - gained - lost], size=shape)
    truth = np.broadcast_to(np.arange(classes)[:, None], shape)
    other = (truth + 1) % classes
    names = np.array(list("abcdefgh"))
    table = pl.DataFrame(
        {
            "truth": names[truth].ravel(),
            "decision@f": names[np.where(move < 0, other, truth)].ravel(),
            "decision@m": names[np.where(move > 0, other, truth)].ravel(),
            "table": np.broadcast_to(np.arange(tables)[:, None, None], shape).ravel(),
        }
    )
    rows = look(
        table, truth="truth", stratum="table", settings={"counterfactual_reference": "m"}
    ).rows.where(measure="counterfactual_true_positive_rate_gap_rms")
    inside = np.array([s is not None for s in rows["stratum"]])
    true = gained - lost
    covers = ((rows["low"] <= true + 1e-12) & (true <= rows["high"]))[inside]
    assert len(covers) == tables
    assert covers.mean() >= 0.92


def test_clustered_intervals_cover():
    # 400 tables of 40 authors with 5 texts each: an author's texts flip together.
    random = np.random.default_rng(12)
    tables, authors, texts = 400, 40, 5
    leaning = random.choice([1, -1, 0], p=[0.25, 0.1, 0.65], size=(tables, authors, 1))
    moved = leaning * (random.random((tables, authors, texts)) < 0.8)
    truth = 0.8 * (0.25 - 0.1)
    shape = moved.shape
    table = {
        "decision@f": (moved > 0).astype(int).ravel(),
        "decision@m": (moved < 0).astype(int).ravel(),
        "table": np.broadcast_to(np.arange(tables)[:, None, None], shape).ravel(),
        "author": np.arange(tables * authors).repeat(texts),
    }
    covers = {}
    for cluster in ("author", None):
        rows = look(
            table, stratum="table", cluster=cluster, settings={"counterfactual_reference": "m"}
        ).rows.where(measure="counterfactual_selection_rate_gap", class_="1")
        inside = np.array([s is not None for s in rows["stratum"]])
        covers[cluster] = ((rows["low"] <= truth) & (truth <= rows["high"]))[inside].mean()
    assert 0.92 <= covers["author"] <= 0.985
    assert covers[None] < 0.85


# ---- invariances --------------------------------------------------------------------------

labels = st.sampled_from(["a", "b", "c", None])
table_rows = st.lists(
    st.tuples(labels, st.sampled_from(["f", "m", None]), labels, labels, labels),
    min_size=4,
    max_size=40,
).filter(lambda rows: any(r[3] and r[4] for r in rows))


def as_table(rows):
    names = ("truth", "gender", "decision", "decision@f", "decision@m")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def roles_of(table):
    seen = {v for c in table.columns if c != "gender" for v in table[c].drop_nulls()}
    return {"truth": "truth", "group": "gender"} | (
        {"positive": min(seen)} if len(seen) == 2 else {}
    )


@given(table_rows)
@settings(max_examples=60, deadline=None)
def test_gaps_equal_plain_python(rows):
    table = as_table(rows)
    result = look(table, **roles_of(table), reference="m")
    pairs = []
    for truth, gender, decision, f, m in rows:
        # A row's own decision stands for a missing one under its own value.
        f = decision if f is None and gender == "f" else f
        m = decision if m is None and gender == "m" else m
        if f is not None and m is not None:
            pairs.append((truth, f, m))
    for rate, among in (
        ("selection_rate", lambda truth, name: True),
        ("true_positive_rate", lambda truth, name: truth == name),
        ("false_positive_rate", lambda truth, name: truth is not None and truth != name),
    ):
        for row in result.rows.where(measure=f"counterfactual_{rate}_gap"):
            name = row["class"]
            if name.startswith("not:"):
                continue
            used = [(f, m) for truth, f, m in pairs if among(truth, name)]
            assert row["n"] == len(used)
            if used and row["value"] is not None:
                sign = 1 if row["group"] == "f" else -1
                mean = sum((f == name) - (m == name) for f, m in used) / len(used)
                assert row["value"] == pytest.approx(sign * mean, abs=1e-12)
                assert row["low"] - 1e-12 <= row["value"] <= row["high"] + 1e-12
            else:
                assert row["undefined"] == "no pairs"


@given(table_rows, st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_order_of_rows_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    roles = roles_of(as_table(rows))
    left, right = (look(as_table(r), **roles, reference="m") for r in (rows, shuffled))
    assert list(left.rows) == list(right.rows)
    assert left.tallies[0].fingerprint() == right.tallies[0].fingerprint()


def test_swapping_value_and_reference_mirrors_every_gap():
    table = biographies(n=800, causal_path=0.4, spurious_path=0.2, seed=6)
    left, right = (
        look(table, truth="title", group="gender", reference=name) for name in ("male", "female")
    )
    for row in left.rows:
        if not row["measure"].endswith("_gap"):
            continue
        (other,) = right.rows.where(measure=row["measure"], class_=row["class"])
        assert (other["group"], other["reference"]) == (row["reference"], row["group"])
        assert row["value"] == -other["value"]
        assert [row["low"], row["high"]] == pytest.approx([-other["high"], -other["low"]])
        assert row["p"] == other["p"]


def test_duplicated_rows_keep_values_and_narrow_intervals():
    table = biographies(n=500, causal_path=0.4, spurious_path=0.2, seed=7)
    once = look(table, truth="title", group="gender")
    twice = look({k: v * 2 for k, v in table.items()}, truth="title", group="gender")
    for left, right in zip(once.rows, twice.rows):
        if left["measure"].endswith("_rate_gap"):
            assert left["value"] == right["value"]
            assert right["high"] - right["low"] < left["high"] - left["low"]


def test_unit_weights_change_nothing_and_weights_count_as_copies():
    table = biographies(n=400, causal_path=0.4, spurious_path=0.2, seed=8)
    roles = {"truth": "title", "group": "gender", "reference": "male"}
    plain = look(table, **roles).rows
    unit = look(table | {"w": [1.0] * 400}, weight="w", **roles).rows
    for left, right in zip(plain, unit):
        for number in NUMBERS:
            assert left[number] == pytest.approx(right[number], abs=1e-9), left["measure"]
    copies = np.random.default_rng(0).integers(1, 4, 400)
    weighted = look(table | {"w": copies.tolist()}, weight="w", **roles).rows
    repeated = look({k: np.repeat(v, copies).tolist() for k, v in table.items()}, **roles).rows
    for left, right in zip(weighted, repeated):
        if left["measure"].endswith(("_gap", "flip_rate")):
            assert left["value"] == pytest.approx(right["value"], abs=1e-12)


def test_a_cluster_for_each_row_widens_by_student_alone():
    table = biographies(n=900, causal_path=0.4, spurious_path=0.2, seed=9)
    roles = {"truth": "title", "group": "gender", "reference": "male"}
    plain = look(table, **roles).rows
    alone = look(table | {"person": list(range(900))}, cluster="person", **roles).rows
    for left, right in zip(plain, alone):
        if left["measure"] == "counterfactual_selection_rate_gap":
            width, wider = (row["high"] - row["low"] for row in (left, right))
            assert 1 <= wider / width < 1.01
            assert right["method"] == "agresti-min, clustered"


# ---- more than two values -----------------------------------------------------------------


def test_three_values_are_compared_pair_by_pair():
    table = {
        "gender": ["f", "m", "x", "m"],
        "decision": [1, 0, 1, 0],
        "decision@f": [1, 1, 1, 0],
        "decision@m": [0, 0, 1, 0],
        "decision@x": [1, 0, 1, None],
    }
    result = look(table, group="gender")
    rows = result.rows.where(measure="counterfactual_selection_rate_gap", class_="1")
    found = {(r["group"], r["reference"]): (r["value"], r["n"]) for r in rows}
    # m has most rows and is the reference; the pair x, f follows.
    assert found == {
        ("f", "m"): (pytest.approx(2 / 4), 4),
        ("x", "m"): (pytest.approx(1 / 3), 3),
        ("x", "f"): (pytest.approx(-1 / 3), 3),
    }
    assert result.excluded == {"no decision@x": 1}
    by_pair = {(r["group"], r["reference"]) for r in result.rows.where(measure="flip_rate")}
    assert by_pair == set(found)


def test_gaps_of_three_values_add_up():
    random = np.random.default_rng(13)
    table = {f"decision@{v}": random.choice(list("abcd"), 300) for v in ("f", "m", "x")}
    rows = look(table).rows.where(measure="counterfactual_selection_rate_gap")
    for name in "abcd":
        found = {(r["group"], r["reference"]): r["value"] for r in rows.where(class_=name)}
        assert found["x", "f"] == pytest.approx(found["x", "m"] + found["m", "f"])


# ---- engines ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine", ["duckdb", "pandas", "pyarrow", pytest.param("spark", marks=pytest.mark.heavy)]
)
def test_engines_agree(engine, tmp_path):
    table = biographies(n=700, causal_path=0.4, spurious_path=0.3, seed=10)
    random = np.random.default_rng(1)
    table["decision@male"][3] = None
    table["title"][5] = None
    table |= {f"score:nurse@{v}": random.random(700).tolist() for v in ("male", "female")}
    table["score:nurse"] = table["score:nurse@male"]
    table["score:nurse@male"] = [None, *table["score:nurse@male"][1:]]
    table |= {f"bio@{v}": [f"{v} {i % 3}" for i in range(700)] for v in ("male", "female")}
    table["bio"] = table["bio@male"]
    frame = pl.DataFrame(table)
    frame.write_parquet(tmp_path / "scored.parquet")
    roles = {"truth": "title", "group": "gender", "decision": "decision", "text": "bio"}
    expected = look(frame.lazy(), settings={"evidence": 2}, **roles)
    if engine in {"duckdb", "spark"}:
        decisions = Decisions(
            str(tmp_path / "scored.parquet"), engine=engine, spark_master="local[2]", **roles
        )
    else:
        native = frame.to_pandas() if engine == "pandas" else frame.to_arrow()
        decisions = Decisions(native, **roles)
    found = counterfactual.measure(decisions, Options(settings={"evidence": 2}))
    assert len(found.rows) == len(expected.rows)
    for left, right in zip(found.rows, expected.rows):
        for column, value in right.items():
            if isinstance(value, float):
                assert left[column] == pytest.approx(value, abs=1e-9), (column, right)
            else:
                assert left[column] == value
    assert found.excluded == expected.excluded
    assert found.notes == expected.notes
    assert found.details["quadrant"] == expected.details["quadrant"]
    assert len(found.details["flipped"]) == 2
    assert found.tallies[0].fingerprint() == expected.tallies[0].fingerprint()


# ---- what the lens says -------------------------------------------------------------------


def test_missing_pairs_are_left_out_and_counted():
    table = discordant(3, 1, 10)
    table["decision@m"] = [None, None, *table["decision@m"][2:]]
    result = look(table, settings={"counterfactual_reference": "m"})
    assert result.excluded == {"no decision@m": 2}
    found = gap(result, "selection_rate", class_="1")
    assert (found["n"], found["value"]) == (8, pytest.approx((1 - 1) / 8))


def test_own_decision_stands_for_a_missing_one_and_is_said():
    table = toy()
    table["decision@F"] = [
        d if g == "M" else None for g, d in zip(table["gender"], table["decision@F"])
    ]
    result = look(table, truth="truth", group="gender", positive="a", reference="M")
    assert gap(result, "true_positive_rate", class_="a")["value"] == pytest.approx(0.4)
    assert result.excluded == {}
    assert result.notes[0] == (
        "5 rows have no counterfactual decision under their own value; their decision as it was "
        "made stands for it."
    )


def test_decisions_that_differ_from_their_own_value_are_said():
    table = toy()
    table["decision@F"][0] = "b"
    result = look(table, truth="truth", group="gender", positive="a", reference="M")
    assert result.notes[0] == (
        "In 1 of 10 rows the decision differs from the counterfactual decision under the row's "
        "own value: either the text was changed although it had that value, or the decisions "
        "were made by different models. Counterfactual gaps use the counterfactual decisions."
    )


def test_classes_that_come_and_go_are_kept_and_said():
    table = {
        "gender": ["f", "m", "f", "m"],
        "decision": ["a", "b", "c", "b"],
        "decision@f": ["a", "d", "b", "b"],
        "decision@m": ["a", "b", "b", "b"],
    }
    result = look(table, group="gender", reference="m")
    assert "'d' occurs among the counterfactual decisions and never among the decisions." in (
        result.notes
    )
    assert "'c' occurs among the decisions and never among the counterfactual decisions." in (
        result.notes
    )
    assert gap(result, "selection_rate", class_="d")["value"] == 0.25
    assert gap(result, "selection_rate", class_="c")["value"] == 0


def test_without_a_group_column_the_lens_stands_alone():
    result = look(discordant(30, 5, 200))
    found = gap(result, "selection_rate", class_="1")
    assert (found["attribute"], found["group"], found["reference"]) == ("counterfactual", "m", "f")
    assert "quadrant" not in result.details
    named = look(discordant(30, 5, 200), settings={"attribute": "gender"})
    assert set(named.rows["attribute"]) == {"gender"}


def test_the_column_that_holds_the_values_is_the_attribute():
    table = discordant(3, 1, 8) | {"region": ["n", "s"] * 4, "sex": ["f", "m"] * 4}
    result = look(table | {"decision": [0] * 8}, group=["region", "sex"])
    assert set(result.rows["attribute"]) == {"sex"}
    assert set(result.details["quadrant"]["group"]) == {"m"}


def test_groups_named_otherwise_are_said():
    table = discordant(3, 1, 8) | {"gender": ["woman", "man"] * 4, "decision": [0, 1] * 4}
    result = look(table, group="gender")
    assert result.notes == (
        "No group column holds 'f' or 'm', the values that decisions were made under: "
        "counterfactual gaps stand alone, with no statistical gap beside them.",
    )
    assert set(result.rows["attribute"]) == {"counterfactual"}


def test_a_reference_without_decisions_gives_way_to_the_largest_value():
    table = discordant(3, 1, 9) | {"gender": ["f", "m", "m"] * 3, "decision": [0] * 9}
    result = look(table, group="gender", reference="<rest>")
    assert set(result.rows["reference"]) == {"m"}
    assert result.notes[0] == (
        "reference='<rest>' has no counterfactual decisions, so these gaps are taken against the "
        "value with most rows."
    )


def test_share_of_texts_changed():
    table = discordant(3, 1, 4) | {
        "bio": ["she", "he", "it", "x"],
        "bio@f": ["she", "she", "it", None],
        "bio@m": ["he", "he", "it", "x"],
    }
    found = one(look(table, text="bio"), "changed_share")
    assert one(look(table), "changed_share") == found, "the columns that swap writes are found"
    two = look({**table, "note": table["bio"], "note@f": table["bio"], "note@m": table["bio"]})
    assert one(two, "changed_share")["value"] is None, "which of two texts it was cannot be told"
    assert (found["value"], found["n"]) == (pytest.approx(2 / 3), 3)
    flagged = one(
        look(discordant(3, 1, 4) | {"changed": [True, True, False, True]}), "changed_share"
    )
    assert (flagged["value"], flagged["n"]) == (0.75, 4)
    unknown = one(look(discordant(3, 1, 4)), "changed_share")
    assert (unknown["value"], unknown["undefined"]) == (None, "the texts are not in the table")


def test_flipped_pairs_are_shown_only_on_request():
    table = toy() | {"bio": [f"text {i}" for i in range(10)]}
    table |= {f"bio@{v}": [f"{v} {i}" for i in range(10)] for v in "FM"}
    roles = {"truth": "truth", "group": "gender", "positive": "a", "text": "bio"}
    assert "flipped" not in look(table, **roles).details
    assert look(table, settings={"evidence": 2}, **roles).details["flipped"] == [
        {
            "truth": "a",
            "group": "F",
            "decision@F": "a",
            "decision@M": "b",
            "text": "text 1",
            "text@F": "F 1",
            "text@M": "M 1",
        },
        {
            "truth": "a",
            "group": "M",
            "decision@F": "a",
            "decision@M": "b",
            "text": "text 4",
            "text@F": "F 4",
            "text@M": "M 4",
        },
    ]


def test_small_cells_are_hidden_beside_each_other():
    result = look(toy(), truth="truth", group="gender", positive="a", reference="M")
    found = result.details["quadrant"]
    assert set(found["statistical"]) == {None}
    assert [v for v in found["counterfactual"] if v is not None] == pytest.approx([-0.4, 0.4])
    assert set(found["signs"]) == {None}


def test_thresholded_scores_share_the_words_of_the_truth():
    table = {
        "truth": ["toxic", "fine"] * 30,
        "gender": ["f", "m"] * 30,
        "score": [0.9, 0.2, 0.4, 0.7] * 15,
        "decision@f": [1, 0, 1, 1] * 15,
        "decision@m": [1, 0, 0, 1] * 15,
    }
    roles = {"truth": "truth", "group": "gender", "score": "score", "threshold": 0.5}
    result = look(table, positive="toxic", reference="m", **roles)
    # Truth toxic in rows 1 and 3 of four; row 3 is decided so under f only.
    found = gap(result, "true_positive_rate", class_="toxic")
    assert (found["value"], found["n"], found["rule"]) == (0.5, 30, "score>=0.5")
    assert set(result.details["quadrant"]["class"]) == {"fine", "toxic"}


def test_results_within_strata():
    table = discordant(6, 0, 40) | {"site": ["x", "y"] * 20}
    rows = look(table, stratum="site", settings={"counterfactual_reference": "m"}).rows.where(
        measure="counterfactual_selection_rate_gap", class_="1"
    )
    assert dict(zip(rows.plain("stratum"), rows.plain("value"))) == pytest.approx(
        {None: 6 / 40, "x": 3 / 20, "y": 3 / 20}
    )


def test_audit_says_what_the_words_do():
    table = biographies(n=4000, causal_path=0.6, spurious_path=0.0, seed=14)
    result = audit(Decisions(table, truth="title", group="gender", reference="male"))
    told = [f.sentence for f in result.findings if f.lens == "counterfactual"]
    assert told[0].startswith(
        "Changing nothing but the gendered words changes the answer: rewritten as women, texts "
        "whose truth is not 'nurse' get decision 'nurse' 27.0 points more often than rewritten as "
        "men (24.9 to 29.0)."
    )
    # That words change answers is said once.
    assert told[1].startswith(
        "Rewritten as women, texts "
        "whose truth is 'surgeon' get decision 'surgeon' 41.9 points less often than rewritten as "
        "men ("
    )
    # How often a class is decided goes after what happens in error.
    assert told[2].startswith(
        "Rewritten as women, texts get "
        "decision 'surgeon' 31.6 points less often than rewritten as men ("
    )
    assert result.data["lenses"]["counterfactual"] is None
    quiet = audit(Decisions(discordant(4, 5, 200)), lenses=["counterfactual"])
    assert [f.sentence for f in quiet.findings] == [
        "When only the group's words are exchanged, no difference is shown: chance alone could "
        "explain the one gap."
    ]


def test_limits_judge_the_positive_class_once():
    limits = {"counterfactual_selection_rate_gap": 0.05}
    result = audit(Decisions(discordant(80, 5, 400)), limits=limits)
    assert result.verdict == "outside"
    judged = [row for row in result.rows if row["limit_low"] is not None]
    assert [(row["class"], row["verdict"]) for row in judged] == [("1", "outside")]


# ---- bad input ----------------------------------------------------------------------------


def test_what_the_lens_lacks():
    assert counterfactual.lacks(Decisions({"g": ["a"], "decision": [1]}, group="g")) == (
        "a decision under each value of an attribute (columns 'decision@<value>')"
    )
    assert counterfactual.lacks(Decisions({"decision@f": [1]})) == (
        "a decision under a second value: it has one under 'f' alone"
    )
    assert counterfactual.lacks(Decisions(discordant(1, 1, 3))) is None


@pytest.mark.parametrize(
    ("table", "settings", "roles", "error", "words"),
    [
        (
            {"decision@f": [1, None], "decision@m": [None, 0]},
            {},
            {},
            DataError,
            "Nothing is left to measure: no row has a decision under both 'f' and 'm'.",
        ),
        (
            discordant(1, 1, 4),
            {"evidence": -1},
            {},
            UsageError,
            "evidence=-1 is not a number of rows. Say how many flipped pairs to show, such as 20.",
        ),
        (
            discordant(1, 1, 4),
            {"counterfactual_reference": "male"},
            {},
            UsageError,
            "counterfactual_reference='male' has no decisions. There are decisions under f, m.",
        ),
        (
            {"decision@f": [1, None], "decision@m": [1, 0]},
            {},
            {"missing": "error"},
            DataError,
            "missing='error' and the data has 1 row with no decision@f. Fill them in, or choose "
            "missing='drop' or 'group'.",
        ),
        (
            discordant(1, 1, 2) | {"score@f": [0.5, float("inf")], "score@m": [0.1, 0.2]},
            {},
            {},
            DataError,
            "'score@f' holds 1 values that are not finite (NaN or infinite). Replace them or leave "
            "them empty.",
        ),
        (
            discordant(1, 1, 2) | {"score@f": ["high", "low"], "score@m": [0.1, 0.2]},
            {},
            {},
            DataError,
            "'score@f' holds String, not numbers. Some value in it may be text; clean or convert "
            "the column.",
        ),
        (
            {"decision@f": ["no", "yes"], "decision@m": ["no", "no"]},
            {},
            {},
            UsageError,
            "The classes are 'no' and 'yes': say which one counts as positive with "
            "positive='yes' (--positive).",
        ),
    ],
)
def test_bad_input_is_refused_in_these_words(table, settings, roles, error, words):
    with pytest.raises(error) as told:
        look(table, settings=settings, **roles)
    assert str(told.value) == words
