"""Sums by cluster, against the same counted row by row."""

from collections import defaultdict

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from evenhand.decisions import counts
from evenhand.decisions.table import Decisions
from evenhand.decisions.tallies.by_cluster import sum_over_clusters
from evenhand.lenses.measures import cells_of, counted_rates
from evenhand.lenses.rows import Options, Rows
from evenhand.lenses.statistical.clusters import Clusters, GatheredClusters, PartProducts
from evenhand.lenses.statistical.confusion import confusion, prepare, weight_column
from evenhand.lenses.statistical.lens import attribute_scope, measure_tally


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


def same_rows(left: Rows, right: Rows) -> None:
    """Every column of two results, numbers to 1e-9."""
    assert left.columns.keys() == right.columns.keys()
    for name, values in left.columns.items():
        other = right.columns[name]
        if values.dtype.kind == "f":
            assert other == pytest.approx(values, rel=1e-9, abs=1e-9, nan_ok=True), name
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


@pytest.mark.heavy
def test_spark_adds_up_what_clusters_do_where_they_lie(spark, monkeypatch):
    """The same rows as on Polars, and at the driver no more than a tally."""
    frame = table(3, rows=3_000, seed=4).with_columns(
        pl.int_range(pl.len()).floordiv(3).alias("who"),
        pl.when(pl.int_range(pl.len()) % 17 > 0).then(pl.col("weight")).alias("weight"),
    )
    roles = {
        "truth": "truth",
        "decision": "decision",
        "group": ["sex", "site"],
        "crossed": True,
        "cluster": "who",
        "weight": "weight",
    }
    expected = eh.audit(frame, **roles)
    monkeypatch.setattr(counts, "MOST_AT_DRIVER", 50)
    schema = "truth string, decision string, sex string, site long, who long, weight double"
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
    same_rows(expected.rows, found.rows)
    assert found.data["fingerprint"] == expected.data["fingerprint"]
    assert found.data["excluded"] == expected.data["excluded"]
    assert (found.details, found.notes) == (expected.details, expected.notes)
    executions = store.executionsList()
    plans = [
        executions.apply(i).physicalPlanDescription() for i in range(before, executions.size())
    ]
    # One product for each attribute; what leaves Spark is sums, and of clusters the few that told
    # that they are many.
    assert sum("MapInArrow" in plan for plan in plans) == 3
    assert not any("Window" in plan for plan in plans)
    by_cluster = [each.num_rows for each in handed if "key:cluster" in each.column_names]
    assert by_cluster == [51]
    assert [each.num_rows for each in handed if "sex" in each.column_names] == [12]
    many = frame.select("who", "sex", "site", "truth", "decision").n_unique()
    assert many > 2_500
    counted_cells = [each.num_rows for each in handed if "key:clustered" in each.column_names]
    assert [cells < 300 for cells in counted_cells] == [True]


@pytest.mark.heavy
def test_spark_says_what_its_workers_lack(spark):
    rows = [(i % 2, "fm"[i % 3 > 0], i) for i in range(30)]
    data = spark.createDataFrame(rows, schema="d long, sex string, who long")
    decisions = Decisions(data, decision="d", group="sex", cluster="who")

    def lacking(part):
        raise ModuleNotFoundError("No module named 'evenhand'")

    with pytest.raises(eh.EvenhandError) as caught:
        sum_over_clusters(decisions, decisions.roles.attributes[0], lacking)
    assert str(caught.value) == (
        "Spark's workers could not add up 'who', which has more cells than its driver takes: "
        "ModuleNotFoundError: No module named 'evenhand'. Install Evenhand where they run and name "
        "that Python with PYSPARK_PYTHON, or audit without cluster."
    )
