"""The thresholds lens: oracles, engines, planted thresholds, coverage and bad input."""

import json
import re
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies import unit_grid as unit_margins
from evenhand.errors import DataError, UsageError
from evenhand.findings.run import audit
from evenhand.lenses.rows import LensResult, Options
from evenhand.lenses.thresholds import lens as thresholds
from evenhand.simulate.scores import ScoreGroup, simulate_scores
from evenhand.stats.thresholds.histogram import rule_of_thumb_bandwidth, score_histogram
from evenhand.stats.thresholds.local import local_moments

ORACLES = json.loads((Path(__file__).parents[1] / "oracles" / "oracles.json").read_text())
LINE = ORACLES["3.4_local_linear"]
Z = 1.959963984540054
ROLES = {"truth": "truth", "score": "score", "group": "group", "threshold": 0.5}


def measured(data, *, options=None, level=0.95, seed=0, **roles) -> LensResult:
    chosen = Decisions(data, **(ROLES | roles))
    return thresholds.measure(chosen, Options(level=level, seed=seed, settings=options or {}))


def one(result: LensResult, measure: str, group: str, **more) -> dict:
    rows = list(result.rows.where(measure=measure, group=group, **({"stratum": None} | more)))
    assert len(rows) == 1
    return rows[0]


@pytest.fixture(scope="module")
def planted() -> pl.DataFrame:
    return simulate_scores(
        {
            "f": ScoreGroup(n=6000, shift=0.9),
            "m": ScoreGroup(n=8000),
            "x": ScoreGroup(n=3000, threshold=0.4),
        },
        seed=5,
    ).frame


@pytest.fixture
def one_pass(monkeypatch) -> None:
    """Every table counts as large."""
    monkeypatch.setattr(unit_margins, "LARGE", 0)


class TestOracles:
    def line(self, **options) -> LensResult:
        data = {"score": LINE["scores"], "truth": [int(y) for y in LINE["y"]], "group": ["a"] * 21}
        return measured(data, options={"bandwidth": LINE["d"]} | options)

    def test_value_is_the_local_quadratic_in_the_middle_of_its_interval(self):
        row = one(self.line(), "implied_threshold", "a")
        assert row["value"] == pytest.approx(LINE["local_quadratic_beta0"], abs=1e-9)
        assert row["n"] == LINE["n_in"]
        assert "h=0.15, bandwidth given" in row["method"]
        middle = (logit(row["low"]) + logit(row["high"])) / 2
        assert logit(row["value"]) == pytest.approx(middle, abs=1e-9)

    def test_the_papers_local_line_stands_beside_it(self):
        row = one(self.line(), "implied_threshold_linear", "a")
        assert row["value"] == pytest.approx(LINE["beta0"], abs=1e-9)
        assert row["low"] is None
        assert row["undefined"] is None
        assert row["no_interval"].startswith("its bias on a curve is not known")

    def test_interval_is_the_local_quadratic_on_the_log_odds_scale(self):
        row = one(self.line(), "implied_threshold", "a")
        centre, error = LINE["local_quadratic_beta0"], LINE["local_quadratic_se_hc1"]
        half = Z * error / (centre * (1 - centre))
        assert row["low"] == pytest.approx(expit(logit(centre) - half), abs=1e-8)
        assert row["high"] == pytest.approx(expit(logit(centre) + half), abs=1e-8)

    def test_cost_ratio_is_the_image_of_the_implied_threshold(self):
        result = self.line()
        row, ratio = one(result, "implied_threshold", "a"), one(result, "cost_ratio", "a")
        assert ratio["value"] == pytest.approx(1 / row["value"] - 1, rel=1e-12)
        assert ratio["low"] == pytest.approx((1 - row["high"]) / row["high"], rel=1e-12)
        assert ratio["family_high"] == pytest.approx(1 / row["family_low"] - 1, rel=1e-12)

    def test_window_mean_stands_beside_it(self):
        row = one(self.line(), "implied_threshold_window", "a")
        assert row["value"] == pytest.approx(LINE["window_mean"], abs=1e-9)
        assert "biased" in row["method"]

    def test_few_effective_rows_are_noted(self):
        # n_eff = 10.58 of 15 rows: the value is given, n is under the floor of 50.
        assert any("only 10.6 effective rows" in note for note in self.line().notes)

    def test_hc3_comes_from_the_histogram(self):
        table = self.line().details["attributes"][0]["groups"][0]
        assert table["standard_error_hc3"] > table["standard_error"]

    def test_noisy_truth_is_corrected_by_rogan_and_gladen(self):
        # 3.10: (0.12 + 0.98 - 1) / (0.95 + 0.98 - 1) = 0.1075; here on the local quadratic.
        row = one(
            self.line(truth_sensitivity=0.95, truth_specificity={"a": 0.98}),
            "implied_threshold_corrected",
            "a",
        )
        assert row["value"] == pytest.approx(
            (LINE["local_quadratic_beta0"] - 0.02) / 0.93, abs=1e-9
        )
        assert f"raw {LINE['local_quadratic_beta0']:.4f}" in row["method"]
        want = ORACLES["3.10_label_noise_rogan_gladen"]
        assert (want["observed_prevalence"] - 0.02) / 0.93 == pytest.approx(want["corrected"])

    def test_a_charter_may_say_how_good_the_truth_is(self):
        quality = {"all": {"sensitivity": 0.95, "specificity": 0.98}}
        row = one(self.line(truth_quality=quality), "implied_threshold_corrected", "a")
        assert row["value"] == pytest.approx(
            (LINE["local_quadratic_beta0"] - 0.02) / 0.93, abs=1e-9
        )


def cancer(times: int = 1) -> dict[str, list]:
    want = ORACLES["3.1_cancer_reconstruction"]
    rows: dict[str, list] = {"score": [], "truth": [], "group": []}
    for group in ("female", "male"):
        for risk, n, k in zip(
            (1 / 8, 1 / 6, 1 / 4, 1 / 2), want[f"{group}_n"], want[f"{group}_cancers"]
        ):
            rows["score"] += [risk] * n * times
            rows["truth"] += ([1] * k + [0] * (n - k)) * times
            rows["group"] += [group] * n * times
    return rows


class TestDiscrete:
    def test_two_highest_are_right_for_every_ratio_from_3_to_5_and_three_from_5_to_7(self):
        result = measured(cancer(), threshold={"female": 0.25, "male": 1 / 6})
        for group, low, high in (("female", 3, 5), ("male", 5, 7)):
            row = one(result, "cost_ratio", group)
            assert (row["set_low"], row["set_high"]) == pytest.approx((low, high))
            assert row["value"] is None
            assert row["undefined"] is None
            assert row["method"].startswith("set-identified")
            assert row["family_low"] < row["low"] < low
            assert row["family_high"] > row["high"] > high
            same = one(result, "implied_threshold", group)
            assert (same["set_low"], same["set_high"]) == pytest.approx(
                (1 / (1 + high), 1 / (1 + low))
            )
            assert same["low"] == pytest.approx(1 / (1 + row["high"]))

    def test_outer_limits_are_wilsons_at_the_ends(self):
        from statsmodels.stats.proportion import proportion_confint

        # Women at 0.25: 3 of 12 accepted, 1 of 6 refused.
        row = one(measured(cancer(), threshold=0.25), "implied_threshold", "female")
        assert row["low"] == pytest.approx(proportion_confint(1, 6, method="wilson")[0], abs=1e-9)
        assert row["high"] == pytest.approx(proportion_confint(3, 12, method="wilson")[1], abs=1e-9)

    def test_a_verdict_sits_on_the_outer_limits(self):
        roles = ROLES | {"threshold": 0.25}
        for limit, verdict in (
            ("0.5:30", "within"),
            ("4:4.5", "cannot tell"),
            ("30:90", "outside"),
        ):
            found = audit(Decisions(cancer(100), **roles), limits={"cost_ratio": limit})
            rows = found.rows.where(lens="thresholds", measure="cost_ratio")
            assert set(rows["verdict"]) == {verdict}

    def test_the_set_of_a_small_cell_is_hidden(self):
        roles = ROLES | {"threshold": 0.25}
        found = audit(Decisions(cancer(), **roles), lenses=["thresholds"])
        for row in found.rows.where(measure="cost_ratio"):
            assert row["n"] < 10
            assert row["set_low"] is row["low"] is row["family_high"] is None
            assert row["undefined"] == "fewer than 10 cases: hidden"
        assert "anything from" not in str(found)

    def test_prevalence_on_both_sides_has_wilson_limits(self):
        result = measured(cancer(), threshold=0.25)
        row = one(result, "prevalence_lowest_accepted", "female")
        from statsmodels.stats.proportion import proportion_confint

        assert (row["value"], row["n"]) == (0.25, 12)
        assert (row["low"], row["high"]) == pytest.approx(
            proportion_confint(3, 12, method="wilson"), abs=1e-9
        )
        assert one(result, "prevalence_highest_refused", "male")["value"] == pytest.approx(1 / 6)

    def test_sets_are_compared_end_by_end(self):
        # Women 3 to 5 (two highest), men 5 to 7 (three highest): 5/5 to 7/3.
        result = measured(cancer(), threshold={"female": 0.25, "male": 1 / 6}, reference="female")
        row = one(result, "cost_ratio_ratio", "male")
        assert row["value"] is row["undefined"] is row["p"] is None
        assert (row["set_low"], row["set_high"]) == pytest.approx((1.0, 7 / 3))
        assert row["family_low"] < row["low"] < 1.0
        assert row["family_high"] > row["high"] > 7 / 3
        gap = one(result, "implied_threshold_gap", "male")
        assert (gap["set_low"], gap["set_high"]) == pytest.approx((1 / 8 - 1 / 4, 0.0))
        assert gap["low"] < gap["set_low"] < gap["set_high"] < gap["high"]
        assert row["method"].startswith("set-identified")
        own, other = (one(result, "cost_ratio", name) for name in ("male", "female"))
        assert (row["n"], row["n_reference"]) == (own["n"], other["n"])

    def test_compared_sets_are_shown_and_judged(self):
        # Whole-number scores far apart: no row lies within any bandwidth of the cut.
        generator = np.random.default_rng(3)
        score = np.tile([1, 2, 3, 4, 5], 400)
        group = np.repeat(["a", "b"], 1000)
        chance = np.where(group == "a", 0.04, 0.15) * score
        truth = (generator.random(2000) < chance).astype(int)
        table = {"score": score, "group": group, "truth": truth}
        roles = ROLES | {"threshold": 4, "reference": {"group": "a"}}
        found = audit(
            Decisions(table, **roles), lenses=["thresholds"], limits={"cost_ratio_ratio": 0.8}
        )
        (row,) = found.rows.where(measure="cost_ratio_ratio")
        assert (row["n"], row["n_reference"]) == (200, 200)
        assert row["undefined"] is None
        assert row["low"] < row["set_low"] < row["set_high"] < row["high"] < 0.8
        assert (row["verdict"], found.verdict) == ("outside", "outside")
        (finding,) = found.findings
        assert (finding.verdict, finding.claim.direction) == ("outside", "less")
        assert "decision '1' on stronger evidence than group a: from a" in finding.line
        assert "One missed '1' weighs anything from" in finding.line
        assert "hidden" not in str(found)
        assert "inf" not in str(found).replace("information", "")

    def test_no_number_of_cases_settles_a_set_across_its_limit(self):
        data = {"score": [1, 2, 3] * 200, "group": ["a", "b"] * 300}
        data["truth"] = [int(7 * i % 10 < 2 * s) for i, s in enumerate(data["score"])]
        roles = ROLES | {"threshold": 3, "reference": {"group": "a"}}
        found = audit(
            Decisions(data, **roles), lenses=["thresholds"], limits={"cost_ratio_ratio": 0.8}
        )
        (row,) = found.rows.where(measure="cost_ratio_ratio")
        assert row["set_low"] < 0.8
        assert row["set_high"] > 1.25
        (finding,) = found.findings
        assert finding.line.startswith("The data cannot tell whether group b")
        assert finding.settle.reason == "no number"

    def test_an_end_that_nothing_bounds_is_not_called_infinite(self):
        # Nobody below the threshold is positive: any cost ratio from 1 on fits.
        data = {"score": [0.2] * 60 + [0.8] * 60, "group": ["a"] * 120}
        data["truth"] = [0] * 60 + [1, 0] * 30
        row = one(measured(data), "cost_ratio", "a")
        assert (row["set_low"], row["set_high"], row["high"]) == (1.0, None, None)
        found = audit(Decisions(data, **ROLES), lenses=["thresholds"])
        assert "inf" not in str(found).replace("information", "")

    def test_prevalence_that_falls_at_the_threshold_leaves_no_ratio(self):
        data = {"score": [0.2] * 40 + [0.8] * 40, "group": ["a"] * 80}
        data["truth"] = [1, 0] * 20 + [1, 0, 0, 0] * 10
        row = one(measured(data), "cost_ratio", "a")
        assert "no cost ratio makes this threshold the best" in row["undefined"]
        assert row["low"] is None

    def test_a_small_sample_of_continuous_scores_is_not_discrete(self):
        data = {"score": np.linspace(0.3, 0.7, 15), "truth": [0, 1, 0] * 5, "group": ["a"] * 15}
        assert not len(measured(data).rows.where(measure="prevalence_lowest_accepted"))

    def test_the_first_line_names_the_set(self):
        roles = ROLES | {"threshold": 0.25}
        found = audit(Decisions(cancer(10), **roles), lenses=["thresholds"])
        assert found.findings[0].sentence.startswith(
            "Women get decision '1' from a 17% to 25% chance of '1' on (7.9% to 36%); men 17% to "
            "25%; no difference between them is shown. For women one missed '1' is treated as "
            "seriously as anything from 3.0 to 5.0"
        )


class TestAgainstRows:
    """The engine's sums against NumPy over the rows, and statsmodels over NumPy."""

    def test_every_group_agrees_with_numpy_and_statsmodels(self, planted):
        import statsmodels.api as sm

        result = measured(planted, threshold="threshold")
        for table in result.details["attributes"][0]["groups"]:
            rows = planted.filter(pl.col("group") == table["group"])
            x = (rows["score"] - rows["threshold"]).to_numpy()
            y, h = rows["truth"].to_numpy(), table["bandwidth"]
            near = np.abs(x) < h
            w = (1 - np.abs(x[near] / h) ** 3) ** 3
            line = sm.WLS(y[near], np.vander(x[near], 2, increasing=True), weights=w).fit()
            bent = sm.WLS(y[near], np.vander(x[near], 3, increasing=True), weights=w).fit(
                cov_type="HC1"
            )
            beside = one(result, "implied_threshold_linear", table["group"])
            assert beside["value"] == pytest.approx(line.params[0], abs=1e-9)
            row = one(result, "implied_threshold", table["group"])
            assert row["value"] == pytest.approx(bent.params[0], abs=1e-9)
            assert row["n"] == near.sum()
            half = Z * bent.bse[0] / (bent.params[0] * (1 - bent.params[0]))
            assert row["low"] == pytest.approx(expit(logit(bent.params[0]) - half), abs=1e-8)

    def test_the_bandwidth_is_fan_and_gijbels_rule(self, planted):
        rows = planted.filter(pl.col("group") == "m")
        cells = score_histogram(rows["score"], truth=rows["truth"], threshold=0.5)
        result = measured(planted.filter(pl.col("group") == "m"))
        table = result.details["attributes"][0]["groups"][0]
        assert table["bandwidth"] == pytest.approx(rule_of_thumb_bandwidth(cells)[0], rel=0.01)

    def test_the_histogram_alone_is_close_to_the_rows(self, planted, monkeypatch):
        exact = one(measured(planted), "implied_threshold", "m")
        monkeypatch.setattr("evenhand.lenses.thresholds.margins.MOST_EXACT_CELLS", 0)
        binned = one(measured(planted), "implied_threshold", "m")
        assert "sums from the histogram" in binned["method"]
        spread = (exact["high"] - exact["low"]) / (2 * Z)
        assert abs(binned["value"] - exact["value"]) < 0.03 * spread
        assert binned["n"] == pytest.approx(exact["n"], rel=0.01)

    def test_sampling_weights_multiply_the_kernel(self):
        frame = simulate_scores(review="sampled", seed=3).frame.with_columns(
            share=1 / pl.col("weight")
        )
        by_weight = measured(frame, weight="weight")
        row = one(by_weight, "implied_threshold", "A")
        known = frame.filter((pl.col("group") == "A") & pl.col("truth").is_not_null())
        h = by_weight.details["attributes"][0]["groups"][0]["bandwidth"]
        sums = local_moments(
            known["score"],
            truth=known["truth"],
            threshold=0.5,
            bandwidth=h,
            weights=known["weight"],
        )
        from evenhand.stats.thresholds.local import local_fit

        assert row["value"] == pytest.approx(local_fit(sums, degree=2).value[0], abs=1e-9)
        share = one(measured(frame, review_share="share"), "implied_threshold", "A")
        assert share["value"] == pytest.approx(row["value"], abs=1e-9)
        assert share["low"] == pytest.approx(row["low"], abs=1e-9)
        unknown = by_weight.excluded["no truth, score or threshold (thresholds)"]
        assert unknown == frame["truth"].null_count()

    def test_clusters_of_one_row_change_little_and_copies_change_the_error(self, planted):
        plain = one(measured(planted), "implied_threshold", "m")
        twice = pl.concat([planted.with_row_index("who")] * 2)
        clustered = one(measured(twice, cluster="who"), "implied_threshold", "m")
        wide = plain["high"] - plain["low"]
        # Two copies of each row in one cluster say no more than one row: the same width, where
        # rows counted as independent would make it narrower by the square root of two.
        assert clustered["high"] - clustered["low"] == pytest.approx(wide, rel=0.1)
        assert "cluster-robust" in clustered["method"]

    def test_clusters_that_reach_into_both_groups_enter_the_contrast(self):
        rng = np.random.default_rng(2)
        s = rng.beta(2, 2, 3000)
        y = (rng.random(3000) < s).astype(int)
        data = pl.DataFrame({"score": s, "truth": y, "who": np.arange(3000)})
        both = pl.concat([data.with_columns(group=pl.lit(g)) for g in ("a", "b")])
        row = one(measured(both, cluster="who"), "implied_threshold_gap", "b")
        # The same rows in both groups: the gap is 0 and, through the clusters, without error.
        assert row["value"] == pytest.approx(0, abs=1e-12)
        assert abs(row["high"] - row["low"]) < 1e-6


class TestEngines:
    @pytest.fixture(scope="class")
    @staticmethod
    def frame(planted) -> pl.DataFrame:
        rng = np.random.default_rng(0)
        return planted.with_columns(
            weight=pl.Series(rng.uniform(0.5, 2, planted.height)),
            who=pl.Series(rng.integers(0, 4000, planted.height)),
            place=pl.Series(rng.choice(["north", "south"], planted.height)),
            shift=pl.Series(rng.choice(["day", "night"], planted.height)),
        )

    @staticmethod
    def agree(left: LensResult, right: LensResult) -> None:
        assert len(left.rows) == len(right.rows)
        for column in ("value", "low", "high", "family_low", "family_high", "n", "p"):
            np.testing.assert_allclose(left.rows[column], right.rows[column], rtol=0, atol=1e-9)
        assert [t.fingerprint() for t in left.tallies] == [t.fingerprint() for t in right.tallies]

    @pytest.mark.parametrize(
        "roles",
        [
            {},
            {"threshold": "threshold"},
            {"threshold": {"f": 0.5, "m": 0.45, "x": 0.4}, "weight": "weight"},
            {"cluster": "who"},
            {"stratum": "shift", "group": ["group", "place"], "crossed": True},
        ],
        ids=["plain", "column", "by group and weighted", "clusters", "crossed in strata"],
    )
    def test_equal_on_polars_duckdb_pandas_and_arrow(self, frame, roles):
        want = measured(frame.lazy(), **roles)
        relation = duckdb.connect()
        relation.register("rows", frame.to_arrow())
        for data in (relation.table("rows"), frame.to_pandas(), frame.to_arrow()):
            self.agree(want, measured(data, **roles))

    @pytest.mark.parametrize("roles", [{}, {"stratum": "shift"}], ids=["plain", "in strata"])
    def test_one_pass_is_equal_on_every_engine(self, frame, roles, one_pass):
        gappy = frame.with_columns(
            score=pl.when(pl.col("who") != 7).then("score"),
            truth=pl.when(pl.col("who") != 9).then("truth"),
        )
        want = measured(gappy.lazy(), **roles)
        relation = duckdb.connect()
        relation.register("rows", gappy.to_arrow())
        for data in (relation.table("rows"), gappy.to_pandas(), gappy.to_arrow()):
            self.agree(want, measured(data, **roles))
        assert want.excluded["no truth, score or threshold (thresholds)"] == int(
            gappy.select(pl.col("score").is_null() | pl.col("truth").is_null()).sum().item()
        )

    def test_string_and_boolean_truths_read_alike(self, frame):
        want = measured(frame)
        words = frame.with_columns(truth=pl.col("truth").replace_strict({0: "ok", 1: "bad"}))
        self.agree_values(want, measured(words, positive="bad"))
        self.agree_values(want, measured(frame.with_columns(pl.col("truth").cast(pl.Boolean))))
        self.agree_values(want, measured(frame.with_columns(pl.col("truth").cast(pl.Float64))))

    @staticmethod
    def agree_values(left: LensResult, right: LensResult) -> None:
        np.testing.assert_allclose(left.rows["value"], right.rows["value"], atol=1e-12)

    @pytest.mark.heavy
    def test_equal_on_spark(self, frame, spark):
        # Clusters are looked at beside those of other lenses.
        for roles in ({}, {"threshold": "threshold", "weight": "weight"}):
            native = spark.createDataFrame(frame.to_pandas())
            self.agree(measured(frame, **roles), measured(native, **roles))

    @pytest.mark.heavy
    def test_one_pass_is_equal_on_spark(self, frame, spark, one_pass):
        native = spark.createDataFrame(frame.to_pandas())
        self.agree(measured(frame), measured(native))


class TestOnePass:
    """A large table of scores within [0, 1]: the histogram's bins hold the sums as well."""

    @pytest.fixture
    @staticmethod
    def wide() -> pl.DataFrame:
        rng = np.random.default_rng(5)
        score = rng.beta(2, 2.5, 60_000)
        return pl.DataFrame(
            {
                "group": rng.choice(["f", "m", "x"], 60_000, p=[0.5, 0.4, 0.1]),
                "score": score,
                "truth": (rng.random(60_000) < 1 / (1 + np.exp(-6 * (score - 0.5)))).astype(int),
            }
        )

    def test_estimates_are_those_of_the_rows(self, wide, one_pass, monkeypatch):
        found = measured(wide)
        held = found.details["attributes"][0]["groups"]
        rounded = {table["group"]: table["bandwidth"] * 250 for table in held}
        assert all(h == pytest.approx(round(h)) for h in rounded.values())
        monkeypatch.setattr(unit_margins, "LARGE", 1_000_000)
        for name, cells in rounded.items():
            exact = one(
                measured(wide, options={"bandwidth": cells / 250}), "implied_threshold", name
            )
            mine = one(found, "implied_threshold", name)
            width = exact["high"] - exact["low"]
            assert mine["n"] == exact["n"]
            for end in ("value", "low", "high"):
                assert mine[end] == pytest.approx(exact[end], abs=0.01 * width)

    def test_a_bandwidth_given_is_taken_from_the_rows(self, wide, one_pass, monkeypatch):
        found = one(measured(wide, options={"bandwidth": 0.1037}), "implied_threshold", "f")
        monkeypatch.setattr(unit_margins, "LARGE", 1_000_000)
        rows = one(measured(wide, options={"bandwidth": 0.1037}), "implied_threshold", "f")
        for column in ("value", "low", "high", "family_low", "family_high", "n"):
            assert found[column] == pytest.approx(rows[column], abs=1e-12)

    def test_scores_of_another_range_take_the_longer_way(self, wide, one_pass, monkeypatch):
        other = wide.with_columns(pl.col("score") * 1.2)
        found = measured(other)
        monkeypatch.setattr(unit_margins, "LARGE", 1_000_000)
        TestEngines.agree(found, measured(other))

    def test_rounded_scores_have_their_mass_where_it_is(self, wide, one_pass, monkeypatch):
        grid = wide.with_columns(pl.col("score").round(3))
        found = one(measured(grid), "implied_threshold", "f")
        monkeypatch.setattr(unit_margins, "LARGE", 1_000_000)
        rows = one(measured(grid), "implied_threshold", "f")
        width = rows["high"] - rows["low"]
        # The bandwidth itself is rounded here, which moves the estimate a little.
        assert found["value"] == pytest.approx(rows["value"], abs=0.1 * width)

    def test_what_cannot_be_used_is_refused_all_the_same(self, wide, one_pass):
        broken = wide.with_row_index().with_columns(
            score=pl.when(pl.col("index") == 5).then(float("nan")).otherwise("score")
        )
        with pytest.raises(DataError, match="1 value that is not finite"):
            measured(broken)
        with pytest.raises(UsageError, match=r"threshold=0\.9 is on another scale than the scores"):
            measured(wide.with_columns(pl.col("score") * 100), threshold=0.9)
        # Beyond all scores but on their scale it is a choice like any other.
        beyond = measured(wide.with_columns(pl.col("score") * 0.8), threshold=0.9)
        assert one(beyond, "implied_threshold", "f")["undefined"] == (
            "no score lies within the bandwidth of the threshold"
        )


class TestRows:
    def test_reference_is_the_largest_group_and_contrasts_are_antisymmetric(self, planted):
        one_way = measured(planted)
        assert set(one_way.rows.where(measure="cost_ratio_ratio")["reference"]) == {"m"}
        other = measured(planted, reference="f")
        left = one(one_way, "implied_threshold_gap", "f")
        right = one(other, "implied_threshold_gap", "m")
        assert left["value"] == pytest.approx(-right["value"], abs=1e-12)
        assert left["low"] == pytest.approx(-right["high"], abs=1e-12)
        assert left["p"] == pytest.approx(right["p"])
        assert one(one_way, "cost_ratio_ratio", "f")["value"] == pytest.approx(
            1 / one(other, "cost_ratio_ratio", "m")["value"]
        )

    def test_contrast_is_the_difference_of_independent_groups(self, planted):
        result = measured(planted, options={"bandwidth": 0.2})
        row = one(result, "cost_ratio_ratio", "f")
        logs = {}
        for group in ("f", "m"):
            part = one(result, "cost_ratio", group)
            middle = (np.log(part["low"]) + np.log(part["high"])) / 2
            logs[group] = middle, (np.log(part["high"]) - np.log(part["low"])) / (2 * Z)
        error = np.hypot(logs["f"][1], logs["m"][1])
        assert np.log(row["low"]) == pytest.approx(logs["f"][0] - logs["m"][0] - Z * error)

    def test_family_intervals_are_wider_and_within_bonferroni(self, planted):
        result = measured(planted)
        for row in result.rows.where(measure="cost_ratio"):
            narrow = np.log(row["high"] / row["low"])
            wide = np.log(row["family_high"] / row["family_low"])
            # z for 95 % is 1.960, Bonferroni's for three is 2.394.
            assert 1.1 < wide / narrow <= 2.394 / 1.960 + 1e-3

    def test_everybody_else_as_the_reference(self, planted):
        row = one(measured(planted, reference="<rest>"), "implied_threshold_gap", "f")
        others = planted.filter(pl.col("group") != "f").with_columns(group=pl.lit("rest"))
        apart = pl.concat([planted.filter(pl.col("group") == "f"), others])
        want = one(measured(apart), "implied_threshold_gap", "f")
        assert row["value"] == pytest.approx(want["value"], abs=2e-3)
        assert row["n_reference"] == pytest.approx(want["n_reference"], rel=0.02)
        assert any("everybody else" in n for n in measured(planted, reference="<overall>").notes)

    def test_strata_have_rows_and_one_summary(self, planted):
        rng = np.random.default_rng(1)
        place = pl.Series(rng.choice(["north", "south"], planted.height))
        result = measured(planted.with_columns(place=place), stratum="place")
        north = measured(planted.filter(place == "north"))
        inside = one(result, "implied_threshold", "f", stratum="north")
        alone = one(north, "implied_threshold", "f")
        assert inside["value"] == pytest.approx(alone["value"], abs=0.01)
        parts = [one(result, "implied_threshold_gap", "f", stratum=s) for s in ("north", "south")]
        summary = one(result, "implied_threshold_gap", "f", stratum="<summary>")
        middles = [(p["low"] + p["high"]) / 2 for p in parts]
        assert min(middles) <= summary["value"] <= max(middles)
        assert summary["high"] - summary["low"] < min(p["high"] - p["low"] for p in parts)

    def test_details_are_plain_and_say_how_much_the_bandwidth_matters(self, planted):
        result = measured(planted, options={"evidence": 4, "cost_ratio": 4})
        json.dumps(result.details, allow_nan=False)
        table = result.details["attributes"][0]
        curve = table["groups"][0]["sensitivity"]
        assert curve["bandwidth"] == sorted(curve["bandwidth"])
        assert len(curve["value"]) == len(curve["bandwidth"]) == 7
        calibration = table["groups"][1]["calibration"]
        assert calibration["gap"] == pytest.approx(calibration["implied_threshold"] - 0.5)
        near = table["evidence"]["m"]
        distance = (planted.filter(pl.col("group") == "m")["score"] - 0.5).abs().sort()
        assert [abs(row["score"] - 0.5) for row in near] == pytest.approx(distance[:4].to_list())
        assert len(result.details["cost_curves"]["groups"]) == 3

    def test_no_evidence_unless_asked_for(self, planted):
        assert "evidence" not in measured(planted).details["attributes"][0]

    def test_evidence_carries_the_items_named(self, planted):
        named = planted.with_row_index("post").with_columns(pl.col("post").cast(pl.String))
        result = measured(named, item="post", options={"evidence": 1})
        nearest = named.filter(pl.col("group") == "f").sort((pl.col("score") - 0.5).abs())
        assert result.details["attributes"][0]["evidence"]["f"][0]["item"] == nearest["post"][0]

    @settings(max_examples=8, deadline=None)
    @given(st.permutations(["f", "m", "x"]), st.integers(0, 100))
    def test_names_and_order_of_rows_do_not_matter(self, planted, names, seed):
        renamed = dict(zip(["f", "m", "x"], names))
        shuffled = planted.sample(fraction=1, shuffle=True, seed=seed).with_columns(
            pl.col("group").replace_strict(renamed)
        )
        left, right = measured(planted), measured(shuffled)
        for old, new in renamed.items():
            a, b = one(left, "cost_ratio", old), one(right, "cost_ratio", new)
            assert (a["value"], a["low"]) == pytest.approx((b["value"], b["low"]), abs=1e-9)

    def test_duplicated_data_keeps_the_value_at_the_same_bandwidth(self, planted):
        options = {"bandwidth": 0.1}
        plain = one(measured(planted, options=options), "implied_threshold", "f")
        double = one(
            measured(pl.concat([planted, planted]), options=options), "implied_threshold", "f"
        )
        assert double["value"] == pytest.approx(plain["value"], abs=1e-12)
        assert double["n"] == 2 * plain["n"]

    def test_unit_weights_change_nothing(self, planted):
        plain = measured(planted)
        weighted = measured(planted.with_columns(one=pl.lit(1.0)), weight="one")
        for column in ("value", "low", "high", "n"):
            np.testing.assert_allclose(plain.rows[column], weighted.rows[column], atol=1e-9)

    def test_uneven_weights_bring_the_effective_rows_under_the_floor(self):
        rng = np.random.default_rng(0)
        s = rng.random(400)
        data = {"score": s, "truth": (rng.random(400) < s).astype(int), "group": ["a"] * 400}
        data["weight"] = np.where(np.arange(400) % 40 == 0, 1000.0, 0.01)
        row = one(measured(data, weight="weight"), "implied_threshold", "a")
        assert row["n"] < 30
        assert row["value"] is not None
        assert "n is effective rows" in row["method"]

    def test_far_scores_do_not_hide_the_rest(self, planted):
        far = pl.DataFrame({"group": ["m"], "score": [1e6], "threshold": [0.5], "truth": [1]})
        mixed = pl.concat(
            [planted.select(far.columns), far.cast(planted.select(far.columns).schema)]
        )
        row = one(measured(mixed, options={"bandwidth": 0.1}), "implied_threshold", "m")
        want = one(measured(planted, options={"bandwidth": 0.1}), "implied_threshold", "m")
        assert row["value"] == pytest.approx(want["value"], abs=1e-9)
        table = measured(mixed).details["attributes"][0]["groups"][1]
        assert table["bandwidth"] < 1


class TestPlanted:
    def test_finds_what_was_planted_and_nothing_where_nothing_was(self):
        groups = {"a": ScoreGroup(n=20000), "b": ScoreGroup(n=20000, shift=0.8)}
        groups["c"] = ScoreGroup(n=20000)
        found = simulate_scores(groups, seed=11)
        result = measured(found.frame)
        for group, truth in zip(found.planted["group"], found.planted["cost_ratio"]):
            row = one(result, "cost_ratio", group)
            assert row["family_low"] < truth < row["family_high"]
        assert one(result, "cost_ratio_ratio", "b")["family_high"] < 1
        same = one(result, "cost_ratio_ratio", "c")
        assert same["family_low"] < 1 < same["family_high"]

    def test_the_first_line_is_one_a_policy_owner_understands(self, planted):
        found = audit(Decisions(planted, **ROLES), lenses=["thresholds"])
        assert re.fullmatch(
            r"Group f gets decision '1' on stronger evidence than group m: from a 6\d% chance of "
            r"'1' on \(\d\d% to \d\d%\) against \d\d%\. One missed '1' weighs 0\.\d\d times as "
            r"much \(0\.\d\d to 0\.\d\d\)\.",
            found.findings[0].sentence,
        )

    def test_a_band_is_judged_by_the_family_interval(self, planted):
        found = audit(
            Decisions(planted, **ROLES), lenses=["thresholds"], limits={"cost_ratio": "1.1:2"}
        )
        assert found.verdict == "outside"
        assert found.findings[0].headline == (
            "Group f gets decision '1' only on stronger evidence than agreed"
        )
        assert ", where 33% to 48% was agreed. " in found.findings[0].sentence
        assert " Agreed: 1.1 to 2. " in found.findings[0].sentence

    def test_a_choice_judged_on_both_scales_is_one_finding(self, planted):
        limits = {"cost_ratio": "1.1:2", "implied_threshold": f"{1 / 3}:{1 / 2.1}"}
        found = audit(Decisions(planted, **ROLES), lenses=["thresholds"], limits=limits)
        assert [f.measure for f in found.findings if f.verdict == "outside"] == ["cost_ratio"]
        alone = audit(
            Decisions(planted, **ROLES),
            lenses=["thresholds"],
            limits={"implied_threshold": "0.3:0.5"},
        )
        assert "implied_threshold" in [f.measure for f in alone.findings]

    def test_one_sided_labels_are_a_boundary_with_a_warning(self):
        found = simulate_scores({"A": ScoreGroup(n=40000)}, review="accepted", seed=2)
        result = measured(found.frame)
        row = one(result, "implied_threshold", "A")
        assert row["low"] < found.planted["implied_threshold"][0] < row["high"]
        assert (
            "group A: no truth is known below the threshold: a one-sided boundary fit."
            in result.notes
        )

    def test_prevalence_that_falls_is_noted(self):
        rng = np.random.default_rng(0)
        s = rng.random(8000)
        y = (rng.random(8000) < np.where(np.abs(s - 0.4) < 0.1, 0.8, 0.3)).astype(int)
        result = measured({"score": s, "truth": y, "group": ["a"] * 8000})
        assert any("prevalence falls as the score rises" in note for note in result.notes)

    def test_prevalence_that_rises_is_not(self, planted):
        assert not any("falls" in note for note in measured(planted).notes)

    def test_the_window_mean_is_biased_where_density_slopes(self):
        # 3.3: density exp(−10 s), E[Y|s] = s, window 0.1 around 0.5: bias −0.0313.
        want = ORACLES["3.3_window_bias"]
        rng = np.random.default_rng(0)
        s = -np.log(1 - rng.random(1_500_000) * (1 - np.exp(-10.0))) / 10
        s = s[np.abs(s - 0.5) < 0.3]
        y = (rng.random(s.size) < s).astype(int)
        result = measured(
            {"score": s, "truth": y, "group": np.full(s.size, "a")},
            options={"bandwidth": want["d"]},
        )
        window = one(result, "implied_threshold_window", "a")
        assert window["value"] - 0.5 == pytest.approx(want["bias"], abs=0.012)
        assert abs(one(result, "implied_threshold", "a")["value"] - 0.5) < 0.015


def coverage(simulations: int, seed: int) -> float:
    """Share of default 95 % intervals that hold the truth, on METHODS 12.3's generator."""
    names = {f"s{i:03d}": ScoreGroup(n=4000) for i in range(simulations)}
    result = measured(simulate_scores(names, seed=seed).frame)
    rows = result.rows.where(measure="implied_threshold")
    truth = ScoreGroup().implied_threshold
    return float(np.mean((rows["low"] <= truth) & (truth <= rows["high"])))


class TestCoverage:
    def test_default_intervals_cover(self):
        # 200 samples: two standard errors around 0.945 are 0.91 to 0.98.
        assert 0.91 <= coverage(200, seed=1) <= 0.985

    @pytest.mark.heavy
    def test_default_intervals_cover_between_93_and_97_percent(self):
        assert 0.93 <= np.mean([coverage(200, seed=s) for s in range(10)]) <= 0.97


class TestBadInput:
    def test_no_score_near_the_threshold(self):
        data = {"score": [0.1] + [0.9 + i / 1000 for i in range(60)], "group": ["a"] * 61}
        data["truth"] = [0, *([0, 1] * 30)]
        row = one(measured(data, options={"bandwidth": 0.05}), "implied_threshold", "a")
        assert row["value"] is None
        assert row["undefined"] == "no score lies within the bandwidth of the threshold"

    def test_why_nothing_can_be_told_is_a_finding(self, planted):
        alone = planted.with_columns(
            score=pl.when(pl.col("group") == "f").then(0.5).otherwise(pl.col("score"))
        )
        table = Decisions(alone, **ROLES)
        found = audit(table, lenses=["thresholds"], limits={"cost_ratio": "0.01:100"})
        assert found.verdict == "cannot tell"
        told = found.findings[0].sentence
        assert told.startswith(
            "The weight of a miss for group f is undefined: fewer than 2 distinct scores in the "
            "group. Group x gets decision '1' on the evidence agreed: from a "
        )
        assert "further case" not in told
        assert "cannot be told whether" not in told

    def test_one_score_only(self):
        data = {"score": [0.5] * 60 + [0.2, 0.8] * 30, "truth": [0, 1] * 60}
        data["group"] = ["a"] * 60 + ["b"] * 60
        row = one(measured(data), "cost_ratio", "a")
        assert row["undefined"] == "fewer than 2 distinct scores in the group"

    def test_all_truths_equal_near_the_threshold(self):
        s = np.linspace(0, 1, 500)
        data = {"score": s, "truth": (s > 0.9).astype(int), "group": ["a"] * 500}
        row = one(measured(data, options={"bandwidth": 0.1}), "cost_ratio", "a")
        assert row["undefined"] == "all truths within the bandwidth are 0"

    def test_an_estimate_outside_the_unit_interval_is_shown_raw(self):
        # Rows above the threshold alone, positive from 0.65 on: the line meets 0.5 below 0.
        s = np.linspace(0.5, 1, 800)
        data = {"score": s, "truth": (s > 0.65).astype(int), "group": ["a"] * 800}
        result = measured(data, options={"bandwidth": 0.32})
        row = one(result, "cost_ratio", "a")
        assert row["value"] is None
        assert row["undefined"].startswith("the estimate -0.")
        assert row["undefined"].endswith("lies outside (0, 1)")
        assert "raw estimate -0." in row["method"]

    def test_missing_columns_are_named(self):
        data = {"score": [0.1, 0.9], "truth": [0, 1], "group": ["a", "b"]}
        assert thresholds.lacks(Decisions(data, score="score", group="group", threshold=0.5)) == (
            "a truth column"
        )
        assert thresholds.lacks(Decisions(data, score="score", group="group", truth="truth")) == (
            "a threshold"
        )

    @pytest.mark.parametrize("bandwidth", [0, -1, "wide", float("nan")])
    def test_bandwidth_must_be_a_number_above_0(self, planted, bandwidth):
        with pytest.raises(UsageError, match="is not a number above 0"):
            measured(planted, options={"bandwidth": bandwidth})

    def test_unknown_group_in_a_setting(self, planted):
        options = {"truth_sensitivity": {"fe": 0.9}, "truth_specificity": 0.9}
        with pytest.raises(UsageError) as error:
            measured(planted, options=options)
        assert str(error.value).startswith("truth_sensitivity names 'fe', which is not a group.")

    def test_truth_no_better_than_chance(self, planted):
        with pytest.raises(UsageError, match="does no better than chance"):
            measured(planted, options={"truth_sensitivity": 0.5, "truth_specificity": 0.5})

    def test_unknown_reference(self, planted):
        with pytest.raises(UsageError, match="reference='q' is not a group"):
            measured(planted, reference="q")

    def test_three_values_of_truth(self, planted):
        worse = planted.with_columns(
            truth=pl.Series([0, 1, 2] * (planted.height // 3) + [0] * (planted.height % 3))
        )
        with pytest.raises(UsageError, match="Say which value counts as positive"):
            measured(worse)

    def test_nothing_left(self):
        data = {"score": [0.1, 0.9], "truth": pl.Series([None, None], dtype=pl.Int64)}
        with pytest.raises(DataError, match="Nothing is left to measure for group='group'"):
            measured({**data, "group": ["a", "b"]})

    def test_missing_error_counts_the_rows(self, planted):
        gone = planted.with_columns(
            truth=pl.when(pl.col("score") < 0.1).then(None).otherwise("truth")
        )
        with pytest.raises(DataError, match="rows with no truth, score or threshold"):
            measured(gone, missing="error")

    def test_nulls_in_the_group_leave_and_are_counted(self, planted):
        named = pl.when(pl.col("group") == "x").then(None).otherwise("group")
        gone = planted.with_columns(group=named)
        result = measured(gone)
        assert result.excluded == {"no group": 3000}
        kept = measured(gone, missing="group")
        assert one(kept, "cost_ratio", "<missing>")["value"] is not None


def test_the_page_prints_what_it_shows(capsys):
    page = Path(__file__).parents[2] / "docs" / "explanation" / "implied-thresholds.md"
    names: dict[str, object] = {"__name__": "page"}
    shown = []
    for language, code in re.findall(
        r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        if language == "python":
            exec(compile(code, str(page), "exec"), names)
        else:
            shown.append(code)
    assert capsys.readouterr().out == "".join(shown)


def test_families_of_many_groups_are_those_of_few_drawn_another_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    rows, groups = 24_000, 12
    score, group = rng.random(rows), rng.integers(0, groups, rows)
    truth = (rng.random(rows) < expit(6 * (score - 0.5))).astype(int)
    table = pl.DataFrame({"s": score, "y": truth, "g": [f"g{i:02}" for i in group]})
    decisions = Decisions(table, truth="y", score="s", threshold=0.5, group="g")

    def widths() -> dict[str, np.ndarray]:
        rows = thresholds.measure(decisions, Options()).rows
        found = {}
        for measure in ("implied_threshold", "implied_threshold_gap", "cost_ratio_ratio"):
            mine = rows.where(measure=measure)
            low, high = mine["family_low"].astype(float), mine["family_high"].astype(float)
            found[measure] = np.log(high / low) if "ratio" in measure else high - low
        return found

    drawn = widths()
    monkeypatch.setattr("evenhand.lenses.thresholds.rows.MOST_PAIRED", 2)
    known = widths()
    for measure, width in drawn.items():
        assert width.size >= groups - 1
        # 4,000 draws tell a quantile to about 2 %; Šidák's needs none.
        np.testing.assert_allclose(known[measure], width, rtol=0.03)


def test_a_prevalence_that_never_falls_needs_no_draws() -> None:
    from evenhand.stats.calibration import fall_tests, prevalence_bins

    score = np.repeat((np.arange(10) + 0.5) / 10, 100)
    truth = np.concatenate([np.arange(100) < 10 * k for k in range(10)])
    cells = score_histogram(score, truth=truth, threshold=0.5, bins=10)
    (bins,) = prevalence_bins(cells, half_widths=np.inf)
    (found,) = fall_tests([bins], draws=0, seed=0)
    assert (found.drop, found.p) == (0.0, 1.0)
