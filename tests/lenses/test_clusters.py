"""Sums by cluster, against the same counted row by row."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions import counts
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies import by_cluster, collect, near, pairs
from evenhand.decisions.tallies.by_cluster import DistantClusters
from evenhand.decisions.tallies.scores import ScoreTallies, ScoreTally
from evenhand.findings import tallying
from evenhand.lenses.measures import cells_of, counted_rates
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.scope import Scope
from evenhand.lenses.statistical.clusters import Clusters, GatheredClusters, PartProducts
from evenhand.lenses.statistical.confusion import confusion, prepare, weight_column
from evenhand.lenses.statistical.lens import attribute_scope, measure_tally
from evenhand.lenses.statistical.score_cells import ScoreCells
from evenhand.lenses.statistical.scores import area_rows, calibration_rows


def table(classes, rows=600, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    frame = pl.DataFrame(
        {
            "truth": truth,
            "decision": np.where(rng.random(rows) < 0.6, truth, rng.integers(0, classes, rows)),
            "sex": rng.choice(["f", "m", "x"], rows),
            "site": rng.integers(0, 2, rows),
            "who": rng.integers(0, 25, rows),
            "weight": rng.choice([0.0, 0.5, 1.0, 2.0], rows),
        }
    ).with_columns(pl.format("c{}", c).alias(c) for c in ("truth", "decision"))
    return frame.with_columns(
        pl.when(pl.Series(rng.random(rows) > 0.05)).then(pl.col(c)).alias(c)
        for c in ("truth", "decision", "sex", "site", "who")
    )


def by_hand(frame, rate, classes, weighted):
    """Hits, cases and squares of every (stratum, group, class, cluster), a row at a time."""
    hit_mask, case_mask = cells_of(rate).masks
    found = defaultdict(lambda: [0.0, 0.0, 0.0])
    groups = sorted(set(frame["sex"].drop_nulls()))
    for row in frame.iter_rows(named=True):
        if row["sex"] is None or row["who"] is None or row["decision"] is None:
            continue
        amount = row["weight"] if weighted else 1.0
        layers = [0] + ([row["site"] + 1] if row["site"] is not None else [])
        for place, name in enumerate(classes):
            state = 2 if row["truth"] is None else int(row["truth"] == name)
            decided = int(row["decision"] == name)
            for layer in layers:
                cell = (layer * len(groups) + groups.index(row["sex"])) * len(classes) + place
                sums = found[cell, row["who"]]
                sums[0] += amount * hit_mask[state][decided]
                sums[1] += amount * case_mask[state][decided]
                sums[2] += amount**2 * case_mask[state][decided]
    return {key: sums for key, sums in found.items() if sums[1] > 0}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_sums_by_cluster_are_those_of_the_rows(classes, weighted):
    frame = table(classes)
    roles = {"positive": "c1"} if classes == 2 else {}
    decisions = Decisions(
        frame,
        truth="truth",
        decision="decision",
        group="sex",
        stratum="site",
        cluster="who",
        weight="weight" if weighted else None,
        **roles,
    )
    tally = decisions.count(decisions.roles.attributes[0], cluster=True)
    counts = confusion(tally, decisions.roles)
    clusters = Clusters(prepare(tally, decisions.roles)[0], counts)
    names = [int(name) for name in tally.labels["cluster"]]
    for rate in counted_rates(truth=True):
        sums = clusters.sums(rate, weight_column(counts.sums, rate))
        expected = by_hand(frame, rate, counts.classes, weighted)
        where = [(int(c), names[k]) for c, k in zip(sums["cell"], sums["cluster"], strict=True)]
        # In order, each once: what follows sorts nothing.
        places = list(zip(sums["cell"].tolist(), sums["cluster"].tolist(), strict=True))
        assert places == sorted(set(places))
        assert set(where) == set(expected)
        got = np.stack([sums["hit_weight"], sums["weight"], sums["squares"]], axis=1)
        assert got == pytest.approx(np.array([expected[key] for key in where]), abs=1e-12)


def same_rows(left: Rows, right: Rows, *, abs: float = 1e-9) -> None:
    """Every column of two results; numbers to 1e-9, or as close as is said."""
    assert left.columns.keys() == right.columns.keys()
    for name, values in left.columns.items():
        other = right.columns[name]
        if values.dtype.kind == "f":
            assert other == pytest.approx(values, rel=abs, abs=abs, nan_ok=True), name
        else:
            assert other.tolist() == values.tolist(), name


SETTINGS = {
    "two classes": (2, {}),
    "four classes": (4, {}),
    "weights": (2, {"weight": "weight"}),
    "strata": (3, {"stratum": "site"}),
    "strata and weights": (2, {"stratum": "site", "weight": "weight"}),
    "against all others": (4, {"reference": "<rest>"}),
    "against everybody": (4, {"reference": "<overall>", "weight": "weight"}),
}


@pytest.mark.parametrize("nested", [False, True], ids=["shared", "nested"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_products_of_parts_of_the_clusters_add_up(setting, nested):
    """Sums over clusters on seven machines give what all clusters give on one."""
    classes, more = SETTINGS[setting]
    frame = table(classes, rows=900, seed=3)
    if nested:
        # Clusters of one group each, and one that is all of its group.
        who = pl.when(pl.col("sex") == "x").then(99).otherwise(pl.col("who") * 2)
        frame = frame.with_columns((who + (pl.col("sex") == "m").cast(pl.Int64)).alias("who"))
    roles = {"positive": "c1"} if classes == 2 else {}
    decisions = Decisions(
        frame, truth="truth", decision="decision", group="sex", cluster="who", **roles, **more
    )
    attribute, roles, options = decisions.roles.attributes[0], decisions.roles, Options()
    tally = decisions.count(attribute, cluster=True)
    plain = tally.collapsed("cluster", "clustered")
    counted = confusion(plain, roles)
    scope = attribute_scope(counted, attribute, roles, options)
    function = PartProducts(table=counted, roles=roles, labels=plain.labels, reference=scope.place)
    machine = np.random.default_rng(1).integers(0, 7, len(tally.labels["cluster"]) + 1)
    parts = [function(tally.take(machine[tally.codes["cluster"]] == i).pruned()) for i in range(7)]
    added = {name: sum(part[name] for part in parts) for name in parts[0]}
    gathered = GatheredClusters(table=counted, products=added)
    found, notes = measure_tally(plain, attribute, roles, options, gathered=gathered)
    expected, expected_notes = measure_tally(tally, attribute, roles, options)
    same_rows(Rows.concatenate(expected), Rows.concatenate(found))
    assert notes == expected_notes
    seen = tally.codes["cluster"][(tally.codes["cluster"] >= 0) & (tally.codes["group"] >= 0)]
    assert gathered.units == np.unique(seen).size


class SevenMachines:
    """Clusters that lie on seven machines, each of which adds up what it has."""

    def __init__(self, tally, first=None):
        self.tally, self.first = tally, first

    def add_up(self, function):
        machine = np.random.default_rng(1).integers(0, 7, len(self.tally.labels["cluster"]) + 1)
        found = []
        for i in range(7):
            part = self.tally.take(machine[self.tally.codes["cluster"]] == i).pruned()
            found.append(function(part if self.first is None else self.first(part)))
        return {name: sum(part[name] for part in found) for name in found[0]}


def scored(rows=1_200, seed=5):
    """Scores of three groups at two sites; some clusters are of one group, one is all of it."""
    rng = np.random.default_rng(seed)
    frame = table(2, rows=rows, seed=seed).with_columns(
        pl.Series("score", np.round(rng.beta(2, 2, rows), 3))
    )
    lone = pl.when(pl.col("sex") == "x").then(99).otherwise(pl.col("who"))
    return frame.with_columns(
        pl.when(pl.Series(rng.random(rows) > 0.02)).then(pl.col("score")).alias("score"),
        pl.when(pl.col("who") < 20).then(pl.col("who")).otherwise(lone).alias("who"),
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("within", [False, True], ids=["whole", "strata"])
def test_areas_and_calibration_add_up_over_parts_of_the_clusters(within, weighted):
    decisions = Decisions(
        scored(), truth="truth", score="score", threshold=0.5, positive="c1", group="sex",
        cluster="who", stratum="site", weight="weight" if weighted else None,
    )  # fmt: skip
    (attribute,) = decisions.roles.attributes
    scores = ScoreTallies(decisions, ["score"])
    kinds = [
        getattr(scores, kind)(attribute, "score", "c1", within=within).tally
        for kind in ("placements", "bins")
    ]
    apart = [
        ScoreTally(tally=each.without("cluster"), distant=SevenMachines(each)) for each in kinds
    ]
    whole = [ScoreTally(tally=each) for each in kinds]
    scope = Scope(lens="statistical", attribute="sex", level=0.95, seed=0, positive="c1")
    scope = replace(scope, classes=("c1",), stratified=within)

    def measured(tallies):
        cells = ScoreCells.of(tallies[0])
        places = replace(scope, strata=cells[0].strata)
        return Rows.gather(
            [*area_rows(places, cells, asked="m"), *calibration_rows(places, tallies[1])]
        )

    same_rows(measured(whole), measured(apart), abs=1e-12)


@pytest.fixture
def elsewhere(monkeypatch):
    """From here on clusters are too many for the driver, and lie on seven machines.

    What was added up there is noted.
    """
    noted = set()

    def add_up(self, function):
        noted.add(type(function).__name__)
        tally = self.decisions.answer([self.question])[0]
        return SevenMachines(tally, self.first).add_up(function)

    def move():
        monkeypatch.setattr(DistantClusters, "add_up", add_up)
        for module in (counts, collect, near, pairs):
            monkeypatch.setattr(module, "stay_in_spark", lambda *_: True)
        return noted

    return move


def same_audit(found, expected, *, abs=1e-12):
    """Rows to 1e-12, or as close as is said; numbers of details, and all else as it is."""
    same_rows(expected.rows, found.rows, abs=abs)
    for part in ("fingerprint", "excluded"):
        assert found.data[part] == expected.data[part]
    assert found.notes == expected.notes
    assert_close(found.details, expected.details)


def assert_close(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_close(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    else:
        close = isinstance(expected, float)
        assert found == (pytest.approx(expected, abs=1e-9) if close else expected)


SAMPLED = {"rows": {}, "weights and strata": {"stratum": "site", "weight": "weight"}}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sample", SAMPLED)
def test_pairs_add_up_over_parts_of_the_clusters(classes, sample, elsewhere):
    frame = paired(classes)
    roles = {"truth": "truth", "decision": "decision", "group": "sex", "cluster": "who"}
    roles |= SAMPLED[sample] | ({"positive": "c1"} if classes == 2 else {})
    expected = eh.audit(frame, **roles)
    added = elsewhere()
    same_audit(eh.audit(frame, **roles), expected)
    assert added == {"PartProducts", "PartPairs"}


@pytest.mark.parametrize("grid", [False, True], ids=["rows", "grid"])
@pytest.mark.parametrize("scores", ["shares", "whole numbers"])
@pytest.mark.parametrize("sample", SAMPLED)
def test_scores_and_thresholds_add_up_over_parts_of_the_clusters(
    sample, scores, grid, elsewhere, monkeypatch
):
    frame, cut = scored(), 0.5
    if scores == "whole numbers":
        frame, cut = frame.with_columns((pl.col("score") * 300).cast(pl.Int64)), 150
    roles = {"truth": "truth", "score": "score", "threshold": cut, "positive": "c1"}
    roles |= {"group": "sex", "cluster": "who", **SAMPLED[sample]}
    if grid:
        monkeypatch.setattr(tallying, "MOST_EXACT", 100)
    expected = eh.audit(frame, **roles)
    added = elsewhere()
    same_audit(eh.audit(frame, **roles), expected)
    on_grid = {"PartAreas", "PartBins"} if scores == "shares" else {"PartAreas"}
    assert added == {"PartProducts", "PartFits"} | (on_grid if grid else set())


def paired(classes, rows=900, seed=6):
    """Decisions that differ under three values in some rows, and are missing in others."""
    rng = np.random.default_rng(seed)
    frame = table(classes, rows=rows, seed=seed)

    def under(value, share):
        other = pl.Series(rng.choice([f"c{i}" for i in range(classes)], rows))
        changed, known = (pl.Series(rng.random(rows) < each) for each in (share, 0.98))
        decided = pl.when(changed).then(other).otherwise(pl.col("decision"))
        return pl.when(known).then(decided).alias(f"decision@{value}")

    return frame.with_columns(under("f", 0.1), under("m", 0.2), under("x", 0.05))


@pytest.mark.parametrize("raw", [True, False], ids=["rows", "cells"])
def test_a_worker_counts_its_rows_a_few_at_a_time(raw, monkeypatch):
    """Sums of rows in batches are those of the cells by cluster that an engine counts."""
    monkeypatch.setattr(by_cluster, "AT_ONCE", 200)
    decisions = Decisions(
        table(2), truth="truth", decision="decision", group="sex", cluster="who", weight="weight",
        positive="c1",
    )  # fmt: skip
    (attribute,) = decisions.roles.attributes
    question = decisions.count_question(attribute, cluster=True)
    keys = ["group", "truth", "decision", "cluster"]

    def summed(part):
        for key in keys:
            part = part.relabel(key, labels[key])
        return {name: part.dense(keys, name, keep_missing=keys) for name in part.sums}

    whole = decisions.answer([question])[0]
    labels = whole.labels
    work = by_cluster._Part(
        raw=raw, keys=question.keys, sums=question.sums, attribute=attribute, missing="drop",
        functions=(summed,),
    )  # fmt: skip
    held = (question.rows if raw else question.frame).collect().to_arrow()
    (found,) = work(iter(held.to_batches(max_chunksize=70)))
    expected = np.concatenate([each.reshape(-1) for each in summed(whole).values()])
    places = np.zeros(expected.size)
    places[found["place"].to_numpy()] = found["value"].to_numpy()
    assert places == pytest.approx(expected, abs=1e-12)
    assert list(work(iter([]))) == []


def test_crossed_attributes_add_up_over_parts_of_the_clusters(elsewhere):
    roles = {"truth": "truth", "decision": "decision", "group": ["sex", "site"], "crossed": True}
    roles |= {"cluster": "who", "weight": "weight"}
    frame = table(3, rows=900, seed=4)
    expected = eh.audit(frame, **roles)
    elsewhere()
    same_audit(eh.audit(frame, **roles), expected)


@pytest.mark.heavy
def test_spark_adds_up_what_clusters_do_where_they_lie(spark, monkeypatch):
    """The same audit as on Polars, and at the driver no more than tallies."""
    rows = 900
    few = pl.when(pl.int_range(pl.len()) % 17 > 0)
    frame = scored(rows, seed=4).with_columns(
        pl.int_range(pl.len()).floordiv(3).alias("who"),
        few.then(pl.col("decision")).otherwise(pl.lit("c1")).alias("decision@f"),
        pl.col("decision").alias("decision@m"),
    )
    roles = {"truth": "truth", "score": "score", "threshold": 0.5, "positive": "c1"}
    roles |= {"group": "sex", "cluster": "who"}
    expected = eh.audit(frame, **roles)
    monkeypatch.setattr(by_cluster, "MOST_AT_DRIVER", 50)
    schema = "truth string, decision string, sex string, site long, who long, weight double, "
    schema += "score double, `decision@f` string, `decision@m` string"
    data = spark.createDataFrame(frame.rows(), schema=schema)
    handed = []
    to_arrow = type(data).toArrow

    def counted(native):
        handed.append(to_arrow(native))
        return handed[-1]

    monkeypatch.setattr(type(data), "toArrow", counted)
    store = spark._jsparkSession.sharedState().statusStore()
    before = store.executionsList().size()
    found = eh.audit(data, **roles)
    same_audit(found, expected, abs=1e-9)
    assert {row["lens"] for row in found.rows} == {"statistical", "thresholds", "counterfactual"}
    executions = store.executionsList()
    plans = [
        executions.apply(i).physicalPlanDescription() for i in range(before, executions.size())
    ]
    # Rates, areas, calibration, fits and pairs; what leaves Spark is sums, and no cluster's cell.
    assert sum("MapInArrow" in plan for plan in plans) == 5
    assert frame["who"].n_unique() == rows / 3
    assert not [each for each in handed if {"key:cluster", "cluster"} & {*each.column_names}]
    by_key = [each.num_rows for each in handed if "key:clustered" in each.column_names]
    assert len(by_key) == 2
    assert max(by_key) < 150


@pytest.mark.heavy
def test_spark_says_what_its_workers_lack(spark):
    rows = [(i % 2, "fm"[i % 3 > 0], i) for i in range(30)]
    data = spark.createDataFrame(rows, schema="d long, sex string, who long")
    decisions = Decisions(data, decision="d", group="sex", cluster="who")

    def lacking(part):
        raise ModuleNotFoundError("No module named 'evenhand'")

    question = decisions.count_question(decisions.roles.attributes[0], cluster=True)
    with pytest.raises(eh.EvenhandError) as caught:
        DistantClusters(decisions=decisions, question=question).add_up(lacking)
    assert str(caught.value) == (
        "Spark's workers could not add up 'who', which has more cells than its driver takes: "
        "ModuleNotFoundError: No module named 'evenhand'. Install Evenhand where they run and name "
        "that Python with PYSPARK_PYTHON, or audit without cluster."
    )
