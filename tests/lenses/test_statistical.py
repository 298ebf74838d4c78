"""The statistical lens against values worked by hand, the papers' oracles and Fairlearn."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions.tally import Tally
from evenhand.lenses.kinds import Cells
from evenhand.lenses.measures import cells_of, counted_rates
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.scope import Scope
from evenhand.lenses.statistical import lens as statistical
from evenhand.lenses.statistical.confusion import class_covariance
from evenhand.simulate.moderation import moderation
from evenhand.stats.families import rate_covariance
from evenhand.stats.rates import koopman, miettinen_nurminen_p, newcombe, wilson

FOLDER = Path(__file__).parents[1] / "oracles"
ORACLES = json.loads((FOLDER / "oracles.json").read_text())
MONTE_CARLO = json.loads((FOLDER / "monte_carlo.json").read_text())


def table_of(cells: list[tuple[Any, ...]], names: tuple[str, ...]) -> pl.DataFrame:
    """Rows repeated by the count that ends each cell."""
    rows = [cell[:-1] for cell in cells for _ in range(cell[-1])]
    return pl.DataFrame(rows, schema=list(names), orient="row")


def audited(data: Any, **roles: Any) -> Rows:
    asked = {"keep_small": True, "lenses": ["statistical"]}
    roles = {"truth": "truth", "decision": "decision", "group": "group", **roles}
    return eh.audit(eh.Decisions(data, **roles), **asked).rows


def one(rows: Rows, column: str = "value", **where: Any) -> Any:
    found = rows.where(**where)
    assert len(found) == 1, [dict(r) for r in found]
    return found.plain(column)[0]


def several_classes() -> pl.DataFrame:
    """The four classes of oracle 1.5b: right decisions at the printed rates, in both groups."""
    rates, sizes = ORACLES["1.5_gap_rms"]["tpr"], ORACLES["1.5b_gap_rms_bias_corrected"]
    cells = []
    for place, (name, pair) in enumerate(rates.items()):
        wrong = next(other for other in rates if other != name)
        for group, rate, n in zip(
            ("she", "he"), pair, (sizes["n_she"][place], sizes["n_he"][place])
        ):
            right = round(rate * n)
            cells += [(group, name, name, right), (group, name, wrong, n - right)]
    return table_of(cells, ("group", "truth", "decision"))


def test_oracle_root_mean_square() -> None:
    plain, corrected = ORACLES["1.5_gap_rms"], ORACLES["1.5b_gap_rms_bias_corrected"]
    rows = audited(several_classes(), reference="he")
    gaps = rows.where(measure="true_positive_rate_gap").plain("value")
    assert gaps == pytest.approx(plain["gaps"], abs=1e-9)
    size = {"group": "she", "reference": "he"}
    assert one(rows, measure="true_positive_rate_gap_rms", **size) == pytest.approx(
        plain["rms"], abs=1e-9
    )
    assert one(rows, measure="true_positive_rate_gap_rms_corrected", **size) == pytest.approx(
        corrected["rms_corrected"], abs=1e-9
    )
    assert one(rows, measure="true_positive_rate_gap_rms_null_level", **size) == pytest.approx(
        corrected["null_expectation_of_naive_rms_if_all_gaps_zero"], abs=1e-9
    )
    low = one(rows, "low", measure="true_positive_rate_gap_rms", **size)
    assert low == 0, "noise alone reaches 0.087: no gap cannot be ruled out"
    # Sign-free: which of the two is the reference does not matter.
    swapped = audited(several_classes(), reference="she")
    assert one(swapped, measure="true_positive_rate_gap_rms") == pytest.approx(plain["rms"])


def test_root_mean_square_names_the_classes_it_skips() -> None:
    table = several_classes().filter(~((pl.col("group") == "she") & (pl.col("truth") == "c4")))
    rows = audited(table, reference="he").where(measure="true_positive_rate_gap_rms")
    assert rows.plain("n") == [3]
    assert rows.plain("method") == ["moments; 1 of 4 classes undefined"]
    assert rows.plain("value") == pytest.approx([np.sqrt((0.1**2 + 0.1**2) / 3)])


def test_oracle_argmax_and_one_versus_rest() -> None:
    oracle = ORACLES["1.6_ovr_vs_argmax"]
    table = {f"score:{c}": [row[c] for row in oracle["scores"]] * 2 for c in range(3)}
    table |= {"truth": [oracle["true_class"]] * 8, "group": ["a"] * 4 + ["b"] * 4}
    for rule, expected in (("argmax", "tpr_argmax"), ("one-versus-rest", "tpr_ovr_at_half")):
        rows = audited(table, decision=None, rule=rule)
        rate = rows.where(measure="true_positive_rate", class_="0", group="a")
        assert rate.plain("value") == [oracle[expected]]
        assert rate.plain("rule") == ["argmax" if rule == "argmax" else "one-versus-rest@0.5"]


def test_accuracy_of_saying_no_to_28_classes() -> None:
    # Each of 28 one-versus-rest problems is right in 27 of 28 rows if nothing is ever chosen.
    names = [f"c{i:02}" for i in range(28)]
    table = {f"score:{name}": [0.1] * 56 for name in names}
    table |= {"truth": names * 2, "group": ["a"] * 28 + ["b"] * 28}
    rows = audited(table, decision=None, rule="one-versus-rest").where(
        measure="accuracy", group="a"
    )
    expected = ORACLES["1.6_ovr_vs_argmax"]["trivial_all_negative_mean_ovr_accuracy_28_classes"]
    assert np.mean(rows.plain("value")) == pytest.approx(expected)


def test_oracle_perfect_predictor() -> None:
    oracle = ORACLES["2.2_perfect_predictor_PPR_gap"]
    cells = [("F", 1, 1, 50), ("M", 1, 1, 60), ("M", 0, 0, 40)]
    rows = audited(table_of(cells, ("group", "truth", "decision")), reference="M")
    assert one(rows, measure="selection_rate_gap", class_="1") == pytest.approx(oracle["SG_PPR"])
    assert one(rows, measure="true_positive_rate_gap", class_="1") == oracle["SG_TPR_y1"]
    # F has no negatives: the true positive rate of class 0 is undefined there, and its gap too.
    assert one(rows, measure="true_positive_rate_gap", class_="0") is None


def test_oracle_gap_interval() -> None:
    oracle = ORACLES["2.13_rate_difference_ci"]
    k1, n1, k2, n2 = (oracle[k] for k in ("k1", "n1", "k2", "n2"))
    cells = [("f", 1, k1), ("f", 0, n1 - k1), ("m", 1, k2), ("m", 0, n2 - k2)]
    rows = audited(table_of(cells, ("group", "decision")), truth=None, reference="m")
    where = {"measure": "selection_rate_gap", "class_": "1"}
    assert one(rows, **where) == pytest.approx(oracle["diff"])
    limits = [one(rows, end, **where) for end in ("low", "high")]
    assert limits == pytest.approx(oracle["newcombe"], abs=1e-8)
    z = 1.959963984540054
    assert one(rows, "p", **where) == pytest.approx(float(miettinen_nurminen_p(k1, n1, k2, n2)))
    ratio = [one(rows, e, measure="selection_rate_ratio", class_="1") for e in ("low", "high")]
    assert ratio == pytest.approx([float(x) for x in koopman(k1, n1, k2, n2, z=z)])


def test_oracle_more_than_two_groups() -> None:
    oracle = ORACLES["2.15_more_than_two_groups"]
    cells = []
    for group, rate in oracle["TPR"].items():
        hits = round(rate * 1000)
        cells += [(group, 1, 1, hits), (group, 1, 0, 1000 - hits), (group, 0, 0, 500)]
    rows = audited(table_of(cells, ("group", "truth", "decision")), reference="F")
    worst = rows.where(measure="true_positive_rate_gap_worst", class_="1")
    assert worst.plain("value") == pytest.approx([oracle["pairwise_max"]])
    assert (worst.plain("group"), worst.plain("reference")) == (["M"], ["X"])
    spread = one(rows, measure="true_positive_rate_spread", class_="1")
    assert spread == pytest.approx(oracle["rms_vs_mean"], abs=1e-9)
    pairs = {"F-M": ("F", "M"), "F-X": ("F", "X"), "M-X": ("M", "X")}
    for name, (group, reference) in pairs.items():
        found = one(
            audited(table_of(cells, ("group", "truth", "decision")), reference=reference),
            measure="true_positive_rate_gap",
            class_="1",
            group=group,
            reference=reference,
        )
        assert found == pytest.approx(oracle["all_pairs"][name])


def test_oracle_null_of_the_root_mean_square() -> None:
    # S5: 28 classes, 20 to 200 cases a cell, every rate 0.8, so that the true size is 0.
    oracle = MONTE_CARLO["S5_gap_rms_null"]
    rng = np.random.default_rng(5)
    sizes = rng.integers(20, 201, (2, 28))
    names = [f"c{i:02}" for i in range(28)]
    plain, corrected, null, low = [], [], [], []
    roles = eh.Decisions({"truth": [0, 1], "decision": [0, 1], "group": ["a", "b"]}, truth="truth",
                         decision="decision", group="group").roles  # fmt: skip
    for _ in range(60):
        hits = rng.binomial(sizes, 0.8)
        keys: dict[str, list[str]] = {"group": [], "truth": [], "decision": []}
        counts: list[float] = []
        for g, group in enumerate(("a", "b")):
            for c, name in enumerate(names):
                for decision, n in ((name, hits[g, c]), (names[c - 1], sizes[g, c] - hits[g, c])):
                    keys["group"].append(group)
                    keys["truth"].append(name)
                    keys["decision"].append(decision)
                    counts.append(float(n))
        table = statistical.confusion(Tally.of(keys, {"n": counts}), roles)
        scope = Scope(
            lens="statistical", attribute="group", classes=table.classes, groups=table.groups,
            strata=table.strata, reference="a", rule="given", level=0.95, seed=0,
        )  # fmt: skip
        rates = statistical.group_rates(table, "true_positive_rate")
        pairing = next(iter(statistical.pairings(scope, table, "true_positive_rate", rates)))
        rows = statistical.rms_rows(scope, "true_positive_rate", pairing, table=table, rates=rates)
        sizes_found = rows.plain("value")
        plain.append(sizes_found[0])
        corrected.append(sizes_found[1])
        null.append(sizes_found[2])
        low.append(rows.plain("low")[0])
    assert np.mean(plain) == pytest.approx(oracle["naive_mean"], abs=0.006)
    assert np.mean(null) == pytest.approx(oracle["expected_sqrt_mean_v"], abs=0.006)
    assert np.median(corrected) < 0.02
    assert np.mean(np.array(corrected) == 0) == pytest.approx(
        oracle["share_of_corrected_equal_zero"], abs=0.2
    )
    assert np.mean(np.array(low) == 0) >= 0.9


def test_intervals_are_those_of_the_statistics_room() -> None:
    rows = audited(several_classes(), reference="he")
    z = 1.959963984540054
    limits = {
        end: one(rows, end, measure="true_positive_rate", class_="c1", group="she")
        for end in ("low", "high")
    }
    assert tuple(limits.values()) == pytest.approx([float(x) for x in wilson(32, 40, z=z)])
    gap = {"measure": "true_positive_rate_gap", "class_": "c1"}
    assert [one(rows, e, **gap) for e in ("low", "high")] == pytest.approx(
        [float(x) for x in newcombe(32, 40, 90, 100, z=z)]
    )


def test_fairlearn_agrees_on_shared_rates() -> None:
    metrics = pytest.importorskip("fairlearn.metrics")
    posts = moderation(4000, seed=2).frame
    rows = audited(posts, truth="violates", decision="removed", group="gender", reference="male")
    functions = {
        "selection_rate": metrics.selection_rate,
        "true_positive_rate": metrics.true_positive_rate,
        "false_positive_rate": metrics.false_positive_rate,
        "false_negative_rate": metrics.false_negative_rate,
        "true_negative_rate": metrics.true_negative_rate,
    }
    frame = metrics.MetricFrame(
        metrics=functions,
        y_true=posts["violates"].to_numpy(),
        y_pred=posts["removed"].to_numpy(),
        sensitive_features=posts["gender"].to_numpy(),
    )
    for name in functions:
        for group in ("female", "male", "nonbinary"):
            ours = one(rows, measure=name, class_="1", group=group)
            assert ours == pytest.approx(frame.by_group.loc[group, name], abs=1e-12)
        worst = one(rows, measure=f"{name}_gap_worst", class_="1")
        assert worst == pytest.approx(frame.difference(method="between_groups")[name], abs=1e-12)
        to_male = frame.by_group[name] - frame.by_group.loc["male", name]
        found = one(rows, measure=f"{name}_gap", class_="1", group="female", reference="male")
        assert found == pytest.approx(to_male["female"], abs=1e-12)
    odds = metrics.equalized_odds_difference(
        posts["violates"].to_numpy(),
        posts["removed"].to_numpy(),
        sensitive_features=posts["gender"].to_numpy(),
    )
    assert one(rows, measure="equalised_odds", class_="1") == pytest.approx(odds, abs=1e-12)


def test_area_agrees_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    posts = moderation(1500, seed=4).frame.with_columns(pl.col("score").round(2))
    rows = audited(posts, truth="violates", decision="removed", group="gender", score="score")
    for group, own in posts.group_by("gender"):
        expected = metrics.roc_auc_score(own["violates"], own["score"])
        assert one(rows, measure="auc", group=group[0]) == pytest.approx(expected, abs=1e-12)


def test_impact_ratios_by_hand() -> None:
    # a 30/100, b 40/100, c 10/100: the highest is b, so 0.75, 1 and 0.25.
    cells = [(g, d, n) for g, k in zip("abc", (30, 40, 10)) for d, n in ((1, k), (0, 100 - k))]
    rows = audited(table_of(cells, ("group", "decision")), truth=None)
    ratios = rows.where(measure="impact_ratio", class_="1")
    assert ratios.plain("value") == pytest.approx([0.75, 1.0, 0.25])
    assert ratios.plain("reference") == ["b"] * 3
    assert ratios.plain("low")[1] is None, "the highest group against itself has no uncertainty"


def test_equalised_odds_by_hand() -> None:
    # TPR 80/100 and 60/100, FPR 10/100 and 40/100: the larger gap is 0.3, in false positives.
    cells = [("a", 1, 1, 80), ("a", 1, 0, 20), ("a", 0, 1, 10), ("a", 0, 0, 90)]
    cells += [("b", 1, 1, 60), ("b", 1, 0, 40), ("b", 0, 1, 40), ("b", 0, 0, 60)]
    rows = audited(table_of(cells, ("group", "truth", "decision")))
    row = next(iter(rows.where(measure="equalised_odds", class_="1")))
    assert row["value"] == pytest.approx(0.3)
    assert row["method"] == "worst pair; false positive rate leads"
    assert (row["group"], row["reference"], row["n"]) == ("b", "a", 100)
    assert row["low"] < 0.3 < row["high"]


def test_calibration_by_group() -> None:
    rng = np.random.default_rng(1)
    n = 6000
    score = rng.uniform(0.02, 0.98, n)
    logit = np.log(score / (1 - score))
    group = np.arange(n) % 2
    # b's truth is half as steep in the score's logit and higher by 1/2.
    chance = 1 / (1 + np.exp(-np.where(group == 0, logit, 0.5 * logit + 0.5)))
    table = {
        "truth": (rng.random(n) < chance).astype(int),
        "score": score,
        "group": [("a", "b")[g] for g in group],
    }
    rows = audited(table, decision=None, score="score")
    slopes = {r["group"]: r for r in rows.where(measure="calibration_slope")}
    assert slopes["a"]["family_low"] < 1 < slopes["a"]["family_high"]
    assert slopes["b"]["family_low"] < 0.5 < slopes["b"]["family_high"]
    shift = {r["group"]: r for r in rows.where(measure="calibration_intercept")}
    assert shift["a"]["low"] < 0 < shift["a"]["high"]
    assert shift["b"]["low"] > 0.2
    curve = list(rows.where(measure="calibration", group="a"))
    assert [r["stratum"] for r in curve][:2] == ["score 0.0-0.1", "score 0.1-0.2"]
    inside = [
        r for r in curve if r["family_low"] <= float(r["stratum"][6:9]) + 0.05 <= r["family_high"]
    ]
    assert len(inside) == 10


def test_strata_show_simpsons_paradox() -> None:
    # Within both departments f is hired 10 points more often; f applies where few are hired.
    cells = [
        ("f", "hard", 1, 300),
        ("f", "hard", 0, 700),
        ("m", "hard", 1, 20),
        ("m", "hard", 0, 80),
    ]
    cells += [
        ("f", "easy", 1, 90),
        ("f", "easy", 0, 10),
        ("m", "easy", 1, 800),
        ("m", "easy", 0, 200),
    ]
    table = table_of(cells, ("group", "site", "decision"))
    decisions = eh.Decisions(
        table, decision="decision", group="group", stratum="site", reference="m"
    )
    audit = eh.audit(decisions)
    gap = {"measure": "selection_rate_gap", "class_": "1", "group": "f"}
    # f 390/1100 = 0.3545, m 820/1100 = 0.7455: −0.391 over all, +0.1 within either.
    assert one(audit.rows, **gap, stratum=None) == pytest.approx((390 - 820) / 1100)
    for stratum in ("easy", "hard"):
        assert one(audit.rows, **gap, stratum=stratum) == pytest.approx(0.1)
    assert one(audit.rows, **gap, stratum="<summary>") == pytest.approx(0.1)
    assert one(audit.rows, "method", **gap, stratum="<summary>") == "mantel-haenszel"
    test = {**gap, "measure": "selection_rate_gap_homogeneity", "stratum": "<summary>"}
    assert one(audit.rows, "p", **test) == pytest.approx(1.0, abs=1e-6)
    assert audit.notes == (
        "Selection rate of '0', f against m: the gap is +0.391 in the whole table and -0.100 "
        "within strata, so the strata explain its sign (Simpson's paradox).",
        "Selection rate of '1', f against m: the gap is -0.391 in the whole table and +0.100 "
        "within strata, so the strata explain its sign (Simpson's paradox).",
    )


def test_numeric_strata_are_cut_at_the_edges() -> None:
    table = {"decision": [0, 1] * 50, "group": ["a", "a", "b", "b"] * 25, "age": list(range(100))}
    decisions = eh.Decisions(
        table, decision="decision", group="group", stratum="age", stratum_edges=[18, 65]
    )
    rows = eh.audit(decisions, keep_small=True).rows.where(
        measure="selection_rate", class_="1", group="a"
    )
    assert dict(zip(rows.plain("stratum"), rows.plain("n"))) == {
        None: 50,
        "<18": 10,
        "18-65": 23,
        ">=65": 17,
    }


def test_crossed_groups() -> None:
    posts = moderation(3000, seed=6).frame
    decisions = eh.Decisions(posts, decision="removed", group=["gender", "region"], crossed=True)
    rows = eh.audit(decisions).rows.where(measure="selection_rate", class_="1")
    assert set(rows["attribute"]) == {"gender", "region", "gender*region"}
    crossed = {r["group"]: r["n"] for r in rows.where(attribute="gender*region")}
    assert len(crossed) == 12
    counts = posts.group_by("gender", "region").len()
    assert crossed == {f"{g}*{r}": n for g, r, n in counts.rows()}


def test_clusters_widen_intervals_as_much_as_they_should() -> None:
    # Every row four times over, each original a cluster: the same interval as the original's.
    posts = moderation(1500, seed=8).frame.select("post", "gender", "violates", "removed")
    roles = {"truth": "violates", "decision": "removed", "group": "gender"}
    once = audited(posts, **roles)
    four = audited(pl.concat([posts] * 4), **roles, cluster="post")
    naive = audited(pl.concat([posts] * 4), **roles)
    where = {
        "measure": "selection_rate_gap",
        "class_": "1",
        "group": "nonbinary",
        "reference": "male",
    }
    width = [one(r, "high", **where) - one(r, "low", **where) for r in (once, four, naive)]
    assert width[1] == pytest.approx(width[0], rel=0.05)
    assert width[2] == pytest.approx(width[0] / 2, rel=0.05)
    assert one(four, "method", **where) == "newcombe, clustered"
    assert one(four, **where) == pytest.approx(one(once, **where), abs=1e-12)


def test_partial_truth_by_inverse_probability() -> None:
    # Removed posts are always reviewed, kept posts one time in five: rates as reviewed are wrong.
    full = moderation(40_000, seed=9).frame
    rng = np.random.default_rng(90)
    share = np.where(full["removed"] == 1, 1.0, 0.2)
    seen = rng.random(len(full)) < share
    partly = full.with_columns(
        share=share, violates=pl.when(pl.Series(seen)).then(pl.col("violates"))
    )
    roles = {"truth": "violates", "decision": "removed", "group": "gender"}
    whole = audited(full, **roles)
    naive = audited(partly, **roles)
    weighed = audited(partly, **roles, review_share="share")
    for measure in ("true_positive_rate", "false_positive_rate", "accuracy"):
        where = {"measure": measure, "class_": "1", "group": "female"}
        true, found = one(whole, **where), one(weighed, **where)
        assert one(weighed, "low", **where) < true < one(weighed, "high", **where)
        assert abs(found - true) < 0.25 * abs(one(naive, **where) - true)
    # Everybody has a decision, so the selection rate needs no review.
    where = {"measure": "selection_rate", "class_": "1", "group": "female"}
    assert one(weighed, **where) == pytest.approx(one(whole, **where), abs=1e-12)


def test_a_table_without_truth_gives_what_needs_none() -> None:
    posts = moderation(500, seed=3).frame
    rows = audited(posts, truth=None, decision="removed", group="gender")
    assert {str(m).split("_gap")[0] for m in rows["measure"]} <= {
        "selection_rate",
        "selection_rate_ratio",
        "selection_rate_spread",
        "selection_rate_spread_corrected",
        "selection_rate_spread_null_level",
        "impact_ratio",
    }


def test_what_the_lens_lacks() -> None:
    table = {"a": [1, 2], "b": [1, 2], "c": [0, 1]}
    needs = "a decision column, or a score and a threshold"
    assert statistical.lacks(eh.Decisions(table, group="a")) == needs
    assert statistical.lacks(eh.Decisions(table, group="a", decision="b")) is None
    assert statistical.lacks(eh.Decisions(table, group="a", truth="c", score="b")) is None
    assert Options().level == 0.95


ERRORS = {"false_negative", "false_positive"}
NEW_CELLS = {
    "missed share of errors": Cells(hits={"false_negative"}, cases=ERRORS),
    "found among all decided or due": Cells(
        hits={"true_positive"}, cases={"true_positive", *ERRORS}
    ),
    "unreviewed share of the selected": Cells(
        hits={"unreviewed_selected"},
        cases={"unreviewed_selected", "true_positive", "false_positive"},
    ),
}
EVERY_CELLS = {name: cells_of(name) for name in counted_rates()} | NEW_CELLS


@pytest.mark.parametrize("name", EVERY_CELLS)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_classes_move_together_as_the_counts_say(size: int, name: str) -> None:
    """What margins give for one class against the rest equals the sum over cells of influences."""
    generator = np.random.default_rng(size)
    counts = generator.integers(0, 40, (4, size + 1, size)).astype(float)
    counts[3] = 0
    truth, decision = np.indices((size + 1, size)).reshape(2, -1)
    hits, cases = (np.array(mask) for mask in EVERY_CELLS[name].masks)
    tops, bottoms = [], []
    for place in range(size):
        state = np.where(truth == size, 2, (truth == place).astype(int))
        decided = (decision == place).astype(int)
        tops.append(hits[state, decided])
        bottoms.append(cases[state, decided])
    expected = rate_covariance(counts.reshape(4, -1), numerators=tops, denominators=bottoms)
    found = class_covariance(counts, EVERY_CELLS[name])
    assert found == pytest.approx(expected, abs=1e-15, nan_ok=True)
    assert np.isnan(found[3]).all()
    if EVERY_CELLS[name].disjoint:
        assert np.nanmax(np.abs(expected * (1 - np.eye(size)))) == 0


def closed_form(counts: np.ndarray, rate: str) -> np.ndarray:
    """The covariance of three rates as algebra gives it for each of them alone."""
    size = counts.shape[-1]
    index = np.arange(size)
    known = counts[:, :size]
    decided, cases = known.sum(axis=1), known.sum(axis=2)
    apart = known.copy()
    apart[:, index, index] = 0.0
    hit = known[:, index, index]
    if rate != "false_positive_rate":
        # Rates of one denominator: the multinomial covariance of what is counted.
        count = counts.sum(axis=1) if rate == "selection_rate" else decided + cases - 2 * hit
        total = (counts if rate == "selection_rate" else known).sum(axis=(1, 2))[:, None, None]
        both = np.zeros_like(apart)
        if rate == "accuracy":
            both = apart + apart.transpose(0, 2, 1)
        both[:, index, index] = count
        return (both - count[:, :, None] * count[:, None, :] / total) / total**2
    wrong, n = decided - hit, cases.sum(axis=1)[:, None] - cases
    share = wrong / n
    crossed = (wrong[:, :, None] - apart.transpose(0, 2, 1)) * share[:, None, :]
    outside = n[:, :, None] - cases[:, None, :]
    outside[:, index, index] = n
    both = share[:, :, None] * share[:, None, :] * outside
    both -= crossed + crossed.transpose(0, 2, 1)
    both[:, index, index] += wrong
    return both / (n[:, :, None] * n[:, None, :])


@pytest.mark.parametrize("rate", ["selection_rate", "accuracy", "false_positive_rate"])
def test_many_classes_move_together_as_algebra_says(rate: str) -> None:
    counts = np.random.default_rng(0).integers(0, 400, (20, 29, 28)).astype(float)
    found = class_covariance(counts, cells_of(rate))
    expected = closed_form(counts, rate)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


def test_rows_of_one_cluster_say_why_they_have_no_interval() -> None:
    rng = np.random.default_rng(2)
    n = 300
    group = np.array(["a", "b", "c"])[np.repeat([0, 1, 2], [140, 140, 20])]
    table = {
        "group": group,
        "truth": rng.integers(0, 2, n),
        "decision": rng.integers(0, 2, n),
        # c's rows are all one labeler's.
        "labeler": np.where(group == "c", 99, rng.integers(0, 12, n)),
    }
    rows = audited(table, cluster="labeler", reference="a")
    own = {"class_": "1", "group": "c"}
    alone = "all cases in the group are one cluster"
    for measure in ("selection_rate", "selection_rate_gap", "selection_rate_ratio"):
        more = {} if measure == "selection_rate" else {"reference": "a"}
        assert one(rows, measure=measure, **own, **more) is not None
        assert one(rows, "low", measure=measure, **own, **more) is None
        assert one(rows, "no_interval", measure=measure, **own, **more) == alone
        assert one(rows, "undefined", measure=measure, **own, **more) is None
    other = {"class_": "1", "group": "b", "reference": "c", "measure": "selection_rate_gap"}
    turned = audited(table, cluster="labeler", reference="c")
    reference = "all cases in the reference are one cluster"
    assert one(turned, "no_interval", **other) == reference
    assert one(turned, "undefined", **other) is None
    # To the others together c adds what one case would, so that their interval stays.
    rest = {"class_": "1", "group": "b", "reference": "<rest>", "measure": "selection_rate_gap"}
    assert one(rows, "no_interval", **rest) is None
    assert one(rows, "undefined", **rest) is None
    without = audited(
        pl.DataFrame(table).filter(pl.col("group") != "c"), cluster="labeler", reference="<rest>"
    )
    width = one(rows, "high", **rest) - one(rows, "low", **rest)
    assert width > one(without, "high", **rest) - one(without, "low", **rest)


def test_a_rate_that_rests_on_one_case_says_so() -> None:
    # At 0.17 cases expected Wilson's interval holds in 84 of 100 samples.
    table = {"d": [1] + [0] * 39 + [1] * 39 + [0] + [1, 0] * 20, "g": ["a"] * 40 + ["b"] * 40}
    table["g"] += ["c"] * 40
    rows = eh.audit(table, decision="d", group="g", lenses=["statistical"]).rows
    methods = {
        row["group"]: row["method"] for row in rows.where(measure="selection_rate", class_="1")
    }
    assert methods["a"] == methods["b"]
    assert methods["a"] == "wilson; it rests on one case, and may hold less often than it says"
    assert methods["c"] == "wilson"
