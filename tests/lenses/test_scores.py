"""Areas and calibration of weighted, reviewed, clustered and stratified scores."""

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from scipy.stats import norm

import evenhand as eh
from evenhand.decisions.tallies.scores import ScoreTally, placements
from evenhand.decisions.tally import Tally
from evenhand.lenses.rows import Rows
from evenhand.lenses.statistical.score_cells import ScoreCells
from evenhand.stats.auc import Auc, PlacementSums, auc_gap, clustered_delong, weighted_delong
from evenhand.stats.calibration import ClusteredBins, bin_products, fit_lines, recalibrate
from evenhand.stats.estimate import critical

Z = critical(0.95)
MEASURES = ("auc", "auc_gap", "calibration", "calibration_intercept", "calibration_slope")


def audited(data: Any, *, level: float = 0.95, **roles: Any) -> Rows:
    roles = {"truth": "truth", "score": "score", "group": "group", **roles}
    decisions = eh.Decisions(data, **roles)
    return eh.audit(decisions, level=level, keep_small=True, lenses=["statistical"]).rows


def one(rows: Rows, column: str = "value", **where: Any) -> Any:
    found = rows.where(**where)
    assert len(found) == 1, [dict(r) for r in found]
    return found.plain(column)[0]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    """Scores with ties, a truth that follows them, weights, reviews, clusters and strata."""
    rng = np.random.default_rng(2)
    n = 1500
    score = np.round(rng.beta(2, 2, n), 2)
    cluster = rng.integers(0, 120, n)
    lift = rng.normal(0, 0.7, 120)[cluster]
    return pl.DataFrame(
        {
            "group": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
            "place": rng.choice(["north", "south"], n),
            "score": score,
            "truth": (rng.random(n) < expit(logit(np.clip(score, 0.02, 0.98)) + lift)).astype(int),
            "weight": rng.choice([0.0, 0.5, 1.0, 4.0], n, p=[0.05, 0.35, 0.4, 0.2]),
            "share": np.where(score > 0.6, 1.0, 0.4),
            "cluster": cluster,
        }
    )


def test_weighted_area_by_hand() -> None:
    # Positives 0.9 (weight 1) and 0.4 (weight 3), negatives 0.6 (weight 2) and 0.4 (weight 1).
    # Below 0.9 lies weight 3; below 0.4 nothing, level with it 1: (1·3 + 3·½) ÷ (4·3) = 0.375.
    rows = {"score": [0.9, 0.4, 0.6, 0.4], "truth": [1, 1, 0, 0], "weight": [1.0, 3.0, 2.0, 1.0]}
    found = audited({**rows, "group": ["a"] * 4}, weight="weight")
    assert one(found, measure="auc", class_="1") == pytest.approx(0.375, abs=1e-12)
    assert one(found, "method", measure="auc", class_="1") == "delong, weighted"
    # Unweighted it would be (2 + ½) ÷ 4.
    plain = audited({**rows, "group": ["a"] * 4})
    assert one(plain, measure="auc", class_="1") == pytest.approx(0.625, abs=1e-12)


@pytest.mark.parametrize("roles", [("weight",), ("share",), ("weight", "share")])
def test_weighted_area_equals_scikit_learn(table, roles) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    names = {"weight": "weight", "share": "review_share"}
    rows = audited(table, **{names[role]: role for role in roles})
    for (group,), own in table.group_by("group"):
        omega = np.ones(len(own))
        if "weight" in roles:
            omega = omega * own["weight"].to_numpy()
        if "share" in roles:
            omega = omega / own["share"].to_numpy()
        expected = metrics.roc_auc_score(own["truth"], own["score"], sample_weight=omega)
        where = {"measure": "auc", "class_": "1", "group": group}
        assert one(rows, **where) == pytest.approx(expected, abs=1e-12)
        counts = own["truth"].value_counts()["count"]
        assert one(rows, "n", **where) == counts.min()


def test_weighted_variance_is_the_sum_of_squared_influences(table) -> None:
    own = table.filter(pl.col("group") == "b")
    score, truth, omega = (own[c].to_numpy().astype(float) for c in ("score", "truth", "weight"))
    above = (score[:, None] > score[None]) + 0.5 * (score[:, None] == score[None])
    yes, no = truth == 1, truth == 0
    w1, w0 = omega[yes], omega[no]
    v1 = above[np.ix_(yes, no)] @ w0 / w0.sum()
    v0 = w1 @ above[np.ix_(yes, no)] / w1.sum()
    area = w1 @ v1 / w1.sum()
    total = 0.0
    for w, v in ((w1, v1), (w0, v0)):
        n = w.sum() ** 2 / (w**2).sum()
        seen = (w**2 * (v - area) ** 2).sum()
        implied = (w**2).sum() / w.sum() * (w * (v - area) ** 2).sum()
        total += (n * seen + 10 * max(seen, implied)) / (n + 10) / w.sum() ** 2 * n / (n - 1)
    decisions = eh.Decisions(table, truth="truth", score="score", group="group", weight="weight")
    tally = placements(decisions, decisions.roles.attributes[0], "score", "1")
    (cells,) = ScoreCells.of(ScoreTally(tally=tally))
    sums = ("w", "w2", "w4", "wd", "wd2", "w2d", "w2d2")
    names = PlacementSums.__dataclass_fields__
    found = weighted_delong(
        PlacementSums(**{f: cells.dense(["y"], s)[0, 1] for f, s in zip(names, sums)})
    )
    assert found.value == pytest.approx(area, abs=1e-12)
    assert found.variance == pytest.approx(total, rel=1e-9)


def test_strata_are_the_audits_of_their_rows(table) -> None:
    rows = audited(table, stratum="place", weight="weight", reference="a")
    columns = ("value", "low", "high", "n", "p")
    for (place,), own in table.group_by("place"):
        alone = audited(own, weight="weight", reference="a")
        for measure in MEASURES:
            mine = list(alone.where(measure=measure))
            assert mine
            for row in mine:
                bin_ = row["stratum"]
                where = {"class_": row["class"], "group": row["group"]}
                stratum = place if bin_ is None else f"{place}, {bin_}"
                for column in columns:
                    found = one(rows, column, measure=measure, stratum=stratum, **where)
                    assert found == (
                        row[column] and pytest.approx(row[column], rel=1e-9, abs=1e-12)
                    )


def test_the_whole_table_stays_beside_its_strata(table) -> None:
    plain, within = audited(table), audited(table, stratum="place")
    for measure in ("auc", "auc_gap", "calibration_slope"):
        left, right = (rows.where(measure=measure, stratum=None) for rows in (plain, within))
        assert left.plain("low") == pytest.approx(right.plain("low"), abs=1e-12)
    # Half the error is left to the whole table where there are strata beside it.
    half = audited(table, level=0.975)
    for measure in ("auc", "auc_gap"):
        left, right = (rows.where(measure=measure, stratum=None) for rows in (half, within))
        assert left.plain("family_low") == pytest.approx(right.plain("family_low"), abs=1e-12)


def test_every_engine_agrees(table) -> None:
    relation = duckdb.connect()
    gappy = table.with_columns(
        weight=pl.when(pl.int_range(pl.len()) % 41 != 0).then("weight"),
        place=pl.when(pl.int_range(pl.len()) % 37 != 0).then("place"),
    )
    relation.register("rows", gappy.to_arrow())
    for roles in ({"weight": "weight"}, {"cluster": "cluster", "review_share": "share"}):
        want = audited(gappy, stratum="place", **roles)
        for data in (relation.table("rows"), gappy.to_pandas(), gappy.to_arrow()):
            found = audited(data, stratum="place", **roles)
            for measure in MEASURES:
                left, right = want.where(measure=measure), found.where(measure=measure)
                assert left.plain("stratum") == right.plain("stratum")
                for column in ("value", "low", "family_high", "n"):
                    np.testing.assert_allclose(left[column], right[column], rtol=0, atol=1e-9)


@pytest.mark.heavy
def test_spark_agrees(table, spark) -> None:
    want = audited(table, stratum="place", weight="weight", cluster="cluster")
    found = audited(
        spark.createDataFrame(table.to_pandas()),
        stratum="place", weight="weight", cluster="cluster",
    )  # fmt: skip
    for measure in MEASURES:
        left, right = want.where(measure=measure), found.where(measure=measure)
        np.testing.assert_allclose(left["value"], right["value"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(left["low"], right["low"], rtol=0, atol=1e-9)


def test_groups_without_weight_say_so(table) -> None:
    light = table.with_columns(
        weight=pl.when((pl.col("group") == "c") & (pl.col("truth") == 1))
        .then(0.0)
        .otherwise(pl.col("weight") + 1)
    )
    rows = audited(light, weight="weight", reference="a")
    for measure in ("auc", "auc_gap"):
        where = {"measure": measure, "class_": "1", "group": "c"}
        assert one(rows, **where) is None
        assert one(rows, "undefined", **where) == "all positives in the group have weight 0"


def test_classes_with_gaps_in_their_scores_are_brought_together() -> None:
    rng = np.random.default_rng(4)
    n = 90
    scores = rng.dirichlet(np.ones(3), n)
    data = {f"score:{name}": scores[:, i].tolist() for i, name in enumerate("xyz")}
    group = ["a", "b", "c"] * 30
    data["score:y"] = [None if g == "c" else v for g, v in zip(group, data["score:y"])]
    data |= {"truth": rng.choice(list("xyz"), n).tolist(), "group": group}
    rows = audited(data, score=None, scores={name: f"score:{name}" for name in "xyz"})
    assert one(rows, "undefined", measure="auc", class_="y", group="c") == (
        "no positives in the group"
    )
    assert one(rows, measure="auc", class_="x", group="c") is not None


def clustered(
    scores: np.ndarray, truth: np.ndarray, clusters: np.ndarray, weights: np.ndarray | None = None
) -> Auc:
    omega = np.ones(len(scores)) if weights is None else weights
    above = (scores[:, None] > scores[None]) + 0.5 * (scores[:, None] == scores[None])
    placed = np.where(truth == 1, above @ (omega * (truth == 0)), above @ (omega * (truth == 1)))
    nothing = np.zeros(len(scores), dtype=np.int64)
    area, _ = clustered_delong(
        omega,
        placed=omega * placed,
        truth=truth.astype(np.int64),
        cell=nothing,
        cluster=clusters.astype(np.int64),
        reference=np.zeros(1, dtype=np.int64),
    )
    return area


def test_clusters_of_one_row_are_nearly_delong() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(800) < 0.4).astype(int)
    scores = rng.normal(truth, 1)
    found = clustered(scores, truth, np.arange(800))
    plain = audited({"score": scores, "truth": truth, "group": ["a"] * 800})
    own = {"measure": "auc", "class_": "1"}
    low, high = found.interval(z=Z)
    assert found.value[0] == pytest.approx(one(plain, **own), abs=1e-12)
    assert low[0] == pytest.approx(one(plain, "low", **own), abs=2e-4)
    assert high[0] == pytest.approx(one(plain, "high", **own), abs=2e-4)


def test_copies_in_a_cluster_add_nothing(table) -> None:
    """Four copies of every row: as wide as once, and far too narrow without the cluster."""
    small = table.head(200).with_row_index("row")
    once = audited(small, cluster="row")
    four = audited(pl.concat([small] * 4), cluster="row")
    blind = audited(pl.concat([small] * 4))
    for measure in ("auc", "calibration_slope", "calibration_intercept"):
        own = {"measure": measure, "class_": "1", "group": "a"}
        sizes = [one(r, "high", **own) - one(r, "low", **own) for r in (once, four, blind)]
        assert sizes[0] == pytest.approx(sizes[1], rel=1e-6)
        assert sizes[2] < 0.6 * sizes[1]
        assert one(four, "method", **own).endswith(", clustered")


def test_clusters_that_reach_into_both_groups_narrow_their_gap() -> None:
    rng = np.random.default_rng(6)
    cluster = np.repeat(np.arange(60), 20)
    truth = rng.integers(0, 2, 1200)
    # In some clusters scores tell the truth and in others not, in both groups alike.
    skill = rng.choice([0.0, 3.0], 60)[cluster]
    data = {
        "score": rng.normal(truth * skill, 1),
        "truth": truth,
        "cluster": cluster,
        "group": np.where(np.arange(1200) % 2, "a", "b"),
    }
    rows = audited(data, cluster="cluster")
    gap = next(iter(rows.where(measure="auc_gap", class_="1")))
    sides = [next(iter(rows.where(measure="auc", class_="1", group=g))) for g in "ab"]
    apart = np.hypot(*(side["high"] - side["low"] for side in sides))
    assert gap["high"] - gap["low"] < 0.85 * apart


@pytest.mark.parametrize(("n", "shift"), [(150, 1.0), (600, 0.5)])
def test_areas_of_a_weighted_sample_cover_that_of_everybody(n, shift) -> None:
    """Rows are sampled by their score, four in ten above 1/2 and one in ten below."""
    rng = np.random.default_rng(1)
    held: dict[str, list[np.ndarray]] = {f: [] for f in PlacementSums.__dataclass_fields__}
    for _ in range(1500):
        truth = (rng.random(4 * n) < 0.35).astype(int)
        score = rng.normal(shift * truth, 1)
        chance = np.where(score > 0.5, 0.4, 0.1)
        kept = rng.random(4 * n) < chance
        order = np.argsort(score[kept])
        y, w = truth[kept][order], 1 / chance[kept][order]
        d = np.where(y == 1, np.cumsum(w * (1 - y)), np.cumsum(w * y))
        parts = (w, w**2, w**4, w * d, w * d**2, w**2 * d, w**2 * d**2)
        for name, part in zip(held, parts):
            held[name].append(np.array([part[y == 0].sum(), part[y == 1].sum()]))
    area = weighted_delong(PlacementSums(**{k: np.array(v) for k, v in held.items()}))
    low, high = area.interval(z=Z)
    expected = norm.cdf(shift / np.sqrt(2))
    assert np.nanmean(area.value) == pytest.approx(expected, abs=0.01)
    assert 0.93 <= np.mean((low <= expected) & (expected <= high)) <= 0.97


def test_areas_of_clusters_cover() -> None:
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(40), 8)
    expected = norm.cdf(1 / np.sqrt(2))
    held = []
    for _ in range(600):
        truth = (rng.random(320) < 0.4).astype(int)
        own = rng.normal(0, np.sqrt(0.5), 40)[clusters]
        area = clustered(truth + own + rng.normal(0, np.sqrt(0.5), 320), truth, clusters)
        low, high = area.interval(z=Z)
        held.append(low[0] <= expected <= high[0])
    assert 0.92 <= np.mean(held) <= 0.97


def test_line_of_weights_and_clusters_equals_statsmodels() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    x = np.round(rng.normal(0, 1.2, n), 1)
    cluster = rng.integers(0, 80, n)
    y = (rng.random(n) < expit(0.3 + 0.8 * x + rng.normal(0, 0.6, 80)[cluster])).astype(float)
    omega = rng.choice([0.5, 1.0, 3.0], n)
    model = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial(), freq_weights=omega)
    values, where = np.unique(x, return_inverse=True)

    def binned(weights: np.ndarray) -> np.ndarray:
        return np.bincount(where, weights, minlength=len(values))

    weighted = recalibrate(
        values, hits=binned(omega * y), n=binned(omega), squares=binned(omega**2)
    )
    fit = model.fit()
    assert [weighted.intercept, weighted.slope] == pytest.approx(fit.params, abs=1e-8)
    # By hand: H⁻¹ (Σω²p(1−p)xx′) H⁻¹ with H = Σωp(1−p)xx′.
    design, p = sm.add_constant(x), fit.fittedvalues
    hessian = design.T @ (design * (omega * p * (1 - p))[:, None])
    middle = design.T @ (design * (omega**2 * p * (1 - p))[:, None])
    error = np.sqrt(np.diag(np.linalg.inv(hessian) @ middle @ np.linalg.inv(hessian)))
    assert [weighted.intercept_error, weighted.slope_error] == pytest.approx(error, rel=1e-6)
    nothing = np.zeros(n, dtype=np.int64)
    parts = ClusteredBins(line=nothing, bin=where, cluster=cluster, hits=omega * y, n=omega)
    lines = fit_lines(values, hits=binned(omega * y), n=binned(omega))
    found = lines.recalibration(bin_products(parts, **lines.of_bins()))
    bread = np.linalg.inv(hessian)
    scores = np.zeros((80, 2))
    np.add.at(scores, cluster, (omega * (y - p))[:, None] * design)
    expected = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread) * 80 / 79)
    assert [found.intercept_error, found.slope_error] == pytest.approx(expected, rel=1e-6)


def test_weighted_calibration_covers() -> None:
    """Sampled by score, weighted back: calibrated scores have intercept 0 and slope 1."""
    rng = np.random.default_rng(5)
    held = []
    edges = np.linspace(0, 1, 41)
    for _ in range(800):
        score = rng.beta(1.5, 1.5, 900)
        chance = np.where(score > 0.6, 0.9, 0.25)
        kept = rng.random(900) < chance
        y = (rng.random(900) < score)[kept].astype(float)
        s, omega = score[kept], 1 / chance[kept]
        where = np.clip(np.digitize(s, edges) - 1, 0, 39)
        w, w2, hits, ws = (
            np.bincount(where, part, minlength=40)
            for part in (omega, omega**2, omega * y, omega * s)
        )
        with np.errstate(invalid="ignore"):
            line = recalibrate(logit(ws / w), hits=hits, n=w, squares=w2)
        held.append(
            (
                abs(line.slope - 1) <= Z * line.slope_error,
                abs(line.in_the_large) <= Z * line.in_the_large_error,
            )
        )
    covered = np.mean(held, axis=0)
    assert (covered >= 0.93).all()
    assert (covered <= 0.97).all()


def test_weights_move_the_calibration_curve() -> None:
    # Between 0.4 and 0.5: hits weigh 1 and 3, a miss 4: a share of 1/2, unweighted 2/3.
    data = {
        "score": [0.42, 0.44, 0.46, 0.91, 0.12],
        "truth": [1, 1, 0, 1, 0],
        "weight": [1.0, 3.0, 4.0, 1.0, 1.0],
        "group": ["a"] * 5,
    }
    where = {"measure": "calibration", "class_": "1", "stratum": "score 0.4-0.5"}
    rows = audited(data, weight="weight")
    assert one(rows, **where) == pytest.approx(0.5)
    assert one(rows, "n", **where) == 3
    assert one(rows, "method", **where) == "wilson, weighted"
    assert one(audited(data), **where) == pytest.approx(2 / 3)


def test_gap_of_areas_with_weights_is_newcombes() -> None:
    sums = np.array([[30.0, 20.0], [40.0, 25.0]])
    placed = np.array([[120.0, 480.0], [200.0, 800.0]])
    squares = np.array([[900.0, 12_500.0], [1500.0, 27_000.0]])
    area = weighted_delong(
        PlacementSums(
            weight=sums, weight_squares=sums, weight_fourths=sums, placed=placed,
            placed_squares=squares, squares_placed=placed, squares_placed_squares=squares,
        )
    )  # fmt: skip
    first, second = (
        Auc(**{f: getattr(area, f)[i] for f in Auc.__dataclass_fields__}) for i in (0, 1)
    )
    low, high = auc_gap(first, second, z=Z)
    (a, b), (c, d) = first.interval(z=Z), second.interval(z=Z)
    gap = first.value - second.value
    assert low == pytest.approx(gap - np.hypot(first.value - a, d - second.value))
    assert high == pytest.approx(gap + np.hypot(b - first.value, second.value - c))


def test_scores_of_one_cluster_say_why_they_have_no_interval(table) -> None:
    lone = table.with_columns(cluster=pl.when(pl.col("group") == "c").then(-1).otherwise("cluster"))
    rows = audited(lone, cluster="cluster")
    for measure in ("calibration_slope", "calibration_intercept"):
        where = {"measure": measure, "class_": "1", "group": "c"}
        assert one(rows, **where) is not None
        assert one(rows, "low", **where) is None
        reason = "all cases in the group are one cluster"
        assert one(rows, "no_interval", **where) == reason
        assert one(rows, "undefined", **where) is None
    curve = list(rows.where(measure="calibration", class_="1", group="c"))
    assert {row["no_interval"] for row in curve if row["n"]} == {reason}
    assert {row["undefined"] for row in curve if row["n"]} == {None}
    assert {row["no_interval"] for row in curve if not row["n"]} <= {None}


def test_bounds_are_told_in_two_digits_and_never_below_themselves() -> None:
    cells = ScoreCells.of(ScoreTally(tally=Tally.of({"group": ["a"], "y": [1]}, {"n": [1]})))[0]
    error = np.concatenate([[0.0, 8e-4, 6.4e-4], 10 ** np.random.default_rng(1).uniform(-9, 0, 97)])
    told = cells.on_grid("wilson", error.reshape(4, 25)).reshape(-1).tolist()
    assert told[0] == "wilson"
    assert told[1:3] == [f"wilson; from a grid of scores, at most {e} off" for e in
                         ("8.0e-04", "6.4e-04")]  # fmt: skip
    bounds = np.array(
        [float(words.split("at most ")[1].removesuffix(" off")) for words in told[3:]]
    )
    assert (bounds >= error[3:]).all()
    assert (bounds < error[3:] * 1.1).all()


def test_scores_of_many_classes_are_read_in_four_collects(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    classes = [f"c{k}" for k in range(6)]
    columns = {f"score:{name}": rng.random(300) for name in classes}
    frame = pl.DataFrame(
        {"truth": rng.choice(classes, 300), "sex": rng.choice(["f", "m"], 300), **columns}
    )
    made, collect = [], pl.LazyFrame.collect

    def counting(self, *args, **kwargs):
        # Frames in memory collect too where Polars is of version 1, and say so.
        if not {"_eager", "optimizations"} & set(kwargs):
            made.append(self)
        return collect(self, *args, **kwargs)

    # A look at the first rows, one at the numbers, the decisions, and all scores together.
    monkeypatch.setattr(pl.LazyFrame, "collect", counting)
    result = eh.audit(frame.lazy(), truth="truth", group="sex")
    assert len(made) <= 4
    assert len(result.rows.where(measure="auc")) == 2 * len(classes)
