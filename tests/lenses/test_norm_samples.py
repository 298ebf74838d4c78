"""The norms lens with weights and clusters, and which of its rows a limit is held against."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

import evenhand as eh
from evenhand.decisions.tallies import by_cluster
from evenhand.decisions.tallies import norms as norm_tallies
from evenhand.lenses.norms import lens as norms
from evenhand.lenses.rows import LensResult, Options
from evenhand.simulate.norms import simulate_norms
from evenhand.stats.rates import wilson
from evenhand.stats.weights import weighted_rate

CLASSES = 6


def table(n: int = 900, *, seed: int = 0) -> pl.DataFrame:
    """Six classes, two groups, scores that tie, whole weights, and 30 sites that span classes."""
    rng = np.random.default_rng(seed)
    truth, site = rng.integers(0, CLASSES, n), rng.integers(0, 30, n)
    pull = rng.normal(size=30)
    norm = rng.standard_normal(n)
    score = (truth - 2.5) * (1 + pull[site]) * norm + 2 * rng.standard_normal(n)
    female = rng.random(n) < 0.3 + 0.08 * truth
    # Within a group the norm goes with the score; women's are higher, so that it is theirs.
    norm += np.where(female, 0.5, -0.5)
    return pl.DataFrame(
        {
            "title": [f"c{k}" for k in truth],
            "gender": np.where(female, "f", "m"),
            "score:truth": np.round(score, 1),
            "norm@f": norm,
            "norm@m": -norm,
            "w": rng.integers(1, 4, n),
            "site": [f"site {k:02d}" for k in site],
            "year": rng.integers(0, 2, n),
        }
    )


def measured(frame: Any, **roles: Any) -> LensResult:
    decisions = eh.Decisions(frame, truth="title", group="gender", **roles)
    decisions.check()
    return norms.measure(decisions, Options(settings={"bootstrap": False}))


def numbers(result: LensResult, *names: str) -> list[list[Any]]:
    return [result.rows.plain(name) for name in names]


def test_whole_weights_count_rows_again():
    frame = table()
    again = frame.select(pl.all().repeat_by("w").explode())
    one, other = measured(frame, weight="w"), measured(again)
    for measure in ("group_share", "norm_correlation", "norm_bias", "norm_correlation_mean"):
        assert one.rows.where(measure=measure).plain("value") == pytest.approx(
            other.rows.where(measure=measure).plain("value")
        )
    # The same rows twice are not twice the evidence: intervals are wider than of rows repeated.
    ours, theirs = (
        each.rows.where(measure="norm_correlation", group="f", norm="f") for each in (one, other)
    )
    assert (ours["high"] - ours["low"] > theirs["high"] - theirs["low"]).all()
    counts = frame.group_by("title", "gender").len()
    sizes = dict(zip(counts.select("title", "gender").iter_rows(), counts["len"], strict=True))
    assert [sizes[row["class"], row["group"]] for row in ours] == ours.plain("n")
    assert all(
        row["method"].startswith("weighted Spearman, jackknife over ")
        and f"over {row['n']} rows, t with " in row["method"]
        for row in ours
    )


@pytest.mark.parametrize("weight", [1.0, 0.37])
def test_equal_weights_change_nothing(weight):
    frame = table()
    plain = measured(frame)
    even = measured(frame.with_columns(one=pl.lit(weight)), weight="one")
    for name in ("measure", "value", "low", "high", "family_low", "family_high", "n", "p"):
        left, right = plain.rows.plain(name), even.rows.plain(name)
        if name == "measure" or name == "n":
            assert left == right
        else:
            known = [k for k, v in enumerate(left) if v is not None]
            assert [right[k] for k in known] == pytest.approx([left[k] for k in known], abs=1e-9)
    assert set(even.rows.where(measure="norm_correlation").plain("method")) == set(
        plain.rows.where(measure="norm_correlation").plain("method")
    )


def test_the_scale_of_weights_does_not_matter_and_none_is_no_row():
    frame = table()
    one = measured(frame, weight="w")
    other = measured(frame.with_columns(w=pl.col("w") * 0.01), weight="w")
    for name in ("value", "low", "high", "p"):
        left, right = numbers(one, name)[0], numbers(other, name)[0]
        assert [v is None for v in left] == [v is None for v in right]
        assert [v for v in right if v is not None] == pytest.approx(
            [v for v in left if v is not None]
        )
    holes = frame.with_columns(
        w=pl.when(pl.int_range(pl.len()) % 10 == 0).then(0).otherwise("w"),
    )
    kept = holes.filter(pl.col("w") > 0)
    names = ("value", "low", "high", "p")
    assert numbers(measured(holes, weight="w"), *names) == numbers(
        measured(kept, weight="w"), *names
    )


def test_rows_without_a_weight_or_a_cluster_are_left_out_and_counted():
    spots = pl.int_range(pl.len())
    frame = table().with_columns(
        w=pl.when(spots % 50 == 1).then(None).otherwise("w"),
        site=pl.when(spots % 90 == 2).then(None).otherwise("site"),
    )
    result = measured(frame, weight="w", cluster="site")
    assert result.excluded == {"no w": 18, "no site": 10}
    kept = frame.drop_nulls(["w", "site"])
    assert numbers(result, "value", "low", "n") == numbers(
        measured(kept, weight="w", cluster="site"), "value", "low", "n"
    )


def test_clusters_leave_the_value_and_widen_the_interval():
    frame = table(3_000)
    plain, sites = measured(frame), measured(frame, cluster="site")
    for measure in ("group_share", "norm_correlation", "norm_bias", "norm_slope"):
        pair = [each.rows.where(measure=measure) for each in (plain, sites)]
        if measure != "norm_slope":
            assert pair[0].plain("value") == pytest.approx(pair[1].plain("value"))
    own = [each.rows.where(measure="norm_correlation", group="f", norm="f")
           for each in (plain, sites)]  # fmt: skip
    width = [each["high"] - each["low"] for each in own]
    # Sites differ in how they reward the norm, so that their rows go together.
    assert width[1].mean() > 1.2 * width[0].mean()
    row = next(iter(own[1]))
    assert row["method"].startswith("Spearman, jackknife over 30 clusters, t with ")
    assert " rows, " in row["method"]
    trend = next(iter(sites.rows.where(measure="norm_slope", group="f")))
    assert trend["method"].endswith("wider by the clusters that classes share")


def test_few_clusters_are_said():
    frame = table().with_columns(site=pl.col("site").str.slice(0, 6))
    assert frame["site"].n_unique() == 3
    note = "No class has rows of more than 3 clusters. If clusters differ much in how they reward"
    assert any(each.startswith(note) for each in measured(frame, cluster="site").notes)
    assert not any("clusters" in each for each in measured(table(), cluster="site").notes)


def test_labelers_are_clusters_too():
    frame = table()
    assert numbers(measured(frame, labeler="site"), "low") == numbers(
        measured(frame, cluster="site"), "low"
    )


def test_one_cluster_has_no_interval():
    frame = table(200).with_columns(site=pl.lit("here"))
    rows = measured(frame, cluster="site").rows
    for measure in ("norm_correlation", "group_share"):
        found = rows.where(measure=measure)
        assert set(found.plain("no_interval")) == {"all cases in the group are one cluster"}
        assert set(found.plain("low")) == {None}
        assert None not in found.plain("value")


def test_shares_weigh_rows_as_rates_do():
    frame = table()
    result = measured(frame, weight="w")
    for row in result.rows.where(measure="group_share", group="f"):
        cell = frame.filter(pl.col("title") == row["class"])
        f, m = (cell.filter(pl.col("gender") == g)["w"].to_numpy().astype(float) for g in "fm")
        rate = weighted_rate(
            f.sum(), m.sum(), hit_squares=(f * f).sum(), miss_squares=(m * m).sum()
        )
        low, high = wilson(rate.hits, rate.n, z=1.959963984540054)
        assert (row["value"], row["low"], row["high"]) == pytest.approx(
            (float(rate.value), float(low), float(high))
        )
        assert row["n"] == cell.height
        assert row["method"] == "weighted wilson"


def test_cells_of_other_classes_and_of_one_score_take_weights_too():
    frame = (
        table()
        .rename({"score:truth": "score:c0"})
        .with_columns(pl.col("score:c0").reverse().alias("score:c1"))
    )
    found = measured(frame, weight="w").rows.where(measure="norm_correlation", class_="not:c0")
    for row in found:
        cell = frame.filter(pl.col("title") != "c0", pl.col("gender") == row["group"])
        again = cell.select(pl.all().repeat_by("w").explode())
        expected = spearmanr(again["score:c0"], again[f"norm@{row['norm']}"])[0]
        assert row["value"] == pytest.approx(expected)
    binary = (
        table()
        .with_columns(title=(pl.col("title") == "c0").cast(pl.Int64))
        .rename({"score:truth": "risk"})
    )
    found = measured(binary, weight="w", score="risk").rows.where(measure="norm_correlation")
    for row in found:
        cell = binary.filter(
            pl.col("title") == (row["class"] == "1"), pl.col("gender") == row["group"]
        ).select(pl.all().repeat_by("w").explode())
        expected = spearmanr(cell["risk"], cell[f"norm@{row['norm']}"])[0]
        assert row["value"] == pytest.approx(expected)


def engines(frame: pl.DataFrame) -> dict[str, Any]:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pandas")
    return {
        "lazy": frame.lazy(),
        "pyarrow": frame.to_arrow(),
        "pandas": frame.to_pandas(),
        "duckdb": duckdb.from_arrow(frame.to_arrow()),
    }


def same(one: LensResult, other: LensResult) -> None:
    assert one.excluded == other.excluded
    for name in ("measure", "class", "group", "stratum", "n", "undefined", "method"):
        assert one.rows.plain(name) == other.rows.plain(name), name
    for name in ("value", "low", "high", "family_low", "family_high", "p"):
        left, right = one.rows.plain(name), other.rows.plain(name)
        assert [v is None for v in left] == [v is None for v in right], name
        pairs = [(a, b) for a, b in zip(left, right, strict=True) if a is not None]
        assert [b for _, b in pairs] == pytest.approx([a for a, _ in pairs], abs=1e-9), name


@pytest.mark.parametrize("engine", ["lazy", "pyarrow", "pandas", "duckdb"])
def test_engines_agree(engine: str) -> None:
    frame = table(500).with_columns(
        pl.when(pl.int_range(pl.len()) % 41 == 3).then(None).otherwise("norm@f").alias("norm@f")
    )
    roles = {"weight": "w", "cluster": "site", "stratum": "year"}
    same(measured(frame, **roles), measured(engines(frame)[engine], **roles))


@pytest.mark.heavy
def test_spark_agrees(spark: Any) -> None:
    frame = table(300)
    roles = {"weight": "w", "cluster": "site"}
    same(measured(frame, **roles), measured(spark.createDataFrame(frame.to_pandas()), **roles))


@pytest.mark.heavy
@pytest.mark.parametrize("roles", [{"weight": "w", "cluster": "who", "stratum": "year"},
                                   {"weight": "w"}])  # fmt: skip
def test_spark_ranks_rows_where_they_lie(roles: Any, spark: Any, monkeypatch: Any) -> None:
    """The same rows as on Polars from 3,000 rows in 600 clusters; what comes back are sums."""
    frame = table(3_000).with_columns(who=pl.int_range(pl.len()) % 600)
    # Missing norms, a weight of none, two zeros, and a class whose score does not vary.
    spot, constant = pl.int_range(pl.len()), pl.col("title") == "c5"
    frame = frame.with_columns(
        pl.when(spot % 41 == 3).then(None).otherwise("norm@f").alias("norm@f"),
        pl.when(spot % 50 == 1).then(0).otherwise("w").alias("w"),
        pl.when(constant).then(1.0).when(spot % 97 == 0).then(-0.0)
        .otherwise("score:truth").alias("score:truth"),
    )  # fmt: skip
    expected = measured(frame, **roles)
    monkeypatch.setattr(by_cluster, "MOST_AT_DRIVER", 50)
    columns = frame.schema.items()
    kinds = {pl.String: "string", pl.Float64: "double"}
    schema = ", ".join(f"`{name}` {kinds.get(kind, 'long')}" for name, kind in columns)
    data = spark.createDataFrame(frame.rows(), schema=schema)
    handed = []
    to_arrow = type(data).toArrow

    def counted(native: Any) -> Any:
        handed.append(to_arrow(native))
        return handed[-1]

    monkeypatch.setattr(type(data), "toArrow", counted)
    found = measured(data, **roles)
    same(expected, found)
    # Two groups, six classes and two years with what has none: no table here has a cluster's cell.
    by_cell = [each.num_rows for each in handed if "place" not in each.column_names]
    assert max(by_cell) <= 2 * CLASSES * 3
    assert not [each for each in handed if {"key:cluster", "cluster"} & {*each.column_names}]
    sums = [each.num_rows for each in handed if "place" in each.column_names]
    # Of every part by (stratum, group, class): few sums; of moves also products over classes; and
    # for each of two norms what tells how well it knows its group.
    assert len(sums) == (3 + 2 if "cluster" in roles else 0)
    assert max(sums, default=0) <= 2 * 2 * (2 * CLASSES**2 + 2 * CLASSES + 1)


def test_classes_are_read_a_few_at_a_time_where_rows_are_many(monkeypatch):
    frame = table(600)
    roles = {"weight": "w", "cluster": "site", "stratum": "year"}
    whole = measured(frame, **roles)
    monkeypatch.setattr(norm_tallies, "MOST_NUMBERS", 1_500)
    same(whole, measured(frame, **roles))


def test_strata_hold_the_cells_of_their_own_rows():
    frame = table(1_200)
    whole = measured(frame, weight="w", cluster="site", stratum="year")
    alone = measured(frame.filter(pl.col("year") == 1), weight="w", cluster="site")
    for measure in ("norm_correlation", "group_share", "norm_slope", "norm_bias"):
        inside = whole.rows.where(measure=measure, stratum="1")
        expected = alone.rows.where(measure=measure)
        for name in ("value", "low", "high"):
            assert inside.plain(name) == pytest.approx(expected.plain(name)), (measure, name)


def audited(rows: int, **more: Any) -> Any:
    made = simulate_norms(rows, **{"strength": 2.0, "scatter": 0.3, "seed": 1, **more}).frame
    return eh.audit(eh.Decisions(made, truth="title", group="gender"), lenses=["norms"],
                    limits={"norm_bias": 0.3})  # fmt: skip


def test_with_small_classes_the_corrected_bias_is_judged_and_the_record_says_so():
    result = audited(60)
    plain = result.rows.where(measure="norm_bias")
    freed = result.rows.where(measure="norm_bias_corrected")
    for one, other in zip(plain, freed, strict=True):
        assert one["verdict"] == "not assessed"
        assert one["judged_as"] is None
        assert one["method"].startswith("Spearman over classes, Bonett-Wright interval, permu")
        assert "; norm_bias_corrected is judged in its place: reliability 0." in one["method"]
        assert one["method"].endswith(" of the classes is under 0.95")
        assert other["verdict"] == "outside"
        assert (other["limit_low"], other["limit_high"]) == (-0.3, 0.3)
        assert other["judged_as"] == "norm_bias"
        assert abs(other["value"]) > abs(one["value"])
    finding = result.findings[0]
    assert (finding.measure, finding.verdict) == ("norm_bias", "outside")
    assert "sampling error removed" in finding.sentence
    detail = result.details["norms"]["trends"][0]
    assert detail["corrected_leads"] is True
    assert detail["bias_corrected"] == freed.plain("value")[0]


def test_with_large_classes_the_plain_bias_is_judged():
    result = audited(3_000, scatter=0.1, shares={f"c{k}": 0.05 + 0.06 * k for k in range(16)})
    plain = result.rows.where(measure="norm_bias")
    assert set(plain.plain("verdict")) == {"outside"}
    freed = result.rows.where(measure="norm_bias_corrected")
    assert set(freed.plain("verdict")) == {"not assessed"}
    assert set(freed.plain("judged_as")) == {None}


def test_where_classes_differ_by_chance_alone_nothing_can_be_told():
    result = audited(30, strength=0.0, shares={f"c{k}": 0.1 + 0.1 * k for k in range(9)})
    freed = result.rows.where(measure="norm_bias_corrected")
    unknown = [row for row in freed if row["value"] is None]
    assert unknown
    for row in unknown:
        assert row["verdict"] == "cannot tell"
        assert row["undefined"].startswith("reliability of the class correlations is ")
        assert row["judged_as"] == "norm_bias"
    assert result.verdict == "cannot tell"


def test_limits_on_the_corrected_measure_itself_hold():
    made = simulate_norms(60, scatter=0.3, seed=1).frame
    result = eh.audit(eh.Decisions(made, truth="title", group="gender"), lenses=["norms"],
                      limits={"norm_bias_corrected": 0.3})  # fmt: skip
    assert set(result.rows.where(measure="norm_bias").plain("verdict")) == {"not assessed"}
    assert "outside" in result.rows.where(measure="norm_bias_corrected").plain("verdict")


def test_the_mean_size_is_freed_of_noise_and_judged_so():
    made = simulate_norms(40, strength=0.0, scatter=0.0, seed=2).frame
    result = eh.audit(eh.Decisions(made, truth="title", group="gender"), lenses=["norms"],
                      limits={"norm_correlation_mean": 0.05})  # fmt: skip
    plain = result.rows.where(measure="norm_correlation_mean")
    freed = result.rows.where(measure="norm_correlation_mean_corrected")
    # Nothing is there, and yet the plain mean lies above 0.05 for certain.
    assert (plain["low"] > 0.05).any()
    assert set(plain.plain("verdict")) == {"not assessed"}
    assert "outside" not in freed.plain("verdict")
    assert (freed["value"] < plain["value"]).all()
    assert (freed["low"] <= freed["value"]).all()


@pytest.mark.parametrize("alone", [True, False], ids=["two classes", "many classes"])
def test_copies_in_a_cluster_are_no_further_evidence_on_other_classes_either(alone):
    rng = np.random.default_rng(3)
    n, names = 400, ("a", "b") if alone else ("a", "b", "c")
    frame = pl.DataFrame(
        {
            "title": rng.choice(names, n),
            "gender": rng.choice(["f", "m"], n),
            "norm@f": rng.standard_normal(n),
            "who": [f"who {k}" for k in range(n)],
            **{f"score:{name}": rng.random(n) for name in names},
        }
    )

    def of_others(table: pl.DataFrame, **more: Any) -> Any:
        scores = {name: f"score:{name}" for name in names}
        decisions = eh.Decisions(table, truth="title", group="gender", scores=scores, **more)
        settings = {"bootstrap": False, "not_class": True}
        rows = norms.measure(decisions, Options(settings=settings)).rows
        rows = rows.where(measure="norm_correlation", group="f", norm="f")
        return [row for row in rows if row["class"].startswith("not:")]

    once, copied = of_others(frame), of_others(pl.concat([frame] * 4), cluster="who")
    assert len(once) == len(copied) == len(names)
    for plain, row in zip(once, copied, strict=True):
        assert row["value"] == pytest.approx(plain["value"], abs=1e-9)
        assert "jackknife over" in row["method"]
        width = (row["high"] - row["low"]) / (plain["high"] - plain["low"])
        assert 0.85 < width < 1.15  # of copies as rows of their own it would be a half
